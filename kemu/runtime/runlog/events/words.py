"""The words of events: each class has its own, and :mod:`kemu.lab.tell`, traces and `kemu up` only arrange them.

========  ==============================================  ====================
`lines`   what a story tells of it                        :class:`Line`
`live`    what a cluster that runs tells of it            :class:`Line`
`deed`    what an explanation says that its actor did     :class:`Deed`
`traced`  the span that traces make of it                 :class:`Traced`
========  ==============================================  ====================

What is told of several events together, or of the objects that the store holds, is not theirs.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple, Protocol

GOOD, BAD, PLAIN = "good", "bad", "plain"
DECISION, OUTCOME, WRITE, USUAL = 5, 4, 2, 1
"""Weights: what an actor decided; what came of it; what was written; what every pod goes through."""


class Line(NamedTuple):
    """A line about one pod or node, or (``is_whole``) about something else. Templates name fields."""

    kind: str
    """In a story, one of :data:`kemu.lab.tell.happenings.KINDS`. Of `kemu up`: lines of one kind share one."""
    one: str
    """What is said of the pod or node that the event is about: ``runs on {node}``; or the whole phrase."""
    many: str
    """The same of several; of `kemu up` with their noun: ``pods run``."""
    tone: str = PLAIN
    why: str = ""
    is_whole: bool = False
    who: str = ""
    """The actor, where it is not the one that logs the event."""
    sizes: tuple[int, int] | None = None
    """The sizes of what was scaled, before and after."""


ACTOR = "{actor}"
"""In a phrase, and as ``who``: the name of the actor as the log has it."""


def whole(kind: str, phrase: str, many: str, tone: str = PLAIN, why: str = "", **more: Any) -> Line:
    """A line whose phrase has its own subject."""
    return Line(kind, phrase, many, tone, why, is_whole=True, **more)


def of_actor(kind: str, says: str, many: str, tone: str = PLAIN, why: str = "") -> Line:
    """A line about the actor that logs the event."""
    return whole(kind, f"{ACTOR} {says}", many, tone, why, who=ACTOR)


EVICTED = Line("evicted", "is evicted from {node}", "pods are evicted", BAD)


class Names(Protocol):
    """How an explanation calls those of whom it speaks."""

    def actor(self, actor: str) -> str:
        """In a sentence: ``scheduler red``, ``the API server``."""
        ...

    def pod(self, key: str, uid: str = "") -> str:
        """``key``: ``namespace/name``."""
        ...


class Deed(NamedTuple):
    """A step of an explanation. Templates name fields, and ``{pod}`` as the explanation calls it."""

    text: str
    """After the actor, in the past tense: ``evicted {pod} ({signal})``."""
    short: str
    """For a picture, beside the line of the actor."""
    weight: int
    what: str = ""
    """A word, to compare steps of two runs; empty: that of the kind."""
    others: tuple[str, ...] = ()
    """Further pods: victims, a preemptor."""
    who: str = ""
    """The actor, where it is not the one that logs the event."""
    about: str = ""
    """What it is about, where the event names no pod."""


class Traced(NamedTuple):
    """A span in the trace of a pod."""

    kind: str
    """One of those of :mod:`kemu.lab.telemetry.spans`."""
    why: str
    error_type: str = ""
    """``error.type``, where what it tells is a loss or failed."""
    error: str = ""
    """What failed; empty: as ``why`` says."""
    name: str = ""
    """Where it is not the kind."""


class _Blank(dict[str, Any]):
    """For ``format_map``: a field that an event lacks is empty."""

    def __missing__(self, key: str) -> str:
        return ""


def filled(template: str, event: Mapping[str, Any], **more: str) -> str:
    """With the fields of the event."""
    return template.format_map(_Blank(event, **more))


def because(text: str) -> str:
    """`` (text)``; empty where there is none."""
    return f" ({text})" if text else ""
