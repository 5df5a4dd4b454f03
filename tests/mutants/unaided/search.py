"""Search these bugs with the checks of every run alone: ``python -m tests.mutants.unaided.search [ID …]``.

Scenarios that a mutant names come first; then every other shipped scenario that takes less than a few seconds, all with
``timing: realistic``. Writes ``kills.json``. Exit code 1 where a mutant survives without an argument why.
"""

from __future__ import annotations

import argparse
import sys
import time
from pathlib import Path
from typing import Any

from kemu.lab.checks import registry
from kemu.lab.scenario import catalog
from tests import json_files
from tests.mutants import planting
from tests.mutants.unaided import controllers, gateway, kubelets, others
from tests.mutants.unaided.planting import MUTANTS, REALISTIC

PARTS = kubelets, controllers, others, gateway
KILLS = Path(__file__).parent / "kills.json"
TOO_LONG_S = 6.0
DEFAULT_CHECKS = frozenset(check.id for check in registry.ALL if not check.detector)
LEFT_OUT = ("scale/", "traces/", "chaos/thousand-nodes")


def killers(planted: planting.Mutant, where: str, seed: int) -> list[str]:
    """The checks that fail only with the bug; ``broke``: only with it the run ended with an error."""
    sound = planting.run_sound(where, seed)
    if sound.verdict == "broke":
        return []
    with_bug = planting.run_mutant(planted, where, seed)
    if with_bug.verdict == "broke":
        return ["broke"]
    return [name for name in with_bug.failed if name in DEFAULT_CHECKS and name not in sound.failed]


def elsewhere(planted: planting.Mutant) -> list[str]:
    """Every other shipped scenario."""
    named = {where.split()[0] for where in planted.runs}
    return [
        f"{name} {REALISTIC}"
        for name in sorted(catalog.shipped())
        if name not in named and not name.startswith(LEFT_OUT)
    ]


def search(planted: planting.Mutant, seeds: int, *, everywhere: bool) -> dict[str, Any] | None:
    """The first kill: its run, its seed, and the checks that fail there."""
    for seed in range(1, seeds + 1):
        for where in planted.runs:
            if found := killers(planted, where, seed):
                return {"run": where, "seed": seed, "by": found}
    slow: set[str] = set()
    for seed in range(1, seeds + 1) if everywhere else ():
        for where in elsewhere(planted):
            if where in slow:
                continue
            begun_s = time.monotonic()
            if found := killers(planted, where, seed):
                return {"run": where, "seed": seed, "by": found}
            if time.monotonic() - begun_s > TOO_LONG_S:
                slow.add(where)
    return None


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("id", nargs="*", help="default: all that do not say why they survive")
    parser.add_argument("--seeds", type=int, default=planting.BUDGET)
    parser.add_argument("--everywhere", action="store_true", help="other shipped scenarios, too")
    parser.add_argument("--found", action="store_true", help="those that were found before")
    options = parser.parse_args(arguments)
    kills = json_files.load(KILLS)
    asked = options.id or [
        name for name, one in MUTANTS.items() if name in kills or not (one.survives or options.found)
    ]
    survivors = 0
    for name in asked:
        found = search(MUTANTS[name], options.seeds, everywhere=options.everywhere)
        kills.pop(name, None)
        if found is None:
            survivors += 1
            print(f"{name}: SURVIVES", flush=True)
        else:
            kills[name] = found
            print(f"{name}: {', '.join(found['by'])} in {found['run']} with seed {found['seed']}", flush=True)
        ordered = {one: kills[one] for one in MUTANTS if one in kills}
        json_files.write(KILLS, ordered)
    print(f"{len(asked) - survivors} of {len(asked)} killed")
    return 1 if survivors else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
