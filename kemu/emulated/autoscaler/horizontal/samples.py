"""What pods use, as the metrics server would tell the autoscaler (``podautoscaler/metrics``)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from kemu.emulated.kubelet.usage import meters
from kemu.messages.k8s import core_v1_pb2

WINDOW_S = 10
"""So often kubelets measure."""
NOTHING = "no metrics returned from resource metrics API"


class MetricError(Exception):
    """Why there is no number of replicas."""


@dataclass(frozen=True, slots=True)
class Sample:
    """What one pod uses, in thousandths, when it was measured (Unix seconds), and over how long."""

    milli: int
    unix_s: int = 0
    window_s: int = 0


def of_pods(pods: Iterable[core_v1_pb2.Pod], resource: str, container: str, unix_s: int) -> dict[str, Sample]:
    """By name, of those that run. ``container`` "": of all together. Raises MetricError where no pod runs."""
    found, any_runs = {}, False
    for pod in pods:
        running = meters.Meter(pod).running(unix_s)
        any_runs = any_runs or bool(running)
        used = [amounts for name, amounts in running if container in ("", name)]
        if used and all(resource in amounts for amounts in used):
            total = sum(_milli(resource, amounts) for amounts in used)
            found[pod.metadata.name] = Sample(total, unix_s, WINDOW_S)
    if not any_runs:
        raise MetricError(NOTHING)
    return found


def _milli(resource: str, amounts: Mapping[str, int]) -> int:
    """The metrics API has memory in whole KiB."""
    return amounts[resource] if resource == "cpu" else -(-amounts[resource] // 1024) * 1024 * 1000
