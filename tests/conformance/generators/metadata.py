"""Sequences of writes with mistakes in ``metadata``, to objects of nearly every kind."""

from __future__ import annotations

import copy
import random
from typing import Any

from kemu.emulated.objects import resources

Json = dict[str, Any]
Draw = random.Random
FAMILIES = ("metadata",)

_SELECTOR = {"matchLabels": {"app": "a"}}
_CONTAINERS = [{"name": "c", "image": "i"}]
_TEMPLATE = {"metadata": {"labels": {"app": "a"}}, "spec": {"containers": _CONTAINERS}}
_WORKLOAD = {"spec": {"selector": _SELECTOR, "template": _TEMPLATE}}
_JOB = {"spec": {"template": {"spec": {"containers": _CONTAINERS, "restartPolicy": "Never"}}}}
_CLAIM = {"devices": {"requests": [{"name": "r", "exactly": {"deviceClassName": "c"}}]}}
_RULES = {"rules": [{"verbs": ["get"], "apiGroups": [""], "resources": ["pods"]}]}
_MATCH = {"apiGroups": ["x"], "apiVersions": ["v1"], "resources": ["xs"], "operations": ["CREATE"]}
_WEBHOOKS = {
    "webhooks": [
        {
            "name": "a.example.com",
            "clientConfig": {"url": "https://127.0.0.1:9/"},
            "admissionReviewVersions": ["v1"],
            "sideEffects": "None",
            "rules": [_MATCH],
        }
    ]
}


def _role(kind: str) -> Json:
    return {"roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": kind, "name": "r"}}


OBJECTS: dict[str, Json] = {
    "namespaces": {},
    "nodes": {},
    "pods": {"spec": {"containers": _CONTAINERS}},
    "events": {
        "involvedObject": {"namespace": "default", "name": "z", "kind": "Pod"},
        "reason": "r",
        "message": "m",
        "type": "Normal",
        "source": {"component": "c"},
    },
    "services": {"spec": {"clusterIP": "None", "ports": [{"port": 80}]}},
    "replicationcontrollers": {"spec": {"selector": {"app": "a"}, "template": _TEMPLATE}},
    "resourcequotas": {"spec": {"hard": {"pods": "5"}}},
    "replicasets": _WORKLOAD,
    "statefulsets": {"spec": {**_WORKLOAD["spec"], "serviceName": "s"}},
    "deployments": _WORKLOAD,
    "daemonsets": _WORKLOAD,
    "cronjobs": {"spec": {"schedule": "0 0 1 1 *", "jobTemplate": _JOB}},
    "poddisruptionbudgets": {"spec": {"selector": _SELECTOR, "minAvailable": 1}},
    "priorityclasses": {"value": 5},
    "leases": {"spec": {}},
    "runtimeclasses": {"handler": "h"},
    "limitranges": {"spec": {"limits": [{"type": "Container", "max": {"cpu": "1"}}]}},
    "persistentvolumes": {
        "spec": {"capacity": {"storage": "1Gi"}, "accessModes": ["ReadWriteOnce"], "hostPath": {"path": "/a"}}
    },
    "persistentvolumeclaims": {
        "spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}
    },
    "configmaps": {"data": {"a": "1"}},
    "secrets": {"stringData": {"a": "1"}},
    "serviceaccounts": {},
    "endpoints": {"subsets": [{"addresses": [{"ip": "10.0.0.1"}], "ports": [{"port": 80}]}]},
    "podtemplates": {"template": _TEMPLATE},
    "storageclasses": {"provisioner": "example.com/p"},
    "csinodes": {"spec": {"drivers": [{"name": "d.example.com", "nodeID": "n"}]}},
    "csidrivers": {"spec": {}},
    "csistoragecapacities": {"storageClassName": "s"},
    "volumeattachments": {
        "spec": {"attacher": "d.example.com", "nodeName": "n", "source": {"persistentVolumeName": "v"}}
    },
    "volumeattributesclasses": {"driverName": "d.example.com", "parameters": {"a": "b"}},
    "ingresses": {"spec": {"defaultBackend": {"service": {"name": "s", "port": {"number": 80}}}}},
    "ingressclasses": {"spec": {"controller": "example.com/c"}},
    "networkpolicies": {"spec": {"podSelector": {}}},
    "roles": _RULES,
    "clusterroles": _RULES,
    "rolebindings": _role("Role"),
    "clusterrolebindings": _role("ClusterRole"),
    "horizontalpodautoscalers": {
        "spec": {
            "maxReplicas": 3,
            "scaleTargetRef": {"kind": "Deployment", "name": "d", "apiVersion": "apps/v1"},
            "metrics": [
                {
                    "type": "Resource",
                    "resource": {"name": "cpu", "target": {"type": "AverageValue", "averageValue": "1"}},
                }
            ],
        }
    },
    "endpointslices": {
        "addressType": "IPv4",
        "endpoints": [{"addresses": ["10.0.0.1"]}],
        "ports": [{"port": 80, "name": "", "protocol": "TCP"}],
    },
    "deviceclasses": {"spec": {"selectors": [{"cel": {"expression": "true"}}]}},
    "resourceclaims": {"spec": _CLAIM},
    "resourceclaimtemplates": {"spec": {"spec": _CLAIM}},
    "resourceslices": {
        "spec": {
            "driver": "d.example.com",
            "pool": {"name": "p", "generation": 1, "resourceSliceCount": 1},
            "nodeName": "n",
            "devices": [{"name": "a"}],
        }
    },
    "validatingadmissionpolicies": {
        "spec": {"matchConstraints": {"resourceRules": [_MATCH]}, "validations": [{"expression": "true"}]}
    },
    "validatingadmissionpolicybindings": {"spec": {"policyName": "p", "validationActions": ["Deny"]}},
    "validatingwebhookconfigurations": _WEBHOOKS,
    "mutatingwebhookconfigurations": _WEBHOOKS,
}
"""Something valid of each kind, by plural. Left out: Jobs, which have random labels; kinds that a controller of the
real server changes; kinds whose names follow from what they hold."""

_NAMES = ("BAD_", "a.b", "1a", "-a", "a" * 64, "a/b", "..", "A", "a_b", "é")
_KEYS = ("-a", "a b", "/a", "x/", "a" * 64, "example.com/-", "A/b", f"{'x' * 254}/b")
_FINALIZERS = ("nodomain", "Bad_/x", "x y", "example.com/a", "kubernetes", "orphan", "foregroundDeletion", "/", "")
_OWNERS: tuple[Json, ...] = (
    {"apiVersion": "v1", "kind": "", "name": "", "uid": ""},
    {"apiVersion": "", "kind": "Pod", "name": "p", "uid": "u"},
    {"apiVersion": "v1", "kind": "Event", "name": "e", "uid": "u"},
    {"apiVersion": "v1", "kind": "Pod", "name": "p", "uid": "u", "controller": True},
    {"apiVersion": "v1", "kind": "Pod", "name": "q", "uid": "v", "controller": True},
)


def case(family: str, seed: int, number: int) -> Json:
    draw = random.Random(f"{family} {seed} {number}")
    plural = draw.choice(tuple(OBJECTS))
    steps = [_create(draw, plural) for _ in range(draw.randint(0, 2))]
    steps.append(wrapped("create", plain(plural)))
    steps += [_step(draw, plural) for _ in range(draw.randint(3, 6))]
    return {"id": f"metadata-s{seed}-{number:05}", "family": "metadata", "resource": plural, "steps": steps}


def plain(plural: str) -> Json:
    resource = resources.BY_PLURAL[plural]
    metadata = {"name": "x", "namespace": "default"} if resource.namespaced else {"name": "x"}
    return {
        "apiVersion": resource.api_version,
        "kind": resource.kind,
        "metadata": metadata,
        **copy.deepcopy(_JOB if plural == "jobs" else OBJECTS[plural]),
    }


def wrapped(verb: str, body: Json, **more: Any) -> Json:
    return {"verb": verb, "body": body, "manager": "alice", **more}


def _create(draw: Draw, plural: str) -> Json:
    """With a mistake, mostly."""
    body = plain(plural)
    if draw.random() < 0.3:
        # Nothing of that name is cleared away after the case.
        body["metadata"]["name"] = draw.choice(_NAMES)
        return wrapped("create", body, dryRun=True)
    body["metadata"].update(_mistakes(draw))
    return wrapped("create", body)


def _step(draw: Draw, plural: str) -> Json:
    kind = draw.random()
    if kind < 0.45:
        body = plain(plural)
        body["metadata"].update(_mistakes(draw))
        return wrapped("update", body)
    if kind < 0.8 or not resources.BY_PLURAL[plural].has_status:
        return wrapped("merge", {"metadata": _mistakes(draw)})
    return wrapped("merge", {"metadata": _mistakes(draw)}, subresource="status")


def _mistakes(draw: Draw) -> Json:
    found: Json = {}
    for _ in range(draw.choice((1, 1, 2, 3))):
        kind = draw.random()
        if kind < 0.25:
            found["labels"] = _entries(draw)
        elif kind < 0.5:
            found["annotations"] = _entries(draw)
        elif kind < 0.75:
            found["finalizers"] = [draw.choice(_FINALIZERS) for _ in range(draw.randint(1, 3))]
        elif kind < 0.87:
            found["ownerReferences"] = [dict(draw.choice(_OWNERS)) for _ in range(draw.randint(1, 2))]
        elif kind < 0.97:
            found["generateName"] = draw.choice(_NAMES)
        else:
            found["generation"] = draw.choice((-1, 0, 7))
    return found


def _entries(draw: Draw) -> dict[str, str]:
    if draw.random() < 0.1:
        return {"a": "x" * (1 << 18)}
    return {draw.choice(_KEYS) if draw.random() < 0.6 else "a": draw.choice(("", "v", "-", "v v", "x" * 64))}
