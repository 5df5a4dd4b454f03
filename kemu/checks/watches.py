"""The check that watches deliver every event once, in order."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar

from google.protobuf.message import Message

from kemu.checks.facts import Change
from kemu.checks.history import History
from kemu.checks.results import Check, Result, counted, several
from kemu.objects import resources, selectors


@dataclass(slots=True)
class _Session:
    """One watch from its list to its end."""

    actor: str
    watch: str
    resource: str
    namespace: str
    label_selector: str
    field_selector: str
    since: int
    revisions: list[int] = field(default_factory=list)


class WatchHasNoGaps(Check):
    """Between the list that a watch began with and the last event that it delivered, nothing is missing or doubled.

    What should have come is computed anew from the store's own history and the selectors of the watch.
    """

    id: ClassVar[str] = "watch-has-no-gaps"
    kinds: ClassVar[tuple[str, ...]] = ("watch.listed", "watch.events", "watch.closed", "actor.started")

    def __init__(self) -> None:
        self._open: dict[tuple[str, str], _Session] = {}
        self._sessions: list[_Session] = []

    def on_event(self, time_ns: int, actor: str, kind: str, data: Mapping[str, Any]) -> None:
        if kind == "actor.started":
            for key in [key for key in self._open if key[0] == actor]:
                del self._open[key]
            return
        key = (actor, data["watch"])
        if kind == "watch.listed":
            session = _Session(
                actor, data["watch"], data["resource"], data["namespace"], data["label_selector"],
                data["field_selector"], data["rev"],
            )  # fmt: skip
            self._open[key] = session
            self._sessions.append(session)
        elif kind == "watch.events":
            if key in self._open:
                self._open[key].revisions.extend(data["revs"])
        else:
            self._open.pop(key, None)

    def result(self, history: History) -> Result:
        findings: list[str] = []
        delivered = 0
        changes: dict[str, list[Change]] = {}
        for change in history.changes:
            changes.setdefault(change.key.split("/", 3)[2], []).append(change)
        expected: dict[tuple[str, str, str, str], list[int]] = {}
        by_node = _revisions_by_node(changes.get("pods", []))
        by_name: dict[str, dict[str, list[Change]]] = {}
        for session in self._sessions:
            got = session.revisions
            delivered += len(got)
            if not got:
                continue
            who = f"{session.actor} ({session.watch})"
            for earlier, later in itertools.pairwise(got):
                if later <= earlier:
                    findings.append(f"{who}: revision {later} came after {earlier}")
            node = _only_node(session)
            if node is not None:
                wanted = by_node.get(node, [])
            else:
                signature = (session.resource, session.namespace, session.label_selector, session.field_selector)
                if signature not in expected:
                    some = changes.get(session.resource, [])
                    if name := _only_name(session.field_selector):
                        if session.resource not in by_name:
                            by_name[session.resource] = _by_name(some)
                        some = by_name[session.resource].get(name, [])
                    expected[signature] = _matching(some, *signature)
                wanted = expected[signature]
            missing = {r for r in wanted if session.since < r <= got[-1]}.symmetric_difference(got)
            if missing:
                revision = min(missing)
                what = "was missed" if revision not in got else "should not have come"
                findings.append(f"{who}: revision {revision} {what}")
        if findings:
            return Result(self.id, False, several(findings))
        if not delivered:
            return Result(self.id, None, "no watch delivered an event")
        return Result(
            self.id, True, f"{counted(len(self._sessions), 'watch', 'watches')}, {counted(delivered, 'event')}"
        )


def _only_node(session: _Session) -> str | None:
    """The node of a kubelet's watch of pods; of those there are many, so they get an index."""
    if session.resource != "pods" or session.namespace or session.label_selector:
        return None
    field_name, _, node = session.field_selector.partition("=")
    return node if field_name == "spec.nodeName" and "," not in node and node else None


def _only_name(field_selector: str) -> str:
    """The name, if that is all that is asked for."""
    field_name, _, name = field_selector.partition("=")
    return name if field_name == "metadata.name" and "," not in name and not name.startswith("=") else ""


def _by_name(changes: list[Change]) -> dict[str, list[Change]]:
    found: dict[str, list[Change]] = {}
    for change in changes:
        found.setdefault(change.key.rpartition("/")[2], []).append(change)
    return found


def _revisions_by_node(changes: list[Change]) -> dict[str, list[int]]:
    found: dict[str, list[int]] = {}
    message: Any = resources.BY_PLURAL["pods"].message
    node_of: dict[str, str] = {}
    for change in changes:
        before = node_of.get(change.key, "")
        after = message.FromString(change.value).spec.nodeName if change.value is not None else ""
        node_of[change.key] = after
        if before:
            found.setdefault(before, []).append(change.revision)
        if after and after != before:
            found.setdefault(after, []).append(change.revision)
    return found


def _matching(
    changes: list[Change], resource: str, namespace: str, label_selector: str, field_selector: str
) -> list[int]:
    """Revisions at which an object matched before or after."""
    if not label_selector and (name := _only_name(field_selector)):
        # A kubelet's watch of its own node: of those there are many, and nothing has to be read for them.
        end = f"/{name}"
        prefix = f"/registry/{resource}/{namespace}/" if namespace else ""
        return [change.revision for change in changes if change.key.endswith(end) and change.key.startswith(prefix)]
    message = resources.BY_PLURAL[resource].message
    matches: Callable[[Message], bool] | None = None
    if label_selector or field_selector:
        labels = selectors.parse_labels(label_selector)
        fields = selectors.parse_fields(field_selector, resource)

        def both(obj: Any) -> bool:
            return labels.matches(obj.metadata.labels) and fields.matches(obj)

        matches = both
    found = []
    matched: dict[str, bool] = {}
    for change in changes:
        if namespace and change.key.split("/")[3] != namespace:
            continue
        before = matched.get(change.key, False)
        after = change.value is not None and (matches is None or matches(message.FromString(change.value)))
        matched[change.key] = after
        if before or after:
            found.append(change.revision)
    return found
