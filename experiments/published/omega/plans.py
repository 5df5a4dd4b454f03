"""Which runs there are on kemu, and how long.

Every row can run at full length (``--full``, in the nightly); those here show each configuration in a time that one
has, at a length for which the page names the model as what they are compared with.
"""

from __future__ import annotations

from collections.abc import Iterator

from experiments.published.omega import clusters, jobs
from experiments.published.omega.configurations import Configuration, all_rows

Run = tuple[Configuration, float, str]
"""Configuration, length in s, variant."""

PREFIX_S = {"tjob_service": 900.0, "mode": 900.0, "batch_schedulers": 60.0}
CURVE = ("1", "2", "4", "8", "16")
CURVE_S = 60.0


def full() -> Iterator[Run]:
    """Every row as published."""
    for row in all_rows():
        yield row, jobs.WORKLOADS[row.duration_mean].length_s, ""


def usual() -> Iterator[Run]:
    """One seed of each configuration, shorter; the busier list of each experiment. Then the curves."""
    for row in all_rows():
        if row.seed == 1 and row.duration_mean in (140, 14):
            yield row, PREFIX_S[row.experiment], ""
    for variant in (clusters.KUBELETS, clusters.REAL_TIMES, clusters.KUBE_SCHEDULER):
        for row in all_rows():
            if row.seed == 1 and row.duration_mean == 14 and row.parameter in CURVE:
                yield row, CURVE_S, variant
