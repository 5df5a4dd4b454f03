"""Every recorded look of the real HorizontalPodAutoscaler controller is kemu's, too."""

from __future__ import annotations

from pathlib import Path

import pytest

from kemu.emulated.autoscaler.horizontal import rates, replicas
from kemu.lab.conformance import agreements, case_files, registry

DATA = Path(__file__).parent / "data" / "autoscaling" / "autoscaling.jsonl.gz"


def judged(number: int | None = None) -> agreements.Report:
    return agreements.judge(registry.kind("autoscaling"), list(case_files.read(DATA))[:number])


def test_every_case_agrees() -> None:
    report = judged()
    assert report.total >= 150
    assert {one.id: one.differences for one in report.disagreements} == {}


def _forget(self: rates.History, desired: int, window_ns: int, now_ns: int) -> int:
    return desired


@pytest.mark.parametrize(
    ("owner", "name", "other"),
    [
        (replicas, "_is_starting", lambda *args: False),
        (replicas.Tolerances, "cover", lambda self, ratio: ratio == 1.0),
        (rates.History, "_stabilized", _forget),
        (rates, "_total", lambda changes, since_ns: 0),
        (rates, "UP_FACTOR", 3.0),
    ],
)
def test_a_mistake_in_a_rule_is_found(owner: object, name: str, other: object, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(owner, name, other)
    assert judged().disagreements
