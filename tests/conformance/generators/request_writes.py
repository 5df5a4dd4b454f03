"""Writes to odd places, and what is asked of parts of objects."""

from __future__ import annotations

from typing import Any

from tests.conformance.generators import request_parts as parts
from tests.conformance.generators.request_parts import Draw, Json

# Writes to odd places -------------------------------------------------------------------------------------------------

_PATCHES = (
    "application/json-patch+json",
    "application/merge-patch+json",
    "application/strategic-merge-patch+json",
    "application/apply-patch+yaml",
    "application/json",
    "",
    "text/plain",
    "application/yaml",
    "application/apply-patch+cbor",
    "application/merge-patch+json; charset=utf-8",
    "application/apply-patch+json",
)
_TYPES = (
    "",
    "application/yaml",
    "text/plain",
    "application/json; charset=utf-8",
    parts.PROTOBUF,
    "application/cbor",
    "nonsense",
    "application/x-www-form-urlencoded",
)


def odd_write(draw: Draw, subject: parts.Subject, count: int) -> Json:
    name, namespace = draw.choice(parts.NAMES), parts.HOME
    body = subject.body(draw, name)
    kind = draw.randrange(12)
    more: Json = {"accept": parts.accept(draw), **parts.user(draw)}
    query = parts.write_query(draw)
    if kind == 0:
        return parts.request("POST", subject.one(name), query, body, **more)
    if kind == 1:
        return parts.request(draw.choice(("PUT", "PATCH")), subject.collection(), query, body, **more)
    if kind == 2:
        body["metadata"]["namespace"] = draw.choice((parts.AWAY, "", "nowhere", "BAD_"))
        method = draw.choice(("PUT", "POST"))
        return parts.request(
            method, subject.collection() if method == "POST" else subject.one(name), query, body, **more
        )
    if kind == 3:
        body["metadata"]["name"] = draw.choice(("z", "", "BAD_"))
        return parts.request("PUT", subject.one(name), query, body, **more)
    if kind == 4:
        patch: Any = draw.choice(
            (
                {"metadata": {"labels": {"app": "b"}}},
                [],
                {},
                "{",
                "",
                [{"op": "test", "path": "/a"}],
                {"metadata": {"name": "z"}},
                {"metadata": {"namespace": parts.AWAY}},
                "null",
            )
        )
        return parts.request("PATCH", subject.one(name), query, patch, draw.choice(_PATCHES), **more)
    if kind == 5:
        text = draw.choice(("", "{", "[]", "null", "1", '"x"', "{}", "a: b", " "))
        if subject.plural == "services" and text in ("null", "{}"):
            text = "{"  # an address would be drawn for it, and told in the refusal
        method = draw.choice(("PUT", "POST"))
        path = subject.collection() if method == "POST" else subject.one(name)
        return parts.request(method, path, query, text, draw.choice(("application/json", "application/yaml")), **more)
    if kind == 6:
        method = draw.choice(("PUT", "POST"))
        path = subject.collection() if method == "POST" else subject.one(name)
        return parts.request(method, path, query, body, draw.choice(_TYPES), **more)
    if kind == 7:
        body |= draw.choice(
            (
                {"kind": "Pod"},
                {"kind": ""},
                {"apiVersion": ""},
                {"apiVersion": "v9"},
                {"kind": "X"},
                {"apiVersion": "apps/v1"},
                {"apiVersion": "a/b/c"},
                {"kind": f"{subject.kind}List"},
            )
        )
        return parts.request("POST", subject.collection(), query, body, **more)
    if kind == 8 and subject.plural == "namespaces":
        # It may be about to end.
        inside = parts.Subject(draw.choice(("configmaps", "secrets", "pods")))
        return parts.request("POST", inside.collection(name), query, inside.body(draw, "a", name), **more)
    if kind == 8:
        body["metadata"]["name"] = draw.choice(("z", "y", "BAD_", ""))
        body["metadata"]["namespace"] = "nowhere"
        return parts.request("POST", subject.collection("nowhere"), query, body, **more)
    if kind == 9:
        body["metadata"] |= draw.choice(
            (
                {"uid": "x"},
                {"resourceVersion": "1"},
                {"resourceVersion": "x"},
                {"resourceVersion": f"{{version:{draw.randrange(count)}}}"},
                {"uid": f"{{uid:{draw.randrange(count)}}}"},
            )
        )
        method = draw.choice(("PUT", "PUT", "POST"))
        return parts.request(
            method, subject.collection() if method == "POST" else subject.one(name), query, body, **more
        )
    if kind == 10 and draw.random() < 0.3:
        method = draw.choice(("PUT", "POST", "PATCH", "DELETE"))
        path = subject.collection() if method == "POST" else subject.one(name)
        return parts.request(
            method,
            path,
            body="{}",
            spaces=3 * 1024 * 1024 + draw.randrange(100),
            content_type="application/merge-patch+json" if method == "PATCH" else "application/json",
        )
    return parts.request("PUT", subject.one(name, namespace), query, body, **more)


# Subresources ---------------------------------------------------------------------------------------------------------

_PARTS = (
    *("status",) * 4,
    *("scale",) * 3,
    "binding",
    "binding",
    "eviction",
    "eviction",
    "token",
    "log",
    "exec",
    "attach",
    "portforward",
    "ephemeralcontainers",
    "resize",
    "approval",
    "finalize",
    "x",
    "STATUS",
    "status/x",
    "proxy",
)
_OF_PODS = ("binding", "eviction", "log", "exec", "ephemeralcontainers", "resize", "status", "attach", "portforward")
_OF_SCALED = ("scale", "scale", "status")


def subresource(draw: Draw, subject: parts.Subject, count: int) -> Json:
    part = draw.choice(_PARTS)
    if part == "proxy" and subject.plural in ("nodes", "pods", "services"):
        part = "x"  # what answers to them has no addresses in kemu
    if subject.plural == "pods" and draw.random() < 0.6:
        part = draw.choice(_OF_PODS)
    if (
        subject.plural in ("deployments", "replicasets", "statefulsets", "replicationcontrollers")
        and draw.random() < 0.6
    ):
        part = draw.choice(_OF_SCALED)
    if subject.plural == "serviceaccounts" and draw.random() < 0.5:
        part = "token"
    if subject.plural == "namespaces" and draw.random() < 0.4:
        part = "finalize"
    name = draw.choice(("a", "a", "b", "z"))
    path = f"{subject.one(name)}/{part}"
    usual = {
        "binding": "POST",
        "eviction": "POST",
        "token": "POST",
        "log": "GET",
        "exec": "GET",
        "attach": "GET",
        "portforward": "GET",
        "finalize": "PUT",
    }.get(part) or draw.choice(("GET", "GET", "PUT", "PATCH"))
    method = (
        usual if draw.random() < 0.75 else draw.choice(("GET", "POST", "PUT", "PATCH", "DELETE", "HEAD", "OPTIONS"))
    )
    more: Json = {"accept": parts.accept(draw), **parts.user(draw)}
    query = parts.write_query(draw) if method in ("POST", "PUT", "PATCH") else parts.look(draw)
    if part in ("exec", "attach"):
        query += draw.choice(([], [("command", "a")], [("command", "a"), ("stdout", "1")], [("container", "x")]))
    if part == "log":
        query += draw.choice(
            (
                [],
                [("container", "c")],
                [("container", "x")],
                [("tailLines", "x")],
                [("tailLines", "-1")],
                [("limitBytes", "0")],
                [("sinceSeconds", "-1")],
                [("previous", "true")],
                [("stream", "x")],
                [("sinceTime", "x")],
                [("sinceSeconds", "1"), ("sinceTime", "2026-01-01T00:00:00Z")],
            )
        )
    if method not in ("POST", "PUT", "PATCH"):
        return parts.request(method, path, query, **more)
    if method == "PATCH":
        patch: Any = draw.choice(
            (
                {"metadata": {"labels": {"l": "v"}}},
                {"spec": {"replicas": 2}},
                {},
                {"status": {}},
                {"spec": {"replicas": -1}},
                {"spec": {"replicas": "x"}},
            )
        )
        types = _PATCHES if draw.random() < 0.3 else ("application/merge-patch+json",)
        return parts.request(method, path, query, patch, draw.choice(types), **more)
    return parts.request(method, path, query, _part_body(draw, subject, part, name), **more)


def _part_body(draw: Draw, subject: parts.Subject, part: str, name: str) -> Any:
    about: Json = {"name": draw.choice((name, name, name, name, "", "y")), "namespace": parts.HOME}
    if draw.random() < 0.1:
        about["namespace"] = parts.AWAY
    if part == "binding":
        target = draw.choice(
            ({"kind": "Node", "name": "n"}, {"name": "n"}, {"kind": "Pod", "name": "n"}, {}, {"name": ""})
        )
        return {
            "apiVersion": "v1",
            "kind": draw.choice(("Binding",) * 5 + ("Pod",)),
            "metadata": about,
            "target": target,
        }
    if part == "eviction":
        version = draw.choice(("policy/v1",) * 4 + ("policy/v1beta1", "v1"))
        found: Json = {"apiVersion": version, "kind": "Eviction", "metadata": about}
        if draw.random() < 0.4:
            found["deleteOptions"] = draw.choice(
                (
                    {"gracePeriodSeconds": 0},
                    {"dryRun": ["All"]},
                    {"dryRun": ["x"]},
                    {"preconditions": {"uid": "x"}},
                    {"propagationPolicy": "x"},
                    {},
                )
            )
        return found
    if part == "scale":
        spec = draw.choice(({"replicas": 2}, {"replicas": 0}, {"replicas": -1}, {}, {"replicas": "x"}, {"x": 1}))
        version = draw.choice(("autoscaling/v1",) * 5 + ("autoscaling/v2", "v1"))
        return {"apiVersion": version, "kind": "Scale", "metadata": about, "spec": spec}
    if part == "token":
        spec = draw.choice(
            (
                {},
                {"expirationSeconds": 600},
                {"expirationSeconds": 10},
                {"expirationSeconds": 2**33},
                {"audiences": ["x"]},
                {"boundObjectRef": {"kind": "Pod", "apiVersion": "v1", "name": "z"}},
                {"boundObjectRef": {"kind": "X", "name": "z"}},
            )
        )
        body: Json = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": spec}
        return body | ({"metadata": about} if draw.random() < 0.3 else {})
    body = subject.body(draw, name)
    body["metadata"] |= about if subject.namespaced else {"name": about["name"]}
    if subject.has_status and draw.random() < 0.6:
        body["status"] = draw.choice(({}, {"phase": "Running"}, {"replicas": 3}, {"conditions": []}))
    return body
