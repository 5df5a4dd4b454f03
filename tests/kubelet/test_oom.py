"""When memory runs out before the eviction manager has looked: whom the kernel kills."""

from __future__ import annotations

import itertools
from functools import partial

import pytest

from kemu.k8s import core_v1_pb2
from tests.kubelet import cluster as clusters
from tests.kubelet.cluster import Cluster
from tests.kubelet.pressured import Bench, Times, node, pod

NO_THRESHOLD = {"evictionHard": {"memory.available": "0%"}}


def steps(*points: tuple[int, str]) -> dict[str, object]:
    return {"memory": {"steps": [{"at": f"{second}s", "value": value} for second, value in points]}}


def guaranteed(name: str, usage: object) -> core_v1_pb2.Pod:
    amounts = {"cpu": "1", "memory": "1Gi"}
    return pod(name, usage, requests=amounts, limits={**amounts, "memory": "1Gi"})


class TestTheWholeMachine:
    def test_the_one_with_the_most_points_goes_first(self) -> None:
        bench = Bench(node(memory="4Gi"), kubelet=NO_THRESHOLD)
        burstable = pod("burstable", steps((0, "1Gi"), (15, "3482Mi")), requests={"memory": "3584Mi"})
        happenings = [
            (0, partial(bench.run, guaranteed("guaranteed", {"memory": "900Mi"}))),
            (0, partial(bench.run, burstable, Times(restart_s=None))),
            (0, partial(bench.run, pod("small", {"memory": "100Mi"}), Times(restart_s=None))),
            (0, partial(bench.run, pod("big", {"memory": "500Mi"}), Times(restart_s=None))),
        ]
        bench.play(60, happenings)
        assert bench.oom_kills() == [(15.0, "big"), (15.0, "small"), (15.0, "burstable")]

    def test_what_it_holds_counts_among_equals(self) -> None:
        bench = Bench(node(memory="4Gi"), kubelet=NO_THRESHOLD)
        for name, amount in (("a", "1Gi"), ("b", "1500Mi")):
            bench.run(pod(name, steps((0, amount), (5, "2100Mi" if name == "b" else "2050Mi"))), Times(restart_s=None))
        bench.play(60)
        assert bench.oom_kills() == [(5.0, "b")]

    def test_a_request_protects_a_burstable_pod(self) -> None:
        bench = Bench(node(memory="4Gi"), kubelet=NO_THRESHOLD)
        bench.run(pod("bold", steps((0, "1Gi"), (5, "2400Mi")), requests={"memory": "3Gi"}), Times(restart_s=None))
        bench.run(pod("timid", {"memory": "1800Mi"}, requests={"memory": "100Mi"}), Times(restart_s=None))
        bench.play(60)
        assert bench.oom_kills() == [(5.0, "timid")]

    def test_pods_are_held_to_what_is_left_for_them(self) -> None:
        """The daemons use nothing of what is reserved for them, yet pods may not have it."""
        bench = Bench(node(memory="4Gi"), kubelet={**NO_THRESHOLD, "systemReserved": {"memory": "1Gi"}})
        bench.run(pod("a", steps((0, "1Gi"), (7, "3500Mi"))), Times(restart_s=None))
        bench.play(60)
        assert bench.oom_kills() == [(7.0, "a")]

    def test_the_manager_is_in_time_where_memory_goes_slowly(self) -> None:
        slowly = {"memory": {"ramp": {"from": "1Gi", "to": "5Gi", "over": "10m"}}}
        bench = Bench(node(memory="4Gi"), kubelet={"evictionHard": {"memory.available": "500Mi"}})
        bench.play(900, [(0, partial(bench.run, pod("a", slowly)))])
        assert bench.oom_kills() == []
        assert [name for _, name in bench.evictions()] == ["a"]


class TestALimit:
    def test_concerns_its_container_alone(self) -> None:
        usage = {"containers": {"main": {"memory": "300Mi"}, "other": {"memory": "300Mi"}}}
        one = pod("a", usage, limits={"memory": "200Mi"})
        one.spec.containers.add(name="other")
        bench = Bench(node(memory="4Gi"))
        bench.run(one, Times(restart_s=None))
        bench.play(30)
        assert [(data["container"]) for _, kind, data in bench.events if kind == "oom"] == ["main"]

    def test_once_a_second_however_soon_it_starts_again(self) -> None:
        bench = Bench(node(memory="4Gi"))
        bench.run(pod("a", {"memory": "300Mi"}, limits={"memory": "200Mi"}), Times(restart_s=0))
        bench.play(5.5)
        assert [at for at, _ in bench.oom_kills()] == [0, 1, 2, 3, 4, 5]


class TestOnAKubelet:
    def leaky(self, name: str, restart: str) -> core_v1_pb2.Pod:
        one = clusters.pod(name, cpu="", restart=restart)
        one.metadata.annotations["kemu.dev/usage"] = "{memory: {ramp: {from: 100Mi, to: 300Mi, over: 20s}}}"
        one.spec.containers[0].resources.limits["memory"].string = "200Mi"
        return one

    def test_a_crash_loop(self, cluster: Cluster) -> None:
        async def main(cluster: Cluster) -> None:
            await cluster.create(self.leaky("a", "Always"))
            await cluster.at(100)
            found = await cluster.get("a")
            assert found is not None
            status = found.status.containerStatuses[0]
            ended = status.state.terminated if status.state.HasField("terminated") else status.lastState.terminated
            assert (ended.reason, ended.exitCode) == ("OOMKilled", 137)
            assert found.status.phase == "Running"

        cluster.play(main)
        kills = [at for at, _, _ in cluster.told("oom_killed")]
        assert len(kills) == 4
        pauses = [later - earlier for earlier, later in itertools.pairwise(kills)]
        assert pauses == sorted(pauses)
        assert pauses[-1] - pauses[0] == pytest.approx(20, abs=2)

    def test_one_that_must_not_start_again_fails(self, cluster: Cluster) -> None:
        async def main(cluster: Cluster) -> None:
            await cluster.create(self.leaky("a", "Never"))
            await cluster.at(60)
            assert await cluster.phase("a") == "Failed"

        cluster.play(main)
        assert len(cluster.told("oom_killed")) == 1
