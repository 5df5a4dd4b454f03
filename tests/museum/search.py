"""Run the cured side of every piece over many seeds: python -m tests.museum.search [SEEDS] [FIRST SEED]."""

from __future__ import annotations

import sys
from concurrent.futures import ProcessPoolExecutor

from kemu.exploration import executions
from kemu.scenario import catalog
from kemu.scenario.loading import loader
from tests.museum.pieces import PIECES, sides


def findings(name: str, first: int, seeds: int) -> list[str]:
    """Of the cured side: what did not hold, and at which seed."""
    file = catalog.find(name)
    _, cure = sides(loader.load(file))
    found = []
    for seed in range(first, first + seeds):
        execution = executions.execute(loader.load(file, overrides={**cure, "seed": seed}))
        if execution.outcome != executions.HOLDS:
            why = [f"{failure.id}: {failure.detail}" for failure in execution.failures] or [execution.outcome]
            found += [f"seed {seed}: {each}" for each in why]
    return found


def main(seeds: int = 1000, first: int = 1) -> int:
    failed = False
    with ProcessPoolExecutor() as pool:
        many = len(PIECES)
        for name, found in zip(PIECES, pool.map(findings, PIECES, [first] * many, [seeds] * many), strict=True):
            failed = failed or bool(found)
            print(f"{name}: {'; '.join(found) or f'holds over {seeds} seeds'}", flush=True)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main(*map(int, sys.argv[1:])))
