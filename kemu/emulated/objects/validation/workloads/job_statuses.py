"""The checks of the status of a Job (``ValidateJobUpdateStatus``): whoever manages it, no end is undone, no count
shrinks, and no pod runs after the end.

Most rules hold where what they are about has changed, so that a status that was wrong before can be mended bit by bit
(``getStatusValidationOptions``).
"""

from __future__ import annotations

from typing import Any

from google.protobuf.message import Message

from kemu.emulated.objects.validation import checks
from kemu.emulated.objects.validation.causes import IMMUTABLE, INVALID, invalid, required
from kemu.emulated.objects.validation.workloads import indexes
from kemu.errors import Cause
from kemu.messages.k8s import batch_v1_pb2

COMPLETE, FAILED, TARGET, CRITERIA, SUSPENDED = "Complete", "Failed", "FailureTarget", "SuccessCriteriaMet", "Suspended"
_CONDITIONS = "status.conditions"
_COMPLETION_TIME, _START_TIME, _FAILED_INDEXES = "status.completionTime", "status.startTime", "status.failedIndexes"


def check_update(new: batch_v1_pb2.Job, old: batch_v1_pb2.Job, found: list[Cause]) -> None:
    status, was = new.status, old.status
    for field in ("active", "succeeded", "failed", "ready", "terminating"):
        checks.not_negative(getattr(status, field), f"status.{field}", found)
    _check_uncounted(status.uncountedTerminatedPods, found)
    now, before = _true(status), _true(was)
    _check_ends(new, old, now, before, found)
    _check_after_end(status, was, bool(now & {COMPLETE, FAILED}), bool(before & {COMPLETE, FAILED}), new, found)
    _check_indexes(new, was, found)
    _check_counts_at_end(status, was, bool(now & {COMPLETE, FAILED}), bool(before & {COMPLETE, FAILED}), found)
    _check_criteria(new.spec, now, found)
    _check_steps(new, old, now, before, found)


def _true(status: batch_v1_pb2.JobStatus) -> set[str]:
    """The types of its conditions that hold."""
    return {one.type for one in status.conditions if one.status == "True"}


def _wrong_conditions(detail: str) -> Cause:
    return Cause(_CONDITIONS, INVALID, f"Invalid value: {detail}")


def _check_uncounted(pods: batch_v1_pb2.UncountedTerminatedPods, found: list[Cause]) -> None:
    seen: dict[Any, None] = {}
    for field in ("succeeded", "failed"):
        for index, uid in enumerate(getattr(pods, field)):
            path = f"status.uncountedTerminatedPods.{field}[{index}]"
            if uid:
                checks.unique(uid, seen, path, uid, found)
            else:
                found.append(invalid(path, uid, "must not be empty"))


def _check_ends(
    new: batch_v1_pb2.Job, old: batch_v1_pb2.Job, now: set[str], before: set[str], found: list[Cause]
) -> None:
    """Conditions and times that go together."""
    status, was = new.status, old.status
    changed = now ^ before
    has_time = status.HasField("completionTime")
    time_changed = _differs(status, was, "completionTime")
    if {COMPLETE, FAILED} <= now and changed & {COMPLETE, FAILED}:
        found.append(_wrong_conditions("cannot set Complete=True and Failed=true conditions"))
    if {COMPLETE, TARGET} <= now and changed & {COMPLETE, TARGET}:
        found.append(_wrong_conditions("cannot set Complete=True and FailureTarget=true conditions"))
    if COMPLETE in changed or time_changed:
        if has_time and COMPLETE not in now:
            detail = "cannot set completionTime when there is no Complete=True condition"
            found.append(invalid(_COMPLETION_TIME, status.completionTime, detail))
        if not has_time and COMPLETE in now:
            found.append(required(_COMPLETION_TIME, "completionTime is required for Complete jobs"))
    if (time_changed or _differs(status, was, "startTime")) and has_time and status.HasField("startTime"):
        ended, began = status.completionTime, status.startTime
        if (ended.seconds, ended.nanos) < (began.seconds, began.nanos):
            found.append(invalid(_COMPLETION_TIME, ended, "must be equal to or after `startTime`"))
    if FAILED in now and TARGET not in now and (FAILED in changed or _differs(status, was, "failedIndexes")):
        found.append(_wrong_conditions("cannot set Failed=True condition without the FailureTarget=true condition"))
    if COMPLETE in now and CRITERIA not in now and changed & {COMPLETE, CRITERIA}:
        detail = "cannot set Complete=True condition without the SuccessCriteriaMet=true condition"
        found.append(_wrong_conditions(detail))


def _check_after_end(
    status: batch_v1_pb2.JobStatus,
    was: batch_v1_pb2.JobStatus,
    is_over: bool,
    was_over: bool,
    job: batch_v1_pb2.Job,
    found: list[Cause],
) -> None:
    if not is_over:
        return
    if status.active > 0 and (not was_over or status.active != was.active):
        found.append(invalid("status.active", status.active, "active>0 is invalid for finished job"))
    spec = job.spec
    never_runs = spec.suspend and spec.HasField("completions") and spec.completions == 0
    if (not was_over or _differs(status, was, "startTime")) and not never_runs and not status.HasField("startTime"):
        found.append(required(_START_TIME, "startTime is required for finished job"))
    uncounted = status.uncountedTerminatedPods
    if (uncounted.succeeded or uncounted.failed) and (not was_over or uncounted != was.uncountedTerminatedPods):
        found.append(invalid("status.uncountedTerminatedPods", uncounted, "must be empty for finished job"))


def _check_indexes(job: batch_v1_pb2.Job, was: batch_v1_pb2.JobStatus, found: list[Cause]) -> None:
    spec, status = job.spec, job.status
    completed, failed, path = status.completedIndexes, status.failedIndexes, "status.completedIndexes"
    completed_changed, failed_changed = completed != was.completedIndexes, _differs(status, was, "failedIndexes")
    if not completed_changed and not failed_changed:
        return
    has_failed, has_limit = status.HasField("failedIndexes"), spec.HasField("backoffLimitPerIndex")
    has_completions = spec.HasField("completions")
    if completed_changed and has_completions:
        _check_format(completed, spec.completions, path, found)
    if failed_changed and has_completions and has_limit and has_failed:
        _check_format(failed, spec.completions, _FAILED_INDEXES, found)
    if completed_changed and completed and spec.completionMode != "Indexed":
        detail = "cannot set non-empty completedIndexes when non-indexed completion mode"
        found.append(invalid(path, completed, detail))
    if failed_changed and has_failed and not has_limit:
        detail = "cannot set non-null failedIndexes when backoffLimitPerIndex is null"
        found.append(invalid(_FAILED_INDEXES, failed, detail))
    if has_completions and has_failed:
        both = indexes.overlap(completed, failed, spec.completions)
        if both is not None:
            detail = f"failedIndexes and completedIndexes overlap at index: {both}"
            found.append(invalid(_FAILED_INDEXES, failed, detail))


def _check_format(text: str, completions: int, path: str, found: list[Cause]) -> None:
    try:
        indexes.count(text, completions)
    except ValueError as error:
        found.append(invalid(path, text, f"error parsing {path.removeprefix('status.')}: {error}"))


def _check_counts_at_end(
    status: batch_v1_pb2.JobStatus, was: batch_v1_pb2.JobStatus, is_over: bool, was_over: bool, found: list[Cause]
) -> None:
    if is_over and status.terminating > 0 and (not was_over or _differs(status, was, "terminating")):
        found.append(invalid("status.terminating", status.terminating, "terminating>0 is invalid for finished job"))
    changed = _differs(status, was, "ready") or status.active != was.active
    if changed and status.HasField("ready") and status.ready > status.active:
        found.append(invalid("status.ready", status.ready, "cannot set more ready pods than active"))


def _check_criteria(spec: batch_v1_pb2.JobSpec, now: set[str], found: list[Cause]) -> None:
    if {CRITERIA, FAILED} <= now:
        found.append(_wrong_conditions("cannot set SuccessCriteriaMet=True and Failed=true conditions"))
    if {CRITERIA, TARGET} <= now:
        found.append(_wrong_conditions("cannot set SuccessCriteriaMet=True and FailureTarget=true conditions"))
    if spec.HasField("successPolicy") and COMPLETE in now and CRITERIA not in now:
        detail = "cannot set Complete=True for Job with SuccessPolicy unless SuccessCriteriaMet=True"
        found.append(_wrong_conditions(detail))


def _check_steps(
    new: batch_v1_pb2.Job, old: batch_v1_pb2.Job, now: set[str], before: set[str], found: list[Cause]
) -> None:
    """What a status may not undo."""
    status, was, spec = new.status, old.status, new.spec
    undone = [kind for kind in (FAILED, COMPLETE, TARGET) if kind in before and kind not in now]
    found.extend(_wrong_conditions(f"cannot disable the terminal {kind}=True condition") for kind in undone)
    if status.failed < was.failed:
        found.append(invalid("status.failed", status.failed, "cannot decrease the failed counter"))
    can_shrink = spec.completionMode == "Indexed" and not _differs(spec, spec, "completions", "parallelism")
    if status.succeeded < was.succeeded and not can_shrink:
        found.append(invalid("status.succeeded", status.succeeded, "cannot decrease the succeeded counter"))
    has_time = status.HasField("completionTime")
    if has_time and was.HasField("completionTime") and status.completionTime != was.completionTime:
        found.append(invalid(_COMPLETION_TIME, status.completionTime, IMMUTABLE))
    resumes = SUSPENDED in before and any(one.type == SUSPENDED and one.status == "False" for one in status.conditions)
    if was.HasField("startTime") and _differs(status, was, "startTime") and not spec.suspend and not resumes:
        shown = status.startTime if status.HasField("startTime") else None
        found.append(invalid(_START_TIME, shown, "field is immutable for unsuspended job once set"))
    if CRITERIA in before and CRITERIA not in now:
        found.append(_wrong_conditions("cannot disable the SuccessCriteriaMet=True condition"))
    if COMPLETE in before and CRITERIA not in before and CRITERIA in now:
        detail = "cannot set SuccessCriteriaMet=True for Job already has Complete=true conditions"
        found.append(_wrong_conditions(detail))


def _differs(one: Message, other: Message, field: str, other_field: str = "") -> bool:
    """Whether an optional field is there, or what it is, differs."""
    other_field = other_field or field
    has: bool = one.HasField(field)
    return has != other.HasField(other_field) or bool(getattr(one, field) != getattr(other, other_field))
