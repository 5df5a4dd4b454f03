"""docs/README.md leads to every page, once, no link of a document is broken, and decisions are numbered."""

from __future__ import annotations

import re
from collections import Counter
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
PAGES = [*sorted(ROOT.glob("*.md")), *sorted(DOCS.rglob("*.md"))]
DOORS = ["Learn", "Do", "Look up", "Understand"]
_FENCE = re.compile(r"^ *```.*?^ *```$", re.MULTILINE | re.DOTALL)
_CODE = re.compile(r"`[^`\n]+`")
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


def _anchors(page: Path) -> set[str]:
    """Of its headings, as GitHub makes them."""
    prose = _FENCE.sub("", page.read_text())
    found: Counter[str] = Counter()
    anchors = set(re.findall(r'<a (?:id|name)="([^"]+)"', prose))
    for heading in re.findall(r"^#+ (.+)$", prose, re.MULTILINE):
        words = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", heading)
        anchor = re.sub(r"[^\w\- ]", "", words.lower()).replace(" ", "-")
        anchors.add(f"{anchor}-{found[anchor]}" if found[anchor] else anchor)
        found[anchor] += 1
    return anchors


@pytest.mark.parametrize("page", [str(page.relative_to(ROOT)) for page in PAGES])
def test_links_lead_to_files_and_headings(page: str) -> None:
    """Of the repository: documents, code, scenarios."""
    path = ROOT / page
    broken = []
    for target in re.findall(r"\]\(([^)\s]+)\)", _CODE.sub("", _FENCE.sub("", path.read_text()))):
        if re.match(r"[a-z]+:", target):
            continue
        file, _, anchor = target.partition("#")
        to = (path.parent / file) if file else path
        if not to.exists() or (anchor and to.suffix == ".md" and anchor not in _anchors(to)):
            broken.append(target)
    assert broken == []


def test_decisions_have_numbers_of_their_own() -> None:
    text = (DOCS / "decisions.md").read_text()
    areas = [area.partition("\n") for area in re.split(r"^## ", text, flags=re.MULTILINE)[1:]]
    numbers = [int(number) for number in re.findall(r"^\*\*D(\d+)\. ", text, re.MULTILINE)]
    (following,) = re.findall(r"The next number is\s+D(\d+)\.", text)
    assert [number for number, count in Counter(numbers).items() if count > 1] == []
    assert int(following) == max(numbers) + 1
    stated = re.findall(r"^\* \[(.+)\]\(#.+\): (\d+)$", text, re.MULTILINE)
    assert stated == [(name, str(len(re.findall(r"^\*\*D", body, re.MULTILINE)))) for name, _, body in areas]
    unnumbered = [p[:60] for _, _, body in areas for p in body.strip().split("\n\n") if not p.startswith("**D")]
    assert unnumbered == []
