"""Scenarios hold with the times of a real cluster, too, and these times are those of real clusters."""

from __future__ import annotations

import importlib.machinery
import importlib.util
from pathlib import Path

import pytest

from kemu.scenario import catalog
from kemu.scenario.loading import loader
from kemu.scenario.playing import runner

LONG = ("chaos/thousand-nodes",)
"""For the nightly."""
NAMES = [name for name in catalog.shipped() if name.startswith("chaos/") and name not in LONG]
GENDOCS = Path(__file__).parents[2] / "scripts" / "gendocs"


@pytest.mark.parametrize("name", [*NAMES, "races/two-replicas-same-pods"])
def test_holds_with_realistic_times(name: str, tmp_path: Path) -> None:
    scenario = loader.load(catalog.find(name), None, {"timing": "realistic", "seed": 1})
    verdict, _ = runner.run_all(scenario, runner.Options(out=tmp_path / "run", runtime="sim"))
    judged = verdict["expectations"] + verdict["checks"]
    assert verdict["verdict"] == "holds", [one for one in judged if one["holds"] is False]


def test_realistic_times_together_are_those_of_real_clusters() -> None:
    """Within a factor of two, as docs/scenarios.md says."""
    loading = importlib.machinery.SourceFileLoader("gendocs", str(GENDOCS))
    spec = importlib.util.spec_from_loader("gendocs", loading)
    assert spec is not None
    gendocs = importlib.util.module_from_spec(spec)
    loading.exec_module(gendocs)
    for what, percentile, here, there, _ in gendocs.measured_times():
        assert 0.5 <= here / there <= 2, f"{what}, {percentile} percentile: {here} s, measured {there} s"
