"""What a scenario asks of the detectors, and what they ask where it says nothing."""

from __future__ import annotations

from dataclasses import dataclass

from kemu.emulated.autoscaler.settings import Settings
from kemu.emulated.settings.declared import Section, setting
from kemu.emulated.settings.shapes import POSITIVE_DURATION, ListOf, Text, Whole

SECOND_NS = 1_000_000_000

MAX_WAIT_NS = 300 * SECOND_NS
"""Kubernetes retries any unschedulable pod after this time, whatever happened meanwhile
(``DefaultPodMaxInUnschedulablePodsDuration`` in pkg/scheduler/backend/queue)."""
MAX_OVERTAKEN = 100
MAX_EVICTION_RETURNS = 3
MAX_PREEMPTION_RETURNS = 3
MAX_PART_NS = 30 * SECOND_NS
MAX_WATCH_DELAY_NS = 30 * SECOND_NS


@dataclass(frozen=True, kw_only=True)
class Starvation:
    """What the check no-pod-starves is told; None: :data:`MAX_WAIT_NS`, :data:`MAX_OVERTAKEN`."""

    max_wait_ns: int | None = setting(POSITIVE_DURATION, "No pod may wait longer to be bound.")
    max_overtaken: int | None = setting(Whole(0), "No pod may be overtaken more often.")


@dataclass(frozen=True, kw_only=True)
class Loops:
    """What the checks of loops are told; None: :data:`MAX_EVICTION_RETURNS`, :data:`MAX_PREEMPTION_RETURNS`."""

    evictions: int | None = setting(
        Whole(0), "A workload may be evicted so often from a node that had evicted it before."
    )
    preemptions: int | None = setting(Whole(0), "Two workloads may preempt each other in turn so often.")


@dataclass(frozen=True, kw_only=True)
class Gangs:
    """What the check gangs-are-whole is told; None: :data:`MAX_PART_NS`."""

    part_for_ns: int | None = setting(POSITIVE_DURATION, "For no longer may a part of a gang hold room.")


@dataclass(frozen=True, kw_only=True)
class Watches:
    """What the check watch-has-no-gaps is told."""

    max_delay_ns: int = setting(
        POSITIVE_DURATION,
        "No watch may deliver a change later; the time of faults that hold events back is not counted. {default} by "
        "default.",
        f"{MAX_WATCH_DELAY_NS // SECOND_NS}s",
    )


@dataclass(frozen=True, kw_only=True)
class Checks:
    """What a scenario says of the checks, under ``checks``."""

    starvation: Starvation = setting(Section(Starvation), "Limits of the check no-pod-starves.", {})
    loops: Loops = setting(Section(Loops), "Limits of the checks no-eviction-loop and no-preemption-loop.", {})
    gangs: Gangs = setting(Section(Gangs), "Limits of the check gangs-are-whole.", {})
    watches: Watches = setting(Section(Watches), "Limits of the check watch-has-no-gaps.", {})
    disable: list[str] = setting(ListOf(Text()), "Ids of checks that do not count.", [])


@dataclass(frozen=True, slots=True)
class NodeGroup:
    """What a cluster autoscaler scales."""

    name: str
    min: int
    max: int
    template: bytes
    """The Node that its machines register as, in protobuf."""


@dataclass(frozen=True, slots=True)
class Autoscaled:
    """The node groups of a scenario, and the flags of its cluster autoscaler."""

    groups: tuple[NodeGroup, ...]
    flags: Settings = Settings()  # noqa: RUF009 (frozen)


@dataclass(frozen=True, slots=True)
class Limits:
    """The limits that a scenario sets under ``checks``, and what it says of the actors that checks judge."""

    max_wait_ns: int | None = None
    max_overtaken: int | None = None
    max_eviction_returns: int | None = None
    max_preemption_returns: int | None = None
    max_part_ns: int | None = None
    gang_schedulers: tuple[str, ...] | None = None
    """The schedulerNames of pods whose gangs are scheduled as gangs; None: of all."""
    node_eviction_rate: float = 0.1
    """In nodes per second, the faster of the two that the node lifecycle controller knows."""
    node_grace_ns: int = 40 * SECOND_NS
    """For how long a node may be silent (``nodeMonitorGracePeriod``)."""
    terminated_pods: int = 12_500
    """More pods than that may not stay when they have ended (``terminatedPodThreshold``); 0: any number may."""
    max_watch_delay_ns: int = MAX_WATCH_DELAY_NS
    """From a change until a watch delivers it."""
    rank_by_qos: tuple[str, ...] = ()
    """The schedulerNames of pods whose victims are ranked by QoS class first (``victimOrder: qos``, ``qos-only``)."""
    max_backoff_ns: int = 10 * SECOND_NS
    """The longest backoff of any scheduler (``podMaxBackoffSeconds``)."""
    pressure_transition_ns: int = 300 * SECOND_NS
    """The longest of any kubelet (``evictionPressureTransitionPeriod``)."""
    own_ranking: bool = False
    """Some kubelet ranks pods in another order than Kubernetes (``evictionRanking``)."""
    own_queues: bool = False
    """Some scheduler has another queue than Kubernetes, or plugins that decide which pod is tried and where it fits."""
    autoscaled: Autoscaled | None = None
    """None: the cluster is not scaled."""


DEFAULT = Limits()
