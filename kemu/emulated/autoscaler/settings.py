"""The settings of the cluster autoscaler and of the provider of its machines; those of the autoscaler of pods.

Those of the autoscaler are its flags with their defaults (``config/flags`` of the cluster autoscaler). A scenario
writes them under ``autoscaler``; docs/autoscaler.md lists them.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from kemu.emulated.autoscaler import clouds
from kemu.emulated.settings.declared import REQUIRED, Complaint, Section, setting
from kemu.emulated.settings.distributed import TIME
from kemu.emulated.settings.shapes import (
    DURATION,
    NAME,
    POSITIVE_SECONDS,
    SECONDS,
    SHARE,
    THERE_ARE,
    Choice,
    Free,
    ListOf,
    MapOf,
    Number,
    Switch,
    Text,
    Whole,
)

AUTOSCALER, HORIZONTAL = "cluster-autoscaler", "horizontal-pod-autoscaler"
"""Names of the controllers."""
EXPANDERS = ("least-waste", "random", "most-pods", "least-nodes", "price", "priority")
"""The default first."""


@dataclass(frozen=True, kw_only=True)
class Failure:
    """When instances of a group cannot be had."""

    kind: str = setting(
        Choice(clouds.FAILURES),
        "out-of-resources: the instance is reported as failed; error: the request is refused; never-registers: "
        "the machine runs, but no kubelet comes.",
        REQUIRED,
    )
    from_ns: int = setting(DURATION, "From when on; the start of the run by default.", 0)
    until_ns: int | None = setting(DURATION, "Until when; the end of the run by default.")
    share: float = setting(SHARE, "The share of instances, or of requests, that fail; all by default.", 1)


@dataclass(frozen=True, kw_only=True)
class NodeGroup:
    """Equal nodes that the autoscaler adds and removes."""

    name: str = setting(NAME, "Its nodes are <name>-1, <name>-2, …; numbers are not used again.", REQUIRED)
    min: int = setting(Whole(0), "The least number of nodes; {default} by default.", 0)
    max: int = setting(Whole(0), "The greatest number of nodes.", REQUIRED)
    initial: int | None = setting(Whole(0), "How many there are when the clock starts; min by default.")
    template: Mapping[str, Any] = setting(Free(), "What its nodes are like: the keys of a node.", {})
    provisioning: Any = setting(
        TIME, "From the request until the machine runs and its kubelet starts; {default} by default.", "60s"
    )
    startup: Any = setting(
        TIME, "How long a new node keeps a startup taint, until its agents are done; {default} by default.", 0
    )
    removal: Any = setting(TIME, "From a node's deletion until machine and Node are gone; {default} by default.", "30s")
    failures: list[Failure] = setting(ListOf(Section(Failure)), "When instances cannot be had.", [])
    price: float = setting(
        Number(0), "Of one node for an hour; {default} by default. The metric bill.money adds it up.", 0
    )

    @property
    def size(self) -> int:
        """How many nodes there are when the clock starts."""
        return self.min if self.initial is None else self.initial

    def complaints(self) -> Iterator[Complaint]:
        if self.min > self.max:
            yield Complaint(("min",), f"{self.min} is more than max, {self.max}")
        if self.size > self.max:
            yield Complaint(("initial",), f"{self.size} is more than max, {self.max}")


@dataclass(frozen=True, kw_only=True)
class ScaleDown:
    """The flags ``scale-down-…`` and what else decides which nodes go."""

    enabled: bool = setting(Switch(), "Whether nodes are removed at all.", True)
    delay_after_add_s: float = setting(SECONDS, "After a scale-up, until nodes are removed; {default}.", "10m")
    delay_after_delete_s: float = setting(SECONDS, "After a removal; {default}.", "0s")
    delay_after_failure_s: float = setting(SECONDS, "After a removal that failed; {default}.", "3m")
    unneeded_time_s: float = setting(SECONDS, "How long a node must be unneeded; {default}.", "10m")
    unready_time_s: float = setting(SECONDS, "The same of a node that is not ready; {default}.", "20m")
    utilization_threshold: float = setting(
        Number(0), "Requests of CPU or memory, as a share, up to which a node may go; {default}.", 0.5
    )
    gpu_utilization_threshold: float = setting(Number(0), "The same of GPUs, on nodes that have some; {default}.", 0.5)
    unready_enabled: bool = setting(Switch(), "Whether nodes that are not ready go, too.", True)
    unremovable_recheck_time_s: float = setting(
        SECONDS, "Until a node whose pods cannot move is looked at again; {default}.", "5m"
    )
    ignore_daemon_sets_utilization: bool = setting(
        Switch(), "Whether daemon pods count in the utilization; they do by default.", False
    )
    skip_nodes_with_system_pods: bool = setting(
        Switch(), "Whether pods in kube-system without a budget keep their node.", True
    )
    skip_nodes_with_local_storage: bool = setting(
        Switch(), "Whether pods with emptyDir or hostPath volumes keep their node.", True
    )
    skip_nodes_with_custom_controller_pods: bool = setting(
        Switch(), "Whether pods of controllers that it does not know do.", True
    )
    system_pod_disruption_time_s: float = setting(
        SECONDS, "A pod in kube-system keeps its node no longer; {default}.", "1h"
    )
    min_replica_count: int = setting(Whole(0), "Pods of smaller ReplicaSets keep their node; {default}.", 0)
    max_parallelism: int = setting(Whole(1), "Nodes that go at a time; {default}.", 10)
    max_drain_parallelism: int = setting(Whole(1), "Nodes that are drained at a time; {default}.", 1)
    max_graceful_termination_s: float = setting(SECONDS, "The longest grace period of an eviction; {default}.", "10m")
    max_pod_eviction_time_s: float = setting(SECONDS, "How long an eviction is tried again; {default}.", "2m")
    delete_delay_after_taint_s: float = setting(SECONDS, "After the taint, until pods are evicted; {default}.", "5s")
    cordon: bool = setting(Switch(), "Whether nodes are cordoned before they go; they are by default.", True)
    daemon_set_eviction_for_empty_nodes: bool = setting(
        Switch(), "Whether daemon pods of empty nodes are evicted.", False
    )
    daemon_set_eviction_for_occupied_nodes: bool = setting(
        Switch(), "Whether those of drained nodes are; they are by default.", True
    )
    max_bulk_soft_taints: int = setting(
        Whole(0), "How many nodes are marked as candidates in an iteration; {default}.", 10
    )


@dataclass(frozen=True, kw_only=True)
class Settings:
    """Node groups, and the flags of the autoscaler."""

    node_groups: list[NodeGroup] = setting(
        ListOf(Section(NodeGroup)), "What it scales: groups of equal nodes.", [], required=True
    )
    cut_off: int = setting(
        # The design of pod preemption said 0; the default came with the flag.
        Whole(),
        "Pods of lower priority neither add nor keep nodes (expendable-pods-priority-cutoff); {default}.",
        -10,
    )
    expander: str = setting(
        Text(),
        f"Which group grows, of several that could: {', '.join(EXPANDERS)}; with commas, one after the other.",
        EXPANDERS[0],
    )
    priorities: Mapping[str, list[str]] = setting(
        # As the ConfigMap of that expander has them.
        MapOf(ListOf(Text(".*"))),
        "For the expander priority: regular expressions of group names, by priority.",
        {},
    )
    scan_interval_s: float = setting(
        POSITIVE_SECONDS,
        "How often it looks; {default}. It looks at once when a pod is found unschedulable.",
        "10s",
    )
    new_pod_scale_up_delay_s: float = setting(SECONDS, "Younger pods add no nodes; {default}.", "0s")
    balance_similar_node_groups: bool = setting(Switch(), "Whether groups of equal nodes grow evenly.", False)
    max_nodes_total: int = setting(Whole(0), "The cluster does not grow beyond it; {default}: no limit.", 0)
    max_nodes_per_scale_up: int = setting(Whole(1), "Of one group, in one iteration; {default}.", 1000)
    enforce_node_group_min_size: bool = setting(
        Switch(), "Whether groups that are smaller than their min grow without need.", False
    )
    scale_up_from_zero: bool = setting(
        Switch(), "Whether it acts while no node is ready (scale-up-from-zero); it does by default.", True
    )
    force_daemon_sets: bool = setting(Switch(), "Whether daemon pods that no node has yet count on new nodes.", False)
    max_node_provision_time_s: float = setting(
        SECONDS, "How long a node may take to register until it is given up; {default}.", "15m"
    )
    max_node_startup_time_s: float = setting(
        SECONDS, "How long one that has registered may take to be ready; {default}.", "15m"
    )
    ok_total_unready_count: int = setting(Whole(0), "So many broken nodes do not matter; {default}.", 3)
    max_total_unready_percentage: float = setting(
        Number(0), "With a larger share of broken nodes it does nothing at all; {default}.", 45
    )
    initial_node_group_backoff_s: float = setting(
        SECONDS, "After a failed scale-up the group is left alone; {default}, doubled each time.", "5m"
    )
    max_node_group_backoff_s: float = setting(SECONDS, "But no longer than this; {default}.", "30m")
    node_group_backoff_reset_s: float = setting(
        SECONDS, "After so long without a failure it starts over; {default}.", "3h"
    )
    scale_down: ScaleDown = setting(Section(ScaleDown), "When nodes are removed.", {})

    def complaints(self) -> Iterator[Complaint]:
        expanders = self.expander.split(",")
        for name in expanders:
            if name and name not in EXPANDERS:
                yield Complaint(("expander",), f"{name!r} is no expander", THERE_ARE + ", ".join(EXPANDERS))
        if "priority" in expanders and not self.priorities:
            yield Complaint(("expander",), "the expander priority needs priorities")
        for priority in self.priorities:
            if not str(priority).isdigit():
                yield Complaint(("priorities", priority), f"{priority!r} is not a priority")
        seen: set[str] = set()
        for index, group in enumerate(self.node_groups):
            if not isinstance(group, NodeGroup):
                continue
            if group.name in seen:
                yield Complaint(("nodeGroups", index, "name"), f"a second group is called {group.name}")
            seen.add(group.name)


@dataclass(frozen=True, kw_only=True)
class Horizontal:
    """The flags ``--horizontal-pod-autoscaler-…`` of kube-controller-manager."""

    sync_period_ns: int = setting(DURATION, "How often it looks at each of them; {default} by default.", "15s")
    downscale_stabilization_ns: int = setting(
        DURATION, "For so long the highest recommendation counts; {default} by default.", "5m"
    )
    tolerance: float = setting(Number(0), "How far usage may be from its target; {default} by default.", 0.1)
    cpu_initialization_period_ns: int = setting(
        DURATION, "How long after its start what a pod uses of the CPU may not count; {default} by default.", "5m"
    )
    initial_readiness_delay_ns: int = setting(
        DURATION, "Who became unready so soon after its start has never been ready; {default} by default.", "30s"
    )
