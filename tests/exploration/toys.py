"""Toy actors whose bugs have a known depth: sources that each send a few messages to one sink."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from typing import Any

import grpc

from kemu.emulated.client.message_labels import Reader
from kemu.messages.v1 import api_pb2, api_pb2_grpc
from kemu.runtime.env import ActorSpec, Env
from kemu.runtime.runlog.events import own
from kemu.runtime.sim.simulation import SimRuntime
from kemu.runtime.sim.steering.choosers import Chooser
from kemu.runtime.sim.steering.steering import Steering

EOF: Any = grpc.aio.EOF
SINK = "apiserver/0"


class Sink(api_pb2_grpc.ApiServicer):
    """Says which message of which source has come."""

    def __init__(self, env: Env, config: Mapping[str, Any]) -> None:
        self.env = env
        env.serve(api_pb2_grpc.add_ApiServicer_to_server, self)

    async def run(self) -> None:
        self.env.ready()
        await asyncio.Event().wait()

    async def Session(self, requests: Any, context: Any) -> None:
        by = dict(context.invocation_metadata())["kemu-actor"]
        while (message := await context.read()) is not EOF:
            self.env.log(own("came", {"by": by, "number": message.calls[0].id}))


class Source:
    """Sends its messages one behind the other when the clock starts."""

    def __init__(self, env: Env, config: Mapping[str, Any]) -> None:
        self.env = env
        self.count = config["count"]
        self.stub = api_pb2_grpc.ApiStub(env.dial(SINK))

    async def run(self) -> None:
        call = self.stub.Session()
        await call.write(api_pb2.SessionRequest(calls=[api_pb2.Call(id=0)]))
        self.env.ready()
        await self.env.clock.started()
        for number in range(1, self.count + 1):
            await call.write(api_pb2.SessionRequest(calls=[api_pb2.Call(id=number)]))
        await asyncio.Event().wait()


Order = list[tuple[str, int]]
"""Source and number of each message, as they came."""


def sources(count: int) -> list[str]:
    return [f"source/{number}" for number in range(count)]


def order(threads: Sequence[str], messages: int, chooser: Chooser) -> Order:
    """Of a run in which each of these sources sends so many messages."""
    came: Order = []

    def take(time_ns: int, actor: str, kind: str, data: Mapping[str, Any]) -> None:
        if kind == "came" and data["number"]:
            came.append((data["by"], data["number"]))

    runtime = SimRuntime(1, take, {}, Steering(Reader, chooser))

    async def drive() -> None:
        await runtime.launch([ActorSpec(SINK, f"{__name__}:Sink")])
        await runtime.launch([ActorSpec(name, f"{__name__}:Source", {"count": messages}) for name in threads])
        await runtime.begin()
        await runtime.run_until(3600 * 10**9, until_idle=True)
        await runtime.shutdown()

    runtime.run(drive())
    return came
