"""How far a run may be from the published one: about three standard deviations of other random choices.

The published text gives them ("How close is close enough"); the mean over other choices stands beside each row. A short
run has no published figures: it must be the model's, transaction by transaction.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping

from experiments.published.omega.configurations import ALL_OR_NOTHING
from experiments.published.omega.jobs import BATCH, SERVICE

SPREAD_SUFFIX = "_spread"
ENOUGH_CONFLICTS = 150
"""From so many on the fraction is compared, below it the count."""
RARE_BATCH_CONFLICTS = 0.003
LONG_WAIT_S = 30.0


def complaints(own: Mapping[str, str], means: Mapping[str, str]) -> Iterator[str]:
    """``means``: over other random choices, with :data:`SPREAD_SUFFIX`."""
    together = own["transaction_mode"] == ALL_OR_NOTHING
    many = own["experiment"] == "batch_schedulers"
    yield from _conflicts(own, means, BATCH if many else SERVICE, 0.20 if together else 0.15)
    if not many and float(own["conflict_fraction_batch"]) >= RARE_BATCH_CONFLICTS:
        yield f"conflict_fraction_batch is {own['conflict_fraction_batch']}, not below {RARE_BATCH_CONFLICTS}"
    for name in (BATCH,) if many else (BATCH, SERVICE):
        yield from _near(own, means, f"busyness_{name}", 0.10 if together else 0.05, least=0.0005)
    found, mean = float(own["utilisation"]), _mean(means, "utilisation")
    if abs(found - mean) > (0.01 if together else 0.003):
        yield f"utilisation is {found}, on average {mean}"
    wait = f"mean_wait_{BATCH if many else SERVICE}_s"
    if together and own["duration_mean"] == "140":
        if float(own[wait]) <= LONG_WAIT_S:
            yield f"{wait} is {own[wait]}, not beyond {LONG_WAIT_S}"
    else:
        yield from _near(own, means, wait, 0.40 if together else 0.25, least=0.005)


def _conflicts(own: Mapping[str, str], means: Mapping[str, str], name: str, part: float) -> Iterator[str]:
    column = f"conflict_fraction_{name}"
    transactions = int(own[f"transactions_ok_{name}"])
    count, expected = int(own[f"transactions_conflicted_{name}"]), _mean(means, column) * transactions
    if expected >= ENOUGH_CONFLICTS:
        yield from _near(own, means, column, part)
    elif abs(count - expected) > max(1.0, 3 * math.sqrt(expected)):
        yield f"{count} conflicts of {name}, on average {expected:.1f}"


def _near(
    own: Mapping[str, str], means: Mapping[str, str], column: str, part: float, least: float = 0.0
) -> Iterator[str]:
    """``least``: differences below it mean nothing."""
    found, mean = float(own[column]), _mean(means, column)
    if abs(found - mean) > max(part * mean, least):
        yield f"{column} is {found}, on average {mean}"


def _mean(means: Mapping[str, str], column: str) -> float:
    return float(means[column + SPREAD_SUFFIX])
