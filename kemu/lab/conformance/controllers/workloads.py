"""Recorded syncs of the workload controllers, repeated one by one with the classes that run as actors.

A case says what there is and what happens in turn: one sync of a controller, rounds in which all controllers sync
everything once a second, changes by a user, what kubelets do. The answer of a sync is what it changed; that of the
rounds, what there is after each, where generated pods are only counted, as their names are chance.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Mapping
from typing import Any

from kemu import errors
from kemu.emulated.apiserver.admission.tolerations import default_seconds
from kemu.emulated.client import clients, informers
from kemu.emulated.controllers.workloads import replica_sets, replication_controllers
from kemu.emulated.controllers.workloads.daemon import daemon_pods, daemon_sets
from kemu.emulated.controllers.workloads.deployments import deployments
from kemu.emulated.controllers.workloads.stateful import stateful_pods, stateful_sets
from kemu.emulated.objects import meta, resources, times
from kemu.emulated.objects.conversion import convert
from kemu.emulated.objects.defaulting import defaults
from kemu.emulated.objects.templates import documents
from kemu.lab.conformance.control_planes import ControlPlane
from kemu.messages.k8s import apps_v1_pb2, core_v1_pb2
from kemu.messages.k8s.objects import KubernetesObject
from kemu.messages.v1 import api_pb2
from kemu.runtime.env import SECOND_NS

Json = dict[str, Any]

CONTROLLERS: Mapping[str, Any] = {
    "Deployment": deployments.DeploymentController,
    "ReplicaSet": replica_sets.ReplicaSetController,
    "ReplicationController": replication_controllers.ReplicationController,
    "StatefulSet": stateful_sets.StatefulSetController,
    "DaemonSet": daemon_sets.DaemonSetController,
}
"""By kind, in the order of a round."""

VIEWED = (*CONTROLLERS, "Pod", "ControllerRevision", "PersistentVolumeClaim")
"""Kinds that controllers change."""
_WITHOUT_GENERATION = ("Pod", "ControllerRevision", "PersistentVolumeClaim")
GRACE_S = 30
WATCH_S = 0.001
"""So long a write takes to an informer: no sync sees what it has written itself."""
MOMENT_NS = 2_000_000
"""After that, informers have seen a write."""
HALF_NS = SECOND_NS // 2
"""Controllers act in the middle between two seconds, so that no time is equal to another by chance."""
FIRST_NS = 1_000 * SECOND_NS
"""When a case begins on the clock of the run: times before it are times, too."""
_TIME = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ")


def answer(case: Json) -> Json:
    world = _World(case)
    return {"steps": world.plane.run(world.play)}


def agrees(expect: Json, given: Json) -> list[str]:
    """The answer must be one of those that were recorded; the differences are those from the first."""
    if given["steps"] in expect["anyOf"]:
        return []
    first = expect["anyOf"][0]
    for number, (wanted, found) in enumerate(zip(first, given["steps"], strict=False)):
        if wanted != found:
            return [f"answer {number}: {line}" for line in _differences(wanted, found, "")]
    return [f"{len(given['steps'])} answers, not {len(first)}"]


def _differences(wanted: object, found: object, path: str) -> list[str]:
    if isinstance(wanted, dict) and isinstance(found, dict):
        return [
            line
            for key in sorted({*wanted, *found})
            if wanted.get(key) != found.get(key)
            for line in _differences(wanted.get(key), found.get(key), f"{path}.{key}")
        ]
    if isinstance(wanted, list) and isinstance(found, list) and len(wanted) == len(found):
        pairs = enumerate(zip(wanted, found, strict=True))
        return [line for i, (w, f) in pairs if w != f for line in _differences(w, f, f"{path}[{i}]")]
    return [f"{path}: {json.dumps(found, sort_keys=True)}, not {json.dumps(wanted, sort_keys=True)}"]


class _Calls:
    """A recorder of events that keeps what it is told."""

    def __init__(self) -> None:
        self.calls: list[tuple[str, str, str, str]] = []
        self.writes_routine = True

    def event(
        self,
        regarding: Any,
        kind: str,
        reason: str,
        action: str,
        note: str,
        related: Any = None,
        *,
        routine: bool = False,
    ) -> None:
        self.calls.append((kind, reason, resources.of(regarding).kind, note))


class _Refusing:
    """The client of a controller, whose next creations of pods fail."""

    def __init__(self, client: clients.Client, world: _World) -> None:
        self._client = client
        self._world = world

    def __getattr__(self, name: str) -> Any:
        return getattr(self._client, name)

    async def create(self, obj: KubernetesObject) -> Any:
        if isinstance(obj, core_v1_pb2.Pod) and self._world.failures > 0:
            self._world.failures -= 1
            raise errors.Forbidden("pods is forbidden: no more pods")
        return await self._client.create(obj)


class _Holding:
    """An informer of a controller that is told nothing while it is held; then all at once, in order."""

    def __init__(self, informer: informers.Informer[Any]) -> None:
        self._informer = informer
        self._waiting: list[api_pb2.WatchEvent] | None = None

    def __getattr__(self, name: str) -> Any:
        return getattr(self._informer, name)

    def receive(self, event: api_pb2.WatchEvent, *, alone: bool = False) -> bool:
        if self._waiting is None:
            return self._informer.receive(event, alone=alone)
        self._waiting.append(event)
        return False

    def hold(self) -> None:
        self._waiting = self._waiting or []

    def release(self) -> None:
        waiting, self._waiting = self._waiting, None
        for event in waiting or ():
            self._informer.receive(event, alone=True)


class _World:
    def __init__(self, case: Json) -> None:
        self.failures: int = case.get("failures", 0)
        self._case = case
        self.plane = ControlPlane(WATCH_S, checks_statuses=False)
        self._calls = _Calls()
        self._controllers: dict[str, Any] = {}
        self._holding: dict[str, list[_Holding]] = {}
        """What can be held of a resource."""
        self._stores: dict[str, dict[str, Any]] = {}
        """By kind and key."""
        self._start_ns = 0
        self._rounds = 0
        self._last: Json | None = None

    async def play(self) -> list[Json]:
        plane = self.plane
        await plane.put(core_v1_pb2.Namespace(metadata={"name": "default"}))
        await plane.runtime.begin()
        await plane.clock.sleep_until_ns(FIRST_NS + HALF_NS)
        self._start_ns = plane.clock.unix_ns() // SECOND_NS * SECOND_NS
        for data in self._case["objects"]:
            await plane.put(self._read(data))
        for kind in VIEWED:
            nothing: informers.Callbacks[Any] = informers.Callbacks()
            self._stores[kind] = await plane.watch(resources.BY_KIND[kind].plural, nothing)
        gates = self._case.get("gates") or {}
        settings = {"feature_gates": {"max_unavailable_stateful_set": bool(gates.get("MaxUnavailableStatefulSet"))}}
        for kind, controller in CONTROLLERS.items():
            env = plane.runtime.env(f"controller/{kind.lower()}")
            made = self._controllers[kind] = controller(env, {"settings": settings})
            made.recorder = self._calls
            made.client = _Refusing(made.client, self)
            for informer in made.informers():
                await informer.synced()
                self._interpose(made.client, informer)
            if isinstance(made, stateful_sets.StatefulSetController):
                await made.claims.start()
                self._interpose(made.client, made.claims.informer)
        await self._moment()
        answers: list[Json] = []
        for step in self._case["steps"]:
            answers += await self._happen(step)
        return answers

    def _interpose(self, client: clients.Client, informer: informers.Informer[Any]) -> None:
        holding = _Holding(informer)
        self._holding.setdefault(informer.resource, []).append(holding)
        client.watches_of(informer.resource).interpose(informer, holding)

    async def _moment(self) -> None:
        await self.plane.clock.sleep(MOMENT_NS / SECOND_NS)

    async def _happen(self, step: Json) -> list[Json]:
        what = step["do"]
        self.failures += step.get("failures", 0)
        if what == "sync":
            return [await self._sync(step["kind"], f"default/{step['name']}")]
        if what == "rounds":
            return [one for _ in range(step["count"]) for one in await self._round()]
        if what == "pass":
            await self._pass()
        elif what == "replace":
            await self._replace(self._read(step["object"]))
        elif what == "delete":
            found = self._stored(step["kind"], step["name"])
            if found is not None:
                await self.plane.remove(found)
        elif what == "hold":
            for one in self._holding[resources.BY_KIND[step["kind"]].plural]:
                one.hold()
        elif what == "release":
            for one in self._holding[resources.BY_KIND[step["kind"]].plural]:
                one.release()
        elif what == "sleep":
            await self.plane.clock.sleep(step["seconds"])
        else:
            raise ValueError(f"unknown step: {what}")
        await self._moment()
        return []

    def _stored(self, kind: str, name: str) -> KubernetesObject | None:
        if kind == "Node":
            return core_v1_pb2.Node(metadata={"name": name})
        return self._stores[kind].get(f"default/{name}")

    # --- controllers -------------------------------------------------------------------------------------------------

    async def _sync(self, kind: str, key: str) -> Json:
        before = self._objects()
        self._calls.calls.clear()
        failed = not await self._try(kind, key)
        after = self._objects()
        changes: list[Json] = []
        for name, now in after.items():
            if name not in before:
                changes.append({"created": _without_chance(now)})
            elif now != before[name]:
                changes.append({"changed": now})
        gone = [old for name, old in before.items() if name not in after]
        changes += [
            {"deleted": old["generated" if _is_generated(old) else "name"], "kind": old["kind"]} for old in gone
        ]
        given: Json = {"changes": sorted(changes, key=_text)}
        if failed:
            given["failed"] = True
        if self._calls.calls:
            given["events"] = sorted(
                f"{sort} {reason} {of}: {self._bare(note)}" for sort, reason, of, note in self._calls.calls
            )
        return given

    async def _try(self, kind: str, key: str) -> bool:
        try:
            await self._controllers[kind].reconcile(key)
        except errors.ApiError:
            return False
        finally:
            await self._moment()
        return True

    async def _round(self) -> list[Json]:
        for kind in CONTROLLERS:
            for key in sorted(self._stores[kind]):
                # What fails is tried again in the next round.
                await self._try(kind, key)
        self._rounds += 1
        state, answers = self._summary(), []
        if state != self._last:
            answers.append({"round": self._rounds, "state": state})
            self._last = state
        await self._pass()
        clock = self.plane.clock
        await clock.sleep_until_ns((clock.now_ns() // SECOND_NS + 1) * SECOND_NS + HALF_NS)
        return answers

    # --- users and kubelets ------------------------------------------------------------------------------------------

    async def _replace(self, wanted: Any) -> None:
        """An update by a user: of the spec, labels and annotations."""

        def change(now: Any) -> None:
            before = dict(now.metadata.annotations)
            changed = now.spec != wanted.spec
            now.spec.CopyFrom(wanted.spec)
            now.metadata.labels.clear()
            now.metadata.labels.update(wanted.metadata.labels)
            now.metadata.annotations.update(wanted.metadata.annotations)
            if isinstance(now, apps_v1_pb2.Deployment):
                changed = changed or before != dict(now.metadata.annotations)
            if changed and not isinstance(now, core_v1_pb2.Pod | core_v1_pb2.Node):
                now.metadata.generation += 1

        await self.plane.change(wanted, change)

    async def _pass(self) -> None:
        """Once a second kubelets run new pods, make those ready that have had the time, and end others."""
        ready_s, shutdown_s = self._case.get("readyS") or {}, self._case.get("shutdownS", 0)
        now_s = self.plane.clock.unix_ns() // SECOND_NS
        for pod in [pod for _, pod in sorted(self._stores["Pod"].items())]:
            metadata = pod.metadata
            ready = meta.get_condition(pod.status.conditions, "Ready")
            if metadata.HasField("deletionTimestamp"):
                if now_s - (metadata.deletionTimestamp.seconds - GRACE_S) >= shutdown_s:
                    await self.plane.remove(pod)
            elif not pod.spec.nodeName:
                await self.plane.change(pod, lambda one: _run(one, now_s))
            elif pod.status.phase == "Running" and ready is not None and ready.status != "True":
                after = ready_s.get(pod.spec.containers[0].image)
                if after is not None and now_s - metadata.creationTimestamp.seconds >= after:
                    await self.plane.change(pod, lambda one: _make_ready(one, now_s))
        await self._moment()

    # --- objects of cases --------------------------------------------------------------------------------------------

    def _read(self, data: Json) -> Any:
        resource = resources.BY_KIND[data["kind"]]
        plain = {key: value for key, value in data.items() if key not in ("apiVersion", "kind")}
        obj: Any = convert.from_json(resource.message, self._with_times(plain))
        metadata = obj.metadata
        if resource.namespaced:
            metadata.namespace = "default"
        if data["kind"] == "ControllerRevision":
            obj.data.raw = documents.encoded(data["data"])
        defaults.apply(obj)
        if isinstance(obj, core_v1_pb2.Pod):
            # As after its creation; an update that changes nothing must not add them.
            default_seconds.add_tolerations(obj.spec.tolerations)
        if not metadata.uid:
            metadata.uid = f"uid-{data['kind']}-{metadata.name}"
        if not metadata.HasField("creationTimestamp"):
            meta.set_time(metadata.creationTimestamp, self._start_ns)
        if not metadata.generation and (data["kind"] == "Pod" or data["kind"] not in _WITHOUT_GENERATION):
            metadata.generation = 1
        return obj

    def _with_times(self, value: object) -> Any:
        """Offsets from the start become times."""
        if isinstance(value, dict):
            return {key: self._with_times(one) for key, one in value.items()}
        if isinstance(value, list):
            return [self._with_times(one) for one in value]
        if isinstance(value, str) and value.startswith("@"):
            return times.format_time(self._start_ns // SECOND_NS + int(value[1:]))
        return value

    def _objects(self) -> dict[str, Json]:
        found = {}
        for kind in VIEWED:
            for one in self._stores[kind].values():
                found[f"{kind}/{one.metadata.name}"] = self._view(kind, one)
        return found

    def _view(self, kind: str, one: Any) -> Json:
        metadata = one.metadata
        view: Json = {
            "kind": kind,
            "name": metadata.name,
            "generated": metadata.generateName,
            "labels": dict(metadata.labels),
            "annotations": dict(metadata.annotations),
            "deleting": metadata.HasField("deletionTimestamp"),
            "owners": [f"{owner.kind} {owner.name} {_go_bool(owner.controller)}" for owner in metadata.ownerReferences],
        }
        if kind not in _WITHOUT_GENERATION:
            view["generation"] = metadata.generation
        if kind in CONTROLLERS:
            view["status"] = convert.to_json(one.status)
        if kind in ("Deployment", "ReplicaSet"):
            view["spec"] = {"replicas": one.spec.replicas, "template": _template_view(one.spec.template)}
        if kind == "ReplicaSet":
            view["spec"]["minReadySeconds"] = one.spec.minReadySeconds
            view["spec"]["selector"] = dict(one.spec.selector.matchLabels)
        elif kind == "ReplicationController":
            view["spec"] = {"replicas": one.spec.replicas}
        elif kind == "ControllerRevision":
            view["spec"] = {"revision": one.revision, "data": one.data.raw.decode()}
        elif kind == "PersistentVolumeClaim":
            spec = convert.to_json(one.spec)
            view["spec"] = {name: spec.get(name) for name in ("resources", "accessModes")}
        elif kind == "Pod":
            view["spec"] = _pod_view(one)
        pruned: Json = self._pruned(view)
        return pruned

    def _pruned(self, value: object) -> Any:
        """Without what is empty or zero, and with times in seconds since the start."""
        if isinstance(value, dict):
            items = ((key, self._pruned(one)) for key, one in value.items())
            return {key: one for key, one in items if one not in (None, "", 0, False) and one != {} and one != []}
        if isinstance(value, list):
            return [self._pruned(one) for one in value]
        if isinstance(value, str) and _TIME.fullmatch(value):
            return f"@{(times.parse_time(value) - self._start_ns) // SECOND_NS}"
        return value

    def _summary(self) -> Json:
        """Summary of generated pods, how many there are of each sort."""
        found: Json = {name: view for name, view in self._objects().items() if not name.startswith("Pod/")}
        found["pods"] = dict(Counter(_sort(pod) for pod in self._stores["Pod"].values()))
        return found

    def _bare(self, note: str) -> str:
        """A note without the chance part of a generated name."""
        for verb in ("Created pod: ", "Deleted pod: "):
            name = note.removeprefix(verb)
            if name != note and re.fullmatch(".*-[bcdfghjklmnpqrstvwxz2456789]{5}", name):
                return verb + name.rpartition("-")[0]
        return note


def _is_generated(view: Json) -> bool:
    """Whether the name is chance. StatefulSets name their pods."""
    return "generated" in view and view.get("labels", {}).get(stateful_pods.NAME_LABEL) != view["name"]


def _without_chance(view: Json) -> Json:
    return {key: value for key, value in view.items() if key != "name"} if _is_generated(view) else view


def _text(value: object) -> str:
    return json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False)


def _go_bool(value: bool) -> str:
    return "true" if value else "false"


def _run(pod: core_v1_pb2.Pod, now_s: int) -> None:
    pod.spec.nodeName = daemon_pods.target(pod) or "node-0"
    pod.status.phase = "Running"
    del pod.status.conditions[:]
    pod.status.conditions.add(type="Ready", status="False").lastTransitionTime.seconds = now_s


def _make_ready(pod: core_v1_pb2.Pod, now_s: int) -> None:
    pod.status.conditions[0].status = "True"
    pod.status.conditions[0].lastTransitionTime.seconds = now_s


def _template_view(template: core_v1_pb2.PodTemplateSpec) -> Json:
    return {
        "labels": dict(template.metadata.labels),
        "annotations": dict(template.metadata.annotations),
        "images": [container.image for container in template.spec.containers],
    }


def _pod_view(pod: core_v1_pb2.Pod) -> Json:
    spec = pod.spec
    return {
        "images": [container.image for container in spec.containers],
        "node": spec.nodeName,
        "hostname": spec.hostname,
        "subdomain": spec.subdomain,
        "affinity": convert.to_json(spec.affinity) if spec.HasField("affinity") else {},
        "tolerations": sorted(
            f"{one.key} {one.effect}" for one in spec.tolerations if not one.HasField("tolerationSeconds")
        ),
        "claims": {
            volume.name: volume.volumeSource.persistentVolumeClaim.claimName
            for volume in spec.volumes
            if volume.volumeSource.HasField("persistentVolumeClaim")
        },
    }


def _sort(pod: core_v1_pb2.Pod) -> str:
    metadata = pod.metadata
    owner = "".join(f"{one.kind} {one.name}" for one in metadata.ownerReferences[-1:])
    is_generated = metadata.generateName and not owner.startswith("StatefulSet ")
    name = metadata.generateName if is_generated else metadata.name
    return (
        f"{name} of {owner}: {pod.status.phase} "
        f"ready={_go_bool(meta.is_ready(pod))} deleting={_go_bool(metadata.HasField('deletionTimestamp'))} "
        f"revision={metadata.labels.get('controller-revision-hash', '')} image={pod.spec.containers[0].image}"
    )
