"""Annotations that once said how AppArmor confines containers, and the fields that they have become."""

from __future__ import annotations

from collections.abc import Iterator

from kemu.emulated.objects.validation.pod_specs import security
from kemu.errors import Cause
from kemu.messages.k8s import core_v1_pb2

PREFIX = "container.apparmor.security.beta.kubernetes.io/"
DEPRECATED = 'deprecated since v1.30; use the "appArmorProfile" field instead'
_LOCALHOST = "localhost/"
_TYPES = {"unconfined": "Unconfined", "runtime/default": "RuntimeDefault"}


def field_of(annotation: str) -> core_v1_pb2.AppArmorProfile | None:
    """``ApparmorFieldForAnnotation``."""
    if annotation.startswith(_LOCALHOST) and annotation != _LOCALHOST:
        profile = annotation.removeprefix(_LOCALHOST)
        return core_v1_pb2.AppArmorProfile(type="Localhost", localhostProfile=profile)
    return core_v1_pb2.AppArmorProfile(type=_TYPES[annotation]) if annotation in _TYPES else None


def set_fields(pod: core_v1_pb2.Pod) -> Iterator[str]:
    """Give containers the fields that annotations of a new pod stand for (``applyAppArmorVersionSkew``). What is
    yielded are warnings."""
    spec = pod.spec
    if spec.os.name == "windows":
        return
    of_pod = spec.securityContext.appArmorProfile if spec.securityContext.HasField("appArmorProfile") else None
    # A new pod has no ephemeral containers.
    for container in (*spec.initContainers, *spec.containers):
        key = PREFIX + container.name
        if key not in pod.metadata.annotations or container.securityContext.HasField("appArmorProfile"):
            continue
        field = field_of(pod.metadata.annotations[key])
        problems: list[Cause] = []
        if field is not None:
            security.check_app_armor(field, "", problems)
        if field is None or problems:
            yield f"metadata.annotations[{key}]: {DEPRECATED}"
        elif field != of_pod:
            container.securityContext.appArmorProfile.CopyFrom(field)
            yield f"metadata.annotations[{key}]: {DEPRECATED}"
