"""A kubelet that dies: its containers live on, and its next incarnation takes them over."""

from __future__ import annotations

import pytest

from kemu.messages.k8s import core_v1_pb2
from tests.kubelet.cluster import Cluster, node, pod

KUBELET = "kubelet/n1"


async def _down(cluster: Cluster, begin_s: float, end_s: float) -> None:
    await cluster.at(begin_s)
    await cluster.runtime.crash(KUBELET)
    await cluster.at(end_s)
    await cluster.runtime.restart(KUBELET)
    await cluster.clock.sleep(1)


def test_running_pods_go_on(cluster: Cluster) -> None:
    async def main(cluster: Cluster) -> None:
        await cluster.create(pod("a"), pod("b", run=30, restart="Never"), pod("c", run=5, restart="Never"))
        await _down(cluster, 3, 10)
        assert await cluster.phase("a") == "Running"
        # Its containers exited while nobody looked.
        assert await cluster.phase("c") == "Succeeded"
        await cluster.create(pod("d"), pod("e", cpu="2"))
        await cluster.at(32)
        assert [await cluster.phase(name) for name in "abde"] == ["Running", "Succeeded", "Running", "Failed"]

    cluster.play(main)
    assert sorted(name for _, _, name in cluster.told("running")) == ["a", "b", "c", "d"]
    assert cluster.told("finished") == [(10.0, "finished", "c"), (30.0, "finished", "b")]


def test_a_start_that_was_reported_goes_on(cluster: Cluster) -> None:
    async def main(cluster: Cluster) -> None:
        await cluster.create(pod("a", start=20))
        await _down(cluster, 5, 10)
        await cluster.at(60)

    cluster.play(main)
    assert len(cluster.told("admit")) == 1
    assert cluster.told("running") == [(20.0, "running", "a")]


def test_a_termination_goes_on(cluster: Cluster) -> None:
    async def main(cluster: Cluster) -> None:
        await cluster.create(pod("a", grace_s=60, shutdown=40), pod("b", grace_s=60, shutdown=8))
        await cluster.at(5)
        for name in "ab":
            await cluster.client.delete("pods", name, "default")
        await _down(cluster, 10, 20)
        assert [await cluster.phase(name) for name in "ab"] == ["Running", "gone"]
        await cluster.at(46)
        assert await cluster.phase("a") == "gone"

    cluster.play(main)
    assert cluster.told("terminated") == [(20.0, "terminated", "b"), (45.0, "terminated", "a")]


async def _jump(cluster: Cluster, by_s: float) -> None:
    await cluster.runtime.inject("jump", "clockJump", {"actor": [KUBELET], "by": by_s})


def test_a_termination_goes_on_by_a_clock_that_is_behind(cluster: Cluster) -> None:
    """That of the API server, which wrote when the pod was deleted, is a minute and a half ahead."""

    async def main(cluster: Cluster) -> None:
        await cluster.create(pod("a", grace_s=60, shutdown=40))
        await cluster.at(5)
        await cluster.client.delete("pods", "a", "default")
        await _jump(cluster, -90)
        await _down(cluster, 10, 20)
        await cluster.at(62)
        assert await cluster.phase("a") == "gone"

    cluster.play(main)
    assert cluster.told("terminated") == [(60.0, "terminated", "a")]


def test_what_was_deleted_or_created_meanwhile(cluster: Cluster) -> None:
    async def main(cluster: Cluster) -> None:
        await cluster.create(pod("a"), pod("done", run=1, restart="Never"))
        await cluster.at(3)
        await cluster.runtime.crash(KUBELET)
        await cluster.client.delete("pods", "a", "default")
        await cluster.create(pod("new"), pod("short"))
        await cluster.client.delete("pods", "short", "default")
        await cluster.at(10)
        await cluster.runtime.restart(KUBELET)
        await cluster.at(12)
        assert [await cluster.phase(name) for name in ("a", "new", "short", "done")] == [
            "gone", "Running", "gone", "Succeeded",
        ]  # fmt: skip

    cluster.play(main)
    assert cluster.told("admit", "finished", "terminated") == [
        (0.0, "admit", "a"),
        (0.0, "admit", "done"),
        (1.0, "finished", "done"),
        (10.0, "terminated", "a"),
        (10.0, "admit", "new"),
    ]


def test_of_those_that_wait_the_oldest_come_first(cluster: Cluster) -> None:
    async def main(cluster: Cluster) -> None:
        await cluster.create(pod("m", cpu="1"))
        await cluster.at(3)
        await cluster.runtime.crash(KUBELET)
        await cluster.create(pod("z", cpu="3"))
        await cluster.at(5)
        await cluster.create(pod("a", cpu="3"))
        await cluster.at(10)
        await cluster.runtime.restart(KUBELET)
        await cluster.at(12)
        assert [await cluster.phase(name) for name in "maz"] == ["Running", "Failed", "Running"]

    cluster.play(main)
    assert [name for _, _, name in cluster.told("admit")] == ["m", "z", "a"]


def test_a_crash_loop_goes_on(cluster: Cluster) -> None:
    async def main(cluster: Cluster) -> None:
        await cluster.create(pod("a", run=1))
        await _down(cluster, 5, 20)
        found = await cluster.pod("a")
        assert found.status.containerStatuses[0].restartCount == 2
        assert await cluster.phase("a") == "Running"

    cluster.play(main)
    assert len(cluster.told("running")) == 1


def test_refused_pods_stay_refused(cluster: Cluster) -> None:
    async def main(cluster: Cluster) -> None:
        await cluster.create(pod("a", cpu="9"))
        await _down(cluster, 3, 5)
        assert await cluster.phase("a") == "Failed"

    cluster.play(main)
    assert cluster.told() == [(0.0, "admit", "a")]


def test_the_same_seed_tells_the_same_story() -> None:
    async def main(cluster: Cluster) -> None:
        for n in range(6):
            await cluster.create(pod(f"p{n}", cpu="700m", run=3, restart="Never"))
        await _down(cluster, 2, 4)
        await cluster.at(60)

    logs = []
    for seed in (5, 5, 6):
        cluster = Cluster(seed, network={"apiLatency": {"uniform": {"min": 0.001, "max": 0.1}}})
        cluster.play(main, timing={"podStart": {"exponential": {"mean": 1}}})
        logs.append(cluster.recorder.events)
    assert logs[0] == logs[1]
    assert logs[0] != logs[2]


def test_a_restarted_kubelet_judges_anew_what_runs(cluster: Cluster) -> None:
    """Labels of the node have changed meanwhile: who demands the old ones is refused, and its containers stop."""

    async def main(cluster: Cluster) -> None:
        choosy = pod("choosy", shutdown=5)
        choosy.spec.nodeSelector["disk"] = "ssd"
        await cluster.create(pod("plain"), choosy)
        await cluster.at(3)
        await cluster.runtime.crash(KUBELET)
        await cluster.client.patch("nodes", "n1", "", {"metadata": {"labels": {"disk": "hdd"}}})
        await cluster.at(10)
        await cluster.runtime.restart(KUBELET)
        await cluster.at(12)
        found = await cluster.pod("choosy")
        assert (found.status.phase, found.status.reason) == ("Failed", "NodeAffinity")
        assert await cluster.phase("plain") == "Running"
        # Its cpu is free at once for the kubelet, although its containers take a while to stop.
        await cluster.create(pod("next", cpu="3"))
        await cluster.at(20)
        assert await cluster.phase("next") == "Running"

    cluster.play(main, [node(labels={"disk": "ssd"})])
    assert cluster.told("terminated") == [(15.0, "terminated", "choosy")]
    assert [one["reason"] for one in cluster.data("admit", "choosy")] == ["", "NodeAffinity"]


def test_the_oldest_is_judged_first_after_a_restart(cluster: Cluster) -> None:
    """A node that has become smaller keeps those that came first."""

    async def main(cluster: Cluster) -> None:
        for second, name in enumerate(("first", "second", "third")):
            await cluster.at(second + 1)
            await cluster.create(pod(name, cpu="1"))
        await cluster.at(5)
        await cluster.runtime.crash(KUBELET)
        spec = cluster.kubelet(node(cpu="2"))
        cluster.runtime._specs[KUBELET] = spec
        await cluster.at(8)
        await cluster.runtime.restart(KUBELET)
        await cluster.at(12)
        phases = [await cluster.phase(name) for name in ("first", "second", "third")]
        assert phases == ["Running", "Running", "Failed"]

    cluster.play(main)
    assert [one["reason"] for one in cluster.data("admit", "third")] == ["", "OutOfcpu"]


def static_pod() -> bytes:
    found = pod("static", cpu="1")
    found.spec.nodeName = ""
    found.spec.priorityClassName = "system-node-critical"
    return found.SerializeToString(deterministic=True)


@pytest.mark.parametrize("sync_s", [0, 3])
def test_a_static_pod_that_runs_is_not_started_again(cluster: Cluster, sync_s: float) -> None:
    """However long the kubelet takes to act on the mirror by which it knows the pod."""

    async def main(cluster: Cluster) -> None:
        await _down(cluster, 20, 25)
        await cluster.at(60)

    cluster.play(main, timing={"kubeletSync": sync_s}, staticPods=[static_pod()])
    assert cluster.told("admit", "running") == [(0.0, "admit", "static-n1"), (0.0, "running", "static-n1")]


def test_a_static_pod_that_was_starting_goes_on(cluster: Cluster) -> None:
    """Its init container runs on: it is not admitted once more, and nothing begins anew."""
    found = core_v1_pb2.Pod.FromString(static_pod())
    found.spec.initContainers.add(name="init", image="app")
    found.metadata.annotations["kemu.dev/run-seconds.init"] = "20"

    async def main(cluster: Cluster) -> None:
        await _down(cluster, 10, 15)
        await cluster.at(60)

    cluster.play(main, staticPods=[found.SerializeToString(deterministic=True)])
    assert cluster.told("admit", "running") == [(0.0, "admit", "static-n1"), (20.0, "running", "static-n1")]


@pytest.mark.parametrize("seed", range(3))
def test_a_restarted_kubelet_decides_on_all_pods_at_once(seed: int) -> None:
    """None has its room for a moment only because the kubelet has not got to the one that runs there."""
    cluster = Cluster(seed)

    async def main(cluster: Cluster) -> None:
        await cluster.create(pod("z", cpu="3"))
        await cluster.at(20)
        await cluster.runtime.crash(KUBELET)
        await cluster.create(*[pod(name, cpu="3") for name in "abcdefgh"])
        await cluster.at(22)
        await cluster.runtime.restart(KUBELET)
        await cluster.at(60)
        assert [await cluster.phase(name) for name in "zabcdefgh"] == ["Running", *["Failed"] * 8]

    cluster.play(main, timing={"kubeletSync": {"uniform": {"min": 0, "max": 5}}})
    assert len({at for at, _, name in cluster.told("admit") if name != "z"}) == 1


def test_a_pod_that_runs_keeps_its_room_from_one_that_is_as_old(cluster: Cluster) -> None:
    async def main(cluster: Cluster) -> None:
        await cluster.at(5)
        await cluster.create(pod("z", cpu="3"))
        await cluster.at(5.5)
        await cluster.runtime.crash(KUBELET)
        await cluster.create(pod("a", cpu="3"))
        await cluster.at(8)
        await cluster.runtime.restart(KUBELET)
        await cluster.at(20)
        assert [await cluster.phase(name) for name in "za"] == ["Running", "Failed"]

    cluster.play(main)
