"""Fan-out, catching up, and what a watcher that does not drain may cost."""

from __future__ import annotations

import random
from typing import Any

import pytest

from kemu.emulated.store import watch_responses, watch_streams
from kemu.emulated.store.mvcc import KeySpace
from kemu.emulated.store.watch_streams import WatchStream
from kemu.emulated.store.watches import MAX_QUEUE_BYTES, Hub
from kemu.messages.etcd import rpc_pb2

HEADER = rpc_pb2.ResponseHeader(cluster_id=1, member_id=2, raft_term=3)


class World:
    """A key space and a hub, without journal or network."""

    def __init__(self, max_queue_bytes: int = MAX_QUEUE_BYTES) -> None:
        self.space = KeySpace()
        self.hub = Hub(self.space, HEADER, max_queue_bytes)

    def put(self, key: bytes, value: bytes = b"v", *, publish: bool = True) -> int:
        self.space.put(key, value)
        self.space.commit()
        if publish:
            self.hub.publish(self.space.revision)
        return self.space.revision

    def watch(
        self, key: bytes = b"/", end: bytes = b"0", stream: WatchStream | None = None, **fields: Any
    ) -> WatchStream:
        stream = stream or self.hub.open()
        self.hub.create(stream, rpc_pb2.WatchCreateRequest(key=key, range_end=end, **fields))
        return stream

    def drain(self, stream: WatchStream) -> list[Any]:
        """All responses that are there to be written."""
        responses = []
        while (data := self.hub.next_response(stream)) is not None:
            responses.append(rpc_pb2.WatchResponse.FromString(data))
        return responses


def revisions(responses: list[Any]) -> list[int]:
    return [event.kv.mod_revision for response in responses for event in response.events]


def test_a_batch_is_one_response() -> None:
    world = World()
    stream = world.watch()
    world.drain(stream)
    for i in range(10):
        world.put(b"/%d" % i, publish=False)
    assert world.drain(stream) == []
    world.hub.publish(world.space.revision)
    (response,) = world.drain(stream)
    assert revisions([response]) == list(range(2, 12))
    assert response.header.revision == 11
    assert response.header.member_id == 2


def test_a_large_batch_is_split_between_revisions() -> None:
    world = World()
    stream = world.watch()
    world.drain(stream)
    for i in range(10):
        world.put(b"/%d" % i, b"x" * 300_000, publish=False)
    world.hub.publish(world.space.revision)
    assert len(stream.queue) == 4
    responses = world.drain(stream)
    assert revisions(responses) == list(range(2, 12))
    assert max(response.ByteSize() for response in responses) < 2 * watch_streams.MAX_RESPONSE_BYTES


def test_an_event_is_serialised_once_however_many_watch(monkeypatch: pytest.MonkeyPatch) -> None:
    world = World()
    streams = [world.watch() for _ in range(100)] + [world.watch(b"/a", b"/b"), world.watch(b"/a/1", b"")]
    for stream in streams:
        world.drain(stream)
    made: list[int] = []
    original = watch_responses.event_bytes
    monkeypatch.setattr(watch_responses, "event_bytes", lambda *args: made.append(1) or original(*args))
    world.put(b"/a/1")
    assert len(made) == 1
    queued = [stream.queue[0][1] for stream in streams[:100]]
    assert all(data is queued[0] for data in queued)
    assert [revisions(world.drain(stream)) for stream in streams] == [[2]] * 102


def test_responses_that_wait_are_sent_as_one() -> None:
    world = World()
    stream = world.watch(watch_id=1)
    world.watch(b"/b", b"", stream, watch_id=2)
    world.drain(stream)
    for key in (b"/a", b"/a", b"/b", b"/a", b"/a"):
        world.put(key)
    responses = world.drain(stream)
    got = [(response.watch_id, revisions([response]), response.header.revision) for response in responses]
    assert got == [(1, [2, 3], 3), (2, [4], 4), (1, [4, 5, 6], 6)]
    assert stream.queued_bytes == 0


def test_watchers_are_found_by_key_and_prefix() -> None:
    world = World()
    ranges = [(b"/a", b"/b"), (b"/a/1", b""), (b"/a/", b"/a0"), (b"/", b"0"), (b"/a/0", b"/a/3"), (b"/b", b"\0")]
    streams = {pair: world.watch(*pair) for pair in ranges}
    world.watch(b"/a/", b"/a0", streams[b"/a", b"/b"])
    for stream in streams.values():
        world.drain(stream)
    assert len(world.hub._by_key) == 1
    assert len(world.hub._by_prefix) == 3
    assert len(world.hub._other_ranges) == 2
    keys = [b"/a", b"/a/1", b"/a/2", b"/b", b"/c/1", b"z"]
    for key in keys:
        world.put(key)
    for (start, end), stream in streams.items():
        got = {event.kv.key for response in world.drain(stream) for event in response.events}
        assert got == {
            key for key in keys if (key == start if not end else start <= key and (end == b"\0" or key < end))
        }
    for stream in streams.values():
        world.hub.close(stream)
    hub = world.hub
    for index in (hub.groups, hub._by_key, hub._by_prefix, hub._other_ranges, hub._prefix_lengths):
        assert not index
    world.put(b"/a")


def test_a_watcher_that_does_not_drain_lags_and_loses_nothing() -> None:
    world = World(max_queue_bytes=10_000)
    slow, quick = world.watch(), world.watch()
    world.drain(slow)
    got = []
    for i in range(200):
        world.put(b"/%d" % (i % 5), b"x" * 1_000)
        got += revisions(world.drain(quick))
        assert slow.queued_bytes < 12_000
    assert got == list(range(2, 202))
    assert list(slow.lagging)
    # It drains a little, while things go on.
    some = revisions([rpc_pb2.WatchResponse.FromString(world.hub.next_response(slow) or b"")])
    world.put(b"/after")
    assert some + revisions(world.drain(slow)) == list(range(2, 203))
    assert not slow.lagging
    world.put(b"/again")
    assert revisions(world.drain(slow)) == [203]


def test_a_watcher_that_never_drains_is_cut_by_compaction() -> None:
    world = World(max_queue_bytes=10_000)
    slow = world.watch(watch_id=3)
    world.drain(slow)
    for i in range(100):
        world.put(b"/%d" % (i % 5), b"x" * 1_000)
    world.space.compact(90)
    responses = world.drain(slow)
    got = revisions(responses)
    assert got == list(range(2, 2 + len(got)))
    last = responses[-1]
    assert (last.watch_id, last.canceled, last.compact_revision) == (3, True, 90)
    assert not slow.watchers
    assert world.hub.next_response(slow) is None


def test_a_lagging_watcher_catches_up_in_pieces() -> None:
    world = World()
    for i in range(50):
        world.put(b"/%d" % (i % 5), b"x" * 100_000)
    world.put(b"elsewhere")
    stream = world.watch(start_revision=3)
    created = rpc_pb2.WatchResponse.FromString(world.hub.next_response(stream) or b"")
    assert created.created
    responses = []
    while (data := world.hub.next_response(stream)) is not None:
        responses.append(rpc_pb2.WatchResponse.FromString(data))
        assert stream.queued_bytes == 0
        # What happens meanwhile comes in its place.
        if len(responses) == 2:
            world.put(b"/new")
    assert len(responses) >= 5
    assert revisions(responses) == [*range(3, 52), 53]


def test_lagging_watchers_of_one_stream_take_turns() -> None:
    world = World()
    for i in range(60):
        world.put(b"/%d" % (i % 5), b"x" * 100_000)
    stream = world.watch(start_revision=1, watch_id=1)
    world.watch(stream=stream, start_revision=1, watch_id=2)
    ids = [response.watch_id for response in world.drain(stream) if response.events]
    assert ids[:4] == [1, 2, 1, 2]


def test_progress_waits_for_those_who_lag() -> None:
    world = World()
    for i in range(30):
        world.put(b"/%d" % i, b"x" * 100_000)
    stream = world.watch(start_revision=1)
    world.hub.report_progress(stream)
    responses = world.drain(stream)
    assert [response.watch_id for response in responses] == [0] * (len(responses) - 1) + [-1]
    assert responses[-1].header.revision == 31
    assert revisions(responses) == list(range(2, 32))


def test_progress_notifications() -> None:
    world = World()
    stream = world.watch(progress_notify=True, watch_id=1)
    world.watch(stream=stream, watch_id=2)
    world.watch(stream=stream, watch_id=3, progress_notify=True, start_revision=100)
    world.drain(stream)
    world.put(b"x")
    world.hub.notify_progress()
    (response,) = world.drain(stream)
    assert (response.watch_id, response.header.revision, list(response.events)) == (1, 2, [])
    world.put(b"/a")
    world.drain(stream)
    # It has just heard.
    world.hub.notify_progress()
    assert world.drain(stream) == []
    world.hub.notify_progress()
    assert len(world.drain(stream)) == 1


def test_what_is_cancelled_is_not_sent_any_more() -> None:
    world = World()
    stream = world.watch(watch_id=1)
    world.watch(stream=stream, watch_id=2)
    world.put(b"/a")
    world.hub.cancel(stream, 1)
    responses = world.drain(stream)
    assert [response.watch_id for response in responses if response.events] == [2]
    assert [response.watch_id for response in responses if response.canceled] == [1]


def test_random_watchers_against_all_that_happened() -> None:
    """Any mixture of ranges, options, lagging, draining and closing: each watcher gets what it should, in order."""
    for seed in range(30):
        chance = random.Random(seed)
        world = World(max_queue_bytes=chance.choice((200, 3_000, 1 << 20)))
        hub, space = world.hub, world.space
        watching: dict[WatchStream, tuple[bytes, bytes, int, set[int]]] = {}
        got: dict[WatchStream, list[tuple[int, bytes, bool]]] = {}
        for _ in range(300):
            match chance.randrange(6):
                case 0 | 1 | 2:
                    key = b"/%d" % chance.randrange(30)
                    if chance.random() < 0.3:
                        space.delete(key)
                    else:
                        space.put(key, b"x" * chance.randrange(100))
                    space.commit()
                    if chance.random() < 0.5:
                        hub.publish(space.revision)
                case 3 if len(watching) < 12:
                    start, end = chance.choice(((b"/", b"0"), (b"/1", b"/2"), (b"/3", b""), (b"/12", b"/25")))
                    since = max(1, hub.published + chance.randrange(-20, 5))
                    filters = chance.choice(((), (0,), (1,)))
                    options = {"prev_kv": chance.random() < 0.5, "fragment": chance.random() < 0.3}
                    stream = world.watch(start, end, start_revision=since, filters=filters, **options)
                    watching[stream] = (start, end, since, set(filters))
                    got[stream] = []
                case 4 if watching:
                    stream = chance.choice(list(watching))
                    for _ in range(chance.randrange(4)):
                        _take(hub, stream, got[stream])
                case 5 if watching and chance.random() < 0.1:
                    stream = chance.choice(list(watching))
                    hub.close(stream)
                    del watching[stream]
        hub.publish(space.revision)
        for stream, (start, end, since, filters) in watching.items():
            while _take(hub, stream, got[stream]):
                pass
            expected = [
                (revision, entry.key, entry.value is None)
                for revision in range(since, space.revision + 1)
                for entry, _ in space.changes(revision)
                if (entry.key == start if not end else start <= entry.key < end)
                and (1 if entry.value is None else 0) not in filters
            ]
            assert got[stream] == expected, seed


def _take(hub: Hub, stream: WatchStream, into: list[tuple[int, bytes, bool]]) -> bool:
    data = hub.next_response(stream)
    if data is None:
        return False
    response = rpc_pb2.WatchResponse.FromString(data)
    into += [(event.kv.mod_revision, event.kv.key, event.type == 1) for event in response.events]
    return True
