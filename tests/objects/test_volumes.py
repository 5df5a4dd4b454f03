"""Claims and volumes: which go together, and what the API server refuses."""

from __future__ import annotations

from typing import Any

import pytest

from kemu.emulated.client import volume_drivers
from kemu.emulated.objects.conversion import convert
from kemu.emulated.objects.defaulting import data_sources, defaults
from kemu.emulated.objects.validation import kinds
from kemu.emulated.objects.volumes import claims, matching, migration
from kemu.messages.k8s import core_v1_pb2, storage_v1_pb2

CLAIM = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "5Gi"}}, "storageClassName": "c"}
VOLUME = {"capacity": {"storage": "5Gi"}, "accessModes": ["ReadWriteOnce"], "storageClassName": "c",
          "csi": {"driver": "d.example.com", "volumeHandle": "h"}}  # fmt: skip


def claim(name: str = "a", **spec: Any) -> Any:
    data = {"metadata": {"name": name, "namespace": "default", "uid": f"uid-{name}"}, "spec": {**CLAIM, **spec}}
    return convert.from_json(core_v1_pb2.PersistentVolumeClaim, data)


def volume(name: str, size: str = "5Gi", phase: str = "Available", **spec: Any) -> Any:
    data = {"metadata": {"name": name}, "spec": {**VOLUME, "capacity": {"storage": size}, **spec}}
    return convert.from_json(core_v1_pb2.PersistentVolume, {**data, "status": {"phase": phase}})


def test_the_smallest_volume_that_is_large_enough_is_found() -> None:
    volumes = [volume("large", "20Gi"), volume("fits", "6Gi"), volume("small", "1Gi"), volume("taken", phase="Bound")]
    found = matching.find(claim(), volumes)
    assert found.metadata.name == "fits"


def test_a_volume_that_is_bound_to_the_claim_comes_first_whatever_its_class() -> None:
    bound = volume("bound", "50Gi", claimRef={"namespace": "default", "name": "a"}, storageClassName="other")
    assert matching.find(claim(), [volume("fits"), bound]).metadata.name == "bound"


def test_a_claim_that_waits_for_its_consumer_is_left_to_the_scheduler() -> None:
    assert matching.find(claim(), [volume("free")], delays=True) is None
    assert matching.find(claim(), [volume("free")], ({}, "n"), delays=True) is not None


def test_a_reference_to_an_earlier_claim_of_that_name_does_not_count() -> None:
    reference = {"namespace": "default", "name": "a", "uid": "uid-of-the-first"}
    assert not claims.is_bound_to(volume("v", claimRef=reference), claim())


@pytest.mark.parametrize(
    ("spec", "message"),
    [
        ({"accessModes": []}, "spec.accessModes: Required value: at least 1 access mode is required"),
        ({"accessModes": ["ReadWriteOncePod", "ReadWriteOnce"]},
         "spec.accessModes: Forbidden: may not use ReadWriteOncePod with other access modes"),
        ({"resources": {}}, "spec.resources[storage]: Required value"),
        ({"volumeMode": "Disk"},
         'spec.volumeMode: Unsupported value: "Disk": supported values: "Block", "Filesystem"'),
    ],
)  # fmt: skip
def test_wrong_claims_are_refused(spec: dict[str, Any], message: str) -> None:
    made = claim(**spec)
    defaults.apply(made)
    assert [f"{cause.field}: {cause.message}" for cause in kinds.validate_create(made)] == [message]


def test_of_a_claim_only_the_volume_may_change_once() -> None:
    old, new = claim(), claim(volumeName="v")
    for one in (old, new):
        defaults.apply(one)
    assert kinds.validate_update(new, old) == []
    other = claim(volumeName="w")
    defaults.apply(other)
    assert [cause.field for cause in kinds.validate_update(other, new)] == ["spec"]


def test_a_class_is_completed_and_cannot_change() -> None:
    made = storage_v1_pb2.StorageClass(provisioner="d.example.com")
    made.metadata.name = "c"
    defaults.apply(made)
    assert (made.reclaimPolicy, made.volumeBindingMode) == ("Delete", "Immediate")
    changed = storage_v1_pb2.StorageClass.FromString(made.SerializeToString())
    changed.volumeBindingMode = "WaitForFirstConsumer"
    assert [cause.field for cause in kinds.validate_update(changed, made)] == ["volumeBindingMode"]


def test_the_newest_default_class_counts() -> None:
    made = []
    for second, name in enumerate(("old", "new", "plain")):
        one = storage_v1_pb2.StorageClass(provisioner="d.example.com")
        one.metadata.name, one.metadata.creationTimestamp.seconds = name, second
        if name != "plain":
            one.metadata.annotations[claims.DEFAULT_CLASS] = "true"
        made.append(one)
    assert claims.default_of(made).metadata.name == "new"


def test_a_disk_of_the_tree_is_known_to_its_driver_by_another_label() -> None:
    terms = [{"matchExpressions": [{"key": migration.ZONE, "operator": "In", "values": ["z"]}]}]
    affinity = {"required": {"nodeSelectorTerms": terms}}
    disk = volume("v", gcePersistentDisk={"pdName": "d"}, nodeAffinity=affinity)
    disk.spec.persistentVolumeSource.ClearField("csi")
    assert matching.is_reachable(disk, {migration.ZONE: "z"})
    assert matching.is_reachable(migration.translated(disk), {"topology.gke.io/zone": "z"})
    assert not matching.is_reachable(migration.translated(disk), {migration.ZONE: "z"})


def test_a_driver_has_defaults() -> None:
    known = volume_drivers.Drivers({"d.example.com": {"capacity": "1Gi", "attach": 9}})
    assert known.of("d.example.com").capacity_bytes == 1024**3
    assert (known.of("d.example.com").attach, known.of("other").attach) == (9, 5.0)


def attributes(**changes: Any) -> Any:
    data = {"metadata": {"name": "gold"}, "driverName": "d.example.com", "parameters": {"iops": "1"}, **changes}
    return convert.from_json(storage_v1_pb2.VolumeAttributesClass, data)


def csi_node(**changes: Any) -> Any:
    driver = {"name": "d.com", "nodeID": "q", "allocatable": {"count": 5}, **changes}
    return convert.from_json(storage_v1_pb2.CSINode, {"metadata": {"name": "n"}, "spec": {"drivers": [driver]}})


DEFAULT_GROUP = "must be 'PersistentVolumeClaim' when referencing the default apiGroup"
SENT = '"Name":"d.com","NodeID":"r"'


def texts(found: list[Any]) -> list[str]:
    return [f"{one.field}: {one.message}" for one in found]


@pytest.mark.parametrize(
    ("obj", "expected"),
    [
        (attributes(parameters={}), ["parameters: Required value: must contain at least one key/value pair"]),
        (attributes(driverName=""), ["driverName: Required value"]),
        (attributes(parameters={"": "1"}), ['parameters: Invalid value: "": field can not be empty.']),
        (claim(dataSource={"kind": "PersistentVolumeClaim", "name": "b"}), []),
        (claim(dataSource={"kind": "Foo", "name": "b"}), []),  # as without, as it always was
        (claim(dataSourceRef={"apiGroup": "x.com", "kind": "Foo", "name": "b"}), []),
        (
            claim(dataSourceRef={"kind": "Foo", "name": "b"}),
            [f'spec.{name}: Invalid value: "Foo": {DEFAULT_GROUP}' for name in ("dataSource", "dataSourceRef")],
        ),
        (
            claim(
                dataSource={"kind": "PersistentVolumeClaim", "name": "b"},
                dataSourceRef={"apiGroup": "x.com", "kind": "Foo", "name": "b"},
            ),
            ["spec: Invalid value: {}: must match dataSourceRef"],
        ),
    ],
)
def test_what_a_real_server_says_of_new_objects(obj: Any, expected: list[str]) -> None:
    if isinstance(obj, core_v1_pb2.PersistentVolumeClaim):
        data_sources.prepare(obj.spec)
    assert texts(kinds.validate_create(obj)) == expected


@pytest.mark.parametrize(
    ("new", "old", "expected"),
    [
        (
            attributes(driverName="other.com", parameters={"iops": "2"}),
            attributes(),
            [
                "driverName: Forbidden: updates to driverName are forbidden.",
                "parameters: Forbidden: updates to parameters are forbidden.",
            ],
        ),
        (csi_node(allocatable={"count": 7}), csi_node(), []),
        (
            csi_node(nodeID="r"),
            csi_node(),
            [f'spec.drivers: Invalid value: {{{SENT},"TopologyKeys":null,"Allocatable":null}}: field is immutable'],
        ),
    ],
)
def test_what_a_real_server_says_of_updates(new: Any, old: Any, expected: list[str]) -> None:
    assert texts(kinds.validate_update(new, old)) == expected


def test_a_data_source_is_said_twice_but_for_what_a_user_may_not_say() -> None:
    spec = claim(dataSource={"kind": "PersistentVolumeClaim", "name": "b"}).spec
    data_sources.prepare(spec)
    assert (spec.dataSourceRef.kind, spec.dataSourceRef.name) == ("PersistentVolumeClaim", "b")
    spec = claim(dataSourceRef={"apiGroup": "x.com", "kind": "Foo", "name": "b", "namespace": "other"}).spec
    data_sources.prepare(spec)
    assert not spec.HasField("dataSource")
    assert not spec.HasField("dataSourceRef")
