"""The status of a pod as the kubelet writes it, from its containers (:mod:`kemu.emulated.kubelet.pods.containers`).

The kubelet leaves the conditions of others alone, and sets DisruptionTarget only if it ends the pod itself.
Mirrors ``pkg/kubelet`` (``getPhase``, ``generateAPIPodStatus``) and ``pkg/kubelet/status`` (``generate.go``,
``mergePodStatus``) with its rule that a pod is in a last phase only when no container runs.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from google.protobuf.internal.containers import RepeatedCompositeFieldContainer

from kemu.emulated.kubelet.pods.containers import (
    BACKING_OFF,
    DONE,
    INIT,
    MAIN,
    REMOVED,
    RESTARTING_ALL,
    SIDECAR,
    UNNOTICED,
    UNPULLED,
    UP,
    Container,
    Exit,
)
from kemu.emulated.objects import meta
from kemu.emulated.objects.pods.pod_phases import FAILED, PENDING, RUNNING, SUCCEEDED
from kemu.messages.k8s import core_v1_pb2
from kemu.runtime.env import SECOND_NS

_INITIALIZED = "Initialized"
_SANDBOX_READY = "PodReadyToStartContainers"
_CONTAINERS_READY = "ContainersReady"
_READY = "Ready"
_DISRUPTION_TARGET = "DisruptionTarget"
_SCHEDULED = "PodScheduled"
_KUBELET_CONDITIONS = (_SANDBOX_READY, _INITIALIZED, _READY, _CONTAINERS_READY)
_ALL_RESTARTING = "AllContainersRestarting"
OWNED_CONDITIONS = (*_KUBELET_CONDITIONS, _SCHEDULED, _ALL_RESTARTING)
"""Those that the kubelet writes, whatever others make of them (``PodConditionsByKubelet``)."""

RESIZE_PENDING, RESIZE_IN_PROGRESS = "PodResizePending", "PodResizeInProgress"

CREATING, INITIALIZING, CRASH_LOOP = "ContainerCreating", "PodInitializing", "CrashLoopBackOff"


@dataclass(frozen=True, slots=True)
class Refusal:
    """Why the kubelet did not admit a pod, as it stands in its status."""

    reason: str
    message: str


@dataclass(frozen=True, slots=True)
class Failure:
    """Why the kubelet ended a pod, as it stands in its status and in its condition DisruptionTarget."""

    reason: str
    message: str
    condition_reason: str = ""
    """Empty: the condition is not set."""
    condition_message: str = ""
    makes_room: bool = False
    """The pod was evicted or preempted: its containers are removed as soon as they have ended."""


def running(pod: core_v1_pb2.Pod, start_unix_ns: int) -> None:
    """All containers of the pod run, since it was started."""
    status = pod.status
    status.phase = RUNNING
    meta.set_time(status.startTime, start_unix_ns)
    generation = status.observedGeneration = pod.metadata.generation
    for condition in _KUBELET_CONDITIONS:
        told = _gates(pod) if condition == _READY else ("True", "", "")
        meta.set_condition(status.conditions, condition, *told, start_unix_ns, generation)
    del status.initContainerStatuses[:]
    for container in pod.spec.initContainers:
        found = status.initContainerStatuses.add(name=container.name, image=container.image, restartCount=0)
        found.ready = True
        if container.restartPolicy == "Always":
            found.started = True
            meta.set_time(found.state.running.startedAt, start_unix_ns)
        else:
            found.started = False
            _exited(found.state.terminated, Exit(0, start_unix_ns, start_unix_ns))
    del status.containerStatuses[:]
    for container in pod.spec.containers:
        found = status.containerStatuses.add(name=container.name, image=container.image, restartCount=0)
        found.ready = found.started = True
        meta.set_time(found.state.running.startedAt, start_unix_ns)


def own(pod: core_v1_pb2.Pod, now_unix_ns: int) -> core_v1_pb2.Pod:
    """The kubelet's part of the status of a pod, in an otherwise empty pod: later writes start from it."""
    found = core_v1_pb2.Pod()
    status = found.status
    status.CopyFrom(pod.status)
    status.ClearField("nominatedNodeName")
    conditions = status.conditions
    for index in range(len(conditions) - 1, -1, -1):
        if conditions[index].type not in OWNED_CONDITIONS:
            del conditions[index]
    meta.set_condition(conditions, _SCHEDULED, "True", "", "", now_unix_ns, pod.metadata.generation)
    return found


def agrees(status: core_v1_pb2.PodStatus, there: core_v1_pb2.PodStatus) -> bool:
    """Whether a status on the API server is the kubelet's own as far as the kubelet has a say
    (``isPodStatusByKubeletEqual``)."""
    for field, value in status.ListFields():
        if field.name != "conditions":
            if getattr(there, field.name) != value:
                return False
            continue
        for one in value:
            found = meta.get_condition(there.conditions, one.type)
            if found is None or (found.status, found.reason, found.message) != (one.status, one.reason, one.message):
                return False
    return True


def rejected(status: core_v1_pb2.PodStatus, pod: core_v1_pb2.Pod, now_unix_ns: int, refusal: Refusal) -> None:
    """The node refused the pod: its status has no conditions of the kubelet (``rejectPod``)."""
    del status.conditions[:]
    status.observedGeneration = pod.metadata.generation
    status.phase = FAILED
    status.reason = refusal.reason
    status.message = f"Pod was rejected: {refusal.message}"
    meta.set_time(status.startTime, now_unix_ns)


def write(
    status: core_v1_pb2.PodStatus,
    pod: core_v1_pb2.Pod,
    containers: Sequence[Container],
    phase: str,
    failure: Failure | None,
    *,
    sandbox: bool,
    start_unix_ns: int,
    now_unix_ns: int,
    epoch_ns: int,
) -> None:
    """The status of an admitted pod, as :func:`own` and earlier writes have left it.

    ``phase``: its last one; empty as long as a container runs or may start. The status and each condition of the
    kubelet name the generation of the pod (``CalculatePodStatusObservedGeneration`` and
    ``CalculatePodConditionObservedGeneration`` of ``pkg/api/v1/pod``).
    """
    generation = status.observedGeneration = pod.metadata.generation
    if phase:
        status.phase = phase
        if failure is not None:
            status.reason, status.message = failure.reason, failure.message
    else:
        status.phase = phase_of(pod, containers)
    meta.set_time(status.startTime, start_unix_ns)
    ready = [one.is_ready for one in containers]
    _set_conditions(pod, status.conditions, containers, ready, phase, sandbox, now_unix_ns, generation)
    if phase and failure is not None and failure.condition_reason:
        meta.set_condition(
            status.conditions, _DISRUPTION_TARGET, "True", failure.condition_reason, failure.condition_message,
            now_unix_ns, generation,
        )  # fmt: skip
    del status.containerStatuses[:]
    if len(status.initContainerStatuses):
        del status.initContainerStatuses[:]
    may_restart_all = resets = False
    for container, is_ready in zip(containers, ready, strict=True):
        if container.restarts_all:
            may_restart_all = True
            resets = resets or container.resets
        found = (status.containerStatuses if container.kind == MAIN else status.initContainerStatuses).add(
            name=container.name, image=container.image, ready=is_ready, restartCount=container.restarts
        )
        _write_state(pod, found, container, epoch_ns)
    if may_restart_all:
        told = "False", "PodCompleted" if phase == SUCCEEDED else "PodFailed" if phase else "", ""
        if resets and not phase:
            told = "True", "RestartAllContainersStarted", "container exited with restart policy rule"
        meta.set_condition(status.conditions, _ALL_RESTARTING, *told, now_unix_ns)


def phase_of(pod: core_v1_pb2.Pod, containers: Sequence[Container]) -> str:
    """As long as a container runs or may start: Pending until all main containers have started once."""
    for container in containers:
        if container.kind == MAIN and container.last is None and container.state not in UP:
            return PENDING
    return RUNNING


def last_phase(pod: core_v1_pb2.Pod, containers: Sequence[Container]) -> str:
    """Last phase of a pod whose containers have all exited for good."""
    for container in containers:
        if container.kind == SIDECAR:
            continue
        last = container.last
        if container.kind == INIT and container.has_succeeded:
            continue
        if last is None or last.code:
            return FAILED
    return SUCCEEDED


def _is_initialized(containers: Sequence[Container]) -> bool:
    """Once a main container has started, for ever."""
    for container in containers:
        kind = container.kind
        if kind == MAIN:
            if container.has_started:
                return True
        elif not _has_initialized(container):
            return any(one.has_started for one in containers if one.kind == MAIN)
    return True


def _has_initialized(container: Container) -> bool:
    """An init container: whether the next one may start (``isInitContainerInitialized``)."""
    return container.has_succeeded if container.kind == INIT else container.is_up and not container.holds_start


def _set_conditions(
    pod: core_v1_pb2.Pod,
    conditions: RepeatedCompositeFieldContainer[core_v1_pb2.PodCondition],
    containers: Sequence[Container],
    are_ready: Sequence[bool],
    phase: str,
    sandbox: bool,
    now_unix_ns: int,
    generation: int,
) -> None:
    initialized = "True", "", ""
    if phase == SUCCEEDED:
        initialized = "True", "PodCompleted", ""
    elif not _is_initialized(containers):
        names = " ".join(one.name for one in containers if one.kind != MAIN and not _has_initialized(one))
        initialized = "False", "ContainersNotInitialized", f"containers with incomplete status: [{names}]"
    status, reason, message = "True", "", ""
    if phase:
        status, reason = "False", "PodCompleted" if phase == SUCCEEDED else "PodFailed"
    else:
        unready = [
            one.name for one, is_ready in zip(containers, are_ready, strict=True) if one.kind != INIT and not is_ready
        ]
        if unready:
            status, reason = "False", "ContainersNotReady"
            message = f"containers with unready status: [{' '.join(unready)}]"
    ready = status, reason, message
    if status == "True" and len(pod.spec.readinessGates):
        ready = _gates(pod)
    wanted = {
        _SCHEDULED: ("True", "", ""),
        _SANDBOX_READY: ("True" if sandbox else "False", "", ""),
        _INITIALIZED: initialized,
        _READY: ready,
        _CONTAINERS_READY: (status, reason, message),
    }
    there = set()
    for one in conditions[:]:  # those that are so already, as most of them are at each write but the first
        there.add(one.type)
        if one.observedGeneration == generation and (one.status, one.reason, one.message) == wanted.get(one.type, ()):
            del wanted[one.type]
    for kind, (status, reason, message) in wanted.items():
        if kind in there:
            meta.set_condition(conditions, kind, status, reason, message, now_unix_ns, generation)
            continue
        # meta.set_condition, inlined: at the first write nearly all are new.
        new = conditions.add(type=kind, status=status)
        new.lastTransitionTime.seconds = now_unix_ns // SECOND_NS
        if reason:
            new.reason = reason
        if message:
            new.message = message
        if generation:
            new.observedGeneration = generation


def _gates(pod: core_v1_pb2.Pod) -> tuple[str, str, str]:
    """Status, reason and message of a pod whose containers are ready, by its readiness gates
    (``GeneratePodReadyCondition``)."""
    complaints = []
    for gate in pod.spec.readinessGates:
        name = gate.conditionType
        found = meta.get_condition(pod.status.conditions, name)
        if found is None:
            complaints.append(f'corresponding condition of pod readiness gate "{name}" does not exist.')
        elif found.status != "True":
            complaints.append(f'the status of pod readiness gate "{name}" is not "True", but {found.status}')
    return ("False", "ReadinessGatesNotReady", ", ".join(complaints)) if complaints else ("True", "", "")


def resize(status: core_v1_pb2.PodStatus, resize: Any, now_unix_ns: int) -> None:
    """What the status of a pod says that has been resized
    (:class:`kemu.emulated.kubelet.resizes.allocations.Resize`)."""
    for found in (*status.initContainerStatuses, *status.containerStatuses):
        allocated, actual = resize.allocated.get(found.name), resize.actual.get(found.name)
        if allocated is not None:
            for name in sorted(allocated.requests):
                found.allocatedResources[name].CopyFrom(allocated.requests[name])
        if actual is not None:
            found.resources.CopyFrom(actual)
    if "" in resize.allocated:
        status.allocatedResources.clear()
        for name in sorted(resize.allocated[""].requests):
            status.allocatedResources[name].CopyFrom(resize.allocated[""].requests[name])
        status.resources.CopyFrom(resize.actual[""])
    conditions = status.conditions
    for kind, told in ((RESIZE_PENDING, resize.pending), (RESIZE_IN_PROGRESS, resize.in_progress)):
        if told is None:
            for index in range(len(conditions) - 1, -1, -1):
                if conditions[index].type == kind:
                    del conditions[index]
        else:
            reason, message, generation = told
            meta.set_condition(conditions, kind, "True", reason, message, now_unix_ns, generation)


def write_ephemeral(
    status: core_v1_pb2.PodStatus, pod: core_v1_pb2.Pod, containers: Sequence[Container], epoch_ns: int
) -> None:
    """The containers that were added to the pod. They are never ready."""
    del status.ephemeralContainerStatuses[:]
    for container in containers:
        found = status.ephemeralContainerStatuses.add(
            name=container.name, image=container.image, ready=False, restartCount=0
        )
        _write_state(pod, found, container, epoch_ns)
        found.started = False


def _write_state(pod: core_v1_pb2.Pod, found: core_v1_pb2.ContainerStatus, container: Container, epoch_ns: int) -> None:
    state, last = container.state, container.last
    if state in UP:
        # Of init containers only sidecars count as started: the others are not waited for in that way.
        found.started = container.kind != INIT and not container.holds_start
        meta.set_time(found.state.running.startedAt, epoch_ns + container.started_ns)
        before = last
    elif state in (DONE, UNNOTICED) and last is not None:
        found.started = False
        _exited(found.state.terminated, last)
        before = container.before
    else:
        found.started = False
        waiting = found.state.waiting
        before = last
        if state == BACKING_OFF:
            metadata = pod.metadata
            waiting.reason = CRASH_LOOP
            waiting.message = (
                f"back-off {_go_duration(container.backoff_s)} restarting failed container={container.name} "
                f"pod={metadata.name}_{metadata.namespace}({metadata.uid})"
            )
        elif state == UNPULLED:
            waiting.reason, waiting.message = container.waiting, container.message
        elif last is not None and last.reason == RESTARTING_ALL:
            waiting.reason, waiting.message = RESTARTING_ALL, REMOVED
        else:
            waiting.reason = INITIALIZING if len(pod.spec.initContainers) else CREATING
    if before is not None:
        _exited(found.lastState.terminated, before)


def _exited(terminated: core_v1_pb2.ContainerStateTerminated, last: Exit) -> None:
    terminated.exitCode = last.code
    terminated.reason = last.why
    if not last.finished_unix_ns:  # nobody knows
        terminated.message = REMOVED
        return
    meta.set_time(terminated.startedAt, last.started_unix_ns)
    meta.set_time(terminated.finishedAt, last.finished_unix_ns)


def _go_duration(seconds: float) -> str:
    """As Go prints whole seconds: ``10s``, ``1m20s``, ``5m0s``."""
    minutes, rest = divmod(int(seconds), 60)
    return f"{minutes}m{rest}s" if minutes else f"{rest}s"
