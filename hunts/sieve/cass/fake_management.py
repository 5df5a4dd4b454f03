"""The management API of Cassandra as a proxy of HTTP, for all nodes: fake_management.py PORT. All that is asked succeeds."""

from __future__ import annotations

import json
import sys
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import urlsplit


class _Handler(BaseHTTPRequestHandler):
    def _answer(self) -> None:
        self.rfile.read(int(self.headers.get("Content-Length") or 0))
        asked = urlsplit(self.path)
        text = b"OK"
        if asked.path.endswith("/metadata/endpoints"):
            address = asked.hostname
            node = {
                "HOST_ID": f"host-{address}",
                "IS_ALIVE": "true",
                "NATIVE_TRANSPORT_ADDRESS": address,
                "RPC_ADDRESS": address,
                "STATUS": "NORMAL",
                "LOAD": "1000",
            }
            text = json.dumps({"entity": [node]}).encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(text)))
        self.end_headers()
        self.wfile.write(text)

    do_GET = do_POST = do_PUT = _answer

    def log_message(self, format: str, *args: object) -> None:
        print(format % args, flush=True)


class _Server(ThreadingHTTPServer):
    allow_reuse_address = daemon_threads = True


if __name__ == "__main__":
    with _Server(("127.0.0.1", int(sys.argv[1])), _Handler) as server:
        print("ready", flush=True)
        server.serve_forever()
