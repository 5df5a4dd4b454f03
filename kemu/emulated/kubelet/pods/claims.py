"""What one pod takes from its node: resources and host ports."""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache

from kemu.emulated.objects.amounts import requests
from kemu.emulated.objects.pods import host_ports
from kemu.messages.k8s import core_v1_pb2


class Claim:
    """What one pod takes from its node while it counts there."""

    __slots__ = ("ports", "requests")

    def __init__(self, amounts: Mapping[str, int], ports: tuple[host_ports.HostPort, ...]) -> None:
        self.requests = amounts
        """cpu in millicores, everything else in whole units; the place that the pod takes is not among them."""
        self.ports = ports


def claim_of(pod: core_v1_pb2.Pod, *, running: bool = False) -> Claim:
    """``running``: the pod is on the node already. What its status says it has counts, too, where that is more."""
    amounts = requests.pod_requests_on_node(pod) if running else requests.pod_requests(pod)
    return Claim(_alike(tuple(amounts.items())), host_ports.of(pod.spec))


@lru_cache(1024)
def _alike(amounts: tuple[tuple[str, int], ...]) -> Mapping[str, int]:
    """One for all pods that take the same."""
    return dict(amounts)
