"""What a disturbance cost: pods that are not ready, until when, and when all is quiet again."""

from __future__ import annotations

from kemu.lab.checks import costs
from kemu.lab.checks.history import History, windows
from tests.checks.logs import SECOND, Log


def disturbed() -> Log:
    """Three pods run. From 10 s on one is deleted, from 12 s on another is not ready; a new one comes at 15 s."""
    log = Log()
    for name in "abc":
        log.pod(0, name, node="n1", phase="Running")
        log.pod(1, name, ready=True)
    log.pod(10, "a", deleting=10)
    log.pod(12, "b", ready=False)
    log.gone(14, "a")
    log.pod(15, "d", node="n1", phase="Running", ready=True)
    log.pod(22, "b", ready=True)
    log.node_status(30, "n1", {"Ready": "Unknown"}, [])
    for second in (3, 18, 40):
        log.add(second, "apiserver/0", "api.throttled", by="kubelet/n1", verb="update", retry_after_s=1)
    log.add(60, "store", "end")
    return log


def figures(log: Log, **window: int) -> dict[str, float]:
    history = History()
    history.window = windows.Window(**window)
    for event in log.events:
        history.feed(*event)
    history.now_ns = 60 * SECOND
    return {name: costs.value(history, name) for name in costs.COSTS if "ready" in name or name.endswith("ed_s")}


def test_pods_that_are_missing_until_others_are_ready() -> None:
    assert figures(disturbed(), from_ns=5 * SECOND) == {
        "ready.fewest": 1,
        "ready.missing_pod_s": 2 * 1 + 3 * 2 + 7 * 1,
        "ready.restored_s": 22 - 5,
        "overloaded_s": 40 - 5,
        "settled_s": 30 - 5,
    }


def test_what_is_not_over_when_the_time_measured_ends() -> None:
    assert figures(disturbed(), from_ns=5 * SECOND, until_ns=20 * SECOND) == {
        "ready.fewest": 1,
        "ready.missing_pod_s": 2 * 1 + 3 * 2 + 5 * 1,
        "ready.restored_s": 15,
        "overloaded_s": 18 - 5,
        "settled_s": 15 - 5,
    }


def test_nothing_is_missed_where_nothing_was_ready() -> None:
    found = figures(disturbed())
    assert (found["ready.fewest"], found["ready.missing_pod_s"], found["ready.restored_s"]) == (0, 0, 0)


def test_more_pods_than_before_make_up_for_nothing() -> None:
    log = Log()
    for second, name in enumerate("ab"):
        log.pod(second, name, node="n1", phase="Running", ready=True)
    log.pod(10, "c", node="n1", phase="Running", ready=True)
    log.pod(20, "a", ready=False)
    log.pod(25, "c", deleting=25)
    log.pod(30, "a", ready=True)
    assert figures(log, from_ns=5 * SECOND)["ready.missing_pod_s"] == 5
    assert figures(log, from_ns=5 * SECOND)["ready.restored_s"] == 25
