"""The page of predictions: intervals, errors, and that a measurement has its prediction before it."""

from __future__ import annotations

import importlib.machinery
import importlib.util
import json
import math
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture
def script(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> ModuleType:
    """``scripts/predictions`` with a folder of results of its own."""
    loader = importlib.machinery.SourceFileLoader("predictions", str(ROOT / "scripts" / "predictions"))
    spec = importlib.util.spec_from_loader("predictions", loader)
    assert spec is not None
    module = importlib.util.module_from_spec(spec)
    monkeypatch.setitem(__import__("sys").modules, "predictions", module)
    loader.exec_module(module)
    monkeypatch.setattr(module, "RESULTS", tmp_path)
    return module


def _lines(script: ModuleType, predicted: list[float], measured: list[float]) -> Any:
    figures = {"as it is": {"pods_succeeded": predicted}}
    script.path_of("job").write_text(
        json.dumps({"predicted": figures, "measured": {"as it is": {"pods_succeeded": measured}}})
    )
    (line,) = script.lines_of("job")
    return line


def test_an_interval_is_chance_and_a_margin_for_the_model(script: ModuleType) -> None:
    line = _lines(script, [90.0, 110.0] * 10, [100.0] * 3)
    spread = math.sqrt(20 * 100 / 19)
    # Student's t with 19 degrees of freedom, for the mean of three runs beside that of twenty.
    assert line.half == pytest.approx(2.0930 * spread * math.sqrt(1 / 3 + 1 / 20) + 10, rel=1e-4)
    assert (line.is_inside, line.error) == (True, 0)


def test_a_miss_is_a_miss(script: ModuleType) -> None:
    line = _lines(script, [100.0] * 20, [111.0] * 3)
    assert line.half == pytest.approx(10)
    assert line.is_inside is False
    assert line.error == pytest.approx(11 / 111)


def test_nothing_is_measured_that_was_not_predicted(script: ModuleType, tmp_path: Path) -> None:
    with pytest.raises(SystemExit, match="job has no prediction of its present form"):
        script.measure("job", tmp_path)


def test_a_changed_experiment_is_told(script: ModuleType) -> None:
    script.store("job", experiment="another one", predicted={})
    assert any("job or its preset has changed since it was predicted" in one for one in script.complaints(False))


def test_predictions_that_are_too_far_off_are_a_complaint(script: ModuleType) -> None:
    right, wrong = _lines(script, [100.0] * 20, [101.0]), _lines(script, [100.0] * 20, [130.0])
    assert list(script.too_far_off({"a": [right], "b": [right], "c": [right], "d": [right], "e": [wrong]})) == []
    (fewer,) = script.too_far_off({"a": [right], "b": [right], "c": [right], "d": [wrong]})
    assert fewer == "only 3 of 4 experiments are predicted with all of their figures"
    assert any("the median error of predictions is 23.1%" in one for one in script.too_far_off({"a": [wrong]}))


def test_a_prediction_made_after_the_measurement_does_not_count(script: ModuleType) -> None:
    before = _lines(script, [100.0] * 20, [130.0])
    script.predicted_again("job", {"as it is": {"pods_succeeded": [130.0] * 20}})
    (now,) = script.lines_of("job")
    (first,) = script.lines_of("job", first=True)
    assert (now.predicted, now.measured, now.is_inside) == (130, 130, True)
    assert first == before
    # What counts is the miss.
    assert script.evidence() == {"job": [before]}
    assert "`pods_succeeded` 100 (90 … 110)" in script._before([first])
    # Once more: what was predicted at first stays.
    script.predicted_again("job", {"as it is": {"pods_succeeded": [131.0] * 20}})
    assert script.lines_of("job", first=True) == [before]
