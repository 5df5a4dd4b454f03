"""The state of one container of a pod, and whether it is restarted after an exit.

    IDLE ──► PULLING ──► STARTING ──► RUNNING ──► DONE
     ▲          │                      │   │       ▲
     │          ▼                      │   ▼       │
     ├────── UNPULLED                  │ STOPPING ─┘
     ├──────────── BACKING_OFF ◄───────┤
     └──────────── UNNOTICED ◄─────────┘

An IDLE container starts when its turn comes: :mod:`kemu.emulated.kubelet.sync.starts` moves containers up to RUNNING
and back, :mod:`kemu.emulated.kubelet.sync.terminations` from RUNNING to the end. Mirrors ``ContainerShouldRestart`` of
``pkg/api/v1/pod``.
"""

from __future__ import annotations

from dataclasses import dataclass
from sys import intern

from kemu.emulated.kubelet.programs.shells import Outcome
from kemu.messages.k8s import core_v1_pb2
from kemu.runtime.env import Timer

MAIN = "main"
INIT = "init"
"""Runs to its end before the next one starts."""
SIDECAR = "sidecar"
"""An init container with restartPolicy Always: the next one starts when it has started, and it runs on."""
EPHEMERAL = "ephemeral"
"""Was added to a pod that runs, and counts for nothing of it."""

IDLE = "idle"
PULLING = "pulling"
UNPULLED = "unpulled"
"""Its image could not be pulled; tried again after a pause."""
STARTING = "starting"
RUNNING = "running"
BACKING_OFF = "backing off"
"""Has exited and starts again after a pause."""
UNNOTICED = "unnoticed"
"""Was killed by the kernel, and starts again without a pause as soon as the kubelet has noticed."""
STOPPING = "stopping"
"""Shall stop, or has been asked to."""
DONE = "done"
"""Does not run and will not start again."""
UP = frozenset((RUNNING, STOPPING))
"""States in which it runs."""

COMPLETED, ERROR, OOM_KILLED = "Completed", "Error", "OOMKilled"
KILLED = 137
"""The exit code after SIGKILL."""
RESTARTING_ALL = "RestartingAllContainers"
"""Why a container is gone that was removed because another one's exit restarts all (RestartAllContainers)."""
REMOVED = "The container is removed because RestartAllContainers in place"


@dataclass(frozen=True, slots=True)
class Exit:
    """How a container ended."""

    code: int
    started_unix_ns: int
    finished_unix_ns: int
    reason: str = ""
    """Empty: as the exit code says."""

    @property
    def why(self) -> str:
        return self.reason or (ERROR if self.code else COMPLETED)


class Container:
    """Times are in ns since the start of the run."""

    __slots__ = (
        "asked_ns",
        "backoff_s",
        "before",
        "course",
        "crashes",
        "created_ns",
        "forced",
        "has_started",
        "holds_start",
        "hook",
        "image",
        "index",
        "is_hooked",
        "is_probed",
        "is_replaced",
        "is_unready",
        "kill_ns",
        "kind",
        "last",
        "message",
        "name",
        "pull_policy",
        "pulls_failed",
        "resets",
        "restarts",
        "restarts_all",
        "started_ns",
        "state",
        "timer",
        "waiting",
    )

    def __init__(
        self, kind: str, index: int, spec: core_v1_pb2.Container | core_v1_pb2.EphemeralContainerCommon
    ) -> None:
        """``spec``: of the container; it is not kept. ``index``: its place in the list that it stands in."""
        self.kind = kind
        self.index = index
        self.name: str = spec.name
        self.image: str = intern(spec.image)
        self.pull_policy: str = intern(spec.imagePullPolicy)
        self.is_probed = kind != INIT and (
            spec.HasField("readinessProbe") or spec.HasField("livenessProbe") or spec.HasField("startupProbe")
        )
        """Its probes are kept by :mod:`kemu.emulated.kubelet.probes.probers`."""
        self.is_hooked = spec.HasField("lifecycle") and spec.lifecycle.HasField("postStart")
        """It has a postStart hook."""
        self.restarts_all = len(spec.restartPolicyRules) > 0 and any(
            rule.action == "RestartAllContainers" for rule in spec.restartPolicyRules
        )
        """Some exits of it restart all containers of the pod …"""
        self.resets = False
        """… and it has just exited so."""
        self.holds_start = False
        """It has not passed its startup probe since it started."""
        self.is_unready = False
        """It has not passed its readiness probe; meaningful as long as it is up."""
        self.is_replaced = False
        """STOPPING: the kubelet has killed it to start it anew, whatever its exit code will be."""
        self.state = IDLE
        self.timer: Timer | None = None
        """At most one is set."""
        self.created_ns: int | None = None
        """Since when the container runtime knows it, running or not, started anew or not; None: it does not."""
        self.has_started = False
        self.started_ns = 0
        """When it started the last time."""
        self.course: Outcome | None = None
        """How long its program runs, and how it ends; None: as the pod says, or as ever."""
        self.hook: tuple[float, bool] | None = None
        """Once its preStop hook has been run: the seconds that it takes (perhaps infinity), and whether it fails."""
        self.restarts = 0
        self.last: Exit | None = None
        """How it ended the last time …"""
        self.before: Exit | None = None
        """… and the time before that."""
        self.crashes = 0
        """Restarts since it last ran long enough to be forgiven."""
        self.backoff_s = 0.0
        """BACKING_OFF: how long the pause is."""
        self.pulls_failed = 0
        self.waiting = ""
        """UNPULLED: the reason that its status gives …"""
        self.message = ""
        """… and the message."""
        self.asked_ns: int | None = None
        """STOPPING: when it was asked to stop (SIGTERM); None: not yet."""
        self.kill_ns = 0
        """STOPPING: when it is killed (SIGKILL), once it was asked to stop."""
        self.forced = False
        """It was killed before it would have stopped by itself."""

    @property
    def is_up(self) -> bool:
        return self.state in UP

    @property
    def is_ready(self) -> bool:
        """An init container that is no sidecar is ready when it has succeeded."""
        if self.kind == INIT:
            return self.has_succeeded
        return self.state in UP and not self.is_unready

    @property
    def has_succeeded(self) -> bool:
        """It has ended well, and for good."""
        return self.state == DONE and self.last is not None and self.last.code == 0


def of(pod: core_v1_pb2.Pod) -> list[Container]:
    """The init containers in their order, then the others."""
    spec = pod.spec
    found = []
    if len(spec.initContainers):
        for index, one in enumerate(spec.initContainers):
            found.append(Container(SIDECAR if one.restartPolicy == "Always" else INIT, index, one))
    for index, one in enumerate(spec.containers[:]):
        found.append(Container(MAIN, index, one))
    return found


def spec_of(pod: core_v1_pb2.Pod, container: Container) -> core_v1_pb2.Container:
    spec = pod.spec
    return (spec.containers if container.kind == MAIN else spec.initContainers)[container.index]


def restarts(pod: core_v1_pb2.Pod, container: Container, code: int) -> bool:
    """Whether it is started again after this exit. Its own rules go first, then its own policy, then the pod's."""
    if container.kind == SIDECAR:
        return True
    spec = spec_of(pod, container)
    if rule_of(spec, code):
        return True
    policy = spec.restartPolicy or pod.spec.restartPolicy
    if container.kind == INIT and policy == "Always":
        policy = "OnFailure"
    return policy == "Always" or (policy == "OnFailure" and code != 0)


def rule_of(spec: core_v1_pb2.Container, code: int) -> str:
    """The action of the rule for this exit (``FindMatchingContainerRestartRule``); "": there is none."""
    for rule in spec.restartPolicyRules:
        if (code in rule.exitCodes.values) == (rule.exitCodes.operator == "In"):
            return rule.action
    return ""


def restarts_all(pod: core_v1_pb2.Pod, container: Container, code: int) -> bool:
    """Whether this exit restarts all containers of the pod, in place."""
    return container.restarts_all and rule_of(spec_of(pod, container), code) == "RestartAllContainers"


def reset(container: Container) -> None:
    """It is removed as if it had never failed, and starts when its turn comes; one that has not run stays as it is."""
    container.resets = False
    if container.last is None:
        return
    container.last, container.before = Exit(KILLED, 0, 0, RESTARTING_ALL), None
    container.restarts += 1
    container.crashes = 0
    container.state = IDLE
