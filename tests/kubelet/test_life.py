"""The life of a pod on its node: start, run, exit, restart."""

from __future__ import annotations

import pytest

from kemu.emulated.objects import meta
from tests.kubelet.cluster import Cluster, node, pod


def test_a_pod_runs_at_once_where_nothing_takes_time(cluster: Cluster) -> None:
    async def main(cluster: Cluster) -> None:
        await cluster.at(5)
        await cluster.create(pod("a"))
        await cluster.clock.sleep(1)
        found = await cluster.pod("a")
        status = found.status
        assert status.phase == "Running"
        assert {one.type: one.status for one in status.conditions} == {
            "PodReadyToStartContainers": "True",
            "Initialized": "True",
            "Ready": "True",
            "ContainersReady": "True",
        } | {one.type: one.status for one in status.conditions if one.type == "PodScheduled"}
        assert status.startTime.seconds == cluster.clock.epoch_unix_s + 5
        (container,) = status.containerStatuses
        assert (container.name, container.ready, container.restartCount) == ("main", True, 0)
        assert container.state.running.startedAt.seconds == cluster.clock.epoch_unix_s + 5

    cluster.play(main)
    assert cluster.told() == [(5.0, "admit", "a"), (5.0, "running", "a")]
    (admitted,) = cluster.data("admit")
    assert list(admitted) == ["pod", "uid", "node", "start", "ok", "reason", "message"]
    assert admitted["ok"] is True
    assert admitted["node"] == "n1"


def test_starting_takes_what_the_timing_says_unless_the_pod_knows_better(cluster: Cluster) -> None:
    async def main(cluster: Cluster) -> None:
        await cluster.create(pod("slow"), pod("own", start=1))
        await cluster.at(10)
        assert await cluster.phase("slow") == "Running"

    cluster.play(main, timing={"podStart": 4})
    assert cluster.told("running") == [(1.0, "running", "own"), (4.0, "running", "slow")]


def test_a_long_start_is_reported_while_it_lasts(cluster: Cluster) -> None:
    async def main(cluster: Cluster) -> None:
        await cluster.create(pod("a", start=60), pod("short", start=2))
        await cluster.at(1)
        found, short = await cluster.get("a"), await cluster.get("short")
        assert found is not None
        assert short is not None
        assert found.status.phase == short.status.phase == "Pending"
        assert found.status.containerStatuses[0].state.waiting.reason == "ContainerCreating"
        assert meta.has_condition(found.status.conditions, "Ready", "False")
        assert not short.status.containerStatuses
        await cluster.at(61)
        assert await cluster.phase("a") == "Running"

    cluster.play(main, podStatuses="sparing")


def test_images_that_the_node_lacks_are_pulled_once(cluster: Cluster) -> None:
    async def main(cluster: Cluster) -> None:
        here = pod("here")
        here.spec.containers[0].image = "present:1"
        await cluster.create(pod("a"), here)
        await cluster.at(10)
        await cluster.create(pod("b"))
        await cluster.at(20)

    one = node()
    one.status.images.add(names=["present:1"])
    cluster.play(main, [one], timing={"imagePull": 5})
    assert cluster.told("pulled", "running") == [
        (0.0, "running", "here"),
        (5.0, "pulled", "a"),
        (5.0, "running", "a"),
        (10.0, "running", "b"),
    ]


@pytest.mark.parametrize(("code", "phase"), [(0, "Succeeded"), (3, "Failed")])
def test_a_pod_that_is_not_restarted_ends_with_its_containers(cluster: Cluster, code: int, phase: str) -> None:
    async def main(cluster: Cluster) -> None:
        await cluster.create(pod("a", restart="Never", run=10, exit_code=code))
        await cluster.at(11)
        found = await cluster.pod("a")
        assert found.status.phase == phase
        assert meta.has_condition(found.status.conditions, "Ready", "False")
        ended = found.status.containerStatuses[0].state.terminated
        assert (ended.exitCode, ended.reason) == (code, "Error" if code else "Completed")
        assert ended.finishedAt.seconds - ended.startedAt.seconds == 10
        # Its room is free again.
        await cluster.create(pod("b", cpu="4"))
        await cluster.at(12)
        assert await cluster.phase("b") == "Running"

    cluster.play(main)
    (finished,) = cluster.data("finished")
    assert (finished["phase"], finished["exit_code"]) == (phase, code)
    assert finished["start"] < 1e9


def test_restarts_wait_longer_each_time(cluster: Cluster) -> None:
    async def main(cluster: Cluster) -> None:
        await cluster.create(pod("a", run=1, exit_code=1))
        await cluster.at(5)
        found = await cluster.pod("a")
        (container,) = found.status.containerStatuses
        assert found.status.phase == "Running"
        assert container.restartCount == 1
        assert container.state.waiting.reason == "CrashLoopBackOff"
        assert container.state.waiting.message.startswith(
            "back-off 10s restarting failed container=main pod=a_default("
        )
        assert container.lastState.terminated.exitCode == 1
        assert meta.has_condition(found.status.conditions, "Ready", "False")
        await cluster.at(1200)

    cluster.play(main)
    # The first restart comes at once, then 10 s, 20 s … up to 5 min.
    assert [data["delay_s"] for data in cluster.data("restarting")] == [0, 10, 20, 40, 80, 160, 300, 300, 300]
    assert len(cluster.told("running")) == 1


def test_a_long_run_is_forgiven(cluster: Cluster) -> None:
    async def main(cluster: Cluster) -> None:
        await cluster.create(pod("a", run=601))
        await cluster.at(2000)

    cluster.play(main)
    assert [data["delay_s"] for data in cluster.data("restarting")] == [0, 0, 0]


def test_on_failure_restarts_failures_only(cluster: Cluster) -> None:
    async def main(cluster: Cluster) -> None:
        await cluster.create(
            pod("good", restart="OnFailure", run=1), pod("bad", restart="OnFailure", run=1, exit_code=1)
        )
        await cluster.at(5)
        assert await cluster.phase("good") == "Succeeded"
        assert await cluster.phase("bad") == "Running"

    cluster.play(main)


def test_the_configuration_bounds_the_back_off(cluster: Cluster) -> None:
    async def main(cluster: Cluster) -> None:
        await cluster.create(pod("a", run=1))
        await cluster.at(100)

    cluster.play(main, kubelet={"crashLoopBackOff": {"maxContainerRestartPeriod": "15s"}})
    assert [data["delay_s"] for data in cluster.data("restarting")][:5] == [0, 10, 15, 15, 15]


def test_a_running_pod_can_be_told_to_finish(cluster: Cluster) -> None:
    async def main(cluster: Cluster) -> None:
        await cluster.create(pod("a"), pod("b", run=1), pod("c", start=5))
        await cluster.at(3)
        for name, code in (("a", "0"), ("b", "7"), ("c", "0")):
            await cluster.client.patch(
                "pods", name, "default", {"metadata": {"annotations": {"kemu.dev/finish": code}}}
            )
        await cluster.at(4)
        # Whatever the restart policy; b is backing off.
        assert [await cluster.phase(name) for name in "abc"] == ["Succeeded", "Failed", "Pending"]
        await cluster.at(6)
        assert await cluster.phase("c") == "Succeeded"

    cluster.play(main)


def test_annotations_that_say_nothing_are_left_aside(cluster: Cluster) -> None:
    async def main(cluster: Cluster) -> None:
        odd = pod("a", restart="Never")
        for name in ("start-seconds", "run-seconds", "shutdown-seconds", "exit-code", "finish"):
            odd.metadata.annotations[f"kemu.dev/{name}"] = "-1" if name == "run-seconds" else "soon"
        await cluster.create(odd)
        await cluster.at(1)
        assert await cluster.phase("a") == "Running"
        await cluster.client.delete("pods", "a", "default")
        await cluster.at(2)
        assert await cluster.phase("a") == "gone"

    cluster.play(main)


def test_the_kubelet_acts_late_but_in_order(cluster: Cluster) -> None:
    async def main(cluster: Cluster) -> None:
        for n in range(12):
            await cluster.create(pod(f"p{n}", cpu="100m"))
        await cluster.at(60)

    cluster.play(main, [node(pods="20")], timing={"kubeletSync": {"uniform": {"min": 0, "max": 5}}})
    assert [name for _, _, name in cluster.told("running")] == [f"p{n}" for n in range(12)]
    assert cluster.told("running")[-1][0] > 1


def test_writes_of_others_are_kept() -> None:
    """The status of a pod is shared: the kubelet tries again on what there is now."""
    cluster = Cluster(network={"watchLatency": 0.5})

    async def main(cluster: Cluster) -> None:
        await cluster.client.create(pod("a", start=1))
        await cluster.at(1.2)
        created = await cluster.pod("a")
        # The kubelet will not have heard of it when it reports that the pod runs.
        meta.set_condition(created.status.conditions, "DisruptionTarget", "True", "X", "", 0)
        await cluster.client.update_status(created)
        await cluster.at(1.6)
        found = await cluster.pod("a")
        assert found.status.phase == "Running"
        assert meta.has_condition(found.status.conditions, "DisruptionTarget")

    cluster.play(main)


def test_reports_outlast_a_server_that_is_away(cluster: Cluster) -> None:
    async def main(cluster: Cluster) -> None:
        await cluster.create(pod("a", run=10, restart="Never"))
        await cluster.at(5)
        await cluster.runtime.crash("apiserver/0")
        await cluster.at(20)
        await cluster.runtime.restart("apiserver/0")
        await cluster.at(60)
        assert await cluster.phase("a") == "Succeeded"

    cluster.play(main)
    assert cluster.told("finished") == [(10.0, "finished", "a")]
