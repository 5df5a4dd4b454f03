"""Probes, lifecycle hooks and readiness gates of pods.

Mirrors ``validateProbe``, ``validateHandler``, ``validateLifecycle`` and ``validateReadinessGates`` of
``pkg/apis/core/validation``.
"""

from __future__ import annotations

from collections.abc import Sequence

from kemu.emulated.objects import names
from kemu.emulated.objects.validation import checks
from kemu.emulated.objects.validation.causes import forbidden, invalid, not_supported, required
from kemu.emulated.objects.validation.metadata import check_label_key
from kemu.errors import Cause
from kemu.messages.k8s import core_v1_pb2

_KINDS = ("livenessProbe", "readinessProbe", "startupProbe")
_HANDLERS = ("exec", "httpGet", "tcpSocket", "grpc", "sleep")
_SCHEMES = ("HTTP", "HTTPS")
_NOT_NEGATIVE = ("initialDelaySeconds", "timeoutSeconds", "periodSeconds", "successThreshold", "failureThreshold")


def check_probes(container: core_v1_pb2.Container, grace_s: int, path: str, found: list[Cause]) -> None:
    """The probes and hooks of a container. ``grace_s``: of the pod."""
    if container.HasField("lifecycle"):
        for hook in ("postStart", "preStop"):
            if container.lifecycle.HasField(hook):
                _check_handler(getattr(container.lifecycle, hook), grace_s, f"{path}.lifecycle.{hook}", found)
    for kind in _KINDS:
        if container.HasField(kind):
            _check_probe(getattr(container, kind), kind, grace_s, f"{path}.{kind}", found)


def _check_probe(probe: core_v1_pb2.Probe, kind: str, grace_s: int, path: str, found: list[Cause]) -> None:
    _check_handler(probe.handler, grace_s, path, found)
    for field in _NOT_NEGATIVE:
        checks.not_negative(getattr(probe, field), f"{path}.{field}", found)
    grace = f"{path}.terminationGracePeriodSeconds"
    has_grace, own_grace_s = probe.HasField("terminationGracePeriodSeconds"), probe.terminationGracePeriodSeconds
    if has_grace and own_grace_s <= 0:
        found.append(invalid(grace, own_grace_s, "must be greater than 0"))
    if kind == "readinessProbe":
        if has_grace:
            found.append(invalid(grace, own_grace_s, "must not be set for readinessProbes"))
    elif probe.successThreshold != 1:
        found.append(invalid(f"{path}.successThreshold", probe.successThreshold, "must be 1"))


def _check_handler(
    handler: core_v1_pb2.ProbeHandler | core_v1_pb2.LifecycleHandler, grace_s: int, path: str, found: list[Cause]
) -> None:
    kinds = [one for one in _HANDLERS if one in handler.DESCRIPTOR.fields_by_name and handler.HasField(one)]
    if not kinds:
        found.append(required(path, "must specify a handler type"))
        return
    first = kinds[0]
    if first == "exec" and not handler.exec.command:
        found.append(required(f"{path}.exec.command"))
    elif first == "httpGet":
        _check_http(handler.httpGet, f"{path}.httpGet", found)
    elif first == "tcpSocket":
        checks.port_or_name(handler.tcpSocket.port, f"{path}.tcpSocket.port", found)
    elif first == "grpc" and isinstance(handler, core_v1_pb2.ProbeHandler):
        checks.port(handler.grpc.port, f"{path}.grpc.port", found)
    elif (
        first == "sleep"
        and isinstance(handler, core_v1_pb2.LifecycleHandler)
        and not 0 <= handler.sleep.seconds <= grace_s
    ):
        detail = f"must be non-negative and less than terminationGracePeriodSeconds ({grace_s})"
        found.append(invalid(f"{path}.sleep", handler.sleep.seconds, detail))
    found.extend(forbidden(f"{path}.{one}", "may not specify more than 1 handler type") for one in kinds[1:])


def _check_http(action: core_v1_pb2.HTTPGetAction, path: str, found: list[Cause]) -> None:
    if not action.path:
        found.append(required(f"{path}.path"))
    checks.port_or_name(action.port, f"{path}.port", found)
    if action.scheme not in _SCHEMES:
        found.append(not_supported(f"{path}.scheme", action.scheme, _SCHEMES))
    for header in action.httpHeaders:
        found.extend(invalid(f"{path}.httpHeaders", header.name, problem) for problem in names.http_header(header.name))


def check_readiness_gates(gates: Sequence[core_v1_pb2.PodReadinessGate], path: str, found: list[Cause]) -> None:
    for index, gate in enumerate(gates):
        check_label_key(gate.conditionType, f"{path}[{index}].conditionType", found)
