"""Idle watches, clients that list everything, and what a create takes beside them.

A client process of its own plays all clients over TLS, so that its work is not counted as the server's.
"""

from __future__ import annotations

import asyncio
import base64
import json
import math
import re
import signal
import ssl
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import aiohttp
import yaml

from kemu.errors import KemuError

START_S = 60.0
CREATORS = 32
"""Clients that create the pods of the beginning."""
CREATES_PER_S = 10.0
PAGE_BYTES = 1 << 20
NOBODY = "nobody"
"""The scheduler of the pods: they stay as they are."""


def load(
    *, watches: int = 1000, clients: int = 100, pods: int = 5000, lists_per_s: float = 10.0, seconds: float = 30.0
) -> dict[str, Any]:
    """``lists_per_s``: of all clients together; 0: as fast as they can, each one list after the other."""
    with tempfile.TemporaryDirectory(prefix="kemu-bench-") as folder, Server(Path(folder)) as server:
        figures = asyncio.run(_measure(server, watches, clients, pods, lists_per_s, seconds))
        return {**figures, "memory MiB": server.memory_mib()}


class Server:
    """A `kemu up` of our own."""

    def __init__(self, folder: Path, *arguments: str) -> None:
        self._folder = folder
        self._arguments = arguments or ("--nodes", "100")
        self._process: subprocess.Popen[bytes] | None = None
        self.url = ""
        self.headers: dict[str, str] = {}
        self.tls: ssl.SSLContext | None = None

    def __enter__(self) -> Server:
        kubeconfig = self._folder / "kubeconfig"
        command = [sys.executable, "-m", "kemu.cli.main", "up", *self._arguments, "--kubeconfig", str(kubeconfig)]
        command += ["--out", str(self._folder / "run")]
        self._process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
        until = time.monotonic() + START_S
        while time.monotonic() < until and self._process.poll() is None:
            if kubeconfig.exists() and kubeconfig.stat().st_size:
                self._read(yaml.safe_load(kubeconfig.read_text()))
                return self
            time.sleep(0.05)
        error = b""
        if self._process.poll() is not None and self._process.stderr is not None:
            error = self._process.stderr.read()
        self.__exit__()
        raise KemuError(f"kemu up did not start: {error.decode(errors='replace')[-500:]}")

    def _read(self, config: Mapping[str, Any]) -> None:
        cluster, user = config["clusters"][0]["cluster"], config["users"][0]["user"]
        self.url = cluster["server"]
        self.tls = ssl.create_default_context(cadata=base64.b64decode(cluster["certificate-authority-data"]).decode())
        self.headers = {"Authorization": f"Bearer {user['token']}"} if "token" in user else {}

    def memory_mib(self) -> float:
        """Resident memory now."""
        assert self._process is not None
        status = Path(f"/proc/{self._process.pid}/status").read_text()
        return round(int(re.findall(r"VmRSS:\s+(\d+) kB", status)[0]) / 1024, 1)

    def cpu_s(self) -> float:
        assert self._process is not None
        fields = Path(f"/proc/{self._process.pid}/stat").read_text().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / 100

    def __exit__(self, *_: object) -> None:
        process = self._process
        if process is None:
            return
        if process.poll() is None:
            process.send_signal(signal.SIGINT)
            try:
                process.wait(30)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
        if process.stderr is not None:
            process.stderr.close()


async def _measure(
    server: Server, watches: int, clients: int, pods: int, lists_per_s: float, seconds: float
) -> dict[str, Any]:
    connector = aiohttp.TCPConnector(limit=0, ssl=server.tls or False)
    timeout = aiohttp.ClientTimeout(total=None, sock_read=120)
    async with aiohttp.ClientSession(
        server.url, headers=server.headers, connector=connector, timeout=timeout
    ) as session:
        await _create_pods(session, pods)
        before = server.memory_mib()
        waiting = await _watch(session, watches)
        watched = server.memory_mib()
        cpu_s = server.cpu_s()
        load = Load(session, seconds)
        async with asyncio.TaskGroup() as group:
            group.create_task(load.create())
            for number in range(clients):
                group.create_task(load.list(number, clients / lists_per_s if lists_per_s else 0.0, clients))
        for task in waiting:
            task.cancel()
        await asyncio.gather(*waiting, return_exceptions=True)
        return {
            "create ms p50": load.percentile(50),
            "create ms p99": load.percentile(99),
            "creates": len(load.creates_s),
            "lists/s": round(load.codes[200] / seconds, 1),
            "429": load.codes[429],
            "without Retry-After": load.without_hint,
            "other refusals": sum(count for code, count in load.codes.items() if code not in (200, 429)),
            "list MiB": round(load.list_bytes / (1 << 20), 1),
            "server CPU": round((server.cpu_s() - cpu_s) / seconds, 2),
            "MiB with pods": before,
            "MiB with watches": watched,
        }


def _pod(name: str) -> dict[str, Any]:
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "labels": {"app": "load", "part": name[-1]}},
        "spec": {
            "schedulerName": NOBODY,
            "containers": [{"name": "main", "image": "registry/image:1", "resources": {"requests": {"cpu": "10m"}}}],
        },
    }


_PODS = "/api/v1/namespaces/default/pods"


async def _create_pods(session: aiohttp.ClientSession, pods: int) -> None:
    numbers = iter(range(pods))

    async def create() -> None:
        for number in numbers:
            async with session.post(_PODS, json=_pod(f"pod-{number:05}")) as answer:
                if answer.status != 201:
                    raise KemuError(f"a pod was refused: {answer.status} {(await answer.text())[:300]}")

    await asyncio.gather(*(create() for _ in range(CREATORS)))


async def _watch(session: aiohttp.ClientSession, watches: int) -> Sequence[asyncio.Task[None]]:
    """Watches that see nothing: of kinds and names that do not change."""
    begun = asyncio.Semaphore(0)

    async def one(number: int) -> None:
        query = {"watch": "true", "allowWatchBookmarks": "true", "fieldSelector": f"metadata.name=nobody-{number}"}
        async with session.get("/api/v1/namespaces/default/configmaps", params=query) as answer:
            begun.release()
            async for _ in answer.content:
                pass

    tasks = [asyncio.create_task(one(number)) for number in range(watches)]
    for _ in range(watches):
        await begun.acquire()
    return tasks


class Load:
    """What the clients do in the time that is measured."""

    def __init__(self, session: aiohttp.ClientSession, seconds: float) -> None:
        self._session = session
        self._until = time.monotonic() + seconds
        self.creates_s: list[float] = []
        self.codes: Counter[int] = Counter()
        """Of lists."""
        self.list_bytes = 0
        self.without_hint = 0
        """Answers with 429 that did not say when to come again."""

    async def create(self) -> None:
        number = 0
        while (begun := time.monotonic()) < self._until:
            number += 1
            async with self._session.post(_PODS, json=_pod(f"new-{number:05}")) as answer:
                await answer.read()
                if answer.status != 201:
                    raise KemuError(f"a create was refused: {answer.status} {(await answer.text())[:300]}")
            self.creates_s.append(time.monotonic() - begun)
            await asyncio.sleep(max(0.0, 1 / CREATES_PER_S - (time.monotonic() - begun)))

    async def list(self, number: int, every_s: float, clients: int) -> None:
        if every_s:
            await asyncio.sleep(every_s * number / clients)
        while (begun := time.monotonic()) < self._until:
            async with self._session.get(_PODS) as answer:
                size = 0
                async for chunk in answer.content.iter_chunked(PAGE_BYTES):
                    size += len(chunk)
                self.codes[answer.status] += 1
                if answer.status == 429:
                    self.without_hint += "Retry-After" not in answer.headers
                    await asyncio.sleep(float(answer.headers.get("Retry-After", 1)))
                elif answer.status == 200:
                    self.list_bytes = size
            if every_s:
                await asyncio.sleep(max(0.0, every_s - (time.monotonic() - begun)))

    def percentile(self, of: int) -> float:
        found = sorted(self.creates_s)
        return round(found[min(len(found) - 1, math.ceil(len(found) * of / 100) - 1)] * 1000, 1) if found else 0.0


if __name__ == "__main__":
    print(json.dumps(load(**json.loads(sys.argv[1]) if len(sys.argv) > 1 else {})))
