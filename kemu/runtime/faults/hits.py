"""Whom each fault has struck: the runtime tells, and the run log gets each actor or link once."""

from __future__ import annotations

from collections.abc import Callable

from kemu.runtime.runlog.events import Event, FaultHit, RequestStruck

CHAOS = "chaos"
"""The name under which faults stand in the run log."""
STRUCK = RequestStruck.KIND
"""Event: a fault has struck a request of a client of kemu up."""

Log = Callable[[Event], None]


class Hits:
    """Hits of one runtime, or of one process of it."""

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
            self._log(FaultHit(id=fault, actor=actor, peer=peer) if peer else FaultHit(id=fault, actor=actor))

    def of(self, fault: str) -> int:
        """How often it has struck so far."""
        return self._counts.get(fault, 0)
