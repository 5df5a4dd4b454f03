"""The evaluator of each kind (``pkg/quota/v1/evaluator/core/registry.go``, ``pkg/quota/v1/install``)."""

from __future__ import annotations

from typing import Any

from kemu.emulated.objects import resources
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
