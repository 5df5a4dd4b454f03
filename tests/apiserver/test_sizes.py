"""Objects that are too large: refused at once and for good, by the store's limit or by the API server's."""

from __future__ import annotations

from typing import Any

import pytest

from kemu import errors
from kemu.emulated.client import clients, retries
from kemu.runtime.env import ActorSpec
from kemu.runtime.sim.simulation import SimRuntime
from kemu.testing import sim
from tests.apiserver.apiserver_cluster import pod

SPECS = [
    ActorSpec("store", "kemu.emulated.store.server:Store", {}),
    ActorSpec("apiserver/0", "kemu.emulated.apiserver.server:ApiServer", {}),
]


def large(megabytes: float) -> Any:
    found = pod("large")
    found.spec.containers[0].env.add(name="FILLER", value="x" * int(megabytes * 1_000_000))
    return found


@pytest.mark.parametrize(
    ("megabytes", "reason", "message"),
    [
        (1.7, "Unknown", "etcdserver: request is too large"),
        (3.2, "RequestEntityTooLarge", "Request entity too large: limit is 3145728"),
    ],
)
def test_a_pod_that_is_too_large_is_refused_at_once(megabytes: float, reason: str, message: str) -> None:
    """Not as if the store were away: whoever is patient with an absent server is told, too."""

    async def main(runtime: SimRuntime) -> None:
        client = clients.Client(runtime.env("user"))
        await client.create(pod("small"))
        for request in (
            client.create(large(megabytes)),
            retries.patiently(runtime.env("patient"), lambda: client.create(large(megabytes))),
        ):
            before_ns = runtime.clock.now_ns()
            with pytest.raises(errors.ApiError) as caught:
                await request
            assert (caught.value.reason, caught.value.message) == (reason, message)
            assert runtime.clock.now_ns() - before_ns < 1e9
        patch = {"status": {"message": "x" * int(megabytes * 1_000_000)}}
        with pytest.raises(errors.ApiError, match=message):
            await client.patch("pods", "small", "default", patch, "status")
        assert [one.metadata.name for one in (await client.list("pods")).items] == ["small"]

    sim(main, 0, SPECS)
