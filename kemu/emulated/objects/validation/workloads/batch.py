"""The checks of the group batch (``pkg/apis/batch/validation``)."""

from __future__ import annotations

import re

from kemu.emulated.objects import cron_expressions, names, selectors
from kemu.emulated.objects.defaulting import batch as defaulting
from kemu.emulated.objects.facts import go_types
from kemu.emulated.objects.validation import checks
from kemu.emulated.objects.validation.causes import (
    IMMUTABLE,
    duplicate,
    invalid,
    not_supported,
    required,
    too_long,
    too_many,
)
from kemu.emulated.objects.validation.metadata import check_label_selector
from kemu.emulated.objects.validation.pod_specs import templates
from kemu.emulated.objects.validation.rules import Rules
from kemu.emulated.objects.validation.workloads import indexes, job_statuses
from kemu.errors import Cause
from kemu.messages.k8s import batch_v1_pb2, core_v1_pb2

INDEXED, NON_INDEXED = "Indexed", "NonIndexed"
_ACTIONS = "batch.v1.PodFailurePolicyAction"
_OPERATORS = "batch.v1.PodFailurePolicyOnExitCodesOperator"
_STATUSES = ("False", "True", "Unknown")
_REPLACEMENTS = ("Failed", "TerminatingOrFailed")
_LARGE, _LIMIT_FOR_LARGE = 100_000, 10_000
"""From more completions on, and with a limit for each index, parallelism and failed indexes are limited to this."""
_MANAGED_BY = 63
_LONGEST_INDEXES = 64 * 1024
_CRON_JOB_NAME = 52
"""The names of its Jobs are eleven characters longer."""
_ZONE_PART = re.compile(r"[A-Za-z.\-_0-9+]{1,14}")
_NEVER_OR_ON_FAILURE = ("OnFailure", "Never")


def _check_job(job: batch_v1_pb2.Job, found: list[Cause], *, needs_prefixes: bool = True) -> None:
    """``ValidateJob``"""
    spec, metadata = job.spec, job.metadata
    _check_generated_selector(job, needs_prefixes, found)
    _check_whole_spec(spec, found)
    if spec.completionMode == INDEXED and spec.completions > 0:
        host = f"{metadata.name}-{spec.completions - 1}"
        if names.dns_label(host):
            what = f"will not able to create pod with invalid DNS label: {host}"
            found.append(invalid("metadata.name", metadata.name, what))


def _check_whole_spec(spec: batch_v1_pb2.JobSpec, found: list[Cause]) -> None:
    """``ValidateJobSpec``: its selector, too."""
    _check_spec(spec, "spec", found)
    if not spec.HasField("selector"):
        found.append(required("spec.selector"))
        templates.refuse_labels(spec.template.metadata.labels, "spec.template", found)
    else:
        before = len(found)
        check_label_selector(spec.selector, "spec.selector", found)
        labels = spec.template.metadata.labels
        if len(found) == before and not selectors.compile_labels(spec.selector).matches(labels):
            templates.refuse_labels(labels, "spec.template", found)


def _check_generated_selector(job: batch_v1_pb2.Job, needs_prefixes: bool, found: list[Cause]) -> None:
    """``validateGeneratedSelector``. ``needs_prefixes``: it has the new labels, too."""
    spec, metadata = job.spec, job.metadata
    if spec.manualSelector or not spec.HasField("selector"):
        return
    labels = spec.template.metadata.labels
    expected: dict[str, str] = {}
    count = 1 + needs_prefixes
    for uid_label, name_label in zip(defaulting.JOB_UIDS[:count], defaulting.JOB_NAMES[:count], strict=True):
        expected |= {uid_label: metadata.uid, name_label: metadata.name}
    for key, value in expected.items():
        place = f"spec.template.metadata.labels[{key}]"
        if key not in labels:
            found.append(required(place, f"must be '{value}'"))
        elif labels[key] != value:
            found.append(invalid(place, {name: labels[name] for name in sorted(labels)}, f"must be '{value}'"))
    problems: list[Cause] = []
    check_label_selector(spec.selector, "", problems)  # told where the spec is checked
    if not problems and not selectors.compile_labels(spec.selector).matches(expected):
        found.append(invalid("spec.selector", spec.selector, "`selector` not auto-generated"))


def _check_spec(spec: batch_v1_pb2.JobSpec, path: str, found: list[Cause]) -> None:
    """``validateJobSpec``."""
    for field in (
        "parallelism",
        "completions",
        "activeDeadlineSeconds",
        "backoffLimit",
        "ttlSecondsAfterFinished",
        "backoffLimitPerIndex",
        "maxFailedIndexes",
    ):
        checks.not_negative(getattr(spec, field), f"{path}.{field}", found)
    if spec.HasField("maxFailedIndexes") and not spec.HasField("backoffLimitPerIndex"):
        found.append(required(f"{path}.backoffLimitPerIndex", "when maxFailedIndexes is specified"))
    if spec.HasField("managedBy"):
        _check_managed_by(spec.managedBy, f"{path}.managedBy", found)
    has_mode = spec.HasField("completionMode")
    if has_mode:
        checks.listed(spec.completionMode, f"{path}.completionMode", (NON_INDEXED, INDEXED), found)
    if spec.completionMode == INDEXED:
        _check_indexed(spec, path, found)
    elif not has_mode or spec.completionMode == NON_INDEXED:
        found += [
            invalid(f"{path}.{field}", getattr(spec, field), "requires indexed completion mode")
            for field in ("backoffLimitPerIndex", "maxFailedIndexes")
            if spec.HasField(field)
        ]
    if spec.HasField("podFailurePolicy"):
        _check_failure_policy(spec, f"{path}.podFailurePolicy", found)
    if spec.HasField("successPolicy"):
        if spec.completionMode != INDEXED:
            found.append(invalid(f"{path}.successPolicy", spec.successPolicy, "requires indexed completion mode"))
        else:
            _check_success_policy(spec, f"{path}.successPolicy", found)
    replacements = _REPLACEMENTS[:1] if spec.HasField("podFailurePolicy") else _REPLACEMENTS
    if spec.HasField("podReplacementPolicy"):
        checks.listed(spec.podReplacementPolicy, f"{path}.podReplacementPolicy", replacements, found)
    templates.check_template(spec.template, f"{path}.template", found)
    _check_restart_policy(spec, f"{path}.template.spec.restartPolicy", found)


def _check_restart_policy(spec: batch_v1_pb2.JobSpec, path: str, found: list[Cause]) -> None:
    policy = spec.template.spec.restartPolicy
    if policy in ("", "Always"):
        found.append(required(path, 'valid values: "OnFailure", "Never"'))
    elif policy not in _NEVER_OR_ON_FAILURE:
        found.append(not_supported(path, policy, _NEVER_OR_ON_FAILURE))
    elif spec.HasField("podFailurePolicy") and policy != "Never":
        found.append(invalid(path, policy, 'only "Never" is supported when podFailurePolicy is specified'))


def _check_managed_by(name: str, path: str, found: list[Cause]) -> None:
    checks.domain_prefixed_path(name, path, found)
    if len(name) > _MANAGED_BY:
        found.append(too_long(path, _MANAGED_BY))


def _check_indexed(spec: batch_v1_pb2.JobSpec, path: str, found: list[Cause]) -> None:
    has_completions = spec.HasField("completions")
    if not has_completions:
        found.append(required(f"{path}.completions", "when completion mode is Indexed"))
    if spec.parallelism > _LARGE:
        what = f"must be less than or equal to {_LARGE} when completion mode is Indexed"
        found.append(invalid(f"{path}.parallelism", spec.parallelism, what))
    if has_completions and spec.HasField("maxFailedIndexes") and spec.maxFailedIndexes > spec.completions:
        what = "must be less than or equal to completions"
        found.append(invalid(f"{path}.maxFailedIndexes", spec.maxFailedIndexes, what))
    if spec.maxFailedIndexes > _LARGE:
        what = f"must be less than or equal to {_LARGE}"
        found.append(invalid(f"{path}.maxFailedIndexes", spec.maxFailedIndexes, what))
    if spec.completions <= _LARGE or not spec.HasField("backoffLimitPerIndex"):
        return
    if not spec.HasField("maxFailedIndexes"):
        what = f"must be specified when completions is above {_LARGE}"
        found.append(required(f"{path}.maxFailedIndexes", what))
    for field in ("parallelism", "maxFailedIndexes"):
        if getattr(spec, field) > _LIMIT_FOR_LARGE:
            what = (
                f"must be less than or equal to {_LIMIT_FOR_LARGE} when completions are above {_LARGE} and used with "
                "backoff limit per index"
            )
            found.append(invalid(f"{path}.{field}", getattr(spec, field), what))


# Policies -----------------------------------------------------------------------------------------------------------


def _check_failure_policy(spec: batch_v1_pb2.JobSpec, path: str, found: list[Cause]) -> None:
    rules = spec.podFailurePolicy.rules
    if len(rules) > 20:
        found.append(too_many(f"{path}.rules", len(rules), 20))
    containers = {one.name for one in (*spec.template.spec.containers, *spec.template.spec.initContainers)}
    for index, rule in enumerate(rules):
        here = f"{path}.rules[{index}]"
        _check_action(spec, rule.action, f"{here}.action", found)
        if rule.HasField("onExitCodes"):
            _check_exit_codes(rule.onExitCodes, f"{here}.onExitCodes", containers, found)
        if len(rule.onPodConditions) > 20:
            found.append(too_many(f"{here}.onPodConditions", len(rule.onPodConditions), 20))
        for number, pattern in enumerate(rule.onPodConditions):
            place = f"{here}.onPodConditions[{number}]"
            found.extend(invalid(f"{place}.type", pattern.type, one) for one in names.label_key(pattern.type))
            _check_choice(pattern.status, f"{place}.status", _STATUSES, found)
        if rule.HasField("onExitCodes") == bool(rule.onPodConditions):
            what = "both OnExitCodes and OnPodConditions is not supported"
            if not rule.onPodConditions:
                what = "one of OnExitCodes and OnPodConditions is required"
            found.append(_without_value(here, f"specifying {what}"))


def _check_action(spec: batch_v1_pb2.JobSpec, action: str, path: str, found: list[Cause]) -> None:
    if action == "FailIndex" and not spec.HasField("backoffLimitPerIndex"):
        found.append(invalid(path, action, "requires the backoffLimitPerIndex to be set"))
    else:
        _check_choice(action, path, _ACTIONS, found)


def _check_exit_codes(
    codes: batch_v1_pb2.PodFailurePolicyOnExitCodesRequirement, path: str, containers: set[str], found: list[Cause]
) -> None:
    _check_choice(codes.operator, f"{path}.operator", _OPERATORS, found)
    if codes.HasField("containerName") and codes.containerName not in containers:
        what = "must be one of the container or initContainer names in the pod template"
        found.append(invalid(f"{path}.containerName", codes.containerName, what))
    values = list(codes.values)
    if not values:
        found.append(invalid(f"{path}.values", None, "at least one value is required"))
    elif len(values) > 255:
        found.append(too_many(f"{path}.values", len(values), 255))
    for index, value in enumerate(values):
        here = f"{path}.values[{index}]"
        if codes.operator == "In" and value == 0:
            found.append(invalid(here, value, "must not be 0 for the In operator"))
        if value in values[:index]:
            found.append(duplicate(here, value))
    if values != sorted(values):
        found.append(invalid(f"{path}.values", values, "must be ordered"))


def _check_success_policy(spec: batch_v1_pb2.JobSpec, path: str, found: list[Cause]) -> None:
    rules, completions = spec.successPolicy.rules, spec.completions
    if not rules:
        what = "at least one rules must be specified when the successPolicy is specified"
        found.append(required(f"{path}.rules", what))
    if len(rules) > 20:
        found.append(too_many(f"{path}.rules", len(rules), 20))
    for index, rule in enumerate(rules):
        here = f"{path}.rules[{index}]"
        has_indexes, has_count = rule.HasField("succeededIndexes"), rule.HasField("succeededCount")
        if not has_indexes and not has_count:
            found.append(required(here, "at least one of succeededCount or succeededIndexes must be specified"))
        total = 0
        if has_indexes:
            if len(rule.succeededIndexes) > _LONGEST_INDEXES:
                found.append(too_long(f"{here}.succeededIndexes", _LONGEST_INDEXES))
            try:
                total = indexes.count(rule.succeededIndexes, completions)
            except ValueError as error:
                what = f"error parsing succeededIndexes: {error}"
                found.append(invalid(f"{here}.succeededIndexes", rule.succeededIndexes, what))
        if has_count:
            _check_succeeded_count(rule, completions, total, f"{here}.succeededCount", found)


def _check_succeeded_count(
    rule: batch_v1_pb2.SuccessPolicyRule, completions: int, total: int, path: str, found: list[Cause]
) -> None:
    count = rule.succeededCount
    checks.not_negative(count, path, found)
    if count > completions:
        what = f"must be less than or equal to {completions} (the number of specified completions)"
        found.append(invalid(path, count, what))
    if rule.HasField("succeededIndexes") and count > total:
        what = f"must be less than or equal to {total} (the number of indexes in the specified succeededIndexes field)"
        found.append(invalid(path, count, what))


def _check_choice(value: str, path: str, choices: checks.Choices, found: list[Cause]) -> None:
    """A value that must be there, and which the refusal tells (``field.Required`` with the values)."""
    if value:
        checks.listed(value, path, choices, found)
    else:
        listed = " ".join(f'"{one}"' for one in (go_types.values(choices) if isinstance(choices, str) else choices))
        found.append(required(path, f"valid values: [{listed}]"))


def _without_value(path: str, detail: str) -> Cause:
    return Cause(path, invalid(path, "", "").reason, f"Invalid value: {detail}")


# Updates ------------------------------------------------------------------------------------------------------------


def _check_job_update(new: batch_v1_pb2.Job, old: batch_v1_pb2.Job, found: list[Cause]) -> None:
    """``jobStrategy.ValidateUpdate``, which checks the spec twice."""
    had = old.spec.template.metadata.labels
    _check_job(new, found, needs_prefixes=defaulting.JOB_UIDS[1] in had and defaulting.JOB_NAMES[1] in had)
    spec, was = new.spec, old.spec
    _check_whole_spec(spec, found)
    if spec.completionMode != INDEXED:
        _immutable(spec, was, "completions", found)
    elif spec.HasField("completions") and spec.completions not in (was.completions, spec.parallelism):
        what = "can only be modified in tandem with spec.parallelism"
        found.append(invalid("spec.completions", spec.completions, what))
    _immutable(spec, was, "selector", found)
    _check_template_kept(new, old, found)
    for field in ("completionMode", "podFailurePolicy", "backoffLimitPerIndex", "managedBy", "successPolicy"):
        _immutable(spec, was, field, found)


def _immutable(new: batch_v1_pb2.JobSpec, old: batch_v1_pb2.JobSpec, field: str, found: list[Cause]) -> None:
    has = new.HasField(field)  # type: ignore[arg-type]
    if has != old.HasField(field) or getattr(new, field) != getattr(old, field):  # type: ignore[arg-type]
        found.append(invalid(f"spec.{field}", getattr(new, field) if has else None, IMMUTABLE))


def _check_template_kept(new: batch_v1_pb2.Job, old: batch_v1_pb2.Job, found: list[Cause]) -> None:
    """``validatePodTemplateUpdate``: of a suspended Job without pods it may change where they may go, and their
    resources."""
    wanted = new.spec.template
    if wanted == old.spec.template:
        return
    is_suspended = any(one.type == "Suspended" and one.status == "True" for one in old.status.conditions)
    is_idle = not old.status.HasField("startTime") or is_suspended
    if not old.spec.suspend or not is_idle or old.status.active:
        found.append(invalid("spec.template", wanted, IMMUTABLE))
        return
    allowed = core_v1_pb2.PodSpec()
    allowed.CopyFrom(old.spec.template.spec)
    for field in ("nodeSelector", "tolerations", "schedulingGates"):
        allowed.ClearField(field)  # type: ignore[arg-type]
    allowed.nodeSelector.update(wanted.spec.nodeSelector)
    allowed.tolerations.extend(wanted.spec.tolerations)
    allowed.schedulingGates.extend(wanted.spec.schedulingGates)
    if allowed.HasField("affinity") or wanted.spec.HasField("affinity"):
        allowed.affinity.ClearField("nodeAffinity")
    if wanted.spec.affinity.HasField("nodeAffinity"):
        allowed.affinity.nodeAffinity.CopyFrom(wanted.spec.affinity.nodeAffinity)
    if not wanted.spec.HasField("affinity") and not allowed.affinity.ListFields():
        allowed.ClearField("affinity")
    for field in ("containers", "initContainers"):
        before, after = getattr(allowed, field), getattr(wanted.spec, field)
        for one, other in zip(before, after, strict=False) if len(before) == len(after) else ():
            if one.name == other.name:
                one.ClearField("resources")
                if other.HasField("resources"):
                    one.resources.CopyFrom(other.resources)
    if wanted.spec != allowed:
        found.append(invalid("spec.template.spec", wanted.spec, IMMUTABLE))


# CronJobs -----------------------------------------------------------------------------------------------------------


def _check_cron_job(cron_job: batch_v1_pb2.CronJob, found: list[Cause]) -> None:
    _check_cron_spec(cron_job.spec, None, found)
    name = cron_job.metadata.name
    if len(name) > _CRON_JOB_NAME:
        found.append(invalid("metadata.name", name, f"must be no more than {_CRON_JOB_NAME} characters"))


def _check_cron_job_update(new: batch_v1_pb2.CronJob, old: batch_v1_pb2.CronJob, found: list[Cause]) -> None:
    _check_cron_spec(new.spec, old.spec, found)


def _check_cron_spec(spec: batch_v1_pb2.CronJobSpec, old: batch_v1_pb2.CronJobSpec | None, found: list[Cause]) -> None:
    """``validateCronJobSpec``."""
    if not spec.schedule:
        found.append(required("spec.schedule"))
    else:
        _check_schedule(spec, old is not None and "TZ" in old.schedule, found)
    checks.not_negative(spec.startingDeadlineSeconds, "spec.startingDeadlineSeconds", found)
    if spec.HasField("timeZone") and not (
        old is not None and old.HasField("timeZone") and old.timeZone == spec.timeZone
    ):
        _check_time_zone(spec.timeZone, found)
    checks.choice(spec.concurrencyPolicy, "spec.concurrencyPolicy", "batch.v1.ConcurrencyPolicy", found)
    job, path = spec.jobTemplate.spec, "spec.jobTemplate.spec"
    _check_spec(job, path, found)
    if job.HasField("selector"):
        found.append(invalid(f"{path}.selector", job.selector, "`selector` will be auto-generated"))
    if job.manualSelector:
        found.append(not_supported(f"{path}.manualSelector", True, ("nil", "false")))
    for field in ("successfulJobsHistoryLimit", "failedJobsHistoryLimit"):
        checks.not_negative(getattr(spec, field), f"spec.{field}", found)


def _check_schedule(spec: batch_v1_pb2.CronJobSpec, may_have_zone: bool, found: list[Cause]) -> None:
    schedule = spec.schedule
    try:
        cron_expressions.parse(schedule)
    except cron_expressions.CronError as error:
        found.append(invalid("spec.schedule", schedule, str(error)))
    if "TZ" in schedule and not may_have_zone:
        what = "cannot use TZ or CRON_TZ in schedule, use timeZone field instead"
        found.append(invalid("spec.schedule", schedule, what))
    elif "TZ" in schedule and spec.HasField("timeZone"):
        what = "cannot use both timeZone field and TZ or CRON_TZ in schedule"
        found.append(invalid("spec.schedule", schedule, what))


def _check_time_zone(name: str, found: list[Cause]) -> None:
    path = "spec.timeZone"
    if not name:
        found.append(invalid(path, name, "timeZone must be nil or non-empty string"))
        return
    parts = name.split("/")
    if any(one in (".", "..") or one.startswith("-") or not _ZONE_PART.fullmatch(one) for one in parts):
        found.append(invalid(path, name, f"unknown time zone {name}"))
        return
    if name.lower() == "local":
        what = "timeZone must be an explicit time zone as defined in https://www.iana.org/time-zones"
        found.append(invalid(path, name, what))
    try:
        cron_expressions.find_zone(name)
    except cron_expressions.CronError as error:
        found.append(invalid(path, name, str(error)))


RULES = {
    batch_v1_pb2.Job: Rules(_check_job, _check_job_update, job_statuses.check_update),
    batch_v1_pb2.CronJob: Rules(_check_cron_job, _check_cron_job_update),
}
