"""What checks alone find of the planted bugs is found again, at its recorded seed; what they cannot find says why."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.mutants.unaided import search
from tests.mutants.unaided.planting import MUTANTS

pytestmark = pytest.mark.slow

KILLS = json.loads(search.KILLS.read_text())


def test_every_mutant_is_killed_or_argued() -> None:
    argued = [name for name, planted in MUTANTS.items() if planted.survives]
    assert sorted([*KILLS, *argued]) == sorted(MUTANTS)
    text = (Path(__file__).parents[3] / "docs" / "checks.md").read_text()
    assert f"{len(KILLS)} of {len(MUTANTS)} more bugs" in text


@pytest.mark.parametrize("name", KILLS)
def test_a_check_finds_it(name: str) -> None:
    kill = KILLS[name]
    assert set(kill["by"]) & set(search.killers(MUTANTS[name], kill["run"], kill["seed"]))
