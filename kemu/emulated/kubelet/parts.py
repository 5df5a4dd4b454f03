"""The parts of a kubelet that deal with pods: workers, admission, node pressure, static pods, shutdowns of the machine.

They are as large as the rest of the kubelet, and do nothing as long as the node has no pod and nothing of its own to
watch (:func:`are_needed`). So the kubelet builds them when the first pod comes: most nodes of a very large cluster wait
for theirs for long.
"""

from __future__ import annotations

import functools
from collections.abc import Awaitable, Callable, Mapping
from typing import Any

from kemu.emulated import variants
from kemu.emulated.client import clients, recorders, volume_drivers
from kemu.emulated.kubelet.admission import arrivals, predicates
from kemu.emulated.kubelet.devices import managers as device_managers
from kemu.emulated.kubelet.devices.drivers import Drivers
from kemu.emulated.kubelet.images import stores
from kemu.emulated.kubelet.node import boots, node_statuses, shutdowns
from kemu.emulated.kubelet.pods import sandboxes
from kemu.emulated.kubelet.pressure import eviction_loops
from kemu.emulated.kubelet.programs import residents
from kemu.emulated.kubelet.settings import kubelet_configurations
from kemu.emulated.kubelet.settings.references import References
from kemu.emulated.kubelet.sync import life_events, pod_workers, static_pods, status_managers
from kemu.emulated.kubelet.volumes import managers, references
from kemu.emulated.objects.caches import late
from kemu.emulated.objects.pods import declared_features
from kemu.emulated.settings.declared import restored
from kemu.messages.k8s import core_v1_pb2
from kemu.runtime.env import Env

_NO_IMAGES: Mapping[str, int] = {}


def are_needed(env: Env, config: Mapping[str, Any], node: core_v1_pb2.Node) -> bool:
    """Whether a kubelet without a pod may have something to do. ``node``: as it is to be registered."""
    if (
        any(config.get(key) for key in ("kubelet", "staticPods", "usage", "machine", "bugs", "devices"))
        or env.disk.list()
    ):
        return True
    return bool(node.status.images) or eviction_loops.is_short_of_something(node)


def _allocatable(node: core_v1_pb2.Node) -> dict[str, str]:
    return {name: amount.string for name, amount in node.status.allocatable.items()}


class Parts:
    """Parts of one kubelet."""

    def __init__(
        self,
        env: Env,
        config: Mapping[str, Any],
        settings: kubelet_configurations.Settings,
        client: clients.Client,
        node: node_statuses.OwnNode,
        boot: boots.Boot,
        recorder: recorders.Recorder,
        fresh_node: Callable[[], Awaitable[Any]],
        on_preempted: Callable[[], None],
        up_since_ns: int,
        drivers: Drivers | None = None,
        *,
        are_late: bool = False,
    ) -> None:
        """``config``: of the actor. ``drivers``: of its devices; None: no pod of this cluster can claim any.
        ``are_late``: they were not needed when the kubelet started (:func:`are_needed`).
        ``up_since_ns``: when the kubelet started. ``fresh_node`` and ``on_preempted``: see
        :class:`kemu.emulated.kubelet.admission.arrivals.Arrivals`."""
        self._env = env
        self._config = config
        self._settings = settings
        self._client = client
        self._recorder = recorder
        self._node = node
        varied, given = variants.active(config), node.as_given()
        tells_all = bool(given.spec.podCIDR)
        images = stores.Images(env, config.get("images") or _NO_IMAGES, self._on_images)
        storage = config.get("storage")
        stated = config.get("references")
        names = None if stated is None else references.Names(env, client, restored(References, stated))

        self._images = images
        self._are_late = are_late
        self.pressures: eviction_loops.EvictionLoop | eviction_loops.LateLoop
        self.pods = variants.choose(pod_workers.PodWorkers, varied)(
            env,
            client,
            settings,
            node.name,
            functools.partial(self._arrivals, variants.choose(arrivals.Arrivals, varied), fresh_node, on_preempted),
            boot,
            images,
            config.get("podStatuses") or status_managers.EXACT,
            up_since_ns,
            recorder=recorder,
            boxes=sandboxes.Sandboxes(given) if tells_all else None,
            events=life_events.LifeEvents(recorder) if tells_all and recorder.writes_routine else None,
            volumes=managers.VolumeManager(
                env,
                client,
                node.name,
                volume_drivers.Drivers(storage or {}),
                recorder,
                names,
                growing=bool(config.get("growingVolumes")),
            )
            if storage is not None or names is not None
            else None,
            devices=None
            if drivers is None
            else device_managers.DeviceManager(
                env,
                client,
                drivers,
                recorder,
                self._has_pod,
                of_groups=bool(config.get("claimsOfGroups")),
            ),
            pressures=self._pressures_of,
            programs=residents.Programs(_allocatable(node.wanted())) if config.get("programs") else None,
        )
        declared = settings.configuration.feature_gates.declared
        if len(declared) < len(declared_features.KUBELET):
            self.pods.arrivals.features = declared
        images.start(given.status.images, is_new=boot.is_new)

    # Methods, not functions within, which would keep a cell for each name that they use.

    def _arrivals(
        self,
        kind: type[arrivals.Arrivals],
        fresh_node: Callable[[], Awaitable[Any]],
        on_preempted: Callable[[], None],
        usage: predicates.NodeClaims,
        host: arrivals.ArrivalHost,
    ) -> arrivals.Arrivals:
        return kind(
            self._env,
            self._node.name,
            usage,
            host,
            fresh_node,
            refuses=self._refusal,
            on_preempted=on_preempted,
            preempts_for_all=bool(self._config.get("preemptsForAll", False)),
            recorder=self._recorder,
        )

    def _refusal(self, pod: core_v1_pb2.Pod) -> predicates.Decision | None:
        return self.pressures.admit(pod)

    def _has_pod(self, uid: str) -> bool:
        return uid in self.pods.by_uid

    def _pressures_of(self, pods: pod_workers.PodWorkers) -> eviction_loops.EvictionLoop | eviction_loops.LateLoop:
        self.pods = pods
        is_late = self._are_late and eviction_loops.EvictionLoop.leaves_out
        self.pressures = eviction_loops.LateLoop(self._pressures) if is_late else self._pressures()
        return self.pressures

    def _pressures(self) -> eviction_loops.EvictionLoop:
        node = self._node
        set_pressures, images = node.set_pressures, self._images
        return eviction_loops.EvictionLoop(
            self._env, node.wanted(), self._config, self.pods, set_pressures, images, self._recorder
        )

    @late
    def static_pods(self) -> static_pods.StaticPods:
        return static_pods.StaticPods(self._env, self._client, self._config.get("staticPods", ()), self.pods)

    @late
    def shutdowns(self) -> shutdowns.Shutdowns:
        groups = self._settings.configuration.shutdown
        return shutdowns.Shutdowns(self._env, groups, self._node.wanted, self._recorder, self.pods, self._close)

    def see_node(self, node: core_v1_pb2.Node) -> None:
        """The Node by which pods are admitted from now on."""
        self.pods.arrivals.node = predicates.NodeView(node)

    def _close(self) -> None:
        """The machine is about to go off."""
        self.pods.arrivals.closed = shutdowns.NOT_ADMITTED
        self._node.set_not_ready(shutdowns.NOT_READY_MESSAGE)

    def _on_images(self) -> None:
        self._node.images_changed()
        self.pressures.note()
