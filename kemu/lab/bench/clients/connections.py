"""Requests to an API server over HTTP, with what a kubeconfig says: for measurements, so as cheap as can be."""

from __future__ import annotations

import base64
import http.client
import json
import ssl
import time
import urllib.parse
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import yaml

from kemu.emulated.objects.plain import Json
from kemu.errors import KemuError


class Access:
    """Where a server is, and who asks it: from a kubeconfig with one cluster and one user."""

    def __init__(self, kubeconfig: Path) -> None:
        document = yaml.safe_load(kubeconfig.read_text())
        cluster, user = document["clusters"][0]["cluster"], document["users"][0]["user"]
        self._url = urllib.parse.urlsplit(cluster["server"])
        self._context = _context(cluster, user) if self._url.scheme == "https" else None
        # Who says who it is has managed fields, on either side.
        self._headers = {"Accept": "application/json", "Content-Type": "application/json", "User-Agent": "bench/1.0"}
        if "token" in user:
            self._headers["Authorization"] = f"Bearer {user['token']}"

    def connect(self) -> Connection:
        return Connection(self._url.hostname or "127.0.0.1", self._url.port or 443, self._context, self._headers)

    def create_all(self, path: str, objects: Iterable[dict[str, Any]], connections: int = 4) -> None:
        """POST them, over a few connections."""
        pending = iter(objects)

        def work() -> None:
            with self.connect() as connection:
                for one in _rest(pending):
                    connection.ask("POST", path, one)

        with ThreadPoolExecutor(connections) as threads:
            for done in [threads.submit(work) for _ in range(connections)]:
                done.result()


def _rest(pending: Any) -> Iterable[dict[str, Any]]:
    """The rest of what several threads share: ``next`` of an iterator over a list is one step."""
    while True:
        try:
            yield next(pending)
        except StopIteration:
            return


class Connection:
    """One connection, kept open."""

    def __init__(self, host: str, port: int, context: ssl.SSLContext | None, headers: dict[str, str]) -> None:
        self._headers = headers
        self._http: http.client.HTTPConnection
        if context is None:
            self._http = http.client.HTTPConnection(host, port, timeout=120)
        else:
            self._http = http.client.HTTPSConnection(host, port, timeout=120, context=context)

    def __enter__(self) -> Connection:
        return self

    def __exit__(self, *_: object) -> None:
        self._http.close()

    def ask(self, method: str, path: str, body: Json = None) -> Any:
        """The answer's document. Raises KemuError when the server refuses."""
        text = None if body is None else json.dumps(body).encode()
        self._http.request(method, path, text, self._headers)
        answer = self._http.getresponse()
        content = answer.read()
        if answer.status >= 300:
            raise KemuError(f"{method} {path}: {answer.status} {content[:500].decode(errors='replace')}")
        return json.loads(content) if content.startswith(b"{") else content.decode()

    def stream(self, path: str) -> http.client.HTTPResponse:
        """The answer of a watch, to be read line by line."""
        self._http.request("GET", path, None, self._headers)
        answer = self._http.getresponse()
        if answer.status != 200:
            raise KemuError(f"GET {path}: {answer.status} {answer.read(500).decode(errors='replace')}")
        return answer


def wait_until_ready(access: Access, timeout_s: float, still: Any) -> None:
    """Wait for ``/readyz``; ``still`` raises when there is nothing left to wait for."""
    deadline = time.monotonic() + timeout_s
    while True:
        still()
        try:
            with access.connect() as connection:
                connection.ask("GET", "/readyz")
            return
        except (OSError, KemuError, http.client.HTTPException) as error:
            if time.monotonic() > deadline:
                raise KemuError(f"the API server is not ready after {timeout_s:.0f} s: {error}") from error
        time.sleep(0.1)


def _context(cluster: dict[str, Any], user: dict[str, Any]) -> ssl.SSLContext:
    data = cluster.get("certificate-authority-data")
    context = ssl.create_default_context(
        cafile=cluster.get("certificate-authority"), cadata=base64.b64decode(data).decode() if data else None
    )
    if cluster.get("insecure-skip-tls-verify"):
        context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    if "client-certificate" in user:
        context.load_cert_chain(user["client-certificate"], user["client-key"])
    return context
