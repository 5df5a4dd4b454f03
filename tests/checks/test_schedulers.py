"""What each scheduler did, also one that is a client outside."""

from __future__ import annotations

from kemu.lab.checks import groups
from kemu.lab.checks.history.histories import History
from tests.checks.logs import Log


def test_bindings_and_conflicts_of_a_client_count_as_its_own() -> None:
    log = Log()
    data = {"verb": "bind", "resource": "pods", "namespace": "default", "start": 0}
    outside = {"by": "gateway/kube-scheduler"}
    for name in ("a", "b"):
        log.pod(1, name)
    log.pod(2, "a", node="n1")
    log.add(2, "apiserver/0", "api.request", **data, **outside, name="a", uid="uid-a", rev=log.revision)
    refused = {"reason": "Conflict", "message": "it is on n1 already"}
    log.add(3, "apiserver/0", "api.refused", **data, **outside, **refused, name="b", uid="uid-b")
    log.add(3, "apiserver/0", "api.refused", **data, **refused, by="scheduler/mine/0", name="b", uid="uid-b")
    history = History()
    for event in log.events:
        history.feed(event.time_ns, event.actor, event.kind, event.data)
    found = groups.schedulers(history)["gateway/kube-scheduler"]
    assert (found["bound"], found["conflicts"]) == (1, 1)
    assert history.counts["bind_conflicts"] == 1  # one of kemu's own schedulers tells of it itself
