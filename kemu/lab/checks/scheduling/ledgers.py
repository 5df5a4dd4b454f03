"""Disruption budgets over a run: how many healthy pods each of them had and wanted, and who took some away.

Computed anew from the store's history, by the rules of pkg/controller/disruption. Neighbours: ``budgets`` checks
evictions with it; counters, expectations and reports read it.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from kemu.emulated.objects import meta, selectors
from kemu.emulated.objects.pods import pod_phases
from kemu.lab.checks import scales
from kemu.lab.checks.history import POD_PREFIX, History, parsed
from kemu.lab.checks.history.facts import WatchSession
from kemu.lab.checks.history.stores import Change
from kemu.lab.checks.results import seconds
from kemu.messages.k8s import core_v1_pb2, policy_v1_pb2
from kemu.runtime.words import counted

LAG_NS = 60 * 1_000_000_000
"""How far the disruption controller may be behind the store when it writes the status of a budget, where its log does
not tell what it had been shown."""
PREEMPTED, EVICTED = "preempted", "evicted"
VIOLATIONS = "budget_violations"
COUNTERS = {
    (PREEMPTED, False): "preemptions_within_budget",
    (PREEMPTED, True): VIOLATIONS,
    (EVICTED, False): "evictions_within_budget",
    (EVICTED, True): "evictions_beyond_budget",
}
"""By what happened to a healthy pod, and whether it left its budget fewer pods than that wants."""

BUDGET_PREFIX = "/registry/poddisruptionbudgets/"
_READ = (POD_PREFIX, *scales.PREFIXES)
"""What the controller computes a status from, beside the budget itself."""


@dataclass(frozen=True, slots=True)
class Level:
    """How many healthy pods a budget has and wants, from a time on."""

    time_ns: int
    healthy: int
    wanted: int


@dataclass(frozen=True, slots=True)
class Disruption:
    """A healthy pod that a budget protects was preempted or evicted."""

    time_ns: int
    how: str
    """``preempted`` or ``evicted``."""
    pod: str
    """``namespace/name``."""
    uid: str
    budget: str
    """``namespace/name``."""
    left: int
    """Healthy pods that remained."""
    wanted: int

    @property
    def beyond(self) -> bool:
        """It left the budget fewer than that wants."""
        return self.left < self.wanted


@dataclass(slots=True)
class BudgetHistory:
    """One budget, by name."""

    name: str
    """``namespace/name``."""
    levels: list[Level] = field(default_factory=list)
    disruptions: list[Disruption] = field(default_factory=list)

    def data(self) -> dict[str, Any]:
        """For verdict.json. ``lowest``: the fewest for what it wanted then, since it first had as many as it wants;
        None: it never had. A budget that wants as many as it ever had wants few while its pods start."""
        last = self.levels[-1]
        first = next((place for place, one in enumerate(self.levels) if one.healthy >= one.wanted > 0), None)
        lowest = min(self.levels[first:], key=_spare) if first is not None else None
        return {
            "wants": last.wanted,
            "healthy": last.healthy,
            "highest": max(one.healthy for one in self.levels),
            "lowest": None if lowest is None else lowest.healthy,
            "lowest_s": None if lowest is None else round(lowest.time_ns / 1e9, 6),
            **{how: self._times(how) for how in (PREEMPTED, EVICTED)},
        }

    def _times(self, how: str) -> dict[str, int]:
        found = [one.beyond for one in self.disruptions if one.how == how]
        return {"within": found.count(False), "beyond": found.count(True)}


def _spare(level: Level) -> tuple[int, int]:
    """How many pods it could lose; among equals the larger first."""
    return level.healthy - level.wanted, -level.healthy


@dataclass(slots=True)
class _Pod:
    namespace: str
    labels: dict[str, str]
    healthy: bool
    """Ready, and not being deleted: it counts for its budgets."""
    needs_no_budget: bool
    """It has ended, is being deleted, or has not started: anybody may evict it."""
    owner: scales.Owner | None


@dataclass(slots=True)
class _Budget:
    name: str
    namespace: str
    spec: policy_v1_pb2.PodDisruptionBudgetSpec
    selector: selectors.LabelSelector
    members: dict[str, bool] = field(default_factory=dict)
    """By key in the store: whether the pod is healthy."""
    owners: dict[str, scales.Owner | None] = field(default_factory=dict)
    """Controllers of the members, by key."""
    owned: Counter[scales.Owner | None] = field(default_factory=Counter)
    """How many members each has: a budget with thousands of them is asked at each of their changes."""
    healthy: int = 0
    """How many of them are."""
    is_unmanaged: bool = False
    """It wants a share of pods of which no controller says how many there should be, so it can spare none."""
    most: int = 0
    """The most healthy pods that it has had so far."""
    wanted: list[tuple[int, int]] = field(default_factory=list)
    """How many healthy pods it wanted since when."""
    lost_ns: list[int] = field(default_factory=list)
    """When healthy pods were lost without an eviction, in order."""
    written_ns: int = 0
    """When the disruption controller wrote its status last."""
    shown_ns: int = 0
    """What had happened before then it knew."""
    disrupted: tuple[str, ...] = ()
    """In its status: pods that may be evicted any moment."""
    said: int = 0
    """How many healthy pods it wants, according to its status."""
    surplus: int = 0
    """Healthy pods that its status counted although they had been lost, a short time before."""

    def put(self, key: str, pod: _Pod) -> None:
        self.healthy += pod.healthy - self.members.get(key, False)
        self.most = max(self.most, self.healthy)
        if key not in self.members or self.owners[key] != pod.owner:
            self._disown(key)
            self.owners[key] = pod.owner
            self.owned[pod.owner] += 1
        self.members[key] = pod.healthy

    def drop(self, key: str) -> None:
        self._disown(key)
        self.healthy -= self.members.pop(key, False)

    def _disown(self, key: str) -> None:
        if key in self.members:
            owner = self.owners.pop(key)
            self.owned[owner] -= 1
            if not self.owned[owner]:
                del self.owned[owner]

    def written(self, time_ns: int, shown_ns: int, status: policy_v1_pb2.PodDisruptionBudgetStatus) -> None:
        """By the disruption controller, from what it had seen of the store."""
        self.written_ns, self.shown_ns, self.said = time_ns, shown_ns, status.desiredHealthy
        prefix = f"{POD_PREFIX}{self.namespace}/"
        leaving = sum(self.members.get(prefix + name, False) for name in status.disruptedPods)
        recent = len(self.lost_ns) - bisect_left(self.lost_ns, shown_ns)
        self.surplus = min(recent, max(0, status.currentHealthy - (self.healthy - leaving)))

    def wants(self) -> int:
        """As many healthy pods as now, or fewer as long as its status had no time to follow."""
        later = [value for begin_ns, value in self.wanted if begin_ns >= self.shown_ns]
        before = [value for begin_ns, value in self.wanted if begin_ns < self.shown_ns][-1:]
        now = self.wanted[-1][1]
        return min(now, self.said) if self.said in (*before, *later) else now

    def unseen_losses(self) -> int:
        """Lost pods that its status still counts."""
        return self.surplus + len(self.lost_ns) - bisect_right(self.lost_ns, self.written_ns)


def of(history: History) -> Ledger:
    """When the run is over; computed once."""
    return history.derived(_made)


def _made(history: History) -> Ledger:
    ledger = Ledger(history)
    if any(change.key.startswith(BUDGET_PREFIX) for change in history.changes):
        for change in history.changes:
            ledger.apply(change)
    for (how, beyond), counter in COUNTERS.items():
        history.counts[counter] = sum(one.how == how and one.beyond == beyond for one in ledger.disruptions())
    return ledger


class Ledger:
    """All budgets and their pods, change by change."""

    def __init__(self, history: History) -> None:
        self._history = history
        self._evictions = history.api_evictions
        self._preemptors = {victim: preemptor for _, victim, preemptor in history.victims}
        self._budgets: dict[str, _Budget] = {}
        self._pods: dict[str, _Pod] = {}
        self._scales = scales.Scales()
        self._shown = _Shown(history)
        self._of_pod: dict[str, list[Disruption]] = {}
        """By UID."""
        self.budgets: dict[str, BudgetHistory] = {}
        """By ``namespace/name``, in the order of their creation."""
        self.findings: list[str] = []
        """Evictions through the API that a budget does not allow."""
        self.violations: list[str] = []
        """Preemptions that left a budget too few pods."""
        self.judged = 0
        """Evictions through the API of pods with a budget."""

    def disruptions(self) -> list[Disruption]:
        return [one for budget in self.budgets.values() for one in budget.disruptions]

    def beyond(self, uid: str, how: str) -> list[Disruption]:
        """What the preemption or eviction of one pod took from budgets that had none to give."""
        return [one for one in self._of_pod.get(uid, ()) if one.how == how and one.beyond]

    def apply(self, change: Change) -> None:
        if change.key.startswith(POD_PREFIX):
            self._pod_changed(change)
        elif change.key.startswith(BUDGET_PREFIX):
            self._budget_changed(change)
        elif self._scales.changed(change.key, change.value):
            for budget in self._budgets.values():
                self._note_wanted(budget, change.time_ns)

    # --- pods --------------------------------------------------------------------------------------------------------

    def _pod_changed(self, change: Change) -> None:
        before = self._pods.get(change.key)
        found = None if change.value is None else parsed.pod(change.value)
        after = None if found is None else _pod(found)
        uid = found.metadata.uid if found is not None else self._uid_before(change)
        evicted = self._evictions.get(change.revision)
        if evicted is None or evicted["uid"] != uid:
            evicted = None
        elif before is not None and not before.needs_no_budget:
            self._evicted(change, evicted)
        is_lost = before is not None and before.healthy and (after is None or not after.healthy)
        if is_lost and uid in self._preemptors:
            self._preempted(change, uid)
        elif is_lost and (evicted is not None or self._is_evicted(uid, change.time_ns)):
            self._disrupted(change, uid, EVICTED)
        if after is None:
            self._pods.pop(change.key, None)
        else:
            self._pods[change.key] = after
        for budget in self._budgets.values():
            was = change.key in budget.members
            if after is None or not _selects(budget, after):
                budget.drop(change.key)
            else:
                budget.put(change.key, after)
            if was and is_lost and evicted is None:
                budget.lost_ns.append(change.time_ns)
            if was != (change.key in budget.members):
                self._note_wanted(budget, change.time_ns)
            elif was:
                self._note_level(budget, change.time_ns)

    def _uid_before(self, change: Change) -> str:
        return parsed.pod(change.previous).metadata.uid if change.previous is not None else ""

    def _budgets_of(self, key: str) -> list[_Budget]:
        return [budget for budget in self._budgets.values() if key in budget.members]

    def _evicted(self, change: Change, evicted: Mapping[str, Any]) -> None:
        budgets = self._budgets_of(change.key)
        if not budgets:
            return
        self.judged += 1
        who = f"{seconds(change.time_ns)}: {evicted['by']} evicted {change.key.removeprefix(POD_PREFIX)}"
        if len(budgets) > 1:
            names = ", ".join(budget.name for budget in budgets)
            self.findings.append(f"{who}, which has several disruption budgets: {names}")
            return
        (budget,) = budgets
        is_healthy = budget.members[change.key]
        if not is_healthy and budget.spec.unhealthyPodEvictionPolicy == "AlwaysAllow":
            return
        others = budget.healthy - is_healthy
        wanted = budget.wants()
        if others + budget.unseen_losses() < wanted:
            left = counted(others, "healthy pod")
            self.findings.append(f"{who}: that leaves {left} to {budget.name}, which wants {wanted}")

    def _is_evicted(self, uid: str, time_ns: int) -> bool:
        """By its kubelet, a taint or with its node: none of these asks a budget."""
        pod = self._history.pods.get(uid)
        return pod is not None and any(fact.what == "evicted" and fact.time_ns <= time_ns for fact in pod.facts)

    def _disrupted(self, change: Change, uid: str, how: str) -> list[Disruption]:
        """A healthy pod goes, which its budgets still count."""
        pod = change.key.removeprefix(POD_PREFIX)
        found = []
        for budget in self._budgets_of(change.key):
            wanted = budget.most if budget.is_unmanaged else self._wanted(budget)
            name = f"{budget.namespace}/{budget.name}"
            found.append(Disruption(change.time_ns, how, pod, uid, name, budget.healthy - 1, wanted))
            self.budgets[name].disruptions.append(found[-1])
        self._of_pod.setdefault(uid, []).extend(found)
        return found

    def _preempted(self, change: Change, uid: str) -> None:
        preemptor = self._history.pods.get(self._preemptors.pop(uid))
        by = preemptor.key if preemptor is not None else "a static pod"
        for found in self._disrupted(change, uid, PREEMPTED):
            if found.beyond:
                keeps = f"{found.budget} keeps {counted(found.left, 'healthy pod')} and wants {found.wanted}"
                self.violations.append(f"{seconds(change.time_ns)}: {keeps}, as {found.pod} is preempted for {by}")

    # --- budgets -----------------------------------------------------------------------------------------------------

    def _budget_changed(self, change: Change) -> None:
        if change.value is None:
            self._budgets.pop(change.key, None)
            return
        found = policy_v1_pb2.PodDisruptionBudget.FromString(change.value)
        budget = self._budgets.get(change.key)
        if budget is None or budget.spec != found.spec:
            selector = selectors.compile_labels_field(found.spec, "selector")
            renewed = _Budget(found.metadata.name, found.metadata.namespace, found.spec, selector)
            for key, pod in self._pods.items():
                if _selects(renewed, pod):
                    renewed.put(key, pod)
            if budget is not None:
                renewed.wanted, renewed.lost_ns = budget.wanted, budget.lost_ns
                renewed.written_ns, renewed.shown_ns = budget.written_ns, budget.shown_ns
                renewed.disrupted = budget.disrupted
                renewed.said, renewed.surplus = budget.said, budget.surplus
                renewed.most = max(renewed.most, budget.most)
            budget = self._budgets[change.key] = renewed
            self._note_wanted(budget, change.time_ns)
        disrupted = tuple(sorted(found.status.disruptedPods))
        if all(name in budget.disrupted for name in disrupted):
            # Not an eviction, which adds the pod that it takes from the budget.
            budget.written(change.time_ns, self._shown.before_ns(change), found.status)
        budget.disrupted = disrupted

    def _note_wanted(self, budget: _Budget, time_ns: int) -> None:
        wanted = self._wanted(budget)
        if not budget.wanted or budget.wanted[-1][1] != wanted:
            budget.wanted.append((time_ns, wanted))
        self._note_level(budget, time_ns)

    def _note_level(self, budget: _Budget, time_ns: int) -> None:
        name = f"{budget.namespace}/{budget.name}"
        levels = self.budgets.setdefault(name, BudgetHistory(name)).levels
        wanted = budget.most if budget.is_unmanaged else budget.wanted[-1][1]
        level = Level(time_ns, budget.healthy, wanted)
        if levels and levels[-1].time_ns == time_ns:
            levels[-1] = level
        elif not levels or (levels[-1].healthy, levels[-1].wanted) != (level.healthy, level.wanted):
            levels.append(level)

    def _wanted(self, budget: _Budget) -> int:
        """How many healthy pods (``getExpectedPodCount``)."""
        spec = budget.spec
        if not scales.is_share(spec):
            return int(spec.minAvailable.intVal)
        expected = self._scales.expected(budget.owned)
        budget.is_unmanaged = expected == 0
        return scales.desired(spec, expected)


class _Shown:
    """What the watches of disruption controllers had delivered when they computed the statuses of budgets."""

    def __init__(self, history: History) -> None:
        self._writes = {} if history.rollbacks else history.budget_writes
        """None where the store lost revisions: the same number may be another one."""
        self._changes: dict[str, tuple[list[int], list[int]]] = {prefix: ([], []) for prefix in _READ}
        """Revisions and times, by prefix."""
        self._sessions: dict[tuple[str, str], list[WatchSession]] = {}
        """By actor and prefix."""
        if not self._writes:
            return
        for change in history.changes:
            known = self._changes.get(change.key[: change.key.find("/", len("/registry/")) + 1])
            if known is not None:
                known[0].append(change.revision)
                known[1].append(change.time_ns)
        actors = {actor: None for actor, _ in self._writes.values()}
        for session in history.watches:
            if session.actor in actors:
                self._sessions.setdefault((session.actor, f"/registry/{session.resource}/"), []).append(session)

    def before_ns(self, change: Change) -> int:
        """The writer of this status of a budget knew what had happened before then."""
        if change.revision not in self._writes:
            return change.time_ns - LAG_NS
        actor, asked_ns = self._writes[change.revision]
        known_ns = asked_ns
        for prefix, (revisions, times) in self._changes.items():
            sessions = self._sessions.get((actor, prefix), [])
            last = bisect_left(sessions, asked_ns, key=lambda session: session.listed_ns)
            if last:
                place = bisect_right(revisions, _shown(sessions[last - 1], asked_ns))
            else:
                place = 0
            if place < len(times):
                known_ns = min(known_ns, times[place])
        return known_ns


def _shown(session: WatchSession, before_ns: int) -> int:
    """The last revision that a watch had delivered then."""
    batches = bisect_left(session.batches, (before_ns, -1))
    had = session.batches[batches][1] if batches < len(session.batches) else len(session.revisions)
    return session.revisions[had - 1] if had else session.since


def _pod(pod: core_v1_pb2.Pod) -> _Pod:
    metadata = pod.metadata
    deleting = metadata.HasField("deletionTimestamp")
    return _Pod(
        metadata.namespace,
        dict(metadata.labels),
        healthy=meta.is_ready(pod) and not deleting,
        needs_no_budget=deleting or pod_phases.is_terminal(pod) or pod.status.phase in ("", "Pending"),
        owner=scales.owner_of(pod),
    )


def _selects(budget: _Budget, pod: _Pod) -> bool:
    """An empty selector selects nothing for the API server (``getPodDisruptionBudgets``)."""
    selector = budget.selector
    return pod.namespace == budget.namespace and not selector.everything and selector.matches(pod.labels)
