"""Calls of functions in the processes of a Ray cluster, for work that has nothing to do with a run on Ray.

Role: beside the driver and the cells of a run. Who calls knows neither Ray nor its errors: a call that was lost with
its process or machine raises :class:`TaskLost`, and its maker decides whether to make it again.
"""

from __future__ import annotations

import concurrent.futures
from collections.abc import Sequence

from kemu.errors import InfrastructureError
from kemu.runtime.ray.driver.clusters import RayCluster
from kemu.runtime.ray.frames import ClusterLost, TaskLost

__all__ = ["RayTasks", "TaskLost"]

Handle = concurrent.futures.Future[bytes]


class RayTasks:
    """A Ray cluster that calls ``module:function``s, which take and return bytes."""

    def __init__(self, address: str | None = None, *, workers: int = 2) -> None:
        """``address``: of a cluster to join; ``local``: a new one with so many workers; None: see ``RayCluster``."""
        self._cluster = RayCluster(address, workers=workers)
        self._cluster.wait()
        self._numbers: dict[Handle, int] = {}

    def slots(self) -> int:
        """How many calls can be carried out at a time."""
        return self._cluster.slots()

    def submit(self, function: str, argument: bytes) -> Handle:
        number, handle = self._cluster.submit(function, argument)
        self._numbers[handle] = number
        return handle

    def wait(self, handles: Sequence[Handle], timeout_s: float) -> list[Handle]:
        """Those that are over, at the latest after that time."""
        done, _ = concurrent.futures.wait(handles, max(0.0, timeout_s), return_when=concurrent.futures.FIRST_COMPLETED)
        return [handle for handle in handles if handle in done]

    def result(self, handle: Handle) -> bytes:
        """Raises TaskLost, what the function raised as RayFailed, or InfrastructureError when Ray itself is lost."""
        self._numbers.pop(handle, None)
        try:
            return handle.result()
        except ClusterLost as error:
            raise InfrastructureError(f"the Ray cluster is lost: {error}") from error

    def cancel(self, handle: Handle) -> None:
        """End it with its process."""
        number = self._numbers.pop(handle, None)
        if number is not None:
            self._cluster.cancel(number)

    def close(self) -> None:
        self._cluster.stop()
