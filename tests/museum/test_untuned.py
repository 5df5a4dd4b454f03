"""Exploration finds the museum's bugs in scenarios in which no time is chosen for them; the nightly searches anew."""

from __future__ import annotations

import pytest

from tests import json_files
from tests.museum import explorations, search
from tests.museum.pieces import PIECES
from tests.museum.test_pieces import PAGES

pytestmark = pytest.mark.slow

EXPLORED = json_files.load(explorations.EXPLORED)
HELD = json_files.load(search.HELD)
QUICK_S = 0.5
"""Searches that took no longer are repeated for every change, all of them by night (``museum-explorations``)."""
QUICK = [number for number, record in EXPLORED.items() if record["cpu_s"] <= QUICK_S]


def test_every_piece_is_found_or_says_why_not() -> None:
    found = [*map(int, EXPLORED), *explorations.NOT_RECORDED]
    assert sorted(found) == [piece.number for piece in PIECES.values()]
    for number in explorations.NOT_RECORDED:
        page = (PAGES / f"{number}.md").read_text()
        assert "**Not found by search.**" in page or "**No search is needed.**" in page
    assert max(record["cpu_s"] for record in EXPLORED.values()) <= explorations.MOST_CPU_S


@pytest.mark.parametrize("number", EXPLORED)
def test_the_page_has_the_recorded_command(number: str) -> None:
    record = EXPLORED[number]
    assert record["command"] == explorations.command(explorations.SUBJECTS[int(number)])
    assert f"\n    {record['command']}\n" in (PAGES / f"{number}.md").read_text()


@pytest.mark.parametrize("number", QUICK)
def test_the_command_finds_it_by_the_recorded_run(number: str) -> None:
    """Or before, where a strategy has learnt something since."""
    record, subject = EXPLORED[number], explorations.SUBJECTS[int(number)]
    found = explorations.searched(subject, subject.bug, record["runs"])
    assert found is not None
    assert found.failure.id == record["breaks"]


def test_the_cured_sides_have_held_over_a_thousand_seeds() -> None:
    missing = [number for number in HELD if search.is_missing(number)]
    assert missing == [], "python -m tests.museum.search --missing"


@pytest.mark.parametrize("number", HELD)
def test_a_cured_side_holds_at_the_last_of_them(number: str) -> None:
    record = HELD[number]
    last = record["first"] + record["seeds"] - 1
    assert search.findings(search.BY_NUMBER[number], [last]) == []
