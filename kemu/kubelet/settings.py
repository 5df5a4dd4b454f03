"""What a kubelet is told: the fields of a KubeletConfiguration that matter here, and how long its work takes.

Kubelets of one cluster mostly share one configuration, so equal ones share one :class:`Settings`.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import msgpack

from kemu.runtime import distributions

_UNIT_S = {"ns": 1e-9, "us": 1e-6, "µs": 1e-6, "ms": 1e-3, "s": 1.0, "m": 60.0, "h": 3600.0}
_PART = re.compile(r"([0-9]+(?:\.[0-9]*)?|\.[0-9]+)(ns|us|µs|ms|s|m|h)")
_MAX_RESTART_PERIOD_S = 300.0


@dataclass(frozen=True, slots=True)
class Settings:
    """All times in seconds."""

    max_pods: int
    """How many pods the node takes, where its Node does not say."""
    lease_duration_s: int
    status_update_s: float
    """How often a changed node status may be reported."""
    status_report_s: float
    """How often an unchanged one is reported."""
    max_restart_period_s: float
    """The longest crash-loop back-off."""
    pulls_at_once: int
    """How many images may be pulled at the same time; 0: any number."""
    sync: distributions.Distribution
    """From what the kubelet hears until it acts."""
    pod_start: distributions.Distribution
    """From admission until the containers run, where a pod does not say."""
    image_pull: distributions.Distribution
    """How long an image takes that the node does not have."""


def read(kubelet: Mapping[str, Any], timing: Mapping[str, Any]) -> Settings:
    """``kubelet``: fields of a KubeletConfiguration. Raises ValueError that names the field."""
    return _read(msgpack.packb([kubelet, timing]))


@lru_cache(1024)
def _read(packed: bytes) -> Settings:
    kubelet, timing = msgpack.unpackb(packed)
    crash_loop = kubelet.get("crashLoopBackOff") or {}
    return Settings(
        max_pods=int(kubelet.get("maxPods") or 110),
        lease_duration_s=int(kubelet.get("nodeLeaseDurationSeconds") or 40),
        status_update_s=_duration_s(kubelet, "nodeStatusUpdateFrequency", 10.0),
        status_report_s=_duration_s(kubelet, "nodeStatusReportFrequency", 300.0),
        max_restart_period_s=_duration_s(crash_loop, "maxContainerRestartPeriod", _MAX_RESTART_PERIOD_S),
        pulls_at_once=1 if kubelet.get("serializeImagePulls", True) else int(kubelet.get("maxParallelImagePulls") or 0),
        sync=_distribution(timing, "kubeletSync"),
        pod_start=_distribution(timing, "podStart"),
        image_pull=_distribution(timing, "imagePull"),
    )


def _duration_s(fields: Mapping[str, Any], name: str, default_s: float) -> float:
    """A Go duration, such as ``1m30s``. As in the kubelet, 0 stands for the default."""
    text = fields.get(name) or "0"
    if text in ("0", "0s"):
        return default_s
    parts = _PART.findall(text)
    if "".join(number + unit for number, unit in parts) != text:
        raise ValueError(f"{name}: {text!r} is not a duration, such as 10s or 1m30s")
    return sum(float(number) * _UNIT_S[unit] for number, unit in parts)


def _distribution(timing: Mapping[str, Any], name: str) -> distributions.Distribution:
    try:
        return distributions.parse(timing.get(name, 0))
    except distributions.DistributionError as error:
        raise ValueError(f"timing.{name}: {error}") from error
