"""A sweep on a Ray cluster gives the bytes that it gives on this machine, whatever its cells do to their processes."""

from pathlib import Path

import pytest

from kemu.lab.exploration.processes.rays import RayWorkers
from kemu.lab.exploration.workers import Workers
from kemu.lab.sweep.engine.sweeps import Sweep
from tests.sweep import test_sweeps

pytestmark = pytest.mark.ray


def test_ray_gives_the_same_bytes(tmp_path: Path) -> None:
    (tmp_path / "moody_on_ray.py").write_text(test_sweeps.PLUGIN)
    text = test_sweeps.MOODY.replace("moody:", "moody_on_ray:")
    experiment = test_sweeps.experiment(text, str(tmp_path / "e.yaml"))
    results = []
    with Workers(2) as here, RayWorkers("local") as cluster:
        for number, executor in enumerate((here, cluster)):
            with Sweep(experiment, tmp_path / str(number)) as sweep:
                list(sweep.go(executor))
                assert sweep.is_over
                results.append(sweep.write().read_bytes())
    assert results[0] == results[1]
