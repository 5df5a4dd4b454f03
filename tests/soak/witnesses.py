"""What a run says of itself, compared with what its store holds: no check of kemu takes part in it."""

from __future__ import annotations

import base64
import json
import urllib.request
from collections.abc import Iterable, Mapping
from pathlib import Path

from kemu.emulated.store.journal import Journal
from kemu.runtime.host import files
from kemu.runtime.runlog.frames import FILE_NAME, Reader

Held = dict[str, int]
"""By key, the revision that wrote what is there now."""

_DIRECTLY = urllib.request.build_opener(urllib.request.ProxyHandler({}))


def on_disk(folder: Path) -> Held:
    """What the journal of the store holds."""
    found: Held = {}
    recovery = Journal(files.FileDisk(files.directory_of(folder / "cells", "store"))).recover()
    if recovery.snapshot is not None:
        for entry in recovery.snapshot.entries:
            if entry.value is not None:
                found[entry.key.decode()] = entry.mod_revision
    for revision, changes in recovery.records:
        pairs = iter(changes or ())
        for key, value in zip(pairs, pairs, strict=True):
            assert key is not None
            if value is None:
                found.pop(key.decode(), None)
            else:
                found[key.decode()] = revision
    return found


def in_etcd(address: str) -> Held:
    everything = json.dumps({"key": base64.b64encode(b"/").decode(), "range_end": base64.b64encode(b"0").decode()})
    request = urllib.request.Request(f"http://{address}/v3/kv/range", everything.encode())
    with _DIRECTLY.open(request, timeout=30) as answer:
        kvs = json.load(answer).get("kvs", [])
    return {base64.b64decode(kv["key"]).decode(): int(kv["mod_revision"]) for kv in kvs}


def lost_writes(folder: Path, held: Held) -> tuple[int, list[str]]:
    """How many writes clients were told of, and those that are neither there nor were overwritten or deleted later."""
    acknowledged: list[tuple[int, str, str]] = []
    deleted: dict[str, int] = {}
    with Reader(folder / FILE_NAME) as reader:
        for _, actor, kind, data in reader:
            if kind == "client.acked":
                acknowledged += [(revision, key, actor) for _, revision, key, _, _ in data["acks"]]
            elif kind == "store.txn":
                for op, key, *_ in data["changes"]:
                    if op == 1:
                        deleted[key] = data["rev"]
    return len(acknowledged), lost_of(acknowledged, held, deleted)


def lost_of(acknowledged: Iterable[tuple[int, str, str]], held: Held, deleted: Mapping[str, int]) -> list[str]:
    """``acknowledged``: revision, key, and who was told. ``deleted``: by key, the revision of its last deletion."""
    return [
        f"revision {revision} of {key}, of which {actor} was told"
        for revision, key, actor in acknowledged
        if held.get(key, 0) < revision and deleted.get(key, 0) < revision
    ]
