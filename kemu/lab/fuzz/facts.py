"""A scenario that is over, as oracles and relations look at it: the objects at its end, and since when it is quiet."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from kemu.emulated.objects import resources, selectors
from kemu.emulated.objects.amounts import quantities, requests
from kemu.emulated.objects.pods import pod_phases
from kemu.lab.checks.history import History, parsed
from kemu.lab.checks.history.facts import PodHistory
from kemu.lab.exploration.executions import Execution
from kemu.lab.exploration.meters import Meter
from kemu.lab.scenario.scenarios import Fault, Scenario
from kemu.messages.k8s import core_v1_pb2
from kemu.runtime.env import SECOND_NS
from kemu.runtime.runlog.events import ActorExited, MachineOff, OomKilled, PodPreempting

HEALED_S = 60
"""After a fault has ended, connections may take so long until they are there again."""


@dataclass(frozen=True)
class Wrong:
    """Something that an oracle or a relation found."""

    id: str
    """The name of the oracle, the relation or the check."""
    detail: str


class Witness:
    """A watcher of a run: what the history does not keep, and a limit of events."""

    def __init__(self, most_events: int = 0) -> None:
        self.kinds: Counter[str] = Counter()
        self.reasons: Counter[str] = Counter()
        """``<kind of event> <reason>``."""
        self.kills: list[tuple[int, str, str, bool]] = []
        """By the kernel, in their order: time, node, UID of the pod, whether it had passed its own limit."""
        self.offs: list[tuple[int, str]] = []
        """Machines that went off: time and node."""
        self.busy_ns: dict[str, int] = {}
        """By node, until when its kubelet may wait for pods that it kills to make room, and takes no news."""
        self._meter = Meter(most_events)

    def __call__(self, time_ns: int, actor: str, kind: str, data: Mapping[str, Any]) -> None:
        self._meter(time_ns, actor, kind, data)
        self.kinds[kind] += 1
        reason = data.get("reason") or data.get("result") or data.get("what")
        if isinstance(reason, str):
            self.reasons[f"{kind} {reason[:40]}"] += 1
        if isinstance(data, OomKilled):
            self.kills.append((time_ns, data.node, data.uid, data.limit_bytes is not None))
        elif isinstance(data, PodPreempting):
            self.busy_ns[data.node] = time_ns + data.grace_s * SECOND_NS
        elif isinstance(data, MachineOff):
            self.offs.append((time_ns, data.node))


@dataclass
class Facts:
    """Facts of one run."""

    execution: Execution
    witness: Witness

    @property
    def scenario(self) -> Scenario:
        return self.execution.scenario

    @property
    def history(self) -> History:
        return self.execution.history

    @cached_property
    def end_ns(self) -> int:
        """The end of its time, also of a run that ended before because nothing could happen any more."""
        return max(self.history.now_ns, self.scenario.duration_ns)

    @cached_property
    def quiet_ns(self) -> int:
        """Since when nothing is done to the cluster from outside, faults have ended, and connections are there."""
        last = 0
        for event in self.scenario.events:
            last = max(last, event.at_ns)
        for workload in self.scenario.workloads:
            last = max(last, max(self._arrived(workload.name), default=0))
        for fault in self.scenario.chaos:
            last = max(last, self._over_ns(fault))
        for seen in self.history.faults:
            last = max(last, (seen.end_ns or seen.begin_ns) + HEALED_S * SECOND_NS)
        for when_ns, _, report in self.history.reports:
            if isinstance(report, ActorExited):
                last = max(last, when_ns)
        return last

    def _arrived(self, workload: str) -> list[int]:
        return [pod.created_ns for pod in self.history.pods.values() if pod.workload == workload and not pod.replaces]

    def _over_ns(self, fault: Fault) -> int:
        """When it is over at the latest; never, of one that is not mended."""
        if fault.when is not None or fault.parameters.get("restart") is False:
            return 1 << 62
        last = fault.at_ns if fault.at_ns is not None else fault.until_ns
        return (1 << 62) if last is None else last + (fault.for_ns or SECOND_NS) + HEALED_S * SECOND_NS

    def is_quiet_for(self, seconds: float) -> bool:
        return self.end_ns - self.quiet_ns >= seconds * SECOND_NS

    def since(self, seconds: float) -> int:
        """So long before the end."""
        return self.end_ns - int(seconds * SECOND_NS)

    def objects(self, plural: str) -> list[Any]:
        """As they are at the end, by name."""
        resource = resources.BY_PLURAL[plural]
        prefix, parse = resources.prefix(resource).decode(), parsed.parser(plural)
        values = self.history.values
        return [parse(values[key]) for key in sorted(values) if key.startswith(prefix)]

    @cached_property
    def pods(self) -> list[core_v1_pb2.Pod]:
        return self.objects("pods")

    @cached_property
    def nodes(self) -> dict[str, core_v1_pb2.Node]:
        return {node.metadata.name: node for node in self.objects("nodes")}

    def story(self, pod: core_v1_pb2.Pod) -> PodHistory:
        return self.history.pods[pod.metadata.uid]

    @cached_property
    def lost_nodes(self) -> frozenset[str]:
        return frozenset(name for name, node in self.nodes.items() if not is_ready(node))

    @cached_property
    def calm_s(self) -> float:
        """How long before the end the last pod changed in a way that counts."""
        last = max((pod.facts[-1].time_ns for pod in self.history.pods.values() if pod.facts), default=0)
        return (self.end_ns - last) / SECOND_NS

    @property
    def passed_s(self) -> float:
        """The same, but of a run that ended before its time only what has passed: nothing was counted anew after it."""
        return self.calm_s - (self.end_ns - self.history.now_ns) / SECOND_NS

    def removed_since(self, plural: str, since_ns: int) -> Iterator[Any]:
        """Objects that were removed since then, as they were before."""
        resource = resources.BY_PLURAL[plural]
        prefix, parse = resources.prefix(resource).decode(), parsed.parser(plural)
        for change in reversed(self.history.changes):
            if change.time_ns < since_ns:
                return
            if change.is_deletion and change.key.startswith(prefix) and change.previous is not None:
                yield parse(change.previous)

    def changed_since(
        self, key_prefix: str, since_ns: int, of: Callable[[Any], Any], parse: Callable[[bytes], Any]
    ) -> bool:
        """Whether that part of objects has changed since then; what was there before the first change counts, too."""
        for change in reversed(self.history.changes):
            if change.time_ns < since_ns:
                return False
            if change.key.startswith(key_prefix):
                if change.previous is None or change.value is None:
                    return True
                if of(parse(change.previous)) != of(parse(change.value)):
                    return True
        return False


def is_ready(item: Any) -> bool:
    """Whether a node or a pod is ready."""
    return any(one.type == "Ready" and one.status == "True" for one in item.status.conditions)


def is_over(pod: core_v1_pb2.Pod) -> bool:
    return pod.status.phase in pod_phases.TERMINAL


def is_going(item: Any) -> bool:
    return bool(item.metadata.HasField("deletionTimestamp"))


def name_of(item: Any) -> str:
    return f"{item.metadata.namespace}/{item.metadata.name}" if item.metadata.namespace else item.metadata.name


def controller_of(item: Any) -> tuple[str, str, str] | None:
    """Kind, name and UID of what keeps it."""
    for owner in item.metadata.ownerReferences:
        if owner.controller:
            return owner.kind, owner.name, owner.uid
    return None


def pods_of(facts: Facts, owner: Any, *, with_going: bool = False) -> list[core_v1_pb2.Pod]:
    """That an object controls itself, and that are neither over nor going; ``with_going``: that are not over."""
    uid = owner.metadata.uid
    found = []
    for pod in facts.pods:
        controller = controller_of(pod)
        if controller is not None and controller[2] == uid and not is_over(pod) and (with_going or not is_going(pod)):
            found.append(pod)
    return found


def selected(facts: Facts, namespace: str, selector: Any) -> list[core_v1_pb2.Pod]:
    compiled = selectors.compile_labels(selector)
    return [pod for pod in facts.pods if pod.metadata.namespace == namespace and compiled.matches(pod.metadata.labels)]


def fits(node: core_v1_pb2.Node, taken: list[core_v1_pb2.Pod], pod: core_v1_pb2.Pod) -> bool:
    """Whether the node has room for the pod beside those."""
    room = allocatable(node)
    wanted = requests.pod_requests(pod)
    if len(taken) + 1 > room.get("pods", 0):
        return False
    for other in taken:
        for name, amount in requests.pod_requests_on_node(other).items():
            room[name] = room.get(name, 0) - amount
    return all(amount <= room.get(name, 0) for name, amount in wanted.items() if amount)


def allocatable(node: core_v1_pb2.Node) -> dict[str, int]:
    """cpu in millicores, everything else in whole units."""
    return requests.resource_list(node.status.allocatable)


def whole(quantity: Any) -> int:
    return quantities.value(quantity.string)


def threshold(text: str, capacity: int) -> int:
    """An eviction threshold: an amount, or a share of the capacity."""
    return int(float(text[:-1]) / 100 * capacity) if text.endswith("%") else quantities.value(text)


def admits(node: core_v1_pb2.Node, pod: core_v1_pb2.Pod) -> bool:
    """Whether the node is open to the pod: by cordon and taints alone."""
    if node.spec.unschedulable and not any(one.operator == "Exists" and not one.key for one in pod.spec.tolerations):
        return False
    return (
        selectors.untolerated_taint(node.spec.taints, list(pod.spec.tolerations), ("NoSchedule", "NoExecute")) is None
    )


def goes_anywhere(pod: core_v1_pb2.Pod) -> bool:
    """Whether nothing but room, cordons and taints decides where the pod can go."""
    spec = pod.spec
    if spec.nodeName or spec.nodeSelector or spec.HasField("affinity") or spec.schedulingGates or spec.volumes:
        return False
    if any(one.whenUnsatisfiable == "DoNotSchedule" for one in spec.topologySpreadConstraints):
        return False
    return not any(port.hostPort for container in (*spec.initContainers, *spec.containers) for port in container.ports)


def has_required_anti_affinity(pod: core_v1_pb2.Pod) -> bool:
    return bool(pod.spec.affinity.podAntiAffinity.requiredDuringSchedulingIgnoredDuringExecution)
