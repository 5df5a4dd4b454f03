"""Checks of the two garbage collectors: what they delete is garbage."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar, Self

from kemu.emulated.objects import meta, resources
from kemu.emulated.objects.pods import pod_phases
from kemu.lab.checks.attention import sort_of
from kemu.lab.checks.history import NODE_PREFIX, PHASE, POD_PREFIX, parsed
from kemu.lab.checks.limits import DEFAULT, Limits
from kemu.lab.checks.results import seconds
from kemu.lab.checks.workloads.views import ByView, decided_since
from kemu.messages.k8s import core_v1_pb2, meta_v1_pb2
from kemu.runtime.runlog.events import ApiRequest, Event, FaultBegun, OwnedDeleted, Transaction, WritesAcknowledged

_COLLECTOR, _POD_COLLECTOR = "controller/garbage-collector", "controller/pod-gc"
_QUARANTINE_NS = 40_000_000_000
"""``quarantineTime`` of podgc."""
_OUT_OF_SERVICE = "node.kubernetes.io/out-of-service"
_FOREGROUND = "foregroundDeletion"


class GarbageHasNoOwner(ByView):
    """The garbage collector deletes an object only if none of its owners exists, by kind, name and UID, but such as
    wait for their dependents (``foregroundDeletion``).

    An owner that is being deleted and waits for something else still exists. What counts are owners that the object had
    in every version since the collector began to ask (``classifyReferences``); the deletion states the version that it
    was decided by, or was decided again.
    """

    id: ClassVar[str] = "garbage-has-no-owner"
    actors: ClassVar[Mapping[type[Event], str]] = {WritesAcknowledged: _COLLECTOR}
    nothing: ClassVar[str] = "the garbage collector deleted nothing"
    unit: ClassVar[str] = "object"

    def __init__(self) -> None:
        self._acked: dict[tuple[str, str], tuple[int, int, str]] = {}
        """By actor and UID: when it asked for its last write of an object, the revision, and the key."""

    def on_event(self, time_ns: int, actor: str, event: WritesAcknowledged | OwnedDeleted) -> None:
        if self._is_lost or sort_of(actor) != _COLLECTOR:
            return
        if isinstance(event, WritesAcknowledged):
            for took_ns, revision, key, uid, _digest in event.acks:
                self._acked[actor, uid] = time_ns - took_ns, revision, key
            return
        acked = self._acked.pop((actor, event.uid), None)
        if acked is not None:
            self._deleted(time_ns, actor, *acked, f"{event.resource_kind} {event.name}")

    def _deleted(self, time_ns: int, actor: str, asked_ns: int, revision: int, key: str, what: str) -> None:
        change = self._views.change(revision, key)
        if change is None or change.previous is None or change.time_ns < asked_ns:
            return  # It was being deleted already.
        parse = parsed.parser(key.split("/", 3)[2])
        metadata = parse(change.previous).metadata
        self._judged += 1
        since_ns = decided_since(self._attention, actor, asked_ns)
        versions = [metadata]
        for before in reversed(self._views.history.changes):
            if before.time_ns < since_ns:
                break
            if before.key == key and before.revision < revision and before.previous is not None:
                versions.append(parse(before.previous).metadata)
        for reference in metadata.ownerReferences:
            if not all(any(one.uid == reference.uid for one in each.ownerReferences) for each in versions):
                continue
            if self._exists(reference, metadata.namespace):
                self._findings.append(
                    f"{seconds(time_ns)}: {what} is deleted, and its owner {reference.kind} {reference.name} exists"
                )
                return

    def _exists(self, reference: meta_v1_pb2.OwnerReference, namespace: str) -> bool:
        row = resources.BY_KIND.get(reference.kind)
        if row is None:
            return False
        key = resources.key(row, namespace, reference.name).decode()
        history = self._views.history
        value = history.values.get(key)
        parse = parsed.parser(row.plural)
        owner = parse(value).metadata if value is not None else None
        if owner is None or owner.uid != reference.uid:
            return False
        if not owner.HasField("deletionTimestamp"):
            return True
        if _waits(owner):
            return False
        before = (change.previous for change in history.changes if change.key == key and change.previous is not None)
        return not any(_waits(parse(one).metadata) for one in before)


def _waits(owner: meta_v1_pb2.ObjectMeta) -> bool:
    """For its dependents."""
    return owner.HasField("deletionTimestamp") and _FOREGROUND in owner.finalizers


class PodsAreCollectedForAReason(ByView):
    """The pod garbage collector deletes a pod only if it has ended, and more have than ``terminatedPodThreshold``; if
    its node has been gone for 40 seconds; if it is being deleted and was never bound; or if it is being deleted, and
    its node is out of service and not ready.

    Judged by any version of the node that the collector may have seen when it decided. A node that came back counts as
    gone since it went for the first time. Where clocks are skewed by a fault the 40 seconds are not judged.
    """

    id: ClassVar[str] = "pods-are-collected-for-a-reason"
    verbs: ClassVar[tuple[str, ...]] = ("delete",)
    keys: ClassVar[tuple[str, ...]] = (NODE_PREFIX,)
    nothing: ClassVar[str] = "the pod garbage collector deleted nothing"
    unit: ClassVar[str] = "pod"

    def __init__(self, limits: Limits = DEFAULT) -> None:
        self._threshold = limits.terminated_pods
        self._are_clocks_right = True
        self._missing_ns: dict[str, int] = {}
        """Since when a node has been missing at the earliest."""
        self._nodes: dict[str, None] = {}
        """That there are."""
        self._ended: dict[str, None] = {}
        """Keys of pods that have."""
        self._most_ended = 0

    @classmethod
    def within(cls, limits: Limits) -> Self:
        return cls(limits)

    def on_event(self, time_ns: int, actor: str, event: Transaction | ApiRequest | FaultBegun) -> None:
        if isinstance(event, FaultBegun):
            self._are_clocks_right &= not event.what.startswith("clock")
        elif isinstance(event, Transaction):
            for op, key, _value, _create, _version in event.changes:
                if key.startswith(NODE_PREFIX):
                    self._node_changed(time_ns, key.removeprefix(NODE_PREFIX), op == 0)
        elif sort_of(event.by) == _POD_COLLECTOR and not self._is_lost:
            key = f"{POD_PREFIX}{event.namespace}/{event.name}"
            change = self._views.change(event.rev, key)
            if change is not None and change.previous is not None and change.time_ns >= event.start:
                self._judged += 1
                pod = parsed.pod(change.previous)
                if why := self._objection(event.by, pod, event.start):
                    self._findings.append(
                        f"{seconds(time_ns)}: {_POD_COLLECTOR} deletes {event.namespace}/{event.name}, {why}"
                    )

    def _node_changed(self, time_ns: int, name: str, is_there: bool) -> None:
        if is_there:
            self._nodes[name] = None
        else:
            self._nodes.pop(name, None)
            self._missing_ns.setdefault(name, time_ns)

    def pod_changes(self) -> int | None:
        return PHASE

    def on_pod(self, time_ns: int, revision: int, key: str, pod: core_v1_pb2.Pod | None) -> None:
        if pod is None or pod.status.phase not in pod_phases.TERMINAL:
            self._ended.pop(key, None)
        else:
            self._ended[key] = None
            self._most_ended = max(self._most_ended, len(self._ended))
        if pod is not None and pod.spec.nodeName and pod.spec.nodeName not in self._nodes:
            self._missing_ns.setdefault(pod.spec.nodeName, time_ns)

    def _objection(self, actor: str, pod: core_v1_pb2.Pod, asked_ns: int) -> str:
        name, is_going = pod.spec.nodeName, pod.metadata.HasField("deletionTimestamp")
        if pod_phases.is_terminal(pod) and 0 < self._threshold < self._most_ended:
            return ""
        if not name:
            return "" if is_going else "which waits for a node"
        since_ns = decided_since(self._attention, actor, asked_ns)
        seen = self._views.seen(actor, "nodes", since_ns)
        if seen is None:
            return ""
        versions = self._views.versions(NODE_PREFIX + name, seen)
        if None in versions:
            missing_ns = self._missing_ns.get(name, asked_ns)
            if self._are_clocks_right and asked_ns - missing_ns < _QUARANTINE_NS:
                return f"whose node {name} has been gone for {seconds(asked_ns - missing_ns)}"
            return ""
        nodes = [parsed.node(value) for value in versions if value is not None]
        if is_going and any(_is_out_of_service(node) for node in nodes):
            return ""
        return f"whose node {name} exists"


def _is_out_of_service(node: core_v1_pb2.Node) -> bool:
    return any(taint.key == _OUT_OF_SERVICE for taint in node.spec.taints) and not meta.is_ready(node)
