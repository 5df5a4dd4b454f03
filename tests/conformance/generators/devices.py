"""Dynamic resource allocation: decisions about one pod with claims, devices in pools, classes, and what binding writes.

``devices`` mixes everything; ``device-search`` has small claims of many constraints, where the search must go back.
"""

from __future__ import annotations

import copy
import random
from typing import Any

Json = dict[str, Any]

FAMILIES = ("devices", "device-search")
GPU, NIC = "gpu.example.com", "nic.example.com"
ZONE = "topology.kubernetes.io/zone"
ZONES = ("zone-a", "zone-b")
EXTENDED = "example.com/gpu"
MODELS = ("a100", "h100", "t4")
ATTACHED = f"{NIC}/attached"

SELECTORS = (
    'device.driver == "gpu.example.com"',
    'device.driver == "nic.example.com"',
    'device.attributes["gpu.example.com"].model == "a100"',
    'device.attributes["gpu.example.com"].model in ["a100", "h100"]',
    'device.capacity["gpu.example.com"].memory.compareTo(quantity("20Gi")) >= 0',
    'device.capacity["gpu.example.com"].memory.isGreaterThan(quantity("10Gi"))',
    '"memory" in device.capacity["gpu.example.com"]',
    'device.attributes["gpu.example.com"].version.isGreaterThan(semver("1.2.0"))',
    'device.attributes["gpu.example.com"].version.major() == 1',
    'device.attributes["gpu.example.com"].index < 2',
    'has(device.attributes["gpu.example.com"].healthy) && device.attributes["gpu.example.com"].healthy',
    'device.attributes["gpu.example.com"].healthy',
    'cel.bind(own, device.attributes["gpu.example.com"], own.index >= 1 && own.model != "t4")',
    'device.attributes["gpu.example.com"].?model.orValue("none") == "h100"',
    'device.attributes["gpu.example.com"][?"numa"].hasValue()',
    'device.attributes["common.example.com"].root == "pci-1"',
    '"common.example.com" in device.attributes',
    'device.attributes["unknown.example.com"].?model.orValue("") == ""',
    "device.allowMultipleAllocations",
    "device.allowMultipleAllocations == false",
    'device.attributes["gpu.example.com"].model.startsWith("h")',
    "true",
    "false",
)
SAFE = tuple(
    one
    for one in SELECTORS
    if not one.startswith(("device.attributes", "device.capacity", "cel.bind")) or "?" in one or one == "true"
)
"""Those that no device makes fail."""
BROKEN = (
    'device.attributes["gpu.example.com"].missing == 1',
    'device.attributes["unknown.example.com"].missing',
    "device.unknown == 1",
    "device.driver",
    'device.attributes["gpu.example.com"].model',
    'device.attributes["gpu.example.com"].index.compareTo(quantity("1")) == 0',
    'device.capacity["gpu.example.com"].memory > 5',
    "1 +",
)


def case(family: str, seed: int, number: int) -> Json:
    rng = random.Random(f"{family} {seed} {number}")
    return _Maker(rng, family).make(f"{family}-s{seed}-{number:05}", family)


def meta(name: str, **more: Any) -> Json:
    return {"name": name, "uid": f"uid-{name}", **{key: value for key, value in more.items() if value}}


class _Maker:
    def __init__(self, rng: random.Random, family: str) -> None:
        self.rng = rng
        self.searches = family == "device-search"
        self.counted = self.chance(0.25) and not self.searches
        self.shared = self.chance(0.3)
        self.binding = self.chance(0.15) and not self.searches
        self.tainted = self.chance(0.25)
        self.extended = self.chance(0.25) and not self.searches
        self.broken = self.chance(0.06)
        self.slices: list[Json] = []
        self.claims: list[Json] = []

    def chance(self, probability: float) -> bool:
        return self.rng.random() < probability

    # Devices --------------------------------------------------------------------------------------------------------

    def attributes(self, driver: str, index: int) -> Json:
        rng = self.rng
        found: Json = {"index": {"int": index}, "model": {"string": rng.choice(MODELS)}}
        if not self.broken or self.chance(0.9):
            found["version"] = {"version": rng.choice(("1.0.0", "1.2.0", "1.3.0-rc.1", "2.0.0", "1.10.0"))}
        if not self.broken or self.chance(0.9):
            found["healthy"] = {"bool": self.chance(0.8)}
        if self.chance(0.9):
            found["numa"] = {"int": rng.randrange(3)}
        if not self.broken or self.chance(0.9):
            found["common.example.com/root"] = {"string": f"pci-{rng.randrange(3)}"}
        if self.chance(0.2):
            found[f"{driver}/model"] = {"string": "h100"}
            del found["model"]
        if self.broken and self.chance(0.2):
            found["version"] = {"version": rng.choice(("1.2", "01.0.0", "x"))}
        return found

    def policy(self) -> Json:
        rng = self.rng
        kind = rng.randrange(4)
        if kind == 0:
            return {}
        if kind == 1:
            return {"default": "1Gi", "validValues": ["1Gi", "2Gi", "5Gi", "10Gi"]}
        if kind == 2:
            return {"default": "2Gi", "validRange": {"min": "1Gi", **({"max": "8Gi"} if self.chance(0.5) else {})}}
        return {"default": "4Gi", "validRange": {"min": "2Gi", "step": "2Gi", "max": "20Gi"}}

    def capacity(self, *, multiple: bool) -> Json:
        rng = self.rng
        found: Json = {"memory": {"value": rng.choice(("10Gi", "20Gi", "40Gi", "80Gi"))}}
        if self.chance(0.2):
            found["cores"] = {"value": rng.choice(("8", "500m", "16"))}
        if multiple:
            policy = self.policy()
            if policy:
                found["memory"]["requestPolicy"] = policy
            if "cores" in found and self.chance(0.5):
                found["cores"]["requestPolicy"] = {"default": "1"}
        return found

    def device(self, driver: str, index: int, prefix: str) -> Json:
        rng = self.rng
        multiple = self.shared and self.chance(0.6)
        found: Json = {"name": f"{prefix}-{index}"}
        if not self.broken or self.chance(0.95):
            found["attributes"] = self.attributes(driver, index)
        if not self.broken or self.chance(0.9):
            found["capacity"] = self.capacity(multiple=multiple)
        if multiple:
            found["allowMultipleAllocations"] = True
        elif self.chance(0.1):
            found["allowMultipleAllocations"] = False
        if self.tainted and self.chance(0.4):
            effect = rng.choice(("NoSchedule", "NoExecute", "None", "NoSchedule"))
            taint = {"key": rng.choice(("example.com/broken", "example.com/hot")), "effect": effect}
            if self.chance(0.5):
                taint["value"] = rng.choice(("yes", "very"))
            found["taints"] = [{**taint, "timeAdded": "2000-01-01T00:00:00Z"}]
        if self.binding and self.chance(0.5):
            found["bindingConditions"] = [ATTACHED]
            found["bindingFailureConditions"] = [f"{NIC}/failed"]
            if self.chance(0.5):
                found["bindsToNode"] = True
        return found

    def selector(self) -> Json:
        rng = self.rng
        if self.chance(0.7):
            return {"nodeSelectorTerms": [{"matchExpressions": [
                {"key": ZONE, "operator": "In", "values": [rng.choice(ZONES)]}]}]}  # fmt: skip
        return {"nodeSelectorTerms": [{"matchFields": [
            {"key": "metadata.name", "operator": "In", "values": [rng.choice(self.names)]}]}]}  # fmt: skip

    def where(self) -> Json:
        rng = self.rng
        kind = rng.random()
        if kind < 0.3:
            return {"allNodes": True}
        if kind < 0.7:
            return {"nodeSelector": self.selector()}
        return {"nodeName": rng.choice(self.names)}

    def pool(self, name: str, driver: str, where: Json | None) -> None:
        """``where``: None chooses a node for each device."""
        rng = self.rng
        generation = rng.choice((1, 1, 1, 2))
        count = rng.choice((1, 1, 1, 2))
        slices: list[Json] = []
        for number in range(count):
            prefix = f"dev{number}" if self.chance(0.97) else "dev0"
            devices = [self.device(driver, index, prefix) for index in range(rng.randrange(0 if count > 1 else 1, 7))]
            spec: Json = {"driver": driver, "devices": devices}
            if where is None:
                spec["perDeviceNodeSelection"] = True
                for one in devices:
                    one.update(self.where())
            else:
                spec.update(where)
            slices.append(spec)
        if self.counted and self.chance(0.7):
            counters = {"memory": {"value": rng.choice(("20Gi", "40Gi", "80Gi"))}}
            if self.chance(0.5):
                counters["slots"] = {"value": str(rng.randrange(2, 8))}
            for spec in slices:
                for device in spec["devices"]:
                    if self.chance(0.85):
                        used = {"memory": {"value": rng.choice(("5Gi", "10Gi", "20Gi", "40Gi"))}}
                        if "slots" in counters:
                            used["slots"] = {"value": rng.choice(("1", "2"))}
                        if self.chance(0.01):
                            used["other"] = {"value": "1"}
                        which = "set-0" if self.chance(0.98) else "set-9"
                        device["consumesCounters"] = [{"counterSet": which, "counters": used}]
            shared: Json = {"driver": driver, "sharedCounters": [{"name": "set-0", "counters": counters}]}
            if self.chance(0.02):
                shared["sharedCounters"].append({"name": "set-0", "counters": counters})
            slices.append({**shared, **(where or {"allNodes": True})})
        expected = len(slices) + (1 if self.chance(0.07) else 0)
        order = list(enumerate(slices))
        rng.shuffle(order)
        for number, spec in order:
            spec["pool"] = {"name": name, "generation": generation, "resourceSliceCount": expected}
            self.slices.append({"metadata": meta(f"{name}-{driver.partition('.')[0]}-{number}"), "spec": spec})
        if self.chance(0.08):
            old: Json = {"driver": driver, "devices": [self.device(driver, 0, "old")], **(where or {"allNodes": True})}
            old["pool"] = {
                "name": name,
                "generation": generation + rng.choice((-1, 1)),
                "resourceSliceCount": 1,
            }
            self.slices.append({"metadata": meta(f"{name}-{driver.partition('.')[0]}-old"), "spec": old})

    def pools(self) -> None:
        rng = self.rng
        for name in self.names:
            if self.chance(0.8):
                self.pool(f"pool-{name}", GPU, {"nodeName": name})
        if self.chance(0.5):
            where = {"allNodes": True} if self.chance(0.5) else {"nodeSelector": self.selector()}
            self.pool("fabric", rng.choice((GPU, NIC)), where)
        if self.chance(0.3):
            self.pool("spread", rng.choice((GPU, NIC)), None)

    # Classes and claims ---------------------------------------------------------------------------------------------

    def selectors(self, most: int, *, safe: bool) -> list[Json]:
        rng = self.rng
        count = rng.randrange(most + 1)
        texts = [rng.choice(SAFE if safe and not self.broken else SELECTORS[:-1]) for _ in range(count)]
        if self.broken and self.chance(0.5):
            texts.append(rng.choice(BROKEN))
        return [{"cel": {"expression": text}} for text in texts]

    def classes(self) -> list[Json]:
        found: list[Json] = []
        for name, selectors in (
            ("gpu", [{"cel": {"expression": SELECTORS[0]}}]),
            ("nic", [{"cel": {"expression": SELECTORS[1]}}]),
            ("any", []),
            ("big", self.selectors(2, safe=True)),
        ):
            spec: Json = {"selectors": selectors} if selectors else {}
            if self.chance(0.2):
                spec["config"] = [{"opaque": {"driver": GPU, "parameters": {"kind": "Class", "of": name}}}]
            if self.extended and self.chance(0.7 if name == "gpu" else 0.1):
                spec["extendedResourceName"] = EXTENDED
            created = f"2000-01-01T00:00:0{self.rng.randrange(3)}Z"
            found.append({"metadata": {**meta(name), "creationTimestamp": created}, "spec": spec})
        self.rng.shuffle(found)
        return found

    def tolerations(self) -> list[Json]:
        rng = self.rng
        kind = rng.randrange(4)
        if kind == 0:
            return [{"operator": "Exists"}]
        if kind == 1:
            return [{"key": "example.com/broken", "operator": "Exists", "effect": "NoSchedule"}]
        if kind == 2:
            return [{"key": "example.com/hot", "operator": "Equal", "value": "yes"}]
        return [{"key": "example.com/broken", "operator": "Exists"}, {"key": "example.com/hot", "operator": "Exists"}]

    def request(self, *, sub: bool) -> Json:
        rng = self.rng
        found: Json = {"deviceClassName": rng.choice(("gpu", "gpu", "gpu", "gpu", "any", "any", "nic", "big"))}
        if self.chance(0.01):
            found["deviceClassName"] = "missing"
        if self.chance(0.07):
            found["allocationMode"] = "All"
        else:
            found["allocationMode"] = "ExactCount"
            found["count"] = rng.choice((1, 1, 1, 1, 1, 1, 2, 2, 3)) if self.chance(0.98) else rng.choice((33, 20))
        selectors = self.selectors(1 if self.searches else 2, safe=found["deviceClassName"] not in ("gpu", "missing"))
        if selectors and self.chance(0.5):
            found["selectors"] = selectors
        if self.tainted and self.chance(0.4):
            found["tolerations"] = self.tolerations()
        if (self.shared and self.chance(0.6)) or self.chance(0.03):
            requests = {"memory": rng.choice(("1Gi", "1500Mi", "3Gi", "7Gi", "15Gi", "30Gi"))}
            if self.chance(0.15):
                requests["cores"] = rng.choice(("1", "4", "300m"))
            found["capacity"] = {"requests": requests}
        if not sub and self.chance(0.06):
            found["adminAccess"] = self.chance(0.8)
        return found

    def claim(self, name: str) -> Json:
        rng = self.rng
        requests: list[Json] = []
        names: list[str] = []
        for number in range(rng.choice((1, 1, 1, 1, 2, 2, 3)) if self.chance(0.99) else 0):
            title = f"req-{number}"
            names.append(title)
            if self.chance(0.3):
                subs = [{"name": f"sub-{index}", **self.request(sub=True)} for index in range(rng.randrange(1, 4))]
                requests.append({"name": title, "firstAvailable": subs})
                names.extend(f"{title}/{one['name']}" for one in subs)
            else:
                requests.append({"name": title, "exactly": self.request(sub=False)})
        devices: Json = {}
        if requests:
            devices["requests"] = requests
        constraints = []
        while self.chance(0.5 if self.searches else 0.15):
            attribute = rng.choice(
                (
                    f"{GPU}/model",
                    f"{GPU}/numa",
                    "common.example.com/root",
                    f"{GPU}/version",
                    f"{GPU}/healthy",
                    f"{GPU}/x",
                )
                if self.chance(0.1)
                else (f"{GPU}/model", f"{GPU}/numa", "common.example.com/root")
            )
            one: Json = {"matchAttribute" if self.chance(0.65) else "distinctAttribute": attribute}
            if names and self.chance(0.5):
                one["requests"] = rng.sample(names, rng.randrange(1, min(3, len(names)) + 1))
            constraints.append(one)
        if constraints:
            devices["constraints"] = constraints
        if self.chance(0.2):
            config: Json = {"opaque": {"driver": GPU, "parameters": {"kind": "Claim"}}}
            if names and self.chance(0.6):
                config["requests"] = rng.sample(names, rng.randrange(1, min(2, len(names)) + 1))
            devices["config"] = [config]
        return {"metadata": meta(name, namespace="default"), "spec": {"devices": devices}}

    def allocate(self, claim: Json) -> None:
        """An allocation that somebody made before; it need not be one that the scheduler would make."""
        rng = self.rng
        all_devices = [(one["spec"], device) for one in self.slices for device in one["spec"].get("devices", ())]
        results = []
        for request in claim["spec"]["devices"].get("requests", ())[:2]:
            if not all_devices:
                break
            spec, device = rng.choice(all_devices)
            name = request["name"]
            if "firstAvailable" in request:
                name += f"/{rng.choice(request['firstAvailable'])['name']}"
            one: Json = {"request": name, "driver": spec["driver"], "pool": spec["pool"]["name"]}
            one["device"] = device["name"]
            if device.get("allowMultipleAllocations"):
                one["shareID"] = f"12345678-1234-1234-1234-{rng.randrange(10**11, 10**12)}"
                if self.chance(0.9):
                    one["consumedCapacity"] = {"memory": rng.choice(("1Gi", "5Gi", "9Gi"))}
            if self.chance(0.08):
                one["adminAccess"] = True
            if "bindingConditions" in device:
                one["bindingConditions"] = device["bindingConditions"]
                one["bindingFailureConditions"] = device["bindingFailureConditions"]
            results.append(one)
        allocation: Json = {"devices": {"results": results}} if results else {"devices": {}}
        if self.chance(0.6):
            allocation["nodeSelector"] = self.selector()
        claim["status"] = {"allocation": allocation}
        claim["metadata"]["finalizers"] = ["resource.kubernetes.io/delete-protection"]

    def statuses(self, claim: Json) -> list[Json]:
        found = []
        for one in claim["status"]["allocation"]["devices"].get("results", ()):
            if "bindingConditions" not in one or self.chance(0.2):
                continue
            conditions = []
            for kind, probability in ((ATTACHED, 0.6), (f"{NIC}/failed", 0.25)):
                if self.chance(probability):
                    conditions.append({"type": kind, "status": self.rng.choice(("True", "True", "False")),
                                       "reason": "Tried", "message": "it was tried",
                                       "lastTransitionTime": "2000-01-01T00:00:00Z"})  # fmt: skip
            found.append({key: one[key] for key in ("driver", "pool", "device")} | {"conditions": conditions})
        return found

    # The pod --------------------------------------------------------------------------------------------------------

    def pod_claims(self, pod: Json) -> None:
        rng = self.rng
        entries, statuses = [], []
        for number in range(rng.choice((1, 1, 1, 1, 1, 2, 2, 3)) if not self.extended or self.chance(0.5) else 0):
            name = f"claim-{number}"
            claim = self.claim(name)
            entry: Json = {"name": f"c{number}"}
            if self.chance(0.25):
                entry["resourceClaimTemplateName"] = f"template-{number}"
                status: Json = {"name": f"c{number}", "resourceClaimName": name}
                owner = {"apiVersion": "v1", "kind": "Pod", "name": "asked", "uid": "uid-asked", "controller": True}
                if self.chance(0.06):
                    owner["uid"] = "uid-other"
                claim["metadata"]["ownerReferences"] = [owner]
                if self.chance(0.06):
                    del status["resourceClaimName"]
                if self.chance(0.96):
                    statuses.append(status)
            else:
                entry["resourceClaimName"] = name
            if self.chance(0.18):
                self.allocate(claim)
                if self.chance(0.4):
                    users = [("asked", "uid-asked"), ("other", "uid-other-pod")]
                    chosen = rng.sample(users, rng.choice((1, 1, 2)))
                    claim["status"]["reservedFor"] = [
                        {"resource": "pods", "name": name, "uid": uid} for name, uid in chosen
                    ]  # fmt: skip
                devices = self.statuses(claim)
                if devices:
                    claim["status"]["devices"] = devices
                if self.chance(0.5):
                    self.ago[name] = rng.choice((10, 300, 599, 601, 1000))
            if self.chance(0.015):
                claim["metadata"]["deletionTimestamp"] = "2000-01-01T00:00:00Z"
                claim["metadata"]["finalizers"] = ["resource.kubernetes.io/delete-protection"]
            if self.chance(0.985):
                self.claims.append(claim)
            entries.append(entry)
        if entries:
            pod["spec"]["resourceClaims"] = entries
            pod["spec"]["containers"][0]["resources"]["claims"] = [{"name": one["name"]} for one in entries]
        if statuses:
            pod["status"]["resourceClaimStatuses"] = statuses

    def extend(self, pod: Json) -> None:
        """Requests of extended resources, by several containers."""
        rng = self.rng
        names = (EXTENDED, EXTENDED, "deviceclass.resource.kubernetes.io/gpu", "deviceclass.resource.kubernetes.io/any")
        pod["spec"]["containers"] = [
            {"name": f"c{number}", "image": "i", "resources": {"requests": {"cpu": "100m"}}}
            for number in range(rng.choice((1, 1, 2)))
        ]
        if self.chance(0.35):
            pod["spec"]["initContainers"] = [
                {"name": f"i{number}", "image": "i", "resources": {"requests": {"cpu": "100m"}}}
                for number in range(rng.choice((1, 1, 2, 3)))
            ]
            for one in pod["spec"]["initContainers"]:
                if self.chance(0.3):
                    one["restartPolicy"] = "Always"
        for one in (*pod["spec"]["containers"], *pod["spec"].get("initContainers", ())):
            while self.chance(0.5):
                name, amount = rng.choice(names), rng.choice(("1", "1", "1", "2"))
                one["resources"]["requests"][name] = amount
                one["resources"].setdefault("limits", {})[name] = amount

    def make(self, identifier: str, family: str) -> Json:
        rng = self.rng
        self.names = [f"n{number}" for number in range(rng.randrange(1, 5))]
        self.ago: dict[str, int] = {}
        nodes = []
        for name in self.names:
            amounts = {"cpu": rng.choice(("2", "4")), "memory": "8Gi", "pods": "20"}
            if self.extended and self.chance(0.3):
                amounts[EXTENDED] = rng.choice(("0", "1", "4"))
            nodes.append({"metadata": meta(name, labels={ZONE: rng.choice(ZONES)}), "status": {"allocatable": amounts}})
        self.pools()
        container = {"name": "c", "image": "i", "resources": {"requests": {"cpu": rng.choice(("100m", "1"))}}}
        pod: Json = {"metadata": meta("asked", namespace="default"), "spec": {"containers": [container]}, "status": {}}
        if self.extended:
            self.extend(pod)
        self.pod_claims(pod)
        for number in range(rng.randrange(4)):
            claim = self.claim(f"used-{number}")
            self.allocate(claim)
            claim["status"]["reservedFor"] = [{"resource": "pods", "name": f"p{number}", "uid": f"uid-p{number}"}]
            self.claims.append(claim)
        if self.extended and self.chance(0.12):
            stale = self.claim("asked-extended-resources-old")
            stale["metadata"]["annotations"] = {"resource.kubernetes.io/extended-resource-claim": "true"}
            stale["metadata"]["ownerReferences"] = [
                {"apiVersion": "v1", "kind": "Pod", "name": "asked", "uid": "uid-asked", "controller": True}
            ]
            if self.chance(0.6):
                self.allocate(stale)
            self.claims.append(stale)
        pods = []
        if self.chance(0.2):
            pod["spec"]["priority"] = 10
            for number in range(rng.randrange(1, 3)):
                container = {"name": "c", "image": "i", "resources": {"requests": {"cpu": "1500m"}}}
                spec = {"nodeName": rng.choice(self.names), "priority": rng.choice((0, 20)), "containers": [container]}
                pods.append({"metadata": meta(f"p{number}", namespace="default"), "spec": spec,
                             "status": {"phase": "Running", "startTime": "2000-01-01T00:00:00Z"}})  # fmt: skip
        made: Json = {
            "id": identifier, "family": family, "nodes": nodes, "pods": pods, "pod": pod,
            "deviceClasses": self.classes(), "resourceSlices": self.slices, "resourceClaims": self.claims,
        }  # fmt: skip
        if self.ago:
            made["allocatedAgoS"] = {name: ago for name, ago in self.ago.items()
                                     if any(one["metadata"]["name"] == name for one in self.claims)}  # fmt: skip
        if self.binding:
            made["drivers"] = self.drives()
        made["hints"] = [self.event(made) for _ in range(rng.randrange(1, 5))]
        return made

    def event(self, made: Json) -> Json:
        """Something that happens while the pod waits."""
        rng = self.rng
        kind = rng.choice(("claim", "claim", "claim", "claim", "class", "pod"))
        if kind == "class":
            old = copy.deepcopy(rng.choice(made["deviceClasses"]))
            new = copy.deepcopy(old)
            if self.chance(0.5):
                new["spec"]["extendedResourceName"] = EXTENDED
            return {"kind": "DeviceClass", "old": None if self.chance(0.4) else old, "new": new}
        if kind == "pod":
            old = copy.deepcopy(made["pod"])
            new = copy.deepcopy(old)
            old["status"].pop("resourceClaimStatuses", None)
            if self.chance(0.2):
                old["metadata"]["uid"] = new["metadata"]["uid"] = "uid-other-pod"
            if self.chance(0.2):
                new["status"].pop("resourceClaimStatuses", None)
            return {"kind": "Pod", "old": old, "new": new}
        old = copy.deepcopy(rng.choice(self.claims)) if self.claims and self.chance(0.9) else self.claim("unrelated")
        new = copy.deepcopy(old)
        what = rng.randrange(5)
        if what == 0:
            return {"kind": "ResourceClaim", "old": None, "new": new}
        if what == 1:
            new["metadata"]["finalizers"] = ["example.com/other"]
        elif what == 2:
            new.pop("status", None)
        elif what == 3:
            old.pop("status", None)
            self.allocate(new)
        else:
            new.setdefault("status", {})["reservedFor"] = [{"resource": "pods", "name": "x", "uid": "uid-x"}]
        return {"kind": "ResourceClaim", "old": old, "new": new}

    def drives(self) -> list[Json]:
        """What drivers write while PreBind waits: of every device that the claims might have been given."""
        rng = self.rng
        found = []
        for claim in self.claims:
            if not claim["metadata"]["name"].startswith("claim-") or self.chance(0.3):
                continue
            for at_s in sorted(rng.sample((1.2, 7.3, 30.4, 200.1, 640.0), rng.choice((1, 2)))):
                kind = ATTACHED if self.chance(0.8) else f"{NIC}/failed"
                conditions = [{"type": kind, "status": "True", "reason": "Tried", "message": "it was tried",
                               "lastTransitionTime": "2000-01-01T00:00:00Z"}]  # fmt: skip
                devices = [
                    {"driver": one["spec"]["driver"], "pool": one["spec"]["pool"]["name"], "device": device["name"],
                     "conditions": conditions}
                    for one in self.slices for device in one["spec"].get("devices", ())
                ]  # fmt: skip
                found.append({"atS": at_s, "claim": claim["metadata"]["name"], "devices": devices[:8]})
        return found
