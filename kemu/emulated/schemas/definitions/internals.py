"""Parts of schemas as the API server shows them in the texts of errors: the Go structs of its internal version, whose
fields have no JSON names."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from kemu.emulated.schemas import problems
from kemu.emulated.schemas.problems import Value
from kemu.emulated.schemas.structural import Node


def _one(node: Node | None) -> str:
    return "null" if node is None else schema(node)


def _many(nodes: tuple[Node, ...]) -> str:
    return f"[{','.join(map(schema, nodes))}]" if nodes else "null"


def _map(nodes: Mapping[str, Node]) -> str:
    inner = ",".join(f"{problems.as_json(name)}:{schema(nodes[name])}" for name in sorted(nodes))
    return f"{{{inner}}}" if nodes else "null"


def _or_null(value: Value) -> str:
    return "null" if value is None else problems.as_json(value)


def _list(values: tuple[Any, ...]) -> str:
    return problems.as_json(list(values)) if values else "null"


def _additional(node: Node) -> str:
    if node.additional is None:
        return "null"
    allows = "false" if node.additional is False else "true"
    return f'{{"Allows":{allows},"Schema":{_one(node.additional_node)}}}'


def _items(node: Node) -> str:
    if node.items is None and not node.items_list:
        return "null"
    return f'{{"Schema":{_one(node.items)},"JSONSchemas":{_many(node.items_list)}}}'


def _docs(node: Node) -> str:
    if node.external_docs is None:
        return "null"
    found = {"Description": node.external_docs.get("description", ""), "URL": node.external_docs.get("url", "")}
    return problems.as_json(found)


_FIELDS: tuple[tuple[str, Callable[[Node], str]], ...] = (
    ("ID", lambda node: problems.as_json(node.unsupported.get("id", ""))),
    ("Schema", lambda node: problems.as_json(node.unsupported.get("$schema", ""))),
    ("Ref", lambda node: _or_null(node.unsupported.get("$ref"))),
    ("Description", lambda node: problems.as_json(node.description)),
    ("Type", lambda node: problems.as_json(node.type)),
    ("Nullable", lambda node: problems.as_json(node.nullable)),
    ("Format", lambda node: problems.as_json(node.format)),
    ("Title", lambda node: problems.as_json(node.title)),
    ("Default", lambda node: _or_null(node.default)),
    ("Maximum", lambda node: _or_null(node.maximum)),
    ("ExclusiveMaximum", lambda node: problems.as_json(node.exclusive_maximum)),
    ("Minimum", lambda node: _or_null(node.minimum)),
    ("ExclusiveMinimum", lambda node: problems.as_json(node.exclusive_minimum)),
    ("MaxLength", lambda node: _or_null(node.max_length)),
    ("MinLength", lambda node: _or_null(node.min_length)),
    ("Pattern", lambda node: problems.as_json(node.pattern)),
    ("MaxItems", lambda node: _or_null(node.max_items)),
    ("MinItems", lambda node: _or_null(node.min_items)),
    ("UniqueItems", lambda node: problems.as_json(node.unique_items)),
    ("MultipleOf", lambda node: _or_null(node.multiple_of)),
    ("Enum", lambda node: _list(node.enum)),
    ("MaxProperties", lambda node: _or_null(node.max_properties)),
    ("MinProperties", lambda node: _or_null(node.min_properties)),
    ("Required", lambda node: _list(node.required)),
    ("Items", _items),
    ("AllOf", lambda node: _many(node.all_of)),
    ("OneOf", lambda node: _many(node.one_of)),
    ("AnyOf", lambda node: _many(node.any_of)),
    ("Not", lambda node: _one(node.not_)),
    ("Properties", lambda node: _map(node.properties)),
    ("AdditionalProperties", _additional),
    ("PatternProperties", lambda node: "null"),
    ("Dependencies", lambda node: "null"),
    ("AdditionalItems", lambda node: "null"),
    ("Definitions", lambda node: "null"),
    ("ExternalDocs", _docs),
    ("Example", lambda node: _or_null(node.example)),
    ("XPreserveUnknownFields", lambda node: _or_null(node.preserve)),
    ("XEmbeddedResource", lambda node: problems.as_json(node.embedded)),
    ("XIntOrString", lambda node: problems.as_json(node.int_or_string)),
    ("XListMapKeys", lambda node: _list(node.list_keys)),
    ("XListType", lambda node: _or_null(node.list_type)),
    ("XMapType", lambda node: _or_null(node.map_type)),
    ("XValidations", lambda node: f"[{','.join(map(rule, node.rules))}]" if node.rules else "null"),
)


def schema(node: Node) -> str:
    """A ``JSONSchemaProps``."""
    return "{" + ",".join(f'"{name}":{text(node)}' for name, text in _FIELDS) + "}"


_HOLDING: Mapping[str, Callable[[Node], object]] = {
    "Items": lambda node: node.items is not None or node.items_list,
    "AllOf": lambda node: node.all_of,
    "OneOf": lambda node: node.one_of,
    "AnyOf": lambda node: node.any_of,
    "Not": lambda node: node.not_ is not None,
    "Properties": lambda node: node.properties,
    "AdditionalProperties": lambda node: node.additional is not None,
    "XValidations": lambda node: node.rules,
}
"""Fields that hold schemas or rules, whose text would be long: whether they say something."""


def names_set(node: Node) -> list[str]:
    """Its fields that say something, in their order."""
    return [
        name
        for name, text in _FIELDS
        if (_HOLDING[name](node) if name in _HOLDING else text(node) not in ("null", '""', "false"))
    ]


def items_list(nodes: tuple[Node, ...]) -> str:
    """A ``JSONSchemaPropsOrArray``."""
    return f'{{"Schema":null,"JSONSchemas":{_many(nodes)}}}'


def rule(one: Mapping[str, Any]) -> str:
    """A ``ValidationRule``."""
    fields = (
        ("Rule", one.get("rule") or ""), ("Message", one.get("message") or ""),
        ("MessageExpression", one.get("messageExpression") or ""), ("Reason", one.get("reason")),
        ("FieldPath", one.get("fieldPath") or ""), ("OptionalOldSelf", one.get("optionalOldSelf")),
    )  # fmt: skip
    return "{" + ",".join(f'"{name}":{_or_null(value)}' for name, value in fields) + "}"
