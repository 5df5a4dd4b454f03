"""The settings of a kubelet: the fields of its KubeletConfiguration that act, and how long its work takes.

Mirrors the defaults and checks of ``pkg/kubelet/apis/config`` (``SetDefaults_KubeletConfiguration``,
``ValidateKubeletConfiguration``); the eviction settings among the fields are read by
:mod:`kemu.emulated.kubelet.settings.evictions`. Kubelets of one cluster mostly share one configuration, so equal ones
share one :class:`Settings`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import msgpack

from kemu.emulated.kubelet.settings import evictions, shutdown_groups
from kemu.emulated.objects import times
from kemu.runtime import distributions
from kemu.runtime.env import SECOND_NS

_MAX_RESTART_PERIOD_S = 300.0
_STATUS_MAX_IMAGES = 50


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
    shutdown: tuple[shutdown_groups.Group, ...]
    """By which the pods end when the machine is shut down; empty: it does not wait for them."""
    pulls_at_once: int
    """How many images may be pulled at the same time; 0: any number."""
    status_max_images: int
    """How many images the Node tells; -1: all."""
    sync: distributions.Distribution
    """From what the kubelet hears until it acts."""
    pod_start: distributions.Distribution
    """From admission until the containers run, where a pod does not say."""
    image_pull: distributions.Distribution
    """How long an image takes that the node does not have."""


def read(kubelet: Mapping[str, Any], timing: Mapping[str, Any]) -> Settings:
    """``kubelet``: fields of a KubeletConfiguration. Raises ValueError that begins with the path of the field."""
    return _read(msgpack.packb([kubelet, timing]))


@lru_cache(1024)
def _read(packed: bytes) -> Settings:
    kubelet, timing = msgpack.unpackb(packed)
    return Settings(
        max_pods=_whole(kubelet, "maxPods", evictions.DEFAULT_MAX_PODS),
        lease_duration_s=_whole(kubelet, "nodeLeaseDurationSeconds", 40),
        status_update_s=_duration_s(kubelet, "nodeStatusUpdateFrequency", 10.0),
        status_report_s=_duration_s(kubelet, "nodeStatusReportFrequency", 300.0),
        max_restart_period_s=_max_restart_period_s(kubelet.get("crashLoopBackOff") or {}),
        shutdown=shutdown_groups.read(kubelet),
        pulls_at_once=_pulls_at_once(kubelet),
        status_max_images=_status_max_images(kubelet),
        sync=_distribution(timing, "kubeletSync"),
        pod_start=_distribution(timing, "podStart"),
        image_pull=_distribution(timing, "imagePull"),
    )


def _max_restart_period_s(crash_loop: Mapping[str, Any]) -> float:
    path = "crashLoopBackOff.maxContainerRestartPeriod"
    period_s = _duration_s(crash_loop, "maxContainerRestartPeriod", _MAX_RESTART_PERIOD_S, path)
    if not 1 <= period_s <= _MAX_RESTART_PERIOD_S:
        raise ValueError(f"{path}: must be between 1s and 300s")
    return period_s


def _pulls_at_once(kubelet: Mapping[str, Any]) -> int:
    """More than one at a time only where that is asked for. As in the kubelet, naming a number is asking for it."""
    most = kubelet.get("maxParallelImagePulls")
    if most is not None and (type(most) is not int or most < 1):
        raise ValueError(f"maxParallelImagePulls: must be a whole number greater than 0, not {most!r}")
    serial = kubelet.get("serializeImagePulls")
    if serial is None:
        serial = most is None or most < 2
    if serial and most is not None and most > 1:
        raise ValueError("maxParallelImagePulls: cannot be greater than 1 unless serializeImagePulls is false")
    return 1 if serial else most or 0


def _status_max_images(kubelet: Mapping[str, Any]) -> int:
    most = kubelet.get("nodeStatusMaxImages")
    if most is None:
        return _STATUS_MAX_IMAGES
    if type(most) is not int or most < -1:
        raise ValueError(f"nodeStatusMaxImages: must be a whole number, or -1 for all, not {most!r}")
    return most


def _whole(fields: Mapping[str, Any], name: str, default: int) -> int:
    """As in the kubelet, 0 stands for the default."""
    value = fields.get(name) or default
    if type(value) is not int or value < 0:
        raise ValueError(f"{name}: must be a whole number that is not negative, not {value!r}")
    return value


def _duration_s(fields: Mapping[str, Any], name: str, default_s: float, path: str = "") -> float:
    """A Go duration, such as ``1m30s``. As in the kubelet, 0 stands for the default."""
    found_ns = times.duration_field(fields, name, path)
    return found_ns / SECOND_NS if found_ns else default_s


def _distribution(timing: Mapping[str, Any], name: str) -> distributions.Distribution:
    try:
        return distributions.parse(timing.get(name, 0))
    except distributions.DistributionError as error:
        raise ValueError(f"timing.{name}: {error}") from error
