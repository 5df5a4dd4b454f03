"""The user actor against a store and an API server: set-up, events at their times, pods that come back."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from kemu import errors
from kemu.emulated.client.clients import Client
from kemu.lab.scenario.playing import plans, workloads
from kemu.lab.up import clusters
from kemu.runtime.sim.simulation import SimRuntime
from kemu.testing import Recorder, sim
from tests.scenario.texts import load, pod


class World:
    """What there is when the user has played for a while."""

    def __init__(self, spec: str, seconds: float, meddle: Any = None, seed: int = 1) -> None:
        """``meddle(client, clock)``: a coroutine that goes on at the same time."""
        # No kubelet runs here: Nodes are objects.
        scenario = clusters.without_kubelets(load(spec))
        self.recorder = Recorder()

        async def main(runtime: SimRuntime) -> None:
            client = Client(runtime.env("reader"))
            if meddle is not None:
                await meddle(client, runtime.clock)
            await runtime.clock.sleep(seconds - runtime.clock.now_ns() / 1e9)
            for resource in ("pods", "nodes", "priorityclasses"):
                items = (await client.list(resource)).items
                setattr(self, resource, {item.metadata.name: item for item in items})

        actors = [*plans.store(scenario), *plans.apiservers(scenario), *plans.user(scenario)]
        sim(main, seed, actors, sink=self.recorder)

    pods: Mapping[str, Any]
    nodes: Mapping[str, Any]
    priorityclasses: Mapping[str, Any]

    def told(self, kind: str) -> list[tuple[float, Mapping[str, Any]]]:
        """Events of the run log: seconds and data."""
        return [(now_ns / 1e9, data) for now_ns, _, what, data in self.recorder.events if what == kind]


NODE = "{apiVersion: v1, kind: Node, metadata: {name: n}}"


def stream(rest: str, name: str = "w") -> str:
    return f"{{name: {name}, pods: {{spec: {{containers: [{{name: m}}]}}}}, {rest}}}"


def test_set_up_is_over_before_the_clock_starts() -> None:
    world = World(f"priorityClasses: {{high: 5}}\nmanifests: [{NODE}, {pod('a', 'priorityClassName: high')}]", 1)
    assert world.pods["a"].spec.priority == 5
    assert world.pods["a"].status.phase == "Pending"
    assert "n" in world.nodes
    assert world.priorityclasses["high"].value == 5
    requests = [time for time, data in world.told("api.request") if data["by"] == "user"]
    assert requests == [0.0]


def test_a_pod_with_a_node_has_run_there_since_the_start() -> None:
    world = World(f"manifests: [{pod('a', 'nodeName: node-1')}]", 1)
    status = world.pods["a"].status
    assert status.phase == "Running"
    assert status.startTime.seconds == world.pods["a"].metadata.creationTimestamp.seconds
    assert {condition.type: condition.status for condition in status.conditions} == {
        "PodScheduled": "True", "Initialized": "True", "PodReadyToStartContainers": "True",
        "ContainersReady": "True", "Ready": "True",
    }  # fmt: skip
    assert [container.ready for container in status.containerStatuses] == [True]


def test_a_status_in_a_manifest_is_kept() -> None:
    manifest = pod("a", "nodeName: node-1").removesuffix("}") + ", status: {phase: Succeeded}}"
    assert World(f"manifests: [{manifest}]", 1).pods["a"].status.phase == "Succeeded"


def test_a_manifest_that_the_api_server_refuses_is_told_with_its_place() -> None:
    spec = "priorityClasses: {a: {value: 1, globalDefault: yes}, b: {value: 2, globalDefault: yes}}"
    with pytest.raises(errors.KemuError) as caught:
        World(spec, 1)
    cause: BaseException | None = caught.value
    while cause is not None and not isinstance(cause, errors.ScenarioError):
        cause = cause.__cause__
    assert isinstance(cause, errors.ScenarioError)
    assert cause.problems[0].path == "spec.priorityClasses.b"


def test_events_happen_at_their_times() -> None:
    world = World(
        f"manifests: [{NODE}, {pod('a')}]\n"
        "events:\n"
        f"- {{at: 1s, create: {pod('b')}}}\n"
        "- {at: 2500ms, cordon: {node: n}}\n"
        "- {at: 3s, finish: {pod: a, exitCode: 4}}\n"
        "- {at: 4s, patch: {kind: Pod, name: a, merge: {metadata: {labels: {x: y}}}}}\n"
        "- {at: 5s, delete: {pod: b}}\n"
        f"- {{at: 6s, apply: {pod('c')}}}\n"
        "- {at: 7s, apply: {apiVersion: v1, kind: Pod, metadata: {name: a, labels: {z: q}},"
        " spec: {containers: [{name: main}]}}}\n",
        8,
    )
    assert [(time, data["index"], data["what"]) for time, data in world.told("user.event")] == [
        (1, 0, "create"), (2.5, 1, "cordon"), (3, 2, "finish"), (4, 3, "patch"), (5, 4, "delete"), (6, 5, "apply"),
        (7, 6, "apply"),
    ]  # fmt: skip
    assert list(world.pods) == ["a", "c"]
    assert world.pods["a"].metadata.annotations["kemu.dev/finish"] == "4"
    assert dict(world.pods["a"].metadata.labels) == {"x": "y", "z": "q"}
    assert world.nodes["n"].spec.unschedulable
    assert world.told("user.refused") == []


def test_taints_are_added_replaced_and_removed() -> None:
    taint = "taint: {node: n, key: k, value: v"
    events = [
        f"{{at: 1s, {taint}, effect: NoSchedule}}}}",
        f"{{at: 1s, {taint}, effect: NoExecute}}}}",
        "{at: 2s, taint: {node: n, key: k, value: w, effect: NoExecute}}",
        "{at: 3s, untaint: {node: n, key: k, effect: NoSchedule}}",
        "{at: 3s, taint: {node: n, key: l, effect: PreferNoSchedule}}",
    ]
    world = World(f"manifests: [{NODE}]\nevents: [{', '.join(events)}]", 5)
    assert [(taint.key, taint.value, taint.effect) for taint in world.nodes["n"].spec.taints] == [
        ("k", "w", "NoExecute"), ("l", "", "PreferNoSchedule"),
    ]  # fmt: skip
    events.append("{at: 4s, untaint: {node: n, key: k}}")
    events.append("{at: 5s, untaint: {node: n, key: l}}")
    assert not World(f"manifests: [{NODE}]\nevents: [{', '.join(events)}]", 6).nodes["n"].spec.taints


def test_what_is_refused_is_told_and_nothing_else_happens() -> None:
    world = World(
        f"manifests: [{pod('a')}]\n"
        f"events: [{{at: 1s, create: {pod('a')}}}, {{at: 2s, delete: {{pod: a}}}}, {{at: 3s, evict: {{pod: a}}}},"
        f" {{at: 4s, create: {pod('b')}}}]",
        5,
    )
    assert [(data["index"], data["what"], data["reason"]) for _, data in world.told("user.refused")] == [
        (0, "create", "AlreadyExists"), (2, "evict", "NotFound"),
    ]  # fmt: skip
    assert list(world.pods) == ["b"]


def test_pods_of_a_workload_come_at_their_times() -> None:
    rest = "start: 2s, arrivals: {every: 1500ms, count: 3}, life: {runSeconds: 5}"
    world = World(f"workloads: [{stream(rest)}, {stream('arrivals: {count: 2}', 'v')}]", 10)
    made = [(round(time, 1), data["pod"], data["workload"], data["n"]) for time, data in world.told("user.pod")]
    assert made == [
        (0, "default/v-0", "v", 0), (0, "default/v-1", "v", 1), (2, "default/w-0", "w", 0),
        (3.5, "default/w-1", "w", 1), (5, "default/w-2", "w", 2),
    ]  # fmt: skip
    assert all(data["uid"] == world.pods[data["pod"].removeprefix("default/")].metadata.uid
               for _, data in world.told("user.pod"))  # fmt: skip
    assert world.pods["w-0"].metadata.labels[workloads.LABEL] == "w"


def test_what_shares_an_instant_is_sent_together() -> None:
    world = World(f"workloads: [{stream('start: 1s, arrivals: {count: 50}')}]", 3)
    acked = [
        data["acks"] for _, actor, kind, data in world.recorder.events if (actor, kind) == ("user", "client.acked")
    ]
    assert max(len(revisions) for revisions in acked) >= 25


async def lose_pods(client: Client, clock: Any) -> None:
    """Pods of workload w, one lost in each way."""
    await clock.sleep(2)
    await client.bind("default", "w-0", "", "node-1")
    await client.evict("default", "w-0")  # terminating
    await client.delete("pods", "w-1", "default")  # gone at once
    for name, phase, reason in (("w-2", "Failed", "OutOfcpu"), ("w-3", "Failed", ""), ("w-4", "Succeeded", "")):
        lost = await client.get("pods", name, "default")
        lost.status.phase = phase
        if reason:
            lost.status.reason = reason
        await client.update_status(lost)


def test_lost_pods_come_back_under_new_names() -> None:
    world = World(f"workloads: [{stream('arrivals: {count: 5}, replaceFinished: yes')}]", 5, lose_pods)
    replaced = {data["replaces"]: data["pod"] for _, data in world.told("user.pod") if data["replaces"]}
    assert replaced == {"default/w-0": "default/w-5", "default/w-1": "default/w-6", "default/w-2": "default/w-7"}
    assert sorted(world.pods) == ["w-0", "w-2", "w-3", "w-4", "w-5", "w-6", "w-7"]


def test_they_do_not_unless_the_workload_says_so() -> None:
    world = World(f"workloads: [{stream('arrivals: {count: 5}')}]", 5, lose_pods)
    assert sorted(world.pods) == ["w-0", "w-2", "w-3", "w-4"]


def test_what_an_event_deletes_does_not_come_back() -> None:
    spec = "events: [{at: 2s, delete: {pod: w-0}}, {at: 2s, evict: {pod: w-1}}]"
    world = World(f"{spec}\nworkloads: [{stream('arrivals: {count: 2}, replaceFinished: yes')}]", 5)
    assert sorted(world.pods) == ["w-2"]
    assert [data["replaces"] for _, data in world.told("user.pod")][-1] == "default/w-1"


def test_a_user_insists_while_the_api_server_is_away() -> None:
    arrivals = stream("start: 1s, arrivals: {every: 500ms, count: 20}")
    spec = f"workloads: [{arrivals}]\nmanifests: [{NODE}]\nevents: [{{at: 4s, cordon: {{node: n}}}}]"
    scenario = clusters.without_kubelets(load(spec))
    recorder = Recorder()

    async def main(runtime: SimRuntime) -> None:
        await runtime.clock.sleep(3)
        await runtime.crash("apiserver/0")
        await runtime.clock.sleep(5)
        await runtime.restart("apiserver/0")
        await runtime.clock.sleep(60)
        client = Client(runtime.env("reader"))
        assert len((await client.list("pods")).items) == 20
        assert (await client.get("nodes", "n")).spec.unschedulable

    actors = [*plans.store(scenario), *plans.apiservers(scenario), *plans.user(scenario)]
    sim(main, 1, actors, sink=recorder)
    assert recorder.of("user.refused") == []
    assert sorted(data["n"] for data in recorder.of("user.pod")) == list(range(20))


def test_the_same_seed_plays_the_same_play() -> None:
    spec = f"workloads: [{stream('arrivals: {poisson: {rate: 5/s}}, life: {runSeconds: {exponential: {mean: 9}}}')}]"
    first, again, other = (World(spec, 5, seed=seed).told("user.pod") for seed in (1, 1, 2))
    assert [(time, data["pod"]) for time, data in first] == [(time, data["pod"]) for time, data in again]
    # The network's latency is constant here, so the seed of the runtime changes names and times in nothing but UIDs.
    assert [data["uid"] for _, data in first] != [data["uid"] for _, data in other]
