"""What the recording calls by a UID or a resource version has another one here."""

from __future__ import annotations

import re
from bisect import bisect_right, insort
from typing import Any

_UID = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}")
_IN_QUERY = re.compile(r"(^|&)(resourceVersion)=(\d+)")
_IN_BODY = re.compile(r'("resourceVersion"\s*:\s*")(\d+)(")')
#: Versions above this were made up by whoever asked.
_FUTURE = 1 << 20


class Identities:
    def __init__(self) -> None:
        self.uids: dict[str, str] = {}
        """Recorded to actual."""
        self._versions: dict[int, int] = {}
        self._known: list[int] = []

    def learn(self, recorded: Any, actual: Any) -> None:
        """Of two objects, lists or reviews that stand for the same."""
        if not isinstance(recorded, dict) or not isinstance(actual, dict):
            return
        one, other = recorded.get("metadata") or {}, actual.get("metadata") or {}
        if one.get("uid") and other.get("uid"):
            self.uids[one["uid"]] = other["uid"]
        self.learn_version(one.get("resourceVersion"), other.get("resourceVersion"))

    def learn_version(self, recorded: Any, actual: Any) -> None:
        if not (str(recorded or "").isdigit() and str(actual or "").isdigit()):
            return
        number = int(recorded)
        if number not in self._versions:
            insort(self._known, number)
        self._versions[number] = int(actual)

    def replaced(self, before: str, now: str) -> None:
        """The object that had the UID ``before`` here was created anew."""
        for recorded, actual in self.uids.items():
            if actual == before:
                self.uids[recorded] = now

    def version(self, recorded: int) -> int:
        """The version here that is as old as ``recorded`` was; made-up ones stay."""
        if recorded in self._versions:
            return self._versions[recorded]
        place = bisect_right(self._known, recorded)
        if place == 0 or recorded > _FUTURE:
            return recorded
        return self._versions[self._known[place - 1]]

    def in_text(self, text: str) -> str:
        text = _UID.sub(lambda match: self.uids.get(match[0], match[0]), text)
        return _IN_BODY.sub(lambda match: f"{match[1]}{self.version(int(match[2]))}{match[3]}", text)

    def in_query(self, query: str) -> str:
        query = _UID.sub(lambda match: self.uids.get(match[0], match[0]), query)
        return _IN_QUERY.sub(lambda match: f"{match[1]}{match[2]}={self.version(int(match[3]))}", query)

    def in_bytes(self, body: bytes) -> bytes:
        """Of protobuf: UIDs are as long here as there."""
        return re.sub(
            _UID.pattern.encode(), lambda match: self.uids.get(match[0].decode(), match[0].decode()).encode(), body
        )
