"""Amounts of several resources, exactly and with their formats: what quotas and limit ranges calculate with.

Mirrors ``apiserver/pkg/quota/v1/resources.go``. A list is a plain dict from the name of a resource to its
:class:`~kemu.emulated.objects.amounts.quantities.Quantity`; no function changes its arguments.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from google.protobuf.internal.containers import MessageMap

from kemu.emulated.objects.amounts import quantities
from kemu.emulated.objects.amounts.quantities import Quantity
from kemu.messages.k8s import meta_v1_pb2

Amounts = Mapping[str, Quantity]
ONE = Quantity(quantities.NANO)


def read(amounts: Mapping[str, Any]) -> dict[str, Quantity]:
    """From a ``map<string, Quantity>`` field, by name. Raises ValueError for a text that is no quantity."""
    return {name: quantities.parse(amounts[name].string) for name in sorted(amounts)}


def write(field: MessageMap[str, meta_v1_pb2.Quantity], amounts: Amounts) -> None:
    """Replace what a ``map<string, Quantity>`` field holds, in canonical texts."""
    field.clear()
    for name in sorted(amounts):
        field[name].string = str(amounts[name])


def is_same(one: Amounts, other: Amounts) -> bool:
    """Whether both have the same resources in equal amounts, however they are written (``Equals``)."""
    return dict(one) == dict(other)


def add(one: Amounts, other: Amounts) -> dict[str, Quantity]:
    total = dict(one)
    for name, quantity in other.items():
        total[name] = total[name] + quantity if name in total else quantity
    return total


def times(amounts: Amounts, count: int) -> dict[str, Quantity]:
    """So many added up."""
    return {name: Quantity(quantity.nano * count, quantity.format) for name, quantity in amounts.items()}


def growth(new: Amounts, old: Amounts) -> dict[str, Quantity]:
    """By how much each resource grew; zero for those that did not (``SubtractWithNonNegativeResult``)."""
    grown: dict[str, Quantity] = {}
    for name, quantity in new.items():
        more = quantity - old[name] if name in old else quantity
        grown[name] = more if more.nano > 0 else quantities.ZERO
    for name in old:
        grown.setdefault(name, quantities.ZERO)
    return grown


def only(amounts: Amounts, names: Iterable[str]) -> dict[str, Quantity]:
    """The amounts of some resources (``Mask``)."""
    wanted = dict.fromkeys(names)
    return {name: quantity for name, quantity in amounts.items() if name in wanted}


def exceeding(amounts: Amounts, limits: Amounts) -> list[str]:
    """The resources that have a limit and exceed it (``LessThanOrEqual``)."""
    return [name for name in sorted(limits) if name in amounts and amounts[name].nano > limits[name].nano]


def without_zeros(amounts: Amounts) -> dict[str, Quantity]:
    return {name: quantity for name, quantity in amounts.items() if quantity.nano}


def raise_to(total: dict[str, Quantity], amounts: Amounts) -> None:
    """Change ``total`` to the larger of both, for each resource (``maxResourceList``)."""
    for name, quantity in amounts.items():
        if name not in total or quantity.nano > total[name].nano:
            total[name] = quantity


def text(amounts: Amounts) -> str:
    """As refusals print them: ``cpu=1,memory=2Gi`` (``prettyPrint``)."""
    return ",".join([f"{name}={amounts[name]}" for name in sorted(amounts)])
