"""What the run log says of scheduling attempts."""

from __future__ import annotations

from pathlib import Path

import pytest

from kemu.lab.scenario.loading import loader
from kemu.lab.scenario.playing import runner
from kemu.runtime.runlog.events import PodAttempted
from kemu.runtime.runlog.frames import FILE_NAME, Reader
from tests.scenarios.test_shipped import SCENARIOS


@pytest.mark.parametrize("name", ["groups/gang", "groups/gang-after-gang", "seeds/pod-affinity"])
def test_each_node_passes_or_is_rejected_by_one_plugin(name: str, tmp_path: Path) -> None:
    """Also of members of a gang, whose attempts are logged when all have been tried."""
    runner.run_all(loader.load(SCENARIOS[name]), runner.Options(out=tmp_path, runtime="sim"))
    with Reader(tmp_path / FILE_NAME) as log:
        attempts = [each.data for each in log if isinstance(each.data, PodAttempted) and each.data.plugins]
    assert attempts
    for attempt in attempts:
        assert attempt.feasible + sum(attempt.plugins.values()) == attempt.evaluated, attempt
