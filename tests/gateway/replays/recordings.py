"""Records, in the order in which the requests were made."""

from __future__ import annotations

import gzip
import json
import math
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

SHARED = Path(__file__).resolve().parents[3].parent / "shared" / "rest" / "recordings.jsonl.gz"

#: Answers of the proxy that the clients were tested with, not of an API server.
SYNTHETIC = ("404status", "404", "415", "422sie", "file", "stub", "nobookmark")
_PATH = re.compile(r"/(api/v1|apis/[^/]+/[^/]+)(?:/namespaces/([^/]+))?/([^/]+)(?:/([^/]+))?(?:/(.+))?")
_NAMESPACE = re.compile(r"/api/v1/namespaces(?:/([^/]+))?(?:/(status|finalize))?")
_CORRECTION_S = 0.3


@dataclass(frozen=True)
class Key:
    """Which object a path names; without ``name`` a collection."""

    prefix: str
    namespace: str
    resource: str
    name: str

    @property
    def collection(self) -> str:
        namespace = f"/namespaces/{self.namespace}" if self.namespace else ""
        return f"/{self.prefix}{namespace}/{self.resource}"

    @property
    def path(self) -> str:
        return f"{self.collection}/{self.name}"

    @property
    def api_version(self) -> str:
        return self.prefix.partition("/")[2]


class Record:
    """One exchange."""

    def __init__(self, data: dict[str, Any], number: int) -> None:
        self.data = data
        self.number = number
        """In the file, from 1."""
        self.client: str = data["client"]
        self.step: str = data["step"]
        self.method: str = data["method"]
        self.path: str = data["path"]
        self.query: str = data.get("up_query", data.get("query")) or ""
        self.status: int = data["status"]
        self.time_s: float = data.get("t", 0.0)
        self.is_watch = "watch" in data

    @property
    def is_synthetic(self) -> bool:
        return self.data.get("rule") in SYNTHETIC

    @property
    def content_type(self) -> str:
        headers = {key.lower(): value for key, value in (self.data.get("resp_headers") or {}).items()}
        return str(headers.get("content-type", ""))

    @property
    def end_s(self) -> float:
        """When the answer was complete; of a watch that was open when the recorder stopped, never."""
        if self.is_watch and "dt" not in self.data:
            return math.inf
        return self.time_s + float(self.data.get("dt") or 0.0)

    def where(self) -> tuple[Key, str] | None:
        """The object or collection, and the subresource."""
        match = _NAMESPACE.fullmatch(self.path)
        if match is not None:
            return Key("api/v1", "", "namespaces", match[1] or ""), match[2] or ""
        match = _PATH.fullmatch(self.path)
        if match is None:
            return None
        prefix, namespace, resource, name, rest = match.groups(default="")
        return Key(prefix, namespace, resource, name), rest

    def title(self) -> str:
        query = f"?{self.query}" if self.query else ""
        return f"{self.method} {self.path}{query}"


def load(path: Path = SHARED) -> list[Record]:
    with gzip.open(path, "rt") as file:
        rows = [json.loads(line) for line in file]
    return list(in_order([Record(row, number) for number, row in enumerate(rows, 1)]))


def in_order(records: list[Record]) -> Iterator[Record]:
    """The recorder wrote an exchange when it ended, and began to count anew with each start; requests count here."""
    run: list[Record] = []
    for record in records:
        if "seq" not in record.data or not _belongs(run, record):
            yield from _sorted(run)
            run = []
        run.append(record)
    yield from _sorted(run)


def _sorted(run: list[Record]) -> list[Record]:
    return sorted(run, key=lambda record: record.data.get("seq", 0))


def _belongs(run: list[Record], record: Record) -> bool:
    """Whether number and time of ``record`` fit in between those of one run of the recorder."""
    number = record.data["seq"]
    for other in run:
        theirs = other.data.get("seq")
        if theirs is None or theirs == number:
            return False
        if (theirs < number) != (other.time_s <= record.time_s) and abs(other.time_s - record.time_s) > _CORRECTION_S:
            return False
    return True
