"""Messages in flight."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol

from kemu.runtime.holds import Label
from kemu.runtime.rpc.ends import End


class Message:
    """One message from one actor to another."""

    __slots__ = ("arrived_ns", "call", "delay_ns", "due_ns", "holds", "is_request", "method", "number", "payload",
                 "sent_ns", "source", "target")  # fmt: skip

    def __init__(
        self, source: str, target: str, end: End, payload: Any, number: int, sent_ns: int, due_ns: int
    ) -> None:
        self.source = source
        self.target = target
        self.is_request = is_request = end.is_client
        """From the client to the server of the call."""
        self.call: Any = end if is_request else end.partner
        """The client's end of the call that it belongs to."""
        self.method = end.method
        """``/kemu.v1.Api/Watch``, …"""
        self.number = number
        """From 1, among all from this source to this target."""
        self.payload = payload
        """Bytes; of the beginning of a call its client's end; of the end of a call a Status."""
        self.sent_ns = sent_ns
        """In the time of the run."""
        self.delay_ns = 0
        """How much longer than usual it took, once that is chosen."""
        self.due_ns = due_ns
        """When it would usually have arrived."""
        self.arrived_ns = -1
        """When it did; -1: not yet, or never."""
        self.holds: tuple[int, ...] = ()
        """Those that kept it, by their places in the scenario."""

    def __repr__(self) -> str:
        return f"<{self.source} → {self.target} #{self.number} {self.method}>"


class LabelReader(Protocol):
    """Says what messages are about (``kemu.emulated.client.message_labels``).

    It is shown every message of a run, in the order in which they were sent, or none.
    """

    def labels(self, message: Message) -> tuple[Label, ...]:
        """More than one for batches."""
        ...


class Counts:
    """Counts the messages of each link as patterns do: those that fit a label, whose empty fields fit all."""

    def __init__(self) -> None:
        self._counts: dict[tuple[str, str, Label], int] = {}

    def add(self, source: str, target: str, labels: Sequence[Label]) -> None:
        """The next message."""
        for wider in dict.fromkeys(wider for label in labels for wider in _wider(label)):
            key = source, target, wider
            self._counts[key] = self._counts.get(key, 0) + 1

    def of(self, source: str, target: str, label: Label) -> int:
        return self._counts.get((source, target, label), 0)


def _wider(label: Label) -> list[Label]:
    """The labels that a message with this one fits."""
    return [
        Label(kind, name, what)
        for kind in dict.fromkeys((label.kind, ""))
        for name in dict.fromkeys((label.name, ""))
        for what in dict.fromkeys((label.what, ""))
    ]
