"""The objects that clients expect in every cluster: the service ``kubernetes``, and the service accounts ``default``.

In Kubernetes the API server keeps the former (``pkg/controlplane/controller/kubernetesservice``), a controller the
latter. Here they are made once, before the clock starts, unless a scenario has made them.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any

from kemu import errors
from kemu.client import clients
from kemu.k8s import core_v1_pb2, discovery_v1_pb2

SERVICE_ADDRESS = "10.96.0.1"
NAMESPACES = ("default", "kube-system", "kube-public", "kube-node-lease")


async def make(client: clients.Client, address: str, port: int, authority: str) -> None:
    """``address``, ``port``: where the API is served. ``authority``: in PEM."""
    for one in _all(address, port, authority):
        with contextlib.suppress(errors.AlreadyExists):
            await client.create(one)


def _all(address: str, port: int, authority: str) -> Iterator[Any]:
    yield _service()
    yield _endpoint_slice(address, port)
    for namespace in NAMESPACES:
        account = core_v1_pb2.ServiceAccount()
        account.metadata.name, account.metadata.namespace = "default", namespace
        yield account
        if authority:
            roots = core_v1_pb2.ConfigMap(data={"ca.crt": authority})
            roots.metadata.name, roots.metadata.namespace = "kube-root-ca.crt", namespace
            yield roots


def _service() -> core_v1_pb2.Service:
    service = core_v1_pb2.Service()
    _name(service.metadata)
    spec = service.spec
    spec.type = "ClusterIP"
    spec.clusterIP = SERVICE_ADDRESS
    spec.clusterIPs.append(SERVICE_ADDRESS)
    spec.ipFamilies.append("IPv4")
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


def _name(metadata: Any) -> None:
    metadata.name, metadata.namespace = "kubernetes", "default"
    labels = metadata.labels
    labels["component"], labels["provider"] = "apiserver", "kubernetes"
