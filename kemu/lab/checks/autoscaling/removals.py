"""The check that a node goes only where its pods can run elsewhere."""

from __future__ import annotations

from typing import ClassVar

from kemu.lab.checks.autoscaling import machines
from kemu.lab.checks.autoscaling.machines import AUTOSCALER, Amounts, Machines
from kemu.lab.checks.history import NODE_PREFIX, POD_PREFIX, History
from kemu.lab.checks.limits import Limits
from kemu.lab.checks.results import Fold, LimitedCheck, Result, seconds
from kemu.lab.checks.scheduling import rooms
from kemu.runtime.runlog.events import ActorStarted, ScaleDownBegun, ScaleDownEnded, WatchListed
from kemu.runtime.words import counted

_Events = ScaleDownBegun | ScaleDownEnded | ActorStarted | WatchListed


class NodesGoWhenTheirPodsFitElsewhere(LimitedCheck):
    """The cluster autoscaler removes a node only if each pod on it has room on another one, and all of them together.

    Judged by what it had seen when it decided: the revisions of pods and nodes that it states. Room on nodes that are
    being removed does not count. Pods of DaemonSets, mirror pods, pods below the cut-off and pods that are being
    deleted need no other place. Labels, taints and resources are necessary, so whatever else may count, a node that
    goes rightly is never blamed. After the store lost revisions, nothing is judged until the autoscaler has listed
    again.
    """

    id: ClassVar[str] = "nodes-go-when-their-pods-fit-elsewhere"
    folds: ClassVar[tuple[type[Fold], ...]] = (Machines,)

    def __init__(self, limits: Limits) -> None:
        self._autoscaled = limits.autoscaled
        self._going: dict[str, None] = {}
        """Nodes whose removal is under way."""
        self._unseen: dict[str, None] = {}
        """Resources of which the autoscaler knows a history that has been lost."""
        self._judged = 0
        self._findings: list[str] = []

    def given(self, *folds: Machines) -> None:
        (self._machines,) = folds

    def on_event(self, time_ns: int, actor: str, event: _Events) -> None:
        if self._autoscaled is None:
            return
        if isinstance(event, WatchListed):
            if actor.startswith(AUTOSCALER):
                self._unseen.pop(event.resource, None)
        elif isinstance(event, ActorStarted):
            if actor.startswith(AUTOSCALER):
                self._going.clear()
        elif isinstance(event, ScaleDownEnded):
            self._going.pop(event.node, None)
        else:
            self._going[event.node] = None
            if not self._unseen:
                self._judge(time_ns, event)

    def rolled_back(self, time_ns: int, history: History) -> None:
        self._unseen = {"pods": None, "nodes": None}

    def _judge(self, time_ns: int, event: ScaleDownBegun) -> None:
        assert self._autoscaled is not None
        values = _as_of(self._machines.history, event.pods_rev, event.nodes_rev)
        cut_off = self._autoscaled.flags.cut_off
        nodes, on = machines.occupied(
            machines.stored(values, NODE_PREFIX), machines.stored(values, POD_PREFIX), cut_off
        )
        self._judged += 1
        moving = [
            pod
            for pod in on.get(event.node, ())
            if not machines.belongs_to_its_node(pod) and not pod.metadata.HasField("deletionTimestamp")
        ]
        staying = [node for name, node in nodes.items() if name not in self._going]
        wanted: Amounts = {}
        useful: dict[str, machines.Node] = {}
        for pod in moving:
            own = machines.wanted_by(pod)
            suiting = [node for node in staying if rooms.suits_node(node.value, pod.spec)]
            if not any(node.has_room(own) for node in suiting):
                self._blame(time_ns, event, f"{pod.metadata.namespace}/{pod.metadata.name} fits on no other node")
                return
            machines.add(wanted, own)
            useful.update((node.value.metadata.name, node) for node in suiting)
        free: Amounts = {}
        for node in useful.values():
            machines.add(free, {name: max(0, amount) for name, amount in node.free().items()})
        short = [name for name, amount in wanted.items() if amount > free.get(name, 0)]
        if short:
            self._blame(time_ns, event, f"the others have not enough {short[0]} for its {counted(len(moving), 'pod')}")

    def _blame(self, time_ns: int, event: ScaleDownBegun | ScaleDownEnded, why: str) -> None:
        self._findings.append(f"{seconds(time_ns)}: {AUTOSCALER} removes {event.node}, and {why}")

    def result(self, history: History) -> Result:
        good = f"{counted(self._judged, 'node')} removed"
        return self.concluded(self._findings, self._judged, "no node was removed by an autoscaler", good)


def _as_of(history: History, pods: int, nodes: int) -> dict[str, bytes]:
    """What the store had at these revisions."""
    values = dict(history.values)
    for change in reversed(history.changes):
        if change.revision <= min(pods, nodes):
            break
        is_pod, is_node = change.key.startswith(POD_PREFIX), change.key.startswith(NODE_PREFIX)
        if (is_pod and change.revision > pods) or (is_node and change.revision > nodes):
            if change.previous is None:
                values.pop(change.key, None)
            else:
                values[change.key] = change.previous
    return values
