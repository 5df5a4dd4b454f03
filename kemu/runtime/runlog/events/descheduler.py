"""The events of the descheduler."""

from __future__ import annotations

from kemu.runtime.runlog.events.controllers import OfPodDeletion
from kemu.runtime.runlog.events.declared import Event
from kemu.runtime.runlog.events.words import EVICTED, OUTCOME, Deed, Names, Traced, because

_BY = "descheduler"


class PodDescheduled(OfPodDeletion, kind="descheduler.eviction", by=_BY, on_page=True):
    """The eviction of a pod returned; `start` is when it was decided"""

    LIVE = EVICTED

    strategy: str
    profile: str

    def deed(self, pod: str, names: Names) -> Deed | None:
        why = because(self.strategy)
        return Deed(f"evicted {pod}{why}", f"evicts {pod}", OUTCOME, "evicts") if self.ok else None

    def traced(self) -> Traced:
        return Traced("evicted", self.why or self.strategy, "Evicted" if self.ok else "TooManyRequests")


class DeschedulingRound(Event, kind="descheduler.round", by=_BY):
    """A round has ended"""

    evicted: int
    """How many pods."""
    why: str
    """Why it did nothing, if so."""
