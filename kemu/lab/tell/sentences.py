"""What kubelets, controllers and CSI drivers report in the run log, each report as one sentence.

Role: below :mod:`happenings`, which gives each sentence its time, actor and pod. Reports that only repeat what another
line of a story tells have no sentence.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from kemu.runtime.runlog.events import (
    ContainerKilling,
    CronJobReported,
    Event,
    HookFailed,
    JobReported,
    MountTimedOut,
    MultiAttachRefused,
    NamespaceEmptied,
    OfPod,
    OwnedDeleted,
    PodResized,
    ProbeChanged,
    ProvisioningFailed,
    ReplicaSetScaled,
    RequestRefused,
    RolloutEnded,
    VolumeAttached,
    VolumeProvisioned,
    handlers,
)

_Events = ProbeChanged | ContainerKilling | HookFailed | PodResized | MountTimedOut | MultiAttachRefused

_QUOTA = re.compile(r"(?:exceeded|failed) quota: ([^:,]+)[:,] *(.*)", re.DOTALL)


@dataclass(frozen=True, slots=True)
class Sentence:
    """Of a pod (``uid``) ``says`` tells what is said of one and of several; otherwise ``what`` is the whole phrase."""

    kind: str
    """One of :data:`kemu.lab.tell.happenings.KINDS`."""
    says: tuple[str, str]
    tone: str = "plain"
    why: str = ""
    what: str = ""
    uid: str = ""
    pod: str = ""
    """``namespace/name``."""
    node: str = ""
    sizes: tuple[int, int] | None = None
    """Of what was scaled, before and after."""


def of(reports: Iterable[tuple[int, str, Event]]) -> Iterator[tuple[int, str, Sentence]]:
    """Time, actor and sentence, in order. ``reports``: as :attr:`kemu.lab.checks.history.History.reports`."""
    teller = _Teller()
    for time_ns, actor, event in reports:
        for sentence in teller.handlers[event.KIND](event):
            yield time_ns, actor, sentence


def refusing_quota(message: str) -> tuple[str, str]:
    """The quota that refused a request and what it said; empty texts where none did."""
    found = _QUOTA.search(message)
    return (found[1], found[2]) if found else ("", "")


class _Teller:
    """Knows what was told before, where a report matters only as a change."""

    def __init__(self) -> None:
        self._unready: set[tuple[str, str]] = set()
        """UID and container that have lost their readiness."""
        self._revisions: dict[tuple[str, str], int] = {}
        """Revisions of the ReplicaSets of a Deployment."""
        self._emptying: dict[str, int] = {}
        """Namespaces that are told of, with what was left."""
        self.handlers: dict[str, Callable[[Mapping[str, Any]], Iterator[Sentence]]] = handlers.of(self)

    # --- kubelets ----------------------------------------------------------------------------------------------------

    def _on_probed(self, event: ProbeChanged) -> Iterator[Sentence]:
        """Readiness that is lost, and regained. What the other probes come to is told as a restart."""
        container = event.uid, event.container
        if event.probe != "readiness":
            return
        if not event.ok:
            self._unready.add(container)
            yield _of_pod("probed", event, "is not ready any more", "are not ready any more", "bad", _failed(event))
        elif container in self._unready:
            self._unready.remove(container)
            yield _of_pod("probed", event, "is ready again", "are ready again", "good", _of_container(event))

    def _on_killing(self, event: ContainerKilling) -> Iterator[Sentence]:
        why = _failed(event) if event.probe else f"its resize requires a restart, {_of_container(event)}"
        yield _of_pod("probed", event, "is restarted", "are restarted", "bad" if event.probe else "plain", why)

    def _on_hook_failed(self, event: HookFailed) -> Iterator[Sentence]:
        why = f"its postStart hook failed, {_of_container(event)}"
        yield _of_pod("probed", event, "is restarted", "are restarted", "bad", why)

    def _on_resize(self, event: PodResized) -> Iterator[Sentence]:
        why = event.message
        if event.what == "deferred":
            yield _of_pod("resized", event, "waits for its resize", "wait for their resizes", "bad", why)
        elif event.what == "failed":
            yield _of_pod("resized", event, "is not resized: it failed", "are not resized: it failed", "bad", why)
        elif event.what == "completed":
            yield _of_pod("resized", event, "is resized", "are resized", "good", why)

    # --- volumes -----------------------------------------------------------------------------------------------------

    def _on_mount_timeout(self, event: MountTimedOut) -> Iterator[Sentence]:
        why = f"not mounted: {', '.join(event.volumes)}"
        yield _of_pod("error", event, "waits too long for its volumes", "wait too long for their volumes", "bad", why)

    def _on_multi_attach(self, event: MultiAttachRefused) -> Iterator[Sentence]:
        says = "waits for a volume of another node", "wait for volumes of other nodes"
        yield _of_pod("error", event, *says, "bad", f"{event.volume} is attached to {', '.join(event.others)}")

    def _on_provisioned(self, event: VolumeProvisioned) -> Iterator[Sentence]:
        says = f"claim {_short(event.claim)} gets a new volume"
        yield Sentence("volume", ("", "claims get new volumes"), "good", f"{event.volume} of {event.driver}", says)

    def _on_provision_failed(self, event: ProvisioningFailed) -> Iterator[Sentence]:
        says = f"claim {_short(event.claim)} gets no volume"
        yield Sentence("error", ("", "claims get no volumes"), "bad", event.why, says)

    def _on_attached(self, event: VolumeAttached) -> Iterator[Sentence]:
        what = f"volume {event.volume} is attached to {event.node}"
        yield Sentence("volume", ("", "volumes are attached"), "plain", event.driver, what, node=event.node)

    # --- controllers -------------------------------------------------------------------------------------------------

    def _on_job(self, event: JobReported) -> Iterator[Sentence]:
        name, reason = f"Job {_short(event.job)}", event.reason
        says, tone = _OF_JOBS.get(reason, (f"fails: {reason}", "bad"))
        why = event.message if tone == "bad" else ""
        yield Sentence("job", ("", f"Jobs: {says}"), tone, why, f"{name} {says}")

    def _on_cron_job(self, event: CronJobReported) -> Iterator[Sentence]:
        name, reason, message = f"CronJob {_short(event.cronjob)}", event.reason, event.message
        if reason == "SuccessfulCreate":
            what = f"{name} starts Job {message.removeprefix('Created job ')}"
            yield Sentence("job", ("", f"{name} starts"), "plain", "", what)
        elif reason in ("MissSchedule", "JobAlreadyActive"):
            yield Sentence("job", ("", f"{name} skips"), "bad", message, f"{name} skips a Job")
        elif reason not in _ROUTINE:
            yield Sentence("job", ("", f"{name}: {reason}"), "bad", message, f"{name} reports {reason}")

    def _on_scaled(self, event: ReplicaSetScaled) -> Iterator[Sentence]:
        deployment, name = _short(event.deployment), event.replica_set
        key = event.deployment, name
        number = event.revision
        revision = int(number) if number.isdecimal() else 0
        if event.before < event.replicas and 0 < self._revisions.get(key, 0) < revision:
            what = f"Deployment {deployment} rolls back to ReplicaSet {name}"
            why = f"revision {self._revisions[key]} becomes revision {revision}"
            yield Sentence("rollout", ("", f"{deployment} rolls back"), "plain", why, what)
        self._revisions[key] = revision
        sizes = event.before, event.replicas
        says = f"Deployment {deployment} scales {'up' if sizes[0] < sizes[1] else 'down'} ReplicaSet {name}"
        what = f"{says} from {sizes[0]} to {sizes[1]}"
        yield Sentence("rollout", ("", says), "plain", f"revision {number}" if number else "", what, sizes=sizes)

    def _on_rollout(self, event: RolloutEnded) -> Iterator[Sentence]:
        name = f"Deployment {_short(event.deployment)}"
        revision = f"revision {event.revision}"
        if event.outcome == "complete":
            yield Sentence("rollout", ("", "complete"), "good", revision, f"the rollout of {name} is complete")
        else:
            why = f"{revision} exceeded its progress deadline"
            yield Sentence("rollout", ("", "stuck"), "bad", why, f"the rollout of {name} is stuck")

    def _on_collected(self, event: OwnedDeleted) -> Iterator[Sentence]:
        """The deletion of a pod is told as the pod's."""
        if event.resource_kind != "Pod":
            what = f"{event.resource_kind} {_short(event.name)} is deleted"
            yield Sentence("collected", ("", f"{event.resource_kind} deleted"), "plain", OWNER_GONE, what)

    def _on_emptied(self, event: NamespaceEmptied) -> Iterator[Sentence]:
        """Once when its deletion begins, and once when nothing is left."""
        name, left = event.namespace, sum(event.remaining.values())
        before = self._emptying.get(name)
        if left and before is None:
            why = ", ".join(f"{count} {kind}" for kind, count in event.remaining.items())
            what = f"namespace {name} is being emptied"
            yield Sentence("collected", ("", "namespaces are being emptied"), "plain", f"left: {why}", what)
        elif not left and before != 0:
            yield Sentence("collected", ("", "namespaces are empty"), "good", "", f"namespace {name} is empty")
        self._emptying[name] = left

    # --- API server --------------------------------------------------------------------------------------------------

    def _on_refused(self, event: RequestRefused) -> Iterator[Sentence]:
        """Requests of controllers: those of the user are told as the user's."""
        quota, why = refusing_quota(event.message)
        if quota:
            by, noun = event.by.removeprefix("controller/"), event.resource.removesuffix("s")
            says = f"{by} may not create a {noun}: quota {quota} of {event.namespace}"
            yield Sentence("refused", ("", says), "bad", why, says)


OWNER_GONE = "its owner is gone"

_OF_JOBS = {
    "Completed": ("is complete", "good"),
    "Suspended": ("is suspended", "plain"),
    "Resumed": ("is resumed", "plain"),
    "TooManySucceededPods": ("has too many succeeded pods", "bad"),
}
"""What is said and its tone; every other reason is why a Job failed."""

_ROUTINE = ("SawCompletedJob", "SuccessfulDelete", "MissingJob")
"""Reports of a CronJob that say what other lines tell."""


def _of_pod(kind: str, event: OfPod | MultiAttachRefused, one: str, several: str, tone: str, why: str) -> Sentence:
    return Sentence(kind, (one, several), tone, why, uid=event.uid, pod=event.pod, node=event.get("node", ""))


def _failed(event: ProbeChanged | ContainerKilling) -> str:
    return f"its {event.probe} probe failed, {_of_container(event)}"


def _of_container(event: ProbeChanged | ContainerKilling | HookFailed) -> str:
    return f"container {event.container}"


def _short(key: str) -> str:
    return key.removeprefix("default/")
