"""The same scenarios in fresh processes under other hash seeds: ``python -m kemu.lab.fuzz.fresh SEED NUMBER …``.

A process prints the digest of each. Nothing but the seed and the number goes in, so the drawing is compared, too.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Mapping, Sequence

from kemu.lab.fuzz import features, trials
from kemu.lab.fuzz.drawing import drawn

HASH_SEEDS = (7919, 15838)


def digests(seed: int, numbers: Sequence[int], pinned: Mapping[str, str]) -> list[str]:
    """In this process."""
    plan = features.Plan(seed, pinned)
    return [trials.run(drawn.draw(seed, number, plan.levels(number)).data).digest for number in numbers]


def differing(seed: int, numbers: Sequence[int], pinned: Mapping[str, str]) -> list[int]:
    """The numbers whose digests differ between processes."""
    found = [_asked(seed, numbers, pinned, hash_seed) for hash_seed in HASH_SEEDS]
    return [number for number, one, other in zip(numbers, *found, strict=True) if one != other]


def _asked(seed: int, numbers: Sequence[int], pinned: Mapping[str, str], hash_seed: int) -> list[str]:
    path = os.pathsep.join(os.path.abspath(entry) for entry in sys.path)
    done = subprocess.run(
        [sys.executable, "-m", "kemu.lab.fuzz.fresh", json.dumps([seed, list(numbers), dict(pinned)])],
        capture_output=True,
        text=True,
        env={**os.environ, "PYTHONHASHSEED": str(hash_seed), "PYTHONPATH": path},
        check=True,
    )
    found: list[str] = json.loads(done.stdout.splitlines()[-1])
    return found


if __name__ == "__main__":
    print(json.dumps(digests(*json.loads(sys.argv[1]))))
