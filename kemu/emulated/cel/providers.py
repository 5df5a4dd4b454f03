"""What names mean before any scope of an expression: variables, types, and the fields of objects."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final

from kemu.emulated.cel import types
from kemu.emulated.cel.names import KEYWORDS
from kemu.emulated.cel.types import Type

PATCH_NAME: Final = "JSONPatch"
#: What Kubernetes takes for the type of a field that a JSONPatch does not have.
NO_FIELD: Final = types.opaque("")
#: Any field: what the objects of a resolver have that names no fields.
ANY_FIELD: Final[Mapping[str, Type]] = {"*": types.DYN}

_STANDARD: Final[Mapping[str, Type]] = {
    "bool": types.BOOL,
    "bytes": types.BYTES,
    "double": types.DOUBLE,
    "google.protobuf.Duration": types.DURATION,
    "google.protobuf.Timestamp": types.TIMESTAMP,
    "int": types.INT,
    "list": types.list_of(types.param("A")),
    "map": types.map_of(types.param("A"), types.param("B")),
    "null_type": types.NULL,
    "string": types.STRING,
    "uint": types.UINT,
    "optional_type": types.Type("opaque", "optional_type"),
    "net.IP": types.opaque("net.IP"),
    "net.CIDR": types.opaque("net.CIDR"),
}


class Provider:
    """Variables by name, objects by the name of their type."""

    def __init__(
        self, variables: Mapping[str, Type], objects: Mapping[str, Type], resolve: Callable[[str], Type | None]
    ) -> None:
        self.variables = dict(variables)
        self._resolve = resolve
        self._objects = dict(objects)
        for declared in self.variables.values():
            self._collect(declared)

    def _collect(self, declared: Type) -> None:
        stack = [declared]
        while stack:
            type_ = stack.pop()
            stack.extend(type_.parameters)
            if type_.kind == "struct" and type_.fields is not None and type_.name not in self._objects:
                self._objects[type_.name] = type_
                stack.extend(type_.fields.values())

    def struct(self, name: str) -> Type | None:
        """The object type of this name."""
        return self._objects.get(name) or self._resolve(name)

    def field(self, type_name: str, field: str) -> Type | None:
        """The type of a field; a keyword names the field that escapes it."""
        declared = self.struct(type_name)
        fields = declared.fields if declared is not None else None
        if fields is None:
            return None
        if fields is ANY_FIELD:
            return types.DYN
        found = fields.get(field)
        if found is None and type_name == PATCH_NAME:
            return NO_FIELD
        if found is None and field in KEYWORDS:
            found = fields.get(f"__{field}__")
        return found

    def name(self, name: str) -> tuple[Type, bool] | None:
        """The type of a name, and whether it names a type."""
        if name in self.variables:
            return self.variables[name], False
        if name == "type":
            return types.TYPE, True
        standard = _STANDARD.get(name) or self.struct(name)
        return (types.type_of(standard), True) if standard is not None else None
