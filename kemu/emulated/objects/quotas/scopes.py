"""Scopes: which objects a quota counts, and which objects need a quota.

Mirrors ``podMatchesScopeFunc`` and ``pvcMatchesScopeFunc``.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from kemu.emulated.objects.amounts import qos
from kemu.messages.k8s import core_v1_pb2

TERMINATING, NOT_TERMINATING = "Terminating", "NotTerminating"
BEST_EFFORT, NOT_BEST_EFFORT = "BestEffort", "NotBestEffort"
PRIORITY_CLASS = "PriorityClass"
CROSS_NAMESPACE_POD_AFFINITY = "CrossNamespacePodAffinity"
VOLUME_ATTRIBUTES_CLASS = "VolumeAttributesClass"

EXISTENCE_ONLY = (TERMINATING, NOT_TERMINATING, BEST_EFFORT, NOT_BEST_EFFORT, CROSS_NAMESPACE_POD_AFFINITY)
"""Scopes that know no other operator than Exists."""
SCOPES = (*EXISTENCE_ONLY, PRIORITY_CLASS, VOLUME_ATTRIBUTES_CLASS)

OPERATORS = IN, NOT_IN, EXISTS, DOES_NOT_EXIST = "In", "NotIn", "Exists", "DoesNotExist"


class Selector(NamedTuple):
    """``ScopedResourceSelectorRequirement``."""

    scope: str
    operator: str
    values: tuple[str, ...] = ()

    def __str__(self) -> str:
        """As ``%v`` of Go prints it: ``{PriorityClass In [high]}``."""
        return f"{{{self.scope} {self.operator} [{' '.join(self.values)}]}}"


def read(spec: core_v1_pb2.ResourceQuotaSpec) -> tuple[Selector, ...]:
    """The selectors in the spec of a quota (``getScopeSelectorsFromQuota``)."""
    listed = [Selector(scope, EXISTS) for scope in spec.scopes]
    return (*listed, *selectors(spec.scopeSelector.matchExpressions))


def selectors(expressions: Iterable[core_v1_pb2.ScopedResourceSelectorRequirement]) -> list[Selector]:
    return [Selector(one.scopeName, one.operator, tuple(one.values)) for one in expressions]


def is_terminating(pod: core_v1_pb2.Pod) -> bool:
    """Whether the pod has a deadline: the scope Terminating has nothing to do with deletion."""
    return bool(pod.spec.HasField("activeDeadlineSeconds") and pod.spec.activeDeadlineSeconds >= 0)


def matches_pod(selector: Selector, pod: core_v1_pb2.Pod) -> bool:
    scope = selector.scope
    if scope == TERMINATING:
        return is_terminating(pod)
    if scope == NOT_TERMINATING:
        return not is_terminating(pod)
    if scope == BEST_EFFORT:
        return _is_best_effort(pod)
    if scope == NOT_BEST_EFFORT:
        return not _is_best_effort(pod)
    if scope == PRIORITY_CLASS:
        name = pod.spec.priorityClassName
        return _selects(selector, [name] if name else [])
    if scope == CROSS_NAMESPACE_POD_AFFINITY:
        return _looks_into_other_namespaces(pod.spec.affinity)
    return False


def of_pod(pod: core_v1_pb2.Pod) -> tuple[bool, bool, str, bool]:
    """All that :func:`matches_pod` asks of a pod."""
    across = _looks_into_other_namespaces(pod.spec.affinity)
    return is_terminating(pod), _is_best_effort(pod), pod.spec.priorityClassName, across


def matches_claim(selector: Selector, claim: core_v1_pb2.PersistentVolumeClaim) -> bool:
    if selector.scope != VOLUME_ATTRIBUTES_CLASS:
        return False
    return _selects(selector, attributes_classes(claim))


def attributes_classes(claim: core_v1_pb2.PersistentVolumeClaim) -> list[str]:
    """The classes that a claim wants, has, or is on its way to (``getReferencedVolumeAttributesClassNames``)."""
    status = claim.status
    wanted, current = claim.spec.volumeAttributesClassName, status.currentVolumeAttributesClassName
    found = (wanted, current, status.modifyVolumeStatus.targetVolumeAttributesClassName)
    return list(dict.fromkeys(name for name in found if name))


def _selects(selector: Selector, names: list[str]) -> bool:
    """A label selector over the one label that an object with one of these names has, or has not."""
    operator, values = selector.operator, selector.values
    if operator == EXISTS:
        return bool(names)
    if operator == DOES_NOT_EXIST:
        return not names
    if operator == IN:
        return any(name in values for name in names)
    if operator == NOT_IN:
        return not names or any(name not in values for name in names)
    return False


def _is_best_effort(pod: core_v1_pb2.Pod) -> bool:
    return (pod.status.qosClass or qos.qos_class(pod)) == qos.BEST_EFFORT


def _looks_into_other_namespaces(affinity: core_v1_pb2.Affinity) -> bool:
    """Whether a term of pod (anti-)affinity names namespaces or selects them."""
    for rules in (affinity.podAffinity, affinity.podAntiAffinity):
        terms = [
            *rules.requiredDuringSchedulingIgnoredDuringExecution,
            *(weighted.podAffinityTerm for weighted in rules.preferredDuringSchedulingIgnoredDuringExecution),
        ]
        if any(term.namespaces or term.HasField("namespaceSelector") for term in terms):
            return True
    return False
