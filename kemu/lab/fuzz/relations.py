"""Relations: changes of a scenario that change nothing of what comes of it.

A relation makes another document of a document and names what must be equal in both runs: how many pods of which
objects are ready, what budgets say, which Jobs are over. It never compares placements, which Kubernetes leaves open. It
asks only where the outcome is settled: both runs are quiet, and there is room for everything on every node that is open
(:func:`outcome`). The changed run is judged by all checks and oracles, too.
"""

from __future__ import annotations

import copy
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from kemu.emulated.objects import resources
from kemu.emulated.objects.conversion import convert
from kemu.emulated.objects.plain import Json
from kemu.emulated.settings.values import duration_ns
from kemu.lab.exploration.executions import execute
from kemu.lab.fuzz import facts
from kemu.lab.fuzz.drawing.canvases import seconds
from kemu.lab.fuzz.drawing.dice import Dice
from kemu.lab.fuzz.facts import Facts
from kemu.lab.scenario.loading import loader
from kemu.messages.k8s import core_v1_pb2

Data = dict[str, Any]
Change = Callable[[Data, Dice], Data | None]
"""A changed copy of a document; None where the relation has nothing to say about it."""

SETTLED_S = 120


@dataclass(frozen=True)
class Relation:
    """One of them."""

    name: str
    change: Change
    same_digest: bool = False
    """The run itself must be the same, byte for byte."""
    doc: str = ""


RELATIONS: dict[str, Relation] = {}
"""By name."""


def relation(change: Change) -> Change:
    _register(change, same_digest=False)
    return change


def same_run(change: Change) -> Change:
    """The relation of a change that must not even change the digest."""
    _register(change, same_digest=True)
    return change


def _register(change: Change, *, same_digest: bool) -> None:
    name = change.__name__.replace("_", "-")
    RELATIONS[name] = Relation(name, change, same_digest, (change.__doc__ or "").strip())


# What is compared


def outcome(run: Facts) -> Mapping[str, Any] | None:
    """What came of a scenario, as far as its objects determine it; None where they do not."""
    if not run.is_quiet_for(SETTLED_S) or run.lost_nodes or not _is_roomy(run):
        return None
    found: dict[str, Any] = {}
    for plural in ("replicasets", "statefulsets", "replicationcontrollers", "deployments"):
        for owner in run.objects(plural):
            if facts.controller_of(owner) is None and not facts.is_going(owner) and _is_plain(owner.spec.template):
                found[f"{owner.metadata.namespace}/{plural}/{owner.metadata.name}"] = (
                    owner.spec.replicas, owner.status.replicas, owner.status.readyReplicas
                )  # fmt: skip
    for job in run.objects("jobs"):
        if facts.controller_of(job) is None and _is_plain(job.spec.template):
            over = sorted(one.type for one in job.status.conditions if one.status == "True")
            found[f"{job.metadata.namespace}/jobs/{job.metadata.name}"] = (over, job.status.succeeded)
    settled = set(found)
    for budget in run.objects("poddisruptionbudgets"):
        name = budget.metadata.name
        app = dict(budget.spec.selector.matchLabels).get("app", "")
        if any(key.startswith(budget.metadata.namespace) and key.endswith(f"/{app}") for key in settled):
            status = budget.status
            found[f"{budget.metadata.namespace}/budgets/{name}"] = (status.currentHealthy, status.desiredHealthy)
    return found


def _is_roomy(run: Facts) -> bool:
    """Whether every node has room for every pod, so that nothing depends on who comes first."""
    if run.objects("resourcequotas") or run.history.counts["evictions"] or run.history.counts["oom_kills"]:
        return False
    nodes = [node for node in run.nodes.values() if facts.is_ready(node)]
    together: dict[str, int] = {"pods": 2 * len(run.history.pods)}
    for story in run.history.pods.values():
        for name, amount in story.requests.items():
            together[name] = together.get(name, 0) + amount
    return bool(nodes) and all(
        amount <= facts.allocatable(node).get(name, 0) for node in nodes for name, amount in together.items() if amount
    )


def _is_plain(template: core_v1_pb2.PodTemplateSpec) -> bool:
    """Whether its pods do the same wherever and whenever they run."""
    notes = template.metadata.annotations
    if any(note.startswith(("kemu.dev/exit-code", "kemu.dev/probes", "kemu.dev/usage")) for note in sorted(notes)):
        return False
    if template.spec.restartPolicy == "Always" and any(
        note.startswith("kemu.dev/run-seconds") for note in sorted(notes)
    ):
        return all(note == "kemu.dev/run-seconds.first" for note in sorted(notes) if "run-seconds" in note)
    return facts.goes_anywhere(core_v1_pb2.Pod(metadata=template.metadata, spec=template.spec))


def differences(one: Mapping[str, Any], other: Mapping[str, Any]) -> list[str]:
    """What two outcomes both tell and tell differently."""
    return [
        f"{key}: {one[key]} and {other[key]}" for key in sorted(one.keys() & other.keys()) if one[key] != other[key]
    ]


# Relations


def _copied(data: Data) -> tuple[Data, Data]:
    made = copy.deepcopy(data)
    return made, made["spec"]


def _duration_s(spec: Data) -> float:
    return duration_ns(spec["duration"]) / 1e9


def _active_s(spec: Data) -> float:
    """Until when a relation may do something: what it does has to be over when the run is quiet."""
    return max(2.0, _duration_s(spec) - SETTLED_S - facts.HEALED_S - 30)


@same_run
def written_again(data: Data, dice: Dice) -> Data | None:
    """The scenario with its keys in another order, and its objects in Lists of their own."""
    made, spec = _copied(data)
    items = spec.get("manifests", [])
    spec["manifests"] = [{"apiVersion": "v1", "kind": "List", "items": [item]} if item.get("kind") != "List" else item
                         for item in items]  # fmt: skip
    made["spec"] = {key: spec[key] for key in dice.shuffled(list(spec))}
    return made


@same_run
def described(data: Data, dice: Dice) -> Data | None:
    """The scenario with another name and a description."""
    made, _ = _copied(data)
    made["metadata"] = {"name": "another-name", "description": "It says what it says."}
    return made


@relation
def another_seed(data: Data, dice: Dice) -> Data | None:
    """Chance decides when and where, not what."""
    made, spec = _copied(data)
    spec["seed"] = spec.get("seed", 0) + 1 + dice.whole(0, 1000)
    return made


@relation
def nodes_renamed(data: Data, dice: Dice) -> Data | None:
    """Nodes have other names, and stand in another order."""
    made, spec = _copied(data)
    names: dict[str, str] = {}
    for node in spec["nodes"]:
        for key in ("name", "namePrefix"):
            if key in node:
                names[node[key]] = f"zz-{node[key]}"
    pattern = re.compile("|".join(rf"(?<![\w.-]){re.escape(name)}" for name in sorted(names, key=len, reverse=True)))

    def renamed(value: Json) -> Json:
        if isinstance(value, dict):
            return {key: renamed(item) for key, item in value.items()}
        if isinstance(value, list):
            return [renamed(item) for item in value]
        return pattern.sub(lambda match: names[match[0]], value) if isinstance(value, str) else value

    for section in ("nodes", "manifests", "events", "chaos"):
        if section in spec:
            spec[section] = renamed(spec[section])
    spec["nodes"] = list(reversed(spec["nodes"]))
    return made


@relation
def cordoned_node_added(data: Data, dice: Dice) -> Data | None:
    """A node that takes no pods. Daemon pods tolerate the cordon; they are not compared."""
    made, spec = _copied(data)
    node = {key: value for key, value in spec["nodes"][0].items() if key not in ("name", "namePrefix", "count")}
    spec["nodes"] = [*spec["nodes"], {"name": "closed", **node, "unschedulable": True}]
    return made


@relation
def spare_node_added(data: Data, dice: Dice) -> Data | None:
    """One more node like the first."""
    made, spec = _copied(data)
    node = {key: value for key, value in spec["nodes"][0].items() if key not in ("name", "namePrefix", "count")}
    spec["nodes"] = [*spec["nodes"], {"name": "spare", **node}]
    return made


@relation
def bystanders(data: Data, dice: Dice) -> Data | None:
    """Objects of a namespace of their own, which concern no other object."""
    made, spec = _copied(data)
    labels = {"app": "bystander"}
    template = {"metadata": {"labels": labels}, "spec": {"containers": [{"name": "main"}]}}
    place = {"namespace": "elsewhere"}
    spec["manifests"] = [
        {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "elsewhere"}},
        {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "c", **place}, "data": {"a": "b"}},
        {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "bystander", "labels": labels, **place},
         "spec": {"containers": [{"name": "main"}]}},
        {"apiVersion": "apps/v1", "kind": "ReplicaSet", "metadata": {"name": "none", **place},
         "spec": {"replicas": 0, "selector": {"matchLabels": labels}, "template": template}},
        *spec.get("manifests", []),
    ]  # fmt: skip
    return made


@relation
def labels_that_nobody_selects(data: Data, dice: Dice) -> Data | None:
    """On nodes, pods, objects and templates."""
    made, spec = _copied(data)
    for node in spec["nodes"]:
        node["labels"] = {**node.get("labels", {}), "unused.example.com/label": "x"}
    for item in spec.get("manifests", []):
        for where in (item, item.get("spec", {}).get("template")):
            if isinstance(where, dict) and isinstance(where.get("metadata"), dict) and item.get("kind") != "List":
                labels = where["metadata"].get("labels", {})
                where["metadata"]["labels"] = {**labels, "unused.example.com/label": "x"}
    return made


@relation
def class_that_nobody_uses(data: Data, dice: Dice) -> Data | None:
    """A PriorityClass."""
    made, spec = _copied(data)
    spec["priorityClasses"] = {**spec.get("priorityClasses", {}), "unused": dice.whole(-1000, 1000)}
    return made


@relation
def scheduler_that_nobody_names(data: Data, dice: Dice) -> Data | None:
    """A scheduler more."""
    made, spec = _copied(data)
    spec["schedulers"] = [*spec.get("schedulers", [{"name": "default-scheduler"}]), {"name": "idle"}]
    return made


@relation
def controller_without_work(data: Data, dice: Dice) -> Data | None:
    """Controllers of objects that are not there."""
    made, spec = _copied(data)
    stated = spec.get("controllers")
    running = stated if stated is not None else list(loader.of_data(data, "fuzz.yaml", None).controllers)
    extra = [name for name in ("replicationcontroller", "ttl-after-finished", "pod-gc") if name not in running]
    if not extra:
        return None
    spec["controllers"] = (
        [*running, *extra] if isinstance(running, list) else {**running, **{name: {} for name in extra}}
    )
    return made


@relation
def api_server_added(data: Data, dice: Dice) -> Data | None:
    """One more, which clients share."""
    made, spec = _copied(data)
    servers = spec.get("apiServers", {})
    spec["apiServers"] = {**servers, "replicas": servers.get("replicas", 1) + 1}
    return made


WORKLOADS = ("Deployment", "ReplicaSet", "StatefulSet", "DaemonSet", "Job", "CronJob", "Pod", "PodDisruptionBudget")


@relation
def manifests_in_another_order(data: Data, dice: Dice) -> Data | None:
    """Workloads and budgets, which do not need each other; what they need stays before them."""
    made, spec = _copied(data)
    items = spec.get("manifests", [])
    first = [item for item in items if item.get("kind") not in WORKLOADS]
    rest = [item for item in items if item.get("kind") in WORKLOADS]
    if len(rest) < 2 or any(item.get("kind") == "List" for item in first):
        return None
    spec["manifests"] = [*first, *reversed(rest)]
    return made


@relation
def longer(data: Data, dice: Dice) -> Data | None:
    """Three minutes more. Jobs of CronJobs are not compared."""
    made, spec = _copied(data)
    spec["duration"] = seconds(_duration_s(spec) + 180)
    return made


@relation
def real_times(data: Data, dice: Dice) -> Data | None:
    """Times that were measured on real clusters, in place of constants."""
    made, spec = _copied(data)
    spec["timing"] = "constant" if spec.get("timing") == "realistic" else "realistic"
    return made


@relation
def every_heartbeat(data: Data, dice: Dice) -> Data | None:
    """Heartbeats as messages, or not."""
    made, spec = _copied(data)
    spec["heartbeats"] = "standing" if spec.get("heartbeats") == "exact" else "exact"
    return made


@relation
def other_records(data: Data, dice: Dice) -> Data | None:
    """More or fewer Event objects, and statuses on which no component acts."""
    made, spec = _copied(data)
    spec["eventObjects"] = "none" if spec.get("eventObjects") == "all" else "all"
    spec["podStatuses"] = "exact" if spec.get("podStatuses") == "sparing" else "sparing"
    return made


def _with_fault(data: Data, dice: Dice, fault: Data, last_s: float = 15.0) -> Data:
    made, spec = _copied(data)
    at_s = dice.whole(1000, int(max(2.0, _active_s(spec)) * 1000)) / 1000
    fault = {"id": "of-the-relation", "at": seconds(at_s), "for": seconds(dice.log_whole(1, int(last_s))), **fault}
    spec["chaos"] = [*spec.get("chaos", []), fault]
    return made


@relation
def controller_restarted(data: Data, dice: Dice) -> Data | None:
    """A controller crashes at some time, and comes back."""
    running = list(loader.of_data(data, "fuzz.yaml", None).controllers)
    if not running:
        return None
    spec = data["spec"]
    made = _with_fault(data, dice, {"crash": {"actor": f"controller/{dice.pick(running)}*"}})
    if "controllers" not in spec:
        made["spec"]["controllers"] = running
    return made


@relation
def scheduler_restarted(data: Data, dice: Dice) -> Data | None:
    """A scheduler crashes at some time, and comes back."""
    return _with_fault(data, dice, {"crash": {"actor": "scheduler/*"}})


@relation
def kubelet_restarted(data: Data, dice: Dice) -> Data | None:
    """A kubelet crashes at some time and comes back; its containers run on."""
    return _with_fault(data, dice, {"crash": {"actor": "kubelet/*"}})


@relation
def everybody_pauses(data: Data, dice: Dice) -> Data | None:
    """All actors stand still at the same time, and go on."""
    return _with_fault(data, dice, {"pause": {"actor": "*", "all": True}}, 5.0)


@relation
def watches_cut(data: Data, dice: Dice) -> Data | None:
    """All watches end at some time, and have to be resumed."""
    made = _with_fault(data, dice, {"cutWatches": {"of": "*", "all": True, "compacted": dice.chance(0.5)}})
    del made["spec"]["chaos"][-1]["for"]
    return made


DUMPED = tuple(kind for kind in WORKLOADS if kind != "Job")


@relation
def imported_again(data: Data, dice: Dice) -> Data | None:
    """The objects as a cluster that has just started prints them: with defaults, statuses, UIDs, times.

    Objects that others own are left out, as their owners make them anew; so are ``resourceVersion``, which nobody can
    create, and the node of a pod that a scheduler chose. Jobs stay as they are: their selectors and labels name the UID
    of the one that was dumped, so an API server refuses them.
    """
    spec = data["spec"]
    items = spec.get("manifests", [])
    stated = {(item.get("kind"), item["metadata"].get("namespace", "default"), item["metadata"]["name"])
              for item in items if "metadata" in item and "name" in item["metadata"]}  # fmt: skip
    if not any(kind in DUMPED for kind, _, _ in stated) or any(item.get("kind") == "List" for item in items):
        return None
    begun, begun_spec = _copied(data)
    begun_spec["duration"] = "20s"
    for section in ("events", "chaos", "workloads"):
        begun_spec.pop(section, None)
    values = execute(loader.of_data(begun, "fuzz.yaml", None)).history.values
    made, made_spec = _copied(data)
    made_spec["manifests"] = []
    for item in items:
        kind, metadata = item.get("kind"), item.get("metadata", {})
        resource = next((one for one in resources.RESOURCES if one.kind == kind), None)
        namespace = metadata.get("namespace", "default")
        key = resources.key(resource, namespace, metadata["name"]).decode() if resource is not None else ""
        if kind not in DUMPED or resource is None or key not in values:
            made_spec["manifests"].append(item)
            continue
        dumped = convert.to_json(resource.message.FromString(values[key]))
        dumped["apiVersion"], dumped["kind"] = item["apiVersion"], kind
        for name in ("resourceVersion",):
            dumped["metadata"].pop(name, None)
        if kind == "Pod" and "nodeName" not in item["spec"]:
            dumped["spec"].pop("nodeName", None)
            dumped.pop("status", None)
        made_spec["manifests"].append(dumped)
    return made
