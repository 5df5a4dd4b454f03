"""Responses to watchers, put together from pieces that are serialised once.

An event is serialised once, and once more with its previous value if that is asked for. Protobuf messages may be
concatenated from serialised parts, so a response is header, watch id and events, joined. Neighbours: ``watch_streams``
queues responses, ``watches`` decides who gets them.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from kemu.emulated.store.mvcc import Change
from kemu.emulated.store.operations import fill
from kemu.emulated.store.watch_streams import NO_DELETE, NO_PUT, PREV_KV, Watcher
from kemu.messages.etcd import kv_pb2, rpc_pb2

FRAGMENT_BYTES = 2 << 20
"""Size from which on the response to a watcher that wants fragments is split within a revision."""


def event_pieces(batch: Sequence[Change], indexes: Iterable[int], options: int, cache: dict[int, bytes]) -> list[bytes]:
    """The events that the options let through, serialised as parts of a ``WatchResponse``."""
    pieces: list[bytes] = []
    with_previous = options & PREV_KV
    for index in indexes:
        change = batch[index]
        if options & (NO_DELETE if change[0].value is None else NO_PUT):
            continue
        place = 2 * index + with_previous
        piece = cache.get(place)
        if piece is None:
            piece = cache[place] = event_bytes(change, bool(with_previous))
        pieces.append(piece)
    return pieces


def event_bytes(change: Change, with_previous: bool) -> bytes:
    entry, previous = change
    response = rpc_pb2.WatchResponse()
    event = response.events.add()
    pair = event.kv
    # operations.fill, inlined.
    pair.key = entry.key
    pair.mod_revision = entry.mod_revision
    if entry.value is not None:
        pair.create_revision = entry.create_revision
        pair.version = entry.version
        pair.value = entry.value
    else:
        event.type = kv_pb2.Event.DELETE
    if with_previous and previous is not None:
        fill(event.prev_kv, previous)
    data: bytes = response.SerializeToString()
    return data


_FRAGMENT: bytes = rpc_pb2.WatchResponse(fragment=True).SerializeToString()


def of_events(header: bytes, watcher: Watcher, events: list[bytes]) -> list[bytes]:
    """One response with those events, or several fragments of one; none without events."""
    if not events:
        return []
    start = header + watcher.id_bytes
    if not watcher.fragment:
        return [start + b"".join(events)]
    responses: list[bytes] = []
    part: list[bytes] = []
    size = 0
    for event in events:
        if part and size + len(event) > FRAGMENT_BYTES:
            responses.append(start + _FRAGMENT + b"".join(part))
            part = []
            size = 0
        part.append(event)
        size += len(event)
    responses.append(start + b"".join(part))
    return responses


def size_of(change: Change) -> int:
    """Bytes of its event in a response, about."""
    entry, previous = change
    size = 100 + len(entry.key) + len(entry.value or b"")
    return size if previous is None else size + len(previous.value or b"")
