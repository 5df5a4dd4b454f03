"""Where in a run log the events of each pod stand, so that the trace of one pod need not read all of it.

    with Reader(folder / FILE_NAME) as reader:
        index = of(folder, reader)
        spans = index.spans(reader, index.uids("w-7"))

Role: the runner builds it while it judges a run (``add``) and leaves it beside the log; of a log without a valid one,
:func:`of` builds it. It says nothing that the log does not say, and is no part of the digest. The spans of a pod follow
from its own events and a few others: faults, deletions of its name, the pod that it replaces, and where a kubelet
rejected a pod that did not fit, the pods on that node.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import struct
import sys
import zlib
from array import array
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import msgpack

from kemu.lab.telemetry import runs
from kemu.lab.telemetry.builder import NOT_UNDERSTOOD, SpanBuilder, not_understood
from kemu.lab.telemetry.spans import Span
from kemu.runtime.runlog import events as log_events
from kemu.runtime.runlog.folders import INDEX_FILE
from kemu.runtime.runlog.frames import FILE_NAME, Reader

MAGIC = b"kemu-run-index/2\n"
_CHECKSUM = struct.Struct("<I")
_POD_PREFIX = "/registry/pods/"
_KINDS = SpanBuilder().kinds


class Index:
    """Index of one log. Offsets are those of frames."""

    def __init__(self) -> None:
        self.end_ns = 0
        """The latest time of the log."""
        self.keys: dict[str, str] = {}
        """``namespace/name`` by UID, in the order in which the log first speaks of them."""
        self.schedulers: dict[str, None] = {}
        """Actors ``scheduler/<name>/<replica>`` that have tried a pod."""
        self._of_uid: dict[str, array[int]] = {}
        self._of_key: dict[str, array[int]] = {}
        """Events that name no UID: creations and deletions in the store, and some refused requests."""
        self._of_all: array[int] = array("Q")
        """Events that bear on every trace: faults, and of the store the first and its recoveries."""
        self._on_node: dict[str, dict[str, None]] = {}
        """UIDs of the pods that each kubelet has seen."""
        self._crowded: dict[str, None] = {}
        """Nodes whose kubelets rejected a pod that did not fit."""
        self._sees_store = False
        self._made: dict[str, tuple[str, int]] = {}
        """Where the user made the latest pod of each name, and its UID."""

    # --- building -----------------------------------------------------------------------------------------------------

    def add(self, offset: int, time_ns: int, actor: str, event: log_events.Event) -> None:
        """The next event of the log, and where its frame begins."""
        if time_ns > self.end_ns:
            self.end_ns = time_ns
        if event.KIND not in _KINDS:
            return
        if isinstance(event, log_events.Transaction):
            self._add_transaction(offset, event)
        elif isinstance(
            event, (log_events.FaultBegun, log_events.FaultHit, log_events.FaultEnded, log_events.StoreRecovered)
        ):
            self._of_all.append(offset)
        elif event.get("resource", "pods") == "pods":
            key = event.get("pod") or f"{event.get('namespace')}/{event.get('name')}"
            uid = event.get("uid")
            if uid:
                self.keys.setdefault(uid, key)
                _append(self._of_uid, uid, offset)
                self._add_links(offset, actor, uid, key, event)
            else:
                _append(self._of_key, key, offset)

    def _add_transaction(self, offset: int, event: log_events.Transaction) -> None:
        if not self._sees_store:
            self._sees_store = True
            self._of_all.append(offset)
        for op, key, _, _, version in event.changes:
            if (op == 1 or version == 1) and key.startswith(_POD_PREFIX):
                _append(self._of_key, key[len(_POD_PREFIX) :], offset)

    def _add_links(self, offset: int, actor: str, uid: str, key: str, event: log_events.Event) -> None:
        """What the event says of further pods."""
        if isinstance(event, log_events.PodAttempted):
            self.schedulers[actor] = None
        elif isinstance(event, log_events.AdmissionDecided):
            self._on_node.setdefault(event.node, {})[uid] = None
            if not event.ok and event.reason.startswith("OutOf"):
                self._crowded[event.node] = None
        elif isinstance(event, log_events.PodCreated) and event.replaces_uid:
            _append(self._of_uid, event.replaces_uid, offset)
        elif isinstance(event, log_events.UserPodCreated):
            replaced = self._made.pop(event.replaces, None)
            if replaced is not None:
                _append(self._of_uid, replaced[0], offset)
                _append(self._of_uid, uid, replaced[1])
            self._made[key] = uid, offset

    # --- reading ------------------------------------------------------------------------------------------------------

    def uids(self, key: str) -> list[str]:
        """UIDs of the pods that had the name ``namespace/name``, in the order in which the log first speaks of them."""
        return [uid for uid, known in self.keys.items() if known == key]

    def spans(self, reader: Reader, uids: Sequence[str]) -> list[Span]:
        """Those of the pods' traces, as a :class:`SpanBuilder` makes them that sees the whole log."""
        wanted = dict.fromkeys(uids)
        builder = SpanBuilder(runs.of_header(reader.header))
        events = (reader.at(offset) for offset in self._offsets(reader, list(wanted)))
        found = builder.of_events(reader, events, self.end_ns)
        return [span for finished in found for span in finished if span.uid in wanted]

    def _offsets(self, reader: Reader, uids: Sequence[str]) -> list[int]:
        """Offsets of all events from which the spans of these pods follow."""
        found = dict.fromkeys(self._of_all)
        for uid in self._with_neighbours(uids):
            found.update(dict.fromkeys(self._of_uid.get(uid, ())))
            found.update(dict.fromkeys(self._of_key.get(self.keys.get(uid, ""), ())))
        return sorted(found)

    def _with_neighbours(self, uids: Sequence[str]) -> dict[str, None]:
        """Who took the room of a pod that was turned away is seen from who was on its node; of pods that share a name,
        each bears on what is said of it."""
        wanted = dict.fromkeys(uids)
        for node in self._crowded:
            if any(uid in self._on_node[node] for uid in uids):
                wanted.update(self._on_node[node])
        keys = {self.keys.get(uid): None for uid in wanted}
        wanted.update(dict.fromkeys(uid for uid, key in self.keys.items() if key in keys))
        return wanted

    # --- as bytes -----------------------------------------------------------------------------------------------------

    def packed(self, log: Mapping[str, Any]) -> bytes:
        """``log``: what it is valid for."""
        content = {
            "log": log,
            "end_ns": self.end_ns,
            "keys": self.keys,
            "schedulers": list(self.schedulers),
            "of_uid": {uid: _packed(offsets) for uid, offsets in self._of_uid.items()},
            "of_key": {key: _packed(offsets) for key, offsets in self._of_key.items()},
            "of_all": _packed(self._of_all),
            "on_node": {node: list(self._on_node[node]) for node in self._crowded},
        }
        payload: bytes = msgpack.packb(content, use_bin_type=True)
        return MAGIC + _CHECKSUM.pack(zlib.crc32(payload)) + payload

    @classmethod
    def unpacked(cls, data: bytes, log: Mapping[str, Any]) -> Index | None:
        """None: it is damaged, of another version, or of another log."""
        begin = len(MAGIC) + _CHECKSUM.size
        payload = data[begin:]
        if not data.startswith(MAGIC) or data[len(MAGIC) : begin] != _CHECKSUM.pack(zlib.crc32(payload)):
            return None
        content = msgpack.unpackb(payload, raw=False, strict_map_key=False)
        if content["log"] != log:
            return None
        index = cls()
        index.end_ns, index.keys = content["end_ns"], content["keys"]
        index.schedulers = dict.fromkeys(content["schedulers"])
        index._of_uid = {uid: _unpacked(offsets) for uid, offsets in content["of_uid"].items()}
        index._of_key = {key: _unpacked(offsets) for key, offsets in content["of_key"].items()}
        index._of_all = _unpacked(content["of_all"])
        index._on_node = {node: dict.fromkeys(uids) for node, uids in content["on_node"].items()}
        index._crowded = dict.fromkeys(index._on_node)
        return index


def of(folder: Path, reader: Reader) -> Index:
    """The index of the log in a run folder: as it was left there, or made anew where that is missing, damaged or of
    another log.
    Raises RunLogError where the log cannot be read.
    """
    log = _identity(folder / FILE_NAME)
    with contextlib.suppress(OSError):
        index = Index.unpacked((folder / INDEX_FILE).read_bytes(), log)
        if index is not None:
            return index
    index = Index()
    for time_ns, actor, kind, data in reader:
        try:
            index.add(reader.offset, time_ns, actor, data)
        except NOT_UNDERSTOOD as error:
            raise not_understood(reader, kind, error) from error
    write(folder, index)
    return index


def write(folder: Path, index: Index) -> None:
    """Leave it beside the log; not where the folder cannot be written to: then it is made each time."""
    part = folder / f"{INDEX_FILE}.part"
    with contextlib.suppress(OSError):
        try:
            part.write_bytes(index.packed(_identity(folder / FILE_NAME)))
            os.replace(part, folder / INDEX_FILE)
        finally:
            part.unlink(missing_ok=True)


_ENDS_BYTES = 1 << 16


def _identity(log: Path) -> dict[str, Any]:
    """What tells it from other logs, without reading all of it: frames that are read have checksums of their own."""
    size = log.stat().st_size
    with log.open("rb") as opened:
        digest = hashlib.sha256(opened.read(_ENDS_BYTES))
        opened.seek(max(0, size - _ENDS_BYTES))
        digest.update(opened.read(_ENDS_BYTES))
    return {"bytes": size, "ends": digest.hexdigest()}


def _append(offsets: dict[str, array[int]], name: str, offset: int) -> None:
    found = offsets.get(name)
    if found is None:
        found = offsets[name] = array("Q")
    found.append(offset)


def _packed(offsets: array[int]) -> bytes:
    if sys.byteorder == "big":
        offsets = array("Q", offsets)
        offsets.byteswap()
    return offsets.tobytes()


def _unpacked(data: bytes) -> array[int]:
    offsets = array("Q")
    offsets.frombytes(data)
    if sys.byteorder == "big":
        offsets.byteswap()
    return offsets
