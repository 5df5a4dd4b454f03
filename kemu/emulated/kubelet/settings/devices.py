"""Devices of a node and the driver that publishes and prepares them, as a scenario states them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from kemu.emulated.settings.declared import REQUIRED, Complaint, setting
from kemu.emulated.settings.distributed import TIME
from kemu.emulated.settings.shapes import QUANTITY, Free, ListOf, MapOf, Switch, Text, Whole

MOST = 4096
"""Devices of one driver on a node."""


@dataclass(frozen=True, kw_only=True)
class Devices:
    """Devices of one driver, that are alike or listed; times are seconds, or distributions of them."""

    driver: str = setting(Text(), "The driver, a domain such as gpu.example.com.", REQUIRED)
    count: int | None = setting(Whole(1, MOST), "How many that are alike.")
    name: str | None = setting(
        Text(), "What their names begin with: gpu gives gpu-0, gpu-1, …; by default the first part of the driver."
    )
    attributes: Mapping[str, Any] = setting(
        Free(), "Attributes: a text, a whole number, true or false, or {version: 1.2.3}.", {}
    )
    capacity: Mapping[str, str] = setting(MapOf(QUANTITY), "Capacities, such as memory: 80Gi.", {})
    shared: bool = setting(
        Switch(),
        "Whether several claims may have one, each a part of its capacities (allowMultipleAllocations).",
        False,
    )
    taints: list[Any] = setting(ListOf(Free()), "Taints as in a ResourceSlice: key, value, effect.", [])
    devices: list[Any] = setting(ListOf(Free()), "Each device as in a ResourceSlice, in place of count.", [])
    shared_counters: list[Any] = setting(
        ListOf(Free()), "Counters that its devices consume, as in a ResourceSlice.", []
    )
    pool: str | None = setting(Text(), "What their pool is called; by default as the node.")
    publish: Any = setting(TIME, "From the registration of the node to the slices; {default} by default.", "0s")
    prepare: Any = setting(TIME, "How long it takes to prepare a claim; {default} by default.", "100ms")
    unprepare: Any = setting(TIME, "How long it takes to take that back; {default} by default.", "100ms")

    health: bool = setting(
        Switch(),
        "Whether the driver reports the health of its devices, Healthy or, during the fault devicesUnhealthy, "
        "Unhealthy; otherwise the status of containers says Unknown.",
        False,
    )

    def complaints(self) -> Iterator[Complaint]:
        if self.count is None and not self.devices:
            yield Complaint((), "count is missing", "or list the devices")
        elif self.count is not None and self.devices:
            yield Complaint(("count",), "cannot stand beside devices", key=True)

    @property
    def prefix(self) -> str:
        return self.name or self.driver.partition(".")[0]
