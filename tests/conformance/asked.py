"""The recorded cases that are asked by day: of large families some."""

from __future__ import annotations

import functools
import gzip
import itertools
from collections.abc import Iterator
from pathlib import Path

from kemu.lab.conformance import case_files
from tests.samples import step

ENOUGH = 130
"""Cases of a family: what they are drawn from comes up in fewer, and so do the bugs of ``test_mutants.py`` …"""
WHOLE = ("admission", "preempt")
"""… but for those of these families: some bugs come up in a case or two."""


def cases(file: Path) -> Iterator[case_files.Case]:
    """Read one by one: most bugs come up in the first."""
    return itertools.islice(case_files.read(file), 0, None, _step(file))


@functools.cache
def _step(file: Path) -> int:
    count = gzip.decompress(file.read_bytes()).count(b"\n")
    return 1 if file.name.split(".")[0] in WHOLE else step(count, ENOUGH)
