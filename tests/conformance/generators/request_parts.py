"""What the requests of a case are made of: kinds, objects, parameters, headers."""

from __future__ import annotations

import json
import random
from typing import Any
from urllib.parse import quote, urlencode

from kemu.emulated.objects import resources
from kemu.lab.conformance.requests.sequences import NAMESPACES
from tests.conformance.generators import metadata

Json = dict[str, Any]
Draw = random.Random


_APART = (
    "resourcequotas",
    "limitranges",  # admission waits for a controller that counts
    "validatingadmissionpolicies",
    "validatingadmissionpolicybindings",
    "validatingwebhookconfigurations",
    "mutatingwebhookconfigurations",  # would be asked later in the sequence
)
PLURALS = ("jobs", *(plural for plural in metadata.OBJECTS if plural not in _APART))
"""What is made."""
OFTEN = (
    *("pods",) * 6,
    *("configmaps",) * 3,
    *("secrets",) * 2,
    *("deployments",) * 3,
    *("nodes",) * 2,
    "jobs",
    "services",
    "replicasets",
    "events",
    "namespaces",
    "leases",
    "poddisruptionbudgets",
)
HOME, AWAY = NAMESPACES
NAMES = ("a", "b", "c")
LABELS: tuple[dict[str, str], ...] = ({}, {"app": "a"}, {"app": "a", "tier": "x"}, {"app": "b"}, {"tier": "y"})
FURNISHED = (
    "services",
    "events",
    "configmaps",
    "secrets",
    "leases",
    "endpointslices",
    "endpoints",
    "roles",
    "rolebindings",
)
"""Kinds of which a real cluster has some in other namespaces."""
FURNISHED_ALONE = ("namespaces", "clusterroles", "clusterrolebindings", "priorityclasses", "deviceclasses")
"""The same of those without a namespace."""


class Subject:
    """The kind that a case is about."""

    def __init__(self, plural: str) -> None:
        row = resources.BY_PLURAL[plural]
        self.plural, self.kind, self.version = plural, row.kind, row.api_version
        self.namespaced, self.has_status = row.namespaced, row.has_status
        self.root = f"/apis/{self.version}" if "/" in self.version else f"/api/{self.version}"

    def collection(self, namespace: str = HOME) -> str:
        where = f"/namespaces/{namespace}" if self.namespaced and namespace else ""
        return f"{self.root}{where}/{self.plural}"

    def one(self, name: str, namespace: str = HOME) -> str:
        return f"{self.collection(namespace)}/{name}"

    def body(self, draw: Draw, name: str, namespace: str = HOME) -> Json:
        body = metadata.plain(self.plural)
        about = body["metadata"]
        about["name"] = name
        if self.namespaced:
            about["namespace"] = namespace
        if labels := draw.choice(LABELS):
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


def request(
    method: str,
    path: str,
    query: list[tuple[str, str]] | None = None,
    body: Any = None,
    content_type: str = "application/json",
    accept: str = "",
    acting: dict[str, str] | None = None,
    **more: Any,
) -> Json:
    """``acting``: headers that say as whom."""
    step: Json = {"method": method, "path": path, **more}
    if query:
        # Placeholders stay as they are.
        step["query"] = urlencode(query, quote_via=quote, safe="{}:,")
    headers = dict(acting or {})
    if body is not None:
        step["body"] = body if isinstance(body, str) else json.dumps(body, separators=(",", ":"))
        if content_type:
            headers["Content-Type"] = content_type
    if accept:
        headers["Accept"] = accept
    if headers:
        step["headers"] = headers
    return step


# What is drawn of a request -------------------------------------------------------------------------------------------

_TABLE = "application/json;as=Table;v=v1;g=meta.k8s.io"
_PARTIAL = "application/json;as=PartialObjectMetadata;v=v1;g=meta.k8s.io"
_PARTIALS = "application/json;as=PartialObjectMetadataList;v=v1;g=meta.k8s.io"
PROTOBUF = "application/vnd.kubernetes.protobuf"
ACCEPTS = (
    "*/*",
    "application/*",
    "application/json",
    "application/yaml",
    PROTOBUF,
    "text/html",
    "application/cbor",
    "application/json;q=0.1,application/yaml;q=0.9",
    "text/*",
    "image/png,*/*;q=0.1",
    "application/json;pretty=1",
    _TABLE,
    _TABLE,
    f"{_TABLE},application/json",
    _TABLE.replace("v=v1", "v=v1beta1"),
    _TABLE.replace("v=v1", "v=v2"),
    _TABLE.replace("Table", "Chair"),
    _TABLE.replace("json", "yaml"),
    _TABLE.replace("application/json", PROTOBUF),
    _PARTIAL,
    _PARTIALS,
    _PARTIAL.replace("v=v1", "v=v1beta1"),
    _PARTIALS.replace("application/json", PROTOBUF),
    _PARTIALS.replace("json", "yaml"),
    "application/json;stream=watch",
    "application/json;as=Table",
    ";",
    "nonsense",
    "application/json;g=apps;v=v1;as=Table",
    f"{PROTOBUF};stream=watch",
    "application/cbor-seq,application/json",
)
_LABEL_SELECTORS = (
    "app=a",
    "app==a",
    "app!=a",
    "app in (a,b)",
    "app notin (a)",
    "app",
    "!app",
    "app,tier",
    "app=a,tier!=y",
    "tier in ()",
    "app in (a",
    "app=a,",
    ",app=a",
    "a b",
    "app>1",
    "app<b",
    "app=",
    "=a",
    "Bad_/x=1",
    "-a=1",
    "app=-a",
    "app=a=b",
    "!",
    "app in a",
    "app in (a,,b)",
    "x/app",
    "/app",
    f"app={'x' * 64}",
    "app gt 1",
    "(app)",
)
_FIELD_SELECTORS = (
    "metadata.name=a",
    "metadata.name!=a",
    "metadata.name==b",
    "metadata.namespace=here",
    "metadata.namespace!=here",
    "metadata.namespace=there",
    "metadata.name=a,metadata.namespace=here",
    "spec.nodeName=n",
    "spec.nodeName!=",
    "spec.nodeName=",
    "status.phase=Pending",
    "status.phase!=Pending,spec.nodeName=m",
    "spec.schedulerName=default-scheduler",
    "spec.restartPolicy=Always",
    "status.podIP=",
    "spec.hostNetwork=false",
    "spec.serviceAccountName=",
    "status.nominatedNodeName=",
    "type=Opaque",
    "type=Normal",
    "reason=r",
    "involvedObject.kind=Pod",
    "reportingComponent=",
    "involvedObject.name!=z",
    "spec.unschedulable=false",
    "spec.unschedulable=true",
    "status.successful=0",
    "status.successful!=0",
    "status.replicas=0",
    "spec.clusterIP=None",
    "spec.type=ClusterIP",
    "spec.signerName=x",
    "metadata.labels=a",
    "metadata.uid=x",
    "spec.x=1",
    "metadata.name",
    "metadata.name=a,",
    "=a",
    "metadata.name>a",
    "metadata.name=a\\,b",
    "metadata.name=a\\b",
    "metadata.name in (a)",
    "a=b=c",
    "!metadata.name",
    "spec.replicas=1",
    "source=c",
    "spec.driver=d.example.com",
    "spec.nodeName=n,spec.driver!=x",
    "status.phase=Bound",
    "name=a",
)
_OWN_FIELDS = {
    "pods": (
        "spec.nodeName=n",
        "spec.nodeName!=n",
        "status.phase=Pending",
        "spec.restartPolicy=Always",
        "spec.hostNetwork=false",
        "spec.schedulerName!=x",
        "status.podIP=",
        "spec.serviceAccountName=",
        "status.podIPs=",
        "status.nominatedNodeName=",
    ),
    "events": (
        "involvedObject.kind=Pod",
        "involvedObject.uid=",
        "involvedObject.name=z",
        "reason=r",
        "type=Normal",
        "source=c",
        "reportingComponent=c",
        "involvedObject.fieldPath=",
        "involvedObject.apiVersion=v1",
        "involvedObject.namespace=here",
        "involvedObject.resourceVersion=",
    ),
    "nodes": ("spec.unschedulable=false", "spec.unschedulable=true", "spec.unschedulable="),
    "secrets": ("type=Opaque", "type!=Opaque"),
    "namespaces": ("status.phase=Active", "name=here"),
    "jobs": ("status.successful=0", "status.successful!=0"),
    "services": ("spec.clusterIP=None", "spec.type=ClusterIP", "spec.type!=ClusterIP"),
    "replicasets": ("status.replicas=0",),
    "replicationcontrollers": ("status.replicas=0", "status.replicas!=0"),
}
NOT_NUMBERS = ("x", "-1", "1.5", "", "99999999999999999999", "0x1", "+1", " 1", "1e3", "0")
FLAGS = ("true", "false", "1", "0", "", "yes", "TRUE", "x")
VERSIONS = (
    "999999999",
    "0",
    "",
    "x",
    "-1",
    "1.5",
    "18446744073709551616",
    "00",
    "{version:0}",
    "{version:0}",
    "{version:0}",
)
MATCHES = ("Exact", "NotOlderThan", "", "exact", "Most")


def accept(draw: Draw) -> str:
    return draw.choice(ACCEPTS) if draw.random() < 0.35 else ""


def look(draw: Draw) -> list[tuple[str, str]]:
    """Parameters of how an answer looks."""
    found = []
    if draw.random() < 0.12:
        found.append(("pretty", draw.choice(FLAGS)))
    if draw.random() < 0.12:
        found.append(("includeObject", draw.choice(("None", "Object", "Metadata", "", "none", "All"))))
    return found


def version(draw: Draw, count: int) -> list[tuple[str, str]]:
    found = []
    if draw.random() < 0.3:
        version = draw.choice(VERSIONS).replace(":0", f":{draw.randrange(count)}")
        found.append(("resourceVersion", version))
    if draw.random() < 0.2:
        found.append(("resourceVersionMatch", draw.choice(MATCHES)))
    return found


def selectors(draw: Draw, subject: Subject) -> list[tuple[str, str]]:
    found = []
    if draw.random() < 0.3:
        found.append(("labelSelector", draw.choice(_LABEL_SELECTORS)))
    if draw.random() < 0.3:
        own = _OWN_FIELDS.get(subject.plural, ())
        found.append(("fieldSelector", draw.choice(own if own and draw.random() < 0.6 else _FIELD_SELECTORS)))
    return found


def pages(draw: Draw, count: int) -> list[tuple[str, str]]:
    found = []
    if draw.random() < 0.35:
        found.append(("limit", draw.choice(("1", "1", "1", "2", "500", *NOT_NUMBERS))))
    if draw.random() < 0.2:
        token = f"{{continue:{draw.randrange(count)}}}"
        found.append(("continue", draw.choice((token, token, token, f"x{token}", "x", "", "eyJ2IjoibWV0YSJ9", "%%"))))
    return found


def name(draw: Draw) -> str:
    return draw.choice((*NAMES, "a", "a", "b", "z", "z", "a.b", "BAD_", "a%20b", "-", "x" * 300))


def where(draw: Draw) -> str:
    return draw.choice((HOME,) * 8 + (AWAY, "nowhere"))


_ACTING: tuple[dict[str, str], ...] = (
    {"Impersonate-User": "viewer"},
    {"Impersonate-User": "viewer", "Impersonate-Group": "system:masters"},
    {"Impersonate-User": "x", "Impersonate-Uid": "1"},
    {"Impersonate-Group": "system:masters"},
    {"Impersonate-User": ""},
    {"Impersonate-User": "system:serviceaccount:here:a"},
    {"Impersonate-User": "system:anonymous"},
    {"Impersonate-User": "viewer", "Impersonate-Extra-Scopes": "a"},
    {"Impersonate-Uid": "1"},
)


def user(draw: Draw) -> Json:
    """Mostly the administrator."""
    if draw.random() < 0.02:
        return {"acting": dict(draw.choice(_ACTING)), "user": draw.choice(("admin", "admin", "viewer"))}
    return {"user": draw.choice(("viewer", "", "nobody"))} if draw.random() < 0.06 else {}


def own(query: list[tuple[str, str]]) -> list[tuple[str, str]]:
    """Of the whole cluster, only what a case itself may have made."""
    return [("labelSelector", "app=a"), *(one for one in query if one[0] not in ("labelSelector", "limit", "continue"))]


def everywhere(subject: Subject) -> bool:
    """Whether a list of all namespaces has only what the case has made."""
    return subject.namespaced and subject.plural not in FURNISHED


def write_query(draw: Draw) -> list[tuple[str, str]]:
    query = look(draw)
    if draw.random() < 0.12:
        query.append(("dryRun", draw.choice(("All", "All", "", "None", "true"))))
    if draw.random() < 0.12:
        query.append(("fieldManager", draw.choice(("m", "", "x" * 129, "a\u0007"))))
    if draw.random() < 0.12:
        query.append(("fieldValidation", draw.choice(("Strict", "Warn", "Ignore", "", "strict"))))
    if draw.random() < 0.06:
        query.append(("force", draw.choice(FLAGS)))
    if draw.random() < 0.06:
        query.append(("timeout", draw.choice(("1s", "x", "10", "0", "-1s", ""))))
    return query
