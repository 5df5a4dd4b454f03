"""What a decision knows of the cluster is what kube-scheduler's snapshot holds, also where that lags behind.

Found by ``kemu conformance live``: the scores are those that the real kube-scheduler gave.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from kemu.emulated.objects.conversion import convert
from kemu.emulated.scheduler.cache.cluster import Cluster
from kemu.lab.conformance.scheduler import decisions
from kemu.messages.k8s import core_v1_pb2
from tests.scheduler import objects

IMAGE = "registry.local:5000/app/api:2.1"
MEBIBYTE = 1024 * 1024


def _node(name: str, *images: str) -> core_v1_pb2.Node:
    node = objects.node(name, cpu="4", memory="8Gi", pods="110")
    for image in images:
        node.status.images.add(names=[image], sizeBytes=500 * MEBIBYTE)
    return node


def _pod(name: str, node: str = "", **spec: Any) -> core_v1_pb2.Pod:
    containers = [{"name": "c", "image": IMAGE}]
    metadata = {"name": name, "namespace": "default", "uid": name}
    return convert.from_json(
        core_v1_pb2.Pod, {"metadata": metadata, "spec": {"containers": containers, "nodeName": node, **spec}}
    )


def _locality(cluster: Cluster) -> dict[str, int]:
    """What ImageLocality gives each node, in columns; the same node by node."""
    decider = objects.decider(cluster)
    filtering = decider.filter(cluster.pending(_pod("waiting")))
    rows = np.arange(len(cluster))
    scores = decider.scores(filtering, rows).get("ImageLocality", np.zeros(len(rows), dtype=np.int64))
    plugin = next(one for one in decider.line_up.scorers if one.name == "ImageLocality")
    state = plugin.prepare_scores(filtering.cycle, rows)
    assert [plugin.score(state, node) for node in cluster.rows] == scores.tolist()
    return {node.name: int(score) for node, score in zip(cluster.rows, scores, strict=True)}


def _score(share: float) -> int:
    return (int(500 * MEBIBYTE * share) - 23 * MEBIBYTE) * 100 // (977 * MEBIBYTE)


def test_how_many_nodes_have_an_image_counts_as_of_the_last_change_of_each_node() -> None:
    """``UpdateSnapshot`` copies a node when that has changed, and with it the numbers of nodes with its images."""
    cluster = Cluster()
    for name in ("a", "b", "c"):
        cluster.set_node(_node(name, IMAGE))
    cluster.set_node(_node("d"))
    assert _locality(cluster) == {"a": _score(3 / 4), "b": _score(3 / 4), "c": _score(3 / 4), "d": 0}
    cluster.remove_node("c")
    assert _locality(cluster) == {"a": _score(3 / 3), "b": _score(3 / 3), "d": 0}  # of three nodes, still three
    cluster.add_pod(cluster.pod(_pod("one", "a")), "a")
    assert _locality(cluster) == {"a": _score(2 / 3), "b": _score(3 / 3), "d": 0}
    cluster.node_seen("b")
    assert _locality(cluster) == {"a": _score(2 / 3), "b": _score(2 / 3), "d": 0}


def test_a_status_of_a_pod_makes_its_node_known_anew() -> None:
    cluster = Cluster()
    cluster.set_node(_node("a", IMAGE))
    cluster.add_pod(cluster.pod(_pod("one", "a")), "a")
    assert _locality(cluster) == {"a": _score(1)}
    cluster.set_node(_node("b", IMAGE))
    assert _locality(cluster) == {"a": _score(1 / 2), "b": _score(2 / 2)}
    cluster.see_pod(_pod("one", "a"), spec_changed=False)
    assert _locality(cluster) == {"a": _score(2 / 2), "b": _score(2 / 2)}


@pytest.mark.parametrize("gone", [True, False])
def test_a_claim_for_one_pod_is_free_when_the_node_of_that_pod_is_gone(gone: bool) -> None:
    """``usedPVCSet`` is made of the nodes of the snapshot; pods on nodes that are gone do not count."""
    claim = {
        "metadata": {"name": "data", "namespace": "default", "annotations": {"pv.kubernetes.io/bind-completed": "yes"}},
        "spec": {"accessModes": ["ReadWriteOncePod"], "volumeName": "volume"},
    }
    volume = {"metadata": {"name": "volume"}, "spec": {"accessModes": ["ReadWriteOncePod"]}}
    using: dict[str, Any] = {"volumes": [{"name": "v", "persistentVolumeClaim": {"claimName": "data"}}]}
    case = {"persistentVolumeClaims": [claim], "persistentVolumes": [volume]}
    cluster = decisions.cluster_of(case)
    for name in ("a", "b"):
        cluster.set_node(_node(name))
    cluster.add_pod(cluster.pod(_pod("one", "a", **using)), "a")
    if gone:
        cluster.remove_node("a")
    answer = decisions.decision(decisions.decider_of(case, cluster), cluster.pending(_pod("two", **using)))
    assert answer["node"] == ("b" if gone else "")
    cluster.set_node(_node("a"))  # it comes back, with its pod
    again = decisions.decision(decisions.decider_of(case, cluster), cluster.pending(_pod("three", **using)))
    assert again["node"] == ""
    cluster.remove_pod("one")
    free = decisions.decision(decisions.decider_of(case, cluster), cluster.pending(_pod("four", **using)))
    assert free["node"] in ("a", "b")
