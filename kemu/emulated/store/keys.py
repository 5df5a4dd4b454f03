"""Keys in order, and the ranges of etcd: a key and a range end.

An empty range end means the key alone, the byte 0 everything from the key on, anything else the half-open interval.
"""

from __future__ import annotations

from bisect import bisect_left, insort
from collections.abc import Iterable

from kemu.emulated.objects.wire.key_ranges import FROM_KEY

_CHUNK = 512
"""Approximate number of keys in a chunk; one with twice as many is split."""


def is_empty_range(key: bytes, end: bytes) -> bool:
    """Whether no key can be in the range."""
    return bool(end) and end != FROM_KEY and key >= end


class SortedKeys:
    """A sorted set of keys, as a list of short sorted lists: cheap to change and to cut a range out of.

    The caller knows whether a key is in it: :meth:`add` takes only new keys, :meth:`remove` only present ones.
    """

    __slots__ = ("_chunks", "_lasts", "_size")

    def __init__(self, keys: Iterable[bytes] = ()) -> None:
        ordered = sorted(keys)
        self._size = len(ordered)
        self._chunks = [ordered[i : i + _CHUNK] for i in range(0, len(ordered), _CHUNK)]
        self._lasts = [chunk[-1] for chunk in self._chunks]
        """The last key of each chunk; no chunk is empty."""

    def __len__(self) -> int:
        return self._size

    def add(self, key: bytes) -> None:
        lasts = self._lasts
        self._size += 1
        if not lasts:
            lasts.append(key)
            self._chunks.append([key])
            return
        position = bisect_left(lasts, key)
        if position == len(lasts):
            position -= 1
            chunk = self._chunks[position]
            chunk.append(key)
            lasts[position] = key
        else:
            chunk = self._chunks[position]
            insort(chunk, key)
        if len(chunk) > 2 * _CHUNK:
            self._chunks.insert(position + 1, chunk[_CHUNK:])
            del chunk[_CHUNK:]
            lasts.insert(position, chunk[-1])

    def remove(self, key: bytes) -> None:
        position = bisect_left(self._lasts, key)
        chunk = self._chunks[position]
        place = bisect_left(chunk, key)
        assert chunk[place] == key
        self._size -= 1
        del chunk[place]
        if not chunk:
            del self._chunks[position]
            del self._lasts[position]
        elif place == len(chunk):
            self._lasts[position] = chunk[-1]

    def between(self, start: bytes, end: bytes, limit: int = 0) -> list[bytes]:
        """The keys from ``start`` to before ``end`` (``FROM_KEY``: to the last), at most ``limit`` if that is not 0."""
        first, offset = self._place(start)
        last, rest = (len(self._chunks), 0) if end == FROM_KEY else self._place(end)
        if (first, offset) >= (last, rest):
            return []
        chunks = self._chunks
        if first == last:
            found = chunks[first][offset:rest]
        else:
            found = chunks[first][offset:]
            for position in range(first + 1, last):
                if limit and len(found) >= limit:
                    break
                found += chunks[position]
            else:
                if rest:
                    found += chunks[last][:rest]
        return found[:limit] if limit else found

    def count(self, start: bytes, end: bytes) -> int:
        """How many keys :meth:`between` has without a limit."""
        first, offset = self._place(start)
        last, rest = (len(self._chunks), 0) if end == FROM_KEY else self._place(end)
        if (first, offset) >= (last, rest):
            return 0
        return sum(map(len, self._chunks[first:last])) - offset + rest

    def _place(self, key: bytes) -> tuple[int, int]:
        """The place of the first key that is not less: which chunk, and where in it."""
        position = bisect_left(self._lasts, key)
        if position == len(self._lasts):
            return position, 0
        return position, bisect_left(self._chunks[position], key)
