"""A Ray cluster as a driver sees it: started for one run, joined, or shared; and no process of it left behind.

Another process speaks with Ray: the broker. What a cluster is asked for comes back as a future, as ``brokers`` says.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future
from pathlib import Path
from typing import Any

from kemu.errors import InfrastructureError, KemuError
from kemu.runtime.ray import frames, processes
from kemu.runtime.ray.broker import pings
from kemu.runtime.ray.driver import brokers, standing

_ANSWER_S = 1.5
"""For a GCS to answer who wants to join: as often as it is asked, the user waits for less than 5 s."""
_GRACE_S = 3.0
_PIECE = 4 << 20
"""Bytes of a file that are fetched at a time."""
_FETCH_S = 20.0
"""For each: Ray may have to start a process for it."""

_shared: list[brokers.Connection] = []
"""The connections of this process, the last one last."""


class RayCluster:
    """As a context manager it has started when it is entered, and is left, or stopped, at the end.

    ``address``: a cluster to join (``auto``, ``host:port``), or ``local``: a new one. None: what the environment says
    (``RAY_ADDRESS``), or the one that this process has open already, or that of ``kemu ray up``, or a new local one.
    Only one that was started here is stopped.
    """

    def __init__(self, address: str | None = None, *, workers: int = 3) -> None:
        """``workers``: processes that Ray starts at once and keeps ready for actors. Call ``start`` or ``wait`` next.

        Raises KemuError when the address does not answer.
        """
        self.address = ""
        self.left: list[str] = []
        """What could not be removed; known when it has been stopped."""
        self._processes: dict[int, Any] = {}
        self._joined = ""
        self._is_stopped = False
        named = os.environ.get("RAY_ADDRESS") or None
        shared = [each for each in _shared if not each.lost and named in (None, each.joined)]
        self.owned = address is not None or not shared
        if not self.owned:
            self._connection = shared[-1]
        else:
            self._connection = self._connect(address, workers)
            _shared.append(self._connection)
        self._ready = self._connection.call("start")

    def _connect(self, address: str | None, workers: int) -> brokers.Connection:
        if address is None:
            address = os.environ.get("RAY_ADDRESS") or None
            found = standing.connect() if address is None else None
            if found is not None:
                return found
        if address == "local":
            address = None
        if address is not None:
            self._joined = address
            refusal = pings.refusal(address, _ANSWER_S) if address != "auto" else ""
            if refusal:
                raise KemuError(f"cannot join the Ray cluster at {address}: {refusal}")
        connection = brokers.start(brokers.temporary_folder(), address, workers)
        connection.joined = self._joined
        return connection

    async def start(self) -> None:
        """Returns when Ray runs. Raises InfrastructureError."""
        try:
            self._take(await asyncio.wrap_future(self._ready))
        except (frames.ClusterLost, frames.RayFailed) as error:
            raise self._not_started(error) from error

    def wait(self) -> None:
        """The same, without an event loop."""
        try:
            self._take(self._ready.result())
        except (frames.ClusterLost, frames.RayFailed) as error:
            self.stop()
            raise self._not_started(error) from error
        except BaseException:
            self.stop()
            raise

    def _take(self, started: Mapping[str, Any]) -> None:
        self.address = started["address"]

    def _not_started(self, error: Exception) -> InfrastructureError:
        where = f"cannot join the Ray cluster at {self._joined}" if self._joined else "cannot start Ray"
        return InfrastructureError(f"{where}: {str(error).splitlines()[0]}")

    @property
    def joined(self) -> str:
        """The address as it was given, of a cluster that was there before."""
        return self._connection.joined

    def when_lost(self, callback: Callable[[str], None]) -> None:
        """Have it called, in another thread, with what has happened to the cluster when it is gone."""
        self._connection.on_lost[callback] = None
        if self._connection.lost:
            callback(self._connection.lost)

    def forget(self, callback: Callable[[str], None]) -> None:
        self._connection.on_lost.pop(callback, None)

    # Processes

    def own_processes(self) -> list[Any]:
        """psutil's, of a Ray that was started for this cluster alone; of one that others use, too, none."""
        broker = self._connection.process
        return processes.descendants(broker.pid) if self.owned and not self._joined and broker is not None else []

    def adopt(self, pid: int) -> None:
        """Add a process of this machine that Ray started for the run: ``stop`` ends it too."""
        process = processes.of(pid)
        if process is not None:
            self._processes[pid] = process

    def has_ended(self, pid: int) -> bool:
        """Whether an adopted process has ended."""
        process = self._processes.get(pid)
        return process is None or not processes.runs(process)

    def pids(self) -> list[int]:
        """Pids of all processes that ``stop`` ends."""
        found = dict(self._processes)
        broker = self._connection.process
        if self.owned and broker is not None:
            found |= {process.pid: process for process in processes.descendants(broker.pid)}
            found |= {broker.pid: processes.of(broker.pid)}
        return [pid for pid, process in found.items() if process is not None and processes.runs(process)]

    def broker(self) -> int:
        """Pid of the process that speaks with Ray; 0: it is not of this process's own."""
        process = self._connection.process
        return process.pid if process is not None else 0

    @property
    def temporary(self) -> str:
        """The folder of its files on this machine."""
        return self._connection.temporary

    # What it is asked for

    async def nodes(self) -> list[dict[str, Any]]:
        """Those that live: ``Resources``, ``NodeManagerAddress``, ``NodeID``, as ``ray.nodes()`` has them."""
        try:
            found: list[dict[str, Any]] = await asyncio.wrap_future(self._connection.call("nodes"))
        except (frames.ClusterLost, frames.RayFailed) as error:
            raise InfrastructureError(f"the Ray cluster is lost: {error}") from error
        return found

    def resources(self) -> list[dict[str, float]]:
        """What each node that lives has for calls: ``CPU``, ``memory`` in bytes, …. Raises ClusterLost."""
        return [node["Resources"] for node in self._connection.call("nodes").result()]

    def place(self, resources: Mapping[str, float], *arguments: Any) -> int:
        """Have Ray start the process of a cell, which gets the arguments. Returns the number of its actor."""
        number = self._connection.number()
        self._connection.call("place", number, dict(resources), list(arguments))
        return number

    async def find(self, actor: int) -> Sequence[Any]:
        """The endpoint of a cell, once it has one. Raises RayFailed when it will have none, and ClusterLost."""
        found: Sequence[Any] = await asyncio.wrap_future(self._connection.call("find", actor))
        return found

    def kill(self, actor: int) -> None:
        """End the process of a cell for good, a little later."""
        self._connection.call("kill", actor)

    def submit(
        self, function: str, argument: bytes, *, memory_bytes: int = 0, alone: bool = False
    ) -> tuple[int, Future[bytes]]:
        """Call ``module:function`` in a worker, on a node that has so much memory; ``alone``: in a process that ends
        after it. Returns the number of the call; its future raises TaskLost when it was lost, RayFailed when the
        function raised."""
        number = self._connection.number()
        return number, self._connection.call("submit", number, function, argument, memory_bytes, alone)

    def fetch(self, address: str, path: str, to: Path) -> None:
        """Copy a file of the node with that address to this machine, unless it is here: machines may share folders.
        Not for an event loop: it waits.

        Raises InfrastructureError, which says why there is no copy.
        """
        if to.exists():
            return
        part = to.with_suffix(".part")
        try:
            to.parent.mkdir(parents=True, exist_ok=True)
            with part.open("wb") as file:
                while piece := self._connection.call("piece", address, path, file.tell(), _PIECE).result(_FETCH_S):
                    file.write(piece)
            part.replace(to)
        except TimeoutError:
            raise InfrastructureError(f"the node at {address} has not answered for {_FETCH_S:.0f} s") from None
        except (frames.ClusterLost, frames.RayFailed, frames.TaskLost, OSError) as error:
            raise InfrastructureError(str(error)) from error
        finally:
            part.unlink(missing_ok=True)

    def cancel(self, number: int) -> None:
        self._connection.call("cancel", number)

    def stop(self) -> None:
        """Leave Ray, and wait until every process that was started here is gone, by force if need be.

        Actors must have been killed before (``kill``), or a cluster that goes on would start them again.
        """
        if self.owned:
            self.owned = False
            if self._connection in _shared:
                _shared.remove(self._connection)
            self.left += self._connection.close()
        elif not self._is_stopped:
            self._connection.call("warm")  # there will be another run
        self._is_stopped = True
        left = processes.end(self._processes.values(), grace_s=_GRACE_S)
        self.left += [f"process {process.pid} ({processes.name(process)})" for process in left]
        self._processes = {}

    def __enter__(self) -> RayCluster:
        self.wait()
        return self

    def __exit__(self, *exc: object) -> None:
        self.stop()
