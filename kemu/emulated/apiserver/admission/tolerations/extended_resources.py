"""ExtendedResourceToleration: a pod that requests an extended resource tolerates the taint of that name.

Mirrors ``plugin/pkg/admission/extendedresourcetoleration``. Nodes with special hardware can then be tainted with the
name of their resource, and only pods that ask for it go there. Off by default, as in Kubernetes.
"""

from __future__ import annotations

from kemu.emulated.apiserver.admission.base import Plugin
from kemu.emulated.objects import resources
from kemu.emulated.objects.amounts import requests
from kemu.emulated.objects.resources import Resource
from kemu.messages.k8s import core_v1_pb2

PODS = resources.BY_PLURAL["pods"]


class ExtendedResourceToleration(Plugin[core_v1_pb2.Pod]):
    @classmethod
    def concerns(cls, resource: Resource) -> bool:
        return resource is PODS

    async def create(self, resource: Resource, obj: core_v1_pb2.Pod) -> None:
        _add_tolerations(obj)

    def update(self, resource: Resource, new: core_v1_pb2.Pod, old: core_v1_pb2.Pod) -> None:
        _add_tolerations(new)


def _add_tolerations(pod: core_v1_pb2.Pod) -> None:
    spec = pod.spec
    containers = (*spec.containers, *spec.initContainers)
    wanted = {name for one in containers for name in one.resources.requests if requests.is_extended(name)}
    for name in sorted(wanted):
        if not any(_is_tolerated(name, toleration) for toleration in spec.tolerations):
            spec.tolerations.add(key=name, operator="Exists", effect="NoSchedule")


def _is_tolerated(name: str, toleration: core_v1_pb2.Toleration) -> bool:
    """``Toleration.MatchToleration``: exactly this one, whatever another one covers."""
    stated = toleration.key, toleration.operator, toleration.value, toleration.effect
    return stated == (name, "Exists", "", "NoSchedule")
