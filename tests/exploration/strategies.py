"""After how many runs does each strategy find each bug? ``python -m tests.exploration.strategies``.

Writes ``strategies.json``: for each bed (:mod:`beds`) and strategy the median of the runs to the first failure over
many campaigns, with a 95 % interval by bootstrap. What was not found within the limit counts as more than that. The
portfolio takes all strategies in turn, so its figure follows from theirs.
"""

from __future__ import annotations

import argparse
import json
import math
import random
import statistics
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from kemu.exploration.campaigns import Campaign, Settings
from kemu.exploration.sources import Source
from kemu.exploration.strategies import registry
from kemu.exploration.workers import Inline
from tests.exploration import beds

FILE = Path(__file__).parent / "strategies.json"
RESAMPLES = 2000


def runs_to_first(bed: beds.Bed, strategy: str, seed: int, limit: int) -> float:
    """Infinite where the limit was not enough."""
    scenario = beds.scenario(bed)
    settings = Settings(seed, limit, failures=1, canary=False, checks=(bed.check,))
    campaign = Campaign(scenario, registry.make([strategy], Source.of(scenario), seed), settings, Inline())
    with bed.planted():
        runs = sum(1 for _ in campaign.go())
    return runs if len(campaign.clusters) else math.inf


def portfolio(firsts: Sequence[float]) -> float:
    """Of strategies that take turns, in this order."""
    turns = [(first - 1) * len(firsts) + place + 1 for place, first in enumerate(firsts)]
    return min(turns)


def interval(values: Sequence[float]) -> tuple[float, float]:
    """The 95 % interval of the median, by bootstrap."""
    stream = random.Random(1)
    medians = sorted(_median([stream.choice(values) for _ in values]) for _ in range(RESAMPLES))
    return medians[int(0.025 * RESAMPLES)], medians[int(0.975 * RESAMPLES) - 1]


def _median(values: Sequence[float]) -> float:
    # The mean of a number and infinity would be infinite; of two middle values the lower one is.
    return statistics.median_low(values)


def figures(values: Sequence[float]) -> dict[str, Any]:
    low, high = interval(values)
    found = [_median(values), low, high]
    median, low, high = (None if math.isinf(value) else value for value in found)
    return {"median": median, "low": low, "high": high, "found": sum(map(math.isfinite, values))}


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--trials", type=int, default=100)
    parser.add_argument("--limit", type=int, default=2000, help="runs of one trial")
    parser.add_argument("--bug", action="append", default=[], help="only this one")
    parser.add_argument("--out", type=Path, default=FILE)
    options = parser.parse_args(arguments)
    table: dict[str, Any] = {"trials": options.trials, "limit": options.limit, "bugs": {}}
    for name in options.bug or beds.BEDS:
        bed = beds.BEDS[name]
        begun = time.perf_counter()
        firsts = {
            strategy: [runs_to_first(bed, strategy, seed, options.limit) for seed in range(1, options.trials + 1)]
            for strategy in registry.STRATEGIES
        }
        together = [portfolio(trial) for trial in zip(*firsts.values(), strict=True)]
        row = {strategy: figures(values) for strategy, values in firsts.items()}
        table["bugs"][name] = {"check": bed.check, "says": bed.says, **row, "portfolio": figures(together)}
        options.out.write_text(json.dumps(table, indent=1) + "\n")
        medians = {strategy: each["median"] for strategy, each in {**row, "all": figures(together)}.items()}
        print(f"{name}: {medians} ({time.perf_counter() - begun:.0f} s)", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
