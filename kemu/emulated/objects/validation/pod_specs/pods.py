"""Checks of pods and pod templates, with the texts of ``pkg/apis/core/validation`` of Kubernetes.

Where pods may run is checked in :mod:`kemu.emulated.objects.validation.placement`. Fields that schedulers, kubelets
and controllers read are checked; most of those that only a container runtime reads (security contexts, probe handlers)
are not.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import lru_cache

from google.protobuf.message import Message

from kemu.emulated.objects import names
from kemu.emulated.objects.amounts import quantities, requests
from kemu.emulated.objects.conversion import go_values
from kemu.emulated.objects.pods import declared_features
from kemu.emulated.objects.validation import checks, storage
from kemu.emulated.objects.validation.amounts import (
    check_overhead,
    check_pod_level_names,
    check_requirements,
    container_resource_name,
)
from kemu.emulated.objects.validation.causes import (
    duplicate,
    forbidden,
    invalid,
    not_found,
    required,
    too_long,
    too_many,
)
from kemu.emulated.objects.validation.metadata import check_labels
from kemu.emulated.objects.validation.placement import check_affinity, check_gates, check_spread, check_tolerations
from kemu.emulated.objects.validation.pod_specs.probes import check_probes, check_readiness_gates
from kemu.errors import Cause
from kemu.messages.k8s import core_v1_pb2

RESTART_POLICIES = ("Always", "OnFailure", "Never")
PREEMPTION_POLICIES = ("PreemptLowerPriority", "Never")
_DNS_POLICIES = ("ClusterFirstWithHostNet", "ClusterFirst", "Default", "None")
_RULE_ACTIONS = ("Restart", "RestartAllContainers")
_RULE_OPERATORS = ("In", "NotIn")
_MOST_RULES, _MOST_EXIT_CODES = 20, 255
_PULL_POLICIES = ("Always", "IfNotPresent", "Never")
_MESSAGE_POLICIES = ("File", "FallbackToLogsOnError")
_PROTOCOLS = ("SCTP", "TCP", "UDP")
_MAX_INT32 = 2**31 - 1
_LONGEST_HOSTNAME = 64

_PODS_MAY_CHANGE = (
    "`spec.containers[*].image`,`spec.initContainers[*].image`,`spec.activeDeadlineSeconds`,"
    "`spec.tolerations` (only additions to existing tolerations),"
    "`spec.terminationGracePeriodSeconds` (allow it to be set to 1 if it was previously negative)"
)


def check_pod_create(pod: core_v1_pb2.Pod, found: list[Cause]) -> None:
    """The spec of a new pod; its metadata are checked elsewhere."""
    found += _causes_in_new(pod.spec.SerializeToString(deterministic=True))


@lru_cache(1024)
def _causes_in_new(spec_bytes: bytes) -> tuple[Cause, ...]:
    """Cached, because most pods are copies of one spec."""
    spec = core_v1_pb2.PodSpec.FromString(spec_bytes)
    found: list[Cause] = []
    check_pod_spec(spec, "spec", found)
    if spec.ephemeralContainers:
        found.append(forbidden("spec.ephemeralContainers", "cannot be set on create"))
    if spec.nodeName and spec.schedulingGates:
        found.append(forbidden("spec.nodeName", "cannot be set until all schedulingGates have been cleared"))
    _check_images_of_pod(spec, found)
    return tuple(found)


def check_pod_spec(spec: core_v1_pb2.PodSpec, path: str, found: list[Cause], claims: Iterable[str] = ()) -> None:
    """The spec of a pod or of a template (``path`` then is ``spec.template.spec``).

    ``claims``: volumes that it gets besides its own, from the claim templates of a StatefulSet.
    """
    if not spec.HasField("terminationGracePeriodSeconds"):
        found.append(required(f"{path}.terminationGracePeriodSeconds"))
    volumes = _check_volumes(spec.volumes, f"{path}.volumes", found) if spec.volumes else ()
    volumes = (*volumes, *claims)
    readable = _check_containers(spec, path, volumes, found)
    if spec.HasField("resources"):
        _check_pod_resources(spec, f"{path}.resources", readable, found)
    checks.choice(spec.restartPolicy, f"{path}.restartPolicy", RESTART_POLICIES, found)
    checks.choice(spec.dnsPolicy, f"{path}.dnsPolicy", _DNS_POLICIES, found)
    if spec.nodeSelector:
        check_labels(spec.nodeSelector, f"{path}.nodeSelector", found)
    if spec.HasField("affinity"):
        check_affinity(spec.affinity, f"{path}.affinity", found)
    if spec.readinessGates:
        check_readiness_gates(spec.readinessGates, f"{path}.readinessGates", found)
    if spec.schedulingGates:
        check_gates(spec.schedulingGates, f"{path}.schedulingGates", found)
    if spec.topologySpreadConstraints:
        check_spread(spec.topologySpreadConstraints, f"{path}.topologySpreadConstraints", found)
    if spec.HasField("hostnameOverride"):
        _check_hostname_override(spec, f"{path}.hostnameOverride", found)
    for field in ("serviceAccountName", "nodeName"):
        checks.name(getattr(spec, field), f"{path}.{field}", names.dns_subdomain, found)
    if spec.HasField("activeDeadlineSeconds") and not 1 <= spec.activeDeadlineSeconds <= _MAX_INT32:
        detail = f"must be between 1 and {_MAX_INT32}, inclusive"
        found.append(invalid(f"{path}.activeDeadlineSeconds", spec.activeDeadlineSeconds, detail))
    for field in ("hostname", "subdomain"):
        checks.name(getattr(spec, field), f"{path}.{field}", names.dns_label, found)
    if spec.tolerations:
        check_tolerations(spec.tolerations, f"{path}.tolerations", found)
    for index, alias in enumerate(spec.hostAliases):
        place = f"{path}.hostAliases[{index}]"
        found.extend(invalid(f"{place}.ip", alias.ip, problem) for problem in names.old_address(alias.ip))
        for at, name in enumerate(alias.hostnames):
            found.extend(invalid(f"{place}.hostnames[{at}]", name, problem) for problem in names.dns_subdomain(name))
    for field in ("priorityClassName", "runtimeClassName"):
        checks.name(getattr(spec, field), f"{path}.{field}", names.dns_subdomain, found)
    if spec.HasField("preemptionPolicy"):
        checks.choice(spec.preemptionPolicy, f"{path}.preemptionPolicy", PREEMPTION_POLICIES, found)
    if spec.overhead:
        check_overhead(spec.overhead, f"{path}.overhead", found)
    if spec.HasField("os"):
        checks.choice(spec.os.name, f"{path}.os.name", ("linux", "windows"), found)


# Containers ---------------------------------------------------------------------------------------------------------


def _check_containers(spec: core_v1_pb2.PodSpec, path: str, volumes: Sequence[str], found: list[Cause]) -> bool:
    """Returns whether all of their quantities can be parsed."""
    containers = spec.containers
    if not containers:
        found.append(required(f"{path}.containers"))
    readable = True
    seen: dict[str, None] = {}
    host_ports: dict[str, None] = {}
    for index, container in enumerate(containers):
        here = f"{path}.containers[{index}]"
        readable &= _check_container(container, here, volumes, seen, found)
        if container.ports:
            _check_host_ports(container.ports, here, host_ports, spec.hostNetwork, found)
        check_probes(container, spec.terminationGracePeriodSeconds, here, found)
    for index, container in enumerate(spec.initContainers):
        here = f"{path}.initContainers[{index}]"
        readable &= _check_container(container, here, volumes, seen, found)
        if container.ports:
            _check_host_ports(container.ports, here, {}, False, found)
        if container.restartPolicy == "Always":
            check_probes(container, spec.terminationGracePeriodSeconds, here, found)
        else:
            for field in ("lifecycle", "livenessProbe", "readinessProbe", "startupProbe"):
                if container.HasField(field):
                    detail = "may not be set for init containers without restartPolicy=Always"
                    found.append(forbidden(f"{here}.{field}", detail))
    if spec.ephemeralContainers:
        _check_ephemeral(spec, f"{path}.ephemeralContainers", volumes, seen, found)
    return readable


_NOT_EPHEMERAL = (
    "ports",
    "resources",
    "resizePolicy",
    "restartPolicy",
    "restartPolicyRules",
    "livenessProbe",
    "readinessProbe",
    "startupProbe",
    "lifecycle",
)
"""Fields of containers that ephemeral ones may not have, in the order of the message."""


def _check_ephemeral(
    spec: core_v1_pb2.PodSpec, path: str, volumes: Sequence[str], seen: dict[str, None], found: list[Cause]
) -> None:
    """``validateEphemeralContainers``."""
    others = set(seen)
    for index, one in enumerate(spec.ephemeralContainers):
        here, container = f"{path}[{index}]", one.ephemeralContainerCommon
        _check_container(container, here, volumes, seen, found)
        _check_image_trimmed(container.image, here, found)
        if one.targetContainerName and one.targetContainerName not in others:
            found.append(not_found(f"{here}.targetContainerName", one.targetContainerName))
        for field in _NOT_EPHEMERAL:
            value = getattr(container, field)
            if container.HasField(field) if isinstance(value, Message) else value:
                found.append(forbidden(f"{here}.{field}", "cannot be set for an Ephemeral Container"))
        for number, mount in enumerate(container.volumeMounts):
            for field in ("subPath", "subPathExpr"):
                if getattr(mount, field):
                    detail = "cannot be set for an Ephemeral Container"
                    found.append(forbidden(f"{here}.volumeMounts[{number}].{field}", detail))


def _check_container(
    container: core_v1_pb2.Container | core_v1_pb2.EphemeralContainerCommon,
    path: str,
    volumes: Sequence[str],
    seen: dict[str, None],
    found: list[Cause],
) -> bool:
    name = container.name
    checks.needed_name(name, f"{path}.name", names.dns_label, found)
    if not container.image:
        found.append(required(f"{path}.image"))
    if container.imagePullPolicy not in _PULL_POLICIES:
        checks.choice(container.imagePullPolicy, f"{path}.imagePullPolicy", _PULL_POLICIES, found)
    if container.terminationMessagePolicy not in _MESSAGE_POLICIES:
        checks.choice(container.terminationMessagePolicy, f"{path}.terminationMessagePolicy", _MESSAGE_POLICIES, found)
    if container.HasField("restartPolicy"):
        checks.choice(container.restartPolicy, f"{path}.restartPolicy", RESTART_POLICIES, found)
    if container.restartPolicyRules and isinstance(container, core_v1_pb2.Container):
        _check_restart_rules(container, path, found)
    if container.ports:
        _check_ports(container.ports, f"{path}.ports", found)
    for index, variable in enumerate(container.env):
        if not variable.name:
            found.append(required(f"{path}.env[{index}].name"))
    if container.volumeMounts:
        _check_mounts(container.volumeMounts, f"{path}.volumeMounts", volumes, found)
    readable = True
    if container.HasField("resources"):
        readable = check_requirements(container.resources, f"{path}.resources", container_resource_name, found)
    if name in seen and name:
        found.append(duplicate(f"{path}.name", name))
    seen[name] = None
    return readable


def _check_restart_rules(container: core_v1_pb2.Container, path: str, found: list[Cause]) -> None:
    """``validateContainerRestartPolicy``."""
    if not container.restartPolicy:
        found.append(required(f"{path}.restartPolicy", "must specify restartPolicy when restart rules are used"))
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


def _check_ports(ports: Iterable[core_v1_pb2.ContainerPort], path: str, found: list[Cause]) -> None:
    seen: dict[str, None] = {}
    for index, port in enumerate(ports):
        here = f"{path}[{index}]"
        if port.name:
            problems = names.port_name(port.name)
            found.extend(invalid(f"{here}.name", port.name, problem) for problem in problems)
            if not problems and port.name in seen:
                found.append(duplicate(f"{here}.name", port.name))
            seen[port.name] = None
        if port.containerPort == 0:
            found.append(required(f"{here}.containerPort"))
        else:
            checks.port(port.containerPort, f"{here}.containerPort", found)
        if port.hostPort:
            checks.port(port.hostPort, f"{here}.hostPort", found)
        checks.choice(port.protocol, f"{here}.protocol", _PROTOCOLS, found)


def _check_host_ports(
    ports: Iterable[core_v1_pb2.ContainerPort],
    path: str,
    taken: dict[str, None],
    host_network: bool,
    found: list[Cause],
) -> None:
    for index, port in enumerate(ports):
        here = f"{path}.ports[{index}].hostPort"
        if host_network and port.hostPort != port.containerPort:
            detail = "must match `containerPort` when `hostNetwork` is true"
            found.append(invalid(here, port.hostPort, detail))
        if port.hostPort:
            this = f"{port.protocol}/{port.hostIP}/{port.hostPort}"
            checks.unique(this, taken, here, this, found)


def _check_mounts(
    mounts: Iterable[core_v1_pb2.VolumeMount], path: str, volumes: Sequence[str], found: list[Cause]
) -> None:
    seen: dict[str, None] = {}
    for index, mount in enumerate(mounts):
        here = f"{path}[{index}]"
        if not mount.name:
            found.append(required(f"{here}.name"))
        if mount.name not in volumes:
            found.append(not_found(f"{here}.name", mount.name))
        if not mount.mountPath:
            found.append(required(f"{here}.mountPath"))
        if mount.mountPath in seen:
            found.append(invalid(f"{here}.mountPath", mount.mountPath, "must be unique"))
        seen[mount.mountPath] = None


def _check_volumes(volumes: Iterable[core_v1_pb2.Volume], path: str, found: list[Cause]) -> tuple[str, ...]:
    """Returns the names."""
    seen: dict[str, None] = {}
    for index, volume in enumerate(volumes):
        here = f"{path}[{index}]"
        if not volume.name:
            found.append(required(f"{here}.name"))
        else:
            found.extend(invalid(f"{here}.name", volume.name, problem) for problem in names.dns_label(volume.name))
            if volume.name in seen:
                found.append(duplicate(f"{here}.name", volume.name))
            seen[volume.name] = None
        sources = volume.volumeSource.ListFields()
        if not sources:
            found.append(required(here, "must specify a volume type"))
        found.extend(
            forbidden(f"{here}.{field.name}", "may not specify more than 1 volume type") for field, _ in sources[1:]
        )
        _check_claim_of(volume.volumeSource, here, found)
        if volume.volumeSource.HasField("image"):
            policy = volume.volumeSource.image.pullPolicy
            if policy not in _PULL_POLICIES:
                checks.choice(policy, f"{here}.image.pullPolicy", _PULL_POLICIES, found)
    return tuple(seen)


def _check_claim_of(source: core_v1_pb2.VolumeSource, path: str, found: list[Cause]) -> None:
    """The claim behind a volume: a name, or the template of an ephemeral one."""
    if source.HasField("persistentVolumeClaim") and not source.persistentVolumeClaim.claimName:
        found.append(required(f"{path}.persistentVolumeClaim.claimName"))
    if source.HasField("ephemeral"):
        if source.ephemeral.HasField("volumeClaimTemplate"):
            storage.check_claim_spec(
                source.ephemeral.volumeClaimTemplate.spec, f"{path}.ephemeral.volumeClaimTemplate.spec", found
            )
        else:
            found.append(required(f"{path}.ephemeral.volumeClaimTemplate"))


def _check_pod_resources(spec: core_v1_pb2.PodSpec, path: str, readable: bool, found: list[Cause]) -> None:
    resources = spec.resources
    if resources.claims:
        found.append(forbidden(f"{path}.claims", "claims cannot be set for Resources at pod-level"))
    check_pod_level_names(resources.limits, f"{path}.limits", found)
    check_pod_level_names(resources.requests, f"{path}.requests", found)
    if not check_requirements(resources, path, lambda _: (), found) or not readable:
        return
    together = requests.container_requests(spec)
    for name, amount in together.items():
        if name in resources.requests:
            at_pod = quantities.parse(resources.requests[name].string)
            if amount > at_pod:
                detail = f"must be greater than or equal to aggregate container requests of {amount}"
                found.append(invalid(f"{path}.requests[{name}]", str(at_pod), detail))
    for index, container in enumerate(spec.containers):
        for name in sorted(container.resources.limits):
            if name in resources.limits:
                limit = quantities.parse(container.resources.limits[name].string)
                at_pod = quantities.parse(resources.limits[name].string)
                if limit > at_pod:
                    here = f"{path}.containers[{index}][{name}].limits"
                    found.append(invalid(here, str(limit), f"must be less than or equal to pod limits of {at_pod}"))


def _check_images_of_pod(spec: core_v1_pb2.PodSpec, found: list[Cause]) -> None:
    for field in ("containers", "initContainers"):
        for index, container in enumerate(getattr(spec, field)):
            _check_image_trimmed(container.image, f"spec.{field}[{index}]", found)
    for index, volume in enumerate(spec.volumes):
        if volume.volumeSource.HasField("image") and not volume.volumeSource.image.reference:
            found.append(required(f"spec.volumes[{index}].image.reference"))


def _check_image_trimmed(image: str, path: str, found: list[Cause]) -> None:
    if image != image.strip():
        found.append(invalid(f"{path}.image", image, "must not have leading or trailing whitespace"))


def _check_hostname_override(spec: core_v1_pb2.PodSpec, path: str, found: list[Cause]) -> None:
    """``validateHostnameOverride``."""
    others = [field for field in ("setHostnameAsFQDN", "hostNetwork") if getattr(spec, field)]
    found.extend(forbidden(path, f"may not be specified when {field} is true") for field in others)
    name = spec.hostnameOverride
    if len(name.encode()) > _LONGEST_HOSTNAME:
        found.append(too_long(path, _LONGEST_HOSTNAME))
    found.extend(invalid(path, name, problem) for problem in names.dns_subdomain(name))


# Updates ------------------------------------------------------------------------------------------------------------


def _check_images(containers: Sequence[core_v1_pb2.Container], path: str, found: list[Cause]) -> None:
    """``ValidateContainerUpdates``, which asks for the image again."""
    for index, container in enumerate(containers):
        if not container.image:
            found.append(required(f"{path}[{index}].image"))
        if container.image != container.image.strip():
            detail = "must not have leading or trailing whitespace"
            found.append(invalid(f"{path}[{index}].image", container.image, detail))


def check_pod_update(new: core_v1_pb2.Pod, old: core_v1_pb2.Pod, found: list[Cause]) -> None:
    """An update of the spec by a user, who may change very little. Binding does not call this."""
    after, before = new.spec, old.spec
    if after == before:
        return
    check_pod_spec(after, "spec", found)
    for field in ("containers", "initContainers"):
        if len(getattr(after, field)) != len(getattr(before, field)):
            found.append(forbidden(f"spec.{field}", "pod updates may not add or remove containers"))
            return
        _check_images(getattr(after, field), f"spec.{field}", found)
    if not _check_deadline_update(after, before, found):
        return
    _check_tolerations_update(after, before, found)
    kept = [gate.name for gate in before.schedulingGates]
    for index, gate in enumerate(after.schedulingGates):
        if gate.name not in kept:
            detail = f"only deletion is allowed, but found new scheduling gate '{gate.name}'"
            found.append(forbidden(f"spec.schedulingGates[{index}].name", detail))

    # Undo the changes that are allowed; any difference that is left is not.
    rest = type(after)()
    rest.CopyFrom(after)
    for field in ("containers", "initContainers"):
        for mine, theirs in zip(getattr(rest, field), getattr(before, field), strict=True):
            mine.image = theirs.image
    for field in ("tolerations", "schedulingGates"):
        _copy_field(rest, before, field)
    _copy_field(rest, before, "activeDeadlineSeconds")
    if before.terminationGracePeriodSeconds < 0 and rest.terminationGracePeriodSeconds == 1:
        rest.terminationGracePeriodSeconds = before.terminationGracePeriodSeconds
    if before.schedulingGates:
        _check_gated_update(rest, before, found)
    if rest != before and _as_go_reads(rest) != (before := _as_go_reads(before)):
        changed = ", ".join(f"`spec.{field}`" for field in _differing_fields(_as_go_reads(rest), before))
        detail = f"pod updates may not change fields other than {_PODS_MAY_CHANGE}\nchanged: {changed}"
        found.append(forbidden("spec", detail))


def _check_deadline_update(after: core_v1_pb2.PodSpec, before: core_v1_pb2.PodSpec, found: list[Cause]) -> bool:
    path = "spec.activeDeadlineSeconds"
    if after.HasField("activeDeadlineSeconds"):
        deadline = after.activeDeadlineSeconds
        if not 0 <= deadline <= _MAX_INT32:
            found.append(invalid(path, deadline, f"must be between 0 and {_MAX_INT32}, inclusive"))
            return False
        if before.HasField("activeDeadlineSeconds") and before.activeDeadlineSeconds < deadline:
            found.append(invalid(path, deadline, "must be less than or equal to previous value"))
            return False
    elif before.HasField("activeDeadlineSeconds"):
        found.append(invalid(path, None, "must not update from a positive integer to nil value"))
    return True


def _check_tolerations_update(after: core_v1_pb2.PodSpec, before: core_v1_pb2.PodSpec, found: list[Cause]) -> None:
    """Tolerations may be added; of existing ones only the seconds may change."""
    there = [_without_seconds(toleration) for toleration in after.tolerations]
    if not all(_without_seconds(toleration) in there for toleration in before.tolerations):
        detail = "existing toleration can not be modified except its tolerationSeconds"
        found.append(forbidden("spec.tolerations", detail))


def _without_seconds(toleration: core_v1_pb2.Toleration) -> tuple[str, str, str, str]:
    return toleration.key, toleration.operator, toleration.value, toleration.effect


def _check_gated_update(rest: core_v1_pb2.PodSpec, before: core_v1_pb2.PodSpec, found: list[Cause]) -> None:
    """A gated pod's node selector and node affinity may be narrowed; undoes that in ``rest``."""
    if dict(rest.nodeSelector) != dict(before.nodeSelector):
        if any(rest.nodeSelector.get(key) != value for key, value in before.nodeSelector.items()):
            detail = "only additions to spec.nodeSelector are allowed (no mutations or deletions)"
            found.append(invalid("spec.nodeSelector", dict(rest.nodeSelector), detail))
        _copy_field(rest, before, "nodeSelector")
    if rest.affinity.nodeAffinity != before.affinity.nodeAffinity:
        _check_terms_update(rest, before, found)
        _undo_node_affinity(rest, before)


def _check_terms_update(after: core_v1_pb2.PodSpec, before: core_v1_pb2.PodSpec, found: list[Cause]) -> None:
    """Terms that were there may only get more requirements; where there were none, anything may be set."""
    path = "spec.affinity.nodeAffinity.requiredDuringSchedulingIgnoredDuringExecution.nodeSelectorTerms"
    terms, old_terms = (
        list(spec.affinity.nodeAffinity.requiredDuringSchedulingIgnoredDuringExecution.nodeSelectorTerms)
        for spec in (after, before)
    )
    if not old_terms:
        return
    if len(terms) != len(old_terms):
        detail = "no additions/deletions to non-empty NodeSelectorTerms list are allowed"
        found.append(invalid(path, terms, detail))
        return
    for index, (term, old_term) in enumerate(zip(terms, old_terms, strict=True)):
        if not _starts_with(term, old_term):
            detail = "only additions are allowed (no mutations or deletions)"
            found.append(invalid(f"{path}[{index}]", term, detail))


def _undo_node_affinity(rest: core_v1_pb2.PodSpec, before: core_v1_pb2.PodSpec) -> None:
    if before.affinity.HasField("nodeAffinity"):
        rest.affinity.nodeAffinity.CopyFrom(before.affinity.nodeAffinity)
        return
    rest.affinity.ClearField("nodeAffinity")
    if not before.HasField("affinity") and not rest.affinity.ListFields():
        rest.ClearField("affinity")


def _starts_with(term: core_v1_pb2.NodeSelectorTerm, old_term: core_v1_pb2.NodeSelectorTerm) -> bool:
    """Whether all requirements of the old term stand unchanged at the head of the new one."""
    if not old_term.matchExpressions and not old_term.matchFields:
        return bool(term == old_term)
    return all(
        list(getattr(term, field))[: len(getattr(old_term, field))] == list(getattr(old_term, field))
        for field in ("matchExpressions", "matchFields")
    )


def _copy_field(target: core_v1_pb2.PodSpec, source: core_v1_pb2.PodSpec, field: str) -> None:
    """Make one field of ``target`` what it is in ``source``."""
    target.ClearField(field)
    value = getattr(source, field)
    if hasattr(value, "items"):
        getattr(target, field).update(value)
    elif hasattr(value, "extend"):
        getattr(target, field).extend(value)
    elif source.HasField(field):
        setattr(target, field, value)


def _as_go_reads(spec: core_v1_pb2.PodSpec) -> core_v1_pb2.PodSpec:
    """Without what is as good as absent: objects that were written by patches, and as JSON, state it."""
    found = type(spec)()
    found.CopyFrom(spec)
    go_values.trim(found)
    return found


def _differing_fields(one: core_v1_pb2.PodSpec, other: core_v1_pb2.PodSpec) -> list[str]:
    return [field.name for field in one.DESCRIPTOR.fields if getattr(one, field.name) != getattr(other, field.name)]


def check_pod_status_update(new: core_v1_pb2.Pod, old: core_v1_pb2.Pod, found: list[Cause]) -> None:
    """An update of the status subresource."""
    if new.spec.nodeName != old.spec.nodeName:
        found.append(forbidden("status.nodeName", "may not be changed directly"))
    after, before = new.status, old.status
    nominated = after.nominatedNodeName
    if nominated and nominated != before.nominatedNodeName:
        problems = names.dns_subdomain(nominated)
        found.extend(invalid("status.nominatedNodeName", nominated, problem) for problem in problems)
    if before.qosClass and after.qosClass != before.qosClass:
        found.append(invalid("status.qosClass", after.qosClass, "field is immutable"))
    for index, condition in enumerate(after.conditions[:]):
        if condition.observedGeneration < 0:
            checks.not_negative(condition.observedGeneration, f"status.conditions[{index}].observedGeneration", found)
    if new.spec.restartPolicy != "Always" and not declared_features.restarts_all(new.spec):
        for field in ("containerStatuses", "initContainerStatuses"):
            _check_transitions(new, getattr(after, field), getattr(before, field), f"status.{field}", found)


def _check_transitions(
    pod: core_v1_pb2.Pod,
    after: Iterable[core_v1_pb2.ContainerStatus],
    before: Iterable[core_v1_pb2.ContainerStatus],
    path: str,
    found: list[Cause],
) -> None:
    """A container that has ended and is not restarted stays ended."""
    policy = pod.spec.restartPolicy
    restarted = [one.name for one in (*pod.spec.initContainers, *pod.spec.containers) if one.restartPolicy == "Always"]
    for index, old_status in enumerate(before):
        if not old_status.state.HasField("terminated") or old_status.name in restarted:
            continue
        if old_status.state.terminated.exitCode != 0 and policy == "OnFailure":
            continue
        for status in after:
            if status.name == old_status.name and not status.state.HasField("terminated"):
                detail = "may not be transitioned to non-terminated state"
                found.append(forbidden(f"{path}[{index}].state", detail))
