"""Sequences of writes of several managers to one object: created, updated, patched in all ways, applied."""

from __future__ import annotations

import copy
import json
import random
from collections.abc import Callable
from typing import Any

Json = dict[str, Any]
Draw = random.Random
FAMILIES = ("apply",)

MANAGERS = ("alice", "bob", "kubectl", "kubectl-edit", "ctl/v1.2 (linux)")
LAST_APPLIED = "kubectl.kubernetes.io/last-applied-configuration"


def case(family: str, seed: int, number: int) -> Json:
    draw = random.Random(f"{family} {seed} {number}")
    plural = draw.choice(tuple(_KINDS) + ("pods", "deployments", "configmaps") * 2)
    steps = [_first(draw, plural), *(_step(draw, plural) for _ in range(draw.randint(3, 9)))]
    if draw.random() < 0.06:
        steps += [_many(plural, index) for index in range(13)]
    return {"id": f"apply-s{seed}-{number:05}", "family": "apply", "resource": plural, "steps": steps}


def _first(draw: Draw, plural: str) -> Json:
    kind = draw.random()
    if kind < 0.45:
        return _apply(draw, plural, _object(draw, plural, complete=True))
    body = _object(draw, plural, complete=True)
    if draw.random() < 0.3:
        applied = copy.deepcopy(body)
        body["metadata"].setdefault("annotations", {})[LAST_APPLIED] = json.dumps(applied) + "\n"
    if draw.random() < 0.1:
        body["metadata"]["managedFields"] = _entries(draw, body)
    return _wrapped(draw, {"verb": "create", "body": body})


def _step(draw: Draw, plural: str) -> Json:
    kind = draw.random()
    body = _object(draw, plural, complete=draw.random() < 0.3)
    if kind < 0.45:
        return _apply(draw, plural, body)
    if kind < 0.6:
        body = _object(draw, plural, complete=True)
        if draw.random() < 0.15:
            body["metadata"]["managedFields"] = _entries(draw, body)
        return _wrapped(draw, {"verb": "update", "body": body})
    if kind < 0.75:
        return _wrapped(draw, {"verb": "strategic", "body": _nulls(draw, body)})
    if kind < 0.85:
        return _wrapped(draw, {"verb": "merge", "body": _nulls(draw, body)})
    if kind < 0.9:
        return _wrapped(draw, {"verb": "json", "body": _operations(draw)})
    status = _STATUS.get(plural)
    if status is not None and kind < 0.96:
        made = {**_identity(plural), "status": status(draw)}
        verb = draw.choice(("apply", "strategic", "merge"))
        return _wrapped(draw, {"verb": verb, "body": made, "subresource": "status"})
    if plural in ("deployments", "statefulsets"):
        replicas = {"spec": {"replicas": draw.randint(0, 5)}}
        if draw.random() < 0.5:
            return _wrapped(draw, {"verb": "merge", "subresource": "scale", "body": replicas})
        scale = {"apiVersion": "autoscaling/v1", "kind": "Scale", "metadata": {"name": "x"}, **replicas}
        if draw.random() < 0.5:
            return _wrapped(draw, {"verb": "apply", "subresource": "scale", "body": scale})
        return _wrapped(draw, {"verb": "update", "subresource": "scale", "body": scale})
    return _apply(draw, plural, body)


def _apply(draw: Draw, plural: str, body: Json) -> Json:
    mistake = draw.random()
    if mistake < 0.02:
        body["metadata"]["managedFields"] = [] if draw.random() < 0.5 else _entries(draw, body)
    elif mistake < 0.03:
        body["metadata"]["name"] = "y"
    elif mistake < 0.04:
        del body["kind"]
    elif mistake < 0.05:
        body["apiVersion"] = "v9"
    elif mistake < 0.07:
        body["nope"] = {"a": 1}
    elif mistake < 0.09:
        body["metadata"]["labels"] = draw.choice(("text", ["a"], {"a": 1}, {"a": True}))
    elif mistake < 0.1:
        body["metadata"]["finalizers"] = ["example.com/a", "example.com/a"]
    elif mistake < 0.11:
        body["metadata"]["resourceVersion"] = "1"
    elif mistake < 0.12:
        body["metadata"]["uid"] = "nobody"
    return _wrapped(draw, {"verb": "apply", "body": body})


def _wrapped(draw: Draw, step: Json) -> Json:
    if draw.random() < 0.9:
        step["manager"] = draw.choice(MANAGERS[:4])
    else:
        step["agent"] = draw.choice(MANAGERS)
    if step["verb"] == "apply" and draw.random() < 0.4:
        step["force"] = draw.random() < 0.8
    if draw.random() < 0.05:
        step["dryRun"] = True
    return step


def _many(plural: str, index: int) -> Json:
    body = {"metadata": {"labels": {f"m{index}": "1"}}}
    return {"verb": "merge", "body": body, "manager": f"manager-{index:02}"}


def _entries(draw: Draw, body: Json) -> list[Json]:
    if draw.random() < 0.4:
        return [{}]
    entry = {
        "manager": "carol",
        "operation": draw.choice(("Apply", "Update", "Update", "Nothing")),
        "apiVersion": draw.choice((body["apiVersion"], body["apiVersion"], "other/v1")),
        "time": "2020-01-02T03:04:05Z",
        "fieldsType": draw.choice(("FieldsV1", "FieldsV1", "FieldsV1", "FieldsV2")),
        "fieldsV1": {"f:metadata": {"f:labels": {".": {}, "f:a": {}}}, "f:data": {"f:a": {}}},
    }
    return [entry]


def _nulls(draw: Draw, body: Json) -> Json:
    """A patch: without its identity, some values null."""
    body.pop("apiVersion", None)
    body.pop("kind", None)
    metadata = body.get("metadata", {})
    metadata.pop("name", None)
    for part in (metadata, body.get("data"), body.get("spec"), metadata.get("labels")):
        if isinstance(part, dict) and part and draw.random() < 0.35:
            doomed = draw.choice(sorted(part))
            if doomed not in ("containers", "selector", "template", "clusterIP", "ipFamilies", "ipFamilyPolicy"):
                part[doomed] = None
    return body


def _operations(draw: Draw) -> list[Json]:
    known: tuple[Json, ...] = (
        {"op": "add", "path": "/metadata/labels", "value": {"a": "json"}},
        {"op": "add", "path": "/metadata/annotations", "value": {"a": "json"}},
        {"op": "remove", "path": "/metadata/labels"},
        {"op": "add", "path": "/metadata/finalizers", "value": ["example.com/j"]},
    )
    return [draw.choice(known) for _ in range(draw.randint(1, 2))]


# Objects ------------------------------------------------------------------------------------------------------------


def document(draw: Draw, plural: str) -> Json:
    """A whole object, perhaps with a status."""
    made = _object(draw, plural, complete=True)
    status = _STATUS.get(plural)
    if status is not None and draw.random() < 0.5:
        made["status"] = status(draw)
    return made


def _identity(plural: str) -> Json:
    version, kind, _ = _KINDS[plural]
    return {"apiVersion": version, "kind": kind, "metadata": {"name": "x"}}


def _object(draw: Draw, plural: str, complete: bool) -> Json:
    made = _identity(plural)
    metadata = made["metadata"]
    if draw.random() < 0.6:
        metadata["labels"] = _map(draw)
    if draw.random() < 0.3:
        metadata["annotations"] = _map(draw)
    if draw.random() < 0.12:
        metadata["finalizers"] = _some(draw, ("example.com/a", "example.com/b", "example.com/c"))
    if draw.random() < 0.08:
        metadata["ownerReferences"] = [
            {"apiVersion": "v1", "kind": "ConfigMap", "name": f"o{uid}", "uid": uid} for uid in _some(draw, ("1", "2"))
        ]
    made.update(_KINDS[plural][2](draw, complete))
    return made


def _map(draw: Draw, keys: tuple[str, ...] = ("a", "b", "c", "app")) -> Json:
    return {key: draw.choice(("1", "2", "")) for key in _some(draw, keys)}


def _some(draw: Draw, values: tuple[Any, ...]) -> list[Any]:
    found = [value for value in values if draw.random() < 0.5] or [draw.choice(values)]
    draw.shuffle(found)
    return found


def _maybe(draw: Draw, made: Json, **parts: Callable[[], Any]) -> Json:
    for name, make in parts.items():
        if draw.random() < 0.35:
            made[name] = make()
    return made


def _config_map(draw: Draw, complete: bool) -> Json:
    return _maybe(
        draw,
        {"data": _map(draw)} if draw.random() < 0.8 else {},
        binaryData=lambda: {"x": draw.choice(("AAEC", "AAED"))},
        immutable=lambda: False,
    )


def _secret(draw: Draw, complete: bool) -> Json:
    return _maybe(draw, {"type": "Opaque"}, stringData=lambda: _map(draw), data=lambda: {"s": "c2VjcmV0"})


def _container(draw: Draw, name: str, full: bool) -> Json:
    made: Json = {"name": name}
    if full or draw.random() < 0.6:
        made["image"] = draw.choice(("nginx:1", "nginx:2"))
    return _maybe(
        draw,
        made,
        env=lambda: [{"name": key, "value": draw.choice("12")} for key in _some(draw, ("E", "F", "G"))],
        ports=lambda: [_port(draw, port) for port in _some(draw, (80, 81, 443))],
        args=lambda: draw.choice((["a"], ["a", "b"])),
        resources=lambda: draw.choice(
            ({"requests": {"cpu": "100m"}}, {"limits": {"cpu": "1", "memory": "1Gi"}}, {"requests": {"memory": "1Gi"}})
        ),
        volumeMounts=lambda: [{"name": "v1", "mountPath": path} for path in _some(draw, ("/a", "/b"))],
        readinessProbe=lambda: {"httpGet": {"path": "/", "port": draw.choice((80, "http"))}},
    )


def _port(draw: Draw, port: int) -> Json:
    made: Json = {"containerPort": port}
    if draw.random() < 0.4:
        made["protocol"] = draw.choice(("TCP", "UDP"))
    if draw.random() < 0.4:
        made["name"] = f"p{port}"
    return made


def _pod_spec(draw: Draw, full: bool) -> Json:
    made: Json = {
        "containers": [_container(draw, name, full) for name in (_some(draw, ("c", "d")) if full else ["c"])],
        "volumes": [{"name": "v1", "emptyDir": {}}],
    }
    return _maybe(
        draw,
        made,
        nodeSelector=lambda: _map(draw),
        tolerations=lambda: [{"key": key, "operator": "Exists"} for key in _some(draw, ("t", "u"))],
        terminationGracePeriodSeconds=lambda: draw.choice((5, 30)),
        hostAliases=lambda: [{"ip": ip, "hostnames": ["h"]} for ip in _some(draw, ("10.0.0.1", "10.0.0.2"))],
        imagePullSecrets=lambda: [{"name": name} for name in _some(draw, ("s1", "s2"))],
        topologySpreadConstraints=lambda: [
            {
                "maxSkew": draw.choice((1, 2)),
                "topologyKey": key,
                "whenUnsatisfiable": "ScheduleAnyway",
                "labelSelector": {"matchLabels": {"app": "x"}},
            }
            for key in _some(draw, ("zone", "host"))
        ],
        affinity=lambda: {
            "nodeAffinity": {
                "requiredDuringSchedulingIgnoredDuringExecution": {
                    "nodeSelectorTerms": [{"matchExpressions": [{"key": "k", "operator": "Exists"}]}]
                }
            }
        },
        securityContext=lambda: {"runAsUser": draw.choice((1, 2))},
    )


def _pod(draw: Draw, complete: bool) -> Json:
    if complete or draw.random() < 0.5:
        return {"spec": _pod_spec(draw, True)}
    return {"spec": {"containers": [_container(draw, "c", False)]}} if draw.random() < 0.5 else {}


def _template(draw: Draw) -> Json:
    return {"metadata": {"labels": {"app": "x", **_map(draw, ("q", "r"))}}, "spec": _pod_spec(draw, True)}


def _deployment(draw: Draw, complete: bool) -> Json:
    spec: Json = {"selector": {"matchLabels": {"app": "x"}}, "template": _template(draw)} if complete else {}
    return {
        "spec": _maybe(
            draw,
            spec,
            replicas=lambda: draw.randint(0, 4),
            paused=lambda: draw.random() < 0.5,
            minReadySeconds=lambda: draw.choice((0, 5)),
            strategy=lambda: draw.choice(
                (
                    {"type": "Recreate"},
                    {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": draw.choice((1, "25%"))}},
                )
            ),
        )
    }


def _stateful_set(draw: Draw, complete: bool) -> Json:
    spec: Json = {}
    if complete:
        spec = {"selector": {"matchLabels": {"app": "x"}}, "serviceName": "s", "template": _template(draw)}
    return {"spec": _maybe(draw, spec, replicas=lambda: draw.randint(0, 4))}


def _service(draw: Draw, complete: bool) -> Json:
    ports = [_service_port(draw, port) for port in _some(draw, (80, 443, 53))]
    spec: Json = {"ports": ports} if complete else {}
    if complete:
        # One address of one family, which no server has to choose.
        spec |= {"clusterIP": "None", "ipFamilies": ["IPv4"], "ipFamilyPolicy": "SingleStack", "selector": _map(draw)}
    return {"spec": _maybe(draw, spec, publishNotReadyAddresses=lambda: True)}


def _service_port(draw: Draw, port: int) -> Json:
    made: Json = {"port": port, "name": f"p{port}"}
    if draw.random() < 0.5:
        made["protocol"] = draw.choice(("TCP", "UDP"))
        made["name"] += made["protocol"].lower()
    if draw.random() < 0.5:
        made["targetPort"] = draw.choice((8080, "web"))
    return made


def _node(draw: Draw, complete: bool) -> Json:
    return {
        "spec": _maybe(
            draw,
            {},
            unschedulable=lambda: draw.random() < 0.7,
            taints=lambda: [{"key": key, "effect": "NoSchedule"} for key in _some(draw, ("t", "u"))],
            podCIDRs=lambda: ["10.1.0.0/24"],
            podCIDR=lambda: "10.1.0.0/24",
        )
    }


def _budget(draw: Draw, complete: bool) -> Json:
    spec: Json = {"selector": {"matchLabels": _map(draw)}, "minAvailable": draw.choice((1, "50%"))}
    return {"spec": spec if complete else {"minAvailable": draw.choice((1, 2, "10%"))}}


def _service_account(draw: Draw, complete: bool) -> Json:
    return _maybe(
        draw,
        {},
        automountServiceAccountToken=lambda: draw.random() < 0.5,
        secrets=lambda: [{"name": name} for name in _some(draw, ("s", "t"))],
        imagePullSecrets=lambda: [{"name": name} for name in _some(draw, ("s", "t"))],
    )


def _role(draw: Draw, complete: bool) -> Json:
    return {
        "rules": [
            {"apiGroups": [""], "resources": [one], "verbs": _some(draw, ("get", "list"))}
            for one in _some(draw, ("pods", "nodes"))
        ]
    }


def _network_policy(draw: Draw, complete: bool) -> Json:
    spec: Json = {"podSelector": {"matchLabels": _map(draw)}} if complete else {}
    return {
        "spec": _maybe(
            draw,
            spec,
            policyTypes=lambda: ["Ingress"],
            ingress=lambda: [{"ports": [{"port": draw.choice((80, 443))}]}],
        )
    }


def _pod_status(draw: Draw) -> Json:
    made: Json = {"conditions": [_condition(draw, kind) for kind in _some(draw, ("Ready", "PodScheduled", "Custom"))]}
    return _maybe(
        draw,
        made,
        phase=lambda: draw.choice(("Pending", "Running")),
        podIPs=lambda: [{"ip": "10.0.0.1"}],
        podIP=lambda: "10.0.0.1",
        message=lambda: draw.choice(("", "m")),
    )


def _node_status(draw: Draw) -> Json:
    made: Json = {"conditions": [_condition(draw, kind) for kind in _some(draw, ("Ready", "DiskPressure"))]}
    return _maybe(
        draw,
        made,
        capacity=lambda: {"cpu": draw.choice(("4", "8")), "memory": "8Gi"},
        addresses=lambda: [{"type": kind, "address": "n1"} for kind in _some(draw, ("Hostname", "InternalIP"))],
        nodeInfo=lambda: {"kubeletVersion": "v1.36.3"},
    )


def _deployment_status(draw: Draw) -> Json:
    return _maybe(
        draw,
        {"replicas": draw.randint(2, 3)},
        readyReplicas=lambda: draw.randint(0, 2),
        conditions=lambda: [_condition(draw, kind) for kind in _some(draw, ("Available", "Progressing"))],
    )


def _condition(draw: Draw, kind: str) -> Json:
    made = {"type": kind, "status": draw.choice(("True", "False"))}
    if draw.random() < 0.5:
        made["reason"] = draw.choice(("R", "S"))
    if draw.random() < 0.5:
        made["lastTransitionTime"] = draw.choice(("2020-01-01T00:00:00Z", "2020-01-01T00:00:01Z"))
    return made


_KINDS: dict[str, tuple[str, str, Callable[[Draw, bool], Json]]] = {
    "configmaps": ("v1", "ConfigMap", _config_map),
    "deployments": ("apps/v1", "Deployment", _deployment),
    "networkpolicies": ("networking.k8s.io/v1", "NetworkPolicy", _network_policy),
    "nodes": ("v1", "Node", _node),
    "poddisruptionbudgets": ("policy/v1", "PodDisruptionBudget", _budget),
    "pods": ("v1", "Pod", _pod),
    "roles": ("rbac.authorization.k8s.io/v1", "Role", _role),
    "secrets": ("v1", "Secret", _secret),
    "serviceaccounts": ("v1", "ServiceAccount", _service_account),
    "services": ("v1", "Service", _service),
    "statefulsets": ("apps/v1", "StatefulSet", _stateful_set),
}
_STATUS: dict[str, Callable[[Draw], Json]] = {
    "deployments": _deployment_status,
    "nodes": _node_status,
    "pods": _pod_status,
}
