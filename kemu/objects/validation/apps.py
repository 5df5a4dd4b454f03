"""The checks of the group apps."""

from __future__ import annotations

from typing import Any

from kemu.errors import Cause
from kemu.k8s import (
    apps_v1_pb2,
)
from kemu.objects import resources, selectors
from kemu.objects.validation import templates
from kemu.objects.validation.causes import IMMUTABLE, invalid, required
from kemu.objects.validation.metadata import (
    check_label_selector,
    check_not_negative,
)
from kemu.objects.validation.rules import Rules


def _check_selector_fits(spec: Any, kind: str, found: list[Cause]) -> None:
    """The selector must be there, not empty, and match the pods that the template makes."""
    if not spec.HasField("selector"):
        found.append(required("spec.selector"))
        return
    before = len(found)
    check_label_selector(spec.selector, "spec.selector", found)
    if not spec.selector.matchLabels and not spec.selector.matchExpressions:
        found.append(invalid("spec.selector", spec.selector, f"empty selector is invalid for {kind}"))
    elif len(found) == before:
        labels = spec.template.metadata.labels
        if not selectors.compile_labels(spec.selector).matches(labels):
            shown = {key: labels[key] for key in sorted(labels)}
            found.append(invalid("spec.template.metadata.labels", shown, "`selector` does not match template `labels`"))


def _check_workload(workload: Any, found: list[Cause]) -> None:
    """ReplicaSet, Deployment, StatefulSet and DaemonSet."""
    spec = workload.spec
    # Kubernetes says "deployment" for replica sets too.
    kind = resources.of(workload).kind.lower().replace("replicaset", "deployment")
    _check_amounts(spec, ("replicas",), found)
    _check_selector_fits(spec, kind, found)
    claims = spec.volumeClaimTemplates if kind == "statefulset" else ()
    templates.check_template(spec.template, ("Always",), found, [claim.metadata.name for claim in claims])
    _check_amounts(spec, ("minReadySeconds", "revisionHistoryLimit", "progressDeadlineSeconds"), found)


def _check_amounts(spec: Any, fields: tuple[str, ...], found: list[Cause]) -> None:
    for field in fields:
        if field in spec.DESCRIPTOR.fields_by_name:
            check_not_negative(getattr(spec, field), f"spec.{field}", found)


def _check_workload_update(new: Any, old: Any, found: list[Cause]) -> None:
    if new.spec != old.spec:
        _check_workload(new, found)
    if new.spec.selector != old.spec.selector:
        found.append(invalid("spec.selector", new.spec.selector, IMMUTABLE))


def _check_controller_revision_update(new: Any, old: Any, found: list[Cause]) -> None:
    if new.data != old.data:
        found.append(invalid("data", new.data, IMMUTABLE))
    check_not_negative(new.revision, "revision", found)


RULES = {
    apps_v1_pb2.ReplicaSet: Rules(_check_workload, _check_workload_update),
    apps_v1_pb2.Deployment: Rules(_check_workload, _check_workload_update),
    apps_v1_pb2.StatefulSet: Rules(_check_workload, _check_workload_update),
    apps_v1_pb2.DaemonSet: Rules(_check_workload, _check_workload_update),
    apps_v1_pb2.ControllerRevision: Rules(update=_check_controller_revision_update),
}
