"""Nodes that fail: who is given up, how fast, and what becomes of the pods; on whole clusters, in virtual time."""

from __future__ import annotations

import itertools
import textwrap
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from kemu.emulated.objects import meta
from kemu.lab.checks.history import History
from kemu.lab.scenario.loading import loader
from kemu.lab.scenario.playing import runner
from kemu.messages.k8s import core_v1_pb2
from kemu.runtime.runlog.frames import FILE_NAME, Reader

NOT_READY, UNREACHABLE = "node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable"
SEEDS = [1, *(pytest.param(seed, marks=pytest.mark.nightly("another seed")) for seed in range(2, 7))]
POD = "{containers: [{name: main, resources: {requests: {cpu: 500m}}}]}"


class Played:
    """A run, and what its log says."""

    def __init__(self, result: runner.RunResult) -> None:
        self.verdict = result.verdict
        self.history: History = result.history
        self.events: list[tuple[float, str, str, Mapping[str, Any]]] = []
        self.pods: dict[str, core_v1_pb2.Pod] = {}
        """As they are in the end, by ``namespace/name``."""
        self.nodes: dict[str, core_v1_pb2.Node] = {}
        self.written: list[tuple[float, str, bytes]] = []
        """Every object that was written: when (s), key and bytes."""
        self.removed: list[tuple[float, str]] = []
        with Reader(result.folder / FILE_NAME) as reader:
            for time_ns, actor, kind, data in reader:
                if kind != "store.txn":
                    self.events.append((time_ns / 1e9, actor, kind, data))
                    continue
                for op, key, value, _, _ in data["changes"]:
                    if op == 0:
                        self.written.append((time_ns / 1e9, key, value))
                    else:
                        self.removed.append((time_ns / 1e9, key))
                    self._change(key, value if op == 0 else None)
        broken = [check["id"] for check in self.verdict["checks"] if check["asked"] and check["holds"] is False]
        assert not broken, self.verdict["checks"]

    def _change(self, key: str, value: bytes | None) -> None:
        for prefix, objects, message in (
            ("/registry/pods/", self.pods, core_v1_pb2.Pod),
            ("/registry/nodes/", self.nodes, core_v1_pb2.Node),
            ("/registry/minions/", self.nodes, core_v1_pb2.Node),
        ):
            if key.startswith(prefix):
                if value is None:
                    objects.pop(key.removeprefix(prefix), None)
                else:
                    objects[key.removeprefix(prefix)] = message.FromString(value)

    def of(self, kind: str, **wanted: Any) -> list[tuple[float, Mapping[str, Any]]]:
        return [
            (at, data)
            for at, _, what, data in self.events
            if what == kind and all(data.get(name) == value for name, value in wanted.items())
        ]

    def no_execute(self, prefix: str = "") -> list[tuple[float, str]]:
        """When lost nodes whose names begin so were given up, without taints that only change their kind."""
        lost = [f"{NOT_READY}:NoExecute", f"{UNREACHABLE}:NoExecute"]
        return [
            (at, data["node"])
            for at, data in self.of("node.tainted")
            if data["node"].startswith(prefix) and any(taint in lost for taint in data["add"])
            and not any(taint in lost for taint in data["remove"])
        ]  # fmt: skip

    def crashed(self) -> list[str]:
        """Machines that went off and did not come back."""
        off = [data["node"] for _, data in self.of("machine.off")]
        on = [data["node"] for _, data in self.of("machine.on")]
        return [node for node in off if off.count(node) > on.count(node)]

    def complete(self, app: str) -> int:
        """How many pods of a label are ready, on nodes that live."""
        lost = dict.fromkeys(self.crashed())
        return sum(
            pod.metadata.labels.get("app") == app
            and pod.spec.nodeName not in lost
            and not pod.metadata.HasField("deletionTimestamp")
            and meta.has_condition(pod.status.conditions, "Ready")
            for pod in self.pods.values()
        )


def play(folder: Path, spec: str, seed: int = 1) -> Played:
    text = f"apiVersion: kemu.dev/v1\nkind: Scenario\nspec:\n  seed: {seed}\n" + textwrap.indent(
        textwrap.dedent(spec), "  "
    )
    return Played(runner.run(loader.loads(text), runner.Options(out=folder, runtime="sim")))


def zones(**counts: int) -> str:
    """Nodes ``<zone>-<n>``."""
    return "nodes:\n" + "".join(
        f"- {{namePrefix: {zone}-, count: {count}, labels: {{topology.kubernetes.io/zone: {zone}}}}}\n"
        for zone, count in counts.items()
    )


def owner(kind: str, name: str, replicas: int, spec: str = POD) -> str:
    more = "serviceName: x, podManagementPolicy: Parallel, " if kind == "StatefulSet" else ""
    return (
        f"- {{apiVersion: apps/v1, kind: {kind}, metadata: {{name: {name}}}, spec: {{replicas: {replicas}, {more}"
        f"selector: {{matchLabels: {{app: {name}}}}}, "
        f"template: {{metadata: {{labels: {{app: {name}}}}}, spec: {spec}}}}}}}\n"
    )


def gaps(times: list[tuple[float, str]]) -> list[float]:
    return [round(later[0] - earlier[0], 0) for earlier, later in itertools.pairwise(times)]


# --- rates -----------------------------------------------------------------------------------------------------------


def test_each_zone_gives_up_one_node_in_ten_seconds(tmp_path: Path) -> None:
    played = play(
        tmp_path,
        zones(east=20, west=20)
        + "duration: 4m\n"
        + "chaos: [{at: 60s, crash: {node: 'east-*', count: 6, restart: no}},"
        + " {at: 60s, crash: {node: 'west-*', count: 4, restart: no}}]",
    )
    for zone, count in (("east", 6), ("west", 4)):
        taints = played.no_execute(zone)
        assert sorted(node for _, node in taints) == sorted(n for n in played.crashed() if n.startswith(zone))
        assert len(taints) == count
        # The last lease is 10.4 s old at most, and is looked at every 5 s; then 40 s of grace.
        assert 89 <= taints[0][0] <= 106
        assert gaps(taints) == [10.0] * (count - 1)
    assert all(node in played.crashed() for _, node in played.no_execute())


@pytest.mark.parametrize(("size", "lost", "gap"), [(60, 33, 100.0), (60, 32, 10.0)])
def test_a_large_zone_that_is_mostly_lost_is_given_up_slowly(size: int, lost: int, gap: float, tmp_path: Path) -> None:
    """33 of 60 are 55 %."""
    played = play(
        tmp_path,
        zones(east=size, west=4)
        + "duration: 8m\n"
        + f"chaos: [{{at: 60s, crash: {{node: 'east-*', count: {lost}, restart: no}}}}]",
    )
    taints = played.no_execute("east")
    assert len(taints) >= 3
    # At first, while fewer are known to be lost, the usual rate may hold; from the second on it is the zone's.
    assert set(gaps(taints)[1:]) == {gap}


def test_a_small_zone_that_is_mostly_lost_is_not_given_up(tmp_path: Path) -> None:
    played = play(
        tmp_path,
        zones(east=20, west=20)
        + "duration: 6m\n"
        + "chaos: [{at: 60s, crash: {node: 'east-*', share: 80%, restart: no}}]",
    )
    lost = played.crashed()
    assert len(lost) == 16
    # What was given up before the zone was known to be disrupted stays so.
    assert len(played.no_execute("east")) <= 2
    for node in lost:
        ready = meta.get_condition(played.nodes[node].status.conditions, "Ready")
        assert ready is not None
        assert ready.status == "Unknown"
        effects = [taint.effect for taint in played.nodes[node].spec.taints if taint.key == UNREACHABLE]
        assert effects[0] == "NoSchedule"


def test_a_zone_that_is_wholly_lost_is_given_up_at_the_usual_rate(tmp_path: Path) -> None:
    played = play(
        tmp_path,
        zones(east=12, west=12)
        + "duration: 5m\n"
        + "chaos: [{at: 60s, crash: {node: 'east-*', all: yes, restart: no}}]",
    )
    taints = played.no_execute("east")
    assert len(taints) == 12
    assert gaps(taints)[-8:] == [10.0] * 8


def test_when_all_nodes_are_lost_none_is_given_up(tmp_path: Path) -> None:
    """More likely it is the controllers that see nothing."""
    played = play(
        tmp_path,
        zones(east=8, west=8)
        + "duration: 6m\nmanifests:\n"
        + owner("ReplicaSet", "web", 20)
        + "chaos: [{at: 60s, crash: {node: '*', all: yes, restart: no}}]",
    )
    assert len(played.crashed()) == 16
    left = [node for node in played.nodes.values() if any(taint.effect == "NoExecute" for taint in node.spec.taints)]
    assert not left
    assert not played.of("taint.eviction")
    assert len(played.pods) == 20


# --- nodes that do not count -----------------------------------------------------------------------------------------

EXCLUDED = '{topology.kubernetes.io/zone: east, node.kubernetes.io/exclude-disruption: ""}'


def test_nodes_that_do_not_count_do_not_make_a_zone_disrupted(tmp_path: Path) -> None:
    """They are given up like others."""
    played = play(
        tmp_path,
        zones(east=4)
        + f"- {{namePrefix: batch-, count: 16, labels: {EXCLUDED}}}\n"
        + "duration: 6m\n"
        + "chaos: [{at: 60s, crash: {node: 'batch-*', all: yes, restart: no}}]",
    )
    taints = played.no_execute()
    assert sorted(node for _, node in taints) == sorted(played.crashed())
    assert gaps(taints) == [10.0] * 15


def test_nodes_that_do_not_count_do_not_keep_a_zone_whole(tmp_path: Path) -> None:
    """4 of 5 nodes are lost, or 4 of 25."""
    for labels, rest_is_given_up in (("{topology.kubernetes.io/zone: east}", True), (EXCLUDED, False)):
        played = play(
            tmp_path / str(rest_is_given_up),
            zones(east=5)
            + f"- {{namePrefix: batch-, count: 20, labels: {labels}}}\n"
            + "duration: 6m\n"
            + "chaos: [{at: 60s, crash: {node: 'east-*', count: 4, restart: no}}]",
        )
        assert len(played.crashed()) == 4
        # One or two before the rest are known to be lost.
        assert (len(played.no_execute()) == 4) == rest_is_given_up


def test_where_no_node_counts_all_are_given_up(tmp_path: Path) -> None:
    """There is no zone that could be disrupted."""
    played = play(
        tmp_path,
        f"nodes: [{{namePrefix: n-, count: 6, labels: {EXCLUDED}}}]\n"
        "duration: 4m\n"
        "chaos: [{at: 60s, crash: {node: '*', all: yes, restart: no}}]",
    )
    taints = played.no_execute()
    assert len(taints) == 6
    assert gaps(taints) == [10.0] * 5


# --- flapping --------------------------------------------------------------------------------------------------------


def tolerating(seconds: int) -> str:
    return (
        "{nodeSelector: {pool: shaky}, containers: [{name: main}], tolerations: ["
        f"{{key: {NOT_READY}, operator: Exists, effect: NoExecute, tolerationSeconds: {seconds}}}, "
        f"{{key: {UNREACHABLE}, operator: Exists, effect: NoExecute, tolerationSeconds: {seconds}}}]}}"
    )


@pytest.mark.parametrize("who", ["node: shaky", "actor: kubelet/shaky"])
def test_a_node_that_is_back_in_time_keeps_its_pods(who: str, tmp_path: Path) -> None:
    played = play(
        tmp_path,
        "nodes: [{name: shaky, labels: {pool: shaky}}, {name: firm-1}, {name: firm-2}, {name: firm-3}]\n"
        "duration: 8m\nmanifests:\n"
        + owner("ReplicaSet", "patient", 3, tolerating(120))
        + owner("ReplicaSet", "hasty", 3, tolerating(20))
        + f"chaos: [{{at: 60s, for: 100s, crash: {{{who}}}}}]",
    )
    (tainted_s, _), *more = played.no_execute("shaky")
    assert not more
    assert 99 <= tainted_s <= 106
    evicted = played.of("taint.eviction")
    assert sorted({data["pod"].rpartition("-")[0] for _, data in evicted}) == ["default/hasty"]
    assert len(evicted) == 3
    assert {round(at - tainted_s) for at, _ in evicted} == {20}
    # Its own pods, unharmed or started again with the machine.
    patient = [pod for pod in played.pods.values() if pod.metadata.labels["app"] == "patient"]
    assert len(patient) == 3
    restarts = {pod.status.containerStatuses[0].restartCount for pod in patient}
    assert restarts == ({1} if who.startswith("node") else {0})
    assert not played.nodes["shaky"].spec.taints
    # The replacements of the others wait until the node takes pods again.
    assert played.complete("hasty") == 3


def test_who_flaps_again_and_again_loses_no_pod_that_is_patient_enough(tmp_path: Path) -> None:
    played = play(
        tmp_path,
        "nodes: [{name: shaky, labels: {pool: shaky}}, {name: firm-1}, {name: firm-2}, {name: firm-3}]\n"
        "duration: 12m\nmanifests:\n"
        + owner("StatefulSet", "db", 2, tolerating(60))
        + "chaos: [{every: 30s, from: 30s, until: 9m, for: 70s, crash: {node: shaky}}]",
    )
    outages = len(played.of("machine.off"))
    assert outages >= 5
    assert len(played.no_execute("shaky")) == outages
    assert not played.of("taint.eviction")
    assert [pod.status.containerStatuses[0].restartCount for pod in played.pods.values()] == [outages, outages]
    boots = {data["boot"] for _, data in played.of("machine.on")}
    assert len(boots) == outages
    assert played.nodes["shaky"].status.nodeInfo.bootID in boots


# --- many ------------------------------------------------------------------------------------------------------------

HUNDRED = (
    zones(north=25, east=25, south=25, west=20)
    + "- {namePrefix: flappy-, count: 5, labels: {topology.kubernetes.io/zone: west}}\n"
    + "controllers: [node-lifecycle, taint-eviction, pod-gc, replicaset, statefulset]\n"
    + "duration: 14m\nmanifests:\n"
    + owner("ReplicaSet", "web", 200)
    + owner("StatefulSet", "db", 60)
    + "chaos:\n"
    + "- {id: dead, at: 60s, crash: {node: '[nesw]*t*-*', share: 10%, restart: no}}\n"
    + "- {id: flap, every: 20s, from: 60s, until: 8m, for: 60s, crash: {node: 'flappy-*', count: 2}}\n"
)


@pytest.mark.thorough
@pytest.mark.parametrize("seed", SEEDS[:2])
def test_a_tenth_of_a_hundred_nodes_dies(seed: int, tmp_path: Path) -> None:
    played = play(tmp_path, HUNDRED, seed)
    dead = played.crashed()
    assert len(dead) == 10
    assert len(dict.fromkeys(dead)) == 10
    taints = played.no_execute()
    assert sorted(node for _, node in taints if not node.startswith("flappy")) == sorted(dead)
    # The one with all replicas elsewhere; the other as far as its names are free.
    assert played.complete("web") == 200
    stuck = [pod for pod in played.pods.values() if pod.metadata.HasField("deletionTimestamp")]
    assert stuck
    assert {pod.spec.nodeName for pod in stuck} <= set(dead)
    lost = [pod for pod in stuck if pod.metadata.labels["app"] == "db"]
    assert played.complete("db") + len(lost) == 60
    # Nobody who was patient with a flapping node has lost its pods.
    assert not [data for _, data in played.of("taint.eviction") if data["node"].startswith("flappy")]


def test_the_same_seed_gives_the_same_run(tmp_path: Path) -> None:
    digests = {play(tmp_path / str(n), MIXED).verdict["digest"] for n in range(2)}
    assert len(digests) == 1


def test_out_of_service_and_removal_free_the_names(tmp_path: Path) -> None:
    """Non-graceful node shutdown. What runs on the third dead node is never replaced."""
    played = play(
        tmp_path,
        "nodes: [" + ", ".join(f"{{name: n{n}}}" for n in range(1, 10)) + "]\n"
        "controllers: [node-lifecycle, taint-eviction, pod-gc, statefulset]\n"
        "duration: 12m\nmanifests:\n"
        + owner("StatefulSet", "db", 9, "{containers: [{name: main, resources: {requests: {cpu: '5'}}}]}")
        + "events:\n"
        "- {at: 500s, taint: {node: n1, key: node.kubernetes.io/out-of-service, value: x, effect: NoExecute}}\n"
        "- {at: 500s, removeNode: {node: n2}}\n"
        "- {at: 30s, addNode: {name: spare-1}}\n"
        "- {at: 30s, addNode: {name: spare-2}}\n"
        "chaos: [{at: 20s, crash: {node: 'n[123]', all: yes, restart: no}}]",
    )
    bound: dict[str, list[str]] = {}
    for pod in played.history.pods.values():
        bound.setdefault(pod.key, []).append(pod.node)
    moved = {nodes[0]: nodes[1] for nodes in bound.values() if len(nodes) == 2}
    assert sorted(moved) == ["n1", "n2"]
    assert sorted(moved.values()) == ["spare-1", "spare-2"]
    collected = {data["node"]: at for at, data in played.of("podgc.deleted")}
    assert sorted(collected) == ["n1", "n2"]
    assert 500 <= collected["n1"] <= 521
    assert 540 <= collected["n2"] <= 561
    (stuck,) = [pod for pod in played.pods.values() if pod.metadata.HasField("deletionTimestamp")]
    assert stuck.spec.nodeName == "n3"
    assert played.complete("db") == 8


MIXED = (
    "nodes: [{namePrefix: n-, count: 6, kubelet: {shutdownGracePeriod: 20s}}]\n"
    "duration: 9m\n"
    "controllers: [node-lifecycle, taint-eviction, pod-gc, replicaset, statefulset]\n"
    "manifests:\n" + owner("ReplicaSet", "web", 20) + owner("StatefulSet", "db", 8) + "events:\n"
    "- {at: 30s, shutdownNode: {node: n-1}}\n"
    "- {at: 31s, shutdownNode: {node: n-1}}\n"
    "- {at: 35s, removeNode: {node: n-1}}\n"
    "- {at: 60s, addNode: {name: n-1}}\n"
    "- {at: 90s, shutdownNode: {node: n-2}}\n"
    "- {at: 91s, startNode: {node: n-2}}\n"
    "- {at: 130s, startNode: {node: n-2}}\n"
    "- {at: 200s, removeNode: {node: n-3}}\n"
    "- {at: 210s, addNode: {name: n-3}}\n"
    "chaos:\n"
    "- {every: 7s, from: 60s, until: 4m, for: 9s, crash: {node: 'n-*'}}\n"
    "- {every: 11s, from: 60s, until: 4m, for: 12s, crash: {actor: 'kubelet/n-*'}}\n"
    "- {every: 50s, from: 60s, until: 4m, for: 5s, partition: {between: ['kubelet/n-*', apiserver/0], share: 50%}}\n"
)


@pytest.mark.parametrize("seed", SEEDS)
def test_everything_at_once(seed: int, tmp_path: Path) -> None:
    """Machines, kubelets and connections fail while nodes come and go: no check is broken, and all come together."""
    played = play(tmp_path, MIXED, seed)
    assert sorted(played.nodes) == [f"n-{n}" for n in range(1, 7)]
    assert all(meta.has_condition(node.status.conditions, "Ready") for node in played.nodes.values())
    assert played.complete("web") == 20
    assert played.complete("db") == 8


def test_a_node_that_is_heard_of_before_its_turn_comes_is_not_lost(tmp_path: Path) -> None:
    """Thirty nodes fall silent at once, and the controller may send two requests a second: who is judged last has
    renewed its lease by then."""
    played = play(
        tmp_path,
        zones(a=30, b=3)
        + """\
duration: 3m
controllers: {node-lifecycle: {clientConnection: {qps: 2, burst: 1}}}
chaos:
- {at: 30s, for: 50s, pause: {actor: kubelet/a-*, all: true}}
""",
    )
    lost = [at for at, _ in played.of("node.unknown")]
    assert 5 < len(lost) < 25
    assert max(lost) < 91, "renewals come every ten seconds"
