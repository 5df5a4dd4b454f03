"""One decision: sampling, the order of nodes, ties, nominated nodes, and what a decision keeps hold of."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

from kemu.emulated.scheduler.cache.nodes import NodeInfo
from kemu.emulated.scheduler.cycle import ties
from kemu.emulated.scheduler.cycle.decisions import Decider, ScheduleResult, nodes_to_find
from kemu.emulated.scheduler.framework.interfaces import Cycle, NodeFilterPlugin
from kemu.emulated.scheduler.framework.statuses import PENDING, Status, unresolvable, unschedulable
from kemu.messages.k8s import core_v1_pb2
from tests.scheduler import objects

NOT_HELPFUL = "0/3 nodes are available: 3 Preemption is not helpful for scheduling."
NO_VICTIMS = "0/3 nodes are available: 3 No preemption victims found for incoming pod."


@pytest.mark.parametrize(
    ("nodes", "percentage", "found"),
    [
        (50, 0, 50),  # fewer than 100: all of them
        (100, 0, 100),
        (500, 0, 230),  # 50 - 500/125 = 46 %
        (1000, 0, 420),
        (5000, 0, 500),  # 10 %
        (6000, 0, 300),  # never below 5 %
        (15000, 0, 750),
        (1000, 5, 100),  # never below 100 nodes
        (1000, 70, 700),
        (1000, 100, 1000),
    ],
)
def test_how_many_nodes_end_the_search(nodes: int, percentage: int, found: int) -> None:
    assert nodes_to_find(nodes, percentage) == found


def test_zones_take_turns() -> None:
    """The document's example: nodes 1 to 4 in zone 1, nodes 5 and 6 in zone 2."""
    zones = {"Node 1": "1", "Node 2": "1", "Node 3": "1", "Node 4": "1", "Node 5": "2", "Node 6": "2"}
    nodes = [objects.node(name, {objects.ZONE: zone}) for name, zone in zones.items()]
    cluster = objects.cluster_of(nodes)
    cluster.settle()
    assert [node.name for node in cluster.rows] == ["Node 1", "Node 5", "Node 2", "Node 6", "Node 3", "Node 4"]
    cluster.remove_node("Node 5")
    cluster.set_node(objects.node("Node 7", {objects.ZONE: "2"}))
    cluster.settle()
    assert [node.name for node in cluster.rows] == ["Node 1", "Node 6", "Node 2", "Node 7", "Node 3", "Node 4"]


def test_the_search_goes_on_where_the_last_one_ended() -> None:
    cluster = objects.cluster_of([objects.node(f"n{number:03}") for number in range(250)])
    decider = objects.decider(cluster, percentage=40)
    starts = []
    for number in range(6):
        starts.append(decider.start_row)
        decision = decider.decide(cluster.pending(objects.pod(f"p{number}")))
        assert (decision.evaluated, decision.feasible) == (100, 100)
    assert starts == [0, 100, 200, 50, 150, 0]


def test_nodes_that_do_not_fit_are_looked_at_too() -> None:
    """Up to the first node that fits beyond those wanted: only that one ends the search (findNodesThatPassFilters)."""
    full = [objects.pod(f"x{number}", "10", on=f"n{number:03}") for number in range(0, 200, 2)]
    cluster = objects.cluster_of([objects.node(f"n{number:03}") for number in range(250)], full)
    decider = objects.decider(cluster, percentage=40)
    decision = decider.decide(cluster.pending(objects.pod("p")))
    assert (decision.evaluated, decision.feasible, decider.start_row) == (200, 100, 200)
    # 50 at the end, 50 of the first 100, and node 100, which does not fit; 101 does.
    decision = decider.decide(cluster.pending(objects.pod("q")))
    assert (decision.evaluated, decision.feasible, decider.start_row) == (151, 100, 101)


def _named(name: str, nodes: Sequence[str], **fields: Any) -> core_v1_pb2.Pod:
    """A pod that names the nodes where it may run."""
    terms = [{"matchFields": [{"key": "metadata.name", "operator": "In", "values": [node]}]} for node in nodes]
    required = {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": terms}}
    return objects.pod(name, affinity={"nodeAffinity": required}, **fields)


@pytest.mark.parametrize("percentage", [40, 100])
def test_an_attempt_on_named_nodes_moves_the_start_too(percentage: int) -> None:
    """``nextStartNodeIndex`` advances by the nodes looked at, here the one that a DaemonSet's pod names."""
    cluster = objects.cluster_of([objects.node(f"n{number:03}") for number in range(250)])
    decider = objects.decider(cluster, percentage=percentage)
    decision = decider.decide(cluster.pending(_named("p", ["n007"])))
    assert (decision.node, decision.evaluated, decision.feasible, decider.start_row) == ("n007", 1, 1, 1)
    decision = decider.decide(cluster.pending(_named("q", ["n007", "gone", "n009"])))
    assert (decision.evaluated, decision.feasible, decider.start_row) == (2, 2, 3)
    decider.decide(cluster.pending(_named("too-large", ["n001"], cpu="99")))
    assert decider.start_row == 4


def test_named_nodes_are_sampled_too() -> None:
    """The share of nodes to find is of the named ones, when there are a hundred or more; the start is modulo those."""
    cluster = objects.cluster_of([objects.node(f"n{number:03}") for number in range(300)])
    decider = objects.decider(cluster, percentage=60)
    names = [f"n{number:03}" for number in range(0, 300, 2)]
    decider.start_row = 250
    decision = decider.decide(cluster.pending(_named("p", names[:99])))
    assert (decision.evaluated, decision.feasible, decider.start_row) == (99, 99, 49)
    filtering = decider.filter(cluster.pending(_named("q", names)))
    decision = ScheduleResult(filtering)
    rows = decider.feasible_rows(filtering, decision)
    # From the 50th of the 150 named nodes on, 100 of them.
    assert [cluster.rows[row].name for row in rows.tolist()] == names[49:149]
    assert (decision.evaluated, decider.start_row) == (100, 149)


def test_a_nominated_node_that_fails_counts_among_the_nodes_looked_at_once() -> None:
    """evaluateNominatedNode leaves its status in the diagnosis, whose length moves the start."""
    full = [objects.pod("x", "10", on="n120")]
    cluster = objects.cluster_of([objects.node(f"n{number:03}") for number in range(250)], full)
    decider = objects.decider(cluster, percentage=40)
    pod = objects.pod("p")
    pod.status.nominatedNodeName = "n120"
    decision = decider.decide(cluster.pending(pod))
    assert (decision.evaluated, decision.feasible, decider.start_row) == (101, 100, 101)
    decision = decider.decide(cluster.pending(pod))
    assert (decision.evaluated, decision.feasible, decider.start_row) == (101, 100, 202)
    named = _named("q", ["n001"])
    named.status.nominatedNodeName = "n120"
    decision = decider.decide(cluster.pending(named))
    assert (decision.node, decision.evaluated, decider.start_row) == ("n001", 2, 204)
    named.status.nominatedNodeName = "n001"
    decision = decider.decide(cluster.pending(named))
    # The nominated node passes: there is no search.
    assert (decision.node, decision.evaluated, decider.start_row) == ("n001", 1, 204)


def test_all_profiles_share_one_start() -> None:
    cluster = objects.cluster_of([objects.node(f"n{number:03}") for number in range(250)])
    first = objects.decider(cluster, percentage=40)
    second = Decider(first.profile, cluster, first.random, 60)
    first.decide(cluster.pending(objects.pod("p")))
    second.decide(cluster.pending(objects.pod("q")))
    assert first.start_row == second.start_row == 0
    first.decide(cluster.pending(objects.pod("r")))
    assert first.start_row == second.start_row == 100


def test_the_start_is_taken_modulo_the_nodes_that_are_left() -> None:
    cluster = objects.cluster_of([objects.node(f"n{number:03}") for number in range(250)])
    decider = objects.decider(cluster, percentage=40)
    decider.start_row = 220
    for number in range(200, 250):
        cluster.remove_node(f"n{number:03}")
    decider.decide(cluster.pending(objects.pod("p")))
    assert decider.start_row == (220 + 100) % 200


def test_with_one_worker_the_order_of_the_search_decides_between_equal_nodes() -> None:
    """The scores stand in a heap: of equal ones the first, but those of its left branch before the second."""
    top = [ties.top_of_heap(places) for places in ({0, 1, 2}, {2, 3}, {2, 9}, {5, 6}, {4, 5}, {6})]
    assert top == [0, 3, 9, 5, 4, 6]
    cluster = objects.cluster_of([objects.node(f"n{number}") for number in range(8)])
    for start in (0, 5):
        chosen = set()
        for seed in range(9):
            decider = objects.decider(cluster, seed=seed)
            decider.profile.handle.draws_lots = False
            decider.start_row = start
            chosen.add(decider.decide(cluster.pending(objects.pod("p"))).node)
        assert chosen == {f"n{start}"}


def test_ties_are_broken_by_the_stream_alone() -> None:
    cluster = objects.cluster_of([objects.node(f"n{number}") for number in range(8)])
    chosen = [objects.decider(cluster, seed=seed).decide(cluster.pending(objects.pod("p"))).node for seed in range(20)]
    again = [objects.decider(cluster, seed=seed).decide(cluster.pending(objects.pod("p"))).node for seed in range(20)]
    assert chosen == again
    assert len(set(chosen)) > 3


def test_the_nominated_node_goes_first_although_another_is_better() -> None:
    cluster = objects.cluster_of([objects.node("busy"), objects.node("idle")], [objects.pod("x", "8", on="busy")])
    pod = objects.pod("p")
    decider = objects.decider(cluster)
    assert decider.decide(cluster.pending(pod)).node == "idle"
    pod.status.nominatedNodeName = "busy"
    assert decider.decide(cluster.pending(pod)).node == "busy"


def test_room_is_kept_for_nominated_pods_of_the_same_or_higher_priority() -> None:
    cluster = objects.cluster_of([objects.node("n1")])
    decider = objects.decider(cluster)
    preemptor = cluster.pending(objects.pod("preemptor", "9", priority=10))
    cluster.nominator.nominate(preemptor, "n1")
    for priority, node in ((9, ""), (10, ""), (11, "n1")):
        assert decider.decide(cluster.pending(objects.pod("p", "2", priority=priority))).node == node
    assert decider.decide(preemptor).node == "n1"
    cluster.nominator.remove(preemptor.uid)
    assert decider.decide(cluster.pending(objects.pod("p", "2", priority=9))).node == "n1"


def test_no_nodes() -> None:
    cluster = objects.cluster_of([])
    decision = objects.decider(cluster).decide(cluster.pending(objects.pod("p")))
    assert (decision.node, decision.filtering) == ("", None)


def test_an_attempt_keeps_the_state_with_which_it_began() -> None:
    cluster = objects.cluster_of([objects.node("n1")], [objects.pod("x", "10", on="n1")])
    decider = objects.decider(cluster)
    cluster.hold_snapshot()
    cluster.change(cluster.remove_pod, "uid-x")
    assert decider.decide(cluster.pending(objects.pod("p"))).node == ""
    cluster.release_snapshot()
    assert decider.decide(cluster.pending(objects.pod("p"))).node == "n1"


def test_an_assumed_pod_counts_until_it_is_forgotten() -> None:
    cluster = objects.cluster_of([objects.node("n1")])
    decider = objects.decider(cluster)
    first, second = (cluster.pending(objects.pod(name, "6")) for name in ("first", "second"))
    cluster.assume(first, "n1")
    assert decider.decide(second).node == ""
    cluster.forget(first.uid)
    assert decider.decide(second).node == "n1"


def test_an_assumed_pod_is_confirmed_where_the_watch_shows_it() -> None:
    cluster = objects.cluster_of([objects.node("n1"), objects.node("n2")])
    pod = objects.pod("p", "6")
    cluster.assume(cluster.pending(pod), "n1")
    pod.spec.nodeName = "n2"
    cluster.see_pod(pod, spec_changed=False)
    assert cluster.assumed == {}
    assert [len(cluster.nodes[name].pods) for name in ("n1", "n2")] == [0, 1]
    assert not cluster.forget("uid-p")


def test_pods_of_a_node_that_comes_later_count_on_it() -> None:
    cluster = objects.cluster_of([], [objects.pod("x", "10", on="n1")])
    cluster.set_node(objects.node("n1"))
    decision = objects.decider(cluster).decide(cluster.pending(objects.pod("p", "1")))
    assert decision.node == ""


def test_a_resource_that_appears_late() -> None:
    cluster = objects.cluster_of([objects.node("n1")])
    decider = objects.decider(cluster)
    assert decider.decide(cluster.pending(objects.pod("p"))).node == "n1"
    gpu = {"containers": [{"name": "main", "resources": {"requests": {"example.com/gpu": "1"}}}]}
    wants = objects.pod("q")
    wants.spec.CopyFrom(objects.pod("q", None, **gpu).spec)
    decision = decider.decide(cluster.pending(wants))
    assert decision.filtering is not None
    assert decision.filtering.message() == "0/1 nodes are available: 1 Insufficient example.com/gpu."
    cluster.set_node(objects.node("n2", **{"example.com/gpu": "1"}))
    assert decider.decide(cluster.pending(wants)).node == "n2"


class Provisioning(NodeFilterPlugin):
    def filter(self, pod: Cycle, node: NodeInfo) -> Status | None:
        return Status(PENDING, ("a volume is being made",)) if node.name == "n1" else unschedulable("no")


class NotYet(NodeFilterPlugin):
    def pre_filter(self, pod: Cycle) -> Status:
        return Status(PENDING, ("not yet",))


def _with(plugin: type[NodeFilterPlugin], **more: Any) -> Decider:
    cluster = objects.cluster_of([objects.node("n1"), objects.node("n2", cpu="0"), objects.node("n3")])
    own = {"plugins": {"multiPoint": {"enabled": [{"name": plugin.name}]}, **more}}
    return objects.decider(cluster, own, registry={plugin.name: plugin})


def test_who_answers_pending_is_told_apart() -> None:
    decider = _with(Provisioning)
    filtering = decider.filter(decider.cluster.pending(objects.pod("p")))
    assert filtering.message() == "0/3 nodes are available: 1 Insufficient cpu, 1 a volume is being made, 1 no."
    assert (filtering.rejectors(), filtering.pending()) == (("NodeResourcesFit", "Provisioning"), ("Provisioning",))


def test_pending_is_no_answer_of_pre_filter() -> None:
    """RunPreFilterPlugins knows Unschedulable and UnschedulableAndUnresolvable; anything else is an error."""
    decider = _with(NotYet)
    error = decider.decide(decider.cluster.pending(objects.pod("p"))).error
    assert error is not None
    assert error.message == 'running PreFilter plugin "NotYet": not yet'


class TooEarly(NodeFilterPlugin):
    def pre_filter(self, pod: Cycle) -> Status:
        return unschedulable("too early") if pod.labels else unresolvable("never")


@pytest.mark.parametrize(
    ("labels", "points", "message"),
    [
        # PreFilter of a user's plugin comes after DynamicResources: it has its state.
        ({}, {}, f"no new claims to deallocate, preemption: {NOT_HELPFUL}"),
        ({}, {"postFilter": {"disabled": [{"name": "DynamicResources"}]}}, f"preemption: {NOT_HELPFUL}"),
        ({}, {"multiPoint": {"disabled": [{"name": "DynamicResources"}]}}, f"preemption: {NOT_HELPFUL}"),
        ({}, {"multiPoint": {"disabled": [{"name": "DefaultPreemption"}]}}, "no new claims to deallocate"),
        ({}, {"postFilter": {"disabled": [{"name": "*"}]}}, ""),
        ({}, {name: {"disabled": [{"name": "DynamicResources"}]} for name in ("preFilter", "filter")}, "not found"),
        ({"early": "yes"}, {}, f"no new claims to deallocate, preemption: {NO_VICTIMS}"),
    ],
)
def test_what_post_filter_says_follows_from_the_plugins_of_the_profile(
    labels: dict[str, str], points: dict[str, Any], message: str
) -> None:
    points = {**points}
    enabled = {"enabled": [{"name": "TooEarly"}], **points.pop("multiPoint", {})}
    decider = _with(TooEarly, multiPoint=enabled, **points)
    filtering = decider.filter(decider.cluster.pending(objects.pod("p", labels=labels)))
    assert decider.profile.post_filter(filtering).message == message


def test_after_a_conflict_of_affinity_terms_dynamic_resources_has_no_state() -> None:
    """NodeAffinity rejects the pod before it is asked: PostFilter ends there, if the profile has it."""
    cluster = objects.cluster_of([objects.node("n1"), objects.node("n2")])
    fields = [{"key": "metadata.name", "operator": "In", "values": [name]} for name in ("n1", "n2")]
    required = {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [{"matchFields": fields}]}}
    pod = objects.pod("p", affinity={"nodeAffinity": required})
    without = {"plugins": {"multiPoint": {"disabled": [{"name": "DynamicResources"}]}}}
    not_helpful = NOT_HELPFUL.replace("3", "2")
    for profile, message in (({}, "not found"), (without, f"preemption: {not_helpful}")):
        decider = objects.decider(cluster, profile)
        filtering = decider.filter(cluster.pending(pod))
        assert filtering.message() == "0/2 nodes are available: pod affinity terms conflict."
        assert decider.profile.post_filter(filtering).message == message
