"""Mode Node: what a kubelet may do (``NodeAuthorizer`` of ``plugin/pkg/auth/authorizer/node``).

What a kubelet may write of its own Node and its own pods is narrowed further by the admission plugin NodeRestriction.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from kemu.emulated.apiserver import selections
from kemu.emulated.apiserver.authorization import roles
from kemu.emulated.apiserver.authorization.attributes import Attributes
from kemu.emulated.apiserver.watch.cache import WatchCache
from kemu.emulated.objects import resources
from kemu.emulated.objects.wire import shared_objects
from kemu.messages.k8s import core_v1_pb2

LEASE_NAMESPACE = "kube-node-lease"
_OWN_LEASE = ["get", "create", "update", "patch", "delete"]
ALLOWED: str | None = None


class NodeAuthorizer:
    def __init__(self, cache: WatchCache) -> None:
        self._cache = cache

    def refusal(self, node: str, asked: Attributes) -> str | None:
        """None: allowed. Otherwise why not, perhaps in no words; other modes may still allow it."""
        judge = _JUDGES.get(asked.resource)
        if judge is not None:
            return judge(self, node, asked)
        rules = roles.known().cluster_roles["system:node"]
        return ALLOWED if any(rule.allows(asked) for rule in rules) else ""

    def _nodes(self, node: str, asked: Attributes) -> str | None:
        """``authorizeNode``."""
        if not asked.subresource:
            if asked.verb in ("create", "update", "patch"):
                return ALLOWED
            if asked.verb in ("get", "list", "watch"):
                if asked.name == node:
                    return ALLOWED
                what = f"'{asked.name}'" if asked.name else "all nodes"
                return f"node '{node}' cannot read {what}, only its own Node object"
        return ALLOWED if asked.subresource == "status" and asked.verb in ("update", "patch") else ""

    def _pods(self, node: str, asked: Attributes) -> str | None:
        """``authorizePod``."""
        if not asked.subresource:
            if asked.verb == "get":
                return self._related(node, asked, self._is_own_pod)
            if asked.verb in ("list", "watch"):
                if asked.demands("spec.nodeName") == node:
                    return ALLOWED
                if asked.name:
                    return self._related(node, asked, self._is_own_pod)
                return "can only list/watch pods with spec.nodeName field selector"
            if asked.verb in ("create", "delete"):
                return ALLOWED
        if asked.subresource == "status" and asked.verb in ("update", "patch"):
            return ALLOWED
        return ALLOWED if asked.subresource == "eviction" and asked.verb == "create" else ""

    def _leases(self, node: str, asked: Attributes) -> str | None:
        """``authorizeLease``."""
        if asked.verb not in _OWN_LEASE:
            return "can only get, create, update, patch, or delete a node lease"
        if asked.namespace != LEASE_NAMESPACE:
            return f'can only access leases in the "{LEASE_NAMESPACE}" system namespace'
        if asked.verb != "create" and asked.name != node:
            return "can only access node lease with the same name as the requesting node"
        return ALLOWED

    def _csi_nodes(self, node: str, asked: Attributes) -> str | None:
        """``authorizeCSINode``."""
        if asked.verb not in _OWN_LEASE:
            return "can only get, create, update, patch, or delete a CSINode"
        if asked.subresource:
            return "cannot authorize CSINode subresources"
        if asked.verb != "create" and asked.name != node:
            return "can only access CSINode with the same name as the requesting node"
        return ALLOWED

    def _of_pods(self, node: str, asked: Attributes) -> str | None:
        """``authorizeReadNamespacedObject``: secrets and config maps that pods of the node name."""
        if asked.verb not in ("get", "list", "watch"):
            return "can only read resources of this type"
        if asked.subresource:
            return "cannot read subresource"
        if not asked.namespace:
            return "can only read namespaced object of this type"
        return self._related(node, asked, self._is_named)

    def _claims(self, node: str, asked: Attributes) -> str | None:
        if asked.subresource == "status":
            if asked.verb not in ("update", "patch"):
                return "can only get/update/patch this type"
            return self._related(node, asked, self._is_named)
        return self._gets(node, asked)

    def _gets(self, node: str, asked: Attributes) -> str | None:
        """``authorizeGet``."""
        if asked.verb != "get":
            return "can only get individual resources of this type"
        if asked.subresource:
            return "cannot get subresource"
        return self._related(node, asked, self._is_named)

    def _attachments(self, node: str, asked: Attributes) -> str | None:
        """As other objects that a kubelet gets. One of Kubernetes asks for its VolumeAttachment again and again; one of
        kemu watches it by its name, from before it is there."""
        if asked.verb in ("list", "watch") and asked.name and not asked.subresource:
            found = self._find("volumeattachments", "", asked.name)
            return ALLOWED if found is None else self._related(node, asked, self._is_named)
        return self._gets(node, asked)

    def _service_accounts(self, node: str, asked: Attributes) -> str | None:
        """``authorizeServiceAccount``."""
        if asked.verb != "get" or asked.subresource:
            if asked.verb != "create" or not asked.name:
                return "can only create tokens for individual service accounts"
            if asked.subresource != "token":
                return "can only create token subresource of serviceaccount"
        return self._related(node, asked, self._is_named)

    def _resource_slices(self, node: str, asked: Attributes) -> str | None:
        """``authorizeResourceSlice``; that a new one is of the node, NodeRestriction says."""
        if asked.subresource:
            return "cannot authorize ResourceSlice subresources"
        if asked.verb == "create":
            return ALLOWED
        if asked.verb in ("watch", "list", "deletecollection"):
            if asked.demands("spec.nodeName") == node:
                return ALLOWED
            return "can only list/watch/deletecollection resourceslices with nodeName field selector"
        return self._related(node, asked, self._is_named)

    def _related(self, node: str, asked: Attributes, is_related: Callable[..., bool]) -> str | None:
        if not asked.name:
            return "No Object name found"
        if is_related(node, asked):
            return ALLOWED
        return f"no relationship found between node '{node}' and this object"

    def _is_own_pod(self, node: str, asked: Attributes) -> bool:
        pod = self._find("pods", asked.namespace, asked.name)
        return pod is not None and pod.spec.nodeName == node

    def _is_named(self, node: str, asked: Attributes) -> bool:
        """Whether a pod of the node, or a volume of one, leads to the object (the graph of the node authorizer)."""
        if asked.resource == "volumeattachments":
            attachment = self._find("volumeattachments", "", asked.name)
            return attachment is not None and attachment.spec.nodeName == node
        if asked.resource == "resourceslices":
            found = self._find("resourceslices", "", asked.name)
            return found is not None and found.spec.nodeName == node
        if asked.resource == "persistentvolumes":
            claims = ((pod.metadata.namespace, name) for pod in self._own_pods(node) for name in _claims_of(pod))
            found = (self._find("persistentvolumeclaims", *claim) for claim in claims)
            return any(one is not None and one.spec.volumeName == asked.name for one in found)
        names = NAMES[asked.resource]
        own = self._own_pods(node)
        return any(pod.metadata.namespace == asked.namespace and asked.name in names(pod) for pod in own)

    def _own_pods(self, node: str) -> Iterator[core_v1_pb2.Pod]:
        pods = self._cache.collections["pods"]
        for entry in pods.in_index(selections.NODE_OF_POD, node):
            yield shared_objects.OBJECTS.parse(core_v1_pb2.Pod, entry.revision, entry.wire)

    def _find(self, plural: str, namespace: str, name: str) -> Any:
        """None: there is no such object. Read it, never change it."""
        collection = self._cache.collections[plural]
        entry = collection.entries.get(resources.key(collection.resource, namespace, name))
        if entry is None:
            return None
        return shared_objects.OBJECTS.parse(collection.resource.message, entry.revision, entry.wire)


_JUDGES = {
    "nodes": NodeAuthorizer._nodes,
    "pods": NodeAuthorizer._pods,
    "leases": NodeAuthorizer._leases,
    "csinodes": NodeAuthorizer._csi_nodes,
    "secrets": NodeAuthorizer._of_pods,
    "configmaps": NodeAuthorizer._of_pods,
    "persistentvolumeclaims": NodeAuthorizer._claims,
    "persistentvolumes": NodeAuthorizer._gets,
    "volumeattachments": NodeAuthorizer._attachments,
    "serviceaccounts": NodeAuthorizer._service_accounts,
    "resourceclaims": NodeAuthorizer._gets,
    "resourceslices": NodeAuthorizer._resource_slices,
}


def claim_of(pod: core_v1_pb2.Pod, volume: core_v1_pb2.Volume) -> str:
    """Name of the claim behind a volume; empty: there is none."""
    if volume.volumeSource.HasField("ephemeral"):
        return f"{pod.metadata.name}-{volume.name}"
    return volume.volumeSource.persistentVolumeClaim.claimName


def _claims_of(pod: core_v1_pb2.Pod) -> list[str]:
    return [claim for volume in pod.spec.volumes if (claim := claim_of(pod, volume))]


def _device_claims_of(pod: core_v1_pb2.Pod) -> list[str]:
    """Those of the spec by name, those generated, and that for extended resources."""
    named = [one.resourceClaimName for one in pod.spec.resourceClaims if one.HasField("resourceClaimName")]
    named += [one.resourceClaimName for one in pod.status.resourceClaimStatuses if one.HasField("resourceClaimName")]
    extended = pod.status.extendedResourceClaimStatus.resourceClaimName
    return [*named, extended] if extended else named


def _secrets_of(pod: core_v1_pb2.Pod) -> list[str]:
    return [*(one.name for one in pod.spec.imagePullSecrets), *_sources_of(pod, "secret")]


def _config_maps_of(pod: core_v1_pb2.Pod) -> list[str]:
    return _sources_of(pod, "configMap")


def _sources_of(pod: core_v1_pb2.Pod, kind: str) -> list[str]:
    """Names of secrets or config maps in volumes and environments."""
    named = []
    for container in (*pod.spec.initContainers, *pod.spec.containers):
        named += [getattr(one, f"{kind}Ref") for one in container.envFrom if one.HasField(f"{kind}Ref")]
        key = f"{kind}KeyRef"
        named += [getattr(one.valueFrom, key) for one in container.env if one.valueFrom.HasField(key)]
    found = []
    for volume in pod.spec.volumes:
        source = volume.volumeSource
        if kind == "secret" and source.HasField("secret"):
            found.append(source.secret.secretName)
        elif source.HasField(kind):
            named.append(getattr(source, kind))
        named += [getattr(one, kind) for one in source.projected.sources if one.HasField(kind)]
    return found + [one.localObjectReference.name for one in named]


NAMES: dict[str, Callable[[Any], list[str]]] = {
    "secrets": _secrets_of,
    "configmaps": _config_maps_of,
    "persistentvolumeclaims": _claims_of,
    "serviceaccounts": lambda pod: [pod.spec.serviceAccountName],
    "resourceclaims": _device_claims_of,
}
