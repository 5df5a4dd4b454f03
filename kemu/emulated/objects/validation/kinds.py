"""The entry points of validation; the checks themselves are in one module for each API group.

:func:`validate_create`, :func:`validate_update` and :func:`validate_status_update` return causes in a fixed order, none
for a valid object; :func:`kemu.emulated.objects.validation.causes.error` turns them into an error. Callers fill in
defaults first (:mod:`kemu.emulated.objects.defaulting.defaults`). Pods are checked in
:mod:`kemu.emulated.objects.validation.pod_specs.pods`.
"""

from __future__ import annotations

from dataclasses import replace

from google.protobuf.message import Message

from kemu.emulated.objects import resources
from kemu.emulated.objects.validation import core, groups, metadata, quotas, small_groups, storage
from kemu.emulated.objects.validation.control_plane import flowcontrol, rbac, registrations
from kemu.emulated.objects.validation.devices import claims, slices
from kemu.emulated.objects.validation.extensions import admission_registration, definitions
from kemu.emulated.objects.validation.metadata import AS_UPDATE, NOT, PLAIN, WITH_DOMAINS, MetadataChecks
from kemu.emulated.objects.validation.networks import endpoints, ingresses
from kemu.emulated.objects.validation.rules import Rules
from kemu.emulated.objects.validation.workloads import apps, batch
from kemu.errors import Cause
from kemu.messages.k8s import (
    admissionregistration_v1_pb2,
    apiextensions_v1_pb2,
    apiregistration_v1_pb2,
    apps_v1_pb2,
    batch_v1_pb2,
    certificates_v1_pb2,
    coordination_v1_pb2,
    core_v1_pb2,
    discovery_v1_pb2,
    flowcontrol_v1_pb2,
    networking_v1_pb2,
    node_v1_pb2,
    policy_v1_pb2,
    rbac_v1_pb2,
    resource_v1_pb2,
    storage_v1_pb2,
)
from kemu.messages.k8s.objects import KubernetesObject

_RULES: dict[type[Message], Rules] = {
    kind: rules
    for group in (
        core,
        endpoints,
        quotas,
        storage,
        apps,
        batch,
        claims,
        slices,
        groups,
        ingresses,
        rbac,
        flowcontrol,
        registrations,
        admission_registration,
        definitions,
        small_groups,
    )
    for kind, rules in group.RULES.items()
}


_RENEWED = MetadataChecks(update=NOT, renewed=WITH_DOMAINS)
_PLAINLY_RENEWED = MetadataChecks(create=PLAIN, update=NOT, renewed=PLAIN)
_METADATA: dict[type[Message], MetadataChecks] = {
    **dict.fromkeys(
        (
            core_v1_pb2.Namespace,
            core_v1_pb2.Node,
            apps_v1_pb2.ControllerRevision,
            batch_v1_pb2.Job,
            certificates_v1_pb2.CertificateSigningRequest,
            rbac_v1_pb2.ClusterRole,
            rbac_v1_pb2.ClusterRoleBinding,
            rbac_v1_pb2.Role,
            rbac_v1_pb2.RoleBinding,
            resource_v1_pb2.ResourceClaim,
            resource_v1_pb2.ResourceClaimTemplate,
            storage_v1_pb2.CSIStorageCapacity,
            storage_v1_pb2.StorageClass,
        ),
        metadata.ALSO_RENEWED,
    ),
    **dict.fromkeys(
        (
            core_v1_pb2.ConfigMap,
            core_v1_pb2.Endpoints,
            core_v1_pb2.PersistentVolumeClaim,
            core_v1_pb2.Pod,
            core_v1_pb2.Secret,
            core_v1_pb2.ServiceAccount,
            networking_v1_pb2.Ingress,
            networking_v1_pb2.IngressClass,
            storage_v1_pb2.VolumeAttributesClass,
        ),
        replace(metadata.ALSO_RENEWED, first_changed=True),
    ),
    resource_v1_pb2.DeviceClass: replace(metadata.ALSO_RENEWED, prefixes=False),
    **dict.fromkeys(
        (
            core_v1_pb2.LimitRange,
            discovery_v1_pb2.EndpointSlice,
            flowcontrol_v1_pb2.FlowSchema,
            flowcontrol_v1_pb2.PriorityLevelConfiguration,
            storage_v1_pb2.CSINode,
        ),
        _RENEWED,
    ),
    storage_v1_pb2.VolumeAttachment: replace(_RENEWED, status=AS_UPDATE),
    core_v1_pb2.PersistentVolume: replace(_RENEWED, times=2),
    **dict.fromkeys(
        (
            admissionregistration_v1_pb2.MutatingAdmissionPolicy,
            admissionregistration_v1_pb2.MutatingAdmissionPolicyBinding,
            admissionregistration_v1_pb2.MutatingWebhookConfiguration,
            admissionregistration_v1_pb2.ValidatingAdmissionPolicyBinding,
            admissionregistration_v1_pb2.ValidatingWebhookConfiguration,
        ),
        _PLAINLY_RENEWED,
    ),
    admissionregistration_v1_pb2.ValidatingAdmissionPolicy: replace(_PLAINLY_RENEWED, status=NOT),
    apiextensions_v1_pb2.CustomResourceDefinition: MetadataChecks(create=PLAIN, update=PLAIN, status=PLAIN),
    apiregistration_v1_pb2.APIService: MetadataChecks(create=PLAIN, update=PLAIN, renewed=PLAIN, status=PLAIN),
    batch_v1_pb2.CronJob: MetadataChecks(status=NOT),
    coordination_v1_pb2.Lease: MetadataChecks(create=PLAIN, update=PLAIN),
    core_v1_pb2.Event: MetadataChecks(create=NOT, update=NOT),
    core_v1_pb2.ReplicationController: MetadataChecks(prefixes=False),
    node_v1_pb2.RuntimeClass: MetadataChecks(create=PLAIN, update=PLAIN, renewed=PLAIN),
    policy_v1_pb2.PodDisruptionBudget: MetadataChecks(create=NOT, update=NOT, status=NOT),
}
"""Kinds whose strategies check metadata in another way than most."""


def validate_create(obj: KubernetesObject) -> list[Cause]:
    """What is wrong with a new object; empty for a valid one. Raises KeyError for a message that is no object."""
    found: list[Cause] = []
    rules = _RULES[type(obj)]
    namespaced, ways = resources.of(obj).namespaced, _METADATA.get(type(obj), metadata.AS_MOST)
    metadata.check_create(obj.metadata, namespaced, ways, rules.name_rule, found)
    rules.create(obj, found)
    if not found and (ways.create == metadata.NOT or not ways.prefixes):
        metadata.check_create(obj.metadata, namespaced, metadata.OF_ANY_KIND, None, found)
    return found


def validate_update(new: KubernetesObject, old: KubernetesObject) -> list[Cause]:
    """What is wrong with replacing ``old`` by ``new``, both complete; the status is not checked."""
    found: list[Cause] = []
    rules = _RULES[type(new)]
    ways = _METADATA.get(type(new), metadata.AS_MOST)
    metadata.check_update(new.metadata, old.metadata, ways, rules.name_rule, found)
    if rules.update is None:
        rules.create(new, found)
    else:
        rules.update(new, old, found)
    return found


def validate_status_update(new: KubernetesObject, old: KubernetesObject) -> list[Cause]:
    """What is wrong with replacing the status of ``old`` by that of ``new``, both complete."""
    found: list[Cause] = []
    rules = _RULES[type(new)]
    ways = _METADATA.get(type(new), metadata.AS_MOST)
    metadata.check_update(new.metadata, old.metadata, ways, rules.name_rule, found, is_status=True)
    if rules.status_update is not None:
        rules.status_update(new, old, found)
    return found


def validate_status_alone(new: KubernetesObject, old: KubernetesObject) -> list[Cause]:
    """The same where nothing else can differ."""
    if not metadata.is_well(new.metadata):
        return validate_status_update(new, old)
    found: list[Cause] = []
    rules = _RULES[type(new)]
    if rules.status_update is not None:
        rules.status_update(new, old, found)
    return found
