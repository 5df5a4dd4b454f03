"""Every planted bug is found, at its recorded seed, by the recorded check or expectation."""

from __future__ import annotations

import json

import pytest

from tests.mutants import all_parts, planting, search

pytestmark = pytest.mark.slow

KILLS = json.loads(search.KILLS.read_text())


def test_every_mutant_is_killed_or_says_why_not() -> None:
    assert sorted(KILLS) == sorted(name for name, planted in all_parts.MUTANTS.items() if not planted.survives)
    assert len(KILLS) >= 40


@pytest.mark.parametrize("name", KILLS)
def test_a_check_finds_it(name: str) -> None:
    kill = KILLS[name]
    found = planting.killers(all_parts.MUTANTS[name], kill["run"], kill["seed"])
    assert kill["by"][0] in found
    assert kill["seed"] <= all_parts.MUTANTS[name].budget
