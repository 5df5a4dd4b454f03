"""Sequences of requests in a namespace with quotas and limit ranges, and of what the quota controller counts."""

from __future__ import annotations

import random
from typing import Any

Json = dict[str, Any]
FAMILIES = ("quota", "device-quota")

CPU = ("100m", "250m", "500m", "1", "1.5", "0.3333", "2")
MEMORY = ("64Mi", "100Mi", "128M", "1Gi", "1536Mi", "1024e6", "100000Ki")
STORAGE = ("1Gi", "500M", "1.1", "10Gi", "2Ti")
CLASSES = ("high", "low", "batch")
STORAGE_CLASSES = ("gold", "bronze")
GPU = "example.com/gpu"


def case(family: str, seed: int, number: int) -> Json:
    draw = random.Random(f"{family} {seed} {number}")
    if family == "device-quota":
        return {"id": f"{family}-s{seed}-{number:05}", "family": family, **_with_devices(draw)}
    made: Json = {"id": f"quota-s{seed}-{number:05}", "family": "quota"}
    if draw.random() < 0.35:
        made["limitedResources"] = [_limited(draw) for _ in range(draw.choice((1, 1, 2)))]
    if draw.random() < 0.4:
        made["limitRanges"] = [_limit_range(draw)]
    names = [f"q{index}" for index in range(draw.choice((1, 1, 1, 2, 3)))]
    steps: list[Json] = [{"do": "quota", "object": _quota(draw, name)} for name in names]
    steps += [{"do": "sync", "name": name} for name in names if draw.random() < 0.95]
    steps.append({"do": "see"})
    known: list[tuple[str, Json]] = []
    for index in range(draw.randint(4, 14)):
        steps.append(_step(draw, names, known, index))
        if draw.random() < 0.6:
            steps.append({"do": "see"})
    steps += [{"do": "sync", "name": name} for name in names]
    return {**made, "steps": steps}


def _step(draw: random.Random, names: list[str], known: list[tuple[str, Json]], index: int) -> Json:
    kind = draw.random()
    if kind < 0.5 or not known:
        return _create(draw, known, f"o{index}")
    if kind < 0.62:
        requests = [_create(draw, known, f"o{index}-{number}") for number in range(draw.randint(2, 5))]
        step: Json = {"do": "together", "requests": requests}
        if draw.random() < 0.6:
            step["charge"] = {**_charge(draw, names), "stale": draw.random() < 0.5}
        return step
    if kind < 0.68:
        return _charge(draw, names)
    if kind < 0.72:
        return {"do": "wait", "seconds": draw.choice((1, 10, 40))}
    if kind < 0.77:
        return {"do": "sync", "name": draw.choice(names), "stale": draw.random() < 0.4}
    if kind < 0.79:
        return {"do": "dropQuota", "name": draw.choice(names)}
    if kind < 0.82:
        return {"do": "quota", "object": _quota(draw, draw.choice(names))}
    resource, obj = draw.choice(known)
    name = obj["metadata"]["name"]
    if kind < 0.87:
        return {"do": "remove", "resource": resource, "name": name}
    if kind < 0.9:
        return {"do": "delete", "resource": resource, "name": name, "seconds": draw.choice((0, 5, 30))}
    return _update(draw, resource, obj)


def _charge(draw: random.Random, names: list[str]) -> Json:
    used = {"pods": "1", "requests.cpu": draw.choice(CPU), "requests.storage": "1Gi", "services": "1"}
    return {"do": "charge", "name": draw.choice(names), "used": used}


# Objects ------------------------------------------------------------------------------------------------------------


def _create(draw: random.Random, known: list[tuple[str, Json]], name: str) -> Json:
    resource = draw.choices(
        ("pods", "services", "persistentvolumeclaims", "replicationcontrollers", "configmaps", "deployments"),
        (70, 8, 12, 3, 3, 4),
    )[0]
    metadata = {"name": name, "namespace": "ns"}
    obj: Json = {"metadata": metadata}
    if resource == "pods":
        obj["spec"] = _pod_spec(draw)
    elif resource == "services":
        obj["spec"] = _service_spec(draw)
    elif resource == "persistentvolumeclaims":
        obj["spec"] = _claim_spec(draw)
        if draw.random() < 0.1:
            metadata["annotations"] = {"volume.beta.kubernetes.io/storage-class": draw.choice(STORAGE_CLASSES)}  # type: ignore[assignment]
    known.append((resource, obj))
    return {"do": "create", "resource": resource, "object": obj}


def _pod_spec(draw: random.Random) -> Json:
    spec: Json = {"containers": [_container(draw, f"c{index}") for index in range(draw.choice((1, 1, 1, 2)))]}
    if draw.random() < 0.25:
        spec["initContainers"] = [_container(draw, f"i{index}") for index in range(draw.choice((1, 2)))]
        for container in spec["initContainers"]:
            if draw.random() < 0.4:
                container["restartPolicy"] = "Always"
    if draw.random() < 0.4:
        spec["priorityClassName"] = draw.choice(CLASSES)
    if draw.random() < 0.25:
        spec["activeDeadlineSeconds"] = draw.choice((10, 600))
    if draw.random() < 0.2:
        spec["overhead"] = {"cpu": "250m", "memory": "120Mi"}
    if draw.random() < 0.15:
        spec["resources"] = _resources(draw, extended=False)
    if draw.random() < 0.15:
        term: Json = {"topologyKey": "kubernetes.io/hostname", "labelSelector": {}}
        if draw.random() < 0.7:
            term |= draw.choice(({"namespaces": ["other"]}, {"namespaceSelector": {}}))
        rules: Json = {"requiredDuringSchedulingIgnoredDuringExecution": [term]}
        if draw.random() < 0.4:
            rules = {"preferredDuringSchedulingIgnoredDuringExecution": [{"weight": 1, "podAffinityTerm": term}]}
        spec["affinity"] = {draw.choice(("podAffinity", "podAntiAffinity")): rules}
    return spec


def _container(draw: random.Random, name: str) -> Json:
    container: Json = {"name": name, "image": "registry.example/app:1"}
    if draw.random() < 0.8:
        container["resources"] = _resources(draw, extended=True)
    return container


def _resources(draw: random.Random, *, extended: bool) -> Json:
    found: Json = {}
    for which in ("requests", "limits"):
        amounts: Json = {}
        if draw.random() < 0.65:
            amounts["cpu"] = draw.choice(CPU)
        if draw.random() < 0.65:
            amounts["memory"] = draw.choice(MEMORY)
        if extended and draw.random() < 0.1:
            amounts["ephemeral-storage"] = draw.choice(STORAGE)
        if draw.random() < 0.07:
            amounts["hugepages-2Mi"] = "4Mi"
        if extended and draw.random() < 0.12:
            amounts[GPU] = draw.choice(("1", "2"))
        if amounts and draw.random() < 0.85:
            found[which] = amounts
    return found


def _service_spec(draw: random.Random) -> Json:
    ports = [{"name": f"p{index}", "port": 80 + index} for index in range(draw.choice((1, 2, 3)))]
    spec: Json = {"type": draw.choice(("ClusterIP", "NodePort", "LoadBalancer")), "ports": ports}
    if spec["type"] == "LoadBalancer" and draw.random() < 0.5:
        spec["allocateLoadBalancerNodePorts"] = False
        if draw.random() < 0.5:
            ports[0]["nodePort"] = 30080
    return spec


def _claim_spec(draw: random.Random) -> Json:
    spec: Json = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": draw.choice(STORAGE)}}}
    if draw.random() < 0.6:
        spec["storageClassName"] = draw.choice((*STORAGE_CLASSES, ""))
    if draw.random() < 0.3:
        spec["volumeAttributesClassName"] = draw.choice(("fast", "slow"))
    return spec


def _update(draw: random.Random, resource: str, obj: Json) -> Json:
    metadata = obj["metadata"]
    if resource == "services":
        return {"do": "update", "resource": resource, "object": {"metadata": metadata, "spec": _service_spec(draw)}}
    if resource == "persistentvolumeclaims":
        status: Json = {}
        if draw.random() < 0.4:
            status = {"allocatedResources": {"storage": draw.choice(STORAGE)}}
        if draw.random() < 0.3:
            status["currentVolumeAttributesClassName"] = "fast"
        changed = {"metadata": metadata, "spec": _claim_spec(draw), "status": status}
        return {"do": draw.choice(("update", "status")), "resource": resource, "object": changed}
    if resource != "pods":
        return {"do": "update", "resource": resource, "object": obj}
    spec = dict(obj["spec"])
    do = draw.choice(("update", "status", "resize"))
    status = {"phase": draw.choice(("Pending", "Running", "Succeeded", "Failed"))}
    if do == "update":
        spec["activeDeadlineSeconds"] = draw.choice((5, 300))
    if do == "resize":
        spec["containers"] = [{**one, "resources": _resources(draw, extended=False)} for one in spec["containers"]]
    if do != "update" and draw.random() < 0.6:
        status["containerStatuses"] = [  # type: ignore[assignment]
            {
                "name": one["name"],
                "resources": _resources(draw, extended=False),
                "allocatedResources": {"cpu": draw.choice(CPU), "memory": draw.choice(MEMORY)},
            }
            for one in spec["containers"]
        ]
        if draw.random() < 0.3:
            status["conditions"] = [  # type: ignore[assignment]
                {"type": "PodResizePending", "status": "True", "reason": draw.choice(("Infeasible", "Deferred"))}
            ]
    return {"do": do, "resource": resource, "object": {"metadata": metadata, "spec": spec, "status": status}}


# Rules --------------------------------------------------------------------------------------------------------------

_HARD = {
    "pods": ("1", "2", "3", "5"),
    "count/pods": ("2", "4"),
    "cpu": ("1", "2500m"),
    "requests.cpu": ("1", "2", "1500m"),
    "limits.cpu": ("2", "3"),
    "memory": ("1Gi", "1500M"),
    "requests.memory": ("1Gi", "2Gi"),
    "limits.memory": ("2Gi", "4G"),
    "requests.ephemeral-storage": ("1Gi", "2G"),
    "requests.hugepages-2Mi": ("4Mi", "8Mi"),
    f"requests.{GPU}": ("1", "2"),
    "persistentvolumeclaims": ("1", "2"),
    "requests.storage": ("2Gi", "20Gi"),
    "gold.storageclass.storage.k8s.io/requests.storage": ("1Gi", "10Gi"),
    "bronze.storageclass.storage.k8s.io/persistentvolumeclaims": ("0", "1"),
    "services": ("1", "2"),
    "services.nodeports": ("0", "2"),
    "services.loadbalancers": ("0", "1"),
    "count/deployments.apps": ("0", "1"),
    "replicationcontrollers": ("1",),
    "count/configmaps": ("1",),
    "configmaps": ("1", "2"),
    "count/widgets.example.com": ("1",),
}
_OF_PODS = ("pods", "cpu", "memory", "requests.cpu", "requests.memory", "limits.cpu", "limits.memory")
_OF_CLAIMS = ("persistentvolumeclaims", "requests.storage")


def _quota(draw: random.Random, name: str) -> Json:
    spec: Json = {}
    names = tuple(_HARD)
    if draw.random() < 0.5:
        scope, operator = draw.choice(
            (
                ("Terminating", "Exists"),
                ("NotTerminating", "Exists"),
                ("BestEffort", "Exists"),
                ("NotBestEffort", "Exists"),
                ("CrossNamespacePodAffinity", "Exists"),
                *((draw.choice(("PriorityClass", "VolumeAttributesClass")), one) for one in _OPERATORS),
            )
        )
        names = _OF_CLAIMS if scope == "VolumeAttributesClass" else ("pods",) if scope == "BestEffort" else _OF_PODS
        if operator == "Exists" and draw.random() < 0.5:
            spec["scopes"] = [scope]
        else:
            spec["scopeSelector"] = {"matchExpressions": [_selector(draw, scope, operator)]}
    elif draw.random() < 0.6:
        names = _OF_PODS
    some = draw.sample(names, min(len(names), draw.choice((1, 1, 2, 3, 4))))
    spec["hard"] = {resource: draw.choice(_HARD[resource]) for resource in sorted(some)}
    return {"metadata": {"name": name, "namespace": "ns"}, "spec": spec}


_OPERATORS = ("In", "NotIn", "Exists", "DoesNotExist")


def _selector(draw: random.Random, scope: str, operator: str) -> Json:
    found: Json = {"scopeName": scope, "operator": operator}
    if operator in ("In", "NotIn"):
        values = CLASSES if scope == "PriorityClass" else ("fast", "slow")
        found["values"] = sorted(draw.sample(values, draw.choice((1, 2))))
    return found


def _limited(draw: random.Random) -> Json:
    if draw.random() < 0.6:
        scope = draw.choice(("PriorityClass", "PriorityClass", "CrossNamespacePodAffinity"))
        operator = draw.choice(("In", "Exists")) if scope == "PriorityClass" else "Exists"
        return {"resource": "pods", "matchScopes": [_selector(draw, scope, operator)]}
    return draw.choice(
        (
            {"resource": "pods", "matchContains": ["cpu"]},
            {"resource": "pods", "matchContains": [GPU, "memory"]},
            {"resource": "persistentvolumeclaims", "matchContains": [".storageclass.storage.k8s.io/requests.storage"]},
            {"apiGroup": "apps", "resource": "deployments", "matchContains": ["count/"]},
            {"resource": "services", "matchContains": ["services.loadbalancers"]},
        )
    )


def _limit_range(draw: random.Random) -> Json:
    items = []
    for kind in draw.sample(("Container", "Pod", "PersistentVolumeClaim"), draw.choice((1, 2))):
        item: Json = {"type": kind}
        if kind == "PersistentVolumeClaim":
            item["min"] = {"storage": "1Gi"}
            if draw.random() < 0.5:
                item["max"] = {"storage": draw.choice(("5Gi", "20Gi"))}
        else:
            for resource, low, high in (
                ("cpu", ("50m", "200m"), ("1", "2", "4")),
                ("memory", ("32Mi",), ("1Gi", "2Gi")),
            ):
                if draw.random() < 0.4:
                    item.setdefault("min", {})[resource] = draw.choice(low)
                if draw.random() < 0.4:
                    item.setdefault("max", {})[resource] = draw.choice(high)
                if kind == "Container" and draw.random() < 0.5:
                    item.setdefault("default", {})[resource] = {"cpu": "500m", "memory": "256Mi"}[resource]
                if kind == "Container" and draw.random() < 0.3:
                    item.setdefault("defaultRequest", {})[resource] = {"cpu": "250m", "memory": "128Mi"}[resource]
                if draw.random() < 0.2:
                    item.setdefault("maxLimitRequestRatio", {})[resource] = draw.choice(("1", "2", "1500m"))
        items.append(item)
    return {"metadata": {"name": "bounds", "namespace": "ns"}, "spec": {"limits": items}}


# Claims of devices --------------------------------------------------------------------------------------------------

_DEVICE_CLASSES = {"gpu": GPU, "nic": "example.com/nic", "plain": ""}
_IMPLICIT = "deviceclass.resource.kubernetes.io/"
_OF_DEVICES = (
    *(f"requests.{name}" for name in _DEVICE_CLASSES.values() if name),
    *(f"requests.{_IMPLICIT}{name}" for name in _DEVICE_CLASSES),
    *(f"{name}.deviceclass.resource.k8s.io/devices" for name in _DEVICE_CLASSES),
    "requests.example.com/other", "count/resourceclaims.resource.k8s.io", "pods",
)  # fmt: skip


def _with_devices(draw: random.Random) -> Json:
    classes = [
        {"metadata": {"name": name}, "spec": {"extendedResourceName": resource} if resource else {}}
        for name, resource in _DEVICE_CLASSES.items()
        if draw.random() < 0.85
    ] or [{"metadata": {"name": "gpu"}, "spec": {"extendedResourceName": GPU}}]
    names = [f"q{index}" for index in range(draw.choice((1, 1, 2)))]
    steps: list[Json] = []
    for name in names:
        some = draw.sample(_OF_DEVICES, draw.choice((1, 2, 3, 5)))
        hard = {resource: str(draw.choice((0, 1, 2, 3, 4, 6, 40))) for resource in sorted(some)}
        steps.append({"do": "quota", "object": {"metadata": {"name": name, "namespace": "ns"}, "spec": {"hard": hard}}})
        steps.append({"do": "sync", "name": name})
    steps.append({"do": "see"})
    pods: list[Json] = []
    claims: list[Json] = []
    for index in range(draw.randint(4, 14)):
        steps.append(_device_step(draw, pods, claims, index))
        steps.append({"do": "see"})
    steps += [{"do": "sync", "name": name} for name in names]
    return {"deviceClasses": classes, "steps": steps}


def _device_step(draw: random.Random, pods: list[Json], claims: list[Json], index: int) -> Json:
    kind = draw.random()
    if kind < 0.3 or not pods:
        amounts = {
            draw.choice((*filter(None, _DEVICE_CLASSES.values()), _IMPLICIT + "gpu", _IMPLICIT + "plain")): str(
                draw.choice((1, 1, 2))
            )
            for _ in range(draw.choice((1, 1, 2)))
        }
        metadata = {"name": f"p{index}", "namespace": "ns", "uid": f"uid-{index}"}
        container = {"name": "c", "image": "x", "resources": {"requests": amounts, "limits": amounts}}
        pods.append({"metadata": metadata, "spec": {"containers": [container]}})
        return {"do": "create", "resource": "pods", "object": pods[-1]}
    if kind < 0.75 or not claims:
        claims.append(_device_claim(draw, pods, index))
        return {"do": "create", "resource": "resourceclaims", "object": claims[-1]}
    if kind < 0.85:
        pod = draw.choice(pods)
        status: Json = {"phase": draw.choice(("Pending", "Running", "Succeeded"))}
        if draw.random() < 0.7:
            named = {"resourceClaimName": draw.choice(claims)["metadata"]["name"], "requestMappings": []}
            status["extendedResourceClaimStatus"] = named
        return {"do": "status", "resource": "pods", "object": {**pod, "status": status}}
    resource, obj = draw.choice((("pods", draw.choice(pods)), ("resourceclaims", draw.choice(claims))))
    if kind < 0.93:
        return {"do": "remove", "resource": resource, "name": obj["metadata"]["name"]}
    return {"do": "update", "resource": resource, "object": obj}


def _device_claim(draw: random.Random, pods: list[Json], index: int) -> Json:
    metadata: Json = {"name": f"c{index}", "namespace": "ns", "uid": f"uid-c{index}"}
    metadata["creationTimestamp"] = f"2000-01-01T00:00:0{draw.choice((0, 0, 1))}Z"
    if draw.random() < 0.55:
        pod = draw.choice(pods)["metadata"]
        is_special = draw.choice(("true",) * 5 + ("no",))
        metadata["annotations"] = {"resource.kubernetes.io/extended-resource-claim": is_special}
        owner = {"apiVersion": "v1", "kind": "Pod", "name": pod["name"], "controller": draw.random() < 0.9}
        metadata["ownerReferences"] = [owner | {"uid": draw.choice((pod["uid"],) * 6 + ("another",))}]
    requests: list[Json] = []
    for number in range(draw.choice((1, 1, 2))):
        if draw.random() < 0.2:
            options = [{"name": f"o{place}", **_exact(draw)} for place in range(draw.choice((1, 2, 3)))]
            requests.append({"name": f"r{number}", "firstAvailable": options})
        else:
            requests.append({"name": f"r{number}", "exactly": _exact(draw)})
    return {"metadata": metadata, "spec": {"devices": {"requests": requests}}}


def _exact(draw: random.Random) -> Json:
    found: Json = {"deviceClassName": draw.choice(list(_DEVICE_CLASSES))}
    if draw.random() < 0.15:
        return {**found, "allocationMode": "All"}
    return {**found, "allocationMode": "ExactCount", "count": draw.choice((1, 1, 2, 3))}
