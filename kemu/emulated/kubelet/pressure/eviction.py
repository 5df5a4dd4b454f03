"""The eviction manager: which conditions a node under pressure reports, which pods it evicts, which it admits.

Mirrors ``pkg/kubelet/eviction`` (``managerImpl.synchronize``, ``Admit``). Pure: a pass is given the time, the stats and
functions that collect garbage, and returns the pods to evict. The thresholds come from
:mod:`kemu.emulated.kubelet.settings.thresholds`, the order of the pods from
:mod:`kemu.emulated.kubelet.pressure.ranking`, limits of local storage from
:mod:`kemu.emulated.kubelet.pressure.local_storage`, texts from
:mod:`kemu.emulated.kubelet.pressure.eviction_messages`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from kemu.emulated.kubelet.pods import critical
from kemu.emulated.kubelet.pressure import eviction_messages, local_storage, ranking
from kemu.emulated.kubelet.settings import thresholds
from kemu.emulated.kubelet.settings.thresholds import Layout, Threshold
from kemu.emulated.kubelet.usage import stats
from kemu.emulated.objects import selectors
from kemu.emulated.objects.amounts import qos, quantities
from kemu.messages.k8s import core_v1_pb2

REASON = "Evicted"
IMMEDIATE_GRACE_S = 1
"""The grace period of a pod that is evicted at once."""
PASS_INTERVAL_S = 10
"""From the end of a pass that evicted no pod to the next."""
CLEANUP_POLL_S = 1
"""How often the manager looks whether an evicted pod is gone; the next pass follows at once when it is."""
CLEANUP_TIMEOUT_S = 30
"""How long it waits for that."""

CONTAINER_GC, IMAGE_GC = "containerGC", "imageGC"

MEMORY_PRESSURE, DISK_PRESSURE, PID_PRESSURE = "MemoryPressure", "DiskPressure", "PIDPressure"
_CONDITION_OF = {
    ranking.MEMORY: MEMORY_PRESSURE,
    ranking.EPHEMERAL_STORAGE: DISK_PRESSURE,
    ranking.INODES: DISK_PRESSURE,
    ranking.PIDS: PID_PRESSURE,
}
_MEMORY_TAINT = core_v1_pb2.Taint(key="node.kubernetes.io/memory-pressure", effect="NoSchedule")


class LayoutUnknown(Exception):
    """How the disks are divided cannot be told yet; the text says why."""


@dataclass(frozen=True, slots=True)
class Eviction:
    """A pod to evict. It counts as evicted even if the kill fails."""

    pod: core_v1_pb2.Pod
    grace_s: int
    """Instead of the pod's own grace period."""
    message: str
    signal: str
    """The signal, or the limit, for which the pod is evicted."""
    disrupts: bool = True
    """Whether the pod's DisruptionTarget condition is set, with this message."""


@dataclass(slots=True)
class Outcome:
    """The result of a pass."""

    evictions: list[Eviction] = field(default_factory=list)
    reclaimed: str = ""
    """The resource that the pass tried to reclaim."""
    used: dict[str, int] | None = None
    """By UID, what pods use of that resource, if one number says it."""
    collections: list[str] = field(default_factory=list)
    error: str = ""
    """Why the pass ended early."""


@dataclass(frozen=True, slots=True)
class Surroundings:
    """What a pass can do. The functions act at once."""

    layout: Callable[[], Layout]
    """Raises LayoutUnknown. Asked until it is known."""
    look: Callable[[], stats.Summary | None]
    """The stats as they are now. None: there are none."""
    collect: Callable[[str], None]
    """Run CONTAINER_GC or IMAGE_GC."""


class Manager:
    """See the module. Times are in ns since any origin."""

    def __init__(
        self,
        configured: Iterable[Threshold],
        *,
        transition_ns: int,
        max_pod_grace_period_s: int = 0,
        local_storage_isolation: bool = True,
        order: str = ranking.CURRENT,
    ) -> None:
        """``order``: of the pods to evict (:mod:`kemu.emulated.kubelet.pressure.ranking`)."""
        self.thresholds = tuple(configured)
        self.layout: Layout | None = None
        """None as long as it could not be told."""
        self.first_observed_ns: dict[Threshold, int] = {}
        """The thresholds that are met, whether or not their grace period is over, and since when."""
        self.met: tuple[Threshold, ...] = ()
        """Those whose grace period is over."""
        self.condition_observed_ns: dict[str, int] = {}
        """When the cause of each condition was last observed."""
        self.conditions: tuple[str, ...] = ()
        """What the node reports, in alphabetical order."""
        self._transition_ns = transition_ns
        self._max_pod_grace_period_s = max_pod_grace_period_s
        self._local_storage_isolation = local_storage_isolation
        self._order = order
        self._last: Mapping[str, stats.Observation] = {}

    @property
    def is_idle(self) -> bool:
        """Whether no pass will ever do anything."""
        return not self.thresholds and not self._local_storage_isolation

    @property
    def is_changing(self) -> bool:
        """Whether time alone will change something: a grace period runs, or a condition outlives its cause."""
        causes = {_CONDITION_OF[ranking.RESOURCE_OF[threshold.signal]] for threshold in self.first_observed_ns}
        return len(self.met) < len(self.first_observed_ns) or any(one not in causes for one in self.conditions)

    def learn(self, layout: Layout) -> None:
        """Take over the layout in place of a first pass, which would do nothing else."""
        self.layout = layout
        self.thresholds, _ = thresholds.with_container_filesystem(self.thresholds, layout)

    def synchronize(self, now_ns: int, active: Sequence[core_v1_pb2.Pod], can: Surroundings) -> Outcome:
        """One pass over the pods that run, in the kubelet's order."""
        outcome = Outcome()
        if self.is_idle:
            return outcome
        configured = self.thresholds
        if self.layout is None:
            try:
                self.layout = can.layout()
            except LayoutUnknown as error:
                outcome.error = f"eviction manager: failed to get HasDedicatedImageFs: {error}"
                return outcome
            # This very pass still goes by what was configured.
            self.thresholds, _ = thresholds.with_container_filesystem(configured, self.layout)
        summary = can.look()
        if summary is None:
            return outcome
        urgent = self._observe(now_ns, configured, summary.observations)
        if self._local_storage_isolation:
            self._enforce_limits(active, summary, outcome)
            if outcome.evictions:
                return outcome
        if urgent:
            # Memory first; apart from that the real kubelet knows no order.
            urgent.sort(key=lambda threshold: ranking.RESOURCE_OF[threshold.signal] != ranking.MEMORY)
            self._reclaim(urgent, active, summary, can, outcome)
        return outcome

    def told(self) -> list[list[Any]]:
        """For the log, of each threshold that is met: the signal, what was available, below which amount it
        is met, up to which it stays met, in bytes, inodes or processes, and its grace period in seconds."""
        found = []
        for threshold in self.first_observed_ns:
            observed = self._last[threshold.signal]
            least = threshold.value.of(observed.capacity).nano
            reclaim = threshold.minimum_reclaim
            enough = least + (0 if reclaim is None else reclaim.of(observed.capacity).nano)
            amounts = [-(-amount // quantities.NANO) for amount in (least, enough)]
            found.append([threshold.signal, observed.available, *amounts, threshold.grace_ns / 1e9])
        return sorted(found)

    def admit(self, pod: core_v1_pb2.Pod) -> str:
        """Why a pod is refused (with REASON) while the node is under pressure; empty: it is not."""
        if not self.conditions or critical.is_critical(pod):
            return ""
        if self.conditions == (MEMORY_PRESSURE,):
            best_effort = qos.qos_class(pod) == qos.BEST_EFFORT
            if not best_effort or selectors.tolerates_any(pod.spec.tolerations, _MEMORY_TAINT):
                return ""
        return eviction_messages.node_condition(self.conditions)

    def _observe(
        self, now_ns: int, configured: Sequence[Threshold], observations: Mapping[str, stats.Observation]
    ) -> list[Threshold]:
        """Take over what is observed. Returns the thresholds on which this pass acts."""
        found = [threshold for threshold in configured if _is_met(threshold, observations)]
        for threshold in self.met:
            if threshold not in found and _is_met(threshold, observations, reclaim=True):
                found.append(threshold)
        known = self.first_observed_ns
        self.first_observed_ns = {threshold: known.get(threshold, now_ns) for threshold in found}
        for threshold in found:
            self.condition_observed_ns[_CONDITION_OF[ranking.RESOURCE_OF[threshold.signal]]] = now_ns
        self.conditions = tuple(
            condition
            for condition in sorted(self.condition_observed_ns)
            if now_ns - self.condition_observed_ns[condition] < self._transition_ns
        )
        self.met = tuple(
            threshold
            for threshold, since_ns in self.first_observed_ns.items()
            if now_ns - since_ns >= threshold.grace_ns
        )
        last, self._last = self._last, observations
        return [threshold for threshold in self.met if _is_news(observations.get(threshold.signal), last, threshold)]

    def _enforce_limits(self, active: Sequence[core_v1_pb2.Pod], summary: stats.Summary, outcome: Outcome) -> None:
        assert self.layout is not None
        for pod in active:
            usage = summary.pods.get(pod.metadata.uid)
            if usage is None or critical.is_critical(pod):
                continue
            excess = local_storage.excess(pod, usage, self.layout)
            if excess is not None:
                one = Eviction(pod, IMMEDIATE_GRACE_S, excess.message, excess.limit, disrupts=False)
                outcome.evictions.append(one)

    def _reclaim(
        self,
        urgent: Sequence[Threshold],
        active: Sequence[core_v1_pb2.Pod],
        summary: stats.Summary,
        can: Surroundings,
        outcome: Outcome,
    ) -> None:
        threshold, observed = urgent[0], summary.observations
        outcome.reclaimed = ranking.RESOURCE_OF[threshold.signal]
        if self._reclaim_from_node(threshold.signal, can, outcome):
            return
        assert self.layout is not None
        outcome.used = _used(active, summary.pods, outcome.reclaimed)
        for pod in ranking.rank(active, summary.pods, threshold.signal, self.layout, self._order):
            if critical.is_critical(pod):
                continue
            here = observed[threshold.signal]
            message = eviction_messages.node_is_low(
                outcome.reclaimed,
                threshold.value.of(here.capacity),
                quantities.Quantity(here.available * quantities.NANO, here.form),
                pod,
                summary.pods.get(pod.metadata.uid),
            )
            outcome.evictions.append(Eviction(pod, self._grace_s(threshold, pod), message, threshold.signal))
            return

    def _reclaim_from_node(self, signal: str, can: Surroundings, outcome: Outcome) -> bool:
        """Whether what the node can give back by itself is enough."""
        assert self.layout is not None
        collections = _collections(signal, self.layout)
        if not collections:
            return False
        for collection in collections:
            can.collect(collection)
            outcome.collections.append(collection)
        summary = can.look()
        if summary is None:
            return False
        return not any(_is_met(one, summary.observations, reclaim=True) for one in self.thresholds)

    def _grace_s(self, threshold: Threshold, pod: core_v1_pb2.Pod) -> int:
        if threshold.is_hard:
            return IMMEDIATE_GRACE_S
        longest = self._max_pod_grace_period_s
        if pod.spec.HasField("terminationGracePeriodSeconds"):
            return min(longest, int(pod.spec.terminationGracePeriodSeconds))
        return longest


def _used(
    active: Sequence[core_v1_pb2.Pod], measured: Mapping[str, stats.PodStats], resource: str
) -> dict[str, int] | None:
    """What each pod was measured to use, for who reads the log; None: of a resource that is more than one number."""
    if resource not in (ranking.MEMORY, ranking.PIDS):
        return None
    found = {}
    for pod in active:
        one = measured.get(pod.metadata.uid)
        if one is not None:
            found[pod.metadata.uid] = (one.working_set_bytes if resource == ranking.MEMORY else one.processes) or 0
    return found


def _is_met(threshold: Threshold, observations: Mapping[str, stats.Observation], *, reclaim: bool = False) -> bool:
    """``reclaim``: it stays met until the minimum reclaim is there as well."""
    observed = observations.get(threshold.signal)
    if observed is None or not threshold.active:
        return False
    nano = threshold.value.of(observed.capacity).nano
    if reclaim and threshold.minimum_reclaim is not None:
        nano += threshold.minimum_reclaim.of(observed.capacity).nano
    return nano > observed.available * quantities.NANO


def _is_news(observed: stats.Observation | None, last: Mapping[str, stats.Observation], threshold: Threshold) -> bool:
    """Whether the observation is newer than that of the pass before."""
    if observed is None:
        return False
    before = last.get(threshold.signal)
    if before is None or observed.time_ns is None or before.time_ns is None:
        return True
    return observed.time_ns > before.time_ns


def _collections(signal: str, layout: Layout) -> tuple[str, ...]:
    """The garbage collections that free the file system of a signal."""
    if ranking.RESOURCE_OF[signal] in (ranking.MEMORY, ranking.PIDS):
        return ()
    if layout.split:
        return (IMAGE_GC,) if signal in (thresholds.IMAGEFS, thresholds.IMAGEFS_INODES) else (CONTAINER_GC,)
    if layout.dedicated_imagefs and signal in (thresholds.NODEFS, thresholds.NODEFS_INODES):
        return ()
    return CONTAINER_GC, IMAGE_GC
