"""The kubelet's events: pods and their containers on a node, its resources, its shutdown."""

from __future__ import annotations

from typing import Any

from kemu.runtime.runlog.events.declared import Event, field
from kemu.runtime.runlog.events.subjects import OfPod, OfPodOnNode
from kemu.runtime.runlog.events.words import BAD, DECISION, EVICTED, GOOD, OUTCOME, USUAL, WRITE, Deed, Told


class AdmissionDecided(OfPodOnNode, kind="kubelet.admit", by="kubelet", on_page=True):
    """A pod was admitted, or rejected"""

    start: int
    ok: bool
    reason: str
    message: str


class ImagePulled(OfPodOnNode, kind="kubelet.pulled", by="kubelet"):
    """An image was pulled"""

    start: int
    container: str = ""
    image: str = ""


class ImagePullFailed(OfPodOnNode, kind="kubelet.pull_failed", by="kubelet", on_page=True):
    """The pull of an image failed and will be retried"""

    container: str
    image: str
    message: str
    delay_s: float


class PodRunning(OfPodOnNode, kind="kubelet.running", by="kubelet", on_page=True):
    """All main containers have started"""

    TOLD = Told("running", "runs on {node}", "pods run", GOOD)
    DEED = Deed("started {pod}", "runs {pod}", WRITE)

    start: int


class ContainerStarted(OfPodOnNode, kind="kubelet.started", by="kubelet", on_page=True):
    """A container of a pod with several has started"""

    container: str
    restarts: int


class ContainerExited(OfPodOnNode, kind="kubelet.exited", by="kubelet", on_page=True):
    """A container of a pod with several has ended"""

    start: int
    container: str
    exit_code: int


class ContainerFoundEnded(OfPodOnNode, kind="kubelet.found_ended", by="kubelet", on_page=True):
    """A container ran before the machine was off"""

    start: int
    exit_code: int
    container: str


class ContainerRestarting(OfPodOnNode, kind="kubelet.restarting", by="kubelet", on_page=True):
    """A container ended and will be started again"""

    TOLD = Told("restarting", "starts again", "pods start again", BAD)
    DEED = Deed("will restart {pod}", "restarts {pod}", USUAL)

    start: int
    exit_code: int
    delay_s: float
    container: str


class PodFinished(OfPodOnNode, kind="kubelet.finished", by="kubelet", on_page=True):
    """All containers have ended"""

    TOLD = Told("finished", "has ended: {phase}", "pods have ended")
    DEED = Deed("saw {pod} end ({phase})", "{pod} ended", WRITE)

    start: int
    phase: str
    exit_code: int


class ProbeChanged(OfPodOnNode, kind="kubelet.probed", by="kubelet", on_page=True):
    """The result of a probe has changed"""

    DEED = Deed("has the {probe} probe of {pod} {say}", "{probe} of {pod}: {say}", WRITE)

    container: str
    probe: str
    ok: bool


class ContainerKilling(OfPodOnNode, kind="kubelet.killing", by="kubelet", on_page=True):
    """A container is killed to start anew"""

    DEED = Deed("killed a container of {pod} (its {probe} probe)", "restarts {pod}", DECISION)

    container: str
    probe: str
    """The liveness or startup probe that failed; empty: a resize requires it."""
    grace_s: int


class HookFailed(OfPodOnNode, kind="kubelet.hook_failed", by="kubelet", on_page=True):
    """A postStart hook has failed, and its container is killed"""

    DEED = Deed("killed a container of {pod} (its postStart hook)", "restarts {pod}", DECISION)

    start: int
    container: str


class PodResized(OfPodOnNode, kind="kubelet.resize", by="kubelet", on_page=True):
    """The resize of a running pod goes on"""

    DEED = Deed("has the resize of {pod} {what}", "resize of {pod} {what}", DECISION)

    what: str
    """`started`, `deferred`, `completed` or `failed`."""
    message: str


class PodTerminating(OfPodOnNode, kind="kubelet.terminating", by="kubelet", on_page=True):
    """The containers of a pod are told to end"""

    DEED = Deed("began to end {pod}", "ends {pod}", WRITE)

    grace_s: int


class PodTerminated(OfPodOnNode, kind="kubelet.terminated", by="kubelet", on_page=True):
    """The containers of a pod that was told to end have ended"""

    TOLD = Told("terminated", "has left {node}", "pods have left their nodes")
    DEED = Deed("saw the containers of {pod} end", "{pod} is gone", WRITE)

    start: int
    forced: bool


class PodPreempting(OfPod, kind="kubelet.preempting", by="kubelet", on_page=True):
    """A pod is about to be killed to make room for another"""

    by: str
    by_uid: str
    node: str
    grace_s: int


class ShutdownBegun(Event, kind="kubelet.shutdown", by="kubelet", on_page=True):
    """The machine is about to shut down"""

    node: str
    requested_s: int
    """How long it waits at most."""


class ShutdownOver(Event, kind="kubelet.shutdown_over", by="kubelet", on_page=True):
    """The pods of a machine that shuts down have ended"""

    node: str
    start: int


class PodShutDown(OfPodOnNode, kind="kubelet.shutting_down", by="kubelet", on_page=True):
    """A pod is terminated because its machine shuts down"""

    DEED = Deed("ended {pod} for the shutdown", "ends {pod}", WRITE)

    priority: int
    """Of its group."""
    grace_s: int


class ThresholdsMet(Event, kind="kubelet.thresholds", by="kubelet"):
    """Other eviction thresholds are met than before"""

    node: str
    met: list[list[Any]]
    """Of each, `[signal, available, least, enough, grace_s]`: it is met while less than `least` is available, and then
    stays so up to `enough`."""


class PressureChanged(Event, kind="kubelet.pressure", by="kubelet", on_page=True):
    """The pressure conditions of the node have changed"""

    node: str
    conditions: list[str]
    signals: list[str]
    """Of the thresholds that are met."""


class OomKilled(OfPodOnNode, kind="kubelet.oom_killed", by="kubelet", on_page=True):
    """The kernel killed a container"""

    TOLD = Told("oom", "is out of memory", "pods are out of memory", BAD)
    DEED = Deed("lost a container of {pod} to the kernel (OOM)", "OOM kill of {pod}", OUTCOME)

    container: str = ""
    limit_bytes: int | None = None
    """If it passed its own limit."""


class PodEvicting(OfPodOnNode, kind="kubelet.evicting", by="kubelet", on_page=True):
    """The eviction manager kills a pod"""

    TOLD = EVICTED
    DEED = Deed("evicted {pod} ({signal})", "evicts {pod}", DECISION)

    signal: str
    grace_s: int
    message: str
    used: dict[str, int] | None = None
    """If the signal is one of memory or processes: by UID, what each pod on the node was measured to use."""


class GarbageCollected(Event, kind="kubelet.collected", by="kubelet", on_page=True):
    """The node has freed what is unused"""

    node: str
    what: str
    """`images` or `deadContainers`."""
    images: list[str] | None = None
    freed_bytes: int = field(key="bytes")


class VolumesMounted(OfPod, kind="kubelet.mounted", by="kubelet"):
    """All volumes of a pod are mounted"""

    start: int
    volumes: list[str]


class VolumeUnmounted(OfPod, kind="kubelet.unmounted", by="kubelet"):
    """A volume is unmounted"""

    volume: str


class MountTimedOut(OfPod, kind="kubelet.mount_timeout", by="kubelet"):
    """A pod has waited too long for its volumes, and goes on waiting"""

    volumes: list[str]
