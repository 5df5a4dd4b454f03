"""The entry points of validation; the checks themselves are in one module for each API group.

:func:`validate_create`, :func:`validate_update` and :func:`validate_status_update` return causes in a fixed order, none
for a valid object; :func:`kemu.emulated.objects.validation.causes.error` turns them into an error. Callers fill in
defaults first (:mod:`kemu.emulated.objects.defaulting.defaults`). Pods are checked in
:mod:`kemu.emulated.objects.validation.pod_specs.pods`.
"""

from __future__ import annotations

from google.protobuf.message import Message

from kemu.emulated.objects import resources
from kemu.emulated.objects.validation import core, devices, groups, quotas, small_groups, storage
from kemu.emulated.objects.validation.control_plane import flowcontrol, registrations
from kemu.emulated.objects.validation.extensions import admission_registration, definitions
from kemu.emulated.objects.validation.metadata import check_metadata, check_metadata_kept, check_metadata_update
from kemu.emulated.objects.validation.rules import Rules
from kemu.emulated.objects.validation.workloads import apps, batch
from kemu.errors import Cause
from kemu.messages.k8s import (
    apiextensions_v1_pb2,
    batch_v1_pb2,
    core_v1_pb2,
    networking_v1_pb2,
    node_v1_pb2,
    policy_v1_pb2,
    rbac_v1_pb2,
    storage_v1_pb2,
)
from kemu.messages.k8s.objects import KubernetesObject

_RULES: dict[type[Message], Rules] = {
    kind: rules
    for group in (
        core,
        quotas,
        storage,
        apps,
        batch,
        devices,
        groups,
        flowcontrol,
        registrations,
        admission_registration,
        definitions,
        small_groups,
    )
    for kind, rules in group.RULES.items()
}


_ANY_FINALIZER = (apiextensions_v1_pb2.CustomResourceDefinition,)
"""Kinds whose finalizers need no domain."""


_OF_NEW = ("metadata.labels", "metadata.annotations", "metadata.ownerReferences", "metadata.finalizers[")
_WHOLE = frozenset(
    (
        core_v1_pb2.ConfigMap,
        core_v1_pb2.Endpoints,
        core_v1_pb2.Namespace,
        core_v1_pb2.Node,
        core_v1_pb2.PersistentVolumeClaim,
        core_v1_pb2.Pod,
        core_v1_pb2.Secret,
        core_v1_pb2.ServiceAccount,
        batch_v1_pb2.Job,
        networking_v1_pb2.IngressClass,
        node_v1_pb2.RuntimeClass,
        rbac_v1_pb2.ClusterRole,
        rbac_v1_pb2.ClusterRoleBinding,
        rbac_v1_pb2.Role,
        rbac_v1_pb2.RoleBinding,
        storage_v1_pb2.CSIStorageCapacity,
        storage_v1_pb2.StorageClass,
    )
)
"""Kinds whose strategies check an update as a new object, too."""


def validate_create(obj: KubernetesObject) -> list[Cause]:
    """What is wrong with a new object; empty for a valid one. Raises KeyError for a message that is no object."""
    found: list[Cause] = []
    rules = _RULES[type(obj)]
    any_name = type(obj) in _ANY_FINALIZER
    check_metadata(obj.metadata, resources.of(obj).namespaced, rules.name_rule, found, any_finalizer=any_name)
    rules.create(obj, found)
    return found


def validate_update(new: KubernetesObject, old: KubernetesObject) -> list[Cause]:
    """What is wrong with replacing ``old`` by ``new``, both complete; the status is not checked."""
    found: list[Cause] = []
    check_metadata_update(new.metadata, old.metadata, found, any_finalizer=type(new) in _ANY_FINALIZER)
    if found:
        found = _as_told(found, type(new), is_whole=type(new) in _WHOLE)
    rules = _RULES[type(new)]
    if rules.update is None:
        rules.create(new, found)
    else:
        rules.update(new, old, found)
    return found


def validate_status_update(new: KubernetesObject, old: KubernetesObject) -> list[Cause]:
    """What is wrong with replacing the status of ``old`` by that of ``new``, both complete."""
    found: list[Cause] = []
    check_metadata_update(new.metadata, old.metadata, found, any_finalizer=type(new) in _ANY_FINALIZER)
    return _checked_status(new, old, found)


def validate_status_alone(new: KubernetesObject, old: KubernetesObject) -> list[Cause]:
    """The same where nothing else can differ."""
    found: list[Cause] = []
    check_metadata_kept(new.metadata, found, any_finalizer=type(new) in _ANY_FINALIZER)
    return _checked_status(new, old, found)


def _as_told(found: list[Cause], kind: type[Message], *, is_whole: bool) -> list[Cause]:
    """What is wrong with metadata, as often as Kubernetes says so: ``rest.BeforeUpdate`` checks them as those of a new
    object and as an update, the strategies of most kinds do the latter again, and some also the former."""
    of_new = [cause for cause in found if cause.field.startswith(_OF_NEW)]
    of_update = [cause for cause in found if not cause.field.startswith("metadata.finalizers[")]
    again = [] if kind is policy_v1_pb2.PodDisruptionBudget else of_update
    return [*of_new, *of_update, *again, *(of_new if is_whole else ())]


def _checked_status(new: KubernetesObject, old: KubernetesObject, found: list[Cause]) -> list[Cause]:
    if found:
        found = _as_told(found, type(new), is_whole=False)
    rules = _RULES[type(new)]
    if rules.status_update is not None:
        rules.status_update(new, old, found)
    return found
