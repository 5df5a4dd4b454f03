"""Placing many pods one after the other, with what earlier attempts have shown (``simulator/scheduling``).

Pods that are like one that found no place are not tried again; a pod is first tried where it was placed in the
iteration before.
"""

from __future__ import annotations

from collections.abc import Iterable

from kemu.emulated.autoscaler import pod_rules
from kemu.emulated.autoscaler.simulator.snapshots import Acceptable, Snapshot
from kemu.emulated.objects import meta
from kemu.messages.k8s import core_v1_pb2

MAX_KINDS = 10
"""Most kinds of pods of one controller that are remembered (``maxPodsPerOwnerRef``)."""


class Placements:
    """``HintingSimulator``."""

    def __init__(self) -> None:
        self._hints: dict[str, str] = {}
        """By UID of the pod: the node."""
        self._older: dict[str, str] = {}

    def try_all(
        self,
        snapshot: Snapshot,
        pods: Iterable[core_v1_pb2.Pod],
        acceptable: Acceptable | None = None,
        *,
        all_or_stop: bool = False,
    ) -> dict[str, str]:
        """Place them as far as possible: nodes by UID. ``all_or_stop``: not beyond the first that finds no place."""
        similar = _Similar()
        placed: dict[str, str] = {}
        for pod in pods:
            uid = pod.metadata.uid
            node = self._by_hint(snapshot, pod, acceptable)
            if not node and not similar.is_hopeless(pod):
                node = snapshot.schedule_anywhere(pod, acceptable)
                if not node:
                    similar.note(pod)
            if node:
                self._hints[uid] = placed[uid] = node
            elif all_or_stop:
                break
        return placed

    def _by_hint(self, snapshot: Snapshot, pod: core_v1_pb2.Pod, acceptable: Acceptable | None) -> str:
        uid = pod.metadata.uid
        node = self._hints.get(uid) or self._older.get(uid, "")
        if not node or snapshot.node(node) is None or (acceptable is not None and not acceptable(node)):
            return ""
        return node if snapshot.schedule(pod, node) is None else ""

    def drop_old(self) -> None:
        """Keep only the hints since the last call."""
        self._older, self._hints = self._hints, {}


class _Similar:
    """``SimilarPodsScheduling``."""

    def __init__(self) -> None:
        self._kinds: dict[str, list[bytes]] = {}

    def is_hopeless(self, pod: core_v1_pb2.Pod) -> bool:
        owner = meta.controller_of(pod)
        return owner is not None and kind_of(pod) in self._kinds.get(owner.uid, ())

    def note(self, pod: core_v1_pb2.Pod) -> None:
        owner = meta.controller_of(pod)
        if owner is None or pod_rules.of_daemon_set(pod):
            return
        known = self._kinds.setdefault(owner.uid, [])
        if len(known) < MAX_KINDS:
            known.append(kind_of(pod))


def kind_of(pod: core_v1_pb2.Pod) -> bytes:
    """Equal for pods that schedulers cannot tell apart: labels and spec (``PodSpecSemanticallyEqual``)."""
    labels = "\0".join(f"{key}={pod.metadata.labels[key]}" for key in sorted(pod.metadata.labels))
    spec = pod.spec
    if spec.hostname:
        spec = type(spec)()
        spec.CopyFrom(pod.spec)
        spec.ClearField("hostname")
    wire: bytes = spec.SerializeToString(deterministic=True)
    return labels.encode() + b"\0\0" + wire
