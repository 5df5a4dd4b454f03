"""Machines that are shut down, gracefully or not, crash, and start again; and kubelets that stop alone."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from types import SimpleNamespace
from typing import Any

import pytest

from kemu.emulated.kubelet.node import shutdowns
from kemu.emulated.kubelet.settings import kubelet_configurations, shutdown_groups
from kemu.emulated.kubelet.settings.shutdown_groups import Group
from kemu.emulated.objects import meta
from kemu.errors import ScenarioError
from kemu.lab.scenario.playing import machines
from kemu.messages.k8s import core_v1_pb2
from kemu.runtime.env import ActorSpec
from tests.kubelet.cluster import Cluster, node, pod
from tests.scenario.texts import load

GRACEFUL = {"shutdownGracePeriod": "30s", "shutdownGracePeriodCriticalPods": "10s"}


# --- settings --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("kubelet", "groups"),
    [
        ({}, ()),
        ({"shutdownGracePeriod": "0s"}, ()),
        (GRACEFUL, (Group(0, 20), Group(2_000_000_000, 10))),
        ({"shutdownGracePeriod": "30s"}, (Group(0, 30), Group(2_000_000_000, 0))),
        (
            {
                "shutdownGracePeriodByPodPriority": [
                    {"priority": 1000, "shutdownGracePeriodSeconds": 5},
                    {"priority": -10, "shutdownGracePeriodSeconds": 60},
                    {"shutdownGracePeriodSeconds": 7},
                ]
            },
            (Group(-10, 60), Group(0, 7), Group(1000, 5)),
        ),
    ],
)
def test_groups(kubelet: Mapping[str, Any], groups: tuple[Group, ...]) -> None:
    assert kubelet_configurations.configuration(kubelet).shutdown == groups
    assert shutdown_groups.requested_s(groups) == sum(group.grace_s for group in groups)


@pytest.mark.parametrize(
    ("kubelet", "problem"),
    [
        ("{shutdownGracePeriod: 10s, shutdownGracePeriodCriticalPods: 11s}", "must not be longer than"),
        ("{shutdownGracePeriodCriticalPods: 1s}", "must not be longer than"),
        ("{shutdownGracePeriod: 500ms}", "must be 0, or 1s at least"),
        ("{shutdownGracePeriod: 10s, shutdownGracePeriodCriticalPods: 999ms}", "must be 0, or 1s at least"),
        ("{shutdownGracePeriod: soon}", "duration"),
        ("{shutdownGracePeriod: 9s, shutdownGracePeriodByPodPriority: [{priority: 1}]}", "cannot stand beside"),
        ("{shutdownGracePeriodByPodPriority: [{priority: high}]}", "must be a whole number"),
        ("{shutdownGracePeriodByPodPriority: [{class: high}]}", "is not a key"),
    ],
)
def test_mistakes_are_found_in_the_scenario(kubelet: str, problem: str) -> None:
    with pytest.raises(ScenarioError) as caught:
        load("", nodes=f"  nodes: [{{name: node-1, kubelet: {kubelet}}}]\n")
    assert any(problem in str(one) and "kubelet.shutdown" in one.path for one in caught.value.problems)


def test_pods_belong_to_the_highest_group_not_above_them() -> None:
    """Below the lowest they belong to the lowest."""

    def worker(priority: int) -> Any:
        return SimpleNamespace(pod=core_v1_pb2.Pod(spec=core_v1_pb2.PodSpec(priority=priority)))

    groups = [Group(0, 1), Group(10, 1), Group(100, 1)]
    workers = [worker(priority) for priority in (-5, 0, 9, 10, 99, 100, 2_000_000_000)]
    found = [[one.pod.spec.priority for one in some] for some in shutdowns.grouped(groups, workers)]
    assert found == [[-5, 0, 9], [10, 99], [100, 2_000_000_000]]


# --- machines --------------------------------------------------------------------------------------------------------


class Plant:
    """A cluster whose machines can be switched off and on."""

    def __init__(self, cluster: Cluster, kubelet: Mapping[str, Any] | None = None) -> None:
        self.cluster = cluster
        self.config: dict[str, Any] = {"kubelet": dict(kubelet or {}), "boot": {"id": "first"}}
        self.machines: machines.Machines

    def play(self, main: Any, **more: Any) -> Any:
        async def inner(cluster: Cluster) -> Any:
            self.machines = machines.Machines(cluster.runtime, cluster.runtime.env("operator"), 1)
            self.machines.know(cluster.kubelet(node(), **self.config))
            return await main(cluster)

        return self.cluster.play(inner, **self.config, **more)

    async def ready(self) -> tuple[str, str, str]:
        found = await self.cluster.client.get("nodes", "n1")
        condition = meta.get_condition(found.status.conditions, "Ready")
        assert condition is not None
        return condition.status, condition.reason, condition.message


def critical(name: str, **life: float) -> core_v1_pb2.Pod:
    found = pod(name, "", **life)
    found.metadata.namespace = "kube-system"
    found.spec.priorityClassName = "system-node-critical"
    return found


def container(found: core_v1_pb2.Pod | None) -> Any:
    assert found is not None
    (status,) = found.status.containerStatuses
    return status


def test_pods_end_group_by_group_then_the_machine_goes_off(cluster: Cluster) -> None:
    plant = Plant(cluster, GRACEFUL)

    async def main(cluster: Cluster) -> None:
        await cluster.create(
            pod("quick", "", shutdown=5),
            pod("slow", "", grace_s=60, shutdown=50),
            pod("short", "", grace_s=2, shutdown=9),
        )
        await cluster.client.create(critical("agent", shutdown=3))
        await cluster.at(10)
        assert await plant.machines.shut_down("n1")

    plant.play(main)
    at = {(kind, name): seconds for seconds, kind, name in cluster.told("terminating", "terminated")}
    assert [at["terminating", name] for name in ("quick", "slow", "short")] == [10.0] * 3
    assert at["terminated", "quick"] == 15.0
    assert at["terminated", "short"] == 12.0, "its own grace period, as that is shorter"
    assert at["terminated", "slow"] == 30.0, "not longer than its group has"
    assert at["terminating", "kube-system/agent"] == 30.0, "only then it is the turn of the critical ones"
    assert at["terminated", "kube-system/agent"] == 33.0
    (off_ns,) = [ns for ns, _, kind, _ in cluster.recorder.events if kind == "machine.off"]
    assert 33 <= off_ns / 1e9 <= 34.1
    graces = {data["pod"]: data["grace_s"] for data in cluster.data("shutting_down")}
    assert graces == {"default/quick": 20, "default/slow": 20, "default/short": 2, "kube-system/agent": 10}


def test_what_the_api_server_is_told(cluster: Cluster) -> None:
    plant = Plant(cluster, GRACEFUL)

    async def main(cluster: Cluster) -> Any:
        await cluster.create(pod("a", "", shutdown=5))
        await cluster.at(10)
        cluster.runtime.env("operator").spawn(plant.machines.shut_down("n1"), "shutdown")
        await cluster.at(11)
        during = await plant.ready()
        await cluster.create(pod("late", ""))
        await cluster.at(30)
        return during, await cluster.get("a"), await cluster.get("late")

    during, ended, late = plant.play(main)
    assert during == ("False", "KubeletNotReady", "node is shutting down")
    assert (ended.status.phase, ended.status.reason) == ("Failed", "Terminated")
    assert ended.status.message == "Pod was terminated in response to imminent node shutdown."
    condition = meta.get_condition(ended.status.conditions, "DisruptionTarget")
    assert (condition.status, condition.reason, condition.message) == (
        "True", "TerminationByKubelet", ended.status.message,
    )  # fmt: skip
    assert (late.status.phase, late.status.reason) == ("Failed", "NodeShutdown")
    assert late.status.message == "Pod was rejected: Pod was rejected as the node is shutting down."
    assert not late.metadata.HasField("deletionTimestamp"), "a shutdown deletes nothing"


def test_empty_groups_are_not_waited_for(cluster: Cluster) -> None:
    plant = Plant(
        cluster,
        {
            "shutdownGracePeriodByPodPriority": [
                {"priority": priority, "shutdownGracePeriodSeconds": 100} for priority in (0, 10, 1000)
            ]
        },
    )

    async def main(cluster: Cluster) -> None:
        await cluster.create(pod("a", "", shutdown=4))
        await cluster.at(10)
        await plant.machines.shut_down("n1")

    plant.play(main)
    (over_ns,) = [ns for ns, _, kind, _ in cluster.recorder.events if kind == "kubelet.shutdown_over"]
    assert over_ns // 10**9 == 14


def test_without_settings_the_machine_just_goes_off(cluster: Cluster) -> None:
    plant = Plant(cluster)

    async def main(cluster: Cluster) -> Any:
        await cluster.create(pod("a", "", shutdown=5))
        await cluster.at(10)
        assert await plant.machines.shut_down("n1")
        assert cluster.clock.now_ns() == 10 * 10**9
        assert not await plant.machines.shut_down("n1"), "it is off"
        await cluster.at(30)
        return await cluster.phase("a"), await plant.ready()

    phase, ready = plant.play(main)
    assert (phase, ready[0]) == ("Running", "True"), "nobody has told the API server"
    assert not cluster.told("terminating")


def test_a_kubelet_that_dies_in_the_shutdown_does_not_hold_it_up(cluster: Cluster) -> None:
    plant = Plant(cluster, GRACEFUL)

    async def main(cluster: Cluster) -> int:
        await cluster.create(pod("a", "", grace_s=60, shutdown=50))
        await cluster.at(10)
        task = cluster.runtime.env("operator").spawn(plant.machines.shut_down("n1"), "shutdown")
        await cluster.at(15)
        await cluster.runtime.crash("kubelet/n1")
        await task
        return cluster.clock.now_ns()

    assert 15 <= plant.play(main) / 1e9 <= 17


def test_after_a_shutdown_the_node_comes_back_empty(cluster: Cluster) -> None:
    plant = Plant(cluster, GRACEFUL)

    async def main(cluster: Cluster) -> Any:
        await cluster.create(pod("a", ""))
        await cluster.at(10)
        await plant.machines.shut_down("n1")
        await cluster.at(60)
        assert await plant.machines.switch_on("n1")
        assert not await plant.machines.switch_on("n1"), "it is on"
        await cluster.at(70)
        await cluster.create(pod("b", ""))
        await cluster.at(80)
        return await plant.ready(), await cluster.phase("a"), await cluster.phase("b")

    ready, a, b = plant.play(main)
    assert ready[0] == "True"
    assert (a, b) == ("Failed", "Running")


# --- crashes ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("restart", "phase", "restarts"), [("Always", "Running", 1), ("OnFailure", "Running", 1), ("Never", "Failed", 0)]
)
def test_containers_end_with_their_machine(restart: str, phase: str, restarts: int, cluster: Cluster) -> None:
    plant = Plant(cluster)

    async def main(cluster: Cluster) -> Any:
        await cluster.create(pod("a", "", restart=restart))
        await cluster.at(10)
        await plant.machines.switch_off("n1", "crash")
        await cluster.at(50)
        await plant.machines.switch_on("n1")
        await cluster.at(60)
        return await cluster.get("a")

    found = plant.play(main)
    status = container(found)
    assert (found.status.phase, status.restartCount) == (phase, restarts)
    ended = (status.lastState if restarts else status.state).terminated
    assert (ended.exitCode, ended.reason) == (255, "Unknown")
    began = cluster.clock.epoch_unix_s
    assert ended.startedAt.seconds < began + 10
    assert ended.finishedAt.seconds == began + 50
    if restarts:
        assert status.state.running.startedAt.seconds == began + 50


def test_what_had_finished_is_not_done_again(cluster: Cluster) -> None:
    plant = Plant(cluster)

    async def main(cluster: Cluster) -> Any:
        await cluster.create(pod("done", "", restart="OnFailure", run=3))
        half = pod("half", "", restart="OnFailure")
        half.metadata.annotations["kemu.dev/run-seconds.first"] = "3"
        half.spec.containers.add(name="first", image="app")
        await cluster.create(half)
        await cluster.at(10)
        await plant.machines.switch_off("n1", "crash")
        await cluster.at(20)
        await plant.machines.switch_on("n1")
        await cluster.at(30)
        return await cluster.get("done"), await cluster.get("half")

    done, half = plant.play(main)
    assert done.status.phase == "Succeeded"
    counts = {status.name: status.restartCount for status in half.status.containerStatuses}
    assert counts == {"main": 1, "first": 0}


def test_init_containers_run_once_more(cluster: Cluster) -> None:
    plant = Plant(cluster)

    async def main(cluster: Cluster) -> Any:
        one = pod("a", "")
        one.spec.initContainers.add(name="setup", image="app")
        one.metadata.annotations["kemu.dev/run-seconds.setup"] = "4"
        await cluster.create(one)
        await cluster.at(10)
        await plant.machines.switch_off("n1", "crash")
        await cluster.at(20)
        await plant.machines.switch_on("n1")
        await cluster.at(22)
        during = await cluster.get("a")
        await cluster.at(30)
        return during, await cluster.get("a")

    during, after = plant.play(main)
    assert during.status.initContainerStatuses[0].state.HasField("running")
    assert container(during).state.waiting.reason == "PodInitializing"
    assert (after.status.phase, container(after).restartCount) == ("Running", 1)
    assert after.status.initContainerStatuses[0].restartCount == 1


def test_containers_outlive_a_kubelet_that_crashes_alone(cluster: Cluster) -> None:
    plant = Plant(cluster)

    async def main(cluster: Cluster) -> Any:
        await cluster.create(pod("a", ""))
        await cluster.at(10)
        before = await cluster.client.get("nodes", "n1")
        await cluster.runtime.crash("kubelet/n1")
        await cluster.at(50)
        await cluster.runtime.restart("kubelet/n1")
        await cluster.at(60)
        return before, await cluster.client.get("nodes", "n1"), await cluster.get("a")

    before, after, found = plant.play(main)
    status = container(found)
    assert (status.restartCount, status.lastState.HasField("terminated")) == (0, False)
    assert status.state.running.startedAt.seconds < cluster.clock.epoch_unix_s + 10
    assert before.status.nodeInfo.bootID == after.status.nodeInfo.bootID == "first"


def test_a_kubelet_that_crashes_after_the_boot_does_not_boot_again(cluster: Cluster) -> None:
    plant = Plant(cluster)

    async def main(cluster: Cluster) -> Any:
        await cluster.create(pod("a", ""))
        await cluster.at(10)
        await plant.machines.switch_off("n1", "crash")
        await cluster.at(10.2)
        await plant.machines.switch_on("n1")
        assert cluster.clock.now_ns() >= 11 * 10**9, "a machine is off for a second at least"
        await cluster.at(11.5)
        await cluster.runtime.crash("kubelet/n1")
        await cluster.runtime.restart("kubelet/n1")
        await cluster.at(20)
        return await cluster.client.get("nodes", "n1"), await cluster.get("a")

    found, a = plant.play(main)
    assert container(a).restartCount == 1
    assert found.status.nodeInfo.bootID == machines.boot_id(1, "n1", 1)


@pytest.mark.parametrize("by_s", [-60, 60])
def test_a_boot_ends_containers_whatever_the_clock_shows(by_s: float, cluster: Cluster) -> None:
    """By their status they start only later, where the clock goes back while the machine is off."""
    plant = Plant(cluster)

    async def main(cluster: Cluster) -> Any:
        await cluster.create(pod("a", ""))
        await cluster.at(10)
        await plant.machines.switch_off("n1", "crash")
        await cluster.runtime.inject("jump", "clockJump", {"actor": ["kubelet/n1"], "by": float(by_s)})
        await cluster.at(12)
        await plant.machines.switch_on("n1")
        await cluster.at(30)
        return await cluster.get("a")

    assert container(plant.play(main)).restartCount == 1


@pytest.mark.parametrize("fault", ["diskFull", "bitRot", "lostSectors"])
def test_a_disk_that_fails_ends_no_kubelet_and_no_container(fault: str, cluster: Cluster) -> None:
    """A kubelet notes each boot there."""
    plant = Plant(cluster)

    async def main(cluster: Cluster) -> Any:
        await cluster.create(pod("a", ""))
        await cluster.at(10)
        if fault == "diskFull":
            await cluster.runtime.inject("full", fault, {"actor": ["kubelet/n1"]})
        await plant.machines.switch_off("n1", "crash")
        await cluster.at(12)
        await plant.machines.switch_on("n1")
        await cluster.at(20)
        if fault != "diskFull":
            await cluster.runtime.inject("rot", fault, {"actor": ["kubelet/n1"], "sectors": 1.0})
        await cluster.runtime.crash("kubelet/n1")
        await cluster.runtime.restart("kubelet/n1")
        await cluster.at(30)
        return await cluster.get("a")

    assert container(plant.play(main)).restartCount == 1


def test_a_pod_that_is_deleted_while_its_machine_is_off_is_gone_at_once(cluster: Cluster) -> None:
    plant = Plant(cluster)

    async def main(cluster: Cluster) -> Any:
        await cluster.create(pod("a", "", grace_s=600, shutdown=500))
        await cluster.at(10)
        await plant.machines.switch_off("n1", "crash")
        await cluster.client.delete("pods", "a", "default")
        await cluster.at(20)
        still = await cluster.phase("a")
        await plant.machines.switch_on("n1")
        await cluster.at(21)
        return still, await cluster.phase("a")

    assert plant.play(main) == ("Running", "gone")


def test_a_new_machine_knows_nothing_of_the_one_before(cluster: Cluster) -> None:
    """Its pods start all the same, even one that never restarts: there is no trace of a container."""
    plant = Plant(cluster)

    async def main(cluster: Cluster) -> Any:
        await cluster.create(pod("a", ""), pod("never", "", restart="Never"))
        await cluster.at(10)
        plant.machines.remove("n1")
        await cluster.runtime.stop("kubelet/n1")
        await cluster.client.delete("nodes", "n1")
        await cluster.at(20)
        await cluster.runtime.launch([plant.machines.install(cluster.kubelet(node(), **plant.config))])
        await cluster.at(30)
        return await cluster.get("a"), await cluster.get("never")

    for found in plant.play(main):
        status = container(found)
        assert (found.status.phase, status.restartCount) == ("Running", 1)
        assert (status.lastState.terminated.exitCode, status.lastState.terminated.reason) == (
            137, "ContainerStatusUnknown",
        )  # fmt: skip


def test_boots_have_ids_of_their_own() -> None:
    ids = {machines.boot_id(seed, name, number) for seed in (1, 2) for name in ("a", "b") for number in range(3)}
    assert len(ids) == 12
    assert {len(one) for one in ids} == {36}


def test_a_spec_can_be_changed_at_a_restart(cluster: Cluster) -> None:
    """Which is how a kubelet hears of its machine's boot."""

    async def main(cluster: Cluster) -> Any:
        await cluster.at(5)
        await cluster.runtime.crash("kubelet/n1")
        spec: ActorSpec = cluster.kubelet(node())
        other = dataclasses.replace(spec, config={**spec.config, "boot": {"id": "other", "at_s": 6}})
        await cluster.runtime.restart("kubelet/n1", other)
        await cluster.at(10)
        return (await cluster.client.get("nodes", "n1")).status.nodeInfo.bootID

    assert cluster.play(main) == "other"
