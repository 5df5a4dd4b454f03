"""How many threads numpy's linear algebra starts: kemu's columns are too short for more than one.

It starts them when numpy is imported, one for each processor, in every process: cells, workers of explorations,
commands.
"""

from __future__ import annotations

import os

ONE = {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1", "MKL_NUM_THREADS": "1"}
"""Environment of processes of kemu; what the user has set counts more."""


def one_by_default() -> None:
    """For a process that has not imported numpy yet, and for those that it starts."""
    for name, value in ONE.items():
        os.environ.setdefault(name, value)
