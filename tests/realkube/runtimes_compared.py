"""The same scenarios in virtual time, on the wall clock, on Ray and on real components: the table of docs/live.md.

    python -m tests.realkube.runtimes_compared races/two-schedulers-one-node races/two-replicas-same-pods

Real components take their own time; wall and Ray run ten times as fast.
"""

from __future__ import annotations

import json
import sys
import tempfile
from pathlib import Path
from typing import Any

import kemu

RUNTIMES = {"sim": None, "wall": 10.0, "ray": 10.0, "real": None}
SHOWN = ("pods_bound", "bind_conflicts", "admissions_rejected", "preemptions", "scheduling_attempts")


def verdict(scenario: str, runtime: str, speed: float | None, folder: Path) -> dict[str, Any]:
    kemu.run(scenario, runtime=runtime, speed=speed, out=folder)
    found: dict[str, Any] = json.loads((folder / "verdict.json").read_text())
    return found


def cell(found: dict[str, Any]) -> str:
    """Verdict, and what of each kind there was."""
    counts = [f"{name.replace('_', ' ')} {found['counts'][name]}" for name in SHOWN if found["counts"][name]]
    return f"{found['verdict']}: {', '.join(counts)}"


def main() -> None:
    print(f"| scenario | {' | '.join(RUNTIMES)} |")
    print("|---" * (len(RUNTIMES) + 1) + "|")
    for scenario in sys.argv[1:]:
        with tempfile.TemporaryDirectory(prefix="kemu-compared-") as folder:
            cells = [
                cell(verdict(scenario, runtime, speed, Path(folder) / runtime)) for runtime, speed in RUNTIMES.items()
            ]
        print(f"| `{scenario}` | {' | '.join(cells)} |", flush=True)


if __name__ == "__main__":
    main()
