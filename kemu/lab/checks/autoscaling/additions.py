"""The check that pods which fit nowhere get nodes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar

from kemu.emulated.objects import meta
from kemu.emulated.objects.amounts import requests
from kemu.emulated.objects.pods import pod_phases
from kemu.lab.checks.attention import Attention, Punctual
from kemu.lab.checks.autoscaling import machines
from kemu.lab.checks.autoscaling.machines import AUTOSCALER, Amounts, Machines
from kemu.lab.checks.history import NODE_PREFIX, POD_PREFIX, STATUS, History, parsed
from kemu.lab.checks.history.outages import RECOVERY_NS
from kemu.lab.checks.limits import Autoscaled, NodeGroup
from kemu.lab.checks.results import Fold
from kemu.lab.checks.scheduling import rooms
from kemu.messages.k8s import apps_v1_pb2, core_v1_pb2
from kemu.runtime.runlog.events import ConnectionLost, FaultBegun, FaultEnded, InstanceChanged, Transaction

_Events = Transaction | InstanceChanged | FaultBegun | FaultEnded | ConnectionLost

_MORE_S = 30.0
"""For requests that have to be made again, a slow iteration, a node that has just come."""
_CLOUD = "cloud"
_DAEMON_SETS = "/registry/daemonsets/"
_HOSTNAME = "kubernetes.io/hostname"
_DELAY = "cluster-autoscaler.kubernetes.io/pod-scale-up-delay"
_STARTING = ("ignore-taint.cluster-autoscaler.kubernetes.io/", "startup-taint.cluster-autoscaler.kubernetes.io/")
_PASSING = (
    "node.kubernetes.io/",
    "node.cloudprovider.kubernetes.io/",
    "ToBeDeletedByClusterAutoscaler",
    "DeletionCandidateOfClusterAutoscaler",
    "status-taint.cluster-autoscaler.kubernetes.io/",
    *_STARTING,
)
"""Taints that say nothing of the nodes to come."""
_NOT_READY = (
    "node.kubernetes.io/not-ready",
    "node.kubernetes.io/disk-pressure",
    "node.kubernetes.io/network-unavailable",
    *_STARTING,
)


class _Group:
    """A group, and the worst that any node of it would be to a pod: the next one may be like any of them."""

    def __init__(self, group: NodeGroup) -> None:
        self.name, self.max = group.name, group.max
        template = core_v1_pb2.Node.FromString(group.template)
        self._labels: list[dict[str, str]] = []
        self._taints: dict[bytes, Any] = {}
        self._offered = requests.resource_list(template.status.allocatable)
        self._daemons: Amounts = {}
        """The most that pods of DaemonSets and mirror pods took on one of its nodes."""
        self._unschedulable = template.spec.unschedulable
        self.blocked_ns = 0
        """Until then it may be left alone, as it could not grow."""
        self.note(template)

    def note(self, node: core_v1_pb2.Node) -> None:
        """One of its nodes, or the template."""
        labels = {key: node.metadata.labels[key] for key in node.metadata.labels if key != _HOSTNAME}
        if labels not in self._labels:
            self._labels.append(labels)
        for taint in node.spec.taints:
            if not taint.key.startswith(_PASSING):
                self._taints[taint.SerializeToString(deterministic=True)] = taint
        amounts = requests.resource_list(node.status.allocatable)
        self._offered = {name: min(amount, amounts.get(name, 0)) for name, amount in self._offered.items()}

    def took(self, amounts: Amounts) -> None:
        for name, amount in amounts.items():
            self._daemons[name] = max(amount, self._daemons.get(name, 0))

    def takes(self, spec: core_v1_pb2.PodSpec, wanted: Amounts, sets: Amounts, *, all_daemons: bool) -> bool:
        """Whether the pod fits on an empty node, whatever it is like. ``sets``: what all DaemonSets want there."""
        names = {**self._daemons, **sets}
        both = {name: (self._daemons.get(name, 0), sets.get(name, 0)) for name in names}
        used = {name: sum(two) if all_daemons else max(two) for name, two in both.items()}
        if not machines.fits(wanted, machines.less(self._offered, used)):
            return False
        node = core_v1_pb2.Node()
        node.spec.unschedulable = self._unschedulable
        node.spec.taints.extend(self._taints.values())
        for labels in self._labels:
            node.metadata.labels.clear()
            node.metadata.labels.update(labels)
            if not rooms.suits_node(node, spec):
                return False
        return True


class PodsThatWaitGetNodes(Punctual):
    """The cluster autoscaler adds a node for a pod that a scheduler found unschedulable, that fits on none of the nodes
    that are there, and that fits on a new one of a group below its ``max``: within two scans and 30 seconds.

    Asked only of a cluster at rest: every machine of every group runs a node that is ready, so that no node is still to
    come, at most ``okTotalUnreadyCount`` other nodes are broken, and there are fewer than ``maxNodesTotal``. A group
    that could not grow is not asked for the longest backoff. Labels, taints and resources decide who fits; pods for
    which more counts, those below the cut-off, nominated ones and those of DaemonSets are not judged.
    """

    id: ClassVar[str] = "pods-that-wait-get-nodes"
    folds: ClassVar[tuple[type[Fold], ...]] = (Attention, Machines)
    keys: ClassVar[tuple[str, ...]] = (NODE_PREFIX, _DAEMON_SETS)
    nothing: ClassVar[str] = "no pod needed a node of an autoscaler"
    unit: ClassVar[str] = "pod"

    def given(self, *folds: Any) -> None:
        attention, self._machines = folds
        super().given(attention)
        scaled = self._limits.autoscaled or Autoscaled(())
        self._flags = scaled.flags
        self._groups = {group.name: _Group(group) for group in scaled.groups}
        self._nodes: dict[str, machines.Node] = {}
        self._daemons: dict[str, Amounts] = {}
        """By node: what pods that belong to it take."""
        self._ready: dict[str, None] = {}
        self._pods: dict[str, tuple[str, Amounts, bool, bool]] = {}
        """By key, of pods on nodes: the node, what they want, whether they belong to it, whether they keep others
        away."""
        self._waiting: dict[str, Any] = {}
        """By key."""
        self._sets: dict[str, Any] = {}
        self._faults: dict[str, None] = {}
        """Those of the provider that last."""
        self._since_ns = 0
        """The provider can be reached since then."""

    def rolled_back(self, time_ns: int, history: History) -> None:
        super().rolled_back(time_ns, history)
        self._nodes, self._daemons, self._ready, self._pods, self._waiting, self._sets = {}, {}, {}, {}, {}, {}
        for key, value in history.values.items() if self._groups else ():
            if key.startswith(POD_PREFIX):
                self._pod_changed(key, parsed.pod(value))
            else:
                self._changed(key, value)

    def taker(self, kind: str) -> Callable[[int, str, Any], None] | None:
        return super().taker(kind) if self._groups else None

    def pod_changes(self) -> int | None:
        return STATUS if self._groups and not self._ended else None

    def on_pod(self, time_ns: int, revision: int, key: str, pod: core_v1_pb2.Pod | None) -> None:
        if self._pod_changed(key, pod):
            self._look(time_ns)

    def saw(self, time_ns: int, actor: str, event: _Events) -> None:
        if isinstance(event, Transaction):
            changed = False
            for op, key, value, _create, _version in event.changes:
                changed |= self._changed(key, value if op == 0 else None)
            if not changed:
                return
        elif isinstance(event, InstanceChanged):
            self._provided(time_ns, event)
        elif isinstance(event, ConnectionLost):
            if _CLOUD in (actor, event.peer):
                self._reached(time_ns)
        elif isinstance(event, FaultEnded):
            if event.id in self._faults:
                del self._faults[event.id]
                self._reached(time_ns)
        elif _names(event, _CLOUD):
            self._faults[event.id] = None
        self._look(time_ns)

    def _reached(self, time_ns: int) -> None:
        self._since_ns = time_ns + RECOVERY_NS
        for key in self._overdue.open():
            self._overdue.end(key, time_ns)

    def _provided(self, time_ns: int, event: InstanceChanged) -> None:
        group, machine = self._groups.get(event.group), self._machines.all.get(event.node)
        if group is None:
            return
        late = machine is not None and time_ns - machine.since_ns > self._flags.max_node_provision_time_s * 1e9
        if event.what == "running" and event.node in self._nodes:
            group.note(self._nodes[event.node].value)
            group.took(self._daemons.get(event.node, {}))
        if event.what in ("failed", "refused") or (late and event.what in ("running", "gone")):
            backoff_s = max(self._flags.initial_node_group_backoff_s, self._flags.max_node_group_backoff_s)
            group.blocked_ns = time_ns + round(backoff_s * 1e9)

    # --- what the store tells -----------------------------------------------------------------------------------------

    def _changed(self, key: str, value: bytes | None) -> bool:
        """Whether it matters to anybody here."""
        if key.startswith(NODE_PREFIX):
            return self._node_changed(key.removeprefix(NODE_PREFIX), value)
        if not key.startswith(_DAEMON_SETS):
            return False
        if value is None:
            self._sets.pop(key, None)
        else:
            self._sets[key] = apps_v1_pb2.DaemonSet.FromString(value).spec.template
        return True

    def _node_changed(self, name: str, value: bytes | None) -> bool:
        if value is None:
            self._nodes.pop(name, None)
            self._ready.pop(name, None)
            return True
        found = parsed.node(value)
        known, was_ready = self._nodes.get(name), name in self._ready
        if _is_ready(found):
            self._ready[name] = None
        else:
            self._ready.pop(name, None)
        offered = requests.resource_list(found.status.allocatable)
        if (
            known is not None
            and was_ready == (name in self._ready)
            and (known.allocatable, known.value.spec) == (offered, found.spec)
            and known.value.metadata.labels == found.metadata.labels
        ):
            return False
        node = self._nodes[name] = machines.Node(found, offered)
        if known is not None:
            node.used = known.used
        else:
            for on, wanted, _, _ in self._pods.values():
                if on == name:
                    machines.add(node.used, wanted)
        group = self._group_of(name)
        if group is not None:
            group.note(found)
        return True

    def _group_of(self, node: str) -> _Group | None:
        machine = self._machines.all.get(node)
        return self._groups.get(machine.group) if machine is not None else None

    def _pod_changed(self, key: str, pod: core_v1_pb2.Pod | None) -> bool:
        before, waited = self._pods.pop(key, None), self._waiting.pop(key, None)
        if before is not None:
            self._count(before, -1)
        if pod is None or pod_phases.is_terminal(pod):
            return before is not None or waited is not None
        own, expendable = machines.belongs_to_its_node(pod), machines.is_expendable(pod, self._flags.cut_off)
        if pod.spec.nodeName:
            amounts = {} if expendable else machines.wanted_by(pod)
            now = self._pods[key] = (pod.spec.nodeName, amounts, own, _keeps_away(pod.spec))
            self._count(now, 1)
            return before != now
        scheduled = meta.get_condition(pod.status.conditions, "PodScheduled")
        if (
            scheduled is not None
            and (scheduled.status, scheduled.reason) == ("False", "Unschedulable")
            and not (own or expendable or pod.metadata.HasField("deletionTimestamp") or pod.status.nominatedNodeName)
            and _DELAY not in pod.metadata.annotations
            and rooms.judged(pod)
        ):
            self._waiting[key] = pod
        return waited is not None or key in self._waiting

    def _count(self, pod: tuple[str, Amounts, bool, bool], sign: int) -> None:
        name, wanted, own, _ = pod
        if name in self._nodes:
            machines.add(self._nodes[name].used, wanted, sign)
        if own:
            taken = self._daemons.setdefault(name, {})
            machines.add(taken, wanted, sign)
            group = self._group_of(name)
            if group is not None:
                group.took(taken)

    # --- judgement ----------------------------------------------------------------------------------------------------

    def _look(self, time_ns: int) -> None:
        """Who has to get a node, as things are now."""
        if not self._waiting and not self._overdue.open():
            return
        growing = self._growing(time_ns) if self._waiting else []
        within_s = 2 * self._flags.scan_interval_s + self._flags.new_pod_scale_up_delay_s + _MORE_S
        wanting: dict[tuple[str, str], None] = {}
        known: dict[tuple[Any, ...], str] = {}
        sets: Amounts = {}
        for template in self._sets.values() if growing else ():
            machines.add(sets, machines.wanted_by(template))
        for key, pod in self._waiting.items() if growing else ():
            wanted = machines.wanted_by(pod)
            kind = _kind(pod, wanted)
            if kind not in known:
                known[kind] = self._needs(pod.spec, wanted, growing, sets)
            if known[kind]:
                task = key, pod.metadata.uid
                wanting[task] = None
                name = key.removeprefix(POD_PREFIX)
                what = f"{name} fits on no node, and on a new one of {known[kind]}"
                self._overdue.begin(task, max(time_ns, self._since_ns), AUTOSCALER, within_s, what)
        for task in self._overdue.open():
            if task not in wanting:
                self._overdue.end(task, time_ns)

    def _growing(self, time_ns: int) -> list[_Group]:
        """The groups that may grow now; none, where anything is in motion or beyond judgement."""
        living = {name: self._machines.living(name) for name in self._groups}
        if self._faults or any(one.node not in self._ready for all_ in living.values() for one in all_):
            return []
        if len(self._nodes) - len(self._ready) > self._flags.ok_total_unready_count:
            return []
        if not self._ready and not self._flags.scale_up_from_zero:
            return []
        if 0 < self._flags.max_nodes_total <= len(self._nodes):
            return []
        if any(keeps_away for *_, keeps_away in self._pods.values()):
            return []
        if any(_keeps_away(template.spec) for template in self._sets.values()):
            return []
        return [one for name, one in self._groups.items() if len(living[name]) < one.max and one.blocked_ns < time_ns]

    def _needs(self, spec: core_v1_pb2.PodSpec, wanted: Amounts, growing: list[_Group], sets: Amounts) -> str:
        """The first group whose new nodes would take the pod, if no node does."""
        for node in self._nodes.values():
            if node.has_room(wanted) and rooms.suits_node(node.value, spec):
                return ""
        critical = any(one.spec.priorityClassName == "system-node-critical" for one in self._sets.values())
        for group in growing:
            if group.takes(spec, wanted, sets, all_daemons=critical or self._flags.force_daemon_sets):
                return group.name
        return ""


def _kind(pod: core_v1_pb2.Pod, wanted: Amounts) -> tuple[Any, ...]:
    """Equal for pods that fit where the others fit."""
    spec = pod.spec
    return (
        tuple(sorted(wanted.items())),
        tuple(sorted(spec.nodeSelector.items())),
        spec.affinity.SerializeToString(deterministic=True),
        tuple(toleration.SerializeToString(deterministic=True) for toleration in spec.tolerations),
    )


def _names(data: FaultBegun, name: str) -> bool:
    """Whether a fault strikes that actor."""
    lists = [value for value in data.values() if isinstance(value, list)]
    return any(name in each or any(isinstance(one, list) and name in one for one in each) for each in lists)


def _keeps_away(spec: core_v1_pb2.PodSpec) -> bool:
    """It has a required anti-affinity, which may keep others from nodes that are still to come."""
    return bool(spec.affinity.podAntiAffinity.requiredDuringSchedulingIgnoredDuringExecution)


def _is_ready(node: core_v1_pb2.Node) -> bool:
    ready = meta.get_condition(node.status.conditions, "Ready")
    if ready is None or ready.status != "True":
        return False
    if any(
        one.type in ("DiskPressure", "NetworkUnavailable") and one.status == "True" for one in node.status.conditions
    ):
        return False
    return not any(taint.key.startswith(_NOT_READY) for taint in node.spec.taints)
