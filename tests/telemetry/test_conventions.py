"""Names of attributes, and which spans are errors (docs/traces.md)."""

from __future__ import annotations

import importlib
import inspect
import pkgutil
import re
from types import ModuleType

import opentelemetry.semconv._incubating.attributes as incubating
import opentelemetry.semconv.attributes as stable
import pytest

from kemu.lab.telemetry import otlp
from kemu.lab.telemetry.spans import FAILED, Span
from tests.telemetry.logs import KUBELET, MILLISECOND, RUN, SCHEDULER, Log, of_pod, preemption, spans_of, uid_of

FOR_JAEGER = {"ip"}
"""By which its HTTP API tells clocks apart."""


def _conventions() -> dict[str, bool]:
    """OpenTelemetry's names of attributes, and whether they are deprecated."""
    text = '^[A-Z0-9_]+: Final = \\(?\\s*"([a-z0-9_.]+)"\\s*\\)?\\n"""(.*?)"""'
    found: dict[str, bool] = {}
    for package in (incubating, stable):
        for name in _modules(package):
            source = inspect.getsource(importlib.import_module(name))
            for match in re.finditer(text, source, re.MULTILINE | re.DOTALL):
                found[match[1]] = "Deprecated" in match[2]
    return found


def _modules(package: ModuleType) -> list[str]:
    return [f"{package.__name__}.{each.name}" for each in pkgutil.iter_modules(package.__path__)]


def _all_kinds() -> list[Span]:
    """Spans of many events of a pod, each with attributes of its own."""
    log = preemption()
    log.bind(9.5, "blue", reason="Conflict")
    log.admit(11, "blue", "OutOfcpu")
    log.refused(12, "bind", "blue", SCHEDULER, "Conflict", uid_of("blue"))
    data = {"owner": "ReplicaSet default/web", "replaces": "default/a", "replaces_uid": uid_of("a")}
    log.pod(70_000, "controller/replicaset", "controller.pod", "web-1", **data)
    log.scheduled(70_000, "web-1")
    log.pod(70_005, KUBELET, "kubelet.pulled", "web-1", 2, node="node-1", image="nginx:1", container="main")
    log.pod(70_100, KUBELET, "kubelet.oom_killed", "web-1", node="node-1", container="main", limit_bytes=1 << 30)
    log.pod(70_100, KUBELET, "kubelet.exited", "web-1", 90, node="node-1", container="main", exit_code=137)
    log.pod(
        70_200, KUBELET, "kubelet.evicting", "web-1", node="node-1", signal="memory.available", grace_s=0, message="low"
    )
    log.pod(70_300, KUBELET, "kubelet.finished", "web-1", 280, node="node-1", phase="Failed", exit_code=137)
    log.add(70_300, KUBELET, "client.got", server="apiserver/0", resource="pods", namespace="default", name="c", took=1)
    return spans_of(log.events, api_calls=True)


def test_attributes_are_kemus_own_or_opentelemetrys() -> None:
    known = _conventions()
    assert known["k8s.pod.name"] is False
    used = {name for span in _all_kinds() for name in span.attributes}
    sender = otlp._Sender("localhost:1", RUN)
    used |= {name for span in _all_kinds() for name in sender._readable(span).resource.attributes}
    sender.close()
    others = {name for name in used if not name.startswith("kemu.")} - FOR_JAEGER
    assert {name for name in others if known.get(name, True)} == set(), "unknown or deprecated"
    assert {
        "k8s.namespace.name", "k8s.pod.name", "k8s.pod.uid", "k8s.node.name", "k8s.container.name",
        "k8s.replicaset.name", "k8s.pod.status.phase", "k8s.pod.status.reason",
        "k8s.container.status.last_terminated_reason", "error.type",
        "process.exit.code", "container.image.name", "rpc.method", "k8s.cluster.name", "service.version",
    } <= others  # fmt: skip


def test_every_span_names_its_pod() -> None:
    for span in _all_kinds():
        told = (span.attributes["k8s.namespace.name"], span.attributes["k8s.pod.name"], span.attributes["k8s.pod.uid"])
        assert told == (*span.pod.split("/"), span.uid)


def test_what_a_pod_lost_is_an_error_and_so_is_its_life() -> None:
    found = _all_kinds()
    failed = {
        (span.pod.removeprefix("default/"), span.name, span.attributes["error.type"]) for span in found if not span.ok
    }
    assert failed == {
        ("a", "preempted", "Preempted"), ("a", "pod", "Preempted"),
        ("b", "preempted", "Preempted"), ("b", "pod", "Preempted"),
        ("blue", "bind", "Conflict"), ("blue", "bind refused", "Conflict"), ("blue", "kubelet admission", "OutOfcpu"),
        ("web-1", "OOM kill", "OOMKilled"), ("web-1", "container", "Error"), ("web-1", "evicted", "Evicted"),
        ("web-1", "running", "Error"), ("web-1", "pod", "Failed"),
    }  # fmt: skip
    for span in found:
        assert span.attributes.get(FAILED, False) is not span.ok
        assert bool(span.message) is not span.ok


@pytest.mark.parametrize(("attempts", "expected"), [(0, "NeverBound"), (2, "Unschedulable")])
def test_a_pod_that_waits_in_vain_is_an_error_and_its_attempts_are_not(attempts: int, expected: str) -> None:
    log = Log()
    log.request(2, "create", "d", "user")
    for number in range(attempts):
        log.attempt(10 * number + 5, "d", number + 1, "unschedulable")
    found = of_pod(spans_of(log.events), "d")
    assert found["pod"].attributes["error.type"] == expected
    assert found["pod"].message == ("0/1 nodes are available: 1 Insufficient cpu." if attempts else "never bound")
    assert {name for name, span in found.items() if not span.ok} == {"pod"}


def test_a_pod_that_was_bound_after_all_is_no_error() -> None:
    log = Log()
    log.request(2, "create", "d", "user")
    log.attempt(5, "d", 1, "unschedulable")
    log.scheduled(10, "d")
    assert of_pod(spans_of(log.events), "d")["pod"].ok


def test_volumes_that_are_mounted_late_are_an_error_until_they_are_mounted() -> None:
    log = Log()
    log.scheduled(10, "d")
    log.pod(130, KUBELET, "kubelet.mount_timeout", "d", volumes=["data"])
    log.pod(150, KUBELET, "kubelet.mounted", "d", took=130, volumes=["data"])
    late, mounted = (span for span in spans_of(log.events) if span.name == "mount")
    assert (late.ok, late.message) == (False, "not mounted in time: data")
    assert (mounted.ok, mounted.end_ns - mounted.start_ns) == (True, 130 * MILLISECOND)
