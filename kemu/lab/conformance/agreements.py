"""Puts recorded cases to kemu and counts the agreement of each family."""

from __future__ import annotations

import json
import multiprocessing
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from kemu.emulated.objects.plain import Json
from kemu.lab.conformance import case_files, comparisons, registry

_WORTH_A_PROCESS = 50
"""With fewer cases than this, starting a process takes longer than answering them."""


@dataclass(slots=True)
class Tally:
    agree: int = 0
    total: int = 0


@dataclass(frozen=True, slots=True)
class Disagreement:
    id: str
    family: str
    differences: list[str]
    recorded: dict[str, Any]
    kemu: dict[str, Any] | None
    """None: kemu could not answer; the differences say why."""

    def to_json(self) -> dict[str, Any]:
        return {
            "id": self.id,
            "family": self.family,
            "differences": self.differences,
            "recorded": self.recorded,
            "kemu": self.kemu,
        }


@dataclass(slots=True)
class Report:
    families: dict[str, Tally] = field(default_factory=dict)
    disagreements: list[Disagreement] = field(default_factory=list)

    @property
    def agree(self) -> int:
        return sum(tally.agree for tally in self.families.values())

    @property
    def total(self) -> int:
        return sum(tally.total for tally in self.families.values())

    def to_json(self) -> dict[str, Any]:
        return {
            "families": {name: {"agree": tally.agree, "total": tally.total} for name, tally in self.families.items()},
            "agree": self.agree,
            "total": self.total,
            "disagreements": [one.to_json() for one in self.disagreements],
        }


def judge(
    kind: registry.Kind, questions: Iterable[case_files.Case], report: Report | None = None, *, jobs: int = 1
) -> Report:
    """Adds to ``report``. An exception counts as a disagreement and does not end the comparison.

    ``jobs`` is how many processes answer; the report does not depend on it.
    """
    report = Report() if report is None else report
    questions = list(questions)
    jobs = min(jobs, len(questions) // _WORTH_A_PROCESS)
    judged: Iterable[tuple[dict[str, Any] | None, list[str]]]
    if jobs > 1:
        # Spawned, not forked: the libraries below may have threads.
        with multiprocessing.get_context("spawn").Pool(jobs) as pool:
            judged = pool.starmap(_judge_of, [(kind.name, case) for case in questions], chunksize=16)
    else:
        judged = (_judge(kind, case) for case in questions)
    for case, (answer, differences) in zip(questions, judged, strict=True):
        tally = report.families.setdefault(case.family, Tally())
        tally.total += 1
        if differences:
            report.disagreements.append(Disagreement(case.id, case.family, differences, case.expect, answer))
        else:
            tally.agree += 1
    return report


def _judge_of(kind: str, case: case_files.Case) -> tuple[dict[str, Any] | None, list[str]]:
    answer, differences = _judge(registry.kind(kind), case)
    return (answer if differences else None), differences


def _judge(kind: registry.Kind, case: case_files.Case) -> tuple[dict[str, Any] | None, list[str]]:
    try:
        return kind.judged(case.question, case.expect)
    except Exception as error:  # any fault of kemu's is a disagreement like others
        return None, [f"kemu has no answer: {type(error).__name__}: {error}"]


def side_by_side(disagreement: Disagreement, width: int = 120) -> list[str]:
    """Where the two answers differ, ``place: recorded | kemu``, for a terminal of so many columns."""
    left, right = (_leaves(answer) for answer in (disagreement.recorded, disagreement.kemu))
    differing = [place for place in {**left, **right} if left.get(place) != right.get(place)]
    # Where several answers would be right, only the one that comes nearest is of interest.
    named = tuple(difference.partition(": ")[0] for difference in disagreement.differences)
    places = [place for place in differing if place.startswith(named)] or differing
    if not places:
        return []
    name = min(max(len(place) for place in places), width // 3)
    column = max(10, (width - name - 5) // 2)
    return [
        f"{_end(place, name):{name}}  {_cut(left.get(place, '-'), column):{column}} | "
        f"{_cut(right.get(place, '-'), column)}".rstrip()
        for place in places
    ]


def _leaves(answer: dict[str, Any] | None) -> dict[str, str]:
    leaves: dict[str, str] = {}
    if answer is not None:
        _collect("", answer, leaves)
    return leaves


def _collect(path: str, value: Json, leaves: dict[str, str]) -> None:
    """The values of an answer by their path in it, without empty ones."""
    if isinstance(value, dict):
        for key in sorted(value):
            _collect(f"{path}.{key}" if path else key, value[key], leaves)
    elif isinstance(value, list) and any(isinstance(item, dict | list) for item in value):
        for index, item in enumerate(value):
            _collect(f"{path}[{index}]", item, leaves)
    elif not comparisons.is_empty(value):
        if isinstance(value, float) and value.is_integer():
            value = int(value)
        leaves[path] = json.dumps(value, ensure_ascii=False)


def _cut(text: str, width: int) -> str:
    return text if len(text) <= width else text[: width - 1] + "…"


def _end(text: str, width: int) -> str:
    return text if len(text) <= width else "…" + text[1 - width :]
