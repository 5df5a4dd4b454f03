"""kemu.cluster: a cluster to program against, in virtual time and on Ray."""

from __future__ import annotations

import asyncio
import sys
import time
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

import kemu
from kemu.doors.api import simulations
from kemu.errors import Deadlock, KemuError, Nondeterminism, NotFound, ScenarioError, UserCodeFailed

EXAMPLE = Path(__file__).resolve().parents[2] / "examples" / "schedulers"


@pytest.fixture
def first_fit(monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    monkeypatch.syspath_prepend(str(EXAMPLE))
    import first_fit  # type: ignore[import-not-found]

    yield first_fit.FirstFit
    del sys.modules["first_fit"]


def in_cluster(body: Callable[[kemu.Cluster], Awaitable[Any]], seed: int = 0, **arguments: Any) -> kemu.Run:
    """The run of a cluster in which ``body`` happens."""

    async def main() -> kemu.Run:
        async with kemu.cluster(**arguments) as cluster:
            await body(cluster)
        assert cluster.run is not None
        return cluster.run

    return kemu.simulate(main, seed=seed)


async def one_runs(c: kemu.Cluster) -> None:
    await c.create(kemu.pod("a", cpu=1))
    assert await c.eventually(lambda: c.pod("a").node, within=10) == "node-1"
    await c.eventually(lambda: c.pod("a").running, within=10)


def test_a_pod_comes_to_run() -> None:
    run = in_cluster(one_runs)
    assert run.holds
    assert run.pods["a"].bound_by == "default-scheduler/0"
    assert run.checks["pod-bound-at-most-once"].holds is True


def test_the_same_seed_gives_the_same_bytes_and_another_one_others() -> None:
    timing = {"apiLatency": {"uniform": {"min": "1ms", "max": "9ms"}}}
    digests = [in_cluster(one_runs, seed, timing=timing).digest for seed in (1, 1, 2)]
    assert digests[0] == digests[1] != digests[2]


def test_an_hour_takes_no_time() -> None:
    async def body(c: kemu.Cluster) -> None:
        await c.advance(1800)
        await asyncio.sleep(1800)
        assert c.now_s == 3600

    began = time.perf_counter()
    in_cluster(body)
    assert time.perf_counter() - began < 60


def test_nodes_and_pods_of_every_form() -> None:
    async def body(c: kemu.Cluster) -> None:
        await c.create("apiVersion: v1\nkind: Pod\nmetadata: {name: text}\nspec: {containers: [{name: m}]}")
        await c.create(kemu.pod("b", namespace="kube-system", labels={"app": "x"}, memory="1Gi", run_s=5))
        await c.create(kemu.pod("c", node="small"))
        await c.eventually(lambda: [pod.running for pod in c.pods.values()] == [True] * 3)
        assert c.pod("kube-system/b").requests == {"memory": 1 << 30}
        assert [pod.metadata.name for pod in await c.list(label_selector="app=x")] == ["b"]
        assert (await c.get("small", "node")).status.allocatable["cpu"].string == "2"
        await c.eventually(lambda: c.pod("kube-system/b").phase == "Succeeded", within=10)

    assert in_cluster(body, nodes=["big", {"name": "small", "allocatable": {"cpu": "2"}}]).holds


def test_requests() -> None:
    async def body(c: kemu.Cluster) -> None:
        await one_runs(c)
        await c.patch("a", {"metadata": {"labels": {"colour": "red"}}})
        assert (await c.get("a")).metadata.labels["colour"] == "red"
        await c.cordon("node-1")
        await c.create(kemu.pod("b"))
        await c.always(lambda: not c.pod("b").bound, during=20)
        await c.uncordon("node-1")
        await c.eventually(lambda: c.pod("b").running)
        await c.finish("b", exit_code=3)
        await c.eventually(lambda: c.pod("b").happened("ended"))
        await c.evict("a")
        await c.eventually(lambda: c.pod("a").deleted)
        await c.delete("b", grace_period_s=0)
        with pytest.raises(NotFound):
            await c.get("b")
        await c.settle()

    assert in_cluster(body).holds


def test_a_predicate_is_asked_at_every_change_and_an_awaitable_one_now_and_then() -> None:
    async def body(c: kemu.Cluster) -> None:
        await c.create(kemu.pod("a"))
        await c.eventually(lambda cluster: cluster.pod("a").bound)
        assert c.now_s == c.pod("a").bound_s

        async def is_running() -> bool:
            return bool((await c.get("a")).status.phase == "Running")

        await c.eventually(is_running)
        assert c.pod("a").running

    in_cluster(body)


def test_what_never_becomes_true_fails_with_the_story() -> None:
    async def body(c: kemu.Cluster) -> None:
        await c.create(kemu.pod("huge", cpu=100))
        await c.eventually(lambda: c.pod("huge").running, within=5)

    with pytest.raises(AssertionError, match=r"at 5\.00. s: not true within 5 s: .*running") as caught:
        in_cluster(body)
    note, again = caught.value.__notes__
    assert again.startswith("again: kemu.simulate(")
    assert "huge fits nowhere (Insufficient cpu" in note


def test_what_does_not_stay_true_fails() -> None:
    async def body(c: kemu.Cluster) -> None:
        await c.create(kemu.pod("a"))
        await c.always(lambda: not c.pod("a").running, during=60)

    with pytest.raises(AssertionError, match=r"at 0\.01. s: no longer true"):
        in_cluster(body)


def test_a_check_that_fails_at_the_end_fails_the_block() -> None:
    async def body(c: kemu.Cluster) -> None:
        await c.create(kemu.pod("a", cpu=3, scheduler="red"), kemu.pod("b", cpu=3, scheduler="blue"))
        await c.settle()

    expect = [{"id": "nobody-is-rejected", "counter": "admissions_rejected", "equals": 0}]
    node = {"name": "node-1", "allocatable": {"cpu": "4"}}
    arguments: dict[str, Any] = {"nodes": [node], "schedulers": ["red", "blue"], "timing": {"schedulingCycle": "500ms"}}
    with pytest.raises(kemu.RunFailed) as caught:
        in_cluster(body, **arguments, expect=expect)
    assert "✗ nobody-is-rejected: admissions_rejected = 1" in str(caught.value)
    assert "is rejected: OutOfcpu" in str(caught.value)
    assert len(str(caught.value).splitlines()) <= 40
    assert in_cluster(body, **arguments).holds


def test_what_could_not_be_judged_fails_the_block_too() -> None:
    with pytest.raises(kemu.RunFailed, match=r"\? red-picks-node-1: "):
        in_cluster(lambda c: c.advance(1), scenario="races/two-schedulers-one-node")


def test_a_scheduler_of_ones_own(first_fit: Any) -> None:
    async def body(c: kemu.Cluster) -> None:
        await c.create(*(kemu.pod(f"p{n}", cpu=3) for n in range(6)))
        await c.eventually(lambda: all(pod.running for pod in c.pods.values()))

    entry = {"name": "default-scheduler", "factory": first_fit, "replicas": 2, "config": {"thinkSeconds": 0.01}}
    assert in_cluster(body, nodes=3, schedulers=[first_fit]).pods["p0"].bound_by == "default-scheduler/0"
    run = in_cluster(body, nodes=3, schedulers=[entry])
    assert {event.actor for event in run.events} >= {"scheduler/default-scheduler/0", "scheduler/default-scheduler/1"}
    assert run.counts["write_conflicts"] > 0


class Idle:
    """Binds nothing; raises after a second if told to."""

    def __init__(self, env: Any, config: Any) -> None:
        self.env = env
        self.config = config

    async def run(self) -> None:
        self.env.ready()
        await self.env.clock.sleep(1)
        if self.config["config"].get("raise"):
            raise LookupError("as told")


def test_a_class_that_no_import_finds_will_do() -> None:
    class Local(Idle):
        pass

    async def body(c: kemu.Cluster) -> None:
        await c.create(kemu.pod("a"))
        await c.always(lambda: not c.pod("a").bound, during=5)
        assert c.roster.count("scheduler/default-scheduler/0") == 1

    in_cluster(body, schedulers=[Local])


def test_what_an_actor_raises_fails_the_program_wherever_it_waits() -> None:
    entry = {"name": "mine", "factory": Idle, "config": {"raise": True}}
    with pytest.raises(UserCodeFailed, match="LookupError: as told") as caught:
        in_cluster(lambda c: c.advance(10), schedulers=[entry])
    assert caught.value.function == "Idle.run"


def test_faults() -> None:
    async def body(c: kemu.Cluster) -> None:
        await c.crash("scheduler/default-scheduler/0", restart_after=20)
        await c.create(kemu.pod("a"))
        await c.always(lambda: not c.pod("a").bound, during=15)
        await c.eventually(lambda: c.pod("a").running, within=10)
        cut = await c.partition("kubelet/node-1", "apiserver/*")
        await c.create(kemu.pod("b"))
        await c.always(lambda: not c.pod("b").running, during=10)
        await c.heal(cut)
        await c.eventually(lambda: c.pod("b").running, within=60)
        paused = await c.pause("store")
        asked = asyncio.create_task(c.create(kemu.pod("c")))
        await c.advance(5)
        assert not asked.done()
        await c.heal(paused)
        await asked
        await c.chaos({"cutWatches": {"of": "scheduler/*"}})
        await c.eventually(lambda: c.pod("c").running, within=60)

    run = in_cluster(body)
    assert run.holds, run.failures
    assert {what: one["count"] for what, one in run.data["faults"].items()} == {
        "crash": 1,
        "partition": 1,
        "pause": 1,
        "cutWatches": 1,
    }


def test_a_fault_that_cannot_be_is_told() -> None:
    with pytest.raises(ScenarioError, match="no actor is called kubelet/nobody"):
        in_cluster(lambda c: c.crash("kubelet/nobody"))


def test_it_may_begin_with_a_scenario() -> None:
    async def body(c: kemu.Cluster) -> None:
        await c.eventually(lambda: c.pod("red-pod").bound and c.pod("blue-pod").bound, within=20)
        await c.settle()

    run = in_cluster(body, scenario="races/two-schedulers-one-node")
    assert run.holds
    assert run.expectations["one-is-rejected"].holds is True


def test_several_clusters_in_one_program() -> None:
    async def main() -> list[float]:
        times = []
        for _ in range(2):
            async with kemu.cluster() as c:
                await one_runs(c)
                times.append(c.now_s)
        return times

    first, second = kemu.simulate(main)
    assert first == second


def test_virtual_time_has_to_be_around_it() -> None:
    async def main() -> None:
        async with kemu.cluster():
            pass

    with pytest.raises(KemuError, match=r"needs virtual time around it: kemu\.simulate"):
        asyncio.run(main())


def test_a_program_that_waits_for_nothing_is_a_deadlock() -> None:
    async def main() -> None:
        await asyncio.get_running_loop().create_future()

    with pytest.raises(Deadlock):
        kemu.simulate(main)
    with pytest.raises(Nondeterminism, match="outside of the simulated world"):
        kemu.simulate(lambda: asyncio.to_thread(print))


def test_a_program_may_have_a_limit() -> None:
    async def main() -> None:
        async with kemu.cluster() as c:
            await c.advance(1000)

    with pytest.raises(simulations.TooLong, match="not over after 100 virtual seconds"):
        simulations.Simulation(limit_s=100).run(main)
    simulations.Simulation(limit_s=2000).run(main)


def test_mistakes() -> None:
    with pytest.raises(ScenarioError, match="nodez"):
        kemu.cluster(nodez=3)
    with pytest.raises(ValueError, match="runtime must be sim, wall or ray"):
        kemu.cluster(runtime="simulation")

    class Local(Idle):
        pass

    with pytest.raises(ValueError, match="cannot be imported by the processes of a run on Ray"):
        kemu.cluster(schedulers=[Local], runtime="ray")


@pytest.mark.ray
@pytest.mark.slow
@pytest.mark.usefixtures("local_ray")
async def test_on_ray() -> None:
    async with kemu.cluster(nodes=2, runtime="ray", speed=10, schedulers=["default-scheduler"]) as c:
        await c.create(kemu.pod("a", cpu=1))
        await c.eventually(lambda: c.pod("a").running, within=60)
        await c.crash("scheduler/default-scheduler/0", restart_after=1)
        await c.create(kemu.pod("b", cpu=1))
        await c.eventually(lambda: c.pod("b").running, within=120)
        await c.delete("a")
        await c.eventually(lambda: c.pod("a").deleted, within=60)
    assert c.run is not None
    assert c.run.holds


@pytest.mark.ray
@pytest.mark.slow
@pytest.mark.usefixtures("local_ray")
async def test_what_an_actor_raises_on_ray() -> None:
    entry = {"name": "mine", "factory": Idle, "config": {"raise": True}}
    with pytest.raises(UserCodeFailed, match="LookupError: as told"):
        async with kemu.cluster(runtime="ray", speed=10, schedulers=[entry]) as c:
            await c.advance(60)
