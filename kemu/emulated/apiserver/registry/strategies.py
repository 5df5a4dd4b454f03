"""What is particular to a kind, in a table: which rules of Kubernetes' strategies (``pkg/registry``) apply to it.

What a user may not set at creation is in :func:`kemu.emulated.objects.defaulting.defaults.prepare_create`; here is the
rest of its life.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, cast

from kemu import errors as kemu_errors
from kemu.emulated.apiserver import request_warnings, selections
from kemu.emulated.apiserver.custom import checks
from kemu.emulated.objects import meta, names, resources
from kemu.emulated.objects.defaulting import core, data_sources, definitions, devices, small_groups, storage
from kemu.emulated.objects.devices import claims
from kemu.emulated.objects.pods import pod_phases
from kemu.emulated.objects.resources import Resource
from kemu.emulated.objects.templates import generations
from kemu.emulated.objects.validation import finalizers, kinds, metadata
from kemu.emulated.objects.validation.control_plane import registrations
from kemu.emulated.objects.validation.devices import claims as device_checks
from kemu.emulated.objects.validation.pod_specs import app_armor, ephemeral, resizes
from kemu.errors import Cause
from kemu.messages.k8s import (
    admissionregistration_v1_pb2,
    apiregistration_v1_pb2,
    apps_v1_pb2,
    core_v1_pb2,
    discovery_v1_pb2,
    resource_v1_pb2,
)
from kemu.messages.k8s.apiextensions_v1_pb2 import CustomResourceDefinition
from kemu.messages.k8s.objects import KubernetesObject


def _selector_problem(text: str) -> str:
    """``validateCELSelector``. Nothing of the language is imported before the first selector of devices."""
    from kemu.emulated.cel import devices as selectors

    program = selectors.compiled(text)
    if isinstance(program, str):
        return program
    return device_checks.TOO_COMPLEX if program.estimate(selectors.DEVICE).high > selectors.MAX_COST else ""


device_checks.use_compiler(_selector_problem)


def _pod_grace_s(pod: core_v1_pb2.Pod, wanted: int | None) -> int:
    """``podStrategy.CheckGracefulDelete``: seconds that the pod has left; 0: remove it at once."""
    if not pod.spec.nodeName or pod_phases.is_terminal(pod):
        return 0
    period = wanted if wanted is not None else pod.spec.terminationGracePeriodSeconds
    # A negative period, once a mistake of clients, means one second.
    return period if period >= 0 else 1


def _prepare_namespace(namespace: core_v1_pb2.Namespace) -> None:
    if finalizers.KUBERNETES not in namespace.spec.finalizers:
        namespace.spec.finalizers.append(finalizers.KUBERNETES)


def _keep_namespace_finalizers(new: core_v1_pb2.Namespace, old: core_v1_pb2.Namespace) -> None:
    """``namespaceStrategy.PrepareForUpdate``: only the subresource ``finalize`` changes them."""
    del new.spec.finalizers[:]
    new.spec.finalizers.extend(old.spec.finalizers)


def copy_field(new: KubernetesObject, old: KubernetesObject, field: str) -> None:
    """Make a field of ``new`` what it is in ``old``."""
    if old.HasField(field):
        getattr(new, field).CopyFrom(getattr(old, field))
    else:
        new.ClearField(field)


def _keep_spec(new: KubernetesObject, old: KubernetesObject) -> None:
    copy_field(new, old, "spec")
    if isinstance(new, apps_v1_pb2.DaemonSet) and generations.ANNOTATION in old.metadata.annotations:
        # Inside kube-apiserver it is a field of the spec.
        new.metadata.annotations[generations.ANNOTATION] = old.metadata.annotations[generations.ANNOTATION]


def _keep_status(new: core_v1_pb2.Namespace, old: core_v1_pb2.Namespace) -> None:
    copy_field(new, old, "status")


def _prepare_pod(pod: core_v1_pb2.Pod) -> None:
    if pod.metadata.annotations:
        for text in app_armor.set_fields(pod):
            request_warnings.warn(text)


def _prepare_pod_status(new: core_v1_pb2.Pod, old: core_v1_pb2.Pod) -> None:
    """``podStatusStrategy.PrepareForUpdate``."""
    copy_field(new, old, "spec")
    del new.metadata.ownerReferences[:]
    new.metadata.ownerReferences.extend(old.metadata.ownerReferences)
    _prepare_status_alone(new, old)


def _prepare_status_alone(new: core_v1_pb2.Pod, old: core_v1_pb2.Pod) -> None:
    status, was = new.status, old.status
    if not status.qosClass:
        status.qosClass = was.qosClass
    if not status.observedGeneration and was.observedGeneration:
        status.observedGeneration = was.observedGeneration
    for condition in status.conditions:
        if not condition.observedGeneration:
            _keep_observed(status.conditions, was.conditions)
            break
    if status.nodeAllocatableResourceClaimStatuses:
        status.ClearField("nodeAllocatableResourceClaimStatuses")  # needs DRANodeAllocatableResources, which is off
    for one in status.containerStatuses[:]:
        for mount in one.volumeMounts[:]:
            if mount.HasField("volumeStatus"):
                mount.ClearField("volumeStatus")  # needs ImageVolumeWithDigest, which is off


def _keep_observed(conditions: Sequence[core_v1_pb2.PodCondition], before: Sequence[core_v1_pb2.PodCondition]) -> None:
    """``preserveOldObservedGeneration``: those that say nothing of it keep what was known, in their order."""
    generations: dict[str, list[int]] = {}
    for one in before:
        generations.setdefault(one.type, []).append(one.observedGeneration)
    for one in conditions:
        left = generations.get(one.type)
        generation = left.pop(0) if left else 0
        if generation and not one.observedGeneration:
            one.observedGeneration = generation


def _prepare_deployment_status(new: KubernetesObject, old: KubernetesObject) -> None:
    """``deploymentStatusStrategy.PrepareForUpdate``."""
    _keep_spec(new, old)
    new.metadata.labels.clear()
    new.metadata.labels.update(old.metadata.labels)


def _keep_spec_and_metadata(new: KubernetesObject, old: KubernetesObject) -> None:
    """``PrepareForUpdate`` of status strategies with ``ResetObjectMetaForStatus``, as of VolumeAttachments."""
    _keep_spec(new, old)
    fields, prefix = new.metadata.managedFields[:], new.metadata.generateName
    new.metadata.CopyFrom(old.metadata)
    new.metadata.ClearField("resourceVersion")
    new.metadata.ClearField("generateName")
    if prefix:
        new.metadata.generateName = prefix  # is not among what is reset
    del new.metadata.managedFields[:]
    new.metadata.managedFields.extend(fields)


def _prepare_claim_status(new: resource_v1_pb2.ResourceClaim, old: resource_v1_pb2.ResourceClaim) -> None:
    """``resourceclaimStatusStrategy.PrepareForUpdate``: what is said of devices goes with their allocation
    (``dropDeallocatedStatusDevices``)."""
    _keep_spec_and_metadata(new, old)
    if new.status.devices:
        left = {claims.device_key(one) for one in new.status.allocation.devices.results}
        gone = {claims.device_key(one) for one in old.status.allocation.devices.results} - left
        kept = [one for one in new.status.devices if claims.device_key(one) not in gone]
        del new.status.devices[:]
        new.status.devices.extend(kept)


def _prepare_service_status(new: KubernetesObject, old: KubernetesObject) -> None:
    """``apiServerStatusStrategy.PrepareForUpdate``."""
    _keep_spec(new, old)
    for entries in ("labels", "annotations"):
        getattr(new.metadata, entries).clear()
        getattr(new.metadata, entries).update(getattr(old.metadata, entries))
    for listed in ("finalizers", "ownerReferences"):
        new.metadata.ClearField(listed)
        getattr(new.metadata, listed).extend(getattr(old.metadata, listed))


def _tell_local(service: apiregistration_v1_pb2.APIService, now_ns: int) -> None:
    """``apiServerStrategy.PrepareForCreate``: what the server itself serves is available at once."""
    if not service.spec.HasField("service"):
        condition = service.status.conditions.add(type="Available", status="True", reason="Local")
        condition.message = "Local APIServices are always available"
        meta.set_time(condition.lastTransitionTime, now_ns)


def _time_gates(pod: core_v1_pb2.Pod, now_ns: int) -> None:
    """``applySchedulingGatedCondition``: since when the pod waits for its gates. A new pod has no other condition."""
    for condition in pod.status.conditions:
        meta.set_time(condition.lastTransitionTime, now_ns)


def _time_phase(volume: core_v1_pb2.PersistentVolume, now_ns: int) -> None:
    """``persistentvolumeStrategy.PrepareForCreate``."""
    meta.set_time(volume.status.lastPhaseTransitionTime, now_ns)


def _time_new_phase(new: core_v1_pb2.PersistentVolume, old: core_v1_pb2.PersistentVolume, now_ns: int) -> None:
    """``persistentvolumeStatusStrategy.PrepareForUpdate``: a client may also set the time itself."""
    after, before = new.status, old.status
    has_time = after.HasField("lastPhaseTransitionTime")
    if after.phase != before.phase:
        if not has_time or after.lastPhaseTransitionTime == before.lastPhaseTransitionTime:
            meta.set_time(after.lastPhaseTransitionTime, now_ns)
    elif not has_time and before.HasField("lastPhaseTransitionTime"):
        after.lastPhaseTransitionTime.CopyFrom(before.lastPhaseTransitionTime)


Request = registrations.Request


def _prepare_request_status(new: Request, old: Request) -> None:
    """``csrStatusStrategy.PrepareForUpdate``: it neither approves nor denies."""
    _keep_spec(new, old)
    for kind in (registrations.APPROVED, registrations.DENIED):
        after = [one for one in new.status.conditions if one.type == kind]
        before = [one for one in old.status.conditions if one.type == kind]
        if len(after) == len(before):
            for one, other in zip(after, before, strict=True):
                one.CopyFrom(other)


def _prepare_approval(new: Request, old: Request) -> None:
    """``csrApprovalStrategy.PrepareForUpdate``: it changes nothing but the conditions."""
    _keep_spec(new, old)
    conditions = new.status.conditions[:]
    new.status.CopyFrom(old.status)
    del new.status.conditions[:]
    new.status.conditions.extend(conditions)


def _time_conditions(new: Request, old: Request, now_ns: int) -> None:
    """``populateConditionTimestamps``."""
    for one in new.status.conditions:
        if not one.HasField("lastUpdateTime"):
            meta.set_time(one.lastUpdateTime, now_ns)
        if one.HasField("lastTransitionTime"):
            continue
        for other in old.status.conditions:
            if (other.type, other.status) == (one.type, one.status) and other.HasField("lastTransitionTime"):
                one.lastTransitionTime.CopyFrom(other.lastTransitionTime)
                break
        else:
            meta.set_time(one.lastTransitionTime, now_ns)


def _check_request_part(subresource: str) -> Callable[[Request, Request], list[Cause]]:
    def check(new: Request, old: Request) -> list[Cause]:
        found: list[Cause] = []
        registrations.check_change(new, old, found, subresource)
        metadata.check_update(new.metadata, old.metadata, metadata.ALSO_RENEWED, names.path_segment, found)
        return found

    return check


def _prepare_secret(new: core_v1_pb2.Secret, old: core_v1_pb2.Secret) -> None:
    """``secret.strategy.PrepareForUpdate``."""
    if not new.type and old.type:
        new.type = old.type


def _drop_of_other_type(new: core_v1_pb2.Service, old: core_v1_pb2.Service) -> None:
    """What the former type was given, and the present one has no use for, unless the update changes it
    (``dropTypeDependentFields``)."""
    after, before = new.spec, old.spec
    if after.type == "ExternalName" != before.type:
        if after.clusterIP == before.clusterIP and after.clusterIPs == before.clusterIPs:
            after.ClearField("clusterIP")
            after.ClearField("clusterIPs")
        _drop_unchanged(after, before, "ipFamilies", "ipFamilyPolicy")
        after.ClearField("internalTrafficPolicy")
    if before.type in _REACHED_FROM_OUTSIDE and after.type not in _REACHED_FROM_OUTSIDE:
        if {port.nodePort for port in after.ports} <= {0, *(port.nodePort for port in before.ports)}:
            for port in after.ports:
                port.ClearField("nodePort")
        if not (after.externalIPs and after.type == "ClusterIP"):
            _drop_unchanged(after, before, "externalTrafficPolicy")
    if before.type == "LoadBalancer":
        if before.externalTrafficPolicy == "Local" and not _has_health_port(after):
            _drop_unchanged(after, before, "healthCheckNodePort")
        if after.type != "LoadBalancer":
            _drop_unchanged(after, before, "allocateLoadBalancerNodePorts", "loadBalancerClass")
            new.status.ClearField("loadBalancer")


_REACHED_FROM_OUTSIDE = ("NodePort", "LoadBalancer")


def _has_health_port(spec: core_v1_pb2.ServiceSpec) -> bool:
    return spec.type == "LoadBalancer" and spec.externalTrafficPolicy == "Local"


def _drop_unchanged(after: core_v1_pb2.ServiceSpec, before: core_v1_pb2.ServiceSpec, *fields: str) -> None:
    for name in fields:
        if getattr(after, name) == getattr(before, name):
            after.ClearField(name)  # type: ignore[arg-type]


def _has_new_spec(new: apps_v1_pb2.ReplicaSet | core_v1_pb2.Pod, old: apps_v1_pb2.ReplicaSet | core_v1_pb2.Pod) -> bool:
    return bool(new.spec != old.spec)


def _prepare_slice(new: resource_v1_pb2.ResourceSlice, old: resource_v1_pb2.ResourceSlice) -> None:
    """``resourceSliceStrategy.PrepareForUpdate``: what is dropped counts, too."""
    if new.spec != old.spec:
        new.metadata.generation = old.metadata.generation + 1
    devices.drop_disabled(new, old)


def _has_new_webhooks(
    new: admissionregistration_v1_pb2.MutatingWebhookConfiguration,
    old: admissionregistration_v1_pb2.MutatingWebhookConfiguration,
) -> bool:
    return list(new.webhooks) != list(old.webhooks)


def _number_template(daemon_set: apps_v1_pb2.DaemonSet) -> None:
    """``daemonSetStrategy.PrepareForCreate``."""
    if generations.of(daemon_set) < 1:
        generations.put(daemon_set, 1)


def _count_template(new: Any, old: Any) -> None:
    """``daemonSetStrategy.PrepareForUpdate``."""
    generations.put(new, generations.of(old) + (new.spec.template != old.spec.template))


def _has_new_deployment(new: apps_v1_pb2.Deployment, old: apps_v1_pb2.Deployment) -> bool:
    """Annotations count, too: they are copied to the ReplicaSets."""
    return new.spec != old.spec or not meta.have_same_entries(new.metadata.annotations, old.metadata.annotations)


def _has_new_template(new: core_v1_pb2.PodTemplate, old: core_v1_pb2.PodTemplate) -> bool:
    return bool(new.template != old.template)


def _prepare_endpoints(new: discovery_v1_pb2.EndpointSlice, old: discovery_v1_pb2.EndpointSlice) -> None:
    """``endpointSliceStrategy.PrepareForUpdate``, which counts what it then drops."""
    if _has_new_endpoints(new, old):
        new.metadata.generation = old.metadata.generation + 1
    small_groups.drop_topology(new, old)


def _has_new_endpoints(new: KubernetesObject, old: KubernetesObject) -> bool:
    """Anything but the metadata without labels."""
    if not meta.have_same_entries(new.metadata.labels, old.metadata.labels):
        return True
    one, other = type(new)(), type(new)()
    one.CopyFrom(new)
    other.CopyFrom(old)
    one.ClearField("metadata")
    other.ClearField("metadata")
    return bool(one != other)


def _prepare_definition(new: CustomResourceDefinition, old: CustomResourceDefinition) -> None:
    """``customresourcedefinition.strategy.PrepareForUpdate``."""
    definitions.store(new)


def _check_finalize(new: KubernetesObject, old: KubernetesObject) -> list[Cause]:
    found: list[Cause] = []
    metadata.check_update(new.metadata, old.metadata, metadata.AS_MOST, names.dns_label, found)
    finalizers.check_namespace(cast(core_v1_pb2.Namespace, new), found, indexed=True)
    return found


UNSUPPORTED, ORPHANED, DELETED = "unsupported", "orphaned", "deleted"
"""What becomes of the dependents of an object when it is deleted and the request does not say so
(``DefaultGarbageCollectionPolicy``); events have none."""


@dataclass(frozen=True, slots=True)
class Subresource:
    """A way to update a part of an object."""

    prepare: Callable[[Any, Any], None]
    """(new, old): put back what may not be changed this way."""
    validate: Callable[[Any, Any], list[Cause]]
    """(new, old), both complete."""
    defaults: bool = False
    """It changes the spec: defaults are set first, and admission is asked."""
    stamp: Callable[[Any, Any, int], None] | None = None
    """(new, old, Unix nanoseconds): fills in times."""
    alone: Subresource | None = None
    """The same for a patch of nothing but the status: metadata and spec are those of the old object."""


STATUS = Subresource(_keep_spec, kinds.validate_status_update)


@dataclass(frozen=True, slots=True)
class Strategy:
    """The rules of one kind."""

    resource: Resource
    has_status: bool
    counts: Callable[[Any, Any], bool] | None = None
    """(new, old): whether ``metadata.generation`` counts this update. None: it counts none."""
    unconditional_update: bool = True
    """An update without a resource version overwrites whatever is there."""
    create_on_update: bool = False
    """An update of what does not exist creates it."""
    prepare_create: Callable[[Any], None] | None = None
    prepare_update: Callable[[Any, Any], None] | None = None
    """(new, old): puts back what an update may not change, beside the status."""
    subresources: Mapping[str, Subresource] = field(default_factory=dict)
    stamp: Callable[[Any, int], None] | None = None
    """(object, Unix nanoseconds): what a new object says of its time."""
    grace_s: Callable[[Any, int | None], int] | None = None
    """(object, what the request says): the kind is deleted gracefully."""
    dependents: str = DELETED
    custom: Any = None
    """Of a custom kind, the row of the version that requests speak (:mod:`kemu.emulated.apiserver.custom.served`)."""
    validate_create: Callable[[Any], list[Cause]] = kinds.validate_create
    validate_update: Callable[[Any, Any], list[Cause]] = kinds.validate_update
    """(new, old)."""


def _without_old(prepare: Callable[[Any], None]) -> Callable[[Any, Any], None]:
    """For what an update may not say whatever was there."""
    return lambda new, _old: prepare(new)


def _prepare_node_status(new: core_v1_pb2.Node, old: core_v1_pb2.Node) -> None:
    _keep_spec(new, old)
    core.drop_node_configuration(new)


def _prepare_claim(new: core_v1_pb2.PersistentVolumeClaim, old: core_v1_pb2.PersistentVolumeClaim) -> None:
    data_sources.prepare(new.spec, old.spec)


_RULES: dict[str, dict[str, Any]] = {
    "namespaces": {
        "prepare_create": _prepare_namespace,
        "prepare_update": _keep_namespace_finalizers,
        "subresources": {"status": STATUS, "finalize": Subresource(_keep_status, _check_finalize)},
    },
    "nodes": {
        "prepare_update": _without_old(core.drop_node_configuration),
        "subresources": {"status": Subresource(_prepare_node_status, kinds.validate_status_update)},
    },
    "pods": {
        "prepare_create": _prepare_pod,
        "counts": _has_new_spec,
        "subresources": {
            "status": Subresource(
                _prepare_pod_status,
                kinds.validate_status_update,
                alone=Subresource(_prepare_status_alone, kinds.validate_status_alone),
            ),
            "resize": Subresource(resizes.prepare, resizes.validate, defaults=True),
            "ephemeralcontainers": Subresource(ephemeral.prepare, ephemeral.validate, defaults=True),
        },
        "stamp": _time_gates,
        "grace_s": _pod_grace_s,
    },
    "events": {"create_on_update": True, "dependents": UNSUPPORTED},
    "services": {"create_on_update": True, "prepare_update": _drop_of_other_type},
    "endpoints": {"create_on_update": True},
    "limitranges": {"create_on_update": True},
    "serviceaccounts": {"prepare_update": _without_old(core.drop_secret_fields)},
    "secrets": {"prepare_update": _prepare_secret},
    "persistentvolumes": {
        "stamp": _time_phase,
        "subresources": {"status": Subresource(_keep_spec, kinds.validate_status_update, stamp=_time_new_phase)},
    },
    "persistentvolumeclaims": {"prepare_update": _prepare_claim},
    "podtemplates": {"counts": _has_new_template},
    "replicationcontrollers": {"counts": _has_new_spec, "dependents": ORPHANED},
    "replicasets": {"counts": _has_new_spec},
    "statefulsets": {"counts": _has_new_spec},
    "deployments": {
        "counts": _has_new_deployment,
        "subresources": {"status": Subresource(_prepare_deployment_status, kinds.validate_status_update)},
    },
    "daemonsets": {
        "counts": _has_new_spec,
        "prepare_create": _number_template,
        "prepare_update": _count_template,
    },
    "jobs": {"counts": _has_new_spec, "dependents": ORPHANED},
    "cronjobs": {"counts": _has_new_spec},
    "leases": {
        "unconditional_update": False,
        "create_on_update": True,
        "prepare_update": small_groups.drop_coordination,
    },
    "runtimeclasses": {"unconditional_update": False, "create_on_update": True},
    "poddisruptionbudgets": {"counts": _has_new_spec, "unconditional_update": False},
    "csidrivers": {
        "counts": _has_new_spec,
        "unconditional_update": False,
        "prepare_update": storage.drop_disabled_of_driver,
    },
    "csinodes": {"unconditional_update": False},
    "csistoragecapacities": {"unconditional_update": False},
    "volumeattachments": {
        "unconditional_update": False,
        "subresources": {"status": Subresource(_keep_spec_and_metadata, kinds.validate_status_update)},
    },
    "ingresses": {"counts": _has_new_spec},
    "ingressclasses": {"counts": _has_new_spec},
    "networkpolicies": {"counts": _has_new_spec},
    "endpointslices": {"prepare_update": _prepare_endpoints},
    "certificatesigningrequests": {
        "prepare_update": _keep_spec,
        "subresources": {
            "status": Subresource(_prepare_request_status, _check_request_part("status"), stamp=_time_conditions),
            "approval": Subresource(_prepare_approval, _check_request_part("approval"), stamp=_time_conditions),
        },
    },
    "flowschemas": {
        "counts": _has_new_spec,
        "subresources": {"status": Subresource(_keep_spec_and_metadata, kinds.validate_status_update)},
    },
    "prioritylevelconfigurations": {
        "counts": _has_new_spec,
        "subresources": {"status": Subresource(_keep_spec_and_metadata, kinds.validate_status_update)},
    },
    "apiservices": {
        "unconditional_update": False,
        "stamp": _tell_local,
        "subresources": {"status": Subresource(_prepare_service_status, kinds.validate_status_update)},
    },
    "deviceclasses": {"counts": _has_new_spec},
    "resourceslices": {
        "prepare_update": _prepare_slice,
        "stamp": devices.stamp_taints,
    },
    "resourceclaims": {
        "subresources": {"status": Subresource(_prepare_claim_status, kinds.validate_status_update)},
    },
    "validatingadmissionpolicies": {
        "counts": _has_new_spec,
        "unconditional_update": False,
        "subresources": {"status": Subresource(_keep_spec_and_metadata, kinds.validate_status_update)},
    },
    "validatingadmissionpolicybindings": {"counts": _has_new_spec, "unconditional_update": False},
    "mutatingadmissionpolicies": {"counts": _has_new_spec, "unconditional_update": False},
    "mutatingadmissionpolicybindings": {"counts": _has_new_spec, "unconditional_update": False},
    "validatingwebhookconfigurations": {"counts": _has_new_webhooks, "unconditional_update": False},
    "mutatingwebhookconfigurations": {"counts": _has_new_webhooks, "unconditional_update": False},
    "customresourcedefinitions": {
        "counts": _has_new_spec,
        "prepare_update": _prepare_definition,
        "unconditional_update": False,
        "validate_create": checks.validate_create,
        "validate_update": checks.validate_update,
    },
    "roles": {"create_on_update": True},
    "rolebindings": {"create_on_update": True},
    "clusterroles": {"create_on_update": True},
    "clusterrolebindings": {"create_on_update": True},
}


def _strategy(resource: Resource) -> Strategy:
    rules = dict(_RULES.get(resource.plural, {}))
    rules.setdefault("subresources", {"status": STATUS} if resource.has_status else {})
    return Strategy(resource, resource.has_status, **rules)


STRATEGIES: dict[str, Strategy] = {plural: _strategy(resource) for plural, resource in resources.BY_PLURAL.items()}
"""By plural."""


def find_strategy(plural: str) -> Strategy:
    """Raises :class:`kemu.errors.NotFound`, as for a URL that no API serves."""
    found = STRATEGIES.get(plural)
    return found if found is not None else STRATEGIES[selections.find_resource(plural).plural]


def check_subresource(strategy: Strategy, subresource: str) -> None:
    """Raises :class:`kemu.errors.NotFound`, as for a URL that no API serves."""
    if subresource and subresource not in strategy.subresources:
        what = f"{strategy.resource.plural}/{subresource}"
        raise kemu_errors.NotFound("the server could not find the requested resource", name=what)
