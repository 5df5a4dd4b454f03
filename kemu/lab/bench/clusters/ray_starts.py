"""How long a run on Ray waits for its processes: with all that ``ray.init`` starts, with what kemu needs, and on a
cluster that stands (``kemu ray up``)."""

from __future__ import annotations

import asyncio
import os
import tempfile
import time
from collections.abc import Sequence
from typing import Any

from kemu.runtime.host import tokens
from kemu.runtime.ray import processes
from kemu.runtime.ray.broker import nodes, server
from kemu.runtime.ray.driver import brokers, standing
from kemu.runtime.ray.driver.clusters import RayCluster

_SETTLED_S = 1.0
"""A cluster whose processes take less than a tenth of a CPU for so long has nothing left to prepare."""


def ray_start(way: str, cells: int) -> dict[str, Any]:
    """``ready_s`` until all cells can be told what to run, ``end_s`` until no process of them is left; ``cpu_s``,
    ``processes``, ``rss_mib`` of everything when they are ready."""
    with tempfile.TemporaryDirectory(prefix="kemu-bench-") as folder:
        arguments = [
            [f"cell-{number}", folder, "127.0.0.1", tokens.Issuer().public_key, [], brokers.python_path()]
            for number in range(cells)
        ]
        if way == "ray.init":
            return _with_ray_init(arguments, folder)
        if way == "own":
            return _with_a_cluster("local", cells, arguments)
        os.environ["XDG_STATE_HOME"] = folder
        found, _ = standing.up(cells)
        try:
            _wait_until_settled(found.pid)
            return _with_a_cluster(None, cells, arguments, found.pid)
        finally:
            standing.down()


def _with_ray_init(arguments: Sequence[Sequence[Any]], folder: str) -> dict[str, Any]:
    os.environ.update(nodes.QUIET)
    temporary = brokers.temporary_folder()
    begun = time.perf_counter()
    import ray

    ray.init(
        "local",
        num_cpus=len(arguments),
        include_dashboard=False,
        configure_logging=False,
        log_to_driver=False,
        object_store_memory=nodes.OBJECT_STORE_BYTES,
        _temp_dir=temporary,
    )
    cell: Any = ray.remote(num_cpus=0)(server.actor_class())
    ray.get([each.endpoint.remote() for each in [cell.remote(*one) for one in arguments]])
    figures = _figures(begun, os.getpid(), 0.0)
    begun = time.perf_counter()
    running = processes.descendants(os.getpid())
    ray.shutdown()
    processes.end(running, grace_s=3.0)
    processes.remove(temporary)
    return {**figures, "end_s": round(time.perf_counter() - begun, 2)}


def _with_a_cluster(
    address: str | None, cells: int, arguments: Sequence[Sequence[Any]], broker: int = 0
) -> dict[str, Any]:
    before_s = _cpu_s(broker) if broker else 0.0
    begun = time.perf_counter()
    with RayCluster(address, workers=cells) as cluster:
        placed = [cluster.place({}, *one) for one in arguments]

        async def find() -> list[Sequence[Any]]:
            return list(await asyncio.gather(*(cluster.find(number) for number in placed)))

        for _, pid, *_ in asyncio.run(find()):
            cluster.adopt(pid)
        figures = _figures(begun, broker or os.getpid(), before_s)
        begun = time.perf_counter()
        for number in placed:
            cluster.kill(number)
    return {**figures, "end_s": round(time.perf_counter() - begun, 2)}


def _figures(begun: float, root: int, before_s: float) -> dict[str, Any]:
    ready_s = round(time.perf_counter() - begun, 2)
    members = processes.descendants(root)
    return {
        "ready_s": ready_s,
        "cpu_s": round(_cpu_s(root) - before_s, 2),
        "processes": len(members),
        "rss_mib": sum(each.memory_info().rss for each in members) >> 20,
    }


def _cpu_s(root: int) -> float:
    """CPU of a process and those below it."""
    times = [each.cpu_times() for each in [processes.of(root), *processes.descendants(root)] if each is not None]
    return float(sum(each.user + each.system for each in times))


def _wait_until_settled(broker: int) -> None:
    before_s = -1.0
    while (now_s := _cpu_s(broker)) - before_s > _SETTLED_S / 10:
        before_s = now_s
        time.sleep(_SETTLED_S)
