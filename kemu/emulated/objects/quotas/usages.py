"""What the objects of a namespace use of a quota (``CalculateUsage`` and ``CalculateUsageStats``)."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable
from typing import Any

from kemu.emulated.objects.amounts import quantities, resource_lists
from kemu.emulated.objects.amounts.quantities import Quantity
from kemu.emulated.objects.quotas import evaluators, registry
from kemu.emulated.objects.quotas.evaluators import Surroundings
from kemu.emulated.objects.quotas.quotas import Quota

Objects = Callable[[str], Iterable[Any]]
"""By plural, the objects of a namespace."""


def calculate(
    quota: Quota,
    objects: Objects,
    now_unix_ns: int,
    custom: Collection[str] = (),
    around: Surroundings = evaluators.NOTHING,
) -> dict[str, Quantity]:
    """What is used of each resource in ``spec.hard`` that anybody counts. ``custom``: the custom kinds that there
    are."""
    used: dict[str, Quantity] = {}
    of_custom = [(plural, registry.of_custom(plural)) for plural in custom]
    within = [(plural, evaluator.within(around)) for plural, evaluator in (*registry.EVALUATORS.items(), *of_custom)]
    # Of an object counts whatever anybody counts, not what those of its kind are asked for alone.
    names = sorted({name for _, evaluator in within for name in evaluator.counted(quota.wanted)})
    for plural, evaluator in within:
        if not evaluator.counted(quota.wanted):
            continue
        total = dict.fromkeys(names, quantities.ZERO)
        # Other kinds are in no scope: a quota with scopes counts none of them.
        if evaluator.has_scopes or not quota.selectors:
            for obj in objects(plural):
                if quota.has_in_scope(evaluator, obj):
                    total = resource_lists.add(total, resource_lists.only(evaluator.usage(obj, now_unix_ns), names))
        used = resource_lists.add(used, total)
    return used
