"""A certificate authority for one cluster, and what it signs.

Keys are on the curve P-256: they take no time to make, and every client of Kubernetes knows them.
"""

from __future__ import annotations

import contextlib
import datetime as dt
import ipaddress
from collections.abc import Sequence
from dataclasses import dataclass, field

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from kemu.emulated.objects.identities import User

BEGIN = dt.datetime(2000, 1, 1, tzinfo=dt.UTC)
"""A client may take the virtual time of a cluster for its own, which may begin in any year."""
VALIDITY = dt.timedelta(days=365)
BACKDATE, SHORT = dt.timedelta(minutes=5), dt.timedelta(hours=8)
"""Before now the certificates of requests begin; those that last shorter than ``SHORT`` do not end earlier for it."""
_KEY_USAGES = {
    "signing": ("digital_signature",),
    "digital signature": ("digital_signature",),
    "content commitment": ("content_commitment",),
    "key encipherment": ("key_encipherment",),
    "key agreement": ("key_agreement",),
    "data encipherment": ("data_encipherment",),
    "cert sign": ("key_cert_sign",),
    "crl sign": ("crl_sign",),
    "encipher only": ("encipher_only",),
    "decipher only": ("decipher_only",),
}
_ALL_KEY_USAGES = (
    "digital_signature", "content_commitment", "key_encipherment", "data_encipherment", "key_agreement",
    "key_cert_sign", "crl_sign", "encipher_only", "decipher_only",
)  # fmt: skip
_EXTENDED_USAGES = {
    "any": ExtendedKeyUsageOID.ANY_EXTENDED_KEY_USAGE,
    "server auth": ExtendedKeyUsageOID.SERVER_AUTH,
    "client auth": ExtendedKeyUsageOID.CLIENT_AUTH,
    "code signing": ExtendedKeyUsageOID.CODE_SIGNING,
    "email protection": ExtendedKeyUsageOID.EMAIL_PROTECTION,
    "s/mime": ExtendedKeyUsageOID.EMAIL_PROTECTION,
    "ipsec end system": x509.ObjectIdentifier("1.3.6.1.5.5.7.3.5"),
    "ipsec tunnel": x509.ObjectIdentifier("1.3.6.1.5.5.7.3.6"),
    "ipsec user": x509.ObjectIdentifier("1.3.6.1.5.5.7.3.7"),
    "timestamping": ExtendedKeyUsageOID.TIME_STAMPING,
    "ocsp signing": ExtendedKeyUsageOID.OCSP_SIGNING,
    "microsoft sgc": x509.ObjectIdentifier("1.3.6.1.4.1.311.10.3.3"),
    "netscape sgc": x509.ObjectIdentifier("2.16.840.1.113730.4.1"),
}
AUTHORITY = "kemu"
"""The common name of an authority."""
USUAL_NAMES = (
    "kubernetes", "kubernetes.default", "kubernetes.default.svc", "kubernetes.default.svc.cluster.local", "localhost",
)  # fmt: skip
"""Usual names of an API server, as kubeadm has them."""


@dataclass(frozen=True)
class KeyPair:
    """A certificate and its key, in PEM."""

    certificate: bytes
    key: bytes = field(repr=False)


class Authority:
    """Signs what servers and clients of one cluster show to each other."""

    def __init__(self, key: ec.EllipticCurvePrivateKey, certificate: x509.Certificate) -> None:
        self._key = key
        self._certificate = certificate

    @classmethod
    def make(cls) -> Authority:
        key = ec.generate_private_key(ec.SECP256R1())
        subject = _name(AUTHORITY)
        builder = _builder(subject, subject, key).add_extension(x509.BasicConstraints(True, 0), critical=True)
        usage = x509.KeyUsage(
            digital_signature=True, content_commitment=False, key_encipherment=False, data_encipherment=False,
            key_agreement=False, key_cert_sign=True, crl_sign=True, encipher_only=False, decipher_only=False,
        )  # fmt: skip
        builder = builder.add_extension(usage, critical=True)
        builder = builder.add_extension(x509.SubjectKeyIdentifier.from_public_key(key.public_key()), critical=False)
        return cls(key, builder.sign(key, hashes.SHA256()))

    @classmethod
    def load(cls, pair: KeyPair) -> Authority:
        """Raises ValueError for what is no such pair."""
        key = serialization.load_pem_private_key(pair.key, None)
        if not isinstance(key, ec.EllipticCurvePrivateKey):
            raise ValueError("the key of the authority is none on an elliptic curve")
        return cls(key, x509.load_pem_x509_certificate(pair.certificate))

    @property
    def pair(self) -> KeyPair:
        return KeyPair(self.certificate, _pem(self._key))

    @property
    def certificate(self) -> bytes:
        """PEM, for those who have to trust it."""
        return self._certificate.public_bytes(serialization.Encoding.PEM)

    def server(self, addresses: Sequence[str]) -> KeyPair:
        """For a server at these addresses or names, beside the usual ones of an API server."""
        names: list[x509.GeneralName] = []
        for one in dict.fromkeys((*USUAL_NAMES, "127.0.0.1", "::1", *addresses)):
            try:
                names.append(x509.IPAddress(ipaddress.ip_address(one)))
            except ValueError:
                names.append(x509.DNSName(one))
        return self._sign(_name("kube-apiserver"), ExtendedKeyUsageOID.SERVER_AUTH, names)

    def client(self, user: User) -> KeyPair:
        """For a user of that name and those groups, as kubeadm writes them into certificates."""
        return self._sign(_name(user.name, user.groups), ExtendedKeyUsageOID.CLIENT_AUTH, ())

    def sign_request(
        self, request: x509.CertificateSigningRequest, usages: Sequence[str], ttl: dt.timedelta = VALIDITY
    ) -> bytes:
        """What was asked for, in PEM (``PermissiveSigningPolicy``). ``usages``: as in a CertificateSigningRequest.
        Times are those of the machine, by which TLS judges certificates."""
        now, ends = dt.datetime.now(dt.UTC), self._certificate.not_valid_after_utc
        until = now + ttl - (BACKDATE if ttl >= SHORT else dt.timedelta())
        builder = x509.CertificateBuilder().subject_name(request.subject).issuer_name(self._certificate.subject)
        builder = builder.public_key(request.public_key()).serial_number(x509.random_serial_number())
        builder = builder.not_valid_before(now - BACKDATE).not_valid_after(min(until, ends))
        builder = builder.add_extension(x509.BasicConstraints(False, None), critical=True)
        wanted = {name for usage in usages for name in _KEY_USAGES.get(usage, ())}
        if wanted:
            # The last two mean nothing without a key agreement.
            kept = wanted if "key_agreement" in wanted else wanted - {"encipher_only", "decipher_only"}
            builder = builder.add_extension(
                x509.KeyUsage(**{name: name in kept for name in _ALL_KEY_USAGES}), critical=True
            )
        extended = [_EXTENDED_USAGES[usage] for usage in sorted(set(usages)) if usage in _EXTENDED_USAGES]
        if extended:
            builder = builder.add_extension(x509.ExtendedKeyUsage(list(dict.fromkeys(extended))), critical=False)
        identifier = x509.AuthorityKeyIdentifier.from_issuer_public_key(self._key.public_key())
        builder = builder.add_extension(identifier, critical=False)
        with contextlib.suppress(x509.ExtensionNotFound):
            names = request.extensions.get_extension_for_class(x509.SubjectAlternativeName)
            builder = builder.add_extension(names.value, critical=not request.subject.rdns)
        return builder.sign(self._key, hashes.SHA256()).public_bytes(serialization.Encoding.PEM)

    def _sign(self, subject: x509.Name, usage: x509.ObjectIdentifier, names: Sequence[x509.GeneralName]) -> KeyPair:
        key = ec.generate_private_key(ec.SECP256R1())
        builder = _builder(subject, self._certificate.subject, key)
        builder = builder.add_extension(x509.BasicConstraints(False, None), critical=True)
        builder = builder.add_extension(x509.ExtendedKeyUsage([usage]), critical=False)
        identifier = x509.AuthorityKeyIdentifier.from_issuer_public_key(self._key.public_key())
        builder = builder.add_extension(identifier, critical=False)
        if names:
            builder = builder.add_extension(x509.SubjectAlternativeName(names), critical=False)
        signed = builder.sign(self._key, hashes.SHA256())
        return KeyPair(signed.public_bytes(serialization.Encoding.PEM), _pem(key))


def _builder(subject: x509.Name, issuer: x509.Name, key: ec.EllipticCurvePrivateKey) -> x509.CertificateBuilder:
    now = dt.datetime.now(dt.UTC)
    builder = x509.CertificateBuilder().subject_name(subject).issuer_name(issuer).public_key(key.public_key())
    builder = builder.serial_number(x509.random_serial_number())
    return builder.not_valid_before(BEGIN).not_valid_after(now + VALIDITY)


def _name(common: str, organizations: Sequence[str] = ()) -> x509.Name:
    parts = [x509.NameAttribute(NameOID.ORGANIZATION_NAME, one) for one in organizations]
    return x509.Name([*parts, x509.NameAttribute(NameOID.COMMON_NAME, common)])


def _pem(key: ec.EllipticCurvePrivateKey) -> bytes:
    return key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
