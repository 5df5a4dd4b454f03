"""What an event of the run log says of its causes: the latest revision of the store that its actor knew of.

The store logs a revision before anybody can know of it. So ``merges`` finds in which order the events of several cells
came about, whatever their clocks show.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from kemu.runtime.runlog import events

WRITE = events.Transaction.KIND
RECORDER = "apiserver/"
"""Prefix of who logs what a real etcd did."""


def _told(event: events.ApiRequest | events.GetAnswered | events.ListAnswered | events.WatchListed) -> int:
    return event.rev or 0


def _watched(event: events.WatchDelivered) -> int:
    return max(event.revs, default=0)


def _acknowledged(event: events.WritesAcknowledged) -> int:
    return max((ack[1] for ack in event.acks), default=0)


KNOWING: Mapping[str, Callable[[Any], int]] = {
    events.ApiRequest.KIND: _told,
    events.WritesAcknowledged.KIND: _acknowledged,
    events.GetAnswered.KIND: _told,
    events.ListAnswered.KIND: _told,
    events.WatchDelivered.KIND: _watched,
    events.WatchListed.KIND: _told,
}
"""By kind of event: the revision that it knows of; 0: none. Other kinds say nothing of it."""
