"""The same seed gives the same run: in this process, in fresh ones, and whatever PYTHONHASHSEED is."""

from __future__ import annotations

import asyncio
import hashlib
import json
import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import grpc

from kemu.messages.v1 import api_pb2, api_pb2_grpc
from kemu.runtime.env import ActorSpec, Env
from kemu.runtime.runlog.events import own
from kemu.runtime.sim.simulation import SimRuntime
from kemu.testing import sim
from tests.runtime.world import EOF, Echo

S = 1_000_000_000
SERVERS = 3
GOSSIPS = 12


class Gossip(Echo):
    """Calls, streams, sleeps, gathers and remembers at random; notices what breaks."""

    def __init__(self, env: Env, config: Mapping[str, Any]) -> None:
        super().__init__(env, config)
        self.stubs = [api_pb2_grpc.ApiStub(env.dial(f"apiserver/{number}")) for number in range(SERVERS)]
        self.heard: set[str] = set()

    async def run(self) -> None:
        env = self.env
        env.ready()
        env.spawn(self.heartbeat(), "heartbeat")
        for number in range(25):
            await env.clock.sleep(env.random.expovariate(2))
            stub = self.stubs[env.random.randrange(SERVERS)]
            env.spawn(env.random.choice((self.get, self.stream, self.get_many))(stub), f"work {number}")

    async def heartbeat(self) -> None:
        while True:
            await self.env.clock.sleep(3, background=True)
            self.env.disk.append("beats", b"x" * self.env.random.randrange(5))
            self.env.log(own("gossip.beat", {"heard": sorted(self.heard), "size": len(self.env.disk.read("beats"))}))

    async def get(self, stub: Any) -> None:
        name = "slow" if self.env.random.random() < 0.2 else f"{self.env.name}-{self.env.random.randrange(99)}"
        try:
            response = await stub.Get(api_pb2.GetRequest(name=name), timeout=self.env.random.choice((None, 0.05, 8)))
            self.heard.add(response.object.decode())
            self.env.log(own("gossip.got", {"name": response.object}))
        except grpc.aio.AioRpcError as error:
            self.env.log(own("gossip.failed", {"code": error.code().name, "details": error.details()}))

    async def get_many(self, stub: Any) -> None:
        await asyncio.gather(*(self.get(stub) for _ in range(4)))

    async def stream(self, stub: Any) -> None:
        call = stub.Session()
        try:
            for number in range(self.env.random.randrange(10)):
                await call.write(api_pb2.SessionRequest(calls=[api_pb2.Call(id=number)]))
                if self.env.random.random() < 0.5:
                    await self.env.clock.sleep(self.env.random.random())
            await call.done_writing()
            while (message := await call.read()) is not EOF:
                self.env.log(own("gossip.heard", {"ids": [reply.id for reply in message.replies]}))
        except (grpc.aio.AioRpcError, asyncio.InvalidStateError) as error:
            self.env.log(own("gossip.failed", {"error": type(error).__name__}))


def random_traffic(seed: int) -> str:
    """Digest of the log of a run with random traffic, crashes and partitions."""
    digest = hashlib.sha256()

    def sink(*event: Any) -> None:
        digest.update(repr(event).encode())

    servers = [f"apiserver/{number}" for number in range(SERVERS)]
    gossips = [f"gossip/{number}" for number in range(GOSSIPS)]
    actors = [ActorSpec(name, f"{Echo.__module__}:Echo", {"slow_s": 5}) for name in servers]
    actors += [ActorSpec(name, f"{__name__}:Gossip") for name in gossips]

    async def main(runtime: SimRuntime) -> None:
        chance = runtime.env("chaos").random
        for number in range(8):
            await runtime.clock.sleep(chance.random() * 3)
            victim = chance.choice(servers + gossips)
            await runtime.crash(victim)
            cut = chance.sample(gossips, 4)
            await runtime.partition(f"cut {number}", cut, servers, one_way=chance.random() < 0.3)
            await runtime.clock.sleep(chance.random() * 8)
            await runtime.heal(f"cut {number}")
            await runtime.restart(victim)
        ending = await runtime.run_until(1000 * S, until_idle=True)
        runtime.env("chaos").log(own("end", {"how": ending, "steps": runtime.loop.steps}))
        await runtime.shutdown()

    timing = {
        "apiLatency": {"lognormal": {"median": 0.01, "p99": 0.5}},
        "watchLatency": {"uniform": {"min": 0, "max": 1}},
    }
    sim(main, seed, actors, timing=timing, sink=sink)
    return digest.hexdigest()


def in_fresh_process(hash_seed: str) -> str:
    root = Path(__file__).resolve().parents[2]
    return subprocess.run(
        [sys.executable, __file__, "5"],
        env={**os.environ, "PYTHONHASHSEED": hash_seed, "PYTHONPATH": str(root)},
        check=True,
        capture_output=True,
        text=True,
        timeout=60,
    ).stdout.strip()


def test_the_same_seed_gives_the_same_run_and_another_seed_another() -> None:
    assert random_traffic(5) == random_traffic(5)
    assert random_traffic(5) != random_traffic(6)


def test_fresh_processes_agree_under_different_hash_seeds() -> None:
    assert in_fresh_process("1") == in_fresh_process("2") == random_traffic(5)


def test_a_scenario_repeats_in_fresh_processes_under_other_hash_seeds(tmp_path: Path) -> None:
    """One that crashes the store. CI compares every scenario (``scripts/check-determinism``)."""
    digests = set()
    for hash_seed in ("1", "4242"):
        arguments = ["run", "chaos/store-crash", "--runtime", "sim", "--json", "--out", str(tmp_path / hash_seed)]
        done = subprocess.run(
            [sys.executable, "-m", "kemu.doors.cli.main", *arguments],
            env={**os.environ, "PYTHONHASHSEED": hash_seed},
            capture_output=True,
            text=True,
            check=True,
        )
        digests.add(json.loads(done.stdout)["digest"])
    assert len(digests) == 1


if __name__ == "__main__":
    print(random_traffic(int(sys.argv[1])))
