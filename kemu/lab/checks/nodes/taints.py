"""Checks of what follows from the health of nodes: conditions, taints, and pods that do not tolerate them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

from kemu.emulated.objects import selectors
from kemu.emulated.objects.pods import pod_phases
from kemu.lab.checks.attention import Punctual
from kemu.lab.checks.history import NODE_PREFIX, POD_PREFIX, STATUS, History, parsed
from kemu.lab.checks.results import seconds
from kemu.messages.k8s import core_v1_pb2
from kemu.runtime.runlog.events import ActorCrashed, ActorStarted, MachineOff, NodeUnknown, TaintEviction, Transaction

_Events = Transaction | NodeUnknown | ActorStarted | ActorCrashed | MachineOff

_LIFECYCLE = "controller/node-lifecycle"
_EVICTION = "controller/taint-eviction"
_PREFIX = "node.kubernetes.io/"
_OF_CONDITIONS = {
    ("Ready", "False"): "not-ready",
    ("Ready", "Unknown"): "unreachable",
    ("MemoryPressure", "True"): "memory-pressure",
    ("DiskPressure", "True"): "disk-pressure",
    ("NetworkUnavailable", "True"): "network-unavailable",
    ("PIDPressure", "True"): "pid-pressure",
}
"""``nodeConditionToTaintKeyStatusMap``."""
_LOST = ("not-ready", "unreachable")
_KUBELET = "kubelet/"
_LEAST_GRACE_NS = 30_000_000_000
"""In this time a kubelet that runs renews its lease, whatever the grace period is."""
_NOTICED_S = 25.0
"""Beyond the grace period: a renewal on its way, and the interval at which the controller looks."""
_RELISTS_NS = 60_000_000_000
"""A controller that was disturbed in this time may have missed that a taint was gone for a moment."""
_SOON_S = 15.0
"""For a controller that is told by a watch, and looks at all nodes every five seconds."""


class TaintsFollowConditions(Punctual):
    """A node has the taints that its conditions call for, and no other of their kind, after a short time.

    NoSchedule at once, also for ``spec.unschedulable`` (``doNoScheduleTaintingPass``). NoExecute for a node that is not
    ready comes at a limited rate, so only one that is too long there is judged (``markNodeAsReachable``).
    """

    id: ClassVar[str] = "taints-follow-conditions"
    keys: ClassVar[tuple[str, ...]] = (NODE_PREFIX,)
    nothing: ClassVar[str] = "no taint had to change"
    unit: ClassVar[str] = "taint"

    def saw(self, time_ns: int, actor: str, event: Transaction) -> None:
        for op, key, value, _create, _version in event.changes:
            if key.startswith(NODE_PREFIX):
                name = key.removeprefix(NODE_PREFIX)
                if op != 0:
                    for kept in [kept for kept in self._overdue.open() if kept[0] == name]:
                        self._overdue.end(kept, time_ns)
                else:
                    self._node_changed(time_ns, name, parsed.node(value))

    def _node_changed(self, time_ns: int, name: str, node: core_v1_pb2.Node) -> None:
        statuses = {condition.type: condition.status for condition in node.status.conditions}
        if "Ready" not in statuses:
            return
        wanted = {taint for one, taint in _OF_CONDITIONS.items() if statuses.get(one[0]) == one[1]}
        if node.spec.unschedulable:
            wanted.add("unschedulable")
        has = {(taint.key.removeprefix(_PREFIX), taint.effect) for taint in node.spec.taints}
        for taint in (*_OF_CONDITIONS.values(), "unschedulable"):
            there = (taint, "NoSchedule") in has
            if there == (taint in wanted):
                self._overdue.end((name, taint), time_ns)
            else:
                said = "has the taint" if there else "lacks the taint"
                what = f"{name} {said} {_PREFIX}{taint}:NoSchedule"
                self._overdue.begin((name, taint), time_ns, _LIFECYCLE, _SOON_S, what)
        is_ready = statuses["Ready"] == "True"
        for taint in _LOST:
            key = name, f"{taint}:NoExecute"
            if is_ready and (taint, "NoExecute") in has:
                what = f"{name} is ready and has the taint {_PREFIX}{taint}:NoExecute"
                self._overdue.begin(key, time_ns, _LIFECYCLE, _SOON_S, what)
            else:
                self._overdue.end(key, time_ns)


class LostNodesAreNoticed(Punctual):
    """A node becomes Unknown when its kubelet has been silent for the grace period, not before and not much later, and
    does not stay so while its kubelet runs.

    Not before: a kubelet that ran undisturbed in the first 30 seconds of that time has renewed its lease meanwhile, if
    the node lifecycle controller ran in all of it (``tryUpdateNodeHealth``). Not later: the kubelet has crashed or its
    machine is off; its last heartbeat was at most one interval earlier, and the controller looks every five seconds.
    A kubelet that finds its node Unknown writes the status that it has (``updateNodeStatus``), at the latest when it
    would have been lost again.
    """

    id: ClassVar[str] = "lost-nodes-are-noticed"
    keys: ClassVar[tuple[str, ...]] = (NODE_PREFIX,)
    nothing: ClassVar[str] = "no node fell silent"
    unit: ClassVar[str] = "silent node"

    def __init__(self, *args: Any) -> None:
        super().__init__(*args)
        self._ready: dict[str, str] = {}
        """The status of this condition, by node."""
        self._silent: dict[str, None] = {}
        self._running: dict[str, None] = {}
        """Nodes whose kubelets run."""
        self._was_ready: dict[str, None] = {}

    def saw(self, time_ns: int, actor: str, event: _Events) -> None:
        if isinstance(event, Transaction):
            for op, key, value, _create, _version in event.changes:
                if key.startswith(NODE_PREFIX):
                    name = key.removeprefix(NODE_PREFIX)
                    found = parsed.node(value).status.conditions if op == 0 else ()
                    self._ready[name] = next((one.status for one in found if one.type == "Ready"), "")
                    if self._ready[name] == "True":
                        self._was_ready[name] = None
                    self._look(time_ns, name)
        elif isinstance(event, NodeUnknown):
            self._declared(time_ns, event.node)
        elif isinstance(event, MachineOff) or actor.startswith(_KUBELET):
            name = event.node if isinstance(event, MachineOff) else actor.removeprefix(_KUBELET)
            if isinstance(event, ActorStarted):
                self._silent.pop(name, None)
                self._overdue.drop(name)
                self._running[name] = None
            else:
                self._silent[name] = None
                self._running.pop(name, None)
            self._look(time_ns, name)

    def _look(self, time_ns: int, name: str) -> None:
        status = self._ready.get(name)
        if name in self._silent and status == "True":
            within_s = self._limits.node_grace_ns / 1e9 + _NOTICED_S
            self._overdue.begin(name, time_ns, _LIFECYCLE, within_s, f"{name} counts as ready, and its kubelet is down")
        else:
            self._overdue.end(name, time_ns)
        if name in self._running and status == "Unknown":
            what = f"{name} counts as Unknown, and its kubelet runs"
            within_s = max(self._limits.node_grace_ns, _LEAST_GRACE_NS) / 1e9 + _NOTICED_S
            self._overdue.begin((name, "Unknown"), time_ns, _KUBELET + name, within_s, what)
        else:
            self._overdue.end((name, "Unknown"), time_ns)

    def _declared(self, time_ns: int, name: str) -> None:
        self._overdue.judged += 1
        if time_ns < self._limits.node_grace_ns and name in self._was_ready:
            self._overdue.note(f"{seconds(time_ns)}: {name} becomes Unknown, before any grace period can be over")
            return
        since_ns = max(0, time_ns - max(self._limits.node_grace_ns, _LEAST_GRACE_NS))
        until_ns = min(time_ns, since_ns + _LEAST_GRACE_NS)
        if self._attention.was_clear(_KUBELET + name, since_ns, until_ns) and self._attention.is_clear(
            _LIFECYCLE, since_ns, time_ns
        ):
            self._overdue.note(
                f"{seconds(time_ns)}: {name} becomes Unknown, while its kubelet ran undisturbed from "
                f"{seconds(since_ns)} to {seconds(until_ns)}"
            )


@dataclass(slots=True)
class _Stay:
    """A pod on a node with NoExecute taints."""

    since_ns: int
    due_ns: int | None
    """None: it may stay."""


class PodsLeaveWhenTheirTolerationEnds(Punctual):
    """The taint eviction controller deletes a pod when it has tolerated a NoExecute taint for long enough, not before.

    A pod that does not tolerate a taint goes at once; of several tolerations the shortest counts
    (``getMinTolerationTime``), from the first of the taints on.
    """

    id: ClassVar[str] = "pods-leave-when-their-toleration-ends"
    keys: ClassVar[tuple[str, ...]] = (NODE_PREFIX,)
    nothing: ClassVar[str] = "no pod had to leave a node for a taint"
    unit: ClassVar[str] = "pod"

    def __init__(self, *args: Any) -> None:
        super().__init__(*args)
        self._taints: dict[str, tuple[Any, ...]] = {}
        """NoExecute taints, by node."""
        self._on: dict[str, dict[str, None]] = {}
        """UIDs, by node."""
        self._pods: dict[str, tuple[str, str, Any]] = {}
        """By UID: key, node and tolerations."""
        self._tolerations: dict[bytes, tuple[Any, ...]] = {}
        """Of pods, by their bytes: most pods have the same, and the parts of a message keep all of it."""
        self._uid_of_key: dict[str, str] = {}
        self._stays: dict[str, _Stay] = {}
        self._over: dict[str, int] = {}
        """By UID: when the last stay among taints was over."""

    def saw(self, time_ns: int, actor: str, event: Transaction | TaintEviction) -> None:
        if isinstance(event, TaintEviction):
            self._evicted(time_ns, event)
            return
        for op, key, value, _create, _version in event.changes:
            if key.startswith(NODE_PREFIX):
                self._node_changed(time_ns, key.removeprefix(NODE_PREFIX), value if op == 0 else None)

    def _node_changed(self, time_ns: int, name: str, value: bytes | None) -> None:
        found = parsed.node(value).spec.taints if value is not None else ()
        taints = tuple(taint for taint in found if taint.effect == "NoExecute")
        if taints != self._taints.get(name, ()):
            self._taints[name] = taints
            for uid in list(self._on.get(name, ())):
                self._look(time_ns, uid)

    def pod_changes(self) -> int | None:
        return None if self._ended else STATUS

    def on_pod(self, time_ns: int, revision: int, key: str, pod: core_v1_pb2.Pod | None) -> None:
        uid = self._uid_of_key.pop(key, "")
        if uid and (pod is None or pod.metadata.uid != uid):
            self._gone(time_ns, uid)
        if pod is None:
            return
        uid = self._uid_of_key[key] = pod.metadata.uid
        if pod.metadata.HasField("deletionTimestamp"):
            self._overdue.end(uid, time_ns)
        if uid in self._pods or not pod.spec.nodeName:
            return
        own = b"|".join([one.SerializeToString() for one in pod.spec.tolerations])
        tolerations = self._tolerations.get(own)
        if tolerations is None:
            tolerations = self._tolerations[own] = tuple(pod.spec.tolerations)
        self._pods[uid] = key.removeprefix(POD_PREFIX), pod.spec.nodeName, tolerations
        self._on.setdefault(pod.spec.nodeName, {})[uid] = None
        if not self._taints.get(pod.spec.nodeName) and uid not in self._stays:
            return  # as nearly always
        if not pod_phases.is_terminal(pod) and not pod.metadata.HasField("deletionTimestamp"):
            self._look(time_ns, uid)

    def _gone(self, time_ns: int, uid: str) -> None:
        known = self._pods.get(uid)
        if known is not None:
            self._on[known[1]].pop(uid, None)
        self._overdue.end(uid, time_ns)

    def _look(self, time_ns: int, uid: str) -> None:
        """Its node has other taints than before."""
        key, node, tolerations = self._pods[uid]
        taints = self._taints.get(node, ())
        stay = self._stays.get(uid)
        if not taints:
            if stay is not None:
                self._over[uid] = time_ns
                del self._stays[uid]
            self._overdue.end(uid, time_ns)
            return
        if stay is None:
            stay = self._stays[uid] = _Stay(time_ns, None)
        stay_s = _stay_s(taints, tolerations)
        if stay_s is None:
            stay.due_ns = None
            self._overdue.end(uid, time_ns)
        elif stay.due_ns is None or (time_ns + round(stay_s * 1e9) < stay.due_ns and not stay_s):
            stay.due_ns = time_ns + round(stay_s * 1e9)
            what = f"{key} had to leave {node} at {seconds(stay.due_ns)} for its taints"
            self._overdue.end(uid, time_ns)
            self._overdue.begin(uid, time_ns, _EVICTION, stay_s + _SOON_S, what)

    def _evicted(self, time_ns: int, event: TaintEviction) -> None:
        uid = event.uid
        stay, known = self._stays.get(uid), self._pods.get(uid)
        if known is None or not event.ok:
            return
        who = f"{seconds(time_ns)}: {_EVICTION} deletes {known[0]} on {known[1]}"
        if stay is None or stay.due_ns is None:
            over_ns = max(self._over.get(uid, 0), stay.since_ns if stay is not None else 0)
            if self._attention.is_clear(_EVICTION, over_ns, over_ns + round(_SOON_S * 1e9)) and (
                time_ns > over_ns + round(_SOON_S * 1e9)
            ):
                self._overdue.note(f"{who}, which tolerates its taints")
        elif event.start < stay.due_ns and self._attention.is_clear(
            _EVICTION, max(0, stay.since_ns - _RELISTS_NS), time_ns
        ):
            self._overdue.note(f"{who}, where it may stay until {seconds(stay.due_ns)}")

    def rolled_back(self, time_ns: int, history: History) -> None:
        """Pods and taints are those of the store now; when they had to go is not known."""
        for known in (self._taints, self._on, self._pods, self._uid_of_key, self._over):
            known.clear()
        for key, value in history.values.items():
            if key.startswith(POD_PREFIX):
                self.on_pod(time_ns, history.revision, key, parsed.pod(value))
            elif key.startswith(NODE_PREFIX):
                self._node_changed(time_ns, key.removeprefix(NODE_PREFIX), value)
        self._stays.clear()
        super().rolled_back(time_ns, history)


def _stay_s(taints: tuple[Any, ...], tolerations: tuple[Any, ...]) -> float | None:
    """For how long the pod may stay; None: for ever."""
    least: float | None = None
    for taint in taints:
        first = next((one for one in tolerations if selectors.tolerates(one, taint)), None)
        if first is None:
            return 0.0
        if first.HasField("tolerationSeconds"):
            limit = float(max(0, first.tolerationSeconds))
            least = limit if least is None else min(least, limit)
    return least
