"""What a run of a search costs, counted: it must not grow unnoticed."""

from __future__ import annotations

import subprocess
import sys

import pytest

_COUNT = """
from kemu.emulated.objects.wire import shared_objects
from kemu.lab.bench import explorations

shared_objects.OBJECTS.checks = False
print(explorations.calls(3, 10, {latencies!r}, 3))
"""


@pytest.mark.parametrize(("latencies", "most"), [("steered", 32_350), ("drawn", 32_400)])
def test_an_explored_run_calls_no_more_functions_than_it_did(latencies: str, most: int) -> None:
    """In a process of its own: what other tests have left there costs calls, too."""
    script = _COUNT.format(latencies=latencies)
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=300, check=True)
    assert 0.8 * most < float(done.stdout) < most
