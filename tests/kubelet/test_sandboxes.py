"""Addresses of pods, and IDs of their containers, on nodes that have a range of addresses."""

from __future__ import annotations

from kemu.emulated.kubelet.pods.sandboxes import Sandboxes
from kemu.emulated.kubelet.pods.workers import Worker
from kemu.messages.k8s import core_v1_pb2


def _node(cidr: str) -> core_v1_pb2.Node:
    node = core_v1_pb2.Node()
    node.spec.podCIDR = cidr
    node.status.addresses.add(type="InternalIP", address="172.18.0.2")
    return node


def _worker(uid: str, *, host_network: bool = False) -> Worker:
    pod = core_v1_pb2.Pod()
    pod.metadata.uid = pod.metadata.name = uid
    pod.spec.hostNetwork = host_network
    return Worker(pod, 0)


def _described(sandboxes: Sandboxes, worker: Worker, *, is_up: bool = True) -> core_v1_pb2.PodStatus:
    status = core_v1_pb2.PodStatus()
    sandboxes.describe(status, worker, is_up=is_up)
    return status


def test_addresses_go_round_and_are_nobody_elses() -> None:
    sandboxes = Sandboxes(_node("10.1.2.0/29"))
    workers = [_worker(f"u{number}") for number in range(6)]
    given = [_described(sandboxes, worker).podIP for worker in workers[:5]]
    assert given == ["10.1.2.2", "10.1.2.3", "10.1.2.4", "10.1.2.5", "10.1.2.6"]
    assert _described(sandboxes, workers[5]).podIP == "", "none is left"
    assert _described(sandboxes, workers[1]).podIP == "10.1.2.3", "it keeps its own"
    sandboxes.forget(workers[3])
    assert _described(sandboxes, workers[5]).podIP == "10.1.2.5"


def test_a_pod_has_its_nodes_address_from_the_start_and_its_own_with_its_sandbox() -> None:
    sandboxes = Sandboxes(_node("10.1.2.0/24"))
    status = _described(sandboxes, _worker("a"), is_up=False)
    assert (status.hostIP, status.podIP, [one.ip for one in status.hostIPs]) == ("172.18.0.2", "", ["172.18.0.2"])
    shared = _described(sandboxes, _worker("b", host_network=True))
    assert (shared.podIP, [one.ip for one in shared.podIPs]) == ("172.18.0.2", ["172.18.0.2"])
    assert _described(sandboxes, _worker("c")).podIP == "10.1.2.2", "the node's own counts for nobody"


def test_a_kubelet_that_was_away_does_not_give_an_address_again() -> None:
    sandboxes = Sandboxes(_node("10.1.2.0/24"))
    status = core_v1_pb2.PodStatus(podIP="10.1.2.2")
    sandboxes.describe(status, _worker("old"), is_up=True)
    assert status.podIP == "10.1.2.2"
    assert _described(sandboxes, _worker("new")).podIP == "10.1.2.3"


def test_a_container_that_starts_again_has_another_id() -> None:
    sandboxes = Sandboxes(_node("10.1.2.0/24"))
    status = core_v1_pb2.PodStatus()
    found = status.containerStatuses.add(name="main", image="nginx")
    found.state.running.startedAt.seconds = 1
    sandboxes.describe(status, _worker("a"), is_up=True)
    first = found.containerID
    assert first.startswith("kemu://")
    assert found.imageID.startswith("nginx@sha256:")
    found.restartCount = 1
    found.lastState.terminated.exitCode = 1
    sandboxes.describe(status, _worker("a"), is_up=True)
    assert found.containerID != first
    assert found.lastState.terminated.containerID == first
