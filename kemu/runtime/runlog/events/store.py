"""The store's events: its transactions, and what becomes of its journal."""

from __future__ import annotations

from typing import Any

from kemu.runtime.runlog.events.declared import Event, field


class Transaction(Event, kind="store.txn", by="store"):
    """Objects were written"""

    rev: int
    changes: list[list[Any]]
    """Of each, `[op, key, value, create_rev, version]`; op 0 puts, 1 deletes."""
    bases: list[int | None] | None = None
    """For each change, the revision that the transaction demanded of that key, 0: that it was absent, null: nothing;
    not for requests that compare nothing."""


class StoreState(Event, kind="store.state", by="store"):
    """The keys that it holds ([checks](checks.md))"""

    rev: int
    key_count: int = field(key="keys")
    digest: int


class StoreRecovered(Event, kind="store.recovered", by="store", on_page=True):
    """The store came back from its journal"""

    rev: int
    replayed: int
    torn_bytes: int
    key_count: int = field(key="keys")
    digest: int


class StoreCorrupt(Event, kind="store.corrupt", by="store", on_page=True):
    """Its journal is damaged as no crash does it; it serves nothing"""

    file: str
    offset: int
    what: str


class StoreAlarm(Event, kind="store.alarm", by="store"):
    """Its disk is full, or has room again"""

    alarm: str
    """`NOSPACE`."""
    raised: bool


class StoreCompacted(Event, kind="store.compacted", by="store"):
    """Revisions before this one are dropped"""

    rev: int
