"""One scheduling cycle after the other: whose turn it is, in which flavors it fits, who has to go (``pkg/scheduler``).

In each cycle every queue offers its first workload. They are taken in an order that depends on all of them; each is
admitted, or evicts others and waits until their quota is free, or goes back.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from kemu.emulated.queues import preemption, quotas, settings
from kemu.emulated.queues.preemption import Target
from kemu.emulated.queues.quotas import Node, Quota
from kemu.emulated.queues.workloads import NEVER, RECLAIMS_BORROWING, Queue, Workload

FIT, PREEMPT, NO_FIT = "fit", "preempt", "no fit"
PRIORITY_SORTING = "PrioritySortingWithinCohort"


@dataclass(eq=False)
class Waiting:
    """The workloads that wait for one ClusterQueue."""

    queue: Queue
    groups: Sequence[settings.Group]
    is_strict: bool
    active: dict[str, Workload] = field(default_factory=dict)
    inadmissible: dict[str, Workload] = field(default_factory=dict)
    """Those that did not fit: looked at again when quota of their cohorts becomes free."""
    sticky: str = ""
    """The workload that has preempted and waits for the quota."""

    def head(self) -> Workload | None:
        if self.sticky in self.active:
            return self.active[self.sticky]
        return min(self.active.values(), key=lambda one: (-one.priority, one.queued, one.uid), default=None)


@dataclass
class Entry:
    """What a cycle finds out about one workload."""

    waiting: Waiting
    workload: Workload
    requests: Mapping[str, int]
    mode: str = NO_FIT
    usage: dict[str, int] = field(default_factory=dict)
    needs: list[str] = field(default_factory=list)
    height: int = 0
    """How far up the cohorts it borrows; 0: not at all."""
    targets: list[Target] = field(default_factory=list)
    flavors: dict[str, str] = field(default_factory=dict)
    """By resource."""


@dataclass
class Outcome:
    """What a cycle decided."""

    admitted: list[Entry] = field(default_factory=list)
    evicted: list[tuple[Target, Workload]] = field(default_factory=list)
    """Each with the workload for which it goes."""
    given_up: int = 0
    """How many workloads do not fit: another one is at the head of their queue now."""


class Scheduler:
    """Knows all queues, what is admitted to them, and what waits."""

    def __init__(self, stated: settings.Settings) -> None:
        self._stated = stated
        self._sorts_by_priority = stated.feature_gates.get(PRIORITY_SORTING, True)
        fair = stated.fair_sharing
        self._rules = preemption.Rules(
            fair=tuple(fair.preemption_strategies) if fair else (),
            borrows_when_fair=stated.borrows_when_fair,
            spares_own=stated.spares_own,
        )
        self.waiting: dict[str, Waiting] = {}
        """By ClusterQueue."""
        self._requests: dict[str, Mapping[str, int]] = {}
        cohorts = {one.name: Node(one.name, _quotas(one.resource_groups), _weight(one)) for one in stated.cohorts}
        names = [one.parent_name for one in stated.cohorts] + [one.cohort_name for one in stated.cluster_queues]
        for name in filter(None, names):
            cohorts.setdefault(name, Node(name))
        for one in stated.cohorts:
            _attach(cohorts[one.name], cohorts.get(one.parent_name))
        for queue in stated.cluster_queues:
            node = _queue(queue)
            _attach(node, cohorts.get(queue.cohort_name))
            strict = queue.queueing_strategy == "StrictFIFO"
            self.waiting[queue.name] = Waiting(node, queue.resource_groups, strict)
        for root in (*cohorts.values(), *(one.queue for one in self.waiting.values())):
            if root.parent is None:
                root.settle()

    # --- what comes and goes -----------------------------------------------------------------------------------------

    def add(self, name: str, workload: Workload, requests: Mapping[str, int]) -> None:
        """A workload waits for the ClusterQueue of this name, with what it requests by resource."""
        self._requests[workload.name] = requests
        workload.usage, workload.uses, workload.queue = {}, frozenset(), None
        self.waiting[name].active[workload.name] = workload

    def forget(self, name: str, workload: Workload) -> None:
        """It is gone, or has ended: what it had is free."""
        waiting = self.waiting[name]
        waiting.active.pop(workload.name, None)
        waiting.inadmissible.pop(workload.name, None)
        if waiting.sticky == workload.name:
            waiting.sticky = ""
        if workload.name in waiting.queue.workloads:
            self.release(name, workload)

    def release(self, name: str, workload: Workload) -> None:
        """It has stopped: its quota is free, and those that did not fit are looked at again."""
        queue = self.waiting[name].queue
        queue.release(workload)
        root = queue.root()
        for one in self.waiting.values():
            if one.queue.root() is root:
                one.active.update(one.inadmissible)
                one.inadmissible.clear()

    def resume(self, name: str, workload: Workload, reason: str, now: float) -> None:
        """An evicted workload that has stopped queues again. ``reason``: why it was preempted, if it was."""
        is_late = reason == RECLAIMS_BORROWING and not self._sorts_by_priority and self._stated.victims_go_behind
        workload.queued = now if is_late else workload.queued
        workload.evicted, workload.reserved = False, None
        self.add(name, workload, self._requests[workload.name])

    @property
    def has_work(self) -> bool:
        return any(one.active for one in self.waiting.values())

    # --- a cycle -----------------------------------------------------------------------------------------------------

    def cycle(self, now: float) -> Outcome:
        entries = []
        for waiting in self.waiting.values():
            head = waiting.head()
            if head is not None:
                entries.append(self._nominated(waiting, head, now))
        outcome = Outcome()
        going: set[str] = set()
        assumed: list[Entry] = []
        for entry in self._ordered(entries):
            self._process(entry, outcome, going, assumed)
        for entry in assumed:
            entry.waiting.queue.remove(entry.usage)
        for entry in outcome.admitted:
            one = entry.workload
            one.usage, one.uses, one.reserved = entry.usage, frozenset(entry.usage), now
            entry.waiting.queue.admit(one)
        return outcome

    def _process(self, entry: Entry, outcome: Outcome, going: set[str], assumed: list[Entry]) -> None:
        """``going``: workloads that others preempt in this cycle. ``assumed``: whose usage counts until its end."""
        waiting, one = entry.waiting, entry.workload
        queue = waiting.queue
        if entry.mode == NO_FIT or (entry.mode == PREEMPT and not entry.targets):
            if entry.mode == PREEMPT and queue.reclaim != "Any":
                entry.usage = _reserved(entry)
                queue.add(entry.usage)
                assumed.append(entry)
            if waiting.sticky == one.name:
                waiting.sticky = ""
            if not waiting.is_strict:
                waiting.inadmissible[one.name] = waiting.active.pop(one.name)
                outcome.given_up += 1
            return
        names = {target.workload.name for target in entry.targets}
        if names & going or not self._still_fits(entry, going):
            return
        going |= names
        queue.add(entry.usage)
        assumed.append(entry)
        if entry.mode == PREEMPT:
            if self._stated.sticky_preemptors:
                waiting.sticky = one.name
            outcome.evicted += [(target, one) for target in entry.targets if not target.workload.evicted]
            return
        del waiting.active[one.name]
        if waiting.sticky == one.name:
            waiting.sticky = ""
        outcome.admitted.append(entry)

    def _still_fits(self, entry: Entry, going: set[str]) -> bool:
        """Once its victims, and those of others, have gone."""
        leaving = [
            workload
            for waiting in self.waiting.values()
            for workload in waiting.queue.workloads.values()
            if workload.name in going or any(target.workload is workload for target in entry.targets)
        ]
        for one in leaving:
            assert one.queue is not None
            one.queue.remove(one.usage)
        fits = all(entry.waiting.queue.available(name) >= amount for name, amount in entry.usage.items())
        for one in leaving:
            assert one.queue is not None
            one.queue.add(one.usage)
        return fits

    # --- in which flavors --------------------------------------------------------------------------------------------

    def _nominated(self, waiting: Waiting, workload: Workload, now: float) -> Entry:
        entry = Entry(waiting, workload, self._requests[workload.name])
        rest = dict(entry.requests)
        modes = []
        for group in waiting.groups:
            wanted = {name: rest.pop(name) for name in group.covered_resources if name in rest}
            if wanted:
                modes.append(self._assign(entry, group, wanted, now))
        if rest or NO_FIT in modes:
            return entry
        entry.mode = PREEMPT if PREEMPT in modes else FIT
        workload.usage, workload.uses = entry.usage, frozenset(entry.usage)
        if entry.mode == PREEMPT:
            entry.targets = preemption.targets(workload, waiting.queue, entry.needs, self._rules, now)
        return entry

    def _assign(self, entry: Entry, group: settings.Group, wanted: Mapping[str, int], now: float) -> str:
        """The first flavor in which everything fits; or else the first in which preemption may help."""
        best: tuple[str, dict[str, int], list[str], int] | None = None
        for flavor in group.flavors:
            usage = {f"{flavor.name}/{name}": amount for name, amount in wanted.items()}
            found = [self._mode(entry, name, amount, now) for name, amount in usage.items()]
            if any(mode == NO_FIT for mode, _ in found):
                continue
            needs = [name for name, (mode, _) in zip(usage, found, strict=True) if mode == PREEMPT]
            height = max(one for _, one in found)
            if not needs or best is None:
                best = (PREEMPT if needs else FIT, usage, needs, height)
            if not needs:
                break
        if best is None:
            return NO_FIT
        mode, usage, needs, height = best
        entry.usage.update(usage)
        entry.needs += needs
        entry.height = max(entry.height, height)
        entry.flavors.update({quotas.resource_of(name): name.partition("/")[0] for name in usage})
        return mode

    def _mode(self, entry: Entry, name: str, amount: int, now: float) -> tuple[str, int]:
        """Of one flavor and resource, and how far up it borrows."""
        queue = entry.waiting.queue
        if amount > queue.potential(name):
            return NO_FIT, 0
        height, may_reclaim = _height(queue, name, amount)
        if amount <= max(0, queue.available(name)):
            return FIT, height
        nominal = queue.quotas[name].nominal if name in queue.quotas else 0
        if amount <= nominal or may_reclaim or queue.borrow != NEVER or self._rules.fair:
            return PREEMPT, height
        return NO_FIT, height

    # --- in which order ----------------------------------------------------------------------------------------------

    def _ordered(self, entries: list[Entry]) -> Iterator[Entry]:
        if not self._rules.fair:
            yield from sorted(entries, key=lambda one: (one.height, *self._rank(one)))
            return
        left = {one.waiting.queue.name: one for one in entries}
        while left:
            queue = next(iter(left.values())).waiting.queue
            best = left[queue.name] if queue.parent is None else self._winner(queue.root(), left)
            assert best is not None
            del left[best.waiting.queue.name]
            yield best

    def _rank(self, entry: Entry) -> tuple[int, float]:
        return -entry.workload.priority if self._sorts_by_priority else 0, entry.workload.queued

    def _winner(self, cohort: Node, left: Mapping[str, Entry]) -> Entry | None:
        """The entry below a cohort after whose admission the share of its branch is the least."""
        best: Entry | None = None
        best_key: tuple[object, ...] = ()
        for child in cohort.children:
            entry = left.get(child.name) if isinstance(child, Queue) else self._winner(child, left)
            if entry is None:
                continue
            entry.waiting.queue.add(entry.usage)
            key = (child.share().key, self._rank(entry))
            entry.waiting.queue.remove(entry.usage)
            if best is None or key < best_key:
                best, best_key = entry, key
        return best


def _height(queue: Queue, name: str, amount: int) -> tuple[int, bool]:
    """How high the lowest subtree is that has the quota, and whether there is a cohort above it
    (``FindHeightOfLowestSubtreeThatFits``)."""
    if not queue.borrows_with(name, amount) or queue.parent is None:
        return 0, queue.parent is not None
    rest = amount - queue.kept_free(name)
    for node in queue.ancestors():
        if node.usage.get(name, 0) + rest <= node.subtree.get(name, 0):
            return _tallness(node), node.parent is not None
        rest -= node.kept_free(name)
    return _tallness(queue.root()), False


def _tallness(node: Node) -> int:
    return max((1 if isinstance(child, Queue) else _tallness(child) + 1 for child in node.children), default=0)


def _reserved(entry: Entry) -> dict[str, int]:
    """What a workload that cannot preempt yet keeps from those after it in the cycle (``quotaResourcesToReserve``)."""
    queue = entry.waiting.queue
    found = {}
    for name, amount in entry.usage.items():
        quota = queue.quotas.get(name, Quota(0))
        used = queue.usage.get(name, 0)
        if entry.height == 0:
            found[name] = max(0, min(amount, quota.nominal - used))
        elif quota.borrowing_limit is None:
            found[name] = amount
        else:
            found[name] = min(amount, quota.nominal + quota.borrowing_limit - used)
    return found


def _quotas(groups: Sequence[settings.Group]) -> dict[str, Quota]:
    found = {}
    for group in groups:
        for flavor in group.flavors:
            for one in flavor.resources:
                limits = [
                    None if text is None else settings.amount(one.name, text)
                    for text in (one.borrowing_limit, one.lending_limit)
                ]
                found[f"{flavor.name}/{one.name}"] = Quota(settings.amount(one.name, one.nominal_quota), *limits)
    return found


def _weight(one: settings.Cohort | settings.ClusterQueue) -> float:
    return 1.0 if one.fair_sharing is None else one.fair_sharing.weight


def _queue(one: settings.ClusterQueue) -> Queue:
    rules = one.preemption
    borrow = rules.borrow_within_cohort or settings.Borrowing()
    return Queue(
        one.name,
        _quotas(one.resource_groups),
        _weight(one),
        within=rules.within_cluster_queue,
        reclaim=rules.reclaim_within_cohort,
        borrow=borrow.policy,
        borrow_below=borrow.max_priority_threshold,
    )


def _attach(node: Node, parent: Node | None) -> None:
    node.parent = parent
    if parent is not None:
        parent.children.append(node)
