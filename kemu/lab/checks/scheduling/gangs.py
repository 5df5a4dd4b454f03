"""The detector of gangs of which a part holds room."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import ClassVar

from kemu.emulated.objects.pods import pod_phases
from kemu.lab.checks.history import PHASE, POD_PREFIX, History
from kemu.lab.checks.limits import DEFAULT, MAX_PART_NS, Limits
from kemu.lab.checks.results import Fold, LimitedCheck, Result, seconds
from kemu.messages.k8s import core_v1_pb2, scheduling_v1alpha2_pb2
from kemu.runtime.runlog.events import RunEnded, Transaction
from kemu.runtime.words import counted, listed, short

_GROUP_PREFIX = "/registry/podgroups/"


@dataclass(slots=True)
class _Gang:
    wanted: int = 0
    """Its ``minCount``; 0: it is none, or not there."""
    members: dict[str, str] = field(default_factory=dict)
    """By UID of each that has a node and has not ended: its name."""
    waiting: dict[str, str] = field(default_factory=dict)
    """By UID of each that has none: its name."""
    lost: dict[str, str] = field(default_factory=dict)
    """By UID of each that had one, and has failed or is gone: its name."""
    succeeded: dict[str, None] = field(default_factory=dict)
    since_ns: int | None = None
    """Since when a part of it holds room."""
    part: str = ""
    """Which part, at last."""


class GangsAreWhole(LimitedCheck):
    """No gang holds room for long while fewer of its pods than its ``minCount`` have a node
    (``checks: gangs: {partFor}``), nor when nothing more can happen. Members that have succeeded count."""

    id: ClassVar[str] = "gangs-are-whole"
    detector: ClassVar[bool] = True
    folds: ClassVar[tuple[type[Fold], ...]] = (Fold,)
    keys: ClassVar[tuple[str, ...]] = (_GROUP_PREFIX,)

    def __init__(self, limits: Limits = DEFAULT) -> None:
        self._most_ns = MAX_PART_NS if limits.max_part_ns is None else limits.max_part_ns
        self._schedulers = limits.gang_schedulers
        self._gangs: dict[str, _Gang] = {}
        """By ``namespace/name`` of the PodGroup."""
        self._gang_of: dict[str, tuple[str, str]] = {}
        """By key of a pod: its UID and its gang."""
        self._findings: list[str] = []
        self._is_over = False
        """Nothing more can happen: what is a part stays one."""

    @classmethod
    def is_asked(cls, limits: Limits) -> bool:
        return limits.max_part_ns is not None

    def given(self, *folds: Fold) -> None:
        self._history = folds[0].history

    def rolled_back(self, time_ns: int, history: History) -> None:
        self._gangs.clear()
        self._gang_of.clear()

    def _on_txn(self, time_ns: int, actor: str, event: Transaction) -> None:
        for op, key, value, _create, _version in event.changes:
            if key.startswith(_GROUP_PREFIX):
                gang = self._gangs.setdefault(key.removeprefix(_GROUP_PREFIX), _Gang())
                group = scheduling_v1alpha2_pb2.PodGroup.FromString(value if op == 0 else b"")
                gang.wanted = group.spec.schedulingPolicy.gang.minCount
                self._looked(time_ns, key.removeprefix(_GROUP_PREFIX), gang)

    def _on_run_ended(self, time_ns: int, actor: str, event: RunEnded) -> None:
        self._is_over = event.reason == "idle" and event.still

    def pod_changes(self) -> int | None:
        return None if self._schedulers == () else PHASE

    def on_pod(self, time_ns: int, revision: int, key: str, pod: core_v1_pb2.Pod | None) -> None:
        before = self._gang_of.pop(key, None)
        if before is not None:
            had = self._gangs[before[1]].members.pop(before[0], "")
            if had:
                self._gangs[before[1]].lost[before[0]] = had
            self._gangs[before[1]].waiting.pop(before[0], None)
        if pod is not None and pod.spec.HasField("schedulingGroup") and self._is_one(pod.spec.schedulerName):
            uid, name = pod.metadata.uid, f"{pod.metadata.namespace}/{pod.spec.schedulingGroup.podGroupName}"
            gang = self._gangs.setdefault(name, _Gang())
            self._gang_of[key] = uid, name
            if pod.status.phase in pod_phases.TERMINAL:
                if pod.status.phase == "Succeeded":
                    gang.succeeded[uid] = None
                    gang.lost.pop(uid, None)
            elif pod.spec.nodeName and not pod.metadata.HasField("deletionTimestamp"):
                gang.members[uid] = key.removeprefix(POD_PREFIX)
                gang.lost.pop(uid, None)
            elif not pod.spec.nodeName:
                gang.waiting[uid] = key.removeprefix(POD_PREFIX)
            self._looked(time_ns, name, gang)
        if before is not None:
            self._looked(time_ns, before[1], self._gangs[before[1]])

    def _is_one(self, scheduler: str) -> bool:
        """Whether the scheduler knows gangs (feature gate GangScheduling): to others the group says nothing."""
        return self._schedulers is None or scheduler in self._schedulers

    def _looked(self, time_ns: int, name: str, gang: _Gang) -> None:
        is_part = 0 < len(gang.members) < gang.wanted - len(gang.succeeded)
        if not is_part and gang.since_ns is not None:
            self._findings += self._long(time_ns, name, gang)
            gang.since_ns = None
        if is_part:
            gang.since_ns = time_ns if gang.since_ns is None else gang.since_ns
            lacking = {**gang.lost, **gang.waiting}
            gang.part = _named(gang.members) + (f", and not {_named(lacking)}" if lacking else "")

    def _long(self, until_ns: int, name: str, gang: _Gang) -> list[str]:
        if gang.since_ns is None or (until_ns - gang.since_ns <= self._most_ns and not self._is_over):
            return []
        since, until = seconds(gang.since_ns), seconds(until_ns)
        had = f"a part of its {gang.wanted} members on nodes"
        return [f"gang {short(name)} had {had} from {since} to {until}: {gang.part}"]

    def result(self, history: History) -> Result:
        still = [text for name, gang in self._gangs.items() for text in self._long(history.now_ns, name, gang)]
        judged = sum(gang.wanted > 0 for gang in self._gangs.values()) if self._schedulers != () else 0
        return self.concluded(self._findings + still, judged, "there was no gang", counted(judged, "gang"))


def _named(members: dict[str, str]) -> str:
    return listed([short(name) for name in members.values()])
