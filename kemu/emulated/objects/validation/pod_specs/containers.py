"""The containers of pods: those that run, those that initialise, ephemeral ones.

Mirrors ``validateContainers``, ``validateInitContainers``, ``validateEphemeralContainers`` and
``validateContainerCommon`` of ``pkg/apis/core/validation``.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from google.protobuf.message import Message

from kemu.emulated.objects import names
from kemu.emulated.objects.validation import checks
from kemu.emulated.objects.validation.amounts import check_requirements
from kemu.emulated.objects.validation.causes import (
    NOT_FOUND,
    duplicate,
    forbidden,
    invalid,
    not_found,
    required,
    shown,
    too_many,
)
from kemu.emulated.objects.validation.pod_specs import environments, probes, security, volumes
from kemu.emulated.objects.validation.pod_specs.volumes import AnyContainer
from kemu.errors import Cause
from kemu.messages.k8s import core_v1_pb2

_MESSAGE_POLICIES = ("File", "FallbackToLogsOnError")
_PROTOCOLS = ("SCTP", "TCP", "UDP")
_RESTART_POLICIES = ("Always", "Never", "OnFailure")
_RULE_ACTIONS = ("Restart", "RestartAllContainers")
_RULE_OPERATORS = ("In", "NotIn")
_MOST_RULES, _MOST_EXIT_CODES = 20, 255
_RESIZABLE = ("cpu", "memory")
_RESTARTS = "RestartContainer"
_RESIZE_POLICIES = ("NotRequired", _RESTARTS)
_RUN_FOREVER = ("lifecycle", "livenessProbe", "readinessProbe", "startupProbe")
_NOT_EPHEMERAL = (
    "ports", "resources", "resizePolicy", "restartPolicy", "restartPolicyRules", "livenessProbe", "readinessProbe",
    "startupProbe", "lifecycle",
)  # fmt: skip
"""Fields of containers that ephemeral ones may not have, in the order of the message."""


@dataclass(slots=True)
class Pod:
    """What containers need to know of their pod, and what a pod needs to know of all its containers."""

    spec: core_v1_pb2.PodSpec
    volumes: volumes.Sources
    has_host_users: bool
    old: core_v1_pb2.PodSpec | None = None
    """Of an update. What earlier versions let pass may stay."""
    is_readable: bool = True
    """Whether all quantities can be parsed."""
    has_windows_options: bool = False
    reads_files: bool = False
    """Whether there are variables whose values stand in files."""


def check_containers(pod: Pod, path: str, found: list[Cause]) -> None:
    """All of a pod; ``path``: of its spec."""
    spec = pod.spec
    containers, grace_s = spec.containers, spec.terminationGracePeriodSeconds
    if not containers:
        found.append(required(f"{path}.containers"))
    seen: dict[str, None] = {}
    has_host_ports = False
    for index, container in enumerate(containers):
        here = f"{path}.containers[{index}]"
        _check_common(container, here, pod, found)
        if container.name in seen:
            found.append(duplicate(f"{here}.name", container.name))
        seen[container.name] = None
        probes.check_probes(container, grace_s, here, found)
        if container.restartPolicyRules or container.HasField("restartPolicy"):
            _check_restarts(container, here, found)
        has_host_ports = has_host_ports or bool(container.ports)
    if has_host_ports:
        _check_host_ports(containers, f"{path}.containers", found)
    for index, container in enumerate(spec.initContainers):
        _check_init(container, f"{path}.initContainers", index, seen, pod, found)
    if spec.ephemeralContainers:
        _check_ephemeral(spec.ephemeralContainers, f"{path}.ephemeralContainers", seen, pod, found)


def _check_init(
    container: core_v1_pb2.Container, path: str, index: int, seen: dict[str, None], pod: Pod, found: list[Cause]
) -> None:
    here = f"{path}[{index}]"
    _check_common(container, here, pod, found)
    is_sidecar = container.restartPolicy == "Always"
    if container.HasField("restartPolicy"):
        _check_restarts(container, here, found)
    elif container.restartPolicyRules:
        found.append(_no_policy(here))
    if container.name in seen:
        found.append(duplicate(f"{here}.name", container.name))
    elif container.name:
        seen[container.name] = None
    if container.ports:
        # They run one by one. Kubernetes names each the first.
        _check_host_ports((container,), path, found)
    if is_sidecar:
        probes.check_probes(container, pod.spec.terminationGracePeriodSeconds, here, found)
        return
    for field in _RUN_FOREVER:
        if container.HasField(field):
            detail = "may not be set for init containers without restartPolicy=Always"
            found.append(forbidden(f"{here}.{field}", detail))
    for number, policy in enumerate(container.resizePolicy):
        if policy.restartPolicy == _RESTARTS and not (pod.old is not None and _restarts_init(pod.old)):
            detail = "must not be set to 'RestartContainer' for non-sidecar initContainers"
            found.append(invalid(f"{here}.resizePolicy[{number}].restartPolicy", policy.restartPolicy, detail))


def _restarts_init(spec: core_v1_pb2.PodSpec) -> bool:
    """``hasRestartContainerForNonSidecarInitContainer``"""
    others = [one for one in spec.initContainers if one.restartPolicy != "Always"]
    return any(policy.restartPolicy == _RESTARTS for one in others for policy in one.resizePolicy)


def _check_ephemeral(
    containers: Sequence[core_v1_pb2.EphemeralContainer],
    path: str,
    seen: dict[str, None],
    pod: Pod,
    found: list[Cause],
) -> None:
    seen |= dict.fromkeys(one.name for one in pod.spec.initContainers)  # one that has no name, too
    others = tuple(seen)
    for index, one in enumerate(containers):
        here, container = f"{path}[{index}]", one.ephemeralContainerCommon
        _check_common(container, here, pod, found)
        check_image_trimmed(container.image, here, found)
        checks.unique(container.name, seen, f"{here}.name", container.name, found)
        if one.targetContainerName and one.targetContainerName not in others:
            found.append(not_found(f"{here}.targetContainerName", one.targetContainerName))
        detail = "cannot be set for an Ephemeral Container"
        found.extend(forbidden(f"{here}.{field}", detail) for field in _NOT_EPHEMERAL if _states(container, field))
        for number, mount in enumerate(container.volumeMounts):
            stated = [field for field in ("subPath", "subPathExpr") if getattr(mount, field)]
            found.extend(forbidden(f"{here}.volumeMounts[{number}].{field}", detail) for field in stated)


def _states(container: AnyContainer, field: str) -> bool:
    if field == "resources":
        return bool(container.resources.ListFields())
    value = getattr(container, field)
    return bool(container.HasField(field) if isinstance(value, Message) or field == "restartPolicy" else value)


def _check_common(container: AnyContainer, path: str, pod: Pod, found: list[Cause]) -> None:
    """``validateContainerCommon``"""
    if not container.name or names.dns_label(container.name):
        checks.needed_name(container.name, f"{path}.name", names.dns_label, found)
    if not container.image:
        found.append(required(f"{path}.image"))
    if container.terminationMessagePolicy not in _MESSAGE_POLICIES:
        checks.choice(container.terminationMessagePolicy, f"{path}.terminationMessagePolicy", _MESSAGE_POLICIES, found)
    if container.ports:
        _check_ports(container.ports, f"{path}.ports", found)
    if container.env:
        pod.reads_files |= environments.check_variables(container.env, f"{path}.env", found)
    if container.envFrom:
        environments.check_sources(container.envFrom, f"{path}.envFrom", found)
    if container.volumeMounts:
        volumes.check_mounts(container, path, pod.volumes, found)
    if container.volumeDevices:
        volumes.check_devices(container, path, pod.volumes, found)
    if container.imagePullPolicy not in volumes.PULL_POLICIES:
        checks.choice(container.imagePullPolicy, f"{path}.imagePullPolicy", volumes.PULL_POLICIES, found)
    if container.HasField("resources"):
        pod.is_readable &= check_requirements(container.resources, f"{path}.resources", found)
        if container.resources.claims:
            check_claims(container.resources.claims, pod.spec, f"{path}.resources.claims", found)
    if container.resizePolicy:
        _check_resizes(container.resizePolicy, pod.spec.restartPolicy, f"{path}.resizePolicy", found)
    if container.HasField("securityContext"):
        pod.has_windows_options |= container.securityContext.HasField("windowsOptions")
        security.check_container(container.securityContext, f"{path}.securityContext", pod.has_host_users, found)


def check_claims(
    claims: Sequence[core_v1_pb2.ResourceClaim], spec: core_v1_pb2.PodSpec, path: str, found: list[Cause]
) -> None:
    """``validateResourceClaimNames``: those of the pod that are meant."""
    of_pod = dict.fromkeys(one.name for one in spec.resourceClaims if one.name)
    seen: dict[str, None] = {}
    for index, claim in enumerate(claims):
        here, name = f"{path}[{index}]", claim.name
        if not name:
            found.append(required(here))
            continue
        if name in seen:
            # All requests of the claim are meant already.
            found.append(duplicate(here, name))
        else:
            key = name
            if claim.request:
                checks.name(claim.request, f"{here}.request", names.dns_label, found)
                key = f"{name}/{claim.request}"
            if key in seen:
                found.append(duplicate(here, key))
            elif not claim.request:
                found.extend(duplicate(here, name) for one in seen if one.startswith(f"{name}/"))
            seen[key] = None
        if name not in of_pod:
            known = f": {', '.join(sorted(of_pod))}" if of_pod else " which is empty"
            detail = f"must be one of the names in pod.spec.resourceClaims{known}"
            found.append(Cause(here, NOT_FOUND, f"Not found: {shown(name)}: {detail}"))


def _check_resizes(
    policies: Sequence[core_v1_pb2.ContainerResizePolicy], restart_policy: str, path: str, found: list[Cause]
) -> None:
    """``validateResizePolicy``"""
    seen: dict[str, None] = {}
    for index, policy in enumerate(policies):
        checks.unique(policy.resourceName, seen, f"{path}[{index}]", policy.resourceName, found)
        checks.choice(policy.resourceName, path, _RESIZABLE, found)
        checks.choice(policy.restartPolicy, path, _RESIZE_POLICIES, found)
        if restart_policy == "Never" and policy.restartPolicy != "NotRequired":
            detail = "must be 'NotRequired' when pod `restartPolicy` is 'Never'"
            found.append(invalid(path, policy.restartPolicy, detail))


def _no_policy(path: str) -> Cause:
    return required(f"{path}.restartPolicy", "must specify restartPolicy when restart rules are used")


def _check_restarts(container: core_v1_pb2.Container, path: str, found: list[Cause]) -> None:
    """``validateContainerRestartPolicy``"""
    if container.HasField("restartPolicy"):
        checks.listed(container.restartPolicy, f"{path}.restartPolicy", _RESTART_POLICIES, found)
    else:
        found.append(_no_policy(path))
    rules = container.restartPolicyRules
    if len(rules) > _MOST_RULES:
        found.append(too_many(f"{path}.restartPolicyRules", len(rules), _MOST_RULES))
    for index, rule in enumerate(rules):
        here = f"{path}.restartPolicyRules[{index}]"
        checks.listed(rule.action, f"{here}.action", _RULE_ACTIONS, found)
        if not rule.HasField("exitCodes"):
            found.append(required(f"{here}.exitCodes", "must be specified"))
            continue
        checks.listed(rule.exitCodes.operator, f"{here}.exitCodes.operator", _RULE_OPERATORS, found)
        if len(rule.exitCodes.values) > _MOST_EXIT_CODES:
            values = f"{here}.exitCodes.values"
            found.append(too_many(values, len(rule.exitCodes.values), _MOST_EXIT_CODES))


def _check_ports(ports: Sequence[core_v1_pb2.ContainerPort], path: str, found: list[Cause]) -> None:
    seen: dict[str, None] = {}
    for index, port in enumerate(ports):
        here = f"{path}[{index}]"
        if port.name:
            problems = names.port_name(port.name)
            found.extend(invalid(f"{here}.name", port.name, problem) for problem in problems)
            if not problems:
                checks.unique(port.name, seen, f"{here}.name", port.name, found)
        if port.containerPort == 0:
            found.append(required(f"{here}.containerPort"))
        else:
            checks.port(port.containerPort, f"{here}.containerPort", found)
        if port.hostPort:
            checks.port(port.hostPort, f"{here}.hostPort", found)
        if port.protocol not in _PROTOCOLS:
            checks.choice(port.protocol, f"{here}.protocol", _PROTOCOLS, found)


def _check_host_ports(containers: Sequence[core_v1_pb2.Container], path: str, found: list[Cause]) -> None:
    """``AccumulateUniqueHostPorts``"""
    taken: dict[str, None] = {}
    for number, container in enumerate(containers):
        for index, port in enumerate(container.ports):
            if port.hostPort:
                this = f"{port.protocol}/{port.hostIP}/{port.hostPort}"
                checks.unique(this, taken, f"{path}[{number}].ports[{index}].hostPort", this, found)


def check_host_network(
    containers: Sequence[core_v1_pb2.Container], path: str, *, of_pod: bool, found: list[Cause]
) -> None:
    """``validatePodHostNetworkDeps``. ``of_pod``: not of a template, which may leave the ports of the host open."""
    for number, container in enumerate(containers):
        for index, port in enumerate(container.ports):
            if port.hostPort != port.containerPort and (of_pod or port.hostPort):
                detail = "must match `containerPort` when `hostNetwork` is true"
                found.append(invalid(f"{path}[{number}].ports[{index}].hostPort", port.hostPort, detail))


def check_image_trimmed(image: str, path: str, found: list[Cause]) -> None:
    """``validateContainerOnlyForPod``"""
    if image != image.strip():
        found.append(invalid(f"{path}.image", image, "must not have leading or trailing whitespace"))
