"""Sequences of HTTP requests, right and wrong: reads, watches, deletions, subresources, paths that nobody serves.

A case is about one kind, mostly: it makes some objects, then asks.
"""

from __future__ import annotations

import json
import random
from collections.abc import Callable
from typing import Any
from urllib.parse import quote, urlencode

from kemu.emulated.objects import resources
from kemu.lab.conformance.requests.sequences import NAMESPACES
from tests.conformance.generators import metadata

Json = dict[str, Any]
Draw = random.Random
FAMILIES = ("requests",)

_APART = (
    "resourcequotas", "limitranges",  # admission waits for a controller that counts
    "validatingadmissionpolicies", "validatingadmissionpolicybindings",
    "validatingwebhookconfigurations", "mutatingwebhookconfigurations",  # would be asked later in the sequence
)  # fmt: skip
PLURALS = ("jobs", *(plural for plural in metadata.OBJECTS if plural not in _APART))
"""What is made."""
_OFTEN = (
    *("pods",) * 6, *("configmaps",) * 3, *("secrets",) * 2, *("deployments",) * 3, *("nodes",) * 2, "jobs",
    "services", "replicasets", "events", "namespaces", "leases", "poddisruptionbudgets",
)  # fmt: skip
_HOME, _AWAY = NAMESPACES
_NAMES = ("a", "b", "c")
_LABELS: tuple[dict[str, str], ...] = ({}, {"app": "a"}, {"app": "a", "tier": "x"}, {"app": "b"}, {"tier": "y"})
_FURNISHED = ("services", "configmaps", "secrets", "leases", "endpointslices", "endpoints", "roles", "rolebindings")
"""Kinds of which a real cluster has some in other namespaces."""
_FURNISHED_ALONE = ("namespaces", "clusterroles", "clusterrolebindings", "priorityclasses", "deviceclasses")
"""The same of those without a namespace."""


class Subject:
    """The kind that a case is about."""

    def __init__(self, plural: str) -> None:
        row = resources.BY_PLURAL[plural]
        self.plural, self.kind, self.version = plural, row.kind, row.api_version
        self.namespaced, self.has_status = row.namespaced, row.has_status
        self.root = f"/apis/{self.version}" if "/" in self.version else f"/api/{self.version}"

    def collection(self, namespace: str = _HOME) -> str:
        where = f"/namespaces/{namespace}" if self.namespaced and namespace else ""
        return f"{self.root}{where}/{self.plural}"

    def one(self, name: str, namespace: str = _HOME) -> str:
        return f"{self.collection(namespace)}/{name}"

    def body(self, draw: Draw, name: str, namespace: str = _HOME) -> Json:
        body = metadata.plain(self.plural)
        about = body["metadata"]
        about["name"] = name
        if self.namespaced:
            about["namespace"] = namespace
        if labels := draw.choice(_LABELS):
            about["labels"] = dict(labels)
        if draw.random() < 0.12:
            about["finalizers"] = ["example.com/a"]
        if self.plural == "pods" and draw.random() < 0.3:
            body["spec"]["nodeName"] = draw.choice(("n", "m"))
        if self.plural == "events":
            body["involvedObject"]["namespace"] = namespace
        if self.plural == "jobs":
            # Without random labels.
            body["spec"] |= {"manualSelector": True, "selector": {"matchLabels": {"app": "a"}}}
            body["spec"]["template"]["metadata"] = {"labels": {"app": "a"}}
        return body


def case(family: str, seed: int, number: int) -> Json:
    draw = random.Random(f"{family} {seed} {number}")
    subject = Subject(draw.choice(_OFTEN if draw.random() < 0.6 else PLURALS))
    steps = [_creation(draw, subject, name) for name in _NAMES[: draw.randint(1, 3)]]
    if subject.namespaced and draw.random() < 0.3:
        steps.append(_creation(draw, subject, "a", _AWAY))
    for _ in range(draw.randint(6, 9)):
        about = subject if draw.random() < 0.85 else Subject(draw.choice(PLURALS))
        steps.append(draw.choices(_MAKERS, _WEIGHTS)[0](draw, about, len(steps)))
    return {"id": f"requests-s{seed}-{number:05}", "family": "requests", "steps": steps}


def _creation(draw: Draw, subject: Subject, name: str, namespace: str = _HOME) -> Json:
    return _request("POST", subject.collection(namespace), body=subject.body(draw, name, namespace))


def _request(
    method: str,
    path: str,
    query: list[tuple[str, str]] | None = None,
    body: Any = None,
    content_type: str = "application/json",
    accept: str = "",
    **more: Any,
) -> Json:
    step: Json = {"method": method, "path": path, **more}
    if query:
        # Placeholders stay as they are.
        step["query"] = urlencode(query, quote_via=quote, safe="{}:,")
    headers = {}
    if body is not None:
        step["body"] = body if isinstance(body, str) else json.dumps(body, separators=(",", ":"))
        if content_type:
            headers["Content-Type"] = content_type
    if accept:
        headers["Accept"] = accept
    if headers:
        step["headers"] = headers
    return step


# What is drawn of a request ---------------------------------------------------------------------------------------------

_TABLE = "application/json;as=Table;v=v1;g=meta.k8s.io"
_PARTIAL = "application/json;as=PartialObjectMetadata;v=v1;g=meta.k8s.io"
_PARTIALS = "application/json;as=PartialObjectMetadataList;v=v1;g=meta.k8s.io"
_PROTOBUF = "application/vnd.kubernetes.protobuf"
_ACCEPTS = (
    "*/*", "application/*", "application/json", "application/yaml", _PROTOBUF, "text/html", "application/cbor",
    "application/json;q=0.1,application/yaml;q=0.9", "text/*", "image/png,*/*;q=0.1", "application/json;pretty=1",
    _TABLE, _TABLE, f"{_TABLE},application/json", _TABLE.replace("v=v1", "v=v1beta1"), _TABLE.replace("v=v1", "v=v2"),
    _TABLE.replace("Table", "Chair"), _TABLE.replace("json", "yaml"), _TABLE.replace("application/json", _PROTOBUF),
    _PARTIAL, _PARTIALS, _PARTIAL.replace("v=v1", "v=v1beta1"), _PARTIALS.replace("application/json", _PROTOBUF),
    _PARTIALS.replace("json", "yaml"), "application/json;stream=watch", "application/json;as=Table", ";", "nonsense",
    "application/json;g=apps;v=v1;as=Table", f"{_PROTOBUF};stream=watch", "application/cbor-seq,application/json",
)  # fmt: skip
_LABEL_SELECTORS = (
    "app=a", "app==a", "app!=a", "app in (a,b)", "app notin (a)", "app", "!app", "app,tier", "app=a,tier!=y", "tier in ()",
    "app in (a", "app=a,", ",app=a", "a b", "app>1", "app<b", "app=", "=a", "Bad_/x=1", "-a=1", "app=-a", "app=a=b", "!",
    "app in a", "app in (a,,b)", "x/app", "/app", f"app={'x' * 64}", "app gt 1", "(app)",
)  # fmt: skip
_FIELD_SELECTORS = (
    "metadata.name=a", "metadata.name!=a", "metadata.name==b", "metadata.namespace=here", "metadata.namespace!=here",
    "metadata.namespace=there", "metadata.name=a,metadata.namespace=here", "spec.nodeName=n", "spec.nodeName!=",
    "spec.nodeName=", "status.phase=Pending", "status.phase!=Pending,spec.nodeName=m", "spec.schedulerName=default-scheduler",
    "spec.restartPolicy=Always", "status.podIP=", "spec.hostNetwork=false", "spec.serviceAccountName=",
    "status.nominatedNodeName=", "type=Opaque", "type=Normal", "reason=r", "involvedObject.kind=Pod", "reportingComponent=",
    "involvedObject.name!=z", "spec.unschedulable=false", "spec.unschedulable=true", "status.successful=0",
    "status.successful!=0", "status.replicas=0", "spec.clusterIP=None", "spec.type=ClusterIP", "spec.signerName=x",
    "metadata.labels=a", "metadata.uid=x", "spec.x=1", "metadata.name", "metadata.name=a,", "=a", "metadata.name>a",
    "metadata.name=a\\,b", "metadata.name=a\\b", "metadata.name in (a)", "a=b=c", "!metadata.name", "spec.replicas=1",
    "source=c", "spec.driver=d.example.com", "spec.nodeName=n,spec.driver!=x", "status.phase=Bound", "name=a",
)  # fmt: skip
_OWN_FIELDS = {
    "pods": (
        "spec.nodeName=n", "spec.nodeName!=n", "status.phase=Pending", "spec.restartPolicy=Always", "spec.hostNetwork=false",
        "spec.schedulerName!=x", "status.podIP=", "spec.serviceAccountName=", "status.podIPs=", "status.nominatedNodeName=",
    ),
    "events": (
        "involvedObject.kind=Pod", "involvedObject.uid=", "involvedObject.name=z", "reason=r", "type=Normal", "source=c",
        "reportingComponent=c", "involvedObject.fieldPath=", "involvedObject.apiVersion=v1", "involvedObject.namespace=here",
        "involvedObject.resourceVersion=",
    ),
    "nodes": ("spec.unschedulable=false", "spec.unschedulable=true", "spec.unschedulable="),
    "secrets": ("type=Opaque", "type!=Opaque"),
    "namespaces": ("status.phase=Active", "name=here"),
    "jobs": ("status.successful=0", "status.successful!=0"),
    "services": ("spec.clusterIP=None", "spec.type=ClusterIP", "spec.type!=ClusterIP"),
    "replicasets": ("status.replicas=0",),
    "replicationcontrollers": ("status.replicas=0", "status.replicas!=0"),
}  # fmt: skip
_NOT_NUMBERS = ("x", "-1", "1.5", "", "99999999999999999999", "0x1", "+1", " 1", "1e3", "0")
_FLAGS = ("true", "false", "1", "0", "", "yes", "TRUE", "x")
_VERSIONS = ("0", "", "x", "-1", "1.5", "18446744073709551616", "00", "{version:0}", "{version:0}", "{version:0}")
_MATCHES = ("Exact", "NotOlderThan", "", "exact", "Most")


def _accept(draw: Draw) -> str:
    return draw.choice(_ACCEPTS) if draw.random() < 0.35 else ""


def _look(draw: Draw) -> list[tuple[str, str]]:
    """Parameters of how an answer looks."""
    found = []
    if draw.random() < 0.12:
        found.append(("pretty", draw.choice(_FLAGS)))
    if draw.random() < 0.12:
        found.append(("includeObject", draw.choice(("None", "Object", "Metadata", "", "none", "All"))))
    return found


def _version(draw: Draw, count: int) -> list[tuple[str, str]]:
    found = []
    if draw.random() < 0.3:
        version = draw.choice(_VERSIONS).replace(":0", f":{draw.randrange(count)}")
        found.append(("resourceVersion", version))
    if draw.random() < 0.2:
        found.append(("resourceVersionMatch", draw.choice(_MATCHES)))
    return found


def _selectors(draw: Draw, subject: Subject) -> list[tuple[str, str]]:
    found = []
    if draw.random() < 0.3:
        found.append(("labelSelector", draw.choice(_LABEL_SELECTORS)))
    if draw.random() < 0.3:
        own = _OWN_FIELDS.get(subject.plural, ())
        found.append(("fieldSelector", draw.choice(own if own and draw.random() < 0.6 else _FIELD_SELECTORS)))
    return found


def _pages(draw: Draw, count: int) -> list[tuple[str, str]]:
    found = []
    if draw.random() < 0.35:
        found.append(("limit", draw.choice(("1", "1", "1", "2", "500", *_NOT_NUMBERS))))
    if draw.random() < 0.2:
        token = f"{{continue:{draw.randrange(count)}}}"
        found.append(("continue", draw.choice((token, token, token, f"{token}x", "x", "", "eyJ2IjoibWV0YSJ9", "%%"))))
    return found


def _name(draw: Draw) -> str:
    return draw.choice((*_NAMES, "a", "a", "b", "z", "z", "a.b", "BAD_", "a%20b", "-", "x" * 300))


def _where(draw: Draw) -> str:
    return draw.choice((_HOME,) * 8 + (_AWAY, "nowhere"))


def _user(draw: Draw) -> Json:
    """Mostly the administrator."""
    return {"user": draw.choice(("viewer", "", "nobody"))} if draw.random() < 0.06 else {}


def _own(query: list[tuple[str, str]]) -> list[tuple[str, str]]:
    """Of the whole cluster, only what a case itself may have made."""
    return [("labelSelector", "app=a"), *(one for one in query if one[0] not in ("labelSelector", "limit", "continue"))]


def _everywhere(subject: Subject) -> bool:
    """Whether a list of all namespaces has only what the case has made."""
    return subject.namespaced and subject.plural not in _FURNISHED


# Reads ------------------------------------------------------------------------------------------------------------------


def _get(draw: Draw, subject: Subject, count: int) -> Json:
    query = [*_look(draw), *(_version(draw, count) if draw.random() < 0.3 else ())]
    method = "HEAD" if draw.random() < 0.07 else "GET"
    path = subject.one(_name(draw), _where(draw))
    return _request(method, path, query, accept=_accept(draw), **_user(draw))


def _list(draw: Draw, subject: Subject, count: int) -> Json:
    query = [*_selectors(draw, subject), *_pages(draw, count), *_version(draw, count), *_look(draw)]
    if draw.random() < 0.06:
        query.append((draw.choice(("timeoutSeconds", "timeout", "allowWatchBookmarks", "sendInitialEvents", "x")),
                      draw.choice(("x", "", "1s", "10s", "1.5", "false", "0"))))  # fmt: skip
    path = subject.collection(_where(draw))
    if _everywhere(subject) and draw.random() < 0.2:
        path = subject.collection("")
    if subject.plural in _FURNISHED_ALONE:
        query = _own(query)
    method = "HEAD" if draw.random() < 0.03 else "GET"
    return _request(method, path, query, accept=_accept(draw), **_user(draw))


def _pages_of_list(draw: Draw, subject: Subject, count: int) -> Json:
    """The first page of several, which later steps go on from."""
    query = [("limit", "1"), *(_selectors(draw, subject) if draw.random() < 0.2 else ())]
    if subject.plural in _FURNISHED_ALONE:
        return _list(draw, subject, count)
    return _request("GET", subject.collection(), query)


def _watch(draw: Draw, subject: Subject, count: int) -> Json:
    query = [("watch", draw.choice(("1", "1", "true", "true", "x")))]
    if draw.random() < 0.9:
        query.append(("timeoutSeconds", "1"))
    else:
        query.append(("timeoutSeconds", draw.choice(("x", "1.5"))))
    query += _selectors(draw, subject)
    if draw.random() < 0.6:
        version = draw.choice(("0", "", "x", "-1", *("{version:0}",) * 4)).replace(":0", f":{draw.randrange(count)}")
        query.append(("resourceVersion", version))
    if draw.random() < 0.35:
        query.append(("sendInitialEvents", draw.choice(("true", "true", "true", *_FLAGS))))
        if draw.random() < 0.7:
            query.append(("resourceVersionMatch", draw.choice(("NotOlderThan", "NotOlderThan", *_MATCHES))))
    elif draw.random() < 0.1:
        query.append(("resourceVersionMatch", draw.choice(_MATCHES)))
    if draw.random() < 0.4:
        query.append(("allowWatchBookmarks", draw.choice(("true", *_FLAGS))))
    if draw.random() < 0.1:
        query.append((draw.choice(("limit", "continue")), draw.choice(("1", "x"))))
    query += _look(draw)
    path = subject.collection(_where(draw))
    if draw.random() < 0.15:
        path = subject.one(_name(draw))
    elif draw.random() < 0.15:
        path = path.replace(subject.root, f"{subject.root}/watch", 1)
    if subject.plural in _FURNISHED_ALONE:
        query = _own(query)
    return _request("GET", path, query, accept=_accept(draw))


# Deletions --------------------------------------------------------------------------------------------------------------

_POLICIES = ("Background", "Foreground", "Orphan", "background", "", "x")


def _delete_options(draw: Draw, count: int) -> Json:
    options: Json = {}
    if draw.random() < 0.85:
        options |= {"kind": "DeleteOptions", "apiVersion": draw.choice(("v1", "v1", "v1", "meta.k8s.io/v1", "apps/v1"))}
    elif draw.random() < 0.5:
        options |= draw.choice(
            ({"kind": "Pod", "apiVersion": "v1"}, {"kind": "DeleteOptions"}, {"apiVersion": "v1"},
             {"kind": "DeleteOptions", "apiVersion": "v9"}, {"kind": "X", "apiVersion": "a/b/c"})
        )  # fmt: skip
    if draw.random() < 0.45:
        options["propagationPolicy"] = draw.choice(_POLICIES[:3] if draw.random() < 0.7 else _POLICIES)
    if draw.random() < 0.15:
        options["orphanDependents"] = draw.choice((True, False, False, "x"))
    if draw.random() < 0.3:
        options["gracePeriodSeconds"] = draw.choice((0, 0, 5, 30, -1, 1.5, "x", 2**40))
    if draw.random() < 0.25:
        own = {"uid": "{uid:0}", "resourceVersion": "{version:0}"}
        options["preconditions"] = draw.choice((own, {"uid": own["uid"]}, {"resourceVersion": own["resourceVersion"]},
                                                {"uid": "x"}, {"resourceVersion": "1"}, {}, {"name": "x"}))  # fmt: skip
    if draw.random() < 0.15:
        options["dryRun"] = draw.choice((["All"], ["All"], [], ["None"], "All", ["All", "All"]))
    if draw.random() < 0.08:
        options[draw.choice(("unknown", "gracePeriod"))] = 1
    if draw.random() < 0.06:
        options["ignoreStoreReadErrorWithClusterBreakingPotential"] = draw.choice((True, False))
    return options


def _delete_query(draw: Draw) -> list[tuple[str, str]]:
    query = []
    if draw.random() < 0.3:
        query.append(("propagationPolicy", draw.choice(_POLICIES)))
    if draw.random() < 0.12:
        query.append(("orphanDependents", draw.choice(_FLAGS)))
    if draw.random() < 0.3:
        query.append(("gracePeriodSeconds", draw.choice(("0", "0", "5", *_NOT_NUMBERS))))
    if draw.random() < 0.2:
        query.append(("dryRun", draw.choice(("All", "All", "", "None", "true"))))
    if draw.random() < 0.05:
        query.append(draw.choice((("dryRun", "All"), ("preconditions", "x"), ("kind", "x"), ("timeout", "x"))))
    return query


def _delete(draw: Draw, subject: Subject, count: int) -> Json:
    path, query = subject.one(_name(draw), _where(draw)), _look(draw)
    more: Json = {"accept": _accept(draw), **_user(draw)}
    kind = draw.random()
    if kind < 0.25:
        return _request("DELETE", path, [*query, *_delete_query(draw)], **more)
    if kind < 0.35:
        # What of it counts, where both say something?
        query += _delete_query(draw)
    if kind < 0.45:
        body = draw.choice(("{", "[]", "null", "1", '"x"', "kind: DeleteOptions\napiVersion: v1\n", "{}", " "))
        content_type = draw.choice(("application/json", "application/yaml", "", "text/plain", _PROTOBUF))
        return _request("DELETE", path, query, body, content_type, **more)
    return _request("DELETE", path, query, _delete_options(draw, count), **more)


def _delete_collection(draw: Draw, subject: Subject, count: int) -> Json:
    query = [*_selectors(draw, subject), *_look(draw)]
    if draw.random() < 0.3:
        query += _pages(draw, count)
    if draw.random() < 0.15:
        query += _version(draw, count)
    path = subject.collection(_where(draw))
    if subject.namespaced and draw.random() < 0.08:
        path = subject.collection("")
    if subject.plural in (*_FURNISHED_ALONE, "apiservices"):
        query = _own(query)
    more: Json = {"accept": _accept(draw), **_user(draw)}
    if draw.random() < 0.4:
        return _request("DELETE", path, [*query, *_delete_query(draw)], **more)
    return _request("DELETE", path, query, _delete_options(draw, count), **more)


# Writes to odd places ---------------------------------------------------------------------------------------------------

_PATCHES = (
    "application/json-patch+json", "application/merge-patch+json", "application/strategic-merge-patch+json",
    "application/apply-patch+yaml", "application/json", "", "text/plain", "application/yaml", "application/apply-patch+cbor",
    "application/merge-patch+json; charset=utf-8", "application/apply-patch+json",
)  # fmt: skip
_TYPES = (
    "", "application/yaml", "text/plain", "application/json; charset=utf-8", _PROTOBUF, "application/cbor", "nonsense",
    "application/x-www-form-urlencoded",
)  # fmt: skip


def _odd_write(draw: Draw, subject: Subject, count: int) -> Json:
    name, namespace = draw.choice(_NAMES), _HOME
    body = subject.body(draw, name)
    kind = draw.randrange(12)
    more: Json = {"accept": _accept(draw), **_user(draw)}
    query = _write_query(draw)
    if kind == 0:
        return _request("POST", subject.one(name), query, body, **more)
    if kind == 1:
        return _request(draw.choice(("PUT", "PATCH")), subject.collection(), query, body, **more)
    if kind == 2:
        body["metadata"]["namespace"] = draw.choice((_AWAY, "", "nowhere", "BAD_"))
        method = draw.choice(("PUT", "POST"))
        return _request(method, subject.collection() if method == "POST" else subject.one(name), query, body, **more)
    if kind == 3:
        body["metadata"]["name"] = draw.choice(("z", "", "BAD_"))
        return _request("PUT", subject.one(name), query, body, **more)
    if kind == 4:
        patch: Any = draw.choice(({"metadata": {"labels": {"app": "b"}}}, [], {}, "{", "", [{"op": "test", "path": "/a"}],
                                  {"metadata": {"name": "z"}}, {"metadata": {"namespace": _AWAY}}, "null"))  # fmt: skip
        return _request("PATCH", subject.one(name), query, patch, draw.choice(_PATCHES), **more)
    if kind == 5:
        text = draw.choice(("", "{", "[]", "null", "1", '"x"', "{}", "a: b", " "))
        method = draw.choice(("PUT", "POST"))
        path = subject.collection() if method == "POST" else subject.one(name)
        return _request(method, path, query, text, draw.choice(("application/json", "application/yaml")), **more)
    if kind == 6:
        method = draw.choice(("PUT", "POST"))
        path = subject.collection() if method == "POST" else subject.one(name)
        return _request(method, path, query, body, draw.choice(_TYPES), **more)
    if kind == 7:
        body |= draw.choice(({"kind": "Pod"}, {"kind": ""}, {"apiVersion": ""}, {"apiVersion": "v9"}, {"kind": "X"},
                             {"apiVersion": "apps/v1"}, {"apiVersion": "a/b/c"}, {"kind": f"{subject.kind}List"}))  # fmt: skip
        return _request("POST", subject.collection(), query, body, **more)
    if kind == 8:
        body["metadata"]["name"] = draw.choice(("z", "y", "BAD_", "")) 
        body["metadata"]["namespace"] = "nowhere"
        return _request("POST", subject.collection("nowhere"), query, body, **more)
    if kind == 9:
        body["metadata"] |= draw.choice(({"uid": "x"}, {"resourceVersion": "1"}, {"resourceVersion": "x"},
                                         {"resourceVersion": f"{{version:{draw.randrange(count)}}}"},
                                         {"uid": f"{{uid:{draw.randrange(count)}}}"}))  # fmt: skip
        method = draw.choice(("PUT", "PUT", "POST"))
        return _request(method, subject.collection() if method == "POST" else subject.one(name), query, body, **more)
    if kind == 10 and draw.random() < 0.3:
        method = draw.choice(("PUT", "POST", "PATCH", "DELETE"))
        path = subject.collection() if method == "POST" else subject.one(name)
        return _request(method, path, body="{}", spaces=3 * 1024 * 1024 + draw.randrange(100),
                        content_type="application/merge-patch+json" if method == "PATCH" else "application/json")  # fmt: skip
    return _request("PUT", subject.one(name, namespace), query, body, **more)


def _write_query(draw: Draw) -> list[tuple[str, str]]:
    query = _look(draw)
    if draw.random() < 0.12:
        query.append(("dryRun", draw.choice(("All", "All", "", "None", "true"))))
    if draw.random() < 0.12:
        query.append(("fieldManager", draw.choice(("m", "", "x" * 129, "a\u0007"))))
    if draw.random() < 0.12:
        query.append(("fieldValidation", draw.choice(("Strict", "Warn", "Ignore", "", "strict"))))
    if draw.random() < 0.06:
        query.append(("force", draw.choice(_FLAGS)))
    if draw.random() < 0.06:
        query.append(("timeout", draw.choice(("1s", "x", "10", "0", "-1s", ""))))
    return query


# Subresources -----------------------------------------------------------------------------------------------------------

_PARTS = (
    *("status",) * 4, *("scale",) * 3, "binding", "binding", "eviction", "eviction", "token", "log", "exec", "attach",
    "portforward", "ephemeralcontainers", "resize", "approval", "finalize", "x", "STATUS", "status/x", "proxy",
)  # fmt: skip
_OF_PODS = ("binding", "eviction", "log", "exec", "ephemeralcontainers", "resize", "status", "attach", "portforward")
_OF_SCALED = ("scale", "scale", "status")


def _subresource(draw: Draw, subject: Subject, count: int) -> Json:
    part = draw.choice(_PARTS)
    if part == "proxy" and subject.plural in ("nodes", "pods", "services"):
        part = "x"  # what answers to them has no addresses in kemu
    if subject.plural == "pods" and draw.random() < 0.6:
        part = draw.choice(_OF_PODS)
    if subject.plural in ("deployments", "replicasets", "statefulsets", "replicationcontrollers") and draw.random() < 0.6:
        part = draw.choice(_OF_SCALED)
    if subject.plural == "serviceaccounts" and draw.random() < 0.5:
        part = "token"
    if subject.plural == "namespaces" and draw.random() < 0.4:
        part = "finalize"
    name = draw.choice(("a", "a", "b", "z"))
    path = f"{subject.one(name)}/{part}"
    usual = {"binding": "POST", "eviction": "POST", "token": "POST", "log": "GET", "exec": "GET", "attach": "GET",
             "portforward": "GET", "finalize": "PUT"}.get(part) or draw.choice(("GET", "GET", "PUT", "PATCH"))  # fmt: skip
    method = usual if draw.random() < 0.75 else draw.choice(("GET", "POST", "PUT", "PATCH", "DELETE", "HEAD", "OPTIONS"))
    more: Json = {"accept": _accept(draw), **_user(draw)}
    query = _write_query(draw) if method in ("POST", "PUT", "PATCH") else _look(draw)
    if part in ("exec", "attach"):
        query += draw.choice(([], [("command", "a")], [("command", "a"), ("stdout", "1")], [("container", "x")]))
    if part == "log":
        query += draw.choice(([], [("container", "c")], [("container", "x")], [("tailLines", "x")], [("tailLines", "-1")],
                              [("limitBytes", "0")], [("sinceSeconds", "-1")], [("previous", "true")],
                              [("stream", "x")], [("sinceTime", "x")],
                              [("sinceSeconds", "1"), ("sinceTime", "2026-01-01T00:00:00Z")]))  # fmt: skip
    if method not in ("POST", "PUT", "PATCH"):
        return _request(method, path, query, **more)
    if method == "PATCH":
        patch: Any = draw.choice(({"metadata": {"labels": {"l": "v"}}}, {"spec": {"replicas": 2}}, {}, {"status": {}},
                                  {"spec": {"replicas": -1}}, {"spec": {"replicas": "x"}}))  # fmt: skip
        types = _PATCHES if draw.random() < 0.3 else ("application/merge-patch+json",)
        return _request(method, path, query, patch, draw.choice(types), **more)
    return _request(method, path, query, _part_body(draw, subject, part, name), **more)


def _part_body(draw: Draw, subject: Subject, part: str, name: str) -> Any:
    about: Json = {"name": draw.choice((name, name, name, name, "", "y")), "namespace": _HOME}
    if draw.random() < 0.1:
        about["namespace"] = _AWAY
    if part == "binding":
        target = draw.choice(({"kind": "Node", "name": "n"}, {"name": "n"}, {"kind": "Pod", "name": "n"}, {}, {"name": ""}))
        return {"apiVersion": "v1", "kind": draw.choice(("Binding",) * 5 + ("Pod",)), "metadata": about, "target": target}
    if part == "eviction":
        version = draw.choice(("policy/v1",) * 4 + ("policy/v1beta1", "v1"))
        found: Json = {"apiVersion": version, "kind": "Eviction", "metadata": about}
        if draw.random() < 0.4:
            found["deleteOptions"] = draw.choice(({"gracePeriodSeconds": 0}, {"dryRun": ["All"]}, {"dryRun": ["x"]},
                                                  {"preconditions": {"uid": "x"}}, {"propagationPolicy": "x"}, {}))  # fmt: skip
        return found
    if part == "scale":
        spec = draw.choice(({"replicas": 2}, {"replicas": 0}, {"replicas": -1}, {}, {"replicas": "x"}, {"x": 1}))
        version = draw.choice(("autoscaling/v1",) * 5 + ("autoscaling/v2", "v1"))
        return {"apiVersion": version, "kind": "Scale", "metadata": about, "spec": spec}
    if part == "token":
        spec = draw.choice(({}, {"expirationSeconds": 600}, {"expirationSeconds": 10}, {"expirationSeconds": 2**33},
                            {"audiences": ["x"]}, {"boundObjectRef": {"kind": "Pod", "apiVersion": "v1", "name": "z"}},
                            {"boundObjectRef": {"kind": "X", "name": "z"}}))  # fmt: skip
        body: Json = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": spec}
        return body | ({"metadata": about} if draw.random() < 0.3 else {})
    body = subject.body(draw, name)
    body["metadata"] |= about if subject.namespaced else {"name": about["name"]}
    if subject.has_status and draw.random() < 0.6:
        body["status"] = draw.choice(({}, {"phase": "Running"}, {"replicas": 3}, {"conditions": []}))
    return body


# Paths ------------------------------------------------------------------------------------------------------------------


def _wrong_method(draw: Draw, subject: Subject, count: int) -> Json:
    path = draw.choice((subject.collection(), subject.collection(""), subject.one("a"), subject.one("a"), subject.root,
                        f"{subject.root}/watch/{subject.plural}", f"{subject.one('a')}/status"))  # fmt: skip
    method = draw.choice(("POST", "PUT", "PATCH", "DELETE", "OPTIONS", "HEAD", "TRACE", "CONNECTED", "get"))
    if method in ("DELETE", "HEAD") and path in (subject.collection(), subject.collection("")):
        method = "OPTIONS"
    body = {} if method in ("POST", "PUT", "PATCH") else None
    content_type = "application/merge-patch+json" if method == "PATCH" else "application/json"
    return _request(method, path, [], body, content_type, accept=_accept(draw), **_user(draw))


def _unknown_path(draw: Draw, subject: Subject, count: int) -> Json:
    plural, root = subject.plural, subject.root
    version = root.rpartition("/")[0]
    path = draw.choice((
        f"{root}/namespaces/{_HOME}/{plural}x", f"{root}/{plural}x", f"{root}/{plural}x/a", f"{version}/v9/{plural}",
        f"{version}/v9", f"{version}/v9/namespaces/{_HOME}/{plural}", "/apis/x.example.com", "/apis/x.example.com/v1",
        f"/apis/x.example.com/v1/{plural}", f"/apis/x.example.com/v1/namespaces/{_HOME}/{plural}/a", "/api/v2", "/api/v1/x",
        "/x", "/", "/apis/apps/v1/pods", f"/apis/apps/v1/namespaces/{_HOME}/pods", f"/api/v1/namespaces/{_HOME}/deployments",
        f"{subject.one('a')}/x", f"{subject.one('a')}/status/x", f"{subject.one('a')}/x/y", f"{root}/namespaces/{_HOME}/",
        f"{subject.collection()}/", f"{subject.one('a')}/", f"{root}/{plural}/a", f"{root}/{subject.kind}",
        f"{root}/namespaces/{_HOME}/{subject.kind.lower()}", "/api/v1/namespaces/here/nodes", "/api/v1/nodes/x/y/z",
        "/apis/", "/api/", "/api/v1/", f"{root}/", "/apis/apps", "/apis/apps/", "/apis/batch/v1beta1/cronjobs",
        "/apis/extensions/v1beta1/ingresses", "/apis/policy/v1beta1/podsecuritypolicies", "/healthz/x", "/livez/x", "/logs",
        "/api/v1/watch", "/api/v1/watch/", "/api/v1/namespaces//pods", "/ui", "/swagger.json", "/robots.txt",
        f"/api/v1/watch/namespaces/{_HOME}", "/.well-known/x", "/index.html", "/apis/v1/pods",
    ))  # fmt: skip
    method = "GET" if draw.random() < 0.7 else draw.choice(("POST", "PUT", "DELETE", "PATCH", "OPTIONS", "HEAD"))
    if method == "DELETE" and path.endswith(f"{subject.collection()}/"):
        method = "GET"
    body = {} if method in ("POST", "PUT", "PATCH") else None
    query = [("watch", "1"), ("timeoutSeconds", "1")] if draw.random() < 0.08 and method == "GET" else []
    if "/watch" in path:
        query = [("timeoutSeconds", "1")]
    return _request(method, path, query, body, accept=_accept(draw), **_user(draw))


_DOCUMENTS = (
    "/api", "/apis", "/api/v1", "/apis/apps", "/apis/apps/v1", "/apis/batch", "/apis/batch/v1", "/apis/policy/v1",
    "/apis/autoscaling", "/apis/autoscaling/v2", "/apis/events.k8s.io/v1", "/apis/coordination.k8s.io/v1",
    "/apis/storage.k8s.io/v1", "/apis/networking.k8s.io/v1", "/apis/rbac.authorization.k8s.io/v1", "/version", "/version/",
    "/apis/scheduling.k8s.io/v1", "/apis/node.k8s.io/v1", "/apis/discovery.k8s.io/v1", "/apis/authentication.k8s.io/v1",
    "/apis/authorization.k8s.io/v1", "/apis/certificates.k8s.io/v1", "/healthz", "/healthz/ping", "/healthz/etcd", "/livez",
    "/apis/apiextensions.k8s.io/v1", "/apis/admissionregistration.k8s.io/v1", "/apis/resource.k8s.io/v1", "/livez/ping",
    "/apis/resource.k8s.io", "/readyz", "/readyz/ping", "/readyz/informer-sync", "/readyz/shutdown", "/openapi/v3",
    "/openapi/v3/api/v1", "/openapi/v3/apis/apps/v1", "/openapi/v3/apis/x/v1", "/openapi/v2", "/healthz/log",
    "/apis/flowcontrol.apiserver.k8s.io/v1", "/apis/apiregistration.k8s.io/v1", "/apis/events.k8s.io", "/apis/policy",
    "/openid/v1/jwks", "/.well-known/openid-configuration",
)  # fmt: skip
_DISCOVERIES = (
    "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList",
    "application/json;g=apidiscovery.k8s.io;v=v2beta1;as=APIGroupDiscoveryList",
    "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList,application/json",
    "application/json;g=apidiscovery.k8s.io;v=v9;as=APIGroupDiscoveryList",
)


def _discovery(draw: Draw, subject: Subject, count: int) -> Json:
    path = draw.choice((*_DOCUMENTS, subject.root, subject.root))
    method = "GET" if draw.random() < 0.85 else draw.choice(("POST", "PUT", "DELETE", "PATCH", "OPTIONS", "HEAD"))
    body = {} if method in ("POST", "PUT", "PATCH") else None
    accept = _accept(draw)
    if path in ("/api", "/apis") and draw.random() < 0.3:
        accept = draw.choice(_DISCOVERIES)
    query = [("pretty", draw.choice(_FLAGS))] if draw.random() < 0.1 else []
    if path.lstrip("/").startswith(("healthz", "livez", "readyz")) and draw.random() < 0.3:
        query.append(("exclude", draw.choice(("ping", "x"))))
    return _request(method, path, query, body, accept=accept, **_user(draw))


_REVIEWS = "/apis/authorization.k8s.io/v1"
_ATTRIBUTES: tuple[Json, ...] = (
    {"verb": "get", "resource": "pods", "namespace": _HOME}, {"verb": "*", "resource": "*"}, {"verb": "list"}, {},
    {"verb": "create", "group": "apps", "resource": "deployments", "subresource": "scale"},
    {"verb": "list", "resource": "pods", "fieldSelector": {"rawSelector": "spec.nodeName=n"}},
    {"verb": "list", "resource": "pods", "labelSelector": {"requirements": [{"key": "a", "operator": "In", "values": []}]}},
)


def _review(draw: Draw, subject: Subject, count: int) -> Json:
    spec: Json = {}
    if draw.random() < 0.75:
        spec["resourceAttributes"] = draw.choice(_ATTRIBUTES)
    if draw.random() < 0.35:
        spec["nonResourceAttributes"] = draw.choice(({"verb": "get", "path": "/healthz"}, {"verb": "post", "path": "/x"}, {}))
    kind = draw.randrange(6)
    where, name, version = _REVIEWS, "selfsubjectaccessreviews", "authorization.k8s.io/v1"
    review = "SelfSubjectAccessReview"
    if kind == 1:
        name, review = "subjectaccessreviews", "SubjectAccessReview"
        spec |= draw.choice(({"user": "viewer"}, {"user": "x", "groups": ["system:masters"]}, {}, {"groups": ["x"]}))
    if kind == 2:
        name, review = f"namespaces/{_HOME}/localsubjectaccessreviews", "LocalSubjectAccessReview"
        spec |= draw.choice(({"user": "viewer"}, {"user": "x", "groups": ["system:masters"]}, {}))
    if kind == 3:
        name, review = "selfsubjectrulesreviews", "SelfSubjectRulesReview"
        spec = draw.choice(({"namespace": _HOME}, {}, {"namespace": "x"}))
    if kind == 4:
        where, version = "/apis/authentication.k8s.io/v1", "authentication.k8s.io/v1"
        name, review, spec = "selfsubjectreviews", "SelfSubjectReview", {}
    if kind == 5:
        where, version = "/apis/authentication.k8s.io/v1", "authentication.k8s.io/v1"
        name, review = "tokenreviews", "TokenReview"
        spec = draw.choice(({"token": "viewer-token"}, {"token": "x"}, {}, {"token": "viewer-token", "audiences": ["x"]}))
    body: Json = {"apiVersion": version, "kind": review, "spec": spec}
    if kind == 4:
        del body["spec"]
    if draw.random() < 0.1:
        body |= draw.choice(({"kind": "Pod"}, {"metadata": {"name": "a"}}, {"metadata": {"namespace": _AWAY}}, {"x": 1},
                             {"apiVersion": ""}, {"kind": ""}))  # fmt: skip
    method = "POST" if draw.random() < 0.88 else draw.choice(("GET", "PUT", "DELETE", "PATCH"))
    user = {"user": draw.choice(("viewer", ""))} if draw.random() < 0.2 else {}
    query = _write_query(draw)
    return _request(method, f"{where}/{name}", query, body if method != "GET" else None, accept=_accept(draw), **user)


_MAKERS: tuple[Callable[[Draw, Subject, int], Json], ...] = (
    _get, _list, _pages_of_list, _watch, _delete, _delete_collection, _odd_write, _subresource, _wrong_method,
    _unknown_path, _discovery, _review,
)  # fmt: skip
_WEIGHTS = (12, 20, 4, 7, 14, 5, 14, 14, 5, 7, 6, 6)
