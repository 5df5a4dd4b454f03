"""What the kubelet writes into the status of a pod, from the state of its worker (:mod:`kemu.kubelet.workers`).

Only what the kubelet owns is touched: conditions of others (PodScheduled) stay as they are, and DisruptionTarget unless
the kubelet itself ends the pod.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from kemu.objects import meta

PENDING, RUNNING, SUCCEEDED, FAILED = "Pending", "Running", "Succeeded", "Failed"
TERMINAL = (SUCCEEDED, FAILED)

_INITIALIZED = "Initialized"
_SANDBOX_READY = "PodReadyToStartContainers"
_CONTAINERS_READY = "ContainersReady"
_READY = "Ready"
_DISRUPTION_TARGET = "DisruptionTarget"


@dataclass(frozen=True, slots=True)
class Exit:
    """How the containers ended the last time."""

    code: int
    started_unix_ns: int
    finished_unix_ns: int


@dataclass(frozen=True, slots=True)
class Failure:
    """Why the kubelet ended a pod, as it stands in its status and in its condition DisruptionTarget."""

    reason: str
    message: str
    condition_reason: str
    condition_message: str


def starting(pod: Any, start_unix_ns: int, now_unix_ns: int) -> None:
    """Admitted; the containers do not run yet."""
    status = pod.status
    status.phase = PENDING
    meta.set_time(status.startTime, start_unix_ns)
    _conditions(pod, now_unix_ns, sandbox=False, unready="ContainersNotReady")
    for container in _containers(pod, 0):
        container.state.waiting.reason = "ContainerCreating"


def running(
    pod: Any, start_unix_ns: int, started_unix_ns: int, now_unix_ns: int, restarts: int, last: Exit | None
) -> None:
    """The containers run, since ``started_unix_ns``; the pod was admitted at ``start_unix_ns``."""
    status = pod.status
    status.phase = RUNNING
    meta.set_time(status.startTime, start_unix_ns)
    _conditions(pod, now_unix_ns)
    for container in _containers(pod, restarts):
        container.ready = True
        container.started = True
        meta.set_time(container.state.running.startedAt, started_unix_ns)
        if last is not None:
            _exited(container.lastState.terminated, last)


def waiting(pod: Any, now_unix_ns: int, delay_s: float, restarts: int, last: Exit) -> None:
    """The containers have exited and are started again after a pause."""
    status = pod.status
    status.phase = RUNNING
    _conditions(pod, now_unix_ns, unready="ContainersNotReady")
    for container in _containers(pod, restarts):
        container.started = False
        container.state.waiting.reason = "CrashLoopBackOff"
        container.state.waiting.message = (
            f"back-off {_go_duration(delay_s)} restarting failed container={container.name} "
            f"pod={pod.metadata.name}_{pod.metadata.namespace}({pod.metadata.uid})"
        )
        _exited(container.lastState.terminated, last)


def finished(pod: Any, now_unix_ns: int, phase: str, restarts: int, last: Exit) -> None:
    """The containers have exited for good."""
    status = pod.status
    status.phase = phase
    _conditions(pod, now_unix_ns, sandbox=False, unready="PodCompleted" if phase == SUCCEEDED else "PodFailed")
    for container in _containers(pod, restarts):
        container.started = False
        _exited(container.state.terminated, last)


def killed(pod: Any, now_unix_ns: int, failure: Failure, restarts: int, last: Exit | None) -> None:
    """The kubelet has ended the pod. ``last`` None: its containers had not started."""
    status = pod.status
    status.phase = FAILED
    status.reason = failure.reason
    status.message = failure.message
    _conditions(pod, now_unix_ns, sandbox=False, unready="PodFailed")
    meta.set_condition(
        status.conditions, _DISRUPTION_TARGET, "True", failure.condition_reason, failure.condition_message, now_unix_ns
    )
    for container in _containers(pod, restarts):
        container.started = False
        if last is None:
            container.state.waiting.reason = "ContainerCreating"
        else:
            _exited(container.state.terminated, last)


def rejected(pod: Any, now_unix_ns: int, reason: str, message: str) -> None:
    """The node does not take the pod."""
    status = pod.status
    status.phase = FAILED
    status.reason = reason
    status.message = f"Pod was rejected: {message}"
    meta.set_time(status.startTime, now_unix_ns)


def _conditions(pod: Any, now_unix_ns: int, *, sandbox: bool = True, unready: str = "") -> None:
    """``unready``: why the containers are not ready; empty when they are."""
    conditions = pod.status.conditions
    ready, message = "True", ""
    if unready:
        ready = "False"
        if unready == "ContainersNotReady":
            names = " ".join(container.name for container in pod.spec.containers)
            message = f"containers with unready status: [{names}]"
    meta.set_condition(conditions, _SANDBOX_READY, "True" if sandbox else "False", "", "", now_unix_ns)
    initialized = "PodCompleted" if unready == "PodCompleted" else ""
    meta.set_condition(conditions, _INITIALIZED, "True", initialized, "", now_unix_ns)
    meta.set_condition(conditions, _READY, ready, unready, message, now_unix_ns)
    meta.set_condition(conditions, _CONTAINERS_READY, ready, unready, message, now_unix_ns)


def _containers(pod: Any, restarts: int) -> list[Any]:
    """A fresh status for each container of the pod."""
    found = pod.status.containerStatuses
    del found[:]
    return [
        found.add(name=container.name, image=container.image, ready=False, restartCount=restarts)
        for container in pod.spec.containers
    ]


def _exited(terminated: Any, last: Exit) -> None:
    terminated.exitCode = last.code
    terminated.reason = "Completed" if last.code == 0 else "Error"
    meta.set_time(terminated.startedAt, last.started_unix_ns)
    meta.set_time(terminated.finishedAt, last.finished_unix_ns)


def _go_duration(seconds: float) -> str:
    """As Go prints whole seconds: ``10s``, ``1m20s``, ``5m0s``."""
    minutes, rest = divmod(int(seconds), 60)
    return f"{minutes}m{rest}s" if minutes else f"{rest}s"
