"""``python -m tests.soak.watches --watches 1000``: what ``kemu up`` keeps of watches that no client reads, afterwards.

Clients open watches of configmaps and read nothing while others are created, then close; again and again. Prints the
resident memory; exit 1 if it ends higher than ``--most-mib`` above that before the first watch. ``--http2``: over TLS,
a hundred watches on each connection, whose windows stay closed.
"""

from __future__ import annotations

import argparse
import http.client
import json
import signal
import socket
import ssl
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import h2.connection
import yaml

from tests.soak.up import resident_mib

MAPS = "/api/v1/namespaces/default/configmaps"
TEXT_BYTES = 2_000
STREAMS = 100
"""Watches on a connection of HTTP/2."""
PAUSE_S = 3.0


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.soak.watches", description=__doc__)
    parser.add_argument("--watches", type=int, default=1000)
    parser.add_argument("--objects", type=int, default=300, help="before the first watch, and in each round")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--http2", action="store_true")
    parser.add_argument("--most-mib", type=float, default=200.0)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as directory:
        command = [sys.executable, "-m", "kemu.doors.cli.main", "up", "--json", "--nodes", "20"]
        command += ["--out", str(Path(directory) / "run"), *([] if options.http2 else ["--insecure-http"])]
        process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
        try:
            return measure(process, options)
        finally:
            process.send_signal(signal.SIGINT)
            process.communicate(timeout=120)


def measure(process: subprocess.Popen[str], options: Any) -> int:
    assert process.stdout is not None
    begun = json.loads(process.stdout.readline())
    port = int(begun["url"].rpartition(":")[2])
    token = "" if not options.http2 else user_token(Path(begun["kubeconfig"]))
    create(port, token, "before", options.objects)
    first = last = say("before", process.pid)
    for number in range(options.rounds):
        if options.http2:
            watches = [watches_by_http2(port, token, STREAMS) for _ in range(options.watches // STREAMS)]
        else:
            watches = [watch(port) for _ in range(options.watches)]
        create(port, token, f"round-{number}", options.objects)
        say(f"{options.watches} unread", process.pid)
        for each in watches:
            each.close()
        last = say("closed", process.pid)
    return int(last - first > options.most_mib)


def say(what: str, pid: int) -> float:
    time.sleep(PAUSE_S)
    found = resident_mib(pid)
    print(f"{what}: {found:.0f} MiB", flush=True)
    return found


def watch(port: int) -> socket.socket:
    made = socket.create_connection(("127.0.0.1", port))
    made.sendall(f"GET {MAPS}?watch=true HTTP/1.1\r\nhost: 127.0.0.1:{port}\r\n\r\n".encode())
    return made


def watches_by_http2(port: int, token: str, count: int) -> socket.socket:
    context = unchecked()
    context.set_alpn_protocols(["h2"])
    made = context.wrap_socket(socket.create_connection(("127.0.0.1", port)))
    connection = h2.connection.H2Connection()
    connection.initiate_connection()
    head = [(":method", "GET"), (":scheme", "https"), (":authority", "x"), (":path", f"{MAPS}?watch=true")]
    for number in range(count):
        connection.send_headers(2 * number + 1, [*head, ("authorization", f"Bearer {token}")], end_stream=True)
    made.sendall(connection.data_to_send())
    return made


def user_token(kubeconfig: Path) -> str:
    return str(yaml.safe_load(kubeconfig.read_text())["users"][0]["user"]["token"])


def unchecked() -> ssl.SSLContext:
    """Trusts any server: it is our own."""
    context = ssl.create_default_context()
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    return context


def create(port: int, token: str, name: str, count: int) -> None:
    """``token``: with TLS; empty: without."""
    connection: http.client.HTTPConnection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
    headers = {"content-type": "application/json"}
    if token:
        connection = http.client.HTTPSConnection("127.0.0.1", port, timeout=60, context=unchecked())
        headers["authorization"] = f"Bearer {token}"
    for number in range(count):
        body = {"metadata": {"name": f"{name}-{number}"}, "data": {"text": "x" * TEXT_BYTES}}
        connection.request("POST", MAPS, json.dumps(body), headers)
        connection.getresponse().read()


if __name__ == "__main__":
    raise SystemExit(main())
