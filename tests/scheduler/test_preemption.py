"""Who has to go: the victims, the node, and the switches that change the rules."""

from __future__ import annotations

import random
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kemu import errors
from kemu.emulated.objects import meta
from kemu.emulated.objects.conversion import convert
from kemu.emulated.scheduler.cache.cluster import Cluster
from kemu.emulated.scheduler.cycle import verdicts
from kemu.emulated.scheduler.cycle.simulations import Simulation
from kemu.emulated.scheduler.experiments.switches import policy_of
from kemu.emulated.scheduler.framework.results import PostFilterResult
from kemu.emulated.scheduler.plugins.default_preemption import DefaultPreemption
from kemu.emulated.scheduler.preemption import candidates as preemption
from kemu.lab.conformance.scheduler import small_clusters
from kemu.messages.k8s import core_v1_pb2
from tests.scheduler import objects


def preempt(cluster: Cluster, pod: core_v1_pb2.Pod, **policy: Any) -> PostFilterResult:
    decider = objects.decider(cluster, policy=policy)
    decision = decider.decide(cluster.pending(pod))
    assert decision.node == ""
    assert decision.filtering is not None
    plugin = decider.profile.plugins["DefaultPreemption"]
    assert isinstance(plugin, DefaultPreemption)
    return plugin.post_filter(decision.filtering)


def victims(result: PostFilterResult) -> list[str]:
    assert result.candidate is not None
    return preemption.names(result.candidate.victims)


def on_one_node(*pods: core_v1_pb2.Pod) -> Cluster:
    return objects.cluster_of([objects.node("n1")], pods)


def test_the_documents_node_of_ten_units() -> None:
    """Running {priority 0: 3, 1: 1, 2: 5, 3: 1}, pending priority 10 with 5: only the pod of priority 2 goes."""
    running = [
        objects.pod(f"p{priority}", cpu, priority=priority, on="n1", start_s=priority)
        for priority, cpu in ((0, "3"), (1, "1"), (2, "5"), (3, "1"))
    ]
    assert victims(preempt(on_one_node(*running), objects.pod("new", "5", priority=10))) == ["p2"]


def test_a_best_effort_pod_is_never_a_victim_for_room() -> None:
    cluster = on_one_node(objects.pod("idle", None, on="n1"), objects.pod("busy", "10", on="n1"))
    assert victims(preempt(cluster, objects.pod("new", "5", priority=10))) == ["busy"]


def test_pods_of_the_same_priority_stay() -> None:
    result = preempt(on_one_node(objects.pod("x", "10", priority=10, on="n1")), objects.pod("new", "5", priority=10))
    assert (result.node, result.candidate) == ("", None)
    assert "1 No preemption victims found for incoming pod." in result.message


def test_of_equals_the_younger_goes() -> None:
    cluster = on_one_node(
        objects.pod("old", "5", on="n1", start_s=100), objects.pod("young", "5", on="n1", start_s=200)
    )
    assert victims(preempt(cluster, objects.pod("new", "5", priority=10))) == ["young"]


def test_of_pods_that_started_together_the_last_on_the_list_goes() -> None:
    """kube-scheduler lists a node's pods as they came; an update puts a pod last, and the last one in its place."""
    a, b, c = (objects.pod(name, "3", on="n1", start_s=100) for name in ("a", "b", "c"))
    new = objects.pod("new", "4", priority=10)
    cluster = on_one_node(a, b, c)
    assert victims(preempt(cluster, new)) == ["c"]
    seen = objects.pod("a", "3", on="n1", start_s=100)
    seen.status.message = "all is well"
    cluster.see_pod(seen, spec_changed=False)
    assert victims(preempt(cluster, new)) == ["a"]
    cluster.remove_pod("uid-c")
    cluster.see_pod(objects.pod("d", "3", on="n1", start_s=100))
    assert list(cluster.nodes["n1"].pods) == ["uid-a", "uid-b", "uid-d"]


def test_after_a_victim_that_could_not_be_deleted_the_others_stay_until_the_next_attempt() -> None:
    asked: list[str] = []

    def fail_once(world: small_clusters.World) -> None:
        delete = world.delete

        async def refuse(resource: str, name: str, namespace: str = "", *, uid: str = "") -> None:
            asked.append(name)
            if asked == [name]:
                raise errors.InternalError("not now")
            await delete(resource, name, namespace, uid=uid)

        world.delete = refuse  # type: ignore[method-assign]

    running = [objects.pod(f"p{priority}", "5", priority=priority, on="n1", start_s=1) for priority in (1, 0)]
    pods = [*running, objects.pod("new", "10", priority=10)]
    case = {
        "start": "2026-01-01T00:00:00Z",
        "horizon_s": 20,
        "nodes": [convert.to_json(objects.node("n1"))],
        "pods": [convert.to_json(pod) for pod in pods],
    }
    small_clusters.play(case, watch=fail_once)
    assert asked == ["p1", "p1", "p0"]


def nodes_with(*groups: Sequence[core_v1_pb2.Pod]) -> Cluster:
    """Nodes n0, n1, … with these pods, which fill them."""
    for number, group in enumerate(groups):
        for pod in group:
            pod.spec.nodeName = f"n{number}"
    return objects.cluster_of(
        [objects.node(f"n{number}") for number in range(len(groups))], [pod for group in groups for pod in group]
    )


@pytest.mark.parametrize(
    ("first", "second", "why"),
    [
        ([("a", "10", 5, 1)], [("b", "10", 4, 1)], "the lowest highest priority"),
        ([("a", "5", 4, 1), ("b", "5", 4, 1)], [("c", "5", 4, 1), ("d", "5", 3, 1)], "the smallest sum"),
        ([("a", "5", 4, 1), ("b", "5", 4, 1)], [("c", "10", 4, 1)], "the fewest victims"),
        ([("a", "10", 4, 1)], [("b", "10", 4, 2)], "the latest start"),
    ],
)
def test_which_node(first: list[Any], second: list[Any], why: str) -> None:
    def pods(group: list[Any]) -> list[core_v1_pb2.Pod]:
        return [objects.pod(name, cpu, priority=p, on="?", start_s=start) for name, cpu, p, start in group]

    assert preempt(nodes_with(pods(first), pods(second)), objects.pod("new", "10", priority=10)).node == "n1", why
    assert preempt(nodes_with(pods(second), pods(first)), objects.pod("new", "10", priority=10)).node == "n0", why


def test_budgets_are_respected_where_possible() -> None:
    protected = objects.pod("protected", "10", priority=1, on="n0", labels={"app": "db"})
    free = objects.pod("free", "10", priority=5, on="n1")
    cluster = objects.cluster_of([objects.node("n0"), objects.node("n1")], [protected, free])
    cluster.set_budget("default/db", objects.budget("db", {"app": "db"}, 0))
    new = objects.pod("new", "10", priority=10)
    assert preempt(cluster, new).node == "n1"
    assert preempt(cluster, new, pdb="ignore").node == "n0"
    cluster.set_budget("default/db", objects.budget("db", {"app": "db"}, 1))
    assert preempt(cluster, new).node == "n0"


def test_a_budget_that_only_counts_its_pods_anew_makes_no_dry_run_go_again(monkeypatch: pytest.MonkeyPatch) -> None:
    cluster = objects.cluster_of(
        [objects.node("n0"), objects.node("n1")],
        [objects.pod(f"db-{n}", "10", priority=1, on=f"n{n}", labels={"app": "db"}) for n in (0, 1)],
    )
    runs = 0
    spare = preemption.Preemptor.spare

    def counted(*arguments: Any) -> Any:
        nonlocal runs
        runs += 1
        return spare(*arguments)

    monkeypatch.setattr(preemption.Preemptor, "spare", counted)
    decider = objects.decider(cluster)
    plugin = decider.profile.plugins["DefaultPreemption"]
    assert isinstance(plugin, DefaultPreemption)

    def dry_runs(change: Any) -> int:
        nonlocal runs
        runs, budget = 0, objects.budget("db", {"app": "db"}, 0)
        change(budget)
        cluster.set_budget("default/db", budget)
        decision = decider.decide(cluster.pending(objects.pod("new", "10", priority=10)))
        assert decision.filtering is not None
        plugin.post_filter(decision.filtering)
        return runs

    def allow(budget: Any) -> None:
        budget.status.disruptionsAllowed = 1

    def count(budget: Any) -> None:
        budget.status.currentHealthy = 7

    def disrupt(budget: Any) -> None:
        budget.status.disruptedPods["db-1"].seconds = 1

    def select(budget: Any) -> None:
        budget.spec.selector.matchLabels["app"] = "web"

    same = lambda budget: None  # noqa: E731
    assert dry_runs(same) == dry_runs(same) == 2  # of the first pod of a template nothing is kept
    assert [dry_runs(change) for change in (same, count, same)] == [0, 0, 0]
    for change in (allow, disrupt, select):
        assert dry_runs(change) == 2
        assert [dry_runs(change) for _ in range(2)] == [2, 0]


def test_a_budget_only_helps_to_be_spared_first() -> None:
    cluster = on_one_node(
        objects.pod("protected", "5", priority=1, on="n1", labels={"app": "db"}),
        objects.pod("other", "5", priority=2, on="n1"),
    )
    cluster.set_budget("default/db", objects.budget("db", {"app": "db"}, 0))
    result = preempt(cluster, objects.pod("new", "5", priority=10))
    assert victims(result) == ["other"]
    result = preempt(cluster, objects.pod("new", "10", priority=10))
    assert victims(result) == ["other", "protected"]
    assert result.candidate is not None
    assert result.candidate.violations == 1


def terminating(pod: core_v1_pb2.Pod, *, by_preemption: bool = True) -> core_v1_pb2.Pod:
    pod.metadata.deletionTimestamp.seconds = 100
    if by_preemption:
        meta.set_condition(pod.status.conditions, "DisruptionTarget", "True", "PreemptionByScheduler", "", 0)
    return pod


def nominated(pod: core_v1_pb2.Pod, node: str) -> core_v1_pb2.Pod:
    pod.status.nominatedNodeName = node
    return pod


def test_a_pod_that_never_preempts() -> None:
    new = objects.pod("new", "10", priority=10, preemptionPolicy="Never")
    result = preempt(on_one_node(objects.pod("x", "10", on="n1")), new)
    assert (result.node, result.candidate) == (None, None)
    assert result.message.endswith("not eligible due to preemptionPolicy=Never.")


def test_victims_on_the_nominated_node_are_waited_for() -> None:
    cluster = objects.cluster_of(
        [objects.node("n1"), objects.node("n2")],
        [terminating(objects.pod("going", "10", on="n1")), objects.pod("x", "10", on="n2")],
    )
    result = preempt(cluster, nominated(objects.pod("new", "10", priority=10), "n1"))
    assert (result.node, result.candidate) == (None, None)


@pytest.mark.parametrize(("eligibility", "preempts"), [("current", True), ("alpha", False)])
def test_pods_that_end_for_another_reason_are_waited_for_in_alpha_only(eligibility: str, preempts: bool) -> None:
    cluster = on_one_node(terminating(objects.pod("going", "10", on="n1"), by_preemption=False))
    new = nominated(objects.pod("new", "10", priority=10), "n1")
    assert (preempt(cluster, new, eligibility=eligibility).candidate is not None) is preempts


def test_nobody_preempts() -> None:
    cluster = on_one_node(objects.pod("x", "10", on="n1"))
    for policy in ({"disablePreemption": True}, {"preemptor": "none"}):
        assert preempt(cluster, objects.pod("new", "10", priority=10), **policy) == PostFilterResult()


def test_by_quality_of_service_first() -> None:
    limits = {"requests": {"cpu": "5", "memory": "1Gi"}, "limits": {"cpu": "5", "memory": "1Gi"}}
    containers = [{"name": "main", "image": "app:1", "resources": limits}]
    burstable = objects.pod("web", "10", priority=1000, on="n1")
    guaranteed = objects.pod("new", None, priority=1, containers=containers)
    assert preempt(on_one_node(burstable), guaranteed).candidate is None
    assert victims(preempt(on_one_node(burstable), guaranteed, victimOrder="qos")) == ["web"]


@settings(max_examples=150, deadline=None)
@given(st.data())
def test_the_quick_dry_run_agrees_with_the_general_one(data: st.DataObject) -> None:
    """Resources alone, by sums; or by asking the filters again and again."""
    amount = st.sampled_from(["1", "2", "3", "500m", None])
    running = [
        objects.pod(
            f"p{number}",
            data.draw(amount),
            priority=data.draw(st.integers(0, 4)),
            on="n1",
            start_s=data.draw(st.integers(1, 3)),
            labels={"app": data.draw(st.sampled_from(["a", "b"]))},
        )
        for number in range(data.draw(st.integers(0, 8)))
    ]
    node = objects.node("n1", cpu=data.draw(st.sampled_from(["4", "8"])), pods=data.draw(st.sampled_from(["3", "110"])))
    cluster = objects.cluster_of([node], running)
    cluster.set_budget("default/a", objects.budget("a", {"app": "a"}, data.draw(st.integers(0, 2))))
    decider = objects.decider(cluster)
    pod = objects.pod("new", data.draw(amount), priority=data.draw(st.integers(0, 5)))
    filtering = decider.filter(cluster.pending(pod))
    if filtering.status(0) is None:
        return
    plugin = decider.profile.plugins["DefaultPreemption"]
    assert isinstance(plugin, DefaultPreemption)
    quick = plugin.preemptor.dry_runs(filtering, np.array([0]), 0, 1)
    general = plugin.preemptor.dry_run(filtering, cluster.rows[0])
    assert quick == (([general], {}) if isinstance(general, preemption.Candidate) else ([], {"n1": general}))


@pytest.mark.thorough
@settings(max_examples=150, deadline=None)
@given(st.data())
def test_filters_that_let_a_node_pass_anyway_need_not_be_asked(data: st.DataObject) -> None:
    """Affinity and spreading, where no pod of the node makes a difference to them: same verdicts, same victims."""
    names = ["n0", "n1", "n2"]
    nodes = [data.draw(objects.nodes(name)) for name in names]
    for node in nodes:
        node.metadata.labels[objects.ZONE] = "x"
    running = [data.draw(objects.pods(f"p{n}", on=data.draw(st.sampled_from(names)))) for n in range(10)]
    cluster = objects.cluster_of(nodes, running)
    for number in range(data.draw(st.integers(0, 2))):
        other = cluster.pending(data.draw(objects.pods(f"other{number}")))
        cluster.nominator.nominate(other, data.draw(st.sampled_from(names)))
    pod = data.draw(objects.pods("new"))
    pod.spec.priority = 10
    term = {"labelSelector": {"matchLabels": {"app": data.draw(st.sampled_from("ab"))}}, "topologyKey": objects.ZONE}
    near = pod.spec.affinity.podAffinity.requiredDuringSchedulingIgnoredDuringExecution
    if data.draw(st.booleans()):
        near.append(convert.from_json(core_v1_pb2.PodAffinityTerm, term))
    decider = objects.decider(cluster)
    cluster.settle()
    filtering = decider.filter(cluster.pending(pod))
    plugin = decider.profile.plugins["DefaultPreemption"]
    assert isinstance(plugin, DefaultPreemption)
    if filtering.rejection is not None:
        return
    for info in cluster.rows:
        simulation = Simulation(filtering, info)
        assert simulation.verdict() == filtering.verdicts[info.row]
        if filtering.is_local(info):
            found = plugin.preemptor.dry_run(filtering, info, local=True)
            assert found == plugin.preemptor.dry_run(filtering, info)


@settings(max_examples=100, deadline=None)
@given(st.data())
def test_where_nobody_is_lower_the_reason_is_that_of_trying_every_node(data: st.DataObject) -> None:
    nodes = [objects.node(f"n{n}", cpu=data.draw(st.sampled_from(["2", "8"]))) for n in range(4)]
    running = [
        objects.pod(f"p{n}", "1", priority=data.draw(st.integers(3, 5)), on=f"n{data.draw(st.integers(0, 3))}")
        for n in range(8)
    ]
    cluster = objects.cluster_of(nodes, running)
    for number in data.draw(st.sets(st.integers(0, 7))):
        cluster.remove_pod(f"uid-p{number}")
    decider = objects.decider(cluster)
    filtering = decider.filter(cluster.pending(objects.pod("new", "8", priority=data.draw(st.integers(2, 4)))))
    preemptor = preemption.Preemptor(cluster, policy_of({}), random.Random(0), lambda nodes: nodes)
    found = preemptor.preempt(filtering)
    potential = preemptor.potential_rows(filtering)
    candidates, failures = preemptor.dry_runs(filtering, potential, 0, len(nodes))
    assert found.candidates == len(candidates)
    assert found.message == ("" if candidates else preemptor.failure(filtering, failures))


@settings(max_examples=100, deadline=None)
@given(st.data())
def test_no_victim_could_have_stayed(data: st.DataObject) -> None:
    """Without any one of its victims gone, the pod would not fit; and none is more important than the pod."""
    running = [
        objects.pod(
            f"p{number}", data.draw(st.sampled_from(["1", "2", "4"])), priority=data.draw(st.integers(0, 9)), on="n1"
        )
        for number in range(data.draw(st.integers(1, 8)))
    ]
    cluster = on_one_node(*running)
    decider = objects.decider(cluster)
    pod = cluster.pending(objects.pod("new", "6", priority=5))
    decision = decider.decide(pod)
    if decision.node or decision.filtering is None:
        return
    plugin = decider.profile.plugins["DefaultPreemption"]
    assert isinstance(plugin, DefaultPreemption)
    candidate = plugin.post_filter(decision.filtering).candidate
    if candidate is None:
        return
    assert all(victim.priority < 5 for victim in candidate.victims)
    for spared in candidate.victims:
        for victim in candidate.victims:
            if victim is not spared:
                cluster.remove_pod(victim.uid)
        assert decider.decide(pod).node == ""
        for victim in candidate.victims:
            if victim is not spared:
                cluster.add_pod(victim, "n1")
    for victim in candidate.victims:
        cluster.remove_pod(victim.uid)
    assert decider.decide(pod).node == "n1"


@pytest.mark.parametrize("seed", range(20))
def test_what_earlier_searches_found_changes_nothing(seed: int) -> None:
    """Nodes known to be no candidates, rows with a verdict, tallies: as if nothing had been looked at before."""
    draw, rng = random.Random(seed), random.Random()
    names = [f"n{number}" for number in range(6)]
    cluster = objects.cluster_of(
        [objects.node(name, cpu=draw.choice(("2", "8", "10"))) for name in names],
        [objects.pod(f"p{n}", "3", priority=draw.randrange(7), on=names[n % 6], start_s=1) for n in range(9)],
    )
    decider, wanted = objects.decider(cluster), draw.randint(1, 6)
    preemptor = preemption.Preemptor(cluster, policy_of({}), rng, lambda nodes: wanted)
    waiting = [cluster.pending(objects.pod(f"new{n}", "8", priority=5)) for n in range(4)]
    for step in range(40):
        what, name = draw.randrange(8), draw.choice(names)
        if what == 0:
            cluster.add_pod(cluster.pod(objects.pod(f"more{step}", "1", priority=2, start_s=step)), name)
        elif what == 1 and cluster.nodes[name].pods:
            cluster.remove_pod(next(iter(cluster.nodes[name].pods)))
        elif what == 2:
            cluster.nominator.nominate(draw.choice(waiting), name)
        elif what == 3:
            cluster.set_node(objects.node(name, cpu=draw.choice(("2", "9"))))
        pod = draw.choice(waiting)
        filtering, anew = decider.filter(pod), objects.decider(cluster).filter(pod)
        assert filtering.verdicts[:6].tolist() == anew.verdicts[:6].tolist()
        assert filtering.tally == verdicts.tally_of(anew.verdicts[:6])
        assert preemptor.potential_rows(filtering).tolist() == preemptor.potential_rows(anew).tolist()
        rng.seed(step)
        first = preemption.Preemptor(cluster, policy_of({}), random.Random(step), lambda nodes: wanted)
        assert preemptor.preempt(filtering) == first.preempt(anew)
