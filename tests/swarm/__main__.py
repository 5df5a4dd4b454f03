"""A night of ``kemu fuzz``: ``python -m tests.swarm [--scenarios 10000] [--seed N]``. Exit code 1: a scenario failed.

What a night finds belongs into ``tests/swarm/kept``, once it is mended.
"""

from __future__ import annotations

import argparse
import sys
import tempfile

from kemu.doors.cli.main import main

SCENARIOS = 10_000


def search(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.swarm", description=__doc__)
    parser.add_argument("--scenarios", type=int, default=SCENARIOS)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--out", default="")
    options = parser.parse_args(arguments)
    out = options.out or tempfile.mkdtemp(prefix="kemu-swarm-")
    return main(["fuzz", "--scenarios", str(options.scenarios), "--seed", str(options.seed), "--out", out])


if __name__ == "__main__":
    sys.exit(search(sys.argv[1:]))
