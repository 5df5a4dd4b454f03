"""The host ports of a pod, and when two of them conflict.

Mirrors ``HostPortInfo`` of ``k8s.io/kubernetes/pkg/scheduler/framework``, which the scheduler and the kubelet share.
"""

from __future__ import annotations

from kemu.messages.k8s import core_v1_pb2

HostPort = tuple[str, str, int]
"""IP (``0.0.0.0`` for all), protocol, port."""
ANY_IP = "0.0.0.0"


def of(spec: core_v1_pb2.PodSpec) -> tuple[HostPort, ...]:
    """The host ports of containers and sidecars."""
    found: list[HostPort] = []
    # Slices, as in meta.get_condition; nearly all pods have neither.
    for container in spec.containers[:]:
        if len(container.ports):
            found += _of_container(container)
    if len(spec.initContainers):
        for container in spec.initContainers:
            if container.restartPolicy == "Always":
                found += _of_container(container)
    return tuple(found)


def _of_container(container: core_v1_pb2.Container) -> list[HostPort]:
    return [
        (port.hostIP or ANY_IP, port.protocol or "TCP", port.hostPort) for port in container.ports if port.hostPort > 0
    ]


def conflict(one: str, other: str) -> bool:
    """Whether two addresses conflict on one port and protocol: the same one, or either of them stands for all."""
    return one == other or ANY_IP in (one, other)
