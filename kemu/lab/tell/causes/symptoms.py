"""What went wrong in a run, and how much of it: pods that wait, are evicted or killed, nodes that are lost, refusals.

Role: asks :mod:`blame` of each why; :mod:`finding` adds up. A symptom's weight is in minutes of one pod that should run
and does not; what is over in an instant has a weight of its own.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from google.protobuf.message import Message

from kemu.lab.checks.history.facts import Fact, PodHistory
from kemu.lab.checks.scheduling import ledgers
from kemu.lab.tell.causes.acts import DELETED, SECOND_NS
from kemu.lab.tell.causes.blame import Blame, Blamed, Step, Struck, shared, with_step
from kemu.lab.tell.causes.owners import Top
from kemu.runtime.runlog import events

MINUTE_NS = 60 * SECOND_NS
LONG_NS = 5 * SECOND_NS
"""A pod that waits no longer for a node does not wait."""
LATE_NS = 2 * SECOND_NS
STARTS_NS = 30 * SECOND_NS
"""So long may it take to start."""
EVICTED, PREEMPTED, KILLED, RESTARTED, REJECTED, REFUSED, VOLUNTARY = 2.0, 1.5, 1.0, 0.5, 0.2, 0.3, 0.2
"""Weights of what is over in an instant."""
OF_VARIANTS = 0.6
"""The share of bugs and ablations that a scenario switches on, in what something else explains, too."""
OF_WANTING = 0.3
"""The share of who wants a pod in what nothing else explains."""
OF_DRAIN = 0.15
"""The share of who drains a node in what a budget then keeps there."""
MOST_OF_ONE = 10
"""So many kills, restarts or minutes of one pod count."""
MOST_ALIKE = 200
"""So many refusals or rejections of one sort count."""
_OWN = ("ImagePull", "OOMKilled", "Error", "CrashLoopBackOff", "CreateContainerConfigError", "CreateContainerError",
        "RunContainerError", "PostStartHookError", "InvalidImageName", "StartError", "Completed")  # fmt: skip
"""Why a pod is not ready, where its own template says so."""
_MISTAKES = ("NotFound", "AlreadyExists", "Conflict")
"""Refusals that say nothing about the cluster."""


@dataclass(frozen=True, slots=True)
class Symptom:
    kind: str
    subject: str
    weight: float
    first_ns: int
    last_ns: int
    blamed: Sequence[Blamed]


class Symptoms:
    def __init__(self, blame: Blame) -> None:
        self._blame = blame
        self._evidence = blame.evidence
        self._history = blame.history
        self._end_ns = blame.end_ns

    def all(self) -> Iterator[Symptom]:
        """What the scenario switches on, such as a bug, has a part in all of it, and all that nothing else explains."""
        variants = self._blame.variants()
        for one in self._found():
            explained = sum(blamed.share for blamed in one.blamed)
            if variants:
                found = [blamed._replace(share=blamed.share * (1 - OF_VARIANTS)) for blamed in one.blamed]
                share = (1 - explained * (1 - OF_VARIANTS)) / len(variants)
                step = Step(one.kind, one.subject, one.first_ns)
                found += [Blamed(variant, share, (step,)) for variant in variants]
                yield replace(one, blamed=found)
            elif not one.blamed and one.kind in ("waiting", "rejected"):
                # At least who wants the pod.
                wanted = self._blame.exists(self._history.pods[one.subject])
                step = Step(one.kind, one.subject, one.first_ns)
                yield replace(one, blamed=[each._replace(share=OF_WANTING, path=(step,)) for each in wanted[:1]])
            else:
                yield one

    def _found(self) -> Iterator[Symptom]:
        ledger = ledgers.of(self._history)
        starts = sorted(
            pod.running_ns - pod.created_ns for pod in self._history.pods.values() if pod.running_ns is not None
        )
        late_ns = LATE_NS + 4 * starts[len(starts) // 4] if starts else 0
        for pod in self._history.pods.values():
            yield from self._of_late(pod, late_ns)
            yield from self._of_waits(pod)
            yield from self._of_unready(pod)
            yield from self._of_facts(pod, ledger)
        yield from self._of_kills()
        yield from self._of_restarts()
        yield from self._of_nodes()
        yield from self._of_missing()
        yield from self._of_refusals()
        yield from self._of_drains()
        yield from self._of_slowness()

    def _of_waits(self, pod: PodHistory) -> Iterator[Symptom]:
        if pod.preset_node:
            return
        ends = [time_ns for time_ns in (pod.bound_ns, pod.deleting_ns, pod.gone_ns) if time_ns is not None]
        until_ns = min(ends, default=self._end_ns)
        waited_ns = until_ns - pod.created_ns
        if waited_ns >= LONG_NS:
            found = self._blame.waits(pod, pod.created_ns, until_ns)
            weight = min(waited_ns / MINUTE_NS, MOST_OF_ONE)
            yield Symptom("waiting", pod.uid, weight, pod.created_ns, until_ns, found)

    def _of_late(self, pod: PodHistory, late_ns: int) -> Iterator[Symptom]:
        """A pod that runs later than others do, while a fault lasts."""
        if pod.running_ns is None or pod.preset_node or pod.running_ns - pod.created_ns <= late_ns:
            return
        if pod.bound_ns is None or pod.bound_ns - pod.created_ns >= LONG_NS:
            return
        actors = ("apiserver", "store", "scheduler", f"kubelet/{pod.node}", pod.node)
        step = Step("late", pod.uid, pod.created_ns)
        found = [
            one
            for one in self._blame.meanwhile(pod.created_ns, pod.running_ns, actors)
            if isinstance(one.cause, Struck)
        ]
        if found:
            weight = (pod.running_ns - pod.created_ns) / MINUTE_NS
            yield Symptom(
                "late", pod.uid, min(weight, MOST_OF_ONE), pod.created_ns, pod.running_ns, with_step(found, step)
            )

    def _of_unready(self, pod: PodHistory) -> Iterator[Symptom]:
        life = self._evidence.lives.get(pod.uid)
        for begin_ns, end_ns, reason in life.unready if life is not None else ():
            lasted_ns = end_ns - begin_ns - (0 if reason in _OWN else STARTS_NS)
            if lasted_ns <= LONG_NS:
                continue
            kind = "pulling" if reason == "ImagePull" else "unready pod"
            step = Step(kind, pod.uid, begin_ns)
            if reason in ("CreateContainerConfigError", "") and (
                missing := self._blame.absent(pod.uid, end_ns - 1, step)
            ):
                found = missing
            elif reason == "ImagePull":
                found = self._blame.pulls(pod, begin_ns, step)
            elif reason in _OWN and reason != "OOMKilled":
                found = self._blame.template(pod.uid, step)
            elif reason == "OOMKilled":
                found = with_step(self._oom(pod, begin_ns), step)
            elif self._node_is_lost(pod.node, begin_ns, end_ns):
                found = with_step(self._blame.lost_node(pod.node, end_ns), step)
            elif reason:
                found = self._blame.template(pod.uid, step)
            else:
                actors = (f"kubelet/{pod.node}", pod.node, "apiserver", "store")
                found = with_step(self._blame.meanwhile(begin_ns, end_ns, actors), step)
                found = found or self._blame.template(pod.uid, step)
            yield Symptom(kind, pod.uid, min(lasted_ns / MINUTE_NS, MOST_OF_ONE), begin_ns, end_ns, found)

    def _node_is_lost(self, node: str, begin_ns: int, end_ns: int) -> bool:
        history = self._history.nodes.get(node)
        status, touched = "True", False
        for fact in history.facts if history is not None else ():
            if fact.time_ns > end_ns:
                break
            if fact.what == "condition" and fact.reason == "Ready":
                status = fact.status
                touched = touched or (status != "True" and fact.time_ns >= begin_ns - LONG_NS)
            elif fact.what == "removed":
                touched = touched or fact.time_ns >= begin_ns - LONG_NS
        return status != "True" or touched

    def _of_facts(self, pod: PodHistory, ledger: ledgers.Ledger) -> Iterator[Symptom]:
        rejected = 0
        for fact in pod.facts:
            if fact.what == "evicted":
                found = self._blame.evicted(pod, fact)
                weight = VOLUNTARY if fact.reason == "EvictionByEvictionAPI" else EVICTED
                yield Symptom("evicted", pod.uid, weight, fact.time_ns, fact.time_ns, found)
            elif fact.what == "preempted" and fact.reason != "rejected":
                found = self._blame.preempted(pod, fact)
                yield Symptom("preempted", pod.uid, PREEMPTED, fact.time_ns, fact.time_ns, found)
            elif fact.what == "rejected" and not rejected:
                rejected += 1
                found = self._blame.rejected(pod, fact)
                yield Symptom("rejected", pod.uid, REJECTED, fact.time_ns, fact.time_ns, found)
            elif fact.what == "finished" and fact.reason == "Failed" and self._is_own_failure(pod, fact):
                step = Step("failed", pod.uid, fact.time_ns)
                yield Symptom(
                    "failed", pod.uid, RESTARTED, fact.time_ns, fact.time_ns, self._blame.template(pod.uid, step)
                )
            else:
                continue
            for one in ledger.beyond(pod.uid, fact.what) if fact.what in (ledgers.PREEMPTED, ledgers.EVICTED) else ():
                blamed = with_step(found, Step("budget", one.budget, fact.time_ns))
                yield Symptom("budget", one.budget, 0.5, fact.time_ns, fact.time_ns, blamed)
        if pod.deleting_ns is not None and "controller/garbage-collector" in pod.deleted_by:
            act = self._blame.owners.deletion(pod.uid, pod.deleting_ns)
            if act is not None:
                step = Step("deleted", pod.uid, pod.deleting_ns)
                yield Symptom(
                    "deleted", pod.uid, VOLUNTARY, pod.deleting_ns, pod.deleting_ns, [Blamed(act, 1.0, (step,))]
                )

    def _is_own_failure(self, pod: PodHistory, fact: Fact) -> bool:
        others = ("evicted", "rejected", "preempted", "oomKilled")
        return pod.deleting_ns is None and not any(one.what in others for one in pod.facts)

    def _oom(self, pod: PodHistory, time_ns: int) -> list[Blamed]:
        """Why the kernel killed its container, at that time or before."""
        kills = [
            event
            for when_ns, _, event in self._evidence.events[events.OomKilled]
            if event.uid == pod.uid and when_ns <= time_ns + LONG_NS
        ]
        if not kills or kills[-1].limit_bytes:
            return self._blame.template(pod.uid)
        return self._blame.pressure(pod.node, time_ns, "memory.available")

    def _of_kills(self) -> Iterator[Symptom]:
        counts: Counter[str] = Counter()
        for time_ns, _, event in self._evidence.events[events.OomKilled]:
            counts[event.uid] += 1
            pod = self._history.pods.get(event.uid)
            if pod is None or counts[event.uid] > MOST_OF_ONE:
                continue
            step = Step("killed", event.uid, time_ns)
            if event.limit_bytes:
                found = self._blame.template(event.uid, step)
            else:
                found = with_step(self._blame.pressure(event.node, time_ns, "memory.available"), step)
            yield Symptom("killed", event.uid, KILLED, time_ns, time_ns, found)

    def _of_restarts(self) -> Iterator[Symptom]:
        counts: Counter[str] = Counter()
        killed = {event.uid: time_ns for time_ns, _, event in self._evidence.events[events.OomKilled]}
        for time_ns, _, event in self._evidence.events[events.ContainerRestarting]:
            pod = self._history.pods.get(event.uid)
            counts[event.uid] += 1
            if pod is None or counts[event.uid] > MOST_OF_ONE or time_ns - killed.get(event.uid, -LONG_NS) < LONG_NS:
                continue
            step = Step("restarts", event.uid, time_ns)
            if event.exit_code == 255:
                found = with_step(self._blame.lost_node(pod.node, time_ns), step)
            else:
                found = self._blame.template(event.uid, step)
            yield Symptom("restarts", event.uid, RESTARTED, time_ns, time_ns, found)

    def _of_nodes(self) -> Iterator[Symptom]:
        for name, node in self._history.nodes.items():
            begin_ns = -1
            for fact in node.facts:
                if fact.what == "condition" and fact.reason == "Ready":
                    if fact.status != "True" and begin_ns < 0 and fact.time_ns:
                        begin_ns = fact.time_ns
                    elif fact.status == "True" and begin_ns >= 0:
                        yield self._unready_node(name, begin_ns, fact.time_ns)
                        begin_ns = -1
                elif fact.what == "removed" and begin_ns >= 0:
                    yield self._unready_node(name, begin_ns, fact.time_ns)
                    begin_ns = -1
                elif fact.what == "condition" and fact.status == "True" and fact.reason in _SIGNALS:
                    found = self._blame.pressure(name, fact.time_ns, _SIGNALS[fact.reason])
                    yield Symptom("pressure", name, KILLED, fact.time_ns, fact.time_ns, found)
            if begin_ns >= 0:
                yield self._unready_node(name, begin_ns, self._end_ns)

    def _unready_node(self, name: str, begin_ns: int, end_ns: int) -> Symptom:
        found = self._blame.lost_node(name, begin_ns)
        weight = 1.0 + min((end_ns - begin_ns) / MINUTE_NS, MOST_OF_ONE)
        return Symptom("unready", name, weight, begin_ns, end_ns, found)

    # --- pods that are not there ------------------------------------------------------------------------------------

    def _of_missing(self) -> Iterator[Symptom]:
        """Workloads that have fewer pods than they should, whatever those do."""
        alive: dict[Top, list[tuple[int, int]]] = defaultdict(list)
        for pod in self._history.pods.values():
            top = self._blame.owners.top(pod.uid)
            alive[top].append((pod.created_ns, 1))
            ends = [time_ns for time_ns in (pod.deleting_ns, pod.gone_ns) if time_ns is not None]
            finished = next((fact.time_ns for fact in pod.facts if fact.what == "finished"), None)
            ends += [finished] if finished is not None else []
            if ends:
                alive[top].append((min(ends), -1))
        for top, acts in list(self._blame.acts.of.items()):
            if top[0] not in ("Deployment", "ReplicaSet", "StatefulSet", "ReplicationController"):
                continue
            sizes = [
                (act.time_ns, 0 if act.what == DELETED else int(act.message.spec.replicas))
                for act in acts
                if act.message is not None or act.what == DELETED
            ]
            yield from self._missing(top, sizes, sorted(alive[top]))

    def _missing(self, top: Top, sizes: list[tuple[int, int]], alive: list[tuple[int, int]]) -> Iterator[Symptom]:
        plural = {"Deployment": "deployments", "ReplicaSet": "replicasets", "StatefulSet": "statefulsets"}.get(
            top[0], "replicationcontrollers"
        )
        key = f"/registry/{plural}/{top[1] if '/' in top[1] else 'default/' + top[1]}"
        sizes = [
            (version.time_ns, _replicas(version.message)) for version in self._evidence.versions.get(key, ())
        ] or sizes
        moments = sorted({time_ns for time_ns, _ in (*sizes, *alive)} | {self._end_ns})
        changes: Counter[int] = Counter()
        for time_ns, step in alive:
            changes[time_ns] += step
        wanted = dict(sizes)
        want = have = 0
        begin_ns, lacks = -1, 0
        for time_ns in moments:
            if begin_ns >= 0 and lacks and (time_ns - begin_ns) >= LONG_NS:
                yield self._lacking(top, lacks, begin_ns, time_ns)
            want = wanted.get(time_ns, want)
            have += changes[time_ns]
            lacks = max(0, want - have)
            begin_ns = time_ns if lacks else -1

    def _lacking(self, top: Top, lacks: int, begin_ns: int, end_ns: int) -> Symptom:
        namespace = top[1].partition("/")[0] if "/" in top[1] else "default"
        step = Step("missing", " ".join(top), begin_ns)
        refused = [
            (time_ns, event)
            for time_ns, _, event in self._evidence.events[events.RequestRefused]
            if event.verb == "create" and event.resource == "pods" and event.namespace == namespace
            and begin_ns - LONG_NS <= time_ns <= end_ns and event.reason not in _MISTAKES
        ]  # fmt: skip
        if refused:
            time_ns, event = refused[0]
            found = self._blame.refused(time_ns, event.reason, event.message, namespace)
        else:
            found = self._blame.meanwhile(begin_ns, end_ns, ("controller/", "apiserver", "store"))
        weight = min(lacks, MOST_ALIKE) * min((end_ns - begin_ns) / MINUTE_NS, MOST_OF_ONE)
        return Symptom("missing", " ".join(top), weight, begin_ns, end_ns, with_step(found, step))

    # --- requests -----------------------------------------------------------------------------------------------------

    def _of_refusals(self) -> Iterator[Symptom]:
        counts: Counter[tuple[str, ...]] = Counter()
        known: dict[tuple[object, ...], list[Blamed]] = {}
        for time_ns, event, namespace, *of in self._refused():
            if event.reason in _MISTAKES:
                continue
            sort = (event.reason, namespace, *of)
            counts[sort] += 1
            if counts[sort] > MOST_ALIKE:
                continue
            about = (event.reason, event.message[:80], namespace, time_ns // MINUTE_NS)
            if about not in known:
                known[about] = self._blame.refused(time_ns, event.reason, event.message, namespace)
            subject = f"{time_ns} {counts[sort]} {event.name}"
            blamed = with_step(known[about], Step("refused", subject, time_ns))
            yield Symptom("refused", subject, REFUSED, time_ns, time_ns, blamed)

    def _refused(self) -> Iterator[tuple[int, events.RequestRefused | events.UserRefused, str, str, str]]:
        """When, what, in which namespace, of which resource, for which workload."""
        for time_ns, _, asked in self._evidence.events[events.RequestRefused]:
            if asked.by != "user" and asked.verb not in ("bind", "evict", "update_status", "patch_status"):
                yield time_ns, asked, asked.namespace or "default", asked.resource, ""
        for time_ns, _, done in self._evidence.events[events.UserRefused]:
            yield time_ns, done, "default", "", done.workload

    def _of_slowness(self) -> Iterator[Symptom]:
        for number, (time_ns, _, event) in enumerate(self._evidence.events[events.ApiRequest]):
            found = self._blame.meanwhile(event.start, time_ns, ("apiserver", "store"))
            took = (time_ns - event.start) / MINUTE_NS
            subject = f"{number} {event.verb} {event.name}"
            blamed = with_step(found, Step("slow", subject, event.start))
            yield Symptom("slow", subject, min(0.1 + took, MOST_OF_ONE), event.start, time_ns, blamed)
        for number, (time_ns, _, _event) in enumerate(self._evidence.events[events.RequestThrottled][: MOST_ALIKE * 5]):
            found = self._blame.meanwhile(time_ns, time_ns, ("apiserver", "store"))
            yield Symptom(
                "throttled",
                str(number),
                0.02,
                time_ns,
                time_ns,
                with_step(found, Step("throttled", str(number), time_ns)),
            )

    def _of_drains(self) -> Iterator[Symptom]:
        """Drains that wait for pods which their budgets do not let go."""
        for name, node in self._history.nodes.items():
            waits = [fact for fact in node.facts if fact.what == "drainWaits"]
            if not waits:
                continue
            ends = [
                fact.time_ns
                for fact in node.facts
                if fact.what in ("drained", "drainFailed") and fact.time_ns >= waits[0].time_ns
            ]
            end_ns = min(ends, default=self._end_ns)
            found = shared((1.0, self._budget(fact)) for fact in waits[:20])
            act = self._blame.drain(name, waits[0].time_ns)
            if act is not None:
                found = shared([(1 - OF_DRAIN, found), (OF_DRAIN, [Blamed(act, 1.0)])])
            step = Step("drain", name, waits[0].time_ns)
            weight = 1.0 + 2 * (end_ns - waits[0].time_ns) / MINUTE_NS
            yield Symptom("drain", name, weight, waits[0].time_ns, end_ns, with_step(found, step))

    def _budget(self, fact: Fact) -> list[Blamed]:
        """The budget that keeps a pod; most of all what ails its pods, where something does."""
        pod = self._history.pod(fact.reason)
        if pod is None:
            return []
        namespace = pod.key.partition("/")[0]
        for (kind, name), acts in self._blame.acts.of.items():
            own = name.partition("/")[0] if "/" in name else "default"
            message = next(
                (act.message for act in reversed(acts) if act.message is not None and act.time_ns <= fact.time_ns), None
            )
            if kind != "PodDisruptionBudget" or own != namespace or message is None:
                continue
            labels = dict(message.spec.selector.matchLabels)
            if not labels.items() <= pod.labels.items():
                continue
            act = self._blame.acts.latest(kind, name, fact.time_ns)
            if act is not None:
                own_part = [Blamed(act, 1.0)]
                ill = self._ill(namespace, labels, fact.time_ns)
                return shared([(0.2, own_part), (0.8, ill)]) if ill else own_part
        return []

    def _ill(self, namespace: str, labels: dict[str, str], time_ns: int) -> list[Blamed]:
        """What ails the pods of a budget for longer than it takes to start."""
        parts = []
        for other in self._history.pods.values():
            if not other.key.startswith(f"{namespace}/") or not labels.items() <= other.labels.items():
                continue
            waits = other.created_ns < time_ns - LONG_NS and (other.bound_ns or self._end_ns) > time_ns
            if waits and (other.deleting_ns or self._end_ns) > time_ns and not other.preset_node:
                until_ns = min(other.bound_ns or self._end_ns, other.deleting_ns or self._end_ns)
                parts.append((1.0, self._blame.waits(other, other.created_ns, until_ns)))
            elif not waits and (life := self._evidence.lives.get(other.uid)) is not None:
                parts += [
                    (1.0, self._blame.template(other.uid))
                    for begin_ns, end_ns, reason in life.unready
                    if begin_ns <= time_ns <= end_ns and reason in _OWN
                ]
            if len(parts) >= MOST_OF_ONE:
                break
        return shared(parts)


def _replicas(message: Message | None) -> int:
    """How many pods a workload wants; nothing, where it is gone or goes."""
    if message is None or message.metadata.HasField("deletionTimestamp"):  # type: ignore[attr-defined]
        return 0
    return int(message.spec.replicas)  # type: ignore[attr-defined]


_SIGNALS = {"MemoryPressure": "memory.available", "DiskPressure": "nodefs.available", "PIDPressure": "pid.available"}
