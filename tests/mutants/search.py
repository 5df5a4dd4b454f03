"""Search the first seed at which each mutant is found: ``python -m tests.mutants.search [ID … | --missing]``.

Writes ``kills.json``: for each mutant the run, the first seed that shows it, and the checks and expectations that find
it there. Exit code 1 when one survives its budget and does not say why.
"""

from __future__ import annotations

import json
import sys
import time
from pathlib import Path
from typing import Any

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
    kills: dict[str, Any] = json.loads(KILLS.read_text()) if KILLS.exists() else {}
    asked = [name for name, each in all_parts.MUTANTS.items() if not each.survives]
    if arguments == ["--missing"]:
        asked = [name for name in asked if name not in kills]
    elif arguments:
        asked = arguments
    survivors = []
    for name in asked:
        begun = time.perf_counter()
        kill = search(all_parts.MUTANTS[name])
        print(f"{name}: {kill or 'SURVIVES'} ({time.perf_counter() - begun:.1f} s)", flush=True)
        if kill is None:
            survivors.append(name)
            kills.pop(name, None)
        else:
            kills[name] = kill
        ordered = {name: kills[name] for name in all_parts.MUTANTS if name in kills}
        KILLS.write_text(json.dumps(ordered, indent=1) + "\n")
    return 1 if survivors else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
