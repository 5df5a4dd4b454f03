"""Sorted keys against a sorted list, and range ends."""

from __future__ import annotations

import bisect
import random

from hypothesis import given, settings
from hypothesis import strategies as st

from kemu.emulated.objects.wire import key_ranges
from kemu.emulated.store import keys

short_keys = st.binary(min_size=1, max_size=3)


@settings(deadline=None)
@given(short_keys, st.binary(max_size=3))
def test_the_prefix_end_is_above_everything_with_the_prefix_and_above_nothing_else(prefix: bytes, other: bytes) -> None:
    end = key_ranges.prefix_end(prefix)
    for key in (prefix, prefix + other, prefix + b"\xff" * 3, other):
        if key:
            assert (key >= prefix and (end == key_ranges.FROM_KEY or key < end)) == key.startswith(prefix)


def test_prefix_end_as_etcds_clients() -> None:
    assert key_ranges.prefix_end(b"/registry/") == b"/registry0"
    assert key_ranges.prefix_end(b"a\xff\xff") == b"b"
    assert key_ranges.prefix_end(b"\xff\xff") == b"\0"
    assert key_ranges.prefix_end(b"") == b"\0"


def test_empty_ranges() -> None:
    assert keys.is_empty_range(b"b", b"a")
    assert keys.is_empty_range(b"b", b"b")
    assert not keys.is_empty_range(b"b", b"")
    assert not keys.is_empty_range(b"b", b"\0")
    assert not keys.is_empty_range(b"b", b"c")


def _between(ordered: list[bytes], start: bytes, end: bytes) -> list[bytes]:
    return [key for key in ordered if key >= start and (end == b"\0" or key < end)]


@settings(deadline=None)
@given(st.lists(short_keys, max_size=40), st.lists(st.tuples(short_keys, short_keys), min_size=1), st.integers(0, 5))
def test_ranges_of_a_few_keys(content: list[bytes], ranges: list[tuple[bytes, bytes]], limit: int) -> None:
    ordered = sorted(set(content))
    sorted_keys = keys.SortedKeys(set(content))
    for start, end in [*ranges, (b"\0", b"\0")]:
        expected = _between(ordered, start, end)
        assert sorted_keys.between(start, end) == expected
        assert sorted_keys.count(start, end) == len(expected)
        assert sorted_keys.between(start, end, limit) == (expected[:limit] if limit else expected)


def test_many_keys_come_and_go() -> None:
    chance = random.Random(3)
    sorted_keys = keys.SortedKeys()
    model: list[bytes] = []
    for step in range(12_000):
        key = b"%05d" % chance.randrange(6_000)
        place = bisect.bisect_left(model, key)
        if place < len(model) and model[place] == key:
            # First it grows, then it shrinks to nothing.
            if chance.random() < (0.2 if step < 6_000 else 0.9):
                del model[place]
                sorted_keys.remove(key)
        elif step < 6_000:
            model.insert(place, key)
            sorted_keys.add(key)
        if step % 200 == 0:
            start, end = sorted((b"%05d" % chance.randrange(6_000), b"%05d" % chance.randrange(6_000)))
            limit = chance.choice((0, 1, 700))
            expected = _between(model, start, end)
            assert sorted_keys.between(start, end, limit) == (expected[:limit] if limit else expected)
            assert sorted_keys.count(start, end) == len(expected)
            assert len(sorted_keys) == len(model)
    for key in model:
        sorted_keys.remove(key)
    assert sorted_keys.between(b"\0", b"\0") == []
    sorted_keys.add(b"again")
    assert sorted_keys.between(b"\0", b"\0") == [b"again"]
