"""The history of a run, folded from its log: what became of every pod, when, where and why.

The store's transactions are the truth about objects; the actors' own events add who did it and why. The log is read in
one pass, event by event, so a run that still goes on can be asked too (``until``). Neighbours: ``facts`` is what a
history consists of, ``counters`` what is counted in it.
"""

from __future__ import annotations

from array import array
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from sys import intern
from typing import Any, TypeVar

from kemu.emulated.objects import meta
from kemu.emulated.objects.amounts import quantities, requests
from kemu.emulated.objects.pods import pod_phases
from kemu.lab.checks.history import disturbances, parsed, sessions, windows
from kemu.lab.checks.history.facts import (
    Fact,
    Fault,
    InstanceHistory,
    NodeHistory,
    PodHistory,
    Refusal,
    Return,
)
from kemu.lab.checks.history.stores import (
    DEFINITION,
    NODE_PREFIX,
    PHASE,
    STATUS,
    Change,
    StoreHistory,
)
from kemu.messages.k8s import core_v1_pb2
from kemu.runtime.runlog import events as log_events
from kemu.runtime.runlog.events import handlers

T = TypeVar("T")

EVICTED = "Evicted"
"""The reason in the status of a pod that its kubelet has evicted."""
LOST = "Lost"
"""The reason of ``deleted`` where the store came back without the pod."""
DISRUPTED = "DisruptionTarget"
"""The condition of a pod that is being made to leave."""
_MAY_BE_DISRUPTED = DISRUPTED.encode()
"""In the bytes of a pod: most never have such a condition, so it need not be looked for among the others."""
_OUTSIDE = "gateway/"
"""What the names of clients outside begin with."""
MOST_DENIALS = 100
_DRAINS = {
    "cordoned": "draining",
    "already cordoned": "draining",
    "waits": "drainWaits",
    "drained": "drained",
    "refused": "drainFailed",
}
"""Steps of a drain that a node's history keeps."""
_OF_QUOTAS = " quota: "
"""In the message of a request that a quota refused."""
MIRROR = "kubernetes.io/config.mirror"
"""Annotation of a mirror pod: the UID of the static pod that it stands for."""
MEASURED = ("cpu", "memory")
"""The resources of which utilisation is told."""
WORKLOAD_LABEL = "kemu.dev/workload"
"""On the pods of a scenario's workload."""


class History(StoreHistory):
    """Feed it every event in order, then read its fields.

    ``keep_changes`` keeps the store's changes and what watches delivered of them (the checks on watches need them).
    """

    def __init__(self, *, keep_changes: bool = True) -> None:
        super().__init__(keep_changes=keep_changes)
        self.pods: dict[str, PodHistory] = {}
        """By UID, in the order of creation."""
        self.names: dict[str, list[str]] = {}
        """UIDs of the pods that had a name ``namespace/name``, oldest first."""
        self.nodes: dict[str, NodeHistory] = {}
        """By name."""
        self.counts: Counter[str] = Counter()
        self.api_evictions: dict[int, Mapping[str, Any]] = {}
        """Evictions through the API that took a pod, as ``api.request``, by revision."""
        self.budget_writes: dict[int, tuple[str, int]] = {}
        """By revision: which disruption controller wrote the status of a budget, and when it asked for that."""
        self._deletions: dict[int, str] = {}
        """API servers whose request took a pod, by revision: a later request that names it has written nothing."""
        self.bind_conflicts: Counter[str] = Counter()
        """By scheduler, ``<name>/<replica>``."""
        self.refused: Counter[str] = Counter()
        """Refused requests, as ``bind pods: Conflict``."""
        self.errors: Counter[str] = Counter()
        """Attempts of schedulers that ended with an error, by what it said."""
        self.refusals: dict[tuple[str, str, str, str, str], Refusal] = {}
        """By verb, resource, namespace, name and reason."""
        self.ended_ns: int | None = None
        """When the run ended; None: it goes on, or was interrupted."""
        self.kinds: Counter[str] = Counter()
        """How many events of each kind the log has."""
        self.now_ns = 0
        self.window = windows.Window()
        """What of the run is measured."""
        self.ready: list[tuple[int, int]] = []
        """When pods became ready (1), or were no more, or began to be deleted (-1)."""
        self.throttled_ns = array("q")
        """When API servers refused requests because there were too many."""
        self.victims: list[tuple[int, str, str]] = []
        """(time, victim's UID, preemptor's UID)."""
        self.faults: list[Fault] = []
        self.eviction_returns: list[Return] = []
        """Evictions by a kubelet that had evicted a pod of the same owner before: the scheduler, which does not see
        usage, had put its successor on the same node."""
        self.preemption_returns: list[Return] = []
        """Preemptions of an owner's pod by one whose own pods it had preempted before."""
        self._preempted: set[str] = set()
        self._evictions: Counter[tuple[str, str]] = Counter()
        """By owner and node."""
        self._preemptions: Counter[tuple[str, str]] = Counter()
        """By owners of preemptor and victim."""
        self.instances: dict[str, InstanceHistory] = {}
        """Machines of a provider, by the name of their node."""
        self.reports: list[tuple[int, str, log_events.Event]] = []
        """Events that stories tell by their own words (:meth:`Event.lines`): when, who, which. Of requests of the user
        that were refused the first; of other requests bindings, and what a quota refused to controllers."""
        self._denials = 0
        self.lost = ""
        """Why the run could not go on, where it could not."""
        self.gaps: list[str] = []
        """What of the run log is missing or out of order, as far as its writer knows: nothing can be judged then."""
        self.doubts: list[str] = []
        """Where a real component says otherwise of what the log tells: nothing is judged by that."""
        self._sessions = sessions.Sessions(self._written_ns)
        self.watches = self._sessions.all
        """In the order of their lists."""
        self.watches_of = self._sessions.by_client
        """The same."""
        self.acknowledged: list[sessions.Acknowledgement] = []
        self._disturbances = disturbances.Disturbances()
        self.disturbances = self._disturbances.all
        """What happened to the processes of a run on Ray."""
        self._uid_of_key: dict[str, str] = {}
        self._status_at: dict[str, int] = {}
        """Where in the bytes of each pod its status begins; 0: not known."""
        self._binders: dict[str, tuple[str, str]] = {}
        """Node and scheduler of bindings that succeeded before their write was seen, by the pod's UID."""
        self._replaced: dict[str, str] = {}
        """For pods that the store has not told of yet: UID → the pod whose place it takes."""
        self._early: dict[str, list[tuple[int, str, log_events.ApiRequest]]] = {}
        """By UID, ``api.request`` of pods that the store has not told of yet."""
        self.never_created: dict[str, list[tuple[str, str]]] = {}
        """Pods of a workload that were refused: by workload, why, and whose place they would have taken."""
        self._mirrored: dict[str, str] = {}
        """UIDs of mirror pods by those of their static pods."""
        self._taken: dict[str, dict[str, None]] = {}
        """UIDs of the pods that each node's kubelet has taken and whose containers have not ended, by node."""
        self._derived: dict[Callable[[History], Any], tuple[int, Any]] = {}
        """With the number of events of which it was computed."""
        self.handlers = {**handlers.of(self), **self._disturbances.handlers}
        if keep_changes:
            self.handlers |= self._sessions.handlers
        for kind, event in log_events.BY_KIND.items():
            if event.lines is not log_events.Event.lines and event not in (
                log_events.RequestRefused,
                log_events.UserRefused,
            ):
                self.handlers[kind] = self._reporting(self.handlers.get(kind))

    def feed(self, time_ns: int, actor: str, kind: str, data: Mapping[str, Any]) -> None:
        """Has the signature of a ``LogSink``. ``Judge.feed`` does the same."""
        if time_ns > self.now_ns:
            self.now_ns = time_ns
        self.kinds[kind] += 1
        handler = self.handlers.get(kind)
        if handler is not None:
            handler(time_ns, actor, data if isinstance(data, log_events.Event) else log_events.typed(kind, data))

    def _reporting(self, handler: Callable[[int, str, Any], None] | None) -> Callable[[int, str, Any], None]:
        def report(time_ns: int, actor: str, event: log_events.Event) -> None:
            self.reports.append((time_ns, actor, event))
            if handler is not None:
                handler(time_ns, actor, event)

        return report

    def derived(self, make: Callable[[History], T]) -> T:
        """What several checks compute from the history when the run is over, computed once."""
        events, known = self._derived.get(make, (-1, None))
        if events == self.kinds.total():
            return known  # type: ignore[no-any-return]
        found = make(self)
        self._derived[make] = (self.kinds.total(), found)
        return found

    def measured(self) -> Iterator[PodHistory]:
        """The pods that arrived in the window, in the order of their creation."""
        return (pod for pod in self.pods.values() if self.window.has(pod.created_ns))

    def pod(self, name: str) -> PodHistory | None:
        """The latest pod of that name: ``name`` (in namespace default) or ``namespace/name``."""
        uids = self.names.get(name if "/" in name else f"default/{name}")
        return self.pods[uids[-1]] if uids else None

    # --- the store ---------------------------------------------------------------------------------------------------

    def _on_run_lost(self, time_ns: int, actor: str, event: log_events.RunLost) -> None:
        self.lost = event.why
        self.gaps.append(f"the run was cut short: {event.why}")

    def _on_log_missing(self, time_ns: int, actor: str, event: log_events.LogMissing) -> None:
        self.gaps.append(f"{actor}: the log is missing from event {event.known} of its process on: {event.what}")

    def _on_log_cut(self, time_ns: int, actor: str, event: log_events.LogCut) -> None:
        self.gaps.append(
            f"{actor} is cut off after {time_ns / 1e9:.6f} s: its last {event.cut_bytes} bytes are no whole event; what"
            " happened later is lost"
        )

    def _on_log_late(self, time_ns: int, actor: str, event: log_events.LogLate) -> None:
        self.gaps.append(
            f"{actor}: {event.events} events came too late to stand in their place, by up to {event.by_ns / 1e9:.6f} s"
        )

    def _on_attempts_counted(self, time_ns: int, actor: str, event: log_events.AttemptsCounted) -> None:
        if event.doubt:
            self.doubts.append(f"{actor} {event.doubt}")

    def _undo_binding(self, time_ns: int, history: PodHistory, previous: bytes | None) -> None:
        """The pod has the node again that it had before; it was not bound there."""
        if previous is None:
            return
        pod = parsed.pod(previous)
        if pod.metadata.uid != history.uid or pod.spec.nodeName == history.node:
            return
        history.facts.append(Fact(time_ns, "unbound", history.node))
        self.counts["pods_bound"] -= 1
        history.node = pod.spec.nodeName
        if not history.node:
            history.bound_ns = None

    def known(self, uid: str) -> PodHistory | None:
        """The history of the pod with this UID; of a static pod, that of its mirror."""
        return self.pods.get(self._mirrored.get(uid, uid))

    def _never_created(self, uid: str) -> None:
        """The creation of a pod was undone. If nothing else had happened to it, it never was a pod."""
        history = self.pods.get(uid)
        if history is not None and all(fact.what in ("created", "deleted") for fact in history.facts):
            del self.pods[uid]
            self.names[history.key].remove(uid)
            if not self.names[history.key]:
                del self.names[history.key]
            self.counts["pods_created"] -= 1
            self.counts["pods_deleted"] -= 1

    def _pod_undone(self, time_ns: int, change: Change) -> None:
        key, previous = change.key, change.previous
        uid = self._uid_of_key.get(key, "")
        if uid in self.pods:
            self._undo_binding(time_ns, self.pods[uid], previous)
        if previous is None:
            self._pod_gone(time_ns, key, LOST)
            self._never_created(uid)
        else:
            before = change._previous
            self._pod_changed(time_ns, key, previous, None, before if isinstance(before, Change) else None)
        self._status_at.pop(key, None)  # Who was told of what is lost is told of all that comes.

    def _pod_gone(self, time_ns: int, key: str, reason: str = "") -> None:
        self._status_at.pop(key, None)
        uid = self._uid_of_key.pop(key, None)
        if uid is not None:
            history = self.pods[uid]
            history.gone_ns = time_ns
            if history.ready:
                self._set_ready(time_ns, history, ready=False)
            history.facts.append(Fact(time_ns, "deleted", history.node, reason=reason))
            self.counts["pods_deleted"] += 1

    def _pod_changed(
        self, time_ns: int, key: str, value: bytes | None, before: bytes | None, change: Change | None
    ) -> None:
        if value is None:
            self.pods_changed.append((DEFINITION, key, None))
            self._pod_gone(time_ns, key)
            return
        pod = parsed.pod(value)
        metadata, spec, status = pod.metadata, pod.spec, pod.status
        uid = metadata.uid
        history = self.pods.get(uid)  # type: ignore[assignment]
        self._uid_of_key[key] = uid
        if history is None:
            history = self._pod_created(time_ns, pod)
        history.gone_ns, history.change = None, change
        phase = status.phase or "Pending"
        # What stands before the status is as it was: the phase or the rest of the status alone has changed.
        at = self._status_at.get(key, 0) if before is not None else 0
        if at and value[at : at + 1] == parsed.STATUS_TAG and value.startswith(before[:at]):  # type: ignore[index]
            what = STATUS if phase == history.phase else PHASE
        else:
            self._status_at[key] = parsed.status_at(value)
            what = DEFINITION
        self.pods_changed.append((what, key, pod))
        node = spec.nodeName
        if node != history.node:
            if not history.preset_node or history.node:
                history.bound_ns = time_ns
                to, by = self._binders.pop(uid, ("", ""))
                history.facts.append(Fact(time_ns, "bound", node, by=by if to == node else ""))
                self.counts["pods_bound"] += 1
            history.node = node
        nominated = status.nominatedNodeName
        if nominated != history.nominated:
            if nominated:
                history.facts.append(Fact(time_ns, "nominated", nominated))
                self.counts["nominations"] += 1
            elif not node:
                history.facts.append(Fact(time_ns, "nominationCleared", history.nominated))
                self.counts["nominations_cleared"] += 1
            history.nominated = nominated
        if metadata.HasField("deletionTimestamp") and history.deleting_ns is None:
            history.deleting_ns = time_ns
            history.facts.append(Fact(time_ns, "terminating", node))
        if not history.evicted and (status.reason == EVICTED or _MAY_BE_DISRUPTED in value):
            self._look_for_eviction(time_ns, history, status)
        ready = history.deleting_ns is None and meta.is_ready(pod)
        if ready != history.ready:
            self._set_ready(time_ns, history, ready=ready)
        if phase != history.phase:
            history.phase = phase
            if phase == "Running":
                history.facts.append(Fact(time_ns, "running", node))
                self.counts["pods_running"] += 1
            elif phase in pod_phases.TERMINAL:
                history.facts.append(Fact(time_ns, "finished", node, reason=phase, message=status.message))
                self.counts["pods_succeeded" if phase == pod_phases.SUCCEEDED else "pods_failed"] += 1

    def _set_ready(self, time_ns: int, history: PodHistory, *, ready: bool) -> None:
        history.ready = ready
        self.ready.append((time_ns, 1 if ready else -1))

    def _pod_created(self, time_ns: int, pod: core_v1_pb2.Pod) -> PodHistory:
        metadata, spec = pod.metadata, pod.spec
        key = f"{metadata.namespace}/{metadata.name}"
        history = PodHistory(
            uid=metadata.uid,
            key=key,
            created_ns=time_ns,
            priority=spec.priority,
            scheduler_name=spec.schedulerName,
            labels={label: metadata.labels[label] for label in sorted(metadata.labels)},
            requests=requests.pod_requests(pod),
            preset_node=bool(spec.nodeName),
            priority_class=spec.priorityClassName,
        )
        history.node = spec.nodeName
        history.owner = _owner(pod, key)
        history.workload = history.labels.get(WORKLOAD_LABEL, "")
        history.replaces = self._replaced.pop(metadata.uid, "")
        history.facts.append(Fact(time_ns, "created"))
        self.pods[metadata.uid] = history
        if MIRROR in metadata.annotations:
            self._mirrored[metadata.annotations[MIRROR]] = metadata.uid
        self.names.setdefault(key, []).append(metadata.uid)
        self.counts["pods_created"] += 1
        for early in self._early.pop(metadata.uid, ()):
            self._on_request(*early)
        return history

    def _look_for_eviction(self, time_ns: int, history: PodHistory, status: core_v1_pb2.PodStatus) -> None:
        """By a kubelet, the eviction API, the taint manager or the garbage collector of pods."""
        # A pod rejected under pressure has the same reason, but has never run.
        evicted = status.reason == EVICTED and history.first("rejected") is None
        reasons = [EVICTED] if evicted else []
        message = status.message
        for condition in status.conditions:
            if condition.type != DISRUPTED or condition.status != "True":
                continue
            # Victims of a scheduler or of a kubelet are preempted, not evicted.
            if condition.reason != "PreemptionByScheduler" and status.reason != "Preempting":
                reasons.append(condition.reason)
                message = message or condition.message
        if reasons:
            history.evicted = True
            fact = Fact(time_ns, "evicted", history.node, reason=reasons[0], message=message, also=tuple(reasons[1:]))
            history.facts.append(fact)
            self.counts["evictions"] += 1
            if reasons[0] == EVICTED:
                self._count_eviction(time_ns, history.owner, history.node)

    def _count_eviction(self, time_ns: int, owner: str, node: str) -> None:
        times = self._evictions[owner, node]
        self._evictions[owner, node] += 1
        if times:
            self.counts["eviction_returns"] += 1
            self.eviction_returns.append(Return(time_ns, owner, node, times))

    def _node_changed(self, time_ns: int, key: str, value: bytes | None) -> None:
        name = key.removeprefix(NODE_PREFIX)
        history = self.nodes.get(name)
        if history is None:
            history = self.nodes[name] = NodeHistory(name)
        if value is None:
            history.present = False
            history.conditions, history.taints = {}, {}
            history.allocatable.append((time_ns, {}))
            history.written = ()
            history.facts.append(Fact(time_ns, "removed", name))
            return
        node = parsed.node(value)
        if not history.present:
            history.present = True
            history.facts.append(Fact(time_ns, "added", name))
        stated = node.status.allocatable
        written = tuple(stated[name].string for name in MEASURED if name in stated)
        if written != history.written:
            history.written = written
            history.allocatable.append((time_ns, requests.resource_list(stated)))
        for condition in node.status.conditions:
            known = history.conditions.get(condition.type)
            if known != condition.status:
                if known is not None:
                    self.counts["condition_changes"] += 1
                history.conditions[condition.type] = condition.status
                fact = Fact(time_ns, "condition", name, reason=condition.type, status=condition.status)
                history.facts.append(fact)
        taints = {(taint.key, taint.effect): None for taint in node.spec.taints}
        for taint, what in (
            *((taint, "untainted") for taint in history.taints if taint not in taints),
            *((taint, "tainted") for taint in taints if taint not in history.taints),
        ):
            history.facts.append(Fact(time_ns, what, name, reason=taint[0], status=taint[1]))
        history.taints = taints

    # --- who and why -------------------------------------------------------------------------------------------------

    def _on_attempt(self, time_ns: int, actor: str, event: log_events.PodAttempted) -> None:
        self.counts["scheduling_attempts"] += 1
        history = self.pods.get(event.uid)
        by = actor.removeprefix("scheduler/")
        if history is not None:
            history.attempts += 1
            message = event.message if event.result == "error" else ""
            history.facts.append(Fact(time_ns, "attempted", event.node, by, event.result, message))
        if event.result == "error":
            self.errors[event.message] += 1
        if event.result == "unschedulable":
            self.counts["attempts_unschedulable"] += 1
            if history is not None:
                history.facts.append(Fact(time_ns, "unschedulable", by=by, message=event.message))

    def _on_scores(self, time_ns: int, actor: str, event: log_events.PodScored) -> None:
        history = self.pods.get(event.uid)
        if history is not None:
            by = actor.removeprefix("scheduler/")
            history.facts += [Fact(time_ns, "scored", node, by=by, amount=total) for node, total in event.totals]

    def _on_search(self, time_ns: int, actor: str, event: log_events.VictimsSearched) -> None:
        self.counts["search_evaluations"] += event.evaluations
        self.counts["searches_given_up"] += event.gave_up

    def _on_preempting(self, time_ns: int, actor: str, event: log_events.PodPreempting) -> None:
        self._preempted_one(time_ns, actor, event)

    def _on_victim(self, time_ns: int, actor: str, event: log_events.OfVictim) -> None:
        if event.ok:
            self._preempted_one(time_ns, actor, event)

    def _preempted_one(self, time_ns: int, actor: str, event: log_events.PodPreempting | log_events.OfVictim) -> None:
        if event.uid in self._preempted:
            return  # A second preemptor that wants the same victim preempts no pod.
        is_rejected = isinstance(event, log_events.OfVictim) and event.is_rejected
        if not is_rejected:  # such a victim lives on, and may be turned away again
            self._preempted.add(event.uid)
        self.counts["preemptions"] += 1
        self.victims.append((time_ns, event.uid, event.by_uid))
        history, preemptor = self.pods.get(event.uid), self.pods.get(event.by_uid)
        if history is not None and preemptor is not None and history.owner != preemptor.owner:
            self._count_preemption(time_ns, preemptor.owner, history.owner)
        if history is not None:
            fact = Fact(time_ns, "preempted", event.node, by=event.by, actor=actor)
            fact.reason = "rejected" if is_rejected else ""
            history.facts.append(fact)

    def _count_preemption(self, time_ns: int, preemptor: str, victim: str) -> None:
        self._preemptions[preemptor, victim] += 1
        if self._preemptions[victim, preemptor]:
            self.counts["preemption_returns"] += 1
            times = self._preemptions[preemptor, victim]
            self.preemption_returns.append(Return(time_ns, victim, preemptor, times))

    def _on_bind(self, time_ns: int, actor: str, event: log_events.PodBound) -> None:
        if not event.ok:
            self.counts["bind_errors"] += 1
            if event.reason == "Conflict":
                self.counts["bind_conflicts"] += 1
                self.bind_conflicts[actor.removeprefix("scheduler/")] += 1
            return
        uid, node, by = event.uid, event.node, actor.removeprefix("scheduler/")
        history = self.pods.get(uid)
        for fact in reversed(history.facts if history is not None else ()):
            if fact.what == "bound" and fact.node == node:
                fact.by = by
                return
        # With a real etcd the write is seen by a watch, which may come later than the response.
        self._binders[uid] = (node, by)

    def _on_running(self, time_ns: int, actor: str, event: log_events.PodRunning) -> None:
        self._runs(time_ns, actor, event)

    def _on_admit(self, time_ns: int, actor: str, event: log_events.AdmissionDecided) -> None:
        history = self.pods.get(event.uid)
        if event.ok:
            self.counts["admissions"] += 1
            self._runs(time_ns, actor, event)
            if history is not None:
                history.admissions += 1
            return
        self.counts["admissions_rejected"] += 1
        if history is not None:
            fact = Fact(time_ns, "rejected", event.node, reason=event.reason, message=event.message)
            history.facts.append(fact)

    def _runs(self, time_ns: int, actor: str, event: log_events.PodRunning | log_events.AdmissionDecided) -> None:
        uid = event.uid
        self._taken.setdefault(event.node, {})[uid] = None
        history = self.pods.get(self._mirrored.get(uid, uid))
        if history is not None and history.ran_ns is None:
            history.ran_ns = time_ns

    def _on_ended(self, time_ns: int, actor: str, event: log_events.PodTerminated | log_events.PodFinished) -> None:
        """Its containers have, whatever has become of the object."""
        self._ended(time_ns, event.uid, event.node)

    def _ended(self, time_ns: int, uid: str, node: str) -> None:
        self._taken.get(node, {}).pop(uid, None)
        history = self.pods.get(self._mirrored.get(uid, uid))
        if history is not None:
            history.facts.append(Fact(time_ns, "ended", node))

    def _on_stopped(self, time_ns: int, actor: str, event: log_events.ActorStopped) -> None:
        self._sessions.client_ended(time_ns, actor)
        who, _, node = actor.partition("/")
        if who == "kubelet":  # The machine has been removed.
            self._on_machine_ended(time_ns, node)

    def _on_run_ended(self, time_ns: int, actor: str, event: log_events.RunEnded) -> None:
        """What follows is the shutdown, which ends no containers."""
        self.ended_ns = time_ns
        self._taken.clear()
        self._sessions.run_ended()

    def _on_machine_ended(self, time_ns: int, node: str) -> None:
        """With everything that ran on it."""
        for uid in list(self._taken.get(node, ())):
            self._ended(time_ns, uid, node)

    def _on_oom_killed(self, time_ns: int, actor: str, event: log_events.OomKilled) -> None:
        self.counts["oom_kills"] += 1
        history = self.pods.get(event.uid)
        if history is not None:
            limit = event.limit_bytes
            passed = f"it passed its limit of {quantities.shortest(limit)}" if limit else ""
            history.facts.append(Fact(time_ns, "oomKilled", event.node, reason=event.container, message=passed))

    def _on_collected(self, time_ns: int, actor: str, event: log_events.GarbageCollected) -> None:
        self.counts["reclaims"] += 1

    def _on_user_pod(self, time_ns: int, actor: str, event: log_events.UserPodCreated) -> None:
        if event.replaces:
            self._replaces(event.uid, event.replaces)

    def _on_controller_pod(self, time_ns: int, actor: str, event: log_events.PodCreated) -> None:
        self._replaces(event.uid, event.replaces)

    def _replaces(self, uid: str, replaced: str) -> None:
        """Whose place a pod takes. On Ray this may be logged before the store's transaction."""
        if not replaced:
            return
        history = self.pods.get(uid)
        if history is None:
            self._replaced[uid] = replaced
        else:
            history.replaces = replaced

    def _on_scale_up(self, time_ns: int, actor: str, event: log_events.ScaleUpRequested) -> None:
        if event.ok:
            self.counts["scale_ups"] += 1
            self.counts["nodes_added"] += event.size - event.size_before

    def _on_descheduled(self, time_ns: int, actor: str, event: log_events.PodDescheduled) -> None:
        self.counts["descheduled"] += event.ok

    def _on_job_admitted(self, time_ns: int, actor: str, event: log_events.JobAdmitted) -> None:
        self.counts["jobs_admitted"] += 1

    def _on_job_preempted(self, time_ns: int, actor: str, event: log_events.JobPreempted) -> None:
        self.counts["jobs_preempted"] += 1

    def _on_scaled_down(self, time_ns: int, actor: str, event: log_events.ScaleDownEnded) -> None:
        self.counts["nodes_removed"] += event.ok

    def _on_instance(self, time_ns: int, actor: str, event: log_events.InstanceChanged) -> None:
        if event.what == "running":
            self.instances[event.node] = InstanceHistory(event.group, event.price, time_ns)
        elif event.what == "gone" and event.node in self.instances:
            self.instances[event.node].gone_ns = time_ns

    def _on_machine_off(self, time_ns: int, actor: str, event: log_events.MachineOff) -> None:
        self._on_machine_ended(time_ns, event.node)

    def _pod_goes(self, actor: str, event: log_events.ApiRequest) -> None:
        revision, is_first = event.rev, event.rev not in self._deletions
        if is_first:
            self._deletions[revision] = actor
            if event.verb == "evict":
                self.api_evictions[revision] = event
        elif self._deletions[revision] != actor:
            self.api_evictions.pop(revision, None)  # Which of the two servers wrote it is not known.

    @property
    def lag_ns(self) -> int:
        """The longest that any request or event of a watch has taken."""
        return self._sessions.lag_ns

    def _on_acked(self, time_ns: int, actor: str, event: log_events.WritesAcknowledged) -> None:
        if self._keep_changes:
            sent_ns, server, recoveries = event.sent, event.server, len(self.replayed_revisions)
            for took_ns, revision, key, uid, digest in event.acks:
                if took_ns > self._sessions.lag_ns:
                    self._sessions.lag_ns = took_ns
                # A named tuple, without the call that its constructor is.
                parts = time_ns, took_ns, sent_ns, actor, server, revision, intern(key), intern(uid), digest, recoveries
                self.acknowledged.append(tuple.__new__(sessions.Acknowledgement, parts))
        if actor.startswith("controller/disruption"):
            for took_ns, revision, key, _uid, _digest in event.acks:
                if key.startswith("/registry/poddisruptionbudgets/"):
                    self.budget_writes[revision] = actor, time_ns - took_ns

    def _on_request(self, time_ns: int, actor: str, event: log_events.ApiRequest) -> None:
        if event.verb in ("evict", "delete") and event.resource == "pods":
            self._pod_goes(actor, event)
        history = self.pods.get(event.uid)
        if history is None:
            # An API server that records a real etcd may have answered before it hears of its own write.
            self._early.setdefault(event.uid, []).append((time_ns, actor, event))
            return
        if event.verb == "create":
            history.created_by = event.by
        elif event.verb == "delete":
            history.deleted_by.append(event.by)
        elif event.verb == "bind":
            # Schedulers of the user's own log no sched.bind.
            for fact in reversed(history.facts):
                if fact.what == "bound":
                    fact.by = fact.by or event.by.removeprefix("scheduler/")
                    break

    def _on_user_refused(self, time_ns: int, actor: str, event: log_events.UserRefused) -> None:
        if "workload" in event:
            why = f"{event.reason}: {event.message}"
            self.never_created.setdefault(event.workload, []).append((why, event.replaces))
        if self._denials < MOST_DENIALS:
            self._denials += 1
            self.reports.append((time_ns, actor, event))

    def _on_drain(self, time_ns: int, actor: str, event: log_events.DrainStepped) -> None:
        what = _DRAINS.get(event.step)
        node = self.nodes.get(event.node)
        if what is not None and node is not None:
            node.facts.append(Fact(time_ns, what, event.node, reason=event.pod, message=event.why))

    def _on_throttled(self, time_ns: int, actor: str, event: log_events.RequestThrottled) -> None:
        self.counts["requests_throttled"] += 1
        self.throttled_ns.append(time_ns)

    def _on_refused(self, time_ns: int, actor: str, event: log_events.RequestRefused) -> None:
        self.counts["requests_refused"] += 1
        self.refused[f"{event.verb} {event.resource}: {event.reason}"] += 1
        key = event.verb, event.resource, event.namespace, event.name, event.reason
        refusal = self.refusals.get(key)
        if refusal is None:
            refusal = self.refusals[key] = Refusal(*key, first_ns=time_ns)
        refusal.count += 1
        if event.verb == "bind":
            self.reports.append((time_ns, actor, event))
            if event.by.startswith(_OUTSIDE) and event.reason == "Conflict":
                # A real scheduler: kemu's own tell of it themselves.
                self.counts["bind_conflicts"] += 1
                self.bind_conflicts[event.by] += 1
        if event.reason == "Conflict":
            self.counts["write_conflicts"] += 1
        if event.reason == "Forbidden" and event.by != "user" and _OF_QUOTAS in event.message:
            self.reports.append((time_ns, actor, event))

    def _on_fault(self, time_ns: int, actor: str, event: log_events.FaultBegun) -> None:
        self.counts["faults"] += 1
        fault = Fault(event.id, event.what, time_ns, event)
        # A crash strikes at once, unless it waits for a step.
        if not event.step:
            fault.hits = {(who, ""): time_ns for who in (*event.actors, *event.nodes)}
        self.faults.append(fault)

    def _on_hit(self, time_ns: int, actor: str, event: log_events.FaultHit) -> None:
        for fault in reversed(self.faults):
            if fault.id == event.id:
                fault.hits.setdefault((event.actor, event.peer), time_ns)
                break

    def _on_fault_ended(self, time_ns: int, actor: str, event: log_events.FaultEnded) -> None:
        for fault in reversed(self.faults):
            if fault.id == event.id and fault.end_ns is None:
                fault.end_ns = time_ns
                break


def _owner(pod: core_v1_pb2.Pod, key: str) -> str:
    metadata = pod.metadata
    controller = meta.controller_of(pod) if metadata.ownerReferences else None
    if controller is not None:
        return f"{controller.kind}/{controller.name}"
    if WORKLOAD_LABEL in metadata.labels:
        return f"workload/{metadata.labels[WORKLOAD_LABEL]}"
    return f"{metadata.namespace}/{metadata.generateName}" if metadata.generateName else key
