"""The cluster as simulations change it: pods placed and taken away, nodes added and removed, and all of it undone.

Filters are those of the scheduler (:mod:`kemu.emulated.scheduler.cycle.decisions`), with its default configuration,
asked about a cache that informers keep up to date. While an iteration runs, changes from outside are held back
(``Cluster.hold_snapshot``); what it changes itself stands in a journal, which :meth:`Snapshot.revert` undoes. Pods of
nodes that do not exist get UIDs of their own, and no pod counts twice: to undo a simulation never drops a pod that
runs. Mirrors
``simulator/clustersnapshot`` (``Fork``, ``Revert``, ``Commit``; PredicateSnapshot and SchedulerPluginRunner).
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple

from kemu.emulated.autoscaler.simulator.devices import Simulated
from kemu.emulated.objects import meta
from kemu.emulated.scheduler.cache.cluster import Cluster
from kemu.emulated.scheduler.cache.nodes import NodeInfo
from kemu.emulated.scheduler.configuration import configurations
from kemu.emulated.scheduler.cycle.decisions import Decider
from kemu.emulated.scheduler.cycle.filtering import Filtering
from kemu.emulated.scheduler.cycle.profiles import Profile
from kemu.emulated.scheduler.framework.interfaces import Handle
from kemu.emulated.scheduler.plugins import in_tree
from kemu.messages.k8s import core_v1_pb2, resource_v1_pb2
from kemu.runtime.env import Random

Acceptable = Callable[[str], bool]
"""Whether a node will do, by its name."""
DEVICES_PLUGIN = "DynamicResources"
SPREAD_REASON = "node(s) didn't match pod topology spread constraints"


class Rejection(NamedTuple):
    """Why a pod does not fit on a node (``SchedulingError``)."""

    plugin: str
    reasons: tuple[str, ...]


class Snapshot:
    """``cluster`` is changed: in the end of an iteration it is as before, but for the order of nodes and pods."""

    def __init__(self, cluster: Cluster, rng: Random) -> None:
        self.cluster = cluster
        configuration = configurations.configuration_of({}, "default-scheduler")
        handle = Handle(cluster, rng)
        self._decider = Decider(Profile(configuration.profiles[0], handle, in_tree.REGISTRY), cluster, rng)
        self._journals: list[list[Callable[[], object]]] = []
        self._last = -1
        """The row of the last match: the next search begins behind it (``lastIndexOrderMapping``)."""
        self._numbers = itertools.count()
        self.devices = None if cluster.devices is None else Simulated(cluster.devices)

    # --- forks -------------------------------------------------------------------------------------------------------

    def fork(self) -> None:
        self._journals.append([])

    def revert(self) -> None:
        """Undo what happened since the last fork."""
        for undo in reversed(self._journals.pop()):
            undo()

    def commit(self) -> None:
        """Let it be part of the fork before."""
        journal = self._journals.pop()
        self._journals[-1] += journal

    def _undoable(self, undo: Callable[[], object]) -> None:
        self._journals[-1].append(undo)

    # --- nodes -------------------------------------------------------------------------------------------------------

    def node(self, name: str) -> NodeInfo | None:
        info = self.cluster.nodes.get(name)
        return info if info is not None and info.node is not None else None

    def nodes(self) -> list[NodeInfo]:
        """In the order in which they are tried."""
        self.cluster.settle()
        return list(self.cluster.rows)

    def pods_on(self, name: str) -> list[core_v1_pb2.Pod]:
        """The objects."""
        return [info.pod for info in self.cluster.nodes[name].pods.values()]

    def add_node(
        self,
        node: core_v1_pb2.Node,
        pods: Iterable[core_v1_pb2.Pod] = (),
        slices: Sequence[resource_v1_pb2.ResourceSlice] = (),
    ) -> None:
        """A node that does not exist, with copies of the pods and of the slices (``SanitizedNodeInfo``)."""
        name = node.metadata.name
        if self.node(name) is not None:
            raise ValueError(f"node {name} is there already")
        self.cluster.set_node(node)
        self._undoable(lambda: self.cluster.remove_node(name))
        if self.devices is not None and slices:
            self._undoable(self.devices.add_slices(name, slices))
        for pod in pods:
            copy = meta.copied(pod)
            copy.metadata.uid = f"simulated:{next(self._numbers)}"
            copy.spec.nodeName = name
            self.place(copy, name)

    def remove_node(self, name: str) -> None:
        """With its pods."""
        for uid in list(self.cluster.nodes[name].pods):
            self.take_away(uid)
        node = self.cluster.nodes[name].node
        self.cluster.remove_node(name)
        self._undoable(lambda: self.cluster.set_node(node))
        if self.devices is not None:
            self._undoable(self.devices.drop_slices(name))

    def change_node(self, node: core_v1_pb2.Node) -> None:
        """Another state of a node that is there."""
        before = self.cluster.nodes[node.metadata.name].node
        self.cluster.set_node(node)
        self._undoable(lambda: self.cluster.set_node(before))

    # --- pods --------------------------------------------------------------------------------------------------------

    def place(self, pod: core_v1_pb2.Pod, node: str) -> None:
        """Count a pod on a node, whether it fits or not."""
        uid = pod.metadata.uid
        if uid in self.cluster.pods:
            raise ValueError(f"pod {uid} counts already, on node {self.cluster.pods[uid].node_name}")
        self.cluster.add_pod(self.cluster.pod(pod), node)
        self._undoable(lambda: self.cluster.remove_pod(uid))

    def take_away(self, uid: str) -> None:
        info = self.cluster.pods[uid]
        node = info.node_name
        self.cluster.remove_pod(uid)
        self._undoable(lambda: self.cluster.add_pod(info, node))
        if self.devices is not None and info.pod.spec.resourceClaims:
            self._undoable(self.devices.unreserve(info.pod))

    def schedule(self, pod: core_v1_pb2.Pod, node: str) -> Rejection | None:
        """Place it there if it fits (``SchedulePod``)."""
        filtering = self._filter(pod)
        rejection = self._rejection(filtering, node)
        if rejection is None:
            self._settle(pod, node, filtering)
        return rejection

    def _settle(self, pod: core_v1_pb2.Pod, node: str, filtering: Filtering) -> None:
        """Place it where the filters let it."""
        if self.devices is not None and pod.spec.resourceClaims:
            self._undoable(self.devices.reserve(filtering.cycle.data[DEVICES_PLUGIN], node))
        self.place(pod, node)

    def check(self, pod: core_v1_pb2.Pod, node: str) -> Rejection | None:
        """Whether a pod fits on one node (``CheckPredicates``)."""
        return self._rejection(self._filter(pod), node)

    def _rejection(self, filtering: Filtering, node: str) -> Rejection | None:
        if filtering.rejection is not None:
            return Rejection(filtering.rejection.plugin, filtering.rejection.reasons)
        row = self.cluster.nodes[node].row
        verdict = int(filtering.verdicts[row])
        if not verdict:
            return None
        status = filtering.explain(verdict)
        return Rejection(status.plugin, status.reasons)

    def schedule_anywhere(self, pod: core_v1_pb2.Pod, acceptable: Acceptable | None = None) -> str:
        """Place it on the first node where it fits, from the last match on (``SchedulePodOnAnyNodeMatching``).

        Returns the node; "": there is none. Cordoned nodes are never tried.
        """
        filtering = self._filter(pod)
        if filtering.rejection is not None:
            return ""
        rows, count = self.cluster.rows, filtering.nodes
        feasible: list[int] = (filtering.verdicts[:count] == 0).nonzero()[0].tolist()
        for row in sorted(feasible, key=lambda row: (row - self._last - 1) % count):
            node = rows[row]
            if not node.unschedulable and (acceptable is None or acceptable(node.name)):
                self._last = row
                self._settle(pod, node.name, filtering)
                return str(node.name)
        return ""

    def _filter(self, pod: core_v1_pb2.Pod) -> Filtering:
        self.cluster.settle()
        return self._decider.filter(self.cluster.pending(pod))
