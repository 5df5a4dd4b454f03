"""The order in which Go's ``sort.Slice`` leaves elements that are equal.

Of up to twelve elements, equal ones keep their order, as with Python's sort. Of more, a quicksort (``pdqsort``) moves
them about, always in the same way: it draws no lots. Where nothing else tells two victims apart, their order decides
which of them is spared. So this makes the same comparisons and the same swaps, on numbers that stand for the keys.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

T = TypeVar("T")

_INSERTION = 12
"""So many elements are sorted by insertion, which is stable."""
_NINTHER = 50
_SHIFTED = 50
_STEPS = 5
_MOST_SWAPS = 12
_UNKNOWN, _INCREASING, _DECREASING = range(3)
_MASK = (1 << 64) - 1


def sort(elements: list[T], key: Callable[[T], Any], is_eager: Callable[[T], bool] | None = None) -> None:
    """In place, as ``sort.Slice`` with ``key(one) < key(other)``.

    ``is_eager``: of elements that go before every equal one with which they are compared, whichever of the two is
    asked.
    """
    eager = is_eager is not None and any(is_eager(one) for one in elements)
    if len(elements) <= _INSERTION and not eager:
        elements.sort(key=key)
        return
    keys = [key(one) for one in elements]
    ranks = {value: rank for rank, value in enumerate(sorted(set(keys)))}
    if len(ranks) == len(keys):
        elements.sort(key=key)
        return
    sorter = _Sorter([ranks[value] for value in keys])
    if eager and is_eager is not None:
        sorter.eager = {ranks[value] for value, one in zip(keys, elements, strict=True) if is_eager(one)}
    sorter.sort(0, len(keys), len(keys).bit_length())
    elements[:] = [elements[place] for place in sorter.places]


class _Sorter:
    """``ranks``: what is compared; ``places``: where the elements came from."""

    def __init__(self, ranks: list[int]) -> None:
        self.ranks = ranks
        self.places = list(range(len(ranks)))
        self.eager: set[int] = set()
        """Ranks whose elements go before equal ones."""

    def less(self, one: int, other: int) -> bool:
        rank, against = self.ranks[one], self.ranks[other]
        return rank < against or (rank == against and rank in self.eager)

    def swap(self, one: int, other: int) -> None:
        ranks, places = self.ranks, self.places
        ranks[one], ranks[other] = ranks[other], ranks[one]
        places[one], places[other] = places[other], places[one]

    def sort(self, low: int, high: int, limit: int) -> None:
        """What is at ``low`` up to before ``high``; after ``limit`` bad pivots by heap."""
        balanced = partitioned = True
        while True:
            length = high - low
            if length <= _INSERTION:
                self._insert(low, high)
                return
            if limit == 0:
                self._heap(low, high)
                return
            if not balanced:
                self._scatter(low, length)
                limit -= 1
            pivot, hint = self._pivot(low, length)
            if hint == _DECREASING:
                self._reverse(low, high)
                pivot = high - 1 - (pivot - low)
                hint = _INCREASING
            if balanced and partitioned and hint == _INCREASING and self._insert_some(low, high):
                return
            if low > 0 and not self.less(low - 1, pivot):
                low = self._partition_equal(low, high, pivot)
                continue
            middle, partitioned = self._partition(low, high, pivot)
            left, right = middle - low, high - middle
            if left < right:
                balanced = left >= length // 8
                self.sort(low, middle, limit)
                low = middle + 1
            else:
                balanced = right >= length // 8
                self.sort(middle + 1, high, limit)
                high = middle

    def _insert(self, low: int, high: int) -> None:
        for first in range(low + 1, high):
            place = first
            while place > low and self.less(place, place - 1):
                self.swap(place, place - 1)
                place -= 1

    def _insert_some(self, low: int, high: int) -> bool:
        """Mend a few places of what is nearly sorted; whether it is sorted now."""
        place = low + 1
        for _ in range(_STEPS):
            while place < high and not self.less(place, place - 1):
                place += 1
            if place == high:
                return True
            if high - low < _SHIFTED:
                return False
            self.swap(place, place - 1)
            if place - low >= 2:
                left = place - 1
                while left >= 1 and self.less(left, left - 1):
                    self.swap(left, left - 1)
                    left -= 1
            if high - place >= 2:
                right = place + 1
                while right < high and self.less(right, right - 1):
                    self.swap(right, right - 1)
                    right += 1
        return False

    def _heap(self, low: int, high: int) -> None:
        size = high - low
        for root in range((size - 1) // 2, -1, -1):
            self._sift(root, size, low)
        for last in range(size - 1, -1, -1):
            self.swap(low, low + last)
            self._sift(0, last, low)

    def _sift(self, root: int, size: int, low: int) -> None:
        while (child := 2 * root + 1) < size:
            if child + 1 < size and self.less(low + child, low + child + 1):
                child += 1
            if not self.less(low + root, low + child):
                return
            self.swap(low + root, low + child)
            root = child

    def _scatter(self, low: int, length: int) -> None:
        """Break patterns, with numbers that depend on the length alone (xorshift)."""
        state, bits = length, (1 << length.bit_length()) - 1
        first = low + length // 4 * 2 - 1
        for place in range(first, first + 3):
            state ^= state << 13 & _MASK
            state ^= state >> 7
            state ^= state << 17 & _MASK
            other = state & bits
            if other >= length:
                other -= length
            self.swap(place, low + other)

    def _pivot(self, low: int, length: int) -> tuple[int, int]:
        """A place, and what the comparisons say of the order of all."""
        quarter = length // 4
        places = [low + quarter, low + 2 * quarter, low + 3 * quarter]
        swaps = 0
        if length >= _NINTHER:
            for number, place in enumerate(places):
                places[number], more = self._median(place - 1, place, place + 1)
                swaps += more
        pivot, more = self._median(*places)
        swaps += more
        hint = _INCREASING if swaps == 0 else _DECREASING if swaps == _MOST_SWAPS else _UNKNOWN
        return pivot, hint

    def _median(self, one: int, two: int, three: int) -> tuple[int, int]:
        swaps = 0
        if self.less(two, one):
            one, two, swaps = two, one, swaps + 1
        if self.less(three, two):
            two, three, swaps = three, two, swaps + 1
        if self.less(two, one):
            one, two, swaps = two, one, swaps + 1
        return two, swaps

    def _reverse(self, low: int, high: int) -> None:
        last = high - 1
        while low < last:
            self.swap(low, last)
            low, last = low + 1, last - 1

    def _partition(self, low: int, high: int, pivot: int) -> tuple[int, bool]:
        """Where the pivot is now, and whether all was in its place already."""
        self.swap(low, pivot)
        left, right = low + 1, high - 1
        left, right = self._skip(left, right, low)
        if left > right:
            self.swap(right, low)
            return right, True
        while left <= right:
            self.swap(left, right)
            left, right = self._skip(left + 1, right - 1, low)
        self.swap(right, low)
        return right, False

    def _skip(self, left: int, right: int, pivot: int) -> tuple[int, int]:
        while left <= right and self.less(left, pivot):
            left += 1
        while left <= right and not self.less(right, pivot):
            right -= 1
        return left, right

    def _partition_equal(self, low: int, high: int, pivot: int) -> int:
        """Elements equal to the pivot go first; where the greater ones begin. None is smaller."""
        self.swap(low, pivot)
        left, right = low + 1, high - 1
        while True:
            while left <= right and not self.less(low, left):
                left += 1
            while left <= right and self.less(low, right):
                right -= 1
            if left > right:
                return left
            self.swap(left, right)
            left, right = left + 1, right - 1
