"""Takes nodes away: taints them, evicts their pods, deletes their machines (``core/scaledown/actuation``).

Empty nodes go together; nodes with pods are drained one at a time, as configured. What fails is undone, and the node
serves on.
"""

from __future__ import annotations

import asyncio
import functools
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Protocol, TypedDict

from kemu import errors
from kemu.emulated.autoscaler import pod_rules, taints
from kemu.emulated.autoscaler.cluster_states import ClusterState, Tell
from kemu.emulated.autoscaler.providers import NodeGroup, Provider, ProviderError
from kemu.emulated.autoscaler.scale_downs import Removable, Utilization
from kemu.emulated.autoscaler.settings import ScaleDown
from kemu.emulated.autoscaler.simulator.drainability import Budgets, Rules
from kemu.emulated.client import clients, retries
from kemu.emulated.objects import meta
from kemu.messages.k8s import core_v1_pb2
from kemu.runtime.env import SECOND_NS, Env
from kemu.runtime.runlog.events import ScaleDownBegun, ScaleDownEnded

EVICTION_RETRY_S = 10.0
HEADROOM_S = 30.0
"""After the grace period, before pods that are still there count as stuck (``DefaultPodEvictionHeadroom``)."""
LOOKS_S = 5.0
CONFLICT_RETRY_S, CONFLICTS_NS = 0.75, 5 * SECOND_NS
"""How long it waits after a conflict about a node, and until when (``conflictRetryInterval``, ``maxRetryDeadline``)."""

Record = Callable[[Any, str, str, str], None]
"""An event about an object: type, reason and message."""


class Revisions(TypedDict):
    """By which a decision was made, as the log names them."""

    pods_rev: int
    nodes_rev: int


class Cluster(Protocol):
    """What the actuator looks up: live, as informers have it."""

    def pods_on(self, node: str) -> list[Any]:
        """But for expendable ones."""
        ...

    def budgets(self) -> Budgets: ...


class Actuator:
    """``empty`` and ``drained``: the nodes that are being deleted, with their groups."""

    def __init__(
        self,
        env: Env,
        client: clients.Client,
        provider: Provider,
        state: ClusterState,
        settings: ScaleDown,
        rules: Rules,
        cluster: Cluster,
        record: Record,
        tell: Tell,
    ) -> None:
        self._env = env
        self._client = client
        self._provider = provider
        self._state = state
        self._settings = settings
        self._rules = rules
        self._cluster = cluster
        self._record = record
        self._tell = tell
        self.empty: dict[str, NodeGroup] = {}
        self.drained: dict[str, NodeGroup] = {}

    def going(self) -> dict[str, NodeGroup]:
        return {**self.empty, **self.drained}

    def counts(self) -> dict[str, int]:
        """How many nodes of each group are being deleted."""
        found: dict[str, int] = {}
        for group in self.going().values():
            found[group.name] = found.get(group.name, 0) + 1
        return found

    async def start(
        self,
        empty: Sequence[Removable],
        full: Sequence[Removable],
        utilization: Mapping[str, Utilization],
        pods_on: Callable[[str], Sequence[Any]],
        seen: Revisions,
    ) -> int:
        """Begin to delete as many of them as may go at a time; returns how many (``StartDeletion``, ``CropNodes``).

        ``utilization`` and ``pods_on`` tell of the nodes as they were simulated; ``seen``: by which revisions that was
        decided, for the log."""
        settings = self._settings
        room = settings.max_parallelism - len(self.empty) - len(self.drained)
        empty = self._cropped(empty, room)
        drains = min(room - len(empty), settings.max_drain_parallelism - len(self.drained))
        full = self._cropped(full, drains)
        if not await self._taint_all(empty):
            raise errors.Conflict(f"couldn't taint {len(empty)} nodes with ToBeDeleted")
        for one in empty:
            name = one.node.metadata.name
            self._tell("Normal", "ScaleDownEmpty", f'Scale-down: removing empty node "{name}"')
            self.empty[name] = self._group(name)
        if not await self._taint_all(full):
            raise errors.Conflict(f"couldn't taint {len(full)} nodes with ToBeDeleted")
        for one in full:
            name = one.node.metadata.name
            pods = ",".join(pod.metadata.name for pod in pods_on(name) if _is_drained(pod))
            text = f"Scale-down: removing node {name}, utilization: {utilization[name]}, pods to reschedule: {pods}"
            self._tell("Normal", "ScaleDown", text)
            self.drained[name] = self._group(name)
        for one, drain in [*((one, False) for one in empty), *((one, True) for one in full)]:
            name = one.node.metadata.name
            group = self._group(name).name
            self._env.log(
                ScaleDownBegun(
                    node=name, group=group, drain=drain, pods=len(one.pods), **seen, unneeded_ns=one.since_ns
                )
            )
            self._env.spawn(self._delete(one.node, self._group(name), drain), f"delete {name}")
        return len(empty) + len(full)

    @staticmethod
    def _cropped(nodes: Sequence[Removable], room: int) -> list[Removable]:
        return list(nodes[: max(0, room)])

    def _group(self, name: str) -> NodeGroup:
        group = self._provider.group_of(name)
        assert group is not None, name
        return group

    # --- taints ------------------------------------------------------------------------------------------------------

    async def _taint_all(self, nodes: Sequence[Removable]) -> bool:
        """All or none (``taintNodesSync``)."""
        done: list[Any] = []
        for one in nodes:
            try:
                await self.mark(one.node, taints.TO_BE_DELETED, "NoSchedule", cordon=self._settings.cordon)
            except errors.ApiError as error:
                text = f"failed to mark the node as toBeDeleted/unschedulable: {error}"
                self._record(one.node, "Warning", "ScaleDownFailed", text)
                for other in done:
                    await self.unmark(other, taints.TO_BE_DELETED, uncordon=self._settings.cordon)
                return False
            done.append(one.node)
            self._record(one.node, "Normal", "ScaleDown", "marked the node as toBeDeleted/unschedulable")
        return True

    async def mark(self, node: core_v1_pb2.Node, key: str, effect: str, *, cordon: bool = False) -> None:
        """``AddTaints``. Raises ApiError."""

        def change(fresh: core_v1_pb2.Node) -> bool:
            if taints.has(fresh, key):
                return False
            value = str(self._env.clock.unix_ns() // SECOND_NS)
            fresh.spec.taints.add(key=key, value=value, effect=effect)
            if cordon:
                fresh.spec.unschedulable = True
            return True

        await self._change(node, change)

    async def unmark(self, node: core_v1_pb2.Node, key: str, *, uncordon: bool = False) -> None:
        """``CleanTaints``; a node that is gone needs nothing."""

        def change(fresh: core_v1_pb2.Node) -> bool:
            kept = [taint for taint in fresh.spec.taints if taint.key != key]
            if len(kept) == len(fresh.spec.taints):
                return False
            del fresh.spec.taints[:]
            fresh.spec.taints.extend(kept)
            if uncordon:
                fresh.spec.unschedulable = False
            return True

        try:
            await self._change(node, change)
        except errors.NotFound:
            return

    async def _change(self, node: core_v1_pb2.Node, change: Callable[[core_v1_pb2.Node], bool]) -> None:
        """Change a node that may be out of date: where it is, or nothing is to be changed, the newest one is asked
        for. Raises ApiError."""
        clock, name, latest = self._env.clock, node.metadata.name, False
        until_ns = clock.now_ns() + CONFLICTS_NS
        while True:
            fresh = meta.copied(node)
            if change(fresh):
                try:
                    await retries.patiently(self._env, functools.partial(self._client.update, fresh))
                except errors.Conflict:
                    if clock.now_ns() >= until_ns:
                        raise
                    await clock.sleep(CONFLICT_RETRY_S)
                else:
                    return
            elif latest:
                return
            node = await retries.patiently(self._env, lambda: self._client.get("nodes", name))
            latest = True

    # --- one node ----------------------------------------------------------------------------------------------------

    async def _delete(self, node: core_v1_pb2.Node, group: NodeGroup, drain: bool) -> None:
        """``deleteNodesAsync``, and what follows."""
        name = node.metadata.name
        await self._env.clock.sleep(self._settings.delete_delay_after_taint_s)
        why = await self._empty(node, drain)
        if not why:
            try:
                await self._provider.delete_nodes(group, [name])
            except ProviderError as error:
                why = f"failed to delete nodes from group {group.name}: {error}"
        if why:
            text = "failed to drain and delete node" if drain else "failed to delete empty node"
            self._record(node, "Warning", "ScaleDownFailed", f"{text}: {why}")
            await self.unmark(node, taints.TO_BE_DELETED, uncordon=self._settings.cordon)
        else:
            self._record(node, "Normal", "ScaleDown", "nodes removed by cluster autoscaler")
            self._state.scaled_down(group, self._env.clock.now_ns())
            if drain:
                self._tell("Normal", "ScaleDown", f"Scale-down: node {name} removed with drain")
            else:
                self._tell("Normal", "ScaleDownEmpty", f"Scale-down: empty node {name} removed")
        self._env.log(
            ScaleDownEnded(
                node=name,
                group=group.name,
                ok=not why,
                why=why,
            )
        )
        (self.drained if drain else self.empty).pop(name, None)

    async def _empty(self, node: core_v1_pb2.Node, drain: bool) -> str:
        """Make it so; why not, if not."""
        name, settings = node.metadata.name, self._settings
        unix_ns = self._env.clock.unix_ns()
        moves = self._rules.moves(self._cluster.pods_on(name), self._cluster.budgets(), unix_ns)
        if moves.blocking is not None:
            pod, reason = moves.blocking
            return f"{pod.metadata.namespace}/{pod.metadata.name}: {reason}"
        if not drain:
            if moves.pods:
                return f'failed to delete empty node "{name}", new pods scheduled'
            if moves.waits_for:
                return f'failed to delete empty node "{name}", active on-completion pods present'
        by_default = (
            settings.daemon_set_eviction_for_occupied_nodes if drain else settings.daemon_set_eviction_for_empty_nodes
        )
        there = [pod for pod in self._cluster.pods_on(name) if not pod_rules.is_mirror(pod)]
        daemons = [pod for pod in there if not _is_drained(pod) and _evicts_daemon(pod, by_default)]
        for pod in daemons:
            self._env.spawn(self._evict(pod, needed=False), f"evict {pod.metadata.name}")
        # Those that terminate already go by themselves, and are waited for.
        pods = [pod for pod in there if drain and _is_drained(pod)]
        tasks = [self._env.spawn(self._evict(pod, needed=True), f"evict {pod.metadata.name}") for pod in pods]
        failures = [failure for failure in await asyncio.gather(*tasks) if failure]
        if failures:
            return f"Failed to drain node /{name}, due to following errors: [{' '.join(failures)}]"
        return await self._disappear(name, pods)

    async def _evict(self, pod: core_v1_pb2.Pod, *, needed: bool) -> str:
        """Until it is allowed; why not, if not (``evictPod``)."""
        clock, settings, metadata = self._env.clock, self._settings, pod.metadata
        self._record(pod, "Normal", "ScaleDown", "deleting pod for node scale down")
        grace_s = min(pod_rules.grace_s(pod), int(settings.max_graceful_termination_s))
        until_ns = clock.now_ns() + round(settings.max_pod_eviction_time_s * SECOND_NS)
        while True:
            try:
                await self._client.evict(metadata.namespace, metadata.name, grace_s)
            except errors.NotFound:
                return ""
            except errors.ApiError as error:
                last = error.message
            else:
                return ""
            await clock.sleep(EVICTION_RETRY_S)
            if clock.now_ns() >= until_ns:
                break
        if needed:
            self._record(pod, "Warning", "ScaleDownFailed", "failed to delete pod for ScaleDown")
        name = f"{metadata.namespace}/{metadata.name}"
        return f"failed to evict pod {name} within allowed timeout (last error: {last})"

    async def _disappear(self, node: str, pods: Sequence[core_v1_pb2.Pod]) -> str:
        """``waitPodsToDisappear``."""
        clock = self._env.clock
        limit_s = self._settings.max_graceful_termination_s + HEADROOM_S
        until_ns = clock.now_ns() + round(limit_s * SECOND_NS)
        while True:
            there = [await self._is_on(pod, node) for pod in pods]
            if not any(there):
                return ""
            if clock.now_ns() >= until_ns:
                return f"Failed to drain node /{node}: pods remaining after timeout"
            await clock.sleep(LOOKS_S)

    async def _is_on(self, pod: core_v1_pb2.Pod, node: str) -> bool:
        """A pod of that name, at least."""
        metadata = pod.metadata
        try:
            found = await self._client.get("pods", metadata.name, metadata.namespace)
        except errors.NotFound:
            return False
        except errors.ApiError:
            return True
        return found.spec.nodeName == node


def _is_drained(pod: core_v1_pb2.Pod) -> bool:
    return not pod_rules.is_mirror(pod) and not pod_rules.of_daemon_set(pod)


def _evicts_daemon(pod: core_v1_pb2.Pod, by_default: bool) -> bool:
    """``daemonset.PodsToEvict``."""
    said = pod.metadata.annotations.get(pod_rules.DAEMON_SET_EVICTION)
    return by_default if said is None else said == "true"
