"""PodSecurity: pods that violate what a namespace enforces are refused; who creates what would violate it is warned.

Mirrors ``k8s.io/pod-security-admission/admission``, with the configuration that Kubernetes has by default: nobody is
exempt, and namespaces without labels allow everything. Nothing is audited, as kemu keeps no audit log.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any, cast

from kemu.emulated.apiserver import errors, request_warnings
from kemu.emulated.apiserver.admission.base import Derived, Plugin
from kemu.emulated.apiserver.admission.pod_security import evaluations, policies
from kemu.emulated.apiserver.admission.pod_security.policies import Policy, Standard
from kemu.emulated.apiserver.admission.pod_security.visits import Metadata, Spec, number
from kemu.emulated.apiserver.storage import Storage
from kemu.emulated.apiserver.watch.cache import WatchCache
from kemu.emulated.objects import meta, resources
from kemu.emulated.objects.resources import Resource
from kemu.emulated.objects.validation import causes
from kemu.messages.k8s import apps_v1_pb2, batch_v1_pb2, core_v1_pb2
from kemu.messages.k8s.objects import KubernetesObject

MOST_PODS = 3000
"""So many are looked at when a namespace gets a stricter level (``defaultNamespaceMaxPodsToCheck``); those of one
owner come last but for the first."""

_PODS, _NAMESPACES = resources.BY_PLURAL["pods"], resources.BY_PLURAL["namespaces"]
_WORKLOADS = (
    "replicationcontrollers", "podtemplates", "replicasets", "deployments", "statefulsets", "daemonsets", "jobs",
    "cronjobs",
)  # fmt: skip
_JUDGED = frozenset(resources.BY_PLURAL[plural] for plural in _WORKLOADS) | {_PODS, _NAMESPACES}
_TEMPLATED = (
    core_v1_pb2.ReplicationController, apps_v1_pb2.ReplicaSet, apps_v1_pb2.Deployment, apps_v1_pb2.StatefulSet,
    apps_v1_pb2.DaemonSet, batch_v1_pb2.Job,
)  # fmt: skip
_PARTS_OF_PODS = ("", "ephemeralcontainers", "resize")
"""Other parts say nothing of containers."""


class PodSecurity(Plugin[KubernetesObject]):
    def __init__(self, storage: Storage, cache: WatchCache) -> None:
        super().__init__(storage, cache)
        self._policies: Derived[dict[str, Policy | None]] = Derived(cache, "namespaces", _by_name)

    @classmethod
    def concerns(cls, resource: Resource) -> bool:
        return resource in _JUDGED

    async def validate(self, resource: Resource, obj: KubernetesObject) -> None:
        if resource is _NAMESPACES:
            found = policies.read(obj.metadata.labels)[1]
            if found:
                raise causes.error(obj, found)
            return
        known = self._policies.get()
        namespace = obj.metadata.namespace
        policy = known[namespace] if namespace in known else await self._live(namespace)
        if policy is not None:
            _judge(resource, obj, policy)

    def may_validate_update(self, resource: Resource, subresource: str) -> bool:
        return subresource in _PARTS_OF_PODS if resource is _PODS else not subresource

    def validates_update(self, namespace: str) -> bool:
        """Objects that are there are mostly in a namespace that the cache knows. Namespaces are in none."""
        return not namespace or self._policies.get().get(namespace) is not None

    async def validate_update(
        self, resource: Resource, subresource: str, new: KubernetesObject, old: KubernetesObject
    ) -> None:
        if resource is _NAMESPACES:
            self._check_labels(new.metadata, old.metadata)
            return
        policy = self._policies.get().get(new.metadata.namespace)
        if policy is None:
            return
        if isinstance(new, core_v1_pb2.Pod) and not _changes_containers(new.spec, cast(core_v1_pb2.Pod, old).spec):
            return
        _judge(resource, new, policy)

    async def _live(self, name: str) -> Policy | None:
        namespace = await self.live(_NAMESPACES, name)
        return None if namespace is None else _policy_of(namespace.metadata)

    def _check_labels(self, new: Metadata, old: Metadata) -> None:
        if new.labels == old.labels:
            return
        (after, found), (before, known) = policies.read(new.labels), policies.read(old.labels)
        if found and found != known:
            raise causes.error_of_kind(_NAMESPACES.kind, _NAMESPACES.kind, new.name, found)
        wanted, was = after.enforce, before.enforce
        if wanted == was or wanted.level == policies.PRIVILEGED:
            return
        if wanted.minor == was.minor and not policies.is_stricter(wanted.level, was.level):
            return
        if request_warnings.are_heard():
            for text in _warnings(new.name, wanted, self._pods(new.name)):
                request_warnings.warn(text)

    def _pods(self, namespace: str) -> list[core_v1_pb2.Pod]:
        entries = self.cache.collections[_PODS.plural].entries
        prefix = resources.prefix(_PODS, namespace)
        return [core_v1_pb2.Pod.FromString(entries[key].wire) for key in sorted(entries) if key.startswith(prefix)]


def _by_name(namespaces: Iterable[Any]) -> dict[str, Policy | None]:
    return {one.metadata.name: _policy_of(one.metadata) for one in namespaces}


def _policy_of(metadata: Metadata) -> Policy | None:
    """None: everything is allowed, and nobody is warned."""
    if not policies.has_labels(metadata.labels):
        return None
    policy = policies.read(metadata.labels)[0]
    return None if policy.allows_everything else policy


def _judge(resource: Resource, obj: KubernetesObject, policy: Policy) -> None:
    """Refuse a pod, or warn of what its template, or what else it is, has."""
    template = _template(obj)
    if template is None:
        return
    metadata, spec = template
    if resource is _PODS:
        found = evaluations.violations(policy.enforce, metadata, spec)
        if found:
            why = f'violates PodSecurity "{policy.enforce}": {evaluations.detail(found)}'
            raise errors.forbidden(resource, obj.metadata.name, why)
    if request_warnings.are_heard():
        found = evaluations.violations(policy.warn, metadata, spec)
        if found:
            request_warnings.warn(f'would violate PodSecurity "{policy.warn}": {evaluations.detail(found)}')


def _template(obj: KubernetesObject) -> tuple[Metadata, Spec] | None:
    """What pods of an object have, or the pod itself."""
    if isinstance(obj, core_v1_pb2.Pod):
        return obj.metadata, obj.spec
    if isinstance(obj, batch_v1_pb2.CronJob):
        template = obj.spec.jobTemplate.spec.template
    elif isinstance(obj, core_v1_pb2.PodTemplate):
        template = obj.template
    elif isinstance(obj, _TEMPLATED):
        template = obj.spec.template
    else:
        return None
    return template.metadata, template.spec


def _changes_containers(after: Spec, before: Spec) -> bool:
    """``isSignificantPodUpdate``."""
    for field in ("containers", "initContainers"):
        ours, theirs = getattr(after, field), getattr(before, field)
        if [one.image for one in ours] != [one.image for one in theirs]:
            return True
    images = {
        one.ephemeralContainerCommon.name: one.ephemeralContainerCommon.image
        for one in reversed(before.ephemeralContainers)
    }
    debugging = [one.ephemeralContainerCommon for one in after.ephemeralContainers]
    return any(images.get(one.name) != one.image for one in debugging)


# Pods that are there when a namespace becomes stricter --------------------------------------------------------------


def _warnings(namespace: str, enforced: Standard, pods: Sequence[core_v1_pb2.Pod]) -> Iterator[str]:
    """``EvaluatePodsInNamespace``. It takes no time that would end it early."""
    names: dict[str, list[str]] = {}
    for pod in _in_turn(pods)[:MOST_PODS]:
        found = evaluations.violations(enforced, pod.metadata, pod.spec)
        if found:
            names.setdefault(evaluations.reason(found), []).append(pod.metadata.name)
    if len(pods) > MOST_PODS:
        yield (f"new PodSecurity enforce level only checked against the first {MOST_PODS} of {len(pods)} existing pods")
    if names:
        yield f'existing pods in namespace "{namespace}" violate the new PodSecurity enforce level "{enforced}"'
    yield from sorted([f"{_counted(of)}: {reason}" for reason, of in names.items()])


def _counted(names: Sequence[str]) -> str:
    others = len(names) - 1
    return f"{min(names)} (and {others} other {number('pod', 'pods', others)})" if others else names[0]


def _in_turn(pods: Sequence[core_v1_pb2.Pod]) -> list[core_v1_pb2.Pod]:
    """``prioritizePods``: of the pods of one owner, all but the first come last."""
    first: list[core_v1_pb2.Pod] = []
    last: list[core_v1_pb2.Pod] = []
    owners: set[str] = set()
    for pod in pods:
        owner = meta.controller_of(pod)
        (last if owner is not None and owner.uid in owners else first).append(pod)
        if owner is not None:
            owners.add(owner.uid)
    return first + last
