"""Containers that are added to a pod that runs: the subresource ``ephemeralcontainers``.

Mirrors ``podEphemeralContainersStrategy`` of ``pkg/registry/core/pod`` and ``ValidatePodEphemeralContainersUpdate`` of
``pkg/apis/core/validation``.
"""

from __future__ import annotations

from kemu.emulated.objects import names
from kemu.emulated.objects.validation import metadata
from kemu.emulated.objects.validation.causes import forbidden
from kemu.emulated.objects.validation.pod_specs import pods
from kemu.errors import Cause
from kemu.messages.k8s import core_v1_pb2

_MIRROR = "kubernetes.io/config.mirror"
_NOWHERE = "[]"
"""How Kubernetes writes a path without a name."""


def prepare(new: core_v1_pb2.Pod, old: core_v1_pb2.Pod) -> None:
    """Put back everything but the ephemeral containers (``dropNonEphemeralContainerUpdates``)."""
    sent = new.spec.ephemeralContainers[:]
    new.spec.CopyFrom(old.spec)
    new.status.CopyFrom(old.status)
    del new.spec.ephemeralContainers[:]
    new.spec.ephemeralContainers.extend(sent)
    fields = new.metadata.managedFields[:]
    new.metadata.CopyFrom(old.metadata)
    new.metadata.ClearField("resourceVersion")
    del new.metadata.managedFields[:]
    new.metadata.managedFields.extend(fields)
    if new.spec != old.spec:
        new.metadata.generation = old.metadata.generation + 1


def validate(new: core_v1_pb2.Pod, old: core_v1_pb2.Pod) -> list[Cause]:
    """Whether these containers may be added."""
    found: list[Cause] = []
    metadata.check_update(new.metadata, old.metadata, metadata.AS_MOST, names.dns_subdomain, found)
    pods.check_pod_spec(new.spec, "spec", found, pod_name=new.metadata.name, old=old.spec)
    if _MIRROR in old.metadata.annotations:
        return [forbidden(_NOWHERE, "static pods do not support ephemeral containers")]
    after = {one.ephemeralContainerCommon.name: one for one in new.spec.ephemeralContainers}
    for one in old.spec.ephemeralContainers:
        name = one.ephemeralContainerCommon.name
        text = f'existing ephemeral containers "{name}" may not be'
        if name not in after:
            found.append(forbidden("spec.ephemeralContainers", f"{text} removed\n"))
        elif after[name] != one:
            found.append(forbidden("spec.ephemeralContainers", f"{text} changed\n"))
    return found
