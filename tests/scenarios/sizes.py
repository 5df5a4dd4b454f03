"""How much of something is kept, or goes into one message: made so small that a few nodes bring what thousands do.

What is forgotten is computed or asked for anew, so that a run stays the same, event for event. Pages and windows of
streams show: another number of messages takes another time.
"""

from __future__ import annotations

import importlib
import pkgutil
import sys
from collections.abc import Mapping

import pytest

import kemu

KEPT: Mapping[str, int] = {
    "kemu.emulated.apiserver.watch.cache:_FEW": 0,
    "kemu.emulated.objects.amounts.quantities:_CACHE_SIZE": 2,
    "kemu.emulated.objects.wire.shared_objects:MOST_BYTES": 2000,
    "kemu.emulated.scheduler.cache.cluster:_FIRST_CAPACITY": 1,
    "kemu.emulated.scheduler.cache.cluster:_LABEL_LIMIT": 2,
    "kemu.emulated.scheduler.cache.cluster:_SPARE": 1,
    "kemu.emulated.scheduler.cache.columns:LOG_LIMIT": 4,
    "kemu.emulated.scheduler.cache.counts:_COLUMN_LIMIT": 2,
    "kemu.emulated.scheduler.cache.counts:_FEW_NODES": 0,
    "kemu.emulated.scheduler.cache.nodes:_MOST_KINDS": 1,
    "kemu.emulated.scheduler.cache.pods:_SPARE_NAMES": 1,
    "kemu.emulated.scheduler.cache.updates:MOST_KEPT": 2,
    "kemu.emulated.scheduler.cycle.evaluations:_FEW": 0,
    "kemu.emulated.scheduler.cycle.evaluations:_KEPT_ROWS": 2,
    "kemu.emulated.scheduler.cycle.signatures:_KEPT": 2,
    "kemu.emulated.scheduler.cycle.verdicts:_FEW_VERDICTS": 1,
    "kemu.emulated.scheduler.preemption.candidates:_AT_ONCE": 2,
    "kemu.emulated.scheduler.preemption.candidates:_FEW_VERDICTS": 1,
    "kemu.emulated.scheduler.preemption.candidates:_KEPT_DRY_RUNS": 2,
    "kemu.emulated.scheduler.preemption.candidates:_SPARE": 1,
    "kemu.emulated.scheduler.queue.queues:_VOID_ENTRIES": 1,
    "kemu.emulated.store.keys:_CHUNK": 2,
    "kemu.emulated.store.mvcc:PACKED": 2,
    "kemu.emulated.store.mvcc:RECENT": 4,
    "kemu.lab.checks.history.stores:LATEST_CHANGES": 8,
    "kemu.lab.checks.history.stores:PACKED_CHANGES": 2,
    "kemu.lab.checks.history.stores:_LATEST_TIMES": 20,
}
SHOWN: Mapping[str, int] = {
    "kemu.emulated.apiserver.registry.reads:SCAN_PAGE": 2,
    "kemu.emulated.apiserver.watch.fanout:EVENTS_PER_MESSAGE": 2,
    "kemu.emulated.apiserver.watch.fanout:UNREAD_EVENTS": 50,
    "kemu.emulated.apiserver.watch.feed:PAGE": 3,
    "kemu.emulated.client.informers:PAGE": 3,
    "kemu.emulated.store.journal:SEGMENT_BYTES": 4000,
    "kemu.emulated.store.journal:_ENTRIES_IN_FRAME": 2,
    "kemu.emulated.store.server:STATE_REVISIONS": 20,
    "kemu.emulated.store.watch_streams:MAX_QUEUE_LENGTH": 3,
    "kemu.emulated.store.watch_streams:MAX_RESPONSE_BYTES": 2000,
    "kemu.emulated.store.watches:MAX_QUEUE_BYTES": 3000,
    "kemu.runtime.rpc.ends:WINDOW_BYTES": 4000,
    "kemu.runtime.rpc.ends:WINDOW_UPDATE_BYTES": 2000,
}


def shrink(patch: pytest.MonkeyPatch, sizes: Mapping[str, int]) -> None:
    """Also where a module has imported a size by its name."""
    for module in pkgutil.walk_packages(kemu.__path__, "kemu."):
        if module.name.startswith(("kemu.emulated.", "kemu.runtime.rpc.", "kemu.lab.checks.")):
            importlib.import_module(module.name)
    for place, small in sizes.items():
        owner, _, name = place.partition(":")
        before = getattr(sys.modules[owner], name)
        for found in [each for each in sys.modules.values() if each.__name__.startswith("kemu.")]:
            if vars(found).get(name) is before and (found.__name__ == owner or not name.startswith("_")):
                patch.setattr(found, name, small)
