"""What ``kubectl rollout`` does to a workload: restart, undo, pause, resume (``kubectl/pkg/polymorphichelpers``)."""

from __future__ import annotations

from typing import Any

from kemu import errors
from kemu.emulated.client import clients
from kemu.emulated.controllers.workloads.deployments import deployments, revisions
from kemu.emulated.objects import meta, times
from kemu.emulated.objects.templates import documents
from kemu.messages.k8s import apps_v1_pb2
from kemu.messages.k8s.objects import KubernetesObject

RESTARTED_AT = "kubectl.kubernetes.io/restartedAt"


async def perform(
    client: clients.Client, action: str, plural: str, namespace: str, name: str, to_revision: int, now_s: int
) -> None:
    """Read, change, write; once more where another client has written meanwhile. Raises ApiError, also for what
    kubectl would refuse. ``to_revision``: of ``undo``; 0: the one before."""
    while True:
        obj: Any = await client.get(plural, name, namespace)
        if action == "restart":
            _refuse_paused(obj, "restart")
            obj.spec.template.metadata.annotations[RESTARTED_AT] = times.format_time(now_s)
        elif action == "undo":
            _refuse_paused(obj, "rollback")
            await _undo(client, obj, to_revision)
        else:
            if not isinstance(obj, apps_v1_pb2.Deployment):
                raise errors.BadRequest(f'{plural} "{name}": {action}ing is not supported')
            obj.spec.paused = action == "pause"
        try:
            await client.update(obj)
        except errors.Conflict:
            continue
        return


def _refuse_paused(obj: apps_v1_pb2.Deployment, what: str) -> None:
    if isinstance(obj, apps_v1_pb2.Deployment) and obj.spec.paused:
        raise errors.BadRequest(f'deployment "{obj.metadata.name}" is paused: can\'t {what} it (resume it first)')


async def _undo(client: clients.Client, obj: apps_v1_pb2.Deployment, to_revision: int) -> None:
    if isinstance(obj, apps_v1_pb2.Deployment):
        owned = await _owned(client, obj, "replicasets")
        target = _chosen({revisions.revision(one) or 0: one for one in owned}, to_revision)
        deployments.restore(obj, target)
        return
    owned = await _owned(client, obj, "controllerrevisions")
    target = _chosen({one.revision: one for one in owned}, to_revision)
    obj.spec.template.CopyFrom(documents.template_of(target.data.raw))


async def _owned(client: clients.Client, owner: KubernetesObject, plural: str) -> list[Any]:
    listed = (await client.list(plural, owner.metadata.namespace)).items
    references = ((one, meta.controller_of(one)) for one in listed)
    return [one for one, reference in references if reference is not None and reference.uid == owner.metadata.uid]


def _chosen(by_revision: dict[int, apps_v1_pb2.ReplicaSet], wanted: int) -> apps_v1_pb2.ReplicaSet:
    if wanted:
        if wanted not in by_revision:
            raise errors.NotFound(f"unable to find specified revision {wanted} in history")
        return by_revision[wanted]
    if len(by_revision) < 2:
        raise errors.NotFound("no rollout history found")
    return by_revision[sorted(by_revision)[-2]]
