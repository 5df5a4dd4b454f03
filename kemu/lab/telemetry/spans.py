"""What a span is, and how its id follows from what it stands for.

Each pod of a run has a trace, whose id follows from the run and the pod's UID (``runs``); ids of spans are hashes of
what they stand for. So a span can link to another that is not made yet, and a second export of a run gives the same
spans again.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, field
from typing import Literal

AttributeValue = str | int | float | bool | list[str]

OPEN = "kemu.open"
"""Attribute of a span whose end the run did not see."""
REASON = "kemu.reason"
NODE = "k8s.node.name"
PRIORITY = "kemu.priority"
FAILED = "kemu.failed"
"""Attribute of every span with an error: not all storages of collectors can search for the status."""
ERROR_TYPE = "error.type"
CONTAINER_NAME = "k8s.container.name"
EXIT_CODE = "process.exit.code"
POD_PHASE = "k8s.pod.status.phase"
POD_REASON = "k8s.pod.status.reason"
TERMINATED_REASON = "k8s.container.status.last_terminated_reason"
IMAGE_NAME = "container.image.name"
OWNER_NAMES = {
    "ReplicaSet": "k8s.replicaset.name", "StatefulSet": "k8s.statefulset.name", "DaemonSet": "k8s.daemonset.name",
}  # fmt: skip
"""These and ``NODE`` are names of OpenTelemetry's semantic conventions; what begins with ``kemu.`` is kemu's own."""

PREEMPTED_TYPE = "Preempted"
EVICTED_TYPE = "Evicted"
"""``error.type`` of what befalls a pod, as Kubernetes' reasons read."""

Side = Literal["internal", "client", "server"]
"""Where a span stands in a call, as OpenTelemetry's SpanKind has it."""

ROOT = "pod"
ADMISSION = "admission"
QUEUE = "queue"
ATTEMPT = "attempt"
BIND = "bind"
RUNNING = "running"
CONTAINER = "container"
BACK_OFF = "restart back-off"
REFUSED = "refused"
NOMINATION = "nomination"
PREEMPTED = "preempted"
REPLACED = "replaced"
WON = "won"
OOM_KILL = "OOM kill"
PROBE = "probe"
KILLED = "container killed"
RESIZE = "resize"


@dataclass(frozen=True, slots=True)
class Link:
    """From one span to another, mostly of another pod's trace."""

    trace_id: int
    span_id: int
    relation: str
    """Reads like ``preempted``, ``preempted by``, ``lost to``, ``won against``, ``replaces``, ``replaced by``."""
    target: str
    """Whom: a pod ``namespace/name``, or an actor where the link stays within the trace."""
    pod: str
    """Whose trace it leads to, ``namespace/name``."""


@dataclass(frozen=True, slots=True)
class SpanEvent:
    """A fault that struck within a span."""

    time_ns: int
    """Virtual; in a span, Unix."""
    name: str
    """What it was: ``partition towards apiserver/0``."""
    fault: str
    """Its id."""


@dataclass(slots=True)
class Span:
    """One span. Times are Unix nanoseconds, in virtual time."""

    trace_id: int
    """128 bits, never 0."""
    span_id: int
    """64 bits, never 0."""
    parent_id: int | None
    """None: the root of its trace."""
    kind: str
    """What sort of thing it stands for: one of the constants of this module, or the name itself."""
    name: str
    """One of few: what differs from pod to pod stands in attributes."""
    pod: str
    """``namespace/name``."""
    uid: str
    service: str
    instance: str
    """The actor."""
    start_ns: int
    end_ns: int
    attributes: dict[str, AttributeValue] = field(default_factory=dict)
    links: tuple[Link, ...] = ()
    events: tuple[SpanEvent, ...] = ()
    ok: bool = True
    """False: the pod lost what it had or was promised, or what was tried failed. An attempt that finds no node is no
    error: waiting is what the queue is for. A pod that waits in vain until it goes or the run ends is one."""
    message: str = ""
    """Why it is not ok."""
    side: Side = "internal"


def span_id(trace_id: int, kind: str, sequence: str = "") -> int:
    """``sequence`` tells apart what can happen to a pod more than once."""
    return int.from_bytes(hashlib.sha256(f"{trace_id:032x}\0{kind}\0{sequence}".encode()).digest()[:8], "big") or 1


def root_id(trace_id: int) -> int:
    return span_id(trace_id, ROOT)


def service_of(actor: str) -> str:
    """``user``, ``apiserver``, ``kubelet``, ``scheduler <name>``: a service for each family, not for each actor."""
    family, _, rest = actor.partition("/")
    if family == "scheduler":
        return f"scheduler {rest.rpartition('/')[0] or rest}"
    return family or "user"
