"""The published files: nodes, pods of a workload, figures of ten runs. kemu ships none of them.

The artifact's repository has them all. The orders in which pods come and ties are settled follow from the seed of a run
(:mod:`orders`).
"""

from __future__ import annotations

import csv
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from gpu_fragmentation import Kind

from experiments.published.fgd import orders

SEEDS = range(42, 52)
DEFAULT = "default"
WORKLOADS = (
    DEFAULT,
    *("cpu050", "cpu100", "cpu200", "cpu250"),
    *("gpushare40", "gpushare60", "gpushare80", "gpushare100"),
    *("multigpu20", "multigpu30", "multigpu40", "multigpu50"),
    *("gpuspec10", "gpuspec20", "gpuspec25", "gpuspec33"),
)
"""Those that have published figures. The trace has six more lists of pods."""

NODES = "openb_node_list_gpu_node.csv"
PODS = "openb_pod_list_{workload}.csv"
ALLOCATED = "analysis_allo_discrete.csv"
FRAGMENTED = "analysis_frag_ratio_discrete.csv"
"""The published figures, a line for each run and a column for each percent of arrived load."""
EXPECTED = "expected.csv"
"""Three columns of them, for the default workload, in place of both."""

_SUBFOLDERS = ("", "data", "data/csv", "experiments/analysis/expected_results", "published/fgd")


class InputsMissing(Exception):
    """What is missing, and where it was looked for."""


@dataclass(frozen=True, slots=True)
class Node:
    cpu_milli: int
    memory_mib: int
    cards: int
    model: str


@dataclass(frozen=True, slots=True)
class Pod:
    cpu_milli: int
    memory_mib: int
    cards: int
    milli: int
    """Of each card."""
    models: str = ""
    """The GPU models that it allows, ``V100M16|V100M32``; empty: any."""


@dataclass(frozen=True, slots=True)
class Inputs:
    nodes: Mapping[str, Node]
    pods: Mapping[str, Pod]
    pod_orders: Mapping[int, Sequence[str]]
    """By seed: the pods in the order of their arrival, copies of pods too."""
    node_orders: Mapping[int, Sequence[str]]
    """By seed: the nodes in the order in which ties are settled."""
    published: Mapping[tuple[str, int], tuple[float, float, float]]
    """By policy and seed: allocated at 100 and 130 % of arrived load, fragmentation ratio at 80 %."""

    def pod(self, name: str) -> Pod:
        return self.pods[name.partition(orders.COPY)[0]]

    def kinds(self) -> list[Kind]:
        """What the pods of the trace request, and how many request it."""
        counts = Counter((pod.cpu_milli, pod.milli, pod.cards, pod.models) for pod in self.pods.values())
        return [Kind(cpu, milli, cards, pods, models) for (cpu, milli, cards, models), pods in counts.items()]


def find(folders: Sequence[Path], workload: str = DEFAULT) -> Inputs:
    """Read the files, which are in these folders or where a checkout of the artifact has them. Raises InputsMissing."""
    nodes = {
        row["sn"]: Node(int(row["cpu_milli"]), int(row["memory_mib"]), int(row["gpu"]), row["model"])
        for row in _table(_file(NODES, folders))
    }
    pods = {
        row["name"]: Pod(
            int(row["cpu_milli"]),
            int(row["memory_mib"]),
            int(row["num_gpu"]),
            int(row["gpu_milli"]),
            row.get("gpu_spec", ""),
        )
        for row in _table(_file(PODS.format(workload=workload), folders))
    }
    requests = {name: pod.cards * pod.milli for name, pod in pods.items()}
    parts = {name: pod.milli for name, pod in pods.items()}
    capacity = sum(node.cards for node in nodes.values()) * 1000
    found = {seed: orders.of(seed, requests, parts, capacity, list(nodes)) for seed in SEEDS}
    return Inputs(
        nodes,
        pods,
        {seed: order.pods for seed, order in found.items()},
        {seed: order.nodes for seed, order in found.items()},
        _published(folders, workload),
    )


def _published(folders: Sequence[Path], workload: str) -> dict[tuple[str, int], tuple[float, float, float]]:
    if workload == DEFAULT and (file := _found(EXPECTED, folders)) is not None:
        return {
            (row["policy"], int(row["seed"])): (
                float(row["allocated_percent_at_100"]),
                float(row["allocated_percent_at_130"]),
                float(row["frag_ratio_percent_at_80"]),
            )
            for row in _table(file)
        }
    allocated, fragmented = (
        {(row["sc_policy"], int(row["seed"])): row for row in _table(_file(name, folders))
         if row["workload"] == f"openb_pod_list_{workload}"}
        for name in (ALLOCATED, FRAGMENTED)
    )  # fmt: skip
    return {
        run: (float(row["100"]), float(row["130"]), round(float(fragmented[run]["80"]), 4))
        for run, row in allocated.items()
    }


def _places(folders: Sequence[Path]) -> list[Path]:
    return [folder / sub for folder in folders for sub in _SUBFOLDERS]


def _found(name: str, folders: Sequence[Path]) -> Path | None:
    return next((place / name for place in _places(folders) if (place / name).is_file()), None)


def _file(name: str, folders: Sequence[Path]) -> Path:
    file = _found(name, folders)
    if file is None:
        looked = ", ".join(str(place) for place in _places(folders)) or "no folder at all"
        raise InputsMissing(f"{name} is not there: looked in {looked}. Name its folder with --data DIR")
    return file


def _table(file: Path) -> list[dict[str, str]]:
    with file.open(newline="", encoding="utf-8-sig") as lines:
        return list(csv.DictReader(lines))
