"""Whether a request fits into the quotas of its namespace (``CheckRequest``)."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from kemu import errors as kemu_errors
from kemu.emulated.apiserver import errors
from kemu.emulated.apiserver.admission.quotas.limited_resources import LimitedResource
from kemu.emulated.objects.amounts import resource_lists
from kemu.emulated.objects.quotas import evaluators, registry
from kemu.emulated.objects.quotas.evaluators import CREATE, UPDATE, Surroundings
from kemu.emulated.objects.quotas.quotas import Quota
from kemu.emulated.objects.resources import Resource
from kemu.messages.k8s.objects import KubernetesObject


@dataclass(frozen=True, slots=True)
class Request:
    """What is to be admitted."""

    operation: str
    """``evaluators.CREATE`` or ``evaluators.UPDATE``."""
    resource: Resource
    obj: KubernetesObject
    old: KubernetesObject | None = None
    """What is there, for an update."""
    subresource: str = ""
    dry_run: bool = False
    around: Surroundings = evaluators.NOTHING

    @property
    def evaluator(self) -> evaluators.Evaluator[Any]:
        found = registry.find(self.resource)
        assert found is not None
        return found.within(self.around)

    @property
    def namespace(self) -> str:
        found: str = self.obj.metadata.namespace
        return found

    def forbidden(self, why: str) -> kemu_errors.ApiError:
        metadata = self.obj.metadata
        return errors.forbidden(self.resource, metadata.name or metadata.generateName, why)


def concerns(request: Request) -> bool:
    """Whether the request may change what any quota counts."""
    evaluator = registry.find(request.resource)
    return evaluator is not None and evaluator.handles(request.operation, request.subresource, request.obj, request.old)


def check(
    quotas: Sequence[Quota], request: Request, limited: Sequence[LimitedResource], now_unix_ns: int
) -> list[Quota]:
    """The quotas as they are once the request is charged. Raises :class:`kemu.errors.ApiError` if it does not fit."""
    resource, obj = request.resource, request.obj
    evaluator = request.evaluator
    limited_scopes = [one for rule in limited for one in rule.scopes if evaluator.in_scope(one, obj)]
    used = evaluator.usage(obj, now_unix_ns)
    limited_names = {
        name: None
        for rule in limited
        if (rule.group, rule.plural) == (resource.group, resource.plural)
        for name in sorted(used)
        if used[name].nano > 0 and any(part in name for part in rule.contains)
    }

    matching: list[int] = []
    covered_names: dict[str, None] = {}
    covered_scopes: dict[str, None] = {}
    for index, quota in enumerate(quotas):
        covered_scopes.update({one.scope: None for one in quota.selectors if evaluator.in_scope(one, obj)})
        if not quota.matches(evaluator, obj):
            continue
        counted = evaluator.counted(quota.hard)
        missing = evaluator.missing(counted, obj)
        if missing:
            raise request.forbidden(f"failed quota: {quota.name}: {missing}")
        if any(name not in quota.used for name in counted):
            raise request.forbidden(f"status unknown for quota: {quota.name}, resources: {','.join(counted)}")
        matching.append(index)
        covered_names.update(dict.fromkeys(counted))

    negative = sorted(name for name in used if used[name].nano < 0)
    if negative:
        raise request.forbidden(f"quota usage is negative for resource(s): {','.join(negative)}")
    charges = _charges(quotas, matching, request, now_unix_ns)
    if not charges:
        return list(quotas)

    uncovered = sorted(name for name in limited_names if name not in covered_names)
    if uncovered:
        raise request.forbidden(f"insufficient quota to consume: {','.join(uncovered)}")
    open_scopes = [one for one in limited_scopes if one.scope not in covered_scopes]
    if open_scopes:
        # In Kubernetes this is no refusal in the terms of the API but a plain error, which gets code 500.
        raise kemu_errors.ApiError(
            f"insufficient quota to match these scopes: [{' '.join(str(one) for one in open_scopes)}]"
        )
    charged = list(quotas)
    for index in matching:
        if index in charges:
            charged[index] = _charge(quotas[index], charges[index], request)
    return charged


_NOBODY = -1


def _charges(
    quotas: Sequence[Quota], matching: Sequence[int], request: Request, now_unix_ns: int
) -> dict[int, dict[str, Any]]:
    """What each of the matching quotas is to be charged, by index; under :data:`_NOBODY` what no quota counts. Empty:
    the request uses nothing more."""
    evaluator = request.evaluator
    used = evaluator.usage(request.obj, now_unix_ns)
    charges = {index: dict(used) for index in matching or [_NOBODY]}
    if request.operation == UPDATE:
        assert request.old is not None
        growth = resource_lists.growth(used, evaluator.usage(request.old, now_unix_ns))
        for index in charges:
            # A quota that did not count the object before has to count all of it.
            if index == _NOBODY or quotas[index].matches(evaluator, request.old):
                charges[index] = growth
    charges = {index: resource_lists.without_zeros(amounts) for index, amounts in charges.items()}
    return {index: amounts for index, amounts in charges.items() if amounts}


def _charge(quota: Quota, amounts: resource_lists.Amounts, request: Request) -> Quota:
    wanted = resource_lists.only(amounts, quota.hard)
    used = resource_lists.add(quota.used, wanted)
    if request.subresource != "status":
        exceeded = resource_lists.exceeding(resource_lists.only(used, wanted), quota.hard)
        if exceeded:
            texts = [
                resource_lists.text(resource_lists.only(each, exceeded)) for each in (wanted, quota.used, quota.hard)
            ]
            raise request.forbidden(
                f"exceeded quota: {quota.name}, requested: {texts[0]}, used: {texts[1]}, limited: {texts[2]}"
            )
    return dataclasses.replace(quota, used=used)


__all__ = ["CREATE", "UPDATE", "Request", "check", "concerns"]
