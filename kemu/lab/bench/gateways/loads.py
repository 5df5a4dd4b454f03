"""Idle watches, clients that list everything, and what a create takes beside them.

The server, the clients that create, and all others are a process each, so that no work counts as another's.
"""

from __future__ import annotations

import asyncio
import base64
import contextlib
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
from collections.abc import AsyncIterator, Mapping, Sequence
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
        self.address: dict[str, Any] = {}
        """``url``, ``authority`` (PEM) and ``headers``."""

    def __enter__(self) -> Server:
        kubeconfig = self._folder / "kubeconfig"
        command = [sys.executable, "-m", "kemu.doors.cli.main", "up", *self._arguments, "--kubeconfig", str(kubeconfig)]
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
        self.address = {
            "url": cluster["server"],
            "authority": base64.b64decode(cluster.get("certificate-authority-data", "")).decode(),
            "headers": {"Authorization": f"Bearer {user['token']}"} if "token" in user else {},
        }

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
    async with _session(server.address) as session:
        await _create_pods(session, pods)
        before = server.memory_mib()
        others = {"address": server.address, "watches": watches, "clients": clients, "lists_per_s": lists_per_s,
                  "seconds": seconds}  # fmt: skip
        process = await asyncio.create_subprocess_exec(
            sys.executable, "-m", "kemu.lab.bench.gateways.loads", json.dumps(others), stdout=asyncio.subprocess.PIPE
        )
        assert process.stdout is not None
        await process.stdout.readline()
        watched, cpu_s = server.memory_mib(), server.cpu_s()
        creates = await _create_and_time(session, seconds)
        used_s = server.cpu_s() - cpu_s
        lists = json.loads(await process.stdout.readline() or "{}")
        if await process.wait() or not lists:
            raise KemuError("the clients that list have failed")
        return {
            "create ms p50": _percentile(creates, 50),
            "create ms p99": _percentile(creates, 99),
            "creates": len(creates),
            **lists,
            "server CPU": round(used_s / seconds, 2),
            "MiB with pods": before,
            "MiB with watches": watched,
        }


@contextlib.asynccontextmanager
async def _session(address: Mapping[str, Any]) -> AsyncIterator[aiohttp.ClientSession]:
    tls = ssl.create_default_context(cadata=address["authority"]) if address["authority"] else False
    connector = aiohttp.TCPConnector(limit=0, ssl=tls)
    timeout = aiohttp.ClientTimeout(total=None, sock_read=120)
    async with aiohttp.ClientSession(
        address["url"], headers=address["headers"], connector=connector, timeout=timeout
    ) as session:
        yield session


async def _others(
    address: Mapping[str, Any], watches: int, clients: int, lists_per_s: float, seconds: float
) -> dict[str, Any]:
    """What the second process does: everything but the creates."""
    async with _session(address) as session:
        waiting = await _watch(session, watches)
        print("ready", flush=True)
        lists = Lists(session, seconds)
        async with asyncio.TaskGroup() as group:
            for number in range(clients):
                group.create_task(lists.go_on(number, clients / lists_per_s if lists_per_s else 0.0, clients))
        for task in waiting:
            task.cancel()
        await asyncio.gather(*waiting, return_exceptions=True)
        return lists.figures()


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


async def _create_and_time(session: aiohttp.ClientSession, seconds: float) -> list[float]:
    """Create a pod from time to time. Returns how long each took, in seconds."""
    took: list[float] = []
    until = time.monotonic() + seconds
    while (begun := time.monotonic()) < until:
        async with session.post(_PODS, json=_pod(f"new-{len(took):05}")) as answer:
            await answer.read()
            if answer.status != 201:
                raise KemuError(f"a create was refused: {answer.status} {(await answer.text())[:300]}")
        took.append(time.monotonic() - begun)
        await asyncio.sleep(max(0.0, 1 / CREATES_PER_S - took[-1]))
    return took


class Lists:
    """Clients that list all pods, each in turns."""

    def __init__(self, session: aiohttp.ClientSession, seconds: float) -> None:
        self._session = session
        self._seconds = seconds
        self._until = time.monotonic() + seconds
        self._codes: Counter[int] = Counter()
        self._bytes = 0
        """Bytes of the largest list."""
        self._without_hint = 0
        """Answers with 429 that did not say when to come again."""

    async def go_on(self, number: int, every_s: float, clients: int) -> None:
        """``every_s`` 0: at once."""
        if every_s:
            await asyncio.sleep(every_s * number / clients)
        while (begun := time.monotonic()) < self._until:
            async with self._session.get(_PODS) as answer:
                size = 0
                async for chunk in answer.content.iter_chunked(PAGE_BYTES):
                    size += len(chunk)
                self._codes[answer.status] += 1
                if answer.status == 429:
                    self._without_hint += "Retry-After" not in answer.headers
                    await asyncio.sleep(float(answer.headers.get("Retry-After", 1)))
                elif answer.status == 200:
                    self._bytes = max(self._bytes, size)
            if every_s:
                await asyncio.sleep(max(0.0, every_s - (time.monotonic() - begun)))

    def figures(self) -> dict[str, Any]:
        return {
            "lists/s": round(self._codes[200] / self._seconds, 1),
            "429": self._codes[429],
            "429 without Retry-After": self._without_hint,
            "other refusals": sum(count for code, count in self._codes.items() if code not in (200, 429)),
            "list MiB": round(self._bytes / (1 << 20), 1),
        }


def _percentile(found_s: list[float], of: int) -> float:
    """In ms."""
    found = sorted(found_s)
    return round(found[min(len(found) - 1, math.ceil(len(found) * of / 100) - 1)] * 1000, 1) if found else 0.0


if __name__ == "__main__":
    print(json.dumps(asyncio.run(_others(**json.loads(sys.argv[1])))))
