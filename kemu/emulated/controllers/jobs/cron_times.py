"""Which run of a CronJob is due, and when to look again (``utils.go`` of ``pkg/controller/cronjob``)."""

from __future__ import annotations

from typing import NamedTuple

from kemu.emulated.objects import cron_expressions, meta
from kemu.messages.k8s import batch_v1_pb2
from kemu.runtime.env import MILLISECOND_NS, SECOND_NS

PADDING_NS = 100 * MILLISECOND_NS
"""Later than the schedule says, for clocks that differ (``nextScheduleDelta``)."""
MANY = 100
"""More runs missed than this are reported."""


class ScheduleError(ValueError):
    """The expression can be read but names no two times."""


class Missed(NamedTuple):
    """What ``mostRecentScheduleTime`` finds. Times are Unix nanoseconds."""

    since_ns: int
    """The last run, or the creation."""
    latest_ns: int | None
    """The latest run that is due; None: none is."""
    number: int
    """How many are due, roughly."""


def missed(
    cron_job: batch_v1_pb2.CronJob, now_ns: int, schedule: cron_expressions.Schedule, with_deadline: bool
) -> Missed:
    """``with_deadline``: runs for which it is too late do not count. Raises ScheduleError."""
    spec, status = cron_job.spec, cron_job.status
    since_ns = meta.unix_ns(cron_job.metadata.creationTimestamp)
    if status.HasField("lastScheduleTime"):
        since_ns = meta.unix_ns(status.lastScheduleTime)
    if with_deadline and spec.HasField("startingDeadlineSeconds"):
        since_ns = max(since_ns, now_ns - int(spec.startingDeadlineSeconds) * SECOND_NS)
    first_ns = schedule.next(since_ns)
    second_ns = schedule.next(first_ns)
    if now_ns < first_ns:
        return Missed(since_ns, None, 0)
    if now_ns < second_ns:
        return Missed(since_ns, first_ns, 0)
    interval_s = (second_ns - first_ns + SECOND_NS // 2) // SECOND_NS
    if interval_s < 1:
        raise ScheduleError("time difference between two schedules is less than 1 second")
    count = (now_ns - first_ns) // SECOND_NS // interval_s + 1
    # Of an irregular schedule this may be a little early, or late.
    at_ns = schedule.next(first_ns + (count - 2) * interval_s * SECOND_NS)
    latest_ns = None
    while cron_expressions.NEVER < at_ns <= now_ns:
        latest_ns = at_ns
        at_ns = schedule.next(at_ns)
    return Missed(since_ns, latest_ns, count)


def wait_ns(cron_job: batch_v1_pb2.CronJob, now_ns: int, schedule: cron_expressions.Schedule) -> int:
    """Until the next run, with the padding (``nextScheduleTimeDuration``)."""
    try:
        found = missed(cron_job, now_ns, schedule, False)
    except ScheduleError:
        after_ns = now_ns
    else:
        after_ns = found.latest_ns if found.latest_ns is not None else now_ns if found.number else found.since_ns
    return schedule.next(after_ns) + PADDING_NS - now_ns
