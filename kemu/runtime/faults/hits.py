"""Whom each fault has struck: the runtime tells, and the run log gets each actor or link once."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

CHAOS = "chaos"
"""The name under which faults stand in the run log."""
STRUCK = "gateway.struck"
"""Event: a fault has struck a request of a client of kemu up."""

Log = Callable[[str, Mapping[str, Any]], None]
"""Takes the kind of an event and its data."""


class Hits:
    """Of one runtime, or of one process of it."""

    def __init__(self, log: Log) -> None:
        self._log = log
        self._counts: dict[str, int] = {}
        """Strikes by the id of the fault."""
        self._struck: dict[tuple[str, str, str], None] = {}

    def strike(self, fault: str, actor: str, peer: str = "") -> None:
        """The fault has hit the actor or, with ``peer``, what the actor sends to it."""
        self._counts[fault] = self._counts.get(fault, 0) + 1
        who = (fault, actor, peer)
        if who not in self._struck:
            self._struck[who] = None
            self._log("chaos.hit", {"id": fault, "actor": actor, **({"peer": peer} if peer else {})})

    def of(self, fault: str) -> int:
        """How often it has struck so far."""
        return self._counts.get(fault, 0)
