"""The events of Kueue's queues."""

from __future__ import annotations

from collections.abc import Sequence

from kemu.runtime.runlog.events.declared import Event
from kemu.runtime.runlog.events.words import BAD, GOOD, Line, whole
from kemu.runtime.words import short

_BY = "kueue"


class JobAdmitted(Event, kind="kueue.admitted", by=_BY, on_page=True):
    """A Job has quota for all of its pods, and is resumed"""

    job: str
    uid: str
    queue: str
    flavors: list[str]
    """As `flavor/resource`."""

    def lines(self, before: Event | None) -> Sequence[Line]:
        said = f"{short(self.job)} is admitted to {self.queue}"
        return (whole("scaled", said, said, GOOD, who="kueue"),)


class JobPreempted(Event, kind="kueue.preempted", by=_BY, on_page=True):
    """A Job has to give its quota up, and is suspended"""

    job: str
    uid: str
    queue: str
    by: str
    """For which Job."""
    reason: str

    def lines(self, before: Event | None) -> Sequence[Line]:
        said = f"{short(self.job)} is preempted in {self.queue}"
        return (whole("scaled", said, said, BAD, f"by {short(self.by)}: {self.reason}", who="kueue"),)
