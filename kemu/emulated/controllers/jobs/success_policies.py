"""Whether a Job's successPolicy is met (``matchSuccessPolicy`` of ``pkg/controller/job``)."""

from __future__ import annotations

from kemu.emulated.controllers.jobs import intervals
from kemu.messages.k8s import batch_v1_pb2


def met(job: batch_v1_pb2.Job, succeeded: intervals.Intervals) -> str:
    """Which rule is met, as the condition's message says; "": none."""
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
