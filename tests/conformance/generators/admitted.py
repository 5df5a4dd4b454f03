"""Sequences of writes to objects of several kinds whose outcome depends on admission: what classes, ranges, accounts
and labels of namespaces make of pods, claims, workloads, Ingresses and nodes, or have against them.

Left out: first updates of claims that change nothing. The real server stores a new claim without its phase, and says
``Pending`` when it reads it, so the first update writes that; kemu stores it at once. Default classes are a second
apart, as the newest counts.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from typing import Any

from tests.conformance.generators import callers, secured
from tests.conformance.generators.steps import (
    OTHER,
    SPACE,
    WORKLOADS,
    create,
    made,
    new_space,
    plain_spec,
    pod_step,
    step,
    workload,
)

Json = dict[str, Any]
Draw = random.Random
FAMILIES = ("admitted",)

_AMOUNTS = ("100m", "250m", "1", "1500m", "2")
_MEMORY = ("64Mi", "128Mi", "1Gi", "2Gi")


def case(family: str, seed: int, number: int) -> Json:
    draw = random.Random(f"{family} {seed} {number}")
    topic = draw.choice(_TOPICS)
    steps = list(topic(draw))
    return {"id": f"admitted-s{seed}-{number:05}", "family": family, "steps": steps}


# Classes of pods ----------------------------------------------------------------------------------------------------


def _priorities(draw: Draw) -> Iterator[Json]:
    yield from new_space(draw)
    for number in range(draw.randint(5, 8)):
        kind = draw.random()
        if kind < 0.3:
            yield create("priorityclasses", _priority_class(draw, draw.choice("abc")))
        elif kind < 0.4:
            name = draw.choice("abc")
            yield step(
                "merge",
                "priorityclasses",
                name,
                draw.choice(({"globalDefault": draw.random() < 0.6}, {"description": "d"}, {"value": 7})),
            )
        elif kind < 0.45:
            yield step("delete", "priorityclasses", draw.choice(("a", "b", "system-node-critical")))
        elif kind < 0.55:
            yield step(
                "merge",
                "pods",
                f"p{number - 1}",
                draw.choice(
                    (
                        {"metadata": {"labels": {"a": "b"}}},
                        {"spec": {"priority": draw.choice((0, 10, None))}},
                        {"spec": {"priorityClassName": "a"}},
                    )
                ),
            )
        else:
            spec = plain_spec(draw)
            if draw.random() < 0.7:
                spec["priorityClassName"] = draw.choice(
                    ("a", "b", "c", "missing", "system-node-critical", "system-cluster-critical", "")
                )
            if draw.random() < 0.3:
                spec["priority"] = draw.choice((0, 10, -5, 2000000000, 2000001000))
            if draw.random() < 0.3:
                spec["preemptionPolicy"] = draw.choice(("Never", "PreemptLowerPriority"))
            more = {"space": "kube-system"} if draw.random() < 0.05 else {}
            yield pod_step(f"p{number}", spec, **more)


def _priority_class(draw: Draw, name: str) -> Json:
    fields: Json = {"value": draw.choice((0, 10, -5, 1000, 1000000000, 1000000001))}
    if draw.random() < 0.4:
        fields["globalDefault"] = draw.random() < 0.8
    if draw.random() < 0.3:
        fields["preemptionPolicy"] = draw.choice(("Never", "PreemptLowerPriority"))
    return made("priorityclasses", "system-a" if draw.random() < 0.07 else name, **fields)


def _runtimes(draw: Draw) -> Iterator[Json]:
    yield from new_space(draw)
    names = ["a", "b"][: draw.randint(1, 2)]
    for name in names:
        yield create("runtimeclasses", _runtime_class(draw, name))
    for number in range(draw.randint(3, 6)):
        spec = plain_spec(draw)
        if draw.random() < 0.85:
            spec["runtimeClassName"] = draw.choice((*names, *names, "missing"))
        if draw.random() < 0.3:
            spec["overhead"] = {"cpu": draw.choice(_AMOUNTS), **({"memory": "64Mi"} if draw.random() < 0.3 else {})}
        if draw.random() < 0.4:
            spec["nodeSelector"] = {draw.choice("ab"): draw.choice("xy")}
        if draw.random() < 0.4:
            spec["tolerations"] = [_toleration(draw) for _ in range(draw.randint(1, 2))]
        yield pod_step(f"p{number}", spec)
        if draw.random() < 0.2:
            yield step("delete", "runtimeclasses", draw.choice(names))
        elif draw.random() < 0.2:
            yield step(
                "merge",
                "runtimeclasses",
                names[0],
                draw.choice(
                    (
                        {"handler": "g"},
                        {"overhead": {"podFixed": {"cpu": "100m"}}},
                        {"scheduling": {"nodeSelector": {"a": "y"}}},
                    )
                ),
            )


def _runtime_class(draw: Draw, name: str) -> Json:
    fields: Json = {"handler": "h"}
    if draw.random() < 0.6:
        fields["overhead"] = {
            "podFixed": {"cpu": draw.choice(_AMOUNTS), **({"memory": "64Mi"} if draw.random() < 0.3 else {})}
        }
    if draw.random() < 0.6:
        scheduling: Json = {}
        if draw.random() < 0.7:
            scheduling["nodeSelector"] = {draw.choice("ab"): draw.choice("xy")}
        if draw.random() < 0.6:
            scheduling["tolerations"] = [_toleration(draw) for _ in range(draw.randint(1, 2))]
        fields["scheduling"] = scheduling
    return made("runtimeclasses", name, **fields)


def _toleration(draw: Draw) -> Json:
    found: Json = {"key": draw.choice(("a", "b", "node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable"))}
    if draw.random() < 0.5:
        found["operator"] = "Exists"
    else:
        found["value"] = draw.choice("xy")
    if draw.random() < 0.6:
        found["effect"] = draw.choice(("NoSchedule", "NoExecute"))
    if found.get("effect") == "NoExecute" and draw.random() < 0.5:
        found["tolerationSeconds"] = draw.choice((0, 10, 300))
    if draw.random() < 0.1:
        found = {"operator": "Exists"}
    return found


# Accounts -----------------------------------------------------------------------------------------------------------


def _accounts(draw: Draw) -> Iterator[Json]:
    yield create("namespaces", made("namespaces", SPACE))
    names = draw.sample(("default", "a", "b"), draw.randint(1, 3))
    for name in names:
        yield create("serviceaccounts", _account(draw, name))
    for number in range(draw.randint(3, 5)):
        spec = plain_spec(draw)
        if draw.random() < 0.3:
            spec["initContainers"] = [{"name": "d", "image": "i"}]
        if draw.random() < 0.6:
            spec["serviceAccountName"] = draw.choice((*names, "missing"))
        elif "default" not in names:
            continue  # The server would look for it for a second or two.
        if draw.random() < 0.2:
            spec["serviceAccount"] = draw.choice((*names, "b"))
            if draw.random() < 0.5:
                spec.setdefault("serviceAccountName", spec["serviceAccount"])
        if spec.get("serviceAccount") and "serviceAccountName" not in spec and "default" not in names:
            continue
        if draw.random() < 0.3:
            spec["automountServiceAccountToken"] = draw.random() < 0.5
        if draw.random() < 0.3:
            spec["imagePullSecrets"] = [{"name": draw.choice("xyz")}]
        if draw.random() < 0.3:
            spec["volumes"] = [{"name": "v", "secret": {"secretName": draw.choice("xyz")}}]
            if draw.random() < 0.5:
                path = draw.choice(("/var/run/secrets/kubernetes.io/serviceaccount", "/v"))
                spec["containers"][0]["volumeMounts"] = [{"name": "v", "mountPath": path}]
        if draw.random() < 0.2:
            reference = {"secretKeyRef": {"name": draw.choice("xy"), "key": "k"}}
            spec["containers"][0]["env"] = [{"name": "E", "valueFrom": reference}]
        if draw.random() < 0.15:
            spec["containers"][0]["envFrom"] = [{"secretRef": {"name": draw.choice("xy")}}]
        metadata: Json = {}
        if draw.random() < 0.1:
            metadata["annotations"] = {"kubernetes.io/config.mirror": "m"}
            spec["nodeName"] = "n1"
        yield pod_step(f"p{number}", spec, **metadata)
        if draw.random() < 0.25:
            one: Json = {"name": "e", "image": "i"}
            if draw.random() < 0.5:
                one["envFrom"] = [{"secretRef": {"name": draw.choice("xy")}}]
            yield step(
                "strategic",
                "pods",
                f"p{number}",
                {"spec": {"ephemeralContainers": [one]}},
                subresource="ephemeralcontainers",
            )


def _account(draw: Draw, name: str) -> Json:
    fields: Json = {}
    if draw.random() < 0.3:
        fields["automountServiceAccountToken"] = draw.random() < 0.5
    if draw.random() < 0.4:
        fields["imagePullSecrets"] = [{"name": one} for one in draw.sample("xyz", draw.randint(1, 2))]
    if draw.random() < 0.3:
        fields["annotations"] = {"kubernetes.io/enforce-mountable-secrets": draw.choice(("true", "true", "1", "yes"))}
    if draw.random() < 0.3:
        fields["secrets"] = [{"name": draw.choice("xy")}]
    return made("serviceaccounts", name, **fields)


# Limits -------------------------------------------------------------------------------------------------------------


def _limits(draw: Draw) -> Iterator[Json]:
    yield from new_space(draw)
    # One, as several are asked in any order.
    items = [_limit(draw, kind) for kind in draw.sample(("Container", "Container", "Pod", "PersistentVolumeClaim"), 2)]
    yield create("limitranges", made("limitranges", "l0", spec={"limits": items}))
    for number in range(draw.randint(3, 6)):
        kind = draw.random()
        if kind < 0.7:
            spec = plain_spec(draw)
            if draw.random() < 0.3:
                spec["initContainers"] = [{"name": "d", "image": "i", **_asked(draw)}]
            spec["containers"][0] |= _asked(draw)
            if draw.random() < 0.2:
                spec["containers"].append({"name": "e", "image": "i", **_asked(draw)})
            if draw.random() < 0.1:
                spec |= _asked(draw)
            yield pod_step(f"p{number}", spec)
            if draw.random() < 0.3:
                changed = {"spec": {"containers": [{"name": "c", **_asked(draw)}]}}
                yield step("strategic", "pods", f"p{number}", changed, subresource="resize")
        elif kind < 0.9:
            yield create("persistentvolumeclaims", _claim(draw, f"c{number}"))
        else:
            body = {"spec": {"limits": [_limit(draw, "Container")]}}
            yield step("merge", "limitranges", "l0", body)


def _limit(draw: Draw, kind: str) -> Json:
    found: Json = {"type": kind}
    if kind == "PersistentVolumeClaim":
        for name in draw.sample(("min", "max"), draw.randint(1, 2)):
            found[name] = {"storage": {"min": "1Gi", "max": draw.choice(("2Gi", "5Gi"))}[name]}
        return found
    # One resource, as those of a map are told in any order.
    name, values = draw.choice((("cpu", _AMOUNTS), ("memory", _MEMORY)))
    if draw.random() < 0.5:
        found["min"] = {name: values[0]}
    if draw.random() < 0.6:
        found["max"] = {name: draw.choice(values[-2:])}
    if draw.random() < 0.3:
        found["maxLimitRequestRatio"] = {name: draw.choice(("2", "4", "1500m"))}
    if kind == "Container":
        if draw.random() < 0.4:
            found["default"] = {name: values[2]}
        if draw.random() < 0.4:
            found["defaultRequest"] = {name: values[1]}
    return found


def _asked(draw: Draw) -> Json:
    """Of one resource, as mistakes in a map are told in any order."""
    name, values = draw.choice((("cpu", _AMOUNTS), ("memory", _MEMORY)))
    found = {which: {name: draw.choice(values)} for which in ("requests", "limits") if draw.random() < 0.6}
    return {"resources": found} if found else {}


# Namespaces ---------------------------------------------------------------------------------------------------------


def _lifecycle(draw: Draw) -> Iterator[Json]:
    yield from new_space(draw)
    for number in range(draw.randint(4, 7)):
        kind = draw.random()
        if kind < 0.2:
            yield step(
                "delete",
                "namespaces",
                draw.choice(
                    (SPACE, SPACE, OTHER, "default", "kube-system", "kube-public", "kube-node-lease")[
                        : draw.choice((3, 6))
                    ]
                ),
            )
        elif kind < 0.3:
            yield create("namespaces", made("namespaces", draw.choice((SPACE, OTHER))))
        elif kind < 0.4:
            yield step(
                "update",
                "namespaces",
                SPACE,
                {
                    **made("namespaces", SPACE),
                    "spec": {"finalizers": draw.choice(([], ["kubernetes"], ["a.example.com/b"]))},
                },
                subresource="finalize",
            )
        elif kind < 0.5:
            yield step("get", "namespaces", SPACE)
        else:
            space = draw.choice((SPACE, SPACE, OTHER, "missing"))
            plural = draw.choice(
                ("configmaps", "pods", "deployments", "serviceaccounts", "events", "persistentvolumeclaims", "roles")
            )
            if draw.random() < 0.2:
                yield step("merge", "configmaps", "c0", {"data": {"a": "b"}}, space)
                continue
            if draw.random() < 0.2:
                yield step("delete", draw.choice(("configmaps", "pods", "roles")), "c0", space=space, grace=0)
                continue
            if draw.random() < 0.1:
                yield step("update", "configmaps", "c0", made("configmaps", "c0", space, data={"a": "c"}), space)
                continue
            name = f"c{draw.choice((0, number))}"
            if plural == "pods":
                yield pod_step(name, plain_spec(draw), space)
            elif plural == "deployments":
                yield create(plural, workload(draw, plural, name, {"spec": plain_spec(draw)}, space), space)
            elif plural == "events":
                about = {"namespace": space, "name": "z", "kind": "Pod"}
                yield create(plural, made(plural, name, space, involvedObject=about, reason="r", type="Normal"), space)
            elif plural == "persistentvolumeclaims":
                yield create(plural, {**_claim(draw, name), "metadata": {"name": name, "namespace": space}}, space)
            else:
                more = {"rules": []} if plural == "roles" else {}
                yield create(plural, made(plural, name, space, **more), space)


# Storage and Ingresses ----------------------------------------------------------------------------------------------

_DEFAULT_CLASS = "storageclass.kubernetes.io/is-default-class"
_DEFAULT_INGRESS = "ingressclass.kubernetes.io/is-default-class"


def _storage(draw: Draw) -> Iterator[Json]:
    yield from new_space(draw)
    for name in ("a", "b")[: draw.randint(0, 2)]:
        yield create("storageclasses", _storage_class(draw, name))
    for number in range(draw.randint(4, 7)):
        kind = draw.random()
        claim = f"c{draw.randrange(3)}"
        if kind < 0.4:
            yield create("persistentvolumeclaims", _claim(draw, f"c{number}"))
        elif kind < 0.5:
            spec = {"capacity": {"storage": "1Gi"}, "accessModes": ["ReadWriteOnce"], "hostPath": {"path": "/a"}}
            yield create("persistentvolumes", made("persistentvolumes", f"v{number}", spec=spec))
        elif kind < 0.6:
            yield create("storageclasses", _storage_class(draw, draw.choice("abc")))
        elif kind < 0.7:
            status = {"status": {"phase": "Bound", "capacity": {"storage": "1Gi"}, "accessModes": ["ReadWriteOnce"]}}
            yield step("merge", "persistentvolumeclaims", claim, status, subresource="status")
        elif kind < 0.9:
            changed = {"spec": {"resources": {"requests": {"storage": draw.choice(("400Mi", "1100Mi", "3Gi"))}}}}
            yield step("merge", "persistentvolumeclaims", claim, changed)
        elif kind < 0.95:
            yield step("delete", "persistentvolumeclaims", claim)
        else:
            yield step("get", "persistentvolumeclaims", claim)


def _storage_class(draw: Draw, name: str) -> Json:
    fields: Json = {"provisioner": "example.com/p"}
    if draw.random() < 0.5:
        key = draw.choice((_DEFAULT_CLASS, _DEFAULT_CLASS, "storageclass.beta.kubernetes.io/is-default-class"))
        fields["annotations"] = {key: draw.choice(("true", "true", "false"))}
    if draw.random() < 0.6:
        fields["allowVolumeExpansion"] = draw.random() < 0.8
    return made("storageclasses", name, **fields)


def _claim(draw: Draw, name: str) -> Json:
    spec: Json = {
        "accessModes": ["ReadWriteOnce"],
        "resources": {"requests": {"storage": draw.choice(("500Mi", "1Gi", "2Gi", "10Gi"))}},
    }
    if draw.random() < 0.4:
        spec["storageClassName"] = draw.choice(("a", "b", "", "missing"))
    if draw.random() < 0.2:
        spec["volumeName"] = "v"
    fields: Json = {"spec": spec}
    if draw.random() < 0.1:
        fields["annotations"] = {"volume.beta.kubernetes.io/storage-class": draw.choice(("a", ""))}
    return made("persistentvolumeclaims", name, **fields)


def _ingresses(draw: Draw) -> Iterator[Json]:
    yield from new_space(draw)
    for number in range(draw.randint(4, 7)):
        if draw.random() < 0.4:
            fields: Json = {"spec": {"controller": "example.com/c"}}
            if draw.random() < 0.7:
                fields["annotations"] = {_DEFAULT_INGRESS: draw.choice(("true", "true", "false"))}
            # Of classes of one second, the first by name counts.
            more = {"after": 1.05} if fields.get("annotations") else {}
            yield create("ingressclasses", made("ingressclasses", draw.choice("abc"), **fields), **more)
            continue
        spec: Json = {"defaultBackend": {"service": {"name": "s", "port": {"number": 80}}}}
        fields = {"spec": spec}
        if draw.random() < 0.3:
            spec["ingressClassName"] = draw.choice(("a", "missing", ""))
        if draw.random() < 0.2:
            fields["annotations"] = {"kubernetes.io/ingress.class": draw.choice(("a", ""))}
        yield create("ingresses", made("ingresses", f"i{number}", **fields))
        if draw.random() < 0.2:
            yield step("merge", "ingresses", f"i{number}", {"spec": {"ingressClassName": draw.choice(("a", None))}})


# Nodes --------------------------------------------------------------------------------------------------------------


def _nodes(draw: Draw) -> Iterator[Json]:
    yield from new_space(draw)
    for name in ("n1", "n2")[: draw.randint(1, 2)]:
        labels: Json = {}
        for key in ("topology.kubernetes.io/zone", "topology.kubernetes.io/region", "kubernetes.io/os", "a"):
            if draw.random() < 0.5:
                labels[key] = draw.choice(("windows", "linux")) if key.endswith("os") else draw.choice(("x", "y"))
        spec: Json = {}
        if draw.random() < 0.3:
            spec["taints"] = [
                {
                    "key": draw.choice(("a", "node.kubernetes.io/not-ready")),
                    "effect": draw.choice(("NoSchedule", "NoExecute")),
                }
            ]
        fields: Json = {"labels": labels} if labels else {}
        yield create("nodes", made("nodes", name, **fields, **({"spec": spec} if spec else {})))
        if draw.random() < 0.6:
            amounts = {"cpu": draw.choice(_AMOUNTS), "memory": draw.choice(_MEMORY), "pods": "10"}
            yield step(
                "merge", "nodes", name, {"status": {"allocatable": amounts, "capacity": amounts}}, subresource="status"
            )
    for number in range(draw.randint(3, 5)):
        pod = plain_spec(draw)
        if draw.random() < 0.4:
            pod["nodeName"] = draw.choice(("n1", "n1", "n2", "missing"))
        if draw.random() < 0.6:
            pod["tolerations"] = [_toleration(draw) for _ in range(draw.randint(1, 2))]
        pod["containers"][0] |= _asked(draw)
        fields = {}
        if draw.random() < 0.3:
            fields["labels"] = {"topology.kubernetes.io/zone": "mine", "b": "c"}
        yield pod_step(f"p{number}", pod, **fields)
        kind = draw.random()
        if kind < 0.4:
            binding = {
                "apiVersion": "v1",
                "kind": "Binding",
                "metadata": {"name": f"p{number}", "namespace": SPACE},
                "target": {"kind": "Node", "name": draw.choice(("n1", "n2", "missing"))},
            }
            yield step("bind", "pods", f"p{number}", binding)
            yield step("get", "pods", f"p{number}")
        if kind < 0.7:
            changed = {"spec": {"containers": [{"name": "c", **_asked(draw)}]}}
            yield step("strategic", "pods", f"p{number}", changed, subresource="resize")
        if draw.random() < 0.2:
            extra = {"spec": {"tolerations": [_toleration(draw)]}}
            yield step("merge", "pods", f"p{number}", extra)


# All at once --------------------------------------------------------------------------------------------------------


def _mixed(draw: Draw) -> Iterator[Json]:
    """Which of several plugins has the word, and what they make together."""
    yield create("namespaces", made("namespaces", SPACE, labels=secured.labels(draw)))
    if draw.random() < 0.9:
        yield create("serviceaccounts", _account(draw, "default"))
        account = "default"
    else:
        account = "missing"
    yield create("priorityclasses", _priority_class(draw, "a"))
    yield create("runtimeclasses", _runtime_class(draw, "a"))
    yield create("limitranges", made("limitranges", "l", spec={"limits": [_limit(draw, "Container")]}))
    if draw.random() < 0.5:
        hard = {draw.choice(("pods", "requests.cpu", "limits.memory")): draw.choice(("0", "1"))}
        quota = made("resourcequotas", "q", spec={"hard": hard})
        yield create("resourcequotas", quota)
        yield step(
            "merge",
            "resourcequotas",
            "q",
            {"status": {"hard": hard, "used": dict.fromkeys(hard, "0")}},
            subresource="status",
        )
    for number in range(draw.randint(2, 4)):
        spec, annotations = secured.pod(draw)
        spec["serviceAccountName"] = account
        spec["containers"][0] |= _asked(draw)
        for field, values in (("priorityClassName", ("a", "missing")), ("runtimeClassName", ("a", "missing"))):
            if draw.random() < 0.4:
                spec[field] = draw.choice((values[0], *values))
        if draw.random() < 0.2:
            spec["tolerations"] = [_toleration(draw)]
        if draw.random() < 0.3:
            plural = draw.choice(WORKLOADS)
            yield create(
                plural, workload(draw, plural, f"w{number}", {"spec": spec, "metadata": {"annotations": annotations}})
            )
        else:
            yield pod_step(f"p{number}", spec, **({"annotations": annotations} if annotations else {}))


_TOPICS: tuple[Callable[[Draw], Iterator[Json]], ...] = (
    *(secured.security, secured.security, secured.security, secured.labelled),
    *(_priorities, _runtimes, _accounts, _limits, _lifecycle, _storage, _ingresses, _nodes),
    *(callers.kubelets, callers.certificates, callers.policies, _mixed, _mixed),
)
