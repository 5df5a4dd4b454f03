"""Names of files on the disks of actors. Neighbours: ``sim.disks`` and ``ray.cell.files`` are those disks."""

from __future__ import annotations


def check(name: str) -> str:
    """Returns the name. Names are flat: raises ValueError for any other."""
    if not name or name.startswith(".") or "/" in name or "\0" in name:
        raise ValueError(f"not a file name: {name!r}")
    return name


def of_actor(actor: str) -> str:
    """``kubelet/node-1`` as the name of a directory."""
    return actor.replace("%", "%25").replace("/", "%2F")
