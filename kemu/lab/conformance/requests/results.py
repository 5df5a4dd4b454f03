"""What is compared of an answer: status, content type, some headers, the body as data.

Not compared, but for whether there is something: UIDs, versions, times, ages, tokens to continue a list or to be known
by, addresses that a server chooses. Not compared at all is what stands in the tables of this module, with the reason.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any

import yaml

from kemu.emulated.gateway.requests import envelopes
from kemu.emulated.objects import resources
from kemu.emulated.objects.conversion import convert
from kemu.emulated.objects.plain import Json
from kemu.errors import BadRequest
from kemu.lab.conformance import comparisons
from kemu.lab.conformance.requests.exchanges import Answer
from kemu.messages.k8s import meta_v1_pb2

Document = dict[str, Any]

HEADERS = (
    "allow", "cache-control", "location", "retry-after", "vary", "warning", "www-authenticate",
    "x-content-type-options",
)  # fmt: skip
"""What is compared. Others tell of a connection, a moment or a request (Date, Audit-Id), or name an object of the
cluster (the flow schema)."""
UNLIKE = {
    "/version": "kemu is another build, and says so",
    "/openapi/": "documents of the whole API: tests/gateway/openapi compares them",
    "/metrics": "how much a process has done",
    "/openid/": "keys of a cluster",
    "/.well-known/": "addresses of a cluster",
}
"""Beginnings of paths of which the body is not compared, if it is no refusal, and why."""
LISTS = ("/", "/apis", "/apis/", "/index.html")
"""The same of documents that name all that a server serves: tests/gateway/discovery compares them."""

_UID = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")
_TIME = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?(Z|[+-]\d\d:\d\d)")
_AGE = re.compile(r"\d+(ms|s|m)")
_TOO_LARGE = re.compile(r"(Too large resource version: |current: )\d+")
_OLD = re.compile(r"(too old resource version: )\d+ \(\d+\)")
_VERSIONS = re.compile(r"((?:ResourceVersion in (?:the )?(?:precondition|record|object meta)|in record):? ?\(?)\d+")
_PATCHED = re.compile(r'(?<=Invalid value: )"\{.*\}"(?=: )', re.DOTALL)
"""The whole of an object that a patch has made."""
_POD_CHANGES = "pod updates may not change fields other than"
_ALLOWED = "RBAC: allowed by "
"""Reasons for which something is allowed are not compared: kemu names none, and of several roles any may be found."""
_CHOSEN = ("resourceVersion", "continue", "token", "clusterIP", "serverAddress")


def of_answer(step: Mapping[str, Any], answer: Answer) -> Document:
    """``step``: what was asked."""
    found: Document = {"code": answer.status}
    stated = dict(answer.headers)
    if "content-type" in stated:
        found["type"] = stated["content-type"]
    headers = {
        name: sorted(_masked_text(value) for one, value in answer.headers if one == name)
        for name in HEADERS
        if name in stated
    }
    if headers:
        found["headers"] = headers
    body = _body(step, answer, stated.get("content-type", ""))
    if body is not None:
        found["body"] = body
    return found


def token_of(answer: Answer, name: str) -> str:
    """``resourceVersion``, ``continue`` or ``uid`` of an answer, for a later request; empty: it has none."""
    try:
        metadata = json.loads(answer.body)["metadata"]
        return str(metadata.get(name, ""))
    except (ValueError, KeyError, TypeError, AttributeError):
        return ""


def _body(step: Mapping[str, Any], answer: Answer, content_type: str) -> Json:
    if not answer.body:
        return None
    path = step["path"]
    if answer.status < 300 and (path in LISTS or path.startswith(tuple(UNLIKE))):
        return "there is one"
    media = content_type.partition(";")[0]
    if media == "application/json":
        if "watch" in content_type or _is_stream(answer.body):
            return {"events": _events(answer.body)}
        found = _masked(json.loads(answer.body))
        return {"indented": found} if answer.body.startswith(b"{\n") else found
    if media == "application/yaml":
        return {"yaml": _masked(yaml.safe_load(_quoted_times(answer.body.decode())))}
    if media == "application/vnd.kubernetes.protobuf":
        return {"protobuf": _unpacked(answer.body)}
    return _masked_text(answer.body.decode(errors="replace"))


def _quoted_times(text: str) -> str:
    """Times are texts, as in JSON."""
    return re.sub(rf'(?<=: )"?({_TIME.pattern})"?(?=\n)', r'"\1"', text)


def _is_stream(body: bytes) -> bool:
    return body.startswith(b'{"type":"')


def _events(body: bytes) -> list[Json]:
    """Of a watch. Bookmarks come when a server finds the time, but for the one after the initial events."""
    found = []
    for line in body.splitlines():
        event: Any = _masked(json.loads(line))
        if event.get("type") == "BOOKMARK" and not (event["object"].get("metadata") or {}).get("annotations"):
            continue
        found.append(event)
    return found


def _unpacked(body: bytes) -> Json:
    if not body.startswith(envelopes.MAGIC):
        return "frames of a watch"
    try:
        api_version, kind, message = envelopes.unpack(body)
    except BadRequest:
        return "broken"
    found: Document = {"apiVersion": api_version, "kind": kind}
    of = meta_v1_pb2.Status if kind == "Status" else _MESSAGES.get((api_version, kind))
    if of is not None:
        found["object"] = _without_empties(_masked(convert.to_json(of.FromString(message))))
    return found


def _without_empties(value: Json) -> Json:
    """Go writes fields without a value, too."""
    if isinstance(value, dict):
        found = {key: _without_empties(one) for key, one in value.items()}
        return {key: one for key, one in found.items() if not comparisons.is_empty(one)}
    return [_without_empties(one) for one in value] if isinstance(value, list) else value


_MESSAGES: dict[tuple[str, str], Any] = {(row.api_version, row.kind): row.message for row in resources.RESOURCES}


def _masked(value: Json, name: str = "") -> Json:
    if isinstance(value, dict):
        if name == "metadata" and value.get("managedFields"):
            value = {**value, "managedFields": _managers(value["managedFields"])}
        return {key: _masked(one, key) for key, one in value.items()}
    if isinstance(value, list):
        if name == "columnDefinitions":
            # Descriptions of columns are kemu's own words.
            value = [{key: text for key, text in one.items() if key != "description"} for one in value]
        if name in ("resourceRules", "nonResourceRules"):
            # Roles are found in the order of a Go map.
            value = sorted(value, key=comparisons.canonical)
        if name == "clusterIPs":
            return [_masked(one, "clusterIP") for one in value]
        if name == "cells":
            return ["an age" if isinstance(one, str) and _AGE.fullmatch(one) else _masked(one) for one in value]
        return [_masked(one) for one in value]
    if not isinstance(value, str):
        return value
    if name in _CHOSEN and value not in ("", "None"):
        return "is set"
    return _masked_text(value)


def _managers(entries: list[Document]) -> list[list[str]]:
    """Who has fields. Which is compared by the family ``apply``."""
    return [[one.get(key, "") for key in ("manager", "operation", "subresource")] for one in entries]


def _masked_text(text: str) -> str:
    text = _TIME.sub("a time", _UID.sub("a UID", text))
    if _POD_CHANGES in text:
        # What follows is how the two differ, in a form of Go's own.
        text = text.partition("\n")[0]
    if text.startswith(_ALLOWED):
        return ""
    text = _PATCHED.sub("an object", _VERSIONS.sub(r"\1", text))
    return _OLD.sub(r"\1", _TOO_LARGE.sub(r"\1", text))
