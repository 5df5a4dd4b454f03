"""The evaluator of each kind (``pkg/quota/v1/evaluator/core/registry.go``, ``pkg/quota/v1/install``)."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

from kemu.emulated.objects import custom_kinds, resources
from kemu.emulated.objects.quotas import claims, evaluators, pods, services

IGNORED = ("events",)
"""Kinds with namespaces that no quota counts (``DefaultIgnoredResources``)."""

_OWN: dict[str, type[evaluators.Evaluator[Any]]] = {
    "pods": pods.PodEvaluator,
    "services": services.ServiceEvaluator,
    "persistentvolumeclaims": claims.ClaimEvaluator,
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


@lru_cache(1024)
def _custom(plural: str) -> evaluators.Evaluator[Any]:
    return evaluators.Evaluator(custom_kinds.placeholder(plural, True))
