"""What a kubelet makes of its configuration."""

from __future__ import annotations

import re
from typing import Any

import pytest

from kemu.emulated.kubelet.settings import kubelet_configurations
from kemu.runtime.env import MILLISECOND_NS, SECOND_NS


def test_what_is_left_out_or_zero_has_its_default() -> None:
    settings = kubelet_configurations.read({"maxPods": 0, "nodeStatusUpdateFrequency": "0s"}, {})
    found = settings.configuration
    assert (found.max_pods, found.node_lease_duration_seconds) == (110, 40)
    assert found.node_status_update_frequency_ns == 10 * SECOND_NS
    assert found.node_status_report_frequency_ns == 300 * SECOND_NS
    assert (found.max_restart_period_s, found.pulls_at_once) == (300, 1)
    assert settings is kubelet_configurations.read({"maxPods": 0, "nodeStatusUpdateFrequency": "0s"}, {})


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
    assert kubelet_configurations.configuration(configuration).pulls_at_once == at_once


def test_durations_are_those_of_go() -> None:
    found = kubelet_configurations.configuration(
        {"nodeStatusReportFrequency": "1h1.5m", "nodeStatusUpdateFrequency": "250ms"}
    )
    assert found.node_status_report_frequency_ns == 3690 * SECOND_NS
    assert found.node_status_update_frequency_ns == 250 * MILLISECOND_NS


@pytest.mark.parametrize(
    ("configuration", "timing", "complaint"),
    [
        ({"nodeStatusUpdateFrequency": "10"}, {}, "nodeStatusUpdateFrequency: '10' is not a duration"),
        (
            {"crashLoopBackOff": {"maxContainerRestartPeriod": "6m"}},
            {},
            "crashLoopBackOff.maxContainerRestartPeriod: must",
        ),
        (
            {"crashLoopBackOff": {"maxContainerRestartPeriod": "x"}},
            {},
            "crashLoopBackOff.maxContainerRestartPeriod: 'x' is not a duration",
        ),
        ({"maxPods": "many"}, {}, "maxPods: must be a whole number"),
        ({"maxParallelImagePulls": 0}, {}, "maxParallelImagePulls: must be at least 1"),
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
