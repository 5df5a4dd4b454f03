"""What followed from what: for each thing that went wrong the causes of it, with their shares and the steps between.

Role: between :mod:`symptoms`, which finds what went wrong, and :mod:`finding`, which adds up. Each answer is a list of
:class:`Blamed`, whose shares sum up to at most 1: what is lacking is not explained.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, TypeVar

import yaml

from kemu.emulated.kubelet.usage import usages
from kemu.emulated.objects import resources
from kemu.lab.checks.history.facts import Fact, Fault, PodHistory
from kemu.lab.tell.causes.acts import DELETED, SECOND_NS, Act, Acts
from kemu.lab.tell.causes.evidence import Evidence
from kemu.lab.tell.causes.owners import Owners, Top, images, selects, wants
from kemu.messages.k8s import core_v1_pb2
from kemu.runtime.runlog.events import ImagePullFailed, PodEvicting, PressureChanged, refusing_quota
from kemu.runtime.words import short

STANDING = 0.05
"""What a reason counts that was there before, beside one that has come up."""
DEEPEST = 8
"""Steps from a symptom to its root."""
NEAR_NS = 120 * SECOND_NS
"""An act may be to blame for what begins within this time, where nothing else is."""
CALM_NS = 30 * SECOND_NS
"""So long before the first pod found no room, all was well."""
AFTERMATH_NS = 60 * SECOND_NS
"""So long after its end a fault may be to blame, the longer it was the more."""
OF_NODES = "what they use besides their pods"
AGAIN = 3
"""A pod that preempts so often on one node does not get what it frees."""
REGISTRY_NS = 600 * SECOND_NS
"""Images of several workloads that cannot be pulled from one registry within this time have one cause."""
SAMPLE = 8
"""So many of the nodes that are alike are looked at."""


@dataclass(eq=False)
class Struck:
    """A fault of chaos; all machines of one fault, and all its recurrences."""

    id: str
    what: str
    begin_ns: int
    end_ns: int | None
    whom: frozenset[str]
    """Actors and nodes that it names or has hit."""
    faults: list[Fault]
    stated: frozenset[str] = frozenset()
    """Those that it names."""
    also: tuple[str, ...] = ()
    """Ids of crashes of other machines at the same time."""


T = TypeVar("T")
Cause = Act | Struck


class Step(NamedTuple):
    kind: str
    subject: str
    time_ns: int


class Blamed(NamedTuple):
    cause: Cause
    share: float
    path: tuple[Step, ...] = ()


def with_step(found: Iterable[Blamed], *steps: Step) -> list[Blamed]:
    return [Blamed(one.cause, one.share, (*one.path, *steps)) for one in found]


def shared(parts: Iterable[tuple[float, Sequence[Blamed]]]) -> list[Blamed]:
    """Several reasons by their weights."""
    known = [(weight, found) for weight, found in parts if weight > 0 and found]
    total = sum(weight for weight, _ in known)
    return [Blamed(one.cause, one.share * weight / total, one.path) for weight, found in known for one in found]


class Blame:
    def __init__(self, evidence: Evidence, acts: Acts, owners: Owners) -> None:
        self.evidence, self.acts, self.owners = evidence, acts, owners
        history = self.history = evidence.history
        chaos = [one for one in evidence.document.get("chaos") or () if isinstance(one, dict)]
        self.struck = _struck(history.faults, {str(one["id"]) for one in chaos if "id" in one})
        self.end_ns = evidence.end_ns
        self.evicting = {event.uid: (time_ns, event) for time_ns, _, event in evidence.events[PodEvicting]}
        self._pods_of_node: dict[str, list[PodHistory]] = defaultdict(list)
        for pod in history.pods.values():
            if pod.node:
                self._pods_of_node[pod.node].append(pod)
        self._pressures: dict[tuple[str, str], list[tuple[int, list[Blamed]]]] = {}
        self._capacity: dict[tuple[str, int, int], list[Blamed]] = {}
        self._first_ns = min(
            (
                *(act.time_ns for act in acts.all() if act.time_ns),
                *(one.begin_ns for one in self.struck),
                self.end_ns,
            )
        )
        self._short_ns = min(
            (fact.time_ns for pod in history.pods.values() for fact in pod.facts if fact.what == "unschedulable"),
            default=self.end_ns,
        )
        """When there was no room for the first time."""
        self._registries: tuple[dict[str, str], dict[str, dict[Top, int]]] | None = None
        """By pod the registry that gave it no image, and by registry the workloads, with the first time."""
        self._usages: dict[str, usages.Usage | None] = {}

    def variants(self) -> list[Act]:
        """Bugs that the scenario switches on, and safeguards that it takes away."""
        return [
            self._standing(kind, str(name), "switch")
            for key, kind in (("bugs", "bug"), ("ablate", "ablation"))
            for name in self.evidence.document.get(key) or ()
        ]

    # --- time ---------------------------------------------------------------------------------------------------------

    def meanwhile(self, begin_ns: int, end_ns: int, actors: Sequence[str] = ()) -> list[Blamed]:
        """What was going on: faults of those actors (beginnings of names), or what had just been done."""
        weights: list[tuple[float, list[Blamed]]] = []
        for one in self.struck:
            ends_ns = self.end_ns if one.end_ns is None else one.end_ns
            if one.begin_ns <= end_ns and ends_ns + AFTERMATH_NS >= begin_ns:
                overlap = min(end_ns, ends_ns) - max(begin_ns, one.begin_ns)
                if overlap < 0:  # it is over; what it has held up is not
                    part = (
                        0.5 * 0.5 ** (-overlap / (30 * SECOND_NS)) * min(1.0, (ends_ns - one.begin_ns) / AFTERMATH_NS)
                    )
                else:
                    part = max(0.05, min(1.0, overlap / (end_ns - begin_ns))) if end_ns > begin_ns else 1.0
                concerns = any(name.startswith(tuple(actors)) or "*" in name for name in one.whom) if actors else True
                weights.append((part * (1.0 if concerns else 0.1), [Blamed(one, 1.0)]))
        surest = max((weight for weight, _ in weights), default=0.0)
        if surest > 0.2:
            return [Blamed(one.cause, one.share * max(surest, 0.5), one.path) for one in shared(weights)]
        weights += [
            (0.3 * 0.5 ** ((begin_ns - act.time_ns) / (30 * SECOND_NS)), [Blamed(act, 1.0)])
            for act in self.acts.all()
            if 0 < act.time_ns <= begin_ns and begin_ns - act.time_ns < NEAR_NS
        ]
        sure = min(1.0, sum(weight for weight, _ in weights))
        return [Blamed(one.cause, one.share * sure, one.path) for one in shared(weights)]

    # --- pods ---------------------------------------------------------------------------------------------------------

    def template(
        self, uid: str, *steps: Step, part: Callable[[core_v1_pb2.PodTemplateSpec], object] | None = None
    ) -> list[Blamed]:
        """The act by which its template, or a part of it, is what it is."""
        act = self.owners.since(uid, part) if part is not None else self.owners.template(uid)
        return [Blamed(act, 1.0, steps)] if act is not None else []

    def pulls(self, pod: PodHistory, time_ns: int, *steps: Step) -> list[Blamed]:
        """Why its image cannot be pulled: the template names it, or its registry gives several workloads none."""
        own = self.template(pod.uid, *steps, part=images)
        if self._registries is None:
            self._registries = {}, defaultdict(dict)
            for when_ns, _, event in self.evidence.events[ImagePullFailed]:
                if event.uid in self.history.pods:
                    of = self._registries[0].setdefault(event.uid, registry(event.image))
                    self._registries[1][of].setdefault(self.owners.top(event.uid), when_ns)
        host = self._registries[0].get(pod.uid, "")
        times = self._registries[1][host]
        if not host or len(times) < 2 or max(times.values()) - min(times.values()) > REGISTRY_NS:
            return own
        began_ns = min(times.values())
        known = self.acts.of["registry", host]
        if not known:
            known.append(Act("registry", host, began_ns, "fails", {"workloads": ("", str(len(times)))}))
        return shared([(0.7, [Blamed(known[0], 1.0, steps)]), (0.3, own)])

    def absent(self, uid: str, time_ns: int, *steps: Step) -> list[Blamed]:
        """Who deleted what a pod refers to, or made it refer to what is not there."""
        life = self.evidence.lives.get(uid)
        if life is None:
            return []
        stated = self.evidence.document.get("references")
        is_strict = isinstance(stated, dict) and stated.get("contents") == "strict"
        for kind, name in dict.fromkeys(references(life.pod)):
            if not name or (kind != "PersistentVolumeClaim" and not is_strict):
                continue  # what pods name is taken to exist
            resource = resources.BY_KIND[kind]
            namespace = life.pod.metadata.namespace
            if self.evidence.at(f"/registry/{resource.plural}/{namespace}/{name}", time_ns) is not None:
                continue
            full = short(f"{namespace}/{name}")
            gone = [act for act in self.acts.of.get((kind, full), ()) if act.what == DELETED and act.time_ns <= time_ns]
            if gone:
                return [Blamed(gone[-1], 1.0, (Step("absent", f"{kind} {full}", gone[-1].time_ns), *steps))]
            return self.template(uid, Step("absent", f"{kind} {full}", self.history.pods[uid].created_ns), *steps)
        return []

    def ended(self, pod: PodHistory, depth: int = 0) -> list[Blamed]:
        """Why a pod was taken away."""
        if depth > DEEPEST:
            return []
        for fact in pod.facts:
            if fact.what == "evicted":
                return self.evicted(pod, fact, depth)
            if fact.what == "preempted":
                return self.preempted(pod, fact, depth)
            if fact.what == "rejected":
                return self.rejected(pod, fact)
        last = pod.facts[-1] if pod.facts else None
        if pod.deleted_by and pod.deleted_by[0] in ("", "user"):
            when_ns = pod.deleting_ns or self.end_ns
            act = Act("Pod", short(pod.key), when_ns, DELETED)
            return [Blamed(self._known(act), 1.0)]
        if last is not None and pod.phase == "Failed":
            return self.template(pod.uid)
        return self.sized(pod.uid, pod.deleting_ns or self.end_ns)

    def _known(self, act: Act) -> Act:
        known = self.acts.of[act.kind, act.name]
        same = next((one for one in known if one.what == act.what and one.time_ns == act.time_ns), None)
        if same is None:
            known.append(same := act)
        return same

    def evicted(self, pod: PodHistory, fact: Fact, depth: int = 0) -> list[Blamed]:
        step = Step("evicted", pod.uid, fact.time_ns)
        if fact.reason == "DeletionByTaintManager":
            taints = self._no_execute(fact.node, fact.time_ns)
            return with_step(shared((1.0, self.taint(fact.node, key, fact.time_ns)) for key in taints), step)
        if fact.reason == "EvictionByEvictionAPI":
            acts = [act for act in self.acts.of.get(("Node", fact.node), ()) if 0 < act.time_ns <= fact.time_ns]
            if acts:
                return [Blamed(acts[-1], 1.0, (Step("cordoned", fact.node, acts[-1].time_ns), step))]
            return with_step(self.meanwhile(fact.time_ns, fact.time_ns), step)
        if fact.reason in ("DeletionByPodGC", "DeletionByNodeAffinity"):
            return with_step(self.lost_node(fact.node, fact.time_ns), step)
        found = self.evicting.get(pod.uid)
        signal = found[1].signal if found else ("memory.available" if "memory" in fact.message else "nodefs.available")
        return with_step(self.pressure(fact.node, fact.time_ns, signal), step)

    def preempted(self, pod: PodHistory, fact: Fact, depth: int = 0) -> list[Blamed]:
        step = Step("preempted", pod.uid, fact.time_ns)
        by = self.history.pod(fact.by)
        if by is None:
            return with_step(self.meanwhile(fact.time_ns, fact.time_ns), step)
        said = [one for one in by.facts if one.what == "unschedulable" and one.time_ns <= fact.time_ns]
        victims = {
            one.time_ns // SECOND_NS
            for other in self._pods_of_node[fact.node]
            for one in other.facts
            if one.what == "preempted" and one.by == fact.by
        }
        if len(victims) >= AGAIN and (several := self._schedulers(fact)) is not None:
            return [Blamed(several, 1.0, (step,))]  # what it clears another one fills
        # It takes the room that somebody else has taken before.
        found = self._of_message(by, said[-1]) if said else []
        found = found or self.exists(by, depth + 1)
        given = self._given_priority(by)
        return with_step(shared([(0.5, found), (0.5, given)]) if given else found, step)

    def _given_priority(self, pod: PodHistory) -> list[Blamed]:
        """Who made the PriorityClass that pods have which name none."""
        life = self.evidence.lives.get(pod.uid)
        name = life.pod.spec.priorityClassName if life is not None else ""
        act = self.acts.latest("PriorityClass", name, pod.created_ns)
        own = self.owners.template(pod.uid)
        template = getattr(getattr(own.message, "spec", None), "template", None) if own is not None else None
        is_given = template is not None and not template.spec.priorityClassName
        return [Blamed(act, 1.0)] if act is not None and act.time_ns and is_given else []

    def rejected(self, pod: PodHistory, fact: Fact) -> list[Blamed]:
        step = Step("rejected", pod.uid, fact.time_ns)
        text = f"{fact.reason} {fact.message}"
        if "NodeShutdown" in text:
            return with_step(self.lost_node(fact.node, fact.time_ns), step)
        for word, signal in _REJECTING:
            if word in text and "OutOf" not in text:
                return with_step(self.pressure(fact.node, fact.time_ns, signal), step)
        if pod.preset_node:
            return self.template(pod.uid, step)
        if "OutOf" in text:
            several = self._schedulers(fact)
            if several is not None:
                return [Blamed(several, 1.0, (step,))]
            return with_step(self.meanwhile(fact.time_ns, fact.time_ns, ("scheduler", "apiserver", "kubelet")), step)
        return self.template(pod.uid, step)

    def _schedulers(self, fact: Fact) -> Act | None:
        """The schedulers that gave the room of a node away at the same time; None: it was one."""
        found = {
            bound.by
            for pod in self._pods_of_node[fact.node]
            if (bound := pod.first("bound")) is not None and 0 <= fact.time_ns - bound.time_ns <= CALM_NS and bound.by
        }
        names = sorted(found)
        if len({name.partition("/")[0] for name in names}) == len(names):
            names = [name.partition("/")[0] for name in names]
        return self._standing("schedulers", " and ".join(names), "together") if len(names) > 1 else None

    def exists(self, pod: PodHistory, depth: int = 0) -> list[Blamed]:
        """Why there is such a pod at all: it takes the place of another, or its workload wants it."""
        if depth <= DEEPEST and pod.replaces:
            uids = self.history.names.get(pod.replaces, ())
            lost = next((self.history.pods[uid] for uid in reversed(uids) if uid != pod.uid), None)
            if lost is not None and lost.created_ns <= pod.created_ns and lost.uid != pod.uid:
                found = self.ended(lost, depth + 1)
                if found:
                    return found
        return self.sized(pod.uid, pod.created_ns)

    def sized(self, uid: str, time_ns: int) -> list[Blamed]:
        act = self.owners.size(uid, time_ns) or self.owners.template(uid)
        return [Blamed(act, 1.0)] if act is not None else []

    # --- nodes --------------------------------------------------------------------------------------------------------

    def _of_node(self, node: str, time_ns: int, *fields: str, what: Sequence[str] = ()) -> Act | None:
        """The last act on a node before that time that has to do with one of these fields."""
        found = [
            act
            for act in self.acts.of.get(("Node", node), ())
            if act.time_ns <= time_ns
            and (act.what in what or any(path.startswith(fields) for path in act.fields if fields))
        ]
        return found[-1] if found else None

    def taint(self, node: str, key: str, time_ns: int) -> list[Blamed]:
        """Why a node has a taint."""
        name = key.removeprefix("node.kubernetes.io/")
        if name != key:
            if name in ("not-ready", "unreachable"):
                return self.lost_node(node, time_ns)
            if name == "unschedulable":
                return self.cordon(node, time_ns)
            signal = {"memory-pressure": "memory", "disk-pressure": "nodefs", "pid-pressure": "pid"}.get(name)
            if signal:
                return self.pressure(node, time_ns, f"{signal}.available")
        act = self._of_node(node, time_ns, f"taint {key}")
        if act is not None:
            return [Blamed(act, 1.0, (Step("tainted", node, act.time_ns),))]
        if "ClusterAutoscaler" in key:
            return []
        return [Blamed(self._standing("Node", self._group(node), f"taint {key}"), 1.0)]

    def cordon(self, node: str, time_ns: int) -> list[Blamed]:
        act = self._of_node(node, time_ns, "spec.unschedulable", what=("drained",))
        if act is None:
            return [Blamed(self._standing("Node", self._group(node), "unschedulable"), 1.0)]
        return [Blamed(act, 1.0, (Step("cordoned", node, act.time_ns),))]

    def drain(self, node: str, time_ns: int) -> Act | None:
        return self._of_node(node, time_ns, what=("drained",))

    def _standing(self, kind: str, name: str, what: str) -> Act:
        known = self.acts.of[kind, name]
        same = next((act for act in known if act.what == "stands" and what in act.fields), None)
        if same is None:
            known.append(same := Act(kind, name, 0, "stands", {what: ("", "")}))
        return same

    def _group(self, node: str) -> str:
        for one in self.evidence.document.get("nodes") or ():
            if isinstance(one, dict) and "namePrefix" in one and node.startswith(str(one["namePrefix"])):
                return f"{one['namePrefix']}*"
        return node

    def _no_execute(self, node: str, time_ns: int) -> list[str]:
        """Keys of its taints that evicted then."""
        there: dict[str, None] = {}
        history = self.history.nodes.get(node)
        for fact in history.facts if history is not None else ():
            if fact.time_ns > time_ns:
                break
            if fact.what == "tainted" and fact.status == "NoExecute":
                there[fact.reason] = None
        return list(there)[-1:]

    def lost_node(self, node: str, time_ns: int) -> list[Blamed]:
        """Why a node is not ready, or not there."""
        act = self._of_node(node, time_ns, what=(DELETED, "shut down"))
        unready_ns = self.unready_since(node, time_ns)
        step = Step("unready", node, unready_ns)
        struck: list[tuple[float, list[Blamed]]] = []
        for one in self.struck:
            ends_ns = self.end_ns if one.end_ns is None else one.end_ns
            if one.begin_ns > unready_ns + 5 * SECOND_NS or ends_ns + NEAR_NS < unready_ns:
                continue
            own = node in one.whom or f"kubelet/{node}" in one.whom
            central = any(name.startswith(("apiserver", "store", "controller/node")) for name in one.whom)
            if own or central:
                begun_ns = max(
                    (each.begin_ns for each in one.faults if each.begin_ns <= unready_ns), default=one.begin_ns
                )
                recent = 0.5 ** ((unready_ns - begun_ns) / (600 * SECOND_NS))
                struck.append(((1.0 if own else 0.3) * recent, [Blamed(one, 1.0, (step,))]))
        if act is not None and (not struck or act.time_ns >= unready_ns - NEAR_NS):
            kind = "removed" if act.what == DELETED else "unready"
            return [Blamed(act, 1.0, (Step(kind, node, act.time_ns),))]
        return shared(struck) if struck else with_step(self.meanwhile(unready_ns, unready_ns), step)

    def unready_since(self, node: str, time_ns: int) -> int:
        found_ns = time_ns
        history = self.history.nodes.get(node)
        for fact in history.facts if history is not None else ():
            if fact.time_ns > time_ns:
                break
            if fact.what == "condition" and fact.reason == "Ready" and fact.status != "True":
                found_ns = fact.time_ns
        return found_ns

    # --- usage --------------------------------------------------------------------------------------------------------

    def pressure(self, node: str, time_ns: int, signal: str) -> list[Blamed]:
        """Who uses what a node runs short of. What was found for a time counts for the minute after it."""
        resource = (
            "memory"
            if "memory" in signal
            else "pids"
            if "pid" in signal
            else "inodes"
            if "inodes" in signal
            else "disk"
        )
        known = self._pressures.setdefault((node, resource), [])
        for when_ns, found in known:
            if 0 <= time_ns - when_ns <= 60 * SECOND_NS:
                return found
        found = self._pressure(node, time_ns, resource)
        known.append((time_ns, found))
        return found

    def _pressure(self, node: str, time_ns: int, resource: str) -> list[Blamed]:
        used: dict[str, int] = {}
        if resource in ("memory", "pids"):
            for when_ns, event in self.evicting.values():
                if event.node == node and abs(when_ns - time_ns) <= 20 * SECOND_NS and event.used:
                    used = event.used
        weights: dict[int, tuple[float, Act]] = {}
        for pod in self._pods_of_node[node]:
            ended_ns = pod.gone_ns or self.end_ns
            if pod.created_ns > time_ns or ended_ns < time_ns - 30 * SECOND_NS:
                continue
            uses = used.get(pod.uid, 0) if used else self.uses(pod, resource, time_ns)
            asked = pod.requests.get("memory" if resource == "memory" else "ephemeral-storage", 0)
            beyond = uses - asked if resource in ("memory", "disk") else uses
            act = self.owners.usage(pod.uid) if beyond > 0 else None
            if beyond > 0 and act is not None:
                weights[id(act)] = (weights.get(id(act), (0.0, act))[0] + beyond, act)
        since_ns = self._pressed_since(node, time_ns)
        steps: tuple[Step, ...] = (Step(resource, node, time_ns),)
        if since_ns is None:
            since_ns = time_ns  # the kernel acts before the kubelet has looked
        else:
            steps = Step(resource, node, since_ns), Step("pressure", node, since_ns)
        if not weights:
            own = self._own_usage(node)
            if own is not None:
                return [Blamed(own, 1.0, steps)]
            return with_step(self.meanwhile(since_ns, time_ns), *steps)
        # What everybody uses a little more than it asks for is noise beside what one uses much more.
        return shared((weight**1.5, [Blamed(act, 1.0, steps)]) for weight, act in weights.values())

    def _pressed_since(self, node: str, time_ns: int) -> int | None:
        found_ns = None
        for when_ns, _, event in self.evidence.events[PressureChanged]:
            if event.node == node and event.conditions and when_ns <= time_ns:
                found_ns = when_ns
        return found_ns

    def _own_usage(self, node: str) -> Act | None:
        for one in self.evidence.document.get("nodes") or ():
            is_meant = isinstance(one, dict) and (
                one.get("name") == node or ("namePrefix" in one and node.startswith(str(one["namePrefix"])))
            )
            if is_meant and one.get("usage"):
                return self._standing("Node", self._group(node), OF_NODES)
        return None

    def uses(self, pod: PodHistory, resource: str, time_ns: int) -> int:
        """What its annotation says that it uses then: bytes, inodes or processes."""
        usage = self.usage(pod.uid)
        if usage is None:
            return 0
        started_ns = pod.running_ns if pod.running_ns is not None else pod.created_ns
        second = max(0, (time_ns - started_ns) // SECOND_NS)
        if resource == "pids":
            return usage.pids.at(second) if usage.pids is not None else 0
        names = {"memory": ("memory", "active_file"), "disk": ("rootfs", "logs"), "inodes": ("inodes",)}[resource]
        curves = [
            curve
            for own in (usage.shared, *usage.of_containers.values())
            for name, curve in own.items()
            if name in names
        ]
        if resource == "disk":
            curves += usage.volumes.values()
        return sum(curve.at(second) for curve in curves)

    def usage(self, uid: str) -> usages.Usage | None:
        life = self.evidence.lives.get(uid)
        text = life.pod.metadata.annotations.get(usages.USAGE, "") if life is not None else ""
        if text not in self._usages:
            try:
                self._usages[text] = usages.parse(yaml.safe_load(text), "") if text else None
            except (ValueError, yaml.YAMLError):
                self._usages[text] = None
        return self._usages[text]

    # --- waiting ------------------------------------------------------------------------------------------------------

    def waits(self, pod: PodHistory, begin_ns: int, until_ns: int) -> list[Blamed]:
        """Why a pod has no node from one time to another."""
        step = Step("waiting", pod.uid, begin_ns)
        said = [fact for fact in pod.facts if fact.what == "unschedulable" and begin_ns <= fact.time_ns <= until_ns]
        if not said:
            by = f"scheduler/{pod.scheduler_name}"
            if not any(one.by.startswith(f"{pod.scheduler_name}/") for other in self._some() for one in other.facts):
                found = self.meanwhile(begin_ns, until_ns, (by,)) if self._strikes("scheduler") else []
                return with_step(found, step) or self.template(pod.uid, step)
            return with_step(self.meanwhile(begin_ns, until_ns, (by, "apiserver", "store")), step)
        chosen = {id(fact): fact for fact in (said[0], said[len(said) // 2], said[-1])}.values()
        parts = [(1.0, self._of_message(pod, fact)) for fact in chosen]
        last_ns = said[-1].time_ns
        if until_ns - last_ns > 60 * SECOND_NS and self._strikes("scheduler"):
            # It was not even tried again.
            parts.append((1.0, self.meanwhile(last_ns, until_ns, (f"scheduler/{pod.scheduler_name}",))))
        return with_step(shared(parts), step)

    def _strikes(self, who: str) -> bool:
        return any(name.startswith(who) for one in self.struck for name in one.whom)

    def _some(self) -> list[PodHistory]:
        return list(self.history.pods.values())

    def _of_message(self, pod: PodHistory, fact: Fact) -> list[Blamed]:
        new: list[tuple[float, list[Blamed]]] = []
        standing: list[tuple[float, list[Blamed]]] = []
        for count, reason in reasons(fact.message):
            found = self._of_reason(pod, fact, reason)
            is_new = any(not isinstance(one.cause, Act) or one.cause.time_ns > 0 for one in found)
            (new if is_new else standing).append((count, found))
        if not new and not standing:
            return self.absent(pod.uid, fact.time_ns) or self.template(pod.uid)
        return shared([(1.0, shared(new)), (STANDING if new else 1.0, shared(standing))])

    def _of_reason(self, pod: PodHistory, fact: Fact, reason: str) -> list[Blamed]:
        short_of = re.match(r"Insufficient (\S+)", reason)
        if short_of or reason == "Too many pods":
            return self.room(pod, short_of[1] if short_of else "pods", fact.time_ns)
        taint = re.search(r"untolerated taint\(?s?\)? ?\{([^:}]+)", reason)
        if taint or "untolerated taint" in reason:
            key = taint[1].strip() if taint else ""
            nodes = [
                (node, found)
                for node in self.history.nodes
                for found in self._taints(node, fact.time_ns)
                if key in ("", found)
            ]
            return shared((1.0, self.taint(node, found, fact.time_ns)) for node, found in _spread(nodes))
        if "unschedulable" in reason:
            nodes_ = [node for node in self.history.nodes if self._is_cordoned(node, fact.time_ns)]
            return shared((1.0, self.cordon(node, fact.time_ns)) for node in _spread(nodes_))
        own = self.template(pod.uid, part=selects)
        if "enforced node affinity" in reason and (added := self._added_affinity(pod.scheduler_name)) is not None:
            return [Blamed(added, 1.0)]
        if "node affinity" in reason:
            changed = self._relabelled(pod, fact.time_ns)
            relabelled_ns = max((one.path[0].time_ns for one in changed), default=-1)
            if own and isinstance(own[0].cause, Act) and own[0].cause.time_ns <= relabelled_ns:
                return changed
        if own and isinstance(own[0].cause, Act) and own[0].cause.time_ns == 0:
            lost = self._lost_nodes(fact.time_ns)
            if lost:
                gone = shared((1.0, self._why_lost(node, fact.time_ns)) for node in _spread(lost))
                return shared([(0.5, own), (0.5, gone)])
        return own

    def _added_affinity(self, scheduler: str) -> Act | None:
        """The configuration of a scheduler that adds an affinity to all of its pods."""
        for one in self.evidence.document.get("schedulers") or ():
            config = one.get("config") if isinstance(one, dict) else None
            for profile in (config.get("profiles") or ()) if isinstance(config, dict) else ():
                is_meant = scheduler in (str(profile.get("schedulerName", "")), str(one.get("name", "")))
                if is_meant and "addedAffinity" in str(profile.get("pluginConfig")):
                    return self._standing("scheduler", scheduler, "addedAffinity of the plugin NodeAffinity")
        return None

    def _relabelled(self, pod: PodHistory, time_ns: int) -> list[Blamed]:
        """Who changed the labels of nodes by which it selects them."""
        life = self.evidence.lives.get(pod.uid)
        keys = tuple(f"labels.{key}" for key in _selected(life.pod)) if life is not None else ()
        acts: dict[int, Act] = {
            id(act): act
            for (kind, _), listed in self.acts.of.items()
            if kind == "Node"
            for act in listed
            if 0 < act.time_ns <= time_ns and any(path in keys for path in act.fields)
        }
        return shared(
            (1.0, [Blamed(act, 1.0, (Step("relabelled", name, act.time_ns),))])
            for act in acts.values()
            for name in (act.name, *act.also)
        )

    def _taints(self, node: str, time_ns: int) -> list[str]:
        there: dict[str, None] = {}
        for fact in self.history.nodes[node].facts:
            if fact.time_ns > time_ns:
                break
            if fact.what == "tainted" and fact.status != "PreferNoSchedule":
                there[fact.reason] = None
            elif fact.what == "untainted":
                there.pop(fact.reason, None)
            elif fact.what == "removed":
                there.clear()
        return list(there)

    def _is_cordoned(self, node: str, time_ns: int) -> bool:
        message = self.evidence.at(f"/registry/nodes/{node}", time_ns)
        return isinstance(message, core_v1_pb2.Node) and message.spec.unschedulable

    def _lost_nodes(self, time_ns: int) -> list[str]:
        """Nodes that were there before anything happened, and take no pods now."""
        found = []
        for node, history in self.history.nodes.items():
            if not history.facts or history.facts[0].time_ns > self._first_ns:
                continue
            if self._taints(node, self._first_ns - 1):
                continue
            gone = next(
                (
                    fact.what
                    for fact in reversed(history.facts)
                    if fact.what in ("added", "removed") and fact.time_ns <= time_ns
                ),
                "",
            )
            if gone == "removed" or self._taints(node, time_ns):
                found.append(node)
        return found

    def _why_lost(self, node: str, time_ns: int) -> list[Blamed]:
        taints = self._taints(node, time_ns)
        return (
            shared((1.0, self.taint(node, key, time_ns)) for key in taints) if taints else self.lost_node(node, time_ns)
        )

    def room(self, pod: PodHistory, resource: str, time_ns: int) -> list[Blamed]:
        """Why there is no room for a pod: it is too large, others have grown, nodes are gone."""
        wanted = pod.requests.get(resource, 0)
        largest = max(
            (
                amounts.get(resource, 0)
                for node in self.history.nodes.values()
                for when_ns, amounts in node.allocatable
                if when_ns <= time_ns
            ),
            default=0,
        )
        if wanted > largest:
            return self.template(pod.uid, Step("large", resource, pod.created_ns), part=wants)
        key = (resource, pod.priority, time_ns // (10 * SECOND_NS))
        if key not in self._capacity:
            self._capacity[key] = self._room(resource, pod.priority, time_ns)
        return self._capacity[key]

    def _room(self, resource: str, priority: int, time_ns: int) -> list[Blamed]:
        now = self._demand(resource, priority, time_ns)
        calm = self._demand(resource, priority, self._first_ns - 1)
        late = self._demand(resource, priority, min(time_ns, self._short_ns) - CALM_NS)
        parts: list[tuple[float, list[Blamed]]] = []
        for top, amount in now.items():
            # What has come last counts most; what piles up because there is no room is no growth.
            growth = 0.3 * max(0, amount - calm.get(top, 0)) + 0.7 * max(0, amount - late.get(top, 0))
            act = self.owners.size(top, time_ns)
            if growth > 0 and act is not None:
                parts.append((growth, [Blamed(act, 1.0, (Step(f"demand {resource}", " ".join(top), act.time_ns),))]))
        for node in self._lost_nodes(time_ns):
            amounts = next((amounts for when_ns, amounts in self.history.nodes[node].allocatable if amounts), {})
            parts.append((float(amounts.get(resource, 1 if resource == "pods" else 0)), self._why_lost(node, time_ns)))
        if not any(weight > 0 for weight, _ in parts):
            parts = [
                (float(amount), [Blamed(act, 1.0)])
                for top, amount in now.items()
                if (act := self.owners.size(top, time_ns)) is not None
            ]
        return shared(parts)

    def _demand(self, resource: str, priority: int, time_ns: int) -> Counter[Top]:
        """Requests of the pods on nodes, and of those that wait and are no less important."""
        found: Counter[Top] = Counter()
        for pod in self.history.pods.values():
            if pod.created_ns > time_ns or (pod.gone_ns is not None and pod.gone_ns <= time_ns):
                continue
            if any(fact.what in ("finished", "ended") and fact.time_ns <= time_ns for fact in pod.facts[-3:]):
                continue
            is_bound = pod.preset_node or (pod.bound_ns is not None and pod.bound_ns <= time_ns)
            if is_bound or pod.priority >= priority:
                found[self.owners.top(pod.uid)] += 1 if resource == "pods" else pod.requests.get(resource, 0)
        return found

    # --- requests -----------------------------------------------------------------------------------------------------

    def refused(self, time_ns: int, reason: str, message: str, namespace: str) -> list[Blamed]:
        """Who or what refuses a request."""
        quota, _ = refusing_quota(message)
        if quota:
            name = short(f"{namespace}/{quota}")
            act = self.acts.latest("ResourceQuota", name, time_ns)
            if act is not None and act.time_ns:
                return [Blamed(act, 1.0)]
            grown = self._grown(namespace, time_ns)
            own = [Blamed(act, 1.0)] if act is not None else []
            return shared([(1.0, own), (1.0 if grown else 0.0, grown)])
        for kind in _REFUSING:
            named = [
                act
                for (of, name), acts in self.acts.of.items()
                if of == kind
                for act in acts
                if act.time_ns <= time_ns and act.what != DELETED and _is_named(act, name, message)
            ]
            if named:
                return [Blamed(max(named, key=lambda act: act.time_ns), 1.0)]
        hooks = self.evidence.document.get("apiServers")
        for hook in (hooks.get("admissionHooks") or ()) if isinstance(hooks, dict) else ():
            if isinstance(hook, dict) and str(hook.get("name")) in message:
                return [Blamed(self._standing("admission hook", str(hook["name"]), "hook"), 1.0)]
        if reason in ("ServiceUnavailable", "Timeout", "ServerTimeout", "InternalError", "TooManyRequests", "Unknown"):
            return self.meanwhile(time_ns, time_ns, ("apiserver", "store", "user"))
        return self.meanwhile(time_ns, time_ns)

    def _grown(self, namespace: str, time_ns: int) -> list[Blamed]:
        """Whose pods have come to a namespace."""
        parts: dict[int, tuple[float, Act]] = {}
        for pod in self.history.pods.values():
            if pod.key.startswith(f"{namespace}/") and 0 < pod.created_ns <= time_ns and pod.gone_ns is None:
                act = self.owners.size(pod.uid, time_ns)
                if act is not None and act.time_ns:
                    parts[id(act)] = (parts.get(id(act), (0.0, act))[0] + 1, act)
        return shared((weight, [Blamed(act, 1.0)]) for weight, act in parts.values())


_REJECTING = (
    ("memory", "memory.available"),
    ("MemoryPressure", "memory.available"),
    ("DiskPressure", "nodefs.available"),
    ("ephemeral", "nodefs.available"),
    ("PIDPressure", "pid.available"),
)
"""Words of rejections under pressure, and the signals."""
_REFUSING = (
    "ValidatingAdmissionPolicyBinding", "ValidatingAdmissionPolicy", "MutatingAdmissionPolicyBinding",
    "MutatingAdmissionPolicy", "ValidatingWebhookConfiguration", "MutatingWebhookConfiguration", "LimitRange",
)  # fmt: skip


def _is_named(act: Act, name: str, message: str) -> bool:
    names = [name, *(hook.name for hook in getattr(act.message, "webhooks", ()))]
    return any(f"{quote}{one}{quote}" in message for one in names for quote in "'\"")


_REASON = re.compile(r"(\d+) ((?:(?!, \d+ |\. ?(?:no new|preemption|$)).)+)")


def reasons(message: str) -> list[tuple[int, str]]:
    """Of an unschedulable pod: how many nodes refuse it for which reason."""
    _, found, text = message.partition("nodes are available: ")
    text = text.partition(" preemption:")[0]
    return [(int(count), reason.strip(" .")) for count, reason in _REASON.findall(text)] if found else []


def _spread(items: Sequence[T]) -> Sequence[T]:
    """At most so many as a sample, evenly."""
    return items if len(items) <= SAMPLE else items[:: -(-len(items) // SAMPLE)]


_WHOM = ("actor", "actors", "node", "nodes", "between", "from", "to", "apiServer", "of", "process", "clusterNode")
"""Parameters of faults that name actors, nodes or processes."""


def references(pod: core_v1_pb2.Pod) -> Iterator[tuple[str, str]]:
    """Kinds and names of what a pod cannot start without."""
    for container in (*pod.spec.initContainers, *pod.spec.containers):
        sources: list[tuple[Any, Any]] = [(one.configMapRef, one.secretRef) for one in container.envFrom]
        sources += [(one.valueFrom.configMapKeyRef, one.valueFrom.secretKeyRef) for one in container.env]
        for of_config, of_secret in sources:
            if not of_config.optional:
                yield "ConfigMap", of_config.localObjectReference.name
            if not of_secret.optional:
                yield "Secret", of_secret.localObjectReference.name
    for volume in pod.spec.volumes:
        source = volume.volumeSource
        if not source.configMap.optional:
            yield "ConfigMap", source.configMap.localObjectReference.name
        if not source.secret.optional:
            yield "Secret", source.secret.secretName
        yield "PersistentVolumeClaim", source.persistentVolumeClaim.claimName


def _selected(pod: core_v1_pb2.Pod) -> list[str]:
    """The labels of nodes by which a pod selects them."""
    required = pod.spec.affinity.nodeAffinity.requiredDuringSchedulingIgnoredDuringExecution
    terms = [one.key for term in required.nodeSelectorTerms for one in term.matchExpressions]
    return [*pod.spec.nodeSelector, *terms]


def registry(image: str) -> str:
    """The host of an image; that of Docker where it names none."""
    host, slash, _ = image.partition("/")
    return host if slash and ("." in host or ":" in host or host == "localhost") else "docker.io"


def _struck(faults: Sequence[Fault], stated_ids: Collection[str] = ()) -> list[Struck]:
    """Faults by their ids. ``stated_ids``: of the scenario; any other is one of these with the number of its
    recurrence."""
    by_id: dict[str, list[Fault]] = {}
    for fault in faults:
        stem = fault.id.rpartition("-")[0]
        by_id.setdefault(stem if fault.id not in stated_ids and stem in stated_ids else fault.id, []).append(fault)
    found = []
    for id_, group in by_id.items():
        whom = {name for fault in group for pair in fault.hits for name in pair if name}
        stated = {
            who
            for fault in group
            for name, value in fault.data.parameters.items()
            if name in _WHOM
            for who in _flat(value)
        }
        whom |= stated
        ends = [fault.end_ns for fault in group]
        end_ns = None if None in ends else max(end for end in ends if end is not None)
        found.append(Struck(id_, group[0].what, group[0].begin_ns, end_ns, frozenset(whom), group, frozenset(stated)))
    return _together(found)


def _together(struck: Sequence[Struck]) -> list[Struck]:
    """Machines that are lost at the same time for as long are lost for one reason."""
    kept: dict[object, Struck] = {}
    for one in struck:
        is_machine = one.what == "crash" and one.whom and all(_is_machine(name) for name in one.whom)
        key = (one.begin_ns // SECOND_NS, one.end_ns) if is_machine else one.id
        first = kept.setdefault(key, one)
        if first is not one:
            first.whom, first.stated = first.whom | one.whom, first.stated | one.stated
            first.faults, first.also = [*first.faults, *one.faults], (*first.also, one.id)
    return list(kept.values())


def _is_machine(name: str) -> bool:
    """Nodes have names without a kind."""
    return name.startswith("kubelet/") or "/" not in name


def _flat(value: object) -> list[str]:
    if isinstance(value, str):
        return [value]
    if isinstance(value, list):
        return [name for one in value for name in _flat(one)]
    return []
