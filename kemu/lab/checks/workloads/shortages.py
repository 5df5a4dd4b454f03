"""The check that a workload which is short of pods creates them."""

from __future__ import annotations

import heapq
from typing import Any, ClassVar

from kemu.emulated.objects import selectors
from kemu.lab.checks.attention import Attention, Punctual, sort_of
from kemu.lab.checks.history.histories import History
from kemu.lab.checks.results import Fold
from kemu.lab.checks.workloads.owners import Owner, Pod, Workloads
from kemu.messages.k8s import core_v1_pb2
from kemu.runtime.runlog.events import RequestRefused
from kemu.runtime.words import counted

_ACTORS = {
    "ReplicaSet": "controller/replicaset",
    "ReplicationController": "controller/replicationcontroller",
    "StatefulSet": "controller/statefulset",
    "DaemonSet": "controller/daemonset",
    "Job": "controller/job",
    "Deployment": "controller/deployment",
}
_SOON_S = 30.0
"""For a controller that is told by a watch, creates pods in batches, and begins again after a conflict."""
_TOLERATED = {
    ("node.kubernetes.io/not-ready", "NoExecute"), ("node.kubernetes.io/unreachable", "NoExecute"),
    ("node.kubernetes.io/disk-pressure", "NoSchedule"), ("node.kubernetes.io/memory-pressure", "NoSchedule"),
    ("node.kubernetes.io/pid-pressure", "NoSchedule"), ("node.kubernetes.io/unschedulable", "NoSchedule"),
}  # fmt: skip
"""By every pod of a DaemonSet (``AddOrUpdateDaemonPodTolerations``)."""


class WorkloadsCreateWhatTheyLack(Punctual):
    """A workload that has fewer pods than it wants creates them within 30 seconds.

    ReplicaSets and ReplicationControllers count pods that have not ended and are not being deleted; a StatefulSet goes
    on when the pods before the missing one are ready; a Job that has seen no failure runs as many as ``parallelism``
    and the completions that are left allow; a DaemonSet has a pod on each node that suits its template; the ReplicaSets
    of a rolling Deployment want as many together as it does. Each step of progress begins the time anew. Whoever was
    refused a pod (by a quota, for example) is not asked until it has what it wants.
    """

    id: ClassVar[str] = "workloads-create-what-they-lack"
    folds: ClassVar[tuple[type[Fold], ...]] = (Attention, Workloads)
    nothing: ClassVar[str] = "no workload was short of pods"
    unit: ClassVar[str] = "shortage"

    def given(self, *folds: Any) -> None:
        attention, self._workloads = folds
        super().given(attention)
        self._workloads.tell_owner.append(self._owner_changed)
        self._workloads.tell_pod.append(self._pod_changed)
        self._workloads.tell_node.append(self._node_changed)
        self._refused: dict[tuple[str, str], None] = {}
        """Actors, and the namespaces in which they may not create pods."""
        self._ordinals: dict[str, _Ordinals] = {}
        """Of StatefulSets, by UID."""
        self._daemons: dict[str, Owner] = {}
        self._troubled: dict[str, None] = {}
        """Jobs of which a pod has failed or was deleted: they have their back-off."""

    def saw(self, time_ns: int, actor: str, event: RequestRefused) -> None:
        if event.verb == "create" and event.by.startswith("controller/"):
            self._refused[sort_of(event.by), event.namespace] = None
            for key in self._overdue.open():
                self._overdue.drop(key)

    def _owner_changed(self, time_ns: int, owner: Owner, gone: bool) -> None:
        if self._ended:
            return
        if gone or owner.value.metadata.HasField("deletionTimestamp"):
            self._daemons.pop(owner.uid, None)
            self._ordinals.pop(owner.uid, None)
            for key in self._overdue.open():
                if key[0] == owner.uid:
                    self._overdue.drop(key)
            return
        if owner.kind == "DaemonSet":
            is_new = owner.uid not in self._daemons
            self._daemons[owner.uid] = owner
            if is_new or owner.changed_ns == time_ns:
                for name in self._workloads.nodes:
                    self._look_at_daemon(time_ns, owner, name)
        elif owner.uid not in self._troubled:
            self._look(time_ns, owner)
            parent = self._workloads.owners.get(owner.parent)
            if parent is not None:
                self._look(time_ns, parent)

    def _pod_changed(self, time_ns: int, owner: Owner, pod: Pod, gone: bool) -> None:
        if self._ended:
            return
        if owner.kind == "DaemonSet":
            self._look_at_daemon(time_ns, owner, pod.node or pod.target)
        else:
            if owner.kind == "Job" and (pod.failed or pod.deleting):
                self._troubled[owner.uid] = None
                self._overdue.drop((owner.uid, ""))
            if owner.uid in self._ordinals:
                self._ordinals[owner.uid].changed(pod, gone)
            if owner.uid not in self._troubled:
                self._look(time_ns, owner)

    def _node_changed(self, time_ns: int, name: str) -> None:
        if not self._ended:
            for owner in self._daemons.values():
                self._look_at_daemon(time_ns, owner, name)

    def _set(self, time_ns: int, key: tuple[str, str], owner: Owner, what: str) -> None:
        """``what`` is missing; empty: nothing is."""
        actor = _ACTORS[owner.kind]
        if what and (actor, owner.name.partition("/")[0]) not in self._refused:
            self._overdue.begin(key, time_ns, actor, _SOON_S, f"{owner.says} {what}", anew=True)
        elif not what:
            self._overdue.end(key, time_ns)

    def _look(self, time_ns: int, owner: Owner) -> None:
        if owner.value.metadata.HasField("deletionTimestamp"):
            return  # in the foreground: it waits for its pods, whose end is no shortage
        if owner.kind == "StatefulSet":
            ordinals = self._ordinals.get(owner.uid)
            if ordinals is None:
                ordinals = self._ordinals[owner.uid] = _Ordinals(owner)
            # Another ordinal is another task.
            asked, missing = ordinals.asked, ordinals.missing()
            if asked != missing:
                self._overdue.end((owner.uid, asked), time_ns)
            if missing:
                self._set(time_ns, (owner.uid, missing), owner, missing)
        else:
            make = {"Job": _job, "Deployment": self._deployment}.get(owner.kind, _replicas)
            self._set(time_ns, (owner.uid, ""), owner, make(owner))

    def _deployment(self, owner: Owner) -> str:
        spec = owner.value.spec
        if spec.paused or spec.strategy.type == "Recreate":
            return ""
        sets = [one for one in self._workloads.owners.values() if one.parent == owner.uid]
        has = sum(one.value.spec.replicas for one in sets)
        return f"has ReplicaSets for {has} of {counted(spec.replicas, 'pod')}" if has < spec.replicas else ""

    def _look_at_daemon(self, time_ns: int, owner: Owner, name: str) -> None:
        node = self._workloads.nodes.get(name)
        what = ""
        if (
            node is not None
            and not any((pod.node or pod.target) == name for pod in owner.pods.values())
            and _wants(owner.value.spec.template.spec, node)
        ):
            what = f"lacks a pod on {name}"
        self._set(time_ns, (owner.uid, name), owner, what)

    def rolled_back(self, time_ns: int, history: History) -> None:
        """What the controllers had seen is not known; nothing more is asked."""
        self._overdue.clear()
        self._ended = True


def _replicas(owner: Owner) -> str:
    has, wants = owner.counted(), owner.value.spec.replicas
    return f"has {has} of {counted(wants, 'pod')}" if has < wants else ""


class _Ordinals:
    """The first ordinal at which the controller of a StatefulSet stops, kept from change to change: looking at all
    pods again at each of them would take most of the time of a run with a big set."""

    def __init__(self, owner: Owner) -> None:
        self._owner = owner
        self._there = {pod.name: pod for pod in owner.pods.values()}
        self._rules: tuple[int, bool, bool] | None = None
        self._next = 0
        """No ordinal from here on has been looked at."""
        self._stopped: list[int] = []
        """A heap. All ordinals before ``_next`` that stop the controller are in it, and some that do so no more."""
        self.asked = ""
        """What was missing last."""

    def changed(self, pod: Pod, gone: bool) -> None:
        if not gone:
            self._there[pod.name] = pod
        elif self._there.get(pod.name) is pod:
            del self._there[pod.name]
        number = pod.name.rpartition("-")[2]
        if self._rules is not None and number.isdigit():
            ordinal = int(number)
            if self._rules[0] <= ordinal < self._next and not self._passes(ordinal):
                heapq.heappush(self._stopped, ordinal)

    def missing(self) -> str:
        """What is said of the pod that the controller has to create; empty: none, as yet."""
        spec = self._owner.value.spec
        first, rules = spec.ordinals.start, self._rules
        self._rules = first, spec.podManagementPolicy != "Parallel", bool(spec.minReadySeconds)
        if self._rules != rules:
            self._next, self._stopped = first, []
        end = first + spec.replicas
        while self._stopped and self._passes(self._stopped[0]):
            heapq.heappop(self._stopped)
        while not self._stopped and self._next < end:
            if not self._passes(self._next):
                heapq.heappush(self._stopped, self._next)
            self._next += 1
        ordinal = self._stopped[0] if self._stopped else end
        lacks = ordinal < end and f"{self._owner.name}-{ordinal}" not in self._there
        self.asked = f"lacks the pod {ordinal}" if lacks else ""
        return self.asked

    def _passes(self, ordinal: int) -> bool:
        """Whether the controller goes on to the next one."""
        pod = self._there.get(f"{self._owner.name}-{ordinal}")
        assert self._rules is not None
        _first, ordered, waits = self._rules
        return pod is not None and not (ordered and (waits or not pod.ready))


def _job(owner: Owner) -> str:
    """Only while nothing has failed: failures have their back-off."""
    spec, status, pods = owner.value.spec, owner.value.status, owner.pods.values()
    if spec.suspend or status.failed or status.conditions or spec.managedBy or spec.HasField("backoffLimitPerIndex"):
        return ""
    done = status.succeeded + len(status.uncountedTerminatedPods.succeeded)
    done = max(done, sum(pod.over and not pod.failed for pod in pods))
    if not spec.HasField("completions") and done:
        return ""
    left = spec.completions - done if spec.HasField("completions") else spec.parallelism
    has, wants = sum(pod.active for pod in pods), min(spec.parallelism, left)
    return f"runs {has} of {counted(wants, 'pod')}" if has < wants else ""


def _wants(spec: core_v1_pb2.PodSpec, node: core_v1_pb2.Node) -> bool:
    """``nodeShouldRunDaemonPod``."""
    if spec.nodeName and spec.nodeName != node.metadata.name:
        return False
    for taint in node.spec.taints:
        if taint.effect not in ("NoSchedule", "NoExecute") or (taint.key, taint.effect) in _TOLERATED:
            continue
        if not selectors.tolerates_any(spec.tolerations, taint):
            return False
    return selectors.RequiredNodeAffinity(spec).matches(node.metadata.labels, node.metadata.name)
