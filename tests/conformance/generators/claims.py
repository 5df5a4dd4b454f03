"""The controllers of devices over time: ``claims`` for that of ResourceClaims, ``device-taints`` for evictions.

Pods come with claims of their own or from templates, are bound, end and go; a scheduler allocates and reserves; drivers
taint devices. ``@UID/ENTRY`` in the place of a claim's name is the one that was generated last for that entry of the
pod; ``@12`` in the place of a time is second 12.
"""

from __future__ import annotations

import random
from typing import Any

Json = dict[str, Any]

FAMILIES = ("claims", "device-taints")
DRIVER, FINALIZER = "gpu.example.com", "resource.kubernetes.io/delete-protection"
ENTRIES = ("g", "h")
NODES = ("n1", "n2")
DEVICES = ("gpu-0", "gpu-1", "gpu-2")
HORIZON_MS = 60_000


def case(family: str, seed: int, number: int) -> Json:
    rng = random.Random(f"{family} {seed} {number}")
    maker = (_Taints if family == "device-taints" else _Claims)(rng)
    maker.make()
    maker.events.sort(key=lambda one: one["atMs"])
    return {
        "id": f"{family}-s{seed}-{number:05}",
        "family": family,
        "horizonMs": HORIZON_MS,
        "objects": maker.objects,
        "events": maker.events,
    }


class _Maker:
    def __init__(self, rng: random.Random) -> None:
        self.rng = rng
        self.objects: list[Json] = []
        self.events: list[Json] = []
        self.at_ms = 1037  # no event comes in the instant of an eviction, which has whole seconds
        self.uids: dict[str, str] = {}
        self.made = 0

    def chance(self, probability: float) -> bool:
        return self.rng.random() < probability

    def later(self) -> int:
        self.at_ms += self.rng.choice((100, 500, 1000, 1700, 3000))
        return self.at_ms

    def put(self, kind: str, obj: Json) -> None:
        self.objects.append({"kind": kind, "object": obj})

    def happen(self, do: str, kind: str, name: str = "", **more: Any) -> None:
        self.events.append({"atMs": self.later(), "do": do, "kind": kind, "name": name, **more})

    def meta(self, name: str, **more: Any) -> Json:
        self.made += 1
        return {"name": name, "namespace": "default", "uid": f"uid-{name}-{self.made}", **more}

    def pod(self, name: str, entries: list[Json]) -> Json:
        metadata = self.meta(name)
        self.uids[name] = metadata["uid"]
        spec: Json = {"containers": [{"name": "c", "image": "x"}], "resourceClaims": entries}
        spec["terminationGracePeriodSeconds"] = 30
        if self.chance(0.25):
            spec["nodeName"] = self.rng.choice(NODES)
        return {"metadata": metadata, "spec": spec, "status": {"phase": "Pending"}}

    def allocation(self, node: str, tolerations: list[Json] | None = None) -> Json:
        devices = self.rng.sample(DEVICES, self.rng.choice((1, 1, 1, 2)))
        results = [
            {"request": "r", "driver": DRIVER, "pool": node, "device": device}
            | ({"tolerations": tolerations} if tolerations else {})
            for device in devices
        ]
        return {"devices": {"results": results}}

    def consumer(self, pod: str, uid: str = "") -> Json:
        return {"resource": "pods", "name": pod, "uid": uid or self.uids[pod]}

    def claim(self, name: str, **status: Any) -> Json:
        exactly = {"deviceClassName": "gpu", "allocationMode": "ExactCount", "count": 1}
        spec = {"devices": {"requests": [{"name": "r", "exactly": exactly}]}}
        metadata = self.meta(name, **({"finalizers": [FINALIZER]} if "allocation" in status else {}))
        return {"metadata": metadata, "spec": spec, "status": status}


class _Claims(_Maker):
    def make(self) -> None:
        rng = self.rng
        # Where one of several generated claims of a pod is generated anew, the controller writes for ever: what it
        # applies for one takes the other's away.
        self.most = rng.choice((1, 1, 2))
        # It reserves a claim that others use for a pod that has ended, too, and takes it off again, for ever.
        self.ends = self.chance(0.6)
        for name in ("t1", "t2"):
            if self.chance(0.8):
                self.put("ResourceClaimTemplate", self.template(name))
        for name in ("c1", "c2"):
            if self.chance(0.7):
                self.put("ResourceClaim", self.claim(name))
        self.pods = [f"p{number}" for number in range(1, rng.randrange(2, 5))]
        for name in self.pods:
            pod = self.pod(name, self.entries(name))
            if self.chance(0.4):
                self.put("Pod", pod)
            else:
                self.happen("create", "Pod", object=pod)
        for _ in range(rng.randrange(6, 16)):
            self.change()

    def template(self, name: str) -> Json:
        spec: Json = {"spec": {"devices": {"requests": [{"name": "r", "exactly": {"deviceClassName": "gpu"}}]}}}
        if self.chance(0.3):
            spec["metadata"] = {"labels": {"of": name}, "annotations": {"note": name}}
        return {"metadata": self.meta(name), "spec": spec}

    def entries(self, pod: str) -> list[Json]:
        found = []
        for name in self.rng.sample(ENTRIES, self.rng.choice((1, 1, self.most))):
            if self.chance(0.6):
                found.append({"name": name, "resourceClaimTemplateName": self.rng.choice(("t1", "t1", "t2"))})
            else:
                claim = f"c{pod[1:]}" if self.ends else self.rng.choice(("c1", "c2"))
                found.append({"name": name, "resourceClaimName": claim})
        return found

    def claim_of(self, pod: str) -> str:
        generated = f"@{self.uids.get(pod, pod)}/{self.rng.choice(ENTRIES)}"
        return self.rng.choice((generated, generated, f"c{pod[1:]}"))

    def change(self) -> None:
        rng = self.rng
        pod = rng.choice(self.pods)
        claim = self.claim_of(pod if self.ends else rng.choice(self.pods))
        match rng.choice(("allocate", "allocate", "bind", "phase", "phase", "delete", "remove", "again", "odd", "claim",
                          "template", "label")):  # fmt: skip
            case "allocate":
                consumers = [self.consumer(pod)]
                if self.chance(0.2) and not self.ends:
                    consumers.append(self.consumer(rng.choice(self.pods)))
                if self.chance(0.1) and not self.ends:
                    consumers.append({"apiGroup": "x.example.com", "resource": "things", "name": "a", "uid": "u"})
                if self.chance(0.15):
                    consumers = []
                distinct = list({one["uid"]: one for one in consumers}.values())
                status: Json = {"allocation": self.allocation(rng.choice(NODES))}
                if distinct:
                    status["reservedFor"] = distinct
                patch = {"metadata": {"finalizers": [FINALIZER]}, "status": status}
                self.happen("patch", "ResourceClaim", claim, patch=patch)
            case "bind":
                self.happen("patch", "Pod", pod, patch={"spec": {"nodeName": rng.choice(NODES)}})
            case "phase":
                phase = rng.choice(("Running", "Succeeded", "Failed") if self.ends else ("Running",))
                self.happen("patch", "Pod", pod, patch={"status": {"phase": phase}})
            case "delete":
                self.happen("delete", "Pod", pod)
            case "remove":
                self.happen("remove", "Pod", pod)
            case "again":
                self.happen("create", "Pod", object=self.pod(pod, self.entries(pod)))
            case "odd":
                stranger = {"resource": "pods", "name": pod, "uid": "uid-of-nobody"}
                status = {"allocation": self.allocation(rng.choice(NODES)), "reservedFor": [stranger]}
                patch = {"metadata": {"finalizers": [FINALIZER]}, "status": status}
                self.happen("patch", "ResourceClaim", claim, patch=patch)
            case "claim":
                if claim.startswith("@"):
                    if self.most == 1:
                        self.happen("delete", "ResourceClaim", claim)
                elif self.chance(0.5):
                    self.happen("delete", "ResourceClaim", claim)
                else:
                    self.happen("create", "ResourceClaim", object=self.claim(claim))
            case "template":
                name = rng.choice(("t1", "t2"))
                if self.chance(0.6):
                    self.happen("create", "ResourceClaimTemplate", object=self.template(name))
                else:
                    self.happen("delete", "ResourceClaimTemplate", name)
            case "label":
                self.happen("patch", "ResourceClaim", claim, patch={"metadata": {"labels": {"note": "x"}}})


class _Taints(_Maker):
    def make(self) -> None:
        rng = self.rng
        self.slices = {node: self.slice(node) for node in NODES}
        for one in self.slices.values():
            self.put("ResourceSlice", one)
        self.pods = []
        self.claims = []
        for number in range(1, rng.randrange(3, 6)):
            pod, node = f"p{number}", rng.choice(NODES)
            entries = []
            uid = f"uid-pod-{number}"
            for entry in rng.sample(ENTRIES, rng.choice((1, 1, 2))):
                name = f"c{number}{entry}"
                entries.append({"name": entry, "resourceClaimName": name})
                status: Json = {}
                if self.chance(0.85):
                    status["allocation"] = self.allocation(node, self.tolerations())
                    if self.chance(0.9):
                        status["reservedFor"] = [self.consumer(pod, uid)]
                self.claims.append(name)
                self.put("ResourceClaim", self.claim(name, **status))
            one = self.pod(pod, entries)
            one["metadata"]["uid"] = self.uids[pod] = uid
            if self.chance(0.8):
                one["spec"]["nodeName"] = node
            self.pods.append(pod)
            self.put("Pod", one)
        for _ in range(rng.randrange(5, 14)):
            self.change()

    def slice(self, node: str, generation: int = 1) -> Json:
        devices = [{"name": device} | self.taints() for device in DEVICES if self.chance(0.9)]
        metadata = self.meta(f"slice-{node}-{generation}")
        del metadata["namespace"]
        pool = {"name": node, "generation": generation, "resourceSliceCount": 1}
        return {"metadata": metadata, "spec": {"driver": DRIVER, "nodeName": node, "pool": pool, "devices": devices}}

    def taints(self) -> Json:
        if self.chance(0.75):
            return {}
        return {
            "taints": [
                {
                    "key": self.rng.choice(("bad", "hot")),
                    "value": self.rng.choice(("", "x")),
                    "effect": self.rng.choice(("NoExecute", "NoExecute", "NoSchedule", "None")),
                    "timeAdded": f"@{self.rng.choice((0, self.at_ms // 1000, 1 + self.at_ms // 1000))}",
                }
                for _ in range(self.rng.choice((1, 1, 2)))
            ]
        }

    def tolerations(self) -> list[Json]:
        if self.chance(0.5):
            return []
        found = []
        for _ in range(self.rng.choice((1, 1, 2))):
            one: Json = {"operator": self.rng.choice(("Exists", "Equal"))}
            if self.chance(0.8):
                one["effect"] = self.rng.choice(("NoExecute", "NoExecute", "NoSchedule"))
            if one["operator"] == "Equal" or self.chance(0.5):
                one["key"] = self.rng.choice(("bad", "hot"))
            if one["operator"] == "Equal" and self.chance(0.5):
                one["value"] = "x"
            if self.chance(0.6):
                one["tolerationSeconds"] = self.rng.choice((-5, 0, 3, 10, 300))
            found.append(one)
        return found

    def change(self) -> None:
        rng = self.rng
        pod, claim, node = rng.choice(self.pods), rng.choice(self.claims), rng.choice(NODES)
        match rng.choice(("taint", "taint", "taint", "taint", "generation", "lose", "bind", "reserve", "free", "remove",
                          "delete", "claim")):  # fmt: skip
            case "taint":
                self.at_ms += 1000
                devices = [{"name": device} | self.taints() for device in DEVICES if self.chance(0.95)]
                self.happen("patch", "ResourceSlice", f"slice-{node}-1", patch={"spec": {"devices": devices}})
            case "generation":
                self.happen("create", "ResourceSlice", object=self.slice(node, 2))
            case "lose":
                self.happen("remove", "ResourceSlice", f"slice-{node}-{rng.choice((1, 2))}")
            case "bind":
                self.happen("patch", "Pod", pod, patch={"spec": {"nodeName": node}})
            case "reserve":
                self.happen("patch", "ResourceClaim", claim, patch={"status": {"reservedFor": [self.consumer(pod)]}})
            case "free":
                self.happen("patch", "ResourceClaim", claim, patch={"status": None})
            case "remove":
                self.happen("remove", "Pod", pod)
            case "delete":
                self.happen("delete", "Pod", pod)
            case "claim":
                self.happen("remove", "ResourceClaim", claim)
