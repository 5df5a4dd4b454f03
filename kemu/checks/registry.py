"""All checks, and one pass over a run log that asks them."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Collection, Iterable, Mapping
from typing import Any

from kemu.checks import limits
from kemu.checks.consistency import journals, linearizability, reads, states, writes
from kemu.checks.history import History
from kemu.checks.nodes import identities, placements, rates
from kemu.checks.results import Check, Result
from kemu.checks.scheduling import budgets, caches, loops, priorities, waiting
from kemu.checks.watches import events
from kemu.runlog.frames import Event

ALL: tuple[type[Check], ...] = (
    placements.NoNodeOvercommitted,
    placements.PodBoundAtMostOnce,
    identities.NoNameRunsTwice,
    rates.NodeEvictionsKeepTheirRate,
    events.WatchHasNoGaps,
    events.WatchEventsAreTrue,
    writes.AcknowledgedWritesSurvive,
    journals.JournalIsIntact,
    states.StoreAgreesWithHistory,
    linearizability.HistoryIsLinearizable,
    reads.ReadsAreMonotonic,
    reads.ListsAreSnapshots,
    caches.CacheAgreesWithStore,
    budgets.VoluntaryEvictionsRespectBudgets,
    priorities.PreemptorsOutrankVictims,
    priorities.NoPriorityInversion,
    waiting.NoPodStarves,
    loops.NoEvictionLoop,
    loops.NoPreemptionLoop,
)
"""Every check and detector; all of them look at every run."""

IDS = tuple(check.id for check in ALL)
"""All ids that a scenario may name."""


def judge(
    events: Iterable[Event], *, disabled: Collection[str] = (), within: limits.Limits = limits.DEFAULT
) -> tuple[History, list[Result]]:
    """Fold the log and ask every check that is not disabled; ``within`` the limits of the scenario."""
    checks = [check.within(within) for check in ALL if check.id not in disabled]
    listeners: dict[str, list[Callable[[int, str, str, Mapping[str, Any]], None]]] = {}
    for check in checks:
        for kind in check.kinds:
            listeners.setdefault(kind, []).append(check.on_event)
    history = History()
    feed = history.feed
    for time_ns, actor, kind, data in events:
        feed(time_ns, actor, kind, data)
        for on_event in listeners.get(kind, ()):
            on_event(time_ns, actor, kind, data)
    return history, [_result(check, history, within) for check in checks]


def _result(check: Check, history: History, within: limits.Limits) -> Result:
    return dataclasses.replace(check.result(history), detector=check.detector, asked=check.is_asked(within))
