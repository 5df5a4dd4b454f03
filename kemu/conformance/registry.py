"""The kinds of recorded cases. Each has two functions, whose modules are imported when they are needed.

``answer(case)`` returns what kemu decides, as JSON data; ``agrees(expect, answer)`` returns what of it differs from the
record, one line for each difference.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

Json = dict[str, Any]

_MODULES = {
    "apply": ("kemu.conformance.writes.sequences", "kemu.conformance.writes.sequences"),
    "bodies": ("kemu.conformance.writes.sequences", "kemu.conformance.writes.sequences"),
    "elections": ("kemu.conformance.controllers.elections", "kemu.conformance.controllers.elections"),
    "jobs": ("kemu.conformance.jobs.questions", "kemu.conformance.jobs.questions"),
    "kubelet": ("kemu.conformance.kubelet.decisions", "kemu.conformance.kubelet.judgements"),
    "patches": ("kemu.conformance.writes.patches", "kemu.conformance.writes.patches"),
    "quota": ("kemu.conformance.quotas.sequences", "kemu.conformance.quotas.sequences"),
    "scheduler": ("kemu.conformance.scheduler.questions", "kemu.conformance.scheduler.questions"),
    "volumes": ("kemu.conformance.volumes.questions", "kemu.conformance.volumes.questions"),
    "workloads": ("kemu.conformance.controllers.workloads", "kemu.conformance.controllers.workloads"),
    "timeline": ("kemu.conformance.scheduler.timelines", "kemu.conformance.scheduler.timelines"),
}


@dataclass(frozen=True, slots=True)
class Kind:
    name: str
    answer: Callable[[Json], Json]
    agrees: Callable[[Json, Json], list[str]]

    def judged(self, case: Json, expect: Json) -> tuple[Json, list[str]]:
        """The answer to a case and what of it differs from the record."""
        answered = self.answer(case)
        return answered, self.agrees(expect, answered)


def names() -> list[str]:
    """The kinds that there are."""
    return list(_MODULES)


def kind(name: str) -> Kind:
    """Raises KeyError."""
    answers, judges = (importlib.import_module(module) for module in _MODULES[name])
    return Kind(name, answers.answer, judges.agrees)
