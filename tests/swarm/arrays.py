"""Makes the covering array of ``kemu fuzz`` anew: ``python -m tests.swarm.arrays``, after the features have changed.

It takes some 20 s, so the array stands in a file and is not made at each start.
"""

from __future__ import annotations

from allpairspy import AllPairs

from kemu.lab.fuzz import features

DIGITS = "0123456789abcdefghijklmnopqrstuvwxyz"


def made() -> str:
    rows = AllPairs([list(DIGITS[: len(levels)]) for levels in features.FEATURES.values()])
    head = "# made by python -m tests.swarm.arrays: a row of levels in each line, a column for each feature\n"
    return head + "".join("".join(row) + "\n" for row in rows)


if __name__ == "__main__":
    features.ARRAY.write_text(made())
