"""Latencies that chance has drawn, as holds.

A run with random latencies may fail because of two or three of them. Frozen, every message has a hold for as long as it
took, and the latencies themselves are next to nothing: the same run, whose holds can go one by one.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from kemu.emulated.settings.values import duration_text
from kemu.lab.exploration.shrinking import documents
from kemu.lab.exploration.shrinking.candidates import Data, copied
from kemu.runtime.holds import Hold, Label, MessagePattern
from kemu.runtime.sim.steering.messages import Counts, Message

LATENCIES = ("apiLatency", "watchLatency", "storeLatency")
_LEAST_NS = 1_000


class Still:
    """Delays nothing; that there is a choice at all is what makes a run keep its messages."""

    def delay_ns(self, message: Message) -> int:
        return 0


def drawn(data: Data) -> list[documents.Way]:
    """The latencies that are left to chance."""
    return [way for way in documents.distributions(data) if way[:2] == ("spec", "timing") and way[-1] in LATENCIES]


def frozen(
    data: Data, ways: Sequence[documents.Way], messages: Iterable[tuple[Message, Sequence[Label]]]
) -> tuple[dict[str, Any], list[Hold]]:
    """The document with short latencies at these places, and a hold for each message of the run."""
    short: dict[str, Any] = copied(data)
    for way in ways:
        short = documents.changed_at(short, way, duration_text(_LEAST_NS))
    names = {way[-1] for way in ways}
    counts = Counts()
    found = []
    for message, labels in messages:
        counts.add(message.source, message.target, labels)
        took_ns = message.due_ns - message.sent_ns
        if message.sent_ns > 0 and took_ns > _LEAST_NS and _latency(message) in names:
            count = counts.of(message.source, message.target, labels[0])
            pattern = MessagePattern(message.source, message.target, labels[0], count)
            found.append(Hold(pattern, None, took_ns - _LEAST_NS))
    return short, found


def _latency(message: Message) -> str:
    """Which of the latencies a message has; empty for those of other servers."""
    ends = (message.source, message.target)
    if "store" in ends:
        return "storeLatency"
    if not any(end.startswith("apiserver/") for end in ends):
        return ""
    return "watchLatency" if not message.is_request and message.method.endswith("/Watch") else "apiLatency"
