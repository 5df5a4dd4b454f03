"""Objects and lists in the form that a client asks for.

An object is put into a form once, however many clients and watches get it: what it became is kept by the bytes that
the API server sent, as long as there is room.
"""

from __future__ import annotations

import asyncio
from collections.abc import Hashable, Sequence
from typing import Any

from kemu.emulated.gateway.answers import documents, texts
from kemu.emulated.gateway.requests import envelopes, negotiation, other_forms
from kemu.emulated.gateway.requests.negotiation import Form
from kemu.emulated.gateway.tables import tables
from kemu.emulated.objects.custom_kinds import CustomResource
from kemu.emulated.objects.resources import Resource
from kemu.errors import NotAcceptable
from kemu.messages.k8s import flowcontrol_v1_pb2, meta_v1_pb2
from kemu.messages.k8s.objects import KubernetesObject
from kemu.runtime.env import Clock

ITEMS_AT_A_TIME = 100
"""Items at a time of a list, that are put into a form before others get their turn."""

_OVERHEAD = 200
"""Bytes that an entry of the cache takes beside its content, about."""


class Cache:
    """What was made of bytes. The older half goes when it is full."""

    __slots__ = ("_limit", "_new", "_old", "_size")

    def __init__(self, limit: int) -> None:
        self._limit = limit // 2
        self._new: dict[Any, bytes] = {}
        self._old: dict[Any, bytes] = {}
        self._size = 0

    def get(self, key: Hashable) -> bytes | None:
        found = self._new.get(key)
        if found is None:
            found = self._old.get(key)
            if found is not None:
                self.put(key, found)
        return found

    def put(self, key: Any, value: bytes) -> None:
        self._size += len(value) + len(key[0]) + _OVERHEAD
        if self._size > self._limit:
            self._old, self._new, self._size = self._new, {}, len(value) + len(key[0]) + _OVERHEAD
        self._new[key] = value


class Representations:
    def __init__(self, cache_bytes: int, clock: Clock) -> None:
        self._cache = Cache(cache_bytes)
        self._clock = clock

    # Objects

    def object(self, form: Form, row: Resource, wire: bytes) -> bytes:
        """As the body of an answer. Raises :class:`kemu.errors.NotAcceptable`."""
        negotiation.check_included(form)
        if form.transform == negotiation.PARTIAL_LIST:
            raise NotAcceptable(
                f"you requested PartialObjectMetadataList, but the requested object is not a list ({_go_type(row)})"
            )
        if form.media == negotiation.PROTOBUF:
            return self._packed(form, row, wire)
        return _finished(form, self.json(form, row, wire))

    def json(self, form: Form, row: Resource, wire: bytes, with_columns: bool = True) -> bytes:
        """With kind and API version, without the newline at the end. Only a Table has columns."""
        if form.transform == negotiation.TABLE:
            message: Any = stored(row).message.FromString(wire)
            metadata = {"resourceVersion": message.metadata.resourceVersion}
            head = _table_head(form, row, metadata, with_columns)
            return b"%b%b]}" % (head, self._row(form, row, wire, message, self._clock.unix_ns()))
        if form.transform in (negotiation.PARTIAL, negotiation.PARTIAL_LIST):
            return _headed(f"meta.k8s.io/{form.version}", negotiation.PARTIAL, self._partial(row, wire))
        return _headed(row.api_version, row.kind, self._whole(row, wire))

    def embedded(self, form: Form, row: Resource, wire: bytes, is_first: bool = False) -> bytes:
        """As it stands in an event of a watch. Only in the first one a Table has its columns."""
        if form.media == negotiation.PROTOBUF:
            return self._packed(form, row, wire)
        return self.json(form, row, wire, is_first)

    def _row(self, form: Form, row: Resource, wire: bytes, message: KubernetesObject, now_ns: int) -> bytes:
        """Row of a Table."""
        if form.include == "Object":
            shown = _headed(row.api_version, row.kind, self._whole(row, wire))
        elif form.include == "Metadata":
            shown = _headed(f"meta.k8s.io/{form.version}", negotiation.PARTIAL, self._partial(row, wire))
        else:
            shown = b"null"
        return b'%b,"object":%b}' % (documents.text(tables.cells(row, message, now_ns))[:-1], shown)

    def _packed(self, form: Form, row: Resource, wire: bytes) -> bytes:
        if form.transform:
            partial = _metadata_only(row, wire)
            return envelopes.pack(f"meta.k8s.io/{form.version}", negotiation.PARTIAL, partial)
        return envelopes.pack(row.api_version, row.kind, _wire(row, wire))

    def _whole(self, row: Resource, wire: bytes) -> bytes:
        """The JSON object without kind and API version."""
        key = wire, row.api_version, row.plural
        found = self._cache.get(key)
        if found is None:
            shown = _shown(row, wire)
            found = (
                documents.text(documents.of(shown)) if isinstance(row, CustomResource) else texts.of_object(row, shown)
            )
            self._cache.put(key, found)
        return found

    def _partial(self, row: Resource, wire: bytes) -> bytes:
        key = wire, row.api_version, row.plural, negotiation.PARTIAL
        found = self._cache.get(key)
        if found is None:
            message: Any = stored(row).message.FromString(wire)
            found = documents.text({"metadata": documents.of(message.metadata)})
            self._cache.put(key, found)
        return found

    # Lists

    async def list(
        self, form: Form, row: Resource, metadata: meta_v1_pb2.ListMeta, wires: Sequence[bytes]
    ) -> Sequence[bytes]:
        """The pieces of the body of an answer. Raises :class:`kemu.errors.NotAcceptable`."""
        negotiation.check_included(form)
        if form.transform == negotiation.PARTIAL:
            raise NotAcceptable(
                f"you requested PartialObjectMetadata, but the requested object is a list ({_go_type(row)}List)"
            )
        version, kind = row.api_version, row.list_kind if isinstance(row, CustomResource) else f"{row.kind}List"
        if form.transform:
            version, kind = f"meta.k8s.io/{form.version}", form.transform
        now_ns = self._clock.unix_ns()
        if form.transform == negotiation.TABLE and row.message is flowcontrol_v1_pb2.FlowSchema:
            wires = tables.by_precedence(wires)
        items: list[bytes] = []
        for index, wire in enumerate(wires):
            if index and not index % ITEMS_AT_A_TIME:
                await asyncio.sleep(0)
            items.append(self._item(form, row, wire, now_ns))
        if form.media == negotiation.PROTOBUF:
            return envelopes.list_of(version, kind, metadata.SerializeToString(deterministic=True), items)
        stated = documents.of(metadata)
        if isinstance(row, CustomResource) and not form.transform:
            stated = {"continue": "", **stated}
        head: dict[str, Any] = {"kind": kind, "apiVersion": version, "metadata": stated}
        if form.transform == negotiation.TABLE:
            head["columnDefinitions"] = tables.columns(stored(row))
            return documents.list_of(_style(form), head, "rows", items)
        return documents.list_of(_style(form), head, "items", items)

    def _item(self, form: Form, row: Resource, wire: bytes, now_ns: int) -> bytes:
        """Item of a list."""
        if form.media == negotiation.PROTOBUF:
            return _metadata_only(row, wire) if form.transform else _wire(row, wire)
        if form.transform == negotiation.TABLE:
            item = self._row(form, row, wire, stored(row).message.FromString(wire), now_ns)
        elif form.transform or isinstance(row, CustomResource):
            item = self.json(form, row, wire)
        else:
            item = self._whole(row, wire)
        return documents.item_of(_style(form), item)


def stored(row: Resource) -> Resource:
    """The kind of the bytes that an API server sends for objects of a row: another one for another form."""
    other = other_forms.of(row)
    return row if other is None else other.kept


def _shown(row: Resource, wire: bytes) -> KubernetesObject:
    """The object of those bytes."""
    other = other_forms.FORMS.get((row.api_version, row.plural))  # other_forms.of, inlined
    if other is None:
        return row.message.FromString(wire)
    found: KubernetesObject = other.shown(other.kept.message.FromString(wire))
    return found


def _wire(row: Resource, wire: bytes) -> bytes:
    """The bytes for clients. Raises :class:`kemu.errors.NotAcceptable`."""
    if isinstance(row, CustomResource):
        raise NotAcceptable(f"only the following media types are accepted: {', '.join(negotiation.SERVED)}")
    if (row.api_version, row.plural) not in other_forms.FORMS:
        return wire
    return _shown(row, wire).SerializeToString(deterministic=True)


def message(form: Form, api_version: str, kind: str, found: KubernetesObject | meta_v1_pb2.Status) -> bytes:
    """The body of an answer that is no object of a resource: a Status, a review."""
    found.metadata.SetInParent()
    if form.media == negotiation.PROTOBUF:
        return envelopes.pack(api_version, kind, found.SerializeToString(deterministic=True))
    return _finished(form, _headed(api_version, kind, documents.text(documents.of(found))))


def _style(form: Form) -> documents.Style:
    if form.media == negotiation.YAML:
        return documents.Style.YAML
    return documents.Style.INDENTED if form.pretty else documents.Style.PLAIN


def _finished(form: Form, document: bytes) -> bytes:
    return documents.styled(_style(form), document)


def _headed(api_version: str, kind: str, document: bytes) -> bytes:
    """``document`` with kind and API version in front."""
    comma = "," if len(document) > 2 else ""
    return f'{{"kind":"{kind}","apiVersion":"{api_version}"{comma}'.encode() + document[1:]


def _table_head(form: Form, row: Resource, metadata: dict[str, Any], with_columns: bool) -> bytes:
    """Until where the rows begin."""
    columns = documents.text(tables.columns(stored(row))) if with_columns else b"null"
    head = f'{{"kind":"Table","apiVersion":"meta.k8s.io/{form.version}","metadata":'.encode()
    return b'%b%b,"columnDefinitions":%b,"rows":[' % (head, documents.text(metadata), columns)


def _metadata_only(row: Resource, wire: bytes) -> bytes:
    """``PartialObjectMetadata`` has the metadata in the same place as every object."""
    found = stored(row).message.FromString(wire)
    return envelopes.field(1, found.metadata.SerializeToString(deterministic=True))


def _go_type(row: Resource) -> str:
    """As Go prints it."""
    package = row.group.partition(".")[0] or "core"
    return f"*{package}.{row.kind}"
