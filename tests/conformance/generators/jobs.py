"""Courses of Jobs and CronJobs, and cron expressions.

Most numbers are small, so that limits are met; most times are whole seconds, so that what Kubernetes rounds is met too.
"""

from __future__ import annotations

import datetime as dt
import random
from typing import Any

Json = dict[str, Any]
FAMILIES = ("jobs", "cronjobs", "schedules")
FINALIZER = "batch.kubernetes.io/job-tracking"
INDEX = "batch.kubernetes.io/job-completion-index"
FAILURES = "batch.kubernetes.io/job-index-failure-count"
IGNORED = "batch.kubernetes.io/job-index-ignored-failure-count"
_MONTHS = ["jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"]
_DAYS = ["sun", "mon", "tue", "wed", "thu", "fri", "sat"]
# Without Pacific/Apia, where 2011-12-30 never was: Kubernetes' parser looks for that day for ever.
_ZONES = (
    "Europe/Berlin", "America/New_York", "America/Sao_Paulo", "Asia/Tokyo", "Asia/Kolkata", "Australia/Lord_Howe",
    "Africa/Casablanca", "Asia/Beirut", "UTC", "America/St_Johns", "Europe/London",
)  # fmt: skip


def case(family: str, seed: int, number: int) -> Json:
    """The case of this number, of a family of :data:`FAMILIES`."""
    draw = random.Random(f"{family} {seed} {number}")
    made = _MAKERS[family](draw)
    return {**made, "id": f"{family}-s{seed}-{number:05}", "family": family}


# Jobs ---------------------------------------------------------------------------------------------------------------


def _job(draw: random.Random) -> Json:
    job = _job_object(draw)
    events = sorted(_events(draw, job), key=lambda event: event["atMs"])
    return {
        "job": job,
        "pods": _pods(draw, job),
        "behaviours": [_behaviour(draw) for _ in range(draw.randint(1, 5))],
        "events": events,
        "horizonMs": draw.choice((60_000, 120_000, 300_000, 1_500_000)) + 123,
    }


def _job_object(draw: random.Random) -> Json:
    spec: Json = {
        "parallelism": draw.choice((0, 1, 1, 2, 3, 5)),
        "backoffLimit": draw.choice((0, 1, 2, 3, 6, 6)),
        "completionMode": draw.choice(("NonIndexed", "Indexed")),
        "suspend": draw.random() < 0.12,
        "manualSelector": True,
        "podReplacementPolicy": draw.choice(("TerminatingOrFailed", "TerminatingOrFailed", "Failed")),
        "selector": {"matchLabels": {"job": "j"}},
    }
    indexed = spec["completionMode"] == "Indexed"
    if indexed or draw.random() < 0.75:
        spec["completions"] = draw.choice((0, 1, 1, 2, 3, 4, 6))
    if draw.random() < 0.2:
        spec["activeDeadlineSeconds"] = draw.choice((1, 5, 20, 45, 100))
    restart = draw.choice(("Never", "Never", "OnFailure"))
    if indexed and draw.random() < 0.45:
        spec["backoffLimitPerIndex"] = draw.choice((0, 1, 2))
        spec["backoffLimit"] = draw.choice((2**31 - 1, 2**31 - 1, 3))
        if draw.random() < 0.4:
            spec["maxFailedIndexes"] = draw.choice((0, 1, 2))
    if indexed and draw.random() < 0.3:
        spec["successPolicy"] = {"rules": [_success_rule(draw, spec) for _ in range(draw.randint(1, 2))]}
    if restart == "Never" and draw.random() < 0.45:
        spec["podReplacementPolicy"] = "Failed"
        spec["podFailurePolicy"] = {"rules": [_failure_rule(draw, spec) for _ in range(draw.randint(1, 3))]}
    if draw.random() < 0.03:
        spec["managedBy"] = draw.choice(("kubernetes.io/job-controller", "example.com/other"))
    container: Json = {"name": "c", "image": "i"}
    if draw.random() < 0.1:
        container["env"] = [{"name": "JOB_COMPLETION_INDEX", "value": "7"}]
    spec["template"] = {
        "metadata": {"labels": {"job": "j"}, "annotations": draw.choice(({"a": "b"}, {"c": "d"}))},
        "spec": {
            "restartPolicy": restart,
            "terminationGracePeriodSeconds": draw.choice((1, 3, 12)),
            "containers": [container],
        },
    }
    name = draw.choice(("j", "j", "j", "a-job-with-a-name-so-long-that-its-pods-cut-it-off-in-theirs"))
    metadata = {"name": name, "namespace": "default", "uid": "uid-job", "labels": {"job": "j"}, "generation": 1}
    return {"apiVersion": "batch/v1", "kind": "Job", "metadata": metadata, "spec": spec}


def _success_rule(draw: random.Random, spec: Json) -> Json:
    rule: Json = {}
    if draw.random() < 0.6:
        rule["succeededIndexes"] = draw.choice(("0", "0-1", "1,3", "0,2-3", "2-5"))
    if not rule or draw.random() < 0.4:
        rule["succeededCount"] = draw.choice((1, 2, 3))
    return rule


def _failure_rule(draw: random.Random, spec: Json) -> Json:
    actions = ["FailJob", "Ignore", "Count"] + ["FailIndex"] * ("backoffLimitPerIndex" in spec) * 2
    rule: Json = {"action": draw.choice(actions)}
    if draw.random() < 0.5:
        codes = {"operator": draw.choice(("In", "NotIn")), "values": sorted(draw.sample((1, 2, 3, 137), 2))}
        if draw.random() < 0.3:
            codes["containerName"] = "c"
        rule["onExitCodes"] = codes
    else:
        status = draw.choice(("True", "True", "False"))
        rule["onPodConditions"] = [{"type": draw.choice(("DisruptionTarget", "Ready")), "status": status}]
    return rule


def _behaviour(draw: random.Random) -> Json:
    start = draw.choice((0, 1000, 1000, 2500))
    behaviour: Json = {"startMs": start + 7, "readyMs": 0, "endMs": 0, "exitCode": 0}
    if draw.random() < 0.6:
        behaviour["readyMs"] = start + draw.choice((411, 2623, 4734))
    if draw.random() < 0.9:
        behaviour["endMs"] = start + draw.choice((1013, 3021, 8033, 8047, 20_059, 47_061))
        behaviour["exitCode"] = draw.choice((0, 0, 1, 2, 3))
        behaviour["disrupted"] = draw.random() < 0.2
    if draw.random() < 0.1:
        behaviour["restarts"] = draw.choice((1, 2, 4))
    return behaviour


def _events(draw: random.Random, job: Json) -> list[Json]:
    events: list[Json] = []
    for number in range(draw.choice((0, 0, 1, 1, 2, 3, 4))):
        at_ms = draw.randrange(1, 60) * 1000 + 301 + 100 * number
        kind = draw.random()
        if kind < 0.4:
            spec = _change(draw, job)
            events.append({"atMs": at_ms, "do": "patchJob", "spec": spec})
        elif kind < 0.5:
            verb = draw.choice(("create", "patch", "delete", "updateStatus"))
            events.append({"atMs": at_ms, "do": "fail", "verb": verb, "count": draw.choice((1, 1, 2))})
        elif kind < 0.55:
            events.append({"atMs": at_ms, "do": "deleteJob"})
        else:
            events.append(
                {
                    "atMs": at_ms,
                    "do": draw.choice(("deletePod", "deletePod", "disruptPod", "relabelPod")),
                    "pod": _name(draw, job),
                    "labels": draw.choice(({"job": "j"}, {"job": "other"})),
                }
            )
    return events


def _change(draw: random.Random, job: Json) -> Json:
    spec = job["spec"]
    kind = draw.randrange(5)
    if kind < 2:
        return {"suspend": draw.random() < 0.6}
    if kind == 2:
        return {"activeDeadlineSeconds": draw.choice((3, 30, 90))}
    if kind == 3 and spec["completionMode"] == "Indexed":
        count = draw.choice((1, 2, 3))
        return {"parallelism": count, "completions": count}
    return {"parallelism": draw.choice((0, 1, 2, 4))}


def _name(draw: random.Random, job: Json) -> str:
    """Of a pod that there may be."""
    name = job["metadata"]["name"]
    if draw.random() < 0.15:
        return f"old-{draw.randrange(3)}"
    if job["spec"]["completionMode"] != "Indexed":
        return f"{name}-{draw.randrange(4):03}"
    end = f"-{draw.randrange(3)}-"
    whole = name + end
    made = whole if len(whole) <= 58 else whole[: 58 - len(end)] + end
    return f"{made}{draw.randrange(2):03}"


def _pods(draw: random.Random, job: Json) -> list[Json]:
    """Pods that are there before the controller sees the Job: its own, orphans, others'."""
    count = draw.choice((0, 0, 0, 1, 2, 4))
    return [_pod(draw, job, number) for number in range(count)]


def _pod(draw: random.Random, job: Json, number: int) -> Json:
    ended = draw.random() < 0.5
    phase = draw.choice(("Succeeded", "Failed", "Failed")) if ended else draw.choice(("Pending", "Running"))
    at = f"1999-12-31T23:59:{draw.randrange(10, 59)}Z"
    metadata: Json = {
        "name": f"old-{number}",
        "namespace": "default",
        "uid": f"uid-old-{number}",
        "creationTimestamp": f"1999-12-31T23:5{number}:0{number}Z",
        "labels": {"job": draw.choice(("j", "j", "j", "other"))},
    }
    owner = draw.random()
    if owner < 0.8:
        uid = "uid-job" if owner < 0.7 else "uid-other"
        metadata["ownerReferences"] = [
            {"apiVersion": "batch/v1", "kind": "Job", "name": job["metadata"]["name"], "uid": uid, "controller": True,
             "blockOwnerDeletion": True}
        ]  # fmt: skip
    if draw.random() < 0.8:
        metadata["finalizers"] = [FINALIZER]
    if job["spec"]["completionMode"] == "Indexed" and draw.random() < 0.9:
        metadata["annotations"] = {INDEX: str(draw.choice((0, 0, 1, 2, 7)))}
        if draw.random() < 0.5:
            metadata["annotations"][FAILURES] = str(draw.choice((0, 1, 2)))
        if draw.random() < 0.2:
            metadata["annotations"][IGNORED] = "1"
    status: Json = {"phase": phase}
    spec: Json = {"restartPolicy": "Never", "containers": [{"name": "c", "image": "i"}]}
    spec["terminationGracePeriodSeconds"] = 2
    if phase != "Pending":
        spec["nodeName"] = "node"
        state: Json = {"running": {}}
        if ended:
            state = {
                "terminated": {"exitCode": 0 if phase == "Succeeded" else draw.choice((1, 2, 3)), "finishedAt": at}
            }
        status["containerStatuses"] = [
            {"name": "c", "image": "i", "imageID": "", "ready": False, "restartCount": draw.choice((0, number)),
             "state": state}
        ]  # fmt: skip
        ready = "False" if ended or draw.random() < 0.5 else "True"
        status["conditions"] = [{"type": "Ready", "status": ready, "lastTransitionTime": at}]
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec, "status": status}


# CronJobs -----------------------------------------------------------------------------------------------------------


def _cron_job(draw: random.Random) -> Json:
    start_s = draw.choice((3600, 86_400, 40_000, 5_000_000)) + draw.randrange(3600)
    spec: Json = {
        "schedule": _plain_schedule(draw),
        "concurrencyPolicy": draw.choice(("Allow", "Forbid", "Replace")),
        "suspend": draw.random() < 0.1,
        "jobTemplate": {
            "metadata": {"labels": {"l": "1"}, "annotations": {"a": "2"}},
            "spec": {
                "template": {
                    "metadata": {"labels": {"p": "q"}},
                    "spec": {"restartPolicy": "Never", "containers": [{"name": "c", "image": "i"}]},
                }
            },
        },
    }
    for field in ("successfulJobsHistoryLimit", "failedJobsHistoryLimit"):
        if draw.random() < 0.85:
            spec[field] = draw.choice((0, 1, 1, 3))
    if draw.random() < 0.35:
        spec["startingDeadlineSeconds"] = draw.choice((5, 60, 200, 7200))
    if draw.random() < 0.3:
        spec["timeZone"] = draw.choice(_ZONES)
    created_s = start_s - draw.choice((0, 30, 600, 3600, 3600))
    cron_job: Json = {
        "apiVersion": "batch/v1",
        "kind": "CronJob",
        "metadata": {"name": "c", "namespace": "default", "uid": "uid-c", "creationTimestamp": _time(created_s)},
        "spec": spec,
        "status": {},
    }
    jobs = [_old_job(draw, number, start_s) for number in range(draw.choice((0, 0, 1, 2, 5)))]
    known = [one["metadata"]["name"] for one in jobs if draw.random() < 0.7]
    if known and draw.random() < 0.3:
        known.append("c-gone")
    if known:
        cron_job["status"]["active"] = [
            {"kind": "Job", "apiVersion": "batch/v1", "namespace": "default", "name": name, "uid": f"uid-{name}"}
            for name in known
        ]
    if draw.random() < 0.4:
        cron_job["status"]["lastScheduleTime"] = _time(start_s - draw.randrange(1, 60) * 60)
    horizon_ms = draw.choice((600, 3600, 14_400)) * 1000 + 57
    events = sorted(_cron_events(draw, horizon_ms), key=lambda event: event["atMs"])
    return {
        "cronJob": cron_job,
        "jobs": jobs,
        "behaviours": [_job_behaviour(draw) for _ in range(draw.randint(1, 3))],
        "events": events,
        "startMs": start_s * 1000,
        "horizonMs": horizon_ms,
    }


def _time(unix_s: int) -> str:
    """Counted from the epoch of recorded cases."""
    at = dt.datetime(2000, 1, 1, tzinfo=dt.UTC) + dt.timedelta(seconds=unix_s)
    return at.strftime("%Y-%m-%dT%H:%M:%SZ")


def _plain_schedule(draw: random.Random) -> str:
    return draw.choice(
        ("* * * * *", "*/2 * * * *", "*/5 * * * *", "7,11,59 * * * *", "0 * * * *", "30 */2 * * *", "@hourly",
         "@every 90s", "@every 10m", "@every 1h", "15 2 * * *", "59 23 31 2 *", "* 1 * * *")
    )  # fmt: skip


def _job_behaviour(draw: random.Random) -> Json:
    start = draw.choice((713, 1213))
    end = draw.choice((0, start + 2011, start + 45_019, start + 100_023, start + 400_027, start + 4_000_031))
    return {"startMs": start, "endMs": end, "fails": draw.random() < 0.4}


def _old_job(draw: random.Random, number: int, start_s: int) -> Json:
    name = f"c-old-{number}"
    owner = "uid-c" if draw.random() < 0.9 else "uid-other"
    status: Json = {}
    began_s = start_s - 5000 + 100 * number
    if draw.random() < 0.9:
        status["startTime"] = _time(began_s)
    end = draw.choice(("", "Complete", "Complete", "Failed"))
    if end:
        status["conditions"] = [{"type": end, "status": "True", "lastTransitionTime": _time(began_s + 50)}]
        if end == "Complete":
            status["completionTime"] = _time(began_s + 50)
    return {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {
            "name": name,
            "namespace": "default",
            "uid": f"uid-{name}",
            "ownerReferences": [
                {"apiVersion": "batch/v1", "kind": "CronJob", "name": "c", "uid": owner, "controller": True,
                 "blockOwnerDeletion": True}
            ],
        },
        "spec": {"template": {"spec": {"restartPolicy": "Never", "containers": [{"name": "c", "image": "i"}]}}},
        "status": status,
    }  # fmt: skip


def _cron_events(draw: random.Random, horizon_ms: int) -> list[Json]:
    events: list[Json] = []
    for number in range(draw.choice((0, 0, 1, 2, 3))):
        at_ms = draw.randrange(1, horizon_ms // 1000) * 1000 + 301 + 100 * number
        kind = draw.random()
        if kind < 0.25:
            events.append({"atMs": at_ms, "do": "fail", "verb": draw.choice(("create", "delete"))})
        elif kind < 0.35:
            events.append({"atMs": at_ms, "do": "deleteJob", "job": f"c-old-{draw.randrange(3)}"})
        elif kind < 0.4:
            events.append({"atMs": at_ms, "do": "deleteCronJob"})
        else:
            spec = draw.choice(
                ({"suspend": True}, {"suspend": False}, {"schedule": _plain_schedule(draw)},
                 {"concurrencyPolicy": "Allow"}, {"startingDeadlineSeconds": 100}, {"timeZone": "Asia/Kolkata"})
            )  # fmt: skip
            events.append({"atMs": at_ms, "do": "patchCronJob", "spec": spec})
    return events


# Cron expressions ---------------------------------------------------------------------------------------------------


def _schedule(draw: random.Random) -> Json:
    text = _expression(draw)
    if draw.random() < 0.5:
        zone = draw.choice((*_ZONES, "Nowhere/Here") if draw.random() < 0.2 else _ZONES)
        text = f"{draw.choice(('TZ', 'CRON_TZ'))}={zone} {text}"
    begin = [
        f"20{draw.randrange(0, 37):02}-{draw.randrange(1, 13):02}-{draw.randrange(1, 29):02}"
        f"T{draw.randrange(24):02}:{draw.randrange(60):02}:{draw.randrange(60):02}"
        f"{draw.choice(('', '', '.5', '.000000001'))}Z"
        for _ in range(4)
    ]
    # When clocks change.
    begin += draw.sample(
        ("2024-03-31T00:10:00Z", "2024-10-26T23:10:00Z", "2024-03-10T05:30:00Z", "2024-11-03T04:30:00Z",
         "2018-11-03T12:00:00Z", "2018-02-17T12:00:00Z", "2011-12-29T08:00:00Z", "2024-03-30T20:00:00Z"), 3,
    )  # fmt: skip
    return {"schedule": text, "from": begin, "count": 4}


def _expression(draw: random.Random) -> str:
    kind = draw.random()
    if kind < 0.1:
        return draw.choice(
            ("@hourly", "@daily", "@midnight", "@weekly", "@monthly", "@yearly", "@annually", "@never", "@Daily")
        )
    if kind < 0.2:
        return "@every " + draw.choice(
            ("90m", "1h30m", "1.5h", "500ms", "10s", "1h0m0.7s", "-5m", "3", "", "1d", "2m 3s", "+7s", ".5m", "0",
             "1µs",
             "100000h", "9999999999h")
        )  # fmt: skip
    if kind < 0.25:
        return draw.choice(
            ("", "* * * *", "* * * * * *", "0 0 31 2 *", "0 0 30 feb *", "0 0 29 2 *", "60 * * * *", "* 24 * * *",
             "* * 0 * *", "* * * 13 *", "* * * * 7", "5-1 * * * *", "*/0 * * * *", "1-2-3 * * * *", "1/2/3 * * * *",
             "a * * * *", "-1 * * * *", "* * * foo *", "*/x * * * *", ", * * * *", "? ? ? ? ?", "0 0 29 2 mon")
        )  # fmt: skip
    fields = (
        _field(draw, 0, 59),
        _field(draw, 0, 23),
        _field(draw, 1, 31),
        _field(draw, 1, 12, _MONTHS),
        _field(draw, 0, 6, _DAYS),
    )
    return draw.choice((" ", " ", "  ")).join(fields)


def _field(draw: random.Random, low: int, high: int, names: list[str] | None = None) -> str:
    if draw.random() < 0.4:
        return draw.choice(("*", "*", "*", "?", f"*/{draw.randint(1, max(2, (high - low) // 3))}"))
    return ",".join(_part(draw, low, high, names) for _ in range(draw.choice((1, 1, 1, 2, 3))))


def _part(draw: random.Random, low: int, high: int, names: list[str] | None) -> str:
    first = draw.randint(low, high)
    last = draw.randint(first, high)

    def shown(number: int) -> str:
        if names and draw.random() < 0.4:
            name = names[number - low]
            return draw.choice((name, name.upper(), name.capitalize()))
        return f"{number:02}" if draw.random() < 0.1 else str(number)

    text = shown(first) if draw.random() < 0.6 else f"{shown(first)}-{shown(last)}"
    return f"{text}/{draw.randint(1, 9)}" if draw.random() < 0.25 else text


_MAKERS = {"jobs": _job, "cronjobs": _cron_job, "schedules": _schedule}
