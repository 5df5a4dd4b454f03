"""Whether the gateway and what is behind it work, and how much they do: ``/livez`` and its like, ``/metrics``.

Checks have the names of kube-apiserver's, and further ones those of the API servers. What begins with the gateway, as
hooks after the start do there, has begun when it answers.
"""

from __future__ import annotations

import asyncio
import resource
from collections import Counter
from collections.abc import Callable
from typing import NamedTuple

from kemu.emulated.gateway.answers import responses
from kemu.emulated.gateway.answers.responses import Response
from kemu.emulated.gateway.backends import Backends
from kemu.emulated.gateway.requests.messages import Request
from kemu.messages.v1 import api_pb2
from kemu.runtime import memory
from kemu.runtime.metrics import texts
from kemu.runtime.metrics.families import APISERVER
from kemu.runtime.metrics.values import Values

HEALTH = ("healthz", "livez", "readyz")
_HOOKS = (
    "start-apiserver-admission-initializer", "generic-apiserver-start-informers",
    "priority-and-fairness-config-consumer", "priority-and-fairness-filter", "storage-object-count-tracker-hook",
    "start-apiextensions-informers", "start-apiextensions-controllers", "crd-informer-synced",
    "start-system-namespaces-controller", "peer-endpoint-reconciler-controller",
    "start-cluster-authentication-info-controller", "start-kube-apiserver-identity-lease-controller",
    "start-kube-apiserver-identity-lease-garbage-collector", "storage-readiness",
    "start-legacy-token-tracking-controller", "start-service-ip-repair-controllers", "rbac/bootstrap-roles",
    "scheduling/bootstrap-system-priority-classes", "priority-and-fairness-config-producer", "bootstrap-controller",
    "start-kubernetes-service-cidr-controller", "aggregator-reload-proxy-client-cert",
    "start-kube-aggregator-informers", "apiservice-status-local-available-controller",
    "apiservice-status-remote-available-controller", "apiservice-registration-controller",
    "apiservice-discovery-controller", "kube-apiserver-autoregistration", "autoregister-completion",
    "apiservice-openapi-controller", "apiservice-openapiv3-controller",
)  # fmt: skip
_STARTED = tuple(one if one == "autoregister-completion" else f"poststarthook/{one}" for one in _HOOKS)
_PATIENCE_S = 2.0
"""How long an API server may take to answer."""


async def health(request: Request, backends: Backends) -> Response | None:
    """None: there is no such check. An API server that does not answer makes the gateway unready, not dead."""
    name, _, one = request.path.strip("/").partition("/")
    if name not in HEALTH:
        return None
    found = await _checks(name, backends)
    if one:
        if one not in found:
            return responses.text(404, "404 page not found\n")
        found = {one: found[one]}
    is_well = not any(found.values())
    if is_well and "verbose" not in request.query:
        # A single check says so in passing.
        return Response(200, "text/plain; charset=utf-8", (b"ok",)) if one else responses.text(200, "ok")
    lines = [f"[-]{check} failed: {why}" if why else f"[+]{check} ok" for check, why in found.items()]
    lines.append(f"{name} check {'passed' if is_well else 'failed'}")
    return responses.text(200 if is_well else 500, "\n".join(lines) + "\n")


async def _checks(name: str, backends: Backends) -> dict[str, str]:
    """Checks of ``healthz``, ``livez`` or ``readyz``, each with what fails; empty: nothing."""
    if name != "readyz":
        return dict.fromkeys(("ping", "log", "loopback-serving-certificate", "etcd", *_STARTED), "")
    found = dict.fromkeys(("ping", "log", "etcd", "etcd-readiness", "informer-sync", *_STARTED, "shutdown"), "")
    for backend in backends:
        check = backend.name.replace("/", "-")
        try:
            async with asyncio.timeout(_PATIENCE_S):
                found[check] = await backend.failure()
        except TimeoutError:
            found[check] = f"no answer within {_PATIENCE_S:.0f} s"
        found["etcd-readiness"] = found["etcd-readiness"] or found[check]
    return found


async def indicators(backends: Backends) -> Response:
    """``/metrics/slis``: the checks as they are now."""
    lines = ["# TYPE kubernetes_healthcheck gauge"]
    for name in HEALTH:
        for check, why in (await _checks(name, backends)).items():
            lines.append(f'kubernetes_healthcheck{{name="{check}",type="{name}"}} {int(not why)}')
    return Response(200, texts.CONTENT_TYPE, ("\n".join([*lines, ""]).encode(),))


class Asked(NamedTuple):
    """What a request asks for, as metrics tell it."""

    verb: str
    group: str = ""
    version: str = ""
    resource: str = ""
    subresource: str = ""
    scope: str = ""
    """``resource``, ``namespace`` or ``cluster``; empty for paths that are no resource."""
    dry_run: str = ""
    """``All``, or empty."""


def _tell_levels(values: Values, levels: api_pb2.LevelsResponse) -> None:
    prefix = "apiserver_flowcontrol"
    for level in levels.levels:
        limits = {"nominal": level.nominal, "lower": level.least, "upper": level.most, "current": level.now}
        for kind, seats in limits.items():
            values.set(f"{prefix}_{kind}_limit_seats", "", (level.name,), seats)
        for schema in level.schemas:
            labels = schema.name, level.name
            values.set(f"{prefix}_dispatched_requests_total", "", labels, schema.dispatched)
            for reason, number in schema.rejected.items():
                values.set(f"{prefix}_rejected_requests_total", "", (*labels, reason), number)
            values.set(f"{prefix}_current_executing_requests", "", labels, schema.executing)
            values.set(f"{prefix}_current_executing_seats", "", labels, schema.executing_seats)
            values.set(f"{prefix}_current_inqueue_requests", "", labels, schema.waiting)
            values.set(f"{prefix}_current_inqueue_seats", "", labels, schema.waiting_seats)


class Metrics:
    """Requests of clients since the beginning."""

    def __init__(self) -> None:
        self._values = Values()
        self.in_flight = Counter({"readOnly": 0, "mutating": 0})

    def count(self, asked: Asked, code: int, seconds: float) -> None:
        labels = (
            "apiserver" if asked.resource else "", asked.dry_run, asked.group, asked.resource, asked.scope,
            asked.subresource, asked.verb, asked.version,
        )  # fmt: skip
        self._values.add("apiserver_request_total", "", (str(code), *labels))
        self._values.observe("apiserver_request_duration_seconds", "", labels, seconds)

    def response(self, watches: int, levels: api_pb2.LevelsResponse, text: Callable[[Values], str] | None) -> Response:
        """``levels``: the priority levels. ``text``: see :attr:`Settings.measured`."""
        values = self._values
        for kind, number in self.in_flight.items():
            values.set("apiserver_current_inflight_requests", "", (kind,), number)
        _tell_levels(values, levels)
        # The kinds of what clients watch are not kept.
        watching = ("apiserver", "", "", "", "", "WATCH", "")
        values.set("apiserver_longrunning_requests", "", watching, watches)
        used = resource.getrusage(resource.RUSAGE_SELF)
        values.set("process_cpu_seconds_total", "", (), round(used.ru_utime + used.ru_stime, 3))
        values.set("process_resident_memory_bytes", "", (), memory.resident_bytes())
        found = texts.of_component(APISERVER, values, instances=False) if text is None else text(values)
        return Response(200, texts.CONTENT_TYPE, (found.encode(),))
