"""Search a run that shows the loss of each safeguard: ``python -m tests.ablations.search [NAME … | --missing]``.

Writes ``found.json``: for each safeguard a run that anybody can repeat (scenario, settings, seed) and what breaks
there; and what exploration makes of it (:mod:`tests.ablations.exploring`), with a minimal scenario in ``minimal``. Exit
code 1 when one is not found.
"""

from __future__ import annotations

import functools
import shlex
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from kemu.emulated import variants
from kemu.emulated.settings import documents
from kemu.lab.exploration import executions
from kemu.lab.scenario import catalog
from kemu.lab.scenario.loading import loader
from tests import json_files, searches
from tests.ablations import exploring
from tests.ablations.candidates import CANDIDATES

FOUND = Path(__file__).parent / "found.json"
MAX_SEED = 20


def broken(scenario: str, settings: Sequence[str], seed: int, ablate: str = "") -> dict[str, str]:
    """The checks and expectations that do not hold in a run, and why; checks first. ``ablate``: a safeguard."""
    overrides: dict[str, Any] = {"seed": seed}
    for setting in settings:
        path, _, value = setting.partition("=")
        overrides[path] = documents.parse(value, path)[0].data
    if ablate:
        overrides["ablate"] = [ablate]
    loaded = loader.load(catalog.find(scenario), None, overrides)
    found: dict[str, str] = {}
    for _, variant in loader.variants(loaded):
        verdict = executions.execute(variant).verdict
        if "error" in verdict:
            found.setdefault(executions.BROKEN, verdict["error"])
        counts = [one for one in verdict["checks"] if one["asked"] or not one["detector"]]
        for one in (*counts, *verdict["expectations"]):
            if one["holds"] is False:
                found.setdefault(one["id"], one["detail"])
    return found


@functools.cache
def broken_anyway(scenario: str, settings: tuple[str, ...], seed: int) -> frozenset[str]:
    """What does not hold with all safeguards either."""
    return frozenset(broken(scenario, settings, seed))


def find(name: str) -> dict[str, Any] | None:
    """Both."""
    run, explored = search(name), exploring.explore(name)
    return None if run is None or explored is None else {**run, "explored": explored}


def search(name: str) -> dict[str, Any] | None:
    """The first run, all candidates at one seed before the next seed, that breaks what the safeguard protects."""
    candidate = CANDIDATES[name]
    for seed in range(1, MAX_SEED + 1):
        for run in candidate.runs:
            scenario, *settings = shlex.split(run)
            found = broken(scenario, settings, seed, name)
            if candidate.breaks in found and candidate.breaks not in broken_anyway(scenario, tuple(settings), seed):
                return {"scenario": scenario, "settings": settings, "seed": seed, "breaks": candidate.breaks}
    return None


def load() -> Mapping[str, dict[str, Any]]:
    """What is recorded, by safeguard."""
    return json_files.load(FOUND)


def main(arguments: list[str]) -> int:
    names = variants.names(variants.ABLATION)
    return searches.search(FOUND, names, names, arguments, find, "NOT FOUND")


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
