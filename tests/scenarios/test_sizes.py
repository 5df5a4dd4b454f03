"""A run of a few nodes with small pages, windows, logs and caches is right, as one of thousands with large ones."""

from __future__ import annotations

from pathlib import Path

import pytest

from kemu.lab.scenario.loading import loader
from kemu.lab.scenario.playing import runner
from tests import samples
from tests.scenarios import sizes
from tests.scenarios.test_shipped import SCENARIOS, failures

BY_DAY = (
    "chaos/apiserver-crash-steps",
    "chaos/apiserver-restart-after-deletions",
    "chaos/machine-crash",
    "groups/preempted-member",
    "races/nodes-join",
    "races/preemption-under-a-budget",
    "seeds/pod-affinity",
    "seeds/preemption-example-4",
)
OTHERWISE = {
    "chaos/thousand-nodes": "informers of a thousand nodes list them three by three, and are cut off after 50 events",
    "groups/two-schedulers": "which of two gangs gets which nodes hangs on milliseconds",
}
"""Scenarios that do not hold with small pages and windows, and why that is right."""

pytestmark = pytest.mark.slow


def play(name: str, out: Path, **settings: str) -> dict:
    scenario = loader.load(SCENARIOS[name], overrides=settings)
    return runner.run_all(scenario, runner.Options(out=out, runtime="sim"))[0]


def digests(verdict: dict) -> list[str]:
    return [each["digest"] for each in verdict.get("variants", [verdict])]


@pytest.mark.parametrize("settings", [{}, {"timing": "realistic"}], ids=["ideal", "realistic"])
@pytest.mark.parametrize("name", [name for name in SCENARIOS if samples.NIGHT or name in BY_DAY])
def test_what_is_forgotten_is_computed_anew(
    name: str, settings: dict[str, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = digests(play(name, tmp_path / "before", **settings))
    sizes.shrink(monkeypatch, sizes.KEPT)
    assert digests(play(name, tmp_path / "small", **settings)) == before


@pytest.mark.parametrize("name", [name for name in SCENARIOS if samples.NIGHT or name in BY_DAY])
def test_holds_with_small_pages_and_windows(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    sizes.shrink(monkeypatch, sizes.SHOWN)
    verdict = play(name, tmp_path)
    if name in OTHERWISE:
        assert verdict["verdict"] == "fails", "no longer so"
    else:
        assert verdict["verdict"] == "holds", failures(verdict)
