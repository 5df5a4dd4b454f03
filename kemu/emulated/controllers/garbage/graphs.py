"""Who owns what: a graph of objects, built from watch events (``GraphBuilder`` of ``pkg/controller/garbagecollector``).

An owner that is named by a reference but was not seen yet is a *virtual* node, to be looked up at the API server.
Objects are looked at when an owner goes, when an owner waits for them, and when their references look wrong.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from kemu.emulated.objects.validation import finalizers
from kemu.messages.k8s.objects import KubernetesObject

ABSENT_OWNERS = 500
"""Owners that are remembered to be gone."""


class Identity(NamedTuple):
    """What a reference says of an object, and its namespace; ordered as ``referenceLessThan`` orders."""

    kind: str
    api_version: str
    namespace: str
    name: str
    uid: str

    def __str__(self) -> str:
        """As in the messages of events."""
        api_version, kind, name, uid, namespace = self.api_version, self.kind, self.name, self.uid, self.namespace
        return f"[{api_version}/{kind}, namespace: {namespace}, name: {name}, uid: {uid}]"


class Reference(NamedTuple):
    """An owner reference."""

    api_version: str
    kind: str
    name: str
    uid: str
    blocks: bool
    """``blockOwnerDeletion``."""

    def within(self, namespace: str) -> Identity:
        return Identity(self.kind, self.api_version, namespace, self.name, self.uid)

    def fits(self, identity: Identity) -> bool:
        """``ownerReferenceMatchesCoordinates``: whatever the namespaces."""
        return self.within(identity.namespace) == identity


@dataclass(eq=False, slots=True)
class Node:
    """An object. Equal only to itself."""

    identity: Identity
    owners: tuple[Reference, ...] = ()
    virtual: bool = False
    being_deleted: bool = False
    deleting_dependents: bool = False
    """It is being deleted in the foreground."""
    dependents: dict[str, Node] = field(default_factory=dict)
    """By UID."""

    def blocking_dependents(self) -> list[Node]:
        """Those without whose deletion this one cannot go."""
        uid = self.identity.uid
        return [node for node in self.dependents.values() if any(one.uid == uid and one.blocks for one in node.owners)]

    def copy_as(self, identity: Identity) -> Node:
        return Node(
            identity, self.owners, self.virtual, self.being_deleted, self.deleting_dependents, dict(self.dependents)
        )


class AbsentOwners:
    """The last owners that were found to be gone (``absentOwnerCache``)."""

    def __init__(self) -> None:
        self._known: dict[Identity, None] = {}

    def __contains__(self, owner: Identity) -> bool:
        if owner not in self._known:
            return False
        self.add(owner)  # it was used last
        return True

    def add(self, owner: Identity) -> None:
        self._known.pop(owner, None)
        self._known[owner] = None
        if len(self._known) > ABSENT_OWNERS:
            del self._known[next(iter(self._known))]


class Graph:
    """``look``: put a node into the queue of those that may have to be deleted; ``look_later``: the same, rate-limited;
    ``orphan``: of those whose dependents are set free; ``complain``: about a reference across namespaces."""

    def __init__(
        self,
        look: Callable[[Node], None],
        look_later: Callable[[Node], None],
        orphan: Callable[[Node], None],
        complain: Callable[[Node, Identity], None],
    ) -> None:
        self._look = look
        self._look_later = look_later
        self._orphan = orphan
        self._complain = complain
        self.nodes: dict[str, Node] = {}
        """By UID."""
        self.absent = AbsentOwners()

    # --- events of objects -------------------------------------------------------------------------------------------

    def put(self, api_version: str, kind: str, old: KubernetesObject | None, obj: KubernetesObject) -> None:
        """An object was added or changed (``processGraphChanges``). ``old``: what it was before."""
        metadata = obj.metadata
        identity = Identity(kind, api_version, metadata.namespace, metadata.name, metadata.uid)
        node = self.nodes.get(metadata.uid)
        owners = _references(obj)
        if node is None:
            deleted = metadata.HasField("deletionTimestamp")
            foreground = deleted and finalizers.FOREGROUND in metadata.finalizers
            node = Node(identity, owners, False, deleted, foreground)
            self.nodes[metadata.uid] = node
            self._add_to_owners(node, owners)
        else:
            if node.virtual:
                node = self._observe(node, identity)
            if owners != node.owners:
                self._change_owners(node, owners)
            if metadata.HasField("deletionTimestamp"):
                node.being_deleted = True
        self._note_deletion(old, obj, node)

    def remove(self, api_version: str, kind: str, obj: KubernetesObject) -> None:
        """An object is gone."""
        metadata = obj.metadata
        node = self.nodes.get(metadata.uid)
        if node is None:
            return
        identity = Identity(kind, api_version, metadata.namespace, metadata.name, metadata.uid)
        if node.virtual:
            node = self._observe(node, identity)
        self._forget(node, identity)

    def is_gone(self, identity: Identity) -> None:
        """The API server says that there is no such object (``enqueueVirtualDeleteEvent``)."""
        node = self.nodes.get(identity.uid)
        if node is None:
            return
        matching, others = _partition(node.dependents.values(), identity)
        if node.virtual and others:
            # Its dependents do not agree on what it is called: another of these names may be right.
            self._give_up(identity, matching)
            if node.identity == identity:
                alternative = _alternative(others, identity)
                if alternative is not None:
                    replacement = node.copy_as(alternative)
                    self.nodes[identity.uid] = replacement
                    self._look_later(replacement)
            return
        if not node.virtual and node.identity != identity:
            self._give_up(identity, matching)
            return
        self._forget(node, identity)

    def _give_up(self, identity: Identity, dependents: Sequence[Node]) -> None:
        if dependents:
            self.absent.add(identity)
        for dependent in dependents:
            self._look(dependent)

    def _observe(self, node: Node, identity: Identity) -> Node:
        """A virtual node was seen. Dependents whose references do not fit what was seen are looked at."""
        if identity != node.identity:
            _, others = _partition(node.dependents.values(), identity)
            for dependent in others:
                if identity.namespace and dependent.identity.namespace != identity.namespace:
                    self._report(dependent, identity.uid)
                self._look(dependent)
            node = node.copy_as(identity)
            self.nodes[identity.uid] = node
        node.virtual = False
        return node

    def _note_deletion(self, old: KubernetesObject | None, obj: KubernetesObject, node: Node) -> None:
        """``processTransitions``: what a deletion with one of the collector's finalizers begins."""
        if _begins(old, obj, finalizers.ORPHAN):
            self._orphan(node)
        elif _begins(old, obj, finalizers.FOREGROUND):
            node.deleting_dependents = True
            for dependent in node.dependents.values():
                self._look(dependent)
            self._look(node)

    def _forget(self, node: Node, identity: Identity) -> None:
        del self.nodes[node.identity.uid]
        self._remove_from_owners(node, node.owners)
        if node.dependents:
            self.absent.add(identity)
        for dependent in node.dependents.values():
            self._look(dependent)
        for reference in node.owners:
            owner = self.nodes.get(reference.uid)
            if owner is not None and owner.deleting_dependents:
                # Perhaps it was the last that it waited for.
                self._look(owner)

    # --- references --------------------------------------------------------------------------------------------------

    def _change_owners(self, node: Node, owners: tuple[Reference, ...]) -> None:
        before = {reference.uid: reference for reference in node.owners}
        now = {reference.uid for reference in owners}
        removed = [reference for reference in node.owners if reference.uid not in now]
        unblocked = [one for one in removed if one.blocks]
        unblocked += [one for one in owners if one.uid in before and before[one.uid].blocks and not one.blocks]
        for reference in unblocked:
            owner = self.nodes.get(reference.uid)
            if owner is not None:
                self._look(owner)
        node.owners = owners
        self._add_to_owners(node, [reference for reference in owners if reference.uid not in before])
        self._remove_from_owners(node, removed)

    def _add_to_owners(self, node: Node, owners: Iterable[Reference]) -> None:
        """``addDependentToOwners``."""
        is_suspicious = False
        namespace = node.identity.namespace
        for reference in owners:
            owner = self.nodes.get(reference.uid)
            if owner is None:
                owner = Node(reference.within(namespace), virtual=True)
                self.nodes[reference.uid] = owner
                owner.dependents[node.identity.uid] = node
                self._look(owner)
                continue
            owner.dependents[node.identity.uid] = node
            if is_suspicious:
                continue
            owners_namespace = owner.identity.namespace
            if owners_namespace and owners_namespace != namespace:
                if not owner.virtual:
                    self._report(node, reference.uid)
                is_suspicious = True
            elif not reference.fits(owner.identity) or (owner.virtual and owners_namespace != namespace):
                is_suspicious = True
        if is_suspicious:
            self._look(node)

    def _remove_from_owners(self, node: Node, owners: Iterable[Reference]) -> None:
        for reference in owners:
            owner = self.nodes.get(reference.uid)
            if owner is not None:
                owner.dependents.pop(node.identity.uid, None)

    def _report(self, node: Node, owner_uid: str) -> None:
        """``reportInvalidNamespaceOwnerRef``."""
        for reference in node.owners:
            if reference.uid == owner_uid:
                self._complain(node, reference.within(node.identity.namespace))
                return


def _references(obj: KubernetesObject) -> tuple[Reference, ...]:
    return tuple(
        Reference(one.apiVersion, one.kind, one.name, one.uid, one.blockOwnerDeletion)
        for one in obj.metadata.ownerReferences
    )


def _begins(old: KubernetesObject | None, new: KubernetesObject, finalizer: str) -> bool:
    """``deletionStartsWithFinalizer``."""
    return _is_deleted_with(new, finalizer) and (old is None or not _is_deleted_with(old, finalizer))


def _is_deleted_with(obj: KubernetesObject, finalizer: str) -> bool:
    metadata = obj.metadata
    return bool(metadata.HasField("deletionTimestamp")) and finalizer in metadata.finalizers


def _partition(dependents: Iterable[Node], owner: Identity) -> tuple[list[Node], list[Node]]:
    """Those with a reference that fits the owner, and those with one to its UID that does not
    (``partitionDependents``). With several references a dependent may be both."""
    matching, others = [], []
    for dependent in dependents:
        is_elsewhere = bool(owner.namespace) and owner.namespace != dependent.identity.namespace
        fits = [reference.fits(owner) for reference in dependent.owners if reference.uid == owner.uid]
        if not is_elsewhere and any(fits):
            matching.append(dependent)
        if is_elsewhere or not all(fits):
            others.append(dependent)
    return matching, others


def _alternative(dependents: Iterable[Node], absent: Identity) -> Identity | None:
    """Another identity that dependents give an owner: the next one in order after the absent one
    (``getAlternateOwnerIdentity``)."""
    found: dict[Identity, None] = {}
    for dependent in dependents:
        for reference in dependent.owners:
            if reference.uid != absent.uid:
                continue
            namespace = dependent.identity.namespace
            if reference.fits(absent) and absent.namespace in ("", namespace):
                continue
            identity = reference.within(namespace)
            if not absent.namespace and identity[:2] == absent[:2]:
                identity = reference.within("")  # of this kind there are no namespaces
            found[identity] = None
    found.pop(absent, None)
    following = [identity for identity in found if identity > absent]
    return min(following or found, default=None)
