"""``python -m tests.fuzz.up --minutes 60 --seed N``: ``kemu up`` under requests that nobody should send.

Requests, bodies, watches and upgrades (:mod:`tests.fuzz.requests`). Found is: a process that ends, an answer of 500, a
request without any answer, one that takes longer than its patience, a traceback on the terminal, and memory that grows
on and on. A good client works all the time, and has to be served. Each finding is told with its request. Exit code 0:
nothing found.
"""

from __future__ import annotations

import argparse
import base64
import contextlib
import http.client
import json
import re
import signal
import ssl
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import yaml

from tests.fuzz.requests import NAMESPACES, Draw, Request, Resource
from tests.soak.up import resident_mib, slope_per_hour

PATIENCE_S = 30.0
"""Of any request."""
LOOK_S = 5.0
CLEAN_EVERY = 400
"""Requests of a worker after which it deletes what the fuzzer has made."""
WARM_SHARE = 0.3
"""Of the time, in which memory may grow as it likes: what an API server remembers of the past fills."""
MEMORY_MINUTES = 30
"""In a shorter time memory is told, and not judged."""
SHOWN = 600
"""Letters of a body in a finding."""
EXPECTED = (501, 503, 504)
"""Containers that nobody plays; no backend, or too many requests; a ``timeout`` that is over."""
SAID = (
    b"resourceVersion should not be set on objects to be created",
    b"unable to find api field in struct",
    b"failed to create typed patch object",
    b"strconv.ParseUint: parsing",
    b"expected a []interface {}, but received a",
    b"expected a map[string]interface {}, but received a",
)
"""500 in Kubernetes, too."""


class Server:
    """``kemu up`` in a process of its own."""

    def __init__(self, folder: Path, words: list[str]) -> None:
        self._errors = (folder / "stderr").open("w+")
        command = [
            sys.executable,
            "-m",
            "kemu.doors.cli.main",
            "up",
            "--json",
            "--out",
            str(folder / "run"),
            "--nodes",
            "3",
            *words,
        ]
        self.process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=self._errors, text=True)
        assert self.process.stdout is not None
        line = self.process.stdout.readline()
        if not line:
            raise SystemExit(f"kemu up did not start:\n{self.errors()}")
        config = yaml.safe_load(Path(json.loads(line)["kubeconfig"]).read_text())
        cluster = config["clusters"][0]["cluster"]
        self.host, self.port = urlsplit(cluster["server"]).hostname or "", urlsplit(cluster["server"]).port or 0
        self.token = config["users"][0]["user"]["token"]
        self.context = ssl.create_default_context(
            cadata=base64.b64decode(cluster["certificate-authority-data"]).decode()
        )
        self.said: list[str] = []
        threading.Thread(target=self._listen, daemon=True).start()

    def _listen(self) -> None:
        assert self.process.stdout is not None
        self.said.extend(self.process.stdout)

    def errors(self) -> str:
        self._errors.flush()
        return Path(self._errors.name).read_text(errors="replace")

    def connect(self) -> http.client.HTTPSConnection:
        return http.client.HTTPSConnection(self.host, self.port, timeout=PATIENCE_S, context=self.context)

    def ask(self, path: str, method: str = "GET", body: Any = None) -> tuple[int, Any]:
        connection = self.connect()
        try:
            headers = {"Authorization": f"Bearer {self.token}", "Content-Type": "application/json"}
            connection.request(method, path, None if body is None else json.dumps(body), headers)
            answer = connection.getresponse()
            return answer.status, json.loads(answer.read() or b"null")
        finally:
            connection.close()

    def resources(self) -> list[Resource]:
        """What discovery names."""
        prefixes = ["/api/v1"]
        for group in self.ask("/apis")[1]["groups"]:
            prefixes += [f"/apis/{version['groupVersion']}" for version in group["versions"]]
        found = []
        for prefix in prefixes:
            version = prefix.removeprefix("/apis/").removeprefix("/api/")
            found += [
                Resource(prefix, one["name"], one["kind"], version, one["namespaced"], frozenset(one["verbs"]))
                for one in self.ask(prefix)[1].get("resources", ())
            ]
        return found

    def end(self) -> int | None:
        """Its exit code; None: it had to be killed."""
        self.process.send_signal(signal.SIGINT)
        try:
            return self.process.wait(60)
        except subprocess.TimeoutExpired:
            self.process.kill()
            return None


class Findings:
    """By what they are, without what differs from one to the next."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self.counts: Counter[str] = Counter()
        self.first: dict[str, dict[str, Any]] = {}

    def add(self, kind: str, what: str, **where: Any) -> None:
        sign = f"{kind}: {re.sub(r'[0-9a-f]{8}-[0-9a-f-]{27}|[0-9]+', '#', what)[:300]}"
        with self._lock:
            self.counts[sign] += 1
            if sign not in self.first:
                self.first[sign] = {"kind": kind, "what": what[:2_000], **where}
                print(json.dumps(self.first[sign]), flush=True)


class Worker(threading.Thread):
    def __init__(
        self,
        number: int,
        seed: int,
        server: Server,
        resources: list[Resource],
        findings: Findings,
        stop: threading.Event,
    ) -> None:
        super().__init__(daemon=True)
        self._draw = Draw(f"up {seed} {number}", resources)
        self._server, self._findings, self._end = server, findings, stop
        self.done = 0
        self.codes: Counter[int] = Counter()

    def run(self) -> None:
        connection = self._server.connect()
        while not self._end.is_set():
            what = self._draw.what()
            try:
                if what == "request":
                    connection = self._ask(connection, self._draw.request())
                elif what == "upgrade":
                    head, frames = self._draw.upgrade()
                    self._raw(
                        head + f"\r\nHost: a\r\nAuthorization: Bearer {self._server.token}\r\n\r\n".encode(), frames
                    )
                else:
                    self._raw(self._draw.garbage(), [])
            except Exception as error:  # of the fuzzer
                if self._server.process.poll() is None and not self._end.is_set():
                    self._findings.add("fuzzer", f"{type(error).__name__}: {error}")
                connection.close()
            self.done += 1
            if self.done % CLEAN_EVERY == 0:
                self._clean()

    def _ask(self, connection: http.client.HTTPSConnection, request: Request) -> http.client.HTTPSConnection:
        shown = {
            "request": f"{request.method} {request.target[:SHOWN]}",
            "headers": request.headers,
            "body": request.body[:SHOWN].decode(errors="backslashreplace"),
        }
        begun = time.monotonic()
        fresh = connection.sock is None
        try:
            connection.putrequest(request.method, request.target, skip_accept_encoding=True)
            for key, value in {**request.headers, "Authorization": f"Bearer {self._server.token}"}.items():
                connection.putheader(key, value)
            if request.body or request.method in ("POST", "PUT", "PATCH"):
                connection.putheader("Content-Length", str(len(request.body)))
            connection.endheaders(request.body or None)
            answer = connection.getresponse()
            body = answer.read(1 << 22)
        except TimeoutError:
            if not request.is_watch:
                self._findings.add("hang", f"no answer within {PATIENCE_S:.0f} s", **shown)
            connection.close()
            return self._server.connect()
        except (http.client.HTTPException, ConnectionError, ssl.SSLError, ValueError) as error:
            connection.close()
            # http.client refuses what it cannot send; a connection that was idle may have been closed meanwhile.
            sendable = not isinstance(error, (http.client.InvalidURL, ValueError)) or isinstance(error, ConnectionError)
            if sendable and fresh and not self._end.is_set() and self._server.process.poll() is None:
                self._findings.add("no answer", f"{type(error).__name__}: {error}", **shown)
            return self._server.connect()
        self.codes[answer.status] += 1
        took_s = time.monotonic() - begun
        if answer.status >= 500 and answer.status not in EXPECTED and not any(one in body for one in SAID):
            self._findings.add(str(answer.status), _message(body), **shown)
        elif took_s > PATIENCE_S / 2 and not request.is_watch:
            self._findings.add("slow", f"{took_s:.1f} s for {request.method}", **shown)
        if answer.status < 300:
            self._draw.learn(answer.headers.get("Content-Type", ""), body)
        if answer.will_close or not answer.isclosed():
            connection.close()
            return self._server.connect()
        return connection

    def _raw(self, head: bytes, frames: list[bytes]) -> None:
        with contextlib.suppress(OSError, TimeoutError), contextlib.closing(self._server.connect()) as connection:
            connection.connect()
            connection.sock.settimeout(1.0)
            connection.sock.sendall(head)
            if frames:
                connection.sock.recv(1 << 16)
            for frame in frames:
                connection.sock.sendall(frame)
            connection.sock.recv(1 << 16)

    def _clean(self) -> None:
        with contextlib.suppress(OSError, http.client.HTTPException, ValueError):
            self._server.ask("/apis/apiextensions.k8s.io/v1/customresourcedefinitions/as.f.dev", "DELETE")
            for path in ("persistentvolumes", "nodes"):
                for one in self._server.ask(f"/api/v1/{path}")[1].get("items", ()):
                    if not one["metadata"]["name"].startswith("node-"):
                        self._server.ask(f"/api/v1/{path}/{one['metadata']['name']}", "DELETE")
            for namespace in NAMESPACES:
                for path in _KEPT:
                    group, _, name = path.rpartition("/")
                    where = f"{group}/namespaces/{namespace}/{name}"
                    for one in self._server.ask(where)[1].get("items", ()):
                        named = f"{where}/{one['metadata']['name']}"
                        if one["metadata"].get("finalizers"):
                            patch = {"metadata": {"finalizers": None}}
                            self._merge(named, patch)
                        self._server.ask(f"{named}?gracePeriodSeconds=0", "DELETE")

    def _merge(self, path: str, patch: Any) -> None:
        connection = self._server.connect()
        headers = {"Authorization": f"Bearer {self._server.token}", "Content-Type": "application/merge-patch+json"}
        connection.request("PATCH", path, json.dumps(patch), headers)
        connection.getresponse().read()
        connection.close()


_KEPT = (
    "/api/v1/configmaps",
    "/api/v1/secrets",
    "/api/v1/services",
    "/apis/apps/v1/deployments",
    "/apis/apps/v1/statefulsets",
    "/apis/apps/v1/daemonsets",
    "/apis/apps/v1/replicasets",
    "/apis/batch/v1/cronjobs",
    "/apis/batch/v1/jobs",
    "/api/v1/pods",
    "/api/v1/events",
    "/apis/events.k8s.io/v1/events",
    "/api/v1/persistentvolumeclaims",
    "/api/v1/resourcequotas",
    "/api/v1/limitranges",
)
"""What the fuzzer makes most of."""


def _message(body: bytes) -> str:
    try:
        return str(json.loads(body).get("message", ""))
    except (ValueError, AttributeError):
        return body[:300].decode(errors="backslashreplace")


def good_client(server: Server, findings: Findings, stop: threading.Event, slowest: list[float]) -> None:
    """What it writes is there, all the time."""
    number = 0
    path = "/api/v1/namespaces/default/configmaps"
    while not stop.wait(1.0):
        number += 1
        begun = time.monotonic()
        try:
            body = {"metadata": {"name": f"good-{number}"}, "data": {"number": str(number)}}
            made, _ = server.ask(path, "POST", body)
            seen, found = server.ask(f"{path}/good-{number}")
            gone, _ = server.ask(f"{path}/good-{number}", "DELETE")
            if (made, seen, gone) != (201, 200, 200) or found["data"]["number"] != str(number):
                findings.add("good client", f"answers {made}, {seen}, {gone}: {found}")
        except (OSError, http.client.HTTPException) as error:
            if not stop.is_set() and server.process.poll() is None:
                findings.add("good client", f"{type(error).__name__}: {error}")
        slowest[0] = max(slowest[0], time.monotonic() - begun)


def fuzz(minutes: float, seed: int, workers: int, most_mib_per_hour: float, words: list[str]) -> int:
    findings, stop, slowest = Findings(), threading.Event(), [0.0]
    points: list[tuple[float, float]] = []
    with tempfile.TemporaryDirectory(prefix="kemu-fuzz-") as folder:
        server = Server(Path(folder), words)
        try:
            resources = server.resources()
            for namespace in NAMESPACES:
                server.ask("/api/v1/namespaces", "POST", {"metadata": {"name": namespace}})
            clients = [Worker(number, seed, server, resources, findings, stop) for number in range(workers)]
            for client in clients:
                client.start()
            threading.Thread(target=good_client, args=(server, findings, stop, slowest), daemon=True).start()
            begun = time.monotonic()
            while time.monotonic() - begun < minutes * 60 and server.process.poll() is None:
                time.sleep(min(LOOK_S, minutes * 60 / 4))
                points.append((time.monotonic() - begun, resident_mib(server.process.pid)))
                if len(points) % 12 == 0:
                    done = sum(client.done for client in clients)
                    print(
                        json.dumps({"at_s": round(points[-1][0]), "requests": done, "rss_mib": round(points[-1][1])}),
                        flush=True,
                    )
        finally:
            stop.set()
            ended = server.process.poll()
            code = server.end() if ended is None else ended
        if ended is not None:
            findings.add("ended", f"kemu up ended by itself with {ended}: {server.errors()[-1500:]}")
        elif code not in (0, 1, 3):
            findings.add(
                "end",
                f"after SIGINT kemu up ended with {code}: {server.errors()[-1500:]} {''.join(server.said)[-1500:]}",
            )
        if "Traceback" in server.errors():
            findings.add("traceback", server.errors()[-2_000:])
    codes: Counter[int] = Counter()
    for client in clients:
        codes += client.codes
    warm = [(at, mib) for at, mib in points if at > points[-1][0] * WARM_SHARE] if points else []
    slope = slope_per_hour(warm) if len(warm) > 2 else 0.0
    if minutes >= MEMORY_MINUTES and slope > most_mib_per_hour:
        findings.add("memory", f"grows by {slope:.0f} MiB per hour")
    print(
        json.dumps(
            {
                "seed": seed,
                "minutes": minutes,
                "requests": sum(client.done for client in clients),
                "resources": len(resources),
                "codes": dict(sorted(codes.items())),
                "most_mib": round(max((mib for _, mib in points), default=0)),
                "mib_per_hour": round(slope),
                "slowest_good_s": round(slowest[0], 2),
                "exit": code,
                "found": dict(findings.counts),
            }
        ),
        flush=True,
    )
    return 1 if findings.counts else 0


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz.up", description=__doc__)
    parser.add_argument("--minutes", type=float, default=60.0)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--workers", type=int, default=4)
    parser.add_argument(
        "--most-mib-per-hour",
        type=float,
        default=150.0,
        help="of the line through its memory; judged from 10 minutes on",
    )
    parser.add_argument("words", nargs="*", help="further words of kemu up, after --")
    options = parser.parse_args()
    return fuzz(options.minutes, options.seed, options.workers, options.most_mib_per_hour, options.words)


if __name__ == "__main__":
    sys.exit(main())
