"""The example plugins for GPUs: scores computed by hand, cards chosen one by one, and what a racing or restarted
scheduler makes of them."""

from __future__ import annotations

import random
import sys
from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import kemu
from kemu.emulated.objects.pods import gpu_cards
from kemu.emulated.scheduler.cache.cluster import Cluster
from kemu.emulated.scheduler.framework import ArgumentError, Cycle, Handle
from kemu.messages.k8s import core_v1_pb2
from tests.scheduler import objects

EXAMPLE = Path(__file__).resolve().parents[2] / "examples" / "gpus"
SCENARIO = EXAMPLE / "gpu-sharing.yaml"
MODULES = ("gpu_cards", "gpu_policies", "gpu_fragmentation")
WORKLOAD = [
    {"cpuMilli": 4000, "gpuMilli": 500, "gpus": 1, "pods": 3},
    {"cpuMilli": 2000, "gpuMilli": 0, "gpus": 0, "pods": 1},
]


@pytest.fixture(autouse=True)
def on_the_path(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.syspath_prepend(str(EXAMPLE))
    yield
    for module in MODULES:
        sys.modules.pop(module, None)


def node(name: str, cpu: str, cards: int) -> core_v1_pb2.Node:
    return objects.node(name, cpu=cpu, **{"nvidia.com/gpu": str(cards), "kemu.dev/gpu-milli": str(1000 * cards)})


def pod(name: str, cpu: str, milli: int = 0, cards: int = 1, *, on: str = "", held: str = "") -> core_v1_pb2.Pod:
    """``milli``: of each card; ``held``: the cards that it has."""
    found = objects.pod(name, cpu, on=on)
    if milli:
        resources = found.spec.containers[0].resources
        resources.requests["kemu.dev/gpu-milli"].string = str(cards * milli)
        if milli == gpu_cards.WHOLE:
            resources.requests["nvidia.com/gpu"].string = str(cards)
    if held:
        found.metadata.annotations[gpu_cards.ANNOTATION] = held
    return found


def policy(name: str, cluster: Cluster) -> Any:
    import gpu_fragmentation
    import gpu_policies

    args: Mapping[str, Any] = {"workload": WORKLOAD} if name == "FGD" else {}
    made = getattr(gpu_fragmentation if name == "FGD" else gpu_policies, name)
    return made(args, Handle(cluster, random.Random(1)))


@pytest.fixture
def cluster() -> Cluster:
    """A node with CPU for 8 and cards with 1000 and 300 milli left; one that is idle; one with a pod of each kind."""
    made = Cluster()
    for one in (node("used", "10", 2), node("idle", "16", 2), node("mixed", "16", 4)):
        made.set_node(one)
    for one in (
        pod("a", "2", 700, on="used", held="1"),
        pod("b", "1", 400, on="mixed", held="0"),
        pod("c", "1", 1000, 2, on="mixed", held="1,2"),
    ):
        made.see_pod(one)
    return made


def scores(plugin: Any, cluster: Cluster, wanted: core_v1_pb2.Pod) -> list[int]:
    state = plugin.prepare_scores(Cycle(cluster.pending(wanted), cluster), np.zeros(0, dtype=np.int64))
    found: list[int] = plugin.scores(state, cluster, None).tolist()
    assert found == [plugin.score(state, one) for one in cluster.rows]
    return found


@pytest.mark.parametrize(
    ("name", "milli", "expected"),
    [
        # used: ((8-4)/128 + (1300-300)/8000) / 2 = 0.078; idle: (12/128 + 1700/8000) / 2;
        # mixed: (10/128 + 1300/8000) / 2
        ("BestFit", 300, [92, 84, 87]),
        # used: 8/128 * 4/128 + 1300/8000 * 300/8000 = 0.0080; idle: 0.0114; mixed (14 CPU, 1600 milli): 0.0109
        ("DotProd", 300, [99, 99, 99]),
        # used: only parts, 25 * 6700 div 8000 = 20; idle: 18; mixed: both kinds, 25 * 6400 div 8000 = 20
        ("GpuClustering", 300, [95, 43, 70]),
        ("GpuClustering", 1000, [20, 43, 20]),
        # the fullest card that fits: 300 milli; an idle node with 2 cards: 33 - 2; 600 milli
        ("GpuPacking", 300, [97, 31, 94]),
        # an idle card of a node in use: 50 - 1
        ("GpuPacking", 1000, [49, 31, 49]),
    ],
)
def test_scores(cluster: Cluster, name: str, milli: int, expected: list[int]) -> None:
    assert scores(policy(name, cluster), cluster, pod("new", "4", milli)) == expected


def test_pods_without_gpu_are_alike_to_the_policies_that_look_at_cards_only(cluster: Cluster) -> None:
    for name in ("GpuClustering", "GpuPacking"):
        assert scores(policy(name, cluster), cluster, pod("new", "4")) == [0, 0, 0]


def test_random_draws_one_node(cluster: Cluster) -> None:
    plugin = policy("Random", cluster)
    state = plugin.prepare_scores(Cycle(cluster.pending(pod("new", "1")), cluster), np.array([0, 2]))
    drawn = Counter(tuple(plugin.scores(state, cluster, np.array([0, 2])).tolist()) for _ in range(200))
    assert sorted(drawn) == [(0, 100), (100, 0)]
    assert min(drawn.values()) > 60


def test_fragmentation_of_a_node_by_hand(cluster: Cluster) -> None:
    plugin = policy("FGD", cluster)
    # Three pods of four want 4 CPU and half a card: 300 of the 1300 milli left are of no use to them. One of four wants
    # no GPU: all 1300 are idle beside it.
    left = np.array([[1000, 300]])
    assert plugin.fragmentation.of(np.array([8000]), left, np.array([0])).tolist() == [0.75 * 300 + 0.25 * 1300]
    left = np.array([*[[1000, 300]] * 3, *[[400, 300]] * 2])
    classes = plugin.fragmentation.classes(np.array([8000, 3000, 1000, 8000, 3000]), left, np.zeros(5, dtype=np.int64))
    assert classes.usable.tolist() == [750, 0, 0, 0, 0]
    assert classes.only_cpu.tolist() == [225, 0, 0, 525, 0]
    assert classes.only_gpu.tolist() == [0, 975, 975, 0, 0]
    assert classes.neither.tolist() == [0, 0, 0, 0, 525]
    assert classes.no_gpu.tolist() == [325, 325, 0, 175, 175]
    assert classes.no_gpu_no_cpu.tolist() == [0, 0, 325, 0, 0]


def test_fgd_scores_by_hand(cluster: Cluster) -> None:
    plugin = policy("FGD", cluster)
    # Card 1: 550 falls to 250, sigmoid(0.3) = 0.574; card 0: to 475, sigmoid(0.075) = 0.519. So the node scores 57.
    assert scores(plugin, cluster, pod("new", "4", 300))[0] == 57
    # 2 CPU would be left, too few for the pods with GPU: 550 grows to 1000, sigmoid(-0.45) = 0.389.
    assert scores(plugin, cluster, pod("new", "6", 300))[0] == 38
    # Two cards are not free.
    assert chosen(plugin, cluster, pod("new", "4", 300), "used") == (1,)


def test_the_typical_pods_are_the_most_frequent_ones_and_of_equal_ones_the_larger(cluster: Cluster) -> None:
    import gpu_fragmentation

    requests = [(1, 10, 1, 60), (1, 20, 1, 17), (2, 10, 1, 17), (9, 9, 1, 6)]
    kinds = [gpu_fragmentation.Kind(*one) for one in requests]
    assert gpu_fragmentation.typical(kinds, 0.7) == [kinds[0], kinds[2]]
    assert gpu_fragmentation.typical(kinds, 0.8) == [kinds[0], kinds[2], kinds[1]]
    assert gpu_fragmentation.typical(kinds, 1.0) == [kinds[0], kinds[2], kinds[1], kinds[3]]


def test_a_workload_that_makes_no_sense_is_an_argument_error(cluster: Cluster) -> None:
    import gpu_fragmentation

    for wrong in (None, [], [{"cpuMilli": 1}], [{**WORKLOAD[0], "pods": -1}]):
        with pytest.raises(ArgumentError):
            gpu_fragmentation.FGD({"workload": wrong}, Handle(cluster, random.Random(1)))


# Cards ----------------------------------------------------------------------------------------------------------------


def chosen(plugin: Any, cluster: Cluster, wanted: core_v1_pb2.Pod, on: str) -> tuple[int, ...]:
    """The cards that Reserve takes for a pod, which is assumed on the node, and gone again afterwards."""
    info = cluster.pending(wanted)
    cycle = Cycle(info, cluster)
    cluster.assume(info, on)
    refused = plugin.reserve(cycle, on)
    cards: tuple[int, ...] = plugin.table.cards_of(info) if refused is None else ()
    plugin.unreserve(cycle, on)
    cluster.forget(info.uid)
    return cards


@pytest.mark.parametrize(
    ("wanted", "on", "cards"),
    [
        (pod("new", "1", 300), "used", (1,)),
        (pod("new", "1", 301), "used", (0,)),
        (pod("new", "1", 500), "idle", (0,)),
        (pod("new", "1", 1000, 2), "idle", (0, 1)),
        (pod("new", "1", 1000), "mixed", (3,)),
        (pod("new", "1", 1000, 2), "mixed", ()),
        (pod("new", "1"), "mixed", ()),
    ],
)
def test_the_fullest_card_that_fits_and_the_first_idle_ones(
    cluster: Cluster, wanted: core_v1_pb2.Pod, on: str, cards: tuple[int, ...]
) -> None:
    assert chosen(policy("BestFit", cluster), cluster, wanted, on) == cards


def test_the_filter_counts_by_card_and_agrees_with_itself_node_by_node(cluster: Cluster) -> None:
    plugin = policy("BestFit", cluster)
    for wanted, expected in (
        (pod("new", "1", 1000), [0, 0, 0]),
        (pod("new", "1", 1000, 2), [1, 0, 1]),
        (pod("new", "1", 500), [0, 0, 0]),
    ):
        state = plugin.prepare(Cycle(cluster.pending(wanted), cluster))
        assert plugin.verdicts(state, cluster).tolist() == expected
        assert [plugin.verdict(state, one) for one in cluster.rows] == expected
        assert [plugin.verdict(state, one.copy()) for one in cluster.rows] == expected


def test_what_is_reserved_counts_until_it_is_given_back(cluster: Cluster) -> None:
    plugin = policy("BestFit", cluster)
    info = cluster.pending(pod("new", "1", 800))
    cluster.assume(info, "used")
    assert plugin.reserve(Cycle(info, cluster), "used") is None
    plugin.table.refresh()
    assert plugin.table.left[0].tolist()[:2] == [200, 300]
    # The watch shows the pod on its node, with the card that was written.
    cluster.see_pod(pod("new", "1", 800, on="used", held="0"), spec_changed=False)
    plugin.table.refresh()
    assert plugin.table.left[0].tolist()[:2] == [200, 300]
    cluster.remove_pod("uid-new")
    plugin.table.refresh()
    assert plugin.table.left[0].tolist()[:2] == [1000, 300]


def test_another_scheduler_reads_the_cards_from_the_pods(cluster: Cluster) -> None:
    first, second = policy("BestFit", cluster), policy("FGD", cluster)
    cluster.see_pod(pod("new", "1", 800, on="used", held="0"))
    for plugin in (first, second):
        plugin.table.refresh()
        assert plugin.table.left.tolist() == [[200, 300, 0, 0], [1000, 1000, 0, 0], [600, 0, 0, 1000]]


def test_rows_are_counted_anew_when_nodes_come_and_go(cluster: Cluster) -> None:
    plugin = policy("FGD", cluster)
    wanted = pod("new", "4", 300)
    before = scores(plugin, cluster, wanted)
    cluster.remove_node("used")
    cluster.set_node(node("late", "16", 1))
    assert scores(plugin, cluster, wanted)[:2] == before[1:]
    assert plugin.table.left.tolist() == [[1000, 1000, 0, 0], [600, 0, 0, 1000], [1000, 0, 0, 0]]


# Whole runs -----------------------------------------------------------------------------------------------------------


def pods_of(run: kemu.Run) -> dict[str, core_v1_pb2.Pod]:
    """As they were last stored."""
    found = {}
    for event in run.events:
        if event[2] == "store.txn":
            for operation, key, value, *_ in event[3]["changes"]:
                if operation == 0 and "/pods/" in key:
                    stored = core_v1_pb2.Pod.FromString(value)
                    found[stored.metadata.name] = stored
    return found


@pytest.mark.parametrize("seed", [1, 2])
def test_the_scenario_shows_what_it_says(seed: int) -> None:
    run = kemu.run(SCENARIO, seed=seed)
    run.check()
    for variant in run.variants:
        assert pods_of(variant)["part-b"].metadata.annotations[gpu_cards.ANNOTATION] == "1"


def test_without_the_policies_the_third_part_runs_on_no_card() -> None:
    run = kemu.run(SCENARIO, settings={"schedulers[0].config": {}, "matrix": {}, "expect": []})
    assert run.pods["larger-part"].running_s is not None
    assert run.pods["larger-part"].running_s < 10


def test_a_restarted_scheduler_knows_the_cards() -> None:
    crash = [{"at": "10s", "for": "5s", "crash": {"actor": "scheduler/default-scheduler/0"}}]
    run = kemu.run(SCENARIO, seed=1, settings={"chaos": crash})
    run.check()


def test_of_two_schedulers_that_choose_one_card_the_kubelet_refuses_the_later() -> None:
    """News is up to 200 ms old, so both give the same room away; no card is used twice all the same."""
    plugins = [{"name": "gpu_policies:BestFit"}, {"name": "DefaultBinder"}]
    config = {"profiles": [{"plugins": {"multiPoint": {"disabled": [{"name": "DefaultBinder"}], "enabled": plugins}}}]}
    allocatable = {"cpu": "64", "nvidia.com/gpu": "3", "kemu.dev/gpu-milli": "3000"}
    requests = {"requests": {"cpu": "100m", "kemu.dev/gpu-milli": "600"}, "limits": {"kemu.dev/gpu-milli": "600"}}
    run = kemu.run(
        {
            "duration": "1m",
            "modules": [str(EXAMPLE)],
            "nodes": [{"namePrefix": "node-", "count": 2, "allocatable": allocatable}],
            "schedulers": [{"name": name, "config": config} for name in ("red", "blue")],
            "timing": {"watchLatency": {"uniform": {"min": "1ms", "max": "200ms"}}},
            "workloads": [
                {
                    "name": name,
                    "start": "1s",
                    "arrivals": {"count": 4},
                    "pods": {"spec": {"schedulerName": name, "containers": [{"name": "main", "resources": requests}]}},
                }
                for name in ("red", "blue")
            ],
        },
        seed=1,
    )
    used: Counter[tuple[str, str]] = Counter()
    for one in pods_of(run).values():
        if one.status.phase == "Running":
            used[one.spec.nodeName, one.metadata.annotations[gpu_cards.ANNOTATION]] += 600
    assert used
    assert max(used.values()) == 600
    assert {one.rejected for one in run.pods.values() if one.rejected} == {"UnexpectedAdmissionError"}
