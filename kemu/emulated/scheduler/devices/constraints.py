"""Constraints between the devices of a claim: equal, or different, values of an attribute."""

from __future__ import annotations

from collections.abc import Iterable

from kemu.emulated.scheduler.devices.inventory import Device


class Constraint:
    """Devices come and go as the search tries them; each that was added is removed once."""

    def __init__(self, attribute: str, requests: Iterable[str]) -> None:
        self._attribute = attribute
        self._requests = frozenset(requests)
        self._devices = 0

    def _concerns(self, request: str, sub: str) -> bool:
        names = self._requests
        return not names or request in names or (bool(sub) and f"{request}/{sub}" in names)

    def add(self, request: str, sub: str, device: Device) -> bool:
        """Whether the device may join those that are there."""
        if not self._concerns(request, sub):
            return True
        value = device.attribute(self._attribute)
        if value is None or (self._devices and not self._accepts(value)):
            return False
        self._keep(request, value)
        self._devices += 1
        return True

    def remove(self, request: str, sub: str) -> None:
        if self._concerns(request, sub):
            self._drop(request)
            self._devices -= 1

    def _accepts(self, value: tuple[str, object]) -> bool:
        raise NotImplementedError

    def _keep(self, request: str, value: tuple[str, object]) -> None:
        raise NotImplementedError

    def _drop(self, request: str) -> None:
        raise NotImplementedError


class MatchAttribute(Constraint):
    """All have the value of the first."""

    _value: tuple[str, object] = "", None

    def _accepts(self, value: tuple[str, object]) -> bool:
        return bool(value[0]) and value == self._value

    def _keep(self, request: str, value: tuple[str, object]) -> None:
        if not self._devices:
            self._value = value

    def _drop(self, request: str) -> None:
        pass


class DistinctAttribute(Constraint):
    """No two have the same value. Of several devices of one request only the last is remembered, as in Kubernetes."""

    def __init__(self, attribute: str, requests: Iterable[str]) -> None:
        super().__init__(attribute, requests)
        self._values: dict[str, tuple[str, object]] = {}

    def _accepts(self, value: tuple[str, object]) -> bool:
        return all(value[0] and value != other for other in self._values.values())

    def _keep(self, request: str, value: tuple[str, object]) -> None:
        self._values[request] = value

    def _drop(self, request: str) -> None:
        self._values.pop(request, None)
