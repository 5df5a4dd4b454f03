"""The counters that every verdict carries and ``expect: {counter: …}`` may name."""

from __future__ import annotations

from collections import Counter

from kemu.emulated.objects.pods import pod_phases
from kemu.lab.checks.history import History

COUNTERS = (
    "pods_created", "pods_bound", "pods_running", "pods_succeeded", "pods_failed", "pods_deleted", "preemptions",
    "evictions", "oom_kills", "eviction_returns", "preemption_returns", "condition_changes", "reclaims", "nominations",
    "nominations_cleared", "admissions", "admissions_rejected", "bind_conflicts", "bind_errors", "scheduling_attempts",
    "attempts_unschedulable", "write_conflicts", "requests_refused", "requests_throttled", "faults",
    "search_evaluations", "searches_given_up", "budget_violations", "preemptions_within_budget",
    "evictions_within_budget", "evictions_beyond_budget", "scale_ups", "nodes_added", "nodes_removed",
    "descheduled", "jobs_admitted", "jobs_preempted",
)  # fmt: skip


OF_PODS = {
    "pods_created": ("created", ""),
    "pods_bound": ("bound", ""),
    "pods_running": ("running", ""),
    "pods_succeeded": ("finished", pod_phases.SUCCEEDED),
    "pods_failed": ("finished", pod_phases.FAILED),
    "pods_deleted": ("deleted", ""),
    "preemptions": ("preempted", ""),
    "evictions": ("evicted", ""),
    "oom_kills": ("oomKilled", ""),
    "nominations": ("nominated", ""),
    "nominations_cleared": ("nominationCleared", ""),
    "admissions_rejected": ("rejected", ""),
    "scheduling_attempts": ("attempted", ""),
    "attempts_unschedulable": ("unschedulable", ""),
}
"""The counters of what happens to pods: which fact each counts, and with which reason. They have a window."""


def counts(history: History) -> dict[str, int]:
    """All counters of the whole run, zeros included, in a fixed order: what ``expect: {counter: …}`` judges."""
    return {name: history.counts[name] for name in COUNTERS}


def measured(history: History) -> dict[str, int]:
    """The same as figures: :data:`OF_PODS` and ``admissions`` count only the pods that arrived in the window."""
    found = counts(history)
    if history.window.is_whole:
        return found
    facts = Counter((fact.what, fact.reason) for pod in history.measured() for fact in pod.facts)
    for name, (what, reason) in OF_PODS.items():
        found[name] = sum(number for (fact, why), number in facts.items() if fact == what and reason in ("", why))
    found["admissions"] = sum(pod.admissions for pod in history.measured())
    found["pods_bound"] -= sum(number for (fact, _), number in facts.items() if fact == "unbound")
    return found
