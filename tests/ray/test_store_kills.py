"""Sixteen clients for a quarter of a minute (``KEMU_STORE_KILLS_S``: for so many seconds) on real processes, while the
store's process gets SIGKILL every five seconds: what kemu's checks say of it."""

from __future__ import annotations

import asyncio
import os
import random
from pathlib import Path

import pytest

from kemu import errors
from kemu.emulated.client.clients import Client
from kemu.emulated.client.informers import Informer
from kemu.lab.checks import registry
from kemu.lab.scenario.playing.plans import APISERVER_FACTORY, STORE_FACTORY
from kemu.runtime.env import ActorSpec
from kemu.runtime.ray.driver.clusters import RayCluster
from kemu.runtime.ray.driver.plans import DRIVER_CELL, CellPlan
from kemu.runtime.ray.driver.runtime import RayRuntime
from kemu.runtime.runlog.frames import Entry
from kemu.testing import Recorder
from tests.apiserver.apiserver_cluster import pod

pytestmark = pytest.mark.ray

CLIENTS = 16
KILL_EVERY_S = 5.0
DURATION_S = float(os.environ.get("KEMU_STORE_KILLS_S", "16"))
PLAN = (CellPlan("store", ("store",)), CellPlan("apiservers", ("apiserver/*",)), CellPlan(DRIVER_CELL, ("*",)))
CHECKS = (
    "acknowledged-writes-survive", "history-is-linearizable", "watch-has-no-gaps", "watch-events-are-true",
    "journal-is-intact",
)  # fmt: skip


class Traffic:
    """One client that creates, changes, reads and deletes pods that all of them share."""

    def __init__(self, runtime: RayRuntime, number: int) -> None:
        self.random = random.Random(number)
        self.clock = runtime.clock
        self.client = Client(runtime.env(f"client{number}"), f"apiserver/{number % 2}")
        self.done = 0

    async def run(self, until_ns: int) -> None:
        while self.clock.now_ns() < until_ns:
            await self.clock.sleep(self.random.uniform(0.0, 0.1))
            try:
                await self.act()
                self.done += 1
            except errors.ApiError:
                continue

    async def act(self) -> None:
        client, name = self.client, f"p{self.random.randrange(8)}"
        match self.random.randrange(5):
            case 0:
                await client.create(pod(name))
            case 1:
                await client.delete("pods", name, "default", 0)
            case 2:
                found = await client.get("pods", name, "default")
                found.metadata.labels["number"] = str(self.random.random())
                await client.update(found)
            case 3:
                await client.get("pods", name, "default")
            case _:
                await client.list("pods", "default")


def test_nothing_is_lost_and_nobody_sees_a_gap(local_ray: RayCluster, tmp_path: Path) -> None:
    recorder = Recorder()
    runtime = RayRuntime(1, recorder, directory=tmp_path, cells=PLAN, code=[STORE_FACTORY, APISERVER_FACTORY])

    async def main() -> tuple[int, int]:
        await runtime.launch([ActorSpec("store", STORE_FACTORY, {"fsync": "batch"})])
        for number in range(2):
            await runtime.launch([ActorSpec(f"apiserver/{number}", APISERVER_FACTORY, {})])
        await runtime.begin()
        await runtime.clock.started()
        informers = [Informer(Client(runtime.env(f"informed{n}"), f"apiserver/{n}"), "pods") for n in range(2)]
        for informer in informers:
            informer.start()
        until_ns = runtime.clock.now_ns() + round(DURATION_S * 1e9)
        traffic = [Traffic(runtime, number) for number in range(CLIENTS)]
        running = [asyncio.ensure_future(one.run(until_ns)) for one in traffic]
        kills = 0
        while runtime.clock.now_ns() < until_ns - KILL_EVERY_S * 1e9 / 2:
            await runtime.clock.sleep(KILL_EVERY_S)
            pid = runtime.cells["store"].pid
            await runtime.crash("store")
            await runtime.restart("store")
            kills += 1
            async with asyncio.timeout(30):
                while "store" not in runtime.cells or runtime.cells["store"].pid == pid:  # noqa: ASYNC110
                    await asyncio.sleep(0.05)
        await asyncio.gather(*running)
        await runtime.clock.sleep(5)
        return sum(one.done for one in traffic), kills

    done, kills = runtime.run(main())
    _, results = registry.judge(Entry(*event) for event in recorder.events)
    verdicts = {result.id: (result.holds, result.detail) for result in results}
    for check in CHECKS:
        if check in registry.IDS:
            assert verdicts[check][0] is True, (check, verdicts[check])
    assert kills >= DURATION_S // KILL_EVERY_S - 1
    assert sum(event[2] == "store.recovered" for event in recorder.events) == kills
    assert done > 5 * DURATION_S
