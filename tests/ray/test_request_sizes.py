"""Requests that are too large for a connection: whoever made one is told so, and nobody repeats it for ever."""

from __future__ import annotations

import asyncio

import pytest

from kemu import errors
from kemu.emulated.client import clients, retries
from kemu.runtime.env import ActorSpec
from kemu.runtime.rpc import ends
from tests.apiserver.apiserver_cluster import pod
from tests.ray.pairs import Cells

MIB = 1 << 20
SPECS = (
    ActorSpec("store", "kemu.emulated.store.server:Store", {"fsync": "none"}),
    ActorSpec("apiserver/0", "kemu.emulated.apiserver.server:ApiServer", {}),
)


async def test_a_request_that_no_server_takes_is_refused_for_good(cells: Cells) -> None:
    for spec in SPECS:
        await cells.start(0, spec)
    await cells.configure(begun=True, speed=1)
    env = cells.cells[1].host.env("test")
    client = clients.Client(env)
    huge = pod("huge")
    huge.spec.containers[0].env.add(name="FILLER", value="x" * (ends.MAX_REQUEST_BYTES + 1))
    async with asyncio.timeout(60):
        with pytest.raises(errors.RequestEntityTooLarge, match=str(ends.MAX_REQUEST_BYTES)):
            await retries.patiently(env, lambda: client.create(huge))
        with pytest.raises(errors.RequestEntityTooLarge, match=str(ends.MAX_REQUEST_BYTES)):
            await retries.patiently(env, lambda: client.get("pods", "x" * (ends.MAX_REQUEST_BYTES + 1), "default"))
        await client.create(pod("small"))


async def test_many_large_objects_go_in_several_messages(cells: Cells) -> None:
    """Each is refused by itself; together they would break the connection each time they are sent."""
    for spec in SPECS:
        await cells.start(0, spec)
    await cells.configure(begun=True, speed=1)
    client = clients.Client(cells.cells[1].host.env("test"))
    large = [pod(f"p{number}") for number in range(30)]
    for one in large:
        one.spec.containers[0].env.add(name="FILLER", value="x" * (3 * MIB - 100_000))
    async with asyncio.timeout(60):
        found = await asyncio.gather(*(client.create(one) for one in large), return_exceptions=True)
    assert {str(error) for error in found} == {"etcdserver: request is too large"}
