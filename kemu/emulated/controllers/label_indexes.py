"""Objects by their labels, and selectors by the labels that they ask for, so that not all are compared with all."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping
from typing import TypeVar

from kemu.emulated.objects.selectors import LabelSelector

Place = TypeVar("Place", bound=Hashable)

Pair = tuple[str, str]
"""Label and value."""


class LabelledObjects:
    """Keys of objects by namespace and label. :meth:`matching` costs what is found for one label of the selector."""

    def __init__(self) -> None:
        self._labels: dict[str, tuple[str, tuple[Pair, ...]]] = {}
        """By key: namespace and labels."""
        self._by_namespace: dict[str, dict[str, None]] = {}
        self._by_pair: dict[tuple[str, Pair], dict[str, None]] = {}

    def __len__(self) -> int:
        return len(self._labels)

    def put(self, key: str, namespace: str, labels: Mapping[str, str]) -> None:
        known = self._labels.get(key)
        if known is not None:
            if known[0] == namespace and len(known[1]) == len(labels):
                for label, value in known[1]:
                    if labels.get(label) != value:
                        break
                else:
                    return
            self.remove(key)
        pairs = tuple(sorted([(label, labels[label]) for label in labels]))  # views of maps of messages cost calls
        self._labels[key] = namespace, pairs
        self._by_namespace.setdefault(namespace, {})[key] = None
        for pair in pairs:
            self._by_pair.setdefault((namespace, pair), {})[key] = None

    def remove(self, key: str) -> None:
        known = self._labels.pop(key, None)
        if known is None:
            return
        namespace, pairs = known
        _discard(self._by_namespace, namespace, key)
        for pair in pairs:
            _discard(self._by_pair, (namespace, pair), key)

    def matching(self, namespace: str, selector: LabelSelector) -> list[str]:
        """In the order in which they got the label that the selector asks for."""
        if selector.nothing:
            return []
        candidates = self._by_namespace.get(namespace, {})
        for pair in selector.equals.items():
            bucket = self._by_pair.get((namespace, pair), {})
            if len(bucket) < len(candidates):
                candidates = bucket
        labels = self._labels
        return [key for key in candidates if selector.matches(dict(labels[key][1]))]


class Selectors:
    """Label selectors of objects, by the label that each asks for."""

    def __init__(self) -> None:
        self._selectors: dict[str, tuple[str, LabelSelector, Pair | None]] = {}
        self._by_pair: dict[tuple[str, Pair | None], dict[str, None]] = {}
        """By namespace and the first label that must have one value; None: there is none."""

    def __len__(self) -> int:
        return len(self._selectors)

    def put(self, key: str, namespace: str, selector: LabelSelector) -> bool:
        """Whether it is another selector than before."""
        known = self._selectors.get(key)
        if known is not None:
            if known[:2] == (namespace, selector):
                return False
            self.remove(key)
        pair = next(iter(sorted(selector.equals.items())), None)
        self._selectors[key] = namespace, selector, pair
        self._by_pair.setdefault((namespace, pair), {})[key] = None
        return True

    def remove(self, key: str) -> None:
        known = self._selectors.pop(key, None)
        if known is not None:
            _discard(self._by_pair, (known[0], known[2]), key)

    def matching(self, namespace: str, labels: Mapping[str, str]) -> list[str]:
        """Keys of those that select the labels, in order."""
        pairs: Iterable[Pair | None] = (None, *labels.items())
        selectors = self._selectors
        return sorted(
            key
            for pair in pairs
            for key in self._by_pair.get((namespace, pair), ())
            if selectors[key][1].matches(labels)
        )


def _discard(index: dict[Place, dict[str, None]], place: Place, key: str) -> None:
    keys = index[place]
    del keys[key]
    if not keys:
        del index[place]
