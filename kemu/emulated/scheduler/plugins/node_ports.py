"""NodePorts: no two pods of a node share a host port."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np

from kemu.emulated.objects.pods import host_ports
from kemu.emulated.objects.pods.host_ports import HostPort
from kemu.emulated.scheduler.cache.cluster import Cluster
from kemu.emulated.scheduler.cache.columns import IntArray
from kemu.emulated.scheduler.cache.nodes import NodeInfo
from kemu.emulated.scheduler.cache.pods import PodInfo
from kemu.emulated.scheduler.framework import signers
from kemu.emulated.scheduler.framework.events import Event, Hint
from kemu.emulated.scheduler.framework.interfaces import SKIP, Cycle, FilterPlugin, Scope, SignPlugin
from kemu.emulated.scheduler.framework.signers import Fragments
from kemu.emulated.scheduler.framework.statuses import Status, unschedulable
from kemu.messages.k8s import core_v1_pb2
from kemu.messages.k8s.objects import KubernetesObject

_TAKEN = unschedulable("node(s) didn't have free ports for the requested pod ports")


class NodePorts(FilterPlugin, SignPlugin):
    scope = Scope.NODE

    def prepare(self, cycle: Cycle) -> Any:
        return cycle.template.host_ports or SKIP

    def verdict(self, state: tuple[HostPort, ...], node: NodeInfo) -> int:
        if node.ports:
            for address, protocol, port in state:
                for taken in node.ports.get((protocol, port), ()):
                    if host_ports.conflict(address, taken):
                        return 1
        return 0

    def verdicts(self, state: tuple[HostPort, ...], cluster: Cluster) -> IntArray | None:
        if not cluster.nodes_with_ports:
            return None
        verdicts = np.zeros(len(cluster), dtype=np.int64)
        for node in cluster.nodes_with_ports.values():
            if node.row >= 0:
                verdicts[node.row] = self.verdict(state, node)
        return verdicts

    def explain(self, state: tuple[HostPort, ...], verdict: int) -> Status:
        return _TAKEN

    def sign_pod(self, pod: PodInfo) -> Fragments | None:
        return signers.host_ports(pod.pod)

    def events(self) -> Iterable[tuple[Event, Hint | None]]:
        return [
            (Event.ASSIGNED_POD_DELETE, _frees_a_port),
            (Event.NODE_ADD, None),
            (Event.NODE_TAINTS, None),
        ]


def _frees_a_port(pod: PodInfo, old: core_v1_pb2.Pod, new: KubernetesObject | None) -> bool:
    return any(
        (protocol, port) == (wanted_protocol, wanted_port) and host_ports.conflict(address, wanted_address)
        for address, protocol, port in host_ports.of(old.spec)
        for wanted_address, wanted_protocol, wanted_port in pod.template.host_ports
    )
