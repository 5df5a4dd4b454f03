"""Recorded cases of Jobs and CronJobs, asked again: a function for each family."""

from __future__ import annotations

import datetime as dt
import re
from collections.abc import Callable
from typing import Any

from kemu.emulated.objects import cron_expressions
from kemu.lab.conformance import comparisons
from kemu.lab.conformance.jobs import cron_jobs, jobs

Json = dict[str, Any]
_TIME = re.compile(r"(.*?)(?:\.(\d+))?(Z|[+-]\d\d:\d\d)")


def answer(case: Json) -> Json:
    """What kemu decides about a case. Raises KeyError for an unknown family."""
    return _FAMILIES[case["family"]](case)


def agrees(expect: Json, answered: Json) -> list[str]:
    return comparisons.compare(expect, answered)


def _schedules(case: Json) -> Json:
    try:
        schedule = cron_expressions.parse(case["schedule"])
    except cron_expressions.CronError as error:
        return {"error": str(error)}
    following = []
    for text in case["from"]:
        at_ns, times = _unix_ns(text), []
        for _ in range(case["count"]):
            at_ns = schedule.next(at_ns)
            times.append("never" if at_ns == cron_expressions.NEVER else _text(at_ns))
            if at_ns == cron_expressions.NEVER:
                break
        following.append(times)
    return {"next": following}


def _unix_ns(text: str) -> int:
    """Unix of a time in RFC 3339, with nanoseconds."""
    found = _TIME.fullmatch(text)
    assert found is not None, text
    seconds, fraction, zone = found.groups()
    at = dt.datetime.fromisoformat(seconds + zone.replace("Z", "+00:00"))
    return int(at.timestamp()) * cron_expressions.SECOND_NS + int((fraction or "").ljust(9, "0"))


def _text(unix_ns: int) -> str:
    at = dt.datetime.fromtimestamp(unix_ns // cron_expressions.SECOND_NS, dt.UTC)
    return at.strftime("%Y-%m-%dT%H:%M:%SZ")


_FAMILIES: dict[str, Callable[[Json], Json]] = {
    "jobs": jobs.answer,
    "cronjobs": cron_jobs.answer,
    "schedules": _schedules,
}
