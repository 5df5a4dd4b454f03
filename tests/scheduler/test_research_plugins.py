"""The examples of QueueSort, PostFilter and victims' order make the difference that their scenarios state.

Run times are known only where a scenario allows it.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import kemu
from kemu.errors import ScenarioError
from kemu.lab.scenario.loading import loader
from kemu.lab.scenario.playing import runner

EXAMPLES = Path(__file__).resolve().parents[2] / "examples" / "plugins"
SCENARIOS = ("shortest-first", "least-work-lost", "spare-nearly-done")


@pytest.fixture(autouse=True)
def fresh_modules() -> Iterator[None]:
    yield
    for name in ("shortest_first", "least_work_lost", "victims"):
        sys.modules.pop(name, None)


def run(out: Path, name: str, **overrides: Any) -> dict[str, Any]:
    scenario = loader.load(EXAMPLES / f"{name}.yaml", overrides=overrides)
    return runner.run_all(scenario, runner.Options(out=out, runtime="sim"))[0]


def problem(name: str, overrides: dict[str, Any]) -> str:
    with pytest.raises(ScenarioError) as caught:
        loader.load(EXAMPLES / f"{name}.yaml", overrides=overrides)
    return str(caught.value)


@pytest.mark.parametrize("name", SCENARIOS)
def test_a_scenario_holds_and_fails_without_its_plugin(name: str, tmp_path: Path) -> None:
    assert run(tmp_path / "with", name)["verdict"] == "holds"
    without = run(tmp_path / "without", name, **{"schedulers[0].config": {}})
    assert without["verdict"] == "fails"
    assert not [one for one in without["checks"] if one["holds"] is False]


@pytest.mark.parametrize("name", ["shortest-first", "spare-nearly-done"])
def test_run_times_have_to_be_allowed(name: str) -> None:
    said = problem(name, {"schedulers[0].policy": {}})
    assert "the scheduler's policy must allow: runTimes: known" in said
    assert "enabled[0]" in said


def test_only_one_orders_victims() -> None:
    said = problem("spare-nearly-done", {"schedulers[0].policy.victimOrder": "qos"})
    assert "SpareNearlyDone orders victims, as does victimOrder: qos of the policy" in said


def test_an_order_of_victims_needs_the_default_preemption() -> None:
    disabled = {"schedulers[0].config.profiles[0].plugins.postFilter": {"disabled": [{"name": "DefaultPreemption"}]}}
    assert "DefaultPreemption is not enabled" in problem("spare-nearly-done", disabled)


def test_pods_that_are_nearly_done_may_be_no_victims_at_all(tmp_path: Path) -> None:
    arguments = {"schedulers[0].config.profiles[0].pluginConfig[0].args.graceSeconds": 1000}
    verdict = run(tmp_path, "spare-nearly-done", **arguments)
    assert verdict["counts"]["preemptions"] == 0


@pytest.mark.parametrize("answer", [1.5, True, None, (1, "2")])
def test_a_wrong_importance_fails_the_attempt_and_names_the_plugin(
    answer: object, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.syspath_prepend(str(EXAMPLES))
    import victims  # type: ignore[import-not-found]

    monkeypatch.setattr(victims.SpareNearlyDone, "importance", lambda self, victim: answer)
    verdict = run(tmp_path, "spare-nearly-done")
    assert verdict["counts"]["preemptions"] == 0
    said = [str(event.data) for event in kemu.events(tmp_path) if "SpareNearlyDone" in str(event.data)]
    assert any("importance returned" in text for text in said)
