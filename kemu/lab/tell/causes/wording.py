"""Roots and links in words: whole sentences with counts, units and names that people know."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence

from kemu.emulated import variants
from kemu.lab.tell import people
from kemu.lab.tell.causes import gentler
from kemu.lab.tell.causes.acts import CHANGED, CREATED, DELETED, MOST_FIELDS, SECOND_NS, Act, amount, differences
from kemu.lab.tell.causes.blame import Blame, Cause, Struck
from kemu.lab.tell.causes.evidence import Evidence
from kemu.lab.tell.causes.roots import ACTION, CONFIGURATION, FAULT, LOAD, ROLLOUT, Link, Root
from kemu.lab.tell.happenings import priority_class, some
from kemu.runtime.runlog.events import Autoscaled
from kemu.runtime.words import counted, short

NAMES = 10
"""So many names of pods or nodes a link keeps."""
_LINKS: dict[str, tuple[str, str, str]] = {
    "large": ("resources", "no node is so large", "no node is so large"),
    "removed": ("nodes", "{one} is removed", "{many} are removed"),
    "relabelled": ("nodes", "{one} gets another label", "{many} get other labels"),
    "absent": ("objects", "{one} is not there", "{n} objects are not there"),
    "tainted": ("nodes", "{one} is tainted", "{many} are tainted"),
    "cordoned": ("nodes", "{one} takes no more pods", "{many} take no more pods"),
    "slow": ("requests", "a request takes {most}", "{n} requests take up to {most}"),
    "throttled": ("requests", "an overloaded API server refuses a request", "API servers refuse {n} requests"),
    "refused": ("requests", "a request is refused", "{n} requests are refused"),
    "memory": ("nodes", "the memory of {one} fills", "the memory of {many} fills"),
    "disk": ("nodes", "the disk of {one} fills", "the disks of {many} fill"),
    "inodes": ("nodes", "the inodes of {one} are used up", "the inodes of {many} are used up"),
    "pids": ("nodes", "the process ids of {one} are used up", "the process ids of {many} are used up"),
    "unready": ("nodes", "{one} is not ready", "{many} are not ready"),
    "pressure": ("nodes", "{one} crosses its eviction threshold", "{many} cross their eviction thresholds"),
    "killed": ("pods", "{one} is OOM-killed", "{many} are OOM-killed"),
    "restarts": ("pods", "{one} crashes and restarts", "{many} crash and restart"),
    "failed": ("pods", "{one} fails", "{many} fail"),
    "rejected": ("pods", "{one} is rejected by its kubelet", "{many} are rejected by their kubelets"),
    "evicted": ("pods", "{one} is evicted", "{many} are evicted"),
    "preempted": ("pods", "{one} is preempted", "{many} are preempted"),
    "deleted": ("pods", "{one} is deleted", "{many} are deleted"),
    "budget": ("budgets", "the disruption budget {one} is exceeded", "{n} disruption budgets are exceeded"),
    "pulling": ("pods", "the image of {one} cannot be pulled", "the images of {many} cannot be pulled"),
    "drain": ("nodes", "the drain of {one} waits for a budget", "the drains of {n} nodes wait for budgets"),
    "missing": ("workloads", "{one} lacks pods", "{n} workloads lack pods"),
    "unready pod": ("pods", "{one} is not ready", "{many} are not ready"),
    "waiting": ("pods", "{one} waits for a node", "{many} wait for a node"),
    "late": ("pods", "{one} starts late", "{many} start late"),
}
"""By kind, causes before effects: the unit, and what is said of one and of several."""


def rank(kind: str) -> int:
    """Causes before effects."""
    return -1 if kind.startswith("demand ") else _ORDER[kind]


_ORDER = {kind: number for number, kind in enumerate(_LINKS)}
_LASTING = ("waiting", "unready pod", "unready", "late", "drain", "pulling", "missing")


class Words:
    def __init__(self, evidence: Evidence, blame: Blame) -> None:
        self._evidence = evidence
        self._blame = blame

    # --- links --------------------------------------------------------------------------------------------------------

    def link(self, kind: str, subjects: Sequence[str], first_ns: int, last_ns: int, longest_ns: int = 0) -> Link:
        if kind.startswith("demand "):
            return self._demand(kind.partition(" ")[2], subjects, first_ns, last_ns)
        unit, one, many = _LINKS[kind]
        n = len(subjects)
        pods = self._evidence.history.pods
        if unit == "pods":
            names = [short(pods[uid].key) for uid in subjects if uid in pods]
            several = f"{n} pods{self._important(subjects)}"
        else:
            names = [short(name) for name in subjects]
            several = f"{n} {unit}"
        most = lasting(last_ns - first_ns)
        if kind == "slow":
            most = self._slowest()
            names = [name.partition(" ")[2] for name in subjects]
        if kind in ("refused", "throttled"):
            names = []
        text = (one if n == 1 else many).format(one=names[0] if names else "one", many=several, n=n, most=most)
        if kind in _LASTING and longest_ns:
            text += f", up to {lasting(longest_ns)}"
        return Link(kind, text, n, unit if n != 1 else unit.removesuffix("s"), first_ns, last_ns, tuple(names[:NAMES]))

    def _slowest(self) -> str:
        from kemu.runtime.runlog.events import ApiRequest

        longest = max((time_ns - event.start for time_ns, _, event in self._evidence.events[ApiRequest]), default=0)
        return lasting(longest)

    def _important(self, uids: Sequence[str]) -> str:
        """``, 8 of them vital``: where pods of several priorities are concerned, those of the highest."""
        pods = self._evidence.history.pods
        known = [pods[uid] for uid in uids if uid in pods]
        counts = Counter(pod.priority for pod in known)
        if len(counts) < 2:
            return ""
        highest = max(known, key=lambda pod: pod.priority)
        return f" ({counts[highest.priority]} of priority {priority_class(highest)})"

    def _demand(self, resource: str, subjects: Sequence[str], first_ns: int, last_ns: int) -> Link:
        tops = {tuple(subject.split(" ", 1)) for subject in subjects}
        pods = [
            pod
            for pod in self._evidence.history.pods.values()
            if self._blame.owners.top(pod.uid) in tops and pod.created_ns >= first_ns
        ]
        want = sum(1 if resource == "pods" else pod.requests.get(resource, 0) for pod in pods)
        count = counted(len(pods), "pod")
        said = count if resource == "pods" else f"{amount(resource, want)} for {count}"
        what = f"{some(list(subjects))} wants {said}" if len(tops) == 1 else f"{len(tops)} workloads want {said}"
        return Link(
            "demand", what, len(pods), "pods" if len(pods) != 1 else "pod", first_ns, last_ns, tuple(subjects[:NAMES])
        )

    # --- roots --------------------------------------------------------------------------------------------------------

    def name(self, cause: Cause) -> str:
        if isinstance(cause, Struck):
            return cause.id
        return cause.full_name

    def root(self, cause: Cause, chain: tuple[Link, ...], share: float) -> Root:
        if isinstance(cause, Struck):
            begins = f"fault {cause.what}"
            detail = _lasted(cause)
            whom = self._zone(cause.id) or self._zone_of(cause) or sorted(cause.stated or cause.whom)
            return Root(
                FAULT,
                cause.id,
                f"{begins} of {some(whom)}" if whom else begins,
                cause.begin_ns,
                chain,
                share,
                detail,
                fault=cause.id,
                also=cause.also,
            )
        kind, what = self._act(cause)
        events = (*([] if cause.index is None else [cause.index]), *dict.fromkeys(cause.indexes))
        return Root(
            kind,
            cause.full_name,
            what,
            cause.time_ns,
            chain,
            share,
            self._detail(cause, is_preempting=any(link.kind == "preempted" for link in chain)),
            cause.index,
            events,
        )

    def _zone_of(self, cause: Struck) -> list[str]:
        """``zone b``, where several machines that are lost are all that a zone has; else how many of it."""
        lost = {name.removeprefix("kubelet/") for name in cause.whom}
        if not cause.also:
            return []
        zones: dict[str, set[str]] = {}
        for key, versions in self._evidence.versions.items():
            if key.startswith("/registry/nodes/") and versions[0].message is not None:
                zone = versions[0].message.metadata.labels.get("topology.kubernetes.io/zone", "")
                zones.setdefault(zone, set()).add(key.rpartition("/")[2])
        struck = {zone: nodes & lost for zone, nodes in zones.items() if nodes & lost}
        if len(struck) == 1 and "" not in struck:
            zone, nodes = next(iter(struck.items()))
            return [f"zone {zone}" if nodes == zones[zone] else f"{len(nodes)} nodes of zone {zone}"]
        return [f"{len(lost)} nodes"]

    def _zone(self, fault: str) -> list[str]:
        """The zone that a fault is about, as the scenario says."""
        for one in self._evidence.document.get("chaos") or ():
            of = (
                next((of for of in one.values() if isinstance(of, dict) and "zone" in of), None)
                if isinstance(one, dict)
                else None
            )
            if of is not None and one.get("id") == fault:
                return [f"zone {of['zone']}"]
        return []

    def _act(self, act: Act) -> tuple[str, str]:
        whom = f"{len(act.also) + 1} nodes" if act.kind == "Node" and act.also else act.full_name
        if act.kind == "workload":
            return LOAD, f"pods of workload {act.name}"
        if act.kind == "schedulers":
            return CONFIGURATION, f"schedulers {act.name} deciding at the same time"
        if act.kind in ("bug", "ablation"):
            verb = "switched on" if act.kind == "bug" else "which the scenario makes"
            return CONFIGURATION, f"{act.full_name}, {verb}"
        if act.what == "stands" and act.kind == "Node" and act.name.endswith("*"):
            return CONFIGURATION, f"nodes {act.name} as they stand since the start"
        if act.what == "stands":
            return CONFIGURATION, f"{whom} as it stands since the start"
        if act.what == "fails":
            return FAULT, f"{act.full_name}, which gives no images,"
        if act.what == CREATED:
            many = f" and {len(act.also)} more" if act.also else ""
            return ACTION, f"creation of {act.full_name}{many}"
        if act.what == DELETED:
            return ACTION, f"removal of {whom}" if act.kind == "Node" else f"deletion of {whom}"
        if act.what == "drained":
            return ACTION, f"drain of {whom}"
        if act.what == "shut down":
            return ACTION, f"shutdown of {whom}"
        if act.is_template:
            return ROLLOUT, f"rollout of {whom}"
        if list(act.fields) == ["spec.replicas"]:
            return ACTION, f"scaling of {whom}"
        if act.kind == "Node" and any(path.startswith("taint ") for path in act.fields):
            return ACTION, f"taint on {whom}"
        if "spec.unschedulable" in act.fields:
            return ACTION, f"cordon of {whom}"
        return ACTION, f"change of {whom}"

    def _detail(self, act: Act, *, is_preempting: bool = False) -> str:
        parts = []
        if act.what == CHANGED:
            parts += _changes(act.fields)
        elif act.kind in ("bug", "ablation"):
            parts.append(variants.VARIANTS[act.name].does if act.name in variants.VARIANTS else "")
        elif act.what == "stands" and act.message is None and act.kind != "schedulers":
            parts += list(act.fields)
        elif act.what == "stands" and isinstance(act.message, gentler.Workload):
            parts += self._last_rollout(act.message)
        elif act.what == "fails":
            parts.append(f"images of {act.fields['workloads'][1]} workloads")
        scaled = [
            event
            for time_ns, _, event in self._evidence.events[Autoscaled]
            if act.kind == "HorizontalPodAutoscaler" and short(event.autoscaler) == act.name and time_ns >= act.time_ns
        ]
        if scaled:
            parts.append(f"scales from {scaled[0].before} to {max(event.replicas for event in scaled)} replicas")
        if (
            act.kind in ("Deployment", "StatefulSet", "DaemonSet", "ReplicaSet", "Job")
            and is_preempting
            and act.message
        ):
            priority = act.message.spec.template.spec.priorityClassName
            parts += [f"its pods have the priority {priority}"] if priority else []
        used = self._used(act)
        return "; ".join([*parts, *([used] if used else [])])

    def _last_rollout(self, message: gentler.Workload) -> list[str]:
        """What it changed before the run began, as ReplicaSets and ControllerRevisions tell."""
        others = [
            versions[0].message
            for key, versions in self._evidence.versions.items()
            if key.startswith(("/registry/replicasets/", "/registry/controllerrevisions/")) and not versions[0].time_ns
        ]
        template = gentler.previous_template(message, others)
        if template is None:
            return []
        before, after = (gentler.with_template(message, one) for one in (template, message.spec.template))
        first, *rest = _changes(differences(before, after)) or ["nothing"]
        return [f"its last rollout: {first}", *rest]

    def _used(self, act: Act) -> str:
        """What its pods use beyond what they ask for."""
        most, wants = 0, 0
        for pod in self._evidence.history.pods.values():
            if self._blame.owners.top(pod.uid) != (act.kind, act.name) or pod.created_ns < act.time_ns:
                continue
            until_ns = pod.gone_ns or self._blame.end_ns
            uses = max(self._blame.uses(pod, "memory", pod.created_ns), self._blame.uses(pod, "memory", until_ns))
            if uses > most:
                most, wants = uses, pod.requests.get("memory", 0)
        return f"uses up to {people.size(most)} of memory, requests {people.size(wants)}" if most > wants else ""


def _changes(fields: Mapping[str, tuple[str, str]]) -> list[str]:
    parts = []
    for path, (before, after) in list(fields.items())[:MOST_FIELDS]:
        name = path.removeprefix("spec.template.").removeprefix("spec.").removeprefix("metadata.annotations.")
        parts.append(f"{name}: {' '.join(before.split()) or 'none'} → {' '.join(after.split()) or 'none'}")
    return [*parts, *([f"{len(fields) - MOST_FIELDS} more"] if len(fields) > MOST_FIELDS else [])]


def lasting(time_ns: int) -> str:
    """``12.5 s``, ``3 min 39 s``, ``30 min``: whole minutes from ten on."""
    seconds = time_ns / SECOND_NS
    return people.duration(seconds if seconds < 600 else 60 * round(seconds / 60))


def _lasted(cause: Struck) -> str:
    times = len({fault.begin_ns for fault in cause.faults})
    if cause.end_ns is None:
        return f"{times} times, the last to the end of the run" if times > 1 else "to the end of the run"
    lasted = lasting(cause.end_ns - cause.begin_ns)
    return f"{times} times within {lasted}" if times > 1 else f"for {lasted}"
