"""The actor ``controller/endpointslice``: the EndpointSlices of Services with a selector.

Each has up to a hundred endpoints; pods that serve a named port under other numbers go into slices of their own. A
Service without pods has one empty slice. Further config: ``settings`` (:class:`Settings`), ``events``
(:data:`kemu.emulated.client.recorders.LEVELS`). Mirrors ``pkg/controller/endpointslice``.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from kemu import errors
from kemu.emulated.client import informers, recorders
from kemu.emulated.controllers import controllers
from kemu.emulated.controllers.services import endpoints, hints, members, packing, trackers
from kemu.emulated.objects import meta
from kemu.emulated.settings.declared import restored, setting
from kemu.emulated.settings.shapes import DURATION, Whole
from kemu.messages.k8s import core_v1_pb2, discovery_v1_pb2
from kemu.runtime.env import SECOND_NS, Env

NAME = "endpointslice-controller.k8s.io"
"""Whom the label ``endpointslice.kubernetes.io/managed-by`` names."""
AFTER_CHANGE_S = 1.0
"""From a slice that somebody else has written to the sync (``endpointSliceChangeMinSyncDelay``)."""
ZONE = "topology.kubernetes.io/zone"
_RESERVED = (endpoints.SERVICE_NAME, endpoints.MANAGED_BY, endpoints.HEADLESS)


@dataclass(frozen=True, kw_only=True)
class Settings:
    """The flags of kube-controller-manager."""

    max_endpoints_per_slice: int = setting(Whole(1), "Endpoints of one slice; {default} by default.", 100)
    endpointslice_updates_batch_period_ns: int = setting(
        DURATION, "How long changes of pods are gathered; {default} by default.", "0s"
    )


class EndpointSliceController(members.ServiceController):
    """Factory: ``kemu.emulated.controllers.services.slices:EndpointSliceController``."""

    component: ClassVar[str] = "endpoint-slice-controller"
    queue_name: ClassVar[str] = "endpoint_slice"
    retry_s: ClassVar[float] = endpoints.RETRY_S

    def __init__(self, env: Env, config: Mapping[str, Any]) -> None:
        settings = restored(Settings, config.get("settings", {}))
        super().__init__(env, config, settings.endpointslice_updates_batch_period_ns)
        self._most = settings.max_endpoints_per_slice
        self._delay_s = max(AFTER_CHANGE_S, settings.endpointslice_updates_batch_period_ns / SECOND_NS)
        self._slices = trackers.ManagedSlices(self.client, NAME, self._slices_changed)
        self._nodes: informers.Informer[core_v1_pb2.Node] = informers.Informer(self.client, "nodes")

    async def run(self) -> None:
        await self.begin(self._nodes, self._slices.informer, self.services, self.pods)
        await self.work(self.queue, self.reconcile, endpoints.WORKERS)

    def _slices_changed(self, service: str) -> None:
        self.queue.add_after(service, self._delay_s + self.lag_s())

    async def sync(self, key: str) -> None:
        """``syncService``."""
        service = self.services.store.get(key)
        if service is None:
            self.forget(key)
            self._slices.tracker.forget(key)
            return
        if service.spec.type == "ExternalName" or not service.spec.selector:
            return
        pods = self.members(service)
        existing = [one for one in self._slices.of(key) if not one.metadata.HasField("deletionTimestamp")]
        if self._slices.tracker.is_stale(key, existing):
            raise errors.ServiceUnavailable("EndpointSlice informer cache is out of date")
        try:
            await self._reconcile_all(service, pods, existing, self.trigger_time(service, pods))
        except errors.ApiError as error:
            text = f"Error updating Endpoint Slices for Service {key}: {error.message}"
            reason = "FailedToUpdateEndpointSlices"
            self.recorder.event(service, recorders.WARNING, reason, reason, text)
            raise

    async def _reconcile_all(
        self,
        service: core_v1_pb2.Service,
        pods: Sequence[core_v1_pb2.Pod],
        existing: Sequence[discovery_v1_pb2.EndpointSlice],
        trigger: str,
    ) -> None:
        """``Reconcile``. Raises the first ApiError, after everything was tried."""
        failures: list[errors.ApiError] = []
        families = _families(service)
        for family in families:
            try:
                of_family = [one for one in existing if one.addressType == family]
                await self._reconcile_family(service, pods, of_family, trigger, family)
            except errors.ApiError as error:
                failures.append(error)
        for one in existing:
            if one.addressType not in families:
                try:
                    await self._slices.delete(one)
                except errors.ApiError as error:
                    failures.append(error)
        if failures:
            raise failures[0]

    async def _reconcile_family(
        self,
        service: core_v1_pb2.Service,
        pods: Sequence[core_v1_pb2.Pod],
        existing: Sequence[discovery_v1_pb2.EndpointSlice],
        trigger: str,
        family: str,
    ) -> None:
        """``reconcileByAddressType``."""
        plan, by_ports = packing.Plan(), dict[bytes, list[discovery_v1_pb2.EndpointSlice]]()
        for one in existing:
            if _is_owned(one, service):
                by_ports.setdefault(endpoints.port_key(one.ports), []).append(one)
            else:
                plan.delete.append(one)
        ports: dict[bytes, list[discovery_v1_pb2.EndpointPort]] = {}
        desired: dict[bytes, packing.Desired] = {}
        homeless = ""
        for pod in pods:
            if not endpoints.belongs(pod, terminating=True):
                continue
            of_pod = endpoints.ports_of(service, pod)
            port_key = endpoints.port_key(of_pod)
            ports.setdefault(port_key, of_pod)
            wanted = desired.setdefault(port_key, {})
            node = self._nodes.store.get(pod.spec.nodeName)
            if node is None and not service.spec.publishNotReadyAddresses:
                homeless = homeless or (
                    f"skipping Pod {pod.metadata.name} for Service {controllers.key_of(service)}:"
                    f" Node {pod.spec.nodeName} Not Found"
                )
                continue
            endpoint = _endpoint(pod, node, service, family)
            if endpoint.addresses:
                wanted[endpoints.identity(endpoint)] = endpoint
        for port_key, wanted in desired.items():
            with_ports = ports[port_key]
            plan.add(
                packing.pack(
                    by_ports.get(port_key, []),
                    wanted,
                    self._most,
                    lambda copy: _label(copy, service),
                    lambda with_ports=with_ports: _new(service, with_ports, family),  # type: ignore[misc]
                )
            )
        plan.delete += [one for port_key, slices in by_ports.items() if port_key not in desired for one in slices]
        if len(existing) == len(plan.delete) and not plan.create:
            empty = _new(service, (), family)
            if len(plan.delete) == 1 and _is_same_but_for_name(plan.delete[0], empty):
                plan.delete.clear()
            else:
                plan.create.append(empty)
        self._hint(service, existing, plan)
        packing.recycle(plan, lambda old, new: old.addressType == new.addressType and _is_owned(old, service))
        for one in (*plan.create, *plan.update):
            members.with_trigger(one, trigger)
        await self._slices.write(plan, may_create=not service.metadata.HasField("deletionTimestamp"))
        if homeless:
            raise errors.ServiceUnavailable(homeless)

    def _hint(
        self,
        service: core_v1_pb2.Service,
        existing: Sequence[discovery_v1_pb2.EndpointSlice],
        plan: packing.Plan,
    ) -> None:
        """``ReconcileHints``; where no hints are wanted, those that are there go."""
        touched = {one.metadata.name for one in (*plan.update, *plan.delete)}
        for one in existing:
            if one.metadata.name not in touched:
                copy = meta.copied(one)
                if hints.put(service, copy):
                    plan.update.append(copy)
        for one in (*plan.create, *plan.update):
            hints.put(service, one)


def _is_owned(found: discovery_v1_pb2.EndpointSlice, service: core_v1_pb2.Service) -> bool:
    return any(
        (one.uid, one.kind, one.apiVersion) == (service.metadata.uid, "Service", "v1")
        for one in found.metadata.ownerReferences
    )


def _families(service: core_v1_pb2.Service) -> list[str]:
    """Families of addresses (``getAddressTypesForService``)."""
    found = [one for one in service.spec.ipFamilies if one in ("IPv4", "IPv6")]
    if found:
        return list(dict.fromkeys(found))
    if not endpoints.is_headless(service):
        return ["IPv6" if ":" in service.spec.clusterIP else "IPv4"]
    return ["IPv4", "IPv6"]


def _endpoint(
    pod: core_v1_pb2.Pod, node: core_v1_pb2.Node | None, service: core_v1_pb2.Service, family: str
) -> discovery_v1_pb2.Endpoint:
    """``podToEndpoint``."""
    serving, terminating = meta.is_ready(pod), pod.metadata.HasField("deletionTimestamp")
    endpoint = discovery_v1_pb2.Endpoint(addresses=endpoints.addresses(pod, family), targetRef=endpoints.reference(pod))
    conditions = endpoint.conditions
    conditions.ready = service.spec.publishNotReadyAddresses or (serving and not terminating)
    conditions.serving, conditions.terminating = serving, terminating
    if pod.spec.nodeName:
        endpoint.nodeName = pod.spec.nodeName
    if node is not None and node.metadata.labels.get(ZONE):
        endpoint.zone = node.metadata.labels[ZONE]
    if endpoints.has_hostname(pod, service):
        endpoint.hostname = pod.spec.hostname
    return endpoint


def _new(
    service: core_v1_pb2.Service, ports: Sequence[discovery_v1_pb2.EndpointPort], family: str
) -> discovery_v1_pb2.EndpointSlice:
    """``newEndpointSlice``."""
    made = discovery_v1_pb2.EndpointSlice(addressType=family, ports=ports)
    made.metadata.generateName = f"{service.metadata.name}-"
    made.metadata.namespace = service.metadata.namespace
    made.metadata.ownerReferences.append(meta.owner_reference(service, "v1", "Service"))
    _label(made, service)
    return made


def _label(found: discovery_v1_pb2.EndpointSlice, service: core_v1_pb2.Service) -> bool:
    """Give it the labels of its Service and those of its own, in place. Returns whether those of the Service were
    others (``setEndpointSliceLabels``)."""
    labels = found.metadata.labels
    before = {key: value for key, value in labels.items() if key not in _RESERVED}
    wanted = {key: value for key, value in service.metadata.labels.items() if key not in _RESERVED}
    labels.clear()
    labels.update(wanted)
    if endpoints.is_headless(service):
        labels[endpoints.HEADLESS] = ""
    labels[endpoints.SERVICE_NAME], labels[endpoints.MANAGED_BY] = service.metadata.name, NAME
    return before != wanted


def _is_same_but_for_name(one: discovery_v1_pb2.EndpointSlice, other: discovery_v1_pb2.EndpointSlice) -> bool:
    """``placeholderSliceCompare``: of the metadata, the labels count."""
    return (
        meta.have_same_entries(one.metadata.labels, other.metadata.labels)
        and one.addressType == other.addressType
        and list(one.endpoints) == list(other.endpoints)
        and list(one.ports) == list(other.ports)
    )
