"""What is published of the schema of a custom kind: OpenAPI v3, and what of it OpenAPI v2 can say
(``controller/openapi/builder``).

References to the types of Kubernetes are complete; sentences about the fields that all objects have come from the caller.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from kemu.emulated.schemas import structural
from kemu.emulated.schemas.structural import Node

_V3, _V2 = "#/components/schemas/", "#/definitions/"
_META = "io.k8s.apimachinery.pkg.apis.meta.v1."
_KIND, _FIELDS = "x-kubernetes-group-version-kind", "x-kubernetes-selectable-fields"
_INT_OR_STRING = [{"type": "integer"}, {"type": "string"}]
_JUNCTORS = ("allOf", "anyOf", "oneOf")
_KEPT_ZEROS = frozenset(
    (
        "maximum",
        "minimum",
        "maxLength",
        "minLength",
        "maxItems",
        "minItems",
        "multipleOf",
        "maxProperties",
        "minProperties",
    )
)
"""Keywords of which zero says something."""
_VALUES = frozenset(("default", "example"))


@dataclass(frozen=True, slots=True)
class Kind:
    """A version of a custom kind."""

    group: str
    version: str
    kind: str
    list_kind: str
    plural: str
    selectable: tuple[str, ...] = ()
    """Paths of fields that selectors may name."""
    texts: Mapping[str, str] = field(default_factory=dict, compare=False)
    """Sentences about ``apiVersion``, ``kind``, ``metadata`` and, of a list, ``items`` and ``listMetadata``."""

    def name(self, kind: str) -> str:
        """The name of a definition: ``com.example.v1.Widget``."""
        return ".".join((*reversed(self.group.split(".")), self.version, kind))


def definitions(schema: Mapping[str, Any] | None, kind: Kind, *, v2: bool = False) -> dict[str, dict[str, Any]]:
    """The definitions of a kind and of its lists, by name. ``schema``: ``openAPIV3Schema`` in JSON, if there is one."""
    node = structural.parse(schema) if schema is not None else None
    if node is not None and (structural.unsupported(node) or structural.check(node, "")):
        node = None
    found = {kind.name(kind.kind): _object(node, kind, v2), kind.name(kind.list_kind): _list(kind, v2)}
    for one, name in zip(found.values(), (kind.kind, kind.list_kind), strict=True):
        one[_KIND] = [{"group": kind.group, "kind": name, "version": kind.version}]
        if kind.selectable:
            one[_FIELDS] = [{"fieldPath": path.removeprefix(".")} for path in kind.selectable]
    return found


def _object(node: Node | None, kind: Kind, v2: bool) -> dict[str, Any]:
    if node is None or (v2 and node.preserve):
        return {"type": "object"}
    found = _spine(node, v2)
    properties = found.setdefault("properties", {})
    properties["metadata"] = _refer("ObjectMeta", kind.texts.get("metadata", ""), v2)
    properties |= _head(kind)
    found["properties"] = dict(sorted(properties.items()))
    for name in properties:
        if name in node.properties and name not in structural.META:
            _add_heads(properties[name], kind, v2)
    return found


def _list(kind: Kind, v2: bool) -> dict[str, Any]:
    prefix = _V2 if v2 else _V3
    items = {"type": "array", "items": {"$ref": prefix + kind.name(kind.kind)}}
    return {
        "description": f"{kind.list_kind} is a list of {kind.kind}",
        "type": "object",
        "required": ["items"],
        "properties": {
            **_head(kind),
            "items": _described(items, kind.texts.get("items", "")),
            "metadata": _refer("ListMeta", kind.texts.get("listMetadata", ""), v2),
        },
    }


def _head(kind: Kind) -> dict[str, Any]:
    return {name: _described({"type": "string"}, kind.texts.get(name, "")) for name in ("apiVersion", "kind")}


def _described(schema: dict[str, Any], text: str) -> dict[str, Any]:
    return {"description": text, **schema} if text else schema


def _refer(name: str, text: str, v2: bool) -> dict[str, Any]:
    """In v3 a reference has nothing beside it."""
    return _described({"$ref": f"{_V2}{_META}{name}"} if v2 else {"allOf": [{"$ref": f"{_V3}{_META}{name}"}]}, text)


def _add_heads(schema: dict[str, Any], kind: Kind, v2: bool) -> None:
    """Embedded objects have what all objects have."""
    for one in schema.get("properties", {}).values():
        _add_heads(one, kind, v2)
    for word in ("items", "additionalProperties"):
        if isinstance(schema.get(word), dict):
            _add_heads(schema[word], kind, v2)
    if not schema.get("x-kubernetes-embedded-resource"):
        return
    if v2 and schema.get("x-kubernetes-preserve-unknown-fields"):
        return
    properties = schema.setdefault("properties", {})
    properties |= {**_head(kind), "metadata": _refer("ObjectMeta", kind.texts.get("metadata", ""), v2)}
    schema["properties"] = dict(sorted(properties.items()))
    required = schema.setdefault("required", [])
    required += [name for name in ("kind", "apiVersion") if name not in required]


# Nodes ----------------------------------------------------------------------------------------------------------------


def _spine(node: Node, v2: bool) -> dict[str, Any]:
    """A node that is no value validation, as JSON."""
    found = _plain(node)
    if node.int_or_string and not v2:
        _unfold(node, found)
    if v2:
        _reduce(node, found)
    if node.items is not None and not (v2 and (node.nullable or node.preserve)):
        found["items"] = _spine(node.items, v2)
    if node.properties and not (v2 and (node.nullable or node.preserve)):
        found["properties"] = {name: _spine(one, v2) for name, one in node.properties.items()}
    if isinstance(node.additional, Node):
        found["additionalProperties"] = _spine(node.additional, v2)
    return found


def _plain(node: Node) -> dict[str, Any]:
    """Without the nodes below it at the spine."""
    found: dict[str, Any] = {}
    for word, value in node.source.items():
        if word in ("items", "properties") or value is None:
            continue
        if word == "additionalProperties":
            if isinstance(value, bool):
                found[word] = value
        elif word in _JUNCTORS:
            if value:
                found[word] = [_nested(one) for one in value]
        elif word == "not":
            found[word] = _nested(value)
        elif value or word in _KEPT_ZEROS or word in _VALUES:
            found[word] = structural.copied(value)
    return found


def _nested(schema: Mapping[str, Any]) -> dict[str, Any]:
    """A value validation."""
    node = structural.parse(schema)
    found = _plain(node)
    if node.items is not None:
        found["items"] = _nested(node.items.source)
    if node.properties:
        found["properties"] = {name: _nested(one.source) for name, one in node.properties.items()}
    return found


def _unfold(node: Node, found: dict[str, Any]) -> None:
    """``Structural.Unfold``: an integer or a string is said in the words of OpenAPI, too."""
    if structural.says_int_or_string(node):
        return
    if not node.any_of:
        found["anyOf"] = structural.copied(_INT_OR_STRING)
    else:
        found["allOf"] = [{"anyOf": structural.copied(_INT_OR_STRING)}, *found.get("allOf", ())]


def _reduce(node: Node, found: dict[str, Any]) -> None:
    """``ToStructuralOpenAPIV2``. Defaults go, too, as everywhere in v2."""
    for word in (*_JUNCTORS, "not", "nullable", "default"):
        found.pop(word, None)
    if node.nullable or (node.preserve and node.type in ("object", "array")):
        found.pop("type", None)
    additional = node.additional_node
    nullable = {name for name, one in node.properties.items() if one.nullable}
    required = [name for name in node.required if name not in nullable]
    if additional is not None and additional.nullable:
        required = []
    if required:
        found["required"] = required
    else:
        found.pop("required", None)
