"""The checks on watches hold on a sound log, and fail on the one thing that they are for: in a changed log, and in a
run of actors with a bug."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from kemu.emulated.apiserver.registry import reads
from kemu.emulated.apiserver.watch import cache, fanout
from kemu.emulated.client import informers, watches
from kemu.lab.checks import registry
from kemu.lab.checks.results import Result
from kemu.lab.scenario.loading import loader
from kemu.lab.scenario.playing import runner
from kemu.runtime.runlog.frames import FILE_NAME, Reader
from tests.checks.logs import Log, judged

GAPS, TRUE = "watch-has-no-gaps", "watch-events-are-true"
ACTOR = "scheduler/s/0"
HEARD = ("A1:a", "A2:b", "M4:a", "D5:b")


def scene(*held: tuple[str, int], since: int = 0) -> Log:
    """Two pods come, one is bound, the other one goes: revisions 1, 2, 4, 5."""
    log = Log()
    log.listed(0, ACTOR, since, *held)
    log.pod(1, "a")
    log.pod(2, "b")
    log.node(2, "n1")
    log.pod(3, "a", node="n1")
    log.gone(4, "b")
    return log


class TestNoGaps:
    def test_all_heard(self) -> None:
        log = scene()
        log.heard(5, ACTOR, *HEARD[:3])
        log.heard(5, ACTOR, *HEARD[3:])
        log.ended(6, "idle")
        result = judged(log, GAPS)
        assert (result.holds, result.detail) == (True, "1 watch, 4 events")
        assert judged(log, TRUE).holds is True

    def test_without_watches_there_is_nothing_to_judge(self) -> None:
        log = Log()
        log.pod(1, "a")
        assert judged(log, GAPS).holds is None
        assert judged(log, TRUE).holds is None

    @pytest.mark.parametrize(
        ("heard", "says"),
        [
            (("A1:a", "A2:b", "D5:b"), "revision 4 was missed"),
            (("A1:a", "A2:b", "A2:b", "M4:a"), "revision 2 came after 2"),
            (("A2:b", "A1:a", "M4:a", "D5:b"), "revision 1 came after 2"),
            (("A1:a", "A2:b", "A3:n1"), "revision 3 should not have come"),
            (("A1:a", "B2", "A2:b", "M4:a", "D5:b"), "a bookmark says revision 2, but 2 had not come"),
        ],
    )
    def test_what_was_not_delivered_as_it_happened(self, heard: tuple[str, ...], says: str) -> None:
        log = scene()
        log.heard(5, ACTOR, *heard)
        result = judged(log, GAPS)
        assert result.holds is False
        assert says in result.detail

    def test_a_bookmark_says_how_far_it_is(self) -> None:
        log = scene()
        log.heard(5, ACTOR, *HEARD, "B5")
        log.heard(6, ACTOR, "B6")
        assert judged(log, GAPS).holds is True

    @pytest.mark.parametrize("selector", ["spec.nodeName=n1", "spec.nodeName=n1,status.phase!=Failed"])
    def test_a_kubelet_hears_of_its_own_pods_from_their_binding_on(self, selector: str) -> None:
        log = Log()
        log.listed(0, "kubelet/n1", 0, field_selector=selector)
        log.pod(1, "a")
        log.pod(2, "a", node="n1")
        log.pod(2, "b", node="n2")
        log.pod(3, "a", phase="Running")
        log.gone(4, "a")
        log.heard(5, "kubelet/n1", "A2:a", "M4:a", "D5:a")
        assert (judged(log, GAPS).holds, judged(log, TRUE).holds) == (True, True)
        log.events.pop()
        log.heard(5, "kubelet/n1", "A2:a", "D5:a")
        assert judged(log, GAPS).holds is False

    def test_a_new_list_begins_anew(self) -> None:
        log = scene()
        log.heard(5, ACTOR, "A1:a", "A2:b")
        log.add(6, ACTOR, "watch.closed", watch="pods#1", reason="Expired")
        log.listed(7, ACTOR, 4, ("a", 4), ("b", 2))
        log.heard(8, ACTOR, "D5:b")
        assert (judged(log, GAPS).holds, judged(log, TRUE).holds) == (True, True)


class TestInTime:
    """The last change of the scene happens at 4 s."""

    def heard_but_the_last(self) -> Log:
        log = scene()
        log.heard(5, ACTOR, *HEARD[:3])
        return log

    @pytest.mark.parametrize(
        ("end_s", "reason", "holds"),
        [(33, "deadline", True), (35, "deadline", False), (5, "idle", False), (35, "stopped", False)],
    )
    def test_the_last_event_never_comes(self, end_s: float, reason: str, holds: bool) -> None:
        log = self.heard_but_the_last()
        log.ended(end_s, reason)
        result = judged(log, GAPS)
        assert result.holds is holds
        assert holds or "revision 5 of 4.000 s never came" in result.detail

    def test_housekeeping_may_be_on_its_way_when_a_run_is_idle_in_real_time(self) -> None:
        log = self.heard_but_the_last()
        log.ended(5, "idle", still=False)
        assert judged(log, GAPS).holds is True

    @pytest.mark.parametrize(("at_s", "holds"), [(33, True), (35, False)])
    def test_it_comes_late(self, at_s: float, holds: bool) -> None:
        log = self.heard_but_the_last()
        log.heard(at_s, ACTOR, HEARD[3])
        result = judged(log, GAPS)
        assert result.holds is holds
        assert holds or "revision 5 of 4.000 s came only at 35.000 s" in result.detail

    def test_a_watch_that_never_delivers(self) -> None:
        log = scene()
        log.ended(40)
        assert judged(log, GAPS).holds is False

    @pytest.mark.parametrize(
        ("fault", "holds"),
        [
            ({"what": "partition", "between": [[ACTOR], ["apiserver/0"]]}, True),
            ({"what": "partition", "between": [["kubelet/n1", "store"], ["apiserver/0"]]}, True),
            ({"what": "partition", "between": [["kubelet/n1"], ["apiserver/0"]]}, False),
            ({"what": "partition", "between": [[ACTOR], ["extender/a"]]}, False),
            ({"what": "pause", "actors": [ACTOR]}, True),
            ({"what": "crash", "actors": ["apiserver/0"]}, True),
            ({"what": "crash", "actors": ["kubelet/n1"]}, False),
            ({"what": "crash", "actors": [ACTOR]}, False),
            ({"what": "crash", "nodes": ["n1"]}, False),
            ({"what": "something new"}, True),
        ],
    )
    def test_faults_that_hold_events_back_are_forgiven(self, fault: dict[str, Any], holds: bool) -> None:
        log = self.heard_but_the_last()
        log.add(5, "chaos", "chaos.begin", id="f", **fault)
        log.add(10, "chaos", "chaos.end", id="f")
        log.ended(50)
        assert judged(log, GAPS).holds is holds

    def test_forgiven_only_until_clients_have_connected_again(self) -> None:
        log = self.heard_but_the_last()
        log.add(5, ACTOR, "net.connection_lost", peer="apiserver/0")
        log.ended(94)  # a second before the connection was lost, and 29 after it had to be back
        assert judged(log, GAPS).holds is True
        log.events.pop()
        log.ended(96)
        assert judged(log, GAPS).holds is False

    def test_a_fault_that_is_over_does_not_excuse_an_idle_end(self) -> None:
        log = self.heard_but_the_last()
        log.add(3, "chaos", "chaos.begin", id="f", what="crash", actors=["apiserver/0"])
        log.add(5, "chaos", "chaos.end", id="f")
        log.ended(6, "idle")
        assert judged(log, GAPS).holds is False

    @pytest.mark.parametrize("kind", ["actor.crashed", "actor.stopped"])
    def test_a_client_that_is_gone_hears_nothing(self, kind: str) -> None:
        log = self.heard_but_the_last()
        log.add(6, ACTOR, kind)
        log.ended(60)
        assert judged(log, GAPS).holds is True

    @pytest.mark.parametrize(("lists_s", "holds"), [(None, False), (20, True)])
    def test_who_lost_a_watch_lists_again(self, lists_s: float | None, holds: bool) -> None:
        log = scene()
        log.heard(5, ACTOR, *HEARD)
        log.add(6, ACTOR, "watch.closed", watch="pods#1", reason="Expired")
        if lists_s is not None:
            log.listed(lists_s, ACTOR, 5, ("a", 4))
        log.ended(40)
        result = judged(log, GAPS)
        assert result.holds is holds
        assert holds or "its watch of pods ended at 6.000 s: it did not list again" in result.detail


class TestAfterALoss:
    """The store comes back without the revisions 4 and 5; then 4 is another one."""

    def scene(self) -> Log:
        log = scene()
        log.heard(5, ACTOR, *HEARD)
        log.add(6, "store", "store.recovered", rev=3, replayed=3, torn_bytes=0)
        log.revision = 3
        log.pods["b"] = log.pods["a"]
        log.pod(7, "a", node="n2")
        return log

    def test_the_watch_is_ended_and_the_client_lists_again(self) -> None:
        log = self.scene()
        log.add(7, ACTOR, "watch.closed", watch="pods#1", reason="Expired")
        log.listed(8, ACTOR, 4, ("a", 4), ("b", 2))
        log.ended(60)
        assert [judged(log, check).detail for check in (GAPS, TRUE)] == [
            "2 watches, 4 events",
            "4 events, 2 objects in lists",
        ]

    def test_a_watch_that_goes_on_as_if_nothing_had_been_lost(self) -> None:
        log = self.scene()
        log.pod(8, "a", phase="Running")
        log.pod(9, "a", phase="Succeeded")
        log.heard(10, ACTOR, "M6:a")
        result = judged(log, TRUE)
        assert result.holds is False
        assert "revision 4 came with other contents than the store had" in result.detail


class TestEventsAreTrue:
    @pytest.mark.parametrize(
        ("place", "event", "says"),
        [
            (0, "M1:a", "revision 1 came as MODIFIED, but is ADDED"),
            (3, "M5:b", "revision 5 came as MODIFIED, but is DELETED"),
            (2, "M4:b", "revision 4 came with other contents than the store had"),
        ],
    )
    def test_an_event_that_says_something_else(self, place: int, event: str, says: str) -> None:
        log = scene()
        heard = list(HEARD)
        heard[place] = event
        log.heard(5, ACTOR, *heard)
        result = judged(log, TRUE)
        assert result.holds is False
        assert says in result.detail
        assert judged(log, GAPS).holds is True

    @pytest.mark.parametrize(
        ("left", "entered", "holds"), [("D2", "A3", True), ("M2", "A3", False), ("D2", "M3", False)]
    )
    def test_an_object_that_leaves_a_selector_is_deleted_and_one_that_enters_is_added(
        self, left: str, entered: str, holds: bool
    ) -> None:
        log = Log()
        log.listed(0, ACTOR, 0, label_selector="color=red")
        log.pod(1, "a", labels={"color": "red"})
        # What leaves comes in its last state that matched, at the revision of the change.
        old = log.wires["/registry/pods/default/a", 1]
        log.pod(2, "a", labels={"color": "blue"})
        log.wires["/registry/pods/default/a", 2] = old[:-1] + b"2"
        log.pod(3, "a", labels={"color": "red"})
        log.heard(4, ACTOR, "A1:a", f"{left}:a", f"{entered}:a")
        assert judged(log, TRUE).holds is holds

    @pytest.mark.parametrize(
        ("held", "says"),
        [
            ([("a", 4), ("b", 2)], ""),
            ([("a", 4)], "the list at revision 4 has 1 object, the store had 2"),
            ([("a", 1), ("b", 2)], "the list at revision 4 has other contents than the store had then"),
        ],
    )
    def test_a_list_is_a_snapshot(self, held: list[tuple[str, int]], says: str) -> None:
        log = scene()
        log.events.pop(0)
        log.listed(5, ACTOR, 4, *held)
        log.heard(5, ACTOR, "D5:b")
        result = judged(log, TRUE)
        assert result.holds is not bool(says)
        assert says in result.detail


SCENARIO = """
apiVersion: kemu.dev/v1
kind: Scenario
metadata: {name: watches}
spec:
  duration: 2m
  nodes:
    - {namePrefix: node-, count: 2, allocatable: {cpu: "4", memory: 8Gi, pods: "110"}}
  workloads:
    - name: short
      arrivals: {every: 500ms, count: 20}
      pods:
        spec: {restartPolicy: Never, containers: [{name: main, resources: {requests: {cpu: 500m}}}]}
      life: {runSeconds: 3}
"""


def results_of(folder: Path) -> dict[str, Result]:
    runner.run(loader.loads(SCENARIO), runner.Options(out=folder))
    with Reader(folder / FILE_NAME) as reader:
        _, results = registry.judge(reader)
    return {result.id: result for result in results}


def test_they_hold_of_a_run(tmp_path: Path) -> None:
    results = results_of(tmp_path)
    assert (results[GAPS].holds, results[TRUE].holds) == (True, True)


def _patch_offers(monkeypatch: pytest.MonkeyPatch, change: Callable[[int, int, int, bytes, int], Any]) -> None:
    """``change`` gets what the API server is about to tell a client (watch id, type, revision, bytes), and how many
    events it told before; it returns the events that are told instead."""
    add = fanout.Stream.add
    told = 0

    def changed(stream: fanout.Stream, watch_id: int, kind: int, revision: int, wire: bytes) -> None:
        nonlocal told
        if kind > 2 or b"short" not in wire:
            add(stream, watch_id, kind, revision, wire)
            return
        told += 1
        for event in change(watch_id, kind, revision, wire, told):
            add(stream, *event)

    monkeypatch.setattr(fanout.Stream, "add", changed)


def _old_bytes(monkeypatch: pytest.MonkeyPatch) -> None:
    """An object is modified, and its watchers get what it was before."""
    dispatch = fanout.Fanout.dispatch

    def changed(self: Any, collection: Any, change: cache.Change, message: Any = None) -> None:
        if change.old is not None and change.new is not None and collection.resource.plural == "pods":
            entry = change.new
            entry.wire = change.old.at(change.revision)
        dispatch(self, collection, change, None)

    monkeypatch.setattr(fanout.Fanout, "dispatch", changed)


def _wrong_type(monkeypatch: pytest.MonkeyPatch) -> None:
    _patch_offers(monkeypatch, lambda watch_id, kind, revision, wire, told: [(watch_id, min(kind, 1), revision, wire)])


def _silent(monkeypatch: pytest.MonkeyPatch) -> None:
    """From some event on."""
    _patch_offers(monkeypatch, lambda *event: [event[:4]] if event[4] < 100 else [])


def _one_lost(monkeypatch: pytest.MonkeyPatch) -> None:
    _patch_offers(monkeypatch, lambda *event: [event[:4]] if event[4] != 50 else [])


def _doubled(monkeypatch: pytest.MonkeyPatch) -> None:
    _patch_offers(monkeypatch, lambda *event: [event[:4]] * (2 if event[4] == 50 else 1))


def _lost_at_the_tail(monkeypatch: pytest.MonkeyPatch) -> None:
    """The end of the last pod is told to nobody."""
    _patch_offers(
        monkeypatch, lambda *event: [] if b"short-19" in event[3] and b"Succeeded" in event[3] else [event[:4]]
    )


def _client_forgets_to_watch(monkeypatch: pytest.MonkeyPatch) -> None:
    """The scheduler's watch of pods is never asked for."""
    start = watches.Watches.start

    def changed(self: Any, watch_id: int, subscriber: Any) -> None:
        if subscriber.resource != "pods" or subscriber.field_selector.startswith("spec.nodeName"):
            start(self, watch_id, subscriber)

    monkeypatch.setattr(watches.Watches, "start", changed)


def _bookmarks_ahead(monkeypatch: pytest.MonkeyPatch) -> None:
    """A bookmark comes before the event of its own revision."""

    def changed(watch_id: int, kind: int, revision: int, wire: bytes, told: int) -> list[tuple[int, int, int, bytes]]:
        return [(watch_id, 3, revision, b""), (watch_id, kind, revision, wire)]

    _patch_offers(monkeypatch, changed)


def _stale_list(monkeypatch: pytest.MonkeyPatch) -> None:
    """A list leaves out the last object, and says the same revision."""
    shown = reads.Reader._shown
    monkeypatch.setattr(reads.Reader, "_shown", lambda self, resource, wires: shown(self, resource, wires)[:-1])


@pytest.mark.parametrize(
    ("bug", "check"),
    [
        (_old_bytes, TRUE),
        (_wrong_type, TRUE),
        (_stale_list, TRUE),
        (_silent, GAPS),
        (_one_lost, GAPS),
        (_doubled, GAPS),
        (_lost_at_the_tail, GAPS),
        (_client_forgets_to_watch, GAPS),
        (_bookmarks_ahead, GAPS),
    ],
)
def test_a_bug_is_found_by_name(
    bug: Callable[[pytest.MonkeyPatch], None], check: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    bug(monkeypatch)
    assert results_of(tmp_path)[check].holds is False


def test_what_the_log_says_of_events_is_what_came(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A client that computed its digests from what it holds, and not from what came, would hide a bug."""
    receive = informers.Informer.receive

    def changed(self: informers.Informer, event: Any, *, alone: bool = False) -> bool:
        event.object = event.object.replace(b"short-7", b"short-8")
        return receive(self, event, alone=alone)

    monkeypatch.setattr(informers.Informer, "receive", changed)
    assert results_of(tmp_path)[TRUE].holds is False
