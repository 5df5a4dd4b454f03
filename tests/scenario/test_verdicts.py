"""What a scenario expects, judged on histories made by hand."""

from __future__ import annotations

import pytest

from kemu.lab.checks import registry
from kemu.lab.checks.history import WORKLOAD_LABEL, History
from kemu.lab.checks.limits import Limits
from kemu.lab.checks.results import Result
from kemu.lab.scenario import verdicts
from kemu.lab.scenario.expectations import (
    Bounds,
    CheckIs,
    Comparison,
    CounterIs,
    Expectation,
    InOrder,
    NodeIs,
    PodIs,
    PodsAre,
    Selection,
    Statement,
)
from tests.checks.logs import SECOND, Log


def preemption() -> Log:
    """c preempts a on n1 and is bound there after 30 s; d stays pending."""
    log = Log()
    log.node(0, "n1")
    log.pod(0, "a", cpu="10", node="n1", phase="Running", priority=100)
    log.pod(5, "c", cpu="10", priority=1000, labels={"app": "c"})
    log.pod(6, "d", cpu="2")
    log.pod(6.1, "c", nominated="n1")
    log.victim(6.2, "a", "c", "n1")
    log.pod(6.2, "a", deleting=36)
    log.gone(36, "a")
    log.pod(36.1, "c", node="n1", nominated="")
    log.add(36.1, "scheduler/red/1", "sched.bind", pod="default/c", uid="uid-c", node="n1", start=0, ok=True, reason="")
    log.pod(36.2, "c", phase="Running")
    return log


def ask(
    log: Log, subject: object, end: float = 60, finished: bool = True, idle: bool = True, **meant: int
) -> tuple[bool | None, str]:
    history, checks = registry.judge(log.events)
    history.now_ns = max(history.now_ns, round(end * SECOND))
    outcome = verdicts.Outcome(history, checks, round(end * SECOND), finished=finished, idle=idle, meant=meant)
    found = verdicts.judge(Expectation("id", "text", subject), outcome)  # type: ignore[arg-type]
    return found.holds, found.detail


def pod(name: str, what: str, **fields: object) -> PodIs:
    for key in ("after", "before", "at_least", "at_most"):
        if key in fields:
            fields[f"{key}_ns"] = round(float(fields.pop(key)) * SECOND)  # type: ignore[arg-type]
    return PodIs(f"default/{name}", Statement(what, **fields))  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("subject", "holds"),
    [
        (pod("a", "preempted", by="default/c", before=7), True),
        (pod("a", "preempted", by="default/d"), False),
        (pod("a", "preempted", before=6), False),
        (pod("c", "nominated", node="n1", before=7), True),
        (pod("c", "nominated", node="n2"), False),
        (pod("c", "bound", node="n1", after=30, before=40), True),
        (pod("c", "bound", after=37), False),
        (pod("c", "bound", by="red"), True),
        (pod("c", "bound", by="red/1"), True),
        (pod("c", "bound", by="red/0"), False),
        (pod("c", "running", node="n1"), True),
        (pod("c", "nominationCleared"), False),
        (pod("d", "bound", never=True), True),
        (pod("c", "bound", never=True), False),
        (pod("c", "bound", never=True, before=36), True),
        (pod("a", "deleted", before=37), True),
        (pod("d", "phase", phase="Pending"), True),
        (pod("c", "phase", phase="Pending"), False),
        (pod("a", "phase", phase="Running"), False),
        (pod("c", "waited", at_most=32), True),
        (pod("c", "waited", at_most=31), False),
        (pod("d", "waited", at_most=60), False),
        (pod("nobody", "bound"), False),
        (pod("nobody", "bound", never=True), True),
    ],
)
def test_statements_about_a_pod(subject: PodIs, holds: bool) -> None:
    assert ask(preemption(), subject)[0] is holds


@pytest.mark.parametrize(
    "subject",
    [
        pod("d", "bound", before=80),
        pod("d", "bound", never=True, before=80),
        pod("nobody", "created", before=80),
    ],
)
def test_a_window_that_the_run_did_not_reach_is_unknown(subject: PodIs) -> None:
    assert ask(preemption(), subject, end=60, finished=True, idle=False)[0] is None
    assert ask(preemption(), subject, end=60, idle=True)[0] is not None
    assert ask(preemption(), subject, end=90, idle=False)[0] is not None


def test_nothing_is_certain_in_a_run_that_was_broken_off() -> None:
    for subject in (pod("d", "bound"), pod("d", "bound", never=True), pod("d", "phase", phase="Pending")):
        assert ask(preemption(), subject, finished=False, idle=False)[0] is None
    assert ask(preemption(), pod("c", "bound"), finished=False, idle=False)[0] is True


def test_the_detail_says_what_was_found() -> None:
    assert ask(preemption(), pod("a", "preempted"))[1] == "preempted by c at 6.200 s"
    assert ask(preemption(), pod("c", "bound", before=10))[1] == "instead: bound to n1 by red/1 at 36.100 s"


def pressure() -> Log:
    """n1 runs short of memory: a is evicted by the manager, b by the eviction API, c preempted; d is OOM-killed."""
    log = Log()
    log.node(0, "n1")
    for name in "abcd":
        log.pod(0, name, node="n1", phase="Running")
    log.node_status(10, "n1", conditions={"MemoryPressure": "True"}, taints=[("memory-pressure", "NoSchedule")])
    log.pod(11, "a", phase="Failed", reason="Evicted", disruption="TerminationByKubelet")
    log.pod(12, "b", disruption="EvictionByEvictionAPI")
    log.pod(13, "c", disruption="PreemptionByScheduler")
    log.add(14, "kubelet/n1", "kubelet.oom_killed", pod="default/d", uid="uid-d", node="n1", container="main")
    log.node_status(20, "n1", conditions={"MemoryPressure": "False"}, taints=[])
    log.txn(30, "/registry/nodes/n1", None)
    return log


@pytest.mark.parametrize("how", ["kubelet.terminated", "kubelet.finished", "machine.off", "actor.stopped"])
def test_a_pod_has_ended_when_its_containers_have(how: str) -> None:
    """Not when the object says so or is gone; with its machine, whether that goes off or is removed."""
    log = Log()
    log.node(0, "n1")
    log.pod(0, "a", node="n1")
    log.admit(1, "a", "n1")
    log.pod(2, "a", phase="Running")
    log.gone(3, "a")
    assert ask(log, pod("a", "ended"))[0] is False
    log.add(4, "kubelet/n1", how, pod="default/a", uid="uid-a", node="n1", why="crash")
    assert ask(log, pod("a", "ended", node="n1", after=4, before=4)) == (True, "ended on n1 at 4.000 s")


def test_the_shutdown_of_a_run_ends_no_pod() -> None:
    log = Log()
    log.pod(0, "a", node="n1")
    log.admit(1, "a", "n1")
    log.ended(2)
    log.add(2, "kubelet/n1", "actor.stopped")
    assert ask(log, pod("a", "ended", never=True))[0] is True


def test_a_static_pod_ends_under_the_name_of_its_mirror() -> None:
    log = Log()
    log.pod(0, "a", node="n1")
    log.pods["a"].metadata.annotations["kubernetes.io/config.mirror"] = "uid-static"
    log.pods["a"].metadata.uid = "uid-mirror"
    log.pod(1, "a")
    log.add(2, "kubelet/n1", "kubelet.terminated", pod="default/a", uid="uid-static", node="n1")
    assert ask(log, pod("a", "ended"))[0] is True


def node(what: str, **fields: object) -> NodeIs:
    return NodeIs("n1", pod("", what, **fields).statement)


@pytest.mark.parametrize(
    ("subject", "holds"),
    [
        (pod("a", "evicted", node="n1", reason="Evicted", before=11), True),
        (pod("a", "evicted", reason="TerminationByKubelet"), True),
        (pod("a", "evicted", node="n2"), False),
        (pod("b", "evicted", reason="EvictionByEvictionAPI"), True),
        (pod("b", "evicted", reason="Evicted"), False),
        (pod("c", "evicted"), False),
        (pod("d", "oomKilled", node="n1", after=14), True),
        (pod("a", "oomKilled", never=True), True),
        (node("condition", reason="MemoryPressure", status="True", after=10, before=10), True),
        (node("condition", reason="MemoryPressure", status="False", before=19), False),
        (node("condition", reason="MemoryPressure", status="False"), True),
        (node("condition", reason="DiskPressure", status="True", never=True), True),
        (node("tainted", reason="memory-pressure"), True),
        (node("tainted", reason="memory-pressure", status="NoExecute"), False),
        (node("untainted", reason="memory-pressure", after=20), True),
        (node("added", before=0), True),
        (node("removed", after=30), True),
        (node("removed", before=29), False),
        (NodeIs("n2", Statement("added")), False),
        (CounterIs("evictions", Bounds(equals=2)), True),
        (CounterIs("oom_kills", Bounds(equals=1)), True),
    ],
)
def test_statements_about_evictions_and_nodes(subject: object, holds: bool) -> None:
    assert ask(pressure(), subject)[0] is holds


@pytest.mark.parametrize(
    ("subject", "detail"),
    [
        (pod("a", "evicted"), "evicted from n1: Evicted at 11.000 s"),
        (pod("d", "oomKilled"), "OOM-killed on n1 at 14.000 s"),
        (node("condition", reason="MemoryPressure", status="True"), "MemoryPressure became True at 10.000 s"),
        (node("tainted", reason="memory-pressure"), "got the taint memory-pressure:NoSchedule at 10.000 s"),
    ],
)
def test_what_is_said_of_evictions_and_nodes(subject: object, detail: str) -> None:
    assert ask(pressure(), subject)[1] == detail


def selected(quantifier: str, statement: Statement, **bounds: float) -> PodsAre:
    return PodsAre(Selection(names=("default/c", "default/d")), quantifier, statement, Bounds(**bounds))


@pytest.mark.parametrize(
    ("subject", "holds"),
    [
        (selected("all", Statement("created")), True),
        (selected("all", Statement("bound")), False),
        (selected("any", Statement("bound")), True),
        (selected("any", Statement("rejected")), False),
        (selected("none", Statement("rejected")), True),
        (selected("none", Statement("bound")), False),
        (selected("count", Statement("bound"), equals=1), True),
        (selected("count", Statement("created"), at_most=1), False),
        (selected("count", Statement("created"), at_least=2), True),
        (PodsAre(Selection(selector={"matchLabels": {"app": "c"}}), "all", Statement("bound"), Bounds()), True),
        (PodsAre(Selection(selector={"matchLabels": {"app": "x"}}), "all", Statement("bound"), Bounds()), False),
        (CounterIs("preemptions", Bounds(equals=1)), True),
        (CounterIs("preemptions", Bounds(at_most=0)), False),
        (CheckIs("no-node-overcommitted", True), True),
        (CheckIs("no-node-overcommitted", False), False),
        (InOrder((pod("a", "preempted"), pod("a", "deleted"), pod("c", "bound"))), True),
        (InOrder((pod("c", "bound"), pod("a", "deleted"))), False),
        (InOrder((pod("a", "preempted"), pod("d", "bound"))), False),
    ],
)
def test_groups_counters_checks_order(subject: object, holds: bool) -> None:
    assert ask(preemption(), subject)[0] is holds


def test_a_binding_whose_write_is_seen_after_its_answer() -> None:
    """As with a real etcd, which tells of a write by its watch."""
    log = Log()
    log.node(0, "n1")
    log.pod(1, "a")
    log.add(2, "scheduler/red/0", "sched.bind", pod="default/a", uid="uid-a", node="n1", start=0, ok=True, reason="")
    log.pod(2.1, "a", node="n1")
    assert ask(log, pod("a", "bound", node="n1", by="red"))[0] is True
    assert ask(log, pod("a", "bound", by="blue"))[0] is False


def workload(*names: str) -> Log:
    """Pods of the workload w, all bound; n1 runs nothing."""
    log = Log()
    for name in names:
        log.pod(1, name, labels={WORKLOAD_LABEL: "w"})
        log.pod(2, name, node="n1")
    return log


def of_w(quantifier: str, statement: Statement, **bounds: float) -> PodsAre:
    return PodsAre(Selection(workload="w"), quantifier, statement, Bounds(**bounds))


@pytest.mark.parametrize(
    ("subject", "of_two", "of_three"),
    [
        (of_w("all", Statement("bound")), True, None),
        (of_w("all", Statement("running")), False, False),
        (of_w("any", Statement("bound")), True, True),
        (of_w("any", Statement("rejected")), False, None),
        (of_w("none", Statement("rejected")), True, None),
        (of_w("none", Statement("bound")), False, False),
        (of_w("count", Statement("bound"), equals=2), True, None),
        (of_w("count", Statement("bound"), at_least=2), True, True),
        (of_w("count", Statement("bound"), at_most=1), False, False),
    ],
)
def test_a_workload_is_every_pod_that_it_meant_to_create(subject: PodsAre, of_two: bool, of_three: bool | None) -> None:
    assert ask(workload("w-0", "w-1"), subject, w=2)[0] is of_two
    assert ask(workload("w-0", "w-1"), subject, w=3)[0] is of_three


def test_pods_that_nobody_can_judge_are_counted() -> None:
    assert ask(workload("w-0"), of_w("all", Statement("bound")), w=4)[1] == "1 of 4 pods, 3 could not be judged"


def test_a_replacement_is_no_pod_that_the_workload_meant_to_create() -> None:
    log = workload("w-0", "w-1")
    log.add(3, "user", "user.pod", pod="default/w-1", uid="uid-w-1", workload="w", n=1, replaces="default/w-0")
    assert ask(log, of_w("all", Statement("bound")), w=2)[0] is None


def test_a_pod_that_is_reported_before_the_store_tells_of_it() -> None:
    """As on Ray, where the log is put together from several processes."""
    log = workload("w-0")
    log.add(3, "user", "user.pod", pod="default/w-1", uid="uid-w-1", workload="w", n=1, replaces="default/w-0")
    log.pod(4, "w-1", labels={WORKLOAD_LABEL: "w"})
    history, _ = registry.judge(log.events)
    assert (history.pods["uid-w-1"].workload, history.pods["uid-w-1"].replaces) == ("w", "default/w-0")


def test_a_pod_of_a_workload_that_was_refused_never_came() -> None:
    log = workload("w-0")
    log.add(3, "user", "user.refused", workload="w", n=1, replaces="", reason="Invalid", message="no")
    holds, detail = ask(log, of_w("all", Statement("bound")), w=2)
    assert (holds, "a pod of w that was refused: Invalid: no" in detail) == (False, True)
    assert ask(log, of_w("none", Statement("rejected")), w=2)[0] is True
    assert ask(log, of_w("count", Statement("bound", never=True), equals=1), w=2)[0] is True


def test_a_name_that_was_never_created_counts() -> None:
    subject = PodsAre(Selection(names=("default/w-0", "default/nobody")), "all", Statement("bound"), Bounds())
    assert ask(workload("w-0"), subject) == (False, "1 of 2 pods; default/nobody: it was never created")


def test_a_number_that_may_still_grow() -> None:
    early = {"finished": False, "idle": False}
    assert ask(preemption(), CounterIs("preemptions", Bounds(at_least=1)), **early)[0] is True
    assert ask(preemption(), CounterIs("preemptions", Bounds(at_most=5)), **early)[0] is None
    assert ask(preemption(), CounterIs("preemptions", Bounds(at_most=0)), **early)[0] is False


def test_until_holds_as_soon_as_it_happened() -> None:
    until = Expectation("until", "text", pod("c", "bound"))
    history = History(keep_changes=False)
    seen = []
    for event in preemption().events:
        history.feed(*event)
        seen.append(verdicts.happened(until, history, {}))
    assert seen.index(True) == [e.time_ns for e in preemption().events].index(round(36.1 * SECOND))


def compared(left: float | None, right: float | None, at_least: float | None, done: bool = True) -> bool | None:
    subject = Comparison("waiting.p99_s", None, {}, {}, at_least, None)
    return verdicts.compare(Expectation("id", "text", subject), ("fifo", left, done), ("priority", right, True)).holds


def test_comparisons() -> None:
    assert compared(10, 4, 2) is True
    assert compared(7, 4, 2) is False
    assert compared(None, 4, 2) is None
    assert compared(10, 4, 2, done=False) is None


def test_fails_before_unknown_before_holds() -> None:
    good, bad, open_ = (verdicts.Judgement("", "", holds, "") for holds in (True, False, None))
    assert verdicts.overall((), [good, bad, open_]) == "fails"
    assert verdicts.overall((), [good, open_]) == "unknown"
    assert verdicts.overall((), [good]) == "holds"


def test_a_run_in_which_nothing_could_be_judged_does_not_hold() -> None:
    _, checks = registry.judge([])
    assert {check.holds for check in checks} == {None}
    assert verdicts.overall(verdicts.countable(checks, ()), []) == "unknown"
    assert verdicts.overall([Result("a", True, ""), Result("b", None, "")], []) == "holds"


def test_a_scenario_that_expects_what_was_not_exercised_is_unknown() -> None:
    holds, detail = ask(Log(), CheckIs("no-name-runs-twice", True))
    assert (holds, detail) == (None, "not exercised: no pod ran")


def test_a_detector_changes_the_verdict_only_where_it_is_asked() -> None:
    log = Log()
    log.pod(0, "a")
    log.add(301, "store", "end")
    _, found = registry.judge(log.events)
    starved = next(check for check in found if check.id == "no-pod-starves")
    assert (starved.holds, starved.detector, starved.asked) == (False, True, False)
    acked = Result("acknowledged-writes-survive", True, "")
    assert verdicts.overall(verdicts.countable([starved, acked], ()), []) == "holds"
    _, found = registry.judge(log.events, within=Limits(max_wait_ns=300 * SECOND))
    assert verdicts.overall(verdicts.countable(found, ()), []) == "fails"
    assert ask(log, CheckIs("no-pod-starves", True), end=301)[0] is False
    assert ask(log, CheckIs("no-pod-starves", False), end=301)[0] is True
