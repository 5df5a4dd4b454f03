"""The kubelet's events: pods and their containers on a node, its resources, its shutdown."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from kemu.runtime.runlog.events.declared import Event, field
from kemu.runtime.runlog.events.subjects import OfPod, OfPodOnNode
from kemu.runtime.runlog.events.words import (
    BAD,
    DECISION,
    EVICTED,
    GOOD,
    OUTCOME,
    PLAIN,
    USUAL,
    WRITE,
    Deed,
    Line,
    Names,
    Traced,
    whole,
)
from kemu.runtime.words import short


class AdmissionDecided(OfPodOnNode, kind="kubelet.admit", by="kubelet", on_page=True):
    """A pod was admitted, or rejected"""

    start: int
    ok: bool
    reason: str
    message: str

    def live(self) -> Line:
        """Here and not where a scheduler says so: schedulers of other programs log nothing."""
        if self.ok:
            return Line("bound", "comes to {node}", "pods come to their nodes")
        phrase = f"{self.node} does not take {short(self.pod)}"
        return whole("refused", phrase, "pods are not taken by their nodes", BAD, self.message)

    def deed(self, pod: str, names: Names) -> Deed:
        if self.ok:
            return Deed(f"admitted {pod}", f"admits {pod}", WRITE, "admitted")
        return Deed(f"rejected {pod} ({self.reason})", f"rejects {pod}", DECISION, "rejected")

    def traced(self) -> Traced:
        if self.ok:
            return Traced("kubelet admission", "")
        error = f"{self.reason}: {self.message}" if self.message else self.reason
        return Traced("kubelet admission", self.reason, self.reason, error)


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

    LIVE = Line("running", "runs on {node}", "pods run", GOOD)
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

    LIVE = Line("restarting", "starts again", "pods start again", BAD)
    DEED = Deed("will restart {pod}", "restarts {pod}", USUAL)

    start: int
    exit_code: int
    delay_s: float
    container: str


class PodFinished(OfPodOnNode, kind="kubelet.finished", by="kubelet", on_page=True):
    """All containers have ended"""

    LIVE = Line("finished", "has ended: {phase}", "pods have ended")
    DEED = Deed("saw {pod} end ({phase})", "{pod} ended", WRITE)

    start: int
    phase: str
    exit_code: int


class ProbeChanged(OfPodOnNode, kind="kubelet.probed", by="kubelet", on_page=True):
    """The result of a probe has changed"""

    SUBJECT = ("uid", "container", "probe")

    container: str
    probe: str
    ok: bool

    def lines(self, before: ProbeChanged | None) -> Sequence[Line]:
        """Readiness that is lost, and regained. What the other probes come to is told as a restart."""
        container = f"container {self.container}"
        if self.probe != "readiness" or (self.ok and (before is None or before.ok)):
            return ()
        if self.ok:
            return (Line("probed", "is ready again", "are ready again", GOOD, container),)
        why = f"its readiness probe failed, {container}"
        return (Line("probed", "is not ready any more", "are not ready any more", BAD, why),)

    def deed(self, pod: str, names: Names) -> Deed:
        comes_to = "succeed" if self.ok else "fail"
        return Deed(f"has the {self.probe} probe of {pod} {comes_to}", f"{self.probe} of {pod}: {comes_to}", WRITE)

    def traced(self) -> Traced:
        """What it has come to, after as many answers as its threshold wants."""
        return Traced("probe", f"the {self.probe} probe {'succeeds' if self.ok else 'fails'}",
                      "" if self.ok else "Unhealthy")  # fmt: skip


class ContainerKilling(OfPodOnNode, kind="kubelet.killing", by="kubelet", on_page=True):
    """A container is killed to start anew"""

    DEED = Deed("killed a container of {pod} (its {probe} probe)", "restarts {pod}", DECISION)

    container: str
    probe: str
    """The liveness or startup probe that failed; empty: a resize requires it."""
    grace_s: int

    def lines(self, before: Event | None) -> Sequence[Line]:
        return (_restarted(self, self._why, BAD if self.probe else PLAIN),)

    def traced(self) -> Traced:
        return Traced("container killed", self._why)

    @property
    def _why(self) -> str:
        return f"its {self.probe} probe failed" if self.probe else "its resize requires a restart"


class HookFailed(OfPodOnNode, kind="kubelet.hook_failed", by="kubelet", on_page=True):
    """A postStart hook has failed, and its container is killed"""

    DEED = Deed("killed a container of {pod} (its postStart hook)", "restarts {pod}", DECISION)
    _WHY = "its postStart hook failed"

    start: int
    container: str

    def lines(self, before: Event | None) -> Sequence[Line]:
        return (_restarted(self, self._WHY, BAD),)

    def traced(self) -> Traced:
        return Traced("container killed", self._WHY)


def _restarted(event: ContainerKilling | HookFailed, why: str, tone: str) -> Line:
    return Line("probed", "is restarted", "are restarted", tone, f"{why}, container {event.container}")


class PodResized(OfPodOnNode, kind="kubelet.resize", by="kubelet", on_page=True):
    """The resize of a running pod goes on"""

    DEED = Deed("has the resize of {pod} {what}", "resize of {pod} {what}", DECISION)

    what: str
    """`started`, `deferred`, `completed` or `failed`."""
    message: str

    def lines(self, before: Event | None) -> Sequence[Line]:
        said = {
            "deferred": ("waits for its resize", "wait for their resizes", BAD),
            "failed": ("is not resized: it failed", "are not resized: it failed", BAD),
            "completed": ("is resized", "are resized", GOOD),
        }.get(self.what)
        return (Line("resized", *said, self.message),) if said else ()

    def traced(self) -> Traced:
        return Traced("resize", f"{self.what}: {self.message}" if self.message else self.what)


class PodTerminating(OfPodOnNode, kind="kubelet.terminating", by="kubelet", on_page=True):
    """The containers of a pod are told to end"""

    DEED = Deed("began to end {pod}", "ends {pod}", WRITE)

    grace_s: int


class PodTerminated(OfPodOnNode, kind="kubelet.terminated", by="kubelet", on_page=True):
    """The containers of a pod that was told to end have ended"""

    LIVE = Line("terminated", "has left {node}", "pods have left their nodes")
    DEED = Deed("saw the containers of {pod} end", "{pod} is gone", WRITE)

    start: int
    forced: bool


class PodPreempting(OfPod, kind="kubelet.preempting", by="kubelet", on_page=True):
    """A pod is about to be killed to make room for another"""

    by: str
    by_uid: str
    node: str
    grace_s: int

    def deed(self, pod: str, names: Names) -> Deed:
        text = f"killed {pod} to make room for {short(self.by)}"
        return Deed(text, f"kills {pod}", DECISION, "kubelet preempts", (self.by,))

    def traced(self) -> Traced:
        """When the kubelet chose the pod as a victim; the termination follows."""
        return Traced("preempted", f"killed by the kubelet of {self.node} to make room for {self.by}", "Preempted")


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
    """The priority of its group."""
    grace_s: int

    def traced(self) -> Traced:
        return Traced("evicted", "the machine is being shut down", "Evicted")


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
    """The signals of the thresholds that are met."""

    def live(self) -> Line:
        says = f"has {', '.join(self.conditions)}" if self.conditions else "has no pressure any more"
        return Line("pressure", says, "nodes change their pressure", BAD)


class OomKilled(OfPodOnNode, kind="kubelet.oom_killed", by="kubelet", on_page=True):
    """The kernel killed a container"""

    LIVE = Line("oom", "is out of memory", "pods are out of memory", BAD)
    DEED = Deed("lost a container of {pod} to the kernel (OOM)", "OOM kill of {pod}", OUTCOME)

    container: str = ""
    limit_bytes: int | None = None
    """If it passed its own limit."""


class PodEvicting(OfPodOnNode, kind="kubelet.evicting", by="kubelet", on_page=True):
    """The eviction manager kills a pod"""

    LIVE = EVICTED
    DEED = Deed("evicted {pod} ({signal})", "evicts {pod}", DECISION)

    signal: str
    grace_s: int
    message: str
    used: dict[str, int] | None = None
    """If the signal is one of memory or processes: by UID, what each pod on the node was measured to use."""

    def traced(self) -> Traced:
        """When the kubelet chose the pod, and why; the termination follows."""
        return Traced("evicted", self.message.strip(), "Evicted")


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

    def traced(self) -> Traced:
        return Traced("mount", f"mounted {', '.join(self.volumes)}")


class VolumeUnmounted(OfPod, kind="kubelet.unmounted", by="kubelet"):
    """A volume is unmounted"""

    volume: str


class MountTimedOut(OfPod, kind="kubelet.mount_timeout", by="kubelet"):
    """A pod has waited too long for its volumes, and goes on waiting"""

    volumes: list[str]

    def lines(self, before: Event | None) -> Sequence[Line]:
        why = f"not mounted: {', '.join(self.volumes)}"
        return (Line("error", "waits too long for its volumes", "wait too long for their volumes", BAD, why),)

    def traced(self) -> Traced:
        return Traced("mount", f"not mounted in time: {', '.join(self.volumes)}", "FailedMount")
