"""NodeRestriction: a kubelet changes its own Node, the pods on it, its lease, and nothing else; it asks for tokens for
its pods alone.

Mirrors ``plugin/pkg/admission/noderestriction``. What the authorization mode Node allows for every kubelet alike (to
write the status of pods, say) is narrowed here to its own objects. On by default, as kubeadm enables it.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any, TypeVar, cast

from kemu.emulated.apiserver import errors
from kemu.emulated.apiserver.admission.base import Plugin
from kemu.emulated.apiserver.authorization import nodes as node_modes
from kemu.emulated.apiserver.authorization.attributes import Attributes
from kemu.emulated.apiserver.authorization.requesters import NODE, Requester
from kemu.emulated.objects import identities, meta, resources
from kemu.emulated.objects.resources import Resource
from kemu.emulated.objects.volumes import migration
from kemu.errors import NotFound
from kemu.messages.k8s import core_v1_pb2, resource_v1_pb2, storage_v1_pb2
from kemu.messages.k8s.objects import KubernetesObject

M = TypeVar("M", bound=KubernetesObject)

PODS = resources.BY_PLURAL["pods"]
NODES = resources.BY_PLURAL["nodes"]
CLAIMS = resources.BY_PLURAL["persistentvolumeclaims"]
LEASES = resources.BY_PLURAL["leases"]
CSI_NODES = resources.BY_PLURAL["csinodes"]
SLICES = resources.BY_PLURAL["resourceslices"]
ACCOUNTS = resources.BY_PLURAL["serviceaccounts"]

REQUEST_AUDIENCE = "request-serviceaccounts-token-audience"
"""The verb of a rule that lets kubelets ask for tokens for an audience, its resource, that no volume asks for."""
MIRROR = "kubernetes.io/config.mirror"
NODE_RESTRICTION = "node-restriction.kubernetes.io"

KUBELET_LABELS = frozenset(
    (
        "kubernetes.io/hostname", "topology.kubernetes.io/zone", "topology.kubernetes.io/region",
        "failure-domain.beta.kubernetes.io/zone", "failure-domain.beta.kubernetes.io/region",
        "beta.kubernetes.io/instance-type", "node.kubernetes.io/instance-type", "beta.kubernetes.io/os",
        "beta.kubernetes.io/arch", "kubernetes.io/os", "kubernetes.io/arch",
    )
)  # fmt: skip
KUBELET_NAMESPACES = ("kubelet.kubernetes.io", "node.kubernetes.io")
"""Labels that a kubelet may set, and namespaces of such (``IsKubeletLabel`` of ``pkg/kubelet/apis``)."""


class NodeRestriction(Plugin[KubernetesObject]):
    @classmethod
    def concerns(cls, resource: Resource) -> bool:
        return resource in (PODS, NODES, CLAIMS, LEASES, CSI_NODES, SLICES)

    async def create(self, resource: Resource, obj: KubernetesObject) -> None:
        requester = NODE.get()
        if requester is None:
            return
        name = obj.metadata.name
        if isinstance(obj, core_v1_pb2.Pod):
            self._create_pod(requester.node, obj)
        elif resource is NODES:
            _check_own_node(requester.node, name)
            if isinstance(obj, core_v1_pb2.Node) and obj.spec.HasField("configSource"):
                why = f'node "{requester.node}" is not allowed to create pods with a non-nil configSource'
                _refuse(NODES, name, why)
            # The labels of the scenario's nodes are an administrator's word, also where a kubelet brings them.
            if not requester.is_kubelet and (found := _forbidden_labels(obj.metadata.labels, {})):
                _refuse(NODES, name, f'node "{requester.node}" is not allowed to set the following labels: {found}')
        elif resource is CLAIMS:
            _refuse(CLAIMS, name, "may only update PVC status")
        elif isinstance(obj, resource_v1_pb2.ResourceSlice):
            if obj.spec.nodeName != requester.node:
                why = "can only create ResourceSlice with the same NodeName as the requesting node"
                _refuse(SLICES, name, why)
        else:
            _check_own(resource, requester.node, name, obj.metadata.namespace)

    def update(self, resource: Resource, new: KubernetesObject, old: KubernetesObject) -> None:
        requester = NODE.get()
        if requester is None:
            return
        node, name = requester.node, old.metadata.name
        if resource is PODS:
            why = f'unexpected operation "UPDATE", node "{node}" can only create and delete mirror pods'
            _refuse(PODS, name, why)
        elif isinstance(new, core_v1_pb2.Node) and isinstance(old, core_v1_pb2.Node):
            _check_own_node(node, name)
            _check_node_update(requester, new, old)
        elif resource is CLAIMS:
            _refuse(CLAIMS, name, "may only update PVC status")
        elif resource is not SLICES:
            _check_own(resource, node, name, old.metadata.namespace)

    def update_part(self, resource: Resource, subresource: str, new: KubernetesObject, old: KubernetesObject) -> None:
        requester = NODE.get()
        if requester is None:
            return
        node, name = requester.node, old.metadata.name
        if isinstance(old, core_v1_pb2.Pod):
            if subresource != "status":
                why = f"unexpected pod subresource \"{subresource}\", only 'status' and 'eviction' are allowed"
                _refuse(PODS, name, why)
            if old.spec.nodeName != node:
                why = f'node "{node}" can only update pod status for pods with spec.nodeName set to itself'
                _refuse(PODS, name, why)
            if not meta.have_same_entries(old.metadata.labels, new.metadata.labels):
                _refuse(PODS, name, f'node "{node}" cannot update labels through pod status')
            _check_claim_statuses(node, name, cast(core_v1_pb2.Pod, new).status, old.status)
        elif isinstance(new, core_v1_pb2.Node) and isinstance(old, core_v1_pb2.Node):
            _check_own_node(node, name)
            _check_node_update(requester, new, old)
        elif resource is CLAIMS:
            if subresource != "status":
                _refuse(CLAIMS, name, "may only update PVC status")
            if _without_progress(cast(core_v1_pb2.PersistentVolumeClaim, new)) != _without_progress(
                cast(core_v1_pb2.PersistentVolumeClaim, old)
            ):
                why = f'node "{node}" is not allowed to update fields other than status.quantity and status.conditions'
                _refuse(CLAIMS, name, why)
        else:
            _check_own(resource, node, name, old.metadata.namespace)

    def delete(self, resource: Resource, name: str, namespace: str) -> None:
        requester = NODE.get()
        if requester is None:
            return
        if resource is PODS:
            if self._node_of_pod(namespace, name) != requester.node:
                why = f'node "{requester.node}" can only delete pods with spec.nodeName set to itself'
                _refuse(PODS, name, why)
        elif resource is NODES:
            _check_own_node(requester.node, name)
        elif resource is CLAIMS:
            _refuse(CLAIMS, name, "may only update PVC status")
        elif resource is not SLICES:  # the authorization mode Node judges by the slice
            _check_own(resource, requester.node, name, namespace)

    def evict(self, name: str, namespace: str) -> None:
        requester = NODE.get()
        if requester is not None and self._node_of_pod(namespace, name) != requester.node:
            _refuse(PODS, name, f"node {requester.node} can only evict pods with spec.nodeName set to itself")

    def give_token(
        self, user: str, asked: Mapping[str, Any], namespace: str, name: str, allows: Callable[[Attributes], bool]
    ) -> None:
        """A kubelet asks for a token of an account (``admitServiceAccount``).

        ``user``: its name, ``asked``: the spec of the TokenRequest as JSON, ``allows``: whether it has another right.
        """
        node, ref = user.removeprefix(identities.NODE_PREFIX), asked.get("boundObjectRef") or {}
        if (ref.get("apiVersion"), ref.get("kind")) != ("v1", "Pod") or not ref.get("name"):
            _refuse(ACCOUNTS, name, "node requested token not bound to a pod")
        uid = ref.get("uid")
        if not uid:
            _refuse(ACCOUNTS, name, "node requested token with a pod binding without a uid")
        pod = self._get(core_v1_pb2.Pod, namespace, ref["name"])
        if uid != pod.metadata.uid:
            why = f"the UID in the bound object reference ({uid}) does not match the UID in record. The object might "
            _refuse(ACCOUNTS, name, why + "have been deleted and then recreated")
        if pod.spec.nodeName != node:
            _refuse(ACCOUNTS, name, "node requested token bound to a pod scheduled on a different node")
        audiences = asked.get("audiences") or [""]
        if len(audiences) > 1:
            _refuse(ACCOUNTS, name, "node may only request 0 or 1 audiences")
        audience = audiences[0]
        if problem := self._needs_audience(pod, audience):
            _refuse(ACCOUNTS, name, f'error validating audience "{audience}": {problem}')
        if problem is None and not allows(Attributes(REQUEST_AUDIENCE, "", audience, "", namespace, name, "")):
            why = f'audience "{audience}" not found in pod spec volume, {user} is not authorized to request tokens'
            _refuse(ACCOUNTS, name, f"{why} for this audience")

    def _needs_audience(self, pod: core_v1_pb2.Pod, audience: str) -> str | None:
        """Whether a volume of the pod, or the CSI driver of one, asks for tokens for an audience
        (``podReferencesAudience``). Empty: one does; None: none does; else what could not be found."""
        problems = []
        for volume in pod.spec.volumes:
            source: core_v1_pb2.VolumeSource | core_v1_pb2.PersistentVolumeSource = volume.volumeSource
            tokens = [one.serviceAccountToken for one in volume.volumeSource.projected.sources]
            if any(one.path and one.audience == audience for one in tokens):
                return ""
            try:
                if claim := node_modes.claim_of(pod, volume):
                    bound = self._get(core_v1_pb2.PersistentVolumeClaim, pod.metadata.namespace, claim)
                    made = self._get(core_v1_pb2.PersistentVolume, "", bound.spec.volumeName)
                    source = made.spec.persistentVolumeSource
                plugin = migration.plugin_of(source)
                driver = source.csi.driver if plugin is None else plugin.driver
                asked = self._get(storage_v1_pb2.CSIDriver, "", driver).spec.tokenRequests if driver else ()
                if any(one.audience == audience for one in asked):
                    return ""
            except NotFound as error:
                # Listers, of which Kubernetes asks for them, name a kind in the singular.
                problems.append(re.sub(r"s(?=[. ])", "", error.message, count=1))
        return f"[{', '.join(problems)}]" if len(problems) > 1 else problems[0] if problems else None

    def _node_of_pod(self, namespace: str, name: str) -> str:
        return str(self._get(core_v1_pb2.Pod, namespace, name).spec.nodeName)

    def _get(self, message: type[M], namespace: str, name: str) -> M:
        """Raises :class:`kemu.errors.NotFound`."""
        resource = resources.BY_MESSAGE[message]
        entry = self.cache.collections[resource.plural].entries.get(resources.key(resource, namespace, name))
        if entry is None:
            raise errors.not_found(resource, name)
        return message.FromString(entry.wire)

    def _create_pod(self, node: str, pod: core_v1_pb2.Pod) -> None:
        """``admitPodCreate``."""
        metadata, name = pod.metadata, pod.metadata.name
        owned = f'node "{node}" can only create pods with'
        if MIRROR not in metadata.annotations:
            why = f'pod does not have "{MIRROR}" annotation, node "{node}" can only create mirror pods'
            _refuse(PODS, name, why)
        if pod.spec.nodeName != node:
            _refuse(PODS, name, f"{owned} spec.nodeName set to itself")
        owners = metadata.ownerReferences
        if len(owners) > 1:
            _refuse(PODS, name, f"{owned} a single owner reference set to itself")
        if not owners or (owners[0].apiVersion, owners[0].kind, owners[0].name) != ("v1", "Node", node):
            _refuse(PODS, name, f"{owned} an owner reference set to itself")
        if not owners[0].controller:
            _refuse(PODS, name, f"{owned} a controller owner reference set to itself")
        if owners[0].blockOwnerDeletion:
            _refuse(PODS, name, f'node "{node}" must not set blockOwnerDeletion on an owner reference')
        own = self._get(core_v1_pb2.Node, "", node)
        if owners[0].uid != own.metadata.uid:
            why = f"node {node} UID mismatch: expected {owners[0].uid} got {own.metadata.uid}"
            _refuse(PODS, name, why)
        if referenced := _references(pod):
            _refuse(PODS, name, f'node "{node}" can not create pods that reference {referenced}')


def _refuse(resource: Resource, name: str, why: str) -> None:
    raise errors.forbidden(resource, name, why)


def _check_own_node(node: str, name: str) -> None:
    if name != node:
        _refuse(NODES, name, f'node "{node}" is not allowed to modify node "{name}"')


def _check_own(resource: Resource, node: str, name: str, namespace: str) -> None:
    """A lease or a CSINode (``admitLease``, ``admitCSINode``)."""
    if resource is LEASES:
        if namespace != node_modes.LEASE_NAMESPACE:
            _refuse(LEASES, name, f'can only access leases in the "{node_modes.LEASE_NAMESPACE}" system namespace')
        if name != node:
            _refuse(LEASES, name, "can only access node lease with the same name as the requesting node")
    elif name != node:
        _refuse(CSI_NODES, name, "can only access CSINode with the same name as the requesting node")


def _check_claim_statuses(node: str, name: str, new: core_v1_pb2.PodStatus, old: core_v1_pb2.PodStatus) -> None:
    """Which claims a pod has got is the word of controllers and schedulers."""
    ours, theirs = new.resourceClaimStatuses, old.resourceClaimStatuses
    if (ours or theirs) and list(ours) != list(theirs):
        _refuse(PODS, name, f'node "{node}" cannot update resource claim statues')  # as Kubernetes spells it
    is_there = new.HasField("extendedResourceClaimStatus")
    if is_there != old.HasField("extendedResourceClaimStatus") or (
        is_there and new.extendedResourceClaimStatus != old.extendedResourceClaimStatus
    ):
        _refuse(PODS, name, f'node "{node}" cannot update extended resource claim status')


def _check_node_update(requester: Requester, new: core_v1_pb2.Node, old: core_v1_pb2.Node) -> None:
    """``admitNode``."""
    node, name = requester.node, old.metadata.name
    if new.spec.HasField("configSource") and new.spec.configSource != old.spec.configSource:
        _refuse(NODES, name, f'node "{node}" is not allowed to update configSource to a new non-nil configSource')
    if list(new.spec.taints) != list(old.spec.taints):
        _refuse(NODES, name, f'node "{node}" is not allowed to modify taints')
    if list(new.metadata.ownerReferences) != list(old.metadata.ownerReferences):
        _refuse(NODES, name, f'node "{node}" is not allowed to modify ownerReferences')
    if found := _forbidden_labels(new.metadata.labels, old.metadata.labels):
        _refuse(NODES, name, f"is not allowed to modify labels: {found}")


def _forbidden_labels(new: Mapping[str, str], old: Mapping[str, str]) -> str:
    """Those that are set, changed or taken away and are not a kubelet's (``getForbiddenLabels``)."""
    changed = sorted(key for key in {*new, *old} if (key in new) != (key in old) or new[key] != old[key])
    return ", ".join(key for key in changed if not _is_kubelets(key))


def _is_kubelets(label: str) -> bool:
    namespace = label.partition("/")[0] if "/" in label else ""
    if _is_within(namespace, NODE_RESTRICTION):
        return False
    if not _is_within(namespace, "kubernetes.io") and not _is_within(namespace, "k8s.io"):
        return True
    return label in KUBELET_LABELS or any(_is_within(namespace, one) for one in KUBELET_NAMESPACES)


def _is_within(namespace: str, domain: str) -> bool:
    return namespace == domain or namespace.endswith(f".{domain}")


def _without_progress(claim: core_v1_pb2.PersistentVolumeClaim) -> bytes:
    """A claim without what a kubelet may write when it grows a volume."""
    rest = type(claim).FromString(claim.SerializeToString())
    rest.metadata.ClearField("resourceVersion")
    rest.metadata.ClearField("managedFields")
    for field in ("capacity", "conditions", "allocatedResources", "allocatedResourceStatuses"):
        rest.status.ClearField(field)
    return bytes(rest.SerializeToString(deterministic=True))


def _references(pod: core_v1_pb2.Pod) -> str:
    """The kind of the first API object that a pod needs (``HasAPIObjectReference``); empty: none."""
    if pod.spec.serviceAccountName:
        return "serviceaccounts"
    for plural in ("secrets", "configmaps"):
        if node_modes.NAMES[plural](pod):
            return plural
    if pod.spec.resourceClaims:
        return "resourceclaims"
    return "persistentvolumeclaims" if node_modes.NAMES["persistentvolumeclaims"](pod) else ""
