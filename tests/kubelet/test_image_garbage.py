"""Images that nobody needs: which are removed, when, and what the kubelet says when that is not enough."""

from __future__ import annotations

import random
import re
from collections.abc import Callable
from functools import partial
from typing import Any

import pytest

from kemu.emulated.kubelet.images import garbage, stores
from kemu.emulated.kubelet.settings import image_policies, kubelet_configurations
from kemu.emulated.kubelet.usage import machines, usages
from kemu.messages.k8s import core_v1_pb2
from kemu.runtime.env import SECOND_NS
from kemu.runtime.sim.simulation import SimRuntime
from kemu.testing import Recorder
from tests.kubelet.cluster import Cluster, node, pod

SIZES = {"a:1": 100, "b:1": 100, "c:1": 100, "d:1": 300}
DISK = "ephemeral-storage"


def of(name: str, image: str, **life: float) -> core_v1_pb2.Pod:
    found = pod(name, "", restart="Never", **life)  # type: ignore[arg-type]
    found.spec.containers[0].image = image
    return found


def disk(size: str = "1000") -> core_v1_pb2.Node:
    return node(**{DISK: size})


def collected(cluster: Cluster) -> list[tuple[float, list[str]]]:
    return [
        (round(ns / SECOND_NS), list(data["images"]))
        for ns, _, kind, data in cluster.recorder.events
        if kind == "kubelet.collected" and data["what"] == "images"
    ]


async def warnings(cluster: Cluster) -> list[tuple[str, str]]:
    found = await cluster.client.list("events", "default")
    return [(one.reason, one.message) for one in found.items if one.involvedObject.kind == "Node"]


NO_EVICTIONS = {"evictionHard": {"memory.available": "1"}}


class TestFullDisk:
    def test_the_longest_unused_go_first_until_there_is_room(self, cluster: Cluster) -> None:
        async def main(cluster: Cluster) -> None:
            for at_s, name, image in ((1, "p", "b:1"), (2, "q", "a:1"), (3, "r", "c:1"), (4, "s", "d:1")):
                await cluster.at(at_s)
                await cluster.create(of(name, image))
            # The look at 300 s sees the image of q in use, that at 600 s those of p and r too.
            for at_s, name in ((400, "q"), (700, "p"), (701, "r")):
                await cluster.at(at_s)
                await cluster.client.delete("pods", name, "default")
            await cluster.at(1000)

        cluster.play(main, [disk()], images=SIZES, kubelet=NO_EVICTIONS, usage={"disk": steps((750, 300))})
        # 900 of 1000 are used; 800 is where it stops.
        assert collected(cluster) == [(900, ["a:1"])]

    def test_of_those_used_at_the_same_time_the_one_first_that_was_seen_first(self, cluster: Cluster) -> None:
        async def main(cluster: Cluster) -> None:
            await cluster.create(of("p", "b:1"))
            await cluster.at(310)
            await cluster.create(of("q", "a:1"))
            await cluster.at(620)
            for name in "pq":
                await cluster.client.delete("pods", name, "default")
            await cluster.at(1000)

        cluster.play(main, [disk()], images=SIZES, kubelet=NO_EVICTIONS, usage={"disk": steps((750, 700))})
        assert collected(cluster) == [(900, ["b:1"])]

    def test_a_young_image_stays_until_it_is_old_enough(self, cluster: Cluster) -> None:
        async def main(cluster: Cluster) -> None:
            await cluster.at(200)
            await cluster.create(of("p", "a:1"))
            await cluster.at(250)
            await cluster.client.delete("pods", "p", "default")
            await cluster.at(1000)

        # It came 100 s before the look at 300 s, which sees it for the first time.
        cluster.play(main, [disk()], images=SIZES, kubelet=NO_EVICTIONS, usage={"disk": "850"})
        assert collected(cluster) == [(600, ["a:1"])]

    def test_a_pod_that_has_ended_holds_its_image_until_it_is_deleted(self, cluster: Cluster) -> None:
        async def main(cluster: Cluster) -> None:
            await cluster.create(of("p", "a:1", run=10))
            await cluster.at(910)
            assert await cluster.phase("p") == "Succeeded"
            assert collected(cluster) == []
            await cluster.client.delete("pods", "p", "default")
            await cluster.at(1300)

        cluster.play(main, [disk()], images=SIZES, kubelet=NO_EVICTIONS, usage={"disk": "800"})
        assert collected(cluster) == [(1200, ["a:1"])]

    def test_what_the_configuration_says(self, cluster: Cluster) -> None:
        async def main(cluster: Cluster) -> None:
            for name in "abc":
                await cluster.create(of(name, f"{name}:1"))
            await cluster.at(10)
            for name in "abc":
                await cluster.client.delete("pods", name, "default")
            await cluster.at(400)

        kubelet = {
            **NO_EVICTIONS,
            "imageGCHighThresholdPercent": 30,
            "imageGCLowThresholdPercent": 11,
            "imageMinimumGCAge": "1ns",
        }
        cluster.play(main, [disk()], images=SIZES, kubelet=kubelet)
        # The look at 300 s is the first one to see them: they are not even 1 ns old.
        assert collected(cluster) == []
        later = Cluster()
        later.play(partial(_longer, main), [disk()], images=SIZES, kubelet=kubelet)
        assert collected(later) == [(600, ["a:1", "b:1"])]

    def test_who_cannot_free_enough_says_so(self, cluster: Cluster) -> None:
        async def main(cluster: Cluster) -> None:
            await cluster.at(5)
            assert [reason for reason, _ in await warnings(cluster)] == ["FreeDiskSpaceFailed"]
            await cluster.at(290)
            assert len(await warnings(cluster)) == 1
            await cluster.at(310)
            first, second = await warnings(cluster)
            note = (
                "Insufficient free disk space on the node's image filesystem (90% of 1000 B used). Failed to free "
                "sufficient space by deleting unused images (freed 0 bytes). Investigate disk usage, as it could be "
                "used by active images, logs, volumes, or other data."
            )
            assert (first, second) == (("FreeDiskSpaceFailed", note), ("ImageGCFailed", note))

        cluster.play(main, [disk()], kubelet=NO_EVICTIONS, usage={"disk": "900"})

    @pytest.mark.parametrize(("size", "kubelet"), [("1000", {"imageGCHighThresholdPercent": 100}), ("0", {})])
    def test_without_passes_nothing_is_said(self, cluster: Cluster, size: str, kubelet: dict[str, Any]) -> None:
        async def main(cluster: Cluster) -> None:
            await cluster.at(700)
            assert await warnings(cluster) == []

        cluster.play(main, [disk(size)], kubelet={**NO_EVICTIONS, **kubelet}, usage={"disk": "1000"})


async def _longer(main: Callable[[Cluster], Any], cluster: Cluster) -> None:
    await main(cluster)
    await cluster.at(700)


def steps(*points: tuple[int, int]) -> dict[str, Any]:
    return {"steps": [{"at": "0s", "value": "0"}, *({"at": f"{at}s", "value": str(value)} for at, value in points)]}


class TestAge:
    def test_who_has_been_unused_for_too_long_goes_though_there_is_room(self, cluster: Cluster) -> None:
        async def main(cluster: Cluster) -> None:
            await cluster.create(of("p", "a:1"), of("q", "b:1"), of("r", "unknown:1"))
            await cluster.at(310)
            for name in "pr":
                await cluster.client.delete("pods", name, "default")
            await cluster.at(2000)

        # Last seen in use at 300 s; more than 10 minutes later is 1200 s.
        cluster.play(main, [disk("1Gi")], images=SIZES, kubelet={"imageMaximumGCAge": "10m"})
        assert collected(cluster) == [(1200, ["a:1", "unknown:1"])]

    def test_nothing_is_too_old_before_the_kubelet_is(self, cluster: Cluster) -> None:
        async def main(cluster: Cluster) -> None:
            await cluster.at(1000)

        one = disk("1Gi")
        one.status.images.add(names=["a:1"])
        cluster.play(main, [one], images=SIZES, kubelet={"imageMaximumGCAge": "10m"})
        assert collected(cluster) == [(900, ["a:1"])]


class TestPressure:
    """The eviction manager removes all that nobody uses."""

    def test_all_unused_images_go_and_those_of_ended_pods(self, cluster: Cluster) -> None:
        async def main(cluster: Cluster) -> None:
            await cluster.create(of("p", "a:1"), of("q", "b:1", run=10), of("r", "unknown:1"))
            await cluster.at(20)
            await cluster.client.delete("pods", "r", "default")
            await cluster.at(500)
            assert await cluster.phase("p") == "Running"

        usage = {"disk": steps((440, 760))}
        cluster.play(main, [disk()], images=SIZES, kubelet={"evictionHard": {"imagefs.available": "10%"}}, usage=usage)
        # Of the ended pod the dead container is removed first.
        assert collected(cluster) == [(440, ["unknown:1", "b:1"])]

    def test_young_images_stay(self, cluster: Cluster) -> None:
        async def main(cluster: Cluster) -> None:
            await cluster.at(20)
            await cluster.create(of("p", "a:1"))
            await cluster.at(30)
            await cluster.client.delete("pods", "p", "default")
            await cluster.at(200)

        usage = {"disk": steps((95, 850))}
        cluster.play(main, [disk()], images=SIZES, kubelet={"evictionHard": {"imagefs.available": "10%"}}, usage=usage)
        # Every look tries; the first one that sees the image is at 100 s.
        gone = [at for at, names in collected(cluster) if names]
        assert gone == []
        assert {at for at, _ in collected(cluster)} >= {100, 110, 200}


@pytest.mark.parametrize(
    ("fields", "complaint"),
    [
        ({"imageGCHighThresholdPercent": 101}, "imageGCHighThresholdPercent: must be at most 100"),
        ({"imageGCLowThresholdPercent": "80"}, "imageGCLowThresholdPercent: must be a whole number, not the text"),
        (
            {"imageGCLowThresholdPercent": 85},
            "imageGCLowThresholdPercent: imageGCLowThresholdPercent (85) must be",
        ),
        ({"imageGCHighThresholdPercent": 70}, "imageGCHighThresholdPercent: imageGCLowThresholdPercent (80) must be"),
        ({"imageMaximumGCAge": "-1s"}, "imageMaximumGCAge: must not be negative"),
        ({"imageMaximumGCAge": "2m"}, "imageMaximumGCAge: must be greater than imageMinimumGCAge (120s)"),
        ({"imageMinimumGCAge": "soon"}, "imageMinimumGCAge: 'soon' is not a duration"),
    ],
)
def test_what_is_wrong_with_a_configuration(fields: dict[str, Any], complaint: str) -> None:
    with pytest.raises(ValueError, match=re.escape(complaint)):
        kubelet_configurations.configuration(fields)


def test_defaults() -> None:
    found = kubelet_configurations.configuration({"imageMinimumGCAge": "0s", "imageMaximumGCAge": "0s"})
    assert found.image_policy == image_policies.Policy(85, 80, 120 * SECOND_NS, 0)


def test_sizes_are_written_as_in_the_kubelet() -> None:
    assert [garbage.format_size(size) for size in (0, 1023, 1536, 97_828_376_576)] == [
        "0 B", "1023 B", "1.5 KiB", "91.1 GiB",
    ]  # fmt: skip


# Passes that are left out --------------------------------------------------------------------------------------------


class Story:
    """What happens on a random node: (second, what, name)."""

    def __init__(self, seed: int) -> None:
        stream = random.Random(seed)
        self.capacity = 1000
        self.disk: Any = stream.choice(
            (
                "0",
                "300",
                "600",
                steps((stream.randint(1, 3000), 500), (3500, 200)),
                {"sine": {"mean": "400", "amplitude": "300", "period": f"{stream.randint(500, 3000)}s"}},
            )
        )
        self.policy = image_policies.Policy(
            high_percent=stream.choice((60, 85)),
            low_percent=stream.choice((30, 50)),
            min_age_ns=stream.choice((1, 120, 400)) * SECOND_NS,
            max_age_ns=stream.choice((0, 0, 500, 1500)) * SECOND_NS,
        )
        self.sizes = {f"i{number}:1": stream.randint(1, 250) for number in range(8)}
        self.steps: list[tuple[int, str, str]] = []
        for _ in range(stream.randint(1, 25)):
            at, name = stream.randint(0, 4000), stream.choice(sorted(self.sizes))
            if stream.random() < 0.3:
                at -= at % 300  # in the instant of a pass
            self.steps.append((at, "begin", name))
            self.steps.append((at + stream.choice((1, 100, 300, 900, 5000)), "end", name))
        for _ in range(stream.randint(0, 2)):
            self.steps.append((stream.randint(1, 4000), "reclaim", ""))
        self.steps.sort(key=lambda step: (step[0], step[1] == "reclaim"))


def every_pass(story: Story, until_s: int) -> list[tuple[int, list[str]]]:
    """What the real manager removes, which looks at everything every five minutes."""
    policy, here, containers = story.policy, dict[str, int](), list[str]()
    first, last = dict[str, int](), dict[str, int]()
    removed: list[tuple[int, list[str]]] = []
    disk_used = usages.parse_node({"disk": story.disk})["disk"]

    def look(at: int, *, everything: bool) -> None:
        for name in here:
            first.setdefault(name, at)
            if name in containers:
                last[name] = at
        unused = sorted(
            (name for name in here if name not in containers), key=lambda name: (last.get(name, -1), first[name])
        )
        gone = []
        if policy.max_age_ns and not everything and at * SECOND_NS > policy.max_age_ns:
            gone = [name for name in unused if (at - last.get(name, -(10**9))) * SECOND_NS > policy.max_age_ns]
        left = [name for name in unused if name not in gone]
        used = disk_used.at(at) + sum(size for name, size in here.items() if name not in gone)
        available = max(0, story.capacity - used)
        if everything or 100 - available * 100 // story.capacity >= policy.high_percent:
            wanted = 10**9 if everything else story.capacity * (100 - policy.low_percent) // 100 - available
            freed = 0
            for name in left:
                if freed >= wanted:
                    break
                if (at - first[name]) * SECOND_NS >= policy.min_age_ns:
                    gone.append(name)
                    freed += here[name]
        for name in gone:
            del here[name], first[name]
            last.pop(name, None)
        if gone:
            removed.append((at, gone))

    steps = list(story.steps)
    for at in range(until_s):
        while steps and steps[0][0] == at:
            _, what, name = steps.pop(0)
            if what == "begin":
                here.setdefault(name, story.sizes[name])
                containers.append(name)
            elif what == "end":
                containers.remove(name)
            else:
                look(at, everything=True)
        if at % 300 == 0:
            look(at, everything=False)
    return removed


def some_passes(story: Story, until_s: int) -> list[tuple[int, list[str]]]:
    recorder = Recorder()
    runtime = SimRuntime(0, recorder, {})
    env, clock = runtime.env("kubelet/n1"), runtime.clock
    here = stores.Images(env, story.sizes, lambda: collector.plan())
    containers: list[tuple[str, int]] = []
    meter = machines.Meter(
        machines.Machine(0, 0, machines.FileSystem(story.capacity, 1000), None, False, 1000),
        usages.parse_node({"disk": story.disk}),
        list,
        lambda: here.bytes,
        env.disk,
    )
    collector = garbage.Collector(env, "n1", story.policy, here, meter, lambda: [name for name, _ in containers])

    def act(what: str, name: str) -> None:
        if what == "begin":
            here.add(name)
            containers.append((name, clock.now_ns()))
        elif what == "end":
            gone = next(found for found in containers if found[0] == name)
            containers.remove(gone)
            collector.container_gone(*gone)
        else:
            collector.delete_unused()
        collector.plan()

    async def main() -> None:
        await runtime.begin()
        collector.start(env.clock.now_ns())
        collector.plan()
        for at, what, name in story.steps:
            clock.call_at_ns(at * SECOND_NS, act, what, name)
        await clock.sleep_until_ns(until_s * SECOND_NS)

    runtime.run(main())
    return [
        (ns // SECOND_NS, list(data["images"]))
        for ns, _, kind, data in recorder.events
        if kind == "kubelet.collected" and data["images"]
    ]


@pytest.mark.parametrize("seed", range(60))
def test_passes_that_are_left_out_change_nothing(seed: int) -> None:
    story = Story(seed)
    assert some_passes(story, 7000) == every_pass(story, 7000)
