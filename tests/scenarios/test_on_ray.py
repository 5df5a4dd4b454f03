"""The worked examples hold for real, too: on Ray, over gRPC, twenty times as fast as the wall clock."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from kemu.cli import catalog
from kemu.runtime.ray.driver.clusters import RayCluster
from kemu.scenario.expectations import CheckIs
from kemu.scenario.loading import loader
from kemu.scenario.playing import runner
from kemu.scenario.scenarios import Scenario
from tests.scenarios.test_shipped import failures

SCENARIOS = {
    name: path
    for name, path in catalog.shipped().items()
    if name.startswith(("seeds/", "races/", "extenders/", "chaos/graceful-", "chaos/machine-"))
}  # fmt: skip

pytestmark = [pytest.mark.ray, pytest.mark.slow, pytest.mark.timeout(900)]

SPEEDS = (20, 5, 2)
"""Tried in this order. Two virtual seconds are a tenth of a real one, and a cell that was killed is away for more than
one: what a scenario expects to happen by some time, a machine that is busy with other things may be too slow for."""

OF_TIMES = ("node-evictions-keep-their-rate",)
"""Checks of which the same is true. All others hold however slow the machine is."""


@pytest.fixture(scope="module", autouse=True)
def _one_ray_for_all() -> Iterator[None]:
    """Each run has cells of its own; only Ray itself is shared, as it takes seconds to start."""
    with RayCluster(workers=3):
        yield


def expects_failure(scenario: Scenario) -> bool:
    """Whether it says itself that a check fails."""
    return any(isinstance(expectation.subject, CheckIs) for expectation in scenario.expectations)


@pytest.mark.parametrize("name", SCENARIOS)
def test_holds_on_ray(name: str, tmp_path: Path) -> None:
    scenario = loader.load(SCENARIOS[name])
    for speed in SPEEDS:
        verdict, _ = runner.run_all(scenario, runner.Options(out=tmp_path / f"{speed}", runtime="ray", speed=speed))
        if verdict["verdict"] == "holds":
            break
        wrong = [found for found in verdict["checks"] if found["holds"] is False and found["id"] not in OF_TIMES]
        assert not wrong or expects_failure(scenario), f"at speed {speed}: {wrong}"
    assert verdict["verdict"] == "holds", failures(verdict)
