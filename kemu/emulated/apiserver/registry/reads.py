"""Get and list: from the store when the answer must be the latest, from the watch cache when the client does not mind.

``resource_version`` "" is linearizable, "0" takes whatever the cache has, N waits until the cache is not older than N.
``Exact`` asks the store for the state at N; so does a limit with an N, for which Kubernetes once had no other words. A
list in pages is one snapshot: its continue token holds the revision of the first page, and the store has the others.
Once the store has compacted it, the answer is Expired with another token, for the rest as it is now.
Leases and nodes are shown with the heartbeats that their kubelets state instead of sending them
(:mod:`kemu.emulated.objects.heartbeats`).
"""

from __future__ import annotations

import base64
import json
import posixpath
from collections.abc import Callable, Sequence
from typing import Any

from kemu import errors as kemu_errors
from kemu.emulated.apiserver import errors
from kemu.emulated.apiserver.custom.served import Served
from kemu.emulated.apiserver.registry import options
from kemu.emulated.apiserver.registry.kinds import Kinds
from kemu.emulated.apiserver.selections import Selection
from kemu.emulated.apiserver.storage import Entry, Storage
from kemu.emulated.apiserver.watch.cache import WatchCache
from kemu.emulated.apiserver.watch.feed import Feed
from kemu.emulated.objects import heartbeats, resources
from kemu.emulated.objects.conversion import go_syntax
from kemu.emulated.objects.plain import Json
from kemu.emulated.objects.wire import key_ranges
from kemu.messages.v1 import api_pb2

SCAN_PAGE = 1_000
"""Keys read at a time where a selector may leave only a few of them."""


EXPIRED = "The resourceVersion for the provided list is too old."
INCONSISTENT = (
    "The provided continue parameter is too old to display a consistent list result. You can start a new list without "
    "the continue parameter, or use the continue token in this response to retrieve the remainder of the results. "
    "Continuing with the provided token results in an inconsistent list - objects that were created, modified, or "
    "deleted between the time the first chunk was returned and now may show up in the list."
)
NOW = -1
"""As the revision of a continue token: whatever there is when it is used."""


class Reader:
    """Answers Get and List."""

    def __init__(
        self, storage: Storage, cache: WatchCache, feed: Feed, kinds: Kinds, unix_now_ns: Callable[[], int]
    ) -> None:
        self._storage = storage
        self._cache = cache
        self._feed = feed
        self._kinds = kinds
        self._unix_now_ns = unix_now_ns

    async def get(self, request: api_pb2.GetRequest) -> bytes:
        """Raises :class:`kemu.errors.NotFound`."""
        resource = self._kinds.find(request.resource)
        name, namespace = request.name, request.resource.namespace
        if not name:
            raise kemu_errors.BadRequest("name may not be empty")
        if resource.namespaced and not namespace:
            raise kemu_errors.BadRequest("an empty namespace may not be set when a resource name is provided")
        key = resources.key(resource, namespace, name)
        # Those that no watch cache has come from the store, whatever is asked for.
        read_version = options.version_of_list if resource.plural == "events" else options.version_of_watch
        revision = read_version(request.resource_version)
        entry: Entry | None
        if revision is None:
            entry = await self._storage.read(key)
            if entry is not None:
                resource.message.FromString(entry.wire)  # another client may have written to the store
        else:
            await self._feed.until(revision)
            collection = self._kinds.collection(resource)
            if collection.converts:
                await collection.catch_up()
            entry = collection.entries.get(key)
        if entry is None:
            raise errors.not_found(resource, name)
        if isinstance(resource, Served) and resource.converter is not None:
            return (await resource.converted_entry(entry)).wire
        return self._shown(resource, [entry.wire])[0]

    async def list(self, request: api_pb2.ListRequest) -> api_pb2.ListResponse:
        """Raises :class:`kemu.errors.Gone` for an expired continue token, BadRequest for a bad selector or token."""
        options.check_list(request)
        selection = self._kinds.selection(request.resource, request.label_selector, request.field_selector)
        token = getattr(request, "continue")
        limit = max(request.limit, 0)
        if selection.is_of_one and not token:
            # It is read by its key, of which there are no pages (``MatchesSingle``).
            limit = 0
        if token:
            at, start = _parse_token(token, selection)
            if request.resource_version not in ("", "0"):
                raise kemu_errors.BadRequest("specifying resource version is not allowed when using continue")
            return await self._list_store(selection, limit, max(at, 0), start)
        revision = options.version_of_list(request.resource_version)
        match = request.resource_version_match
        if match == options.EXACT or (revision and limit and not match):
            return await self._list_store(selection, limit, revision or 0)
        if revision is None:
            if not await self._has_caught_up():
                return await self._list_store(selection, limit)
        else:
            await self._feed.until(revision)
        if selection.converted is not None:
            await selection.converted.catch_up()
        # With resource version 0 the limit is ignored, as in kube-apiserver, which looks at the text.
        return self._list_cache(selection, 0 if request.resource_version == "0" else limit)

    async def _has_caught_up(self) -> bool:
        """Whether the cache is as new as the store: then an index of it answers instead of a scan of the store, as with
        ``ConsistentListFromCache`` in Kubernetes."""
        if self._feed.lag_ns:
            return False
        try:
            await self._feed.until(await self._storage.revision())
        except kemu_errors.ServerTimeout:
            return False
        return True

    def _list_cache(self, selection: Selection, limit: int) -> api_pb2.ListResponse:
        revision = self._cache.revision
        collection = self._cache.collections[selection.resource.plural]
        if selection.converted is not None:
            collection, revision = selection.converted, selection.converted.as_of(revision)
        response = api_pb2.ListResponse(resource_version=str(revision))
        entries = collection.select(selection)
        if limit and len(entries) >= limit and (rest := collection.count_after(entries[limit - 1].key, selection)):
            # There may be more, if not what is selected: nobody has looked at the rest.
            setattr(response, "continue", _token(selection, revision, entries[limit - 1].key + b"\0"))
            if selection.only_namespace:
                response.remaining_item_count = rest
            del entries[limit:]
        response.items.extend(self._shown(selection.resource, [entry.wire for entry in entries]))
        return response

    async def _list_store(
        self, selection: Selection, limit: int, revision: int = 0, start: bytes = b""
    ) -> api_pb2.ListResponse:
        """From key ``start`` on, as of ``revision`` (0: now)."""
        resource = selection.resource
        prefix = resources.prefix(resource, selection.namespace)
        end = key_ranges.prefix_end(prefix)
        parse: Any = None if selection.only_namespace else resource.message.FromString
        page = limit if parse is None else max(limit, SCAN_PAGE) if limit else 0
        wires: list[bytes] = []
        start = start or prefix
        while True:
            try:
                response = await self._storage.range(start, end, limit=page, revision=revision)
            except kemu_errors.Compacted:
                raise await self._expired(selection, revision, b"" if start == prefix else start) from None
            revision = revision or response.header.revision
            last = start
            for pair in response.kvs:
                if limit and len(wires) == limit:
                    break
                last = pair.key
                entry = Entry(pair.key, pair.mod_revision, pair.value)
                if selection.converted is not None:
                    entry = await selection.resource.converted_entry(entry)  # type: ignore[attr-defined]
                # Also of those that are not selected: they may be corrupt.
                obj = resource.message.FromString(entry.value)
                if parse is None or selection.matches(obj):
                    wires.append(entry.wire)
            more = response.more or (bool(response.kvs) and last != response.kvs[-1].key)
            start = last + b"\0"
            if not more or (limit and len(wires) == limit):
                break
        result = api_pb2.ListResponse(resource_version=str(revision), items=self._shown(resource, wires))
        if more:
            setattr(result, "continue", _token(selection, revision, start))
            if parse is None:
                result.remaining_item_count = response.count - len(response.kvs)
        return result

    async def _expired(self, selection: Selection, revision: int, start: bytes) -> kemu_errors.ApiError:
        """The store does not have this revision: no longer, or not yet. ``start``: where a page was to begin."""
        now = await self._storage.revision()
        if revision > now:
            return errors.too_large(revision, now)
        if not start:
            return kemu_errors.Gone(EXPIRED)
        error = kemu_errors.Gone(INCONSISTENT)
        error.continue_token = _token(selection, NOW, start)
        return error

    def _shown(self, resource: resources.Resource, wires: Sequence[bytes]) -> Sequence[bytes]:
        """With the heartbeats up to now, also where a past revision is read: no client reads heartbeats of the past."""
        if resource.plural not in heartbeats.PLURALS:
            if not isinstance(resource, Served) or resource.converter is not None:
                return wires
            return [resource.show(wire) for wire in wires]
        now, message = self._unix_now_ns(), resource.message
        return [heartbeats.show(message, wire, now) for wire in wires]


def _token(selection: Selection, revision: int, start: bytes) -> str:
    """``storage.EncodeContinue``: where to go on, below the collection."""
    below = len(resources.prefix(selection.resource, selection.namespace)) - 1
    data = {"v": "meta.k8s.io/v1", "rv": revision, "start": start[below:].decode()}
    return base64.urlsafe_b64encode(json.dumps(data, separators=(",", ":")).encode()).decode().rstrip("=")


def _parse_token(token: str, selection: Selection) -> tuple[int, bytes]:
    """Revision (or NOW) and first key (``storage.DecodeContinue``). Raises BadRequest."""
    data, problem = go_syntax.url_decoded(token)
    if problem := problem or go_syntax.problem(data):
        raise _invalid_token(f"continue key is not valid: {problem}")
    try:
        found = json.loads(data)
    except (ValueError, RecursionError) as error:
        raise _invalid_token(f"continue key is not valid: {error}") from None
    if problem := _mismatch(found):
        raise _invalid_token(f"continue key is not valid: {problem}")
    stated = found or {}
    version, revision, start = stated.get("v") or "", stated.get("rv") or 0, stated.get("start") or ""
    if version != _VERSION:
        unknown = f"server does not recognize this encoded version {version}"
        raise _invalid_token(f"continue key is not valid: {unknown}")
    if not revision:
        raise _invalid_token(f"continue key is not valid: incorrect encoded start resourceVersion (version {_VERSION})")
    if not start:
        raise _invalid_token(f"continue key is not valid: encoded start key empty (version {_VERSION})")
    key = start if start.startswith("/") else f"/{start}"
    if posixpath.normpath(key) != key:
        raise _invalid_token(f"continue key is not valid: {start}")
    if revision < NOW:
        revision = NOW
    below = resources.prefix(selection.resource, selection.namespace)
    return revision, below + key[1:].encode()


def _invalid_token(why: str) -> kemu_errors.BadRequest:
    return kemu_errors.BadRequest(f"invalid continue token: {why}")


_VERSION = "meta.k8s.io/v1"
_FIELDS: dict[str, tuple[type, str]] = {"v": (str, "string"), "rv": (int, "int64"), "start": (str, "string")}


def _mismatch(found: Json) -> str:
    """What of a token has not the type that it should have; empty: nothing."""
    if found is None:
        return ""
    if not isinstance(found, dict):
        return f"json: cannot unmarshal {_kind(found)} into Go value of type storage.continueToken"
    for name, (kind, go) in _FIELDS.items():
        value = found.get(name)
        if value is None or (isinstance(value, kind) and not isinstance(value, bool)):
            continue
        shown = f"number {value}" if isinstance(value, float) else _kind(value)
        return f"json: cannot unmarshal {shown} into Go struct field continueToken.{name} of type {go}"
    return ""


def _kind(value: Json) -> str:
    names = {bool: "bool", str: "string", list: "array", dict: "object"}
    return names.get(type(value), "number")
