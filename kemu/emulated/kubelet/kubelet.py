"""The actor of one node, ``kubelet/<node>``: wires the node's own object, its pods, and the watch of them together.

Config (plain data): ``node`` (a serialised core/v1 Node: what to register), ``apiserver`` (the API server to
talk to; or a list, the others for when that one is lost), ``kubelet`` (fields of a KubeletConfiguration),
``timing`` (``kubeletSync``, ``podStart``, ``imagePull``: seconds or
distributions), ``machine`` and ``usage`` (:mod:`kemu.emulated.kubelet.usage.machines`,
:mod:`kemu.emulated.kubelet.usage.usages`), ``images`` (sizes in bytes, by name with tag), ``heartbeats`` (False: no
leases and no reports of an unchanged node), ``standing`` (when it may state heartbeats instead of sending them:
:class:`kemu.emulated.kubelet.node.leases.Calms`), ``preemptsForAll`` (True: the kubelet preempts lower pods for every
pod that does not fit, not for critical ones only), ``staticPods`` (serialised Pods: the manifests of its static pods),
``events`` (which event objects it writes:
:data:`kemu.emulated.client.recorders.LEVELS`), ``podStatuses`` (which statuses it writes:
:data:`kemu.emulated.kubelet.sync.status_managers.EXACT`), ``boot`` (since when its machine runs:
:mod:`kemu.emulated.kubelet.node.boots`), ``bugs`` (names of :mod:`kemu.emulated.variants`), ``policy``
(``evictionRanking``: :mod:`kemu.emulated.kubelet.pressure.ranking`).

:mod:`kemu.emulated.kubelet.sync.pod_workers` runs the pods, :mod:`kemu.emulated.kubelet.node.node_statuses` keeps the
Node. After a crash the next incarnation adopts the pods that the API server has on this node: containers outlive their
kubelet, though not their machine.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from typing import Any

from kemu.emulated import variants
from kemu.emulated.client import clients, informers, recorders, volume_drivers
from kemu.emulated.kubelet import parts
from kemu.emulated.kubelet.devices.drivers import Drivers
from kemu.emulated.kubelet.node import boots, node_statuses
from kemu.emulated.kubelet.pods import critical
from kemu.emulated.kubelet.settings import kubelet_configurations
from kemu.emulated.kubelet.volumes import csi_nodes
from kemu.emulated.objects import meta
from kemu.emulated.objects.pods import pod_phases
from kemu.messages.k8s import core_v1_pb2
from kemu.runtime.env import SECOND_NS, Env


class Kubelet(variants.Varied):
    """See the module. A client of the API server; it serves nothing but :mod:`kemu.emulated.kubelet.node.shutdowns`."""

    def __init__(self, env: Env, config: Mapping[str, Any]) -> None:
        self.env = env
        self._config = config
        self._clock = env.clock
        self._up_since_ns = env.clock.now_ns()
        self._heartbeats = bool(config.get("heartbeats", True))
        self.settings = kubelet_configurations.read(config.get("kubelet") or {}, config.get("timing") or {})
        self.client = clients.of_actor(env, config)
        boot = self._boot = boots.read(config, env.disk)
        level = config.get("events", recorders.NOTABLE)
        self.node = node_statuses.OwnNode(
            env, self.client, self.settings, config["node"], config.get("standing"), boot, level
        )
        self._knows_node = False
        self._watch: informers.Informer[core_v1_pb2.Pod] = informers.Informer(
            self.client, "pods", field_selector=f"spec.nodeName={self.node.name}", handler=self, compact=True
        )
        self._first_list: list[Any] | None = []
        """What the first list brings, until all of it is there."""
        self._acts_ns = 0
        """When the latest piece of news is acted upon: news stay in order however long each takes."""
        self._unheard: list[tuple[Callable[[Any, int], None], Any, int]] = []
        """News that came while the kubelet was busy with killing pods for another."""
        devices = config.get("devices")
        self._drivers = None if devices is None else Drivers(env, self.client, self.node.name, devices)
        """Drivers of devices; None: the cluster has none."""
        self._parts: parts.Parts | None = None
        """None: there was nothing for them to do yet."""
        self._began_ns: int | None = None
        """When it had started."""

    def demand(self) -> parts.Parts:
        """What deals with pods; built when it is first asked for."""
        return self._parts or self._build()

    def _build(self, *, are_late: bool = True) -> parts.Parts:
        built = self._parts = parts.Parts(
            self.env,
            self._config,
            self.settings,
            self.client,
            self.node,
            self._boot,
            self.node.recorder,
            self._fresh_node,
            self._listen,
            self._up_since_ns,
            self._drivers,
            are_late=are_late,
        )
        if self._knows_node:
            self._refresh_view()
        if self._began_ns is not None:
            built.pressures.start(self._began_ns)
        return built

    async def run(self) -> None:
        if parts.are_needed(self.env, self._config, self.node.given()):
            self._build(are_late=False)
        self.node.watch_images(self._images)
        if self._heartbeats:
            self.node.plan_heartbeats()
        await self._before_registration()
        # On one there are no mirrors, and pods of the API server come after those of files (NewSourceApiserver).
        is_new = await self.node.register() and self._clock.now_ns() > 0
        self._knows_node = True
        storage = self._config.get("storage")
        if storage is not None:
            drivers = volume_drivers.Drivers(storage)
            await csi_nodes.register(self.env, self.client, self.node.get(), drivers)
            for driver in map(drivers.of, drivers.named()):
                if driver.allocatable_update_period is not None:
                    task = csi_nodes.keep(self.env, self.client, self.node.name, driver)
                    self.env.spawn(task, f"allocatable of {driver.name}")
        if self._drivers is not None:
            await self._drivers.start(self.node.get())
        if self._parts is not None:
            self._refresh_view()
            self._parts.static_pods.read(self.node.get())
            if is_new:
                self._parts.static_pods.start()
        self._watch.start()
        if self._heartbeats:
            await self.node.lease.renew()
            self.node.start_heartbeats()
        await self._watch.synced()
        self._began_ns = self._clock.now_ns()
        if self._parts is not None:
            self._parts.shutdowns.offer()
            self._parts.pressures.start(self._began_ns)
        self.env.ready()
        await self._clock.started()
        if self._parts is not None:
            self._refresh_view()
            # After the pods that are there: by their mirrors it knows which static pods run already.
            if not is_new and self._acts_ns > self._clock.now_ns():
                self._clock.call_at_ns(self._acts_ns, self._parts.static_pods.start)
            elif not is_new:
                self._parts.static_pods.start()
        await asyncio.get_running_loop().create_future()

    def _images(self, most: int) -> list[core_v1_pb2.ContainerImage]:
        """The images of the node, at most so many; -1: all."""
        return self._parts.pods.images.told(most) if self._parts is not None else []

    # --- news of pods, from the informer -----------------------------------------------------------------------------

    def on_add(self, obj: core_v1_pb2.Pod) -> None:
        if self._first_list is not None:
            self._first_list.append(obj)
        else:
            self._act(self._observe, obj)

    def on_update(self, old: core_v1_pb2.Pod, new: core_v1_pb2.Pod) -> None:
        if self.settings.sync.constant == 0:  # _act, inlined
            self._observe(new, self._clock.now_ns())
        else:
            self._act(self._observe, new)

    def on_delete(self, old: core_v1_pb2.Pod) -> None:
        self._act(self._forget, old)

    def on_batch_end(self) -> None:
        listed, self._first_list = self._first_list, None
        if listed:
            # Oldest first, as in the kubelet, which has no order within a second: here those go first that an earlier
            # kubelet has admitted. What runs when the clock starts was there before, and is no news.
            begins = self._clock.now_ns() == 0
            listed.sort(
                key=lambda pod: (
                    begins and pod.status.phase != pod_phases.RUNNING,
                    pod.metadata.creationTimestamp.seconds,
                    not pod.status.HasField("startTime"),
                )
            )
            news = []
            for pod in listed:
                if begins and pod.status.phase == pod_phases.RUNNING:
                    self._observe(pod, 0)
                else:
                    news.append(pod)
            self._act(self._observe, *news)

    def _act(self, action: Callable[[Any, int], None], *pods: core_v1_pb2.Pod) -> None:
        """On one piece of news, which may concern several pods (``HandlePodAdditions``)."""
        now_ns = self._clock.now_ns()
        if pods and self.settings.sync.constant != 0:
            self._acts_ns = max(self._acts_ns, now_ns + int(self.settings.sync.draw(self.env.random) * SECOND_NS))
            for pod in pods:
                self._clock.call_at_ns(self._acts_ns, action, pod, now_ns)
            return
        for pod in pods:
            action(pod, now_ns)

    def _observe(self, pod: core_v1_pb2.Pod, seen_ns: int) -> None:
        here = self._parts or self._build()
        if here.pods.arrivals.preempting:
            self._unheard.append((self._observe, pod, seen_ns))
            return
        if self.node.view_is_old:
            self._refresh_view()
        if meta.MIRROR_ANNOTATION in pod.metadata.annotations:  # critical.is_mirror, inlined
            here.static_pods.observe(pod)
        else:
            here.pods.observe(pod, seen_ns)

    def _forget(self, pod: core_v1_pb2.Pod, seen_ns: int) -> None:
        here = self.demand()
        if here.pods.arrivals.preempting:
            self._unheard.append((self._forget, pod, seen_ns))
            return
        if critical.is_mirror(pod):
            here.static_pods.forget(pod)
        else:
            here.pods.forget(pod)

    def _listen(self) -> None:
        """To what has happened meanwhile."""
        while self._unheard and not self.demand().pods.arrivals.preempting:
            action, pod, seen_ns = self._unheard.pop(0)
            action(pod, seen_ns)

    async def _before_registration(self) -> None:
        """No pod is looked at before the Node is registered."""

    async def _fresh_node(self) -> core_v1_pb2.Node:
        """For a second look, before affinity alone refuses a pod."""
        return await self.node.read()

    def _refresh_view(self) -> None:
        self.demand().see_node(self.node.get() if self._knows_node else self.node.wanted())
        self.node.view_is_old = False
