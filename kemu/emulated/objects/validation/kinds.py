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
from kemu.messages.k8s import apiextensions_v1_pb2, policy_v1_pb2
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
    if not isinstance(new, policy_v1_pb2.PodDisruptionBudget):
        # rest.BeforeUpdate checks it, and most strategies do so again.
        found += [cause for cause in found if not cause.field.startswith("metadata.finalizers[")]
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


def _checked_status(new: KubernetesObject, old: KubernetesObject, found: list[Cause]) -> list[Cause]:
    if found and not isinstance(new, policy_v1_pb2.PodDisruptionBudget):
        # rest.BeforeUpdate checks it, and most strategies do so again.
        found += [cause for cause in found if not cause.field.startswith("metadata.finalizers[")]
    rules = _RULES[type(new)]
    if rules.status_update is not None:
        rules.status_update(new, old, found)
    return found
