"""Reads recorded decisions of real Kubernetes: beside the checkout (``../shared/oracle``), else those shipped here."""

from __future__ import annotations

import gzip
import itertools
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from tests.samples import one_in

_BESIDE = Path(__file__).resolve().parents[3] / "shared" / "oracle"
_SHIPPED = Path(__file__).resolve().parents[1] / "conformance" / "data"
ORACLE = _BESIDE if _BESIDE.is_dir() else _SHIPPED


def records(pattern: str) -> Iterator[dict[str, Any]]:
    """The lines of all files that match, e.g. ``scheduler/fit.jsonl.gz``; by day every fourth: a file has hundreds,
    with dozens of objects that are drawn alike."""
    for path in sorted(ORACLE.glob(pattern)):
        with gzip.open(path, "rt", encoding="utf-8") as lines:
            for line in itertools.islice(lines, 0, None, one_in(4)):
                yield json.loads(line)


OBJECT_KEYS = {
    "node": "Node",
    "nodes": "Node",
    "freshNode": "Node",
    "pod": "Pod",
    "pods": "Pod",
    "nominated": "Pod",
    "namespaces": "Namespace",
    "pdbs": "PodDisruptionBudget",
    "priorityClasses": "PriorityClass",
    "services": "Service",
    "replicationControllers": "ReplicationController",
    "replicaSets": "ReplicaSet",
    "statefulSets": "StatefulSet",
}
"""Under which keys of a record objects stand, and of which kind they are."""


def objects(value: Any) -> Iterator[tuple[str, dict[str, Any]]]:
    """Kind and JSON of every object inside a record."""
    if isinstance(value, list):
        for item in value:
            yield from objects(item)
    elif isinstance(value, dict):
        for key, inner in value.items():
            items = inner if isinstance(inner, list) else [inner]
            if key in OBJECT_KEYS and all(isinstance(item, dict) and "metadata" in item for item in items):
                for item in items:
                    yield OBJECT_KEYS[key], item
            else:
                yield from objects(inner)
