"""The events of faults and holds."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Self

from kemu.runtime.runlog.events.declared import Event, field
from kemu.runtime.runlog.events.words import BAD, GOOD, Line, whole
from kemu.runtime.words import short

_CHAOS = "chaos"
_HOLDS = "holds"


class FaultBegun(Event, kind="chaos.begin", by=_CHAOS, on_page=True):
    """A fault begins. Further keys are its parameters: whom it concerns (`actors`, `nodes`, `between`, `from` and `to`
    …), `step` and `powerOff` of a crash that has them"""

    id: str
    what: str

    @classmethod
    def of(cls, fault_id: str, what: str, parameters: Mapping[str, Any]) -> Self:
        event = cls(id=fault_id, what=what)
        event.update(parameters)
        return event

    @property
    def actors(self) -> list[str]:
        found: list[str] = self.get("actors", [])
        return found

    @property
    def nodes(self) -> list[str]:
        found: list[str] = self.get("nodes", [])
        return found

    @property
    def step(self) -> str:
        """For which a crash waits; empty: for none."""
        return str(self.get("step", ""))

    @property
    def parameters(self) -> dict[str, Any]:
        return {name: value for name, value in self.items() if name not in self.FIELDS}


class FaultEnded(Event, kind="chaos.end", by=_CHAOS, on_page=True):
    """A fault ends"""

    id: str
    hits: int = 0
    """How often it has struck."""

    def live(self) -> Line:
        return whole("chaos", f"the fault {self.id} is over", "faults are over", GOOD)


class FaultHit(Event, kind="chaos.hit", by=_CHAOS, on_page=True):
    """Whom a fault strikes, once for each actor or for each sender and receiver"""

    id: str
    actor: str
    peer: str = ""


class FaultRefused(Event, kind="chaos.refused", by="user/chaos"):
    """The annotation `kemu.dev/chaos` of an object holds no fault that can begin"""

    object_key: str = field(key="object")
    message: str


class RequestStruck(Event, kind="gateway.struck", by="gateway"):
    """A fault has struck a request of a client of `kemu up`"""

    id: str
    what: str
    agent: str = ""
    verb: str = ""
    group: str = ""
    resource: str = ""
    namespace: str = ""
    name: str = ""
    n: int
    """Which of all such requests it was."""
    effect: dict[str, Any]
    """How it was struck."""

    def live(self) -> Line:
        name = f"{self.namespace}/{self.name}" if self.namespace and self.name else self.name
        asked = " ".join(filter(None, (self.verb, self.resource, short(name or ""))))
        phrase = f"{self.what} strikes {self.agent or 'a client'}: {asked}"
        return whole("struck", phrase, "requests are struck", BAD, self.id)


class HoldKept(Event, kind="hold.kept", by=_HOLDS, on_page=True):
    """A hold keeps its message"""

    hold: int
    """Its place in the list."""
    source: str
    target: str
    what: str
    for_ns: int | None = None
    """Where it has no `until`."""


class HoldReleased(Event, kind="hold.released", by=_HOLDS, on_page=True):
    """A hold lets its message go"""

    hold: int
    why: str
    """`event` or `limit`."""
