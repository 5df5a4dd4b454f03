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
    "admitted": ("kemu.lab.conformance.writes.admitted", "kemu.lab.conformance.writes.admitted"),
    "apply": ("kemu.lab.conformance.writes.sequences", "kemu.lab.conformance.writes.sequences"),
    "attachments": ("kemu.lab.conformance.controllers.attachments", "kemu.lab.conformance.controllers.attachments"),
    "autoscaling": ("kemu.lab.conformance.controllers.autoscaling", "kemu.lab.conformance.controllers.autoscaling"),
    "bodies": ("kemu.lab.conformance.writes.sequences", "kemu.lab.conformance.writes.sequences"),
    "claims": ("kemu.lab.conformance.controllers.devices", "kemu.lab.conformance.controllers.devices"),
    "cluster-autoscaling": (
        "kemu.lab.conformance.controllers.cluster_autoscaling",
        "kemu.lab.conformance.controllers.autoscaling",
    ),
    "devices": ("kemu.lab.conformance.scheduler.devices", "kemu.lab.conformance.scheduler.devices"),
    "descheduler": ("kemu.lab.conformance.controllers.descheduling", "kemu.lab.conformance.controllers.descheduling"),
    "elections": ("kemu.lab.conformance.controllers.elections", "kemu.lab.conformance.controllers.elections"),
    "fields": ("kemu.lab.conformance.writes.sequences", "kemu.lab.conformance.writes.sequences"),
    "garbage": ("kemu.lab.conformance.controllers.garbage", "kemu.lab.conformance.controllers.garbage"),
    "jobs": ("kemu.lab.conformance.jobs.questions", "kemu.lab.conformance.jobs.questions"),
    "kubelet": ("kemu.lab.conformance.kubelet.decisions", "kemu.lab.conformance.kubelet.judgements"),
    "metadata": ("kemu.lab.conformance.writes.sequences", "kemu.lab.conformance.writes.sequences"),
    "namespaces": ("kemu.lab.conformance.controllers.namespaces", "kemu.lab.conformance.controllers.namespaces"),
    "patches": ("kemu.lab.conformance.writes.patches", "kemu.lab.conformance.writes.patches"),
    "queues": ("kemu.lab.conformance.controllers.queueing", "kemu.lab.conformance.controllers.queueing"),
    "quota": ("kemu.lab.conformance.quotas.sequences", "kemu.lab.conformance.quotas.sequences"),
    "requests": ("kemu.lab.conformance.requests.sequences", "kemu.lab.conformance.requests.sequences"),
    "scheduler": ("kemu.lab.conformance.scheduler.questions", "kemu.lab.conformance.scheduler.questions"),
    "statuses": ("kemu.lab.conformance.writes.sequences", "kemu.lab.conformance.writes.sequences"),
    "volumes": ("kemu.lab.conformance.volumes.questions", "kemu.lab.conformance.volumes.questions"),
    "warnings": ("kemu.lab.conformance.writes.sequences", "kemu.lab.conformance.writes.sequences"),
    "workloads": ("kemu.lab.conformance.controllers.workloads", "kemu.lab.conformance.controllers.workloads"),
    "timeline": ("kemu.lab.conformance.scheduler.timelines", "kemu.lab.conformance.scheduler.timelines"),
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
