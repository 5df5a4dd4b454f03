"""Calls of functions in the processes of a Ray cluster, for work that has nothing to do with a run on Ray.

Role: beside the driver and the cells of a run. Who calls knows neither Ray nor its errors: a call that was lost with
its process or machine raises :class:`TaskLost`, and whoever made it decides whether to make it again.
"""

from __future__ import annotations

import importlib
from collections.abc import Sequence
from typing import Any

from kemu.runtime.ray.driver.clusters import RayCluster


class TaskLost(Exception):
    """The process or the machine that carried out the call is gone, or was ended."""


class RayTasks:
    """A Ray cluster that calls ``module:function``s, which take and return bytes."""

    def __init__(self, address: str | None = None, *, workers: int = 2) -> None:
        """``address``: of a cluster to join; ``local`` or None: a new one with so many workers."""
        self._cluster = RayCluster(address, workers=workers)
        # Ray would run a call again by itself, and nobody would learn with which one its workers die.
        self._remote: Any = self._cluster.ray.remote(num_cpus=1, max_retries=0)(_call)

    def slots(self) -> int:
        """How many calls can be carried out at a time."""
        return max(1, int(sum(node["Resources"].get("CPU", 0) for node in self._cluster.nodes())))

    def submit(self, function: str, argument: bytes) -> Any:
        """Returns a handle."""
        return self._remote.remote(function, argument)

    def wait(self, handles: Sequence[Any], timeout_s: float) -> list[Any]:
        """Those that are over, at the latest after that time."""
        done, _ = self._cluster.ray.wait(list(handles), num_returns=1, timeout=max(0.0, timeout_s))
        if not done:
            return []
        done, _ = self._cluster.ray.wait(list(handles), num_returns=len(handles), timeout=0)
        return list(done)

    def result(self, handle: Any) -> bytes:
        """Raises TaskLost, or what the function raised."""
        errors = self._cluster.ray.exceptions
        try:
            found: bytes = self._cluster.ray.get(handle)
        except errors.RayTaskError:
            raise
        except errors.RayError as error:
            raise TaskLost(str(error)) from error
        return found

    def cancel(self, handle: Any) -> None:
        """End it with its process."""
        self._cluster.ray.cancel(handle, force=True)

    def close(self) -> None:
        self._cluster.stop()


def _call(function: str, argument: bytes) -> bytes:
    module, _, name = function.partition(":")
    found: bytes = getattr(importlib.import_module(module), name)(argument)
    return found
