"""Objects that were parsed once for all who read them in this process: by kind and revision.

An API server's watch cache, the answers to writers and the informers see the same bytes at the same revision. Whoever
gets an object from here must not change it, as with the cache of client-go's informers. Only code of kemu shares:
actors with code that users brought along parse for themselves (``clients.Client.shares``), and so does whoever changes
what it gets. Tests set :attr:`SharedObjects.checks`, and a changed object is noticed.

Kept are the latest few revisions, and of large objects fewer: news travels fast, and an actor that holds an object
holds it without this.
"""

from __future__ import annotations

from typing import TypeVar

from kemu.messages.k8s.objects import KubernetesObject

PLACES = 2048
"""A power of two."""
_MASK = PLACES - 1
MOST_BYTES = 16 << 20
"""Most bytes of all bytes that are kept. The objects take up to ten times as much."""
_DIGITS = b"0123456789"

K = TypeVar("K", bound=KubernetesObject)


class SharedObjects:
    """Shared objects of one process."""

    __slots__ = ("_bytes", "_kept", "_sealed", "checks")

    def __init__(self) -> None:
        self._kept: list[tuple[bytes, KubernetesObject] | None] = [None] * PLACES
        """The bytes as clients get them, and the object, at the revision modulo :data:`PLACES`."""
        self._bytes = 0
        self._sealed: dict[int, bytes] = {}
        self.checks = False
        """Raise AssertionError when an object has been changed since it was parsed."""

    def parse(self, message: type[K], revision: int, wire: bytes) -> K:
        """The object of those bytes, which is at that revision. Read it, never change it."""
        place = revision & _MASK
        kept = self._kept[place]
        if self.checks and kept is not None:
            self._check(place, kept[1])
        if kept is not None and kept[0] == wire and isinstance(kept[1], message):
            return kept[1]
        obj = message.FromString(wire)
        if kept is not None:
            self._bytes -= len(kept[0])
        if self._bytes + len(wire) > MOST_BYTES:
            if self.checks:
                self.check()
            self.clear()
        self._bytes += len(wire)
        self._kept[place] = (wire, obj)
        if self.checks:
            self._sealed[place] = obj.SerializeToString(deterministic=True)
        return obj

    def check(self) -> None:
        """All that are kept. Raises AssertionError."""
        for place, kept in enumerate(self._kept):
            if kept is not None:
                self._check(place, kept[1])

    def clear(self) -> None:
        """Keep nothing."""
        self._kept = [None] * PLACES
        self._bytes = 0
        self._sealed.clear()

    def _check(self, place: int, obj: KubernetesObject) -> None:
        sealed = self._sealed.get(place)
        if sealed is not None and obj.SerializeToString(deterministic=True) != sealed:
            name = f"{type(obj).__name__} {obj.metadata.namespace}/{obj.metadata.name}"
            raise AssertionError(f"{name} at {obj.metadata.resourceVersion} is shared and has been changed")


OBJECTS = SharedObjects()


def revision_of(wire: bytes) -> int:
    """The resource version at the end of the bytes that clients get (:mod:`kemu.emulated.objects.wire.wires`)."""
    return int(wire[len(wire.rstrip(_DIGITS)) :] or 0)
