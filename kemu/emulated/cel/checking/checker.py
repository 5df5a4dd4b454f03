"""The type of each node of a tree, and which overloads each call may resolve to, with cel-go's messages."""

from __future__ import annotations

from kemu.emulated.cel import types
from kemu.emulated.cel.checking import unification
from kemu.emulated.cel.checking.unification import Bindings
from kemu.emulated.cel.declarations import Function, Functions
from kemu.emulated.cel.errors import Issue
from kemu.emulated.cel.parsing.syntax import (
    Call,
    Comprehension,
    Ident,
    ListOf,
    Literal,
    MapOf,
    Node,
    Select,
    Struct,
    walk,
)
from kemu.emulated.cel.parsing.texts import Text
from kemu.emulated.cel.providers import Provider
from kemu.emulated.cel.types import Type
from kemu.emulated.cel.values import type_name

_LITERALS = {
    "bool": types.BOOL,
    "bytes": types.BYTES,
    "double": types.DOUBLE,
    "int": types.INT,
    "null_type": types.NULL,
    "string": types.STRING,
    "uint": types.UINT,
}


def check(tree: Node, text: Text, provider: Provider, functions: Functions) -> tuple[Node, list[Issue]]:
    """The tree with types and overloads (its root may be another node), and all mistakes."""
    checker = _Checker(text, provider, functions)
    root = checker.check(tree)
    for node, _ in walk(root):
        node.type = unification.substitute(checker.bindings, node.type, True)
    return root, checker.issues


class _Checker:
    def __init__(self, text: Text, provider: Provider, functions: Functions) -> None:
        self.text = text
        self.provider = provider
        self.functions = functions
        self.issues: list[Issue] = []
        self.bindings: Bindings = {}
        self.scopes: list[dict[str, Type]] = []
        self._variables = 0

    # Messages

    def issue(self, offset: int, message: str) -> None:
        self.issues.append(Issue(*self.text.place(offset), message))

    def _undeclared(self, offset: int, name: str) -> None:
        self.issue(offset, f"undeclared reference to '{name}' (in container '')")

    def _mismatch(self, offset: int, expected: Type, actual: Type) -> None:
        self.issue(offset, f"expected type '{expected.text}' but found '{actual.text}'")

    # Types

    def _fresh(self) -> Type:
        variable = types.param(f"_var{self._variables}")
        self._variables += 1
        return variable

    def _assign(self, left: Type, right: Type) -> bool:
        bindings = unification.assignable(self.bindings, left, right)
        if bindings is None:
            return False
        self.bindings = bindings
        return True

    def _resolved(self, type_: Type) -> Type:
        return unification.substitute(self.bindings, type_, False)

    def _lookup(self, name: str) -> tuple[Type, bool] | None:
        """The type of a name, and whether it names a type; inner scopes first."""
        plain = name.removeprefix(".")
        for scope in reversed(self.scopes) if plain == name else ():
            if name in scope:
                return scope[name], False
        return self.provider.name(plain)

    # Nodes; each returns the node to put in its place

    def check(self, node: Node) -> Node:
        match node:
            case Literal():
                node.type = _LITERALS[type_name(node.value)]
                return node
            case Ident():
                return self._ident(node)
            case Select():
                return self._select(node)
            case Call():
                return self._call(node)
            case ListOf():
                return self._list(node)
            case MapOf():
                return self._map(node)
            case Struct():
                return self._struct(node)
            case Comprehension():
                return self._comprehension(node)
            case _:
                return node

    def _ident(self, node: Ident) -> Node:
        found = self._lookup(node.name)
        if found is None:
            node.type = types.ERROR
            self._undeclared(node.offset, node.name)
            return node
        node.type, names_type = found
        node.name = node.name.removeprefix(".")
        if names_type:
            node.constant = node.type.parameters[0].name if node.type.parameters else "type"
        return node

    def _select(self, node: Select) -> Node:
        name = _qualified(node)
        found = self._lookup(name) if name is not None else None
        if found is not None and name is not None:
            return self._ident(Ident(node.offset, name))
        node.operand = self.check(node.operand)
        result = self._field(node, node.operand, node.field, False)
        node.type = self._resolved(types.BOOL if node.test_only else result)
        return node

    def _field(self, node: Node, operand: Node, field: str, optional: bool) -> Type:
        target, is_optional = unification.unwrap_optional(self._resolved(operand.type))
        result = types.ERROR
        match target.kind:
            case "map":
                result = target.parameters[1]
            case "struct":
                result = self._field_type(node.offset, target.name, field) or types.ERROR
            case "param":
                self._assign(types.DYN, target)
                result = types.DYN
            case _:
                if target.kind not in ("dyn", "any", "error"):
                    self.issue(node.offset, f"type '{target.text}' does not support field selection")
                result = types.DYN
        return types.optional_of(result) if is_optional or optional else result

    def _field_type(self, offset: int, type_name_: str, field: str) -> Type | None:
        if self.provider.struct(type_name_) is None:
            self.issue(offset, f"unexpected failed resolution of '{type_name_}'")
            return None
        found = self.provider.field(type_name_, field)
        if found is None:
            self.issue(offset, f"undefined field '{field}'")
        return found

    def _call(self, node: Call) -> Node:
        if node.function == "_?._":
            node.arguments[0] = self.check(node.arguments[0])
            field = node.arguments[1]
            assert isinstance(field, Literal), "the parser makes the field of an optional selection"
            node.type = self._resolved(self._field(node, node.arguments[0], field.value, True))
            node.overloads = ("select_optional_field",)
            field.type = types.STRING
            return node
        node.arguments = [self.check(argument) for argument in node.arguments]
        if node.target is None:
            name = node.function.removeprefix(".")
            return self._resolve(node, self.functions.find(name), node.function, name)
        prefix = _qualified(node.target)
        if prefix is not None:
            name = f"{prefix}.{node.function}".removeprefix(".")
            function = self.functions.find(name)
            if function is not None:
                node.target = None
                return self._resolve(node, function, name, name)
        node.target = self.check(node.target)
        return self._resolve(node, self.functions.find(node.function), node.function, node.function)

    def _resolve(self, node: Call, function: Function | None, shown: str, name: str) -> Node:
        if function is None:
            node.type = types.ERROR
            self._undeclared(node.offset, shown)
            return node
        node.function = name
        operands = ([node.target] if node.target is not None else []) + node.arguments
        arguments = [operand.type for operand in operands]
        if name in ("_&&_", "_||_"):
            return self._logic(node, function.overloads[0].id, operands)
        result: Type | None = None
        overloads: list[str] = []
        for overload in function.overloads:
            if overload.member != (node.target is not None):
                continue
            signature = (overload.result, *overload.arguments)
            names = {found for part in signature for found in _variables(part)}
            if names:
                fresh = {found: self._fresh() for found in sorted(names)}
                signature = tuple(unification.substitute(fresh, part, False) for part in signature)
            bindings = unification.assignable_all(self.bindings, arguments, list(signature[1:]))
            if bindings is None:
                continue
            self.bindings = bindings
            overloads.append(overload.id)
            found_result = self._resolved(signature[0])
            if result is None:
                result = found_result
            elif not unification.is_dyn(result) and found_result != result:
                result = types.DYN
        if result is None:
            shown_types = [unification.substitute(self.bindings, argument, True).text for argument in arguments]
            target = f"{shown_types.pop(0)}." if node.target is not None else ""
            signature_text = f"{target}({', '.join(shown_types)})"
            self.issue(node.offset, f"found no matching overload for '{name}' applied to '{signature_text}'")
            node.type = types.ERROR
            return node
        node.type = result
        node.overloads = tuple(overloads)
        return node

    def _logic(self, node: Call, overload: str, operands: list[Node]) -> Node:
        node.type = types.BOOL
        for operand in operands:
            if not self._assign(operand.type, types.BOOL):
                self._mismatch(operand.offset, types.BOOL, operand.type)
                node.type = types.ERROR
        node.overloads = (overload,)
        return node

    def _join(self, previous: Type | None, current: Type) -> Type:
        """The most general of two types of elements; dyn if they do not agree, which the validators judge."""
        if previous is None:
            return current
        if self._assign(previous, current):
            return unification.most_general(previous, current)
        return types.DYN

    def _optional_value(self, value: Node) -> Type:
        inner, is_optional = unification.unwrap_optional(value.type)
        if not is_optional and not unification.is_dyn(inner):
            self._mismatch(value.offset, types.optional_of(inner), inner)
        return inner

    def _list(self, node: ListOf) -> Node:
        joined: Type | None = None
        for index, element in enumerate(node.elements):
            node.elements[index] = element = self.check(element)
            type_ = self._optional_value(element) if index in node.optional else element.type
            joined = self._join(joined, type_)
        node.type = types.list_of(joined if joined is not None else self._fresh())
        return node

    def _map(self, node: MapOf) -> Node:
        keys: Type | None = None
        values: Type | None = None
        for entry in node.entries:
            entry.key = self.check(entry.key)
            keys = self._join(keys, entry.key.type)
            entry.value = self.check(entry.value)
            type_ = self._optional_value(entry.value) if entry.optional else entry.value.type
            values = self._join(values, type_)
        if keys is None or values is None:
            keys, values = self._fresh(), self._fresh()
        node.type = types.map_of(keys, values)
        return node

    def _struct(self, node: Struct) -> Node:
        found = self._lookup(node.name)
        if found is None:
            self._undeclared(node.offset, node.name)
            node.type = types.ERROR
            return node
        node.name = node.name.removeprefix(".")
        declared, names_type = found
        node.type = types.ERROR
        if not names_type and declared.kind != "type":
            self.issue(node.offset, f"'{declared.name}' is not a type")
        else:
            named = declared.parameters[0]
            if named.kind == "struct":
                node.type = named
                node.name = named.name
            else:
                self.issue(node.offset, f"'{named.name}' is not a message type")
        for field in node.fields:
            field.value = self.check(field.value)
            expected = self._field_type(field.offset, node.name, field.name) or types.ERROR
            value = self._optional_value(field.value) if field.optional else field.value.type
            if not self._assign(expected, value):
                message = (
                    f"expected type of field '{field.name}' is '{expected.text}' but provided type is '{value.text}'"
                )
                self.issue(field.offset, message)
        return node

    def _comprehension(self, node: Comprehension) -> Node:
        node.range = self.check(node.range)
        node.initial = self.check(node.initial)
        over = self._resolved(node.range.type)
        accumulated = node.initial.type
        self.scopes.append({node.accumulator: accumulated})
        match over.kind:
            case "list":
                first = types.INT if node.second else over.parameters[0]
                second = over.parameters[0]
            case "map":
                first, second = over.parameters
            case "dyn" | "any" | "error" | "param":
                self._assign(types.DYN, over)
                first = second = types.DYN
            case _:
                wanted = "cannot be range of a comprehension (must be list, map, or dynamic)"
                self.issue(node.range.offset, f"expression of type '{over.text}' {wanted}")
                first = second = types.ERROR
        scope = {node.variable: first}
        if node.second:
            scope[node.second] = second
        self.scopes.append(scope)
        node.condition = self.check(node.condition)
        self._must(node.condition, types.BOOL)
        node.step = self.check(node.step)
        self._must(node.step, accumulated)
        self.scopes.pop()
        node.result = self.check(node.result)
        self.scopes.pop()
        node.type = self._resolved(node.result.type)
        return node

    def _must(self, node: Node, expected: Type) -> None:
        if not self._assign(expected, node.type):
            self._mismatch(node.offset, expected, node.type)


def _variables(type_: Type) -> set[str]:
    if type_.kind == "param":
        return {type_.name}
    return {name for parameter in type_.parameters for name in _variables(parameter)}


def _qualified(node: Node) -> str | None:
    """``a.b.c`` as one name."""
    parts: list[str] = []
    while isinstance(node, Select) and not node.test_only:
        parts.append(node.field)
        node = node.operand
    if not isinstance(node, Ident):
        return None
    return ".".join((node.name, *reversed(parts)))
