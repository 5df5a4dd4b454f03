"""Extenders: whom the scheduler asks, what it makes of the answers, and of answers that do not come."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, cast

import numpy as np
import pytest
import yaml

from kemu.emulated.objects.conversion import convert
from kemu.emulated.scheduler.configuration import configurations
from kemu.emulated.scheduler.extenders import servers
from kemu.emulated.scheduler.extenders.clients import ExtenderClient, Extenders, FilterAnswer
from kemu.emulated.scheduler.extenders.servers import Extender, Refusal
from kemu.emulated.scheduler.framework.statuses import Status, unresolvable, unschedulable
from kemu.errors import KemuError, SimulationError
from kemu.lab.scenario.loading import loader
from kemu.lab.scenario.playing import runner
from kemu.messages.k8s import scheduling_v1alpha2_pb2
from kemu.runtime.env import ActorSpec, Env
from kemu.runtime.sim.simulation import SimRuntime
from kemu.testing import Recorder
from tests.scheduler import objects
from tests.scheduler.runs import Main, Run

HERE = __name__
RESOURCE = "example.com/licence"


class Scripted(Extender):
    """Does what its arguments say; ``node: answer`` each."""

    def filter(self, pod: Any, node: Any) -> Status | None:
        if self.args.get("crashes"):
            raise Refusal("failed Filter with extender at URL kemu://extender/bad: out of order")
        reason = self.args.get("refuses", {}).get(node.metadata.name)
        if reason is None:
            return None
        return unresolvable(reason) if self.args.get("hopeless") else unschedulable(reason)

    async def consider(self, call: str) -> None:
        if "takes" in self.args:
            await self.env.clock.sleep(self.args["takes"].get(call, 0))

    def prioritize(self, pod: Any, node: Any) -> int:
        return int(self.args.get("scores", {}).get(node.metadata.name, 0))

    def preempt(self, pod: Any, node: Any, victims: Sequence[Any]) -> Sequence[Any] | None:
        if node.metadata.name in self.args.get("objects", ()):
            return None
        if self.args.get("names-nobody"):
            return []
        return victims

    async def bind(self, pod: Any, node: str) -> None:
        if self.args.get("binds-badly"):
            raise Refusal("the extender does not want to")
        await super().bind(pod, node)


class Extended(Run):
    """A run with extenders by name: ``args`` of the class, ``config`` of the scheduler, ``absent``."""

    def extend(self, **known: Mapping[str, Any]) -> Extended:
        self.extenders = known
        return self

    def play_extended(
        self, main: Main, nodes: Sequence[Any], running: Sequence[Any] = (), gates: Sequence[str] = ()
    ) -> None:
        actors, configured = [], []
        for name, known in self.extenders.items():
            configured.append({"urlPrefix": f"kemu://extender/{name}", **known.get("config", {})})
            config = {"plugin": f"{HERE}:Scripted", "args": known.get("args", {})}
            if not known.get("absent"):
                actors.append(
                    ActorSpec(f"extender/{name}", "kemu.emulated.scheduler.extenders.servers:ExtenderActor", config)
                )
        scheduler = {"extenders": configured, "featureGates": dict.fromkeys(gates, True)}
        self.play(main, nodes, [{"config": scheduler}], running, actors)


def node_names(count: int) -> list[Any]:
    return [objects.node(f"n{number}") for number in range(1, count + 1)]


def one_pod(until: float = 4.0, **fields: Any) -> Main:
    async def main(run: Run) -> None:
        await run.at(1)
        await run.create(objects.pod("p", **fields))
        await run.at(until)

    return main


def test_what_an_extender_refuses_is_no_candidate() -> None:
    run = Extended().extend(
        one={"args": {"refuses": {"n1": "dark"}}, "config": {"filterVerb": "filter"}},
        two={"args": {"refuses": {"n2": "damp"}}, "config": {"filterVerb": "filter", "nodeCacheCapable": True}},
    )
    run.play_extended(one_pod(), node_names(3))
    assert run.bound() == {"p": "n3"}
    calls = [(one["extender"], one["call"], one["nodes"]) for one in run.told("sched.extender", "p")]
    assert calls == [("kemu://extender/one", "Filter", 3), ("kemu://extender/two", "Filter", 2)]


@pytest.mark.parametrize("by_name", [False, True])
def test_a_pod_that_all_nodes_are_refused_for_says_why_and_any_event_wakes_it(by_name: bool) -> None:
    refuses = {"n1": "dark", "n2": "dark"}
    run = Extended().extend(
        one={"args": {"refuses": refuses}, "config": {"filterVerb": "filter", "nodeCacheCapable": by_name}}
    )

    async def main(run: Run) -> None:
        await run.at(1)
        await run.create(objects.pod("p"))
        await run.at(10)
        # Of no interest to any plugin that rejected the pod: there is none.
        await run.client.patch("nodes", "n1", "", {"metadata": {"labels": {"x": "y"}}})
        await run.at(12)

    run.play_extended(main, node_names(2))
    first, after_report, after_label = run.told("sched.attempt", "p")
    assert first["message"].startswith("0/2 nodes are available: 2 dark.")
    assert (first["plugins"], first["feasible"], first["result"]) == ({"Extender": 2}, 0, "unschedulable")
    # The condition that reports the first attempt is an update of the pod, and so an event. The second one writes none.
    assert 1 < after_report["at"] < 2
    assert 10 < after_label["at"] < 11


def test_unresolvable_nodes_are_no_candidates_for_preemption() -> None:
    for hopeless, preempts in ((False, "n1"), (True, "")):
        victim = objects.pod("v", "10", on="n1", priority=1)
        run = Extended().extend(
            one={"args": {"refuses": {"n1": "dark"}, "hopeless": hopeless}, "config": {"filterVerb": "filter"}}
        )
        run.play_extended(one_pod(cpu="1", priority=10), [objects.node("n1", cpu="20")], [victim])
        # Removing the pod would not change the extender's mind, so nobody is named as a victim: an error in one case.
        (attempt, *_) = run.told("sched.attempt", "p")
        failed = attempt["message"].endswith(' dark. preemption: expected at least one victim pod on node "n1"')
        assert failed is (preempts == "n1"), attempt["message"]
        assert run.told("sched.preemption") == []


def test_scores_of_extenders_count_ten_times_their_weight() -> None:
    for weight, best in ((1, "n2"), (20, "n1")):
        run = Extended().extend(
            one={
                "args": {"scores": {"n1": 1}},
                "config": {"prioritizeVerb": "prioritize", "weight": weight},
            },
            two={"args": {"scores": {"n2": 2}}, "config": {"prioritizeVerb": "prioritize", "weight": 2}},
        )
        run.play_extended(one_pod(), node_names(2))
        assert run.bound() == {"p": best}, weight


@pytest.mark.parametrize(("by_name", "best"), [(True, "n2"), (False, "n1")])
def test_after_a_filter_that_sends_objects_back_scores_see_empty_nodes(by_name: bool, best: str) -> None:
    """As in kube-scheduler, which goes on with the objects: without pods, n1 and n2 are equal but for the extender."""
    config = {"filterVerb": "filter", "prioritizeVerb": "prioritize", "weight": 1, "nodeCacheCapable": by_name}
    run = Extended().extend(one={"args": {"scores": {"n1": 1}}, "config": config})
    run.play_extended(one_pod(cpu="1"), node_names(2), [objects.pod("large", "5", on="n1")])
    assert run.bound()["p"] == best


def test_an_extender_is_not_asked_about_pods_without_its_resources() -> None:
    config = {"filterVerb": "filter", "managedResources": [{"name": RESOURCE, "ignoredByScheduler": True}]}
    run = Extended().extend(one={"args": {"refuses": {"n1": "no licence"}}, "config": config})

    async def main(run: Run) -> None:
        await run.at(1)
        wants = objects.pod("wants", None)
        for amounts in (wants.spec.containers[0].resources.requests, wants.spec.containers[0].resources.limits):
            amounts[RESOURCE].string = "1"
        await run.create(objects.pod("plain"), wants)
        await run.at(4)

    run.play_extended(main, node_names(1))
    assert run.bound() == {"plain": "n1"}
    assert {one["pod"] for one in run.told("sched.extender")} == {"default/wants"}
    # No node has any of the resource, which the scheduler leaves to the extender.
    assert run.told("sched.attempt", "wants")[0]["message"].startswith("0/1 nodes are available: 1 no licence.")


# Failures -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("broken", [{"absent": True}, {"args": {"crashes": True}}], ids=["absent", "broken"])
@pytest.mark.parametrize("ignorable", [False, True])
def test_a_failing_filter_fails_the_attempt_unless_it_is_ignorable(broken: dict[str, Any], ignorable: bool) -> None:
    run = Extended().extend(
        bad={**broken, "config": {"filterVerb": "filter", "ignorable": ignorable}},
        good={"args": {"refuses": {"n1": "dark"}}, "config": {"filterVerb": "filter"}},
    )
    run.play_extended(one_pod(), node_names(2))
    if ignorable:
        assert run.bound() == {"p": "n2"}
        # The others are asked first.
        assert [one["extender"] for one in run.told("sched.extender")] == [
            "kemu://extender/good",
            "kemu://extender/bad",
        ]
        return
    assert run.bound() == {}
    attempt = run.told("sched.attempt", "p")[0]
    assert attempt["result"] == "error"
    assert "failed Filter with extender at URL kemu://extender/bad" in attempt["message"]


def test_a_failing_prioritize_is_as_if_it_were_not_there() -> None:
    run = Extended().extend(
        bad={"absent": True, "config": {"prioritizeVerb": "prioritize", "weight": 9}},
        good={"args": {"scores": {"n2": 10}}, "config": {"prioritizeVerb": "prioritize", "weight": 9}},
    )
    run.play_extended(one_pod(), node_names(2))
    assert run.bound() == {"p": "n2"}


def test_an_error_is_tried_again_after_a_backoff_and_says_so_in_the_status() -> None:
    run = Extended().extend(bad={"absent": True, "config": {"filterVerb": "filter"}})
    conditions: list[Any] = []

    async def main(run: Run) -> None:
        await run.at(1)
        await run.create(objects.pod("p"))
        await run.at(5.5)
        conditions.extend((await run.get("p")).status.conditions)

    run.play_extended(main, node_names(1))
    (condition,) = [one for one in conditions if one.type == "PodScheduled"]
    assert condition.reason == "SchedulerError"
    assert [one["result"] for one in run.told("sched.attempt", "p")] == ["error"] * 2


@pytest.mark.parametrize(("timeout", "seconds"), [("1500ms", 1.5), ("0s", 5.0)])
def test_a_timeout_is_that_of_the_configuration(timeout: str, seconds: float) -> None:
    config = {"filterVerb": "filter", "httpTimeout": timeout, "ignorable": True}
    run = Extended().extend(one={"args": {"takes": {"Filter": 60}, "refuses": {"n1": "dark"}}, "config": config})
    run.play_extended(one_pod(until=9), node_names(1))
    (call,) = run.told("sched.extender", "p")
    assert "DEADLINE_EXCEEDED" in call["error"]
    assert call["at"] - call["start"] / 1e9 == pytest.approx(seconds)
    assert run.bound()["p"] == "n1"


def test_while_an_extender_thinks_the_next_pod_waits() -> None:
    run = Extended().extend(one={"args": {"takes": {"Filter": 2}}, "config": {"filterVerb": "filter"}})

    async def main(run: Run) -> None:
        await run.at(1)
        await run.create(objects.pod("p"))
        await run.at(2)
        await run.create(objects.pod("q"))
        await run.at(8)

    run.play_extended(main, node_names(1))
    first, second = [one["at"] for one in run.told("sched.bind")]
    assert first > 3
    assert second > first + 1.9


# Groups --------------------------------------------------------------------------------------------------------------

GANG = ("GenericWorkload", "GangScheduling")
BY_NAME = {"filterVerb": "filter", "nodeCacheCapable": True}


Act = Callable[[Run], Awaitable[object]]


def gang(*pods: Any, until: float = 4.0, meanwhile: Act | None = None, **spec: Any) -> Main:
    """A group of all these at one second; ``meanwhile``: at two."""
    spec["schedulingPolicy"] = {"gang": {"minCount": len(pods)}}
    group = {"metadata": {"name": "g", "namespace": "default"}, "spec": spec}

    async def main(run: Run) -> None:
        await run.at(1)
        for one in pods:
            one.spec.schedulingGroup.podGroupName = "g"
        await run.create(*pods)
        await run.client.create(convert.from_json(scheduling_v1alpha2_pb2.PodGroup, group))
        await run.at(2)
        if meanwhile is not None:
            await meanwhile(run)
        await run.at(until)

    return main


def test_extenders_are_asked_about_each_member_of_a_group_beside_those_before_it() -> None:
    config = {**BY_NAME, "prioritizeVerb": "prioritize", "weight": 5}
    run = Extended().extend(one={"args": {"refuses": {"n1": "dark"}, "scores": {"n3": 9}}, "config": config})
    run.play_extended(gang(objects.pod("a", "6"), objects.pod("b", "6")), node_names(3), gates=GANG)
    assert run.bound() == {"a": "n3", "b": "n2"}
    calls = [(one["pod"], one["call"], one["nodes"]) for one in run.told("sched.extender")]
    assert calls == [
        ("default/a", "Filter", 3), ("default/a", "Prioritize", 2), ("default/b", "Filter", 2),
    ]  # fmt: skip


def test_a_group_fails_with_its_extender() -> None:
    run = Extended().extend(one={"args": {"crashes": True}, "config": BY_NAME})
    run.play_extended(gang(objects.pod("a"), objects.pod("b")), node_names(1), gates=GANG)
    assert run.bound() == {}
    first, second = run.told("sched.attempt", "a")[0], run.told("sched.attempt", "b")[0]
    assert (first["result"], second["result"]) == ("error", "error")
    assert second["message"] == f"failed to schedule other pod from a pod group: {first['message']}"


def test_while_an_extender_thinks_a_group_sees_its_snapshot() -> None:
    """Room that is made during the attempt is for the next one; the cache is right afterwards."""
    run = Extended().extend(one={"args": {"takes": {"Filter": 1.5}}, "config": BY_NAME})

    async def make_room(run: Run) -> None:
        await run.client.delete("pods", "old", "default", grace_period_seconds=0)

    main = gang(objects.pod("a", "6"), objects.pod("b", "6"), meanwhile=make_room, until=9)
    run.play_extended(main, node_names(2), [objects.pod("old", "6", on="n2")], gates=GANG)
    first = run.told("sched.attempt", "b")[0]
    assert (first["result"], first["at"] > 2) == ("unschedulable", True)
    assert first["message"].startswith("0/2 nodes are available: 2 Insufficient cpu.")
    assert sorted(run.bound().values()) == ["n1", "n2"]


def test_in_one_part_of_the_cluster_an_extender_refuses_its_nodes() -> None:
    nodes = [objects.node(f"n{number}", {"rack": f"r{number % 2}"}) for number in range(4)]
    run = Extended().extend(one={"args": {"refuses": {"n1": "dark", "n3": "dark"}}, "config": BY_NAME})
    constraints = {"topology": [{"key": "rack"}]}
    main = gang(objects.pod("a", "6"), objects.pod("b", "6"), schedulingConstraints=constraints)
    run.play_extended(main, nodes, gates=(*GANG, "TopologyAwareWorkloadScheduling"))
    assert sorted(run.bound().values()) == ["n0", "n2"]
    assert [one["nodes"] for one in run.told("sched.extender")] == [2, 1, 2, 2]

    refuses = dict.fromkeys(("n0", "n1", "n2", "n3"), "dark")
    run = Extended().extend(one={"args": {"refuses": refuses}, "config": BY_NAME})
    main = gang(objects.pod("a", "6"), objects.pod("b", "6"), schedulingConstraints=constraints)
    run.play_extended(main, nodes, gates=(*GANG, "TopologyAwareWorkloadScheduling"))
    assert run.told("sched.attempt", "a")[0]["message"].startswith("0/2 nodes are available: 2 dark.")


class Dark(ExtenderClient):
    def __init__(self) -> None:
        extender = {"urlPrefix": "kemu://extender/dark", **BY_NAME}
        (self.configuration,) = configurations.configuration_of({"extenders": [extender]}).extenders

    async def filter(self, pod: Any, nodes: Sequence[Any]) -> FilterAnswer:
        return FilterAnswer([], {node.name: "dark" for node in nodes}, {}, as_objects=False)


def test_in_one_part_of_the_cluster_nodes_that_the_search_does_not_reach_say_nothing() -> None:
    cluster = objects.cluster_of(node_names(220))
    decider = objects.decider(cluster, percentage=1)
    decider.placement = np.arange(1, 220, 2)
    extenders = Extenders(cast(Env, None), cluster, ())
    extenders.clients = [Dark()]
    result = asyncio.run(extenders.decide(decider, cluster.pending(objects.pod("p"))))
    assert result.filtering is not None
    assert result.filtering.message() == "0/110 nodes are available: 100 dark."


# Preemption and binding ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("by_name", [False, True])
def test_an_extender_has_a_say_about_victims(by_name: bool) -> None:
    config = {"preemptVerb": "preempt", "nodeCacheCapable": by_name}
    victims = [objects.pod("cheap", "10", on="n1", priority=1), objects.pod("dear", "10", on="n2", priority=5)]
    run = Extended().extend(one={"args": {"objects": ["n1"]}, "config": config})
    run.play_extended(one_pod(cpu="10", priority=10), node_names(2), victims)
    (preemption,) = run.told("sched.preemption")
    assert (preemption["node"], preemption["candidates"]) == ("n2", 1)
    assert [victim[0] for victim in preemption["victims"]] == ["default/dear"]


@pytest.mark.parametrize(
    ("args", "ignorable", "told"),
    [
        ({"objects": ["n1"]}, False, "no candidate node for preemption"),
        ({"names-nobody": True}, False, 'expected at least one victim pod on node "n1"'),
        ({"names-nobody": True}, True, "no candidate node for preemption"),
    ],
)
def test_an_extender_that_leaves_no_candidate(args: dict[str, Any], ignorable: bool, told: str) -> None:
    run = Extended().extend(one={"args": args, "config": {"preemptVerb": "preempt", "ignorable": ignorable}})
    victim = objects.pod("cheap", "10", on="n1", priority=1)
    run.play_extended(one_pod(cpu="10", priority=10), node_names(1), [victim])
    assert run.told("sched.preemption") == []
    assert told in run.told("sched.attempt", "p")[0]["message"]


def test_an_ignorable_extender_that_is_away_does_not_hinder_preemption() -> None:
    for ignorable in (True, False):
        victim = objects.pod("cheap", "10", on="n1", priority=1)
        run = Extended().extend(one={"absent": True, "config": {"preemptVerb": "preempt", "ignorable": ignorable}})
        run.play_extended(one_pod(cpu="10", priority=10), node_names(1), [victim])
        assert bool(run.told("sched.preemption")) is ignorable


def test_an_extender_binds_in_the_place_of_the_default_binder() -> None:
    run = Extended().extend(one={"config": {"bindVerb": "bind"}})
    run.play_extended(one_pod(), node_names(1))
    assert run.bound() == {"p": "n1"}
    assert [one["call"] for one in run.told("sched.extender", "p")] == ["Bind"]
    requests = [data for _, _, kind, data in run.recorder.events if kind == "api.request" and data["verb"] == "bind"]
    assert [one["by"] for one in requests] == ["extender/one"]


@pytest.mark.parametrize("ignorable", [False, True])
def test_a_binding_that_an_extender_refuses(ignorable: bool) -> None:
    run = Extended().extend(one={"args": {"binds-badly": True}, "config": {"bindVerb": "bind", "ignorable": ignorable}})
    run.play_extended(one_pod(), node_names(1))
    assert run.bound() == ({"p": "n1"} if ignorable else {})
    if not ignorable:
        first = run.told("sched.bind", "p")[0]
        assert (first["ok"], first["message"]) == (False, "the extender does not want to")


def test_the_same_seed_gives_the_same_events() -> None:
    def events() -> list[Any]:
        run = Extended(seed=7).extend(
            one={"args": {"scores": {"n1": 3}}, "config": {"filterVerb": "f", "prioritizeVerb": "p", "weight": 1}},
            two={"args": {"refuses": {"n3": "no"}}, "config": {"filterVerb": "f", "nodeCacheCapable": True}},
        )

        async def main(run: Run) -> None:
            for number in range(5):
                await run.create(objects.pod(f"p{number}"))
            await run.at(5)

        run.play_extended(main, node_names(4))
        return list(run.recorder.events)

    assert events() == events()


def test_the_example_of_the_documentation(tmp_path: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    text = (Path(__file__).parents[2] / "docs" / "plugins.md").read_text().partition("## An extender")[2]
    code = text.partition("```python\n")[2].partition("```")[0]
    written = yaml.safe_load(text.partition("```yaml\n")[2].partition("```")[0])
    (tmp_path / "licences.py").write_text(code)
    monkeypatch.syspath_prepend(tmp_path)
    spec = {
        "nodes": [{"name": "node-1"}],
        "duration": "1m",
        **written,
        "workloads": [
            {
                "name": "job",
                "arrivals": {"every": "5s", "count": 3},
                "pods": {"metadata": {"labels": {"licence": "yes"}}, "spec": {"containers": [{"name": "main"}]}},
            }
        ],
        "expect": [
            {"pods": {"workload": "job"}, "count": {"is": {"bound": {}}, "equals": 2}},
            {"pod": "job-2", "unschedulable": {}},
        ],
    }
    document = {"apiVersion": "kemu.dev/v1", "kind": "Scenario", "spec": spec}
    made = loader.loads(yaml.safe_dump(document))
    result = runner.run(made, runner.Options(out=tmp_path / "run"))
    assert result.verdict["verdict"] == "holds", result.verdict["expectations"]


# Addresses and classes ----------------------------------------------------------------------------------------------


def test_an_outside_address_is_refused_in_virtual_time() -> None:
    runtime = SimRuntime(1, Recorder())
    with pytest.raises(SimulationError, match=r"grpc://localhost:1 is outside of virtual time"):
        runtime.env("user").dial("grpc://localhost:1")


SCENARIO = """
apiVersion: kemu.dev/v1
kind: Scenario
spec:
  nodes: [{name: node-1}]
  extenders: [{name: gpus, plugin: PLUGIN}]
  schedulers: [{name: default-scheduler, config: {extenders: [{urlPrefix: "URL", filterVerb: filter}]}}]
"""


def scenario(plugin: str = "gpu-share", url: str = "kemu://extender/gpus") -> Any:
    return loader.loads(SCENARIO.replace("PLUGIN", f'"{plugin}"').replace("URL", url))


def test_a_scenario_with_an_outside_address_needs_ray(tmp_path: Any) -> None:
    with pytest.raises(KemuError, match="needs --runtime wall or ray"):
        runner.run(scenario(url="grpc://localhost:9999"), runner.Options(out=tmp_path))


@pytest.mark.parametrize(
    ("plugin", "url", "path", "text"),
    [
        ("gpu-shar", "kemu://extender/gpus", "spec.extenders[0].plugin", "there is no extender 'gpu-shar'"),
        ("json:loads", "kemu://extender/gpus", "spec.extenders[0].plugin", "is not an extender"),
        ("no_such:Thing", "kemu://extender/gpus", "spec.extenders[0].plugin", "cannot be loaded"),
        (
            "gpu-share",
            "kemu://extender/gpu",
            "spec.schedulers[0].config.extenders[0].urlPrefix",
            "there is no kemu://extender/gpu",
        ),
    ],
)
def test_mistakes_in_a_scenario(plugin: str, url: str, path: str, text: str) -> None:
    with pytest.raises(KemuError) as caught:
        scenario(plugin, url)
    (problem,) = caught.value.problems  # type: ignore[attr-defined]
    assert (problem.path, text in problem.message) == (path, True), problem


def test_a_server_outside_answers_for_the_same_class() -> None:
    """An extender behind real gRPC, as ``grpc://`` reaches it on Ray."""
    import grpc

    from kemu.messages.v1 import extender_pb2, extender_pb2_grpc

    async def ask() -> Any:
        server = grpc.aio.server()
        port = server.add_insecure_port("127.0.0.1:0")
        servers.serve(Scripted(None, None, {"refuses": {"n1": "dark"}}), server)  # type: ignore[arg-type]
        await server.start()
        async with grpc.aio.insecure_channel(f"127.0.0.1:{port}") as channel:
            arguments = extender_pb2.ExtenderArgs(pod=objects.pod("p"))
            arguments.nodes.items.extend(node_names(2))
            result = await extender_pb2_grpc.ExtenderStub(channel).Filter(arguments)  # type: ignore[no-untyped-call]
        await server.stop(None)
        return result

    result = asyncio.run(ask())
    assert [node.metadata.name for node in result.nodes.items] == ["n2"]
    assert dict(result.failed_nodes) == {"n1": "dark"}
