"""The check that nothing runs for a pod that is gone."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import ClassVar

from kemu.lab.checks.history import DEFINITION, MIRROR, POD_PREFIX, History, parsed
from kemu.lab.checks.nodes.occupancies import KUBELET
from kemu.lab.checks.results import Check, Result, seconds
from kemu.messages.k8s import core_v1_pb2
from kemu.runtime.runlog import events
from kemu.runtime.words import counted

_Events = (
    events.AdmissionDecided | events.PodRunning | events.ContainerStarted | events.PodPreempting
    | events.PodTerminating | events.ActorStarted
)  # fmt: skip
_Events2 = (
    events.AdmissionDecided | events.PodRunning | events.ContainerStarted | events.PodPreempting | events.PodTerminating
)

_START_NS = 1_000_000_000
"""A start that is under way when the kubelet hears that the pod is gone may still succeed for so long. It may take as
long to act on that, where admissions do not show more."""
_SLOWER = 2
"""So many times longer than the slowest admission of the run may any piece of news take."""


@dataclass(slots=True)
class _Node:
    """How far the kubelet of a node has come with what its watch delivered."""

    unheard: dict[str, int] = field(default_factory=dict)
    """UIDs of pods that are gone: the revisions at which they went."""
    heard: dict[str, tuple[int, tuple[int, ...]]] = field(default_factory=dict)
    """By UID, when the watch delivered that it is gone, and when the news came that may have waited before it."""
    stopping: dict[str, None] = field(default_factory=dict)
    """UIDs of pods that it has begun to stop."""
    delivered: list[int] = field(default_factory=list)
    """When news came that it need not have acted on yet."""
    acted_ns: int = -1
    """It has acted on what came until then."""
    decided_ns: int = 0
    """When it last admitted or refused a pod."""
    preempts_for: str = ""
    """UID of the pod for which it kills others; it acts on no news meanwhile."""


@dataclass(slots=True)
class _Late:
    """A pod was admitted, or began to run, after the kubelet had been told that it is gone."""

    place: int
    """How many admissions were known before."""
    time_ns: int
    heard_ns: int
    delivered: tuple[int, ...]
    """When news came, up to that."""
    text: str


class GonePodsStartNothing(Check):
    """A kubelet that has heard that a pod is gone admits it no more, and starts none of its containers.

    Another pod of the same name is another pod. What counts is what the kubelet's watch had delivered, and had to be
    acted on by then: a kubelet acts on one piece of news after the other (``syncLoop``), and on none while it kills
    pods for another one (``evictPodsToFreeRequests``). How long that may take follows from the run's admissions.
    """

    id: ClassVar[str] = "gone-pods-start-nothing"
    actors: ClassVar[Mapping[type[events.Event], str]] = {events.WatchListed: KUBELET, events.WatchDelivered: KUBELET}
    watches: ClassVar[Mapping[type[events.Event], str]] = {events.WatchListed: "pods", events.WatchDelivered: "pods"}

    def __init__(self) -> None:
        self._uids: dict[str, tuple[str, str]] = {}
        """By key: UID and node of the pod that has it."""
        self._nodes: dict[str, _Node] = {}
        self._took_ns: list[int] = []
        """How long the kubelets took to act on the news of a pod, one entry for each admission."""
        self._late: list[_Late] = []
        self._judged = 0
        self._findings: list[str] = []

    def on_event(self, time_ns: int, actor: str, event: _Events) -> None:
        if isinstance(event, events.ActorStarted):
            # A process that is new has heard of nothing.
            known = self._nodes.pop(actor.removeprefix(KUBELET), None)
            if known is not None:
                self._node(actor.removeprefix(KUBELET)).unheard = known.unheard
        elif isinstance(event, events.PodPreempting):
            self._node(event.node).preempts_for = event.by_uid
        elif isinstance(event, events.PodTerminating):
            # It knows already, whatever news waits.
            node = self._node(event.node)
            node.stopping[event.uid] = None
            if event.uid in node.heard:
                node.heard[event.uid] = node.heard[event.uid][0], ()

    def _on_start(
        self, time_ns: int, actor: str, event: events.AdmissionDecided | events.PodRunning | events.ContainerStarted
    ) -> None:
        node = self._nodes.get(event.node) or self._node(event.node)
        if not isinstance(event, events.AdmissionDecided) or event.ok:
            self._judged += 1
            if event.uid in node.heard:
                self._begins(time_ns, event, node)
        if isinstance(event, events.AdmissionDecided):
            self._decided(time_ns, event, node)

    def _node(self, name: str) -> _Node:
        node = self._nodes.get(name)
        if node is None:
            node = self._nodes[name] = _Node()
        return node

    def _on_news(self, time_ns: int, actor: str, event: events.WatchListed | events.WatchDelivered) -> None:
        name = actor.removeprefix(KUBELET)
        node = self._nodes.get(name) or self._node(name)
        revisions = [event.rev] if isinstance(event, events.WatchListed) else event.revs
        node.delivered.extend([time_ns] * len(revisions))
        seen = revisions[-1]
        if not node.unheard:
            return
        for uid in [uid for uid, revision in node.unheard.items() if revision <= seen]:
            del node.unheard[uid]
            node.heard[uid] = time_ns, () if uid in node.stopping else tuple(node.delivered)

    def _decided(self, time_ns: int, event: events.AdmissionDecided | events.PodRunning, node: _Node) -> None:
        """The kubelet has acted on the news of this pod, and on what came before it."""
        has_preempted = event.uid == node.preempts_for
        self._took_ns.append(0 if has_preempted else max(0, time_ns - max(event.start, node.decided_ns)))
        node.decided_ns = time_ns
        node.acted_ns = max(node.acted_ns, event.start)
        node.delivered = [moment for moment in node.delivered if moment > node.acted_ns]
        if has_preempted:
            node.preempts_for = ""
            for uid, (heard_ns, _) in node.heard.items():
                if heard_ns > node.acted_ns:
                    node.heard[uid] = time_ns, (time_ns,)

    def pod_changes(self) -> int | None:
        return DEFINITION

    def on_pod(self, time_ns: int, revision: int, key: str, pod: core_v1_pb2.Pod | None) -> None:
        uid, node = self._uids.get(key, ("", ""))
        if uid and (pod is None or pod.metadata.uid != uid):
            del self._uids[key]
            if node:
                self._node(node).unheard[uid] = revision
        if pod is not None and MIRROR not in pod.metadata.annotations:
            self._uids[key] = pod.metadata.uid, pod.spec.nodeName

    def _begins(self, time_ns: int, event: _Events2, node: _Node) -> None:
        heard_ns, before = node.heard[event.uid]
        does = "admits" if isinstance(event, events.AdmissionDecided) else "starts containers of"
        text = (
            f"{seconds(time_ns)}: {event.node} {does} {event.pod}, of which it heard at {seconds(heard_ns)} that "
            "it is gone"
        )
        if isinstance(event, events.AdmissionDecided) and node.acted_ns > heard_ns:
            self._findings.append(text)
        else:
            self._late.append(_Late(len(self._took_ns), time_ns, heard_ns, before, text))

    def rolled_back(self, time_ns: int, history: History) -> None:
        """Who was gone may be there again."""
        self._uids.clear()
        for node in self._nodes.values():
            node.unheard.clear()
            node.heard.clear()
        for key, value in history.values.items():
            if key.startswith(POD_PREFIX):
                self.on_pod(time_ns, history.revision, key, parsed.pod(value))

    def result(self, history: History) -> Result:
        findings = [*self._findings, *(late.text for late in self._late if late.time_ns > self._until_ns(late))]
        good = f"{counted(self._judged, 'start')} of pods"
        return self.concluded(findings, self._judged, "no kubelet started a pod", good)

    def _until_ns(self, late: _Late) -> int:
        """When the kubelet has acted on what it heard, at the latest. The late admission itself proves nothing."""
        others = (took_ns for place, took_ns in enumerate(self._took_ns) if place != late.place)
        each_ns, until_ns = _SLOWER * max(others, default=0), 0
        for moment in late.delivered:
            until_ns = max(until_ns, moment) + each_ns
        return max(until_ns, late.heard_ns + _START_NS)
