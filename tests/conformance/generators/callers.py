"""Sequences whose outcome depends on who asks (kubelets, users who ask for certificates) and on policies."""

from __future__ import annotations

import random
from collections.abc import Iterator
from typing import Any

from tests.conformance.generators import secured
from tests.conformance.generators.steps import SPACE, create, made, new_space, plain_spec, pod_step, step

Json = dict[str, Any]
Draw = random.Random


def kubelets(draw: Draw) -> Iterator[Json]:
    """Requests of the kubelet of ``n1``, with the plugin NodeRestriction."""
    me = ["system:node:n1", "system:nodes"]
    yield from new_space(draw)
    for name in ("n1", "n2"):
        yield create("nodes", made("nodes", name, labels={"a": "b"}), **({"as": me} if draw.random() < 0.4 else {}))
    for name in ("p1", "p2"):
        spec = {**plain_spec(draw), "nodeName": f"n{name[1]}"}
        yield pod_step(name, spec, annotations={"kubernetes.io/config.mirror": "m"} if draw.random() < 0.3 else {})
    keys = (
        "a",
        "kubernetes.io/os",
        "kubernetes.io/x",
        "node-restriction.kubernetes.io/a",
        "node.kubernetes.io/x",
        "x.k8s.io/y",
    )
    for number in range(draw.randint(4, 7)):
        kind, node, pod = draw.random(), draw.choice(("n1", "n1", "n2")), draw.choice(("p1", "p1", "p2"))
        if kind < 0.15:
            labels = {draw.choice(keys): draw.choice(("b", "c", None)) for _ in range(2)}
            yield step("merge", "nodes", node, {"metadata": {"labels": labels}}, **{"as": me})
        elif kind < 0.3:
            changed = draw.choice(
                ({"taints": [{"key": "a", "effect": "NoSchedule"}]}, {"unschedulable": True}, {"providerID": "x"})
            )
            yield step("merge", "nodes", node, {"spec": changed}, **{"as": me})
        elif kind < 0.4:
            yield step(
                "merge",
                "nodes",
                node,
                {"status": {"phase": draw.choice(("a", "Running"))}},
                subresource="status",
                **{"as": me},
            )
        elif kind < 0.55:
            changed = draw.choice(
                ({"status": {"message": "m"}}, {"metadata": {"labels": {"a": "c"}}, "status": {"message": "n"}})
            )
            yield step("merge", "pods", pod, changed, subresource="status", **{"as": me})
        elif kind < 0.6:
            yield step("merge", "pods", pod, {"metadata": {"labels": {"a": "c"}}}, **{"as": me})
        elif kind < 0.7:
            yield step("delete", "pods", pod, **{"as": me})
        elif kind < 0.75:
            yield step("delete", "nodes", node, **{"as": me})
        elif kind < 0.8:
            yield step(
                "get", draw.choice(("nodes", "pods", "configmaps", "secrets")), draw.choice(("n1", "p1")), **{"as": me}
            )
        elif kind < 0.9:
            spec = {**plain_spec(draw), "nodeName": draw.choice(("n1", "n1", "n2"))}
            if draw.random() < 0.2:
                del spec["nodeName"]
            if draw.random() < 0.2:
                spec["volumes"] = [
                    {
                        "name": "v",
                        **draw.choice(
                            (
                                {"configMap": {"name": "c"}},
                                {"secret": {"secretName": "s"}},
                                {"persistentVolumeClaim": {"claimName": "c"}},
                            )
                        ),
                    }
                ]
            if draw.random() < 0.2:
                spec["serviceAccountName"] = "default"
            fields: Json = {"annotations": {"kubernetes.io/config.mirror": "m"}} if draw.random() < 0.8 else {}
            if draw.random() < 0.6:
                owner = {"apiVersion": "v1", "kind": "Node", "name": "n1", "uid": "u", "controller": True}
                fields["ownerReferences"] = [
                    {**owner, **draw.choice(({}, {"name": "n2"}, {"controller": False}, {"kind": "Pod"}))}
                ]
            yield step("create", "pods", f"q{number}", made("pods", f"q{number}", spec=spec, **fields), **{"as": me})
        elif kind < 0.95:
            space = draw.choice((SPACE, "kube-node-lease"))
            name = draw.choice(("n1", "n2"))
            yield step("create", "leases", name, made("leases", name, space, spec={}), space, **{"as": me})
        else:
            drivers = {"drivers": [{"name": "d.example.com", "nodeID": "n"}]}
            yield step("create", "csinodes", node, made("csinodes", node, spec=drivers), **{"as": me})


# Certificates -------------------------------------------------------------------------------------------------------

_SIGNERS = (
    "kubernetes.io/kube-apiserver-client", "kubernetes.io/kube-apiserver-client-kubelet",
    "kubernetes.io/kubelet-serving", "example.com/s",
)  # fmt: skip
_REQUESTS = {
    "of masters": (
        "LS0tLS1CRUdJTiBDRVJUSUZJQ0FURSBSRVFVRVNULS0tLS0KTUlHa01GZ0NBUUF3SlRFWE1CVUdBMVVFQ2d3T2MzbHpkR1Z0T20x"
        "aGMzUmxjbk14Q2pBSUJnTlZCQU1NQVdFdwpLakFGQmdNclpYQURJUUE5RDMvNCtnem92MWxoQ3ZzNSt6NVhDTmtmVkhQMDN0ekdh"
        "MWFtZ2hRamdxQUFNQVVHCkF5dGxjQU5CQUhwaU9DQTdEU1RBZ0JqNVhiVmJYME9FMk9aTVhvTXNjajc3VmVYVWEvdjRaeXZERXZx"
        "NERiSlIKUUZaRUxtRFVKWWh3T1QySDh4UFlXSkRBTGtmd1JRMD0KLS0tLS1FTkQgQ0VSVElGSUNBVEUgUkVRVUVTVC0tLS0tCg=="
    ),
    "of a node": (
        "LS0tLS1CRUdJTiBDRVJUSUZJQ0FURSBSRVFVRVNULS0tLS0KTUlHdk1HTUNBUUF3TURFVk1CTUdBMVVFQ2d3TWMzbHpkR1Z0T201"
        "dlpHVnpNUmN3RlFZRFZRUUREQTV6ZVhOMApaVzA2Ym05a1pUcHVNVEFxTUFVR0F5dGxjQU1oQU5hL3k1MlRKTmxRSVg3MVhMenI5"
        "OEs1enh1S1BOdmdyMEJVClYvVUdxZkdWb0FBd0JRWURLMlZ3QTBFQTV4U0Fad3Y5c1dLOUNXTXY2dVVXSlFuc3g2SjQ5ZTR6SVhV"
        "RmErWHMKRlFpMGZFbDR0bjBqbGo2dEFKT05Qc0VOaXFDempuSkhKdUVsYkRPblFTWFNBUT09Ci0tLS0tRU5EIENFUlRJRklDQVRF"
        "IFJFUVVFU1QtLS0tLQo="
    ),
    "of developers": (
        "LS0tLS1CRUdJTiBDRVJUSUZJQ0FURSBSRVFVRVNULS0tLS0KTUlHYU1FNENBUUF3R3pFTk1Bc0dBMVVFQ2d3RVpHVjJjekVLTUFn"
        "R0ExVUVBd3dCWVRBcU1BVUdBeXRsY0FNaApBRm95WForMWlYcXNUZ1NJbTVQLzVyaGFocHJFaGg0cElzc3NKK0YydS8rS29BQXdC"
        "UVlESzJWd0EwRUFBUUdGCisyaThQa3ZldGJybnlCN0Erc0hFaWdPaUZJelMvamRyQThKdjBIOVdRS29FM1Y1QW9lSlA3eVB5T1NE"
        "bGt5V0gKQXdxZWZtUXhJK0kxZVdWbkRBPT0KLS0tLS1FTkQgQ0VSVElGSUNBVEUgUkVRVUVTVC0tLS0tCg=="
    ),
    "not signed": (
        "LS0tLS1CRUdJTiBDRVJUSUZJQ0FURSBSRVFVRVNULS0tLS0KTUlHYU1FNENBUUF3R3pFTk1Bc0dBMVVFQ2d3RVpHVjJjekVLTUFn"
        "R0ExVUVBd3dCWWpBcU1BVUdBeXRsY0FNaApBQW9yRUszSzY2MkJBa24xS3Z5YTZFOEJ5L2YyaGQxZ2dLV3JoR0M5eXRFZm9BQXdC"
        "UVlESzJWd0EwRUFjM2lzCjEwNTY0YmpVNEVEVWE0WWtCTFNWRUdVL0haU0pxQ0s4WjVMN0dnRVg3cGVpV2M2Q29wUVFVeExkRlJt"
        "Qy80SGsKbUF1RGVMUWZDU1NXbmE1bURRPT0KLS0tLS1FTkQgQ0VSVElGSUNBVEUgUkVRVUVTVC0tLS0tCg=="
    ),
}
_GROUP = "certificates.k8s.io"


def certificates(draw: Draw) -> Iterator[Json]:
    """Bob asks, approves and signs as far as rules let him."""
    bob = ["bob", "devs"]
    own = {
        "apiGroups": [_GROUP],
        "resources": [
            "certificatesigningrequests",
            "certificatesigningrequests/approval",
            "certificatesigningrequests/status",
        ],
        "verbs": ["*"],
    }
    rules = [own]
    for verb in ("approve", "sign"):
        if draw.random() < 0.5:
            names = draw.choice((["example.com/s"], ["example.com/*"], ["kubernetes.io/*"], [_SIGNERS[0]]))
            rules.append({"apiGroups": [_GROUP], "resources": ["signers"], "resourceNames": names, "verbs": [verb]})
    yield create("clusterroles", made("clusterroles", "bobs", rules=rules))
    bound = {"roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "bobs"}}
    bound["subjects"] = [{"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": "bob"}]
    yield create("clusterrolebindings", made("clusterrolebindings", "bobs", **bound))
    for number in range(draw.randint(2, 4)):
        asked = {
            "request": _REQUESTS[draw.choice(tuple(_REQUESTS))],
            "signerName": draw.choice(_SIGNERS),
            "usages": draw.choice((["client auth"], ["digital signature", "client auth"], ["server auth"])),
        }
        name = f"r{number}"
        yield create("certificatesigningrequests", made("certificatesigningrequests", name, spec=asked), **{"as": bob})
        for _ in range(draw.randint(0, 2)):
            if draw.random() < 0.6:
                condition = {
                    "type": draw.choice(("Approved", "Denied")),
                    "status": "True",
                    "reason": "r",
                    "message": "m",
                }
                body = {"status": {"conditions": [condition]}}
                yield step("merge", "certificatesigningrequests", name, body, subresource="approval", **{"as": bob})
            else:
                body = {"status": {"conditions": [{"type": "Failed", "status": "True", "reason": "r", "message": "m"}]}}
                yield step("merge", "certificatesigningrequests", name, body, subresource="status", **{"as": bob})


# Policies -----------------------------------------------------------------------------------------------------------

_REGISTRATION = "admissionregistration.k8s.io/v1"
_SEEN_S = 2.0
"""How long the real server takes to act by a new policy: it reads them once a second."""


def policies(draw: Draw) -> Iterator[Json]:
    """Policies beside the server's own plugins: who has the first word, and what mutations make of it."""
    yield create("namespaces", made("namespaces", SPACE, labels=secured.labels(draw)))
    yield create("serviceaccounts", made("serviceaccounts", "default"))
    if draw.random() < 0.5:
        limits = [
            {"type": "Container", "max": {"cpu": "1"}, "defaultRequest": {"cpu": "100m"}, "default": {"cpu": "250m"}}
        ]
        yield create("limitranges", made("limitranges", "l", spec={"limits": limits}))
    if draw.random() < 0.4:
        yield create("resourcequotas", made("resourcequotas", "q", spec={"hard": {"pods": draw.choice("01")}}))
        status = {"status": {"hard": {"pods": "1"}, "used": {"pods": "0"}}}
        yield step("merge", "resourcequotas", "q", status, subresource="status")
    rule = {"apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE", "UPDATE"], "resources": ["pods"]}
    where = {"resourceRules": [rule], "namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": SPACE}}}
    if draw.random() < 0.8:
        expression = draw.choice(
            (
                "!has(object.spec.hostNetwork)",
                "object.spec.containers.all(c, has(c.securityContext))",
                "has(object.metadata.labels)",
                "object.spec.containers.all(c, has(c.resources.requests))",
            )
        )
        checked: Json = {"expression": expression, **({"message": "not so"} if draw.random() < 0.5 else {})}
        spec = {"matchConstraints": where, "validations": [checked]}
        yield create("validatingadmissionpolicies", made("validatingadmissionpolicies", "p", spec=spec))
        actions = draw.choice((["Deny"], ["Warn"], ["Deny", "Audit"], ["Warn", "Audit"]))
        bound = {"policyName": "p", "validationActions": actions}
        body = made("validatingadmissionpolicybindings", "p", spec=bound)
        yield create("validatingadmissionpolicybindings", body, after=_SEEN_S)
    if draw.random() < 0.5:
        applied = draw.choice(
            (
                "Object{spec: Object.spec{securityContext: Object.spec.securityContext{runAsNonRoot: true}}}",
                'Object{metadata: Object.metadata{labels: {"mutated": "yes"}}}',
                "Object{spec: Object.spec{hostNetwork: true}}",
                'Object{spec: Object.spec{priorityClassName: "system-node-critical"}}',
            )
        )
        mutation = {"patchType": "ApplyConfiguration", "applyConfiguration": {"expression": applied}}
        spec = {
            "matchConstraints": where,
            "failurePolicy": "Fail",
            "reinvocationPolicy": draw.choice(("Never", "IfNeeded")),
            "mutations": [mutation],
        }
        yield create("mutatingadmissionpolicies", made("mutatingadmissionpolicies", "p", spec=spec))
        body = made("mutatingadmissionpolicybindings", "p", spec={"policyName": "p"})
        yield create("mutatingadmissionpolicybindings", body, after=_SEEN_S)
    for number in range(draw.randint(2, 4)):
        pod, annotations = secured.pod(draw)
        if draw.random() < 0.3:
            pod["containers"][0]["resources"] = {"limits": {"cpu": draw.choice(("500m", "2"))}}
        more: Json = {"annotations": annotations} if annotations else {}
        if draw.random() < 0.3:
            more["labels"] = {"a": "b"}
        yield pod_step(f"p{number}", pod, **more)
        if draw.random() < 0.4:
            changed = {"spec": {"containers": [{"name": "c", "image": draw.choice("jk")}]}}
            yield step("strategic", "pods", f"p{number}", changed)
