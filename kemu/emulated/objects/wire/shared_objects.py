"""Objects that were parsed once for all who read them in this process: by kind and revision.

An API server's watch cache, the answers to writers and the informers see the same bytes at the same revision. Whoever
gets an object from here must not change it, as with the cache of client-go's informers. Only code of kemu shares:
actors with code that users brought along parse for themselves (``clients.Client.shares``), and so does whoever changes
what it gets. Tests set :attr:`SharedObjects.checks`, and a changed object is noticed.

Kept are the latest few revisions, and of large objects fewer: news travels fast, and an actor that holds an object
holds it without this. The objects of lists are kept until as much news has come, so that schedulers that start together
hold each node once.
"""

from __future__ import annotations

import zlib
from collections.abc import Sequence
from typing import Any, TypeVar

from kemu.messages.k8s.objects import KubernetesObject

PLACES = 2048
"""A power of two."""
MASK = PLACES - 1
MOST_BYTES = 16 << 20
"""Most bytes of all bytes that are kept. The objects take up to ten times as much."""
_DIGITS = b"0123456789"

K = TypeVar("K", bound=KubernetesObject)

Seen = tuple[bytes, Any, str, int]
"""The bytes of an object as clients get them; the object; ``namespace/name``, or its name where it has no namespace;
the digest of the bytes (:mod:`kemu.emulated.objects.wire.wires`). What every informer wants to know of news."""


def seen(message: type[KubernetesObject], wire: bytes) -> Seen:
    """An object that nobody shares."""
    obj = message.FromString(wire)
    metadata = obj.metadata
    namespace, name = metadata.namespace, metadata.name
    return wire, obj, f"{namespace}/{name}" if namespace else name, zlib.crc32(wire)


class SharedObjects:
    """Shared objects of one process."""

    __slots__ = ("_bytes", "_listed", "_news", "_sealed", "checks", "kept")

    def __init__(self) -> None:
        self.kept: list[Seen | None] = [None] * PLACES
        """Each at its revision modulo :data:`PLACES`."""
        self._bytes = 0
        self._listed: dict[type[KubernetesObject], dict[bytes, KubernetesObject]] = {}
        """Objects of lists, by their bytes."""
        self._news = 0
        """How many objects were parsed since the last list."""
        self._sealed: dict[int, bytes] = {}
        self.checks = False
        """Raise AssertionError when an object has been changed since it was parsed."""

    def parse(self, message: type[K], revision: int, wire: bytes) -> K:
        """The object of those bytes, which is at that revision. Read it, never change it."""
        kept = self.kept[revision & MASK]
        if kept is not None and kept[0] == wire and isinstance(kept[1], message) and not self.checks:
            return kept[1]
        obj: K = self.see(message, revision, wire)[1]
        return obj

    def see(self, message: type[KubernetesObject], revision: int, wire: bytes) -> Seen:
        """As :meth:`parse`, and what else every informer wants to know."""
        place = revision & MASK
        kept = self.kept[place]
        if self.checks and kept is not None:
            self._check(place, kept[1])
        if kept is not None and kept[0] == wire and isinstance(kept[1], message):
            return kept
        made = seen(message, wire)
        if kept is not None:
            self._bytes -= len(kept[0])
        if self._bytes + len(wire) > MOST_BYTES:
            if self.checks:
                self.check()
            self._forget_news()
        self._bytes += len(wire)
        self.kept[place] = made
        self._news += 1
        if self._news > PLACES and self._listed:
            self._listed.clear()
        if self.checks:
            self._sealed[place] = made[1].SerializeToString(deterministic=True)
        return made

    def parse_list(self, message: type[K], wires: Sequence[bytes]) -> list[K]:
        """The objects of a list. Read them, never change them."""
        listed: dict[bytes, Any] = self._listed.setdefault(message, {})
        self._news = 0
        objects: list[K] = []
        for wire in wires:
            obj = listed.get(wire)
            if obj is None:
                obj = listed[wire] = message.FromString(wire)
            objects.append(obj)
        if len(listed) > 2 * len(objects) + PLACES:
            # Most of them are of lists that were longer, or are no longer true.
            self._listed[message] = dict(zip(wires, objects, strict=True))
        return objects

    def check(self) -> None:
        """All that are kept. Raises AssertionError."""
        for place, kept in enumerate(self.kept):
            if kept is not None:
                self._check(place, kept[1])
        for message, listed in self._listed.items():
            for wire, obj in listed.items():
                _compare(obj, message.FromString(wire).SerializeToString(deterministic=True))

    def clear(self) -> None:
        """Keep nothing."""
        self._forget_news()
        self._listed.clear()

    def _forget_news(self) -> None:
        self.kept = [None] * PLACES
        self._bytes = 0
        self._sealed.clear()

    def _check(self, place: int, obj: KubernetesObject) -> None:
        sealed = self._sealed.get(place)
        if sealed is not None:
            _compare(obj, sealed)


def _compare(obj: KubernetesObject, sealed: bytes) -> None:
    if obj.SerializeToString(deterministic=True) != sealed:
        name = f"{type(obj).__name__} {obj.metadata.namespace}/{obj.metadata.name}"
        raise AssertionError(f"{name} at {obj.metadata.resourceVersion} is shared and has been changed")


OBJECTS = SharedObjects()


def revision_of(wire: bytes) -> int:
    """The resource version at the end of the bytes that clients get (:mod:`kemu.emulated.objects.wire.wires`)."""
    return int(wire[len(wire.rstrip(_DIGITS)) :] or 0)
