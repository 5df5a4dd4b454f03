"""Requests under webhooks and policies, which a real kube-apiserver has answered and kemu's answers the same way.

A case has a namespace of its own. Its ``setup`` is created first (webhooks and policies concern that namespace alone),
then its ``requests`` are sent one after the other. Webhooks are those of :mod:`tests.admission.webhook_server`.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from typing import Any

Json = dict[str, Any]

REGISTRATION = "admissionregistration.k8s.io/v1"
_MAP_RULES = [{"operations": ["*"], "apiGroups": [""], "apiVersions": ["v1"], "resources": ["configmaps"]}]
_ALL_RULES = [{"operations": ["*"], "apiGroups": ["*"], "apiVersions": ["*"], "resources": ["*/*"]}]
_WHAT_GOES = ("uid", "resourceVersion", "creationTimestamp", "managedFields", "generation", "namespace")


def hook(path: str, **more: Any) -> Json:
    """``{url}`` and ``{ca}`` are filled in."""
    return {
        "name": f"{path}.example.com",
        "clientConfig": {"url": f"{{url}}/{path}", "caBundle": "{ca}"},
        "rules": _MAP_RULES,
        "sideEffects": "None",
        "admissionReviewVersions": ["v1"],
        "timeoutSeconds": 2,
        **more,
    }


def hooks(kind: str, *webhooks: Json, name: str = "") -> Json:
    """``kind``: Validating or Mutating."""
    named = {"name": f"{{ns}}{name}"}
    return {"apiVersion": REGISTRATION, "kind": f"{kind}WebhookConfiguration", "metadata": named, "webhooks": webhooks}


def config_map(name: str = "one", **metadata: Any) -> Json:
    return {
        "apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name, **metadata}, "data": {"key": "value"},
    }  # fmt: skip


def deployment(name: str = "web", replicas: int = 1, **metadata: Any) -> Json:
    labels = {"app": name}
    template = {"metadata": {"labels": labels}, "spec": {"containers": [{"name": "main", "image": "nginx"}]}}
    spec = {"replicas": replicas, "selector": {"matchLabels": labels}, "template": template, "paused": True}
    return {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": name, **metadata}, "spec": spec}


MAPS = "/api/v1/namespaces/{ns}/configmaps"
DEPLOYMENTS = "/apis/apps/v1/namespaces/{ns}/deployments"
REGISTERED = f"/apis/{REGISTRATION}"
_MERGE = "application/merge-patch+json"


def post(path: str, body: Json, **query: str) -> Json:
    return {"method": "POST", "path": path, "body": body, "query": query}


def put(path: str, body: Json) -> Json:
    return {"method": "PUT", "path": path, "body": body}


def patch(path: str, body: Json) -> Json:
    return {"method": "PATCH", "path": path, "body": body, "type": _MERGE}


def delete(path: str) -> Json:
    return {"method": "DELETE", "path": path}


def get(path: str) -> Json:
    return {"method": "GET", "path": path}


_CREATE = post(MAPS, config_map())


def validating(
    spec: Json, name: str = "", actions: Sequence[str] = ("Deny",), binding: Json | None = None
) -> list[Json]:
    """A policy for configmaps, and its binding."""
    return [
        policy("Validating", spec, name),
        bound("Validating", name, {"validationActions": [*actions], **(binding or {})}),
    ]


def mutating(spec: Json, name: str = "", binding: Json | None = None) -> list[Json]:
    spec = {"reinvocationPolicy": "Never", **spec}
    return [policy("Mutating", spec, name), bound("Mutating", name, binding or {})]


def policy(kind: str, spec: Json, name: str = "") -> Json:
    operations = ["*"] if kind == "Validating" else ["CREATE", "UPDATE"]
    rules = [{**_MAP_RULES[0], "operations": operations}]
    return {
        "apiVersion": REGISTRATION,
        "kind": f"{kind}AdmissionPolicy",
        "metadata": {"name": f"{{ns}}{name}"},
        "spec": {"matchConstraints": {"resourceRules": rules}, **spec},
    }


def bound(kind: str, name: str, spec: Json) -> Json:
    return {
        "apiVersion": REGISTRATION,
        "kind": f"{kind}AdmissionPolicyBinding",
        "metadata": {"name": f"{{ns}}{name}"},
        "spec": {"policyName": f"{{ns}}{name}", **spec},
    }


def validations(*expressions: str, **more: Any) -> Json:
    return {"validations": [{"expression": one} for one in expressions], **more}


def case(name: str, setup: Sequence[Json], *requests: Json) -> Json:
    return {"name": name, "setup": [*setup], "requests": [*requests]}


def _webhook(path: str, kind: str = "Validating", *requests: Json, **more: Any) -> Json:
    return case(f"{kind.lower()} webhook {path}", [hooks(kind, hook(path, **more))], *(requests or (_CREATE,)))


WEBHOOKS: list[Json] = [
    _webhook("allow", "Validating", _CREATE, put(f"{MAPS}/one", config_map()), delete(f"{MAPS}/one")),
    _webhook("warn"),
    _webhook("deny"),
    _webhook("deny-message"),
    _webhook("deny-reason"),
    _webhook("deny-code"),
    _webhook("deny-details"),
    _webhook("deny-success"),
    _webhook("deny", "Mutating"),
    _webhook("deny-message", "Mutating"),
    _webhook("label-a", "Mutating", _CREATE, get(f"{MAPS}/one"), put(f"{MAPS}/one", config_map())),
    _webhook("count", "Mutating", _CREATE, patch(f"{MAPS}/one", {"data": {"b": "c"}}), patch(f"{MAPS}/one", {})),
    _webhook("empty-patch", "Mutating"),
    _webhook("bad-pointer", "Mutating"),
    _webhook("bad-operation", "Mutating"),
    _webhook("invalid-object", "Mutating"),
    _webhook("move", "Mutating"),
    _webhook("rename", "Mutating", _CREATE, get(MAPS)),
    _webhook("rename", "Mutating", _CREATE, put(f"{MAPS}/renamed", config_map("renamed"))),
    _webhook("patch-without-type", "Mutating"),
    _webhook("type-without-patch", "Mutating"),
    _webhook("patch-type", "Mutating"),
    _webhook("label-a"),
    _webhook("wrong-uid"),
    _webhook("no-response"),
    _webhook("404"),
    _webhook("500"),
    _webhook("503"),
    _webhook("hang", "Validating", timeoutSeconds=1),
    _webhook("drop"),
    _webhook("hang", "Mutating", timeoutSeconds=1, failurePolicy="Ignore"),
    _webhook("garbage", "Validating", failurePolicy="Ignore"),
    case(
        "a closed port",
        [hooks("Validating", hook("x", clientConfig={"url": "https://127.0.0.1:1/x", "caBundle": "{ca}"}))],
        _CREATE,
    ),
    case(
        "a wrong authority",
        [hooks("Validating", hook("allow", clientConfig={"url": "{url}/allow", "caBundle": "{otherca}"}))],
        _CREATE,
    ),
    case(
        "a service that does not exist",
        [hooks("Validating", hook("x", clientConfig={"service": {"namespace": "{ns}", "name": "x", "path": "/x"}}))],
        _CREATE,
    ),
    case(
        "order and reinvocation",
        [
            hooks("Mutating", hook("label-b"), name="-b"),
            hooks("Mutating", hook("count", reinvocationPolicy="IfNeeded"), hook("label-a"), name="-a"),
        ],
        _CREATE,
    ),
    case("first refusal", [hooks("Validating", hook("allow"), hook("deny"), hook("deny-message"))], _CREATE),
    case(
        "what is asked",
        [hooks("Validating", hook("echo", rules=_ALL_RULES))],
        _CREATE,
        post(MAPS, config_map(), dryRun="All", fieldManager="me"),
        post(DEPLOYMENTS, deployment()),
        post(MAPS, config_map("", generateName="gen-")),
    ),
    case(
        "what is asked of what exists",
        [
            config_map(),
            deployment(),
            hooks("Validating", hook("echo", rules=_ALL_RULES)),
        ],
        put(f"{MAPS}/one", config_map()),
        patch(f"{MAPS}/one", {"data": {"a": "b"}}),
        delete(f"{MAPS}/one"),
        delete(f"{MAPS}"),
        patch(f"{DEPLOYMENTS}/web/scale", {"spec": {"replicas": 3}}),
        patch(f"{DEPLOYMENTS}/web/status", {"status": {"replicas": 3}}),
    ),
    case(
        "object selector",
        [hooks("Validating", hook("deny", objectSelector={"matchLabels": {"checked": "yes"}}))],
        _CREATE,
        post(MAPS, config_map("two", labels={"checked": "yes"})),
        patch(f"{MAPS}/one", {"metadata": {"labels": {"checked": "yes"}}}),
    ),
    case(
        "side effects",
        [hooks("Validating", hook("allow", sideEffects="NoneOnDryRun"))],
        post(MAPS, config_map(), dryRun="All"),
        get(f"{MAPS}/one"),
    ),
    case(
        "match conditions",
        [
            hooks(
                "Validating",
                hook(
                    "deny",
                    matchConditions=[
                        {"name": "created", "expression": "request.operation == 'CREATE'"},
                        {"name": "two", "expression": "object.metadata.name.startsWith('two')"},
                    ],
                ),
            )
        ],
        _CREATE,
        post(MAPS, config_map("two")),
        delete(f"{MAPS}/one"),
    ),
    case(
        "match conditions that fail",
        [
            hooks(
                "Validating", hook("deny", matchConditions=[{"name": "x", "expression": "object.data.nothing == 'x'"}])
            )
        ],
        _CREATE,
    ),
    case(
        "failing match conditions that are ignored",
        [
            hooks(
                "Validating",
                hook(
                    "deny",
                    failurePolicy="Ignore",
                    matchConditions=[{"name": "x", "expression": "object.data.no == 'x'"}],
                ),
            )
        ],
        _CREATE,
    ),
    case(
        "configurations",
        [],
        post(f"{REGISTERED}/validatingwebhookconfigurations", hooks("Validating", hook("allow", rules=_ALL_RULES))),
        get(f"{REGISTERED}/validatingwebhookconfigurations/{{ns}}"),
        delete(f"{REGISTERED}/validatingwebhookconfigurations/{{ns}}"),
        post(f"{REGISTERED}/mutatingwebhookconfigurations", hooks("Mutating", hook("allow"))),
        delete(f"{REGISTERED}/mutatingwebhookconfigurations/{{ns}}"),
        post(f"{REGISTERED}/validatingwebhookconfigurations", hooks("Validating", {"name": "short"})),
        post(
            f"{REGISTERED}/mutatingwebhookconfigurations",
            hooks(
                "Mutating",
                hook("a", clientConfig={"url": "http://user@host/path?q=1#f"}, timeoutSeconds=31, sideEffects="Some"),
                hook("a", clientConfig={}, rules=[{"operations": ["*", "CREATE"], "apiGroups": ["*", "a"]}]),
                hook("b", clientConfig={"service": {"name": "", "namespace": "x", "path": "x//y", "port": 70000}}),
                hook("c", admissionReviewVersions=["v2", "v2"], reinvocationPolicy="Often", failurePolicy="Never"),
                hook(
                    "d",
                    rules=[
                        {
                            "operations": ["READ"],
                            "apiGroups": [""],
                            "apiVersions": [""],
                            "resources": ["*", "pods", ""],
                        },
                        {
                            "operations": ["*"],
                            "apiGroups": [""],
                            "apiVersions": ["*"],
                            "resources": ["pods/*", "pods/x"],
                        },
                        {"operations": ["*"], "apiGroups": [""], "apiVersions": ["*"], "resources": ["*/*", "pods"]},
                        {
                            "operations": ["*"],
                            "apiGroups": [""],
                            "apiVersions": ["*"],
                            "resources": ["p"],
                            "scope": "X",
                        },
                    ],
                ),
                hook("e", matchConditions=[{"name": "", "expression": ""}, {"name": "-", "expression": "'text'"}]),
            ),
        ),
    ),
]

_MANY = "[1,2,3,4,5,6,7,8,9]"
_EXPENSIVE = "".join(f"{_MANY}.all({one}, " for one in "abcdefg") + "a > 0" + ")" * 7
_SMALL = "object.metadata.name.size() < 4"

POLICIES: list[Json] = [
    case(
        "a policy",
        validating(validations(_SMALL)),
        _CREATE,
        post(MAPS, config_map("longer")),
        delete(f"{MAPS}/one"),
    ),
    case(
        "messages and reasons",
        validating(
            {
                "validations": [
                    {"expression": "object.metadata.name != 'a'", "message": "not a", "reason": "Forbidden"},
                    {"expression": "object.metadata.name != 'b'", "reason": "RequestEntityTooLarge"},
                    {
                        "expression": "object.metadata.name != 'c'",
                        "messageExpression": "'name is ' + object.metadata.name",
                        "message": "not used",
                    },
                    {"expression": "object.metadata.name != 'd'", "messageExpression": "''", "message": "used"},
                    {"expression": "object.metadata.name != 'e'", "messageExpression": "string(object.data.no)"},
                ]
            }
        ),
        *(post(MAPS, config_map(one)) for one in ("a", "b", "c", "d", "e", "f")),
    ),
    case("several failures", validating(validations("false", "1 == 2", "true")), _CREATE),
    case("warnings", validating(validations("false"), actions=["Warn"]), _CREATE),
    case("audit", validating(validations("false"), actions=["Audit"]), _CREATE),
    case(
        "variables",
        validating(
            validations(
                "variables.long < 4",
                variables=[
                    {"name": "name", "expression": "object.metadata.name"},
                    {"name": "long", "expression": "variables.name.size()"},
                ],
            )
        ),
        _CREATE,
        post(MAPS, config_map("longer")),
    ),
    case("an error", validating(validations("object.data.nothing == 'x'")), _CREATE),
    case(
        "an error that is ignored",
        validating(validations("object.data.nothing == 'x'", failurePolicy="Ignore")),
        _CREATE,
    ),
    case(
        "an error in a variable",
        validating(validations("variables.x == 'x'", variables=[{"name": "x", "expression": "object.data.nothing"}])),
        _CREATE,
    ),
    case(
        "request and namespace",
        validating(
            validations(
                "request.operation == 'CREATE' && request.resource.resource == 'configmaps'",
                "request.kind.kind == 'ConfigMap' && request.kind.version == 'v1' && request.kind.group == ''",
                "request.userInfo.groups.exists(g, g == 'system:authenticated')",
                "namespaceObject.metadata.name == request.namespace",
                "namespaceObject.metadata.labels['kubernetes.io/metadata.name'] == request.namespace",
                "request.dryRun == false",
                "!has(request.options.nothing)",
                "oldObject == null",
                "request.name == object.metadata.name",
                "!has(request.subResource) || request.subResource == ''",
            )
        ),
        _CREATE,
        post(MAPS, config_map("dry"), dryRun="All"),
    ),
    case(
        "authorizer",
        validating(
            validations(
                "authorizer.group('').resource('pods').namespace(request.namespace).check('create').allowed()",
                "authorizer.requestResource.check('create').allowed()",
                "authorizer.path('/healthz').check('get').allowed()",
            )
        ),
        _CREATE,
    ),
    case(
        "match conditions of a policy",
        validating(
            validations("false", matchConditions=[{"name": "two", "expression": "object.metadata.name == 'two'"}])
        ),
        _CREATE,
        post(MAPS, config_map("two")),
    ),
    case(
        "failing match conditions of a policy",
        validating(validations("true", matchConditions=[{"name": "two", "expression": "object.data.no == 'two'"}])),
        _CREATE,
    ),
    case(
        "parameters",
        [
            config_map("limits"),
            *validating(
                validations(
                    "params.data.key == 'value' && object.metadata.name != params.metadata.name",
                    "object.metadata.name.size() < 5",
                    paramKind={"apiVersion": "v1", "kind": "ConfigMap"},
                ),
                binding={"paramRef": {"name": "limits", "namespace": "{ns}", "parameterNotFoundAction": "Deny"}},
            ),
        ],
        _CREATE,
        post(MAPS, config_map("longer")),
        patch(f"{MAPS}/limits", {"data": {"key": "other"}}),
    ),
    case(
        "no parameters, deny",
        validating(
            validations("true", paramKind={"apiVersion": "v1", "kind": "ConfigMap"}),
            binding={"paramRef": {"name": "none", "namespace": "{ns}", "parameterNotFoundAction": "Deny"}},
        ),
        _CREATE,
    ),
    case(
        "no parameters, allow",
        validating(
            validations("false", paramKind={"apiVersion": "v1", "kind": "ConfigMap"}),
            binding={"paramRef": {"name": "none", "namespace": "{ns}", "parameterNotFoundAction": "Allow"}},
        ),
        _CREATE,
    ),
    case(
        "parameters by selector",
        [
            config_map("few", labels={"is": "limit"}),
            config_map("more", labels={"is": "limit"}),
            *validating(
                validations(
                    "object.metadata.name.startsWith(params.metadata.name.substring(0, 1))",
                    paramKind={"apiVersion": "v1", "kind": "ConfigMap"},
                ),
                binding={"paramRef": {"selector": {"matchLabels": {"is": "limit"}}, "parameterNotFoundAction": "Deny"}},
            ),
        ],
        _CREATE,
    ),
    case(
        "a kind of parameters that does not exist",
        validating(
            validations("true", paramKind={"apiVersion": "example.com/v1", "kind": "Nothing"}),
            binding={"paramRef": {"name": "none", "parameterNotFoundAction": "Deny"}},
        ),
        _CREATE,
    ),
    case(
        "too expensive",
        validating(validations(_EXPENSIVE)),
        _CREATE,
    ),
    case(
        "an applied configuration",
        mutating(
            {
                "mutations": [
                    {
                        "patchType": "ApplyConfiguration",
                        "applyConfiguration": {
                            "expression": "Object{metadata: Object.metadata{labels: {'added': 'yes'}}}"
                        },
                    }
                ]
            }
        ),
        _CREATE,
        put(f"{MAPS}/one", config_map()),
    ),
    case(
        "a JSON patch",
        mutating(
            {
                "mutations": [
                    {
                        "patchType": "JSONPatch",
                        "jsonPatch": {
                            "expression": "[JSONPatch{op: 'add', path: '/data/' + jsonpatch.escapeKey('a/b'),"
                            " value: object.metadata.name}]"
                        },
                    },
                    {
                        "patchType": "JSONPatch",
                        "jsonPatch": {
                            "expression": "has(object.data.nothing) ? [] :"
                            " [JSONPatch{op: 'replace', path: '/data/key', value: 'patched'}]"
                        },
                    },
                ]
            }
        ),
        post(MAPS, {**config_map(), "data": {"key": "x"}}),
    ),
    case(
        "a mutation that fails",
        mutating(
            {
                "mutations": [
                    {
                        "patchType": "JSONPatch",
                        "jsonPatch": {"expression": "[JSONPatch{op: 'replace', path: '/nothing/here', value: 'x'}]"},
                    }
                ]
            }
        ),
        _CREATE,
    ),
    case(
        "a mutation of another type",
        mutating(
            {
                "mutations": [
                    {
                        "patchType": "ApplyConfiguration",
                        "applyConfiguration": {"expression": "Object{data: {'key': 'applied', 'more': 'x'}}"},
                    }
                ]
            }
        ),
        _CREATE,
    ),
    case(
        "a failing mutation that is ignored",
        mutating(
            {
                "failurePolicy": "Ignore",
                "mutations": [
                    {
                        "patchType": "JSONPatch",
                        "jsonPatch": {
                            "expression": "[JSONPatch{op: 'add', path: '/data/x', value: object.data.nothing}]"
                        },
                    }
                ],
            }
        ),
        _CREATE,
    ),
    case(
        "mutation and validation",
        [
            *mutating(
                {
                    "variables": [{"name": "who", "expression": "'policy'"}],
                    "mutations": [
                        {
                            "patchType": "ApplyConfiguration",
                            "applyConfiguration": {
                                "expression": "Object{metadata: Object.metadata{annotations: {'by': variables.who}}}"
                            },
                        }
                    ],
                },
            ),
            *validating(validations("object.metadata.annotations['by'] == 'policy'"), name="-v"),
        ],
        _CREATE,
    ),
    case(
        "policies",
        [],
        post(f"{REGISTERED}/validatingadmissionpolicies", policy("Validating", validations("true"))),
        delete(f"{REGISTERED}/validatingadmissionpolicies/{{ns}}"),
        post(
            f"{REGISTERED}/validatingadmissionpolicybindings", bound("Validating", "", {"validationActions": ["Deny"]})
        ),
        delete(f"{REGISTERED}/validatingadmissionpolicybindings/{{ns}}"),
        post(f"{REGISTERED}/validatingadmissionpolicies", policy("Validating", {})),
        post(f"{REGISTERED}/validatingadmissionpolicies", policy("Validating", validations("object.x +"))),
        post(f"{REGISTERED}/validatingadmissionpolicies", policy("Validating", validations("'text'"))),
        post(f"{REGISTERED}/validatingadmissionpolicies", policy("Validating", validations("nothing.x == 1"))),
        post(f"{REGISTERED}/validatingadmissionpolicies", policy("Validating", validations("params.x == 1"))),
        post(
            f"{REGISTERED}/validatingadmissionpolicies",
            policy(
                "Validating",
                {
                    "failurePolicy": "Sometimes",
                    "paramKind": {"apiVersion": "a/b/c", "kind": "-"},
                    "matchConstraints": {"matchPolicy": "Nearly"},
                    "variables": [{"name": "for", "expression": "1"}, {"name": "x", "expression": "y"}, {"name": "a"}],
                    "validations": [
                        {"expression": "true", "message": "a\nb", "reason": "Unknown"},
                        {"expression": "variables.x", "messageExpression": " "},
                        {"expression": " ", "messageExpression": "1"},
                    ],
                    "auditAnnotations": [
                        {"key": "k", "valueExpression": "'v'"},
                        {"key": "k", "valueExpression": "1"},
                        {"key": "-", "valueExpression": ""},
                    ],
                    "matchConditions": [{"name": "a", "expression": "1"}, {"name": "a", "expression": "true"}],
                },
            ),
        ),
        post(
            f"{REGISTERED}/validatingadmissionpolicybindings",
            bound(
                "Validating",
                "",
                {
                    "policyName": "A",
                    "validationActions": ["Deny", "Warn", "Warn", "Shout"],
                    "paramRef": {"name": "x", "selector": {}},
                },
            ),
        ),
        post(f"{REGISTERED}/mutatingadmissionpolicies", policy("Mutating", {"reinvocationPolicy": "Never"})),
        post(
            f"{REGISTERED}/mutatingadmissionpolicies",
            policy(
                "Mutating",
                {
                    "mutations": [
                        {"patchType": "JSONPatch", "applyConfiguration": {"expression": "Object{}"}},
                        {"patchType": "Merge"},
                        {"patchType": "ApplyConfiguration", "applyConfiguration": {"expression": "1"}},
                        {"patchType": "JSONPatch", "jsonPatch": {"expression": "[JSONPatch{op: 1}]"}},
                    ]
                },
            ),
        ),
        post(f"{REGISTERED}/mutatingadmissionpolicybindings", bound("Mutating", "", {"policyName": ""})),
    ),
]


_CONNECTED = [
    {"operations": ["CONNECT"], "apiGroups": [""], "apiVersions": ["v1"], "resources": ["*/*"]},
    {
        "operations": ["CREATE"],
        "apiGroups": ["authorization.k8s.io", "authentication.k8s.io"],
        "apiVersions": ["v1"],
        "resources": ["*"],
    },
    {"operations": ["CREATE"], "apiGroups": [""], "apiVersions": ["v1"], "resources": ["serviceaccounts/token"]},
]
_CORE, _MAY = "/api/v1/namespaces/{ns}", "authorization.k8s.io/v1"


def _connect(method: str, path: str, **query: Any) -> Json:
    return {"method": method, "path": path, "query": query}


def _review(kind: str, spec: Json, version: str = _MAY, namespaced: bool = False) -> Json:
    where = "/namespaces/{ns}" if namespaced else ""
    return post(f"/apis/{version}{where}/{kind.lower()}s", {"apiVersion": version, "kind": kind, "spec": spec})


_PODS_HERE = {"resourceAttributes": {"namespace": "{ns}", "verb": "get", "resource": "pods"}}
_REVIEWS = (
    _review("SelfSubjectAccessReview", _PODS_HERE),
    _review("SubjectAccessReview", {"user": "bob", **_PODS_HERE}),
    _review("SubjectAccessReview", _PODS_HERE),
    _review("LocalSubjectAccessReview", {"user": "bob", "groups": ["g"], **_PODS_HERE}, namespaced=True),
    _review("SelfSubjectRulesReview", {"namespace": "{ns}"}),
    post(
        "/apis/authentication.k8s.io/v1/selfsubjectreviews",
        {"apiVersion": "authentication.k8s.io/v1", "kind": "SelfSubjectReview"},
    ),
    _review("TokenReview", {"token": "x"}, "authentication.k8s.io/v1"),
    _review("TokenReview", {}, "authentication.k8s.io/v1"),
)
_AUTOSCALER = {
    "apiVersion": "autoscaling/v2",
    "kind": "HorizontalPodAutoscaler",
    "metadata": {"name": "one"},
    "spec": {
        "maxReplicas": 3,
        "scaleTargetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web"},
        "metrics": [
            {
                "type": "Resource",
                "resource": {"name": "cpu", "target": {"type": "Utilization", "averageUtilization": 70}},
            }
        ],
    },
}
_EVENT = {
    "apiVersion": "v1",
    "kind": "Event",
    "metadata": {"name": "one"},
    "involvedObject": {"kind": "Pod", "namespace": "{ns}", "name": "p"},
    "reason": "Because",
    "message": "told",
    "type": "Normal",
    "source": {"component": "me"},
    "firstTimestamp": "2026-01-01T00:00:00Z",
    "lastTimestamp": "2026-01-01T00:00:00Z",
    "count": 1,
}


def _rule(group: str, version: str, plural: str) -> Json:
    return {"operations": ["*"], "apiGroups": [group], "apiVersions": [version], "resources": [plural]}


OTHERS: list[Json] = [
    case(
        "unstored: connections",
        [hooks("Validating", hook("echo-object", rules=_CONNECTED))],
        _connect("POST", f"{_CORE}/pods/p/exec", command=["sh", "-c"], container="c", stdin="true", stdout="true"),
        _connect("POST", f"{_CORE}/pods/p/exec"),
        _connect("GET", f"{_CORE}/pods/p/attach", container="c", stderr="true", tty="true"),
        _connect("POST", f"{_CORE}/pods/p/portforward", ports="80"),
        _connect("POST", f"{_CORE}/pods/p/portforward"),
        _connect("GET", f"{_CORE}/pods/p/proxy/some/path", a="b"),
        _connect("GET", f"{_CORE}/pods/p/proxy"),
        _connect("PUT", f"{_CORE}/services/https:s:443/proxy/x"),
        _connect("GET", "/api/v1/nodes/n/proxy/x"),
    ),
    case("unstored: reviews", [hooks("Validating", hook("echo-object", rules=_CONNECTED))], *_REVIEWS),
    case("unstored: warnings", [hooks("Validating", hook("warn", rules=_CONNECTED))], _REVIEWS[1], _REVIEWS[4]),
    case("unstored: mutations", [hooks("Mutating", hook("as-alice", rules=_CONNECTED))], _REVIEWS[1], _REVIEWS[2]),
    case("unstored: nobody", [], *_REVIEWS[:5]),
    case(
        "equivalent: autoscalers",
        [hooks("Validating", hook("echo-object", rules=[_rule("autoscaling", "v1", "horizontalpodautoscalers")]))],
        post("/apis/autoscaling/v2/namespaces/{ns}/horizontalpodautoscalers", _AUTOSCALER),
    ),
    case(
        "equivalent: changed autoscalers",
        [hooks("Mutating", hook("label-a", rules=[_rule("autoscaling", "v1", "horizontalpodautoscalers")]))],
        post("/apis/autoscaling/v2/namespaces/{ns}/horizontalpodautoscalers", _AUTOSCALER),
        get("/apis/autoscaling/v1/namespaces/{ns}/horizontalpodautoscalers/one"),
    ),
    case(
        "equivalent: events",
        [hooks("Validating", hook("echo-object", rules=[_rule("events.k8s.io", "v1", "events")]))],
        post(f"{_CORE}/events", _EVENT),
    ),
    case(
        "equivalent: exact",
        [
            hooks(
                "Validating",
                hook("deny", rules=[_rule("events.k8s.io", "v1", "events")], matchPolicy="Exact"),
            )
        ],
        post(f"{_CORE}/events", _EVENT),
    ),
]
"""Requests that store nothing, about which admission is asked all the same; and such in other versions than a webhook's
rules."""


def named(number: int) -> str:
    """The namespace of a case."""
    return f"case-{number}"


def filled(value: Any, where: Mapping[str, str]) -> Any:
    """``{ns}``, ``{url}``, ``{ca}`` and ``{otherca}`` of a case are filled in."""
    if isinstance(value, dict):
        return {key: filled(one, where) for key, one in value.items()}
    if isinstance(value, list | tuple):
        return [filled(one, where) for one in value]
    if isinstance(value, str):
        for key, text in where.items():
            value = value.replace(f"{{{key}}}", text)
    return value


def confined(obj: Json, namespace: str) -> Json:
    """A webhook configuration or a binding that concerns that namespace alone."""
    selector = {"matchLabels": {"kubernetes.io/metadata.name": namespace}}
    if obj["kind"].endswith("WebhookConfiguration"):
        return {**obj, "webhooks": [{**one, "namespaceSelector": selector} for one in obj["webhooks"]]}
    if obj["kind"].endswith("PolicyBinding"):
        return {**obj, "spec": {**obj["spec"], "matchResources": {"namespaceSelector": selector}}}
    return obj


def plural(obj: Json) -> str:
    kind = obj["kind"].lower()
    return f"{kind[:-1]}ies" if kind.endswith("y") else f"{kind}s"


def collection(obj: Json, namespace: str) -> str:
    if obj["apiVersion"] == REGISTRATION:
        return f"{REGISTERED}/{plural(obj)}"
    root = "/api/v1" if obj["apiVersion"] == "v1" else f"/apis/{obj['apiVersion']}"
    return f"{root}/namespaces/{namespace}/{plural(obj)}"


def seen(status: int, body: Json, warnings: Sequence[str], where: Mapping[str, str]) -> Json:
    """What of an answer is compared."""
    found: Json = {"code": status}
    if warnings:
        found["warnings"] = [*warnings]
    if body.get("kind") == "Status":
        found |= {key: body[key] for key in ("reason", "message", "details") if key in body}
        found.get("details", {}).pop("uid", None)
    elif body.get("kind", "").endswith("List"):
        found["names"] = [
            one["metadata"]["name"] for one in body["items"] if one["metadata"]["name"] != "kube-root-ca.crt"
        ]
    else:
        metadata = {key: value for key, value in body["metadata"].items() if key not in _WHAT_GOES}
        found |= {"metadata": metadata, **{key: body[key] for key in ("data", "webhooks") if key in body}}
        if body["kind"].endswith("AccessReview"):
            found |= {"spec": body["spec"], "status": body["status"]}
        if body["kind"].endswith(("Policy", "PolicyBinding")):
            found["spec"] = body["spec"]
    text = json.dumps(found)
    for key, value in where.items():
        text = text.replace(json.dumps(value)[1:-1], f"{{{key}}}")
    text = re.sub(r"[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}", "UID", text)
    text = re.sub(r"gen-[a-z0-9]{5}", "gen-XXXXX", text)
    return json.loads(text)  # type: ignore[no-any-return]
