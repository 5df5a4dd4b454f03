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


def claim(name: str, **others: Any) -> dict[str, Any]:
    metadata = {"name": name, "namespace": "default"}
    return {"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": metadata, "spec": {**CLAIM, **others}}


GROWING = {**CLASS, "metadata": {"name": "growing"}, "allowVolumeExpansion": True}
NOT_ON_NODE = "volume.kubernetes.io/node-expansion-not-required"
DATA = {"kind": "PersistentVolumeClaim", "name": "data"}
DB = pod("db", {"persistentVolumeClaim": {"claimName": "data"}})


def asks(at: str, size: str) -> dict[str, Any]:
    return {"at": at, "patch": {**DATA, "merge": {"spec": {"resources": {"requests": {"storage": size}}}}}}


def attributes(name: str, driver: str = "csi.example.com") -> dict[str, Any]:
    kind = {"apiVersion": "storage.k8s.io/v1", "kind": "VolumeAttributesClass"}
    return {**kind, "metadata": {"name": name}, "driverName": driver, "parameters": {"iops": "1000"}}


def wants(at: str, name: str) -> dict[str, Any]:
    return {"at": at, "patch": {**DATA, "merge": {"spec": {"volumeAttributesClassName": name}}}}


def says(field: str, value: Any) -> dict[str, Any]:
    wanted = {"exists": False} if value is None else {"equals": value}
    return {"object": DATA, "field": f"status.{field}", **wanted}


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
    "a claim that asks for more grows: first the volume, then, at a sync of the pod, its file system": scenario(
        {},
        [GROWING, claim("data", storageClassName="growing"), DB],
        [asks("30s", "8Gi")],
        [
            says("capacity.storage", "8Gi"),
            says("allocatedResources.storage", "8Gi"),
            says("allocatedResourceStatuses", None),
            says("conditions", None),
        ],
    ),
    "a volume without a file system needs no node to grow": scenario(
        {},
        [GROWING, claim("data", storageClassName="growing", volumeMode="Block"), DB],
        [asks("30s", "8Gi")],
        [
            says("capacity.storage", "8Gi"),
            {"object": DATA, "field": f"metadata.annotations[{NOT_ON_NODE}]", "equals": "true"},
        ],
    ),
    "where there is no room to grow, a user may ask for less": scenario(
        {"capacity": "10Gi"},
        [GROWING, claim("data", storageClassName="growing"), DB],
        [asks("20s", "20Gi"), asks("60s", "7Gi")],
        [
            {"event": {"reason": "VolumeResizeFailed", "about": "data", "equals": 1}},
            says("capacity.storage", "7Gi"),
            says("conditions", None),
        ],
    ),
    "a claim whose class does not allow it does not grow": scenario(
        {}, [claim("data"), DB], [asks("30s", "8Gi")], [says("capacity.storage", "5Gi"), says("conditions", None)]
    ),
    "a volume gets the attributes of another class": scenario(
        {},
        [attributes("gold"), claim("data"), DB],
        [wants("30s", "gold")],
        [says("currentVolumeAttributesClassName", "gold"), says("modifyVolumeStatus", None), says("conditions", None)],
    ),
    "a class of attributes of another driver is infeasible": scenario(
        {},
        [attributes("gold", "csi.other.com"), claim("data"), DB],
        [wants("30s", "gold")],
        [says("modifyVolumeStatus.status", "Infeasible"), says("currentVolumeAttributesClassName", None)],
    ),
    "a class of attributes that is deleted stays as long as a claim has it": scenario(
        {},
        [attributes("gold"), attributes("free"), claim("data", volumeAttributesClassName="gold"), DB],
        [{"at": "30s", "delete": {"kind": "VolumeAttributesClass", "name": name}} for name in ("gold", "free")],
        [
            {"object": {"kind": "VolumeAttributesClass", "name": "gold"}, "exists": True},
            {"object": {"kind": "VolumeAttributesClass", "name": "free"}, "exists": False},
        ],
    ),
    "a class of attributes goes when nobody has it any more": scenario(
        {},
        [attributes("gold"), claim("data", volumeAttributesClassName="gold")],
        [
            {"at": "10s", "delete": {"kind": "VolumeAttributesClass", "name": "gold"}},
            {"at": "30s", "delete": DATA},
        ],
        [{"object": {"kind": "VolumeAttributesClass", "name": "gold"}, "exists": False}],
    ),
    "a class of attributes that is not there is waited for": scenario(
        {},
        [claim("data"), DB],
        [wants("30s", "gold"), {"at": "60s", "create": attributes("gold")}],
        [says("currentVolumeAttributesClassName", "gold"), says("modifyVolumeStatus", None)],
    ),
    "a claim is filled from another one that is bound": scenario(
        {},
        [claim("origin"), claim("data", dataSource={"kind": "PersistentVolumeClaim", "name": "origin"}),
         pod("first", {"persistentVolumeClaim": {"claimName": "origin"}})],
        [{"at": "20s", "create": DB}],
        [says("phase", "Bound"), {"object": DATA, "field": "spec.dataSourceRef.name", "equals": "origin"}],
    ),
    "a claim waits for the populator of its data source": scenario(
        {},
        [claim("data", dataSourceRef={"apiGroup": "example.com", "kind": "Backup", "name": "old"}), DB],
        [],
        [says("phase", "Pending"), {"pod": "db", "neverBound": True},
         {"object": DATA, "field": "spec.dataSource.kind", "equals": "Backup"}],
    ),
    "a claim is not filled from one that is larger": scenario(
        {},
        [claim("origin"), pod("first", {"persistentVolumeClaim": {"claimName": "origin"}}),
         claim("data", dataSource={"kind": "PersistentVolumeClaim", "name": "origin"},
               resources={"requests": {"storage": "1Gi"}})],
        [{"at": "20s", "create": DB}],
        [says("phase", "Pending"), {"event": {"reason": "ProvisioningFailed", "about": "data", "atLeast": 1}}],
    ),
    "a kubelet corrects how many volumes its node takes, and rejects the pod that waits for one more": scenario(
        {"volumesPerNode": 5, "attachesPerNode": 1, "allocatableUpdatePeriod": "10m", "topologyKeys": []},
        [claim("data"), DB, claim("other")],
        [
            {"at": 0, "cordon": {"node": "nb"}},
            {"at": "20s", "create": pod("late", {"persistentVolumeClaim": {"claimName": "other"}})},
        ],
        [
            {"pods": {"names": ["db"]}, "count": {"is": {"running": {}}, "equals": 1}},
            {"event": {"reason": "VolumeAttachmentLimitExceeded", "equals": 1}},
            {"object": {"kind": "CSINode", "name": "na"}, "field": "spec.drivers[0].allocatable.count", "equals": 1},
        ],
    ),
    "a kubelet asks the driver again how many volumes its node takes": scenario(
        {"volumesPerNode": 5, "attachesPerNode": 2, "allocatableUpdatePeriod": "20s"},
        [claim("data"), DB],
        [{"at": "60s", "create": claim("later")}],
        [{"object": {"kind": "CSINode", "name": "nb"}, "field": "spec.drivers[0].allocatable.count", "equals": 2}],
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
