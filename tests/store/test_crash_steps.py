"""Whatever step the store crashes at: nothing that was acknowledged is lost; without fsync the verdict says what is.

The nightly does the same for 1,000 seeds (``python -m tests.store.crashes 1000``).
"""

from __future__ import annotations

import pytest

from tests.store import crashes

SEEDS = range(20)


@pytest.mark.parametrize("fsync", ["batch", "always", "none"])
def test_nothing_acknowledged_is_lost_unnoticed(fsync: str) -> None:
    outcomes = [crashes.run(seed, fsync) for seed in SEEDS]
    for seed, outcome in zip(SEEDS, outcomes, strict=True):
        crashes.prove(outcome, fsync, seed)
    # Otherwise nothing was put to the test.
    assert sum(outcome.torn for outcome in outcomes) >= 5
    assert sum(outcome.forgotten for outcome in outcomes) >= 5
    assert (fsync == "none") is any(outcome.lost for outcome in outcomes)
