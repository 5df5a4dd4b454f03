"""What happened in a run, one thing at a time: who did what to whom, when and why.

Role: reads a history; :mod:`stories` selects from what is found here, and tells what is alike in one line.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from kemu.emulated.objects.amounts import quantities
from kemu.emulated.objects.plain import Json
from kemu.lab.checks.history import LOST, History, custom_objects, disturbances
from kemu.lab.checks.history.claims import text_of
from kemu.lab.checks.history.custom_objects import ObjectFact
from kemu.lab.checks.history.disturbances import Disturbance
from kemu.lab.checks.history.facts import WORDS, Fact, Fault, NodeHistory, PodHistory
from kemu.lab.checks.history.stores import Change
from kemu.lab.checks.scheduling import ledgers
from kemu.lab.checks.scheduling.ledgers import Disruption
from kemu.lab.tell import devices, people
from kemu.runtime.faults.kinds import KINDS as FAULTS
from kemu.runtime.runlog.events import OWNER_GONE, Event
from kemu.runtime.runlog.events.words import ACTOR
from kemu.runtime.words import short

KINDS = {
    "created": 1, "bound": 1, "running": 1, "finished": 1,
    "unschedulable": 2, "nominated": 2, "deleted": 2, "resized": 2, "volume": 2, "device": 2, "collected": 2,
    "object": 2,
    "preempted": 3, "evicted": 3, "rejected": 3, "conflict": 3, "killed": 3, "lost": 3, "node": 3, "refused": 3,
    "error": 3, "scaled": 3, "elected": 3, "probed": 3, "job": 3, "rollout": 3, "autoscaled": 3,
    "exited": 4, "failed": 4, "fault": 4, "disturbance": 4, "waiting": 4, "check": 4,
}  # fmt: skip
"""Each kind with its weight: 1 what every pod goes through, 2 what leads to more, 3 what goes wrong or is taken away,
4 what a reader must not miss."""

TELLING = 3
"""From this weight on, no line is left out for the sake of others."""


@dataclass(slots=True)
class Happening:
    """One thing that happened, to a pod, to a node, or (``what``) to something else."""

    time_ns: int
    kind: str
    who: str
    """The actor."""
    says: tuple[str, str]
    """What is said of one pod or node, and of several: ``is bound to {nodes}``, ``are bound to {nodes}``. Happenings of
    one kind of which the same is said can be told together."""
    tone: str
    """``good bad plain``."""
    why: str | None = ""
    """None: what the pod wants."""
    pod: PodHistory | None = None
    node: str = ""
    by: PodHistory | None = None
    """The preemptor."""
    what: str = ""
    """The whole phrase, where it is about neither a pod nor a node alone."""
    fact: ObjectFact | None = None
    """What happened to an object as such."""
    whom: Sequence[str] = ()
    """Nodes that it concerns, beside ``node``."""
    beyond: Sequence[Disruption] = ()
    """Disruption budgets that could not spare the pod."""
    sizes: tuple[int, int] | None = None
    """The sizes of what was scaled, before and after: several steps are told as one from the first size to the last."""

    @property
    def weight(self) -> int:
        return KINDS[self.kind]

    def phrase(self) -> str:
        """``red-0 is bound to node-1``"""
        subject = short(self.pod.key) if self.pod is not None else self.node
        return self.what or f"{subject} {self.says[0].replace('{nodes}', self.node)}"

    def reason(self) -> str:
        return _wants(self.pod) if self.why is None and self.pod is not None else self.why or ""


def all_of(history: History, verdict: Mapping[str, Any] | None = None) -> list[Happening]:
    """In their order. ``verdict``: of verdict.json, whose failed checks and expectations are told at the end."""
    schedulers = Schedulers(history)
    found = [
        happening
        for pod in history.pods.values()
        for fact in _notable(pod)
        if (happening := _of_fact(history, schedulers, pod, fact)) is not None
    ]
    found += _of_faults(history.faults)
    found += [happening for one in history.disturbances for happening in _of_disturbance(one)]
    found += _of_reports(history, schedulers)
    found += of_nodes(history)
    found += map(_of_object, history.custom)
    found += _of_devices(history, schedulers)
    found += _of_the_end(history)
    ledger = ledgers.of(history)
    for one in found:
        if one.kind in (ledgers.PREEMPTED, ledgers.EVICTED) and one.pod is not None:
            one.beyond = ledger.beyond(one.pod.uid, one.kind)
    found.sort(key=lambda happening: happening.time_ns)
    return [*found, *_of_verdict(history, verdict or {})]


def _of_reports(history: History, schedulers: Schedulers) -> Iterator[Happening]:
    """What the events say themselves."""
    latest: dict[tuple[str, ...], Event] = {}
    for time_ns, actor, event in history.reports:
        subject = (event.KIND.partition(".")[0], *(str(event[name]) for name in event.SUBJECT))
        for line in event.lines(latest.get(subject)):
            who = actor if line.who == ACTOR else schedulers.actor(line.who or actor)
            phrase, node, pod = "", event.get("node", ""), None
            if line.is_whole:
                phrase = line.one.replace(ACTOR, actor)
            else:
                pod = history.pods.get(event["uid"]) or history.pod(event.get("pod", ""))
                if pod is None:
                    continue  # its creation is not known
                node = node or pod.node
            says = "" if phrase else line.one, line.many
            yield Happening(
                time_ns, line.kind, who, says, line.tone, line.why, pod, node, what=phrase, sizes=line.sizes
            )
        if event.SUBJECT:
            latest[subject] = event


class Schedulers:
    """The names under which schedulers are told of: as their actors are named, but for what says nothing."""

    def __init__(self, history: History) -> None:
        self._replicas: dict[str, dict[str, None]] = {}
        for pod in history.pods.values():
            for fact in pod.facts:
                name = fact.by if fact.what in ("attempted", "bound") else fact.actor.removeprefix("scheduler/")
                if "/" in name:
                    self._replicas.setdefault(name.partition("/")[0], {})[name] = None

    def name(self, scheduler: str) -> str:
        """``scheduler a/1``; for the only replica of the default scheduler just ``scheduler``."""
        return f"scheduler {self.full_name(scheduler)}".removesuffix(" default-scheduler")

    def full_name(self, scheduler: str) -> str:
        """``a/1``; without the number of an only replica, unless it is not the first."""
        name, _, number = scheduler.partition("/")
        return name if number in ("", "0") and len(self._replicas.get(name, ())) <= 1 else scheduler

    def actor(self, name: str) -> str:
        """``kubelet/node-1`` is kubelet node-1, ``controller/replicaset`` replicaset; if none is named, the user."""
        kind, _, rest = name.partition("/")
        if kind == "scheduler":
            return self.name(rest)
        return {"kubelet": f"kubelet {rest}", "controller": rest}.get(kind, kind or "user")


def family(pod: PodHistory) -> str:
    """What pods are counted by: workload, controller, or for a pod of its own the name without its number."""
    if pod.owner and pod.owner != pod.key:
        return pod.owner.partition("/")[2].removesuffix("-")
    return _NUMBER.sub("", pod.name) or pod.name


_NUMBER = re.compile(r"-[0-9]+$")


def had_finished(happening: Happening) -> bool:
    """Whether the pod had ended before it was preempted or evicted."""
    if happening.pod is None or happening.kind not in ("preempted", "evicted"):
        return False
    return any(fact.what == "finished" and fact.time_ns < happening.time_ns for fact in happening.pod.facts)


def last_reason(pod: PodHistory, history: History | None = None) -> str:
    """Why no node took it when it was last tried; with the history also who held the devices that it waits for."""
    last = next((fact for fact in reversed(pod.facts) if fact.what == "unschedulable"), None)
    if last is None:
        return ""
    return f"{_reason(last.message)}{devices.who_holds(history, pod, last) if history is not None else ''}"


def _of_devices(history: History, schedulers: Schedulers) -> Iterator[Happening]:
    """Claims are given their devices, perhaps such as another claim holds."""
    latest: dict[str, str] = {}
    """By claim: the pod for which it was given its devices last."""
    for grant in history.claims.grants:
        pod = history.pods.get(grant.pod)
        who = "API server" if pod is None else schedulers.name(_scheduler(pod, grant.time_ns))
        others = [(device, devices.claim(history, other, latest.get(other, ""))) for device, other in grant.taken]
        latest[grant.claim] = grant.pod
        what = f"{devices.claim(history, grant.claim, grant.pod)} gets {some([text_of(one) for one in grant.devices])}"
        if others:
            says, tone = ("", "get devices that others hold"), "bad"
            why = some([f"{text_of(device)} is held by {other}" for device, other in others])
            yield Happening(grant.time_ns, "conflict", who, says, tone, why, pod, what=what)
        elif grant.devices:
            says = ("", "get their devices")
            yield Happening(grant.time_ns, "device", who, says, "good", "", pod, what=what)


def _scheduler(pod: PodHistory, at_ns: int) -> str:
    """Who tried it last before a time."""
    tried = [fact.by for fact in pod.facts if fact.by and fact.what in ("attempted", "bound", "unschedulable")]
    return tried[-1] if tried else pod.scheduler_name


def _of_the_end(history: History) -> list[Happening]:
    """Pods that still wait for a node when the run ends."""
    end_ns = history.ended_ns
    if end_ns is None:
        return []
    says = ("still waits for a node at the end", "still wait for a node at the end")
    found = []
    for pod in history.pods.values():
        if not pod.node and pod.gone_ns is None and pod.deleting_ns is None and pod.phase == "Pending":
            why = f"for {seconds(end_ns - pod.created_ns)}"
            reason = last_reason(pod, history)
            found.append(Happening(end_ns, "waiting", "", says, "bad", f"{why}: {reason}" if reason else why, pod))
    return found


def _of_verdict(history: History, verdict: Mapping[str, Any]) -> list[Happening]:
    """The checks and expectations that failed."""
    found = []
    for one in (*verdict.get("expectations", ()), *verdict.get("checks", ())):
        if one["holds"] is False and one.get("asked", True):
            what = f"{one['id']} does not hold"
            why = f"{one['says']}: {one['detail']}" if "says" in one else one["detail"]
            found.append(Happening(history.now_ns, "check", "", ("", one["id"]), "bad", why, what=what))
    return found


def _of_faults(faults: Sequence[Fault]) -> list[Happening]:
    """What crashes in one instant in the same way is one thing that happens, and so is what comes back in one."""
    found = []
    begun: dict[tuple[int, str], list[Fault]] = {}
    ended: dict[tuple[int, str], list[Fault]] = {}
    for fault in faults:
        if fault.what == "crash":
            begun.setdefault(_crash(fault), []).append(fault)
            if fault.end_ns is not None:
                ended.setdefault((fault.end_ns, ""), []).append(fault)
        else:
            found += _of_fault(fault)
    endings = ("is started again", "are started again")
    for groups, verbs, tone in ((begun, ("crashes", "crash"), "bad"), (ended, endings, "good")):
        for (time_ns, how), group in groups.items():
            machines = [node for fault in group for node in fault.data.nodes]
            actors = [actor for fault in group if not fault.data.nodes for actor in fault.data.actors]
            for names, whom in ((machines, f"the machine{'s' * (len(machines) > 1)} of "), (actors, "")):
                if names:
                    what = f"{whom}{some(names)} {verbs[len(names) > 1]}"
                    says = ("", f"{whom}{verbs[1]}")
                    found.append(Happening(time_ns, "fault", "chaos", says, tone, how, what=what, whom=names))
    return found


_OF_OBJECTS = {"created": "is created", "changed": "is changed", "ending": "is being deleted", "deleted": "is gone"}


def of_object(history: History, resource: str, name: str) -> Iterator[Happening]:
    """What became of an object of a kind that is not custom. ``name``: with its namespace, or without if that is
    ``default``."""
    for change in _changes(history, resource):
        key = change.key.removeprefix(f"/registry/{resource}/")
        if name in (key, short(key)):
            yield from map(_of_object, custom_objects.facts(change.time_ns, change.key, change.previous, change.value))


def names(history: History, resource: str) -> list[str]:
    """Of the objects of a kind that there were, with their namespaces."""
    found = (change.key.removeprefix(f"/registry/{resource}/") for change in _changes(history, resource))
    return list(dict.fromkeys(found))


def _changes(history: History, resource: str) -> Iterator[Change]:
    prefix = f"/registry/{resource}/"
    return (change for change in history.changes if change.key.startswith(prefix))


def _of_object(fact: ObjectFact) -> Happening:
    verb = _OF_OBJECTS.get(fact.what, "")
    name = f"{fact.kind} {short(fact.key)}"
    what = f"{name} {verb}" if verb else f"{name}: {fact.detail}"
    tone = "good" if fact.detail == "Ready is True" else "plain"
    alike = "", f"{fact.resource} {verb or fact.detail}"
    return Happening(fact.time_ns, "object", fact.by or "API server", alike, tone, fact.why, what=what, fact=fact)


_VERBS = {disturbances.DIED: "dies", disturbances.STOPPED: "is stopped", disturbances.LAGGED: "lags"}


def _of_disturbance(one: Disturbance) -> Iterator[Happening]:
    verb = _VERBS[one.what]
    lasted = "to the end of the run" if one.end_ns is None else f"for {seconds(one.end_ns - one.begin_ns)}"
    why = f"{lasted}; {one.by or 'from outside'}"
    yield Happening(one.begin_ns, "disturbance", one.process, ("", verb), "bad", why, what=f"{one.process} {verb}")


def _crash(fault: Fault) -> tuple[int, str]:
    """When, and how. One that waits for a step of the actor comes later than the fault begins, or never."""
    if fault.data.step:
        if not fault.hits:
            return fault.begin_ns, f"at its next step {fault.data.step}, which did not come"
        return min(fault.hits.values()), f"at its step {fault.data.step}"
    return fault.begin_ns, "its power is cut" if fault.data.get("powerOff") else ""


def _of_fault(fault: Fault) -> list[Happening]:
    """When it begins, with whom it hit, and when it ends."""
    kind = FAULTS.get(fault.what)
    if kind is None:
        return []  # of a newer kemu
    values = {name: _plain(value) for name, value in fault.data.items()}
    begins = kind.begins.format_map(values)
    if fault.what == "partition" and not fault.data["oneWay"]:
        begins += ", nor the other way"
    hit = [f"{actor} → {peer}" if peer else actor for actor, peer in fault.hits]
    whom = [name for names in fault.hits for name in names if name]
    # An actor that is to crash in its next write goes on until that comes.
    begin_ns = min(fault.hits.values(), default=fault.begin_ns) if fault.what == "tornWrite" else fault.begin_ns
    why = f"hit {some(hit)}"
    found = [Happening(begin_ns, "fault", "chaos", ("", kind.begins), "bad", why, what=begins, whom=whom)]
    if fault.end_ns is not None and kind.ends:
        what = kind.ends.format_map(values)
        found.append(Happening(fault.end_ns, "fault", "chaos", ("", kind.ends), "good", what=what, whom=whom))
    return found


def _plain(value: Json) -> Json:
    """A parameter of a fault in words: names in a row, two sides one by one."""
    if isinstance(value, list):
        return [_plain(side) for side in value] if value and isinstance(value[0], list) else some(value)
    return f"{value:g}" if isinstance(value, float) else value


NAMED = 3
"""Up to this many with the same fate are named one by one."""

_PRESSURES = {"MemoryPressure": "memory", "DiskPressure": "disk", "PIDPressure": "process ids"}
_BUILT_IN_TAINTS = "node.kubernetes.io/"


def of_nodes(history: History) -> list[Happening]:
    """What happened to the nodes after their first states, node by node."""
    return [happening for one in history.nodes.values() for happening in _of_node(one)]


def _of_node(node: NodeHistory) -> list[Happening]:
    """What happened to it after its first state."""
    found: list[Happening | None] = []
    name = node.name
    added_ns = -1
    before: dict[str, str] = {}
    waited_for: set[str] = set()
    """Pods for which a drain has waited already."""
    for fact in node.facts:
        if fact.what == "added":
            if added_ns >= 0 or fact.time_ns:
                who = f"kubelet {name}"
                found.append(Happening(fact.time_ns, "node", who, _says(fact.what), "good", node=name))
            added_ns = fact.time_ns
        elif fact.what == "removed":
            found.append(Happening(fact.time_ns, "node", "user", _says(fact.what), "bad", node=name))
        elif fact.what in _DRAINS:
            found.append(_of_drain(name, fact, waited_for))
        elif fact.time_ns != added_ns:
            if fact.what == "condition":
                found.append(_of_condition(name, fact, before.get(fact.reason, "")))
            else:
                found.append(_of_taint(name, fact))
        if fact.what == "condition":
            before[fact.reason] = fact.status
    return [happening for happening in found if happening is not None]


def _of_condition(node: str, fact: Fact, before: str) -> Happening | None:
    """``before``: its status until then."""
    short_of, status = _PRESSURES.get(fact.reason), fact.status
    who, why = f"kubelet {node}", ""
    if short_of is not None:
        if status == "Unknown" or "True" not in (status, before):
            return None
        why = fact.reason
        if status == "True":
            says, tone = (f"runs short of {short_of}", f"run short of {short_of}"), "bad"
        else:
            says, tone = (f"has enough {short_of}", f"have enough {short_of}"), "good"
    elif fact.reason != "Ready":
        return None
    elif status == "Unknown":
        who, says, tone = "node-lifecycle", ("falls silent", "fall silent"), "bad"
    else:
        says, tone = (
            (("is ready", "are ready"), "good") if status == "True" else (("is not ready", "are not ready"), "bad")
        )
    return Happening(fact.time_ns, "node", who, says, tone, why, node=node)


_DRAINS = ("draining", "drainWaits", "drained", "drainFailed")


def _of_drain(node: str, fact: Fact, waited_for: set[str]) -> Happening | None:
    """A drain waits for a pod many times; that is told once."""
    if fact.what == "drainWaits":
        if fact.reason in waited_for:
            return None
        waited_for.add(fact.reason)
        what = f"the drain of {node} waits for {short(fact.reason)}"
        return Happening(fact.time_ns, "node", "user", ("", ""), "bad", fact.message, node=node, what=what)
    tone = {"drained": "good", "drainFailed": "bad"}.get(fact.what, "plain")
    return Happening(fact.time_ns, "node", "user", _says(fact.what), tone, fact.message, node=node)


_OF_AUTOSCALER = "ClusterAutoscaler"
"""How the taints of a cluster autoscaler end."""


def _of_taint(node: str, fact: Fact) -> Happening:
    who = "node-lifecycle" if fact.reason.startswith(_BUILT_IN_TAINTS) else "user"
    if fact.reason.endswith(_OF_AUTOSCALER):
        who = "cluster-autoscaler"
    taint = f"{fact.reason.removeprefix(_BUILT_IN_TAINTS)}:{fact.status}"
    if fact.what == "tainted":
        says, tone = (f"is tainted {taint}", f"are tainted {taint}"), "bad"
    else:
        says, tone = (f"loses its taint {taint}", f"lose their taint {taint}"), "good"
    return Happening(fact.time_ns, "node", who, says, tone, node=node)


def _notable(pod: PodHistory) -> Sequence[Fact]:
    """Leaves out repeated failures with the same message, and the set-up of pods that ran from the start."""
    kept = []
    last = ""
    for fact in pod.facts:
        if fact.what == "unschedulable" or (fact.what == "attempted" and fact.reason == "error"):
            if fact.message == last:
                continue
            last = fact.message
        if fact.time_ns == 0 and pod.preset_node and fact.what in ("created", "running", "bound"):
            continue
        kept.append(fact)
    return kept


_PHRASES = {
    "unschedulable": ("fits nowhere", "fit nowhere"),
    "attempted": ("cannot be scheduled: an error", "cannot be scheduled: an error"),
    "nominationCleared": ("loses its nomination to {nodes}", "lose their nominations to {nodes}"),
    "turned away": (
        "is turned away from {nodes} while it waits for its permit",
        "are turned away from {nodes} while they wait for their permits",
    ),
    "unbound": ("is not bound to {nodes} any more", "are not bound to {nodes} any more"),
    "running": ("runs", "run on {nodes}"),
    "terminating": ("is deleted, and shuts down", "are deleted, and shut down"),
    "lost": ("is lost", "are lost"),
}
"""What a story says in words of its own."""
_WITH_NODE = ("nominated", "bound", "preempted", "evicted")


def _says(what: str) -> tuple[str, str]:
    """In the words of the fact, and with the node where it has one to tell of."""
    if what in _PHRASES:
        return _PHRASES[what]
    words = WORDS[what]
    rest = f"{words.what} {words.at} {{nodes}}" if what in _WITH_NODE else words.what
    return f"{words.one} {rest}".rstrip(), f"{words.many} {rest}".rstrip()


def _of_fact(history: History, schedulers: Schedulers, pod: PodHistory, fact: Fact) -> Happening | None:
    """Nothing for what is told by another fact."""
    what, kind, who, tone = fact.what, fact.what, "", "plain"
    why: str | None = ""
    by: PodHistory | None = None
    says = _says(what)
    kubelet = f"kubelet {fact.node}"
    if what == "created":
        who, why = schedulers.actor(pod.created_by), None
    elif what == "bound":
        who, why, tone = schedulers.name(fact.by or pod.scheduler_name), None, "good"
    elif what == "running":
        who, tone = kubelet, "good"
    elif what == "unschedulable":
        who, why = (
            schedulers.name(fact.by or pod.scheduler_name),
            _reason(fact.message) + devices.who_holds(history, pod, fact),
        )
    elif what == "attempted" and fact.reason == "error":
        kind, who, why, tone = "error", schedulers.name(fact.by or pod.scheduler_name), fact.message, "bad"
    elif what in ("nominated", "nominationCleared"):
        kind, who = "nominated", schedulers.name(pod.scheduler_name)
    elif what == "preempted":
        by = history.pod(fact.by)
        who, why, tone = schedulers.actor(fact.actor), _room(pod, fact, by), "bad"
        if fact.reason == "rejected":
            says = _PHRASES["turned away"]
    elif what == "unbound":
        kind, who, why, tone = "lost", "store", "lost in a crash", "bad"
    elif what == "rejected":
        says = (f"is rejected: {fact.reason}", f"are rejected on {{nodes}}: {fact.reason}")
        who, why, tone = kubelet, people.message(fact.message) or fact.reason, "bad"
    elif what == "evicted":
        who, why, tone = _EVICTORS.get(fact.reason, kubelet), _low(fact.message), "bad"
    elif what == "oomKilled":
        kind, who, why, tone = "killed", f"kernel of {fact.node}", fact.message or "memory ran out", "bad"
        subject = f"{fact.reason} of {short(pod.key)}" if fact.reason else short(pod.key)
        says = ("is killed", "are killed on {nodes}")
        return Happening(fact.time_ns, kind, who, says, tone, why, pod, fact.node, what=f"{subject} is killed")
    elif what == "finished":
        if pod.deleting_ns is not None and pod.deleting_ns <= fact.time_ns:
            return None  # it is how its shutdown ends
        evicted = pod.first("evicted")
        if pod.first("rejected") is not None or (evicted is not None and evicted.time_ns == fact.time_ns):
            return None
        says, tone = (f"ends: {fact.reason}", f"end: {fact.reason}"), "plain" if fact.reason == "Succeeded" else "bad"
        who, why = kubelet, fact.message
    elif what == "terminating":
        if pod.first("evicted") is not None:
            return None
        if any(one.what == "preempted" and one.reason != "rejected" for one in pod.facts):
            return None
        kind, who = "deleted", schedulers.actor(pod.deleted_by[0] if pod.deleted_by else "")
        why = OWNER_GONE if who == _GARBAGE_COLLECTOR else ""
    elif what == "deleted" and fact.reason == LOST:
        kind, who, says, tone = "lost", "store", _PHRASES["lost"], "bad"
        why = "the store came back without it"
    elif what == "deleted":
        who = schedulers.actor(pod.deleted_by[-1]) if pod.deleted_by else kubelet if fact.node else "API server"
    else:
        return None
    return Happening(fact.time_ns, kind, who, says, tone, why, pod, fact.node, by)


def _room(pod: PodHistory, fact: Fact, by: PodHistory | None) -> str:
    why = f"makes room for {short(fact.by)}"
    return f"{why} ({outranks([by], [pod])})" if by is not None else why


def outranks(preemptors: Sequence[PodHistory], victims: Sequence[PodHistory]) -> str:
    """``priority high (1000) > 0 to batch (100)``"""
    sign = ">" if min(map(_rank, preemptors)) > max(map(_rank, victims)) else "against"
    return f"priority {_span(preemptors)} {sign} {_span(victims)}"


def _rank(pod: PodHistory) -> int:
    return pod.priority


def _span(pods: Sequence[PodHistory]) -> str:
    low, high = min(pods, key=_rank), max(pods, key=_rank)
    return priority(low) if low.priority == high.priority else f"{priority(low)} to {priority(high)}"


def priority_class(pod: PodHistory) -> str:
    """``high``, or the number: without a class, or of ``priority-10``, of which the number says it all."""
    number, name = str(pod.priority), pod.priority_class
    return name if name and number not in name else number


def priority(pod: PodHistory) -> str:
    """``high (1000)``"""
    name, number = priority_class(pod), str(pod.priority)
    return name if name == number else f"{name} ({number})"


_GARBAGE_COLLECTOR = "garbage-collector"

_EVICTORS = {
    "EvictionByEvictionAPI": "API server",
    "DeletionByTaintManager": "taint-eviction",
    "DeletionByNodeAffinity": "node-affinity-eviction",
    "DeletionByPodGC": "pod-gc",
}
"""Which component evicts, by the reason; otherwise the kubelet."""


def _low(message: str) -> str:
    """A kubelet's message without its first words, which are always the same."""
    low = message.strip().replace("The node was low on resource: ", "low on ").removesuffix(".")
    return people.message(low)


def some(names: Sequence[str]) -> str:
    if len(names) > NAMED:
        return f"{', '.join(names[: NAMED - 1])} and {len(names) - NAMED + 1} more"
    return ", ".join(names) or "nobody"


def seconds(time_ns: int) -> str:
    """Three digits are enough to compare."""
    return f"{time_ns / 1e9:.3f} s" if time_ns < 10_000_000_000 else f"{time_ns / 1e9:.1f} s"


def _reason(message: str) -> str:
    """A scheduler's message without what says nothing here: claims of devices, and the count of the only node."""
    shorter = message.replace("no new claims to deallocate, ", "")
    return shorter.replace("0/1 nodes are available: 1 ", "")


def _wants(pod: PodHistory) -> str:
    """``priority high (1000), wants 10 cpu``"""
    parts = []
    for resource in sorted(pod.requests):
        amount = pod.requests[resource]
        if not amount:
            continue
        if resource == "cpu":
            parts.append(f"{quantities.format_milli(amount)} cpu")
        elif resource in ("memory", "ephemeral-storage"):
            parts.append(f"{people.quantity(amount)} {resource}")
        else:
            parts.append(f"{amount} {resource}")
    wants = f"wants {', '.join(parts)}" if parts else "wants nothing"
    return f"priority {priority(pod)}, {wants}" if pod.priority else wants
