"""A run as a story can be told of it: its steps by pod, what was unheard at each decision, and what held it back."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass

from kemu.emulated.objects import resources
from kemu.lab.tell import devices
from kemu.lab.tell.explaining import knowledge
from kemu.lab.tell.explaining.knowledge import CLAIMS, NODES, PODS, Change, Knowledge, Moment, PodState
from kemu.lab.tell.explaining.names import Names
from kemu.lab.tell.explaining.recordings import Flight, Recording
from kemu.lab.tell.explaining.steps import Step, StepMaker
from kemu.runtime.holds import MessagePattern
from kemu.runtime.runlog.events import WatchDelivered
from kemu.runtime.runlog.frames import Entry
from kemu.runtime.words import listed, short

_THOUGHT = ("attempt scheduled", "attempt unschedulable", "preemption", "created", "deletes")
"""Steps that depend on what their actor knows of other objects."""
_USUAL_RESOURCES = ("cpu", "memory", "ephemeral-storage", "pods")


@dataclass(frozen=True)
class Free:
    """How much of a resource a scheduler counted on a node, and how much there was."""

    node: str
    resource: str
    counted: int
    wanted: int
    true: int


class Telling:
    """Telling of one run."""

    def __init__(self, recording: Recording) -> None:
        self.recording = recording
        self.events = recording.events
        self.names = Names(recording.events)
        self.known = Knowledge(recording.events)
        self._step_maker = StepMaker(recording.scenario, recording.events, self.known, self.names)
        self.steps = self._step_maker.steps()
        self.of_pod: dict[str, list[Step]] = {}
        """By ``namespace/name``, in their order."""
        for step in self.steps:
            for key in dict.fromkeys((step.pod, *step.others)):
                if key:
                    self.of_pod.setdefault(key, []).append(step)
        self.signs = Counter(step.sign for step in self.steps)
        self._of_change = {step.change: step for step in self.steps if step.change is not None}
        self.held = {
            index: flight
            for index in range(len(recording.scenario.holds))
            if (flight := _held(recording.flights, recording.scenario.holds[index].message, index)) is not None
        }
        """The flights that each hold kept, by its place."""

    def step_of(self, change: Change) -> Step | None:
        """The step that tells of a change, if it is worth telling."""
        return self._of_change.get(change)

    def write(self, change: Change) -> Step:
        """A step for any change."""
        return self._of_change.get(change) or self._step_maker.revision(change)

    # --- what was not known ------------------------------------------------------------------------------------------

    def effect(self, step: Step) -> Moment:
        """When what a decision led to was written; the decision itself where nothing was."""
        if step.what == "attempt scheduled":
            for later in self.of_pod.get(step.pod, ()):
                change = later.change
                pod = change.pod if change is not None else None
                if pod is not None and later.at > step.at and pod.node == step.node:
                    return later.at
        return step.at

    def unheard(self, step: Step) -> list[Change]:
        """What had changed by the time when the decision took effect, its actor had not known, and mattered to it.

        That is: news that a hold kept from it; changes of its own pod and of victims; of the node that it chose, a
        taint, and of the pods there, if with them there was not room enough; for a decision against all nodes, what
        made room.
        """
        if step.what not in _THOUGHT:
            return []
        until = self.effect(step)
        own = {PODS + key for key in (step.pod, *step.others) if key}
        has_no_room = self.free(step) is not None
        found = []
        for key in self.known.of_key:
            if not key.startswith((PODS, NODES, CLAIMS)) or (step.what == "created" and key in own):
                continue
            for change in self.known.unheard(step.actor, key, step.begun, until):
                # A controller that does not wait until it sees what it has made may make it twice.
                is_own = self.known.writer(change.revision) == step.actor and step.what != "created"
                if not knowledge.told(change) or is_own or change.at == until:
                    continue
                if change.at > step.at and key in own and "bound to" not in knowledge.told(change):
                    continue
                is_held = change.at <= step.at and self.hold_of(step.actor, change.revision) is not None
                if key in own or self._matters(change, step, has_no_room) or (is_held and self._is_there(change, step)):
                    found.append(change)
        return sorted(found, key=lambda change: change.revision)

    def _matters(self, change: Change, step: Step, has_no_room: bool) -> bool:
        clause = knowledge.told(change)
        if step.what == "attempt scheduled":
            if change.key.startswith(CLAIMS):
                return self._takes_devices(change, step)
            if change.key.startswith(NODES):
                return change.name == step.node and "tainted" in clause
            return has_no_room and self._is_there(change, step) and "bound to" in clause
        if step.what == "attempt unschedulable":
            return change.at <= step.at and any(
                word in clause for word in ("removed", "ended", "joined", "lost a taint")
            )
        if step.what == "created":
            is_own = self.known.writer(change.revision) == step.actor
            return is_own and change.name != short(step.pod) and "was created" in clause
        return False

    def _takes_devices(self, change: Change, step: Step) -> bool:
        """Whether it gave a claim of other pods what the pod of the step got, too, or a part of the same."""
        own = {one.change for one in self.of_pod.get(step.pod, ()) if one.what == "devices given"}
        got = [device for one in own if one is not None for device in one.given]
        return change not in own and any(self.known.compete(one, other) for one in change.given for other in got)

    def _is_there(self, change: Change, step: Step) -> bool:
        """Whether the pod comes to the node of the step, or leaves it."""
        if change.key.startswith(NODES):
            return step.node in ("", change.name)
        pods = [one.pod for one in (change, change.before) if one is not None and one.pod is not None]
        places = [place for pod in pods for place in (pod.node, pod.nominated) if place]
        if not step.node:
            return bool(places)
        words = ("bound", "removed", "ended", "terminating", "nominat", "created on", "resized")
        return step.node in places and any(word in knowledge.told(change) for word in words)

    def free(self, step: Step) -> Free | None:
        """The resource that a scheduler thought was there when it chose the node of a step, and was not."""
        pod = self._pod_of(step)
        node = self.known.truth(NODES + step.node, step.at)
        if pod is None or node is None or node.node is None or step.what != "attempt scheduled":
            return None
        counted = dict(self.known.on_node(step.actor, step.node, step.begun))
        for assumed in self._assumed(step):
            change = self.known.truth(PODS + assumed.pod, step.at)
            if change is not None and change.pod is not None:
                counted.setdefault(PODS + assumed.pod, change.pod)
        true = dict(self.known.on_node("", step.node, self.effect(step)))
        true.pop(PODS + step.pod, None)
        counted.pop(PODS + step.pod, None)
        wanted = {**pod.requests, "pods": 1}
        for resource in [*_USUAL_RESOURCES, *(one for one in wanted if one not in _USUAL_RESOURCES)]:
            want = wanted.get(resource, 0)
            room = node.node.allocatable.get(resource, 0)
            believed, left = room - _sum(counted, resource), room - _sum(true, resource)
            if want and left < want <= believed:
                return Free(step.node, resource, believed, want, left)
        return None

    def room(self, step: Step) -> Free | None:
        """The node with enough room for a pod whose attempt found too little anywhere; None: there is none."""
        pod = self._pod_of(step)
        message = str(step.facts.get("message", ""))
        if step.what != "attempt unschedulable" or pod is None or "Insufficient" not in message:
            return None
        resource = message.partition("Insufficient ")[2].partition(",")[0].partition(".")[0].strip()
        wanted = pod.requests.get(resource, 0)
        for key in self.known.of_key:
            change = self.known.truth(key, step.begun) if key.startswith(NODES) else None
            node = change.node if change is not None else None
            if change is None or node is None or node.taints or node.unschedulable or node.unready:
                continue
            there = dict(self.known.on_node("", change.name, step.begun))
            if all(node.allocatable.get(name, 0) - _sum(there, name) >= most for name, most in pod.requests.items()):
                left = node.allocatable.get(resource, 0) - _sum(there, resource)
                return Free(change.name, resource, 0, wanted, left)
        return None

    def who_holds(self, step: Step) -> str:
        """Of an attempt that found no free device, who held them: the rest of a sentence."""
        pod = self.recording.execution.history.pods.get(step.uid)
        if step.what != "attempt unschedulable" or pod is None:
            return ""
        fact = next((one for one in pod.facts if one.what == "unschedulable" and one.time_ns == step.at.time_ns), None)
        return devices.who_holds(self.recording.execution.history, pod, fact) if fact is not None else ""

    def _assumed(self, step: Step) -> list[Step]:
        """The scheduler's own earlier choices of that node: it counts them before they are bound."""
        return [
            one
            for one in self.steps
            if one.actor == step.actor
            and one.what == "attempt scheduled"
            and one.node == step.node
            and one.at < step.at
            and one.pod != step.pod
        ]

    def _pod_of(self, step: Step) -> PodState | None:
        change = self.known.truth(PODS + step.pod, step.at)
        return change.pod if change is not None else None

    # --- words -------------------------------------------------------------------------------------------------------

    def changed(self, change: Change) -> str:
        """A change as a clause: ``blue-pod was bound to node-1``."""
        key = change.key.removeprefix(PODS)
        state = change.pod or (change.before.pod if change.before is not None else None)
        name = self.names.pod(key, state.uid if state is not None else "") if key != change.key else change.name
        if change.key.startswith(CLAIMS):
            name = f"claim {name}"
        return f"{name} {knowledge.told(change) or 'changed'}"

    def told(self, place: int) -> str:
        """An event of the log in words: a step, or what an actor hears."""
        event = self.events[place]
        step = next((step for step in self.steps if step.at.place == place), None)
        return self.hears(event) or (step.text if step is not None else f"{self.names.actor(event[1])} logs {event[2]}")

    def hears(self, event: Entry) -> str:
        """``scheduler red hears that blue-pod was bound to node-1``; empty: nothing that has words."""
        news = event.data
        if not isinstance(news, WatchDelivered):
            return ""
        plural = news.watch.partition("#")[0]
        changes = [change for revision in news.revs for change in self.known.by_revision.get(revision, ())]
        told = [change for change in changes if resources.plural_of(change.key) == plural and knowledge.told(change)]
        clauses = dict.fromkeys(map(self.changed, told))
        return f"{self.names.actor(event.actor)} hears that {listed(clauses)}" if clauses else ""

    def hold_of(self, actor: str, revision: int) -> int | None:
        """The hold that kept the news of that revision from the actor."""
        for index, flight in self.held.items():
            if flight.target != actor or not 0 < flight.revision <= revision:
                continue
            if flight.revision == revision or self._behind(flight, actor, revision):
                return index
        return None

    def _behind(self, flight: Flight, actor: str, revision: int) -> bool:
        """Whether the news waited behind what was held."""
        return any(
            other.revision == revision
            and (other.source, other.target) == (flight.source, actor)
            and other.number >= flight.number
            and other.due_ns < flight.arrived_ns
            for other in self.recording.flights
        )


def _sum(pods: dict[str, PodState], resource: str) -> int:
    return len(pods) if resource == "pods" else sum(pod.requests.get(resource, 0) for pod in pods.values())


def _held(flights: list[Flight], pattern: MessagePattern, index: int) -> Flight | None:
    """The event of a message with several that the hold names."""
    kept = [flight for flight in flights if index in flight.holds]
    return next((flight for flight in kept if pattern.fits(flight.label)), None)


def pod_key(name: str) -> str:
    """``namespace/name`` of a name as people write it."""
    return name if "/" in name else f"default/{name}"
