"""The custom kinds of the API servers behind the gateway.

It asks the API server that a request goes to, which answers from its cache: what that server does not know yet, the
gateway does not serve either.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache

from kemu.emulated.gateway.backends import Backend, Refused
from kemu.emulated.gateway.discovery.catalogue import CHANGE, SCALE, Entry, Kind, Subresource, Version
from kemu.emulated.gateway.requests.paths import Path
from kemu.emulated.objects import custom_kinds, identities
from kemu.emulated.objects.custom_kinds import CustomResource
from kemu.messages.k8s.apiextensions_v1_pb2 import CustomResourceDefinition
from kemu.messages.v1 import api_pb2
from kemu.runtime.env import SECOND_NS, Clock

_VERBS = ("delete", "deletecollection", "get", "list", "patch", "create", "update", "watch")
_LAST_VERBS = ("delete", "deletecollection", "get", "list", "watch")
"""Of a kind whose definition is being deleted."""

_FRESH_NS = SECOND_NS
"""So long a definition counts."""
_SETTLED_NS = 2 * SECOND_NS
"""After so long the conditions of one that a client has written are what they become."""
_REMEMBERED = 256

_DEFINITIONS = api_pb2.Resource(resource=custom_kinds.DEFINITIONS)


class Kinds:
    """The custom kinds that URLs name. A definition may be large: one that serves its kind is asked for once in a while
    only, but for some time after a client has written any."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._known: dict[tuple[str, str], tuple[int, Mapping[str, CustomResource]]] = {}
        """By API server and name: when it was asked for, and its rows by version."""
        self._changed_ns = -_SETTLED_NS

    def changed(self) -> None:
        """A client has written a definition."""
        self._changed_ns = self._clock.now_ns()
        self._known.clear()

    async def find(self, backend: Backend, path: Path) -> CustomResource | None:
        """The row of a URL; None: there is no such custom kind. Raises
        :class:`kemu.emulated.gateway.backends.Refused`."""
        if "." not in path.group:
            return None
        name = f"{path.resource}.{path.group}"
        known = self._known.get((backend.name, name))
        if known is not None and self._clock.now_ns() - known[0] < _FRESH_NS:
            return known[1].get(path.version)
        request = api_pb2.ListRequest(
            resource=_DEFINITIONS, resource_version="0", field_selector=f"metadata.name={_escaped(name)}"
        )
        for wire in (await backend.call("List", request, identities.ADMINISTRATOR)).items:
            rows = _rows(wire)
            now_ns = self._clock.now_ns()
            if now_ns - self._changed_ns >= _SETTLED_NS and all(_is_settled(one.definition) for one in rows.values()):
                if len(self._known) >= _REMEMBERED:
                    self._known.clear()
                self._known[backend.name, name] = now_ns, rows
            return rows.get(path.version)
        return None


def _is_settled(definition: CustomResourceDefinition) -> bool:
    if definition.metadata.HasField("deletionTimestamp"):
        return False
    return custom_kinds.is_true(definition, custom_kinds.ESTABLISHED)


async def versions(backend: Backend) -> tuple[Version, ...]:
    """What discovery tells of custom kinds; nothing while the API server does not answer."""
    wires = await definitions(backend)
    return _versions(wires) if wires else ()


async def definitions(backend: Backend) -> tuple[bytes, ...]:
    """As the API server sends them."""
    request = api_pb2.ListRequest(resource=_DEFINITIONS, resource_version="0")
    try:
        return tuple((await backend.call("List", request, identities.ADMINISTRATOR)).items)
    except Refused:
        return ()


def _escaped(name: str) -> str:
    return name.replace("\\", "\\\\").replace(",", "\\,").replace("=", "\\=")


@lru_cache(256)
def _rows(wire: bytes) -> dict[str, CustomResource]:
    """By version."""
    definition = CustomResourceDefinition.FromString(wire)
    conditions = custom_kinds.ACCEPTED, custom_kinds.ESTABLISHED
    if not any(custom_kinds.is_true(definition, one) for one in conditions):
        return {}
    return {one.name: custom_kinds.row(definition, one) for one in definition.spec.versions if one.served}


@lru_cache(16)
def _versions(wires: tuple[bytes, ...]) -> tuple[Version, ...]:
    """Groups by the name of their first version, as API services of one priority stand; the preferred version first."""
    groups: dict[str, dict[str, list[Entry]]] = {}
    for wire in wires:
        definition = CustomResourceDefinition.FromString(wire)
        for version, row in custom_kinds.rows(definition).items():
            groups.setdefault(row.group, {}).setdefault(version, []).append(_entry(row))
    return tuple(
        Version(group, version, tuple(sorted(groups[group][version], key=lambda entry: entry.plural)))
        for group in sorted(groups)
        for version in custom_kinds.by_priority(list(groups[group]))
    )


def _entry(row: CustomResource) -> Entry:
    names, definition = row.definition.status.acceptedNames, row.definition
    storage = custom_kinds.storage_version(definition)
    parts = []
    if row.has_status:
        parts.append(Subresource("status", Kind(row.kind), CHANGE))
    if row.has_scale:
        parts.append(SCALE)
    return Entry(
        names.plural,
        names.singular,
        names.kind,
        row.namespaced,
        _LAST_VERBS if custom_kinds.is_true(definition, custom_kinds.TERMINATING) else _VERBS,
        tuple(names.shortNames),
        tuple(names.categories),
        tuple(parts),
        is_stored=storage is not None and storage.served,
        stored_as=storage.name if storage is not None else "",
        is_custom=True,
    )


def warning(row: CustomResource) -> str:
    """What clients are told of a version that is deprecated (``defaultDeprecationWarning``)."""
    version = row.version
    if not version.deprecated:
        return ""
    if version.HasField("deprecationWarning"):
        return str(version.deprecationWarning)
    text = f"{row.api_version} {row.kind} is deprecated"
    spec, mine = row.definition.spec, version.name
    better = [
        one.name
        for one in spec.versions
        if one.served and not one.deprecated and custom_kinds.by_priority([mine, one.name])[0] != mine
    ]
    return f"{text}; use {row.group}/{custom_kinds.by_priority(better)[0]} {row.kind}" if better else text
