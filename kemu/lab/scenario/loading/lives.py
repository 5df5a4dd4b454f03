"""``lives`` of a scenario: how pods live that do not say."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from typing import Any

from kemu.emulated.kubelet.probes import answers
from kemu.emulated.kubelet.usage import curves, usages
from kemu.emulated.objects import selectors
from kemu.emulated.objects.conversion import convert
from kemu.emulated.settings import paths
from kemu.emulated.settings.documents import Path
from kemu.emulated.settings.shapes import INVALID, Report
from kemu.lab.scenario import expectations, scenarios
from kemu.lab.scenario.loading.objects import manifests
from kemu.messages.k8s import meta_v1_pb2


def read(checked: Sequence[Any], path: Path, report: Report) -> tuple[scenarios.PodLives, ...]:
    """What the list says. Mistakes go to the report."""
    return tuple(_entry(item, (*path, index), report) for index, item in enumerate(checked) if item is not INVALID)


def life(item: dict[str, Any]) -> scenarios.Life:
    """The keys that ``life`` of a workload has as well."""
    return scenarios.Life(
        item.get("startSeconds"), item.get("runSeconds"), item.get("exitCode"), item.get("shutdownSeconds")
    )


def _entry(item: dict[str, Any], where: Path, report: Report) -> scenarios.PodLives:
    annotations: dict[str, str] = {}
    for key, annotation, parse in _TEXTS:
        if key in item:
            try:
                parse(item[key])
            except (curves.CurveError, answers.ProbesError) as error:
                report.add((*where, key), str(error))
            else:
                annotations[annotation] = json.dumps(item[key])
    said = life(item)
    if set(paths.get(report.document.data, where)) <= {"selector", "namespace"}:
        report.add(where, "says nothing about the life of its pods", "startSeconds, runSeconds, usage, probes, …")
    return scenarios.PodLives(item.get("namespace", ""), _selector(item, where, report), said, annotations)


_TEXTS: tuple[tuple[str, str, Callable[[Any], Any]], ...] = (
    ("usage", manifests.USAGE, usages.parse),
    ("probes", manifests.PROBES, answers.parse),
)


def _selector(item: dict[str, Any], where: Path, report: Report) -> meta_v1_pb2.LabelSelector:
    stated = item.get("selector")
    if stated is None:
        return meta_v1_pb2.LabelSelector()
    path = (*where, "selector")
    if not isinstance(stated, dict):
        report.add(path, "must be labels or a LabelSelector")
        return meta_v1_pb2.LabelSelector()
    try:
        selector = convert.from_json(meta_v1_pb2.LabelSelector, expectations.as_selector(stated))
        selectors.compile_labels(selector)
    except convert.ConversionError as error:
        for problem in error.problems:
            report.add(path, f"{problem.path}: {problem.message}", problem.suggestion)
    except selectors.SelectorError as error:
        report.add(path, str(error))
    else:
        return selector
    return meta_v1_pb2.LabelSelector()
