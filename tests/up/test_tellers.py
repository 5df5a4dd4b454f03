"""The lines that ``kemu up`` shows."""

from __future__ import annotations

from kemu.lab.up import tellers


def _teller() -> tellers.Teller:
    made = tellers.Teller()
    made.quiet = False
    return made


def test_what_is_alike_shares_a_line_when_there_is_much_of_it() -> None:
    teller = _teller()
    for number in range(tellers.MOST_ALIKE):
        teller(1 + number, "kubelet/a", "kubelet.running", {"pod": f"default/web-{number}", "node": "a"})
    assert [line.what for line in teller.take()] == [f"web-{number} runs on a" for number in range(4)]
    for number in range(10):
        teller(1 + number, "kubelet/a", "kubelet.running", {"pod": f"default/web-{number}", "node": "a"})
    teller(11, "kubelet/a", "kubelet.oom_killed", {"pod": "team/big", "node": "a"})
    assert [(line.what, line.count) for line in teller.take()] == [
        ("10 pods run", 10),
        ("team/big is out of memory", 1),
    ]
    assert teller.take() == []


def test_objects_come_and_go_and_updates_are_not_told() -> None:
    teller = _teller()
    key = "/registry/deployments/default/web"
    lease = "/registry/leases/kube-node-lease/a"
    teller(1, "store", "store.txn", {"rev": 5, "changes": [[0, key, b"", 5, 1], [0, lease, b"", 5, 1]]})
    teller(2, "store", "store.txn", {"rev": 6, "changes": [[0, key, b"", 5, 2]]})
    teller(3, "store", "store.txn", {"rev": 7, "changes": [[1, key, b"", 0, 0]]})
    teller(4, "store", "store.txn", {"rev": 8, "changes": [[0, "/registry/priorityclasses/high", b"", 8, 1]]})
    policy = "/registry/networkpolicies/default/closed"
    teller(5, "store", "store.txn", {"rev": 9, "changes": [[0, policy, b"", 9, 1]]})
    assert [line.what for line in teller.take()] == [
        "deployment web is created",
        "deployment web is gone",
        "priorityclass high is created",
        "networkpolicy closed is created",
    ]


def test_rollouts_are_told() -> None:
    teller = _teller()
    scaled = {"deployment": "default/web", "replica_set": "web-1", "revision": "1", "before": 0, "replicas": 3}
    teller(1, "controller/deployment", "controller.scaled", scaled)
    done = {"deployment": "default/web", "revision": "1", "outcome": "complete"}
    teller(2, "controller/deployment", "controller.rollout", done)
    teller(3, "controller/deployment", "controller.rollout", {**done, "outcome": "stuck"})
    assert [(line.what, line.tone) for line in teller.take()] == [
        ("web-1 of deployment web goes from 0 to 3", tellers.PLAIN),
        ("revision 1 of deployment web is rolled out", tellers.GOOD),
        ("revision 1 of deployment web is stuck", tellers.BAD),
    ]


def test_set_up_and_heartbeats_are_told_by_nobody() -> None:
    teller = tellers.Teller()
    teller(1, "kubelet/a", "kubelet.running", {"pod": "default/web", "node": "a"})
    teller.quiet = False
    teller(2, "a", "client.acked", {})
    teller(3, "a", "actor.started", {"incarnation": 1})
    assert teller.take() == []
    teller(4, "store", "actor.crashed", {})
    teller(5, "store", "actor.started", {"incarnation": 2})
    assert [(line.what, line.tone) for line in teller.take()] == [
        ("store crashes", tellers.BAD),
        ("store is back", tellers.GOOD),
    ]
