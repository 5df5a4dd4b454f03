"""Types of CEL as Kubernetes declares them: what the checker unifies, with the sizes that cost estimates need.

A type compares by kind, name and parameters, as in cel-go; sizes and fields are no part of its identity. Object types
are told apart by name alone, so two that differ need different names.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

Kind = Literal[
    "any", "bool", "bytes", "double", "duration", "dyn", "error", "int", "list", "map", "null", "opaque", "struct",
    "string", "timestamp", "type", "param", "uint",
]  # fmt: skip

_SHORT = {"any": "any", "duration": "duration", "error": "!error!", "null": "null", "timestamp": "timestamp"}

#: A size that nothing bounds.
UNBOUNDED = (1 << 63) - 1


@dataclass(frozen=True, slots=True)
class Type:
    """One type.

    ``max_elements`` is the largest number of characters, bytes, items or entries that a declared value has (Kubernetes'
    ``MaxElements``; 0 for what has no size). ``fields`` are the fields of an object, by the names by which expressions
    know them (see :func:`kemu.emulated.cel.schemas.escape`). ``min_serialized`` is the least number of bytes of a value
    in JSON. ``schema`` is the OpenAPI schema that the type was made of: it says how JSON is read as values of the type.
    """

    kind: Kind
    name: str
    parameters: tuple[Type, ...] = ()
    fields: Mapping[str, Type] | None = field(default=None, compare=False, repr=False)
    max_elements: int = field(default=0, compare=False, repr=False)
    min_serialized: int = field(default=1, compare=False, repr=False)
    schema: Mapping[str, object] | None = field(default=None, compare=False, repr=False)

    def __str__(self) -> str:
        """The type as cel-go prints the type of an expression, such as ``list(google.protobuf.Timestamp)``."""
        if self.kind == "param":
            return f"<{self.name}>"
        if self.parameters:
            return f"{self.name}({', '.join(map(str, self.parameters))})"
        return self.name

    @property
    def text(self) -> str:
        """The type as cel-go's error messages print it, such as ``list(timestamp)``."""
        short = _SHORT.get(self.kind)
        if short is not None:
            return short
        if self.kind == "opaque" and self.name == "function":
            result, *arguments = self.parameters
            return f"({', '.join(argument.text for argument in arguments)}) -> {result.text}"
        if self.parameters:
            return f"{self.name}({', '.join(parameter.text for parameter in self.parameters)})"
        return self.name


ANY = Type("any", "any")
BOOL = Type("bool", "bool", min_serialized=4)
BYTES = Type("bytes", "bytes", min_serialized=2)
DOUBLE = Type("double", "double")
DURATION = Type("duration", "google.protobuf.Duration", min_serialized=3)
DYN = Type("dyn", "dyn")
ERROR = Type("error", "*error*")
INT = Type("int", "int")
NULL = Type("null", "null_type", min_serialized=4)
STRING = Type("string", "string", min_serialized=2)
TIMESTAMP = Type("timestamp", "google.protobuf.Timestamp", min_serialized=21)
TYPE = Type("type", "type")
UINT = Type("uint", "uint")


def list_of(item: Type, max_items: int = UNBOUNDED) -> Type:
    """A list of at most `max_items` items."""
    return Type("list", "list", (item,), max_elements=max_items, min_serialized=2)


def map_of(key: Type, value: Type, max_properties: int = UNBOUNDED) -> Type:
    """A map with at most `max_properties` entries."""
    return Type("map", "map", (key, value), max_elements=max_properties, min_serialized=2)


def object_of(name: str, fields: Mapping[str, Type], min_serialized: int = 2) -> Type:
    """An object with named fields; every field may be absent. `name` must be unique within an environment."""
    return Type("struct", name, fields=fields, min_serialized=min_serialized)


def opaque(name: str, *parameters: Type) -> Type:
    """An abstract type that only functions know."""
    return Type("opaque", name, parameters)


def optional_of(value: Type) -> Type:
    """``optional(T)``."""
    return Type("opaque", "optional_type", (value,))


def param(name: str) -> Type:
    """A type variable of an overload."""
    return Type("param", name)


def type_of(value: Type) -> Type:
    """The type of the name of a type."""
    return Type("type", "type", (value,))


def sized(type_: Type, max_elements: int, min_serialized: int | None = None) -> Type:
    """`type_` with another size, such as that of a string with ``maxLength``."""
    least = type_.min_serialized if min_serialized is None else min_serialized
    return Type(type_.kind, type_.name, type_.parameters, type_.fields, max_elements, least, type_.schema)
