"""Every recorded course of a Job or CronJob is kemu's course too, and cron expressions mean the same times."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from kemu.emulated.controllers.jobs import backoffs, completion_indexes, failure_policies
from kemu.emulated.objects import cron_expressions
from kemu.lab.conformance import agreements, case_files, registry
from tests.samples import one_in

DATA = Path(__file__).parent / "data" / "jobs"
FAMILIES = {"jobs": 80, "cronjobs": 60, "schedules": 100}
"""With the number of cases at least."""
SHARE = one_in(6)
"""Of the courses of CronJobs, hours of virtual time and half a second of computing each, CI asks one in so many."""


@pytest.mark.parametrize("family", FAMILIES)
def test_every_case_agrees(family: str) -> None:
    cases = list(case_files.read(DATA / f"{family}.jsonl.gz"))
    assert len(cases) >= FAMILIES[family]
    report = agreements.judge(registry.kind("jobs"), cases[:: SHARE if family == "cronjobs" else 1])
    assert report.total
    assert {one.id: one.differences for one in report.disagreements} == {}


def test_no_family_is_left_out() -> None:
    assert {path.name.removesuffix(".jsonl.gz") for path in DATA.glob("*.jsonl.gz")} == set(FAMILIES)


def never_ignored(job: Any, pod: Any) -> failure_policies.Match:
    found = MATCH(job, pod)
    return found._replace(is_counted=True)


MATCH = failure_policies.match


@pytest.mark.parametrize(
    ("module", "name", "planted"),
    [
        (backoffs, "FIRST_NS", 11 * 1_000_000_000),
        (failure_policies, "match", never_ignored),
        (completion_indexes, "remaining_ns", lambda replaced, now_ns: 0),
        (completion_indexes, "delayed", lambda *given: {}),
    ],
)
def test_planted_bugs_of_jobs_are_found(module: Any, name: str, planted: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, name, planted)
    kind = registry.kind("jobs")
    some = list(case_files.read(DATA / "jobs.jsonl.gz"))[::2]
    assert any(kind.judged(case.question, case.expect)[1] for case in some)


def test_planted_bugs_of_schedules_are_found(monkeypatch: pytest.MonkeyPatch) -> None:
    """Day of month and day of week as if both had to fit."""
    monkeypatch.setattr(cron_expressions.Calendar, "_fits_day", both_fit)
    cron_expressions.parse.cache_clear()
    report = agreements.judge(registry.kind("jobs"), case_files.read(DATA / "schedules.jsonl.gz"))
    assert report.disagreements


def both_fit(calendar: cron_expressions.Calendar, local: Any) -> bool:
    return local.day in calendar.days and local.isoweekday() % 7 in calendar.weekdays
