"""Event objects are removed some time after they were written, as by kube-apiserver's ``--event-ttl``.

kube-apiserver gives each event an etcd lease. The store here has no leases, so the API server checks the events in its
watch cache twelve times in a lifetime, and an event may live a twelfth longer. Several servers do no harm: an event
that was written again in the meantime is left alone.
"""

from __future__ import annotations

from kemu import errors
from kemu.apiserver.storage import Entry, Storage
from kemu.apiserver.watch.cache import WatchCache
from kemu.k8s import core_v1_pb2
from kemu.objects import meta
from kemu.runtime.env import SECOND_NS, Clock

LOOKS = 12
"""In the lifetime of an event."""


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


def _written_ns(entry: Entry) -> int:
    """When the event was written last, as far as it says so: a series is written when it goes on."""
    event = core_v1_pb2.Event.FromString(entry.value)
    times = (event.metadata.creationTimestamp, event.series.lastObservedTime, event.lastTimestamp)
    return max(meta.unix_ns(time) for time in times)
