"""What the kubelet tells of its pods, while others write into the same statuses, the API server is away, or a name has
passed to another pod."""

from __future__ import annotations

import asyncio
import dataclasses
from collections.abc import Awaitable
from typing import Any

import pytest

from kemu import errors
from kemu.emulated.apiserver.registry import strategies
from kemu.emulated.kubelet.pods import statuses
from kemu.emulated.kubelet.sync import status_managers
from kemu.emulated.objects import meta
from kemu.emulated.objects.pods import pod_phases
from kemu.messages.k8s import core_v1_pb2
from tests.kubelet.cluster import Cluster, node, pod

LATE = {"watchLatency": 0.5}
"""The kubelet hears of everything half a second late."""

ALWAYS = tuple(one for one in statuses.OWNED_CONDITIONS if one != "AllContainersRestarting")
"""Conditions of the kubelet that every pod has."""


def patch_of(condition_type: str, status: str = "True") -> dict[str, Any]:
    return {"status": {"conditions": [{"type": condition_type, "status": status}]}}


def statuses_of(found: core_v1_pb2.Pod | None) -> dict[str, str]:
    assert found is not None
    return {condition.type: condition.status for condition in found.status.conditions}


def test_conditions_of_others_and_of_the_kubelet_are_written_at_once() -> None:
    cluster = Cluster(network=LATE)

    async def main(cluster: Cluster) -> core_v1_pb2.Pod | None:
        await cluster.create(pod("a", start=1))
        await cluster.at(1.2)
        # The kubelet hears of these at 1.7 and reports at 1.5 that the pod runs.
        for name in ("DisruptionTarget", "example.com/mine"):
            await cluster.client.patch("pods", "a", "default", patch_of(name), "status", "strategic")
        await cluster.at(1.6)
        return await cluster.get("a")

    found = cluster.play(main)
    assert found is not None
    assert found.status.phase == "Running"
    assert statuses_of(found) == dict.fromkeys(
        ("DisruptionTarget", "example.com/mine", "PodScheduled", "PodReadyToStartContainers", "Initialized", "Ready",
         "ContainersReady"), "True",
    )  # fmt: skip
    assert not cluster.recorder.of("api.refused")


def test_conditions_say_of_which_generation_of_the_pod_they_speak(cluster: Cluster) -> None:
    """``CalculatePodConditionObservedGeneration``: those of the kubelet, DisruptionTarget included."""

    async def main(cluster: Cluster) -> None:
        important = pod("important", "2")
        important.spec.priorityClassName = "system-node-critical"
        await cluster.create(pod("victim", "3"))
        await cluster.at(1)
        victim = await cluster.pod("victim")
        assert {one.type: one.observedGeneration for one in victim.status.conditions} == dict.fromkeys(ALWAYS, 1)
        await cluster.create(important)
        await cluster.at(2)
        victim = await cluster.pod("victim")
        assert victim.status.phase == "Failed"
        assert {one.type: one.observedGeneration for one in victim.status.conditions} == dict.fromkeys(
            (*ALWAYS, "DisruptionTarget"), 1
        )

    cluster.play(main)


def test_nobody_is_refused_however_many_write() -> None:
    cluster = Cluster(network=LATE)
    names = [f"example.com/{n}" for n in range(20)]

    async def main(cluster: Cluster) -> core_v1_pb2.Pod | None:
        await cluster.create(pod("a", start=1, run=0.1))

        async def write(n: int) -> None:
            await cluster.at(1 + n / 20)
            await cluster.client.patch("pods", "a", "default", patch_of(names[n]), "status", "strategic")

        await asyncio.gather(*(write(n) for n in range(20)))
        await cluster.at(60)
        return await cluster.get("a")

    found = cluster.play(main)
    assert [name for name in names if name in statuses_of(found)] == names
    assert found is not None
    assert found.status.containerStatuses[0].restartCount >= 2
    assert not cluster.recorder.of("api.refused")


def test_a_later_pod_of_the_name_is_not_touched() -> None:
    cluster = Cluster(network=LATE)

    async def main(cluster: Cluster) -> Any:
        first = await cluster.client.create(pod("a", start=1))
        await cluster.at(1.2)
        await cluster.client.delete("pods", "a", "default", grace_period_seconds=0)
        second = await cluster.client.create(pod("a", on="elsewhere"))
        # At 1.5 the kubelet knows the first pod alone, and reports that it runs.
        await cluster.at(60)
        return first, second, await cluster.get("a")

    first, second, found = cluster.play(main)
    assert found == second
    assert not found.status.HasField("startTime")
    (refused,) = cluster.recorder.of("api.refused")
    assert (refused["reason"], refused["verb"], refused["resource"]) == ("Conflict", "patch", "pods")
    assert (refused["name"], refused["uid"]) == ("a", first.metadata.uid)
    assert f"UID in object meta: {second.metadata.uid}" in refused["message"]


@pytest.mark.parametrize("on", ["n1", "elsewhere"])
def test_a_later_pod_of_the_name_lives_its_own_life(on: str) -> None:
    cluster = Cluster(network=LATE)

    async def main(cluster: Cluster) -> Any:
        await cluster.create(pod("a", start=1, restart="Never", run=3))
        await cluster.at(1.2)
        await cluster.client.delete("pods", "a", "default", grace_period_seconds=0)
        await cluster.create(pod("a", on=on, start=1))
        await cluster.at(60)
        return await cluster.phase("a")

    assert cluster.play(main, [node()]) == ("Running" if on == "n1" else "Pending")


def test_what_others_write_over_a_status_is_put_right_at_the_next_look(cluster: Cluster) -> None:
    """As it was: the kubelet's condition has not changed, so neither has the time of its last transition."""

    async def main(cluster: Cluster) -> None:
        await cluster.create(pod("a", start=1))
        await cluster.at(5)
        before = await cluster.pod("a")
        await cluster.at(50)
        now_ns = cluster.clock.epoch_unix_s * 10**9 + cluster.clock.now_ns()
        changed = meta.copied(before)
        meta.set_condition(changed.status.conditions, "Ready", "False", "Custom", "by hand", now_ns)
        changed.status.phase = "Pending"
        await cluster.client.update_status(changed)
        await cluster.at(61)
        found = await cluster.pod("a")
        assert found.metadata.resourceVersion != before.metadata.resourceVersion
        assert found.status.phase == "Running"
        assert meta.get_condition(found.status.conditions, "Ready") == meta.get_condition(
            before.status.conditions, "Ready"
        )
        await cluster.at(200)
        again = await cluster.get("a")
        assert again == found, "once is enough"

    cluster.play(main)


def test_what_does_not_touch_the_status_is_not_answered(cluster: Cluster) -> None:
    async def main(cluster: Cluster) -> None:
        await cluster.create(pod("a"))
        await cluster.at(5)
        await cluster.client.patch("pods", "a", "default", {"metadata": {"labels": {"x": "y"}}})
        last = await cluster.client.patch("pods", "a", "default", patch_of("example.com/mine"), "status", "strategic")
        await cluster.at(60)
        assert await cluster.get("a") == last

    cluster.play(main)


def test_a_status_that_could_not_be_written_is_written_when_the_api_server_is_back(cluster: Cluster) -> None:
    async def main(cluster: Cluster) -> Any:
        await cluster.create(pod("a", start=1, run=5, restart="Never"))
        await cluster.at(4)
        await cluster.client.patch("pods", "a", "default", patch_of("example.com/mine"), "status", "strategic")
        await cluster.at(6)
        await cluster.runtime.crash("apiserver/0")
        await cluster.at(15)
        await cluster.runtime.restart("apiserver/0")
        await cluster.at(40)
        return await cluster.get("a")

    found = cluster.play(main)
    assert found.status.phase == "Succeeded"
    ended = meta.get_condition(found.status.conditions, "Ready")
    assert ended is not None
    assert (ended.status, ended.reason) == ("False", "PodCompleted")
    # It ended then, whenever that was written.
    assert found.status.containerStatuses[0].state.terminated.finishedAt.seconds == cluster.clock.epoch_unix_s + 6
    assert ended.lastTransitionTime.seconds == cluster.clock.epoch_unix_s + 6
    assert statuses_of(found)["example.com/mine"] == "True"


def test_a_pod_is_removed_when_the_api_server_is_back(cluster: Cluster) -> None:
    async def main(cluster: Cluster) -> None:
        await cluster.create(pod("a", shutdown=5))
        await cluster.at(4)
        await cluster.client.delete("pods", "a", "default")
        await cluster.at(6)
        await cluster.runtime.crash("apiserver/0")
        await cluster.at(15)
        await cluster.runtime.restart("apiserver/0")
        await cluster.at(40)
        assert await cluster.phase("a") == "gone"

    cluster.play(main)


def test_a_pod_that_its_node_does_not_take_loses_the_conditions_of_the_kubelet(cluster: Cluster) -> None:
    async def main(cluster: Cluster) -> Any:
        created = await cluster.client.create(pod("a", cpu="100", on=""))
        await cluster.client.patch("pods", "a", "default", patch_of("example.com/mine"), "status", "strategic")
        bound = await cluster.client.bind("default", "a", created.metadata.uid, "n1")
        await cluster.at(5)
        return bound, await cluster.get("a")

    bound, found = cluster.play(main)
    assert statuses_of(bound) == {"PodScheduled": "True", "example.com/mine": "True"}
    assert (found.status.phase, found.status.reason) == (pod_phases.FAILED, "OutOfcpu")
    assert statuses_of(found) == {"example.com/mine": "True"}


def test_what_others_say_of_a_node_stays() -> None:
    cluster = Cluster(network=LATE)

    async def main(cluster: Cluster) -> None:
        await cluster.at(50)
        for condition_type, status in (("Ready", "Unknown"), ("example.com/Disk", "True")):
            patch = {
                "status": {
                    "conditions": [
                        {"type": condition_type, "status": status, "lastHeartbeatTime": "2020-01-01T00:00:00Z"}
                    ]
                }
            }
            await cluster.client.patch("nodes", "n1", "", patch, "status", "strategic")
        await cluster.at(62)
        found = await cluster.client.get("nodes", "n1")
        assert meta.is_ready(found)
        theirs = meta.get_condition(found.status.conditions, "example.com/Disk")
        assert theirs is not None
        assert (theirs.status, theirs.lastHeartbeatTime.seconds) == ("True", 1577836800)
        await cluster.at(400)
        found = await cluster.client.get("nodes", "n1")
        assert meta.get_condition(found.status.conditions, "example.com/Disk") == theirs

    cluster.play(main)
    assert not cluster.recorder.of("api.refused")


def test_a_node_with_another_boot_id_has_rebooted(cluster: Cluster) -> None:
    async def main(cluster: Cluster) -> list[tuple[str, str, str]]:
        for number, boot in enumerate(("first", "second", "second")):
            await cluster.at(10 * number + 5)
            await cluster.runtime.crash("kubelet/n1")
            spec = cluster.kubelet(node(), boot={"id": boot, "at_s": 10 * number + 5})
            await cluster.runtime.restart("kubelet/n1", spec)
        await cluster.at(40)
        found = await cluster.client.list("events")
        assert [one.involvedObject.name for one in found.items] == ["n1"]
        return [(one.type, one.reason, one.message) for one in found.items]

    note = "Node n1 has been rebooted, boot id: second"
    assert cluster.play(main, boot={"id": "first"}) == [("Warning", "Rebooted", note)]


def test_a_refusal_by_uid_is_a_conflict(cluster: Cluster) -> None:
    """Which is all that a patch of a status can be refused for, as long as the pod is there."""

    async def main(cluster: Cluster) -> None:
        created = await cluster.client.create(pod("a", on="elsewhere"))
        runs = core_v1_pb2.Pod(status=core_v1_pb2.PodStatus(phase="Running")).SerializeToString(deterministic=True)

        def patch(uid: str) -> Awaitable[core_v1_pb2.Pod]:
            return cluster.client.patch_message(core_v1_pb2.Pod, "a", "default", runs, "status", uid)

        with pytest.raises(errors.Conflict):
            await patch("another")
        done = await patch(created.metadata.uid)
        assert done.status.phase == "Running"

    cluster.play(main)


@pytest.mark.parametrize("planted", [False, True])
def test_pods_that_are_alike_share_one_status_which_is_that_of_each(
    cluster: Cluster, monkeypatch: pytest.MonkeyPatch, planted: bool
) -> None:
    """Every status is compared with one that is rendered anew. ``planted``: the second is not looked at, which the
    comparison must notice."""
    counts = {"shared": 0, "wrong": 0, "all": 0}
    status = status_managers.StatusManager._status
    render = status_managers.StatusManager._render

    def compared(self: Any, worker: Any, known: Any, *, is_starting: bool) -> bytes:
        before = len(status_managers._RENDERED)
        told = status(self, worker, known, is_starting=is_starting)
        counts["all"] += 1
        counts["shared"] += len(status_managers._RENDERED) == before
        fresh = render(self, worker, known, is_starting=is_starting).SerializeToString(deterministic=True)
        counts["wrong"] += fresh != told
        return told

    monkeypatch.setattr(status_managers.StatusManager, "_status", compared)
    monkeypatch.setattr(status_managers, "_RENDERED", {})
    if planted:
        monkeypatch.setattr(status_managers, "SECOND_NS", 1_000 * status_managers.SECOND_NS)

    async def main(cluster: Cluster) -> None:
        for tenth in range(30):
            await cluster.at(0.1 * tenth)
            lives = {"run": 1.0 + tenth / 8} if tenth % 5 == 4 else {}
            await cluster.create(pod(f"a{tenth}", "10m", start=0.5 + tenth % 3 / 2, **lives))
            if tenth % 7 == 6:
                patch = patch_of("example.com/mine")
                await cluster.client.patch("pods", f"a{tenth}", "default", patch, "status", "strategic")
        await cluster.at(20)

    cluster.play(main, [node(pods="100")])
    assert bool(counts["wrong"]) is planted
    assert 30 < counts["shared"] < counts["all"] - (0 if planted else 10)


def test_a_patch_of_the_status_alone_comes_to_what_any_patch_does(monkeypatch: pytest.MonkeyPatch) -> None:
    async def main(cluster: Cluster) -> None:
        for number in range(4):
            made = pod(f"a{number}", "10m", start=0.1, shutdown=0.3, labels={"app": "a"})
            made.metadata.annotations["example.com/a"] = "b"
            made.metadata.ownerReferences.add(apiVersion="v1", kind="ConfigMap", name="c", uid="1")
            if number % 2:
                made.metadata.finalizers.append("example.com/f")
            await cluster.create(made)
        await cluster.at(1)
        for number in (1, 2):
            await cluster.client.delete("pods", f"a{number}", "default")
        await cluster.at(20)

    events = []
    for is_alone in (True, False):
        part = strategies.STRATEGIES["pods"].subresources["status"]
        assert part.alone is not None
        if not is_alone:
            parts = {**strategies.STRATEGIES["pods"].subresources, "status": dataclasses.replace(part, alone=None)}
            changed = dataclasses.replace(strategies.STRATEGIES["pods"], subresources=parts)
            monkeypatch.setitem(strategies.STRATEGIES, "pods", changed)
        cluster = Cluster()
        cluster.play(main)
        events.append(cluster.recorder.events)
    assert events[0] == events[1]
    assert len(events[0]) > 50
