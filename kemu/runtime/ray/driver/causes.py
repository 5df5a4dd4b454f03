"""What an event of the run log says of its causes: the latest revision of the store that whoever logged it knew of.

The store logs a revision before anybody can know of it. So ``merges`` finds in which order the events of several cells
came about, whatever their clocks show.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

WRITE = "store.txn"
RECORDER = "apiserver/"
"""Prefix of who logs what a real etcd did."""
_TOLD = ("client.got", "client.listed", "watch.listed", "api.request")


def known_revision(kind: str, data: Mapping[str, Any]) -> int:
    """0: the event says nothing of it."""
    if kind == "watch.events":
        return max(data["revs"], default=0)
    if kind == "client.acked":
        return max((ack[1] for ack in data["acks"]), default=0)
    return data["rev"] or 0 if kind in _TOLD else 0
