"""What plugins may answer. Anything else fails the attempt with an error, as in kube-scheduler, and names the plugin.

Go's compiler refuses answers of a wrong type; here they become error statuses. Where a call cannot return a status, it
raises :class:`InvalidAnswer`, which ends the scheduling cycle (:mod:`kemu.emulated.scheduler.scheduling_cycles`).
"""

from __future__ import annotations

from typing import Any

import numpy as np

from kemu.emulated.scheduler.cache.columns import IntArray
from kemu.emulated.scheduler.framework.statuses import ERROR, Status

MIN_SCORE, MAX_SCORE = 0, 100


class InvalidAnswer(Exception):
    """A plugin answered what no plugin may."""

    def __init__(self, text: str, plugin: str) -> None:
        super().__init__(text)
        self.status = Status(ERROR, (text,), plugin)


def shown(answer: Any) -> str:
    """A wrong answer for a message. No repr of objects: it may hold an address, which differs from run to run."""
    if answer is None or isinstance(answer, bool | int | float | str):
        return repr(answer)
    name = type(answer).__name__
    return f"{'an' if name[0] in 'aeiou' else 'a'} {name}"


def status_of(method: str, answer: object, instead: str = "None or a Status") -> Status:
    """The answer, or an error where it is no status."""
    return answer if isinstance(answer, Status) else Status(ERROR, (_wrong(method, answer, instead),))


def answer_of(point: str, plugin: str, method: str, answer: object) -> Status:
    """The status that a plugin returned at an extension point, with its name; an error says where it came from."""
    status = status_of(method, answer)
    if status.rejected:
        return status._replace(plugin=plugin)
    return Status(status.code, (f'running {point} plugin "{plugin}": {status.message}',), plugin)


def whole_scores(plugin: str, method: str, scores: object, nodes: int) -> IntArray:
    """The raw scores of so many nodes. Raises InvalidAnswer where they are no whole numbers (``RunScorePlugins``)."""
    wrong = ""
    if isinstance(scores, list):
        for score in scores:
            if isinstance(score, bool) or not isinstance(score, int | np.integer):
                wrong = _wrong(method, score, "a whole number")
                break
    elif not (isinstance(scores, np.ndarray) and scores.shape == (nodes,) and scores.dtype.kind in "iu"):
        wrong = _wrong(method, scores, f"an array of whole numbers for {nodes} nodes")
    if wrong:
        raise InvalidAnswer(f'running Score plugins: plugin "{plugin}" failed with: {wrong}', plugin)
    return np.array(scores, dtype=np.int64)


def whole_numbers(plugin: str, method: str, answer: object) -> tuple[int, ...]:
    """A whole number, or a tuple of them, as a tuple. Raises InvalidAnswer."""
    found = answer if isinstance(answer, tuple) else (answer,)
    for part in found:
        if isinstance(part, bool) or not isinstance(part, int | np.integer):
            wrong = _wrong(method, part, "a whole number or a tuple of them")
            raise InvalidAnswer(f'running PostFilter plugins: plugin "{plugin}" failed with: {wrong}', plugin)
    return found


def check_range(plugin: str, scores: IntArray) -> None:
    """Raises InvalidAnswer for a score out of range after NormalizeScore (``RunScorePlugins``)."""
    wrong = scores[(scores < MIN_SCORE) | (scores > MAX_SCORE)]
    if len(wrong):
        text = f"returns an invalid score {wrong[0]}, it should in the range of [{MIN_SCORE}, {MAX_SCORE}]"
        text = f'applying score defaultWeights on Score plugins: plugin "{plugin}" {text} after normalizing'
        raise InvalidAnswer(text, plugin)


def _wrong(method: str, answer: object, instead: str) -> str:
    return f"{method} returned {shown(answer)}; it must return {instead}"
