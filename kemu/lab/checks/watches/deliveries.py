"""What every watch and list must deliver, computed anew from the store's own changes.

A watch is told of a change if the object matches its selectors before or after: ADDED where it begins to match,
DELETED where it ceases to, with its last state (``cacher.convertToWatchEvent``). The digest of an event is the CRC-32
of the object's bytes as clients get them; the digest of a list is the sum of those of its objects. A list shows Leases
and Nodes that state their heartbeats as they are at its time: of those it has the digest of name and resource version.

Role: below ``events``, above :mod:`kemu.lab.checks.history`.
"""

from __future__ import annotations

import zlib
from bisect import bisect_right
from collections.abc import Callable, Sequence
from typing import NamedTuple

from kemu.emulated.objects import selectors
from kemu.emulated.objects.wire import wires
from kemu.lab.checks.history import History, parsed
from kemu.lab.checks.history.stores import Change

ADDED, MODIFIED, DELETED = "AMD"

_Selection = tuple[str, str, str, str]
"""Resource, namespace, label selector, field selector."""


class _Row(NamedTuple):
    """One change, with the checksums that several selections need."""

    revision: int
    time_ns: int
    key: str
    change: Change
    suffix: bytes
    crc: int
    """Crc of the bytes in the store, now and before."""
    previous_crc: int
    standing: bool
    """Lists show it with the heartbeats of the moment."""

    @property
    def value(self) -> bytes | None:
        return self.change.value


class Deliveries:
    """The events of one selection, in the order of revisions, and what a list of it holds after each."""

    __slots__ = ("_held", "_objects", "_sums", "digests", "revisions", "times_ns", "types")

    def __init__(self) -> None:
        self.revisions: list[int] = []
        self.types: list[str] = []
        self.digests: list[int] = []
        self.times_ns: list[int] = []
        """When the change was made."""
        self._objects: list[int] = []
        self._sums: list[int] = []
        self._held: dict[str, int] = {}
        """By key: digests of the objects that match now, as in a list."""

    def add(self, row: _Row, is_in: bool) -> None:
        """The object matches now, or did so before."""
        held = self._held
        before = held.pop(row.key, None)
        total = (self._sums[-1] if self._sums else 0) - (before or 0)
        if is_in:
            kind = ADDED if before is None else MODIFIED
            digest = listed = zlib.crc32(row.suffix, row.crc)
            if row.standing:
                listed = wires.standing_digest(row.key.rpartition("/")[2], str(row.revision))
            held[row.key] = listed
            total += listed
        else:
            kind, digest = DELETED, zlib.crc32(row.suffix, row.previous_crc)
        self.revisions.append(row.revision)
        self.types.append(kind)
        self.digests.append(digest)
        self.times_ns.append(row.time_ns)
        self._objects.append(len(held))
        self._sums.append(total & 0xFFFFFFFF)

    def holds(self, key: str) -> bool:
        """Whether the object matched after the last change."""
        return key in self._held

    def listed(self, revision: int) -> tuple[int, int]:
        """How many objects matched at that revision, and the digest of their list."""
        position = bisect_right(self.revisions, revision) - 1
        return (self._objects[position], self._sums[position]) if position >= 0 else (0, 0)


class Line:
    """The deliveries of one line of history: after a store has lost revisions there is another one."""

    def __init__(self, changes: Sequence[Change], ended_ns: int | None = None) -> None:
        self.ended_ns = ended_ns
        """When the store lost the end of this line; None: it is what the store holds."""
        self._changes = changes
        self._rows: dict[str, list[_Row]] | None = None
        self._known: dict[_Selection, Deliveries] = {}
        self._by_node: dict[str, Deliveries] | None = None
        self._by_name: dict[str, dict[str, list[_Row]]] = {}

    def of(self, selection: _Selection) -> Deliveries:
        """To a watch with these selectors."""
        found = self._known.get(selection)
        if found is None:
            found = self._known[selection] = self._compute(*selection)
        return found

    def _compute(self, resource: str, namespace: str, label_selector: str, field_selector: str) -> Deliveries:
        if not label_selector:
            if resource == "pods" and not namespace and (node := _only(field_selector, "spec.nodeName")):
                # A kubelet's watch of its pods: of those there are many.
                if self._by_node is None:
                    self._by_node = _pods_by_node(self._of_kind("pods"))
                return self._by_node.get(node) or Deliveries()
            if name := _only(field_selector, "metadata.name"):
                # A kubelet's watch of its own node: nothing has to be parsed for it.
                return _matching(self._of_name(resource, name), resource, namespace, None)
        if not label_selector and not field_selector:
            return _matching(self._of_kind(resource), resource, namespace, None)
        labels = selectors.parse_labels(label_selector)
        fields = selectors.parse_fields(field_selector, resource)
        parse = parsed.parser(resource)

        def matches(value: bytes) -> bool:
            obj = parse(value)
            return labels.matches(obj.metadata.labels) and fields.matches(obj)

        return _matching(self._of_kind(resource), resource, namespace, matches)

    def _of_kind(self, resource: str) -> list[_Row]:
        if self._rows is None:
            self._rows = _rows(self._changes)
        return self._rows.get(resource, [])

    def _of_name(self, resource: str, name: str) -> list[_Row]:
        by_name = self._by_name.get(resource)
        if by_name is None:
            by_name = self._by_name[resource] = {}
            for row in self._of_kind(resource):
                by_name.setdefault(row.key.rpartition("/")[2], []).append(row)
        return by_name.get(name, [])


def lines(history: History) -> list[Line]:
    """What the store holds now first, then the lines that it lost, from the last to the first."""
    return history.derived(_lines)


def _lines(history: History) -> list[Line]:
    changes = history.changes
    found = [Line(changes)]
    for rollback in reversed(history.rollbacks):
        changes = changes[: bisect_right(changes, rollback.revision, key=_revision)] + rollback.changes
        found.append(Line(changes, rollback.time_ns))
    return found


def _revision(change: Change) -> int:
    return change.revision


def _rows(changes: Sequence[Change]) -> dict[str, list[_Row]]:
    by_kind: dict[str, list[_Row]] = {}
    crcs: dict[str, int] = {}
    for change in changes:
        key = change.key
        before = crcs.get(key, 0)
        crc = crcs[key] = change.crc
        kind = key.split("/", 3)[2]
        standing = (
            kind in ("nodes", "leases") and (value := change.value) is not None and wires.states_heartbeats(value)
        )
        suffix = wires.version_suffix(change.revision)
        row = _Row(change.revision, change.time_ns, key, change, suffix, crc, before, standing)
        by_kind.setdefault(kind, []).append(row)
    return by_kind


def _only(field_selector: str, name: str) -> str:
    """The value, if it is all that is asked of this one field."""
    field_name, _, value = field_selector.partition("=")
    return value if field_name == name and "," not in value and not value.startswith("=") else ""


def _pods_by_node(rows: list[_Row]) -> dict[str, Deliveries]:
    found: dict[str, Deliveries] = {}
    node_of: dict[str, str] = {}
    for row in rows:
        before = node_of.get(row.key, "")
        value = row.value
        after = parsed.pod(value).spec.nodeName if value is not None else ""
        node_of[row.key] = after
        if before and before != after:
            found[before].add(row, False)
        if after:
            if after not in found:
                found[after] = Deliveries()
            found[after].add(row, True)
    return found


def _matching(rows: list[_Row], resource: str, namespace: str, matches: Callable[[bytes], bool] | None) -> Deliveries:
    """``matches`` None: every object does."""
    found = Deliveries()
    prefix = f"/registry/{resource}/{namespace}/" if namespace else ""
    for row in rows:
        if not row.key.startswith(prefix):
            continue
        is_in = not row.change.is_deletion and (matches is None or matches(row.value or b""))
        if is_in or found.holds(row.key):
            found.add(row, is_in)
    return found
