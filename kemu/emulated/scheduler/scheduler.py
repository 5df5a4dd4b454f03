"""The scheduler actor: informers in front of an :class:`~kemu.emulated.scheduler.loop.Engine`, a client behind it.

    config = {"name": "default-scheduler", "replica": 0, "apiserver": "apiserver/0",
              "config": {}, "policy": {}, "bugs": [], "timing": {}, "events": "notable", "scores": false,
              "storage": false, "devices": false}

``config`` is a ``KubeSchedulerConfiguration`` (:mod:`kemu.emulated.scheduler.configuration.configurations`), ``policy``
the experiment switches (:mod:`kemu.emulated.scheduler.experiments.switches`), ``bugs`` names of
:mod:`kemu.emulated.variants`, ``timing`` the cost model (:mod:`kemu.emulated.scheduler.configuration.timings`),
``events`` which Event objects it writes (:data:`kemu.emulated.client.recorders.LEVELS`), ``storage`` and
``devices`` whether there are volumes, and claims of devices, to watch. It serves the pods whose ``schedulerName`` is
one of its profiles', by default ``name``. Replicas of one name race, unless ``config`` asks for a leader election.
"""

from __future__ import annotations

import asyncio
import dataclasses
from collections.abc import Mapping
from typing import Any

from kemu.emulated import variants
from kemu.emulated.client import clients, elections, informers, recorders
from kemu.emulated.objects.pods import pod_phases
from kemu.emulated.scheduler import feeds
from kemu.emulated.scheduler.audits import Auditor
from kemu.emulated.scheduler.cache.pods import PodInfo
from kemu.emulated.scheduler.configuration import configurations
from kemu.emulated.scheduler.configuration.timings import Timing
from kemu.emulated.scheduler.experiments import avoided_nodes, switches
from kemu.emulated.scheduler.loop import Engine
from kemu.emulated.scheduler.plugins import in_tree
from kemu.emulated.settings.declared import restored
from kemu.messages.k8s import core_v1_pb2
from kemu.runtime import user_code
from kemu.runtime.env import Env
from kemu.runtime.runlog.events import PodScored


class Scheduler:
    """Factory: ``kemu.emulated.scheduler.scheduler:Scheduler``."""

    def __init__(self, env: Env, config: Mapping[str, Any]) -> None:
        """Raises ConfigurationError or DistributionError."""
        self._env = env
        name = config.get("name", configurations.DEFAULT_SCHEDULER)
        client = clients.of_actor(env, config, shares=not user_code.is_in(config))
        policy = restored(switches.Policy, config.get("policy") or {})
        deviations = variants.active(config)
        caps = policy.percentageAbove100 == "cap"
        configuration = configurations.configuration_of(config.get("config") or {}, name, caps_percentages=caps)
        self.engine = Engine(
            env,
            client,
            configuration,
            policy,
            Timing(config.get("timing") or {}),
            in_tree.REGISTRY,
            lambda controller: recorders.Recorder(
                env,
                client,
                controller,
                str(config.get("replica", 0)),
                config.get("events", recorders.NOTABLE),
                schedules=True,
            ),
            deviations,
            devices=bool(config.get("devices")),
        )
        if config.get("scores"):
            for decider in self.engine.deciders.values():
                decider.on_scores = self._log_scores
        # What pods are measured against is there before the pods are.
        watched: dict[str, informers.Handler[Any]] = dict(feeds.lookup_feeds(self.engine.cluster))
        if config.get("storage"):
            watched.update(feeds.storage_feeds(self.engine.cluster, self.engine.queue))
        if self.engine.cluster.devices is not None:
            watched.update(feeds.device_feeds(self.engine.cluster, self.engine.queue))
        if configuration.groups:
            watched["podgroups"] = self.engine.group_feed
        watched["nodes"] = self.engine.node_feed
        watched["pods"] = self.engine.pod_feed
        by_resource = {
            resource: informers.Informer(
                client,
                resource,
                handler=handler,
                field_selector=pod_phases.NOT_TERMINAL if resource == "pods" else "",
                compact=client.shares and resource in ("nodes", "pods"),
            )
            for resource, handler in watched.items()
        }
        self._informers = list(by_resource.values())
        self.auditor = Auditor(env, self.engine, by_resource["nodes"], by_resource["pods"])
        if self.engine.avoided is not None:
            failed: informers.Informer[core_v1_pb2.Pod] = informers.Informer(
                client, "pods", handler=self.engine.avoided, field_selector=avoided_nodes.ENDED_BADLY
            )
            self._informers.append(failed)

        elector: elections.Elector | None = None
        if configuration.election is not None:
            settings = dataclasses.replace(configuration.election, settles_ns=config.get("settles_ns", 0))
            elector = variants.choose(elections.Elector, deviations)(env, client, settings)
        self._candidate = elections.Candidate(env, elector)
        self._delays_cache = configuration.delays_cache and elector is not None

    def _log_scores(self, pod: PodInfo, totals: list[tuple[str, int]]) -> None:
        self._env.log(PodScored(pod=pod.key, uid=pod.uid, totals=totals))

    async def run(self) -> None:
        if not self._delays_cache:
            await self._sync()
        self._env.ready()
        await self._env.clock.started()
        try:
            if self._candidate.is_elected:
                await self._candidate.win()
            if self._delays_cache:
                await self._sync()
            await self.engine.run()
        except asyncio.CancelledError:
            # Being stopped, at the latest when the run ends. A scheduler that crashes says nothing.
            self.auditor.report()
            raise

    async def _sync(self) -> None:
        for informer in self._informers:
            await informer.synced()
