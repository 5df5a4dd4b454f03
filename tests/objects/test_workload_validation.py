"""Workloads: the numbers in their statuses, the volumes that claims of StatefulSets stand for, structs in messages."""

from __future__ import annotations

from typing import Any

import pytest

from kemu.emulated.objects.conversion import convert
from kemu.emulated.objects.defaulting import defaults
from kemu.emulated.objects.validation import causes, kinds
from kemu.errors import Cause
from kemu.messages.k8s import core_v1_pb2

CONTAINER = {"name": "c", "image": "i"}


def workload(kind: str, status: dict[str, Any] | None = None, **spec: Any) -> Any:
    template = {"metadata": {"labels": {"app": "a"}}, "spec": {"containers": [CONTAINER]}}
    obj = convert.from_manifest(
        {
            "apiVersion": "apps/v1",
            "kind": kind,
            "metadata": {"name": "a", "namespace": "default"},
            "spec": {"selector": {"matchLabels": {"app": "a"}}, "template": template, **spec},
            "status": status or {},
        }
    )
    defaults.apply(obj)
    return obj


def texts(found: list[Cause]) -> list[str]:
    return [f"{one.field}: {one.message}" for one in found]


@pytest.mark.parametrize(
    ("kind", "before", "after", "expected"),
    [
        ("ReplicaSet", {}, {"replicas": 2, "readyReplicas": 2, "availableReplicas": 1}, []),
        (
            "ReplicaSet",
            {},
            {"replicas": 1, "readyReplicas": 2, "availableReplicas": 3},
            [
                "status.readyReplicas: Invalid value: 2: cannot be greater than status.replicas",
                "status.availableReplicas: Invalid value: 3: cannot be greater than status.replicas",
                "status.availableReplicas: Invalid value: 3: cannot be greater than readyReplicas",
            ],
        ),
        (
            "StatefulSet",
            {},
            {"replicas": 1, "availableReplicas": 1},
            ["status.availableReplicas: Invalid value: 1: cannot be greater than status.readyReplicas"],
        ),
        (
            "Deployment",
            {"collisionCount": 2},
            {"unavailableReplicas": -1, "collisionCount": 1},
            [
                "status.unavailableReplicas: Invalid value: -1: must be greater than or equal to 0",
                "status.collisionCount: Invalid value: 1: cannot be decremented",
            ],
        ),
        ("DaemonSet", {"collisionCount": 0}, {}, ["status.collisionCount: Invalid value: 0: cannot be decremented"]),
        ("DaemonSet", {}, {"numberReady": 3}, []),
    ],
)
def test_numbers_of_a_status(kind: str, before: dict[str, Any], after: dict[str, Any], expected: list[str]) -> None:
    assert texts(kinds.validate_status_update(workload(kind, after), workload(kind, before))) == expected


def test_a_claim_is_a_volume_of_the_template() -> None:
    claim = {
        "metadata": {"name": "d"},
        "spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}},
    }
    mounts = [{"name": "d", "mountPath": "/d"}, {"name": "e", "mountPath": "/e"}]
    template = {
        "metadata": {"labels": {"app": "a"}},
        "spec": {
            "subdomain": "not.checked",
            "containers": [{**CONTAINER, "volumeMounts": mounts}],
            "volumes": [{"name": "d", "emptyDir": {}}],
        },
    }
    stateful_set = workload("StatefulSet", volumeClaimTemplates=[claim], template=template)
    assert texts(kinds.validate_create(stateful_set)) == [
        'spec.template.spec.containers[0].volumeMounts[1].name: Not found: "e"'
    ]


def test_a_refused_struct_is_shown_with_all_of_its_fields() -> None:
    assert causes.shown(core_v1_pb2.Taint(key="<")) == '{"Key":"\\u003c","Value":"","Effect":"","TimeAdded":null}'
    spec = convert.from_json(core_v1_pb2.PodSpec, {"hostPID": True, "securityContext": {"fsGroup": 1}})
    shown = causes.shown(spec)
    assert '"SecurityContext":{"HostNetwork":false,"HostPID":true,' in shown
    assert '"FSGroup":1,' in shown
    assert '"HostPID"' not in shown.partition('"ImagePullSecrets"')[2]
