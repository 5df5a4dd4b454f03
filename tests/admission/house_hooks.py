"""Admission hooks for tests."""

from __future__ import annotations

from typing import Any

from tests.gateway.custom import converters


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


def gizmos(obj: dict[str, Any], api_version: str) -> dict[str, Any]:
    """Converts the kind of :mod:`tests.gateway.custom.conversions`."""
    return converters.converted(obj, api_version)


def renames(obj: dict[str, Any], api_version: str) -> dict[str, Any]:
    return {**obj, "apiVersion": api_version, "metadata": {**obj["metadata"], "name": "other"}}


def returns_a_set(obj: dict[str, Any], api_version: str) -> Any:
    return {api_version}
