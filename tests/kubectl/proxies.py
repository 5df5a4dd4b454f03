"""A proxy that records what clients ask an API server: plain HTTP on loopback in front, HTTPS with a token behind."""

from __future__ import annotations

import base64
import contextlib
import http.client
import http.server
import re
import ssl
import threading
import time
import urllib.parse
from pathlib import Path
from typing import Any

import yaml

_HOP = {"connection", "transfer-encoding", "content-length", "keep-alive", "date", "audit-id"}
_KEPT = {
    "accept",
    "content-type",
    "user-agent",
    "if-none-match",
    "impersonate-user",
    "impersonate-group",
    "kubectl-command",
}
#: Of longer bodies only the beginning is kept; discovery and OpenAPI have tests of their own.
BODY_LIMIT = 60_000
DOCUMENT = re.compile(r"/openapi/.*|/apis?|/apis/[^/]+/[^/]+|/api/v1")
DOCUMENT_LIMIT = 4_000


class Recorder:
    """Serves at ``url`` until closed; ``exchanges`` are in the order in which the requests came.

    An exchange has the keys ``seq, t, client, step, method, path, query, req_headers, req_body, status, resp_headers,
    resp_body``, a watch ``watch: {frames: [{t, f}]}`` instead of the last.
    """

    def __init__(self, server: str, token: str, authority: Path | None) -> None:
        parts = urllib.parse.urlsplit(server)
        assert parts.hostname is not None
        self._where = (parts.hostname, parts.port or 443)
        self._context = None
        if parts.scheme == "https":
            self._context = ssl.create_default_context(cafile=str(authority) if authority else None)
        self._token = token
        self.exchanges: list[dict[str, Any]] = []
        self.step = ""
        self._begun = time.monotonic()
        self._lock = threading.Lock()
        recorder = self

        class Handler(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def log_message(self, *arguments: object) -> None:
                pass

            def _pass_on(self) -> None:
                recorder._pass_on(self)

        for method in ("GET", "POST", "PUT", "PATCH", "DELETE"):
            setattr(Handler, f"do_{method}", Handler._pass_on)

        self._http = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._http.daemon_threads = True
        self._thread = threading.Thread(target=self._http.serve_forever, kwargs={"poll_interval": 0.1}, daemon=True)
        self._thread.start()
        self.url = f"http://127.0.0.1:{self._http.server_address[1]}"

    def close(self) -> None:
        self._http.shutdown()
        self._http.server_close()
        self._thread.join()

    def request(self, method: str, path: str, body: bytes | None, content_type: str) -> tuple[int, bytes]:
        """A request of a component, recorded with ``client: hand``."""
        headers = {"Accept": "application/json", "User-Agent": "hand"}
        if content_type:
            headers["Content-Type"] = content_type
        exchange = self._exchange("hand", method, path, headers, body)
        connection = self._connect()
        with contextlib.closing(connection):
            connection.request(method, path, body, {**headers, **self._credentials()})
            answer = connection.getresponse()
            content = answer.read()
            self._answered(exchange, answer, content)
            return answer.status, content

    def _connect(self) -> http.client.HTTPConnection:
        if self._context is None:
            return http.client.HTTPConnection(*self._where, timeout=60)
        return http.client.HTTPSConnection(*self._where, timeout=60, context=self._context)

    def _credentials(self) -> dict[str, str]:
        return {"Authorization": f"Bearer {self._token}"}

    def _exchange(
        self, client: str, method: str, path: str, headers: dict[str, str], body: bytes | None
    ) -> dict[str, Any]:
        parts = urllib.parse.urlsplit(path)
        exchange: dict[str, Any] = {
            "client": client,
            "step": self.step,
            "method": method,
            "path": parts.path,
            "query": parts.query,
            "req_headers": {key: value for key, value in headers.items() if key.lower() in _KEPT},
        }
        if body:
            exchange["req_body"] = _text(body)
        with self._lock:
            exchange["seq"] = len(self.exchanges) + 1
            exchange["t"] = round(time.monotonic() - self._begun, 3)
            self.exchanges.append(exchange)
        return exchange

    def _answered(self, exchange: dict[str, Any], answer: http.client.HTTPResponse, body: bytes | None) -> None:
        exchange["status"] = answer.status
        exchange["resp_headers"] = {
            key: value
            for key, value in answer.getheaders()
            if key.lower() in ("content-type", "warning", "retry-after")
        }
        warnings = answer.headers.get_all("Warning")
        if warnings:
            exchange["warnings"] = warnings
        if body is not None:
            shown = _text(body)
            limit = DOCUMENT_LIMIT if DOCUMENT.fullmatch(exchange["path"]) else BODY_LIMIT
            if isinstance(shown, str) and len(shown) > limit:
                shown = f"{shown[:2000]}...<+{len(shown) - 2000}>"
            exchange["resp_body"] = shown

    def _pass_on(self, handler: http.server.BaseHTTPRequestHandler) -> None:
        length = int(handler.headers.get("Content-Length") or 0)
        body = handler.rfile.read(length) if length else None
        headers = {
            key: value for key, value in handler.headers.items() if key.lower() not in (*_HOP, "host", "authorization")
        }
        # Recorded bodies are to be read, so nothing is compressed.
        headers.pop("Accept-Encoding", None)
        exchange = self._exchange("kubectl", handler.command, handler.path, headers, body)
        connection = self._connect()
        with contextlib.closing(connection), contextlib.suppress(BrokenPipeError, ConnectionResetError):
            connection.request(handler.command, handler.path, body, {**headers, **self._credentials()})
            answer = connection.getresponse()
            handler.send_response_only(answer.status)
            for key, value in answer.getheaders():
                if key.lower() not in _HOP:
                    handler.send_header(key, value)
            query = urllib.parse.parse_qs(urllib.parse.urlsplit(handler.path).query)
            if answer.status == 200 and query.get("watch", ["false"])[0].lower() in ("true", "1"):
                self._answered(exchange, answer, None)
                self._stream(handler, answer, exchange)
                return
            content = answer.read()
            self._answered(exchange, answer, content)
            handler.send_header("Content-Length", str(len(content)))
            handler.end_headers()
            handler.wfile.write(content)

    def _stream(
        self, handler: http.server.BaseHTTPRequestHandler, answer: http.client.HTTPResponse, exchange: dict[str, Any]
    ) -> None:
        handler.send_header("Transfer-Encoding", "chunked")
        handler.end_headers()
        handler.wfile.flush()
        handler.close_connection = True
        frames: list[dict[str, Any]] = []
        exchange["watch"] = {"frames": frames}
        while True:
            line = answer.readline()
            if not line:
                break
            frames.append({"t": round(time.monotonic() - self._begun, 3), "f": line.decode()})
            handler.wfile.write(b"%x\r\n%s\r\n" % (len(line), line))
            handler.wfile.flush()
        handler.wfile.write(b"0\r\n\r\n")


def _text(body: bytes) -> Any:
    """UTF-8 as a string, else hex: ``{"hex": …}``."""
    try:
        return body.decode()
    except UnicodeDecodeError:
        return {"hex": body.hex()}


def access(kubeconfig: Path, folder: Path) -> tuple[str, str, Path | None]:
    """Server, token and the certificates to trust, of the first cluster and user in a kubeconfig."""
    document = yaml.safe_load(kubeconfig.read_text())
    cluster, user = document["clusters"][0]["cluster"], document["users"][0]["user"]
    return cluster["server"], user["token"], _authority(cluster, folder)


def _authority(cluster: dict[str, Any], folder: Path) -> Path | None:
    if "certificate-authority" in cluster:
        return Path(cluster["certificate-authority"])
    if "certificate-authority-data" not in cluster:
        return None
    path = folder / "authority.pem"
    path.write_bytes(base64.b64decode(cluster["certificate-authority-data"]))
    return path
