"""Circles: evictions that come back, mutual preemption; and names that run twice."""

from __future__ import annotations

import pytest

from kemu.lab.checks import registry
from kemu.lab.checks.history import WORKLOAD_LABEL, History
from kemu.lab.checks.limits import Limits
from kemu.lab.checks.nodes import identities
from kemu.lab.checks.results import Result
from tests.checks.logs import Log


def judge(log: Log, **limits: int) -> tuple[History, dict[str, Result]]:
    history, results = registry.judge(log.events, within=Limits(**limits))
    return history, {result.id: result for result in results}


def evict(log: Log, seconds: float, name: str, node: str, workload: str = "web", *, disruption: str = "") -> None:
    """A pod runs, and is evicted: by its kubelet, or for another reason."""
    log.pod(seconds, name, labels={WORKLOAD_LABEL: workload} if workload else {})
    log.pod(seconds + 1, name, node=node)
    log.pod(seconds + 2, name, phase="Running")
    if disruption:
        log.pod(seconds + 3, name, disruption=disruption)
    else:
        log.pod(seconds + 3, name, phase="Failed", reason="Evicted")


class TestEvictions:
    def test_a_workload_that_returns_to_where_it_was_evicted(self) -> None:
        log = Log()
        for number in range(4):
            evict(log, number * 10, f"web-{number}", "n1")
        history, results = judge(log, max_eviction_returns=2)
        assert history.counts["eviction_returns"] == 3
        assert results["no-eviction-loop"].holds is False
        assert "workload/web was evicted again from n1 3 times" in results["no-eviction-loop"].detail
        assert judge(log, max_eviction_returns=3)[1]["no-eviction-loop"].holds is True

    def test_other_nodes_other_workloads_and_other_reasons_are_no_return(self) -> None:
        log = Log()
        evict(log, 0, "web-0", "n1")
        evict(log, 10, "web-1", "n2")
        evict(log, 20, "db-0", "n1", "db")
        evict(log, 30, "web-2", "n1", disruption="DeletionByTaintManager")
        evict(log, 40, "a", "n1", "")
        evict(log, 50, "b", "n1", "")
        history, results = judge(log, max_eviction_returns=0)
        assert (history.counts["evictions"], history.counts["eviction_returns"]) == (6, 0)
        assert results["no-eviction-loop"].holds is True

    def test_nothing_is_known_where_no_pod_ran(self) -> None:
        assert judge(Log(), max_eviction_returns=0)[1]["no-eviction-loop"].holds is None

    def test_it_changes_the_verdict_only_with_a_limit(self) -> None:
        assert not any(judge(Log())[1][check].asked for check in ("no-eviction-loop", "no-preemption-loop"))
        asked = judge(Log(), max_eviction_returns=0, max_preemption_returns=0)[1]
        assert all(asked[check].asked for check in ("no-eviction-loop", "no-preemption-loop"))

    def test_default_limits(self) -> None:
        log = Log()
        for number in range(5):
            evict(log, number * 10, f"web-{number}", "n1")
        assert judge(log)[1]["no-eviction-loop"].holds is False


class TestPreemptions:
    def play(self, *pairs: tuple[str, str]) -> Log:
        """Preemptor and victim."""
        log = Log()
        for number, (preemptor, victim) in enumerate(pairs):
            names = f"{preemptor}-{number}", f"{victim}-{number}"
            for name, workload in zip(names, (preemptor, victim), strict=True):
                log.pod(number * 10, name, node="n1", labels={WORKLOAD_LABEL: workload})
            log.victim(number * 10 + 1, names[1], names[0], "n1")
        log.add(
            99, "scheduler/default-scheduler/0", "sched.attempt",
            pod="x", uid="x", start=0, node="", result="scheduled", message="",
        )  # fmt: skip
        return log

    def test_two_that_preempt_each_other_in_turn(self) -> None:
        log = self.play(("a", "b"), ("b", "a"), ("a", "b"), ("b", "a"))
        history, results = judge(log, max_preemption_returns=1)
        assert history.counts["preemption_returns"] == 3
        assert results["no-preemption-loop"].holds is False
        assert "workload/a was preempted in turn by workload/b 2 times" in results["no-preemption-loop"].detail

    def test_one_workload_that_preempts_another_again_and_again_is_no_circle(self) -> None:
        """Each time another pod, for another pod: both workloads have many."""
        log = self.play(("a", "b"), ("a", "b"), ("c", "a"), ("a", "b"))
        history, results = judge(log, max_preemption_returns=0)
        assert history.counts["preemption_returns"] == 0
        assert results["no-preemption-loop"].holds is True

    def chain(self, times: int, *, nodes: int = 1, preemptors: str = "a") -> Log:
        """b-0, b-1 …, each in the place of the one before it, are preempted one after the other."""
        log = self.play()
        for number in range(times):
            victim, preemptor, node = f"b-{number}", f"{preemptors}-{number}", f"n{number % nodes}"
            for name in (victim, preemptor):
                log.pod(number * 10, name, node=node if name == victim else "")
            log.victim(number * 10 + 1, victim, preemptor, node)
            for name in (victim, *([preemptor] if preemptors == "a" else [])):
                workload = name.partition("-")[0]
                log.add(
                    number * 10 + 2, "user", "user.pod",
                    pod=f"default/{workload}-{number + 1}", uid=f"uid-{workload}-{number + 1}", workload=workload,
                    n=number + 1, replaces=f"default/{name}",
                )  # fmt: skip
        return log

    def test_one_that_preempts_the_successors_of_its_victim(self) -> None:
        log = self.chain(5, nodes=5)
        assert judge(log, max_preemption_returns=4)[1]["no-preemption-loop"].holds is True
        found = judge(log, max_preemption_returns=3)[1]["no-preemption-loop"]
        assert found.holds is False
        assert "default/b-0, with the pods that took its place, was preempted for default/a-0" in found.detail
        assert "4 more times, the last at 41.000 s" in found.detail

    def test_a_line_of_pods_that_is_preempted_on_one_node_by_whomever(self) -> None:
        assert judge(self.chain(5, preemptors="c"), max_preemption_returns=4)[1]["no-preemption-loop"].holds is True
        found = judge(self.chain(5, preemptors="c"), max_preemption_returns=3)[1]["no-preemption-loop"]
        assert "was preempted on n0 4 more times" in found.detail
        elsewhere = self.chain(5, nodes=5, preemptors="c")
        assert judge(elsewhere, max_preemption_returns=0)[1]["no-preemption-loop"].holds is True


class TestNoNameRunsTwice:
    """db-0 runs on n1; its object goes; another db-0 runs on n2."""

    def play(self, log: Log, *, by: str = "", ends: str = "") -> Result:
        log.pod(0, "db-0", node="n1", uid="old")
        log.add(1, "kubelet/n1", "kubelet.running", pod="default/db-0", uid="old", node="n1", start=0)
        if ends == "terminated":
            log.add(5, "kubelet/n1", "kubelet.terminated", pod="default/db-0", uid="old", node="n1", start=4)
        if ends == "crash":
            log.add(5, "kubelet/n1", "actor.crashed")
        if ends == "stopped":
            log.add(5, "kubelet/n1", "actor.stopped")
        revision = log.gone(6, "db-0")
        if by:
            log.add(
                6, "apiserver/0", "api.request", verb="delete", resource="pods", namespace="default", name="db-0",
                uid="old", by=by, start=5, rev=revision,
            )  # fmt: skip
        log.pod(7, "db-0", node="n2", uid="new")
        log.add(8, "kubelet/n2", "kubelet.running", pod="default/db-0", uid="new", node="n2", start=7)
        return judge(log)[1]["no-name-runs-twice"]

    def test_one_after_the_other(self) -> None:
        found = self.play(Log(), by="kubelet/n1", ends="terminated")
        assert (found.holds, found.detail) == (True, "2 starts of pods under 1 name")

    @pytest.mark.parametrize("by", ["kubelet/n1", "controller/taint-eviction", "scheduler/default-scheduler/0"])
    @pytest.mark.parametrize("ends", ["", "crash"])
    def test_an_object_that_went_before_its_containers(self, by: str, ends: str) -> None:
        found = self.play(Log(), by=by, ends=ends)
        assert found.holds is False
        assert "db-0 runs on n2 while another pod of that name still runs on n1" in found.detail

    @pytest.mark.parametrize("by", ["user", "controller/pod-gc"])
    def test_who_removes_by_force_gets_no_promise(self, by: str) -> None:
        assert self.play(Log(), by=by).holds is True

    def test_a_pod_that_has_ended_runs_again(self) -> None:
        """Its kubelet has heard of it from the past (kubernetes/kubernetes#59848)."""
        log = Log()
        self.play(log, by="kubelet/n1", ends="terminated")
        log.add(9, "kubelet/n1", "kubelet.running", pod="default/db-0", uid="old", node="n1", start=9)
        found = judge(log)[1]["no-name-runs-twice"]
        assert found.holds is False
        assert "9.000 s: default/db-0 runs on n1 while another pod of that name still runs on n2" in found.detail

    @pytest.mark.parametrize("by", ["user", "controller/pod-gc"])
    def test_one_that_was_removed_by_force_may_do_so(self, by: str) -> None:
        log = Log()
        self.play(log, by=by)
        log.add(9, "kubelet/n1", "kubelet.running", pod="default/db-0", uid="old", node="n1", start=9)
        assert judge(log)[1]["no-name-runs-twice"].holds is True

    def test_nor_does_a_pod_without_a_grace_period(self) -> None:
        log = Log()
        log.pod(0, "db-0", uid="old")
        log.pods["db-0"].spec.terminationGracePeriodSeconds = 0
        assert self.play(log, by="controller/taint-eviction").holds is True

    def test_nobody_knows_who_removed_it(self) -> None:
        """The API server crashed between the deletion in the store and its log of the request."""
        assert self.play(Log(), by="").holds is True

    def test_a_mirror_pod_is_no_pod_of_its_own(self) -> None:
        log = Log()
        log.add(1, "kubelet/n1", "kubelet.running", pod="default/proxy-n1", uid="static", node="n1", start=0)
        for second, uid in ((2, "mirror"), (4, "next")):
            log.pod(second, "proxy-n1", node="n1", uid=uid)
            log.pods["proxy-n1"].metadata.annotations[identities.MIRROR] = "static"
            log.pod(second, "proxy-n1", phase="Running")
            log.gone(second + 1, "proxy-n1")
        assert judge(log)[1]["no-name-runs-twice"].holds is True

    def test_a_machine_that_is_gone_runs_nothing(self) -> None:
        assert self.play(Log(), by="controller/statefulset", ends="stopped").holds is True
