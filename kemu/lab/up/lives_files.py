"""Files for ``kemu up --lives``: how pods live that do not say, as in ``lives`` of a scenario.

A file holds the list, or a mapping with it below ``lives``, or a scenario, of which nothing else counts.
"""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import Any

from kemu import errors
from kemu.emulated.objects.conversion import user_files
from kemu.emulated.settings import documents
from kemu.emulated.settings.declared import Section
from kemu.emulated.settings.shapes import ListOf, Report
from kemu.lab.scenario.format.workloads import PodLives
from kemu.lab.scenario.loading import mistakes
from kemu.lab.scenario.scenarios import Scenario
from kemu.runtime import user_code

_SHAPE = ListOf(Section(PodLives))


def with_lives(scenario: Scenario, file: Path) -> Scenario:
    """The same scenario, in which what the file says goes before what it says itself. Raises ScenarioError."""
    data, found = _read(file)
    spec = scenario.resolved["spec"]
    spec = {**spec, "lives": [*data, *(spec.get("lives") or [])]}
    if any(each.handlers for each in found):
        user_code.look_in(file.resolve().parent)
    lives = (*found, *scenario.lives)
    return dataclasses.replace(scenario, lives=lives, resolved={**scenario.resolved, "spec": spec})


def _read(file: Path) -> tuple[list[Any], list[PodLives]]:
    try:
        text = user_files.read_text(file)
    except user_files.FileProblem as error:
        raise errors.ScenarioError([errors.Problem(str(file), 1, 1, "", str(error))]) from None
    found = documents.parse(text, str(file))
    if len(found) != 1:
        what = "holds no document" if not found else f"holds {len(found)} documents: it must be one"
        raise errors.ScenarioError([errors.Problem(str(file), 1, 1, "", what)])
    document = found[0]
    path: documents.Path = ()
    data = document.data
    for key in ("spec", "lives"):
        if isinstance(data, dict) and key in data:
            data, path = data[key], (*path, key)
    problems: list[errors.Problem] = []
    if isinstance(data, dict):
        problems.append(document.problem((), "has no list of lives, at its top or below lives"))
        raise errors.ScenarioError(problems)
    checked = _SHAPE.check(data, path, Report(document, problems))
    if problems:
        raise errors.ScenarioError(mistakes.in_order(problems, document.file))
    return data, checked
