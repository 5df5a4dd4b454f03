"""``python -m tests.soak.up --minutes 60 --rate 80``: a soak of ``kemu up``; exit 0 if memory and disk stay bounded.

Pods are created and deleted over the REST API, so many a second, while others read lists and watches. Memory is looked
at every few seconds; after a warm-up, a line is laid through it, and the line may not rise by more than
``--most-mib-per-hour``. The run folder may not become larger than ``--most-folder-mib``.
"""

from __future__ import annotations

import argparse
import contextlib
import http.client
import json
import signal
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path
from typing import Any

LOOK_S = 5.0
WARM_SHARE = 0.25
"""Of the time, in which memory may grow as it likes: caches and windows of the past fill."""
CLIENTS = 4
ALIVE = 40
"""Pods of a client, which it deletes in the order in which it made them."""
PODS = "/api/v1/namespaces/default/pods"


class Client(threading.Thread):
    """Creates and deletes pods, at its share of the rate."""

    def __init__(self, number: int, port: int, rate: float, stop: threading.Event) -> None:
        super().__init__(daemon=True)
        self._number, self._port, self._rate, self._end = number, port, rate, stop
        self.done = 0

    def run(self) -> None:
        connection = http.client.HTTPConnection("127.0.0.1", self._port, timeout=60)
        begun, count = time.monotonic(), 0
        while not self._end.is_set():
            wait_s = begun + count / self._rate - time.monotonic()
            if wait_s > 0:
                time.sleep(wait_s)
            spec = {"containers": [{"name": "a", "image": "a"}], "terminationGracePeriodSeconds": 1}
            body = {"metadata": {"name": self._pod(count)}, "spec": spec}
            try:
                _ask(connection, "POST", PODS, body)
                if count >= ALIVE:
                    _ask(connection, "DELETE", f"{PODS}/{self._pod(count - ALIVE)}")
            except (OSError, http.client.HTTPException):
                connection.close()
                continue
            count += 1
            self.done = count

    def _pod(self, count: int) -> str:
        return f"c{self._number}-{count}"


def _ask(connection: http.client.HTTPConnection, method: str, path: str, body: Any = None) -> None:
    data = None if body is None else json.dumps(body).encode()
    connection.request(method, path, data, {"Content-Type": "application/json"})
    connection.getresponse().read()


def watch(port: int, stop: threading.Event) -> None:
    """Reads a watch of everything, and begins again when it ends."""
    while not stop.is_set():
        with contextlib.suppress(OSError, http.client.HTTPException):
            connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
            connection.request("GET", "/api/v1/pods?watch=true&timeoutSeconds=30")
            answer = connection.getresponse()
            while answer.read(1 << 16) and not stop.is_set():
                pass


def resident_mib(pid: int) -> float:
    for line in Path(f"/proc/{pid}/status").read_text().splitlines():
        if line.startswith("VmRSS:"):
            return int(line.split()[1]) / 1024
    return 0.0


def folder_mib(folder: Path) -> float:
    return sum(file.stat().st_size for file in folder.rglob("*") if file.is_file()) / (1 << 20)


def slope_per_hour(points: list[tuple[float, float]]) -> float:
    """Of the line with the least squares; seconds and MiB."""
    count = len(points)
    middle_s, middle = sum(at for at, _ in points) / count, sum(value for _, value in points) / count
    below = sum((at - middle_s) ** 2 for at, _ in points)
    return 3600 * sum((at - middle_s) * (value - middle) for at, value in points) / below if below else 0.0


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.soak.up", description=__doc__)
    parser.add_argument("--minutes", type=float, default=60.0)
    parser.add_argument("--rate", type=float, default=80.0, help="creates a second, and as many deletes")
    parser.add_argument("--nodes", type=int, default=20)
    parser.add_argument("--most-mib-per-hour", type=float, default=60.0)
    parser.add_argument("--most-folder-mib", type=float, default=1200.0)
    parser.add_argument("--out", type=Path, help="a file that gets a JSON object for each look")
    parser.add_argument("words", nargs="*", help="further words of kemu up")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as directory:
        return soak(options, Path(directory) / "run")


def soak(options: argparse.Namespace, folder: Path) -> int:
    command = [sys.executable, "-m", "kemu.doors.cli.main", "up", "--json", "--insecure-http", "--out", str(folder)]
    command += ["--nodes", str(options.nodes), *options.words]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    found = json.loads(process.stdout.readline())
    said: list[str] = []

    def listen() -> None:
        for line in process.stdout or ():
            said[:] = [line]

    threading.Thread(target=listen, daemon=True).start()
    port, stop = int(found["url"].rpartition(":")[2]), threading.Event()
    clients = [Client(number, port, options.rate / CLIENTS, stop) for number in range(CLIENTS)]
    for client in clients:
        client.start()
    threading.Thread(target=watch, args=(port, stop), daemon=True).start()
    begun = time.monotonic()
    points: list[tuple[float, float]] = []
    largest = 0.0
    try:
        while time.monotonic() - begun < options.minutes * 60 and process.poll() is None:
            time.sleep(LOOK_S)
            at_s, mib = time.monotonic() - begun, resident_mib(process.pid)
            points.append((at_s, mib))
            largest = max(largest, folder_mib(folder))
            done = sum(client.done for client in clients)
            look = {"at_s": round(at_s), "rss_mib": round(mib, 1), "folder_mib": round(largest, 1), "created": done}
            if options.out is not None:
                with options.out.open("a") as file:
                    file.write(json.dumps(look) + "\n")
            if len(points) % 12 == 0:
                print(json.dumps(look), flush=True)
    finally:
        stop.set()
        ended = process.poll()
        if ended is None:
            process.send_signal(signal.SIGINT)
        code = process.wait(timeout=600)
    warm_s = options.minutes * 60 * WARM_SHARE
    slope = slope_per_hour([point for point in points if point[0] >= warm_s])
    rate = sum(client.done for client in clients) / (time.monotonic() - begun)
    verdict = json.loads(said[-1]) if said else {}
    print(f"soak of kemu up: {rate:.0f} creates a second, {verdict.get('verdict')}: {verdict.get('headline')}")
    print(f"    memory {slope:+.0f} MiB an hour of at most {options.most_mib_per_hour:g}")
    print(f"    run folder at most {largest:.0f} MiB of {options.most_folder_mib:g}")
    good = ended is None and code in (0, 1, 3)
    return int(not good or slope > options.most_mib_per_hour or largest > options.most_folder_mib)


if __name__ == "__main__":
    raise SystemExit(main())
