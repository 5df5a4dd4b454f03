"""What each test costs: ``pytest -p tests.costs --costs FILE`` appends a line per test.

A line has, with tabs between: seconds that passed, CPU seconds of this process, CPU seconds of processes that it
started and waited for, the test. What a fixture of a module or session costs counts for the test that needs it first.
Wall time says little on a busy machine; CPU seconds, and the waiting beside them, do.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from pathlib import Path

import pytest


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
        children = after.children_user + after.children_system - before.children_user - before.children_system
        with file.open("a") as lines:
            lines.write(f"{passed:.2f}\t{own:.2f}\t{children:.2f}\t{item.nodeid}\n")
    return result
