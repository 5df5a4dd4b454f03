"""Kinds of Kubernetes that kemu does not simulate: why, and what a scenario may say instead.

Those that the API server stores are refused in scenarios all the same: no component would act on them.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Unsimulated:
    why: str
    instead: str
    controller: str = ""
    """The controller that acts on the kind: a scenario that names it may hold such objects."""


LEAVE_OUT = "leave it out"
_NO_RANGES = Unsimulated(
    "its controller, service-cidr, does not run",
    "name it and the other controllers in spec.controllers",
    "service-cidr",
)
_NO_CERTIFICATES = "nobody signs certificates but kemu up"
_NO_PODS_FROM = "write the pods themselves, or a workload"

UNSIMULATED: Mapping[str, Unsimulated] = {
    "HorizontalPodAutoscaler": Unsimulated(
        "its controller, horizontal-pod-autoscaler, does not run",
        "name it and the other controllers in spec.controllers, or change spec.replicas by events:"
        " {at: 1m, patch: {kind: Deployment, …}}",
        "horizontal-pod-autoscaler",
    ),
    "VerticalPodAutoscaler": Unsimulated("kemu has no autoscaler of pods", "write the requests into the pods"),
    "APIService": Unsimulated("kemu's API server is never extended; kemu up makes those of its own", LEAVE_OUT),
    "CertificateSigningRequest": Unsimulated(_NO_CERTIFICATES, LEAVE_OUT),
    "IPAddress": _NO_RANGES,
    "ServiceCIDR": _NO_RANGES,
    "PodTemplate": Unsimulated("nobody makes pods of it", _NO_PODS_FROM),
}  # fmt: skip
"""By kind, those that the API server stores too."""
