"""The worker of one probe: probes one container periodically, and keeps the result.

Mirrors ``worker`` of ``pkg/kubelet/prober`` (``run``, ``doProbe``): the ticks of its period, probes by hand in between,
thresholds, the hold after a failed liveness or startup probe, and what stands for a result before the first one.

A worker whose probes are known to succeed sleeps through them: they would change nothing. It wakes at the first one
that may fail, and counts those in between (:meth:`ProbeWorker._settle`), so that its results are those of a worker that
probes at every tick.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol

from kemu.emulated.kubelet.pods.containers import SIDECAR, Container
from kemu.emulated.kubelet.probes.answers import LIVENESS, READINESS, STARTUP
from kemu.messages.k8s import core_v1_pb2
from kemu.runtime.env import SECOND_NS, Clock, Timer

SUCCESS, FAILURE, UNKNOWN = "success", "failure", "unknown"

_FIRST = {STARTUP: UNKNOWN, READINESS: FAILURE, LIVENESS: SUCCESS}
"""The result of a container that has not been probed yet."""


class Answering(Protocol):
    """As :class:`kemu.emulated.kubelet.probes.answers.Answers`."""

    @property
    def output(self) -> str | None: ...

    def latency_ns(self, at_ns: int) -> int: ...

    def fails(self, at_ns: int, number: int) -> bool: ...

    def next_doubt(self, at_ns: int, period_ns: int, number: int, slowest_ns: int) -> int | None: ...


class ProbeHost(Protocol):
    """The probes of one pod."""

    def answers(self, probe: ProbeWorker) -> Answering:
        """Answers of the container as it was started last."""

    def updated(self, probe: ProbeWorker) -> None:
        """The result has changed."""

    def failed(self, probe: ProbeWorker, *, timed_out: bool, output: str | None) -> None:
        """A single probe has failed. ``output``: what it printed; None: as its handler would."""


class ProbeWorker:
    """``spec``: the Probe, with its defaults set."""

    __slots__ = (
        "_answers",
        "_clock",
        "_delay_ns",
        "_doubt_ns",
        "_failures",
        "_host",
        "_is_adopted",
        "_is_probing",
        "_is_stopped",
        "_is_triggered",
        "_last",
        "_next_ns",
        "_number",
        "_on_hold",
        "_period_ns",
        "_run",
        "_sleeps",
        "_start",
        "_started_ns",
        "_successes",
        "_timeout_ns",
        "_timer",
        "container",
        "kind",
        "result",
    )

    def __init__(
        self,
        clock: Clock,
        kind: str,
        spec: core_v1_pb2.Probe,
        container: Container,
        host: ProbeHost,
        *,
        is_adopted: bool = False,
    ) -> None:
        """``is_adopted``: the container ran long before this kubelet started."""
        self.kind = kind
        self.container = container
        self.result: str | None = None
        """Result of the container as it was started last. None: it was not seen since."""
        self._clock = clock
        self._host = host
        self._period_ns = (spec.periodSeconds or 10) * SECOND_NS
        self._timeout_ns = (spec.timeoutSeconds or 1) * SECOND_NS
        self._delay_ns: int = spec.initialDelaySeconds * SECOND_NS
        self._successes: int = spec.successThreshold or 1
        self._failures: int = spec.failureThreshold or 3
        self._is_adopted = is_adopted
        self._answers: Answering | None = None
        self._start = 0
        """The start of the container that the result is of; 0: none."""
        self._number = 0
        """Number of the next probe since that start."""
        self._last: str | None = None
        """What the last probe said …"""
        self._run = 0
        """… and how many said so in a row."""
        self._on_hold = False
        """No more probes until the container starts anew."""
        self._is_probing = False
        self._is_triggered = False
        """A probe by hand is due when this one is over."""
        self._is_stopped = False
        self._sleeps = False
        """All probes at the ticks until the timer succeed."""
        self._doubt_ns: int | None = None
        """While it sleeps, the first tick whose probe may fail; None: none will. In real time it is looked at late."""
        self._started_ns = 0
        """The start of the container that they ask."""
        self._next_ns = 0
        """The next tick that has not been looked at."""
        self._timer: Timer | None = None

    @property
    def current(self) -> str | None:
        """The result, if it is of the container as it was started last."""
        return self.result if self._start == _start_of(self.container) else None

    def begin(self, delay_ns: int = 0) -> None:
        """Look for the first time after ``delay_ns``, and every period from then on."""
        self._next_ns = self._clock.now_ns() + delay_ns
        if delay_ns:
            self._is_probing = True
            self._at(self._next_ns, self._begun)
        else:
            self._look()

    def _begun(self) -> None:
        self._timer = None
        self._is_probing = False
        self._look()

    def trigger(self) -> None:
        """Probe by hand, now or when the probe that goes on is over; the period counts from then on."""
        if self._is_stopped:
            return
        self._is_triggered = True
        if not self._is_probing:
            self._settle()
        if not self._is_probing:
            self._go_on()

    def changed(self) -> None:
        """The state of the container, or what it answers, has changed: decide anew when to wake."""
        if not (self._is_stopped or self._is_probing):
            self._settle()
        if not (self._is_stopped or self._is_probing):
            self._plan()

    def forget_answers(self) -> None:
        """The annotation has changed."""
        if not self._is_probing:
            self._settle()
        self._answers = None
        self.changed()

    def stop(self) -> None:
        self._is_stopped = True
        self._cancel()

    # --- one probe ---------------------------------------------------------------------------------------------------

    def _look(self) -> None:
        """A tick."""
        self._pass_ticks(self._clock.now_ns() + 1)
        self._probe()
        self._go_on()

    def _go_on(self) -> None:
        """Whatever is due now, one after the other; then sleep."""
        while not (self._is_probing or self._is_stopped):
            now_ns = self._clock.now_ns()
            if self._is_triggered:
                self._is_triggered = False
                self._next_ns = now_ns + self._period_ns
                self._probe()
            elif self._next_ns < now_ns:
                # Ticks that came while a probe was going on are one.
                self._pass_ticks(now_ns + 1)
                self._probe()
            else:
                self._plan()
                return

    def _probe(self) -> None:
        """``doProbe``, up to the answer."""
        container = self.container
        start = _start_of(container)
        if not start:
            return
        # What follows from a new result comes when this is over.
        self._is_probing = True
        is_enabled = self._is_enabled()
        if start != self._start:
            self._see(start)
        if self._on_hold or not container.is_up:
            if not self._on_hold:
                self._set(FAILURE)
            self._is_probing = False
            return
        now_ns = self._clock.now_ns()
        if now_ns < self._first_ns() or not is_enabled:
            self._is_probing = False
            return
        if self._answers is None:
            self._answers = self._host.answers(self)
        since_ns = now_ns - container.started_ns
        latency_ns = self._answers.latency_ns(since_ns)
        fails = self._answers.fails(since_ns, self._number)
        self._number += 1
        timed_out = latency_ns > self._timeout_ns
        if latency_ns:
            self._at(
                now_ns + min(latency_ns, self._timeout_ns), self._answered, start, not (fails or timed_out), timed_out
            )
        else:
            self._conclude(start, succeeded=not fails, timed_out=False)
            self._is_probing = False

    def _see(self, start: int) -> None:
        """A container that was not seen before."""
        self._start, self._number, self._answers, self.result = start, 0, None, None
        has_started = self.kind == STARTUP and self.container.kind == SIDECAR and not self.container.holds_start
        if not self._is_adopted:
            self._set(_FIRST[self.kind])
            if has_started:
                # A worker says first that such a sidecar has started (issue 136910 of Kubernetes), as below, and takes
                # it back at once: the pod is synced twice.
                self._host.updated(self)
        elif has_started:
            self._set(SUCCESS)
        self._is_adopted = False
        self._on_hold = False

    def _answered(self, start: int, succeeded: bool, timed_out: bool) -> None:
        self._timer = None
        self._conclude(start, succeeded=succeeded, timed_out=timed_out)
        self._is_probing = False
        self._go_on()

    def _conclude(self, start: int, *, succeeded: bool, timed_out: bool) -> None:
        """``doProbe``, from the answer on."""
        if not succeeded:
            output = None if self._answers is None else self._answers.output
            self._host.failed(self, timed_out=timed_out, output=output)
        self._count(SUCCESS if succeeded else FAILURE, 1)
        if self._run < (self._successes if succeeded else self._failures):
            return
        result = SUCCESS if succeeded else FAILURE
        if self.kind == STARTUP or (self.kind == LIVENESS and not succeeded):
            self._on_hold = True
            self._run = 0
        self._set(result)

    def _count(self, said: str, times: int) -> None:
        if not times:
            return
        self._run = self._run + times if self._last == said else times
        self._last = said

    def _set(self, result: str) -> None:
        if result != self.result:
            self.result = result
            self._host.updated(self)

    # --- time --------------------------------------------------------------------------------------------------------

    def _is_enabled(self) -> bool:
        """Until the container has passed its startup probe, no other probe asks it."""
        return self.container.holds_start == (self.kind == STARTUP)

    def _first_ns(self) -> int:
        """Before that the container is not probed. The status manager, which is asked for the start, keeps whole
        seconds (``normalizeStatus``)."""
        return self.container.started_ns // SECOND_NS * SECOND_NS + self._delay_ns

    def _plan(self) -> None:
        """Wake at the next tick that may change something."""
        self._sleeps = False
        container = self.container
        start = _start_of(container)
        if not start:
            return self._cancel()
        tick_ns = self._next_ns
        if start == self._start:
            if self._on_hold or (self.result == FAILURE and not container.is_up):
                return self._cancel()
            if not container.is_up:
                # The next tick finds that out.
                return self._at(tick_ns, self._wake)
            if not self._is_enabled():
                return self._cancel()
            first_ns = self._first_ns()
            if tick_ns < first_ns:
                tick_ns = self._tick_from(first_ns)
            elif self.result == SUCCESS:
                certain = self._certain()
                self._sleeps, self._started_ns = True, container.started_ns
                self._doubt_ns = None if certain is None else tick_ns + certain * self._period_ns
                if self._doubt_ns is None:
                    return self._cancel()
                tick_ns = self._doubt_ns
        return self._at(tick_ns, self._wake)

    def _certain(self) -> int | None:
        """How many probes from the next tick on succeed for sure; None: all."""
        if self._answers is None:
            self._answers = self._host.answers(self)
        slowest_ns = min(self._timeout_ns, self._period_ns - 1)
        since_ns = self._next_ns - self.container.started_ns
        return self._answers.next_doubt(since_ns, self._period_ns, self._number, slowest_ns)

    def _wake(self) -> None:
        self._timer = None
        self._settle()
        self._look()

    def _settle(self) -> None:
        """Count the probes that the worker has slept through; ticks of this very instant, and what it was to wake for,
        are still to come."""
        now_ns = self._clock.now_ns()
        until_ns = now_ns
        if self._sleeps:
            until_ns = now_ns + 1 if self._doubt_ns is None else min(now_ns + 1, self._doubt_ns)
        if self._next_ns < until_ns:
            passed = self._pass_ticks(until_ns)
            if self._sleeps:
                self._number += passed
                last_ns = self._next_ns - self._period_ns
                assert self._answers is not None
                answered_ns = last_ns + self._answers.latency_ns(last_ns - self._started_ns)
                if answered_ns > now_ns:
                    # This one still waits for its answer.
                    passed -= 1
                    self._is_probing = True
                    self._at(answered_ns, self._answered, self._start, True, False)
                self._count(SUCCESS, passed)
        self._sleeps = False

    def _pass_ticks(self, until_ns: int) -> int:
        """Go to the first tick from then on; returns how many were before."""
        passed = max(0, -((self._next_ns - until_ns) // self._period_ns))
        self._next_ns += passed * self._period_ns
        return passed

    def _tick_from(self, when_ns: int) -> int:
        return self._next_ns - (self._next_ns - when_ns) // self._period_ns * self._period_ns

    def _at(self, when_ns: int, callback: Callable[..., Any], *args: Any) -> None:
        self._cancel()
        self._timer = self._clock.call_at_ns(when_ns, callback, *args)

    def _cancel(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None


def _start_of(container: Container) -> int:
    """The number of its latest start; 0: it has not started."""
    return container.restarts + 1 if container.has_started else 0
