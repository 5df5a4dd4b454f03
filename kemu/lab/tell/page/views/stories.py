"""The story of the run, as the terminal tells it but longer, each line with its event."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from kemu.lab.tell import stories
from kemu.lab.tell.happenings import Happening
from kemu.lab.tell.page.tables import FAULTS, Tables, micros
from kemu.lab.tell.page.views.view import Handler, Told

MOST_LINES = 250
FEW_LINES = 14
"""On the first screen, where no side lost."""


class Stories:
    name = "story"

    def __init__(self, tables: Tables) -> None:
        self._tables = tables

    @property
    def handlers(self) -> Mapping[str, Handler]:
        return {}

    def data(self, told: Told) -> dict[str, Any]:
        found = stories.find(told.history, verdict=told.verdict)
        story = stories.told(found, MOST_LINES)
        short = stories.told([one for one in found if one.kind != "check"], FEW_LINES)
        return {
            "lines": [self._line(line) for line in story.lines],
            "left_out": dict(story.left_out),
            "short": [self._line(line) for line in short.lines],
        }

    def _line(self, line: stories.Line) -> dict[str, Any]:
        first = line.told[0]
        pods = dict.fromkeys(self._tables.known_pod(one.pod.uid) for one in line.told if one.pod is not None)
        return {
            "time": micros(line.time_ns),
            "until": micros(line.until_ns),
            "when": line.when(),
            "kind": line.kind,
            "who": line.who,
            "what": line.what,
            "why": line.why,
            "tone": line.tone,
            "pods": list(pods)[:12],
            "event": self.place(first),
        }

    def place(self, one: Happening) -> int:
        """The place of the event that it follows from."""
        subjects = [one.pod.uid, one.pod.key] if one.pod is not None else [one.node, *one.whom, FAULTS]
        return self._tables.place(one.time_ns, *subjects)
