"""Workloads: the volumes that claims of StatefulSets stand for, structs in messages."""

from __future__ import annotations

from typing import Any

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
