"""The check that two pods of one name never run at the same time."""

from __future__ import annotations

from typing import ClassVar

from kemu.lab.checks.history import MIRROR, POD_PREFIX, STATUS, History
from kemu.lab.checks.results import Check, Result, seconds, several
from kemu.messages.k8s import core_v1_pb2
from kemu.runtime.runlog import events
from kemu.runtime.words import counted

_Events = events.PodTerminated | events.PodFinished | events.ActorStopped | events.MachineOff


class NoNameRunsTwice(Check):
    """Two pods of one name never run at the same time, on whatever nodes.

    A StatefulSet stands on this: an object stays in the API until its own kubelet has seen its containers end, so that
    the name is free only then. A pod runs from the report of its kubelet (or since it was seen Running) until that
    kubelet says that its containers are gone, or its machine is off; the crash of a kubelet alone ends nothing. A pod
    that has ended runs again if its kubelet says so, which happens to one that hears of it from the past.
    Kubernetes promises nothing once an object was removed by force: the user, the garbage collector of pods,
    or whoever deletes a pod without a grace period. Nor is a pod judged of which nobody knows who removed it: the API
    server crashed after the store had removed it, and before it could log the request.
    """

    id: ClassVar[str] = "no-name-runs-twice"
    verbs: ClassVar[tuple[str, ...]] = ("delete", "evict")

    def __init__(self) -> None:
        self._running: dict[str, dict[str, str]] = {}
        """By name: UID → node of the pods that run."""
        self._on: dict[str, dict[str, str]] = {}
        """The same by node: UID → name. A machine that goes does not look through all pods: all go at the end."""
        self._ended: set[str] = set()
        """UIDs: a status that still says Running is late."""
        self._exempt: set[str] = set()
        """UIDs of pods whose object was removed by force."""
        self._objects: dict[str, tuple[str, str, bool]] = {}
        """By key in the store: UID, node, and whether the pod has no grace period."""
        self._removed: dict[int, tuple[str, str, str]] = {}
        """By revision: name, UID and node of a pod that ran when its object was removed, until it is said by whom."""
        self._ran = 0
        self._names: set[str] = set()
        self._findings: list[tuple[str, str]] = []
        """The UID of the pod that ran first, and what is wrong."""

    def on_event(self, time_ns: int, actor: str, event: _Events) -> None:
        if isinstance(event, events.MachineOff):
            self._machine_is_off(event.node)
        elif isinstance(event, events.ActorStopped):
            who, _, node = actor.partition("/")
            if who == "kubelet":
                self._node_is_gone(node)
        else:
            self._end(event.pod, event.uid)

    def pod_changes(self) -> int | None:
        return STATUS

    def on_pod(self, time_ns: int, revision: int, key: str, pod: core_v1_pb2.Pod | None) -> None:
        name = key.removeprefix(POD_PREFIX)
        if pod is None:
            uid, node, has_no_grace = self._objects.pop(key, ("", "", False))
            if uid in self._running.get(name, {}):
                if has_no_grace:
                    self._exempt.add(uid)
                    self._end(name, uid)
                else:
                    self._removed[revision] = (name, uid, node)
            return
        if MIRROR in pod.metadata.annotations:
            return  # It comes and goes while its static pod, which has another UID, runs on.
        uid, node, spec = pod.metadata.uid, pod.spec.nodeName, pod.spec
        no_grace = spec.HasField("terminationGracePeriodSeconds") and not spec.terminationGracePeriodSeconds
        self._objects[key] = (uid, node, no_grace)
        if pod.status.phase == "Running":
            self._begin(time_ns, name, uid, node)

    def _on_running(self, time_ns: int, actor: str, event: events.PodRunning) -> None:
        self._ended.discard(event.uid)
        self._begin(time_ns, event.pod, event.uid, event.node)

    def _on_request(self, time_ns: int, actor: str, event: events.ApiRequest) -> None:
        """Find out who removed the object, and whether that actor may."""
        found = self._removed.pop(event.rev, None)
        if found is not None and event.verb == "delete" and event.by.startswith(("user", "controller/pod-gc")):
            self._exempt.add(found[1])
            self._end(found[0], found[1])

    def _begin(self, time_ns: int, name: str, uid: str, node: str) -> None:
        if uid in self._ended or uid in self._exempt or not node:
            return
        running = self._running.setdefault(name, {})
        if uid in running:
            return
        self._ran += 1
        self._names.add(name)
        for first, other in running.items():
            told = f"{name} runs on {node} while another pod of that name still runs on {other}"
            self._findings.append((first, f"{seconds(time_ns)}: {told}"))
        running[uid] = node
        self._on.setdefault(node, {})[uid] = name

    def _end(self, name: str, uid: str) -> None:
        self._ended.add(uid)
        running = self._running.get(name)
        if running is not None and uid in running:
            del self._on[running.pop(uid)][uid]
            if not running:
                del self._running[name]

    def _node_is_gone(self, node: str) -> None:
        """The machine is gone, with everything that ran on it."""
        self._ended.update(self._on.get(node, ()))
        self._machine_is_off(node)

    def _machine_is_off(self, node: str) -> None:
        """Its pods may run again when it is back."""
        for uid, name in self._on.pop(node, {}).items():
            running = self._running[name]
            del running[uid]
            if not running:
                del self._running[name]

    def result(self, history: History) -> Result:
        unknown = {uid for _, uid, _ in self._removed.values()}
        if findings := [text for first, text in self._findings if first not in unknown]:
            return Result(self.id, False, several(findings))
        starts, names = counted(self._ran, "start"), counted(len(self._names), "name")
        if not self._ran:
            return Result(self.id, None, "no pod ran")
        return Result(self.id, True, f"{starts} of pods under {names}")
