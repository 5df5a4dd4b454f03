"""The keys of ``storage``: how the simulated CSI drivers behave."""

from __future__ import annotations

from kemu.emulated.settings.distributed import TIME
from kemu.emulated.settings.shapes import QUANTITY, Key, ListOf, MapOf, Number, Record, Text, Whole

_DRIVER = Record(
    {
        "provision": Key(TIME, "How long it takes to create a volume; 3s by default."),
        "delete": Key(TIME, "How long it takes to delete one; 1s by default."),
        "attach": Key(TIME, "How long it takes to attach one to a node; 5s by default."),
        "detach": Key(TIME, "How long it takes to detach one; 5s by default."),
        "mount": Key(TIME, "How long a kubelet takes to mount one; 1s by default."),
        "unmount": Key(TIME, "How long a kubelet takes to unmount one; 500ms by default."),
        "failures": Key(Number(0), "The share of calls to create a volume that fail; 0 by default."),
        "topologyKeys": Key(
            ListOf(Text()),
            "Labels of nodes that say from where a volume is reachable; topology.kubernetes.io/zone by default, []: "
            "from everywhere.",
        ),
        "capacity": Key(QUANTITY, "So much fits in each part of the topology; by default there is always room."),
        "volumesPerNode": Key(
            Whole(0), "So many volumes fit on a node (CSINode allocatable.count); by default any number."
        ),
    }
)

STORAGE = Record(
    {"drivers": Key(MapOf(_DRIVER), "By the name of the driver, which is the provisioner of its classes.")}
)
