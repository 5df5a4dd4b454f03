"""The actor ``controller/endpointslice-mirroring``: Endpoints of Services without a selector, as EndpointSlices.

Further config: ``settings`` (:class:`Settings`), ``events`` (:data:`kemu.emulated.client.recorders.LEVELS`). Mirrors
``pkg/controller/endpointslicemirroring``.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from kemu import errors
from kemu.emulated.client import informers, recorders, workqueues
from kemu.emulated.controllers import controllers
from kemu.emulated.controllers.services import endpoints, packing, subsets, trackers
from kemu.emulated.controllers.services.legacy import LEADER
from kemu.emulated.objects import meta
from kemu.emulated.settings.declared import restored, setting
from kemu.emulated.settings.shapes import DURATION, Whole
from kemu.messages.k8s import core_v1_pb2, discovery_v1_pb2
from kemu.messages.k8s.objects import KubernetesObject
from kemu.runtime.env import SECOND_NS, Env

NAME = "endpointslicemirroring-controller.k8s.io"
SKIP = "endpointslice.kubernetes.io/skip-mirror"
LAST_APPLIED = "kubectl.kubernetes.io/last-applied-configuration"
MAX_DELAY_S = 100.0
FAMILIES = ("IPv4", "IPv6")


@dataclass(frozen=True, kw_only=True)
class Settings:
    """The flags of kube-controller-manager."""

    mirroring_max_endpoints_per_subset: int = setting(
        Whole(1), "Addresses that are mirrored of one subset; {default} by default.", 1000
    )
    mirroring_endpointslice_updates_batch_period_ns: int = setting(
        DURATION, "How long changes of slices are gathered; {default} by default.", "0s"
    )


class EndpointSliceMirroring(controllers.Controller):
    """Factory: ``kemu.emulated.controllers.services.mirroring:EndpointSliceMirroring``."""

    def __init__(self, env: Env, config: Mapping[str, Any]) -> None:
        super().__init__(env, config)
        settings = restored(Settings, config.get("settings", {}))
        self._most = settings.mirroring_max_endpoints_per_subset
        self._batch_s = settings.mirroring_endpointslice_updates_batch_period_ns / SECOND_NS
        level = config.get("events", recorders.NOTABLE)
        self._recorder = recorders.Recorder(env, self.client, "endpoint-slice-mirroring-controller", "0", level)
        self.queue: workqueues.WorkQueue[str] = workqueues.WorkQueue(
            env, endpoints.RETRY_S, MAX_DELAY_S, name="endpoint_slice_mirroring"
        )
        self._slices = trackers.ManagedSlices(self.client, NAME, self._slices_changed)
        self._endpoints: informers.Informer[core_v1_pb2.Endpoints] = informers.Informer(
            self.client,
            "endpoints",
            handler=informers.Callbacks(self._endpoints_changed, self._endpoints_updated, self._endpoints_changed),
        )
        self._services: informers.Informer[core_v1_pb2.Service] = informers.Informer(
            self.client,
            "services",
            handler=informers.Callbacks(self._service_changed, self._service_updated, self._service_changed),
        )

    async def run(self) -> None:
        await self.begin(self._slices.informer, self._services, self._endpoints)
        await self.work(self.queue, self._reconcile, endpoints.WORKERS)

    # --- events ------------------------------------------------------------------------------------------------------

    def _enqueue(self, obj: KubernetesObject) -> None:
        self.queue.add_after(controllers.key_of(obj), self.lag_s())

    def _endpoints_changed(self, found: core_v1_pb2.Endpoints) -> None:
        if _is_mirrored(found):
            self._enqueue(found)

    def _endpoints_updated(self, old: core_v1_pb2.Endpoints, new: core_v1_pb2.Endpoints) -> None:
        if _is_mirrored(old) or _is_mirrored(new):
            self._enqueue(new)

    def _service_changed(self, service: core_v1_pb2.Service) -> None:
        if not service.spec.selector:
            self._enqueue(service)

    def _service_updated(self, old: core_v1_pb2.Service, new: core_v1_pb2.Service) -> None:
        if bool(old.spec.selector) != bool(new.spec.selector):
            self._enqueue(new)

    def _slices_changed(self, service: str) -> None:
        self.queue.add_after(service, self._batch_s + self.lag_s())

    # --- one Service -------------------------------------------------------------------------------------------------

    async def _reconcile(self, key: str) -> None:
        try:
            await self._sync(key)
        except errors.ApiError:
            if self.queue.failures(key) < endpoints.MAX_RETRIES:
                raise

    async def _sync(self, key: str) -> None:
        """``syncEndpoints``."""
        found, service = self._endpoints.store.get(key), self._services.store.get(key)
        if found is None or service is None or not _is_mirrored(found) or service.spec.selector:
            await self._slices.clear(key)
            return
        existing = self._slices.of(key)
        if self._slices.tracker.is_stale(key, existing):
            raise errors.ServiceUnavailable("EndpointSlice informer cache is out of date")
        plan = self._plan(found, existing)
        packing.recycle(plan, lambda old, new: old.addressType == new.addressType)
        await self._slices.write(plan, may_create=not found.metadata.HasField("deletionTimestamp"))

    def _plan(self, found: core_v1_pb2.Endpoints, existing: Sequence[discovery_v1_pb2.EndpointSlice]) -> packing.Plan:
        """``reconcile``."""
        desired: dict[tuple[str, bytes], packing.Desired] = {}
        ports: dict[bytes, list[discovery_v1_pb2.EndpointPort]] = {}
        skipped = invalid = 0
        for subset in subsets.repack(found.subsets):
            of_subset = _ports(subset.ports)
            key = endpoints.port_key(of_subset)
            ports.setdefault(key, of_subset)
            for family in FAMILIES:
                desired.setdefault((family, key), {})
            added = 0
            for addresses, is_ready in ((subset.addresses, True), (subset.notReadyAddresses, False)):
                for address in addresses:
                    if added >= self._most:
                        break
                    endpoint = _endpoint(address, is_ready=is_ready)
                    if endpoint is None:
                        invalid += 1
                        continue
                    added += 1
                    family = "IPv6" if ":" in endpoint.addresses[0] else "IPv4"
                    desired[family, key][endpoints.identity(endpoint)] = endpoint
            skipped += len(subset.addresses) + len(subset.notReadyAddresses) - added
        self._tell(found, skipped, invalid)
        by_key: dict[tuple[str, bytes], list[discovery_v1_pb2.EndpointSlice]] = {}
        for one in existing:
            by_key.setdefault((one.addressType, endpoints.port_key(one.ports)), []).append(one)
        plan = packing.Plan()
        for (family, key), wanted in desired.items():
            plan.add(self._plan_ports(found, by_key.get((family, key), []), wanted, ports[key], family))
        plan.delete += [one for key2, slices in by_key.items() if key2 not in desired for one in slices]
        return plan

    def _tell(self, found: core_v1_pb2.Endpoints, skipped: int, invalid: int) -> None:
        if invalid:
            text = f"Skipped {invalid} invalid IP addresses when mirroring to EndpointSlices"
            self._recorder.event(found, recorders.WARNING, "InvalidIPAddress", "InvalidIPAddress", text)
        if skipped > invalid:
            text = (
                f"A max of {self._most} addresses can be mirrored to EndpointSlices per Endpoints subset."
                f" {skipped} addresses were skipped"
            )
            reason = "TooManyAddressesToMirror"
            self._recorder.event(found, recorders.WARNING, reason, reason, text)

    def _plan_ports(
        self,
        found: core_v1_pb2.Endpoints,
        existing: Sequence[discovery_v1_pb2.EndpointSlice],
        desired: packing.Desired,
        ports: Sequence[discovery_v1_pb2.EndpointPort],
        family: str,
    ) -> packing.Plan:
        """``reconcileByPortMapping``: one slice for each family and each set of ports."""
        plan = packing.Plan()
        if not desired:
            plan.delete = list(existing)
            return plan
        name = ""
        if existing:
            plan.delete = list(existing[1:])
            if _shows(existing[0], found, desired):
                if not self._slices.tracker.has(existing[0]):
                    self._slices.tracker.update(existing[0])
                return plan
            name = existing[0].metadata.name
        made = _new(found, ports, family, name)
        made.endpoints.extend(list(desired.values())[: self._most])
        (plan.update if name else plan.create).append(made)
        return plan


def _is_mirrored(found: core_v1_pb2.Endpoints) -> bool:
    """``shouldMirror``."""
    return found.metadata.labels.get(SKIP, "") != "true" and LEADER not in found.metadata.annotations


def _ports(ports: Sequence[core_v1_pb2.EndpointPort]) -> list[discovery_v1_pb2.EndpointPort]:
    """``epPortsToEpsPorts``."""
    made = []
    for port in ports:
        one = discovery_v1_pb2.EndpointPort(name=port.name, port=port.port, protocol=port.protocol)
        if port.HasField("appProtocol"):
            one.appProtocol = port.appProtocol
        made.append(one)
    return endpoints.in_order(made)


def _endpoint(address: core_v1_pb2.EndpointAddress, *, is_ready: bool) -> discovery_v1_pb2.Endpoint | None:
    """None: it is no IP address."""
    ip = endpoints.address(address.ip)
    if not ip:
        return None
    made = discovery_v1_pb2.Endpoint(addresses=[ip])
    made.conditions.ready = is_ready
    if address.HasField("targetRef"):
        made.targetRef.CopyFrom(address.targetRef)
    if address.HasField("nodeName"):
        made.nodeName = address.nodeName
    if address.hostname:
        made.hostname = address.hostname
    return made


def _shows(existing: discovery_v1_pb2.EndpointSlice, found: core_v1_pb2.Endpoints, desired: packing.Desired) -> bool:
    """Whether a slice says of the Endpoints what it should."""
    matches = 0
    for endpoint in existing.endpoints:
        wanted = desired.get(endpoints.identity(endpoint))
        if wanted is None or not endpoints.is_in_same_state(wanted, endpoint):
            return False
        matches += 1
    labels = dict(existing.metadata.labels)
    for key in (endpoints.MANAGED_BY, endpoints.SERVICE_NAME):
        labels.pop(key, None)
    was_of_another = any(
        owner.kind == "Endpoints" and owner.name == found.metadata.name and owner.uid != found.metadata.uid
        for owner in existing.metadata.ownerReferences
    )
    return (
        matches == len(desired)
        and labels == dict(found.metadata.labels)
        and dict(existing.metadata.annotations) == _annotations(found)
        and not was_of_another
    )


def _annotations(found: core_v1_pb2.Endpoints) -> dict[str, str]:
    left_out = (endpoints.TRIGGER_TIME, LAST_APPLIED)
    return {key: value for key, value in found.metadata.annotations.items() if key not in left_out}


def _new(
    found: core_v1_pb2.Endpoints, ports: Sequence[discovery_v1_pb2.EndpointPort], family: str, name: str
) -> discovery_v1_pb2.EndpointSlice:
    """``newEndpointSlice``. ``name``: of the slice that it replaces, or ""."""
    made = discovery_v1_pb2.EndpointSlice(addressType=family, ports=ports)
    metadata = made.metadata
    metadata.namespace = found.metadata.namespace
    metadata.labels.update(found.metadata.labels)
    metadata.labels[endpoints.SERVICE_NAME], metadata.labels[endpoints.MANAGED_BY] = found.metadata.name, NAME
    metadata.annotations.update(_annotations(found))
    metadata.ownerReferences.append(meta.owner_reference(found, "v1", "Endpoints"))
    if name:
        metadata.name = name
    else:
        metadata.generateName = f"{found.metadata.name}-"
    return made
