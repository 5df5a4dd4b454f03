"""The checks of the core group without pods and volumes."""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import lru_cache

from kemu.emulated.objects import names, selectors
from kemu.emulated.objects.validation import checks, finalizers, placement
from kemu.emulated.objects.validation.amounts import check_quantities
from kemu.emulated.objects.validation.causes import (
    duplicate,
    forbidden,
    internal_error,
    invalid,
    required,
    shown,
    too_long,
)
from kemu.emulated.objects.validation.metadata import check_label_key
from kemu.emulated.objects.validation.networks import services
from kemu.emulated.objects.validation.pod_specs import pods, templates
from kemu.emulated.objects.validation.pod_specs import statuses as pod_statuses
from kemu.emulated.objects.validation.rules import Rules
from kemu.emulated.objects.validation.workloads.statuses import check_status
from kemu.errors import Cause
from kemu.messages.k8s import core_v1_pb2


def _check_node(node: core_v1_pb2.Node, found: list[Cause]) -> None:
    _check_taints(node.spec.taints, found)
    _check_node_amounts(node.status, found)
    found += _feature_problems(tuple(node.status.declaredFeatures))
    ranges = _pod_ranges(node.spec)
    if ranges:
        _check_pod_ranges(ranges, "spec.podCIDRs", found)


def _check_node_amounts(status: core_v1_pb2.NodeStatus, found: list[Cause]) -> None:
    check_quantities(status.capacity, "status.capacity", found)
    check_quantities(status.allocatable, "status.allocatable", found)


def _check_pod_ranges(ranges: list[str], path: str, found: list[Cause]) -> None:
    for index, one in enumerate(ranges):
        services.check_range(one, f"{path}[{index}]", found)
    if len(ranges) < 2:
        return
    wrong = next((index for index, one in enumerate(ranges) if names.parsed_network(one) is None), None)
    if wrong is not None:
        # As Go shows the range that it has not read.
        problem = f"invalid CIDR[{wrong}]: <nil> (invalid CIDR address: {ranges[wrong]})"
        text = f"invalid PodCIDRs. failed to check with dual stack with error:{problem}"
        found.append(internal_error(path, text))
    if wrong is not None or len(ranges) > 2 or len({":" in one for one in ranges}) < 2:
        found.append(invalid(path, ranges, "may specify no more than one CIDR for each IP family"))


_FEATURE = re.compile(r"[A-Z][a-zA-Z0-9]*(/[a-zA-Z][a-zA-Z0-9]*)*")


@lru_cache(64)
def _feature_problems(features: tuple[str, ...]) -> tuple[Cause, ...]:
    """``validateNodeDeclaredFeatures``: most nodes declare the same."""
    found = []
    for index, feature in enumerate(features):
        path = "status.declaredFeatures"
        if len(feature) > names.SUBDOMAIN_LENGTH:
            detail = f"must be no more than {names.SUBDOMAIN_LENGTH} characters"
            found.append(invalid(f"{path}[{index}]", feature, f"invalid feature name {shown(feature)}: {detail}"))
        elif not _FEATURE.fullmatch(feature):
            detail = (
                "must start with an UpperCamelCase segment, with subsequent segments separated by '/' (e.g., MyFeature "
                "or MyFeature/mySubFeature), and contain only alphanumeric characters and slashes"
            )
            found.append(invalid(f"{path}[{index}]", feature, f"invalid feature name {shown(feature)}: {detail}"))
        if index + 1 < len(features):
            after = features[index + 1]
            if feature == after:
                found.append(duplicate(f"{path}[{index + 1}]", after))
            elif feature > after:
                found.append(invalid(f"{path}[{index + 1}]", after, "list must be sorted alphabetically"))
    return tuple(found)


def _check_taints(taints: Sequence[core_v1_pb2.Taint], found: list[Cause]) -> None:
    seen: dict[tuple[str, str], None] = {}
    for index, taint in enumerate(taints):
        here = f"metadata.taints[{index}]"  # Kubernetes names the wrong place (ValidateNode)
        check_label_key(taint.key, f"{here}.key", found)
        problems = names.label_value(taint.value)
        if problems:
            found.append(invalid(f"{here}.value", taint.value, ";".join(problems)))
        checks.choice(taint.effect, f"{here}.effect", placement.TAINT_EFFECTS, found)
        if (taint.key, taint.effect) in seen:
            found.append(duplicate(here, taint, "taints must be unique by key and effect pair"))
        seen[taint.key, taint.effect] = None


def _check_node_update(new: core_v1_pb2.Node, old: core_v1_pb2.Node, found: list[Cause]) -> None:
    _check_node(new, found)
    _check_node_change(new, old, found)


def _check_node_change(new: core_v1_pb2.Node, old: core_v1_pb2.Node, found: list[Cause]) -> None:
    """``ValidateNodeUpdate``, also of the status."""
    _check_node_amounts(new.status, found)
    found += _feature_problems(tuple(new.status.declaredFeatures))
    if len(new.status.addresses) > 1:
        seen: dict[tuple[str, str], None] = {}
        for index, address in enumerate(new.status.addresses):
            checks.unique((address.type, address.address), seen, f"status.addresses[{index}]", address, found)
    before, after = _pod_ranges(old.spec), _pod_ranges(new.spec)
    if before and after != before:
        text = 'node updates may not change podCIDR except from "" to valid'
        changes = [one for one, other in zip(after, before, strict=False) if one != other]
        times = len(changes) if len(after) == len(before) else 1
        found += [forbidden("spec.podCIDRs", text)] * times
    if old.spec.providerID and new.spec.providerID != old.spec.providerID:
        found.append(forbidden("spec.providerID", 'node updates may not change providerID except from "" to valid'))
    _check_taints(new.spec.taints, found)
    if new.spec.externalID != old.spec.externalID:
        found.append(forbidden("spec.externalID", "may not be updated"))


def _pod_ranges(spec: core_v1_pb2.NodeSpec) -> list[str]:
    return list(spec.podCIDRs) or ([spec.podCIDR] if spec.podCIDR else [])


_EVENT_LIMITS = {"reportingInstance": 128, "action": 128, "reason": 128, "message": 1024}


def _check_event(event: core_v1_pb2.Event, found: list[Cause]) -> None:
    """``legacyValidateEvent``: an event with an ``eventTime`` is one of events.k8s.io."""
    namespace, own = event.involvedObject.namespace, event.metadata.namespace
    is_new = event.HasField("eventTime")
    allowed = (namespace,) if namespace else ("default", "kube-system") if is_new else ("", "default")
    if own not in allowed and not (is_new and namespace):
        found.append(invalid("involvedObject.namespace", namespace, "does not match event.namespace"))
    if not is_new:
        return
    controller = event.reportingComponent
    if not controller:
        found.append(required("reportingController"))
    found.extend(invalid("reportingController", controller, why) for why in names.label_key(controller))
    for field, limit in _EVENT_LIMITS.items():
        text = getattr(event, field)
        if not text and field != "message":
            found.append(required(field))
        if len(text.encode()) > limit:
            found.append(invalid(field, "", f"can have at most {limit} characters"))


def _check_replication_controller(controller: core_v1_pb2.ReplicationController, found: list[Cause]) -> None:
    spec, path = controller.spec, "spec.template"
    checks.not_negative(spec.minReadySeconds, "spec.minReadySeconds", found)
    if not spec.selector:
        found.append(required("spec.selector"))
    checks.not_negative(spec.replicas, "spec.replicas", found)
    if not spec.HasField("template"):
        found.append(required(path))
        return
    labels = spec.template.metadata.labels
    if spec.selector and not selectors.labels_equal(spec.selector).matches(labels):
        templates.refuse_labels(labels, path, found)
    templates.check_template(spec.template, path, found)
    templates.check_runs_forever(spec.template.spec, "ReplicationController", f"{path}.spec", found)


def _check_pod_template(template: core_v1_pb2.PodTemplate, found: list[Cause]) -> None:
    templates.check_template(template.template, "template", found)


_SEALED = "field is immutable when `immutable` is set"
_LARGEST_BYTES = 1024 * 1024


def _check_config_map(config_map: core_v1_pb2.ConfigMap, found: list[Cause]) -> None:
    size = 0
    for field, other in (("data", config_map.binaryData), ("binaryData", config_map.data)):
        entries = getattr(config_map, field)
        for key in sorted(entries):
            found.extend(invalid(f"{field}[{key}]", key, why) for why in names.config_map_key(key))
            if field == "data" and key in other:
                found.append(invalid(f"data[{key}]", key, "duplicate of key present in binaryData"))
            size += len(entries[key].encode() if field == "data" else entries[key])
    if size > _LARGEST_BYTES:
        found.append(too_long("", _LARGEST_BYTES))


Sealed = core_v1_pb2.ConfigMap | core_v1_pb2.Secret
"""The kinds that may be ``immutable``."""


def _check_config_map_update(new: core_v1_pb2.ConfigMap, old: core_v1_pb2.ConfigMap, found: list[Cause]) -> None:
    if old.immutable:
        _check_sealed(new, old, ("data", "binaryData"), found)
    _check_config_map(new, found)


def _check_secret(secret: core_v1_pb2.Secret, found: list[Cause]) -> None:
    size = 0
    for key in sorted(secret.data):
        found.extend(invalid(f"data[{key}]", key, why) for why in names.config_map_key(key))
        size += len(secret.data[key])
    if size > _LARGEST_BYTES:
        found.append(too_long("data", _LARGEST_BYTES))


def _check_secret_update(new: core_v1_pb2.Secret, old: core_v1_pb2.Secret, found: list[Cause]) -> None:
    checks.fixed("type")(new, old, found)
    if old.immutable:
        _check_sealed(new, old, ("data",), found)
    _check_secret(new, found)


def _check_sealed(new: Sealed, old: Sealed, fields: tuple[str, ...], found: list[Cause]) -> None:
    if not new.immutable:
        found.append(forbidden("immutable", _SEALED))
    for field in fields:
        one, other = getattr(new, field), getattr(old, field)
        if len(one) != len(other) or any(key not in other or one[key] != other[key] for key in one):
            found.append(forbidden(field, _SEALED))


def _check_namespace(namespace: core_v1_pb2.Namespace, found: list[Cause]) -> None:
    finalizers.check_namespace(namespace, found, indexed=False)


def _check_namespace_update(new: core_v1_pb2.Namespace, old: core_v1_pb2.Namespace, found: list[Cause]) -> None:
    _check_namespace(new, found)


def _check_namespace_status(new: core_v1_pb2.Namespace, old: core_v1_pb2.Namespace, found: list[Cause]) -> None:
    is_going = new.metadata.HasField("deletionTimestamp")
    wanted, when = ("Terminating", "is not empty") if is_going else ("Active", "is empty")
    if new.status.phase != wanted:
        why = f"may only be '{wanted}' if `deletionTimestamp` {when}"
        found.append(invalid("status.Phase", new.status.phase, why))


RULES = {
    core_v1_pb2.Pod: Rules(pods.check_pod_create, pods.check_pod_update, pod_statuses.check_update),
    core_v1_pb2.Node: Rules(_check_node, _check_node_update, _check_node_change),
    core_v1_pb2.Namespace: Rules(
        _check_namespace, _check_namespace_update, _check_namespace_status, name_rule=names.dns_label
    ),
    core_v1_pb2.Event: Rules(_check_event),
    core_v1_pb2.Service: Rules(
        services.check_service, services.check_service_update, services.check_status, name_rule=names.dns_label
    ),
    core_v1_pb2.ReplicationController: Rules(_check_replication_controller, status_update=check_status),
    core_v1_pb2.ConfigMap: Rules(_check_config_map, _check_config_map_update),
    core_v1_pb2.Secret: Rules(_check_secret, _check_secret_update),
    core_v1_pb2.ServiceAccount: Rules(),
    core_v1_pb2.PodTemplate: Rules(_check_pod_template),
}
