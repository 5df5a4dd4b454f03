"""The check that the history is linearizable: every answer fits one order of all operations, in real time.

Deciding this is NP-complete in general, but here every write has a unique revision, and every answer says which
revision of the object or collection it shows. So the order of the writes is known, and each answer has a range of
revisions at which it can have been given. Taken in the order of their answers, each operation gets the least revision
of its range that is not before any operation that had ended before this one began; if there is none, no order exists
(the least choice restricts the later ones least). That takes a logarithmic search for each operation.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from typing import ClassVar, NamedTuple

from kemu.lab.checks.consistency.versions import Versions
from kemu.lab.checks.history import History
from kemu.lab.checks.history.stores import ANY, NEVER
from kemu.lab.checks.results import Check, Fold, Result, seconds, several
from kemu.runtime.runlog.events import (
    GetAnswered,
    ListAnswered,
    ProcessClockCompared,
    StoreRecovered,
)
from kemu.runtime.words import counted

_Events = GetAnswered | ListAnswered | StoreRecovered | ProcessClockCompared


class Operation(NamedTuple):
    """A request that was answered, and what the answer shows."""

    start_ns: int
    end_ns: int
    who: str
    what: str
    """``write``, ``get`` or ``list``."""
    key: str
    """Empty: a collection."""
    revision: int
    """Revision of the object, 0: there was none; or of the collection."""
    digest: int
    """Digest of the object."""
    recoveries: int
    """Recoveries of the store, until the answer came."""

    def __str__(self) -> str:
        about = f" of {self.key.removeprefix('/registry/')}" if self.key else ""
        return f"{seconds(self.end_ns)}: the {self.what}{about} by {self.who}, begun at {seconds(self.start_ns)},"


def read(time_ns: int, actor: str, event: GetAnswered | ListAnswered, recoveries: int) -> Operation:
    """A get, or a list."""
    what, key = "get", ""
    if isinstance(event, ListAnswered):
        what = f"list of {event.resource}"
    else:
        namespace, name = event.namespace, event.name
        key = f"/registry/{event.resource}/{namespace}/{name}" if namespace else f"/registry/{event.resource}/{name}"
    return Operation(time_ns - event.took, time_ns, actor, what, key, event.rev, event.digest, recoveries)


class Floor:
    """The latest revision that operations have shown, by the time of their answers."""

    __slots__ = ("_revisions", "_times", "_who")

    def __init__(self) -> None:
        self._times = [-1]
        self._revisions = [0]
        self._who = [""]

    @property
    def now(self) -> tuple[int, str]:
        return self._revisions[-1], self._who[-1]

    def before(self, time_ns: int) -> tuple[int, str]:
        """What answers before that time have shown, and to whom."""
        position = bisect_left(self._times, time_ns) - 1
        return (self._revisions[position], self._who[position]) if position >= 0 else (0, "")

    def rise(self, time_ns: int, revision: int, who: str) -> None:
        """Times never decrease from call to call."""
        if revision > self._revisions[-1]:
            self._times.append(time_ns)
            self._revisions.append(revision)
            self._who.append(who)

    def fall(self, revision: int) -> None:
        """The store went back to that revision."""
        position = bisect_right(self._revisions, revision)
        if position < len(self._revisions):
            del self._times[position + 1 :], self._revisions[position + 1 :], self._who[position + 1 :]
            self._revisions[position] = revision


class Unjudged(Exception):
    """The log does not tell."""


class Misplaced(Exception):
    """No revision fits; why is the text."""


def place(versions: Versions, operation: Operation, floor: int, whose: str) -> int:
    """The least revision, from ``floor`` on, at which the answer can have been given. Raises Misplaced, Unjudged.

    ``whose``: who has seen ``floor``. A version that was lost before the answer came has no place; NEVER is returned.
    """
    epoch = versions.epoch(operation.recoveries)
    revision, key = operation.revision, operation.key
    since = f"although {whose} had seen revision {floor} before"
    if versions.recorded and max(revision, floor) > versions.history.revision:
        raise Unjudged
    if not key:
        made_ns = versions.time_ns(revision, epoch)
        if revision > versions.top(epoch) or _is_later(versions, operation, made_ns):
            # The number may be one that the store had given before, and lost.
            base = versions.birth(epoch, revision)
            if any(revision <= versions.top(earlier) for earlier in range(base)):
                return NEVER
            if revision > versions.top(epoch):
                raise Misplaced(f"shows revision {revision}, which the store never had")
        _check_time(versions, operation, made_ns)
        if revision < floor:
            raise Misplaced(f"shows revision {revision}, {since}")
        return revision
    if not revision:
        found = versions.absence(key, epoch, floor)
        if found is None:
            raise Misplaced(f"says that there is none, {since}, when there was one")
        if found[1] is not None:
            _check_time(versions, operation, found[1].time_ns)
        return found[0]
    change = versions.seen(key, revision, operation.digest, epoch)
    if change is None:
        raise Misplaced(f"shows revision {revision} with a content that the store never had")
    if change.undone <= epoch:
        return NEVER
    _check_time(versions, operation, change.time_ns)
    first, last = versions.presence(key, revision, epoch)
    if last < floor:
        raise Misplaced(f"shows its revision {revision}, which was replaced by revision {last + 1}, {since}")
    return max(first, floor)


def _is_later(versions: Versions, operation: Operation, time_ns: int | None) -> bool:
    return time_ns is not None and time_ns > operation.end_ns and not versions.recorded


def _check_time(versions: Versions, operation: Operation, time_ns: int | None) -> None:
    if time_ns is not None and _is_later(versions, operation, time_ns):
        raise Misplaced(f"shows what was only written at {seconds(time_ns)}")


class HistoryIsLinearizable(Check):
    """Writes, gets and lists without a resource version take effect at one moment between request and answer.

    So an answer shows no revision before that of any write or read whose answer had come before the request was made,
    by whichever client and API server; and what it shows of an object is what the store had at that revision. Each
    write replaced the very version that it was computed from.
    """

    id: ClassVar[str] = "history-is-linearizable"
    folds: ClassVar[tuple[type[Fold], ...]] = (Fold,)

    def __init__(self) -> None:
        self._reads: list[tuple[int, Operation]] = []
        """With the number of writes that had been acknowledged before."""
        self._recoveries = 0
        self._within_ns = 0
        """The clocks of two actors may be that far apart."""

    def given(self, *folds: Fold) -> None:
        self._history = folds[0].history

    def on_event(self, time_ns: int, actor: str, event: _Events) -> None:
        if isinstance(event, StoreRecovered):
            self._recoveries += 1
        elif isinstance(event, ProcessClockCompared):
            self._within_ns = max(self._within_ns, 2 * event.within_ns)
        elif not event.version and not (isinstance(event, ListAnswered) and event.token):
            acknowledged = len(self._history.acknowledged)
            self._reads.append((acknowledged, read(time_ns, actor, event, self._recoveries)))

    def _operations(self) -> list[Operation]:
        """Writes and reads, by the time of answer."""
        found: list[Operation] = []
        reads = iter(self._reads)
        place, one = next(reads, (-1, None))
        for number, (end_ns, took_ns, _sent, who, _server, revision, key, _uid, digest, recoveries) in enumerate(
            self._history.acknowledged
        ):
            while one is not None and place <= number:
                found.append(one)
                place, one = next(reads, (-1, None))
            found.append(Operation(end_ns - took_ns, end_ns, who, "write", key, revision, digest, recoveries))
        if one is not None:
            found.append(one)
        found.extend(each for _, each in reads)
        return found

    def result(self, history: History) -> Result:
        versions = history.derived(Versions)
        within_ns = self._within_ns
        operations = self._operations()
        if within_ns:
            operations = [
                one._replace(start_ns=one.start_ns - within_ns, end_ns=one.end_ns + within_ns) for one in operations
            ]
        findings, judged = order(versions, operations)
        replaced, replacements = _replacements(versions)
        findings += replaced
        if findings:
            return Result(self.id, False, several(findings))
        if not judged and not replacements:
            return Result(self.id, None, "there were no operations to judge")
        return Result(self.id, True, f"{counted(judged, 'operation')}, {counted(replacements, 'replaced version')}")


def order(versions: Versions, operations: list[Operation]) -> tuple[list[str], int]:
    """What does not fit into one order, and how many operations were judged. ``operations`` by the time of answer."""
    findings: list[str] = []
    floor = Floor()
    epoch = judged = 0
    for operation in operations:
        while epoch < versions.epoch(operation.recoveries):
            _go_back(versions, floor, epoch, findings)
            epoch += 1
        revision, who = floor.before(operation.start_ns)
        try:
            placed = place(versions, operation, revision, who)
        except Unjudged:
            continue
        except Misplaced as why:
            findings.append(f"{operation} {why}")
            continue
        judged += 1
        if placed == NEVER:
            findings.append(f"{operation} shows revision {operation.revision}, which the store had lost by then")
        else:
            floor.rise(operation.end_ns, placed, operation.who)
    for later in range(epoch, len(versions.history.rollbacks)):
        _go_back(versions, floor, later, findings)
    return findings, judged


def _go_back(versions: Versions, floor: Floor, epoch: int, findings: list[str]) -> None:
    rollback = versions.history.rollbacks[epoch]
    revision, who = floor.now
    if revision > rollback.revision:
        findings.append(
            f"{seconds(rollback.time_ns)}: the store went back to revision {rollback.revision}, although {who} had "
            f"seen revision {revision}"
        )
    floor.fall(rollback.revision)


def _replacements(versions: Versions) -> tuple[list[str], int]:
    """Writes that did not replace the version that they demanded, and how many writes said what they demanded."""
    findings: list[str] = []
    judged = 0
    for key, changes in versions.by_key.items():
        for index, change in enumerate(changes):
            if change.base is None:
                continue
            judged += 1
            there = 0
            for earlier in reversed(
                changes[:index] if versions.history.rollbacks else changes[max(0, index - 1) : index]
            ):
                if earlier.undone > change.born:
                    there = earlier.revision if earlier.value is not None else 0
                    break
            if change.base != there:
                name = key.removeprefix("/registry/")
                wanted = (
                    "any version" if change.base == ANY else f"revision {change.base}" if change.base else "nothing"
                )
                had = f"revision {there}" if there else "nothing"
                findings.append(
                    f"{seconds(change.time_ns)}: revision {change.revision} of {name} was to replace {wanted}, and "
                    f"replaced {had}"
                )
    return findings, judged
