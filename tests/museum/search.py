"""Run the cured side of every piece over many seeds: python -m tests.museum.search [--missing | NUMBER …].

Writes ``held.json``, a piece at a time, so a search that was stopped goes on with ``--missing``: a piece that was run
over fewer seeds, or whose scenario has changed since, is searched again. Exit code 1 when something did not hold.
"""

from __future__ import annotations

import argparse
import dataclasses
import functools
import gc
import hashlib
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from kemu.lab.exploration import executions
from kemu.lab.scenario import catalog
from kemu.lab.scenario.loading import loader
from kemu.lab.scenario.scenarios import Scenario
from tests import json_files, searches
from tests.museum.pieces import PIECES, Piece, sides

HELD = Path(__file__).parent / "held.json"
SEEDS = 1000
RUNS_OF_GARBAGE = 50
"""A run leaves objects in the oldest generation, which Python hardly ever looks at by itself."""
BY_NUMBER = {str(piece.number): piece for piece in PIECES.values()}


def cured(piece: Piece) -> Scenario:
    file = catalog.find(piece.scenario)
    return loader.load(file, overrides=sides(loader.load(file))[1])


def digest(piece: Piece) -> str:
    """Of the scenario's file: a record does not outlive a change of it."""
    return hashlib.sha256(catalog.find(piece.scenario).read_bytes()).hexdigest()[:16]


def findings(piece: Piece, seeds: Iterable[int]) -> list[str]:
    """What did not hold, and at which seed."""
    found = []
    scenario = cured(piece)
    for seed in seeds:
        execution = executions.execute(dataclasses.replace(scenario, seed=seed))
        if execution.outcome != executions.HOLDS:
            why = [f"{failure.id}: {failure.detail}" for failure in execution.failures] or [execution.outcome]
            found += [f"seed {seed}: {each}" for each in why]
        if seed % RUNS_OF_GARBAGE == 0:
            gc.collect()
    return found


def find(seeds: range, name: str) -> dict[str, Any] | None:
    """The record of a piece; None: not all seeds hold."""
    found = findings(BY_NUMBER[name], seeds)
    for line in found:
        print(f"{name}: {line}", flush=True)
    return None if found else {"digest": digest(BY_NUMBER[name]), "first": seeds.start, "seeds": len(seeds)}


def is_missing(name: str, seeds: int = SEEDS) -> bool:
    """Nobody has run this scenario over so many seeds."""
    record = json_files.load(HELD).get(name)
    return record is None or record["digest"] != digest(BY_NUMBER[name]) or record["seeds"] < seeds


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("number", nargs="*", help="default: all")
    parser.add_argument("--missing", action="store_true")
    parser.add_argument("--seeds", type=int, default=SEEDS)
    parser.add_argument("--first", type=int, default=1, metavar="SEED")
    options = parser.parse_args(arguments)
    asked = options.number or list(BY_NUMBER)
    if options.missing:
        asked = [name for name in asked if is_missing(name, options.seeds)]
    seeds = range(options.first, options.first + options.seeds)
    return searches.search(HELD, list(BY_NUMBER), asked, [], functools.partial(find, seeds), "DOES NOT HOLD")


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
