"""The events of the runtime: lives of actors and processes, connections, and gaps of the log."""

from __future__ import annotations

from collections.abc import Sequence

from kemu.runtime.runlog.events.declared import Event, field
from kemu.runtime.runlog.events.words import BAD, DECISION, GOOD, OUTCOME, Deed, Line, Names, of_actor

_RUNTIME = "runtime"
_ON_RAY = "runtime, on Ray"


class ActorStarted(Event, kind="actor.started", by=_RUNTIME):
    """An actor starts"""

    incarnation: int

    def live(self) -> Line | None:
        return of_actor("started", "is back", "actors are back", GOOD) if self.incarnation > 1 else None

    def deed(self, pod: str, names: Names) -> Deed:
        """The start of one that had ended."""
        return Deed("started again", "starts again", OUTCOME, "started again")


class ActorStopped(Event, kind="actor.stopped", by=_RUNTIME):
    """An actor was stopped"""


class ProcessUsed(Event, kind="process.used", by=_RUNTIME):
    """What a real program has used since the clock started, when it is stopped"""

    cpu: int
    """Time of all cores in ns, in user mode and in the kernel."""


class ActorCrashed(Event, kind="actor.crashed", by=_RUNTIME, on_page=True):
    """An actor has crashed"""

    LIVE = of_actor("crashed", "crashes", "actors crash", BAD)

    step: str = ""
    """At which a crash was to come."""

    def deed(self, pod: str, names: Names) -> Deed:
        return Deed("crashed" + (f" at its step {self.step}" if self.step else ""), "crashes", DECISION, "crashed")


class ActorExited(Event, kind="actor.exited", by=_RUNTIME, on_page=True):
    """An actor has ended itself; it is started again"""

    why: str

    def lines(self, before: Event | None) -> Sequence[Line]:
        return (self.live(),)

    def live(self) -> Line:
        return of_actor("exited", "ends itself", "end themselves", BAD, self.why)

    def deed(self, pod: str, names: Names) -> Deed:
        return Deed("crashed" + (f": {self.why}" if self.why else ""), "crashes", DECISION, "crashed")


class ActorFailed(Event, kind="actor.failed", by=_RUNTIME, on_page=True):
    """The code of an actor raised an exception that nothing handled; the run ends"""

    error: str
    """With the traceback."""

    def lines(self, before: Event | None) -> Sequence[Line]:
        error = self.error.partition("\n\n")[0]
        why = " · ".join(error.partition(" ended with ")[2].splitlines())
        return (of_actor("failed", "fails", "fail", BAD, why),)


class ActorResumed(Event, kind="actor.resumed", by=_RUNTIME):
    """In virtual time, a paused actor has done what was held back"""

    waited: list[int]
    """How long each step had waited, in ns, in the order in which they came."""
    done: list[int]
    """Their places in the order in which they were done."""


class ConnectionLost(Event, kind="net.connection_lost", by=_RUNTIME):
    """The connection to a peer broke"""

    peer: str


class ProcessDied(Event, kind="process.died", by=_ON_RAY, on_page=True):
    """A process of the run (`cell/store`, `raylet/0`, `gcs`, `etcd`) died, or a raylet of the cluster that it joined
    (`raylet/10.0.0.2`, by its address)"""

    pid: int
    """0: not known, of a cluster that was joined."""
    by: str
    """What of the run did it, such as a fault; empty: it came from outside."""


class ProcessStarted(Event, kind="process.started", by=_ON_RAY, on_page=True):
    """Another process has taken its place"""

    pid: int


class ProcessStopped(Event, kind="process.stopped", by=_ON_RAY, on_page=True):
    """A process was stopped (SIGSTOP)"""

    pid: int
    by: str
    """The fault; empty: the driver has seen that it came from outside."""
    start: int | None = None
    """Where it came from outside."""


class ProcessContinued(Event, kind="process.continued", by=_ON_RAY):
    """A process goes on"""

    pid: int


class ProcessClockCompared(Event, kind="process.clock", by=_ON_RAY):
    """The wall clock of the machine of a new process differs from the driver's, and is taken into account"""

    ahead_ns: int
    within_ns: int
    """By how much of virtual time that may be wrong."""


class ProcessStalled(Event, kind="process.stalled", by="every cell and the driver, on Ray; the `driver`, on `wall`"):
    """It did not run"""

    what: str
    """`stopped` (for at least 0.5 real seconds its thread neither ran nor waited for a CPU) or `lagged` (for at least
    2 s it ran, or waited for a CPU, and came to nothing else)."""
    start: int
    real_ns: int
    ran_ns: int
    queued_ns: int

    def live(self) -> Line:
        did = "stood still" if self.what == "stopped" else "lagged"
        return of_actor("stalled", f"{did} for {self.real_ns / 1e9:.1f} s", "times a process stalled", BAD)


class RunLost(Event, kind="run.lost", by="runtime (Ray only)", on_page=True):
    """What the run needed is gone; the verdict is unknown"""

    why: str


class LogMissing(Event, kind="log.missing", by="cell (Ray only)"):
    """Events of a process that died are lost"""

    known: int
    """How many are there."""
    what: str


class LogLate(Event, kind="log.late", by="cell (Ray only)"):
    """Events came too late to stand in their place"""

    events: int
    by_ns: int
    """At most."""


class LogCut(Event, kind="log.cut", by="`run.kemu`"):
    """Added by the reader where the file was cut off"""

    cut_bytes: int = field(key="bytes")
    """How many at its end are left out."""
