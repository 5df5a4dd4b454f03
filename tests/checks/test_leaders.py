"""one-leader-at-a-time: who asks for something while the lease names somebody else."""

from __future__ import annotations

from typing import Any

import pytest

from kemu.lab.checks.history import History
from kemu.lab.checks.scheduling import leaders
from kemu.messages.k8s import coordination_v1_pb2
from kemu.runtime.runlog.events import typed

KEY = f"{leaders.LEASES}kube-system/kube-scheduler"


class Log:
    """Feeds the check; revisions count up."""

    def __init__(self) -> None:
        self.check = leaders.OneLeaderAtATime()
        self.revision = 0

    def holds(self, holder: str | None) -> None:
        """The Lease names somebody from now on; None: it is deleted."""
        self.revision += 1
        lease = coordination_v1_pb2.Lease()
        lease.spec.holderIdentity = holder or ""
        change = [int(holder is None), KEY, lease.SerializeToString(), 1, 1]
        self._feed("store", "store.txn", {"rev": self.revision, "changes": [change]})

    def acquires(self, actor: str, identity: str) -> None:
        self._feed(actor, "election.acquired", {"lease": "kube-system/kube-scheduler", "identity": identity})

    def binds(self, by: str, revision: int = 0) -> None:
        self.revision += 1
        data = {"by": by, "verb": "bind", "namespace": "default", "name": "web", "rev": revision or self.revision}
        self._feed("apiserver/0", "api.request", data)

    def _feed(self, actor: str, kind: str, data: dict[str, Any]) -> None:
        self.check.on_event(self.revision * 1_000_000_000, actor, typed(kind, data))

    @property
    def result(self) -> tuple[bool | None, str]:
        found = self.check.result(History())
        return found.holds, found.detail


def elected() -> Log:
    log = Log()
    log.holds("a/0_1")
    log.acquires("a/0", "a/0_1")
    log.binds("a/0")
    return log


def test_a_leader_may_work() -> None:
    log = elected()
    log.binds("user")
    assert log.result == (True, "1 request of leaders")


def test_without_an_election_nothing_is_judged() -> None:
    log = Log()
    log.binds("a/0")
    assert log.result[0] is None


@pytest.mark.parametrize(("holder", "says"), [("a/1_2", "a/1 leads"), ("", "nobody leads"), (None, "nobody leads")])
def test_a_former_leader_may_not(holder: str | None, says: str) -> None:
    log = elected()
    log.holds(holder)
    log.binds("a/0")
    log.binds("a/0")
    text = (
        f"4.000 s: a/0 made the request bind default/web, while {says} (kube-system/kube-scheduler), and 1 more request"
    )
    assert log.result == (False, text)


def test_what_was_carried_out_before_the_lease_changed_hands_is_right() -> None:
    """However late the API server says so."""
    log = elected()
    revision = log.revision
    log.holds("a/1_2")
    log.binds("a/0", revision)
    assert log.result[0]


def test_a_new_term_of_the_same_process_counts() -> None:
    log = elected()
    log.holds("a/0_2")
    log.acquires("a/0", "a/0_2")
    log.binds("a/0")
    assert log.result[0]
