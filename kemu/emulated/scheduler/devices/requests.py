"""Requests of claims as the allocator reads them: a request, or one of the alternatives of a prioritized list."""

from __future__ import annotations

from collections.abc import Sequence

from kemu.emulated.scheduler.devices.inventory import Amount, Device, amount
from kemu.messages.k8s import resource_v1_pb2

ALL = "All"
EXACT_COUNT = "ExactCount"


class Request:
    """``parent`` is the name of the request that it is an alternative of."""

    __slots__ = (
        "admin", "amounts", "class_", "class_name", "count", "mode", "name", "parent", "selectors",
        "tolerations",
    )  # fmt: skip

    def __init__(
        self,
        name: str,
        parent: str,
        message: resource_v1_pb2.ExactDeviceRequest | resource_v1_pb2.DeviceSubRequest,
        *,
        admin: bool = False,
    ) -> None:
        self.name = name
        self.parent = parent
        self.class_name: str = message.deviceClassName
        self.mode: str = message.allocationMode
        self.count: int = message.count
        self.admin = admin
        self.selectors: Sequence[resource_v1_pb2.DeviceSelector] = message.selectors
        self.tolerations: Sequence[resource_v1_pb2.DeviceToleration] = message.tolerations
        self.amounts: dict[str, Amount] = {name: amount(one) for name, one in message.capacity.requests.items()}
        self.class_: resource_v1_pb2.DeviceClass | None = None

    @property
    def full_name(self) -> str:
        return f"{self.parent}/{self.name}" if self.parent else self.name

    @property
    def base(self) -> str:
        """The name of the request of the claim."""
        return self.parent or self.name

    @property
    def sub(self) -> str:
        """The name among the alternatives."""
        return self.name if self.parent else ""

    def tolerates_all(self, device: Device) -> bool:
        return all(any(tolerates(one, taint) for one in self.tolerations) for taint in device.taints)


def tolerates(toleration: resource_v1_pb2.DeviceToleration, taint: resource_v1_pb2.DeviceTaint) -> bool:
    """``ToleratesTaint``."""
    if toleration.effect and toleration.effect != taint.effect:
        return False
    if toleration.key and toleration.key != taint.key:
        return False
    if toleration.operator in ("", "Equal"):
        return bool(toleration.value == taint.value)
    return bool(toleration.operator == "Exists")


def of_claim(claim: resource_v1_pb2.ResourceClaim) -> list[list[Request]]:
    """For each request of the claim its alternatives; a request without a prioritized list has one."""
    found: list[list[Request]] = []
    for one in claim.spec.devices.requests:
        if one.firstAvailable:
            found.append([Request(sub.name, one.name, sub) for sub in one.firstAvailable])
        else:
            found.append([Request(one.name, "", one.exactly, admin=one.exactly.adminAccess)])
    return found
