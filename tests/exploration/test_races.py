"""Races with devices and gangs: what searches found fails in the same way, says why, and is cured."""

from __future__ import annotations

import pytest

from kemu.lab.exploration import executions
from kemu.lab.scenario.loading import loader
from kemu.lab.tell.explaining import explanations
from tests import json_files
from tests.exploration import races
from tests.exploration.races import RACES

FOUND = json_files.load(races.RECORD)


def test_every_race_is_found() -> None:
    assert list(FOUND) == list(RACES)
    assert sorted(path.name for path in races.FILES.iterdir()) == sorted(races.file(name).name for name in RACES)
    for name, found in FOUND.items():
        assert (found["command"], found["breaks"]) == (races.command(name), RACES[name].breaks)
        assert found["cured_runs"] >= max(found["runs"], races.FEWEST_CURED)


@pytest.mark.parametrize("name", RACES)
def test_what_was_found_fails_and_says_why(name: str) -> None:
    why = explanations.explain(loader.load(races.file(name)), RACES[name].breaks)
    assert why.failure.id == RACES[name].breaks
    told = " ".join(one.text for one in why.chain.sentences)
    assert all(words in told for words in RACES[name].because), told


@pytest.mark.parametrize("name", RACES)
def test_the_cure_helps_where_the_race_is_lost(name: str) -> None:
    race, found = RACES[name], loader.load(races.file(name))
    assert not executions.execute(races.cured(name, found)).failures, race.cured_by


@pytest.mark.parametrize("name", RACES)
def test_the_scenario_holds_without_a_search(name: str) -> None:
    assert not races.plain(name, races.SEEDS.stop).failures
