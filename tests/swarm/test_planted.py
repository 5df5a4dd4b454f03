"""Defects that kemu had are found again, each by the scenario that is recorded for it."""

from __future__ import annotations

import pytest

from tests import json_files
from tests.swarm import planted

FOUND = json_files.load(planted.FOUND)


def test_what_is_recorded_is_within_the_budget() -> None:
    assert FOUND
    assert FOUND.keys() <= planted.DEFECTS.keys()
    assert all(one["number"] < planted.BUDGET for one in FOUND.values())


@pytest.mark.parametrize("name", FOUND)
def test_a_scenario_shows_it(name: str) -> None:
    found = planted.found_by(planted.DEFECTS[name], FOUND[name]["number"])
    assert FOUND[name]["by"][0] in found
