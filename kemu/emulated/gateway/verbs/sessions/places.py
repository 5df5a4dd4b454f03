"""The files of containers, as commands that clients execute in them see and change them.

They are made of the pod and of what its program has done to them, and kept as long as the container runs.
"""

from __future__ import annotations

import contextlib
from collections import OrderedDict
from dataclasses import dataclass, field

from kemu.emulated.kubelet.logs import lines
from kemu.emulated.kubelet.programs import courses, printouts
from kemu.emulated.kubelet.programs.courses import Volumes
from kemu.emulated.kubelet.programs.environments import NO_SOURCES, Sources
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
        self._advance(kept, pod, container, sources, now_s)
        own, _ = kept.own[_key(pod, container)]
        return courses.files_of(pod, container, kept.volumes, sources, own)

    def _advance(
        self, kept: _Pod, pod: core_v1_pb2.Pod, container: core_v1_pb2.Container, sources: Sources, now_s: float
    ) -> None:
        """What its programs have done by now: its own, and those that it shares a volume with."""
        for one in (*pod.spec.initContainers, *pod.spec.containers):
            of_one = sources if one.name == container.name else NO_SOURCES
            instance = lines.current(pod, one)
            if one.name != container.name and (instance is None or instance.ended or not one.volumeMounts):
                continue
            key = _key(pod, one)
            started_s = instance.started_s if instance is not None else now_s
            if key not in kept.own:
                for old in [each for each in kept.own if each[0] == one.name]:
                    del kept.own[old]
                own = courses.initial_files(pod, one)
                printouts.repeat(pod, one, kept.volumes, key[1])
                process = courses.process(pod, one, kept.volumes, key[1], started_s, own=own, sources=of_one)
                kept.own[key] = own, process
                _run_hook(pod, one, courses.files_of(pod, one, kept.volumes, of_one, own), of_one, process, started_s)
            process = kept.own[key][1]
            if process is not None:
                with contextlib.suppress(NotUnderstood):
                    process.advance(now_s - started_s)


def _key(pod: core_v1_pb2.Pod, container: core_v1_pb2.Container) -> tuple[str, int]:
    instance = lines.current(pod, container)
    return container.name, instance.restarts if instance is not None else 0


def _run_hook(
    pod: core_v1_pb2.Pod,
    container: core_v1_pb2.Container,
    tree: Files,
    sources: Sources,
    process: Process | None,
    started_s: float,
) -> None:
    """The postStart hook, once the program has begun."""
    hook = container.lifecycle.postStart
    if not hook.HasField("exec") or not hook.exec.command:
        return
    with contextlib.suppress(NotUnderstood):
        if process is not None:
            process.advance(0.0)
        shell = courses.shell_in(pod, container, tree, seed="hook", unix_s=started_s, sources=sources)
        Process(shell, list(hook.exec.command)).outcome_of_all()
