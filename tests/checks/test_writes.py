"""Acknowledged writes survive, and it is told exactly which ones do not."""

from __future__ import annotations

from kemu.lab.checks import registry
from kemu.lab.checks.results import Result
from tests.checks.logs import Log


def judged(log: Log, check: str = "acknowledged-writes-survive") -> Result:
    _, results = registry.judge(log.events)
    return next(result for result in results if result.id == check)


def three_pods() -> Log:
    log = Log()
    for second in range(3):
        log.pod(second, f"p{second}")
    return log


def test_a_crash_that_loses_nothing() -> None:
    log = three_pods()
    log.acked(3, "user", 1, 2)
    log.recovered(4, 3)
    result = judged(log)
    assert (result.holds, "1 recovery" in result.detail) == (True, True)


def test_a_crash_that_loses_an_acknowledged_write() -> None:
    log = three_pods()
    log.acked(3, "user", 1, 3)
    log.recovered(4, 2)
    result = judged(log)
    assert result.holds is False
    assert "1 acknowledged write was lost: revision 3" in result.detail
    what = "revision 3 of pods/default/p2 (UID uid-p2), acknowledged to user by apiserver/0 at 3.000 s, was lost"
    assert what in result.detail


def test_losing_what_nobody_was_told_of_is_allowed() -> None:
    """And a pod to which nothing but its creation had happened never was one."""
    log = three_pods()
    log.acked(3, "user", 2)
    log.recovered(4, 2)
    assert judged(log).holds is True
    history, _ = registry.judge(log.events)
    assert "uid-p2" not in history.pods
    assert history.counts["pods_created"] == 2


def test_what_was_lost_is_exactly_what_is_told() -> None:
    log = Log()
    for number in range(9):
        log.pod(number, f"p{number}")
    log.acked(9, "user", 1, 2, 5, 6, 7, 9)
    log.recovered(10, 4)
    assert "4 acknowledged writes were lost: revision 5-7, 9;" in judged(log).detail


def test_a_revision_that_is_used_again_is_another_one() -> None:
    """The acknowledgement was under way when the store lost the write, and the number has a new owner."""
    log = three_pods()
    early = dict(log.values)
    early.pop("/registry/pods/default/p2")
    answer = Log()
    answer.written = dict(log.written)
    log.recovered(4, 2, early)
    log.pod(5, "other")
    answer.acked(6, "user", 3)
    log.events += answer.events
    result = judged(log)
    assert result.holds is False
    assert "1 acknowledged write was lost: revision 3" in result.detail
    assert "pods/default/p2" in result.detail


def test_the_same_write_made_again_survives() -> None:
    log = three_pods()
    log.acked(3, "user", 3)
    early = dict(log.values)
    early.pop("/registry/pods/default/p2")
    log.recovered(4, 2, early)
    log.pod(5, "p2")
    assert judged(log).holds is True


def test_coming_back_with_what_the_log_does_not_have() -> None:
    log = Log()
    log.pod(0, "a")
    log.recovered(1, 2)
    result = judged(log)
    assert result.holds is False
    assert "came back with revision 2, but the last one in the log is 1" in result.detail


def test_an_acknowledgement_of_another_content() -> None:
    log = three_pods()
    log.written[2] = log.written[1]
    log.acked(3, "user", 2)
    result = judged(log)
    assert (result.holds, "is not what the store wrote" in result.detail) == (False, True)


def test_a_revision_left_out() -> None:
    log = Log()
    log.pod(0, "a")
    log.acked(0, "user", 1)
    log.revision += 1
    log.pod(1, "a", node="n1")
    assert judged(log).holds is False


def test_nothing_acknowledged_is_nothing_judged() -> None:
    assert judged(three_pods()).holds is None


class TestStoreAgreesWithHistory:
    check = "store-agrees-with-history"

    def test_it_does(self) -> None:
        log = three_pods()
        log.state(3)
        log.gone(4, "p1")
        log.state(5)
        assert judged(log, self.check).holds is True

    def test_a_recovery_that_forgets_a_live_pod(self) -> None:
        log = three_pods()
        del log.values["/registry/pods/default/p0"]
        log.recovered(4, 3)
        result = judged(log, self.check)
        assert result.holds is False
        assert "when it recovered, the store has 2 keys at revision 3; its history has 3 keys" in result.detail

    def test_a_recovery_that_brings_back_an_old_value(self) -> None:
        log = Log()
        log.pod(0, "a")
        old = dict(log.values)
        log.pod(1, "a", node="n1")
        log.recovered(2, 2, old)
        assert judged(log, self.check).holds is False

    def test_writes_that_were_lost_are_undone_in_the_history_too(self) -> None:
        log = Log()
        log.pod(0, "a")
        log.pod(0, "b")
        old = dict(log.values)
        log.pod(1, "a", node="n1")
        log.gone(1, "b")
        log.recovered(2, 2, old)
        log.pod(3, "c")
        log.state(4)
        assert judged(log, self.check).holds is True

    def test_a_store_that_begins_anew_without_a_word(self) -> None:
        log = three_pods()
        log.add(4, "store", "store.state", rev=1, keys=0, digest=0)
        assert judged(log, self.check).holds is False

    def test_a_store_that_states_nothing_is_not_judged(self) -> None:
        assert judged(three_pods(), self.check).holds is None
