"""A little world for the tests of the runtime: a server that echoes, and actors that talk to it."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Any

import grpc

from kemu.runtime.env import ActorSpec, Env
from kemu.v1 import api_pb2, api_pb2_grpc

EOF: Any = grpc.aio.EOF


def request(*ids: int) -> api_pb2.SessionRequest:
    return api_pb2.SessionRequest(calls=[api_pb2.Call(id=number) for number in ids])


def ids(response: api_pb2.SessionResponse) -> list[int]:
    return [reply.id for reply in response.replies]


class Echo(api_pb2_grpc.ApiServicer):
    """Get gives back the name; Session gives back the ids. Logs what it sees, also when a stream ends."""

    def __init__(self, env: Env, config: Mapping[str, Any]) -> None:
        self.env = env
        self.config = config
        env.serve(api_pb2_grpc.add_ApiServicer_to_server, self)

    async def run(self) -> None:
        self.env.ready()
        await asyncio.Event().wait()

    async def Get(self, request: api_pb2.GetRequest, context: Any) -> api_pb2.ObjectResponse:
        self.env.log("echo.get", {"name": request.name, "by": dict(context.invocation_metadata())["kemu-actor"]})
        if request.name == "slow":
            await self.env.clock.sleep(self.config.get("slow_s", 30))
        if request.name == "bug":
            raise LookupError("a bug in the servicer")
        return api_pb2.ObjectResponse(object=request.name.encode())

    async def Session(self, requests: Any, context: Any) -> None:
        try:
            while (message := await context.read()) is not EOF:
                self.env.log("echo.session", {"ids": [call.id for call in message.calls]})
                await context.write(
                    api_pb2.SessionResponse(replies=[api_pb2.Reply(id=call.id) for call in message.calls])
                )
        except asyncio.CancelledError:
            self.env.log("echo.cancelled", {})
            raise


class Talker:
    """Writes a number to Session every ``every_s``, and logs what comes back, and how the stream ended."""

    def __init__(self, env: Env, config: Mapping[str, Any]) -> None:
        self.env = env
        self.config = config
        self.stub = api_pb2_grpc.ApiStub(env.dial("apiserver/0"))

    async def run(self) -> None:
        env = self.env
        env.ready()
        await env.clock.started()
        call = self.stub.Session()
        env.spawn(self.listen(call), "listen")
        for number in range(self.config.get("count", 10)):
            await env.clock.sleep(self.config.get("every_s", 1))
            try:
                await call.write(request(number))
            except (asyncio.InvalidStateError, grpc.aio.AioRpcError):
                env.log("talker.gave_up", {"number": number})
                return
        await call.done_writing()

    async def listen(self, call: Any) -> None:
        try:
            while (message := await call.read()) is not EOF:
                self.env.log("talker.heard", {"ids": ids(message)})
            self.env.log("talker.end", {})
        except grpc.aio.AioRpcError as error:
            self.env.log("talker.lost", {"code": error.code().name, "details": error.details()})


ECHO = ActorSpec("apiserver/0", f"{__name__}:Echo")


def talker(name: str, **config: Any) -> ActorSpec:
    return ActorSpec(name, f"{__name__}:Talker", config)
