"""Waiting times and overtaking, against a plain count."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from kemu.lab.checks import costs, registry
from kemu.lab.checks.history import History
from kemu.lab.checks.limits import Limits
from kemu.lab.checks.results import Result
from kemu.lab.checks.scheduling import waiting
from kemu.lab.sweep.results import rows
from tests.checks.logs import SECOND, Log

PODS = st.lists(
    st.tuples(st.integers(0, 20), st.one_of(st.none(), st.integers(1, 20)), st.integers(0, 2)), min_size=1, max_size=30
)


def history_of(pods: list[tuple[int, int | None, int]], end: int) -> History:
    log = Log()
    timeline = []
    for n, (created, waited, priority) in enumerate(pods):
        timeline.append((created, 0, n, priority))
        if waited is not None:
            timeline.append((created + waited, 1, n, priority))
    for when, what, n, priority in sorted(timeline):
        if what == 0:
            log.pod(when, f"p{n}", priority=priority)
        else:
            log.pod(when, f"p{n}", node="n1")
    log.add(end, "store", "end")
    history = History()
    for event in log.events:
        history.feed(*event)
    return history


@given(PODS)
@settings(max_examples=200, deadline=None)
def test_overtaking_is_what_a_plain_count_says(pods: list[tuple[int, int | None, int]]) -> None:
    end = 50
    found = {wait.pod.name: wait for wait in waiting.waits(history_of(pods, end))}
    for n, (created, waited, priority) in enumerate(pods):
        until = end if waited is None else created + waited
        expected = sum(
            1
            for other_created, other_waited, other_priority in pods
            if other_waited is not None
            and other_created > created
            and other_created + other_waited < until
            and other_priority <= priority
        )
        assert found[f"p{n}"].overtaken == expected
        assert found[f"p{n}"].seconds == until - created


def test_quantiles_are_values_that_occurred() -> None:
    values = [float(n) for n in range(1, 101)]
    assert waiting.quantile(values, 0.5) == 50
    assert waiting.quantile(values, 0.99) == 99
    assert waiting.quantile([3.0], 0.99) == 3
    assert waiting.quantile([], 0.5) == 0


def test_a_summary_goes_from_high_to_low_priority() -> None:
    summary = waiting.summary(waiting.waits(history_of([(0, 1, 0), (0, None, 2), (1, 4, 1)], 10)))
    assert list(summary) == ["2", "1", "0"]
    assert summary["2"] == {
        "pods": 1, "unbound": 1, "p50_s": 10.0, "p99_s": 10.0, "max_s": 10.0, "censored": ["p50_s", "p99_s", "max_s"],
        "overtaken_p99": 1, "overtaken_max": 1,
    }  # fmt: skip


def test_figures_above_a_pod_that_was_never_bound_are_lower_bounds() -> None:
    """Five waits of 1, 2, 3, 8 and 9 s; the one of 8 s ended with the run."""
    pods = [(2, 1, 0), (2, 2, 0), (2, 3, 0), (2, None, 0), (1, 9, 0)]
    (group,) = waiting.summary(waiting.waits(history_of(pods, 10))).values()
    assert [group[name] for name in ("p50_s", "p99_s", "max_s")] == [3, 9, 9]
    assert group["censored"] == ["p99_s", "max_s"]
    (bound,) = waiting.summary(waiting.waits(history_of(pods[:3], 10))).values()
    assert bound["censored"] == []


def test_a_pod_inherits_what_its_predecessor_waited() -> None:
    """web-0 waits 40 s and is lost; web-1 takes its place and waits 30 s; each is overtaken once."""
    log = Log()
    log.pod(0, "web-0", priority=1)
    log.pod(10, "x")
    log.pod(20, "x", node="n1")
    log.pod(40, "web-0", node="n1")
    log.gone(50, "web-0")
    log.add(50, "user", "user.pod", pod="default/web-1", uid="uid-web-1", workload="", n=1, replaces="default/web-0")
    log.pod(50, "web-1", priority=1)
    log.pod(60, "y")
    log.pod(70, "y", node="n1")
    log.pod(80, "web-1", node="n1")

    def asked(**limits: int) -> Result:
        _, results = registry.judge(log.events, within=Limits(**limits))
        return next(result for result in results if result.id == "no-pod-starves")

    assert asked(max_wait_ns=70 * SECOND).holds is True
    found = asked(max_wait_ns=69 * SECOND)
    assert (found.holds, "web-1 (priority 1, with 1 predecessor) waited 70.000 s" in found.detail) == (False, True)
    assert asked(max_overtaken=2).holds is True
    assert asked(max_overtaken=1).holds is False


def test_a_pod_that_ended_before_it_was_seen_running_has_run() -> None:
    """Its kubelet could not say so in time: the first status that it wrote is the last one."""
    log = Log()
    log.pod(0, "quick", cpu="2")
    log.pod(1, "quick", node="n1")
    log.add(3, "kubelet/n1", "kubelet.running", pod="default/quick", uid="uid-quick", node="n1", start=0)
    log.add(4, "kubelet/n1", "kubelet.terminated", pod="default/quick", uid="uid-quick", node="n1", start=0)
    log.pod(5, "quick", phase="Succeeded")
    log.pod(6, "never")
    log.add(60, "store", "end")
    history = History()
    for event in log.events:
        history.feed(*event)
    history.now_ns = 60 * SECOND
    assert costs.value(history, "running.p50_s") == 3
    assert costs.value(history, "running.max_s") == 54
    (found, _) = rows.pods(history)
    assert found["running_s"] == 3
