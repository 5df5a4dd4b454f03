"""Without a safeguard, the recorded run breaks what it protects; with it, the same run does not."""

from __future__ import annotations

import pytest

from kemu import safeguards
from tests.ablations import candidates, search

FOUND = search.load()


def test_every_safeguard_is_known_to_matter() -> None:
    assert list(FOUND) == list(safeguards.SAFEGUARDS)
    for name, found in FOUND.items():
        candidate = candidates.CANDIDATES[name]
        assert found["breaks"] == candidate.breaks
        assert found["seed"] <= search.MAX_SEED


@pytest.mark.parametrize("name", FOUND)
def test_its_loss_is_seen(name: str) -> None:
    found = FOUND[name]
    scenario, settings, seed = found["scenario"], found["settings"], found["seed"]
    assert found["breaks"] in search.broken(scenario, settings, seed, name)
    assert found["breaks"] not in search.broken(scenario, settings, seed)
