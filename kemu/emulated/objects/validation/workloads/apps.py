"""The checks of the group apps."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from google.protobuf.message import Message

from kemu.emulated.objects import names, resources, selectors
from kemu.emulated.objects.conversion import convert
from kemu.emulated.objects.plain import Json
from kemu.emulated.objects.validation import checks, storage
from kemu.emulated.objects.validation.causes import IMMUTABLE, INVALID, NOT_SUPPORTED, forbidden, invalid, required
from kemu.emulated.objects.validation.metadata import check_label_selector
from kemu.emulated.objects.validation.pod_specs import templates
from kemu.emulated.objects.validation.rules import Rules
from kemu.errors import Cause
from kemu.messages.k8s import apps_v1_pb2, meta_v1_pb2

Strategy = apps_v1_pb2.DeploymentStrategy | apps_v1_pb2.DaemonSetUpdateStrategy | apps_v1_pb2.StatefulSetUpdateStrategy
Workload = apps_v1_pb2.ReplicaSet | apps_v1_pb2.Deployment | apps_v1_pb2.StatefulSet | apps_v1_pb2.DaemonSet
WorkloadSpec = (
    apps_v1_pb2.ReplicaSetSpec | apps_v1_pb2.DeploymentSpec | apps_v1_pb2.StatefulSetSpec | apps_v1_pb2.DaemonSetSpec
)


def _check_selector_fits(spec: WorkloadSpec, kind: str, found: list[Cause]) -> None:
    """The selector must be there, not empty, and match the pods that the template makes."""
    if not spec.HasField("selector"):
        found.append(required("spec.selector"))
        # No selector matches nothing.
        _refuse_labels(spec.template.metadata.labels, found)
        return
    before = len(found)
    check_label_selector(spec.selector, "spec.selector", found)
    if not spec.selector.matchLabels and not spec.selector.matchExpressions:
        found.append(invalid("spec.selector", spec.selector, f"empty selector is invalid for {kind}"))
    elif len(found) == before:
        labels = spec.template.metadata.labels
        if not selectors.compile_labels(spec.selector).matches(labels):
            _refuse_labels(labels, found)


def _refuse_labels(labels: Mapping[str, str], found: list[Cause]) -> None:
    shown = {key: labels[key] for key in sorted(labels)} or None
    found.append(invalid("spec.template.metadata.labels", shown, "`selector` does not match template `labels`"))


def _check_workload(workload: Workload, found: list[Cause]) -> None:
    """ReplicaSet, Deployment, StatefulSet and DaemonSet."""
    spec = workload.spec
    # Kubernetes says "deployment" for replica sets too.
    kind = resources.of(workload).kind.lower().replace("replicaset", "deployment")
    is_deployment = isinstance(spec, apps_v1_pb2.DeploymentSpec)
    if isinstance(spec, apps_v1_pb2.StatefulSetSpec):
        _check_stateful(spec, found)
    _check_amounts(spec, ("replicas",) if is_deployment else ("replicas", "minReadySeconds"), found)
    if isinstance(spec, apps_v1_pb2.StatefulSetSpec):
        checks.not_negative(spec.ordinals.start, "spec.ordinals.start", found)
        checks.name(spec.serviceName, "spec.serviceName", names.dns_label, found)
    _check_selector_fits(spec, kind, found)
    claims = spec.volumeClaimTemplates if isinstance(spec, apps_v1_pb2.StatefulSetSpec) else ()
    templates.check_template(spec.template, ("Always",), found, [claim.metadata.name for claim in claims])
    if isinstance(spec, apps_v1_pb2.DeploymentSpec):
        _check_strategy(spec.strategy, found)
        _check_amounts(spec, ("minReadySeconds",), found)
    elif isinstance(spec, apps_v1_pb2.DaemonSetSpec):
        _check_daemon_strategy(spec.updateStrategy, found)
    _check_amounts(spec, ("revisionHistoryLimit", "progressDeadlineSeconds"), found)


def _check_stateful_set(stateful_set: apps_v1_pb2.StatefulSet, found: list[Cause]) -> None:
    """On creation; templates that were stored in older times stay valid."""
    for index, claim in enumerate(stateful_set.spec.volumeClaimTemplates):
        storage.check_claim_spec(claim.spec, f"spec.volumeClaimTemplates[{index}].spec", found)
    _check_workload(stateful_set, found)


def _check_amounts(spec: Message, fields: tuple[str, ...], found: list[Cause]) -> None:
    for field in fields:
        if field in spec.DESCRIPTOR.fields_by_name:
            checks.not_negative(getattr(spec, field), f"spec.{field}", found)


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
        _refuse_strategy(strategy, "spec.strategy", ("Recreate", "RollingUpdate"), found)


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
        _refuse_strategy(strategy, "spec.updateStrategy", ("RollingUpdate", "OnDelete"), found)


def _check_stateful(spec: apps_v1_pb2.StatefulSetSpec, found: list[Cause]) -> None:
    """What comes before the fields that others have, too."""
    if spec.podManagementPolicy not in ("OrderedReady", "Parallel"):
        why = "must be 'OrderedReady' or 'Parallel'"
        found.append(invalid("spec.podManagementPolicy", spec.podManagementPolicy, why))
    strategy, path = spec.updateStrategy, "spec.updateStrategy"
    shown = _as_go_has_it(strategy)
    if strategy.type not in ("RollingUpdate", "OnDelete"):
        found.append(Cause(path, INVALID, f"Invalid value: {_text(shown)}: must be 'RollingUpdate' or 'OnDelete'"))
    elif strategy.type == "OnDelete" and strategy.HasField("rollingUpdate"):
        why = f"Invalid value: {_text(shown['RollingUpdate'])}: only allowed for updateStrategy 'RollingUpdate'"
        found.append(Cause(f"{path}.rollingUpdate", INVALID, why))
    else:
        checks.not_negative(strategy.rollingUpdate.partition, f"{path}.rollingUpdate.partition", found)


def _is_some(value: meta_v1_pb2.IntOrString) -> bool:
    return bool(checks.percent(value) if value.type else value.intVal)


def _refuse_strategy(
    strategy: Strategy,
    path: str,
    supported: Sequence[str],
    found: list[Cause],
) -> None:
    known = ", ".join(f'"{one}"' for one in supported)
    shown = _text(_as_go_has_it(strategy))
    found.append(Cause(path, NOT_SUPPORTED, f"Unsupported value: {shown}: supported values: {known}"))


def _text(shown: Json) -> str:
    return json.dumps(shown, separators=(",", ":"), ensure_ascii=False)


def _as_go_has_it(strategy: Strategy) -> dict[str, Any]:
    """Its own struct, whose fields have no names for JSON."""
    if not strategy.HasField("rollingUpdate"):
        return {"Type": strategy.type, "RollingUpdate": None}
    if isinstance(strategy, apps_v1_pb2.StatefulSetUpdateStrategy):
        # Its gate is off.
        shown = {"Partition": strategy.rollingUpdate.partition, "MaxUnavailable": None}
    else:
        rolling = convert.to_json(strategy.rollingUpdate)
        shown = {"MaxUnavailable": rolling.get("maxUnavailable", 0), "MaxSurge": rolling.get("maxSurge", 0)}
    return {"Type": strategy.type, "RollingUpdate": shown}


def _check_workload_update(new: Workload, old: Workload, found: list[Cause]) -> None:
    if new.spec != old.spec:
        _check_workload(new, found)
    if isinstance(new, apps_v1_pb2.StatefulSet) and isinstance(old, apps_v1_pb2.StatefulSet):
        _check_stateful_set_update(new.spec, old.spec, found)
    elif new.spec.selector != old.spec.selector:
        shown = new.spec.selector if new.spec.HasField("selector") else None
        found.append(invalid("spec.selector", shown, IMMUTABLE))


_STATEFUL_MAY_CHANGE = (
    "replicas",
    "ordinals",
    "template",
    "updateStrategy",
    "revisionHistoryLimit",
    "persistentVolumeClaimRetentionPolicy",
    "minReadySeconds",
)


def _check_stateful_set_update(
    new: apps_v1_pb2.StatefulSetSpec, old: apps_v1_pb2.StatefulSetSpec, found: list[Cause]
) -> None:
    """``ValidateStatefulSetUpdate``."""
    rest, before = type(new)(), type(old)()
    for one, spec in ((rest, new), (before, old)):
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
    apps_v1_pb2.ReplicaSet: Rules(_check_workload, _check_workload_update),
    apps_v1_pb2.Deployment: Rules(_check_workload, _check_workload_update),
    apps_v1_pb2.StatefulSet: Rules(_check_stateful_set, _check_workload_update, name_rule=names.dns_label),
    apps_v1_pb2.DaemonSet: Rules(_check_workload, _check_workload_update),
    apps_v1_pb2.ControllerRevision: Rules(update=_check_controller_revision_update),
}
