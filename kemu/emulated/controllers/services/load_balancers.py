"""The actor ``controller/service-lb``: gives Services of the type LoadBalancer addresses, as the one of a cloud does.

No traffic goes there: the addresses are those of a range for documentation. Further config: ``settings``
(:class:`Settings`), ``events`` (:data:`kemu.emulated.client.recorders.LEVELS`). Mirrors
``cloud-provider/controllers/service``.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from kemu import errors
from kemu.emulated.client import informers, recorders, workqueues
from kemu.emulated.controllers import controllers
from kemu.emulated.settings.declared import restored, setting
from kemu.emulated.settings.shapes import Text
from kemu.messages.k8s import core_v1_pb2
from kemu.runtime.env import Env

FINALIZER = "service.kubernetes.io/load-balancer-cleanup"
MIN_RETRY_S, MAX_RETRY_S = 5.0, 300.0
"""``minRetryDelay``, ``maxRetryDelay``."""


@dataclass(frozen=True, kw_only=True)
class Settings:
    """The load balancers of a cluster."""

    addresses: str = setting(Text(), "The range of their addresses; {default} by default.", "203.0.113.0/24")


class ServiceLoadBalancers(controllers.Controller):
    """Factory: ``kemu.emulated.controllers.services.load_balancers:ServiceLoadBalancers``."""

    def __init__(self, env: Env, config: Mapping[str, Any]) -> None:
        """Raises ValueError for a range that is none."""
        super().__init__(env, config)
        text = restored(Settings, config.get("settings", {})).addresses
        try:
            self._range = ipaddress.ip_network(text)
        except ValueError as error:
            raise ValueError(f"addresses: {error}") from None
        level = config.get("events", recorders.NOTABLE)
        self._recorder = recorders.Recorder(env, self.client, "service-controller", "0", level)
        self.queue: workqueues.WorkQueue[str] = workqueues.WorkQueue(env, MIN_RETRY_S, MAX_RETRY_S, name="service")
        self._given: dict[str, str] = {}
        """Addresses by the UID of the Service."""
        self._services: informers.Informer[core_v1_pb2.Service] = informers.Informer(
            self.client,
            "services",
            handler=informers.Callbacks(self._changed, lambda old, new: self._changed(new), self._deleted),
        )

    async def run(self) -> None:
        await self.begin(self._services)
        await self.work(self.queue, self._sync)

    def _changed(self, service: core_v1_pb2.Service) -> None:
        if _wants_one(service) or FINALIZER in service.metadata.finalizers:
            self.queue.add_after(controllers.key_of(service), self.lag_s())
        for ingress in service.status.loadBalancer.ingress:
            # It was given before this controller started.
            if ingress.ip and _wants_one(service):
                self._keep(service, ingress.ip)

    def _deleted(self, service: core_v1_pb2.Service) -> None:
        self._given.pop(service.metadata.uid, None)

    def _keep(self, service: core_v1_pb2.Service, address: str) -> None:
        self._given.setdefault(service.metadata.uid, address)

    async def _sync(self, key: str) -> None:
        """``syncLoadBalancerIfNeeded``."""
        service = self._services.store.get(key)
        if service is None:
            return
        try:
            if _wants_one(service) and not service.metadata.HasField("deletionTimestamp"):
                await self._ensure(service)
            elif FINALIZER in service.metadata.finalizers:
                await self._remove(service)
        except errors.NotFound:
            return
        except errors.ApiError as error:
            text = f"Error syncing load balancer: {error.message}"
            reason = "SyncLoadBalancerFailed"
            self._recorder.event(service, recorders.WARNING, reason, reason, text)
            raise

    async def _ensure(self, service: core_v1_pb2.Service) -> None:
        address = self._given.get(service.metadata.uid) or self._free(service.spec.loadBalancerIP)
        shown = [one.ip for one in service.status.loadBalancer.ingress]
        if shown == [address] and FINALIZER in service.metadata.finalizers:
            return
        self._tell(service, "EnsuringLoadBalancer", "Ensuring load balancer")
        if not address:
            raise errors.ServiceUnavailable(f"failed to ensure load balancer: no address of {self._range} is free")
        self._keep(service, address)
        if FINALIZER not in service.metadata.finalizers:
            await self._write_finalizers(service, [*service.metadata.finalizers, FINALIZER])
        self._tell(service, "EnsuredLoadBalancer", "Ensured load balancer")
        await self._write_status(service, {"ingress": [{"ip": address, "ipMode": "VIP"}]})

    async def _remove(self, service: core_v1_pb2.Service) -> None:
        if service.metadata.uid in self._given:
            self._tell(service, "DeletingLoadBalancer", "Deleting load balancer")
            del self._given[service.metadata.uid]
        if service.status.loadBalancer.ingress and not service.metadata.HasField("deletionTimestamp"):
            await self._write_status(service, None)
        await self._write_finalizers(service, [one for one in service.metadata.finalizers if one != FINALIZER])
        self._tell(service, "DeletedLoadBalancer", "Deleted load balancer")

    def _free(self, asked: str) -> str:
        """The address that a Service asks for, or else the first one that is free; "": there is none."""
        taken = set(self._given.values())
        if asked:
            return "" if asked in taken else asked
        return next((text for one in self._range.hosts() if (text := str(one)) not in taken), "")

    async def _write_finalizers(self, service: core_v1_pb2.Service, finalizers: list[str]) -> None:
        metadata = service.metadata
        # The role of the controller allows no other patches (``PatchService``).
        patch = {"metadata": {"finalizers": finalizers or None}}
        await self.client.patch("services", metadata.name, metadata.namespace, patch, "status", uid=metadata.uid)

    async def _write_status(self, service: core_v1_pb2.Service, balancer: Mapping[str, Any] | None) -> None:
        metadata, patch = service.metadata, {"status": {"loadBalancer": balancer}}
        await self.client.patch("services", metadata.name, metadata.namespace, patch, "status", uid=metadata.uid)

    def _tell(self, service: core_v1_pb2.Service, reason: str, text: str) -> None:
        self._recorder.event(service, recorders.NORMAL, reason, reason, text, routine=True)


def _wants_one(service: core_v1_pb2.Service) -> bool:
    """``wantsLoadBalancer``: one of a class is another controller's."""
    return service.spec.type == "LoadBalancer" and not service.spec.HasField("loadBalancerClass")
