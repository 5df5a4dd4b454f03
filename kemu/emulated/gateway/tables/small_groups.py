"""The groups policy, scheduling.k8s.io, coordination.k8s.io, node.k8s.io, rbac.authorization.k8s.io, and
resource.k8s.io."""

from __future__ import annotations

from kemu.emulated.gateway.tables import texts
from kemu.emulated.gateway.tables.printers import AGE, NAME, Cell, Column, Printer, wide
from kemu.messages.k8s import (
    admissionregistration_v1_pb2,
    certificates_v1_pb2,
    coordination_v1_pb2,
    node_v1_pb2,
    policy_v1_pb2,
    rbac_v1_pb2,
    resource_v1_pb2,
    scheduling_v1_pb2,
)
from kemu.messages.k8s.objects import KubernetesObject


def _budget(budget: policy_v1_pb2.PodDisruptionBudget, now_ns: int) -> list[Cell]:
    spec = budget.spec
    least, most = (
        texts.int_or_string(getattr(spec, field)) if spec.HasField(field) else "N/A"
        for field in ("minAvailable", "maxUnavailable")
    )
    return [budget.metadata.name, least, most, budget.status.disruptionsAllowed, texts.age(budget, now_ns)]


def _priority_class(priority_class: scheduling_v1_pb2.PriorityClass, now_ns: int) -> list[Cell]:
    return [
        priority_class.metadata.name,
        priority_class.value,
        priority_class.globalDefault,
        texts.age(priority_class, now_ns),
        priority_class.preemptionPolicy,
    ]


def _lease(lease: coordination_v1_pb2.Lease, now_ns: int) -> list[Cell]:
    return [lease.metadata.name, lease.spec.holderIdentity, texts.age(lease, now_ns)]


def _runtime_class(runtime_class: node_v1_pb2.RuntimeClass, now_ns: int) -> list[Cell]:
    return [runtime_class.metadata.name, runtime_class.handler, texts.age(runtime_class, now_ns)]


def _binding(binding: rbac_v1_pb2.ClusterRoleBinding | rbac_v1_pb2.RoleBinding, now_ns: int) -> list[Cell]:
    subjects = binding.subjects
    return [
        binding.metadata.name,
        f"{binding.roleRef.kind}/{binding.roleRef.name}",
        texts.age(binding, now_ns),
        ", ".join(one.name for one in subjects if one.kind == "User"),
        ", ".join(one.name for one in subjects if one.kind == "Group"),
        ", ".join(f"{one.namespace}/{one.name}" for one in subjects if one.kind == "ServiceAccount"),
    ]


def _device_claim(claim: resource_v1_pb2.ResourceClaim, now_ns: int) -> list[Cell]:
    """``printResourceClaim``."""
    is_deleted = claim.metadata.HasField("deletionTimestamp")
    states = ["deleted"] if is_deleted else []
    if claim.status.HasField("allocation"):
        states += ["allocated", "reserved"] if claim.status.reservedFor else ["allocated"]
    elif not is_deleted:
        states.append("pending")
    return [claim.metadata.name, ",".join(states), texts.age(claim, now_ns)]


def _named(obj: KubernetesObject, now_ns: int) -> list[Cell]:
    return [obj.metadata.name, texts.age(obj, now_ns)]


def _device_slice(device_slice: resource_v1_pb2.ResourceSlice, now_ns: int) -> list[Cell]:
    spec = device_slice.spec
    return [device_slice.metadata.name, spec.nodeName, spec.driver, spec.pool.name, texts.age(device_slice, now_ns)]


def _signing_request(request: certificates_v1_pb2.CertificateSigningRequest, now_ns: int) -> list[Cell]:
    spec, status = request.spec, request.status
    types = {one.type for one in status.conditions}
    state = "Denied" if "Denied" in types else "Approved" if "Approved" in types else "Pending"
    state += ",Failed" if "Failed" in types else ""
    state += ",Issued" if status.certificate else ""
    seconds = spec.expirationSeconds
    return [
        request.metadata.name,
        texts.age(request, now_ns),
        spec.signerName or texts.NONE,
        spec.username,
        texts.duration(seconds * texts.SECOND_NS) if spec.HasField("expirationSeconds") else texts.NONE,
        state,
    ]


def _policy(policy: admissionregistration_v1_pb2.ValidatingAdmissionPolicy, now_ns: int) -> list[Cell]:
    spec = policy.spec
    parameters = f"{spec.paramKind.apiVersion}/{spec.paramKind.kind}" if spec.HasField("paramKind") else texts.UNSET
    return [policy.metadata.name, len(spec.validations), parameters, texts.age(policy, now_ns)]


_BINDING = Printer(
    (
        NAME,
        Column("Role", "Role that is given."),
        AGE,
        wide("Users", "Users to whom it is given."),
        wide("Groups", "Groups to which it is given."),
        wide("ServiceAccounts", "Service accounts to which it is given."),
    ),
    _binding,
)

PRINTERS = {
    certificates_v1_pb2.CertificateSigningRequest: Printer(
        (
            NAME,
            AGE,
            Column("SignerName", "Who is to sign."),
            Column("Requestor", "Who asks."),
            Column("RequestedDuration", "How long the certificate is to be valid."),
            Column("Condition", "Whether it is approved, denied or issued."),
        ),
        _signing_request,
    ),
    admissionregistration_v1_pb2.ValidatingAdmissionPolicy: Printer(
        (
            NAME,
            Column("Validations", "Number of its rules.", "integer"),
            Column("ParamKind", "Kind of its parameters."),
            AGE,
        ),
        _policy,
    ),
    policy_v1_pb2.PodDisruptionBudget: Printer(
        (
            NAME,
            Column("Min Available", "Number or share of pods that must stay available."),
            Column("Max Unavailable", "Number or share of pods that may be unavailable."),
            Column("Allowed Disruptions", "Number of pods that may be disrupted now.", "integer"),
            AGE,
        ),
        _budget,
    ),
    scheduling_v1_pb2.PriorityClass: Printer(
        (
            NAME,
            Column("Value", "Priority of the pods of this class.", "integer"),
            Column("Global-Default", "Whether pods without a class are of this one.", "boolean"),
            AGE,
            Column("PreemptionPolicy", "Whether its pods preempt others."),
        ),
        _priority_class,
    ),
    coordination_v1_pb2.Lease: Printer((NAME, Column("Holder", "Who holds the lease."), AGE), _lease),
    node_v1_pb2.RuntimeClass: Printer((NAME, Column("Handler", "Configuration of the runtime."), AGE), _runtime_class),
    rbac_v1_pb2.RoleBinding: _BINDING,
    rbac_v1_pb2.ClusterRoleBinding: _BINDING,
    resource_v1_pb2.DeviceClass: Printer((NAME, AGE), _named),
    resource_v1_pb2.ResourceClaim: Printer(
        (NAME, Column("State", "Whether devices are allocated and reserved."), AGE), _device_claim
    ),
    resource_v1_pb2.ResourceClaimTemplate: Printer((NAME, AGE), _named),
    resource_v1_pb2.ResourceSlice: Printer(
        (
            NAME,
            Column("Node", "Node that has the devices."),
            Column("Driver", "Driver of the devices."),
            Column("Pool", "Pool to which they belong."),
            AGE,
        ),
        _device_slice,
    ),
}
