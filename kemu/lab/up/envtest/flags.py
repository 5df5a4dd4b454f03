"""The command line of kube-apiserver, as far as an API server of kemu's heeds it."""

from __future__ import annotations

import argparse
import ipaddress
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from kemu.errors import KemuError

_HARMLESS = (
    "--allow-privileged",
    "--etcd-servers",
    "--insecure-port",
    "--insecure-bind-address",
    "--service-account-key-file",
    "--api-audiences",
)
"""Flags of envtest that mean nothing here, and about which nothing is said."""


_USUAL_RANGE = "10.0.0.0/24"
"""Of kube-apiserver itself."""


@dataclass(frozen=True)
class Flags:
    host: str
    port: int
    certificate: Path | None
    """PEM files of the server; None: both are made."""
    key: Path | None
    client_ca: Path | None
    tokens: Path | None
    account_key: Path | None
    """PEM file of the key that signs tokens of service accounts; None: one is made."""
    issuer: str
    """Empty: the usual one."""
    modes: tuple[str, ...]
    enabled: tuple[str, ...]
    disabled: tuple[str, ...]
    service_ranges: tuple[str, ...]


def parse(arguments: Sequence[str]) -> Flags:
    """Says on stderr which flags are not heeded. Raises KemuError."""
    parser = argparse.ArgumentParser(
        prog="kube-apiserver",
        allow_abbrev=False,
        description="kemu's API server alone, in the place of kube-apiserver: nothing schedules, controls or runs "
        "pods. It has its own store. KEMU_ENVTEST_OUT=DIR keeps a run folder below DIR, for kemu story. Other flags of "
        " kube-apiserver are taken, and not heeded.",
    )
    parser.add_argument("--bind-address", default="0.0.0.0", metavar="ADDRESS")
    parser.add_argument("--secure-port", type=int, default=6443, metavar="PORT")
    parser.add_argument("--cert-dir", type=Path, metavar="DIR", help="has apiserver.crt and apiserver.key")
    parser.add_argument("--tls-cert-file", type=Path, metavar="FILE")
    parser.add_argument("--tls-private-key-file", type=Path, metavar="FILE")
    parser.add_argument("--client-ca-file", type=Path, metavar="FILE")
    parser.add_argument("--token-auth-file", type=Path, metavar="FILE")
    parser.add_argument("--service-account-signing-key-file", type=Path, metavar="FILE")
    parser.add_argument("--service-account-issuer", action="append", default=[], metavar="URL", help="the first counts")
    parser.add_argument("--service-cluster-ip-range", default="", metavar="CIDR,...", help="of Services' addresses")
    for name in ("authorization-mode", "enable-admission-plugins", "disable-admission-plugins"):
        parser.add_argument(f"--{name}", action="append", default=[], metavar="NAME,...")
    try:
        read, others = parser.parse_known_args(arguments)
    except SystemExit as end:
        if not end.code:
            raise
        raise KemuError("its flags cannot be read, see above") from None
    for one in others:
        if one.startswith("-") and one.partition("=")[0] not in _HARMLESS:
            print(f"kube-apiserver: kemu does not heed {one}", file=sys.stderr)
    if not 0 <= read.secure_port <= 65535:
        raise KemuError(f"--secure-port {read.secure_port}: ports end at 65535")
    certificate, key = read.tls_cert_file, read.tls_private_key_file
    if (certificate is None) != (key is None):
        raise KemuError("--tls-cert-file and --tls-private-key-file go together")
    if certificate is None and read.cert_dir is not None and (read.cert_dir / "apiserver.crt").exists():
        certificate, key = read.cert_dir / "apiserver.crt", read.cert_dir / "apiserver.key"
    return Flags(
        host=read.bind_address,
        port=read.secure_port,
        certificate=certificate,
        key=key,
        client_ca=read.client_ca_file,
        tokens=read.token_auth_file,
        account_key=read.service_account_signing_key_file,
        issuer=read.service_account_issuer[0] if read.service_account_issuer else "",
        modes=_listed(read.authorization_mode),
        enabled=_listed(read.enable_admission_plugins),
        disabled=_listed(read.disable_admission_plugins),
        service_ranges=_ranges(_listed([read.service_cluster_ip_range])),
    )


def _ranges(texts: Sequence[str]) -> tuple[str, ...]:
    """Raises KemuError."""
    try:
        return tuple(str(ipaddress.ip_network(text, strict=False)) for text in texts or (_USUAL_RANGE,))
    except ValueError as error:
        raise KemuError(f"--service-cluster-ip-range: {error}") from None


def _listed(texts: Sequence[str]) -> tuple[str, ...]:
    return tuple(name for text in texts for name in text.split(",") if name)
