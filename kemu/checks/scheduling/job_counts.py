"""The check that the Job controller counts pods exactly once."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

from kemu.checks.history import History
from kemu.checks.results import Check, Result, counted, seconds, several
from kemu.k8s import batch_v1_pb2

JOBS = "/registry/jobs/"
_COUNTERS = ("succeeded", "failed")


class _Counted:
    """What one Job has counted so far."""

    def __init__(self) -> None:
        self.status = batch_v1_pb2.JobStatus()
        self.done: dict[str, None] = {}
        """UIDs of pods."""


class JobCountsEachPodOnce(Check):
    """A Job's counters grow by the pods that leave its list of uncounted ones, and no pod enters the list again.

    Both happen in one write, so a controller that crashes between any two steps neither forgets a pod nor counts it
    twice. Successes of Indexed Jobs are counted by their indexes and are not looked at.
    """

    id: ClassVar[str] = "job-counts-each-pod-once"
    kinds: ClassVar[tuple[str, ...]] = ("store.txn",)

    def __init__(self) -> None:
        self._jobs: dict[tuple[str, str], _Counted] = {}
        """By key and UID."""
        self._findings: list[str] = []

    def on_event(self, time_ns: int, actor: str, kind: str, data: Mapping[str, Any]) -> None:
        for op, key, value, _create, _version in data["changes"]:
            if op == 0 and key.startswith(JOBS):
                self._written(time_ns, key.removeprefix(JOBS), batch_v1_pb2.Job.FromString(value))

    def _written(self, time_ns: int, name: str, job: batch_v1_pb2.Job) -> None:
        known = self._jobs.setdefault((name, job.metadata.uid), _Counted())
        before, now = known.status, job.status
        for field in _COUNTERS:
            if field == "succeeded" and job.spec.completionMode == "Indexed":
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
