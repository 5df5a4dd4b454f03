"""The fields of the kinds of small API groups: policy, scheduling.k8s.io, coordination.k8s.io, node.k8s.io,
admissionregistration.k8s.io."""

from __future__ import annotations

from kemu.emulated.objects.fields.sorts import Reason, Refused, Sort, message

_POLICIES = ("ValidatingAdmissionPolicy", "MutatingAdmissionPolicy")
_BINDINGS = ("ValidatingAdmissionPolicyBinding", "MutatingAdmissionPolicyBinding")
_CONFIGURATIONS = ("ValidatingWebhookConfiguration", "MutatingWebhookConfiguration")
ACCEPTED = (
    "PriorityClass", "Workload", "PodGroup", "RuntimeClass", "PodDisruptionBudget", "Lease", "FlowSchema",
    "PriorityLevelConfiguration", *_POLICIES, *_BINDINGS, *_CONFIGURATIONS,
)  # fmt: skip
"""Kinds that scenarios may hold."""

POLICY: dict[str, Sort] = {
    **message("PodDisruptionBudget", parts="metadata spec status"),
    **message("PodDisruptionBudgetSpec", acts="minAvailable selector maxUnavailable unhealthyPodEvictionPolicy"),
    **message(
        "PodDisruptionBudgetStatus",
        acts="observedGeneration disruptedPods disruptionsAllowed currentHealthy desiredHealthy",
        harmless={Reason.RECORDED: "expectedPods conditions"},
    ),
}

SCHEDULING: dict[str, Sort] = {
    **message(
        "PriorityClass",
        acts="value globalDefault preemptionPolicy",
        parts="metadata",
        harmless={Reason.RECORDED: "description"},
    ),
}

_CLAIMS = Refused("no scheduler has the feature gate DRAWorkloadResourceClaims", gate="DRAWorkloadResourceClaims")
_OF_GROUPS = "schedulingPolicy schedulingConstraints disruptionMode priority priorityClassName"

GROUPS: dict[str, Sort] = {
    **message("Workload", parts="metadata spec"),
    **message("WorkloadSpec", parts="podGroupTemplates", harmless={Reason.RECORDED: "controllerRef"}),
    **message("PodGroupTemplate", acts=f"name {_OF_GROUPS}", refused={"resourceClaims": _CLAIMS}),
    **message("PodGroup", parts="metadata spec status"),
    **message("PodGroupSpec", acts=f"podGroupTemplateRef {_OF_GROUPS}", refused={"resourceClaims": _CLAIMS}),
    **message("PodGroupStatus", acts="conditions resourceClaimStatuses"),
}

COORDINATION: dict[str, Sort] = {
    **message("Lease", parts="metadata spec"),
    **message(
        "LeaseSpec",
        acts="holderIdentity leaseDurationSeconds acquireTime renewTime leaseTransitions",
        harmless={Reason.COORDINATED: "strategy preferredHolder"},
    ),
}

FLOW_CONTROL: dict[str, Sort] = {
    **message("FlowSchema", parts="metadata", acts="spec", harmless={Reason.SERVER: "status"}),
    **message("PriorityLevelConfiguration", parts="metadata", acts="spec", harmless={Reason.SERVER: "status"}),
}

NODE: dict[str, Sort] = {
    **message("RuntimeClass", acts="overhead scheduling", parts="metadata", harmless={Reason.CONTAINERS: "handler"}),
}

ADMISSION: dict[str, Sort] = {
    **message("ValidatingAdmissionPolicy", acts="spec status", parts="metadata"),
    **{
        key: sort
        for kind in ("MutatingAdmissionPolicy", *_BINDINGS)
        for key, sort in message(kind, acts="spec", parts="metadata").items()
    },
    **{key: sort for kind in _CONFIGURATIONS for key, sort in message(kind, acts="webhooks", parts="metadata").items()},
}

SORTS: dict[str, Sort] = {**POLICY, **SCHEDULING, **GROUPS, **COORDINATION, **FLOW_CONTROL, **NODE, **ADMISSION}
