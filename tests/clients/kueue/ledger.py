"""What every revision of the objects says about quota: who held how much, whether it was too much, who waited.

Workloads and pods come by two watches. Revisions number the writes of both in one order, so each state between two
writes is known, however late the watches told it.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from kemu.emulated.objects.amounts import quantities

TEAM = "team"
"""The label of pods that names their queue."""


class Quota(NamedTuple):
    """Of one ClusterQueue, in milli-CPU. ``most``: its own and what it may borrow."""

    nominal: int
    most: int


class Event(NamedTuple):
    """``at``: seconds on the clock of the watcher, when it came."""

    revision: int
    at: float
    type: str
    object: dict[str, Any]

    @classmethod
    def read(cls, at: float, line: bytes) -> Event:
        document = json.loads(line)
        found = document["object"]
        return cls(int(found["metadata"]["resourceVersion"]), at, document["type"], found)


@dataclass
class Ledger:
    """``broken``: a sentence for each thing that may not be; empty if all is well."""

    broken: list[str] = field(default_factory=list)
    admitted: dict[str, float] = field(default_factory=dict)
    """When each Workload was admitted first."""
    finished: dict[str, float] = field(default_factory=dict)
    peaks: Counter[str] = field(default_factory=Counter)
    """The most that each queue held at once, in milli-CPU."""
    peak: int = 0
    """The most that all held at once."""
    most_waiting: int = 0


def judge(workloads: Iterable[Event], pods: Iterable[Event], quotas: Mapping[str, Quota]) -> Ledger:
    """Replay both in the order of their revisions."""
    found = Ledger()
    state = _State(quotas, found)
    for event in sorted([*workloads, *pods], key=lambda one: one.revision):
        if event.object["kind"] == "Workload":
            state.workload(event)
        else:
            state.pod(event)
        state.check(event)
    return found


class _State:
    """``held``: by Workload, its queue and milli-CPU. ``running``: by pod, its Job, queue and milli-CPU."""

    def __init__(self, quotas: Mapping[str, Quota], found: Ledger) -> None:
        self._quotas, self._found = quotas, found
        self._held: dict[str, tuple[str, int]] = {}
        self._jobs: dict[str, str] = {}
        self._running: dict[str, tuple[str, str, int]] = {}
        self._waiting: set[str] = set()

    def workload(self, event: Event) -> None:
        name, status = event.object["metadata"]["name"], event.object.get("status", {})
        conditions = {one["type"]: one["status"] == "True" for one in status.get("conditions") or ()}
        self._held.pop(name, None)
        self._waiting.discard(name)
        for owner in event.object["metadata"].get("ownerReferences") or ():
            self._jobs[owner["name"]] = name
        if event.type == "DELETED":
            return
        if conditions.get("Finished"):
            self._found.finished.setdefault(name, event.at)
        elif "admission" in status:
            self._held[name] = status["admission"]["clusterQueue"], _held_by(status)
        else:
            self._waiting.add(name)
        if conditions.get("Admitted"):
            self._found.admitted.setdefault(name, event.at)

    def pod(self, event: Event) -> None:
        metadata, status = event.object["metadata"], event.object.get("status", {})
        self._running.pop(metadata["name"], None)
        if event.type == "DELETED" or status.get("phase") in ("Succeeded", "Failed"):
            return
        cpu = sum(quantities.milli(one["resources"]["requests"]["cpu"]) for one in event.object["spec"]["containers"])
        job = metadata["labels"]["batch.kubernetes.io/job-name"]
        self._running[metadata["name"]] = job, metadata["labels"][TEAM], cpu

    def check(self, event: Event) -> None:
        found, where = self._found, f"revision {event.revision}"
        found.most_waiting = max(found.most_waiting, len(self._waiting))
        held = _sums(self._held.values())
        for queue, cpu in held.items():
            found.peaks[queue] = max(found.peaks[queue], cpu)
        found.peak = max(found.peak, sum(held.values()))
        self._compare("admitted Workloads hold", held, where)
        self._compare("pods hold", _sums((queue, cpu) for _, queue, cpu in self._running.values()), where)
        if event.object["kind"] == "Pod" and event.object["metadata"]["name"] in self._running:
            job = self._running[event.object["metadata"]["name"]][0]
            if self._jobs.get(job) not in self._held:
                found.broken.append(f"{where}: a pod of {job} is there, whose Workload holds no quota")

    def _compare(self, what: str, held: Counter[str], where: str) -> None:
        broken = self._found.broken
        for queue, cpu in held.items():
            most = self._quotas[queue].most
            if cpu > most:
                broken.append(f"{where}: {what} {cpu}m of {queue}, which may have {most}m")
        total, cohort = sum(held.values()), sum(one.nominal for one in self._quotas.values())
        if total > cohort:
            broken.append(f"{where}: {what} {total}m, and the cohort has {cohort}m")


def _held_by(status: Mapping[str, Any]) -> int:
    """Milli-CPU of an admitted Workload. It gives back what pods had that have succeeded."""
    given_back = {one["name"]: one["count"] for one in status.get("reclaimablePods") or ()}
    held = 0
    for one in status["admission"]["podSetAssignments"]:
        count = one["count"]
        held += quantities.milli(one["resourceUsage"]["cpu"]) * (count - given_back.get(one["name"], 0)) // count
    return held


def _sums(held: Iterable[tuple[str, int]]) -> Counter[str]:
    sums: Counter[str] = Counter()
    for queue, cpu in held:
        sums[queue] += cpu
    return sums
