"""When a watch saw what: a thread that reads one and notes the time of each object that is as wanted."""

from __future__ import annotations

import http.client
import json
import re
import threading
import time
from collections.abc import Callable
from typing import Any

from kemu.errors import KemuError
from kemu.lab.bench.clients import connections

_QUIET_S = 60.0
_PIECE = 1 << 18
_VERSION = re.compile(rb'"resourceVersion":"(\d+)"')
_NAME = re.compile(rb'"metadata":\{"name":"([^"]+)"')


class Watch:
    """Watch of a collection; ``wanted`` is asked with the line of each event, and what it returns names the object.

    A server cuts off who reads too slowly, which happens to a Python program on a busy machine: it comes again then,
    from where it was, as client-go does.
    """

    def __init__(self, access: connections.Access, path: str, wanted: Callable[[bytes], str | None]) -> None:
        self.times: dict[str, float] = {}
        self._wanted = wanted
        self._ended = ""
        self._access = access
        self._path = path
        with access.connect() as connection:
            self._version = connection.ask("GET", f"{path}limit=1")["metadata"]["resourceVersion"]
        opened = threading.Event()
        threading.Thread(target=self._read_on, args=(opened,), daemon=True).start()
        opened.wait()

    def _read_on(self, opened: threading.Event) -> None:
        try:
            while True:
                with self._access.connect() as connection:
                    answer = connection.stream(f"{self._path}watch=true&resourceVersion={self._version}")
                    opened.set()
                    self._read(answer)
        except (OSError, ValueError, KemuError, http.client.HTTPException) as error:
            self._ended = f"the watch broke: {error}"
        opened.set()

    def _read(self, answer: http.client.HTTPResponse) -> None:
        rest = b""
        while piece := answer.read1(_PIECE):
            now = time.monotonic()
            *lines, rest = (rest + piece).split(b"\n")
            for line in lines:
                name = self._wanted(line)
                if name is not None:
                    self.times.setdefault(name, now)
            if lines and (version := _VERSION.search(lines[-1])):
                self._version = version[1].decode()

    def wait_for(self, count: int, check: Callable[[], None]) -> None:
        """Until so many objects were seen. Raises KemuError when the watch ends, or nothing new comes for a minute."""
        seen, since = len(self.times), time.monotonic()
        while len(self.times) < count:
            time.sleep(0.05)
            check()
            if len(self.times) > seen:
                seen, since = len(self.times), time.monotonic()
            elif self._ended:
                raise KemuError(f"{seen} of {count} objects: {self._ended}")
            elif time.monotonic() - since > _QUIET_S:
                raise KemuError(f"{seen} of {count} objects, and no new one for {_QUIET_S:.0f} s")


def any_name(line: bytes) -> str | None:
    """Any name of every object that appears."""
    return name_of(line) if line.startswith(b'{"type":"ADDED"') else None


def ready_node(line: bytes) -> str | None:
    for condition in json.loads(line)["object"].get("status", {}).get("conditions") or ():
        if condition["type"] == "Ready" and condition["status"] == "True":
            return name_of(line)
    return None


def running_pod(line: bytes) -> str | None:
    return name_of(line) if b'"phase":"Running"' in line else None


def name_of(line: bytes) -> str:
    found = _NAME.search(line)
    if found is not None:
        return found[1].decode()
    event: Any = json.loads(line)
    return str(event["object"]["metadata"]["name"])
