"""Admission hooks for tests."""

from __future__ import annotations

from typing import Any


def small_only(review: Any) -> None:
    if len(review.name or "") > 3:
        review.deny("too long a name")


def label(review: Any) -> None:
    review.object["metadata"].setdefault("labels", {})["drawn"] = str(review.random.randrange(1000))
    review.warn(f"labelled for {review.user['username']}")


def breaks(review: Any) -> None:
    raise RuntimeError("a mistake")


def returns(review: Any) -> str:
    return "no"


def unfit(review: Any) -> None:
    review.object["metadata"]["labels"] = {"a": {1, 2}}
