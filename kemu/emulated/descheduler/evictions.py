"""Which pods may be evicted (the plugin DefaultEvictor), how many in a round, and the requests (``evictions``)."""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from typing import Any

from kemu.emulated.descheduler import policies
from kemu.emulated.descheduler.clusters import Cluster, Pod
from kemu.emulated.objects import meta, selectors
from kemu.messages.k8s import core_v1_pb2

EVICT = "descheduler.alpha.kubernetes.io/evict"
"""An annotation: the pod may be evicted, whatever protects it."""
PREFER_NO_EVICTION = "descheduler.alpha.kubernetes.io/prefer-no-eviction"
SYSTEM_CRITICAL = 2_000_000_000
_MIRROR, _SOURCE = "kubernetes.io/config.mirror", "kubernetes.io/config.source"

NODE, NAMESPACE, TOTAL = "node", "namespace", "total"


class EvictionError(Exception):
    """A pod was not evicted. ``limit``: the one that is reached, or empty."""

    def __init__(self, message: str, limit: str = "") -> None:
        super().__init__(message)
        self.limit = limit


class UnknownClassError(Exception):
    """The policy names a priority class that is not there."""


class Evictor:
    """``request``: asks for the eviction of a pod for a strategy; raises :class:`EvictionError`."""

    def __init__(
        self,
        cluster: Cluster,
        policy: policies.Policy,
        request: Callable[[Pod, str], Coroutine[Any, Any, None]],
    ) -> None:
        self.cluster = cluster
        self._policy = policy
        self._request = request
        self._of_node: dict[str, int] = {}
        self._of_namespace: dict[str, int] = {}
        self.total = 0
        """Pods that were evicted in this round."""

    def begin(self) -> None:
        """A new round."""
        self._of_node, self._of_namespace, self.total = {}, {}, 0

    async def evict(self, pod: Pod, strategy: str) -> None:
        """Raises EvictionError."""
        policy, node, namespace = self._policy, pod.spec.nodeName, pod.metadata.namespace
        for limit, most, count in (
            (TOTAL, policy.max_no_of_pods_to_evict_total, self.total),
            (NODE, policy.max_no_of_pods_to_evict_per_node if node else None, self._of_node.get(node, 0)),
            (NAMESPACE, policy.max_no_of_pods_to_evict_per_namespace, self._of_namespace.get(namespace, 0)),
        ):
            if most is not None and count + 1 > most:
                raise EvictionError(f"maximum number of evicted pods per {limit} reached ({most})", limit)
        await self._request(pod, strategy)
        if node:
            self._of_node[node] = self._of_node.get(node, 0) + 1
        self._of_namespace[namespace] = self._of_namespace.get(namespace, 0) + 1
        self.total += 1


class Filter:
    """The plugin DefaultEvictor of one profile."""

    def __init__(self, args: policies.DefaultEvictor, cluster: Cluster) -> None:
        """Raises UnknownClassError."""
        self._args = args
        self._cluster = cluster
        protected = args.protected
        rules: list[Callable[[Pod], bool]] = []
        """Each says whether a pod may go."""
        if "SystemCriticalPods" in protected:
            rules.append(lambda pod: not pod.spec.HasField("priority") or pod.spec.priority < SYSTEM_CRITICAL)
            if (threshold := self._threshold()) is not None:
                rules.append(lambda pod: not pod.spec.HasField("priority") or pod.spec.priority < threshold)
        if "FailedBarePods" in protected:
            rules.append(lambda pod: bool(pod.metadata.ownerReferences))
        else:
            rules.append(lambda pod: bool(pod.metadata.ownerReferences) or pod.status.phase == "Failed")
        if "PodsWithLocalStorage" in protected:
            rules.append(lambda pod: not any(_is_local(one) for one in pod.spec.volumes))
        if "DaemonSetPods" in protected:
            rules.append(lambda pod: all(one.kind != "DaemonSet" for one in pod.metadata.ownerReferences))
        if "PodsWithPVC" in protected:
            rules.append(self._may_leave_its_claims)
        if "PodsWithoutPDB" in protected:
            rules.append(self._has_a_budget)
        if "PodsWithResourceClaims" in protected:
            rules.append(lambda pod: not pod.spec.resourceClaims)
        if args.label_selector is not None:
            labels = policies.compiled(args.label_selector)
            rules.append(lambda pod: labels.matches(pod.metadata.labels))
        if args.min_replicas > 1:
            rules.append(self._has_replicas)
        if args.min_pod_age_ns is not None:
            rules.append(self._is_old_enough)
        self._rules = rules
        self._namespaces = None
        if args.namespace_label_selector:
            self._namespaces = policies.compiled(args.namespace_label_selector)

    def filter(self, pod: Pod) -> bool:
        """Whether it may be evicted at all."""
        annotations = pod.metadata.annotations
        if EVICT in annotations:
            return True
        if self._args.no_eviction_policy == "Mandatory" and PREFER_NO_EVICTION in annotations:
            return False
        if _MIRROR in annotations or annotations.get(_SOURCE, "api") != "api":
            return False
        return not pod.metadata.HasField("deletionTimestamp") and all(rule(pod) for rule in self._rules)

    def pre_eviction(self, pod: Pod) -> bool:
        """What is asked just before its eviction: is there another place, and is its namespace meant?"""
        if self._args.node_fit:
            nodes = self._cluster.ready_nodes(self._args.node_selector)
            if not self._cluster.fits_elsewhere(pod, nodes):
                return False
        if self._namespaces is None:
            return True
        namespace = self._cluster.namespaces.get(pod.metadata.namespace)
        return namespace is not None and self._namespaces.matches(namespace.metadata.labels)

    def both(self, pod: Pod) -> bool:
        return self.filter(pod) and self.pre_eviction(pod)

    def _threshold(self) -> int | None:
        stated = self._args.priority_threshold
        if stated is None or (stated.value is None and not stated.name):
            return None
        if not stated.name:
            return stated.value
        found = self._cluster.classes.get(stated.name)
        if found is None:
            raise UnknownClassError(f"priority class {stated.name} is not found")
        return found.value

    def _may_leave_its_claims(self, pod: Pod) -> bool:
        sources = [one.volumeSource for one in pod.spec.volumes]
        names = [one.persistentVolumeClaim.claimName for one in sources if one.HasField("persistentVolumeClaim")]
        config = self._args.pod_protections and self._args.pod_protections.config
        stated = config.pods_with_pvc if config else None
        protected = [one.name for one in stated.protected_storage_classes] if stated else []
        if not protected:
            return not names
        for name in names:
            claim = self._cluster.claims.get(f"{pod.metadata.namespace}/{name}")
            if claim is None or not claim.spec.storageClassName or claim.spec.storageClassName in protected:
                return False
        return True

    def _has_a_budget(self, pod: Pod) -> bool:
        return any(
            budget.metadata.namespace == pod.metadata.namespace
            and selectors.compile_labels_field(budget.spec, "selector").matches(pod.metadata.labels)
            for budget in self._cluster.budgets.values()
        )

    def _has_replicas(self, pod: Pod) -> bool:
        owners = pod.metadata.ownerReferences
        return len(owners) != 1 or self._cluster.replicas(owners[0].uid) >= self._args.min_replicas

    def _is_old_enough(self, pod: Pod) -> bool:
        if not pod.status.HasField("startTime"):
            return False
        return self._cluster.unix_ns() - meta.unix_ns(pod.status.startTime) >= (self._args.min_pod_age_ns or 0)


def _is_local(volume: core_v1_pb2.Volume) -> bool:
    return volume.volumeSource.HasField("hostPath") or volume.volumeSource.HasField("emptyDir")
