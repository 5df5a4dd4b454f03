"""Named streams of random numbers, all derived from one seed.

Every source of randomness in a run (network, faults, workload, each actor) draws from a stream of its own, so that one
more draw in one place does not shift all the others. A stream depends on the seed and its names only.
"""

from __future__ import annotations

import hashlib
import random


def random_stream(seed: int, *names: str | int) -> random.Random:
    """The stream of that name. The same arguments give the same numbers in every process."""
    label = "\0".join([str(seed), *(str(name) for name in names)])
    return random.Random(int.from_bytes(hashlib.sha256(label.encode()).digest(), "big"))
