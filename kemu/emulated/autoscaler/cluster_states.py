"""What the autoscaler knows of its groups over time: readiness, scale-ups under way, back-off, what is still to come.

Mirrors ``clusterstate/clusterstate.go`` and ``utils/backoff``. Times are nanoseconds of the actor's monotonic clock,
but for those in objects.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from kemu.emulated.autoscaler import taints
from kemu.emulated.autoscaler.providers import NodeGroup, Provider, ProviderError, Tell
from kemu.emulated.autoscaler.settings import Settings
from kemu.emulated.objects import meta
from kemu.messages.k8s import core_v1_pb2
from kemu.messages.v1 import cloud_pb2
from kemu.runtime.env import SECOND_NS

MAX_DELETION_NS = 5 * 60 * SECOND_NS
"""``MaxCloudProviderNodeDeletionTime``."""


@dataclass
class Readiness:
    """Nodes by how they are (``Readiness``)."""

    ready: list[str] = field(default_factory=list)
    unready: list[str] = field(default_factory=list)
    deleted: list[str] = field(default_factory=list)
    not_started: list[str] = field(default_factory=list)
    registered: list[str] = field(default_factory=list)
    unregistered: list[str] = field(default_factory=list)
    long_unregistered: list[str] = field(default_factory=list)


@dataclass
class _ScaleUp:
    since_ns: int
    expected_ns: int
    increase: int


@dataclass
class _Backoff:
    duration_s: float
    until_ns: int
    failed_ns: int


@dataclass
class _WrongSize:
    current: int
    expected: int
    since_ns: int


class ClusterState:
    """``ClusterStateRegistry``."""

    def __init__(self, provider: Provider, settings: Settings, tell: Tell) -> None:
        self._provider = provider
        self._settings = settings
        self._tell = tell
        self._scale_ups: dict[str, _ScaleUp] = {}
        self._scale_downs: list[tuple[str, int]] = []
        """Group, and until when the deletion of one of its nodes may take."""
        self._backoffs: dict[str, _Backoff] = {}
        self._unregistered_ns: dict[str, int] = {}
        """Machines that have not registered, and since when that is known."""
        self._failed: dict[str, None] = {}
        """Instances whose failure is known."""
        self._wrong: dict[str, _WrongSize] = {}
        self.readiness: dict[str, Readiness] = {}
        """By group, of those with machines."""
        self.total = Readiness()
        self._nodes = 0
        self._targets: dict[str, int] = {}
        """Sizes of groups as of the last :meth:`recalculate`."""

    # --- what happens ------------------------------------------------------------------------------------------------

    def scaled_up(self, group: NodeGroup, by: int, now_ns: int) -> None:
        """``RegisterScaleUp``; a negative number: so many of them will not come."""
        known = self._scale_ups.get(group.name)
        expected_ns = now_ns + round(self._settings.max_node_provision_time_s * SECOND_NS)
        if known is None:
            if by > 0:
                self._scale_ups[group.name] = _ScaleUp(now_ns, expected_ns, by)
            return
        if known.increase + by <= 0:
            del self._scale_ups[group.name]
            return
        known.increase += by
        if by > 0:
            known.since_ns, known.expected_ns = now_ns, expected_ns

    def scaled_down(self, group: NodeGroup, now_ns: int) -> None:
        self._scale_downs.append((group.name, now_ns + MAX_DELETION_NS))

    def failed(self, group: NodeGroup, now_ns: int) -> None:
        """Back off from a group (``RegisterFailedScaleUp``, ``exponentialBackoff``)."""
        settings, known = self._settings, self._backoffs.get(group.name)
        duration_s = settings.initial_node_group_backoff_s
        if known is not None:
            duration_s = known.duration_s
            if known.until_ns < now_ns:
                duration_s = min(2 * known.duration_s, settings.max_node_group_backoff_s)
        until_ns = now_ns + round(duration_s * SECOND_NS)
        self._backoffs[group.name] = _Backoff(duration_s, until_ns, now_ns)

    # --- each iteration ----------------------------------------------------------------------------------------------

    async def update(self, nodes: Sequence[core_v1_pb2.Node], now_ns: int, unix_ns: int) -> None:
        """Take over what nodes and provider say (``UpdateNodes``)."""
        self._nodes = len(nodes)
        self.recalculate()
        self._update_unregistered(nodes, now_ns)
        self._update_readiness(nodes, now_ns, unix_ns)
        await self._update_requests(now_ns)
        self._handle_failures(now_ns)
        self._update_wrong_sizes(now_ns)

    def recalculate(self) -> None:
        """Take over the sizes of groups (``Recalculate``)."""
        self._targets = {group.name: group.target_size for group in self._provider.groups.values()}

    def _update_unregistered(self, nodes: Iterable[core_v1_pb2.Node], now_ns: int) -> None:
        registered = {node.metadata.name for node in nodes}
        missing: dict[str, int] = {}
        for group in self._provider.groups.values():
            for name, instance in group.instances.items():
                expected = instance.state != cloud_pb2.Instance.DELETING and not instance.error_class
                if expected and name not in registered:
                    missing[name] = self._unregistered_ns.get(name, now_ns)
        self._unregistered_ns = missing

    def _update_readiness(self, nodes: Iterable[core_v1_pb2.Node], now_ns: int, unix_ns: int) -> None:
        self.readiness, self.total = {}, Readiness()
        startup_ns = round(self._settings.max_node_startup_time_s * SECOND_NS)
        for node in nodes:
            name = node.metadata.name
            group = self._provider.group_of(name)
            counts = [self.total]
            if group is not None:
                counts.append(self.readiness.setdefault(group.name, Readiness()))
            for count in counts:
                count.registered.append(name)
                if not self._provider.has_instance(name) or (group is None and taints.has(node, taints.TO_BE_DELETED)):
                    count.deleted.append(name)
                elif taints.readiness(node)[0]:
                    count.ready.append(name)
                elif meta.unix_ns(node.metadata.creationTimestamp) + startup_ns > unix_ns:
                    count.not_started.append(name)
                else:
                    count.unready.append(name)
        for name, since_ns in self._unregistered_ns.items():
            group = self._provider.group_of(name)
            if group is None:
                continue
            for count in (self.total, self.readiness.setdefault(group.name, Readiness())):
                (count.long_unregistered if self._is_late(since_ns, now_ns) else count.unregistered).append(name)

    def _is_late(self, since_ns: int, now_ns: int) -> bool:
        return since_ns + round(self._settings.max_node_provision_time_s * SECOND_NS) < now_ns

    async def _update_requests(self, now_ns: int) -> None:
        """Forget scale-ups that are done; give up those that take too long (``updateScaleRequests``)."""
        reset_ns = round(self._settings.node_group_backoff_reset_s * SECOND_NS)
        for name in [name for name, one in self._backoffs.items() if one.failed_ns + reset_ns < now_ns]:
            del self._backoffs[name]
        for name, request in list(self._scale_ups.items()):
            group = self._provider.groups[name]
            if self._to_come(group) <= 0:
                del self._scale_ups[name]
                continue
            if request.expected_ns >= now_ns:
                continue
            took = _go_duration(now_ns - request.since_ns)
            self._tell("Warning", "ScaleUpTimedOut", f"Nodes added to group {name} failed to register within {took}")
            self.failed(group, now_ns)
            try:
                await self._provider.decrease(group, request.increase)
            except ProviderError as error:
                text = f"Failed to decrease target size for group {name} after scale-up timeout: {error}"
                self._tell("Warning", "FailedToRevertScaleUp", text)
            del self._scale_ups[name]
        self._scale_downs = [(name, until_ns) for name, until_ns in self._scale_downs if until_ns > now_ns]

    def _handle_failures(self, now_ns: int) -> None:
        """Instances that could not be created (``handleInstanceCreationErrors``)."""
        still: dict[str, None] = {}
        for group in self._provider.groups.values():
            new: dict[tuple[str, str], list[str]] = {}
            for instance in group.instances.values():
                if not instance.error_class:
                    continue
                still[instance.node] = None
                if instance.node not in self._failed:
                    code = f"{instance.error_class}.{instance.error_code}"
                    new.setdefault((code, instance.error_message), []).append(instance.node)
            if group.name not in self._scale_ups:
                continue
            for (code, message), names in new.items():
                text = f"Failed adding {len(names)} nodes to group {group.name} due to {code}; source errors: {message}"
                self._tell("Warning", "ScaleUpFailed", text)
                self.scaled_up(group, -len(names), now_ns)
                self.failed(group, now_ns)
        self._failed = still

    def _update_wrong_sizes(self, now_ns: int) -> None:
        """``updateIncorrectNodeGroupSizes``."""
        found: dict[str, _WrongSize] = {}
        for group in self._provider.groups.values():
            count = self.readiness.get(group.name)
            if count is None:
                continue
            target, there = self._targets[group.name], len(count.registered)
            coming = len(count.unregistered) + len(count.long_unregistered)
            if there > target or there < target - coming:
                known = self._wrong.get(group.name)
                same = known is not None and (known.current, known.expected) == (there, target)
                found[group.name] = known if known is not None and same else _WrongSize(there, target, now_ns)
        self._wrong = found

    async def fix_sizes(self, now_ns: int) -> bool:
        """Where fewer nodes than the target are there for long, lower it (``fixNodeGroupSize``). Raises
        ProviderError."""
        fixed = False
        for name, wrong in self._wrong.items():
            missing = wrong.expected - wrong.current
            if missing > 0 and self._is_late(wrong.since_ns, now_ns):
                await self._provider.decrease(self._provider.groups[name], missing)
                fixed = True
        return fixed

    # --- answers -----------------------------------------------------------------------------------------------------

    def is_healthy(self) -> bool:
        """Whether few enough nodes are broken (``IsClusterHealthy``)."""
        unready, settings = len(self.total.unready), self._settings
        few = unready <= settings.ok_total_unready_count
        return few or unready <= settings.max_total_unready_percentage / 100 * self._nodes

    def is_group_healthy(self, group: NodeGroup) -> bool:
        """``IsNodeGroupHealthy``."""
        count = self.readiness.get(group.name)
        least = self._least(group)
        if count is None:
            return self._targets[group.name] == 0 or least == 0
        missing = max(0, least - len(count.ready))
        known = len(count.ready) + len(count.unready) + len(count.not_started)
        settings = self._settings
        few = missing <= settings.ok_total_unready_count
        return few or missing <= settings.max_total_unready_percentage / 100 * known

    def _least(self, group: NodeGroup) -> int:
        count = self.readiness.get(group.name, Readiness())
        least = self._targets[group.name] - len(count.long_unregistered)
        request = self._scale_ups.get(group.name)
        return least - (request.increase if request is not None else 0)

    def is_backed_off(self, group: NodeGroup, now_ns: int) -> bool:
        known = self._backoffs.get(group.name)
        return known is not None and known.until_ns >= now_ns

    def _to_come(self, group: NodeGroup) -> int:
        """``calculateUpcomingNodesInNodeGroup``."""
        count = self.readiness.get(group.name, Readiness())
        return self._targets[group.name] - len(count.ready) - len(count.unready) - len(count.long_unregistered)

    def upcoming(self, now_ns: int) -> tuple[dict[str, int], list[str]]:
        """How many nodes each group is about to get, and those of them that have registered (``GetUpcomingNodes``)."""
        counts: dict[str, int] = {}
        registered: list[str] = []
        for group in self._provider.groups.values():
            coming = self._to_come(group)
            if coming <= 0 or group.name not in self._scale_ups or self.is_backed_off(group, now_ns):
                continue
            counts[group.name] = coming
            registered += self.readiness.get(group.name, Readiness()).not_started
        return counts, registered

    def late(self, now_ns: int) -> dict[str, list[str]]:
        """Machines that should have registered by now, by group."""
        found: dict[str, list[str]] = {}
        for name, since_ns in self._unregistered_ns.items():
            group = self._provider.group_of(name)
            if group is not None and self._is_late(since_ns, now_ns):
                found.setdefault(group.name, []).append(name)
        return found

    def not_created(self) -> dict[str, list[str]]:
        """Instances that could not be created, by group (``GetCreatedNodesWithErrors``)."""
        found: dict[str, list[str]] = {}
        for name in self._failed:
            group = self._provider.group_of(name)
            if group is not None:
                found.setdefault(group.name, []).append(name)
        return found

    def is_busy(self, now_ns: int) -> bool:
        """Whether time alone will change something here."""
        return bool(self._scale_ups or self._unregistered_ns or self._failed or self._wrong) or any(
            one.until_ns >= now_ns for one in self._backoffs.values()
        )


def _go_duration(ns: int) -> str:
    """As Go prints a duration of whole seconds or finer."""
    seconds, rest = divmod(ns, SECOND_NS)
    minutes, seconds = divmod(seconds, 60)
    hours, minutes = divmod(minutes, 60)
    text = f"{seconds + rest / SECOND_NS:.9f}".rstrip("0").rstrip(".") + "s"
    if hours or minutes:
        text = f"{minutes}m{text}"
    return f"{hours}h{text}" if hours else text
