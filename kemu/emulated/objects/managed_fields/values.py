"""Objects as values of the types of :mod:`.schemas`: checked, compared, merged, cut (``structured-merge-diff/typed``).

Values are plain JSON. None is null, which is something else than a value that is not there: that is :data:`ABSENT`.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from kemu.emulated.objects.managed_fields import fieldsets, go_texts, schemas
from kemu.emulated.objects.managed_fields.fieldsets import SELF, FieldSet
from kemu.emulated.objects.managed_fields.schemas import LIST, MAP, SCALAR, STRUCT, Type
from kemu.emulated.objects.plain import Json

ABSENT: Any = object()
_DUPLICATE: Any = object()


class Mistyped(ValueError):
    """A value is not of its type. The text is that of ``typed.ValidationErrors``."""

    def __init__(self, problems: list[str]) -> None:
        super().__init__(
            problems[0] if len(problems) == 1 else "\n".join(["errors:", *(f"  {one}" for one in problems)])
        )


# Elements of lists ----------------------------------------------------------------------------------------------------


def step_of(kind: Type, element: Json) -> str:
    """The step to an element of a list that is a map or a set (``listItemToPathElement``). Raises ValueError."""
    if not kind.keys:
        return _step_of_set(element)
    if element is None:
        raise ValueError("associative list with keys may not have a null element")
    if not isinstance(element, dict):
        raise ValueError("associative list with keys may not have non-map elements")
    fields = schemas.resolve(kind.element).fields
    found: dict[str, Any] = {}
    for name in kind.keys:
        if name in element:
            found[name] = element[name]
        elif fields is not None and name in fields and fields[name].has_default:
            found[name] = fields[name].default
    if not found:
        names = " ".join(f'"{name}"' for name in kind.keys)
        raise ValueError(
            f"associative list with keys has an element that omits all key fields [{names}]"
            " (and doesn't have default values for any key fields)"
        )
    return fieldsets.key(found)


def _step_of_set(element: Json) -> str:
    if isinstance(element, dict):
        raise ValueError("associative list without keys has an element that's a map type")
    if isinstance(element, list):
        raise ValueError("not supported: associative list with lists as elements")
    if element is None:
        raise ValueError("associative list without keys has an element that's an explicit null")
    return fieldsets.value(element)


# Checking -------------------------------------------------------------------------------------------------------------


def check(kind: Type, value: Json, *, allow_duplicates: bool = False) -> None:
    """Raises :class:`Mistyped`."""
    problems = list(_problems(kind, value, "", allow_duplicates))
    if problems:
        raise Mistyped(problems)


def _problems(kind: Type, value: Json, path: str, allow_duplicates: bool) -> Iterator[str]:
    prefix = f"{path}: " if path else ""
    kind = schemas.shape(kind, value)
    if value is None:
        return
    if kind.kind is SCALAR:
        wrong = _wrong_scalar(kind.scalar, value)
        if wrong:
            yield prefix + wrong
    elif kind.kind is LIST:
        if not isinstance(value, list):
            yield f"{prefix}expected list, got &{{{go_texts.plain(value)}}}"
            return
        seen: set[str] = set()
        element = schemas.resolve(kind.element)
        for index, one in enumerate(value):
            if kind.is_atomic:
                step = f"i:{index}"
            else:
                try:
                    step = step_of(kind, one)
                except ValueError as error:
                    yield f"{prefix}element {index}: {error}"
                    return
                if step in seen and not allow_duplicates:
                    yield f"{prefix}duplicate entries for key {fieldsets.text_of_step(step)}"
                seen.add(step)
            yield from _problems(element, one, path + fieldsets.text_of_step(step), allow_duplicates)
    elif not isinstance(value, dict):
        yield f"{prefix}expected map, got &{{{go_texts.plain(value)}}}"
    else:
        for name in sorted(value):
            inner = schemas.element_of(kind, name)
            if inner is None:
                yield f"{path}.{name}: field not declared in schema"
                return
            yield from _problems(inner, value[name], f"{path}.{name}", allow_duplicates)


def _wrong_scalar(scalar: str, value: Json) -> str:
    is_bool = isinstance(value, bool)
    if scalar == "numeric":
        if is_bool or not isinstance(value, int | float):
            return f"expected numeric (int or float), got {go_texts.type_of(value)}"
    elif scalar == "string":
        if not isinstance(value, str):
            return f"expected string, got &value.valueUnstructured{{Value:{go_texts.syntax(value)}}}"
    elif scalar == "boolean":
        if not is_bool:
            return f"expected boolean, got &{{{go_texts.plain(value)}}}"
    elif isinstance(value, dict | list):
        return f"expected any scalar, got &{{{go_texts.plain(value)}}}"
    return ""


# The set of fields ----------------------------------------------------------------------------------------------------


def fields_of(kind: Type, value: Json) -> FieldSet:
    """Every leaf and every element of a value (``ToFieldSet``)."""
    node, _ = _fields(kind, value)
    return node


def _fields(kind: Type, value: Json) -> tuple[FieldSet, bool]:
    """The node of a value, and whether its own path belongs to the set."""
    kind = schemas.shape(kind, value)
    if kind.kind is SCALAR or kind.is_atomic:
        return {}, True
    node: FieldSet = {}
    if kind.kind is LIST:
        element = schemas.resolve(kind.element)
        assert value is None or isinstance(value, list)
        for step, one in _index(kind, value or []).items():
            node[step] = {SELF: {}} if one is _DUPLICATE else {**_fields(element, one)[0], SELF: {}}
        return node, False
    if not isinstance(value, dict):
        return node, False
    for name, one in value.items():
        inner = schemas.element_of(kind, name)
        assert inner is not None
        child, belongs = _fields(inner, one)
        if belongs or one is None or one == {} or kind.kind is MAP:
            child = {**child, SELF: {}}
        if child:
            node["f:" + name] = child
    return node, False


def _index(kind: Type, elements: list[Any]) -> dict[str, Any]:
    """Elements by their steps, in their order; those that occur twice as :data:`_DUPLICATE`. Raises ValueError."""
    found: dict[str, Any] = {}
    for position, one in enumerate(elements):
        try:
            step = step_of(kind, one)
        except ValueError as error:
            raise Mistyped([f"element {position}: {error}"]) from None
        found[step] = _DUPLICATE if step in found else one
    return found


# Comparing ------------------------------------------------------------------------------------------------------------


@dataclass(slots=True)
class Comparison:
    """What became of the fields of an object. No field is in two of the sets."""

    added: FieldSet
    modified: FieldSet
    removed: FieldSet


_ADDED, _MODIFIED, _REMOVED = 0, 1, 2
_Nodes = tuple[FieldSet, FieldSet, FieldSet]


def compare(kind: Type, old: Json, new: Json) -> Comparison:
    """Raises :class:`Mistyped`."""
    nodes: _Nodes = ({}, {}, {})
    _compare(kind, old, new, nodes)
    return Comparison(*nodes)


def _compare(kind: Type, old: Json, new: Json, nodes: _Nodes) -> int | None:
    """Which of the sets the path itself belongs to. ``nodes``: those of this path in the three sets."""
    kind = schemas.shape(kind, new if new is not ABSENT and new is not None else old)
    if kind.kind is SCALAR or kind.is_atomic or not (_filled(old) or _filled(new)):
        if old is ABSENT:
            return _ADDED
        if new is ABSENT:
            return _REMOVED
        return None if _equal(old, new) else _MODIFIED
    if kind.kind is LIST:
        _compare_lists(kind, old, new, nodes)
    else:
        _compare_maps(kind, old, new, nodes)
    if old is ABSENT:
        return _ADDED
    return _REMOVED if new is ABSENT else None


def _compare_maps(kind: Type, old: Json, new: Json, nodes: _Nodes) -> None:
    before = old if isinstance(old, dict) else {}
    after = new if isinstance(new, dict) else {}
    for name, one in before.items():
        other = after.get(name, ABSENT)
        if one is not other and one != other:
            _descend(schemas.element_of(kind, name), "f:" + name, one, other, nodes)
    for name, one in after.items():
        if name not in before:
            _descend(schemas.element_of(kind, name), "f:" + name, ABSENT, one, nodes)


def _compare_lists(kind: Type, old: Json, new: Json, nodes: _Nodes) -> None:
    before, after = _gather(kind, old), _gather(kind, new)
    element = schemas.resolve(kind.element)
    for step in dict.fromkeys((*before, *after)):
        one, other = before.get(step, []), after.get(step, [])
        if len(one) <= 1 and len(other) <= 1:
            _descend(element, step, one[0] if one else ABSENT, other[0] if other else ABSENT, nodes)
        elif len(one) >= 2 and len(other) >= 2:
            if one != other:
                _mark(nodes[_MODIFIED], step)
        elif len(one) >= 2:
            if other:
                _descend(element, step, ABSENT, other[0], nodes)
            _mark(nodes[_REMOVED], step)
        else:
            if one:
                _descend(element, step, one[0], ABSENT, nodes)
            _mark(nodes[_ADDED], step)


def _gather(kind: Type, elements: Json) -> dict[str, list[Any]]:
    found: dict[str, list[Any]] = {}
    for position, one in enumerate(elements if isinstance(elements, list) else ()):
        try:
            found.setdefault(step_of(kind, one), []).append(one)
        except ValueError as error:
            raise Mistyped([f"element {position}: {error}"]) from None
    return found


def _descend(kind: Type | None, step: str, old: Json, new: Json, nodes: _Nodes) -> None:
    assert kind is not None
    inner: _Nodes = ({}, {}, {})
    which = _compare(kind, old, new, inner)
    if which is not None:
        inner[which][SELF] = {}
    for node, child in zip(nodes, inner, strict=True):
        if child:
            node[step] = fieldsets.union(node[step], child) if step in node else child


def _mark(node: FieldSet, step: str) -> None:
    node.setdefault(step, {})[SELF] = {}


def _filled(value: Json) -> bool:
    """Whether a map or a list has anything in it."""
    return value is not ABSENT and bool(value)


def _equal(one: Json, other: Json) -> bool:
    return bool(one == other) and (one is None) == (other is None)


# Merging --------------------------------------------------------------------------------------------------------------


def merge(kind: Type, live: Json, config: Json) -> Json:
    """``live`` with what ``config`` says; nothing is removed (``TypedValue.Merge``). Raises :class:`Mistyped`."""
    found = _merge(kind, live, config)
    return None if found is ABSENT else found


def _merge(kind: Type, live: Json, config: Json) -> Json:
    kind = schemas.shape(kind, config if config is not ABSENT and config is not None else live)
    if kind.kind is SCALAR or kind.is_atomic or not (_filled(live) or _filled(config)):
        return live if config is ABSENT else config
    if kind.kind is LIST:
        return _merge_lists(kind, live, config)
    before = live if isinstance(live, dict) else {}
    after = config if isinstance(config, dict) else {}
    found: dict[str, Any] = {}
    for name, one in before.items():
        found[name] = _merge_field(kind, name, one, after.get(name, ABSENT))
    for name, one in after.items():
        if name not in before:
            found[name] = _merge_field(kind, name, ABSENT, one)
    found = {name: one for name, one in found.items() if one is not ABSENT}
    return found or ABSENT


def _merge_field(kind: Type, name: str, live: Json, config: Json) -> Json:
    inner = schemas.element_of(kind, name)
    if inner is None:
        return live if config is ABSENT else config
    return _merge(inner, live, config)


def _merge_lists(kind: Type, live: Json, config: Json) -> Json:
    """``mergingWalker.visitListItems``: the order is that of ``config``, and elements that it does not name keep their
    places among those that it does."""
    element = schemas.resolve(kind.element)
    left = live if isinstance(live, list) else []
    right = config if isinstance(config, list) else []
    names = _steps(kind, left)
    wanted = _steps(kind, right)
    if len(set(wanted)) < len(wanted):
        twice = next(one for index, one in enumerate(wanted) if one in wanted[:index])
        raise Mistyped([f"duplicate entries for key {fieldsets.text_of_step(twice)}"])
    before, after = _index(kind, left), _index(kind, right)
    shared = [step for step in wanted if step in before]
    following = shared.pop(0) if shared else None
    merged: set[str] = set()
    found: list[Any] = []

    def take(step: str, one: Json, other: Json) -> None:
        # A duplicate counts as null: nothing to merge with.
        result = _merge(element, None if one is _DUPLICATE else one, other)
        if result is not ABSENT:
            found.append(result)

    i = j = 0
    while i < len(names) or j < len(wanted):
        if i < len(names) and j < len(wanted):
            step = names[i]
            if step == wanted[j]:
                merged.add(step)
                take(step, before[step], after[step])
                i, j = i + 1, j + 1
                following = shared.pop(0) if shared else None
                continue
            if step in after and following is not None and following != step:
                i += 1
                continue
        if i < len(names):
            step = names[i]
            if step not in after:
                take(step, left[i], ABSENT)
                i += 1
                continue
            if step in merged:
                i += 1
        if j < len(wanted):
            step = wanted[j]
            merged.add(step)
            take(step, before.get(step, ABSENT), after[step])
            j += 1
            if following == step:
                following = shared.pop(0) if shared else None
    return found or ABSENT


def _steps(kind: Type, elements: list[Any]) -> list[str]:
    found = []
    for position, one in enumerate(elements):
        try:
            found.append(step_of(kind, one))
        except ValueError as error:
            raise Mistyped([f"element {position}: {error}"]) from None
    return found


# Cutting --------------------------------------------------------------------------------------------------------------


def remove(kind: Type, value: Json, fields: FieldSet) -> Json:
    """``value`` without the items at the paths of ``fields`` (``RemoveItems``)."""
    kind = schemas.shape(kind, value)
    if kind.kind is SCALAR:
        return value
    if not value or kind.is_atomic:
        return None
    if kind.kind is LIST:
        element = schemas.resolve(kind.element)
        kept: list[Any] = []
        assert isinstance(value, list)
        for one in value:
            node = fields.get(step_of(kind, one))
            if node is None:
                kept.append(one)
            elif SELF not in node:
                kept.append(remove(element, one, node))
        return kept or None
    found: dict[str, Any] = {}
    assert isinstance(value, dict)
    for name, one in value.items():
        node = fields.get("f:" + name)
        if node is None:
            found[name] = one
        elif SELF not in node:
            inner = schemas.element_of(kind, name)
            assert inner is not None
            found[name] = remove(inner, one, node)
    return found or None


def with_named(kind: Type, fields: FieldSet) -> FieldSet:
    """The set with all fields of structs below which it has something (``EnsureNamedFieldsAreMembers``)."""
    kind = schemas.shape(kind, {}) if kind.kind is schemas.ANY else kind
    found: FieldSet = {}
    for step, node in fields.items():
        if step == SELF:
            found[step] = node
            continue
        inner: Type | None = None
        named = False
        if step.startswith("f:") and kind.kind in (STRUCT, MAP):
            inner = schemas.element_of(kind, step[2:])
            named = kind.kind is STRUCT and inner is not None
        elif kind.kind is LIST:
            inner = schemas.resolve(kind.element)
        child = with_named(inner, node) if inner is not None else dict(node)
        if named:
            child[SELF] = {}
        found[step] = child
    return found


def reconciled(kind: Type, fields: FieldSet) -> FieldSet:
    """A set that was written down when the types were others: of what is atomic today it has no parts
    (``ReconcileFieldSetWithSchema``)."""
    kind = schemas.shape(kind, None) if kind.kind is schemas.ANY else kind
    below = {step: node for step, node in fields.items() if step != SELF}
    if kind.kind is SCALAR or not below:
        return fields
    if kind.is_atomic:
        return {SELF: {}}
    found: FieldSet = {SELF: {}} if SELF in fields else {}
    for step, node in below.items():
        if step.startswith("f:") and kind.kind in (STRUCT, MAP):
            inner = schemas.element_of(kind, step[2:])
        else:
            inner = schemas.resolve(kind.element) if kind.kind is LIST else None
        found[step] = reconciled(inner, node) if inner is not None else node
    return found
