"""The counters that every verdict carries and ``expect: {counter: …}`` may name."""

from __future__ import annotations

from kemu.lab.checks.history import History

COUNTERS = (
    "pods_created", "pods_bound", "pods_running", "pods_succeeded", "pods_failed", "pods_deleted", "preemptions",
    "evictions", "oom_kills", "eviction_returns", "preemption_returns", "condition_changes", "reclaims", "nominations",
    "nominations_cleared", "admissions", "admissions_rejected", "bind_conflicts", "bind_errors", "scheduling_attempts",
    "attempts_unschedulable", "write_conflicts", "requests_refused", "requests_throttled", "faults",
    "search_evaluations", "searches_given_up", "budget_violations", "preemptions_within_budget",
    "evictions_within_budget", "evictions_beyond_budget", "scale_ups", "nodes_added", "nodes_removed",
)  # fmt: skip


def counts(history: History) -> dict[str, int]:
    """All counters, zeros included, in a fixed order."""
    return {name: history.counts[name] for name in COUNTERS}
