"""Pods of several containers: init containers, sidecars, main containers, each with a state and restarts of its own."""

from __future__ import annotations

from typing import Any

import pytest

from kemu.emulated.client import informers
from kemu.emulated.objects import meta
from kemu.messages.k8s import core_v1_pb2
from tests.kubelet.cluster import Cluster, pod


def several(
    name: str, *, inits: tuple[str, ...] = (), mains: tuple[str, ...] = ("main",), restart: str = "Always", **life: str
) -> core_v1_pb2.Pod:
    """``inits``: names of init containers; those that begin with ``side`` are sidecars. ``life``: annotations, such as
    ``run__main="5"`` for ``kemu.dev/run-seconds.main``."""
    found = pod(name, restart=restart)
    spec = found.spec
    del spec.containers[:]
    for one in inits:
        container = spec.initContainers.add(name=one, image="app")
        if one.startswith("side"):
            container.restartPolicy = "Always"
    for one in mains:
        spec.containers.add(name=one, image="app")
    words = {"run": "run-seconds", "exit": "exit-code", "shutdown": "shutdown-seconds", "start": "start-seconds"}
    for key, value in sorted(life.items()):
        what, _, whose = key.partition("__")
        found.metadata.annotations[f"kemu.dev/{words[what]}{'.' if whose else ''}{whose.replace('_', '-')}"] = value
    return found


def happened(cluster: Cluster, *kinds: str) -> list[tuple[float, str, str]]:
    """(seconds, event, container)."""
    return [
        (round(ns / 1e9, 1), kind.removeprefix("kubelet."), data["container"])
        for ns, _, kind, data in cluster.recorder.events
        if kind.removeprefix("kubelet.") in (kinds or ("started", "exited"))
    ]


async def found(cluster: Cluster, name: str) -> Any:
    one = await cluster.pod(name)
    return one.status


def test_init_containers_run_one_after_the_other_before_the_others(cluster: Cluster) -> None:
    async def main(cluster: Cluster) -> None:
        await cluster.create(
            several("a", inits=("fetch", "migrate"), mains=("web", "log"), run__fetch="5", run__migrate="3")
        )
        await cluster.at(6)
        status = await found(cluster, "a")
        assert status.phase == "Pending"
        fetch, migrate = status.initContainerStatuses
        assert (fetch.state.terminated.exitCode, fetch.state.terminated.reason, fetch.ready) == (0, "Completed", True)
        assert migrate.state.HasField("running")
        assert not migrate.ready
        assert [one.state.waiting.reason for one in status.containerStatuses] == ["PodInitializing"] * 2
        initialized = meta.get_condition(status.conditions, "Initialized")
        assert initialized is not None
        assert (initialized.status, initialized.reason) == ("False", "ContainersNotInitialized")
        assert initialized.message == "containers with incomplete status: [migrate]"
        await cluster.at(9)
        status = await found(cluster, "a")
        assert status.phase == "Running"
        assert all(meta.has_condition(status.conditions, one) for one in ("Initialized", "Ready", "ContainersReady"))

    cluster.play(main)
    assert happened(cluster) == [
        (0.0, "started", "fetch"),
        (5.0, "exited", "fetch"),
        (5.0, "started", "migrate"),
        (8.0, "exited", "migrate"),
        (8.0, "started", "web"),
        (8.0, "started", "log"),
    ]
    assert cluster.told("running") == [(8.0, "running", "a")]


@pytest.mark.parametrize(("restart", "phase"), [("Never", "Failed"), ("OnFailure", "Pending"), ("Always", "Pending")])
def test_a_failing_init_container(cluster: Cluster, restart: str, phase: str) -> None:
    async def main(cluster: Cluster) -> None:
        await cluster.create(several("a", inits=("fetch",), restart=restart, run__fetch="1", exit__fetch="2"))
        await cluster.at(6)
        status = await found(cluster, "a")
        assert status.phase == phase
        (fetch,) = status.initContainerStatuses
        if restart == "Never":
            assert fetch.state.terminated.exitCode == 2
            assert status.containerStatuses[0].state.waiting.reason == "PodInitializing"
        else:
            assert fetch.state.waiting.reason == "CrashLoopBackOff"
            assert (fetch.restartCount, fetch.lastState.terminated.exitCode) == (1, 2)

    cluster.play(main)
    assert [one["container"] for one in cluster.data("restarting")] == (
        [] if restart == "Never" else ["fetch", "fetch"]
    )
    assert cluster.told("running") == []


def test_every_container_has_a_back_off_of_its_own(cluster: Cluster) -> None:
    async def main(cluster: Cluster) -> None:
        await cluster.create(several("a", mains=("steady", "shaky"), run__shaky="1", exit__shaky="1"))
        await cluster.at(5)
        status = await found(cluster, "a")
        assert status.phase == "Running"
        steady, shaky = status.containerStatuses
        assert (steady.restartCount, steady.ready) == (0, True)
        assert (shaky.restartCount, shaky.state.waiting.reason) == (1, "CrashLoopBackOff")
        ready = meta.get_condition(status.conditions, "Ready")
        assert ready is not None
        assert ready.message == "containers with unready status: [shaky]"
        await cluster.at(50)

    cluster.play(main)
    assert {one["container"] for one in cluster.data("restarting")} == {"shaky"}
    assert [one["delay_s"] for one in cluster.data("restarting")] == [0, 10, 20, 40]
    assert len(cluster.told("running")) == 1


def test_a_pod_ends_when_its_last_main_container_does(cluster: Cluster) -> None:
    async def main(cluster: Cluster) -> None:
        await cluster.create(
            several("good", mains=("x", "y"), restart="Never", run__x="2", run__y="6"),
            several("bad", mains=("x", "y"), restart="Never", run__x="2", run__y="6", exit__x="9"),
        )
        await cluster.at(4)
        status = await found(cluster, "bad")
        assert status.phase == "Running"
        assert status.containerStatuses[0].state.terminated.exitCode == 9
        await cluster.at(7)
        assert [await cluster.phase(name) for name in ("good", "bad")] == ["Succeeded", "Failed"]

    cluster.play(main)
    assert [(one["phase"], one["exit_code"]) for one in cluster.data("finished")] == [("Succeeded", 0), ("Failed", 9)]


def test_a_container_may_have_its_own_policy_and_rules(cluster: Cluster) -> None:
    async def main(cluster: Cluster) -> None:
        one = several("a", mains=("once", "again"), restart="Never", run="2", exit__again="42")
        once, again = one.spec.containers
        once.restartPolicy = again.restartPolicy = "Never"
        rule = again.restartPolicyRules.add(action="Restart")
        rule.exitCodes.operator = "In"
        rule.exitCodes.values.append(42)
        await cluster.create(one)
        await cluster.at(10)
        assert await cluster.phase("a") == "Running"

    cluster.play(main)
    assert {one["container"] for one in cluster.data("restarting")} == {"again"}


def test_sidecars_start_first_and_stop_last_in_reverse(cluster: Cluster) -> None:
    async def main(cluster: Cluster) -> None:
        await cluster.create(
            several(
                "a", inits=("side-1", "setup", "side-2"), run__setup="2", start__side_2="1",
                shutdown__main="5", shutdown__side_2="3",
            )
        )  # fmt: skip
        await cluster.at(20)
        status = await found(cluster, "a")
        assert status.phase == "Running"
        side, setup, _ = status.initContainerStatuses
        assert (side.started, side.ready, side.state.HasField("running")) == (True, True, True)
        assert (setup.started, setup.ready, setup.state.terminated.exitCode) == (False, True, 0)
        await cluster.client.delete("pods", "a", "default")
        await cluster.at(40)
        assert await cluster.phase("a") == "gone"

    cluster.play(main)
    assert happened(cluster) == [
        (0.0, "started", "side-1"),
        (0.0, "started", "setup"),
        (2.0, "exited", "setup"),
        (3.0, "started", "side-2"),
        (3.0, "started", "main"),
        (25.0, "exited", "main"),
        (28.0, "exited", "side-2"),
        (28.0, "exited", "side-1"),
    ]


def test_a_job_is_not_kept_alive_by_its_sidecar(cluster: Cluster) -> None:
    async def main(cluster: Cluster) -> None:
        job = several("a", inits=("side",), restart="Never", run__main="10", shutdown__side="4")
        await cluster.create(job)
        await cluster.at(12)
        # Its last phase has to wait until nothing runs.
        assert await cluster.phase("a") == "Running"
        await cluster.at(15)
        status = await found(cluster, "a")
        assert status.phase == "Succeeded"
        assert status.initContainerStatuses[0].state.terminated.exitCode == 0

    cluster.play(main)
    assert happened(cluster, "exited") == [(10.0, "exited", "main"), (14.0, "exited", "side")]
    assert cluster.told("finished", "terminating", "terminated") == [(14.0, "finished", "a")]


def test_a_sidecar_that_crashes_is_restarted_whatever_the_policy(cluster: Cluster) -> None:
    async def main(cluster: Cluster) -> None:
        await cluster.create(several("a", inits=("side",), restart="Never", run__side="3", exit__side="1"))
        await cluster.at(8)
        status = await found(cluster, "a")
        assert status.phase == "Running"
        assert status.initContainerStatuses[0].restartCount == 1
        assert meta.has_condition(status.conditions, "Initialized")
        assert meta.has_condition(status.conditions, "Ready", "False")

    cluster.play(main)
    assert [one["delay_s"] for one in cluster.data("restarting")] == [0, 10]


def test_a_sidecar_whose_turn_never_comes_is_killed_at_the_end_of_the_grace(cluster: Cluster) -> None:
    async def main(cluster: Cluster) -> None:
        one = several("a", inits=("side",), shutdown__main="100", shutdown__side="1")
        one.spec.terminationGracePeriodSeconds = 10
        await cluster.create(one)
        await cluster.at(5)
        await cluster.client.delete("pods", "a", "default")
        await cluster.at(30)

    cluster.play(main)
    assert happened(cluster, "exited") == [(15.0, "exited", "main"), (16.0, "exited", "side")]
    assert [one["exit_code"] for one in cluster.data("exited")] == [137, 0]


def test_a_kubelet_takes_over_every_container_as_it_is(cluster: Cluster) -> None:
    async def main(cluster: Cluster) -> None:
        await cluster.create(
            several("a", inits=("side", "setup"), mains=("x", "y"), restart="OnFailure", run__x="30", run__y="2"),
            several("b", inits=("setup",), run__setup="20"),
        )
        await cluster.at(5)
        await cluster.runtime.crash("kubelet/n1")
        await cluster.at(10)
        await cluster.runtime.restart("kubelet/n1")
        await cluster.at(25)
        assert [await cluster.phase(name) for name in "ab"] == ["Running", "Running"]
        await cluster.at(40)
        assert [await cluster.phase(name) for name in "ab"] == ["Succeeded", "Running"]

    cluster.play(main)
    # Nothing has been started twice.
    assert sorted(one["container"] for one in cluster.data("started", "a")) == ["setup", "side", "x", "y"]
    assert [one["container"] for one in cluster.data("started", "b")] == ["setup", "main"]
    assert cluster.told("running") == [(0.0, "running", "a"), (20.0, "running", "b")]


def test_one_exit_restarts_all_containers_in_their_order(cluster: Cluster) -> None:
    """``RestartAllContainers``: without a back-off, from the init containers on (``getContainersToReset``); a condition
    says that it goes on."""
    conditions: list[str] = []

    def look(one: core_v1_pb2.Pod) -> None:
        found = [each for each in one.status.conditions if each.type == "AllContainersRestarting"]
        conditions.extend(f"{each.status} {each.reason}".strip() for each in found)

    async def main(cluster: Cluster) -> None:
        one = pod("a", restart="Never")
        one.metadata.annotations["kemu.dev/run-seconds.main"] = "5"
        one.metadata.annotations["kemu.dev/exit-code.main"] = "42"
        one.metadata.annotations["kemu.dev/run-seconds.setup"] = "2"
        one.spec.initContainers.add(name="setup", image="app")
        one.spec.containers.add(name="other", image="app")
        main_container = one.spec.containers[0]
        main_container.restartPolicy = "Never"
        rule = main_container.restartPolicyRules.add(action="RestartAllContainers")
        rule.exitCodes.operator = "In"
        rule.exitCodes.values.append(42)
        watch: informers.Informer[core_v1_pb2.Pod] = informers.Informer(
            cluster.client, "pods", handler=informers.Callbacks(look, lambda old, new: look(new))
        )
        await watch.synced()
        await cluster.create(one)
        await cluster.at(8)
        found = await cluster.pod("a")
        assert found.status.phase == "Running"
        (setup,), (first, other) = found.status.initContainerStatuses, found.status.containerStatuses
        assert setup.state.HasField("running")
        assert [each.restartCount for each in (setup, first, other)] == [1, 1, 1]
        for each in (first, other):
            assert each.state.waiting.reason == "RestartingAllContainers"
            last = each.lastState.terminated
            assert (last.exitCode, last.reason) == (137, "RestartingAllContainers")
        initialized = next(each for each in found.status.conditions if each.type == "Initialized")
        assert initialized.status == "True"
        await cluster.at(10)

    cluster.play(main)
    assert [data["container"] for data in cluster.data("started")] == ["setup", "main", "other"] * 2
    assert list(dict.fromkeys(conditions)) == ["False", "True RestartAllContainersStarted"]


def test_a_pod_that_needs_what_the_kubelet_lacks_is_refused(cluster: Cluster) -> None:
    """``declaredFeaturesAdmitHandler``; the Node says what the kubelet has."""

    async def main(cluster: Cluster) -> None:
        one = pod("a", restart="Never")
        container = one.spec.containers[0]
        container.restartPolicy = "Never"
        container.restartPolicyRules.add(action="RestartAllContainers").exitCodes.operator = "NotIn"
        await cluster.create(one)
        await cluster.at(2)
        found = await cluster.pod("a")
        assert (found.status.phase, found.status.reason) == ("Failed", "PodFeatureUnsupported")
        assert found.status.message == (
            "Pod was rejected: Pod requires node features that are not available: RestartAllContainersOnContainerExits"
        )
        features = (await cluster.client.get("nodes", "n1")).status.declaredFeatures
        assert list(features) == [
            "ExtendWebSocketsToKubelet",
            "InPlacePodLevelResourcesVerticalScaling",
            "InPlacePodVerticalScalingInitContainers",
        ]

    cluster.play(main, kubelet={"featureGates": {"RestartAllContainersOnContainerExits": False}})
