"""A probe worker that sleeps through probes whose success is known says what one says that probes at every tick."""

from __future__ import annotations

import heapq
import random
from collections.abc import Callable
from typing import Any

import pytest

from kemu.emulated.kubelet.pods import containers
from kemu.emulated.kubelet.probes import answers, workers
from kemu.messages.k8s import core_v1_pb2
from kemu.runtime.env import SECOND_NS


class _Timer:
    def __init__(self) -> None:
        self.is_cancelled = False

    def cancel(self) -> None:
        self.is_cancelled = True


class _Clock:
    def __init__(self) -> None:
        self.now = 0
        self.fired = 0
        self._heap: list[tuple[int, int, _Timer, Callable[..., None], tuple[Any, ...]]] = []
        self._number = 0

    def now_ns(self) -> int:
        return self.now

    def call_at_ns(self, when_ns: int, callback: Callable[..., None], *args: Any) -> _Timer:
        timer = _Timer()
        self._number += 1
        heapq.heappush(self._heap, (max(when_ns, self.now), self._number, timer, callback, args))
        return timer

    def run_to(self, when_ns: int) -> None:
        """Including what is due then: a tick comes before what else happens in its instant."""
        while self._heap and self._heap[0][0] <= when_ns:
            at_ns, _, timer, callback, args = heapq.heappop(self._heap)
            if not timer.is_cancelled:
                self.now = at_ns
                self.fired += 1
                callback(*args)
        self.now = when_ns


class _Naive(workers.ProbeWorker):
    """Probes at every tick."""

    __slots__ = ()

    def _certain(self) -> int | None:
        return 0


class _Walk:
    """Usage that changes all the time."""

    def __init__(self, seed: int) -> None:
        chance = random.Random(seed)
        self._values = [chance.randrange(100) for _ in range(400)]

    def most(self, resource: str, first_s: int, last_s: int) -> int:
        return max(self._values[min(second, 399)] for second in range(min(first_s, 399), min(last_s, 399) + 1))

    def limit(self, resource: str) -> int | None:
        return 100


class _Host:
    def __init__(self, clock: _Clock, rules: answers.Rules, seed: int) -> None:
        self.told: list[tuple[Any, ...]] = []
        self._clock = clock
        self._rules = rules
        self._seed = seed

    def answers(self, probe: workers.ProbeWorker) -> answers.Answers:
        return answers.Answers(self._rules, probe.container.restarts + 1, _Walk(self._seed), str(self._seed))

    def updated(self, probe: workers.ProbeWorker) -> None:
        self.told.append((self._clock.now, probe.result))

    def failed(self, probe: workers.ProbeWorker, *, timed_out: bool, output: str | None) -> None:
        self.told.append((self._clock.now, "failed", timed_out))


def _rules(chance: random.Random) -> answers.Rules:
    data: dict[str, Any] = {}
    if chance.random() < 0.4:
        data["succeedsAfter"] = chance.randrange(60)
    if chance.random() < 0.5:
        data["failsFrom"] = chance.randrange(120)
        if chance.random() < 0.7:
            data["failsFor"] = chance.randrange(1, 30)
            if chance.random() < 0.5:
                data["every"] = data["failsFor"] + chance.randrange(1, 60)
    if chance.random() < 0.3:
        data["failureRate"] = chance.choice([0.02, 0.3, 1])
    if chance.random() < 0.3:
        data["failsAbove"] = {"memory": chance.choice(["97%", "60%", 99])}
    if chance.random() < 0.4:
        points = [{"at": 20 * index, "value": f"{chance.randrange(4000)}m"} for index in range(6)]
        data["latency"] = chance.choice([0.2, 1.5, 7, {"steps": points}])
    if chance.random() < 0.2:
        data["starts"] = 1
    return answers.parse({"main": {"readiness": data}})["main"]["readiness"]


def _play(make: type[workers.ProbeWorker], seed: int) -> tuple[list[tuple[Any, ...]], int]:
    chance = random.Random(seed)
    clock = _Clock()
    spec = core_v1_pb2.Probe(
        periodSeconds=chance.choice([1, 3, 10]),
        timeoutSeconds=chance.choice([1, 2, 5]),
        initialDelaySeconds=chance.choice([0, 0, 7]),
        failureThreshold=chance.choice([1, 3]),
        successThreshold=chance.choice([1, 1, 2]),
    )
    kind = chance.choice(answers.KINDS)
    host = _Host(clock, _rules(chance), seed)
    container = containers.Container(containers.MAIN, 0, core_v1_pb2.Container(name="main"))
    container.holds_start = kind == answers.STARTUP
    probe = make(clock, kind, spec, container, host)  # type: ignore[arg-type]
    probe.begin(chance.choice([0, 0, SECOND_NS * 5 // 2]))
    for _ in range(8):
        clock.run_to(clock.now + chance.randrange(1, 60 * SECOND_NS))
        what = chance.random()
        if not container.is_up and what < 0.7:
            container.restarts += container.has_started
            container.has_started = True
            container.state, container.started_ns = containers.RUNNING, clock.now
            container.holds_start = kind == answers.STARTUP
            probe.changed()
        elif what < 0.3:
            container.state = containers.DONE
            probe.changed()
        elif what < 0.5:
            probe.trigger()
        elif what < 0.7:
            probe.changed()
        elif what < 0.8:
            container.holds_start = not container.holds_start
            probe.changed()
    clock.run_to(clock.now + 200 * SECOND_NS)
    probe.stop()
    clock.run_to(clock.now + 20 * SECOND_NS)
    return host.told, clock.fired


@pytest.mark.parametrize("block", range(4))
def test_results_are_those_of_a_worker_that_probes_at_every_tick(block: int) -> None:
    lazy_work = naive_work = 0
    for seed in range(block * 250, block * 250 + 250):
        expected, naive = _play(_Naive, seed)
        found, lazy = _play(workers.ProbeWorker, seed)
        assert found == expected, seed
        lazy_work += lazy
        naive_work += naive
    assert lazy_work < naive_work * 0.8


def test_a_probe_that_always_succeeds_wakes_nobody() -> None:
    clock = _Clock()
    container = containers.Container(containers.MAIN, 0, core_v1_pb2.Container(name="main"))
    container.has_started, container.state = True, containers.RUNNING
    host = _Host(clock, answers.SUCCEEDS, 0)
    probe = workers.ProbeWorker(clock, answers.READINESS, core_v1_pb2.Probe(), container, host)  # type: ignore[arg-type]
    probe.begin()
    clock.run_to(86_400 * SECOND_NS)
    assert host.told == [(0, "failure"), (0, "success")]
    assert clock.fired == 0


class _LateClock(_Clock):
    """Of real time, in which timers are never on time."""

    def call_at_ns(self, when_ns: int, callback: Callable[..., None], *args: Any) -> _Timer:
        return super().call_at_ns(when_ns + SECOND_NS // 100, callback, *args)


@pytest.mark.parametrize("clock", [_Clock(), _LateClock()])
def test_probes_that_fail_are_counted_however_late_one_wakes_for_them(clock: _Clock) -> None:
    container = containers.Container(containers.MAIN, 0, core_v1_pb2.Container(name="main"))
    container.has_started, container.state = True, containers.RUNNING
    rules = answers.parse({"main": {"liveness": {"failsFrom": "20s"}}})["main"]["liveness"]
    host = _Host(clock, rules, 0)
    spec = core_v1_pb2.Probe(periodSeconds=5, failureThreshold=3)
    probe = workers.ProbeWorker(clock, answers.LIVENESS, spec, container, host)  # type: ignore[arg-type]
    probe.begin()
    clock.run_to(60 * SECOND_NS)
    assert [(round(at_ns / SECOND_NS), *what) for at_ns, *what in host.told] == [
        (0, "success"),
        (20, "failed", False),
        (25, "failed", False),
        (30, "failed", False),
        (30, "failure"),
    ]


@pytest.mark.parametrize(
    ("is_adopted", "holds_start", "told"),
    [
        (True, False, ["success"]),
        (True, True, []),
        (False, False, ["unknown", "unknown"]),
        (False, True, ["unknown"]),
    ],
)
def test_a_sidecar_that_has_started_by_its_status(is_adopted: bool, holds_start: bool, told: list[str]) -> None:
    """Its startup probe says so when the kubelet is new, and tells twice when the container is."""
    clock = _Clock()
    container = containers.Container(containers.SIDECAR, 0, core_v1_pb2.Container(name="proxy"))
    container.has_started, container.state, container.holds_start = True, containers.RUNNING, holds_start
    host = _Host(clock, answers.SUCCEEDS, 0)
    spec = core_v1_pb2.Probe(initialDelaySeconds=60)
    probe = workers.ProbeWorker(clock, answers.STARTUP, spec, container, host, is_adopted=is_adopted)  # type: ignore[arg-type]
    probe.begin()
    assert [what for _, what in host.told] == told
