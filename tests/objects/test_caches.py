"""Caches of texts that clients choose do not grow with the texts."""

from __future__ import annotations

import tracemalloc

from kemu.emulated.objects import names
from kemu.emulated.objects.caches import MOST, SHORT, text_cache

LONG = 1 << 20
TEXTS = 100


def test_label_values_that_are_long_are_not_kept_for_ever() -> None:
    tracemalloc.start()
    try:
        for number in range(TEXTS):
            assert names.label_value(f"{'a' * LONG}{number}")
        now, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
        names.label_value.cache_clear()
    assert now < 2 * MOST, f"{TEXTS} of a MiB each"


def test_short_texts_are_remembered_up_to_the_number_and_long_ones_up_to_their_bytes() -> None:
    asked: list[str] = []

    @text_cache(3)
    def letters(text: str) -> int:
        asked.append(text)
        return len(text)

    for text in ("a", "b", "a", "c", "a", "d", "a"):
        letters(text)
    assert asked == ["a", "b", "c", "d"]
    long = "x" * (SHORT + 1)
    assert [letters(long), letters(long), asked.count(long)] == [len(long), len(long), 1]
    assert letters("y" * (MOST + 1)) == MOST + 1
    assert letters("a") == 1
    assert asked[-1] == "a", "all was forgotten"
