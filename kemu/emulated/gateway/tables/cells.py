"""Cells that Kubernetes computes (``pkg/printers/internalversion``), in the order of the kinds in :mod:`.printers`."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

from kemu.emulated.gateway.tables import texts
from kemu.emulated.objects import selectors
from kemu.messages.k8s import (
    admissionregistration_v1_pb2,
    apiregistration_v1_pb2,
    apps_v1_pb2,
    autoscaling_v2_pb2,
    batch_v1_pb2,
    certificates_v1_pb2,
    core_v1_pb2,
    discovery_v1_pb2,
    flowcontrol_v1_pb2,
    networking_v1_pb2,
    policy_v1_pb2,
    rbac_v1_pb2,
    resource_v1_pb2,
    storage_v1_pb2,
)

# Core -----------------------------------------------------------------------------------------------------------------


def node_status(node: core_v1_pb2.Node) -> str:
    ready = {one.type: one.status for one in node.status.conditions}.get("Ready")
    status = "Unknown" if ready is None else "Ready" if ready == "True" else "NotReady"
    return f"{status},SchedulingDisabled" if node.spec.unschedulable else status


_ROLE_PREFIX, _ROLE = "node-role.kubernetes.io/", "kubernetes.io/role"


def node_roles(node: core_v1_pb2.Node) -> str:
    """``findNodeRoles``."""
    labels = node.metadata.labels
    roles = {key.removeprefix(_ROLE_PREFIX) for key in labels if key.startswith(_ROLE_PREFIX)}
    if _ROLE in labels:
        roles.add(labels[_ROLE])
    return texts.listed(sorted(roles - {""}))


def node_address(type_: str) -> Callable[[core_v1_pb2.Node], str]:
    return lambda node: next((one.address for one in node.status.addresses if one.type == type_), texts.NONE)


def kernel(node: core_v1_pb2.Node) -> str:
    info = node.status.nodeInfo
    version = info.kernelVersion or texts.UNKNOWN
    return f"{version} ({info.architecture})" if info.architecture else version


def first_seen(event: core_v1_pb2.Event, now_ns: int) -> str:
    first = texts.since(event.firstTimestamp, now_ns)
    return texts.since(event.eventTime, now_ns) if first == texts.UNKNOWN else first


def last_seen(event: core_v1_pb2.Event, now_ns: int) -> str:
    if event.HasField("series"):
        return texts.since(event.series.lastObservedTime, now_ns)
    last = texts.since(event.lastTimestamp, now_ns)
    return first_seen(event, now_ns) if last == texts.UNKNOWN else last


def event_count(event: core_v1_pb2.Event) -> int:
    return event.series.count if event.HasField("series") else event.count or 1


def event_object(event: core_v1_pb2.Event) -> str:
    target = event.involvedObject
    return f"{target.kind.lower()}/{target.name}" if target.name else target.kind.lower()


def event_source(event: core_v1_pb2.Event) -> str:
    source = event.source.component or event.reportingComponent
    instance = event.source.host or event.reportingInstance
    return f"{source}, {instance}" if instance else source


def cluster_ip(service: core_v1_pb2.Service) -> str:
    return service.spec.clusterIPs[0] if service.spec.clusterIPs else texts.NONE


def external_ip(service: core_v1_pb2.Service) -> str:
    """``getServiceExternalIP``."""
    spec = service.spec
    external = list(spec.externalIPs)
    if spec.type in ("ClusterIP", "NodePort"):
        return ",".join(external) if external else texts.NONE
    if spec.type == "LoadBalancer":
        balancer = load_balancer(service.status.loadBalancer)
        every = [*([balancer] if balancer else ()), *external]
        return ",".join(every) if every else "<pending>"
    return spec.externalName if spec.type == "ExternalName" else texts.UNKNOWN


def load_balancer(status: core_v1_pb2.LoadBalancerStatus | networking_v1_pb2.IngressLoadBalancerStatus) -> str:
    """``loadBalancerStatusStringer``, in full."""
    return ",".join(sorted({one.ip or one.hostname for one in status.ingress} - {""}))


def service_ports(service: core_v1_pb2.Service) -> str:
    return texts.listed(
        f"{port.port}:{port.nodePort}/{port.protocol}" if port.nodePort > 0 else f"{port.port}/{port.protocol}"
        for port in service.spec.ports
    )


def quota(*, of_limits: bool) -> Callable[[core_v1_pb2.ResourceQuota], str]:
    def text(one: core_v1_pb2.ResourceQuota) -> str:
        hard, used = one.status.hard, one.status.used
        return ", ".join(
            f"{name}: {texts.amount(used, name)}/{texts.amount(hard, name)}"
            for name in sorted(hard)
            if name.startswith("limits.") == of_limits
        )

    return text


_BETA_CLASS = "volume.beta.kubernetes.io/storage-class"
Storage = core_v1_pb2.PersistentVolume | core_v1_pb2.PersistentVolumeClaim


def storage_phase(one: Storage) -> str:
    return "Terminating" if one.metadata.HasField("deletionTimestamp") else one.status.phase


def storage_class(one: Storage) -> str:
    return one.metadata.annotations.get(_BETA_CLASS, one.spec.storageClassName)


def bound_claim(volume: core_v1_pb2.PersistentVolume) -> str:
    spec = volume.spec
    return f"{spec.claimRef.namespace}/{spec.claimRef.name}" if spec.HasField("claimRef") else ""


def claim_capacity(claim: core_v1_pb2.PersistentVolumeClaim) -> str:
    return texts.amount(claim.status.capacity, "storage") if claim.spec.volumeName else ""


def claim_modes(claim: core_v1_pb2.PersistentVolumeClaim) -> str:
    return texts.access_modes(claim.status.accessModes) if claim.spec.volumeName else ""


def endpoints(one: core_v1_pb2.Endpoints) -> str:
    """``formatEndpoints``."""
    if not one.subsets:
        return texts.NONE
    every = []
    for subset in one.subsets:
        addresses = [address.ip for address in subset.addresses]
        if not subset.ports:
            every += addresses
        for port in subset.ports:
            every += [f"[{ip}]:{port.port}" if ":" in ip else f"{ip}:{port.port}" for ip in addresses]
    return texts.some(every, otherwise="")


# Workloads ------------------------------------------------------------------------------------------------------------


def ready_replicas(workload: apps_v1_pb2.Deployment | apps_v1_pb2.StatefulSet) -> str:
    return f"{workload.status.readyReplicas}/{workload.spec.replicas}"


def controller(revision: apps_v1_pb2.ControllerRevision) -> str:
    owner = next((one for one in revision.metadata.ownerReferences if one.controller), None)
    if owner is None:
        return texts.NONE
    group = owner.apiVersion.rpartition("/")[0]
    return f"{(f'{owner.kind}.{group}' if group else owner.kind).lower()}/{owner.name}"


def job_status(job: batch_v1_pb2.Job) -> str:
    true = {one.type: one.status == "True" for one in reversed(job.status.conditions)}
    for condition in ("Complete", "Failed"):
        if true.get(condition):
            return condition
    if job.metadata.HasField("deletionTimestamp"):
        return "Terminating"
    for condition in ("Suspended", "FailureTarget", "SuccessCriteriaMet"):
        if true.get(condition):
            return condition
    return "Running"


def completions(job: batch_v1_pb2.Job) -> str:
    spec, succeeded = job.spec, job.status.succeeded
    if spec.HasField("completions"):
        return f"{succeeded}/{spec.completions}"
    return f"{succeeded}/1 of {spec.parallelism}" if spec.parallelism > 1 else f"{succeeded}/1"


def job_duration(job: batch_v1_pb2.Job, now_ns: int) -> str:
    status = job.status
    if not status.HasField("startTime"):
        return ""
    end_ns = texts.nanoseconds(status.completionTime) if status.HasField("completionTime") else now_ns
    return texts.duration(end_ns - texts.nanoseconds(status.startTime))


def last_schedule(cron_job: batch_v1_pb2.CronJob, now_ns: int) -> str:
    status = cron_job.status
    return texts.since(status.lastScheduleTime, now_ns) if status.HasField("lastScheduleTime") else texts.NONE


def scale_target(autoscaler: autoscaling_v2_pb2.HorizontalPodAutoscaler) -> str:
    return f"{autoscaler.spec.scaleTargetRef.kind}/{autoscaler.spec.scaleTargetRef.name}"


_SHOWN_METRICS = 2


def metrics(autoscaler: autoscaling_v2_pb2.HorizontalPodAutoscaler) -> str:
    """``formatHPAMetrics``."""
    specs, statuses = autoscaler.spec.metrics, autoscaler.status.currentMetrics
    if not specs:
        return texts.NONE
    every = [_metric(spec, statuses[index] if index < len(statuses) else None) for index, spec in enumerate(specs)]
    shown = ", ".join(every[:_SHOWN_METRICS])
    return f"{shown} + {len(every) - _SHOWN_METRICS} more..." if len(every) > _SHOWN_METRICS else shown


def _metric(spec: autoscaling_v2_pb2.MetricSpec, status: autoscaling_v2_pb2.MetricStatus | None) -> str:
    field = spec.type[:1].lower() + spec.type[1:]
    if field not in ("external", "pods", "object", "resource", "containerResource"):
        return "<unknown type>"
    source = getattr(spec, field)
    current = getattr(status, field).current if status is not None and status.HasField(field) else None
    target = source.target
    if field in ("resource", "containerResource"):
        if target.HasField("averageValue"):
            return f"{source.name}: {_amount(current, 'averageValue')}/{_amount(target, 'averageValue')}"
        wanted = f"{target.averageUtilization}%" if target.HasField("averageUtilization") else "<auto>"
        used = texts.UNKNOWN
        if current is not None and current.HasField("averageUtilization"):
            used = f"{current.averageUtilization}%"
        return f"{source.name}: {used}/{wanted}"
    if field == "pods":
        return f"{_amount(current, 'averageValue')}/{_amount(target, 'averageValue')}"
    if target.HasField("averageValue"):
        average = current if current is not None and current.HasField("averageValue") else None
        return f"{_amount(average, 'averageValue')}/{_amount(target, 'averageValue')} (avg)"
    return f"{_amount(current, 'value')}/{_amount(target, 'value')}"


def _amount(values: autoscaling_v2_pb2.MetricTarget | autoscaling_v2_pb2.MetricValueStatus | None, field: str) -> str:
    if values is None:
        return texts.UNKNOWN
    # As Go prints the quantity that is not there.
    return texts.quantity(getattr(values, field).string) if values.HasField(field) else "<nil>"


def budget_limit(field: str) -> Callable[[policy_v1_pb2.PodDisruptionBudget], str]:
    return lambda one: texts.int_or_string(getattr(one.spec, field)) if one.spec.HasField(field) else "N/A"


# Networks -------------------------------------------------------------------------------------------------------------


def parent(address: networking_v1_pb2.IPAddress) -> str:
    if not address.spec.HasField("parentRef"):
        return texts.NONE
    of = address.spec.parentRef
    kind = f"{of.resource}.{of.group}" if of.group else of.resource
    return f"{kind.lower()}{f'/{of.namespace}' if of.namespace else ''}/{of.name}"


_SHOWN_HOSTS = 3


def hosts(rules: Sequence[networking_v1_pb2.IngressRule]) -> str:
    """``formatHosts``: a rule without a host takes no room, but counts among those that are left out."""
    shown: list[str] = []
    more = False
    for rule in rules:
        more = more or len(shown) == _SHOWN_HOSTS
        if not more and rule.host:
            shown.append(rule.host)
    text = ",".join(shown) or "*"
    return f"{text} + {len(rules) - _SHOWN_HOSTS} more..." if more else text


def default_ingress_class(one: networking_v1_pb2.IngressClass) -> str:
    is_default = one.metadata.annotations.get("ingressclass.kubernetes.io/is-default-class") == "true"
    return f"{one.metadata.name} (default)" if is_default else one.metadata.name


def class_parameters(spec: networking_v1_pb2.IngressClassSpec) -> str:
    if not spec.HasField("parameters"):
        return texts.NONE
    group = f".{spec.parameters.apiGroup}" if spec.parameters.HasField("apiGroup") else ""
    return f"{spec.parameters.kind}{group}/{spec.parameters.name}"


def policy_pods(spec: networking_v1_pb2.NetworkPolicySpec) -> str:
    return texts.selector(spec, "podSelector") if spec.HasField("podSelector") else texts.NONE


def slice_ports(one: discovery_v1_pb2.EndpointSlice) -> str:
    return texts.some(
        str(port.port) if port.HasField("port") else port.name if port.HasField("name") else "*" for port in one.ports
    )


def slice_addresses(one: discovery_v1_pb2.EndpointSlice) -> str:
    return texts.some(address for endpoint in one.endpoints for address in endpoint.addresses)


# Storage --------------------------------------------------------------------------------------------------------------

_DEFAULT_CLASS = ("storageclass.kubernetes.io/is-default-class", "storageclass.beta.kubernetes.io/is-default-class")


def default_storage_class(one: storage_v1_pb2.StorageClass) -> str:
    is_default = any(one.metadata.annotations.get(key) == "true" for key in _DEFAULT_CLASS)
    return f"{one.metadata.name} (default)" if is_default else one.metadata.name


def attach_required(spec: storage_v1_pb2.CSIDriverSpec) -> bool:
    return spec.attachRequired if spec.HasField("attachRequired") else True


def audiences(driver: storage_v1_pb2.CSIDriver) -> str:
    requests = driver.spec.tokenRequests
    return ",".join(one.audience for one in requests) if requests else texts.UNSET


def room(capacity: storage_v1_pb2.CSIStorageCapacity) -> str:
    return texts.quantity(capacity.capacity.string) if capacity.HasField("capacity") else texts.UNSET


# Small groups ---------------------------------------------------------------------------------------------------------


def role(binding: rbac_v1_pb2.ClusterRoleBinding | rbac_v1_pb2.RoleBinding) -> str:
    return f"{binding.roleRef.kind}/{binding.roleRef.name}"


def subjects(kind: str) -> Callable[[Iterable[rbac_v1_pb2.Subject]], str]:
    return lambda every: ", ".join(
        f"{one.namespace}/{one.name}" if kind == "ServiceAccount" else one.name for one in every if one.kind == kind
    )


def validity(spec: certificates_v1_pb2.CertificateSigningRequestSpec) -> str:
    seconds = spec.expirationSeconds
    return texts.duration(seconds * texts.SECOND_NS) if spec.HasField("expirationSeconds") else texts.NONE


def signing_state(status: certificates_v1_pb2.CertificateSigningRequestStatus) -> str:
    types = {one.type for one in status.conditions}
    state = "Denied" if "Denied" in types else "Approved" if "Approved" in types else "Pending"
    return f"{state}{',Failed' if 'Failed' in types else ''}{',Issued' if status.certificate else ''}"


def distinguisher(spec: flowcontrol_v1_pb2.FlowSchemaSpec) -> str:
    return spec.distinguisherMethod.type if spec.HasField("distinguisherMethod") else texts.NONE


def dangling(status: flowcontrol_v1_pb2.FlowSchemaStatus) -> str:
    return next((one.status for one in status.conditions if one.type == "Dangling"), "?")


def of_level(path: str) -> Callable[[flowcontrol_v1_pb2.PriorityLevelConfiguration], int | str]:
    """A number of a limited level."""
    *parents, field = path.split(".")

    def cell(level: flowcontrol_v1_pb2.PriorityLevelConfiguration) -> int | str:
        found: Any = level.spec
        for one in ("limited", *parents):
            if not found.HasField(one):
                return texts.NONE
            found = getattr(found, one)
        return int(getattr(found, field))

    return cell


def serving(spec: apiregistration_v1_pb2.APIServiceSpec) -> str:
    return f"{spec.service.namespace}/{spec.service.name}" if spec.HasField("service") else "Local"


def availability(status: apiregistration_v1_pb2.APIServiceStatus) -> str:
    """``GetAPIServiceConditionByType``."""
    for one in status.conditions:
        if one.type == "Available":
            return one.status if one.status == "True" or not one.reason else f"{one.status} ({one.reason})"
    return "Unknown"


def health(component: core_v1_pb2.ComponentStatus) -> str:
    for one in component.conditions:
        if one.type == "Healthy":
            return "Healthy" if one.status == "True" else "Unhealthy"
    return "Unknown"


def of_health(field: str) -> Callable[[core_v1_pb2.ComponentStatus], str]:
    return lambda component: next(
        (str(getattr(one, field)) for one in component.conditions if one.type == "Healthy"), ""
    )


def parameter_kind(
    spec: admissionregistration_v1_pb2.ValidatingAdmissionPolicySpec
    | admissionregistration_v1_pb2.MutatingAdmissionPolicySpec,
) -> str:
    return f"{spec.paramKind.apiVersion}/{spec.paramKind.kind}" if spec.HasField("paramKind") else texts.UNSET


def parameter(
    spec: admissionregistration_v1_pb2.ValidatingAdmissionPolicyBindingSpec
    | admissionregistration_v1_pb2.MutatingAdmissionPolicyBindingSpec,
) -> str:
    """``printValidatingAdmissionPolicyBinding``."""
    ref = spec.paramRef
    if ref.name:
        return f"{ref.namespace or '*'}/{ref.name}"
    return selectors.go_text(ref.selector) if ref.HasField("selector") else texts.UNSET


def device_claim_state(claim: resource_v1_pb2.ResourceClaim) -> str:
    """``printResourceClaim``."""
    is_deleted = claim.metadata.HasField("deletionTimestamp")
    states = ["deleted"] if is_deleted else []
    if claim.status.HasField("allocation"):
        states += ["allocated", "reserved"] if claim.status.reservedFor else ["allocated"]
    elif not is_deleted:
        states.append("pending")
    return ",".join(states)
