"""A simulated run with one fake API server and the client under test, which belongs to the driver."""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Mapping
from types import MappingProxyType
from typing import Any

from kemu.emulated import variants
from kemu.emulated.client import clients
from kemu.runtime.env import ActorSpec
from kemu.runtime.sim.simulation import SimRuntime
from tests.client import fake_api

Log = list[tuple[int, str, str, Any]]


class World:
    """What a test of the client plays with."""

    def __init__(self, seed: int = 1, timing: Mapping[str, Any] = MappingProxyType({}), *, apart: bool = False) -> None:
        """``apart``: the client has a Watch stream for each kind."""
        self.state = fake_api.reset()
        self.log: Log = []
        self.runtime = SimRuntime(seed, lambda *event: self.log.append(event), timing)
        self.env = self.runtime.env("user")
        self.clock = self.env.clock
        self.client: clients.Client = variants.choose(clients.Client, ("k8s-59848",))(
            self.env, "apiserver/0", apart=apart
        )
        """Its informers list: a fake API server streams no lists."""

    def play(self, main: Callable[[World], Coroutine[Any, Any, Any]]) -> Any:
        async def play() -> Any:
            await self.runtime.launch([ActorSpec("apiserver/0", "tests.client.fake_api:FakeApi")])
            await self.runtime.begin()
            return await main(self)

        return self.runtime.run(play())

    def logged(self, kind: str) -> list[Any]:
        return [data for _, actor, this, data in self.log if this == kind and actor == "user"]
