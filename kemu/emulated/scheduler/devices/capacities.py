"""Consumable capacity: how much of a device a request takes, and whether that much is left."""

from __future__ import annotations

from collections.abc import Mapping

from kemu.emulated.objects.amounts.quantities import NANO, Format, Quantity
from kemu.emulated.scheduler.devices.inventory import Amount, Capacity, Device

Consumed = dict[str, int]
"""Billionths by the name of the capacity."""


def fits(
    device: Device,
    requested: Mapping[str, Amount],
    allocated: Mapping[str, int],
    allocating: Mapping[str, int],
) -> bool:
    """Whether a device has room for a request beside what is allocated, and being allocated, of it; and whether the
    request keeps to the policies (``CmpRequestOverCapacity``)."""
    for name in requested:
        if name not in device.capacity:
            return False
    for name, capacity in device.capacity.items():
        taken = consumed(requested.get(name), capacity)
        if _violates(taken, capacity):
            return False
        if taken.nano + allocated.get(name, 0) + allocating.get(name, 0) > capacity.total.nano:
            return False
    return True


def consumed_by(device: Device, requested: Mapping[str, Amount]) -> dict[str, Amount]:
    """What a request consumes of each capacity (``GetConsumedCapacityFromRequest``)."""
    return {name: consumed(requested.get(name), capacity) for name, capacity in device.capacity.items()}


def consumed(requested: Amount | None, capacity: Capacity) -> Amount:
    """The amount, rounded up as the policy says (``calculateConsumedCapacity``)."""
    if requested is None:
        return capacity.default or capacity.total
    if capacity.least is not None:
        return _rounded(requested, capacity.least, capacity.step)
    for value in capacity.values:
        if requested.nano <= value.nano:
            return value
    return requested


def _rounded(requested: Amount, least: Amount, step: Amount | None) -> Amount:
    if requested.nano < least.nano:
        return least
    if step is None:
        return requested
    start, width = least.quantity.value, step.quantity.value
    steps = -(-(requested.quantity.value - start) // width)
    nano = (start + steps * width) * NANO
    return Amount(nano, Quantity(nano, Format.BINARY_SI))


def _violates(taken: Amount, capacity: Capacity) -> bool:
    if not capacity.policy or (capacity.default is not None and taken == capacity.default):
        return False
    if capacity.least is not None or capacity.largest is not None or capacity.step is not None:
        if capacity.largest is not None and taken.nano > capacity.largest.nano:
            return True
        if capacity.step is None:
            return False
        start = capacity.least.quantity.value if capacity.least is not None else 0
        return (taken.quantity.value - start) % capacity.step.quantity.value != 0
    return bool(capacity.values) and all(taken.nano != value.nano for value in capacity.values)
