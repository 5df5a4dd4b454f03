"""The linear-time check of linearizability, against a search of all orders, and on histories made by hand."""

from __future__ import annotations

import random
from functools import cache

import pytest

from kemu.lab.checks import registry
from kemu.lab.checks.consistency import linearizability
from kemu.lab.checks.consistency.linearizability import Operation
from kemu.lab.checks.consistency.versions import Versions, digest
from kemu.lab.checks.history import History
from kemu.lab.checks.history.stores import Change
from kemu.lab.checks.results import Result
from tests.checks.logs import Log

KEYS = ("/registry/pods/default/a", "/registry/pods/default/b")


def linearizable(history: History, operations: list[Operation]) -> bool:
    """Whether an order exists: Wing and Gong's search. It takes any operation that no other one precedes in time, or
    lets the store take its next revision, and goes back where that leads nowhere."""
    changes = history.changes

    def fits(operation: Operation, done: int) -> bool:
        """``done``: how many revisions there are."""
        if not operation.key:
            return operation.revision == (changes[done - 1].revision if done else 0)
        now = [change for change in changes[:done] if change.key == operation.key]
        if operation.revision == 0:
            return not now or now[-1].value is None
        return bool(now) and now[-1].revision == operation.revision

    @cache
    def search(left: frozenset[int], done: int) -> bool:
        if not left:
            return True
        earliest_end = min(operations[index].end_ns for index in left)
        for index in sorted(left):
            may_be_next = operations[index].start_ns <= earliest_end and fits(operations[index], done)
            if may_be_next and search(left - {index}, done):
                return True
        return done < len(changes) and search(left, done + 1)

    return search(frozenset(range(len(operations))), 0)


def scene(rng: random.Random) -> tuple[History, list[Operation]]:
    """A few writes, and operations that each show the state of some moment: mostly one between request and answer."""
    history = History()
    written: dict[str, bytes] = {}
    writes = rng.randrange(1, 7)
    for revision in range(1, writes + 1):
        key = rng.choice(KEYS)
        gone = key in written and rng.random() < 0.3
        value = None if gone else b"%d" % revision
        # All of them at the beginning: when a write was done is no part of what is searched.
        history.changes.append(Change(revision, 0, key, value, written.get(key)))
        if gone:
            del written[key]
        else:
            written[key] = b"%d" % revision
    history.revision = writes
    moments = sorted(rng.randrange(1, 100) for _ in range(writes))
    operations: list[Operation] = []
    for number in range(rng.randrange(3, 8)):
        start = rng.randrange(0, 80)
        end = start + rng.randrange(1, 30)
        seen_at = rng.randrange(start, end + 1) if rng.random() < 0.65 else rng.randrange(0, 100)
        state = sum(moment <= seen_at for moment in moments)
        key = rng.choice((*KEYS, ""))
        content = 0
        if key:
            versions = [change for change in history.changes[:state] if change.key == key]
            present = versions[-1] if versions and versions[-1].value is not None else None
            revision = present.revision if present is not None else 0
            content = digest(present) if present is not None else 0
        else:
            revision = state
        operations.append(Operation(start, end, f"client-{number}", "get", key, revision, content, 0))
    return history, sorted(operations, key=lambda operation: operation.end_ns)


@pytest.mark.parametrize("part", range(10))
def test_the_check_agrees_with_a_search_of_all_orders(part: int) -> None:
    rng = random.Random(part)
    outcomes = {True: 0, False: 0}
    for _ in range(500):
        history, operations = scene(rng)
        findings, judged = linearizability.order(Versions(history), operations)
        expected = linearizable(history, operations)
        assert (not findings) == expected, (history.changes, operations, findings)
        assert judged == len(operations) or findings
        outcomes[expected] += 1
    assert min(outcomes.values()) >= 50


def judged(log: Log, check: str = "history-is-linearizable") -> Result:
    _, results = registry.judge(log.events)
    return next(result for result in results if result.id == check)


def bound_pod() -> Log:
    log = Log()
    log.pod(1, "a")
    log.pod(2, "a", node="n1")
    log.acked(2.1, "user", 2, took=0.2)
    return log


def test_a_get_shows_what_was_acknowledged_before_it_was_asked() -> None:
    log = bound_pod()
    log.got(4, "kubelet/n1", "a", 2, took=1)
    assert judged(log).holds is True


def test_a_get_of_an_old_version() -> None:
    log = bound_pod()
    log.got(4, "kubelet/n1", "a", 1, took=1)
    result = judged(log)
    assert result.holds is False
    assert "shows its revision 1, which was replaced by revision 2" in result.detail
    assert "although user had seen revision 2 before" in result.detail


def test_a_get_that_was_asked_before_the_acknowledgement_may_show_either() -> None:
    for revision in (1, 2):
        log = bound_pod()
        log.got(4, "kubelet/n1", "a", revision, took=2)
        assert judged(log).holds is True


def test_nobody_sees_less_than_another_client_saw_before() -> None:
    log = Log()
    log.pod(1, "a")
    log.pod(2, "a", node="n1")
    log.got(3, "scheduler/s/0", "a", 2, took=0.1)
    log.list_pods(4, "kubelet/n1", 1, took=0.1)
    result = judged(log)
    assert (result.holds, "scheduler/s/0 had seen revision 2 before" in result.detail) == (False, True)


def test_a_pod_that_is_there_is_found() -> None:
    log = bound_pod()
    log.got(4, "kubelet/n1", "a", 0, took=1)
    assert "says that there is none" in judged(log).detail


def test_a_pod_that_is_gone_is_not_found_and_not_shown() -> None:
    log = bound_pod()
    gone = log.gone(3, "a")
    log.acked(3.1, "user", gone)
    log.got(5, "kubelet/n1", "a", 0, took=1)
    assert judged(log).holds is True
    log.got(6, "kubelet/n1", "a", 2, took=1)
    assert judged(log).holds is False


def test_what_is_shown_is_what_was_written() -> None:
    log = bound_pod()
    log.got(4, "kubelet/n1", "a", 2, took=1, digest=7)
    assert "with a content that the store never had" in judged(log).detail


def test_nobody_sees_the_future() -> None:
    log = bound_pod()
    log.pod(5, "a", phase="Running")
    log.events.insert(-1, log.events[-1])
    log.events.pop()
    late = Log()
    late.written = log.written
    late.got(4, "kubelet/n1", "a", 3, took=1)
    log.events.insert(-1, late.events[0])
    assert "shows what was only written at 5.000 s" in judged(log).detail


def test_an_answer_to_a_write_that_changed_nothing_is_not_older_either() -> None:
    log = bound_pod()
    log.acked(4, "kubelet/n1", 1, took=1)
    assert judged(log).holds is False


def test_what_somebody_saw_is_not_undone() -> None:
    log = Log()
    log.pod(1, "a")
    old = dict(log.values)
    log.pod(2, "a", node="n1")
    log.got(3, "kubelet/n1", "a", 2, took=0.1)
    log.recovered(4, 1, old)
    assert "the store went back to revision 1, although kubelet/n1 had seen revision 2" in judged(log).detail


def test_what_nobody_saw_may_be_undone() -> None:
    log = Log()
    log.pod(1, "a")
    old = dict(log.values)
    log.pod(2, "a", node="n1")
    log.got(3, "kubelet/n1", "a", 1, took=0.1)
    log.recovered(4, 1, old)
    log.pods["a"].spec.nodeName = ""
    log.pod(5, "a", node="n2")
    log.acked(5.1, "user", 2)
    log.got(6, "kubelet/n1", "a", 2, took=0.1)
    assert judged(log).holds is True


def test_a_number_that_is_used_again_is_another_revision() -> None:
    """What was listed before a loss was there then, and what a cache shows that has not noticed the loss was, too."""
    log = Log()
    log.pod(1, "a")
    old = dict(log.values)
    log.pod(2, "b")
    lost = dict(log.values)
    log.list_pods(3, "user", 2, took=0.1)
    log.list_pods(3.5, "reader", 2, took=0.1, version="0")
    log.recovered(4, 1, old)
    log.values = lost
    log.list_pods(5, "reader", 2, took=0.1, version="0")
    log.values = old
    log.pod(6, "c")
    log.list_pods(7, "reader", 2, took=0.1, version="0")
    assert judged(log, "reads-are-monotonic").holds is True
    assert judged(log).detail == "4.000 s: the store went back to revision 1, although user had seen revision 2"
    log.recovered(8, 1, old)
    log.list_pods(9, "reader", 3, took=0.1, version="0")
    assert judged(log, "reads-are-monotonic").holds is False


@pytest.mark.parametrize(("bases", "holds"), [((0, 1, 2), True), ((0, 1, 1), False), ((0, 1, None), False)])
def test_a_write_replaces_what_it_was_computed_from(bases: tuple[int | None, ...], holds: bool) -> None:
    log = Log()
    log.pod(1, "a")
    log.pod(2, "a", node="n1")
    log.pod(3, "a", phase="Running")
    for event, base in zip(log.events, bases, strict=True):
        event.data["bases"] = [base]
    assert judged(log).holds is holds


def test_without_operations_nothing_is_judged() -> None:
    log = Log()
    log.pod(1, "a")
    assert judged(log).holds is None


class TestReadsAreMonotonic:
    check = "reads-are-monotonic"

    def scene(self) -> Log:
        log = Log()
        log.pod(1, "a")
        log.pod(2, "a", node="n1")
        return log

    def test_the_past_is_allowed(self) -> None:
        log = self.scene()
        log.acked(2.1, "kubelet/n1", 2)
        log.got(4, "kubelet/n1", "a", 1, took=1, version="0")
        assert judged(log, self.check).holds is True

    def test_but_not_the_past_of_what_was_read_before(self) -> None:
        log = self.scene()
        log.got(4, "kubelet/n1", "a", 2, took=1, version="0")
        log.got(6, "kubelet/n1", "a", 1, took=1, version="0")
        assert judged(log, self.check).holds is False

    @pytest.mark.parametrize(("actor", "server"), [("kubelet/n1", "apiserver/1"), ("kubelet/n2", "apiserver/0")])
    def test_other_clients_and_servers_promise_nothing(self, actor: str, server: str) -> None:
        log = self.scene()
        log.got(4, "kubelet/n1", "a", 2, took=1, version="0")
        log.got(6, actor, "a", 1, took=1, version="0", server=server)
        assert judged(log, self.check).holds is True

    def test_not_older_than_asked(self) -> None:
        log = self.scene()
        log.got(4, "kubelet/n1", "a", 2, took=1, version="2")
        assert judged(log, self.check).holds is True
        log.got(6, "kubelet/n2", "a", 1, took=1, version="2")
        assert judged(log, self.check).holds is False

    def test_no_past_that_never_was(self) -> None:
        log = self.scene()
        log.got(4, "kubelet/n1", "a", 1, took=1, version="0", digest=3)
        assert judged(log, self.check).holds is False


class TestListsAreSnapshots:
    check = "lists-are-snapshots"

    def scene(self) -> Log:
        log = Log()
        for name in "abc":
            log.pod(1, name)
        return log

    def test_they_are(self) -> None:
        log = self.scene()
        log.list_pods(2, "user", 3)
        log.gone(3, "b")
        log.list_pods(4, "user", 4)
        assert judged(log, self.check).holds is True

    def test_a_list_of_another_moment_than_it_says(self) -> None:
        log = self.scene()
        log.gone(3, "b")
        log.list_pods(4, "user", 3)
        assert judged(log, self.check).holds is False

    def test_a_list_that_lacks_one(self) -> None:
        log = self.scene()
        del log.values["/registry/pods/default/b"]
        log.list_pods(4, "user", 3)
        assert judged(log, self.check).holds is False

    def test_pages_are_of_one_moment(self) -> None:
        for deleted, holds in ((False, True), (True, False)):
            log = self.scene()
            every = dict(log.values)
            rest = every.pop("/registry/pods/default/c")
            log.values = every
            log.list_pods(2, "user", 3, limit=2, next="more")
            log.values = {"/registry/pods/default/c": rest}
            revision = 3
            if deleted:
                log.values |= every
                revision = log.gone(3, "a")
                log.values = {"/registry/pods/default/c": rest}
            log.list_pods(4, "user", revision, limit=2, **{"continue": "more"})
            assert judged(log, self.check).holds is holds

    def test_what_the_store_lost_is_not_listed_as_what_took_its_number(self) -> None:
        log = self.scene()
        old = {key: one for key, one in log.values.items() if not key.endswith("/c")}
        lost = dict(log.values)
        log.recovered(3, 2, old)
        log.pod(4, "d")
        log.list_pods(5, "user", 3)
        assert judged(log, self.check).holds is True
        log.values = lost  # by an API server that has not noticed
        log.list_pods(5, "user", 3)
        assert judged(log, self.check).holds is True
        log.values = {**lost, **old}
        log.values.pop("/registry/pods/default/a")
        log.list_pods(5, "user", 3)
        assert judged(log, self.check).holds is False
