"""The checks of the group apps (``pkg/apis/apps/validation``)."""

from __future__ import annotations

from kemu.emulated.objects import names, selectors
from kemu.emulated.objects.validation import checks, storage
from kemu.emulated.objects.validation.causes import IMMUTABLE, forbidden, invalid, not_supported, required
from kemu.emulated.objects.validation.metadata import check_label_selector
from kemu.emulated.objects.validation.pod_specs import templates
from kemu.emulated.objects.validation.rules import Rules
from kemu.emulated.objects.validation.workloads.statuses import check_status
from kemu.errors import Cause
from kemu.messages.k8s import apps_v1_pb2, core_v1_pb2, meta_v1_pb2

Selecting = apps_v1_pb2.ReplicaSet | apps_v1_pb2.Deployment | apps_v1_pb2.DaemonSet
ScalableSpec = apps_v1_pb2.ReplicaSetSpec | apps_v1_pb2.DeploymentSpec | apps_v1_pb2.StatefulSetSpec


def _check_selector(spec: ScalableSpec, kind: str, problem: str, found: list[Cause]) -> bool:
    """Returns whether a selector can be made of it. ``problem``: what is said if not."""
    selector, path = spec.selector, "spec.selector"
    if not spec.HasField("selector"):
        found.append(required(path))
        return True
    before = len(found)
    check_label_selector(selector, path, found)
    is_well = len(found) == before
    if not selector.matchLabels and not selector.matchExpressions:
        found.append(invalid(path, selector, f"empty selector is invalid for {kind}"))
    if not is_well:
        found.append(invalid(path, selector, problem))
    return is_well


def _check_fit(spec: ScalableSpec | apps_v1_pb2.DaemonSetSpec, found: list[Cause]) -> None:
    labels = spec.template.metadata.labels
    # No selector matches nothing.
    if not spec.HasField("selector") or not selectors.compile_labels(spec.selector).matches(labels):
        templates.refuse_labels(labels, "spec.template", found)


def _check_template(spec: apps_v1_pb2.ReplicaSetSpec | apps_v1_pb2.DeploymentSpec, found: list[Cause]) -> None:
    """``ValidatePodTemplateSpecForReplicaSet``. Kubernetes calls both by the name of the other here."""
    if _check_selector(spec, "deployment", "invalid label selector", found):
        _check_fit(spec, found)
        templates.check_template(spec.template, "spec.template", found)
        templates.check_runs_forever(spec.template.spec, "ReplicaSet", "spec.template.spec", found)


def _check_replica_set(replica_set: apps_v1_pb2.ReplicaSet, found: list[Cause]) -> None:
    spec = replica_set.spec
    checks.not_negative(spec.replicas, "spec.replicas", found)
    checks.not_negative(spec.minReadySeconds, "spec.minReadySeconds", found)
    _check_template(spec, found)


def _check_replica_set_update(new: apps_v1_pb2.ReplicaSet, old: apps_v1_pb2.ReplicaSet, found: list[Cause]) -> None:
    if new.spec != old.spec:
        _check_replica_set(new, found)
        _check_selector_kept(new, old, found)


def _check_selector_kept(new: Selecting, old: Selecting, found: list[Cause]) -> None:
    selector = new.spec.selector if new.spec.HasField("selector") else None
    if new.spec.HasField("selector") != old.spec.HasField("selector") or new.spec.selector != old.spec.selector:
        found.append(invalid("spec.selector", selector, IMMUTABLE))


# Deployments --------------------------------------------------------------------------------------------------------


def _check_deployment(deployment: apps_v1_pb2.Deployment, found: list[Cause]) -> None:
    spec = deployment.spec
    checks.not_negative(spec.replicas, "spec.replicas", found)
    _check_template(spec, found)
    _check_strategy(spec.strategy, found)
    for field in ("minReadySeconds", "revisionHistoryLimit", "progressDeadlineSeconds"):
        checks.not_negative(getattr(spec, field), f"spec.{field}", found)
    deadline_s = spec.progressDeadlineSeconds
    if spec.HasField("progressDeadlineSeconds") and deadline_s <= spec.minReadySeconds:
        found.append(invalid("spec.progressDeadlineSeconds", deadline_s, "must be greater than minReadySeconds"))


def _check_deployment_update(new: apps_v1_pb2.Deployment, old: apps_v1_pb2.Deployment, found: list[Cause]) -> None:
    if new.spec != old.spec:
        _check_deployment(new, found)
        _check_selector_kept(new, old, found)


def _check_strategy(strategy: apps_v1_pb2.DeploymentStrategy, found: list[Cause]) -> None:
    rolling, path = strategy.rollingUpdate, "spec.strategy.rollingUpdate"
    if strategy.type == "Recreate":
        if strategy.HasField("rollingUpdate"):
            why = "may not be specified when strategy `type` is 'Recreate'"
            found.append(forbidden(path, why))
    elif strategy.type == "RollingUpdate":
        checks.int_or_percent(rolling.maxUnavailable, f"{path}.maxUnavailable", found)
        checks.int_or_percent(rolling.maxSurge, f"{path}.maxSurge", found)
        if not _is_some(rolling.maxUnavailable) and not _is_some(rolling.maxSurge):
            why = "may not be 0 when `maxSurge` is 0"
            found.append(invalid(f"{path}.maxUnavailable", rolling.maxUnavailable, why))
        checks.at_most_all(rolling.maxUnavailable, f"{path}.maxUnavailable", found)
    else:
        found.append(not_supported("spec.strategy", strategy, ("Recreate", "RollingUpdate")))


def _is_some(value: meta_v1_pb2.IntOrString) -> bool:
    """``getIntOrPercentValue`` is not 0: also the text of a number is one."""
    if not value.type:
        return bool(value.intVal)
    share = checks.percent(value)
    return bool(names.int64(value.strVal) if share is None else share)


# DaemonSets ---------------------------------------------------------------------------------------------------------


def _check_daemon_set(daemon_set: apps_v1_pb2.DaemonSet, found: list[Cause]) -> None:
    """A selector that is missing is told as one that does not match."""
    spec = daemon_set.spec
    before = len(found)
    check_label_selector(spec.selector, "spec.selector", found)
    if len(found) == before:
        _check_fit(spec, found)
    if spec.HasField("selector") and not spec.selector.matchLabels and not spec.selector.matchExpressions:
        found.append(invalid("spec.selector", spec.selector, "empty selector is invalid for daemonset"))
    templates.check_template(spec.template, "spec.template", found)
    templates.check_runs_forever(spec.template.spec, "DaemonSet", "spec.template.spec", found)
    checks.not_negative(spec.minReadySeconds, "spec.minReadySeconds", found)
    _check_daemon_strategy(spec.updateStrategy, found)
    checks.not_negative(spec.revisionHistoryLimit, "spec.revisionHistoryLimit", found)


def _check_daemon_set_update(new: apps_v1_pb2.DaemonSet, old: apps_v1_pb2.DaemonSet, found: list[Cause]) -> None:
    if new.spec != old.spec:
        _check_selector_kept(new, old, found)
        _check_daemon_set(new, found)


def _check_daemon_strategy(strategy: apps_v1_pb2.DaemonSetUpdateStrategy, found: list[Cause]) -> None:
    rolling, path = strategy.rollingUpdate, "spec.updateStrategy.rollingUpdate"
    if strategy.type == "RollingUpdate":
        for check in (checks.int_or_percent, checks.at_most_all):
            check(rolling.maxUnavailable, f"{path}.maxUnavailable", found)
            check(rolling.maxSurge, f"{path}.maxSurge", found)
        if _is_some(rolling.maxUnavailable) and _is_some(rolling.maxSurge):
            why = "may not be set when maxUnavailable is non-zero"
            found.append(invalid(f"{path}.maxSurge", rolling.maxSurge, why))
        elif not _is_some(rolling.maxUnavailable) and not _is_some(rolling.maxSurge):
            found.append(required(f"{path}.maxUnavailable", "cannot be 0 when maxSurge is 0"))
    elif strategy.type != "OnDelete":
        found.append(not_supported("spec.updateStrategy", strategy, ("RollingUpdate", "OnDelete")))


# StatefulSets -------------------------------------------------------------------------------------------------------


def _check_stateful_set(stateful_set: apps_v1_pb2.StatefulSet, found: list[Cause]) -> None:
    _check_stateful(stateful_set.spec, True, found)


def _check_stateful(spec: apps_v1_pb2.StatefulSetSpec, is_new: bool, found: list[Cause]) -> None:
    """``ValidateStatefulSetSpec``. What cannot change is checked on creation alone."""
    if spec.podManagementPolicy not in ("OrderedReady", "Parallel"):
        why = "must be 'OrderedReady' or 'Parallel'"
        found.append(invalid("spec.podManagementPolicy", spec.podManagementPolicy, why))
    _check_stateful_strategy(spec.updateStrategy, found)
    for field in ("whenDeleted", "whenScaled"):
        policy, path = spec.persistentVolumeClaimRetentionPolicy, f"spec.persistentVolumeClaimRetentionPolicy.{field}"
        checks.listed(getattr(policy, field), path, ("Retain", "Delete"), found)
    if is_new:
        for index, claim in enumerate(spec.volumeClaimTemplates):
            storage.check_claim_spec(claim.spec, f"spec.volumeClaimTemplates[{index}].spec", found)
    checks.not_negative(spec.replicas, "spec.replicas", found)
    checks.not_negative(spec.minReadySeconds, "spec.minReadySeconds", found)
    checks.not_negative(spec.ordinals.start, "spec.ordinals.start", found)
    if is_new:
        checks.name(spec.serviceName, "spec.serviceName", names.dns_label, found)
    if _check_selector(spec, "statefulset", "", found):
        _check_fit(spec, found)
        template = _template_to_check(spec)
        templates.check_template(template, "spec.template", found)
        templates.check_metadata(template, "spec.template", found)
    templates.check_runs_forever(spec.template.spec, "StatefulSet", "spec.template.spec", found)


def _template_to_check(spec: apps_v1_pb2.StatefulSetSpec) -> core_v1_pb2.PodTemplateSpec:
    """Without the names that the controller replaces, and with a volume for each claim."""
    of, claims = spec.template.spec, spec.volumeClaimTemplates
    if not (of.subdomain or of.hostname or claims):
        return spec.template
    template = core_v1_pb2.PodTemplateSpec()
    template.CopyFrom(spec.template)
    template.spec.ClearField("subdomain")
    template.spec.ClearField("hostname")
    if claims:
        by_name = {claim.metadata.name: None for claim in claims}
        template.spec.ClearField("volumes")
        for name in by_name:
            volume = template.spec.volumes.add(name=name)
            volume.volumeSource.persistentVolumeClaim.claimName = name
        template.spec.volumes.extend(volume for volume in of.volumes if volume.name not in by_name)
    return template


def _check_stateful_strategy(strategy: apps_v1_pb2.StatefulSetUpdateStrategy, found: list[Cause]) -> None:
    path = "spec.updateStrategy"
    is_known = strategy.type in ("RollingUpdate", "OnDelete")
    if is_known and not (strategy.type == "OnDelete" and strategy.HasField("rollingUpdate")):
        checks.not_negative(strategy.rollingUpdate.partition, f"{path}.rollingUpdate.partition", found)
        return
    shown = type(strategy)()
    shown.CopyFrom(strategy)
    if shown.HasField("rollingUpdate"):
        shown.rollingUpdate.ClearField("maxUnavailable")  # the API server's gate for it is off
    if is_known:
        why = "only allowed for updateStrategy 'RollingUpdate'"
        found.append(invalid(f"{path}.rollingUpdate", shown.rollingUpdate, why))
    else:
        found.append(invalid(path, shown, "must be 'RollingUpdate' or 'OnDelete'"))


_STATEFUL_MAY_CHANGE = (
    "replicas",
    "ordinals",
    "template",
    "updateStrategy",
    "revisionHistoryLimit",
    "persistentVolumeClaimRetentionPolicy",
    "minReadySeconds",
)


def _check_stateful_set_update(new: apps_v1_pb2.StatefulSet, old: apps_v1_pb2.StatefulSet, found: list[Cause]) -> None:
    """``ValidateStatefulSetUpdate``."""
    if new.spec == old.spec:
        return
    _check_stateful(new.spec, False, found)
    rest, before = apps_v1_pb2.StatefulSetSpec(), apps_v1_pb2.StatefulSetSpec()
    for one, spec in ((rest, new.spec), (before, old.spec)):
        one.CopyFrom(spec)
        for field in _STATEFUL_MAY_CHANGE:
            one.ClearField(field)
    if rest != before:
        *most, last = (f"'{field}'" for field in _STATEFUL_MAY_CHANGE)
        detail = f"updates to statefulset spec for fields other than {', '.join(most)} and {last} are forbidden"
        found.append(forbidden("spec", detail))


def _check_controller_revision_update(
    new: apps_v1_pb2.ControllerRevision, old: apps_v1_pb2.ControllerRevision, found: list[Cause]
) -> None:
    checks.fixed("data")(new, old, found)
    checks.not_negative(new.revision, "revision", found)


RULES = {
    apps_v1_pb2.ReplicaSet: Rules(_check_replica_set, _check_replica_set_update, check_status),
    apps_v1_pb2.Deployment: Rules(_check_deployment, _check_deployment_update, check_status),
    apps_v1_pb2.StatefulSet: Rules(
        _check_stateful_set, _check_stateful_set_update, check_status, name_rule=names.dns_label
    ),
    apps_v1_pb2.DaemonSet: Rules(_check_daemon_set, _check_daemon_set_update, check_status),
    apps_v1_pb2.ControllerRevision: Rules(update=_check_controller_revision_update),
}
