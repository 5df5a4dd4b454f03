"""Checks of pods and pod templates, with the texts of ``pkg/apis/core/validation`` of Kubernetes.

Where pods may run is checked in :mod:`kemu.emulated.objects.validation.placement`.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import lru_cache

from kemu.emulated.objects import names
from kemu.emulated.objects.amounts import pod_totals, quantities, requests
from kemu.emulated.objects.conversion import go_values
from kemu.emulated.objects.validation import checks
from kemu.emulated.objects.validation.amounts import check_overhead, check_requirements
from kemu.emulated.objects.validation.causes import duplicate, forbidden, invalid, not_found, required, too_long
from kemu.emulated.objects.validation.metadata import check_labels
from kemu.emulated.objects.validation.placement import check_affinity, check_gates, check_spread, check_tolerations
from kemu.emulated.objects.validation.pod_specs import containers, pod_annotations, security, volumes
from kemu.emulated.objects.validation.pod_specs.containers import check_image_trimmed
from kemu.emulated.objects.validation.pod_specs.probes import check_readiness_gates
from kemu.errors import Cause
from kemu.messages.k8s import core_v1_pb2

RESTART_POLICIES = ("Always", "OnFailure", "Never")
PREEMPTION_POLICIES = ("PreemptLowerPriority", "Never")
_DNS_POLICIES = ("ClusterFirstWithHostNet", "ClusterFirst", "Default", "None")
_MOST_SERVERS, _MOST_SEARCHES, _LONGEST_SEARCHES = 3, 32, 2048
_MAX_INT32 = 2**31 - 1
_LONGEST_HOSTNAME = 64

_PODS_MAY_CHANGE = (
    "`spec.containers[*].image`,`spec.initContainers[*].image`,`spec.activeDeadlineSeconds`,"
    "`spec.tolerations` (only additions to existing tolerations),"
    "`spec.terminationGracePeriodSeconds` (allow it to be set to 1 if it was previously negative)"
)


def check_pod_create(pod: core_v1_pb2.Pod, found: list[Cause]) -> None:
    """A new pod (``ValidatePodCreate``), but for what metadata of all kinds are checked for."""
    metadata, spec = pod.metadata, pod.spec
    if metadata.annotations:
        pod_annotations.check_annotations(metadata.annotations, spec, "metadata.annotations", found)
    causes = _causes_in_new(spec.SerializeToString(deterministic=True))
    if causes is None:
        _check_new(spec, metadata.name, found)
    else:
        found += causes
    if metadata.annotations:
        pod_annotations.check_profiles(metadata.annotations, spec, "spec", found)


@lru_cache(1024)
def _causes_in_new(spec_bytes: bytes) -> tuple[Cause, ...] | None:
    """Cached, because most pods are copies of one spec. None: they depend on the name of the pod."""
    spec = core_v1_pb2.PodSpec.FromString(spec_bytes)
    if any(volume.volumeSource.HasField("ephemeral") for volume in spec.volumes):
        return None
    found: list[Cause] = []
    _check_new(spec, "", found)
    return tuple(found)


def _check_new(spec: core_v1_pb2.PodSpec, name: str, found: list[Cause]) -> None:
    _check_spec_of_pod(spec, name, found)
    if spec.ephemeralContainers:
        found.append(forbidden("spec.ephemeralContainers", "cannot be set on create"))
    if spec.nodeName and spec.schedulingGates:
        found.append(forbidden("spec.nodeName", "cannot be set until all schedulingGates have been cleared"))


def _check_spec_of_pod(
    spec: core_v1_pb2.PodSpec, name: str, found: list[Cause], old: core_v1_pb2.PodSpec | None = None
) -> None:
    """``validatePodMetadataAndSpec``. A token may be projected for no service account: where the plugin that would name
    one is off, nobody asks whose it is."""
    check_pod_spec(spec, "spec", found, pod_name=name, old=old)
    for field in ("containers", "initContainers"):
        for index, container in enumerate(getattr(spec, field)):
            check_image_trimmed(container.image, f"spec.{field}[{index}]", found)


def check_pod_spec(
    spec: core_v1_pb2.PodSpec,
    path: str,
    found: list[Cause],
    claims: Iterable[str] = (),
    *,
    pod_name: str | None = None,
    old: core_v1_pb2.PodSpec | None = None,
) -> None:
    """The spec of a pod or of a template (``ValidatePodSpec``; ``path`` then is ``spec.template.spec``).

    ``claims``: volumes that it gets besides its own, from the claim templates of a StatefulSet. ``pod_name``: of a pod.
    ``old``: what it was before.
    """
    if not spec.HasField("terminationGracePeriodSeconds"):
        found.append(required(f"{path}.terminationGracePeriodSeconds"))
    there = volumes.check_volumes(spec.volumes, f"{path}.volumes", found, pod_name) if spec.volumes else {}
    if claims:
        there |= volumes.names_of(claims)
    if spec.resourceClaims:
        _check_resource_claims(spec.resourceClaims, f"{path}.resourceClaims", found)
    has_host_users = spec.hostUsers or not spec.HasField("hostUsers")
    pod = containers.Pod(spec, there, has_host_users, old)
    containers.check_containers(pod, path, found)
    if spec.HasField("resources"):
        _check_pod_resources(spec, f"{path}.resources", pod.is_readable, found)
    if spec.hostNetwork:
        of_pod = pod_name is not None
        containers.check_host_network(spec.containers, f"{path}.containers", of_pod=of_pod, found=found)
    checks.choice(spec.restartPolicy, f"{path}.restartPolicy", RESTART_POLICIES, found)
    checks.choice(spec.dnsPolicy, f"{path}.dnsPolicy", _DNS_POLICIES, found)
    if spec.nodeSelector:
        check_labels(spec.nodeSelector, f"{path}.nodeSelector", found)
    if spec.securityContext.ListFields() or spec.shareProcessNamespace:
        security.check_pod(spec, f"{path}.securityContext", found)
    if spec.HasField("affinity"):
        check_affinity(spec.affinity, f"{path}.affinity", found)
    if spec.HasField("dnsConfig") or spec.dnsPolicy == "None":
        _check_dns(spec, f"{path}.dnsConfig", found)
    if spec.readinessGates:
        check_readiness_gates(spec.readinessGates, f"{path}.readinessGates", found)
    if spec.schedulingGates:
        check_gates(spec.schedulingGates, f"{path}.schedulingGates", found)
    if spec.topologySpreadConstraints:
        check_spread(spec.topologySpreadConstraints, f"{path}.topologySpreadConstraints", found)
    if pod.has_windows_options or spec.securityContext.HasField("windowsOptions"):
        security.check_host_processes(spec, path, found)
    if not has_host_users:
        security.check_own_users(spec, path, found)
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
    checks.name(spec.priorityClassName, f"{path}.priorityClassName", names.dns_subdomain, found)
    if spec.HasField("runtimeClassName"):
        name = spec.runtimeClassName
        found.extend(invalid(f"{path}.runtimeClassName", name, problem) for problem in names.dns_subdomain(name))
    if spec.HasField("preemptionPolicy"):
        checks.choice(spec.preemptionPolicy, f"{path}.preemptionPolicy", PREEMPTION_POLICIES, found)
    if spec.overhead:
        check_overhead(spec.overhead, f"{path}.overhead", found)
    if spec.HasField("os"):
        security.check_system(spec, path, found)
    if pod.reads_files:
        _check_files(spec, path, found)


def _check_files(spec: core_v1_pb2.PodSpec, path: str, found: list[Cause]) -> None:
    """``validateFileKeyRefVolumes``: variables are read from files of volumes that the containers share."""
    for container, here in security.containers_of(spec, path):
        for index, variable in enumerate(container.env):
            if variable.valueFrom.HasField("fileKeyRef"):
                name = variable.valueFrom.fileKeyRef.volumeName
                place = f"{here}.env[{index}].valueFrom.fileKeyRef.volumeName"
                sources = [one.volumeSource for one in spec.volumes if one.name == name]
                if not sources:
                    found.append(not_found(place, name))
                elif not sources[-1].HasField("emptyDir"):
                    found.append(invalid(place, name, "referenced volume must be of type emptyDir"))


def _check_resource_claims(claims: Sequence[core_v1_pb2.PodResourceClaim], path: str, found: list[Cause]) -> None:
    """``validatePodResourceClaims``"""
    seen: dict[str, None] = {}
    fields = ("resourceClaimName", "resourceClaimTemplateName")
    for index, claim in enumerate(claims):
        here, name = f"{path}[{index}]", claim.name
        if name in seen:
            found.append(duplicate(f"{here}.name", name))
        else:
            checks.needed_name(name, f"{here}.name", names.dns_label, found)
        if name:
            seen[name] = None
        stated = [field for field in fields if claim.HasField(field)]
        if len(stated) == 2:
            detail = "at most one of `resourceClaimName` or `resourceClaimTemplateName` may be specified"
            found.append(invalid(here, claim, detail))
        if not stated:
            detail = "must specify one of: `resourceClaimName`, `resourceClaimTemplateName`"
            found.append(invalid(here, claim, detail))
        for field in stated:
            text = getattr(claim, field)
            found.extend(invalid(f"{here}.{field}", text, problem) for problem in names.dns_subdomain(text))


def _check_pod_resources(spec: core_v1_pb2.PodSpec, path: str, readable: bool, found: list[Cause]) -> None:
    """``validatePodResources``"""
    if spec.os.name == "windows":
        found.append(forbidden(path, "may not be set for a windows pod"))
        return
    resources = spec.resources
    if resources.claims:
        found.append(forbidden(f"{path}.claims", "claims may not be set for Resources at pod-level"))
    readable &= check_requirements(resources, path, found, of_pod=True)
    if resources.claims:
        containers.check_claims(resources.claims, spec, f"{path}.claims", found)
    if not readable:
        return
    pod = core_v1_pb2.Pod(spec=spec)
    for which in (pod_totals.REQUESTS, pod_totals.LIMITS):
        at_pod = getattr(resources, which)
        together = pod_totals.of_containers(pod, which, use_status=False) if at_pod else {}
        for name in sorted(together):
            if name not in at_pod or (which == pod_totals.LIMITS and not name.startswith(requests.HUGE_PAGES_PREFIX)):
                continue
            stated = quantities.parse(at_pod[name].string)
            if together[name] > stated:
                detail = f"must be greater than or equal to aggregate container {which} of {together[name]}"
                found.append(invalid(f"{path}.{which}[{name}]", str(stated), detail))
    for index, container in enumerate(spec.containers):
        for name in sorted(container.resources.limits):
            if name in resources.limits:
                limit = quantities.parse(container.resources.limits[name].string)
                most = quantities.parse(resources.limits[name].string)
                if limit > most:
                    here = f"{path}.containers[{index}][{name}].limits"
                    found.append(invalid(here, str(limit), f"must be less than or equal to pod limits of {most}"))


def _check_dns(spec: core_v1_pb2.PodSpec, path: str, found: list[Cause]) -> None:
    """``validatePodDNSConfig``"""
    config = spec.dnsConfig
    if spec.dnsPolicy == "None":
        if not spec.HasField("dnsConfig"):
            found.append(required(path, "must provide `dnsConfig` when `dnsPolicy` is None"))
            return
        if not config.nameservers:
            detail = "must provide at least one DNS nameserver when `dnsPolicy` is None"
            found.append(required(f"{path}.nameservers", detail))
            return
    servers, searches = list(config.nameservers), list(config.searches)
    if len(servers) > _MOST_SERVERS:
        found.append(invalid(f"{path}.nameservers", servers, f"must not have more than {_MOST_SERVERS} nameservers"))
    for index, server in enumerate(servers):
        found.extend(invalid(f"{path}.nameservers[{index}]", server, problem) for problem in names.old_address(server))
    if len(searches) > _MOST_SEARCHES:
        found.append(invalid(f"{path}.searches", searches, f"must not have more than {_MOST_SEARCHES} search paths"))
    if len(" ".join(searches).encode()) > _LONGEST_SEARCHES:
        detail = f"must not have more than {_LONGEST_SEARCHES} characters (including spaces) in the search list"
        found.append(invalid(f"{path}.searches", searches, detail))
    for index, search in enumerate(searches):
        if search != ".":
            domain = search.removesuffix(".")
            problems = names.search_domain(domain)
            found.extend(invalid(f"{path}.searches[{index}]", domain, problem) for problem in problems)
    for index, option in enumerate(config.options):
        if not option.name:
            found.append(required(f"{path}.options[{index}]", "must not be empty"))


def _check_hostname_override(spec: core_v1_pb2.PodSpec, path: str, found: list[Cause]) -> None:
    """``validatePodHostName``"""
    others = [field for field in ("setHostnameAsFQDN", "hostNetwork") if getattr(spec, field)]
    found.extend(forbidden(path, f"may not be specified when {field} is true") for field in others)
    name = spec.hostnameOverride
    if len(name.encode()) > _LONGEST_HOSTNAME:
        found.append(too_long(path, _LONGEST_HOSTNAME))
    found.extend(invalid(path, name, problem) for problem in names.dns_subdomain(name))


# Updates ------------------------------------------------------------------------------------------------------------


def _check_images(new: Sequence[core_v1_pb2.Container], path: str, found: list[Cause]) -> None:
    """``ValidateContainerUpdates``, which asks for the image again."""
    for index, container in enumerate(new):
        if not container.image:
            found.append(required(f"{path}[{index}].image"))
        check_image_trimmed(container.image, f"{path}[{index}]", found)


def check_pod_update(new: core_v1_pb2.Pod, old: core_v1_pb2.Pod, found: list[Cause]) -> None:
    """An update of the spec by a user, who may change very little. Binding does not call this."""
    after, before = new.spec, old.spec
    ours, theirs = new.metadata.annotations, old.metadata.annotations
    if after == before and (not (ours or theirs) or ours == theirs):
        return
    if ours:
        pod_annotations.check_annotations(ours, after, "metadata.annotations", found)
    _check_spec_of_pod(after, new.metadata.name, found, before)
    if ours or theirs:
        pod_annotations.check_update(ours, theirs, "metadata.annotations", found)
        pod_annotations.check_annotations(ours, after, "metadata.annotations", found)
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
    elif after.tolerations:
        check_tolerations(after.tolerations, "spec.tolerations", found)


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
