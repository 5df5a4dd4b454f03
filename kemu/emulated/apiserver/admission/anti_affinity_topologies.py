"""LimitPodHardAntiAffinityTopology: required anti-affinity may keep pods apart by node only.

Mirrors ``plugin/pkg/admission/antiaffinity``. Without it one user's pod with anti-affinity over a zone keeps all other
pods that it selects out of that zone. Off by default, as in Kubernetes.
"""

from __future__ import annotations

from kemu.emulated.apiserver import errors
from kemu.emulated.apiserver.admission.base import Plugin
from kemu.emulated.objects import resources
from kemu.emulated.objects.resources import Resource
from kemu.messages.k8s import core_v1_pb2

PODS = resources.BY_PLURAL["pods"]
HOSTNAME = "kubernetes.io/hostname"


class LimitPodHardAntiAffinityTopology(Plugin[core_v1_pb2.Pod]):
    @classmethod
    def concerns(cls, resource: Resource) -> bool:
        return resource is PODS

    async def validate(self, resource: Resource, obj: core_v1_pb2.Pod) -> None:
        _check(obj)

    def update(self, resource: Resource, new: core_v1_pb2.Pod, old: core_v1_pb2.Pod) -> None:
        _check(new)


def _check(pod: core_v1_pb2.Pod) -> None:
    for term in pod.spec.affinity.podAntiAffinity.requiredDuringSchedulingIgnoredDuringExecution:
        if term.topologyKey != HOSTNAME:
            why = (
                f"affinity.PodAntiAffinity.RequiredDuringScheduling has TopologyKey {term.topologyKey} but only key "
                f"{HOSTNAME} is allowed"
            )
            raise errors.forbidden(PODS, pod.metadata.name, why)
