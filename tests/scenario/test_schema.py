"""The JSON Schema for editors says the same as the loader, and the documentation knows every key."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from kemu.emulated.settings import documents, shapes
from kemu.lab.scenario.format import schema
from kemu.lab.scenario.loading import loader
from tests.scenario.test_mistakes import TEN_MISTAKES
from tests.scenario.texts import FIRST_LINE, HEAD, NODES, SCENARIOS

FILES = sorted(SCENARIOS.glob("*/*.yaml"))
DOCUMENTS = ("scenarios.md", "autoscaler.md", "descheduler.md", "queues.md", "limits.md", "chaos.md")


@pytest.fixture(scope="module")
def validator() -> jsonschema.Draft202012Validator:
    found = schema.json_schema()
    jsonschema.Draft202012Validator.check_schema(found)
    return jsonschema.Draft202012Validator(found)


@pytest.mark.parametrize("file", FILES, ids=lambda file: f"{file.parent.name}/{file.stem}")
def test_every_shipped_scenario_is_valid(file: Path, validator: jsonschema.Draft202012Validator) -> None:
    (document,) = documents.read(file)
    assert [f"{error.json_path}: {error.message}" for error in validator.iter_errors(document.data)] == []


def test_mistakes_are_invalid(validator: jsonschema.Draft202012Validator) -> None:
    (document,) = documents.parse(TEN_MISTAKES, "")
    assert not validator.is_valid(document.data)


@pytest.mark.parametrize(
    "spec",
    [
        "seed: x",
        "sed: 1",
        "duration: 5",
        "controllers: [resource-quota]",
        "controllers: {pod-gc: {terminatedPods: 5}}",
        "events: [{at: 1s}]",
        "events: [{at: 1s, cordon: {node: a}, uncordon: {node: a}}]",
        "timing: {apiLatency: {uniform: {min: 1s}}}",
        "schedulers: [{name: a, policy: {preemptor: controller}}]",
        "expect: [{pod: a}]",
        "expect: [{pod: a, bound: {}, running: {}}]",
        "expect: [{pod: a, equals: 3}]",
        "workloads: [{name: a}]",
    ],
)
def test_the_schema_refuses_what_the_loader_refuses(spec: str, validator: jsonschema.Draft202012Validator) -> None:
    (document,) = documents.parse(f"{HEAD}{NODES}  {spec}\n", "")
    assert not validator.is_valid(document.data)
    problems: list[Any] = []
    schema.SCENARIO.check(document.data, (), shapes.Report(document, problems))
    assert problems
    assert problems[0].line == FIRST_LINE


def keys(shape: Any) -> Iterator[str]:
    """Every key of the format below a shape."""
    if isinstance(shape, shapes.Record):
        for name, entry in {**shape.keys, **shape.choices}.items():
            yield name
            yield from keys(entry.shape)
        for companion in shape.companions.values():
            yield from keys(companion)
    for part in ("shape", "item", "scalar", "record", "parts"):
        inner = getattr(shape, part, None)
        if inner is not None:
            yield from keys(inner)


def test_the_documentation_names_every_key() -> None:
    docs = SCENARIOS.parent / "docs"
    text = "".join((docs / name).read_text() for name in DOCUMENTS)
    in_code = {word for code in re.findall(r"`[^`]+`|```.*?```", text, re.S) for word in re.findall(r"[\w-]+", code)}
    in_code |= {part for word in in_code for part in word.split("-")}
    assert sorted(set(keys(schema.SCENARIO)) - in_code) == []


def test_the_example_of_the_documentation_is_right() -> None:
    text = (SCENARIOS.parent / "docs" / "scenarios.md").read_text()
    loader.loads(text.partition("```yaml\n")[2].partition("```")[0])
