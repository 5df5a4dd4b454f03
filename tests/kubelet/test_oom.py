"""When memory runs out before the eviction manager has looked: whom the kernel kills."""

from __future__ import annotations

import itertools
from functools import partial

import pytest

from kemu.messages.k8s import core_v1_pb2
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

    def test_what_a_kill_has_freed_counts_however_soon_the_victim_runs_again(self) -> None:
        """Its 500Mi are enough. That it starts again in the same instant is no reason to kill those that it spares."""
        bench = Bench(node(memory="4Gi"), kubelet=NO_THRESHOLD)
        critical = pod("critical", {"memory": "1Gi"}, priority=2_000_001_000)
        critical.spec.priorityClassName = "system-node-critical"
        amounts = {"cpu": "1", "memory": "3Gi"}
        protected = pod("protected", steps((0, "2Gi"), (5, "2800Mi")), requests=amounts, limits=amounts)
        for one in (critical, protected, pod("best-effort", {"memory": "500Mi"})):
            bench.run(one, Times(restart_s=0))
        bench.play(10.5)
        assert bench.oom_kills() == [(at, "best-effort") for at in (5, 6, 7, 8, 9, 10)]

    def test_two_are_killed_where_one_is_not_enough_however_soon_they_run_again(self) -> None:
        bench = Bench(node(memory="4Gi"), kubelet=NO_THRESHOLD)
        amounts = {"cpu": "1", "memory": "4Gi"}
        protected = pod("protected", steps((0, "2Gi"), (5, "3800Mi")), requests=amounts, limits=amounts)
        for one in (protected, pod("small", {"memory": "200Mi"}), pod("big", {"memory": "300Mi"})):
            bench.run(one, Times(restart_s=0))
        bench.play(5.5)
        assert bench.oom_kills() == [(5, "big")]
        bench = Bench(node(memory="4Gi"), kubelet=NO_THRESHOLD)
        protected = pod("protected", steps((0, "2Gi"), (5, "4000Mi")), requests=amounts, limits=amounts)
        for one in (protected, pod("small", {"memory": "200Mi"}), pod("big", {"memory": "300Mi"})):
            bench.run(one, Times(restart_s=0))
        bench.play(5.5)
        assert bench.oom_kills() == [(5, "big"), (5, "small")]


class TestCachedFiles:
    """The kernel gives them up before it kills; the kubelet takes those on the active list for used."""

    def test_files_alone_never_kill(self) -> None:
        bench = Bench(node(memory="4Gi"), kubelet=NO_THRESHOLD)
        cached = {"active_file": "3Gi", "inactive_file": "3Gi"}
        bench.run(pod("reader", {"memory": "500Mi", **cached}, limits={"memory": "1Gi"}), Times(restart_s=None))
        bench.run(pod("other", {"memory": "2Gi", **cached}), Times(restart_s=None))
        bench.play(60)
        assert bench.oom_kills() == []

    def test_memory_still_kills(self) -> None:
        bench = Bench(node(memory="4Gi"), kubelet=NO_THRESHOLD)
        bench.run(pod("reader", {"memory": "500Mi", "active_file": "3Gi"}), Times(restart_s=None))
        bench.run(pod("other", steps((0, "2Gi"), (7, "3700Mi"))), Times(restart_s=None))
        bench.play(60)
        assert bench.oom_kills() == [(7, "other")]

    def test_active_ones_are_pressure_and_inactive_ones_are_not(self) -> None:
        for kind, expected in (("active_file", [(20, "reader")]), ("inactive_file", [])):
            bench = Bench(node(memory="4Gi"), kubelet={"evictionHard": {"memory.available": "1Gi"}})
            reads = {"memory": "500Mi", kind: {"steps": [{"at": "0s", "value": "0"}, {"at": "15s", "value": "2Gi"}]}}
            bench.run(pod("reader", reads, requests={"memory": "600Mi"}))
            bench.run(pod("quiet", {"memory": "1Gi"}, requests={"memory": "1Gi"}))
            bench.play(60)
            assert bench.evictions() == expected

    def test_those_of_the_system_count_too(self) -> None:
        for kind, expected in (("active_file", [(0, "a")]), ("inactive_file", [])):
            own = {"memory": "1Gi", kind: "2Gi"}
            kubelet = {"evictionHard": {"memory.available": "1Gi"}}
            bench = Bench(node(memory="4Gi"), kubelet=kubelet, usage=own)
            bench.play(60, [(0, partial(bench.run, pod("a", {"memory": "500Mi"})))])
            assert bench.evictions() == expected


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
            found = await cluster.pod("a")
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

    def test_its_memory_is_free_until_the_kubelet_has_noticed(self, cluster: Cluster) -> None:
        """Then it starts with what it uses in its beginning. Those that the kernel spares never die for it."""
        protected = guaranteed_on_node(
            "protected", "{memory: {steps: [{at: 0s, value: 2Gi}, {at: 20s, value: 3700Mi}]}}"
        )
        small = clusters.pod("small", cpu="")
        small.metadata.annotations["kemu.dev/usage"] = "{memory: {ramp: {from: 100Mi, to: 500Mi, over: 10s}}}"
        seen: list[tuple[str, str]] = []

        async def main(cluster: Cluster) -> None:
            await cluster.create(protected, small)
            for seconds in (21.5, 22.5):
                await cluster.at(seconds)
                found = await cluster.pod("small")
                status = found.status.containerStatuses[0]
                seen.append((status.state.terminated.reason, status.lastState.terminated.reason))
            await cluster.at(40)

        machine = clusters.node(memory="4Gi")
        cluster.play(main, [machine], kubelet=NO_THRESHOLD)
        kills = [(round(at), name) for at, _, name in cluster.told("oom_killed")]
        assert {name for _, name in kills} == {"small"}
        assert seen == [("OOMKilled", ""), ("", "OOMKilled")]
        # Started again at 22 s, it passes the 396Mi that are left for it 8 s later.
        assert [at for at, _ in kills] == [21, 30]


def guaranteed_on_node(name: str, usage: str) -> core_v1_pb2.Pod:
    one = clusters.pod(name, cpu="1")
    one.metadata.annotations["kemu.dev/usage"] = usage
    resources = one.spec.containers[0].resources
    for amounts in (resources.requests, resources.limits):
        amounts["cpu"].string, amounts["memory"].string = "1", "4Gi"
    return one
