"""The environment of selectors of devices (DRA): the variable ``device``, as Kubernetes 1.36 declares it by default.

``device.driver`` is a text, ``device.allowMultipleAllocations`` a bool; ``device.attributes`` and ``device.capacity``
are maps by domain, then by name. A domain that a device has no attributes of is an empty map when it is looked up, yet
``in`` does not find it. Lists of attribute values are unknown, as DRAListTypeAttributes is off.
"""

from __future__ import annotations

import functools
from collections.abc import Iterator, Mapping
from typing import Final

from kemu.emulated.cel import types
from kemu.emulated.cel.environments import Environment, Library, Program
from kemu.emulated.cel.errors import CompileError, EvaluationError
from kemu.emulated.cel.libraries import quantities, semvers
from kemu.emulated.cel.values import Error, MapLike, Value, equal, type_name
from kemu.messages.k8s import resource_v1_pb2

#: The actual cost at which an evaluation is cancelled, and the estimated one that the API server admits
#: (``CELSelectorExpressionMaxCost``).
MAX_COST: Final = 1_000_000

_DOMAIN = types.sized(types.STRING, 63)
_ID = types.sized(types.STRING, 32)
_MOST = 32
_VALUE = types.sized(types.ANY, 64)
_QUANTITY = types.abstract("kubernetes.Quantity")

DEVICE: Final = types.object_of(
    "kubernetes.DRADevice",
    {
        "driver": types.sized(types.STRING, 63),
        "allowMultipleAllocations": types.sized(types.BOOL, 1),
        "attributes": types.map_of(_DOMAIN, types.map_of(_ID, _VALUE, _MOST), _MOST),
        "capacity": types.map_of(_DOMAIN, types.map_of(_ID, _QUANTITY, _MOST), _MOST),
    },
)
"""The type of ``device``; estimates of costs begin at it (``Program.estimate(DEVICE)``)."""

_LIBRARIES: Final[tuple[Library, ...]] = ("bindings",)
_ENVIRONMENT = Environment({"device": DEVICE}, libraries=_LIBRARIES)


@functools.lru_cache(maxsize=1024)
def compiled(expression: str) -> Program | str:
    """The program of a selector, or why it is none."""
    try:
        program = _ENVIRONMENT.compile(expression)
    except CompileError as error:
        return f"compilation failed: {error}" if error.issues else f"program instantiation failed: {error}"
    if program.type.kind not in ("bool", "any"):
        return f"must evaluate to bool or the unknown type, not {program.type}"
    return program


class ByDomain(MapLike):
    """A map that has an empty map for every key that it has not."""

    __slots__ = ("entries",)

    def __init__(self, entries: dict[str, dict[str, Value]]) -> None:
        self.entries = entries

    def __len__(self) -> int:
        return len(self.entries)

    def __iter__(self) -> Iterator[Value]:
        return iter(self.entries)

    def find(self, key: Value) -> tuple[Value, bool]:
        return (self.entries.get(key, {}) if type(key) is str else {}), True

    def contains(self, key: Value) -> bool:
        return type(key) is str and key in self.entries

    def equal(self, other: Value) -> Value:
        return equal(self.entries, other.entries if isinstance(other, ByDomain) else other)


def _value_of(attribute: resource_v1_pb2.DeviceAttribute) -> Value:
    if attribute.HasField("int"):
        return attribute.int
    if attribute.HasField("bool"):
        return attribute.bool
    if attribute.HasField("string"):
        return attribute.string
    if attribute.HasField("version"):
        version = semvers.parse(attribute.version)
        if type(version) is Error:
            raise EvaluationError(f"parse semantic version: {version.message}")
        return version
    raise EvaluationError("unsupported attribute value")


def variable(driver: str, device: resource_v1_pb2.Device) -> dict[str, Value]:
    """The variable of a device. Raises EvaluationError for an attribute that no selector can read."""
    attributes: dict[str, dict[str, Value]] = {}
    for name in sorted(device.attributes):
        try:
            value = _value_of(device.attributes[name])
        except EvaluationError as error:
            raise EvaluationError(f"attribute {name}: {error}") from None
        domain, key = qualified(name, driver)
        attributes.setdefault(domain, {})[key] = value
    capacity: dict[str, dict[str, Value]] = {}
    for name in sorted(device.capacity):
        domain, key = qualified(name, driver)
        capacity.setdefault(domain, {})[key] = quantities.parse(device.capacity[name].value.string)
    return {
        "driver": driver,
        "allowMultipleAllocations": device.allowMultipleAllocations,
        "attributes": ByDomain(attributes),
        "capacity": ByDomain(capacity),
    }


def qualified(name: str, domain: str) -> tuple[str, str]:
    """Domain and identifier of a qualified name; without a domain it is the driver's."""
    head, slash, tail = name.partition("/")
    return (head, tail) if slash else (domain, name)


_CONVERSIONS: Mapping[str, str] = {
    "string": "unsupported native conversion from string to 'bool'",
    "int": "unsupported type conversion from 'int' to bool",
    "kubernetes.Semver": "type conversion error from 'Semver' to 'bool'",
}


def matches(program: Program, device: Mapping[str, Value]) -> bool:
    """Whether a selector selects a device. Raises EvaluationError with Kubernetes' text."""
    value, _cost = program.evaluate({"device": device}, MAX_COST)
    if type(value) is not bool:
        name = type_name(value)
        why = _CONVERSIONS.get(name, f"type conversion error from '{name}' to 'bool'")
        raise EvaluationError(f"CEL result of type {name} could not be converted to bool: {why}")
    return value
