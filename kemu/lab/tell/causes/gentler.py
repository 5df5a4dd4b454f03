"""A root in a gentler form: a workload as it was before, or as what it uses asks for; nodes that are open to pods; a
registry that has its images; a scheduler with the default configuration.

Role: asked by :mod:`checking` before it takes the whole object away, with which the symptoms would go, too.
"""

from __future__ import annotations

import dataclasses
import fnmatch
import json
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, TypeVar

import yaml
from google.protobuf.message import Message

from kemu.emulated.controllers.workloads.deployments import revisions
from kemu.emulated.kubelet.usage import curves, usages
from kemu.emulated.objects import meta, resources
from kemu.emulated.objects.amounts import quantities
from kemu.emulated.objects.conversion import convert
from kemu.emulated.objects.defaulting import defaults
from kemu.emulated.objects.plain import Json
from kemu.lab.scenario.format.workloads import PodLives
from kemu.lab.scenario.scenarios import Manifest, Scenario
from kemu.lab.tell.causes.acts import amount, differences
from kemu.lab.tell.causes.blame import OF_NODES, registry
from kemu.lab.tell.causes.roots import Root
from kemu.messages.k8s import apps_v1_pb2, core_v1_pb2
from kemu.messages.k8s.objects import KubernetesObject
from kemu.runtime.words import short

M = TypeVar("M", bound=Message)
Workload = apps_v1_pb2.Deployment | apps_v1_pb2.StatefulSet | apps_v1_pb2.DaemonSet | apps_v1_pb2.ReplicaSet
W = TypeVar("W", bound=Workload)
_USES = frozenset(("memory", "disk", "inodes", "pids", "pressure", "killed"))
"""Links of chains that follow from what pods use."""
_SHORT = frozenset(("memory", "disk", "inodes", "pids", "pressure"))
_SIZES = frozenset(("large", "demand", "preempted"))
"""And from what they request, or how many there are."""
_HASH = "pod-template-hash"
_TOO_MUCH = 1.5
"""A request that is so many times what the pods use does not fit it."""
_SPARE = 1.2
"""A request that fits is so many times what they use."""
_MEMORY_KEYS = ("memory", "active_file")
_GROWING = (*_MEMORY_KEYS, "rootfs", "logs", "inodes", "pids")
_SCALED = re.compile(
    r"[Ss]caled up replica set \S+ from (\d+) to (\d+)|[Ss]caled up replica set \S+ to (\d+) from (\d+)"
)


def gentler(scenario: Scenario, root: Root) -> tuple[Scenario, str] | None:
    """The scenario with another form of what a root names, and what it has, in words; None: there is no gentler
    form."""
    kind, _, name = root.name.partition(" ")
    if kind == "Node":
        return _open_nodes(scenario, name, root.detail)
    if kind == "registry":
        return _available(scenario, name)
    if kind == "scheduler":
        return _configured_by_default(scenario, name)
    workload = _Workload.of(scenario, root.name)
    if workload is None:
        return None
    known = {link.kind for link in root.chain}
    large = {name for link in root.chain if link.kind == "large" for name in link.names}
    workload.short_of = large or {"cpu", "memory"}
    ways = [workload.as_before]
    if known & _SIZES and not known & _USES:
        ways = [workload.fitting, workload.fewer, workload.as_before]
    elif known & _USES:
        # Containers are killed at their own limits where no node runs short.
        ways = [workload.flat, workload.as_before] if known & _SHORT else [workload.as_before, workload.flat]
    return next((found for way in ways if (found := way()) is not None), None)


def _open_nodes(scenario: Scenario, pattern: str, detail: str) -> tuple[Scenario, str] | None:
    """With nodes that take pods: without the taint of ``taint KEY``, or not cordoned."""
    key = detail.removeprefix("taint ")
    if detail == OF_NODES:
        calm = [
            dataclasses.replace(node, usage={}) if fnmatch.fnmatchcase(node.name, pattern) else node
            for node in scenario.nodes
        ]
        return dataclasses.replace(scenario, nodes=tuple(calm)), f"nodes {pattern} that use nothing besides their pods"
    nodes, count = [], 0
    for node in scenario.nodes:
        message = node.message
        taints = [one for one in message.spec.taints if detail == key or one.key != key]
        if fnmatch.fnmatchcase(node.name, pattern) and detail in ("unschedulable", f"taint {key}"):
            is_other = len(taints) < len(message.spec.taints) or (
                detail != f"taint {key}" and message.spec.unschedulable
            )
            del message.spec.taints[:]
            message.spec.taints.extend(taints)
            message.spec.unschedulable = message.spec.unschedulable and detail != "unschedulable"
            count += is_other
            node = dataclasses.replace(node, data=message.SerializeToString(deterministic=True)) if is_other else node
        nodes.append(node)
    if not count:
        return None
    what = "open to pods" if detail == "unschedulable" else f"without the taint {key}"
    whom = pattern if count == 1 else f"{count} nodes"
    return dataclasses.replace(scenario, nodes=tuple(nodes)), f"{whom} {what}"


def _available(scenario: Scenario, host: str) -> tuple[Scenario, str] | None:
    """With a registry that has all of its images."""
    stated = scenario.references
    if stated is None:
        return None
    rest = [one for one in stated.missing_images if not _is_of(one, host)]
    if len(rest) == len(stated.missing_images):
        return None
    other = dataclasses.replace(stated, missing_images=rest)
    return dataclasses.replace(scenario, references=other), f"the images of registry {host} available"


def _is_of(pattern: str, host: str) -> bool:
    """Whether images that fit a pattern may be a registry's."""
    first, slash, _ = pattern.partition("/")
    return fnmatch.fnmatchcase(host, first if slash and "*" in first else registry(pattern)) or (
        not slash and pattern.startswith("*")
    )


def _configured_by_default(scenario: Scenario, name: str) -> tuple[Scenario, str] | None:
    """With what kube-scheduler does by default, under the same names. ``name``: of a scheduler or of a profile."""
    found = []
    for one in scenario.schedulers:
        profiles = one.config.get("profiles") or ()
        serves = [each["schedulerName"] for each in profiles if each.get("schedulerName")]
        if one.factory is None and one.config and name in (one.name, *serves):
            kept = {key: one.config[key] for key in ("apiVersion", "kind") if key in one.config}
            config = {**kept, "profiles": [{"schedulerName": each} for each in serves]} if serves else {}
            one = dataclasses.replace(one, config=config)
        found.append(one)
    if tuple(found) == scenario.schedulers:
        return None
    other = dataclasses.replace(scenario, schedulers=tuple(found))
    return other, f"the default configuration of scheduler {name}"


def previous_template(workload: Workload, others: Iterable[Message]) -> core_v1_pb2.PodTemplateSpec | None:
    """What the pods of a Deployment, StatefulSet or DaemonSet were made of before its last rollout, from its
    ReplicaSets or ControllerRevisions; None: they do not tell."""
    kind = resources.of(workload).kind
    found: list[tuple[int, core_v1_pb2.PodTemplateSpec]] = []
    for one in others:
        if not isinstance(one, apps_v1_pb2.ReplicaSet | apps_v1_pb2.ControllerRevision):
            continue
        owner, is_near = meta.controller_of(one), one.metadata.namespace == workload.metadata.namespace
        if owner is None or not is_near or (owner.kind, owner.name) != (kind, workload.metadata.name):
            continue
        if isinstance(one, apps_v1_pb2.ReplicaSet):
            template = with_template(workload, one.spec.template).spec.template
            template.metadata.labels.pop(_HASH, None)
            found.append((revisions.revision(one) or 0, template))
        elif (stored := _of_revision(one)) is not None:
            found.append((one.revision, with_template(workload, stored).spec.template))
    current = with_template(workload, workload.spec.template).spec.template
    others_ = [one for one in found if not _alike(one[1], current)]
    newest = max((number for number, template in found if _alike(template, current)), default=None)
    # One that is newer than what the workload states was rolled back.
    before = [one for one in others_ if newest is None or one[0] < newest]
    return max(before, key=lambda one: one[0])[1] if before else None


def with_template(workload: W, template: core_v1_pb2.PodTemplateSpec) -> W:
    """A copy with that template, and with Kubernetes' defaults, so that only what somebody wrote differs."""
    found = meta.copied(workload)
    found.spec.template.CopyFrom(template)
    defaults.apply(found)
    return found


def _of_revision(one: apps_v1_pb2.ControllerRevision) -> core_v1_pb2.PodTemplateSpec | None:
    try:
        data = json.loads(one.data.raw)["spec"]["template"]
        return convert.from_json(core_v1_pb2.PodTemplateSpec, {key: data[key] for key in data if key != "$patch"})
    except (ValueError, KeyError, TypeError, convert.ConversionError):
        return None


def _alike(one: core_v1_pb2.PodTemplateSpec, other: core_v1_pb2.PodTemplateSpec) -> bool:
    notes = dict(one.metadata.annotations) == dict(other.metadata.annotations)
    return notes and one.spec.SerializeToString(deterministic=True) == other.spec.SerializeToString(deterministic=True)


@dataclass
class _Workload:
    """One of a scenario's setup, with what belongs to it."""

    scenario: Scenario
    place: int
    message: Any
    name: str
    """``Deployment shop/web``"""
    short_of: set[str] = field(default_factory=set)
    """Resources of which its pods ask for too much."""

    @staticmethod
    def of(scenario: Scenario, name: str) -> _Workload | None:
        for place, manifest in enumerate(scenario.setup):
            message: Any = manifest.message
            if isinstance(message, Workload) and full_name(message) == name:
                return _Workload(scenario, place, message, name)
        return None

    def _with(self, changed: Message) -> Scenario:
        setup = list(self.scenario.setup)
        setup[self.place] = dataclasses.replace(setup[self.place], message=changed)
        return dataclasses.replace(self.scenario, setup=tuple(setup))

    # --- as it was ----------------------------------------------------------------------------------------------------

    def as_before(self) -> tuple[Scenario, str] | None:
        template = previous_template(self.message, (one.message for one in self.scenario.setup))
        if template is None:
            return None
        stated, changed = (with_template(self.message, one) for one in (self.message.spec.template, template))
        fields = [
            f"{path.removeprefix('spec.template.').removeprefix('spec.')}: {after or 'none'}"
            for path, (_, after) in differences(stated, changed).items()
        ]
        return self._with(changed), f"the previous template of {self.name} ({'; '.join(fields[:1])})"

    def fewer(self) -> tuple[Scenario, str] | None:
        """With as many replicas as it had before the cluster's Events tell of a larger number."""
        namespace, name = self.message.metadata.namespace or "default", self.message.metadata.name
        observed = self.scenario.resolved.get("spec", {}).get("observed")
        for line in observed if isinstance(observed, list) else ():
            if f"Deployment {namespace}/{name}" not in line.get("of", ()):
                continue
            said = _SCALED.search(str(line.get("says", "")))
            if said is not None:
                before = int(said[1])
                if 0 < before < self.message.spec.replicas:
                    changed = meta.copied(self.message)
                    changed.spec.replicas = before
                    return self._with(changed), f"{before} replicas of {self.name}, as before"
        return None

    # --- what it uses and requests ------------------------------------------------------------------------------------

    def _owners(self) -> list[tuple[str, str]]:
        """Kinds and names of what controls its pods."""
        kind = resources.of(self.message).kind
        found = [(kind, self.message.metadata.name)]
        for manifest in self.scenario.setup:
            if isinstance(manifest.message, apps_v1_pb2.ReplicaSet) and self._is_own(manifest.message, found[:1]):
                found.append(("ReplicaSet", manifest.message.metadata.name))
        if kind == "Deployment":
            found.append(("ReplicaSet", f"{self.message.metadata.name}-55555"))
        return found

    def _is_own(self, message: KubernetesObject, owners: list[tuple[str, str]]) -> bool:
        owner = meta.controller_of(message)
        same = message.metadata.namespace == self.message.metadata.namespace
        return same and owner is not None and (owner.kind, owner.name) in owners

    def _speaks_of(self, entry: PodLives, owners: list[tuple[str, str]]) -> bool:
        if entry.usage is None or entry.owner is None or entry.selector:
            return False
        if entry.namespace not in (None, self.message.metadata.namespace or "default"):
            return False
        return any(fnmatch.fnmatchcase(f"{kind}/{name}", entry.owner) for kind, name in owners)

    def _requested(self, resource: str) -> float:
        """In milli for cpu, else bytes."""
        total = 0.0
        for container in self.message.spec.template.spec.containers:
            if resource in container.resources.requests:
                value = quantities.approximate(container.resources.requests[resource].string)
                total += value * 1000 if resource == "cpu" else value
        return total

    def _used(self) -> Iterator[tuple[dict[str, Any], usages.Usage]]:
        """By pod, by rule or by template."""
        owners = self._owners()
        texts = [self.message.spec.template.metadata.annotations.get(usages.USAGE, "")]
        texts += [
            manifest.message.metadata.annotations.get(usages.USAGE, "")  # type: ignore[attr-defined]
            for manifest in self.scenario.setup
            if isinstance(manifest.message, core_v1_pb2.Pod) and self._is_own(manifest.message, owners)
        ]
        found = [data for text in texts if isinstance(data := yaml.safe_load(text) if text else None, dict)]
        found += [dict(one.usage or {}) for one in self.scenario.lives if self._speaks_of(one, owners)]
        for data in found:
            yield data, usages.parse(data)

    def flat(self) -> tuple[Scenario, str] | None:
        """What its pods use stays as it was at first, and within what they request where it never was less."""
        owners, wants = self._owners(), self._requested("memory")
        held: list[float] = []
        changes = 0

        def flattened(text: str) -> str:
            nonlocal changes
            data = yaml.safe_load(text) if text else None
            if not isinstance(data, dict):
                return text
            made = _flat(data, wants)
            changes += made != data
            held.append(_memory(made))
            return json.dumps(made)

        setup: list[Manifest] = []
        for manifest in self.scenario.setup:
            message: Any = manifest.message
            notes = None
            if message is self.message or (
                isinstance(message, apps_v1_pb2.ReplicaSet) and self._is_own(message, owners)
            ):
                notes = lambda one: one.spec.template.metadata.annotations  # noqa: E731
            elif isinstance(message, core_v1_pb2.Pod) and self._is_own(message, owners):
                notes = lambda one: one.metadata.annotations  # noqa: E731
            if notes is not None and usages.USAGE in notes(message):
                changed = meta.copied(message)
                notes(changed)[usages.USAGE] = flattened(notes(message)[usages.USAGE])
                manifest = dataclasses.replace(manifest, message=changed)
            setup.append(manifest)
        lives = []
        for entry in self.scenario.lives:
            if self._speaks_of(entry, owners) and entry.usage is not None:
                usage = _flat(entry.usage, wants)
                changes += usage != dict(entry.usage)
                held.append(_memory(usage))
                entry = dataclasses.replace(entry, usage=usage)
            lives.append(entry)
        if not changes:
            return None
        most = max(held, default=0.0)
        at = f" at {amount('memory', most)} of memory" if most else " where it begins"
        other = dataclasses.replace(self.scenario, setup=tuple(setup), lives=tuple(lives))
        return other, f"the usage of {self.name} held{at}"

    def fitting(self) -> tuple[Scenario, str] | None:
        """Requests in proportion to what the pods use at most."""
        seconds = self.scenario.duration_ns // 1_000_000_000
        most: dict[str, float] = {}
        for _, usage in self._used():
            for resource, keys in (("cpu", ("cpu",)), ("memory", _MEMORY_KEYS)):
                listed = (usage.shared, *usage.of_containers.values())
                used: float = sum(curve.most(0, seconds) for own in listed for key, curve in own.items() if key in keys)
                most[resource] = max(most.get(resource, 0), used)
        parts = []
        changed = meta.copied(self.message)
        for resource, used in most.items():
            wants = self._requested(resource)
            if not used or wants <= _TOO_MUCH * used or resource not in self.short_of:
                continue
            share = _SPARE * used / wants
            for container in changed.spec.template.spec.containers:
                if resource in container.resources.requests:
                    value = quantities.approximate(container.resources.requests[resource].string) * share
                    text = quantities.format_milli(round(value * 1000)) if resource == "cpu" else str(round(value))
                    container.resources.requests[resource].string = text
            unit = "" if resource == "cpu" else " of memory"
            parts.append(f"{amount(resource, _SPARE * used)} in place of {amount(resource, wants)}{unit}")
        if not parts:
            return None
        return self._with(changed), f"{self.name} requesting {' and '.join(parts)}, as fits what it uses"


def _flat(usage: Mapping[str, Json], wants: float) -> dict[str, Any]:
    """A usage whose curves stay at their beginning, and whose memory is no more than is requested."""

    def held(key: str, value: Json) -> Json:
        if key not in _GROWING:
            return value
        curve = curves.parse(value)
        least = curve.at(0)
        if key == "memory" and 0 < wants < least:
            least = int(wants)
        return value if isinstance(value, str) and least == curve.at(0) else str(least)

    found: dict[str, Any] = {}
    for key, value in usage.items():
        if key == "containers" and isinstance(value, Mapping):
            found[key] = {name: _flat(own, wants) for name, own in value.items() if isinstance(own, Mapping)}
        elif key == "volumes" and isinstance(value, Mapping):
            found[key] = {name: held("rootfs", own) for name, own in value.items()}
        else:
            found[key] = held(key, value)
    return found


def _memory(usage: Mapping[str, Any]) -> float:
    own = quantities.approximate(usage["memory"]) if isinstance(usage.get("memory"), str) else 0.0
    return float(own) + sum(_memory(one) for one in usage.get("containers", {}).values())


def full_name(message: Message) -> str:
    """As roots name objects: ``Deployment shop/web``."""
    metadata = message.metadata  # type: ignore[attr-defined]
    name = f"{metadata.namespace}/{metadata.name}" if metadata.namespace else metadata.name
    return f"{resources.of(message).kind} {short(name)}"
