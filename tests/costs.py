"""What each test costs: ``pytest -p tests.costs --costs FILE`` appends a line per test, ``python -m tests.costs FILE``
sums up.

A line has, with tabs between: seconds that passed, CPU seconds of this process, CPU seconds of processes that it
started and waited for, the test. What a fixture of a module or session costs counts for the test that needs it first.
Wall time says little on a busy machine; CPU seconds, and the waiting beside them, do.
"""

from __future__ import annotations

import os
import sys
import time
from collections import defaultdict
from collections.abc import Iterable, Iterator
from pathlib import Path

import pytest

MOST = 15
"""Files that are named."""


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--costs", type=Path, metavar="FILE", help="append what each test costs")


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_runtest_protocol(item: pytest.Item) -> Iterator[None]:
    file: Path | None = item.config.getoption("--costs")
    started, before = time.perf_counter(), os.times()
    result = yield
    if file is not None:
        after, passed = os.times(), time.perf_counter() - started
        own = after.user + after.system - before.user - before.system
        others = after.children_user + after.children_system - before.children_user - before.children_system
        with file.open("a") as lines:
            lines.write(f"{passed:.2f}\t{own:.2f}\t{others:.2f}\t{item.nodeid}\n")
    return result


def summary(lines: Iterable[str]) -> Iterator[str]:
    """All in a line, then the costliest files, by CPU seconds."""
    files: dict[str, list[float]] = defaultdict(lambda: [0, 0.0, 0.0, 0.0])
    for line in lines:
        *seconds, test = line.rstrip("\n").split("\t", 3)
        for name in ("all", test.partition("::")[0]):
            files[name][0] += 1
            for place, value in enumerate(map(float, seconds), 1):
                files[name][place] += value
    for name, (count, passed, own, others) in sorted(files.items(), key=lambda one: -sum(one[1][2:]))[: MOST + 1]:
        yield f"{own + others:7.1f} s of CPU, {others:6.1f} of it of processes, in {passed:7.1f} s: {count:5} of {name}"


if __name__ == "__main__":
    print("\n".join(summary(Path(sys.argv[1]).read_text().splitlines())))
