"""Scenarios in which no time is chosen for a race show bugs of the museum at some seed, and hold without the bug."""

from __future__ import annotations

import dataclasses
from typing import Any

import pytest

from kemu.exploration import executions
from kemu.scenario import catalog
from kemu.scenario.loading import loader

POST_FILTER = "schedulers[0].config.profiles[0].pluginConfig[0].args.postFilter"
SHOWN = (
    ("races/drain-of-a-labelled-node", {"bugs": ["k8s-82149"]}, "voluntary-evictions-respect-budgets", 60),
    ("races/drain-of-a-labelled-node", {"bugs": ["k8s-95822"]}, "nobody-is-rejected", 10),
    ("races/jobs-on-a-small-node", {"bugs": ["k8s-106884"]}, "nobody-is-rejected", 1),
    ("races/two-gangs", {POST_FILTER: False}, "red-succeeds", 10),
)
"""Scenario, what brings the bug, what it breaks, and the seed by which it has done so."""


@pytest.mark.parametrize(("name", "bug", "broken", "seeds"), SHOWN)
def test_shows_the_bug(name: str, bug: dict[str, Any], broken: str, seeds: int) -> None:
    file = catalog.find(name)
    sick, healthy = loader.load(file, overrides=bug), loader.load(file)
    for seed in range(1, seeds + 1):
        execution = executions.execute(dataclasses.replace(sick, seed=seed))
        if broken in {failure.id for failure in execution.failures}:
            assert not executions.execute(dataclasses.replace(healthy, seed=seed)).failures
            return
    pytest.fail(f"{broken} holds over {seeds} seeds")
