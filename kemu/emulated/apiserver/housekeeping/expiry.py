"""Event objects are removed some time after they were written, as by kube-apiserver's ``--event-ttl``, or, where a
cluster shall keep only so many, when there are more.

kube-apiserver gives each event an etcd lease. The store here has no leases, so the API server checks the events in its
watch cache twelve times in a lifetime, and an event may live a twelfth longer. Several servers do no harm: an event
that was written again in the meantime is left alone.
"""

from __future__ import annotations

import itertools

from kemu import errors
from kemu.emulated.apiserver.storage import MAX_OPERATIONS, Entry, Storage
from kemu.emulated.apiserver.watch.cache import WatchCache
from kemu.emulated.objects import meta
from kemu.messages.k8s import core_v1_pb2
from kemu.runtime.env import SECOND_NS, Clock

LOOKS = 12
"""In the lifetime of an event."""
COUNT_EVERY_S = 5.0
"""Where only so many may be kept."""


class Expiry:
    def __init__(self, clock: Clock, storage: Storage, cache: WatchCache, ttl_s: float) -> None:
        self._clock = clock
        self._storage = storage
        self._events = cache.collections["events"].entries
        self._ttl_ns = round(ttl_s * SECOND_NS)

    async def run(self) -> None:
        clock = self._clock
        while True:
            await clock.sleep(self._ttl_ns / LOOKS / SECOND_NS, background=True)
            written_before_ns = clock.epoch_unix_s * SECOND_NS + clock.now_ns() - self._ttl_ns
            for entry in list(self._events.values()):
                if _written_ns(entry) <= written_before_ns:
                    try:
                        await self._storage.swap(entry.key, entry.revision, None)
                    except errors.ServiceUnavailable:
                        break


class Bound:
    """Keeps the newest events only. Those that go are gone in few transactions, as many may come each second."""

    def __init__(self, clock: Clock, storage: Storage, cache: WatchCache, most: int) -> None:
        self._clock = clock
        self._storage = storage
        self._events = cache.collections["events"].entries
        self._most = most

    async def run(self) -> None:
        while True:
            await self._clock.sleep(COUNT_EVERY_S, background=True)
            too_many = len(self._events) - self._most
            if too_many <= 0:
                continue
            # In the order in which they were created.
            oldest = list(itertools.islice(self._events.values(), too_many))
            try:
                for start in range(0, too_many, MAX_OPERATIONS):
                    await self._storage.remove_all([entry.key for entry in oldest[start : start + MAX_OPERATIONS]])
            except errors.ApiError:
                continue


def _written_ns(entry: Entry) -> int:
    """When the event was written last, as far as it says so: a series is written when it goes on."""
    event = core_v1_pb2.Event.FromString(entry.value)
    times = (event.metadata.creationTimestamp, event.series.lastObservedTime, event.lastTimestamp)
    return max(meta.unix_ns(time) for time in times)
