"""TLS between cells on different machines.

A cell that listens on anything but loopback makes a key and a certificate for itself when it begins. The key never
leaves its process. The certificate reaches the driver with the address of the cell, and from the driver everybody who
calls there: they accept this one certificate at this one address, so nothing has to be signed. Callers prove who they
are by their tokens (``tokens``).
"""

from __future__ import annotations

import datetime as dt
import ipaddress
from dataclasses import dataclass, field

import grpc

_MARGIN = dt.timedelta(days=1)
"""The clocks of machines differ."""
_VALIDITY = dt.timedelta(days=365)
"""Longer than any run: the certificate is accepted nowhere else, and ends with its process."""


@dataclass(frozen=True)
class Identity:
    """What a server proves to be the one that its callers look for."""

    certificate: bytes
    """PEM. Public."""
    key: bytes = field(repr=False)
    """PEM."""

    def credentials(self) -> grpc.ServerCredentials:
        return grpc.ssl_server_credentials([(self.key, self.certificate)])


def is_loopback(address: str) -> bool:
    """Whether no other machine reaches this address."""
    try:
        return ipaddress.ip_address(address).is_loopback
    except ValueError:
        return address == "localhost"


def make(address: str) -> Identity:
    """For a server at this address, or at this name of a machine."""
    # Imported on use: most runs stay on one machine.
    from cryptography import x509
    from cryptography.hazmat.primitives import hashes, serialization
    from cryptography.hazmat.primitives.asymmetric import ec

    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "kemu cell")])
    try:
        place: x509.GeneralName = x509.IPAddress(ipaddress.ip_address(address))
    except ValueError:
        place = x509.DNSName(address)
    now = dt.datetime.now(dt.UTC)
    certificate = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - _MARGIN)
        .not_valid_after(now + _VALIDITY)
        .add_extension(x509.SubjectAlternativeName([place]), critical=False)
        .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        .sign(key, hashes.SHA256())
    )
    return Identity(
        certificate.public_bytes(serialization.Encoding.PEM),
        key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()),
    )
