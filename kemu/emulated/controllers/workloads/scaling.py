"""Numbers and percentages that rollouts are limited by (``apimachinery/pkg/util/intstr``)."""

from __future__ import annotations

from kemu.messages.k8s import meta_v1_pb2


def scaled(value: meta_v1_pb2.IntOrString, total: int, *, up: bool) -> int:
    """An IntOrString: a number, or this percentage of ``total``, rounded ``up`` or down
    (``GetScaledValueFromIntOrPercent``)."""
    if not value.type:
        return int(value.intVal)
    percent = int(value.strVal.removesuffix("%") or 0)
    return -(-percent * total // 100) if up else percent * total // 100
