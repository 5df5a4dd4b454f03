"""The files of containers, as commands that clients execute in them see and change them.

They are made of the pod and of what its program has done to them, and kept as long as the container runs.
"""

from __future__ import annotations

import contextlib
from collections import OrderedDict
from dataclasses import dataclass, field

from kemu.emulated.kubelet.logs import lines
from kemu.emulated.kubelet.programs import courses, printouts
from kemu.emulated.kubelet.programs.courses import Sources, Volumes
from kemu.emulated.kubelet.programs.files import Files, Store
from kemu.emulated.kubelet.programs.shells import Process
from kemu.emulated.kubelet.programs.syntax import NotUnderstood
from kemu.messages.k8s import core_v1_pb2

_MOST_PODS = 2_000


@dataclass
class _Pod:
    volumes: Volumes
    own: dict[tuple[str, int], tuple[Store, Process | None]] = field(default_factory=dict)
    """By container and how often it was restarted: its own files, and the program that changes them."""


class Places:
    def __init__(self) -> None:
        self._pods: OrderedDict[str, _Pod] = OrderedDict()
        self._of_nodes: dict[str, dict[str, Store]] = {}
        self.boards: dict[str, dict[str, str]] = {}
        """By namespace: what its guestbooks (of agnhost) hold."""

    def files(self, pod: core_v1_pb2.Pod, container: core_v1_pb2.Container, sources: Sources, now_s: float) -> Files:
        """Those of a container that runs, at that Unix time."""
        uid = pod.metadata.uid
        kept = self._pods.get(uid)
        if kept is None:
            kept = self._pods[uid] = _Pod(Volumes(of_node=self._of_nodes.setdefault(pod.spec.nodeName, {})))
            while len(self._pods) > _MOST_PODS:
                self._pods.popitem(last=False)
        self._pods.move_to_end(uid)
        instance = lines.current(pod, container)
        key = container.name, instance.restarts if instance is not None else 0
        started_s = instance.started_s if instance is not None else now_s
        if key not in kept.own:
            for old in [one for one in kept.own if one[0] == container.name]:
                del kept.own[old]
            own = courses.initial_files(pod, container)
            printouts.repeat(pod, container, kept.volumes, key[1])
            kept.own[key] = own, courses.process(pod, container, kept.volumes, key[1], started_s, own=own)
        own, process = kept.own[key]
        if process is not None:
            with contextlib.suppress(NotUnderstood):
                process.advance(now_s - started_s)
        return courses.files_of(pod, container, kept.volumes, sources, own)
