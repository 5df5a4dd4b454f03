"""What updates do to the entries of objects, kept by what decides it.

Nearly all writes are like others: pods of one template go through the same states, and their events are of a few kinds.
What :mod:`.managers` makes of a write is kept by the outline of the object before and after (:mod:`.outlines`), who
writes, and the entries that were there, but for their times; so only the first of its kind goes the long way. The
address of a pod, which names an element of a list, stands for all addresses.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from functools import lru_cache
from typing import Any, NamedTuple

from kemu.emulated.objects import times
from kemu.emulated.objects.conversion import convert, go_structs
from kemu.emulated.objects.managed_fields import entries, fieldsets, outlines
from kemu.emulated.objects.managed_fields.entries import Entry
from kemu.emulated.objects.managed_fields.managers import MAX_UPDATERS, FieldManager, entries_of
from kemu.messages.k8s import core_v1_pb2, meta_v1_pb2
from kemu.messages.k8s.objects import KubernetesObject

MOST = 2048
"""Most results that are kept."""
_NOW_S, _LIVE_S, _SENT_S = 1, 1_000, 2_000
"""Unix times by which a result tells where its times come from: now, an entry of the object, an entry that was sent."""
_NEVER = 0


class _Known(NamedTuple):
    """One entry of a result."""

    entry: meta_v1_pb2.ManagedFieldsEntry
    source: int
    """One of the times above, with the index of the entry added."""
    rank: tuple[bytes, bytes, bytes]
    raw: bytes
    """Its fields, where they are about the address."""


_known: dict[tuple[Any, ...], Sequence[_Known]] = {}

_POD = "core.v1.Pod"
_ANY = "@"
"""In the place of the address of a pod."""
_IPS = b"f:podIPs"


class _Own(NamedTuple):
    """The only address of a pod."""

    ip: str
    comes: bool
    """Whether it had none before."""


def update(
    manager: FieldManager,
    old: KubernetesObject | None,
    new: KubernetesObject,
    writer: str,
    now_s: int,
    empties: Sequence[go_structs.Path] = (),
) -> None:
    """As :meth:`.managers.FieldManager.update`: set the entries of ``new``."""
    live = old.metadata.managedFields if old is not None else ()
    sent = new.metadata.managedFields
    own = _own(old, new) if manager.type == _POD else None
    key = _key(manager, old, new, writer, own) if not empties else None
    if key is None and own is not None:
        own = None
        key = _key(manager, old, new, writer, own) if not empties else None
    found = _known.get(key) if key is not None else None
    if found is None:
        if key is None:
            before = None if old is None else convert.to_manifest(old)
            put(new, manager.update(before, convert.to_manifest(new), writer, times.format_time(now_s), empties))
            return
        if len(_known) >= MOST:
            _known.clear()
        found = _known[key] = _find(manager, old, new, writer, own)
    timed = []
    for one in found:
        source = one.source
        if source == _NEVER:
            seconds = 0
        elif source == _NOW_S:
            seconds = now_s
        else:
            seconds = sent[source - _SENT_S].time.seconds if source >= _SENT_S else live[source - _LIVE_S].time.seconds
        timed.append((one.entry.operation, seconds, one.rank, one))
    if len(timed) > 1:
        timed.sort(key=_order)
    del sent[:]
    for _, seconds, _, one in timed:
        entry = sent.add()
        entry.CopyFrom(one.entry)
        if own is not None and one.raw:
            entry.fieldsV1.Raw = one.raw.replace(_step(_ANY), _step(own.ip))
        if one.source != _NEVER:
            entry.time.seconds = seconds


def put(obj: KubernetesObject, found: list[Entry]) -> None:
    """Make these the entries of an object."""
    metadata = obj.metadata
    del metadata.managedFields[:]
    for entry in found:
        made, _ = convert.partial_json(type(metadata.managedFields.add()), entry)
        metadata.managedFields[-1].CopyFrom(made)


def _order(timed: tuple[str, int, tuple[bytes, bytes, bytes], _Known]) -> tuple[str, int, tuple[bytes, bytes, bytes]]:
    return timed[:3]


def _own(old: KubernetesObject | None, new: KubernetesObject) -> _Own | None:
    """The address of a pod, where it may be any."""
    assert isinstance(new, core_v1_pb2.Pod)
    now = new.status.podIPs
    if len(now) != 1 or not now[0].ip:
        return None
    was = old.status.podIPs if isinstance(old, core_v1_pb2.Pod) else ()
    return _Own(now[0].ip, not was) if not was or was == now else None


@lru_cache(4096)
def _step(ip: str) -> bytes:
    """How the fields of an entry have the addresses of a pod that has this one."""
    step = json.dumps(fieldsets.key({"ip": ip}), ensure_ascii=False)
    return f'"f:podIPs":{{".":{{}},{step}:{{".":{{}},"f:ip":{{}}}}}}'.encode()


def _key(
    manager: FieldManager, old: KubernetesObject | None, new: KubernetesObject, writer: str, own: _Own | None
) -> tuple[Any, ...] | None:
    """What decides the result. None: the times do, too, or an outline does not say enough."""
    live = old.metadata.managedFields if old is not None else ()
    sent = new.metadata.managedFields
    if not isinstance(manager.type, str) or max(len(live), len(sent)) >= MAX_UPDATERS:
        return None
    if own is not None and own.comes:
        assert isinstance(new, core_v1_pb2.Pod)
        new.status.podIPs[0].ip = _ANY
    try:
        outline = outlines.of_one(new) if old is None else outlines.of_two(old, new)
    except outlines.Unlike:
        return None
    finally:
        if own is not None and own.comes:
            assert isinstance(new, core_v1_pb2.Pod)
            new.status.podIPs[0].ip = own.ip
    is_new = old is None or not old.metadata.uid
    was = [_entry(one, own) for one in live]
    comes = was if live and sent == live else [_entry(one, own) for one in sent]
    if None in was or None in comes:
        return None
    return manager.type, manager.subresource, writer, old is None, is_new, outline, *was, None, *comes


def _entry(one: meta_v1_pb2.ManagedFieldsEntry, own: _Own | None) -> tuple[Any, ...] | None:
    """All but its time. None: it is empty, which has a meaning of its own, or has the address in another way."""
    if not one.ByteSize():
        return None
    raw = one.fieldsV1.Raw
    if own is not None and _IPS in raw:
        raw = raw.replace(_step(own.ip), b"")
        if _IPS in raw:
            return None
        raw += _ANY.encode()
    time = one.time
    is_timed = bool(time.seconds or time.nanos)
    return one.manager, one.operation, one.apiVersion, one.fieldsType, raw, one.subresource, is_timed


def _find(
    manager: FieldManager, old: KubernetesObject | None, new: KubernetesObject, writer: str, own: _Own | None
) -> Sequence[_Known]:
    """The long way, with times that say where they come from, and with any address."""
    before = None if old is None else _stated(old, own, _LIVE_S)
    found: list[_Known] = []
    for entry in manager.update(before, _stated(new, own, _SENT_S), writer, times.format_time(_NOW_S)):
        made, _ = convert.partial_json(meta_v1_pb2.ManagedFieldsEntry, entry)
        source = entries.seconds(entry.get("time"))
        rank = made.manager.encode(), made.apiVersion.encode(), made.subresource.encode()
        raw = made.fieldsV1.Raw
        found.append(_Known(made, source, rank, raw if _step(_ANY) in raw else b""))
    return found


def _stated(obj: KubernetesObject, own: _Own | None, first_s: int) -> dict[str, Any]:
    """The manifest of an object, with any address, and with entries whose times are ``first_s`` and up."""
    if own is not None:
        changed: Any = type(obj)()
        changed.CopyFrom(obj)
        for one in changed.status.podIPs:
            one.ip = _ANY
        for entry in changed.metadata.managedFields:
            entry.fieldsV1.Raw = entry.fieldsV1.Raw.replace(_step(own.ip), _step(_ANY))
        obj = changed
    manifest = convert.to_manifest(obj)
    _mark(entries_of(manifest), first_s)
    return manifest


def _mark(stated: list[Entry], first_s: int) -> None:
    for index, entry in enumerate(stated):
        if entry.get("time"):
            entry["time"] = times.format_time(first_s + index)
