"""kemu's scheduler beside the real one: it sees the same watches and decides about the same pods, but acts on nothing.

Its cache is fed as in kemu's scheduler, event by event, and never built anew. It decides about a pod in the very step
in which the watch shows it (or shows that its last gate is gone): the state is then that of the real decision, however
fast that one is bound. About pods that are tried again it decides just before the watch shows them bound.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from kemu.emulated.client import clients, informers
from kemu.emulated.objects import meta
from kemu.emulated.scheduler import feeds
from kemu.emulated.scheduler.configuration import configurations
from kemu.emulated.scheduler.configuration.timings import Timing
from kemu.emulated.scheduler.devices.pod_claims import PodClaims
from kemu.emulated.scheduler.experiments import switches
from kemu.emulated.scheduler.loop import Engine
from kemu.emulated.scheduler.plugins import in_tree
from kemu.lab.conformance.live.waiters import Waiters
from kemu.lab.conformance.scheduler import decisions
from kemu.messages.k8s import core_v1_pb2
from kemu.messages.k8s.objects import KubernetesObject
from kemu.runtime.env import Env

Json = dict[str, Any]

RESOURCES = ("priorityclasses",)


class Shadow(Waiters):
    """``profiles``: of the schedulers whose pods it decides about."""

    def __init__(self, env: Env, client: clients.Client, profiles: Sequence[Mapping[str, Any]]) -> None:
        super().__init__()
        document = {
            "percentageOfNodesToScore": 100,
            "profiles": list(profiles),
            "featureGates": {"OpportunisticBatching": False},
        }
        self.engine = Engine(
            env, client, configurations.configuration_of(document), switches.policy_of({}), Timing({}),
            in_tree.REGISTRY, devices=True,
        )  # fmt: skip
        cluster = self.engine.cluster
        self._deciders = {
            name: decisions.Asked(profile, cluster, env.random, percentage_of_nodes=100)
            for name, profile in self.engine.profiles.items()
        }
        self.answers: dict[str, Json] = {}
        """By pod: what kemu decided when it was shown."""
        self.last_answers: dict[str, Json] = {}
        """By pod: what kemu decided before a later attempt of the real scheduler was seen to succeed."""
        watched: dict[str, informers.Handler[Any]] = {
            **feeds.lookup_feeds(cluster), **feeds.storage_feeds(cluster, self.engine.queue),
            **feeds.device_feeds(cluster, self.engine.queue),
        }  # fmt: skip
        watched["nodes"] = self.engine.node_feed
        watched["pods"] = _Pods(self)
        self.informers = {
            resource: informers.Informer(client, resource, handler=_Waking(self, handler))
            for resource, handler in watched.items()
        }

    async def start(self) -> None:
        for informer in self.informers.values():
            await informer.synced()

    def store(self, resource: str) -> dict[str, Any]:
        """The objects of a kind by ``namespace/name``, or by name."""
        return self.informers[resource].store

    def forget(self) -> None:
        """The cluster is gone."""
        self.answers.clear()
        self.last_answers.clear()

    def decide(self, pod: core_v1_pb2.Pod) -> Json:
        """What kemu would decide about a pending pod now."""
        info = self.engine.cluster.pending(pod)
        try:
            decider = self._deciders[pod.spec.schedulerName]
            return {**decisions.decision(decider, info), "devices": _devices(decider)}
        except Exception as error:  # any fault of kemu's is a difference like others
            return {"error": f"kemu has no answer: {type(error).__name__}: {error}", "feasible": [], "node": ""}

    @property
    def deciders(self) -> Mapping[str, object]:
        return self._deciders


def _devices(decider: decisions.Asked) -> dict[str, list[str]]:
    """What the claims of a pod would get by its last attempt, by node."""
    filtering = decider.made.filtering if decider.made is not None else None
    found = filtering.cycle.data.get("DynamicResources") if filtering is not None else None
    if not isinstance(found, PodClaims):
        return {}
    return {
        node: sorted("/".join(one.device.id) for claim in plan.plans for one in claim.devices)
        for node, plan in found.by_node.items()
    }


class _Pods:
    """Decides, and hands on to the feed of the scheduler."""

    def __init__(self, shadow: Shadow) -> None:
        self._shadow = shadow
        self._feed = shadow.engine.pod_feed

    def on_add(self, pod: core_v1_pb2.Pod) -> None:
        self._feed.on_add(pod)
        if self._is_pending(pod):
            self._shadow.answers[meta.namespaced_name(pod)] = self._shadow.decide(pod)

    def on_update(self, old: Any, new: Any) -> None:
        key = meta.namespaced_name(new)
        first = self._shadow.answers.get(key)
        if new.spec.nodeName and not old.spec.nodeName and first is not None and not first["node"]:
            self._shadow.last_answers[key] = self._shadow.decide(old)
        self._feed.on_update(old, new)
        if old.spec.schedulingGates and self._is_pending(new):
            self._shadow.answers[key] = self._shadow.decide(new)

    def on_delete(self, pod: core_v1_pb2.Pod) -> None:
        self._feed.on_delete(pod)

    def _is_pending(self, pod: core_v1_pb2.Pod) -> bool:
        spec = pod.spec
        return not spec.nodeName and not spec.schedulingGates and spec.schedulerName in self._shadow.deciders


class _Waking:
    """A handler after which those who wait look again."""

    def __init__(self, shadow: Shadow, handler: informers.Handler[Any]) -> None:
        self._shadow = shadow
        self._handler = handler

    def on_add(self, obj: KubernetesObject) -> None:
        self._handler.on_add(obj)
        self._shadow.wake()

    def on_update(self, old: KubernetesObject, new: KubernetesObject) -> None:
        self._handler.on_update(old, new)
        self._shadow.wake()

    def on_delete(self, old: KubernetesObject) -> None:
        self._handler.on_delete(old)
        self._shadow.wake()
