"""Several API servers behind one gateway: a connection sticks to one, and moves on when that one is away."""

from __future__ import annotations

import asyncio
from types import SimpleNamespace

from kemu.emulated.gateway import custom
from kemu.emulated.gateway.requests import paths
from kemu.messages.k8s import apiextensions_v1_pb2
from kemu.messages.v1 import api_pb2
from kemu.runtime.env import SECOND_NS
from tests.gateway import gateway_cluster
from tests.gateway.gateway_cluster import Cluster, pod

PODS = "/api/v1/namespaces/default/pods"


async def names(cluster: Cluster, connection: int, path: str = "") -> list[str]:
    """Of the pods in the watch cache of whatever answers this connection."""
    answer = await cluster.connection(connection).get(f"{path}{PODS}?resourceVersion=0")
    assert answer.status_code == 200, answer.text
    return [one["metadata"]["name"] for one in answer.json()["items"]]


def test_connections_are_dealt_out_and_read_what_their_server_knows() -> None:
    async def main(cluster: Cluster) -> None:
        await cluster.connection(1).post(PODS, json=pod())
        assert await names(cluster, 1) == ["a"]
        # The second API server hears of news an hour late.
        assert await names(cluster, 2) == []
        assert await names(cluster, 2) == []
        assert await names(cluster, 1) == ["a"]
        assert await names(cluster, 2, "/servers/0") == ["a"]
        assert await names(cluster, 1, "/servers/1") == []
        assert (await cluster.http.get(f"/servers/2{PODS}")).status_code == 404

    gateway_cluster.run(main, servers=({}, {"cache_lag_s": 3600.0}))


def test_a_connection_moves_on_when_its_server_is_away() -> None:
    async def main(cluster: Cluster) -> None:
        await names(cluster, 1)
        await names(cluster, 2)
        cluster.host.crash("apiserver/1")
        refused = await cluster.connection(2).get(PODS)
        assert (refused.status_code, refused.json()["reason"]) == (503, "ServiceUnavailable")
        assert await names(cluster, 2) == []

    gateway_cluster.run(main, servers=({}, {}))


def test_a_request_waits_no_longer_than_its_client() -> None:
    async def main(cluster: Cluster) -> None:
        late = await cluster.http.get(f"{PODS}?timeout=200ms")
        assert (late.status_code, late.json()["reason"]) == (504, "Timeout")
        assert (await cluster.http.get(f"{PODS}?timeout=30s")).status_code == 200
        assert (await cluster.http.get(f"{PODS}?timeout=soon")).status_code == 400

    gateway_cluster.run(main, servers=({"service_time": 1.0},))


def test_a_definition_that_serves_its_kind_is_asked_for_once_in_a_while() -> None:
    """But for some time after a client has written any, and while it does not serve."""
    now_ns = 100 * SECOND_NS
    definition = apiextensions_v1_pb2.CustomResourceDefinition()
    definition.metadata.name = "widgets.example.com"
    definition.spec.group = "example.com"
    definition.spec.versions.add(name="v1", served=True)
    condition = definition.status.conditions.add(type="NamesAccepted", status="True")
    asked = 0

    class Asked:
        name = "apiserver-0"

        async def call(self, *_: object) -> api_pb2.ListResponse:
            nonlocal asked
            asked += 1
            return api_pb2.ListResponse(items=[definition.SerializeToString()])

    kinds = custom.Kinds(SimpleNamespace(now_ns=lambda: now_ns))  # type: ignore[arg-type]
    path = paths.parse("/apis/example.com/v1/widgets")

    def times(count: int) -> int:
        before = asked
        for _ in range(count):
            assert path is not None
            assert asyncio.run(kinds.find(Asked(), path)) is not None  # type: ignore[arg-type]
        return asked - before

    assert times(3) == 3, "its names are accepted, but it is not established"
    condition.type = "Established"
    assert times(3) == 1
    now_ns += SECOND_NS
    assert times(3) == 1
    kinds.changed()
    assert times(3) == 3
    now_ns += 2 * SECOND_NS
    assert times(3) == 1
    now_ns += SECOND_NS
    definition.metadata.deletionTimestamp.seconds = 1
    assert times(3) == 3
