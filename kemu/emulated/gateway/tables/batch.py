"""The group batch."""

from __future__ import annotations

from kemu.emulated.gateway.tables import texts
from kemu.emulated.gateway.tables.printers import AGE, CONTAINERS, IMAGES, NAME, SELECTOR, Cell, Column, Printer
from kemu.messages.k8s import batch_v1_pb2


def _job(job: batch_v1_pb2.Job, now_ns: int) -> list[Cell]:
    spec, status = job.spec, job.status
    if spec.HasField("completions"):
        completions = f"{status.succeeded}/{spec.completions}"
    elif spec.parallelism > 1:
        completions = f"{status.succeeded}/1 of {spec.parallelism}"
    else:
        completions = f"{status.succeeded}/1"
    taken = ""
    if status.HasField("startTime"):
        end_ns = texts.nanoseconds(status.completionTime) if status.HasField("completionTime") else now_ns
        taken = texts.duration(end_ns - texts.nanoseconds(status.startTime))
    return [
        job.metadata.name,
        _status(job),
        completions,
        taken,
        texts.age(job, now_ns),
        *texts.containers(spec.template.spec),
        texts.selector(spec),
    ]


def _status(job: batch_v1_pb2.Job) -> str:
    true = {one.type: one.status == "True" for one in reversed(job.status.conditions)}
    for condition in ("Complete", "Failed"):
        if true.get(condition):
            return condition
    if job.metadata.HasField("deletionTimestamp"):
        return "Terminating"
    for condition in ("Suspended", "FailureTarget", "SuccessCriteriaMet"):
        if true.get(condition):
            return condition
    return "Running"


def _cron_job(cron_job: batch_v1_pb2.CronJob, now_ns: int) -> list[Cell]:
    spec, status = cron_job.spec, cron_job.status
    job = spec.jobTemplate.spec
    return [
        cron_job.metadata.name,
        spec.schedule,
        texts.optional(spec, "timeZone", texts.NONE),
        texts.optional(spec, "suspend", texts.UNSET),
        len(status.active),
        texts.since(status.lastScheduleTime, now_ns) if status.HasField("lastScheduleTime") else texts.NONE,
        texts.age(cron_job, now_ns),
        *texts.containers(job.template.spec),
        texts.selector(job),
    ]


PRINTERS = {
    batch_v1_pb2.Job: Printer(
        (
            NAME,
            Column("Status", "Whether the job runs, is suspended or has ended."),
            Column("Completions", "Number of pods that succeeded, of those that have to."),
            Column("Duration", "Time from the start to the end."),
            AGE,
            CONTAINERS,
            IMAGES,
            SELECTOR,
        ),
        _job,
    ),
    batch_v1_pb2.CronJob: Printer(
        (
            NAME,
            Column("Schedule", "When jobs start, as a cron expression."),
            Column("Timezone", "Time zone of the schedule."),
            Column("Suspend", "Whether no new jobs start.", "boolean"),
            Column("Active", "Number of jobs that run.", "integer"),
            Column("Last Schedule", "Time since the last job was due."),
            AGE,
            CONTAINERS,
            IMAGES,
            SELECTOR,
        ),
        _cron_job,
    ),
}
