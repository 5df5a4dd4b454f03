"""What happens in a cluster, in lines: one for each thing, or one for many that are alike.

Events are told in batches, a few times a second. Of what happened more than a few times in a batch, a line tells how
often. Neighbours: :mod:`kemu.lab.tell.stories` tells a run that is over, with everything that is known of it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from kemu.emulated.objects import custom_kinds, resources
from kemu.runtime.faults.kinds import CLIENT_FAULTS, KINDS
from kemu.runtime.runlog.events import Event, FaultBegun, Transaction, handlers, typed, words
from kemu.runtime.runlog.events.words import BAD, PLAIN
from kemu.runtime.words import short

MOST_ALIKE = 4
"""In one batch; more of them share a line."""

_TOLD_KINDS = frozenset(
    (
        "configmaps", "cronjobs", "customresourcedefinitions", "daemonsets", "deployments", "ingresses", "jobs",
        "namespaces", "networkpolicies", "nodes", "persistentvolumeclaims", "poddisruptionbudgets", "priorityclasses",
        "secrets", "services", "statefulsets", "storageclasses", "pods",
    )
)  # fmt: skip
"""Kinds whose objects are told of when they come and go; and all custom ones."""
_PUT, _DELETE = 0, 1


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


class LiveLines:
    """A listener of the run log."""

    def __init__(self) -> None:
        self._batch = _Batch()
        self.quiet = True
        """Set-up is not told."""
        self._handlers = handlers.of(self)

    def __call__(self, time_ns: int, actor: str, kind: str, data: Mapping[str, Any]) -> None:
        if self.quiet or time_ns == 0:
            return
        event, tell = typed(kind, data), self._handlers.get(kind)
        if tell is not None:
            tell(time_ns, actor, event)
        elif (line := event.live()) is not None:
            self._say(time_ns, actor, event, line)

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

    def _say(self, time_ns: int, actor: str, event: Event, line: words.Line) -> None:
        """What its class says."""
        if line.is_whole:
            self._add(time_ns, line.kind, line.one.replace(words.ACTOR, actor), line.many, line.tone, line.why)
            return
        what = f"{short(event.get('pod') or event['node'])} {words.filled(line.one, event)}"
        why = line.why or event.get("message") or event.get("why") or "" if "pod" in event else ""
        self._add(time_ns, line.kind, what, line.many, line.tone, why)

    def _on_txn(self, time_ns: int, actor: str, event: Transaction) -> None:
        for operation, key, _, _, version in event.changes:
            if operation == _PUT and version != 1:
                continue
            _, _, rest = key.partition("/registry/")
            plural, _, name = rest.partition("/")
            is_custom = custom_kinds.is_custom(plural)
            if plural not in _TOLD_KINDS and not is_custom:
                continue
            says = "is created" if operation == _PUT else "is gone"
            one = plural if is_custom else resources.BY_PLURAL[plural].kind.lower()
            self._add(
                time_ns,
                f"{plural} {says}",
                f"{one} {short(name)} {says}" if plural != "pods" else f"{short(name)} {says}",
                f"{plural} {says.replace('is', 'are', 1)}",
            )

    def _on_chaos(self, time_ns: int, actor: str, event: FaultBegun) -> None:
        if event.what in CLIENT_FAULTS:
            self._add(time_ns, "chaos", KINDS[event.what].begins, "faults of clients begin", BAD, event.id)
            return
        concerned = next((event[key] for key in ("actors", "actor", "nodes", "between", "process") if key in event), ())
        names = [name for one in concerned for name in ([one] if isinstance(one, str) else one)]
        whom = ", ".join(names[:3]) + (f" and {len(names) - 3} more" if len(names) > 3 else "")
        self._add(time_ns, "chaos", f"{event.what} strikes {whom or 'nobody'}", "faults strike", BAD, event.id)
