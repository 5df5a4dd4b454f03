"""A store that is away or takes no more bytes: whoever is patient asks again, ever more rarely, and no actor ends."""

from __future__ import annotations

from pathlib import Path

import pytest

from kemu import errors
from kemu.emulated.client import clients, retries
from kemu.lab.scenario.loading import loader
from kemu.lab.scenario.playing import runner
from kemu.runtime.env import ActorSpec
from kemu.runtime.sim.simulation import SimRuntime
from kemu.testing import sim
from tests.apiserver.apiserver_cluster import pod

SPECS = [
    ActorSpec("store", "kemu.emulated.store.server:Store", {}),
    ActorSpec("apiserver/0", "kemu.emulated.apiserver.server:ApiServer", {}),
]


def test_an_api_server_without_its_store_is_asked_ever_more_rarely() -> None:
    async def main(runtime: SimRuntime) -> int:
        client = clients.Client(runtime.env("user"))
        await client.create(pod("a"))
        await runtime.crash("store")
        asked = 0

        async def get() -> None:
            nonlocal asked
            asked += 1
            await client.get("pods", "a", "default")

        task = runtime.env("user").spawn(retries.patiently(runtime.env("user"), get), "patient")
        await runtime.clock.sleep(200)
        while_away = asked
        await runtime.restart("store")
        await task
        return while_away

    assert sim(main, 0, SPECS) == 4, "each time it waits for a minute"


def test_a_full_store_may_have_room_again() -> None:
    async def main(runtime: SimRuntime) -> None:
        client = clients.Client(runtime.env("user"))
        await client.create(pod("a"))
        await runtime.inject("full", "diskFull", {"actor": ["store"]})
        with pytest.raises(errors.NoSpace) as caught:
            await client.create(pod("b"))
        assert (caught.value.reason, caught.value.code) == ("Unknown", 500)
        task = runtime.env("user").spawn(
            retries.patiently(runtime.env("user"), lambda: client.create(pod("b"))), "patient"
        )
        await runtime.clock.sleep(20)
        assert not task.done()
        await runtime.heal("full")
        await task

    sim(main, 0, SPECS)


def test_no_actor_ends_while_the_store_is_full(tmp_path: Path) -> None:
    """Kubelets report, register and are given up, controllers write, pods come and end: all of it waits."""
    text = """
apiVersion: kemu.dev/v1
kind: Scenario
metadata: {name: full, description: A store that is full for a minute.}
spec:
  duration: 4m
  timing: realistic
  controllers: [node-lifecycle, taint-eviction, pod-gc]
  nodes:
    - {namePrefix: node-, count: 3}
  workloads:
    - name: work
      arrivals: {every: 500ms, count: 60}
      pods:
        metadata: {annotations: {kemu.dev/run-seconds: "20"}}
        spec:
          restartPolicy: Never
          containers: [{name: main, image: "registry.example/app:1", resources: {requests: {cpu: 100m}}}]
  chaos:
    - {at: 20s, for: 60s, diskFull: {actor: store}}
    - {at: 10s, for: 80s, crash: {actor: kubelet/node-1}}
    - {at: 30s, for: 5s, crash: {actor: kubelet/node-2}}
  expect:
    - {node: node-1, condition: {type: Ready, status: Unknown, after: 80s}}
    - {check: acknowledged-writes-survive, holds: true}
"""
    verdict = runner.run(loader.loads(text), runner.Options(out=tmp_path / "run", runtime="sim")).verdict
    assert verdict["verdict"] == "holds", [one for one in verdict["expectations"] if one["holds"] is not True]
    assert verdict["counts"]["requests_refused"] < 500
