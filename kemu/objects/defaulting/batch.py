"""The defaults of the group batch."""

from __future__ import annotations

from typing import Any

from kemu.k8s import batch_v1_pb2
from kemu.objects.defaulting import pods, shared


def _default_job(job: Any) -> None:
    spec = job.spec
    pods.default_pod_spec(spec.template.spec)
    if not spec.HasField("completions") and not spec.HasField("parallelism"):
        spec.completions = 1
    if not spec.HasField("parallelism"):
        spec.parallelism = 1
    if not spec.HasField("backoffLimit"):
        # With a limit for each index, the job as a whole has practically none.
        spec.backoffLimit = 2**31 - 1 if spec.HasField("backoffLimitPerIndex") else 6
    if not spec.completionMode:
        spec.completionMode = "NonIndexed"
    if not spec.HasField("suspend"):
        spec.suspend = False
    if not spec.HasField("manualSelector"):
        spec.manualSelector = False
    if not spec.podReplacementPolicy:
        spec.podReplacementPolicy = "Failed" if spec.HasField("podFailurePolicy") else "TerminatingOrFailed"
    if not job.metadata.labels:
        job.metadata.labels.update(spec.template.metadata.labels)


FILL = {
    batch_v1_pb2.Job: _default_job,
}

PREPARE = {
    batch_v1_pb2.Job: shared.prepare_status,
    batch_v1_pb2.CronJob: shared.prepare_status,
}
