"""What is heard of real components: lines that kube-apiserver and kube-scheduler v1.36.3 wrote, and etcd's values."""

from __future__ import annotations

import datetime as dt
import json
import zlib
from pathlib import Path
from typing import Any

from kemu.emulated.objects.wire import envelopes, wires
from kemu.emulated.real.audit_logs import AuditLog, unix_ns
from kemu.emulated.real.scheduler_logs import SchedulerLog
from kemu.emulated.real.scheduler_metrics import Counts
from kemu.emulated.real.transactions import KnownPods, Transactions
from kemu.lab.checks.history.histories import History
from kemu.messages.etcd import rpc_pb2
from kemu.messages.k8s import core_v1_pb2
from kemu.runtime.runlog.events import AttemptsCounted, Event

ALL = 1 << 63
UID = "0997a394-b5bc-41a6-be68-daca91dd51a4"


def request(verb: str, code: int, *, part: str = "", agent: str = "kube-scheduler/v1.36.3", **more: Any) -> str:
    """A line of an audit log."""
    where = {"resource": "pods", "namespace": "default", "name": "one", "apiVersion": "v1", "subresource": part}
    return json.dumps(
        {
            "kind": "Event", "apiVersion": "audit.k8s.io/v1", "stage": "ResponseComplete", "verb": verb,
            "user": {"username": "system:kube-scheduler", "uid": "scheduler/a/0", "groups": ["system:masters"]},
            "userAgent": agent, "objectRef": where,
            "responseStatus": {"metadata": {}, "code": code, **more.pop("status", {})},
            "requestReceivedTimestamp": "2026-11-24T08:42:47.009512Z", "stageTimestamp": "2026-11-24T08:42:47.011578Z",
            **more,
        }
    )  # fmt: skip


def heard(folder: Path, *lines: str, known: KnownPods | None = None) -> list[tuple[str, Event]]:
    path = folder / "apiserver-0.audit"
    path.write_text("\n".join(lines) + "\n")
    found: list[tuple[str, Event]] = []
    log = AuditLog(path, "apiserver/0", known or followed(), lambda at, actor, event: found.append((actor, event)))
    log.read(ALL)
    return found


def followed(*changes: tuple[int, core_v1_pb2.Pod | None]) -> KnownPods:
    """What an etcd has told: revisions of the pod default/one."""
    transactions = Transactions("", lambda at_ns, event: None)
    for revision, pod in changes:
        event = rpc_pb2.WatchResponse().events.add()
        event.kv.key, event.kv.mod_revision = b"/registry/pods/default/one", revision
        if pod is None:
            event.type = event.DELETE
        else:
            event.kv.value = envelopes.wrap("v1", "Pod", pod.SerializeToString())
        transactions._record([event])
    return transactions.pods


def pod(node: str = "") -> core_v1_pb2.Pod:
    made = core_v1_pb2.Pod(metadata={"name": "one", "namespace": "default", "uid": UID})
    made.spec.nodeName = node
    return made


BINDING: dict[str, Any] = {
    "requestObject": {"kind": "Binding", "metadata": {"name": "one", "uid": UID}, "target": {"name": "node-1"}}
}
REFUSAL = {
    "status": "Failure", "reason": "Conflict",
    "message": 'Operation cannot be fulfilled on pods/binding "one": pod one is already assigned to node "node-2"',
}  # fmt: skip


def test_a_binding_is_told_by_its_scheduler_and_the_api_server(tmp_path: Path) -> None:
    known = followed((7, pod()), (9, pod("node-1")), (11, pod("node-1")))
    (by, bound), (server, served) = heard(tmp_path, request("create", 201, part="binding", **BINDING), known=known)
    assert (by, bound.KIND, bound["node"], bound["ok"]) == ("scheduler/a/0", "sched.bind", "node-1", True)
    assert (server, served.KIND, served["verb"], served["uid"]) == ("apiserver/0", "api.request", "bind", UID)
    assert served["rev"] == 9, "that of the write, not of the last one"
    assert served["start"] == unix_ns("2026-11-24T08:42:47.009512Z")


def test_a_refused_binding_is_a_conflict_of_its_scheduler(tmp_path: Path) -> None:
    (by, bound), (_, refused) = heard(tmp_path, request("create", 409, part="binding", status=REFUSAL, **BINDING))
    assert (by, bound["ok"], bound["reason"]) == ("scheduler/a/0", False, "Conflict")
    assert (refused.KIND, refused["verb"], refused["by"]) == ("api.refused", "bind", "scheduler/a/0")


def test_actors_of_kemu_say_who_they_are(tmp_path: Path) -> None:
    line = request("delete", 200, agent="kemu (kubelet/node-1)")
    ((_, served),) = heard(tmp_path, line, known=followed((7, pod()), (8, None)))
    assert (served["by"], served["verb"], served["uid"], served["rev"]) == ("kubelet/node-1", "delete", UID, 8)


def test_what_is_overloaded_throttles_and_a_budget_does_not(tmp_path: Path) -> None:
    lines = request("update", 429), request("create", 429, part="eviction", status={"reason": "TooManyRequests"})
    (_, throttled), (_, refused) = heard(tmp_path, *lines)
    assert throttled.KIND == "api.throttled"
    assert (refused.KIND, refused["verb"], refused["reason"]) == ("api.refused", "evict", "TooManyRequests")


def test_a_line_that_was_cut_off_is_left_out(tmp_path: Path) -> None:
    whole = request("delete", 200)
    assert len(heard(tmp_path, whole[:80], whole)) == 1


LOG = """\
I1124 08:42:47.210177    7212 schedule_one.go:123] "Attempting to schedule pod" pod="default/one"
I1124 08:42:47.210857    7212 default_binder.go:69] "Attempting to bind pod to node" pod="default/one" node="node-79"
E1124 08:42:47.212865    7212 schedule_one.go:1243] "Error scheduling pod; retrying" err="running Bind plugin" pod="default/one"
I1124 08:42:48.209390    7217 schedule_one.go:123] "Attempting to schedule pod" pod="default/one"
I1124 08:42:48.209999    7217 schedule_one.go:1239] "Unable to schedule pod; no fit; waiting" pod="default/one" err="0/1 nodes are available: 1 Insufficient cpu."
I1124 08:42:49.209390    7217 schedule_one.go:123] "Attempting to schedule pod" pod="default/one"
E1124 08:42:49.212865    7212 schedule_one.go:1243] "Error scheduling pod; retrying" err="pod UID(default/one) is in the cache, so can't be assumed" pod="default/one"
I1124 08:42:50.209390    7217 schedule_one.go:123] "Attempting to schedule pod" pod="default/one"
I1124 08:42:50.209867    7217 default_binder.go:69] "Attempting to bind pod to node" pod="default/one" node="node-79"
I1124 08:42:50.212508    7217 schedule_one.go:481] "Successfully bound pod to node" pod="default/one" node="node-79" evaluatedNodes=100 feasibleNodes=99
I1124 09:22:14.006788   10846 preemption.go:162] "the target node for the preemption is determined" pod="default/c" node="node-1"
I1124 09:22:14.020809   10846 executor.go:152] "Preemptor Pod preempted victim Pod" preemptor="default/c" victim="default/one" node="node-1"
something else
""".replace("UID", UID)  # noqa: E501


def test_nothing_is_told_of_a_pod_before_it_is_seen() -> None:
    """The clock of a scheduler is not the moment at which kemu's process heard of the pod."""
    found: list[int] = []
    known = KnownPods()
    late_ns = 1 << 62
    known.changed("default/one", 5, core_v1_pb2.Pod(metadata={"uid": UID}), late_ns)
    log = SchedulerLog(known, lambda at_ns, event: found.append(at_ns))
    for line in LOG.splitlines():
        log.line(line)
    log.read(ALL)
    assert late_ns in found


def test_attempts_of_a_scheduler() -> None:
    found: list[tuple[int, Event]] = []
    known = KnownPods()
    known.changed("default/one", 5, core_v1_pb2.Pod(metadata={"uid": UID}), 0)
    log = SchedulerLog(known, lambda at_ns, event: found.append((at_ns, event)))
    for line in LOG.splitlines():
        log.line(line)
    assert not found, "lines wait until they are read"
    log.read(ALL)
    attempts = [event for _, event in found if event.KIND == "sched.attempt"]
    assert [(one["n"], one["result"], one["node"]) for one in attempts] == [
        (1, "scheduled", "node-79"), (2, "unschedulable", ""), (3, "error", ""), (4, "scheduled", "node-79"),
    ]  # fmt: skip
    assert attempts[1]["message"] == "0/1 nodes are available: 1 Insufficient cpu."
    assert attempts[2]["message"] == "the pod is in the cache, so can't be assumed"
    assert (attempts[3]["evaluated"], attempts[3]["feasible"], attempts[3]["uid"]) == (100, 99, UID)
    first_ns, first = found[0]
    assert first_ns - first["start"] == 680_000, "from its beginning until its binding begins"
    planned, victim = (event for _, event in found[4:])
    assert (planned.KIND, planned["pod"], planned["node"]) == ("sched.preemption", "default/c", "node-1")
    assert (victim.KIND, victim["pod"], victim["by"]) == ("sched.victim", "default/one", "default/c")


METRICS = """\
# HELP scheduler_schedule_attempts_total [STABLE] Number of attempts to schedule pods, by the result.
# TYPE scheduler_schedule_attempts_total counter
scheduler_schedule_attempts_total{profile="default-scheduler",result="error"} 1
scheduler_schedule_attempts_total{profile="default-scheduler",result="scheduled"} 2
scheduler_schedule_attempts_total{profile="other",result="scheduled"} 1
scheduler_schedule_attempts_total{profile="default-scheduler",result="unschedulable"} 0
scheduler_scheduling_attempt_duration_seconds_bucket{profile="default-scheduler",result="scheduled",le="+Inf"} 3
scheduler_scheduling_attempt_duration_seconds_sum{profile="default-scheduler",result="scheduled"} 0.0025
scheduler_scheduling_attempt_duration_seconds_count{profile="default-scheduler",result="scheduled"} 3
scheduler_scheduling_attempt_duration_seconds_sum{profile="default-scheduler",result="error"} 1.5e-03
scheduler_scheduling_attempt_duration_seconds_count{profile="default-scheduler",result="error"} 1
scheduler_preemption_victims_sum 3
scheduler_preemption_victims_count 2
go_goroutines 71
"""
LATE = ALL // 2
STARTS = 'I1124 08:42:40.000000    7212 server.go:178] "Starting Kubernetes Scheduler" version="v1.36.3"\n'


def test_what_a_scheduler_counts_is_read_from_its_metrics() -> None:
    event = Counts.read(METRICS).event(4)
    assert event == {
        "attempts": {"error": 1, "scheduled": 3, "unschedulable": 0}, "durations": 4, "took": 4_000_000,
        "preemptions": 2, "victims": 3, "told": 4,
    }  # fmt: skip
    assert Counts.read("").event(0) == {
        "attempts": {}, "durations": 0, "took": 0, "preemptions": 0, "victims": 0, "told": 0
    }  # fmt: skip


def _counted(lines: str, asked_ns: int, answered_ns: int) -> AttemptsCounted:
    """What is told of a scheduler that counts as :data:`METRICS` say."""
    found: list[Event] = []
    log = SchedulerLog(KnownPods(), lambda at_ns, event: found.append(event))
    for line in lines.splitlines():
        log.line(line)
    log.counted(asked_ns, answered_ns, Counts.read(METRICS))
    log.read(ALL)
    (event,) = (one for one in found if isinstance(one, AttemptsCounted))
    return event


def _at(text: str) -> int:
    year = dt.datetime.now(dt.UTC).year
    return int(dt.datetime.fromisoformat(f"{year}-11-24T{text}+00:00").timestamp() * 10**6) * 1000


def test_attempts_that_a_log_tells_are_compared_with_those_that_were_counted() -> None:
    """Four attempts end at 47.21, 48.21, 49.21 and 50.21 s."""
    whole = _counted(STARTS + LOG, LATE, LATE)
    assert (whole.told, whole.doubt) == (4, "")
    early = _counted(STARTS + LOG, _at("08:42:49.0"), _at("08:42:49.0"))
    assert (early.told, early.doubt) == (2, "has counted 4 attempts, but its log tells 2")
    meanwhile = _counted(STARTS + LOG, _at("08:42:49.0"), _at("08:42:51.0"))
    assert (meanwhile.told, meanwhile.doubt) == (4, "")
    # One that was started again counts from nothing.
    again = _counted(LOG + STARTS + "".join(LOG.splitlines(keepends=True)[:3]), LATE, LATE)
    assert again.told == 1


def test_a_run_says_where_a_scheduler_has_counted_otherwise() -> None:
    history = History()
    counts = Counts.read(METRICS)
    for actor, told in (("scheduler/a/0", 4), ("scheduler/b/0", 3)):
        event = counts.event(told)
        history.feed(1, actor, event.KIND, event)
    assert history.doubts == ["scheduler/b/0 has counted 4 attempts, but its log tells 3"]
    assert not history.gaps


def go_bytes(version: str) -> bytes:
    """A PriorityClass as Go writes it: empty texts, too, in the order of their fields."""
    metadata = b"\x0a\x03one\x12\x00\x1a\x00\x22\x00\x2a\x03uid"
    metadata += b"\x32" + bytes((len(version),)) + version.encode() + b"\x38\x00"
    return b"\x0a" + bytes((len(metadata),)) + metadata + b"\x10\x05\x18\x00\x22\x00"


def test_an_object_of_a_real_api_server_has_the_digest_of_its_bytes_in_etcd() -> None:
    stored, served = go_bytes(""), go_bytes("4711")
    assert envelopes.as_stored(served) == (stored, 4711)
    wire, revision = wires.of_real(served)
    assert revision == 4711
    assert zlib.crc32(wire) == wires.digest(stored, 4711)


def test_what_kemu_serves_is_in_that_form_already() -> None:
    served = core_v1_pb2.Pod(metadata={"name": "one"}).SerializeToString() + wires.version_suffix(12)
    assert wires.of_real(served) == (served, 12)


def test_keys_and_values_are_those_of_kemus_store() -> None:
    told: list[Any] = []
    transactions = Transactions("", lambda at_ns, event: told.append(event))
    event = rpc_pb2.WatchResponse().events.add()
    event.kv.key, event.kv.mod_revision, event.kv.create_revision, event.kv.version = b"/registry/minions/a", 5, 5, 1
    event.kv.value = envelopes.wrap("v1", "Node", b"\x0a\x00")
    custom = rpc_pb2.WatchResponse().events.add()
    custom.kv.key, custom.kv.mod_revision, custom.kv.value = b"/registry/example.com/things/x", 6, b"{}"
    transactions._record([event, custom])
    assert told[0]["changes"] == [[0, "/registry/nodes/a", b"\x0a\x00", 5, 1]]
    assert told[1]["changes"][0][1:3] == ["/registry/example.com/things/x", b"{}"]


def test_a_field_that_an_api_server_fills_in_when_it_reads_is_there() -> None:
    """As etcd had it of a PodGroup, and as the API server answered."""
    told: list[Any] = []
    transactions = Transactions("", lambda at_ns, event: told.append(event))
    head, tail = b"\x0a\x06\x0a\x04gang", b"\x1a\x00"
    policy = b"\x12\x04\x12\x02\x08\x02"
    stored = head + b"\x12\x08" + policy + b"\x32\x00" + tail
    served = head + b"\x12\x0d" + policy + b"\x2a\x03Pod" + b"\x32\x00" + tail
    events = []
    for revision, value in ((7, stored), (8, served), (9, head + tail), (10, head)):
        event = rpc_pb2.WatchResponse().events.add()
        event.kv.key, event.kv.mod_revision = b"/registry/podgroups/default/gang", revision
        event.kv.value = envelopes.wrap("scheduling.k8s.io/v1alpha2", "PodGroup", value)
        events.append(event)
    transactions._record(events)
    only = b"\x12\x05\x2a\x03Pod"
    assert [one["changes"][0][2] for one in told] == [served, served, head + only + tail, head + only]
