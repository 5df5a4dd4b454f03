"""What a sweep came to, as plain data: what ``kemu sweep --json`` prints."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from kemu.lab.checks.history.windows import Window
from kemu.lab.scenario.playing import runner
from kemu.lab.sweep.cells import DONE, FAILED, SATURATED, CellRecord, Metric
from kemu.lab.sweep.engine.sweeps import Sweep
from kemu.lab.sweep.statistics import judging, samples

CONFIDENCE = 0.95
"""Confidence of the intervals of means."""
OVER_TIME = ("utilisation.cpu", "utilisation.memory")
"""Metrics that are means over the time that is measured."""
UNEVEN = 1.5
"""So many times as long a time as in another run is told: a mean over it says other things."""
_VERDICTS = {judging.HOLDS: "holds", judging.FAILS: "fails", judging.UNDECIDED: "unknown"}


def of(sweep: Sweep, results: Path) -> dict[str, Any]:
    """``results``: the file."""
    experiment, records = sweep.experiment, sweep.ordered()
    judgements = judging.judge(experiment.claims, records)
    have_figures = any(record.rows is not None for record in records)
    verdict = _VERDICTS[judging.overall(judgements)] if have_figures else "unknown"
    return {
        "experiment": experiment.name,
        "verdict": verdict,
        **experiment.scenario.measure.data(experiment.scenario.duration_ns),
        "uneven": _uneven(experiment.metrics, records, experiment.scenario.measure),
        "sweep": str(sweep.folder),
        "results": str(results),
        "cells": {"total": experiment.size, **_counts(records)},
        "variants": [
            _variant(experiment.metrics, variant, [record for record in records if record.cell.index == index])
            for index, variant in enumerate(experiment.variants)
        ],
        "claims": [dict(judgement.data()) for judgement in judgements],
        "failed": [
            {"variant": dict(record.cell.variant), "seed": record.cell.seed, "detail": record.detail}
            for record in records
            if record.status == FAILED
        ],
    }


def _uneven(metrics: Sequence[Metric], records: Sequence[CellRecord], measured: Window) -> dict[str, Any] | None:
    """Where means over time are of times that are far from equally long: such metrics, and the times.

    A run ends when nothing happens any more, which may be long before that of another seed or variant.
    """
    over_time = [metric.text for metric in metrics if metric.name in OVER_TIME]
    spans_s = [
        measured.share(0, round(record.rows.run["virtual_s"] * 1e9)) / 1e9
        for record in records
        if record.status == DONE and record.rows is not None
    ]
    if not over_time or not spans_s or max(spans_s) < UNEVEN * min(spans_s):
        return None
    return {"metrics": over_time, "shortest_s": min(spans_s), "longest_s": max(spans_s)}


def _counts(records: Sequence[CellRecord]) -> dict[str, int]:
    return {status: sum(record.status == status for record in records) for status in (DONE, SATURATED, FAILED)}


def _variant(metrics: Sequence[Metric], variant: Mapping[str, Any], records: Sequence[CellRecord]) -> dict[str, Any]:
    growing = sum(record.status == DONE and bool(record.detail) for record in records)
    return {
        "variant": dict(variant),
        "name": runner.variant_name(variant),
        **_counts(records),
        "growing": growing,
        "metrics": {metric.text: _mean(records, metric, variant) for metric in metrics},
    }


def _mean(records: Sequence[CellRecord], metric: Metric, variant: Mapping[str, Any]) -> dict[str, Any] | None:
    sample = samples.of(records, metric, variant)
    found = samples.mean(sample, CONFIDENCE)
    if found is None:
        return None
    told = found.data()
    return {
        "mean": told["estimate"],
        "low": told["low"],
        "high": told["high"],
        "at_least": any(figure.is_open for figure in sample.figures.values()),
        "seeds": found.count,
    }
