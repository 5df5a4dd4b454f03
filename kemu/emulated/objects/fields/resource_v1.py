"""The fields of devices: claims, their templates, classes, slices (resource.k8s.io)."""

from __future__ import annotations

from kemu.emulated.objects.fields.sorts import Reason, Sort, message

ACCEPTED = ("DeviceClass", "ResourceClaim", "ResourceClaimTemplate", "ResourceSlice")
"""Kinds that scenarios may hold."""

SORTS: dict[str, Sort] = {
    **message("DeviceClass", parts="metadata spec"),
    **message("DeviceClassSpec", acts="selectors extendedResourceName", harmless={Reason.CONTAINERS: "config"}),
    **message("ResourceClaim", parts="metadata spec status"),
    **message("ResourceClaimSpec", parts="devices"),
    **message("DeviceClaim", acts="requests constraints", harmless={Reason.CONTAINERS: "config"}),
    **message("ResourceClaimStatus", acts="allocation reservedFor devices"),
    **message("ResourceClaimTemplate", parts="metadata spec"),
    **message("ResourceClaimTemplateSpec", parts="metadata spec"),
    **message("ResourceSlice", parts="metadata spec"),
    **message(
        "ResourceSliceSpec",
        acts="driver pool nodeName nodeSelector allNodes devices perDeviceNodeSelection sharedCounters",
    ),
}
