"""A part of Kubernetes' own e2e tests: every third of those that the real control plane passes within three seconds
each. All that it passes are for the nightly (``python -m tests.e2e.suites``)."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.e2e import suites

EVERY = 3
MOST_S = 3.0
LIMIT_S = 600.0


@pytest.mark.slow
def test_what_a_real_control_plane_passes_kemu_passes(tmp_path: Path) -> None:
    try:
        suites.binary()
        names = suites.wanted(MOST_S, serial=False)[::EVERY]
    except FileNotFoundError as error:
        pytest.skip(f"not beside the project: {error}")
    assert len(names) > 40
    found = suites.run(names, tmp_path, LIMIT_S)
    assert {name: outcome for name, outcome in found.items() if outcome != "passed"} == {}
