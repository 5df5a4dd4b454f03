"""An API server on loopback: `kemu up`, or the real one with its etcd."""

from __future__ import annotations

import contextlib
import sys
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

import yaml

from kemu.emulated.real import components, executables
from kemu.errors import KemuError
from kemu.lab.bench.clients import connections, parts

REAL, KEMU = "kube-apiserver", "kemu"
START_S = 90.0
_TOKEN = "bench"


class Server:
    """One that answers."""

    def __init__(self, kubeconfig: Path, processes: Sequence[parts.Process]) -> None:
        self.kubeconfig = kubeconfig
        self.access = connections.Access(kubeconfig)
        self._processes = processes

    def check(self) -> None:
        """Raises KemuError when one of its processes has ended."""
        for one in self._processes:
            one.check()

    def cpu_s(self) -> float:
        return sum(one.cpu_s() for one in self._processes)

    def rss_mib(self) -> float:
        return round(sum(one.rss_mib() for one in self._processes), 1)


@contextlib.contextmanager
def start(kind: str, folder: Path, options: Sequence[str] = ()) -> Iterator[Server]:
    """``kind``: REAL or KEMU; ``options`` of `kemu up`. Stopped at the end."""
    processes: list[parts.Process] = []
    try:
        if kind == KEMU:
            kubeconfig = _kemu(folder, options, processes)
        else:
            kubeconfig = _real(folder, processes)
        server = Server(kubeconfig, processes)
        connections.wait_until_ready(server.access, START_S, server.check)
        yield server
    finally:
        for one in reversed(processes):
            one.stop()


def _kemu(folder: Path, options: Sequence[str], processes: list[parts.Process]) -> Path:
    kubeconfig = folder / "kubeconfig"
    main = "from kemu.doors.cli.main import main; main()"
    places: list[str | Path] = ["--kubeconfig", kubeconfig, "--out", folder / "run"]
    command = [sys.executable, "-c", main, "up", "--json", *places, *options]
    processes.append(parts.Process("kemu", command, folder))
    deadline = time.monotonic() + START_S
    while not kubeconfig.exists():
        processes[0].check()
        if time.monotonic() > deadline:
            raise KemuError(f"kemu up wrote no kubeconfig within {START_S:.0f} s")
        time.sleep(0.05)
    return kubeconfig


def _real(folder: Path, processes: list[parts.Process]) -> Path:
    """Both with their defaults, but for what a cluster without its controllers cannot have."""
    found = executables.find("etcd", "kube-apiserver")
    client, peer, port = components.free_ports(3)
    url, peers = f"http://127.0.0.1:{client}", f"http://127.0.0.1:{peer}"
    etcd: list[str | Path] = [
        found["etcd"],
        f"--data-dir={folder / 'etcd'}",
        f"--listen-client-urls={url}",
        f"--advertise-client-urls={url}",
        f"--listen-peer-urls={peers}",
        f"--initial-advertise-peer-urls={peers}",
        f"--initial-cluster=default={peers}",
    ]
    processes.append(parts.Process("etcd", etcd, folder))
    tokens, key = folder / "tokens.csv", folder / "service-accounts.key"
    tokens.write_text(f'{_TOKEN},bench,bench,"system:masters"\n')
    key.write_bytes(_private_key())
    apiserver: list[str | Path] = [
        found["kube-apiserver"],
        f"--etcd-servers={url}",
        "--bind-address=127.0.0.1",
        f"--secure-port={port}",
        f"--cert-dir={folder / 'certificates'}",
        f"--token-auth-file={tokens}",
        f"--service-account-key-file={key}",
        f"--service-account-signing-key-file={key}",
        "--service-account-issuer=https://kubernetes.default.svc",
        "--service-cluster-ip-range=10.96.0.0/16",
        "--authorization-mode=Node,RBAC",
        # Nothing would make the tokens of service accounts, nor take the taint of new nodes away.
        "--disable-admission-plugins=ServiceAccount,TaintNodesByCondition",
    ]
    processes.append(parts.Process("kube-apiserver", apiserver, folder))
    document = {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [
            {"name": "real", "cluster": {"server": f"https://127.0.0.1:{port}", "insecure-skip-tls-verify": True}}
        ],
        "users": [{"name": "real", "user": {"token": _TOKEN}}],
        "contexts": [{"name": "real", "context": {"cluster": "real", "user": "real"}}],
        "current-context": "real",
    }
    kubeconfig = folder / "kubeconfig"
    kubeconfig.write_text(yaml.safe_dump(document))
    return kubeconfig


def _private_key() -> bytes:
    # Imported here: only a real API server needs it.
    from cryptography.hazmat.primitives import serialization
    from cryptography.hazmat.primitives.asymmetric import rsa

    key = rsa.generate_private_key(public_exponent=65537, key_size=2048)
    plain = serialization.NoEncryption()
    return key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.TraditionalOpenSSL, plain)
