"""The actor ``controller/service-cidr``: says of each ServiceCIDR that it is ready, and keeps one that is being deleted
as long as addresses of Services would belong to none (``pkg/controller/servicecidrs``).

Further config: ``events`` (:data:`kemu.emulated.client.recorders.LEVELS`).
"""

from __future__ import annotations

import contextlib
from collections.abc import Collection, Iterable, Mapping
from typing import Any

from kemu import errors
from kemu.emulated.client import informers, recorders, workqueues
from kemu.emulated.controllers import controllers
from kemu.emulated.objects import meta
from kemu.emulated.objects.kinds import service_ranges
from kemu.messages.k8s.networking_v1_pb2 import IPAddress, ServiceCIDR
from kemu.runtime.env import SECOND_NS, Env

NAME = "service-cidr-controller"
WORKERS = 5
MAX_RETRIES = 15
GRACE_S = 10
"""From a deletion until the finalizer goes: by then no API server gives addresses of that range."""
BLOCKED = "There are still IPAddresses referencing the ServiceCIDR, please remove them or create a new ServiceCIDR"


class ServiceRanges(controllers.Controller):
    """Factory: ``kemu.emulated.controllers.services.ranges:ServiceRanges``."""

    def __init__(self, env: Env, config: Mapping[str, Any]) -> None:
        super().__init__(env, config)
        level = config.get("events", recorders.NOTABLE)
        self._recorder = recorders.Recorder(env, self.client, NAME, "0", level)
        self.queue: workqueues.WorkQueue[str] = workqueues.WorkQueue(env, name="ipaddresses")
        self._ranges: informers.Informer[ServiceCIDR] = informers.Informer(
            self.client,
            "servicecidrs",
            handler=informers.Callbacks(
                self._range_added,
                lambda old, new: self._look_at(new.metadata.name),
                lambda old: self._look_at(old.metadata.name),
            ),
        )
        self._addresses: informers.Informer[IPAddress] = informers.Informer(
            self.client,
            "ipaddresses",
            handler=informers.Callbacks(on_add=self._address_changed, on_delete=self._address_changed),
        )

    async def run(self) -> None:
        await self.begin(self._ranges, self._addresses)
        await self.work(self.queue, self._sync_in_time, WORKERS)

    def _look_at(self, name: str) -> None:
        self.queue.add_after(name, self.lag_s())

    def _range_added(self, added: ServiceCIDR) -> None:
        """Others may go now, as their addresses are in this one."""
        self._look_at(added.metadata.name)
        for one in self._ranges.store.values():
            if one.metadata.name != added.metadata.name and any(
                _overlap(cidr, other) for cidr in added.spec.cidrs for other in one.spec.cidrs
            ):
                self._look_at(one.metadata.name)

    def _address_changed(self, one: IPAddress) -> None:
        if service_ranges.is_managed(one):
            for name in _containing(self._ranges.store.values(), one):
                self._look_at(name)

    async def _sync_in_time(self, name: str) -> None:
        try:
            await self._sync(name)
        except errors.ApiError:
            if self.queue.failures(name) < MAX_RETRIES:
                raise

    async def _sync(self, name: str) -> None:
        one = self._ranges.store.get(name)
        if one is None:
            return
        has_finalizer = service_ranges.FINALIZER in one.metadata.finalizers
        if not one.metadata.HasField("deletionTimestamp"):
            if not has_finalizer:
                await self._patch(name, {"finalizers": [service_ranges.FINALIZER]})
            try:
                await self._tell(one, "True", "", "Kubernetes Service CIDR is ready")
            except errors.ApiError:
                reason, text = "KubernetesServiceCIDRError", "The ServiceCIDR Status can not be set to Ready=True"
                self._recorder.event(one, recorders.WARNING, reason, reason, text)
                raise
        elif not may_go(one, self._ranges.store.values(), self._addresses.store.values()):
            await self._tell(one, "False", service_ranges.TERMINATING, BLOCKED)
        else:
            since_ns = self.unix_ns() - meta.unix_ns(one.metadata.deletionTimestamp)
            left_ns = GRACE_S * SECOND_NS - since_ns
            if left_ns > 0:
                self.queue.add_after_ns(name, left_ns)
            elif has_finalizer:
                await self._patch(name, {"$deleteFromPrimitiveList/finalizers": [service_ranges.FINALIZER]})

    async def _tell(self, one: ServiceCIDR, status: str, reason: str, message: str) -> None:
        """``updateConditionIfNeeded``."""
        known = meta.get_condition(one.status.conditions, service_ranges.READY)
        if known is not None and (known.status, known.reason, known.message) == (status, reason, message):
            return
        name = one.metadata.name
        body = service_ranges.stating(name, status, message, self.unix_ns(), reason=reason)
        await self.client.apply("servicecidrs", name, "", body, NAME, "status")

    async def _patch(self, name: str, metadata: Mapping[str, Any]) -> None:
        with contextlib.suppress(errors.NotFound):
            await self.client.patch("servicecidrs", name, "", {"metadata": metadata}, type="strategic")


def may_go(one: ServiceCIDR, ranges: Collection[ServiceCIDR], addresses: Iterable[IPAddress]) -> bool:
    """``canDeleteCIDR``: another range has all its addresses, or none is taken that is in no other. ``ranges``,
    ``addresses``: all of them."""
    name = one.metadata.name
    parents = [
        [each.metadata.name for each in ranges if any(_contains(other, cidr) for other in each.spec.cidrs)]
        for cidr in one.spec.cidrs
    ]
    if all(found not in ([], [name]) for found in parents):
        return True
    families = {service_ranges.family(cidr) for cidr in one.spec.cidrs}
    return not any(
        service_ranges.is_managed(each)
        and each.metadata.labels.get(service_ranges.FAMILY) in families
        and _containing(ranges, each) == [name]
        for each in addresses
    )


def _containing(ranges: Iterable[ServiceCIDR], one: IPAddress) -> list[str]:
    return service_ranges.containing(ranges, service_ranges.address(one.metadata.name))


def _overlap(cidr: str, other: str) -> bool:
    one, two = service_ranges.network(cidr), service_ranges.network(other)
    return one.version == two.version and one.overlaps(two)


def _contains(cidr: str, other: str) -> bool:
    return _overlap(cidr, other) and service_ranges.network(cidr).prefixlen <= service_ranges.network(other).prefixlen
