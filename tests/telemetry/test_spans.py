"""Spans of synthetic runs: what is told, when it began and ended, what it links to."""

from __future__ import annotations

import uuid

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kemu.runlog.frames import Event
from kemu.telemetry import api_events, drafts, spans
from kemu.telemetry.builder import SpanBuilder
from kemu.telemetry.spans import OPEN, REASON, Span
from tests.telemetry.logs import (
    EPOCH_UNIX_S,
    KUBELET,
    MILLISECOND,
    OTHER,
    SCHEDULER,
    Log,
    of_pod,
    preemption,
    spans_of,
    uid_of,
)  # fmt: skip


def test_trace_id_is_the_uid() -> None:
    uid = "0235f28f-b01e-498a-8e26-8a4d3a3b4f18"
    assert f"{spans.trace_id(uid):032x}" == uid.replace("-", "")
    assert spans.trace_id("a") != spans.trace_id("b")
    assert 0 < spans.trace_id("not-a-uuid") < 1 << 128
    assert spans.trace_id(str(uuid.UUID(int=0))) != 0


def test_services_are_families_of_actors() -> None:
    assert spans.service_of("scheduler/batch/2") == "scheduler batch"
    assert spans.service_of("kubelet/node-7") == "kubelet"
    assert spans.service_of("apiserver/0") == "apiserver"
    assert spans.service_of("") == "user"


def test_a_preemptor_tells_its_story() -> None:
    found = spans_of(preemption().events)
    c = of_pod(found, "c")
    assert list(dict.fromkeys(span.name for span in found if span.pod == "default/c")) == [
        "admission", "queue active", "attempt", "preemption", "nomination", "queue unschedulable", "bind",
        "kubelet admission", "pull", "start", "running", "pod default/c",
    ]  # fmt: skip
    assert {span.service for span in c.values()} == {"user", "apiserver", "scheduler default-scheduler", "kubelet"}
    links = c["preemption"].links
    assert [(link.relation, link.target) for link in links] == [("preempted", "default/a"), ("preempted", "default/b")]
    assert [link.trace_id for link in links] == [spans.trace_id(uid_of("a")), spans.trace_id(uid_of("b"))]
    roots = {span.trace_id: span.span_id for span in found if span.parent_id is None}
    assert [link.span_id for link in links] == [roots[link.trace_id] for link in links]
    assert c["preemption"].attributes["kemu.victims"] == ["default/a", "default/b"]
    assert "default/a, default/b" in str(c["preemption"].attributes[REASON])
    assert c["start"].start_ns == c["pull"].end_ns
    assert c["running"].attributes[OPEN] is True
    assert c["running"].end_ns == c["pod default/c"].end_ns == 70_000 * MILLISECOND


def test_a_victim_tells_who_sent_it_away() -> None:
    found = spans_of(preemption().events)
    a = of_pod(found, "a")
    victim = a["preempted by default/c"]
    (link,) = victim.links
    assert (link.trace_id, link.relation) == (spans.trace_id(uid_of("c")), "preempted by")
    assert "preempted by default/c" in str(victim.attributes[REASON])
    assert a["running"].end_ns == a["termination"].start_ns == 5013 * MILLISECOND
    assert a["termination"].attributes["kemu.forced"] is True
    root = a["pod default/a"]
    assert (root.start_ns, root.end_ns) == (0, 65_002 * MILLISECOND)
    assert OPEN not in root.attributes
    assert root.attributes["kemu.outcome"] == "preempted by default/c"


def test_times_count_from_the_epoch() -> None:
    plain, moved = spans_of(preemption().events), spans_of(preemption().events, EPOCH_UNIX_S)
    assert [span.start_ns + EPOCH_UNIX_S * 10**9 for span in plain] == [span.start_ns for span in moved]
    assert [span.span_id for span in plain] == [span.span_id for span in moved]


def test_every_span_has_its_root_as_parent_and_an_id_of_its_own() -> None:
    found = spans_of(preemption().events)
    assert len({(span.trace_id, span.span_id) for span in found}) == len(found)
    for span in found:
        assert span.parent_id == (None if span.name.startswith("pod ") else spans.root_id(span.uid))
        assert span.end_ns >= span.start_ns


def test_the_loser_of_a_binding_links_to_the_winners_span() -> None:
    log = Log()
    log.request(2, "create", "p", "user")
    log.attempt(5, "p", 1, "scheduled", SCHEDULER)
    log.attempt(5, "p", 1, "scheduled", OTHER)
    log.request(7, "bind", "p", SCHEDULER, took=1)
    log.refused(7.5, "bind", "p", OTHER, "Conflict", uid_of("p"))
    log.bind(8, "p", OTHER, "Conflict")
    log.bind(9, "p", SCHEDULER)
    found = [span for span in spans_of(log.events) if span.name.startswith("bind")]
    refused, lost, won = found
    assert won.ok
    assert (refused.name, refused.ok, lost.ok) == ("bind refused", False, False)
    for loser in (refused, lost):
        (link,) = loser.links
        assert (link.trace_id, link.span_id) == (won.trace_id, won.span_id)
        assert (link.relation, link.target) == ("lost to", SCHEDULER)
        assert loser.attributes["kemu.conflict.winner"] == SCHEDULER
        assert loser.attributes[REASON] == "Conflict"


def test_a_rejected_pod_and_the_one_that_took_its_place_know_of_each_other() -> None:
    log = Log()
    log.scheduled(0, "red", SCHEDULER)
    log.request(3, "create", "blue", "user")
    log.bind(9.5, "blue", OTHER)
    log.admit(11, "blue", "OutOfcpu")
    found = spans_of(log.events)
    rejected = of_pod(found, "blue")["kubelet admission"]
    assert not rejected.ok
    assert rejected.message == "OutOfcpu: no room for blue"
    assert rejected.attributes[REASON] == "OutOfcpu"
    assert [(link.relation, link.target) for link in rejected.links] == [("lost to", "default/red")]
    won = of_pod(found, "red")["won against default/blue"]
    assert [link.trace_id for link in won.links] == [spans.trace_id(uid_of("blue"))]
    root = of_pod(found, "blue")["pod default/blue"]
    assert root.attributes["kemu.outcome"] == "rejected: OutOfcpu"
    assert root.end_ns == 11 * MILLISECOND


def test_one_scheduler_that_binds_too_much_has_not_lost_to_anybody() -> None:
    log = Log()
    log.scheduled(0, "red", SCHEDULER)
    log.request(3, "create", "blue", "user")
    log.bind(9.5, "blue", SCHEDULER)
    log.admit(11, "blue", "OutOfcpu")
    assert of_pod(spans_of(log.events), "blue")["kubelet admission"].links == ()


def test_a_replacement_and_what_it_replaces_link_to_each_other() -> None:
    log = Log()
    for name, replaces in (("w-0", ""), ("w-1", "default/w-0")):
        log.add(1, "user", "user.pod", pod=f"default/{name}", uid=uid_of(name), workload="w", n=0, replaces=replaces)
    found = spans_of(log.events)
    new, old = of_pod(found, "w-1")["created"], of_pod(found, "w-0")["replaced by default/w-1"]
    assert [(link.relation, link.trace_id) for link in new.links] == [("replaces", spans.trace_id(uid_of("w-0")))]
    assert [(link.relation, link.trace_id) for link in old.links] == [("replaced by", spans.trace_id(uid_of("w-1")))]


def test_the_pods_of_a_controller_link_to_each_other_even_of_one_name() -> None:
    log = Log()
    old_uid, new_uid = uid_of("db-0"), uid_of("db-0 again")
    for ms, uid, replaced_uid in ((1, old_uid, ""), (9, new_uid, old_uid)):
        log.add(
            ms, "controller/statefulset", "controller.pod", pod="default/db-0", uid=uid, owner="StatefulSet default/db",
            replaces="default/db-0" if replaced_uid else "", replaces_uid=replaced_uid,
        )  # fmt: skip
    found = {(span.uid, span.name): span for span in spans_of(log.events)}
    assert found[old_uid, "created"].links == ()
    new, old = found[new_uid, "created"], found[old_uid, "replaced by default/db-0"]
    assert [(link.relation, link.trace_id) for link in new.links] == [("replaces", spans.trace_id(old_uid))]
    assert [(link.relation, link.trace_id) for link in old.links] == [("replaced by", spans.trace_id(new_uid))]
    assert (new.attributes["kemu.owner"], new.service) == ("StatefulSet default/db", "controller")


def test_restarts_show_runs_and_pauses() -> None:
    log = Log()
    log.scheduled(0, "p")
    for ms, start, delay_s in ((1000, 20, 0), (2000, 1000, 10), (13_000, 12_000, 20)):
        log.pod(ms, KUBELET, "kubelet.restarting", "p", ms - start, node="node-1", exit_code=1, delay_s=delay_s)
    log.add(20_000, KUBELET, "kubelet.terminating", pod="default/p", uid=uid_of("p"), node="node-1", grace_s=0)
    log.pod(20_000, KUBELET, "kubelet.terminated", "p", 0, node="node-1", forced=False)
    stays = [
        (span.name, span.start_ns // MILLISECOND, span.end_ns // MILLISECOND, span.ok)
        for span in spans_of(log.events)
        if span.name in ("running", "restart back-off")
    ]
    assert stays == [
        ("running", 20, 1000, False),
        ("running", 1000, 2000, False),
        ("restart back-off", 2000, 12_000, True),
        ("running", 12_000, 13_000, False),
        ("restart back-off", 13_000, 20_000, True),
    ]


def test_of_several_containers_each_run_has_a_span() -> None:
    log = Log()
    log.scheduled(0, "p")
    for container in ("web", "log"):
        log.add(20, KUBELET, "kubelet.started", pod="default/p", uid=uid_of("p"), node="node-1", container=container)
    log.pod(500, KUBELET, "kubelet.exited", "p", 480, node="node-1", container="log", exit_code=3)
    log.pod(500, KUBELET, "kubelet.restarting", "p", 480, node="node-1", container="log", exit_code=3, delay_s=10)
    log.pod(900, KUBELET, "kubelet.finished", "p", 880, node="node-1", phase="Failed", exit_code=3)
    found = of_pod(spans_of(log.events), "p")
    one = found["container log"]
    assert (one.start_ns // MILLISECOND, one.end_ns // MILLISECOND, one.ok, one.message) == (
        20,
        500,
        False,
        "exit code 3",
    )
    assert one.attributes["k8s.container.name"] == "log"
    # The pod itself ran all the time.
    assert found["running"].end_ns // MILLISECOND == 900


def test_a_pod_that_is_deleted_before_it_was_bound_ends_then() -> None:
    log = Log()
    log.request(2, "create", "p", "user")
    log.request(50, "delete", "p", "user")
    log.add(99, "user", "user.event", index=1, what="nothing")
    without_store = of_pod(spans_of(log.events), "p")["pod default/p"]
    assert (without_store.end_ns, OPEN in without_store.attributes) == (50 * MILLISECOND, False)
    seen = Log()
    seen.request(2, "create", "p", "user")
    seen.gone(49, "p")
    seen.request(50, "delete", "p", "user")
    seen.request(60, "create", "p2", "user")
    assert of_pod(spans_of(seen.events), "p")["pod default/p"].end_ns == 50 * MILLISECOND


def test_a_refused_eviction_is_found_by_the_pods_name() -> None:
    log = Log()
    log.request(2, "create", "p", "user")
    log.refused(5, "evict", "p", "user", "TooManyRequests")
    log.refused(6, "evict", "unknown", "user", "NotFound")
    refused = [span for span in spans_of(log.events) if span.name == "evict refused"]
    assert [(span.uid, span.message) for span in refused] == [(uid_of("p"), "TooManyRequests: refused p")]


def test_nothing_is_kept_of_pods_that_are_gone() -> None:
    builder = SpanBuilder()
    for event in preemption().events:
        builder.feed(*event)
    assert list(builder._drafts.pods) == [uid_of("c")]
    assert list(builder._drafts.uids) == ["default/c"]
    assert builder._drafts.on_node == {"node-1": {uid_of("c"): "default/c"}}


_CELL_OF = {"store": 0, "apiserver": 1, "scheduler": 2, "kubelet": 3, "user": 4}


@given(st.lists(st.integers(0, 3), min_size=5, max_size=5))
def test_cells_agree_about_ids(cell_of_family: list[int]) -> None:
    """However actors are spread over cells, their spans are those that one who sees everything makes."""
    events = preemption().events

    def cell(event: Event) -> int:
        return cell_of_family[_CELL_OF[event.actor.partition("/")[0]]]

    parts = [spans_of(event for event in events if cell(event) == number) for number in range(4)]
    together = {(span.trace_id, span.span_id): span.name for part in parts for span in part}
    assert together == {(span.trace_id, span.span_id): span.name for span in spans_of(events)}


@given(st.data())
def test_any_part_of_a_log_makes_spans(data: st.DataObject) -> None:
    """A process that died takes events with it: the rest still makes valid spans."""
    events = preemption().events
    kept = [event for event in events if data.draw(st.booleans())]
    found: list[Span] = spans_of(kept)
    assert len({(span.trace_id, span.span_id) for span in found}) == len(found)
    assert all(span.end_ns >= span.start_ns for span in found)


def test_a_container_that_was_found_ended_began_no_sooner_than_its_pod() -> None:
    log = Log()
    log.request(1_500, "create", "a", "user")
    log.add(
        30_000, KUBELET, "kubelet.found_ended", pod="default/a", uid=uid_of("a"), node="node-1",
        start=1_000 * MILLISECOND, container="main", exit_code=255,
    )  # fmt: skip
    found = of_pod(spans_of(log.events), "a")
    ended, root = found["container main"], found["pod default/a"]
    assert (ended.start_ns, ended.attributes["kemu.exit_code"]) == (root.start_ns, 255)


def test_who_evicts_and_why() -> None:
    log = Log()
    log.request(0, "create", "a", "user")
    log.request(0, "create", "b", "user")
    log.add(
        5_000, KUBELET, "kubelet.evicting", pod="default/a", uid=uid_of("a"), node="node-1", signal="memory.available",
        grace_s=1, message="The node was low on resource: memory. ",
    )  # fmt: skip
    log.add(
        4_000, KUBELET, "kubelet.oom_killed", pod="default/a", uid=uid_of("a"), node="node-1", container="main"
    )  # fmt: skip
    log.add(
        9_000, "controller/taint-eviction", "taint.eviction", pod="default/b", uid=uid_of("b"), node="node-1",
        start=8_000 * MILLISECOND, ok=True,
    )  # fmt: skip
    log.request(0, "create", "c", "user")
    log.add(
        6_000, KUBELET, "kubelet.shutting_down", pod="default/c", uid=uid_of("c"), node="node-1", priority=0, grace_s=20
    )
    found = spans_of(log.events)
    a, b, c = of_pod(found, "a"), of_pod(found, "b"), of_pod(found, "c")
    assert c["evicted"].attributes[REASON] == "the machine is being shut down"
    assert c["pod default/c"].attributes["kemu.outcome"] == "evicted from node-1"
    assert a["evicted"].attributes[REASON] == "The node was low on resource: memory."
    assert a["evicted"].service == "kubelet"
    assert a["pod default/a"].attributes["kemu.outcome"] == "evicted from node-1"
    assert a["OOM kill of main"].attributes["k8s.container.name"] == "main"
    assert b["evicted"].end_ns - b["evicted"].start_ns == 1_000 * MILLISECOND
    assert b["pod default/b"].attributes["kemu.outcome"] == "evicted from node-1"


def churn(pods: int) -> Log:
    """Pods of a workload come and go, each on a node of its own; every tenth is removed without its kubelet."""
    log = Log()
    for number in range(pods):
        ms, name, kubelet = 1000.0 * number, f"p-{number}", f"kubelet/node-{number}"
        replaces = f"default/p-{number - 1}" if number % 2 else ""
        log.pod(ms + 1, "user", "user.pod", name, workload="w", n=number, replaces=replaces)
        log.request(ms + 2, "create", name, "user")
        if number % 5 == 0:
            log.gone(ms + 3, name)
            log.request(ms + 3, "delete", name, "user")
            continue
        log.queued(ms + 4, name, "active", 1)
        log.request(ms + 7, "bind", name, SCHEDULER, took=1)
        log.bind(ms + 9, name)
        log.admit(ms + 10, name, actor=kubelet)
        log.pod(ms + 20, kubelet, "kubelet.running", name, 10, node=f"node-{number}")
        by = "controller/pod-gc"
        if number % 10 != 1:
            by = kubelet
            log.pod(ms + 30, kubelet, "kubelet.terminating", name, node=f"node-{number}")
            log.pod(ms + 40, kubelet, "kubelet.terminated", name, 10, node=f"node-{number}", forced=False)
        log.gone(ms + 41, name)
        log.request(ms + 41, "delete", name, by)
    return log


def kept(builder: SpanBuilder) -> int:
    """How many things all of its tables hold."""
    handlers = {id(handler.__self__): handler.__self__ for handler in builder._handlers.values()}
    owners = [builder._drafts, *handlers.values()]
    return sum(
        len(value)
        for owner in owners
        for name, value in vars(owner).items()
        if name != "handlers" and isinstance(value, dict | list | set)
    )


@pytest.mark.parametrize("families", ["store apiserver scheduler kubelet user controller", "kubelet", "apiserver user"])
def test_what_is_kept_does_not_grow_with_pods_that_are_gone(families: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whether a builder sees all actors of a run, or those of one cell."""
    monkeypatch.setattr(api_events, "MOST_NAMES", 10)
    monkeypatch.setattr(drafts, "MOST_DOUBTFUL", 10)
    builder = SpanBuilder()
    sizes = []
    for event in churn(400).events:
        if event.actor.partition("/")[0] in families.split():
            builder.feed(*event)
            sizes.append(kept(builder))
    assert max(sizes[len(sizes) // 2 :]) <= max(sizes[: len(sizes) // 4])


def test_a_fault_is_an_event_on_the_spans_that_it_struck() -> None:
    """On spans of the actors that it hit, while it bears on them, and on the roots of their pods."""
    log = preemption()
    log.add(3000, "chaos", "chaos.begin", id="early", what="drop")
    log.events.append(
        Event(3000 * MILLISECOND, "chaos", "chaos.hit", {"id": "early", "actor": KUBELET, "peer": "apiserver/0"})
    )
    log.add(4000, "chaos", "chaos.end", id="early", hits=1)
    log.add(10000, "chaos", "chaos.begin", id="cut", what="partition")
    log.events.append(
        Event(10500 * MILLISECOND, "chaos", "chaos.hit", {"id": "cut", "actor": KUBELET, "peer": "apiserver/0"})
    )
    log.add(20000, "chaos", "chaos.end", id="cut", hits=7)
    log.add(10000, "chaos", "chaos.begin", id="dead", what="crash", actors=["scheduler/other/0"])
    found = spans_of(sorted(log.events, key=lambda event: event[0]), epoch_unix_s=EPOCH_UNIX_S)
    a, c = of_pod(found, "a"), of_pod(found, "c")
    cut = spans.SpanEvent(EPOCH_UNIX_S * 10**9 + 10_500 * MILLISECOND, "partition towards apiserver/0", "cut")
    assert a["termination"].events == (cut,)
    assert [event.fault for event in a["pod default/a"].events] == ["early", "cut"]
    assert c["pod default/c"].events == (cut,)
    assert c["attempt"].events == ()
    assert c["running"].events == (), "it was over by then"
