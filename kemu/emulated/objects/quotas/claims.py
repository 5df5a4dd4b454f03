"""PersistentVolumeClaims in quotas (``pkg/quota/v1/evaluator/core/persistent_volume_claims.go``)."""

from __future__ import annotations

from collections.abc import Mapping

from kemu.emulated.objects.amounts import quantities, resource_lists
from kemu.emulated.objects.amounts.quantities import Quantity
from kemu.emulated.objects.quotas import evaluators, scopes
from kemu.emulated.objects.quotas.scopes import Selector
from kemu.messages.k8s import core_v1_pb2

CLAIMS, STORAGE = "persistentvolumeclaims", "requests.storage"
CLASS_SUFFIX = ".storageclass.storage.k8s.io/"
CLASS_ANNOTATION = "volume.beta.kubernetes.io/storage-class"
_COUNT = "count/persistentvolumeclaims"


class ClaimEvaluator(evaluators.Evaluator[core_v1_pb2.PersistentVolumeClaim]):
    has_scopes = True

    def handles(
        self,
        operation: str,
        subresource: str,
        new: core_v1_pb2.PersistentVolumeClaim,
        old: core_v1_pb2.PersistentVolumeClaim | None,
    ) -> bool:
        # Kubernetes compares pointers to find out whether a status matters, so every one does
        # (``RequiresQuotaReplenish``).
        return subresource in ("", "status")

    def counts(self, name: str) -> bool:
        return name in (_COUNT, CLAIMS, STORAGE) or name.endswith((CLASS_SUFFIX + CLAIMS, CLASS_SUFFIX + STORAGE))

    def in_scope(self, selector: Selector, obj: core_v1_pb2.PersistentVolumeClaim) -> bool:
        return scopes.matches_claim(selector, obj)

    def usage(self, obj: core_v1_pb2.PersistentVolumeClaim, now_unix_ns: int) -> Mapping[str, Quantity]:
        one = resource_lists.ONE
        counted = {CLAIMS: one, _COUNT: one}
        storage_class = class_of(obj)
        if storage_class:
            counted[storage_class + CLASS_SUFFIX + CLAIMS] = one
        storage = _storage(obj)
        if storage is not None:
            counted[STORAGE] = storage
            if storage_class:
                counted[storage_class + CLASS_SUFFIX + STORAGE] = storage
        return counted

    def frees(
        self, old: core_v1_pb2.PersistentVolumeClaim, new: core_v1_pb2.PersistentVolumeClaim, now_unix_ns: int
    ) -> bool:
        return True


def class_of(claim: core_v1_pb2.PersistentVolumeClaim) -> str:
    """``GetPersistentVolumeClaimClass``."""
    annotations = claim.metadata.annotations
    found: str = annotations.get(CLASS_ANNOTATION, claim.spec.storageClassName)
    return found


def _storage(claim: core_v1_pb2.PersistentVolumeClaim) -> Quantity | None:
    """In whole bytes; what has been allocated while the volume grows counts if it is more."""
    requests = claim.spec.resources.requests
    if "storage" not in requests:
        return None
    wanted = _whole(quantities.parse(requests["storage"].string))
    allocated = claim.status.allocatedResources
    if "storage" in allocated:
        given = quantities.parse(allocated["storage"].string)
        if given.nano > wanted.nano:
            return _whole(given)
    return wanted


def _whole(quantity: Quantity) -> Quantity:
    return Quantity(-(-quantity.nano // quantities.NANO) * quantities.NANO, quantity.format)
