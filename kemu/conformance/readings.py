"""Between the JSON of recorded cases and what kemu's code works with."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from kemu.k8s import core_v1_pb2
from kemu.kubelet import preemption, thresholds
from kemu.objects import convert

Json = dict[str, Any]
SECOND_NS = 1_000_000_000


def pod(data: Json) -> core_v1_pb2.Pod:
    return convert.from_json(core_v1_pb2.Pod, _bare(data))


def pods(data: Iterable[Json] | None) -> list[core_v1_pb2.Pod]:
    return [pod(one) for one in data or ()]


def node(data: Json) -> core_v1_pb2.Node:
    return convert.from_json(core_v1_pb2.Node, _bare(data))


def _bare(data: Json) -> Json:
    return {key: value for key, value in data.items() if key not in ("apiVersion", "kind")}


def threshold_json(threshold: thresholds.Threshold) -> Json:
    written: Json = {
        "signal": threshold.signal,
        "gracePeriodSeconds": threshold.grace_ns / SECOND_NS,
        **_amount_json(threshold.value),
    }
    if threshold.minimum_reclaim is not None:
        written["minReclaim"] = _amount_json(threshold.minimum_reclaim)
    if not threshold.active:
        written["inactive"] = True
    return written


def _amount_json(amount: thresholds.Amount) -> Json:
    if amount.quantity is not None:
        return {"quantity": amount.quantity.value}
    return {"percentage": thresholds.format_fraction(amount.fraction)}


def kill_json(victim: Any, reason: str, message: str, condition_message: str, grace_s: int | None) -> Json:
    """A pod that the kubelet kills, as the records state it."""
    written: Json = {
        "pod": victim.metadata.name,
        "isEvicted": True,
        "gracePeriodOverride": grace_s,
        "phase": "Failed",
        "reason": reason,
        "message": message,
    }
    if condition_message:
        written["condition"] = {
            "type": "DisruptionTarget",
            "status": "True",
            "reason": preemption.CONDITION_REASON,
            "message": condition_message,
            "observedGeneration": victim.metadata.generation,
        }
    return written
