"""The allocation manager: which resizes of running pods the node has room for, and when they are tried again.

A resize is allocated as soon as the node can admit the pod with its new requests; until then it is Deferred. Resizes
that wait are tried in the order of their importance: those that ask for no more first, then by priority, QoS class, and
how long they wait. They are tried when one is asked for, when a pod leaves or shrinks, and every three minutes.

Mirrors ``pkg/kubelet/allocation`` (``retryPendingResizes``, ``sortPendingResizes``, ``handlePodResourcesResize``),
what ``HandlePodUpdates`` and ``SyncPod`` of ``pkg/kubelet`` do with it, and ``computePodResizeAction``,
``doPodResizeAction`` and ``validateMemoryResizeAction`` of ``pkg/kubelet/kuberuntime``.
:mod:`kemu.emulated.kubelet.sync.pod_workers` tells it of pods and carries out the restarts that a resize asks for.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, Protocol

from kemu.emulated.client import recorders
from kemu.emulated.kubelet.admission import predicates
from kemu.emulated.kubelet.pods import claims, statuses
from kemu.emulated.kubelet.pods.containers import RUNNING, Container
from kemu.emulated.kubelet.pods.workers import ACTIVE, Worker
from kemu.emulated.kubelet.resizes import resources
from kemu.emulated.kubelet.usage import usages
from kemu.emulated.objects.amounts import qos, requests
from kemu.messages.k8s import core_v1_pb2
from kemu.runtime.env import SECOND_NS, Env, Timer
from kemu.runtime.runlog.events import Event, PodResized

DEFERRED, INFEASIBLE, ERROR = "Deferred", "Infeasible", "Error"

RETRY_S = 180
"""``retryDelay``."""
INITIAL_RETRY_S = 30
"""After the start of the kubelet (``initialRetryDelay``)."""
RELIST_NS = SECOND_NS
"""Until the kubelet sees what the container runtime has done (relist period of ``pkg/kubelet/pleg``)."""
BACKOFF_S = 10
"""After a sync that has failed (``backOffPeriod``)."""

_CLASSES = ("Guaranteed", "Burstable", "BestEffort")


class ResizeHost(Protocol):
    """The owner of the pods."""

    def log(self, event: Event) -> None: ...

    def report(self, worker: Worker) -> None:
        """Its status has changed."""

    def fits(self, worker: Worker, pod: core_v1_pb2.Pod) -> predicates.Decision:
        """Whether the node would admit the pod in place of what the worker has now."""

    def claim(self, worker: Worker, claim: claims.Claim) -> None:
        """The pod counts on its node with this claim from now on."""

    def resize_restarts(self, worker: Worker, container: Container) -> None:
        """The container has to start anew for its new resources."""

    def resized(self, worker: Worker, memory_limits: dict[str, int]) -> None:
        """Its containers have other limits of memory."""


class Resize:
    """What is known of the resizes of one pod."""

    __slots__ = ("actual", "allocated", "in_progress", "pending", "pending_ns", "timer")

    def __init__(self, pod: core_v1_pb2.Pod) -> None:
        """``pod``: as it was before its first resize."""
        self.allocated = resources.of(pod)
        self.actual = resources.of(pod)
        """What the containers have."""
        self.pending: tuple[str, str, int] | None = None
        """Reason, message and generation of the condition PodResizePending. None: it is not set."""
        self.pending_ns = 0
        """Since when it has this reason."""
        self.in_progress: tuple[str, str, int] | None = None
        """The same of PodResizeInProgress."""
        self.timer: Timer | None = None


class Allocations:
    def __init__(self, env: Env, host: ResizeHost, recorder: recorders.Recorder | None = None) -> None:
        """``recorder`` writes event objects about resizes."""
        self._recorder = recorder
        self._clock = env.clock
        self._host = host
        self._waiting: list[Worker] = []
        """Whose resizes are not allocated, the most important first."""
        self._retry: Timer | None = None
        self._is_busy = False

    def see(self, worker: Worker, old: core_v1_pb2.Pod) -> None:
        """The resources in the spec of the pod have changed; ``old``: the pod before that. One whose containers are
        being stopped keeps what it has, and its status goes on to say so."""
        wanted = resources.of(worker.pod)
        if worker.resize is None:
            worker.resize = Resize(old)
        if worker.state != ACTIVE:
            return
        if resources.differ(wanted, worker.resize.allocated):
            self._push(worker)
            self.retry()
        elif worker.resize.pending is not None:
            # It has been taken back.
            worker.resize.pending = None
            self._host.report(worker)

    def adopt(self, worker: Worker) -> core_v1_pb2.Pod:
        """The pod ran before this kubelet started: its status says what it was allocated. Returns the pod with that.

        A resize that waits is tried again in half a minute, or with another one before that: when the first pods are
        added, the sources of pods are not ready. Until then its condition is not set. One that was being carried out
        goes on.
        """
        pod = worker.pod
        if not requests.is_resized(pod):
            return pod
        resize = worker.resize = Resize(pod)
        status = pod.status
        containers = [*status.initContainerStatuses, *status.containerStatuses]
        known: list[tuple[str, core_v1_pb2.PodStatus | core_v1_pb2.ContainerStatus]] = [("", status)]
        known += [(one.name, one) for one in containers]
        for name, one in known:
            if one.HasField("resources") and name in resize.actual:
                resize.actual[name].CopyFrom(one.resources)
                resize.allocated[name].CopyFrom(one.resources)
                for resource in one.allocatedResources:
                    resize.allocated[name].requests[resource].CopyFrom(one.allocatedResources[resource])
        wanted, set_before = resources.of(pod), {one.type for one in status.conditions}
        is_allocated = statuses.RESIZE_IN_PROGRESS in set_before and statuses.RESIZE_PENDING not in set_before
        if is_allocated and status.observedGeneration == pod.metadata.generation:
            # Limits, too, of which the status says only what the containers have.
            resize.allocated = wanted
        if resources.differ(wanted, resize.allocated):
            self._push(worker)
            if self._retry is None:
                self._retry_in(INITIAL_RETRY_S)
        if resources.differ(resize.allocated, resize.actual):
            resize.in_progress = ("", "", pod.metadata.generation)
            self._later(worker, 0, self._sync)
        elif statuses.RESIZE_PENDING in set_before:
            self._later(worker, 0, self._tell)
        return resources.with_resources(pod, resize.allocated)

    def _tell(self, worker: Worker) -> None:
        assert worker.resize is not None
        worker.resize.timer = None
        self._host.report(worker)

    def retry(self) -> None:
        """The node may have room for the resizes that wait."""
        if not self._waiting or self._is_busy:
            return
        self._is_busy = True
        waiting, self._waiting = self._waiting, []
        self._waiting = [worker for worker in waiting if worker.state == ACTIVE and self._is_still_waiting(worker)]
        self._is_busy = False
        if self._retry is not None:
            self._retry.cancel()
            self._retry = None
        if self._waiting:
            self._retry_in(RETRY_S)

    def _retry_in(self, seconds: int) -> None:
        self._retry = self._clock.call_at_ns(self._clock.now_ns() + seconds * SECOND_NS, self._retry_again)

    def remove(self, worker: Worker) -> None:
        """Its containers are gone; there is more room for others."""
        if worker.resize is not None:
            self._cancel(worker.resize)
        if worker in self._waiting:
            self._waiting.remove(worker)
        self.retry()

    def started(self, worker: Worker, container: Container) -> None:
        """A container starts with the resources that are allocated."""
        resize = worker.resize
        if resize is not None and container.name in resize.allocated:
            resize.actual[container.name] = resize.allocated[container.name]
            self.limit(worker)
            self._actuated(worker)

    def limit(self, worker: Worker) -> None:
        """Its containers are held to the limits that they have, which may not be those of the spec."""
        if worker.resize is not None:
            limits = resources.memory_limits(worker.resize.actual, worker.containers)
            self._host.resized(worker, limits)

    def _retry_again(self) -> None:
        self._retry = None
        self.retry()

    def _is_still_waiting(self, worker: Worker) -> bool:
        resize = worker.resize
        assert resize is not None
        pod = worker.pod
        wanted = resources.of(pod)
        if not resources.differ(wanted, resize.allocated):
            if resize.pending is not None:
                resize.pending = None
                self._host.report(worker)
            return False
        decision = self._host.fits(worker, pod)
        generation = pod.metadata.generation
        if not decision.admitted:
            self._defer(worker, resize, decision.message, generation)
            return True
        resize.allocated = wanted
        resize.pending = None
        resize.in_progress = ("", "", generation)
        self._host.claim(worker, claims.claim_of(pod))
        self._event(worker, recorders.NORMAL, "ResizeStarted", resources.message("Pod resize started", pod, generation))
        self._host.log(PodResized(**worker.named, what="started", message=""))
        self._host.report(worker)
        self._later(worker, 0, self._sync)
        return False

    def _defer(self, worker: Worker, resize: Resize, message: str, generation: int) -> None:
        before = resize.pending
        resize.pending = (DEFERRED, message, generation)
        if before is None or before[0] != DEFERRED:
            resize.pending_ns = self._clock.now_ns()
        if before is None or (before[0], before[2]) != (DEFERRED, generation):
            note = resources.message(f"Pod resize {DEFERRED}", worker.pod, generation, message)
            self._event(worker, recorders.WARNING, "ResizeDeferred", note)
            self._host.log(PodResized(**worker.named, what="deferred", message=message))
        if before != resize.pending:
            self._host.report(worker)

    # --- the order ---------------------------------------------------------------------------------------------------

    def _push(self, worker: Worker) -> None:
        """``PushPendingResize``: only a newcomer sorts the queue. A pod that waits already keeps its place, whatever it
        asks for now."""
        if worker not in self._waiting:
            self._waiting.append(worker)
            self._waiting.sort(key=functools.cmp_to_key(self._compare))

    def _compare(self, first: Worker, second: Worker) -> int:
        if not _asks_for_more(first):
            return -1
        if not _asks_for_more(second):
            return 1
        mine, theirs = first.pod.spec.priority, second.pod.spec.priority
        if mine != theirs:
            return -1 if mine > theirs else 1
        ranks = [_CLASSES.index(qos.qos_class(worker.pod)) == 0 for worker in (first, second)]
        if ranks[0] != ranks[1]:
            return -1 if ranks[0] else 1
        assert first.resize is not None
        assert second.resize is not None
        if first.resize.pending is None:
            return 1
        if second.resize.pending is None:
            return -1
        return -1 if first.resize.pending_ns < second.resize.pending_ns else 1

    # --- what the container runtime does -----------------------------------------------------------------------------

    def _sync(self, worker: Worker) -> None:
        """Bring the containers to what is allocated."""
        resize = worker.resize
        assert resize is not None
        resize.timer = None
        if worker.state != ACTIVE or resize.in_progress is None:
            return
        errors = self._memory_errors(worker, resize)
        if errors:
            self._fail(worker, resize, f"cannot decrease memory limits: {errors}")
            return
        restarting = []
        for container in worker.containers:
            wanted, now = resize.allocated.get(container.name), resize.actual.get(container.name)
            if wanted is None or now is None or container.state != RUNNING:
                continue
            spec = _spec_of(worker.pod, container)
            if resources.needs_restart(spec, wanted, now):
                restarting.append(container)
            else:
                resize.actual[container.name] = wanted
        if "" in resize.allocated:
            resize.actual[""] = resize.allocated[""]
        self.limit(worker)
        for container in restarting:
            self._host.resize_restarts(worker, container)
        self._later(worker, RELIST_NS, self._seen)

    def _seen(self, worker: Worker) -> None:
        resize = worker.resize
        assert resize is not None
        resize.timer = None
        self._actuated(worker)

    def _actuated(self, worker: Worker) -> None:
        """``SyncPod``: the resize is completed when the containers have what is allocated."""
        resize = worker.resize
        assert resize is not None
        if resize.in_progress is None or resize.timer is not None:
            return
        running = {one.name for one in worker.containers if one.is_up}
        allocated = {name: one for name, one in resize.allocated.items() if name in running}
        if not resources.differ(allocated, resize.actual):
            generation = resize.in_progress[2]
            resize.in_progress = None
            note = resources.message("Pod resize completed", worker.pod, generation)
            self._event(worker, recorders.NORMAL, "ResizeCompleted", note)
            self._host.log(PodResized(**worker.named, what="completed", message=""))
            # Where requests have shrunk, there is room for others.
            self.retry()
        self._host.report(worker)

    def _memory_errors(self, worker: Worker, resize: Resize) -> str:
        """Limits of memory that are below what is used now; empty: none."""
        usage = usages.of(worker.pod)
        if usage is None:
            return ""
        gauge, now_ns = usages.Gauge(worker, usage), self._clock.now_ns()
        found = []
        for container in worker.containers:
            wanted, now = resize.allocated.get(container.name), resize.actual.get(container.name)
            if wanted is None or now is None or container.state != RUNNING:
                continue
            if resources.needs_restart(_spec_of(worker.pod, container), wanted, now):
                continue
            limit = resources.decreased_memory(wanted, now)
            if limit is not None and gauge.memory(container, now_ns, now_ns) >= limit:
                used = gauge.memories(now_ns, now_ns)
                what = f'attempting to set container "{container.name}" memory limit ({limit})'
                found.append(f"{what} below current usage ({used})")
        return found[0] if len(found) == 1 else f"[{', '.join(found)}]" if found else ""

    def _fail(self, worker: Worker, resize: Resize, message: str) -> None:
        assert resize.in_progress is not None
        before, generation = resize.in_progress, resize.in_progress[2]
        resize.in_progress = (ERROR, message, generation)
        if before != resize.in_progress:
            note = resources.message("Pod resize error", worker.pod, generation, message)
            self._event(worker, recorders.WARNING, "ResizeError", note)
            self._host.log(PodResized(**worker.named, what="failed", message=message))
            self._host.report(worker)
        self._later(worker, BACKOFF_S * SECOND_NS, self._sync)

    def _later(self, worker: Worker, delay_ns: int, act: Callable[..., Any]) -> None:
        resize = worker.resize
        assert resize is not None
        self._cancel(resize)
        resize.timer = self._clock.call_at_ns(self._clock.now_ns() + delay_ns, act, worker)

    @staticmethod
    def _cancel(resize: Resize) -> None:
        if resize.timer is not None:
            resize.timer.cancel()
            resize.timer = None

    def _event(self, worker: Worker, event_type: str, reason: str, note: str) -> None:
        if self._recorder is not None:
            self._recorder.event(worker.pod, event_type, reason, reason, note)


def _asks_for_more(worker: Worker) -> bool:
    """``isResizeIncreasingRequests``."""
    assert worker.resize is not None
    old = requests.pod_requests(resources.with_resources(worker.pod, worker.resize.allocated))
    new = requests.pod_requests(worker.pod)
    return any(new.get(name, 0) > old.get(name, 0) for name in ("cpu", "memory"))


def _spec_of(pod: core_v1_pb2.Pod, container: Container) -> core_v1_pb2.Container:
    spec = pod.spec
    return next(one for one in (*spec.initContainers, *spec.containers) if one.name == container.name)
