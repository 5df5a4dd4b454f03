"""What happens in a trial: changes of the store, writes of controllers, and what these were told."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from kemu.emulated.objects import custom_kinds, resources
from kemu.emulated.objects.conversion import convert
from kemu.lab.hunt.projects import Named
from kemu.messages.k8s.apiextensions_v1_pb2 import CustomResourceDefinition
from kemu.runtime.runlog.events import Transaction

_REGISTRY = "/registry/"
_DEFINITIONS = f"{_REGISTRY}{custom_kinds.DEFINITIONS}/"


@dataclass(frozen=True, slots=True)
class Change:
    """One object was written or removed, by anybody."""

    time_ns: int
    revision: int
    key: str
    nth: int
    """Of all changes of this key."""
    value: bytes | None
    """None: it is gone."""
    is_new: bool


@dataclass(frozen=True, slots=True)
class Write:
    """A controller asked for a write, and was answered."""

    time_ns: int
    controller: str
    verb: str
    key: str
    nth: int
    """Of all writes of this controller to this key."""
    status: int
    """Of HTTP; 0: it was not answered."""
    revision: int
    """Of the store when it was answered."""
    nth_of_kind: int = 0
    """Of all writes of this controller to objects of this resource."""


@dataclass(frozen=True, slots=True)
class Count:
    """Which write of a controller it is."""

    controller: str
    resource: str
    key: str
    """Empty: only the store will know."""
    nth: int
    """Of all writes of the controller to this key."""
    nth_of_kind: int
    """Of all writes of the controller to objects of this resource."""


@dataclass(frozen=True, slots=True)
class Notice:
    """A watch has told a controller of an object."""

    time_ns: int
    controller: str
    key: str
    revision: int
    what: str
    """``ADDED MODIFIED DELETED``"""


@dataclass
class Course:
    """All of it, in order. Fed by the session of the trial."""

    changes: list[Change] = field(default_factory=list)
    writes: list[Write] = field(default_factory=list)
    notices: list[Notice] = field(default_factory=list)
    values: dict[str, bytes] = field(default_factory=dict)
    """What the store holds, by key."""
    revision: int = 0
    _counts: Counter[str] = field(default_factory=Counter)
    _written: Counter[tuple[str, str]] = field(default_factory=Counter)
    _plurals: dict[str, str] = field(default_factory=dict)
    """Of custom kinds: resource by kind, with the group and without."""
    _kinds: dict[str, str] = field(default_factory=dict)
    """``Widget.example.com`` by resource."""

    def take(self, time_ns: int, event: Transaction) -> list[Change]:
        """A transaction of the store: what it changed."""
        self.revision = event.rev
        found = []
        for operation, key, value, _, version in event.changes:
            self._counts[key] += 1
            gone = operation != 0
            if gone:
                self.values.pop(key, None)
            else:
                self.values[key] = value
                if key.startswith(_DEFINITIONS):
                    self._define(value)
            change = Change(time_ns, event.rev, key, self._counts[key], None if gone else value, version == 1)
            self.changes.append(change)
            found.append(change)
        return found

    def count_write(self, controller: str, resource: str, key: str) -> Count:
        """The next write of a controller to an object."""
        self._written[controller, resource] += 1
        return self.name_write(Count(controller, resource, "", 0, self._written[controller, resource]), key)

    def name_write(self, count: Count, key: str) -> Count:
        """Where the store has said what is written."""
        if not key:
            return count
        self._written[count.controller, key] += 1
        return Count(count.controller, count.resource, key, self._written[count.controller, key], count.nth_of_kind)

    def _define(self, value: bytes) -> None:
        spec = CustomResourceDefinition.FromString(value).spec
        plural, kind = f"{spec.names.plural}.{spec.group}", spec.names.kind
        self._plurals |= {kind: plural, f"{kind}.{spec.group}": plural}
        self._kinds[plural] = f"{kind}.{spec.group}"

    def resource(self, kind: str) -> str:
        """Resource of a kind, as the store names it; empty: there is no such kind (yet)."""
        if kind in resources.BY_KIND:
            return resources.BY_KIND[kind].plural
        return self._plurals.get(kind, "")

    def key(self, named: Named) -> str:
        """Of the store; empty: there is no such kind (yet)."""
        plural = self.resource(named.kind)
        known = resources.BY_PLURAL.get(plural)
        if not plural:
            return ""
        spaced = known.namespaced if known is not None else self._has_namespaces(plural)
        return f"{_REGISTRY}{plural}/{named.namespace}/{named.name}" if spaced else f"{_REGISTRY}{plural}/{named.name}"

    def _has_namespaces(self, plural: str) -> bool:
        value = self.values.get(f"{_DEFINITIONS}{plural}")
        return value is None or CustomResourceDefinition.FromString(value).spec.scope == custom_kinds.NAMESPACED

    def named(self, key: str) -> Named:
        """The object of a key."""
        plural, _, rest = key.removeprefix(_REGISTRY).partition("/")
        namespace, _, name = rest.rpartition("/")
        return Named(self.kind(plural), name, namespace)

    def kind(self, plural: str) -> str:
        known = resources.BY_PLURAL.get(plural)
        return known.kind if known is not None else self._kinds.get(plural, plural)

    def objects(self) -> dict[str, Mapping[str, Any]]:
        """All that the store holds, as JSON, by key."""
        return {key: manifest(key, value) for key, value in sorted(self.values.items())}


def manifest(key: str, value: bytes) -> Mapping[str, Any]:
    """An object of the store as JSON."""
    return convert.to_manifest(resources.MESSAGES[plural_of(key)].FromString(value))


def plural_of(key: str) -> str:
    return key.removeprefix(_REGISTRY).partition("/")[0]


def key_of(plural: str, namespace: str, name: str) -> str:
    return f"{_REGISTRY}{plural}/{namespace}/{name}" if namespace else f"{_REGISTRY}{plural}/{name}"
