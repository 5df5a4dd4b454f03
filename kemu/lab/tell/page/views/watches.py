"""How late each client heard of changes: from the store's write to the delivery of its watch event."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from kemu.lab.tell.page.tables import Tables
from kemu.lab.tell.page.views.view import Handler, Told
from kemu.runtime.runlog.events import Transaction, WatchDelivered, handlers

BINS = 100
"""Stretches of time, for the worst lag in each."""
MOST_CLIENTS = 40
"""That are told one by one: those that lagged most."""


class Watches:
    name = "watches"

    def __init__(self, tables: Tables) -> None:
        self._written: dict[int, int] = {}
        self._lags: dict[str, tuple[list[int], list[int]]] = {}
        """By client: when it heard, and how much later than the write."""

    @property
    def handlers(self) -> Mapping[str, Handler]:
        return handlers.of(self)

    def _on_txn(self, place: int, time_ns: int, actor: str, event: Transaction) -> None:
        self._written[event.rev] = time_ns

    def _on_events(self, place: int, time_ns: int, actor: str, event: WatchDelivered) -> None:
        times, lags = self._lags.setdefault(actor, ([], []))
        for revision, kind in zip(event.revs, event.types, strict=True):
            written_ns = self._written.get(revision)
            if written_ns is not None and kind != "B":
                times.append(time_ns)
                lags.append(max(time_ns - written_ns, 0))

    def data(self, told: Told) -> dict[str, Any]:
        found = {actor: _figures(*lists, told.history.now_ns) for actor, lists in self._lags.items() if lists[0]}
        worst = sorted(found, key=lambda actor: (-found[actor]["max"], actor))
        return {
            "bins": BINS,
            "clients": [{"name": actor, **found[actor]} for actor in worst[:MOST_CLIENTS]],
            "others": len(worst) - len(worst[:MOST_CLIENTS]),
        }


def _figures(times: list[int], lags: list[int], end_ns: int) -> dict[str, Any]:
    """Lags in microseconds; ``worst``: pairs of a stretch of time and the worst lag there."""
    late = np.array(lags, dtype=np.int64) // 1000
    bins = np.minimum(np.array(times, dtype=np.int64) * BINS // max(end_ns, 1), BINS - 1)
    worst = np.zeros(BINS, dtype=np.int64)
    np.maximum.at(worst, bins, late)
    return {
        "events": len(lags),
        "p50": int(np.percentile(late, 50, method="higher")),
        "p99": int(np.percentile(late, 99, method="higher")),
        "max": int(late.max()),
        "worst": [[number, int(worst[number])] for number in np.unique(bins).tolist()],
    }
