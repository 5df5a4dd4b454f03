"""The group autoscaling: HorizontalPodAutoscalers, and the subresource scale of workloads."""

from __future__ import annotations

from collections.abc import Sequence

from kemu.emulated.gateway.tables import texts
from kemu.emulated.gateway.tables.printers import AGE, NAME, Cell, Column, Printer
from kemu.messages.k8s import autoscaling_v1_pb2, autoscaling_v2_pb2

_SHOWN = 2


def _autoscaler(autoscaler: autoscaling_v2_pb2.HorizontalPodAutoscaler, now_ns: int) -> list[Cell]:
    spec, status = autoscaler.spec, autoscaler.status
    return [
        autoscaler.metadata.name,
        f"{spec.scaleTargetRef.kind}/{spec.scaleTargetRef.name}",
        _metrics(spec.metrics, status.currentMetrics),
        texts.optional(spec, "minReplicas", texts.UNSET),
        spec.maxReplicas,
        status.currentReplicas,
        texts.age(autoscaler, now_ns),
    ]


def _metrics(
    specs: Sequence[autoscaling_v2_pb2.MetricSpec], statuses: Sequence[autoscaling_v2_pb2.MetricStatus]
) -> str:
    """``formatHPAMetrics``."""
    if not specs:
        return texts.NONE
    every = [_metric(spec, statuses[index] if index < len(statuses) else None) for index, spec in enumerate(specs)]
    shown = ", ".join(every[:_SHOWN])
    return f"{shown} + {len(every) - _SHOWN} more..." if len(every) > _SHOWN else shown


def _metric(spec: autoscaling_v2_pb2.MetricSpec, status: autoscaling_v2_pb2.MetricStatus | None) -> str:
    field = spec.type[:1].lower() + spec.type[1:]
    if field not in ("external", "pods", "object", "resource", "containerResource"):
        return "<unknown type>"
    source = getattr(spec, field)
    current = getattr(status, field).current if status is not None and status.HasField(field) else None
    target = source.target
    if field in ("resource", "containerResource"):
        if target.HasField("averageValue"):
            return f"{source.name}: {_amount(current, 'averageValue')}/{_amount(target, 'averageValue')}"
        wanted = f"{target.averageUtilization}%" if target.HasField("averageUtilization") else "<auto>"
        used = texts.UNKNOWN
        if current is not None and current.HasField("averageUtilization"):
            used = f"{current.averageUtilization}%"
        return f"{source.name}: {used}/{wanted}"
    if field == "pods":
        return f"{_amount(current, 'averageValue')}/{_amount(target, 'averageValue')}"
    if target.HasField("averageValue"):
        average = current if current is not None and current.HasField("averageValue") else None
        return f"{_amount(average, 'averageValue')}/{_amount(target, 'averageValue')} (avg)"
    return f"{_amount(current, 'value')}/{_amount(target, 'value')}"


def _amount(values: autoscaling_v2_pb2.MetricTarget | autoscaling_v2_pb2.MetricValueStatus | None, field: str) -> str:
    if values is None:
        return texts.UNKNOWN
    # As Go prints the quantity that is not there.
    return texts.quantity(getattr(values, field).string) if values.HasField(field) else "<nil>"


def _scale(scale: autoscaling_v1_pb2.Scale, now_ns: int) -> list[Cell]:
    return [scale.metadata.name, scale.spec.replicas, scale.status.replicas, texts.age(scale, now_ns)]


PRINTERS = {
    autoscaling_v2_pb2.HorizontalPodAutoscaler: Printer(
        (
            NAME,
            Column("Reference", "Object that is scaled."),
            Column("Targets", "Metrics: what they are, and what they should be."),
            Column("MinPods", "Least number of pods."),
            Column("MaxPods", "Largest number of pods."),
            Column("Replicas", "Number of pods."),
            AGE,
        ),
        _autoscaler,
    ),
    autoscaling_v1_pb2.Scale: Printer(
        (
            Column("Name", NAME.description),
            Column("Desired", "Number of pods that there should be.", "integer"),
            Column("Available", "Number of pods that there are.", "integer"),
            AGE,
        ),
        _scale,
    ),
}
