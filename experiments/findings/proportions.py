"""What has a size of its own that the ``scale`` of a scenario leaves alone: objects, node groups, counts in claims.

On a cluster so many times as large a gang has as many more members, a quota allows as many more pods, a node group has
as many more nodes, and a pod that is bound from the start has a copy on each node of its kind.
"""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Iterator, Mapping
from typing import Any

from kemu.lab.sweep.statistics.claims import Claim

COUNTS = ("admissions_rejected", "eviction_returns", "search_evaluations", "searches_given_up")
"""Metrics of a whole cluster that claims compare with a number."""

_NUMBERED = re.compile(r"(.*?)([0-9]+)")
_PODS_OF_QUOTA = re.compile(r"manifests\[[0-9]+\]\.spec\.hard\.pods")


def settings(scenario: Mapping[str, Any], scale: int) -> dict[str, Any]:
    """Values by path below the spec of the scenario."""
    found: dict[str, Any] = {}
    stated = scenario.get("manifests", [])
    if (scaled := list(_manifests(scenario, scale))) != stated:
        found["manifests"] = scaled
    for number, group in enumerate(scenario.get("autoscaler", {}).get("nodeGroups", ())):
        for key in ("min", "max"):
            found[f"autoscaler.nodeGroups[{number}].{key}"] = group[key] * scale
    return found


def overrides(values: Mapping[str, Any], scale: int) -> dict[str, Any]:
    """What a variant sets, by path."""
    return {
        path: str(int(value) * scale) if _PODS_OF_QUOTA.fullmatch(path) else value for path, value in values.items()
    }


def claim(stated: Claim, scale: int) -> Claim:
    """One that compares a count with a number compares it with one so many times as large."""
    left, right = stated.left, stated.right
    if right.metric is not None or left.metric is None or left.metric.name not in COUNTS:
        return stated
    number = right.factor * scale
    says = f"{stated.says.rpartition(' ')[0]} {number:g}"
    return dataclasses.replace(stated, says=says, right=dataclasses.replace(right, factor=number))


def _manifests(scenario: Mapping[str, Any], scale: int) -> Iterator[dict[str, Any]]:
    counts = {group["namePrefix"]: group.get("count", 1) for group in scenario.get("nodes", ())}
    for one in scenario.get("manifests", ()):
        spec = one.get("spec", {})
        match one["kind"]:
            case "Pod" if "nodeName" in spec:
                yield from _copies(one, counts[_numbered(spec["nodeName"])[0]], scale)
            case "PodGroup":
                gang = {"minCount": spec["schedulingPolicy"]["gang"]["minCount"] * scale}
                yield {**one, "spec": {**spec, "schedulingPolicy": {"gang": gang}}}
            case "ResourceQuota":
                hard = {**spec["hard"], "pods": str(int(spec["hard"]["pods"]) * scale)}
                yield {**one, "spec": {**spec, "hard": hard}}
            case _:
                yield one


def _copies(pod: dict[str, Any], nodes: int, scale: int) -> Iterator[dict[str, Any]]:
    """``nodes``: how many of its kind the small cluster has."""
    for further in range(0, nodes * scale, nodes):
        metadata = {**pod["metadata"], "name": _moved(pod["metadata"]["name"], further)}
        spec = {**pod["spec"], "nodeName": _moved(pod["spec"]["nodeName"], further)}
        yield {**pod, "metadata": metadata, "spec": spec}


def _moved(name: str, by: int) -> str:
    stem, number = _numbered(name)
    return f"{stem}{number + by}"


def _numbered(name: str) -> tuple[str, int]:
    match = _NUMBERED.fullmatch(name)
    if match is None:
        raise ValueError(f"{name} does not end with a number")
    return match[1], int(match[2])
