"""All checks, and one pass over a run log that asks them."""

from __future__ import annotations

import functools
from collections.abc import Callable, Collection, Iterable, Mapping
from typing import Any

from kemu.lab.checks import limits
from kemu.lab.checks.autoscaling import additions, removals, sizes
from kemu.lab.checks.consistency import journals, linearizability, pauses, reads, states, updates, writes
from kemu.lab.checks.history import History
from kemu.lab.checks.nodes import (
    endings,
    identities,
    placements,
    pressures,
    rankings,
    rates,
    readiness,
    revenants,
    taints,
    volumes,
)
from kemu.lab.checks.results import Check, Fold, Result
from kemu.lab.checks.scheduling import budgets, caches, leaders, ledgers, loops, priorities, progress, waiting
from kemu.lab.checks.watches import events
from kemu.lab.checks.workloads import collected, countings, job_counts, orders, schedules, shortages, surpluses
from kemu.runtime.runlog import frames
from kemu.runtime.runlog.events import Event, RunEnded, StoreRecovered, Transaction, typed

ALL: tuple[type[Check], ...] = (
    placements.NoNodeOvercommitted,
    placements.RejectedPodsDoNotFit,
    placements.PodBoundAtMostOnce,
    identities.NoNameRunsTwice,
    rates.NodeEvictionsKeepTheirRate,
    revenants.GonePodsStartNothing,
    endings.ContainersEndInTime,
    readiness.ReadinessFollowsProbes,
    pressures.PressureFollowsWhatIsMeasured,
    pressures.PressureKeepsPodsOut,
    rankings.EvictionsFollowTheRanking,
    taints.LostNodesAreNoticed,
    taints.TaintsFollowConditions,
    taints.PodsLeaveWhenTheirTolerationEnds,
    volumes.VolumeAttachedToOneNode,
    events.WatchHasNoGaps,
    events.WatchEventsAreTrue,
    writes.AcknowledgedWritesSurvive,
    journals.JournalIsIntact,
    states.StoreAgreesWithHistory,
    linearizability.HistoryIsLinearizable,
    updates.UpdatesReplaceWhatWasSeen,
    reads.ReadsAreMonotonic,
    reads.ListsAreSnapshots,
    pauses.PausesKeepTheOrder,
    caches.CacheAgreesWithStore,
    leaders.OneLeaderAtATime,
    leaders.LeasesAreTakenWhenTheyRunOut,
    countings.BudgetsFollowTheirPods,
    countings.QuotasCountWhatExists,
    budgets.VoluntaryEvictionsRespectBudgets,
    job_counts.JobCountsEachPodOnce,
    shortages.WorkloadsCreateWhatTheyLack,
    orders.RolloutsKeepTheirLimits,
    orders.StatefulSetsGoInOrder,
    orders.JobsWaitAfterFailures,
    surpluses.JobsKeepTheirParallelism,
    surpluses.ScaleDownsKeepWhatIsWanted,
    schedules.CronJobsKeepTheirPolicy,
    collected.GarbageHasNoOwner,
    collected.PodsAreCollectedForAReason,
    sizes.NodeGroupsKeepTheirSizes,
    removals.NodesGoWhenTheirPodsFitElsewhere,
    additions.PodsThatWaitGetNodes,
    progress.PodsThatFitAreTried,
    priorities.PreemptorsOutrankVictims,
    priorities.NoPriorityInversion,
    waiting.NoPodStarves,
    loops.NoEvictionLoop,
    loops.NoPreemptionLoop,
)
"""Every check and detector; all of them look at every run."""

IDS = tuple(check.id for check in ALL)
"""All ids that a scenario may name."""


_Taker = tuple[str, tuple[str, ...], Callable[[int, str, Any], None]]
"""How the names of the actors begin whose events it takes, and the keys whose changes; and what takes them."""


_OfActor = tuple[tuple[str, ...], Callable[[int, str, Any], None]]
"""The same for one actor."""


@functools.cache
def _wanted(listener: type[Fold | Check]) -> tuple[tuple[str, str, tuple[str, ...]], ...]:
    """The kinds of the events that it takes, how the names of their actors begin, and the keys."""
    actors = {event.KIND: prefix for event, prefix in listener.actors.items()}
    keys = listener.keys
    # Who sends a transaction does not matter where its keys do.
    return tuple(
        (kind, "" if kind == Transaction.KIND and keys else actors.get(kind, ""), keys * (kind == Transaction.KIND))
        for kind in listener.kinds
    )


class Judge:
    """Asks every check that is not disabled; ``within`` the limits of the scenario.

    Feed it every event in order: it folds them into a history, and each check sees those of its kinds.
    """

    def __init__(self, *, disabled: Collection[str] = (), within: limits.Limits = limits.DEFAULT) -> None:
        self._within = within
        self._checks = [check.within(within) for check in ALL if check.id not in disabled]
        self._takers: dict[str, list[_Taker]] = {}
        """By kind."""
        self._by_actor: dict[tuple[str, str], tuple[_OfActor, ...]] = {}
        """By kind and actor, of which there are many that have the same."""
        self._shared: dict[tuple[str, tuple[int, ...]], tuple[_OfActor, ...]] = {}
        self.history = History()
        self._fold = self.history.feed
        self._rollbacks = 0
        folds: dict[type[Fold], Fold] = {}
        for check in self._checks:
            for kind_of_fold in check.folds:
                if kind_of_fold not in folds:
                    folds[kind_of_fold] = kind_of_fold(self.history)
            check.given(*(folds[each] for each in check.folds))
        self._listeners: tuple[Fold | Check, ...] = (*folds.values(), *self._checks)
        self._subscribe()

    def _subscribe(self) -> None:
        self._takers.clear()
        self._by_actor.clear()
        self._shared.clear()
        for listener in self._listeners:
            for kind, prefix, keys in _wanted(type(listener)):
                take = listener.taker(kind)
                if take is not None:
                    self._takers.setdefault(kind, []).append((prefix, keys, take))

    def _takers_of(self, kind: str, actor: str) -> tuple[_OfActor, ...]:
        takers = self._takers.get(kind, ())
        places = tuple([place for place, (prefix, _, _) in enumerate(takers) if actor.startswith(prefix)])
        found = self._shared.get((kind, places))
        if found is None:
            found = self._shared[kind, places] = tuple([takers[place][1:] for place in places])
        self._by_actor[kind, actor] = found
        return found

    def feed(self, time_ns: int, actor: str, kind: str, data: Mapping[str, Any]) -> None:
        """Has the signature of a ``LogSink``."""
        event = data if isinstance(data, Event) else typed(kind, data)
        self._fold(time_ns, actor, kind, event)
        if kind == StoreRecovered.KIND and len(self.history.rollbacks) > self._rollbacks:
            self._rollbacks = len(self.history.rollbacks)
            for check in self._checks:
                check.rolled_back(time_ns, self.history)
        takers = self._by_actor.get((kind, actor))
        for keys, take in self._takers_of(kind, actor) if takers is None else takers:
            if keys:
                assert isinstance(event, Transaction)
                for change in event.changes:
                    if change[1].startswith(keys):
                        take(time_ns, actor, event)
                        break
            else:
                take(time_ns, actor, event)
        if kind == RunEnded.KIND:
            self._subscribe()

    def results(self) -> list[Result]:
        """Results of all checks, when every event has been fed."""
        ledgers.of(self.history)  # counts, whichever checks are disabled
        return [_result(check, self.history, self._within) for check in self._checks]


def judge(
    events: Iterable[frames.Entry], *, disabled: Collection[str] = (), within: limits.Limits = limits.DEFAULT
) -> tuple[History, list[Result]]:
    """The same for a whole log."""
    judge = Judge(disabled=disabled, within=within)
    feed = judge.feed
    for time_ns, actor, kind, data in events:
        feed(time_ns, actor, kind, data)
    return judge.history, judge.results()


def _result(check: Check, history: History, within: limits.Limits) -> Result:
    found = check.result(history)
    return Result(found.id, found.holds, found.detail, check.detector, check.is_asked(within))
