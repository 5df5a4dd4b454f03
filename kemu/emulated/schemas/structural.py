"""Schemas as trees of nodes, and what makes them structural (``apiserver/schema``).

A node holds one ``JSONSchemaProps``: at the spine of a schema, where it is a ``Structural``, as well as below
``allOf``, ``anyOf``, ``oneOf`` and ``not``, where it is a ``NestedValueValidation``.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from kemu import errors
from kemu.emulated.objects import patterns, plain
from kemu.emulated.schemas import problems
from kemu.emulated.schemas.problems import Value, child
from kemu.errors import Cause

MAX_DEPTH = 45
"""Deeper schemas are refused: a definition with one is no protobuf message that can be read. Kubernetes takes as many
levels as its JSON decoder does, 10,000."""

UNSUPPORTED = ("id", "$schema", "$ref", "patternProperties", "dependencies", "additionalItems", "definitions")
"""Keywords that a structural schema does not have."""

META = frozenset(("apiVersion", "kind", "metadata"))


class TooDeep(errors.KemuError):
    """A schema or a value is nested more deeply than kemu follows it."""


@dataclass(slots=True, eq=True)
class Node:
    """One schema. None or an empty collection: the keyword is not there."""

    type: str = ""
    nullable: bool = False
    default: Any = None
    """A default of null counts as none, as in Kubernetes."""
    description: str = ""
    title: str = ""
    example: Any = None
    external_docs: Mapping[str, Any] | None = None
    items: Node | None = None
    items_list: tuple[Node, ...] = ()
    """Where ``items`` is a list of schemas, which is not structural."""
    properties: dict[str, Node] = field(default_factory=dict)
    additional: Node | bool | None = None
    """``additionalProperties``."""
    format: str = ""
    maximum: float | None = None
    minimum: float | None = None
    exclusive_maximum: bool = False
    exclusive_minimum: bool = False
    max_length: int | None = None
    min_length: int | None = None
    pattern: str = ""
    max_items: int | None = None
    min_items: int | None = None
    unique_items: bool = False
    multiple_of: float | None = None
    max_properties: int | None = None
    min_properties: int | None = None
    required: tuple[str, ...] = ()
    enum: tuple[Any, ...] = ()
    all_of: tuple[Node, ...] = ()
    any_of: tuple[Node, ...] = ()
    one_of: tuple[Node, ...] = ()
    not_: Node | None = None
    preserve: bool | None = None
    """``x-kubernetes-preserve-unknown-fields``."""
    embedded: bool = False
    int_or_string: bool = False
    list_keys: tuple[str, ...] = ()
    list_type: str | None = None
    map_type: str | None = None
    rules: tuple[Mapping[str, Any], ...] = ()
    """``x-kubernetes-validations``."""
    unsupported: Mapping[str, Any] = field(default_factory=dict)
    source: Mapping[str, Any] = field(default_factory=dict, compare=False, repr=False)
    """The schema in JSON."""

    @property
    def additional_node(self) -> Node | None:
        return self.additional if isinstance(self.additional, Node) else None

    def children(self) -> Iterator[Node]:
        """The nodes one step below at the spine."""
        if self.items is not None:
            yield self.items
        if isinstance(self.additional, Node):
            yield self.additional
        yield from self.properties.values()


_WORDS = {
    "type": "type", "nullable": "nullable", "description": "description", "title": "title", "format": "format",
    "maximum": "maximum", "minimum": "minimum", "exclusiveMaximum": "exclusive_maximum",
    "exclusiveMinimum": "exclusive_minimum", "maxLength": "max_length", "minLength": "min_length", "pattern": "pattern",
    "maxItems": "max_items", "minItems": "min_items", "uniqueItems": "unique_items", "multipleOf": "multiple_of",
    "maxProperties": "max_properties", "minProperties": "min_properties", "externalDocs": "external_docs",
    "x-kubernetes-preserve-unknown-fields": "preserve", "x-kubernetes-embedded-resource": "embedded",
    "x-kubernetes-int-or-string": "int_or_string", "x-kubernetes-list-type": "list_type",
    "x-kubernetes-map-type": "map_type", "default": "default", "example": "example",
}  # fmt: skip
_TUPLES = {
    "required": "required", "enum": "enum", "x-kubernetes-list-map-keys": "list_keys",
    "x-kubernetes-validations": "rules",
}  # fmt: skip
_JUNCTORS = {"allOf": "all_of", "anyOf": "any_of", "oneOf": "one_of"}


def parse(schema: Mapping[str, Any], depth: int = 0) -> Node:
    """The tree of a ``JSONSchemaProps`` in JSON. Raises :class:`TooDeep`."""
    if depth > MAX_DEPTH:
        raise TooDeep(f"schema is nested more than {MAX_DEPTH} levels deep")
    found: dict[str, Any] = {}
    for word, value in schema.items():
        if value is None:
            continue
        if word in _WORDS:
            found[_WORDS[word]] = value
        elif word in _TUPLES:
            found[_TUPLES[word]] = tuple(value)
        elif word in _JUNCTORS:
            found[_JUNCTORS[word]] = tuple(parse(one, depth + 1) for one in value)
        elif word == "properties":
            found["properties"] = {name: parse(value[name], depth + 1) for name in sorted(value)}
        elif word == "items":
            if isinstance(value, Mapping):
                found["items"] = parse(value, depth + 1)
            else:
                found["items_list"] = tuple(parse(one, depth + 1) for one in value)
        elif word == "additionalProperties":
            found["additional"] = value if isinstance(value, bool) else parse(value, depth + 1)
        elif word == "not":
            found["not_"] = parse(value, depth + 1)
        elif word in UNSUPPORTED:
            found.setdefault("unsupported", {})[word] = value
    return Node(**found, source=schema)


def as_root(node: Node | None) -> Node:
    """The root of a whole object counts as an embedded resource."""
    if node is None:
        return Node(embedded=True)
    return node if node.embedded else replace(node, embedded=True)


def has_rules(node: Node) -> bool:
    """Whether there are ``x-kubernetes-validations`` anywhere at the spine."""
    return bool(node.rules) or any(map(has_rules, node.children()))


def depth_of(value: Value) -> int:
    """How deeply a value is nested."""
    deepest, level = 0, [value]
    while level:
        deepest += 1
        below: list[Any] = []
        for one in level:
            if isinstance(one, dict):
                below += [inner for inner in one.values() if isinstance(inner, dict | list)]
            elif isinstance(one, list):
                below += [inner for inner in one if isinstance(inner, dict | list)]
        level = below
    return deepest


# What is structural ---------------------------------------------------------------------------------------------------


def unsupported(node: Node) -> str:
    """Why no structural schema can be made of a tree, the first reason; empty: it can (``NewStructural``)."""
    for word, text in (
        ("id", "id"), ("$schema", "schema"), ("$ref", "$ref"), ("patternProperties", "patternProperties"),
        ("dependencies", "dependencies"), ("additionalItems", "additionalItems"), ("definitions", "definitions"),
    ):  # fmt: skip
        if node.unsupported.get(word) or (word == "additionalItems" and word in node.unsupported):
            return f"OpenAPIV3Schema '{text}' is not supported"
    if node.preserve is False:
        return "internal error: 'x-kubernetes-preserve-unknown-fields' must be true or undefined"
    if node.items_list:
        return "OpenAPIV3Schema 'items' must be a schema, but is an array"
    below = [*node.children(), *node.all_of, *node.any_of, *node.one_of]
    for one in [node.not_, *below] if node.not_ is not None else below:
        if one is not None and (why := unsupported(one)):
            return why
    return ""


_ROOT, _ITEM, _FIELD = "at the root", "for specified array items", "for specified object fields"
_INT_OR_STRING = (Node(type="integer"), Node(type="string"))


def says_int_or_string(node: Node) -> bool:
    """Whether the value validations of a node say already that it is an integer or a string."""
    return node.any_of == _INT_OR_STRING or _first_says_int_or_string(node)


def _first_says_int_or_string(node: Node) -> bool:
    return bool(node.all_of) and node.all_of[0].any_of == _INT_OR_STRING


def check(node: Node, path: str) -> list[Cause]:
    """Why a tree is not structural (``ValidateStructural``)."""
    found = [*_invariants(node, _ROOT, path), *_missing_of(node, node, path, path)]
    return sorted(found, key=problems.text_of)


def _invariants(node: Node, level: str, path: str) -> Iterator[Cause]:
    if node.type == "array" and node.items is None:
        yield problems.required(child(path, "items"), "must be specified")
    if node.items is not None:
        yield from _invariants(node.items, _ITEM, child(path, "items"))
    for name, one in node.properties.items():
        yield from _invariants(one, _FIELD, f"{child(path, 'properties')}[{name}]")
    if node.additional is not None:
        here = child(path, "additionalProperties")
        if level is _ROOT:
            yield problems.forbidden(here, "must not be used at the root")
        if isinstance(node.additional, Node):
            yield from _invariants(node.additional, _FIELD, here)
    if node.int_or_string:
        for word, value in (("preserve-unknown-fields", node.preserve), ("embedded-resource", node.embedded)):
            if value:
                detail = "must be false if x-kubernetes-int-or-string is true"
                yield problems.invalid(child(path, f"x-kubernetes-{word}"), value, detail)
    skips_any = node.any_of == _INT_OR_STRING
    skips_first = _first_says_int_or_string(node)
    yield from _junctors(node, skips_any, skips_first, path)
    yield from _type(node, level, path)
    yield from _head(node, level, path)
    if node.embedded and not node.preserve and not node.properties:
        detail = (
            "must not be empty if x-kubernetes-embedded-resource is true without x-kubernetes-preserve-unknown-fields"
        )
        yield problems.required(child(path, "properties"), detail)


def _type(node: Node, level: str, path: str) -> Iterator[Cause]:
    here = child(path, "type")
    if node.embedded and node.type != "object":
        detail = "must be object if x-kubernetes-embedded-resource is true"
        yield problems.invalid(here, node.type, detail) if node.type else problems.required(here, detail)
    elif not node.type and not node.int_or_string and not node.preserve:
        yield problems.required(here, f"must not be empty {level}")
    if node.embedded and node.additional is not None:
        detail = "must not be used if x-kubernetes-embedded-resource is set"
        yield problems.forbidden(child(path, "additionalProperties"), detail)
    if level is _ROOT and node.type and node.type != "object":
        yield problems.invalid(here, node.type, "must be object at the root")


def _head(node: Node, level: str, path: str) -> Iterator[Cause]:
    """Apiversion, kind and metadata of whole objects."""
    is_object = level is _ROOT or node.embedded
    for name in ("kind", "apiVersion"):
        one = node.properties.get(name)
        if is_object and one is not None and one.type != "string":
            yield problems.invalid(f"{child(path, 'properties')}[{name}].type", one.type, "must be string")
    metadata = node.properties.get("metadata")
    if metadata is None:
        return
    here = f"{child(path, 'properties')}[metadata]"
    if is_object and metadata.type != "object":
        yield problems.invalid(child(here, "type"), metadata.type, "must be object")
    if level is _ROOT and not _only_names(metadata):
        detail = "must not specify anything other than name and generateName, but metadata is implicitly specified"
        yield problems.forbidden(here, detail)


def _only_names(metadata: Node) -> bool:
    left = replace(metadata, type="", default=None)
    if left.properties.keys() <= {"name", "generateName"}:
        left.properties = {}
    return left == Node()


def _junctors(node: Node, skips_any: bool, skips_first: bool, path: str) -> Iterator[Cause]:
    if not skips_any:
        for index, one in enumerate(node.any_of):
            yield from _nested(one, False, f"{child(path, 'anyOf')}[{index}]")
    for index, one in enumerate(node.all_of):
        yield from _nested(one, skips_first and index == 0, f"{child(path, 'allOf')}[{index}]")
    for index, one in enumerate(node.one_of):
        yield from _nested(one, False, f"{child(path, 'oneOf')}[{index}]")
    if node.not_ is not None:
        yield from _nested(node.not_, False, child(path, "not"))
    if node.pattern and (why := patterns.problem(node.pattern)):
        detail = f"must be a valid regular expression, but isn't: {why}"
        yield problems.invalid(child(path, "pattern"), node.pattern, detail)


def _nested(node: Node, skips_any: bool, path: str) -> Iterator[Cause]:
    yield from _junctors(node, skips_any, False, path)
    if node.items is not None:
        yield from _nested(node.items, False, child(path, "items"))
    for name, one in node.properties.items():
        yield from _nested(one, False, f"{child(path, 'properties')}[{name}]")
    for word, is_set, state in (
        ("type", bool(node.type), "empty"),
        ("additionalProperties", node.additional is not None and node.additional is not False, "undefined"),
        ("default", node.default is not None, "undefined"),
        ("title", bool(node.title), "empty"),
        ("description", bool(node.description), "empty"),
        ("nullable", node.nullable, "false"),
        ("x-kubernetes-preserve-unknown-fields", bool(node.preserve), "false"),
        ("x-kubernetes-embedded-resource", node.embedded, "false"),
        ("x-kubernetes-int-or-string", node.int_or_string, "false"),
        ("x-kubernetes-list-map-keys", bool(node.list_keys), "empty"),
        ("x-kubernetes-list-type", node.list_type is not None, "undefined"),
        ("x-kubernetes-map-type", node.map_type is not None, "undefined"),
        ("x-kubernetes-validations", bool(node.rules), "empty"),
    ):
        if is_set:
            yield problems.forbidden(child(path, word), f"must be {state} to be structural")
    if "metadata" in node.properties:
        here = f"{child(path, 'properties')}[metadata]"
        yield problems.forbidden(here, "must not be specified in a nested context")


def _missing_of(node: Node, spine: Node | None, path: str, at: str) -> Iterator[Cause]:
    """What value validations name that the spine does not have (``validateStructuralCompleteness``)."""
    nested = [(node.not_, child(at, "not"))] if node.not_ is not None else []
    for word, ones in (("allOf", node.all_of), ("anyOf", node.any_of), ("oneOf", node.one_of)):
        nested += [(one, f"{child(at, word)}[{index}]") for index, one in enumerate(ones)]
    for one, here in nested:
        yield from _missing(one, spine, path, here)


def _missing(node: Node, spine: Node | None, path: str, at: str) -> Iterator[Cause]:
    if spine is None:
        yield problems.required(path, f"because it is defined in {at}")
        return
    yield from _missing_of(node, spine, path, at)
    if node.items is not None:
        yield from _missing(node.items, spine.items, child(path, "items"), child(at, "items"))
    for name, one in node.properties.items():
        here, there = (f"{child(where, 'properties')}[{name}]" for where in (path, at))
        if name in spine.properties:
            yield from _missing(one, spine.properties[name], here, there)
        else:
            yield problems.required(here, f"because it is defined in {there}")


def copied(value: Value) -> Value:
    """A default, for an object to keep."""
    found: Value = plain.copied(value)
    return found
