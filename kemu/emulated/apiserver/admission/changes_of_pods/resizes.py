"""PodResizeValidator: a pod is not resized to more than its node has (``plugin/pkg/admission/podresize``)."""

from __future__ import annotations

from kemu.emulated.apiserver import errors
from kemu.emulated.apiserver.admission.base import Plugin
from kemu.emulated.objects import resources
from kemu.emulated.objects.amounts import pod_totals, quantities, resource_lists
from kemu.emulated.objects.resources import Resource
from kemu.errors import Cause
from kemu.messages.k8s import core_v1_pb2

NODE_CAPACITY, UNSUPPORTED_PLATFORM = "NodeCapacity", "UnsupportedPlatform"
_PODS, _NODES = resources.BY_PLURAL["pods"], resources.BY_PLURAL["nodes"]
_SYSTEM = "kubernetes.io/os"


class PodResizeValidator(Plugin[core_v1_pb2.Pod]):
    @classmethod
    def concerns(cls, resource: Resource) -> bool:
        return resource is _PODS

    def may_validate_update(self, resource: Resource, subresource: str) -> bool:
        return subresource == "resize"

    async def validate_update(
        self, resource: Resource, subresource: str, new: core_v1_pb2.Pod, old: core_v1_pb2.Pod
    ) -> None:
        node_name = new.spec.nodeName
        if not node_name or new.metadata.generation == old.metadata.generation:
            return
        name = new.metadata.name
        entry = self.cache.collections[_NODES.plural].entries.get(resources.key(_NODES, "", node_name))
        if entry is None:
            raise errors.forbidden(_PODS, name, f'node "{node_name}" not found')
        node = core_v1_pb2.Node.FromString(entry.wire)
        system = node.metadata.labels.get(_SYSTEM, "linux")
        if system != "linux":
            why = f'pod resize is only supported on linux nodes, node "{node_name}" is "{system}"'
            raise errors.forbidden(_PODS, name, why, [Cause("", UNSUPPORTED_PLATFORM, "")])
        lacking = _lacking(new, node)
        if lacking:
            why = f"node didn't have enough allocatable resources: {'; '.join(lacking)}"
            raise errors.forbidden(_PODS, name, why, [Cause("", NODE_CAPACITY, "")])


def _lacking(pod: core_v1_pb2.Pod, node: core_v1_pb2.Node) -> list[str]:
    """Whatever else is on the node."""
    requests = pod_totals.charged(pod, pod_totals.REQUESTS, use_status=False)
    allocatable = resource_lists.read(node.status.allocatable)
    found = []
    for name in ("cpu", "memory"):
        wanted, there = requests.get(name, quantities.ZERO), allocatable.get(name, quantities.ZERO)
        if there < wanted:
            amounts = (wanted.milli, there.milli) if name == "cpu" else (wanted.value, there.value)
            found.append(f"{name}, requested: {amounts[0]}, allocatable: {amounts[1]}")
    return found
