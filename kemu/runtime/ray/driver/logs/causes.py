"""What an event of the run log says of its causes: the latest revision of the store that its actor knew of.

The store logs a revision before anybody can know of it. So ``merges`` finds in which order the events of several cells
came about, whatever their clocks show.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from kemu.runtime.runlog.events import (
    ApiRequest,
    GetAnswered,
    ListAnswered,
    Transaction,
    WatchDelivered,
    WatchListed,
    WritesAcknowledged,
)

WRITE = Transaction.KIND
RECORDER = "apiserver/"
"""Prefix of who logs what a real etcd did."""


def _told(event: ApiRequest | GetAnswered | ListAnswered | WatchListed) -> int:
    return event.rev or 0


def _watched(event: WatchDelivered) -> int:
    return max(event.revs, default=0)


def _acknowledged(event: WritesAcknowledged) -> int:
    return max((ack[1] for ack in event.acks), default=0)


KNOWING: Mapping[str, Callable[[Any], int]] = {
    ApiRequest.KIND: _told,
    WritesAcknowledged.KIND: _acknowledged,
    GetAnswered.KIND: _told,
    ListAnswered.KIND: _told,
    WatchDelivered.KIND: _watched,
    WatchListed.KIND: _told,
}
"""By kind of event: the revision that it knows of; 0: none. Other kinds say nothing of it."""
