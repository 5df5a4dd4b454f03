"""The controllers of volumes together: whole runs in virtual time."""

from __future__ import annotations

from typing import Any

import pytest

import kemu

CLASS = {
    "apiVersion": "storage.k8s.io/v1",
    "kind": "StorageClass",
    "metadata": {"name": "fast"},
    "provisioner": "csi.example.com",
    "volumeBindingMode": "WaitForFirstConsumer",
}
CLAIM = {"accessModes": ["ReadWriteOnce"], "storageClassName": "fast", "resources": {"requests": {"storage": "5Gi"}}}


def pod(name: str, source: dict[str, Any]) -> dict[str, Any]:
    spec = {"containers": [{"name": "main", "image": "db"}], "volumes": [{"name": "data", **source}]}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name, "namespace": "default"}, "spec": spec}


def scenario(driver: dict[str, Any], manifests: list[Any], events: list[Any], expect: list[Any]) -> dict[str, Any]:
    spec = {
        "duration": "3m",
        "nodes": [{"name": f"n{zone}", "labels": {"topology.kubernetes.io/zone": zone}} for zone in "ab"],
        "storage": {"drivers": {"csi.example.com": driver}},
        "manifests": [CLASS, *manifests],
        "events": events,
        "expect": expect,
    }
    return {"apiVersion": "kemu.dev/v1", "kind": "Scenario", "metadata": {"name": "volumes"}, "spec": spec}


def claim(name: str) -> dict[str, Any]:
    metadata = {"name": name, "namespace": "default"}
    return {"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": metadata, "spec": CLAIM}


CASES: dict[str, dict[str, Any]] = {
    "a claim that is deleted stays as long as its pod uses it": scenario(
        {},
        [claim("data"), pod("db", {"persistentVolumeClaim": {"claimName": "data"}})],
        [
            {"at": "30s", "delete": {"kind": "PersistentVolumeClaim", "name": "data"}},
            {"at": "60s", "create": pod("late", {"persistentVolumeClaim": {"claimName": "data"}})},
            {"at": "90s", "delete": {"pod": "db"}},
        ],
        [
            {"pod": "late", "unschedulable": {"after": "60s", "before": "61s"}},
            {"pod": "late", "neverBound": True},
            {"object": {"kind": "PersistentVolumeClaim", "name": "data"}, "exists": False},
        ],
    ),
    "the claim of an ephemeral volume comes and goes with its pod": scenario(
        {},
        [pod("db", {"ephemeral": {"volumeClaimTemplate": {"spec": CLAIM}}})],
        [{"at": "30s", "delete": {"pod": "db"}}],
        [
            {"pod": "db", "running": {"before": "15s"}},
            {"object": {"kind": "PersistentVolumeClaim", "name": "db-data"}, "exists": False},
        ],
    ),
    "where there is no room, no volume is created": scenario(
        {"capacity": "8Gi"},
        [claim(name) for name in ("x", "y", "z")]
        + [pod(f"of-{name}", {"persistentVolumeClaim": {"claimName": name}}) for name in ("x", "y", "z")],
        [],
        [
            {"pods": {"names": ["of-x", "of-y", "of-z"]}, "count": {"is": {"running": {}}, "equals": 2}},
            {"object": {"kind": "CSIStorageCapacity", "name": "csisc-fast-a", "namespace": "kube-system"},
             "field": "capacity", "equals": "3Gi"},
        ],
    ),
    "a pod whose volume cannot be created returns to the queue": scenario(
        {"failures": 1},
        [claim("data"), pod("db", {"persistentVolumeClaim": {"claimName": "data"}})],
        [],
        [
            {"pod": "db", "nominationCleared": {"before": "10s"}},
            {"pod": "db", "neverBound": True},
            {"counter": "bind_errors", "atLeast": 3},
        ],
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", CASES)
def test_volumes(name: str) -> None:
    run = kemu.run(CASES[name])
    assert run.holds, {name: one for name, one in run.expectations.items() if not one.holds}
