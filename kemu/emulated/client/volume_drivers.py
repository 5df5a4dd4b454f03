"""How the simulated CSI drivers behave: what a scenario says in ``storage.drivers``, completed.

Shared by the controller that stands for the drivers and by the kubelets, which mount.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from kemu.emulated.objects.amounts import quantities
from kemu.emulated.objects.volumes import claims
from kemu.emulated.settings.declared import Section, restored, setting
from kemu.emulated.settings.distributed import TIME
from kemu.emulated.settings.shapes import QUANTITY, SECONDS, ListOf, MapOf, Number, Switch, Text, Whole

ZONE = "topology.kubernetes.io/zone"


@dataclass(frozen=True, kw_only=True)
class Driver:
    """One driver; times are seconds, or distributions of them."""

    name: str = ""
    provision: Any = setting(TIME, "How long it takes to create a volume; {default} by default.", "3s")
    delete: Any = setting(TIME, "How long it takes to delete one; {default} by default.", "1s")
    attach: Any = setting(TIME, "How long it takes to attach one to a node; {default} by default.", "5s")
    detach: Any = setting(TIME, "How long it takes to detach one; {default} by default.", "5s")
    mount: Any = setting(TIME, "How long a kubelet takes to mount one; {default} by default.", "1s")
    unmount: Any = setting(TIME, "How long a kubelet takes to unmount one; {default} by default.", "500ms")
    expand: Any = setting(TIME, "How long it takes to make one larger; {default} by default.", "3s")
    expand_on_node: Any = setting(
        TIME, "How long a kubelet takes to make the file system on it larger; {default} by default.", "1s"
    )
    modify: Any = setting(
        TIME, "How long it takes to give one the attributes of another class; {default} by default.", "3s"
    )
    failures: float = setting(Number(0), "The share of calls to create a volume that fail; {default} by default.", 0)
    topology_keys: list[str] = setting(
        ListOf(Text()),
        f"Labels of nodes that say from where a volume is reachable; {ZONE} by default, []: from everywhere.",
        [ZONE],
    )
    """A volume is reachable from nodes whose labels equal those of the node that it was made for."""
    capacity: str | None = setting(
        QUANTITY, "So much fits in each part of the topology; by default there is always room."
    )
    volumes_per_node: int | None = setting(
        Whole(0), "So many volumes fit on a node (CSINode allocatable.count); by default any number."
    )
    attaches_per_node: int | None = setting(
        Whole(0), "So many it does attach to a node, whatever it said at first; by default any number."
    )
    allocatable_update_period: float | None = setting(
        SECONDS, "How often a kubelet asks it anew how many volumes fit, at least 10s; by default never."
    )

    @property
    def fits_now(self) -> int | None:
        """What it says when it is asked anew."""
        return self.volumes_per_node if self.attaches_per_node is None else self.attaches_per_node

    @property
    def capacity_bytes(self) -> int | None:
        return None if self.capacity is None else quantities.value(self.capacity)


@dataclass(frozen=True, kw_only=True)
class Storage:
    """The drivers that a scenario speaks of."""

    drivers: Mapping[str, Driver] = setting(
        MapOf(Section(Driver)), "By the name of the driver, which is the provisioner of its classes.", {}
    )
    expansion: bool | None = setting(
        Switch(), "Whether kubelets look for mounted volumes that have grown; by default if a class allows it."
    )


class Drivers:
    """All drivers of a cluster; one that the scenario says nothing about has the defaults."""

    def __init__(self, settings: Mapping[str, Mapping[str, Any]]) -> None:
        """``settings``: the drivers of a :class:`Storage` as plain data."""
        self._settings = settings
        self._known = {name: restored(Driver, {**given, "name": name}) for name, given in settings.items()}

    def of(self, name: str) -> Driver:
        return self._known.setdefault(name, Driver(name=name))

    def named(self) -> tuple[str, ...]:
        """Those that the scenario speaks of."""
        return tuple(self._settings)


def is_simulated(provisioner: str) -> bool:
    """Whether a driver of this name creates volumes. Those of Kubernetes' tree do not."""
    return bool(provisioner) and provisioner != claims.NO_PROVISIONER and not provisioner.startswith("kubernetes.io/")
