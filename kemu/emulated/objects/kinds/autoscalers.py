"""HorizontalPodAutoscalers in their two forms: autoscaling/v2, which is stored, and autoscaling/v1.

The old form has one metric, the use of CPU; the others, and what else it has no fields for, stand in annotations as
JSON (``pkg/apis/autoscaling/v1/conversion.go``).
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Any

from kemu.emulated.objects.conversion import convert
from kemu.emulated.objects.plain import Json
from kemu.emulated.objects.resources import BY_MESSAGE, Resource
from kemu.messages.k8s import autoscaling_v1_pb2, autoscaling_v2_pb2

Old = autoscaling_v1_pb2.HorizontalPodAutoscaler
New = autoscaling_v2_pb2.HorizontalPodAutoscaler
Document = dict[str, Any]

STORED = BY_MESSAGE[New]
ROW = Resource("horizontalpodautoscalers", "HorizontalPodAutoscaler", "autoscaling/v1", Old, True, ("hpa",))
"""Row of the old form."""

_PREFIX = "autoscaling.alpha.kubernetes.io/"
METRICS, BEHAVIOR = f"{_PREFIX}metrics", f"{_PREFIX}behavior"
CURRENT, CONDITIONS = f"{_PREFIX}current-metrics", f"{_PREFIX}conditions"
_ANNOTATIONS = (METRICS, BEHAVIOR, CURRENT, CONDITIONS)
_PERCENT, _CURRENT_PERCENT = "targetCPUUtilizationPercentage", "currentCPUUtilizationPercentage"
_KINDS = {
    "Resource": "resource",
    "ContainerResource": "containerResource",
    "Pods": "pods",
    "Object": "object",
    "External": "external",
}
"""By the type of a metric, the field."""


def shown(stored: New) -> Old:
    """The old form."""
    found = Old()
    found.metadata.CopyFrom(stored.metadata)
    annotations = found.metadata.annotations
    for name in _ANNOTATIONS:
        annotations.pop(name, None)
    document = convert.to_json(stored)
    spec, status = document.get("spec", {}), document.get("status", {})
    others = []
    for metric in spec.pop("metrics", ()):
        percent = _cpu(metric, "target")
        if percent is None:
            others.append(_old_metric(metric, "target"))
        elif not found.spec.HasField(_PERCENT):
            found.spec.targetCPUUtilizationPercentage = percent
    current = status.pop("currentMetrics", [])
    for metric in current:
        percent = _cpu(metric, "current")
        if percent is not None:
            found.status.currentCPUUtilizationPercentage = percent
    texts = {
        METRICS: others,
        CURRENT: [_old_metric(metric, "current") for metric in current],
        BEHAVIOR: _capital(spec.pop("behavior", None)),
        CONDITIONS: status.pop("conditions", []),
    }
    for name, value in texts.items():
        if value:
            annotations[name] = json.dumps(value, ensure_ascii=False, separators=(",", ":"))
    _copy_fields(stored, found, ("scaleTargetRef", "minReplicas", "maxReplicas"), "spec")
    _copy_fields(stored, found, ("observedGeneration", "lastScaleTime", "currentReplicas", "desiredReplicas"), "status")
    return found


def stored(found: Old) -> New:
    """The form that is stored."""
    document = renamed(convert.to_json(found))
    return convert.from_json(New, document)


def renamed(document: Mapping[str, Any]) -> Document:
    """The JSON of an object of the old form, or of a part of one, as that of the new."""
    changed: Document = dict(document)
    if changed.get("apiVersion") == ROW.api_version:
        changed["apiVersion"] = STORED.api_version
    metadata, spec, status = (_part(changed, name) for name in ("metadata", "spec", "status"))
    annotations = _part(metadata, "annotations") if metadata is not None else None
    texts = {name: _read(annotations.pop(name, None)) for name in _ANNOTATIONS} if annotations is not None else {}
    others = texts.get(METRICS)
    if spec is not None:
        metrics = [_new_metric(one, "target") for one in others] if isinstance(others, list) else None
        if _PERCENT in spec:
            percent = spec.pop(_PERCENT)
            metrics = [*(metrics or []), *([_new_cpu("target", percent)] if percent is not None else [])]
        if metrics is not None:
            spec["metrics"] = metrics
        behavior = texts.get(BEHAVIOR)
        if isinstance(behavior, dict):
            spec["behavior"] = _small(behavior)
    if status is not None:
        current = texts.get(CURRENT)
        percent = status.pop(_CURRENT_PERCENT, None)
        if isinstance(current, list):
            status["currentMetrics"] = [_new_metric(one, "current") for one in current]
        elif percent is not None:
            status["currentMetrics"] = [_new_cpu("current", percent)]
        if isinstance(texts.get(CONDITIONS), list):
            status["conditions"] = texts[CONDITIONS]
    return changed


def renamed_operation(operation: Document) -> Document:
    """The same of an operation of a JSON patch."""
    if operation.get("path") != f"/spec/{_PERCENT}":
        return operation
    changed = {**operation, "path": "/spec/metrics"}
    if "value" in changed:
        changed["value"] = [_new_cpu("target", changed["value"])]
    return changed


def _part(document: Document, name: str) -> Document | None:
    """A copy of an object in a document, put in its place; None: there is none."""
    found = document.get(name)
    if not isinstance(found, dict):
        return None
    document[name] = dict(found)
    return document[name]  # type: ignore[no-any-return]


def _read(text: object) -> object:
    """What stands in an annotation; None: nothing that can be read."""
    try:
        return json.loads(text) if isinstance(text, str) else None
    except ValueError:
        return None


def _copy_fields(one: New, other: Old, names: tuple[str, ...], part: str) -> None:
    if not one.HasField(part):  # type: ignore[arg-type]
        return
    source, target = getattr(one, part), getattr(other, part)
    target.SetInParent()
    for name in names:
        if source.HasField(name):
            value = getattr(source, name)
            if hasattr(value, "SerializeToString"):
                getattr(target, name).ParseFromString(value.SerializeToString(deterministic=True))
            else:
                setattr(target, name, value)


# Metrics --------------------------------------------------------------------------------------------------------------


def _cpu(metric: Document, what: str) -> int | None:
    """The percentage of a metric that the old form has a field for."""
    found = metric.get("resource", {})
    if metric.get("type") != "Resource" or found.get("name") != "cpu":
        return None
    percent: int | None = found.get(what, {}).get("averageUtilization")
    return percent


def _new_cpu(what: str, percent: object) -> Document:
    value = {"averageUtilization": percent}
    if what == "target":
        value = {"type": "Utilization", **value}
    return {"type": "Resource", "resource": {"name": "cpu", what: value}}


def _old_metric(metric: Document, what: str) -> Document:
    """``what``: ``target`` or ``current``, which begin the names of the old fields."""
    kind = metric.get("type", "")
    found = metric.get(_KINDS.get(kind, ""), {})
    value, name = found.get(what, {}), found.get("metric", {}).get("name")
    selector = found.get("metric", {}).get("selector")
    average = {f"{what}AverageUtilization": value.get("averageUtilization")}
    average[f"{what}AverageValue"] = value.get("averageValue")
    if kind == "Resource":
        old = {"name": found.get("name"), **average}
    elif kind == "ContainerResource":
        old = {"name": found.get("name"), **average, "container": found.get("container")}
    elif kind == "Pods":
        old = {"metricName": name, f"{what}AverageValue": value.get("averageValue"), "selector": selector}
    elif kind == "Object":
        old = {"target": found.get("describedObject"), "metricName": name, f"{what}Value": value.get("value")}
        old |= {"selector": selector, "averageValue": value.get("averageValue")}
    else:
        old = {"metricName": name, "metricSelector": selector, f"{what}Value": value.get("value")}
        old[f"{what}AverageValue"] = value.get("averageValue")
    return {"type": kind, _KINDS.get(kind, "external"): _stated(old)}


def _new_metric(metric: object, what: str) -> Document:
    if not isinstance(metric, dict):
        return {}
    kind = metric.get("type", "")
    old = metric.get(_KINDS.get(kind, ""), {})
    value = _stated(
        {
            "value": old.get(f"{what}Value"),
            "averageValue": old.get("averageValue", old.get(f"{what}AverageValue")),
            "averageUtilization": old.get(f"{what}AverageUtilization"),
        }
    )
    if what == "target":
        types = (("averageUtilization", "Utilization"), ("averageValue", "AverageValue"), ("value", "Value"))
        value = {"type": next((word for name, word in types if name in value), "Value"), **value}
    named = _stated({"name": old.get("metricName"), "selector": old.get("selector", old.get("metricSelector"))})
    new: Document = {what: value}
    if kind in ("Resource", "ContainerResource"):
        new = _stated({"name": old.get("name"), "container": old.get("container")}) | new
    else:
        new["metric"] = named
        if kind == "Object":
            new["describedObject"] = old.get("target", {})
    return {"type": kind, _KINDS.get(kind, "external"): new}


def _stated(fields: Document) -> Document:
    return {name: value for name, value in fields.items() if value is not None}


def _capital(value: Json) -> Json:
    """Go's names of fields, as the annotation of the behavior has them."""
    return _walked(value, lambda name: name[0].upper() + name[1:])


def _small(value: Json) -> Json:
    return _walked(value, lambda name: name[0].lower() + name[1:])


def _walked(value: Json, rename: Callable[[str], str]) -> Json:
    if isinstance(value, dict):
        return {rename(name): _walked(one, rename) for name, one in value.items() if name and one is not None}
    if isinstance(value, list):
        return [_walked(one, rename) for one in value]
    return value
