"""The worked examples hold for real, too: on Ray, over gRPC, twenty times as fast as the wall clock."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from kemu.cli import catalog
from kemu.runtime.ray_clusters import RayCluster
from kemu.scenario import loader, runner
from tests.scenarios.test_shipped import failures

SCENARIOS = {
    name: path
    for name, path in catalog.shipped().items()
    if name.startswith(("seeds/", "races/", "extenders/", "chaos/graceful-", "chaos/machine-"))
}  # fmt: skip

pytestmark = [pytest.mark.ray, pytest.mark.slow]


@pytest.fixture(scope="module", autouse=True)
def _one_ray_for_all() -> Iterator[None]:
    """Each run has cells of its own; only Ray itself is shared, as it takes seconds to start."""
    with RayCluster(workers=3):
        yield


@pytest.mark.parametrize("name", SCENARIOS)
def test_holds_on_ray(name: str, tmp_path: Path) -> None:
    scenario = loader.load(SCENARIOS[name])
    # Two virtual seconds are a tenth of a real one: a machine that is busy with other things may be too slow for that.
    for speed in (20, 5):
        verdict, _ = runner.run_all(scenario, runner.Options(out=tmp_path, runtime="ray", speed=speed))
        if verdict["verdict"] == "holds":
            break
    assert verdict["verdict"] == "holds", failures(verdict)
