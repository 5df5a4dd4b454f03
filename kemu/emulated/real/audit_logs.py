"""What a real kube-apiserver says of requests, in its audit log: who bound, deleted, evicted or created a pod, and what
was refused to whom.

The log is a file of JSON lines (``audit.k8s.io/v1``). A line is written when its request has been answered; what it
does not say (the revision of a binding) is looked up in what etcd has told, so lines are held for a moment.
"""

from __future__ import annotations

import datetime as dt
import json
import re
from collections import deque
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

from kemu.emulated.real.transactions import KnownPods
from kemu.runtime.env import SECOND_NS
from kemu.runtime.runlog.events import ApiRequest, Event, PodBound, RequestRefused, RequestThrottled

_VERBS = {
    ("create", "binding"): "bind",
    ("create", "eviction"): "evict",
    ("update", "status"): "update_status",
    ("deletecollection", ""): "delete_collection",
}
"""By verb and subresource, as the run log has it where that differs."""
_OWN_AGENT = re.compile(r"kemu \((.+)\)$")
_TOO_MANY = 429
_FIRST_BAD = 400

Hear = Callable[[int, str, Event], object]


class AuditLog:
    """Reads one log as it grows. ``hear``: Unix time in ns, actor, event."""

    def __init__(self, path: Path, actor: str, known: KnownPods, hear: Hear) -> None:
        """``actor``: the API server that writes it."""
        self._path = path
        self._actor = actor
        self._known = known
        self._hear = hear
        self._place = 0
        self._rest = b""
        self._held: deque[tuple[int, dict[str, Any]]] = deque()

    def read(self, until_ns: int) -> None:
        """Hear of what was answered before that time (Unix, ns), as far as it has been written."""
        for line in self._lines():
            try:
                entry = json.loads(line)
            except ValueError:
                continue  # the server was killed while it wrote
            self._held.append((unix_ns(entry["stageTimestamp"]), entry))
        while self._held and self._held[0][0] <= until_ns:
            self._tell(*self._held.popleft())

    def _lines(self) -> Iterator[bytes]:
        if not self._path.exists():
            return
        with self._path.open("rb") as file:
            file.seek(self._place)
            data = file.read()
        self._place += len(data)
        *whole, self._rest = (self._rest + data).split(b"\n")
        yield from whole

    def _tell(self, time_ns: int, entry: Mapping[str, Any]) -> None:
        where, status = entry.get("objectRef") or {}, entry.get("responseStatus") or {}
        verb = _VERBS.get((entry["verb"], where.get("subresource", "")), entry["verb"])
        by, code = _actor_of(entry), int(status.get("code", 0))
        start_ns = unix_ns(entry["requestReceivedTimestamp"])
        if code == _TOO_MANY and verb != "evict":
            self._hear(time_ns, self._actor, RequestThrottled(by=by, verb=verb, retry_after_s=1))
            return
        answer = entry.get("responseObject", {}).get("metadata", {}) if code < _FIRST_BAD else {}
        namespace, name = where.get("namespace", ""), where.get("name") or answer.get("name", "")
        key = f"{namespace}/{name}"
        target = entry.get("requestObject", {}) if verb == "bind" else {}
        is_pod = where.get("resource") == "pods"
        uid = where.get("uid") or answer.get("uid") or target.get("metadata", {}).get("uid", "")
        if is_pod and not uid:
            uid = self._known.uids.get(key, "")
        common = {
            "verb": verb, "resource": where.get("resource", ""), "namespace": namespace, "name": name, "uid": uid,
            "by": by, "start": start_ns,
        }  # fmt: skip
        if verb == "bind" and by.startswith("scheduler/"):
            # A real scheduler tells only of what succeeds.
            node, reason = target.get("target", {}).get("name", ""), status.get("reason", "")
            bound = PodBound(
                pod=key, uid=uid, node=node, start=start_ns, ok=code < _FIRST_BAD, reason=reason,
                message=status.get("message", ""),
            )  # fmt: skip
            self._hear(time_ns, by, bound)
        if code >= _FIRST_BAD:
            reason = status.get("reason", "") or str(code)
            self._hear(time_ns, self._actor, RequestRefused(**common, reason=reason, message=status.get("message", "")))
        elif is_pod and verb in ("create", "bind", "delete", "evict"):
            self._hear(time_ns, self._actor, ApiRequest(**common, rev=self._revision(verb, key, uid, answer)))

    def _revision(self, verb: str, key: str, uid: str, answer: Mapping[str, Any]) -> int:
        if verb == "create":
            return int(answer.get("resourceVersion") or 0)
        if verb == "bind" and uid in self._known.bound:
            return self._known.bound[uid]
        return self._known.last.get(key, 0)


def _actor_of(entry: Mapping[str, Any]) -> str:
    """The actor that asked: kemu's own say so themselves, and programs have theirs in the place of a uid."""
    own = _OWN_AGENT.search(entry.get("userAgent", ""))
    if own is not None:
        return own[1]
    user = entry.get("user", {})
    return str(user.get("uid") or user.get("username", ""))


def unix_ns(text: str) -> int:
    """Unix time (ns) of a time as Kubernetes writes it, with microseconds."""
    whole = dt.datetime.fromisoformat(text)
    seconds = int(whole.replace(microsecond=0).timestamp())
    return seconds * SECOND_NS + whole.microsecond * 1000
