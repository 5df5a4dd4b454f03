"""Requests about a custom kind whose versions a webhook converts, for a real kube-apiserver and for kemu alike."""

from __future__ import annotations

import copy
from typing import Any

from tests.gateway.custom.cases import (
    APPLY,
    DEFINITIONS,
    JSON_PATCH,
    MERGE,
    PARTIAL,
    TABLE,
    Step,
)
from tests.gateway.custom.converters import GROUP

NAMESPACE = "conversions"
NAME = f"{DEFINITIONS}/gizmos.{GROUP}"
V1 = f"/apis/{GROUP}/v1/namespaces/{NAMESPACE}/gizmos"
V2 = f"/apis/{GROUP}/v2/namespaces/{NAMESPACE}/gizmos"
CONVERTER = "CONVERTER"
"""Stands for the webhook: see :func:`tests.gateway.custom.player.play`."""


def client(path: str = "convert") -> dict[str, Any]:
    return {"url": f"{CONVERTER}/{path}", "caBundle": CONVERTER}


def conversion(path: str = "convert", *versions: str) -> dict[str, Any]:
    webhook = {"clientConfig": client(path), "conversionReviewVersions": list(versions or ("v1",))}
    return {"strategy": "Webhook", "webhook": webhook}


def _version(name: str, number: str, storage: bool, **spec: Any) -> dict[str, Any]:
    status = {"replicas": {"type": "integer"}, "note": {"type": "string"}}
    return {
        "name": name,
        "served": True,
        "storage": storage,
        "subresources": {
            "status": {},
            "scale": {"specReplicasPath": f".spec.{number}", "statusReplicasPath": ".status.replicas"},
        },
        "additionalPrinterColumns": [{"name": "Number", "type": "integer", "jsonPath": f".spec.{number}"}],
        "schema": {
            "openAPIV3Schema": {
                "type": "object",
                "properties": {
                    "spec": {
                        "type": "object",
                        "properties": {number: {"type": "integer", "minimum": 0}, **spec},
                    },
                    "status": {"type": "object", "properties": status},
                },
            }
        },
    }


DEFINITION: dict[str, Any] = {
    "apiVersion": "apiextensions.k8s.io/v1",
    "kind": "CustomResourceDefinition",
    "metadata": {"name": f"gizmos.{GROUP}"},
    "spec": {
        "group": GROUP,
        "scope": "Namespaced",
        "names": {"plural": "gizmos", "kind": "Gizmo"},
        "conversion": conversion(),
        "versions": [
            _version("v1", "replicas", True, address={"type": "string"}),
            _version(
                "v2", "count", False,
                host={"type": "string"}, port={"type": "integer"}, mode={"type": "string", "default": "fast"},
            ) | {"selectableFields": [{"jsonPath": ".spec.port"}]},
        ],
    },
}  # fmt: skip


def one(name: str, /, **spec: Any) -> dict[str, Any]:
    return {"apiVersion": f"{GROUP}/v1", "kind": "Gizmo", "metadata": {"name": name}, "spec": spec}


def two(name: str, /, **spec: Any) -> dict[str, Any]:
    return {**one(name, **spec), "apiVersion": f"{GROUP}/v2"}


def _to(path: str, *versions: str) -> Step:
    return Step("PATCH", NAME, {"spec": {"conversion": conversion(path, *versions)}}, MERGE, accept=PARTIAL)


def _objects() -> list[Step]:
    a, b = f"{V2}/a", f"{V2}/b"
    return [
        Step("POST", "/api/v1/namespaces", {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": NAMESPACE}}),
        Step("POST", DEFINITIONS, DEFINITION),
        Step("GET", NAME, until="Established"),
        Step("POST", V1, one("a", address="a:80", replicas=3), pause_s=3),
        Step("POST", V2, two("b", host="b", port=81, count=2)),
        Step("GET", a),
        Step("GET", b),
        Step("GET", f"{V1}/a"),
        Step("GET", f"{V1}/b"),
        Step("GET", V1),
        Step("GET", V2),
        Step("GET", V2, accept=TABLE),
        Step("GET", V1, accept=TABLE),
        Step("GET", a, accept=PARTIAL),
        Step("GET", f"{V2}?limit=1"),
        Step("GET", f"{V2}?resourceVersion=0"),
        Step("GET", f"{V2}?fieldSelector=spec.port%3D81"),
        Step("GET", f"{V2}?watch=true&timeoutSeconds=1"),
        Step("GET", f"{V1}?watch=true&timeoutSeconds=1"),
        Step("GET", f"{V2}?watch=true&timeoutSeconds=1&fieldSelector=spec.port%3D81"),
        Step("GET", f"{V2}?watch=true&timeoutSeconds=1", accept=TABLE),
        Step(
            "GET",
            f"{V2}?watch=true&timeoutSeconds=1&sendInitialEvents=true&allowWatchBookmarks=true"
            "&resourceVersionMatch=NotOlderThan",
        ),
        # Refused by the schema of the version that is spoken.
        Step("POST", V2, two("c", host="c", port="x")),
        Step("POST", V2, two("c", host="c", count=-1)),
        Step("POST", f"{V2}?fieldValidation=Strict", two("c", address="c:1")),
        Step("POST", V2, two("c", address="c:1")),
        Step("POST", f"{V2}?dryRun=All", two("dry", host="c", port=1)),
        Step("GET", f"{V1}/c"),
        # Updates
        Step("PUT", b, two("b", host="bb", port=82), fresh=True),
        Step("PUT", b, two("b", host="bb", port=82), fresh=True),
        Step("PUT", f"{V1}/b", one("b", address="b:83"), fresh=True),
        Step("PUT", f"{V2}/b", {**two("b"), "metadata": {"name": "b", "resourceVersion": "1"}}),
        Step("PATCH", b, {"spec": {"host": "patched"}}, MERGE),
        Step("PATCH", b, [{"op": "replace", "path": "/spec/port", "value": 84}], JSON_PATCH),
        Step("PATCH", b, [{"op": "replace", "path": "/spec/address", "value": "x:1"}], JSON_PATCH),
        Step("PATCH", f"{V1}/b", [{"op": "replace", "path": "/spec/address", "value": "x:1"}], JSON_PATCH),
        Step("PATCH", b, {"metadata": {"labels": {"x": "y"}}}, MERGE),
        Step("GET", f"{V2}?labelSelector=x%3Dy"),
        # Status and scale
        Step("PATCH", f"{b}/status", {"status": {"replicas": 7, "note": "hello"}}, MERGE),
        Step("GET", f"{b}/status"),
        Step("GET", f"{b}/scale"),
        Step("GET", f"{a}/scale"),
        Step("PATCH", f"{a}/scale", {"spec": {"replicas": 5}}, MERGE),
        Step("GET", f"{V1}/a/scale"),
        Step("GET", f"{V1}/a"),
        # Apply
        Step("PATCH", f"{V2}/s?fieldManager=one", two("s", host="s", port=1), APPLY),
        Step("PATCH", f"{V1}/s?fieldManager=two", one("s", replicas=1), APPLY),
        Step("PATCH", f"{V2}/s?fieldManager=two", two("s", count=2, host="t"), APPLY),
        Step("PATCH", f"{V1}/s?fieldManager=two", one("s", address="t:2"), APPLY),
        Step("PATCH", f"{V1}/s?fieldManager=two&force=true", one("s", address="t:2"), APPLY),
        Step("PATCH", f"{V2}/s?fieldManager=three", two("s", port=3), APPLY),
        Step("PATCH", f"{V2}/s?fieldManager=one", two("s", mode="slow"), APPLY),
        Step("GET", f"{V1}/s"),
        # Deletes
        Step("PATCH", f"{V2}/s", {"metadata": {"finalizers": ["example.com/hold"]}}, MERGE),
        Step("DELETE", f"{V2}/s"),
        Step("PATCH", f"{V2}/s", {"metadata": {"finalizers": None}}, MERGE),
        Step("DELETE", b),
        Step("DELETE", b),
        Step("POST", V2, two("c", host="c", port=9)),
        Step("DELETE", f"{V2}?fieldSelector=spec.port%3D9"),
        Step("GET", V2),
    ]


def _hostile() -> list[Step]:
    """What a converter may not do."""
    found = [Step("PATCH", f"{V1}/a", {"metadata": {"labels": {"own": "label"}}}, MERGE)]
    paths = [
        "metadata", "no-labels", "name", "namespace", "uid", "kind", "version", "same-version", "bad-label",
        "bad-label-name", "label-of-number", "labels-of-text", "bad-annotation", "no-metadata", "metadata-of-text",
        "no-kind", "no-object", "null-object", "fewer", "more", "refuse", "refuse-silently", "no-result", "no-uid",
        "other-uid", "no-response", "no-version", "other-kind", "old", "wrong-type", "wrong-result", "unknown-field",
        "invalid", "500", "500-text", "404", "garbage", "list", "empty", "drop", "cut",
    ]  # fmt: skip
    for path in paths:
        found += [_to(path), Step("GET", f"{V2}/a", pause_s=2.5)]
        if path in ("name", "refuse", "invalid", "metadata", "500", "fewer"):
            # A real server may still be without its cache of the version, which another server had before.
            found += [] if path == "invalid" else [Step("GET", V2)]
            found += [
                Step("GET", f"{V1}/a"),
                Step("POST", f"{V2}", two("n", host="n", port=1)),
                Step("PATCH", f"{V2}/a", {"spec": {"mode": "x"}}, MERGE),
                Step("PUT", f"{V2}/a", two("a", host="n", port=1)),
                Step("DELETE", f"{V2}/a?dryRun=All"),
            ]
    return [
        *found,
        Step("PATCH", NAME, {"spec": {"conversion": conversion("old", "v1beta1")}}, MERGE, accept=PARTIAL),
        Step("GET", f"{V2}/a", pause_s=2.5),
        Step("PATCH", NAME, {"spec": {"conversion": conversion("convert", "v0", "v1")}}, MERGE, accept=PARTIAL),
        Step("GET", f"{V2}/a", pause_s=2.5),
        Step("PATCH", NAME, {"spec": {"conversion": conversion("convert", "v0")}}, MERGE),
    ]


def _changes() -> list[Step]:
    """The version in which objects are stored changes."""
    moved = copy.deepcopy(DEFINITION["spec"]["versions"])
    moved[0]["storage"], moved[1]["storage"] = False, True
    unserved = copy.deepcopy(moved)
    unserved[0]["served"] = False
    return [
        _to("convert"),
        Step("PATCH", NAME, {"spec": {"versions": moved}}, MERGE),
        Step("GET", NAME),
        Step("GET", f"{V1}/a", pause_s=2.5),
        Step("GET", f"{V2}/a"),
        Step("PATCH", f"{V1}/a", {"metadata": {"labels": {"moved": "yes"}}}, MERGE),
        Step("GET", f"{V2}/a"),
        Step("PATCH", NAME, {"spec": {"versions": unserved}}, MERGE, accept=PARTIAL),
        Step("GET", f"{V2}/a", pause_s=2.5),
        Step("GET", f"{V1}/a"),
        Step("DELETE", NAME, accept=PARTIAL),
        Step("GET", NAME, until="gone"),
    ]


_HOOKS = "/apis/admissionregistration.k8s.io/v1"


def _hook(kind: str, path: str, *versions: str, **more: Any) -> dict[str, Any]:
    rule = {
        "operations": ["*"],
        "apiGroups": [GROUP],
        "apiVersions": list(versions),
        "resources": ["gizmos", "gizmos/*"],
    }
    return {
        "apiVersion": "admissionregistration.k8s.io/v1",
        "kind": f"{kind}WebhookConfiguration",
        "metadata": {"name": f"conversions-{path}"},
        "webhooks": [
            {
                "name": f"{path}.example.com",
                "clientConfig": client(path),
                "rules": [rule],
                "sideEffects": "None",
                "admissionReviewVersions": ["v1"],
                **more,
            }
        ],
    }


def _policy(expression: str, *versions: str) -> list[dict[str, Any]]:
    rule = {"operations": ["*"], "apiGroups": [GROUP], "apiVersions": list(versions), "resources": ["gizmos"]}
    api, metadata = "admissionregistration.k8s.io/v1", {"name": "conversions"}
    spec = {"matchConstraints": {"resourceRules": [rule]}, "validations": [{"expression": expression}]}
    binding = {"policyName": "conversions", "validationActions": ["Deny"]}
    return [
        {"apiVersion": api, "kind": "ValidatingAdmissionPolicy", "metadata": metadata, "spec": spec},
        {"apiVersion": api, "kind": "ValidatingAdmissionPolicyBinding", "metadata": metadata, "spec": binding},
    ]


def _admission() -> list[Step]:
    """Webhooks and policies that know another version than that of the request."""
    validating, mutating = f"{_HOOKS}/validatingwebhookconfigurations", f"{_HOOKS}/mutatingwebhookconfigurations"
    policies = f"{_HOOKS}/validatingadmissionpolicies", f"{_HOOKS}/validatingadmissionpolicybindings"
    policy = _policy("object.spec.address.startsWith('z')", "v1")
    condition = [{"name": "spec", "expression": "has(object.spec.address) && request.kind.version == 'v1'"}]
    return [
        _to("convert"),
        Step("POST", mutating, _hook("Mutating", "replicas", "v1"), accept=PARTIAL),
        Step("POST", V2, two("m", host="m", port=1), pause_s=3),
        Step("PUT", f"{V2}/m", two("m", host="m", port=2, count=7), fresh=True),
        Step("POST", V1, one("o", address="o:1")),
        Step("DELETE", f"{mutating}/conversions-replicas", accept=PARTIAL),
        Step("POST", validating, _hook("Validating", "echo", "v1", matchConditions=condition), accept=PARTIAL),
        Step("POST", V2, two("n", host="n", port=1), pause_s=3),
        Step("PATCH", f"{V2}/m", {"spec": {"port": 3}}, MERGE),
        Step("PATCH", f"{V2}/m/status", {"status": {"note": "x"}}, MERGE),
        Step("PATCH", f"{V2}/m/scale", {"spec": {"replicas": 9}}, MERGE),
        Step("PATCH", f"{V1}/m/scale", {"spec": {"replicas": 9}}, MERGE),
        Step("DELETE", f"{V2}/m"),
        Step("DELETE", f"{validating}/conversions-echo", accept=PARTIAL),
        Step("POST", validating, _hook("Validating", "echo", "v1", matchPolicy="Exact"), accept=PARTIAL),
        Step("PATCH", f"{V2}/m", {"spec": {"port": 4}}, MERGE, pause_s=3),
        Step("PATCH", f"{V1}/m", {"spec": {"address": "x:4"}}, MERGE),
        Step("DELETE", f"{validating}/conversions-echo", accept=PARTIAL),
        Step("POST", policies[0], policy[0], accept=PARTIAL),
        Step("POST", policies[1], policy[1], accept=PARTIAL),
        Step("PATCH", f"{V2}/m", {"spec": {"port": 5}}, MERGE, pause_s=3),
        Step("PATCH", f"{V2}/m", {"spec": {"host": "zz"}}, MERGE),
        Step("DELETE", f"{policies[1]}/conversions", accept=PARTIAL),
        Step("DELETE", f"{policies[0]}/conversions", accept=PARTIAL),
        Step("DELETE", f"{V1}/m", accept=PARTIAL, pause_s=1),
        Step("DELETE", f"{V1}/o", accept=PARTIAL),
    ]


STEPS: list[Step] = [*_objects(), *_admission(), *_hostile(), *_changes()]
