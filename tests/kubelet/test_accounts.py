"""Whatever happens to the pods of a node, the kubelet knows in the end exactly what is free."""

from __future__ import annotations

import contextlib
from typing import Any

import pytest

from kemu import errors
from kemu.emulated.client import retries
from tests.kubelet.cluster import Cluster, node, pod

CPU_MILLI = 4000


@pytest.mark.parametrize("seed", range(10))
def test_what_is_free_can_be_filled_to_the_last_millicore(seed: int) -> None:
    cluster = Cluster(seed, network={"watchLatency": {"uniform": {"min": 0.001, "max": 0.3}}})

    async def main(cluster: Cluster) -> None:
        random = cluster.runtime.env("user").random
        for n in range(80):
            await _happen(cluster, random, f"p{n}")
            await cluster.clock.sleep(random.random() * 2)
        await cluster.clock.sleep(200)
        pods = (await cluster.client.list("pods")).items
        assert {one.status.phase for one in pods} <= {"Running", "Succeeded", "Failed"}
        assert not [one for one in pods if one.metadata.HasField("deletionTimestamp")]
        used = sum(_milli(one) for one in pods if one.status.phase == "Running")
        assert used <= CPU_MILLI
        if used < CPU_MILLI:
            await cluster.create(pod("filler", cpu=f"{CPU_MILLI - used}m"))
        await cluster.create(pod("one-too-many", cpu="1m"))
        await cluster.clock.sleep(20)  # podStart has a long tail
        assert await cluster.phase("filler") in ("Running", "gone")
        assert await cluster.phase("one-too-many") == "Failed"

    cluster.play(main, [node(cpu=f"{CPU_MILLI}m", pods="100")], timing={"podStart": {"exponential": {"mean": 1}}})


def _milli(one: Any) -> int:
    return int(one.spec.containers[0].resources.requests["cpu"].string.removesuffix("m"))


async def _happen(cluster: Cluster, random: Any, name: str) -> None:
    """One random thing."""
    client, env = cluster.client, cluster.runtime.env("user")
    there = (await retries.patiently(env, lambda: client.list("pods"))).items
    victim = random.choice(there).metadata.name if there else ""
    what = random.randrange(20)
    with contextlib.suppress(errors.NotFound, errors.AlreadyExists, errors.Conflict):
        if what < 10 or not victim:
            life: dict[str, float] = {"shutdown": random.randrange(8)}
            if random.random() < 0.5:
                life |= {"run": random.randrange(20), "exit_code": random.randrange(2)}
            one = pod(name, cpu=f"{random.randrange(1, 2500)}m", restart=random.choice(["Never", "OnFailure"]), **life)
            await retries.patiently(env, lambda: client.create(one))
        elif what < 14:
            grace_s = random.choice([None, 0, 1, 5])
            delete = {"grace_period_seconds": grace_s}
            await retries.patiently(env, lambda: client.delete("pods", victim, "default", **delete))
        elif what < 16:
            finish = {"metadata": {"annotations": {"kemu.dev/finish": "0"}}}
            await retries.patiently(env, lambda: client.patch("pods", victim, "default", finish))
        elif what == 16:
            await cluster.runtime.partition(name, ["kubelet/n1"], ["apiserver/0"])
            await cluster.clock.sleep(random.random() * 20)
            await cluster.runtime.heal(name)
        else:
            actor = random.choice(["apiserver/0", "store", "kubelet/n1"])
            await cluster.runtime.crash(actor)
            await cluster.clock.sleep(random.random() * 5)
            await cluster.runtime.restart(actor)
