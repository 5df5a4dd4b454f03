"""Counters from the events of a run (queues, requests, watch lag), and what befell nodes and actors."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from kemu.emulated.objects.amounts import quantities, requests
from kemu.emulated.objects.pods import pod_phases
from kemu.lab.telemetry.perfetto.timelines import FAULTS, Instant, Slice, Timeline, Track
from kemu.messages.k8s import core_v1_pb2
from kemu.runtime.runlog import events
from kemu.runtime.runlog.events import handlers

_POD_PREFIX = "/registry/pods/"
_NODE_PREFIX = "/registry/nodes/"
_SHOWN = (requests.CPU, requests.MEMORY)
_CPU, _MEMORY = "requested cpu", "requested memory"
_EVENTS_OF_ACTORS = {
    events.ActorCrashed.KIND: "crashed",
    events.ActorExited.KIND: "exited",
    events.ActorFailed.KIND: "failed",
}


class Levels:
    """``feed`` it every event, then ``finish``."""

    def __init__(self, timeline: Timeline) -> None:
        self._timeline = timeline
        self._written_ns: dict[int, int] = {}
        """When each revision was written."""
        self._pods: dict[str, tuple[str, dict[str, int]]] = {}
        """By key: the node of a pod that counts there, and what it requests."""
        self._used: dict[str, dict[str, int]] = {}
        """By node: what its pods request."""
        self._values: dict[str, bytes] = {}
        """Values of pods, as the store has them."""
        self._undo: list[tuple[int, str, bytes | None]] = []
        """Revision, key and the value before."""
        self._allocatable: dict[str, dict[str, int]] = {}
        """By node: the first that its kubelet tells."""
        self._open: dict[str, Slice] = {}
        """By what: faults by id, conditions of nodes, machines that are off."""
        self._faults: dict[str, str] = {}
        """Kinds of the faults in force, by id."""
        self._handlers: dict[str, Callable[[int, str, Mapping[str, Any]], None]] = handlers.of(self)

    def feed(self, time_ns: int, actor: str, kind: str, data: Mapping[str, Any]) -> None:
        if time_ns > self._timeline.end_ns:
            self._timeline.end_ns = time_ns
        handler = self._handlers.get(kind)
        if handler is not None:
            handler(time_ns, actor, events.typed(kind, data))
        elif kind in _EVENTS_OF_ACTORS:
            track = self._timeline.of_actor(actor).track("faults", 20)
            track.instants.append(Instant(_EVENTS_OF_ACTORS[kind], time_ns, "fault", _plain(data)))

    def finish(self) -> None:
        for one in self._open.values():
            one.end_ns = self._timeline.end_ns
        self._name_requests()
        for process in self._timeline.processes.values():
            for track in list(process.tracks.values()):
                if track.name.startswith("queue "):
                    _count(track, process.counter(f"pods in {track.name}", 5))

    # --- requests -----------------------------------------------------------------------------------------------------

    def _on_txn(self, time_ns: int, actor: str, event: events.Transaction) -> None:
        revision = event.rev
        self._written_ns[revision] = time_ns
        for op, key, value, *_ in event.changes:
            if key.startswith(_POD_PREFIX):
                self._undo.append((revision, key, self._values.get(key)))
                self._pod(time_ns, key, None if op == 1 else value)
            elif op == 0 and key.startswith(_NODE_PREFIX) and not self._allocatable.get(key[len(_NODE_PREFIX) :]):
                name = key[len(_NODE_PREFIX) :]
                node = core_v1_pb2.Node.FromString(value)
                self._allocatable[name] = requests.resource_list(node.status.allocatable)
                self._sample(time_ns, name, self._used.setdefault(name, {}))

    def _on_recovered(self, time_ns: int, actor: str, event: events.StoreRecovered) -> None:
        """The store may have lost its latest revisions."""
        while self._undo and self._undo[-1][0] > event.rev:
            _, key, value = self._undo.pop()
            self._pod(time_ns, key, value)

    def _pod(self, time_ns: int, key: str, value: bytes | None) -> None:
        before = self._pods.pop(key, None)
        if value is None:
            self._values.pop(key, None)
        else:
            self._values[key] = value
            pod = core_v1_pb2.Pod.FromString(value)
            if pod.spec.nodeName and not pod_phases.is_terminal(pod):
                self._pods[key] = pod.spec.nodeName, requests.pod_requests_on_node(pod)
        after = self._pods.get(key)
        if before == after:
            return
        for found, sign in ((before, -1), (after, 1)):
            if found is not None:
                used = self._used.setdefault(found[0], {})
                used[requests.PODS] = used.get(requests.PODS, 0) + sign
                for name in _SHOWN:
                    used[name] = used.get(name, 0) + sign * found[1].get(name, 0)
                self._sample(time_ns, found[0], used)

    def _sample(self, time_ns: int, node: str, used: Mapping[str, int]) -> None:
        process = self._timeline.node(node)
        _add(process.counter(_CPU, 10), time_ns, used.get(requests.CPU, 0) / 1000)
        _add(process.counter(_MEMORY, 11, "bytes"), time_ns, used.get(requests.MEMORY, 0))
        _add(process.counter("pods that hold room", 12), time_ns, used.get(requests.PODS, 0))

    def _name_requests(self) -> None:
        """Say on the counters how much there is."""
        for node, room in self._allocatable.items():
            tracks = self._timeline.node(node).tracks
            tracks[_CPU].name = f"{_CPU} (of {room.get(requests.CPU, 0) / 1000:g})"
            tracks[_MEMORY].name = f"{_MEMORY} (of {quantities.shortest(room.get(requests.MEMORY, 0))})"

    # --- watches ------------------------------------------------------------------------------------------------------

    def _on_watch_events(self, time_ns: int, actor: str, event: events.WatchDelivered) -> None:
        """A bookmark is as old as the last change of its kind: that is no lag."""
        told = (revision for revision, kind in zip(event.revs, event.types, strict=True) if kind != "B")
        known = [self._written_ns[revision] for revision in told if revision in self._written_ns]
        if known:
            lag = self._timeline.of_actor(actor).counter("watch lag", 15, "ns")
            lag.samples.append((time_ns, time_ns - min(known)))

    # --- faults -------------------------------------------------------------------------------------------------------

    def _on_fault(self, time_ns: int, actor: str, event: events.FaultBegun) -> None:
        fault, what = event.id, event.what
        self._faults[fault] = what
        whom = [*event.nodes, *event.actors][:3]
        track = self._timeline.process(FAULTS).track(FAULTS)
        self._begin(fault, f"{what} {', '.join(whom)}".rstrip(), time_ns, track, event)

    def _on_fault_ended(self, time_ns: int, actor: str, event: events.FaultEnded) -> None:
        self._end(event.id, time_ns)

    def _on_hit(self, time_ns: int, actor: str, event: events.FaultHit) -> None:
        what, struck, peer = self._faults.get(event.id, "fault"), event.actor, event.peer
        track = self._timeline.of_actor(struck).track("faults", 20)
        name = f"{what} towards {peer}" if peer else what
        track.instants.append(Instant(name, time_ns, "fault", _plain(event)))

    def _on_machine_off(self, time_ns: int, actor: str, event: events.MachineOff) -> None:
        node = event.node
        self._begin(f"machine {node}", "machine off", time_ns, self._timeline.node(node).track("machine", 3), event)

    def _on_machine_on(self, time_ns: int, actor: str, event: events.MachineOn) -> None:
        self._end(f"machine {event.node}", time_ns)

    def _on_pressure(self, time_ns: int, actor: str, event: events.PressureChanged) -> None:
        node, conditions = event.node, event.conditions
        self._end(f"pressure {node}", time_ns)
        if conditions:
            track = self._timeline.node(node).track("pressure", 4)
            self._begin(f"pressure {node}", ", ".join(conditions), time_ns, track, event)

    def _on_tainted(self, time_ns: int, actor: str, event: events.NodeTainted) -> None:
        track = self._timeline.node(event.node).track("taints", 5)
        changes = [*(f"+{taint}" for taint in event.add), *(f"-{taint}" for taint in event.remove)]
        track.instants.append(Instant(" ".join(changes), time_ns, "node", _plain(event)))

    def _on_user_event(self, time_ns: int, actor: str, event: events.UserActed) -> None:
        track = self._timeline.of_actor(actor).track("events of the scenario")
        track.instants.append(Instant(str(event.what), time_ns, "user", _plain(event)))

    def _begin(self, key: str, name: str, time_ns: int, track: Track, data: Mapping[str, Any]) -> None:
        self._end(key, time_ns)
        made = self._open[key] = Slice(name, time_ns, time_ns, "fault", _plain(data))
        track.slices.append(made)

    def _end(self, key: str, time_ns: int) -> None:
        one = self._open.pop(key, None)
        if one is not None:
            one.end_ns = time_ns


def _add(counter: Track, time_ns: int, value: float) -> None:
    """One sample for an instant: its last."""
    if counter.samples and counter.samples[-1][0] == time_ns:
        counter.samples.pop()
    if not counter.samples or counter.samples[-1][1] != value:
        counter.samples.append((time_ns, value))


def _count(waits: Track, counter: Track) -> None:
    """How many slices there are at a time."""
    steps = [step for one in waits.slices for step in ((one.start_ns, 1), (one.end_ns, -1))]
    level = 0
    for time_ns, step in sorted(steps):
        level += step
        _add(counter, time_ns, level)


def _plain(data: Mapping[str, Any]) -> dict[str, Any]:
    """The part of an event's data that an argument can be."""
    return {
        key: value if isinstance(value, (str, int, float)) else [str(each) for each in value]
        for key, value in data.items()
        if isinstance(value, (str, int, float, list, tuple))
    }
