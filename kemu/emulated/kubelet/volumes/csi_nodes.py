"""The CSINode of a kubelet: the drivers on its node, how many volumes of each it takes, by which labels they know
it."""

from __future__ import annotations

import contextlib
from typing import cast

from kemu import errors
from kemu.emulated.client import clients, retries, volume_drivers
from kemu.emulated.objects import meta
from kemu.messages.k8s import core_v1_pb2, storage_v1_pb2
from kemu.runtime.env import Env

SHORTEST_S = 10.0
"""No shorter period is heeded."""


async def update(env: Env, client: clients.Client, name: str, driver: volume_drivers.Driver) -> None:
    """State how many volumes of a driver the node takes now (``UpdateCSIDriver``)."""
    with contextlib.suppress(errors.NotFound, errors.Conflict):
        found = await retries.patiently(env, lambda: client.get("csinodes", name))
        csi_node = cast(storage_v1_pb2.CSINode, found)
        here = next((one for one in csi_node.spec.drivers if one.name == driver.name), None)
        count = driver.fits_now
        if here is None or count is None or (here.HasField("allocatable") and here.allocatable.count == count):
            return
        here.allocatable.count = count
        await retries.patiently(env, lambda: client.update(csi_node))


async def keep(env: Env, client: clients.Client, name: str, driver: volume_drivers.Driver) -> None:
    """Do so at the period that the driver wants, for ever (``csiNodeUpdater``)."""
    while driver.allocatable_update_period is not None:
        await env.clock.sleep(max(driver.allocatable_update_period, SHORTEST_S), background=True)
        await update(env, client, name, driver)


async def register(env: Env, client: clients.Client, node: core_v1_pb2.Node, known: volume_drivers.Drivers) -> None:
    """Create it (``pkg/volume/csi/nodeinfomanager``); one that is there already stays as it is."""
    name = node.metadata.name
    csi_node = storage_v1_pb2.CSINode()
    csi_node.metadata.name = name
    csi_node.metadata.ownerReferences.append(meta.owner_reference(node, "v1", "Node", controller=False))
    for driver_name in known.named():
        driver = known.of(driver_name)
        here = csi_node.spec.drivers.add(name=driver_name, nodeID=name)
        here.topologyKeys.extend(key for key in driver.topology_keys if key in node.metadata.labels)
        if driver.volumes_per_node is not None:
            here.allocatable.count = driver.volumes_per_node
    with contextlib.suppress(errors.AlreadyExists):
        await retries.patiently(env, lambda: client.create(csi_node))
