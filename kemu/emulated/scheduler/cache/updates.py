"""What an update of a pod changes for schedulers, found out once for all schedulers of a process.

Informers share the objects that they have parsed (:mod:`kemu.emulated.objects.wire.shared_objects`), so several
schedulers are shown the same two objects. Where they are not shared, each finds out for itself.
"""

from __future__ import annotations

from sys import intern
from typing import Any

from kemu.emulated.objects import meta
from kemu.emulated.objects.amounts import requests
from kemu.emulated.objects.wire import shared_objects
from kemu.messages.k8s import core_v1_pb2

MOST_KEPT = 1024
"""Updates. News travels fast: a scheduler that comes later finds out again."""


class PodUpdate:
    """From one version of a pod to the next that the watch shows. Immutable, but for ``events`` and ``held``."""

    __slots__ = (
        "counts_differently",
        "events",
        "held",
        "is_resized",
        "new",
        "node",
        "old",
        "old_node",
        "relabelled",
        "spec_changed",
        "start_s",
        "uid",
        "was_resized",
    )

    def __init__(self, old: core_v1_pb2.Pod, new: core_v1_pb2.Pod) -> None:
        before, metadata, status = old.metadata, new.metadata, new.status
        self.old = old
        self.new = new
        self.uid: str = intern(metadata.uid)
        self.old_node: str = old.spec.nodeName
        self.node: str = new.spec.nodeName
        self.spec_changed: bool = self.node != self.old_node or old.spec != new.spec
        self.relabelled = not meta.have_same_entries(before.labels, metadata.labels)
        shown = KEPT.get(id(old))
        if shown is None or shown.new is not old:
            self.was_resized: bool = requests.is_resized(old)
        else:
            self.was_resized = shown.is_resized
        self.is_resized: bool = requests.is_resized(new)
        self.counts_differently = (
            self.relabelled
            or self.is_resized
            or self.was_resized
            or before.HasField("deletionTimestamp") != metadata.HasField("deletionTimestamp")
        )
        """It cannot be counted on its node as the version before was, even if its spec has not changed."""
        self.events: list[Any] | None = None
        """What it is for the queue, once that has been asked: an ``Event`` or two."""
        self.held: shared_objects.Held | None = None
        """The new version at rest, once that has been asked."""
        self.start_s: int | None = status.startTime.seconds if status.HasField("startTime") else None
        """``status.startTime`` in Unix seconds."""


KEPT: dict[int, PodUpdate] = {}
"""By the identity of the new version, which is not given to another object as long as this holds it."""


def of(old: core_v1_pb2.Pod, new: core_v1_pb2.Pod) -> PodUpdate:
    """The update between two versions. Nobody may change them any more."""
    update = KEPT.get(id(new))
    if update is None or update.old is not old:
        if len(KEPT) >= MOST_KEPT:
            del KEPT[next(iter(KEPT))]
        update = KEPT[id(new)] = PodUpdate(old, new)
    return update
