"""A collector in this process: keeps what it is sent, or fails as it is told to."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from concurrent import futures
from contextlib import contextmanager
from typing import Any

import grpc
from opentelemetry.proto.collector.trace.v1 import trace_service_pb2, trace_service_pb2_grpc


class Collector(trace_service_pb2_grpc.TraceServiceServicer):
    def __init__(self) -> None:
        self.spans: dict[tuple[str, str], Any] = {}
        """By trace and span id, in hexadecimal."""
        self.services: dict[str, set[str]] = {}
        """Instances by service."""
        self.resources: dict[str, dict[str, Any]] = {}
        """By service: what the latest resource says."""
        self.received = 0
        self.requests = 0
        self.failures: list[grpc.StatusCode] = []
        """For the next requests."""
        self.reject = 0
        """Spans of each request that are refused."""
        self.stalled = threading.Event()
        self.stalled.set()
        self.endpoint = ""

    def Export(self, request: Any, context: Any) -> Any:
        self.requests += 1
        self.stalled.wait(20)
        if self.failures:
            context.abort(self.failures.pop(0), "as told")
        for resource_spans in request.resource_spans:
            values = {each.key: each.value.string_value for each in resource_spans.resource.attributes}
            self.resources[values["service.name"]] = {
                each.key: each.value.string_value or each.value.int_value for each in resource_spans.resource.attributes
            }
            self.services.setdefault(values["service.name"], set()).add(values["service.instance.id"])
            for scope_spans in resource_spans.scope_spans:
                for span in scope_spans.spans:
                    self.received += 1
                    self.spans[span.trace_id.hex(), span.span_id.hex()] = span
        partial = trace_service_pb2.ExportTracePartialSuccess(
            rejected_spans=self.reject, error_message="too many" if self.reject else ""
        )
        return trace_service_pb2.ExportTraceServiceResponse(partial_success=partial)


@contextmanager
def collector() -> Iterator[Collector]:
    here = Collector()
    server = grpc.server(futures.ThreadPoolExecutor(2))
    trace_service_pb2_grpc.add_TraceServiceServicer_to_server(here, server)
    here.endpoint = f"127.0.0.1:{server.add_insecure_port('127.0.0.1:0')}"
    server.start()
    try:
        yield here
    finally:
        here.stalled.set()
        server.stop(0).wait()
