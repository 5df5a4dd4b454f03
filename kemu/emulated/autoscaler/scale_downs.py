"""Which nodes are not needed, and since when (``core/scaledown``: ``planner eligibility unneeded unremovable``).

A node is unneeded while its pods could run on the others. Nodes are looked at one after the other, and each that could
go is gone for those behind it.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from kemu.emulated.autoscaler import pod_rules, taints
from kemu.emulated.autoscaler.expanders import GPU
from kemu.emulated.autoscaler.providers import NodeGroup, Provider
from kemu.emulated.autoscaler.settings import ScaleDown
from kemu.emulated.autoscaler.simulator.devices import UtilizationError
from kemu.emulated.autoscaler.simulator.drainability import Budgets, Rules
from kemu.emulated.autoscaler.simulator.placements import Placements
from kemu.emulated.autoscaler.simulator.snapshots import Snapshot
from kemu.emulated.objects import meta
from kemu.emulated.objects.amounts import requests
from kemu.messages.k8s import core_v1_pb2
from kemu.runtime.env import SECOND_NS

BEING_DELETED, DISABLED, UNREADY = "CurrentlyBeingDeleted", "ScaleDownDisabledAnnotation", "ScaleDownUnreadyDisabled"
BUSY, RECENT, NO_PLACE = "NotUnderutilized", "RecentlyUnremovable", "NoPlaceToMovePods"
TOO_EARLY, TOO_EARLY_UNREADY = "NotUnneededLongEnough", "NotUnreadyLongEnough"
UNKNOWN = "UnexpectedError"
MIN_SIZE, NOT_AUTOSCALED, WAITS = "NodeGroupMinSizeReached", "NotAutoscaled", "BlockedByOnCompletionPod"


@dataclass
class Removable:
    """A node that could go now, if its time has come (``NodeToBeRemoved``)."""

    node: core_v1_pb2.Node
    pods: list[core_v1_pb2.Pod]
    """They have to move."""
    waits_for: list[Any]
    risky: bool
    """Its pods cannot all be evicted at once."""
    since_ns: int = 0


class Utilization(NamedTuple):
    """How much of a node is in use (``utilization.Info``)."""

    used: float
    resource: str
    """Of which that is the share."""
    shares: Mapping[str, float]

    def __str__(self) -> str:
        """As Go prints it."""
        of_nodes = [self.shares.get(name, 0.0) for name in (requests.CPU, requests.MEMORY, GPU)]
        devices = 0.0 if self.resource in self.shares else self.used
        return f"{{{' '.join([*map(_go, (*of_nodes, devices)), self.resource, _go(self.used)])}}}"


def _go(share: float) -> str:
    return repr(share).removesuffix(".0")


@dataclass
class Planner:
    """Remembers from iteration to iteration."""

    provider: Provider
    settings: ScaleDown
    rules: Rules
    unneeded: dict[str, Removable] = field(default_factory=dict)
    """By node."""
    reasons: dict[str, str] = field(default_factory=dict)
    """Why the others stay."""
    utilization: dict[str, Utilization] = field(default_factory=dict)
    changes: int = 0
    """How much has happened in the cluster, as far as its caller counts."""
    _until_ns: dict[str, tuple[int, int]] = field(default_factory=dict)
    """Nodes that are not looked at again before then, and what ``changes`` was when they were."""
    _placements: Placements = field(default_factory=Placements)
    _injections: Placements = field(default_factory=Placements)
    _last_ns: int = -1
    _interval_ns: int = 1 << 62

    def forget(self) -> None:
        """``CleanUpUnneededNodes``."""
        self.unneeded.clear()

    def next_recheck(self) -> tuple[int, bool] | None:
        """When the first of the nodes that had to stay is looked at again, and whether anything may be different."""
        if not self._until_ns:
            return None
        until_ns = min(until_ns for until_ns, _ in self._until_ns.values())
        return until_ns, any(changes < self.changes for _, changes in self._until_ns.values())

    def update(
        self,
        snapshot: Snapshot,
        nodes: Sequence[core_v1_pb2.Node],
        going: Collection[str],
        evicted: Sequence[Any],
        budgets: Budgets,
        now_ns: int,
        unix_ns: int,
    ) -> None:
        """``UpdateClusterState``. ``going``: nodes that are being deleted; ``evicted``: pods that will come back."""
        if self._last_ns >= 0:
            self._interval_ns = max(1, min(self._interval_ns, now_ns - self._last_ns))
        self._last_ns = now_ns
        snapshot.fork()
        try:
            self._injections.try_all(snapshot, [pod_rules.unbound(pod) for pod in evicted], all_or_stop=True)
            staying = [node for node in nodes if node.metadata.name not in going]
            self._categorize(snapshot, staying, budgets, now_ns, unix_ns)
        finally:
            snapshot.revert()
        self._placements.drop_old()
        self._injections.drop_old()

    def _categorize(
        self, snapshot: Snapshot, nodes: Sequence[core_v1_pb2.Node], budgets: Budgets, now_ns: int, unix_ns: int
    ) -> None:
        """``categorizeNodes``."""
        names = {node.metadata.name: None for node in nodes}
        self._until_ns = {name: known for name, known in self._until_ns.items() if known[0] > now_ns and name in names}
        self.reasons, self.utilization = {}, {}
        found: dict[str, Removable] = {}
        limit = self._limit()
        eligible = []
        for node in self._candidates(snapshot, nodes, budgets, unix_ns):
            reason = self._ineligible(snapshot, node, now_ns, unix_ns)
            if reason:
                self.reasons[node.metadata.name] = reason
            else:
                eligible.append(node)
        for node in eligible:
            if len(found) >= limit:
                break
            name = node.metadata.name
            removable = self._simulate(snapshot, node, names, budgets, unix_ns)
            if isinstance(removable, str):
                self.reasons[name] = removable
                until_ns = now_ns + round(self.settings.unremovable_recheck_time_s * SECOND_NS)
                self._until_ns[name] = until_ns, self.changes
                continue
            del names[name]
            known = self.unneeded.get(name)
            removable.since_ns = now_ns if known is None else known.since_ns
            found[name] = removable
        self.unneeded = found

    def _candidates(
        self, snapshot: Snapshot, nodes: Sequence[core_v1_pb2.Node], budgets: Budgets, unix_ns: int
    ) -> list[core_v1_pb2.Node]:
        """Nodes of groups that may shrink; empty ones first, then those that were unneeded before.

        Mirrors ``PreFilteringScaleDownNodeProcessor`` and ``CombinedScaleDownCandidatesProcessor``.
        """
        found = []
        for node in nodes:
            group = self.provider.group_of(node.metadata.name)
            if group is not None and group.target_size > group.min_size:
                found.append(node)

        def place(node: core_v1_pb2.Node) -> tuple[bool, bool]:
            name = node.metadata.name
            moves = self.rules.moves(snapshot.pods_on(name), budgets, unix_ns)
            return bool(moves.pods) or moves.blocking is not None, name not in self.unneeded

        return sorted(found, key=place)

    def _limit(self) -> int:
        """``unneededNodesLimit``."""
        parallel = self.settings.max_parallelism
        unneeded_ns = max(round(self.settings.unneeded_time_s * SECOND_NS), self._interval_ns)
        return min(len(self.unneeded) + 2 * parallel, parallel * (unneeded_ns // self._interval_ns) + parallel)

    def _ineligible(self, snapshot: Snapshot, node: core_v1_pb2.Node, now_ns: int, unix_ns: int) -> str:
        """``FilterOutUnremovable``."""
        name = node.metadata.name
        if name in self._until_ns:
            return RECENT
        if taints.is_being_deleted(node, unix_ns):
            return BEING_DELETED
        if node.metadata.annotations.get(taints.SCALE_DOWN_DISABLED) == "true":
            return DISABLED
        pods = snapshot.pods_on(name)
        try:
            of_devices = None if snapshot.devices is None else snapshot.devices.utilization(name, pods)
        except UtilizationError:
            return UNKNOWN
        found = utilization(node, pods, unix_ns, ignore_daemons=self.settings.ignore_daemon_sets_utilization)
        if of_devices:
            found = Utilization(*of_devices, {})
        if not self.settings.unready_enabled and not taints.readiness(node)[0]:
            return UNREADY
        self.utilization[name] = found
        settings = self.settings
        threshold = settings.gpu_utilization_threshold if found.resource == GPU else settings.utilization_threshold
        return BUSY if found.used > threshold else ""

    def _simulate(
        self,
        snapshot: Snapshot,
        node: core_v1_pb2.Node,
        destinations: Mapping[str, None],
        budgets: Budgets,
        unix_ns: int,
    ) -> Removable | str:
        """Whether its pods find places; if not, why it stays (``SimulateNodeRemoval``)."""
        name = node.metadata.name
        moves = self.rules.moves(snapshot.pods_on(name), budgets, unix_ns)
        if moves.blocking is not None:
            pod, reason = moves.blocking
            return f"BlockedByPod: {pod.metadata.namespace}/{pod.metadata.name}: {reason}"
        snapshot.fork()
        for pod in moves.pods:
            snapshot.take_away(pod.metadata.uid)
        for pod in snapshot.pods_on(name):
            snapshot.take_away(pod.metadata.uid)
        # The node stays while it is drained, for spread constraints count it (replaceWithTaintedGhostNode).
        ghost = meta.copied(node)
        ghost.spec.taints.add(key=taints.TO_BE_DELETED, value=str(unix_ns // SECOND_NS), effect="NoSchedule")
        snapshot.change_node(ghost)
        placed = self._placements.try_all(
            snapshot,
            [pod_rules.unbound(pod) for pod in moves.pods],
            lambda other: other != name and other in destinations,
            all_or_stop=True,
        )
        if len(placed) < len(moves.pods):
            snapshot.revert()
            return NO_PLACE
        snapshot.remove_node(name)
        snapshot.commit()
        risky = not budgets.allows_together(moves.pods)
        budgets.take(moves.pods)
        return Removable(node, moves.pods, moves.waits_for, risky)

    # --- whose time has come -----------------------------------------------------------------------------------------

    def due(self, now_ns: int, deleting: Mapping[str, int]) -> tuple[list[Removable], list[Removable]]:
        """Empty nodes, and nodes to drain, that may go now (``NodesToDelete``). ``deleting``: how many by group."""
        sizes = {name: group.target_size for name, group in self.provider.groups.items()}
        empty: list[Removable] = []
        full: list[Removable] = []
        for wants_drain in (False, True):
            for name, one in self.unneeded.items():
                if bool(one.pods) != wants_drain:
                    continue
                group = self.provider.group_of(name)
                reason = self._too_early(one, now_ns) or self._too_small(group, sizes, deleting)
                if not reason and one.waits_for:
                    reason = WAITS
                if reason:
                    self.reasons[name] = reason
                    continue
                assert group is not None
                sizes[group.name] -= 1
                (full if wants_drain else empty).append(one)
        return empty, [one for one in full if not one.risky] + [one for one in full if one.risky]

    def _too_early(self, one: Removable, now_ns: int) -> str:
        ready = taints.readiness(one.node)[0]
        wait_ns = round((self.settings.unneeded_time_s if ready else self.settings.unready_time_s) * SECOND_NS)
        if wait_ns > 0 and one.since_ns + wait_ns >= now_ns:
            return TOO_EARLY if ready else TOO_EARLY_UNREADY
        return ""

    @staticmethod
    def _too_small(group: NodeGroup | None, sizes: Mapping[str, int], deleting: Mapping[str, int]) -> str:
        if group is None:
            return NOT_AUTOSCALED
        return MIN_SIZE if sizes[group.name] - deleting.get(group.name, 0) <= group.min_size else ""


def utilization(
    node: core_v1_pb2.Node, pods: Sequence[core_v1_pb2.Pod], unix_ns: int, *, ignore_daemons: bool
) -> Utilization:
    """The larger share of CPU and memory that pods request, or the share of GPUs (``Calculate``)."""
    offered = requests.resource_list(node.status.allocatable)
    names = (GPU,) if offered.get(GPU) else (requests.CPU, requests.MEMORY)
    shares = {name: _share(name, offered, pods, unix_ns, ignore_daemons) for name in names}
    resource = names[0]
    if len(names) > 1 and not shares[requests.CPU] > shares[requests.MEMORY]:  # a share may be no number
        resource = requests.MEMORY
    return Utilization(shares[resource], resource, shares)


def _share(
    resource: str, offered: Mapping[str, int], pods: Sequence[core_v1_pb2.Pod], unix_ns: int, ignore_daemons: bool
) -> float:
    wanted, passed_over = 0, 0
    for pod in pods:
        amount = requests.pod_requests(pod).get(resource, 0)
        if ignore_daemons and pod_rules.of_daemon_set(pod):
            passed_over += amount
        elif not pod_rules.terminates_long(pod, unix_ns):
            wanted += amount
    room = offered.get(resource, 0) - passed_over
    # As Go divides: daemon pods may request more than there is.
    return wanted / room if room else math.inf if wanted else math.nan
