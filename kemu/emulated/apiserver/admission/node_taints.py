"""TaintNodesByCondition: a new node takes no pods before somebody has seen that it is ready."""

from __future__ import annotations

from kemu.emulated.apiserver.admission.base import Plugin
from kemu.emulated.apiserver.admission.tolerations.default_seconds import NOT_READY
from kemu.emulated.objects import resources
from kemu.emulated.objects.resources import Resource
from kemu.messages.k8s import core_v1_pb2

EFFECT = "NoSchedule"

_NODES = resources.BY_PLURAL["nodes"]


class TaintNodesByCondition(Plugin[core_v1_pb2.Node]):
    @classmethod
    def concerns(cls, resource: Resource) -> bool:
        return resource is _NODES

    async def create(self, resource: Resource, obj: core_v1_pb2.Node) -> None:
        if not any(taint.key == NOT_READY and taint.effect == EFFECT for taint in obj.spec.taints):
            obj.spec.taints.add(key=NOT_READY, effect=EFFECT)
