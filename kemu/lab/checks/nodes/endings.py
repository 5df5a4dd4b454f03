"""The check that containers end when their grace period does."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

from kemu.lab.checks.attention import Attention, Punctual
from kemu.lab.checks.history import DEFINITION, MIRROR, POD_PREFIX, History
from kemu.lab.checks.nodes.occupancies import KUBELET
from kemu.messages.k8s import core_v1_pb2
from kemu.runtime.runlog import events

_Events = (
    events.WatchListed | events.WatchDelivered | events.PodTerminating | events.PodTerminated | events.MachineOff
    | events.ActorCrashed | events.ActorStopped | events.ActorStarted
)  # fmt: skip

_LEAST_S = 2.0
"""What a container gets to end, however long its preStop hook took (``minimumGracePeriodInSeconds``)."""
_SOON_S = 5.0
"""For the kill itself, and what a kubelet does before it."""
_DEFAULT_S = 30


@dataclass(slots=True)
class _Pod:
    key: str
    node: str
    own_s: int
    """``terminationGracePeriodSeconds``."""
    asked: dict[int, int]
    """By revision, in order: the grace period in seconds with which it is deleted."""


@dataclass(slots=True)
class _Ending:
    node: str
    due_ns: int


class ContainersEndInTime(Punctual):
    """The containers of a pod that is stopped end within its grace period.

    That is the one of its deletion, as far as the watch of the kubelet has told of it, or else its own. A deletion with
    a shorter one hastens the end, from when the kubelet hears of it (``killContainer``).
    """

    actors: ClassVar[Mapping[type[events.Event], str]] = {events.WatchListed: KUBELET, events.WatchDelivered: KUBELET}
    watches: ClassVar[Mapping[type[events.Event], str]] = {events.WatchListed: "pods", events.WatchDelivered: "pods"}
    id: ClassVar[str] = "containers-end-in-time"
    nothing: ClassVar[str] = "no container was stopped"
    unit: ClassVar[str] = "pod"

    def given(self, *folds: Attention) -> None:
        super().given(*folds)
        self._pods: dict[str, _Pod] = {}
        """By UID."""
        self._seen: dict[str, int] = {}
        """By node: the revision that its kubelet's watch of pods has reached."""
        self._is_any = False
        """Whether anything has ended: until then nobody asks what kubelets have heard."""
        self._endings: dict[str, _Ending] = {}
        """By UID."""
        self._on: dict[str, dict[str, None]] = {}
        """The same by node: a thousand of them may hear while others end."""

    def saw(self, time_ns: int, actor: str, event: _Events) -> None:
        if isinstance(event, (events.WatchListed, events.WatchDelivered)):
            seen = event.rev if isinstance(event, events.WatchListed) else event.revs[-1]
            self._heard(time_ns, actor.removeprefix(KUBELET), seen)
        elif isinstance(event, events.PodTerminating):
            self._begins(time_ns, event)
        elif isinstance(event, events.PodTerminated):
            ending = self._endings.pop(event.uid, None)
            if ending is not None:
                del self._on[ending.node][event.uid]
                self._overdue.end(event.uid, time_ns)
        elif isinstance(event, events.MachineOff) or actor.startswith(KUBELET):
            self._begins_anew(event.node if isinstance(event, events.MachineOff) else actor.removeprefix(KUBELET))

    def pod_changes(self) -> int | None:
        return None if self._ended else DEFINITION

    def on_pod(self, time_ns: int, revision: int, key: str, pod: core_v1_pb2.Pod | None) -> None:
        if pod is None:
            return
        metadata, spec = pod.metadata, pod.spec
        if not spec.nodeName or MIRROR in metadata.annotations:
            return
        known = self._pods.get(metadata.uid)
        if known is None:
            own_s = spec.terminationGracePeriodSeconds if spec.HasField("terminationGracePeriodSeconds") else _DEFAULT_S
            known = self._pods[metadata.uid] = _Pod(key.removeprefix(POD_PREFIX), spec.nodeName, own_s, {})
        if metadata.HasField("deletionTimestamp"):
            grace_s = metadata.deletionGracePeriodSeconds
            if not known.asked or next(reversed(known.asked.values())) != grace_s:
                known.asked[revision] = grace_s

    def _grace_s(self, pod: _Pod) -> int:
        """As far as its kubelet knows."""
        seen = self._seen.get(pod.node, 0)
        asked = [grace_s for revision, grace_s in pod.asked.items() if revision <= seen]
        return asked[-1] if asked else max(pod.own_s, *pod.asked.values(), 0)

    def taker(self, kind: str) -> Callable[[int, str, Any], None] | None:
        if kind in (events.WatchListed.KIND, events.WatchDelivered.KIND) and not self._is_any:
            return None  # What kubelets have heard matters only where something ends.
        return super().taker(kind)

    def _listen(self) -> None:
        """Now something ends: what kubelets have heard so far."""
        self._is_any = True
        for actor, sessions in self._attention.history.watches_of.items():
            latest = sessions[-1]
            for latest in reversed(sessions):
                if latest.resource == "pods":
                    break
            if actor.startswith(KUBELET) and latest.resource == "pods" and latest.ended_ns is None:
                bookmarks = [revision for revision, _ in latest.bookmarks[-1:]]
                self._seen[actor.removeprefix(KUBELET)] = max(0, latest.since, *latest.revisions[-1:], *bookmarks)
        self.ask_again()

    def _begins(self, time_ns: int, event: events.PodTerminating | events.PodTerminated) -> None:
        if not self._is_any:
            self._listen()
        uid, node = event.uid, event.node
        pod = self._pods.get(uid)
        if pod is not None and uid not in self._endings:
            self._expect(time_ns, uid, pod, self._grace_s(pod), node)

    def _expect(self, time_ns: int, uid: str, pod: _Pod, grace_s: int, node: str) -> None:
        within_s = max(grace_s, _LEAST_S) + _SOON_S
        self._endings[uid] = _Ending(node, time_ns + round(within_s * 1e9))
        self._on.setdefault(node, {})[uid] = None
        self._overdue.begin(uid, time_ns, f"{KUBELET}{node}", within_s, f"{pod.key} has {grace_s} s to end")

    def _heard(self, time_ns: int, node: str, seen: int) -> None:
        before = self._seen.get(node, 0)
        if seen <= before:
            return
        self._seen[node] = seen
        for uid in list(self._on.get(node, ())):
            pod, ending = self._pods[uid], self._endings[uid]
            if not any(before < revision <= seen for revision in pod.asked):
                continue
            grace_s = self._grace_s(pod)
            if time_ns + round((max(grace_s, _LEAST_S) + _SOON_S) * 1e9) < ending.due_ns:
                self._overdue.drop(uid)
                self._expect(time_ns, uid, pod, grace_s, node)

    def _begins_anew(self, node: str) -> None:
        """A new process stops anew what it finds."""
        self._seen.pop(node, None)
        for uid in self._on.pop(node, ()):
            del self._endings[uid]
            self._overdue.drop(uid)

    def rolled_back(self, time_ns: int, history: History) -> None:
        super().rolled_back(time_ns, history)
        self._endings.clear()
        self._on.clear()
        self._pods.clear()
