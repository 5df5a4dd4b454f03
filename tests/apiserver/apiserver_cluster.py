"""An API server on a small etcd in virtual time, and the objects that the tests put into it."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Mapping, Sequence
from typing import Any, TypeVar

import pytest

from kemu import errors
from kemu.emulated.apiserver.server import ApiServer
from kemu.emulated.client.clients import Client
from kemu.emulated.objects.conversion import convert
from kemu.messages.k8s import core_v1_pb2, policy_v1_pb2, scheduling_v1_pb2
from kemu.messages.v1 import api_pb2, api_pb2_grpc
from kemu.runtime.env import ActorSpec, Env
from kemu.runtime.sim.simulation import SimRuntime
from kemu.testing import Recorder, sim
from tests.apiserver import fake_etcd

T = TypeVar("T")

LONGEST_S = 7200
"""In virtual time: a test that waits for what never comes fails, instead of sending bookmarks for ever."""
FACTORY = "tests.apiserver.apiserver_cluster:start_server"
SERVERS: list[ApiServer] = []
"""Those that were started, newest last."""


def start_server(env: Env, config: Mapping[str, Any]) -> ApiServer:
    SERVERS.append(ApiServer(env, config))
    return SERVERS[-1]


class Cluster:
    """What a test works with."""

    def __init__(self, runtime: SimRuntime, recorder: Recorder, etcd: fake_etcd.Etcd) -> None:
        self.runtime = runtime
        self.clock = runtime.clock
        self.recorder = recorder
        self.etcd = etcd
        self.client = self.client_of(0)

    def client_of(self, server: int, name: str = "user") -> Client:
        return Client(self.runtime.env(name), f"apiserver/{server}")

    def stub(self, server: int = 0, name: str = "user") -> Any:
        return api_pb2_grpc.ApiStub(self.runtime.env(name).dial(f"apiserver/{server}"))

    def watch(self, server: int = 0, name: str = "watcher", **create: Any) -> Watch:
        return Watch(self.stub(server, name).Watch(), create)

    def refused(self) -> list[Mapping[str, Any]]:
        return self.recorder.of("api.refused")


class Watch:
    """One watch on a stream of its own."""

    def __init__(self, call: Any, create: Mapping[str, Any]) -> None:
        self.call = call
        self._create = create
        self._waiting: list[Any] = []
        self._is_started = False

    async def start(self) -> Watch:
        if not self._is_started:
            self._is_started = True
            await self.call.write(watch_request(**self._create))
        return self

    async def next(self) -> Any:
        """The next event."""
        await self.start()
        while not self._waiting:
            self._waiting = list((await self.call.read()).events)
        return self._waiting.pop(0)

    async def take(self, count: int) -> list[tuple[str, str]]:
        """The next events, as (type, name of the object)."""
        return [shown(await self.next()) for _ in range(count)]


def watch_request(
    watch_id: int = 1,
    resource: str = "pods",
    namespace: str = "",
    version: str = "",
    labels: str = "",
    fields: str = "",
    bookmarks: bool | None = None,
    match: str = "",
    initial: bool | None = None,
) -> api_pb2.WatchRequest:
    """``bookmarks`` None: where there is an initial state, as kemu's clients ask for them always."""
    request = api_pb2.WatchRequest()
    create = request.create
    create.watch_id = watch_id
    create.resource.resource, create.resource.namespace = resource, namespace
    create.label_selector, create.field_selector = labels, fields
    create.resource_version = version
    create.allow_bookmarks = version in ("", "0") if bookmarks is None else bookmarks
    create.resource_version_match = match
    if initial is not None:
        create.send_initial_events = initial
    return request


def shown(event: api_pb2.WatchEvent) -> tuple[str, str]:
    kind = api_pb2.WatchEvent.Type.Name(event.type)
    name = core_v1_pb2.Pod.FromString(event.object).metadata.name if event.object else ""
    return kind, name


def run(
    main: Callable[[Cluster], Coroutine[Any, Any, T]],
    *,
    servers: Sequence[Mapping[str, Any]] = ({},),
    seed: int = 0,
    timing: Mapping[str, Any] | None = None,
    etcd: Mapping[str, Any] | None = None,
) -> T:
    """Play ``main`` against one API server for each configuration. ``etcd``: that of the store."""
    recorder = Recorder()
    specs = [ActorSpec("store", "tests.apiserver.fake_etcd:Etcd", etcd or {})]
    specs += [ActorSpec(f"apiserver/{number}", FACTORY, config) for number, config in enumerate(servers)]

    async def drive(runtime: SimRuntime) -> T:
        async with asyncio.timeout(LONGEST_S):
            return await main(Cluster(runtime, recorder, fake_etcd.INSTANCES[-1]))

    return sim(drive, seed, specs, sink=recorder, timing=timing)


async def refusal(
    reason: type[errors.ApiError], request: Coroutine[Any, Any, Any], cluster: Cluster | None = None
) -> Any:
    """The error with which ``request`` is refused. With ``cluster``: and nothing was written."""
    before = cluster.etcd.revision if cluster is not None else 0
    with pytest.raises(reason) as caught:
        await request
    if cluster is not None:
        assert cluster.etcd.revision == before, "a refused request has changed something"
    return caught.value


# Objects ------------------------------------------------------------------------------------------------------------


def pod(name: str = "a", namespace: str = "default", **spec: Any) -> core_v1_pb2.Pod:
    """``spec``: fields of the spec, as JSON; ``labels`` and ``metadata`` go into the metadata."""
    metadata = {"name": name, "namespace": namespace, "labels": spec.pop("labels", {}), **spec.pop("metadata", {})}
    data = {"metadata": metadata, "spec": {"containers": [{"name": "main", "image": "pause:1"}], **spec}}
    return convert.from_json(core_v1_pb2.Pod, data)


def node(name: str = "n1", **allocatable: str) -> core_v1_pb2.Node:
    amounts = allocatable or {"cpu": "4", "memory": "8Gi", "pods": "110"}
    return convert.from_json(core_v1_pb2.Node, {"metadata": {"name": name}, "status": {"allocatable": amounts}})


def priority_class(name: str, value: int, **fields: Any) -> scheduling_v1_pb2.PriorityClass:
    return convert.from_json(scheduling_v1_pb2.PriorityClass, {"metadata": {"name": name}, "value": value, **fields})


def budget(name: str, labels: Mapping[str, str], **spec: Any) -> policy_v1_pb2.PodDisruptionBudget:
    data = {
        "metadata": {"name": name, "namespace": "default"},
        "spec": {"selector": {"matchLabels": dict(labels)}, **spec},
    }
    return convert.from_json(policy_v1_pb2.PodDisruptionBudget, data)
