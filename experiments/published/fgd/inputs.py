"""The published files: the trace, the orders of its ten runs, the figures. kemu ships none of them."""

from __future__ import annotations

import csv
import gzip
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from gpu_fragmentation import Kind

NODES = "openb_node_list_gpu_node.csv"
PODS = "openb_pod_list_default.csv"
POD_ORDER = "pod_order.csv.gz"
NODE_ORDER = "node_order.csv.gz"
PUBLISHED = "expected.csv"

_SUBFOLDERS = ("", "data", "published/fgd")
_COPY = "-tuned-"
"""Separates the name of a pod from the number of its copy."""


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
        return self.pods[name.partition(_COPY)[0]]

    def kinds(self) -> list[Kind]:
        """What the pods of the trace request, and how many request it."""
        counts = Counter((pod.cpu_milli, pod.milli, pod.cards) for pod in self.pods.values())
        return [Kind(*requests, pods) for requests, pods in counts.items()]


def find(folders: Iterable[Path]) -> Inputs:
    """Read the files, which are in these folders, or in their ``data`` and ``published/fgd``."""
    places = [folder / sub for folder in folders for sub in _SUBFOLDERS]
    found: dict[str, Path] = {}
    for name in (NODES, PODS, POD_ORDER, NODE_ORDER, PUBLISHED):
        file = next((place / name for place in places if (place / name).is_file()), None)
        if file is None:
            looked = ", ".join(str(place) for place in places) or "no folder at all"
            raise InputsMissing(f"{name} is not there: looked in {looked}. Name its folder with --data DIR")
        found[name] = file
    nodes = {
        row["sn"]: Node(int(row["cpu_milli"]), int(row["memory_mib"]), int(row["gpu"]), row["model"])
        for row in _table(found[NODES])
    }
    pods = {}
    for row in _table(found[PODS]):
        if row["gpu_spec"]:
            raise InputsMissing(f"{found[PODS]}: {row['name']} allows some models only; this workload has no such pods")
        pods[row["name"]] = Pod(*(int(row[key]) for key in ("cpu_milli", "memory_mib", "num_gpu", "gpu_milli")))
    published = {
        (row["policy"], int(row["seed"])): (
            float(row["allocated_percent_at_100"]),
            float(row["allocated_percent_at_130"]),
            float(row["frag_ratio_percent_at_80"]),
        )
        for row in _table(found[PUBLISHED])
    }
    return Inputs(nodes, pods, _orders(found[POD_ORDER]), _orders(found[NODE_ORDER]), published)


def _table(file: Path) -> list[dict[str, str]]:
    with file.open(newline="", encoding="utf-8-sig") as lines:
        return list(csv.DictReader(lines))


def _orders(file: Path) -> dict[int, list[str]]:
    """Lines of seed, number and name."""
    orders: dict[int, list[str]] = {}
    with gzip.open(file, "rt", encoding="utf-8", newline="") as lines:
        for seed, number, name in csv.reader(lines):
            order = orders.setdefault(int(seed), [])
            if int(number) != len(order):
                raise InputsMissing(f"{file}: {name} of seed {seed} has number {number}, {len(order)} was expected")
            order.append(name)
    return orders
