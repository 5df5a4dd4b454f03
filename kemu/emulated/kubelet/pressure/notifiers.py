"""The memory threshold notifiers: with ``kernelMemcgNotification`` the kernel wakes the eviction manager at the second
at which memory crosses a threshold, in either direction.

What the kernel compares is all that is charged, cached files included; so a notifier asks for the capacity less the
threshold, plus what was cached as ``inactive_file`` when it asked. It asks anew at a pass of the manager, though not
within 10 s: in between, inactive files that come or go make it speak too early or too late. Mirrors
``memory_threshold_notifier`` and ``threshold_notifier_linux`` of ``pkg/kubelet/eviction``, and
``__mem_cgroup_threshold`` of Linux.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

from kemu.emulated.kubelet.settings import thresholds
from kemu.emulated.kubelet.usage import curves, machines
from kemu.emulated.objects.amounts import quantities
from kemu.runtime.env import SECOND_NS, Env, Timer

REFRESH_NS = 10 * SECOND_NS
"""From one request to the kernel to the next, at least (``notifierRefreshInterval``). In the real kubelet a little more
must have passed; as its passes take time themselves, every regular one qualifies all the same."""

_SIGNALS = (thresholds.MEMORY, thresholds.ALLOCATABLE_MEMORY)


class Notifier:
    """Notifier of one threshold."""

    __slots__ = ("is_above", "is_busy", "is_pending", "level", "threshold")

    def __init__(self, threshold: thresholds.Threshold) -> None:
        self.threshold = threshold
        self.level: int | None = None
        """In bytes; None: the kernel was not asked yet."""
        self.is_above = False
        """More than that was charged when the kernel last spoke, or was asked. The kernel speaks as soon as it is as
        much, when the manager would find nothing yet; real memory has gone on by the time that it looks."""
        self.is_busy = False
        """The pass that it brought about still kills pods …"""
        self.is_pending = False
        """… and the kernel has spoken again meanwhile."""


class Notifiers:
    """Notifiers of one machine; none of them speaks before :meth:`ask`."""

    def __init__(
        self,
        env: Env,
        meter: machines.Meter,
        configured: Iterable[thresholds.Threshold],
        on_due: Callable[[], None],
    ) -> None:
        """``on_due``: called at a second at which :meth:`crossed` may have something to tell."""
        self._clock = env.clock
        self._meter = meter
        self._every = [Notifier(one) for one in configured if one.signal in _SIGNALS and one.active]
        self._on_due = on_due
        self._asked_ns: int | None = None
        self._timer: Timer | None = None

    @property
    def are_there(self) -> bool:
        return bool(self._every)

    def ask(self, now_ns: int, *, anew: bool = False) -> None:
        """At a pass of the manager. ``anew``: however short ago the last time was."""
        if self._asked_ns is not None and now_ns - self._asked_ns < REFRESH_NS and not anew:
            return
        self._asked_ns = now_ns
        for one in self._every:
            charged = self._charged(one, now_ns, now_ns)
            inactive = max(0, charged.used - self._working_set(one, now_ns))
            one.level = self._least(one) + inactive
            one.is_above = charged.used > one.level

    def plan(self, now_ns: int, until_ns: int) -> None:
        """The next whole second, up to the next pass, at which one of them speaks; without one, ask again then."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        if self._is_any_crossed(now_ns):
            self._at(now_ns)
            return
        first, last = now_ns // SECOND_NS + 1, until_ns // SECOND_NS
        found = next((at for at in range(first, last + 1) if self._is_any_crossed(at * SECOND_NS)), None)
        self._at(until_ns if found is None else found * SECOND_NS, background=found is None)

    def may_speak(self, now_ns: int, end_ns: int) -> bool:
        """Whether so much may be charged until then that one of them speaks, whatever is cached by then."""

        def is_enough(first: int, last: int) -> bool:
            span = first * SECOND_NS, last * SECOND_NS
            return any(self._charged(one, *span).used > self._least(one) for one in self._every)

        return curves.first_second(is_enough, now_ns // SECOND_NS + 1, end_ns // SECOND_NS + 1) is not None

    def crossed(self, now_ns: int) -> list[Notifier]:
        """Those that speak now; each of them once."""
        found = [one for one in self._every if self._is_crossed(one, now_ns)]
        for one in found:
            one.is_above = not one.is_above
        return found

    def _at(self, when_ns: int, *, background: bool = False) -> None:
        self._timer = self._clock.call_at_ns(when_ns, self._due, background=background)

    def _due(self) -> None:
        self._timer = None
        self._on_due()

    def _is_any_crossed(self, at_ns: int) -> bool:
        return any(self._is_crossed(one, at_ns) for one in self._every)

    def _is_crossed(self, one: Notifier, at_ns: int) -> bool:
        return one.level is not None and one.is_above != (self._charged(one, at_ns, at_ns).used > one.level)

    def _charged(self, one: Notifier, first_ns: int, last_ns: int) -> machines.Used:
        is_of_machine = one.threshold.signal == thresholds.MEMORY
        return (self._meter.charged if is_of_machine else self._meter.pods_charged)(first_ns, last_ns)

    def _working_set(self, one: Notifier, now_ns: int) -> int:
        is_of_machine = one.threshold.signal == thresholds.MEMORY
        return (self._meter.working_set if is_of_machine else self._meter.pods_working_set)(now_ns, now_ns).used

    def _least(self, one: Notifier) -> int:
        """The level where nothing is cached as inactive."""
        machine = self._meter.machine
        is_of_machine = one.threshold.signal == thresholds.MEMORY
        capacity = machine.memory_bytes if is_of_machine else machine.pods_memory_bytes
        return capacity - one.threshold.value.of(capacity).nano // quantities.NANO
