"""What a decision costs while something grows that the decision is not about.

Each workload has two sizes of one thing: pods on the nodes, services, terms of other pods, nodes, budgets. What the
pods of the workload ask for stays the same, so a figure that follows the size is a cliff.
"""

from __future__ import annotations

import gc
import random
import time
from collections.abc import Callable, Mapping
from typing import Any

from kemu.emulated.objects.conversion import convert
from kemu.emulated.objects.defaulting import defaults
from kemu.emulated.scheduler.cache.cluster import Cluster
from kemu.emulated.scheduler.cache.pods import PodInfo
from kemu.emulated.scheduler.configuration import configurations
from kemu.emulated.scheduler.cycle.decisions import Decider
from kemu.emulated.scheduler.cycle.profiles import Profile
from kemu.emulated.scheduler.extenders.servers import Extender
from kemu.emulated.scheduler.framework.interfaces import Handle
from kemu.emulated.scheduler.plugins import in_tree
from kemu.lab.bench import shapes
from kemu.lab.bench.schedulers import decisions
from kemu.messages.k8s import core_v1_pb2

SELECTORS = 400
"""Pods that ask for this many different labels, one after the other."""
_WARM_UP = 20
_TOLERATED = ("node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable")


class _Scene:
    """A cluster and a repeated step. ``step`` is measured, ``after`` is not."""

    def __init__(self, nodes: int) -> None:
        self.cluster = Cluster()
        self.rng = random.Random(1)
        for number in range(nodes):
            self.cluster.set_node(shapes.node(number, shapes.LARGE_NODE, decisions.ZONES))
        self.nodes = nodes
        self._made = 0
        self.step: Callable[[int], object] = lambda number: None
        self.after: Callable[[int], object] = lambda number: None
        profile = Profile(configurations.profile_of({}, "profile"), Handle(self.cluster, self.rng), in_tree.REGISTRY)
        self.decider = Decider(profile, self.cluster, self.rng)

    def pod(self, labels: Mapping[str, str], fields: Mapping[str, Any] | None = None) -> core_v1_pb2.Pod:
        """A pod with labels and further fields of the spec."""
        made = shapes.pod("plain")
        made.metadata.name = made.metadata.uid = f"pod-{self._made}"
        self._made += 1
        for key, value in labels.items():
            made.metadata.labels[key] = value
        if fields:
            made.spec.MergeFrom(convert.from_json(core_v1_pb2.PodSpec, fields))
        defaults.apply(made)
        return made

    def run(self, pod: core_v1_pb2.Pod, node: int) -> None:
        """The pod runs on a node."""
        name = pod.spec.nodeName = f"node-{node % self.nodes}"
        self.cluster.add_pod(self.cluster.pod(pod), name)

    def fill(self, pods: int, labels: Callable[[int], Mapping[str, str]] = lambda number: {}) -> None:
        for number in range(pods):
            self.run(self.pod(labels(number)), number)

    def decide(self, pods: list[PodInfo]) -> None:
        """Each step decides for the next of these pods, in turn; none stays."""

        def step(number: int) -> None:
            pod = pods[number % len(pods)]
            node = self.decider.decide(pod).node
            assert node
            self.cluster.assume(pod, node)

        self.step = step
        self.after = lambda number: self.cluster.remove_pod(pods[number % len(pods)].uid)


def _apart(app: str) -> dict[str, Any]:
    term = {"labelSelector": {"matchLabels": {"app": app}}, "topologyKey": shapes.HOSTNAME}
    return {"affinity": {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}}


def _selectors(size: int) -> _Scene:
    """Pods run on 500 nodes; those that wait are kept apart from five of them, others each time."""
    scene = _Scene(500)
    few = 5 * SELECTORS
    scene.fill(size, lambda number: {"app": f"app-{number % SELECTORS}" if number < few else "other"})
    apps = [f"app-{number}" for number in range(SELECTORS)]
    scene.decide([scene.cluster.pending(scene.pod({"app": app}, _apart(app))) for app in apps])
    return scene


def _services(size: int) -> _Scene:
    """So many Services, one of which selects the pods that wait."""
    scene = _Scene(500)
    for number in range(size):
        service = shapes.service(f"service-{number}")
        service.spec.selector["foo"] = f"bar-{number}"
        scene.cluster.set_service(f"default/service-{number}", service)
    scene.decide([scene.cluster.pending(scene.pod({"foo": "bar-7"})) for _ in range(10)])
    return scene


def _terms(size: int) -> _Scene:
    """Pods with so many distinct terms of anti-affinity run on 500 nodes; none is about the pods that wait."""
    scene = _Scene(500)
    for number in range(size):
        scene.run(scene.pod({"app": f"app-{number}"}, _apart(f"app-{number}")), number)
    scene.decide([scene.cluster.pending(scene.pod({"app": "another"})) for _ in range(10)])
    return scene


def _daemon_pods(size: int) -> _Scene:
    """A pod for each of so many nodes, as the DaemonSet controller makes them: no two have one template."""
    scene = _Scene(size)
    scene.fill(size)
    waiting = []
    for number in range(size):
        name = {"key": "metadata.name", "operator": "In", "values": [f"node-{number}"]}
        required = {"nodeSelectorTerms": [{"matchFields": [name]}]}
        fields = {
            "affinity": {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": required}},
            "tolerations": [{"key": key, "operator": "Exists", "effect": "NoExecute"} for key in _TOLERATED],
        }
        waiting.append(scene.pod({"app": "agent"}, fields))

    def step(number: int) -> None:
        pod = scene.cluster.pending(waiting[number % size])
        node = scene.decider.decide(pod).node
        assert node
        scene.cluster.assume(pod, node)

    scene.step = step
    scene.after = lambda number: scene.cluster.remove_pod(waiting[number % size].metadata.uid)
    return scene


def _extender(size: int) -> _Scene:
    """An extender asks for the pods of 100 nodes, of so many pods in the cluster, five on each node."""
    scene = _Scene(0)
    unused: Any = None
    extender = Extender(unused, unused, {})
    for number in range(size):
        pod = scene.pod({})
        pod.spec.nodeName = f"node-{number // 5}"
        extender.pods[pod.metadata.uid] = pod

    def step(number: int) -> None:
        for node in range(100):
            assert len(extender.pods_on(f"node-{node}")) == 5

    scene.step = step
    return scene


def _removed_nodes(size: int) -> _Scene:
    """Removes one of this many nodes; adding it again is not measured."""
    scene = _Scene(size)
    scene.fill(size)
    pod = scene.cluster.pending(scene.pod({}))
    messages = [node.node for node in scene.cluster.rows]

    def come_back(number: int) -> None:
        scene.cluster.set_node(messages[number * 7 % size])
        scene.decider.decide(pod)

    scene.step = lambda number: scene.cluster.remove_node(f"node-{number * 7 % size}")
    scene.after = come_back
    return scene


def _after_removed_nodes(size: int) -> _Scene:
    """The first decision after one of this many nodes was removed: all others change places in the search."""
    scene = _Scene(size)
    scene.fill(size)
    pod = scene.cluster.pending(scene.pod({}))
    messages = [node.node for node in scene.cluster.rows]

    def next_one(number: int) -> None:
        if len(scene.cluster) < size:
            scene.cluster.set_node(messages[number * 7 % size])
        scene.decider.decide(pod)
        scene.cluster.remove_node(f"node-{(number + 1) * 7 % size}")

    next_one(-1)
    scene.step = lambda number: scene.decider.decide(pod)
    scene.after = next_one
    return scene


WORKLOADS: dict[str, tuple[Callable[[int], _Scene], int, int]] = {
    "selectors": (_selectors, 5_000, 20_000),
    "services": (_services, 50, 5_000),
    "anti-affinity-terms": (_terms, 30, 3_000),
    "daemon-pods": (_daemon_pods, 1_000, 5_000),
    "extender": (_extender, 2_000, 20_000),
    "removed-nodes": (_removed_nodes, 1_000, 5_000),
    "after-removed-nodes": (_after_removed_nodes, 1_000, 5_000),
}
"""How the scene is made, and the two sizes."""


def cliff(workload: str, size: int, steps: int = 200) -> dict[str, Any]:
    """Microseconds of CPU for each step; the first ones are not counted."""
    scene = WORKLOADS[workload][0](size)
    gc.collect()
    gc.freeze()
    taken = []
    for number in range(_WARM_UP + steps):
        begun = time.process_time_ns()
        scene.step(number)
        taken.append(time.process_time_ns() - begun)
        scene.after(number)
    taken = sorted(taken[_WARM_UP:])
    return {"cpu_us_median": round(taken[steps // 2] / 1e3, 1), "cpu_us_p90": round(taken[steps * 9 // 10] / 1e3, 1)}


def settings() -> tuple[Mapping[str, Any], ...]:
    return tuple(
        {"workload": name, "size": size, "steps": 200} for name, (_scene, *sizes) in WORKLOADS.items() for size in sizes
    )
