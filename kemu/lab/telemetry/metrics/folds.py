"""A run log, event by event, into the metrics of the components.

    fold = Fold()
    for event in reader:
        fold.feed(*event)
    values = fold.values(now_ns)

An instance is a process: each API server, each replica of a scheduler, each kubelet, and each controller, which in kemu
is a process of its own. One that has crashed counts from 0 again.
"""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Mapping
from typing import Any, NamedTuple

from kemu.emulated.objects import custom_kinds, meta, resources
from kemu.lab.telemetry.metrics.objects import Objects
from kemu.lab.telemetry.metrics.queues import ACTIVE, GATED, Queue, Waiting
from kemu.messages.k8s import core_v1_pb2
from kemu.runtime.env import SECOND_NS
from kemu.runtime.metrics.families import APISERVER, CONTROLLERS, FAMILIES, KUBELET, SCHEDULER, STATE
from kemu.runtime.metrics.values import Labels, Values
from kemu.runtime.runlog import events
from kemu.runtime.runlog.events import handlers

_PREFIX = resources.REGISTRY.decode()
_PODS, _NODES = f"{_PREFIX}pods/", f"{_PREFIX}nodes/"
_NO_EXECUTE = ":NoExecute"
_MOST_ATTEMPTS = 15
_UNDONE = 10_000
"""Latest changes of the store that a recovery can take back."""
_READING = ("GET", "LIST", "WATCH")
_VERBS = {"create": "POST", "update": "PUT", "update_status": "PUT", "bind": "POST", "commit": "POST", "evict": "POST"}
_FINISHED = ("Succeeded", "Failed")
_FROZEN = ("pause", "stall")
_COMPONENT = "apiserver"
_GATEWAY = "gateway"


class Target(NamedTuple):
    """A process whose metrics Prometheus would fetch."""

    component: str
    instance: str


class _Watch(NamedTuple):
    group: str
    version: str
    resource: str
    scope: str


def target(actor: str) -> Target | None:
    kind, _, name = actor.partition("/")
    component = {
        "apiserver": APISERVER, "scheduler": SCHEDULER, "controller": CONTROLLERS, "kubelet": KUBELET
    }.get(kind)  # fmt: skip
    return None if component is None else Target(component, actor if component == APISERVER else name)


class Fold:
    """The metrics of one run."""

    def __init__(self, *, counts_gateway: bool = True) -> None:
        """``counts_gateway``: requests that come through the gateway count, too; otherwise it counts them itself."""
        self._values = Values()
        self._counts_gateway = counts_gateway
        self._handlers = handlers.of(self)
        self.up: dict[Target, bool] = {}
        """The processes that there have been, and whether they answer."""
        self._frozen: dict[str, list[str]] = {}
        """By the id of a fault that is on: the actors that do not answer meanwhile."""
        self.stored: dict[str, bytes] = {}
        """By key."""
        self._undo: deque[tuple[int, str, bytes | None]] = deque(maxlen=_UNDONE)
        self._counts: Counter[str] = Counter()
        """Objects by the qualified name of their resource."""
        self._queues: dict[str, Queue] = {}
        """By replica of a scheduler."""
        self._waiting: dict[str, str] = {}
        """Name of the scheduler of each pod that is not bound, by UID."""
        self._uids: dict[str, str] = {}
        """By key, of the pods that wait."""
        self._watches: dict[tuple[str, str], _Watch] = {}
        self._served: dict[str, deque[tuple[int, int, str]]] = {}
        """Requests of the last second by API server: begin, end, and whether they read or write."""
        self._depths: Counter[tuple[str, str]] = Counter()
        self._running: dict[str, dict[str, None]] = {}
        """UIDs by node."""
        self._zones: dict[str, tuple[bytes, str, bool]] = {}
        """Of each node by key: as it is stored, its zone, whether it is ready."""
        self._objects = Objects()

    def feed(self, time_ns: int, actor: str, kind: str, data: Mapping[str, Any]) -> None:
        handler = self._handlers.get(kind)
        if handler is not None:
            handler(time_ns, actor, data)

    def values(self, now_ns: int) -> Values:
        """As they are now; the same object at each call."""
        values = self._values
        servers = [one.instance for one, is_up in self.up.items() if one.component == APISERVER and is_up]
        for server in servers:
            objects: dict[Labels, float] = {(name,): float(count) for name, count in self._counts.items()}
            values.replace("apiserver_storage_objects", server, objects)
            values.replace("apiserver_current_inflight_requests", server, self._inflight(server, now_ns))
        open_ = Counter((_COMPONENT, one.group, one.resource, one.scope, "", "WATCH", one.version)
                        for one in self._watches.values())  # fmt: skip
        if len(servers) == 1 or open_:
            values.replace("apiserver_longrunning_requests", self._server, {key: float(n) for key, n in open_.items()})
        self._tell_queues(values)
        for one, is_up in self.up.items():
            if one.component == KUBELET and is_up:
                values.set("kubelet_running_pods", one.instance, (), len(self._running.get(one.instance, ())))
                values.set("kubelet_node_name", one.instance, (one.instance,), 1)
        self._tell_zones(values)
        found = self._objects.values(self.stored)
        for name, family in FAMILIES.items():
            if family.component == STATE:
                values.replace(name, "", found.get(name, {}))
        return values

    def _tell_queues(self, values: Values) -> None:
        nodes = pods = 0
        for key in self.stored:
            nodes += key.startswith(_NODES)
            pods += key.startswith(_PODS)
        for instance, queue in self._queues.items():
            if not self.up.get(Target(SCHEDULER, instance), False):
                continue
            values.replace("scheduler_pending_pods", instance, queue.pending())
            values.replace("scheduler_unschedulable_pods", instance, queue.unschedulable())
            bound = float(pods - len(self._waiting))
            values.replace("scheduler_cache_size", instance, {("nodes",): float(nodes), ("pods",): bound})
            for (event, part), number in queue.take().items():
                values.add("scheduler_queue_incoming_pods_total", instance, (event, part), number)

    def _tell_zones(self, values: Values) -> None:
        """For the node lifecycle controller."""
        if not self.up.get(Target(CONTROLLERS, "node-lifecycle"), False):
            return
        zones: dict[str, list[bool]] = {}
        known: dict[str, tuple[bytes, str, bool]] = {}
        for key, value in self.stored.items():
            if not key.startswith(_NODES):
                continue
            one = self._zones.get(key)
            if one is None or one[0] is not value:
                node = core_v1_pb2.Node.FromString(value)
                one = value, zone(node), meta.is_ready(node)
            known[key] = one
            zones.setdefault(one[1], []).append(one[2])
        self._zones = known
        size: dict[Labels, float] = {}
        health: dict[Labels, float] = {}
        unhealthy: dict[Labels, float] = {}
        for name, ready in zones.items():
            size[name,] = float(len(ready))
            health[name,] = 100.0 * sum(ready) / len(ready)
            unhealthy[name,] = float(len(ready) - sum(ready))
        values.replace("node_collector_zone_size", "node-lifecycle", size)
        values.replace("node_collector_zone_health", "node-lifecycle", health)
        values.replace("node_collector_unhealthy_nodes_in_zone", "node-lifecycle", unhealthy)

    # --- processes

    def _on_started(self, time_ns: int, actor: str, event: events.ActorStarted) -> None:
        found = target(actor)
        if found is None:
            return
        self.up[found] = True
        if found.component == SCHEDULER:
            self._queues[found.instance] = queue = Queue()
            for uid, scheduler in self._waiting.items():
                if scheduler == found.instance.rpartition("/")[0]:
                    queue.pods[uid] = Waiting(scheduler, ACTIVE)

    def _on_ended(
        self, time_ns: int, actor: str, event: events.ActorCrashed | events.ActorExited | events.ActorStopped
    ) -> None:
        for key in [key for key in self._watches if key[0] == actor]:
            del self._watches[key]
        found = target(actor)
        if found is None:
            return
        self.up[found] = False
        self._values.forget(found.instance)
        for queue in [key for key in self._depths if key[0] == found.instance]:
            del self._depths[queue]

    def _on_fault(self, time_ns: int, actor: str, event: events.FaultBegun) -> None:
        if event.what in _FROZEN:
            self._frozen[event.id] = list(event.actors)

    def _on_healed(self, time_ns: int, actor: str, event: events.FaultEnded) -> None:
        self._frozen.pop(event.id, None)

    def answers(self, one: Target) -> bool:
        """Whether Prometheus would get its metrics."""
        if not self.up.get(one, False):
            return False
        frozen = {found for actors in self._frozen.values() for found in map(target, actors)}
        return one not in frozen

    # --- objects

    def _on_txn(self, time_ns: int, actor: str, event: events.Transaction) -> None:
        for op, key, value, _create_rev, _version in event.changes:
            self._undo.append((event.rev, key, self.stored.get(key)))
            self._store(key, value if op == 0 else None)

    def _on_recovered(self, time_ns: int, actor: str, event: events.StoreRecovered) -> None:
        while self._undo and self._undo[-1][0] > event.rev:
            _, key, value = self._undo.pop()
            self._store(key, value)

    def _store(self, key: str, value: bytes | None) -> None:
        before = self.stored.get(key)
        if value is None:
            self.stored.pop(key, None)
        else:
            self.stored[key] = value
        if (before is None) != (value is None):
            self._counts[_qualified(key)] += 1 if before is None else -1
        if key.startswith(_PODS) and (before is None or key in self._uids):
            self._pod_changed(key, value)

    def _pod_changed(self, key: str, value: bytes | None) -> None:
        """A pod that is new, or waits for a node."""
        pod = core_v1_pb2.Pod.FromString(value) if value is not None else None
        uid = self._uids.get(key)
        if pod is None or pod.spec.nodeName or pod.status.phase in _FINISHED:
            if uid is not None:
                del self._uids[key], self._waiting[uid]
                for queue in self._queues.values():
                    waiting = queue.pods.get(uid)
                    # The scheduler that has bound it tells so itself, a moment later.
                    if waiting is not None and (pod is None or waiting.part):
                        del queue.pods[uid]
            return
        if uid is None:
            uid = self._uids[key] = pod.metadata.uid
            name = self._waiting[uid] = pod.spec.schedulerName
            part = GATED if pod.spec.schedulingGates else ACTIVE
            for instance, queue in self._queues.items():
                if instance.rpartition("/")[0] == name:
                    queue.pods[uid] = Waiting(name, part)

    # --- API servers

    @property
    def _server(self) -> str:
        """To whom watches belong: the log does not tell it where there are several."""
        servers = [one.instance for one in self.up if one.component == APISERVER]
        return servers[0] if len(servers) == 1 else ""

    def _on_served(self, time_ns: int, actor: str, event: events.RequestServed) -> None:
        recent = self._served.setdefault(actor, deque(maxlen=10_000))
        recent.append((event.start, time_ns, "readOnly" if event.verb in _READING else "mutating"))
        if not self._counts_gateway and event.by.partition("/")[0].partition(" ")[0] == _GATEWAY:
            return
        labels = (
            _COMPONENT, event.dry_run, event.group, event.resource, event.scope, event.subresource, event.verb,
            event.version,
        )  # fmt: skip
        self._values.add("apiserver_request_total", actor, (str(event.code), *labels))
        self._values.observe("apiserver_request_duration_seconds", actor, labels, (time_ns - event.start) / SECOND_NS)

    def _on_throttled(self, time_ns: int, actor: str, event: events.RequestThrottled) -> None:
        """Refused unread: nobody knows more than the verb."""
        labels = ("429", _COMPONENT, "", "", "", "", "", _VERBS.get(event.verb, event.verb.upper()), "")
        self._values.add("apiserver_request_total", actor, labels)

    def _inflight(self, server: str, now_ns: int) -> dict[Labels, float]:
        recent = self._served.get(server, deque())
        while recent and recent[0][1] < now_ns - SECOND_NS:
            recent.popleft()
        found: dict[Labels, float] = {}
        for kind in ("mutating", "readOnly"):
            changes = [(begin, 1) for begin, _, one in recent if one == kind]
            changes += [(end, -1) for _, end, one in recent if one == kind]
            most = count = 0
            for _, change in sorted(changes, key=lambda one: (one[0], -one[1])):
                count += change
                most = max(most, count)
            found[kind,] = float(most)
        return found

    def _on_listed(self, time_ns: int, actor: str, event: events.WatchListed) -> None:
        group, version, resource = _kind(event.resource)
        is_one = event.field_selector.startswith("metadata.name=")
        scope = "resource" if is_one else "namespace" if event.namespace else "cluster"
        self._watches[actor, event.watch] = _Watch(group, version, resource, scope)

    def _on_delivered(self, time_ns: int, actor: str, event: events.WatchDelivered) -> None:
        watch = self._watches.get((actor, event.watch))
        if watch is not None:
            labels = watch.group, watch.resource, watch.version
            self._values.add("apiserver_watch_events_total", self._server, labels, len(event.types))

    def _on_closed(self, time_ns: int, actor: str, event: events.WatchClosed) -> None:
        watch = self._watches.pop((actor, event.watch), None)
        if watch is not None:
            labels = (
                "200", _COMPONENT, "", watch.group, watch.resource, watch.scope, "", "WATCH", watch.version
            )  # fmt: skip
            self._values.add("apiserver_request_total", self._server, labels)

    # --- schedulers

    def _queue(self, actor: str) -> tuple[str, Queue]:
        instance = actor.partition("/")[2]
        queue = self._queues.get(instance)
        if queue is None:
            queue = self._queues[instance] = Queue()
        return instance, queue

    def _on_queued(self, time_ns: int, actor: str, event: events.PodQueued) -> None:
        instance, queue = self._queue(actor)
        queue.left(event, time_ns, self._waiting.get(event.uid, instance.rpartition("/")[0]))

    def _on_attempt(self, time_ns: int, actor: str, event: events.PodAttempted) -> None:
        instance, queue = self._queue(actor)
        queue.tried(event.uid, event.start, event.n)
        if event.result in ("unschedulable", "error"):
            self._attempted(instance, event.uid, event.result, event.start, time_ns)
            queue.failed(event.uid, time_ns, event.result, tuple(event.plugins))
            if event.result == "unschedulable":
                # Each asks DefaultPreemption, which counts that before it looks whether anything can be done.
                self._values.add("scheduler_preemption_attempts_total", instance)
        elif event.result == "skipped":
            queue.pods.pop(event.uid, None)

    def _on_bind(self, time_ns: int, actor: str, event: events.PodBound) -> None:
        instance, queue = self._queue(actor)
        pod = queue.pods.get(event.uid)
        began_ns = pod.tried_ns if pod is not None else event.start
        if not event.ok:
            self._attempted(instance, event.uid, "error", began_ns, time_ns)
            queue.failed(event.uid, time_ns, "error", ())
            return
        self._attempted(instance, event.uid, "scheduled", began_ns, time_ns)
        if pod is None:
            return
        del queue.pods[event.uid]
        attempts = str(pod.attempts) if pod.attempts < _MOST_ATTEMPTS else f"{_MOST_ATTEMPTS}+"
        took_s = (time_ns - max(pod.first_ns, 0)) / SECOND_NS
        self._values.observe("scheduler_pod_scheduling_sli_duration_seconds", instance, (attempts,), took_s)
        self._values.observe("scheduler_pod_scheduling_attempts", instance, (), pod.attempts)

    def _attempted(self, instance: str, uid: str, result: str, began_ns: int, time_ns: int) -> None:
        pod = self._queues[instance].pods.get(uid)
        labels = pod.profile if pod is not None else instance.rpartition("/")[0], result
        self._values.add("scheduler_schedule_attempts_total", instance, labels)
        took_s = (time_ns - began_ns) / SECOND_NS
        self._values.observe("scheduler_scheduling_attempt_duration_seconds", instance, labels, took_s)

    def _on_preemption(self, time_ns: int, actor: str, event: events.PreemptionPlanned) -> None:
        if event.victims:
            self._values.observe("scheduler_preemption_victims", actor.partition("/")[2], (), len(event.victims))

    # --- controllers

    def _on_work(self, time_ns: int, actor: str, event: events.WorkQueueChanged) -> None:
        instance, name = actor.partition("/")[2], event.queue
        if event.what == "retried":
            self._values.add("workqueue_retries_total", instance, (name,))
        elif event.what == "done":
            self._values.observe("workqueue_work_duration_seconds", instance, (name,), event.took / SECOND_NS)
        else:
            is_added = event.what == "added"
            self._depths[instance, name] += 1 if is_added else -1
            self._values.set("workqueue_depth", instance, (name,), self._depths[instance, name])
            if is_added:
                self._values.add("workqueue_adds_total", instance, (name,))
            else:
                self._values.observe("workqueue_queue_duration_seconds", instance, (name,), event.took / SECOND_NS)

    def _on_tainted(self, time_ns: int, actor: str, event: events.NodeTainted) -> None:
        added = sum(one.endswith(_NO_EXECUTE) for one in event.add)
        if added:
            value = self.stored.get(_NODES + event.node)
            where = zone(core_v1_pb2.Node.FromString(value)) if value is not None else ""
            self._values.add("node_collector_evictions_total", actor.partition("/")[2], (where,), added)

    def _on_eviction(self, time_ns: int, actor: str, event: events.TaintEviction) -> None:
        self._values.add("taint_eviction_controller_pod_deletions_total", actor.partition("/")[2])

    # --- kubelets

    def _on_admitted(self, time_ns: int, actor: str, event: events.AdmissionDecided) -> None:
        if event.ok:
            self._values.add("kubelet_started_pods_total", event.node)

    def _on_running(self, time_ns: int, actor: str, event: events.PodRunning) -> None:
        self._running.setdefault(event.node, {})[event.uid] = None

    def _on_finished(self, time_ns: int, actor: str, event: events.PodFinished | events.PodTerminated) -> None:
        self._running.get(event.node, {}).pop(event.uid, None)

    def _on_evicting(self, time_ns: int, actor: str, event: events.PodEvicting) -> None:
        self._values.add("kubelet_evictions", event.node, (event.signal,))


def zone(node: core_v1_pb2.Node) -> str:
    """Region and zone of a node as labels of metrics tell them (``GetZoneKey``)."""
    labels = node.metadata.labels
    region, name = labels.get("topology.kubernetes.io/region", ""), labels.get("topology.kubernetes.io/zone", "")
    return f"{region}:\0:{name}" if region or name else ""


def _kind(resource: str) -> tuple[str, str, str]:
    """Group, version and plural."""
    row = resources.BY_PLURAL.get(resource)
    if row is not None:
        return row.group, row.api_version.rpartition("/")[2], row.collection
    if custom_kinds.is_custom(resource):
        plural, _, group = resource.partition(".")
        return group, "", plural
    return "", "", resource


def _qualified(key: str) -> str:
    """``pods``, ``leases.coordination.k8s.io``."""
    plural = key[len(_PREFIX) : key.find("/", len(_PREFIX))]
    row = resources.BY_PLURAL.get(plural)
    return row.qualified if row is not None else plural
