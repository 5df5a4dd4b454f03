"""Rows of pods: ``printPod``."""

from __future__ import annotations

from typing import Any

from kemu.emulated.gateway.tables import texts
from kemu.emulated.gateway.tables.columns import Cell
from kemu.emulated.objects.pods import pod_phases
from kemu.messages.k8s import core_v1_pb2

_UNREACHABLE = "NodeLost"
"""``node.NodeUnreachablePodReason``."""


class _Restarts:
    """How often containers were restarted, and when one ended last."""

    __slots__ = ("count", "last_ns")

    def __init__(self) -> None:
        self.count = 0
        self.last_ns = 0

    def add(self, status: core_v1_pb2.ContainerStatus) -> None:
        self.count += status.restartCount
        if status.lastState.HasField("terminated"):
            self.last_ns = max(self.last_ns, texts.nanoseconds(status.lastState.terminated.finishedAt))

    def text(self, now_ns: int) -> str:
        if self.count and self.last_ns:
            return f"{self.count} ({texts.duration(now_ns - self.last_ns)} ago)"
        return str(self.count)


def row(pod: core_v1_pb2.Pod, now_ns: int) -> list[Cell]:
    spec, status = pod.spec, pod.status
    reason = status.reason or status.phase
    if any(one.type == "PodScheduled" and one.reason == "SchedulingGated" for one in status.conditions):
        reason = "SchedulingGated"
    is_restarted = {one.name: one.restartPolicy == "Always" for one in spec.initContainers}
    ready = 0
    restarts, of_sidecars = _Restarts(), _Restarts()
    initializing = ""
    for index, container in enumerate(status.initContainerStatuses):
        restarts.add(container)
        is_sidecar = is_restarted.get(container.name, False)
        if is_sidecar:
            of_sidecars.add(container)
        state = container.state
        if state.HasField("terminated") and state.terminated.exitCode == 0:
            continue
        if is_sidecar and container.started:
            ready += container.ready
            continue
        initializing = _initializing(state, f"{index}/{len(spec.initContainers)}")
        break
    reason = initializing or reason
    if not initializing or _condition(status, "Initialized") == "True":
        restarts = of_sidecars
        reason, running = _of_containers(status, restarts, reason)
        ready += running
    if pod.metadata.HasField("deletionTimestamp"):
        if status.reason == _UNREACHABLE:
            reason = "Unknown"
        elif not pod_phases.is_terminal(pod):
            reason = "Terminating"
    return [
        pod.metadata.name,
        f"{ready}/{len(spec.containers) + sum(one.restartPolicy == 'Always' for one in spec.initContainers)}",
        reason,
        restarts.text(now_ns),
        texts.age(pod, now_ns),
        status.podIP or (status.podIPs[0].ip if status.podIPs else "") or texts.NONE,
        spec.nodeName or texts.NONE,
        status.nominatedNodeName or texts.NONE,
        _gates(spec, status),
    ]


def _initializing(state: core_v1_pb2.ContainerState, done: str) -> str:
    """What a pod says whose init container has not succeeded."""
    if state.HasField("terminated"):
        ended = state.terminated
        if ended.reason:
            return f"Init:{ended.reason}"
        return f"Init:Signal:{ended.signal}" if ended.signal else f"Init:ExitCode:{ended.exitCode}"
    if state.waiting.reason not in ("", "PodInitializing"):
        return f"Init:{state.waiting.reason}"
    return f"Init:{done}"


def _of_containers(status: core_v1_pb2.PodStatus, restarts: _Restarts, reason: str) -> tuple[str, int]:
    """What the containers make of the reason, and how many of them are ready."""
    ready = 0
    failed = ""
    for container in reversed(status.containerStatuses):
        restarts.add(container)
        state = container.state
        if state.waiting.reason:
            reason = state.waiting.reason
        elif state.HasField("terminated"):
            ended = state.terminated
            reason = ended.reason or (f"Signal:{ended.signal}" if ended.signal else f"ExitCode:{ended.exitCode}")
            if ended.exitCode:
                failed = reason
        elif container.ready and state.HasField("running"):
            ready += 1
    if reason == "Completed":
        if ready and any(one.type == "Ready" and one.status == "True" for one in status.conditions):
            reason = "Running"
        elif failed:
            reason = failed
        elif ready:
            reason = "NotReady"
    return reason, ready


def _condition(status: core_v1_pb2.PodStatus, type_: str) -> str:
    return next((one.status for one in status.conditions if one.type == type_), "")


def _gates(spec: core_v1_pb2.PodSpec, status: core_v1_pb2.PodStatus) -> str:
    gates = spec.readinessGates
    if not gates:
        return texts.NONE
    return f"{sum(_condition(status, gate.conditionType) == 'True' for gate in gates)}/{len(gates)}"


def row_conditions(pod: core_v1_pb2.Pod) -> list[dict[str, Any]]:
    """``podSuccessConditions``, ``podFailedConditions``: of the row of a pod that has ended."""
    ends = {"Succeeded": "The pod has completed successfully.", "Failed": "The pod failed."}
    message = ends.get(pod.status.phase)
    if message is None:
        return []
    return [{"type": "Completed", "status": "True", "reason": pod.status.phase, "message": message}]
