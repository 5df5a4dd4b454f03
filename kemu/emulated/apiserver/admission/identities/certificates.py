"""CertificateApproval, CertificateSigning and CertificateSubjectRestriction, and who asks for a certificate, which
Kubernetes' registry notes."""

from __future__ import annotations

from kemu import errors
from kemu.emulated.apiserver.admission.base import Plugin
from kemu.emulated.apiserver.authorization import requesters
from kemu.emulated.apiserver.authorization.attributes import Attributes
from kemu.emulated.objects import identities
from kemu.emulated.objects.resources import Resource
from kemu.emulated.objects.validation.control_plane.registrations import Request, blocks

KIND = "certificatesigningrequests"
GROUP = "certificates.k8s.io"
CLIENT_SIGNER = "kubernetes.io/kube-apiserver-client"


class Certificates(Plugin[Request]):
    @classmethod
    def concerns(cls, resource: Resource) -> bool:
        return resource.plural == KIND

    async def create(self, resource: Resource, obj: Request) -> None:
        spec, asking = obj.spec, requesters.ASKING.get()
        for field in ("username", "uid", "groups", "extra"):
            spec.ClearField(field)
        if asking is not None:
            user = asking.user
            spec.username = user.name
            if user.uid:
                spec.uid = user.uid
            spec.groups.extend(user.groups)
            for key, values in user.extra:
                spec.extra[key].items.extend(values)

    async def validate(self, resource: Resource, obj: Request) -> None:
        if obj.spec.signerName == CLIENT_SIGNER and identities.MASTERS in _organizations(obj.spec.request):
            raise _forbidden(obj, f"use of {CLIENT_SIGNER} signer with {identities.MASTERS} group is not allowed")

    async def validate_update(self, resource: Resource, subresource: str, new: Request, old: Request) -> None:
        if subresource == "approval":
            _require("approve", old, "user not permitted to approve requests with")
        elif subresource == "status" and new.status != old.status:
            _require("sign", old, "user not permitted to sign requests with")


def _require(verb: str, request: Request, text: str) -> None:
    """``IsAuthorizedForSignerName``."""
    asking, signer = requesters.ASKING.get(), request.spec.signerName
    if asking is None:
        return
    for name in (signer, f"{signer.partition('/')[0]}/*"):
        if asking.allows(Attributes(verb, GROUP, "signers", "", "", name, "")):
            return
    raise _forbidden(request, f'{text} signerName "{signer}"')


def _organizations(data: bytes) -> list[str]:
    from cryptography import x509

    kind, der = next(iter(blocks(data)), ("", b""))
    if kind != "CERTIFICATE REQUEST":
        return []
    subject = x509.load_der_x509_csr(der).subject
    return [str(one.value) for one in subject.get_attributes_for_oid(x509.NameOID.ORGANIZATION_NAME)]


def _forbidden(request: Request, text: str) -> errors.Forbidden:
    name = request.metadata.name
    return errors.Forbidden(f'{KIND}.{GROUP} "{name}" is forbidden: {text}', kind=KIND, name=name)
