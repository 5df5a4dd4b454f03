"""Recorded looks of the HorizontalPodAutoscaler controller, repeated by the class that runs as an actor.

A case says what the autoscaler sees, look by look: pods, samples of what they use, what others have scaled to. The
answer of a look is the scale, the status and the events.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from kemu.emulated.autoscaler.horizontal import autoscaler, samples
from kemu.emulated.objects import meta
from kemu.emulated.objects.conversion import convert
from kemu.lab.conformance.control_planes import ControlPlane
from kemu.messages.k8s import autoscaling_v1_pb2, autoscaling_v2_pb2, core_v1_pb2
from kemu.runtime.env import SECOND_NS

Json = dict[str, Any]

KEY = "default/a"
LABELS = {"app": "a"}
FIRST_NS = 2_000 * SECOND_NS
"""When a case begins on the clock of the run: times before it are times, too."""
HALF_NS = SECOND_NS // 2
"""It looks in the middle between two seconds, so that no time is equal to another by chance."""


def answer(case: Json) -> Json:
    plane = ControlPlane()
    world = _World(plane, case)
    return {"looks": plane.run(world.play)}


def agrees(expect: Json, given: Json) -> list[str]:
    """One line for each field of a look that differs."""
    found = []
    for number, (wanted, told) in enumerate(zip(expect["looks"], given["looks"], strict=True)):
        for field in wanted:
            if wanted[field] != told[field]:
                texts = json.dumps(told[field], sort_keys=True), json.dumps(wanted[field], sort_keys=True)
                found.append(f"look {number}: {field}: {texts[0]}, not {texts[1]}")
    return found


class _Actor(autoscaler.HorizontalPodAutoscaler):
    """Sees what the case says."""

    world: _World

    def measure(
        self, pods: Sequence[core_v1_pb2.Pod], resource: str, container: str, unix_s: int
    ) -> dict[str, samples.Sample]:
        return self.world.measure(resource, container, unix_s)


class _World:
    """Stands for the client and for the recorder of events, too."""

    def __init__(self, plane: ControlPlane, case: Json) -> None:
        self._case = case
        self._plane = plane
        self._clock = plane.clock
        self._look: Json = {}
        self._events: list[str] = []
        self._replicas: int = case["replicas"]
        self._autoscaler: Any = convert.from_json(autoscaling_v2_pb2.HorizontalPodAutoscaler, case["autoscaler"])
        self._actor = actor = _Actor(plane.env, {})
        actor.world = self
        actor.client = actor.recorder = self  # type: ignore[assignment]

    async def play(self) -> list[Json]:
        await self._plane.runtime.begin()
        await self._clock.sleep_until_ns(FIRST_NS + HALF_NS)
        answers = []
        for look in self._case["looks"]:
            await self._clock.sleep(look["afterS"])
            self._look = look
            self._replicas = look.get("replicas", self._replicas)
            self._see(look["pods"])
            self._actor.autoscalers.store[KEY] = self._autoscaler
            self._events = []
            await self._actor.look(KEY)
            answers.append(self._answer())
        return answers

    def _see(self, pods: Sequence[Json]) -> None:
        actor = self._actor
        for key in list(actor.pods.store):
            del actor.pods.store[key]
            actor.labels.remove(key)
        for one in pods:
            key = f"default/{one['name']}"
            actor.pods.store[key] = self._pod(one)
            actor.labels.put(key, "default", LABELS)

    def _pod(self, one: Json) -> core_v1_pb2.Pod:
        pod = core_v1_pb2.Pod()
        pod.metadata.name, pod.metadata.namespace = one["name"], "default"
        pod.metadata.labels.update(LABELS)
        pod.status.phase = one["phase"]
        if one.get("deleted"):
            meta.set_time(pod.metadata.deletionTimestamp, self._at_ns(0))
        if "startS" in one:
            meta.set_time(pod.status.startTime, self._at_ns(one["startS"]))
        if one["ready"]:
            condition = pod.status.conditions.add(type="Ready", status=one["ready"])
            meta.set_time(condition.lastTransitionTime, self._at_ns(one["readyS"]))
        for name, amounts in sorted(one["requests"].items()):
            _request(pod.spec.containers.add(name=name), amounts)
        for name, amounts in one.get("sidecars", {}).items():
            _request(pod.spec.initContainers.add(name=name, restartPolicy="Always"), amounts)
        for resource, amount in one.get("podRequests", {}).items():
            pod.spec.resources.requests[resource].string = amount
        return pod

    def _at_ns(self, second: int) -> int:
        return self._clock.unix_ns() - self._clock.now_ns() + FIRST_NS + second * SECOND_NS

    def _second(self, moment_ns: int) -> int:
        return (moment_ns - self._at_ns(0)) // SECOND_NS

    def measure(self, resource: str, container: str, unix_s: int) -> dict[str, samples.Sample]:
        """As the client of metrics.k8s.io answers."""
        used = self._look["samples"]
        if not used:
            raise samples.MetricError(samples.NOTHING)
        found = {}
        for pod, containers in used.items():
            counted = [amounts for name, amounts in containers.items() if container in ("", name)]
            if counted and all(resource in amounts for amounts in counted):
                total = sum(amounts[resource] for amounts in counted)
                found[pod] = samples.Sample(total, unix_s - self._look["ageS"], samples.WINDOW_S)
        return found

    def _answer(self) -> Json:
        status = self._autoscaler.status
        scaled_s = self._second(meta.unix_ns(status.lastScaleTime)) if status.HasField("lastScaleTime") else None
        metrics = [convert.to_json(one) for one in status.currentMetrics]
        return {
            "replicas": self._replicas,
            "current": status.currentReplicas,
            "desired": status.desiredReplicas,
            "scaledS": scaled_s,
            "metrics": metrics or None,
            "conditions": [
                [one.type, one.status, one.reason, one.message, self._second(meta.unix_ns(one.lastTransitionTime))]
                for one in status.conditions
            ],
            "events": self._events,
        }

    # The client and the recorder

    async def get_scale(self, resource: str, name: str, namespace: str) -> autoscaling_v1_pb2.Scale:
        scale = autoscaling_v1_pb2.Scale()
        scale.metadata.name, scale.metadata.namespace = name, namespace
        scale.spec.replicas = scale.status.replicas = self._replicas
        scale.status.selector = ",".join(f"{key}={value}" for key, value in LABELS.items())
        return scale

    async def update_scale(self, resource: str, scale: autoscaling_v1_pb2.Scale) -> autoscaling_v1_pb2.Scale:
        self._replicas = scale.spec.replicas
        return scale

    async def update_status(self, found: autoscaling_v2_pb2.HorizontalPodAutoscaler) -> None:
        self._autoscaler = found

    def event(self, regarding: object, kind: str, reason: str, action: str, note: str) -> None:
        self._events.append(f"{kind} {reason} {note}")


def _request(container: core_v1_pb2.Container, amounts: Mapping[str, str]) -> None:
    for resource, amount in amounts.items():
        container.resources.requests[resource].string = amount
