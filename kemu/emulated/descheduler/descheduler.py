"""The actor ``controller/descheduler``: looks at the cluster now and then, and evicts pods as its policy says.

A round goes through the strategies of all profiles, first those that judge pods one by one, then those that balance
nodes. It sends evictions one after the other; a budget may refuse one. Further config: ``settings``
(:class:`kemu.emulated.descheduler.policies.Settings`), ``events`` (:data:`kemu.emulated.client.recorders.LEVELS`).
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Any

from kemu import errors
from kemu.emulated.client import informers, recorders
from kemu.emulated.controllers import controllers
from kemu.emulated.descheduler import clusters, evictions, plugins, policies
from kemu.emulated.settings.declared import restored
from kemu.messages.k8s import core_v1_pb2
from kemu.runtime.env import SECOND_NS, Env
from kemu.runtime.runlog.events import DeschedulingRound, PodDescheduled

NAME = policies.NAME


class Descheduler(controllers.Controller):
    """Factory: ``kemu.emulated.descheduler.descheduler:Descheduler``."""

    def __init__(self, env: Env, config: Mapping[str, Any]) -> None:
        super().__init__(env, config)
        self._settings = restored(policies.Settings, config["settings"])
        self._policy = self._settings.policy
        level = config.get("events", recorders.NOTABLE)
        self._recorder = recorders.Recorder(env, self.client, "sigs.k8s.io.descheduler", "0", level)
        self._cluster = cluster = clusters.Cluster(self.unix_ns)
        self._evictor = evictions.Evictor(cluster, self._policy, self._evict)
        self._profile = ""
        self._pods: informers.Informer[core_v1_pb2.Pod] = informers.Informer(
            self.client,
            "pods",
            handler=informers.Callbacks(cluster.put, lambda old, new: cluster.put(new), cluster.remove),
        )
        others = ("nodes", "poddisruptionbudgets", "namespaces", "persistentvolumeclaims", "priorityclasses")
        self._others: list[informers.Informer[Any]] = [informers.Informer(self.client, one) for one in others]
        cluster.pods = self._pods.store
        stores = [one.store for one in self._others]
        cluster.nodes, cluster.budgets, cluster.namespaces, cluster.claims, cluster.classes = stores

    async def run(self) -> None:
        await self.begin(self._pods, *self._others)
        interval_ns = self._settings.interval_ns
        while True:
            begun_ns = self.clock.now_ns()
            await self._round()
            if not interval_ns:
                break
            # A round that took longer than the interval is followed by the next at once.
            await self.clock.sleep_until_ns(begun_ns + interval_ns + int(self.lag_s() * SECOND_NS))
        await asyncio.get_running_loop().create_future()

    async def _round(self) -> None:
        self._evictor.begin()
        why = await self._run_profiles()
        self.env.log(DeschedulingRound(evicted=self._evictor.total, why=why))

    async def _run_profiles(self) -> str:
        """Why nothing was done, if so."""
        nodes = self._cluster.ready_nodes(self._policy.node_selector)
        if len(nodes) < 2:
            return "there are fewer than two ready nodes"
        try:
            running = [plugins.built(one, self._cluster, self._evictor) for one in self._policy.profiles]
        except evictions.UnknownClassError as error:
            return str(error)
        for turn in ("deschedule", "balance"):
            for profile in running:
                self._profile = profile.name
                for strategy in getattr(profile, turn):
                    await strategy.run(nodes)
        return ""

    async def _evict(self, pod: core_v1_pb2.Pod, strategy: str) -> None:
        """Raises EvictionError."""
        metadata = pod.metadata
        start_ns = self.clock.now_ns()
        why = ""
        try:
            await self.client.evict(metadata.namespace, metadata.name, self._policy.grace_period_seconds)
        except errors.ApiError as error:
            why = str(error)
        self.env.log(
            PodDescheduled(
                pod=controllers.key_of(pod),
                uid=metadata.uid,
                node=pod.spec.nodeName,
                start=start_ns,
                ok=not why,
                why=why,
                strategy=strategy,
                profile=self._profile,
            )
        )
        text = f"pod eviction from {pod.spec.nodeName} node by sigs.k8s.io/descheduler"
        if why:
            if self._policy.eviction_failure_event_notification:
                self._recorder.event(pod, "Warning", "EvictionFailed", "Descheduled", f"{text} failed: {why}")
            raise evictions.EvictionError(why)
        self._recorder.event(pod, "Normal", strategy, "Descheduled", text)
