"""The searches for victims that Kubernetes rejected: on several nodes, and around affinity to lower pods."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kemu.emulated.objects import meta
from kemu.emulated.scheduler.cache.cluster import Cluster
from kemu.emulated.scheduler.cycle.simulations import Simulation
from kemu.emulated.scheduler.experiments import cross_node, searches
from kemu.emulated.scheduler.experiments.switches import PolicyError, policy_of
from kemu.emulated.scheduler.framework.results import PostFilterResult
from kemu.emulated.scheduler.preemption import candidates
from kemu.messages.k8s import core_v1_pb2
from tests.scheduler import objects
from tests.scheduler.test_preemption import preempt, victims

ZONED = {objects.ZONE: "a"}


def away_from(app: str, key: str = objects.ZONE) -> dict[str, Any]:
    term = {"labelSelector": {"matchLabels": {"app": app}}, "topologyKey": key}
    return {"affinity": {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}}


def near_to(app: str) -> dict[str, Any]:
    term = {"labelSelector": {"matchLabels": {"app": app}}, "topologyKey": "kubernetes.io/hostname"}
    return {"affinity": {"podAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}}


def zone_of(*pods: core_v1_pb2.Pod) -> Cluster:
    """Nodes n and m of one zone."""
    return objects.cluster_of([objects.node("n", ZONED), objects.node("m", ZONED)], pods)


@pytest.mark.parametrize("size", range(6))
def test_subsets_come_in_the_order_of_their_last_items(size: int) -> None:
    found = list(searches.subsets(range(5), size))
    assert sorted(found) == sorted(itertools.combinations(range(5), size))
    assert [one[-1:] for one in found] == sorted(one[-1:] for one in found)


# Several nodes --------------------------------------------------------------------------------------------------------


def full_of(*others: core_v1_pb2.Pod) -> Cluster:
    """On m, beside the others, a pod that nobody can preempt and that leaves no room for more than they take."""
    return zone_of(objects.pod("heavy", "8", priority=2000, on="m"), *others)


def test_q_goes_from_another_node_of_the_zone() -> None:
    cluster = full_of(objects.pod("q", labels={"app": "q"}, on="m"), objects.pod("idle", on="m"))
    new = objects.pod("p", "5", priority=10, **away_from("q"))
    assert preempt(cluster, new).candidate is None
    result = preempt(cluster, new, crossNodePreemption=True)
    assert (result.node, victims(result)) == ("n", ["q"])
    (effort,) = result.efforts
    assert (effort.algorithm, effort.found, effort.gave_up) == ("crossNodePreemption", True, False)


def test_pods_of_the_node_itself_go_too_where_they_must() -> None:
    cluster = full_of(
        objects.pod("q", labels={"app": "q"}, on="m"),
        objects.pod("r", "4", on="n", start_s=1),
        objects.pod("s", "6", on="n", start_s=2),
    )
    result = preempt(cluster, objects.pod("p", "6", priority=10, **away_from("q")), crossNodePreemption=True)
    assert (result.node, victims(result)) == ("n", ["s", "q"])


def test_the_anti_affinity_of_the_others_counts_as_well() -> None:
    q = objects.pod("q", on="m", **away_from("p"))
    new = objects.pod("p", "5", priority=10, labels={"app": "p"})
    assert victims(preempt(full_of(q), new, crossNodePreemption=True)) == ["q"]


def test_pods_that_are_as_important_stay() -> None:
    cluster = full_of(objects.pod("q", priority=10, labels={"app": "q"}, on="m"), objects.pod("idle", on="m"))
    result = preempt(cluster, objects.pod("p", "5", priority=10, **away_from("q")), crossNodePreemption=True)
    assert (result.node, result.candidate) == ("", None)
    assert not result.efforts[0].found
    assert not result.efforts[0].gave_up


def test_what_the_node_alone_decides_is_not_searched_for() -> None:
    cluster = full_of(*(objects.pod(f"idle-{number}", "100m", on="m") for number in range(20)))
    result = preempt(cluster, objects.pod("p", "11", priority=10, **away_from("q")), crossNodePreemption=True)
    assert result.candidate is None
    assert sum(effort.evaluations for effort in result.efforts) <= 2


@pytest.mark.parametrize(("budget", "found"), [(1, False), (2, False), (1000, True)])
def test_it_gives_up_when_the_budget_is_spent(budget: int, found: bool) -> None:
    cluster = full_of(
        objects.pod("q", priority=5, labels={"app": "q"}, on="m"),
        *(objects.pod(f"idle-{number}", "10m", on="m") for number in range(5)),
    )
    new = objects.pod("p", "5", priority=10, **away_from("q"))
    result = preempt(cluster, new, crossNodePreemption={"budget": budget})
    (effort,) = result.efforts
    assert (result.candidate is not None, effort.found, effort.gave_up) == (found, found, not found)
    assert effort.evaluations <= budget


def test_the_price_grows_with_the_number_of_those_in_the_way() -> None:
    """n pods elsewhere, k of them in the way and the most important ones: every smaller set is tried before."""

    def price(others: int, in_the_way: int) -> int:
        idle = [objects.pod(f"idle-{number}", "1m", on="m") for number in range(others - in_the_way)]
        crowd = [
            objects.pod(f"q-{number}", "1m", priority=5, labels={"app": "q"}, on="m") for number in range(in_the_way)
        ]
        new = objects.pod("p", "5", priority=10, **away_from("q"))
        result = preempt(full_of(*idle, *crowd), new, crossNodePreemption={"budget": 100_000})
        assert len(victims(result)) == in_the_way
        return result.efforts[0].evaluations

    # Two nodes looked at first, then all sets up to that size.
    assert [price(10, k) for k in (1, 2, 3)] == [2 + 10, 2 + 10 + 45, 2 + 10 + 45 + 120]
    assert price(20, 2) == 2 + 20 + 190


def test_sets_without_violated_budgets_come_first() -> None:
    """Two zones, one pod in the way in each; the less important one is under a budget."""
    nodes = [objects.node(f"{kind}-{zone}", {objects.ZONE: zone}) for zone in "ab" for kind in ("n", "m")]
    running = [objects.pod(f"heavy-{zone}", "8", priority=2000, on=f"m-{zone}") for zone in "ab"]
    running += [
        objects.pod("q-a", priority=1, labels={"app": "q", "tier": "db"}, on="m-a"),
        objects.pod("q-b", priority=5, labels={"app": "q"}, on="m-b"),
    ]
    cluster = objects.cluster_of(nodes, running)
    cluster.set_budget("default/db", objects.budget("db", {"tier": "db"}, 0))
    new = objects.pod("p", "5", priority=10, **away_from("q"))
    assert victims(preempt(cluster, new, crossNodePreemption=True)) == ["q-b"]
    assert victims(preempt(cluster, new, crossNodePreemption=True, pdb="ignore")) == ["q-a"]


def test_while_victims_on_other_nodes_terminate_nobody_else_is_preempted() -> None:
    q, other = objects.pod("q", labels={"app": "q"}, on="m"), objects.pod("other", labels={"app": "q"}, on="m")
    for pod in (q, other):
        pod.metadata.deletionTimestamp.seconds = 100
        meta.set_condition(pod.status.conditions, "DisruptionTarget", "True", "PreemptionByScheduler", "", 0)
    new = objects.pod("p", "5", priority=10, **away_from("q"))
    new.status.nominatedNodeName = "n"
    result = preempt(full_of(q, other), new, crossNodePreemption=True)
    assert (result.node, result.candidate) == (None, None)
    assert result.message.endswith(cross_node.TERMINATING)
    # One that does not go bars the way still.
    third = objects.pod("third", labels={"app": "q"}, on="m")
    result = preempt(full_of(q, other, third), new, crossNodePreemption=True)
    assert set(victims(result)) == {"q", "other", "third"}


def test_spreading_over_zones() -> None:
    """Two pods of the kind in zone a, none in b, whose only node is full of what must stay: P needs one of a gone."""
    nodes = [objects.node("n", {objects.ZONE: "a"}), objects.node("m", {objects.ZONE: "a"})]
    nodes.append(objects.node("far", {objects.ZONE: "b"}))
    running = [
        objects.pod("heavy", "9", priority=2000, on="m"),
        objects.pod("stone", "10", priority=2000, on="far"),
        objects.pod("twin", "500m", labels={"app": "p"}, on="m"),
    ]
    constraint = {
        "maxSkew": 1,
        "topologyKey": objects.ZONE,
        "whenUnsatisfiable": "DoNotSchedule",
        "labelSelector": {"matchLabels": {"app": "p"}},
    }
    new = objects.pod("p", "5", priority=10, labels={"app": "p"}, topologySpreadConstraints=[constraint])
    cluster = objects.cluster_of(nodes, running)
    assert preempt(cluster, new).candidate is None
    result = preempt(cluster, new, crossNodePreemption=True)
    assert (result.node, victims(result)) == ("n", ["twin"])


@pytest.mark.thorough
@settings(max_examples=100, deadline=None)
@given(st.data())
def test_a_simulation_without_pods_elsewhere_says_what_the_filters_say_when_they_are_gone(data: st.DataObject) -> None:
    names = ["n0", "n1", "n2", "n3"]
    nodes = [data.draw(objects.nodes(name)) for name in names]
    running = [data.draw(objects.pods(f"p{n}", on=data.draw(st.sampled_from(names)))) for n in range(8)]
    cluster = objects.cluster_of(nodes, running)
    pod = cluster.pending(data.draw(objects.pods("new")))
    decider = objects.decider(cluster)
    cluster.settle()
    filtering = decider.filter(pod)
    if filtering.rejection is not None or not filtering.states:
        return
    gone = [cluster.pods[f"uid-p{n}"] for n in sorted(data.draw(st.sets(st.integers(0, 7))))]
    said: dict[str, str] = {}
    for node in cluster.rows:
        simulation = Simulation(filtering, node)
        for one in gone:
            if one.node_name == node.name:
                simulation.remove(one)
                continue
            before = simulation.verdict()
            simulation.remove_elsewhere(one)
            there = cluster.nodes[one.node_name]
            reached = [plugin.reach(state, there, one) for _, plugin, state in filtering.filters()]
            if not any(labels is None or node.labels.items() & set(labels) for labels in reached):
                assert simulation.verdict() == before
        verdict = simulation.verdict()
        said[node.name] = filtering.explain(verdict).message if verdict else ""
        for one in gone:
            if one.node_name != node.name:
                simulation.add_elsewhere(one)
            else:
                simulation.add(one)
        assert simulation.verdict() == filtering.verdicts[node.row]
    for one in gone:
        cluster.remove_pod(one.uid)
    after = decider.filter(pod)
    statuses = {node.name: after.status(node.row) for node in cluster.rows}
    assert said == {name: "" if status is None else status.message for name, status in statuses.items()}


NAMES = ["n0", "n1", "n2"]


def crowded(data: st.DataObject, most: int) -> tuple[Any, Any]:
    """A cluster of three nodes, with so many pods at most, and a pod that is to keep away from some of them."""
    running = [
        objects.pod(
            f"p{number}",
            data.draw(st.sampled_from(["1", "4"])),
            priority=data.draw(st.sampled_from([0, 5, 20])),
            on=data.draw(st.sampled_from(NAMES)),
            labels={"app": data.draw(st.sampled_from("ab"))},
        )
        for number in range(data.draw(st.integers(1, most)))
    ]
    nodes = [objects.node(name, {objects.ZONE: data.draw(st.sampled_from("xy"))}, cpu="6") for name in NAMES]
    cluster = objects.cluster_of(nodes, running)
    return cluster, objects.pod("new", "5", priority=10, **away_from("a"))


@settings(max_examples=60, deadline=None)
@given(st.data())
def test_it_finds_a_set_if_there_is_one_and_none_is_smaller(data: st.DataObject) -> None:
    """Against trying every set of lower pods on the cluster itself, where only anti-affinity and room matter."""
    cluster, new = crowded(data, most=6)
    decider = objects.decider(cluster)
    if decider.decide(cluster.pending(new)).node:
        return
    result = preempt(cluster, new, crossNodePreemption=True)
    lower = [info for info in list(cluster.pods.values()) if info.priority < 10]
    helping = [chosen for chosen in _subsets(lower) if _helps(cluster, new, chosen)]
    assert (result.candidate is not None) is bool(helping)
    if result.candidate is None:
        return
    found = result.candidate.victims
    assert _helps(cluster, new, found, result.node)
    for spared in found:
        assert not _helps(cluster, new, [one for one in found if one is not spared], result.node)
    if result.efforts and result.efforts[0].found:
        elsewhere = sum(one.node_name not in ("", result.node) for one in found)
        assert elsewhere == min(_fewest_elsewhere(chosen, cluster, new, NAMES) for chosen in helping)


@settings(max_examples=60, deadline=None)
@given(st.data())
def test_one_by_one_finds_victims_of_whom_none_can_be_spared_if_a_set_helps(data: st.DataObject) -> None:
    """Against the search over sets, where only anti-affinity and room matter."""
    cluster, new = crowded(data, most=7)
    if objects.decider(cluster).decide(cluster.pending(new)).node:
        return
    sets = preempt(cluster, new, crossNodePreemption=True)
    result = preempt(cluster, new, crossNodePreemption=True, victimSearch="one-by-one")
    assert (result.candidate is None) is (sets.candidate is None)
    if result.candidate is None or not result.efforts or not result.efforts[0].found:
        return
    found = result.candidate.victims
    assert _helps(cluster, new, found, result.node)
    for spared in found:
        assert not _helps(cluster, new, [one for one in found if one is not spared], result.node)
    lower = sum(info.priority < 10 for info in cluster.pods.values())
    assert result.efforts[0].evaluations <= len(NAMES) * (2 + lower)


def test_one_by_one_the_price_grows_with_the_number_of_pods() -> None:
    """As in :func:`test_the_price_grows_with_the_number_of_those_in_the_way`: whoever is in the way."""

    def price(others: int, in_the_way: int) -> int:
        idle = [objects.pod(f"idle-{number}", "1m", on="m") for number in range(others - in_the_way)]
        crowd = [
            objects.pod(f"q-{number}", "1m", priority=5, labels={"app": "q"}, on="m") for number in range(in_the_way)
        ]
        new = objects.pod("p", "5", priority=10, **away_from("q"))
        result = preempt(full_of(*idle, *crowd), new, crossNodePreemption=True, victimSearch="one-by-one")
        assert sorted(victims(result)) == sorted(pod.metadata.name for pod in crowd)
        return result.efforts[0].evaluations

    # Two nodes looked at first; then all pods go from one of them, and come back one by one.
    assert [price(others, k) for others, k in ((10, 1), (10, 3), (100, 50))] == [2 + 1 + 10, 2 + 1 + 10, 2 + 1 + 100]


def test_one_by_one_gives_up_before_a_node_that_the_budget_does_not_pay_for() -> None:
    cluster = full_of(objects.pod("q", labels={"app": "q"}, on="m"), objects.pod("idle", "10m", on="m"))
    new = objects.pod("p", "5", priority=10, **away_from("q"))
    for budget, found in ((4, False), (5, True)):
        result = preempt(cluster, new, crossNodePreemption={"budget": budget}, victimSearch="one-by-one")
        (effort,) = result.efforts
        assert (effort.found, effort.gave_up) == (found, not found)
        assert effort.evaluations <= budget


def _subsets(lower: Sequence[Any]) -> list[tuple[Any, ...]]:
    return [chosen for size in range(len(lower) + 1) for chosen in itertools.combinations(lower, size)]


def _helps(cluster: Cluster, pod: core_v1_pb2.Pod, gone: Sequence[Any], on: str | None = None) -> bool:
    """Whether the pod finds a node (or fits on that one) when these are gone from the cluster."""
    homes = [(one, one.node_name) for one in gone]
    for one, _ in homes:
        cluster.remove_pod(one.uid)
    filtering = objects.decider(cluster).filter(cluster.pending(pod))
    rows = [node.row for node in cluster.rows if on in (None, node.name)]
    fits = any(filtering.status(row) is None for row in rows)
    for one, home in homes:
        cluster.add_pod(one, home)
    return fits


def _fewest_elsewhere(chosen: Sequence[Any], cluster: Cluster, pod: core_v1_pb2.Pod, names: Sequence[str]) -> int:
    places = [name for name in names if _helps(cluster, pod, chosen, name)]
    return min(len([one for one in chosen if one.node_name != name]) for name in places)


# Affinity to lower pods -----------------------------------------------------------------------------------------------


def with_caches() -> Cluster:
    return objects.cluster_of(
        [objects.node("n1")],
        [
            objects.pod("big", "6", priority=5, on="n1", labels={"app": "cache"}),
            objects.pod("small", "2", priority=1, on="n1", labels={"app": "cache"}),
            objects.pod("batch", "2", priority=1, on="n1"),
        ],
    )


def asked(cluster: Cluster, pod: core_v1_pb2.Pod, limit: int) -> PostFilterResult:
    return preempt(cluster, pod, lowerPriorityAffinity={"limit": limit})


def test_the_cache_that_leaves_room_is_kept() -> None:
    new = objects.pod("p", "5", priority=10, **near_to("cache"))
    assert preempt(with_caches(), new).candidate is None
    result = asked(with_caches(), new, 100)
    assert victims(result) == ["big"]
    (effort,) = result.efforts
    assert (effort.algorithm, effort.evaluations, effort.found) == ("lowerPriorityAffinity", 2, True)


def test_sets_beyond_the_limit_are_not_tried() -> None:
    result = asked(with_caches(), objects.pod("p", "5", priority=10, **near_to("cache")), 1)
    assert result.candidate is None
    assert (result.efforts[0].evaluations, result.efforts[0].gave_up) == (1, True)


def test_for_any_other_reason_the_node_is_of_no_use() -> None:
    """Step 3: the pod is too big for the node anyway."""
    result = asked(with_caches(), objects.pod("p", "11", priority=10, **near_to("cache")), 100)
    assert (result.candidate, result.efforts) == (None, ())


def test_pods_that_match_two_rules_together_are_not_enough_where_each_must_match_both() -> None:
    """Kubernetes wants pods that match all terms, so sets of pods that match one each are tried in vain."""
    cluster = objects.cluster_of(
        [objects.node("n1")],
        [
            objects.pod("x", "5", on="n1", labels={"app": "cache"}),
            objects.pod("y", "5", on="n1", labels={"tier": "db"}),
        ],
    )
    new = objects.pod("p", "1", priority=10, **near_to("cache"))
    terms = new.spec.affinity.podAffinity.requiredDuringSchedulingIgnoredDuringExecution
    terms.add(topologyKey="kubernetes.io/hostname").labelSelector.matchLabels["tier"] = "db"
    result = asked(cluster, new, 100)
    assert result.candidate is None
    both = objects.pod("both", "1", on="n1", labels={"app": "cache", "tier": "db"})
    cluster.see_pod(both)
    result = asked(cluster, new, 100)
    assert "both" not in victims(result)


@settings(max_examples=100, deadline=None)
@given(st.data())
def test_one_by_one_finds_what_sets_find_with_one_evaluation_for_each_pod_that_matches(data: st.DataObject) -> None:
    running = [
        objects.pod(
            f"p{number}",
            data.draw(st.sampled_from(["1", "2", "5"])),
            priority=data.draw(st.integers(1, 3)),
            on="n1",
            labels={key: "x" for key in ("app", "tier") if data.draw(st.booleans())},
        )
        for number in range(data.draw(st.integers(1, 6)))
    ]
    cluster = objects.cluster_of([objects.node("n1", cpu="8")], running)
    new = objects.pod("p", data.draw(st.sampled_from(["1", "4", "7"])), priority=10, **near_to("x"))
    if data.draw(st.booleans()):
        terms = new.spec.affinity.podAffinity.requiredDuringSchedulingIgnoredDuringExecution
        terms.add(topologyKey="kubernetes.io/hostname").labelSelector.matchLabels["tier"] = "x"
    if objects.decider(cluster).decide(cluster.pending(new)).node:
        return
    sets = preempt(cluster, new, lowerPriorityAffinity={"limit": 1000})
    result = preempt(cluster, new, lowerPriorityAffinity=True, victimSearch="one-by-one")
    assert (result.node, result.candidate and victims(result)) == (sets.node, sets.candidate and victims(sets))
    assert [one.found for one in result.efforts] == [one.found for one in sets.efforts]
    matching = sum(bool(pod.metadata.labels) for pod in running)
    assert sum(one.evaluations for one in result.efforts) <= matching
    assert sum(one.evaluations for one in result.efforts) <= sum(one.evaluations for one in sets.efforts)


def test_without_affinity_nothing_is_searched() -> None:
    result = asked(with_caches(), objects.pod("p", "5", priority=10), 100)
    assert (result.efforts, candidates.names(result.candidate.victims if result.candidate else ())) == ((), ["big"])


# The switches themselves ----------------------------------------------------------------------------------------------


def test_switches_that_hold_an_amount() -> None:
    policy = policy_of({"crossNodePreemption": True, "lowerPriorityAffinity": {"limit": 7}, "avoidEvictedNode": {}})
    assert (policy.crossNodePreemption, policy.lowerPriorityAffinity, policy.avoidEvictedNode) == (10_000, 7, 300)
    off = policy_of({"crossNodePreemption": False})
    assert (off.crossNodePreemption, off.lowerPriorityAffinity, off.avoidEvictedNode) == (0, 0, 0)


@pytest.mark.parametrize(
    ("switch", "value", "path"),
    [
        ("crossNodePreemption", {"budget": 0}, "policy.crossNodePreemption.budget"),
        ("crossNodePreemption", {"budget": 1.5}, "policy.crossNodePreemption.budget"),
        ("crossNodePreemption", {"limit": 5}, "policy.crossNodePreemption.limit"),
        ("crossNodePreemption", 100, "policy.crossNodePreemption"),
        ("lowerPriorityAffinity", {"limit": True}, "policy.lowerPriorityAffinity.limit"),
        ("avoidEvictedNode", {"for": 60}, "policy.avoidEvictedNode.for"),
    ],
)
def test_amounts_that_cannot_be(switch: str, value: Any, path: str) -> None:
    with pytest.raises(PolicyError) as caught:
        policy_of({switch: value})
    assert caught.value.path == path
