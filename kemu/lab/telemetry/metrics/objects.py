"""What kube-state-metrics tells of the objects that there are, for the kinds that alerts ask about most."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from kemu.emulated.objects import meta, resources
from kemu.emulated.objects.amounts import quantities
from kemu.messages.k8s import apps_v1_pb2, core_v1_pb2, policy_v1_pb2
from kemu.runtime.metrics.families import FAMILIES
from kemu.runtime.metrics.values import Labels

Row = tuple[str, Labels, float]
"""Family, labels, value."""

_PHASES = ("Pending", "Succeeded", "Failed", "Unknown", "Running")
_STATUSES = ("true", "false", "unknown")
_UNITS = {"cpu": "core", "memory": "byte", "ephemeral-storage": "byte", "storage": "byte"}
_PREFIX = resources.REGISTRY.decode()


def _row(name: str, value: float, /, **labels: str) -> Row:
    return name, tuple(labels[label] for label in FAMILIES[name].labels), value


def _amounts(amounts: Mapping[str, Any]) -> Iterable[tuple[str, str, float]]:
    """Resource, unit, amount."""
    for resource in sorted(amounts):
        # Names of extended resources with their signs replaced, as kube-state-metrics does.
        name = "".join(sign if sign.isalnum() or sign == "_" else "_" for sign in resource)
        unit = "byte" if resource.startswith("hugepages-") else _UNITS.get(resource, "integer")
        yield name, unit, quantities.parse(amounts[resource].string).nano / quantities.NANO


def _node(node: core_v1_pb2.Node) -> Iterable[Row]:
    name = node.metadata.name
    for condition in node.status.conditions:
        for status in _STATUSES:
            is_so = float(condition.status.lower() == status)
            yield _row("kube_node_status_condition", is_so, node=name, condition=condition.type, status=status)
    yield _row("kube_node_spec_unschedulable", float(node.spec.unschedulable), node=name)
    for taint in node.spec.taints:
        yield _row("kube_node_spec_taint", 1, node=name, key=taint.key, value=taint.value, effect=taint.effect)
    for family, amounts in (("allocatable", node.status.allocatable), ("capacity", node.status.capacity)):
        for resource, unit, amount in _amounts(amounts):
            yield _row(f"kube_node_status_{family}", amount, node=name, resource=resource, unit=unit)


def _pod(pod: core_v1_pb2.Pod) -> Iterable[Row]:
    metadata, spec, status = pod.metadata, pod.spec, pod.status
    whose = {"namespace": metadata.namespace, "pod": metadata.name, "uid": metadata.uid}
    owner = meta.controller_of(pod)
    yield _row(
        "kube_pod_info",
        1,
        **whose,
        host_ip=status.hostIP,
        pod_ip=status.podIP,
        node=spec.nodeName,
        created_by_kind=owner.kind if owner is not None else "",
        created_by_name=owner.name if owner is not None else "",
        priority_class=spec.priorityClassName,
        host_network=str(spec.hostNetwork).lower(),
    )
    for phase in _PHASES:
        yield _row("kube_pod_status_phase", float((status.phase or "Pending") == phase), **whose, phase=phase)
    for condition in status.conditions:
        if condition.type == "Ready":
            for one in _STATUSES:
                is_so = float(condition.status.lower() == one)
                yield _row("kube_pod_status_ready", is_so, **whose, condition=one)
        elif condition.type == "PodScheduled" and condition.reason == "Unschedulable":
            yield _row("kube_pod_status_unschedulable", 1, **whose)
    for running in status.containerStatuses:
        which = {**whose, "container": running.name}
        yield _row("kube_pod_container_status_restarts_total", running.restartCount, **which)
        if running.state.HasField("waiting") and running.state.waiting.reason:
            yield _row("kube_pod_container_status_waiting_reason", 1, **which, reason=running.state.waiting.reason)
    for container in spec.containers:
        for resource, unit, amount in _amounts(container.resources.requests):
            yield _row(
                "kube_pod_container_resource_requests",
                amount,
                **whose,
                container=container.name,
                node=spec.nodeName,
                resource=resource,
                unit=unit,
            )


def _deployment(found: apps_v1_pb2.Deployment) -> Iterable[Row]:
    which = {"namespace": found.metadata.namespace, "deployment": found.metadata.name}
    status = found.status
    for name, value in (
        ("spec_replicas", found.spec.replicas),
        ("status_replicas", status.replicas),
        ("status_replicas_available", status.availableReplicas),
        ("status_replicas_unavailable", status.unavailableReplicas),
        ("status_replicas_updated", status.updatedReplicas),
        ("metadata_generation", found.metadata.generation),
        ("status_observed_generation", status.observedGeneration),
    ):
        yield _row(f"kube_deployment_{name}", value, **which)


def _replica_set(found: apps_v1_pb2.ReplicaSet) -> Iterable[Row]:
    which = {"namespace": found.metadata.namespace, "replicaset": found.metadata.name}
    yield _row("kube_replicaset_spec_replicas", found.spec.replicas, **which)
    yield _row("kube_replicaset_status_ready_replicas", found.status.readyReplicas, **which)


def _stateful_set(found: apps_v1_pb2.StatefulSet) -> Iterable[Row]:
    which = {"namespace": found.metadata.namespace, "statefulset": found.metadata.name}
    yield _row("kube_statefulset_replicas", found.spec.replicas, **which)
    yield _row("kube_statefulset_status_replicas_ready", found.status.readyReplicas, **which)


def _daemon_set(found: apps_v1_pb2.DaemonSet) -> Iterable[Row]:
    which = {"namespace": found.metadata.namespace, "daemonset": found.metadata.name}
    yield _row("kube_daemonset_status_desired_number_scheduled", found.status.desiredNumberScheduled, **which)
    yield _row("kube_daemonset_status_number_ready", found.status.numberReady, **which)


def _budget(found: policy_v1_pb2.PodDisruptionBudget) -> Iterable[Row]:
    which = {"namespace": found.metadata.namespace, "poddisruptionbudget": found.metadata.name}
    for name, value in (
        ("current_healthy", found.status.currentHealthy),
        ("desired_healthy", found.status.desiredHealthy),
        ("pod_disruptions_allowed", found.status.disruptionsAllowed),
    ):
        yield _row(f"kube_poddisruptionbudget_status_{name}", value, **which)


_READERS: dict[str, Callable[[Any], Iterable[Row]]] = {
    "nodes": _node,
    "pods": _pod,
    "deployments": _deployment,
    "replicasets": _replica_set,
    "statefulsets": _stateful_set,
    "daemonsets": _daemon_set,
    "poddisruptionbudgets": _budget,
}


class Objects:
    """The rows of each object, made anew where it has changed."""

    def __init__(self) -> None:
        self._rows: dict[str, tuple[bytes, list[Row]]] = {}

    def values(self, stored: Mapping[str, bytes]) -> dict[str, dict[Labels, float]]:
        """By family. ``stored``: by key, as the store has them."""
        rows: dict[str, tuple[bytes, list[Row]]] = {}
        found: dict[str, dict[Labels, float]] = {}
        for key, value in stored.items():
            plural = key[len(_PREFIX) : key.find("/", len(_PREFIX))]
            read = _READERS.get(plural)
            if read is None:
                continue
            known = self._rows.get(key)
            if known is None or known[0] is not value:
                known = value, list(read(resources.MESSAGES[plural].FromString(value)))
            rows[key] = known
            for name, labels, number in known[1]:
                found.setdefault(name, {})[labels] = number
        self._rows = rows
        return found
