"""The broker: starts or joins Ray, and does with it what drivers ask for.

One that a driver starts for itself has an inherited socket, and ends with that connection. That of ``kemu ray up``
listens on a socket of its own until it is told to end. What a driver has started ends when its connection does, however
the driver died. Requests are ``[number, method, arguments]``, answers ``[number, error, result]``; number 0 is what the
broker tells by itself. ``driver.brokers`` is the other end.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import importlib
import os
import shutil
import signal
import socket
import struct
import sys
import threading
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from kemu.runtime.ray import frames
from kemu.runtime.ray.broker import nodes, pings

SOCKET = "broker.socket"
"""In the temporary folder, of a broker that listens."""

STARTS = 3
"""How often Ray is started before giving up: it waits for its own processes for a fixed time, which on a busy machine
may be too short. The last time with all of its processes, should this Ray not like to be without."""

_PING_S = 1.0
_PINGS_LOST = 3
"""A GCS that has gone so often in a row is lost. One that is silent may have been stopped: Ray gives it a minute."""
_WATCH_S = 0.2
_RETRY_S = 0.05
_LEAVING_S = 5.0


class Broker:
    """Broker of one cluster: a local one of its own, or one that was there before."""

    def __init__(self, options: argparse.Namespace, loop: asyncio.AbstractEventLoop) -> None:
        self._options = options
        self._loop = loop
        self.address = options.address or ""
        self._node: nodes.Node | None = None
        self.started: asyncio.Future[dict[str, Any]] = loop.create_future()
        self.lost = ""
        self.ended = asyncio.Event()
        self._connections: dict[Connection, None] = {}
        # Calls of Ray that may block go one after the other, beside the loop: it has to stay able to end everything.
        self.calls = ThreadPoolExecutor(1, "ray")
        self.goes_on = options.listen or options.address is not None
        """The cluster outlives its connections."""
        self.patience_s = None if options.listen else _LEAVING_S
        """For what a connection leaves behind to end; the broker of one driver ends soon after it."""
        # Ray's processes end with the thread that started them.
        threading.Thread(target=self._live, name="ray node", daemon=True).start()

    def _live(self) -> None:
        try:
            self._start()
        except BaseException as error:
            self._tell(self._set_started, error)
            return
        self._tell(self._set_started, None)
        misses = 0
        waiter = threading.Event()
        while not self.lost:
            waiter.wait(_WATCH_S if self._node is not None else _PING_S)
            why = self._node.dead() if self._node is not None else ""
            if not why and self._node is None:
                misses = misses + 1 if pings.is_gone(self.address) else 0
                if misses == _PINGS_LOST:
                    why = f"the GCS of Ray at {self.address} is gone"
            if why:
                self._tell(self._lose, why)
                break
        waiter.clear()
        waiter.wait()

    def _tell(self, function: Callable[..., None], *arguments: Any) -> None:
        with contextlib.suppress(RuntimeError):  # the loop is over
            self._loop.call_soon_threadsafe(function, *arguments)

    def _start(self) -> None:
        if self._options.address is None:
            self._node = start_node(self._options.temporary, self._options.workers)
            self.address = self._node.address
        import ray

        ray.init(
            address=self.address,
            configure_logging=False,
            log_to_driver=False,
            # What is importable here must be so in the cells.
            job_config=ray.job_config.JobConfig(_py_driver_sys_path=list(sys.path)),
        )
        self.ray: Any = ray
        if self._node is None:
            self.address = ray.get_runtime_context().gcs_address

    def _set_started(self, error: BaseException | None) -> None:
        if error is None:
            self.started.set_result({"address": self.address, "pid": os.getpid()})
            if self._options.listen:
                self.warm()
        else:
            self.started.set_exception(error)
            self.started.exception()

    def _lose(self, why: str) -> None:
        self.lost = why
        for connection in list(self._connections):
            connection.send([0, None, why])

    # Workers that wait

    def warm(self) -> None:
        """Have as many processes ready as there are CPUs; of our own cluster only."""
        if self._node is not None and not self.lost:
            self.calls.submit(self._warm, self._node)

    def _warm(self, node: nodes.Node) -> None:
        missing = self._options.workers - node.idle()
        if missing > 0:
            with contextlib.suppress(Exception):  # without them the next run starts later, no more
                node.prestart(missing, bytes.fromhex(self.ray.get_runtime_context().get_job_id()))

    # Connections

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """One connection, to its end."""
        connection = Connection(self, writer)
        self._connections[connection] = None
        try:
            await connection.read(reader)
        finally:
            del self._connections[connection]
            await connection.close()

    async def end(self) -> None:
        """Leave Ray; end everything that was started here."""
        if self._node is None and self.started.done() and not self.lost:
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self._loop.run_in_executor(self.calls, self.ray.shutdown), _LEAVING_S)


def start_node(temporary: str, workers: int) -> nodes.Node:
    """Raises what Ray raised the last time."""
    attempt = 0
    while True:
        folder = os.path.join(temporary, str(attempt))
        os.mkdir(folder)
        attempt += 1
        try:
            return nodes.Node(folder, cpus=workers, lean=attempt < STARTS)
        except Exception:
            end_children()
            if attempt == STARTS:
                raise


class Connection:
    """A driver, and what it has asked for."""

    def __init__(self, broker: Broker, writer: asyncio.StreamWriter) -> None:
        self._broker = broker
        self._writer = writer
        self._actors: dict[int, asyncio.Future[Any]] = {}
        self._calls: dict[int, asyncio.Future[Any]] = {}
        self._remotes: dict[bool, Any] = {}
        self._has_used = False
        """Workers."""
        self._tasks: dict[asyncio.Task[None], None] = {}
        self._methods: Mapping[str, Callable[..., Any]] = {
            "start": self._start,
            "nodes": self._nodes,
            "place": self._place,
            "find": self._find,
            "kill": self._kill,
            "warm": self._warm,
            "submit": self._submit,
            "piece": self._piece,
            "cancel": self._cancel,
            "end": self._end,
        }

    def send(self, message: object) -> None:
        if not self._writer.is_closing():
            self._writer.write(frames.packed(message))

    async def read(self, reader: asyncio.StreamReader) -> None:
        with contextlib.suppress(asyncio.IncompleteReadError, ConnectionError):
            while True:
                (length,) = frames.LENGTH.unpack(await reader.readexactly(frames.LENGTH.size))
                number, method, arguments = frames.unpacked(await reader.readexactly(length))
                task = asyncio.create_task(self._answer(number, self._methods[method], arguments))
                self._tasks[task] = None
                task.add_done_callback(lambda done: self._tasks.pop(done, None))

    async def _answer(self, number: int, method: Callable[..., Any], arguments: list[Any]) -> None:
        try:
            result, error = await method(*arguments), None
        except Exception as caught:
            result, error = None, [type(caught).__name__, str(caught)]
        self.send([number, error, result])

    async def close(self) -> None:
        calls = list(self._calls.values())  # who is cancelled while it waits for one forgets it
        for task in list(self._tasks):
            task.cancel()
        if self._broker.goes_on and self._has_used:
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(self._broker.patience_s):
                    for actor in list(self._actors):
                        await self._kill(actor)
                    for call in calls:
                        await self._end_call(call)
            self._broker.warm()
        self._writer.close()

    async def _in_turn(self, function: Callable[..., Any], *arguments: Any) -> Any:
        if self._broker.lost:
            raise frames.ClusterLost(self._broker.lost)
        return await asyncio.get_running_loop().run_in_executor(self._broker.calls, function, *arguments)

    # Requests

    async def _start(self) -> Any:
        """Answered when Ray runs."""
        found = await asyncio.shield(self._broker.started)
        if self._broker.lost:
            raise frames.ClusterLost(self._broker.lost)
        return found

    async def _end(self) -> None:
        self._broker.ended.set()

    async def _nodes(self) -> Any:
        found = await self._in_turn(self._broker.ray.nodes)
        wanted = ("Resources", "NodeManagerAddress", "NodeID")
        return [{key: node[key] for key in wanted} for node in found if node["Alive"]]

    async def _place(self, actor: int, resources: dict[str, float], arguments: list[Any]) -> None:
        options = {
            "num_cpus": 0,
            "resources": resources,
            "scheduling_strategy": "SPREAD",
            "max_restarts": -1,
            "max_task_retries": -1,
        }

        def place() -> Any:
            made = self._broker.ray.remote(actor_class()).options(**options)
            return made.remote(*arguments)

        self._has_used = True
        self._actors[actor] = asyncio.ensure_future(self._in_turn(place))
        await asyncio.shield(self._actors[actor])

    async def _find(self, actor: int) -> Any:
        """The endpoint of a cell, once it has one."""
        errors = self._broker.ray.exceptions
        while True:
            handle = await asyncio.shield(self._actors[actor])
            try:
                return await (await self._in_turn(handle.endpoint.remote))
            except errors.ActorUnavailableError:
                await asyncio.sleep(_RETRY_S)

    async def _kill(self, actor: int) -> None:
        placed = self._actors.get(actor)
        if placed is not None and not self._broker.lost:
            with contextlib.suppress(Exception):
                handle = await asyncio.shield(placed)
                await self._in_turn(lambda: self._broker.ray.kill(handle, no_restart=True))
        # Not before: a driver asks for this and ends, and the end of its connection cancels what is in the queue.
        self._actors.pop(actor, None)

    async def _warm(self) -> None:
        """There will be another run."""
        self._broker.warm()

    async def _submit(self, call: int, function: str, argument: bytes, memory_bytes: int, alone: bool) -> Any:
        errors = self._broker.ray.exceptions
        self._has_used = True
        self._calls[call] = asyncio.ensure_future(self._in_turn(self._called, function, argument, memory_bytes, alone))
        try:
            return await (await asyncio.shield(self._calls[call]))
        except errors.RayTaskError:
            raise
        except errors.OutOfMemoryError as error:
            raise frames.OutOfMemory(str(error)) from error
        except (errors.NodeDiedError, errors.ObjectLostError) as error:
            raise frames.NodeLost(str(error)) from error
        except errors.RayError as error:
            raise frames.TaskLost(str(error)) from error
        finally:
            self._calls.pop(call, None)

    def _called(self, function: str, argument: bytes, memory_bytes: int, alone: bool) -> object:
        """``alone``: the process ends after it."""
        # Ray would run a call again by itself, and it would not be known with which one its workers die. Of each remote
        # function it keeps the code: there are only two.
        remote = self._remotes.get(alone)
        if remote is None:
            limits = {"max_calls": 1} if alone else {}
            remote = self._remotes[alone] = self._broker.ray.remote(num_cpus=1, max_retries=0, **limits)(_call)
        if memory_bytes:
            remote = remote.options(memory=memory_bytes)
        return remote.remote(function, argument)

    async def _piece(self, address: str, path: str, offset: int, most_bytes: int) -> Any:
        """What a file holds there, on the node with that address, from a byte on; empty: no more."""
        errors = self._broker.ray.exceptions
        try:
            return await (await self._in_turn(self._read, address, path, offset, most_bytes))
        except errors.RayTaskError as error:
            raise frames.RayFailed(str(error.cause)) from error
        except errors.RayError as error:
            raise frames.NodeLost(f"the node at {address} does not answer") from error

    def _read(self, address: str, path: str, offset: int, most_bytes: int) -> object:
        from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

        alive = [node for node in self._broker.ray.nodes() if node["Alive"]]
        found = [node["NodeID"] for node in alive if node["NodeManagerAddress"] == address]
        if not found:
            raise frames.NodeLost(f"the Ray cluster has no node at {address}")
        strategy = NodeAffinitySchedulingStrategy(found[0], soft=False)
        remote = self._broker.ray.remote(num_cpus=0)(_piece_of).options(scheduling_strategy=strategy)
        return remote.remote(path, offset, most_bytes)

    async def _cancel(self, call: int) -> None:
        """End it with its process."""
        if call in self._calls:
            await self._end_call(self._calls[call])

    async def _end_call(self, submitted: asyncio.Future[Any]) -> None:
        if not self._broker.lost:
            with contextlib.suppress(Exception):
                reference = await asyncio.shield(submitted)
                await self._in_turn(lambda: self._broker.ray.cancel(reference, force=True))


# In Ray's workers ---------------------------------------------------------------------------------------------------


def _call(function: str, argument: bytes) -> bytes:
    module, _, name = function.partition(":")
    found: bytes = getattr(importlib.import_module(module), name)(argument)
    return found


def _piece_of(path: str, offset: int, most_bytes: int) -> bytes:
    with open(path, "rb") as file:
        file.seek(offset)
        return file.read(most_bytes)


def actor_class() -> type:
    """Made in a function so that Ray sends the code of the class instead of the name of its module.

    Its process can then import kemu from wherever the driver does.
    """

    class KemuCell:
        def __init__(
            self, name: str, directory: str, interface: str, public_key: bytes, code: list[str], path: list[str]
        ) -> None:
            import sys

            sys.path.extend(entry for entry in path if entry not in sys.path)
            from kemu.runtime.host import control
            from kemu.runtime.ray import processes

            # Ray would start another one elsewhere, and workers notice the end of their raylet by themselves only where
            # process 1 becomes their parent.
            processes.end_with_parent()
            if interface == "node":
                import ray

                interface = ray.util.get_node_ip_address()  # type: ignore[no-untyped-call]
            endpoint = control.CellProcess(name, directory, interface, public_key, code).endpoint
            self._endpoint = (
                endpoint.target, endpoint.pid, endpoint.machine, endpoint.segment, endpoint.certificate
            )  # fmt: skip

        def endpoint(self) -> tuple[str, int, str, str, bytes]:
            return self._endpoint

    return KemuCell


# The process --------------------------------------------------------------------------------------------------------


def end_children() -> None:
    """SIGKILL to all processes that this one has started, and those have."""
    from kemu.runtime.ray import processes

    processes.end(processes.descendants(os.getpid()), grace_s=0.0)


async def _serve(options: argparse.Namespace) -> None:
    loop = asyncio.get_running_loop()
    broker = Broker(options, loop)
    for number in (signal.SIGTERM, signal.SIGHUP):
        loop.add_signal_handler(number, broker.ended.set)
    if options.listen:
        path = os.path.join(options.temporary, SOCKET)
        await asyncio.start_unix_server(_of_this_user(broker), path)
    else:

        async def only() -> None:
            reader, writer = await asyncio.open_unix_connection(sock=socket.socket(fileno=options.socket))
            try:
                await broker.serve(reader, writer)
            finally:
                broker.ended.set()

        serving = asyncio.create_task(only())
        del serving
    await broker.ended.wait()
    await broker.end()


def _of_this_user(broker: Broker) -> Callable[..., Any]:
    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        if _peer(writer.get_extra_info("socket")) == os.getuid():
            await broker.serve(reader, writer)
        else:
            writer.close()

    return serve


def _peer(connection: Any) -> int:
    """The user at the other end."""
    _, uid, _ = struct.unpack("iII", connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, 12))
    return int(uid)


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--temporary", required=True, help="a folder, which is removed at the end")
    parser.add_argument("--socket", type=int, help="of the one driver; its end is ours")
    parser.add_argument("--listen", action="store_true", help="for drivers, until one of them says that it is the end")
    parser.add_argument("--address", help="of the Ray cluster to join; otherwise a local one is started")
    parser.add_argument("--workers", type=int, default=3)
    options = parser.parse_args()
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C in a terminal is the driver's to answer
    try:
        asyncio.run(_bounded(options))
    finally:
        end_children()
        shutil.rmtree(options.temporary, ignore_errors=True)
        # Threads of Ray may hang.
        os._exit(0)


async def _bounded(options: argparse.Namespace) -> None:
    await _serve(options)
    # Without the tidying of asyncio.run, which would wait for threads.
    end_children()
    shutil.rmtree(options.temporary, ignore_errors=True)
    os._exit(0)


if __name__ == "__main__":
    main()
