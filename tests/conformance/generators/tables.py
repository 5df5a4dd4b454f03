"""Objects of every kind to print, random but full of what printers look at."""

from __future__ import annotations

import base64
import datetime as dt
import random
from typing import Any

from google.protobuf.descriptor import FieldDescriptor

from kemu.emulated.objects import resources
from kemu.emulated.objects.conversion import descriptors

FAMILIES = ("tables",)
NOW = dt.datetime(2000, 1, 1, tzinfo=dt.UTC)
"""The time that the recorder's clock shows."""

WITHOUT_PRINTER = (
    "CustomResourceDefinition", "LimitRange", "Role", "ClusterRole", "APIService", "Workload", "PodGroup",
)  # fmt: skip
"""APIServices are printed by kube-aggregator; the last two are of an alpha version, which is not listed."""
KINDS = tuple(row for row in resources.RESOURCES if row.kind not in WITHOUT_PRINTER)
PODS_SHARE = 0.2

_AGES_S = (-3, -2, -1, 0, 1, 59, 119, 120, 121, 300, 599, 600, 3661, 10_800, 28_799, 28_860, 86_400, 172_800, 180_000)
_DAY_S = 86_400
_PLAIN = {"Quantity", "IntOrString", "Time", "MicroTime", "RawExtension"}
_LEFT_OUT = {
    "managedFields",
    "ownerReferences",
    "nodeSelectorTerms",
    "finalizers",
    "affinity",
    "volumes",
    "sharedCounters",
}
_DEEPEST = 6

WORDS: dict[str, tuple[str, ...]] = {
    "ObjectMeta.name": ("a", "web-0", "x.y"),
    "ObjectMeta.namespace": ("default", "kube-system"),
    "Container.name": ("a", "b", "c"),
    "ContainerStatus.name": ("a", "b", "c"),
    "PodStatus.phase": ("Pending", "Running", "Succeeded", "Failed", "Unknown", ""),
    "PodStatus.reason": ("", "", "Evicted", "NodeLost", "NodeAffinity"),
    "PodCondition.type": ("Ready", "Initialized", "PodScheduled", "example.com/gate"),
    "PodReadinessGate.conditionType": ("example.com/gate", "example.com/other"),
    "PodCondition.reason": ("", "SchedulingGated", "Unschedulable"),
    "Container.restartPolicy": ("Always", "Always", "Never", "OnFailure"),
    "ContainerStateWaiting.reason": ("", "PodInitializing", "CrashLoopBackOff", "ContainerCreating"),
    "ContainerStateTerminated.reason": ("", "Completed", "Error", "OOMKilled"),
    "NodeCondition.type": ("Ready", "MemoryPressure"),
    "NodeAddress.type": ("InternalIP", "ExternalIP", "Hostname"),
    "ServiceSpec.type": ("ClusterIP", "NodePort", "LoadBalancer", "ExternalName", "Other"),
    "ServicePort.protocol": ("TCP", "UDP"),
    "JobCondition.type": ("Complete", "Failed", "Suspended", "FailureTarget", "SuccessCriteriaMet"),
    "LabelSelectorRequirement.operator": ("In", "NotIn", "Exists", "DoesNotExist", "Like"),
    "LabelSelectorRequirement.key": ("app", "tier", "zone"),
    "Subject.kind": ("User", "Group", "ServiceAccount"),
    "status": ("True", "False", "Unknown"),
    "accessModes": ("ReadWriteOnce", "ReadOnlyMany", "ReadWriteMany", "ReadWriteOncePod"),
    "MetricSpec.type": ("Resource", "Pods", "Object", "External", "ContainerResource"),
    "message": ("", "all is well", "  two\nlines \u2003"),
    "apiGroup": ("", "example.com"),
    "apiVersion": ("v1", "apps/v1"),
    "kind": ("Pod", "Deployment", "Node"),
    "ip": ("10.0.0.1", "fd00::1", ""),
    "volumeMode": ("Filesystem", "Block"),
    "volumeBindingMode": ("Immediate", "WaitForFirstConsumer"),
    "reclaimPolicy": ("Delete", "Retain"),
    "preemptionPolicy": ("Never", "PreemptLowerPriority"),
    "timeZone": ("Etc/UTC", "Europe/Berlin"),
}
"""By field of a message, or by field."""

KEYS: dict[str, tuple[str, ...]] = {
    "labels": ("app", "node-role.kubernetes.io/control-plane", "node-role.kubernetes.io/", "kubernetes.io/role", "z"),
    "annotations": (
        "volume.beta.kubernetes.io/storage-class",
        "storageclass.kubernetes.io/is-default-class",
        "ingressclass.kubernetes.io/is-default-class",
        "note",
    ),
    "hard": ("limits.cpu", "requests.cpu", "pods", "limits.memory", "count/jobs.batch"),
    "used": ("limits.cpu", "requests.cpu", "pods", "limits.memory", "count/jobs.batch"),
    "capacity": ("storage", "cpu"),
}
QUANTITIES = ("1", "500m", "1.5Gi", "1024Mi", "1e3", "0", "2000", "0.5")


def case(family: str, seed: int, number: int) -> dict[str, Any]:
    rng = random.Random(f"{family} {seed} {number}")
    pod = resources.BY_PLURAL["pods"]
    row = pod if rng.random() < PODS_SHARE else KINDS[number % len(KINDS)]
    made = _Maker(rng).message(row.message.DESCRIPTOR, 0)
    made.setdefault("metadata", {}).setdefault("name", "a")
    return {"object": {"apiVersion": row.api_version, "kind": row.kind, **made}}


class _Maker:
    def __init__(self, rng: random.Random) -> None:
        self._rng = rng

    def message(self, descriptor: Any, depth: int) -> Any:
        plain = self._plain(descriptor.name)
        if plain is not None:
            return plain
        made: dict[str, Any] = {}
        for field in descriptor.fields:
            likely = 0.85 if depth < 2 else 0.6
            is_due = self._rng.random() < likely and depth < _DEEPEST and field.name not in _LEFT_OUT
            if descriptors.is_inline(field):
                if is_due:
                    made.update(self.message(field.message_type, depth))
            elif is_due:
                made[field.name] = self._value(field, depth)
        if descriptor.name in ("MetricSpec", "MetricStatus"):
            self._complete(made, descriptor, depth)
        return made

    def _complete(self, made: dict[str, Any], descriptor: Any, depth: int) -> None:
        """A metric without its source makes the real printer panic; validation refuses it."""
        type_ = made["type"] = self._rng.choice(WORDS["MetricSpec.type"])
        name = type_[:1].lower() + type_[1:]
        if name not in made and descriptor.name == "MetricSpec":
            made[name] = self.message(descriptor.fields_by_name[name].message_type, depth + 1)

    def _plain(self, name: str) -> Any:
        rng = self._rng
        if name == "Quantity":
            return rng.choice(QUANTITIES)
        if name == "IntOrString":
            return rng.choice((1, 0, "50%", "100%"))
        if name in ("Time", "MicroTime"):
            age_s = rng.choice((rng.choice(_AGES_S), rng.randrange(200), rng.randrange(_DAY_S * 3000)))
            text = (NOW - dt.timedelta(seconds=age_s)).strftime("%Y-%m-%dT%H:%M:%S")
            return f"{text}.250000Z" if name == "MicroTime" else f"{text}Z"
        if name == "ExtraValue":
            return rng.sample(("one", "two", "three"), rng.randrange(4))
        return {"a": 1} if name == "RawExtension" else None

    def _value(self, field: FieldDescriptor, depth: int) -> Any:
        of_map = descriptors.map_value(field)
        if of_map is not None:
            keys = KEYS.get(field.name, ("a", "b", "c"))
            chosen = self._rng.sample(keys, self._rng.randrange(1, min(4, len(keys)) + 1))
            return {key: self._one(of_map, depth, field.name) for key in chosen}
        if field.is_repeated:
            return [self._one(field, depth) for _ in range(self._rng.choice((1, 1, 2, 3, 5)))]
        return self._one(field, depth)

    def _one(self, field: FieldDescriptor, depth: int, of: str = "") -> Any:
        rng = self._rng
        if field.message_type is not None:
            return self.message(field.message_type, depth + 1)
        if field.type == FieldDescriptor.TYPE_BYTES:
            return base64.b64encode(b"data").decode()
        if field.cpp_type == FieldDescriptor.CPPTYPE_BOOL:
            return rng.random() < 0.5
        if field.cpp_type != FieldDescriptor.CPPTYPE_STRING:
            return rng.choice((0, 0, 1, 2, 3, 80, 137))
        words = WORDS.get(f"{field.containing_type.name}.{field.name}") or WORDS.get(field.name)
        if of == "annotations":
            words = ("true", "false", "fast")
        return rng.choice(words or ("", "one", "two", "three"))
