"""What one pod costs a cluster of `kemu up` whose clients make and bind it, counted and not timed.

A client creates pods, and another one binds each and writes its event, as kube-scheduler does; both watch all pods, in
JSON and in protobuf. Kubelets run them, with all their events. Everything is in sim, behind the gateway: no sockets, no
HTTP, no TLS. Figures as in :mod:`kemu.lab.bench.counters`, from the first create until the pods have run for a
while; they are the same on every machine with the same version of Python.
"""

from __future__ import annotations

import asyncio
import cProfile
import json
import sys
from collections.abc import MutableMapping
from typing import Any

from kemu.emulated.client import clients
from kemu.emulated.gateway.app import Gateway
from kemu.emulated.gateway.authentication.authenticators import Authenticator
from kemu.emulated.gateway.requests import envelopes, negotiation
from kemu.emulated.gateway.settings import Settings
from kemu.emulated.objects import identities
from kemu.errors import KemuError
from kemu.lab.bench.counters import Counts
from kemu.lab.scenario.playing import plans, plays
from kemu.lab.scenario.playing.heartbeats import Heartbeats
from kemu.lab.scenario.scenarios import Scenario
from kemu.lab.up import bootstrap_objects, clusters
from kemu.messages.k8s import core_v1_pb2, events_v1_pb2
from kemu.runtime.env import SECOND_NS, Clock
from kemu.runtime.runlog.events import Transaction
from kemu.runtime.sim.simulation import SimRuntime

FIGURES = ("functions", "parses", "serialisations", "futures", "tasks", "steps", "messages", "transactions", "frames")
_REST_S = 2
"""After the last pod runs: statuses and events that are still to be written."""
_EVERY_S = 0.005
"""From one pod to the next: 200 a second."""
_TOKEN = "bench"
_PODS = "/api/v1/namespaces/default/pods"
_EVENTS = "/apis/events.k8s.io/v1/namespaces/default/events"


class _Client:
    """A program outside: its requests, as ASGI has them."""

    def __init__(self, gateway: Gateway, agent: str, media: str, port: int) -> None:
        self._gateway = gateway
        self._peer = "127.0.0.1", port
        self._headers = [
            (b"host", b"127.0.0.1:6443"),
            (b"user-agent", agent.encode()),
            (b"accept", f"{media},application/json".encode()),
            (b"accept-encoding", b"gzip"),
            (b"authorization", f"Bearer {_TOKEN}".encode()),
        ]
        self._media = media.encode()

    async def post(self, path: str, body: bytes) -> None:
        """Raises KemuError when the server refuses."""
        bodies = [{"type": "http.request", "body": body, "more_body": False}]
        status, found = 0, b""

        async def receive() -> MutableMapping[str, Any]:
            return bodies.pop()

        async def send(message: MutableMapping[str, Any]) -> None:
            nonlocal status, found
            status = message.get("status", status)
            found += message.get("body", b"")

        length = b"content-length", str(len(body)).encode()
        await self._gateway(self._scope("POST", path, b"", ((b"content-type", self._media), length)), receive, send)
        if status >= 300:
            raise KemuError(f"POST {path}: {status} {found[:500].decode(errors='replace')}")

    async def watch(self, path: str, query: bytes) -> None:
        """Takes what comes, for good."""

        async def receive() -> MutableMapping[str, Any]:
            return await asyncio.get_running_loop().create_future()  # type: ignore[no-any-return]

        async def send(message: MutableMapping[str, Any]) -> None:
            if message.get("status", 200) != 200:
                raise KemuError(f"GET {path}: {message['status']}")

        await self._gateway(self._scope("GET", path, query, ()), receive, send)

    def _scope(self, method: str, path: str, query: bytes, more: tuple[tuple[bytes, bytes], ...]) -> dict[str, Any]:
        return {
            "type": "http",
            "scheme": "https",
            "method": method,
            "path": path,
            "query_string": query,
            "headers": [*self._headers, *more],
            "client": self._peer,
        }


def _pod(name: str) -> dict[str, Any]:
    requests = {"cpu": "100m", "memory": "64Mi"}
    spec = {"containers": [{"name": "main", "image": "pause:1", "resources": {"requests": requests}}]}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name}, "spec": spec}


def _binding(name: str, node: str) -> bytes:
    binding = core_v1_pb2.Binding()
    binding.metadata.name, binding.metadata.namespace = name, "default"
    binding.target.kind, binding.target.name = "Node", node
    return envelopes.pack("v1", "Binding", binding.SerializeToString(deterministic=True))


def _event(name: str, node: str) -> bytes:
    """As the broadcaster of kube-scheduler writes it."""
    event = events_v1_pb2.Event(
        reportingController="default-scheduler",
        reportingInstance="default-scheduler-host",
        action="Binding",
        reason="Scheduled",
        note=f"Successfully assigned default/{name} to {node}",
        type="Normal",
    )
    event.metadata.name, event.metadata.namespace = f"{name}.18a2f3c4d5e6f708", "default"
    event.eventTime.seconds = 1_767_225_600
    regarding = event.regarding
    regarding.kind, regarding.namespace, regarding.name, regarding.apiVersion = "Pod", "default", name, "v1"
    return envelopes.pack("events.k8s.io/v1", "Event", event.SerializeToString(deterministic=True))


async def _load(gateway: Gateway, clock: Clock, nodes: list[str], pods: int) -> None:
    maker = _Client(gateway, "bench/1.0", negotiation.JSON, 1)
    scheduler = _Client(gateway, "kube-scheduler/v1.36.3 (linux/amd64) kubernetes/0/scheduler", negotiation.PROTOBUF, 2)
    for number in range(pods):
        await maker.post(_PODS, json.dumps(_pod(f"pod-{number}")).encode())
    everywhere = _PODS.replace("/namespaces/default", "")
    watching = [asyncio.ensure_future(one.watch(everywhere, b"watch=true")) for one in (maker, scheduler)]
    for number in range(pods):
        name, node = f"pod-{number}", nodes[number % len(nodes)]
        await scheduler.post(f"{_PODS}/{name}/binding", _binding(name, node))
        await scheduler.post(_EVENTS, _event(name, node))
        await clock.sleep(_EVERY_S)
    for one in watching:
        if one.done():
            one.result()


async def _drive(runtime: SimRuntime, scenario: Scenario, counts: Counts, profile: cProfile.Profile | None) -> None:
    env = runtime.env("user/up")
    client = clients.Client(env, plans.apiservers_of(scenario, 0))
    bootstrap = bootstrap_objects.Bootstrap(env, client, "an authority", clusters.furnishings(scenario))
    await plays.launch(runtime, clusters.with_accounts(scenario), Heartbeats(scenario, "sim"), None, bootstrap.furnish)
    env = runtime.env("gateway")
    settings = Settings(authenticator=Authenticator({_TOKEN: identities.ADMINISTRATOR}))
    gateway = Gateway(env.dial, env.clock, settings)
    beginning = asyncio.ensure_future(bootstrap.begin("127.0.0.1", 6443))
    await runtime.begin()
    await runtime.run_until(5 * SECOND_NS)
    await beginning
    counts.counts.clear()
    counts.kinds.clear()
    counts.count_futures(runtime.loop)
    steps = runtime.loop.steps
    before = sys.getprofile()
    if profile is None:
        sys.setprofile(counts.profile)
    else:
        profile.enable()
    try:
        pods = counts.left
        env.spawn(_load(gateway, env.clock, [node.name for node in scenario.nodes], pods), "clients")
        ended = await runtime.run_until(3600 * SECOND_NS, stop=counts.stop)
        if ended != "stopped":
            raise KemuError(f"{counts.left} of {pods} pods do not run")
        await runtime.run_until(runtime.clock.now_ns() + _REST_S * SECOND_NS)
    finally:
        if profile is None:
            sys.setprofile(before)
        else:
            profile.disable()
    counts.counts["steps"] = runtime.loop.steps - steps
    counts.counts["transactions"] = counts.kinds[Transaction.KIND]
    counts.counts["frames"] = counts.kinds.total()
    gateway.close()
    await runtime.shutdown()


def work(controllers: bool, nodes: int, pods: int, profile: cProfile.Profile | None = None) -> dict[str, Any]:
    """For each pod. ``controllers``: those that every cluster of `kemu up` has, or none."""
    without: dict[str, Any] = {"schedulers": []} if controllers else {"schedulers": [], "controllers": []}
    scenario = clusters.completed(clusters.of_nodes(nodes, without))
    counts = Counts(pods)
    runtime = SimRuntime(1, counts)
    runtime.run(_drive(runtime, scenario, counts, profile))
    return {figure: round(counts.counts[figure] / pods, 2) for figure in FIGURES}
