"""Search the first seed at which each mutant is found: ``python -m tests.mutants.search [ID … | --missing]``.

Writes ``kills.json``: for each mutant the run, the first seed that shows it, and the checks and expectations that find
it there. Exit code 1 when one survives its budget and does not say why.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

from tests import searches
from tests.mutants import all_parts, planting

KILLS = Path(__file__).parent / "kills.json"


def search(planted: planting.Mutant) -> dict[str, Any] | None:
    """The first kill, all runs at one seed before the next seed; None: it survives."""
    for seed in range(1, planted.budget + 1):
        for where in planted.runs:
            found = planting.killers(planted, where, seed)
            if found:
                return {"run": where, "seed": seed, "by": list(found)}
    return None


def main(arguments: list[str]) -> int:
    asked = [name for name, each in all_parts.MUTANTS.items() if not each.survives]
    return searches.search(
        KILLS, tuple(all_parts.MUTANTS), asked, arguments, lambda name: search(all_parts.MUTANTS[name]), "SURVIVES"
    )


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
