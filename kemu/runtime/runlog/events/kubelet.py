"""The kubelet's events: pods and their containers on a node, its resources, its shutdown."""

from __future__ import annotations

from typing import Any

from kemu.runtime.runlog.events.declared import Event, field
from kemu.runtime.runlog.events.subjects import OfPod, OfPodOnNode


class AdmissionDecided(OfPodOnNode, kind="kubelet.admit", by="kubelet"):
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


class ImagePullFailed(OfPodOnNode, kind="kubelet.pull_failed", by="kubelet"):
    """The pull of an image failed and will be retried"""

    container: str
    image: str
    message: str
    delay_s: float


class PodRunning(OfPodOnNode, kind="kubelet.running", by="kubelet"):
    """All main containers have started"""

    start: int


class ContainerStarted(OfPodOnNode, kind="kubelet.started", by="kubelet"):
    """A container of a pod with several has started"""

    container: str
    restarts: int


class ContainerExited(OfPodOnNode, kind="kubelet.exited", by="kubelet"):
    """A container of a pod with several has ended"""

    start: int
    container: str
    exit_code: int


class ContainerFoundEnded(OfPodOnNode, kind="kubelet.found_ended", by="kubelet"):
    """A container ran before the machine was off"""

    start: int
    exit_code: int
    container: str


class ContainerRestarting(OfPodOnNode, kind="kubelet.restarting", by="kubelet"):
    """A container ended and will be started again"""

    start: int
    exit_code: int
    delay_s: float
    container: str


class PodFinished(OfPodOnNode, kind="kubelet.finished", by="kubelet"):
    """All containers have ended"""

    start: int
    phase: str
    exit_code: int


class ProbeChanged(OfPodOnNode, kind="kubelet.probed", by="kubelet"):
    """The result of a probe has changed"""

    container: str
    probe: str
    ok: bool


class ContainerKilling(OfPodOnNode, kind="kubelet.killing", by="kubelet"):
    """A container is killed to start anew"""

    container: str
    probe: str
    """The liveness or startup probe that failed; empty: a resize requires it."""
    grace_s: int


class HookFailed(OfPodOnNode, kind="kubelet.hook_failed", by="kubelet"):
    """A postStart hook has failed, and its container is killed"""

    start: int
    container: str


class PodResized(OfPodOnNode, kind="kubelet.resize", by="kubelet"):
    """The resize of a running pod goes on"""

    what: str
    """`started`, `deferred`, `completed` or `failed`."""
    message: str


class PodTerminating(OfPodOnNode, kind="kubelet.terminating", by="kubelet"):
    """The containers of a pod are told to end"""

    grace_s: int


class PodTerminated(OfPodOnNode, kind="kubelet.terminated", by="kubelet"):
    """The containers of a pod that was told to end have ended"""

    start: int
    forced: bool


class PodPreempting(OfPod, kind="kubelet.preempting", by="kubelet"):
    """A pod is about to be killed to make room for another"""

    by: str
    by_uid: str
    node: str
    grace_s: int


class ShutdownBegun(Event, kind="kubelet.shutdown", by="kubelet"):
    """The machine is about to shut down"""

    node: str
    requested_s: int
    """How long it waits at most."""


class ShutdownOver(Event, kind="kubelet.shutdown_over", by="kubelet"):
    """The pods of a machine that shuts down have ended"""

    node: str
    start: int


class PodShutDown(OfPodOnNode, kind="kubelet.shutting_down", by="kubelet"):
    """A pod is terminated because its machine shuts down"""

    priority: int
    """Of its group."""
    grace_s: int


class ThresholdsMet(Event, kind="kubelet.thresholds", by="kubelet"):
    """Other eviction thresholds are met than before"""

    node: str
    met: list[list[Any]]
    """Of each, `[signal, available, least, enough, grace_s]`: it is met while less than `least` is available, and then
    stays so up to `enough`."""


class PressureChanged(Event, kind="kubelet.pressure", by="kubelet"):
    """The pressure conditions of the node have changed"""

    node: str
    conditions: list[str]
    signals: list[str]
    """Of the thresholds that are met."""


class OomKilled(OfPodOnNode, kind="kubelet.oom_killed", by="kubelet"):
    """The kernel killed a container"""

    container: str = ""
    limit_bytes: int | None = None
    """If it passed its own limit."""


class PodEvicting(OfPodOnNode, kind="kubelet.evicting", by="kubelet"):
    """The eviction manager kills a pod"""

    signal: str
    grace_s: int
    message: str
    used: dict[str, int] | None = None
    """If the signal is one of memory or processes: by UID, what each pod on the node was measured to use."""


class GarbageCollected(Event, kind="kubelet.collected", by="kubelet"):
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
