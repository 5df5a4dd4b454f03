"""The settings of the store. A scenario writes them under ``store``."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from kemu.emulated.settings.declared import Complaint, setting
from kemu.emulated.settings.shapes import Choice, Text, Whole


@dataclass(frozen=True, kw_only=True)
class Store:
    """kemu's own store, or the real etcd in its place."""

    fsync: str | None = setting(Choice(("batch", "always", "none")), "When writes are safe on disk.")
    segment_bytes: int | None = setting(Whole(1024), "Size at which the journal begins a new file; 4 MiB by default.")
    etcd: str | None = setting(Text(), "A real etcd instead, host:port.")

    def complaints(self) -> Iterator[Complaint]:
        if self.etcd:
            for key, value in (("fsync", self.fsync), ("segmentBytes", self.segment_bytes)):
                if value is not None:
                    yield Complaint((key,), "is a setting of kemu's own store, not of an etcd", key=True)

    @property
    def etcd_address(self) -> str:
        """``host:port`` of a real etcd, or empty for kemu's own store."""
        return (self.etcd or "").removeprefix("etcd://")

    def configuration(self) -> Mapping[str, Any]:
        """What the actor ``store`` is told of it."""
        found = {"fsync": self.fsync, "segment_bytes": self.segment_bytes}
        return {key: value for key, value in found.items() if value is not None}
