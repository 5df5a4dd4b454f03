"""Which failed tests had waited for real time: ``scripts/test`` runs these once more, alone, and says so.

Run pytest with ``-p tests.again --again FILE``. A test waits for real time if it starts a process or makes a socket, as
event loops in real time do: on a busy machine such a test may fail by its times alone. A test in virtual time that
fails has found a mistake, as has one that compares runs under several hash seeds: these are never run again.

FILE gets a line for each failed test, its node ID, or stays empty if one of them must not be run again.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

WAITS = frozenset(("os.fork", "os.forkpty", "os.posix_spawn", "socket.__new__", "subprocess.Popen"))
PROPERTY = "waits for real time"

# More failed tests than these are no matter of a busy machine.
MOST = 5


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--again", type=Path, metavar="FILE", help="write which failed tests may be run again")


def pytest_configure(config: pytest.Config) -> None:
    if hasattr(config, "workerinput") or not config.getoption("numprocesses", None):
        config.pluginmanager.register(_Watched())
    if not hasattr(config, "workerinput"):
        config.pluginmanager.register(_Failed(config.option.again))


class _Watched:
    """Notes what each test does, where the tests run."""

    def __init__(self) -> None:
        self._waits = self._compares = False
        sys.addaudithook(self._audit)

    def _audit(self, event: str, arguments: tuple[Any, ...]) -> None:
        if event in WAITS:
            self._waits = True
            if event == "subprocess.Popen" and "PYTHONHASHSEED" in (arguments[3] or ()):
                self._compares = True

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_protocol(self) -> Iterator[None]:
        self._waits = self._compares = False
        return (yield)

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_makereport(self) -> Iterator[None]:
        report = yield
        if report.failed and self._waits and not self._compares:
            report.user_properties.append((PROPERTY, True))
        return report


class _Failed:
    """Collects what failed, where all reports arrive."""

    def __init__(self, file: Path) -> None:
        self._file = file
        self._again: dict[str, None] = {}
        self._final = False

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.failed:
            self._again[report.nodeid] = None
            self._final |= (PROPERTY, True) not in report.user_properties

    def pytest_sessionfinish(self) -> None:
        again = () if self._final or len(self._again) > MOST else self._again
        self._file.write_text("".join(f"{one}\n" for one in again))
