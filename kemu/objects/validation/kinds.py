"""The entry points of validation, and the checks of all kinds but pods.

:func:`validate_create`, :func:`validate_update` and :func:`validate_status_update` return causes in a fixed order, none
for a valid object; :func:`kemu.objects.validation.causes.error` turns them into an error. Callers fill in defaults
first (:mod:`kemu.objects.defaults`). Pods are checked in :mod:`kemu.objects.validation.pods`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

from google.protobuf.message import Message

from kemu.errors import Cause
from kemu.k8s import (
    apps_v1_pb2,
    batch_v1_pb2,
    coordination_v1_pb2,
    core_v1_pb2,
    node_v1_pb2,
    policy_v1_pb2,
    scheduling_v1_pb2,
)
from kemu.objects import names, resources, selectors
from kemu.objects.validation import placement, pods
from kemu.objects.validation.amounts import any_resource_name, check_amounts, check_overhead
from kemu.objects.validation.causes import IMMUTABLE, duplicate, forbidden, invalid, not_supported, required
from kemu.objects.validation.metadata import (
    NOT_NEGATIVE,
    NameRule,
    check_label_key,
    check_label_selector,
    check_labels,
    check_metadata,
    check_metadata_update,
    check_not_negative,
)

HIGHEST_USER_PRIORITY = 1_000_000_000
"""The largest value that users may give a priority class."""
SYSTEM_PREFIX = "system-"
SYSTEM_PRIORITY_CLASSES = {"system-node-critical": 2_000_001_000, "system-cluster-critical": 2_000_000_000}
"""The only classes whose names may begin with ``system-``, and their values."""

_Check = Callable[[Any, list[Cause]], None]
_UpdateCheck = Callable[[Any, Any, list[Cause]], None]


def validate_create(obj: Any) -> list[Cause]:
    """What is wrong with a new object; empty for a valid one. Raises KeyError for a message that is no object."""
    found: list[Cause] = []
    rules = _RULES[type(obj)]
    check_metadata(obj.metadata, resources.of(obj).namespaced, rules.name_rule, found)
    rules.create(obj, found)
    return found


def validate_update(new: Any, old: Any) -> list[Cause]:
    """What is wrong with replacing ``old`` by ``new``, both complete; the status is not checked."""
    found: list[Cause] = []
    check_metadata_update(new.metadata, old.metadata, found)
    rules = _RULES[type(new)]
    if rules.update is None:
        rules.create(new, found)
    else:
        rules.update(new, old, found)
    return found


def validate_status_update(new: Any, old: Any) -> list[Cause]:
    """What is wrong with replacing the status of ``old`` by that of ``new``, both complete."""
    found: list[Cause] = []
    check_metadata_update(new.metadata, old.metadata, found)
    rules = _RULES[type(new)]
    if rules.status_update is not None:
        rules.status_update(new, old, found)
    return found


# Nodes --------------------------------------------------------------------------------------------------------------


def _check_node(node: Any, found: list[Cause]) -> None:
    _check_taints(node.spec.taints, found)
    status = node.status
    check_amounts(status.capacity, "status.capacity", any_resource_name, found)
    check_amounts(status.allocatable, "status.allocatable", any_resource_name, found)


def _check_taints(taints: Any, found: list[Cause]) -> None:
    seen: dict[tuple[str, str], None] = {}
    for index, taint in enumerate(taints):
        here = f"spec.taints[{index}]"
        check_label_key(taint.key, f"{here}.key", found)
        problems = names.label_value(taint.value)
        if problems:
            found.append(invalid(f"{here}.value", taint.value, ";".join(problems)))
        if not taint.effect:
            found.append(required(f"{here}.effect"))
        elif taint.effect not in placement.TAINT_EFFECTS:
            found.append(not_supported(f"{here}.effect", taint.effect, placement.TAINT_EFFECTS))
        pair = (taint.key, taint.effect)
        if pair in seen:
            found.append(duplicate(here, taint))
        seen[pair] = None


def _check_node_update(new: Any, old: Any, found: list[Cause]) -> None:
    _check_taints(new.spec.taints, found)
    for field in ("podCIDR", "providerID"):
        before = getattr(old.spec, field)
        if before and getattr(new.spec, field) != before:
            what = (
                "`spec.podCIDRs` may not be changed" if field == "podCIDR" else "node updates may not change providerID"
            )
            found.append(forbidden(f"spec.{field}", f'{what} except from "" to valid'))


def _check_node_status(new: Any, old: Any, found: list[Cause]) -> None:
    check_amounts(new.status.capacity, "status.capacity", any_resource_name, found)
    check_amounts(new.status.allocatable, "status.allocatable", any_resource_name, found)


# Policy -------------------------------------------------------------------------------------------------------------


def _check_priority_class(priority_class: Any, found: list[Cause]) -> None:
    name = priority_class.metadata.name
    value = priority_class.value
    if name.startswith(SYSTEM_PREFIX):
        problem = _system_class_problem(name, value, priority_class.globalDefault)
        if problem:
            detail = (
                f"priority class names with '{SYSTEM_PREFIX}' prefix are reserved for system use only. error: {problem}"
            )
            found.append(forbidden("metadata.name", detail))
    elif value > HIGHEST_USER_PRIORITY:
        detail = f"maximum allowed value of a user defined priority is {HIGHEST_USER_PRIORITY}"
        found.append(forbidden("value", detail))
    if priority_class.HasField("preemptionPolicy"):
        policy = priority_class.preemptionPolicy
        if policy not in pods.PREEMPTION_POLICIES:
            choices = pods.PREEMPTION_POLICIES
            found.append(not_supported("preemptionPolicy", policy, choices) if policy else required("preemptionPolicy"))


def _system_class_problem(name: str, value: int, global_default: bool) -> str:
    wanted = SYSTEM_PRIORITY_CLASSES.get(name)
    if wanted is None:
        return f"{name} is not a known system priority class"
    if value != wanted:
        return f"value of {name} PriorityClass must be {wanted}"
    if global_default:
        return f"globalDefault of {name} PriorityClass must be false"
    return ""


def _check_priority_class_update(new: Any, old: Any, found: list[Cause]) -> None:
    if new.value != old.value:
        found.append(forbidden("value", "may not be changed in an update."))
    if new.preemptionPolicy != old.preemptionPolicy:
        found.append(invalid("preemptionPolicy", new.preemptionPolicy, IMMUTABLE))


def _check_disruption_budget(budget: Any, found: list[Cause]) -> None:
    spec = budget.spec
    if spec.HasField("minAvailable") and spec.HasField("maxUnavailable"):
        found.append(invalid("spec", spec, "minAvailable and maxUnavailable cannot be both set"))
    for field in ("minAvailable", "maxUnavailable"):
        if spec.HasField(field):
            _check_int_or_percent(getattr(spec, field), f"spec.{field}", found)
    policies = ("AlwaysAllow", "IfHealthyBudget")
    if spec.HasField("unhealthyPodEvictionPolicy") and spec.unhealthyPodEvictionPolicy not in policies:
        found.append(not_supported("spec.unhealthyPodEvictionPolicy", spec.unhealthyPodEvictionPolicy, policies))
    if spec.HasField("selector"):
        check_label_selector(spec.selector, "spec.selector", found)


def _check_int_or_percent(value: Any, path: str, found: list[Cause]) -> None:
    if value.type == 0:
        check_not_negative(value.intVal, path, found)
        return
    text = value.strVal
    if not (text.endswith("%") and text[:-1].isascii() and text[:-1].isdigit()):
        detail = (
            "a valid percent string must be a numeric string followed by an ending '%' "
            "(e.g. '1%',  or '93%', regex used for validation is '[0-9]+%')"
        )
        found.append(invalid(path, text, detail))
    elif len(text[:-1].lstrip("0")) > 3 or int(text[:-1]) > 100:
        found.append(invalid(path, text, "must not be greater than 100%"))


def _check_disruption_budget_status(new: Any, old: Any, found: list[Cause]) -> None:
    for field in ("disruptionsAllowed", "currentHealthy", "desiredHealthy", "expectedPods"):
        check_not_negative(getattr(new.status, field), f"status.{field}", found)


def _check_quota(quota: Any, found: list[Cause]) -> None:
    check_amounts(quota.spec.hard, "spec.hard", any_resource_name, found)


# Small kinds --------------------------------------------------------------------------------------------------------


def _check_lease(lease: Any, found: list[Cause]) -> None:
    spec = lease.spec
    if spec.HasField("leaseDurationSeconds") and spec.leaseDurationSeconds <= 0:
        found.append(invalid("spec.leaseDurationSeconds", spec.leaseDurationSeconds, "must be greater than 0"))
    if spec.HasField("leaseTransitions") and spec.leaseTransitions < 0:
        found.append(invalid("spec.leaseTransitions", spec.leaseTransitions, NOT_NEGATIVE))


_EVENT_LIMITS = {"reportingInstance": 128, "action": 128, "reason": 128, "message": 1024}


def _check_event(event: Any, found: list[Cause]) -> None:
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


def _check_service(service: Any, found: list[Cause]) -> None:
    spec = service.spec
    check_labels(spec.selector, "spec.selector", found)
    types = ("ClusterIP", "ExternalName", "LoadBalancer", "NodePort")
    if spec.type not in types:
        found.append(not_supported("spec.type", spec.type, types))
    if not spec.ports and spec.clusterIP != "None" and spec.type != "ExternalName":
        found.append(required("spec.ports"))
    for index, port in enumerate(spec.ports):
        if not 1 <= port.port <= 65535:
            found.append(invalid(f"spec.ports[{index}].port", port.port, "must be between 1 and 65535, inclusive"))


def _check_runtime_class(runtime_class: Any, found: list[Cause]) -> None:
    """``ValidateRuntimeClass`` of ``pkg/apis/node/validation``."""
    handler = runtime_class.handler
    if not handler:
        found.append(required("handler"))
    else:
        found.extend(invalid("handler", handler, problem) for problem in names.dns_label(handler))
    check_overhead(runtime_class.overhead.podFixed, "overhead", found)
    scheduling = runtime_class.scheduling
    check_labels(scheduling.nodeSelector, "scheduling.nodeSelector", found)
    placement.check_tolerations(scheduling.tolerations, "scheduling.tolerations", found)
    seen: dict[tuple[str, str, str, str], None] = {}
    for index, toleration in enumerate(scheduling.tolerations):
        key = (toleration.key, toleration.operator, toleration.value, toleration.effect)
        if key in seen:
            found.append(duplicate(f"scheduling.tolerations[{index}]", toleration))
        seen[key] = None


def _check_runtime_class_update(new: Any, old: Any, found: list[Cause]) -> None:
    if new.handler != old.handler:
        found.append(invalid("handler", new.handler, IMMUTABLE))


# Controllers --------------------------------------------------------------------------------------------------------


def _check_template(
    template: Any, restart_policies: tuple[str, ...], found: list[Cause], volumes: Iterable[str] = ()
) -> None:
    """``volumes``: names of further volumes that containers may mount."""
    check_labels(template.metadata.labels, "spec.template.labels", found)
    pods.check_pod_spec(template.spec, "spec.template.spec", found, volumes)
    policy = template.spec.restartPolicy
    if policy in pods.RESTART_POLICIES and policy not in restart_policies:
        found.append(not_supported("spec.template.spec.restartPolicy", policy, restart_policies))


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
    _check_selector_fits(spec, kind, found)
    for field in ("replicas", "minReadySeconds", "revisionHistoryLimit", "progressDeadlineSeconds"):
        if field in spec.DESCRIPTOR.fields_by_name:
            check_not_negative(getattr(spec, field), f"spec.{field}", found)
    claims = spec.volumeClaimTemplates if kind == "statefulset" else ()
    _check_template(spec.template, ("Always",), found, [claim.metadata.name for claim in claims])


def _check_workload_update(new: Any, old: Any, found: list[Cause]) -> None:
    if new.spec != old.spec:
        _check_workload(new, found)
    if new.spec.selector != old.spec.selector:
        found.append(invalid("spec.selector", new.spec.selector, IMMUTABLE))


def _check_replication_controller(controller: Any, found: list[Cause]) -> None:
    spec = controller.spec
    check_not_negative(spec.replicas, "spec.replicas", found)
    if not spec.selector:
        found.append(required("spec.selector"))
    elif not selectors.labels_equal(spec.selector).matches(spec.template.metadata.labels):
        labels = {key: spec.template.metadata.labels[key] for key in sorted(spec.template.metadata.labels)}
        found.append(invalid("spec.template.metadata.labels", labels, "`selector` does not match template `labels`"))
    _check_template(spec.template, ("Always",), found)


def _check_job(job: Any, found: list[Cause]) -> None:
    spec = job.spec
    for field in ("parallelism", "completions", "backoffLimit", "activeDeadlineSeconds", "ttlSecondsAfterFinished"):
        check_not_negative(getattr(spec, field), f"spec.{field}", found)
    modes = ("NonIndexed", "Indexed")
    if spec.completionMode not in modes:
        found.append(not_supported("spec.completionMode", spec.completionMode, modes))
    if spec.completionMode == "Indexed" and not spec.HasField("completions"):
        found.append(required("spec.completions", "when completion mode is Indexed"))
    if spec.HasField("selector"):
        check_label_selector(spec.selector, "spec.selector", found)
    _check_template(spec.template, ("OnFailure", "Never"), found)


def _check_job_update(new: Any, old: Any, found: list[Cause]) -> None:
    for field in ("selector", "completionMode", "template"):
        # A suspended job that has not started may still be given another template.
        if field == "template" and old.spec.suspend and not old.status.HasField("startTime"):
            continue
        if getattr(new.spec, field) != getattr(old.spec, field):
            found.append(invalid(f"spec.{field}", getattr(new.spec, field), IMMUTABLE))
    for field in ("parallelism", "backoffLimit", "activeDeadlineSeconds", "ttlSecondsAfterFinished"):
        check_not_negative(getattr(new.spec, field), f"spec.{field}", found)


# The table ----------------------------------------------------------------------------------------------------------


def _nothing(obj: Any, found: list[Cause]) -> None:
    """For kinds of which only the metadata are checked."""


@dataclass(frozen=True, slots=True)
class _Rules:
    """The checks of one kind."""

    create: _Check
    update: _UpdateCheck | None = None
    """None: an update is checked like a new object."""
    status_update: _UpdateCheck | None = None
    """None: any status is accepted."""
    name_rule: NameRule = names.dns_subdomain


_RULES: dict[type[Message], _Rules] = {
    core_v1_pb2.Pod: _Rules(pods.check_pod_create, pods.check_pod_update, pods.check_pod_status_update),
    core_v1_pb2.Node: _Rules(_check_node, _check_node_update, _check_node_status),
    core_v1_pb2.Namespace: _Rules(_nothing, name_rule=names.dns_label),
    core_v1_pb2.Event: _Rules(_check_event),
    core_v1_pb2.Service: _Rules(_check_service, name_rule=names.dns_1035_label),
    core_v1_pb2.ReplicationController: _Rules(_check_replication_controller),
    core_v1_pb2.ResourceQuota: _Rules(_check_quota),
    apps_v1_pb2.ReplicaSet: _Rules(_check_workload, _check_workload_update),
    apps_v1_pb2.Deployment: _Rules(_check_workload, _check_workload_update),
    apps_v1_pb2.StatefulSet: _Rules(_check_workload, _check_workload_update),
    apps_v1_pb2.DaemonSet: _Rules(_check_workload, _check_workload_update),
    batch_v1_pb2.Job: _Rules(_check_job, _check_job_update),
    policy_v1_pb2.PodDisruptionBudget: _Rules(_check_disruption_budget, status_update=_check_disruption_budget_status),
    scheduling_v1_pb2.PriorityClass: _Rules(_check_priority_class, _check_priority_class_update),
    coordination_v1_pb2.Lease: _Rules(_check_lease),
    node_v1_pb2.RuntimeClass: _Rules(_check_runtime_class, _check_runtime_class_update),
}
