"""From one run to its rows.

    attempts = rows.Attempts()
    execution = executions.execute(scenario, watcher=attempts.take)
    kept = rows.of_run(execution.verdict, execution.history, attempts)

Neighbours: :mod:`tables` says what the columns mean; :mod:`files` writes the rows of many runs.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from kemu.checks.history import History
from kemu.sweep.cells import CellRows


class Attempts:
    """Keeps what a run log says of scheduling attempts, which a history does not keep."""

    def take(self, time_ns: int, actor: str, kind: str, data: Mapping[str, Any]) -> None:
        """Has the signature of a ``LogSink``."""
        raise NotImplementedError


def of_run(verdict: Mapping[str, Any], history: History, attempts: Attempts | None = None) -> CellRows:
    """``verdict``: as in verdict.json. Without ``attempts`` that table stays empty."""
    raise NotImplementedError
