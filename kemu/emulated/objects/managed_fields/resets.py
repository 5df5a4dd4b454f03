"""Fields that a write of a kind resets, by the way it takes: ``GetResetFields`` of the strategies in ``pkg/registry``.

What is reset belongs to no manager that writes this way.
"""

from __future__ import annotations

from functools import lru_cache, partial

from kemu.emulated.objects import resources
from kemu.emulated.objects.managed_fields import fieldsets
from kemu.emulated.objects.managed_fields.fieldsets import FieldSet, Path
from kemu.emulated.objects.managed_fields.updaters import Filter

_STATUS, _SPEC = ("f:status",), ("f:spec",)

_BESIDE_SPEC: dict[str, list[Path]] = {
    "Pod": [("f:metadata", "f:deletionTimestamp"), ("f:metadata", "f:ownerReferences")],
    "Deployment": [("f:metadata", "f:labels")],
    "VolumeAttachment": [("f:metadata",)],
    "ResourceClaim": [("f:metadata",)],
    "FlowSchema": [("f:metadata",)],
    "PriorityLevelConfiguration": [("f:metadata",)],
    "APIService": [("f:metadata",)],
    "ValidatingAdmissionPolicy": [("f:metadata",)],
    "CertificateSigningRequest": [("f:status", "f:conditions")],
}
"""What the subresource ``status`` resets."""


@lru_cache(None)
def of(kind: str, subresource: str) -> Filter:
    """From a set of fields to those of them that are not reset."""
    resource = resources.BY_KIND.get(kind)
    if resource is None or not resource.has_status:
        return _everything
    if subresource == "status":
        doomed = [_SPEC, *_BESIDE_SPEC.get(kind, [])]
    elif subresource in ("resize", "ephemeralcontainers"):
        # Their strategies name a filter, but the storages for these ways do not hand it on.
        return _everything
    elif subresource == "approval":
        doomed = [_SPEC, ("f:status", "f:certificate")]
    elif kind == "CertificateSigningRequest":
        doomed = [_SPEC, _STATUS]
    else:
        doomed = [_STATUS]
    return partial(_without, doomed=fieldsets.of(doomed))


@lru_cache(None)
def of_custom(has_status: bool, subresource: str) -> Filter:
    """Those of a custom kind: whether there is a subresource for the status decides."""
    if not has_status:
        return _everything
    doomed: list[Path] = [("f:metadata",), _SPEC] if subresource == "status" else [_STATUS]
    return partial(_without, doomed=fieldsets.of(doomed))


def _everything(fields: FieldSet) -> FieldSet:
    return fields


def _without(fields: FieldSet, *, doomed: FieldSet) -> FieldSet:
    return fieldsets.without(fields, doomed)
