"""Spans of synthetic runs: what is told, when it began and ended, what it links to."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kemu.errors import KemuError
from kemu.lab.telemetry import api_events, drafts, runs, spans
from kemu.lab.telemetry.builder import SpanBuilder
from kemu.lab.telemetry.spans import NODE, OPEN, PRIORITY, REASON, Span
from kemu.messages.k8s import core_v1_pb2
from kemu.runtime.runlog.frames import Entry
from tests.telemetry.logs import (
    EPOCH_UNIX_S,
    KUBELET,
    MILLISECOND,
    OTHER,
    RUN,
    SCHEDULER,
    Log,
    of_pod,
    preemption,
    spans_of,
    uid_of,
)  # fmt: skip


def test_no_two_runs_share_a_trace() -> None:
    """UIDs follow from the seed, so scenarios with one seed share them."""
    uid = "0235f28f-b01e-498a-8e26-8a4d3a3b4f18"
    told = {"scenario": "a", "seed": 1, "variant": "", "runtime": "sim", "document": "0a", "run": ""}
    others = {"scenario": "b", "seed": 2, "variant": "queue=fifo", "runtime": "ray", "document": "0b", "run": "mine"}
    made = {runs.of_header(told).trace_id(uid)}
    for name, value in others.items():
        made.add(runs.of_header({**told, name: value}).trace_id(uid))
    made.add(runs.of_header(told).renamed("again").trace_id(uid))
    made.add(runs.of_header(told).moved(5).trace_id(uid))
    made.add(runs.of_header(told).trace_id("another"))
    assert len(made) == 10
    assert all(0 < trace < 1 << 128 for trace in made)
    assert runs.of_header(told).trace_id(uid) == runs.of_header(dict(told)).trace_id(uid)


def test_a_run_in_virtual_time_has_the_same_traces_each_time_and_one_on_ray_its_own() -> None:
    def header(runtime: str, run_id: str = "") -> dict[str, str]:
        return runs.header(document="spec: {}", variant="", runtime=runtime, run_id=run_id)

    assert header("sim") == header("sim")
    assert header("ray")["run"] != header("ray")["run"]
    assert runs.of_header(header("sim", "nightly-7")).name == "nightly-7"
    for wrong in ("a b", "-x", "x" * 64):
        with pytest.raises(KemuError, match="--run-id"):
            header("sim", wrong)


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
        "kubelet admission", "pull", "start", "running", "pod",
    ]  # fmt: skip
    assert {span.service for span in c.values()} == {"user", "apiserver", "scheduler default-scheduler", "kubelet"}
    links = c["preemption"].links
    assert [(link.relation, link.target) for link in links] == [("preempted", "default/a"), ("preempted", "default/b")]
    assert [link.trace_id for link in links] == [RUN.trace_id(uid_of("a")), RUN.trace_id(uid_of("b"))]
    roots = {span.trace_id: span.span_id for span in found if span.parent_id is None}
    assert [link.span_id for link in links] == [roots[link.trace_id] for link in links]
    assert c["preemption"].attributes["kemu.victims"] == ["default/a", "default/b"]
    assert "default/a, default/b" in str(c["preemption"].attributes[REASON])
    assert c["start"].start_ns == c["pull"].end_ns
    assert c["running"].attributes[OPEN] is True
    assert c["running"].end_ns == c["pod"].end_ns == 70_000 * MILLISECOND


def test_a_victim_tells_who_sent_it_away() -> None:
    found = spans_of(preemption().events)
    a = of_pod(found, "a")
    victim = a["preempted"]
    (link,) = victim.links
    assert (link.trace_id, link.relation) == (RUN.trace_id(uid_of("c")), "preempted by")
    assert "preempted by default/c" in str(victim.attributes[REASON])
    assert a["running"].end_ns == a["termination"].start_ns == 5013 * MILLISECOND
    assert a["termination"].attributes["kemu.forced"] is True
    root = a["pod"]
    assert (root.start_ns, root.end_ns) == (0, 65_002 * MILLISECOND)
    assert OPEN not in root.attributes
    assert root.attributes["kemu.outcome"] == "preempted by default/c"


def test_times_count_from_the_epoch() -> None:
    plain, moved = spans_of(preemption().events), spans_of(preemption().events, EPOCH_UNIX_S)
    assert [span.start_ns + EPOCH_UNIX_S * 10**9 for span in plain] == [span.start_ns for span in moved]
    assert [span.span_id for span in plain] == [span.span_id for span in moved]


def test_every_span_has_an_id_of_its_own_and_a_parent_that_is_there() -> None:
    found = spans_of(preemption().events)
    ids = {(span.trace_id, span.span_id) for span in found}
    assert len(ids) == len(found)
    for span in found:
        assert (span.parent_id is None) == (span.name == "pod")
        assert span.parent_id is None or (span.trace_id, span.parent_id) in ids
        assert span.end_ns >= span.start_ns


def test_what_a_scheduler_does_for_a_pod_stands_under_its_attempt() -> None:
    found = [span for span in spans_of(preemption().events) if span.pod == "default/c"]
    first, second = (span.span_id for span in found if span.name == "attempt")
    under = {span.name: span.parent_id for span in found}
    assert (under["preemption"], under["nomination"], under["bind"]) == (first, first, second)
    root = spans.root_id(RUN.trace_id(uid_of("c")))
    assert {under[name] for name in ("admission", "attempt", "queue active", "running")} == {root}


def test_a_schedulers_bindings_stand_under_its_own_attempts() -> None:
    log = Log()
    log.request(2, "create", "p", "user")
    for scheduler in (SCHEDULER, OTHER):
        log.attempt(5, "p", 1, "scheduled", scheduler)
    log.request(7, "bind", "p", SCHEDULER, took=1)
    log.refused(7.5, "bind", "p", OTHER, "Conflict", uid_of("p"))
    log.bind(8, "p", OTHER, "Conflict")
    log.bind(9, "p", SCHEDULER)
    found = spans_of(log.events)
    attempt = {span.instance: span.span_id for span in found if span.name == "attempt"}
    assert [span.parent_id for span in found if span.kind == spans.BIND] == [attempt[OTHER], attempt[SCHEDULER]]
    assert [span.parent_id for span in found if span.kind == spans.REFUSED] == [attempt[OTHER]]


def test_every_span_says_whose_it_is() -> None:
    log = preemption()
    pod = core_v1_pb2.Pod(metadata={"uid": uid_of("c"), "name": "c"}, spec={"priority": 1000})
    change = [0, "/registry/pods/default/c", pod.SerializeToString(), 9, 1]
    log.events.insert(0, Entry(1, "store", "store.txn", {"rev": 9, "changes": [change]}))
    for span in spans_of(log.events):
        attributes = span.attributes
        assert f"{attributes['k8s.namespace.name']}/{attributes['k8s.pod.name']}" == span.pod
        assert attributes["k8s.pod.uid"] == span.uid
        assert attributes.get(PRIORITY) == (1000 if span.pod == "default/c" else None)
        if span.service == "kubelet":
            assert attributes[NODE] == "node-1"


def test_names_of_spans_are_few() -> None:
    """Collectors count by name: who it is about stands in attributes."""
    few = {span.name for span in spans_of(churn(40).events)}
    assert few == {span.name for span in spans_of(churn(20).events)}


def test_a_pod_has_a_root_although_its_api_server_died_before_it_could_tell() -> None:
    pod = core_v1_pb2.Pod(metadata={"uid": uid_of("p"), "name": "p"}, spec={"nodeName": "node-3"})
    log = Log()
    change = [0, "/registry/pods/default/p", pod.SerializeToString(), 1, 1]
    log.add(5, "store", "store.txn", rev=1, changes=[change])
    log.gone(9, "p")
    (root,) = spans_of(log.events)
    assert (root.name, root.start_ns, root.end_ns) == ("pod", 5 * MILLISECOND, 9 * MILLISECOND)
    assert root.attributes[NODE] == "node-3"


def test_a_pod_that_the_store_lost_ends_when_it_is_back() -> None:
    pod = core_v1_pb2.Pod(metadata={"uid": uid_of("p"), "name": "p"})
    log = Log()
    log.add(5, "store", "store.txn", rev=8, changes=[[0, "/registry/pods/default/p", pod.SerializeToString(), 8, 1]])
    log.request(6, "create", "p", "user")
    log.add(20, "store", "store.recovered", rev=7)
    log.add(50, "user", "user.event", index=1, what="nothing")
    root = of_pod(spans_of(log.events), "p")["pod"]
    assert (root.end_ns, root.attributes["kemu.outcome"]) == (20 * MILLISECOND, "lost by the store")


def test_a_pod_that_never_got_a_node_says_so_and_how_long_it_waited() -> None:
    log = Log()
    log.scheduled(0, "bound")
    log.request(1_002, "create", "starved", "user")
    log.attempt(1_005, "starved", 1, "unschedulable")
    log.add(9_000, "user", "user.event", index=1, what="nothing")
    found = spans_of(log.events)
    starved, bound = (of_pod(found, name)["pod"].attributes for name in ("starved", "bound"))
    assert (starved["kemu.outcome"], starved["kemu.wait_s"]) == ("never bound", 8.0)
    assert ("kemu.outcome" in bound, bound["kemu.wait_s"]) == (False, 0.009)


def test_calls_of_the_api_have_a_client_and_within_it_a_server() -> None:
    log = Log()
    log.request(3, "create", "p", "user")
    log.add(4, "user", "client.acked", server="apiserver/0", acks=[[3_000_000, 1, *_acked("p")]])
    log.attempt(5, "p", 1, "scheduled")
    log.request(7, "bind", "p", SCHEDULER, took=1)
    log.add(8, SCHEDULER, "client.acked", server="apiserver/0", acks=[[3_000_000, 2, *_acked("p")]])
    log.add(9, KUBELET, "client.acked", server="apiserver/0", acks=[[1_000_000, 5, *_acked("p")]])
    log.add(
        9, KUBELET, "client.got", server="apiserver/0", resource="pods", namespace="default", name="p", took=1_000_000
    )
    log.request(12, "delete", "p", "user")  # the client was gone before the answer
    found = {span.name: span for span in spans_of(log.events, api_calls=True)}
    told = [(span.name, span.service, span.side) for span in found.values() if span.side != "internal"]
    assert sorted(told) == [
        ("admission", "apiserver", "server"), ("api bind", "scheduler default-scheduler", "client"),
        ("api create", "user", "client"), ("api get", "kubelet", "client"), ("api update", "kubelet", "client"),
        ("binding", "apiserver", "server"), ("delete", "apiserver", "server"),
    ]  # fmt: skip
    for client, server in (("api create", "admission"), ("api bind", "binding")):
        assert found[server].parent_id == found[client].span_id
        assert found[client].start_ns <= found[server].start_ns <= found[server].end_ns <= found[client].end_ns
    assert found["api bind"].parent_id == found["attempt"].span_id
    assert found["api bind"].attributes["rpc.method"] == "kemu.v1.Api/Bind"
    without = {span.name for span in spans_of(log.events)}
    assert not without & {"api create", "api bind", "api get", "api update", "binding"}


def _acked(name: str) -> tuple[str, str, int]:
    return f"/registry/pods/default/{name}", uid_of(name), 0


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
    won = of_pod(found, "red")["won"]
    assert [link.trace_id for link in won.links] == [RUN.trace_id(uid_of("blue"))]
    root = of_pod(found, "blue")["pod"]
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
    new, old = of_pod(found, "w-1")["created"], of_pod(found, "w-0")["replaced"]
    assert [(link.relation, link.trace_id) for link in new.links] == [("replaces", RUN.trace_id(uid_of("w-0")))]
    assert [(link.relation, link.trace_id) for link in old.links] == [("replaced by", RUN.trace_id(uid_of("w-1")))]


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
    new, old = found[new_uid, "created"], found[old_uid, "replaced"]
    assert [(link.relation, link.trace_id) for link in new.links] == [("replaces", RUN.trace_id(old_uid))]
    assert [(link.relation, link.trace_id) for link in old.links] == [("replaced by", RUN.trace_id(new_uid))]
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
    one = found["container"]
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
    without_store = of_pod(spans_of(log.events), "p")["pod"]
    assert (without_store.end_ns, OPEN in without_store.attributes) == (50 * MILLISECOND, False)
    seen = Log()
    seen.request(2, "create", "p", "user")
    seen.gone(49, "p")
    seen.request(50, "delete", "p", "user")
    seen.request(60, "create", "p2", "user")
    assert of_pod(spans_of(seen.events), "p")["pod"].end_ns == 50 * MILLISECOND


def test_a_refused_eviction_is_found_by_the_pods_name() -> None:
    log = Log()
    log.request(2, "create", "p", "user")
    log.refused(5, "evict", "p", "user", "TooManyRequests")
    log.refused(6, "evict", "unknown", "user", "NotFound")
    refused = [span for span in spans_of(log.events) if span.name == "evict refused"]
    assert [span.attributes["error.type"] for span in refused] == ["TooManyRequests"]
    assert [(span.uid, span.message) for span in refused] == [(uid_of("p"), "TooManyRequests: refused p")]


def test_nothing_is_kept_of_pods_that_are_gone() -> None:
    builder = SpanBuilder()
    for event in preemption().events:
        builder.feed(*event)
    assert list(builder._drafts.pods) == [uid_of("c")]
    assert list(builder._drafts.uids) == ["default/c"]
    assert builder._drafts.on_node == {"node-1": {uid_of("c"): "default/c"}}


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
    ended, root = found["container"], found["pod"]
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
    assert c["pod"].attributes["kemu.outcome"] == "evicted from node-1"
    assert a["evicted"].attributes[REASON] == "The node was low on resource: memory."
    assert a["evicted"].service == "kubelet"
    assert a["pod"].attributes["kemu.outcome"] == "evicted from node-1"
    assert a["OOM kill"].attributes["k8s.container.name"] == "main"
    assert b["evicted"].end_ns - b["evicted"].start_ns == 1_000 * MILLISECOND
    assert b["pod"].attributes["kemu.outcome"] == "evicted from node-1"


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
    """Whether the log is whole, or has only the events of some actors."""
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
        Entry(3000 * MILLISECOND, "chaos", "chaos.hit", {"id": "early", "actor": KUBELET, "peer": "apiserver/0"})
    )
    log.add(4000, "chaos", "chaos.end", id="early", hits=1)
    log.add(10000, "chaos", "chaos.begin", id="cut", what="partition")
    log.events.append(
        Entry(10500 * MILLISECOND, "chaos", "chaos.hit", {"id": "cut", "actor": KUBELET, "peer": "apiserver/0"})
    )
    log.add(20000, "chaos", "chaos.end", id="cut", hits=7)
    log.add(10000, "chaos", "chaos.begin", id="dead", what="crash", actors=["scheduler/other/0"])
    found = spans_of(sorted(log.events, key=lambda event: event[0]), epoch_unix_s=EPOCH_UNIX_S)
    a, c = of_pod(found, "a"), of_pod(found, "c")
    cut = spans.SpanEvent(EPOCH_UNIX_S * 10**9 + 10_500 * MILLISECOND, "partition towards apiserver/0", "cut")
    assert a["termination"].events == (cut,)
    assert [event.fault for event in a["pod"].events] == ["early", "cut"]
    assert c["pod"].events == (cut,)
    assert c["attempt"].events == ()
    assert c["running"].events == (), "it was over by then"
