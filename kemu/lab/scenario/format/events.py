"""Events: what users and operators do at a time.

:mod:`kemu.lab.scenario.loading.timelines` reads the objects in them; :mod:`kemu.lab.scenario.playing.user` and
``operators`` carry them out.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

from google.protobuf.message import Message

from kemu.emulated.client import drains
from kemu.emulated.objects import custom_kinds, resources
from kemu.emulated.objects.fields import tables
from kemu.emulated.objects.plain import Json
from kemu.emulated.objects.validation import placement
from kemu.emulated.settings.declared import REQUIRED, Complaint, Section, chosen, setting
from kemu.emulated.settings.documents import Path
from kemu.emulated.settings.shapes import (
    DURATION,
    INVALID,
    NAME,
    POD_REFERENCE,
    ROLLOUT_REFERENCE,
    Choice,
    Free,
    Report,
    Text,
    Whole,
)
from kemu.emulated.settings.values import full_name
from kemu.lab.scenario.format import clusters
from kemu.messages.k8s import core_v1_pb2
from kemu.runtime.words import did_you_mean

OF_MACHINES = ("addNode", "removeNode", "shutdownNode", "startNode")
"""Events that are not the user's business."""


class _Kind(Text):
    """A kind of objects that kemu knows, or a custom one with its group: ``Widget.example.com``."""

    def check(self, value: Json, path: Path, report: Report) -> object:
        found = super().check(value, path, report)
        if isinstance(found, str) and found not in resources.BY_KIND and not custom_kinds.is_custom(found):
            report.add(path, f"{found!r} is not a kind that kemu knows", did_you_mean(found, tables.ACCEPTED))
            return INVALID
        return found


class Target(NamedTuple):
    """What an event is about; empty where it is about no object that is there."""

    resource: str = ""
    """Plural."""
    namespace: str = ""
    name: str = ""


def _of_pod(full: str) -> Target:
    return Target("pods", *full.split("/"))


def _of_kind(kind: str, namespace: str, name: str) -> Target:
    if custom_kinds.is_custom(kind):
        return Target(kind, namespace, name)
    resource = resources.BY_KIND[kind]
    return Target(resource.plural, namespace if resource.namespaced else "", name)


@dataclass(frozen=True, kw_only=True)
class Delete:
    kind: str | None = setting(_Kind(), "Its kind, such as Pod.")
    name: str | None = setting(NAME, "Its name.")
    namespace: str = setting(NAME, "Its namespace; {default} by default.", "default")
    pod: str | None = setting(POD_REFERENCE, "In short for a pod.")
    grace_period_seconds: int | None = setting(Whole(0), "Instead of the pod's own grace period, in seconds.")
    propagation_policy: str = setting(
        Choice(("Background", "Foreground", "Orphan")),
        "What becomes of its dependents; {default} by default, as with kubectl.",
        "Background",
    )

    @property
    def target(self) -> Target:
        if self.pod is not None:
            return _of_pod(self.pod)
        return Target() if self.kind is None or self.name is None else _of_kind(self.kind, self.namespace, self.name)

    def complaints(self) -> Iterator[Complaint]:
        if self.pod is None and (self.kind is None or self.name is None):
            yield Complaint((), "needs kind and name, or pod", alone=True)
        beside = {"kind": self.kind, "name": self.name, "namespace": self.namespace != "default"}
        for key in (key for key, value in beside.items() if value and self.pod is not None):
            yield Complaint((key,), "cannot stand beside pod", key=True)


@dataclass(frozen=True, kw_only=True)
class Patch:
    kind: str = setting(_Kind(), "Its kind, such as Pod.", REQUIRED)
    name: str = setting(NAME, "Its name.", REQUIRED)
    namespace: str = setting(NAME, "Its namespace; {default} by default.", "default")
    subresource: str | None = setting(Choice(("status", "resize")), "Patch this part of it.")
    merge: Mapping[str, Any] | None = setting(Free(), "A JSON merge patch.", choice=True)
    strategic: Mapping[str, Any] | None = setting(Free(), "A strategic merge patch.", choice=True)

    @property
    def target(self) -> Target:
        return _of_kind(self.kind, self.namespace, self.name)


@dataclass(frozen=True, kw_only=True)
class Rollout:
    to_revision: int | None = setting(Whole(1), "With undo: to which revision; to the one before by default.")
    restart: str | None = setting(ROLLOUT_REFERENCE, "Make all pods anew.", choice=True)
    undo: str | None = setting(ROLLOUT_REFERENCE, "Go back to a former template.", choice=True)
    pause: str | None = setting(ROLLOUT_REFERENCE, "Let changes of the template wait. Deployments only.", choice=True)
    resume: str | None = setting(ROLLOUT_REFERENCE, "Roll out what waits. Deployments only.", choice=True)

    @property
    def target(self) -> Target:
        kind, _, name = (chosen(self)[1] or "").partition("/")
        return Target(f"{kind}s", *full_name(name).split("/"))

    def complaints(self) -> Iterator[Complaint]:
        if self.to_revision is not None and chosen(self)[0] not in ("", "undo"):
            yield Complaint(("toRevision",), "only stands beside undo", key=True)


@dataclass(frozen=True, kw_only=True)
class _OfPod:
    pod: str = setting(POD_REFERENCE, "A pod: name, or namespace/name.", REQUIRED)

    @property
    def target(self) -> Target:
        return _of_pod(self.pod)


@dataclass(frozen=True, kw_only=True)
class Evict(_OfPod):
    grace_period_seconds: int | None = setting(Whole(0), "Instead of the pod's own grace period, in seconds.")


@dataclass(frozen=True, kw_only=True)
class Finish(_OfPod):
    exit_code: int = setting(Whole(0, 255), "{default} by default.", 0)


@dataclass(frozen=True, kw_only=True)
class Resize(_OfPod):
    containers: Mapping[str, Any] | None = setting(Free(), "By name: the requests and limits that they are to have.")
    init_containers: Mapping[str, Any] | None = setting(Free(), "The same of sidecars and init containers.")
    resources: Mapping[str, Any] | None = setting(Free(), "The requests and limits of the pod as a whole.")

    @property
    def spec(self) -> Mapping[str, Any]:
        """What a strategic patch of the subresource ``resize`` states."""
        listed = {"containers": self.containers, "initContainers": self.init_containers}
        found: dict[str, Any] = {
            key: [{"name": name, "resources": one} for name, one in stated.items()]
            for key, stated in listed.items()
            if stated is not None
        }
        return found if self.resources is None else {**found, "resources": self.resources}

    def complaints(self) -> Iterator[Complaint]:
        if not self.spec:
            hint = "state containers, initContainers or resources"
            yield Complaint((), "changes nothing", hint, key=True, alone=True)


@dataclass(frozen=True, kw_only=True)
class OfNode:
    """What is done to a node, and needs no more than its name."""

    node: str = setting(NAME, "A node.", REQUIRED)

    @property
    def target(self) -> Target:
        return Target("nodes", "", self.node)


@dataclass(frozen=True, kw_only=True)
class Taint(OfNode):
    key: str = setting(Text(), "Key of the taint.", REQUIRED)
    value: str | None = setting(Text(".*"), "Value of the taint.")
    effect: str = setting(Choice(placement.TAINT_EFFECTS), "Effect of the taint.", REQUIRED)

    def message(self) -> core_v1_pb2.Taint:
        return core_v1_pb2.Taint(key=self.key, value=self.value or None, effect=self.effect)


@dataclass(frozen=True, kw_only=True)
class Untaint(OfNode):
    key: str = setting(Text(), "Key of the taint.", REQUIRED)
    effect: str | None = setting(Choice(placement.TAINT_EFFECTS), "Only the taint of this effect.")

    def message(self) -> core_v1_pb2.Taint:
        return core_v1_pb2.Taint(key=self.key, effect=self.effect or "")


@dataclass(frozen=True, kw_only=True)
class Event:
    """Something that happens at a time."""

    at_ns: int = setting(DURATION, "When.", 0, required=True)
    acts_as: str | None = setting(
        Text(), "Who does it: one of users, or a user of the system; an administrator by default.", key="as"
    )
    create: Mapping[str, Any] | None = setting(
        Free(), "Create this object, those of a List, or those of a file: {file: path.yaml}.", choice=True
    )
    apply: Mapping[str, Any] | None = setting(
        Free(), "Create this object (or List, or file) or, if it exists, patch it to be so.", choice=True
    )
    delete: Delete | None = setting(Section(Delete), "Delete an object.", choice=True)
    patch: Patch | None = setting(Section(Patch, noun="patch"), "Patch an object.", choice=True)
    rollout: Rollout | None = setting(
        Section(Rollout, noun="action"),
        "As kubectl rollout: deployment/web, statefulset/db, daemonset/agent.",
        choice=True,
    )
    evict: Evict | None = setting(Section(Evict), "Evict a pod through the Eviction subresource.", choice=True)
    finish: Finish | None = setting(Section(Finish), "The containers of a pod end.", choice=True)
    resize: Resize | None = setting(
        Section(Resize), "Change the cpu and memory of a running pod in place.", choice=True
    )
    cordon: OfNode | None = setting(Section(OfNode), "Mark a node unschedulable.", choice=True)
    uncordon: OfNode | None = setting(Section(OfNode), "Mark it schedulable again.", choice=True)
    drain: drains.Options | None = setting(
        Section(drains.Options), "Cordon a node, or several, and evict their pods, as kubectl drain.", choice=True
    )
    taint: Taint | None = setting(
        Section(Taint), "Add a taint to a node, or replace the one of this key and effect.", choice=True
    )
    untaint: Untaint | None = setting(Section(Untaint), "Remove taints from a node.", choice=True)
    add_node: clusters.Nodes | None = setting(clusters.NODES, "A node and its kubelet come up.", choice=True)
    remove_node: OfNode | None = setting(Section(OfNode), "The kubelet stops and the Node is deleted.", choice=True)
    shutdown_node: OfNode | None = setting(
        Section(OfNode),
        "The machine is shut down, gracefully if its kubelet is configured so; the Node stays.",
        choice=True,
    )
    start_node: OfNode | None = setting(
        Section(OfNode), "A machine that is off boots, and its kubelet starts.", choice=True
    )
    index: int = 0
    """Its place in the list of events."""
    objects: tuple[Message, ...] = ()
    """``create``, ``apply``: one after the other."""
    nodes: tuple[clusters.Node, ...] = ()
    """``addNode``."""

    @cached_property
    def what(self) -> str:
        """The key of its action: ``create``, ``addNode``; empty where that was wrong."""
        return chosen(self)[0]

    @cached_property
    def target(self) -> Target:
        action = chosen(self)[1]
        if isinstance(action, drains.Options):
            return Target("nodes", "", action.node or "")
        return getattr(action, "target", Target())

    def complaints(self) -> Iterator[Complaint]:
        if self.acts_as is not None and self.what in OF_MACHINES:
            yield Complaint(("as",), f"{self.what} is no request: nobody's rights matter", key=True)
