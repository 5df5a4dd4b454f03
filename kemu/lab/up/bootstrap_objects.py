"""The objects that clients expect in every cluster: the service ``kubernetes``, made once unless a client has made it,
and those that keepers look after as Kubernetes does: in each namespace an account and the authority of the API server,
flow schemas and priority levels, API services.
"""

from __future__ import annotations

import contextlib
from collections.abc import Collection, Sequence

from kemu import errors
from kemu.emulated.client import clients, retries
from kemu.emulated.gateway import aggregation
from kemu.emulated.objects.kinds import service_ranges
from kemu.lab.up.keepers import api_services, credentials, flows, namespaces, policy_types
from kemu.messages.k8s import core_v1_pb2, discovery_v1_pb2, meta_v1_pb2, storage_v1_pb2
from kemu.messages.k8s.objects import KubernetesObject
from kemu.runtime.env import Env

DRIVER = "csi.kemu.dev"


class Bootstrap:
    """Makes them, and has the others kept."""

    def __init__(
        self,
        env: Env,
        client: clients.Client,
        authority: str,
        more: Sequence[KubernetesObject] = (),
        *,
        ranges: Sequence[str] = (),
        alone: bool = False,
        processes: Collection[str] = (),
    ) -> None:
        """``authority``: in PEM; empty: there is none. ``more``: further objects, without namespaces. ``ranges``: of
        the addresses of Services. ``alone``: without what kube-controller-manager keeps. ``processes``: Services that
        a process stands for."""
        self._env = env
        self._client = client
        self._more = (*((aggregation.authentication(authority),) if authority else ()), *more)
        self._address = service_ranges.first((ranges or service_ranges.USUAL)[0])
        self._namespaces = None if alone else namespaces.NamespaceKeeper(env, client, authority)
        self._flows = flows.FlowKeeper(env, client)
        self._credentials = None if alone else credentials.CredentialKeeper(env, client)
        self._policies = None if alone else policy_types.PolicyTypeKeeper(env, client)
        self._services = api_services.ApiServiceKeeper(env, client, processes)

    async def furnish(self) -> None:
        """What pods need. Returns when it is there."""
        if self._namespaces is not None:
            await self._namespaces.begin()

    async def begin(self, address: str, port: int) -> None:
        """``address``, ``port``: where the API is served. Returns when the rest is there, too."""
        await self._make(_service(self._address))
        with contextlib.suppress(errors.Invalid):
            # No cluster has endpoints that only the machine itself can reach.
            await self._make(_endpoint_slice(address, port))
        for one in self._more:
            await self._make(one)
        await self._flows.begin()
        await self._services.begin()
        if self._credentials is not None:
            await self._credentials.begin()
        if self._policies is not None:
            await self._policies.begin()

    async def _make(self, found: KubernetesObject) -> None:
        # It may be there, or its namespace gone again.
        with contextlib.suppress(errors.AlreadyExists, errors.NotFound, errors.Forbidden):
            await retries.patiently(self._env, lambda: self._client.create(found))


def default_class() -> storage_v1_pb2.StorageClass:
    """The class of claims that name none, whose volumes the simulated CSI driver of that name makes."""
    made = storage_v1_pb2.StorageClass(
        provisioner=DRIVER, reclaimPolicy="Delete", volumeBindingMode="WaitForFirstConsumer"
    )
    made.metadata.name = "standard"
    made.metadata.annotations["storageclass.kubernetes.io/is-default-class"] = "true"
    return made


def _service(address: str) -> core_v1_pb2.Service:
    service = core_v1_pb2.Service()
    _name(service.metadata)
    spec = service.spec
    spec.type = "ClusterIP"
    spec.clusterIP = address
    spec.clusterIPs.append(address)
    spec.ipFamilies.append(service_ranges.family(address))
    spec.ipFamilyPolicy = "SingleStack"
    spec.sessionAffinity = "None"
    spec.internalTrafficPolicy = "Cluster"
    port = spec.ports.add(name="https", port=443, protocol="TCP")
    port.targetPort.intVal = 6443
    return service


def _endpoint_slice(address: str, port: int) -> discovery_v1_pb2.EndpointSlice:
    found = discovery_v1_pb2.EndpointSlice(addressType="IPv6" if ":" in address else "IPv4")
    _name(found.metadata)
    found.metadata.labels["kubernetes.io/service-name"] = "kubernetes"
    found.endpoints.add(addresses=[address]).conditions.ready = True
    found.ports.add(name="https", port=port, protocol="TCP")
    return found


def _name(metadata: meta_v1_pb2.ObjectMeta) -> None:
    metadata.name, metadata.namespace = "kubernetes", "default"
    labels = metadata.labels
    labels["component"], labels["provider"] = "apiserver", "kubernetes"
