"""Stands where envtest wants an etcd: it is healthy, and stores nothing. kemu's API server has its own store."""

from __future__ import annotations

import argparse
import os
import signal
import sys
from collections.abc import Sequence
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import urlsplit

from kemu.errors import KemuError


class _Health(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        found = self.path.partition("?")[0] in ("/health", "/livez", "/readyz")
        body = b'{"health":"true","reason":""}' if found else b"404 page not found\n"
        self.send_response(200 if found else 404)
        self.send_header("Content-Type", "application/json" if found else "text/plain")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        """Nobody wants to know."""


def main(arguments: Sequence[str]) -> int:
    """Serves until it is stopped. Raises KemuError."""
    # Nothing has to be put in order.
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: os._exit(0))
    parser = argparse.ArgumentParser(
        prog="etcd",
        allow_abbrev=False,
        description="The etcd of kemu's envtest: it tells that it is healthy, and stores nothing. It takes all flags "
        "of etcd, and heeds the one below.",
    )
    parser.add_argument("--listen-client-urls", default="http://localhost:2379", metavar="URL,...")
    urls = parser.parse_known_args(arguments)[0].listen_client_urls
    server = ThreadingHTTPServer(_address(urls.split(",")[0]), _Health)
    print(f"etcd: kemu's, which stores nothing, at {urls}", file=sys.stderr, flush=True)
    server.serve_forever()
    return 0


def _address(url: str) -> tuple[str, int]:
    try:
        found = urlsplit(url)
        host, port = found.hostname, found.port
    except ValueError:
        host = port = None
    if not host or port is None or found.scheme != "http":
        raise KemuError(f"--listen-client-urls {url}: not http://HOST:PORT")
    return host, port
