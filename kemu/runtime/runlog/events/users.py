"""The events of the scenario's user and of the operator of its machines."""

from __future__ import annotations

from collections.abc import Sequence

from kemu.runtime.runlog.events.api import refusing_quota
from kemu.runtime.runlog.events.declared import Event, field
from kemu.runtime.runlog.events.subjects import OfPod
from kemu.runtime.runlog.events.words import BAD, GOOD, Line, whole

_USER = "the scenario's user"
_OPERATOR = "operator"


class UserActed(Event, kind="user.event", by=_USER, on_page=True):
    """An event of the scenario was done"""

    index: int
    what: str
    acts_as: str = field(key="as", default="")


class UserPodCreated(OfPod, kind="user.pod", by=_USER, on_page=True):
    """A pod of a workload was made"""

    workload: str
    n: int
    replaces: str


class UserRefused(Event, kind="user.refused", by=_USER, on_page=True):
    """What was refused: an event of the scenario, or a pod of a workload"""

    index: int | None = None
    what: str = ""
    name: str = ""
    workload: str = ""
    n: int | None = None
    replaces: str = ""
    reason: str
    message: str = ""

    def lines(self, before: Event | None) -> Sequence[Line]:
        asked = f"{self.what} {self.name}".rstrip() if "what" in self else f"a pod of {self.workload}"
        quota, limits = refusing_quota(self.message)
        how, why = (f"is refused by quota {quota}", limits) if quota else (f"is refused: {self.reason}", self.message)
        many = f"{self.what or self.workload} {how}"
        return (whole("refused", f"{asked} {how}", many, BAD, why, who="API server"),)


class DrainStepped(Event, kind="user.drain", by=_USER, on_page=True):
    """How an event `drain` goes on"""

    index: int
    node: str
    step: str
    """`cordoned`, `already cordoned`, `warns`, `evicting`, `waits` (429: again in 5 s), `gone`, `failed` (of one pod),
    `drained`, `refused`."""
    pod: str
    why: str


class MachineOff(Event, kind="machine.off", by=_OPERATOR, on_page=True):
    """A machine goes down"""

    LIVE = Line("machine", "goes off", "machines go off", BAD)
    SUBJECT = ("node",)

    node: str
    why: str
    """`crash shutdown`."""

    @property
    def is_shutdown(self) -> bool:
        return self.why == "shutdown"

    def lines(self, before: Event | None) -> Sequence[Line]:
        return _of_machine(self.node, "is off, shut down", BAD) if self.is_shutdown else ()


class MachineOn(Event, kind="machine.on", by=_OPERATOR, on_page=True):
    """A machine boots"""

    LIVE = Line("machine", "boots", "machines boot", GOOD)
    SUBJECT = ("node",)

    node: str
    boot: str
    """The id of the boot."""

    def lines(self, before: Event | None) -> Sequence[Line]:
        """After a shutdown; that it is on again after a crash is told as the end of the fault."""
        return _of_machine(self.node, "boots", GOOD) if isinstance(before, MachineOff) and before.is_shutdown else ()


def _of_machine(node: str, says: str, tone: str) -> Sequence[Line]:
    return (whole("node", f"the machine of {node} {says}", says, tone, who="user"),)


class RunEnded(Event, kind="run.ended", by=_OPERATOR, on_page=True):
    """The run has ended; what follows is the shutdown. A run that was interrupted has no such event"""

    reason: str
    """`idle deadline stopped`."""
    still: bool = True
    """False where housekeeping goes on in an idle run (Ray)."""
