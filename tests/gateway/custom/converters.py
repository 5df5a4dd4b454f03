"""Conversion webhooks, well-behaved or not, as their paths say, for the kind of :mod:`.conversions`.

Its versions say the same in other fields: ``spec.address`` of v1, ``a:80``, is ``spec.host`` and ``spec.port`` of v2;
``spec.replicas`` is ``spec.count``.
"""

from __future__ import annotations

import base64
import copy
import json
from collections.abc import Callable
from typing import Any

Json = dict[str, Any]
GROUP = "convert.example.com"


def converted(obj: Json, wanted: str) -> Json:
    """An object in another version."""
    found = copy.deepcopy(obj)
    found["apiVersion"] = wanted
    spec = found.get("spec")
    if isinstance(spec, dict):
        if wanted.endswith("/v1"):
            if "host" in spec or "port" in spec:
                spec["address"] = f"{spec.pop('host', '')}:{spec.pop('port', 0)}"
            if "count" in spec:
                spec["replicas"] = spec.pop("count")
        else:
            if "address" in spec:
                spec["host"], _, port = spec.pop("address").partition(":")
                spec["port"] = int(port or 0)
            if "replicas" in spec:
                spec["count"] = spec.pop("replicas")
    return found


def _all(review: Json, change: Callable[[Json, str], Any] = converted) -> list[Any]:
    asked = review["request"]
    return [change(one, asked["desiredAPIVersion"]) for one in asked["objects"]]


def _answer(review: Json, objects: list[Any], **more: Any) -> Json:
    response = {"uid": review["request"]["uid"], "convertedObjects": objects, "result": {"status": "Success"}, **more}
    return {"apiVersion": review["apiVersion"], "kind": review["kind"], "response": response}


def _changed(change: Callable[[Json], object]) -> Callable[[Json], Json]:
    """Converts, and then spoils."""

    def respond(review: Json) -> Json:
        objects = _all(review)
        for one in objects:
            change(one)
        return _answer(review, objects)

    return respond


def _metadata(**fields: Any) -> Callable[[Json], Json]:
    return _changed(lambda one: one["metadata"].update(fields))


def _without(*names: str) -> Callable[[Json], Json]:
    def respond(review: Json) -> Json:
        answer = _answer(review, _all(review))
        place = answer
        for name in names[:-1]:
            place = place[name]
        place.pop(names[-1], None)
        return answer

    return respond


def _result(result: Any) -> Callable[[Json], Json]:
    return lambda review: _answer(review, [], result=result)


RESPONSES: dict[str, Callable[[Json], Json]] = {
    "convert": lambda review: _answer(review, _all(review)),
    "metadata": _metadata(
        labels={"made-by": "converter"},
        annotations={"a": "b"},
        finalizers=["example.com/spoilt"],
        generation=99,
        resourceVersion="1",
        ownerReferences=[{"apiVersion": "v1", "kind": "Pod", "name": "x", "uid": "x"}],
    ),
    "no-labels": _changed(lambda one: one["metadata"].pop("labels", None)),
    "name": _metadata(name="other"),
    "namespace": _metadata(namespace="other"),
    "uid": _metadata(uid="other"),
    "kind": _changed(lambda one: one.update(kind="Other")),
    "version": _changed(lambda one: one.update(apiVersion=f"{GROUP}/v9")),
    "same-version": lambda review: _answer(review, copy.deepcopy(review["request"]["objects"])),
    "bad-label": _metadata(labels={"a": "not a label"}),
    "bad-label-name": _metadata(labels={"not a name": "x"}),
    "label-of-number": _metadata(labels={"a": 1}),
    "labels-of-text": _metadata(labels="none"),
    "bad-annotation": _metadata(annotations={"not a name": "x"}),
    "no-metadata": _changed(lambda one: one.pop("metadata")),
    "metadata-of-text": _changed(lambda one: one.update(metadata="none")),
    "no-kind": _changed(lambda one: one.pop("kind")),
    "no-object": lambda review: _answer(review, [1 for _ in review["request"]["objects"]]),
    "null-object": lambda review: _answer(review, [None for _ in review["request"]["objects"]]),
    "fewer": lambda review: _answer(review, _all(review)[1:]),
    "more": lambda review: _answer(review, _all(review) * 2),
    "refuse": _result({"status": "Failure", "message": "no such luck"}),
    "refuse-silently": _result({"status": "Failure"}),
    "no-result": _without("response", "result"),
    "no-uid": _without("response", "uid"),
    "other-uid": lambda review: _answer(review, _all(review), uid="other"),
    "no-response": _without("response"),
    "no-version": _without("apiVersion"),
    "other-kind": lambda review: _answer(review, _all(review)) | {"kind": "AdmissionReview"},
    "old": lambda review: _answer(review, _all(review)) | {"apiVersion": "apiextensions.k8s.io/v1beta1"},
    "wrong-type": lambda review: _answer(review, _all(review), convertedObjects="none"),
    "wrong-result": _result("Success"),
    "unknown-field": _changed(lambda one: one["spec"].update(unknown=1)),
    "invalid": _changed(lambda one: one["spec"].update(count="many", replicas="many")),
}
"""By path, what a webhook answers."""


def _echo(asked: Json) -> Json:
    """Refuses, and says what it has been asked."""
    keys = ("kind", "resource", "requestKind", "requestResource", "subResource", "operation")
    seen: Json = {key: asked[key] for key in keys if key in asked}
    for key in ("object", "oldObject"):
        obj = asked[key] or {}
        seen[key] = {name: obj[name] for name in ("apiVersion", "spec") if name in obj}
    return {"allowed": False, "status": {"message": json.dumps(seen, sort_keys=True)}}


def _replicas(asked: Json) -> Json:
    """Knows v1 alone."""
    assert asked["object"]["apiVersion"] == f"{GROUP}/v1"
    operation = {"op": "add", "path": "/spec/replicas", "value": asked["object"]["spec"].get("replicas", 0) + 1}
    patch = base64.b64encode(json.dumps([operation]).encode()).decode()
    return {"allowed": True, "patchType": "JSONPatch", "patch": patch}


ADMISSION: dict[str, Callable[[Json], Json]] = {"echo": _echo, "replicas": _replicas}
"""By path, what webhooks of admission answer."""
