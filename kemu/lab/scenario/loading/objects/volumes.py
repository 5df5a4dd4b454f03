"""Whether a scenario speaks of volumes: only then do schedulers watch them and their controllers run."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from kemu.emulated.client.volume_drivers import Storage
from kemu.emulated.objects import resources
from kemu.emulated.objects.fields import storage_v1
from kemu.lab.scenario import scenarios
from kemu.lab.scenario.format.events import Event
from kemu.lab.scenario.format.workloads import Workload
from kemu.lab.scenario.loading.objects import manifests
from kemu.messages.k8s import storage_v1_pb2


def are_used(setup: Sequence[scenarios.Manifest], events: Sequence[Event], workloads: Sequence[Workload]) -> bool:
    """Some object is of storage, or some pod wants a volume that outlives it."""
    objects = [each.message for each in setup] + [one for event in events for one in event.objects]
    objects += [workload.template for workload in workloads if workload.template is not None]
    return any(resources.of(one).kind in storage_v1.ACCEPTED or _wants_volumes(one) for one in objects)


def may_grow(storage: Storage, setup: Sequence[scenarios.Manifest], events: Sequence[Event]) -> bool:
    """Whether kubelets have to look for claims that have grown."""
    if storage.expansion is not None:
        return storage.expansion
    objects = [each.message for each in setup] + [one for event in events for one in event.objects]
    return any(isinstance(one, storage_v1_pb2.StorageClass) and one.allowVolumeExpansion for one in objects)


def may_have_attributes(storage: Storage, setup: Sequence[scenarios.Manifest], events: Sequence[Event]) -> bool:
    """Whether there may be VolumeAttributesClasses. Where clients may bring anything, kubelets are told to look for
    volumes that have grown."""
    objects = [each.message for each in setup] + [one for event in events for one in event.objects]
    return bool(storage.expansion) or any(isinstance(one, storage_v1_pb2.VolumeAttributesClass) for one in objects)


def own_claims(obj: Any) -> bool:
    """Whether claims go with a pod, or with the pods that an object makes: the garbage collector deletes them."""
    return any(
        volume.volumeSource.HasField("ephemeral")
        for one in (obj, manifests.template(obj))
        if one is not None
        for volume in getattr(getattr(one, "spec", None), "volumes", ())
    )


def _wants_volumes(obj: Any) -> bool:
    found: Iterable[Any] = (obj, manifests.template(obj))
    if len(getattr(getattr(obj, "spec", None), "volumeClaimTemplates", ())):
        return True
    return any(
        volume.volumeSource.HasField("persistentVolumeClaim") or volume.volumeSource.HasField("ephemeral")
        for one in found
        if one is not None
        for volume in getattr(getattr(one, "spec", None), "volumes", ())
    )
