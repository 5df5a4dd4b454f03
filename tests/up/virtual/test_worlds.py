"""A cluster in virtual time with clients outside: time passes as far as asked, and the record repeats the run."""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import grpc
import pytest
import yaml

from kemu.lab.scenario.loading import loader
from kemu.lab.scenario.playing import judging, plays
from kemu.lab.scenario.playing.heartbeats import Heartbeats
from kemu.lab.scenario.scenarios import Scenario
from kemu.lab.up.virtual import channels, conditions, drivers, inputs, replays, worlds
from kemu.messages.k8s import apps_v1_pb2, core_v1_pb2
from kemu.messages.v1 import api_pb2, api_pb2_grpc
from kemu.runtime.env import SECOND_NS
from kemu.runtime.runlog.frames import Digester
from kemu.runtime.sim.simulation import SimRuntime

PODS = api_pb2.Resource(resource="pods", namespace="default")


def _scenario(**spec: Any) -> Scenario:
    document = {
        "apiVersion": "kemu.dev/v1",
        "kind": "Scenario",
        "metadata": {"name": "stepped"},
        "spec": {
            "duration": "1000h",
            "heartbeats": "exact",
            "controllers": ["node-lifecycle", "taint-eviction"],
            "nodes": [{"namePrefix": "n", "count": 2}],
            **spec,
        },
    }
    return loader.loads(yaml.safe_dump(document), "stepped.yaml")


def _pod(name: str) -> api_pb2.CreateRequest:
    pod = {
        "metadata": {"name": name, "annotations": {"kemu.dev/start-seconds": "60"}},
        "spec": {"containers": [{"name": "main", "image": "x"}]},
    }
    return api_pb2.CreateRequest(resource=PODS, object=yaml.safe_dump(pod).encode(), content_type="application/yaml")


class _Cluster:
    def __init__(self, driver: drivers.Driver) -> None:
        self.driver = driver
        self.api: Any = api_pb2_grpc.ApiStub(channels.channel(driver, "apiserver/0"))

    @property
    def now_s(self) -> float:
        return self.driver.world.now_ns / SECOND_NS

    async def phase(self, name: str) -> str:
        found = await self.api.Get(api_pb2.GetRequest(resource=PODS, name=name))
        return core_v1_pb2.Pod.FromString(found.object).status.phase


def _play(scenario: Scenario, world: worlds.World) -> tuple[Digester, judging.End]:
    log = Digester()
    recorder = plays.Recorder(log.append, scenario)
    runtime = SimRuntime(scenario.seed, recorder, scenario.timing, loop=world.loop)
    end = plays.run(runtime, world.main(runtime, scenario, recorder, Heartbeats(scenario, "sim")))
    return log, end


def _drive(
    scenario: Scenario, folder: Path, program: Callable[[_Cluster], Awaitable[None]]
) -> tuple[Digester, judging.End]:
    world = worlds.World()

    async def outside() -> None:
        record = inputs.Record(folder)
        driver = drivers.Driver(world, record)
        running = asyncio.create_task(driver.run())
        await driver.begun()
        try:
            await program(_Cluster(driver))
        finally:
            with contextlib.suppress(drivers.Ended):
                driver.put(["end", "stopped"])
            await running
            record.close()

    world.loop.outside = lambda: asyncio.run(outside())
    return _play(scenario, world)


def test_time_stands_still_but_for_answers(tmp_path: Path) -> None:
    async def program(cluster: _Cluster) -> None:
        await cluster.api.Create(_pod("a"))
        await asyncio.sleep(0.1)
        assert cluster.now_s < 0.1
        for _ in range(10):
            assert await cluster.phase("a") == "Pending"
        assert cluster.now_s < 0.2

    _drive(_scenario(), tmp_path, program)


def test_a_step_goes_as_far_as_it_says(tmp_path: Path) -> None:
    async def program(cluster: _Cluster) -> None:
        await cluster.api.Create(_pod("a"))
        before_s = cluster.now_s
        assert await cluster.driver.step(30) == "deadline"
        assert cluster.now_s == pytest.approx(before_s + 30)
        assert await cluster.phase("a") == "Pending"
        assert await cluster.driver.step_until("pod/a running", 600) == "reached"
        assert 60 <= cluster.now_s < 62
        assert await cluster.phase("a") == "Running"
        assert await cluster.driver.step_until("pod/a gone", 5) == "deadline"
        assert await cluster.driver.step(3600, idle=True) == "idle"
        assert cluster.now_s < 70

    _drive(_scenario(), tmp_path, program)


def test_a_client_acts_on_what_it_hears_at_the_time_of_the_event(tmp_path: Path) -> None:
    """A controller outside creates the next pod when one runs; ten of them, 60 s apart, in one long step."""
    started: list[float] = []

    async def controller(cluster: _Cluster) -> None:
        watch = cluster.api.Watch()
        await watch.write(api_pb2.WatchRequest(create=api_pb2.WatchCreate(watch_id=1, resource=PODS)))
        async for message in watch:
            for event in message.events:
                pod = core_v1_pb2.Pod.FromString(event.object)
                if pod.metadata.name == f"p{len(started)}" and pod.status.phase == "Running":
                    started.append(cluster.now_s)
                    await cluster.api.Create(_pod(f"p{len(started)}"))

    async def program(cluster: _Cluster) -> None:
        task = asyncio.create_task(controller(cluster))
        await cluster.api.Create(_pod("p0"))
        assert await cluster.driver.step_until("pod/p9 running", 3600) == "reached"
        task.cancel()

    _drive(_scenario(), tmp_path, program)
    assert [round(each / 60) for each in started[:9]] == [1, 2, 3, 4, 5, 6, 7, 8, 9]


def test_the_record_repeats_the_run_byte_for_byte(tmp_path: Path) -> None:
    async def program(cluster: _Cluster) -> None:
        watch = cluster.api.Watch()
        await watch.write(api_pb2.WatchRequest(create=api_pb2.WatchCreate(watch_id=1, resource=PODS)))
        await asyncio.gather(*(cluster.api.Create(_pod(f"p{number}")) for number in range(20)))
        with pytest.raises(grpc.aio.AioRpcError):
            await cluster.api.Create(_pod("p3"))
        await cluster.driver.step_until("pod/* running", 600)
        cluster.driver.put(["strike", {"crash": {"node": "n1", "powerOff": True}, "for": "10m"}, "blackout"])
        await cluster.driver.step_until("node/n1 NotReady", 600)
        watch.cancel()
        await cluster.driver.step(400)

    scenario = _scenario()
    log, end = _drive(scenario, tmp_path, program)
    again, same_end = _play(scenario, replays.world(inputs.Inputs(tmp_path)))
    assert same_end == end
    assert (again.events, again.digest()) == (log.events, log.digest())


def test_a_client_that_never_falls_silent_does_not_stop_time(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(drivers, "RESTLESS_S", 0.1)
    monkeypatch.setattr(drivers, "RESTLESS_TIMES", 1)
    found: list[Any] = []
    waited_for: set[str] = set()

    async def program(cluster: _Cluster) -> None:
        async def write() -> None:
            for number in range(1_000_000):
                await cluster.api.Create(_pod(f"p{number}"))
                waited_for.add(cluster.driver.waits_for)

        writer = asyncio.create_task(write())
        step = asyncio.create_task(cluster.driver.step(600))
        await asyncio.wait([step], timeout=60)
        found.append((step.done(), cluster.driver.hurried, cluster.driver.world.now_ns >= 600 * SECOND_NS))
        step.cancel()
        writer.cancel()

    _drive(_scenario(nodes=[{"name": "n1"}]), tmp_path, program)
    ((is_over, hurried, passed),) = found
    assert is_over
    assert passed
    assert hurried > 0
    assert any("its clients to be silent for 0.02 s" in each for each in waited_for)


@pytest.mark.parametrize("computes", [False, True])
def test_who_has_no_core_is_waited_for_longer_than_who_never_falls_silent(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, computes: bool
) -> None:
    """It is at work for three times as long as a client may be that is heard of all the time, or computes."""
    monkeypatch.setattr(drivers, "RESTLESS_S", 0.2)
    monkeypatch.setattr(drivers, "RESTLESS_TIMES", 1)
    found: list[int] = []

    async def program(cluster: _Cluster) -> None:
        begun = time.monotonic()
        cluster.driver.is_busy = lambda: time.monotonic() < begun + 0.6
        if computes:
            cluster.driver.computed_s = lambda: time.monotonic() - begun
        step = asyncio.create_task(cluster.driver.step(1))
        await cluster.api.Create(_pod("p"))
        await step
        found.append(cluster.driver.hurried)

    _drive(_scenario(nodes=[{"name": "n1"}]), tmp_path, program)
    assert bool(found[0]) is computes


def test_the_end_of_the_world_ends_calls_and_steps(tmp_path: Path) -> None:
    async def program(cluster: _Cluster) -> None:
        cluster.driver.put(["end", "stopped"])
        with pytest.raises(drivers.Ended):
            await cluster.driver.step(10)
        with pytest.raises(grpc.aio.AioRpcError):
            await cluster.phase("a")

    _drive(_scenario(), tmp_path, program)


@pytest.mark.parametrize(
    ("text", "holds"),
    [
        ("pod/a running", True),
        ("po/a Running", True),
        ("pod/a Ready", False),
        ("pod/a NotReady", True),
        ("pod/a PodScheduled", True),
        ("pod/a podscheduled=false", False),
        ("pod/a bound", True),
        ("pod/b exists", False),
        ("pod/b gone", True),
        ("pod/* running", True),
        ("pod/a {.status.phase}=Running", True),
        ("pod/a .spec.containers[0].image=x", True),
        ("pod/a .spec.containers[1].image=x", False),
        ("pod/a .status.phase!=Failed", True),
        (r"pod/a .metadata.labels.app\.kubernetes\.io/name=web", True),
        (r"pod/a {.metadata.labels.app\.kubernetes\.io/name}=other", False),
        ("pod/a .metadata.labels['app.kubernetes.io/name']=web", True),
        ('pod/a .metadata.annotations["example.com/x"]=', True),
        ("pod/a .kind!=Node", True),
    ],
)
def test_conditions(text: str, holds: bool) -> None:
    pod = core_v1_pb2.Pod()
    pod.metadata.name = "a"
    pod.metadata.labels["app.kubernetes.io/name"] = "web"
    pod.spec.nodeName = "n1"
    pod.spec.containers.add(name="main", image="x")
    pod.status.phase = "Running"
    pod.status.conditions.add(type="PodScheduled", status="True")
    (condition,) = conditions.parse(text)
    assert condition.holds([pod]) is holds


@pytest.mark.parametrize(
    ("status", "holds"),
    [
        ({"replicas": 3, "updatedReplicas": 3, "readyReplicas": 3, "availableReplicas": 3}, True),
        ({"replicas": 3, "updatedReplicas": 3, "readyReplicas": 3}, False),
        ({"replicas": 4, "updatedReplicas": 3, "readyReplicas": 4, "availableReplicas": 4}, False),
        ({"replicas": 3, "updatedReplicas": 2, "readyReplicas": 3, "availableReplicas": 3}, False),
        ({}, False),
    ],
)
def test_a_rollout_is_over_when_all_is_updated_and_available(status: dict[str, int], holds: bool) -> None:
    deployment = apps_v1_pb2.Deployment()
    deployment.metadata.name = "web"
    deployment.spec.replicas = 3
    deployment.spec.strategy.type = "RollingUpdate"
    for field, value in status.items():
        setattr(deployment.status, field, value)
    (condition,) = conditions.parse("deploy/web rolledOut")
    assert condition.holds([deployment]) is holds


@pytest.mark.parametrize("text", ["", "pod", "pod/a", "x/a running", "pod/a .spec[=1", "pod/a ?"])
def test_bad_conditions_are_named(text: str) -> None:
    with pytest.raises(conditions.BadCondition):
        conditions.parse(text)


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("pod/a .metadata.labels.app.kubernetes.io/name=web", "a dot in a key"),
        ("pod/a .status.fase=Running", "has no field fase, did you mean phase"),
        ("pod/a .spec.containers.image=x", "is a list"),
        ("pod/a .spec.nodeName[0]=x", "is no list"),
        ("pod/a .metadata.creationTimestamp.seconds=1", "holds no fields"),
        ("service/a running", "has no field phase"),
        ("configmap/a Ready", "has no field status"),
        ("pod/a runing", "did you mean running?"),
        ("deploy/a rolled-out", "did you mean rolledOut?"),
    ],
)
def test_what_can_never_hold_is_refused(text: str, why: str) -> None:
    with pytest.raises(conditions.BadCondition, match=why):
        conditions.parse(text)


@pytest.mark.parametrize(
    "text",
    [
        "pvc/a bound",
        "pod/a ready",
        "pod/a Bounded",
        "pod/a .spec.volumes[0].persistentVolumeClaim.claimName=c",
        "pod/a .spec.containers[0].resources.requests.cpu=1",
        "configmap/a .data['a.b']=x",
        "deploy/a .spec.strategy.rollingUpdate.maxSurge=1",
        "pdb/a .status.disruptedPods.a=x",
    ],
)
def test_what_may_hold_is_read(text: str) -> None:
    assert conditions.parse(text)
