"""Objects that were parsed once for all who read them in this process: by kind and revision.

An API server's watch cache, the answers to writers and the informers see the same bytes at the same revision. Whoever
gets an object from here must not change it, as with the cache of client-go's informers. Only code of kemu shares:
actors with code that users brought along parse for themselves (``clients.Client.shares``), and so does whoever changes
what it gets. Tests set :attr:`SharedObjects.checks`, and a changed object is noticed.

Kept are the latest few revisions, and of large objects fewer: news travels fast. The objects of lists are kept until as
much news has come, so that schedulers that start together hold each node once. An actor that holds many objects for
long holds each as :class:`Held`, which is bytes once the object is no news any more.
"""

from __future__ import annotations

import itertools
import zlib
from array import array
from collections import deque
from collections.abc import Sequence
from functools import lru_cache
from typing import Any, TypeVar

import zstandard

from kemu.emulated.objects.wire import wires
from kemu.messages.k8s.objects import KubernetesObject
from kemu.runtime import garbage

PLACES = 2048
"""A power of two."""
MASK = PLACES - 1
MOST_BYTES = 16 << 20
"""Most bytes of all bytes that are kept. The objects take up to ten times as much."""
THAWED = 512
"""So many objects that are no news are kept after they were looked at."""
LARGE = 10_000
"""So many objects of lists take 50 MiB, which others can use when they are no news any more."""
_DIGITS = b"0123456789"
VALUES = [b""] * PLACES
"""Bytes that a store of this process has put at its latest revisions, each at its revision modulo :data:`PLACES`: who
keeps equal bytes keeps these."""
KEYS = [b""] * PLACES
"""Likewise the keys."""

_TOGETHER = 16
"""So many objects of a large list are packed together, once they are no news any more."""

K = TypeVar("K", bound=KubernetesObject)


class Past:
    """Values that resemble one another and that hardly anybody will ask for, compressed together."""

    __slots__ = ("_ends", "_packed")

    def __init__(self, values: Sequence[bytes]) -> None:
        # What the compressor returns takes as much memory as the worst case would.
        self._packed = bytes(memoryview(zstandard.ZstdCompressor(level=1).compress(b"".join(values))))
        self._ends = array("I", itertools.accumulate(map(len, values), initial=0))

    def value(self, place: int) -> bytes:
        return _unpacked(self)[self._ends[place] : self._ends[place + 1]]

    def length(self, place: int) -> int:
        """Of that value, in bytes."""
        return self._ends[place + 1] - self._ends[place]

    def unpacked(self) -> bytes:
        return zstandard.ZstdDecompressor().decompress(self._packed)


@lru_cache(16)
def _unpacked(past: Past) -> bytes:
    """Who asks for a value asks for those beside it."""
    return past.unpacked()


class Held:
    """An object to hold for long, one for all who hold it. A parsed pod or node takes 5 KiB, its bytes a fifth of that,
    and the store has those."""

    __slots__ = ("_message", "_revision", "_value", "facts", "obj")

    def __init__(
        self, message: type[KubernetesObject], revision: int, value: bytes, obj: KubernetesObject | None
    ) -> None:
        """``value``: as the store has it, where ``revision`` is not negative; else as clients get it; empty: the object
        itself is kept."""
        self._message = message
        self._revision = revision
        self._value: bytes | Past = value
        self.obj = obj
        """The object, as long as it is news or has just been looked at."""
        self.facts: Any = None
        """What those who hold it have found out about it."""

    def get(self) -> KubernetesObject:
        """Read it, never change it."""
        return self.obj or self._thaw()

    def _thaw(self) -> KubernetesObject:
        data = self._value
        if isinstance(data, Past):
            data = data.value(-1 - self._revision)
        elif self._revision >= 0:
            data += wires.version_suffix(self._revision)
        obj = self.obj = self._message.FromString(data)
        if len(_THAWED) >= THAWED:
            _THAWED.popleft().cool()
        _THAWED.append(self)
        return obj

    def pack(self, past: Past, place: int) -> None:
        """Its bytes, as clients get them, are there."""
        self._value, self._revision = past, -1 - place

    def cool(self) -> None:
        """It is no news any more."""
        if self._value:
            self.obj = None


_THAWED: deque[Held] = deque()

Seen = tuple[bytes, Any, str, int, Held | None]
"""The bytes of an object as clients get them; the object; ``namespace/name``, or its name where it has no namespace;
the digest of the bytes (:mod:`kemu.emulated.objects.wire.wires`); for those that are shared, what holds it for long.
What every informer wants to know of news."""


def seen(message: type[KubernetesObject], wire: bytes) -> Seen:
    """An object that nobody shares."""
    obj = message.FromString(wire)
    metadata = obj.metadata
    namespace, name = metadata.namespace, metadata.name
    return wire, obj, f"{namespace}/{name}" if namespace else name, zlib.crc32(wire), None


class SharedObjects:
    """Shared objects of one process."""

    __slots__ = ("_bytes", "_held", "_listed", "_news", "_sealed", "checks", "kept")

    def __init__(self) -> None:
        self.kept: list[Seen | None] = [None] * PLACES
        """Each at its revision modulo :data:`PLACES`."""
        self._bytes = 0
        self._listed: dict[type[KubernetesObject], dict[bytes, KubernetesObject]] = {}
        """Objects of lists, by their bytes."""
        self._held: dict[int, Held] = {}
        """What holds objects of lists for long, by the identity of the object, which :attr:`_listed` keeps."""
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
        obj = message.FromString(wire)
        metadata = obj.metadata
        namespace, name = metadata.namespace, metadata.name
        digits = b"%d" % revision  # wires.version_suffix, inlined
        value, suffix = VALUES[place], wires.VERSION_TAGS[len(digits)] + digits
        if len(value) + len(suffix) == len(wire) and wire.startswith(value) and wire.endswith(suffix):
            held = Held(message, revision, value, obj)
        else:
            held = Held(message, -1, wire, obj)
        made = wire, obj, f"{namespace}/{name}" if namespace else name, zlib.crc32(wire), held
        if kept is not None:
            self._bytes -= len(kept[0])
            cold = kept[4]
            if cold is not None and cold._value:  # _cool, inlined: every change ends one
                cold.obj = None
        if self._bytes + len(wire) > MOST_BYTES:
            if self.checks:
                self.check()
            self._forget_news()
        self._bytes += len(wire)
        self.kept[place] = made
        self._news += 1
        if self._news > PLACES and self._listed:
            self._forget_lists()
        if self.checks:
            self._sealed[place] = made[1].SerializeToString(deterministic=True)
        return made

    def parse_list(self, message: type[K], listed_wires: Sequence[bytes]) -> list[K]:
        """The objects of a list. Read them, never change them."""
        listed: dict[bytes, Any] = self._listed.setdefault(message, {})
        self._news = 0
        objects: list[K] = []
        for wire in listed_wires:
            obj = listed.get(wire)
            if obj is None:
                obj = listed[wire] = message.FromString(wire)
                self._held[id(obj)] = Held(message, -1, wire, obj)
            objects.append(obj)
        if len(listed) > 2 * len(objects) + PLACES:
            # Most of them are of lists that were longer, or are no longer true.
            kept = self._listed[message] = dict(zip(listed_wires, objects, strict=True))
            for wire, obj in listed.items():
                if wire not in kept:
                    self._held.pop(id(obj)).cool()
        return objects

    def hold(self, obj: KubernetesObject) -> Held:
        """What holds an object for long, which the holder must never change. Of an object that is not shared, it is the
        object itself."""
        revision = int(obj.metadata.resourceVersion or 0)
        kept = self.kept[revision & MASK]
        if kept is not None and kept[1] is obj and kept[4] is not None:
            return kept[4]
        held = self._held.get(id(obj))
        if held is not None:
            return held
        return Held(type(obj), -1, b"", obj)

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
        self._forget_lists()
        _THAWED.clear()

    def _forget_lists(self) -> None:
        """Those of lists are no news any more."""
        is_large = len(self._held) >= LARGE
        if is_large:
            for listed in self._listed.values():
                self._pack(list(listed.items()))
        for held in self._held.values():
            held.cool()
        self._held.clear()
        self._listed.clear()
        if is_large:
            garbage.give_back()

    def _pack(self, listed: Sequence[tuple[bytes, KubernetesObject]]) -> None:
        """The bytes of each, as long as somebody holds it."""
        for start in range(0, len(listed), _TOGETHER):
            batch = listed[start : start + _TOGETHER]
            past = Past([wire for wire, _ in batch])
            for place, (_, obj) in enumerate(batch):
                self._held[id(obj)].pack(past, place)

    def _forget_news(self) -> None:
        for kept in self.kept:
            if kept is not None:
                _cool(kept)
        self.kept = [None] * PLACES
        self._bytes = 0
        self._sealed.clear()

    def _check(self, place: int, obj: KubernetesObject) -> None:
        sealed = self._sealed.get(place)
        if sealed is not None:
            _compare(obj, sealed)


def _cool(kept: Seen) -> None:
    held = kept[4]
    if held is not None:
        held.cool()


def _compare(obj: KubernetesObject, sealed: bytes) -> None:
    if obj.SerializeToString(deterministic=True) != sealed:
        name = f"{type(obj).__name__} {obj.metadata.namespace}/{obj.metadata.name}"
        raise AssertionError(f"{name} at {obj.metadata.resourceVersion} is shared and has been changed")


OBJECTS = SharedObjects()


def revision_of(wire: bytes) -> int:
    """The resource version at the end of the bytes that clients get (:mod:`kemu.emulated.objects.wire.wires`)."""
    return int(wire[len(wire.rstrip(_DIGITS)) :] or 0)
