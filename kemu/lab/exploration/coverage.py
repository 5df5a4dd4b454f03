"""Coverage: which behaviour a run has shown, and what of it is new to a campaign.

The abstract timeline of a run is the set of orders of its decisive events: for each event, which others, of other
actors, came shortly before it. Events count by kind, result and actor (all kubelets are one), and by whether they are
about the same object; times, names and numbers do not. Two runs with the same set have interleaved in the same way as
far as anybody could tell, so a strategy that is to find something new looks for orders that no run has shown, or for a
timeline whose signature (MinHash) differs much from those before.
"""

from __future__ import annotations

import zlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kemu.lab.checks.history import History
from kemu.runtime.runlog import events as log_events

WINDOW = 6
"""Each event notes the order of so many decisive events before it."""
SIGNATURE_SIZE = 16

_MASK = (1 << 32) - 1
_RESULT = {
    log_events.PodAttempted.KIND: "result",
    log_events.PodBound.KIND: "ok",
    log_events.PodQueued.KIND: "queue",
    log_events.AdmissionDecided.KIND: "ok",
    log_events.ActorCrashed.KIND: "step",
    log_events.WatchDelivered.KIND: "types",
}
"""What distinguishes events of one kind."""
_DECISIVE = frozenset(
    log_events.kinds(
        log_events.PodAttempted,
        log_events.PodBound,
        log_events.PodQueued,
        log_events.PodNominated,
        log_events.PreemptionPlanned,
        log_events.VictimDeleted,
        log_events.RescheduledVictimDeleted,
        log_events.AdmissionDecided,
        log_events.PodRunning,
        log_events.PodEvicting,
        log_events.PodPreempting,
        log_events.PodTerminating,
        log_events.PodTerminated,
        log_events.PodFinished,
        log_events.OomKilled,
        log_events.ApiRequest,
        log_events.RequestRefused,
        log_events.WatchDelivered,
        log_events.WatchListed,
        log_events.NodeTainted,
        log_events.UserPodCreated,
        log_events.PodCreated,
        log_events.ActorCrashed,
        log_events.ActorStarted,
        log_events.StoreRecovered,
        log_events.FaultBegun,
        log_events.FaultEnded,
    )
)
_MULTIPLIERS = np.array(
    [(0x9E3779B97F4A7C15 * (2 * n + 1)) & ((1 << 64) - 1) for n in range(1, SIGNATURE_SIZE + 1)], dtype=np.uint64
)[:, None]


class Timeline:
    """Timeline of one run; a ``LogSink``. It notes the decisive events, and finds their orders when it is asked for
    them."""

    def __init__(self) -> None:
        self.steps: dict[str, None] = {}
        """At which actors crashed, as ``actor: step``."""
        self._labels: dict[tuple[str, str, Any], tuple[int, str]] = {}
        self._seen: list[tuple[int, str]] = []
        """Label and actor of each decisive event; beside them what it is about."""
        self._about: list[str | None] = []
        self._orders: tuple[int, NDArray[np.uint64]] = (0, np.empty(0, dtype=np.uint64))
        """The orders among so many events."""

    def __call__(self, time_ns: int, actor: str, kind: str, data: Mapping[str, Any]) -> None:
        if kind not in _DECISIVE:
            return
        result = data.get(_RESULT.get(kind, "verb"))
        label = self._labels.get((kind, actor, result))
        if label is None:
            label = self._label(kind, actor, result)
        self._seen.append(label)
        self._about.append(data.get("uid") or data.get("pod"))

    def _label(self, kind: str, actor: str, result: object) -> tuple[int, str]:
        if kind == log_events.ActorCrashed.KIND and result:
            self.steps[f"{actor}: {result}"] = None
        who = "kubelet" if actor.startswith("kubelet/") else actor
        label = zlib.crc32(f"{kind}\0{who}\0{result}".encode()), actor
        self._labels[kind, actor, result] = label
        return label

    def orders(self) -> tuple[int, ...]:
        """Ascending."""
        return tuple(self._found().tolist())

    def signature(self) -> tuple[int, ...]:
        """MinHash: the share of equal places of two of them estimates how many orders two runs have in common."""
        return _signature(self._found())

    def _found(self) -> NDArray[np.uint64]:
        events, found = self._orders
        if events != len(self._seen):
            found = self._compute()
            self._orders = len(self._seen), found
        return found

    def _compute(self) -> NDArray[np.uint64]:
        labels = np.array([label for label, _ in self._seen], dtype=np.uint64)
        numbers: dict[str, int] = {}
        actors = np.array([numbers.setdefault(actor, len(numbers)) for _, actor in self._seen])
        subjects: dict[str | None, int] = {None: -1}
        about = np.array([subjects.setdefault(one, len(subjects)) for one in self._about])
        before, after = labels * np.uint64(0x9E3779B1), labels * np.uint64(0x85EBCA6B)
        found = []
        for distance in range(1, min(WINDOW, len(labels) - 1) + 1):
            same = (about[distance:] == about[:-distance]) & (about[distance:] >= 0)
            orders = before[:-distance] + after[distance:] + same
            found.append(orders[actors[distance:] != actors[:-distance]])
        return np.unique(np.concatenate(found) & np.uint64(_MASK)) if found else np.empty(0, dtype=np.uint64)


def _signature(orders: NDArray[np.uint64]) -> tuple[int, ...]:
    if not len(orders):
        return (0,) * SIGNATURE_SIZE
    hashed = (orders + np.uint64(1)) * _MULTIPLIERS >> np.uint64(32)
    return tuple(hashed.min(axis=1).tolist())


def similarity(one: Sequence[int], other: Sequence[int]) -> float:
    """The similarity of two timelines, by their signatures: from 0 to 1."""
    return sum(a == b for a, b in zip(one, other, strict=True)) / SIGNATURE_SIZE


def faults_hit(history: History) -> tuple[str, ...]:
    """The ids of the faults that struck; those that recur have a number behind it."""
    return tuple(dict.fromkeys(fault.id for fault in history.faults if fault.hits))


@dataclass
class Coverage:
    """What the runs of a campaign have shown so far. Fed in the order of the runs."""

    orders: set[int] = field(default_factory=set)
    timelines: set[tuple[int, ...]] = field(default_factory=set)
    """Signatures."""
    checks: dict[str, int] = field(default_factory=dict)
    """In how many runs each check had something to judge."""
    expectations: dict[str, int] = field(default_factory=dict)
    faults: dict[str, int] = field(default_factory=dict)
    steps: dict[str, int] = field(default_factory=dict)

    def add(
        self,
        new: Sequence[int],
        timeline: tuple[int, ...],
        checks: Sequence[str],
        expectations: Sequence[str],
        faults: Sequence[str],
        steps: Sequence[str],
    ) -> None:
        """``new``: orders that :meth:`news` had found."""
        self.orders.update(new)
        self.timelines.add(timeline)
        for counts, names in (
            (self.checks, checks),
            (self.expectations, expectations),
            (self.faults, faults),
            (self.steps, steps),
        ):
            for name in names:
                counts[name] = counts.get(name, 0) + 1

    def news(self, orders: Sequence[int]) -> tuple[int, ...]:
        """Those of these orders that no run had shown."""
        return tuple(order for order in orders if order not in self.orders)
