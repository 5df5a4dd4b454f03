"""The signers of kube-controller-manager: which requests for certificates they sign, and which are approved without
anybody's word (``pkg/controller/certificates``)."""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterator, Sequence

from cryptography import x509
from cryptography.x509.oid import NameOID

from kemu.emulated.gateway.authentication.certificates import VALIDITY
from kemu.emulated.objects import identities
from kemu.emulated.objects.validation.control_plane.registrations import (
    APPROVED,
    DENIED,
    FAILED,
    LEGACY_SIGNER,
    Request,
    blocks,
)

KUBELET_SERVING = "kubernetes.io/kubelet-serving"
KUBELET_CLIENT = "kubernetes.io/kube-apiserver-client-kubelet"
CLIENT = "kubernetes.io/kube-apiserver-client"
SIGNERS = (CLIENT, KUBELET_CLIENT, KUBELET_SERVING, LEGACY_SIGNER)
LEAST = dt.timedelta(minutes=10)

_ENCIPHERMENT = "key encipherment"


def parsed(request: Request) -> x509.CertificateSigningRequest:
    """Raises ValueError for what is none."""
    for kind, der in blocks(request.spec.request):
        if kind == "CERTIFICATE REQUEST":
            return x509.load_der_x509_csr(der)
    raise ValueError("PEM block type must be CERTIFICATE REQUEST")


def has_condition(request: Request, *types: str) -> bool:
    return any(one.type in types for one in request.status.conditions)


def is_to_be_signed(request: Request) -> bool:
    """Approved, for one of these signers, and nothing has come of it yet."""
    return (
        request.spec.signerName in SIGNERS
        and has_condition(request, APPROVED)
        and not has_condition(request, DENIED, FAILED)
        and not request.status.certificate
    )


def problem(request: Request, found: x509.CertificateSigningRequest) -> str:
    """Why its signer does not sign it; empty: it does."""
    usages = request.spec.usages
    if request.spec.signerName == CLIENT:
        return _client_problem(usages)
    if request.spec.signerName in (KUBELET_CLIENT, KUBELET_SERVING):
        return _kubelet_problem(found, usages, is_server=request.spec.signerName == KUBELET_SERVING)
    return ""


def ttl(request: Request) -> dt.timedelta:
    """How long the certificate is good for."""
    if not request.spec.HasField("expirationSeconds"):
        return VALIDITY
    return max(LEAST, min(VALIDITY, dt.timedelta(seconds=request.spec.expirationSeconds)))


def approvals(request: Request, found: x509.CertificateSigningRequest) -> Iterator[tuple[str, str]]:
    """Subresources of ``certificatesigningrequests`` that the user may have the right to create, so that the request is
    approved, and what the condition then says (``sarapprove.go``)."""
    if request.status.certificate or has_condition(request, APPROVED, DENIED):
        return
    if request.spec.signerName != KUBELET_CLIENT or _kubelet_problem(found, request.spec.usages, is_server=False):
        return
    if request.spec.username == _common_name(found):
        yield "selfnodeclient", "Auto approving self kubelet client certificate after SubjectAccessReview."
    yield "nodeclient", "Auto approving kubelet client certificate after SubjectAccessReview."


def _client_problem(usages: Sequence[str]) -> str:
    """``validAPIServerClientUsages``."""
    for usage in usages:
        if usage not in ("digital signature", _ENCIPHERMENT, "client auth"):
            return f"invalid usage for client certificate: {usage}"
    return "" if "client auth" in usages else "missing required usage for client certificate: client auth"


def _kubelet_problem(found: x509.CertificateSigningRequest, usages: Sequence[str], *, is_server: bool) -> str:
    """``ValidateKubeletServingCSR`` and ``ValidateKubeletClientCSR``."""
    organizations = [one.value for one in found.subject.get_attributes_for_oid(NameOID.ORGANIZATION_NAME)]
    if organizations != [identities.NODES]:
        return "subject organization is not system:nodes"
    names = _alternative_names(found)
    if is_server and not (names["DNS"] or names["IP"]):
        return "DNS or IP subjectAltName is required"
    for kind in ("Email", "URI") if is_server else ("DNS", "Email", "IP", "URI"):
        if names[kind]:
            return f"{kind} subjectAltNames are not allowed"
    wanted = ["digital signature", _ENCIPHERMENT, "server auth" if is_server else "client auth"]
    if sorted(set(usages) | {_ENCIPHERMENT}) != sorted(wanted):
        # As Go prints a list.
        return f"usages did not match [{' '.join(sorted(wanted))}]"
    if not _common_name(found).startswith(identities.NODE_PREFIX):
        return "subject common name does not begin with system:node:"
    return ""


def _common_name(found: x509.CertificateSigningRequest) -> str:
    return next((str(one.value) for one in found.subject.get_attributes_for_oid(NameOID.COMMON_NAME)), "")


def _alternative_names(found: x509.CertificateSigningRequest) -> dict[str, list[object]]:
    kinds: dict[str, type[x509.GeneralName]] = {
        "DNS": x509.DNSName,
        "Email": x509.RFC822Name,
        "IP": x509.IPAddress,
        "URI": x509.UniformResourceIdentifier,
    }
    try:
        names = found.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    except x509.ExtensionNotFound:
        return {kind: [] for kind in kinds}
    return {kind: [one for one in names if isinstance(one, type_)] for kind, type_ in kinds.items()}
