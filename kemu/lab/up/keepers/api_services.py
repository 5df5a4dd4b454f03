"""Keeps the APIService objects: those of what the cluster itself serves, and whether others are available.

In Kubernetes the aggregator in the API server does (``kube-aggregator``: ``autoregister_controller.go``,
``crdregistration_controller.go``, ``remote_available_controller.go``). What another server would have to answer is
only available where a process outside of the cluster stands for it: there is no network between pods.
"""

from __future__ import annotations

import contextlib
from collections.abc import Collection, Coroutine
from typing import Any

from kemu import errors
from kemu.emulated.client import clients, informers, retries
from kemu.emulated.gateway.discovery import catalogue
from kemu.emulated.objects import meta, resources
from kemu.messages.k8s import apiregistration_v1_pb2, core_v1_pb2, discovery_v1_pb2
from kemu.runtime.env import Env

AUTOMANAGED = "kube-aggregator.kubernetes.io/automanaged"
ON_START, ALWAYS = "onstart", "true"

_PRIORITIES = {
    "": 18000, "apps": 17800, "events.k8s.io": 17750, "authentication.k8s.io": 17700,
    "authorization.k8s.io": 17600, "autoscaling": 17500, "batch": 17400, "certificates.k8s.io": 17300,
    "networking.k8s.io": 17200, "policy": 17100, "rbac.authorization.k8s.io": 17000, "storage.k8s.io": 16800,
    "apiextensions.k8s.io": 16700, "admissionregistration.k8s.io": 16700, "scheduling.k8s.io": 16600,
    "coordination.k8s.io": 16500, "node.k8s.io": 16300, "discovery.k8s.io": 16200, "resource.k8s.io": 16200,
    "flowcontrol.apiserver.k8s.io": 16100, "metrics.k8s.io": 100,
}  # fmt: skip
"""``groupPriorityMinimum`` (``DefaultGenericAPIServicePriorities``)."""
_VERSIONS = {
    "v1.": 1, "v2.autoscaling": 30, "v1.flowcontrol.apiserver.k8s.io": 21, "v1.resource.k8s.io": 21,
    "v1beta1.metrics.k8s.io": 100,
}  # fmt: skip
_VERSION_PRIORITY = 15
"""``versionPriority`` of the others."""
CUSTOM = 1000, 100
"""Both priorities of what CustomResourceDefinitions define."""
_AGGREGATOR = "apiregistration.k8s.io"
"""Has no APIService itself."""
_DEFINITIONS = "customresourcedefinitions"

Service = apiregistration_v1_pb2.APIService


class ApiServiceKeeper:
    def __init__(self, env: Env, client: clients.Client, processes: Collection[str] = ()) -> None:
        """``processes``: Services, NAMESPACE/NAME, that a process stands for: the gateway asks it."""
        self._env = env
        self._client = client
        self._processes = processes
        self._found: informers.Informer[Service] = informers.Informer(
            client,
            "apiservices",
            handler=informers.Callbacks(
                on_add=lambda new: self._on_service(new),
                on_update=lambda old, new: self._on_service(new),
                on_delete=lambda old: self._on_deleted(old),
            ),
        )
        look: informers.Callbacks[Any] = informers.Callbacks(
            on_add=lambda new: self._look_at_all(),
            on_update=lambda old, new: self._look_at_all(),
            on_delete=lambda old: self._look_at_all(),
        )
        self._services: informers.Informer[core_v1_pb2.Service] | None = None
        self._slices: informers.Informer[discovery_v1_pb2.EndpointSlice] | None = None
        self._look = look
        self._definitions: informers.Informer[Any] | None = None
        if _DEFINITIONS in resources.BY_PLURAL:
            self._definitions = informers.Informer(
                client,
                _DEFINITIONS,
                handler=informers.Callbacks(
                    on_add=lambda new: self._keep_custom(),
                    on_update=lambda old, new: self._keep_custom(),
                    on_delete=lambda old: self._keep_custom(),
                ),
            )
        self._busy: set[str] = set()
        """Names of those that are being written."""

    async def begin(self) -> None:
        """Returns when all of them are there."""
        for one in catalogue.versions():
            if one.group == _AGGREGATOR:
                continue
            name = f"{one.version}.{one.group}"
            priorities = _PRIORITIES.get(one.group, CUSTOM[0]), _VERSIONS.get(name, _VERSION_PRIORITY)
            await self._make(_local(one.group, one.version, priorities, ON_START))
        await self._found.synced()
        if self._definitions is not None:
            await self._definitions.synced()

    async def _make(self, wanted: Service) -> None:
        with contextlib.suppress(errors.AlreadyExists):
            await retries.patiently(self._env, lambda: self._client.create(wanted))

    # Custom resources

    def _custom(self) -> dict[str, Service]:
        """What definitions want."""
        assert self._definitions is not None
        found = {}
        for definition in self._definitions.store.values():
            spec: Any = definition.spec
            if not any(one.type == "Established" and one.status == "True" for one in definition.status.conditions):
                continue
            for version in spec.versions:
                if version.served:
                    made = _local(spec.group, version.name, CUSTOM, ALWAYS)
                    found[made.metadata.name] = made
        return found

    def _keep_custom(self) -> None:
        wanted = self._custom()
        for name in sorted(wanted.keys() - self._found.store.keys() - self._busy):
            self._spawn(name, self._make(wanted[name]))
        for name in sorted(self._found.store):
            is_ours = self._found.store[name].metadata.labels.get(AUTOMANAGED) == ALWAYS
            if is_ours and name not in wanted and name not in self._busy:
                self._spawn(name, self._remove(name))

    async def _remove(self, name: str) -> None:
        with contextlib.suppress(errors.NotFound):
            await retries.patiently(self._env, lambda: self._client.delete("apiservices", name))

    def _spawn(self, name: str, work: Coroutine[None, None, None]) -> None:
        async def carry_out() -> None:
            self._busy.add(name)
            try:
                await work
            finally:
                self._busy.discard(name)

        self._env.spawn(carry_out(), f"keep API service {name}")

    # Others

    def _on_service(self, service: Service) -> None:
        if self._definitions is not None and service.metadata.labels.get(AUTOMANAGED) == ALWAYS:
            self._keep_custom()
        name = service.metadata.name
        if name not in self._busy and self._lacks(service):
            self._spawn(name, self._tell(name))

    def _on_deleted(self, service: Service) -> None:
        """Those of custom resources come back; what only ``onstart`` made does not."""
        if self._definitions is not None:
            self._keep_custom()

    def _look_at_all(self) -> None:
        for service in list(self._found.store.values()):
            self._on_service(service)

    def _lacks(self, service: Service) -> bool:
        if not service.spec.HasField("service"):
            return _available(service) != _LOCAL
        return self._services is None or self._state(service) not in (None, _available(service))

    async def _tell(self, name: str) -> None:
        if self._services is None:
            # Only clusters with such objects need these.
            self._services = informers.Informer(self._client, "services", handler=self._look)
            self._slices = informers.Informer(self._client, "endpointslices", handler=self._look)
            await self._services.synced()
            await self._slices.synced()
        while (found := self._found.store.get(name)) is not None and self._lacks(found):
            wanted = self._state(found) if found.spec.HasField("service") else _LOCAL
            assert wanted is not None
            revised = Service()
            revised.CopyFrom(found)
            conditions = revised.status.conditions
            condition = next((one for one in conditions if one.type == "Available"), None)
            if condition is None:
                condition = conditions.add(type="Available")
            if condition.status != wanted[0]:
                meta.set_time(condition.lastTransitionTime, self._env.clock.unix_ns())
            condition.status, condition.reason, condition.message = wanted
            with contextlib.suppress(errors.Conflict, errors.NotFound, *retries.PASSING):
                await self._client.update_status(revised)
            await self._env.clock.pause(0.1)

    def _state(self, service: Service) -> tuple[str, str, str] | None:
        """Status, reason and message of its condition; None: :mod:`kemu.emulated.gateway.aggregation` says it."""
        assert self._services is not None
        assert self._slices is not None
        where = service.spec.service
        found = self._services.store.get(f"{where.namespace}/{where.name}")
        what = f'service/{where.name} in "{where.namespace}"'
        if found is None:
            return "False", "ServiceNotFound", f"{what} is not present"
        if found.spec.type == "ClusterIP":
            ports = {one.port: one.name for one in found.spec.ports}
            if where.port not in ports:
                return "False", "ServicePortError", f"{what} is not listening on port {where.port}"
            if f"{where.namespace}/{where.name}" in self._processes:
                return None
            slices = [
                one
                for one in self._slices.store.values()
                if one.metadata.namespace == where.namespace
                and one.metadata.labels.get("kubernetes.io/service-name") == where.name
            ]
            text = f"endpointslices for {what}"
            if not slices:
                return "False", "EndpointsNotFound", f"cannot find {text}"
            name = ports[where.port]
            if not any(one.endpoints and any(port.name == name for port in one.ports) for one in slices):
                return "False", "MissingEndpoints", f'{text} have no addresses with port name "{name}"'
        if found.spec.type == "ExternalName":
            return None
        spec = service.spec
        url = f"https://{found.spec.clusterIP}:{where.port}/apis/{spec.group}/{spec.version}"
        text = f'failing or missing response from {url}: Get "{url}": there is no network between pods'
        return "False", "FailedDiscoveryCheck", text


_LOCAL = "True", "Local", "Local APIServices are always available"


def _available(service: Service) -> tuple[str, str, str] | None:
    for one in service.status.conditions:
        if one.type == "Available":
            return one.status, one.reason, one.message
    return None


def _local(group: str, version: str, priorities: tuple[int, int], automanaged: str) -> Service:
    found = Service()
    found.metadata.name = f"{version}.{group}"
    found.metadata.labels[AUTOMANAGED] = automanaged
    spec = found.spec
    if group:
        spec.group = group
    spec.version = version
    spec.groupPriorityMinimum, spec.versionPriority = priorities
    return found
