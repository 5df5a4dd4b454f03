"""What a kube-scheduler counts of its attempts, from its metrics (``pkg/scheduler/metrics``, v1.36.3)."""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass, field
from typing import Self

from kemu.runtime.env import SECOND_NS
from kemu.runtime.runlog.events import AttemptsCounted

_SAMPLE = re.compile(r"(scheduler_\w+)(?:\{(.*)\})? (\S+)")
_RESULT = re.compile(r'(?:^|,)result="([^"]*)"')
_ATTEMPTS = "scheduler_schedule_attempts_total"
_DURATIONS = "scheduler_scheduling_attempt_duration_seconds"
_VICTIMS = "scheduler_preemption_victims"


@dataclass
class Counts:
    """Since it was started; what it does not list was 0. All of its profiles together."""

    attempts: Counter[str] = field(default_factory=Counter)
    """By result."""
    histograms: dict[str, float] = field(default_factory=dict)
    """By name, with ``_sum`` and ``_count``."""

    @classmethod
    def read(cls, text: str) -> Self:
        """From the text format of Prometheus."""
        found = cls()
        for line in text.splitlines():
            match = _SAMPLE.match(line)
            if match is None:
                continue
            name, labels, value = match[1], match[2] or "", match[3]
            if name == _ATTEMPTS:
                result = _RESULT.search(labels)
                found.attempts[result[1] if result else ""] += int(float(value))
            elif name.startswith((_DURATIONS, _VICTIMS)) and name.endswith(("_sum", "_count")):
                found.histograms[name] = found.histograms.get(name, 0.0) + float(value)
        return found

    def event(self, told: int) -> AttemptsCounted:
        """``told``: attempts that the log has told."""

        def of(name: str) -> float:
            return self.histograms.get(name, 0.0)

        return AttemptsCounted(
            attempts=dict(sorted(self.attempts.items())),
            durations=int(of(f"{_DURATIONS}_count")),
            took=round(of(f"{_DURATIONS}_sum") * SECOND_NS),
            preemptions=int(of(f"{_VICTIMS}_count")),
            victims=int(of(f"{_VICTIMS}_sum")),
            told=told,
        )
