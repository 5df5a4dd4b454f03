"""The events of the scenario's user and of the operator of its machines."""

from __future__ import annotations

from kemu.runtime.runlog.events.declared import Event, field
from kemu.runtime.runlog.events.subjects import OfPod
from kemu.runtime.runlog.events.words import BAD, GOOD, Told

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

    TOLD = Told("machine", "goes off", "machines go off", BAD)

    node: str
    why: str
    """`crash shutdown`."""


class MachineOn(Event, kind="machine.on", by=_OPERATOR, on_page=True):
    """A machine boots"""

    TOLD = Told("machine", "boots", "machines boot", GOOD)

    node: str
    boot: str
    """The id of the boot."""


class RunEnded(Event, kind="run.ended", by=_OPERATOR, on_page=True):
    """The run has ended; what follows is the shutdown. A run that was interrupted has no such event"""

    reason: str
    """`idle deadline stopped`."""
    still: bool = True
    """False where housekeeping goes on in an idle run (Ray)."""
