"""The checks of reads that need not show the latest state, and of lists: monotonic, from the past, whole."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Mapping
from typing import ClassVar, NamedTuple

from kemu.emulated.objects import resources, selectors
from kemu.lab.checks.consistency.linearizability import Floor, Misplaced, Operation, Unjudged, place, read
from kemu.lab.checks.consistency.versions import Versions, read_digest
from kemu.lab.checks.history import History, parsed
from kemu.lab.checks.history.stores import NEVER, Change
from kemu.lab.checks.results import Check, Result, seconds
from kemu.runtime.runlog.events import GetAnswered, ListAnswered, StoreRecovered
from kemu.runtime.words import counted


class _Read(NamedTuple):
    operation: Operation
    server: str
    not_before: int
    """The resource version that was asked for."""


class ReadsAreMonotonic(Check):
    """Reads that may be stale (``resourceVersion`` 0 or N) show some past state, and never an older one than before.

    Kubernetes promises this to a client as long as it talks to one API server, whose watch cache never goes back; not
    from one API server to another, and not after reads or writes that pass the cache by. A read from revision N on
    shows none before N.
    """

    id: ClassVar[str] = "reads-are-monotonic"

    def __init__(self) -> None:
        self._reads: list[_Read] = []
        self._recoveries = 0

    def on_event(self, time_ns: int, actor: str, event: GetAnswered | ListAnswered | StoreRecovered) -> None:
        if isinstance(event, StoreRecovered):
            self._recoveries += 1
        elif event.version and not (isinstance(event, ListAnswered) and event.token):
            operation = read(time_ns, actor, event, self._recoveries)
            self._reads.append(_Read(operation, event.server, int(event.version)))

    def result(self, history: History) -> Result:
        versions = history.derived(Versions)
        findings: list[str] = []
        floors: dict[tuple[str, str], Floor] = {}
        epoch = judged = 0
        for operation, server, not_before in self._reads:
            while epoch < versions.epoch(operation.recoveries):
                for floor in floors.values():
                    floor.fall(history.rollbacks[epoch].revision)
                epoch += 1
            floor = floors.setdefault((operation.who, server), Floor())
            least = floor.before(operation.start_ns)[0]
            try:
                placed = place(versions, operation, least, "it")
                if placed < not_before:
                    # An object that has not changed since may be as new as that.
                    placed = place(versions, operation, not_before, "it asked for one that")
            except Unjudged:
                continue
            except Misplaced as why:
                findings.append(f"{operation} from the cache of {server} {why}")
                continue
            judged += 1
            if placed != NEVER:  # the API server has not noticed yet that the store lost it
                floor.rise(operation.end_ns, placed, operation.who)
        good = counted(judged, "read")
        return self.concluded(findings, judged, "nothing was read from the cache of an API server", good)


class _Selection(NamedTuple):
    resource: str
    namespace: str
    label_selector: str
    field_selector: str


class _List(NamedTuple):
    who: str
    time_ns: int
    selection: _Selection
    revision: int
    recoveries: int
    skipped: int
    """Objects on the pages before."""
    size: int
    is_last: bool
    digest: int


class ListsAreSnapshots(Check):
    """A list, over all of its pages, is the collection as the store had it at the one revision that the list states."""

    id: ClassVar[str] = "lists-are-snapshots"

    def __init__(self) -> None:
        self._lists: list[_List] = []
        self._pages: dict[tuple[_Selection, str], tuple[int, int]] = {}
        """By what is listed and the token of the next page: revision of the first page, objects so far."""
        self._recoveries = 0
        self._findings: list[str] = []

    def on_event(self, time_ns: int, actor: str, event: ListAnswered | StoreRecovered) -> None:
        if isinstance(event, StoreRecovered):
            self._recoveries += 1
            return
        selection = _Selection(event.resource, event.namespace, event.label_selector, event.field_selector)
        revision, skipped, count = event.rev, 0, event.count
        if event.token:
            found = self._pages.get((selection, event.token))
            if found is None:
                return
            first, skipped = found
            if revision != first:
                self._findings.append(
                    f"{seconds(time_ns)}: a page of {event.resource} for {actor} is of revision {revision}, and its "
                    f"first page was of revision {first}"
                )
                return
        if event.next:
            self._pages[selection, event.next] = (revision, skipped + count)
        self._lists.append(
            _List(actor, time_ns, selection, revision, self._recoveries, skipped, count, not event.next, event.digest)
        )

    def result(self, history: History) -> Result:
        versions = history.derived(Versions)
        findings = list(self._findings)
        wanted: dict[tuple[int, int], list[int]] = {}
        """Lists by the epoch in which their revision came to be, and that revision."""
        open_ = [True] * len(self._lists)
        judged = 0
        for index, one in enumerate(self._lists):
            epoch = versions.epoch(one.recoveries)
            if versions.recorded and one.revision > history.revision:
                open_[index] = False
                continue
            judged += 1
            # An API server that has not noticed that the store lost revisions may still show them.
            births = {versions.birth(e, one.revision) for e in range(epoch + 1) if one.revision <= versions.top(e)}
            for birth in sorted(births):
                wanted.setdefault((birth, one.revision), []).append(index)
        for indices, state in _states(versions, wanted):
            for index in indices:
                one = self._lists[index]
                if open_[index] and state.shows(one):
                    open_[index] = False
        findings += [
            f"{seconds(one.time_ns)}: the list of {one.selection.resource} for {one.who} "
            f"({counted(one.size, 'object')}) is not what the store had at its revision {one.revision}"
            for index, one in enumerate(self._lists)
            if open_[index]
        ]
        return self.concluded(findings, judged, "there were no lists", counted(judged, "list"))


def _states(versions: Versions, wanted: Mapping[tuple[int, int], list[int]]) -> Iterator[tuple[list[int], _State]]:
    """The state of the store at each wanted revision of each epoch, in the order of the log."""
    pending = deque(sorted(wanted))
    state = _State()
    epoch = 0

    def due(end: tuple[int, int]) -> Iterator[tuple[list[int], _State]]:
        while pending and pending[0] < end:
            yield wanted[pending.popleft()], state

    for change in versions.in_order():
        while epoch < change.born:
            epoch += 1
            yield from due((epoch, 0))
            _undo(versions, state, epoch)
        yield from due((change.born, change.revision))
        state.put(change.key, change)
    for later in range(epoch + 1, len(versions.history.rollbacks) + 1):
        yield from due((later, 0))
        _undo(versions, state, later)
    yield from due((NEVER, 0))


def _undo(versions: Versions, state: _State, epoch: int) -> None:
    """The recovery that began this epoch."""
    for key in dict.fromkeys(change.key for change in versions.history.rollbacks[epoch - 1].changes):
        kept = [change for change in versions.of(key, epoch) if change.born < epoch]
        state.put(key, kept[-1] if kept else None)


class _State:
    """The store at one moment."""

    def __init__(self) -> None:
        self._present: dict[str, dict[str, Change]] = {}
        """By resource and key."""
        self._known: dict[str, dict[_Selection, list[Change]]] = {}
        """By resource, what selections give; forgotten when it changes."""
        self._nodes: dict[str, str] = {}
        """By key of a pod, its node; kept once pods were listed by node."""
        self._pods: dict[str, dict[str, None]] | None = None
        """By node, the keys of its pods."""

    def put(self, key: str, change: Change | None) -> None:
        resource = key.split("/", 3)[2]
        objects = self._present.setdefault(resource, {})
        if change is None or change.value is None:
            objects.pop(key, None)
        else:
            objects[key] = change
        self._known.pop(resource, None)
        if resource == "pods" and self._pods is not None:
            self._set_node(key, objects.get(key))

    def shows(self, one: _List) -> bool:
        """Whether a list, or a page of it, shows this state."""
        known = self._known.setdefault(one.selection.resource, {})
        found = known.get(one.selection)
        if found is None:
            found = known[one.selection] = self._select(one.selection)
        if one.skipped + one.size > len(found) or one.is_last != (one.skipped + one.size == len(found)):
            return False
        total = sum(read_digest(change) for change in found[one.skipped : one.skipped + one.size])
        return total & 0xFFFFFFFF == one.digest

    def _select(self, selection: _Selection) -> list[Change]:
        """In the order of their keys."""
        plural, namespace, label_selector, field_selector = selection
        objects = self._present.get(plural, {})
        keys = self._candidates(selection, objects)
        if namespace:
            prefix = f"/registry/{plural}/{namespace}/"
            keys = [key for key in keys if key.startswith(prefix)]
        found = [objects[key] for key in sorted(keys)]
        if label_selector or field_selector:
            labels = selectors.parse_labels(label_selector)
            fields = selectors.parse_fields(field_selector, plural)
            parse = parsed.parser(plural)
            objs = ((change, parse(change.value or b"")) for change in found)
            found = [change for change, obj in objs if labels.matches(obj.metadata.labels) and fields.matches(obj)]
        return found

    def _candidates(self, selection: _Selection, objects: Mapping[str, Change]) -> list[str]:
        """Keys among which the selected ones are. Of nodes and their pods there are many, so they get an index."""
        equals = dict(selectors.parse_fields(selection.field_selector, selection.resource).equals)
        row = resources.BY_PLURAL.get(selection.resource)
        if "metadata.name" in equals and row is not None and not row.namespaced:
            key = f"/registry/{selection.resource}/{equals['metadata.name']}"
            return [key] if key in objects else []
        if selection.resource == "pods" and "spec.nodeName" in equals:
            if self._pods is None:
                self._pods = {}
                for key, change in objects.items():
                    self._set_node(key, change)
            return list(self._pods.get(equals["spec.nodeName"], ()))
        return list(objects)

    def _set_node(self, key: str, change: Change | None) -> None:
        assert self._pods is not None
        before = self._nodes.pop(key, None)
        if before is not None:
            del self._pods[before][key]
        if change is not None:
            assert change.value is not None
            node = self._nodes[key] = parsed.pod(change.value).spec.nodeName
            self._pods.setdefault(node, {})[key] = None
