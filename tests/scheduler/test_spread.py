"""Topology spread constraints: what the reference scheduler and the recorded cases do not ask."""

from __future__ import annotations

from typing import Any

import pytest

from tests.scheduler import objects


@pytest.mark.parametrize(
    ("version_at_creation", "feasible"),
    [
        ("v2", ["a"]),  # as it is now
        ("", ["a"]),  # the label came later
        ("v1", ["a", "b"]),  # the label changed: no pod is both
    ],
)
def test_label_keys_are_about_the_labels_of_today(version_at_creation: str, feasible: list[str]) -> None:
    """``podtopologyspread.filterTopologySpreadConstraints`` adds them to what the API server put into the selector."""
    selector: dict[str, Any] = {"matchLabels": {"app": "web"}}
    if version_at_creation:
        selector["matchExpressions"] = [{"key": "version", "operator": "In", "values": [version_at_creation]}]
    constraint = {
        "maxSkew": 1,
        "topologyKey": objects.ZONE,
        "whenUnsatisfiable": "DoNotSchedule",
        "labelSelector": selector,
        "matchLabelKeys": ["version"],
    }
    running = [
        objects.pod(f"p{number}", on=node, labels={"app": "web", "version": version})
        for number, (node, version) in enumerate([("a", "v1"), ("a", "v1"), ("b", "v2")])
    ]
    cluster = objects.cluster_of([objects.node(name, {objects.ZONE: name}) for name in "ab"], running)
    pod = objects.pod("new", labels={"app": "web", "version": "v2"}, topologySpreadConstraints=[constraint])
    filtering = objects.decider(cluster).filter(cluster.pending(pod))
    assert [node.name for row, node in enumerate(cluster.rows) if filtering.status(row) is None] == feasible
