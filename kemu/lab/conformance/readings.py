"""Conversions between the JSON of recorded cases and the objects of kemu."""

from __future__ import annotations

import copy
from collections.abc import Iterable
from typing import Any, TypeVar

from google.protobuf.message import Message

from kemu.emulated.kubelet.settings import thresholds
from kemu.emulated.objects.conversion import convert
from kemu.messages.k8s import core_v1_pb2

M = TypeVar("M", bound=Message)

Json = dict[str, Any]
SECOND_NS = 1_000_000_000


def pod(data: Json) -> core_v1_pb2.Pod:
    return read(core_v1_pb2.Pod, data)


def pods(data: Iterable[Json] | None) -> list[core_v1_pb2.Pod]:
    return [pod(one) for one in data or ()]


def node(data: Json) -> core_v1_pb2.Node:
    return read(core_v1_pb2.Node, data)


def read(message_class: type[M], data: Json) -> M:
    """Fields that kemu's messages lack are left out: the real code does not read them for these decisions either."""
    bare = {key: value for key, value in data.items() if key not in ("apiVersion", "kind")}
    try:
        return convert.from_json(message_class, bare)
    except convert.ConversionError as error:
        unknown = [problem.steps for problem in error.problems if problem.message.startswith("unknown field")]
        if len(unknown) < len(error.problems):
            raise
    known = copy.deepcopy(bare)
    for *steps, name in unknown:
        place: Any = known
        for step in steps:
            place = place[step]
        del place[name]
    return convert.from_json(message_class, known)


def seconds(ns: int) -> float:
    """``time.Duration.Seconds`` of Go: whole seconds and the rest apart, which is not always the nearest float."""
    whole, rest = divmod(abs(ns), SECOND_NS)
    return (whole + rest / SECOND_NS) * (1 if ns >= 0 else -1)


def threshold_json(threshold: thresholds.Threshold) -> Json:
    written: Json = {
        "signal": threshold.signal,
        "gracePeriodSeconds": seconds(threshold.grace_ns),
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
