"""Host ports, where two pods of a node have the same one: two schedulers may have placed both."""

from __future__ import annotations

from typing import Any

import numpy as np

from kemu.emulated.scheduler.cache.cluster import Cluster
from kemu.emulated.scheduler.cycle.decisions import Decider
from kemu.emulated.scheduler.plugins.default_preemption import DefaultPreemption
from tests.scheduler import objects


def pod(name: str, **more: Any) -> Any:
    ports = [{"containerPort": 80, "hostPort": 80, "protocol": "TCP"}]
    return objects.pod(name, **more, containers=[{"name": "main", "image": "app:1", "ports": ports}])


def fits(decider: Decider, cluster: Cluster) -> bool:
    return decider.filter(cluster.pending(pod("new"))).status(0) is None


def test_a_shared_port_is_free_when_one_of_its_pods_goes_until_the_other_is_updated() -> None:
    """``HostPortInfo`` (k8s.io/kube-scheduler/framework) is a set; the cache's ``updatePod`` removes and adds."""
    other = pod("b", on="n1")
    cluster = objects.cluster_of([objects.node("n1")], [pod("a", on="n1"), other])
    decider = objects.decider(cluster)
    assert not fits(decider, cluster)
    cluster.remove_pod("uid-a")
    assert fits(decider, cluster)
    cluster.see_pod(other, spec_changed=False)
    assert not fits(decider, cluster)
    cluster.remove_pod("uid-b")
    assert fits(decider, cluster)


def test_a_dry_run_takes_the_port_of_a_victim_for_free() -> None:
    """Also where a pod that stays has it too (``DefaultPreemption.SelectVictimsOnNode``)."""
    cluster = objects.cluster_of([objects.node("n1")], [pod("a", on="n1", priority=9), pod("b", on="n1")])
    decider = objects.decider(cluster)
    plugin = decider.profile.plugins["DefaultPreemption"]
    assert isinstance(plugin, DefaultPreemption)
    filtering = decider.filter(cluster.pending(pod("new", priority=5)))
    candidates, failures = plugin.preemptor.dry_runs(filtering, np.array([0]), 0, 1)
    assert [[victim.name for victim in one.victims] for one in candidates] == [["b"]]
    assert not failures


def test_scores_follow_the_node_that_the_pod_itself_is_nominated_to() -> None:
    """Its own nomination does not stand in its way, but in that of others of its template."""
    cluster = objects.cluster_of([objects.node("n1"), objects.node("n2")], [objects.pod("x", "8", on="n1")])
    decider = objects.decider(cluster)
    waiting = cluster.pending(pod("new"))
    decider.totals(decider.filter(waiting), decider.filter(waiting).evaluation.feasible.nonzero()[0])
    cluster.nominator.nominate(waiting, "n1")
    cluster.remove_pod("uid-x")
    filtering = decider.filter(waiting)
    rows = (filtering.verdicts[:2] == 0).nonzero()[0]
    assert rows.tolist() == [0, 1]
    totals, by_plugin = decider.totals(filtering, rows), np.array(list(decider.scores(filtering, rows).values()))
    assert len(set((by_plugin.sum(axis=0) - totals).tolist())) == 1
