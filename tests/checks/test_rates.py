"""The check of how fast lost nodes are given up."""

from __future__ import annotations

import pytest

from kemu.checks import registry
from kemu.checks.limits import Limits
from kemu.k8s import core_v1_pb2
from tests.checks.logs import Log

CHECK = "node-evictions-keep-their-rate"
CONTROLLER = "controller/node-lifecycle"
UNREACHABLE, NOT_READY = "node.kubernetes.io/unreachable:NoExecute", "node.kubernetes.io/not-ready:NoExecute"


def node(log: Log, name: str, zone: str) -> None:
    found = core_v1_pb2.Node()
    found.metadata.name = name
    found.metadata.labels["topology.kubernetes.io/zone"] = zone
    log.txn(0, f"/registry/nodes/{name}", found.SerializeToString(deterministic=True))


def tainted(log: Log, seconds: float, name: str, add: str = UNREACHABLE, remove: str = "") -> None:
    log.add(seconds, CONTROLLER, "node.tainted", node=name, add=[add], remove=[remove] if remove else [])


def judged(log: Log, rate: float = 0.1) -> tuple[bool | None, str]:
    _, results = registry.judge(log.events, within=Limits(node_eviction_rate=rate))
    (result,) = (result for result in results if result.id == CHECK)
    return result.holds, result.detail


@pytest.mark.parametrize(("gap", "holds"), [(10.0, True), (9.95, True), (8.0, False), (0.1, False)])
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
    log.add(103, "controller/other", "node.tainted", node="c", add=[UNREACHABLE], remove=[])
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
