"""The custom kinds of one API server, as its watch cache has their definitions (``crdHandler``).

A kind is served from when its names are accepted until its definition goes. When the definition changes, the watches of
its objects end, and their clients come again.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from kemu.emulated.apiserver import errors, selections
from kemu.emulated.apiserver.custom.collections import ConvertedCollection
from kemu.emulated.apiserver.custom.conversions import Converter
from kemu.emulated.apiserver.custom.served import Served
from kemu.emulated.apiserver.registry import custom_strategies, strategies
from kemu.emulated.apiserver.registry.strategies import Strategy
from kemu.emulated.apiserver.selections import Selection
from kemu.emulated.apiserver.storage import Entry
from kemu.emulated.apiserver.watch.cache import Collection, WatchCache
from kemu.emulated.objects import custom_kinds, json_paths, selectors
from kemu.emulated.objects.conversion import convert
from kemu.emulated.objects.resources import Resource
from kemu.errors import BadRequest, Forbidden, NotFound
from kemu.messages.k8s.apiextensions_v1_pb2 import CustomObject, CustomResourceDefinition
from kemu.messages.v1 import api_pb2
from kemu.runtime.env import SECOND_NS, Clock

SETTLING_NS = 2 * SECOND_NS
"""A create waits as long when its kind was established so recently: other API servers may not serve it yet."""


class Kind:
    """What one definition says."""

    def __init__(self, definition: CustomResourceDefinition, converter: Converter | None) -> None:
        self.definition = definition
        self._converter = converter
        self.converted: dict[str, ConvertedCollection] = {}
        """By API version, of a kind that a webhook converts."""
        self._strategies: dict[str, Strategy] = {}
        self._selections: dict[tuple[str, str, str, str], Selection] = {}

    def serves_as(self, definition: CustomResourceDefinition) -> bool:
        """Whether a newer definition changes nothing about objects and requests."""
        mine = self.definition
        return bool(
            mine.metadata.uid == definition.metadata.uid
            and mine.spec == definition.spec
            and mine.status.acceptedNames == definition.status.acceptedNames
        )

    @property
    def is_served(self) -> bool:
        found = self.definition
        return custom_kinds.is_true(found, custom_kinds.ACCEPTED) or custom_kinds.is_true(
            found, custom_kinds.ESTABLISHED
        )

    def strategy(self, version: str) -> Strategy | None:
        """``version``: empty for the one in which objects are stored. None: it is not served."""
        strategy = self._strategies.get(version)
        if strategy is None:
            for one in self.definition.spec.versions:
                if (one.storage and not version) or (one.name == version and one.served):
                    row = custom_kinds.row(self.definition, one)
                    strategy = custom_strategies.of(Served(**vars(row), converter=self._converter))
                    self._strategies[version] = strategy
        return strategy

    def selection(
        self, row: Served, namespace: str, labels: str, fields: str, convert: Callable[[Served], ConvertedCollection]
    ) -> Selection:
        """``convert``: makes the collection of a row. Raises :class:`kemu.errors.BadRequest`."""
        key = row.api_version, namespace, labels, fields
        found = self._selections.get(key)
        if found is None:
            if namespace and not row.namespaced:
                raise BadRequest(f"{row.qualified} are not namespaced: no namespace may be given")
            try:
                parsed = selectors.parse_labels(labels)
                wanted = selectors.parse_custom_fields(fields, row.plural, _selectable(row))
            except selectors.SelectorError as error:
                raise BadRequest(str(error)) from None
            if row.converter is None:
                found = Selection(row, namespace, parsed, wanted, row.show)
            else:
                found = Selection(row, namespace, parsed, wanted)
                found.converted = self.collection(row, convert)
            self._selections[key] = found
        return found

    def collection(self, row: Served, convert: Callable[[Served], ConvertedCollection]) -> ConvertedCollection:
        """Of a kind that a webhook converts: its objects in one version."""
        found = self.converted.get(row.api_version)
        if found is None:
            found = self.converted[row.api_version] = convert(row)
        return found


def _selectable(row: Served) -> dict[str, Callable[[Any], str]]:
    """What field selectors may name, and how to get it of an object as it is stored, or as a webhook converted it."""
    found = selectors.common_fields(row.namespaced)
    for field in row.version.selectableFields:
        found[field.jsonPath.removeprefix(".")] = _getter(row, json_paths.parse(field.jsonPath))
    return found


def _getter(row: Served, path: json_paths.JsonPath) -> Callable[[Any], str]:
    def get(obj: CustomObject) -> str:
        shown = obj
        if row.converter is None:
            shown = CustomObject.FromString(row.show(obj.SerializeToString(deterministic=True)))
        values = path.find(convert.to_manifest(shown))
        return json_paths.shown(values[0]) if values and values[0] is not None else ""

    return get


Converters = Callable[[CustomResourceDefinition], Converter | None]
Collect = Callable[[Collection, Served], ConvertedCollection]
"""(what is stored, row): what there is in the version of the row."""


class Kinds:
    converters: Converters
    """What converts the objects of a definition; None: nothing needs to be asked."""
    collect: Collect

    def __init__(self, cache: WatchCache, clock: Clock) -> None:
        self._cache = cache
        self._clock = clock
        self._kinds: dict[str, Kind] = {}
        self.on_change: Callable[[str], None] = lambda plural: None
        """Told of the kind of every definition that changes."""
        self.on_end: Callable[[str], None] = lambda plural: None
        """Told of kinds whose watches must end."""
        cache.on_definition = self._changed

    def _changed(self, name: str, entry: Entry | None) -> None:
        known = self._kinds.get(name)
        if entry is None:
            if known is not None:
                del self._kinds[name]
                self._end(name, known)
            self.on_change(name)
            return
        definition = CustomResourceDefinition.FromString(entry.wire)
        if known is not None and known.serves_as(definition):
            known.definition = definition
        else:
            self._kinds[name] = Kind(definition, self.converters(definition))
            self._cache.add(custom_kinds.placeholder(name, definition.spec.scope == custom_kinds.NAMESPACED))
            if known is not None:
                self._end(name, known)
        self.on_change(name)

    def _end(self, name: str, kind: Kind) -> None:
        for one in kind.converted.values():
            one.close()
            self.on_end(one.name)
        self.on_end(name)

    def reset(self) -> None:
        """The cache was filled anew."""
        for kind in self._kinds.values():
            for one in kind.converted.values():
                one.reset()

    def names(self) -> list[str]:
        """Of all definitions."""
        return list(self._kinds)

    def definition(self, name: str) -> CustomResourceDefinition | None:
        """Not to be changed."""
        kind = self._kinds.get(name)
        return kind.definition if kind is not None else None

    # --- for requests -------------------------------------------------------------------------------------------------

    def strategy(self, plural: str, version: str) -> Strategy:
        """Of a custom kind. Raises :class:`kemu.errors.NotFound`, as for a URL that no API serves."""
        kind = self._kinds.get(plural)
        if kind is not None and kind.is_served:
            strategy = kind.strategy(version)
            if strategy is not None:
                return strategy
        return strategies.find_strategy(plural)  # raises

    def of_kind(self, api_version: str, kind: str) -> Served | None:
        """The row of a custom kind that is served in that version; None: there is none."""
        group, _, version = api_version.rpartition("/")
        for name in self.names():
            definition = self.definition(name)
            if definition is None or definition.spec.group != group or definition.status.acceptedNames.kind != kind:
                continue
            try:
                found: Served | None = self.strategy(name, version).custom
            except NotFound:
                return None
            return found
        return None

    def find(self, where: api_pb2.Resource) -> Resource:
        """Of any kind. Raises NotFound."""
        found = strategies.STRATEGIES.get(where.resource)
        return (found or self.strategy(where.resource, where.version)).resource

    def selection(self, where: api_pb2.Resource, labels: str, fields: str) -> Selection:
        """Of any kind. Raises NotFound, BadRequest."""
        if not custom_kinds.is_custom(where.resource):
            return selections.compile_selection(where.resource, where.namespace, labels, fields)
        row = self.strategy(where.resource, where.version).resource
        assert isinstance(row, Served)
        kind = self._kinds[where.resource]
        return kind.selection(row, where.namespace, labels, fields, self._converted)

    def collection(self, row: Resource) -> Collection:
        """The collection that shows a kind in a version."""
        if isinstance(row, Served) and row.converter is not None:
            return self._kinds[row.plural].collection(row, self._converted)
        return self._cache.collections[row.plural]

    def _converted(self, row: Served) -> ConvertedCollection:
        return self.collect(self._cache.collections[row.plural], row)

    async def settle(self, row: Served, name: str) -> None:
        """Before an object is created. Raises :class:`kemu.errors.Forbidden` when the kind is going."""
        definition = self.definition(row.plural)
        if definition is None:
            return
        for condition in definition.status.conditions:
            if condition.type == custom_kinds.TERMINATING and condition.status == "True":
                raise _terminating(row, name)
            if condition.type == custom_kinds.ESTABLISHED:
                since_ns = self._clock.unix_ns() - condition.lastTransitionTime.seconds * SECOND_NS
                # During the set-up the clock stands.
                if since_ns < SETTLING_NS and self._clock.now_ns():
                    await self._clock.sleep(SETTLING_NS / SECOND_NS)


def _terminating(row: Served, name: str) -> Forbidden:
    return errors.forbidden(row, name, "create not allowed while custom resource definition is terminating")
