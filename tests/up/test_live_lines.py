"""The lines that ``kemu up`` shows."""

from __future__ import annotations

from kemu.lab.up import live_lines
from kemu.runtime.runlog.events import words


def _lines() -> live_lines.LiveLines:
    made = live_lines.LiveLines()
    made.quiet = False
    return made


def test_what_is_alike_shares_a_line_when_there_is_much_of_it() -> None:
    lines = _lines()
    for number in range(live_lines.MOST_ALIKE):
        lines(1 + number, "kubelet/a", "kubelet.running", {"pod": f"default/web-{number}", "node": "a"})
    assert [line.what for line in lines.take()] == [f"web-{number} runs on a" for number in range(4)]
    for number in range(10):
        lines(1 + number, "kubelet/a", "kubelet.running", {"pod": f"default/web-{number}", "node": "a"})
    lines(11, "kubelet/a", "kubelet.oom_killed", {"pod": "team/big", "node": "a"})
    assert [(line.what, line.count) for line in lines.take()] == [
        ("10 pods run", 10),
        ("team/big is out of memory", 1),
    ]
    assert lines.take() == []


def test_objects_come_and_go_and_updates_are_not_told() -> None:
    lines = _lines()
    key = "/registry/deployments/default/web"
    lease = "/registry/leases/kube-node-lease/a"
    lines(1, "store", "store.txn", {"rev": 5, "changes": [[0, key, b"", 5, 1], [0, lease, b"", 5, 1]]})
    lines(2, "store", "store.txn", {"rev": 6, "changes": [[0, key, b"", 5, 2]]})
    lines(3, "store", "store.txn", {"rev": 7, "changes": [[1, key, b"", 0, 0]]})
    lines(4, "store", "store.txn", {"rev": 8, "changes": [[0, "/registry/priorityclasses/high", b"", 8, 1]]})
    policy = "/registry/networkpolicies/default/closed"
    lines(5, "store", "store.txn", {"rev": 9, "changes": [[0, policy, b"", 9, 1]]})
    custom = "/registry/widgets.example.com/default/a"
    lines(6, "store", "store.txn", {"rev": 10, "changes": [[0, custom, b"", 10, 1]]})
    assert [line.what for line in lines.take()] == [
        "deployment web is created",
        "deployment web is gone",
        "priorityclass high is created",
        "networkpolicy closed is created",
        "widgets.example.com a is created",
    ]


def test_rollouts_are_told() -> None:
    lines = _lines()
    scaled = {"deployment": "default/web", "replica_set": "web-1", "revision": "1", "before": 0, "replicas": 3}
    lines(1, "controller/deployment", "controller.scaled", scaled)
    done = {"deployment": "default/web", "revision": "1", "outcome": "complete"}
    lines(2, "controller/deployment", "controller.rollout", done)
    lines(3, "controller/deployment", "controller.rollout", {**done, "outcome": "stuck"})
    assert [(line.what, line.tone) for line in lines.take()] == [
        ("web-1 of deployment web goes from 0 to 3", words.PLAIN),
        ("revision 1 of deployment web is rolled out", words.GOOD),
        ("revision 1 of deployment web is stuck", words.BAD),
    ]


def test_set_up_and_heartbeats_are_told_by_nobody() -> None:
    lines = live_lines.LiveLines()
    lines(1, "kubelet/a", "kubelet.running", {"pod": "default/web", "node": "a"})
    lines.quiet = False
    lines(2, "a", "client.acked", {})
    lines(3, "a", "actor.started", {"incarnation": 1})
    assert lines.take() == []
    lines(4, "store", "actor.crashed", {})
    lines(5, "store", "actor.started", {"incarnation": 2})
    assert [(line.what, line.tone) for line in lines.take()] == [
        ("store crashes", words.BAD),
        ("store is back", words.GOOD),
    ]
