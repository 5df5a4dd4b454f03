"""Volumes: single decisions of the scheduler, the volume binder over time, and the PersistentVolume controller.

``volumes`` asks one scheduler about one pod, with preemption. ``volume-binding`` asks the plugin VolumeBinding alone:
what it would bind on each node, what Reserve assumes for the pods that follow, and how PreBind ends while others write.
``pv-controller`` lets the controller of claims and volumes work on a small cluster while users change it.
"""

from __future__ import annotations

import random
from typing import Any

Json = dict[str, Any]

FAMILIES = ("volumes", "volume-binding", "pv-controller")
ZONE, REGION, HOSTNAME = "topology.kubernetes.io/zone", "topology.kubernetes.io/region", "kubernetes.io/hostname"
BETA_ZONE = "failure-domain.beta.kubernetes.io/zone"
DRIVER, TRACKED, GCE, EBS = "csi.example.com", "local.csi.example.com", "kubernetes.io/gce-pd", "kubernetes.io/aws-ebs"
COMPLETED, BY_CONTROLLER = "pv.kubernetes.io/bind-completed", "pv.kubernetes.io/bound-by-controller"
SELECTED = "volume.kubernetes.io/selected-node"
PROVISIONED_BY = "pv.kubernetes.io/provisioned-by"
ZONES = ("europe-west1-a", "europe-west1-b", "europe-west1-c")
SIZES = ("1Gi", "2Gi", "5Gi", "5Gi", "10Gi", "20Gi")
MODES = (["ReadWriteOnce"], ["ReadWriteOnce"], ["ReadWriteMany"], ["ReadWriteOnce", "ReadOnlyMany"])


def case(family: str, seed: int, number: int) -> Json:
    rng = random.Random(f"{family} {seed} {number}")
    maker = {"volumes": _Decisions, "volume-binding": _Bindings, "pv-controller": _Controllers}[family]
    return maker(rng).make(f"{family}-s{seed}-{number:05}", family)


def meta(name: str, **more: Any) -> Json:
    return {"name": name, "uid": f"uid-{name}", **{key: value for key, value in more.items() if value}}


class _Maker:
    def __init__(self, rng: random.Random) -> None:
        self.rng = rng
        self.nodes: list[Json] = []
        self.volumes: list[Json] = []
        self.claims: list[Json] = []

    def chance(self, probability: float) -> bool:
        return self.rng.random() < probability

    def node(self, number: int) -> Json:
        name = f"n{number}"
        labels = {HOSTNAME: name}
        if self.chance(0.85):
            labels[self.rng.choice((ZONE, ZONE, ZONE, BETA_ZONE))] = self.rng.choice(ZONES)
        if self.chance(0.3):
            labels[REGION] = "region-1"
        if self.chance(0.3):
            labels["disk"] = self.rng.choice(("ssd", "hdd"))
        amounts = {"cpu": self.rng.choice(("1", "2", "4")), "memory": "8Gi", "pods": "20"}
        return {"metadata": meta(name, labels=labels), "status": {"allocatable": amounts}}

    def classes(self) -> list[Json]:
        rng = self.rng

        # PersistentVolumes come from "manual", claims ask for any of them.
        def one(name: str, provisioner: str, waits: bool, **more: Any) -> Json:
            mode = "WaitForFirstConsumer" if waits else "Immediate"
            return {"metadata": meta(name, annotations=more.pop("annotations", None)), "provisioner": provisioner,
                    "reclaimPolicy": "Delete", "volumeBindingMode": mode, **more}  # fmt: skip

        zones = rng.sample(ZONES, rng.randrange(1, 3))
        key = rng.choice((ZONE, ZONE, "disk"))
        values = zones if key == ZONE else ["ssd"]
        terms = [{"matchLabelExpressions": [{"key": key, "values": values}]}]
        if self.chance(0.3):
            terms.append(
                {"matchLabelExpressions": [{"key": "disk", "values": ["ssd"]}, {"key": ZONE, "values": zones}]}
            )
        default = {"storageclass.kubernetes.io/is-default-class": "true"} if self.chance(0.4) else None
        return [
            one("wait", DRIVER, waits=True),
            one("zoned", DRIVER, waits=True, allowedTopologies=terms),
            one("manual", "kubernetes.io/no-provisioner", waits=True),
            one("now", DRIVER, waits=False, annotations=default),
            one("tracked", TRACKED, waits=True),
            one("migrated", rng.choice((GCE, EBS)), waits=True),
        ]

    def drivers(self) -> list[Json]:
        found = []
        if self.chance(0.8):
            found.append({"metadata": meta(TRACKED), "spec": {"storageCapacity": self.chance(0.8)}})
        if self.chance(0.5):
            found.append({"metadata": meta(DRIVER), "spec": {}})
        return found

    def capacities(self) -> list[Json]:
        found: list[Json] = []
        for number in range(self.rng.randrange(4)):
            one: Json = {"metadata": meta(f"capacity-{number}", namespace="kube-system")}
            one["storageClassName"] = self.rng.choice(("tracked", "tracked", "tracked", "wait"))
            if self.chance(0.9):
                labels = {ZONE: self.rng.choice(ZONES)} if self.chance(0.6) else {}
                one["nodeTopology"] = {"matchLabels": labels} if labels else {}
            if self.chance(0.9):
                one["capacity"] = self.rng.choice(("3Gi", "10Gi", "100Gi"))
            if self.chance(0.3):
                one["maximumVolumeSize"] = self.rng.choice(("1Gi", "10Gi"))
            found.append(one)
        return found

    def affinity(self) -> Json:
        rng = self.rng
        names = [node["metadata"]["name"] for node in self.nodes]
        where = rng.choice(("zone", "zone", "host", "label"))
        if where == "host":
            expression: Json = {"key": HOSTNAME, "operator": "In", "values": rng.sample(names, 1)}
        elif where == "label":
            expression = {"key": "disk", "operator": rng.choice(("Exists", "DoesNotExist"))}
        else:
            expression = {"key": ZONE, "operator": "In", "values": rng.sample(ZONES, rng.randrange(1, 3))}
        return {"required": {"nodeSelectorTerms": [{"matchExpressions": [expression]}]}}

    def volume(self, name: str, **more: Any) -> Json:
        rng = self.rng
        spec: Json = {
            "capacity": {"storage": rng.choice(SIZES)},
            "accessModes": rng.choice(MODES),
            "persistentVolumeReclaimPolicy": "Retain",
            "storageClassName": "manual",
            "volumeMode": "Filesystem" if self.chance(0.95) else "Block",
        }
        source = rng.random()
        if source < 0.6:
            spec["csi"] = {"driver": DRIVER, "volumeHandle": f"handle-{name}"}
        elif source < 0.75:
            spec["gcePersistentDisk"] = {"pdName": f"disk-{name}"}
        elif source < 0.85:
            spec["awsElasticBlockStore"] = {"volumeID": f"aws://us-east-1a/vol-{name}"}
        else:
            spec["hostPath"] = {"path": f"/data/{name}"}
        if self.chance(0.5):
            spec["nodeAffinity"] = self.affinity()
        made: Json = {"metadata": meta(name), "spec": {**spec, **more}, "status": {"phase": "Available"}}
        if self.chance(0.3):
            made["metadata"]["labels"] = {rng.choice((ZONE, ZONE, BETA_ZONE, "disk")): rng.choice(
                (*ZONES[:2], "__".join(ZONES[:2]), "ssd"))}  # fmt: skip
        self.volumes.append(made)
        return made

    def claim(self, name: str, **more: Any) -> Json:
        rng = self.rng
        spec: Json = {
            "accessModes": rng.choice(MODES),
            "resources": {"requests": {"storage": rng.choice(SIZES)}},
            "storageClassName": rng.choice(("wait", "zoned", "manual", "manual", "now", "tracked", "migrated")),
            "volumeMode": "Filesystem",
        }
        if self.chance(0.15):
            spec["selector"] = {"matchLabels": {"disk": "ssd"}}
        made = {
            "metadata": meta(name, namespace="default"),
            "spec": {**spec, **more},
            "status": {"phase": "Pending"},
        }
        self.claims.append(made)
        return made

    def bind(self, claim: Json, volume: Json) -> None:
        name = claim["metadata"]["name"]
        volume["spec"]["claimRef"] = self.reference(name)
        volume["status"]["phase"] = "Bound"
        volume["spec"]["storageClassName"] = claim["spec"].get("storageClassName", "")
        claim["spec"]["volumeName"] = volume["metadata"]["name"]
        claim["metadata"]["annotations"] = {COMPLETED: "yes"}
        claim["status"]["phase"] = "Bound"

    def reference(self, name: str, uid: str | None = None) -> Json:
        made = {"kind": "PersistentVolumeClaim", "namespace": "default", "name": name, "apiVersion": "v1"}
        return {**made, "uid": uid or f"uid-{name}"}

    def pod(self, name: str, volumes: list[Json], **spec: Any) -> Json:
        cpu = self.rng.choice(("100m", "300m", "700m"))
        container = {"name": "main", "image": "app:1", "resources": {"requests": {"cpu": cpu, "memory": "64Mi"}}}
        mounted = [{"name": f"v{number}", **one} for number, one in enumerate(volumes)]
        spec = {"containers": [container], "priority": 0, **({"volumes": mounted} if mounted else {}), **spec}
        return {"metadata": meta(name, namespace="default"), "spec": spec, "status": {"phase": "Pending"}}

    def storage(self) -> Json:
        found = {"persistentVolumes": self.volumes, "persistentVolumeClaims": self.claims}
        return {key: value for key, value in found.items() if value}


class _Decisions(_Maker):
    def make(self, name: str, family: str) -> Json:
        rng = self.rng
        self.nodes = [self.node(number) for number in range(rng.randrange(2, 7))]
        self.some_claims()
        running = [self.running(number) for number in range(rng.randrange(2 * len(self.nodes)))]
        volumes = self.wanted(rng.randrange(1, 4), "pod")
        pod = self.pod("pod", volumes, priority=rng.choice((0, 100, 100)))
        self.own_ephemeral(pod)
        made = {"id": name, "family": family, "nodes": self.nodes, "pods": running, "pod": pod, **self.storage()}
        return {**made, "storageClasses": self.classes(), "csiNodes": self.csi_nodes(), "csiDrivers": self.drivers(),
                "csiStorageCapacities": self.capacities(), "volumeAttachments": self.attachments()}  # fmt: skip

    def some_claims(self) -> None:
        rng = self.rng
        for number in range(rng.randrange(4)):
            self.volume(f"pv-free-{number}")
        for number in range(rng.randrange(3, 7)):
            claim = self.claim(f"claim-{number}")
            if self.chance(0.35):
                claim["spec"]["accessModes"] = ["ReadWriteOncePod"]
            chance = rng.random()
            if chance < 0.6:
                self.bind(claim, self.volume(f"pv-{number}"))
            if chance < 0.03:
                self.volumes.pop()
            elif chance < 0.06:
                claim["status"]["phase"] = "Lost"
            if self.chance(0.03):
                claim["metadata"] |= {"deletionTimestamp": "2026-01-01T00:00:00Z", "finalizers": ["x.io/y"]}
            if self.chance(0.04) and chance >= 0.6:
                del claim["spec"]["storageClassName"]
            if chance >= 0.95:
                claim["metadata"]["annotations"] = {SELECTED: rng.choice(self.nodes)["metadata"]["name"]}

    def wanted(self, count: int, of: str) -> list[Json]:
        rng = self.rng
        found: list[Json] = []
        for _ in range(count):
            chance = rng.random()
            if chance < 0.65:
                name = f"claim-{rng.randrange(len(self.claims) + (self.chance(0.05)))}"
                if all(name != one.get("persistentVolumeClaim", {}).get("claimName") for one in found):
                    found.append({"persistentVolumeClaim": {"claimName": name}})
            elif chance < 0.7:
                found.append({"gcePersistentDisk": {"pdName": rng.choice("xy"), "readOnly": self.chance(0.5)}})
            elif chance < 0.75:
                found.append({"awsElasticBlockStore": {"volumeID": rng.choice("xy")}})
            elif chance < 0.79:
                disk = {"iqn": rng.choice("xy"), "targetPortal": "1.2.3.4", "lun": 0, "readOnly": self.chance(0.5)}
                found.append({"iscsi": disk})
            elif chance < 0.83:
                disk = {"monitors": rng.sample("abc", 2), "image": rng.choice("xy"), "readOnly": self.chance(0.5)}
                found.append({"rbd": {**disk, "pool": "rbd"}})
            elif chance < 0.88:
                request = {"resources": {"requests": {"storage": "1Gi"}}, "accessModes": ["ReadWriteOnce"]}
                template = {"spec": {**request, "storageClassName": rng.choice(("wait", "now", "tracked"))}}
                found.append({"ephemeral": {"volumeClaimTemplate": template}})
            elif chance < 0.92:
                found.append({"csi": {"driver": DRIVER}})
            else:
                found.append({"emptyDir": {}})
        return found

    def own_ephemeral(self, pod: Json) -> None:
        """The claims of ephemeral volumes; some are not there yet, some belong to somebody else."""
        for volume in pod["spec"].get("volumes", ()):
            if "ephemeral" in volume and self.chance(0.85):
                spec = volume["ephemeral"]["volumeClaimTemplate"]["spec"]
                name = pod["metadata"]["name"]
                claim = self.claim(f"{name}-{volume['name']}")
                claim["spec"] |= spec
                uid = pod["metadata"]["uid"] if self.chance(0.92) else "another"
                owner = {"apiVersion": "v1", "kind": "Pod", "name": name, "uid": uid, "controller": True}
                claim["metadata"]["ownerReferences"] = [owner]
                if self.chance(0.4):
                    self.bind(claim, self.volume(f"pv-{name}-{volume['name']}"))

    def running(self, number: int) -> Json:
        rng = self.rng
        node = rng.choice(self.nodes)["metadata"]["name"]
        volumes = self.wanted(rng.randrange(3), f"running-{number}")
        pod = self.pod(f"running-{number}", volumes, nodeName=node, priority=rng.choice((0, 0, 10, 200)))
        pod["status"] = {"phase": "Running", "startTime": f"2026-01-01T00:00:{number:02}Z"}
        for volume in pod["spec"].get("volumes", ()):
            if "ephemeral" in volume and self.chance(0.9):
                claim = self.claim(f"running-{number}-{volume['name']}")
                owner = {"apiVersion": "v1", "kind": "Pod", "name": f"running-{number}", "controller": True}
                claim["metadata"]["ownerReferences"] = [{**owner, "uid": f"uid-running-{number}"}]
                self.bind(claim, self.volume(f"pv-running-{number}-{volume['name']}"))
        return pod

    def csi_nodes(self) -> list[Json]:
        rng = self.rng
        found: list[Json] = []
        for node in self.nodes:
            if not self.chance(0.9):
                continue
            name = node["metadata"]["name"]
            drivers: list[Json] = []
            for driver in (DRIVER, TRACKED, "pd.csi.storage.gke.io", "ebs.csi.aws.com"):
                if self.chance(0.75):
                    one: Json = {"name": driver, "nodeID": name}
                    if self.chance(0.75):
                        one["allocatable"] = {"count": rng.choice((0, 1, 1, 2, 3))}
                    drivers.append(one)
            made: Json = {"metadata": meta(name), "spec": {"drivers": drivers}}
            if self.chance(0.5):
                plugins = rng.sample((GCE, EBS), rng.randrange(1, 3))
                made["metadata"]["annotations"] = {"storage.alpha.kubernetes.io/migrated-plugins": ",".join(plugins)}
            found.append(made)
        return found

    def attachments(self) -> list[Json]:
        rng = self.rng
        found: list[Json] = []
        for number in range(rng.randrange(4)):
            volume = rng.choice(self.volumes)["metadata"]["name"] if self.volumes and self.chance(0.9) else "gone"
            spec = {"attacher": DRIVER, "nodeName": rng.choice(self.nodes)["metadata"]["name"]}
            spec["source"] = {"persistentVolumeName": volume}
            found.append({"metadata": meta(f"attachment-{number}"), "spec": spec})
        return found


class _Bindings(_Maker):
    def make(self, name: str, family: str) -> Json:
        rng = self.rng
        self.nodes = [self.node(number) for number in range(rng.randrange(2, 5))]
        for number in range(rng.randrange(1, 6)):
            volume = self.volume(f"pv-{number}")
            if self.chance(0.5):
                volume["spec"] |= {"capacity": {"storage": "20Gi"}, "accessModes": ["ReadWriteOnce", "ReadWriteMany"]}
            if self.chance(0.15):
                volume["spec"]["claimRef"] = self.reference(f"claim-{rng.randrange(4)}")
                if self.chance(0.5):
                    del volume["spec"]["claimRef"]["uid"]
            if self.chance(0.06):
                volume["status"]["phase"] = rng.choice(("Released", "Pending", "Failed"))
        for number in range(rng.randrange(2, 6)):
            self.claim(f"claim-{number}", storageClassName=rng.choice(("manual", "manual", "manual", "wait", "zoned",
                                                                       "tracked", "now")))  # fmt: skip
        pending = [self.pending(number) for number in range(rng.randrange(1, 4))]
        names = [one["pod"] for one in pending]
        made = {"id": name, "family": family, "nodes": self.nodes, "pods": names, **self.storage()}
        made |= {"storageClasses": self.classes(), "csiDrivers": self.drivers(),
                 "csiStorageCapacities": self.capacities()}  # fmt: skip
        events = [self.event() for _ in range(rng.randrange(1, 8))]
        events.sort(key=lambda one: one["atS"])
        return {**made, "pending": pending, "events": events, "bindTimeoutSeconds": rng.choice((10, 30, 600)),
                "horizonS": 60}  # fmt: skip

    def pending(self, number: int) -> Json:
        rng = self.rng
        count = min(len(self.claims), rng.choice((1, 1, 2, 3)))
        claims = rng.sample([one["metadata"]["name"] for one in self.claims], count)
        volumes: list[Json] = [{"persistentVolumeClaim": {"claimName": claim}} for claim in claims]
        nodes = [node["metadata"]["name"] for node in self.nodes]
        rng.shuffle(nodes)
        return {"atS": rng.randrange(4) * 2 + number * 0.1, "pod": self.pod(f"pod-{number}", volumes), "nodes": nodes}

    def event(self) -> Json:
        """What the PV controller, provisioners and people may write, in any order; halfway between two polls."""
        rng = self.rng
        at_s = rng.randrange(1, 40) + 0.55
        claim = rng.choice(self.claims)["metadata"]["name"]
        volume = rng.choice(self.volumes)["metadata"]["name"]
        node = rng.choice(self.nodes)["metadata"]["name"]
        chance = rng.random()
        one: Json = {"atS": at_s, "do": "patch", "kind": "PersistentVolumeClaim", "name": claim, "namespace": "default"}
        if chance < 0.5:
            one["patch"] = {"metadata": {"annotations": {COMPLETED: "yes"}}, "spec": {"volumeName": volume}}
        elif chance < 0.6:
            one["patch"] = {"metadata": {"annotations": {SELECTED: None}}}
        elif chance < 0.65:
            one["patch"] = {"metadata": {"annotations": None}}
        elif chance < 0.75:
            one |= {"kind": "PersistentVolume", "name": volume, "namespace": ""}
            one["patch"] = {"spec": {"claimRef": None}}
        elif chance < 0.8:
            one |= {"do": "delete", "kind": rng.choice(("PersistentVolume", "Node")), "namespace": ""}
            one["name"] = volume if one["kind"] == "PersistentVolume" else node
        elif chance < 0.85:
            one["do"] = "delete"
        elif chance < 0.92:
            labels = {ZONE: rng.choice(ZONES), "disk": rng.choice(("ssd", None))}
            one |= {"kind": "Node", "name": node, "namespace": "", "patch": {"metadata": {"labels": labels}}}
        else:
            one |= {"do": "delete", "kind": "Pod", "name": "pod-0"}
        return one


class _Controllers(_Maker):
    def make(self, name: str, family: str) -> Json:
        rng = self.rng
        self.nodes = [self.node(number) for number in range(2)]
        for number in range(rng.randrange(5)):
            self.a_volume(f"pv-{number}")
        for number in range(rng.randrange(1, 5)):
            self.a_claim(f"claim-{number}")
        pods = []
        for number in range(rng.randrange(3)):
            claim = {"persistentVolumeClaim": {"claimName": rng.choice(self.claims)["metadata"]["name"]}}
            pods.append(self.pod(f"pod-{number}", [claim], **({"nodeName": "n0"} if self.chance(0.3) else {})))
        classes = self.classes()
        events = [self.event(number, classes) for number in range(rng.randrange(5))]
        made = {"id": name, "family": family, "nodes": self.nodes, "pods": pods, **self.storage()}
        events.sort(key=lambda one: one["atS"])
        return {**made, "storageClasses": classes, "events": events, "horizonS": 60}

    def a_volume(self, name: str) -> Json:
        rng = self.rng
        volume = self.volume(name, persistentVolumeReclaimPolicy=rng.choice(("Retain", "Retain", "Delete", "Delete")))
        spec = volume["spec"]
        for source in ("gcePersistentDisk", "awsElasticBlockStore", "hostPath", "csi"):
            spec.pop(source, None)
        if spec["persistentVolumeReclaimPolicy"] == "Delete" or self.chance(0.6):
            spec["csi"] = {"driver": DRIVER, "volumeHandle": name}
        else:
            spec["hostPath"] = {"path": f"/data/{name}"}
        spec["storageClassName"] = rng.choice(("", "manual", "now", "now", "wait"))
        volume["status"] = {"phase": rng.choice(("Available", "Available", "Pending", "Released", "Bound"))}
        if self.chance(0.35):
            spec["claimRef"] = self.reference(f"claim-{rng.randrange(4)}", rng.choice((None, None, "uid-of-another")))
            if self.chance(0.4):
                del spec["claimRef"]["uid"]
        annotations = {key: value for key, value, p in ((BY_CONTROLLER, "yes", 0.3), (PROVISIONED_BY, DRIVER, 0.3))
                       if self.chance(p)}  # fmt: skip
        if annotations:
            volume["metadata"]["annotations"] = annotations
        return volume

    def a_claim(self, name: str) -> Json:
        rng = self.rng
        claim = self.claim(name, storageClassName=rng.choice(("", "manual", "now", "now", "wait", "unknown", "zoned")))
        if self.chance(0.2):
            del claim["spec"]["storageClassName"]
        chance = rng.random()
        if chance < 0.3:
            claim["spec"]["volumeName"] = f"pv-{rng.randrange(5)}"
        annotations = {key: value for key, value, p in ((COMPLETED, "yes", 0.25), (BY_CONTROLLER, "yes", 0.25),
                                                        (SELECTED, "n0", 0.2)) if self.chance(p)}  # fmt: skip
        if annotations:
            claim["metadata"]["annotations"] = annotations
        if self.chance(0.2):
            claim["status"] = {"phase": rng.choice(("Bound", "Lost")), "accessModes": ["ReadWriteOnce"]}
            claim["status"]["capacity"] = {"storage": rng.choice(SIZES)}
        return claim

    def event(self, number: int, classes: list[Json]) -> Json:
        """Away from the seconds at which the controller looks at everything again."""
        rng = self.rng
        at_s = rng.choice((3.0, 7.0, 11.0, 18.0, 22.0, 26.0, 33.0, 37.0, 41.0)) + number / 10
        claim = rng.choice(self.claims)["metadata"]["name"]
        volume = rng.choice(self.volumes)["metadata"]["name"] if self.volumes else "none"
        one: Json = {"atS": at_s, "do": "patch", "kind": "PersistentVolumeClaim", "name": claim, "namespace": "default"}
        chance = rng.random()
        if chance < 0.25:
            one["do"] = "delete"
        elif chance < 0.4:
            one |= {"do": "delete", "kind": "PersistentVolume", "name": volume, "namespace": ""}
        elif chance < 0.6:
            made = self.a_volume(f"pv-new-{number}")
            self.volumes.pop()
            one |= {"do": "create", "kind": "PersistentVolume", "namespace": "", "object": made}
        elif chance < 0.75:
            made = self.a_claim(f"claim-new-{number}")
            self.claims.pop()
            one |= {"do": "create", "object": made}
        elif chance < 0.85:
            made = self.a_volume(f"pvc-uid-{claim}-{number}")
            self.volumes.pop()
            made["spec"] |= {"claimRef": self.reference(claim), "capacity": {"storage": "20Gi"}}
            made["metadata"]["annotations"] = {PROVISIONED_BY: DRIVER}
            one |= {"do": "create", "kind": "PersistentVolume", "namespace": "", "object": made}
        elif chance < 0.93:
            one["patch"] = {"metadata": {"annotations": {SELECTED: rng.choice(("n0", None))}}}
        else:
            annotations = {"storageclass.kubernetes.io/is-default-class": "true"}
            one |= {"kind": "StorageClass", "name": rng.choice(classes)["metadata"]["name"], "namespace": ""}
            one["patch"] = {"metadata": {"annotations": annotations}}
        return one
