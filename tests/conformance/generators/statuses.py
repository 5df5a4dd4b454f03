"""Statuses with values, right and wrong, which a kubelet or a controller writes one after the other."""

from __future__ import annotations

import copy
import random
from typing import Any

from kemu.emulated.objects import resources
from kemu.emulated.objects.managed_fields import schemas
from tests.conformance.generators import fields, metadata

Json = dict[str, Any]
FAMILIES = ("statuses",)

_THEN = "2020-01-02T03:04:05Z"
_CONTAINER = {"name": "c", "image": "i", "imageID": "", "restartCount": 0}
_RUNNING = {**_CONTAINER, "ready": True, "state": {"running": {"startedAt": _THEN}}}
_ENDED = {**_CONTAINER, "ready": False, "state": {"terminated": {"exitCode": 1}}}
_CONDITION = {"type": "Ready", "status": "True", "lastTransitionTime": _THEN, "reason": "R", "message": ""}
_DEVICE = {"driver": "d.example.com", "pool": "p", "device": "a", "request": "r"}
_STATUSES: dict[str, tuple[Json, ...]] = {
    "pods": (
        {"phase": "Running", "podIPs": [{"ip": "10.0.0.1"}], "podIP": "10.0.0.1", "containerStatuses": [_RUNNING]},
        {"phase": "Failed", "containerStatuses": [_ENDED], "qosClass": "BestEffort"},
        {"phase": "Pending", "conditions": [{"type": "PodScheduled", "status": "True"}], "hostIP": "10.0.0.2"},
        {
            "phase": "Pending",
            "observedGeneration": 1,
            "conditions": [{"type": "PodScheduled", "status": "True", "observedGeneration": 1}],
        },
    ),
    "nodes": (
        {
            "capacity": {"cpu": "2"},
            "conditions": [{"type": "Ready", "status": "True"}],
            "addresses": [{"type": "InternalIP", "address": "10.0.0.1"}],
            "images": [{"names": ["i"], "sizeBytes": 1}],
            "volumesAttached": [{"name": "v", "devicePath": ""}],
        },
    ),
    "jobs": (
        {"startTime": _THEN, "active": 1, "ready": 0, "uncountedTerminatedPods": {"succeeded": ["u"]}},
        {
            "startTime": _THEN,
            "completionTime": _THEN,
            "succeeded": 1,
            "conditions": [
                {"type": "SuccessCriteriaMet", "status": "True"},
                {"type": "Complete", "status": "True"},
            ],
        },
        {"startTime": _THEN, "failed": 1, "conditions": [{"type": "FailureTarget", "status": "True"}]},
        {"startTime": _THEN, "active": 2, "completedIndexes": "0,2-3", "failedIndexes": "1"},
    ),
    "deployments": (
        {"replicas": 3, "updatedReplicas": 2, "readyReplicas": 2, "availableReplicas": 1, "collisionCount": 1},
    ),
    "replicasets": ({"replicas": 3, "fullyLabeledReplicas": 3, "readyReplicas": 2, "availableReplicas": 1},),
    "replicationcontrollers": ({"replicas": 3, "readyReplicas": 2, "availableReplicas": 1},),
    "statefulsets": (
        {"replicas": 3, "readyReplicas": 2, "currentReplicas": 1, "updatedReplicas": 1, "availableReplicas": 1},
    ),
    "daemonsets": (
        {"currentNumberScheduled": 1, "numberMisscheduled": 0, "desiredNumberScheduled": 1, "numberReady": 1},
    ),
    "cronjobs": ({"active": [{"kind": "Job", "name": "j", "namespace": "default"}], "lastScheduleTime": _THEN},),
    "services": (
        {"conditions": [_CONDITION]},
        {"loadBalancer": {"ingress": [{"ip": "10.0.0.1", "ports": [{"port": 1, "protocol": "TCP"}]}]}},
    ),
    "ingresses": ({"loadBalancer": {"ingress": [{"ip": "10.0.0.1", "ports": [{"port": 1, "protocol": "TCP"}]}]}},),
    "resourcequotas": ({"hard": {"pods": "5"}, "used": {"pods": "1"}},),
    "poddisruptionbudgets": (
        {
            "currentHealthy": 1,
            "desiredHealthy": 1,
            "disruptionsAllowed": 0,
            "expectedPods": 1,
            "conditions": [_CONDITION],
        },
    ),
    "persistentvolumes": ({"phase": "Bound"},),
    "persistentvolumeclaims": (
        {
            "phase": "Bound",
            "accessModes": ["ReadWriteOnce"],
            "capacity": {"storage": "1Gi"},
            "allocatedResources": {"storage": "2Gi"},
            "conditions": [{"type": "Resizing", "status": "True"}],
        },
    ),
    "volumeattachments": ({"attached": True, "attachmentMetadata": {"a": "b"}}, {"attached": False, "attachError": {}}),
    "horizontalpodautoscalers": (
        {
            "currentReplicas": 1,
            "desiredReplicas": 1,
            "conditions": [{"type": "AbleToScale", "status": "True"}],
            "currentMetrics": [{"type": "Resource", "resource": {"name": "cpu", "current": {"averageValue": "1"}}}],
        },
    ),
    "resourceclaims": (
        {"allocation": {"devices": {"results": [_DEVICE]}}},
        {
            "allocation": {"devices": {"results": [_DEVICE]}},
            "reservedFor": [{"resource": "pods", "name": "p", "uid": "u"}],
            "devices": [{"driver": "d.example.com", "pool": "p", "device": "a", "conditions": [_CONDITION]}],
        },
    ),
    "namespaces": ({"phase": "Active", "conditions": [{"type": "NamespaceContentRemaining", "status": "True"}]},),
    "validatingadmissionpolicies": ({"observedGeneration": 1, "conditions": [_CONDITION]},),
}
"""Valid ones, by plural: what a controller would write."""
_OFTEN = ("pods", "pods", "nodes", "jobs", "jobs", "resourceclaims", "persistentvolumeclaims")


def case(family: str, seed: int, number: int) -> Json:
    draw = random.Random(f"{family} {seed} {number}")
    plural = draw.choice((*_STATUSES, *_OFTEN))
    plain = fields.plain(plural)
    if plural == "services" and draw.random() < 0.6:
        plain["spec"] |= {"type": "LoadBalancer", "allocateLoadBalancerNodePorts": False, "clusterIP": "10.96.0.77"}
    if plural == "jobs" and draw.random() < 0.5:
        limit = {"backoffLimitPerIndex": 1} if draw.random() < 0.5 else {}
        plain["spec"] |= {"completionMode": "Indexed", "completions": 5, "parallelism": draw.choice((2, 5)), **limit}
    if plural == "pods":
        plain["spec"]["restartPolicy"] = draw.choice(("Always", "OnFailure", "Never"))
    steps = [metadata.wrapped("create", plain)]
    status: Json = {}
    for _ in range(draw.randint(4, 7)):
        status = _status(draw, plural, status)
        body = {**copy.deepcopy(plain), "status": status}
        if plural == "poddisruptionbudgets" or draw.random() < 0.2:
            steps.append(metadata.wrapped("merge", {"status": status}, subresource="status"))
            continue
        if draw.random() < 0.1:
            # The spec and most of the metadata are not of this subresource.
            _change_all(draw, body)
        steps.append(metadata.wrapped("update", body, subresource="status"))
    return {"id": f"statuses-s{seed}-{number:05}", "family": family, "resource": plural, "steps": steps}


def _status(draw: random.Random, plural: str, before: Json) -> Json:
    """``before``: that of the step before, which may have been refused."""
    status = copy.deepcopy(before if before and draw.random() < 0.3 else draw.choice(_STATUSES[plural]))
    resource = resources.BY_PLURAL[plural]
    kind = schemas.find_type(schemas.find(resource.api_version, resource.kind) or "")
    assert kind is not None
    assert kind.fields is not None
    for _ in range(draw.choice((0, 1, 1, 2, 3))):
        fields.change(draw, schemas.resolve(kind.fields["status"].type), status, ())
    for one in ((status.get("allocation") or {}).get("devices") or {}).get("results") or ():
        one.pop("adminAccess", None)  # is refused beside what else is wrong, and here before it
    return status


def _change_all(draw: random.Random, body: Json) -> None:
    kind = schemas.find_type(schemas.find(body["apiVersion"], body["kind"]) or "")
    assert kind is not None
    fields.change(draw, kind, body)
    body["metadata"]["labels"] = {"a": draw.choice(("b", "Bad_/"))}
