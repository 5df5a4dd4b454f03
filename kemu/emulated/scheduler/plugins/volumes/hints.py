"""Queueing hints that several plugins for volumes give."""

from __future__ import annotations

from kemu.emulated.objects.volumes import claims
from kemu.emulated.scheduler.cache.pods import PodInfo
from kemu.messages.k8s import core_v1_pb2
from kemu.messages.k8s.objects import KubernetesObject


def names_claim(pod: PodInfo, old: core_v1_pb2.PersistentVolumeClaim, new: core_v1_pb2.PersistentVolumeClaim) -> bool:
    """The claim is one that a volume of the pod names."""
    metadata = new.metadata
    return bool(metadata.namespace == pod.namespace) and metadata.name in pod.template.claims


def uses_claim(pod: PodInfo, old: core_v1_pb2.PersistentVolumeClaim, new: KubernetesObject) -> bool:
    """The claim is one that the pod names, or that of one of its ephemeral volumes."""
    metadata = new.metadata
    return bool(metadata.namespace == pod.namespace) and metadata.name in claims.claim_names(pod.pod)
