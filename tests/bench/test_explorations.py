"""What a run of a search costs, counted: it must not grow unnoticed."""

from __future__ import annotations

import pytest

from kemu.emulated.objects.wire import shared_objects
from kemu.lab.bench import explorations


@pytest.mark.parametrize(("latencies", "most"), [("steered", 33_300), ("drawn", 33_000)])
def test_an_explored_run_calls_no_more_functions_than_it_did(
    latencies: str, most: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(shared_objects.OBJECTS, "checks", False)  # they serialise
    calls = explorations.calls(3, 10, latencies, 3)
    assert 0.8 * most < calls < most
