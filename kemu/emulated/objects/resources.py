"""The kinds that kemu serves: their names, message classes and keys in the store.

The API server's routes, the client, manifests in scenarios (:mod:`kemu.emulated.objects.conversion.convert`) and the
printed run log read this table. It says nothing about what the kinds mean.
"""

from __future__ import annotations

import functools
from dataclasses import dataclass

from google.protobuf.message import Message

from kemu.messages.k8s import (
    admissionregistration_v1_pb2,
    apiextensions_v1_pb2,
    apiregistration_v1_pb2,
    apps_v1_pb2,
    autoscaling_v1_pb2,
    autoscaling_v2_pb2,
    batch_v1_pb2,
    certificates_v1_pb2,
    coordination_v1_pb2,
    core_v1_pb2,
    discovery_v1_pb2,
    flowcontrol_v1_pb2,
    meta_v1_pb2,
    networking_v1_pb2,
    node_v1_pb2,
    policy_v1_pb2,
    rbac_v1_pb2,
    resource_v1_pb2,
    scheduling_v1_pb2,
    scheduling_v1alpha2_pb2,
    storage_v1_pb2,
)
from kemu.messages.k8s.objects import KubernetesObject

REGISTRY = b"/registry/"
"""Prefix of every key in the store."""


@dataclass(frozen=True)
class Resource:
    """One row of the table: a kind."""

    plural: str
    """As in URLs and requests: ``pods``. Custom kinds, in requests: ``widgets.example.com``."""
    kind: str
    api_version: str
    """``v1`` or ``group/v1``."""
    message: type[KubernetesObject]
    namespaced: bool = True
    short_names: tuple[str, ...] = ()
    """As kubectl knows them."""
    has_status: bool = True
    """Whether there is a status subresource."""

    @functools.cached_property
    def group(self) -> str:
        """API group, empty for the core group."""
        return self.api_version.rpartition("/")[0]

    @property
    def collection(self) -> str:
        """Plural as URLs and the details of refusals name it; only custom kinds have another :attr:`plural`."""
        return self.plural

    @property
    def qualified(self) -> str:
        """Plural and group as error messages name it: ``pods``, ``leases.coordination.k8s.io``."""
        return f"{self.plural}.{self.group}" if self.group else self.plural


def _core(plural: str, kind: str, *short: str, namespaced: bool = True, has_status: bool = True) -> Resource:
    return Resource(plural, kind, "v1", getattr(core_v1_pb2, kind), namespaced, short, has_status)


def _storage(plural: str, kind: str, *short: str, namespaced: bool = False, has_status: bool = False) -> Resource:
    return Resource(plural, kind, "storage.k8s.io/v1", getattr(storage_v1_pb2, kind), namespaced, short, has_status)


def _networking(plural: str, kind: str, *short: str, namespaced: bool = True, has_status: bool = False) -> Resource:
    return Resource(
        plural, kind, "networking.k8s.io/v1", getattr(networking_v1_pb2, kind), namespaced, short, has_status
    )


def _devices(plural: str, kind: str, namespaced: bool = True, has_status: bool = False) -> Resource:
    group = "resource.k8s.io/v1"
    return Resource(plural, kind, group, getattr(resource_v1_pb2, kind), namespaced, (), has_status)


def _flows(plural: str, kind: str) -> Resource:
    group = "flowcontrol.apiserver.k8s.io/v1"
    return Resource(plural, kind, group, getattr(flowcontrol_v1_pb2, kind), False)


def _rbac(plural: str, kind: str, namespaced: bool = True) -> Resource:
    group = "rbac.authorization.k8s.io/v1"
    return Resource(plural, kind, group, getattr(rbac_v1_pb2, kind), namespaced, (), False)


def _admission(plural: str, kind: str, has_status: bool = False) -> Resource:
    message = getattr(admissionregistration_v1_pb2, kind)
    return Resource(plural, kind, "admissionregistration.k8s.io/v1", message, False, (), has_status)


RESOURCES: tuple[Resource, ...] = (
    Resource("namespaces", "Namespace", "v1", core_v1_pb2.Namespace, False, ("ns",)),
    Resource("nodes", "Node", "v1", core_v1_pb2.Node, False, ("no",)),
    Resource("pods", "Pod", "v1", core_v1_pb2.Pod, True, ("po",)),
    Resource("events", "Event", "v1", core_v1_pb2.Event, True, ("ev",), False),
    Resource("services", "Service", "v1", core_v1_pb2.Service, True, ("svc",)),
    Resource("replicationcontrollers", "ReplicationController", "v1", core_v1_pb2.ReplicationController, True, ("rc",)),
    Resource("resourcequotas", "ResourceQuota", "v1", core_v1_pb2.ResourceQuota, True, ("quota",)),
    Resource("replicasets", "ReplicaSet", "apps/v1", apps_v1_pb2.ReplicaSet, True, ("rs",)),
    Resource("statefulsets", "StatefulSet", "apps/v1", apps_v1_pb2.StatefulSet, True, ("sts",)),
    Resource("deployments", "Deployment", "apps/v1", apps_v1_pb2.Deployment, True, ("deploy",)),
    Resource("daemonsets", "DaemonSet", "apps/v1", apps_v1_pb2.DaemonSet, True, ("ds",)),
    Resource("jobs", "Job", "batch/v1", batch_v1_pb2.Job),
    Resource(
        "poddisruptionbudgets", "PodDisruptionBudget", "policy/v1", policy_v1_pb2.PodDisruptionBudget, True, ("pdb",)
    ),
    Resource(
        "priorityclasses",
        "PriorityClass",
        "scheduling.k8s.io/v1",
        scheduling_v1_pb2.PriorityClass,
        False,
        ("pc",),
        False,
    ),
    Resource(
        "workloads",
        "Workload",
        "scheduling.k8s.io/v1alpha2",
        scheduling_v1alpha2_pb2.Workload,
        True,
        (),
        False,
    ),
    Resource("podgroups", "PodGroup", "scheduling.k8s.io/v1alpha2", scheduling_v1alpha2_pb2.PodGroup),
    Resource("leases", "Lease", "coordination.k8s.io/v1", coordination_v1_pb2.Lease, True, (), False),
    Resource("runtimeclasses", "RuntimeClass", "node.k8s.io/v1", node_v1_pb2.RuntimeClass, False, (), False),
    _core("limitranges", "LimitRange", "limits", has_status=False),
    _core("persistentvolumes", "PersistentVolume", "pv", namespaced=False),
    _core("persistentvolumeclaims", "PersistentVolumeClaim", "pvc"),
    _core("configmaps", "ConfigMap", "cm", has_status=False),
    _core("secrets", "Secret", has_status=False),
    _core("serviceaccounts", "ServiceAccount", "sa", has_status=False),
    _core("endpoints", "Endpoints", "ep", has_status=False),
    _core("podtemplates", "PodTemplate", has_status=False),
    Resource("controllerrevisions", "ControllerRevision", "apps/v1", apps_v1_pb2.ControllerRevision, True, (), False),
    Resource("cronjobs", "CronJob", "batch/v1", batch_v1_pb2.CronJob, True, ("cj",)),
    _storage("storageclasses", "StorageClass", "sc"),
    _storage("csinodes", "CSINode"),
    _storage("csidrivers", "CSIDriver"),
    _storage("csistoragecapacities", "CSIStorageCapacity", namespaced=True),
    _storage("volumeattachments", "VolumeAttachment", has_status=True),
    _storage("volumeattributesclasses", "VolumeAttributesClass", "vac"),
    _networking("ingresses", "Ingress", "ing", has_status=True),
    _networking("ingressclasses", "IngressClass", namespaced=False),
    _networking("networkpolicies", "NetworkPolicy", "netpol"),
    _rbac("roles", "Role"),
    _rbac("rolebindings", "RoleBinding"),
    _rbac("clusterroles", "ClusterRole", namespaced=False),
    _rbac("clusterrolebindings", "ClusterRoleBinding", namespaced=False),
    Resource(
        "horizontalpodautoscalers",
        "HorizontalPodAutoscaler",
        "autoscaling/v2",
        autoscaling_v2_pb2.HorizontalPodAutoscaler,
        True,
        ("hpa",),
    ),
    Resource(
        "endpointslices",
        "EndpointSlice",
        "discovery.k8s.io/v1",
        discovery_v1_pb2.EndpointSlice,
        True,
        (),
        False,
    ),
    _devices("deviceclasses", "DeviceClass", namespaced=False),
    _devices("resourceclaims", "ResourceClaim", has_status=True),
    _devices("resourceclaimtemplates", "ResourceClaimTemplate"),
    _devices("resourceslices", "ResourceSlice", namespaced=False),
    _networking("ipaddresses", "IPAddress", "ip", namespaced=False),
    _networking("servicecidrs", "ServiceCIDR", namespaced=False, has_status=True),
    Resource(
        "certificatesigningrequests",
        "CertificateSigningRequest",
        "certificates.k8s.io/v1",
        certificates_v1_pb2.CertificateSigningRequest,
        False,
        ("csr",),
    ),
    _admission("validatingadmissionpolicies", "ValidatingAdmissionPolicy", has_status=True),
    _admission("validatingadmissionpolicybindings", "ValidatingAdmissionPolicyBinding"),
    _admission("mutatingadmissionpolicies", "MutatingAdmissionPolicy"),
    _admission("mutatingadmissionpolicybindings", "MutatingAdmissionPolicyBinding"),
    _admission("validatingwebhookconfigurations", "ValidatingWebhookConfiguration"),
    _admission("mutatingwebhookconfigurations", "MutatingWebhookConfiguration"),
    Resource(
        "customresourcedefinitions",
        "CustomResourceDefinition",
        "apiextensions.k8s.io/v1",
        apiextensions_v1_pb2.CustomResourceDefinition,
        False,
        ("crd", "crds"),
    ),
    _flows("flowschemas", "FlowSchema"),
    _flows("prioritylevelconfigurations", "PriorityLevelConfiguration"),
    Resource("apiservices", "APIService", "apiregistration.k8s.io/v1", apiregistration_v1_pb2.APIService, False),
)

BY_PLURAL: dict[str, Resource] = {resource.plural: resource for resource in RESOURCES}
BY_KIND: dict[str, Resource] = {resource.kind: resource for resource in RESOURCES}
BY_MESSAGE: dict[type[Message], Resource] = {resource.message: resource for resource in RESOURCES}

SUBRESOURCE_MESSAGES: dict[type[Message], tuple[str, str]] = {
    core_v1_pb2.Binding: ("v1", "Binding"),
    policy_v1_pb2.Eviction: ("policy/v1", "Eviction"),
    autoscaling_v1_pb2.Scale: ("autoscaling/v1", "Scale"),
    meta_v1_pb2.Status: ("v1", "Status"),
    meta_v1_pb2.DeleteOptions: ("v1", "DeleteOptions"),
}
"""API version and kind of the messages that travel but are not stored."""


def of(message: Message) -> Resource:
    """The row of an object. Raises KeyError when the message is no object.

    One of a custom kind gets a row of its own, named by kind and group (``Widget.example.com``): how requests name the
    kind, and whether its objects have a namespace, only its definition says.
    """
    try:
        return BY_MESSAGE[type(message)]
    except KeyError:
        if not isinstance(message, apiextensions_v1_pb2.CustomObject):
            raise
    group = message.apiVersion.rpartition("/")[0]
    return Resource(f"{message.kind}.{group}", message.kind, message.apiVersion, type(message))


def kind_of(message: Message) -> tuple[str, str]:
    """API version and kind of an object, also of a custom kind. Raises KeyError for other messages."""
    if isinstance(message, apiextensions_v1_pb2.CustomObject):
        return message.apiVersion, message.kind
    row = BY_MESSAGE[type(message)]
    return row.api_version, row.kind


class _Messages(dict[str, type[KubernetesObject]]):
    def __missing__(self, plural: str) -> type[KubernetesObject]:
        if "." in plural:
            return apiextensions_v1_pb2.CustomObject
        raise KeyError(plural)


MESSAGES = _Messages({plural: resource.message for plural, resource in BY_PLURAL.items()})
"""By plural, the class of the objects of a kind; custom kinds, whose names have a dot, share one."""


def find(name: str) -> Resource | None:
    """The row for a plural, kind, lower-case kind or short name, as people type it; None for an unknown one."""
    for resource in RESOURCES:
        if name in (resource.plural, resource.kind, resource.kind.lower()) or name in resource.short_names:
            return resource
    return None


def key(resource: Resource, namespace: str, name: str) -> bytes:
    """The key of an object in the store. ``namespace`` is ignored for kinds that have none."""
    if resource.namespaced:
        return b"/registry/%b/%b/%b" % (resource.plural.encode(), namespace.encode(), name.encode())
    return b"/registry/%b/%b" % (resource.plural.encode(), name.encode())


def prefix(resource: Resource, namespace: str = "") -> bytes:
    """The common prefix of the keys of all objects of a kind, or of those in one namespace."""
    if resource.namespaced and namespace:
        return b"/registry/%b/%b/" % (resource.plural.encode(), namespace.encode())
    return b"/registry/%b/" % resource.plural.encode()


def plural_of(key: str) -> str:
    """The plural in a key of the store."""
    return key.split("/", 3)[2]
