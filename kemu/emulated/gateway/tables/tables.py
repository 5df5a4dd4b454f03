"""Columns and rows of Tables (``meta.k8s.io/v1``), which ``kubectl get`` prints as they are.

Cells, columns and their order are those of ``pkg/printers/internalversion``; kinds without a printer there get name
and creation time (``rest.NewDefaultTableConvertor``).
"""

from __future__ import annotations

from typing import Any

from google.protobuf.message import Message

from kemu.emulated.gateway.tables import apps, autoscaling, batch, core, networking, pods, small_groups, storage
from kemu.emulated.gateway.tables.printers import NAME, Cell, Column, Printer
from kemu.emulated.objects import times
from kemu.messages.k8s import core_v1_pb2
from kemu.messages.k8s.objects import KubernetesObject

_GROUPS = (pods, core, apps, batch, autoscaling, networking, storage, small_groups)
_PRINTERS: dict[type[Message], Printer] = {
    kind: printer for group in _GROUPS for kind, printer in group.PRINTERS.items()
}


def _created(obj: KubernetesObject, now_ns: int) -> list[Cell]:
    return [obj.metadata.name, times.format_time(obj.metadata.creationTimestamp.seconds)]


_DEFAULT = Printer((NAME, Column("Created At", "Time at which the object was created.", "date")), _created)


def printer(kind: type[Message]) -> Printer:
    return _PRINTERS.get(kind, _DEFAULT)


def columns(kind: type[Message]) -> list[dict[str, Any]]:
    """``columnDefinitions`` of a kind."""
    return [column.document() for column in printer(kind).columns]


def cells(obj: KubernetesObject, now_ns: int) -> dict[str, Any]:
    """A row of ``rows``, but for the object."""
    data: dict[str, Any] = {"cells": printer(type(obj)).cells(obj, now_ns)}
    if isinstance(obj, core_v1_pb2.Pod):
        conditions = pods.row_conditions(obj)
        if conditions:
            data["conditions"] = conditions
    return data
