"""Adoption: the containers of pods that were admitted before this kubelet started.

Containers outlive their kubelet, though not their machine (:mod:`kemu.emulated.kubelet.node.boots`): the status of the
pod says how they are. :mod:`kemu.emulated.kubelet.sync.starts` carries on from there. Mirrors what
``pkg/kubelet/kuberuntime`` learns from the container runtime (``GetPodStatus``) and ``computePodActions`` for a pod
that has lost its sandbox.
"""

from __future__ import annotations

from typing import Protocol

from kemu.emulated.kubelet.images import stores
from kemu.emulated.kubelet.node import boots
from kemu.emulated.kubelet.pods import containers
from kemu.emulated.kubelet.pods.containers import DONE, IDLE, INIT, MAIN, RUNNING, Container
from kemu.emulated.kubelet.pods.workers import Worker
from kemu.emulated.objects import meta
from kemu.emulated.objects.pods import pod_phases
from kemu.messages.k8s import core_v1_pb2
from kemu.runtime.env import Env
from kemu.runtime.runlog.events import ContainerFoundEnded, Event


class AdoptionHost(Protocol):
    """The owner of the pods."""

    def log(self, event: Event) -> None: ...

    def report(self, worker: Worker) -> None:
        """Its status has changed."""


class Adoptions:
    """Works for one :class:`~kemu.emulated.kubelet.sync.pod_workers.PodWorkers`."""

    def __init__(self, env: Env, here: stores.Images, host: AdoptionHost, boot: boots.Boot) -> None:
        self._clock = env.clock
        self._images = here
        self._host = host
        self._boot = boot

    def adopt(self, worker: Worker) -> None:
        """The pod was admitted before this kubelet started: its containers are as its status says, or they have run
        since the pod started where it says nothing."""
        pod = worker.pod
        status = pod.status
        worker.containers = containers.of(pod)
        known = {one.name: one for one in (*status.initContainerStatuses, *status.containerStatuses)}
        runs = status.phase == pod_phases.RUNNING
        for container in worker.containers:
            self._restore(worker, container, known.get(container.name), runs and not known)
            if container.has_started and not self._boot.is_new:
                container.created_ns = worker.start_ns
                self._images.add(container.image)
        worker.has_sandbox = any(one.has_started for one in worker.containers)
        if self._boot.has_ended(worker.start_ns):
            self._find_ended(worker)
        mains = [one for one in worker.containers if one.kind == MAIN]
        worker.mains_to_start = sum(not one.has_started and one.state != DONE for one in mains)
        worker.has_run = not worker.mains_to_start
        if runs and not known:
            self._host.report(worker)

    def _find_ended(self, worker: Worker) -> None:
        """The pod was there before the machine was off. Its sandbox is gone, unless it has started again since: what is
        not finished starts from the beginning, its init containers too. A pod that never restarts has failed, if any
        of it had run."""
        boot, pod = self._boot, worker.pod
        up = [one for one in worker.containers if one.is_up]
        if any(not boot.has_ended(one.started_ns) for one in up):
            return
        now_unix_ns = self._clock.unix_ns()
        for container in up:
            container.before = container.last
            container.last = boot.exit(self._clock.unix_offset_ns + container.started_ns, now_unix_ns)
            container.crashes += 1
            start_ns, code = container.started_ns, container.last.code
            event = ContainerFoundEnded(**worker.named, start=start_ns, exit_code=code, container=container.name)
            self._host.log(event)
        is_wanted = worker.refusal is None and not pod.metadata.HasField("deletionTimestamp")
        starts_anew = is_wanted and (boot.is_new or _starts_anew(worker))
        for container in worker.containers:
            container.has_started = False
            last = container.last
            finished = (
                container.kind == MAIN and last is not None and not containers.restarts(pod, container, last.code)
            )
            container.state = IDLE if starts_anew and (boot.is_new or not finished) else DONE
        worker.has_sandbox = False
        worker.begun_ns = self._clock.now_ns()
        self._host.report(worker)

    def _restore(
        self, worker: Worker, container: Container, status: core_v1_pb2.ContainerStatus | None, runs: bool
    ) -> None:
        """``status`` None: there is none; ``runs``: the whole pod runs nevertheless."""
        if status is None:
            if runs:
                container.has_started = True
                container.started_ns = worker.start_ns
                container.state = RUNNING
                if container.kind == INIT:
                    start_unix_ns = self._clock.unix_offset_ns + worker.start_ns
                    container.last = containers.Exit(0, start_unix_ns, start_unix_ns)
                    container.state = DONE
            return
        container.restarts = status.restartCount
        state = status.state
        if status.lastState.HasField("terminated"):
            container.last = _exit_of(status.lastState.terminated)
        if state.HasField("running"):
            started_ns = worker.start_ns
            if state.running.HasField("startedAt"):
                started_ns = max(started_ns, meta.unix_ns(state.running.startedAt) - self._clock.unix_offset_ns)
            container.started_ns = started_ns
            container.state = RUNNING
            if container.is_probed:
                container.holds_start = status.HasField("started") and not status.started
                container.is_unready = not status.ready
        elif state.HasField("terminated"):
            container.before, container.last = container.last, _exit_of(state.terminated)
            if not containers.restarts(worker.pod, container, container.last.code):
                container.state = DONE
        container.has_started = container.state == RUNNING or container.last is not None


def _starts_anew(worker: Worker) -> bool:
    """Whether a pod that has lost its sandbox gets another (``computePodActions``)."""
    if worker.pod.spec.restartPolicy == "Never":
        return all(one.last is None for one in worker.containers)
    return any(
        one.last is None or containers.restarts(worker.pod, one, one.last.code)
        for one in worker.containers
        if one.kind == MAIN
    )


def _exit_of(terminated: core_v1_pb2.ContainerStateTerminated) -> containers.Exit:
    return containers.Exit(
        terminated.exitCode,
        meta.unix_ns(terminated.startedAt),
        meta.unix_ns(terminated.finishedAt),
        "" if terminated.reason in (containers.COMPLETED, containers.ERROR) else terminated.reason,
    )
