"""The real parts of a live comparison: etcd, kube-apiserver and kube-scheduler as processes of this machine.

They come from the module proxy's sources, built once into a cache (``~/.cache/kemu-tools``), or from PATH. With a
kubeconfig of another API server, that of ``kemu up`` for example, only the scheduler is started.
"""

from __future__ import annotations

import asyncio
import contextlib
import ctypes
import json
import os
import shutil
import signal
import socket
import ssl
import urllib.error
import urllib.request
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from kemu.errors import KemuError

VERSION = "v1.36.3"
TOKEN = "live"
START_S = 90.0
STOP_S = 10.0
_PR_SET_PDEATHSIG = 1
_MEMORY = Path("/dev/shm")
_LIMIT = 8 << 20
"""Bytes of one line of a log."""


class PartMissing(KemuError):
    """A real part is not installed; the text says which one and where it was looked for."""


def find(name: str) -> Path:
    """The executable of a real part. Raises PartMissing."""
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "kemu-tools"
    built = cache / f"{name}-{VERSION}"
    if os.access(built, os.X_OK):
        return built
    found = shutil.which(name)
    if found is None:
        raise PartMissing(f"{name} {VERSION} is needed, in {cache} (as {built.name}) or on PATH")
    return Path(found)


class Parts:
    """Processes, ended newest first; none outlives this one."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        """Certificates, logs, configurations."""
        self._processes: list[tuple[str, asyncio.subprocess.Process]] = []
        self._readers: list[asyncio.Task[None]] = []
        self._data: Path | None = None

    async def start_cluster(self) -> Path:
        """etcd and kube-apiserver; returns a kubeconfig of an administrator. Raises PartMissing and KemuError."""
        etcd, peers, port = _free_ports(3)
        self._data = _data_folder(self.folder)
        await self._start(
            "etcd",
            f"--data-dir={self._data}",
            f"--listen-client-urls=http://127.0.0.1:{etcd}",
            f"--advertise-client-urls=http://127.0.0.1:{etcd}",
            f"--listen-peer-urls=http://127.0.0.1:{peers}",
            f"--initial-advertise-peer-urls=http://127.0.0.1:{peers}",
            f"--initial-cluster=default=http://127.0.0.1:{peers}",
        )
        key = self.folder / "service-accounts.key"
        _write_key(key)
        tokens = self.folder / "tokens.csv"
        tokens.write_text(f'{TOKEN},admin,admin,"system:masters"\n')
        certificates = self.folder / "certificates"
        await self._start(
            "kube-apiserver",
            f"--etcd-servers=http://127.0.0.1:{etcd}",
            "--bind-address=127.0.0.1",
            "--advertise-address=127.0.0.1",
            f"--secure-port={port}",
            f"--cert-dir={certificates}",
            f"--token-auth-file={tokens}",
            f"--service-account-key-file={key}",
            f"--service-account-signing-key-file={key}",
            "--service-account-issuer=https://kubernetes.default.svc",
            "--service-cluster-ip-range=10.96.0.0/16",
            "--authorization-mode=RBAC",
            "--endpoint-reconciler-type=none",
            "--max-requests-inflight=2000",
            "--max-mutating-requests-inflight=1000",
            # What needs controllers that do not run here, or changes nodes as no kubelet of ours undoes it.
            "--disable-admission-plugins=ServiceAccount,TaintNodesByCondition,StorageObjectInUseProtection",
        )
        url, authority = f"https://127.0.0.1:{port}", certificates / "apiserver.crt"
        await self._until_ready(url, authority)
        kubeconfig = self.folder / "kubeconfig"
        kubeconfig.write_text(json.dumps(_kubeconfig(url, authority)))
        return kubeconfig

    async def start_scheduler(
        self, kubeconfig: Path, profiles: Sequence[Mapping[str, Any]], hear: Callable[[str], object]
    ) -> None:
        """The kube-scheduler; ``hear`` gets its log, line by line."""
        configuration = {
            "apiVersion": "kubescheduler.config.k8s.io/v1",
            "kind": "KubeSchedulerConfiguration",
            "leaderElection": {"leaderElect": False},
            "clientConnection": {"kubeconfig": str(kubeconfig), "qps": 5000, "burst": 10000},
            "percentageOfNodesToScore": 100,
            "profiles": [_with_kinds(profile) for profile in profiles],
        }
        path = self.folder / "scheduler.json"
        path.write_text(json.dumps(configuration))
        await self._start(
            "kube-scheduler",
            f"--config={path}",
            "--secure-port=0",
            # An answer kept for pods of one template is no decision of its own.
            "--feature-gates=OpportunisticBatching=false",
            "--v=3",
            "--vmodule=schedule_one=10,eventhandlers=4",
            hear=hear,
        )

    def check(self) -> None:
        """Raises KemuError when one of them has ended."""
        for name, process in self._processes:
            if process.returncode is not None:
                raise KemuError(f"{name} has ended with {process.returncode}: {self.folder / name}.log")

    async def stop(self) -> None:
        for name, process in reversed(self._processes):
            if process.returncode is None:
                with contextlib.suppress(ProcessLookupError):
                    process.terminate()
                try:
                    # A real API server waits for its watches.
                    await asyncio.wait_for(process.wait(), STOP_S if name != "kube-apiserver" else 0.5)
                except TimeoutError:
                    process.kill()
                    await process.wait()
        for reader in self._readers:
            await reader
        if self._data is not None:
            shutil.rmtree(self._data, ignore_errors=True)

    async def _start(self, name: str, *options: str, hear: Callable[[str], object] | None = None) -> None:
        log = self.folder / f"{name}.log"
        output = log.open("wb")
        libc = ctypes.CDLL(None, use_errno=True)
        with output:
            process = await asyncio.create_subprocess_exec(
                find(name),
                *options,
                stdin=asyncio.subprocess.DEVNULL,
                stdout=output,
                stderr=asyncio.subprocess.PIPE if hear is not None else output,
                cwd=self.folder,
                env={key: value for key, value in os.environ.items() if key != "KUBECONFIG"},
                preexec_fn=lambda: libc.prctl(_PR_SET_PDEATHSIG, signal.SIGKILL),
                limit=_LIMIT,
            )
        self._processes.append((name, process))
        if hear is not None:
            self._readers.append(asyncio.create_task(_read(process, hear, log), name=f"log of {name}"))

    async def _until_ready(self, url: str, authority: Path) -> None:
        deadline = asyncio.get_running_loop().time() + START_S
        while not await asyncio.to_thread(_is_ready, url, authority):
            self.check()
            if asyncio.get_running_loop().time() > deadline:
                raise KemuError(f"kube-apiserver is not ready after {START_S:g} s: {self.folder}/kube-apiserver.log")
            await asyncio.sleep(0.2)


async def _read(process: asyncio.subprocess.Process, hear: Callable[[str], object], log: Path) -> None:
    """Hands lines on. What is no decision goes to the file as well, for whoever wonders."""
    assert process.stderr is not None
    with log.open("ab") as kept:
        while line := await process.stderr.readline():
            if b" scored node for pod" not in line and b"final score for pod" not in line:
                kept.write(line)
            hear(line.decode(errors="replace"))


def _is_ready(url: str, authority: Path) -> bool:
    if not authority.exists():
        return False
    request = urllib.request.Request(f"{url}/readyz", headers={"Authorization": f"Bearer {TOKEN}"})
    try:
        context = ssl.create_default_context(cafile=str(authority))
        with urllib.request.urlopen(request, context=context, timeout=5) as answer:
            return bool(answer.status == 200)
    except (OSError, urllib.error.HTTPError):
        return False


def _with_kinds(profile: Mapping[str, Any]) -> dict[str, Any]:
    """As the real scheduler wants them: arguments say what they are."""
    found = dict(profile)
    if "pluginConfig" in found:
        found["pluginConfig"] = [
            {
                "name": one["name"],
                "args": {
                    "apiVersion": "kubescheduler.config.k8s.io/v1",
                    "kind": f"{one['name']}Args",
                    **one["args"],
                },
            }
            for one in found["pluginConfig"]
        ]
    return found


def _kubeconfig(url: str, authority: Path) -> dict[str, Any]:
    return {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": "live", "cluster": {"server": url, "certificate-authority": str(authority)}}],
        "users": [{"name": "live", "user": {"token": TOKEN}}],
        "contexts": [{"name": "live", "context": {"cluster": "live", "user": "live"}}],
        "current-context": "live",
    }


def _data_folder(folder: Path) -> Path:
    """In memory where there is some: etcd waits for its disk at each write."""
    if os.access(_MEMORY, os.W_OK):
        data = _MEMORY / f"kemu-live-{os.getpid()}"
        data.mkdir(mode=0o700, exist_ok=True)
        return data
    return folder / "etcd"


def _write_key(path: Path) -> None:
    from cryptography.hazmat.primitives import serialization
    from cryptography.hazmat.primitives.asymmetric import rsa

    key = rsa.generate_private_key(public_exponent=65537, key_size=2048)
    encoding, form = serialization.Encoding.PEM, serialization.PrivateFormat.TraditionalOpenSSL
    path.write_bytes(key.private_bytes(encoding, form, serialization.NoEncryption()))


def _free_ports(count: int) -> list[int]:
    with contextlib.ExitStack() as stack:
        held = [stack.enter_context(socket.socket()) for _ in range(count)]
        for one in held:
            one.bind(("127.0.0.1", 0))
        return [int(one.getsockname()[1]) for one in held]
