"""Lists of the indexes of a Job's pods, such as ``1,3-5,7``."""

from __future__ import annotations

from kemu.emulated.objects import names


def count(text: str, completions: int) -> int:
    """``validateIndexesFormat``. Raises ValueError."""
    last, total = None, 0
    for part in text.split(",") if text else ():
        first, end = _interval(part, completions)
        if last is not None and last >= first:
            raise ValueError(f"non-increasing order, previous: {last}, current: {first}")
        last = end
        total += last - first + 1
    return total


def overlap(completed: str, failed: str, completions: int) -> int | None:
    """The first index that is in both, as ``validateFailedIndexesNotOverlapCompleted`` walks through them; intervals
    that are wrong count for nothing."""
    if not completed or not failed:
        return None
    one, other = _intervals(completed, completions), _intervals(failed, completions)
    while one and other:
        if one[0][0] <= other[0][1] and other[0][0] <= one[0][1]:
            return max(one[0][0], other[0][0])
        (one if one[0][0] <= other[0][0] else other).pop(0)
    return None


def _intervals(text: str, completions: int) -> list[tuple[int, int]]:
    found = []
    for part in text.split(","):
        try:
            found.append(_interval(part, completions))
        except ValueError:
            continue
    return found


def _interval(part: str, completions: int) -> tuple[int, int]:
    limits = part.split("-")
    if len(limits) > 2:
        raise ValueError(
            f'the fragment "{part}" violates the requirement that an index interval can have at most two parts '
            "separated by '-'"
        )
    numbers = [_index(limit, completions) for limit in limits]
    if len(numbers) > 1 and numbers[0] >= numbers[1]:
        raise ValueError(f"non-increasing order, previous: {numbers[0]}, current: {numbers[1]}")
    return numbers[0], numbers[-1]


def _index(text: str, completions: int) -> int:
    number = names.int64(text)
    if number is None:
        raise ValueError(f'cannot convert string to integer for index: "{text}"')
    if number >= completions:
        raise ValueError(f'too large index: "{text}"')
    return number
