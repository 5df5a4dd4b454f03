"""Valid objects that an API server warns of: what is deprecated, has no effect or is likely a mistake."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

from tests.conformance.generators import metadata

Json = dict[str, Any]
Draw = random.Random
FAMILIES = ("warnings",)

_LABELS = (
    "beta.kubernetes.io/arch", "failure-domain.beta.kubernetes.io/zone", "node-role.kubernetes.io/master",
    "app.kubernetes.io/created-by", "kubernetes.io/os",
)  # fmt: skip
_AMOUNTS = ("1", "1500m", "1.5", "1Mi", "0.5Ki", "100m")
_PATHS = ("a", "a/b", "a/", "b", "a/b/c", "ab")
_TEMPLATED = ("deployments", "replicasets", "statefulsets", "daemonsets", "replicationcontrollers")


def case(family: str, seed: int, number: int) -> Json:
    draw = random.Random(f"{family} {seed} {number}")
    plural = draw.choice((*_CHANGES, "pods", "pods", *_TEMPLATED, "cronjobs"))
    steps = [metadata.wrapped("create", metadata.plain(plural))]
    for _ in range(draw.randint(3, 5)):
        verb, name = draw.choice((("create", "y"), ("create", "y.z"), ("update", "x")))
        body = metadata.plain(plural)
        body["metadata"]["name"] = name if plural not in ("services", "statefulsets", "namespaces") else name[0]
        for _ in range(draw.randint(1, 3)):
            _change(draw, plural, body)
        steps.append(metadata.wrapped(verb, body, **({"dryRun": True} if verb == "create" else {})))
    return {"id": f"warnings-s{seed}-{number:05}", "family": family, "resource": plural, "steps": steps}


def _change(draw: Draw, plural: str, body: Json) -> None:
    if plural in _TEMPLATED:
        template = body["spec"]["template"]
        draw.choice(_POD)(draw, template["spec"], template["metadata"])
    elif plural == "cronjobs":
        template = body["spec"]["jobTemplate"]["spec"]["template"]
        draw.choice(_POD)(draw, template["spec"], template.setdefault("metadata", {}))
    elif plural == "pods":
        draw.choice(_POD)(draw, body["spec"], body["metadata"])
    if plural in _CHANGES:
        _CHANGES[plural](draw, body)


# Pods ---------------------------------------------------------------------------------------------------------------


def _containers(draw: Draw, spec: Json) -> list[Json]:
    if len(spec["containers"]) < 2 and draw.random() < 0.5:
        spec["containers"] = [*spec["containers"], {"name": "d", "image": "i"}]
    return list(spec["containers"])


def _variables(draw: Draw, spec: Json, _: Json) -> None:
    values = ("1", "$(A)", "$(A)2", "$(B)")
    one = draw.choice(_containers(draw, spec))
    one["env"] = [{"name": draw.choice("AB"), "value": draw.choice(values)} for _ in range(draw.randint(2, 3))]
    if draw.random() < 0.3:
        one["env"].append({"name": "A", "valueFrom": {"fieldRef": {"fieldPath": "metadata.name"}}})


def _ports(draw: Draw, spec: Json, _: Json) -> None:
    for one in _containers(draw, spec):
        one["ports"] = []
        for _ in range(draw.randint(0, 2)):
            port: Json = {"containerPort": draw.choice((80, 81))}
            if draw.random() < 0.5:
                port["name"] = draw.choice(("http", "web"))
            if draw.random() < 0.3:
                port["hostPort"] = draw.choice((80, 90))
            if draw.random() < 0.3:
                port["hostIP"] = "10.0.0.1"
            one["ports"].append(port)


def _amounts(draw: Draw, spec: Json, _: Json) -> None:
    one = draw.choice(_containers(draw, spec))
    names = ("memory", "ephemeral-storage")
    one["resources"] = {"limits": {name: draw.choice(_AMOUNTS) for name in names}}


def _volumes(draw: Draw, spec: Json, _: Json) -> None:
    def items() -> list[Json]:
        return [{"key": f"k{index}", "path": draw.choice(_PATHS)} for index in range(draw.randint(1, 3))]

    fields = [{"path": draw.choice(_PATHS), "fieldRef": {"fieldPath": "metadata.name"}} for _ in range(2)]
    projected: list[Json] = [
        {"configMap": {"name": "c", "items": items()}},
        {"secret": {"name": "s", "items": items()}},
        {"downwardAPI": {"items": fields}},
        {"secret": {"name": "t", "items": items()}},
    ]
    source = draw.choice(
        (
            {"configMap": {"name": "c", "items": items()}},
            {"secret": {"secretName": "s", "items": items()}},
            {"downwardAPI": {"items": fields}},
            {"projected": {"sources": draw.sample(projected, draw.randint(1, 3))}},
            {"gitRepo": {"repository": "https://example.com/r"}},
            {"glusterfs": {"endpoints": "e", "path": "/a"}},
            {"rbd": {"monitors": ["m"], "image": "i"}},
            {"cephfs": {"monitors": ["m"]}},
            {"flocker": {"datasetName": "d"}},
            {"ephemeral": {"volumeClaimTemplate": {"spec": _claim(draw)}}},
        )
    )
    spec["volumes"] = [*spec.get("volumes", ()), {"name": f"v{len(spec.get('volumes', ()))}", **source}]


def _claim(draw: Draw) -> Json:
    return {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": draw.choice(_AMOUNTS)}}}


def _placement(draw: Draw, spec: Json, _: Json) -> None:
    kind = draw.random()
    if kind < 0.25:
        spec["nodeSelector"] = {draw.choice(_LABELS): "a"}
    elif kind < 0.5:
        terms = [{"matchExpressions": [{"key": draw.choice(_LABELS), "operator": "Exists"}]}]
        liked = {
            "matchExpressions": [{"key": draw.choice(_LABELS), "operator": "In", "values": [draw.choice(("a", "-a"))]}]
        }
        spec["affinity"] = {
            "nodeAffinity": {
                "requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": terms},
                "preferredDuringSchedulingIgnoredDuringExecution": [{"weight": 1, "preference": liked}],
            }
        }
    elif kind < 0.75:
        term: Json = {"topologyKey": "kubernetes.io/hostname"}
        if draw.random() < 0.4:
            term["labelSelector"] = {"matchLabels": {"app": "a"}}
        chosen = draw.choice(("podAffinity", "podAntiAffinity"))
        spec["affinity"] = {
            chosen: {
                "requiredDuringSchedulingIgnoredDuringExecution": [term],
                "preferredDuringSchedulingIgnoredDuringExecution": [{"weight": 1, "podAffinityTerm": term}],
            }
        }
    else:
        spread: Json = {"maxSkew": 1, "topologyKey": draw.choice(_LABELS), "whenUnsatisfiable": "DoNotSchedule"}
        if draw.random() < 0.5:
            spread["labelSelector"] = {}
        spec["topologySpreadConstraints"] = [spread]


def _annotations(draw: Draw, spec: Json, meta: Json) -> None:
    key, value = draw.choice(
        (
            ("scheduler.alpha.kubernetes.io/critical-pod", ""),
            ("security.alpha.kubernetes.io/sysctls", "a=b"),
            ("seccomp.security.alpha.kubernetes.io/pod", "runtime/default"),
            ("container.seccomp.security.alpha.kubernetes.io/c", "runtime/default"),
        )
    )
    meta["annotations"] = {**meta.get("annotations", {}), key: value}
    if draw.random() < 0.3:
        spec["securityContext"] = {"seccompProfile": {"type": "RuntimeDefault"}}


def _network(draw: Draw, spec: Json, _: Json) -> None:
    addresses = ("10.0.0.1", "FD00::1", "fd00:0::1", "::ffff:10.0.0.1", "010.0.0.1")
    if draw.random() < 0.5:
        spec["hostAliases"] = [{"ip": draw.choice(addresses), "hostnames": ["h"]} for _ in range(2)]
    else:
        spec["dnsConfig"] = {"nameservers": [draw.choice(addresses) for _ in range(2)]}


def _secrets(draw: Draw, spec: Json, _: Json) -> None:
    spec["imagePullSecrets"] = [{"name": draw.choice(("a", "b", ""))} for _ in range(2)]


def _grace(draw: Draw, spec: Json, _: Json) -> None:
    spec["terminationGracePeriodSeconds"] = draw.choice((-1, 0, 30))


_POD: tuple[Callable[[Draw, Json, Json], None], ...] = (
    _variables, _ports, _ports, _amounts, _volumes, _volumes, _placement, _placement, _annotations, _network, _secrets,
    _grace,
)  # fmt: skip


# Other kinds --------------------------------------------------------------------------------------------------------


def _service(draw: Draw, body: Json) -> None:
    spec = body["spec"]
    changes: tuple[Json, ...] = (
        {"externalIPs": [draw.choice(("1.2.3.4", "2001:DB8::1"))]},
        {"externalName": "example.com"},
        {"trafficDistribution": draw.choice(("PreferClose", "PreferSameZone"))},
        {"sessionAffinity": "ClientIP"},
        {"loadBalancerIP": "1.2.3.4"},
        {
            "type": "LoadBalancer",
            "allocateLoadBalancerNodePorts": False,
            "clusterIP": "",
            "loadBalancerSourceRanges": [draw.choice(("10.0.0.1/24", "10.0.0.0/24"))],
        },
        {"type": "ExternalName", "clusterIP": "", "externalName": "example.com", "externalIPs": ["1.2.3.4"]},
    )
    spec.update(draw.choice(changes))
    if draw.random() < 0.2:
        body["metadata"]["annotations"] = {"service.kubernetes.io/topology-aware-hints": "auto"}


def _annotated(*annotations: str) -> Callable[[Draw, Json], None]:
    def change(draw: Draw, body: Json) -> None:
        body["metadata"]["annotations"] = {draw.choice(annotations): "a"}

    return change


def _volume(draw: Draw, body: Json) -> None:
    kind = draw.random()
    if kind < 0.3:
        body["spec"]["persistentVolumeReclaimPolicy"] = draw.choice(("Recycle", "Delete"))
    elif kind < 0.6:
        _annotated("volume.beta.kubernetes.io/storage-class", "volume.beta.kubernetes.io/mount-options")(draw, body)
    else:
        terms = [{"matchExpressions": [{"key": draw.choice(_LABELS), "operator": "Exists"}]}]
        body["spec"]["nodeAffinity"] = {"required": {"nodeSelectorTerms": terms}}


def _policy(draw: Draw, body: Json) -> None:
    block: Json = {"cidr": draw.choice(("10.0.0.1/16", "10.0.0.0/16", "FD00::/64", "fd00::1/64"))}
    if block["cidr"].startswith("10") and draw.random() < 0.5:
        block["except"] = [draw.choice(("10.0.1.1/24", "10.0.1.0/24"))]
    if draw.random() < 0.5:
        body["spec"]["ingress"] = [{"from": [{"ipBlock": block}]}]
    else:
        body["spec"]["egress"] = [{"to": [{"ipBlock": block}]}]


def _slice(draw: Draw, body: Json) -> None:
    if draw.random() < 0.5:
        body["addressType"] = "FQDN"
        body["endpoints"] = [{"addresses": ["example.com"]}]
    else:
        body["addressType"] = "IPv6"
        body["endpoints"] = [{"addresses": [draw.choice(("FD00::1", "fd00::1"))]}]
    if draw.random() < 0.2:
        body["metadata"]["labels"] = {"endpointslice.kubernetes.io/managed-by": "endpointslice-controller.k8s.io"}


def _class(draw: Draw, body: Json) -> None:
    body["allowedTopologies"] = [{"matchLabelExpressions": [{"key": draw.choice(_LABELS), "values": ["a"]}]}]


def _capacity(draw: Draw, body: Json) -> None:
    body["nodeTopology"] = draw.choice(
        (
            {"matchLabels": {draw.choice(_LABELS): "a"}},
            {"matchExpressions": [{"key": draw.choice(_LABELS), "operator": "Exists"}]},
        )
    )


def _driver(draw: Draw, body: Json) -> None:
    body["spec"]["tokenRequests"] = [{"audience": draw.choice(("a", "b"))}]
    if draw.random() < 0.3:
        body["spec"]["serviceAccountTokenInSecrets"] = True


def _stateful(draw: Draw, body: Json) -> None:
    if draw.random() < 0.5:
        body["spec"]["revisionHistoryLimit"] = draw.choice((-1, 3))
    else:
        body["spec"]["volumeClaimTemplates"] = [{"metadata": {"name": "c"}, "spec": _claim(draw)}]


def _schedule(draw: Draw, body: Json) -> None:
    # A time zone in a schedule is refused; one in a comment is not seen there.
    body["spec"]["schedule"] = "0 0 1 1 *"
    spec = body["spec"]["jobTemplate"]["spec"]
    spec.update({"completionMode": "Indexed", "completions": draw.choice((5, 200_000)), "parallelism": 20_000})
    if spec["completions"] > 5:
        spec["backoffLimitPerIndex"] = None


def _node(draw: Draw, body: Json) -> None:
    body["spec"] = draw.choice(({"externalID": "a"}, {"podCIDRs": ["10.0.0.1/24"]}, {"podCIDRs": ["FD00::/64"]}))


def _runtime_class(draw: Draw, body: Json) -> None:
    body["scheduling"] = {"nodeSelector": {draw.choice(_LABELS): "a"}}


def _secret(draw: Draw, body: Json) -> None:
    body["type"] = "kubernetes.io/tls"
    body["stringData"] = {"tls.crt": "a", "tls.key": "b"}


def _devices(draw: Draw, body: Json) -> None:
    body["spec"]["driver"] = draw.choice(("D.example.com", "d.example.com"))


def _claimed(draw: Draw, body: Json) -> None:
    if draw.random() < 0.4:
        _annotated("volume.beta.kubernetes.io/storage-class")(draw, body)
    else:
        body["spec"]["resources"] = {"requests": {"storage": draw.choice(_AMOUNTS)}}


_CHANGES: dict[str, Callable[[Draw, Json], None]] = {
    "cronjobs": _schedule,
    "csidrivers": _driver,
    "csistoragecapacities": _capacity,
    "endpointslices": _slice,
    "ingresses": _annotated("kubernetes.io/ingress.class"),
    "networkpolicies": _policy,
    "nodes": _node,
    "persistentvolumeclaims": _claimed,
    "persistentvolumes": _volume,
    "resourceslices": _devices,
    "runtimeclasses": _runtime_class,
    "secrets": _secret,
    "serviceaccounts": _annotated("kubernetes.io/enforce-mountable-secrets", "a"),
    "services": _service,
    "statefulsets": _stateful,
    "storageclasses": _class,
}
