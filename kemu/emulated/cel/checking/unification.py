"""Which type may stand for which, with type variables: cel-go's rules of assignment."""

from __future__ import annotations

from typing import TypeAlias

from kemu.emulated.cel import types
from kemu.emulated.cel.types import Type

#: What type variables stand for, by the text of the variable.
Bindings: TypeAlias = dict[str, Type]

_SCALARS = frozenset({"bool", "bytes", "double", "int", "string", "uint", "any", "duration", "timestamp", "struct"})
_NULLABLE = frozenset({"opaque", "struct", "any", "duration", "timestamp", "null", "dyn"})
_NESTED = frozenset({"opaque", "list", "map", "type"})


def is_dyn(type_: Type) -> bool:
    return type_.kind in ("dyn", "any")


def unwrap_optional(type_: Type) -> tuple[Type, bool]:
    """The type of the value of an optional, and whether `type_` is one."""
    if type_.kind == "opaque" and type_.name == "optional_type":
        return type_.parameters[0], True
    return type_, False


def assignable(bindings: Bindings, left: Type, right: Type) -> Bindings | None:
    """The bindings under which `left` is assignable to `right`, or None."""
    attempt = dict(bindings)
    return attempt if _assignable(attempt, left, right) else None


def assignable_all(bindings: Bindings, left: list[Type], right: list[Type]) -> Bindings | None:
    """The bindings under which the types of `left` are assignable to those of `right`, one by one, or None."""
    if len(left) != len(right):
        return None
    attempt = dict(bindings)
    return attempt if all(_assignable(attempt, one, other) for one, other in zip(left, right, strict=True)) else None


def _assignable(bindings: Bindings, left: Type, right: Type) -> bool:
    if right.kind == "param":
        valid, bound = _valid_substitution(bindings, left, right)
        if valid:
            return True
        if bound:
            return False
    if left.kind == "param":
        return _valid_substitution(bindings, right, left)[0]
    if left.kind in ("dyn", "any", "error") or right.kind in ("dyn", "any", "error"):
        return True
    if left.kind == "null":
        return right.kind in _NULLABLE
    if right.kind == "null":
        return left.kind in _NULLABLE
    if left.kind in _SCALARS:
        return left.kind == right.kind and left.name == right.name
    if left.kind == "type":
        return right.kind == "type"
    if left.kind in ("opaque", "list", "map"):
        if left.kind != right.kind or left.name != right.name or len(left.parameters) != len(right.parameters):
            return False
        return all(
            _assignable(bindings, one, other) for one, other in zip(left.parameters, right.parameters, strict=True)
        )
    return False


def _valid_substitution(bindings: Bindings, type_: Type, variable: Type) -> tuple[bool, bool]:
    """Whether the variable may stand for `type_` (it is bound to it then), and whether it was bound before."""
    if type_ == variable:
        return True, True
    bound = bindings.get(variable.text)
    if bound is not None:
        if type_ == bound:
            return True, True
        if _assignable(bindings, type_, bound):
            wider = most_general(type_, bound)
            if _absent(bindings, variable, wider):
                bindings[variable.text] = wider
            return True, True
        return False, True
    if _absent(bindings, variable, type_):
        bindings[variable.text] = type_
        return True, False
    return False, False


def _absent(bindings: Bindings, variable: Type, within: Type) -> bool:
    """Whether the variable does not occur within a type."""
    if variable == within:
        return False
    if within.kind == "param":
        bound = bindings.get(within.text)
        return bound is None or _absent(bindings, variable, bound)
    if within.kind in _NESTED:
        return all(_absent(bindings, variable, parameter) for parameter in within.parameters)
    return True


def most_general(left: Type, right: Type) -> Type:
    return left if _at_most_as_specific(left, right) else right


def _at_most_as_specific(left: Type, right: Type) -> bool:
    if is_dyn(left) or left.kind == "param":
        return True
    if is_dyn(right) or right.kind == "param" or left.kind != right.kind:
        return False
    if left.kind == "type":
        return True
    if left.kind in ("opaque", "list", "map"):
        if left.name != right.name or len(left.parameters) != len(right.parameters):
            return False
        pairs = zip(left.parameters, right.parameters, strict=True)
        return all(_at_most_as_specific(one, other) for one, other in pairs)
    return left == right


def substitute(bindings: Bindings, type_: Type, free_to_dyn: bool) -> Type:
    """`type_` with variables replaced by what they stand for; free ones by dyn, if so wanted."""
    bound = bindings.get(type_.text) if bindings else None
    if bound is not None:
        return substitute(bindings, bound, free_to_dyn)
    if type_.kind == "param":
        return types.DYN if free_to_dyn else type_
    if type_.kind not in _NESTED or not type_.parameters:
        return type_
    parameters = tuple(substitute(bindings, parameter, free_to_dyn) for parameter in type_.parameters)
    if all(new is old for new, old in zip(parameters, type_.parameters, strict=True)):
        return type_
    return Type(
        type_.kind, type_.name, parameters, max_elements=type_.max_elements, min_serialized=type_.min_serialized
    )


def equivalent(left: Type, right: Type) -> bool:
    """Whether two types are the same but for the names of type variables."""
    if left.kind != right.kind or len(left.parameters) != len(right.parameters):
        return False
    if left.kind != "param" and left.name != right.name:
        return False
    return all(equivalent(one, other) for one, other in zip(left.parameters, right.parameters, strict=True))
