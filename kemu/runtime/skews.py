"""Clocks that are wrong: by how much the clock of an actor's machine differs from the true time of the run.

All runtimes use this; they ask only for actors whose clock a fault has touched. A machine has two
clocks, as the Go runtime reads them: the monotonic one, which drifts with the oscillator but never jumps, and by which
timers run; and the wall clock, which goes into timestamps, can be set, and is set right when a fault ends.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from kemu.runtime.env import SECOND_NS

SKEW, JUMP = "clockSkew", "clockJump"


class _Skewing(NamedTuple):
    """A skew in force."""

    by_ns: int
    drift: float
    begin_ns: int


class Skew:
    """Skew of the clocks of one machine. Times called true are the run's, those called own are its monotonic
    clock's."""

    def __init__(self) -> None:
        self._segments = [(0, 0, 0.0)]
        """True and own time at which each drift began, and that drift."""
        self._jumps_ns = 0
        """What the wall clock was set ahead for good."""
        self._corrected_ns = 0
        """Drift that was taken back from the wall clock."""
        self._faults: dict[str, _Skewing] = {}

    def begin(self, fault: str, what: str, parameters: Mapping[str, Any], true_ns: int) -> None:
        by_ns = round(parameters["by"] * SECOND_NS)
        if what == JUMP:
            self._jumps_ns += by_ns
            return
        self._faults[fault] = _Skewing(by_ns, parameters["drift"], true_ns)
        self._set_drift(true_ns)

    def end(self, fault: str, true_ns: int) -> None:
        """The wall clock is set right, as by NTP; the monotonic one goes at the right pace from here on."""
        skewing = self._faults.pop(fault)
        self._corrected_ns += round((true_ns - skewing.begin_ns) * skewing.drift)
        self._set_drift(true_ns)

    def _set_drift(self, true_ns: int) -> None:
        drift = sum(skewing.drift for skewing in self._faults.values())
        if drift != self._segments[-1][2]:
            self._segments.append((true_ns, self.own_ns(true_ns), drift))

    def own_ns(self, true_ns: int) -> int:
        """What the monotonic clock shows at a time from the latest change on."""
        base_ns, base_own_ns, drift = self._segments[-1]
        passed_ns = true_ns - base_ns
        return base_own_ns + passed_ns + round(passed_ns * drift)

    def true_ns(self, own_ns: int) -> int:
        """When the monotonic clock shows that for the first time, give or take a few ns; also when it has shown it."""
        base_ns, base_own_ns, drift = next(one for one in reversed(self._segments) if one[1] <= own_ns or not one[1])
        passed_ns = own_ns - base_own_ns
        found_ns = base_ns + int(passed_ns / (1 + drift))
        while base_own_ns + (found_ns - base_ns) + round((found_ns - base_ns) * drift) < own_ns:
            found_ns += 1
        return found_ns

    @property
    def wall_ahead_ns(self) -> int:
        """By how much the wall clock is ahead of the Unix time of the monotonic one."""
        return self._jumps_ns - self._corrected_ns + sum(skewing.by_ns for skewing in self._faults.values())


class Skews:
    """Skews of all machines of a process whose clocks a fault has touched, by the names of their actors."""

    def __init__(self) -> None:
        self.by_actor: dict[str, Skew] = {}
        self._actors: dict[str, list[str]] = {}
        """Whom each fault in force concerns."""

    def begin(self, fault: str, what: str, parameters: Mapping[str, Any], true_ns: int) -> list[tuple[str, Skew]]:
        """Returns whom it concerns."""
        actors = list(parameters["actor"])
        if what == SKEW:
            self._actors[fault] = actors
        concerned = [(name, self.by_actor.setdefault(name, Skew())) for name in actors]
        for _, skew in concerned:
            skew.begin(fault, what, parameters, true_ns)
        return concerned

    def end(self, fault: str, true_ns: int) -> list[tuple[str, Skew]]:
        """The same; none for a fault that is not there."""
        concerned = [(name, self.by_actor[name]) for name in self._actors.pop(fault, ())]
        for _, skew in concerned:
            skew.end(fault, true_ns)
        return concerned
