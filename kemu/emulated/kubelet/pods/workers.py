"""The worker of one pod: its state, its containers, and the times that matter.

    WAITING ──► ACTIVE ──► STOPPING ──► ENDED

:mod:`kemu.emulated.kubelet.sync.pod_workers` moves workers, :mod:`kemu.emulated.kubelet.sync.starts` and
:mod:`kemu.emulated.kubelet.sync.terminations` move their containers (:mod:`kemu.emulated.kubelet.pods.containers`), and
:mod:`kemu.emulated.kubelet.sync.status_managers` writes their statuses to the API server.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from sys import intern
from typing import Any

from kemu.emulated.kubelet.pods import claims, containers, mirrors, statuses
from kemu.emulated.objects.wire import shared_objects
from kemu.messages.k8s import core_v1_pb2
from kemu.runtime.env import Timer
from kemu.runtime.runlog.events import OnNode

_hold = shared_objects.OBJECTS.hold

WAITING = "waiting"
"""Not yet admitted."""
ACTIVE = "active"
"""Admitted: its containers start, run, and start again."""
STOPPING = "stopping"
"""Its containers were asked to stop, within the grace period."""
ENDED = "ended"
"""No containers; nothing of the node is held. Refused, finished, or to be deleted."""


class Worker:
    """One pod. Times are in ns since the start of the run."""

    __slots__ = (
        "begun_ns",
        "busy",
        "claim",
        "containers",
        "deadline_s",
        "deadline_timer",
        "deleting",
        "dirty",
        "ephemeral",
        "failure",
        "grace_s",
        "has_run",
        "has_sandbox",
        "held",
        "is_starting",
        "key",
        "left",
        "mains_to_start",
        "mirror",
        "on_gone",
        "passed",
        "phase",
        "pod",
        "pull",
        "refusal",
        "removed",
        "resize",
        "seen_ns",
        "start_ns",
        "state",
        "status",
        "stop_ns",
        "told_to_go",
        "uid",
        "untold",
        "urged_ns",
        "writing",
    )

    pod: core_v1_pb2.Pod
    """The newest that is known of the object."""
    held: shared_objects.Held
    """The same at rest."""

    def __init__(self, pod: core_v1_pb2.Pod, seen_ns: int) -> None:
        metadata = pod.metadata
        self.pod = pod
        # The scheduler holds the same strings.
        self.uid: str = intern(metadata.uid)
        self.key = intern(f"{metadata.namespace}/{metadata.name}")
        self.mirror: mirrors.Mirror | None = None
        """Mirror of a static pod: by what the API server knows it."""
        self.state = WAITING
        self.containers: list[containers.Container] = []
        """From its admission on: init containers in their order, then the others."""
        self.ephemeral: Sequence[containers.Container] = ()
        """Those that were added to it."""
        self.busy: containers.Container | None = None
        """The one that is being started: one after the other, as in the kubelet."""
        self.pull: Timer | None = None
        """The pull of its image, which can be cancelled."""
        self.has_sandbox = False
        """The pod itself is set up; its start time is counted once."""
        self.passed = 0
        """How many of the first containers need no look when the next one is to be started."""
        self.mains_to_start = 0
        """How many of the main containers have not started yet."""
        self.has_run = False
        """All of them have."""
        self.claim: claims.Claim | None = None
        """While the pod counts on its node."""
        self.refusal: statuses.Refusal | None = None
        """Why it was not admitted."""
        self.failure: statuses.Failure | None = None
        """Why the kubelet kills it."""
        self.on_gone: list[Callable[[], None]] = []
        """To be told when its containers are gone."""
        self.resize: Any = None
        """Resize of :mod:`kemu.emulated.kubelet.resizes.allocations`. None: it was not resized."""
        self.phase = ""
        """In which it finishes; empty as long as that is open."""
        self.told_to_go = False
        """STOPPING: it is to go. Otherwise it has finished, and only sidecars are left."""
        self.seen_ns = seen_ns
        """When the kubelet heard of it."""
        self.start_ns = seen_ns
        """When it was admitted."""
        self.begun_ns = seen_ns
        """From when the time that its start takes is counted."""
        self.deadline_s = 0
        """Its activeDeadlineSeconds; 0: none."""
        self.deadline_timer: Timer | None = None
        self.stop_ns = 0
        """When its containers had to stop."""
        self.left = 0
        """STOPPING: the containers after so many have stopped."""
        self.urged_ns = 0
        """When that was made more urgent the last time; from then on the grace period counts."""
        self.grace_s = 0
        """How long they have for it."""
        self.is_starting = False
        """The status before any container started is to be written."""
        self.dirty = False
        """The status is to be written."""
        self.status = b""
        """As this kubelet wrote it last, or tried to: a serialised Pod, of which there is but the status, without the
        conditions of others."""
        self.untold = True
        """The API server may have another."""
        self.deleting = False
        """The object is to be removed for good."""
        self.writing = False
        """A task is at it."""
        self.removed = False
        """The API server does not know it any more."""

    def __getattr__(self, name: str) -> core_v1_pb2.Pod:
        """:attr:`pod`, after :meth:`rest`."""
        if name != "pod":
            raise AttributeError(name)
        held = self.held  # Held.get, inlined
        return held.obj or held.get()  # type: ignore[return-value]  # what it was made of

    def rest(self) -> None:
        """There is nothing to do about it for now: once it is no news any more, its bytes are enough."""
        try:
            pod = _POD.__get__(self)
        except AttributeError:
            return  # it rests
        self.held = _hold(pod)
        del self.pod

    @property
    def named(self) -> OnNode:
        """As events name it."""
        return {"pod": self.key, "uid": self.uid, "node": self.pod.spec.nodeName}

    @property
    def is_evicted(self) -> bool:
        """The kubelet has killed it to have its room: then its containers are removed as soon as they have ended."""
        return self.failure is not None and self.failure.makes_room

    @property
    def has_several(self) -> bool:
        """Whether its containers have to be told apart."""
        return len(self.containers) > 1


_POD: Any = Worker.__dict__["pod"]
"""The attribute itself, which knows nothing of ``__getattr__``."""
