"""What the recording calls by a UID or a resource version has another one here."""

from __future__ import annotations

import json
import re
import urllib.parse
from bisect import bisect_right, insort
from typing import Any

_UID = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}")
_IN_QUERY = re.compile(r"(^|&)(resourceVersion)=(\d+)")
_IN_PATCH = re.compile(r'("path"\s*:\s*"/metadata/resourceVersion"\s*,\s*"value"\s*:\s*")(\d+)(")')
_TOKEN = re.compile(r"((?:^|&)continue=)([^&]+)")
_IN_BODY = re.compile(r'("resourceVersion"\s*:\s*")(\d+)(")')
#: Versions above this were made up by whoever asked.
_FUTURE = 1 << 20


class Identities:
    def __init__(self) -> None:
        self.uids: dict[str, str] = {}
        """Recorded to actual."""
        self._created: dict[str, str] = {}
        """By recorded UID, when the object was created here."""
        self._names: dict[str, str] = {}
        """Of objects whose names the API server generated."""
        self._tokens: dict[str, str] = {}
        """Of continued lists, as they stand in queries."""
        self._objects: set[str] = set()
        """Recorded versions of objects (not of lists) that an answer here stands for."""
        self._versions: dict[int, int] = {}
        self._known: list[int] = []

    def learn(self, recorded: Any, actual: Any) -> None:
        """Of two objects, lists or reviews that stand for the same."""
        if not isinstance(recorded, dict) or not isinstance(actual, dict):
            return
        one, other = recorded.get("metadata") or {}, actual.get("metadata") or {}
        if one.get("uid") and other.get("uid"):
            self.uids[one["uid"]] = other["uid"]
            self._objects.add(str(one.get("resourceVersion")))
            if other.get("creationTimestamp"):
                self._created[one["uid"]] = other["creationTimestamp"]
        if one.get("generateName") and one.get("name") and other.get("name"):
            self._names[one["name"]] = other["name"]
        if one.get("continue") and other.get("continue"):
            self._tokens[urllib.parse.quote(one["continue"], safe="")] = urllib.parse.quote(other["continue"], safe="")
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

    def has_version(self, recorded: Any) -> bool:
        """Whether an answer here stands for this very version."""
        return str(recorded) in self._objects

    def version(self, recorded: int) -> int:
        """The version here that is as old as ``recorded`` was; made-up ones stay."""
        if recorded in self._versions:
            return self._versions[recorded]
        place = bisect_right(self._known, recorded)
        if place == 0 or recorded > _FUTURE:
            return recorded
        return self._versions[self._known[place - 1]]

    def in_metadata(self, document: dict[str, Any]) -> dict[str, Any]:
        """UIDs, resource versions, and the times at which objects were created."""
        translated: dict[str, Any] = json.loads(self._in_text(json.dumps(document)))
        uid = (document.get("metadata") or {}).get("uid")
        if uid in self._created and "creationTimestamp" in document["metadata"]:
            translated["metadata"]["creationTimestamp"] = self._created[uid]
        return translated

    def in_text(self, text: str) -> str:
        """Of a document in JSON; of any other text, UIDs only."""
        try:
            document = json.loads(text)
        except ValueError:
            return self._in_text(text)
        if not isinstance(document, dict) or not isinstance(document.get("metadata"), dict):
            return self._in_text(text)
        uid = document["metadata"].get("uid")
        text = self._in_text(text)
        if uid in self._created and "creationTimestamp" in document["metadata"]:
            then = document["metadata"]["creationTimestamp"]
            text = text.replace(json.dumps(then), json.dumps(self._created[uid]), 1)
        return text

    def _in_text(self, text: str) -> str:
        text = _UID.sub(lambda match: self.uids.get(match[0], match[0]), text)
        text = _IN_PATCH.sub(lambda match: f"{match[1]}{self.version(int(match[2]))}{match[3]}", text)
        return _IN_BODY.sub(lambda match: f"{match[1]}{self.version(int(match[2]))}{match[3]}", text)

    def in_path(self, path: str) -> str:
        return "/".join(self._names.get(part, part) for part in path.split("/"))

    def in_query(self, query: str) -> str:
        query = _TOKEN.sub(lambda match: match[1] + self._tokens.get(match[2].replace("=", "%3D"), match[2]), query)
        query = _UID.sub(lambda match: self.uids.get(match[0], match[0]), query)
        return _IN_QUERY.sub(lambda match: f"{match[1]}{match[2]}={self.version(int(match[3]))}", query)
