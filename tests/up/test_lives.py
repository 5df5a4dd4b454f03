"""What a cluster of ``kemu up`` tells of its pods that schedulers never ask for, and when tasks end."""

from __future__ import annotations

import asyncio
import tempfile
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import kemu
from kemu.emulated.client import clients
from kemu.emulated.objects.conversion import convert
from kemu.lab.scenario.playing import plays
from kemu.lab.scenario.playing.heartbeats import Heartbeats
from kemu.lab.up import clusters
from kemu.messages.k8s import batch_v1_pb2, core_v1_pb2
from kemu.runtime.wall.runtime import WallRuntime

LONGEST_S = 30


@asynccontextmanager
async def _cluster() -> AsyncIterator[clients.Client]:
    """Of one node, with its time passing fast."""
    scenario = clusters.completed(clusters.of_nodes(1))
    with tempfile.TemporaryDirectory() as folder:
        loop = asyncio.get_running_loop()
        runtime = WallRuntime(1, lambda *_: None, directory=Path(folder), speed=20, loop=loop)
        async with asyncio.timeout(LONGEST_S):
            await plays.start(runtime, scenario, Heartbeats(scenario, "wall"))
            await runtime.begin()
            yield clients.Client(runtime.env("user/test"))
            await runtime.detach()


async def _eventually(holds: Callable[[], Awaitable[bool]]) -> None:
    for _ in range(20 * LONGEST_S):
        if await holds():
            return
        await asyncio.sleep(0.05)
    raise TimeoutError


async def _events(client: clients.Client, name: str) -> list[Any]:
    """Those of the kubelet, in their order."""
    found = (await client.list("events", "default")).items
    mine = [one for one in found if one.involvedObject.name == name and one.reportingComponent == "kubelet"]
    return sorted(mine, key=lambda one: (one.eventTime.seconds, one.eventTime.nanos))


def test_a_pod_has_an_address_and_events_tell_of_the_life_of_its_container() -> None:
    async def main() -> None:
        async with _cluster() as client:
            manifest = kemu.pod("web", run_s=1, restartPolicy="Always")
            manifest["spec"]["containers"][0]["image"] = "nginx"
            await client.create(convert.from_json(core_v1_pb2.Pod, manifest))

            async def has_told(reason: str) -> bool:
                return any(one.reason == reason for one in await _events(client, "web"))

            await _eventually(lambda: has_told("BackOff"))
            told = await _events(client, "web")
            where = "spec.containers{main}"
            assert [(one.type, one.reason, one.involvedObject.fieldPath) for one in told][:4] == [
                ("Normal", "Pulling", where),
                ("Normal", "Pulled", where),
                ("Normal", "Created", where),
                ("Normal", "Started", where),
            ]
            note = next(one.message for one in told if one.reason == "BackOff")
            assert note.startswith("Back-off restarting failed container main in pod web_default(")
            status = (await client.get("pods", "web", "default")).status
            assert (status.podIP, status.hostIP) == ("10.128.0.2", "172.18.0.2")
            assert status.containerStatuses[0].containerID.startswith("kemu://")
            await client.delete("pods", "web", "default")
            if status.containerStatuses[0].state.HasField("running"):
                await _eventually(lambda: has_told("Killing"))

    asyncio.run(main())


def test_containers_of_jobs_end() -> None:
    template = {"spec": {"restartPolicy": "Never", "containers": [{"name": "main", "image": "busybox"}]}}
    job = {"metadata": {"name": "hello", "namespace": "default"}, "spec": {"template": template}}

    async def main() -> None:
        async with _cluster() as client:
            await client.create(convert.from_json(batch_v1_pb2.Job, job))

            async def is_complete() -> bool:
                found = await client.get("jobs", "hello", "default")
                return any(one.type == "Complete" and one.status == "True" for one in found.status.conditions)

            await _eventually(is_complete)

    asyncio.run(main())
