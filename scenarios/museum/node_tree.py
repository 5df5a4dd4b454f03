"""The list of nodes as kube-scheduler made it until v1.19, as a plugin that narrows the search to it, for 91601.yaml.

The scheduler keeps the nodes by zone, and each zone remembers how many of its nodes were listed. A list takes the next
node of the next zone in turn, as often as there are nodes, and begins where the last one ended. When all zones are
exhausted they start over, in the middle of a list, too: then it has one node twice and lacks another.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from kemu.scheduler.framework import Cycle, Handle, Narrowed, NodeFilterPlugin, NodeInfo, Status

ZONE = "topology.kubernetes.io/zone"


class NodeTree(NodeFilterPlugin):
    def __init__(self, args: Mapping[str, Any], handle: Handle) -> None:
        super().__init__(args, handle)
        self.zones: dict[str, list[str]] = {}
        self.listed: dict[str, int] = {}
        """By zone: how many of its nodes were listed since it started over."""
        self.turn = 0
        """The number of the next zone."""
        self.known: list[str] = []
        self.names: frozenset[str] = frozenset()
        """Of the last list."""

    def pre_filter(self, pod: Cycle) -> Narrowed:
        nodes = {node.name: node.labels.get(ZONE, "") for node in pod.cluster.rows}
        if sorted(nodes) != sorted(self.known):
            for name, zone in nodes.items():
                if name not in self.known:
                    self.known.append(name)
                    self.zones.setdefault(zone, []).append(name)
                    self.listed.setdefault(zone, 0)
            self.names = frozenset(self.next() for _ in self.known)
        return Narrowed(self.names)

    def filter(self, pod: Cycle, node: NodeInfo) -> Status | None:
        return None

    def next(self) -> str:
        exhausted = 0
        while True:
            zone = list(self.zones)[self.turn % len(self.zones)]
            self.turn += 1
            if self.listed[zone] < len(self.zones[zone]):
                self.listed[zone] += 1
                return self.zones[zone][self.listed[zone] - 1]
            exhausted += 1
            if exhausted >= len(self.zones):
                self.listed = dict.fromkeys(self.zones, 0)
                self.turn = 0
