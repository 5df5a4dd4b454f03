"""Run logs made by hand, as the actors would have written them."""

from __future__ import annotations

import zlib
from typing import Any

from kemu.emulated.objects.wire import wires
from kemu.lab.checks import registry
from kemu.lab.checks.limits import Limits
from kemu.lab.checks.results import Result
from kemu.messages.k8s import core_v1_pb2
from kemu.runtime.runlog.frames import Entry

SECOND = 1_000_000_000


class Log:
    """Builds events; the store's revisions count up by themselves."""

    def __init__(self) -> None:
        self.events: list[Entry] = []
        self.revision = 0
        self.pods: dict[str, core_v1_pb2.Pod] = {}
        self.wires: dict[tuple[str, int], bytes] = {}
        """The bytes that clients get, by key and revision; of what was deleted, its last state."""
        self._values: dict[str, bytes] = {}
        self.values: dict[str, tuple[int, bytes]] = {}
        """By key: revision and value of what exists."""
        self.written: dict[int, tuple[str, bytes]] = {}
        """By revision: key and value, of a deletion the last one."""

    def add(self, seconds: float, actor: str, kind: str, **data: Any) -> None:
        self.events.append(Entry(round(seconds * SECOND), actor, kind, data))

    def txn(self, seconds: float, key: str, value: bytes | None) -> int:
        self.revision += 1
        op = 0 if value is not None else 1
        self.add(seconds, "store", "store.txn", rev=self.revision, changes=[[op, key, value, 1, 1]])
        shown = value if value is not None else self._values[key]
        self.wires[key, self.revision] = shown + wires.version_suffix(self.revision)
        self._values[key] = shown
        self.written[self.revision] = (key, shown)
        if value is not None:
            self.values[key] = (self.revision, value)
        else:
            del self.values[key]
        return self.revision

    def node(self, seconds: float, name: str, cpu: str = "10", pods: str = "110") -> int:
        node = core_v1_pb2.Node()
        node.metadata.name = name
        node.status.allocatable["cpu"].string = cpu
        node.status.allocatable["pods"].string = pods
        return self.txn(seconds, f"/registry/nodes/{name}", node.SerializeToString(deterministic=True))

    def node_status(self, seconds: float, name: str, conditions: dict[str, str], taints: list[tuple[str, str]]) -> int:
        """Change a node: conditions by type, taints as key and effect."""
        node = core_v1_pb2.Node()
        node.metadata.name = name
        for condition_type, status in conditions.items():
            node.status.conditions.add(type=condition_type, status=status)
        for key, effect in taints:
            node.spec.taints.add(key=key, effect=effect)
        return self.txn(seconds, f"/registry/nodes/{name}", node.SerializeToString(deterministic=True))

    def pod(self, seconds: float, name: str, **fields: Any) -> int:
        """Create or change a pod: cpu, priority, node, phase, reason, ready, nominated, deleting, scheduler, labels,
        and the reason of its condition DisruptionTarget (disruption)."""
        pod = self.pods.setdefault(name, core_v1_pb2.Pod())
        if not pod.metadata.name:
            pod.metadata.name, pod.metadata.namespace = name, "default"
            pod.metadata.uid = fields.get("uid", f"uid-{name}")
            pod.spec.containers.add().name = "main"
            pod.spec.schedulerName = "default-scheduler"
        if "cpu" in fields:
            pod.spec.containers[0].resources.requests["cpu"].string = fields["cpu"]
        if "priority" in fields:
            pod.spec.priority = fields["priority"]
        if "node" in fields:
            pod.spec.nodeName = fields["node"]
        if "scheduler" in fields:
            pod.spec.schedulerName = fields["scheduler"]
        if "phase" in fields:
            pod.status.phase = fields["phase"]
        if "reason" in fields:
            pod.status.reason = fields["reason"]
        if "disruption" in fields:
            pod.status.conditions.add(type="DisruptionTarget", status="True", reason=fields["disruption"])
        if "ready" in fields:
            del pod.status.conditions[:]
            pod.status.conditions.add(type="Ready", status=str(fields["ready"]))
        if "nominated" in fields:
            pod.status.nominatedNodeName = fields["nominated"]
        if "deleting" in fields:
            pod.metadata.deletionTimestamp.seconds = fields["deleting"]
        for key, value in fields.get("labels", {}).items():
            pod.metadata.labels[key] = value
        return self.txn(seconds, f"/registry/pods/default/{name}", pod.SerializeToString(deterministic=True))

    def gone(self, seconds: float, name: str) -> int:
        del self.pods[name]
        return self.txn(seconds, f"/registry/pods/default/{name}", None)

    def admit(self, seconds: float, name: str, node: str, reason: str = "", seen: float = 0) -> None:
        self.add(
            seconds, f"kubelet/{node}", "kubelet.admit",
            pod=f"default/{name}", uid=f"uid-{name}", node=node, start=round(seen * 1e9), ok=not reason,
            reason=reason, message=reason,
        )  # fmt: skip

    def terminated(self, seconds: float, name: str, node: str) -> None:
        self.add(seconds, f"kubelet/{node}", "kubelet.terminated", pod=f"default/{name}", uid=f"uid-{name}", node=node,
                 start=0, forced=False)  # fmt: skip

    def victim(
        self, seconds: float, name: str, by: str, node: str, scheduler: str = "scheduler/default-scheduler/0"
    ) -> None:
        self.add(
            seconds, scheduler, "sched.victim",
            pod=f"default/{name}", uid=f"uid-{name}", by=f"default/{by}", by_uid=f"uid-{by}", node=node, start=0,
            ok=True,
        )  # fmt: skip

    def listed(self, seconds: float, actor: str, revision: int, *held: tuple[str, int], **selectors: str) -> None:
        """``held``: names of pods in the list, with the revisions of their last changes."""
        data = {"watch": "pods#1", "resource": "pods", "namespace": "", "label_selector": "", "field_selector": ""}
        digest = sum(self.digest(name, at) for name, at in held) & 0xFFFFFFFF
        self.add(
            seconds, actor, "watch.listed", **{**data, **selectors}, rev=revision, objects=len(held), digest=digest
        )

    def heard(self, seconds: float, actor: str, *events: str) -> None:
        """Events of pods as ``A1:a``: the type's letter, the revision, the name of the pod; ``B7`` is a bookmark."""
        revisions, types, digests = [], "", []
        for event in events:
            number, _, name = event[1:].partition(":")
            revisions.append(int(number))
            types += event[0]
            digests.append(self.digest(name, int(number)) if name else 0)
        self.add(seconds, actor, "watch.events", watch="pods#1", revs=revisions, types=types, digests=digests)

    def digest(self, name: str, revision: int) -> int:
        """Of what the watches of a pod deliver."""
        return zlib.crc32(self.wires.get((f"/registry/pods/default/{name}", revision), b"?"))

    def ended(self, seconds: float, reason: str = "deadline", **more: Any) -> None:
        self.add(seconds, "operator", "run.ended", reason=reason, **more)

    def acked(self, seconds: float, actor: str, *revisions: int, took: float = 0) -> None:
        """What the API server answers to the writes of those revisions."""
        acks = []
        for revision in revisions:
            key, value = self.written[revision]
            uid = core_v1_pb2.Pod.FromString(value).metadata.uid
            acks.append([round(took * SECOND), revision, key, uid, wires.digest(value, revision)])
        self.add(seconds, actor, "client.acked", server="apiserver/0", sent=round(seconds * SECOND), acks=acks)

    def got(self, seconds: float, actor: str, name: str, revision: int, took: float = 0, **data: Any) -> None:
        """The pod as of that revision; 0: there is none."""
        digest = wires.digest(self.written[revision][1], revision) if revision else 0
        content = {"server": "apiserver/0", "resource": "pods", "namespace": "default", "name": name, "version": ""}
        content |= {"took": round(took * SECOND), "rev": revision, "digest": digest}
        self.add(seconds, actor, "client.got", **{**content, **data})

    def list_pods(self, seconds: float, actor: str, revision: int, took: float = 0, **data: Any) -> None:
        """The pods as they are now, as of that revision."""
        digest = 0
        pods = sorted(item for item in self.values.items() if item[0].startswith("/registry/pods/"))
        for _, (version, value) in pods:
            digest += wires.digest(value, version)
        content = {"server": "apiserver/0", "resource": "pods", "namespace": "", "label_selector": ""}
        content |= {"field_selector": "", "version": "", "limit": 0, "continue": "", "took": round(took * SECOND)}
        content |= {"rev": revision, "count": len(pods), "next": "", "digest": digest & 0xFFFFFFFF}
        self.add(seconds, actor, "client.listed", **{**content, **data})

    def state(self, seconds: float, kind: str = "store.state", **data: Any) -> None:
        """What a store with these keys says."""
        total = sum(
            wires.entry_digest(key.encode(), wires.digest(value, revision))
            for key, (revision, value) in self.values.items()
        )
        content = {"rev": self.revision, "keys": len(self.values), "digest": total & wires.SUM_MASK}
        self.add(seconds, "store", kind, **{**content, **data})

    def recovered(self, seconds: float, revision: int, before: dict[str, tuple[int, bytes]] | None = None) -> None:
        """The store comes back with that revision, and with the keys that it had ``before``: now, if that is None."""
        self.revision = revision
        if before is not None:
            self.values = dict(before)
        self.state(seconds, "store.recovered", replayed=revision, torn_bytes=0)


def judged(log: Log, check: str, **limits: Any) -> Result:
    """What a check says of the log."""
    _, results = registry.judge(log.events, within=Limits(**limits))
    return next(result for result in results if result.id == check)
