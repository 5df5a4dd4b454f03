"""Whether the gateway and what is behind it work, and how much they do: ``/livez`` and its like, ``/metrics``."""

from __future__ import annotations

import asyncio
import resource
from collections import Counter
from typing import NamedTuple

from kemu.emulated.gateway.answers import responses
from kemu.emulated.gateway.answers.responses import Response
from kemu.emulated.gateway.backends import Backends
from kemu.emulated.gateway.requests.messages import Request

HEALTH = ("/healthz", "/livez", "/readyz")
_PATIENCE_S = 2.0
"""How long an API server may take to answer."""
_PLAIN = "text/plain; version=0.0.4; charset=utf-8"


async def health(request: Request, backends: Backends) -> Response | None:
    """None: there is no such check. An API server that does not answer makes the gateway unready, not dead."""
    name, _, one = request.path.strip("/").partition("/")
    if f"/{name}" not in HEALTH:
        return None
    found = {"ping": ""}
    if name == "readyz":
        for backend in backends:
            try:
                async with asyncio.timeout(_PATIENCE_S):
                    found[backend.name.replace("/", "-")] = await backend.failure()
            except TimeoutError:
                found[backend.name.replace("/", "-")] = f"no answer within {_PATIENCE_S:.0f} s"
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

    def response(self, watches: int) -> Response:
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
