"""The watch cache's window: what a watch that resumes is told of."""

from __future__ import annotations

import random

import pytest

from kemu.emulated.apiserver import selections
from kemu.emulated.apiserver.storage import Entry
from kemu.emulated.apiserver.watch.cache import Collection, WatchCache
from kemu.emulated.objects import resources
from kemu.messages.etcd import kv_pb2
from kemu.messages.k8s import core_v1_pb2

WINDOW = 150


def _pod(name: str, node: str) -> bytes:
    pod = core_v1_pb2.Pod()
    pod.metadata.name, pod.metadata.namespace = name, "default"
    pod.spec.nodeName = node
    return pod.SerializeToString(deterministic=True)


@pytest.mark.parametrize("seed", range(5))
def test_changes_found_by_index_are_those_found_one_by_one(seed: int) -> None:
    rng = random.Random(seed)
    collection = Collection(resources.BY_PLURAL["pods"], WINDOW)
    there: set[bytes] = set()
    for revision in range(1, 500):
        key = f"/registry/pods/default/p{rng.randrange(40)}".encode()
        if key in there and rng.random() < 0.3:
            there.discard(key)
            collection.delete(key, revision)
        else:
            there.add(key)
            name = key.decode().rpartition("/")[2]
            collection.put(Entry(key, revision, _pod(name, f"node-{rng.randrange(4)}")))
        if revision % 7:
            continue
        for node in range(4):
            selection = selections.compile_selection("pods", "", "", f"spec.nodeName=node-{node}")
            everything = selections.compile_selection("pods", "", "", "")
            since = rng.randrange(collection.oldest, revision + 1)
            found = [change.revision for change in collection.changes_after(since, selection)]
            after = collection.changes_after(since, everything)
            assert [change.revision for change in after] == sorted(change.revision for change in after)
            assert found == [
                change.revision for change in after if change.concerns(selection.position, selection.value)
            ]


def _event(key: str, revision: int, value: bytes | None) -> kv_pb2.Event:
    event = kv_pb2.Event(type=kv_pb2.Event.PUT if value is not None else kv_pb2.Event.DELETE)
    event.kv.key, event.kv.mod_revision, event.kv.value = key.encode(), revision, value or b""
    return event


@pytest.mark.parametrize("seed", range(5))
def test_the_windows_of_all_kinds_together_are_bounded_in_bytes(seed: int) -> None:
    rng = random.Random(seed)
    room = 200_000
    cache = WatchCache(WINDOW, room)
    kinds = {"pods": 20_000, "configmaps": 0, "nodes": 200, "priorityclasses": 5_000}
    kinds = {plural: size for plural, size in kinds.items() if plural in cache.collections}
    told: dict[str, list[int]] = {plural: [] for plural in kinds}
    there: set[str] = set()
    longest = 0
    for revision in range(1, 2_000):
        plural = rng.choice(list(kinds))
        key = f"/registry/{plural}/{'default/' if plural == 'pods' else ''}o{rng.randrange(10)}"
        message = resources.BY_PLURAL[plural].message()
        message.metadata.name = key.rpartition("/")[2]
        message.metadata.annotations["filler"] = "x" * rng.randrange(kinds[plural] + 1)
        is_deletion = key in there and rng.random() < 0.3
        (there.discard if is_deletion else there.add)(key)
        cache.apply(_event(key, revision, None if is_deletion else message.SerializeToString(deterministic=True)))
        cache.advance(revision)
        told[plural].append(revision)
        sizes = [collection.past_bytes() for collection in cache.collections.values()]
        longest = max(longest, sum(sizes))
        assert sum(sizes) <= room
        # Nothing is missing between where a window begins and now, and kinds with small objects keep their number.
        for name in kinds:
            collection = cache.collections[name]
            everything = selections.compile_selection(name, "", "", "")
            found = [change.revision for change in collection.changes_after(collection.oldest, everything)]
            assert found == [each for each in told[name] if each > collection.oldest]
        nodes = cache.collections["nodes"]
        assert len(nodes._changes) >= min(WINDOW, len(told["nodes"]))
    assert longest > room * 9 // 10
    assert len(cache.collections["pods"]._changes) < 40
    assert cache.collections["pods"].oldest > 1_900
