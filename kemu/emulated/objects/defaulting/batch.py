"""The defaults of the group batch."""

from __future__ import annotations

from kemu.emulated.objects.defaulting import pods, shared
from kemu.messages.k8s import batch_v1_pb2, meta_v1_pb2

JOB_NAMES = ("job-name", "batch.kubernetes.io/job-name")
JOB_UIDS = ("controller-uid", "batch.kubernetes.io/controller-uid")
"""Labels of the pods of a Job whose selector is generated: the old ones and those with a prefix."""


def _default_job(job: batch_v1_pb2.Job) -> None:
    _default_spec(job.spec)
    if job.metadata.uid or job.spec.manualSelector or JOB_UIDS[0] in job.spec.template.metadata.labels:
        _default_labels(job)


def _default_labels(job: batch_v1_pb2.Job) -> None:
    """A Job without labels has those of its pods. In Go both are one map then, which gets the generated labels later:
    so a new Job waits for these, if there will be any."""
    if not job.metadata.labels:
        job.metadata.labels.update(job.spec.template.metadata.labels)


def _default_spec(spec: batch_v1_pb2.JobSpec) -> None:
    pods.default_pod_spec(spec.template.spec)
    if not spec.HasField("completions") and not spec.HasField("parallelism"):
        spec.completions = 1
    if not spec.HasField("parallelism"):
        spec.parallelism = 1
    if not spec.HasField("backoffLimit"):
        # With a limit for each index, the job as a whole has practically none.
        spec.backoffLimit = 2**31 - 1 if spec.HasField("backoffLimitPerIndex") else 6
    if not spec.HasField("completionMode"):
        spec.completionMode = "NonIndexed"
    if not spec.HasField("suspend"):
        spec.suspend = False
    if not spec.HasField("manualSelector"):
        spec.manualSelector = False
    if not spec.HasField("podReplacementPolicy"):
        spec.podReplacementPolicy = "Failed" if spec.HasField("podFailurePolicy") else "TerminatingOrFailed"
    _default_policy(spec)


def _default_policy(spec: batch_v1_pb2.JobSpec) -> None:
    for rule in spec.podFailurePolicy.rules:
        for pattern in rule.onPodConditions:
            if not pattern.status:
                pattern.status = "True"


def _default_cron_job(cron_job: batch_v1_pb2.CronJob) -> None:
    """``SetDefaults_CronJob``. Of the template only the pods get defaults, the Jobs theirs when they are created."""
    spec = cron_job.spec
    pods.default_pod_spec(spec.jobTemplate.spec.template.spec)
    _default_policy(spec.jobTemplate.spec)
    if not spec.concurrencyPolicy:
        spec.concurrencyPolicy = "Allow"
    if not spec.HasField("suspend"):
        spec.suspend = False
    if not spec.HasField("successfulJobsHistoryLimit"):
        spec.successfulJobsHistoryLimit = 3
    if not spec.HasField("failedJobsHistoryLimit"):
        spec.failedJobsHistoryLimit = 1


def _prepare_job(job: batch_v1_pb2.Job) -> None:
    """``generateSelector`` of ``pkg/registry/batch/job``: a Job selects the pods with its own UID."""
    shared.prepare_status(job)
    if not job.spec.manualSelector:
        _generate_selector(job.spec, job.metadata)
    _default_labels(job)


def _generate_selector(spec: batch_v1_pb2.JobSpec, metadata: meta_v1_pb2.ObjectMeta) -> None:
    labels = spec.template.metadata.labels
    for names, value in ((JOB_NAMES, metadata.name), (JOB_UIDS, metadata.uid)):
        for name in names:
            if name not in labels:
                labels[name] = value
    if JOB_UIDS[1] not in spec.selector.matchLabels:
        spec.selector.matchLabels[JOB_UIDS[1]] = metadata.uid


FILL = {
    batch_v1_pb2.Job: _default_job,
    batch_v1_pb2.CronJob: _default_cron_job,
}

PREPARE = {
    batch_v1_pb2.Job: _prepare_job,
    batch_v1_pb2.CronJob: shared.prepare_status,
}
