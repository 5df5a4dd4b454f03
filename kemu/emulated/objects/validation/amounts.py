"""Checks of amounts of resources: names, quantities, requests against limits."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import lru_cache

from kemu.emulated.objects import names
from kemu.emulated.objects.amounts import quantities, requests
from kemu.emulated.objects.amounts.requests import HUGE_PAGES_PREFIX
from kemu.emulated.objects.validation import checks
from kemu.emulated.objects.validation.causes import forbidden, invalid, not_supported, required
from kemu.errors import Cause
from kemu.messages.k8s import core_v1_pb2, meta_v1_pb2

_CONTAINER_RESOURCES = ("cpu", "memory", "ephemeral-storage")
_QUOTA_RESOURCES = (
    "pods", "services", "replicationcontrollers", "resourcequotas", "secrets", "configmaps", "persistentvolumeclaims",
    "services.nodeports", "services.loadbalancers", "storage",
    "requests.cpu", "requests.memory", "requests.storage", "requests.ephemeral-storage",
    "limits.cpu", "limits.memory", "limits.ephemeral-storage",
)  # fmt: skip
_COUNTED_RESOURCES = (
    "pods", "services", "replicationcontrollers", "resourcequotas", "secrets", "configmaps", "persistentvolumeclaims",
    "services.nodeports", "services.loadbalancers",
)  # fmt: skip

NameRule = Callable[[str], tuple[str, ...]]


@lru_cache(4096)
def container_resource_name(name: str) -> tuple[str, ...]:
    """What is wrong with the name of a resource that a container requests (``validateContainerResourceName``)."""
    problems = standard_resource_name(name)
    if "/" not in name:
        if name in _CONTAINER_RESOURCES or name.startswith(HUGE_PAGES_PREFIX):
            return problems
        return (*problems, "must be a standard resource for containers")
    if not requests.is_native(name) and not requests.is_extended(name):
        return (*problems, "doesn't follow extended resource name standard")
    return problems


def is_quota_resource(name: str) -> bool:
    """Whether quotas know it without being told by its form (``IsStandardQuotaResourceName``)."""
    if name.startswith((HUGE_PAGES_PREFIX, f"requests.{HUGE_PAGES_PREFIX}")):
        return True
    return name in _CONTAINER_RESOURCES or (name in _QUOTA_RESOURCES and name != "storage")


@lru_cache(4096)
def standard_resource_name(name: str) -> tuple[str, ...]:
    """What is wrong with the name of a resource that stands anywhere (``validateResourceName``)."""
    problems = names.label_key(name)
    if not problems and "/" not in name and not is_quota_resource(name) and name != "storage":
        return ("must be a standard resource type or fully qualified",)
    return problems


@lru_cache(4096)
def quota_resource_name(name: str) -> tuple[str, ...]:
    """What is wrong with the name of a resource that a quota limits."""
    problems = standard_resource_name(name)
    if "/" not in name and not is_quota_resource(name):
        return (*problems, "must be a standard resource for quota")
    return problems


def may_overcommit(name: str) -> bool:
    return requests.is_native(name) and not name.startswith(HUGE_PAGES_PREFIX)


@lru_cache(65_536)
def _amount_problem(name: str, text: str) -> tuple[str, str] | None:
    """The value to show and what is wrong with it; None for a valid amount."""
    try:
        quantity = quantities.parse(text)
    except ValueError as error:
        return text, str(error)
    if quantity.nano < 0:
        return str(quantity), checks.NOT_NEGATIVE
    if quantity.nano % quantities.NANO and (requests.is_extended(name) or name in _COUNTED_RESOURCES):
        return str(quantity), "must be an integer"
    return None


def check_quantities(amounts: Mapping[str, meta_v1_pb2.Quantity], path: str, found: list[Cause]) -> None:
    """``ValidateNodeResources``: no name is wrong, and a path has no brackets."""
    for name in sorted(amounts):
        problem = _amount_problem(name, amounts[name].string)
        if problem is not None:
            found.append(invalid(f"{path}.{name}", *problem))


def check_amounts(
    amounts: Mapping[str, meta_v1_pb2.Quantity], path: str, name_rule: NameRule, found: list[Cause]
) -> bool:
    """Check the names and quantities of a resource list; returns whether all quantities can be parsed."""
    readable = True
    for name in sorted(amounts):
        here = f"{path}[{name}]"
        problems = name_rule(name)
        if problems:
            found.extend(invalid(here, name, problem) for problem in problems)
        text = amounts[name].string
        problem = _amount_problem(name, text)
        if problem is not None:
            found.append(invalid(here, *problem))
            readable = readable and problem[1] in (checks.NOT_NEGATIVE, "must be an integer")
    return readable


_POD_LEVEL = ("cpu", HUGE_PAGES_PREFIX, "memory")


def check_requirements(
    resources: core_v1_pb2.ResourceRequirements, path: str, found: list[Cause], *, of_pod: bool = False
) -> bool:
    """Check requests and limits (``validateResourceRequirements``); returns whether all quantities can be parsed.

    A request may not exceed its limit; of resources that cannot be overcommitted it must equal it. ``of_pod``: they are
    those of a whole pod, which may name only cpu, memory and huge pages.
    """
    limits, wanted = resources.limits, resources.requests
    readable = True
    for name in sorted(limits):
        limit, problems, of_pages = _judged(name, limits[name].string, of_pod)
        readable = readable and limit is not None
        if problems or of_pages:
            _tell((*problems, *of_pages), f"{path}.limits[{name}]", found)
    for name in sorted(wanted):
        request, problems, of_pages = _judged(name, wanted[name].string, of_pod)
        if problems:
            _tell(problems, f"{path}.requests[{name}]", found)
        if request is None:
            readable = False
        elif name in limits:
            limit, _, _ = _judged(name, limits[name].string, of_pod)
            if limit is not None and request.nano != limit.nano and not may_overcommit(name):
                found.append(invalid(f"{path}.requests", str(request), f"must be equal to {name} limit of {limit}"))
            elif limit is not None and request.nano > limit.nano:
                detail = f"must be less than or equal to {name} limit of {limit}"
                found.append(invalid(f"{path}.requests", str(request), detail))
        elif not may_overcommit(name):
            found.append(required(f"{path}.limits", "Limit must be set for non overcommitable resources"))
        if of_pages:
            _tell(of_pages, f"{path}.requests[{name}]", found)
    has_usual = "cpu" in wanted or "cpu" in limits or "memory" in wanted or "memory" in limits
    if not has_usual and any(name.startswith(HUGE_PAGES_PREFIX) for name in (*wanted, *limits)):
        found.append(forbidden(path, "HugePages require cpu or memory"))
    return readable


_Problems = tuple[tuple[str, str], ...]
"""What is shown, and what is wrong with it; nothing of a name that is right, but not here."""


@lru_cache(65_536)
def _judged(name: str, text: str, of_pod: bool) -> tuple[quantities.Quantity | None, _Problems, _Problems]:
    """An amount of a container or pod: None if it cannot be parsed; what is wrong; what is wrong with huge pages."""
    problems = [(name, one) for one in (standard_resource_name if of_pod else container_resource_name)(name)]
    if of_pod and not problems and not requests.is_pod_level_resource(name):
        problems.append((name, ""))
    problem = _amount_problem(name, text)
    if problem is not None:
        problems.append(problem)
    try:
        quantity = quantities.parse(text)
    except ValueError:
        return None, tuple(problems), ()
    if not name.startswith(HUGE_PAGES_PREFIX) or _is_divisible(quantity, name.removeprefix(HUGE_PAGES_PREFIX)):
        return quantity, tuple(problems), ()
    return quantity, tuple(problems), ((str(quantity), f"{quantity} is not positive integer multiple of {name}"),)


def _is_divisible(quantity: quantities.Quantity, page: str) -> bool:
    """``IsHugePageResourceValueDivisible``"""
    try:
        size = quantities.parse(page)
    except ValueError:
        return False
    return size.nano > 0 and not size.nano % quantities.NANO and not quantity.value % size.value


def _tell(problems: _Problems, path: str, found: list[Cause]) -> None:
    for value, detail in problems:
        found.append(invalid(path, value, detail) if detail else not_supported(path, value, _POD_LEVEL))


def check_overhead(overhead: Mapping[str, meta_v1_pb2.Quantity], path: str, found: list[Cause]) -> None:
    """Check the overhead of a pod or runtime class, as the limits of a container (``validateOverhead``)."""
    limits = core_v1_pb2.ResourceRequirements()
    for name in sorted(overhead):
        limits.limits[name].string = overhead[name].string
    check_requirements(limits, path, found)
