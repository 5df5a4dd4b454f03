"""The kernel's OOM killer: which containers it kills when memory runs out, and when that can happen.

Memory runs out for a container at its limit, for all pods at what the node allows them, for the machine at its size.
The kernel is asked only at seconds at which the curves (:mod:`kemu.emulated.kubelet.usage.machines`) allow that.
Mirrors ``oom_badness`` of Linux, which a memory cgroup limits to its members.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from kemu.emulated.kubelet.pods import containers
from kemu.emulated.kubelet.pods.containers import Container
from kemu.emulated.kubelet.pods.workers import Worker
from kemu.emulated.kubelet.pressure import oom_scores
from kemu.emulated.kubelet.usage import curves, machines, usages
from kemu.runtime.env import SECOND_NS, Env, Timer

_Killed = dict[tuple[str, str], tuple[usages.Gauge, Container]]
"""By UID of the pod and name of the container."""


class OomKiller:
    """OOM killer of one machine. Nothing happens before :meth:`plan`."""

    def __init__(
        self,
        env: Env,
        meter: machines.Meter,
        gauges: Mapping[str, usages.Gauge],
        kill: Callable[[Worker, str, int | None], object],
        on_asked: Callable[[], None],
        *,
        leaves_out: bool,
    ) -> None:
        """``kill``: takes a pod, the name of its container, and the limit that it passed. ``on_asked``: called after
        the kernel was asked. ``leaves_out``: seconds at which memory cannot run out are left out."""
        self._clock = env.clock
        self._meter = meter
        self._gauges = gauges
        self._kill_container = kill
        self._on_asked = on_asked
        self._leaves_out = leaves_out
        self._asked_ns = -1
        """When the kernel was last asked."""
        self._next_ns: int | None = None
        self.timer: Timer | None = None

    def stop(self) -> None:
        """Nothing uses memory."""
        self._set(None)

    def plan(self, now_ns: int, end_ns: int, *, endless: bool) -> None:
        """The next whole second at which memory can have run out."""
        if self._next_ns is not None and self._next_ns <= now_ns:
            return
        begin, end = -(-now_ns // SECOND_NS), -(-end_ns // SECOND_NS) + 1
        if self._asked_ns == begin * SECOND_NS:
            begin += 1
        if not self._leaves_out:
            self._set(begin * SECOND_NS, background=True)
            return
        found = curves.first_second(
            lambda first, last: self._may_run_out(first * SECOND_NS, last * SECOND_NS), begin, end
        )
        if found is not None:
            self._set(found * SECOND_NS)
        elif endless:
            self._set(end * SECOND_NS, background=True)
        else:
            self._set(None)

    def kill_if_due(self, now_ns: int) -> None:
        """Before the eviction manager looks in the same instant."""
        if self._next_ns is not None and self._next_ns <= now_ns:
            self._set(None)
            self._memory_ran_out()

    def _set(self, when_ns: int | None, *, background: bool = False) -> None:
        if self.timer is not None:
            self.timer.cancel()
        self._next_ns = when_ns
        self.timer = None if when_ns is None else self._clock.call_at_ns(when_ns, self._due, background=background)

    def _due(self) -> None:
        """After everything else that happens in this instant."""
        self.timer = self._clock.call_at_ns(self._clock.now_ns(), self._memory_ran_out)

    def _may_run_out(self, first_ns: int, last_ns: int) -> bool:
        meter = self._meter
        memory, pods = meter.memory(first_ns, last_ns), meter.pods_memory(first_ns, last_ns)
        if memory.used > memory.capacity or pods.used > pods.capacity:
            return True
        return any(
            gauge.memory(container, first_ns, last_ns) > limit
            for gauge in self._gauges.values()
            for container, limit in gauge.memory_limits()
        )

    def _memory_ran_out(self) -> None:
        """First who passed a limit of its own, then for all pods together, then for the whole machine."""
        now_ns, killed = self._clock.now_ns(), _Killed()
        self._asked_ns, self._next_ns = now_ns, None
        for gauge in list(self._gauges.values()):
            for container, limit in gauge.memory_limits():
                if container.is_up and gauge.memory(container, now_ns, now_ns) > limit:
                    self._kill(gauge, container, killed, limit)
        meter = self._meter
        for look in (meter.pods_memory, meter.memory):
            while (found := look(now_ns, now_ns)).used - _held(killed, now_ns) > found.capacity:
                worst = self._worst(now_ns, found.capacity, killed)
                if worst is None:
                    break
                self._kill(*worst, killed)
        self._on_asked()

    def _kill(
        self,
        gauge: usages.Gauge,
        container: Container,
        killed: _Killed,
        limit_bytes: int | None = None,
    ) -> None:
        killed[gauge.worker.uid, container.name] = gauge, container
        self._kill_container(gauge.worker, container.name, limit_bytes)

    def _worst(self, now_ns: int, capacity: int, killed: _Killed) -> tuple[usages.Gauge, Container] | None:
        """The container with the most points: what it holds, and its oom_score_adj in thousandths of the memory. One
        that was killed in this instant has nothing left to give, even if it runs again already."""
        worst, most = None, 0
        machine_bytes = self._meter.machine.memory_bytes
        for gauge in self._gauges.values():
            worker = gauge.worker
            for container in worker.containers:
                held = gauge.memory(container, now_ns, now_ns)
                if not held or (worker.uid, container.name) in killed:
                    continue
                adjust = oom_scores.score(worker.pod, containers.spec_of(worker.pod, container), machine_bytes)
                points = held + adjust * capacity // 1000
                if worst is None or points > most:
                    worst, most = (gauge, container), points
        return worst


def _held(killed: _Killed, now_ns: int) -> int:
    """Bytes that containers hold which were killed in this instant and run again already: what a kill has freed is
    free for the others first."""
    return sum(gauge.memory(container, now_ns, now_ns) for gauge, container in killed.values())
