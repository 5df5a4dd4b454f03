"""Cores that the control plane shares in virtual time: processor sharing by hand-computed times."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from typing import Any

import pytest
import yaml

import kemu
from kemu import errors
from kemu.runtime.env import ActorSpec, Env
from kemu.runtime.sim.simulation import SimRuntime

MS = 1_000_000


class Worker:
    """Works so many ms at the times that it is told; logs when each piece is done."""

    def __init__(self, env: Env, config: dict[str, Any]) -> None:
        self.env, self.pieces = env, config["pieces"]

    async def run(self) -> None:
        self.env.ready()
        await self.env.clock.started()
        await asyncio.gather(*(self._work(at_ms, ms) for at_ms, ms in self.pieces))

    async def _work(self, at_ms: float, ms: float) -> None:
        await self.env.clock.sleep(at_ms / 1e3)
        await self.env.work(ms / 1e3)
        self.env.log("worker.done", {"ms": self.env.clock.now_ns() / MS})


def play(cores: int | None, pieces: dict[str, list[tuple[float, float]]], *faults: Any) -> dict[str, list[float]]:
    """By worker: when its pieces were done, in ms. ``faults``: coroutines of the runtime."""
    done: dict[str, list[float]] = {name: [] for name in pieces}

    def sink(time_ns: int, actor: str, kind: str, data: Any) -> None:
        if kind == "worker.done":
            done[actor].append(data["ms"])

    runtime = SimRuntime(1, sink, {} if cores is None else {"cores": cores})

    async def main() -> None:
        await runtime.launch(
            [ActorSpec(name, "tests.runtime.test_cores:Worker", {"pieces": one}) for name, one in pieces.items()]
        )
        await runtime.begin()
        for at_ms, fault in faults:
            await runtime.clock.sleep(at_ms / 1e3 - runtime.clock.now_ns() / 1e9)
            strike: Coroutine[Any, Any, None] = fault(runtime)
            await strike
        await runtime.clock.sleep(10)

    runtime.run(main())
    return done


def test_without_cores_everything_works_at_once() -> None:
    assert play(None, {"a": [(0, 10), (0, 10)], "b": [(5, 10)]}) == {"a": [10, 10], "b": [15]}


def test_two_jobs_on_one_core_take_twice_as_long() -> None:
    assert play(1, {"a": [(0, 10)], "b": [(0, 10)]}) == {"a": [20], "b": [20]}


def test_as_many_jobs_as_cores_do_not_notice_each_other() -> None:
    assert play(2, {"a": [(0, 10)], "b": [(3, 10)]}) == {"a": [10], "b": [13]}


def test_four_jobs_on_two_cores() -> None:
    """a: 3 ms alone, then half a core beside three others; when a 2 ms job ends, two thirds of one."""
    # 0..3: a alone (3 of 10 done). 3..7: four jobs, half a core each: a 5, b 2 (done), c 2, d 2 of theirs.
    # 7..: three jobs, 2/3 core each: c and d have 2 left: done at 10, a has 7. Then a alone: 3 more.
    done = play(2, {"a": [(0, 10)], "b": [(3, 2)], "c": [(3, 4)], "d": [(3, 4)]})
    assert done == {"a": [13], "b": [7], "c": [10], "d": [10]}


def test_one_job_never_has_two_cores() -> None:
    assert play(8, {"a": [(0, 10)]}) == {"a": [10]}


def test_thirds_of_a_core_round_to_whole_nanoseconds() -> None:
    done = play(1, {name: [(0, 1)] for name in "abc"})
    assert done == {name: [3] for name in "abc"}


def test_a_crash_frees_its_core() -> None:
    # Until 10 both have half a core: 5 of b's 10 are left, which it then does alone.
    done = play(1, {"a": [(0, 50)], "b": [(0, 10)]}, (10, lambda runtime: runtime.crash("a")))
    assert done == {"a": [], "b": [15]}


def test_a_paused_actor_gets_no_core_and_goes_on_where_it_was() -> None:
    faults = (10, lambda runtime: runtime.pause("a")), (40, lambda runtime: runtime.resume("a"))
    # a: 5 of 10 at 10 ms, held until 40, alone from then. b: 5 at 10, alone until 15.
    assert play(1, {"a": [(0, 10)], "b": [(0, 10)]}, *faults) == {"a": [45], "b": [15]}


def test_an_actor_that_starts_again_has_no_old_work() -> None:
    async def again(runtime: SimRuntime) -> None:
        await runtime.crash("a")
        await runtime.restart("a")

    # b: 5 of 20 at 10 ms. a starts anew then, beside it: 10 each take until 30; b's last 5 alone.
    assert play(1, {"a": [(0, 10)], "b": [(0, 20)]}, (10, again)) == {"a": [30], "b": [35]}


def test_a_job_that_is_cancelled_leaves_its_core() -> None:
    runtime = SimRuntime(1, lambda *event: None, {"cores": 1})
    env = runtime.env("user")

    async def main() -> float:
        await runtime.begin()
        long = asyncio.ensure_future(env.work(1))
        short = asyncio.ensure_future(env.work(0.01))
        await env.clock.sleep(0.01)
        long.cancel()
        await short
        return env.clock.now_ns() / MS

    assert runtime.run(main()) == 15


SCENARIO = """
apiVersion: kemu.dev/v1
kind: Scenario
metadata: {name: cores}
spec:
  seed: 1
  duration: 1m
  timing: {schedulingCycle: 10ms}
  nodes: [{count: 4, namePrefix: node-, allocatable: {cpu: "64", memory: 64Gi, pods: "110"}}]
  schedulers: [{name: a}, {name: b}]
  workloads:
    - {name: of-a, start: 1s, arrivals: {count: 50}, pods: {spec: &pod {schedulerName: a, containers: [{name: main}]}}}
    - {name: of-b, start: 1s, arrivals: {count: 50}, pods: {spec: {<<: *pod, schedulerName: b}}}
"""


def _last_bound_s(**timing: Any) -> float:
    scenario = yaml.safe_load(SCENARIO)
    scenario["spec"]["timing"] |= timing
    run = kemu.run(scenario)
    run.check()
    return max(pod.bound_s or 0.0 for pod in run.pods.values()) - 1


def test_two_schedulers_on_one_core_need_twice_the_time() -> None:
    alone = _last_bound_s()
    assert alone == pytest.approx(0.5, abs=0.01)
    assert _last_bound_s(cores=2) == alone
    assert _last_bound_s(cores=1) == pytest.approx(1.0, abs=0.01)


def test_requests_work_on_the_same_cores() -> None:
    """100 bindings and 100 Events beside the cycles, 2 ms each."""
    free, shared = _last_bound_s(apiService="2ms"), _last_bound_s(apiService="2ms", cores=1)
    assert free == pytest.approx(0.5, abs=0.05)
    assert shared > 1.3


@pytest.mark.parametrize("runtime", ["wall", "ray"])
def test_real_time_shares_the_machines_own_cores(runtime: str) -> None:
    scenario = yaml.safe_load(SCENARIO)
    scenario["spec"]["timing"]["cores"] = 1
    with pytest.raises(errors.KemuError, match=r"timing\.cores needs --runtime sim"):
        kemu.run(scenario, runtime=runtime)


TOGETHER = """
apiVersion: kemu.dev/v1
kind: Scenario
metadata: {name: together}
spec:
  seed: 3
  duration: 1m
  timing:
    preset: realistic
    cores: 2
    clientLimits: kubernetes
    apiService: {lognormal: {median: 2ms, p99: 20ms}}
    schedulingCycle: {lognormal: {median: 10ms, p99: 50ms}}
  nodes: [{count: 4, namePrefix: node-, allocatable: {cpu: "64", memory: 64Gi, pods: "110"}}]
  schedulers: [{name: default-scheduler, replicas: 3}]
  workloads:
    - name: pods
      start: 1s
      arrivals: {every: {exponential: {mean: 10ms}}, count: 300}
      pods: {spec: {containers: [{name: main}]}}
  chaos:
    - {id: dies, at: 2s, for: 1s, crash: {actor: scheduler/default-scheduler/0}}
    - {id: stands, at: 2500ms, for: 1s, pause: {actor: scheduler/default-scheduler/1}}
    - {id: server, at: 3s, for: 1s, crash: {actor: apiserver/0}}
"""


@pytest.mark.thorough
def test_cores_limits_faults_and_real_times_together_repeat() -> None:
    """Crashes and pauses of actors whose jobs are on a core: every pod is bound, and the run is the same again."""
    first, second = kemu.run(TOGETHER), kemu.run(TOGETHER)
    first.check()
    assert all(pod.bound for pod in first.pods.values())
    assert first.digest == second.digest
    assert first.digest != kemu.run(TOGETHER, settings={"timing.cores": 1}).digest
