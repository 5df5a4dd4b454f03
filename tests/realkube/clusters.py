"""A real kube-apiserver with its etcd on loopback, and real components beside any API server.

All of it lives in one folder: etcd's data, certificates, tokens, kubeconfigs, logs. ``Components`` needs only a
kubeconfig: with one of ``kemu up``, the same components run against kemu.

The components are built from their Go modules without version stamps: they say ``v0.0.0-master``. kubectl reads the
version of the server only for ``kubectl version``.
"""

from __future__ import annotations

import contextlib
import json
import os
import ssl
import subprocess
import time
import urllib.error
import urllib.request
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from kemu.emulated.real import components
from tests.realkube import binaries, kubeconfigs, processes

ADMIN_TOKEN = "admin-token"
#: Users that know the tokens of this name: (token, user, groups).
USERS = (
    (ADMIN_TOKEN, "admin", "system:masters"),
    ("viewer-token", "viewer", ""),
    ("scheduler-token", "system:kube-scheduler", ""),
)
START_S = 90.0
STAGES = Path(__file__).parent / "stages.yaml"
#: What the workload kinds need: nothing here deletes, evicts or approves on its own but for these.
CONTROLLERS = (
    "deployment-controller",
    "replicaset-controller",
    "statefulset-controller",
    "daemonset-controller",
    "job-controller",
    "disruption-controller",
    "garbage-collector-controller",
    "namespace-controller",
)
#: ServiceAccount needs the tokens of service accounts. TaintNodesByCondition taints new nodes as not ready; only the
#: node lifecycle controller takes that taint off again, which runs only when asked for.
WITHOUT_ADMISSION = ("ServiceAccount", "TaintNodesByCondition")


class Components:
    """Real components with one kubeconfig. Ends all that it started, newest first."""

    def __init__(self, folder: Path, kubeconfig: Path) -> None:
        self.folder = folder
        self.kubeconfig = kubeconfig
        self.processes: list[processes.Process] = []

    def start_scheduler(
        self,
        configuration: Path | None = None,
        *options: str,
        kubeconfig: Path | None = None,
        leader_elect: bool = False,
    ) -> processes.Process:
        """The kube-scheduler. A ``configuration`` names its own kubeconfig, so does ``kubeconfig`` otherwise."""
        where: list[str] = (
            [f"--config={configuration}"]
            if configuration is not None
            else [f"--kubeconfig={kubeconfig or self.kubeconfig}", f"--leader-elect={str(leader_elect).lower()}"]
        )
        return self._start("kube-scheduler", *where, "--secure-port=0", *options)

    def start_controller_manager(self, controllers: Sequence[str] = CONTROLLERS, *options: str) -> processes.Process:
        return self._start(
            "kube-controller-manager",
            f"--kubeconfig={self.kubeconfig}",
            f"--controllers={','.join(controllers)}",
            "--leader-elect=false",
            "--secure-port=0",
            *options,
        )

    def start_kwok(self, stages: Path = STAGES, *options: str) -> processes.Process:
        """KWOK plays all nodes: they become Ready, their pods run; pods of Jobs complete."""
        return self._start(
            "kwok",
            f"--kubeconfig={self.kubeconfig}",
            f"--config={stages}",
            "--manage-all-nodes=true",
            "--node-ip=10.0.0.1",
            "--node-lease-duration-seconds=0",
            *options,
        )

    def kubectl(
        self, *arguments: str, stdin: str | None = None, check: bool = True, timeout_s: float = 60.0, **environment: str
    ) -> str:
        """What kubectl prints to stdout."""
        done = self.run_kubectl(*arguments, stdin=stdin, timeout_s=timeout_s, environment=environment)
        if check and done.returncode:
            raise RuntimeError(f"kubectl {' '.join(arguments)}: {done.returncode}\n{done.stderr}")
        return done.stdout

    def run_kubectl(
        self,
        *arguments: str,
        stdin: str | None = None,
        timeout_s: float = 60.0,
        environment: Mapping[str, str] | None = None,
        cwd: Path | None = None,
    ) -> subprocess.CompletedProcess[str]:
        """Its caches (discovery, HTTP) are this folder's, so that no other cluster's answers serve."""
        return subprocess.run(
            [
                binaries.find("kubectl"),
                f"--kubeconfig={self.kubeconfig}",
                f"--cache-dir={self.folder / 'kubectl'}",
                *arguments,
            ],
            input=stdin if stdin is not None else "",
            capture_output=True,
            text=True,
            check=False,
            timeout=timeout_s,
            cwd=cwd,
            env={**_environment(), **(environment or {})},
        )

    def stop(self) -> None:
        while self.processes:
            self.processes.pop().stop()

    def _start(self, name: str, *options: str) -> processes.Process:
        started = processes.Process(name, [binaries.find(name), *options], self.folder)
        self.processes.append(started)
        return started


class Cluster(Components):
    """A kube-apiserver v1.36.3 with etcd: HTTPS with static tokens (``USERS``), RBAC, a service account key."""

    def __init__(self, folder: Path, port: int) -> None:
        super().__init__(folder, folder / "admin.kubeconfig")
        self.url = f"https://127.0.0.1:{port}"
        self.authority = folder / "certificates" / "apiserver.crt"
        self.token = ADMIN_TOKEN

    @classmethod
    @contextlib.contextmanager
    def start(
        cls,
        folder: Path,
        *options: str,
        without_admission: Sequence[str] = WITHOUT_ADMISSION,
    ) -> Iterator[Cluster]:
        """Start both in ``folder``, wait until the server is ready; stop everything at the end."""
        folder.mkdir(parents=True, exist_ok=True)
        client_port, peer_port, port = components.free_ports(3)
        cluster = cls(folder, port)
        try:
            cluster._start_etcd(client_port, peer_port)
            cluster._start_server(client_port, port, without_admission, options)
            kubeconfigs.write(cluster.kubeconfig, cluster.url, ADMIN_TOKEN, cluster.authority)
            cluster._wait()
            yield cluster
        finally:
            cluster.stop()

    def restart_server(self, down_s: float = 1.0) -> None:
        """End the API server, and start it again on the same port; etcd goes on."""
        old = next(process for process in self.processes if process.name == "kube-apiserver")
        old.stop()
        self.processes.remove(old)
        time.sleep(down_s)
        self._start_server(*self._server)
        self._wait()

    def kubeconfig_of(self, user: str) -> Path:
        """A kubeconfig of one of ``USERS``."""
        token = next(token for token, name, _ in USERS if name == user)
        return kubeconfigs.write(self.folder / f"{token}.kubeconfig", self.url, token, self.authority)

    def request(
        self,
        method: str,
        path: str,
        body: object = None,
        headers: Mapping[str, str] | None = None,
        token: str = ADMIN_TOKEN,
    ) -> tuple[int, bytes]:
        """One request with JSON; status and body of the answer, whatever it is."""
        data = None if body is None else body if isinstance(body, bytes) else json.dumps(body).encode()
        asked = urllib.request.Request(
            self.url + path,
            data=data,
            method=method,
            headers={"Authorization": f"Bearer {token}", "Content-Type": "application/json", **(headers or {})},
        )
        context = ssl.create_default_context(cafile=str(self.authority))
        try:
            with urllib.request.urlopen(asked, context=context, timeout=30) as answer:
                return answer.status, answer.read()
        except urllib.error.HTTPError as refused:
            return refused.code, refused.read()

    def _start_etcd(self, client_port: int, peer_port: int) -> None:
        urls = f"http://127.0.0.1:{client_port}"
        peers = f"http://127.0.0.1:{peer_port}"
        self._start(
            "etcd",
            f"--data-dir={self.folder / 'etcd'}",
            f"--listen-client-urls={urls}",
            f"--advertise-client-urls={urls}",
            f"--listen-peer-urls={peers}",
            f"--initial-advertise-peer-urls={peers}",
            f"--initial-cluster=default={peers}",
            "--unsafe-no-fsync",
        )

    def _start_server(self, etcd: int, port: int, without_admission: Sequence[str], options: Sequence[str]) -> None:
        self._server = etcd, port, without_admission, options
        key = self.folder / "service-accounts.key"
        _write_key(key)
        tokens = self.folder / "tokens.csv"
        tokens.write_text("".join(f'{token},{user},{user}-id,"{groups}"\n' for token, user, groups in USERS))
        admission = [f"--disable-admission-plugins={','.join(without_admission)}"] if without_admission else []
        self._start(
            "kube-apiserver",
            f"--etcd-servers=http://127.0.0.1:{etcd}",
            "--bind-address=127.0.0.1",
            "--advertise-address=127.0.0.1",
            f"--secure-port={port}",
            f"--cert-dir={self.authority.parent}",
            f"--token-auth-file={tokens}",
            f"--service-account-key-file={key}",
            f"--service-account-signing-key-file={key}",
            "--service-account-issuer=https://kubernetes.default.svc",
            "--service-cluster-ip-range=10.96.0.0/16",
            "--authorization-mode=Node,RBAC",
            # The server's own Service would point back at loopback, which no endpoint may.
            "--endpoint-reconciler-type=none",
            *admission,
            *options,
        )

    def _wait(self) -> None:
        deadline = time.monotonic() + START_S
        while True:
            for process in self.processes:
                process.check()
            with contextlib.suppress(OSError):
                if self.authority.exists() and self.request("GET", "/readyz")[0] == 200:
                    return
            if time.monotonic() > deadline:
                raise TimeoutError(f"kube-apiserver is not ready after {START_S} s:\n{self.processes[-1].tail()}")
            time.sleep(0.2)


def _environment() -> dict[str, str]:
    return {key: value for key, value in os.environ.items() if key != "KUBECONFIG"}


def _write_key(path: Path) -> None:
    # Imported here: most users of these helpers never come here.
    from cryptography.hazmat.primitives import serialization
    from cryptography.hazmat.primitives.asymmetric import rsa

    key = rsa.generate_private_key(public_exponent=65537, key_size=2048)
    path.write_bytes(
        key.private_bytes(
            serialization.Encoding.PEM, serialization.PrivateFormat.TraditionalOpenSSL, serialization.NoEncryption()
        )
    )
