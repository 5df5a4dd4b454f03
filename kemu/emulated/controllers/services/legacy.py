"""The actor ``controller/endpoints``: the Endpoints of Services with a selector.

Further config: ``settings`` (:class:`kemu.emulated.controllers.services.members.Settings`), ``events``
(:data:`kemu.emulated.client.recorders.LEVELS`). Mirrors ``pkg/controller/endpoint``.
"""

from __future__ import annotations

import contextlib
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

from kemu import errors
from kemu.emulated.client import informers, recorders
from kemu.emulated.controllers import controllers
from kemu.emulated.controllers.services import endpoints, members, subsets
from kemu.emulated.objects import meta
from kemu.emulated.settings.declared import restored
from kemu.messages.k8s import core_v1_pb2
from kemu.runtime.env import Env

MANAGED_BY, NAME = "endpoints.kubernetes.io/managed-by", "endpoint-controller"
OVER_CAPACITY = "endpoints.kubernetes.io/over-capacity"
LEADER = "control-plane.alpha.kubernetes.io/leader"
"""Annotation of Endpoints that are a lock of older clients, and belong to no Service."""
_OWN_LABELS = (endpoints.HEADLESS, MANAGED_BY)


class EndpointsController(members.ServiceController):
    """Factory: ``kemu.emulated.controllers.services.legacy:EndpointsController``."""

    component: ClassVar[str] = "endpoint-controller"
    queue_name: ClassVar[str] = "endpoint"

    def __init__(self, env: Env, config: Mapping[str, Any]) -> None:
        settings = restored(members.Settings, config.get("settings", {}))
        super().__init__(env, config, settings.endpoint_updates_batch_period_ns)
        self._replaced: dict[str, str] = {}
        """Versions that were overwritten: what still shows one is out of date (``staleEndpointsTracker``)."""
        self._endpoints: informers.Informer[core_v1_pb2.Endpoints] = informers.Informer(
            self.client, "endpoints", handler=informers.Callbacks(on_delete=self._deleted)
        )

    async def run(self) -> None:
        await self.begin(self.pods, self.services, self._endpoints)
        for key, found in self._endpoints.store.items():
            if LEADER not in found.metadata.annotations:
                self.queue.add_after(key, self.lag_s())
        await self.work(self.queue, self.reconcile, endpoints.WORKERS)

    def _deleted(self, found: core_v1_pb2.Endpoints) -> None:
        self.queue.add_after(controllers.key_of(found), self.lag_s())

    async def sync(self, key: str) -> None:
        """``syncService``."""
        service = self.services.store.get(key)
        if service is None:
            namespace, name = meta.split_name(key)
            with contextlib.suppress(errors.NotFound):
                await self.client.delete("endpoints", name, namespace)
            self.forget(key)
            self._replaced.pop(key, None)
            return
        if service.spec.type == "ExternalName" or not service.spec.selector:
            return
        pods = self.members(service)
        trigger = self.trigger_time(service, pods)
        found = subsets.repack(_subsets(service, pods))
        current = self._endpoints.store.get(key)
        if current is not None and self._replaced.get(key) == current.metadata.resourceVersion:
            raise errors.ServiceUnavailable(
                "endpoints informer cache is out of date, resource version"
                f" {current.metadata.resourceVersion} already processed for endpoints {key}"
            )
        if current is not None and _is_right(current, found, service):
            return
        wanted = _made(service, current, found, trigger)
        try:
            if current is None:
                await self.client.create(wanted)
            else:
                updated = await self.client.update(wanted)
                if updated.metadata.resourceVersion != current.metadata.resourceVersion:
                    self._replaced[key] = current.metadata.resourceVersion
        except errors.ApiError as error:
            if current is None and endpoints.is_namespace_going(error):
                return
            reason = "FailedToCreateEndpoint" if current is None else "FailedToUpdateEndpoint"
            text = f"create endpoint for service {key}" if current is None else f"update endpoint {key}"
            self.recorder.event(wanted, recorders.WARNING, reason, reason, f"Failed to {text}: {error.message}")
            raise


def _subsets(service: core_v1_pb2.Service, pods: Sequence[core_v1_pb2.Pod]) -> list[core_v1_pb2.EndpointSubset]:
    """One for each pod and port."""
    unready_too = service.spec.publishNotReadyAddresses
    made = []
    for pod in pods:
        if not endpoints.belongs(pod, terminating=unready_too):
            continue
        address = _address(service, pod)
        if address is None:
            continue
        field = "addresses" if unready_too or meta.is_ready(pod) else "notReadyAddresses"
        if not service.spec.ports and service.spec.clusterIP == "None":
            made.append(core_v1_pb2.EndpointSubset(**{field: [address]}))  # type: ignore[arg-type]
        for port in service.spec.ports:
            number = endpoints.port_number(pod, port)
            if number is None:
                continue
            subset = core_v1_pb2.EndpointSubset(**{field: [address]})  # type: ignore[arg-type]
            of_subset = subset.ports.add(port=number)
            for name in ("name", "protocol", "appProtocol"):
                if port.HasField(name):
                    setattr(of_subset, name, getattr(port, name))
            made.append(subset)
    return made


def _address(service: core_v1_pb2.Service, pod: core_v1_pb2.Pod) -> core_v1_pb2.EndpointAddress | None:
    """``podToEndpointAddressForService``; None: the pod has no address of the Service's family."""
    spec = service.spec
    if spec.ipFamilies:
        family = spec.ipFamilies[0]
    elif not endpoints.is_headless(service):
        family = "IPv6" if ":" in spec.clusterIP else "IPv4"
    else:
        family = "IPv6" if ":" in pod.status.podIP else "IPv4"
    found = endpoints.addresses(pod, family)
    if not found:
        return None
    made = core_v1_pb2.EndpointAddress(ip=found[0], nodeName=pod.spec.nodeName, targetRef=endpoints.reference(pod))
    if endpoints.has_hostname(pod, service):
        made.hostname = pod.spec.hostname
    return made


def _is_right(
    current: core_v1_pb2.Endpoints, found: Sequence[core_v1_pb2.EndpointSubset], service: core_v1_pb2.Service
) -> bool:
    """Whether there is nothing to write."""
    labels = current.metadata.labels
    of_service = {key: value for key, value in labels.items() if key not in _OWN_LABELS}
    return (
        (subsets.are_equal(list(current.subsets), found) or subsets.are_equal(subsets.repack(current.subsets), found))
        and labels.get(MANAGED_BY, "") == NAME
        and of_service == dict(service.metadata.labels)
        and subsets.count(current.subsets) <= subsets.MOST
        and OVER_CAPACITY not in current.metadata.annotations
    )


def _made(
    service: core_v1_pb2.Service,
    current: core_v1_pb2.Endpoints | None,
    found: Sequence[core_v1_pb2.EndpointSubset],
    trigger: str,
) -> core_v1_pb2.Endpoints:
    made = core_v1_pb2.Endpoints()
    if current is not None:
        made.CopyFrom(current)
    metadata = made.metadata
    metadata.name, metadata.namespace = service.metadata.name, service.metadata.namespace
    del made.subsets[:]
    made.subsets.extend(found)
    metadata.labels.clear()
    metadata.labels.update(service.metadata.labels)
    members.with_trigger(made, trigger)
    if subsets.truncate(list(made.subsets)):
        metadata.annotations[OVER_CAPACITY] = "truncated"
    else:
        metadata.annotations.pop(OVER_CAPACITY, None)
    metadata.labels.pop(endpoints.HEADLESS, None)
    if endpoints.is_headless(service):
        metadata.labels[endpoints.HEADLESS] = ""
    metadata.labels[MANAGED_BY] = NAME
    return made
