"""The cache: nodes and the pods on them, with columns that are updated on every event.

Pods come here when they are assigned, seen in a watch or *assumed* by this scheduler before the binding is written.
An assumed pod is confirmed by the watch or forgotten when its binding fails; as in today's Kubernetes it never expires.

The order of the rows is the order in which nodes are tried: zones take turns (``nodeTree`` of kube-scheduler).
Where several zones exist, a new node moves rows; then :attr:`Cluster.layout` changes and cached columns start over.

An attempt that takes time works on the state as it was when it began: :meth:`Cluster.hold_snapshot` holds changes back,
:meth:`Cluster.release_snapshot` applies them.
"""

from __future__ import annotations

import itertools
import operator
from collections.abc import Callable, Iterable, Iterator, Mapping
from sys import intern
from typing import Any, ClassVar

import numpy as np

from kemu.emulated.objects import meta, selectors
from kemu.emulated.objects.amounts import requests
from kemu.emulated.objects.selectors import LabelSelector
from kemu.emulated.objects.wire import shared_objects
from kemu.emulated.scheduler.cache import columns, pods
from kemu.emulated.scheduler.cache.columns import BoolArray, ChangeLog, IntArray, LabelColumn, ResourceColumns
from kemu.emulated.scheduler.cache.counts import CountColumn, Counts
from kemu.emulated.scheduler.cache.indexes import SelectorIndex
from kemu.emulated.scheduler.cache.nodes import NodeInfo, Taint
from kemu.emulated.scheduler.cache.nominations import Nominator
from kemu.emulated.scheduler.cache.pods import PodInfo, ResourceNames, Templates
from kemu.emulated.scheduler.cache.storage import Storage
from kemu.emulated.scheduler.cache.terms import PodSelector
from kemu.emulated.scheduler.cache.updates import PodUpdate
from kemu.messages.k8s import core_v1_pb2, policy_v1_pb2
from kemu.messages.k8s.objects import KubernetesObject

_FIRST_CAPACITY = 64
_LABEL_LIMIT = 256
_SPARE = 64
"""Numbers that no node uses any more are dropped beyond this many, plus as many as there are nodes."""


_GONE = NodeInfo("", 0)
"""Stands in the row of a node that was removed."""


class ImageState:
    """One image name in the whole cluster."""

    __slots__ = ("nodes", "size")

    def __init__(self, size: int) -> None:
        self.size = size
        """In bytes, as the first node that listed it said."""
        self.nodes: dict[str, int] = {}
        """The nodes that have it, and how many had it when each of them was last looked at (see
        :meth:`Cluster.settle`)."""


class Cluster:
    """Everything that a scheduling decision reads, apart from the pending pod."""

    filters_again: ClassVar[bool] = True
    """What passes the filters with the nominated pods on a node must pass them without these, too."""

    def __init__(self) -> None:
        self.names = ResourceNames(self._widen)
        self.templates = Templates(self.names)
        self.nominator = Nominator(self._nominations_changed)
        self.rows: list[NodeInfo] = []
        """The nodes by row; in order, and without gaps where nodes were removed, after :meth:`settle`."""
        self.nodes: dict[str, NodeInfo] = {}
        """By name, also nodes of which only pods are known (``node`` is None)."""
        self.pods: dict[str, PodInfo] = {}
        """Pods on nodes, assumed ones included, by UID."""
        self.priorities: dict[int, int] = {}
        """How many of them have which priority."""
        self.assumed: dict[str, PodInfo] = {}
        self.images: dict[str, ImageState] = {}
        self.images_version = 0
        """Changes when scores by images may change."""
        self.unseen: dict[str, NodeInfo] = {}
        """Nodes with images that have changed, or whose pods have, since an attempt began."""
        self.unschedulable_nodes = 0
        self.nodes_with_ports: dict[str, NodeInfo] = {}
        self.namespaces: dict[str, dict[str, str]] = {}
        """Labels by namespace."""
        self.namespaces_version = 0
        self.budgets: dict[str, Any] = {}
        """PodDisruptionBudgets by ``ns/name``."""
        self.budgets_version = 0
        self.services: dict[str, Any] = {}
        """By ``ns/name``."""
        self._services: dict[str, SelectorIndex[LabelSelector]] = {}
        """What they select, by namespace."""
        self.owners: dict[tuple[str, str, str], Any] = {}
        """ReplicationControllers, ReplicaSets and StatefulSets by (kind, namespace, name)."""
        self.owners_version = 0
        """Changes with ``services`` and ``owners``."""

        self.storage = Storage()
        self.devices: Any = None
        """Claims, slices and classes of devices (:class:`kemu.emulated.scheduler.devices.trackers.Devices`); None:
        there are none, and will not be any."""
        self.layout = 0
        """Changes when rows move."""
        self.node_changes = ChangeLog()
        """Rows whose node object changed."""
        self.pod_changes = ChangeLog()
        """Rows whose pods or nominations changed (or whose object did)."""
        self.counts = Counts()
        self.taint_sets: list[tuple[Taint, ...]] = []
        self.capacity = _FIRST_CAPACITY
        self.zeros: IntArray = columns.zeros(_FIRST_CAPACITY)
        """A shared, read-only column of zeros."""
        self.taint_set_ids: IntArray = np.zeros(_FIRST_CAPACITY, dtype=np.int64)
        self.unschedulable: BoolArray = np.zeros(_FIRST_CAPACITY, dtype=np.bool_)
        self._resources = ResourceColumns(len(self.names.names), _FIRST_CAPACITY)
        self._everywhere: dict[int, bool] = {}
        self._resource_version = (0, 0)
        self._labels: dict[str, LabelColumn] = {}
        self._taint_set_numbers: dict[tuple[Taint, ...], int] = {}
        self.taint_numbering = 0
        """Changes when sets of taints get other numbers."""
        self._label_clock = 0
        self._label_columns = 0
        self._zones: dict[tuple[str, str], dict[str, NodeInfo]] = {}
        self.order_is_stale = False
        """With ``unseen``: there is something to :meth:`settle`."""
        self._gone = 0
        """How many rows belong to nodes that were removed."""
        self._generation = 0
        self.held: list[tuple[Callable[..., object], tuple[object, ...]]] | None = None
        """Changes that wait for the end of an attempt; None: none is under way, and they are applied at once."""

    # Nodes ----------------------------------------------------------------------------------------------------------

    def __len__(self) -> int:
        """The number of nodes."""
        return len(self.rows) - self._gone

    def set_node(self, node: core_v1_pb2.Node) -> None:
        """Add a node or take over its new state."""
        name: str = intern(node.metadata.name)
        info = self._node(name)
        known = info.held is not None
        old_zone = info.zone
        if known:
            self._forget_attributes(info)
        info.set_node(node, self.names)
        if not known:
            self._zones.setdefault(info.zone, {})[name] = info
            info.row = len(self.rows)
            self.rows.append(info)
            self._reserve(len(self.rows))
            self.order_is_stale = self.order_is_stale or len(self._zones) > 1
            for pod in info.pods.values():
                if pod.template.claims:
                    self._use_claims(pod, 1)
                self.counts.pod_came(pod, info, self.capacity)
        elif info.zone != old_zone:
            self._leave_zone(old_zone, name)
            self._zones.setdefault(info.zone, {})[name] = info
            self.order_is_stale = True
        self._remember_attributes(info)
        many = 2 * len(self.rows) + _SPARE
        for column in self._labels.values():
            column.write(info.row, info.labels)
            if len(column.values) > many:
                column.renumber(self._known())
        if len(self.taint_sets) > many:
            self._renumber_taint_sets()
        self._touch(info)
        if info.image_sizes:
            self._changed(info)
        self.node_changes.append(info.row)

    def remove_node(self, name: str) -> None:
        info = self.nodes.get(name)
        if info is None or info.held is None:
            return
        self._forget_attributes(info)
        self.unseen.pop(name, None)
        for pod in info.pods.values():
            self._use_claims(pod, -1)
            self.counts.pod_went(pod, info, self.capacity)
        self._leave_zone(info.zone, name)
        self.rows[info.row] = _GONE
        self._gone += 1
        self.order_is_stale = True
        info.forget_node()
        if not info.pods:
            self._drop(info)

    def settle(self) -> None:
        """Put the rows in order, after nodes came, went or changed their zone.

        This is where an attempt begins, and where ``UpdateSnapshot`` (``backend/cache``, cache.go) copies the nodes
        that have changed since the last one, each with the number of nodes that have its images now
        (``ImageStateSummary.Snapshot``). The others keep the numbers that they have.
        """
        if self.order_is_stale:
            self.order_is_stale = False
            self._reorder()
        if self.unseen:
            self._count_images()

    def node_seen(self, name: str) -> None:
        """The watch shows a node, of which nothing has changed that counts."""
        info = self.nodes.get(name)
        if info is not None and info.image_sizes:
            self._changed(info)

    def _changed(self, info: NodeInfo) -> None:
        """A node with images, or a pod on it, has changed."""
        self.unseen[info.name] = info

    def _count_images(self) -> None:
        unseen, self.unseen = self.unseen, {}
        for name, info in unseen.items():
            for image in info.image_sizes:
                nodes = self.images[image].nodes
                if nodes[name] != len(nodes):
                    nodes[name] = len(nodes)
                    self.images_version += 1

    def _known(self) -> Iterator[NodeInfo]:
        """The nodes that have a row, also before :meth:`settle`."""
        return (node for node in self.rows if node is not _GONE)

    def _node(self, name: str) -> NodeInfo:
        info = self.nodes.get(name)
        if info is None:
            info = self.nodes[name] = NodeInfo(name, len(self.names.names))
            self._share_nominations(info)
        return info

    def _share_nominations(self, info: NodeInfo) -> None:
        info.nominated = self.nominator.on(info.name)

    def _drop(self, info: NodeInfo) -> None:
        """Neither an object nor a pod is left of it."""
        del self.nodes[info.name]
        self.nodes_with_ports.pop(info.name, None)

    def _leave_zone(self, zone: tuple[str, str], name: str) -> None:
        members = self._zones[zone]
        del members[name]
        if not members:
            del self._zones[zone]

    def _remember_attributes(self, info: NodeInfo) -> None:
        """Update what the node object alone determines."""
        number = self._taint_set_numbers.get(info.taints)
        if number is None:
            number = self._taint_set_numbers[info.taints] = len(self.taint_sets)
            self.taint_sets.append(info.taints)
        self.taint_set_ids[info.row] = number
        self.unschedulable[info.row] = info.unschedulable
        self.unschedulable_nodes += info.unschedulable
        for image, size in info.image_sizes.items():
            state = self.images.get(image)
            if state is None:
                state = self.images[image] = ImageState(size)
            state.nodes[info.name] = 0
        if self.images:
            self.images_version += 1

    def _renumber_taint_sets(self) -> None:
        """Forget the sets of taints that no node has any more."""
        numbers = self._taint_set_numbers = {}
        for node in self._known():
            self.taint_set_ids[node.row] = numbers.setdefault(node.taints, len(numbers))
        self.taint_sets = list(numbers)
        self.taint_numbering += 1

    def _forget_attributes(self, info: NodeInfo) -> None:
        self.unschedulable_nodes -= info.unschedulable
        if self.images:
            self.images_version += 1
        for image in info.image_sizes:
            state = self.images[image]
            del state.nodes[info.name]
            if not state.nodes:
                del self.images[image]

    # Rows -----------------------------------------------------------------------------------------------------------

    def _reserve(self, rows: int) -> None:
        if rows <= self.capacity:
            return
        capacity = max(rows, 2 * self.capacity)
        self.capacity = capacity
        self.zeros = columns.zeros(capacity)
        self.taint_set_ids = columns.grown(self.taint_set_ids, capacity)
        self.unschedulable = columns.grown(self.unschedulable, capacity)
        for column in self._labels.values():
            column.ids = columns.grown(column.ids, capacity)
        self.counts.grow(capacity)
        self._renew_resources()
        self.layout += 1

    def _rows_moved(self, before: list[NodeInfo]) -> None:
        """Give every node the row of its place in ``rows`` and move the columns along. ``before``: the nodes by row."""
        table = self._resources
        for row in (self.pod_changes.since(table.seen) if table.seen >= 0 else None) or ():
            if before[row].row == row:
                table.write(before[row])
        sources = np.full(self.capacity, -1, dtype=np.int64)
        sources[: len(self.rows)] = [node.row for node in self.rows]
        for row, node in enumerate(self.rows):
            node.row = row
        self.taint_set_ids = columns.permuted(self.taint_set_ids, sources)
        self.unschedulable = columns.permuted(self.unschedulable, sources)
        for column in self._labels.values():
            column.ids = columns.permuted(column.ids, sources)
            column.version += 1
        self.counts.permute(sources)
        if table.seen >= 0 and self.pod_changes.since(table.seen) is not None:
            table.permute(sources)
            table.seen = self.pod_changes.end
        else:
            self._renew_resources()
        self.layout += 1

    def _reorder(self) -> None:
        """Zones take turns, in the order in which they appeared; inside a zone, older nodes come first."""
        turns = itertools.zip_longest(*[members.values() for members in self._zones.values()])
        ordered = [node for turn in turns for node in turn if node is not None]
        before, self.rows, self._gone = self.rows, ordered, 0
        if len(before) != len(ordered) or not all(map(operator.is_, ordered, before)):
            self._rows_moved(before)

    def _widen(self) -> None:
        """A resource appeared that no node and no pod named before."""
        for node in self.nodes.values():
            node.widen(len(self.names.names))
        self._renew_resources()

    def _renew_resources(self) -> None:
        self._resources = ResourceColumns(len(self.names.names), self.capacity)
        self._resources.seen = -1

    def resources(self) -> ResourceColumns:
        """The columns of amounts, brought up to date."""
        self.settle()
        table = self._resources
        changed = self.pod_changes.since(table.seen) if table.seen >= 0 else None
        if changed is None:
            table.write_all(self.rows)
        else:
            for row in changed:
                table.write(self.rows[row])
        table.seen = self.pod_changes.end
        return table

    def forget_resources(self, waiting: Iterable[PodInfo]) -> None:
        """Let go of the names of resources that no node, no pod and no kept template uses, when they have become many.

        ``waiting``: the pods that are not on nodes. Not during an attempt.
        """
        if len(self.names.index) <= self.names.limit:
            return
        used: dict[int, None] = {}
        for node in self.nodes.values():
            for amounts in (node.allocatable, node.requested):
                used.update((number, None) for number, amount in enumerate(amounts) if amount)
        for pod in (*self.pods.values(), *self.nominator.pods(), *waiting):
            for requested in (pod.requests, pod.template.requests, pod.template.score_requests):
                used.update((number, None) for number, _amount in requested)
        for template in self.templates:
            for requested in (template.requests, template.score_requests):
                used.update((number, None) for number, _amount in requested)
        self.names.forget_all_but(used)
        self._everywhere.clear()

    def every_node_has(self, resource: int) -> bool:
        """Whether all nodes have some of a resource (by number)."""
        version = (self.layout, self.node_changes.end)
        if self._resource_version != version:
            self._resource_version = version
            self._everywhere.clear()
        answer = self._everywhere.get(resource)
        if answer is None:
            amounts = self.resources().allocatable[resource, : len(self)]
            answer = self._everywhere[resource] = bool((amounts > 0).all())
        return answer

    def label(self, key: str) -> LabelColumn:
        """The column of a label, kept up to date once it has been asked for."""
        column = self._labels.get(key)
        if column is None:
            if len(self._labels) >= _LABEL_LIMIT:
                self._forget_labels()
            self._label_columns += 1
            column = self._labels[key] = LabelColumn(key, self.capacity, self._label_columns)
            for node in self._known():
                column.write(node.row, node.labels)
        self._label_clock += 1
        column.used = self._label_clock
        return column

    def _forget_labels(self) -> None:
        """Drop half of the label columns, those not used for longest."""
        by_age = sorted(self._labels, key=lambda key: self._labels[key].used)
        for key in by_age[: _LABEL_LIMIT // 2]:
            del self._labels[key]
            self.counts.forget_domains(key)

    # Pods -----------------------------------------------------------------------------------------------------------

    def nominated_nodes(self) -> list[NodeInfo]:
        """The nodes that pods are nominated to."""
        find = self.nodes.get
        return [node for name in self.nominator.nodes if (node := find(name)) is not None and node.row >= 0]

    def pod(self, pod: core_v1_pb2.Pod) -> PodInfo:
        """A pod that runs on a node, as the cache counts it (not yet added)."""
        return pods.on_node(pod, self.templates.of(pod), self.names)

    def pending(self, pod: core_v1_pb2.Pod) -> PodInfo:
        """A pod that waits for a node."""
        return PodInfo(pod, self.templates.of(pod, keep_node_name=True))

    def add_pod(self, pod: PodInfo, node_name: str) -> None:
        """Count a pod on a node, of which perhaps nothing else is known."""
        info = self._node(node_name)
        info.add(pod)
        pod.node_name = node_name
        self.pods[pod.uid] = pod
        self.priorities[pod.priority] = self.priorities.get(pod.priority, 0) + 1
        if pod.template.host_ports:
            self.nodes_with_ports[node_name] = info
        if info.row >= 0:
            if pod.template.claims:
                self._use_claims(pod, 1)
            self.counts.pod_came(pod, info, self.capacity)
        self._touch(info)
        if info.image_sizes:
            self._changed(info)

    def remove_pod(self, uid: str) -> PodInfo | None:
        """Stop counting a pod; None when it was not counted."""
        pod = self.pods.pop(uid, None)
        if pod is None:
            return None
        self.assumed.pop(uid, None)
        left = self.priorities[pod.priority] - 1
        if left:
            self.priorities[pod.priority] = left
        else:
            del self.priorities[pod.priority]
        info = self.nodes[pod.node_name]
        if next(reversed(info.pods)) != uid:
            info.put_last(pod)
        info.remove(pod)
        pod.node_name = ""
        if not info.ports:
            self.nodes_with_ports.pop(info.name, None)
        if info.row >= 0:
            if pod.template.claims:
                self._use_claims(pod, -1)
            self.counts.pod_went(pod, info, self.capacity)
        elif not info.pods:
            self._drop(info)
        self._touch(info)
        if info.image_sizes:
            self._changed(info)
        return pod

    def _use_claims(self, pod: PodInfo, change: int) -> None:
        """Pods on nodes that are gone use none (``usedPVCSet`` is made of the nodes of the snapshot)."""
        self.storage.use(pod.namespace, pod.template.claims, change)

    def see_pod(self, pod: core_v1_pb2.Pod, spec_changed: bool = True) -> None:
        """The watch shows a pod on a node: count it, confirm an assumed one, or update what changed."""
        uid, node_name = pod.metadata.uid, pod.spec.nodeName
        self.assumed.pop(uid, None)
        known = self.pods.get(uid)
        if known is not None:
            if known.node_name == node_name and not spec_changed and not _counts_differently(known, pod):
                start_s = pod.status.startTime.seconds if pod.status.HasField("startTime") else None
                self._renew(known, pod, start_s)
                return
            self.remove_pod(uid)
        self.add_pod(self.pod(pod), node_name)

    def see_update(self, update: PodUpdate, spec_changed: bool) -> None:
        """As :meth:`see_pod`, of a pod that the watch has shown before. ``spec_changed``: since it was counted on its
        node."""
        uid = update.uid
        known = self.pods.get(uid)
        if (
            known is None
            # PodInfo.pod and Held.get, inlined: every scheduler of a race sees every pod.
            or (((version := known.held) and version.obj) or known.pod) is not update.old
            or spec_changed
            or update.counts_differently
            or known.node_name != update.node
        ):
            self.see_pod(update.new, spec_changed)
            return
        self.assumed.pop(uid, None)
        held = update.held
        if held is None:
            held = update.held = shared_objects.OBJECTS.hold(update.new)
        self._renew(known, update.new, update.start_s, held)

    def _renew(
        self, known: PodInfo, pod: core_v1_pb2.Pod, start_s: int | None, held: shared_objects.Held | None = None
    ) -> None:
        """Another version of a pod, which counts as the one before."""
        info = self.nodes[known.node_name]
        if info.image_sizes:
            self._changed(info)
        known.rest(pod, held)
        if start_s != known.start_s:
            # Matters to the choice of victims only.
            known.start_s = start_s
            self._generation += 1
            info.generation = self._generation
        if next(reversed(info.pods)) != known.uid and info.put_last(known):
            self._generation += 1
            info.generation = self._generation
        if known.template.host_ports and info.take_ports(known):
            self.nodes_with_ports[known.node_name] = info
            self._touch(info)

    def assume(self, pod: PodInfo, node_name: str) -> None:
        """Count a pod on the node that was just chosen for it."""
        self.add_pod(pod, node_name)
        self.assumed[pod.uid] = pod

    def forget(self, uid: str) -> bool:
        """Stop counting an assumed pod whose binding failed; False when it is not (any more) assumed.

        An attempt under way still counts it; for the watch it is a waiting pod again.
        """
        if self.assumed.pop(uid, None) is None:
            return False
        self.change(self.remove_pod, uid)
        return True

    def _nominations_changed(self, node_name: str) -> None:
        info = self.nodes.get(node_name)
        if info is not None:
            self._share_nominations(info)
            self._touch(info)

    def _touch(self, info: NodeInfo) -> None:
        self._generation += 1
        info.generation = self._generation
        if info.row >= 0:
            # ChangeLog.append, inlined.
            changes = self.pod_changes
            changes.rows.append(info.row)
            changes.end += 1
            if len(changes.rows) > columns.LOG_LIMIT:
                changes.shorten()

    def matching(self, *wanted: PodSelector) -> CountColumn:
        """The number of pods on each node that all of the selectors match."""
        return self.counts.matching(wanted, self.nodes, self.capacity)

    def services_of(self, namespace: str, labels: Mapping[str, str]) -> Iterator[LabelSelector]:
        """The selectors of the Services that select a pod with these labels."""
        services = self._services.get(namespace)
        if services is not None:
            for selector in services.candidates(labels):
                if selector.matches(labels):
                    yield selector

    # Other objects --------------------------------------------------------------------------------------------------

    def set_namespace(self, name: str, labels: Mapping[str, str] | None) -> None:
        """``labels`` None: the namespace was deleted."""
        if labels is None:
            self.namespaces.pop(name, None)
        else:
            self.namespaces[name] = dict(labels)
        self.namespaces_version += 1

    def set_budget(self, key: str, budget: policy_v1_pb2.PodDisruptionBudget | None) -> None:
        if budget is None:
            self.budgets.pop(key, None)
        else:
            self.budgets[key] = budget
        self.budgets_version += 1

    def set_service(self, key: str, service: core_v1_pb2.Service | None) -> None:
        known = self.services.pop(key, None)
        if known is not None and known.spec.selector:
            namespace = known.metadata.namespace
            self._services[namespace].remove(key)
            if not self._services[namespace]:
                del self._services[namespace]
        if service is not None:
            self.services[key] = service
            if service.spec.selector:
                selector = selectors.labels_equal(service.spec.selector)
                self._services.setdefault(service.metadata.namespace, SelectorIndex()).add(key, selector, selector)
        self.owners_version += 1

    def set_owner(self, kind: str, namespace: str, name: str, owner: KubernetesObject | None) -> None:
        if owner is None:
            self.owners.pop((kind, namespace, name), None)
        else:
            self.owners[kind, namespace, name] = owner
        self.owners_version += 1

    # Time -----------------------------------------------------------------------------------------------------------

    def hold_snapshot(self) -> None:
        """Hold back the changes that come through :meth:`change` until :meth:`release_snapshot`."""
        if self.held is None:
            self.held = []

    def release_snapshot(self) -> None:
        held, self.held = self.held, None
        for change, arguments in held or ():
            change(*arguments)

    def change(self, change: Callable[..., object], *arguments: object) -> None:
        """Apply a change now, or when the attempt that is under way has ended."""
        if self.held is None:
            change(*arguments)
        else:
            self.held.append((change, arguments))


def _counts_differently(known: PodInfo, pod: core_v1_pb2.Pod) -> bool:
    """Whether a pod whose spec did not change must be counted anew."""
    if known.terminating != pod.metadata.HasField("deletionTimestamp"):
        return True
    if not meta.have_same_entries(known.labels, pod.metadata.labels):
        return True
    return requests.is_resized(pod) or requests.is_resized(known.pod)
