"""The fields of Jobs and CronJobs."""

from __future__ import annotations

from kemu.emulated.objects.fields.sorts import Reason, Sort, message

ACCEPTED = ("Job", "CronJob")
"""Kinds that scenarios may hold."""

SORTS: dict[str, Sort] = {
    **message("Job", parts="metadata spec", harmless={Reason.SERVER: "status"}),
    **message(
        "JobSpec",
        acts="parallelism completions activeDeadlineSeconds podFailurePolicy successPolicy backoffLimit "
        "backoffLimitPerIndex maxFailedIndexes selector manualSelector ttlSecondsAfterFinished completionMode suspend "
        "podReplacementPolicy",
        parts="template",
        notes={"managedBy": "a Job that names another controller is left alone"},
    ),
    **message("CronJob", parts="metadata spec", harmless={Reason.SERVER: "status"}),
    **message(
        "CronJobSpec",
        acts="schedule timeZone startingDeadlineSeconds concurrencyPolicy suspend successfulJobsHistoryLimit "
        "failedJobsHistoryLimit",
        parts="jobTemplate",
    ),
    **message("JobTemplateSpec", parts="metadata spec"),
}
