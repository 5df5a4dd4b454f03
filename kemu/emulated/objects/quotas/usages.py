"""What the objects of a namespace use of a quota (``CalculateUsage`` and ``CalculateUsageStats``)."""

from __future__ import annotations

from collections.abc import Callable, Collection, Hashable, Iterable, Iterator
from typing import Any

from kemu.emulated.objects.amounts import quantities, resource_lists
from kemu.emulated.objects.amounts.quantities import Quantity
from kemu.emulated.objects.quotas import evaluators, registry
from kemu.emulated.objects.quotas.evaluators import Evaluator, Surroundings
from kemu.emulated.objects.quotas.quotas import Quota
from kemu.messages.k8s.objects import KubernetesObject

Objects = Callable[[str], Iterable[tuple[Any, int]]]
"""By plural, objects of a namespace, each with how many count as it does."""


class Crowd:
    """Objects of one kind in one namespace, of which those that count alike are counted once: a namespace may have
    thousands of pods, and its quotas are counted anew whenever one of them ends."""

    __slots__ = ("_alike", "_changed", "_evaluator", "_likeness", "objects")

    def __init__(self, evaluator: Evaluator[Any]) -> None:
        self._evaluator = evaluator
        self.objects: dict[str, Any] = {}
        """By name."""
        self._changed: dict[str, None] = {}
        """Names of those that came, changed or went since the last count."""
        self._likeness: dict[str, Hashable] = {}
        self._alike: dict[Hashable, dict[str, None]] = {}
        """Names by likeness."""

    def put(self, name: str, obj: KubernetesObject) -> None:
        self.objects[name] = obj
        self._changed[name] = None

    def remove(self, name: str) -> None:
        del self.objects[name]
        self._changed[name] = None

    def counted(self) -> Iterator[tuple[Any, int]]:
        for name in self._changed:
            self._settle(name)
        self._changed.clear()
        for likeness, names in self._alike.items():
            if likeness is None:
                for name in names:
                    yield self.objects[name], 1
            else:
                yield self.objects[next(iter(names))], len(names)

    def _settle(self, name: str) -> None:
        obj = self.objects.get(name)
        try:
            likeness = None if obj is None else self._evaluator.likeness(obj)
        except ValueError:
            likeness = None  # who counts it is told
        if name in self._likeness:
            before = self._likeness[name]
            if obj is not None and before == likeness:
                return
            names = self._alike[before]
            del names[name], self._likeness[name]
            if not names:
                del self._alike[before]
        if obj is not None:
            self._likeness[name] = likeness
            self._alike.setdefault(likeness, {})[name] = None


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
            for obj, count in objects(plural):
                if quota.has_in_scope(evaluator, obj):
                    some = resource_lists.only(evaluator.usage(obj, now_unix_ns), names)
                    total = resource_lists.add(total, some if count == 1 else resource_lists.times(some, count))
        used = resource_lists.add(used, total)
    return used
