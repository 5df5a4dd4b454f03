"""Fields that a write of a kind resets, by the way it takes: ``GetResetFields`` of the strategies in ``pkg/registry``.

What is reset belongs to no manager that writes this way.
"""

from __future__ import annotations

from functools import lru_cache, partial

from kemu.emulated.objects import resources
from kemu.emulated.objects.managed_fields import fieldsets
from kemu.emulated.objects.managed_fields.fieldsets import SELF, FieldSet, Path
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

_RESIZED = ("f:containers", "f:initContainers"), ("f:resources", "f:resizePolicy")


@lru_cache(None)
def of(kind: str, subresource: str) -> Filter:
    """From a set of fields to those of them that are not reset."""
    resource = resources.BY_KIND.get(kind)
    if resource is None or not resource.has_status:
        return _everything
    if subresource == "status":
        doomed = [_SPEC, *_BESIDE_SPEC.get(kind, [])]
    elif subresource == "resize":
        return _resized
    elif subresource == "ephemeralcontainers":
        return _ephemeral
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


def _resized(fields: FieldSet) -> FieldSet:
    """What a resize is about: all below ``spec.containers[*].resources`` and ``resizePolicy``, and what leads there
    (``podResizeStrategy``, whose filter names what is kept)."""
    lists, parts = _RESIZED
    found: FieldSet = {}
    spec = fields.get("f:spec", {})
    for name in lists:
        for step, node in spec.get(name, {}).items():
            kept = {part: inner for part, inner in node.items() if part in parts or part == SELF}
            if kept:
                found.setdefault("f:spec", {}).setdefault(name, {})[step] = kept
    for path in (("f:spec",), *(("f:spec", name) for name in lists)):
        if fieldsets.has(fields, path):
            fieldsets.insert(found, path)
    return found


def _ephemeral(fields: FieldSet) -> FieldSet:
    """What adding ephemeral containers is about (``podEphemeralContainersStrategy``)."""
    found: FieldSet = {}
    spec = fields.get("f:spec", {})
    if "f:ephemeralContainers" in spec:
        found["f:spec"] = {"f:ephemeralContainers": spec["f:ephemeralContainers"]}
    if fieldsets.has(fields, ("f:spec",)):
        fieldsets.insert(found, ("f:spec",))
    return found
