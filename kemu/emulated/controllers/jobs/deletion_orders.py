"""Which of a Job's active pods goes first when there are too many (``ActivePods`` of ``pkg/controller``)."""

from __future__ import annotations

from collections.abc import Sequence

from kemu.emulated.objects import meta
from kemu.messages.k8s import core_v1_pb2


def in_order(pods: Sequence[core_v1_pb2.Pod]) -> list[core_v1_pb2.Pod]:
    """Those first that are not bound, not running, not ready, have been ready for a shorter time, have restarted more
    often, are younger. Equal ones keep their order."""
    return sorted(pods, key=_rank)


def _rank(pod: core_v1_pb2.Pod) -> tuple[bool, int, bool, int, int, int, int]:
    phase = {"Pending": 0, "": 0, "Unknown": 1}.get(pod.status.phase, 2)
    ready = meta.get_condition(pod.status.conditions, "Ready")
    is_ready = ready is not None and ready.status == "True"
    since_s = ready.lastTransitionTime.seconds if ready is not None and is_ready else 0
    sidecars = {one.name for one in pod.spec.initContainers if one.restartPolicy == "Always"}
    restarts = max((one.restartCount for one in pod.status.containerStatuses), default=0)
    sidecar_restarts = max(
        (one.restartCount for one in pod.status.initContainerStatuses if one.name in sidecars), default=0
    )
    return (
        bool(pod.spec.nodeName),
        phase,
        is_ready,
        _latest_first(since_s),
        -restarts,
        -sidecar_restarts,
        _latest_first(pod.metadata.creationTimestamp.seconds),
    )


def _latest_first(seconds: int) -> int:
    """A time that is not known comes before all (``afterOrZero``)."""
    return -seconds if seconds else -(2**63)
