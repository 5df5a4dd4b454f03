"""The checks of scheduling.k8s.io/v1alpha2: workloads and groups of pods.

Mirrors the declarative validation of ``pkg/apis/scheduling/v1alpha2``, with all feature gates of groups on.
"""

from __future__ import annotations

from collections.abc import Sequence

from kemu.emulated.objects import names
from kemu.emulated.objects.validation import checks
from kemu.emulated.objects.validation.causes import invalid, required, too_many
from kemu.emulated.objects.validation.rules import Rules
from kemu.errors import Cause
from kemu.messages.k8s import scheduling_v1alpha2_pb2

_MODE = "scheduling.v1alpha2.DisruptionMode"
_MOST_TEMPLATES, _MOST_CLAIMS = 8, 4
_AT_LEAST_ONE = "must be greater than or equal to 1"

_Spec = scheduling_v1alpha2_pb2.PodGroupSpec | scheduling_v1alpha2_pb2.PodGroupTemplate


def _check_spec(spec: _Spec, path: str, found: list[Cause]) -> None:
    """What a group and a template of groups have in common."""
    policy = spec.schedulingPolicy
    named = [name for name in ("basic", "gang") if policy.HasField(name)]
    here = f"{path}.schedulingPolicy"
    if not named:
        found.append(invalid(here, "", "must specify one of: `basic`, `gang`"))
    elif len(named) > 1:
        shown = "{" + ", ".join(named) + "}"
        found.append(invalid(here, shown, "must specify exactly one of: `basic`, `gang`"))
    if policy.HasField("gang"):
        if not policy.gang.minCount:
            found.append(required(f"{here}.gang.minCount"))
        elif policy.gang.minCount < 1:
            found.append(invalid(f"{here}.gang.minCount", policy.gang.minCount, _AT_LEAST_ONE))
    topology = spec.schedulingConstraints.topology
    there = f"{path}.schedulingConstraints.topology"
    if len(topology) > 1:
        found.append(invalid(there, len(topology), "must have at most 1 item"))
    for index, constraint in enumerate(topology):
        checks.needed_name(constraint.key, f"{there}[{index}].key", names.label_key, found)
    _check_claims(spec.resourceClaims, f"{path}.resourceClaims", found)
    if spec.disruptionMode:
        checks.listed(spec.disruptionMode, f"{path}.disruptionMode", _MODE, found)
    if spec.priorityClassName:
        checks.name(spec.priorityClassName, f"{path}.priorityClassName", names.dns_subdomain, found)


def _check_claims(
    entries: Sequence[scheduling_v1alpha2_pb2.PodGroupResourceClaim], path: str, found: list[Cause]
) -> None:
    if len(entries) > _MOST_CLAIMS:
        found.append(too_many(path, len(entries), _MOST_CLAIMS))
        return
    seen: dict[str, None] = {}
    for index, entry in enumerate(entries):
        here = f"{path}[{index}]"
        checks.unique(entry.name, seen, here, entry.name, found)
        checks.needed_name(entry.name, f"{here}.name", names.dns_label, found)
        named = [field for field in ("resourceClaimName", "resourceClaimTemplateName") if entry.HasField(field)]
        if not named:
            found.append(invalid(here, "", "must specify one of: `resourceClaimName`, `resourceClaimTemplateName`"))
        elif len(named) > 1:
            shown = "{" + ", ".join(named) + "}"
            text = "must specify exactly one of: `resourceClaimName`, `resourceClaimTemplateName`"
            found.append(invalid(here, shown, text))
        for field in named:
            checks.name(getattr(entry, field), f"{here}.{field}", names.dns_subdomain, found)


def _check_status(
    new: scheduling_v1alpha2_pb2.PodGroup, old: scheduling_v1alpha2_pb2.PodGroup, found: list[Cause]
) -> None:
    """``validatePodGroupResourceClaimStatuses``, and what is declared."""
    checks.conditions(new.status.conditions, "status.conditions", found)
    statuses, path = new.status.resourceClaimStatuses, "status.resourceClaimStatuses"
    if len(statuses) > _MOST_CLAIMS:
        found.append(too_many(path, len(statuses), _MOST_CLAIMS))
    named = {entry.name for entry in new.spec.resourceClaims}
    seen: dict[str, None] = {}
    for index, status in enumerate(statuses):
        checks.unique(status.name, seen, f"{path}[{index}]", status.name, found)
        if status.name not in named:
            why = "must match the name of an entry in `spec.resourceClaims`"
            found.append(invalid(f"{path}[{index}].name", status.name, why))
        if status.HasField("resourceClaimName"):
            checks.name(status.resourceClaimName, f"{path}[{index}].resourceClaimName", names.dns_subdomain, found)


def _check_group(group: scheduling_v1alpha2_pb2.PodGroup, found: list[Cause]) -> None:
    _check_spec(group.spec, "spec", found)
    if group.spec.HasField("podGroupTemplateRef"):
        path, workload = "spec.podGroupTemplateRef.workload", group.spec.podGroupTemplateRef.workload
        checks.needed_name(workload.workloadName, f"{path}.workloadName", names.dns_subdomain, found)
        checks.needed_name(workload.podGroupTemplateName, f"{path}.podGroupTemplateName", names.dns_label, found)


def _check_workload(workload: scheduling_v1alpha2_pb2.Workload, found: list[Cause]) -> None:
    path, templates = "spec.podGroupTemplates", workload.spec.podGroupTemplates
    if not templates:
        found.append(required(path))
    if len(templates) > _MOST_TEMPLATES:
        found.append(invalid(path, len(templates), f"must have at most {_MOST_TEMPLATES} items"))
    seen: dict[str, None] = {}
    for index, template in enumerate(templates):
        here = f"{path}[{index}]"
        checks.needed_name(template.name, f"{here}.name", names.dns_label, found)
        checks.unique(template.name, seen, here, template.name, found)
        _check_spec(template, here, found)
    if workload.spec.HasField("controllerRef"):
        reference = workload.spec.controllerRef
        missing = [name for name in ("kind", "name") if not getattr(reference, name)]
        found += [required(f"spec.controllerRef.{name}") for name in missing]


RULES = {
    scheduling_v1alpha2_pb2.PodGroup: Rules(_check_group, checks.fixed("spec"), _check_status),
    scheduling_v1alpha2_pb2.Workload: Rules(_check_workload, checks.fixed("spec")),
}
