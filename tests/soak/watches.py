"""``python -m tests.soak.watches --watches 1000``: what ``kemu up`` keeps of watches that no client reads, afterwards.

Clients open watches of configmaps and read nothing while others are created, then close; again and again. Prints the
resident memory; exit 1 if it ends higher than ``--most-mib`` above that before the first watch.
"""

from __future__ import annotations

import argparse
import http.client
import json
import signal
import socket
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from tests.soak.up import resident_mib

MAPS = "/api/v1/namespaces/default/configmaps"
TEXT_BYTES = 2_000
PAUSE_S = 3.0


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.soak.watches", description=__doc__)
    parser.add_argument("--watches", type=int, default=1000)
    parser.add_argument("--objects", type=int, default=300, help="before the first watch, and in each round")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--most-mib", type=float, default=200.0)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as directory:
        command = [sys.executable, "-m", "kemu.doors.cli.main", "up", "--json", "--insecure-http", "--nodes", "20"]
        command += ["--out", str(Path(directory) / "run")]
        process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
        try:
            return measure(process, options)
        finally:
            process.send_signal(signal.SIGINT)
            process.communicate(timeout=120)


def measure(process: subprocess.Popen[str], options: Any) -> int:
    assert process.stdout is not None
    port = int(json.loads(process.stdout.readline())["url"].rpartition(":")[2])
    create(port, "before", options.objects)
    begun = last = say("before", process.pid)
    for number in range(options.rounds):
        watches = [watch(port) for _ in range(options.watches)]
        create(port, f"round-{number}", options.objects)
        say(f"{options.watches} unread", process.pid)
        for each in watches:
            each.close()
        last = say("closed", process.pid)
    return int(last - begun > options.most_mib)


def say(what: str, pid: int) -> float:
    time.sleep(PAUSE_S)
    found = resident_mib(pid)
    print(f"{what}: {found:.0f} MiB", flush=True)
    return found


def watch(port: int) -> socket.socket:
    made = socket.create_connection(("127.0.0.1", port))
    made.sendall(f"GET {MAPS}?watch=true HTTP/1.1\r\nhost: 127.0.0.1:{port}\r\n\r\n".encode())
    return made


def create(port: int, name: str, count: int) -> None:
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
    for number in range(count):
        body = {"metadata": {"name": f"{name}-{number}"}, "data": {"text": "x" * TEXT_BYTES}}
        connection.request("POST", MAPS, json.dumps(body), {"content-type": "application/json"})
        connection.getresponse().read()


if __name__ == "__main__":
    raise SystemExit(main())
