"""The evaluator of each kind (``pkg/quota/v1/evaluator/core/registry.go``, ``pkg/quota/v1/install``)."""

from __future__ import annotations

from collections.abc import Iterable
from functools import lru_cache
from typing import Any

from kemu.emulated.objects import custom_kinds, resources
from kemu.emulated.objects.quotas import claims, device_claims, evaluators, pods, services

IGNORED = ("events",)
"""Kinds with namespaces that no quota counts (``DefaultIgnoredResources``)."""

_OWN: dict[str, type[evaluators.Evaluator[Any]]] = {
    "pods": pods.PodEvaluator,
    "services": services.ServiceEvaluator,
    "persistentvolumeclaims": claims.ClaimEvaluator,
    "resourceclaims": device_claims.DeviceClaimEvaluator,
}

EVALUATORS: dict[str, evaluators.Evaluator[Any]] = {
    plural: _OWN.get(plural, evaluators.Evaluator)(resource)
    for plural, resource in resources.BY_PLURAL.items()
    if resource.namespaced and plural not in IGNORED
}
"""By plural."""


def find(resource: resources.Resource) -> evaluators.Evaluator[Any] | None:
    """That of any kind, also of a custom one; None: no quota counts it."""
    if custom_kinds.is_custom(resource.plural):
        return _custom(resource.plural) if resource.namespaced else None
    return EVALUATORS.get(resource.plural)


_COUNTS = frozenset(evaluators.count_name(one.resource) for one in EVALUATORS.values())


def custom_kinds_in(names: Iterable[str]) -> list[str]:
    """Custom kinds that a quota with these resources counts, if they are there."""
    found = (name.removeprefix("count/") for name in names if name.startswith("count/") and name not in _COUNTS)
    return sorted(plural for plural in found if custom_kinds.is_custom(plural))


def of_custom(plural: str) -> evaluators.Evaluator[Any]:
    """That of a custom kind whose objects have a namespace."""
    return _custom(plural)


@lru_cache(1024)
def _custom(plural: str) -> evaluators.Evaluator[Any]:
    return evaluators.Evaluator(custom_kinds.placeholder(plural, True))
