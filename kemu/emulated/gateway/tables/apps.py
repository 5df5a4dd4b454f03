"""The group apps."""

from __future__ import annotations

from kemu.emulated.gateway.tables import texts
from kemu.emulated.gateway.tables.printers import AGE, CONTAINERS, IMAGES, NAME, SELECTOR, Cell, Column, Printer
from kemu.emulated.objects import selectors
from kemu.messages.k8s import apps_v1_pb2


def _deployment(deployment: apps_v1_pb2.Deployment, now_ns: int) -> list[Cell]:
    spec, status = deployment.spec, deployment.status
    try:
        selector = texts.selector_text(spec, "selector")
    except selectors.SelectorError:
        selector = "<invalid>"
    return [
        deployment.metadata.name,
        f"{status.readyReplicas}/{spec.replicas}",
        status.updatedReplicas,
        status.availableReplicas,
        texts.age(deployment, now_ns),
        *texts.containers(spec.template.spec),
        selector,
    ]


def _replica_set(replica_set: apps_v1_pb2.ReplicaSet, now_ns: int) -> list[Cell]:
    spec, status = replica_set.spec, replica_set.status
    return [
        replica_set.metadata.name,
        spec.replicas,
        status.replicas,
        status.readyReplicas,
        texts.age(replica_set, now_ns),
        *texts.containers(spec.template.spec),
        texts.selector(spec),
    ]


def _stateful_set(stateful_set: apps_v1_pb2.StatefulSet, now_ns: int) -> list[Cell]:
    spec = stateful_set.spec
    return [
        stateful_set.metadata.name,
        f"{stateful_set.status.readyReplicas}/{spec.replicas}",
        texts.age(stateful_set, now_ns),
        *texts.containers(spec.template.spec),
    ]


def _daemon_set(daemon_set: apps_v1_pb2.DaemonSet, now_ns: int) -> list[Cell]:
    spec, status = daemon_set.spec, daemon_set.status
    return [
        daemon_set.metadata.name,
        status.desiredNumberScheduled,
        status.currentNumberScheduled,
        status.numberReady,
        status.updatedNumberScheduled,
        status.numberAvailable,
        texts.labels(spec.template.spec.nodeSelector),
        texts.age(daemon_set, now_ns),
        *texts.containers(spec.template.spec),
        texts.selector(spec),
    ]


def _revision(revision: apps_v1_pb2.ControllerRevision, now_ns: int) -> list[Cell]:
    owner = next((one for one in revision.metadata.ownerReferences if one.controller), None)
    controller = texts.NONE
    if owner is not None:
        group = owner.apiVersion.rpartition("/")[0]
        kind = f"{owner.kind}.{group}" if group else owner.kind
        controller = f"{kind.lower()}/{owner.name}"
    return [revision.metadata.name, controller, revision.revision, texts.age(revision, now_ns)]


PRINTERS = {
    apps_v1_pb2.Deployment: Printer(
        (
            NAME,
            Column("Ready", "Number of pods that are ready, of those that there should be."),
            Column("Up-to-date", "Number of pods of the newest template."),
            Column("Available", "Number of pods that have been ready for long enough."),
            AGE,
            CONTAINERS,
            IMAGES,
            SELECTOR,
        ),
        _deployment,
    ),
    apps_v1_pb2.ReplicaSet: Printer(
        (
            NAME,
            Column("Desired", "Number of pods that there should be.", "integer"),
            Column("Current", "Number of pods that there are.", "integer"),
            Column("Ready", "Number of pods that are ready.", "integer"),
            AGE,
            CONTAINERS,
            IMAGES,
            SELECTOR,
        ),
        _replica_set,
    ),
    apps_v1_pb2.StatefulSet: Printer(
        (
            NAME,
            Column("Ready", "Number of pods that are ready, of those that there should be."),
            AGE,
            CONTAINERS,
            IMAGES,
        ),
        _stateful_set,
    ),
    apps_v1_pb2.DaemonSet: Printer(
        (
            NAME,
            Column("Desired", "Number of nodes that should run a pod.", "integer"),
            Column("Current", "Number of them that have one.", "integer"),
            Column("Ready", "Number of them whose pod is ready.", "integer"),
            Column("Up-to-date", "Number of them whose pod has the newest template.", "integer"),
            Column("Available", "Number of them whose pod has been ready for long enough.", "integer"),
            Column("Node Selector", "Labels of nodes that the template asks for."),
            AGE,
            CONTAINERS,
            IMAGES,
            SELECTOR,
        ),
        _daemon_set,
    ),
    apps_v1_pb2.ControllerRevision: Printer(
        (
            NAME,
            Column("Controller", "Object that the revision belongs to."),
            Column("Revision", "Number of the revision."),
            AGE,
        ),
        _revision,
    ),
}
