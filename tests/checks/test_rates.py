"""The check of how fast lost nodes are given up."""

from __future__ import annotations

import pytest

from kemu.lab.checks import registry
from kemu.lab.checks.limits import Limits
from kemu.messages.k8s import core_v1_pb2
from tests.checks.logs import SECOND, Log

CHECK = "node-evictions-keep-their-rate"
CONTROLLER = "controller/node-lifecycle"
UNREACHABLE, NOT_READY = "node.kubernetes.io/unreachable:NoExecute", "node.kubernetes.io/not-ready:NoExecute"


def node(log: Log, name: str, zone: str) -> None:
    found = core_v1_pb2.Node()
    found.metadata.name = name
    found.metadata.labels["topology.kubernetes.io/zone"] = zone
    log.txn(0, f"/registry/nodes/{name}", found.SerializeToString(deterministic=True))


def tainted(
    log: Log,
    seconds: float,
    name: str,
    add: str = UNREACHABLE,
    remove: str = "",
    *,
    took: float = 0,
    by: str = CONTROLLER,
) -> None:
    """``seconds``: when it is decided; ``took``: until it is written."""
    removed = [remove] if remove else []
    log.add(seconds + took, by, "node.tainted", node=name, start=round(seconds * SECOND), add=[add], remove=removed)


def judged(log: Log, rate: float = 0.1) -> tuple[bool | None, str]:
    _, results = registry.judge(log.events, within=Limits(node_eviction_rate=rate))
    (result,) = (result for result in results if result.id == CHECK)
    return result.holds, result.detail


@pytest.mark.parametrize(("gap", "holds"), [(10.0, True), (9.9, False), (8.0, False), (0.1, False)])
def test_one_in_ten_seconds(gap: float, holds: bool) -> None:
    log = Log()
    for n in range(5):
        node(log, f"n{n}", "east")
    for n in range(5):
        tainted(log, 100 + n * gap, f"n{n}")
    assert judged(log)[0] is holds


def test_each_zone_for_itself() -> None:
    log = Log()
    node(log, "a", "east")
    node(log, "b", "west")
    tainted(log, 100, "a")
    tainted(log, 100, "b")
    assert judged(log) == (True, "2 lost nodes tainted")
    node(log, "c", "west")
    tainted(log, 101, "c")
    holds, detail = judged(log)
    assert holds is False
    assert "c in zone west is tainted, faster than 0.1 nodes per second" in detail


def test_a_write_may_take_its_time() -> None:
    """The first one ten seconds, the second one none: decided in time, they come at once, or the wrong way round."""
    for took in (10, 15):
        log = Log()
        tainted(log, 100, "a", took=took)
        tainted(log, 110, "b")
        log.events.sort(key=lambda event: event.time_ns)
        assert judged(log)[0] is True
    tainted(log, 119, "c", took=10)
    assert judged(log)[0] is False


def test_a_zone_that_had_no_nodes_begins_anew() -> None:
    for leaves, holds in (("n0", True), ("n1", False)):
        log = Log()
        node(log, "n0", "east")
        node(log, "n1", "west")
        tainted(log, 100, "n0")
        log.txn(102, f"/registry/nodes/{leaves}", None)
        log.events.sort(key=lambda event: event.time_ns)
        node(log, "n2", "east")
        tainted(log, 104, "n2")
        assert judged(log)[0] is holds


def test_another_rate() -> None:
    log = Log()
    for n in range(4):
        tainted(log, 100 + n, f"n{n}")
    assert judged(log)[0] is False
    assert judged(log, 1.0)[0] is True


def test_what_does_not_count() -> None:
    """Another kind of the same taint, taints that keep pods off only, and other controllers' taints."""
    log = Log()
    tainted(log, 100, "a", NOT_READY)
    tainted(log, 101, "a", UNREACHABLE, remove=NOT_READY)
    tainted(log, 102, "b", "node.kubernetes.io/unreachable:NoSchedule")
    tainted(log, 103, "c", by="controller/other")
    assert judged(log) == (True, "1 lost node tainted")


def test_a_controller_that_starts_again_has_forgotten() -> None:
    log = Log()
    tainted(log, 100, "a")
    log.add(101, CONTROLLER, "actor.started", incarnation=2)
    tainted(log, 102, "b")
    assert judged(log)[0] is True


def test_a_pause_does_not_save_up() -> None:
    log = Log()
    tainted(log, 100, "a")
    for n in range(3):
        tainted(log, 1000 + n, f"b{n}")
    assert judged(log)[0] is False
