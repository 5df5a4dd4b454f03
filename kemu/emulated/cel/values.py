"""Values of CEL in Python, and what may be done with all of them: equality, order, sizes, texts.

bool, float, str, bytes and None are themselves, `int` is CEL's int, list and dict are CEL's list and map, so JSON is
a value as it is. The rest has classes: `Uint`, `Timestamp` and `Duration` (in `times`), `Optional`, `TypeValue`,
objects of libraries, and the typed values of custom resources (in `documents`). An `Error` is a value, too: operators
that may do without an operand receive it, all others pass it on.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final, TypeAlias

from kemu.emulated.cel import numbers
from kemu.emulated.cel.errors import EvaluationError

#: Any value of CEL, or of JSON.
Value: TypeAlias = Any

INT_MIN: Final = -(1 << 63)
INT_MAX: Final = (1 << 63) - 1
UINT_MAX: Final = (1 << 64) - 1


class Error:
    """A failed computation; its text is cel-go's."""

    __slots__ = ("message",)

    def __init__(self, message: str) -> None:
        self.message = message


NO_OVERLOAD = Error("no such overload")


class Uint(int):
    """CEL's uint: 64 bits, unsigned. It equals the int of the same amount, as in CEL."""

    __slots__ = ()


class Optional:
    """``optional.of(value)``, or ``optional.none()``."""

    __slots__ = ("present", "value")

    def __init__(self, present: bool, value: Value = None) -> None:
        self.present = present
        self.value = value


NONE = Optional(False)


class TypeValue:
    """A type as a value, such as ``int`` or ``type(x)``; types are equal by name."""

    __slots__ = ("name",)

    def __init__(self, name: str) -> None:
        self.name = name


class MutableList(list):  # type: ignore[type-arg]
    """The list that a comprehension accumulates; ``+`` extends it in place."""

    __slots__ = ()


class MutableMap(dict):  # type: ignore[type-arg]
    """The map that a comprehension accumulates."""

    __slots__ = ()


class ListKey(list):  # type: ignore[type-arg]
    """A list as the key of a map: it is found by itself alone."""

    __slots__ = ()
    __hash__ = object.__hash__  # type: ignore[assignment]

    def __eq__(self, other: object) -> bool:
        return self is other


class MapKey(dict):  # type: ignore[type-arg]
    """A map as the key of a map."""

    __slots__ = ()
    __hash__ = object.__hash__  # type: ignore[assignment]

    def __eq__(self, other: object) -> bool:
        return self is other


class Opaque:
    """Base of values that only functions of libraries know, such as quantities and authorizers."""

    __slots__ = ()
    #: The name of the type at run time.
    type_name = ""
    #: ``size()`` as cost tracking sees it, or None.
    extent: int | None = None
    #: Whether comparing two of them costs one, whatever their size.
    constant_equality = False

    def equal(self, other: Value) -> Value:
        """Whether `other` is the same: a bool, or an `Error` where the types differ."""
        raise NotImplementedError


class ListLike:
    """Base of lists that are no Python lists."""

    __slots__ = ()

    def __len__(self) -> int:
        raise NotImplementedError

    def __iter__(self) -> Iterator[Value]:
        raise NotImplementedError

    def item(self, index: int) -> Value:
        raise NotImplementedError

    def equal(self, other: Value) -> Value:
        raise NotImplementedError

    def add(self, other: Value) -> Value:
        raise NotImplementedError

    def contains(self, value: Value) -> Value:
        raise NotImplementedError


class MapLike:
    """Base of maps and objects that are no Python dicts."""

    __slots__ = ()

    def __len__(self) -> int:
        raise NotImplementedError

    def __iter__(self) -> Iterator[Value]:
        raise NotImplementedError

    def find(self, key: Value) -> tuple[Value, bool]:
        """The value of `key` (or an `Error`) and whether there is one."""
        raise NotImplementedError

    def contains(self, key: Value) -> Value:
        """``key in map``."""
        found, present = self.find(key)
        return found if type(found) is Error else present

    def equal(self, other: Value) -> Value:
        raise NotImplementedError


class Constructed(Opaque):
    """An object that an expression constructed, such as ``Object.spec{…}``."""

    __slots__ = ("fields", "type_name")

    def __init__(self, type_name: str, fields: dict[str, Value]) -> None:
        self.type_name = type_name
        self.fields = fields

    def equal(self, other: Value) -> Value:
        if not isinstance(other, Constructed) or other.type_name != self.type_name:
            return False
        if other.fields.keys() != self.fields.keys():
            return False
        return all(equal(value, other.fields[name]) is True for name, value in self.fields.items())


class LazyFields(MapLike):
    """An object whose fields are computed when they are first asked for, such as ``variables`` of admission policies.

    `fields` gives a function for each field; it returns a value, or raises `EvaluationError`, whose text then is the
    error of the expression that asked. What the computation costs is the business of the function. Each is called at
    most once.
    """

    __slots__ = ("_functions", "_values", "type_name")

    def __init__(self, type_name: str, fields: Mapping[str, Callable[[], Value]]) -> None:
        self.type_name = type_name
        self._functions = fields
        self._values: dict[str, Value] = {}

    def __len__(self) -> int:
        return len(self._functions)

    def __iter__(self) -> Iterator[Value]:
        return iter(self._functions)

    def find(self, key: Value) -> tuple[Value, bool]:
        if key not in self._functions:
            return None, False
        if key not in self._values:
            try:
                self._values[key] = self._functions[key]()
            except EvaluationError as error:
                self._values[key] = Error(str(error))
        return self._values[key], True

    def equal(self, other: Value) -> Value:
        return other is self


_TYPE_NAMES: Final[dict[type, str]] = {
    bool: "bool",
    int: "int",
    Uint: "uint",
    float: "double",
    str: "string",
    bytes: "bytes",
    type(None): "null_type",
    list: "list",
    MutableList: "list",
    dict: "map",
    MutableMap: "map",
    ListKey: "list",
    MapKey: "map",
    Optional: "optional_type",
    TypeValue: "type",
    Error: "error",
}
_NUMBERS: Final = frozenset({int, Uint, float})


_GO_TYPES: Final = {
    "bool": "types.Bool", "bytes": "types.Bytes", "double": "types.Double", "int": "types.Int",
    "null_type": "types.Null",
    "string": "types.String", "uint": "types.Uint", "google.protobuf.Timestamp": "types.Timestamp",
    "google.protobuf.Duration": "types.Duration", "optional_type": "*types.Optional", "type": "*types.Type",
    "list": "*types.baseList", "map": "*types.baseMap", "kubernetes.Quantity": "cel.Quantity",
    "kubernetes.URL": "cel.URL",
    "kubernetes.Semver": "cel.Semver", "kubernetes.NamedFormat": "cel.Format", "net.IP": "cel.IP",
    "net.CIDR": "cel.CIDR",
}  # fmt: skip


def go_type(value: Value) -> str:
    """The name of Go's type, which some messages show."""
    name = type_name(value)
    return _GO_TYPES.get(name, name)


def type_name(value: Value) -> str:
    """The name of the type of `value` at run time."""
    name = _TYPE_NAMES.get(type(value))
    if name is not None:
        return name
    if isinstance(value, ListLike):
        return "list"
    if isinstance(value, MapLike):
        return "map"
    return str(value.type_name)


def as_key(value: Value) -> Value:
    """A value as the key of a map."""
    if isinstance(value, list):
        return ListKey(value)
    return MapKey(value) if isinstance(value, dict) else value


def is_list(value: Value) -> bool:
    return isinstance(value, list | ListLike)


def is_map(value: Value) -> bool:
    return isinstance(value, dict | MapLike)


def item(values: Value, index: int) -> Value:
    """The item of a list at an index that exists."""
    return values.item(index) if isinstance(values, ListLike) else values[index]


def find(entries: Value, key: Value) -> tuple[Value, bool]:
    """The value of a key in a map, and whether there is one. Numbers of all types find their equals, booleans do
    not.
    """
    if isinstance(entries, MapLike):
        return entries.find(key)
    try:
        if key not in entries:
            return None, False
    except TypeError:  # a list or a map is no key
        return None, False
    kind = type(key)
    if (kind is bool or kind in _NUMBERS) and not any(_same_key(other, key) for other in entries if other == key):
        return None, False
    return entries[key], True


def _same_key(left: Value, right: Value) -> bool:
    return (type(left) is bool) == (type(right) is bool)


def equal(left: Value, right: Value) -> Value:
    """``left == right`` for any two values: a bool, or an `Error` where a library refuses to compare."""
    kind, other = type(left), type(right)
    if left is None or right is None:
        return left is right
    if kind in _NUMBERS:
        if other not in _NUMBERS:
            return False
        if kind is float or other is float:
            return numbers.order(left, right) == 0
        return bool(left == right)
    if kind is str or kind is bytes or kind is bool:
        return other is kind and left == right
    if isinstance(left, ListLike | MapLike | Opaque):
        return left.equal(right)
    if isinstance(left, list):
        return _equal_lists(left, right)
    if isinstance(left, dict):
        return _equal_maps(left, right)
    if kind is Optional:
        if other is not Optional or left.present != right.present:
            return False
        return equal(left.value, right.value) if left.present else True
    if kind is TypeValue:
        return other is TypeValue and left.name == right.name
    return bool(left == right) if other is kind else False


def _equal_lists(left: Value, right: Value) -> bool:
    if not is_list(right) or len(left) != len(right):
        return False
    return all(equal(value, other) is not False for value, other in zip(left, right, strict=True))


def _equal_maps(left: Value, right: Value) -> bool:
    if not is_map(right) or len(left) != len(right):
        return False
    for key, value in left.items():
        other, found = find(right, key)
        if not found or equal(value, other) is False:
            return False
    return True


def contains(values: Value, value: Value) -> Value:
    """``value in values`` of a list."""
    if isinstance(values, ListLike):
        return values.contains(value)
    return any(equal(value, other) is True for other in values)


def extent(value: Value) -> int:
    """``size()`` of what has one, else 1: the measure of costs."""
    kind = type(value)
    if kind is str or kind is bytes or isinstance(value, list | dict | ListLike | MapLike):
        return len(value)
    if kind is Optional and value.present:
        return extent(value.value)
    if isinstance(value, Opaque) and value.extent is not None:
        return value.extent
    return 1


def text(value: Value) -> str:
    """A value within a message, as Go's ``%v`` prints it."""
    kind = type(value)
    if kind is str:
        return str(value)
    if kind is bool:
        return "true" if value else "false"
    if kind is float:
        return numbers.shortest(value)
    if kind is int or kind is Uint:
        return str(int(value))
    if value is None:
        return "NULL_VALUE"
    if kind is bytes:
        return f"[{' '.join(map(str, value))}]"
    if kind is TypeValue:
        return str(value.name)
    if kind is Error:
        return str(value.message)
    if kind is Optional:
        return f"optional({text(value.value)})" if value.present else "optional.none()"
    if isinstance(value, list):
        return f"[{', '.join(map(text, value))}]"
    if isinstance(value, dict):
        return "{" + ", ".join(f"{text(key)}: {text(other)}" for key, other in value.items()) + "}"
    return str(value)


def plain(value: Value) -> Value:
    """JSON of a value of CEL: constructed objects and maps become dicts, timestamps and durations strings."""
    kind = type(value)
    if kind is Uint:
        return int(value)
    if isinstance(value, Constructed):
        return {name: plain(other) for name, other in value.fields.items()}
    if isinstance(value, MapLike):
        return value.raw if hasattr(value, "raw") else {key: plain(value.find(key)[0]) for key in value}
    if isinstance(value, dict):
        return {key: plain(other) for key, other in value.items()}
    if isinstance(value, list | ListLike):
        return [plain(other) for other in value]
    if kind is Optional:
        return plain(value.value) if value.present else None
    if isinstance(value, Opaque):
        return str(value)
    return value
