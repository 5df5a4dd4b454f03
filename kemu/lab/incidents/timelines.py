"""The Events of a dump as a time line: what the cluster said of itself before the run begins."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any, NamedTuple

from kemu.runtime.words import counted, harmless

_ORDINARY = {
    "Scheduled", "Pulling", "Pulled", "Created", "Started", "SuccessfulCreate", "SuccessfulDelete", "ScalingReplicaSet",
    "NodeReady", "RegisteredNode", "NodeHasSufficientMemory", "NodeHasNoDiskPressure", "NodeHasSufficientPID",
    "NodeAllocatableEnforced", "Starting", "LeaderElection", "Completed", "SawCompletedJob", "NoPods",
    "WaitForFirstConsumer", "ProvisioningSucceeded", "WaitForPodScheduled",
}  # fmt: skip
"""Reasons that a cluster gives on an ordinary day."""
_ALIKE_S = 120.0
"""Events of one reason that follow each other within this time are one line."""


class Line(NamedTuple):
    """Alike events in a row."""

    begin: float
    """Unix time in seconds."""
    end: float
    reason: str
    is_warning: bool
    times: int
    objects: tuple[str, ...]
    """As ``Pod shop/web-1``, each once."""
    message: str
    """Of the last one."""

    def text(self, zero: float) -> str:
        """One line, with the time before ``zero``."""
        whom = self.objects[0] if len(self.objects) == 1 else counted(len(self.objects), self.objects[0].split()[0])
        many = f", {self.times} times" if self.times > 1 else ""
        until = f" to {_before(self.end - zero)}" if self.end - self.begin >= 1 else ""
        mark = "!" if self.is_warning else " "
        line = f"{_before(self.begin - zero):>9}{until:<12} {mark} {self.reason}{many}: {whom}: {self.message}"
        return harmless(line.rstrip(": "))


def lines(events: Iterable[Mapping[str, Any]], *, ordinary: bool = False) -> list[Line]:
    """In the order of time. ``ordinary``: with what a cluster says on an ordinary day, too."""
    told = sorted(_told(event) for event in events)
    open_lines: dict[tuple[str, str], Line] = {}
    found: list[Line] = []
    for begin, end, reason, is_warning, count, subject, message in told:
        if not ordinary and not is_warning and reason in _ORDINARY:
            continue
        key = reason, subject.split()[0]
        known = open_lines.get(key)
        if known is not None and begin - known.end <= _ALIKE_S:
            objects = known.objects if subject in known.objects else (*known.objects, subject)
            open_lines[key] = Line(
                known.begin, max(end, known.end), reason, is_warning, known.times + count, objects, message
            )
            continue
        if known is not None:
            found.append(known)
        open_lines[key] = Line(begin, end, reason, is_warning, count, (subject,), message)
    return sorted([*found, *open_lines.values()])


def last(events: Iterable[Mapping[str, Any]]) -> float:
    """Unix time of the last event, 0 if there is none."""
    return max((_told(event)[1] for event in events), default=0.0)


def text(found: Sequence[Line], zero: float) -> str:
    """The time line as a file; ``zero``: when the run begins."""
    taken = datetime.fromtimestamp(zero, UTC).isoformat()
    head = f"# Time before the dump, which was taken about {taken}. ! is a warning.\n"
    return head + "".join(f"{line.text(zero)}\n" for line in found)


def data(found: Sequence[Line], begin: float) -> list[dict[str, Any]]:
    """As ``observed`` of a scenario has them: seconds of the run, of which second 0 was at ``begin`` (Unix)."""
    listed = []
    for line in found:
        at, to = round(line.begin - begin), round(line.end - begin)
        one: dict[str, Any] = {"at": at, **({"to": to} if to != at else {}), "reason": line.reason}
        one |= {"warning": True} if line.is_warning else {}
        one |= {"times": line.times} if line.times > 1 else {}
        listed.append({**one, "of": list(line.objects[:_MOST_OBJECTS]), "says": line.message})
        if len(line.objects) > _MOST_OBJECTS:
            listed[-1]["of"].append(f"{line.objects[0].split()[0]} … and {len(line.objects) - _MOST_OBJECTS} more")
    return listed


_MOST_OBJECTS = 8


def _told(event: Mapping[str, Any]) -> tuple[float, float, str, bool, int, str, str]:
    """Of core/v1 and events.k8s.io/v1."""
    series = event.get("series") or {}
    times = [
        event.get("firstTimestamp"), event.get("deprecatedFirstTimestamp"), event.get("eventTime"),
        event.get("lastTimestamp"), event.get("deprecatedLastTimestamp"),
        series.get("lastObservedTime"), (event.get("metadata") or {}).get("creationTimestamp"),
    ]  # fmt: skip
    seconds = [_unix(one) for one in times if one]
    begin, end = (min(seconds), max(seconds)) if seconds else (0.0, 0.0)
    subject = event.get("involvedObject") or event.get("regarding") or {}
    place = f"{subject['namespace']}/" if subject.get("namespace") and subject.get("kind") != "Node" else ""
    count = event.get("count") or event.get("deprecatedCount") or series.get("count") or 1
    message = str(event.get("message") or event.get("note") or "")
    return (
        begin,
        end,
        " ".join(str(event.get("reason") or "").split()),
        event.get("type") == "Warning",
        int(count),
        " ".join(f"{subject.get('kind') or 'object'} {place}{subject.get('name', '')}".split()),
        " ".join(message.split())[:200],
    )


def _unix(text: str) -> float:
    # Microseconds are all that Python reads.
    text = re.sub(r"(\.\d{6})\d+", r"\1", text.replace("Z", "+00:00"))
    return datetime.fromisoformat(text).timestamp()


def _before(seconds: float) -> str:
    whole = round(abs(seconds))
    minutes, rest = divmod(whole, 60)
    hours, minutes = divmod(minutes, 60)
    shown = f"{hours}h{minutes:02}m" if hours else f"{minutes}m{rest:02}s" if minutes else f"{rest}s"
    return shown if not whole else f"{'-' if seconds < 0 else '+'}{shown}"
