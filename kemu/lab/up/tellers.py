"""What happens in a cluster, in lines: one for each thing, or one for many that are alike.

Events are told in batches, a few times a second. Of what happened more than a few times in a batch, a line tells how
often. Neighbours: :mod:`kemu.lab.tell.stories` tells a run that is over, with everything that is known of it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from kemu.emulated.objects import resources
from kemu.runtime.faults.kinds import CLIENT_FAULTS, KINDS
from kemu.runtime.runlog.events import (
    ActorCrashed,
    ActorExited,
    ActorStarted,
    AdmissionDecided,
    Event,
    FaultBegun,
    FaultEnded,
    PodAttempted,
    PodBound,
    PressureChanged,
    ProcessStalled,
    ReplicaSetScaled,
    RequestStruck,
    RolloutEnded,
    Transaction,
    handlers,
    typed,
)
from kemu.runtime.runlog.events.words import BAD, GOOD, PLAIN, Told, filled

MOST_ALIKE = 4
"""In one batch; more of them share a line."""

_TOLD_KINDS = frozenset(
    (
        "configmaps", "cronjobs", "daemonsets", "deployments", "ingresses", "jobs", "namespaces", "networkpolicies",
        "nodes", "persistentvolumeclaims", "poddisruptionbudgets", "priorityclasses", "secrets", "services",
        "statefulsets", "storageclasses", "pods",
    )
)  # fmt: skip
"""Of whose objects it is told that they come and go."""
_PUT, _DELETE = 0, 1
_DEFAULT = "default/"


@dataclass(frozen=True, slots=True)
class Line:
    """Something that happened, or several things that are alike."""

    time_ns: int
    kind: str
    """What is alike has one kind."""
    what: str
    """``web-0 is bound to node-1``"""
    why: str = ""
    tone: str = PLAIN
    count: int = 1

    def data(self) -> dict[str, Any]:
        return {
            "at_s": round(self.time_ns / 1e9, 3),
            "kind": self.kind,
            "what": self.what,
            "why": self.why,
            "count": self.count,
        }


@dataclass(slots=True)
class _Batch:
    lines: list[Line] = field(default_factory=list)
    counts: dict[str, int] = field(default_factory=dict)


class Teller:
    """A listener of the run log."""

    def __init__(self) -> None:
        self._batch = _Batch()
        self.quiet = True
        """Set-up is told by nobody."""
        self._handlers = handlers.of(self)

    def __call__(self, time_ns: int, actor: str, kind: str, data: Mapping[str, Any]) -> None:
        if self.quiet or time_ns == 0:
            return
        event, tell = typed(kind, data), self._handlers.get(kind)
        if tell is not None:
            tell(time_ns, actor, event)
        elif event.TOLD is not None:
            self._say(time_ns, event, event.TOLD)

    def take(self) -> list[Line]:
        """What has happened since it was last asked."""
        batch, self._batch = self._batch, _Batch()
        told = []
        for line in batch.lines:
            count = batch.counts[line.kind]
            if count <= MOST_ALIKE:
                told.append(line)
            elif line.count > 1:
                told.append(Line(line.time_ns, line.kind, f"{count} {line.what}", "", line.tone, count))
        return told

    def _add(self, time_ns: int, kind: str, what: str, many: str, tone: str = PLAIN, why: str = "") -> None:
        """``many``: what to say of several, without their number."""
        counts = self._batch.counts
        counts[kind] = count = counts.get(kind, 0) + 1
        if count <= MOST_ALIKE:
            self._batch.lines.append(Line(time_ns, kind, what, why, tone))
        elif count == MOST_ALIKE + 1:
            self._batch.lines.append(Line(time_ns, kind, many, "", tone, count))

    def _say(self, time_ns: int, event: Event, told: Told) -> None:
        """What its class says of the pod, or of the node."""
        what = f"{short(event.get('pod') or event['node'])} {filled(told.one, event)}"
        why = event.get("message") or event.get("why") or "" if "pod" in event else ""
        self._add(time_ns, told.group, what, told.many, told.tone, why)

    def _on_fault_ended(self, time_ns: int, actor: str, event: FaultEnded) -> None:
        self._add(time_ns, "chaos", f"the fault {event.id} is over", "faults are over", GOOD)

    def _on_crashed(self, time_ns: int, actor: str, event: ActorCrashed) -> None:
        self._add(time_ns, "crashed", f"{actor} crashes", "actors crash", BAD)

    def _on_exited(self, time_ns: int, actor: str, event: ActorExited) -> None:
        self._add(time_ns, "exited", f"{actor} ends itself", "actors end themselves", BAD, event.why)

    def _on_txn(self, time_ns: int, actor: str, event: Transaction) -> None:
        for operation, key, _, _, version in event.changes:
            if operation == _PUT and version != 1:
                continue
            _, _, rest = key.partition("/registry/")
            plural, _, name = rest.partition("/")
            if plural not in _TOLD_KINDS:
                continue
            says = "is created" if operation == _PUT else "is gone"
            one = resources.BY_PLURAL[plural].kind.lower()
            self._add(
                time_ns,
                f"{plural} {says}",
                f"{one} {short(name)} {says}" if plural != "pods" else f"{short(name)} {says}",
                f"{plural} {says.replace('is', 'are', 1)}",
            )

    def _on_attempt(self, time_ns: int, actor: str, event: PodAttempted) -> None:
        if event.result == "unschedulable" and event.n == 1:
            self._add(
                time_ns, "unschedulable", f"{short(event.pod)} fits on no node", "pods fit on no node", BAD,
                event.message,
            )  # fmt: skip

    def _on_bind(self, time_ns: int, actor: str, event: PodBound) -> None:
        pod = short(event.pod)
        if not event.ok:
            self._add(
                time_ns, "not bound", f"{pod} is not bound to {event.node}", "pods are not bound", BAD,
                event.message or event.reason,
            )  # fmt: skip

    def _on_admit(self, time_ns: int, actor: str, event: AdmissionDecided) -> None:
        if event.ok:
            # Here and not where a scheduler says so: schedulers of other programs say nothing.
            self._add(time_ns, "bound", f"{short(event.pod)} comes to {event.node}", "pods come to their nodes")
        else:
            what = f"{event.node} does not take {short(event.pod)}"
            self._add(time_ns, "refused", what, "pods are not taken by their nodes", BAD, event.message)

    def _on_pressure(self, time_ns: int, actor: str, event: PressureChanged) -> None:
        conditions = ", ".join(event.conditions)
        says = f"has {conditions}" if conditions else "has no pressure any more"
        self._add(time_ns, "pressure", f"{event.node} {says}", "nodes change their pressure", BAD)

    def _on_chaos(self, time_ns: int, actor: str, event: FaultBegun) -> None:
        if event.what in CLIENT_FAULTS:
            self._add(time_ns, "chaos", KINDS[event.what].begins, "faults of clients begin", BAD, event.id)
            return
        concerned = next((event[key] for key in ("actors", "actor", "nodes", "between", "process") if key in event), ())
        names = [name for one in concerned for name in ([one] if isinstance(one, str) else one)]
        whom = ", ".join(names[:3]) + (f" and {len(names) - 3} more" if len(names) > 3 else "")
        self._add(time_ns, "chaos", f"{event.what} strikes {whom or 'nobody'}", "faults strike", BAD, event.id)

    def _on_struck(self, time_ns: int, actor: str, event: RequestStruck) -> None:
        name = f"{event.namespace}/{event.name}" if event.namespace and event.name else event.name
        asked = " ".join(filter(None, (event.verb, event.resource, short(name or ""))))
        what = f"{event.what} strikes {event.agent or 'a client'}: {asked}"
        self._add(time_ns, "struck", what, "requests are struck", BAD, event.id)

    def _on_started(self, time_ns: int, actor: str, event: ActorStarted) -> None:
        if event.incarnation > 1:
            self._add(time_ns, "started", f"{actor} is back", "actors are back", GOOD)

    def _on_stalled(self, time_ns: int, actor: str, event: ProcessStalled) -> None:
        what = f"{actor} {'stood still' if event.what == 'stopped' else 'lagged'} for {event.real_ns / 1e9:.1f} s"
        self._add(time_ns, "stalled", what, "times a process stalled", BAD)

    def _on_scaled(self, time_ns: int, actor: str, event: ReplicaSetScaled) -> None:
        what = f"{event.replica_set} of deployment {short(event.deployment)} goes from {event.before}"
        self._add(time_ns, "scaled", f"{what} to {event.replicas}", "replica sets get another size")

    def _on_rollout(self, time_ns: int, actor: str, event: RolloutEnded) -> None:
        says, tone = ("is rolled out", GOOD) if event.outcome == "complete" else ("is stuck", BAD)
        what = f"revision {event.revision} of deployment {short(event.deployment)} {says}"
        self._add(time_ns, f"rollout {tone}", what, "rollouts end", tone)


def short(name: str) -> str:
    """Without the namespace ``default``."""
    return name.removeprefix(_DEFAULT)
