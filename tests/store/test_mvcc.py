"""The key space against a model that keeps every state whole."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from kemu.emulated.objects.wire import shared_objects
from kemu.emulated.store import mvcc
from kemu.emulated.store.mvcc import Entry, KeySpace
from kemu.errors import Compacted, FutureRevision

FOREVER = b"\0"


@pytest.fixture(autouse=True, scope="module")
def _is_packed_soon() -> Iterator[None]:
    """Former versions, which a reader must not notice."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(mvcc, "RECENT", 3)
        patch.setattr(mvcc, "PACKED", 2)
        yield


class Seen(NamedTuple):
    key: bytes
    value: bytes | None
    create_revision: int
    mod_revision: int
    version: int


def seen(entry: Entry) -> Seen:
    return Seen(entry.key, entry.value, entry.create_revision, entry.mod_revision, entry.version)


def put(space: KeySpace, key: bytes, value: bytes = b"") -> int:
    space.put(key, value)
    space.commit()
    return space.revision


def test_former_versions_are_packed_and_stay_what_they_were() -> None:
    space = KeySpace()
    for number in range(20):
        put(space, b"a", b"%d" % number)
    packed = [entry for entry in space._past[b"a"] if entry._past is not None]
    assert len(packed) == 16, "all but the live one and the latest three"
    assert [entry.value for entry in space._past[b"a"]] == [b"%d" % number for number in range(19)]
    for _ in range(3):
        space.revert(10)  # the tenth version lives again: it is packed, and will be written over again
        assert (entry := space.get(b"a")) is not None
        assert entry.value == b"8"
        for number in range(9, 20):
            put(space, b"a", b"%d" % number)
    assert [entry.value for entry in space._past[b"a"]] == [b"%d" % number for number in range(19)]


def test_revisions_and_versions() -> None:
    space = KeySpace()
    assert space.revision == 1
    assert put(space, b"a", b"1") == 2
    assert put(space, b"b", b"1") == 3
    assert put(space, b"a", b"2") == 4
    entry = space.get(b"a")
    assert entry is not None
    assert seen(entry) == Seen(b"a", b"2", 2, 4, 2)
    space.delete(b"a")
    space.commit()
    assert space.get(b"a") is None
    put(space, b"a", b"3")
    entry = space.get(b"a")
    assert entry is not None
    assert seen(entry) == Seen(b"a", b"3", 6, 6, 1)


def test_a_transaction_that_changes_nothing_has_no_revision() -> None:
    space = KeySpace()
    assert space.delete(b"a") is None
    assert space.commit() == []
    assert space.revision == 1


def test_a_transaction_sees_itself_but_the_past_does_not() -> None:
    space = KeySpace()
    put(space, b"a", b"old")
    space.put(b"a", b"new")
    space.put(b"b", b"new")
    assert [entry.value for entry in space.range(b"a", FOREVER)[0]] == [b"new", b"new"]
    assert [entry.value for entry in space.range(b"a", FOREVER, 2)[0]] == [b"old"]
    assert space.read_revision == 3
    space.commit()
    assert space.read_revision == 3


def test_what_can_be_read() -> None:
    space = KeySpace()
    for value in (b"1", b"2", b"3"):
        put(space, b"a", value)
    with pytest.raises(FutureRevision):
        space.check_readable(5)
    with pytest.raises(FutureRevision):
        space.compact(5)
    space.compact(3)
    with pytest.raises(Compacted) as caught:
        space.check_readable(2)
    assert caught.value.compact_revision == 3
    with pytest.raises(Compacted):
        space.compact(3)
    space.check_readable(3)
    assert [entry.value for entry in space.range(b"a", b"", 3)[0]] == [b"2"]


def test_compaction_gives_memory_back() -> None:
    space = KeySpace()
    for round_ in range(50):
        for i in range(20):
            space.put(b"churn-%d-%d" % (round_, i), b"x" * 100)
            space.commit()
            space.delete(b"churn-%d-%d" % (round_, i))
            space.commit()
    put(space, b"stays", b"y")
    before = space.history_bytes
    space.compact(space.revision)
    assert len(space.history) == 1
    assert space.history_bytes < before / 1000
    assert not space._past
    assert len(space._dead_keys) == 0
    assert len(space._live_keys) == 1
    assert space.live_bytes == len(b"stays") + 1


def test_compaction_looks_at_no_value(monkeypatch: pytest.MonkeyPatch) -> None:
    """Former versions are compressed, and whoever takes them away need not know what they were."""
    space = KeySpace()
    for number in range(200):
        put(space, b"a", b"%d" % number * number)
    before = space.history_bytes
    monkeypatch.setattr(shared_objects.Past, "unpacked", lambda past: pytest.fail("unpacked"))
    space.compact(space.excess(200, before // 2))
    assert before // 2 - 1000 < space.history_bytes <= before // 2
    space.compact(space.revision)
    assert space.history_bytes < 1000


CHANGES = st.lists(st.tuples(st.sampled_from([b"a", b"b", b"c"]), st.sampled_from([b"", b"one", None])), max_size=3)


def change(space: KeySpace, transactions: list[list[tuple[bytes, bytes | None]]]) -> None:
    for changes in transactions:
        for key, value in changes:
            if value is None:
                space.delete(key)
            else:
                space.put(key, value)
        space.commit()


@given(st.lists(CHANGES, max_size=8), st.lists(CHANGES, max_size=8), st.integers(1, 20))
def test_reverted_it_is_as_if_it_had_never_been(
    before: list[list[tuple[bytes, bytes | None]]], after: list[list[tuple[bytes, bytes | None]]], compacted: int
) -> None:
    def space() -> KeySpace:
        made = KeySpace()
        change(made, before)
        return made

    def told(of: KeySpace) -> object:
        state = {name: getattr(of, name) for name in ("revision", "compact_revision", "live_bytes", "history_bytes")}
        history = {key: [seen(entry) for entry in past] for key, past in of._past.items()}
        names = [keys.between(b"\0", FOREVER) for keys in (of._live_keys, of._dead_keys)]
        changes = [seen(entry) for revision in of.history for entry, _ in of.changes(revision)]
        return state, history, names, changes, {key: seen(entry) for key, entry in of._live.items()}

    expected, reverted = space(), space()
    change(reverted, after)
    # What is compacted meanwhile stays compacted.
    if compacted <= expected.revision:
        expected.compact(compacted)
        reverted.compact(compacted)
    reverted.revert(expected.revision)
    assert told(reverted) == told(expected)
    change(reverted, after)
    change(expected, after)
    assert told(reverted) == told(expected)


def test_excess_names_the_revision_that_leaves_as_much_as_wanted() -> None:
    space = KeySpace()
    for i in range(100):
        put(space, b"k", b"x" * i)
    assert space.excess(100, 1 << 20) == 0
    space.compact(space.excess(30, 1 << 20))
    assert len(space.history) == 30
    target = space.excess(30, space.history_bytes // 2)
    size = space.history_bytes
    space.compact(target)
    assert size // 3 < space.history_bytes <= size // 2
    # The newest revision stays, however large it is.
    space.compact(space.excess(30, 0))
    assert len(space.history) == 1
    assert space.excess(30, 0) == 0


keys = st.sampled_from([b"a", b"a/1", b"a/2", b"b", b"b/1", b"c"])
ends = st.sampled_from([b"", b"\0", b"a0", b"b", b"b/2", b"d"])
values = st.binary(max_size=2)
changes = st.lists(st.tuples(keys, st.one_of(st.none(), values)), min_size=1, max_size=4)


class MvccMachine(RuleBasedStateMachine):
    """Any transactions, the same key several times in one too; any reads and compactions; restarts from a snapshot."""

    @initialize()
    def begin(self) -> None:
        self.space = KeySpace()
        self.revision = 1
        self.compacted = -1
        self.states: dict[int, dict[bytes, Seen]] = {1: {}}
        self.events: dict[int, list[tuple[Seen, Seen | None]]] = {}

    @rule(changes=changes)
    def change(self, changes: list[tuple[bytes, bytes | None]]) -> None:
        state = dict(self.states[self.revision])
        revision = self.revision + 1
        events: list[tuple[Seen, Seen | None]] = []
        for key, value in changes:
            previous = state.get(key)
            before = self.states[self.revision].get(key)
            if value is None:
                returned = self.space.delete(key)
                if previous is not None:
                    del state[key]
                    events.append((Seen(key, None, 0, revision, 0), before))
            else:
                returned = self.space.put(key, value)
                created, version = (previous.create_revision, previous.version) if previous else (revision, 0)
                state[key] = Seen(key, value, created, revision, version + 1)
                events.append((state[key], before if created < revision else None))
            assert (returned and seen(returned)) == previous
        committed = self.space.commit()
        assert [(seen(entry), before and seen(before)) for entry, before in committed] == events
        if events:
            self.revision = revision
            self.states[revision] = state
            self.events[revision] = events

    @rule(back=st.integers(-1, 8))
    def compact(self, back: int) -> None:
        revision = self.revision - back
        if revision > self.revision:
            with pytest.raises(FutureRevision):
                self.space.compact(revision)
        elif revision <= self.compacted:
            with pytest.raises(Compacted):
                self.space.compact(revision)
        elif revision > 0:
            self.space.compact(revision)
            self.compacted = revision

    @rule()
    def restart(self) -> None:
        """As a snapshot and the records since then do it."""
        if self.compacted < 1:
            return
        old, new = self.space, KeySpace()
        new.load(self.compacted, old.state(), [entry for entry, _ in old.changes(self.compacted)])
        for revision in range(self.compacted + 1, self.revision + 1):
            for entry, _ in old.changes(revision):
                if entry.value is None:
                    new.delete(entry.key)
                else:
                    new.put(entry.key, entry.value)
            new.commit()
        # What a compacted change superseded is not in a snapshot.
        self.events[self.compacted] = [(event, None) for event, _ in self.events.get(self.compacted, [])]
        assert new.live_bytes == old.live_bytes
        self.space = new

    @rule(key=keys, end=ends, back=st.integers(0, 6), limit=st.integers(0, 3))
    def read(self, key: bytes, end: bytes, back: int, limit: int) -> None:
        revision = self.revision - back
        if revision < max(self.compacted, 1):
            return
        state = self.states[revision]
        expected = [
            state[name]
            for name in sorted(state)
            if (name == key if not end else name >= key and (end == FOREVER or name < end))
        ]
        self.space.check_readable(revision)
        for asked in (revision, 0) if back == 0 else (revision,):
            entries, count = self.space.range(key, end, asked, limit)
            assert [seen(entry) for entry in entries] == (expected[:limit] if limit else expected)
            assert count == len(expected) == self.space.count(key, end, asked)
            single = self.space.get_at(key, revision)
            assert (single and seen(single)) == state.get(key)

    @invariant()
    def history_is_whole(self) -> None:
        if not hasattr(self, "space"):
            return
        assert self.space.revision == self.revision
        for revision in range(max(self.compacted, 1), self.revision + 1):
            got = [(seen(entry), before and seen(before)) for entry, before in self.space.changes(revision)]
            assert got == self.events.get(revision, [])

    @invariant()
    def sizes_are_right(self) -> None:
        if not hasattr(self, "space"):
            return
        state = self.states[self.revision]
        assert self.space.live_bytes == sum(len(key) + len(pair.value or b"") for key, pair in state.items())
        kept = [entry for revision in range(1, self.revision + 1) for entry, _ in self.space.changes(revision)]
        assert self.space.history_bytes == sum(entry.size() for entry in kept)


MvccMachine.TestCase.settings = settings(max_examples=60, stateful_step_count=40, deadline=None)
TestMvcc = MvccMachine.TestCase
