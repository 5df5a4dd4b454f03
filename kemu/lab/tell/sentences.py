"""What kubelets, controllers and CSI drivers report in the run log, each report as one sentence.

Role: below :mod:`happenings`, which gives each sentence its time, actor and pod. Reports that only repeat what another
line of a story tells have no sentence.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

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


_Report = tuple[int, str, str, Mapping[str, Any]]


def of(reports: Iterable[_Report]) -> Iterator[tuple[int, str, Sentence]]:
    """Time, actor and sentence, in order. ``reports``: as :attr:`kemu.lab.checks.history.History.reports`."""
    teller = _Teller()
    for time_ns, actor, kind, data in reports:
        for sentence in teller.handlers[kind](data):
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
        """Of the ReplicaSets of a Deployment."""
        self._emptying: dict[str, int] = {}
        """Namespaces that are told of, with what was left."""
        self.handlers: dict[str, Callable[[Mapping[str, Any]], Iterator[Sentence]]] = {
            "kubelet.probed": self._on_probed,
            "kubelet.killing": self._on_killing,
            "kubelet.hook_failed": self._on_hook_failed,
            "kubelet.resize": self._on_resize,
            "kubelet.mount_timeout": self._on_mount_timeout,
            "volumes.multi_attach": self._on_multi_attach,
            "csi.provisioned": self._on_provisioned,
            "csi.provision_failed": self._on_provision_failed,
            "csi.attached": self._on_attached,
            "controller.job": self._on_job,
            "controller.cronjob": self._on_cron_job,
            "controller.scaled": self._on_scaled,
            "controller.rollout": self._on_rollout,
            "gc.deleted": self._on_collected,
            "namespace.emptied": self._on_emptied,
            "api.refused": self._on_refused,
        }

    # --- kubelets ----------------------------------------------------------------------------------------------------

    def _on_probed(self, data: Mapping[str, Any]) -> Iterator[Sentence]:
        """Readiness that is lost, and regained. What the other probes come to is told as a restart."""
        container = data["uid"], data["container"]
        if data["probe"] != "readiness":
            return
        if not data["ok"]:
            self._unready.add(container)
            yield _of_pod("probed", data, "is not ready any more", "are not ready any more", "bad", _failed(data))
        elif container in self._unready:
            self._unready.remove(container)
            yield _of_pod("probed", data, "is ready again", "are ready again", "good", _of_container(data))

    def _on_killing(self, data: Mapping[str, Any]) -> Iterator[Sentence]:
        why = _failed(data) if data["probe"] else f"its resize requires a restart, {_of_container(data)}"
        yield _of_pod("probed", data, "is restarted", "are restarted", "bad" if data["probe"] else "plain", why)

    def _on_hook_failed(self, data: Mapping[str, Any]) -> Iterator[Sentence]:
        why = f"its postStart hook failed, {_of_container(data)}"
        yield _of_pod("probed", data, "is restarted", "are restarted", "bad", why)

    def _on_resize(self, data: Mapping[str, Any]) -> Iterator[Sentence]:
        why = data["message"]
        if data["what"] == "deferred":
            yield _of_pod("resized", data, "waits for its resize", "wait for their resizes", "bad", why)
        elif data["what"] == "failed":
            yield _of_pod("resized", data, "is not resized: it failed", "are not resized: it failed", "bad", why)
        elif data["what"] == "completed":
            yield _of_pod("resized", data, "is resized", "are resized", "good", why)

    # --- volumes -----------------------------------------------------------------------------------------------------

    def _on_mount_timeout(self, data: Mapping[str, Any]) -> Iterator[Sentence]:
        why = f"not mounted: {', '.join(data['volumes'])}"
        yield _of_pod("error", data, "waits too long for its volumes", "wait too long for their volumes", "bad", why)

    def _on_multi_attach(self, data: Mapping[str, Any]) -> Iterator[Sentence]:
        says = "waits for a volume of another node", "wait for volumes of other nodes"
        yield _of_pod("error", data, *says, "bad", f"{data['volume']} is attached to {', '.join(data['others'])}")

    def _on_provisioned(self, data: Mapping[str, Any]) -> Iterator[Sentence]:
        says = f"claim {_short(data['claim'])} gets a new volume"
        yield Sentence("volume", ("", "claims get new volumes"), "good", f"{data['volume']} of {data['driver']}", says)

    def _on_provision_failed(self, data: Mapping[str, Any]) -> Iterator[Sentence]:
        says = f"claim {_short(data['claim'])} gets no volume"
        yield Sentence("error", ("", "claims get no volumes"), "bad", data["why"], says)

    def _on_attached(self, data: Mapping[str, Any]) -> Iterator[Sentence]:
        what = f"volume {data['volume']} is attached to {data['node']}"
        yield Sentence("volume", ("", "volumes are attached"), "plain", data["driver"], what, node=data["node"])

    # --- controllers -------------------------------------------------------------------------------------------------

    def _on_job(self, data: Mapping[str, Any]) -> Iterator[Sentence]:
        name, reason = f"Job {_short(data['job'])}", data["reason"]
        says, tone = _OF_JOBS.get(reason, (f"fails: {reason}", "bad"))
        why = data["message"] if tone == "bad" else ""
        yield Sentence("job", ("", f"Jobs: {says}"), tone, why, f"{name} {says}")

    def _on_cron_job(self, data: Mapping[str, Any]) -> Iterator[Sentence]:
        name, reason, message = f"CronJob {_short(data['cronjob'])}", data["reason"], data["message"]
        if reason == "SuccessfulCreate":
            what = f"{name} starts Job {message.removeprefix('Created job ')}"
            yield Sentence("job", ("", f"{name} starts"), "plain", "", what)
        elif reason in ("MissSchedule", "JobAlreadyActive"):
            yield Sentence("job", ("", f"{name} skips"), "bad", message, f"{name} skips a Job")
        elif reason not in _ROUTINE:
            yield Sentence("job", ("", f"{name}: {reason}"), "bad", message, f"{name} reports {reason}")

    def _on_scaled(self, data: Mapping[str, Any]) -> Iterator[Sentence]:
        deployment, name = _short(data["deployment"]), data["replica_set"]
        key = data["deployment"], name
        number = data["revision"]
        revision = int(number) if number.isdecimal() else 0
        if data["before"] < data["replicas"] and 0 < self._revisions.get(key, 0) < revision:
            what = f"Deployment {deployment} rolls back to ReplicaSet {name}"
            why = f"revision {self._revisions[key]} becomes revision {revision}"
            yield Sentence("rollout", ("", f"{deployment} rolls back"), "plain", why, what)
        self._revisions[key] = revision
        sizes = data["before"], data["replicas"]
        says = f"Deployment {deployment} scales {'up' if sizes[0] < sizes[1] else 'down'} ReplicaSet {name}"
        what = f"{says} from {sizes[0]} to {sizes[1]}"
        yield Sentence("rollout", ("", says), "plain", f"revision {number}" if number else "", what, sizes=sizes)

    def _on_rollout(self, data: Mapping[str, Any]) -> Iterator[Sentence]:
        name = f"Deployment {_short(data['deployment'])}"
        revision = f"revision {data['revision']}"
        if data["outcome"] == "complete":
            yield Sentence("rollout", ("", "complete"), "good", revision, f"the rollout of {name} is complete")
        else:
            why = f"{revision} exceeded its progress deadline"
            yield Sentence("rollout", ("", "stuck"), "bad", why, f"the rollout of {name} is stuck")

    def _on_collected(self, data: Mapping[str, Any]) -> Iterator[Sentence]:
        """The deletion of a pod is told as the pod's."""
        if data["kind"] != "Pod":
            what = f"{data['kind']} {_short(data['name'])} is deleted"
            yield Sentence("collected", ("", f"{data['kind']} deleted"), "plain", OWNER_GONE, what)

    def _on_emptied(self, data: Mapping[str, Any]) -> Iterator[Sentence]:
        """Once when its deletion begins, and once when nothing is left."""
        name, left = data["namespace"], sum(data["remaining"].values())
        before = self._emptying.get(name)
        if left and before is None:
            why = ", ".join(f"{count} {kind}" for kind, count in data["remaining"].items())
            what = f"namespace {name} is being emptied"
            yield Sentence("collected", ("", "namespaces are being emptied"), "plain", f"left: {why}", what)
        elif not left and before != 0:
            yield Sentence("collected", ("", "namespaces are empty"), "good", "", f"namespace {name} is empty")
        self._emptying[name] = left

    # --- API server --------------------------------------------------------------------------------------------------

    def _on_refused(self, data: Mapping[str, Any]) -> Iterator[Sentence]:
        """Requests of controllers: those of the user are told as the user's."""
        quota, why = refusing_quota(data["message"])
        if quota:
            by, noun = data["by"].removeprefix("controller/"), data["resource"].removesuffix("s")
            says = f"{by} may not create a {noun}: quota {quota} of {data['namespace']}"
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


def _of_pod(kind: str, data: Mapping[str, Any], one: str, several: str, tone: str, why: str) -> Sentence:
    return Sentence(kind, (one, several), tone, why, uid=data["uid"], pod=data["pod"], node=data.get("node", ""))


def _failed(data: Mapping[str, Any]) -> str:
    return f"its {data['probe']} probe failed, {_of_container(data)}"


def _of_container(data: Mapping[str, Any]) -> str:
    return f"container {data['container']}"


def _short(key: str) -> str:
    return key.removeprefix("default/")
