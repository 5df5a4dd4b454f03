"""What becomes of each object of a dump: it is kept, it is made anew by kemu itself, or it is left out, with a reason.

What kemu refuses is found by asking the loader of scenarios: a field that it does not simulate is left out, and
counted. What a partial dump lacks and others refer to is made: namespaces, classes, and a place for volumes without
their claims.
"""

from __future__ import annotations

import copy
import json
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, cast

from kemu.emulated.kubelet.settings import thresholds
from kemu.emulated.kubelet.usage import usages
from kemu.emulated.objects import names, resources
from kemu.emulated.objects.amounts import quantities
from kemu.emulated.objects.fields.unsimulated import LEAVE_OUT, UNSIMULATED
from kemu.emulated.objects.kinds import removed_betas
from kemu.emulated.objects.volumes.claims import DEFAULT_CLASS
from kemu.emulated.settings.documents import Document, Path
from kemu.emulated.settings.shapes import Report
from kemu.lab.incidents import lives, trimming
from kemu.lab.incidents.dumps import Dump, Key
from kemu.lab.scenario.format.keys import controller_keys
from kemu.lab.scenario.loading import clusters
from kemu.lab.scenario.loading.objects import imports, manifests

HPA = "HorizontalPodAutoscaler"
REMADE = {
    "Lease", "Endpoints", "EndpointSlice", "ComponentStatus", "APIService", "FlowSchema", "PriorityLevelConfiguration",
    "IPAddress", "ServiceCIDR", "VolumeAttachment", "CSINode", "CertificateSigningRequest", "StorageVersion",
    "LeaseCandidate",
}  # fmt: skip
"""Kinds that servers and controllers write for themselves."""
_EVERYWHERE = {
    ("ConfigMap", "kube-root-ca.crt"), ("ServiceAccount", "default"), ("Service", "kubernetes"),
    ("PriorityClass", "system-node-critical"), ("PriorityClass", "system-cluster-critical"),
    ("Namespace", "default"), ("Namespace", "kube-system"), ("Namespace", "kube-public"),
    ("Namespace", "kube-node-lease"), ("ConfigMap", "extension-apiserver-authentication"),
    ("ConfigMap", "kube-apiserver-legacy-service-account-token-tracking"),
}  # fmt: skip
"""What each cluster has."""
_BOOTSTRAPPED = "kubernetes.io/bootstrapping"
_WEBHOOKS = ("ValidatingWebhookConfiguration", "MutatingWebhookConfiguration")
_LONG_CONFIG = 1024
_CLUSTER_ROLES = ("ClusterRole", "ClusterRoleBinding", "Role", "RoleBinding")
_NONE_LEFT = 8
"""Turns in which fields are left out that kemu refuses; each turn removes all that it names."""


@dataclass
class Refusing:
    """A webhook that kept controllers from creating pods, as the cluster's Events say."""

    message: str
    """What it said, or why it could not be asked."""
    namespaces: set[str] = field(default_factory=set)
    has_configuration: bool = False
    """Its WebhookConfiguration is in the dump, and says what it is about."""


@dataclass
class Kept:
    """What goes into the scenario, and what is told of the rest."""

    objects: list[dict[str, Any]] = field(default_factory=list)
    events: list[dict[str, Any]] = field(default_factory=list)
    dropped: imports.Dropped = field(default_factory=imports.Dropped)
    remade: Counter[str] = field(default_factory=Counter)
    """By kind: objects that each cluster has, or that kemu's controllers write anew."""
    left: Counter[tuple[str, str, str]] = field(default_factory=Counter)
    """What, why, and what to write in its place."""
    made: Counter[str] = field(default_factory=Counter)
    """What the dump lacks and others refer to."""
    absent: set[tuple[str, str, str]] = field(default_factory=set)
    """Kind, namespace and name of ConfigMaps and Secrets that the cluster said are not there."""
    refusing: dict[str, Refusing] = field(default_factory=dict)
    """Webhooks that refused or failed, by name."""
    sick_nodes: dict[str, str] = field(default_factory=dict)
    """Nodes that were not ready, with the reason that was given."""
    full_nodes: dict[str, dict[str, str]] = field(default_factory=dict)
    """Nodes that were under pressure, with what they are assumed to use themselves."""

    def of(self, *kinds: str) -> Iterator[dict[str, Any]]:
        return (each for each in self.objects if each["kind"] in kinds)


def sort(dump: Dump, *, keeps_autoscalers: bool) -> Kept:
    """``keeps_autoscalers``: usage is known, by which HorizontalPodAutoscalers can decide."""
    kept = Kept()
    defined = {manifests.defined_by(each) for each in dump.objects.values()}
    acting = (controller_keys.HORIZONTAL_POD_AUTOSCALER,) if keeps_autoscalers else ()
    taken: list[dict[str, Any]] = []
    kept.refusing = _refusing(dump)
    for key, given in dump.objects.items():
        data: dict[str, Any] = cast(dict[str, Any], removed_betas.upgraded(given))
        if key.kind == "Event":
            kept.events.append(data)
        elif _is_remade(key, data):
            kept.remade[key.kind] += 1
        elif key.kind in _WEBHOOKS and (own := _only_refusing(data, kept)):
            taken.append(own)
        elif not _is_left(key, data, kept, acting, defined):
            taken.append(data)
    revisions = list(_missing_revisions(taken))
    if revisions:
        kept.made["ControllerRevision"] += len(revisions)
        taken += revisions
    nodes = {str(each["metadata"]["name"]) for each in taken if each["kind"] == "Node"}
    known = {imports.name_of(each) for each in taken}
    wanted = _images(taken)
    filled = {
        (one.get("spec") or {}).get("nodeName")
        for one in taken
        if one["kind"] == "Pod" and lives.filled_disk(one.get("status") or {})
    }
    for data in taken:
        if data["kind"] == "Pod" and nodes and (node := (data.get("spec") or {}).get("nodeName")) and node not in nodes:
            kept.left["Pod on a node that the dump lacks", f"{node} is not in it", "add kubectl get nodes -o yaml"] += 1
            continue
        if data["kind"] == "Node":
            _look_at_node(data, wanted, kept)
            told = {"memory"} if keeps_autoscalers else set[str]()
            _assume_usage(data, kept, told | ({"disk"} if data["metadata"]["name"] in filled else set()))
        cleaned = imports.owned(imports.cleaned(data, kept.dropped, is_dumped=True), known, kept.dropped)
        made = _accepted(trimming.trimmed(_without_contents(cleaned, kept)), kept, acting)
        if made is not None:
            kept.objects.append(made)
    kept.absent = _absent(dump)
    _complete(kept, _priorities(taken))
    return kept


_DENIED = re.compile(r'admission webhook "([^"]+)" denied the request: ?(.*)', re.DOTALL)
_FAILED = re.compile(r'failed calling webhook "([^"]+)": ?(.*)', re.DOTALL)


def _refusing(dump: Dump) -> dict[str, Refusing]:
    """Webhooks that the cluster's Events name."""
    found: dict[str, Refusing] = {}
    for key, data in dump.objects.items():
        text = str(data.get("message") or data.get("note") or "") if key.kind == "Event" else ""
        said = _DENIED.search(text) or _FAILED.search(text)
        if said is not None:
            subject = data.get("involvedObject") or data.get("regarding") or {}
            one = found.setdefault(said[1], Refusing(" ".join((said[0] if said.re is _FAILED else said[2]).split())))
            one.namespaces.add(str(subject.get("namespace") or "default"))
    return found


def _only_refusing(data: Mapping[str, Any], kept: Kept) -> dict[str, Any] | None:
    """A WebhookConfiguration with those of its webhooks alone."""
    own = [one for one in data.get("webhooks") or () if one.get("name") in kept.refusing]
    for one in own:
        kept.refusing[one["name"]].has_configuration = True
    return {**data, "webhooks": own} if own else None


_NOT_FOUND = re.compile(r'\b(configmap|secret) "([^"]+)" not found')


def _absent(dump: Dump) -> set[tuple[str, str, str]]:
    """By statuses of pods and by Events."""
    found = set()
    for key, data in dump.objects.items():
        texts: list[tuple[str, str]] = []
        if key.kind == "Event":
            subject = data.get("involvedObject") or data.get("regarding") or {}
            texts.append((str(subject.get("namespace") or ""), str(data.get("message") or data.get("note") or "")))
        elif key.kind == "Pod":
            status = data.get("status") or {}
            for one in (*(status.get("initContainerStatuses") or ()), *(status.get("containerStatuses") or ())):
                waiting = (one.get("state") or {}).get("waiting") or {}
                texts.append((key.namespace, str(waiting.get("message") or "")))
        for namespace, text in texts:
            for kind, name in _NOT_FOUND.findall(text):
                place = namespace, name
                full = "ConfigMap" if kind == "configmap" else "Secret"
                if Key("", full, *place) not in dump.objects:
                    found.add((full, *place))
    return found


def _referred(spec: Mapping[str, Any]) -> Iterator[tuple[str, str, str]]:
    """Kind, name and key of each ConfigMap and Secret that pods of this spec need; no key: any contents will do."""
    for group in ("initContainers", "containers"):
        for one in spec.get(group) or ():
            for variable in one.get("env") or ():
                of = variable.get("valueFrom") or {}
                for kind, ref in (("ConfigMap", of.get("configMapKeyRef")), ("Secret", of.get("secretKeyRef"))):
                    if ref and not ref.get("optional"):
                        yield kind, str(ref.get("name")), str(ref.get("key"))
            for source in one.get("envFrom") or ():
                for kind, ref in (("ConfigMap", source.get("configMapRef")), ("Secret", source.get("secretRef"))):
                    if ref and not ref.get("optional"):
                        yield kind, str(ref.get("name")), ""
    for volume in spec.get("volumes") or ():
        sources = [volume, *((volume.get("projected") or {}).get("sources") or ())]
        for each in sources:
            for kind, ref in (("ConfigMap", each.get("configMap")), ("Secret", each.get("secret"))):
                if ref and not ref.get("optional"):
                    name = str(ref.get("name") or ref.get("secretName"))
                    for item in ref.get("items") or [dict[str, Any]()]:
                        yield kind, name, str(item.get("key") or "")


_REVISION = "controller-revision-hash"


def _missing_revisions(objects: Sequence[Mapping[str, Any]]) -> Iterator[dict[str, Any]]:
    """The ControllerRevisions that StatefulSets and DaemonSets had and the dump lacks: without them their pods would
    be replaced at once. Most pods of a DaemonSet carry the hash of its newest one."""
    owned: dict[str, list[Mapping[str, Any]]] = {}
    for each in objects:
        for reference in each["metadata"].get("ownerReferences") or ():
            if reference.get("controller"):
                owned.setdefault(str(reference.get("uid")), []).append(each)
    for owner in objects:
        metadata, kind = owner["metadata"], owner["kind"]
        held = owned.get(str(metadata.get("uid")), ()) if kind in ("StatefulSet", "DaemonSet") else ()
        hashes = Counter(label for each in held if (label := (each["metadata"].get("labels") or {}).get(_REVISION)))
        if not hashes or any(each["kind"] == "ControllerRevision" for each in held):
            continue
        newest = str((owner.get("status") or {}).get("updateRevision") or hashes.most_common(1)[0][0])
        yield {
            "apiVersion": "apps/v1",
            "kind": "ControllerRevision",
            "metadata": {
                "name": newest if kind == "StatefulSet" else f"{metadata['name']}-{newest}",
                "namespace": metadata.get("namespace", "default"),
                "labels": {**(owner["spec"]["template"]["metadata"].get("labels") or {}), _REVISION: newest},
                "ownerReferences": [
                    {"apiVersion": "apps/v1", "kind": kind, "name": metadata["name"], "uid": metadata["uid"]}
                    | {"controller": True, "blockOwnerDeletion": True}
                ],
            },
            "revision": 1,
            "data": {"spec": {"template": {**owner["spec"]["template"], "$patch": "replace"}}},
        }


def _priorities(objects: Iterable[Mapping[str, Any]]) -> dict[str, int]:
    """The value of each class, as pods show it."""
    specs = [each.get("spec") or {} for each in objects if each["kind"] == "Pod"]
    return {
        str(spec["priorityClassName"]): int(spec["priority"])
        for spec in specs
        if "priorityClassName" in spec and "priority" in spec
    }


def _is_remade(key: Key, data: Mapping[str, Any]) -> bool:
    if key.kind in REMADE or (key.kind, key.name) in _EVERYWHERE:
        return True
    labels = (data.get("metadata") or {}).get("labels") or {}
    return key.kind in _CLUSTER_ROLES and _BOOTSTRAPPED in labels


def _is_left(key: Key, data: Mapping[str, Any], kept: Kept, acting: Iterable[str], defined: set[str]) -> bool:
    kind = key.kind
    why, instead = "", ""
    if kind in _WEBHOOKS:
        why = "in virtual time there is no network to a webhook"
        instead = "a function in Python that stands for it: spec.admission (docs/scenarios.md)"
    elif kind == HPA and not acting:
        why = "pods of which no usage is known use nothing, and it would scale them down"
        instead = "give --usage, or change spec.replicas by events: {at: 1m, patch: {kind: Deployment, …}}"
    elif kind in UNSIMULATED and UNSIMULATED[kind].controller not in tuple(acting):
        why, instead = UNSIMULATED[kind].why, UNSIMULATED[kind].instead
    elif reason := manifests.why_unsimulated(data, tuple(acting), defined):
        kind, why, instead = f"{kind}.{key.group}", reason, "add its definition: kubectl get crd -o yaml"
    elif kind not in resources.BY_KIND and f"{kind}.{key.group}" not in defined:
        why, instead = "kemu does not know this kind", LEAVE_OUT
    if why:
        kept.left[kind, why, "" if instead == LEAVE_OUT else instead] += 1
    return bool(why)


def _look_at_node(data: dict[str, Any], wanted: Mapping[str, str], kept: Kept) -> None:
    """How the node was; of its images only those stay that a pod wants, by the name that the pod gives them."""
    status = data.get("status") or {}
    for condition in status.get("conditions") or ():
        if condition.get("type") == "Ready" and condition.get("status") != "True":
            kept.sick_nodes[data["metadata"]["name"]] = str(condition.get("reason") or "not ready")
    images = []
    for image in status.get("images") or ():
        known = sorted({wanted[plain] for name in image.get("names") or () if (plain := _plain(name)) in wanted})
        if known:
            images.append({"names": known, "sizeBytes": int(image.get("sizeBytes") or 0)})
    if "images" in status:
        data["status"] = {key: value for key, value in status.items() if key != "images"}
        if images:
            data["status"]["images"] = images


_PRESSURES = (
    ("MemoryPressure", "memory", "memory", (thresholds.MEMORY,)),
    # Images lie on the same disk: nothing in a dump says otherwise.
    ("DiskPressure", "ephemeral-storage", "disk", (thresholds.NODEFS, thresholds.IMAGEFS)),
)
"""Conditions, what runs short, the key of ``usage``, and the signals that set the condition."""


def _assume_usage(data: dict[str, Any], kept: Kept, known: set[str]) -> None:
    """Annotate a node under pressure with a usage of its own that keeps half of the eviction threshold available: no
    dump says what the node's daemons and files use. ``known``: keys of what pods use according to the dump."""
    status = data.get("status") or {}
    true = {one.get("type") for one in status.get("conditions") or () if one.get("status") == "True"}
    usage: dict[str, str] = {}
    for condition, resource, key, signals in _PRESSURES:
        if condition in true and key not in known:
            text = (status.get("capacity") or {}).get(resource, clusters.DEFAULT_RESOURCES[resource])
            capacity = quantities.value(str(text))
            least = min(
                threshold.value.of(capacity).nano // quantities.NANO
                for threshold in thresholds.parse(thresholds.DEFAULT_HARD, {}, {}, {})
                if threshold.signal in signals
            )
            usage[key] = quantities.shortest(capacity - least // 2)
    if usage:
        metadata = data["metadata"]
        notes = {**(metadata.get("annotations") or {}), usages.USAGE: json.dumps(usage)}
        data["metadata"] = {**metadata, "annotations": notes}
        kept.full_nodes[metadata["name"]] = usage


def _images(objects: Iterable[Mapping[str, Any]]) -> dict[str, str]:
    """What pods call their images, by the short name."""
    return {
        _plain(one["image"]): names.tagged_image(one["image"])
        for each in objects
        for spec in pod_specs(each)
        for group in ("initContainers", "containers")
        for one in spec.get(group) or ()
        if isinstance(one.get("image"), str)
    }


def _plain(image: str) -> str:
    """With a tag, and without Docker's registry, which nodes state and pods do not."""
    for prefix in ("docker.io/library/", "docker.io/", "index.docker.io/"):
        image = image.removeprefix(prefix)
    return names.tagged_image(image)


def _without_contents(data: dict[str, Any], kept: Kept) -> dict[str, Any]:
    """Without what Secrets hold, and long ConfigMaps: their keys stay, and nothing in kemu reads the rest."""
    if data["kind"] not in ("Secret", "ConfigMap"):
        return data
    found = dict(data)
    for part in ("data", "binaryData", "stringData"):
        values = data.get(part)
        if not isinstance(values, dict):
            continue
        if data["kind"] == "Secret" or sum(len(str(value)) for value in values.values()) > _LONG_CONFIG:
            found[part] = dict.fromkeys(values, "")
            kept.dropped.counts["contents", data["kind"]] += 1
    return found


# What kemu refuses ---------------------------------------------------------------------------------------------------


def _accepted(data: dict[str, Any], kept: Kept, acting: Iterable[str]) -> dict[str, Any] | None:
    """The same without the fields that kemu refuses; None where it refuses the whole."""
    if "." in str(data.get("apiVersion")).partition("/")[0] and data["kind"] not in resources.BY_KIND:
        return data  # The run checks a custom object, by its schema.
    problems: list[Any] = []
    for _ in range(_NONE_LEFT):
        problems = []
        recorder = _Recorder(Document("", data), problems)
        manifests.read(data, (), recorder, tuple(acting))
        if not problems:
            return data
        data = copy.deepcopy(data)
        removed = {path for path, _ in problems if path and _remove(data, path)}
        for path, why in problems:
            if path in removed:
                what = f"{data['kind']}.{'.'.join(str(step) for step in path if not isinstance(step, int))}"
                kept.left[what, why.removeprefix("kemu does not simulate this field: "), ""] += 1
        if not removed:
            break
    for _, why in problems[:1]:
        kept.left[data["kind"], why, ""] += 1
    return None


class _Recorder(Report):
    """Keeps the path of each complaint."""

    def __init__(self, document: Document, found: list[tuple[Path, str]]) -> None:
        super().__init__(document, [])
        self._found = found

    def add(self, path: Path, message: str, suggestion: str = "", *, key: bool = False) -> None:
        self._found.append((tuple(path), message))


_IDENTITY = (("kind",), ("apiVersion",), ("metadata",), ("metadata", "name"), ("metadata", "namespace"), ("spec",))


def _remove(data: dict[str, Any], path: Path) -> bool:
    """Take away what stands at a path, unless the object is nothing without it."""
    if path in _IDENTITY:
        return False
    value: Any = data
    for step in path[:-1]:
        try:
            value = value[step]
        except (KeyError, IndexError, TypeError):
            return False
    last = path[-1]
    if isinstance(value, dict) and last in value:
        del value[last]
        return True
    if isinstance(value, list) and isinstance(last, int) and last < len(value):
        value[last] = None
        while None in value:
            value.remove(None)
        return True
    return False


# What a partial dump lacks -------------------------------------------------------------------------------------------


def _complete(kept: Kept, priorities: Mapping[str, int]) -> None:
    # A list of some tells that others were not there, and a pod that waits for one goes on waiting.
    claims = {imports.name_of(each)[1:] for each in kept.of("PersistentVolumeClaim")} or None
    templates = {
        (
            str(each["metadata"].get("namespace") or "default"),
            f"{one['metadata']['name']}-{each['metadata']['name']}",
        ): one
        for each in kept.of("StatefulSet")
        for one in each["spec"].get("volumeClaimTemplates") or ()
    }
    have = {(each["kind"], each["metadata"]["name"]) for each in kept.objects} | _EVERYWHERE
    made: dict[tuple[str, str], dict[str, Any]] = {}

    def make(api_version: str, kind: str, name: str, *, annotations: Mapping[str, str] = {}, **fields: Any) -> None:
        if (kind, name) not in have and (kind, name) not in made:
            metadata = {"name": name, **({"annotations": annotations} if annotations else {})}
            made[kind, name] = {"apiVersion": api_version, "kind": kind, "metadata": metadata, **fields}

    if claims is None and not any(kept.of("StorageClass")):
        # Replicas that a run adds want volumes, too.
        for wanted in (each["spec"].get("storageClassName") for each in templates.values()):
            if wanted != "":
                make(
                    "storage.k8s.io/v1",
                    "StorageClass",
                    wanted or "standard",
                    annotations={} if wanted else {DEFAULT_CLASS: "true"},
                    provisioner="csi.example.com",
                    volumeBindingMode="WaitForFirstConsumer",
                )
    for each in kept.objects:
        namespace = str(each["metadata"].get("namespace") or "default")
        kind = resources.BY_KIND.get(each["kind"])
        if (kind is None and "namespace" in each["metadata"]) or (kind is not None and kind.namespaced):
            make("v1", "Namespace", namespace)
        for spec in pod_specs(each):
            if name := spec.get("priorityClassName"):
                make("scheduling.k8s.io/v1", "PriorityClass", name, value=priorities.get(name, 0))
            if name := spec.get("runtimeClassName"):
                overhead = {"overhead": {"podFixed": spec["overhead"]}} if spec.get("overhead") else {}
                make("node.k8s.io/v1", "RuntimeClass", name, handler=str(name), **overhead)
            if each["kind"] == "Pod" and (claims is None or spec.get("nodeName")):
                for volume in spec.get("volumes") or ():
                    name = (volume.get("persistentVolumeClaim") or {}).get("claimName")
                    if name and (namespace, name) not in (claims or ()):
                        for one in _claim(namespace, name, templates):
                            made.setdefault((one["kind"], f"{namespace}/{name}"), one)
    for (kind_name, _), one in made.items():
        kept.made[kind_name] += 1
        kept.objects.append(one)
    if kept.absent:
        _fill(kept)


def _claim(
    namespace: str, name: str, templates: Mapping[tuple[str, str], Mapping[str, Any]]
) -> Iterator[dict[str, Any]]:
    """A claim that a pod uses, and its volume, on any node. ``templates``: of StatefulSets, by namespace and name of
    their claims without the number."""
    template = templates.get((namespace, name.rpartition("-")[0]), {})
    stated = {
        "accessModes": ["ReadWriteOnce"],
        "resources": {"requests": {"storage": "1Gi"}},
        **template.get("spec", {}),
    }
    volume = f"{namespace}-{name}"
    named = {"storageClassName": stated.get("storageClassName") or ""}
    named |= {"volumeMode": stated["volumeMode"]} if "volumeMode" in stated else {}
    yield {
        "apiVersion": "v1",
        "kind": "PersistentVolumeClaim",
        "metadata": {"name": name, "namespace": namespace},
        "spec": {**stated, **named, "volumeName": volume},
    }
    yield {
        "apiVersion": "v1",
        "kind": "PersistentVolume",
        "metadata": {"name": volume},
        "spec": {
            "capacity": stated["resources"]["requests"],
            "accessModes": stated["accessModes"],
            "claimRef": {"apiVersion": "v1", "kind": "PersistentVolumeClaim", "namespace": namespace, "name": name},
            "hostPath": {"path": f"/claims/{volume}"},
            **named,
        },
    }


def _fill(kept: Kept) -> None:
    """Empty ConfigMaps and Secrets where the dump lacks them and the cluster did not: pods that wait for what is not
    there make it count."""
    there = {
        (each["kind"], str(each["metadata"].get("namespace") or "default"), each["metadata"]["name"]): each
        for each in kept.of("ConfigMap", "Secret")
    }
    for each in list(kept.objects):
        namespace = str(each["metadata"].get("namespace") or "default")
        for spec in pod_specs(each):
            for kind, name, key in _referred(spec):
                place = kind, namespace, name
                if place in kept.absent or name == "kube-root-ca.crt":
                    continue
                known = there.get(place)
                if known is None:
                    known = {"apiVersion": "v1", "kind": kind, "metadata": {"name": name, "namespace": namespace}}
                    there[place] = known
                    kept.made[kind] += 1
                    kept.objects.append(known)
                if key and not any(key in (known.get(part) or {}) for part in ("data", "binaryData", "stringData")):
                    known["data"] = {**(known.get("data") or {}), key: ""}


def pod_specs(data: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    """The spec of a pod, or of the pods that an object is a template of."""
    spec = data.get("spec")
    if not isinstance(spec, dict):
        return
    if data["kind"] == "Pod":
        yield spec
    elif data["kind"] == "CronJob":
        yield from pod_specs({"kind": "Job", "spec": (spec.get("jobTemplate") or {}).get("spec")})
    elif isinstance(spec.get("template"), dict) and isinstance(spec["template"].get("spec"), dict):
        yield spec["template"]["spec"]
