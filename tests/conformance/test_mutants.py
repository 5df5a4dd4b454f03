"""``kemu conformance`` asks the code that runs: a bug planted in an actor, or in what it is made of, is noticed.

Each mutant is a plausible mistake. The families named with it must disagree somewhere; that they agree without it is
what the other tests show.
"""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from kemu.emulated.controllers import node_lifecycle, taint_eviction
from kemu.emulated.controllers.volumes import persistent_volumes
from kemu.emulated.kubelet.admission import arrivals, predicates
from kemu.emulated.kubelet.pods import statuses
from kemu.emulated.kubelet.pressure import eviction, eviction_loops
from kemu.emulated.kubelet.probes import workers
from kemu.emulated.kubelet.resizes import allocations
from kemu.emulated.kubelet.sync import pod_workers, status_managers
from kemu.emulated.objects.validation.pod_specs import resizes
from kemu.emulated.objects.volumes import claims, matching
from kemu.emulated.scheduler.cycle import batches, decisions
from kemu.emulated.scheduler.framework.interfaces import Handle
from kemu.emulated.scheduler.plugins.volumes import binders, node_volume_limits, volume_restrictions, volume_zones
from kemu.lab.conformance import registry
from tests.conformance import asked

DATA = Path(__file__).parent / "data"


def is_noticed(kind_name: str, family: str) -> bool:
    """Whether an answer of those that are asked by day disagrees.

    One that fails is no answer, but a mutant that does not fit the code any more.
    """
    kind = registry.kind(kind_name)
    cases = asked.cases(DATA / kind_name / f"{family}.jsonl.gz")
    return any(kind.judged(case.question, case.expect)[1] for case in cases)


# The kubelet's arrivals -----------------------------------------------------------------------------------------------


def test_arrivals_that_judge_the_stale_node_again(monkeypatch: pytest.MonkeyPatch) -> None:
    async def judge_again(self: Any, worker: Any, claim: Any, known: Any) -> None:
        await self._fresh_node()
        self._reading = False
        self._recover(worker, claim, predicates.failures(self.node, self._usage, worker.pod, claim))
        self._judge()

    monkeypatch.setattr(arrivals.Arrivals, "_judge_again", judge_again)
    assert is_noticed("kubelet", "admission")


def test_arrivals_that_kill_one_victim_only(monkeypatch: pytest.MonkeyPatch) -> None:
    preempt = arrivals.Arrivals._preempt
    monkeypatch.setattr(
        arrivals.Arrivals,
        "_preempt",
        lambda self, worker, claim, decision, victims: preempt(self, worker, claim, decision, victims[:1]),
    )
    assert is_noticed("kubelet", "critical-preemption")


def test_arrivals_that_do_not_ask_the_eviction_manager(monkeypatch: pytest.MonkeyPatch) -> None:
    judge = arrivals.Arrivals._judge

    def judge_without(self: Any) -> None:
        self._refuses = lambda pod: None
        judge(self)

    monkeypatch.setattr(arrivals.Arrivals, "_judge", judge_without)
    assert is_noticed("kubelet", "eviction-manager")


def test_pods_that_are_admitted_are_not_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(predicates.NodeClaims, "add", lambda self, claim: None)
    monkeypatch.setattr(predicates.NodeClaims, "remove", lambda self, claim: None)
    assert is_noticed("kubelet", "admission")


# The kubelet's probes ------------------------------------------------------------------------------------------------


def test_probes_without_a_hold_after_a_failure(monkeypatch: pytest.MonkeyPatch) -> None:
    conclude = workers.ProbeWorker._conclude

    def conclude_without(self: Any, *arguments: Any, **more: Any) -> None:
        conclude(self, *arguments, **more)
        self._on_hold = False

    monkeypatch.setattr(workers.ProbeWorker, "_conclude", conclude_without)
    assert is_noticed("kubelet", "probes")


def test_probes_that_are_not_triggered_by_a_sync(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(workers.ProbeWorker, "trigger", lambda self: None)
    assert is_noticed("kubelet", "probes")


def test_probes_that_forget_what_they_slept_through(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(workers.ProbeWorker, "_count", lambda self, said, times: setattr(self, "_run", 1))
    assert is_noticed("kubelet", "probes")


def test_readiness_that_does_not_wait_for_the_gates(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(statuses, "_gates", lambda pod: ("True", "", ""))
    assert is_noticed("kubelet", "readiness")


def test_resizes_that_wait_are_tried_in_the_order_in_which_they_came(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(allocations.Allocations, "_compare", lambda self, first, second: 0)
    assert is_noticed("kubelet", "allocations")


def test_resizes_that_are_sorted_at_every_change(monkeypatch: pytest.MonkeyPatch) -> None:
    push = allocations.Allocations._push

    def push_anew(self: Any, worker: Any) -> None:
        if worker in self._waiting:
            self._waiting.remove(worker)
        push(self, worker)

    monkeypatch.setattr(allocations.Allocations, "_push", push_anew)
    assert is_noticed("kubelet", "allocations")


def test_resizes_that_are_not_tried_again_when_a_pod_leaves(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(allocations.Allocations, "remove", lambda self, worker: None)
    assert is_noticed("kubelet", "allocations")


def test_resizes_that_may_remove_a_request(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(resizes, "_check_removed", lambda *arguments: None)
    assert is_noticed("kubelet", "resize")


# The kubelet's status manager -----------------------------------------------------------------------------------------


def test_statuses_without_the_generation(monkeypatch: pytest.MonkeyPatch) -> None:
    write = statuses.write

    def write_without(status: Any, *arguments: Any, **more: Any) -> None:
        write(status, *arguments, **more)
        for condition in status.conditions:
            condition.ClearField("observedGeneration")

    monkeypatch.setattr(statuses, "write", write_without)
    assert is_noticed("kubelet", "critical-preemption")


def test_a_status_manager_that_keeps_why_to_itself(monkeypatch: pytest.MonkeyPatch) -> None:
    render = status_managers.StatusManager._render

    def render_without(self: Any, *arguments: Any, **more: Any) -> Any:
        pod = render(self, *arguments, **more)
        pod.status.ClearField("reason")
        return pod

    monkeypatch.setattr(status_managers.StatusManager, "_render", render_without)
    assert is_noticed("kubelet", "admission")
    assert is_noticed("kubelet", "eviction-manager")


def test_pod_workers_that_do_not_fail_the_pods_that_they_kill(monkeypatch: pytest.MonkeyPatch) -> None:
    kill = pod_workers.PodWorkers.kill

    def kill_without(self: Any, worker: Any, failure: Any, *more: Any) -> None:
        kill(self, worker, failure, *more)
        worker.failure = None

    monkeypatch.setattr(pod_workers.PodWorkers, "kill", kill_without)
    assert is_noticed("kubelet", "critical-preemption")


# The kubelet's eviction loop ------------------------------------------------------------------------------------------


def test_an_eviction_loop_that_does_not_wait_for_the_cleanup(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(eviction, "CLEANUP_TIMEOUT_S", 0)
    assert is_noticed("kubelet", "eviction-loop")


def test_an_eviction_loop_that_sleeps_after_an_eviction(monkeypatch: pytest.MonkeyPatch) -> None:
    evict = eviction_loops.EvictionLoop._evict

    async def evict_and_sleep(self: Any, workers: Any, outcome: Any) -> None:
        look, self._look = self._look, lambda: None
        await evict(self, workers, outcome)
        await self._clock.sleep(eviction.PASS_INTERVAL_S)
        self._look = look
        look()

    monkeypatch.setattr(eviction_loops.EvictionLoop, "_evict", evict_and_sleep)
    assert is_noticed("kubelet", "eviction-loop")


# The actors of the node controllers -----------------------------------------------------------------------------------


def test_a_node_lifecycle_controller_that_forgets_the_pods(monkeypatch: pytest.MonkeyPatch) -> None:
    async def mark_pods(self: Any, node: str) -> None:
        pass

    monkeypatch.setattr(node_lifecycle.NodeLifecycleController, "_mark_pods", mark_pods)
    assert is_noticed("kubelet", "node-failure")


def test_a_node_lifecycle_controller_that_does_not_follow_conditions(monkeypatch: pytest.MonkeyPatch) -> None:
    async def follow_conditions(self: Any, name: str) -> None:
        pass

    monkeypatch.setattr(node_lifecycle.NodeLifecycleController, "_follow_conditions", follow_conditions)
    assert is_noticed("kubelet", "node-failure")


def test_a_node_lifecycle_controller_that_looks_at_fixed_times(monkeypatch: pytest.MonkeyPatch) -> None:
    """The period counts from the end of a look: who counts from its beginning finds nodes lost one period later."""

    async def run(self: Any) -> None:
        await self.begin(self._leases, self._nodes)
        self.env.spawn(self.work(self._queue, self._follow_conditions), "taints by condition")
        self.env.spawn(self._taint_lost_nodes(), "taints of lost nodes")
        while True:
            now_ns = self.clock.now_ns()
            due_ns = now_ns + int(self._period_s * 1e9)
            await self._carry_out(self._look(now_ns), now_ns)
            if self._health.is_waiting:
                self._somebody_waits.set()
            await self.clock.sleep_until_ns(due_ns)

    monkeypatch.setattr(node_lifecycle.NodeLifecycleController, "run", run)
    assert is_noticed("kubelet", "node-failure")


def test_a_taint_eviction_controller_that_keeps_its_first_alarm(monkeypatch: pytest.MonkeyPatch) -> None:
    arm = taint_eviction.TaintEvictionController._arm

    def arm_once(self: Any) -> None:
        if self._timer is None:
            arm(self)

    monkeypatch.setattr(taint_eviction.TaintEvictionController, "_arm", arm_once)
    assert is_noticed("kubelet", "taint-eviction")


def test_a_taint_eviction_controller_that_does_not_hear_of_nodes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(taint_eviction.TaintEvictionController, "_set_node", lambda self, node: None)
    assert is_noticed("kubelet", "taint-eviction")
    assert is_noticed("kubelet", "node-failure")


# The scheduler's decide -----------------------------------------------------------------------------------------------


def test_a_tie_break_among_all_nodes(monkeypatch: pytest.MonkeyPatch) -> None:
    def choose(self: Any, decision: Any, rows: Any, totals: Any, **_: Any) -> None:
        decision.ties = len(rows)
        decision.node = self.cluster.rows[int(rows[self.random.randrange(len(rows))])].name

    monkeypatch.setattr(decisions.Decider, "choose", choose)
    assert is_noticed("scheduler", "fit")


def test_totals_that_leave_a_scorer_out(monkeypatch: pytest.MonkeyPatch) -> None:
    """Only those that ``decide`` compares, not those of the explanation."""
    totals = decisions.Decider.totals

    def totals_without(self: Any, filtering: Any, rows: Any) -> Any:
        found = totals(self, filtering, rows)
        return found - self.scores(filtering, rows).get("NodeResourcesBalancedAllocation", 0)

    monkeypatch.setattr(decisions.Decider, "totals", totals_without)
    assert is_noticed("scheduler", "fit")


def test_a_nominated_node_that_is_not_tried_first(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(decisions.Decider, "nominated", lambda self, filtering: None)
    assert is_noticed("scheduler", "preempt")


@pytest.mark.parametrize("family", ["sampling", "profiles"])
def test_a_start_row_that_stays_where_it_is(family: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Handle, "start_row", property(lambda self: 0, lambda self, row: None), raising=False)
    assert is_noticed("scheduler", family)


def test_searches_whose_results_are_never_used_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(batches.Batches, "hint", lambda self, filtering: "")
    assert is_noticed("scheduler", "batching")


def test_results_that_are_used_while_the_last_node_has_room(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(batches, "verdicts", SimpleNamespace(first=lambda active, node: 1))
    assert is_noticed("scheduler", "batching")


def test_a_start_row_that_is_one_node_late(monkeypatch: pytest.MonkeyPatch) -> None:
    def set_row(self: Handle, row: int) -> None:
        self.__dict__["row"] = row + 1 if row else 0

    late = property(lambda self: self.__dict__["row"], set_row)
    monkeypatch.setattr(Handle, "start_row", late, raising=False)
    assert is_noticed("scheduler", "sampling")


def test_a_sample_that_is_one_node_too_large(monkeypatch: pytest.MonkeyPatch) -> None:
    to_find = decisions.nodes_to_find
    monkeypatch.setattr(decisions, "nodes_to_find", lambda *arguments: to_find(*arguments) + 1)
    assert is_noticed("scheduler", "sampling")


# Volumes --------------------------------------------------------------------------------------------------------------


def test_a_claim_gets_the_largest_volume(monkeypatch: pytest.MonkeyPatch) -> None:
    find = matching.find

    def largest(claim: Any, volumes: Any, *arguments: Any, **options: Any) -> Any:
        by_size = sorted(volumes, key=claims.capacity, reverse=True)
        found = (find(claim, [one], *arguments, **options) for one in by_size)
        return next((one for one in found if one is not None), None)

    monkeypatch.setattr(matching, "find", largest)
    assert is_noticed("volumes", "volume-binding")


def test_a_volume_is_created_wherever_the_node_is(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(binders.Binder, "_has_room", lambda self, storage_class, claim, node: (True, None))
    assert is_noticed("volumes", "volume-binding")


def test_the_binder_looks_less_often(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(binders, "POLL_S", 2.0)
    assert is_noticed("volumes", "volume-binding")


def test_attached_volumes_do_not_count(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(node_volume_limits.NodeVolumeLimits, "_attached_to", lambda self, node: {})
    assert is_noticed("scheduler", "volumes")


def test_a_claim_of_one_pod_is_shared(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(volume_restrictions._State, "count", lambda self, pod, change: None)
    assert is_noticed("scheduler", "volumes")


def test_old_labels_of_zones_are_not_known(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(volume_zones, "_TODAY", {})
    assert is_noticed("scheduler", "volumes")


def test_volumes_of_other_claims_are_never_given_back(monkeypatch: pytest.MonkeyPatch) -> None:
    async def keep(self: Any, volume: Any) -> None:
        pass

    monkeypatch.setattr(persistent_volumes.PersistentVolumeController, "_unbind", keep)
    assert is_noticed("volumes", "pv-controller")


def test_any_volume_suits_the_claim_that_names_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(persistent_volumes, "_why_not", lambda volume, claim: "")
    assert is_noticed("volumes", "pv-controller")
