"""What a container runtime and a network tell of a pod: addresses, and the IDs of containers and images.

Only on nodes that have a range of addresses for their pods (``spec.podCIDR``), as all have in ``kemu up``. Addresses
go round through the range, as those of the CNI plugin host-local do, so that one that was just freed is not taken at
once. A pod keeps its address as long as its object is there. IDs follow from the pod's UID and the container's name and
restarts.
"""

from __future__ import annotations

import hashlib
import ipaddress

from kemu.emulated.kubelet.pods.workers import Worker
from kemu.emulated.objects import meta
from kemu.messages.k8s import core_v1_pb2

RUNTIME = "kemu"
_RESERVED = 2
"""The address of the network, and that of the node within it; the last one is that of broadcasts."""


class Sandboxes:
    """Sandboxes of one node."""

    def __init__(self, node: core_v1_pb2.Node) -> None:
        """``node``: with a ``podCIDR``."""
        self._range = ipaddress.ip_network(node.spec.podCIDR, strict=False)
        self._host = next((one.address for one in node.status.addresses if one.type == "InternalIP"), "")
        self._given: dict[str, str] = {}
        """By the UIDs of pods."""
        self._used: dict[str, None] = {}
        self._next = 0

    def describe(self, status: core_v1_pb2.PodStatus, worker: Worker, *, is_up: bool) -> None:
        """``is_up``: its sandbox is there."""
        if self._host:
            status.hostIP = self._host
            if not len(status.hostIPs):
                status.hostIPs.add(ip=self._host)
        if is_up and not status.podIP:
            address = self._host if worker.pod.spec.hostNetwork else self._give(worker.uid)
            if address:
                status.podIP = address
                status.podIPs.add(ip=address)
        elif status.podIP and status.podIP != self._host and worker.uid not in self._given:
            # The kubelet was away meanwhile.
            self._given[worker.uid] = status.podIP
            self._used[status.podIP] = None
        for one in (*status.initContainerStatuses, *status.containerStatuses):
            self._identify(one, worker.uid)

    def addressed(self, worker: Worker) -> core_v1_pb2.Pod:
        """The pod as its containers know it: with its addresses, which its status may not tell yet."""
        pod = worker.pod
        if pod.status.podIP or not worker.has_sandbox:
            return pod
        found = meta.copied(pod)
        self.describe(found.status, worker, is_up=True)
        return found

    def forget(self, worker: Worker) -> None:
        self._used.pop(self._given.pop(worker.uid, ""), None)

    def _give(self, uid: str) -> str:
        """Empty: there is none left."""
        known = self._given.get(uid)
        if known is not None:
            return known
        size = max(0, self._range.num_addresses - _RESERVED - 1)
        for _ in range(size):
            address = str(self._range[_RESERVED + self._next])
            self._next = (self._next + 1) % size
            if address not in self._used:
                self._used[address] = None
                self._given[uid] = address
                return address
        return ""

    def _identify(self, container: core_v1_pb2.ContainerStatus, uid: str) -> None:
        state, last = container.state, container.lastState
        if state.HasField("running") or state.HasField("terminated"):
            container.containerID = _id(uid, container.name, container.restartCount)
            container.imageID = f"{container.image}@sha256:{_digest(container.image)}"
        if state.HasField("terminated"):
            state.terminated.containerID = container.containerID
        if last.HasField("terminated"):
            waits = state.HasField("waiting")
            last.terminated.containerID = _id(uid, container.name, max(0, container.restartCount - 1))
            if waits:
                container.containerID = last.terminated.containerID
                container.imageID = f"{container.image}@sha256:{_digest(container.image)}"


def _id(uid: str, name: str, restarts: int) -> str:
    return f"{RUNTIME}://{_digest(f'{uid}/{name}/{restarts}')}"


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()
