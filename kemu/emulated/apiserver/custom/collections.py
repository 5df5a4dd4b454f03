"""What the watch cache has of a custom kind, in one of the versions that a webhook converts.

In Kubernetes each served version has a watch cache of its own, in which objects are converted once. So it is here, but
that a webhook is asked only while somebody watches the version, and when somebody lists it. Where the webhook fails,
the watches of the version end, as in Kubernetes, and the next request tries again.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any

from kemu.emulated.apiserver import errors
from kemu.emulated.apiserver.custom.served import Served
from kemu.emulated.apiserver.selections import Selection
from kemu.emulated.apiserver.storage import Entry
from kemu.emulated.apiserver.watch import buffers
from kemu.emulated.apiserver.watch.cache import Change, Collection
from kemu.emulated.apiserver.watch.fanout import Fanout, Stream, Watcher
from kemu.emulated.objects import selectors
from kemu.errors import ApiError, TooManyRequests

Spawn = Callable[[Coroutine[Any, Any, object], str], object]

RETRY_AFTER_S = 1


class ConvertedCollection(Collection):
    """As of :attr:`applied`; :meth:`catch_up` brings it up to the collection of what is stored."""

    __slots__ = (
        "_all", "_epoch", "_fanout", "_is_closed", "_is_loaded", "_past_bytes", "_row", "_source", "_spawn", "_tap",
        "_under_way", "_window_bytes", "applied",
    )  # fmt: skip

    def __init__(
        self, source: Collection, row: Served, window: int, window_bytes: int, fanout: Fanout, spawn: Spawn
    ) -> None:
        """``window``, ``window_bytes``: see :class:`.cache.WatchCache`."""
        super().__init__(row, window)
        self.name = f"{row.plural}/{row.api_version}"
        self.converts = True
        self.applied = 0
        """The revision up to which it has all changes."""
        self._source = source
        self._row = row
        self._fanout = fanout
        self._spawn = spawn
        self._is_loaded = self._is_closed = False
        self._window_bytes = window_bytes
        self._past_bytes = 0
        """At least as many as :meth:`past_bytes`."""
        self._epoch = 0
        """How often what it had has become worthless."""
        self._all = Selection(row, "", selectors.parse_labels(""), selectors.parse_fields("", ""))
        self._tap: Watcher | None = None
        """Hears of changes of the source, while somebody watches."""
        self._under_way: asyncio.Future[ApiError | None] | None = None
        """Done when what is catching up has; with why it has not."""

    def as_of(self, revision: int) -> int:
        """The revision that it shows, where the watch cache is at ``revision``."""
        return revision if self.applied >= self._source.last else self.applied

    async def catch_up(self) -> None:
        """Until it has what the source has now. Raises :class:`kemu.errors.TooManyRequests`."""
        wanted = self._source.last
        while not self._is_loaded or self.applied < wanted:
            self._begin()
            assert self._under_way is not None
            error = await asyncio.shield(self._under_way)
            if error is not None or self._is_closed:
                why = "storage is (re)initializing"
                if error is not None:
                    why += f": failed to list {self._row.api_version}, Kind={self._row.kind}: {error.message}"
                raise TooManyRequests(why, retry_after_s=RETRY_AFTER_S)

    def watched(self) -> None:
        """Somebody watches it: changes are to be told as they come."""
        if self._tap is None:
            self._tap = Watcher(_Tap(self._begin), 0, self._all, self._source, False)
            self._fanout.start(self._tap, self._source.last)

    def close(self) -> None:
        """It is not the version's any more."""
        self._is_closed = True
        self._unwatched()

    def reset(self) -> None:
        """The history of the source is lost."""
        self._is_loaded = False
        self._epoch += 1
        self._tap = None
        self.applied = 0

    def _unwatched(self) -> None:
        if self._tap is not None:
            self._fanout.stop(self._tap)
            self._tap = None

    # --- catching up --------------------------------------------------------------------------------------------------

    def _begin(self) -> None:
        if self._under_way is None:
            self._under_way = asyncio.get_running_loop().create_future()
            self._spawn(self._work(self._under_way), f"conversions to {self.name}")

    async def _work(self, done: asyncio.Future[ApiError | None]) -> None:
        error = None
        if not self._fanout.has_watchers(self.name):
            self._unwatched()
        try:
            while await self._step():
                pass
        except ApiError as found:
            error = found
            self._fanout.end_kind(self.name)
        finally:
            self._under_way = None
            done.set_result(error)

    async def _step(self) -> bool:
        """Whether there was something to do."""
        source, epoch = self._source, self._epoch
        if self._is_closed:
            return False
        if not self._is_loaded or self.applied < source.oldest:
            await self._load()
            return True
        changes = source.changes_after(self.applied, self._all)
        for change in changes:
            new = change.new
            if new is not None:
                new = Entry(new.key, new.revision, await self._row.converted(new.value))
            if self._is_closed or epoch != self._epoch:
                return True  # begin anew
            self._tell(change, new)
            self.applied = change.revision
        return bool(changes)

    def _tell(self, change: Change, new: Entry | None) -> None:
        if new is not None:
            told: Change | None = self.put(new)[0]
        else:
            assert change.old is not None
            told = self.delete(change.old.key, change.revision)
        if told is None:
            return
        self._fanout.dispatch(self, told)
        if told.old is not None:
            self._past_bytes += told.old.size
            if self._past_bytes > self._window_bytes:
                self.shorten_past(self.past_bytes() // 2)
                self._past_bytes = self.past_bytes()

    async def _load(self) -> None:
        """What has not changed since is not converted again."""
        source, epoch, made = self._source, self._epoch, list[Entry]()
        revision, found = source.last, [source.entries[key] for key in sorted(source.entries)]
        for entry in found:
            known = self.entries.get(entry.key)
            if known is None or known.revision != entry.revision:
                known = Entry(entry.key, entry.revision, await self._row.converted(entry.value))
            made.append(known)
        if self._is_closed or epoch != self._epoch:
            return
        self._fanout.end_collection(self.name, lambda watcher: errors.too_old(watcher.revision, revision))
        self.load(made, revision, lambda key: None)
        # The past may have been forgotten beyond the latest change.
        self.applied, self._is_loaded = max(revision, source.oldest), True
        self._past_bytes = 0


class _Tap(Stream):
    """Reads nothing, and says that there is something."""

    __slots__ = ("_heard",)

    def __init__(self, heard: Callable[[], None]) -> None:
        super().__init__("", _NOWHERE)
        self._heard = heard

    def add(self, watch_id: int, kind: int, revision: int, wire: bytes) -> None:
        self._heard()


_NOWHERE: Any = buffers
