"""What controllers had seen when they wrote: the revisions that their watches had delivered, and objects as they were.

Role: below the checks that recompute a decision from the view of the one who made it. A controller decides before its
request arrives, and from caches that lag behind. So each check asks what the controller may have seen in the time in
which it decided, and blames it only if nothing of that explains the write.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

from kemu.emulated.objects import meta
from kemu.emulated.objects.pods import pod_phases
from kemu.lab.checks.attention import LAGS_NS, Attention, sort_of
from kemu.lab.checks.history import PHASE, POD_PREFIX, History, parsed
from kemu.lab.checks.history.stores import Change
from kemu.lab.checks.results import Check, Fold, Result
from kemu.lab.checks.workloads.owners import KINDS
from kemu.messages.k8s import core_v1_pb2
from kemu.runtime.runlog.events import ActorStarted, Event, Transaction, WatchDelivered, WatchListed
from kemu.runtime.words import counted

_Events = Transaction | WatchListed | WatchDelivered | ActorStarted

_KEPT_NS = 600_000_000_000
"""For how long it is remembered what a controller had seen, and pods that are gone."""
_LONGEST_NS = 300_000_000_000
"""``ExpectationsTimeout``: after that, a controller no longer waits to see what it has written."""
_DECIDED_BY = tuple(
    f"/registry/{plural}/"
    for plural in ("cronjobs", "jobs", "nodes", "replicasets", "replicationcontrollers", "statefulsets")
)
"""Keys of the objects by which controllers decide."""
_INDEX = "batch.kubernetes.io/job-completion-index"


class Views(Fold):
    """What each controller has seen, by the revisions that its watches state."""

    actors: ClassVar[Mapping[type[Event], str]] = {
        WatchListed: "controller/",
        WatchDelivered: "controller/",
        ActorStarted: "controller/",
    }
    keys: ClassVar[tuple[str, ...]] = _DECIDED_BY

    def __init__(self, history: History) -> None:
        super().__init__(history)
        self._resources: dict[tuple[str, str], str] = {}
        """By actor and watch."""
        self._seen: dict[tuple[str, str], tuple[list[int], list[int]]] = {}
        """By actor and resource: times, and the revision that it had seen from then on."""
        self._versions: dict[str, tuple[list[int], list[bytes | None]]] = {}
        """By key: the revisions that changed it, and its values."""

    def on_event(self, time_ns: int, actor: str, event: _Events) -> None:
        if isinstance(event, Transaction):
            for op, key, value, _create, _version in event.changes:
                if key.startswith(_DECIDED_BY):
                    changed, held = self._versions.setdefault(key, ([], []))
                    changed.append(event.rev)
                    held.append(value if op == 0 else None)
            return
        if not actor.startswith("controller/"):
            return
        if isinstance(event, ActorStarted):
            for known in [known for known in self._seen if known[0] == actor]:
                del self._seen[known]
            return
        if isinstance(event, WatchListed):
            self._resources[actor, event.watch] = event.resource
            revision = event.rev
        else:
            revision = event.revs[-1]
        resource = self._resources.get((actor, event.watch))
        if resource is not None:
            times, revisions = self._seen.setdefault((actor, resource), ([], []))
            times.append(time_ns)
            revisions.append(revision)
            if len(times) > 2048:
                old = bisect_right(times, time_ns - _KEPT_NS) - 1
                del times[: max(0, old)], revisions[: max(0, old)]

    def seen(self, actor: str, resource: str, time_ns: int) -> int | None:
        """The revision up to which this process had seen a resource then; None: it had not listed it."""
        times, revisions = self._seen.get((actor, resource), ((), ()))
        place = bisect_right(times, time_ns) - 1
        return revisions[max(place, 0)] if revisions else None

    def versions(self, key: str, revision: int) -> list[bytes | None]:
        """What the store has had at this key since that revision, the present value first; None: nothing."""
        revisions, values = self._versions.get(key, ((), ()))
        first = bisect_right(revisions, revision)
        return [*reversed(values[first:]), values[first - 1] if first else None]

    def change(self, revision: int, key: str) -> Change | None:
        """What a revision did to a key."""
        changes = self.history.changes
        for place in range(bisect_right(changes, revision, key=lambda one: one.revision) - 1, -1, -1):
            if changes[place].revision != revision:
                return None
            if changes[place].key == key:
                return changes[place]
        return None


class ByView(Check):
    """A check of what controllers wrote, by what they had seen."""

    folds: ClassVar[tuple[type[Fold], ...]] = (Attention, Views)
    nothing: ClassVar[str]
    """What it says where it had nothing to look at."""
    unit: ClassVar[str]
    """What it counts."""

    def given(self, *folds: Any) -> None:
        self._attention, self._views = folds[:2]
        self._judged = 0
        self._findings: list[str] = []
        self._is_lost = False

    def rolled_back(self, time_ns: int, history: History) -> None:
        """What the controllers had seen is not known; nothing more is judged."""
        self._is_lost = True

    def result(self, history: History) -> Result:
        return self.concluded(self._findings, self._judged, self.nothing, counted(self._judged, self.unit))


def decided_since(attention: Attention, actor: str, asked_ns: int) -> int:
    """When at the earliest a controller decided on a request: what held it up in between holds up its request, too."""
    name = sort_of(actor)
    lag_ns = LAGS_NS + attention.lag_ns
    if attention.is_clear(name, max(0, asked_ns - lag_ns), asked_ns):
        return asked_ns - lag_ns
    return asked_ns - _LONGEST_NS


def is_prompt(asked_ns: int, since_ns: int) -> bool:
    """Whether nothing held the controller up after it had decided."""
    return asked_ns - since_ns < _LONGEST_NS


@dataclass(eq=False, slots=True)
class Member:
    """A pod, as long as one workload controls it."""

    uid: str
    name: str
    owner: str
    """The UID of the workload."""
    since: int
    """The revision by which it has belonged to it."""
    created: bool
    """By that revision."""
    index: str = ""
    out: int | None = None
    """The revision by which it ceased to be active: it has ended, is being deleted, is gone or has another owner."""
    out_ns: int = 0
    succeeded: bool = False

    def may_be_active(self, earliest: int, latest: int) -> bool:
        """To an actor that had seen one of these revisions."""
        return self.since <= latest and (self.out is None or self.out > earliest)


class Members(Fold):
    """The pods of each workload, from the first workload on."""

    keys: ClassVar[tuple[str, ...]] = tuple(KINDS)

    def __init__(self, history: History) -> None:
        super().__init__(history)
        self.of: dict[str, dict[str, Member]] = {}
        """By the UIDs of workload and pod. Those that are gone stay for a while."""
        self._by_key: dict[str, tuple[str, Member | None]] = {}
        """UID of the pod that has a name."""
        self._gone: list[Member] = []
        self._is_any = False

    def taker(self, kind: str) -> Callable[[int, str, Any], None] | None:
        return None if self._is_any else super().taker(kind)

    def on_event(self, time_ns: int, actor: str, event: Transaction) -> None:
        self._is_any = True
        for key, value in self.history.values.items():
            if key.startswith(POD_PREFIX):
                self.on_pod(time_ns, event.rev, key, parsed.pod(value))
        self.ask_again()

    def pod_changes(self) -> int | None:
        return PHASE if self._is_any else None

    def on_pod(self, time_ns: int, revision: int, key: str, pod: core_v1_pb2.Pod | None) -> None:
        uid, member = self._by_key.get(key, ("", None))
        controller = meta.controller_of(pod) if pod is not None and pod.metadata.ownerReferences else None
        owner = controller.uid if controller is not None else ""
        if member is not None and (pod is None or pod.metadata.uid != uid or owner != member.owner):
            self._out(time_ns, revision, member)
            self._gone.append(member)
            member = None
            if self._gone[0].out_ns < time_ns - _KEPT_NS:
                self._forget(time_ns)
        if pod is None:
            self._by_key.pop(key, None)
            return
        if member is None and owner:
            name = key.removeprefix(POD_PREFIX)
            index = pod.metadata.annotations.get(_INDEX, "")
            member = Member(pod.metadata.uid, name, owner, revision, pod.metadata.uid != uid, index)
            self.of.setdefault(owner, {})[member.uid] = member
        self._by_key[key] = pod.metadata.uid, member
        if member is not None and (pod_phases.is_terminal(pod) or pod.metadata.HasField("deletionTimestamp")):
            if member.out is None:
                member.succeeded = pod.status.phase == pod_phases.SUCCEEDED
            self._out(time_ns, revision, member)

    def _out(self, time_ns: int, revision: int, member: Member) -> None:
        if member.out is None:
            member.out, member.out_ns = revision, time_ns

    def _forget(self, time_ns: int) -> None:
        kept = []
        for member in self._gone:
            if member.out_ns >= time_ns - _KEPT_NS:
                kept.append(member)
                continue
            pods = self.of.get(member.owner, {})
            if pods.get(member.uid) is member:
                del pods[member.uid]
            if not pods:
                self.of.pop(member.owner, None)
        self._gone = kept
