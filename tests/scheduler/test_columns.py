"""Columns agree with nodes asked one by one, and what follows events agrees with what is built anew."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from kemu.emulated.objects import meta
from kemu.emulated.objects.wire import shared_objects
from kemu.emulated.scheduler.cache.cluster import Cluster
from kemu.emulated.scheduler.cycle.decisions import Decider
from kemu.emulated.scheduler.cycle.filtering import Filtering
from kemu.emulated.scheduler.framework.interfaces import SKIP, Cycle, Scope
from kemu.messages.k8s import core_v1_pb2
from tests.scheduler import objects

NODES = 4
few = settings(max_examples=120, deadline=None, suppress_health_check=list(HealthCheck))


@st.composite
def histories(draw: st.DrawFn) -> list[tuple[Any, ...]]:
    """Things that happen to a cluster, one after the other."""
    happened: list[tuple[Any, ...]] = [("node", draw(objects.nodes(f"node-{number}"))) for number in range(NODES)]
    for number in range(draw(st.integers(0, 12))):
        what = draw(st.sampled_from(["pod", "pod", "pod", "node", "end", "remove node", "nominate", "terminate"]))
        name = f"node-{draw(st.integers(0, NODES - 1))}"
        if what == "node":
            happened.append((what, draw(objects.nodes(name))))
        elif what == "pod":
            happened.append((what, draw(objects.pods(f"p{number}", name))))
        elif what == "nominate":
            happened.append((what, draw(objects.pods(f"n{number}")), name))
        elif what in ("end", "terminate"):
            happened.append((what, f"uid-p{draw(st.integers(0, number))}"))
        else:
            happened.append((what, name))
    return happened


def apply(cluster: Cluster, event: tuple[Any, ...]) -> None:
    match event:
        case ("node", node):
            cluster.set_node(node)
        case ("pod", pod):
            cluster.see_pod(pod)
        case ("end", uid):
            objects.end(cluster, uid)
        case ("terminate", uid):
            if uid in cluster.pods:
                changed = meta.copied(cluster.pods[uid].pod)
                changed.metadata.deletionTimestamp.seconds = 9
                cluster.see_pod(changed)
        case ("remove node", name):
            cluster.remove_node(name)
        case ("nominate", pod, name):
            cluster.nominator.nominate(cluster.pending(pod), name)


def rebuilt(cluster: Cluster) -> Cluster:
    """A cluster made from the objects alone, with its nodes in the same order of arrival."""
    fresh = Cluster()
    for members in cluster._zones.values():
        for name in members:
            fresh.set_node(cluster.nodes[name].node)
    for pod in cluster.pods.values():
        fresh.see_pod(pod.pod)
    for name in cluster.nodes:
        for pod in cluster.nominator.on(name):
            fresh.nominator.nominate(fresh.pending(pod.pod), name)
    return fresh


def facts(decider: Decider, filtering: Filtering) -> dict[str, Any]:
    """All that can be seen of a decision, by node."""
    nodes = decider.cluster.rows
    verdicts = filtering.verdicts[: len(nodes)]
    rows = np.flatnonzero(verdicts == 0)
    scores = decider.scores(filtering, rows) if len(rows) else {}
    totals = decider.totals(filtering, rows) if len(rows) else rows
    return {
        "verdicts": {node.name: filtering.status(node.row) for node in nodes},
        "scores": {
            name: {nodes[row].name: int(score) for row, score in zip(rows, column, strict=True)}
            for name, column in scores.items()
        },
        "lead": {nodes[row].name: int(total - totals.max()) for row, total in zip(rows, totals, strict=True)},
        "message": filtering.message(),
    }


@pytest.mark.thorough
@few
@given(histories(), st.data())
def test_what_follows_events_is_what_is_built_anew(history: list[tuple[Any, ...]], data: st.DataObject) -> None:
    cluster = Cluster()
    waiting = [data.draw(objects.pods(f"waiting-{number}")) for number in range(2)]
    decider = objects.decider(cluster)
    for event in history:
        apply(cluster, event)
        # Decide in between, so that there is something to keep up to date.
        for pod in waiting:
            cluster.settle()
            if len(cluster):
                decider.filter(cluster.pending(pod))
    # How many nodes have an image is known as of the last change of each node, and a new one knows no past.
    for name in cluster.nodes:
        cluster.node_seen(name)
    cluster.settle()
    fresh = rebuilt(cluster)
    fresh.settle()
    other = objects.decider(fresh)
    for pod in waiting:
        if len(cluster):
            kept = facts(decider, decider.filter(cluster.pending(pod)))
            assert kept == facts(other, other.filter(fresh.pending(pod)))


@pytest.mark.thorough
@few
@given(histories(), st.data())
def test_columns_agree_with_nodes_asked_one_by_one(history: list[tuple[Any, ...]], data: st.DataObject) -> None:
    cluster = Cluster()
    for event in history:
        apply(cluster, event)
    cluster.settle()
    if not len(cluster):
        return
    decider = objects.decider(cluster)
    cycle = Cycle(cluster.pending(data.draw(objects.pods("waiting"))), cluster)
    for plugin in decider.line_up.filters:
        state = plugin.prepare(cycle)
        if state is SKIP:
            continue
        column = plugin.verdicts(state, cluster)
        one_by_one = [plugin.verdict(state, node) for node in cluster.rows]
        assert one_by_one == (column.tolist() if column is not None else [0] * len(cluster)), plugin.name
        if plugin.scope is Scope.CLUSTER:
            anyway = [plugin.passes_anyway(state, node) for node in cluster.rows]
            assert anyway == plugin.passing_anyway(state, cluster).tolist(), plugin.name
    every = np.arange(len(cluster))
    for scorer in decider.line_up.scorers:
        state = scorer.prepare_scores(cycle, every)
        if state is SKIP:
            continue
        one_by_one = [scorer.score(state, node) for node in cluster.rows]
        assert one_by_one == scorer.scores(state, cluster, every).tolist(), scorer.name
        assert one_by_one == scorer.scores(state, cluster, None).tolist(), scorer.name
        if scorer.scope is not Scope.CLUSTER:
            some = every[::2]
            assert one_by_one[::2] == scorer.scores(state, cluster, some).tolist(), scorer.name


@few
@given(histories())
def test_the_sums_are_those_of_the_pods(history: list[tuple[Any, ...]]) -> None:
    cluster = Cluster()
    for event in history:
        apply(cluster, event)
        table = cluster.resources()
        for node in cluster.rows:
            assert node.row >= 0
            assert cluster.rows[node.row] is node
            assert table.pods[node.row] == len(node.pods)
            assert table.requested[:, node.row].tolist() == node.requested
            assert table.allocatable[:, node.row].tolist() == node.allocatable
            sums = [0] * len(node.requested)
            for pod in node.pods.values():
                for number, amount in pod.requests:
                    sums[number] += amount
            assert sums == node.requested


@pytest.mark.thorough
@few
@given(histories(), st.data())
def test_a_nominated_pod_of_lower_priority_changes_nothing(history: list[tuple[Any, ...]], data: st.DataObject) -> None:
    cluster = Cluster()
    for event in history:
        apply(cluster, event)
    cluster.settle()
    if not len(cluster):
        return
    pod, lower = data.draw(objects.pods("waiting")), data.draw(objects.pods("lower"))
    lower.spec.priority = pod.spec.priority - 1
    decider = objects.decider(cluster)
    before = facts(decider, decider.filter(cluster.pending(pod)))
    cluster.nominator.nominate(cluster.pending(lower), cluster.rows[0].name)
    assert facts(decider, decider.filter(cluster.pending(pod))) == before


@few
@given(histories(), st.data())
def test_more_room_never_makes_a_node_unfit(history: list[tuple[Any, ...]], data: st.DataObject) -> None:
    cluster = Cluster()
    for event in history:
        apply(cluster, event)
    cluster.settle()
    if not len(cluster):
        return
    pod = data.draw(objects.pods("waiting"))
    decider = objects.decider(cluster)
    fit = [node.name for node in cluster.rows if decider.filter(cluster.pending(pod)).status(node.row) is None]
    for node in list(cluster.rows):
        larger = meta.copied(node.node)
        for resource in ("cpu", "memory", "pods"):
            larger.status.allocatable[resource].string = "1000Gi"
        cluster.set_node(larger)
    cluster.settle()
    filtering = decider.filter(cluster.pending(pod))
    assert all(filtering.status(cluster.nodes[name].row) is None for name in fit)


def test_names_of_resources_that_nobody_uses_lose_their_numbers() -> None:
    """A thousand nodes come and go, each with a device of its own; what is left answers as a cluster made anew."""
    cluster = objects.cluster_of([objects.node("stays", **{"example.com/kept": "2"})])
    used = objects.pod("used", on="stays")
    used.spec.containers[0].resources.requests["example.com/kept"].string = "1"
    cluster.see_pod(used)
    decider = objects.decider(cluster)
    for number in range(1000):
        name = f"example.com/device-{number}"
        cluster.set_node(objects.node("comes", **{name: "3"}))
        pod = objects.pod(f"p{number}")
        pod.spec.containers[0].resources.requests[name].string = "3"
        waiting = cluster.pending(pod)
        assert decider.decide(waiting).node == "comes"
        cluster.assume(waiting, "comes")
        assert decider.filter(waiting).message() == f"0/2 nodes are available: 2 Insufficient {name}."
        cluster.remove_pod(waiting.uid)
        cluster.remove_node("comes")
        cluster.templates._by_key.clear()
        cluster.forget_resources([])
    assert len(cluster.names.names) < 200
    asking = objects.pod("asking")
    asking.spec.containers[0].resources.requests["example.com/kept"].string = "2"
    filtering = decider.filter(cluster.pending(asking))
    assert filtering.message() == "0/1 nodes are available: 1 Insufficient example.com/kept."


def test_a_name_that_a_waiting_pod_or_a_score_uses_keeps_its_number() -> None:
    cluster = objects.cluster_of([objects.node("n1")])
    scored = {"name": "example.com/scored", "weight": 1}
    arguments = {"scoringStrategy": {"type": "LeastAllocated", "resources": [scored]}}
    objects.decider(cluster, {"pluginConfig": [{"name": "NodeResourcesFit", "args": arguments}]})
    pod = objects.pod("waits")
    pod.spec.containers[0].resources.requests["example.com/wanted"].string = "1"
    waiting = cluster.pending(pod)
    cluster.templates._by_key.clear()
    numbers = [cluster.names.of(name) for name in ("example.com/scored", "example.com/wanted")]
    for number in range(100):
        cluster.names.of(f"example.com/device-{number}")
    cluster.forget_resources([waiting])
    assert len(cluster.names.index) == 5
    assert [cluster.names.index[name] for name in ("example.com/scored", "example.com/wanted")] == numbers


def listed(node: core_v1_pb2.Node) -> core_v1_pb2.Node:
    """As informers that share have it."""
    (found,) = shared_objects.OBJECTS.parse_list(core_v1_pb2.Node, [node.SerializeToString(deterministic=True)])
    return found


def test_schedulers_share_what_a_node_says_and_no_more() -> None:
    one, other = Cluster(), Cluster()
    node = listed(objects.node("n", {"zone": "a"}, **{"example.com/gpu": "4"}))
    other.names.of("example.com/other")  # so that its numbers are other ones
    for cluster in (one, other):
        cluster.set_node(node)
    mine, others = one.nodes["n"], other.nodes["n"]
    assert mine.labels is others.labels
    for cluster, info in ((one, mine), (other, others)):
        assert info.allocatable[cluster.names.of("example.com/gpu")] == 4
    one.names.of("example.com/new")
    assert (len(mine.allocatable), len(others.allocatable)) == (len(one.names.names), len(other.names.names))
    third = Cluster()
    third.set_node(node)
    assert third.nodes["n"].allocatable == [*third.nodes["n"].allocatable[:3], 4]
    one.see_pod(objects.pod("p", "1", on="n"))
    assert mine.requested != others.requested
