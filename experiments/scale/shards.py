"""A scheduler plugin that splits pods between schedulers by a hash: each lets only its own part into its queue."""

from __future__ import annotations

import zlib
from collections.abc import Iterable, Mapping
from typing import Any

from kemu.scheduler.framework import ArgumentError, Event, Handle, Hint, PodInfo, PreEnqueuePlugin, Status, unresolvable


class Shard(PreEnqueuePlugin):
    """Lets pods in whose UID has the hash ``index`` (0 …) modulo ``of``."""

    def __init__(self, args: Mapping[str, Any], handle: Handle) -> None:
        super().__init__(args, handle)
        self.of, self.index = args.get("of", 1), args.get("index", 0)
        if not isinstance(self.of, int) or self.of < 1:
            raise ArgumentError("of", f"must be a whole number of at least 1: {self.of!r}")
        if not isinstance(self.index, int) or not 0 <= self.index < self.of:
            raise ArgumentError("index", f"must be a whole number from 0 to {self.of - 1}: {self.index!r}")

    def pre_enqueue(self, pod: PodInfo) -> Status | None:
        if zlib.crc32(pod.uid.encode()) % self.of == self.index:
            return None
        return unresolvable("pod belongs to another scheduler")

    def events(self) -> Iterable[tuple[Event, Hint | None]]:
        """Nothing makes it another's pod."""
        return ()
