"""Holds as a scenario states them. What a hold is stands in :mod:`kemu.runtime.holds`."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from kemu.emulated.settings.declared import REQUIRED, Complaint, Section, setting
from kemu.emulated.settings.shapes import NAME, POD_REFERENCE, POSITIVE_DURATION, Text, Whole
from kemu.runtime import holds
from kemu.runtime.holds import HAPPENINGS, EventPattern, Hold, Label, MessagePattern
from kemu.runtime.words import did_you_mean, short

_ACTOR = Text(
    r"(store|user|apiserver|scheduler|extender|kubelet|controller)[^\s]*",
    "an actor: store, user, apiserver/0, scheduler/<name>/<replica>, kubelet/<node>, controller/<name>",
)


@dataclass(frozen=True, kw_only=True)
class Subject:
    """What a message is about."""

    kind: str | None = setting(Text(), "The kind of object that it is about, such as Pod.")
    name: str | None = setting(Text(), "The object: name, or namespace/name.")
    what: str | None = setting(Text(), "Its verb, <verb>-answered, or of a watch what became of the object: bound.")
    count: int = setting(Whole(1), "Which of them, from 1.", 1)

    def label(self) -> Label:
        return Label(self.kind or "", short(self.name or ""), self.what or "")


@dataclass(frozen=True, kw_only=True)
class Message:
    source: str = setting(_ACTOR, "Who sends it.", REQUIRED, key="from")
    target: str = setting(_ACTOR, "Who receives it.", REQUIRED, key="to")
    event: Subject = setting(Section(Subject), "What the message is about.", REQUIRED)


@dataclass(frozen=True, kw_only=True)
class Event:
    what: str = setting(Text(), f"{', '.join(HAPPENINGS)}, or a kind of event of the run log.", REQUIRED)
    pod: str | None = setting(POD_REFERENCE, "Of which pod: name, or namespace/name.")
    node: str | None = setting(NAME, "Of which node.")
    count: int = setting(Whole(1), "Which of them, from 1.", 1)

    def complaints(self) -> Iterator[Complaint]:
        if self.what not in HAPPENINGS and "." not in self.what:
            text = f"nothing that happens is called {self.what}"
            yield Complaint(("what",), text, did_you_mean(self.what, HAPPENINGS))


@dataclass(frozen=True, kw_only=True)
class Until:
    actor: str | None = setting(_ACTOR, "Whose event.")
    event: Event = setting(Section(Event), "What has to happen first, after the message was sent.", REQUIRED)


@dataclass(frozen=True, kw_only=True)
class Held:
    """One item of ``holds``."""

    message: Message = setting(Section(Message), "The message that is kept back.", REQUIRED)
    until: Until | None = setting(Section(Until), "The message is let go when this has happened.")
    for_ns: int | None = setting(
        POSITIVE_DURATION, "How long it is kept; beside until: at most so long, 10s by default."
    )

    def complaints(self) -> Iterator[Complaint]:
        if self.until is None and self.for_ns is None:
            yield Complaint((), "needs until, for, or both", alone=True)
        if self.message.event.label() == Label():
            yield Complaint(("message", "event"), "needs kind, name or what")

    def hold(self) -> Hold:
        message, until = self.message, self.until
        pattern = MessagePattern(message.source, message.target, message.event.label(), message.event.count)
        happening = None
        if until is not None:
            event = until.event
            pod = short(event.pod or "")
            happening = EventPattern(until.actor or "", event.what, pod, event.node or "", event.count)
        return Hold(pattern, happening, holds.MOST_NS if self.for_ns is None else self.for_ns)
