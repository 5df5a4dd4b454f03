"""The story of a run, as a person reads it."""

from __future__ import annotations

from typing import Any

import pytest

from kemu.lab.checks.history import History
from kemu.lab.checks.scheduling import unbound
from kemu.lab.tell import stories
from kemu.runtime.runlog.frames import Entry
from tests.checks.logs import SECOND, Log
from tests.scheduler import objects
from tests.scheduler.runs import Run
from tests.scheduler.test_actor import lasting
from tests.scheduler.test_reports import waiting_scheduler


def lines(run: Run) -> list[tuple[str, str, str]]:
    history = History()
    for event in run.recorder.events:
        history.feed(*event)
    return [(line.who, line.what, line.why) for line in stories.tell(history).lines]


def preemption(schedulers: list[dict[str, Any]]) -> Run:
    run = Run()

    async def main(run: Run) -> None:
        await run.at(5)
        name = schedulers[0].get("name", "default-scheduler")
        await run.create(objects.pod("high", "10", priority=10, scheduler=name))
        await run.at(20)

    run.play(main, [objects.node("n1")], schedulers, [lasting("low", "5", 5, on="n1")])
    return run


def test_a_preemption_names_the_replica() -> None:
    cases: list[tuple[dict[str, Any], str]] = [
        ({}, "scheduler"),
        ({"replica": 2}, "scheduler default-scheduler/2"),
        ({"name": "a", "replica": 1}, "scheduler a/1"),
    ]
    for scheduler, who in cases:
        told = lines(preemption([scheduler]))
        assert (who, "low is preempted on n1", "makes room for high (priority 10 > 0)") in told


def test_a_victim_that_waits_for_its_permit_is_turned_away() -> None:
    run = Run()

    async def main(run: Run) -> None:
        await run.create(objects.pod("low", "10", labels={"wait": "60"}))
        await run.at(5)
        await run.create(objects.pod("high", "10", priority=10))
        await run.at(10)
        await run.client.delete("pods", "low", "default")
        await run.at(11)

    run.play(main, [objects.node("n1")], [waiting_scheduler()])
    told = [what for _, what, _ in lines(run)]
    assert "low is turned away from n1 while it waits for its permit" in told
    assert "low is preempted on n1" not in told


def test_without_nominations_nobody_speaks_of_a_nominated_node() -> None:
    run = preemption([{"policy": {"nomination": False}}])
    messages = [one["message"] for one in run.told("sched.attempt", "high")]
    assert not any("nominated node" in message for message in messages)

    run = Run()

    async def main(run: Run) -> None:
        await run.at(5)
        await run.create(objects.pod("high", "10", priority=10))
        await run.at(60)

    victims = [lasting("slow", "5", 40, on="n1"), lasting("quick", "5", 10, on="n1")]
    run.play(main, [objects.node("n1")], [{"policy": {"nomination": False}}], victims)
    (_, again, *_) = [one["message"] for one in run.told("sched.attempt", "high")]
    assert again.endswith("not eligible due to a terminating pod on the node where it has preempted.")


class TestTrouble:
    """Who evicts, kills, taints, falls silent."""

    def told(self, log: Log) -> list[tuple[str, str, str]]:
        history = History()
        for event in log.events:
            history.feed(*event)
        return [(line.who, line.what, line.why) for line in stories.tell(history).lines]

    def test_a_kubelet_evicts_and_that_is_said_once(self) -> None:
        log = Log()
        log.pod(0, "a", node="n1")
        log.pods["a"].status.message = "The node was low on resource: memory. Threshold quantity: 1Gi. "
        log.pod(5, "a", phase="Failed", reason="Evicted")
        assert self.told(log) == [
            ("kubelet n1", "a is evicted from n1", "low on memory. Threshold quantity: 1Gi"),
        ]

    @pytest.mark.parametrize(
        ("reason", "who"),
        [
            ("DeletionByTaintManager", "taint-eviction"),
            ("DeletionByPodGC", "pod-gc"),
            ("EvictionByEvictionAPI", "API server"),
        ],
    )
    def test_so_do_others(self, reason: str, who: str) -> None:
        log = Log()
        log.pod(0, "a", node="n1")
        log.pod(5, "a", disruption=reason)
        log.pod(6, "a", deleting=6)
        assert (who, "a is evicted from n1", "") in self.told(log)
        assert "user" not in [found[0] for found in self.told(log)[1:]]

    def test_the_kernel_kills(self) -> None:
        log = Log()
        log.pod(0, "a", node="n1")
        log.add(5, "kubelet/n1", "kubelet.oom_killed", pod="default/a", uid="uid-a", node="n1", container="main")
        assert ("kernel of n1", "main of a is killed", "memory ran out") in self.told(log)

    def test_or_for_a_limit_of_its_own(self) -> None:
        log = Log()
        log.pod(0, "a", node="n1")
        where = {"pod": "default/a", "uid": "uid-a", "node": "n1", "container": "main"}
        log.add(5, "kubelet/n1", "kubelet.oom_killed", **where, limit_bytes=100 << 20)
        assert ("kernel of n1", "main of a is killed", "it passed its limit of 100Mi") in self.told(log)

    def test_what_the_user_may_not_do(self) -> None:
        log = Log()
        log.pod(0, "a", node="n1")
        log.add(5, "user", "user.refused", index=0, what="evict", name="a", reason="TooManyRequests", message="no")
        log.add(6, "user", "user.refused", index=1, what="create", name="", reason="Forbidden", message="not so")
        log.add(7, "user", "user.refused", workload="w", n=3, replaces="", reason="Invalid", message="nor so")
        log.add(8, "operator", "user.refused", index=2, what="removeNode", name="n9", reason="NotFound")
        assert self.told(log)[-4:] == [
            ("API server", "evict a is refused: TooManyRequests", "no"),
            ("API server", "create is refused: Forbidden", "not so"),
            ("API server", "a pod of w is refused: Invalid", "nor so"),
            ("API server", "removeNode n9 is refused: NotFound", ""),
        ]

    def test_nodes(self) -> None:
        well = {"Ready": "True", "MemoryPressure": "False"}
        log = Log()
        log.node_status(0, "n1", well, [])
        log.node_status(5, "n1", {**well, "MemoryPressure": "True"}, [])
        log.node_status(
            6, "n1", {**well, "MemoryPressure": "True"}, [("node.kubernetes.io/memory-pressure", "NoSchedule")]
        )
        log.node_status(9, "n1", well, [])
        log.node_status(20, "n1", {"Ready": "Unknown", "MemoryPressure": "Unknown"}, [("mine", "NoExecute")])
        log.node_status(30, "n1", well, [])
        assert [(who, what) for who, what, _ in self.told(log)] == [
            ("kubelet n1", "n1 runs short of memory"),
            ("node-lifecycle", "n1 is tainted memory-pressure:NoSchedule"),
            ("kubelet n1", "n1 has enough memory"),
            ("node-lifecycle", "n1 loses its taint memory-pressure:NoSchedule"),
            ("node-lifecycle", "n1 falls silent"),
            ("user", "n1 is tainted mine:NoExecute"),
            ("kubelet n1", "n1 is ready"),
            ("user", "n1 loses its taint mine:NoExecute"),
        ]

    def test_who_creates_and_deletes(self) -> None:
        log = Log()

        def asked(seconds: float, verb: str, by: str) -> None:
            log.add(seconds, "apiserver/0", "api.request", verb=verb, resource="pods", uid="uid-a", by=by,
                    rev=log.revision)  # fmt: skip

        log.pod(5, "a")
        asked(5, "create", "controller/replicaset")
        log.pod(6, "a", deleting=6)
        asked(6, "delete", "user")
        log.gone(7, "a")
        asked(7, "delete", "kubelet/n1")
        assert [(who, what) for who, what, _ in self.told(log)] == [
            ("replicaset", "a is created"),
            ("user", "a is deleted, and shuts down"),
            ("kubelet n1", "a is gone"),
        ]

    def test_crashes_of_one_instant_are_told_in_one_line(self) -> None:
        log = Log()
        for place in range(4):
            log.add(5, "chaos", "chaos.begin", id=f"m{place}", what="crash", nodes=[f"n{place}"])
        for place in range(2):
            log.add(5, "chaos", "chaos.begin", id=f"k{place}", what="crash", actors=[f"kubelet/k{place}"])
        log.add(9, "chaos", "chaos.end", id="m1")
        assert [what for _, what, _ in self.told(log)] == [
            "the machines of n0, n1 and 2 more crash",
            "kubelet/k0, kubelet/k1 crash",
            "the machine of n1 is started again",
        ]

    def test_machines_that_are_shut_down(self) -> None:
        log = Log()
        log.add(5, "operator", "machine.off", node="n1", why="shutdown")
        log.add(6, "operator", "machine.off", node="n2", why="crash")
        log.add(9, "operator", "machine.on", node="n1", boot="b")
        log.add(9, "operator", "machine.on", node="n2", boot="c")
        assert [what for _, what, _ in self.told(log)] == [
            "the machine of n1 is off, shut down",
            "the machine of n1 boots",
        ]


def told(log: Log) -> list[tuple[float, str, str]]:
    history = History()
    for event in log.events:
        history.feed(*event)
    return [(line.time_ns / 1e9, line.what, line.why) for line in stories.tell(history).lines]


def test_a_crash_at_a_step_is_told_when_the_step_comes() -> None:
    log = Log()
    log.add(1, "chaos", "chaos.begin", id="c-0", what="crash", actors=["store"], step="after-fsync")
    log.events.append(Entry(2 * SECOND, "chaos", "chaos.hit", {"id": "c-0", "actor": "store"}))
    log.add(3, "chaos", "chaos.end", id="c-0")
    log.add(4, "chaos", "chaos.begin", id="c-1", what="crash", actors=["store"], step="after-fsync")
    assert told(log) == [
        (2, "store crashes", "at its step after-fsync"),
        (3, "store is started again", ""),
        (4, "store crashes", "at its next step after-fsync, which did not come"),
    ]


def test_an_actor_that_ends_itself_says_why() -> None:
    log = Log()
    log.add(1, "store", "actor.exited", why="fsync failed: Input/output error")
    assert told(log) == [(1, "store ends itself", "fsync failed: Input/output error")]


def test_a_pod_that_the_store_lost_is_lost() -> None:
    log = Log()
    log.pod(1, "p0")
    log.pod(2, "p1")
    log.pod(2, "p1", node="n1")
    log.recovered(3, 1)
    assert (3, "p1 is lost", "the store came back without it") in told(log)


def test_an_attempt_that_fails_with_an_error_says_which_once() -> None:
    log = Log()
    log.pod(0, "a")
    for seconds in (1, 2):
        attempt = {"pod": "default/a", "uid": "uid-a", "node": "", "result": "error", "message": "a plugin erred"}
        log.add(seconds, "scheduler/default-scheduler/0", "sched.attempt", **attempt)
    history = History()
    for event in log.events:
        history.feed(*event)
    told = [(line.who, line.what, line.why) for line in stories.tell(history).lines]
    assert told[1] == ("scheduler", "a cannot be scheduled: an error", "a plugin erred")
    assert [line for line in told if "error" in line[1]] == told[1:2]
    (group,) = unbound.of(history)
    assert (group.reason, group.hopeless) == ("its attempts failed: a plugin erred", False)


def test_a_story_tells_what_happened_to_processes_and_whose_doing_it_was() -> None:
    log = Log()
    log.add(1, "cell/store", "process.died", pid=7, by="")
    log.add(2.5, "cell/store", "process.started", pid=8)
    log.add(3, "cell/schedulers", "process.died", pid=9, by="crash of scheduler/a/0")
    log.add(
        9, "cell/kubelets", "process.stalled", what="stopped", start=4_000_000_000, real_ns=1, ran_ns=0, queued_ns=0
    )
    history = History()
    for event in log.events:
        history.feed(*event)
    lines = stories.tell(history).lines
    assert [(line.who, line.what, line.why) for line in lines] == [
        ("cell/store", "cell/store dies", "for 1.500 s; from outside"),
        ("cell/schedulers", "cell/schedulers dies", "to the end of the run; crash of scheduler/a/0"),
        ("cell/kubelets", "cell/kubelets is stopped", "for 5.000 s; from outside"),
    ]
