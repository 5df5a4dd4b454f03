"""Where a DaemonSet wants pods, and what such a pod is like (``pkg/controller/daemon/util``)."""

from __future__ import annotations

from google.protobuf.internal.containers import RepeatedCompositeFieldContainer

from kemu.emulated.controllers.workloads import scaling
from kemu.emulated.objects import meta, selectors
from kemu.messages.k8s import apps_v1_pb2, core_v1_pb2

TOLERATIONS = (
    ("node.kubernetes.io/not-ready", "NoExecute"),
    ("node.kubernetes.io/unreachable", "NoExecute"),
    ("node.kubernetes.io/disk-pressure", "NoSchedule"),
    ("node.kubernetes.io/memory-pressure", "NoSchedule"),
    ("node.kubernetes.io/pid-pressure", "NoSchedule"),
    ("node.kubernetes.io/unschedulable", "NoSchedule"),
)
"""Every daemon pod gets these (``AddOrUpdateDaemonPodTolerations``)."""
HOST_NETWORK_TOLERATION = ("node.kubernetes.io/network-unavailable", "NoSchedule")

NODE_NAME = "metadata.name"
ROLLING = "RollingUpdate"


class Wish:
    """Which nodes get a pod: the template of a DaemonSet, compiled once for all nodes."""

    def __init__(self, template: core_v1_pb2.PodTemplateSpec) -> None:
        spec = meta.copied(template.spec)
        tolerate(spec)
        self._node: str = spec.nodeName
        self._tolerations = list(spec.tolerations)
        self._affinity = selectors.RequiredNodeAffinity(spec)

    def fits(self, node: core_v1_pb2.Node) -> tuple[bool, bool]:
        """Whether a pod should run on a node, and whether one that does may stay (``NodeShouldRunDaemonPod``)."""
        name = node.metadata.name
        if (self._node and self._node != name) or not self._affinity.matches(node.metadata.labels, name):
            return False, False
        taints = node.spec.taints
        if selectors.untolerated_taint(taints, self._tolerations, ("NoSchedule", "NoExecute")) is None:
            return True, True
        return False, selectors.untolerated_taint(taints, self._tolerations, ("NoExecute",)) is None


def tolerate(spec: core_v1_pb2.PodSpec) -> None:
    """Add the tolerations of daemon pods."""
    for key, effect in TOLERATIONS + ((HOST_NETWORK_TOLERATION,) if spec.hostNetwork else ()):
        wanted = core_v1_pb2.Toleration(key=key, operator="Exists", effect=effect)
        known = [one for one in spec.tolerations if _is_like(one, wanted)]
        if known:
            known[0].CopyFrom(wanted)
        else:
            spec.tolerations.append(wanted)


def _is_like(one: core_v1_pb2.Toleration, other: core_v1_pb2.Toleration) -> bool:
    """Whether they differ in nothing but their time (``MatchToleration``)."""
    return (one.key, one.effect, one.operator, one.value) == (other.key, other.effect, other.operator, other.value)


def pin(spec: core_v1_pb2.PodSpec, node: str) -> None:
    """Let a pod run on this node alone, whatever else its template requires: that was checked
    (``ReplaceDaemonSetPodNodeNameNodeAffinity``)."""
    terms = spec.affinity.nodeAffinity.requiredDuringSchedulingIgnoredDuringExecution.nodeSelectorTerms
    del terms[:]
    terms.add().matchFields.add(key=NODE_NAME, operator="In", values=[node])


def max_surge(owner: apps_v1_pb2.DaemonSet, desired: int) -> int:
    """``SurgeCount``."""
    strategy = owner.spec.updateStrategy
    if strategy.type != ROLLING or not strategy.rollingUpdate.HasField("maxSurge"):
        return 0
    return scaling.scaled(strategy.rollingUpdate.maxSurge, desired, up=True)


def max_unavailable(owner: apps_v1_pb2.DaemonSet, desired: int) -> int:
    """``UnavailableCount``."""
    strategy = owner.spec.updateStrategy
    if strategy.type != ROLLING or not strategy.HasField("rollingUpdate"):
        return 0
    return scaling.scaled(strategy.rollingUpdate.maxUnavailable, desired, up=True)


def target(pod: core_v1_pb2.Pod) -> str:
    """The node that a daemon pod is for (``GetTargetNodeName``)."""
    if pod.spec.nodeName:
        return str(pod.spec.nodeName)
    for term in _terms(pod.spec):
        for requirement in term.matchFields:
            if requirement.key == NODE_NAME and requirement.operator == "In" and len(requirement.values) == 1:
                return str(requirement.values[0])
    return ""


def _terms(spec: core_v1_pb2.PodSpec) -> RepeatedCompositeFieldContainer[core_v1_pb2.NodeSelectorTerm]:
    return spec.affinity.nodeAffinity.requiredDuringSchedulingIgnoredDuringExecution.nodeSelectorTerms
