"""What the autoscaler asks of single pods (``utils/pod``, ``utils/drain``, ``core/utils``)."""

from __future__ import annotations

from kemu.emulated.objects import meta, times
from kemu.messages.k8s import core_v1_pb2
from kemu.runtime.env import SECOND_NS

SAFE_TO_EVICT = "cluster-autoscaler.kubernetes.io/safe-to-evict"
SAFE_LOCAL_VOLUMES = "cluster-autoscaler.kubernetes.io/safe-to-evict-local-volumes"
DAEMON_SET_POD = "cluster-autoscaler.kubernetes.io/daemonset-pod"
DAEMON_SET_EVICTION = "cluster-autoscaler.kubernetes.io/enable-ds-eviction"
SCALE_UP_DELAY = "cluster-autoscaler.kubernetes.io/pod-scale-up-delay"
MIRROR = "kubernetes.io/config.mirror"
SOURCE = "kubernetes.io/config.source"
DEFAULT_GRACE_S = 30
LONG_TERMINATING_S = 30
"""After its grace period, a pod that still terminates no longer counts (``PodLongTerminatingExtraThreshold``)."""


def is_expendable(pod: core_v1_pb2.Pod, cut_off: int) -> bool:
    """Whether it has a lower priority than the cut-off, and so neither scales up nor keeps a node
    (``IsExpendablePod``)."""
    return bool(pod.spec.HasField("priority") and pod.spec.priority < cut_off)


def is_mirror(pod: core_v1_pb2.Pod) -> bool:
    return MIRROR in pod.metadata.annotations


def of_daemon_set(pod: core_v1_pb2.Pod) -> bool:
    owner = meta.controller_of(pod)
    return (owner is not None and owner.kind == "DaemonSet") or pod.metadata.annotations.get(DAEMON_SET_POD) == "true"


def comes_back(pod: core_v1_pb2.Pod) -> bool:
    """Whether a controller creates it again, if not on its node (``FilterRecreatablePods``)."""
    source = pod.metadata.annotations.get(SOURCE, "api")
    return source == "api" and not is_mirror(pod) and not of_daemon_set(pod)


def grace_s(pod: core_v1_pb2.Pod) -> int:
    spec = pod.spec
    return spec.terminationGracePeriodSeconds if spec.HasField("terminationGracePeriodSeconds") else DEFAULT_GRACE_S


def terminates_long(pod: core_v1_pb2.Pod, unix_ns: int) -> bool:
    if not pod.metadata.HasField("deletionTimestamp"):
        return False
    # As the autoscaler has it: the deletion timestamp already contains the grace period.
    limit_ns = (grace_s(pod) + LONG_TERMINATING_S) * SECOND_NS
    return meta.unix_ns(pod.metadata.deletionTimestamp) + limit_ns < unix_ns


def is_terminal(pod: core_v1_pb2.Pod) -> bool:
    """``IsPodTerminal``."""
    phase, policy = pod.status.phase, pod.spec.restartPolicy
    if policy == "OnFailure" and phase == "Succeeded":
        return True
    return bool(phase == "Failed" or (policy == "Never" and phase == "Succeeded"))


def has_blocking_local_storage(pod: core_v1_pb2.Pod) -> bool:
    """``HasBlockingLocalStorage``."""
    safe = pod.metadata.annotations.get(SAFE_LOCAL_VOLUMES, "").split(",")
    for volume in pod.spec.volumes:
        source = volume.volumeSource
        local = source.HasField("hostPath") or (source.HasField("emptyDir") and source.emptyDir.medium != "Memory")
        if local and volume.name not in safe:
            return True
    return False


def unbound(pod: core_v1_pb2.Pod) -> core_v1_pb2.Pod:
    """A copy that waits for a node."""
    copy = meta.copied(pod)
    copy.spec.ClearField("nodeName")
    return copy


def is_unschedulable(pod: core_v1_pb2.Pod) -> bool:
    """A scheduler has tried in vain."""
    scheduled = meta.get_condition(pod.status.conditions, "PodScheduled")
    return scheduled is not None and (scheduled.status, scheduled.reason) == ("False", "Unschedulable")


def requests_gpu(pod: core_v1_pb2.Pod) -> bool:
    return any("nvidia.com/gpu" in container.resources.requests for container in pod.spec.containers)


def seconds(text: str, default: float) -> float:
    """A Go duration; what is none, or nothing, is the default."""
    try:
        return times.parse_duration(text) / SECOND_NS
    except ValueError:
        return default
