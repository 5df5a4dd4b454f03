"""A cached, live view of one collection, as client-go's shared informers: list, then watch.

The informer keeps ``store`` up to date and reports every change to its handler, in the order of revisions. It resumes
after the connection was lost. When the API server no longer knows the revision at which the watch stood, it lists again
and computes what has changed since.

    pods = informers.Informer(client, "pods", handler=informers.Callbacks(on_add=queue_pod, on_delete=forget_pod))
    await pods.synced()
    pods.store["default/web-0"]
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from sys import intern
from typing import Any, Generic, Protocol, TypeVar, cast

from kemu import errors
from kemu.emulated.client import clients, retries, sessions, streams
from kemu.emulated.objects import custom_kinds, resources
from kemu.emulated.objects.wire import shared_objects
from kemu.messages.k8s.objects import KubernetesObject
from kemu.messages.v1 import api_pb2
from kemu.runtime.env import SECOND_NS
from kemu.runtime.runlog.events import WatchClosed, WatchDelivered, WatchListed

PAGE = 500
"""Objects in one answer when a list is not served from the cache, as client-go's pager asks."""

_ADDED, _MODIFIED, _DELETED, _BOOKMARK, _ERROR = range(5)
_LETTERS = "AMDB"
"""How the run log writes the types of events."""

_OBJECTS, _MASK = shared_objects.OBJECTS, shared_objects.MASK


K = TypeVar("K", bound=KubernetesObject)
K_contra = TypeVar("K_contra", bound=KubernetesObject, contravariant=True)


class Handler(Protocol[K_contra]):
    """Synchronous methods; an exception in one ends the actor.

    If there is an ``on_batch_end()`` too, it is called when all events that arrived together have been delivered.
    Objects are shared with ``store``: read them, never change them.
    """

    def on_add(self, obj: K_contra) -> None: ...

    def on_update(self, old: K_contra, new: K_contra) -> None: ...

    def on_delete(self, old: K_contra) -> None:
        """``old``: the last known state; after a new list the object may have changed once more before it went."""
        ...


def _ignore(*objects: KubernetesObject) -> None: ...


@dataclass(frozen=True, slots=True)
class Callbacks(Generic[K]):
    """A handler made of callables (``ResourceEventHandlerFuncs``); what is left out is ignored."""

    on_add: Callable[[K], None] = _ignore
    on_update: Callable[[K, K], None] = _ignore
    on_delete: Callable[[K], None] = _ignore


class _Compact(dict[str, K]):
    """A store that keeps objects as bytes, and parses one when it is asked for."""

    __slots__ = ("_parse",)

    def __init__(self, parse: Callable[[bytes], K]) -> None:
        super().__init__()
        self._parse = parse

    def __getitem__(self, key: str) -> K:
        return self._parse(cast(bytes, super().__getitem__(key)))

    def __setitem__(self, key: str, obj: K) -> None:
        super().__setitem__(key, cast(K, obj.SerializeToString(deterministic=True)))

    def get(self, key: str, default: K | None = None) -> K | None:  # type: ignore[override]
        data = super().get(key)
        return default if data is None else self._parse(cast(bytes, data))

    def pop(self, key: str) -> K:  # type: ignore[override]
        return self._parse(cast(bytes, super().pop(key)))


class _Sparing(dict[str, K]):
    """A store of shared objects that keeps the bytes of those that are no news."""

    __slots__ = ()

    def __getitem__(self, key: str) -> K:
        return cast(K, cast(shared_objects.Held, super().__getitem__(key)).get())

    def __setitem__(self, key: str, obj: K) -> None:
        super().__setitem__(key, cast(K, _OBJECTS.hold(obj)))

    def get(self, key: str, default: K | None = None) -> K | None:  # type: ignore[override]
        held = super().get(key)
        return default if held is None else held.obj or held.get()  # type: ignore[attr-defined]

    def pop(self, key: str) -> K:  # type: ignore[override]
        return cast(K, cast(shared_objects.Held, super().pop(key)).get())

    def values(self) -> Iterator[K]:  # type: ignore[override]
        return (self[key] for key in self)

    def items(self) -> Iterator[tuple[str, K]]:  # type: ignore[override]
        return ((key, self[key]) for key in self)


class _State:
    """The state with which a watch begins, until it is complete: the subscriber in the place of its informer."""

    begins = True

    def __init__(self, informer: Informer[Any]) -> None:
        self._informer = informer
        self.resource, self.namespace = informer.resource, informer.namespace
        self.label_selector, self.field_selector = informer.label_selector, informer.field_selector
        self._revision = 0
        self._items: dict[str, tuple[Any, bytes]] = {}
        """By key: the object, and its bytes."""

    @property
    def revision(self) -> int:
        return self._revision

    @revision.setter
    def revision(self, revision: int) -> None:
        """A new stream: from the beginning."""
        self._revision = revision
        self._items.clear()

    def receive(self, event: api_pb2.WatchEvent, *, alone: bool = False) -> bool:
        kind = event.type
        if kind < _BOOKMARK:
            data, obj, key, _, _ = self._informer.see(event)
            if kind == _DELETED:
                self._items.pop(key, None)
            else:
                self._items[key] = obj, data
        elif kind != _BOOKMARK:
            self._informer.cannot_begin(event.error)
        elif event.object:
            items = [obj for obj, _ in self._items.values()]
            self._informer.fill(self, items, [data for _, data in self._items.values()], event.resource_version)
        return False

    def end_batch(self) -> None:
        pass


class Informer(Generic[K]):
    """Without a ``handler`` only the store is kept.

    An informer begins with a watch that brings the state first, not older than the store was when it asked, as
    client-go's reflectors do with the feature gate WatchListClient; no part of it is seen before it is complete.
    Before the clock starts, when all caches are new, and for a client that does not stream lists, a list comes first:
    from the API server's watch cache, however stale (``resourceVersion=0``), and after ``Expired`` a consistent one in
    pages.
    ``compact``: the store keeps bytes, which take a tenth of the memory of parsed objects; for those rarely looked at.
    """

    begins = False
    __slots__ = (
        "_backoff",
        "_client",
        "_handler",
        "_is_sparing",
        "_message",
        "_namespaced",
        "_on_batch_end",
        "_see",
        "_shares",
        "_started",
        "_stopped",
        "_streams",
        "_unlogged",
        "_version",
        "_waiters",
        "_watch_id",
        "_watches",
        "field_selector",
        "id",
        "label_selector",
        "namespace",
        "resource",
        "revision",
        "store",
    )

    def __init__(
        self,
        client: clients.Client,
        resource: str,
        *,
        namespace: str = "",
        label_selector: str = "",
        field_selector: str = "",
        handler: Handler[K] | None = None,
        compact: bool = False,
        namespaced: bool = True,
    ) -> None:
        """``namespaced``: whether objects of a custom kind have a namespace."""
        row = resources.BY_PLURAL.get(resource) or custom_kinds.placeholder(resource, namespaced)
        message = cast(type[K], row.message)
        self.resource = resource
        self.namespace = namespace
        self.label_selector = label_selector
        self.field_selector = field_selector
        self.store: dict[str, K] = {}
        if compact:
            self.store = _Sparing() if client.shares else _Compact(message.FromString)
        self._is_sparing = compact and client.shares
        """By ``namespace/name``, or by name for kinds without namespaces."""
        self.revision = 0
        """The store holds the collection as of this revision."""
        self._client = client
        self._watches = client.watches_of(resource)
        self._handler = handler
        self._on_batch_end = getattr(handler, "on_batch_end", None)
        self._message = message
        self._see = client.seer(message)
        self._shares = client.shares
        self._namespaced = row.namespaced
        self._streams = client.streams_lists
        self._version = "0"
        self._watch_id = 0
        self.id = intern(f"{resource}#0")
        """Names the present watch in the run log; a new list begins a new one."""
        self._unlogged: list[tuple[int, str, int]] | None = None
        """The events that are not in the log yet, if there are any: their revisions, types, and the digests of their
        bytes."""
        self._waiters: list[asyncio.Future[None]] | None = []
        """Waiters of :meth:`synced`; None when it has."""
        self._backoff: streams.Backoff | None = None
        self._started = False
        self._stopped = False

    def start(self) -> None:
        """Begin to list and watch; more than once does nothing."""
        if not self._started:
            self._started = True
            self._spawn_list()

    def start_from(self, items: Sequence[K], revision: int) -> None:
        """Begin without a list: the collection is known to be ``items`` as of ``revision``, from having created them.

        The handler is not told of them.
        """
        assert not self._started, f"{self.id} runs already"
        self._started = True
        self._begin_watch()
        for obj in items:
            self.store[self._key(obj)] = obj
        self._watch(revision, len(items), None)
        self._set_synced()

    async def synced(self) -> None:
        """Starts the informer and waits until the first list has been delivered."""
        self.start()
        if self._waiters is not None:
            waiter = asyncio.get_running_loop().create_future()
            self._waiters.append(waiter)
            await waiter

    def stop(self, reason: str = "stopped") -> None:
        """No more events. The store stays as it is."""
        if self._started and not self._stopped:
            self._stopped = True
            self._log_events()
            self._watches.stop(self._watch_id)
            self._client.env.log(WatchClosed(watch=self.id, reason=reason))

    # --- list --------------------------------------------------------------------------------------------------------

    def _begin_watch(self) -> None:
        self._watch_id = self._watches.next_id()
        self.id = intern(f"{self.resource}#{self._watch_id}")

    def _spawn_list(self) -> None:
        self._begin_watch()
        if self._streams and self._client.env.clock.now_ns():
            self._watches.start(self._watch_id, _State(self))
        else:
            self._client.env.spawn(self._list(), f"list {self.id}")

    def see(self, event: api_pb2.WatchEvent) -> shared_objects.Seen:
        """What an event shows."""
        return self._see(event.resource_version, event.object)

    def fill(self, state: _State, items: list[K], listed: list[bytes], revision: int) -> None:
        """The state is complete; its watch goes on as this informer's. ``listed``: the bytes of the items."""
        self._backoff = None
        digest = sessions.digest_of(self._message, listed, cast(list[KubernetesObject], items))
        self._listed(revision, len(items), digest)
        self._watches.interpose(state, self)
        self._replace(items)
        self._set_synced()

    def cannot_begin(self, status: bytes) -> None:
        """The server ends a watch before its state is complete."""
        error = sessions.error_of(status) if status else None
        if isinstance(error, errors.NotFound) and custom_kinds.is_custom(self.resource):
            # As in _list.
            self._watches.stop(self._watch_id, ended=True)
            self._stopped = True
            self._set_synced()
        elif error is None or isinstance(error, errors.Gone):
            self._watches.restart(self._watch_id)
        else:
            self._on_error(status)

    async def _list(self) -> None:
        while True:
            try:
                items, version, digest = await retries.patiently(self._client.env, self._list_all)
                break
            except errors.Gone:
                self._version = ""  # the rest of the pages is forgotten
            except errors.NotFound:
                if not custom_kinds.is_custom(self.resource):
                    raise
                # Its definition is gone, or not established again yet: who watches that begins another informer.
                self._stopped = True
                self._set_synced()
                return
        if self._stopped:
            return
        self._backoff = None
        self._watch(int(version), len(items), digest)
        self._replace(items)
        self._set_synced()

    def _watch(self, revision: int, objects: int, digest: int | None) -> None:
        """The store is about to hold the collection as of ``revision``: ask for what comes after."""
        self._listed(revision, objects, digest)
        self._watches.start(self._watch_id, self)

    def _listed(self, revision: int, objects: int, digest: int | None) -> None:
        self.revision = revision
        self._client.env.log(
            WatchListed(
                watch=self.id,
                resource=self.resource,
                namespace=self.namespace,
                label_selector=self.label_selector,
                field_selector=self.field_selector,
                rev=revision,
                objects=objects,
                digest=digest,
            ),
        )

    def _set_synced(self) -> None:
        waiters, self._waiters = self._waiters, None
        for waiter in waiters or ():
            if not waiter.done():
                waiter.set_result(None)

    async def _list_all(self) -> tuple[list[K], str, int]:
        client, limit = self._client, 0 if self._version == "0" else PAGE
        page = await client.list(
            self.resource, self.namespace, self.label_selector, self.field_selector, limit, self._version
        )
        items, version, digest = cast(list[K], page.items), page.resource_version, page.digest
        while page.continue_token:
            page = await client.list(
                self.resource,
                self.namespace,
                self.label_selector,
                self.field_selector,
                limit,
                continue_token=page.continue_token,
            )
            items += cast(list[K], page.items)
            digest = (digest + page.digest) & 0xFFFFFFFF
        return items, version, digest

    def _replace(self, items: list[K]) -> None:
        """Tell the handler how a new list differs from the store: what is gone first, then the rest in order."""
        listed = {self._key(obj): obj for obj in items}
        handler, old_store = self._handler, self.store
        gone = [key for key in old_store if key not in listed]
        for key in gone:
            old = old_store.pop(key)
            if handler is not None:
                handler.on_delete(old)
        for key, obj in listed.items():
            self._put(key, obj)
        if self._on_batch_end is not None:
            self._on_batch_end()

    def _put(self, key: str, obj: K) -> None:
        old = self.store.get(key)
        self.store[key] = obj
        handler = self._handler
        if handler is None:
            return
        if old is None:
            handler.on_add(obj)
        elif old.metadata.uid != obj.metadata.uid:
            # The name was given to a new object in the meantime.
            handler.on_delete(old)
            handler.on_add(obj)
        elif old.metadata.resourceVersion != obj.metadata.resourceVersion:
            handler.on_update(old, obj)

    def _key(self, obj: KubernetesObject) -> str:
        metadata = obj.metadata
        name: str = metadata.name
        return f"{metadata.namespace}/{name}" if self._namespaced else name

    # --- watch: called by Watches ------------------------------------------------------------------------------------

    def receive(self, event: api_pb2.WatchEvent, *, alone: bool = False) -> bool:
        kind = event.type
        if kind >= _BOOKMARK:
            if kind == _BOOKMARK:
                self.revision = event.resource_version
                if self._unlogged is not None:  # it will be logged with what came before it in this message
                    self._unlogged.append((self.revision, _LETTERS[kind], 0))
                else:
                    self._unlogged = [(self.revision, _LETTERS[kind], 0)]
                    self._log_events()
            else:
                self._on_error(event.error)
            return False
        data = event.object
        # The store is up to date when the handler looks into it.
        self.revision = revision = event.resource_version
        # Most objects have been parsed for another actor: SharedObjects.see, inlined.
        seen = _OBJECTS.kept[revision & _MASK] if self._shares else None
        if seen is None or seen[0] != data or type(seen[1]) is not self._message or _OBJECTS.checks:
            seen = self._see(revision, data)
        obj: K
        _, obj, key, digest, held = seen
        store = self.store
        old: K | None
        if self._is_sparing:  # _Sparing.get, inlined
            known: Any = dict.get(store, key)
            old = None if known is None else known.obj or known.get()
        else:
            old = store.get(key)
        handler = self._handler
        if kind == _DELETED:
            if old is not None:
                del store[key]
                if handler is not None:
                    handler.on_delete(obj)
        else:
            if self._is_sparing and held is not None:
                dict.__setitem__(store, key, held)  # type: ignore[arg-type, misc]
            else:
                store[key] = obj
            if handler is not None:
                if old is None:
                    handler.on_add(obj)
                else:
                    handler.on_update(old, obj)
        unlogged = self._unlogged
        if alone and unlogged is None:
            # end_batch, inlined.
            self._client.env.log(WatchDelivered(watch=self.id, revs=[revision], types=_LETTERS[kind], digests=[digest]))
            if self._on_batch_end is not None:
                self._on_batch_end()
            return False
        if unlogged is None:
            unlogged = self._unlogged = []
        unlogged.append((revision, _LETTERS[kind], digest))
        if alone:
            self.end_batch()
        return len(unlogged) == 1

    def end_batch(self, *, is_whole: bool = True) -> None:
        """``is_whole`` False: the log is told of the events so far, the handler will be of the end."""
        if self._unlogged is not None:
            revisions, types, digests = zip(*self._unlogged, strict=True)
            self._unlogged = None
            self._client.env.log(
                WatchDelivered(watch=self.id, revs=list(revisions), types="".join(types), digests=list(digests)),
            )
        if is_whole and self._on_batch_end is not None:
            self._on_batch_end()

    def _log_events(self) -> None:
        self.end_batch(is_whole=False)

    def _on_error(self, status: bytes) -> None:
        if not status:
            self._watches.restart(self._watch_id)
            return
        error = sessions.error_of(status)
        watches = self._watches
        if isinstance(error, errors.Gone):
            (self._list_again if self._client.relists else self._go_on)(error)
        elif isinstance(error, errors.NotFound) and custom_kinds.is_custom(self.resource):
            watches.stop(self._watch_id, ended=True)
            self.stop("its kind is gone")
        elif isinstance(error, retries.PASSING):
            # The server could not serve it now (say, its cache is still behind): the same watch again, a little later.
            delay_ns = int(self._next_backoff_s() * SECOND_NS)
            clock = self._client.env.clock
            clock.call_at_ns(clock.now_ns() + delay_ns, watches.restart, self._watch_id)
        else:
            raise error

    def _list_again(self, error: errors.Gone) -> None:
        self._watches.stop(self._watch_id, ended=True)
        self._log_events()
        self._client.env.log(WatchClosed(watch=self.id, reason=error.reason))
        self._version = ""
        self._spawn_list()

    def _go_on(self, error: errors.Gone) -> None:
        """Without ``relist-on-gap``: the same watch, from what is there now. What was deleted meanwhile stays in the
        store."""
        self.revision = 0
        self._watches.restart(self._watch_id)

    def _next_backoff_s(self) -> float:
        if self._backoff is None:
            self._backoff = streams.Backoff(self._client.env)
        return self._backoff.next_s()
