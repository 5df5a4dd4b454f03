"""A run log, event by event, into the data of all views of the page.

    fold = Fold(reader.header)
    for place, event in enumerate(reader):
        fold.feed(place, *event)
    fold.close()
    data = fold.data(verdict)

While a run goes on, ``data`` may be asked for at any time.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from pathlib import Path
from typing import Any

from kemu.lab.checks.history import History
from kemu.lab.tell.page import tables
from kemu.lab.tell.page.views import (
    attempts,
    budgets,
    classes,
    events,
    nodes,
    pods,
    preemptions,
    queues,
    stories,
    traces,
    view,
    watches,
)
from kemu.runtime.runlog.frames import FILE_NAME, Entry, Reader

VIEWS: tuple[type[view.View], ...] = (
    events.Events,
    nodes.Nodes,
    queues.Queues,
    attempts.Attempts,
    traces.Traces,
    preemptions.Preemptions,
    watches.Watches,
    budgets.Budgets,
    classes.Classes,
    stories.Stories,
    pods.Pods,
)
"""In the order in which their data is made: pods come last, as others may name further ones."""


class Fold:
    """The fold of one run."""

    def __init__(self, header: Mapping[str, Any]) -> None:
        self.header = header
        self.history = History(keep_changes=False)
        self.tables = tables.Tables()
        self._views = [make(self.tables) for make in VIEWS]
        self._handlers: dict[str, list[view.Handler]] = {}
        for one in self._views:
            for kind, handler in one.handlers.items():
                self._handlers.setdefault(kind, []).append(handler)

    def feed(self, place: int, time_ns: int, actor: str, kind: str, data: Mapping[str, Any]) -> None:
        """The next event, and its place in the log."""
        self.history.feed(time_ns, actor, kind, data)
        for handler in self._handlers.get(kind, ()):
            handler(place, time_ns, actor, data)

    def close(self) -> None:
        """The log is over."""
        for one in self._views:
            if isinstance(one, traces.Traces):
                one.close()

    def data(self, verdict: Mapping[str, Any], wanted: Collection[int] = ()) -> dict[str, Any]:
        """``wanted``: places of events that sentences outside the views refer to."""
        told = view.Told(self.header, self.history, verdict, frozenset(wanted))
        found = {one.name: one.data(told) for one in self._views}
        return {
            "name": str(self.header.get("variant", "")),
            "end": tables.micros(self.history.now_ns),
            "actors": self.tables.actors(),
            **found,
            "strings": self.tables.strings.all(),
        }


def of_events(header: Mapping[str, Any], events: Iterable[Entry]) -> Fold:
    """The fold of a run that is over."""
    fold = Fold(header)
    for place, event in enumerate(events):
        fold.feed(place, *event)
    fold.close()
    return fold


def of_folder(folder: Path) -> Fold:
    """The fold of the run in a folder. Raises RunLogError."""
    with Reader(folder / FILE_NAME) as reader:
        return of_events(reader.header, reader)
