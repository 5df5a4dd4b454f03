"""Objects as Tables (``meta.k8s.io/v1``), which ``kubectl get`` prints as they are.

    tables.table(pods, now_ns, metadata={"resourceVersion": "812"})    # a list, or one object
    tables.table([pod], now_ns, with_columns=False)                    # a later event of a watch

Cells, columns and their order are those of ``pkg/printers/internalversion``; kinds without a printer there get name
and creation time (``rest.NewDefaultTableConvertor``).
"""

from __future__ import annotations

import enum
from collections.abc import Mapping, Sequence
from typing import Any

from google.protobuf.message import Message

from kemu.gateway.tables import apps, autoscaling, batch, core, networking, pods, small_groups, storage
from kemu.gateway.tables.printers import NAME, Cell, Column, Printer
from kemu.k8s import core_v1_pb2
from kemu.objects import times
from kemu.objects.conversion import convert

_GROUPS = (pods, core, apps, batch, autoscaling, networking, storage, small_groups)
_PRINTERS: dict[type[Message], Printer] = {
    kind: printer for group in _GROUPS for kind, printer in group.PRINTERS.items()
}


class Include(enum.StrEnum):
    """What of an object comes with its row (``includeObject``)."""

    NONE = "None"
    METADATA = "Metadata"
    OBJECT = "Object"


def _created(obj: Any, now_ns: int) -> list[Cell]:
    return [obj.metadata.name, times.format_time(obj.metadata.creationTimestamp.seconds)]


_DEFAULT = Printer((NAME, Column("Created At", "Time at which the object was created.", "date")), _created)


def printer(kind: type[Message]) -> Printer:
    return _PRINTERS.get(kind, _DEFAULT)


def columns(kind: type[Message]) -> list[dict[str, Any]]:
    """``columnDefinitions`` of a kind."""
    return [column.document() for column in printer(kind).columns]


def table(
    kind: type[Message],
    objects: Sequence[Any],
    now_ns: int,
    metadata: Mapping[str, Any] | None = None,
    *,
    include: Include = Include.METADATA,
    with_columns: bool = True,
) -> dict[str, Any]:
    """``metadata`` is that of the list; for a single object its resource version is taken when there is none."""
    if metadata is None:
        metadata = {"resourceVersion": objects[0].metadata.resourceVersion} if len(objects) == 1 else {}
    return {
        "kind": "Table",
        "apiVersion": "meta.k8s.io/v1",
        "metadata": dict(metadata),
        "columnDefinitions": columns(kind) if with_columns else None,
        "rows": [row(obj, now_ns, include) for obj in objects],
    }


def row(obj: Any, now_ns: int, include: Include = Include.METADATA) -> dict[str, Any]:
    """One object."""
    data = cells(obj, now_ns)
    if include is Include.OBJECT:
        data["object"] = convert.to_manifest(obj)
    elif include is Include.METADATA:
        data["object"] = {
            "kind": "PartialObjectMetadata",
            "apiVersion": "meta.k8s.io/v1",
            "metadata": convert.to_json(obj.metadata),
        }
    else:
        data["object"] = None
    return data


def cells(obj: Any, now_ns: int) -> dict[str, Any]:
    """A row without the object."""
    data: dict[str, Any] = {"cells": printer(type(obj)).cells(obj, now_ns)}
    if isinstance(obj, core_v1_pb2.Pod):
        conditions = pods.row_conditions(obj)
        if conditions:
            data["conditions"] = conditions
    return data
