"""A part of Kubernetes' own e2e tests: those that the real control plane passes within three seconds each."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.e2e import suites

SHARDS = 3
MOST_S = 3.0
SHARD_S = 600.0


@pytest.mark.slow
@pytest.mark.parametrize("shard", range(SHARDS))
def test_what_a_real_control_plane_passes_kemu_passes(shard: int, tmp_path: Path) -> None:
    try:
        suites.binary()
        names = suites.wanted(MOST_S, serial=False)[shard::SHARDS]
    except FileNotFoundError as error:
        pytest.skip(f"not beside the project: {error}")
    assert len(names) > 40
    found = suites.run(names, tmp_path, SHARD_S)
    assert {name: outcome for name, outcome in found.items() if outcome != "passed"} == {}
