"""What a disturbance cost those who use the pods, and when it was over.

How many pods are ready is compared with how many were when the window that is measured begins, so let it begin when all
that should run does. A pod is ready as the API says and disruption budgets count: its condition Ready is True, and it
is not being deleted. A node that falls silent takes its pods away when the node lifecycle controller says so.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from kemu.lab.checks.history import History

_OF_PODS = frozenset(
    ("created", "bound", "unbound", "rejected", "running", "preempted", "evicted", "oomKilled", "terminating", "ended",
     "finished", "deleted")
)  # fmt: skip
_OF_NODES = frozenset(("added", "removed", "condition", "tainted", "untainted", "drained", "drainFailed"))


def fewest(history: History) -> float:
    """The fewest pods that were ready at a time."""
    return float(min(count for _, count in _counts(history)))


def missing_pod_s(history: History) -> float:
    """Pod-seconds by which fewer pods were ready than at the beginning."""
    counts = list(_counts(history))
    _, wanted = counts[0]
    until = [*(time_ns for time_ns, _ in counts[1:]), _end_ns(history)]
    spans = zip(counts, until, strict=True)
    return sum(max(0, wanted - count) * (end_ns - begin_ns) for (begin_ns, count), end_ns in spans) / 1e9


def restored_s(history: History) -> float:
    """From the beginning until as many pods were ready again, for good; until the end if they never were."""
    begin_ns, wanted = next(_counts(history))
    restored_ns, before = begin_ns, wanted
    for time_ns, count in _counts(history):
        if count >= wanted > before:
            restored_ns = time_ns
        before = count
    return ((restored_ns if before >= wanted else _end_ns(history)) - begin_ns) / 1e9


def overloaded_s(history: History) -> float:
    """From the beginning until an API server refused a request for the last time because there were too many."""
    return _last_s(history, history.throttled_ns)


def settled_s(history: History) -> float:
    """From the beginning until the last time that something became of a pod or a node."""
    times = [time_ns for time_ns, _ in history.ready]
    times += [fact.time_ns for pod in history.pods.values() for fact in pod.facts if fact.what in _OF_PODS]
    times += [fact.time_ns for node in history.nodes.values() for fact in node.facts if fact.what in _OF_NODES]
    return _last_s(history, times)


def _last_s(history: History, times: Iterable[int]) -> float:
    begin_ns, end_ns = history.window.from_ns, _end_ns(history)
    return (max((time_ns for time_ns in times if begin_ns < time_ns <= end_ns), default=begin_ns) - begin_ns) / 1e9


def _end_ns(history: History) -> int:
    """Of what is measured; not before its beginning."""
    window = history.window
    end_ns = history.now_ns if window.until_ns is None else min(history.now_ns, window.until_ns)
    return max(end_ns, window.from_ns)


def _counts(history: History) -> Iterator[tuple[int, int]]:
    """How many pods are ready, first at the beginning, then since when. Times may be equal: the last counts."""
    begin_ns, end_ns = history.window.from_ns, _end_ns(history)
    count = sum(change for time_ns, change in history.ready if time_ns <= begin_ns)
    now_ns, now = begin_ns, count
    for time_ns, change in history.ready:
        if begin_ns < time_ns <= end_ns:
            if time_ns != now_ns:
                yield now_ns, now
            now_ns, now = time_ns, now + change
    yield now_ns, now
