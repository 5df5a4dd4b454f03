"""What the store held, and what each actor knew of it, at any moment of a run.

Both follow from the log: ``store.txn`` says what was written, ``watch.listed`` and ``watch.events`` say which
revisions an actor had seen. An actor decides on what it knows; what it does not know yet is what races are
made of.
"""

from __future__ import annotations

import bisect
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

from kemu.emulated.objects import resources
from kemu.emulated.objects.amounts import requests
from kemu.emulated.objects.pods import pod_phases
from kemu.lab.checks.history.claims import DeviceID, text_of
from kemu.messages.k8s import core_v1_pb2, resource_v1_pb2
from kemu.runtime.runlog.events import ApiRequest, Transaction, WatchDelivered, WatchListed, WritesAcknowledged
from kemu.runtime.runlog.frames import Entry
from kemu.runtime.words import listed, short

PODS, NODES, CLAIMS = "/registry/pods/", "/registry/nodes/", "/registry/resourceclaims/"
_SLICES = "/registry/resourceslices/"
NEVER = 1 << 62


class Moment(NamedTuple):
    """A place in the log; ``place`` at ``NEVER`` is the end of that instant."""

    time_ns: int
    place: int


@dataclass(frozen=True, eq=False)
class Change:
    """One key, written once."""

    revision: int
    at: Moment
    key: str
    value: bytes | None
    """None: deleted."""
    before: Change | None
    """What the key was before."""

    @cached_property
    def pod(self) -> PodState | None:
        """None where it is no pod, or gone."""
        return PodState.read(self.value) if self.value is not None and self.key.startswith(PODS) else None

    @cached_property
    def node(self) -> NodeState | None:
        return NodeState.read(self.value) if self.value is not None and self.key.startswith(NODES) else None

    @cached_property
    def claim(self) -> ClaimState | None:
        """None where it is no claim of devices, or gone."""
        return ClaimState.read(self.value) if self.value is not None and self.key.startswith(CLAIMS) else None

    @property
    def given(self) -> frozenset[DeviceID]:
        """The devices that a claim was given by it."""
        claim, before = self.claim, self.before.claim if self.before is not None else None
        return claim.devices - (before.devices if before is not None else frozenset()) if claim else frozenset()

    @property
    def name(self) -> str:
        """As people write it: without prefix and the namespace ``default``."""
        return short(self.key.split("/", 3)[-1])


@dataclass(frozen=True)
class PodState:
    """What decisions depend on."""

    node: str
    nominated: str
    is_terminating: bool
    phase: str
    reason: str
    requests: dict[str, int]
    """cpu in millicores, everything else in whole units."""
    uid: str

    @staticmethod
    def read(value: bytes) -> PodState:
        pod = core_v1_pb2.Pod.FromString(value)
        return PodState(
            pod.spec.nodeName,
            pod.status.nominatedNodeName,
            pod.metadata.HasField("deletionTimestamp"),
            pod.status.phase or "Pending",
            pod.status.reason,
            requests.pod_requests_on_node(pod),
            pod.metadata.uid,
        )

    @property
    def is_over(self) -> bool:
        return self.phase in pod_phases.TERMINAL


@dataclass(frozen=True)
class NodeState:
    allocatable: dict[str, int]
    taints: tuple[tuple[str, str], ...]
    unready: bool
    unschedulable: bool

    @staticmethod
    def read(value: bytes) -> NodeState:
        node = core_v1_pb2.Node.FromString(value)
        return NodeState(
            requests.resource_list(node.status.allocatable),
            tuple((taint.key, taint.effect) for taint in node.spec.taints),
            any(one.type == "Ready" and one.status != "True" for one in node.status.conditions),
            node.spec.unschedulable,
        )


@dataclass(frozen=True)
class ClaimState:
    """Of a claim of devices."""

    devices: frozenset[DeviceID]
    """Allocated, as a whole or a share of each."""
    pods: tuple[tuple[str, str], ...]
    """For which it is reserved: ``namespace/name`` and UID."""

    @staticmethod
    def read(value: bytes) -> ClaimState:
        claim = resource_v1_pb2.ResourceClaim.FromString(value)
        results = claim.status.allocation.devices.results
        devices = ((one.driver, one.pool, one.device) for one in results if not one.adminAccess)
        namespace = claim.metadata.namespace
        pods = ((f"{namespace}/{one.name}", one.uid) for one in claim.status.reservedFor if one.resource == "pods")
        return ClaimState(frozenset(devices), tuple(pods))


class Knowledge:
    """Knowledge of one run."""

    def __init__(self, events: Sequence[Entry]) -> None:
        self.changes: list[Change] = []
        self.by_revision: dict[int, list[Change]] = {}
        self.of_key: dict[str, list[Change]] = {}
        self._writers: dict[int, str] = {}
        self._heard: dict[tuple[str, int], Moment] = {}
        """By actor and revision: the event of a watch that told it."""
        self._lists: dict[tuple[str, str], list[tuple[Moment, int]]] = {}
        """By actor and resource: what it has listed."""
        self._only: dict[tuple[str, str], str] = {}
        """By actor and resource: the one node that it asks for, or whose pods."""
        self._told: dict[tuple[str, str], list[tuple[Moment, Change, str]]] = {}
        """By actor and key, with the type of the event."""
        for index, (time_ns, actor, _, event) in enumerate(events):
            at = Moment(time_ns, index)
            if isinstance(event, Transaction):
                self._written(at, event)
            elif isinstance(event, WatchDelivered):
                self._told_of(at, actor, event)
            elif isinstance(event, WatchListed):
                plural = event.resource.partition(".")[0]
                self._lists.setdefault((actor, plural), []).append((at, event.rev))
                self._only[actor, plural] = _one_node(event.field_selector)
            elif isinstance(event, WritesAcknowledged):
                for _took, revision, *_ in event.acks:
                    self._writers.setdefault(revision, actor)
            elif isinstance(event, ApiRequest):
                self._writers[event.rev] = event.by

    def _written(self, at: Moment, event: Transaction) -> None:
        for op, key, value, *_ in event.changes:
            history = self.of_key.setdefault(key, [])
            change = Change(event.rev, at, key, value if op == 0 else None, history[-1] if history else None)
            history.append(change)
            self.changes.append(change)
            self.by_revision.setdefault(change.revision, []).append(change)

    def _told_of(self, at: Moment, actor: str, event: WatchDelivered) -> None:
        plural = event.watch.partition("#")[0]
        for revision, type_ in zip(event.revs, event.types, strict=True):
            if type_ == "B":
                continue
            self._heard.setdefault((actor, revision), at)
            for change in self.by_revision.get(revision, ()):
                if resources.plural_of(change.key) == plural:
                    self._told.setdefault((actor, change.key), []).append((at, change, type_))

    def writer(self, revision: int) -> str:
        """Who asked for it; empty: it was not said."""
        return self._writers.get(revision, "")

    def watches(self, actor: str, change: Change) -> bool:
        """Whether the actor asks for such news."""
        resource = (actor, resources.plural_of(change.key))
        if resource not in self._lists:
            return False
        only = self._only[resource]
        if not only:
            return True
        pods = [one.pod for one in (change, change.before) if one is not None and one.pod is not None]
        return change.key == NODES + only or any(pod.node == only for pod in pods)

    def heard(self, actor: str, revision: int) -> Moment | None:
        """When a watch told it of that revision."""
        return self._heard.get((actor, revision))

    def truth(self, key: str, at: Moment) -> Change | None:
        """The latest change of the key until then, inclusive."""
        history = self.of_key.get(key, [])
        index = bisect.bisect_right(history, at, key=lambda change: change.at)
        return history[index - 1] if index else None

    def known(self, actor: str, key: str, at: Moment) -> Change | None:
        """The latest change of the key that the actor knew then; None: it knew no such object."""
        listed = [revision for when, revision in self._lists.get((actor, resources.plural_of(key)), ()) if when <= at]
        told = [change for when, change, _ in self._told.get((actor, key), ()) if when <= at]
        latest = told[-1] if told else None
        if listed:
            history = self.of_key.get(key, [])
            index = bisect.bisect_right(history, listed[-1], key=lambda change: change.revision)
            of_list = history[index - 1] if index else None
            if latest is None or (of_list is not None and of_list.revision > latest.revision):
                latest = of_list
        return latest

    def unheard(self, actor: str, key: str, decided: Moment, until: Moment) -> list[Change]:
        """Changes of the key until ``until`` that the actor did not know when it decided."""
        known = self.known(actor, key, decided)
        floor = known.revision if known is not None else 0
        found = [one for one in self.of_key.get(key, []) if one.revision > floor and one.at <= until]
        told = [type_ for when, _, type_ in self._told.get((actor, key), ()) if when <= decided]
        if told and told[-1] == "D":
            # It has left what the actor asks for: of that object nothing more comes.
            starts = [i for i, one in enumerate(found) if one.before is None or one.before.value is None]
            found = found[starts[0] :] if starts else []
        return [one for one in found if self.watches(actor, one)]

    def compete(self, one: DeviceID, other: DeviceID) -> bool:
        """Whether they are one device, or parts of one: what both consume counters of."""
        return one == other or (one[:2] == other[:2] and bool(self._counters[one] & self._counters[other]))

    @cached_property
    def _counters(self) -> dict[DeviceID, frozenset[str]]:
        """Which sets of counters each device consumes, as far as it does."""
        found: dict[DeviceID, frozenset[str]] = defaultdict(frozenset)
        for change in self.changes:
            if change.key.startswith(_SLICES) and change.value is not None:
                spec = resource_v1_pb2.ResourceSlice.FromString(change.value).spec
                for device in spec.devices:
                    key = spec.driver, spec.pool.name, device.name
                    found[key] = frozenset(one.counterSet for one in device.consumesCounters)
        return found

    def pods(self) -> list[str]:
        """The keys of all pods that there ever were."""
        return [key for key in self.of_key if key.startswith(PODS)]

    def on_node(self, actor: str, node: str, at: Moment) -> list[tuple[str, PodState]]:
        """The pods that the actor counts there: by key, with what it knows of them. ``actor`` empty: the truth."""
        found = []
        for key in self.pods():
            change = self.known(actor, key, at) if actor else self.truth(key, at)
            pod = change.pod if change is not None else None
            if pod is not None and pod.node == node and not pod.is_over:
                found.append((key, pod))
        return found


def _one_node(field_selector: str) -> str:
    """The node in the selectors that kubelets use."""
    field, _, value = field_selector.partition("=")
    return value if field in ("metadata.name", "spec.nodeName") and "," not in value else ""


def told(change: Change) -> str:
    """What became of the object, as a clause without a subject: ``was bound to node-1``; empty: nothing that counts."""
    before = change.before
    if change.value is None:
        return "was removed"
    if change.key.startswith(PODS):
        return _told_of_pod(before.pod if before is not None else None, change.pod)
    if change.key.startswith(NODES):
        return _told_of_node(before.node if before is not None else None, change.node)
    if change.given:
        return f"was given {listed(map(text_of, sorted(change.given)))}"
    return "was created" if before is None or before.value is None else "was changed"


def _told_of_pod(before: PodState | None, now: PodState | None) -> str:
    assert now is not None
    if before is None or before.uid != now.uid:
        return f"was created on {now.node}" if now.node else "was created"
    if now.node != before.node:
        again = " again" if before.node else ""
        return f"was bound to {now.node}{again}" if now.node else "lost its binding"
    if now.is_terminating and not before.is_terminating:
        return "was deleted and is terminating"
    if now.phase != before.phase:
        if now.is_over:
            return f"ended ({now.reason or now.phase})"
        return "runs" if now.phase == "Running" else f"is {now.phase}"
    if now.nominated != before.nominated:
        return f"was nominated to {now.nominated}" if now.nominated else "lost its nomination"
    if now.requests != before.requests:
        return "was resized"
    return ""


def _told_of_node(before: NodeState | None, now: NodeState | None) -> str:
    assert now is not None
    if before is None:
        return "joined"
    for taint in now.taints:
        if taint not in before.taints:
            return f"was tainted {taint[0].removeprefix('node.kubernetes.io/')}:{taint[1]}"
    if len(now.taints) < len(before.taints):
        return "lost a taint"
    if now.unschedulable != before.unschedulable:
        return "was cordoned" if now.unschedulable else "was uncordoned"
    if now.unready != before.unready:
        return "became unready" if now.unready else "became ready"
    if now.allocatable != before.allocatable:
        return "changed its allocatable"
    return ""
