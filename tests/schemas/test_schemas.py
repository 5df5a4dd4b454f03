"""Schemas by themselves: bounds, texts of Go, patterns, merging."""

from __future__ import annotations

import copy
import time
from typing import Any

import pytest

from kemu.emulated.objects import patterns
from kemu.emulated.objects.conversion import convert, go_json
from kemu.emulated.objects.managed_fields import schemas as go_schemas
from kemu.emulated.objects.managed_fields import values
from kemu.emulated.schemas import correlation, formats, paths, problems, structural, versions
from kemu.emulated.schemas.definitions import checks, internals
from kemu.emulated.schemas.versions import CustomSchema
from kemu.errors import Cause
from kemu.messages.k8s.apiextensions_v1_pb2 import CustomResourceDefinition


def _of(v: dict[str, Any]) -> dict[str, Any]:
    return {"type": "object", "properties": {"spec": v}}


def _document(spec: Any) -> dict[str, Any]:
    return {"apiVersion": "a.b/v1", "kind": "A", "metadata": {"name": "a"}, "spec": spec}


def _deep(levels: int) -> Any:
    value: Any = 1
    for _ in range(levels):
        value = {"a": value}
    return value


# Bounds ---------------------------------------------------------------------------------------------------------------


def test_a_schema_that_is_too_deep_is_refused_by_name() -> None:
    schema: dict[str, Any] = {"type": "string"}
    for _ in range(structural.MAX_DEPTH + 1):
        schema = {"type": "object", "properties": {"a": schema}}
    found: list[Cause] = []
    checks.check(schema, "spec.validation", found, has_status=False)
    (cause,) = found
    assert cause.field == "spec.validation.openAPIV3Schema"
    assert "45 levels" in cause.message


def test_what_a_schema_says_is_known_without_its_text() -> None:
    texts = dict(internals._FIELDS)
    parts: list[dict[str, Any]] = [
        {}, {"items": {}}, {"items": [{}]}, {"properties": {}}, {"properties": {"a": {}}}, {"not": {}},
        {"additionalProperties": False}, {"additionalProperties": True}, {"additionalProperties": {"type": "string"}},
        {"allOf": []}, {"allOf": [{}]}, {"anyOf": [{}]}, {"oneOf": [{}]}, {"x-kubernetes-validations": []},
        {"x-kubernetes-validations": [{"rule": "true"}]},
    ]  # fmt: skip
    for part in parts:
        node = structural.parse(part)
        for name, is_set in internals._HOLDING.items():
            assert bool(is_set(node)) == (texts[name](node) != "null"), (part, name)


def test_an_object_that_is_too_deep_is_refused_before_it_is_followed() -> None:
    schema = CustomSchema(_of({"x-kubernetes-preserve-unknown-fields": True}))
    with pytest.raises(structural.TooDeep, match="levels deep"):
        schema.coerce(_document(_deep(100_000)))


def test_an_object_of_the_greatest_depth_is_followed() -> None:
    schema = CustomSchema(_of({"x-kubernetes-preserve-unknown-fields": True}))
    document = _document(_deep(versions.MAX_VALUE_DEPTH - 2))
    other = _document(_deep(versions.MAX_VALUE_DEPTH - 2))
    schema.coerce(document)
    schema.default(document)
    found: list[Cause] = []
    schema.check_new(document, found)
    schema.check_update(document, other, found)
    values.check(schema.merging, document)
    assert correlation.same(document, copy.deepcopy(other))
    assert go_json.encode(document) == go_json.encode(other)
    assert not found


def test_a_schema_of_the_greatest_depth_judges() -> None:
    schema: dict[str, Any] = {"type": "string", "maxLength": 1}
    value: Any = "abc"
    for _ in range(structural.MAX_DEPTH - 1):
        schema = {"type": "object", "properties": {"a": schema}}
        value = {"a": value}
    refused: list[Cause] = []
    checks.check(_of(schema["properties"]["a"]), "", refused, has_status=False)
    assert not refused
    definition = convert.from_json(
        CustomResourceDefinition,
        {"spec": {"versions": [{"schema": {"openAPIV3Schema": _of(schema["properties"]["a"])}}]}},
    )
    assert CustomResourceDefinition.FromString(definition.SerializeToString()) == definition
    made = CustomSchema(_of(schema["properties"]["a"]))
    found: list[Cause] = []
    made.check_new(_document(value["a"]), found)
    assert [one.reason for one in found] == ["FieldValueTooLong"]


def test_alternatives_in_alternatives_cost_what_the_schema_is_long() -> None:
    alternatives: dict[str, Any] = {"minLength": 5}
    for _ in range(40):
        alternatives = {"anyOf": [alternatives, {"pattern": "^x"}], "oneOf": [{"maxLength": 0}, {"minLength": 9}]}
    made = CustomSchema(_of({"type": "string", **alternatives}))
    before = time.process_time()
    found: list[Cause] = []
    made.check_new(_document("abc"), found)
    assert found
    assert time.process_time() - before < 1


def test_a_pattern_that_backtracks_elsewhere_is_linear() -> None:
    made = CustomSchema(_of({"type": "string", "pattern": "^(a+)+$"}))
    before = time.process_time()
    found: list[Cause] = []
    made.check_new(_document("a" * 50_000 + "b"), found)
    assert len(found) == 1
    assert time.process_time() - before < 1


def test_a_long_enum_is_looked_up() -> None:
    made = CustomSchema(
        _of({"type": "array", "items": {"type": "string", "enum": [str(one) for one in range(20_000)]}})
    )
    before = time.process_time()
    found: list[Cause] = []
    made.check_new(_document([str(one) for one in range(20_000)]), found)
    assert not found
    assert time.process_time() - before < 1


# Texts ----------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("number", "text"),
    [
        (0.0, "0"),
        (1.0, "1"),
        (-2.5, "-2.5"),
        (999999.5, "999999.5"),
        (1e6, "1e+06"),
        (1234567.0, "1.234567e+06"),
        (0.0001, "0.0001"),
        (0.00001, "1e-05"),
        (1e21, "1e+21"),
        (9223372036854775808, "9.223372036854776e+18"),
        (9223372036854775807, "9223372036854775807"),
    ],
)
def test_numbers_are_those_of_go(number: float, text: str) -> None:
    assert problems.number(number) == text


def test_texts_are_quoted_as_by_go() -> None:
    assert problems.quoted('a"\\\n\x01é\u200b\U0001f642') == '"a\\"\\\\\\n\\x01é\\u200b🙂"'
    assert problems.shown({"b": "<&>", "a": 1.0}) == '{"a":1,"b":"\\u003c\\u0026\\u003e"}'


def test_repeated_patterns_are_compiled_once() -> None:
    assert patterns.compiled("^a$") is patterns.compiled("^a$")
    assert patterns.problem("[a") == "error parsing regexp: missing closing ]: `[a`"
    assert not patterns.matches("^a$", "a\n")


def test_formats_are_known_by_any_writing() -> None:
    assert formats.is_supported("date-time")
    assert formats.is_supported("datetime")
    assert not formats.is_supported("int32")


# Paths ----------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("path", "found"),
    [
        (".a", "a"),
        (".a.b", "a.b"),
        ("['a']['b']", "a.b"),
        (".m['x.y']", "m[x.y]"),
        (".m.x", "m[x]"),
        (".z", "does not refer to a valid field"),
        (".a.b.c", "does not refer to a valid field"),
        ("a", "expected [ or . but got: a"),
        (".", "unexpected end of JSON path"),
        ("['a'", "unexpected end of JSON path"),
        ("[a]", "expected single quoted string but got a"),
    ],
)
def test_paths_lead_to_fields(path: str, found: str) -> None:
    node = structural.parse(
        {
            "type": "object",
            "properties": {
                "a": {"type": "object", "properties": {"b": {"type": "string"}}},
                "m": {"type": "object", "additionalProperties": {"type": "string"}},
            },
        }
    )
    try:
        got = paths.resolve(path, node)[0]
    except ValueError as error:
        got = str(error)
    assert got == found


# Merging --------------------------------------------------------------------------------------------------------------


def test_a_kind_without_a_schema_takes_any_field() -> None:
    kind = CustomSchema(None).merging
    values.check(kind, _document({"a": [1]}))
    with pytest.raises(values.Mistyped, match=r"\.metadata\.foo: field not declared in schema"):
        values.check(kind, {**_document(1), "metadata": {"foo": 1}})


def test_what_is_kept_below_a_node_merges_as_any_value() -> None:
    kind = CustomSchema(_of({"type": "object", "x-kubernetes-preserve-unknown-fields": True})).merging
    spec = go_schemas.element_of(kind, "spec")
    assert spec is not None
    assert go_schemas.element_of(spec, "anything") == go_schemas.resolve("any")
