"""Export by OTLP: everything arrives, once, as it was; what does not is counted."""

from __future__ import annotations

import socket
import time
from collections.abc import Iterator
from pathlib import Path

import grpc
import pytest

from kemu.errors import KemuError
from kemu.lab.telemetry import exports, otlp, runs
from tests.telemetry.collectors import Collector, collector
from tests.telemetry.logs import EPOCH_UNIX_S, HEADER, MILLISECOND, RUN, SCHEDULER, Log, preemption, spans_of, uid_of

_INTERNAL, _SERVER = 1, 2
_UNSET = 0


@pytest.fixture
def here() -> Iterator[Collector]:
    with collector() as found:
        yield found


def crowd(count: int) -> Log:
    log = Log()
    for n in range(count):
        log.scheduled(20 * n, f"p-{n}")
    return log


def closed_port() -> str:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return f"127.0.0.1:{probe.getsockname()[1]}"


def test_a_run_arrives_whole(tmp_path: Path, here: Collector) -> None:
    log = preemption()
    report = otlp.export_run(log.write(tmp_path), here.endpoint)
    made = spans_of(log.events, EPOCH_UNIX_S)
    assert (report.sent, report.dropped, report.reason) == (len(made), 0, "")
    assert set(here.spans) == {(f"{span.trace_id:032x}", f"{span.span_id:016x}") for span in made}
    assert here.services == {
        "user": {"user"},
        "apiserver": {"apiserver/0"},
        "scheduler default-scheduler": {SCHEDULER},
        "kubelet": {"kubelet/node-1"},
    }


def test_a_span_arrives_as_it_was(tmp_path: Path, here: Collector) -> None:
    otlp.export_run(preemption().write(tmp_path), here.endpoint)
    sent = next(span for span in here.spans.values() if span.name == "preemption")
    assert sent.trace_id.hex() == f"{RUN.trace_id(uid_of('c')):032x}"
    parent = here.spans[sent.trace_id.hex(), sent.parent_span_id.hex()]
    assert (parent.name, parent.start_time_unix_nano) == ("attempt", EPOCH_UNIX_S * 10**9 + 5004 * MILLISECOND)
    assert (sent.kind, sent.status.code) == (_INTERNAL, _UNSET)
    assert sent.start_time_unix_nano == EPOCH_UNIX_S * 10**9 + 5005 * MILLISECOND
    assert sent.end_time_unix_nano - sent.start_time_unix_nano == MILLISECOND
    attributes = {each.key: each.value for each in sent.attributes}
    assert [each.string_value for each in attributes["kemu.victims"].array_value.values] == ["default/a", "default/b"]
    assert attributes["kemu.candidates"].int_value == 1
    assert [link.trace_id.hex() for link in sent.links] == [f"{RUN.trace_id(uid_of(name)):032x}" for name in ("a", "b")]
    assert {each.key: each.value.string_value for each in sent.links[0].attributes} == {
        "kemu.relation": "preempted",
        "kemu.target": "default/a",
        "kemu.pod": "default/a",
    }


def test_errors_bear_their_reason(tmp_path: Path, here: Collector) -> None:
    log = Log()
    log.admit(11, "blue", "OutOfcpu")
    otlp.export_run(log.write(tmp_path), here.endpoint)
    (span,) = here.spans.values()
    assert (span.status.code, span.status.message) == (2, "OutOfcpu: no room for blue")


def test_a_request_is_the_servers_side_of_a_call(tmp_path: Path, here: Collector) -> None:
    otlp.export_run(preemption().write(tmp_path), here.endpoint)
    kinds = {span.name: span.kind for span in here.spans.values()}
    assert {name for name, kind in kinds.items() if kind == _SERVER} == {"admission", "delete"}
    failed = {span.name for span in here.spans.values() if span.status.code != _UNSET}
    assert failed == {"preempted", "pod"}, "what the victims lost; nothing of c"


def test_whose_spans_they_are(tmp_path: Path, here: Collector) -> None:
    otlp.export_run(preemption().write(tmp_path), here.endpoint)
    for service, told in here.resources.items():
        assert {key: told[key] for key in ("kemu.run", "kemu.scenario", "kemu.seed", "kemu.runtime", "kemu.epoch")} == {
            "kemu.run": RUN.name, "kemu.scenario": "by-hand", "kemu.seed": 1, "kemu.runtime": "sim",
            "kemu.epoch": "2000-01-01T00:00:00.000+00:00",
        }  # fmt: skip
        assert told.get("k8s.node.name") == ("node-1" if service == "kubelet" else None)
    sender = otlp._Sender("localhost:1", runs.of_header({**HEADER, "variant": "queue=fifo"}))
    (span, *_) = spans_of(preemption().events)
    assert sender._readable(span).resource.attributes["kemu.variant"] == "queue=fifo"
    sender.close()


def test_exports_at_other_times_and_of_other_ids_are_other_traces(tmp_path: Path, here: Collector) -> None:
    folder = preemption().write(tmp_path)
    ended_ns, begun_ns = 1_750_000_070 * 10**9, 1_750_000_000 * 10**9
    for manner in (
        exports.Manner(), exports.Manner(), exports.Manner(run_id="mine"),
        exports.Manner(at=exports.Moment(ended_ns, is_end=True)),
    ):  # fmt: skip
        otlp.export_run(folder, here.endpoint, manner)
    assert len({trace for trace, _ in here.spans}) == 3 * 3, "three pods; the second export is the first once more"
    moved = exports.Manner(at=exports.Moment(begun_ns, is_end=False))
    assert otlp.export_run(folder, here.endpoint, moved).run == RUN.moved(begun_ns)
    assert len({trace for trace, _ in here.spans}) == 3 * 3, "a run of 70 s that ends then began at the same time"
    found = [
        span for (trace, _), span in here.spans.items() if trace == f"{RUN.moved(begun_ns).trace_id(uid_of('c')):032x}"
    ]
    assert max(span.end_time_unix_nano for span in found) == ended_ns
    assert min(span.start_time_unix_nano for span in found) == begun_ns + 5_000 * 10**6


def test_batches_are_bounded(tmp_path: Path, here: Collector) -> None:
    report = otlp.export_run(crowd(300).write(tmp_path), here.endpoint)
    assert here.received == len(here.spans) == report.sent
    assert here.requests >= report.sent // (otlp.BATCH_SPANS + 20)
    assert here.requests > 2


def test_large_requests_are_divided(tmp_path: Path, here: Collector, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(otlp, "MOST_REQUEST_BYTES", 2000)
    report = otlp.export_run(preemption().write(tmp_path), here.endpoint)
    assert here.received == report.sent == len(spans_of(preemption().events))
    assert here.requests > 3


def test_transient_failures_are_retried(tmp_path: Path, here: Collector) -> None:
    here.failures = [grpc.StatusCode.UNAVAILABLE, grpc.StatusCode.ABORTED]
    report = otlp.export_run(preemption().write(tmp_path), here.endpoint)
    assert report.dropped == 0
    assert here.requests == 3


def test_what_the_collector_refuses_is_counted(tmp_path: Path, here: Collector) -> None:
    made = len(spans_of(preemption().events))
    here.reject = 3
    report = otlp.export_run(preemption().write(tmp_path / "a"), here.endpoint)
    assert (report.sent, report.dropped, report.reason) == (made - 3, 3, "too many")
    here.reject, here.failures = 0, [grpc.StatusCode.PERMISSION_DENIED]
    report = otlp.export_run(preemption().write(tmp_path / "b"), here.endpoint)
    assert (report.sent, report.dropped) == (0, made)
    assert "PERMISSION_DENIED: as told" in report.reason


def test_nobody_there_is_a_clear_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(otlp, "_CONNECT_TIMEOUT_S", 0.5)
    endpoint = closed_port()
    with pytest.raises(KemuError, match=f"no collector answers at {endpoint}"):
        otlp.export_run(preemption().write(tmp_path), endpoint)


@pytest.mark.parametrize(
    ("endpoint", "target"),
    [
        ("localhost:4317", "localhost:4317"), ("http://jaeger:14317/", "jaeger:14317"), ("jaeger", "jaeger:4317"),
        ("[::1]", "[::1]:4317"), ("[::1]:99", "[::1]:99"),
    ],
)  # fmt: skip
def test_addresses(endpoint: str, target: str) -> None:
    assert otlp.target_of(endpoint) == target


@pytest.mark.parametrize("endpoint", ["", ":4317", "host:port", "host:70000", "https://host:4317", "host:1/v1/traces"])
def test_what_is_no_address(endpoint: str) -> None:
    with pytest.raises(KemuError):
        otlp.target_of(endpoint)


def test_live_spans_are_those_of_the_log(here: Collector) -> None:
    log = preemption()
    live = otlp.LiveExporter(here.endpoint, RUN, EPOCH_UNIX_S)
    for event in log.events:
        live.feed(*event)
    report = live.close()
    made = {(f"{span.trace_id:032x}", f"{span.span_id:016x}") for span in spans_of(log.events, EPOCH_UNIX_S)}
    assert (report.sent, report.dropped) == (len(made), 0)
    assert set(here.spans) == made
    assert live.close() is report


def test_live_spans_come_before_the_end(here: Collector) -> None:
    live = otlp.LiveExporter(here.endpoint, RUN, 0)
    for event in crowd(100).events:
        live.feed(*event)
    for _ in range(100):
        if here.received > otlp.BATCH_SPANS:
            break
        time.sleep(0.05)
    assert here.received > otlp.BATCH_SPANS
    live.close()


def test_a_live_exporter_without_a_collector_counts_what_it_drops(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(otlp, "_FIRST_RETRY_S", 0.01)
    live = otlp.LiveExporter(closed_port(), RUN, 0)
    for event in preemption().events:
        live.feed(*event)
    report = live.close()
    assert (report.sent, report.dropped) == (0, len(spans_of(preemption().events)))
    assert "UNAVAILABLE" in report.reason


def test_a_collector_that_is_too_slow_costs_spans_and_not_memory(
    here: Collector, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(otlp, "MOST_WAITING_SPANS", 600)
    here.stalled.clear()
    live = otlp.LiveExporter(here.endpoint, RUN, 0)
    log = crowd(400)
    for event in log.events:
        live.feed(*event)
    here.stalled.set()
    report = live.close()
    assert report.dropped > 0
    assert report.sent == here.received
    assert report.sent + report.dropped == len(spans_of(log.events))
    assert report.reason == "the collector was too slow"


def test_closing_does_not_wait_for_ever(here: Collector) -> None:
    here.stalled.clear()
    live = otlp.LiveExporter(here.endpoint, RUN, 0)
    for event in preemption().events:
        live.feed(*event)
    report = live.close(timeout_s=0.2)
    assert (report.sent, report.dropped) == (0, len(spans_of(preemption().events)))
    assert report.reason


def test_what_is_kept_of_actors_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(otlp, "_MOST_RESOURCES", 5)
    sender = otlp._Sender("localhost:1")
    for number in range(100):
        log = Log()
        log.admit(number, "p", actor=f"kubelet/node-{number}")
        for span in spans_of(log.events):
            readable = sender._readable(span)
            assert readable.resource.attributes["service.instance.id"] == f"kubelet/node-{number}"
    assert len(sender._resources) <= 5
    sender.close()
