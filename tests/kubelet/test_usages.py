"""What pods and nodes say that they use, and what is measured of it."""

from __future__ import annotations

from functools import partial
from typing import Any

import pytest

from kemu.emulated.kubelet.pods import containers
from kemu.emulated.kubelet.usage import curves, machines, usages
from kemu.runtime.env import SECOND_NS
from tests.kubelet.pressured import Bench, node, pod, with_usage

MEBI = 1024 * 1024


def gauge(usage: Any, *names: str) -> tuple[Bench, usages.Gauge]:
    """Of a pod with these containers, which runs since second 0."""
    one = pod("a", usage)
    for name in names:
        one.spec.containers.add(name=name)
    bench = Bench(node(memory="4Gi"))
    bench.run(one)
    return bench, bench.pressures._gauges["uid-a"]


def at(seconds: float) -> tuple[int, int]:
    return int(seconds * SECOND_NS), int(seconds * SECOND_NS)


class TestPods:
    def test_a_pod_that_says_nothing_uses_nothing(self) -> None:
        assert usages.of(pod("a")) is None

    @pytest.mark.parametrize("text", ["{memory: [}", "{memroy: 1Gi}", "5", "{memory: much}"])
    def test_what_cannot_be_read_counts_as_absent(self, text: str) -> None:
        one = pod("a")
        one.metadata.annotations[usages.USAGE] = text
        assert usages.of(one) is None

    def test_what_is_said_of_the_pod_is_shared_evenly_and_nothing_is_lost(self) -> None:
        bench, found = gauge({"memory": "1000", "containers": {"c": {"memory": "50"}}}, "b", "c")
        held = [found.memory(one, 0, 0) for one in bench.workers["a"].containers]
        assert held == [334, 333, 383]
        assert found.memories(0, 0) == 1050

    def test_a_container_that_starts_anew_begins_anew_but_not_its_disk(self) -> None:
        ramp = {"ramp": {"from": "0", "to": "100", "over": "100s"}}
        bench, found = gauge({"memory": ramp, "rootfs": ramp})
        container = bench.workers["a"].containers[0]
        assert found.memories(*at(30)) == 30
        container.started_ns, container.restarts = 20 * SECOND_NS, 1
        assert found.memories(*at(30)) == 10
        assert found.local_bytes(*at(30)) == (30, 0, 0)

    def test_after_the_crash_of_a_kubelet_disks_count_from_the_start_of_the_pod(self) -> None:
        """All that its status tells is when the container started the last time."""
        one = pod("a", {"rootfs": {"ramp": {"from": "0", "to": "100", "over": "100s"}}})
        bench = Bench(node(memory="4Gi"))
        bench.run(one)
        worker = bench.workers["a"]
        worker.containers[0].started_ns, worker.containers[0].restarts = 20 * SECOND_NS, 3
        usage = usages.of(one)
        assert usage is not None
        assert usages.Gauge(worker, usage).local_bytes(*at(30)) == (30, 0, 0)

    def test_who_does_not_run_holds_no_memory_and_no_processes_but_his_disk(self) -> None:
        bench, found = gauge({"memory": "10", "pids": "5", "logs": "7"})
        assert (found.memories(0, 0), found.pids(0, 0), found.local_bytes(0, 0)) == (10, 5, (0, 7, 0))
        bench.workers["a"].containers[0].state = containers.BACKING_OFF
        assert (found.memories(0, 0), found.pids(0, 0), found.local_bytes(0, 0)) == (0, 0, (0, 7, 0))

    def test_measured_as_the_summary_api_does(self) -> None:
        _, found = gauge(
            {"memory": "10", "rootfs": "3", "logs": "4", "inodes": "9", "pids": "2", "volumes": {"v": "5"}}
        )
        seen = found.measure(0)
        assert (seen.working_set_bytes, seen.processes, seen.ephemeral_storage_bytes) == (10, 2, 12)
        (one,) = seen.containers
        assert one.rootfs is not None
        assert one.logs is not None
        assert (one.rootfs.used_bytes, one.rootfs.inodes_used, one.logs.used_bytes) == (3, 9, 4)
        assert [(name, disk.used_bytes) for name, disk in seen.volumes] == [("v", 5)]

    def test_cached_files_count_in_the_working_set_while_they_are_active(self) -> None:
        cached = {"active_file": "20", "inactive_file": "70"}
        _, found = gauge({"memory": "10", **cached, "containers": {"b": cached}}, "b")
        assert (found.memories(0, 0), found.working_sets(0, 0), found.charged(0, 0)) == (10, 50, 190)
        seen = found.measure(0)
        assert (seen.working_set_bytes, [one.working_set_bytes for one in seen.containers]) == (50, [15, 35])

    def test_a_limit_leaves_less_room_for_cached_files_inactive_ones_first(self) -> None:
        bench, found = gauge({"memory": "10", "active_file": "20", "inactive_file": "70"})
        for limit, expected in ((200, (30, 100)), (60, (30, 60)), (25, (25, 25)), (5, (10, 10))):
            found.limit_memory({"main": limit})
            assert (found.working_sets(0, 0), found.charged(0, 0)) == expected
        assert bench.workers["a"].containers[0].is_up

    def test_cached_files_go_with_their_container(self) -> None:
        ramp = {"ramp": {"from": "0", "to": "100", "over": "100s"}}
        bench, found = gauge({"active_file": ramp, "inactive_file": ramp})
        container = bench.workers["a"].containers[0]
        assert (found.working_sets(*at(30)), found.charged(*at(30))) == (30, 60)
        container.started_ns = 20 * SECOND_NS
        assert (found.working_sets(*at(30)), found.charged(*at(30))) == (10, 20)
        container.state = containers.BACKING_OFF
        assert found.charged(*at(30)) == 0

    @pytest.mark.parametrize(
        ("data", "path"),
        [
            ({"memroy": "1Gi"}, "memroy"),
            ({"volumes": {"v": {"rampp": {}}}}, "volumes.v"),
            ({"containers": {"a": {"pids": 1}}}, "containers.a.pids"),
            ({"containers": []}, "containers"),
        ],
    )
    def test_mistakes_are_named_with_their_place(self, data: Any, path: str) -> None:
        with pytest.raises(curves.CurveError) as caught:
            usages.parse(data)
        assert caught.value.path == path


USAGE = {"disk": "100", "images": "200", "deadContainers": "400"}


class TestMachines:
    def meter(self, machine: dict[str, Any], usage: dict[str, Any]) -> machines.Meter:
        bench = Bench(node(memory="1000", ephemeral_storage="1000"), machine=machine, usage=usage)
        bench.run(with_usage(pod("a"), {"rootfs": "10", "logs": "20", "volumes": {"v": "40"}, "inodes": "3"}))
        return bench.pressures._meter

    def used(self, meter: machines.Meter) -> tuple[int, ...]:
        signals = meter.signals(0, 0)
        return tuple(signals[f"{name}fs.available"].used for name in ("node", "image", "container"))

    def test_one_disk_holds_everything(self) -> None:
        assert self.used(self.meter({}, USAGE)) == (770, 770, 770)

    def test_images_and_layers_on_a_disk_of_their_own(self) -> None:
        assert self.used(self.meter({"imagefs": {"capacity": "900"}}, USAGE)) == (160, 610, 610)

    def test_images_alone_on_a_disk_of_their_own(self) -> None:
        meter = self.meter({"imagefs": {"capacity": "900"}, "splitImages": True}, USAGE)
        assert self.used(meter) == (570, 200, 570)

    def test_garbage_that_was_collected_is_gone_and_new_garbage_is_not(self) -> None:
        meter = self.meter({}, {"images": {"ramp": {"from": "100", "to": "200", "over": "10s"}}})
        assert meter.free_unnamed_images(5 * SECOND_NS) == 150
        assert meter.signals(*at(5))["imagefs.available"].used == 70
        assert meter.signals(*at(8))["imagefs.available"].used == 100

    def test_pods_may_hold_less_than_the_machine_has(self) -> None:
        kubelet = {"systemReserved": {"memory": "100"}, "kubeReserved": {"memory": "50"}}
        one = node(memory="1000")
        assert machines.machine_of(one, kubelet, {}).pods_memory_bytes == 850
        assert machines.machine_of(one, {**kubelet, "enforceNodeAllocatable": []}, {}).pods_memory_bytes == 1000

    def test_nothing_is_asked_of_a_node_that_uses_nothing(self) -> None:
        bench = Bench(node(memory="4Gi"))
        bench.play(100, [(0, partial(bench.run, pod("a")))])
        assert bench.pressures._look_timer is None
        assert bench.pressures._oom_killer.timer is None
