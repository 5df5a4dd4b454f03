"""What the log of a run says that bears on causes: versions of objects, lives of pods, what kubelets and servers did.

Role: read once, beside the history; :mod:`acts` finds in it what clients did, :mod:`blame` what followed from what.
"""

from __future__ import annotations

import contextlib
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml
from google.protobuf.message import Message

from kemu.emulated.objects import meta, resources
from kemu.lab.checks.history import History, custom_objects, parsed
from kemu.messages.k8s import core_v1_pb2
from kemu.messages.k8s.objects import KubernetesObject
from kemu.runtime.runlog import folders
from kemu.runtime.runlog.events import (
    ApiRequest,
    Autoscaled,
    ContainerRestarting,
    DrainStepped,
    Event,
    GetAnswered,
    HookFailed,
    ImagePullFailed,
    ListAnswered,
    MachineOff,
    MountTimedOut,
    NodeTainted,
    OomKilled,
    PodEvicting,
    PressureChanged,
    RequestRefused,
    RequestThrottled,
    Transaction,
    UserActed,
    UserRefused,
    WatchClosed,
    WatchDelivered,
    WatchListed,
    WritesAcknowledged,
    kinds,
    typed,
)
from kemu.runtime.runlog.frames import FILE_NAME, Reader

OF_CHECKS = kinds(WatchDelivered, WatchListed, WatchClosed, WritesAcknowledged, GetAnswered, ListAnswered)
"""Say nothing of causes, and are most of a log."""
_KEPT = kinds(
    ApiRequest, Autoscaled, ContainerRestarting, DrainStepped, HookFailed, ImagePullFailed, MachineOff, MountTimedOut,
    NodeTainted, OomKilled, PodEvicting, PressureChanged, RequestRefused, RequestThrottled, UserActed, UserRefused,
)  # fmt: skip
_PASSED_OVER = frozenset(
    [
        "leases",
        "events",
        "endpoints",
        "endpointslices",
        "csinodes",
        "serviceaccounts",
        "flowschemas",
        "volumeattachments",
        "prioritylevelconfigurations",
        "apiservices",
        "certificatesigningrequests",
        "resourceslices",
        "componentstatuses",
        "pods",
    ]
)
"""Resources whose objects the cluster writes by itself."""
SLOW_NS = 1_000_000_000
"""From this on an answer of an API server is slow."""


@dataclass(slots=True)
class Version:
    """What clients and controllers want of an object: its versions differ in more than their status."""

    time_ns: int
    message: Any
    """None: it is gone."""
    print: bytes


@dataclass(slots=True)
class Life:
    """A pod beyond its history."""

    pod: core_v1_pb2.Pod
    """As it was created."""
    unready: list[tuple[int, int, str]] = field(default_factory=list)
    """From when to when it ran on no ready containers although it had a node, and why, as its status said."""
    since_ns: int = -1
    """Of the present such time; -1: it is ready, or has no node."""
    reason: str = ""
    was_ready: bool = False


class Evidence:
    """Feed it every event in order, after or in place of the history, which it feeds."""

    def __init__(self) -> None:
        self.history = History()
        self.events: dict[type[Event], list[tuple[int, str, Any]]] = defaultdict(list)
        """When, by whom, what; those kinds that bear on causes, without fast requests."""
        self.versions: dict[str, list[Version]] = {}
        """By key, of objects that are no pods."""
        self.lives: dict[str, Life] = {}
        """By UID."""
        self.document: Mapping[str, Any] = {}
        """The scenario, where it is known."""

    def feed(self, time_ns: int, actor: str, kind: str, data: Mapping[str, Any]) -> None:
        """Has the signature of a ``LogSink``."""
        self.history.feed(time_ns, actor, kind, data)
        if kind == Transaction.KIND:
            written = data if isinstance(data, Transaction) else typed(kind, data)
            assert isinstance(written, Transaction)
            self._written(time_ns, written)
        elif kind in _KEPT:
            event = data if isinstance(data, Event) else typed(kind, data)
            if isinstance(event, ApiRequest) and time_ns - event.start < SLOW_NS:
                return
            self.events[type(event)].append((time_ns, actor, event))

    @property
    def end_ns(self) -> int:
        return self.history.ended_ns if self.history.ended_ns is not None else self.history.now_ns

    def _written(self, time_ns: int, written: Transaction) -> None:
        for _what, key, pod in self.history.pods_changed:
            if pod is None:
                self._pod_gone(time_ns, key)
            else:
                self._pod(time_ns, pod)
        for op, key, value, *_ in written.changes:
            plural = key[custom_objects.BEGIN : key.find("/", custom_objects.BEGIN)]
            if plural in _PASSED_OVER or custom_objects.is_custom(key):
                continue
            known = self.versions.get(key)
            if op:
                self.versions.setdefault(key, []).append(Version(time_ns, None, b""))
                continue
            if plural not in resources.MESSAGES:
                continue
            message = parsed.parser(plural)(value)
            bytes_ = wanted(message)
            if not known or known[-1].print != bytes_:
                self.versions.setdefault(key, []).append(Version(time_ns, message, bytes_))

    def _pod(self, time_ns: int, pod: core_v1_pb2.Pod) -> None:
        uid = pod.metadata.uid
        life = self.lives.get(uid)
        if life is None:
            life = self.lives[uid] = Life(pod)
        phase = pod.status.phase
        ends = pod.metadata.HasField("deletionTimestamp") or phase in ("Succeeded", "Failed")
        if ends or not pod.spec.nodeName or meta.is_ready(pod):
            self._close(life, time_ns)
            life.was_ready = life.was_ready or meta.is_ready(pod)
            return
        reason = _why_unready(pod)
        if life.since_ns < 0:
            life.since_ns, life.reason = time_ns, reason
        elif reason and reason != life.reason and reason != "CrashLoopBackOff":
            if life.reason:
                self._close(life, time_ns)
                life.since_ns = time_ns
            life.reason = reason
        elif reason and not life.reason:
            life.reason = reason

    def _close(self, life: Life, time_ns: int) -> None:
        if life.since_ns >= 0 and time_ns > life.since_ns:
            life.unready.append((life.since_ns, time_ns, life.reason))
        life.since_ns = -1

    def _pod_gone(self, time_ns: int, key: str) -> None:
        for uid in self.history.names.get(key.removeprefix("/registry/pods/"), ())[-1:]:
            if uid in self.lives:
                self._close(self.lives[uid], time_ns)

    def over(self) -> None:
        """The log is read: what lasts, lasts to its end."""
        for life in self.lives.values():
            self._close(life, self.end_ns)

    @contextlib.contextmanager
    def so_far(self) -> Iterator[None]:
        """The log is not over; meanwhile it is as if it were: for the causes of a run that goes on."""
        open_ = [(one, one.since_ns, len(one.unready)) for one in self.lives.values() if one.since_ns >= 0]
        self.over()
        try:
            yield
        finally:
            for life, since_ns, count in open_:
                life.since_ns = since_ns
                del life.unready[count:]

    def at(self, key: str, time_ns: int) -> KubernetesObject | None:
        """The object as it was then; None: there was none."""
        found = None
        for version in self.versions.get(key, ()):
            if version.time_ns > time_ns:
                break
            found = version.message
        return found


def _why_unready(pod: core_v1_pb2.Pod) -> str:
    """The word of its status that says most."""
    if pod.status.reason:
        return pod.status.reason
    for status in (*pod.status.initContainerStatuses, *pod.status.containerStatuses):
        waiting, ended = status.state.waiting.reason, status.lastState.terminated.reason
        if waiting and waiting not in ("ContainerCreating", "PodInitializing"):
            return "ImagePull" if waiting in ("ErrImagePull", "ImagePullBackOff") else ended or waiting
        if status.state.HasField("terminated"):
            return status.state.terminated.reason or "Error"
        if ended and not status.ready:
            return ended
    return "NotReady" if pod.status.phase == "Running" else ""


def wanted(message: Message) -> bytes:
    """What of an object somebody wants: without its status and what is counted of it."""
    kept = meta.copied(message)
    if "status" in message.DESCRIPTOR.fields_by_name:
        kept.ClearField("status")
    labels = sorted(kept.metadata.labels.items())  # type: ignore[attr-defined]
    uid = kept.metadata.uid  # type: ignore[attr-defined]
    ends = kept.metadata.HasField("deletionTimestamp")  # type: ignore[attr-defined]
    kept.ClearField("metadata")
    return b"%s|%s|%d|" % (repr(labels).encode(), uid.encode(), ends) + kept.SerializeToString(deterministic=True)


def read(folder: Path, also: Callable[..., None] | None = None) -> Evidence:
    """Of the run in a folder. Raises RunLogError."""
    evidence = Evidence()
    with Reader(folder / FILE_NAME) as reader:
        for event in reader.but(*OF_CHECKS):
            evidence.feed(*event)
    evidence.over()
    evidence.document = document(folder / folders.SCENARIO_FILE)
    return evidence


def document(path: Path) -> Mapping[str, Any]:
    """The ``spec`` of a scenario; empty where there is none."""
    try:
        found = yaml.load(path.read_text(), Loader=getattr(yaml, "CSafeLoader", yaml.SafeLoader))
    except (OSError, yaml.YAMLError):
        return {}
    spec = found.get("spec") if isinstance(found, dict) else None
    return spec if isinstance(spec, dict) else {}


def names(items: Sequence[Mapping[str, Any]]) -> list[str]:
    return [str(one.get("name", "")) for one in items]
