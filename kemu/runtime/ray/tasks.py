"""Calls of functions in the processes of a Ray cluster, for work that has nothing to do with a run on Ray.

Role: beside the driver and the cells of a run. Who calls knows neither Ray nor its errors: a call that was lost with
its process or machine raises :class:`TaskLost`, or what is derived from it, and its maker decides whether to make it
again. :class:`ClusterLost` ends all of them.
"""

from __future__ import annotations

import concurrent.futures
import contextlib
import queue

from kemu.runtime.ray.driver.clusters import RayCluster
from kemu.runtime.ray.frames import ClusterLost, NodeLost, OutOfMemory, TaskLost

__all__ = ["ClusterLost", "NodeLost", "OutOfMemory", "RayTasks", "TaskLost"]

Handle = concurrent.futures.Future[bytes]


class RayTasks:
    """A Ray cluster that calls ``module:function``s, which take and return bytes."""

    def __init__(self, address: str | None = None, *, workers: int = 2) -> None:
        """``address``: of a cluster to join; ``local``: a new one with so many workers; None: see ``RayCluster``."""
        self._cluster = RayCluster(address, workers=workers)
        self._cluster.wait()
        self._numbers: dict[Handle, int] = {}
        self._over: queue.SimpleQueue[Handle] = queue.SimpleQueue()

    def resources(self) -> list[dict[str, float]]:
        """What each node that lives has: ``CPU``, ``memory`` in bytes, …. Raises ClusterLost."""
        return self._cluster.resources()

    def broker(self) -> int:
        """Pid of the process that speaks with Ray; 0: it is not of this process's own."""
        return self._cluster.broker()

    def submit(self, function: str, argument: bytes, *, memory_bytes: int = 0, alone: bool = False) -> Handle:
        """``memory_bytes``: of its node, for itself; ``alone``: in a process that ends after it."""
        number, handle = self._cluster.submit(function, argument, memory_bytes=memory_bytes, alone=alone)
        self._numbers[handle] = number
        handle.add_done_callback(self._over.put)
        return handle

    def wait(self, timeout_s: float) -> list[Handle]:
        """Those that are over and were not told yet; empty when none is after that time."""
        found = []
        with contextlib.suppress(queue.Empty):
            found.append(self._over.get(timeout=max(0.0, timeout_s)))
            while True:
                found.append(self._over.get_nowait())
        return [handle for handle in found if handle in self._numbers]

    def result(self, handle: Handle) -> bytes:
        """Raises TaskLost, what the function raised as RayFailed, or ClusterLost."""
        self._numbers.pop(handle, None)
        return handle.result()

    def cancel(self, handle: Handle) -> None:
        """End it with its process."""
        number = self._numbers.pop(handle, None)
        if number is not None:
            self._cluster.cancel(number)

    def close(self) -> None:
        self._cluster.stop()
