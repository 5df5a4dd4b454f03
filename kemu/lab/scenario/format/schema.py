"""The keys of the scenario format: which there are, what each may hold, which of them kemu has built.

Role: the one table that :mod:`kemu.lab.scenario.loading.loader` checks files against, and that
``kemu scenarios schema`` turns into JSON Schema for editors. its neighbours have its parts, by what they speak of;
docs/scenarios.md explains the same keys to people.
"""

from __future__ import annotations

from typing import Any

from kemu.emulated import variants
from kemu.emulated.apiserver import admission
from kemu.emulated.apiserver.authorization import authorizers
from kemu.emulated.apiserver.registry import bind_checks
from kemu.emulated.autoscaler import settings
from kemu.emulated.settings.declared import Section
from kemu.emulated.settings.shapes import (
    DEFINITIONS,
    DURATION,
    NAME,
    POSITIVE_DURATION,
    QUANTITY,
    Choice,
    Free,
    Key,
    ListOf,
    MapOf,
    Number,
    Record,
    ScalarOr,
    Switch,
    Text,
    Whole,
    WordOr,
)
from kemu.lab.scenario.format.keys import (
    cluster_keys,
    controller_keys,
    expectation_keys,
    fault_keys,
    hold_keys,
    matrix_keys,
    quota_keys,
    runtime_keys,
    storage_keys,
    timeline_keys,
    timing_keys,
    user_keys,
    workload_keys,
)

_NODE_GROUP = Section(settings.NodeGroup, {"template": Record(cluster_keys.NODE_FIELDS)})
_AUTOSCALER = Section(settings.Settings, {"nodeGroups": ListOf(_NODE_GROUP)})

API_VERSION = "kemu.dev/v1"
KIND = "Scenario"

SPEC: dict[str, Key] = {
    "seed": Key(Whole(0), "Everything left to chance follows from it; --seed overrides it."),
    "duration": Key(POSITIVE_DURATION, "Virtual time after which the run ends; 10m by default."),
    "runtime": Key(
        runtime_keys.Runtime(), "Where it runs: sim, wall or ray, or ray with its settings; --runtime overrides it."
    ),
    "speed": Key(Number(positive=True), "Virtual seconds for each real one, with ray only."),
    "nodes": Key(ListOf(cluster_keys.NODE), "The nodes, each with its kubelet."),
    "schedulers": Key(ListOf(cluster_keys.SCHEDULER), "The schedulers; by default one named default-scheduler."),
    "modules": Key(
        ListOf(Text()), "Folders with Python modules that it names, relative to its own folder, which is always one."
    ),
    "autoscaler": Key(
        _AUTOSCALER, "A cluster autoscaler: node groups that grow and shrink, and the flags by which they do."
    ),
    "users": Key(ListOf(user_keys.USER), "People and programs as whom events may be done, with their roles."),
    "extenders": Key(
        ListOf(cluster_keys.EXTENDER), "Extenders of schedulers: processes that filter, rank and bind beside them."
    ),
    "apiServers": Key(
        Record(
            {
                "replicas": Key(Whole(1, 100), "More than one: each has its own watch cache."),
                "cacheLag": Key(DURATION, "How far the watch caches are behind."),
                "eventTtl": Key(POSITIVE_DURATION, "How long Event objects are kept; 1h by default."),
                "mostEvents": Key(
                    Whole(0, 100_000_000),
                    "How many Event objects are kept, the newest; 0, the default: any number.",
                ),
                "maxRequestsInFlight": Key(
                    Whole(1, 100_000),
                    "With maxMutatingRequestsInFlight: how many requests one serves at a time, 400 and 200 by default.",
                ),
                "maxMutatingRequestsInFlight": Key(Whole(0, 100_000), "See maxRequestsInFlight."),
                "queueLengthLimit": Key(
                    Whole(0, 100_000), "How many requests of one client may wait; more get 429 and try again later."
                ),
                "bindCheck": Key(
                    Choice(bind_checks.KINDS),
                    "What a binding is refused for beside Kubernetes' reasons: none; capacity: the pod does not fit; "
                    "generation: the node has had other bindings than the binding says.",
                ),
                "authorization": Key(
                    ListOf(Choice(authorizers.MODES), 1),
                    "Authorization modes; Node and RBAC by default, as with kubeadm.",
                ),
                "disableAdmissionPlugins": Key(
                    ListOf(Choice(admission.DEFAULT_ON)), "Plugins that are on by default, as for kube-apiserver."
                ),
                "enableAdmissionPlugins": Key(
                    ListOf(Choice(admission.DEFAULT_OFF)), "Plugins that are off by default, as for kube-apiserver."
                ),
                "limitedResources": Key(
                    ListOf(quota_keys.LIMITED_RESOURCE), "What nobody may use without a ResourceQuota that covers it."
                ),
            }
        ),
        "The API servers.",
    ),
    "store": Key(
        Record(
            {
                "fsync": Key(Choice(("batch", "always", "none")), "When writes are safe on disk."),
                "segmentBytes": Key(Whole(1024), "Size at which the journal begins a new file; 4 MiB by default."),
                "etcd": Key(Text(), "A real etcd instead, host:port."),
            }
        ),
        "The store.",
    ),
    "eventObjects": Key(
        Choice(("notable", "all", "none")), "Which Event objects are written; notable: not one for every binding."
    ),
    "podStatuses": Key(
        Choice(("exact", "sparing")),
        "exact: kubelets write every status of a pod; sparing: no more than somebody acts on.",
    ),
    "heartbeats": Key(
        Choice(("standing", "exact")),
        "exact: every heartbeat of a kubelet is a message; standing: not where nobody can tell.",
    ),
    "controllers": Key(controller_keys.SHAPE, "Which controllers run; by default those that the scenario needs."),
    "images": Key(MapOf(QUANTITY), "How large images are, by name."),
    "timing": Key(
        timing_keys.Timing(), "How long things take: a preset, or times, each a value or a distribution, or both."
    ),
    "storage": Key(storage_keys.STORAGE, "How the CSI drivers behave that create, attach and mount volumes."),
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
    "manifests": Key(
        ListOf(Free()),
        "Kubernetes objects, created in this order before the clock starts; {file: path} for those of a file, a folder "
        "or a pattern.",
    ),
    "unsimulated": Key(
        WordOr(Choice(("refuse", "ignore")), ListOf(Text())),
        "Objects of kinds that kemu does not simulate: refused, by default, or left out; or the kinds to leave out.",
    ),
    "events": Key(ListOf(timeline_keys.EVENT), "Things that happen at a time."),
    "workloads": Key(ListOf(workload_keys.WORKLOAD), "Streams of pods."),
    "lives": Key(workload_keys.LIVES, "How pods live that do not say, also those that controllers make."),
    "chaos": Key(ListOf(fault_keys.CHAOS), "Faults."),
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
                "watches": Key(
                    Record(
                        {
                            "maxDelay": Key(
                                POSITIVE_DURATION,
                                "No watch may deliver a change later; the time of faults that hold events back is not "
                                "counted. 30s by default.",
                            ),
                        }
                    ),
                    "Limits of the check watch-has-no-gaps.",
                ),
                "disable": Key(ListOf(Text()), "Ids of checks that do not count."),
            }
        ),
        "What is always looked at.",
    ),
    "bugs": Key(
        ListOf(Choice(variants.names(variants.BUG))), "Bugs that Kubernetes has fixed since, by issue: see docs/museum."
    ),
    "fixes": Key(ListOf(Choice(variants.names(variants.FIX))), "Bugs of today's Kubernetes that are not to be there."),
    "holds": Key(ListOf(hold_keys.HOLD), "Messages that are kept back: what kemu explore found."),
    "ablate": Key(
        ListOf(Choice(variants.names(variants.ABLATION))), "Safeguards that the components of the cluster lack."
    ),
    "matrix": Key(matrix_keys.MATRIX, "Values for paths below spec, or named parameters; all combinations run."),
    "until": Key(expectation_keys.EXPECTATION, "The run ends when this holds."),
    "expect": Key(ListOf(expectation_keys.EXPECTATION), "What the run must show."),
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
