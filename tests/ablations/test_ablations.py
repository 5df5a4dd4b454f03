"""Without a safeguard, the recorded runs break what it protects; with it, the same runs do not."""

from __future__ import annotations

import pytest

from kemu.emulated import variants
from kemu.lab.exploration import executions
from kemu.lab.scenario.loading import loader
from tests.ablations import candidates, exploring, search

FOUND = search.load()


def test_every_safeguard_is_known_to_matter() -> None:
    assert list(FOUND) == list(variants.names(variants.ABLATION))
    for name, found in FOUND.items():
        assert found["breaks"] == candidates.CANDIDATES[name].breaks
        assert found["seed"] <= search.MAX_SEED
        assert found["explored"]["median_runs"] < exploring.MOST_RUNS
    assert sorted(path.stem for path in exploring.MINIMAL.iterdir()) == sorted(FOUND)


@pytest.mark.parametrize("name", FOUND)
def test_its_loss_is_seen(name: str) -> None:
    found = FOUND[name]
    scenario, settings, seed = found["scenario"], found["settings"], found["seed"]
    assert found["breaks"] in search.broken(scenario, settings, seed, name)
    assert found["breaks"] not in search.broken(scenario, settings, seed)


@pytest.mark.parametrize("name", FOUND)
def test_its_loss_is_seen_in_the_minimal_scenario_and_only_the_loss(name: str) -> None:
    path, breaks = exploring.MINIMAL / f"{name}.yaml", FOUND[name]["explored"]["breaks"]
    scenario = loader.load(path)
    assert scenario.ablate == (name,)
    assert breaks in [failure.id for failure in executions.execute(scenario).failures]
    sound = executions.execute(loader.load(path, None, {"ablate": []}))
    assert breaks not in [failure.id for failure in sound.failures]
