"""What the kubelet keeps of one pod: the state in which it is, and the times that matter.

    WAITING ──► PULLING ──► STARTING ──► RUNNING ──► ENDED
                                          │  ▲ │       ▲
                                          ▼  │ ▼       │
                                 BACKING_OFF STOPPING ─┘

From every state but RUNNING a deletion leads to ENDED at once. :mod:`kemu.kubelet.pods` moves workers,
:mod:`kemu.kubelet.reports` tells the API server.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from kemu.kubelet import admission, statuses
from kemu.runtime.env import Timer

WAITING = "waiting"
"""Not yet admitted."""
PULLING = "pulling"
STARTING = "starting"
RUNNING = "running"
BACKING_OFF = "backing off"
"""The containers have exited and start again after a pause."""
STOPPING = "stopping"
"""The containers were asked to stop, within the grace period."""
ENDED = "ended"
"""No containers; nothing of the node is held. Refused, finished, or to be deleted."""


class Worker:
    """One pod. Times are in ns since the start of the run."""

    __slots__ = (
        "backoff_s",
        "claim",
        "crashes",
        "deadline_ns",
        "deleting",
        "dirty",
        "failure",
        "forced",
        "key",
        "last",
        "on_gone",
        "phase",
        "pod",
        "refusal",
        "removed",
        "restarts",
        "seen_ns",
        "start_ns",
        "started_ns",
        "state",
        "stop_ns",
        "timer",
        "uid",
        "writing",
    )

    def __init__(self, pod: Any, seen_ns: int) -> None:
        metadata = pod.metadata
        self.pod = pod
        """The newest that is known of the object."""
        self.uid: str = metadata.uid
        self.key = f"{metadata.namespace}/{metadata.name}"
        self.state = WAITING
        self.timer: Timer | None = None
        """At most one is set; none while nothing will happen to the pod by itself."""
        self.claim: admission.Claim | None = None
        """While the pod counts on its node."""
        self.refusal: admission.Decision | None = None
        """Why it was not admitted."""
        self.failure: statuses.Failure | None = None
        """Why the kubelet kills it."""
        self.on_gone: list[Callable[[], None]] = []
        """To be told when its containers are gone."""
        self.phase = ""
        """In which it finished; empty as long as it has not."""
        self.last: statuses.Exit | None = None
        """How the containers ended the last time."""
        self.restarts = 0
        self.backoff_s = 0.0
        """BACKING_OFF: how long the pause before this restart is."""
        self.crashes = 0
        """Restarts since the containers last ran long enough to be forgiven."""
        self.seen_ns = seen_ns
        """When the kubelet heard of it."""
        self.start_ns = seen_ns
        """When it was admitted."""
        self.started_ns = 0
        """When the containers started the last time; before that, when they will."""
        self.stop_ns = 0
        """When they were asked to stop."""
        self.deadline_ns = 0
        """When they are killed."""
        self.forced = False
        """They are killed before they would have stopped by themselves."""
        self.dirty = False
        """The status is to be written."""
        self.deleting = False
        """The object is to be removed for good."""
        self.writing = False
        """A task is at it."""
        self.removed = False
        """The API server does not know it any more."""
