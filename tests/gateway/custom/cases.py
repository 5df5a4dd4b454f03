"""Requests about custom kinds, one after the other, for a real kube-apiserver and for kemu alike."""

from __future__ import annotations

import copy
from dataclasses import dataclass
from typing import Any

DEFINITIONS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
GROUP = "shop.example.com"
NAMESPACE = "custom"
WIDGETS = f"/apis/{GROUP}/v1/namespaces/{NAMESPACE}/widgets"
OLD_WIDGETS = f"/apis/{GROUP}/v1beta1/namespaces/{NAMESPACE}/widgets"
GADGETS = f"/apis/{GROUP}/v1/gadgets"
MERGE, JSON_PATCH, STRATEGIC, APPLY = (
    "application/merge-patch+json",
    "application/json-patch+json",
    "application/strategic-merge-patch+json",
    "application/apply-patch+yaml",
)
TABLE = "application/json;as=Table;v=v1;g=meta.k8s.io"
PARTIAL = "application/json;as=PartialObjectMetadata;v=v1;g=meta.k8s.io"
PARTIAL_LIST = "application/json;as=PartialObjectMetadataList;v=v1;g=meta.k8s.io"


@dataclass(frozen=True)
class Step:
    method: str
    path: str
    body: Any = None
    kind: str = "application/json"
    accept: str = "application/json"
    until: str = ""
    """Repeat it until the answer has a condition of this type with status True; ``gone``: until it is 404."""
    fresh: bool = False
    """With the resource version that the object has now."""
    pause_s: float = 0.0
    """Before it: until all of a server knows what has changed."""


def _spec(**fields: Any) -> dict[str, Any]:
    return {"type": "object", "properties": {"spec": {"type": "object", "properties": fields}}}


WIDGET: dict[str, Any] = {
    "apiVersion": "apiextensions.k8s.io/v1",
    "kind": "CustomResourceDefinition",
    "metadata": {"name": f"widgets.{GROUP}"},
    "spec": {
        "group": GROUP,
        "scope": "Namespaced",
        "names": {"plural": "widgets", "kind": "Widget", "shortNames": ["wd"], "categories": ["all", "things"]},
        "versions": [
            {
                "name": "v1",
                "served": True,
                "storage": True,
                "subresources": {
                    "status": {},
                    "scale": {
                        "specReplicasPath": ".spec.replicas",
                        "statusReplicasPath": ".status.replicas",
                        "labelSelectorPath": ".status.selector",
                    },
                },
                "additionalPrinterColumns": [
                    {"name": "Replicas", "type": "integer", "jsonPath": ".spec.replicas", "description": "How many"},
                    {"name": "Color", "type": "string", "jsonPath": ".spec.color", "priority": 1},
                    {"name": "Ready", "type": "string", "jsonPath": '.status.conditions[?(@.type=="Ready")].status'},
                    {"name": "Big", "type": "boolean", "jsonPath": ".spec.big"},
                    {"name": "Weight", "type": "number", "jsonPath": ".spec.weight"},
                    {"name": "Tags", "type": "string", "jsonPath": ".spec.tags"},
                ],
                "selectableFields": [{"jsonPath": ".spec.color"}, {"jsonPath": ".spec.big"}],
                "schema": {
                    "openAPIV3Schema": {
                        "type": "object",
                        "properties": {
                            "spec": {
                                "type": "object",
                                "properties": {
                                    "replicas": {"type": "integer", "minimum": 0, "maximum": 100},
                                    "color": {"type": "string", "enum": ["red", "green"], "default": "red"},
                                    "big": {"type": "boolean"},
                                    "weight": {"type": "number"},
                                    "tags": {"type": "array", "items": {"type": "string"}},
                                    "free": {"type": "object", "x-kubernetes-preserve-unknown-fields": True},
                                    "none": {"type": "string", "nullable": True},
                                },
                            },
                            "status": {
                                "type": "object",
                                "properties": {
                                    "replicas": {"type": "integer"},
                                    "selector": {"type": "string"},
                                    "conditions": {
                                        "type": "array",
                                        "items": {
                                            "type": "object",
                                            "properties": {"type": {"type": "string"}, "status": {"type": "string"}},
                                        },
                                    },
                                },
                            },
                        },
                    }
                },
            },
            {
                "name": "v1beta1",
                "served": True,
                "storage": False,
                "deprecated": True,
                "schema": {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": True}},
            },
        ],
    },
}

GADGET: dict[str, Any] = {
    "apiVersion": "apiextensions.k8s.io/v1",
    "kind": "CustomResourceDefinition",
    "metadata": {"name": f"gadgets.{GROUP}"},
    "spec": {
        "group": GROUP,
        "scope": "Cluster",
        "names": {"plural": "gadgets", "kind": "Gadget"},
        "versions": [
            {
                "name": "v1",
                "served": True,
                "storage": True,
                "schema": {
                    "openAPIV3Schema": _spec(n={"type": "integer"}) | {"x-kubernetes-preserve-unknown-fields": True}
                },
            }
        ],
    },
}


def _changed(base: dict[str, Any], **changes: Any) -> dict[str, Any]:
    """A definition with other values at paths of its ``spec``: ``names__kind=…``, ``versions__0__name=…``."""
    found = copy.deepcopy(base)
    for path, value in changes.items():
        *parents, name = path.split("__")
        place: Any = found["spec"]
        for step in parents:
            place = place[int(step) if step.isdigit() else step]
        key = int(name) if name.isdigit() else name
        if value is None:
            del place[key]
        else:
            place[key] = value
    return found


def widget(name: str, /, **spec: Any) -> dict[str, Any]:
    return {"apiVersion": f"{GROUP}/v1", "kind": "Widget", "metadata": {"name": name}, "spec": spec}


def _refused() -> list[Step]:
    """Definitions that no server takes."""
    wrong = [
        _changed(WIDGET, names__plural="Widgets"),
        _changed(WIDGET, group="shop"),
        _changed(WIDGET, group=""),
        _changed(WIDGET, scope="Galaxy"),
        _changed(WIDGET, names__kind="wid_get"),
        _changed(WIDGET, names__listKind="Widget"),
        _changed(WIDGET, names__shortNames=["W D"]),
        _changed(WIDGET, names__categories=["A"]),
        _changed(WIDGET, versions=[]),
        _changed(WIDGET, versions__1__storage=True),
        _changed(WIDGET, versions__1__name="v1"),
        _changed(WIDGET, versions__1__name="V1"),
        _changed(WIDGET, versions__0__storage=False),
        _changed(WIDGET, versions__0__schema=None),
        _changed(WIDGET, versions__1__deprecated=None, versions__1__deprecationWarning="old"),
        _changed(WIDGET, versions__1__deprecationWarning=""),
        _changed(WIDGET, versions__0__subresources__scale__specReplicasPath="spec.replicas"),
        _changed(WIDGET, versions__0__subresources__scale__specReplicasPath=".status.replicas"),
        _changed(WIDGET, versions__0__subresources__scale__statusReplicasPath=""),
        _changed(WIDGET, versions__0__subresources__scale__labelSelectorPath=".metadata.labels"),
        _changed(WIDGET, versions__0__additionalPrinterColumns__0__type="float"),
        _changed(WIDGET, versions__0__additionalPrinterColumns__0__jsonPath="spec"),
        _changed(WIDGET, versions__0__additionalPrinterColumns__0__name=""),
        _changed(WIDGET, versions__0__additionalPrinterColumns__0__format="int33"),
        _changed(WIDGET, versions__0__selectableFields=[{"jsonPath": ".spec.tags"}, {"jsonPath": ".metadata.name"}]),
        _changed(WIDGET, versions__0__selectableFields=[{"jsonPath": ".spec.none2"}, {"jsonPath": ""}]),
        _changed(WIDGET, conversion={"strategy": "Webhook"}),
        _changed(WIDGET, conversion={"strategy": "Magic"}),
        _changed(
            WIDGET,
            conversion={
                "strategy": "Webhook",
                "webhook": {"clientConfig": {"url": "http://x/?a=b"}, "conversionReviewVersions": ["v2", "v2", "X"]},
            },
        ),
        _changed(
            WIDGET,
            conversion={
                "strategy": "Webhook",
                "webhook": {
                    "clientConfig": {"service": {"namespace": "", "name": "a", "path": "x//y", "port": 0}},
                    "conversionReviewVersions": [],
                },
            },
        ),
        _changed(WIDGET, conversion={"strategy": "None", "webhook": {"conversionReviewVersions": ["v1"]}}),
        _changed(WIDGET, preserveUnknownFields=True),
        _changed(GADGET, versions__0__schema__openAPIV3Schema={"properties": {"spec": {}}}),
        {**_changed(WIDGET, group="shop.k8s.io"), "metadata": {"name": "widgets.shop.k8s.io"}},
        {
            **_changed(WIDGET, group="shop.k8s.io"),
            "metadata": {"name": "widgets.shop.k8s.io", "annotations": {"api-approved.kubernetes.io": "yes"}},
        },
        {**WIDGET, "metadata": {"name": "widgets.example.com"}},
        {**WIDGET, "metadata": {}},
    ]
    return [Step("POST", DEFINITIONS, one) for one in wrong]


def _definitions() -> list[Step]:
    name = f"{DEFINITIONS}/widgets.{GROUP}"
    return [
        Step("POST", f"{DEFINITIONS}?dryRun=All", WIDGET),
        Step("GET", name),
        Step("POST", DEFINITIONS, WIDGET),
        Step("POST", DEFINITIONS, WIDGET),
        Step("GET", name, until="Established"),
        Step("POST", DEFINITIONS, GADGET),
        Step("GET", f"{DEFINITIONS}/gadgets.{GROUP}", until="Established"),
        # Names that are taken.
        Step(
            "POST",
            DEFINITIONS,
            {**_changed(GADGET, names={"plural": "others", "kind": "Widget", "shortNames": ["wd", "ot"]})}
            | {"metadata": {"name": f"others.{GROUP}"}},
        ),
        Step("GET", f"{DEFINITIONS}/others.{GROUP}", pause_s=1),
        Step("GET", f"/apis/{GROUP}/v1/others"),
        Step("DELETE", f"{DEFINITIONS}/others.{GROUP}"),
        Step("GET", f"{DEFINITIONS}/others.{GROUP}", until="gone"),
        # What cannot be changed.
        Step("PATCH", name, {"spec": {"scope": "Cluster"}}, MERGE),
        Step("PATCH", name, {"spec": {"names": {"kind": "Other", "listKind": "OtherList"}}}, MERGE),
        Step("PATCH", name, {"spec": {"group": "other.example.com"}}, MERGE),
        Step("PATCH", name, {"spec": {"versions": [WIDGET["spec"]["versions"][1] | {"storage": True}]}}, MERGE),
        Step("PATCH", f"{name}/status", {"status": {"storedVersions": []}}, MERGE),
        Step("PATCH", f"{name}/status", {"status": {"storedVersions": ["v1", "v0"]}}, MERGE),
        Step("PUT", name, WIDGET),
        Step("PATCH", name, {"metadata": {"labels": {"a": "b"}}}, MERGE),
        Step("GET", f"{name}/status"),
    ]


def _discovery() -> list[Step]:
    return [
        Step("GET", f"/apis/{GROUP}", pause_s=1.5),
        Step("GET", f"/apis/{GROUP}/v1"),
        Step("GET", f"/apis/{GROUP}/v1beta1"),
        Step("GET", f"/apis/{GROUP}/v2"),
        Step("GET", f"/apis/{GROUP}/v1/things"),
        Step("GET", "/apis/nothing.example.com/v1/things"),
        Step("GET", f"/apis/{GROUP}/v1/namespaces/{NAMESPACE}/gadgets"),
        Step("GET", f"/apis/{GROUP}/v1/widgets/a"),
    ]


def _objects() -> list[Step]:
    a = f"{WIDGETS}/a"
    return [
        Step(
            "POST", WIDGETS, widget("a", replicas=3, free={"x": None, "y": [1, 1.5, {}], "z": []}, none=None), pause_s=2
        ),
        Step("POST", WIDGETS, widget("a")),
        Step("POST", f"{WIDGETS}?fieldValidation=Strict", widget("b", unknown=1)),
        Step("POST", f"{WIDGETS}?fieldValidation=Warn", widget("b", unknown=1, tags=["x", "y"], weight=2, big=True)),
        Step("POST", f"{WIDGETS}?dryRun=All", widget("dry")),
        Step("GET", f"{WIDGETS}/dry"),
        Step("POST", WIDGETS, widget("c", replicas=-1, color="blue", tags=[1])),
        Step("POST", WIDGETS, widget("Not A Name")),
        Step("POST", WIDGETS, {**widget("d"), "kind": "Other"}),
        Step("POST", WIDGETS, {**widget("d"), "apiVersion": f"{GROUP}/v1beta1"}),
        Step("POST", WIDGETS, {**widget("d"), "metadata": {"name": "d", "namespace": "default"}}),
        Step("POST", WIDGETS, {**widget("d"), "metadata": {"generateName": "Gen-"}}),
        Step("POST", WIDGETS, {**widget("d"), "metadata": {"name": "d", "resourceVersion": "1"}}),
        Step("POST", f"/apis/{GROUP}/v1/namespaces/nowhere/widgets", widget("a")),
        Step("POST", WIDGETS, "kind: Widget\nmetadata: {name: yaml}\nspec: {color: green}", kind="application/yaml"),
        Step(
            "POST",
            WIDGETS,
            f"{{apiVersion: {GROUP}/v1, kind: Widget, metadata: {{name: yaml}}}}",
            kind="application/yaml",
        ),
        Step("POST", WIDGETS, widget("d"), kind="text/plain"),
        Step("GET", a),
        Step("GET", f"{WIDGETS}/nothing"),
        Step("GET", a, accept=TABLE),
        Step("GET", a, accept=PARTIAL),
        Step("GET", f"{OLD_WIDGETS}/a"),
        Step("GET", WIDGETS),
        Step("GET", WIDGETS, accept=TABLE),
        Step("GET", f"{OLD_WIDGETS}", accept=TABLE),
        Step("GET", WIDGETS, accept=PARTIAL_LIST),
        Step("GET", f"/apis/{GROUP}/v1/widgets?limit=2"),
        Step("GET", f"{WIDGETS}?fieldSelector=spec.color%3Dgreen"),
        Step("GET", f"{WIDGETS}?fieldSelector=spec.big%3Dtrue,metadata.name!%3Da"),
        Step("GET", f"{WIDGETS}?fieldSelector=spec.replicas%3D3"),
        Step("GET", f"{OLD_WIDGETS}?fieldSelector=spec.color%3Dgreen"),
        Step("GET", f"{WIDGETS}?labelSelector=a%3Db"),
        # Updates
        Step("PUT", a, widget("a", replicas=4)),
        Step("PUT", a, widget("a", replicas=4), fresh=True),
        Step("PUT", a, widget("b", replicas=4), fresh=True),
        Step("PUT", a, {**widget("a", replicas=4), "status": {"replicas": 9}}, fresh=True),
        Step("PUT", f"{OLD_WIDGETS}/a", {**widget("a", replicas=4), "apiVersion": f"{GROUP}/v1beta1"}, fresh=True),
        Step("PUT", f"{WIDGETS}/nothing", widget("nothing")),
        Step("PATCH", a, {"spec": {"color": "green", "tags": ["a"]}}, MERGE),
        Step("PATCH", a, {"spec": {"color": None}}, MERGE),
        Step("PATCH", a, {"spec": {"nope": 1}}, MERGE),
        Step("PATCH", f"{a}?fieldValidation=Strict", {"spec": {"nope": 1}}, MERGE),
        Step("PATCH", a, {"metadata": {"labels": {"a": "b"}}}, MERGE),
        Step("PATCH", a, {"metadata": {"labels": {"a": "not a label"}}}, MERGE),
        Step("PATCH", a, {"metadata": {"name": "other"}}, MERGE),
        Step("PATCH", a, {"kind": "Other"}, MERGE),
        Step("PATCH", a, [{"op": "add", "path": "/spec/tags/-", "value": "b"}], JSON_PATCH),
        Step("PATCH", a, [{"op": "test", "path": "/spec/replicas", "value": 1}], JSON_PATCH),
        Step("PATCH", a, [{"op": "replace", "path": "/spec/replicas", "value": "x"}], JSON_PATCH),
        Step("PATCH", a, {"spec": {"replicas": 5}}, STRATEGIC),
        Step("PATCH", a, {"spec": {"replicas": 5}}, "text/plain"),
        # Status and scale
        Step("GET", f"{a}/status"),
        Step(
            "PUT", f"{a}/status", {**widget("a", replicas=50), "status": {"replicas": 2, "selector": "x=y"}}, fresh=True
        ),
        Step("PATCH", f"{a}/status", {"status": {"conditions": [{"type": "Ready", "status": "True"}]}}, MERGE),
        Step("PATCH", f"{a}/status", {"status": {"replicas": "many"}}, MERGE),
        Step("GET", a, accept=TABLE),
        Step("GET", f"{a}/scale"),
        Step("GET", f"{WIDGETS}/b/scale"),
        Step("PATCH", f"{a}/scale", {"spec": {"replicas": 7}}, MERGE),
        Step("PATCH", f"{a}/scale", {"spec": {"replicas": 700}}, MERGE),
        Step("PATCH", f"{WIDGETS}/b/scale", {"spec": {"replicas": 1}}, MERGE),
        Step("GET", f"{a}/nothing"),
        Step("GET", f"{OLD_WIDGETS}/a/scale"),
        Step("POST", f"{a}/status", widget("a")),
        # Apply
        Step("PATCH", f"{a}?fieldManager=one", widget("a", replicas=7, tags=["z"]), APPLY),
        Step("PATCH", f"{a}?fieldManager=two", widget("a", replicas=8), APPLY),
        Step("PATCH", f"{a}?fieldManager=two&force=true", widget("a", replicas=8), APPLY),
        Step("PATCH", f"{a}?fieldManager=two&force=true", widget("a", nope=8), APPLY),
        Step("PATCH", f"{WIDGETS}/new?fieldManager=one", widget("new", color="green"), APPLY),
        Step("PATCH", a, widget("a"), APPLY),
        # Gadgets have no subresources: their status is a field like any other.
        Step(
            "POST",
            GADGETS,
            {"apiVersion": f"{GROUP}/v1", "kind": "Gadget", "metadata": {"name": "g"}, "status": {"a": 1}},
        ),
        Step("PATCH", f"{GADGETS}/g", {"status": {"a": 2}, "more": [1]}, MERGE),
        Step("GET", f"{GADGETS}/g/status"),
        Step("GET", f"{GADGETS}/g/scale"),
        Step("GET", GADGETS, accept=TABLE),
        # Deletes
        Step("PATCH", f"{WIDGETS}/new", {"metadata": {"finalizers": ["example.com/hold"]}}, MERGE),
        Step("DELETE", f"{WIDGETS}/new"),
        Step("PATCH", f"{WIDGETS}/new", {"metadata": {"finalizers": ["example.com/hold", "more"]}}, MERGE),
        Step("PATCH", f"{WIDGETS}/new", {"metadata": {"finalizers": None}}, MERGE),
        Step("GET", f"{WIDGETS}/new"),
        Step("DELETE", f"{WIDGETS}/b", {"preconditions": {"uid": "wrong"}}),
        Step("DELETE", f"{WIDGETS}/b"),
        Step("DELETE", f"{WIDGETS}/b"),
        Step("DELETE", f"{WIDGETS}?fieldSelector=spec.color%3Dgreen"),
        Step("GET", WIDGETS, accept=PARTIAL_LIST),
    ]


def _changes() -> list[Step]:
    """Of definitions, as requests notice them."""
    name = f"{DEFINITIONS}/widgets.{GROUP}"
    versions = copy.deepcopy(WIDGET["spec"]["versions"])
    schema = versions[0]["schema"]["openAPIV3Schema"]["properties"]["spec"]["properties"]
    schema["size"] = {"type": "string", "default": "small"}
    moved = copy.deepcopy(versions)
    moved[0]["storage"], moved[1]["storage"] = False, True
    return [
        Step("PATCH", name, {"spec": {"versions": versions}}, MERGE),
        Step("GET", f"{WIDGETS}/a", pause_s=1.5),
        Step("PATCH", name, {"spec": {"versions": moved}}, MERGE),
        Step("GET", name),
        Step("PATCH", f"{WIDGETS}/a", {"metadata": {"labels": {"moved": "yes"}}}, MERGE, pause_s=1.5),
        Step("GET", f"{OLD_WIDGETS}/a"),
        Step("PATCH", name, {"spec": {"versions": [moved[1]]}}, MERGE),
        Step("PATCH", name, {"spec": {"versions": [moved[0] | {"served": False}, moved[1]]}}, MERGE),
        Step("GET", f"{WIDGETS}/a", pause_s=1.5),
        Step("GET", f"{OLD_WIDGETS}/a"),
        Step("DELETE", name),
        Step("GET", name, until="gone"),
        Step("GET", f"{OLD_WIDGETS}/a", pause_s=1),
        Step("DELETE", f"{DEFINITIONS}/gadgets.{GROUP}"),
        Step("GET", f"{DEFINITIONS}/gadgets.{GROUP}", until="gone"),
        Step("GET", f"/apis/{GROUP}", pause_s=1),
    ]


_GEARS = "/apis/warn.example.com/v1/gears"


def _gear(name: str, *finalizers: str, **spec: Any) -> dict[str, Any]:
    metadata = {"name": name, "finalizers": list(finalizers)}
    return {"apiVersion": "warn.example.com/v1", "kind": "Gear", "metadata": metadata, "spec": spec}


def _warnings() -> list[Step]:
    """What is told beside the answer."""
    name = f"{DEFINITIONS}/gears.warn.example.com"
    fields: dict[str, Any] = {
        "a": {"type": "string", "format": "strange"},
        "b": {"type": "integer", "format": "int32"},
        "c": {"type": "string", "format": "k8s-short-name"},
        "d": {"type": "array", "items": {"type": "string", "format": "date-time"}},
        "size": {"type": "integer"},
        "parts": {
            "type": "array",
            "x-kubernetes-list-type": "map",
            "x-kubernetes-list-map-keys": ["name"],
            "items": {
                "type": "object",
                "required": ["name"],
                "properties": {"name": {"type": "string"}, "weight": {"type": "integer"}},
            },
        },
    }
    definition = {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": "gears.warn.example.com"},
        "spec": {
            "group": "warn.example.com",
            "scope": "Cluster",
            "names": {"plural": "gears", "kind": "Gear"},
            "versions": [
                {
                    "name": "v1",
                    "served": True,
                    "storage": True,
                    "subresources": {"status": {}},
                    "schema": {
                        "openAPIV3Schema": {
                            "type": "object",
                            "properties": {
                                "spec": {"type": "object", "properties": fields},
                                "status": {"type": "object", "properties": {"n": {"type": "integer"}}},
                            },
                        }
                    },
                }
            ],
        },
    }
    more = copy.deepcopy(definition["spec"]["versions"])  # type: ignore[index]
    inner = more[0]["schema"]["openAPIV3Schema"]["properties"]["spec"]["properties"]
    inner["e"] = {"type": "number", "format": "int64"}
    inner["size"]["x-kubernetes-validations"] = [{"rule": "self < 5", "message": "too large"}]
    inner["parts"]["items"]["x-kubernetes-validations"] = [{"rule": "!has(self.weight) || self.weight < 5"}]
    held = f"{_GEARS}/held"
    large = [{"name": "x", "weight": 9}, {"name": "y", "weight": 1}]
    return [
        Step("POST", f"{DEFINITIONS}?dryRun=All", {**definition, "spec": {**definition["spec"], "scope": "X"}}),  # type: ignore[dict-item]
        Step("POST", DEFINITIONS, definition),
        Step("GET", name, until="Established"),
        Step("POST", _GEARS, _gear("held", "bad finalizer", "plain", "with.dot", "orphan"), pause_s=3),
        Step("POST", _GEARS, _gear("held", "plain")),
        Step("POST", _GEARS, _gear("wrong", "plain", size="x")),
        Step("POST", f"{_GEARS}?dryRun=All&fieldValidation=Warn", _gear("dry", "plain", unknown=1)),
        Step("POST", _GEARS, _gear("big", "example.com/hold", size=7, parts=large)),
        Step(
            "PATCH", held, {"metadata": {"finalizers": ["bad finalizer", "plain", "more", "example.com/good"]}}, MERGE
        ),
        Step("PATCH", held, {"metadata": {"labels": {"a": "b"}}}, MERGE),
        Step("PATCH", f"{_GEARS}/new?fieldManager=one", _gear("new", "plain"), APPLY),
        Step("PATCH", name, {"spec": {"versions": more}}, MERGE),
        Step("PATCH", name, {"metadata": {"labels": {"a": "b"}}}, MERGE),
        Step("PATCH", f"{_GEARS}/big", {"metadata": {"labels": {"a": "b"}}}, MERGE, pause_s=3),
        Step("PATCH", f"{_GEARS}/big", {"spec": {"a": "x"}}, MERGE),
        Step("PATCH", f"{_GEARS}/big", {"spec": {"size": 8}}, MERGE),
        Step("PATCH", f"{_GEARS}/big/status", {"status": {"n": 1}}, MERGE),
        Step("PATCH", f"{_GEARS}/big", {"spec": {"size": 1, "parts": [*large, {"name": "z"}]}}, MERGE),
        Step("PATCH", f"{_GEARS}/big?dryRun=All", {"spec": {"b": 2}}, MERGE),
        *(
            Step("PATCH", f"{_GEARS}/{one}", {"metadata": {"finalizers": None}}, MERGE)
            for one in ("big", "held", "new")
        ),
        Step("DELETE", name),
        Step("GET", name, until="gone"),
    ]


WARNINGS: list[Step] = _warnings()
SET_UP = Step("POST", "/api/v1/namespaces", {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": NAMESPACE}})
STEPS: list[Step] = [SET_UP, *_refused(), *_definitions(), *_discovery(), *_objects(), *_changes()]
