"""All checks, and one pass over a run log that asks them."""

from __future__ import annotations

from collections.abc import Collection, Iterable

from kemu.checks.caches import CacheAgreesWithStore
from kemu.checks.history import History
from kemu.checks.identities import NoNameRunsTwice
from kemu.checks.loops import NoEvictionLoop, NoPreemptionLoop
from kemu.checks.nodes import NoNodeOvercommitted, PodBoundAtMostOnce
from kemu.checks.rates import USUAL_RATE, NodeEvictionsKeepTheirRate
from kemu.checks.results import Check, Result
from kemu.checks.waiting import NoPodStarves
from kemu.checks.watches import WatchHasNoGaps
from kemu.checks.writes import AcknowledgedWritesSurvive
from kemu.runlog.frames import Event

ALWAYS: tuple[type[Check], ...] = (
    NoNodeOvercommitted,
    PodBoundAtMostOnce,
    NoNameRunsTwice,
    WatchHasNoGaps,
    AcknowledgedWritesSurvive,
    CacheAgreesWithStore,
)
"""Asked in every run."""

IDS = (
    *(check.id for check in ALWAYS),
    NodeEvictionsKeepTheirRate.id,
    NoPodStarves.id,
    NoEvictionLoop.id,
    NoPreemptionLoop.id,
)
"""All ids that a scenario may name."""


def judge(
    events: Iterable[Event],
    *,
    disabled: Collection[str] = (),
    max_wait_ns: int | None = None,
    max_overtaken: int | None = None,
    max_eviction_returns: int | None = None,
    max_preemption_returns: int | None = None,
    node_eviction_rate: float = USUAL_RATE,
) -> tuple[History, list[Result]]:
    """Fold the log and ask every check that is not disabled."""
    checks: list[Check] = [check() for check in ALWAYS if check.id not in disabled]
    if NodeEvictionsKeepTheirRate.id not in disabled:
        checks.append(NodeEvictionsKeepTheirRate(node_eviction_rate))
    if (max_wait_ns is not None or max_overtaken is not None) and NoPodStarves.id not in disabled:
        checks.append(NoPodStarves(max_wait_ns, max_overtaken))
    if max_eviction_returns is not None and NoEvictionLoop.id not in disabled:
        checks.append(NoEvictionLoop(max_eviction_returns))
    if max_preemption_returns is not None and NoPreemptionLoop.id not in disabled:
        checks.append(NoPreemptionLoop(max_preemption_returns))
    listeners: dict[str, list[Check]] = {}
    for check in checks:
        for kind in check.kinds:
            listeners.setdefault(kind, []).append(check)
    history = History()
    feed = history.feed
    for time_ns, actor, kind, data in events:
        feed(time_ns, actor, kind, data)
        for check in listeners.get(kind, ()):
            check.on_event(time_ns, actor, kind, data)
    return history, [check.result(history) for check in checks]
