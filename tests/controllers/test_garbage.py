"""Garbage collection by owner references, and the deletion of namespaces, as in Kubernetes v1.36.3."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from kemu.emulated.controllers.garbage import graphs
from kemu.messages.k8s import core_v1_pb2
from tests.controllers.test_node_failures import Played, owner, play

NODE = 'nodes: [{name: n1, allocatable: {cpu: "64", memory: 256Gi, pods: "500"}}]'


def logged(found: Played, kind: str) -> list[tuple[float, Any]]:
    return [(round(at, 1), data) for at, _, what, data in found.events if what == kind]


def test_an_object_whose_owner_has_another_uid_is_deleted(tmp_path: Path) -> None:
    found = play(tmp_path, f"""
        duration: 60s
        {NODE}
        manifests:
        {owner("ReplicaSet", "one", 1)}
        events:
          - {{at: 5s, create: {{apiVersion: v1, kind: ConfigMap, metadata: {{name: settings, ownerReferences: [
              {{apiVersion: apps/v1, kind: ReplicaSet, name: one, uid: not-its-uid}}]}}}}}}
    """)  # fmt: skip
    assert [data["name"] for _, data in logged(found, "gc.deleted")] == ["default/settings"]


def test_pods_of_a_deleted_owner_go_in_the_background(tmp_path: Path) -> None:
    found = play(tmp_path, f"""
        duration: 2m
        {NODE}
        manifests:
        {owner("ReplicaSet", "web", 3)}
        events:
          - {{at: 60s, delete: {{kind: ReplicaSet, name: web}}}}
    """)  # fmt: skip
    assert [(at, data["policy"]) for at, data in logged(found, "gc.deleted")] == [(60.0, "Background")] * 3
    assert found.pods == {}


class Graph:
    """What is looked at, as events come."""

    def __init__(self) -> None:
        self.looked: list[str] = []
        self.orphaned: list[str] = []
        self.complaints: list[str] = []
        self.graph = graphs.Graph(
            lambda node: self.looked.append(node.identity.name),
            lambda node: self.looked.append(f"{node.identity.name} later"),
            lambda node: self.orphaned.append(node.identity.name),
            lambda node, identity: self.complaints.append(f"{node.identity.name}: {identity}"),
        )

    def put(self, name: str, owners: Sequence[str] = (), namespace: str = "a", finalizer: str = "") -> core_v1_pb2.Pod:
        pod = core_v1_pb2.Pod()
        metadata = pod.metadata
        metadata.name, metadata.namespace, metadata.uid = name, namespace, f"uid-{name}"
        for each in owners:
            metadata.ownerReferences.add(
                apiVersion="v1", kind="Pod", name=each, uid=f"uid-{each}", blockOwnerDeletion=True
            )
        if finalizer:
            metadata.finalizers.append(finalizer)
            metadata.deletionTimestamp.seconds = 1
        self.graph.put("v1", "Pod", None, pod)
        return pod


def test_an_owner_that_was_not_seen_is_looked_up() -> None:
    graph = Graph()
    graph.put("child", ["parent"])
    assert graph.looked == ["parent"]
    assert graph.graph.nodes["uid-parent"].virtual
    graph.put("parent")
    assert not graph.graph.nodes["uid-parent"].virtual


def test_dependents_are_looked_at_when_their_owner_is_gone() -> None:
    graph = Graph()
    parent = graph.put("parent")
    graph.put("one", ["parent"])
    graph.put("two", ["parent"])
    graph.graph.remove("v1", "Pod", parent)
    assert graph.looked == ["one", "two"]
    assert graphs.Identity("Pod", "v1", "a", "parent", "uid-parent") in graph.graph.absent


def test_a_reference_into_another_namespace_is_reported() -> None:
    graph = Graph()
    graph.put("parent", namespace="a")
    graph.put("child", ["parent"], namespace="b")
    assert graph.looked == ["child"]
    assert graph.complaints == ["child: [v1/Pod, namespace: b, name: parent, uid: uid-parent]"]


def test_foreground_and_orphan_begin_with_their_finalizer() -> None:
    graph = Graph()
    graph.put("child", ["foreground"])
    graph.looked.clear()
    graph.put("foreground", finalizer="foregroundDeletion")
    assert graph.looked == ["child", "foreground"]
    assert [node.identity.name for node in graph.graph.nodes["uid-foreground"].blocking_dependents()] == ["child"]
    graph.put("orphan", finalizer="orphan")
    assert graph.orphaned == ["orphan"]


def test_a_name_that_dependents_disagree_on_is_not_given_up_at_once() -> None:
    """The next of the names is tried."""
    graph = Graph()
    graph.put("child", ["parent"])
    other = core_v1_pb2.Pod()
    other.metadata.name, other.metadata.namespace, other.metadata.uid = "other", "a", "uid-other"
    other.metadata.ownerReferences.add(apiVersion="v1", kind="Pod", name="renamed", uid="uid-parent")
    graph.graph.put("v1", "Pod", None, other)
    graph.looked.clear()
    graph.graph.is_gone(graphs.Identity("Pod", "v1", "a", "parent", "uid-parent"))
    assert graph.looked == ["child", "renamed later"]


def test_a_namespace_waits_for_a_pod_with_a_long_grace_period(tmp_path: Path) -> None:
    found = play(tmp_path, f"""
        duration: 3m
        {NODE}
        manifests:
          - {{apiVersion: v1, kind: Namespace, metadata: {{name: shop}}}}
          - {{apiVersion: v1, kind: Service, metadata: {{name: web, namespace: shop}}, spec: {{ports: [{{port: 80}}]}}}}
          - apiVersion: v1
            kind: Pod
            metadata: {{name: slow, namespace: shop, annotations: {{kemu.dev/shutdown-seconds: "40"}}}}
            spec: {{terminationGracePeriodSeconds: 50, containers: [{{name: main}}]}}
        events:
          - {{at: 60s, delete: {{kind: Namespace, name: shop}}}}
    """)  # fmt: skip
    looks = [(at, data["remaining"], data["estimate_s"]) for at, data in logged(found, "namespace.emptied")]
    assert looks[0] == (65.0, {"pods.": 1}, 50)
    assert looks[-1][1:] == ({}, 0)
    last = [core_v1_pb2.Namespace.FromString(value) for _, key, value in found.written if key.endswith("/shop")][-1]
    assert last.status.phase == "Terminating"
