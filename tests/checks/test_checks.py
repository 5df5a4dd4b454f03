"""Every check holds on a sound log and fails on the one thing that it is for."""

from __future__ import annotations

import pytest

from kemu.lab.checks import registry
from tests.checks.logs import Log, judged


class TestNoNodeOvercommitted:
    def test_two_pods_that_fit(self) -> None:
        log = Log()
        log.node(0, "n1")
        for name in ("a", "b"):
            log.pod(1, name, cpu="5", node="n1")
            log.admit(2, name, "n1")
        assert judged(log, "no-node-overcommitted").holds is True

    def test_two_pods_that_do_not(self) -> None:
        log = Log()
        log.node(0, "n1")
        for name in ("a", "b"):
            log.pod(1, name, cpu="6", node="n1")
            log.admit(2, name, "n1")
        result = judged(log, "no-node-overcommitted")
        assert result.holds is False
        assert "default/b on n1 makes 12000 of cpu in use, of 10000 allocatable" in result.detail

    def test_bound_is_not_running(self) -> None:
        log = Log()
        log.node(0, "n1")
        for name in ("a", "b"):
            log.pod(1, name, cpu="6", node="n1")
        log.admit(2, "a", "n1")
        log.admit(2, "b", "n1", reason="OutOfcpu")
        assert judged(log, "no-node-overcommitted").holds is True

    def test_a_pod_that_still_shuts_down_uses_its_room(self) -> None:
        log = Log()
        log.node(0, "n1")
        log.pod(1, "a", cpu="6", node="n1", phase="Running")
        log.pod(2, "a", deleting=30)
        log.pod(3, "b", cpu="6", node="n1")
        log.admit(4, "b", "n1")
        assert judged(log, "no-node-overcommitted").holds is False

    @pytest.mark.parametrize(("phase", "holds"), [("Pending", True), ("Running", False)])
    def test_a_kubelet_that_starts_anew_admits_anew(self, phase: str, holds: bool) -> None:
        """It may decide otherwise about pods that nobody has seen Running, but not about those that do."""
        log = Log()
        log.node(0, "n1")
        for name in ("a", "b"):
            log.pod(1, name, cpu="6", node="n1")
        log.admit(2, "a", "n1")
        log.pod(3, "a", phase=phase)
        log.add(4, "kubelet/n1", "actor.started", incarnation=2)
        log.admit(5, "b", "n1")
        assert judged(log, "no-node-overcommitted").holds is holds

    def test_the_number_of_pods_counts_too(self) -> None:
        log = Log()
        log.node(0, "n1", pods="1")
        for name in ("a", "b"):
            log.pod(1, name, node="n1")
            log.admit(2, name, "n1")
        assert judged(log, "no-node-overcommitted").holds is False


class TestPodBoundAtMostOnce:
    def test_once(self) -> None:
        log = Log()
        log.pod(0, "a")
        log.pod(1, "a", node="n1")
        log.pod(2, "a", phase="Running")
        assert judged(log, "pod-bound-at-most-once").holds is True

    @pytest.mark.parametrize("preset", [False, True])
    def test_twice(self, preset: bool) -> None:
        log = Log()
        log.pod(0, "a", **({"node": "n1"} if preset else {}))
        log.pod(1, "a", node="n1")
        log.pod(2, "a", node="n2")
        result = judged(log, "pod-bound-at-most-once")
        assert result.holds is False
        assert "n2 at 2.000 s" in result.detail

    def test_a_binding_that_the_store_lost_is_none(self) -> None:
        log = Log()
        created = log.pod(0, "a")
        before = dict(log.values)
        log.pod(1, "a", node="n1")
        log.recovered(2, created, before)
        history, _ = registry.judge(log.events)
        pod = history.pod("a")
        assert pod is not None
        assert (pod.node, pod.bound_ns, history.counts["pods_bound"]) == ("", None, 0)
        assert judged(log, "pod-bound-at-most-once").holds is None
        log.pod(3, "a", node="n2")
        assert judged(log, "pod-bound-at-most-once").holds is True
        log.pod(4, "a", node="n3")
        assert (
            judged(log, "pod-bound-at-most-once").detail == "default/a was bound to n2 at 3.000 s, then n3 at 4.000 s"
        )

    def test_a_second_binding_is_one_even_if_the_store_lost_it(self) -> None:
        log = Log()
        log.pod(0, "a")
        bound = log.pod(1, "a", node="n1")
        before = dict(log.values)
        log.pod(2, "a", node="n2")
        log.recovered(3, bound, before)
        assert judged(log, "pod-bound-at-most-once").holds is False

    def test_the_same_name_again_is_another_pod(self) -> None:
        log = Log()
        log.pod(0, "a")
        log.pod(1, "a", node="n1")
        log.gone(2, "a")
        log.pod(3, "a", uid="uid-a2")
        log.pod(4, "a", node="n2")
        assert judged(log, "pod-bound-at-most-once").holds is True


class TestNoPodStarves:
    def test_limits(self) -> None:
        log = Log()
        log.pod(0, "old", priority=5)
        for n in range(3):
            log.pod(1 + n, f"young-{n}")
            log.pod(1.5 + n, f"young-{n}", node="n1")
        log.pod(10, "old", node="n1")
        assert judged(log, "no-pod-starves", max_wait_ns=10 * 10**9).holds is True
        waited = judged(log, "no-pod-starves", max_wait_ns=9 * 10**9)
        assert (waited.holds, "default/old (priority 5) waited 10.000 s" in waited.detail) == (False, True)
        assert judged(log, "no-pod-starves", max_overtaken=3).holds is True
        overtaken = judged(log, "no-pod-starves", max_overtaken=2)
        assert (overtaken.holds, "was overtaken 3 times" in overtaken.detail) == (False, True)


def test_a_disabled_check_is_not_asked() -> None:
    _, results = registry.judge([], disabled=("watch-has-no-gaps",))
    assert [result.id for result in results] == [each for each in registry.IDS if each != "watch-has-no-gaps"]


@pytest.mark.parametrize("check", registry.IDS)
def test_a_check_that_looked_at_nothing_does_not_hold(check: str) -> None:
    result = judged(Log(), check)
    assert result.holds is None
    assert result.detail


def test_a_victim_of_two_preemptors_is_preempted_once() -> None:
    log = Log()
    log.pod(0, "a", node="n1")
    log.victim(1, "a", "c", "n1")
    log.victim(2, "a", "d", "n1")
    history, _ = registry.judge(log.events)
    assert history.counts["preemptions"] == 1
    assert [fact.by for fact in history.pods["uid-a"].facts if fact.what == "preempted"] == ["default/c"]
