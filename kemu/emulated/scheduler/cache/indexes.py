"""Indexes by label: which selectors may match an object, and which pods a selector may match.

A selector that asks for ``app=web`` matches nothing without that label. Such a label is an *anchor* of the selector:
whatever the selector matches has one of its anchors. Selectors stand under their anchors and pods under their labels,
so neither side has to be searched as a whole. What an index finds still has to be asked: an anchor is only one of the
requirements.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Mapping
from typing import Generic, TypeVar

from kemu.emulated.objects import selectors
from kemu.emulated.objects.selectors import LabelSelector
from kemu.emulated.scheduler.cache.pods import PodInfo
from kemu.emulated.scheduler.cache.terms import PodSelector

T = TypeVar("T")

Anchor = tuple[str, str]
"""Key and value of a label."""


class SelectorIndex(Generic[T]):
    """Things that have a label selector, found by the labels of an object."""

    __slots__ = ("_anchors", "_by_anchor", "_others")

    def __init__(self) -> None:
        self._anchors: dict[Hashable, tuple[Anchor, ...]] = {}
        """By key of the thing; empty for those in ``_others``."""
        self._by_anchor: dict[Anchor, dict[Hashable, T]] = {}
        self._others: dict[Hashable, T] = {}
        """Things whose selectors have no anchor."""

    def __len__(self) -> int:
        return len(self._anchors)

    def add(self, key: Hashable, selector: LabelSelector, thing: T) -> None:
        """``key`` must not be there yet. A selector that matches nothing is never found."""
        if selector.nothing:
            return
        anchors = self._anchors[key] = self._rarest(selector)
        for anchor in anchors:
            self._by_anchor.setdefault(anchor, {})[key] = thing
        if not anchors:
            self._others[key] = thing

    def remove(self, key: Hashable) -> None:
        """Does nothing when there is no such thing."""
        anchors = self._anchors.pop(key, None)
        if anchors is None:
            return
        for anchor in anchors:
            things = self._by_anchor[anchor]
            del things[key]
            if not things:
                del self._by_anchor[anchor]
        if not anchors:
            del self._others[key]

    def candidates(self, labels: Mapping[str, str]) -> Iterator[T]:
        """Everything whose selector may match these labels."""
        if self._by_anchor:
            for anchor in labels.items():
                things = self._by_anchor.get(anchor)
                if things:
                    yield from things.values()
        if self._others:
            yield from self._others.values()

    def _rarest(self, selector: LabelSelector) -> tuple[Anchor, ...]:
        """The label, among those that could be anchors, under which the fewest things stand."""
        if selector.equals:
            return (min(selector.equals.items(), key=lambda anchor: len(self._by_anchor.get(anchor, ()))),)
        for requirement in selector.requirements:
            if requirement.operator == selectors.IN:
                return tuple((requirement.key, value) for value in dict.fromkeys(requirement.values))
        return ()


class PodIndex:
    """Pods by namespace and label."""

    __slots__ = ("_by_namespace",)

    def __init__(self) -> None:
        self._by_namespace: dict[str, dict[Anchor | None, dict[str, PodInfo]]] = {}
        """Namespace → label → UID → pod; under None stand all pods of the namespace."""

    def __len__(self) -> int:
        return sum(len(by_label[None]) for by_label in self._by_namespace.values())

    def add(self, pod: PodInfo) -> None:
        by_label = self._by_namespace.setdefault(pod.namespace, {})
        by_label.setdefault(None, {})[pod.uid] = pod
        for anchor in pod.labels.items():
            by_label.setdefault(anchor, {})[pod.uid] = pod

    def remove(self, pod: PodInfo) -> None:
        by_label = self._by_namespace[pod.namespace]
        for anchor in (None, *pod.labels.items()):
            members = by_label[anchor]
            del members[pod.uid]
            if not members:
                del by_label[anchor]
        if not by_label:
            del self._by_namespace[pod.namespace]

    def candidates(self, wanted: tuple[PodSelector, ...]) -> list[Mapping[str, PodInfo]]:
        """Groups of pods, by UID, among which are all that every one of the selectors matches."""
        return min(map(self._groups, wanted), key=lambda groups: sum(map(len, groups)))

    def _groups(self, wanted: PodSelector) -> list[Mapping[str, PodInfo]]:
        selector = wanted.selector
        if selector.nothing:
            return []
        namespaces = self._by_namespace if wanted.any_namespace else dict.fromkeys(wanted.namespaces)
        found: list[Mapping[str, PodInfo]] = []
        for namespace in namespaces:
            by_label = self._by_namespace.get(namespace)
            if by_label is None:
                continue
            anchors: tuple[Anchor | None, ...] = (None,)
            if selector.equals:
                anchors = (min(selector.equals.items(), key=lambda anchor: len(by_label.get(anchor, ()))),)
            else:
                for requirement in selector.requirements:
                    if requirement.operator == selectors.IN:
                        anchors = tuple((requirement.key, value) for value in dict.fromkeys(requirement.values))
                        break
            found += [by_label[anchor] for anchor in anchors if anchor in by_label]
        return found
