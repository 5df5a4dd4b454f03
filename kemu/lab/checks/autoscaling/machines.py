"""A cluster that is scaled: nodes and pods as the store has them, and the machines behind the nodes.

Role: below ``sizes``, ``removals`` and ``additions``.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from kemu.emulated.objects import meta
from kemu.emulated.objects.amounts import requests
from kemu.emulated.objects.pods import pod_phases
from kemu.lab.checks.history import MIRROR, parsed
from kemu.lab.checks.history.histories import History
from kemu.lab.checks.results import Fold
from kemu.messages.k8s import core_v1_pb2
from kemu.runtime.runlog.events import InstanceChanged

AUTOSCALER = "controller/cluster-autoscaler"
_DAEMON_POD = "cluster-autoscaler.kubernetes.io/daemonset-pod"

Amounts = dict[str, int]


@dataclass(slots=True)
class Machine:
    """One instance of a group, from its request until nothing is left of it."""

    node: str
    group: str
    since_ns: int
    """When it was requested."""
    ran: bool = False
    failed: bool = False
    going: bool = False
    """Its deletion has been ordered: it counts no more in the size of its group."""


class Machines(Fold):
    """The provider's own words of its instances."""

    def __init__(self, history: History) -> None:
        super().__init__(history)
        self.all: dict[str, Machine] = {}
        """By node."""

    def on_event(self, time_ns: int, actor: str, event: InstanceChanged) -> None:
        what, node = event.what, event.node
        if what == "requested":
            self.all[node] = Machine(node, event.group, time_ns)
        elif what == "running":
            self.all.setdefault(node, Machine(node, event.group, time_ns)).ran = True
        elif what == "gone":
            self.all.pop(node, None)
        elif node in self.all:
            self.all[node].failed |= what == "failed"
            self.all[node].going |= what == "deleting"

    def living(self, group: str) -> list[Machine]:
        """Those that make up the size of a group."""
        return [one for one in self.all.values() if one.group == group and not one.going]


@dataclass(slots=True)
class Node:
    """A node, and what is requested on it."""

    value: Any
    allocatable: Amounts
    used: Amounts = field(default_factory=dict)
    """By pods that keep a node: not by those below the cut-off."""

    def free(self) -> Amounts:
        return less(self.allocatable, self.used)

    def has_room(self, wanted: Amounts) -> bool:
        return fits(wanted, self.free())


def fits(wanted: Amounts, free: Amounts) -> bool:
    return all(amount <= free.get(name, 0) for name, amount in wanted.items() if amount)


def less(amounts: Amounts, others: Amounts) -> Amounts:
    return {name: amount - others.get(name, 0) for name, amount in amounts.items()}


def add(total: Amounts, amounts: Amounts, sign: int = 1) -> None:
    for name, amount in amounts.items():
        total[name] = total.get(name, 0) + sign * amount


def wanted_by(pod: core_v1_pb2.Pod) -> Amounts:
    """What it requests, itself included."""
    return {**requests.pod_requests(pod), "pods": 1}


def is_expendable(pod: core_v1_pb2.Pod, cut_off: int) -> bool:
    return bool(pod.spec.HasField("priority") and pod.spec.priority < cut_off)


def belongs_to_its_node(pod: core_v1_pb2.Pod) -> bool:
    """It is a mirror pod, or a DaemonSet's: each node has its own."""
    owner, annotations = meta.controller_of(pod), pod.metadata.annotations
    is_daemon = (owner is not None and owner.kind == "DaemonSet") or annotations.get(_DAEMON_POD) == "true"
    return MIRROR in annotations or is_daemon


def occupied(
    nodes: Iterable[bytes], pods: Iterable[bytes], cut_off: int
) -> tuple[dict[str, Node], dict[str, list[Any]]]:
    """Nodes by name, and by node the pods on it that keep it (but for those that have ended)."""
    found: dict[str, Node] = {}
    for value in nodes:
        node = parsed.node(value)
        found[node.metadata.name] = Node(node, requests.resource_list(node.status.allocatable))
    on: dict[str, list[Any]] = {}
    for value in pods:
        pod = parsed.pod(value)
        name = pod.spec.nodeName
        if name in found and not pod_phases.is_terminal(pod) and not is_expendable(pod, cut_off):
            add(found[name].used, wanted_by(pod))
            on.setdefault(name, []).append(pod)
    return found, on


def stored(values: Mapping[str, bytes], prefix: str) -> list[bytes]:
    return [value for key, value in values.items() if key.startswith(prefix)]
