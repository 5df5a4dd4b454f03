"""Several API servers behind one gateway: a connection sticks to one, and moves on when that one is away."""

from __future__ import annotations

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
