"""What must break without which safeguard, and where to look for it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True)
class Candidate:
    """Where the loss of one safeguard is looked for."""

    breaks: str
    """A check, or an expectation by its id."""
    runs: tuple[str, ...]
    """In this order: the name of a shipped scenario, then settings ``PATH=VALUE``, as a shell splits them. Exploration
    looks in the first of the scenarios, without settings."""


REALISTIC = "timing=realistic"

CANDIDATES: Mapping[str, Candidate] = {
    "resource-version-precondition": Candidate("too-late.never.bound", (f"seeds/taints-and-tolerations {REALISTIC}",)),
    "uid-precondition": Candidate("db-0.running", ("races/recreated-pod", f"races/recreated-pod {REALISTIC}")),
    "compare-and-swap": Candidate("pod-bound-at-most-once", (f"chaos/repeated-requests {REALISTIC}",)),
    "bind-once": Candidate("pod-bound-at-most-once", (f"races/two-replicas-same-pods {REALISTIC}",)),
    "graceful-termination": Candidate(
        "no-name-runs-twice", ("races/evictions-at-once", f"races/evictions-at-once {REALISTIC}")
    ),
    "budget-accounting": Candidate(
        "voluntary-evictions-respect-budgets", ("races/evictions-at-once", f"races/evictions-at-once {REALISTIC}")
    ),
    "watch-resume": Candidate("watch-has-no-gaps", ("chaos/kubelet-partition", "chaos/cut-watches")),
    "relist-on-gap": Candidate("watch-has-no-gaps", ("chaos/cut-watches", "chaos/apiserver-crash")),
    "journal-before-acknowledgement": Candidate("acknowledged-writes-survive", ("chaos/torn-write",)),
    "fsync-before-acknowledgement": Candidate("acknowledged-writes-survive", ("chaos/failing-fsync",)),
    "assume-cache": Candidate("no-kubelet-rejects-a-pod", ("races/burst-on-full-nodes",)),
    "nomination": Candidate("d.never.bound", ("seeds/preemption-example-1",)),
    "two-pass-filtering": Candidate("no-priority-inversion", ("seeds/preemption-example-1",)),
    "second-filtering-pass": Candidate("the-client-is-beside-no-empty-place", ("seeds/affinity-to-a-nominated-pod",)),
    "clear-lower-nominations": Candidate("server.running", ("races/nominated-node-taken",)),
    "requeue-on-events": Candidate("c.phase", ("seeds/preemption-example-1",)),
    "in-flight-events": Candidate("second.bound", ("races/event-during-an-attempt",)),
    "kubelet-admission": Candidate(
        "no-node-overcommitted", ("races/two-schedulers-one-node", f"races/two-schedulers-one-node {REALISTIC}")
    ),
    "containers-end-before-deletion": Candidate(
        "no-name-runs-twice", ("races/evictions-at-once", f"races/evictions-at-once {REALISTIC}")
    ),
    "controller-expectations": Candidate("ten-pods-are-created", ("races/replica-set-expectations",)),
    "node-eviction-rate": Candidate("node-evictions-keep-their-rate", ("chaos/zone-outage", "chaos/zone-partition")),
}
"""By safeguard."""
