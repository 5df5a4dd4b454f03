"""The checks of apiregistration.k8s.io and certificates.k8s.io."""

from __future__ import annotations

import binascii
import re
from collections.abc import Iterable

from kemu.emulated.objects import names
from kemu.emulated.objects.validation import checks
from kemu.emulated.objects.validation.causes import duplicate, forbidden, invalid, not_supported, required, too_long
from kemu.emulated.objects.validation.rules import Rules
from kemu.errors import Cause
from kemu.messages.k8s import apiregistration_v1_pb2, certificates_v1_pb2

STATUSES = ("True", "False", "Unknown")

# API services ---------------------------------------------------------------------------------------------------------


def _check_service(service: apiregistration_v1_pb2.APIService, found: list[Cause]) -> None:
    """``ValidateAPIService``."""
    spec, name = service.spec, service.metadata.name
    wanted = f"{spec.version}.{spec.group}"
    if name and not names.path_segment(name) and name != wanted:
        text = f'must be `spec.version+"."+spec.group`: "{wanted}"'
        found.append(invalid("metadata.name", name, text))
    if not spec.group and spec.version != "v1":
        text = "only v1 may have an empty group and it better be legacy kube"
        found.append(required("spec.group", text))
    checks.name(spec.group, "spec.group", names.dns_subdomain, found)
    found += [invalid("spec.version", spec.version, problem) for problem in names.dns_1035_label(spec.version)]
    for field, most in (("groupPriorityMinimum", 20_000), ("versionPriority", 1_000)):
        value = getattr(spec, field)
        if not 0 < value <= most:
            found.append(invalid(f"spec.{field}", value, f"must be positive and less than {most}"))
    if not spec.HasField("service"):
        if spec.caBundle:
            size = f"{len(spec.caBundle)} bytes"
            found.append(invalid("spec.caBundle", size, "local APIServices may not have a caBundle"))
        if spec.insecureSkipTLSVerify:
            text = "local APIServices may not have insecureSkipTLSVerify"
            found.append(invalid("spec.insecureSkipTLSVerify", True, text))
        return
    found += [required(f"spec.service.{field}") for field in ("namespace", "name") if not getattr(spec.service, field)]
    if not 1 <= spec.service.port <= 65535:
        text = "port is not valid: must be between 1 and 65535, inclusive"
        found.append(invalid("spec.service.port", spec.service.port, text))
    if spec.insecureSkipTLSVerify and spec.caBundle:
        found.append(invalid("spec.insecureSkipTLSVerify", True, "may not be true if caBundle is present"))


def _check_service_status(
    new: apiregistration_v1_pb2.APIService, old: apiregistration_v1_pb2.APIService, found: list[Cause]
) -> None:
    for index, condition in enumerate(new.status.conditions):
        if condition.status not in STATUSES:
            found.append(not_supported(f"status.conditions[{index}].status", condition.status, STATUSES))


# Requests for certificates --------------------------------------------------------------------------------------------

Request = certificates_v1_pb2.CertificateSigningRequest
Condition = certificates_v1_pb2.CertificateSigningRequestCondition

APPROVED, DENIED, FAILED = "Approved", "Denied", "Failed"
LEGACY_SIGNER = "kubernetes.io/legacy-unknown"
USAGES = (
    "any", "cert sign", "client auth", "code signing", "content commitment", "crl sign", "data encipherment",
    "decipher only", "digital signature", "email protection", "encipher only", "ipsec end system", "ipsec tunnel",
    "ipsec user", "key agreement", "key encipherment", "microsoft sgc", "netscape sgc", "ocsp signing", "s/mime",
    "server auth", "signing", "timestamping",
)  # fmt: skip
SHORTEST_S = 600
_PEM = re.compile(rb"-----BEGIN ([A-Z0-9 ]+)-----\s(.*?)-----END \1-----", re.DOTALL)


def blocks(data: bytes) -> Iterable[tuple[str, bytes]]:
    """The blocks of a PEM file: the type, and the DER inside; empty where it is none."""
    for kind, body in _PEM.findall(data):
        try:
            yield kind.decode(), binascii.a2b_base64(b"".join(body.split()), strict_mode=True)
        except binascii.Error:
            yield kind.decode(), b""


def _request_problem(data: bytes) -> str:
    """Why that is no request whose signature is right (``validateCSR``); empty: it is."""
    kind, der = next(iter(blocks(data)), ("", b""))
    if kind != "CERTIFICATE REQUEST" or not der:
        return "PEM block type must be CERTIFICATE REQUEST"
    from cryptography import x509
    from cryptography.exceptions import UnsupportedAlgorithm

    try:
        asked = x509.load_der_x509_csr(der)
        if not asked.is_signature_valid:
            return _unsigned(type(asked.public_key()).__name__)
    except (ValueError, UnsupportedAlgorithm) as error:
        return f"x509: malformed certificate request: {error}"
    return ""


def _unsigned(kind: str) -> str:
    """How Go says that a signature is wrong, by the kind of key."""
    if kind.startswith("RSA"):
        return "crypto/rsa: verification error"
    return f"x509: {'Ed25519' if kind.startswith('Ed25519') else 'ECDSA'} verification failure"


def _certificate_problem(data: bytes) -> str:
    """``validateCertificate``."""
    if not data:
        return ""
    from cryptography import x509

    found = list(blocks(data))
    for kind, der in found:
        if kind != "CERTIFICATE":
            return f'only CERTIFICATE PEM blocks are allowed, found "{kind}"'
        try:
            x509.load_der_x509_certificate(der)
        except ValueError as error:
            return f"x509: malformed certificate: {error}"
    return "" if found else "must contain at least one CERTIFICATE PEM block"


def check_request(request: Request, found: list[Cause]) -> None:
    """``ValidateCertificateSigningRequestCreate``."""
    _check_spec(request, found)
    if request.spec.signerName == LEGACY_SIGNER:
        text = "the legacy signerName is not allowed via this API version"
        found.append(invalid("spec.signerName", LEGACY_SIGNER, text))
    else:
        _check_signer(request.spec.signerName, "spec.signerName", found)
    seconds = request.spec.expirationSeconds
    if request.spec.HasField("expirationSeconds") and seconds < SHORTEST_S:
        text = "may not specify a duration less than 600 seconds (10 minutes)"
        found.append(invalid("spec.expirationSeconds", seconds, text))


def _check_spec(request: Request, found: list[Cause]) -> None:
    spec = request.spec
    problem = _request_problem(spec.request)
    if problem:
        text = binascii.b2a_base64(spec.request, newline=False).decode()
        found.append(invalid("spec.request", text, problem))
    if not spec.usages:
        found.append(required("spec.usages"))
    for index, usage in enumerate(spec.usages):
        if usage not in USAGES:
            found.append(not_supported(f"spec.usages[{index}]", usage, USAGES))
    seen: set[str] = set()
    for index, usage in enumerate(spec.usages):
        if usage in seen:
            found.append(duplicate(f"spec.usages[{index}]", usage))
        seen.add(usage)


def _check_signer(name: str, path: str, found: list[Cause]) -> None:
    """``ValidateSignerName``."""
    if not name:
        found.append(required(path))
        return
    domain, *rest = name.split("/")
    if len(rest) != 1:
        text = "must be a fully qualified domain and path of the form 'example.com/signer-name'"
        found.append(invalid(path, name, text))
        return
    if len(domain) > 253:
        found.append(too_long(path, 253))
    for rule, part in ((names.dns_label, domain), (names.dns_subdomain, rest[0])):
        for label in part.split("."):
            problems = rule(label)
            found += [invalid(path, part, f'validating label "{label}": {problem}') for problem in problems]
            if problems:
                break
        if part is domain and "." not in domain:
            text = "should be a domain with at least two segments separated by dots"
            found.append(invalid(path, domain, text))
    most = 2 * 253 + 2
    if len(name) > most:
        found.append(too_long(path, most))


def _of_type(request: Request, kind: str) -> list[Condition]:
    return [one for one in request.status.conditions if one.type == kind]


def check_change(new: Request, old: Request, found: list[Cause], subresource: str) -> None:
    """Of an update of the whole (""), of ``approval`` or ``status``: what ``validateCertificateSigningRequest`` and
    ``…Update`` find."""
    _check_conditions(new, old, found)
    if new.status.certificate != old.status.certificate and (problem := _certificate_problem(new.status.certificate)):
        found.append(invalid("status.certificate", "<certificate data>", problem))
    path = "status.conditions"
    found += [
        forbidden(path, f'updates may not remove a condition of type "{kind}"')
        for kind in (APPROVED, DENIED, FAILED)
        if len(_of_type(new, kind)) < len(_of_type(old, kind))
    ]
    if subresource != "approval":
        for kind in (APPROVED, DENIED):
            after, before = _of_type(new, kind), _of_type(old, kind)
            if len(after) > len(before):
                found.append(forbidden(path, f'updates may not add a condition of type "{kind}"'))
            elif len(after) == len(before) and after != before:
                found.append(forbidden(path, f'updates may not modify a condition of type "{kind}"'))
    if new.status.certificate != old.status.certificate:
        if subresource != "status":
            found.append(forbidden("status.certificate", "updates may not set certificate content"))
        elif old.status.certificate:
            found.append(forbidden("status.certificate", "updates may not modify existing certificate content"))


def _check_conditions(new: Request, old: Request, found: list[Cause]) -> None:
    seen: set[str] = set()
    kinds = {one.type for one in old.status.conditions}
    for index, one in enumerate(new.status.conditions):
        path = f"status.conditions[{index}]"
        if not one.type:
            found.append(required(f"{path}.type"))
        supported = ("True",) if one.type in (APPROVED, DENIED, FAILED) else tuple(sorted(STATUSES))
        if not one.status:
            found.append(required(f"{path}.status"))
        elif one.status not in supported:
            found.append(not_supported(f"{path}.status", one.status, supported))
        other = {APPROVED: DENIED, DENIED: APPROVED}.get(one.type)
        if other in seen and not {APPROVED, DENIED} <= kinds:
            text = "Approved and Denied conditions are mutually exclusive"
            found.append(invalid("status.conditions", one.type, text))
        if one.type in seen:
            found.append(duplicate(f"{path}.type", one.type))
        seen.add(one.type)


def _check_request_update(new: Request, old: Request, found: list[Cause]) -> None:
    check_change(new, old, found, "")


RULES = {
    apiregistration_v1_pb2.APIService: Rules(
        _check_service, status_update=_check_service_status, name_rule=names.path_segment
    ),
    Request: Rules(check_request, _check_request_update, name_rule=names.path_segment),
}
