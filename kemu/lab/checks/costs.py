"""What a run cost: the figures that design documents argue with, beside waiting times.

All are folded from the history, of the window that is measured. Room counts as requested by the pods whose containers
run, whatever they use of it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping

from kemu.lab.checks import availability, counters
from kemu.lab.checks.history import History
from kemu.lab.checks.history.facts import PodHistory
from kemu.lab.checks.scheduling import lineages
from kemu.lab.checks.scheduling.waiting import quantile

COSTS = (
    "utilisation.cpu",
    "utilisation.memory",
    "work.killed_pod_s",
    "running.p50_s",
    "running.p99_s",
    "running.max_s",
    "ready.fewest",
    "ready.missing_pod_s",
    "ready.restored_s",
    "overloaded_s",
    "settled_s",
    "preemptions.wasted",
    "preemptions.indirect",
    "preemptions.depth",
    "decisions.per_binding",
    "bill.node_hours",
    "bill.money",
)
"""The figures that every run has; ``refused.<reason>`` comes on top of them."""
REFUSED = "refused."
_AVAILABILITY: Mapping[str, Callable[[History], float]] = {
    "ready.fewest": availability.fewest,
    "ready.missing_pod_s": availability.missing_pod_s,
    "ready.restored_s": availability.restored_s,
    "overloaded_s": availability.overloaded_s,
    "settled_s": availability.settled_s,
}
_ENDS = ("finished", "ended", "deleted")
_LOST = ("preempted", "evicted", "oomKilled")


def summary(history: History) -> dict[str, float]:
    """All of them by name, in the order of :data:`COSTS`, then the refused requests by reason. See docs/checks.md."""
    found = {name: round(value(history, name), 6) for name in COSTS}
    reasons = sorted({_reason(refused) for refused in history.refused})
    return found | {f"{REFUSED}{reason}": value(history, f"{REFUSED}{reason}") for reason in reasons}


def value(history: History, name: str, priority: int | None = None) -> float:
    """One of them; ``priority``: of ``running``, only of such pods. Raises KeyError."""
    if name.startswith(REFUSED):
        reason = name.removeprefix(REFUSED)
        return float(sum(count for refused, count in history.refused.items() if _reason(refused) == reason))
    family, _, figure = name.partition(".")
    if family == "utilisation":
        return _utilisation(history, figure)
    if family == "running":
        return _time_to_running(history, figure, priority)
    if name in _AVAILABILITY:
        return _AVAILABILITY[name](history)
    if name == "work.killed_pod_s":
        return _killed_s(history)
    if name == "preemptions.wasted":
        return float(sum(1 for _ in _wasted(history)))
    if name == "preemptions.indirect":
        return float(sum(level > 1 for level in _levels(history)))
    if name == "preemptions.depth":
        return float(max(_levels(history), default=0))
    if name == "decisions.per_binding":
        counted = counters.measured(history)
        bound = counted["pods_bound"]
        return counted["scheduling_attempts"] / bound if bound else 0.0
    if family == "bill":
        return _bill(history, priced=figure == "money")
    raise KeyError(name)


def _bill(history: History, *, priced: bool) -> float:
    """Hours that the machines of node groups ran, or their price."""
    total = 0.0
    for instance in history.instances.values():
        until_ns = history.now_ns if instance.gone_ns is None else instance.gone_ns
        hours = history.window.share(instance.running_ns, until_ns) / 3.6e12
        total += hours * instance.price if priced else hours
    return total


def _reason(refused: str) -> str:
    return refused.rpartition(": ")[2]


def _runs(pod: PodHistory, end_ns: int) -> tuple[int, int] | None:
    """From when until when its containers ran; None: they never did."""
    begun_ns = pod.running_ns
    if begun_ns is None:
        return None
    ends = [fact.time_ns for fact in pod.facts if fact.what in _ENDS and fact.time_ns >= begun_ns]
    return begun_ns, min(ends, default=end_ns)


def _utilisation(history: History, resource: str) -> float:
    """The share of what the nodes could allocate that running pods had requested, over the time that is measured."""
    end_ns, share = history.now_ns, history.window.share
    offered = 0
    for node in history.nodes.values():
        # A node that a client creates without a status has nothing to allocate.
        for (since_ns, amounts), until_ns in zip(
            node.allocatable, [*(time_ns for time_ns, _ in node.allocatable[1:]), end_ns], strict=False
        ):
            offered += amounts.get(resource, 0) * share(since_ns, until_ns)
    used = 0
    for pod in history.pods.values():
        amount = pod.requests.get(resource, 0)
        span = _runs(pod, end_ns) if amount else None
        if span is not None:
            used += amount * share(*span)
    return used / offered if offered else 0.0


def _killed_s(history: History) -> float:
    """Seconds that pods had run when they were preempted, evicted or killed for memory: work that was lost."""
    lost_ns = 0
    for pod in history.measured():
        span = _runs(pod, history.now_ns)
        if span is not None and any(fact.what in _LOST for fact in pod.facts):
            lost_ns += span[1] - span[0]
    return lost_ns / 1e9


def _time_to_running(history: History, figure: str, priority: int | None) -> float:
    """From the creation of a pod until its containers ran, or until it or the run ended."""
    waits = []
    for pod in history.measured():
        if pod.preset_node or (priority is not None and pod.priority != priority):
            continue
        ends = (pod.running_ns, pod.gone_ns, history.now_ns)
        waits.append((next(end for end in ends if end is not None) - pod.created_ns) / 1e9)
    if figure == "max_s":
        return max(waits, default=0.0)
    return quantile(waits, {"p50_s": 0.5, "p99_s": 0.99}[figure])


def _wasted(history: History) -> Iterator[str]:
    """Victims whose preemptor was not bound to the node on which they made room."""
    for _, victim_uid, preemptor_uid in history.victims:
        victim, preemptor = history.pods.get(victim_uid), history.pods.get(preemptor_uid)
        if victim is None or preemptor is None or not history.window.has(victim.created_ns):
            continue
        made_on = next((fact.node for fact in victim.facts if fact.what == "preempted"), "")
        # Room that a kubelet makes for a critical pod is for one that is there already.
        if preemptor.node != made_on:
            yield victim_uid


def _levels(history: History) -> list[int]:
    """Of each victim: 1, or one more than the victim whose place its preemptor takes: a cascade."""
    levels: dict[str, int] = {}
    before = lineages.predecessors(history) if history.victims else {}
    for _, victim_uid, preemptor_uid in history.victims:
        lost = before.get(preemptor_uid)
        levels[victim_uid] = 1 + (levels.get(lost.uid, 0) if lost is not None else 0)
    pods, has = history.pods, history.window.has
    return [level for uid, level in levels.items() if uid in pods and has(pods[uid].created_ns)]
