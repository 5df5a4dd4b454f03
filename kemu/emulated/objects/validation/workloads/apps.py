"""The checks of the group apps."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence

from google.protobuf.message import Message

from kemu.emulated.objects import resources, selectors
from kemu.emulated.objects.conversion import convert
from kemu.emulated.objects.validation import checks, storage
from kemu.emulated.objects.validation.causes import IMMUTABLE, NOT_SUPPORTED, forbidden, invalid, required
from kemu.emulated.objects.validation.metadata import check_label_selector
from kemu.emulated.objects.validation.pod_specs import templates
from kemu.emulated.objects.validation.rules import Rules
from kemu.errors import Cause
from kemu.messages.k8s import apps_v1_pb2

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


_OF_DAEMON_SETS = ("RollingUpdate", "OnDelete")


def _check_workload(workload: Workload, found: list[Cause]) -> None:
    """ReplicaSet, Deployment, StatefulSet and DaemonSet."""
    spec = workload.spec
    # Kubernetes says "deployment" for replica sets too.
    kind = resources.of(workload).kind.lower().replace("replicaset", "deployment")
    is_deployment = isinstance(spec, apps_v1_pb2.DeploymentSpec)
    _check_amounts(spec, ("replicas",) if is_deployment else ("replicas", "minReadySeconds"), found)
    _check_selector_fits(spec, kind, found)
    claims = spec.volumeClaimTemplates if isinstance(spec, apps_v1_pb2.StatefulSetSpec) else ()
    templates.check_template(spec.template, ("Always",), found, [claim.metadata.name for claim in claims])
    if isinstance(spec, apps_v1_pb2.DeploymentSpec):
        _check_strategy(spec.strategy, found)
        _check_amounts(spec, ("minReadySeconds",), found)
    elif isinstance(spec, apps_v1_pb2.DaemonSetSpec) and spec.updateStrategy.type not in _OF_DAEMON_SETS:
        _refuse_strategy(spec.updateStrategy, "spec.updateStrategy", _OF_DAEMON_SETS, found)
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
    if strategy.type == "Recreate":
        if strategy.HasField("rollingUpdate"):
            why = "may not be specified when strategy `type` is 'Recreate'"
            found.append(forbidden("spec.strategy.rollingUpdate", why))
    elif strategy.type != "RollingUpdate":
        _refuse_strategy(strategy, "spec.strategy", ("Recreate", "RollingUpdate"), found)


def _refuse_strategy(
    strategy: apps_v1_pb2.DeploymentStrategy | apps_v1_pb2.DaemonSetUpdateStrategy,
    path: str,
    supported: Sequence[str],
    found: list[Cause],
) -> None:
    """Shown as Go's own struct, whose fields have no names for JSON."""
    rolling = convert.to_json(strategy.rollingUpdate) if strategy.HasField("rollingUpdate") else None
    if rolling is not None:
        rolling = {"MaxUnavailable": rolling.get("maxUnavailable", 0), "MaxSurge": rolling.get("maxSurge", 0)}
    shown = json.dumps({"Type": strategy.type, "RollingUpdate": rolling}, separators=(",", ":"), ensure_ascii=False)
    known = ", ".join(f'"{one}"' for one in supported)
    found.append(Cause(path, NOT_SUPPORTED, f"Unsupported value: {shown}: supported values: {known}"))


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
    apps_v1_pb2.StatefulSet: Rules(_check_stateful_set, _check_workload_update),
    apps_v1_pb2.DaemonSet: Rules(_check_workload, _check_workload_update),
    apps_v1_pb2.ControllerRevision: Rules(update=_check_controller_revision_update),
}
