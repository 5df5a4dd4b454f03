"""What clients did: objects that they created, changed or deleted, told apart from what controllers write.

Role: the candidates for roots, beside faults; :mod:`blame` asks for the act behind an object as it was at a time.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from google.protobuf.message import Message

from kemu.emulated.objects import meta, resources
from kemu.lab.checks.history import custom_objects
from kemu.lab.tell import people
from kemu.lab.tell.causes.evidence import Evidence, Version
from kemu.messages.k8s import core_v1_pb2
from kemu.messages.k8s.objects import KubernetesObject
from kemu.runtime.runlog.events import Autoscaled, DrainStepped, MachineOff, NodeTainted, UserActed
from kemu.runtime.words import short

SECOND_NS = 1_000_000_000
CREATED, CHANGED, DELETED = "created", "changed", "deleted"
TOGETHER_NS = 60 * SECOND_NS
"""The same done to several nodes within this time is one act."""
_BUILT_IN = ("node.kubernetes.io/", "node.cloudprovider.kubernetes.io/", "ToBeDeletedBy", "DeletionCandidateOf")
MOST_FIELDS = 3


@dataclass(eq=False)
class Act:
    """One thing that a client did, or how an object stands since the start."""

    kind: str
    """Of the object: ``Deployment``; ``Node``; ``workload``, of a stream of pods; ``hook``."""
    name: str
    """``web``; with its namespace where that is not ``default``."""
    time_ns: int
    what: str
    """``created changed deleted``; ``drained``, ``shut down`` of nodes; ``stands``: since before the clock started."""
    fields: dict[str, tuple[str, str]] = field(default_factory=dict)
    """What has changed, by path: before and after, as texts."""
    message: Any = None
    """The object afterwards."""
    also: list[str] = field(default_factory=list)
    """Further objects to which the same was done at once."""
    index: int | None = None
    """The place of its event in the scenario."""
    indexes: list[int] = field(default_factory=list)
    """Of the events of what was done besides."""

    @property
    def is_template(self) -> bool:
        return self.what == CHANGED and any(".template" in path for path in self.fields)

    @property
    def full_name(self) -> str:
        return f"{self.kind} {self.name}"


class Acts:
    """All of them, by object."""

    def __init__(self, evidence: Evidence) -> None:
        self._evidence = evidence
        self.of: dict[tuple[str, str], list[Act]] = defaultdict(list)
        """By kind and name, in their order."""
        self._scaled = {
            (event.autoscaler.partition("/")[0], time_ns // SECOND_NS)
            for time_ns, _, event in evidence.events[Autoscaled]
        }
        self._tainted = {(event.node, time_ns) for time_ns, _, event in evidence.events[NodeTainted]}
        for key, versions in evidence.versions.items():
            for act in self._found(key, versions):
                self.of[act.kind, act.name].append(act)
        for time_ns, _, event in evidence.events[MachineOff]:
            if event.is_shutdown:
                self._add(Act("Node", event.node, time_ns, "shut down"))
        for time_ns, _, event in evidence.events[DrainStepped]:
            if event.step in ("cordoned", "already cordoned"):
                self._add(Act("Node", event.node, time_ns, "drained", index=event.index))
        for stream in evidence.document.get("workloads") or ():
            if isinstance(stream, dict) and "name" in stream:
                begin_ns = min(
                    (pod.created_ns for pod in evidence.history.pods.values() if pod.workload == str(stream["name"])),
                    default=0,
                )
                self._add(Act("workload", str(stream["name"]), begin_ns, CREATED))
        self._find_events()
        self._join_nodes()

    def _add(self, act: Act) -> None:
        self.of[act.kind, act.name].append(act)

    def all(self) -> Iterator[Act]:
        for acts in self.of.values():
            yield from acts

    def latest(self, kind: str, name: str, time_ns: int, *, template: bool = False) -> Act | None:
        """The last one that made the object what it was then; with ``template``, its pods."""
        found = None
        for act in self.of.get((kind, name), ()):
            if act.time_ns > time_ns:
                break
            if act.what in (CREATED, "stands") or (act.what == CHANGED and (act.is_template or not template)):
                found = act
        return found

    # --- finding ----------------------------------------------------------------------------------------------------

    def _found(self, key: str, versions: Sequence[Version]) -> Iterator[Act]:
        plural, _, name = key[custom_objects.BEGIN :].partition("/")
        resource = resources.BY_PLURAL.get(plural)
        if resource is None:
            return
        kind, name = resource.kind, short(name)
        before: Any = None
        for version in versions:
            after, time_ns = version.message, version.time_ns
            known = after if after is not None else before
            if known is not None and meta.controller_of(known) is None and not _is_usual(kind, name):
                if before is None and after is not None:
                    if not (kind == "Node" and time_ns):
                        yield Act(kind, name, time_ns, CREATED if time_ns else "stands", message=after)
                elif after is None:
                    if not (before.metadata.HasField("deletionTimestamp") and kind != "Node"):
                        yield Act(kind, name, time_ns, DELETED)
                elif after.metadata.HasField("deletionTimestamp"):
                    if not before.metadata.HasField("deletionTimestamp"):
                        yield Act(kind, name, time_ns, DELETED, message=before)
                else:
                    fields = differences(before, after)
                    if kind == "Node":
                        fields = self._by_clients(name, time_ns, before, after, fields)
                    if list(fields) == ["spec.replicas"] and self._is_autoscaled(known, time_ns):
                        fields = {}
                    if fields:
                        yield Act(kind, name, time_ns, CHANGED, fields, after)
            before = after

    def _is_autoscaled(self, message: KubernetesObject, time_ns: int) -> bool:
        namespace, second = message.metadata.namespace, time_ns // SECOND_NS
        return any((namespace, second + step) in self._scaled for step in (-1, 0, 1))

    def _by_clients(
        self,
        name: str,
        time_ns: int,
        before: core_v1_pb2.Node,
        after: core_v1_pb2.Node,
        fields: dict[str, tuple[str, str]],
    ) -> dict[str, tuple[str, str]]:
        """What controllers do to nodes is taints of their own; pods' CIDRs and provider's ids are nobody's act."""
        was, now = _taints(before), _taints(after)
        kept = {path: change for path, change in fields.items() if path.startswith(("spec.unschedulable", "labels"))}
        own = {
            key: effect for key, effect in now.items() if was.get(key) != effect and not key.startswith(_BUILT_IN)
        } | {key: "" for key in was if key not in now and not key.startswith(_BUILT_IN)}
        for key, effect in own.items():
            kept[f"taint {key}"] = (was.get(key, ""), effect)
        return kept

    def _find_events(self) -> None:
        """Which event of the scenario each is."""
        acted = [(time_ns, event) for time_ns, _, event in self._evidence.events[UserActed]]
        listed = self._evidence.document.get("events")
        events = listed if isinstance(listed, list) else []
        texts = [str(one) for one in events]
        for act in self.all():
            if act.index is not None or not act.time_ns or act.kind == "workload":
                continue
            near = [
                event.index
                for time_ns, event in acted
                if time_ns <= act.time_ns <= time_ns + 30 * SECOND_NS and _may_be(event.what, act)
            ]
            name = act.name.rpartition("/")[2]
            named = [index for index in near if index < len(texts) and name in texts[index]]
            act.index = named[-1] if named else near[-1] if near and not texts else None
            if act.index is None:
                act.index = next(
                    (
                        index
                        for index, one in enumerate(events)
                        if isinstance(one, dict)
                        and any(word in one for word in ("removeNode", "shutdownNode"))
                        and act.kind == "Node"
                        and f"'{name}'" in texts[index]
                    ),
                    None,
                )

    def _join_nodes(self) -> None:
        """The same done to several nodes at once is one act."""
        alike: dict[tuple[str, ...], Act] = {}
        acts = sorted((act for act in self.all() if act.kind == "Node" and act.time_ns), key=lambda act: act.time_ns)
        last: dict[tuple[str, ...], int] = {}
        for act in acts:
            key = (act.what, *sorted(f"{path}={change[1]}" for path, change in act.fields.items()))
            first = alike.get(key)
            same_event = first is not None and first.index is not None and first.index == act.index
            if first is not None and (same_event or act.time_ns - last[key] <= TOGETHER_NS):
                if act.name != first.name and act.name not in first.also:
                    first.also.append(act.name)
                if act.index is not None and act.index != first.index:
                    first.indexes.append(act.index)
                own = self.of["Node", act.name]
                own[own.index(act)] = first
            else:
                alike[key] = act
            last[key] = act.time_ns


def _may_be(what: str, act: Act) -> bool:
    wanted = {
        "create": (CREATED,), "delete": (DELETED,), "removeNode": (DELETED,), "drain": ("drained", CHANGED),
        "shutdownNode": ("shut down",), "apply": (CREATED, CHANGED),
    }.get(what, (CHANGED,))  # fmt: skip
    return act.what in wanted


def _is_usual(kind: str, name: str) -> bool:
    """What every cluster has."""
    return (
        name.startswith("system-")
        or name.endswith("kube-root-ca.crt")
        or (kind == "Namespace" and (name.startswith("kube-") or name == "default"))
    )


def _taints(node: core_v1_pb2.Node) -> dict[str, str]:
    return {taint.key: taint.effect for taint in node.spec.taints}


# --- differences --------------------------------------------------------------------------------------------------


def differences(before: Message, after: Message) -> dict[str, tuple[str, str]]:
    """What of an object differs, by path, without its status and what the cluster counts."""
    found: dict[str, tuple[str, str]] = {}
    for descriptor in after.DESCRIPTOR.fields:
        name = descriptor.name
        if name in ("status", "metadata"):
            continue
        _differ(name, name, before, after, found)
    was, now = before.metadata.labels, after.metadata.labels  # type: ignore[attr-defined]
    for label in sorted({*was, *now}):
        if was.get(label) != now.get(label):
            found[f"labels.{label}"] = was.get(label, ""), now.get(label, "")
    return found


def _differ(path: str, name: str, before: Message, after: Message, found: dict[str, tuple[str, str]]) -> None:
    descriptor = after.DESCRIPTOR.fields_by_name[name]
    one, other = getattr(before, name), getattr(after, name)
    if one == other:
        return
    if descriptor.message_type is None or descriptor.message_type.name in ("Quantity", "IntOrString", "Time"):
        found[path] = said(one), said(other)
    elif descriptor.message_type.GetOptions().map_entry:
        for key in sorted({*one, *other}):
            was, now = (said(values[key]) if key in values else "" for values in (one, other))
            if was != now:
                found[f"{path}.{key}"] = was, now
    elif descriptor.is_repeated:
        if len(one) != len(other):
            found[path] = str(len(one) or ""), str(len(other) or "")
        else:
            for index, (was, now) in enumerate(zip(one, other, strict=True)):
                if was != now and hasattr(now, "DESCRIPTOR"):
                    named = getattr(now, "name", "") or str(index)
                    for part in now.DESCRIPTOR.fields:
                        _differ(f"{path}[{named}].{part.name}", part.name, was, now, found)
                elif was != now:
                    found[f"{path}[{index}]"] = said(was), said(now)
    elif path.endswith("Probe") and before.HasField(name) != after.HasField(name):
        found[path] = ("given", "") if before.HasField(name) else ("", "given")
    else:
        for part in other.DESCRIPTOR.fields:
            _differ(f"{path}.{part.name}", part.name, one, other, found)


def said(value: object) -> str:
    """A value as people write it."""
    if isinstance(value, Message):
        text = getattr(value, "string", None)
        if text is not None and len(value.DESCRIPTOR.fields) == 1:
            return str(text)
        if value.DESCRIPTOR.name == "IntOrString":
            return str(value.strVal or value.intVal)  # type: ignore[attr-defined]
    return _cut(" ".join(str(value).split()))


def _cut(text: str, most: int = 60) -> str:
    return text if len(text) <= most else f"{text[: most - 1].rstrip()}…"


def amount(resource: str, value: float) -> str:
    """``8.4 GiB``, ``2.5 CPUs``, ``3 nvidia.com/gpu``"""
    if resource == "cpu":
        return f"{_figure(value / 1000)} CPU{'s' if value != 1000 else ''}"
    if resource in ("memory", "ephemeral-storage", "disk"):
        return people.size(value)
    return f"{_figure(value)} {resource}"


def _figure(value: float) -> str:
    return f"{value:,.0f}" if value >= 100 else f"{value:.3g}"
