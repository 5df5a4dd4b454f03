"""The actor ``controller/cluster-autoscaler``: adds nodes for pods that fit nowhere, and removes nodes that are not
needed.

    config = {"apiserver": "apiserver/0", "events": "notable", "devices": false, "autoscaler": {"cutOff": -10, …},
              "groups": [{"name": "pool", "min": 0, "max": 10, "price": 0.1, "template": <bytes of a Node>,
                          "slices": [<bytes of a ResourceSlice>, …]}]}

One iteration is ``StaticAutoscaler.RunOnce`` of the cluster autoscaler 1.36: pods of lower priority than the cut-off
count neither as waiting nor as running; a pod that is nominated to a node counts as running there. Iterations come
every ``scanInterval``, at once when a pod becomes unschedulable, and at once after one that did something. One that
could find nothing new is left out.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

from kemu import errors
from kemu.emulated.autoscaler import actuators, pod_rules, scale_downs, scale_ups, settings, taints
from kemu.emulated.autoscaler.cluster_states import ClusterState
from kemu.emulated.autoscaler.providers import NodeGroup, Provider, ProviderError
from kemu.emulated.autoscaler.simulator import drainability
from kemu.emulated.autoscaler.simulator.placements import Placements
from kemu.emulated.autoscaler.simulator.snapshots import Snapshot
from kemu.emulated.autoscaler.templates import Template, Templates
from kemu.emulated.client import clients, informers, recorders
from kemu.emulated.objects import meta
from kemu.emulated.objects.pods import pod_phases
from kemu.emulated.scheduler import feeds
from kemu.emulated.scheduler.cache.cluster import Cluster
from kemu.emulated.scheduler.devices.trackers import Devices
from kemu.emulated.settings.declared import restored
from kemu.messages.k8s import core_v1_pb2
from kemu.messages.k8s.objects import KubernetesObject
from kemu.runtime import distributions
from kemu.runtime.env import MILLISECOND_NS, SECOND_NS, Env
from kemu.runtime.runlog import events

STATUS = "cluster-autoscaler-status"
"""The ConfigMap that events about the autoscaler itself regard."""
NEW_POD_S, NEW_GPU_POD_S = 2, 30
"""If all pods are younger, more may follow: wait for an iteration (``unschedulablePodTimeBuffer``)."""
SOFT_TAINTS_NS = 3 * SECOND_NS
"""So long it marks candidates in one iteration (``max-bulk-soft-taint-time``)."""
START_NS = 600 * SECOND_NS
"""So long after its start, nodes need not be ready (``NodesNotReadyAfterStartTimeout``)."""
NEVER_NS = -3600 * SECOND_NS
"""At the start nothing has been scaled for long."""


class ClusterAutoscaler:
    """Factory: ``kemu.emulated.autoscaler.autoscaler:ClusterAutoscaler``."""

    def __init__(self, env: Env, config: Mapping[str, Any]) -> None:
        """Raises ValueError that names the setting."""
        self._env = env
        self._settings = restored(settings.Settings, config["autoscaler"])
        self._lag = distributions.parse(config.get("lag", 0))
        self._client = clients.of_actor(env, config)
        level = config.get("events", recorders.NOTABLE)
        self._recorder = recorders.Recorder(env, self._client, settings.AUTOSCALER, "0", level)
        self._cluster = Cluster()
        if config.get("devices"):
            self._cluster.devices = Devices(env.clock)
        self._snapshot = Snapshot(self._cluster, env.random)
        self._provider = Provider(env, config["groups"])
        self._templates = Templates(self._provider, force_daemon_sets=self._settings.force_daemon_sets)
        self._state = ClusterState(self._provider, self._settings, self._tell)
        self._pending: dict[str, Any] = {}
        """Pods without a node, by key."""
        self._by_node: dict[str, dict[str, Any]] = {}
        """Pods on nodes that count, by node and key."""
        self._dirty = True
        """Something has changed since the last iteration."""
        self._urgent = False
        """A pod has just become unschedulable, or it is time."""
        self._news = asyncio.Event()
        self._informers = self._watch()
        rules = drainability.Rules(
            self._settings.scale_down,
            {name: self._informers[name].store for name in drainability.OWNERS.values()},
        )
        self._planner = scale_downs.Planner(self._provider, self._settings.scale_down, rules)
        self._actuator = actuators.Actuator(
            env, self._client, self._provider, self._state, self._settings.scale_down, rules, self,
            self._record, self._tell,
        )  # fmt: skip
        self._placements = Placements()
        self._scaled_up_ns = self._deleted_ns = self._failed_ns = NEVER_NS
        self._born_ns = env.clock.now_ns()
        self._usable = 0
        """How many nodes are ready and not cordoned."""
        self._hopeless: dict[str, str] = {}
        """Pods for which it cannot do anything, by UID, and why."""
        self._seen: actuators.Revisions = {"pods_rev": 0, "nodes_rev": 0}
        """Revisions of pods and nodes by which this iteration decides."""
        self._again = False
        """Pods wait for the next iteration."""

    # --- what it hears -----------------------------------------------------------------------------------------------

    def _watch(self) -> dict[str, informers.Informer[Any]]:
        handlers: dict[str, Any] = dict(feeds.lookup_feeds(self._cluster))
        handlers["nodes"] = informers.Callbacks(self._node_came, self._node_changed, self._node_went)
        handlers["pods"] = informers.Callbacks(self._pod_came, self._pod_changed, self._pod_went)
        handlers["daemonsets"] = handlers["jobs"] = None
        if self._cluster.devices is not None:
            handlers |= feeds.device_lookups(self._cluster, self._note)
        return {
            plural: informers.Informer(
                self._client,
                plural,
                handler=handler,
                field_selector=pod_phases.NOT_TERMINAL if plural == "pods" else "",
            )
            for plural, handler in handlers.items()
        }

    def _note(self) -> None:
        self._dirty = True
        self._planner.changes += 1
        self._news.set()

    def _hurry(self) -> None:
        self._urgent = True
        self._news.set()

    def _node_came(self, node: core_v1_pb2.Node) -> None:
        self._cluster.change(self._cluster.set_node, node)
        self._note()

    def _node_changed(self, old: core_v1_pb2.Node, new: core_v1_pb2.Node) -> None:
        self._cluster.change(self._cluster.set_node, new)
        if old.spec != new.spec or taints.readiness(old) != taints.readiness(new):
            self._note()

    def _node_went(self, node: core_v1_pb2.Node) -> None:
        self._cluster.change(self._cluster.remove_node, node.metadata.name)
        self._note()

    def _pod_came(self, pod: core_v1_pb2.Pod) -> None:
        self._note()
        key = meta.namespaced_name(pod)
        if not pod.spec.nodeName:
            self._pending[key] = pod
            self._wake_up_for(pod)
        elif not pod_rules.is_expendable(pod, self._settings.cut_off):
            self._by_node.setdefault(pod.spec.nodeName, {})[key] = pod
            self._cluster.change(self._see, pod)

    def _see(self, pod: core_v1_pb2.Pod) -> None:
        self._cluster.see_pod(pod)

    def _pod_changed(self, old: core_v1_pb2.Pod, new: core_v1_pb2.Pod) -> None:
        self._pending.pop(meta.namespaced_name(old), None)
        self._pod_came(new)

    def _pod_went(self, pod: core_v1_pb2.Pod) -> None:
        self._note()
        key = meta.namespaced_name(pod)
        self._pending.pop(key, None)
        self._hopeless.pop(pod.metadata.uid, None)
        on_node = self._by_node.get(pod.spec.nodeName, {})
        if on_node.pop(key, None) is not None:
            self._cluster.change(self._cluster.remove_pod, pod.metadata.uid)
            if not on_node:
                del self._by_node[pod.spec.nodeName]

    def _wake_up_for(self, pod: core_v1_pb2.Pod) -> None:
        """A pod that has just been found unschedulable is looked at now (``UnschedulablePodObserver``)."""
        scheduled = meta.get_condition(pod.status.conditions, "PodScheduled")
        if scheduled is None or not pod_rules.is_unschedulable(pod) or pod.metadata.HasField("deletionTimestamp"):
            return
        age_ns = self._env.clock.unix_ns() - meta.unix_ns(scheduled.lastTransitionTime)
        if age_ns <= 10 * SECOND_NS:
            self._hurry()

    # --- what the actuator looks up ----------------------------------------------------------------------------------

    def pods_on(self, node: str) -> list[core_v1_pb2.Pod]:
        return list(self._by_node.get(node, {}).values())

    def budgets(self) -> drainability.Budgets:
        return drainability.Budgets(self._informers["poddisruptionbudgets"].store.values())

    # --- what it says ------------------------------------------------------------------------------------------------

    def _record(self, about: KubernetesObject, kind: str, reason: str, message: str) -> None:
        self._recorder.event(about, kind, reason, reason, message)

    def _tell(self, kind: str, reason: str, message: str) -> None:
        about = core_v1_pb2.ConfigMap()
        about.metadata.namespace, about.metadata.name = "kube-system", STATUS
        self._recorder.event(about, kind, reason, reason, message)
        self._env.log(events.AutoscalerReported(type=kind, reason=reason, message=message))

    # --- when --------------------------------------------------------------------------------------------------------

    async def run(self) -> None:
        for informer in self._informers.values():
            await informer.synced()
        self._env.ready()
        clock = self._env.clock
        await clock.started()
        before_ns = last_ns = clock.now_ns()
        await self._clean_up()
        while True:
            await self._wait(before_ns, last_ns)
            before_ns, last_ns = last_ns, clock.now_ns()
            self._urgent = self._dirty = False
            if lag_s := self._lag.draw(self._env.random):
                await clock.sleep(lag_s)
            try:
                await self._iterate()
            except (errors.ApiError, ProviderError) as error:
                self._env.log(events.AutoscalerFailed(why=str(error)))
                self._dirty = True

    async def _wait(self, before_ns: int, last_ns: int) -> None:
        """``LoopTrigger.Wait``; iterations that could find nothing new are left out."""
        clock = self._env.clock
        if max(self._scaled_up_ns, self._deleted_ns) >= before_ns:
            # At once; but time must pass where requests take none.
            await clock.sleep_until_ns(last_ns + MILLISECOND_NS)
            return
        scan_ns = round(self._settings.scan_interval_s * SECOND_NS)
        next_ns = last_ns + scan_ns
        while not self._urgent:
            self._news.clear()
            busy, recheck = self._dirty or self._is_busy(), self._planner.next_recheck()
            timer = None
            if busy:
                timer = clock.call_at_ns(next_ns, self._hurry)
            elif recheck is not None:
                timer = clock.call_at_ns(_turn(next_ns, recheck[0], scan_ns), self._hurry, background=not recheck[1])
            await self._news.wait()
            if timer is not None:
                timer.cancel()
            # The iterations that were left out would have come at these times.
            next_ns = _turn(next_ns, clock.now_ns(), scan_ns)

    def _is_busy(self) -> bool:
        """Whether time alone will let it do something."""
        return bool(self._again or self._planner.unneeded or self._actuator.going()) or self._state.is_busy(
            self._env.clock.now_ns()
        )

    # --- one iteration -----------------------------------------------------------------------------------------------

    async def _clean_up(self) -> None:
        """Taints that an earlier life has left (``cleanUpIfRequired``)."""
        await self._provider.refresh()
        for node in list(self._informers["nodes"].store.values()):
            if self._provider.group_of(node.metadata.name) and taints.has(node, taints.TO_BE_DELETED):
                await self._actuator.unmark(node, taints.TO_BE_DELETED, uncordon=self._settings.scale_down.cordon)

    async def _iterate(self) -> None:
        """``RunOnce``."""
        await self._provider.refresh()
        self._cluster.hold_snapshot()
        self._snapshot.fork()
        try:
            await self._iterate_on_snapshot()
        finally:
            self._snapshot.revert()
            self._cluster.release_snapshot()

    async def _iterate_on_snapshot(self) -> None:
        clock, snapshot, state = self._env.clock, self._snapshot, self._state
        now_ns, unix_ns = clock.now_ns(), clock.unix_ns()
        revisions = {name: self._informers[name].revision for name in ("pods", "nodes")}
        self._seen = {"pods_rev": revisions["pods"], "nodes_rev": revisions["nodes"]}
        nodes = list(self._informers["nodes"].store.values())
        if not self._settings.scale_up_from_zero and not any(_is_usable(node) for node in nodes):
            # EmptyClusterProcessor.ShouldAbort
            self._planner.forget()
            if not nodes or now_ns > self._born_ns + START_NS:
                self._tell("Warning", "ClusterUnhealthy", f"Cluster has no {'ready ' if nodes else ''}nodes.")
            return
        self._place_nominated()
        nodes = self._without_devices(nodes)
        self._usable = sum(map(_is_usable, nodes))
        slices = self._informers["resourceslices"].store.values() if snapshot.devices is not None else ()
        sets = self._informers["daemonsets"].store.values()
        templates = self._templates.find(snapshot, nodes, sets, slices, unix_ns)
        await state.update(nodes, now_ns, unix_ns)
        await self._remove_late(now_ns)
        if not state.is_healthy():
            self._planner.forget()
            self._tell("Warning", "ClusterUnhealthy", "Cluster is unhealthy")
            return
        for name, machines in state.not_created().items():
            with contextlib.suppress(ProviderError):
                await self._provider.delete_nodes(self._provider.groups[name], machines)
                state.recalculate()
        if await state.fix_sizes(now_ns):
            return
        nodes = self._add_upcoming(nodes, templates, now_ns)
        pods = self._unschedulable(now_ns, unix_ns)
        forbidden = await self._scale_up(pods, templates, now_ns, unix_ns)
        if self._settings.scale_down.enabled:
            await self._scale_down(nodes, forbidden, now_ns, unix_ns)
        if self._settings.enforce_node_group_min_size:
            await self._grow(scale_ups.to_minimum(self._provider, state, now_ns), (), now_ns)

    def _without_devices(self, nodes: list[core_v1_pb2.Node]) -> list[core_v1_pb2.Node]:
        """The same nodes, of which one counts as not ready until its drivers have published all their pools
        (``DraCustomResourcesProcessor``)."""
        devices = self._snapshot.devices
        if devices is None:
            return nodes
        found = []
        for node in nodes:
            group = self._provider.group_of(node.metadata.name)
            drivers = {one.spec.driver for one in group.slices} if group is not None else set()
            found.append(node if devices.has_pools(node.metadata.name, drivers) else taints.unready(node))
        return found

    def _place_nominated(self) -> None:
        """Pods that have made room count as if they ran there."""
        for pod in self._pending.values():
            node = pod.status.nominatedNodeName
            counts = node and self._snapshot.node(node) is not None and not pod.metadata.HasField("deletionTimestamp")
            if counts and not pod_rules.is_expendable(pod, self._settings.cut_off):
                self._snapshot.place(pod, node)

    async def _remove_late(self, now_ns: int) -> None:
        """Machines that never registered (``removeOldUnregisteredNodes``)."""
        for name, machines in self._state.late(now_ns).items():
            group = self._provider.groups[name]
            surplus = machines[: max(0, group.target_size - group.min_size)]
            try:
                if surplus:
                    await self._provider.delete_nodes(group, surplus)
            except ProviderError as error:
                for machine in surplus:
                    self._tell("Warning", "DeleteUnregisteredFailed", f"Failed to remove node {machine}: {error}")
                return
            for machine in surplus:
                self._tell("Normal", "DeleteUnregistered", f"Removed unregistered node {machine}")

    def _add_upcoming(
        self, nodes: Sequence[core_v1_pb2.Node], templates: Mapping[str, Template], now_ns: int
    ) -> list[core_v1_pb2.Node]:
        """Let the nodes to come stand in the snapshot as if they were ready. Returns the nodes that are there."""
        counts, registered = self._state.upcoming(now_ns)
        for name, count in counts.items():
            for number in range(count):
                added = templates[name].named(f"upcoming-{number}")
                self._snapshot.add_node(added.node, added.pods, added.slices)
        for name in registered:
            self._snapshot.remove_node(name)
        return [node for node in nodes if node.metadata.name not in registered]

    def _unschedulable(self, now_ns: int, unix_ns: int) -> list[core_v1_pb2.Pod]:
        """Pods that need new nodes: those that fit on none that is there or to come (``PodListProcessor``)."""
        found = [
            pod
            for pod in self._pending.values()
            if not pod.metadata.HasField("deletionTimestamp")
            and not pod.status.nominatedNodeName
            and pod_rules.is_unschedulable(pod)
            and not pod_rules.is_expendable(pod, self._settings.cut_off)
        ]
        for node in self._actuator.drained:
            if self._snapshot.node(node) is None:
                continue
            for pod in self._snapshot.pods_on(node):
                if not pod.metadata.HasField("deletionTimestamp") and pod_rules.comes_back(pod):
                    moved = pod_rules.unbound(pod)
                    self._snapshot.take_away(pod.metadata.uid)
                    found.append(moved)
        found.sort(key=lambda pod: -pod.spec.priority)
        placed = self._placements.try_all(self._snapshot, found)
        self._placements.drop_old()
        left = [pod for pod in found if pod.metadata.uid not in placed and not pod_rules.of_daemon_set(pod)]
        old = [pod for pod in left if self._age_s(pod, unix_ns) > self._patience_s(pod)]
        self._again = len(old) < len(left)
        return old

    def _age_s(self, pod: core_v1_pb2.Pod, unix_ns: int) -> float:
        return (unix_ns - meta.unix_ns(pod.metadata.creationTimestamp)) / SECOND_NS

    def _patience_s(self, pod: core_v1_pb2.Pod) -> float:
        """``filterOutYoungPods``."""
        least = self._settings.new_pod_scale_up_delay_s
        said = pod.metadata.annotations.get(pod_rules.SCALE_UP_DELAY, "")
        return max(least, pod_rules.seconds(said, least))

    async def _scale_up(
        self, pods: Sequence[core_v1_pb2.Pod], templates: Mapping[str, Template], now_ns: int, unix_ns: int
    ) -> bool:
        """Returns whether nothing may be removed in this iteration."""
        if not pods:
            return False
        if self._settings.max_nodes_total and self._usable >= self._settings.max_nodes_total:
            text = f"Max total nodes in cluster reached: {self._settings.max_nodes_total}"
            self._tell("Warning", "MaxNodesTotalReached", text)
            if not self._settings.enforce_node_group_min_size:  # Its status replaces this one.
                self._give_up([(pod, scale_ups.MAX_NODES) for pod in pods])
            return False
        oldest_s = max(self._age_s(pod, unix_ns) for pod in pods)
        gpu_s = max((self._age_s(pod, unix_ns) for pod in pods if pod_rules.requests_gpu(pod)), default=NEW_GPU_POD_S)
        if oldest_s < NEW_POD_S or gpu_s < NEW_GPU_POD_S:
            self._again = True
            return True
        plan = scale_ups.plan(
            self._snapshot, pods, templates, self._provider, self._state, self._settings, self._env.random, now_ns,
            self._tell,
        )  # fmt: skip
        if plan.limited:
            text = f"Max total nodes in cluster reached: {self._settings.max_nodes_total}"
            self._tell("Warning", "MaxNodesTotalReached", text)
        if plan.resizes:
            await self._grow(plan.resizes, plan.pods, now_ns)
        elif not plan.limited:
            self._give_up(plan.hopeless)
        return False

    async def _grow(self, resizes: Sequence[scale_ups.Resize], pods: Sequence[core_v1_pb2.Pod], now_ns: int) -> None:
        """``ExecuteScaleUps``."""
        for resize in resizes:
            group = resize.group
            change = f"to {resize.new} instead of {resize.current} (max: {group.max_size})"
            self._tell("Normal", "ScaledUpGroup", f"Scale-up: setting group {group.name} size {change}")
            asked = partial(
                events.ScaleUpRequested,
                group=group.name,
                size_before=resize.current,
                size=resize.new,
                max=group.max_size,
            )
            try:
                await self._provider.increase(group, resize.new - resize.current)
            except ProviderError as error:
                self._tell("Warning", "FailedToScaleUpGroup", f"Scale-up failed for group {group.name}: {error}")
                self._state.failed(group, now_ns)
                self._env.log(asked(pods=[], ok=False))
                return
            keys = [meta.namespaced_name(pod) for pod in pods]
            self._env.log(asked(pods=keys, ok=True))
            self._state.scaled_up(group, resize.new - resize.current, now_ns)
            self._tell("Normal", "ScaledUpGroup", f"Scale-up: group {group.name} size set {change}")
        if resizes:
            self._scaled_up_ns = now_ns
            self._state.recalculate()
            text = f"pod triggered scale-up: [{' '.join(str(resize) for resize in resizes)}]"
            for pod in pods:
                self._hopeless.pop(pod.metadata.uid, None)
                self._record(pod, "Normal", "TriggeredScaleUp", text)

    def _give_up(self, pods: Sequence[tuple[Any, str]]) -> None:
        """Say of pods that no group can take them."""
        for pod, why in pods:
            self._record(pod, "Normal", "NotTriggerScaleUp", f"pod didn't trigger scale-up: {why}")
            uid = pod.metadata.uid
            if self._hopeless.get(uid) != why:
                self._hopeless[uid] = why
                key = meta.namespaced_name(pod)
                self._env.log(events.ScaleUpImpossible(pod=key, uid=uid, why=why))

    async def _scale_down(self, nodes: Sequence[core_v1_pb2.Node], forbidden: bool, now_ns: int, unix_ns: int) -> None:
        planner, flags = self._planner, self._settings.scale_down
        before = list(planner.unneeded)
        planner.update(self._snapshot, nodes, self._actuator.going(), (), self.budgets(), now_ns, unix_ns)
        if list(planner.unneeded) != before:
            self._env.log(events.NodesUnneeded(nodes=list(planner.unneeded)))
        cooling = forbidden or any(
            since_ns + round(delay_s * SECOND_NS) > now_ns
            for since_ns, delay_s in (
                (self._scaled_up_ns, flags.delay_after_add_s),
                (self._failed_ns, flags.delay_after_failure_s),
                (self._deleted_ns, flags.delay_after_delete_s),
            )
        )
        if not cooling:
            empty, full = planner.due(now_ns, self._actuator.counts())
            try:
                pods_on = self._snapshot.pods_on
                if await self._actuator.start(empty, full, planner.utilization, pods_on, self._seen):
                    self._deleted_ns = now_ns
                    self._state.recalculate()
            except errors.ApiError:
                self._failed_ns = now_ns
                raise
        await self._soft_taints(nodes)

    async def _soft_taints(self, nodes: Sequence[core_v1_pb2.Node]) -> None:
        """Mark unneeded nodes, so that schedulers prefer others (``UpdateSoftDeletionTaints``)."""
        left = self._settings.scale_down.max_bulk_soft_taints
        until_ns = self._env.clock.now_ns() + SOFT_TAINTS_NS
        mine = [node for node in nodes if self._group(node) and not taints.has(node, taints.TO_BE_DELETED)]
        for wanted in (False, True):
            for node in mine:
                name = node.metadata.name
                if left <= 0 or self._env.clock.now_ns() >= until_ns or (name in self._planner.unneeded) != wanted:
                    continue
                if taints.has(node, taints.DELETION_CANDIDATE) == wanted:
                    continue
                left -= 1
                with contextlib.suppress(errors.ApiError):
                    if wanted:
                        await self._actuator.mark(node, taints.DELETION_CANDIDATE, "PreferNoSchedule")
                    else:
                        await self._actuator.unmark(node, taints.DELETION_CANDIDATE)

    def _group(self, node: core_v1_pb2.Node) -> NodeGroup | None:
        return self._provider.group_of(node.metadata.name)


def _is_usable(node: core_v1_pb2.Node) -> bool:
    """``IsNodeReadyAndSchedulable``."""
    return taints.readiness(node)[0] and not node.spec.unschedulable


def _turn(next_ns: int, now_ns: int, every_ns: int) -> int:
    """The first of the times ``next_ns``, ``next_ns + every_ns``, … that is not before ``now_ns``."""
    return next_ns + max(0, -(-(now_ns - next_ns) // every_ns)) * every_ns
