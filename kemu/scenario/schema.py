"""The keys of the scenario format: which there are, what each may hold, which of them kemu has built.

Role: the one table that :mod:`kemu.scenario.loader` checks files against, and that ``kemu scenarios schema`` turns into
JSON Schema for editors. docs/scenarios.md explains the same keys to people.
"""

from __future__ import annotations

import dataclasses
from typing import Any

from kemu.scenario import controllers
from kemu.scenario.distributed import Cost, Distribution
from kemu.scenario.shapes import (
    DEFINITIONS,
    DURATION,
    NAME,
    POD_REFERENCE,
    POSITIVE_DURATION,
    POSITIVE_SECONDS,
    QUANTITY,
    RATE,
    SECONDS,
    SHARE,
    Choice,
    Free,
    Key,
    ListOf,
    ListOr,
    MapOf,
    Named,
    Number,
    Record,
    ScalarOr,
    Switch,
    Text,
    Whole,
)
from kemu.scheduler import policies

API_VERSION = "kemu.dev/v1"
KIND = "Scenario"

PHASES = ("Pending", "Running", "Succeeded", "Failed", "Unknown")
EFFECTS = ("NoSchedule", "PreferNoSchedule", "NoExecute")

# --- nodes -----------------------------------------------------------------------------------------------------------

_AMOUNTS = MapOf(Text(what="an amount in quotes, such as '100Mi' or '10%'"))

KUBELET_FIELDS: dict[str, Key] = {
    "maxPods": Key(Whole(0), "How many pods the node takes; 110 by default."),
    "kubeReserved": Key(MapOf(QUANTITY), "Kept from the capacity for Kubernetes itself."),
    "systemReserved": Key(MapOf(QUANTITY), "Kept from the capacity for the operating system."),
    "enforceNodeAllocatable": Key(
        ListOf(Text()), "With pods, as by default, all pods together may hold no more memory than is not reserved."
    ),
    "localStorageCapacityIsolation": Key(Switch(), "Whether limits of local storage are enforced; on by default."),
    "nodeLeaseDurationSeconds": Key(Whole(1), "The lease is renewed after a quarter of it; 40 by default."),
    "nodeStatusUpdateFrequency": Key(DURATION, "How often the kubelet looks whether its status has changed."),
    "nodeStatusReportFrequency": Key(DURATION, "How often it reports a status that has not changed."),
    "evictionHard": Key(
        _AMOUNTS, "Hard eviction thresholds; memory.available and nodefs.available lower what is allocatable."
    ),
    "evictionSoft": Key(_AMOUNTS, "Soft eviction thresholds."),
    "evictionSoftGracePeriod": Key(MapOf(DURATION), "How long a soft threshold must be crossed."),
    "evictionPressureTransitionPeriod": Key(DURATION, "How long a pressure condition stays."),
    "evictionMaxPodGracePeriod": Key(Whole(0), "Upper bound of the grace period in a soft eviction."),
    "evictionMinimumReclaim": Key(_AMOUNTS, "How far below the threshold an eviction must bring the node."),
    "mergeDefaultEvictionSettings": Key(Switch(), "Signals missing from evictionHard keep their defaults."),
    "serializeImagePulls": Key(Switch(), "One image after the other; on unless maxParallelImagePulls says otherwise."),
    "maxParallelImagePulls": Key(Whole(1), "How many images may be pulled at the same time."),
    "crashLoopBackOff": Key(
        Record({"maxContainerRestartPeriod": Key(DURATION, "300s by default.")}), "The longest crash-loop back-off."
    ),
    "shutdownGracePeriod": Key(DURATION, "How long a shutdown of the machine waits for its pods; 0 by default."),
    "shutdownGracePeriodCriticalPods": Key(DURATION, "How much of that is for the critical pods, which end last."),
    "shutdownGracePeriodByPodPriority": Key(
        ListOf(
            Record(
                {
                    "priority": Key(Whole(-(2**31), 2**31 - 1), "From this priority up."),
                    "shutdownGracePeriodSeconds": Key(Whole(0), "How long a shutdown waits for these pods."),
                }
            )
        ),
        "Instead of both: groups of pods, which end from the lowest to the highest.",
    ),
    "staticPods": Key(ListOf(Free()), "Manifests of its static pods: in Kubernetes, the files of staticPodPath."),
    "kind": Key(Choice(("KubeletConfiguration",)), "May be written."),
    "apiVersion": Key(Choice(("kubelet.config.k8s.io/v1beta1",)), "May be written."),
    **{
        name: Key(Free(mapping=False), "It would make a difference.", built=False)
        for name in (
            "imageGCHighThresholdPercent", "imageGCLowThresholdPercent", "imageMaximumGCAge", "podPidsLimit",
            "podsPerCore", "registerNode", "registerWithTaints", "reservedMemory", "staticPodPath", "staticPodURL",
        )
    },
    **{
        name: Key(Free(mapping=False), "It makes no difference here.")
        for name in (
            "address", "allowedUnsafeSysctls", "authentication", "authorization", "cgroupDriver", "cgroupRoot",
            "cgroupsPerQOS", "clusterDNS", "clusterDomain", "configMapAndSecretChangeDetectionStrategy",
            "containerLogMaxFiles", "containerLogMaxSize", "containerLogMaxWorkers", "containerLogMonitorInterval",
            "containerRuntimeEndpoint", "contentType", "cpuCFSQuota", "cpuCFSQuotaPeriod", "cpuManagerPolicy",
            "cpuManagerPolicyOptions", "cpuManagerReconcilePeriod", "enableContentionProfiling",
            "enableControllerAttachDetach", "enableDebugFlagsHandler", "enableDebuggingHandlers",
            "enableProfilingHandler", "enableServer", "enableSystemLogHandler", "enableSystemLogQuery", "eventBurst",
            "eventRecordQPS", "failCgroupV1", "failSwapOn", "featureGates", "fileCheckFrequency", "hairpinMode",
            "healthzBindAddress", "healthzPort", "httpCheckFrequency", "imageMinimumGCAge",
            "imagePullCredentialsVerificationPolicy", "imageServiceEndpoint", "iptablesDropBit",
            "iptablesMasqueradeBit", "kernelMemcgNotification", "kubeAPIBurst", "kubeAPIQPS", "kubeReservedCgroup",
            "kubeletCgroups", "logging", "makeIPTablesUtilChains", "maxOpenFiles", "memoryManagerPolicy",
            "memoryReservationPolicy", "memorySwap", "memoryThrottlingFactor", "nodeStatusMaxImages", "oomScoreAdj",
            "podCIDR", "podLogsDir", "port", "preloadedImagesVerificationAllowlist", "protectKernelDefaults",
            "providerID", "qosReserved", "readOnlyPort", "registryBurst", "registryPullQPS", "reservedSystemCPUs",
            "resolvConf", "rotateCertificates", "runOnce", "runtimeRequestTimeout", "seccompDefault",
            "serverTLSBootstrap", "showHiddenMetricsForVersion", "singleProcessOOMKill", "staticPodURLHeader",
            "streamingConnectionIdleTimeout", "syncFrequency", "systemCgroups", "systemReservedCgroup", "tlsCertFile",
            "tlsCipherSuites", "tlsCurvePreferences", "tlsMinVersion", "tlsPrivateKeyFile", "topologyManagerPolicy",
            "topologyManagerPolicyOptions", "topologyManagerScope", "tracing", "userNamespaces", "volumePluginDir",
            "volumeStatsAggPeriod",
        )
    },
}  # fmt: skip
"""The fields of a KubeletConfiguration, as in kubelet.config.k8s.io/v1beta1: a real file can be taken as it is."""
KUBELET = Record(KUBELET_FIELDS)

_NODE = {
    "labels": Key(MapOf(Text(".*")), "Labels; kubernetes.io/hostname, os and arch are always set."),
    "annotations": Key(MapOf(Text(".*")), "Annotations."),
    "taints": Key(ListOf(Free()), "Taints as in a Node: key, value, effect."),
    "unschedulable": Key(Switch(), "Cordoned from the start."),
    "capacity": Key(MapOf(QUANTITY), "What the machine has; by default the allocatable."),
    "allocatable": Key(
        MapOf(QUANTITY),
        "What pods may request; by default the capacity less what the kubelet reserves. Where neither names them: "
        "cpu 8, memory 32Gi, ephemeral-storage 100Gi, pods 110.",
    ),
    "kubelet": Key(KUBELET, "Fields of a KubeletConfiguration (kubelet.config.k8s.io/v1beta1)."),
    "kubeletFile": Key(Text(), "The same in a file, relative to the scenario."),
    "usage": Key(Free(), "What it uses besides its pods: memory, disk, images, deadContainers, inodes, pids."),
    "machine": Key(
        Record(
            {
                "nodefs": Key(Record({"inodes": Key(QUANTITY, "How many.")}), "The file system of logs and volumes."),
                "imagefs": Key(
                    Record(
                        {"capacity": Key(QUANTITY, "Its size.", required=True), "inodes": Key(QUANTITY, "How many.")}
                    ),
                    "A file system of their own for images and writable layers.",
                ),
                "splitImages": Key(Switch(), "Only images lie on imagefs."),
                "pids": Key(QUANTITY, "How many processes there can be; 32768 by default."),
            }
        ),
        "What the kubelet measures beside memory and the size of the disk.",
    ),
}
NODE = Named(
    "node",
    Record(
        _NODE | {"count": Key(Whole(0), "How many, with namePrefix.")},
        choices={
            "name": Key(NAME, "The node's name."),
            "namePrefix": Key(Text(what="a prefix such as node-"), "With count: node- gives node-1, node-2, …"),
        },
        noun="name",
    ),
)

# --- schedulers ------------------------------------------------------------------------------------------------------

_SWITCHES: dict[str, tuple[tuple[str, ...], str]] = {
    "queue": (("priority", "fifo"), "fifo: in the order of arrival, the failed ones last."),
    "nomination": ((), "Whether the room that preemption makes is kept for the preemptor."),
    "cooperate": ((), "Whether nominations that other schedulers have made are honoured."),
    "clearLowerNominations": (
        ("current", "always"),
        "When a preemptor clears lower nominations on its node. current: not if all of its victims terminate already.",
    ),
    "preemptor": (("scheduler", "kubelet", "rescheduler", "none"), "Who preempts."),
    "victimOrder": (("priority", "qos"), "By what victims are ranked first."),
    "pdb": (("respect", "ignore"), "Whether victims under a disruption budget are spared if possible."),
    "eligibility": (
        ("current", "alpha"),
        "When a pod that has preempted may preempt again. alpha: not while any lower pod terminates on its node.",
    ),
    "disablePreemption": ((), "No preemption at all."),
    "statusWrites": (
        ("blocking", "background"),
        "Whether the scheduling loop waits until the status of a pod that failed is written.",
    ),
    "crossNodePreemption": ((), "Victims on other nodes too, where no node helps by itself."),
    "lowerPriorityAffinity": ((), "Spare the victims that the preemptor has affinity to."),
    "avoidEvictedNode": ((), "Not back to the node whose kubelet evicted or rejected it, for a while."),
}
"""The switches of the format: their words, today's Kubernetes first (none: true or false), and what they do."""


_SWITCH_AMOUNTS: dict[str, dict[str, Key]] = {
    "crossNodePreemption": {"budget": Key(Whole(1), "How much an attempt searches before it gives up; 10000.")},
    "lowerPriorityAffinity": {"limit": Key(Whole(1), "How many sets of pods are tried on a node; 100.")},
    "avoidEvictedNode": {"for": Key(POSITIVE_SECONDS, "How long; 5m.")},
}
"""Switches that may be a mapping instead of true, and what it holds."""


def _policy() -> dict[str, Key]:
    """The switches, those that the scheduler knows as built."""
    built = {switch.name: switch.metadata.get("values", ()) for switch in dataclasses.fields(policies.Policy)}
    keys = {}
    for name, (words, doc) in _SWITCHES.items():
        if name in _SWITCH_AMOUNTS:
            keys[name] = Key(ScalarOr(Switch(), Record(_SWITCH_AMOUNTS[name])), doc)
            continue
        known = tuple(word for word in words if word in built.get(name, ()))
        shape = Choice(known, tuple(word for word in words if word not in known)) if words else Switch()
        keys[name] = Key(shape, doc, built=name in built)
    keys["minFeasibleNodes"] = Key(Whole(1), "A search does not stop before it found so many nodes that pass; 100.")
    return keys


POLICY = _policy()

SCHEDULER = Record(
    {
        "name": Key(NAME, "Serves the pods whose schedulerName it is.", required=True),
        "replicas": Key(Whole(1, 100), "More than one race, without leader election, on the same pods."),
        "policy": Key(Record(POLICY), "Experiment switches; the defaults are today's Kubernetes."),
    },
    choices={
        "config": Key(Free(), "A KubeSchedulerConfiguration (kubescheduler.config.k8s.io/v1)."),
        "configFile": Key(Text(), "The same in a file, relative to the scenario."),
    },
    noun="configuration",
    choice_required=False,
)

EXTENDER = Record(
    {
        "name": Key(NAME, "The actor is extender/<name>; a scheduler calls it kemu://extender/<name>.", required=True),
        "plugin": Key(Text(), "Its class: module:Class, or the name of one that comes with kemu.", required=True),
        "args": Key(Free(), "What the class is given."),
    }
)

# --- pods over time --------------------------------------------------------------------------------------------------

_TIME = Named("time", Distribution(SECONDS))
_LIFETIME = Named("numberOfSeconds", Distribution(Number(0)))

LIFE = Record(
    {
        "startSeconds": Key(_LIFETIME, "From admission until the containers run, in seconds."),
        "runSeconds": Key(_LIFETIME, "How long they run, in seconds; absent: for ever."),
        "exitCode": Key(Distribution(Number(0, 255)), "How they end; 0 by default."),
        "shutdownSeconds": Key(
            _LIFETIME, "How long they need to shut down, in seconds; 0 by default; bounded by the grace."
        ),
    }
)
ARRIVALS = Record(
    {
        "until": Key(DURATION, "No arrivals from then on; by default the end of the run."),
        "count": Key(Whole(0), "No more than so many; alone: all at once."),
    },
    choices={
        "poisson": Key(Record({"rate": Key(RATE, "5/s, 300/m.", required=True)}), "Independent arrivals."),
        "every": Key(_TIME, "One after each such time, the first at the start."),
        "ramp": Key(
            Record({"from": Key(RATE, "At the start.", required=True), "to": Key(RATE, "At the end.", required=True)}),
            "Independent arrivals at a rate that grows (or falls) evenly.",
        ),
    },
    noun="arrival process",
    choice_required=False,
)
TRACE = Record(
    {
        "format": Key(Choice(("openb",)), "openb: the Alibaba GPU trace of 2023.", required=True),
        "nodes": Key(Text(), "CSV file of the nodes, found in --data DIR; absent: the nodes of the scenario."),
        "pods": Key(Text(), "CSV file of the pods, found in --data DIR.", required=True),
        "speedUp": Key(Number(positive=True), "All times of the trace are divided by it."),
        "runSpeedUp": Key(Number(positive=True), "Run times are divided by it instead: more pods run at once."),
        "limit": Key(Whole(0), "Only so many pods, from the first."),
        "kubelet": Key(Record(KUBELET_FIELDS), "KubeletConfiguration of the trace's nodes."),
        "digest": Key(Text(r"[0-9a-f]{64}", "a SHA-256"), "SHA-256 of the files: others are refused."),
    }
)
WORKLOAD = Record(
    {
        "name": Key(
            Text("[a-z0-9]([-a-z0-9]*[a-z0-9])?", "a name of lower-case letters, digits and -", 50),
            "Its pods are named <name>-<n>, from 0.",
            required=True,
        ),
        "start": Key(DURATION, "When it begins; 0s by default."),
    },
    choices={
        "arrivals": Key(ARRIVALS, "When pods come."),
        "trace": Key(TRACE, "Pods (and nodes) of a recorded trace."),
    },
    noun="source of pods",
    companions={
        "arrivals": Record(
            {
                "pods": Key(Free(), "The template: metadata and spec of a Pod.", required=True),
                "life": Key(LIFE, "How long its pods start, run and shut down."),
                "usage": Key(Free(), "What its pods use over time: cpu, memory, rootfs, logs, volumes, inodes, pids."),
                "replaceFinished": Key(
                    Switch(), "A pod that is preempted, evicted or rejected comes back under a new name."
                ),
            }
        ),
        "trace": Record(
            {
                "life": Key(LIFE, "startSeconds and shutdownSeconds of the trace's pods."),
                "replaceFinished": Key(
                    Switch(), "A pod that is preempted, evicted or rejected comes back under a new name."
                ),
            }
        ),
    },
)

# --- events and chaos ------------------------------------------------------------------------------------------------

_POD = Key(POD_REFERENCE, "A pod: name, or namespace/name.", required=True)
_NODE_NAME = Key(NAME, "A node.", required=True)
_GRACE = Key(Whole(0), "Instead of the pod's own grace period, in seconds.")
_TARGET = {
    "kind": Key(Text(), "Its kind, such as Pod.", required=True),
    "name": Key(NAME, "Its name.", required=True),
    "namespace": Key(NAME, "Its namespace; default by default."),
}

EVENT = Record(
    {"at": Key(DURATION, "When.", required=True)},
    choices={
        "create": Key(Free(), "Create this object."),
        "apply": Key(Free(), "Create this object or, if it exists, patch it to be so."),
        "delete": Key(
            Record(
                {name: Key(key.shape, key.doc) for name, key in _TARGET.items()}
                | {"pod": Key(POD_REFERENCE, "In short for a pod."), "gracePeriodSeconds": _GRACE}
            ),
            "Delete an object.",
        ),
        "patch": Key(
            Record(
                _TARGET,
                choices={
                    "merge": Key(Free(), "A JSON merge patch."),
                    "strategic": Key(Free(), "A strategic merge patch."),
                },
                noun="patch",
            ),
            "Patch an object.",
        ),
        "evict": Key(
            Record({"pod": _POD, "gracePeriodSeconds": _GRACE}), "Evict a pod through the Eviction subresource."
        ),
        "finish": Key(
            Record({"pod": _POD, "exitCode": Key(Whole(0, 255), "0 by default.")}), "The containers of a pod end."
        ),
        "cordon": Key(Record({"node": _NODE_NAME}), "Mark a node unschedulable."),
        "uncordon": Key(Record({"node": _NODE_NAME}), "Mark it schedulable again."),
        "taint": Key(
            Record(
                {
                    "node": _NODE_NAME,
                    "key": Key(Text(), "Key of the taint.", required=True),
                    "value": Key(Text(".*"), "Value of the taint."),
                    "effect": Key(Choice(EFFECTS), "Effect of the taint.", required=True),
                }
            ),
            "Add a taint to a node, or replace the one of this key and effect.",
        ),
        "untaint": Key(
            Record(
                {
                    "node": _NODE_NAME,
                    "key": Key(Text(), "Key of the taint.", required=True),
                    "effect": Key(Choice(EFFECTS), "Only the taint of this effect."),
                }
            ),
            "Remove taints from a node.",
        ),
        "addNode": Key(NODE, "A node and its kubelet come up."),
        "removeNode": Key(Record({"node": _NODE_NAME}), "The kubelet stops and the Node is deleted."),
        "shutdownNode": Key(
            Record({"node": _NODE_NAME}),
            "The machine is shut down, gracefully if its kubelet is configured so; the Node stays.",
        ),
        "startNode": Key(Record({"node": _NODE_NAME}), "A machine that is off boots, and its kubelet starts."),
    },
    noun="action",
)

_ACTOR = Text(
    r"(store|apiserver|scheduler|extender|kubelet|controller|\*)[^\s]*",
    "an actor: store, apiserver/0, scheduler/<name>/<replica>, extender/<name>, kubelet/<node>, controller/<name>, "
    "or a pattern",
)
_NODES = Text(r"[^\s/]+", "a node, or a pattern")
_CHOICE = {
    "all": Key(Switch(), "All that match a pattern."),
    "count": Key(Whole(1), "So many of those that match a pattern, picked by the seed."),
    "share": Key(SHARE, "Such a part of those that match a pattern, picked by the seed: 10%."),
}
CHAOS = Record(
    {
        "at": Key(DURATION, "When the fault happens."),
        "every": Key(_TIME, "It happens again and again, after such times."),
        "from": Key(DURATION, "With every: not before."),
        "until": Key(DURATION, "With every: not after."),
        "for": Key(POSITIVE_DURATION, "When the fault ends by itself; of a crash: how long the actor is away."),
        "id": Key(Text(), "Its name in the run log."),
    },
    choices={
        "crash": Key(
            Record(
                {**_CHOICE, "restart": Key(Switch(), "Whether it comes back; true by default.")},
                choices={
                    "actor": Key(_ACTOR, "Who; a pattern such as kubelet/* picks one by the seed."),
                    "node": Key(
                        _NODES, "The machine of a node, with its kubelet and all its containers; or a pattern."
                    ),
                },
                noun="victim",
            ),
            "An actor or a machine dies without a word; what it has fsynced survives.",
        ),
        "partition": Key(
            Record(
                {
                    "between": Key(
                        ListOf(ListOr(_ACTOR), 2), "Two sides, each an actor, a pattern or a list.", required=True
                    ),
                    "oneWay": Key(Switch(), "Only messages from the first side to the second are lost."),
                    **_CHOICE,
                }
            ),
            "Messages between two sides are lost and connections break.",
        ),
        **{
            name: Key(Free(mapping=False), doc, built=False)
            for name, doc in (
                ("pause", "An actor stands still."),
                ("delay", "Messages take longer."),
                ("drop", "Messages are lost."),
                ("duplicate", "Messages arrive twice."),
                ("clockSkew", "An actor's clock is wrong."),
                ("diskFull", "Writes to a disk fail."),
                ("tornWrite", "A write is cut by a crash."),
                ("staleReads", "An API server answers from the past."),
                ("cutWatches", "Watches break."),
            )
        },
    },
    noun="fault",
)

# --- expectations ----------------------------------------------------------------------------------------------------

_WINDOW = {
    "after": Key(DURATION, "Not before this time, from the start of the run."),
    "before": Key(DURATION, "Not after this time."),
}
_AT_NODE = {"node": Key(NAME, "Where.")}


def _fact(doc: str, keys: dict[str, Key] | None = None) -> Key:
    return Key(Record({**(keys or {}), **_WINDOW}), doc)


FACTS: dict[str, Key] = {
    "created": _fact("The pod was created."),
    "unschedulable": _fact(
        "An attempt to schedule it found no node.",
        {"by": Key(Text(), "By which scheduler: <name> or <name>/<replica>.")},
    ),
    "nominated": _fact("Its nominated node was set.", _AT_NODE),
    "nominationCleared": _fact("Its nominated node was cleared before it was bound.", _AT_NODE),
    "bound": _fact(
        "It was bound to a node.", {**_AT_NODE, "by": Key(Text(), "By which scheduler: <name> or <name>/<replica>.")}
    ),
    "rejected": _fact("The kubelet refused to admit it.", {**_AT_NODE, "reason": Key(Text(), "Such as OutOfcpu.")}),
    "running": _fact("Its containers ran.", _AT_NODE),
    "preempted": _fact("A scheduler deleted it to make room.", {"by": Key(POD_REFERENCE, "For which pod.")}),
    "terminating": _fact("It began to terminate.", _AT_NODE),
    "finished": _fact(
        "Its containers ended by themselves, or it was rejected.",
        {"phase": Key(Choice(("Succeeded", "Failed")), "How.")},
    ),
    "deleted": _fact("It was gone from the API.", _AT_NODE),
    "evicted": _fact(
        "It was evicted: by its kubelet, through the API, for a taint, or with its node.",
        {**_AT_NODE, "reason": Key(Text(), "Evicted, or that of the condition DisruptionTarget.")},
    ),
    "oomKilled": _fact("The kernel killed one of its containers, as the node ran out of memory.", _AT_NODE),
}
"""What can happen to a pod, at a time."""

NODE_FACTS: dict[str, Key] = {
    "added": _fact("The Node was created."),
    "condition": _fact(
        "A condition took this status.",
        {
            "type": Key(Text(), "Such as MemoryPressure.", required=True),
            "status": Key(Choice(("True", "False", "Unknown"), booleans=True), "The new status.", required=True),
        },
    ),
    "tainted": _fact(
        "It got a taint.",
        {"key": Key(Text(), "The key of the taint.", required=True), "effect": Key(Choice(EFFECTS), "Its effect.")},
    ),
    "untainted": _fact(
        "It lost a taint.",
        {"key": Key(Text(), "The key of the taint.", required=True), "effect": Key(Choice(EFFECTS), "Its effect.")},
    ),
    "removed": _fact("The Node was deleted."),
}
"""What can happen to a node, at a time."""

STATEMENTS: dict[str, Key] = {
    **FACTS,
    "never": Key(Record(choices=FACTS, noun="statement"), "The contrary: in this window it did not happen."),
    "neverBound": Key(Switch(), "It was not bound as long as the run lasted."),
    "phase": Key(Choice(PHASES), "Its phase at the end."),
    "waited": Key(
        Record({"atMost": Key(DURATION, "No longer than this."), "atLeast": Key(DURATION, "At least so long.")}),
        "From its creation until it was bound (or until the end).",
    ),
}
STATEMENT = Named("statement", Record(choices=STATEMENTS, noun="statement"))

_BOUNDS = {
    "equals": Key(Number(), "Exactly."),
    "atLeast": Key(Number(), "Not less."),
    "atMost": Key(Number(), "Not more."),
}
_CONDITION = MapOf(Free(mapping=False))

EXPECTATION = Named(
    "expectation",
    Record(
        {
            "id": Key(Text(), "Its name in the verdict."),
            "when": Key(_CONDITION, "Only in the variants of the matrix in which these paths have these values."),
        },
        choices={
            "pod": Key(POD_REFERENCE, "One pod: name, or namespace/name."),
            "pods": Key(
                Record(
                    choices={
                        "workload": Key(NAME, "All pods of a workload."),
                        "selector": Key(Free(), "All pods with these labels."),
                        "names": Key(ListOf(POD_REFERENCE, 1), "These pods."),
                    },
                    noun="selection",
                ),
                "Several pods, as far as they were created.",
            ),
            "node": Key(NAME, "A node."),
            "counter": Key(Text(), "A counter of the verdict."),
            "check": Key(Text(), "A check."),
            "order": Key(
                ListOf(Record({"pod": _POD}, choices=FACTS, noun="statement"), 2), "Each happens before the next."
            ),
            "compare": Key(
                Record(
                    {
                        "metric": Key(Text(), "waiting.p99_s, overtaken.max, a counter, …", required=True),
                        "priority": Key(Whole(), "Only pods of this priority."),
                        "of": Key(_CONDITION, "The variant that is looked at.", required=True),
                        "timesThatOf": Key(_CONDITION, "The variant that it is compared with.", required=True),
                        "atLeast": Key(Number(0), "At least so many times."),
                        "atMost": Key(Number(0), "At most so many times."),
                    }
                ),
                "Compares two variants of the matrix.",
            ),
        },
        noun="subject",
        companions={
            "pod": Record(choices=STATEMENTS, noun="statement"),
            "pods": Record(
                choices={
                    "all": Key(STATEMENT, "It is true of every one (and there is one)."),
                    "any": Key(STATEMENT, "It is true of one at least."),
                    "none": Key(STATEMENT, "It is true of none."),
                    "count": Key(
                        Record({"is": Key(STATEMENT, "Of how many it is true.", required=True), **_BOUNDS}),
                        "It is true of so many.",
                    ),
                },
                noun="statement",
            ),
            "node": Record(
                choices={
                    **NODE_FACTS,
                    "never": Key(Record(choices=NODE_FACTS, noun="statement"), "In this window it did not happen."),
                },
                noun="statement",
            ),
            "counter": Record(_BOUNDS),
            "check": Record({"holds": Key(Switch(), "false: the scenario shows that it is broken.")}),
        },
    ),
)

# --- the whole -------------------------------------------------------------------------------------------------------

TIMING: dict[str, Key] = {
    "apiLatency": Key(_TIME, "Between clients and API servers, one way."),
    "watchLatency": Key(_TIME, "From API servers to watching clients."),
    "storeLatency": Key(_TIME, "Between API servers and the store, one way."),
    "schedulingCycle": Key(
        Cost(
            _TIME,
            Record(
                {
                    "base": Key(_TIME, "For every attempt."),
                    "perNode": Key(_TIME, "For every node looked at."),
                    "perEvaluation": Key(_TIME, "For every set of pods that an experiment switch tries on a node."),
                }
            ),
        ),
        "How long an attempt to schedule a pod takes.",
    ),
    "bind": Key(_TIME, "From the decision until the binding is sent."),
    "kubeletSync": Key(_TIME, "From what a kubelet hears until it acts."),
    "podStart": Key(_TIME, "From admission until the containers run, where a pod does not say."),
    "imagePull": Key(_TIME, "How long an image takes that the node does not have."),
}
"""The times of the cluster's own work."""
SPEC: dict[str, Key] = {
    "seed": Key(Whole(0), "Everything left to chance follows from it; --seed overrides it."),
    "duration": Key(POSITIVE_DURATION, "Virtual time after which the run ends; 10m by default."),
    "runtime": Key(Choice(("sim", "ray")), "Where it runs; --runtime overrides it."),
    "speed": Key(Number(positive=True), "Virtual seconds for each real one, with ray only."),
    "nodes": Key(ListOf(NODE), "The nodes, each with its kubelet."),
    "schedulers": Key(ListOf(SCHEDULER), "The schedulers; by default one named default-scheduler."),
    "extenders": Key(ListOf(EXTENDER), "Extenders of schedulers: processes that filter, rank and bind beside them."),
    "apiServers": Key(
        Record(
            {
                "replicas": Key(Whole(1, 100), "More than one: each has its own watch cache."),
                "cacheLag": Key(DURATION, "How far the watch caches are behind."),
                "eventTtl": Key(POSITIVE_DURATION, "How long Event objects are kept; 1h by default."),
            }
        ),
        "The API servers.",
    ),
    "store": Key(
        Record(
            {
                "fsync": Key(Choice(("batch", "always", "none")), "When writes are safe on disk."),
                "etcd": Key(Text(), "A real etcd instead, host:port."),
            }
        ),
        "The store.",
    ),
    "eventObjects": Key(
        Choice(("notable", "all", "none")), "Which Event objects are written; notable: not one for every binding."
    ),
    "heartbeats": Key(
        Choice(("standing", "exact")),
        "exact: every heartbeat of a kubelet is a message; standing: not where nobody can tell.",
    ),
    "controllers": Key(controllers.SHAPE, "Which controllers run; by default those that the scenario needs."),
    "timing": Key(Record(TIMING), "How long things take; each a value or a distribution."),
    "priorityClasses": Key(
        MapOf(
            ScalarOr(
                Whole(),
                Record(
                    {
                        "value": Key(Whole(), "The priority.", required=True),
                        "preemptionPolicy": Key(Choice(("PreemptLowerPriority", "Never")), "Whether it preempts."),
                        "globalDefault": Key(Switch(), "For pods that name no class."),
                        "description": Key(Text(".*"), "For whom it is."),
                    }
                ),
            )
        ),
        "Priority classes: name and value, or the fields of a PriorityClass.",
    ),
    "manifests": Key(ListOf(Free()), "Kubernetes objects, created in this order before the clock starts."),
    "events": Key(ListOf(EVENT), "Things that happen at a time."),
    "workloads": Key(ListOf(WORKLOAD), "Streams of pods."),
    "chaos": Key(ListOf(CHAOS), "Faults."),
    "checks": Key(
        Record(
            {
                "starvation": Key(
                    Record(
                        {
                            "maxWait": Key(POSITIVE_DURATION, "No pod may wait longer to be bound."),
                            "maxOvertaken": Key(Whole(0), "No pod may be overtaken more often."),
                        }
                    ),
                    "Limits of the check no-pod-starves.",
                ),
                "loops": Key(
                    Record(
                        {
                            "evictions": Key(
                                Whole(0), "A workload may be evicted so often from a node that had evicted it before."
                            ),
                            "preemptions": Key(Whole(0), "Two workloads may preempt each other in turn so often."),
                        }
                    ),
                    "Limits of the checks no-eviction-loop and no-preemption-loop.",
                ),
                "disable": Key(ListOf(Text()), "Ids of checks that do not count."),
            }
        ),
        "What is always looked at.",
    ),
    "ablate": Key(ListOf(Text()), "Safeguards switched off.", built=False),
    "matrix": Key(MapOf(ListOf(Free(mapping=False), 1)), "Values for paths below spec; all combinations run."),
    "until": Key(EXPECTATION, "The run ends when this holds."),
    "expect": Key(ListOf(EXPECTATION), "What the run must show."),
}
SCENARIO = Record(
    {
        "apiVersion": Key(Choice((API_VERSION,)), "Always kemu.dev/v1.", required=True),
        "kind": Key(Choice((KIND,)), "Always Scenario.", required=True),
        "metadata": Key(
            Record(
                {
                    "name": Key(NAME, "Its name; by default that of the file."),
                    "description": Key(Text(".*"), "What it shows, for a newcomer."),
                }
            ),
            "Name and description.",
        ),
        "spec": Key(Record(SPEC), "The scenario.", required=True),
    }
)


def json_schema() -> dict[str, Any]:
    """The format as JSON Schema (2020-12)."""
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "$id": "https://kemu.dev/schemas/v1/scenario.json",
        "title": "kemu scenario",
        **SCENARIO.schema(),
        "$defs": {name: shape.schema() for name, shape in sorted(DEFINITIONS.items())},
    }
