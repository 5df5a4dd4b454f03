"""``autoscaler`` of a scenario: node groups and flags, from the checked document.

Role: one step of :mod:`kemu.lab.scenario.loading.loader`. The nodes that a group has when the clock starts are nodes of
the scenario like others.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from kemu.emulated.autoscaler import clouds, settings
from kemu.emulated.settings.documents import Path
from kemu.emulated.settings.shapes import INVALID, THERE_ARE, Report
from kemu.emulated.settings.values import MAX_DURATION_NS
from kemu.lab.scenario import scenarios
from kemu.lab.scenario.loading import clusters

PROVISIONING_S, STARTUP_S, REMOVAL_S = 60.0, 0.0, 30.0


@dataclass(frozen=True)
class Read:
    """What was read."""

    settings: scenarios.Autoscaler
    nodes: list[scenarios.Node]


def read(checked: Any, raw: Any, path: Path, report: Report) -> Read | None:
    """None: there is none, or its mistakes have been reported."""
    if not isinstance(checked, dict) or not isinstance(raw, dict):
        return None
    groups: list[scenarios.NodeGroup] = []
    nodes: list[scenarios.Node] = []
    for index, item in enumerate(checked.get("nodeGroups", [])):
        if item is INVALID or "name" not in item or "max" not in item:
            continue
        made = _group(item, raw["nodeGroups"][index], (*path, "nodeGroups", index), report)
        if made is None:
            continue
        group, there = made
        if group.name in [other.name for other in groups]:
            report.add((*path, "nodeGroups", index, "name"), f"a second group is called {group.name}")
        groups.append(group)
        nodes += there
    flags = {name: value for name, value in checked.items() if name != "nodeGroups" and value is not INVALID}
    _check_flags(flags, path, report)
    return Read(scenarios.Autoscaler(tuple(groups), flags), nodes)


def _group(
    item: Mapping[str, Any], raw: Any, path: Path, report: Report
) -> tuple[scenarios.NodeGroup, list[scenarios.Node]] | None:
    name, least, most = item["name"], item.get("min", 0), item["max"]
    if least > most:
        report.add((*path, "min"), f"{least} is more than max, {most}")
    count = item.get("initial", least)
    if count > most:
        report.add((*path, "initial"), f"{count} is more than max, {most}")
    fields = item.get("template", {})
    written = raw.get("template", {}) if isinstance(raw, dict) else {}
    found = clusters.nodes({**fields, "name": name}, written or {}, (*path, "template"), report)
    if not found:
        return None
    template = found[0]
    initial = tuple(clouds.node_name(name, number) for number in range(1, count + 1))
    group = scenarios.NodeGroup(
        name,
        least,
        most,
        template,
        initial,
        item.get("provisioning", PROVISIONING_S),
        item.get("startup", STARTUP_S),
        item.get("removal", REMOVAL_S),
        float(item.get("price", 0.0)),
        tuple(_failure(each) for each in item.get("failures", []) if each is not INVALID and "kind" in each),
    )
    return group, [member(group, node) for node in initial]


def member(group: scenarios.NodeGroup, name: str) -> scenarios.Node:
    """A node of the group."""
    template = group.template
    return clusters.named(template.message, name, template.kubelet, template.usage, template.machine, template.policy)


def _failure(item: Mapping[str, Any]) -> dict[str, Any]:
    return {
        "kind": item["kind"],
        "from_ns": item.get("from", 0),
        "until_ns": item.get("until", MAX_DURATION_NS),
        "share": item.get("share", 1.0),
    }


def _check_flags(flags: Mapping[str, Any], path: Path, report: Report) -> None:
    for name in str(flags.get("expander", "")).split(","):
        if name and name not in settings.EXPANDERS:
            report.add((*path, "expander"), f"{name!r} is no expander", THERE_ARE + ", ".join(settings.EXPANDERS))
    if "priority" in str(flags.get("expander", "")).split(",") and not flags.get("priorities"):
        report.add((*path, "expander"), "the expander priority needs priorities")
    for priority in flags.get("priorities", {}):
        if not str(priority).isdigit():
            report.add((*path, "priorities", priority), f"{priority!r} is not a priority")
