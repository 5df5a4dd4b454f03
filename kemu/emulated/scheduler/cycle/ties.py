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


class Heap:
    """The places of scores, the highest score first; equal ones in the order of Go's ``container/heap``."""

    def __init__(self, scores: list[int]) -> None:
        self._scores = scores
        self._places = list(range(len(scores)))
        for place in range(len(scores) // 2 - 1, -1, -1):
            self._down(place, len(scores))

    def pop(self) -> int:
        places = self._places
        last = len(places) - 1
        places[0], places[last] = places[last], places[0]
        self._down(0, last)
        return places.pop()

    def _down(self, above: int, end: int) -> None:
        scores, places = self._scores, self._places
        while (below := 2 * above + 1) < end:
            right = below + 1
            if right < end and scores[places[right]] > scores[places[below]]:
                below = right
            if scores[places[below]] <= scores[places[above]]:
                return
            places[above], places[below] = places[below], places[above]
            above = below
