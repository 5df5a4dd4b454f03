"""The checks of an update of the status of a pod (``ValidatePodStatusUpdate``).

A kubelet writes statuses often, and hardly ever a wrong one: parts that most statuses lack are checked where they are.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from kemu.emulated.objects import names
from kemu.emulated.objects.pods import declared_features
from kemu.emulated.objects.validation import checks
from kemu.emulated.objects.validation.causes import (
    IMMUTABLE,
    duplicate,
    forbidden,
    internal_error,
    invalid,
    required,
    too_long,
)
from kemu.emulated.objects.validation.metadata import check_label_key
from kemu.emulated.objects.validation.pod_specs import security
from kemu.errors import Cause
from kemu.messages.k8s import core_v1_pb2

_OF_CONTAINERS = ("containerStatuses", "initContainerStatuses", "ephemeralContainerStatuses")
_KNOWN_CONDITIONS = (
    *("PodScheduled", "Ready", "Initialized", "ContainersReady", "PodReadyToStartContainers", "DisruptionTarget"),
    *("PodResizePending", "PodResizeInProgress", "AllContainersRestarting"),
)
_LONGEST_HEALTH_MESSAGE = 4096
_HEALTHS = ("Healthy", "Unhealthy", "Unknown")
_NO_WAY_BACK = "may not be transitioned to non-terminated state"
_ONE_EACH = "may specify no more than one IP for each IP family"

Statuses = Sequence[core_v1_pb2.ContainerStatus]


def check_update(new: core_v1_pb2.Pod, old: core_v1_pb2.Pod, found: list[Cause]) -> None:
    spec, status, was = new.spec, new.status, old.status
    for index, condition in enumerate(status.conditions[:]):
        if condition.observedGeneration < 0:
            path = f"status.conditions[{index}].observedGeneration"
            found.append(invalid(path, condition.observedGeneration, _NOT_NEGATIVE))
        if condition.type not in _KNOWN_CONDITIONS:
            check_label_key(condition.type, f"status.conditions[{index}].Type", found)
    if spec.nodeName != old.spec.nodeName:
        found.append(forbidden("status.nodeName", "may not be changed directly"))
    if status.nominatedNodeName and status.nominatedNodeName != was.nominatedNodeName:
        _check_nomination(status.nominatedNodeName, old.spec.nodeName, found)
    if status.observedGeneration < 0:
        found.append(invalid("status.observedGeneration", status.observedGeneration, _NOT_NEGATIVE))
    if was.qosClass and status.qosClass != was.qosClass:
        found.append(invalid("status.qosClass", status.qosClass, IMMUTABLE))
    for container in (*was.containerStatuses, *was.initContainerStatuses, *was.ephemeralContainerStatuses):
        if container.state.HasField("terminated"):
            _check_transitions(spec, status, was, found)
            break
    if status.resourceClaimStatuses:
        _check_claims(status.resourceClaimStatuses, spec, found)
    if status.HasField("extendedResourceClaimStatus"):
        _check_extended_claim(status.extendedResourceClaimStatus, spec, found)
    if status.podIPs != was.podIPs or len(status.podIPs) > 1:
        _check_addresses(status.podIPs, was.podIPs, "status.podIPs", found)
    if status.hostIPs:
        if status.hostIP != status.hostIPs[0].ip:
            found.append(invalid("status.hostIPs[0].ip", status.hostIPs[0].ip, "must be equal to `hostIP`"))
        if status.hostIPs != was.hostIPs or len(status.hostIPs) > 1:
            _check_addresses(status.hostIPs, was.hostIPs, "status.hostIPs", found)
    for container in (*status.containerStatuses, *status.initContainerStatuses, *status.ephemeralContainerStatuses):
        if container.HasField("user") or container.allocatedResourcesStatus:
            _check_rare(spec, status, found)
            break


_NOT_NEGATIVE = "must be a non-negative integer"


def _check_nomination(nominated: str, node: str, found: list[Cause]) -> None:
    path = "status.nominatedNodeName"
    found.extend(invalid(path, nominated, problem) for problem in names.dns_subdomain(nominated))
    if node:
        found.append(forbidden(path, "may not be set on pods that are already bound to a node"))


# Containers that have ended -------------------------------------------------------------------------------------------


def _check_transitions(
    spec: core_v1_pb2.PodSpec, status: core_v1_pb2.PodStatus, was: core_v1_pb2.PodStatus, found: list[Cause]
) -> None:
    """A container that has ended and is not restarted stays ended."""
    restarts_all = declared_features.restarts_all(spec)
    for field, containers in zip(_OF_CONTAINERS, (spec.containers, spec.initContainers, ()), strict=True):
        if restarts_all and field != _OF_CONTAINERS[2]:
            continue
        by_name = {one.name: one for one in reversed(containers)}
        for index, before in enumerate(getattr(was, field)):
            if not before.state.HasField("terminated"):
                continue
            after = [one for one in getattr(status, field) if one.name == before.name]
            runs = [one for one in after if not one.state.HasField("terminated")]
            container = by_name.get(before.name)
            if container is None or not _may_restart(container, spec, before.state.terminated.exitCode):
                many = runs if field == _OF_CONTAINERS[2] else runs[:1]
                found.extend(forbidden(f"status.{field}[{index}].state", _NO_WAY_BACK) for _ in many)


def _may_restart(container: core_v1_pb2.Container, spec: core_v1_pb2.PodSpec, code: int) -> bool:
    """``ContainerShouldRestart``"""
    policy = spec.restartPolicy
    if container.HasField("restartPolicy"):
        for rule in container.restartPolicyRules:
            if (code in rule.exitCodes.values) == (rule.exitCodes.operator == "In"):
                return True
        policy = container.restartPolicy
    return policy == "Always" or (policy == "OnFailure" and code != 0)


# Claims ---------------------------------------------------------------------------------------------------------------


def _check_claims(
    statuses: Sequence[core_v1_pb2.PodResourceClaimStatus], spec: core_v1_pb2.PodSpec, found: list[Cause]
) -> None:
    known = {one.name for one in spec.resourceClaims}
    seen: dict[Any, None] = {}
    for index, one in enumerate(statuses):
        path = f"status.resourceClaimStatuses[{index}]"
        if one.name not in known:
            found.append(invalid(f"{path}.name", one.name, "must match the name of an entry in `spec.resourceClaims`"))
        checks.unique(one.name, seen, f"{path}.name", one.name, found)
        if one.HasField("resourceClaimName"):
            problems = names.dns_subdomain(one.resourceClaimName)
            found.extend(invalid(f"{path}.resourceClaimName", one.resourceClaimName, text) for text in problems)


def _check_extended_claim(
    status: core_v1_pb2.PodExtendedResourceClaimStatus, spec: core_v1_pb2.PodSpec, found: list[Cause]
) -> None:
    path = "status.extendedResourceClaimStatus"
    containers = {one.name: one for one in (*spec.initContainers, *spec.containers)}
    if not status.requestMappings:
        found.append(required(f"{path}.requestMappings", "at least one request mapping is required"))
    seen = set()
    for index, one in enumerate(status.requestMappings):
        here = f"{path}.requestMappings[{index}]"
        container = containers.get(one.containerName)
        where = "spec.initContainers.{0} or spec.containers.{0}"
        if container is None:
            detail = f"must match the name of an entry in {where.format('name')}"
            found.append(invalid(f"{here}.containerName", one.containerName, detail))
        elif one.resourceName not in container.resources.requests:
            detail = f"must match the extended resource name of an entry in {where.format('resources.requests')}"
            found.append(invalid(f"{here}.resourceName", one.resourceName, detail))
        problems = names.dns_label(one.requestName)
        found.extend(invalid(f"{path}.requestName", one.requestName, text) for text in problems)
        key = (one.containerName, one.resourceName, one.requestName)
        if key in seen:
            fields = ("containerName", "resourceName", "requestName")
            found.extend(duplicate(f"{here}.{field}", value) for field, value in zip(fields, key, strict=True))
        seen.add(key)
    checks.needed_name(status.resourceClaimName, f"{path}.resourceClaimName", names.dns_subdomain, found)


# Addresses ------------------------------------------------------------------------------------------------------------


def _check_addresses(
    after: Sequence[core_v1_pb2.PodIP | core_v1_pb2.HostIP],
    before: Sequence[core_v1_pb2.PodIP | core_v1_pb2.HostIP],
    path: str,
    found: list[Cause],
) -> None:
    """Those that were there before may be wrong."""
    for index, one in enumerate(after):
        problems = names.old_address(one.ip)
        if problems and one.ip not in {other.ip for other in before}:
            found.extend(invalid(f"{path}[{index}]", one.ip, problem) for problem in problems)
    if len(after) <= 1:
        return
    parsed = [names.parsed_address(one.ip) for one in after]
    if None in parsed:
        wrong = parsed.index(None)
        detail = f"failed to check for dual stack with error:invalid IP[{wrong}]: {after[wrong].ip}"
        found.append(internal_error(path, detail))
    versions = {_version(one) for one in parsed}
    if None in parsed or len(versions) < 2 or len(after) > 2:
        found.append(invalid(path, list(after), _ONE_EACH))


def _version(address: names.Address | None) -> int:
    """Of an address that stands for one of IPv4, that of the latter."""
    if address is None:
        return 0
    return 4 if getattr(address, "ipv4_mapped", None) is not None else address.version


# What few containers have ---------------------------------------------------------------------------------------------


def _check_rare(spec: core_v1_pb2.PodSpec, status: core_v1_pb2.PodStatus, found: list[Cause]) -> None:
    for field in _OF_CONTAINERS:
        for index, one in enumerate(getattr(status, field)):
            _check_user(one.user, spec.os.name if spec.HasField("os") else "linux", f"status.{field}[{index}]", found)
    for field, containers in zip(_OF_CONTAINERS, (spec.containers, spec.initContainers), strict=False):
        by_name = {one.name: one for one in reversed(containers)}
        for index, one in enumerate(getattr(status, field)):
            for number, allocated in enumerate(one.allocatedResourcesStatus):
                path = f"status.{field}[{index}].allocatedResourcesStatus[{number}]"
                if one.name in by_name:
                    _check_resource_name(allocated.name, by_name[one.name].resources, f"{path}.name", found)
                _check_health(allocated.resources, path, found)
    for index, one in enumerate(status.ephemeralContainerStatuses):
        if one.allocatedResourcesStatus:
            path = f"status.ephemeralContainerStatuses[{index}].allocatedResourcesStatus"
            found.append(forbidden(path, "must not be specified in container status"))


def _check_user(user: core_v1_pb2.ContainerUser, system: str, path: str, found: list[Cause]) -> None:
    if not user.HasField("linux"):
        return
    path = f"{path}.user.linux"
    if system == "windows":
        found.append(forbidden(path, "cannot be set for a windows pod"))
    elif system == "linux":
        groups = ((f"supplementalGroups[{index}]", one) for index, one in enumerate(user.linux.supplementalGroups))
        for place, number in (("uid", user.linux.uid), ("gid", user.linux.gid), *groups):
            security.check_id(number, f"{path}.{place}", found)


def _check_resource_name(name: str, resources: core_v1_pb2.ResourceRequirements, path: str, found: list[Cause]) -> None:
    if name.startswith("claim:"):
        known = [f"claim:{one.name}/{one.request}" if one.request else f"claim:{one.name}" for one in resources.claims]
        detail = (
            "must match one of the container's resource claims in a format 'claim:<claimName>/<request>' or "
            "'claim:<claimName>' if request is empty"
        )
        if name not in known:
            found.append(invalid(path, name, detail))
    elif name not in resources.requests:
        found.append(invalid(path, name, "must match one of the container's resource requests"))


def _check_health(resources: Sequence[core_v1_pb2.ResourceHealth], path: str, found: list[Cause]) -> None:
    seen: dict[Any, None] = {}
    for index, one in enumerate(resources):
        here = f"{path}.resources[{index}]"
        checks.listed(one.health, f"{here}.health", _HEALTHS, found)
        if one.HasField("message") and not one.message:
            found.append(required(f"{here}.message", "must be non-empty if specified"))
        elif len(one.message.encode()) > _LONGEST_HEALTH_MESSAGE:
            found.append(too_long(f"{here}.message", _LONGEST_HEALTH_MESSAGE))
        checks.unique(one.resourceID, seen, f"{here}.resourceID", one.resourceID, found)
