"""What a Job's podFailurePolicy says about a failed pod (``pod_failure_policy.go`` of ``pkg/controller/job``)."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, NamedTuple

from kemu.emulated.objects.pods import pod_phases
from kemu.messages.k8s import batch_v1_pb2, core_v1_pb2

FAIL_JOB, FAIL_INDEX, IGNORE, COUNT = "FailJob", "FailIndex", "Ignore", "Count"


class Match(NamedTuple):
    """``matchPodFailurePolicy``."""

    action: str = ""
    """Action of the first rule that matches; "": none does."""
    is_counted: bool = True
    """Towards backoffLimit, or that of the index."""
    message: str = ""
    """Why the Job fails; "": it does not."""


def only_replaces_failed(job: batch_v1_pb2.Job) -> bool:
    """Pods that terminate are replaced only when they have ended (``onlyReplaceFailedPods``)."""
    return job.spec.podReplacementPolicy == "Failed" or bool(job.spec.HasField("podFailurePolicy"))


def is_failed(pod: core_v1_pb2.Pod, job: batch_v1_pb2.Job) -> bool:
    """``isPodFailed``: a pod that is being deleted counts too, unless the Job waits for its end."""
    if pod.status.phase == pod_phases.FAILED:
        return True
    if only_replaces_failed(job):
        return False
    return bool(pod.metadata.HasField("deletionTimestamp")) and pod.status.phase != pod_phases.SUCCEEDED


def match(job: batch_v1_pb2.Job, pod: core_v1_pb2.Pod) -> Match:
    """What applies to a failed pod."""
    if not job.spec.HasField("podFailurePolicy"):
        return Match()
    for index, rule in enumerate(job.spec.podFailurePolicy.rules):
        why = _matches(rule, pod)
        if not why or rule.action not in (FAIL_JOB, FAIL_INDEX, IGNORE, COUNT):
            continue
        if rule.action == FAIL_JOB:
            return Match(FAIL_JOB, True, f"{why} matching {FAIL_JOB} rule at index {index}")
        return Match(rule.action, rule.action != IGNORE)
    return Match()


def _matches(rule: batch_v1_pb2.PodFailurePolicyRule, pod: core_v1_pb2.Pod) -> str:
    """What of the pod matches, as the message of FailJob begins; "": nothing."""
    metadata, status = pod.metadata, pod.status
    name = f"{metadata.namespace}/{metadata.name}"
    if rule.HasField("onExitCodes"):
        found = _exited(status.containerStatuses, rule.onExitCodes)
        found = found or _exited(status.initContainerStatuses, rule.onExitCodes)
        if found is None:
            return ""
        return f"Container {found.name} for pod {name} failed with exit code {found.state.terminated.exitCode}"
    for condition in status.conditions:
        if any(one.type == condition.type and one.status == condition.status for one in rule.onPodConditions):
            return f"Pod {name} has condition {condition.type}"
    return ""


def _exited(statuses: Iterable[Any], wanted: Any) -> Any:
    """The first container whose exit code matches (``getMatchingContainerFromList``)."""
    for status in statuses:
        if not status.state.HasField("terminated"):
            continue
        if wanted.HasField("containerName") and wanted.containerName != status.name:
            continue
        code = status.state.terminated.exitCode
        if code and wanted.operator in ("In", "NotIn") and (code in wanted.values) == (wanted.operator == "In"):
            return status
    return None
