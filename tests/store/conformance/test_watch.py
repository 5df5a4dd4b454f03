"""Watches, as etcd's."""

from __future__ import annotations

import asyncio
from typing import Any

from kemu.messages.etcd import kv_pb2, rpc_pb2
from tests.store.conformance.etcd_client import Etcd, Watch

PUT, DELETE = kv_pb2.Event.PUT, kv_pb2.Event.DELETE
NOPUT, NODELETE = rpc_pb2.WatchCreateRequest.NOPUT, rpc_pb2.WatchCreateRequest.NODELETE


def brief(etcd: Etcd, events: list[Any]) -> list[tuple[int, str, bytes, int]]:
    return [
        (event.type, event.kv.key.removeprefix(etcd.prefix).decode(), event.kv.value, event.kv.mod_revision)
        for event in events
    ]


async def collect(etcd: Etcd, watch: Watch, count: int, watch_id: int = 0) -> list[tuple[int, str, bytes, int]]:
    events = await watch.events(count)
    assert list(events) == [watch_id]
    return brief(etcd, events[watch_id])


async def test_events_of_a_prefix(etcd: Etcd) -> None:
    start = await etcd.revision()
    watch = etcd.watch()
    created = await watch.create()
    assert (created.watch_id, created.created, created.canceled, created.header.revision) == (0, True, False, start)
    assert not created.events
    await etcd.put("a", b"1")
    await etcd.put("a", b"2")
    await etcd.delete("a")
    await etcd.kv.Put(rpc_pb2.PutRequest(key=etcd.prefix[:-1] + b"0", value=b"beyond"))
    await etcd.put("b", b"3")
    assert await collect(etcd, watch, 4) == [
        (PUT, "a", b"1", start + 1),
        (PUT, "a", b"2", start + 2),
        (DELETE, "a", b"", start + 3),
        (PUT, "b", b"3", start + 5),
    ]


async def test_whole_events(etcd: Etcd) -> None:
    start = await etcd.revision()
    watch = etcd.watch()
    await watch.create("a", prev_kv=True)
    await etcd.put("a", b"1")
    await etcd.put("a", b"2")
    await etcd.delete("a")
    first, second, third = (await watch.events(3))[0]
    assert (first.kv.create_revision, first.kv.version, first.HasField("prev_kv")) == (start + 1, 1, False)
    assert (second.kv.create_revision, second.kv.version) == (start + 1, 2)
    assert (second.prev_kv.value, second.prev_kv.mod_revision, second.prev_kv.version) == (b"1", start + 1, 1)
    # Of a deletion there is only the key and the revision.
    assert (third.kv.key, third.kv.create_revision, third.kv.version) == (etcd.key("a"), 0, 0)
    assert (third.prev_kv.value, third.prev_kv.create_revision) == (b"2", start + 1)


async def test_a_single_key_and_ranges(etcd: Etcd) -> None:
    watch = etcd.watch()
    await watch.create("b", watch_id=1)
    await watch.create("b", etcd.key("d"), watch_id=2)
    await watch.create("c", b"\0", watch_id=3)
    await watch.create("b", etcd.key("c"), watch_id=4)
    for name in ("a", "b", "ba", "c", "d"):
        await etcd.put(name)
    events = await watch.events(8)
    got = {watch_id: [event.kv.key.removeprefix(etcd.prefix) for event in found] for watch_id, found in events.items()}
    assert got == {1: [b"b"], 2: [b"b", b"ba", b"c"], 3: [b"c", b"d"], 4: [b"b", b"ba"]}


async def test_a_start_in_the_past(etcd: Etcd) -> None:
    start = await etcd.revision()
    await etcd.put("a", b"1")
    await etcd.delete("a")
    await etcd.put("b", b"2")
    watch = etcd.watch()
    created = await watch.create(start_revision=start + 2, prev_kv=True)
    assert created.created
    assert created.header.revision == start + 3
    await etcd.put("c", b"3")
    events = (await watch.events(3))[0]
    assert brief(etcd, events) == [
        (DELETE, "a", b"", start + 2),
        (PUT, "b", b"2", start + 3),
        (PUT, "c", b"3", start + 4),
    ]
    assert events[0].prev_kv.value == b"1"


async def test_a_start_in_the_future(etcd: Etcd) -> None:
    start = await etcd.revision()
    watch = etcd.watch()
    await watch.create(start_revision=start + 3)
    for value in (b"1", b"2", b"3", b"4"):
        await etcd.put("a", value)
    assert await collect(etcd, watch, 2) == [(PUT, "a", b"3", start + 3), (PUT, "a", b"4", start + 4)]


async def test_a_long_past_comes_whole_and_in_order(etcd: Etcd) -> None:
    start = await etcd.revision()
    puts = [etcd.put(f"k{i % 50}", b"x" * 2_000) for i in range(2_000)]
    for i in range(0, len(puts), 100):
        await asyncio.gather(*puts[i : i + 100])
    watch = etcd.watch()
    await watch.create(start_revision=start + 1)
    events = (await watch.events(2_000))[0]
    assert [event.kv.mod_revision for event in events] == list(range(start + 1, start + 2_001))


async def test_a_revision_is_never_split(etcd: Etcd) -> None:
    watch = etcd.watch()
    await watch.create()
    operations = [
        rpc_pb2.RequestOp(request_put=rpc_pb2.PutRequest(key=etcd.key(f"k{i:03}"), value=b"x" * 1_000))
        for i in range(100)
    ]
    revision = (await etcd.txn(success=operations)).header.revision
    response = await watch.read()
    assert [event.kv.key for event in response.events] == [etcd.key(f"k{i:03}") for i in range(100)]
    assert {event.kv.mod_revision for event in response.events} == {revision}
    await etcd.delete("", range_end=etcd.end)
    response = await watch.read()
    assert [event.type for event in response.events] == [DELETE] * 100


async def test_a_start_that_is_compacted(etcd: Etcd) -> None:
    for value in (b"1", b"2", b"3"):
        revision = (await etcd.put("a", value)).header.revision
    await etcd.compact(revision - 1)
    watch = etcd.watch()
    created = await watch.create(start_revision=revision - 2)
    assert (created.created, created.canceled) == (True, False)
    canceled = await watch.read()
    assert (canceled.watch_id, canceled.canceled, canceled.compact_revision) == (0, True, revision - 1)
    assert not canceled.events
    # What the compacted revision itself did is still there.
    await watch.create(start_revision=revision - 1, watch_id=5)
    assert await collect(etcd, watch, 2, 5) == [(PUT, "a", b"2", revision - 1), (PUT, "a", b"3", revision)]


async def test_compaction_does_not_touch_watchers_that_are_up_to_date(etcd: Etcd) -> None:
    watch = etcd.watch()
    await watch.create()
    revision = (await etcd.put("a")).header.revision
    await etcd.compact(revision)
    await etcd.put("b")
    await collect(etcd, watch, 2)


async def test_filters(etcd: Etcd) -> None:
    watch = etcd.watch()
    await watch.create(watch_id=1, filters=[NOPUT])
    await watch.create(watch_id=2, filters=[NODELETE])
    await watch.create(watch_id=3, filters=[NOPUT, NODELETE])
    await watch.create(watch_id=4, filters=[NOPUT], prev_kv=True)
    await etcd.put("a")
    await etcd.delete("a")
    events = await watch.events(3)
    assert {watch_id: [event.type for event in found] for watch_id, found in events.items()} == {
        1: [DELETE], 2: [PUT], 4: [DELETE],
    }  # fmt: skip
    assert events[4][0].HasField("prev_kv")
    assert not events[1][0].HasField("prev_kv")
    await watch.silence()


async def test_watch_ids(etcd: Etcd) -> None:
    watch = etcd.watch()
    assert (await watch.create()).watch_id == 0
    assert (await watch.create(watch_id=7)).watch_id == 7
    assert (await watch.create(watch_id=2)).watch_id == 2
    assert (await watch.create()).watch_id == 1
    assert (await watch.create()).watch_id == 3
    assert (await watch.create(watch_id=-4)).watch_id == -4
    twice = await watch.create(watch_id=7)
    assert (twice.watch_id, twice.created, twice.canceled) == (-1, True, True)
    assert twice.cancel_reason == "mvcc: duplicate watch ID provided on the WatchStream"
    await watch.cancel(3)
    assert (await watch.read()).canceled
    # An id is not given out twice, but may be asked for again.
    assert (await watch.create()).watch_id == 4
    assert (await watch.create(watch_id=3)).watch_id == 3


async def test_a_range_that_is_empty(etcd: Etcd) -> None:
    watch = etcd.watch()
    for end in ("a", "b"):
        response = await watch.create("b", etcd.key(end))
        assert (response.watch_id, response.created, response.canceled) == (-1, True, True)
        assert response.cancel_reason == "mvcc: watcher range is empty"


async def test_cancelling(etcd: Etcd) -> None:
    watch = etcd.watch()
    await watch.create(watch_id=1)
    await watch.create(watch_id=2)
    await watch.cancel(99)
    await watch.cancel(1)
    canceled = await watch.read()
    assert (canceled.watch_id, canceled.canceled, canceled.created, canceled.compact_revision) == (1, True, False, 0)
    await etcd.put("a")
    assert list(await watch.events(1)) == [2]
    await watch.silence()


async def test_progress(etcd: Etcd) -> None:
    watch = etcd.watch()
    await watch.create("a")
    await etcd.put("other")
    revision = await etcd.revision()
    await watch.ask_for_progress()
    response = await watch.read()
    assert (response.watch_id, response.header.revision, list(response.events)) == (-1, revision, [])
    assert not response.created
    assert not response.canceled


async def test_progress_comes_after_the_events(etcd: Etcd) -> None:
    watch = etcd.watch()
    await watch.create()
    revision = (await etcd.put("a")).header.revision
    # etcd 3.4 sends progress at once, so we wait for the event; that it comes first is ours (and etcd's since 3.5.8).
    if etcd.name == "etcd":
        await watch.events(1)
    await watch.ask_for_progress()
    if etcd.name == "embedded":
        await watch.events(1)
    assert (await watch.read()).header.revision == revision


async def test_a_client_that_says_no_more_still_hears(etcd: Etcd) -> None:
    watch = etcd.watch()
    await watch.create()
    await watch.call.done_writing()
    await etcd.put("a")
    await watch.events(1)


async def test_streams_do_not_disturb_each_other(etcd: Etcd) -> None:
    one, other = etcd.watch(), etcd.watch()
    await one.create()
    await other.create()
    await one.close()
    await etcd.put("a")
    await other.events(1)


async def test_an_empty_request_is_ignored(etcd: Etcd) -> None:
    watch = etcd.watch()
    await watch.call.write(rpc_pb2.WatchRequest())
    assert (await watch.create()).created


async def test_fragments(etcd: Etcd) -> None:
    watch = etcd.watch()
    await watch.create("b", watch_id=1, fragment=True)
    await watch.create(watch_id=2, fragment=True, prev_kv=True)
    for name in ("a", "b", "c", "d"):
        await etcd.put(name, name.encode() * 1_000_000)
    await watch.events(5)
    # Four values of a megabyte in one revision do not fit into one message of 4 MiB.
    await etcd.delete("", range_end=etcd.end)
    whole = {1: 0, 2: 0}
    keys: dict[int, list[bytes]] = {1: [], 2: []}
    parts = 0
    while whole != {1: 1, 2: 1}:
        response = await watch.read()
        parts += 1
        keys[response.watch_id] += [event.kv.key for event in response.events]
        if not response.fragment:
            whole[response.watch_id] += 1
    assert parts > 2
    assert keys == {1: [etcd.key("b")], 2: [etcd.key(name) for name in ("a", "b", "c", "d")]}


async def test_many_watchers_of_one_stream(etcd: Etcd) -> None:
    watch = etcd.watch()
    for i in range(30):
        await watch.create(f"k{i}", watch_id=i + 1)
    for i in range(30):
        await etcd.put(f"k{i}")
    events = await watch.events(30)
    assert sorted(events) == list(range(1, 31))
