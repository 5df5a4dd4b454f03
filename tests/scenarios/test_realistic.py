"""Scenarios hold with the times of a real cluster, too, and these times are those of real clusters."""

from __future__ import annotations

import importlib.machinery
import importlib.util
import json
from pathlib import Path

import pytest

from kemu.lab.scenario import catalog
from kemu.lab.scenario.loading import loader
from kemu.lab.scenario.playing import runner

pytestmark = pytest.mark.slow

LONG = (
    "autoscaler/devices",
    "chaos/apiserver-failover",
    "chaos/apiserver-pause",
    "chaos/connection-resets",
    "chaos/cut-watches",
    "chaos/jitter-bursts",
    "chaos/many-segments",
    "chaos/narrow-link",
    "chaos/overload",
    "chaos/scheduler-pause",
    "chaos/slow-link",
    "chaos/store-crash",
    "chaos/thousand-nodes",
    "groups/large-gang",
    "jobs/nightly-cron-job",
    "kivi/c1-replicas-go-up-and-down",
    "kivi/c3-constraints-in-conflict",
    "kivi/c4-overload-travels",
    "kivi/c5-duplicates-come-back",
    "kivi/c6-maintenance-takes-two",
    "kivi/c8-spread-against-affinity",
    "mutiny/one-field",
    "queues/14543-spared-victim",
    "queues/2821-victim-comes-first",
    "queues/3779-fair-share-gives-it-back",
    "queues/7101-head-of-the-queue",
    "quotas/quota-under-churn",
    "quotas/tenants-of-a-trace",
    "races/approvals",
    "races/busy-scheduler",
    "races/priority-against-qos",
    "rollouts/changes-in-order",
    "seeds/non-cooperating-schedulers-loop",
    "seeds/starvation",
    "seeds/who-preempts",
    "starvation/backoff-favours-newcomers",
    "starvation/big-pod-among-small-ones",
    "starvation/first-come-first-served",
    "starvation/low-priority-under-a-stream-of-high",
    "starvation/wide-pods-under-load",
)
"""Half a second of computing or more: for the nightly, which takes 20 seeds of these and of the others."""
MOMENTS: dict[str, str] = json.loads((Path(__file__).parent / "moments.json").read_text())
"""Scenarios that show a sequence of moments, and which: with other times it is another one."""
NAMES = [
    name for name in catalog.shipped() if not name.startswith(("scale/", "traces/")) and name not in {*LONG, *MOMENTS}
]
GENDOCS = Path(__file__).parents[2] / "scripts" / "gendocs"


@pytest.mark.parametrize("name", NAMES)
def test_holds_with_realistic_times(name: str, tmp_path: Path) -> None:
    scenario = loader.load(catalog.find(name), None, {"timing": "realistic", "seed": 1})
    verdict, _ = runner.run_all(scenario, runner.Options(out=tmp_path / "run", runtime="sim"))
    judged = verdict["expectations"] + verdict["checks"]
    assert verdict["verdict"] == "holds", [one for one in judged if one["holds"] is False]


def test_those_for_the_night_are_some_of_them() -> None:
    assert set(catalog.shipped()) > {*LONG}
    assert len(NAMES) > 4 * len(LONG)


def test_only_pieces_of_the_museum_are_about_moments() -> None:
    """Any other scenario states the times that it is about, or how much room it leaves."""
    assert all(name.startswith("museum/") and name in catalog.shipped() for name in MOMENTS)


@pytest.mark.thorough
def test_realistic_times_together_are_those_of_real_clusters() -> None:
    """Within a factor of two, as docs/scenarios.md says."""
    loading = importlib.machinery.SourceFileLoader("gendocs", str(GENDOCS))
    spec = importlib.util.spec_from_loader("gendocs", loading)
    assert spec is not None
    gendocs = importlib.util.module_from_spec(spec)
    loading.exec_module(gendocs)
    for what, percentile, here, there, _ in gendocs.measured_times():
        assert 0.5 <= here / there <= 2, f"{what}, {percentile} percentile: {here} s, measured {there} s"
