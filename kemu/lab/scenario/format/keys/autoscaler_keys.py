"""The keys of ``autoscaler``: node groups, and the flags of the cluster autoscaler
(:mod:`kemu.emulated.autoscaler.settings`).

:mod:`kemu.lab.scenario.loading.node_groups` reads what they hold.
"""

from __future__ import annotations

from typing import Any

from kemu.emulated.autoscaler import clouds, settings
from kemu.emulated.settings.distributed import TIME
from kemu.emulated.settings.shapes import (
    DURATION,
    NAME,
    POSITIVE_SECONDS,
    SECONDS,
    SHARE,
    Choice,
    Key,
    ListOf,
    MapOf,
    Number,
    Record,
    Shape,
    Switch,
    Text,
    Whole,
)
from kemu.lab.scenario.format.keys import cluster_keys

_FAILURE = Record(
    {
        "kind": Key(
            Choice(clouds.FAILURES),
            "out-of-resources: the instance is reported as failed; error: the request is refused; never-registers: "
            "the machine runs, but no kubelet comes.",
            required=True,
        ),
        "from": Key(DURATION, "From when on; the start of the run by default."),
        "until": Key(DURATION, "Until when; the end of the run by default."),
        "share": Key(SHARE, "The share of instances, or of requests, that fail; all by default."),
    }
)

GROUP = Record(
    {
        "name": Key(NAME, "Its nodes are <name>-1, <name>-2, …; numbers are not used again.", required=True),
        "min": Key(Whole(0), "The least number of nodes; 0 by default."),
        "max": Key(Whole(0), "The greatest number of nodes.", required=True),
        "initial": Key(Whole(0), "How many there are when the clock starts; min by default."),
        "template": Key(Record(cluster_keys.NODE_FIELDS), "What its nodes are like: the keys of a node."),
        "provisioning": Key(TIME, "From the request until the machine runs and its kubelet starts; 60s by default."),
        "startup": Key(
            TIME,
            "How long a new node keeps a startup taint, until its agents are done; 0 by default.",
        ),
        "removal": Key(TIME, "From a node's deletion until machine and Node are gone; 30s by default."),
        "failures": Key(ListOf(_FAILURE), "When instances cannot be had."),
        "price": Key(Number(0), "Of one node for an hour; 0 by default. The metric bill.money adds it up."),
    }
)

_SCALE_DOWN: dict[str, tuple[Shape, str]] = {
    "enabled": (Switch(), "Whether nodes are removed at all."),
    "delayAfterAdd": (SECONDS, "After a scale-up, until nodes are removed; 10m."),
    "delayAfterDelete": (SECONDS, "After a removal; 0s."),
    "delayAfterFailure": (SECONDS, "After a removal that failed; 3m."),
    "unneededTime": (SECONDS, "How long a node must be unneeded; 10m."),
    "unreadyTime": (SECONDS, "The same of a node that is not ready; 20m."),
    "utilizationThreshold": (Number(0), "Requests of CPU or memory, as a share, up to which a node may go; 0.5."),
    "gpuUtilizationThreshold": (Number(0), "The same of GPUs, on nodes that have some; 0.5."),
    "unreadyEnabled": (Switch(), "Whether nodes that are not ready go, too."),
    "unremovableRecheckTime": (SECONDS, "Until a node whose pods cannot move is looked at again; 5m."),
    "ignoreDaemonSetsUtilization": (Switch(), "Whether daemon pods count in the utilization; they do by default."),
    "skipNodesWithSystemPods": (Switch(), "Whether pods in kube-system without a budget keep their node."),
    "skipNodesWithLocalStorage": (Switch(), "Whether pods with emptyDir or hostPath volumes keep their node."),
    "skipNodesWithCustomControllerPods": (Switch(), "Whether pods of controllers that it does not know do."),
    "systemPodDisruptionTime": (SECONDS, "A pod in kube-system keeps its node no longer; 1h."),
    "minReplicaCount": (Whole(0), "Pods of smaller ReplicaSets keep their node; 0."),
    "maxParallelism": (Whole(1), "Nodes that go at a time; 10."),
    "maxDrainParallelism": (Whole(1), "Nodes that are drained at a time; 1."),
    "maxGracefulTermination": (SECONDS, "The longest grace period of an eviction; 10m."),
    "maxPodEvictionTime": (SECONDS, "How long an eviction is tried again; 2m."),
    "deleteDelayAfterTaint": (SECONDS, "After the taint, until pods are evicted; 5s."),
    "cordon": (Switch(), "Whether nodes are cordoned before they go; they are by default."),
    "daemonSetEvictionForEmptyNodes": (Switch(), "Whether daemon pods of empty nodes are evicted."),
    "daemonSetEvictionForOccupiedNodes": (Switch(), "Whether those of drained nodes are; they are by default."),
    "maxBulkSoftTaints": (Whole(0), "How many nodes are marked as candidates in an iteration; 10."),
}

_FLAGS: dict[str, tuple[Shape, str]] = {
    "cutOff": (
        Whole(),
        "Pods of lower priority neither add nor keep nodes (expendable-pods-priority-cutoff); -10.",
    ),
    "expander": (
        Text(),
        f"Which group grows, of several that could: {', '.join(settings.EXPANDERS)}; with commas, one after the other.",
    ),
    "priorities": (
        MapOf(ListOf(Text(".*"))),
        "For the expander priority: regular expressions of group names, by priority.",
    ),
    "scanInterval": (POSITIVE_SECONDS, "How often it looks; 10s. It looks at once when a pod is found unschedulable."),
    "newPodScaleUpDelay": (SECONDS, "Younger pods add no nodes; 0s."),
    "balanceSimilarNodeGroups": (Switch(), "Whether groups of equal nodes grow evenly."),
    "maxNodesTotal": (Whole(0), "The cluster does not grow beyond it; 0: no limit."),
    "maxNodesPerScaleUp": (Whole(1), "Of one group, in one iteration; 1000."),
    "enforceNodeGroupMinSize": (Switch(), "Whether groups that are smaller than their min grow without need."),
    "forceDaemonSets": (Switch(), "Whether daemon pods that no node has yet count on new nodes."),
    "maxNodeProvisionTime": (SECONDS, "How long a node may take to register until it is given up; 15m."),
    "maxNodeStartupTime": (SECONDS, "How long one that has registered may take to be ready; 15m."),
    "okTotalUnreadyCount": (Whole(0), "So many broken nodes do not matter; 3."),
    "maxTotalUnreadyPercentage": (Number(0), "With a larger share of broken nodes it does nothing at all; 45."),
    "initialNodeGroupBackoff": (SECONDS, "After a failed scale-up the group is left alone; 5m, doubled each time."),
    "maxNodeGroupBackoff": (SECONDS, "But no longer than this; 30m."),
    "nodeGroupBackoffReset": (SECONDS, "After so long without a failure it starts over; 3h."),
}


def _keys(table: dict[str, tuple[Shape, str]]) -> dict[str, Key]:
    return {name: Key(shape, doc) for name, (shape, doc) in table.items()}


SHAPE: Any = Record(
    {
        "nodeGroups": Key(ListOf(GROUP), "What it scales: groups of equal nodes.", required=True),
        **_keys(_FLAGS),
        "scaleDown": Key(Record(_keys(_SCALE_DOWN)), "When nodes are removed."),
    }
)
