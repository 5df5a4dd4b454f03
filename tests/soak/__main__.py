"""``python -m tests.soak --minutes 3 --runs 10 --nodes 100``: exit 0 if all runs came to nothing bad, else 1.

Of each three runs one is on a cluster of three raylets, and one on a real etcd where that is installed.
"""

from __future__ import annotations

import argparse
import dataclasses
import json
import random
import shutil
from pathlib import Path

from tests.soak import processes, runs

RAYLETS = 3


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.soak")
    parser.add_argument("--minutes", type=float, default=3.0, help="of each run")
    parser.add_argument("--runs", type=int, default=1)
    parser.add_argument("--nodes", type=int, default=100)
    parser.add_argument("--seed", type=int, help="of the first run; the next ones count up from it")
    parser.add_argument("--etcd", choices=("never", "sometimes", "always"), default="sometimes")
    parser.add_argument(
        "--raylets", type=int, help="a Ray cluster of so many, which are attacked, too; 0: a Ray of its own"
    )
    parser.add_argument("--out", type=Path, help="a file that gets a JSON object for each run")
    options = parser.parse_args()
    first = random.SystemRandom().randrange(1_000_000) if options.seed is None else options.seed
    print(f"soak: --seed {first} draws the same attacks again", flush=True)
    processes.adopt_orphans()
    has_etcd = shutil.which("etcd") is not None
    bad = 0
    for number in range(options.runs):
        etcd = has_etcd and (options.etcd == "always" or (options.etcd == "sometimes" and number % 3 == 2))
        raylets = options.raylets if options.raylets is not None else RAYLETS * (number % 3 == 1)
        outcome = runs.Run(runs.Plan(first + number, options.minutes, options.nodes, etcd, raylets)).carry_out()
        bad += bool(outcome.faults)
        _tell(outcome)
        if options.out is not None:
            with options.out.open("a") as file:
                file.write(json.dumps(dataclasses.asdict(outcome)) + "\n")
    print(f"soak: {options.runs - bad} of {options.runs} runs are good", flush=True)
    return bool(bad)


def _tell(outcome: runs.Outcome) -> None:
    kills, stops = sum(outcome.kills.values()), sum(outcome.stops.values())
    print(
        f"seed {outcome.seed} ({outcome.store}): {outcome.headline or 'no verdict'}; {kills} kills, {stops} stops, "
        f"{outcome.acknowledged} acknowledged writes, {outcome.wall_s:g} s"
    )
    figures = [f"{name} {outcome.growth.get(name, 0):+g} of {most}" for name, most in outcome.most_mib.items()]
    print(f"    MiB a minute of at most MiB: {', '.join(figures)}")
    for fault in outcome.faults:
        print(f"    BAD {fault}")
    if outcome.faults:
        print(f"    its folder is {outcome.folder}")
    print(end="", flush=True)


if __name__ == "__main__":
    raise SystemExit(main())
