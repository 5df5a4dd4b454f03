"""The watch cache's window: what a watch that resumes is told of."""

from __future__ import annotations

import random

import pytest

from kemu.apiserver import selections
from kemu.apiserver.storage import Entry
from kemu.apiserver.watch.cache import Collection
from kemu.k8s import core_v1_pb2
from kemu.objects import resources

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
