"""Columns and rows of Tables (``meta.k8s.io/v1``), which ``kubectl get`` prints as they are.

Cells, columns and their order are those of ``pkg/printers/internalversion``; kinds without a printer there get name
and creation time (``rest.NewDefaultTableConvertor``).
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import Any

from google.protobuf.message import Message

from kemu.emulated.gateway.tables import pods, printers
from kemu.emulated.gateway.tables.columns import Reader
from kemu.messages.k8s import core_v1_pb2, flowcontrol_v1_pb2
from kemu.messages.k8s.objects import KubernetesObject


def columns(kind: type[Message]) -> list[dict[str, Any]]:
    """``columnDefinitions`` of a kind."""
    return [column.document() for column in printers.of_kind(kind.DESCRIPTOR.name) if column.name]


@lru_cache(None)
def _readers(kind: str) -> tuple[Reader, ...]:
    return tuple(column.reader() for column in printers.of_kind(kind))


def cells(obj: KubernetesObject, now_ns: int) -> dict[str, Any]:
    """A row of ``rows``, but for the object."""
    if not isinstance(obj, core_v1_pb2.Pod):
        return {"cells": [read(obj, now_ns) for read in _readers(obj.DESCRIPTOR.name)]}
    data: dict[str, Any] = {"cells": pods.row(obj, now_ns)}
    conditions = pods.row_conditions(obj)
    if conditions:
        data["conditions"] = conditions
    return data


def by_precedence(wires: Sequence[bytes]) -> list[bytes]:
    """Flow schemas in the order in which they are asked (``FlowSchemaSequence``)."""

    def key(wire: bytes) -> tuple[int, str]:
        schema = flowcontrol_v1_pb2.FlowSchema.FromString(wire)
        return schema.spec.matchingPrecedence, schema.metadata.name

    return sorted(wires, key=key)
