"""Stopping containers: preStop hook, SIGTERM, SIGKILL; sidecars last, in reverse order.

Everything happens within the grace period, but a container has at least two seconds from SIGTERM to SIGKILL. Mirrors
``pkg/kubelet/kuberuntime`` (``killContainer``, ``terminationOrdering``) and ``calculateEffectiveGracePeriod`` of
``pkg/kubelet``. Works for :mod:`kemu.emulated.kubelet.sync.pod_workers`, on what
:mod:`kemu.emulated.kubelet.sync.starts` has started.
"""

from __future__ import annotations

from collections.abc import Callable

from kemu.emulated.kubelet.pods import containers, lives
from kemu.emulated.kubelet.pods.containers import DONE, RUNNING, SIDECAR, STOPPING, Container
from kemu.emulated.kubelet.pods.workers import Worker
from kemu.emulated.kubelet.sync import starts
from kemu.messages.k8s import core_v1_pb2
from kemu.runtime.env import SECOND_NS, Env

LEAST_GRACE_S = 1
"""No pod is given less."""
LEAST_WINDOW_S = 2
"""Between SIGTERM and SIGKILL, however little of the grace period is left."""


def effective_grace_s(pod: core_v1_pb2.Pod, wanted_s: int) -> int:
    """0 stands for the pod's own grace period."""
    return max(wanted_s or int(pod.spec.terminationGracePeriodSeconds), LEAST_GRACE_S)


class Terminations:
    """Passes the exit of a stopped container to ``ending``."""

    def __init__(
        self, env: Env, ending: starts.Starts, hook_ran: Callable[[Worker, int | None], None] | None = None
    ) -> None:
        """``hook_ran``: told of a preStop hook with a command, and when it will have failed within the grace period."""
        self._clock = env.clock
        self._starts = ending
        self._hook_ran = hook_ran
        self._turning: Worker | None = None
        """The pod whose containers are being stopped one after the other."""

    def begin(self, worker: Worker, grace_s: int, asked_ns: int) -> None:
        """Stop its containers. The worker is STOPPING, and its other containers are DONE.

        The last one may have stopped before this returns.
        """
        worker.stop_ns = worker.urged_ns = asked_ns
        worker.grace_s = grace_s
        up = [one for one in worker.containers if one.is_up]
        for container in up:
            if container.state == RUNNING:
                starts.cancel(container)
                container.state = STOPPING
                container.asked_ns = None
                if self._starts.events is not None:
                    self._starts.events.stopping(worker, container)
        for container in up:
            if container.state == STOPPING:
                self._plan(worker, container)

    def stop_one(self, worker: Worker, container: Container, grace_s: int) -> None:
        """Stop one container of a pod that goes on. It may have stopped before this returns."""
        starts.cancel(container)
        container.state = STOPPING
        now_ns = self._clock.now_ns()
        asked_ns = now_ns + self._pre_stop_ns(worker, container, grace_s)
        left_s = grace_s - (asked_ns - now_ns) // SECOND_NS
        self._ask(worker, container, asked_ns, asked_ns + max(left_s, LEAST_WINDOW_S) * SECOND_NS)

    def stopped_ns(self, worker: Worker, container: Container, grace_s: int) -> int:
        """When a container stops that is asked to now, and does not count as running yet."""
        now_ns = self._clock.now_ns()
        asked_ns = now_ns + self._pre_stop_ns(worker, container, grace_s)
        left_s = max(grace_s - (asked_ns - now_ns) // SECOND_NS, LEAST_WINDOW_S)
        by_itself_s = lives.shutdown_s(worker.pod, container)
        container.forced = left_s < by_itself_s
        return asked_ns + int(min(left_s, by_itself_s) * SECOND_NS)

    def hasten(self, worker: Worker, grace_s: int) -> None:
        """A shorter grace period, counted from now, for the containers that are still up."""
        now_ns = self._clock.now_ns()
        worker.grace_s = grace_s
        worker.urged_ns = now_ns
        for container in [one for one in worker.containers if one.state == STOPPING]:
            if container.state != STOPPING:
                continue
            asked_ns = container.asked_ns
            if asked_ns is None or asked_ns > now_ns:
                self._plan(worker, container)
            else:
                kill_ns = now_ns + max(grace_s, LEAST_WINDOW_S) * SECOND_NS
                self._ask(worker, container, asked_ns, min(container.kill_ns, kill_ns))

    def turn(self, worker: Worker) -> bool:
        """A container has stopped: it may be the turn of the sidecar before it. Those that stop at once go one after
        the other, however many there are; False: that is under way already."""
        if self._turning is worker:
            return False
        before, self._turning = self._turning, worker
        try:
            while (container := last_up(worker)) is not None:
                if container.state != STOPPING or container.asked_ns is not None:
                    break
                self._plan(worker, container)
        finally:
            self._turning = before
        return True

    # --- one container -----------------------------------------------------------------------------------------------

    def _plan(self, worker: Worker, container: Container) -> None:
        """When it is asked to stop, and when it is killed."""
        now_ns, begun_ns, grace_s = self._clock.now_ns(), worker.urged_ns, worker.grace_s
        ready_ns = begun_ns + self._pre_stop_ns(worker, container, grace_s)
        if container.kind == SIDECAR and last_up(worker) is not container:
            # Waits for the others, at the longest until its grace period is over.
            container.asked_ns = None
            self._at(worker, container, begun_ns + grace_s * SECOND_NS)
            return
        asked_ns = max(ready_ns, now_ns) if container.kind == SIDECAR else ready_ns
        left_s = grace_s - (asked_ns - begun_ns) // SECOND_NS
        self._ask(worker, container, asked_ns, asked_ns + max(left_s, LEAST_WINDOW_S) * SECOND_NS)

    def _ask(self, worker: Worker, container: Container, asked_ns: int, kill_ns: int) -> None:
        """It gets SIGTERM at ``asked_ns``, which may be past or to come."""
        container.asked_ns, container.kill_ns = asked_ns, kill_ns
        is_told = self._starts.is_told(worker, container, asked_ns)
        end_ns = kill_ns + 1 if is_told else asked_ns + int(lives.shutdown_s(worker.pod, container) * SECOND_NS)
        exit_ns = starts.exit_ns(worker, container)
        if exit_ns is not None and exit_ns < end_ns:
            end_ns = exit_ns
        container.forced = kill_ns < end_ns
        end_ns = min(end_ns, kill_ns)
        if end_ns <= self._clock.now_ns():
            self._stopped(worker, container)
        else:
            self._at(worker, container, end_ns)

    def _pre_stop_ns(self, worker: Worker, container: Container, grace_s: int) -> int:
        spec = containers.spec_of(worker.pod, container)
        if not spec.HasField("lifecycle") or not spec.lifecycle.HasField("preStop"):
            return 0
        hook = spec.lifecycle.preStop
        seconds = lives.pre_stop_s(worker.pod, container, hook)
        if container.hook is None:
            answer = self._starts.run_hook(worker, container, hook, (lives.PRE_STOP_SECONDS,))
            if answer is not None:
                container.hook = answer.took_s, answer.code != 0
                if self._hook_ran is not None:
                    fails_in_time = answer.code and answer.took_s <= grace_s
                    after_ns = int(answer.took_s * SECOND_NS) if fails_in_time else None
                    self._hook_ran(worker, None if after_ns is None else self._clock.now_ns() + after_ns)
        if container.hook is not None:
            seconds = container.hook[0]
        return int(min(seconds, grace_s) * SECOND_NS)

    def _at(self, worker: Worker, container: Container, when_ns: int) -> None:
        starts.cancel(container)
        container.timer = self._clock.call_at_ns(max(when_ns, self._clock.now_ns()), self._due, worker, container)

    def _due(self, worker: Worker, container: Container) -> None:
        container.timer = None
        now_ns = self._clock.now_ns()
        if container.asked_ns is None:
            # The others have not stopped in time.
            self._ask(worker, container, now_ns, now_ns + LEAST_WINDOW_S * SECOND_NS)
        else:
            self._stopped(worker, container)

    def _stopped(self, worker: Worker, container: Container) -> None:
        if container.forced:
            code = containers.KILLED
        else:
            exit_ns = starts.exit_ns(worker, container)
            by_itself = exit_ns is not None and exit_ns <= self._clock.now_ns()
            code = lives.exit_code(worker.pod, container) if by_itself else 0
        self._starts.exit(worker, container, code)
        self._starts.advance(worker)


def last_up(worker: Worker) -> Container | None:
    """The last container of a STOPPING pod that has not stopped: all after it have, so it is its turn if it is a
    sidecar. None: all have stopped."""
    while worker.left and worker.containers[worker.left - 1].state == DONE:
        worker.left -= 1
    return worker.containers[worker.left - 1] if worker.left else None
