"""HorizontalPodAutoscalers in their two forms: autoscaling/v2, which is stored, and autoscaling/v1.

The older form knows one metric, the utilization of the CPU; the rest travels in annotations, so that nothing is lost on
the way there and back (``pkg/apis/autoscaling/v1/conversion.go``).
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from kemu.emulated.objects.conversion import convert
from kemu.emulated.objects.resources import BY_MESSAGE, Resource
from kemu.messages.k8s import autoscaling_v1_pb2, autoscaling_v2_pb2

Json = dict[str, Any]

STORED = BY_MESSAGE[autoscaling_v2_pb2.HorizontalPodAutoscaler]
ROW = Resource(
    STORED.plural,
    STORED.kind,
    "autoscaling/v1",
    autoscaling_v1_pb2.HorizontalPodAutoscaler,
    True,
    STORED.short_names,
)
"""Row of the other form."""

_PREFIX = "autoscaling.alpha.kubernetes.io/"
METRICS, STATUSES, CONDITIONS, BEHAVIOR = (
    _PREFIX + name for name in ("metrics", "current-metrics", "conditions", "behavior")
)
ANNOTATIONS = (
    METRICS,
    BEHAVIOR,
    _PREFIX + "scale-down-tolerance",
    _PREFIX + "scale-up-tolerance",
    STATUSES,
    CONDITIONS,
)
_CPU, _UTILIZATION = "cpu", "Utilization"


def shown(stored: autoscaling_v2_pb2.HorizontalPodAutoscaler) -> autoscaling_v1_pb2.HorizontalPodAutoscaler:
    """The form of autoscaling/v1."""
    found: autoscaling_v1_pb2.HorizontalPodAutoscaler = convert.from_json(
        autoscaling_v1_pb2.HorizontalPodAutoscaler, _older(convert.to_json(stored))
    )
    return found


def _older(document: Json) -> Json:
    metadata, spec, status = (dict(document.get(part, {})) for part in ("metadata", "spec", "status"))
    annotations = {key: text for key, text in metadata.get("annotations", {}).items() if key not in ANNOTATIONS}
    metrics, statuses = spec.pop("metrics", []), status.pop("currentMetrics", None) or []
    behavior, conditions = spec.pop("behavior", None), status.pop("conditions", [])
    others = [one for one in metrics if not _is_of_cpu(one)]
    of_cpu = next((one for one in metrics if _is_of_cpu(one)), None)
    if of_cpu is not None:
        spec["targetCPUUtilizationPercentage"] = of_cpu["resource"]["target"]["averageUtilization"]
    for one in statuses:
        percent = one.get("resource", {}).get("current", {}).get("averageUtilization")
        if one.get("type") == "Resource" and one.get("resource", {}).get("name") == _CPU and percent is not None:
            status["currentCPUUtilizationPercentage"] = percent
    for key, value in (
        (METRICS, [_older_metric(one) for one in others]),
        (STATUSES, [_older_status(one) for one in statuses]),
        (BEHAVIOR, _older_behavior(behavior) if behavior is not None else None),
        (CONDITIONS, [_in_order(one, _CONDITION) for one in conditions]),
    ):
        if value:
            annotations[key] = _text(value)
    if annotations:
        metadata["annotations"] = annotations
    return {"metadata": metadata, "spec": spec, "status": status}


def newer(document: Mapping[str, Any]) -> Json:
    """The JSON of an autoscaler of autoscaling/v1 as that of one of autoscaling/v2. What neither has stays as it is."""
    found = dict(document)
    if found.get("apiVersion") == ROW.api_version:
        found["apiVersion"] = STORED.api_version
    metadata, spec, status = (found.get(part) for part in ("metadata", "spec", "status"))
    annotations = metadata.get("annotations") if isinstance(metadata, dict) else None
    told = annotations if isinstance(annotations, dict) else {}
    if isinstance(spec, dict):
        found["spec"] = spec = dict(spec)
        percent = spec.pop("targetCPUUtilizationPercentage", None)
        metrics = _read(told.get(METRICS), _newer_metric)
        if percent is not None:
            target = {"type": _UTILIZATION, "averageUtilization": percent}
            metrics.append({"type": "Resource", "resource": {"name": _CPU, "target": target}})
        if metrics:
            spec["metrics"] = metrics
        behavior = _newer_behavior(told.get(BEHAVIOR))
        if behavior:
            spec["behavior"] = behavior
    if isinstance(status, dict):
        found["status"] = status = dict(status)
        percent = status.pop("currentCPUUtilizationPercentage", None)
        statuses = _read(told.get(STATUSES), _newer_status)
        if not statuses and percent is not None:
            statuses = [{"type": "Resource", "resource": {"name": _CPU, "current": {"averageUtilization": percent}}}]
        if statuses:
            status["currentMetrics"] = statuses
        conditions = _read(told.get(CONDITIONS), lambda one: one)
        if conditions:
            status["conditions"] = conditions
    if isinstance(metadata, dict) and any(key in told for key in ANNOTATIONS):
        kept = {key: text for key, text in told.items() if key not in ANNOTATIONS}
        found["metadata"] = {**metadata, "annotations": kept}
    return found


def _is_of_cpu(metric: Json) -> bool:
    source = metric.get("resource", {})
    return bool(
        metric.get("type") == "Resource"
        and source.get("name") == _CPU
        and source.get("target", {}).get("averageUtilization") is not None
    )


# --- the parts, in the order of the fields of Kubernetes' structs ---------------------------------------------------

_CONDITION = ("type", "status", "lastTransitionTime", "reason", "message")
_REFERENCE = ("kind", "name", "apiVersion")


def _in_order(found: Mapping[str, Any], names: Sequence[str]) -> Json:
    return {name: found[name] for name in names if found.get(name) is not None}


def _older_metric(metric: Json) -> Json:
    kind = metric.get("type", "")
    field, source = _source(metric)
    if source is None:
        return {"type": kind}
    target, about = source.get("target", {}), source.get("metric", {})
    made: Json
    if kind in ("Resource", "ContainerResource"):
        made = {
            "name": source.get("name", ""),
            "targetAverageUtilization": target.get("averageUtilization"),
            "targetAverageValue": target.get("averageValue"),
            "container": source.get("container") if kind == "ContainerResource" else None,
        }
    elif kind == "Pods":
        made = {
            "metricName": about.get("name", ""),
            "targetAverageValue": target.get("averageValue", "0"),
            "selector": about.get("selector"),
        }
    elif kind == "Object":
        made = {
            "target": _in_order(source.get("describedObject", {}), _REFERENCE),
            "metricName": about.get("name", ""),
            "targetValue": target.get("value", "0"),
            "selector": about.get("selector"),
            "averageValue": target.get("averageValue"),
        }
    else:
        made = {
            "metricName": about.get("name", ""),
            "metricSelector": about.get("selector"),
            "targetValue": target.get("value"),
            "targetAverageValue": target.get("averageValue"),
        }
    return {"type": kind, field: _stated(made)}


def _newer_metric(metric: Json) -> Json:
    kind = metric.get("type", "")
    field, source = _source(metric)
    if source is None:
        return {"type": kind}
    if kind in ("Resource", "ContainerResource"):
        percent = source.get("targetAverageUtilization")
        made: Json = {
            "name": source.get("name", ""),
            "container": source.get("container") if kind == "ContainerResource" else None,
            "target": _stated(
                {
                    "type": "AverageValue" if percent is None else _UTILIZATION,
                    "averageValue": source.get("targetAverageValue"),
                    "averageUtilization": percent,
                }
            ),
        }
        return {"type": kind, field: _stated(made)}
    average = source.get("averageValue" if kind == "Object" else "targetAverageValue")
    value = source.get("targetValue")
    if kind == "Pods" or (kind == "Object" and average is not None and str(value) == "0"):
        value = None
    by_value = kind != "Pods" and (average is None if kind == "Object" else value is not None)
    target = {"type": "Value" if by_value else "AverageValue", "value": value, "averageValue": average}
    selector = source.get("metricSelector" if kind == "External" else "selector")
    made = {
        "describedObject": source.get("target") if kind == "Object" else None,
        "metric": _stated({"name": source.get("metricName", ""), "selector": selector}),
        "target": _stated(target),
    }
    return {"type": kind, field: _stated(made)}


def _older_status(status: Json) -> Json:
    kind = status.get("type", "")
    field, source = _source(status)
    if source is None:
        return {"type": kind}
    current, about = source.get("current", {}), source.get("metric", {})
    made: Json
    if kind in ("Resource", "ContainerResource"):
        made = {
            "name": source.get("name", ""),
            "currentAverageUtilization": current.get("averageUtilization"),
            "currentAverageValue": current.get("averageValue", "0"),
            "container": source.get("container") if kind == "ContainerResource" else None,
        }
    else:
        made = {"metricName": about.get("name", ""), "currentAverageValue": current.get("averageValue")}
    return {"type": kind, field: _stated(made)}


def _newer_status(status: Json) -> Json:
    kind = status.get("type", "")
    field, source = _source(status)
    if source is None:
        return {"type": kind}
    current = {
        "averageValue": source.get("currentAverageValue"),
        "averageUtilization": source.get("currentAverageUtilization"),
    }
    made: Json = {"name": source.get("name"), "container": source.get("container"), "current": _stated(current)}
    if kind not in ("Resource", "ContainerResource"):
        made = {"metric": {"name": source.get("metricName", "")}, "current": _stated(current)}
    return {"type": kind, field: _stated(made)}


def _source(metric: Json) -> tuple[str, Any]:
    """The field that holds what a metric of its type says, and what it holds."""
    kind = metric.get("type", "")
    field = kind[:1].lower() + kind[1:]
    source = metric.get(field)
    return field, source if isinstance(source, dict) else None


def _stated(fields: Json) -> Json:
    return {key: value for key, value in fields.items() if value is not None}


_RULES = ("stabilizationWindowSeconds", "selectPolicy", "policies", "tolerance")
_POLICY = ("type", "value", "periodSeconds")


def _older_behavior(behavior: Json) -> Json:
    """Go's names of the fields, as the structs of Kubernetes' internal version have no others."""

    def rules(found: Json | None) -> Json | None:
        if found is None:
            return None
        policies = [{_go(key): one.get(key) for key in _POLICY} for one in found.get("policies", [])]
        return {_go(key): policies if key == "policies" else found.get(key) for key in _RULES}

    return {_go(side): rules(behavior.get(side)) for side in ("scaleUp", "scaleDown")}


def _newer_behavior(text: object) -> Json:
    found = _parsed(text)
    if not isinstance(found, dict):
        return {}
    behavior: Json = {}
    for side in ("scaleUp", "scaleDown"):
        rules = found.get(_go(side), found.get(side))
        if isinstance(rules, dict):
            made = _stated({key: rules.get(_go(key), rules.get(key)) for key in _RULES})
            made["policies"] = [
                _stated({key: one.get(_go(key), one.get(key)) for key in _POLICY}) for one in made.get("policies", [])
            ]
            behavior[side] = made
    return behavior


def _go(name: str) -> str:
    return name[:1].upper() + name[1:]


def _read(text: object, read: Callable[[Json], Json]) -> list[Json]:
    """What an annotation lists; one that cannot be read counts for nothing."""
    found = _parsed(text)
    return [read(one) for one in found if isinstance(one, dict)] if isinstance(found, list) else []


def _parsed(text: object) -> object:
    try:
        return json.loads(text) if isinstance(text, str) else None
    except (ValueError, RecursionError):
        return None


def _text(value: object) -> str:
    """As Go writes JSON."""
    found = json.dumps(value, separators=(",", ":"), ensure_ascii=False)
    for one in "&<>\u2028\u2029":
        found = found.replace(one, f"\\u{ord(one):04x}")
    return found
