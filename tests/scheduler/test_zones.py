"""The order in which nodes are looked at: zones take turns, and the next attempt goes on where the last one stopped."""

from __future__ import annotations

from collections.abc import Mapping

from hypothesis import given
from hypothesis import strategies as st

from kemu.emulated.scheduler.cache.cluster import Cluster
from tests.scheduler import objects

ONE, TWO = "zone-1", "zone-2"
DOCUMENTED = {
    "node-1": ONE,
    "node-2": ONE,
    "node-3": ONE,
    "node-4": ONE,
    "node-5": TWO,
    "node-6": TWO,
}
"""The example of "How the scheduler iterates over Nodes" in Kubernetes' documentation."""


def cluster_in(zones: Mapping[str, str]) -> Cluster:
    cluster = objects.cluster_of([objects.node(name, {objects.ZONE: zone}) for name, zone in zones.items()])
    cluster.settle()
    return cluster


def order(cluster: Cluster) -> list[str]:
    return [node.name for node in cluster.rows]


def test_zones_take_turns_as_documented() -> None:
    assert order(cluster_in(DOCUMENTED)) == ["node-1", "node-5", "node-2", "node-6", "node-3", "node-4"]


def test_the_order_follows_nodes_that_come_go_and_move() -> None:
    cluster = cluster_in(DOCUMENTED)
    cluster.remove_node("node-5")
    cluster.settle()
    assert order(cluster) == ["node-1", "node-6", "node-2", "node-3", "node-4"]
    cluster.set_node(objects.node("node-7", {objects.ZONE: "zone-3"}))
    cluster.settle()
    assert order(cluster) == ["node-1", "node-6", "node-7", "node-2", "node-3", "node-4"]
    cluster.set_node(objects.node("node-1", {objects.ZONE: TWO}))
    cluster.settle()
    assert order(cluster) == ["node-2", "node-6", "node-7", "node-3", "node-1", "node-4"]
    assert [node.row for node in cluster.rows] == list(range(6))


def test_after_the_last_node_the_first_is_next() -> None:
    """A search that stops early starts the next one where it stopped: 100 of 120 nodes suffice."""
    zones = {f"node-{number:03}": f"zone-{number % 3}" for number in range(120)}
    cluster = cluster_in(zones)
    decider = objects.decider(cluster, percentage=84)
    asked = []
    for number in range(3):
        decision = decider.decide(cluster.pending(objects.pod(f"p-{number}", "1m")))
        asked.append((decision.evaluated, decider.start_row))
    assert asked == [(100, 100), (100, 80), (100, 60)]


@given(st.lists(st.integers(0, 4), min_size=1, max_size=40))
def test_zones_differ_by_at_most_one_until_they_run_out(places: list[int]) -> None:
    zones = {f"node-{number}": f"zone-{place}" for number, place in enumerate(places)}
    ordered = order(cluster_in(zones))
    assert sorted(ordered) == sorted(zones)
    total = {zone: list(zones.values()).count(zone) for zone in zones.values()}
    seen = dict.fromkeys(total, 0)
    for name in ordered:
        seen[zones[name]] += 1
        unfinished = [count for zone, count in seen.items() if count < total[zone]]
        assert max(seen.values()) - min(unfinished, default=max(seen.values())) <= 1
