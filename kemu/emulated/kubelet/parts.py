"""The parts of a kubelet that deal with pods: workers, admission, node pressure, static pods, shutdowns of the machine.

They are as large as the rest of the kubelet, and do nothing as long as the node has no pod and nothing of its own to
watch (:func:`are_needed`). So the kubelet builds them when the first pod comes: most nodes of a very large cluster wait
for theirs for long.
"""

from __future__ import annotations

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
from kemu.emulated.objects.pods import declared_features
from kemu.emulated.settings.declared import restored
from kemu.messages.k8s import core_v1_pb2
from kemu.runtime.env import Env


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
    ) -> None:
        """``config``: of the actor. ``drivers``: of its devices; None: no pod of this cluster can claim any.
        ``up_since_ns``: when the kubelet started. ``fresh_node`` and ``on_preempted``: see
        :class:`kemu.emulated.kubelet.admission.arrivals.Arrivals`."""
        self._node = node
        varied, wanted = variants.active(config), node.wanted()
        tells_all = bool(wanted.spec.podCIDR)
        images = stores.Images(env, config.get("images") or {}, self._on_images)
        storage = config.get("storage")
        stated = config.get("references")
        names = None if stated is None else references.Names(env, client, restored(References, stated))

        def pressures_of(pods: pod_workers.PodWorkers) -> eviction_loops.EvictionLoop:
            self.pressures = eviction_loops.EvictionLoop(
                env, wanted, config, pods, node.set_pressures, images, recorder
            )
            return self.pressures

        self.pods = variants.choose(pod_workers.PodWorkers, varied)(
            env,
            client,
            settings,
            node.name,
            lambda usage, host: variants.choose(arrivals.Arrivals, varied)(
                env,
                node.name,
                usage,
                host,
                fresh_node,
                refuses=lambda pod: self.pressures.admit(pod),
                on_preempted=on_preempted,
                preempts_for_all=bool(config.get("preemptsForAll", False)),
                recorder=recorder,
            ),
            boot,
            images,
            config.get("podStatuses") or status_managers.EXACT,
            up_since_ns,
            recorder=recorder,
            boxes=sandboxes.Sandboxes(wanted) if tells_all else None,
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
                lambda uid: uid in self.pods.by_uid,
                of_groups=bool(config.get("claimsOfGroups")),
            ),
            pressures=pressures_of,
            programs=residents.Programs(_allocatable(wanted)) if config.get("programs") else None,
        )
        declared = settings.configuration.feature_gates.declared
        if len(declared) < len(declared_features.KUBELET):
            self.pods.arrivals.features = declared
        self.static_pods = static_pods.StaticPods(env, client, config.get("staticPods", ()), self.pods)
        self.shutdowns = shutdowns.Shutdowns(
            env, settings.configuration.shutdown, node.wanted, recorder, self.pods, self._close
        )
        images.start(wanted.status.images, is_new=boot.is_new)

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
