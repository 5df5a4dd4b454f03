"""The check that pods which wait are tried: new ones, and those for which there is room again."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar

from kemu.emulated.objects.amounts import requests
from kemu.emulated.objects.pods import pod_phases
from kemu.lab.checks.history import NODE_PREFIX, POD_PREFIX, STATUS, History, parsed
from kemu.lab.checks.history.outages import Outages
from kemu.lab.checks.limits import DEFAULT, MAX_WATCH_DELAY_NS, SECOND_NS, Limits
from kemu.lab.checks.results import Fold, LimitedCheck, Result, seconds
from kemu.lab.checks.scheduling import rooms
from kemu.messages.k8s import core_v1_pb2
from kemu.runtime.runlog import events
from kemu.runtime.runlog.events import handlers
from kemu.runtime.words import counted

SCHEDULER = "scheduler/"
_GROUP_PREFIX = "/registry/podgroups/"
_ROUNDING_NS = SECOND_NS
"""Backoffs are over in whole seconds."""
_AVOIDS = "AvoidEvictedNode"
"""A switch by which a node that has room is none for a while: who was turned away so does not wait for room alone."""
_SLACK_NS = SECOND_NS
"""For which a scheduler may be idle before it takes a pod."""


@dataclass(slots=True)
class _Preemption:
    """While its victims are being deleted a pod is not tried; then the last of them that goes wakes it."""

    asked: dict[str, None]
    """UIDs of victims that it has not asked to go yet."""
    staying: dict[str, None]
    """UIDs of those of which the scheduler was not told that they are gone, or could not be deleted."""
    ended_ns: int = 0
    """When it had asked them all, so far."""
    over_ns: int = 0
    """When they were gone, so far."""


@dataclass(slots=True)
class _Scheduler:
    since_ns: int | None
    """When it began to work; None: it does not lead."""
    elects: bool = False
    """Whether it works only while it leads: it has been elected before."""
    names: dict[str, None] = field(default_factory=dict)
    """The schedulerNames of the pods that it has tried."""
    seen: dict[str, tuple[list[int], list[int]]] = field(default_factory=lambda: {"pods": ([], []), "nodes": ([], [])})
    """By resource: which revisions its watch had reached, and when."""
    starts: list[int] = field(default_factory=list)
    ends: list[int] = field(default_factory=list)
    """The ends of its attempts, one after the other."""
    busy: list[int] = field(default_factory=lambda: [0])
    """How long they took up to each of them."""
    longest_ns: int = 0
    """The longest of its attempts."""
    writes: str = ""
    """The pod of its last attempt, if that failed for a new reason, or the group of that pod: until what became of it
    is written it tries no pod."""
    tries: dict[str, list[tuple[int, int]]] = field(default_factory=dict)
    """By UID of a pod that waits: beginning and end of each attempt."""
    placed: dict[str, str] = field(default_factory=dict)
    """By UID, the node of a pod that is placed and not bound."""
    preempts: dict[str, _Preemption] = field(default_factory=dict)
    """By UID of a pod that waits: its last preemption."""

    def saw_ns(self, resource: str, revision: int) -> int | None:
        revisions, times = self.seen[resource]
        at = bisect_left(revisions, revision)
        return times[at] if at < len(times) else None

    def had_seen(self, resource: str, time_ns: int) -> int:
        revisions, times = self.seen[resource]
        at = bisect_left(times, time_ns)
        return revisions[at - 1] if at else 0

    def forget(self, revision: int) -> None:
        """The store has lost what came after that revision."""
        self.tries.clear()
        self.preempts.clear()
        self.placed.clear()
        for revisions, times in self.seen.values():
            at = bisect_right(revisions, revision)
            del revisions[at:], times[at:]

    def idle_ns(self, begin_ns: int, end_ns: int) -> int:
        """How much of this time passed between its attempts."""
        first, last = bisect_left(self.ends, begin_ns), bisect_left(self.starts, end_ns)
        busy = 0
        if first < last:
            busy = self.busy[last] - self.busy[first]
            busy -= max(0, begin_ns - self.starts[first]) + max(0, self.ends[last - 1] - end_ns)
        idle_ns = end_ns - begin_ns - busy
        if self.writes and end_ns > self.ends[-1]:
            return idle_ns - (end_ns - max(begin_ns, self.ends[-1]))
        if self.ends and end_ns > self.ends[-1] > begin_ns and end_ns - self.ends[-1] <= self.longest_ns:
            idle_ns -= end_ns - self.ends[-1]  # It may try a pod: an attempt is told when it ends.
        return idle_ns


@dataclass(slots=True)
class _Pod:
    uid: str
    name: str
    scheduler_name: str
    value: Any
    wanted: dict[str, int]
    is_judged: bool
    revision: int
    """Since which a scheduler may try it."""
    waits: bool
    said: tuple[int, str] = (0, "")
    """Why it was not scheduled, according to its status, and since which revision that stands there."""


class PodsThatFitAreTried(LimitedCheck):
    """A scheduler tries each new pod, and each pod for which there is room again, as soon as backoff and others let it.

    There is room when a pod leaves a node, a node comes or changes, or a binding fails. The time counts from when the
    watches of the scheduler have delivered that; it is the longest backoff after the pod's last attempt, and one second
    in which the scheduler neither tries anybody else nor waits for the write of what became of that
    (``MoveAllToActiveOrBackoffQueue``). Only pods whose place is decided by resources, labels and taints count as
    fitting; what is placed or nominated takes room. A pod for which victims are being deleted is not tried meanwhile;
    what makes room in that time wakes it when the last victim is gone (``isPodRunningPreemption``). A scheduler with
    plugins of its own that decide who is tried is not asked.
    """

    id: ClassVar[str] = "pods-that-fit-are-tried"
    folds: ClassVar[tuple[type[Fold], ...]] = (Fold,)
    actors: ClassVar[Mapping[type[events.Event], str]] = {
        events.WatchListed: SCHEDULER,
        events.WatchDelivered: SCHEDULER,
        events.WritesAcknowledged: SCHEDULER,
    }
    keys: ClassVar[tuple[str, ...]] = (NODE_PREFIX,)

    def __init__(self, limits: Limits = DEFAULT) -> None:
        self._slack_ns = _SLACK_NS + limits.max_watch_delay_ns - min(limits.max_watch_delay_ns, MAX_WATCH_DELAY_NS)
        self._backoff_ns = limits.max_backoff_ns + _ROUNDING_NS
        self._schedulers: dict[str, _Scheduler] = {}
        self._pods: dict[str, _Pod] = {}
        self._uid_of_key: dict[str, str] = {}
        self._gone: dict[str, int] = {}
        """By UID of a pod that is gone: since which revision."""
        self._placed: dict[str, int] = {}
        """By UID: how many schedulers have placed the pod and not bound it yet."""
        self._rooms = rooms.Rooms(self._closing)
        self._outages = Outages()
        self._extended: dict[str, None] = {}
        """Schedulers that ask extenders."""
        self._ended = ""
        self._findings: list[str] = []
        self._judged = 0
        self._handlers = handlers.of(self)

    @classmethod
    def is_asked(cls, limits: Limits) -> bool:
        return not limits.own_queues

    def given(self, *folds: Fold) -> None:
        self._history = folds[0].history

    def taker(self, kind: str) -> Callable[[int, str, Any], None] | None:
        return None if self._ended else self._handlers[kind]

    def _on_run_ended(self, time_ns: int, actor: str, event: events.RunEnded) -> None:
        self._end(event)

    def _on_extender(self, time_ns: int, actor: str, event: events.ExtenderAsked) -> None:
        self._extended[actor] = None

    def _on_outage(
        self, time_ns: int, actor: str, event: events.FaultBegun | events.FaultEnded | events.ConnectionLost
    ) -> None:
        self._outages.on_event(time_ns, actor, event)

    def _on_life(
        self, time_ns: int, actor: str, event: events.ActorStarted | events.ActorStopped | events.ActorCrashed
    ) -> None:
        self._outages.on_event(time_ns, actor, event)
        self._begins_anew(time_ns, actor, event)

    def _on_election(
        self, time_ns: int, actor: str, event: events.LeaseAcquired | events.LeaseLost | events.LeaseReleased
    ) -> None:
        self._begins_anew(time_ns, actor, event)

    def _begins_anew(self, time_ns: int, actor: str, event: events.Event) -> None:
        """A scheduler, which has forgotten what it placed."""
        if not actor.startswith(SCHEDULER):
            return
        known = self._schedulers.get(actor)
        is_election = not isinstance(event, (events.ActorStarted, events.ActorStopped, events.ActorCrashed))
        elects = is_election or (known is not None and known.elects)
        leads = isinstance(event, events.LeaseAcquired) or (isinstance(event, events.ActorStarted) and not elects)
        anew = self._schedulers[actor] = _Scheduler(time_ns if leads else None, elects)
        if known is not None:
            anew.names = known.names
            if is_election:
                anew.seen = known.seen
            for uid, node in known.placed.items():
                self._no_longer_placed(uid)
                self._give_up(time_ns, uid, node)

    def rolled_back(self, time_ns: int, history: History) -> None:
        """Forget what waits now, as it is not known what schedulers had heard of it; what comes later counts again."""
        self._rooms = rooms.Rooms(self._closing)
        for known in (self._pods, self._uid_of_key, self._gone, self._placed):
            known.clear()
        schedulers, self._schedulers = self._schedulers, {}
        for scheduler in schedulers.values():
            scheduler.forget(history.revision)
        for key, value in history.values.items():
            if key.startswith(POD_PREFIX):
                self.on_pod(time_ns, history.revision, key, parsed.pod(value))
            elif key.startswith(NODE_PREFIX):
                self._rooms.node_changed(time_ns, history.revision, key.removeprefix(NODE_PREFIX), value)
        self._schedulers = schedulers
        for pod in self._pods.values():
            pod.waits = False

    # --- what the store tells -----------------------------------------------------------------------------------------

    def _on_txn(self, time_ns: int, actor: str, event: events.Transaction) -> None:
        revision = event.rev
        for op, key, value, _create, _version in event.changes:
            if key.startswith(NODE_PREFIX):
                name = key.removeprefix(NODE_PREFIX)
                self._rooms.node_changed(time_ns, revision, name, value if op == 0 else None)

    def pod_changes(self) -> int | None:
        return None if self._ended else STATUS

    def on_pod(self, time_ns: int, revision: int, key: str, pod: core_v1_pb2.Pod | None) -> None:
        uid = pod.metadata.uid if pod is not None else ""
        before = self._uid_of_key.pop(key, "")
        if before and before != uid:
            self._leaves(time_ns, before)
            self._rooms.put(time_ns, revision, before, "", {})
            self._pods.pop(before, None)
            self._gone[before] = revision
        if pod is None:
            return
        self._uid_of_key[key] = uid
        known = self._pods.get(uid)
        spec, status = pod.spec, pod.status
        # Members of a group wait for one another, also where there is room for one of them; pods with claims, until the
        # scheduler has seen what a controller has made of their templates.
        is_gated = bool(spec.schedulingGates or spec.resourceClaims) or spec.HasField("schedulingGroup")
        if known is None:
            told = self._history.pods.get(uid)
            is_new = told is not None and told.facts[-1].what == "created"
            wanted = dict(told.requests if told is not None and is_new else requests.pod_requests(pod))
            wanted["pods"] = 1
            known = self._pods[uid] = _Pod(
                uid, key.removeprefix(POD_PREFIX), spec.schedulerName, pod, wanted, rooms.judged(pod), revision,
                waits=not is_gated,
            )  # fmt: skip
        elif pod.metadata.generation != known.value.metadata.generation:
            if known.waits and self._rooms.of(uid) is not None:
                self._leaves(time_ns, uid, but_waits=True)
            for resource, amount in requests.pod_requests(pod).items():
                known.wanted[resource] = max(amount, known.wanted.get(resource, 0))
        if is_gated:
            known.waits = False
        elif not known.waits and known.value.spec.schedulingGates:
            known.waits, known.revision = True, revision
        elif status.nominatedNodeName != known.value.status.nominatedNodeName and self._rooms.of(uid) is not None:
            self._leaves(time_ns, uid, but_waits=True)
            known.value = pod
            self._wait(time_ns, uid, known, (revision, revision))
        known.value = pod
        for condition in status.conditions:
            if condition.type == "PodScheduled":
                if condition.message != known.said[1]:
                    known.said = revision, condition.message
                break
        is_over = status.phase in pod_phases.TERMINAL
        if known.waits and (spec.nodeName or is_over or pod.metadata.HasField("deletionTimestamp")):
            self._leaves(time_ns, uid)
        if is_over:
            self._rooms.put(time_ns, revision, uid, "", {})
        elif spec.nodeName or status.nominatedNodeName or uid not in self._placed:
            # The end of a nomination wakes pods that are not more important (``updatePodInSchedulingQueue``).
            where = spec.nodeName or status.nominatedNodeName
            if where != self._rooms.where.get(uid, ""):
                self._rooms.put(time_ns, revision, uid, where, known.wanted, spec.priority)

    # --- what schedulers do -------------------------------------------------------------------------------------------

    def _on_preemption(self, time_ns: int, actor: str, event: events.PreemptionPlanned) -> None:
        victims = {uid: None for _key, uid, *_ in event.victims}
        if victims:
            scheduler = self._schedulers.setdefault(actor, _Scheduler(time_ns))
            scheduler.preempts[event.uid] = _Preemption(dict(victims), victims)

    def _on_victim(self, time_ns: int, actor: str, event: events.VictimDeleted) -> None:
        scheduler = self._schedulers.get(actor)
        preemption = scheduler.preempts.get(event.by_uid) if scheduler is not None else None
        if preemption is not None:
            preemption.asked.pop(event.uid, None)
            preemption.ended_ns = preemption.over_ns = time_ns
            if not event.ok:
                preemption.staying.pop(event.uid, None)

    def _woken_ns(self, scheduler: _Scheduler, uid: str, known_ns: int) -> int | None:
        """When a scheduler could try a pod, of whose room it knew then; None: not yet."""
        preemption = scheduler.preempts.get(uid)
        if preemption is None:
            return known_ns
        if preemption.asked:
            return None
        if known_ns > preemption.ended_ns:
            return known_ns
        for victim in list(preemption.staying):
            gone = self._gone.get(victim)
            seen_ns = scheduler.saw_ns("pods", gone) if gone is not None else None
            if seen_ns is None:
                return None
            del preemption.staying[victim]
            preemption.over_ns = max(preemption.over_ns, seen_ns)
        return preemption.over_ns

    def _on_news(self, time_ns: int, actor: str, event: events.WatchListed | events.WatchDelivered) -> None:
        scheduler = self._schedulers.get(actor)
        if scheduler is None:
            scheduler = self._schedulers[actor] = _Scheduler(time_ns)
        revision = event.rev if isinstance(event, events.WatchListed) else event.revs[-1]
        seen = scheduler.seen.get(event.watch.partition("#")[0])
        if seen is not None and (not seen[0] or revision > seen[0][-1]):
            seen[0].append(revision)
            seen[1].append(time_ns)
        if isinstance(event, events.WatchListed) and not scheduler.starts and scheduler.since_ns is not None:
            scheduler.since_ns = time_ns  # It begins when all of its caches are filled.

    def _on_attempt(self, time_ns: int, actor: str, event: events.PodAttempted) -> None:
        uid, start_ns = event.uid, event.start
        scheduler = self._schedulers.get(actor)
        if scheduler is None:
            scheduler = self._schedulers[actor] = _Scheduler(time_ns)
        if scheduler.writes.startswith(_GROUP_PREFIX):
            self._written(start_ns, scheduler)  # also what did not have to be written
        scheduler.starts.append(start_ns)
        scheduler.ends.append(time_ns)
        scheduler.busy.append(scheduler.busy[-1] + time_ns - start_ns)
        scheduler.longest_ns = max(scheduler.longest_ns, time_ns - start_ns)
        pod = self._pods.get(uid)
        is_told = event.result in ("scheduled", "skipped")
        if pod is not None and pod.said[1] == event.message:
            is_told = is_told or scheduler.had_seen("pods", time_ns) >= pod.said[0]
        scheduler.writes = "" if is_told else POD_PREFIX + event.pod
        if pod is None:
            if uid not in self._gone:
                # What a store did comes late from a cell that was held: the pod is new, and has been tried.
                scheduler.tries.setdefault(uid, []).append((start_ns, time_ns))
            return
        if pod.value.spec.HasField("schedulingGroup"):
            namespace, group = pod.value.metadata.namespace, pod.value.spec.schedulingGroup.podGroupName
            scheduler.writes = f"{_GROUP_PREFIX}{namespace}/{group}"
        scheduler.names.setdefault(pod.scheduler_name)
        self._judge(pod, scheduler, actor, start_ns)
        scheduler.preempts.pop(uid, None)
        scheduler.tries.setdefault(uid, []).append((start_ns, time_ns))
        if event.result == "scheduled":
            if pod.waits and not pod.value.spec.nodeName:
                self._leaves(time_ns, uid, but_waits=True)
                scheduler.placed[uid] = event.node
                self._placed[uid] = self._placed.get(uid, 0) + 1
                self._rooms.put(time_ns, scheduler.had_seen("pods", time_ns), uid, event.node, pod.wanted)
        elif event.result == "unschedulable" and _AVOIDS in event.plugins:
            self._leaves(time_ns, uid, but_waits=True)
        elif event.result == "unschedulable" and pod.waits and pod.is_judged:
            seen = scheduler.had_seen("pods", start_ns), scheduler.had_seen("nodes", start_ns)
            self._wait(time_ns, uid, pod, seen)

    def _on_acked(self, time_ns: int, actor: str, event: events.WritesAcknowledged) -> None:
        """The status of a pod that was tried in vain, which the scheduler writes before it tries the next one
        (``handleSchedulingFailure``)."""
        scheduler = self._schedulers.get(actor)
        if scheduler is None or not scheduler.writes:
            return
        for took_ns, _revision, key, _uid, _digest in event.acks:
            if key == scheduler.writes and time_ns - took_ns >= scheduler.ends[-1]:
                self._written(time_ns, scheduler)
                return

    def _on_status_lost(self, time_ns: int, actor: str, event: events.StatusLost) -> None:
        scheduler = self._schedulers.get(actor)
        if scheduler is not None and scheduler.writes == POD_PREFIX + event.pod:
            self._written(time_ns, scheduler)

    def _written(self, time_ns: int, scheduler: _Scheduler) -> None:
        scheduler.busy[-1] += time_ns - scheduler.ends[-1]
        scheduler.ends[-1] = time_ns
        scheduler.writes = ""

    def _wait(self, time_ns: int, uid: str, pod: _Pod, seen: tuple[int, int]) -> None:
        self._rooms.wait(time_ns, uid, pod.value, pod.wanted, seen)

    def _on_bind(self, time_ns: int, actor: str, event: events.PodBound) -> None:
        scheduler = self._schedulers.get(actor)
        node = scheduler.placed.pop(event.uid, "") if scheduler is not None else ""
        if node:
            self._no_longer_placed(event.uid)
        if node and not event.ok:
            self._give_up(time_ns, event.uid, node, actor)

    def _no_longer_placed(self, uid: str) -> None:
        self._placed[uid] -= 1
        if not self._placed[uid]:
            del self._placed[uid]

    def _give_up(self, time_ns: int, uid: str, node: str, actor: str = "?") -> None:
        pod = self._pods.get(uid)
        if pod is None or (pod.value.spec.nodeName != node and pod.value.status.nominatedNodeName != node):
            self._rooms.give_back(time_ns, uid, node, actor)

    # --- judgement ----------------------------------------------------------------------------------------------------

    def _leaves(self, time_ns: int, uid: str, *, but_waits: bool = False) -> None:
        """The pod does not wait any more; or it is another one for those who look for room."""
        pod = self._pods.get(uid)
        if pod is None or not pod.waits:
            return
        if not but_waits:
            for actor, scheduler in self._schedulers.items():
                self._judge(pod, scheduler, actor, self._history.now_ns)
                scheduler.tries.pop(uid, None)
                scheduler.preempts.pop(uid, None)
            pod.waits = False
        if uid in self._rooms.class_of:
            self._rooms.no_longer(uid)

    def _closing(self, one: rooms.Class, room: rooms.Room) -> None:
        if self._history.now_ns - room.since_ns <= self._slack_ns:
            return
        for uid in one.pods:
            for actor, scheduler in self._schedulers.items():
                self._judge_room(self._pods[uid], scheduler, actor, room, self._history.now_ns)

    def _judge(self, pod: _Pod, scheduler: _Scheduler, actor: str, until_ns: int) -> None:
        """Until an attempt begins, or the pod stops waiting."""
        if scheduler.since_ns is None or pod.scheduler_name not in scheduler.names:
            return
        if pod.uid not in scheduler.tries:
            if pod.waits:
                self._judged += 1
                seen_ns = scheduler.saw_ns("pods", pod.revision)
                if seen_ns is not None:
                    self._due(pod, scheduler, actor, max(seen_ns, scheduler.since_ns), until_ns, "is new")
            return
        one = self._rooms.of(pod.uid)
        if one is not None:
            for room in list(one.rooms.values()):
                self._judge_room(pod, scheduler, actor, room, until_ns)

    def _judge_room(self, pod: _Pod, scheduler: _Scheduler, actor: str, room: rooms.Room, until_ns: int) -> None:
        tries = scheduler.tries.get(pod.uid)
        if not tries or scheduler.since_ns is None or (room.only and room.only != actor) or actor in self._extended:
            return
        saw = [room.since_ns, scheduler.since_ns]
        for resource, revision in (("pods", room.pods_revision), ("nodes", room.nodes_revision)):
            seen_ns = scheduler.saw_ns(resource, revision)
            if seen_ns is None:
                return
            saw.append(seen_ns)
        known_ns = self._woken_ns(scheduler, pod.uid, max(saw))
        if known_ns is None:
            return
        if tries[-1][0] >= known_ns:
            return
        self._judged += 1
        due_ns = max(known_ns, tries[-1][1] + self._backoff_ns)
        self._due(pod, scheduler, actor, due_ns, until_ns, f"fits {room.node} since {seconds(room.since_ns)}")

    def _due(self, pod: _Pod, scheduler: _Scheduler, actor: str, due_ns: int, until_ns: int, why: str) -> None:
        if until_ns - due_ns <= self._slack_ns and not (self._ended == "idle" and not self._outages.last_still(actor)):
            return
        if self._ended != "idle":
            idle_ns = min(scheduler.idle_ns(due_ns, until_ns), self._outages.without(actor, due_ns, until_ns))
            if idle_ns <= self._slack_ns:
                return
        who, until = actor.removeprefix(SCHEDULER), seconds(until_ns)
        said = f"could have tried it from {seconds(due_ns)} on, and did not until {until}"
        if due_ns >= until_ns:
            said = f"did not mean to try it when nothing more was to happen, at {until}"
        self._findings.append(f"{pod.name} {why}; {who} {said}")

    def _end(self, event: events.RunEnded) -> None:
        self._ended = event.reason if event.still else "deadline"
        for pod in self._pods.values():
            if pod.waits:
                for actor, scheduler in self._schedulers.items():
                    self._judge(pod, scheduler, actor, self._history.now_ns)

    def result(self, history: History) -> Result:
        good = f"{counted(self._judged, 'attempt')} in time"
        return self.concluded(self._findings, self._judged, "no pod had to wait for an attempt", good)
