"""The scheduler decides as a second one does that knows no columns, caches and shortcuts; and what follows from that.

Questions are drawn at random (:mod:`tests.scheduler.generators`); a failure names the seed.
"""

from __future__ import annotations

import copy
import random
from collections.abc import Callable
from typing import Any

import pytest

from kemu.emulated.objects.conversion import convert
from kemu.emulated.scheduler.plugins import pod_topology_spread
from kemu.lab.conformance.scheduler import decisions, judgements
from kemu.messages.k8s import core_v1_pb2, policy_v1_pb2
from tests.scheduler import generators, objects, reference

Json = dict[str, Any]

BLOCK = 50
"""Questions of one test."""


def differences(case: Json, answered: Json) -> list[str]:
    """What the plain scheduler does not explain counts as right."""
    told = reference.answer(case)
    unexplained = {key: answered[key] for key in ("prefilter", "nominatedNodeFits") if key in answered}
    if "preemption" in told:
        told["preemption"] = {**(answered.get("preemption") or {}), **told["preemption"]}
    return judgements.agrees({**unexplained, **told}, answered)


def blocks(number: int) -> list[range]:
    return [range(start, start + BLOCK) for start in range(0, number, BLOCK)]


@pytest.mark.parametrize("seeds", blocks(300), ids=str)
def test_decisions_are_those_of_the_plain_scheduler(seeds: range) -> None:
    for seed in seeds:
        case = generators.case(seed)
        assert not differences(case, decisions.answer(case)), f"seed {seed}"


@pytest.mark.thorough
def test_a_pod_that_names_its_nodes_is_told_the_same_as_when_all_nodes_are_asked(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Where few nodes come into question, only they are asked; where preemption could help, too."""
    asked = 0
    for seed in range(400):
        case = generators.case(seed)
        names = [node["metadata"]["name"] for node in case["nodes"]]
        draw = random.Random(seed)
        required = case["pod"]["spec"].setdefault("affinity", {}).setdefault("nodeAffinity", {})
        fields = [{"key": "metadata.name", "operator": "In", "values": [name]} for name in draw.sample(names, 1)]
        required["requiredDuringSchedulingIgnoredDuringExecution"] = {"nodeSelectorTerms": [{"matchFields": fields}]}
        answered = decisions.answer(case)
        with monkeypatch.context() as patched:
            patched.setattr("kemu.emulated.scheduler.cycle.evaluations._FEW", 0)
            assert answered == decisions.answer(case), f"seed {seed}"
        asked += bool(answered.get("preemption"))
    assert asked > 20


# What happens to a cluster ------------------------------------------------------------------------------------------


class Living:
    """A cluster that follows events, and the same as the JSON of a case."""

    def __init__(self, seed: int) -> None:
        self.maker = generators.Maker(seed)
        self.random = random.Random(seed)
        self.case = self.maker.case()
        del self.case["pod"]
        # Default constraints belong to one pod of the case.
        for key in ("replicationControllers", "replicaSets", "statefulSets"):
            self.case.pop(key, None)
        self.cluster = decisions.cluster_of(self.case)
        self.decider = decisions.decider_of(self.case, self.cluster)
        self.waiting = [self.pending() for _ in range(3)]

    def pending(self) -> Json:
        pod = self.maker.pod([*self.names, "gone"])
        pod["spec"]["priority"] = self.random.choice((0, 10, 100, 1000))
        return pod

    @property
    def names(self) -> list[str]:
        return [node["metadata"]["name"] for node in self.case["nodes"]]

    def happen(self) -> None:
        events = (self.node, self.cordon, self.no_node, self.came, self.came, self.went, self.relabelled, self.ends)
        more = (self.nominated, self.nomination_ends, self.namespace, self.budget)
        self.random.choice((*events, *more))()

    def node(self) -> None:
        name = self.random.choice([*self.names, f"node-{self.random.randrange(9)}"])
        node = self.maker.node(name)
        known = [one for one in self.case["nodes"] if one["metadata"]["name"] == name]
        if known:
            known[0].update(node)
        else:
            self.case["nodes"].append(node)
        self.cluster.set_node(convert.from_json(core_v1_pb2.Node, node))

    def cordon(self) -> None:
        node = self.random.choice(self.case["nodes"])
        node["spec"]["unschedulable"] = not node["spec"].get("unschedulable", False)
        self.cluster.set_node(convert.from_json(core_v1_pb2.Node, node))

    def no_node(self) -> None:
        """A node goes; its pods stay for a while, as far as the API knows."""
        if len(self.names) > 1:
            name = self.random.choice(self.names)
            self.case["nodes"] = [one for one in self.case["nodes"] if one["metadata"]["name"] != name]
            self.cluster.remove_node(name)

    def came(self) -> None:
        pod = self.maker.running(self.names)
        self.case["pods"].append(pod)
        self.cluster.see_pod(convert.from_json(core_v1_pb2.Pod, pod))

    def went(self) -> None:
        if self.case["pods"]:
            pod = self.case["pods"].pop(self.random.randrange(len(self.case["pods"])))
            objects.end(self.cluster, pod["metadata"]["uid"])

    def relabelled(self) -> None:
        if self.case["pods"]:
            pod = self.random.choice(self.case["pods"])
            pod["metadata"]["labels"] = self.maker.labels()
            self.cluster.see_pod(convert.from_json(core_v1_pb2.Pod, pod))

    def ends(self) -> None:
        if self.case["pods"]:
            pod = self.random.choice(self.case["pods"])
            pod["metadata"]["deletionTimestamp"] = "2026-02-01T00:00:00Z"
            self.cluster.see_pod(convert.from_json(core_v1_pb2.Pod, pod))

    def nominated(self) -> None:
        pod = self.maker.nominated(self.names)
        self.case["nominated"].append(pod)
        waiting = self.cluster.pending(convert.from_json(core_v1_pb2.Pod, pod))
        self.cluster.nominator.nominate(waiting, pod["status"]["nominatedNodeName"])

    def nomination_ends(self) -> None:
        if self.case["nominated"]:
            pod = self.case["nominated"].pop(0)
            self.cluster.nominator.remove(pod["metadata"]["uid"])

    def namespace(self) -> None:
        name = self.random.choice(("default", "prod", "dev"))
        labels = self.random.choice(({"team": "x"}, {"team": "y"}, {}))
        others = [one for one in self.case["namespaces"] if one["metadata"]["name"] != name]
        self.case["namespaces"] = [*others, {"metadata": {"name": name, "labels": labels}}]
        self.cluster.set_namespace(name, labels)

    def budget(self) -> None:
        number = self.random.randrange(3)
        budget = self.maker.budget(number, self.case["pods"])
        budget["metadata"]["namespace"] = "default"
        others = [one for one in self.case["pdbs"] if one["metadata"]["name"] != f"budget-{number}"]
        for one in self.case["pdbs"]:
            if one not in others:
                self.cluster.set_budget("{namespace}/{name}".format(**one["metadata"]), None)
        self.case["pdbs"] = [*others, budget]
        message = convert.from_json(policy_v1_pb2.PodDisruptionBudget, budget)
        self.cluster.set_budget(f"default/budget-{number}", message)

    def ask(self, pod: Json) -> list[str]:
        """What the plain scheduler, who looks at everything anew, says otherwise."""
        # How many nodes have an image is known as of the last change of each node, and a new one knows no past.
        for name in self.cluster.nodes:
            self.cluster.node_seen(name)
        waiting = self.cluster.pending(convert.from_json(core_v1_pb2.Pod, pod))
        answered = decisions.decision(self.decider, waiting)
        return differences({**self.case, "pod": pod}, answered)


@pytest.mark.parametrize("seed", range(20))
def test_a_cluster_that_follows_events_answers_as_one_made_anew(seed: int) -> None:
    living = Living(1_000_000 + seed)
    for step in range(30):
        living.happen()
        pod = living.random.choice(living.waiting)
        assert not living.ask(pod), f"step {step}"
        if living.random.randrange(6) == 0:
            living.waiting[living.random.randrange(3)] = living.pending()


# What must hold in any case -----------------------------------------------------------------------------------------


def drawn(number: int, wanted: Callable[[Json], bool] = lambda answered: True) -> list[tuple[Json, Json]]:
    """The first cases whose answer is of the wanted kind, with their answers."""
    found: list[tuple[Json, Json]] = []
    seed = 2_000_000
    while len(found) < number:
        case = generators.case(seed)
        answered = decisions.answer(case)
        if wanted(answered):
            found.append((case, answered))
        seed += 1
    return found


def test_the_order_of_objects_does_not_matter() -> None:
    for case, answered in drawn(30):
        turned = copy.deepcopy(case)
        for key in ("nodes", "pods", "nominated", "namespaces", "pdbs"):
            turned[key].reverse()
        assert decisions.answer(turned) == answered, case["id"]


def test_json_that_was_read_and_written_asks_the_same() -> None:
    for case, answered in drawn(30):
        again = copy.deepcopy(case)
        for key, kind in (("nodes", core_v1_pb2.Node), ("pods", core_v1_pb2.Pod), ("nominated", core_v1_pb2.Pod)):
            again[key] = [convert.to_json(convert.from_json(kind, one)) for one in case[key]]
        again["pod"] = convert.to_json(convert.from_json(core_v1_pb2.Pod, case["pod"]))
        assert decisions.answer(again) == answered, case["id"]


def test_fewer_pods_never_close_a_node_apart_from_affinity_and_spread() -> None:
    for case, answered in drawn(40, lambda answered: bool(answered["feasible"])):
        if case["pods"]:
            fewer = {**case, "pods": case["pods"][1:]}
            rejected = decisions.answer(fewer)["rejected"]
            for name in answered["feasible"]:
                plugin = rejected.get(name, {}).get("plugin", "")
                assert plugin in ("", "InterPodAffinity", "PodTopologySpread"), (case["id"], name)


def has_victims(answered: Json) -> bool:
    return any(one["victims"] for one in answered.get("preemption", {}).get("candidates", {}).values())


def test_victims_are_lower_and_none_could_have_stayed() -> None:
    for case, answered in drawn(15, has_victims):
        by_name = {pod["metadata"]["name"]: pod for pod in case["pods"]}
        for node, candidate in answered["preemption"]["candidates"].items():
            victims = [by_name[name] for name in candidate["victims"]]
            for victim in victims:
                assert victim["spec"]["nodeName"] == node
                assert victim["spec"]["priority"] < case["pod"]["spec"]["priority"]
            world = reference.World(case)
            place = world.by_name[node]
            for victim in victims:
                world = world.changed(-1, victim, place)
            assert world.two_passes(place) is None, case["id"]
            for victim in victims:
                assert world.changed(1, victim, place).two_passes(place) is not None, case["id"]


def test_nominations_of_lower_pods_change_nothing() -> None:
    for case, answered in drawn(30):
        lower = generators.Maker(7).nominated([node["metadata"]["name"] for node in case["nodes"]])
        lower["spec"]["priority"] = case["pod"]["spec"]["priority"] - 1
        lower["metadata"]["uid"] = "lower"
        assert decisions.answer({**case, "nominated": [*case["nominated"], lower]}) == answered, case["id"]


def test_labels_of_a_replication_controller_replace_those_of_services() -> None:
    """Of two values for one label the controller's stays; a ReplicaSet of another group's version is no owner."""

    def selector(kind: str, version: str) -> str:
        case: Json = {
            "services": [{"metadata": {"name": "s", "namespace": "default"}, "spec": {"selector": {"app": "a"}}}],
            "replicationControllers": [
                {"metadata": {"name": "owner", "namespace": "default"}, "spec": {"selector": {"app": "b", "x": "y"}}}
            ],
            "replicaSets": [
                {
                    "metadata": {"name": "owner", "namespace": "default"},
                    "spec": {"selector": {"matchLabels": {"app": "b"}}},
                }
            ],
        }
        cluster = decisions.cluster_of(case)
        reference = {"apiVersion": version, "kind": kind, "name": "owner", "uid": "o", "controller": True}
        metadata = {"name": "p", "namespace": "default", "labels": {"app": "a"}, "ownerReferences": [reference]}
        pod = convert.from_json(core_v1_pb2.Pod, {"metadata": metadata})
        return str(pod_topology_spread.default_selector(pod, {"app": "a"}, cluster))

    assert selector("ReplicationController", "v1") == "app=b,x=y"
    assert selector("ReplicaSet", "apps/v1") == "app=a,app=b"
    assert selector("ReplicaSet", "extensions/v1beta1") == "app=a"
    assert selector("Job", "batch/v1") == "app=a"
