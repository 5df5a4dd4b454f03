"""The checks of the group batch."""

from __future__ import annotations

from typing import Any

from kemu.errors import Cause
from kemu.k8s import (
    batch_v1_pb2,
)
from kemu.objects.validation import templates
from kemu.objects.validation.causes import IMMUTABLE, invalid, not_supported, required
from kemu.objects.validation.metadata import (
    check_label_selector,
    check_not_negative,
)
from kemu.objects.validation.rules import Rules


def _check_job(job: Any, found: list[Cause]) -> None:
    spec = job.spec
    for field in ("parallelism", "completions", "backoffLimit", "activeDeadlineSeconds", "ttlSecondsAfterFinished"):
        check_not_negative(getattr(spec, field), f"spec.{field}", found)
    modes = ("NonIndexed", "Indexed")
    if spec.completionMode not in modes:
        found.append(not_supported("spec.completionMode", spec.completionMode, modes))
    if spec.completionMode == "Indexed" and not spec.HasField("completions"):
        found.append(required("spec.completions", "when completion mode is Indexed"))
    if spec.HasField("selector"):
        check_label_selector(spec.selector, "spec.selector", found)
    templates.check_template(spec.template, ("OnFailure", "Never"), found)


def _check_job_update(new: Any, old: Any, found: list[Cause]) -> None:
    for field in ("selector", "completionMode", "template"):
        # A suspended job that has not started may still be given another template.
        if field == "template" and old.spec.suspend and not old.status.HasField("startTime"):
            continue
        if getattr(new.spec, field) != getattr(old.spec, field):
            found.append(invalid(f"spec.{field}", getattr(new.spec, field), IMMUTABLE))
    for field in ("parallelism", "backoffLimit", "activeDeadlineSeconds", "ttlSecondsAfterFinished"):
        check_not_negative(getattr(new.spec, field), f"spec.{field}", found)


RULES = {
    batch_v1_pb2.Job: Rules(_check_job, _check_job_update),
    batch_v1_pb2.CronJob: Rules(),
}
