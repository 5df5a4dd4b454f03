"""From the transactions of a run to the figures of the published table, and how far two of them may be apart."""

from __future__ import annotations

import math
from dataclasses import dataclass

from experiments.published.omega.jobs import BATCH, SERVICE
from experiments.published.omega.outcomes import Outcome

CLASSES = (BATCH, SERVICE)


@dataclass(frozen=True)
class Figures:
    """Of one class of schedulers."""

    ok: int
    """Transactions without a conflict, and with at least one claim."""
    conflicted: int
    without_claim: int
    placed: int
    """Tasks."""
    tasks_conflicted: int
    useful: float
    """Part of the run that a scheduler of the class spends on transactions without conflict."""
    wasted: float
    wait_s: float
    """Mean."""
    unfinished: int

    @property
    def conflict_fraction(self) -> float:
        return self.conflicted / self.ok if self.ok else 0.0

    @property
    def busyness(self) -> float:
        return self.useful + self.wasted


def of(outcome: Outcome) -> dict[str, Figures]:
    """By class."""
    return {name: _of_class(outcome, name) for name in CLASSES}


def _of_class(outcome: Outcome, name: str) -> Figures:
    schedulers = outcome.configuration.batch_schedulers if name == BATCH else 1
    ok = conflicted = without_claim = placed = tasks_conflicted = 0
    useful_s = wasted_s = 0.0
    for one in outcome.transactions:
        if one.scheduler_class != name:
            continue
        placed += one.placed
        tasks_conflicted += one.conflicts
        if not one.machines:
            without_claim += 1
        elif one.conflicts:
            conflicted += 1
            wasted_s += one.decision_s
        else:
            ok += 1
            useful_s += one.decision_s
    waits = outcome.waits_s[name]
    whole_s = outcome.length_s * schedulers
    return Figures(
        ok,
        conflicted,
        without_claim,
        placed,
        tasks_conflicted,
        useful_s / whole_s,
        wasted_s / whole_s,
        math.fsum(waits) / len(waits) if waits else 0.0,
        outcome.unfinished[name],
    )


def row(outcome: Outcome) -> dict[str, str]:
    """As the published table writes it."""
    configuration, found = outcome.configuration, of(outcome)
    batch, service = found[BATCH], found[SERVICE]
    return {
        "experiment": configuration.experiment,
        "parameter": configuration.parameter,
        "seed": str(configuration.seed),
        "duration_mean": str(configuration.duration_mean),
        "detection": configuration.detection,
        "transaction_mode": configuration.transaction_mode,
        "conflict_fraction_batch": f"{batch.conflict_fraction:.5f}",
        "conflict_fraction_service": f"{service.conflict_fraction:.5f}",
        "busyness_batch": f"{batch.busyness:.5f}",
        "busyness_service": f"{service.busyness:.5f}",
        "mean_wait_batch_s": f"{batch.wait_s:.4f}",
        "mean_wait_service_s": f"{service.wait_s:.4f}",
        "utilisation": f"{outcome.utilisation:.5f}",
        "transactions_ok_batch": str(batch.ok),
        "transactions_conflicted_batch": str(batch.conflicted),
        "transactions_ok_service": str(service.ok),
        "transactions_conflicted_service": str(service.conflicted),
        "wasted_batch": f"{batch.wasted:.5f}",
        "wasted_service": f"{service.wasted:.5f}",
        "tasks_placed_batch": str(batch.placed),
        "tasks_conflicted_batch": str(batch.tasks_conflicted),
        "tasks_placed_service": str(service.placed),
        "tasks_conflicted_service": str(service.tasks_conflicted),
        "attempts_without_claim_batch": str(batch.without_claim),
        "attempts_without_claim_service": str(service.without_claim),
        "jobs_unfinished_batch": str(batch.unfinished),
        "jobs_unfinished_service": str(service.unfinished),
    }


COUNTS = (
    *("transactions_ok_batch", "transactions_conflicted_batch", "transactions_ok_service"),
    *("transactions_conflicted_service", "tasks_placed_batch", "tasks_conflicted_batch", "tasks_placed_service"),
    *("tasks_conflicted_service", "attempts_without_claim_batch", "attempts_without_claim_service"),
    *("jobs_unfinished_batch", "jobs_unfinished_service"),
)
"""Columns that the replay gives exactly."""
