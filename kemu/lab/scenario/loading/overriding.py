"""Values from outside of a scenario (``--set``, ``--seed``), put into its document before it is read.

Role: the first step of :mod:`loader`. A path or a parameter of the matrix that gets a value varies no longer.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from kemu import errors
from kemu.emulated.objects.plain import Json
from kemu.emulated.settings.documents import Document, Path
from kemu.lab.scenario.format.keys import matrix_keys, runtime_keys, timing_keys
from kemu.lab.scenario.loading import matrices, mistakes


def apply(document: Document, overrides: matrices.Variant) -> matrices.Variant:
    """Returns what no longer varies, and its value: paths of the matrix, and parameters. Raises ScenarioError."""
    problems = []
    pinned: dict[str, Any] = {}
    for text, value in overrides.items():
        try:
            pinned |= _override_one(document, text, value)
        except ValueError as error:
            problems.append(document.problem((), f"{text} cannot be overridden: {error}"))
    if problems:
        raise errors.ScenarioError(problems)
    return pinned


def _override_one(document: Document, text: str, value: Json) -> matrices.Variant:
    spec = document.data.get("spec") if isinstance(document.data, dict) else None
    matrix = spec.get("matrix") if isinstance(spec, dict) else None
    parameters = matrix.get(matrix_keys.PARAMETERS) if isinstance(matrix, dict) else None
    if isinstance(parameters, dict) and text in parameters:
        where = ("spec", "matrix", matrix_keys.PARAMETERS, text)
        for key, each in _pinned_parameter(text, parameters[text], value).items():
            matrices.put_all(document, key, each, document.place(where))
        del parameters[text]
        _drop_if_empty(document)
        return {text: value}
    pinned: list[str] = []
    for target in matrices.expanded(document.data, text):
        if isinstance(parameters, dict):
            _refuse_half_a_parameter(target, parameters)
        if isinstance(matrix, dict):
            for key in [key for key in matrix if key != matrix_keys.PARAMETERS and _covers(target, key)]:
                del matrix[key]
                pinned.append(key)
            _drop_if_empty(document)
        stated = spec.get("timing") if isinstance(spec, dict) else None
        if target == ("spec", "timing") and isinstance(value, str) and isinstance(stated, dict):
            target = (*target, timing_keys.PRESET)  # below the times that the scenario states
        elif target[:2] == ("spec", "timing") and len(target) > 2 and isinstance(stated, str):
            # A single time beside the preset that the scenario names.
            path: Path = ("spec", "timing")
            matrices.put(document, path, {timing_keys.PRESET: stated}, document.place(path))
        if target[:3] == ("spec", "runtime", runtime_keys.RAY) and not isinstance((spec or {}).get("runtime"), dict):
            path = ("spec", "runtime")
            matrices.put(document, path, {runtime_keys.RAY: {}}, document.place(path))
        matrices.put(document, target, value, document.place(target))
        document.overridden[target] = f"{mistakes.OVERRIDE} {text}"
    return {key: matrices.value_at(document.data, key, value) for key in pinned}


def _pinned_parameter(name: str, stated: Any, value: Any) -> matrices.Variant:
    """By path: what a parameter sets where it has this value, also one that it does not list."""
    choices = matrices.choices_of(stated)
    found = matrices.Dimension(name, choices).choice(value)
    if found is not None:
        return found
    if choices and not isinstance(stated["values"], dict):
        return dict.fromkeys(choices[0][1], value)
    there = ", ".join(str(shown) for shown, _ in choices)
    raise ValueError(f"the parameter {name} has no value {value} (there are: {there})")


def _refuse_half_a_parameter(target: Path, parameters: Mapping[str, Any]) -> None:
    """A value that a parameter would overwrite again."""
    for name, stated in parameters.items():
        for _, paths in matrices.choices_of(stated):
            if any(_covers(target, path) for path in paths):
                raise ValueError(f"the parameter {name} sets it: --set {name}=VALUE")


def _drop_if_empty(document: Document) -> None:
    """The matrix, when nothing in it varies any more."""
    spec = document.data["spec"]
    matrix = spec.get("matrix")
    if isinstance(matrix, dict):
        if matrix.get(matrix_keys.PARAMETERS) == {}:
            del matrix[matrix_keys.PARAMETERS]
        if not matrix:
            del spec["matrix"]


def _covers(target: Path, key: str) -> bool:
    """Whether setting ``target`` sets the path of the matrix too."""
    try:
        path = matrices.parse_path(key)
    except ValueError:
        return False
    return path[: len(target)] == target
