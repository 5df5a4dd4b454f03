"""Strategic merge patches of JSON, as ``apimachinery/pkg/util/strategicpatch`` applies them.

Which lists merge by which key, and what is replaced, the Go types say (``patchStrategy``, ``patchMergeKey``); kemu
reads it from the table of :mod:`kemu.emulated.objects.managed_fields.schemas`. Directives:
``$patch: replace|delete|merge``, ``$retainKeys``, ``$deleteFromPrimitiveList/<field>``, ``$setElementOrder/<field>``.

Both the original and the patch are changed on the way.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from kemu.emulated.objects.managed_fields import go_texts, schemas
from kemu.emulated.objects.managed_fields.schemas import STRUCT, Field
from kemu.errors import ApiError, BadRequest, Invalid

Json = dict[str, Any]

_PATCH, _RETAIN_KEYS = "$patch", "$retainKeys"
_DELETE_FROM, _ORDER = "$deleteFromPrimitiveList", "$setElementOrder"
_BAD_PRIMITIVES = "invalid patch format of primitive list"
_BAD_RETAIN_KEYS = "invalid patch format of retainKeys"
_BAD_ORDER = "invalid patch format of setElementOrder list"
_KINDS = {schemas.MAP: "map", schemas.LIST: "slice", schemas.SCALAR: "string", schemas.ANY: "interface"}


def merge(original: Json, patch: Json, expression: str | schemas.Type) -> Json:
    """``expression``: the type of the original, for :func:`.schemas.resolve`. Raises :class:`kemu.errors.ApiError`."""
    if _PATCH in patch:
        directive = patch[_PATCH]
        if directive == "replace":
            del patch[_PATCH]
            return patch
        if directive == "delete":
            return {}
        raise ApiError(f"unknown patch type: {go_texts.plain(directive)} in map: {go_texts.plain(patch)}")
    _retain_keys(original, patch)
    _merge_ordered_lists(original, patch, expression)
    for key, value in patch.items():
        is_deletion = key.startswith(_DELETE_FROM)
        if is_deletion:
            key = _extract(key, _DELETE_FROM, _BAD_PRIMITIVES)
        if value is None:
            original.pop(key, None)
            continue
        old = original.get(key, _MISSING)
        if old is _MISSING or go_texts.type_of(old) != go_texts.type_of(value):
            if not is_deletion:
                _discard_nulls(value)
                _put(original, key, value)
        elif isinstance(value, dict):
            field = _field(expression, key)
            if "replace" in field.strategies:
                original[key] = value
            else:
                original[key] = merge(old, value, field.type)
        elif isinstance(value, list):
            field = _field(expression, key)
            original[key], _ = _merge_lists(old, value, field, is_deletion)
        else:
            _put(original, key, value)
    return original


_MISSING: Any = object()


def _put(original: Json, key: str, value: object) -> None:
    kept = _without_directives(value)
    if kept is _MISSING:
        original.pop(key, None)
    else:
        original[key] = kept


def _field(expression: str | schemas.Type, key: str) -> Field:
    """The field of a struct, or what stands for the entries of a map (``LookupPatchMetadataForStruct``)."""
    kind = schemas.resolve(expression)
    if kind.kind is not STRUCT:
        raise ApiError(f"merging an object in json but data type is not struct, instead is: {_KINDS[kind.kind]}")
    assert kind.fields is not None
    found = kind.fields.get(key)
    if found is None:
        struct = str(expression).rpartition(".")[2]
        raise ApiError(f'unable to find api field in struct {struct} for the json field "{key}"')
    return found


def _element(field: Field) -> str | schemas.Type:
    return schemas.resolve(field.type).element


def _extract(key: str, prefix: str, problem: str) -> str:
    """The field that a directive is about."""
    found, slash, field = key.partition("/")
    if not slash or found != prefix:
        raise BadRequest(problem)
    return field


def _retain_keys(original: Json, patch: Json) -> None:
    """``applyRetainKeysDirective``."""
    if _RETAIN_KEYS not in patch:
        return
    kept = patch.pop(_RETAIN_KEYS)
    if not isinstance(kept, list):
        raise BadRequest(_BAD_RETAIN_KEYS)
    for key, value in patch.items():
        if value is not None and not key.startswith((_DELETE_FROM, _ORDER)) and key not in kept:
            raise BadRequest(_BAD_RETAIN_KEYS)
    for key in [key for key in original if key not in kept]:
        del original[key]


def _without_directives(value: object) -> Any:
    """What is left of a patch without what only says how to patch; ``_MISSING``: nothing."""
    if isinstance(value, dict):
        if _PATCH in value:
            return _MISSING
        for key in list(value):
            kept = _without_directives(value[key])
            if kept is _MISSING:
                del value[key]
            else:
                value[key] = kept
        return value
    if isinstance(value, list):
        return [kept for one in value if (kept := _without_directives(one)) is not _MISSING]
    return value


def _discard_nulls(value: object) -> None:
    if isinstance(value, dict):
        for key in list(value):
            if value[key] is None:
                del value[key]
            else:
                _discard_nulls(value[key])
    elif isinstance(value, list):
        for one in value:
            _discard_nulls(one)


# Lists with an order ------------------------------------------------------------------------------------------------


def _merge_ordered_lists(original: Json, patch: Json, expression: str | schemas.Type) -> None:
    """``$setElementOrder`` and the lists that it is about (``mergePatchIntoOriginal``)."""
    for key in [key for key in patch if key.startswith(_ORDER)]:
        order = patch.pop(key)
        if not isinstance(order, list):
            raise _wrong_type("[]interface {}", order)
        name = _extract(key, _ORDER, _BAD_ORDER)
        old, new = original.get(name, _MISSING), patch.get(name, _MISSING)
        for one in (old, new):
            if one is not _MISSING and not isinstance(one, list):
                raise _wrong_type("[]interface {}", one)
        field = _field(expression, name)
        merge_key = field.merge_key
        _check_order(new if new is not _MISSING else None, order, merge_key)
        before = [] if old is _MISSING else old
        if new is _MISSING:
            if old is _MISSING:
                continue
            merged = old
        elif old is _MISSING:
            merged = _without_directives(new)
        else:
            merged, before = _merge_lists(old, new, field, False)
        is_map = _element_type(before, [] if new is _MISSING else new) == "map[string]interface {}"
        named, others = _partitioned(merged, order, merge_key)
        original[name] = _ordered(named, others, order, before, merge_key, is_map=is_map)
        patch.pop(name, None)


def _check_order(patch: list[Any] | None, order: list[Any], merge_key: str) -> None:
    """The elements of a patch must be in the order that it says (``validatePatchWithSetOrderList``)."""
    if patch is None:
        # Go's nil slice.
        patch = []
    if not order or not patch:
        return
    wanted = [one for one in patch if not (_has_directive(one) and one[_PATCH] == "delete")] if merge_key else patch
    done = position = 0
    while done < len(wanted) and position < len(order):
        if _has_directive(wanted[done]):
            done += 1
            continue
        if _same_key(wanted[done], order[position], merge_key):
            done += 1
        position += 1
    if done < len(wanted) and position >= len(order):
        shown, wanted_order = go_texts.plain(patch), go_texts.plain(order)
        raise ApiError(f"The order in patch list:\n{shown}\n doesn't match {_ORDER} list:\n{wanted_order}\n")


def _has_directive(one: object) -> bool:
    return isinstance(one, dict) and _PATCH in one


def _same_key(one: Any, other: Any, merge_key: str) -> bool:
    if not merge_key:
        return _equal(one, other)
    for element in (one, other):
        if not isinstance(element, dict):
            raise _wrong_type("map[string]interface {}", element)
        if merge_key not in element:
            raise _no_merge_key(element, merge_key)
    return _equal(one[merge_key], other[merge_key])


# Lists --------------------------------------------------------------------------------------------------------------


def _merge_lists(old: list[Any], new: list[Any], field: Field, is_deletion: bool) -> tuple[list[Any], list[Any]]:
    """``mergeSliceHandler`` and ``mergeSlice``: the merged list, and what the old one is then. Where elements were
    deleted, those that were added stand in their place, as in Go both lists are parts of one array."""
    if not (is_deletion or "merge" in field.strategies):
        return new, old
    if not old and not new:
        return old, old
    there = old
    merge_key = field.merge_key
    is_map = _element_type(old, new) == "map[string]interface {}"
    if not is_map:
        if is_deletion:
            return [one for one in old if not any(_equal(one, other) for other in new)], old
        merged = _unique([*old, *new])
        merge_key = ""
    else:
        if not merge_key:
            element = schemas.resolve(_element(field))
            raise ApiError(f"cannot merge lists without merge key for {_KINDS.get(element.kind, 'struct')}")
        old, new, replaces = _special_elements(old, new, merge_key)
        merged = _merge_elements(list(old), new, merge_key, _element(field))
        if not replaces:
            there = merged[: len(there)]
    named, others = _partitioned(merged, new, merge_key)
    return _ordered(named, others, new, old, merge_key, is_map=is_map), there


def _special_elements(old: list[Any], new: list[Any], merge_key: str) -> tuple[list[Any], list[Any], bool]:
    """Elements with a directive have their effect, and go (``mergeSliceWithSpecialElements``). Also whether they
    replace all that was there."""
    plain: list[Any] = []
    replaces = False
    for one in new:
        if _PATCH not in one:
            plain.append(one)
            continue
        directive = one[_PATCH]
        if directive == "delete":
            if merge_key not in one:
                raise _no_merge_key(one, merge_key)
            while (index := _find(old, merge_key, one[merge_key])) is not None:
                old = old[:index] + old[index + 1 :]
        elif directive == "replace":
            replaces = True
        elif directive == "merge":
            raise ApiError("merging lists cannot yet be specified in the patch")
        else:
            raise ApiError(f"unknown patch type: {go_texts.plain(directive)} in map: {go_texts.plain(one)}")
    return (plain, [], True) if replaces else (old, plain, False)


def _merge_elements(old: list[Any], new: list[Any], merge_key: str, expression: str | schemas.Type) -> list[Any]:
    for one in new:
        if merge_key not in one:
            raise _no_merge_key(one, merge_key)
        index = _find(old, merge_key, one[merge_key])
        if index is None:
            old.append(one)
        else:
            old[index] = merge(old[index], one, expression)
    return old


def _find(elements: list[Any], merge_key: str, value: object) -> int | None:
    for index, one in enumerate(elements):
        if not isinstance(one, dict):
            raise ApiError(f"value for key {index} is not a map")
        if merge_key in one and _equal(one[merge_key], value):
            return index
    return None


def _partitioned(merged: list[Any], by: list[Any], merge_key: str) -> tuple[list[Any], list[Any]]:
    """The elements that ``by`` names, and the others."""
    named, others = list[Any](), list[Any]()
    for one in merged:
        if not merge_key:
            is_named = any(_equal(one, other) for other in by)
        else:
            if not isinstance(one, dict):
                raise _wrong_type("map[string]interface {}", one)
            if merge_key not in one:
                raise _no_merge_key(one, merge_key)
            is_named = _find(by, merge_key, one[merge_key]) is not None
        (named if is_named else others).append(one)
    return named, others


def _ordered(
    named: list[Any], others: list[Any], order: list[Any], before: list[Any], merge_key: str, *, is_map: bool
) -> list[Any]:
    """``normalizeElementOrder``: named elements in the order of the patch, the others in theirs; of two that were both
    there before, the one that was in front stays there."""
    left = _sorted(others, before, merge_key, is_map=is_map)
    right = _sorted(named, order, merge_key, is_map=is_map)
    place = _places(before, merge_key, is_map=is_map)
    found: list[Any] = []
    i = j = 0
    while i < len(left) and j < len(right):
        one, other = place(left[i]), place(right[j])
        if one is not None and other is not None and one < other:
            found.append(left[i])
            i += 1
        else:
            found.append(right[j])
            j += 1
    return [*found, *right[j:], *left[i:]]


def _sorted(elements: list[Any], order: list[Any], merge_key: str, *, is_map: bool) -> list[Any]:
    """``normalizeSliceOrder``, whose comparison puts what the order does not know in front of what stands before it."""
    doomed: list[Any] = []
    if is_map:
        for one in (*elements, *order):
            if not isinstance(one, dict):
                raise _wrong_type("map[string]interface {}", one)
            if merge_key not in one:
                raise _no_merge_key(one, merge_key)
        doomed = [one for one in elements if one.get(_PATCH) == "delete"]
        elements = [one for one in elements if one.get(_PATCH) != "delete"]
    place = _places(order, merge_key, is_map=is_map)
    found: list[tuple[int | None, Any]] = []
    for one in elements:
        mine = place(one)
        index = len(found)
        while index and (mine is None or found[index - 1][0] is None or mine < found[index - 1][0]):  # type: ignore[operator]
            index -= 1
        found.insert(index, (mine, one))
    return [one for _, one in found] + doomed


def _places(order: list[Any], merge_key: str, *, is_map: bool) -> Callable[[Any], int | None]:
    """From an element to where ``order`` has it."""

    def name(one: dict[str, Any] | list[Any]) -> Any:
        if not is_map:
            return one
        return one.get(merge_key) if isinstance(one, dict) else None

    known: dict[tuple[str, Any], int] = {}
    for index, one in enumerate(order):
        found = name(one)
        if not isinstance(found, dict | list):
            known.setdefault((go_texts.type_of(found), found), index)

    def place(one: dict[str, Any] | list[Any]) -> int | None:
        found = name(one)
        return None if isinstance(found, dict | list) else known.get((go_texts.type_of(found), found))

    return place


def _unique(elements: list[Any]) -> list[Any]:
    """Each once. What order they are in does not matter: they are ordered afterwards."""
    found: list[Any] = []
    for one in elements:
        if not any(_equal(one, other) for other in found):
            found.append(one)
    return found


def _element_type(*lists: list[Any]) -> str:
    """The Go type that all elements have (``sliceElementType``)."""
    found = ""
    for elements in lists:
        for one in elements:
            here = go_texts.type_of(one)
            if not found:
                found = here
                if isinstance(one, list):
                    raise Invalid("the server rejected our request due to an error in our request")
            elif found != here:
                shown = " ".join(go_texts.plain(one) for one in lists)
                raise ApiError(f"list element types are not identical: [{shown}]")
    if not found:
        raise ApiError("no elements in any of the given slices")
    return found


def _equal(one: Any, other: Any) -> bool:
    return go_texts.type_of(one) == go_texts.type_of(other) and bool(one == other)


def _no_merge_key(element: Json, merge_key: str) -> ApiError:
    return ApiError(f"map: {go_texts.plain(element)} does not contain declared merge key: {merge_key}")


def _wrong_type(wanted: str, found: Any) -> ApiError:
    shown = "%!s(<nil>)" if found is None else go_texts.type_of(found)
    return ApiError(f"expected a {wanted}, but received a {shown}")
