"""A little world for the tests of the ray runtime. The actors' processes import it, too."""

from __future__ import annotations

import asyncio
import contextlib
import os
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import grpc
import grpc.aio

from kemu.messages.etcd import rpc_pb2, rpc_pb2_grpc
from kemu.messages.v1 import api_pb2, api_pb2_grpc
from kemu.runtime.env import ActorSpec, Env
from kemu.runtime.ray.driver.plans import DRIVER_CELL, CellPlan
from kemu.runtime.runlog.events import own

EOF: Any = grpc.aio.EOF

PLAN = (
    CellPlan("one", ("echo/*",)),
    CellPlan("two", ("talker/*", "keeper/*")),
    CellPlan("alone", ("lonely/*",), size=1, eager=False),
    CellPlan(DRIVER_CELL, ("*",)),
)


class Events(list[tuple[int, str, str, dict[str, Any]]]):
    """A sink, and what to ask of it."""

    def __call__(self, time_ns: int, actor: str, kind: str, data: Mapping[str, Any]) -> None:
        self.append((time_ns, actor, kind, dict(data)))

    def of(self, kind: str, actor: str | None = None) -> list[dict[str, Any]]:
        return [data for _, who, what, data in self if what == kind and actor in (None, who)]


def spec(name: str, kind: str, **config: Any) -> ActorSpec:
    return ActorSpec(name, f"tests.ray.world:{kind}", config)


CODE = tuple(
    f"tests.ray.world:{kind}"
    for kind in ("Echo", "Keeper", "Silent", "Slow", "Talker", "Streamer", "Failing", "Sleeper")
)


class Echo(api_pb2_grpc.ApiServicer):
    """Get tells the pid of the server and who asked; Session gives back the ids."""

    def __init__(self, env: Env, config: Mapping[str, Any]) -> None:
        self.env = env
        self.config = config
        env.serve(api_pb2_grpc.add_ApiServicer_to_server, self)

    async def run(self) -> None:
        self.env.ready()
        await asyncio.Event().wait()

    async def Get(self, request: api_pb2.GetRequest, context: Any) -> api_pb2.ObjectResponse:
        self.env.log(own("echo.get", {"name": request.name}))
        if request.name == "slow":
            try:
                await self.env.clock.sleep(3600)
            finally:
                self.env.log(own("echo.over"))
        if request.name == "late":
            await self.env.clock.sleep(self.config["late_s"])
        if request.name == "refused":
            await self.env.clock.sleep(self.config["late_s"])
            await context.abort(grpc.StatusCode.NOT_FOUND, "no such thing")
        if request.name == "bug":
            raise LookupError("a bug in the servicer")
        caller = dict(context.invocation_metadata()).get("kemu-actor", "")
        return api_pb2.ObjectResponse(object=f"{os.getpid()} {self.env.name} {caller} {request.name}".encode())

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
        finally:
            # Of a caller that has gone away, gRPC tells by a cancellation or by the end of the stream, as it happens.
            self.env.log(own("echo.over"))


class Keeper(rpc_pb2_grpc.KVServicer):
    """A store of one file: Put appends a line and syncs, Range gives all lines."""

    def __init__(self, env: Env, config: Mapping[str, Any]) -> None:
        self.env = env
        self.config = config
        env.serve(rpc_pb2_grpc.add_KVServicer_to_server, self)

    async def run(self) -> None:
        lines = self._content().count(b"\n")
        self.env.log(own("keeper.recovered", {"lines": lines, "pid": os.getpid(), "chance": self.env.random.random()}))
        self.env.ready()
        try:
            await asyncio.Event().wait()
        finally:
            # Only an orderly stop may leave this behind.
            self.env.disk.append("good-bye", b"good-bye\n")

    def _content(self) -> bytes:
        return self.env.disk.read("lines") if "lines" in self.env.disk.list() else b""

    async def Put(self, request: rpc_pb2.PutRequest, context: Any) -> rpc_pb2.PutResponse:
        self.env.disk.append("lines", request.key + b"\n")
        self.env.disk.fsync("lines")
        self.env.log(own("keeper.put", {"key": request.key}))
        return rpc_pb2.PutResponse()

    async def Range(self, request: rpc_pb2.RangeRequest, context: Any) -> rpc_pb2.RangeResponse:
        return rpc_pb2.RangeResponse(kvs=[{"key": key} for key in self._content().splitlines()])


class Silent(api_pb2_grpc.ApiServicer):
    """Reads what comes on a Session, and never answers."""

    def __init__(self, env: Env, config: Mapping[str, Any]) -> None:
        self.env = env
        env.serve(api_pb2_grpc.add_ApiServicer_to_server, self)

    async def run(self) -> None:
        self.env.ready()
        await asyncio.Event().wait()

    async def Session(self, requests: Any, context: Any) -> None:
        while await context.read() is not EOF:
            self.env.log(own("silent.heard"))


class Slow:
    """Takes its time, in real seconds, to be ready: one, or until the file ``gate`` is there."""

    def __init__(self, env: Env, config: Mapping[str, Any]) -> None:
        self.env = env
        self.gate = config.get("gate")

    async def run(self) -> None:
        self.env.log(own("slow.begun", {"pid": os.getpid()}))
        if self.gate is None:
            await asyncio.sleep(1)
        else:
            _append(f"{self.gate}.begun", f"{self.env.name} {os.getpid()}\n")
            while not Path(self.gate).exists():  # noqa: ASYNC110, ASYNC240
                await asyncio.sleep(0.02)
        self.env.ready()


def _append(path: str, line: str) -> None:
    with open(path, "a") as file:
        file.write(line)


class Talker:
    """Asks ``to`` for ``name`` every ``every_s`` once the clock runs, and logs the answers and errors."""

    def __init__(self, env: Env, config: Mapping[str, Any]) -> None:
        self.env = env
        self.config = config
        self.stub = api_pb2_grpc.ApiStub(env.dial(config["to"]))

    async def run(self) -> None:
        env = self.env
        env.ready()
        await env.clock.started()
        for number in range(self.config.get("count", 1_000_000)):
            try:
                response = await self.stub.Get(api_pb2.GetRequest(name=str(number)))
                env.log(own("talker.answer", {"number": number, "text": response.object.decode()}))
            except grpc.aio.AioRpcError as error:
                env.log(own("talker.error", {"number": number, "code": error.code().name, "details": error.details()}))
            await env.clock.sleep(self.config.get("every_s", 0.1))


class Streamer:
    """Keeps a Session to ``to`` open, sends a number every ``every_s``, opens it again when it breaks."""

    def __init__(self, env: Env, config: Mapping[str, Any]) -> None:
        self.env = env
        self.config = config
        self.stub = api_pb2_grpc.ApiStub(env.dial(config["to"]))
        self.number = 0

    async def run(self) -> None:
        self.env.ready()
        await self.env.clock.started()
        while True:
            try:
                await self.session()
            except (grpc.aio.AioRpcError, asyncio.InvalidStateError) as error:
                self.env.log(own("streamer.broken", {"why": str(error)}))
            await self.env.clock.sleep(self.config.get("retry_s", 0.2))

    async def session(self) -> None:
        call = self.stub.Session()
        while True:
            self.number += 1
            await call.write(api_pb2.SessionRequest(calls=[api_pb2.Call(id=self.number)]))
            response = await call.read()
            if response is EOF:
                return
            self.env.log(own("streamer.answer", {"ids": [reply.id for reply in response.replies]}))
            await self.env.clock.sleep(self.config.get("every_s", 0.05))


class Failing:
    """Raises: at ``when`` = factory, run, task, timer, stop."""

    def __init__(self, env: Env, config: Mapping[str, Any]) -> None:
        self.env = env
        self.when = config["when"]
        if self.when == "factory":
            raise LookupError("in the factory")

    async def run(self) -> None:
        if self.when == "run":
            raise LookupError("in run()")
        self.env.ready()
        if self.when == "task":
            self.env.spawn(self.task(), "task")
        if self.when == "timer":
            self.env.clock.call_at_ns(1_000_000, self.timer)
        try:
            await asyncio.Event().wait()
        finally:
            if self.when == "stop":
                raise LookupError("in the clean-up")

    async def task(self) -> None:
        await self.env.clock.sleep(0.001)
        raise LookupError("in a task")

    def timer(self) -> None:
        raise LookupError("in a timer")


class Sleeper:
    """Logs when it wakes, every ``every_s``; ``background`` or not."""

    def __init__(self, env: Env, config: Mapping[str, Any]) -> None:
        self.env = env
        self.config = config

    async def run(self) -> None:
        self.env.ready()
        self.env.log(own("sleeper.early"))
        for _ in range(self.config.get("count", 1)):
            await self.env.clock.sleep(self.config["every_s"], background=self.config.get("background", False))
            self.env.log(own("sleeper.woke", {"unix_s": self.env.clock.epoch_unix_s}))


@contextlib.contextmanager
def nothing_left(pids: list[int]) -> Iterator[None]:
    """Fill the list within; at the end none of these processes may be there."""
    yield
    left = [told(pid) for pid in pids if alive(pid)]
    assert pids, "no process was watched"
    assert not left, f"processes left behind: {left}"


def alive(pid: int) -> bool:
    """Zombies do not count."""
    try:
        with open(f"/proc/{pid}/stat") as stat:
            return stat.read().rpartition(")")[2].split()[0] != "Z"
    except (FileNotFoundError, ProcessLookupError):
        return False


def told(pid: int) -> str:
    """The process, what it is doing and what it is."""
    folder = Path(f"/proc/{pid}")
    with contextlib.suppress(OSError):
        command = (folder / "cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
        stat = (folder / "stat").read_text().rpartition(")")[2].split()
        return f"{pid} ({command.strip()}; state {stat[0]}, parent {stat[1]})"
    return f"{pid}, which has ended since"


async def until(condition: Any, *, timeout_s: float = 60.0) -> None:
    """Wait, in real time, until the condition holds."""
    async with asyncio.timeout(timeout_s):
        while not condition():  # noqa: ASYNC110
            await asyncio.sleep(0.02)


def until_true(condition: Any, *, timeout_s: float = 60.0) -> None:
    """The same, without an event loop."""
    deadline = time.monotonic() + timeout_s
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.02)


def shared_memory() -> set[str]:
    return set(os.listdir("/dev/shm")) if os.path.isdir("/dev/shm") else set()


def no_more_shared_memory(before: set[str]) -> None:
    """Nothing that stays has come since; others on this machine open and close theirs meanwhile."""
    until_true(lambda: shared_memory() <= before, timeout_s=10)
