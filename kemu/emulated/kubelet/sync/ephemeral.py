"""Containers that were added to a pod that runs, to look into it (``computeEphemeralContainerActions``).

Each starts once, beside the others, and runs until the pod stops. None of what becomes of it counts for the pod.
"""

from __future__ import annotations

from typing import Protocol

from kemu.emulated.kubelet.images import pulls
from kemu.emulated.kubelet.pods import containers, lives
from kemu.emulated.kubelet.pods.containers import DONE, PULLING, RUNNING, UNPULLED, Container, Exit
from kemu.emulated.kubelet.pods.workers import ACTIVE, Worker
from kemu.emulated.kubelet.sync.life_events import LifeEvents
from kemu.emulated.objects import meta
from kemu.runtime.env import SECOND_NS, Env

RETRY_NS = 10 * SECOND_NS
"""From a failed pull until the next one, which doubles …"""
LONGEST_RETRY_NS = 300 * SECOND_NS
"""… up to this."""


class EphemeralHost(Protocol):
    """The owner of the pod."""

    def report(self, worker: Worker) -> None:
        """Its status has changed."""


class EphemeralContainers:
    def __init__(self, env: Env, puller: pulls.Pulls, host: EphemeralHost, events: LifeEvents | None) -> None:
        self._clock = env.clock
        self._pulls = puller
        self._host = host
        self._events = events

    def look(self, worker: Worker) -> None:
        """Start those that are new; of a pod that has been adopted, take over those that run."""
        known = {one.name for one in worker.ephemeral}
        for index, one in enumerate(worker.pod.spec.ephemeralContainers):
            if one.ephemeralContainerCommon.name in known:
                continue
            container = Container(containers.EPHEMERAL, index, one.ephemeralContainerCommon)
            worker.ephemeral = [*worker.ephemeral, container]
            if not self._adopt(worker, container):
                self._fetch(worker, container)

    def stop(self, worker: Worker) -> None:
        """The pod has stopped."""
        now_ns = self._clock.now_ns()
        epoch_ns = self._clock.unix_ns() - now_ns
        for container in worker.ephemeral:
            if container.timer is not None:
                container.timer.cancel()
                container.timer = None
            if container.state == RUNNING:
                container.state = DONE
                container.last = Exit(containers.KILLED, epoch_ns + container.started_ns, epoch_ns + now_ns)

    def _adopt(self, worker: Worker, container: Container) -> bool:
        """Whether it had started before this kubelet did."""
        epoch_ns = self._clock.unix_ns() - self._clock.now_ns()
        for one in worker.pod.status.ephemeralContainerStatuses:
            if one.name == container.name and one.state.HasField("running"):
                container.state, container.has_started = RUNNING, True
                container.started_ns = meta.unix_ns(one.state.running.startedAt) - epoch_ns
                return True
        return False

    def _fetch(self, worker: Worker, container: Container) -> None:
        container.timer = None
        if worker.state != ACTIVE:
            return
        here, policy, events = self._pulls.images.is_here(container.image), container.pull_policy, self._events
        if here and policy != pulls.ALWAYS:
            if events is not None:
                events.present(worker, container, container.image)
            self._run(worker, container)
        elif policy == pulls.NEVER:
            self._wait(worker, container, pulls.NEVER_PULLED, pulls.never_pulled_message(container.image))
        else:
            error = lives.pull_error(worker.pod, container)
            container.state, begun_ns = PULLING, self._clock.now_ns()
            if events is not None:
                events.pulling(worker, container, container.image)
            pull = self._pulls.pull(
                container.image, bool(error), lambda: self._pulled(worker, container, error, begun_ns)
            )
            if pull is None:
                self._pulled(worker, container, error, begun_ns)
            else:
                self._host.report(worker)

    def _pulled(self, worker: Worker, container: Container, error: str, begun_ns: int) -> None:
        if worker.state != ACTIVE:
            return
        events = self._events
        if not error:
            if events is not None:
                took_ns, size_bytes = self._clock.now_ns() - begun_ns, self._pulls.images.size_bytes(container.image)
                events.pulled(worker, container, took_ns, size_bytes, container.image)
            self._run(worker, container)
            return
        if events is not None:
            events.not_pulled(worker, container, error, container.image)
        self._wait(worker, container, pulls.PULL_FAILED, error)
        delay_ns = min(RETRY_NS << min(container.pulls_failed, 16), LONGEST_RETRY_NS)
        container.pulls_failed += 1
        container.timer = self._clock.call_at_ns(self._clock.now_ns() + delay_ns, self._fetch, worker, container)

    def _wait(self, worker: Worker, container: Container, reason: str, message: str) -> None:
        container.state = UNPULLED
        container.waiting, container.message = reason, message
        self._host.report(worker)

    def _run(self, worker: Worker, container: Container) -> None:
        container.state, container.has_started = RUNNING, True
        container.created_ns = container.started_ns = self._clock.now_ns()
        if self._events is not None:
            self._events.created(worker, container)
            self._events.started(worker, container)
        self._host.report(worker)
