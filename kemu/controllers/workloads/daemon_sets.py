"""The actor ``controller/daemonset``: one pod on every node that can take it. Mirrors ``pkg/controller/daemon``.

A daemon pod is made for one node, by a node affinity to its name, and goes through the scheduler like any other. Where
one has failed (was evicted, say) it is deleted, and replaced after a back-off that grows. Updates of the template are
not rolled out.

The real controller goes over all nodes at every sync. Here a sync looks only at the nodes of which something has
changed since the last one, as a set on 5,000 nodes hears of 5,000 pods: :class:`_Nodes` keeps what is known of the
others.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from kemu import errors
from kemu.client import informers
from kemu.controllers import controllers
from kemu.controllers.workloads import availability, base, daemon_pods, slow_start
from kemu.objects import meta, pod_phases
from kemu.runtime.env import SECOND_NS, Env

BURST = 250
"""Pods that are created, and as many that are deleted, in one sync (``BurstReplicas``)."""
FIRST_BACKOFF_S, LONGEST_BACKOFF_S = 1, 15 * 60
"""Before a failed pod of a node is replaced; doubles. Forgotten after twice the longest."""


class _Counts(NamedTuple):
    """What one node adds to the status."""

    desired: int = 0
    current: int = 0
    misscheduled: int = 0
    ready: int = 0
    available: int = 0


_NONE = _Counts()


class _Nodes:
    """The nodes of one DaemonSet."""

    def __init__(self) -> None:
        self.generation = -1
        """Of the owner that :attr:`wish` was made of."""
        self.wish: daemon_pods.Wish | None = None
        self.pods: dict[str, dict[str, Any]] = {}
        """By node and UID."""
        self.uncounted: dict[str, None] = {}
        """Their counts are out of date."""
        self.unmanaged: dict[str, None] = {}
        """They may lack a pod, or have one too many."""
        self.warming: dict[str, None] = {}
        """Their pod is ready, but not for long enough."""
        self.totals = _NONE
        self._counts: dict[str, _Counts] = {}

    def touch(self, node: str) -> None:
        self.uncounted[node] = self.unmanaged[node] = None

    def count(self, node: str, counts: _Counts) -> None:
        before = self._counts.pop(node, _NONE)
        if counts != _NONE:
            self._counts[node] = counts
        if counts != before:
            self.totals = _Counts(*(t - b + c for t, b, c in zip(self.totals, before, counts, strict=True)))


class DaemonSetController(base.WorkloadController):
    """Factory: ``kemu.controllers.workloads.daemon_sets:DaemonSetController``."""

    resource, kind, workers = "daemonsets", "DaemonSet", 2

    def __init__(self, env: Env, config: Mapping[str, Any]) -> None:
        super().__init__(env, config)
        self.nodes = informers.Informer(
            self.client,
            "nodes",
            handler=informers.Callbacks(self._node_changed, self._node_updated, self._node_deleted),
        )
        self._nodes: dict[str, _Nodes] = {}
        """By UID of the owner."""
        self._pod_nodes: dict[str, str] = {}
        """By UID of a daemon pod: its node."""
        self._never_waits = "k8s-65240" in config.get("bugs", ())
        self._backoff: dict[tuple[str, str], tuple[int, int]] = {}
        """By UID of the owner and node: how long the last back-off is in seconds, and when it began in ns; the latest
        last."""

    async def run(self) -> None:
        await self.nodes.synced()
        await super().run()

    def place(self, pod: Any) -> str:
        """Its node."""
        return daemon_pods.target(pod)

    # --- events ------------------------------------------------------------------------------------------------------

    def _node_changed(self, node: Any) -> None:
        self._touch(node.metadata.name)

    def _node_updated(self, old: Any, new: Any) -> None:
        if old.metadata.labels != new.metadata.labels or list(old.spec.taints) != list(new.spec.taints):
            self._touch(new.metadata.name)

    def _node_deleted(self, node: Any) -> None:
        name = node.metadata.name
        self._touch(name)
        for owner in self.owners.store.values():
            self._backoff.pop((owner.metadata.uid, name), None)
            self.losses.forget_place(owner.metadata.uid, name)

    def _touch(self, node: str) -> None:
        """All DaemonSets look at this node."""
        for owner in self.owners.store.values():
            if owner.metadata.uid in self._nodes:
                self._nodes[owner.metadata.uid].touch(node)
            self.enqueue(owner)

    def pod_changed(self, owner_uid: str, pod: Any) -> None:
        uid = pod.metadata.uid
        nodes = self._nodes.setdefault(owner_uid, _Nodes())
        before = self._pod_nodes.pop(uid, None)
        if before is not None:
            there = nodes.pods[before]
            there.pop(uid, None)
            if not there:
                del nodes.pods[before]
            nodes.touch(before)
        known = self._known(owner_uid, pod)
        if known is not None:
            node = self._pod_nodes[uid] = daemon_pods.target(known)
            nodes.pods.setdefault(node, {})[uid] = known
            nodes.touch(node)
        elif not nodes.pods and nodes.generation < 0:
            del self._nodes[owner_uid]

    def _known(self, owner_uid: str, pod: Any) -> Any | None:
        """The pod as it is now, if it is still the owner's and not one that has ended and is about to go."""
        reference = meta.controller_of(pod)
        if reference is None or reference.uid != owner_uid:
            return None
        found = self.owned_by(reference, pod.metadata.namespace).get(pod.metadata.uid)
        if found is None or (pod_phases.is_terminal(found) and found.metadata.HasField("deletionTimestamp")):
            return None
        return found

    def forget(self, owner: Any) -> None:
        super().forget(owner)
        uid = owner.metadata.uid
        nodes = self._nodes.pop(uid, None)
        if nodes is not None and nodes.pods:
            # Until they are deleted, too.
            kept = self._nodes[uid] = _Nodes()
            kept.pods = nodes.pods
        for key in [key for key in self._backoff if key[0] == uid]:
            del self._backoff[key]

    # --- work --------------------------------------------------------------------------------------------------------

    async def sync(self, owner: Any, may_manage: bool) -> None:
        nodes = self._nodes.setdefault(owner.metadata.uid, _Nodes())
        if nodes.generation != owner.metadata.generation:
            nodes.generation, nodes.wish = owner.metadata.generation, daemon_pods.Wish(owner.spec.template)
            for name in (*self.nodes.store, *nodes.pods):
                nodes.touch(name)
        touched = [pod for name in nodes.uncounted for pod in nodes.pods.get(name, {}).values()]
        await self.claim(owner, touched)
        failure = await self._manage(owner, nodes) if may_manage else None
        self._count(owner, nodes)
        totals = nodes.totals
        await self.report(
            owner,
            observes=may_manage,
            desiredNumberScheduled=totals.desired,
            currentNumberScheduled=totals.current,
            numberMisscheduled=totals.misscheduled,
            updatedNumberScheduled=totals.current,
            numberReady=totals.ready,
            numberAvailable=totals.available,
            numberUnavailable=totals.desired - totals.available,
        )
        if failure is not None:
            raise failure
        if totals.ready != totals.available:
            self.queue.add_after(controllers.key_of(owner), owner.spec.minReadySeconds)

    def _count(self, owner: Any, nodes: _Nodes) -> None:
        """``updateDaemonSetStatus``, of the nodes of which something has changed."""
        assert nodes.wish is not None
        now_ns, min_ready_s, store = self.unix_ns(), owner.spec.minReadySeconds, self.nodes.store
        for name in (*nodes.uncounted, *nodes.warming):
            node = store.get(name)
            nodes.warming.pop(name, None)
            if node is None:
                nodes.count(name, _NONE)
                continue
            should_run, _ = nodes.wish.fits(node)
            there = nodes.pods.get(name)
            if not there or not should_run:
                nodes.count(name, _Counts(desired=int(should_run), misscheduled=int(bool(there))))
                continue
            oldest = min(there.values(), key=_age)
            ready = meta.is_ready(oldest)
            available = ready and availability.is_available(oldest, min_ready_s, now_ns)
            if ready and not available:
                nodes.warming[name] = None
            nodes.count(name, _Counts(1, 1, 0, int(ready), int(available)))
        nodes.uncounted.clear()

    async def _manage(self, owner: Any, nodes: _Nodes) -> errors.ApiError | None:
        """``manage`` and ``syncNodes``: at most a burst, the rest when that has been seen. Returns a failure."""
        missing: list[str] = []
        doomed: list[Any] = []
        waiting: list[str] = []
        for name in list(nodes.unmanaged):
            if len(missing) >= BURST or len(doomed) >= BURST:
                break
            del nodes.unmanaged[name]
            if self._judge(owner, nodes, name, missing, doomed):
                waiting.append(name)
        nodes.unmanaged.update(dict.fromkeys(waiting))
        left, failure = await slow_start.each(self.env, missing, lambda name: self._create(owner, name))
        nodes.unmanaged.update(dict.fromkeys(left))
        not_deleted = await self.delete_pods(owner, doomed)
        if not_deleted is not None:
            nodes.unmanaged.update(dict.fromkeys(daemon_pods.target(pod) for pod in doomed))
        return failure or not_deleted

    async def _create(self, owner: Any, node: str) -> None:
        pod = self.new_pod(owner)
        daemon_pods.tolerate(pod.spec)
        daemon_pods.pin(pod.spec, node)
        await self.create_pod(owner, pod)

    def _judge(self, owner: Any, nodes: _Nodes, name: str, missing: list[str], doomed: list[Any]) -> bool:
        """``podsShouldBeOnNode``. Returns whether the node has to be judged again after a back-off."""
        there = nodes.pods.get(name, {}).values()
        alive = [pod for pod in there if not pod.metadata.HasField("deletionTimestamp")]
        node = self.nodes.store.get(name)
        if node is None:
            # The garbage collector of pods sees to those that were bound.
            doomed += [pod for pod in alive if not pod.spec.nodeName]
            return False
        assert nodes.wish is not None
        should_run, may_stay = nodes.wish.fits(node)
        if not should_run:
            self.losses.forget_place(owner.metadata.uid, name)
        if should_run and not there:
            missing.append(name)
            return False
        if not may_stay:
            doomed += alive
            return False
        waits = False
        running = []
        for pod in alive:
            if pod.status.phase == pod_phases.FAILED:
                if self._must_wait(owner, name):
                    waits = True
                else:
                    doomed.append(pod)
            elif pod.status.phase == pod_phases.SUCCEEDED:
                doomed.append(pod)
            else:
                running.append(pod)
        doomed += sorted(running, key=_age)[1:]
        return waits

    def _must_wait(self, owner: Any, node: str) -> bool:
        """Whether a failed pod may not be replaced yet; then the owner is synced again in time."""
        if self._never_waits:
            return False
        key, now_ns = (owner.metadata.uid, node), self.clock.now_ns()
        length_s, since_ns = self._backoff.get(key, (0, 0))
        if now_ns < since_ns + length_s * SECOND_NS:
            # The whole of it from now on, as in Kubernetes, however much of it is over.
            self.queue.add_after(controllers.key_of(owner), length_s)
            return True
        forgotten_ns = now_ns - 2 * LONGEST_BACKOFF_S * SECOND_NS
        while self._backoff and next(iter(self._backoff.values()))[1] < forgotten_ns:
            del self._backoff[next(iter(self._backoff))]
        length_s, _ = self._backoff.pop(key, (0, 0))
        self._backoff[key] = (min(2 * length_s, LONGEST_BACKOFF_S) or FIRST_BACKOFF_S, now_ns)
        return False


def _age(pod: Any) -> tuple[bool, int, str]:
    """Bound pods first, then the oldest (``podByCreationTimestampAndPhase``)."""
    return not pod.spec.nodeName, pod.metadata.creationTimestamp.seconds, pod.metadata.name
