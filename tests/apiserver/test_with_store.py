"""The API server on kemu's own store: random traffic, crashes and partitions, judged by kemu's checks."""

from __future__ import annotations

import asyncio
import random
from typing import Any

import pytest

from kemu import errors
from kemu.emulated.client.clients import Client
from kemu.emulated.client.informers import Informer
from kemu.lab.checks import registry
from kemu.runtime.env import ActorSpec
from kemu.runtime.runlog.frames import Entry
from kemu.runtime.sim.simulation import SimRuntime
from kemu.testing import Recorder, sim
from tests.apiserver.apiserver_cluster import node, pod

STORE = ActorSpec("store", "kemu.emulated.store.server:Store", {})
TIMING = {name: {"uniform": {"min": 0.0005, "max": 0.005}} for name in ("apiLatency", "watchLatency", "storeLatency")}
SELECTIONS = (
    {},
    {"field_selector": "spec.nodeName=n1"},
    {"label_selector": "colour=red"},
    {"namespace": "kube-system"},
    {"field_selector": "spec.nodeName!=,status.phase!=Succeeded"},
)


def server(number: int, **config: Any) -> ActorSpec:
    return ActorSpec(f"apiserver/{number}", "kemu.emulated.apiserver.server:ApiServer", config)


class Traffic:
    """One client that does something at random, again and again, and shrugs at refusals."""

    def __init__(self, runtime: SimRuntime, number: int, seed: int, servers: int) -> None:
        self.random = random.Random(f"{seed}/{number}")
        self.clock = runtime.clock
        self.client = Client(runtime.env(f"user{number}"), f"apiserver/{number % servers}")
        self.done = 0

    async def run(self, until_ns: int) -> None:
        while self.clock.now_ns() < until_ns:
            await self.clock.sleep(self.random.expovariate(20))
            try:
                await self.act()
                self.done += 1
            except (errors.NotFound, errors.AlreadyExists, errors.Conflict, errors.ServiceUnavailable):
                continue

    async def act(self) -> None:
        client, choose = self.client, self.random
        namespace, name = choose.choice(["default", "kube-system"]), f"p{choose.randrange(6)}"
        what = choose.randrange(7)
        if what == 0:
            await client.create(pod(name, namespace, labels={"colour": choose.choice(["red", "blue"])}))
        elif what == 1:
            await client.bind(namespace, name, "", choose.choice(["n1", "n2"]))
        elif what == 2:
            await client.delete("pods", name, namespace, choose.choice([None, 0]))
        elif what == 3:
            found = await client.get("pods", name, namespace, choose.choice(["", "0"]))
            found.metadata.labels["colour"] = choose.choice(["red", "blue"])
            await client.update(found)
        elif what == 4:
            phase = choose.choice(["Running", "Succeeded"])
            await client.patch("pods", name, namespace, {"status": {"phase": phase}}, subresource="status")
        elif what == 5:
            await client.patch("nodes", "n1", "", {"metadata": {"labels": {"x": str(choose.random())}}})
        else:
            await client.list("pods", namespace, limit=2)


async def faults(runtime: SimRuntime, seed: int, servers: int, until_ns: int) -> None:
    choose = random.Random(f"faults/{seed}")
    for number in range(100):
        await runtime.clock.sleep(choose.uniform(1, 6))
        if runtime.clock.now_ns() > until_ns:
            return
        victim = f"apiserver/{choose.randrange(servers)}"
        what = choose.randrange(3)
        if what == 2:
            await runtime.partition(f"f{number}", [victim], ["store"])
            await runtime.clock.sleep(choose.choice([0.5, 8]))
            await runtime.heal(f"f{number}")
            continue
        victim = victim if what else "store"
        await runtime.crash(victim)
        await runtime.clock.sleep(choose.choice([0.01, 3]))
        await runtime.restart(victim)


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("lag_s", [0.0, 0.2])
def test_nothing_is_lost_and_nobody_is_left_out(seed: int, lag_s: float) -> None:
    recorder = Recorder()

    async def main(runtime: SimRuntime) -> None:
        until_ns = runtime.clock.now_ns() + 40_000_000_000
        setup = Client(runtime.env("setup"), "apiserver/0")
        await setup.create(node("n1"))
        informers = [
            Informer(Client(runtime.env(f"informed{n}"), f"apiserver/{n % 2}"), "pods", **selection)
            for n, selection in enumerate(SELECTIONS * 2)
        ]
        for informer in informers:
            informer.start()
        traffic = [Traffic(runtime, number, seed, 2) for number in range(6)]
        await asyncio.gather(*(one.run(until_ns) for one in traffic), faults(runtime, seed, 2, until_ns))
        await runtime.clock.sleep(90)
        listed = await setup.list("pods")
        truth = {f"{one.metadata.namespace}/{one.metadata.name}": one for one in listed.items}
        assert informers[0].store == informers[5].store == truth
        assert informers[1].store == {key: one for key, one in truth.items() if one.spec.nodeName == "n1"}
        assert informers[2].store == {key: one for key, one in truth.items() if one.metadata.labels["colour"] == "red"}
        assert sum(one.done for one in traffic) > 500

    servers = [server(0, window_events=300), server(1, window_events=300, cache_lag_s=lag_s)]
    sim(main, seed, [STORE, *servers], timing=TIMING, sink=recorder)
    _, results = registry.judge(Entry(*event) for event in recorder.events)
    verdicts = {result.id: (result.holds, result.detail) for result in results}
    for check in ("watch-has-no-gaps", "acknowledged-writes-survive", "pod-bound-at-most-once"):
        assert verdicts[check][0], verdicts[check]
    assert any(event[2] == "actor.crashed" for event in recorder.events)
