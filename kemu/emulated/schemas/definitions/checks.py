"""Which schemas a definition may have (``validateCustomResourceDefinitionValidation`` of apiextensions)."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from kemu.emulated.schemas import paths, problems, structural
from kemu.emulated.schemas.definitions import defaults, internals
from kemu.emulated.schemas.problems import child
from kemu.emulated.schemas.structural import META, Node
from kemu.errors import Cause

if TYPE_CHECKING:
    from kemu.emulated.schemas.definitions.costs import Scope

_TYPES = ("array", "boolean", "integer", "number", "object", "string")
_REASONS = ("FieldValueDuplicate", "FieldValueForbidden", "FieldValueInvalid", "FieldValueRequired")
_AT_ROOT = (
    "Description", "Type", "Format", "Title", "Maximum", "ExclusiveMaximum", "Minimum", "ExclusiveMinimum", "MaxLength",
    "MinLength", "Pattern", "MaxItems", "MinItems", "UniqueItems", "MultipleOf", "Required", "Items", "Properties",
    "ExternalDocs", "Example", "XPreserveUnknownFields", "XValidations",
)  # fmt: skip
_IF_STATUS = "at the root of the schema if the status subresource is enabled"
_UNSUPPORTED = (
    ("id", "id"), ("additionalItems", "additionalItems"), ("patternProperties", "patternProperties"),
    ("definitions", "definitions"), ("dependencies", "dependencies"), ("$ref", "$ref"),
)  # fmt: skip


def check(
    schema: Mapping[str, Any], path: str, found: list[Cause], *, has_status: bool, is_unchanged: bool = False
) -> None:
    """Judge ``openAPIV3Schema`` in JSON; ``path``: of what holds it, as ``spec.versions[0].schema``.

    ``has_status``: the version has the subresource ``status``. ``is_unchanged``: the version had this schema before, so
    single rules may be expensive. An update is judged as a new definition otherwise: what Kubernetes lets older
    definitions keep, none here can have.
    """
    try:
        node = structural.parse(schema)
    except structural.TooDeep as error:
        found.append(problems.invalid(child(path, "openAPIV3Schema"), "", str(error)))
        return
    here = child(path, "openAPIV3Schema")
    before = len(found)
    if has_status:
        _check_root(node, path, found)
    if node.nullable:
        found.append(problems.forbidden(f"{here}.nullable", "nullable cannot be true at the root"))
    not_made: list[Cause] = []
    scope: Scope | None = None
    why = structural.unsupported(node)
    if why:
        not_made.append(problems.invalid(here, "", why))
    elif wrong := structural.check(node, here) or defaults.check(node, here):
        found += wrong
    elif structural.has_rules(node):
        from kemu.emulated.schemas.definitions import costs  # Loads CEL.

        scope = costs.Scope.of_root(node, tells_of_each=not is_unchanged)
    of_schema, of_rules = _check(node, here, _Place(), True, scope)
    found += [*of_schema, *of_rules]
    if len(found) == before:
        found += not_made
    if scope is not None:
        scope.check_total(here, found)


def _check_root(node: Node, path: str, found: list[Cause]) -> None:
    """What may stand at the root if the status is judged by itself."""
    for name in internals.names_set(node):
        if name == "Type":
            if node.type != "object":
                detail = f'only "object" is allowed as the type {_IF_STATUS}'
                found.append(problems.invalid(f"{path}.openAPIV3Schema.type", node.type, detail))
                return
        elif name not in _AT_ROOT:
            known = " ".join(_AT_ROOT)
            detail = f"only [{known}] fields are allowed {_IF_STATUS}"
            shown = problems.Verbatim(internals.schema(node))
            found.append(problems.invalid(f"{path}.openAPIV3Schema", shown, detail))
            return


@dataclass(frozen=True, slots=True)
class _Place:
    """Where in a schema a node stands."""

    defaults_forbidden: str = ""
    in_meta: bool = False
    uncorrelated: str = ""
    """The path of the outermost node whose parts have no old values."""

    def below_list(self, path: str) -> _Place:
        return self if self.uncorrelated else replace(self, uncorrelated=path)


def _check(node: Node, path: str, place: _Place, is_root: bool, scope: Scope | None) -> tuple[list[Cause], list[Cause]]:
    """Problems of the schema and of its rules (``ValidateCustomResourceDefinitionOpenAPISchema``)."""
    of_schema = list(_own(node, path, place))
    of_rules: list[Cause] = []
    for one, here, inner, below in _below(node, path, place, is_root, scope):
        schema, rules = _check(one, here, inner, False, below)
        of_schema += schema
        of_rules += rules
    of_schema += _extensions(node, path)
    if node.rules:
        for index, rule in enumerate(node.rules):
            of_schema += _rule_problems(node, rule, f"{child(path, 'x-kubernetes-validations')}[{index}]")
        if not of_schema and scope is not None:
            scope.check(path, place.uncorrelated, of_rules)
    return of_schema, of_rules


def _own(node: Node, path: str, place: _Place) -> Iterator[Cause]:
    if node.type and node.type not in _TYPES:
        yield problems.not_supported(child(path, "type"), node.type, _TYPES)
    if node.default is not None and place.defaults_forbidden:
        yield problems.forbidden(child(path, "default"), f"must not be set {place.defaults_forbidden}".strip())
    for word, name in _UNSUPPORTED:
        if word in node.unsupported and (node.unsupported[word] or word in ("additionalItems", "dependencies", "$ref")):
            yield problems.forbidden(child(path, word), f"{name} is not supported")
    if node.type == "null":
        yield problems.forbidden(child(path, "type"), "type cannot be set to null, use nullable as an alternative")
    if node.items_list:
        yield problems.forbidden(child(path, "items"), "items must be a schema object and not an array")
    if place.in_meta and node.embedded:
        here = child(path, "x-kubernetes-embedded-resource")
        yield problems.forbidden(here, "must not be used inside of resource meta")
    if node.unique_items:
        detail = "uniqueItems cannot be set to true since the runtime complexity becomes quadratic"
        yield problems.forbidden(child(path, "uniqueItems"), detail)
    if node.additional is not None and node.properties and node.additional is not True:
        detail = "additionalProperties and properties are mutual exclusive"
        yield problems.forbidden(child(path, "additionalProperties"), detail)


def _below(
    node: Node, path: str, place: _Place, is_root: bool, scope: Scope | None
) -> Iterator[tuple[Node, str, _Place, Scope | None]]:
    if isinstance(node.additional, Node):
        inner = place
        if place.in_meta:
            inner = replace(place, defaults_forbidden="inside additionalProperties applying to object metadata")
        below = scope and scope.of_values(node.additional)
        yield node.additional, child(path, "additionalProperties"), inner, below
    for name, one in node.properties.items():
        inner = place
        if node.map_type not in (None, "granular", "atomic"):
            inner = inner.below_list(path)
        if (is_root or node.embedded) and name in META:
            inner = replace(inner, in_meta=True)
            if is_root:
                inner = replace(inner, defaults_forbidden=f"in top-level {name}")
        below = scope and scope.of_property(name, one)
        yield one, f"{child(path, 'properties')}[{name}]", inner, below
    if node.not_ is not None:
        yield node.not_, child(path, "not"), place, None
    for word, ones in (("allOf", node.all_of), ("oneOf", node.one_of), ("anyOf", node.any_of)):
        for index, one in enumerate(ones):
            yield one, f"{child(path, word)}[{index}]", place, None
    definitions = node.unsupported.get("definitions") or {}
    for name in sorted(definitions):
        yield structural.parse(definitions[name]), f"{child(path, 'definitions')}[{name}]", place, None
    inner = place if node.list_type == "map" else place.below_list(path)
    if node.items is not None:
        yield node.items, child(path, "items"), inner, scope and scope.of_items(node.items)
    for index, one in enumerate(node.items_list):
        yield one, f"{child(path, 'items')}[{index}]", inner, scope and scope.of_items(one)
    dependencies = node.unsupported.get("dependencies") or {}
    for name in sorted(dependencies):
        if isinstance(dependencies[name], dict):
            parsed = structural.parse(dependencies[name])
            yield parsed, f"{child(path, 'dependencies')}[{name}]", place, None


def _extensions(node: Node, path: str) -> Iterator[Cause]:
    if node.preserve is False:
        here = child(path, "x-kubernetes-preserve-unknown-fields")
        yield problems.invalid(here, False, "must be true or undefined")
    if node.map_type is not None and node.type != "object":
        yield _wrong_type(node, path, "object", "x-kubernetes-map-type")
    if node.map_type not in (None, "atomic", "granular"):
        yield problems.not_supported(child(path, "x-kubernetes-map-type"), node.map_type, ("atomic", "granular"))
    if node.list_type is not None and node.type != "array":
        yield _wrong_type(node, path, "array", "x-kubernetes-list-type")
    else:
        yield from _set_problems(node, path)
    if node.list_type not in (None, "atomic", "set", "map"):
        here = child(path, "x-kubernetes-list-type")
        yield problems.not_supported(here, node.list_type, ("atomic", "set", "map"))
    if node.list_keys and node.list_type != "map":
        here, detail = child(path, "x-kubernetes-list-type"), "must be map if x-kubernetes-list-map-keys is non-empty"
        yield (
            problems.required(here, detail)
            if node.list_type is None
            else problems.invalid(here, node.list_type, detail)
        )
    if node.list_type == "map":
        yield from _map_problems(node, path)
    yield from _key_problems(node, path)


def _wrong_type(node: Node, path: str, wanted: str, word: str) -> Cause:
    detail = f"must be {wanted} if {word} is specified"
    here = child(path, "type")
    return problems.invalid(here, node.type, detail) if node.type else problems.required(here, detail)


def _set_problems(node: Node, path: str) -> Iterator[Cause]:
    """Elements of sets are compared as a whole."""
    items = node.items
    if node.list_type != "set" or items is None:
        return
    detail = "must be atomic as item of a list with x-kubernetes-list-type=set"
    if items.type == "array" and items.list_type not in (None, "atomic"):
        yield problems.invalid(f"{child(path, 'items')}.x-kubernetes-list-type", items.list_type, detail)
    elif items.type == "object" and items.map_type != "atomic":
        # Kubernetes shows the list type here, too.
        yield problems.invalid(f"{child(path, 'items')}.x-kubernetes-map-type", items.list_type, detail)


def _map_problems(node: Node, path: str) -> Iterator[Cause]:
    here = child(path, "x-kubernetes-list-map-keys")
    if not node.list_keys:
        yield problems.required(here, "must not be empty if x-kubernetes-list-type is map")
    items = node.items
    if items is None:
        at = child(path, "items")
        if node.items_list:
            shown = problems.Verbatim(internals.items_list(node.items_list))
            yield problems.invalid(at, shown, "must only have a single schema if x-kubernetes-list-type is map")
        else:
            yield problems.required(at, "must have a schema if x-kubernetes-list-type is map")
        return
    if items.type != "object":
        detail = "must be object if parent array's x-kubernetes-list-type is map"
        yield problems.invalid(f"{child(path, 'items')}.type", items.type, detail)
        return
    seen: set[str] = set()
    for key in node.list_keys:
        known = items.properties.get(key)
        if known is None:
            yield problems.invalid(here, list(node.list_keys), "entries must all be names of item properties")
        elif known.type in ("array", "object"):
            at = f"{child(path, 'items')}.properties[{key}].type"
            yield problems.invalid(
                at, items.type, "must be a scalar type if parent array's x-kubernetes-list-type is map"
            )
        if key in seen:
            yield problems.invalid(here, list(node.list_keys), "must not contain duplicate entries")
        seen.add(key)


def _key_problems(node: Node, path: str) -> Iterator[Cause]:
    """Elements of sets and keys of maps cannot be null (``validateMapListKeysMapSet``)."""
    items = node.items
    if items is None or node.list_type not in ("set", "map"):
        return
    if items.nullable:
        detail = f"cannot be nullable when x-kubernetes-list-type is {node.list_type}"
        yield problems.forbidden(f"{child(path, 'items')}.nullable", detail)
    if node.list_type == "set":
        return
    for key in node.list_keys:
        known = items.properties.get(key)
        if known is None:
            continue
        here = f"{child(path, 'items')}.properties[{key}]"
        which = "this property is in x-kubernetes-list-map-keys, so it"
        if key not in items.required and known.default is None:
            yield problems.required(f"{here}.default", f"{which} must have a default or be a required property")
        if known.nullable:
            yield problems.forbidden(f"{here}.nullable", f"{which} cannot be nullable")


def _rule_problems(node: Node, rule: Mapping[str, Any], path: str) -> Iterator[Cause]:
    text, message = rule.get("rule") or "", rule.get("message") or ""
    expression, at = rule.get("messageExpression") or "", rule.get("fieldPath") or ""
    if not text.strip():
        yield problems.required(f"{path}.rule", "rule is not specified")
    elif message and not message.strip():
        yield problems.invalid(f"{path}.message", message, "must be non-empty if specified")
    elif _has_newlines(message.strip()):
        yield problems.invalid(f"{path}.message", message, "must not contain line breaks")
    elif _has_newlines(text.strip()) and not message.strip():
        yield problems.required(f"{path}.message", "message must be specified if rule contains line breaks")
    if expression and not expression.strip():
        yield problems.required(f"{path}.messageExpression", "messageExpression must be non-empty if specified")
    reason = rule.get("reason")
    if reason is not None and reason not in _REASONS:
        yield problems.not_supported(f"{path}.reason", reason, _REASONS)
    if at:
        here = f"{path}.fieldPath"
        if not at.strip():
            yield problems.invalid(here, at, "must be non-empty if specified")
        if _has_newlines(at):
            yield problems.invalid(here, at, "must not contain line breaks")
        if not structural.unsupported(node) and not paths.is_valid(at, node):
            yield problems.invalid(here, at, "must be a valid path")


def _has_newlines(text: str) -> bool:
    return re.search(r"[\n\r]", text) is not None
