"""The stored results: one line for each run, of the model in ``model.csv``, of kemu in ``kemu.csv``."""

from __future__ import annotations

import csv
import itertools
import time
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from experiments.published.omega import clusters, figures, jobs, models
from experiments.published.omega.configurations import Configuration, Key
from experiments.published.omega.outcomes import Outcome, Transaction
from experiments.published.omega.tolerances import SPREAD_SUFFIX

FOLDER = Path(__file__).with_name("results")
MODEL, KEMU = "model.csv", "kemu.csv"

Row = Mapping[str, str]

PUBLISHED_SUFFIX = "_published"


def key_of(row: Row) -> Key:
    return Key(
        row["experiment"],
        row["parameter"],
        int(row["seed"]),
        int(row["duration_mean"]),
        row["detection"],
        row["transaction_mode"],
    )


def of_model(configuration: Configuration, published: Row, spread: Row) -> Row:
    """A row of the table, by the model, at full length; beside it what was published, and the means over other random
    choices."""
    length_s = jobs.WORKLOADS[configuration.duration_mean].length_s
    arrivals = jobs.drawn(configuration.duration_mean, configuration.seed)
    own = figures.row(models.run(configuration, arrivals, length_s))
    beside = {name + PUBLISHED_SUFFIX: published[name] for name in own if name not in Key._fields}
    averaged = [name.removesuffix("_mean") for name in spread if name.endswith("_mean") and name != "duration_mean"]
    means = {name + SPREAD_SUFFIX: spread[f"{name}_mean"] for name in averaged}
    return {**own, **beside, **means}


def of_kemu(configuration: Configuration, length_s: float, variant: str = "") -> Row:
    """A run on kemu, beside the model over the same time. ``variant``: another scheduler or check, see
    :mod:`clusters`."""
    arrivals = jobs.drawn(configuration.duration_mean, configuration.seed, length_s)
    expected = models.run(configuration, arrivals, length_s)
    begun_s = time.process_time()
    watcher = clusters.run(configuration, arrivals, length_s, variant=variant)
    cpu_s = time.process_time() - begun_s
    outcome = watcher.outcome()
    modelled = figures.row(within(expected, length_s))
    own = figures.row(outcome)
    return {
        "variant": variant,
        "length_s": f"{length_s:g}",
        **own,
        **{f"{name}_model": text for name, text in modelled.items() if name not in Key._fields},
        "pods": str(sum(job.tasks for job in arrivals)),
        "pods_rejected": str(watcher.rejected),
        "most_on_a_node": str(watcher.most_on_a_node),
        "transactions": str(len(outcome.transactions)),
        "transactions_equal": str(equal(outcome.transactions, expected.transactions)),
        "cpu_s": f"{cpu_s:.1f}",
    }


def within(outcome: Outcome, length_s: float) -> Outcome:
    """Without what the model counts after the end: its event loop stops after the first event later than that."""
    while outcome.transactions and outcome.transactions[-1].ended_s > length_s:
        late = outcome.transactions.pop()
        if not any(one.job == late.job for one in outcome.transactions):
            outcome.waits_s[late.scheduler_class].pop()  # it was the job's first attempt
    return outcome


def equal(found: Sequence[Transaction], expected: Sequence[Transaction]) -> int:
    """How many transactions are the same, from the beginning: scheduler, job, time, machines, outcome."""
    pairs = itertools.takewhile(lambda pair: _same(*pair), zip(found, expected, strict=False))
    return sum(1 for _ in pairs)


MOST_APART_S = 1e-6
"""The model counts time in floats, kemu in nanoseconds."""


def _same(one: Transaction, other: Transaction) -> bool:
    exact = one.scheduler, one.job, one.machines, one.placed, one.conflicts
    return (
        exact == (other.scheduler, other.job, other.machines, other.placed, other.conflicts)
        and abs(one.ended_s - other.ended_s) < MOST_APART_S
    )


def read(name: str, folder: Path = FOLDER) -> list[Row]:
    file = folder / name
    if not file.exists():
        return []
    with file.open(newline="", encoding="utf-8") as lines:
        return list(csv.DictReader(lines))


def write(name: str, rows: Iterable[Row], folder: Path = FOLDER) -> None:
    """Later rows replace earlier ones of the same run."""
    found = {(*key_of(row), row.get("variant", ""), float(row.get("length_s", 0))): row for row in rows}
    ordered = [found[key] for key in sorted(found, key=_order)]
    folder.mkdir(parents=True, exist_ok=True)
    with (folder / name).open("w", newline="", encoding="utf-8") as out:
        writer = csv.DictWriter(out, list(ordered[0]), lineterminator="\n")
        writer.writeheader()
        writer.writerows(ordered)


def _order(key: tuple[object, ...]) -> tuple[object, ...]:
    experiment, parameter, seed, mean, detection, mode, variant, length_s = key
    return variant, experiment, detection, mode, mean, float(str(parameter)), seed, length_s
