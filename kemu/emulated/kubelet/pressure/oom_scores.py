"""Which containers the kernel kills first when the memory of a node runs out: their ``oom_score_adj``.

Mirrors ``pkg/kubelet/qos`` (``GetContainerOOMScoreAdjust``). Scores run from -997 (last) to 1000 (first).
"""

from __future__ import annotations

from kemu.emulated.kubelet.pods import critical
from kemu.emulated.objects.amounts import qos, quantities, requests
from kemu.messages.k8s import core_v1_pb2

GUARANTEED = -997
BEST_EFFORT = 1000

_BURSTABLE_LEAST = 1000 + GUARANTEED
"""Burstable containers come before every guaranteed one …"""
_BURSTABLE_MOST = BEST_EFFORT - 1
"""… and after every best-effort one."""


def score(pod: core_v1_pb2.Pod, container: core_v1_pb2.Container, memory_capacity: int) -> int:
    """Score of a container of ``pod`` (init containers too) on a node of so many bytes."""
    if critical.is_node_critical(pod):
        return GUARANTEED
    qos_class = qos.qos_class(pod)
    if qos_class == qos.GUARANTEED:
        return GUARANTEED
    if qos_class == qos.BEST_EFFORT:
        return BEST_EFFORT
    share = _pod_level_share(pod)
    adjust = _burstable(_memory(container) + share, memory_capacity)
    if container.restartPolicy == "Always" and any(container.name == one.name for one in pod.spec.initContainers):
        # A sidecar goes no sooner than the containers that it serves.
        smallest = min((_memory(one) for one in pod.spec.containers), default=0)
        adjust = min(adjust, _burstable(smallest + share, memory_capacity))
    if adjust < _BURSTABLE_LEAST:
        return _BURSTABLE_LEAST
    return _BURSTABLE_MOST if adjust == BEST_EFFORT else adjust


def _burstable(request: int, memory_capacity: int) -> int:
    # As an int64 wraps around, and divided towards zero, as in Go.
    used = (1000 * request + 2**63) % 2**64 - 2**63
    part = abs(used) // memory_capacity if memory_capacity else 0
    return 1000 - (part if used >= 0 else -part)


def _memory(requester: core_v1_pb2.Container | core_v1_pb2.PodSpec) -> int:
    """Memory of a container, or what the spec of a pod says for all together."""
    wanted = requester.resources.requests
    return quantities.value(wanted[requests.MEMORY].string) if requests.MEMORY in wanted else 0


def _pod_level_share(pod: core_v1_pb2.Pod) -> int:
    """What the pod requests beyond its containers, in equal parts for them (``remainingPodMemReqPerContainer``).

    Less than nothing where they request more than the pod, which validation refuses: scores pass 1000 then.
    """
    spec = pod.spec
    wanted = _memory(spec)
    count = len(spec.containers) + len(spec.initContainers)
    if not wanted or not count:
        return 0
    rest = wanted - requests.container_requests(spec).get(requests.MEMORY, quantities.ZERO).value
    return rest // count if rest >= 0 else -(-rest // count)
