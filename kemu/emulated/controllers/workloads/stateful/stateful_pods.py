"""What a pod of a StatefulSet is like (``pkg/controller/statefulset/stateful_set_utils.go``)."""

from __future__ import annotations

import re

from kemu.emulated.objects import meta
from kemu.emulated.objects.pods import pod_phases
from kemu.messages.k8s import apps_v1_pb2, core_v1_pb2
from kemu.messages.k8s.objects import KubernetesObject

NAME_LABEL = "statefulset.kubernetes.io/pod-name"
INDEX_LABEL = "apps.kubernetes.io/pod-index"
_NAME = re.compile("(.*)-([0-9]+)", re.DOTALL)


def parent_and_ordinal(name: str) -> tuple[str, int]:
    """Parent and ordinal of the name of a pod; the ordinal is -1 if there is none."""
    match = _NAME.fullmatch(name)
    if match is None:
        return "", -1
    number = int(match[2])
    return match[1], number if number < 2**31 else -1


def ordinal_of(pod: core_v1_pb2.Pod) -> int:
    return parent_and_ordinal(pod.metadata.name)[1]


def is_member(owner: KubernetesObject, pod: core_v1_pb2.Pod) -> bool:
    return parent_and_ordinal(pod.metadata.name)[0] == str(owner.metadata.name)


def ordinals(owner: apps_v1_pb2.StatefulSet) -> range:
    """That its pods are to have."""
    first = owner.spec.ordinals.start
    return range(first, first + owner.spec.replicas)


def name(owner: KubernetesObject, ordinal: int) -> str:
    return f"{owner.metadata.name}-{ordinal}"


def claim_name(owner: KubernetesObject, template: core_v1_pb2.PersistentVolumeClaim, ordinal: int) -> str:
    return f"{template.metadata.name}-{owner.metadata.name}-{ordinal}"


def is_identity_right(owner: KubernetesObject, pod: core_v1_pb2.Pod) -> bool:
    """``identityMatches``."""
    parent, ordinal = parent_and_ordinal(pod.metadata.name)
    return (
        ordinal >= 0
        and parent == owner.metadata.name
        and pod.metadata.name == name(owner, ordinal)
        and pod.metadata.labels.get(NAME_LABEL) == pod.metadata.name
    )


def set_identity(pod: core_v1_pb2.Pod, ordinal: int) -> None:
    """``updateIdentity``."""
    pod.metadata.labels[NAME_LABEL] = pod.metadata.name
    pod.metadata.labels[INDEX_LABEL] = str(ordinal)


def is_storage_right(owner: apps_v1_pb2.StatefulSet, pod: core_v1_pb2.Pod) -> bool:
    """Whether the pod mounts the claims that were made for it (``storageMatches``)."""
    if not owner.spec.volumeClaimTemplates:
        return True
    ordinal = ordinal_of(pod)
    volumes = {volume.name: volume.volumeSource for volume in pod.spec.volumes}
    return all(
        template.metadata.name in volumes
        and volumes[template.metadata.name].persistentVolumeClaim.claimName == claim_name(owner, template, ordinal)
        for template in owner.spec.volumeClaimTemplates
    )


def set_storage(owner: apps_v1_pb2.StatefulSet, pod: core_v1_pb2.Pod, ordinal: int) -> None:
    """``updateStorage``: a claim takes the place of a volume of its name."""
    templates = owner.spec.volumeClaimTemplates
    if not templates:
        return
    kept = [core_v1_pb2.Volume.FromString(volume.SerializeToString()) for volume in pod.spec.volumes]
    names = [template.metadata.name for template in templates]
    del pod.spec.volumes[:]
    for template in templates:
        volume = pod.spec.volumes.add(name=template.metadata.name)
        volume.volumeSource.persistentVolumeClaim.claimName = claim_name(owner, template, ordinal)
    pod.spec.volumes.extend(volume for volume in kept if volume.name not in names)


def is_running_and_ready(pod: core_v1_pb2.Pod) -> bool:
    return pod.status.phase == pod_phases.RUNNING and meta.is_ready(pod)


def is_terminating(pod: core_v1_pb2.Pod) -> bool:
    return bool(pod.metadata.HasField("deletionTimestamp"))
