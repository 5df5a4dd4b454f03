"""What an API server does with the ranges of Services' addresses: it keeps the one that it is configured with, and
mends IPAddresses that do not say what Services do.

``pkg/controlplane/controller/defaultservicecidr`` and ``pkg/registry/core/service/ipallocator/controller`` (repairip),
which call the server that they are part of, as any client. A Service that is being created has its address before it is
there: so what seems to be nobody's is given some time.
"""

from __future__ import annotations

import contextlib
from collections.abc import Sequence

from kemu import errors
from kemu.emulated.client import clients, informers, recorders, retries, workqueues
from kemu.emulated.objects import meta
from kemu.emulated.objects.kinds import service_ranges
from kemu.messages.k8s.core_v1_pb2 import Service
from kemu.messages.k8s.networking_v1_pb2 import IPAddress, ServiceCIDR
from kemu.messages.k8s.objects import KubernetesObject
from kemu.runtime.env import SECOND_NS, Env

NAME = "kubernetes-service-cidr-controller"
PERIOD_S = 10
REPAIR, REPAIR_PERIOD_S = "ipallocator-repair-controller", 180
WORKERS, MAX_RETRIES = 5, 15
LEAK_NS, REVERT_NS = 60 * SECOND_NS, 5 * SECOND_NS
"""So long the creation of a Service may take, and what takes back a creation that has failed."""
ERROR = "KubernetesDefaultServiceCIDRError"


class ServiceRanges:
    """Of one API server."""

    def __init__(self, env: Env, cidrs: Sequence[str]) -> None:
        self._env = env
        self._cidrs = list(cidrs)
        client = self._client = clients.Client(env, env.name)
        self._recorder = recorders.Recorder(env, client, NAME, "0", recorders.ALL)
        self._ranges: informers.Informer[ServiceCIDR] = informers.Informer(client, "servicecidrs")
        self._told: set[str] = set()
        self._repair = _Repair(env, client, self._ranges)

    async def begin(self) -> None:
        """Returns when the default range is there."""
        await self._ranges.synced()
        await retries.patiently(self._env, self._sync)
        self._env.spawn(self._keep(), "default range of Services")
        self._env.spawn(self._repair.run(), "repair of addresses")

    async def _keep(self) -> None:
        while True:
            await self._env.clock.sleep(PERIOD_S, background=True)
            try:
                await self._sync()
            except errors.ApiError:
                continue

    async def _sync(self) -> None:
        found = self._ranges.store.get(service_ranges.DEFAULT)
        if found is None:
            made = ServiceCIDR()
            made.metadata.name = service_ranges.DEFAULT
            made.spec.cidrs.extend(self._cidrs)
            try:
                found = await self._client.create(made)
            except errors.AlreadyExists:
                return  # another API server, or the informer is late
            except errors.ApiError:
                self._warn(made, ERROR, "The default ServiceCIDR can not be created")
                raise
        known = list(found.spec.cidrs)
        if len(self._cidrs) == 2 and known == self._cidrs[:1]:
            revised = ServiceCIDR()
            revised.CopyFrom(found)
            revised.spec.cidrs[:] = self._cidrs
            try:
                await self._client.update(revised)
            except errors.ApiError as error:
                text = f"can not be upgraded from {known[0]} to dual stack [{' '.join(self._cidrs)}] : {error.message}"
                self._warn(found, ERROR, f"The default ServiceCIDR {text}")
        elif not found.metadata.HasField("deletionTimestamp"):
            await self._sync_status(found, known)

    async def _sync_status(self, found: ServiceCIDR, known: Sequence[str]) -> None:
        if known != self._cidrs:
            texts = " ".join(known), " ".join(self._cidrs)
            text = "The default ServiceCIDR [{}] does not match the controller flag configurations [{}]"
            self._warn_once(found, "KubernetesDefaultServiceCIDRInconsistent", text.format(*texts))
            return
        condition = meta.get_condition(found.status.conditions, service_ranges.READY)
        if condition is not None and condition.status == "False":
            self._warn_once(found, condition.reason, f"Configuration matches, but {condition.message}")
        elif condition is None or condition.status != "True":
            name, message = found.metadata.name, "Kubernetes default Service CIDR is ready"
            body = service_ranges.stating(name, "True", message, self._env.clock.unix_ns())
            try:
                await self._client.apply("servicecidrs", name, "", body, NAME, "status")
            except errors.ApiError:
                self._warn(found, ERROR, "The default ServiceCIDR Status can not be set to Ready=True")

    def _warn(self, regarding: KubernetesObject, reason: str, text: str) -> None:
        self._recorder.event(regarding, recorders.WARNING, reason, reason, text)

    def _warn_once(self, regarding: KubernetesObject, reason: str, text: str) -> None:
        if reason not in self._told:
            self._told.add(reason)
            self._warn(regarding, reason, text)


class _Repair:
    """Services and their addresses say the same: ``ClusterIP`` is the name, the parent is the Service."""

    def __init__(self, env: Env, client: clients.Client, ranges: informers.Informer[ServiceCIDR]) -> None:
        self._env = env
        self._client = client
        self._ranges = ranges
        self._recorder = recorders.Recorder(env, client, REPAIR, "0")
        self._service_queue: workqueues.WorkQueue[str] = workqueues.WorkQueue(env)
        self._address_queue: workqueues.WorkQueue[str] = workqueues.WorkQueue(env)
        self._services: informers.Informer[Service] = informers.Informer(
            client, "services", handler=_enqueue(self._service_queue)
        )
        self._addresses: informers.Informer[IPAddress] = informers.Informer(
            client, "ipaddresses", handler=_enqueue(self._address_queue)
        )

    async def run(self) -> None:
        for informer in (self._services, self._addresses):
            await informer.synced()
        for number in range(WORKERS):
            self._env.spawn(self._work(self._service_queue, is_service=True), f"repair of Services {number}")
            self._env.spawn(self._work(self._address_queue, is_service=False), f"repair of addresses {number}")
        while True:
            await self._env.clock.sleep(REPAIR_PERIOD_S, background=True)
            for queue, informer in ((self._service_queue, self._services), (self._address_queue, self._addresses)):
                for key in informer.store:
                    queue.add(key)

    async def _work(self, queue: workqueues.WorkQueue[str], *, is_service: bool) -> None:
        while True:
            key = await queue.get()
            try:
                await (self._sync_service(key) if is_service else self._sync_address(key))
                queue.forget(key)
            except errors.ApiError:
                if queue.failures(key) < MAX_RETRIES:
                    queue.add_rate_limited(key)
                else:
                    queue.forget(key)
            finally:
                queue.done(key)

    def _warn(self, regarding: KubernetesObject, reason: str, action: str, text: str) -> None:
        self._recorder.event(regarding, recorders.WARNING, reason, action, text)

    async def _sync_service(self, key: str) -> None:
        service = self._services.store.get(key)
        if service is None or service.spec.type == "ExternalName" or service.spec.clusterIP in ("", "None"):
            return
        for text in service.spec.clusterIPs:
            await self._sync_address_of(service, str(service_ranges.address(text)))

    async def _sync_address_of(self, service: Service, name: str) -> None:
        family = service_ranges.family(name)
        own = f"{service.metadata.namespace}/{service.metadata.name}"
        action = "ClusterIPAllocation"
        wrong = f"the ClusterIP [{family}]: {name} for Service {own} has a wrong reference; repairing"
        if not service_ranges.containing(self._ranges.store.values(), service_ranges.address(name)):
            text = f"Cluster IP [{family}]: {name} is not within any configured Service CIDR; please recreate service"
            self._warn(service, "ClusterIPOutOfRange", action, text)
            return
        found = self._addresses.store.get(name)
        if found is None:
            text = f"Cluster IP [{family}]: {name} is not allocated; repairing"
            self._warn(service, "ClusterIPNotAllocated", action, text)
            await self._client.create(service_ranges.of_service(name, service))
            return
        parent = found.spec.parentRef
        if parent.group or parent.resource != "services":
            self._warn(service, "ClusterIPNotAllocated", action, wrong)
            await self._make_anew(name, service)
            return
        if f"{parent.namespace}/{parent.name}" != own:
            other = self._services.store.get(f"{parent.namespace}/{parent.name}")
            if other is None:
                self._warn(service, "ClusterIPNotAllocated", action, wrong)
                await self._make_anew(name, service)
                return
            if name in other.spec.clusterIPs:
                text = f"Cluster IP [{family}]:{name} was assigned to multiple services; please recreate service"
                self._warn(service, "ClusterIPAlreadyAllocated", action, text)
        if not service_ranges.has_right_labels(found):
            await self._make_anew(name, service)

    async def _make_anew(self, name: str, service: Service) -> None:
        await self._delete(name)
        await self._client.create(service_ranges.of_service(name, service))

    async def _delete(self, name: str) -> None:
        with contextlib.suppress(errors.NotFound):
            await self._client.delete("ipaddresses", name)

    async def _sync_address(self, name: str) -> None:
        found = self._addresses.store.get(name)
        if found is None or not service_ranges.is_managed(found):
            return
        parent, action = found.spec.parentRef, "IPAddressAllocation"
        if parent.group or parent.resource != "services":
            fields = ("group", "resource", "namespace", "name")
            # As Go shows its struct.
            shown = "".join(f"{field.title()}:{getattr(parent, field)}," for field in fields)
            shown = f"not referencing a Service &ParentReference{{{shown}}}"
            text = f"IPAddress {name} appears to have been modified, {shown}: cleaning up"
            self._warn(found, "IPAddressNotAllocated", action, text)
            await self._delete(name)
            return
        own = f"{parent.namespace}/{parent.name}"
        service = self._services.store.get(own)
        age_ns = self._env.clock.unix_ns() - meta.unix_ns(found.metadata.creationTimestamp)
        if service is None:
            if age_ns > LEAK_NS:
                text = f"IPAddress: {name} for Service {own} appears to have leaked: cleaning up"
                self._warn(found, "IPAddressNotAllocated", action, text)
                await self._delete(name)
            else:
                self._address_queue.add_after_ns(name, LEAK_NS - age_ns + 1)
            return
        if name in service.spec.clusterIPs:
            return
        if service.spec.type == "ExternalName" and age_ns < LEAK_NS:
            self._address_queue.add_after_ns(name, LEAK_NS - age_ns)
            return
        created_ns = [meta.unix_ns(one.metadata.creationTimestamp) for one in (found, service)]
        if created_ns[0] > created_ns[1] and age_ns < REVERT_NS:
            self._address_queue.add_after_ns(name, REVERT_NS)
            return
        text = f"IPAddress: {name} for Service {own} has a wrong reference; cleaning up"
        self._warn(found, "IPAddressWrongReference", action, text)
        await self._delete(name)


def _enqueue(queue: workqueues.WorkQueue[str]) -> informers.Callbacks[KubernetesObject]:
    def look(obj: KubernetesObject) -> None:
        queue.add(meta.namespaced_name(obj))

    return informers.Callbacks(look, lambda old, new: look(new), look)
