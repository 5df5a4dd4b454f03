"""The check that the Job controller counts pods exactly once."""

from __future__ import annotations

from typing import ClassVar

from kemu.emulated.objects import meta
from kemu.emulated.objects.pods import pod_phases
from kemu.lab.checks.history import PHASE, History
from kemu.lab.checks.results import Check, Result, seconds, several
from kemu.messages.k8s import batch_v1_pb2, core_v1_pb2
from kemu.runtime.runlog.events import Transaction
from kemu.runtime.words import counted

JOBS = "/registry/jobs/"
_INDEX = "batch.kubernetes.io/job-completion-index"
_COUNTERS = ("succeeded", "failed")


class _Counted:
    """What one Job has counted so far."""

    def __init__(self) -> None:
        self.status = batch_v1_pb2.JobStatus()
        self.done: dict[str, None] = {}
        """UIDs of pods, and indexes."""
        self.indexes: set[int] = set()


class JobCountsEachPodOnce(Check):
    """A Job's counters grow by the pods that leave its list of uncounted ones, and no pod enters the list again.

    Both happen in one write, so a controller that crashes between any two steps neither forgets a pod nor counts it
    twice. Successes of an Indexed Job are as many as its ``completedIndexes``; an index enters that list only when a
    pod of it has succeeded, and leaves it only when ``completions`` shrinks.
    """

    id: ClassVar[str] = "job-counts-each-pod-once"
    keys: ClassVar[tuple[str, ...]] = (JOBS,)

    def __init__(self) -> None:
        self._jobs: dict[tuple[str, str], _Counted] = {}
        """By key and UID."""
        self._succeeded: dict[str, set[int]] = {}
        """By the UID of a Job, the indexes of which a pod has succeeded."""
        self._findings: list[str] = []

    def on_event(self, time_ns: int, actor: str, event: Transaction) -> None:
        for op, key, value, _create, _version in event.changes:
            if op == 0 and key.startswith(JOBS):
                self._written(time_ns, key.removeprefix(JOBS), batch_v1_pb2.Job.FromString(value))

    def pod_changes(self) -> int | None:
        return PHASE  # From the beginning: what stands there at first may come in any order.

    def on_pod(self, time_ns: int, revision: int, key: str, pod: core_v1_pb2.Pod | None) -> None:
        if pod is None or pod.status.phase != pod_phases.SUCCEEDED:
            return
        index, controller = pod.metadata.annotations.get(_INDEX, ""), meta.controller_of(pod)
        if index.isdigit() and controller is not None:
            self._succeeded.setdefault(controller.uid, set()).add(int(index))

    def _indexes_written(self, time_ns: int, name: str, known: _Counted, job: batch_v1_pb2.Job) -> None:
        now = indexes_in(job.status.completedIndexes)
        if len(now) != job.status.succeeded:
            self._findings.append(
                f"{seconds(time_ns)}: Job {name} counts {job.status.succeeded} successes, and its completed indexes "
                f"are {job.status.completedIndexes or 'none'}"
            )
        early = [index for index in sorted(now) if index not in self._succeeded.get(job.metadata.uid, ())]
        if early:
            self._findings.append(f"{seconds(time_ns)}: Job {name} counts index {early[0]}, of which no pod succeeded")
        lost = [index for index in sorted(known.indexes) if index not in now and index < job.spec.completions]
        if lost:
            self._findings.append(f"{seconds(time_ns)}: Job {name} no longer counts index {lost[0]}")
        known.done.update({f"index {index}": None for index in sorted(now)})
        known.indexes = now

    def _written(self, time_ns: int, name: str, job: batch_v1_pb2.Job) -> None:
        known = self._jobs.setdefault((name, job.metadata.uid), _Counted())
        before, now = known.status, job.status
        if time_ns <= 0 and _comes_so(before, now):
            known.status = now
            known.indexes = indexes_in(now.completedIndexes)
            known.done.update({f"index {index}": None for index in sorted(known.indexes)})
            return
        for field in _COUNTERS:
            if field == "succeeded" and job.spec.completionMode == "Indexed":
                self._indexes_written(time_ns, name, known, job)
                continue
            old, new = (getattr(one.uncountedTerminatedPods, field) for one in (before, now))
            left = [uid for uid in old if uid not in new]
            grown = getattr(now, field) - getattr(before, field)
            if grown != len(left):
                self._findings.append(
                    f"{seconds(time_ns)}: Job {name} counted {counted(grown, 'pod')} as {field}, "
                    f"while {counted(len(left), 'pod')} left its list"
                )
            again = [uid for uid in new if uid in known.done]
            if again:
                self._findings.append(f"{seconds(time_ns)}: Job {name} is to count pod {again[0]} a second time")
            known.done.update(dict.fromkeys(left))
        known.status = now

    def result(self, history: History) -> Result:
        if self._findings:
            return Result(self.id, False, several(self._findings))
        number = sum(len(one.done) for one in self._jobs.values())
        if not number:
            return Result(self.id, None, "no Job counted a pod")
        return Result(self.id, True, f"{counted(number, 'pod')} of {counted(len(self._jobs), 'Job')}")


def _comes_so(before: batch_v1_pb2.JobStatus, now: batch_v1_pb2.JobStatus) -> bool:
    """Whether a Job that has not begun has counted pods, or is over, in the next write, as one that comes from another
    cluster before the clock starts: the controller writes first when it began."""
    is_over = any(one.type in ("Complete", "Failed") and one.status == "True" for one in now.conditions)
    return not before.HasField("startTime") and (is_over or not now.HasField("startTime"))


def indexes_in(text: str) -> set[int]:
    """``0-2,5``."""
    found: set[int] = set()
    for part in text.split(",") if text else ():
        first, _, last = part.partition("-")
        found.update(range(int(first), int(last or first) + 1))
    return found
