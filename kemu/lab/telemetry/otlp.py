"""Traces to a collector: OTLP over gRPC, without encryption, as Jaeger takes it on port 4317.

:func:`export_run` sends the traces of a run folder. :class:`LiveExporter` takes events while they happen and sends from
a thread of its own. Spans are those of the OpenTelemetry SDK (``ReadableSpan``), in its encoding; sending is done here
and not by the SDK's exporter, which does not tell why a batch failed and which spans a collector refused, and whose
defaults (ids, clock, resource from the environment) would make two exports of one run differ.
"""

from __future__ import annotations

import datetime as dt
import threading
import time
from collections import deque
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any

import grpc
from google.protobuf.message import Message
from opentelemetry.exporter.otlp.proto.common.trace_encoder import encode_spans
from opentelemetry.proto.collector.trace.v1.trace_service_pb2_grpc import TraceServiceStub
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import Event, ReadableSpan
from opentelemetry.sdk.util.instrumentation import InstrumentationScope
from opentelemetry.trace import Link, SpanContext, SpanKind, Status, StatusCode, TraceFlags

import kemu
from kemu.errors import KemuError
from kemu.lab.telemetry import exports, indexes, runs
from kemu.lab.telemetry.builder import SpanBuilder
from kemu.lab.telemetry.drafts import SECOND_NS
from kemu.lab.telemetry.exports import ExportReport
from kemu.lab.telemetry.spans import NODE, Side, Span
from kemu.runtime.runlog.frames import FILE_NAME, Reader

DEFAULT_PORT = 4317
BATCH_SPANS = 512
"""As in the OpenTelemetry SDK."""
MOST_REQUEST_BYTES = 3 << 20
"""Collectors refuse messages of more than 4 MiB unless told otherwise."""
MOST_WAITING_SPANS = 1 << 17
"""How many a live exporter holds while the collector is slower than the run; more are dropped, and counted."""

_CONNECT_TIMEOUT_S = 5.0
_SEND_TIMEOUT_S = 10.0
_TROUBLED_TIMEOUT_S = 2.0
_LOST_AFTER_FAILURES = 3
_RETRIES = 3
_FIRST_RETRY_S = 0.25
_LIVE_INTERVAL_S = 0.5
_CLOSE_TIMEOUT_S = 15.0
_MOST_RESOURCES = 10_000

# https://opentelemetry.io/docs/specs/otlp/#failures
_TRANSIENT = frozenset(
    (
        grpc.StatusCode.CANCELLED,
        grpc.StatusCode.DEADLINE_EXCEEDED,
        grpc.StatusCode.ABORTED,
        grpc.StatusCode.OUT_OF_RANGE,
        grpc.StatusCode.UNAVAILABLE,
        grpc.StatusCode.DATA_LOSS,
    )
)


def target_of(endpoint: str) -> str:
    """``host:port`` of ``host``, ``host:port``, ``[v6]:port`` or ``http://host:port``. Raises KemuError."""
    text = endpoint.strip().removeprefix("http://").removeprefix("grpc://").rstrip("/")
    if text.startswith("https://"):
        raise KemuError(f"{endpoint}: traces are sent without encryption only: give HOST:PORT")
    host, colon, port = text.rpartition(":")
    if not colon or text.endswith("]"):
        host, port = text, str(DEFAULT_PORT)
    if not host or "/" in host or not port.isdecimal() or not 0 < int(port) < 65536:
        raise KemuError(f"{endpoint or 'an empty text'} is not the address of a collector: give HOST:PORT")
    return f"{host}:{port}"


def check(endpoint: str) -> None:
    """Raises KemuError when no collector answers there."""
    _Sender(endpoint).connect().close()


_AS_IT_IS = exports.Manner()
_NAMELESS = runs.Run("")


def export_run(folder: Path, endpoint: str, manner: exports.Manner = _AS_IT_IS) -> ExportReport:
    """Send the traces of all pods of a run.

    Raises KemuError when the endpoint cannot be reached, RunLogError when the folder cannot be read.
    """
    begun = time.monotonic()
    with Reader(folder / FILE_NAME) as reader:
        run = runs.of_header(reader.header)
        epoch_ns = int(reader.header.get("epoch_unix_s", 0)) * SECOND_NS
        if manner.run_id:
            run = run.renamed(manner.run_id)
        if manner.at is not None:
            epoch_ns = manner.at.unix_ns - (_end_ns(folder) if manner.at.is_end else 0)
            run = run.moved(epoch_ns)
        sender = _Sender(endpoint, run, epoch_ns).connect()
        try:
            builder = SpanBuilder(run, epoch_ns, api_calls=manner.api_calls)
            batch: list[Span] = []
            for finished in builder.of_log(reader):
                batch += finished
                if len(batch) >= BATCH_SPANS:
                    _send_or_drop(sender, batch)
                    batch = []
            for first in range(0, len(batch), BATCH_SPANS):
                _send_or_drop(sender, batch[first : first + BATCH_SPANS])
        finally:
            sender.close()
    return ExportReport(sender.sent, sender.dropped, time.monotonic() - begun, run, sender.reason)


def _end_ns(folder: Path) -> int:
    with Reader(folder / FILE_NAME) as reader:
        return indexes.of(folder, reader).end_ns


def _send_or_drop(sender: _Sender, batch: Sequence[Span]) -> None:
    """Once a collector is gone, do not wait for it: count the remaining spans as dropped."""
    if sender.failures < _LOST_AFTER_FAILURES:
        sender.send(batch)
    else:
        sender.dropped += len(batch)


class LiveExporter:
    """Sends the spans of a run while it lasts. ``feed`` has the signature of a ``LogSink``.

    A slow or dead collector never delays the run: spans that it does not take are counted as dropped.
    """

    def __init__(self, endpoint: str, run: runs.Run, epoch_unix_s: int, *, api_calls: bool = False) -> None:
        """``epoch_unix_s``: Unix time of virtual time 0. Raises KemuError for what is no address."""
        self._begun = time.monotonic()
        self._its = run
        self._sender = _Sender(endpoint, run, epoch_unix_s * SECOND_NS)
        self._builder = SpanBuilder(run, epoch_unix_s * SECOND_NS, api_calls=api_calls)
        self._waiting: deque[Span] = deque()
        self._overflowed = 0
        self._wake = threading.Event()
        self._closing = threading.Event()
        self._report: ExportReport | None = None
        self._thread = threading.Thread(target=self._run, name="traces", daemon=True)
        self._thread.start()

    def feed(self, time_ns: int, actor: str, kind: str, data: Mapping[str, Any]) -> None:
        """From one thread only. Never blocks."""
        if self._report is None:
            self._enqueue(self._builder.feed(time_ns, actor, kind, data))

    def close(self, timeout_s: float = _CLOSE_TIMEOUT_S) -> ExportReport:
        """End open spans, send what there is, and tell what became of all; again: the same report."""
        if self._report is None:
            self._enqueue(self._builder.flush())
            self._closing.set()
            self._wake.set()
            self._thread.join(timeout_s)
            late = self._thread.is_alive()
            self._sender.close()
            sender = self._sender
            # What the thread could not send in time; its last batch was cancelled with the channel.
            if late:
                self._thread.join(_SEND_TIMEOUT_S)
            left = len(self._waiting)
            reason = sender.reason
            if left or self._overflowed:
                reason = reason or (
                    "the collector was too slow" if not late else f"not all was sent within {timeout_s:g} s"
                )
            self._report = ExportReport(
                sender.sent,
                sender.dropped + self._overflowed + left,
                time.monotonic() - self._begun,
                self._its,
                reason,
            )
        return self._report

    def _enqueue(self, spans: Sequence[Span]) -> None:
        if not spans:
            return
        waiting = self._waiting
        room = MOST_WAITING_SPANS - len(waiting)
        if room < len(spans):
            self._overflowed += len(spans) - max(room, 0)
            spans = spans[: max(room, 0)]
        waiting.extend(spans)
        if len(waiting) >= BATCH_SPANS:
            self._wake.set()

    def _run(self) -> None:
        waiting, sender = self._waiting, self._sender
        while True:
            self._wake.wait(_LIVE_INTERVAL_S)
            closing = self._closing.is_set()
            self._wake.clear()
            while waiting and not sender.closed:
                sender.send([waiting.popleft() for _ in range(min(len(waiting), BATCH_SPANS))])
            if closing:
                return


class _Sender:
    """One connection to a collector, and the count of what it took. Used by one thread, closed by any."""

    def __init__(self, endpoint: str, run: runs.Run = _NAMELESS, epoch_ns: int = 0) -> None:
        """``run``: whose spans they are; ``epoch_ns``: Unix time of its virtual time 0."""
        self._target = target_of(endpoint)
        self._of_run = _run_attributes(run, epoch_ns)
        self._channel = grpc.insecure_channel(self._target)
        self._stub = TraceServiceStub(self._channel)  # type: ignore[no-untyped-call]
        self._resources: dict[tuple[str, str], Resource] = {}
        self._closed = threading.Event()
        self.failures = 0
        """Batches that failed since the last that went through."""
        self.sent = 0
        self.dropped = 0
        self.reason = ""

    def __enter__(self) -> _Sender:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    @property
    def closed(self) -> bool:
        return self._closed.is_set()

    def connect(self) -> _Sender:
        try:
            grpc.channel_ready_future(self._channel).result(timeout=_CONNECT_TIMEOUT_S)
        except grpc.FutureTimeoutError:
            self.close()
            raise KemuError(
                f"no collector answers at {self._target} (OTLP over gRPC); is Jaeger running, and is that its port?"
            ) from None
        return self

    def close(self) -> None:
        self._closed.set()
        self._channel.close()

    def send(self, spans: Sequence[Span]) -> None:
        if not spans:
            return
        request = encode_spans([self._readable(span) for span in spans])
        if request.ByteSize() > MOST_REQUEST_BYTES and len(spans) > 1:
            middle = len(spans) // 2
            self.send(spans[:middle])
            self.send(spans[middle:])
            return
        refused, reason = self._deliver(request, len(spans))
        self.sent += len(spans) - refused
        self.dropped += refused
        if refused:
            self.reason = reason

    def _deliver(self, request: Message, count: int) -> tuple[int, str]:
        """How many of its spans were not taken, and why."""
        wait_s = _FIRST_RETRY_S
        # After a failure each batch gets one short try: a dead collector must not cost much time.
        tries, timeout_s = (1, _TROUBLED_TIMEOUT_S) if self.failures else (1 + _RETRIES, _SEND_TIMEOUT_S)
        while True:
            tries -= 1
            try:
                response = self._stub.Export(request, timeout=timeout_s)
            except grpc.RpcError as error:
                code, text = error.code(), error.details()
                if code in _TRANSIENT and tries and not self._closed.wait(wait_s):
                    wait_s *= 2
                    continue
                self.failures += 1
                return count, f"{self._target}: {code.name}: {text}"
            except ValueError:
                # The channel was closed by another thread.
                return count, f"{self._target}: the connection was closed"
            self.failures = 0
            partial = response.partial_success
            return min(partial.rejected_spans, count), partial.error_message or "refused by the collector"

    def _readable(self, span: Span) -> ReadableSpan:
        key = (span.service, span.instance)
        resource = self._resources.get(key)
        if resource is None:
            if len(self._resources) >= _MOST_RESOURCES:
                self._resources.clear()  # most are of actors that are gone
            resource = self._resources[key] = _Resource({**_service(span), **self._of_run})
        return ReadableSpan(
            span.name,
            context=_context(span.trace_id, span.span_id),
            parent=None if span.parent_id is None else _context(span.trace_id, span.parent_id),
            resource=resource,
            attributes=span.attributes,
            links=[
                Link(
                    _context(link.trace_id, link.span_id),
                    {"kemu.relation": link.relation, "kemu.target": link.target, "kemu.pod": link.pod},
                )
                for link in span.links
            ],
            events=[Event(event.name, {"kemu.fault": event.fault}, event.time_ns) for event in span.events],
            kind=_KINDS[span.side],
            status=_UNSET if span.ok else Status(StatusCode.ERROR, span.message),
            start_time=span.start_ns,
            # Jaeger takes a span without duration for a mistake.
            end_time=max(span.end_ns, span.start_ns + 1),
            instrumentation_scope=_SCOPE,
        )


def _service(span: Span) -> dict[str, str]:
    """Who made a span. A kubelet belongs to a node whatever it tells of."""
    found = {
        "service.name": span.service, "service.instance.id": span.instance, "service.namespace": "kemu",
        "service.version": kemu.__version__,
    }  # fmt: skip
    family, _, name = span.instance.partition("/")
    return {**found, NODE: name} if family == "kubelet" else found


def _run_attributes(run: runs.Run, epoch_ns: int) -> dict[str, str | int]:
    epoch = dt.datetime.fromtimestamp(epoch_ns / SECOND_NS, dt.UTC)
    found: dict[str, str | int] = {
        "k8s.cluster.name": run.name,
        "kemu.run": run.name, "kemu.scenario": run.scenario, "kemu.seed": run.seed, "kemu.runtime": run.runtime,
        "kemu.epoch": epoch.isoformat(timespec="milliseconds"),
        # All events of a log are in one order: Jaeger need not look for clocks that disagree. Its storage API tells
        # clocks apart by host.id, its HTTP API by ip.
        "host.id": run.name,
        "ip": run.name,
    }  # fmt: skip
    if run.variant:
        found["kemu.variant"] = run.variant
    return found


class _Resource(Resource):
    """One for each actor. The encoder looks resources up by their hash for each span, and that of the SDK is JSON."""

    def __eq__(self, other: object) -> bool:
        return self is other

    def __hash__(self) -> int:
        return object.__hash__(self)


_SCOPE = InstrumentationScope("kemu", kemu.__version__)
_UNSET = Status(StatusCode.UNSET)
_KINDS: dict[Side, SpanKind] = {
    "internal": SpanKind.INTERNAL, "client": SpanKind.CLIENT, "server": SpanKind.SERVER,
}  # fmt: skip
_SAMPLED = TraceFlags(TraceFlags.SAMPLED)


def _context(trace: int, span: int) -> SpanContext:
    return SpanContext(trace, span, is_remote=False, trace_flags=_SAMPLED)
