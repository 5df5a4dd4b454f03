"""NodeDeclaredFeatureValidator: a pod is not changed so that it needs a feature which its node does not declare
(``plugin/pkg/admission/nodedeclaredfeatures``)."""

from __future__ import annotations

from kemu.emulated.apiserver import errors
from kemu.emulated.apiserver.admission.base import Plugin
from kemu.emulated.objects import resources
from kemu.emulated.objects.pods import declared_features
from kemu.emulated.objects.resources import Resource
from kemu.messages.k8s import core_v1_pb2

_PODS, _NODES = resources.BY_PLURAL["pods"], resources.BY_PLURAL["nodes"]
_KEY = resources.key(_NODES, "", "")


class NodeDeclaredFeatureValidator(Plugin[core_v1_pb2.Pod]):
    @classmethod
    def concerns(cls, resource: Resource) -> bool:
        return resource is _PODS

    def may_validate_update(self, resource: Resource, subresource: str) -> bool:
        return subresource in ("", "resize")

    async def validate_update(
        self, resource: Resource, subresource: str, new: core_v1_pb2.Pod, old: core_v1_pb2.Pod
    ) -> None:
        node_name = new.spec.nodeName
        if not node_name or new.metadata.generation == old.metadata.generation:
            return
        needed = declared_features.for_update(old.spec, new.spec)
        if not needed:
            return
        entry = self.cache.collections["nodes"].entries.get(_KEY + node_name.encode())
        name = new.metadata.name
        if entry is None:
            raise errors.forbidden(_PODS, name, f'node "{node_name}" not found')
        declared = core_v1_pb2.Node.FromString(entry.value).status.declaredFeatures
        lacking = declared_features.missing(needed, declared)
        if lacking:
            why = f'pod update requires features {", ".join(lacking)} which are not available on node "{node_name}"'
            raise errors.forbidden(_PODS, name, why)
