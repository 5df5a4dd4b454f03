"""GPUs that pods share card by card: what a pod wants of them, and the annotation that says which cards it has.

A node offers ``kemu.dev/gpu-milli``, 1000 for each card, and ``nvidia.com/gpu``, one for each. A pod that wants whole
cards requests both, a pod that wants a part of one card requests its milli only. Sums over the node cannot say which
cards those are, so the component that binds the pod writes their numbers into its annotation, in the same request
(:data:`ANNOTATION`; annotations of a Binding become the pod's), and the kubelet refuses cards that are taken.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

GPU = "nvidia.com/gpu"
GPU_MILLI = "kemu.dev/gpu-milli"
ANNOTATION = "kemu.dev/gpu-card"
"""Numbers of cards, counted from 0: ``"2"``, or ``"0,1,3"``."""

WHOLE = 1000
"""Milli of one card."""


class Wanted(NamedTuple):
    """``cards`` cards, ``milli`` of each; both 0: no GPU."""

    cards: int
    milli: int


NOTHING = Wanted(0, 0)


def wanted(requests: Mapping[str, int]) -> Wanted:
    """``requests``: whole amounts by resource name."""
    milli = requests.get(GPU_MILLI, 0)
    cards = max(1, requests.get(GPU, 0))
    return Wanted(cards, milli // cards) if milli else NOTHING


def numbers(text: str) -> tuple[int, ...]:
    """The cards that an annotation names. Raises ValueError if it is no list of distinct numbers."""
    found = tuple(int(number) for number in text.split(",") if number.isdecimal())
    if not found or text != text_of(found) or len(dict.fromkeys(found)) < len(found):
        raise ValueError(f"must be distinct numbers of cards, as in 0,1: {text!r}")
    return found


def text_of(cards: tuple[int, ...]) -> str:
    return ",".join(map(str, cards))
