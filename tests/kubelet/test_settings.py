"""What a kubelet makes of its configuration."""

from __future__ import annotations

import re
from typing import Any

import pytest

from kemu.emulated.kubelet.settings import kubelet_configurations


def test_what_is_left_out_or_zero_has_its_default() -> None:
    found = kubelet_configurations.read({"maxPods": 0, "nodeStatusUpdateFrequency": "0s"}, {})
    assert (found.max_pods, found.lease_duration_s) == (110, 40)
    assert (found.status_update_s, found.status_report_s) == (10, 300)
    assert (found.max_restart_period_s, found.pulls_at_once) == (300, 1)
    assert found is kubelet_configurations.read({"maxPods": 0, "nodeStatusUpdateFrequency": "0s"}, {})


@pytest.mark.parametrize(
    ("configuration", "at_once"),
    [
        ({"serializeImagePulls": True}, 1),
        ({"serializeImagePulls": False}, 0),
        ({"maxParallelImagePulls": 1}, 1),
        ({"maxParallelImagePulls": 3}, 3),
        ({"serializeImagePulls": False, "maxParallelImagePulls": 5}, 5),
    ],
)
def test_pulls_at_once(configuration: dict[str, Any], at_once: int) -> None:
    assert kubelet_configurations.read(configuration, {}).pulls_at_once == at_once


def test_durations_are_those_of_go() -> None:
    found = kubelet_configurations.read(
        {"nodeStatusReportFrequency": "1h1.5m", "nodeStatusUpdateFrequency": "250ms"}, {}
    )
    assert (found.status_report_s, found.status_update_s) == (3690, 0.25)


@pytest.mark.parametrize(
    ("configuration", "timing", "complaint"),
    [
        ({"nodeStatusUpdateFrequency": "10"}, {}, "nodeStatusUpdateFrequency: invalid duration '10'"),
        (
            {"crashLoopBackOff": {"maxContainerRestartPeriod": "6m"}},
            {},
            "crashLoopBackOff.maxContainerRestartPeriod: must",
        ),
        (
            {"crashLoopBackOff": {"maxContainerRestartPeriod": "x"}},
            {},
            "crashLoopBackOff.maxContainerRestartPeriod: inv",
        ),
        ({"maxPods": "many"}, {}, "maxPods: must be a whole number"),
        ({"maxParallelImagePulls": 0}, {}, "maxParallelImagePulls: must be a whole number greater than 0"),
        (
            {"serializeImagePulls": True, "maxParallelImagePulls": 2},
            {},
            "maxParallelImagePulls: cannot be greater than 1",
        ),
        ({}, {"podStart": {"uniform": {"min": 2}}}, "timing.podStart: "),
    ],
)
def test_mistakes_are_named_by_their_path(configuration: Any, timing: Any, complaint: str) -> None:
    with pytest.raises(ValueError, match=f"^{re.escape(complaint)}"):
        kubelet_configurations.read(configuration, timing)
