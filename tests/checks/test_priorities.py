"""Who preempts whom, and who is served first."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from kemu.emulated.scheduler.cache.nominations import Nominator
from kemu.emulated.scheduler.plugins.priority_sort import PrioritySort
from kemu.emulated.scheduler.preemption import candidates
from kemu.lab.checks.results import Result
from kemu.lab.scenario import catalog
from kemu.lab.scenario.loading import loader
from kemu.lab.scenario.playing import runner
from tests.checks.logs import SECOND, Log, judged

ACTOR = "scheduler/default-scheduler/0"
OUTRANK, INVERSION = "preemptors-outrank-victims", "no-priority-inversion"


class TestPreemptorsOutrankVictims:
    def play(self, preemptor: int, victim: int) -> Log:
        log = Log()
        log.pod(0, "victim", priority=victim, node="n1")
        log.pod(1, "preemptor", priority=preemptor)
        log.victim(2, "victim", "preemptor", "n1")
        return log

    @pytest.mark.parametrize(("preemptor", "victim", "holds"), [(2, 1, True), (1, 1, False), (1, 2, False)])
    def test_a_scheduler_preempts_lower_pods_only(self, preemptor: int, victim: int, holds: bool) -> None:
        assert judged(self.play(preemptor, victim), OUTRANK).holds is holds

    def test_the_finding_names_both(self) -> None:
        detail = judged(self.play(1, 2), OUTRANK).detail
        assert "default/victim (priority 2) on n1 for default/preemptor (priority 1)" in detail

    def test_a_scheduler_that_ranks_by_qos_is_not_judged(self) -> None:
        found = judged(self.play(1, 2), OUTRANK, rank_by_qos=("default-scheduler",))
        assert (found.holds, found.detail) == (None, "every victim was chosen by QoS class")

    @pytest.mark.parametrize(
        ("preemptor", "victim", "holds"),
        [(2_000_001_000, 0, True), (None, 5, True), (None, 2_000_000_000, False), (5, 5, False), (6, 5, True)],
    )
    def test_a_kubelet_preempts_for_critical_pods(self, preemptor: int | None, victim: int, holds: bool) -> None:
        """None: a static pod, of which the store knows its mirror only."""
        log = Log()
        log.pod(0, "victim", priority=victim, node="n1")
        if preemptor is not None:
            log.pod(0, "preemptor", priority=preemptor, node="n1")
        data = {"pod": "default/victim", "uid": "uid-victim", "by": "default/preemptor", "by_uid": "uid-preemptor"}
        log.add(1, "kubelet/n1", "kubelet.preempting", **data, node="n1", grace_s=30)
        assert judged(log, OUTRANK).holds is holds

    def test_a_scheduler_that_forgets_to_compare_is_found(
        self, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
    ) -> None:
        def everybody(self: candidates.Preemptor, node: Any, pod: Any) -> list[Any]:
            return list(node.pods.values())

        monkeypatch.setattr(candidates.Preemptor, "lower_pods", everybody)
        monkeypatch.setattr(candidates.Preemptor, "_lower_pods_exist", lambda self, pod: True)
        assert holds("starvation/first-come-first-served", OUTRANK, tmp_path) is False


def served(log: Log, seconds: float, name: str, node: str = "n1", *, queued: float, queue: str = "active") -> None:
    """A pod leaves the queue and is tried for 100 ms; with a node it gets it."""
    data = {"pod": f"default/{name}", "uid": f"uid-{name}"}
    log.add(seconds, ACTOR, "sched.queued", **data, queue=queue, start=round(queued * SECOND), event="PodAdd")
    result = "scheduled" if node else "unschedulable"
    start = round(seconds * SECOND)
    log.add(seconds + 0.1, ACTOR, "sched.attempt", **data, start=start, n=1, result=result, node=node, message="")


class TestTheQueue:
    def two(self) -> Log:
        log = Log()
        log.pod(0, "high", priority=10)
        log.pod(0, "low", priority=1)
        return log

    def test_high_before_low(self) -> None:
        log = self.two()
        served(log, 1, "high", queued=0.5)
        served(log, 2, "low", queued=0.5)
        assert judged(log, INVERSION).holds is True

    def test_low_before_high(self) -> None:
        log = self.two()
        served(log, 1, "low", queued=0.5)
        served(log, 2, "high", queued=0.5)
        found = judged(log, INVERSION)
        assert found.holds is False
        assert "default/high (priority 10) stood in the active queue" in found.detail
        assert "while default/low (priority 1) got n1 at 1.000 s" in found.detail

    @pytest.mark.parametrize(
        ("came", "node", "queue"),
        [(1.05, "n1", "active"), (0.5, "", "active"), (0.5, "n1", "backoff"), (0.5, "n1", "unschedulable")],
    )
    def test_what_is_no_inversion(self, came: float, node: str, queue: str) -> None:
        """The high pod comes during the attempt of the low one; the low one gets nothing; the high one stands in
        another part of the queue."""
        log = self.two()
        served(log, 1, "low", node, queued=0.5)
        served(log, 2, "high", queued=came, queue=queue)
        assert judged(log, INVERSION).holds is not False

    def test_the_same_priority_has_no_order(self) -> None:
        log = Log()
        for name in ("a", "b"):
            log.pod(0, name, priority=1)
        served(log, 1, "b", queued=0.5)
        served(log, 2, "a", queued=0.4)
        assert judged(log, INVERSION).holds is True

    @pytest.mark.parametrize("gated", [False, True])
    def test_a_pod_that_is_never_served(self, gated: bool) -> None:
        log = Log()
        log.pod(0, "high", priority=10)
        if gated:
            log.pods["high"].spec.schedulingGates.add(name="gate")
            log.pod(0, "high")
        log.pod(1, "low", priority=1)
        served(log, 2, "low", queued=1)
        assert judged(log, INVERSION).holds is gated

    def test_a_pod_that_came_later_may_not_be_known(self) -> None:
        log = Log()
        log.pod(1, "low", priority=1)
        log.pod(1, "high", priority=10)
        served(log, 2, "low", queued=1)
        assert judged(log, INVERSION).holds is True

    def test_with_a_queue_of_its_own_it_is_told_and_does_not_count(self) -> None:
        assert judged(Log(), INVERSION).asked is True
        assert judged(Log(), INVERSION, own_queues=True).asked is False


class TestNominations:
    def play(
        self,
        *,
        cpu: str = "6",
        priority: int = 1,
        cleared: bool = False,
        room: bool = False,
        gone: bool = False,
        again: str = "",
    ) -> Result:
        """high is nominated to n1, of 10 CPUs, where victim is ending; then another pod gets n1."""
        log = Log()
        log.node(0, "n1")
        log.pod(0, "high", cpu="6", priority=10)
        served(log, 1, "high", "", queued=0)
        log.pod(1.2, "high", nominated="n1")
        if gone:
            log.gone(1.2, "high")
        nominated = {"pod": "default/high", "uid": "uid-high", "node": "n1", "why": "preemption"}
        log.add(1.3, ACTOR, "sched.nominated", **nominated, start=SECOND)
        log.pod(2, "other", cpu=cpu, priority=priority)
        if again:
            self.tried_again(log, again)
        if cleared:
            log.pod(2, "high", nominated="")
        if room:
            log.node(2, "n1", cpu="12")
        served(log, 3, "other", queued=2)
        log.pod(3.2, "other", node="n1")
        return judged(log, INVERSION)

    def tried_again(self, log: Log, how: str) -> None:
        """Before other is tried, so is high. What becomes of its nomination is never written."""
        data = {"pod": "default/high", "uid": "uid-high", "start": round(2.1 * SECOND)}
        node = {"elsewhere": "n2", "refused": "n1"}.get(how, "")
        message = "preemption: not eligible due to a terminating pod on the nominated node." if how == "waits" else ""
        result = {"elsewhere": "scheduled", "refused": "scheduled", "fails": "error"}.get(how, "unschedulable")
        log.add(2.2, ACTOR, "sched.attempt", **data, n=2, result=result, node=node, message=message)
        if how == "preempts":
            log.add(2.2, ACTOR, "sched.preemption", **data, node="n1", candidates=1, victims=[])
        if how == "refused":
            bound = {"node": "n1", "ok": False, "reason": "ServiceUnavailable", "message": ""}
            log.add(2.3, ACTOR, "sched.bind", **data | bound)

    @pytest.mark.parametrize("how", ["elsewhere", "refused", "in vain"])
    def test_an_attempt_ends_the_nomination_of_its_pod(self, how: str) -> None:
        """At once and in memory: nothing of it has reached the store when another pod takes the room."""
        assert self.play(again=how).holds is True

    @pytest.mark.parametrize("how", ["waits", "fails", "preempts"])
    def test_an_attempt_keeps_the_nomination_of_its_pod(self, how: str) -> None:
        """It has to wait for its victims, something went wrong, or it preempts on that node again."""
        assert self.play(again=how).holds is False

    def test_room_that_is_kept_is_taken(self) -> None:
        found = self.play()
        assert found.holds is False
        assert "gives n1 to default/other (priority 1), where default/high (priority 10) is nominated" in found.detail
        assert "with both, 12000 of 10000 cpu" in found.detail

    def test_what_may_be_taken(self) -> None:
        assert self.play(cpu="4").holds is True
        assert self.play(priority=10).holds is True
        assert self.play(cleared=True).holds is True
        assert self.play(room=True).holds is True
        assert self.play(gone=True).holds is True, "deleted before the scheduler was told that it is nominated"


def holds(scenario: str, check: str, folder: Path) -> bool | None:
    """Run it in sim, and ask one check (of a matrix, in the variant with today's switches)."""
    usual = next(
        each
        for variant, each in loader.variants(loader.load(catalog.shipped()[scenario]))
        if "fifo" not in variant.values() and False not in variant.values()
    )
    result = runner.run(usual, runner.Options(out=folder, runtime="sim"))
    return next(found["holds"] for found in result.verdict["checks"] if found["id"] == check)


class TestPlantedBugs:
    def test_a_queue_that_is_upside_down(self, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
        monkeypatch.setattr(PrioritySort, "sort_key", lambda self, pod, since_ns: (pod.priority, since_ns))
        assert holds("starvation/first-come-first-served", INVERSION, tmp_path) is False

    def test_nominations_that_nobody_honours(self, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
        monkeypatch.setattr(Nominator, "nominate", lambda self, pod, node: None)
        assert holds("seeds/starvation", INVERSION, tmp_path) is False
