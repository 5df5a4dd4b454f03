"""Settings of all tests.

Whoever changes an object that others share fails its test (``kemu.emulated.objects.wire.shared_objects``).
Hypothesis draws the same examples every time, whatever the speed of the machine; ``pytest --hypothesis-profile search``
draws new ones. With ``KEMU_STRICT=1`` (as in CI) a test that skips fails: nothing is left out unnoticed. Only what no
script of this project can install may be missing (Jaeger, which is built from source by a tool beside the project).
A test marked ``nightly(reason)`` runs only with ``KEMU_NIGHTLY=1``, as scripts/nightly does.
"""

from __future__ import annotations

import gc
import os
import signal
import sys
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import HealthCheck, settings
from hypothesis.internal.conjecture import providers
from hypothesis.internal.constants_ast import Constants

from kemu.emulated.objects.wire import shared_objects
from kemu.runtime import garbage

ANY_SPEED = [HealthCheck.too_slow]
settings.register_profile("kemu", deadline=None, derandomize=True, suppress_health_check=ANY_SPEED)
settings.register_profile("search", deadline=None, print_blob=True, suppress_health_check=ANY_SPEED)
settings.load_profile("kemu")
# It would parse all modules of the project for their constants, in each worker, and draw other examples whenever one of
# them changes.
_CONSTANTS = Constants()
providers._get_local_constants = lambda: _CONSTANTS

shared_objects.OBJECTS.checks = True

STRICT = os.environ.get("KEMU_STRICT") == "1"
ACCEPTED = "not beside the project: "
NIGHT = os.environ.get("KEMU_NIGHTLY") == "1"


def pytest_configure() -> None:
    """Ctrl-C interrupts, as in a terminal.

    A shell has what it starts in the background ignore it, and processes of tests would inherit that.
    """
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Iterator[None]:
    """Thousands of tests and what they import live to the end: the garbage collector need not look at them.

    What pytest makes of their files is kept, as scripts/setup does for the modules, also where
    PYTHONDONTWRITEBYTECODE keeps processes from doing so: it is half of the work, for each worker.
    """
    gc.disable()
    before, sys.dont_write_bytecode = sys.dont_write_bytecode, False
    found = yield
    sys.dont_write_bytecode = before
    garbage.settle()
    garbage.look_rarely()
    gc.enable()
    return found


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Tests for the night are left out by day. Files with slow tests come first: with several workers, none is left
    alone with one of them at the end."""
    for item in items:
        nightly = item.get_closest_marker("nightly")
        if nightly is not None and not NIGHT:
            item.add_marker(pytest.mark.skip(reason=f"{ACCEPTED}{nightly.args[0]}, so nightly"))
    slow = {item.path for item in items if item.get_closest_marker("slow") is not None}
    items.sort(key=lambda item: item.path not in slow)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Iterator[None]:
    report = yield
    if STRICT and report.skipped and not hasattr(report, "wasxfail"):
        reason = str(report.longrepr[2]).removeprefix("Skipped: ")
        if not reason.startswith(ACCEPTED):
            report.outcome = "failed"
            report.longrepr = f"{item.nodeid} skips, which KEMU_STRICT=1 does not allow: {reason}"
    return report


@pytest.fixture(scope="session")
def local_ray() -> Iterator[Any]:
    """One Ray for all tests of this process that run actors in cells: each run has cells of its own."""
    from kemu.runtime.ray.driver.clusters import RayCluster

    with RayCluster("local", workers=3) as cluster:
        yield cluster


@pytest.fixture(autouse=True)
def _nobody_has_changed_a_shared_object() -> Iterator[None]:
    yield
    try:
        shared_objects.OBJECTS.check()
    finally:
        shared_objects.OBJECTS.clear()
