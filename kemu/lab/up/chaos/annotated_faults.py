"""Faults that objects carry: the annotation ``kemu.dev/chaos`` on Pods, Nodes, Leases and ConfigMaps.

Its value is a fault as in a scenario, in YAML. It begins when the annotation comes, and ends when the annotation goes
or changes, or with the object; or by itself, with ``for``. What it concerns may be left out where the object says it:
the kubelet or machine of a Node, the object itself for faults that clients meet.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import yaml

from kemu.emulated.client import clients, informers
from kemu.emulated.objects import resources
from kemu.emulated.objects.conversion import yaml_texts
from kemu.errors import KemuError
from kemu.messages.k8s.objects import KubernetesObject
from kemu.runtime.env import Env
from kemu.runtime.faults.kinds import CLIENT_FAULTS, KINDS
from kemu.runtime.runlog.events import FaultRefused

ANNOTATION = "kemu.dev/chaos"
KINDS_THAT_CARRY = ("pods", "nodes", "leases", "configmaps")

_NODE_LEASES = "kube-node-lease"


class AnnotatedFaults:
    """Watches the objects of a cluster from when it is made."""

    def __init__(
        self,
        env: Env,
        client: clients.Client,
        strike: Callable[[Mapping[str, Any], str], None],
        heal: Callable[[str], None],
    ) -> None:
        """``strike``: has a fault of a form and an id begin, and raises KemuError for its mistakes. ``heal``: has one
        end, unless it has ended already."""
        self._env = env
        self._strike = strike
        self._heal = heal
        self._in_force: dict[str, tuple[str, str]] = {}
        """What an object carries, and the id of that fault, by ``resource/namespace/name``."""
        self._count = 0
        for plural in KINDS_THAT_CARRY:
            handler = informers.Callbacks(self._changed, lambda old, new: self._changed(new), self._gone)
            informers.Informer(client, plural, handler=handler, compact=True).start()

    def _changed(self, found: KubernetesObject) -> None:
        key = _key(found)
        text = found.metadata.annotations.get(ANNOTATION, "")
        before, fault_id = self._in_force.get(key, ("", ""))
        if text == before:
            return
        if fault_id:
            self._heal(fault_id)
        self._in_force.pop(key, None)
        if not text:
            return
        self._count += 1
        fault_id = f"annotated-{self._count}"
        self._in_force[key] = text, fault_id
        try:
            self._strike(fault_of(found, text), fault_id)
        except KemuError as error:
            self._env.log(FaultRefused(object_key=key, message=str(error)))
            self._in_force[key] = text, ""

    def _gone(self, old: KubernetesObject) -> None:
        _, fault_id = self._in_force.pop(_key(old), ("", ""))
        if fault_id:
            self._heal(fault_id)


def fault_of(annotated: KubernetesObject, text: str) -> dict[str, Any]:
    """The fault that an object carries, with whom it concerns. Raises KemuError."""
    try:
        found: Any = yaml_texts.safe_load(text)
    except yaml.YAMLError as error:
        raise KemuError(f"{ANNOTATION}: {error}") from None
    kind = next((KINDS[name] for name in found if name in KINDS), None) if isinstance(found, dict) else None
    if kind is None:
        raise KemuError(f"{ANNOTATION}: {text!r} is no fault; write it as {{refuse: {{code: 409}}, for: 30s}}")
    detail = found[kind.name] if isinstance(found[kind.name], dict) else {}
    return {**found, kind.name: {**_concerned(annotated, kind.name, detail), **detail}}


def _concerned(annotated: KubernetesObject, what: str, detail: Mapping[str, Any]) -> dict[str, Any]:
    plural, metadata = resources.of(annotated).plural, annotated.metadata
    if what in CLIENT_FAULTS:
        if "resource" in detail or "name" in detail:
            return {}
        # Patterns, as the subresources belong to it, too.
        place = {"namespace": metadata.namespace} if metadata.namespace else {}
        return {"resource": [plural, f"{plural}/*"], "name": metadata.name, **place}
    node = metadata.name if plural == "nodes" or metadata.namespace == _NODE_LEASES else ""
    if not node:
        return {}
    if what == "crash":
        return {} if {"actor", "node", "zone"} & detail.keys() else {"node": node}
    wanted = {one.name for one in KINDS[what].parameters if one.required} - detail.keys()
    return {"actor": f"kubelet/{node}"} if "actor" in wanted else {}


def _key(found: KubernetesObject) -> str:
    place = f"{found.metadata.namespace}/" if found.metadata.namespace else ""
    return f"{resources.of(found).plural}/{place}{found.metadata.name}"
