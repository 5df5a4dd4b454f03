"""What a view of the page is."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Protocol

from kemu.emulated.objects.plain import Json
from kemu.lab.checks.history import History
from kemu.lab.tell.page.tables import Tables

Handler = Callable[[int, int, str, Any], None]
"""Takes the place of an event in the log, its time, its actor, and itself."""


@dataclass(frozen=True)
class Told:
    """All that is known when the data of a view is made; the run may still go on."""

    header: Mapping[str, Any]
    history: History
    verdict: Mapping[str, Any]
    """Verdict of verdict.json; empty while there is none."""
    wanted: frozenset[int]
    """Places of events that sentences of the first screen refer to."""


class View(Protocol):
    name: str
    """Its key in the data of a run."""

    def __init__(self, tables: Tables) -> None: ...

    @property
    def handlers(self) -> Mapping[str, Handler]:
        """By kind of event."""
        ...

    def data(self, told: Told) -> Json:
        """JSON; may be asked for more than once."""
        ...
