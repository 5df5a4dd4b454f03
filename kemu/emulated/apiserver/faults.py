"""The faults that an API server carries out itself: it answers from the past, ends watches, or is slow.

What they are is in :mod:`kemu.runtime.faults.kinds`; chaos begins and ends them through ``Env.on_fault``.
"""

from __future__ import annotations

import fnmatch
from collections.abc import Sequence

from kemu import errors
from kemu.emulated.apiserver.service import Service
from kemu.emulated.apiserver.storage import Storage
from kemu.emulated.apiserver.watch.cache import WatchCache
from kemu.emulated.apiserver.watch.fanout import Fanout, Stream, Watcher
from kemu.emulated.apiserver.watch.feed import Feed
from kemu.runtime import distributions
from kemu.runtime.env import SECOND_NS, Env
from kemu.runtime.faults.handlers import Assignment, End

COMPACTION_KEY = b"/registry/compact_rev_key"
"""What kube-apiserver writes when it compacts (``etcd3/compact.go``): so the revision that is compacted is a new one,
and even a client that has seen everything is behind it."""


class Faults:
    """Faults of one API server."""

    def __init__(
        self, env: Env, service: Service, storage: Storage, cache: WatchCache, feed: Feed, fanout: Fanout
    ) -> None:
        self._env = env
        self._service = service
        self._storage = storage
        self._cache = cache
        self._feed = feed
        self._fanout = fanout
        self._own_lag_ns = feed.lag_ns
        self._stale: dict[str, tuple[int, Assignment]] = {}
        """Lag in ns and fault, of the stale reads in force."""
        feed.on_held = self._hit_stale
        env.on_fault("staleReads", self._stale_reads)
        env.on_fault("cutWatches", self._cut_watches)
        env.on_fault("delay", self._delay)
        env.on_fault("slowApi", self._slow_api)

    # --- staleReads ---------------------------------------------------------------------------------------------------

    def _stale_reads(self, fault: Assignment) -> End:
        self._stale[fault.id] = round(fault.parameters["by"] * SECOND_NS), fault
        self._set_lag()

        def end() -> None:
            del self._stale[fault.id]
            self._set_lag()

        return end

    def _set_lag(self) -> None:
        """The longest one counts. What has been held back for longer than that is known at once."""
        self._feed.lag_ns = max(self._own_lag_ns, *(lag_ns for lag_ns, _ in self._stale.values()), 0)

    def _hit_stale(self) -> None:
        for _, fault in self._stale.values():
            fault.hit("")

    # --- cutWatches ---------------------------------------------------------------------------------------------------

    def _cut_watches(self, fault: Assignment) -> None:
        clients = fault.parameters["of"]
        streams = [stream for stream in self._service.streams if stream.by in clients]
        if not fault.parameters["compacted"]:
            self._cut(fault, streams)
        elif streams:
            self._env.spawn(self._cut_compacted(fault, streams), fault.id)

    async def _cut_compacted(self, fault: Assignment, streams: Sequence[Stream]) -> None:
        storage = self._storage
        try:
            entry = await storage.read(COMPACTION_KEY)
            # That another API server has just written it is as good.
            await storage.swap(COMPACTION_KEY, entry.revision if entry is not None else 0, b"")
            revision = await storage.revision()
            await storage.compact(revision)
            await self._feed.until(revision)
        except (errors.ServiceUnavailable, errors.ServerTimeout):
            pass  # the watches end all the same, but may resume
        self._cache.forget_past()
        self._cut(fault, streams)

    def _cut(self, fault: Assignment, streams: Sequence[Stream]) -> None:
        resources = fault.parameters.get("resource")
        for stream in streams:
            if stream not in self._service.streams:
                continue
            if resources is None:
                fault.hit(stream.by)
                self._service.cut(stream)
            elif found := [one for one in stream.watchers.values() if _is_of(one, resources)]:
                fault.hit(stream.by)
                for watcher in found:
                    self._fanout.end_silently(watcher)

    # --- delay, of kinds ----------------------------------------------------------------------------------------------

    def _delay(self, fault: Assignment) -> End:
        time = distributions.parse(fault.parameters["by"])
        clients, resources = fault.parameters["to"], fault.parameters["resource"]

        def delay_ns(watcher: Watcher) -> int:
            if watcher.stream.by not in clients or not _is_of(watcher, resources):
                return 0
            fault.hit(watcher.stream.by)
            return round(max(0.0, time.draw(fault.random)) * SECOND_NS)

        return self._fanout.delay(delay_ns)

    # --- slowApi ------------------------------------------------------------------------------------------------------

    def _slow_api(self, fault: Assignment) -> End:
        time = distributions.parse(fault.parameters["by"])
        delays = self._service.delays

        def delay(by: str) -> float:
            fault.hit(by)
            return time.draw(fault.random)

        delays.append(delay)
        return lambda: delays.remove(delay)


def _is_of(watcher: Watcher, patterns: Sequence[str]) -> bool:
    """Whether it watches one of these kinds."""
    plural = watcher.selection.resource.plural
    return any(fnmatch.fnmatchcase(plural, pattern) for pattern in patterns)
