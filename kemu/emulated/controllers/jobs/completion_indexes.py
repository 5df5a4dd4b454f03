"""Indexed Jobs: which index has succeeded, has failed, or needs a pod (``indexed_job_utils.go`` of
``pkg/controller/job``)."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

from kemu.emulated.controllers.jobs import backoffs, deletion_orders, failure_policies, intervals, tracking
from kemu.emulated.objects.pods import pod_phases
from kemu.messages.k8s import batch_v1_pb2, core_v1_pb2

INDEX = "batch.kubernetes.io/job-completion-index"
"""Annotation and label of a pod."""
FAILURES = "batch.kubernetes.io/job-index-failure-count"
IGNORED_FAILURES = "batch.kubernetes.io/job-index-ignored-failure-count"
"""Annotations: how many pods of the index failed before this one."""
ENVIRONMENT = "JOB_COMPLETION_INDEX"
UNKNOWN = -1
_GENERATED_NAME = 58
"""``MaxGeneratedNameLength``: of a name with five generated characters."""
_INTEGER = re.compile("[+-]?[0-9]+")
_MAX_INT32 = 2**31 - 1
_MAX_INT64 = 2**63 - 1


def is_indexed(job: batch_v1_pb2.Job) -> bool:
    return bool(job.spec.completionMode == "Indexed")


def has_limit_per_index(job: batch_v1_pb2.Job) -> bool:
    return bool(job.spec.HasField("backoffLimitPerIndex"))


def of(pod: core_v1_pb2.Pod) -> int:
    """The completion index of a pod (``getCompletionIndex``); UNKNOWN: it has none."""
    text = pod.metadata.annotations.get(INDEX, "")
    index = int(text) if _INTEGER.fullmatch(text) else UNKNOWN
    return index if 0 <= index <= _MAX_INT64 else UNKNOWN


def is_valid(index: int, job: batch_v1_pb2.Job) -> bool:
    return index != UNKNOWN and index < int(job.spec.completions)


def succeeded(
    job: batch_v1_pb2.Job, pods: Sequence[core_v1_pb2.Pod]
) -> tuple[intervals.Intervals, intervals.Intervals]:
    """As the status says, and with the pods that have succeeded since (``calculateSucceededIndexes``)."""
    before = intervals.parse(job.status.completedIndexes, job.spec.completions)
    new = {
        of(pod)
        for pod in pods
        if pod.status.phase == pod_phases.SUCCEEDED and is_valid(of(pod), job) and tracking.has_finalizer(pod)
    }
    return before, intervals.merge(before, intervals.of(sorted(new)))


def failed(job: batch_v1_pb2.Job, pods: Sequence[Any]) -> intervals.Intervals:
    """``calculateFailedIndexes``."""
    before = intervals.parse(job.status.failedIndexes, job.spec.completions)
    new = {of(pod) for pod in pods if is_valid(of(pod), job) and tracking.has_finalizer(pod) and _fails_index(job, pod)}
    return intervals.merge(before, intervals.of(sorted(new)))


def _fails_index(job: batch_v1_pb2.Job, pod: core_v1_pb2.Pod) -> bool:
    """``isIndexFailed``."""
    if not failure_policies.is_failed(pod, job):
        return False
    match = failure_policies.match(job, pod)
    if match.action == failure_policies.FAIL_INDEX:
        return True
    return match.is_counted and _count(pod, FAILURES) >= int(job.spec.backoffLimitPerIndex)


def _count(pod: core_v1_pb2.Pod, annotation: str) -> int:
    text = pod.metadata.annotations.get(annotation, "")
    number = int(text) if _INTEGER.fullmatch(text) else 0
    return number if 0 <= number <= _MAX_INT32 else 0


def failures(pod: core_v1_pb2.Pod) -> int:
    """Failures of the index before this pod, ignored ones included (``getIndexAbsoluteFailureCount``)."""
    return _count(pod, FAILURES) + _count(pod, IGNORED_FAILURES)


def new_counts(job: batch_v1_pb2.Job, replaced: core_v1_pb2.Pod | None) -> dict[str, str]:
    """The annotations of a pod that replaces another (``addIndexFailureCountAnnotation``)."""
    if replaced is None:
        return {FAILURES: "0"}
    counted, ignored = _count(replaced, FAILURES), _count(replaced, IGNORED_FAILURES)
    if failure_policies.match(job, replaced).is_counted:
        counted += 1
    else:
        ignored += 1
    return {FAILURES: str(counted), IGNORED_FAILURES: str(ignored)} if ignored > 0 else {FAILURES: str(counted)}


def remaining_ns(replaced: core_v1_pb2.Pod | None, now_ns: int) -> int:
    """Until an index may get a new pod in place of this one (``getRemainingTimePerIndex``)."""
    if replaced is None:
        return 0
    return backoffs.remaining_ns(failures(replaced) + 1, backoffs.finished_ns(replaced), now_ns)


def delayed(
    job: batch_v1_pb2.Job,
    valid: Sequence[Any],
    active: Sequence[Any],
    succeeded_ones: intervals.Intervals,
    failed_ones: intervals.Intervals,
) -> dict[int, Any]:
    """By index: the failed pod that stays until its replacement has inherited its number of failures
    (``getPodsWithDelayedDeletionPerIndex``). ``valid``: pods that are still to be counted."""
    busy = {of(pod) for pod in active}
    found: dict[int, Any] = {}
    for pod in valid:
        index = of(pod)
        if not is_valid(index, job) or not failure_policies.is_failed(pod, job):
            continue
        if intervals.contains(succeeded_ones, index) or intervals.contains(failed_ones, index) or index in busy:
            continue
        last = found.get(index)
        is_later = last is None or (
            failures(last) <= failures(pod) and backoffs.finished_ns(pod) >= backoffs.finished_ns(last)
        )
        if is_later:
            found[index] = pod
    return found


def first_pending(
    count: int,
    completions: int,
    busy: Sequence[core_v1_pb2.Pod],
    succeeded_ones: intervals.Intervals,
    failed_ones: intervals.Intervals,
) -> list[int]:
    """The first indexes that need a pod (``firstPendingIndexes``). ``busy``: pods whose indexes need none."""
    indexes = intervals.of(sorted({of(pod) for pod in busy} - {UNKNOWN}))
    taken = intervals.merge(intervals.merge(succeeded_ones, indexes), failed_ones)
    found: list[int] = []
    candidate = 0
    for first, last in (*taken, intervals.Interval(completions, completions)):
        end = min(completions, first, candidate + count - len(found))
        found.extend(range(candidate, end))
        candidate = max(candidate, last + 1)
        if len(found) == count or candidate >= completions:
            break
    return found


def surplus(pods: Sequence[core_v1_pb2.Pod], completions: int) -> tuple[list[Any], list[Any]]:
    """Active pods that go, and those that may stay: of each index one stays, and none without a valid index
    (``appendDuplicatedIndexPodsForRemoval``)."""
    by_index: dict[int, list[Any]] = {}
    for pod in sorted(pods, key=of):
        by_index.setdefault(of(pod), []).append(pod)
    removed: list[Any] = []
    left: list[Any] = []
    for index, same in by_index.items():
        if index != UNKNOWN and index < completions:
            ordered = same if len(same) == 1 else deletion_orders.in_order(same)
            removed += ordered[:-1]
            left.append(ordered[-1])
    too_large = [pod for index, same in by_index.items() if index >= completions for pod in same]
    return [*by_index.get(UNKNOWN, ()), *removed, *too_large], left


def generate_name(job_name: str, index: int) -> str:
    """``podGenerateNameWithIndex``."""
    end = f"-{index}-"
    made = job_name + end
    return made if len(made) <= _GENERATED_NAME else made[: _GENERATED_NAME - len(end)] + end


def mark(pod: core_v1_pb2.Pod, job: batch_v1_pb2.Job, index: int, counts: Mapping[str, str]) -> None:
    """Make a pod of the template one of this index."""
    metadata = pod.metadata
    metadata.annotations[INDEX] = metadata.labels[INDEX] = str(index)
    for key, value in counts.items():
        metadata.annotations[key] = value
    pod.spec.hostname = f"{job.metadata.name}-{index}"
    metadata.generateName = generate_name(job.metadata.name, index)


def add_environment(spec: core_v1_pb2.PodSpec) -> None:
    """``addCompletionIndexEnvVariables``."""
    for container in (*spec.initContainers, *spec.containers):
        if all(one.name != ENVIRONMENT for one in container.env):
            variable = container.env.add(name=ENVIRONMENT)
            variable.valueFrom.fieldRef.fieldPath = f"metadata.labels['{INDEX}']"


def success_policy(job: batch_v1_pb2.Job, succeeded: intervals.Intervals) -> str:
    """Which rule of the successPolicy is met, as the condition's message says; "": none (``matchSuccessPolicy``)."""
    if not job.spec.HasField("successPolicy") or not succeeded:
        return ""
    for index, rule in enumerate(job.spec.successPolicy.rules):
        if _is_met(rule, succeeded, job.spec.completions):
            return f"Matched rules at index {index}"
    return ""


def _is_met(rule: batch_v1_pb2.SuccessPolicyRule, succeeded: intervals.Intervals, completions: int) -> bool:
    if not rule.HasField("succeededIndexes"):
        return bool(rule.HasField("succeededCount")) and intervals.total(succeeded) >= int(rule.succeededCount)
    required = intervals.parse(rule.succeededIndexes, completions)
    if not required:
        return False
    found = intervals.overlap(required, succeeded)
    enough = rule.succeededCount if rule.HasField("succeededCount") else intervals.total(required)
    return found == intervals.total(required) or found >= int(enough)
