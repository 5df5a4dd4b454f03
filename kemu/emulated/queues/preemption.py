"""Which workloads must go so that another one gets its quota (``pkg/scheduler/preemption`` of Kueue).

Without fair sharing: candidates by priority and by who is nearer to the quota (``classical``). With it, whose share of
what is borrowed is the larger (``fairsharing``). What is tried is taken back before the answer.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from kemu.emulated.queues.quotas import LEAST, Node, Share
from kemu.emulated.queues.workloads import (
    ANY,
    FAIR,
    IN_QUEUE,
    LOWER,
    LOWER_OR_NEWER,
    NEVER,
    RECLAIMS,
    RECLAIMS_BORROWING,
    Queue,
    Workload,
)

BUFFER_S = 5 * 60.0
"""By how much a workload of equal priority must be newer (``SchedulerTimestampPreemptionBuffer``)."""

Strategy = Callable[[Share, Share, Share], bool]


def _final(preemptor: Share, before: Share, after: Share) -> bool:
    return preemptor.key <= after.key


def _initial(preemptor: Share, before: Share, after: Share) -> bool:
    return preemptor.key < before.key


STRATEGIES: dict[str, Strategy] = {"LessThanOrEqualToFinalShare": _final, "LessThanInitialShare": _initial}


@dataclass(frozen=True)
class Rules:
    """How preemption is configured."""

    fair: tuple[str, ...] = ()
    """Names of strategies of fair sharing; none: without it."""
    needs_buffer: bool = False
    within_nominal: bool = True
    """Whether a queue within its nominal quota may preempt whatever the shares are."""
    borrows_when_fair: bool = False
    """Whether borrowWithinCohort counts with fair sharing, too, as in Kueue 0.9 and 0.10.0: a bug."""
    spares_own: bool = True
    """Whether with fair sharing a victim of the workload's own queue is spared if there is room without it, although
    its going made others fair game (kueue#14543)."""


class Target(NamedTuple):
    workload: Workload
    reason: str


@dataclass
class _Attempt:
    """One workload that needs room."""

    workload: Workload
    queue: Queue
    needs: frozenset[str]
    """Flavors and resources of which there is not enough."""
    rules: Rules
    now: float

    def fits(self, *, borrowing: bool) -> bool:
        for name, amount in self.workload.usage.items():
            if not borrowing and self.queue.borrows_with(name, amount):
                return False
            if amount > max(0, self.queue.available(name)):
                return False
        return True

    def allows(self, policy: str, other: Workload) -> bool:
        """Whether a policy lets it preempt the other one."""
        mine = self.workload
        lower = mine.priority > other.priority
        if policy == LOWER:
            return lower
        if policy == LOWER_OR_NEWER:
            newer = mine.priority == other.priority and mine.queued < other.queued
            if newer and self.rules.needs_buffer:
                newer = other.queued - mine.queued > BUFFER_S
            return lower or newer
        return policy == ANY

    def order(self, other: Workload) -> tuple[bool, bool, int, float, str]:
        """The first one goes first: evicted already, of other queues, low priority, admitted late."""
        reserved = self.now if other.reserved is None else other.reserved
        return not other.evicted, other.queue is self.queue, other.priority, -reserved, other.uid

    def targets(self, chosen: list[Target], *, borrowing: bool) -> list[Target]:
        """Without those that need not go after all (``fillBackWorkloads``); then all are put back."""
        for place in range(len(chosen) - 2, -1, -1):
            if self.rules.fair and not self.rules.spares_own and chosen[place].workload.queue is self.queue:
                continue
            _put(chosen[place].workload)
            if self.fits(borrowing=borrowing):
                chosen[place] = chosen[-1]
                chosen.pop()
            else:
                _take(chosen[place].workload)
        _restore(chosen)
        return chosen


def _take(workload: Workload) -> None:
    assert workload.queue is not None
    workload.queue.release(workload)


def _put(workload: Workload) -> None:
    assert workload.queue is not None
    workload.queue.admit(workload)


def _restore(targets: Iterable[Target]) -> None:
    for one in targets:
        _put(one.workload)


def targets(workload: Workload, queue: Queue, needs: Iterable[str], rules: Rules, now: float) -> list[Target]:
    """In the order in which they were found; empty: preemption does not help."""
    attempt = _Attempt(workload, queue, frozenset(needs), rules, now)
    return _fair(attempt) if rules.fair else _classical(attempt)


# --- by priority and quota -------------------------------------------------------------------------------------------


class _Candidate(NamedTuple):
    workload: Workload
    common: Node | None
    """The cohort under which both are."""
    reason: str
    only_without_borrowing: bool


def _classical(attempt: _Attempt) -> list[Target]:
    same = _of_queue(attempt, attempt.queue, None, is_nearer=False) if attempt.queue.within != NEVER else []
    nearer, others = _of_cohorts(attempt)
    groups = [sorted(one, key=lambda found: attempt.order(found.workload)) for one in (nearer, others, same)]
    candidates = [found for group in groups for found in group if found.workload.evicted]
    candidates += [found for group in groups for found in group if not found.workload.evicted]
    forbidden = attempt.queue.borrow == NEVER
    if not (nearer or others) or (forbidden and not _is_under_nominal(attempt)):
        tries = [True]
    elif forbidden and not nearer:
        tries = [False, True]
    else:
        tries = [True, False]
    for borrowing in tries:
        chosen: list[Target] = []
        for found in candidates:
            if not _is_valid(attempt, found, borrowing=borrowing):
                continue
            _take(found.workload)
            chosen.append(Target(found.workload, found.reason))
            if attempt.fits(borrowing=borrowing):
                return attempt.targets(chosen, borrowing=borrowing)
        _restore(chosen)
    return []


def _is_under_nominal(attempt: _Attempt) -> bool:
    quotas, usage = attempt.queue.quotas, attempt.queue.usage
    return all(usage.get(name, 0) < (quotas[name].nominal if name in quotas else 0) for name in attempt.needs)


def _is_valid(attempt: _Attempt, found: _Candidate, *, borrowing: bool) -> bool:
    """Whether its queue, and the cohorts above it, still borrow."""
    queue = found.workload.queue
    assert queue is not None
    if queue is attempt.queue:
        return True
    if (borrowing and found.only_without_borrowing) or queue.is_within(attempt.needs):
        return False
    for node in queue.ancestors():
        if node is found.common:
            break
        if node.is_within(attempt.needs):
            return False
    return True


def _of_queue(attempt: _Attempt, queue: Queue, common: Node | None, *, is_nearer: bool) -> list[_Candidate]:
    mine = attempt.queue
    policy = mine.within if queue is mine else mine.reclaim
    found = []
    for one in queue.workloads.values():
        if not one.uses & attempt.needs or not attempt.allows(policy, one):
            continue
        if queue is mine:
            found.append(_Candidate(one, common, IN_QUEUE, only_without_borrowing=False))
        elif is_nearer:
            found.append(_Candidate(one, common, RECLAIMS, only_without_borrowing=False))
        elif mine.borrow == NEVER or _is_above_threshold(attempt, one):
            found.append(_Candidate(one, common, RECLAIMS, only_without_borrowing=True))
        else:
            found.append(_Candidate(one, common, RECLAIMS_BORROWING, only_without_borrowing=False))
    return found


def _is_above_threshold(attempt: _Attempt, other: Workload) -> bool:
    most = attempt.queue.borrow_below
    return other.priority >= attempt.workload.priority or (most is not None and other.priority > most)


def _of_cohorts(attempt: _Attempt) -> tuple[list[_Candidate], list[_Candidate]]:
    """Candidates that are farther from the quota than the workload, and the others."""
    nearer: list[_Candidate] = []
    others: list[_Candidate] = []
    if attempt.queue.reclaim == NEVER:
        return nearer, others
    is_nearer, rest = _fit_in_quota(attempt.queue, attempt.workload.usage)
    before: Node | None = None
    for cohort in attempt.queue.ancestors():
        into = nearer if is_nearer else others
        into.extend(_below(attempt, cohort, cohort, before, is_nearer=is_nearer))
        fits, rest = _fit_in_quota(cohort, rest)
        is_nearer = is_nearer or fits
        before = cohort
    return nearer, others


def _below(
    attempt: _Attempt, node: Node, common: Node, skipped: Node | None, *, is_nearer: bool
) -> Iterator[_Candidate]:
    for child in node.children:
        if child is skipped or child is attempt.queue or child.is_within(attempt.needs):
            continue
        if isinstance(child, Queue):
            yield from _of_queue(attempt, child, common, is_nearer=is_nearer)
        else:
            yield from _below(attempt, child, common, skipped, is_nearer=is_nearer)


def _fit_in_quota(node: Node, amounts: dict[str, int]) -> tuple[bool, dict[str, int]]:
    """Whether they fit into the subtree's quota, and what the parent has to give."""
    fits = all(node.usage.get(name, 0) + amount <= node.subtree.get(name, 0) for name, amount in amounts.items())
    return fits, {name: max(0, amount - node.kept_free(name)) for name, amount in amounts.items()}


# --- by shares -------------------------------------------------------------------------------------------------------


def _fair(attempt: _Attempt) -> list[Target]:
    candidates = sorted(_fair_candidates(attempt), key=attempt.order)
    if not candidates:
        return []
    strategies = [STRATEGIES[name] for name in attempt.rules.fair]
    attempt.queue.add(attempt.workload.usage)
    done, chosen, rest = _first_rule(attempt, candidates, strategies[0])
    if not done and len(strategies) > 1:
        done = _second_rule(attempt, rest, chosen)
    attempt.queue.remove(attempt.workload.usage)
    if not done:
        _restore(chosen)
        return []
    return attempt.targets(chosen, borrowing=True)


def _fair_candidates(attempt: _Attempt) -> Iterator[Workload]:
    queue = attempt.queue
    sources = [(queue, queue.within)] if queue.within != NEVER else []
    if queue.parent is not None and queue.reclaim != NEVER:
        sources += [
            (other, queue.reclaim)
            for other in _queues(queue.root())
            if other is not queue and any(other.borrows_with(name, 0) for name in attempt.needs)
        ]
    for source, policy in sources:
        for one in source.workloads.values():
            if one.uses & attempt.needs and attempt.allows(policy, one):
                yield one


def _queues(node: Node) -> Iterator[Queue]:
    for child in node.children:
        if isinstance(child, Queue):
            yield child
        else:
            yield from _queues(child)


def _fits_for_all(attempt: _Attempt) -> bool:
    """The workload itself counts as admitted meanwhile."""
    attempt.queue.remove(attempt.workload.usage)
    fits = attempt.fits(borrowing=True)
    attempt.queue.add(attempt.workload.usage)
    return fits


def _first_rule(
    attempt: _Attempt, candidates: Sequence[Workload], strategy: Strategy
) -> tuple[bool, list[Target], list[Workload]]:
    """Whether there is room now, who has gone, and whom the strategy spared."""
    order = _Order(attempt, candidates)
    chosen: list[Target] = []
    spared: list[Workload] = []
    is_entitled = attempt.rules.within_nominal and not any(
        attempt.queue.borrows_with(name, 0) for name in attempt.needs
    )
    for queue in order.queues():
        if queue is attempt.queue or is_entitled:
            reason = IN_QUEUE if queue is attempt.queue else RECLAIMS
            chosen.append(Target(order.pop(queue), reason))
            _take(chosen[-1].workload)
            if _fits_for_all(attempt):
                return True, chosen, []
            continue
        mine, theirs = order.apart(queue)
        preemptor, before = mine.share(), theirs.share()
        while order.left(queue):
            one = order.pop(queue)
            queue.remove(one.usage)
            after = theirs.share()
            queue.add(one.usage)
            is_below = attempt.rules.borrows_when_fair and _may_be_borrowed_from(attempt, one)
            if not is_below and not strategy(preemptor, before, after):
                spared.append(one)
                continue
            _take(one)
            chosen.append(Target(one, RECLAIMS_BORROWING if is_below else FAIR))
            if _fits_for_all(attempt):
                return True, chosen, []
            break  # With other shares another queue may be next.
    return False, chosen, spared


def _may_be_borrowed_from(attempt: _Attempt, other: Workload) -> bool:
    return attempt.queue.borrow != NEVER and not _is_above_threshold(attempt, other)


def _second_rule(attempt: _Attempt, candidates: Sequence[Workload], chosen: list[Target]) -> bool:
    order = _Order(attempt, candidates)
    for queue in order.queues():
        mine, theirs = order.apart(queue)
        if _initial(mine.share(), theirs.share(), LEAST):
            one = order.pop(queue)
            _take(one)
            chosen.append(Target(one, FAIR))
            if _fits_for_all(attempt):
                return True
        order.drop(queue)
    return False


class _Order:
    """Goes again and again to the queue with the largest share that still has candidates."""

    def __init__(self, attempt: _Attempt, candidates: Sequence[Workload]) -> None:
        self._attempt = attempt
        self._above = list(attempt.queue.ancestors())
        self._left: dict[str, list[Workload]] = {}
        for one in candidates:
            assert one.queue is not None
            self._left.setdefault(one.queue.name, []).append(one)
        self._pruned: set[int] = set()

    def left(self, queue: Queue) -> bool:
        return bool(self._left.get(queue.name))

    def pop(self, queue: Queue) -> Workload:
        return self._left[queue.name].pop(0)

    def drop(self, queue: Queue) -> None:
        self._pruned.add(id(queue))

    def queues(self) -> Iterator[Queue]:
        mine = self._attempt.queue
        if mine.parent is None:
            while self.left(mine):
                yield mine
            return
        root = mine.root()
        while id(root) not in self._pruned:
            found = self._next(root)
            if found is not None:
                yield found

    def apart(self, queue: Queue) -> tuple[Node, Node]:
        """Where the ways from the common cohort to the workload's queue and to the other one part."""
        common = next(node for node in queue.ancestors() if node in self._above)
        return _last_before(self._attempt.queue, common), _last_before(queue, common)

    def _next(self, cohort: Node) -> Queue | None:
        best: Queue | None = None
        best_share = LEAST
        best_cohort: Node | None = None
        best_cohort_share = LEAST
        for child in cohort.children:
            if id(child) in self._pruned:
                continue
            share = child.share()
            if isinstance(child, Queue):
                if (not share.borrows and child is not self._attempt.queue) or not self.left(child):
                    self._pruned.add(id(child))
                elif best is None or share.key > best_share.key:
                    best, best_share = child, share
                elif share.key == best_share.key and self._is_before(child, best):
                    best = child
            elif not share.borrows and child not in self._above:
                self._pruned.add(id(child))
            elif share.key >= best_cohort_share.key:
                best_cohort, best_cohort_share = child, share
        if best is None and best_cohort is None:
            self._pruned.add(id(cohort))
            return None
        if best_cohort is not None and best_cohort_share.key >= best_share.key:
            return self._next(best_cohort)
        return best

    def _is_before(self, one: Queue, other: Queue) -> bool:
        order = self._attempt.order
        return order(self._left[one.name][0]) < order(self._left[other.name][0])


def _last_before(queue: Queue, common: Node) -> Node:
    found: Node = queue
    for node in queue.ancestors():
        if node is common:
            break
        found = node
    return found
