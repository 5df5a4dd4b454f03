"""Compares the cache with one built anew from the store's objects.

For long runs (:mod:`kemu.lab.bench.schedulers.soaks`): after many events the sums, columns, counts, terms, nominations
and kept evaluations of a scheduler are compared with those of a fresh :class:`Cluster`. Call it when nothing is under
way: no attempt, no binding, and the watches have shown everything.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np

from kemu.emulated.scheduler.cache.cluster import Cluster
from kemu.emulated.scheduler.cache.counts import matches
from kemu.emulated.scheduler.cache.nodes import NodeInfo
from kemu.emulated.scheduler.cache.pods import PodInfo
from kemu.emulated.scheduler.cycle.evaluations import Evaluation
from kemu.emulated.scheduler.framework.interfaces import Cycle
from kemu.emulated.scheduler.loop import Engine
from kemu.messages.k8s import core_v1_pb2


def differences(engine: Engine, nodes: Iterable[core_v1_pb2.Node], pods: Iterable[core_v1_pb2.Pod]) -> list[str]:
    """All differences, as text. ``nodes`` and ``pods``: the store's objects, without pods that have ended."""
    cluster = engine.cluster
    cluster.settle()
    pods = list(pods)
    fresh = _rebuilt(cluster, {node.metadata.name: node for node in nodes}, pods)
    found = [
        *_compare_objects(cluster, fresh),
        *_compare_nodes(cluster, fresh),
        *_compare_columns(cluster, fresh),
        *_compare_counts(cluster, fresh),
        *_compare_waiting(engine, pods),
        *_compare_evaluations(engine),
    ]
    return list(found)


def sizes(engine: Engine) -> dict[str, int]:
    """How much is kept, by name: sizes that must not grow with the number of pods created so far."""
    cluster = engine.cluster
    found = {
        "templates": len(cluster.templates._by_key),
        "resources": len(cluster.names.names),
        "indexed_pods": cluster.counts.indexed_pods,
        "indexed_services": len(cluster._services),
        "label_columns": len(cluster._labels),
        "label_values": sum(len(column.values) for column in cluster._labels.values()),
        "taint_sets": len(cluster.taint_sets),
        "matching_columns": len(cluster.counts._matching),
        "term_columns": sum(len(owners) for owners in cluster.counts.owners.values()),
        "nodes": len(cluster.nodes),
        "pods": len(cluster.pods),
        "priorities": len(cluster.priorities),
        "nominated_lists": len(cluster.nominator.nodes),
        "change_logs": len(cluster.pod_changes.rows) + len(cluster.node_changes.rows),
        "queue": len(engine.queue.pods),
        "queue_heaps": len(engine.queue._active) + len(engine.queue._backoff) + len(engine.queue._errors),
        "queue_events": len(engine.queue._events),
        "seen_pods": len(engine.pod_feed.pods),
        "preempted_on": len(engine.handle.preempted_on),
        "evaluations": sum(len(decider.evaluations._by_template) for decider in engine.deciders.values()),
    }
    dry_runs = 0
    for profile in engine.profiles.values():
        for plugin in profile.post_filters:
            preemptor = getattr(plugin, "preemptor", None)
            if preemptor is not None:
                dry_runs += sum(len(kept) for kept in preemptor._kept.values())
    found["dry_runs"] = dry_runs
    return found


def _rebuilt(cluster: Cluster, nodes: dict[str, core_v1_pb2.Node], pods: list[core_v1_pb2.Pod]) -> Cluster:
    """A cache built from the objects alone; only the order in which nodes were added comes from the old one."""
    fresh = Cluster()
    fresh.names.names[:] = cluster.names.names
    fresh.names.index.clear()
    fresh.names.index.update(cluster.names.index)
    fresh._widen()
    for members in cluster._zones.values():
        for name in members:
            if name in nodes:
                fresh.set_node(nodes[name])
    for name, node in nodes.items():
        if name not in fresh.nodes:
            fresh.set_node(node)
    for name, labels in cluster.namespaces.items():
        fresh.set_namespace(name, labels)
    for pod in pods:
        if pod.spec.nodeName:
            fresh.see_pod(pod)
    for pod in pods:
        if pod.status.nominatedNodeName and not pod.spec.nodeName:
            fresh.nominator.nominate(fresh.pending(pod), pod.status.nominatedNodeName)
    fresh.settle()
    return fresh


def _differ(what: str, kept: object, wanted: object) -> Iterator[str]:
    if kept != wanted:
        if isinstance(kept, dict) and isinstance(wanted, dict):
            keys = [key for key in {**kept, **wanted} if kept.get(key) != wanted.get(key)]
            yield f"{what}: {len(keys)} differ, as {keys[0]!r}: {kept.get(keys[0])!r}, not {wanted.get(keys[0])!r}"
        else:
            yield f"{what}: {kept!r}, not {wanted!r}"[:500]


def _compare_objects(cluster: Cluster, fresh: Cluster) -> Iterator[str]:
    yield from _differ("order of nodes", [node.name for node in cluster.rows], [node.name for node in fresh.rows])
    yield from _differ("nodes known", sorted(cluster.nodes), sorted(fresh.nodes))
    yield from _differ("pods on nodes", sorted(cluster.pods), sorted(fresh.pods))
    yield from _differ("assumed", sorted(cluster.assumed), [])
    yield from _differ("priorities", cluster.priorities, fresh.priorities)
    yield from _differ("nodes with ports", sorted(cluster.nodes_with_ports), sorted(fresh.nodes_with_ports))
    yield from _differ("cordoned nodes", cluster.unschedulable_nodes, fresh.unschedulable_nodes)
    yield from _differ(
        "images",
        {name: sorted(state.nodes) for name, state in cluster.images.items()},
        {name: sorted(state.nodes) for name, state in fresh.images.items()},
    )
    for uid, pod in cluster.pods.items():
        other = fresh.pods.get(uid)
        if other is not None:
            yield from _differ(f"pod {pod.key}", _of_pod(pod), _of_pod(other))


def _of_pod(pod: PodInfo) -> dict[str, Any]:
    template = pod.template
    return {
        "requests": sorted(pod.requests),
        "non_zero": pod.non_zero,
        "labels": pod.labels,
        "terminating": pod.terminating,
        "priority": pod.priority,
        "start": pod.start_s,
        "node": pod.node_name,
        "ports": sorted(template.host_ports),
        "qos": template.qos,
        "terms": [
            [term.signature for term in terms] for terms in (template.affinity_terms, template.anti_affinity_terms)
        ],
    }


def _compare_nodes(cluster: Cluster, fresh: Cluster) -> Iterator[str]:
    for name, node in cluster.nodes.items():
        other = fresh.nodes.get(name)
        if other is not None:
            yield from _differ(f"node {name}", _of_node(node), _of_node(other))
            yield from _compare_ports(node, other)


def _compare_ports(node: NodeInfo, fresh: NodeInfo) -> Iterator[str]:
    """A port that several pods of the node have may wrongly count as free: see :meth:`NodeInfo.remove`."""
    holders = Counter(port for pod in fresh.pods.values() for port in pod.template.host_ports)
    kept, wanted = (
        sorted((address, *place) for place, addresses in one.ports.items() for address in addresses)
        for one in (node, fresh)
    )
    kept += [port for port in wanted if holders[port] > 1 and port not in kept]
    yield from _differ(f"ports of node {node.name}", sorted(kept), wanted)


def _of_node(node: NodeInfo) -> dict[str, Any]:
    return {
        "row": node.row,
        "labels": node.labels,
        "taints": node.taints,
        "unschedulable": node.unschedulable,
        "allocatable": node.allocatable,
        "allowed_pods": node.allowed_pods,
        "images": node.image_sizes,
        "requested": node.requested,
        "non_zero": (node.non_zero_cpu, node.non_zero_memory),
        "pods": sorted(node.pods),
        "nominated": sorted(pod.uid for pod in node.nominated),
    }


def _compare_columns(cluster: Cluster, fresh: Cluster) -> Iterator[str]:
    rows = len(cluster)
    if rows != len(fresh):
        return
    kept, wanted = cluster.resources(), fresh.resources()
    for name in ("allocatable", "requested", "non_zero", "pods", "allowed_pods"):
        mine, other = getattr(kept, name)[..., :rows], getattr(wanted, name)[..., :rows]
        if not np.array_equal(mine, other):
            yield f"column {name}: differs in rows {np.flatnonzero((mine != other).reshape(-1, rows).any(axis=0))[:5]}"
    taints = [cluster.taint_sets[number] for number in cluster.taint_set_ids[:rows].tolist()]
    yield from _differ("column of taints", taints, [node.taints for node in fresh.rows])
    cordoned = cluster.unschedulable[:rows].tolist()
    yield from _differ("column of cordons", cordoned, [node.unschedulable for node in fresh.rows])
    for key, column in cluster._labels.items():
        values = ["", *column.values]
        mine_values = [values[number] if number else None for number in column.ids[:rows].tolist()]
        yield from _differ(f"column of label {key}", mine_values, [node.labels.get(key) for node in fresh.rows])


def _compare_counts(cluster: Cluster, fresh: Cluster) -> Iterator[str]:
    rows = len(cluster)
    if rows != len(fresh):
        return
    counts = cluster.counts
    for signature, (wanted, column) in counts._matching.items():
        recounted = [sum(matches(wanted, pod) for pod in node.pods.values()) for node in fresh.rows]
        yield from _differ(f"count of {signature!r}", column.column[:rows].tolist(), recounted)
        yield from _differ(f"total of {signature!r}", column.total, sum(recounted))
        if column.column[rows:].any():
            yield f"count of {signature!r}: something stands in rows without a node"
    for kind, owners in counts.owners.items():
        others = fresh.counts.owners[kind]
        yield from _differ(f"terms of {kind}", sorted(map(repr, owners)), sorted(map(repr, others)))
        for key, owner in owners.items():
            other = others.get(key)
            if other is not None:
                yield from _differ(f"owners of {key!r}", owner.by_row(rows).tolist(), other.by_row(rows).tolist())
                yield from _differ(f"total of {key!r}", owner.total, other.total)
    for column in counts.kept():
        for key, (version, label_version, by_domain) in column._domains.items():
            labels = cluster._labels[key]
            if (version, label_version) == (column.version, labels.version):
                again = np.bincount(labels.ids[:rows], weights=column.column[:rows], minlength=labels.size)
                yield from _differ(f"counts by {key}", by_domain.tolist(), again.astype(np.int64).tolist())


def _compare_waiting(engine: Engine, pods: list[core_v1_pb2.Pod]) -> Iterator[str]:
    served = engine.profiles
    waiting = [pod for pod in pods if not pod.spec.nodeName and pod.spec.schedulerName in served]
    yield from _differ("queue", sorted(engine.queue.pods), sorted(pod.metadata.uid for pod in waiting))
    yield from _differ("pods seen", sorted(engine.pod_feed.pods), sorted(pod.metadata.uid for pod in pods))
    nominated = {pod.metadata.uid: pod.status.nominatedNodeName for pod in waiting if pod.status.nominatedNodeName}
    kept = {uid: pod.nominated for uid, pod in engine.cluster.nominator._pods.items()}
    yield from _differ("nominations", kept, nominated)
    yield from _differ("pods in their binding", sorted(engine.bindings.under_way), [])
    yield from _differ("pods in flight", sorted(engine.queue._in_flight), [])


def _compare_evaluations(engine: Engine) -> Iterator[str]:
    """The kept evaluation of each template, against one computed anew on the same cache."""
    cluster = engine.cluster
    rows = len(cluster)
    for decider in engine.deciders.values():
        for number, kept in decider.evaluations._by_template.items():
            pod = core_v1_pb2.Pod()
            pod.metadata.namespace = kept.template.namespace
            pod.spec.CopyFrom(kept.template.spec)
            anew = Evaluation(decider.line_up, Cycle(PodInfo(pod, kept.template), cluster))
            kept.refresh(cluster)
            anew.refresh(cluster)
            what = f"evaluation of template {number}"
            yield from _differ(f"{what}: tally", kept.tally, anew.tally)
            for name in ("object_verdicts", "verdicts", "feasible"):
                mine, other = getattr(kept, name)[:rows], getattr(anew, name)[:rows]
                if not np.array_equal(mine, other):
                    yield f"{what}: {name} differ in rows {np.flatnonzero(mine != other)[:5]}"
            for mine, other in zip(kept.raw, anew.raw, strict=True):
                zero = np.zeros(rows, dtype=np.int64)
                if not np.array_equal(zero if mine is None else mine[:rows], zero if other is None else other[:rows]):
                    yield f"{what}: raw scores differ"
            feasible = np.flatnonzero(anew.feasible[:rows])
            if kept._fixed is not None and not np.array_equal(
                kept._fixed[feasible], anew._sum_of_scores(cluster, None)[feasible]
            ):
                yield f"{what}: scores differ"
