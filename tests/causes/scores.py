"""Is the planted cause the first or second root? ``python -m tests.causes.scores FIRST COUNT [KIND …]``, by seed.

Exits with 1 if less than nine of ten are named. Twenty-seven incidents take two to three minutes of one core.
"""

from __future__ import annotations

import sys

import yaml

from kemu.lab.scenario.loading import loader
from kemu.lab.tell.causes import checking
from kemu.lab.tell.causes.roots import Causes, Root
from tests.causes import incidents
from tests.causes.incidents import Incident, Planted

NAMED = 2
"""The planted cause has to be among so many roots."""
LEAST = 0.9


def causes_of(made: Incident) -> Causes:
    scenario = loader.loads(yaml.safe_dump(made.scenario, sort_keys=False), "incident.yaml")
    found, _ = checking.run(scenario)
    return found


def is_named(made: Incident, found: Causes) -> bool:
    return all(any(_is(root, planted) for root in found.roots[:NAMED]) for planted in made.planted)


def _is(root: Root, planted: Planted) -> bool:
    return not planted.events.isdisjoint(root.events) or root.fault in planted.faults or root.name in planted.names


def main() -> int:
    first, count, *kinds = sys.argv[1:]
    hits = total = 0
    for seed in range(int(first), int(first) + int(count)):
        made = incidents.incident(seed)
        if kinds and made.kind not in kinds:
            continue
        found = causes_of(made)
        named = is_named(made, found)
        hits, total = hits + named, total + 1
        roots = "; ".join(f"{root.what} at {root.at_ns / 1e9:.0f} s, {root.share:.0%}" for root in found.roots[:3])
        print(f"{'named ' if named else 'MISSED'}  {seed}  {made.kind}: {roots or 'nothing'}", flush=True)
    print(f"{hits} of {total} planted causes are among the first {NAMED} roots")
    return 0 if hits >= LEAST * total else 1


if __name__ == "__main__":
    sys.exit(main())
