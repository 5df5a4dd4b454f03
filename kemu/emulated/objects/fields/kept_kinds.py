"""The kinds that everyday manifests hold and no controller of kemu acts on. Roles and bindings are the API server's;
of the others nothing in kemu could notice anything."""

from __future__ import annotations

from kemu.emulated.objects.fields.sorts import Reason, Sort, message

ACCEPTED = (
    "ConfigMap", "Secret", "ServiceAccount", "Endpoints", "EndpointSlice", "Ingress", "IngressClass", "NetworkPolicy",
    "Role", "RoleBinding", "ClusterRole", "ClusterRoleBinding", "CustomResourceDefinition",
)  # fmt: skip
"""Kinds that scenarios may hold."""


def _kept(kind: str, reason: Reason, fields: str) -> dict[str, Sort]:
    return message(kind, parts="metadata", harmless={reason: fields})


SORTS: dict[str, Sort] = {
    **_kept("ConfigMap", Reason.CONTENT, "data binaryData immutable"),
    **_kept("Secret", Reason.CONTENT, "data stringData type immutable"),
    **_kept("ServiceAccount", Reason.IDENTITY, "secrets imagePullSecrets automountServiceAccountToken"),
    **_kept("Endpoints", Reason.NETWORK, "subsets"),
    **_kept("EndpointSlice", Reason.NETWORK, "addressType endpoints ports"),
    **_kept("Ingress", Reason.NETWORK, "spec status"),
    **_kept("IngressClass", Reason.NETWORK, "spec"),
    **_kept("NetworkPolicy", Reason.NETWORK, "spec"),
    **message("CustomResourceDefinition", acts="spec status", parts="metadata"),
    **message("Role", acts="rules", parts="metadata"),
    **message("RoleBinding", acts="subjects roleRef", parts="metadata"),
    **message("ClusterRole", acts="rules aggregationRule", parts="metadata"),
    **message("ClusterRoleBinding", acts="subjects roleRef", parts="metadata"),
}
