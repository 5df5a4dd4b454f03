"""Each test runs against the embedded store and against a real etcd, both over real gRPC."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator

import grpc
import pytest

from tests.store import store_env
from tests.store.conformance import etcd_process
from tests.store.conformance.etcd_client import Etcd

NO_ETCD = "etcd is not installed (Debian: apt-get install etcd-server), or KEMU_ETCD does not name it"


@pytest.fixture(scope="session")
def real_etcd(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    if etcd_process.binary() is None:
        pytest.skip(NO_ETCD)
    with etcd_process.running(tmp_path_factory.mktemp("etcd")) as target:
        yield target


@pytest.fixture
async def embedded_store() -> AsyncIterator[str]:
    server = grpc.aio.server()
    port = server.add_insecure_port("127.0.0.1:0")
    env = store_env.StoreEnv(server=server)
    await store_env.start(env)
    await server.start()
    yield f"127.0.0.1:{port}"
    await server.stop(None)
    await env.close()


@pytest.fixture(params=["embedded", "etcd"])
def server_kind(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def server_target(server_kind: str, request: pytest.FixtureRequest) -> str:
    return str(request.getfixturevalue("embedded_store" if server_kind == "embedded" else "real_etcd"))


@pytest.fixture
async def etcd(server_kind: str, server_target: str, request: pytest.FixtureRequest) -> AsyncIterator[Etcd]:
    async with grpc.aio.insecure_channel(server_target) as channel:
        client = Etcd(channel, server_kind, f"/{request.node.name}/".encode())
        yield client
        for watch in client.watches:
            await watch.close()
