"""How the simulated CSI drivers behave: what a scenario says in ``storage.drivers``, completed."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from kemu.emulated.objects.amounts import quantities
from kemu.emulated.objects.volumes import claims

ZONE = "topology.kubernetes.io/zone"

DEFAULTS: Mapping[str, Any] = {
    "provision": 3.0,
    "delete": 1.0,
    "attach": 5.0,
    "detach": 5.0,
    "mount": 1.0,
    "unmount": 0.5,
    "failures": 0.0,
    "topologyKeys": (ZONE,),
    "capacity": None,
    "volumesPerNode": None,
}
"""Seconds, or distributions of seconds; ``failures`` is the share of calls that create a volume and fail."""


@dataclass(frozen=True, slots=True)
class Driver:
    """One driver."""

    name: str
    times: Mapping[str, Any]
    """``provision``, ``delete``, ``attach``, ``detach``, ``mount``, ``unmount``: seconds, or distributions of them."""
    failures: float
    topology_keys: tuple[str, ...]
    """Labels of nodes; a volume is reachable from nodes whose labels equal those of the node that it was made for."""
    capacity: int | None
    """Bytes in each part of the topology; None: without end."""
    volumes_per_node: int | None


def driver_of(name: str, settings: Mapping[str, Any]) -> Driver:
    """``settings``: what the scenario says about it; the rest has its default."""
    given = {**DEFAULTS, **settings}
    size = given["capacity"]
    return Driver(
        name,
        {key: given[key] for key in ("provision", "delete", "attach", "detach", "mount", "unmount")},
        failures=float(given["failures"]),
        topology_keys=tuple(given["topologyKeys"]),
        capacity=None if size is None else quantities.value(str(size)),
        volumes_per_node=given["volumesPerNode"],
    )


class Drivers:
    """All drivers of a cluster; one that the scenario says nothing about has the defaults."""

    def __init__(self, settings: Mapping[str, Mapping[str, Any]]) -> None:
        self._settings = settings
        self._known: dict[str, Driver] = {name: driver_of(name, given) for name, given in settings.items()}

    def of(self, name: str) -> Driver:
        known = self._known.get(name)
        if known is None:
            known = self._known[name] = driver_of(name, {})
        return known

    def named(self) -> tuple[str, ...]:
        """Those that the scenario speaks of."""
        return tuple(self._settings)


def is_simulated(provisioner: str) -> bool:
    """Whether a driver of this name creates volumes. Those of Kubernetes' tree do not."""
    return bool(provisioner) and provisioner != claims.NO_PROVISIONER and not provisioner.startswith("kubernetes.io/")
