"""Columns and rows of Tables (``meta.k8s.io/v1``), which ``kubectl get`` prints as they are.

Cells, columns and their order are those of ``pkg/printers/internalversion``; kinds without a printer there get name
and creation time (``rest.NewDefaultTableConvertor``).
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import Any, cast

from kemu.emulated.gateway.tables import custom, pods, printers
from kemu.emulated.gateway.tables.columns import Reader
from kemu.emulated.objects.custom_kinds import CustomResource
from kemu.emulated.objects.resources import Resource
from kemu.messages.k8s import core_v1_pb2, flowcontrol_v1_pb2
from kemu.messages.k8s.apiextensions_v1_pb2 import CustomObject
from kemu.messages.k8s.objects import KubernetesObject


def columns(row: Resource) -> list[dict[str, Any]]:
    """``columnDefinitions`` of a kind."""
    if isinstance(row, CustomResource):
        return custom.columns(row)
    return [column.document() for column in printers.of_kind(row.message.DESCRIPTOR.name) if column.name]


@lru_cache(None)
def _readers(kind: str) -> tuple[Reader, ...]:
    return tuple(column.reader() for column in printers.of_kind(kind))


def cells(row: Resource, obj: KubernetesObject, now_ns: int) -> dict[str, Any]:
    """A row of ``rows``, but for the object."""
    if isinstance(row, CustomResource):
        return custom.cells(row, cast(CustomObject, obj), now_ns)
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
