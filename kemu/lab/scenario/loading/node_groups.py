"""``autoscaler`` of a scenario: the nodes of its groups, from the checked document.

Role: one step of :mod:`kemu.lab.scenario.loading.loader`. The nodes that a group has when the clock starts are nodes of
the scenario like others.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from kemu.emulated.autoscaler import clouds
from kemu.emulated.autoscaler.settings import NodeGroup, Settings
from kemu.emulated.settings.documents import Path
from kemu.emulated.settings.shapes import Report
from kemu.lab.scenario import scenarios
from kemu.lab.scenario.format.clusters import Node, NodeFields
from kemu.lab.scenario.loading import clusters


@dataclass(frozen=True)
class Read:
    """What was read."""

    settings: scenarios.Autoscaler
    nodes: list[Node]


def read(checked: Any, raw: Any, path: Path, report: Report) -> Read | None:
    """None: there is none, or its mistakes have been reported."""
    if not isinstance(checked, Settings) or not isinstance(raw, dict):
        return None
    groups: list[scenarios.NodeGroup] = []
    nodes: list[Node] = []
    for index, stated in enumerate(checked.node_groups):
        if not isinstance(stated, NodeGroup):
            continue  # a mistake that has been reported
        where = (*path, "nodeGroups", index, "template")
        written = raw["nodeGroups"][index].get("template") or {}
        fields = stated.template if isinstance(stated.template, NodeFields) else NodeFields()
        found = clusters.alike(fields, [stated.name], written, where, report)
        if found:
            initial = tuple(clouds.node_name(stated.name, number) for number in range(1, stated.size + 1))
            group = scenarios.NodeGroup(stated, found[0], initial)
            groups.append(group)
            nodes += [member(group, node) for node in initial]
    return Read(scenarios.Autoscaler(tuple(groups), checked), nodes)


def member(group: scenarios.NodeGroup, name: str) -> Node:
    """A node of the group."""
    template = group.template
    rest = (template.kubelet, template.usage, template.machine, template.policy, template.static_pods)
    return clusters.named(template.message, name, *rest, template.devices)
