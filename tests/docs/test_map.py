"""docs/README.md leads to every page, once."""

from __future__ import annotations

import re
from collections import Counter
from pathlib import Path

DOCS = Path(__file__).parents[2] / "docs"
DOORS = ["Learn", "Do", "Look up", "Understand"]
_LINK = re.compile(r"\]\(([^)#\s]+\.md)\)")


def linked(page: Path) -> Counter[Path]:
    found = [(page.parent / target).resolve() for target in _LINK.findall(page.read_text())]
    return Counter(each for each in found if each.is_relative_to(DOCS))


def test_the_map_has_four_doors() -> None:
    assert re.findall(r"^## (.+)$", (DOCS / "README.md").read_text(), re.MULTILINE) == DOORS


def test_every_page_is_behind_one_door_once() -> None:
    pages = {page for page in DOCS.glob("*.md") if page.name != "README.md"} | {DOCS / "museum" / "README.md"}
    links = linked(DOCS / "README.md")
    assert pages - set(links) == set(), "pages that nothing leads to"
    assert set(links) - pages == set(), "links to no page"
    assert {page.name: count for page, count in links.items() if count > 1} == {}


def test_the_museum_leads_to_each_of_its_pieces() -> None:
    pieces = set((DOCS / "museum").glob("[0-9]*.md"))
    assert pieces - set(linked(DOCS / "museum" / "README.md")) == set()
