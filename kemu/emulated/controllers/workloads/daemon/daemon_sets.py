"""The actor ``controller/daemonset``: one pod on every node that can take it. Mirrors ``pkg/controller/daemon``.

A daemon pod is made for one node, by a node affinity to its name, and goes through the scheduler like any other. Where
one has failed (was evicted, say) it is deleted, and replaced after a back-off that grows. When the template changes,
pods are replaced a few at a time: with ``maxUnavailable`` the old pod of a node goes first, with ``maxSurge`` the new
one comes first.

The real controller goes over all nodes at every sync. Here a sync looks only at the nodes of which something has
changed since the last one, as a set on 5,000 nodes hears of 5,000 pods: :class:`_Nodes` keeps what is known of the
others.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

from kemu import errors
from kemu.emulated.client import informers, recorders
from kemu.emulated.controllers import controllers
from kemu.emulated.controllers.workloads import availability, base, claims, histories, slow_start
from kemu.emulated.controllers.workloads.daemon import daemon_histories, daemon_pods
from kemu.emulated.objects import meta
from kemu.emulated.objects.pods import pod_phases
from kemu.emulated.objects.templates import generations
from kemu.messages.k8s import apps_v1_pb2, core_v1_pb2
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
    updated: int = 0
    ready: int = 0
    available: int = 0


_NONE = _Counts()


class _Nodes:
    """The nodes of one DaemonSet."""

    def __init__(self) -> None:
        self.generation = -1
        """Generation of the owner that :attr:`wish` was made of."""
        self.wish: daemon_pods.Wish | None = None
        self.pods: dict[str, dict[str, Any]] = {}
        """By node and UID."""
        self.uncounted: dict[str, None] = {}
        """Their counts are out of date."""
        self.unmanaged: dict[str, None] = {}
        """They may lack a pod, or have one too many."""
        self.warming: dict[str, None] = {}
        """Their pod is ready, but not for long enough."""
        self.hash = ""
        """Hash of the current revision."""
        self.template_generation = ""
        """As older versions of Kubernetes number templates."""
        self.outdated: dict[str, bool] = {}
        """Nodes whose only pod is of an old revision, and whether it is available."""
        self.unavailable: dict[str, None] = {}
        """Nodes that lack an available pod, the outdated ones apart."""
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


class DaemonSetController(base.WorkloadController[apps_v1_pb2.DaemonSet]):
    """Factory: ``kemu.emulated.controllers.workloads.daemon.daemon_sets:DaemonSetController``."""

    resource, kind, workers = "daemonsets", "DaemonSet", 2

    def __init__(self, env: Env, config: Mapping[str, Any]) -> None:
        super().__init__(env, config)
        self.nodes: informers.Informer[core_v1_pb2.Node] = informers.Informer(
            self.client,
            "nodes",
            handler=informers.Callbacks(self._node_changed, self._node_updated, self._node_deleted),
        )
        self._nodes: dict[str, _Nodes] = {}
        """By UID of the owner."""
        self._pod_nodes: dict[str, str] = {}
        """By UID of a daemon pod: its node."""
        self._backoff: dict[tuple[str, str, int], tuple[int, int]] = {}
        """By UID of the owner, node and observed generation: how long the last back-off is in seconds, and when it
        began in ns; the latest last."""
        self.histories = daemon_histories.DaemonHistories(self.client)

    def informers(self) -> tuple[informers.Informer[Any], ...]:
        return self.nodes, *super().informers(), self.histories.informer

    def place(self, pod: core_v1_pb2.Pod) -> str:
        """Its node."""
        return daemon_pods.target(pod)

    # --- events ------------------------------------------------------------------------------------------------------

    def _node_changed(self, node: core_v1_pb2.Node) -> None:
        self._touch(node.metadata.name)

    def _node_updated(self, old: core_v1_pb2.Node, new: core_v1_pb2.Node) -> None:
        if old.metadata.labels != new.metadata.labels or list(old.spec.taints) != list(new.spec.taints):
            self._touch(new.metadata.name)

    def _node_deleted(self, node: core_v1_pb2.Node) -> None:
        name = node.metadata.name
        self._touch(name)
        for owner in self.owners.store.values():
            for key in [key for key in self._backoff if key[:2] == (owner.metadata.uid, name)]:
                del self._backoff[key]
            self.losses.forget_place(owner.metadata.uid, name)

    def _touch(self, node: str) -> None:
        """All DaemonSets look at this node."""
        for owner in self.owners.store.values():
            if owner.metadata.uid in self._nodes:
                self._nodes[owner.metadata.uid].touch(node)
            self.enqueue(owner)

    def pod_changed(self, owner_uid: str, pod: core_v1_pb2.Pod) -> None:
        nodes = self._nodes.setdefault(owner_uid, _Nodes())
        known = self._known(owner_uid, pod)
        self._place(nodes, pod, known)
        if known is None and not nodes.pods and nodes.generation < 0:
            del self._nodes[owner_uid]

    def _place(self, nodes: _Nodes, pod: core_v1_pb2.Pod, known: core_v1_pb2.Pod | None) -> None:
        """Put a pod where it is now, which is nowhere if it is not ``known``."""
        uid = pod.metadata.uid
        before = self._pod_nodes.pop(uid, None)
        if before is not None:
            there = nodes.pods[before]
            there.pop(uid, None)
            if not there:
                del nodes.pods[before]
            nodes.touch(before)
        if known is not None:
            node = self._pod_nodes[uid] = daemon_pods.target(known)
            nodes.pods.setdefault(node, {})[uid] = known
            nodes.touch(node)

    def _known(self, owner_uid: str, pod: core_v1_pb2.Pod) -> core_v1_pb2.Pod | None:
        """The pod as it is now, if it is still the owner's and not one that has ended and is about to go."""
        reference = meta.controller_of(pod)
        if reference is None or reference.uid != owner_uid:
            return None
        found = self.owned_by(reference, pod.metadata.namespace).get(pod.metadata.uid)
        if found is None or (pod_phases.is_terminal(found) and found.metadata.HasField("deletionTimestamp")):
            return None
        return found

    def expired(self, owner: apps_v1_pb2.DaemonSet) -> None:
        nodes = self._nodes.setdefault(owner.metadata.uid, _Nodes())
        for name in (*self.nodes.store, *nodes.pods):
            nodes.touch(name)

    def forget(self, owner: apps_v1_pb2.DaemonSet) -> None:
        super().forget(owner)
        self.env.spawn(self.histories.delete_of(owner), "delete revisions of a deleted owner")
        uid = owner.metadata.uid
        nodes = self._nodes.pop(uid, None)
        if nodes is not None and nodes.pods:
            # Until they are deleted, too.
            kept = self._nodes[uid] = _Nodes()
            kept.pods = nodes.pods
        for key in [key for key in self._backoff if key[0] == uid]:
            del self._backoff[key]

    # --- work --------------------------------------------------------------------------------------------------------

    async def sync(self, owner: apps_v1_pb2.DaemonSet, may_manage: bool) -> None:
        """``syncDaemonSet``."""
        if owner.metadata.HasField("deletionTimestamp"):
            return
        nodes = self._nodes.setdefault(owner.metadata.uid, _Nodes())
        old = await self._revise(owner, nodes)
        touched = [pod for name in nodes.uncounted for pod in nodes.pods.get(name, {}).values()]
        claimed = {pod.metadata.uid: pod for pod in await self.claim(owner, touched)}
        # What was adopted or released counts at once.
        for pod in touched:
            if claimed.pop(pod.metadata.uid, None) is None:
                self._place(nodes, pod, None)
        for pod in claimed.values():
            self._place(nodes, pod, pod)
        failure = await self._update(owner, nodes, old, claimed) if may_manage else None
        self._count(owner, nodes)
        totals = nodes.totals
        counts = {
            "desiredNumberScheduled": totals.desired,
            "currentNumberScheduled": totals.current,
            "numberMisscheduled": totals.misscheduled,
            "updatedNumberScheduled": totals.updated,
            "numberReady": totals.ready,
            "numberAvailable": totals.available,
            "numberUnavailable": totals.desired - totals.available,
        }
        await self.report(owner, counts, observes=may_manage)
        if failure is not None:
            raise failure
        if owner.spec.minReadySeconds > 0 and totals.ready != totals.available:
            self.queue.add_after(controllers.key_of(owner), owner.spec.minReadySeconds)

    async def _revise(self, owner: apps_v1_pb2.DaemonSet, nodes: _Nodes) -> list[Any]:
        """Find or make the current revision. Returns the old ones."""
        claim = claims.Claims(self.env, self.client, self.resource, self.kind, owner, "controllerrevisions")
        mine = self.owned(owner).values()
        current, old = await self.histories.revise(owner, claim, mine, base.selector_of(owner))
        if nodes.generation != owner.metadata.generation or nodes.hash != current:
            nodes.generation, nodes.wish = owner.metadata.generation, daemon_pods.Wish(owner.spec.template)
            nodes.hash = current
            nodes.template_generation = owner.metadata.annotations.get(generations.ANNOTATION, "")
            for name in (*self.nodes.store, *nodes.pods):
                nodes.touch(name)
        return old

    async def _update(
        self, owner: apps_v1_pb2.DaemonSet, nodes: _Nodes, old: list[Any], adopted: dict[str, core_v1_pb2.Pod]
    ) -> errors.ApiError | None:
        """``updateDaemonSet``. ``adopted``: in this sync, by UID. Returns a failure."""
        if daemon_pods.max_surge(owner, 1):
            # Which pod of a node goes depends on how long another has been ready.
            nodes.unmanaged.update(nodes.warming)
        failure = await self._manage(owner, nodes)
        if failure is None and self.expectations.are_met(owner.metadata.uid):
            self._count(owner, nodes)
            if owner.spec.updateStrategy.type == "RollingUpdate":
                failure = await self._roll(owner, nodes)
        if adopted:
            await self._claim_again(owner, nodes, adopted)
        if failure is None:
            try:
                await self.histories.clean_up(owner, old, {**self.owned(owner), **adopted}.values())
            except errors.ApiError as error:
                return error
        return failure

    async def _claim_again(
        self, owner: apps_v1_pb2.DaemonSet, nodes: _Nodes, adopted: dict[str, core_v1_pb2.Pod]
    ) -> None:
        """Kubernetes claims the pods before each step (``getNodesToDaemonPods``). Until the watch has shown that an
        orphan was adopted, it is adopted once more, and one that was deleted in between counts no longer."""
        found = {pod.metadata.uid for pod in await self.claim(owner, [])} | self.owned(owner).keys()
        for uid in [uid for uid in adopted if uid not in found]:
            self._place(nodes, adopted.pop(uid), None)

    def _count(self, owner: apps_v1_pb2.DaemonSet, nodes: _Nodes) -> None:
        """``updateDaemonSetStatus``, of the nodes of which something has changed."""
        assert nodes.wish is not None
        now_ns, min_ready_s, store = self.unix_ns(), owner.spec.minReadySeconds, self.nodes.store
        for name in (*nodes.uncounted, *nodes.warming):
            node = store.get(name)
            nodes.warming.pop(name, None)
            there = nodes.pods.get(name)
            should_run = node is not None and nodes.wish.fits(node)[0]
            self._judge_update(nodes, name, should_run, min_ready_s, now_ns)
            if node is None:
                nodes.count(name, _NONE)
                continue
            if not there or not should_run:
                nodes.count(name, _Counts(desired=int(should_run), misscheduled=int(bool(there))))
                continue
            oldest = min(there.values(), key=_age)
            ready = meta.is_ready(oldest)
            available = ready and availability.is_available(oldest, min_ready_s, now_ns)
            nodes.count(name, _Counts(1, 1, 0, int(_is_updated(nodes, oldest)), int(ready), int(available)))
        nodes.uncounted.clear()

    def _judge_update(self, nodes: _Nodes, name: str, should_run: bool, min_ready_s: int, now_ns: int) -> None:
        """What a rolling update thinks of the node (``rollingUpdate`` without surge)."""
        nodes.outdated.pop(name, None)
        nodes.unavailable.pop(name, None)
        there = nodes.pods.get(name)
        if there is None and not should_run:
            return
        pods = (there or {}).values()
        if any(meta.is_ready(pod) and not availability.is_available(pod, min_ready_s, now_ns) for pod in pods):
            nodes.warming[name] = None
        new, old = _new_and_old(nodes, pods)
        if len(new) + len(old) != 1:
            # None, two, or too many: the other loop sees to that.
            nodes.unavailable[name] = None
        elif old:
            nodes.outdated[name] = availability.is_available(old[0], min_ready_s, now_ns)
        elif not availability.is_available(new[0], min_ready_s, now_ns):
            nodes.unavailable[name] = None

    async def _roll(self, owner: apps_v1_pb2.DaemonSet, nodes: _Nodes) -> errors.ApiError | None:
        """``rollingUpdate``. Returns a failure."""
        desired = nodes.totals.desired
        surge, unavailable = daemon_pods.max_surge(owner, desired), daemon_pods.max_unavailable(owner, desired)
        if desired > 0 and not surge and not unavailable:
            unavailable = 1
        if surge:
            return await self._roll_with_surge(owner, nodes, surge)
        replaced = [name for name, is_available in nodes.outdated.items() if not is_available]
        candidates = [name for name, is_available in nodes.outdated.items() if is_available]
        room = max(0, unavailable - len(nodes.unavailable) - len(replaced))
        doomed = [
            pod
            for name in (*replaced, *candidates[:room])
            for pod in nodes.pods[name].values()
            if not pod.metadata.HasField("deletionTimestamp")
        ]
        return await self._sync_nodes(owner, nodes, doomed, [])

    async def _roll_with_surge(self, owner: apps_v1_pb2.DaemonSet, nodes: _Nodes, surge: int) -> errors.ApiError | None:
        """New pods come before the old ones go."""
        assert nodes.wish is not None
        now_ns, min_ready_s = self.unix_ns(), owner.spec.minReadySeconds
        doomed: list[Any] = []
        misplaced: list[Any] = []
        wanted: list[str] = []
        candidates: list[str] = []
        surging = available = 0
        for name, there in nodes.pods.items():
            new, old = _new_and_old(nodes, there.values())
            if len(new) > 1 or len(old) > 1:
                surging += 1
                continue
            ready = [availability.is_available(pod, min_ready_s, now_ns) for pod in (*old, *new)]
            available += bool(ready and ready[0])
            if not old:
                continue
            if new:
                if ready[1]:
                    doomed.append(old[0])
                else:
                    surging += 1
                continue
            node = self.nodes.store.get(name)
            if node is None:
                return errors.NotFound(f"couldn't get node for nodeName {name!r}")
            if not nodes.wish.fits(node)[0]:
                (misplaced if ready[0] else doomed).append(old[0])
            elif not ready[0]:
                wanted.append(name)
            elif surging < surge:
                candidates.append(name)
        # Where the pods may not run any longer they stay until enough others are available.
        doomed += misplaced[: max(0, available - nodes.totals.desired)]
        wanted += candidates[: max(0, surge - surging)]
        return await self._sync_nodes(owner, nodes, doomed, wanted)

    async def _manage(self, owner: apps_v1_pb2.DaemonSet, nodes: _Nodes) -> errors.ApiError | None:
        """``manage``: at most a burst, the rest when that has been seen. Returns a failure."""
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
        return await self._sync_nodes(owner, nodes, doomed, missing)

    async def _sync_nodes(
        self, owner: apps_v1_pb2.DaemonSet, nodes: _Nodes, doomed: list[core_v1_pb2.Pod], missing: list[str]
    ) -> errors.ApiError | None:
        """``syncNodes``. Returns a failure."""
        create = missing[:BURST]
        left, failure = await slow_start.each(self.env, create, lambda name: self._create(owner, nodes, name))
        nodes.unmanaged.update(dict.fromkeys((*left, *missing[BURST:])))
        not_deleted = await self.delete_pods(owner, doomed[:BURST])
        if not_deleted is not None or len(doomed) > BURST:
            nodes.unmanaged.update(dict.fromkeys(daemon_pods.target(pod) for pod in doomed))
        return failure or not_deleted

    async def _create(self, owner: apps_v1_pb2.DaemonSet, nodes: _Nodes, node: str) -> None:
        pod = self.new_pod(owner)
        pod.metadata.labels[histories.REVISION_LABEL] = nodes.hash
        if nodes.template_generation:
            pod.metadata.labels[generations.LABEL] = nodes.template_generation
        daemon_pods.tolerate(pod.spec)
        daemon_pods.pin(pod.spec, node)
        await self.create_pod(owner, pod)

    def _judge(
        self, owner: apps_v1_pb2.DaemonSet, nodes: _Nodes, name: str, missing: list[str], doomed: list[Any]
    ) -> bool:
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
                    self._note_end(owner, pod, name, "failed", "kill")
                    doomed.append(pod)
            elif pod.status.phase == pod_phases.SUCCEEDED:
                self._note_end(owner, pod, name, "succeeded", "delete")
                doomed.append(pod)
            else:
                running.append(pod)
        running.sort(key=_age)
        if not daemon_pods.max_surge(owner, 1):
            doomed += running[1:]
        elif len(running) > 1:
            doomed += self._surplus(owner, nodes, running)
        elif not running and should_run:
            missing.append(name)
        return waits

    def _surplus(self, owner: apps_v1_pb2.DaemonSet, nodes: _Nodes, running: list[Any]) -> list[Any]:
        """While the update surges, a node may have an old and a new pod, until either is of no use. ``running``: the
        oldest first."""
        new = [pod for pod in running if histories.revision_of(pod) == nodes.hash]
        old = [pod for pod in running if histories.revision_of(pod) != nodes.hash]
        doomed = [pod for pod in running if pod not in (*new[:1], *old[:1])]
        if new and old:
            min_ready_s, now_ns = owner.spec.minReadySeconds, self.unix_ns()
            if not meta.is_ready(old[0]) or availability.is_available(new[0], min_ready_s, now_ns):
                doomed.append(old[0])
        return doomed

    def _note_end(self, owner: apps_v1_pb2.DaemonSet, pod: core_v1_pb2.Pod, node: str, how: str, then: str) -> None:
        """An Event object about a daemon pod that has ended."""
        kind = recorders.WARNING if how == "failed" else recorders.NORMAL
        reason = f"{how.capitalize()}DaemonPod"
        message = f"Found {how} daemon pod {controllers.key_of(pod)} on node {node}, will try to {then} it"
        self.recorder.event(owner, kind, reason, reason, message)

    def _must_wait(self, owner: apps_v1_pb2.DaemonSet, node: str) -> bool:
        """Whether a failed pod may not be replaced yet; then the owner is synced again in time."""
        key, now_ns = (owner.metadata.uid, node, owner.status.observedGeneration), self.clock.now_ns()
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


def _is_updated(nodes: _Nodes, pod: core_v1_pb2.Pod) -> bool:
    """``IsPodUpdated``."""
    labels = pod.metadata.labels
    return labels.get(histories.REVISION_LABEL, "") == nodes.hash or (
        nodes.template_generation != "" and labels.get(generations.LABEL) == nodes.template_generation
    )


def _new_and_old(nodes: _Nodes, pods: Iterable[Any]) -> tuple[list[Any], list[Any]]:
    """Those that are not being deleted, by their revision (``findUpdatedPodsOnNode``)."""
    alive = [pod for pod in pods if not pod.metadata.HasField("deletionTimestamp")]
    new = [pod for pod in alive if _is_updated(nodes, pod)]
    return new, [pod for pod in alive if not _is_updated(nodes, pod)]


def _age(pod: core_v1_pb2.Pod) -> tuple[bool, int, str]:
    """Bound pods first, then the oldest (``podByCreationTimestampAndPhase``)."""
    return not pod.spec.nodeName, pod.metadata.creationTimestamp.seconds, pod.metadata.name
