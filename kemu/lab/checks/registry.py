"""All checks, and one pass over a run log that asks them."""

from __future__ import annotations

import functools
from collections.abc import Callable, Collection, Iterable, Mapping
from typing import Any, NamedTuple

from kemu.lab.checks import limits
from kemu.lab.checks.autoscaling import additions, removals, sizes
from kemu.lab.checks.consistency import journals, linearizability, pauses, reads, states, updates, writes
from kemu.lab.checks.history import History
from kemu.lab.checks.nodes import (
    devices,
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
from kemu.lab.checks.results import Check, Fold, Listener, Result
from kemu.lab.checks.scheduling import budgets, caches, gangs, leaders, ledgers, loops, priorities, progress, waiting
from kemu.lab.checks.watches import events
from kemu.lab.checks.workloads import collected, countings, job_counts, orders, schedules, shortages, surpluses
from kemu.runtime.runlog import events as log_events
from kemu.runtime.runlog import frames

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
    devices.DeviceHasOneClaim,
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
    gangs.GangsAreWhole,
)
"""Every check and detector; all of them look at every run."""

IDS = tuple(check.id for check in ALL)
"""All ids that a scenario may name."""


_Take = Callable[[int, str, Any], None]
_TakePod = Callable[[int, int, str, Any], None]
_VERBS = "create", "bind", "delete", "evict"
"""Of requests about pods that are logged."""
_TRANSACTION, _REQUEST = log_events.Transaction.KIND, log_events.ApiRequest.KIND
_RECOVERED, _ENDED = log_events.StoreRecovered.KIND, log_events.RunEnded.KIND
_OF_WATCHES = frozenset((log_events.WatchListed.KIND, log_events.WatchDelivered.KIND))


class Judge:
    """Asks every check that is not disabled; ``within`` the limits of the scenario.

    Feed it every event in order: it folds them into a history, and each check sees those that it asks for.
    """

    def __init__(self, *, disabled: Collection[str] = (), within: limits.Limits = limits.DEFAULT) -> None:
        self._within = within
        self._checks = [check.within(within) for check in ALL if check.id not in disabled]
        self._takers: dict[str, list[_Take]] = {}
        """What takes the events of a kind that has come, where everybody wants those of all actors. Requests are of as
        many kinds as they have verbs."""
        self._of_actors: dict[str, list[tuple[str, str, _Take]]] = {}
        """The same for the other kinds, and for those of watches: how the names of actors and watches begin, and what
        takes the events."""
        self._of_keys: list[tuple[tuple[str, ...], _Take]] | None = None
        """What takes transactions, and how the keys begin for which it does; None: nobody has been asked."""
        self._of_prefix: dict[str, list[_Take]] = {}
        """The same by the prefix of a kind of objects, as far as they have come."""
        self._of_pods: tuple[list[_TakePod], ...] = ()
        """What takes changes of pods, by what has changed."""
        self.history = History()
        self._handlers = self.history.handlers
        self._rollbacks = 0
        folds: dict[type[Fold], Fold] = {}
        for check in self._checks:
            for kind_of_fold in check.folds:
                if kind_of_fold not in folds:
                    folds[kind_of_fold] = kind_of_fold(self.history)
            check.given(*(folds[each] for each in check.folds))
        self._listeners: tuple[Fold | Check, ...] = (*folds.values(), *self._checks)
        self._wishes = _wishes(tuple([type(listener) for listener in self._listeners]))
        for listener in self._listeners:
            listener.ask_again = self._subscribe  # type: ignore[method-assign]
        self._subscribe()

    def _subscribe(self) -> None:
        """Ask everybody again, when the next event of a kind comes. New lists: what is being told of an event now goes
        on with the ones before."""
        self._takers, self._of_actors, self._of_keys, self._of_prefix = {}, {}, None, {}
        self._of_pods = ([], [], [])
        for place in self._wishes.of_pods:
            listener = self._listeners[place]
            most = listener.pod_changes()
            if most is not None:
                for takers in self._of_pods[: most + 1]:
                    takers.append(listener.on_pod)

    def _ask(self, kind: str, key: str) -> list[_Take]:
        """What takes the events of a kind; ``key``: the same, with the verb of a request."""
        found = []
        for place, actors, watches in self._wishes.by_kind.get(kind, ()):
            listener = self._listeners[place]
            if kind != _REQUEST or key[len(kind) :] in (listener.verbs or _VERBS):
                take = listener.taker(kind)
                if take is not None:
                    found.append((actors, watches, take))
        if kind in _OF_WATCHES or any(actors for actors, _, _ in found):
            self._of_actors[kind] = found
            found = []
        takers = self._takers[key] = [take for _, _, take in found]
        return takers

    def _ask_of_keys(self, name: str, prefix: str) -> list[_Take]:
        """What takes transactions of one key."""
        takes = self._of_prefix[prefix] = [take for keys, take in self._all_of_keys() if name.startswith(keys)]
        return takes

    def _all_of_keys(self) -> list[tuple[tuple[str, ...], _Take]]:
        if self._of_keys is None:
            listeners = [self._listeners[place] for place, _, _ in self._wishes.by_kind.get(_TRANSACTION, ())]
            takers = [(listener.keys or ("",), listener.taker(_TRANSACTION)) for listener in listeners]
            self._of_keys = [(keys, take) for keys, take in takers if take is not None]
        return self._of_keys

    def feed(self, time_ns: int, actor: str, kind: str, data: Mapping[str, Any]) -> None:
        """Has the signature of a ``LogSink``."""
        event: Any = data if isinstance(data, log_events.Event) else log_events.typed(kind, data)
        # History.feed, without a call.
        history = self.history
        if time_ns > history.now_ns:
            history.now_ns = time_ns
        history.kinds[kind] += 1
        handler = self._handlers.get(kind)
        if handler is not None:
            handler(time_ns, actor, event)
        if kind == _TRANSACTION:
            for what, key, pod in history.pods_changed:
                for take_pod in self._of_pods[what]:
                    take_pod(time_ns, history.revision, key, pod)
            changes = event.changes
            if len(changes) == 1:
                name: str = changes[0][1]
                prefix = name[: name.find("/", 10) + 1] or name  # after "/registry/"
                takes = self._of_prefix.get(prefix)
                if takes is None:
                    takes = self._ask_of_keys(name, prefix)
                for take in takes:
                    take(time_ns, actor, event)
            else:
                for keys, take in self._all_of_keys():
                    if any(change[1].startswith(keys) for change in changes):
                        take(time_ns, actor, event)
            return
        if kind == _RECOVERED and len(history.rollbacks) > self._rollbacks:
            self._rollbacks = len(history.rollbacks)
            for check in self._checks:
                check.rolled_back(time_ns, history)
        asked = kind if kind != _REQUEST else kind + event.verb
        takes = self._takers.get(asked)
        if takes is None:
            takes = self._ask(kind, asked)
        for take in takes:
            take(time_ns, actor, event)
        if kind in self._of_actors:
            watch = event.watch if kind in _OF_WATCHES else ""
            for prefix, resource, take in self._of_actors[kind]:
                if actor.startswith(prefix) and watch.startswith(resource):
                    take(time_ns, actor, event)
        if kind == _ENDED:
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


class _Wishes(NamedTuple):
    """What listeners ask for, by their places: it depends on their classes alone."""

    by_kind: dict[str, list[tuple[int, str, str]]]
    """Kinds of events: with how the names begin of their actors, and of their watches."""
    of_pods: list[int]
    """Changes of pods."""


@functools.cache
def _wishes(listeners: tuple[type[Listener], ...]) -> _Wishes:
    by_kind: dict[str, list[tuple[int, str, str]]] = {}
    for place, listener in enumerate(listeners):
        actors = {event.KIND: prefix for event, prefix in listener.actors.items()}
        watches = {event.KIND: f"{resource}#" for event, resource in listener.watches.items()}
        for kind in listener.kinds:
            by_kind.setdefault(kind, []).append((place, actors.get(kind, ""), watches.get(kind, "")))
    takes_pods = Listener.pod_changes
    return _Wishes(by_kind, [place for place, one in enumerate(listeners) if one.pod_changes is not takes_pods])


def _result(check: Check, history: History, within: limits.Limits) -> Result:
    found = check.result(history)
    return Result(found.id, found.holds, found.detail, check.detector, check.is_asked(within))
