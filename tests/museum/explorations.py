"""Whether exploration finds the bugs of the museum, and how soon: python -m tests.museum.explorations [NUMBER …].

Each search knows the cluster of a piece and its claim, but not what has to happen when: the times that the piece
chose for its bug are replaced by those of a real cluster. As many runs of the cured side have to hold. Writes
``explored.json``.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import yaml

from kemu.exploration import campaigns, workers
from kemu.exploration.sources import Source
from kemu.exploration.strategies import registry
from kemu.scenario import catalog
from kemu.scenario.loading import loader
from tests.museum.pieces import PIECES, Piece, sides

EXPLORED = Path(__file__).parent / "explored.json"
REALISTIC = {"timing": {"preset": "realistic"}}
STRATEGIES = ("seeds", "uniform", "walk", "observe-late", "pos")
RUNS = 2000
GENERATION = 32

SETTINGS: Mapping[int, Mapping[str, Any]] = {
    65257: REALISTIC,
    72124: REALISTIC,
    92600: REALISTIC,
    95752: REALISTIC,
    109236: REALISTIC,
    126700: {
        **REALISTIC,
        "events[2].create.metadata.name": "p4",  # as somebody did in the issue; the name p1 may be taken still
        "expect": [{"pod": "p4", "bound": {"before": "1m"}}],
    },
    130429: REALISTIC,
    134249: REALISTIC,
    136782: REALISTIC,
    141227: REALISTIC,
    141694: REALISTIC,
}
"""By number: what is set besides the bug and the claim, or instead of the claim."""

ELSEWHERE: Mapping[int, tuple[str, str]] = {
    106780: ("races/preemption-on-a-small-node", "low-runs-beside-it"),
}
"""Found in another scenario: its name, and the expectation that fails."""


def subject(piece: Piece, *, cured: bool = False) -> tuple[str, dict[str, Any]]:
    """What is explored: a scenario and its settings."""
    side = sides(loader.load(catalog.find(piece.scenario)))[cured]
    if piece.number in ELSEWHERE:
        return ELSEWHERE[piece.number][0], dict(side)
    return piece.scenario, {**side, "expect": [yaml.safe_load(piece.claim)], **SETTINGS[piece.number]}


def command(piece: Piece) -> str:
    """The same for a shell."""
    name, settings = subject(piece)
    words = [f"--set '{path}={_flow(value)}'" for path, value in settings.items()]
    return " ".join(["kemu explore", name, *words])


def _flow(value: Any) -> str:
    text: str = yaml.safe_dump(value, default_flow_style=True, width=1000, sort_keys=False)
    return text.removesuffix("...\n").strip().replace("'", '"')


def explore(piece: Piece, runs: int = RUNS, *, cured: bool = False) -> dict[str, Any] | None:
    """The first failure, or None."""
    name, settings = subject(piece, cured=cured)
    scenario = loader.load(catalog.find(name), overrides=settings)
    limits = campaigns.Settings(seed=1, runs=runs, failures=1, generation=GENERATION, canary=False)
    executor = workers.Inline()
    try:
        strategies = registry.make(STRATEGIES, Source.of(scenario), 1)
        campaign = campaigns.Campaign(scenario, strategies, limits, executor)
        for _ in campaign.go():
            pass
    finally:
        executor.close()
    failures = campaign.data()["failures"]
    if not failures:
        return None
    first = min(failures, key=lambda failure: failure["first_run"])
    return {
        "command": command(piece),
        "runs": first["first_run"] + 1,
        "strategy": first["strategy"],
        "breaks": first["id"],
    }


def wanted() -> list[Piece]:
    return [piece for piece in PIECES.values() if piece.number in (*SETTINGS, *ELSEWHERE)]


def main(*numbers: str) -> int:
    found: dict[str, Any] = json.loads(EXPLORED.read_text()) if EXPLORED.exists() else {}
    missing = 0
    for piece in wanted():
        if numbers and str(piece.number) not in numbers:
            continue
        result = explore(piece)
        missing += result is None
        found.pop(str(piece.number), None)
        if result is not None:
            found[str(piece.number)] = result
        print(piece.number, result or f"not found in {RUNS} runs", flush=True)
        false = result and explore(piece, max(result["runs"], GENERATION), cured=True)
        if false:
            missing += 1
            print(piece.number, "the cured side fails, too:", false, flush=True)
    ordered = dict(sorted(found.items(), key=lambda item: int(item[0])))
    EXPLORED.write_text(json.dumps(ordered, indent=2) + "\n")
    return 1 if missing else 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
