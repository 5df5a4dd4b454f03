"""What happens in a trial: changes of the store, writes of controllers, and what these were told."""

from __future__ import annotations

import dataclasses
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from kemu.emulated.objects import custom_kinds, resources
from kemu.emulated.objects.conversion import convert
from kemu.lab.hunt.projects import Named
from kemu.messages.k8s.apiextensions_v1_pb2 import CustomResourceDefinition
from kemu.messages.k8s.objects import KubernetesObject
from kemu.runtime.runlog.events import Transaction

_ANSWERED_NS = 100_000_000
"""Virtual time in which the store's answer to a write comes."""
ANY_END = "*"
"""At the end of a name: random ends that differ from trial to trial."""
ASKED = "asked"
ENDS = ("deleting", "delete")
"""Of changes: what ends an object."""
_REGISTRY = "/registry/"
_DEFINITIONS = f"{_REGISTRY}{custom_kinds.DEFINITIONS}/"


@dataclass(frozen=True, slots=True)
class Change:
    """One object was written or removed, by anybody."""

    time_ns: int
    revision: int
    key: str
    nth: int
    """Of all changes of this key."""
    value: bytes | None
    """None: it is gone."""
    is_new: bool
    what: str = ""
    """``create``, ``deleting``: it begins to go, ``delete``: it is gone, ``asked``: else, by a step; empty: anything
    else."""
    nth_of_what: int = 0
    """Of all such changes of this key."""
    is_asked: bool = False
    """By a step of the hunt: the user's wish."""


@dataclass(frozen=True, slots=True)
class Count:
    """A write that a controller asks for, and which one that is."""

    controller: str
    verb: str
    resource: str
    key: str
    """Empty: only the store will know."""
    nth: int
    """Of all writes of the controller to this key."""
    nth_of_kind: int = 0
    """Of all writes of the controller to objects of this resource."""
    nth_of_verb: int = 0
    """Of all writes with this verb of the controller to this key."""
    compares: bool = False
    """It names the version that it is about, so that it can meet a conflict."""

    def answered(self, time_ns: int, status: int, revision: int) -> Write:
        return Write(**dataclasses.asdict(self), time_ns=time_ns, status=status, revision=revision)


@dataclass(frozen=True, slots=True)
class Write(Count):
    """The same, and how it was answered."""

    time_ns: int = 0
    status: int = 0
    """Of HTTP; 0: it was not answered."""
    revision: int = 0
    """Of the store when it was answered."""


@dataclass(frozen=True, slots=True)
class Notice:
    """A watch has told a controller of an object."""

    time_ns: int
    controller: str
    key: str
    revision: int
    what: str
    """``ADDED MODIFIED DELETED``"""


@dataclass(frozen=True, slots=True)
class Read:
    """A controller has read an object, or listed a kind."""

    time_ns: int
    controller: str
    place: str
    """A key; of a list what the keys begin with, and a slash at its end."""
    revision: int
    """As of which the answer was."""


@dataclass(frozen=True, slots=True)
class Start:
    """A controller was started, and knows nothing yet."""

    time_ns: int
    controller: str


@dataclass
class Course:
    """All of it, in order. Fed by the session of the trial. Objects are kept as the store has them, and are read when
    somebody asks: a trial of a thousand pods costs what their bytes take."""

    changes: list[Change] = field(default_factory=list)
    writes: list[Write] = field(default_factory=list)
    notices: list[Notice] = field(default_factory=list)
    reads: list[Read] = field(default_factory=list)
    starts: list[Start] = field(default_factory=list)
    struck: dict[object, tuple[str, int]] = field(default_factory=dict)
    """Perturbations that have come about, with the key and the number of the write or the change."""
    values: dict[str, bytes] = field(default_factory=dict)
    """What the store holds, by key."""
    revision: int = 0
    asking: str = ""
    """The key of the object that a step is about to change; the next change of it is the user's."""
    _counts: Counter[str] = field(default_factory=Counter)
    _written: Counter[tuple[str, ...]] = field(default_factory=Counter)
    _going: set[str] = field(default_factory=set)
    """Keys of objects that are being deleted."""
    _plurals: dict[str, str] = field(default_factory=dict)
    """Of custom kinds: resource by kind, with the group and without."""
    _kinds: dict[str, str] = field(default_factory=dict)
    """``Widget.example.com`` by resource."""
    _objects: tuple[int, dict[str, Mapping[str, Any]]] = (-1, {})
    """What was asked for last, with its revision."""
    _makers: tuple[int, dict[tuple[str, int], str]] = (-1, {})
    """Controllers by the changes that they made, and how many writes there were then."""

    def take(self, time_ns: int, event: Transaction) -> list[Change]:
        """A transaction of the store: what it changed."""
        self.revision = event.rev
        found = []
        for operation, key, value, _, version in event.changes:
            self._counts[key] += 1
            gone = operation != 0
            if gone:
                self.values.pop(key, None)
            else:
                self.values[key] = value
                if key.startswith(_DEFINITIONS):
                    self._define(value)
            is_asked = key == self.asking
            if is_asked:
                self.asking = ""
            what = self._what(key, None if gone else value, version == 1) or (ASKED if is_asked else "")
            self._counts[f"{what} {key}"] += 1
            nth, left = self._counts[f"{what} {key}"], None if gone else value
            change = Change(time_ns, event.rev, key, self._counts[key], left, version == 1, what, nth, is_asked)
            self.changes.append(change)
            found.append(change)
        return found

    def _what(self, key: str, value: bytes | None, is_new: bool) -> str:
        if value is None:
            self._going.discard(key)
            return "delete"
        if is_new:
            self._going.discard(key)
            return "create"
        if key in self._going or not message(key, value).metadata.HasField("deletionTimestamp"):
            return ""
        self._going.add(key)
        return "deleting"

    def held_by(self, key: str) -> set[str]:
        """The finalizers for which an object waits that is being deleted."""
        return set(message(key, self.values[key]).metadata.finalizers) if key in self._going else set()

    def count_write(self, controller: str, resource: str, key: str, verb: str = "", *, compares: bool = False) -> Count:
        """The next write of a controller to an object."""
        self._written[controller, resource] += 1
        of_kind = self._written[controller, resource]
        return self.name_write(Count(controller, verb, resource, "", 0, of_kind, compares=compares), key)

    def name_write(self, count: Count, key: str) -> Count:
        """Where the store has said what is written."""
        if not key:
            return count
        place, of_verb = (count.controller, key), (count.controller, key, count.verb)
        self._written[place] += 1
        self._written[of_verb] += 1
        return dataclasses.replace(count, key=key, nth=self._written[place], nth_of_verb=self._written[of_verb])

    def _define(self, value: bytes) -> None:
        spec = CustomResourceDefinition.FromString(value).spec
        plural, kind = f"{spec.names.plural}.{spec.group}", spec.names.kind
        self._plurals |= {kind: plural, f"{kind}.{spec.group}": plural}
        self._kinds[plural] = f"{kind}.{spec.group}"

    def resource(self, kind: str) -> str:
        """Resource of a kind, as the store names it; empty: there is no such kind (yet)."""
        if kind in resources.BY_KIND:
            return resources.BY_KIND[kind].plural
        return self._plurals.get(kind, "")

    def key(self, named: Named) -> str:
        """Of the store; empty: there is no such kind (yet)."""
        plural = self.resource(named.kind)
        known = resources.BY_PLURAL.get(plural)
        if not plural:
            return ""
        spaced = known.namespaced if known is not None else self._has_namespaces(plural)
        return f"{_REGISTRY}{plural}/{named.namespace}/{named.name}" if spaced else f"{_REGISTRY}{plural}/{named.name}"

    def fits(self, named: Named, key: str) -> bool:
        """Whether a key is that of an object, or of one whose name begins as said before a ``*``."""
        wanted = self.key(named)
        return key.startswith(wanted[:-1]) if wanted.endswith(ANY_END) else key == wanted

    def _has_namespaces(self, plural: str) -> bool:
        value = self.values.get(f"{_DEFINITIONS}{plural}")
        return value is None or CustomResourceDefinition.FromString(value).spec.scope == custom_kinds.NAMESPACED

    def named(self, key: str) -> Named:
        """The object of a key."""
        plural, _, rest = key.removeprefix(_REGISTRY).partition("/")
        namespace, _, name = rest.rpartition("/")
        return Named(self.kind(plural), name, namespace)

    def kind(self, plural: str) -> str:
        known = resources.BY_PLURAL.get(plural)
        return known.kind if known is not None else self._kinds.get(plural, plural)

    def objects(self) -> dict[str, Mapping[str, Any]]:
        """All that the store holds, as JSON, by key."""
        if self._objects[0] != self.revision:
            found = {key: manifest(key, value) for key, value in sorted(self.values.items())}
            self._objects = self.revision, found
        return self._objects[1]

    def belated(self, since_ns: int) -> set[tuple[str, int]]:
        """Keys and revisions of creations and deletions of objects that were created when all of their owners were gone
        already, as by a request that was long under way: the garbage collector takes them away."""
        values: dict[str, bytes] = {}
        gone: set[str] = set()
        waiting: set[str] = set()
        found: set[tuple[str, int]] = set()
        for change in self.changes:
            key, value = change.key, change.value
            if value is None:
                if key in values:
                    gone.add(message(key, values.pop(key)).metadata.uid)
                if key in waiting:
                    waiting.remove(key)
                    found.add((key, change.revision))
                continue
            values[key] = value
            if change.is_new and change.time_ns >= since_ns:
                owners = [one.uid for one in message(key, value).metadata.ownerReferences]
                if owners and gone.issuperset(owners):
                    waiting.add(key)
                    found.add((key, change.revision))
        return found

    def made_by(self, change: Change) -> str:
        """The controller whose write a change is; empty: somebody else's."""
        if self._makers[0] != len(self.writes):
            found: dict[tuple[str, int], str] = {}
            latest: dict[str, Change] = {}
            changes = iter(self.changes)
            following = next(changes, None)
            for write in self.writes:
                while following is not None and following.revision <= write.revision:
                    latest[following.key] = following
                    following = next(changes, None)
                made = latest.get(write.key)
                if made is not None and write.status < 300 and made.time_ns >= write.time_ns - _ANSWERED_NS:
                    found.setdefault((made.key, made.revision), write.controller)
            self._makers = len(self.writes), found
        return self._makers[1].get((change.key, change.revision), "")

    def known(self, controller: str, key: str, time_ns: int) -> int:
        """The revision as of which a controller knew an object, from what it was told and had read; 0: it did not."""
        starts = (one.time_ns for one in self.starts if one.controller == controller and one.time_ns <= time_ns)
        begun_ns = max(starts, default=0)
        told = (
            one.revision
            for one in self.notices
            if one.controller == controller and one.key == key and begun_ns <= one.time_ns <= time_ns
        )
        read = (
            one.revision
            for one in self.reads
            if one.controller == controller
            and begun_ns <= one.time_ns <= time_ns
            and (one.place == key or (one.place.endswith("/") and key.startswith(one.place)))
        )
        return max((*told, *read), default=0)


def manifest(key: str, value: bytes) -> Mapping[str, Any]:
    """An object of the store as JSON."""
    return convert.to_manifest(message(key, value))


def message(key: str, value: bytes) -> KubernetesObject:
    """An object of the store."""
    return resources.MESSAGES[resources.plural_of(key)].FromString(value)


def key_of(plural: str, namespace: str, name: str) -> str:
    return f"{_REGISTRY}{plural}/{namespace}/{name}" if namespace else f"{_REGISTRY}{plural}/{name}"
