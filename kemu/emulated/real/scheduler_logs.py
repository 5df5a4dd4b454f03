"""What a real kube-scheduler says of its attempts, in its log (``pkg/scheduler/schedule_one.go`` and the executor of
preemptions), as events of the run log.

It needs ``--v=2`` and ``--vmodule`` of :mod:`.components`. Bindings are told by the API server's audit log, which knows
of those that failed, too.
"""

from __future__ import annotations

import bisect
import datetime as dt
import json
import re
from collections import deque
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

from kemu.emulated.real.scheduler_metrics import Counts
from kemu.emulated.real.transactions import KnownPods
from kemu.runtime.env import SECOND_NS
from kemu.runtime.host import wall_clocks
from kemu.runtime.runlog.events import (
    ApiRequest,
    Event,
    PodAttempted,
    PodBound,
    PreemptionPlanned,
    RequestRefused,
    VictimDeleted,
)

_LINE = re.compile(r'^([IWEF])(\d{4} \S+)\s+\d+ \S+\] "((?:[^"\\]|\\.)*)"(.*)$')
_PAIR = re.compile(r' ([\w.]+)=("(?:[^"\\]|\\.)*"|\S+)')

_LINES_LATE_NS = SECOND_NS // 5
"""A line may come so much later than an answer of the same process."""

Hear = Callable[[int, Event], object]


class Line(NamedTuple):
    """One line of a log of a Kubernetes component (klog, structured)."""

    severity: str
    """``I W E F``."""
    stamp: str
    """Month, day and time; the year is not said."""
    text: str
    pairs: str
    """What comes after it, as it stands."""

    def unix_ns(self, year: int) -> int:
        """Unix time (ns), by a clock that shows UTC."""
        date = dt.datetime.strptime(f"{year}{self.stamp}", "%Y%m%d %H:%M:%S.%f").replace(tzinfo=dt.UTC)
        return int(date.replace(microsecond=0).timestamp()) * SECOND_NS + date.microsecond * 1000

    def values(self) -> dict[str, str]:
        return {name: value_of(value) for name, value in _PAIR.findall(self.pairs)}


def parse(line: str) -> Line | None:
    """None: it is no structured line."""
    match = _LINE.match(line)
    return None if match is None else Line(*match.groups())


def value_of(text: str) -> str:
    """A value, without its quotes."""
    if not text.startswith('"'):
        return text
    try:
        value: str = json.loads(text)
    except ValueError:
        return text[1:-1]
    return value


@dataclass(slots=True)
class _Attempt:
    number: int
    start_ns: int
    bound_ns: int = 0
    """When its binding began."""
    node: str = ""


class SchedulerLog:
    """The log of one kube-scheduler. ``hear``: Unix time in ns, event; the ``start`` of an event is Unix time, too.

    Where no audit log tells of bindings, ``bindings`` hears what an API server would say of those of ``actor``, and
    ``hear`` what the scheduler would.
    """

    def __init__(
        self,
        known: KnownPods,
        hear: Hear,
        *,
        actor: str = "",
        bindings: Hear | None = None,
    ) -> None:
        self._known = known
        self._hear = hear
        self._actor = actor
        self._bindings = bindings
        self._year = dt.datetime.now(dt.UTC).year
        self._attempts: dict[str, _Attempt] = {}
        """The latest of each pod."""
        self._held: deque[tuple[int, str]] = deque()
        self._ended_ns: list[int] = []
        """When attempts have ended, since it was started."""
        self._counted: tuple[int, int, Counts] | None = None
        """When it was asked for its counts, when it answered, and what."""

    def line(self, text: str) -> None:
        """Take the next line, which waits until :meth:`read`."""
        self._held.append((wall_clocks.wall_ns(), text))

    def counted(self, asked_ns: int, answered_ns: int, counts: Counts) -> None:
        """What it had counted between these times (Unix, ns): told beside what its lines tell."""
        self._counted = asked_ns, answered_ns, counts

    def read(self, until_ns: int) -> None:
        """Hear of what had come before that time (Unix, ns): by then etcd has told which pods there are."""
        while self._held and self._held[0][0] <= until_ns:
            line = parse(self._held.popleft()[1])
            if line is not None and (say := _SAYINGS.get(line.text)) is not None:
                say(self, line.unix_ns(self._year), line.values())
        if self._counted is not None and until_ns > self._counted[1] + _LINES_LATE_NS:
            self._tell_counts(*self._counted)
            self._counted = None

    def _tell_counts(self, asked_ns: int, answered_ns: int, counts: Counts) -> None:
        # Nobody knows on which side of its answer an attempt is that has ended meanwhile.
        least, most = (bisect.bisect_right(self._ended_ns, time_ns) for time_ns in (asked_ns, answered_ns))
        told = min(max(sum(counts.attempts.values()), least), most)
        self._hear(answered_ns, counts.event(told))

    def _starts(self, now_ns: int, said: Mapping[str, str]) -> None:
        self._ended_ns.clear()

    def _begins(self, now_ns: int, said: Mapping[str, str]) -> None:
        before = self._attempts.get(said["pod"])
        self._attempts[said["pod"]] = _Attempt(before.number + 1 if before is not None else 1, now_ns)

    def _binds(self, now_ns: int, said: Mapping[str, str]) -> None:
        attempt = self._attempts.get(said["pod"])
        if attempt is not None:
            attempt.bound_ns, attempt.node = now_ns, said["node"]

    def _bound(self, now_ns: int, said: Mapping[str, str]) -> None:
        evaluated, feasible = int(said.get("evaluatedNodes", 0)), int(said.get("feasibleNodes", 0))
        self._tell_binding(now_ns, said["pod"], "")
        self._ends(now_ns, said["pod"], "scheduled", said["node"], evaluated=evaluated, feasible=feasible)

    def _unschedulable(self, now_ns: int, said: Mapping[str, str]) -> None:
        message = said.get("err", "no nodes available to schedule pods")
        self._ends(now_ns, said["pod"], "unschedulable", "", message)

    def _error(self, now_ns: int, said: Mapping[str, str]) -> None:
        attempt = self._attempts.get(said.get("pod", ""))
        if attempt is not None and attempt.node:
            # Its binding failed, which is an event of its own.
            self._tell_binding(now_ns, said["pod"], said.get("err", ""))
            self._ends(now_ns, said["pod"], "scheduled", attempt.node)
        elif attempt is not None:
            # One message for all pods that fail alike.
            name = f"pod {self._known.uids.get(said['pod'], '')}({said['pod']})"
            self._ends(now_ns, said["pod"], "error", "", said.get("err", "").replace(name, "the pod"))

    def _tell_binding(self, now_ns: int, pod: str, error: str) -> None:
        attempt = self._attempts.get(pod)
        if self._bindings is None or attempt is None:
            return
        uid, start_ns = self._known.uids.get(pod, ""), attempt.bound_ns or now_ns
        reason = next((reason for text, reason in _REASONS if text in error), "Unknown") if error else ""
        bound = PodBound(
            pod=pod, uid=uid, node=attempt.node, start=start_ns, ok=not error, reason=reason, message=error
        )
        self._hear(now_ns, bound)
        namespace, _, name = pod.partition("/")
        common: dict[str, Any] = {
            "verb": "bind", "resource": "pods", "namespace": namespace, "name": name, "uid": uid, "by": self._actor,
            "start": start_ns,
        }  # fmt: skip
        if error:
            self._bindings(now_ns, RequestRefused(**common, reason=reason, message=error))
        else:
            self._bindings(now_ns, ApiRequest(**common, rev=self._known.bound.get(uid, 0)))

    def _ends(
        self, now_ns: int, pod: str, result: str, node: str, message: str = "", evaluated: int = 0, feasible: int = 0
    ) -> None:
        attempt = self._attempts.get(pod)
        if attempt is None:
            return  # this scheduler has been started again since
        bisect.insort(self._ended_ns, now_ns)
        uid = self._known.uids.get(pod, "")
        event = PodAttempted(
            pod=pod, uid=uid, start=attempt.start_ns, n=attempt.number, result=result, node=node,
            evaluated=evaluated, feasible=feasible, plugins={}, message=message,
        )  # fmt: skip
        # The clock of the scheduler, and the moment at which kemu's process heard of the pod.
        self._hear(max(attempt.bound_ns or now_ns, self._known.seen_ns.get(uid, 0)), event)
        attempt.bound_ns, attempt.node = 0, ""

    def _preempts(self, now_ns: int, said: Mapping[str, str]) -> None:
        pod = said["pod"]
        attempt = self._attempts.get(pod)
        start_ns = attempt.start_ns if attempt is not None else now_ns
        uid = self._known.uids.get(pod, "")
        self._hear(
            now_ns, PreemptionPlanned(pod=pod, uid=uid, start=start_ns, node=said["node"], candidates=0, victims=[])
        )

    def _victim(self, now_ns: int, said: Mapping[str, str]) -> None:
        victim, by = said["victim"], said["preemptor"]
        self._hear(
            now_ns,
            VictimDeleted(
                pod=victim, uid=self._known.uids.get(victim, ""), by=by, by_uid=self._known.uids.get(by, ""),
                node=said.get("node", ""), start=now_ns, ok=True,
            ),
        )  # fmt: skip


_REASONS = (
    ("Operation cannot be fulfilled", "Conflict"),
    ("not found", "NotFound"),
    ("is forbidden", "Forbidden"),
    ("Too many requests", "TooManyRequests"),
)
"""Of a refused binding, by what its message has."""
_SAYINGS: dict[str, Callable[[SchedulerLog, int, Mapping[str, str]], None]] = {
    "Starting Kubernetes Scheduler": SchedulerLog._starts,
    "Attempting to schedule pod": SchedulerLog._begins,
    "Attempting to bind pod to node": SchedulerLog._binds,
    "Successfully bound pod to node": SchedulerLog._bound,
    "Unable to schedule pod; no fit; waiting": SchedulerLog._unschedulable,
    "Unable to schedule pod; no nodes are registered to the cluster; waiting": SchedulerLog._unschedulable,
    "Error scheduling pod; retrying": SchedulerLog._error,
    "the target node for the preemption is determined": SchedulerLog._preempts,
    "Preemptor Pod preempted victim Pod": SchedulerLog._victim,
}
