"""DefaultTolerationSeconds: five minutes on a node that is not ready or unreachable, unless the pod says otherwise."""

from __future__ import annotations

from google.protobuf.internal.containers import RepeatedCompositeFieldContainer

from kemu.emulated.apiserver.admission.base import Plugin
from kemu.emulated.objects import resources
from kemu.emulated.objects.resources import Resource
from kemu.messages.k8s import core_v1_pb2

NOT_READY = "node.kubernetes.io/not-ready"
UNREACHABLE = "node.kubernetes.io/unreachable"
TOLERATION_S = 300

PODS = resources.BY_PLURAL["pods"]


class DefaultTolerationSeconds(Plugin[core_v1_pb2.Pod]):
    @classmethod
    def concerns(cls, resource: Resource) -> bool:
        return resource is PODS

    async def create(self, resource: Resource, obj: core_v1_pb2.Pod) -> None:
        add_tolerations(obj.spec.tolerations)

    def update(self, resource: Resource, new: core_v1_pb2.Pod, old: core_v1_pb2.Pod) -> None:
        add_tolerations(new.spec.tolerations)


def add_tolerations(tolerations: RepeatedCompositeFieldContainer[core_v1_pb2.Toleration]) -> None:
    missing = [NOT_READY, UNREACHABLE]
    for toleration in tolerations:
        if toleration.effect in ("NoExecute", ""):
            key = toleration.key
            if not key:
                return
            if key in missing:
                missing.remove(key)
    for key in missing:
        toleration = tolerations.add()
        toleration.key = key
        toleration.operator = "Exists"
        toleration.effect = "NoExecute"
        toleration.tolerationSeconds = TOLERATION_S
