"""A recorded question to the scheduler, answered: the form of the conformance cases.

A case holds nodes, pods, a pending pod and the like as Kubernetes JSON; the answer has the keys that recorded answers
of the real kube-scheduler have (feasible nodes, reasons, scores, preemption). The code that decides is the production
code; only here all nodes are scored and all candidates tried.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from kemu.k8s import apps_v1_pb2, core_v1_pb2, policy_v1_pb2
from kemu.objects import meta
from kemu.objects.conversion import convert
from kemu.runtime import streams
from kemu.scheduler.cache.cluster import Cluster
from kemu.scheduler.cache.pods import PodInfo
from kemu.scheduler.configuration import configurations
from kemu.scheduler.cycle.decisions import Decider, Filtering
from kemu.scheduler.cycle.profiles import Profile
from kemu.scheduler.framework.interfaces import Handle
from kemu.scheduler.framework.statuses import ERROR, UNSCHEDULABLE
from kemu.scheduler.plugins.default_preemption import DefaultPreemption
from kemu.scheduler.preemption import candidates as preemption
from kemu.scheduler.preemption.candidates import Candidate

_OWNERS = {
    "replicationControllers": ("ReplicationController", core_v1_pb2.ReplicationController),
    "replicaSets": ("ReplicaSet", apps_v1_pb2.ReplicaSet),
    "statefulSets": ("StatefulSet", apps_v1_pb2.StatefulSet),
}
NO_CLAIMS = "no new claims to deallocate, preemption: "
"""What the PostFilter phase of a default profile says before the word of DefaultPreemption."""


def cluster_of(case: Mapping[str, Any]) -> Cluster:
    """The state of the case, without the pending pod."""
    cluster = Cluster()
    for node in case.get("nodes", ()):
        cluster.set_node(convert.from_json(core_v1_pb2.Node, node))
    for data in case.get("namespaces", ()):
        namespace = convert.from_json(core_v1_pb2.Namespace, data)
        cluster.set_namespace(namespace.metadata.name, namespace.metadata.labels)
    for data in case.get("pdbs", ()):
        budget = convert.from_json(policy_v1_pb2.PodDisruptionBudget, data)
        cluster.set_budget(meta.namespaced_name(budget), budget)
    for data in case.get("services", ()):
        service = convert.from_json(core_v1_pb2.Service, data)
        cluster.set_service(meta.namespaced_name(service), service)
    for key, (kind, message) in _OWNERS.items():
        for data in case.get(key, ()):
            owner: Any = convert.from_json(message, data)
            cluster.set_owner(kind, owner.metadata.namespace, owner.metadata.name, owner)
    for data in case.get("pods", ()):
        pod = convert.from_json(core_v1_pb2.Pod, data)
        cluster.add_pod(cluster.pod(pod), pod.spec.nodeName)
    for data in case.get("nominated", ()):
        waiting = cluster.pending(convert.from_json(core_v1_pb2.Pod, data))
        cluster.nominator.nominate(waiting, waiting.pod.status.nominatedNodeName)
    return cluster


def answer(case: Mapping[str, Any]) -> dict[str, Any]:
    """Answer a recorded case. Raises ConfigurationError or ConversionError for a case that makes no sense."""
    cluster = cluster_of(case)
    pod = cluster.pending(convert.from_json(core_v1_pb2.Pod, case["pod"]))
    return {"id": case.get("id", ""), **decision(decider_of(case, cluster), pod)}


def decider_of(case: Mapping[str, Any], cluster: Cluster) -> Decider:
    """The scheduler of the case: its profile, all nodes looked at."""
    rng = streams.random_stream(0, "case")
    configuration = configurations.profile_of(case.get("profile") or {}, "profile")
    return Decider(Profile(configuration, Handle(cluster, rng)), cluster, rng, percentage_of_nodes=100)


def decision(decider: Decider, pod: PodInfo) -> dict[str, Any]:
    """All that is to be said about a pending pod and the cluster as it is now."""
    cluster = decider.cluster
    nominated = pod.pod.status.nominatedNodeName
    if nominated:
        cluster.nominator.nominate(pod, nominated)
    cluster.settle()
    filtering = decider.filter(pod)
    names = [node.name for node in cluster.rows]
    rows = np.zeros(0, dtype=np.int64)
    if filtering.rejection is None:
        rows = np.flatnonzero(filtering.verdicts[: len(names)] == 0)
    result: dict[str, Any] = {"feasible": sorted(names[row] for row in rows.tolist())}
    rejected = {}
    for row, name in enumerate(names):
        status = filtering.status(row)
        if status is not None:
            rejected[name] = {"plugin": status.plugin, "reasons": sorted(status.reasons), "code": status.code}
    result["rejected"] = {name: rejected[name] for name in sorted(rejected)}
    _add_prefilter(result, filtering)
    if filtering.rejection is None and nominated in cluster.nodes and cluster.nodes[nominated].row >= 0:
        result["nominatedNodeFits"] = not filtering.verdicts[cluster.nodes[nominated].row]
    if len(rows):
        scores = decider.scores(filtering, rows)
        totals = sum(scores.values(), np.zeros(len(rows), dtype=np.int64))
        result["scores"] = {
            names[row]: {plugin: int(scores[plugin][place]) for plugin in sorted(scores)}
            for place, row in enumerate(rows.tolist())
        }
        result["totals"] = {names[row]: int(totals[place]) for place, row in enumerate(rows.tolist())}
        used = decider.totals(filtering, rows)
        result["best"] = sorted(names[row] for row in rows[used == used.max()].tolist())
        if "nominatedNodeFits" in result:
            result["selectable"] = [nominated] if result["nominatedNodeFits"] else result["best"]
    else:
        result["message"] = filtering.message()
        _add_preemption(result, filtering, decider.profile)
    return result


def _add_prefilter(result: dict[str, Any], filtering: Filtering) -> None:
    filters = filtering.evaluation.filters
    if filtering.rejection is not None:
        status = filtering.rejection
        result["prefilter"] = {
            "rejectedAll": True,
            "plugin": status.plugin,
            "reason": status.message,
            "code": status.code,
        }
    elif filters.narrowed is not None:
        result["prefilter"] = {
            "rejectedAll": False,
            "narrowedTo": sorted(filters.narrowed),
            "narrowedBy": [filters.narrowed_by],
        }


def _add_preemption(result: dict[str, Any], filtering: Filtering, profile: Profile) -> None:
    plugin = next((one for one in profile.post_filters if isinstance(one, DefaultPreemption)), None)
    if plugin is None:
        return
    preemptor = plugin.preemptor
    pod: PodInfo = filtering.cycle.pod
    found: dict[str, Any] = {}
    result["preemption"] = found
    reason = preemptor.not_eligible(filtering, pod)
    found["eligible"] = not reason
    if reason:
        found["reason"] = reason
    potential = [] if reason else preemptor.potential_rows(filtering)
    found["potentialNodes"] = sorted(preemptor.cluster.rows[row].name for row in potential)
    found["candidates"] = {}
    text, candidates = reason, list[Candidate]()
    if not reason:
        candidates, failures = preemptor.dry_runs(filtering, potential, 0, len(potential) + 1)
        found["candidates"] = {
            one.node: {"victims": preemption.names(one.victims), "pdbViolations": one.violations}
            for one in sorted(candidates, key=lambda one: one.node)
        }
        found["notCandidates"] = {
            name: {"reasons": sorted(status.reasons), "code": status.code} for name, status in sorted(failures.items())
        }
        text = preemptor.failure(filtering, failures)
    best = preemptor.best(candidates) if candidates else []
    found["chosen"] = best[0].node if len(best) == 1 else None
    if best:
        found["chosenAnyOf"] = sorted(candidate.node for candidate in best)
    if filtering.rejection is not None:
        found["postFilterStatus"], found["postFilterMessage"] = ERROR, "not found"
    elif best:
        found["postFilterStatus"], found["postFilterMessage"] = "Success", ""
    else:
        found["postFilterStatus"], found["postFilterMessage"] = UNSCHEDULABLE, NO_CLAIMS + text
    message = result["message"]
    result["fullMessage"] = f"{message} {found['postFilterMessage']}".rstrip()
