"""A little world for the tests of the runtime: a server that echoes, and actors that talk to it."""

from __future__ import annotations

import asyncio
import contextlib
import functools
from collections.abc import Callable, Mapping
from typing import Any

import grpc

from kemu.messages.v1 import api_pb2, api_pb2_grpc
from kemu.runtime.env import SECOND_NS, ActorSpec, Env
from kemu.runtime.faults.handlers import Assignment
from kemu.runtime.faults.kinds import KINDS, Kind
from kemu.runtime.runlog.events import own

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
        self.env.log(own("echo.get", {"name": request.name, "by": dict(context.invocation_metadata())["kemu-actor"]}))
        if request.name == "slow":
            await self.env.clock.sleep(self.config.get("slow_s", 30))
        if request.name == "bug":
            raise LookupError("a bug in the servicer")
        return api_pb2.ObjectResponse(object=request.name.encode())

    async def Session(self, requests: Any, context: Any) -> None:
        try:
            while (message := await context.read()) is not EOF:
                self.env.log(own("echo.session", {"ids": [call.id for call in message.calls]}))
                await context.write(
                    api_pb2.SessionResponse(replies=[api_pb2.Reply(id=call.id) for call in message.calls])
                )
        except asyncio.CancelledError:
            self.env.log(own("echo.cancelled"))
            raise


class Patient:
    """Says when a fault that actors carry out begins and ends in it."""

    def __init__(self, env: Env, config: Mapping[str, Any]) -> None:
        self.env = env
        for kind in KINDS.values():
            if kind.carried_out_by:
                env.on_fault(kind.name, functools.partial(self.falls_ill, kind))

    async def run(self) -> None:
        self.env.ready()
        await asyncio.Event().wait()

    def falls_ill(self, kind: Kind, assignment: Assignment) -> Callable[[], object] | None:
        said = {"id": assignment.id, "what": kind.name, "parameters": dict(assignment.parameters)}
        self.env.log(own("patient.begins", said))
        assignment.hit("")
        return functools.partial(self.env.log, own("patient.ends", {"id": assignment.id})) if kind.lasts else None


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
                env.log(own("talker.gave_up", {"number": number}))
                return
        await call.done_writing()

    async def listen(self, call: Any) -> None:
        try:
            while (message := await call.read()) is not EOF:
                self.env.log(own("talker.heard", {"ids": ids(message)}))
            self.env.log(own("talker.end"))
        except grpc.aio.AioRpcError as error:
            self.env.log(own("talker.lost", {"code": error.code().name, "details": error.details()}))


class Stepper(api_pb2_grpc.ApiServicer):
    """Comes to a step in a handler (``Get``), in a task (each second) and in the callback of a timer (in between).

    Whoever dies there tries to go on: it logs, writes to its disk and answers.
    """

    def __init__(self, env: Env, config: Mapping[str, Any]) -> None:
        self.env = env
        env.serve(api_pb2_grpc.add_ApiServicer_to_server, self)

    async def run(self) -> None:
        env = self.env
        env.ready()
        await env.clock.started()
        while True:
            half_ns = env.clock.now_ns() + 500_000_000
            env.clock.call_at_ns(half_ns, self.come_to, "in-timer", background=True)
            await env.clock.sleep(1, background=True)
            self.come_to("in-task")

    async def Get(self, request: api_pb2.GetRequest, context: Any) -> api_pb2.ObjectResponse:
        try:
            self.come_to("in-handler")
        except BaseException:
            return api_pb2.ObjectResponse(object=b"last words")
        return api_pb2.ObjectResponse(object=b"passed")

    def come_to(self, step: str) -> None:
        self.env.log(own("stepper.before", {"step": step}))
        try:
            self.env.step(step)
            self.env.log(own("stepper.after", {"step": step}))
        finally:
            with contextlib.suppress(Exception):
                self.env.disk.append("log", b"x")


class Sleeper:
    """Says each ten seconds by its own clock what its clocks show."""

    def __init__(self, env: Env, config: Mapping[str, Any]) -> None:
        self.env = env

    async def run(self) -> None:
        clock = self.env.clock
        self.env.ready()
        await clock.started()
        while True:
            start_ns = clock.now_ns()
            await clock.sleep(10)
            own_ns, ahead_ns = clock.now_ns(), clock.unix_ns() - clock.epoch_unix_s * SECOND_NS
            data = {"start": start_ns, "own_s": own_ns / SECOND_NS, "wall_s": ahead_ns / SECOND_NS}
            self.env.log(own("sleeper.woke", data))


STEPPER = ActorSpec("apiserver/0", f"{__name__}:Stepper")

PATIENT = ActorSpec("apiserver/1", f"{__name__}:Patient")
ECHO = ActorSpec("apiserver/0", f"{__name__}:Echo")


def sleeper(name: str) -> ActorSpec:
    return ActorSpec(name, f"{__name__}:Sleeper")


def talker(name: str, **config: Any) -> ActorSpec:
    return ActorSpec(name, f"{__name__}:Talker", config)
