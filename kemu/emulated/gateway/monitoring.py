"""Whether the gateway and what is behind it work, and how much they do: ``/livez`` and its like, ``/metrics``.

Checks have the names of kube-apiserver's, and further ones those of the API servers. What begins with the gateway, as
hooks after the start do there, has begun when it answers.
"""

from __future__ import annotations

import asyncio
import resource
from collections import Counter
from collections.abc import Mapping
from typing import NamedTuple

from kemu.emulated.gateway.answers import responses
from kemu.emulated.gateway.answers.responses import Response
from kemu.emulated.gateway.backends import Backends
from kemu.emulated.gateway.requests.messages import Request

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
_PLAIN = "text/plain; version=0.0.4; charset=utf-8"


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
        return responses.text(200, "ok")
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
    return Response(200, _PLAIN, ("\n".join([*lines, ""]).encode(),))


class Asked(NamedTuple):
    """What a request asks for, as metrics tell it."""

    verb: str
    group: str = ""
    version: str = ""
    resource: str = ""
    subresource: str = ""


class Metrics:
    """Requests since the beginning, under names that kube-apiserver uses."""

    def __init__(self) -> None:
        self._requests: Counter[tuple[Asked, int]] = Counter()
        self._seconds: Counter[Asked] = Counter()
        self.in_flight = Counter({"readOnly": 0, "mutating": 0})

    def count(self, asked: Asked, code: int, seconds: float) -> None:
        self._requests[asked, code] += 1
        self._seconds[asked] += seconds  # type: ignore[assignment]

    def response(self, watches: int, seats: Mapping[str, int]) -> Response:
        """``seats``: those of each priority level."""
        lines = ["# TYPE apiserver_request_total counter"]
        totals: Counter[Asked] = Counter()
        for (asked, code), number in sorted(self._requests.items()):
            lines.append(f'apiserver_request_total{{{_labels(asked)},code="{code}"}} {number}')
            totals[asked] += number
        lines.append("# TYPE apiserver_request_duration_seconds summary")
        for asked, number in sorted(totals.items()):
            labels = _labels(asked)
            lines.append(f"apiserver_request_duration_seconds_sum{{{labels}}} {self._seconds[asked]:.6f}")
            lines.append(f"apiserver_request_duration_seconds_count{{{labels}}} {number}")
        lines.append("# TYPE apiserver_current_inflight_requests gauge")
        for kind, number in self.in_flight.items():
            lines.append(f'apiserver_current_inflight_requests{{request_kind="{kind}"}} {number}')
        lines.append("# TYPE apiserver_flowcontrol_nominal_limit_seats gauge")
        for level, number in sorted(seats.items()):
            lines.append(f'apiserver_flowcontrol_nominal_limit_seats{{priority_level="{level}"}} {number}')
        used = resource.getrusage(resource.RUSAGE_SELF)
        lines += [
            "# TYPE apiserver_longrunning_requests gauge",
            f'apiserver_longrunning_requests{{verb="WATCH"}} {watches}',
            "# TYPE process_cpu_seconds_total counter",
            f"process_cpu_seconds_total {used.ru_utime + used.ru_stime:.3f}",
            "# TYPE process_max_resident_memory_bytes gauge",
            f"process_max_resident_memory_bytes {used.ru_maxrss * 1024}",
        ]
        return Response(200, _PLAIN, ("\n".join([*lines, ""]).encode(),))


def _labels(asked: Asked) -> str:
    """Nothing in them comes from a client but what names a kind."""
    return ",".join(f'{name}="{value}"' for name, value in asked._asdict().items())
