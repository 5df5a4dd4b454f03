"""Which requests a webhook or a policy is about: rules, selectors of namespaces and of objects.

``apiserver/pkg/admission/plugin/webhook/predicates`` and ``plugin/policy/matching``.
"""

from __future__ import annotations

from collections.abc import Iterable

from kemu.emulated.apiserver import errors
from kemu.emulated.apiserver.admission.external import versions
from kemu.emulated.apiserver.admission.external.attributes import CREATE, UPDATE, Attributes, Matched
from kemu.emulated.apiserver.storage import Storage
from kemu.emulated.apiserver.watch.cache import WatchCache
from kemu.emulated.objects import resources, selectors
from kemu.messages.k8s import admissionregistration_v1_pb2 as v1
from kemu.messages.k8s import core_v1_pb2
from kemu.messages.k8s.objects import KubernetesObject

NAMESPACES = resources.BY_PLURAL["namespaces"]

_EXEMPT_GROUP = "admissionregistration.k8s.io"
EQUIVALENT = "Equivalent"


def is_exempt(attributes: Attributes) -> bool:
    """Webhooks and policies are never about themselves: nobody could take back a wrong one."""
    return attributes.group == _EXEMPT_GROUP


def by_rules(rules: Iterable[v1.RuleWithOperations], match_policy: str, attributes: Attributes) -> Matched | None:
    """The first rule that matches says as what; exact ones before equivalent ones."""
    exact = Matched(attributes.group, attributes.version)
    rules = list(rules)
    if any(_matches(rule, attributes, exact) for rule in rules):
        return exact
    if match_policy == EQUIVALENT:
        for rule in rules:
            for other in versions.equivalents(attributes):
                if _matches(rule, attributes, other):
                    return other
    return None


def _matches(rule: v1.RuleWithOperations, attributes: Attributes, what: Matched) -> bool:
    where = rule.rule
    return (
        _scope_matches(where.scope, attributes)
        and _one_of(rule.operations, attributes.operation)
        and _one_of(where.apiGroups, what.group)
        and _one_of(where.apiVersions, what.version)
        and any(_resource_matches(one, attributes) for one in where.resources)
    )


def _one_of(values: Iterable[str], value: str) -> bool:
    return any(one in ("*", value) for one in values)


def _resource_matches(text: str, attributes: Attributes) -> bool:
    resource, _, subresource = text.partition("/")
    return resource in ("*", attributes.plural) and subresource in ("*", attributes.subresource)


def _scope_matches(scope: str, attributes: Attributes) -> bool:
    is_namespaced = attributes.resource is not NAMESPACES and bool(attributes.namespace)
    return scope in ("", "*") or is_namespaced == (scope == "Namespaced")


class Selectors:
    """Judges by labels."""

    def __init__(self, storage: Storage, cache: WatchCache) -> None:
        self._storage = storage
        self._cache = cache

    async def admits(
        self, match: v1.ValidatingWebhook | v1.MutatingWebhook | v1.MatchResources, of: Attributes
    ) -> bool:
        """Raises :class:`kemu.errors.NotFound` where there is no such namespace."""
        return self.admits_object(match, of) and await self.admits_namespace(match, of)

    async def admits_namespace(
        self, match: v1.ValidatingWebhook | v1.MutatingWebhook | v1.MatchResources, attributes: Attributes
    ) -> bool:
        is_namespace = attributes.resource is NAMESPACES
        if not attributes.namespace and not is_namespace:
            return True
        selector = selectors.compile_labels(match.namespaceSelector)
        if selector.everything:
            return True
        if is_namespace and not attributes.subresource and attributes.operation in (CREATE, UPDATE):
            assert attributes.obj is not None
            return selector.matches(attributes.obj.metadata.labels)
        return selector.matches((await self.namespace(attributes.namespace)).metadata.labels)

    async def namespace(self, name: str) -> core_v1_pb2.Namespace:
        """From the cache, or, where it is not there yet, from the store. Raises :class:`kemu.errors.NotFound`."""
        key = resources.key(NAMESPACES, "", name)
        entry = self._cache.collections["namespaces"].entries.get(key)
        if entry is None:
            entry = await self._storage.read(key)
        if entry is None:
            raise errors.not_found(NAMESPACES, name)
        return core_v1_pb2.Namespace.FromString(entry.wire)

    def admits_object(
        self, match: v1.ValidatingWebhook | v1.MutatingWebhook | v1.MatchResources, attributes: Attributes
    ) -> bool:
        selector = selectors.compile_labels(match.objectSelector)
        if selector.everything:
            return True
        return _has_labels(attributes.obj, selector) or _has_labels(attributes.old, selector)


def _has_labels(obj: KubernetesObject | None, selector: selectors.LabelSelector) -> bool:
    return obj is not None and selector.matches(obj.metadata.labels)
