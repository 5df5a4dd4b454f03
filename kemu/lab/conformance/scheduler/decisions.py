"""Recorded decisions of the scheduler, made again by :meth:`kemu.emulated.scheduler.cycle.decisions.Decider.decide`.

A case holds nodes, pods, a pending pod and what else a decision reads, as Kubernetes JSON. One attempt is made at it:
``decide``, and where that finds no node, DefaultPreemption. The answer is what came of it (node, failure message,
candidates for preemption) and why: the status of each node, the score of each plugin.
:mod:`kemu.lab.conformance.scheduler.judgements` compares it with the record.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from kemu.emulated.objects import meta
from kemu.emulated.objects.conversion import convert
from kemu.emulated.scheduler.cache.cluster import Cluster
from kemu.emulated.scheduler.cache.columns import IntArray
from kemu.emulated.scheduler.cache.nodes import NodeInfo
from kemu.emulated.scheduler.cache.pods import PodInfo
from kemu.emulated.scheduler.configuration import configurations
from kemu.emulated.scheduler.cycle.decisions import Decider, ScheduleResult
from kemu.emulated.scheduler.cycle.filtering import Filtering
from kemu.emulated.scheduler.cycle.profiles import Profile
from kemu.emulated.scheduler.framework.interfaces import Handle
from kemu.emulated.scheduler.framework.results import Candidate, PostFilterResult
from kemu.emulated.scheduler.framework.statuses import ERROR, UNSCHEDULABLE, Status
from kemu.emulated.scheduler.plugins import in_tree
from kemu.emulated.scheduler.plugins.default_preemption import DefaultPreemption
from kemu.emulated.scheduler.preemption import candidates as preemption
from kemu.emulated.scheduler.preemption.candidates import Preemptor
from kemu.lab.conformance import storages
from kemu.messages.k8s import apps_v1_pb2, core_v1_pb2, policy_v1_pb2
from kemu.runtime import random_streams

_OWNERS = {
    "replicationControllers": ("ReplicationController", core_v1_pb2.ReplicationController),
    "replicaSets": ("ReplicaSet", apps_v1_pb2.ReplicaSet),
    "statefulSets": ("StatefulSet", apps_v1_pb2.StatefulSet),
}
_CRITERIA = ("pdbViolations", "highestPriority", "sumPriorities", "numVictims", "latestStart")
"""What the places of ``Candidate.preference`` stand for."""


class Asked(Decider):
    """A decider that shows which totals it compared."""

    compared: tuple[IntArray, IntArray] | None = None
    """Rows and their totals, which are right up to a constant. None: there was nothing to compare."""
    own: IntArray | None = None
    """The totals of plugins alone, up to the same constant. None: the constant is 0."""
    made: ScheduleResult | None = None
    """The last decision."""
    came: PostFilterResult | None = None
    """What PostFilter said of it."""

    def choose(self, decision: ScheduleResult, rows: IntArray, totals: IntArray, *, by_lot: bool = False) -> None:
        self.compared = rows, totals
        super().choose(decision, rows, totals, by_lot=by_lot)

    def totals(self, filtering: Filtering, rows: IntArray) -> IntArray:
        self.own = super().totals(filtering, rows)
        return self.own

    def totals_of(self, filtering: Filtering, rows: IntArray, nodes: Sequence[NodeInfo]) -> IntArray:
        self.own = None
        return super().totals_of(filtering, rows, nodes)


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
    storages.fill(cluster.storage, case)
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


def decider_of(case: Mapping[str, Any], cluster: Cluster) -> Asked:
    """The scheduler of the case: its profile; all nodes are looked at."""
    rng = random_streams.random_stream(0, "case")
    configuration = configurations.profile_of(case.get("profile") or {}, "profile")
    handle = Handle(cluster, rng)
    handle.latest = lambda pod: pod.pod
    return Asked(Profile(configuration, handle, in_tree.REGISTRY), cluster, rng, percentage_of_nodes=100)


def decision(decider: Asked, pod: PodInfo) -> dict[str, Any]:
    """One attempt at a pending pod, and all that is to be said about it."""
    begin(decider, pod)
    return told(decider, decider.decide(pod))


def begin(decider: Asked, pod: PodInfo) -> None:
    """Before an attempt."""
    if pod.pod.status.nominatedNodeName:
        decider.cluster.nominator.nominate(pod, pod.pod.status.nominatedNodeName)
    decider.compared = None


def told(decider: Asked, made: ScheduleResult) -> dict[str, Any]:
    """All that is to be said about an attempt, before anything else is decided."""
    cluster = decider.cluster
    decider.made, decider.came = made, None
    if made.error is not None:
        return {"error": made.error.message, "feasible": [], "node": ""}
    filtering = made.filtering
    assert filtering is not None, "a case without nodes"
    nominated = filtering.cycle.pod.pod.status.nominatedNodeName
    names = [node.name for node in cluster.rows]
    statuses = {name: filtering.status(row) for row, name in enumerate(names)}
    feasible = [row for row, status in enumerate(statuses.values()) if status is None]
    result: dict[str, Any] = {
        "feasible": sorted(names[row] for row in feasible),
        "rejected": {name: _status(status) for name, status in sorted(statuses.items()) if status is not None},
        "node": made.node,
    }
    _add_prefilter(result, filtering)
    if filtering.rejection is None and nominated in statuses:
        result["nominatedNodeFits"] = statuses[nominated] is None
    if feasible:
        _add_scores(result, decider, filtering, np.array(feasible), names)
    if not made.node:
        result["message"] = filtering.message()
        _add_preemption(result, filtering, decider)
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


def _add_scores(result: dict[str, Any], decider: Asked, filtering: Filtering, rows: IntArray, names: list[str]) -> None:
    """The score of each plugin, for explanation; totals and the best nodes are those that the attempt has compared."""
    compared = None
    if decider.compared is not None:
        # In the order of the search, which need not begin at the first row.
        rows, compared = decider.compared
    scores = decider.scores(filtering, rows)
    totals = sum(scores.values(), np.zeros(len(rows), dtype=np.int64))
    if compared is not None:
        totals = compared if decider.own is None else compared + (totals[0] - decider.own[0])
    result["scores"] = {
        names[row]: {plugin: int(scores[plugin][place]) for plugin in sorted(scores)}
        for place, row in enumerate(rows.tolist())
    }
    result["totals"] = {names[row]: int(totals[place]) for place, row in enumerate(rows.tolist())}
    result["best"] = sorted(names[row] for row in rows[totals == totals.max()].tolist())


def _add_preemption(result: dict[str, Any], filtering: Filtering, decider: Asked) -> None:
    profile = decider.profile
    plugin = next((one for one in profile.post_filters if isinstance(one, DefaultPreemption)), None)
    if plugin is None:
        return
    preemptor, pod = plugin.preemptor, filtering.cycle.pod
    came = decider.came = profile.post_filter(filtering)
    result["fullMessage"] = f"{result['message']} {came.message}".rstrip()
    tried = preemptor.preempt(filtering, pod.pod.status.nominatedNodeName)
    # After a rejection in PreFilter the phase ends with an error; what preemption would have said is recorded as well.
    chosen = came.candidate if filtering.rejection is None else tried.candidate
    found: dict[str, Any] = {"chosen": "" if chosen is None else chosen.node, "postFilterMessage": came.message}
    found["postFilterStatus"] = "Success" if came.node else ERROR if came.failed else UNSCHEDULABLE
    result["preemption"] = found
    found["eligible"] = tried.candidate is not None or tried.clears_nomination
    if not found["eligible"]:
        found["reason"] = tried.message
        return
    potential = preemptor.potential_rows(filtering)
    found["potentialNodes"] = sorted(preemptor.cluster.rows[row].name for row in potential)
    candidates = preemptor.candidates if tried.candidate is not None else []
    found["candidates"] = {
        one.node: {"victims": preemption.names(one.victims), "pdbViolations": one.violations} for one in candidates
    }
    found["notCandidates"] = _not_candidates(preemptor, filtering, potential)
    if candidates:
        best = preemptor.best(candidates)
        found["chosenAnyOf"] = sorted(one.node for one in best)
        found["decidedBy"] = _decided_by(candidates)


def _not_candidates(preemptor: Preemptor, filtering: Filtering, potential: IntArray) -> dict[str, Any]:
    """Why the dry run fails on the other nodes, of which ``preempt`` only counts the reasons."""
    _, failures = preemptor.dry_runs(filtering, potential, 0, len(potential) + 1)
    return {name: _status(status) for name, status in sorted(failures.items())}


def _status(status: Status) -> dict[str, Any]:
    return {"plugin": status.plugin, "reasons": list(status.reasons), "code": status.code}


def _decided_by(candidates: list[Candidate]) -> str:
    """The criterion by which one candidate was left."""
    left = candidates
    if len(left) == 1:
        return "onlyCandidate"
    for place, criterion in enumerate(_CRITERIA):
        lowest = min(one.preference[place] for one in left)
        left = [one for one in left if one.preference[place] == lowest]
        if len(left) == 1:
            return criterion
    return "tie"
