"""Conditions of Jobs. Unlike those of other kinds they are replaced whole, times included (``newCondition``)."""

from __future__ import annotations

from kemu.emulated.objects import meta
from kemu.messages.k8s import batch_v1_pb2

COMPLETE, FAILED, SUSPENDED = "Complete", "Failed", "Suspended"
FAILURE_TARGET, SUCCESS_CRITERIA_MET = "FailureTarget", "SuccessCriteriaMet"


def new(condition_type: str, reason: str, message: str, now_ns: int, status: str = "True") -> batch_v1_pb2.JobCondition:
    """``now_ns``: Unix time."""
    condition = batch_v1_pb2.JobCondition(type=condition_type, status=status, reason=reason, message=message)
    meta.set_time(condition.lastProbeTime, now_ns)
    meta.set_time(condition.lastTransitionTime, now_ns)
    return condition


def true_one(job: batch_v1_pb2.Job, condition_type: str) -> batch_v1_pb2.JobCondition | None:
    """The condition of this type, if it is True."""
    condition = meta.get_condition(job.status.conditions, condition_type)
    return condition if condition is not None and condition.status == "True" else None


def finished(job: batch_v1_pb2.Job) -> str:
    """The type of the condition by which the Job has ended (``FinishedCondition``); "": it has not."""
    for condition in job.status.conditions:
        if condition.type in (COMPLETE, FAILED) and condition.status == "True":
            return str(condition.type)
    return ""


def ensure(job: batch_v1_pb2.Job, condition: batch_v1_pb2.JobCondition) -> bool:
    """``ensureJobConditionStatus``: replace or append it; one that is new and False says nothing. Returns whether
    anything has changed."""
    known = meta.get_condition(job.status.conditions, condition.type)
    if known is None:
        if condition.status == "False":
            return False
        job.status.conditions.append(condition)
        return True
    if (known.status, known.reason, known.message) == (condition.status, condition.reason, condition.message):
        return False
    known.CopyFrom(condition)
    return True
