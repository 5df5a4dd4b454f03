"""The search of kemu as it is finds a bug if there is one, and counts what must hold in every run."""

from __future__ import annotations

from pathlib import Path

import pytest

from kemu.lab.exploration.campaigns import Settings
from kemu.lab.exploration.executions import execute
from kemu.lab.exploration.workers import Inline
from kemu.lab.scenario import catalog
from kemu.lab.scenario.loading import loader
from tests.exploration import unpatched
from tests.mutants import all_parts


def test_a_bug_is_left_as_a_scenario_that_fails_by_itself(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    scenario = loader.load(catalog.find("races/two-schedulers-one-node"), None, unpatched.TIMES["realistic"])
    settings = Settings(1, runs=2, canary=False, checks=unpatched.counted(scenario))

    def found() -> list[unpatched.Finding]:
        return list(unpatched.findings(scenario, [unpatched.InOrder(1)], settings, Inline(), tmp_path))

    assert found() == []
    with monkeypatch.context() as patch:
        all_parts.MUTANTS["everything-is-admitted"].plant(patch)
        (one,) = [each for each in found() if each.check == "the-node-was-never-overcommitted"]
        again = execute(loader.load(one.file))
        assert one.check in [failure.id for failure in again.failures]
    assert execute(loader.load(one.file)).failures == ()


def test_what_a_scenario_expects_to_fail_and_what_is_legal_do_not_count() -> None:
    _, scenario = loader.variants(loader.load(catalog.find("museum/141694-preemptor-that-nothing-wakes")))[0]
    counted = unpatched.counted(scenario)
    assert "pods-that-fit-are-tried" not in counted
    assert "no-pod-starves" not in counted
    assert "no-node-overcommitted" in counted


def test_the_very_large_ones_are_left_out_unless_somebody_names_them() -> None:
    usual = unpatched.selected([])
    assert len(usual) > 150
    assert not any(name.startswith(unpatched.LARGE) for name in usual)
    assert list(unpatched.selected(["chaos/thousand-nodes"])) == ["chaos/thousand-nodes"]
    assert all(name.startswith("seeds/") for name in unpatched.selected(["seeds"]))
    assert "seeds/starvation" not in unpatched.selected(["seeds"], ["seeds/starvation"])
