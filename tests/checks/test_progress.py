"""pods-that-fit-are-tried: a lost wake-up is found, and whoever had a reason to wait is not."""

from __future__ import annotations

from typing import Any

import pytest

from kemu.lab.checks import registry
from kemu.lab.checks.limits import Limits
from kemu.lab.checks.results import Result
from tests.checks.logs import SECOND, Log

CHECK = "pods-that-fit-are-tried"
RED = "scheduler/red/0"


class Scene(Log):
    """A scheduler whose watches deliver at once. Pod "big" does not fit beside "old"."""

    def __init__(self) -> None:
        super().__init__()
        self.add(0, RED, "actor.started", incarnation=1)
        self.node(0, "n1")
        self.saw(0, "nodes")
        self.pod(1, "old", cpu="8", node="n1")
        self.pod(2, "big", cpu="6")
        self.saw(2, "pods")
        self.attempt(2, "big")

    def saw(self, seconds: float, resource: str, revision: int | None = None) -> None:
        revision = self.revision if revision is None else revision
        self.add(seconds, RED, "watch.events", watch=f"{resource}#1", revs=[revision], types="M", digests=[0])

    def attempt(
        self, seconds: float, name: str, node: str = "", took: float = 0.001, message: str = "", by: str = ""
    ) -> None:
        """``by``: the plugin that turned it away."""
        start = round(seconds * SECOND)
        self.add(
            seconds + took, RED, "sched.attempt", pod=f"default/{name}", uid=f"uid-{name}", start=start, n=1,
            result="scheduled" if node else "unschedulable", node=node, evaluated=1, feasible=0,
            plugins={by: 1} if by else {}, message=message,
        )  # fmt: skip

    def bind(self, seconds: float, name: str, node: str, *, ok: bool) -> None:
        self.add(seconds, RED, "sched.bind", pod=f"default/{name}", uid=f"uid-{name}", node=node, start=0, ok=ok,
                 reason="", message="")  # fmt: skip

    def make_room(self) -> None:
        """A pod is gone, and the scheduler hears of it."""
        self.gone(20, "old")
        self.saw(20, "pods")

    def holds_to_the_end(self) -> bool | None:
        self.ended(60)
        return self.judged().holds

    def judged(self, **limits: Any) -> Result:
        _, results = registry.judge(self.events, within=Limits(**limits))
        return next(result for result in results if result.id == CHECK)


def test_a_pod_that_is_tried_when_there_is_room_again() -> None:
    log = Scene()
    log.make_room()
    log.attempt(20.5, "big", "n1")
    assert log.holds_to_the_end() is True


def test_a_lost_wake_up() -> None:
    log = Scene()
    log.make_room()
    log.ended(60)
    found = log.judged()
    assert found.holds is False
    assert found.detail == (
        "default/big fits n1 since 20.000 s; red/0 could have tried it from 20.000 s on, and did not until 60.000 s"
    )


@pytest.mark.parametrize(
    ("asked", "gone", "holds"), [(0, 0, True), (50, 0, True), (50, 80, False), (15, 0, False), (50, 119.5, True)]
)
def test_who_preempts_waits_for_its_victims(asked: float, gone: float, holds: bool) -> None:
    """There is room from 20 s on; the victim is asked to go, and is gone, at these times."""
    log = Scene()
    log.pod(1, "victim", node="n2")
    log.add(2, RED, "sched.preemption", pod="default/big", uid="uid-big", start=0, node="n2", candidates=1,
            victims=[["default/victim", "uid-victim", 0]])  # fmt: skip
    if 0 < asked < 20:
        log.victim(asked, "victim", "big", "n2", RED)
    log.gone(20, "old")
    log.saw(20, "pods")
    if asked > 20:
        log.victim(asked, "victim", "big", "n2", RED)
    if gone:
        log.gone(gone, "victim")
        log.saw(gone, "pods")
    log.ended(120)
    assert log.judged().holds is holds


def test_a_pod_that_ended_makes_room() -> None:
    log = Scene()
    log.pod(20, "old", phase="Succeeded")
    log.saw(20, "pods")
    assert log.holds_to_the_end() is False


@pytest.mark.parametrize("cpu", ["20", "13"])
def test_a_node_that_grows_makes_room_if_it_grows_enough(cpu: str) -> None:
    log = Scene()
    log.node(20, "n1", cpu=cpu)
    log.saw(20, "nodes")
    assert log.holds_to_the_end() is (None if cpu == "13" else False) or cpu == "13"


@pytest.mark.parametrize("leads_again", [False, True])
def test_who_has_lost_an_election_and_starts_anew_does_not_lead(leads_again: bool) -> None:
    log = Scene()
    log.add(10, RED, "election.acquired", lease="kube-system/kube-scheduler", identity="red-0")
    log.saw(10, "nodes")
    log.saw(10, "pods")
    log.attempt(10, "big")
    log.add(15, RED, "election.lost", lease="kube-system/kube-scheduler", identity="red-0")
    log.add(16, RED, "actor.started", incarnation=2)
    log.saw(17, "nodes")
    log.saw(17, "pods")
    if leads_again:
        log.add(18, RED, "election.acquired", lease="kube-system/kube-scheduler", identity="red-0")
    assert log.holds_to_the_end() is not leads_again


def test_what_a_scheduler_has_not_heard_does_not_wake_it() -> None:
    log = Scene()
    log.gone(20, "old")
    log.saw(59.5, "pods")
    assert log.holds_to_the_end() is True


def test_who_is_busy_with_others_may_let_a_pod_wait() -> None:
    log = Scene()
    log.make_room()
    log.pod(20, "other", cpu="1", scheduler="else")
    log.attempt(20.1, "other", took=39.8)
    assert log.holds_to_the_end() is True


@pytest.mark.parametrize("is_lost", [False, True])
@pytest.mark.parametrize(("status_of", "holds"), [("other", True), ("third", False)])
def test_who_waits_for_the_write_of_a_status_tries_nobody(status_of: str, holds: bool, is_lost: bool) -> None:
    """As long as its last attempt was in vain, and the status is that of the pod it tried."""
    log = Scene()
    log.pod(18, "third", cpu="9")
    log.pod(19, "other", cpu="9")
    log.saw(19, "pods")
    log.attempt(19, "third")
    log.attempt(19.5, "other", message="no room")
    log.make_room()
    if is_lost:
        lost = {"pod": f"default/{status_of}", "uid": f"uid-{status_of}", "reason": "ServiceUnavailable"}
        log.add(34, RED, "sched.status_lost", **lost, start=20 * SECOND)
    else:
        log.acked(34, RED, log.pod(34, status_of, nominated="n0"), took=14)
    log.attempt(34.1, "big", "n1")
    assert log.holds_to_the_end() is holds


@pytest.mark.parametrize("said", ["", "no room"])
def test_a_write_that_is_still_under_way(said: str) -> None:
    """What the status says already is not written again."""
    log = Scene()
    log.pod(19, "other", cpu="9")
    log.pods["other"].status.conditions.add(type="PodScheduled", status="False", message=said)
    log.pod(19, "other")
    log.saw(19, "pods")
    log.attempt(19.5, "other", message="no room")
    log.make_room()
    assert log.holds_to_the_end() is (said != "no room")


def test_room_that_somebody_else_takes_is_none() -> None:
    log = Scene()
    log.make_room()
    log.pod(20.5, "quick", cpu="8", node="n1", scheduler="else")
    assert log.holds_to_the_end() is True


def test_the_backoff_may_pass() -> None:
    log = Scene()
    log.attempt(19.9, "big")
    log.make_room()
    log.attempt(31, "big", "n1")
    assert log.holds_to_the_end() is True
    log = Scene()
    log.attempt(19.9, "big")
    log.make_room()
    log.attempt(33, "big", "n1")
    assert log.holds_to_the_end() is False
    assert log.judged(max_backoff_ns=60 * SECOND).holds is True


def test_who_is_kept_from_a_node_that_evicted_it_waits_for_more_than_room() -> None:
    for by, holds in (("AvoidEvictedNode", True), ("NodeResourcesFit", False)):
        log = Scene()
        log.attempt(20.5, "big", by=by)
        log.node(21, "n1", cpu="20")
        log.saw(21, "nodes")
        log.ended(60)
        assert (log.judged().holds is not False) is holds


def test_a_new_pod_is_tried() -> None:
    log = Scene()
    log.pod(20, "new", cpu="20")
    log.saw(20, "pods")
    log.ended(60)
    assert log.judged().detail == (
        "default/new is new; red/0 could have tried it from 20.000 s on, and did not until 60.000 s"
    )
    log.events.pop()
    log.attempt(20.1, "new")
    assert log.holds_to_the_end() is True


def test_a_pod_that_is_tried_before_the_log_knows_it() -> None:
    """The cell that tells what the store did was held, and its log comes late."""
    log = Scene()
    log.saw(20, "pods", log.revision + 1)
    log.attempt(20, "new", "n1")
    log.pod(22, "new", cpu="20")
    assert log.holds_to_the_end() is True


def test_a_failed_binding_frees_its_room() -> None:
    log = Scene()
    log.gone(20, "old")
    log.pod(20, "first", cpu="8", priority=1)
    log.saw(20, "pods")
    log.attempt(20, "first", "n1")
    log.attempt(20.1, "big")
    log.bind(21, "first", "n1", ok=False)
    log.gone(21, "first")
    log.saw(21, "pods")
    lost = log.events.copy()
    log.attempt(22, "big", "n1")
    assert log.holds_to_the_end() is True
    log.events = lost
    assert log.holds_to_the_end() is False


def test_when_nothing_is_left_to_happen_nobody_waits_in_vain() -> None:
    log = Scene()
    log.make_room()
    log.ended(20.1, "idle")
    assert log.judged().holds is False
    log.events.pop()
    log.ended(20.1)
    assert log.judged().holds is True


def test_a_fault_excuses_its_time() -> None:
    log = Scene()
    log.make_room()
    log.add(20.1, "chaos", "chaos.begin", id="p", what="pause", actors=[RED])
    assert log.holds_to_the_end() is True


def test_plugins_of_ones_own_are_not_asked() -> None:
    log = Scene()
    log.make_room()
    log.ended(60)
    assert not log.judged(own_queues=True).asked
