"""How the fields of custom objects merge, for managed fields and apply (``kube-openapi/pkg/schemaconv``)."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from kemu.emulated.objects.managed_fields import schemas
from kemu.emulated.objects.managed_fields.schemas import LIST, MAP, SCALAR, STRUCT, Field, Type
from kemu.emulated.schemas.structural import Node

_HEAD = {name: "string" for name in ("apiVersion", "kind")}
_METADATA = "meta.v1.ObjectMeta"


def type_of(node: Node | None) -> Type:
    """The type of whole objects; None: of a version without a schema, where any field goes."""
    if node is None:
        return Type(STRUCT, element="any", fields=_with_head({}))
    found = _type(node, False, is_object=True)
    return found if found.fields is not None else Type(STRUCT, element="any", fields=_with_head({}))


def _type(node: Node, preserves: bool, *, is_object: bool = False) -> Type:
    """``preserves``: a node above keeps unknown fields, and so do all below it."""
    preserves = preserves or bool(node.preserve)
    if node.int_or_string:
        return Type(SCALAR, "untyped")
    if node.type == "array":
        return _list(node, preserves)
    if node.type == "object" or is_object:
        return _object(node, preserves, is_object or node.embedded)
    if node.type in ("integer", "number"):
        return Type(SCALAR, "numeric")
    if node.type == "boolean":
        return Type(SCALAR, "boolean")
    if node.type == "string":
        return Type(SCALAR, "string" if node.format in ("", "byte") else "untyped")
    # Without a type: any value, but fields and elements that are known merge by what is known of them.
    if node.properties or node.additional is not None:
        return replace(_object(node, preserves, node.embedded), is_atomic=node.map_type == "atomic")
    return schemas.resolve("any")


def _list(node: Node, preserves: bool) -> Type:
    element: str | Type = "any" if node.items is None else _type(node.items, preserves)
    if node.list_type not in ("set", "map"):
        return Type(LIST, is_atomic=True, element=element)
    return Type(LIST, element=element, keys=node.list_keys if node.list_type == "map" else ())


def _object(node: Node, preserves: bool, is_object: bool) -> Type:
    fields = {name: _field(one, preserves) for name, one in node.properties.items()}
    if is_object:
        fields = _with_head(fields)
    element: str | Type = ""
    if isinstance(node.additional, Node):
        element = _type(node.additional, preserves)
    elif node.additional is True or (node.additional is None and (preserves or not fields)):
        element = "any"
    is_atomic = node.map_type == "atomic"
    if fields:
        return Type(STRUCT, is_atomic=is_atomic, element=element, fields=dict(sorted(fields.items())))
    return Type(MAP, is_atomic=is_atomic, element=element) if element else Type(STRUCT, is_atomic=is_atomic, fields={})


def _field(node: Node, preserves: bool) -> Field:
    return _made(_type(node, preserves), node.default)


def _made(type_: str | Type, default: Any = None) -> Field:
    return Field(type_, default is not None, default, False, None, False, (), "", False, (), "", "")


def _with_head(fields: dict[str, Field]) -> dict[str, Field]:
    return {**fields, **{name: _made(type_) for name, type_ in _HEAD.items()}, "metadata": _made(_METADATA)}
