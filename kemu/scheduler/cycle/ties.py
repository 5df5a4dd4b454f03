"""Which of several nodes with the highest score is taken when no lot decides."""

from __future__ import annotations

from collections.abc import Collection


def top_of_heap(places: Collection[int]) -> int:
    """Which of the highest scores ``heap.Init`` of Go puts on top (``newSortedNodeScores``), by their places.

    A parent stays above a child of equal score, and of two equal children the left one rises.
    """
    above = set(places)
    for child in places:
        while child:
            child = (child - 1) // 2
            above.add(child)
    place = 0
    while place not in places:
        left = 2 * place + 1
        place = left if left in above else left + 1
    return place
