"""The kubelet's own Node: registers it, reports its status, and keeps its lease
(:mod:`kemu.emulated.kubelet.node.leases`).

Heartbeats are the renewals of the lease (every 10 s by default) and the reports of an unchanged status (every 5
minutes). An idle node states them (:mod:`kemu.emulated.objects.heartbeats`) and sleeps, where it may. Nothing polls: a
changed status is reported at the next of the moments at which a real kubelet would look. Heartbeats that are sent are
background timers, so they do not keep a run alive.

A report is a patch of what is the kubelet's: it meets no conflict, and the conditions of others stay. Mirrors
``pkg/kubelet`` (``tryUpdateNodeStatus``, ``nodestatus``) and ``PatchNodeStatus`` of ``component-helpers``.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping
from typing import Any

from kemu import errors
from kemu.emulated.client import clients, informers, recorders, retries
from kemu.emulated.kubelet.node import boots, leases
from kemu.emulated.kubelet.settings import kubelet_configurations
from kemu.emulated.objects import heartbeats, meta
from kemu.messages.k8s import coordination_v1_pb2, core_v1_pb2
from kemu.messages.k8s.objects import KubernetesObject
from kemu.runtime.env import SECOND_NS, Env

IMAGES_EVERY_NS = 30 * SECOND_NS
"""How old the list of images may be of which a report tells (``imageCache`` of ``pkg/kubelet/images``)."""

_PRESSURES = {
    "MemoryPressure": (
        ("False", "KubeletHasSufficientMemory", "kubelet has sufficient memory available"),
        ("True", "KubeletHasInsufficientMemory", "kubelet has insufficient memory available"),
    ),
    "DiskPressure": (
        ("False", "KubeletHasNoDiskPressure", "kubelet has no disk pressure"),
        ("True", "KubeletHasDiskPressure", "kubelet has disk pressure"),
    ),
    "PIDPressure": (
        ("False", "KubeletHasSufficientPID", "kubelet has sufficient PID available"),
        ("True", "KubeletHasInsufficientPID", "kubelet has insufficient PID available"),
    ),
}
"""Status, reason and message of each condition without and with its cause."""
_READY = ("Ready", "True", "KubeletReady", "kubelet is posting ready status")
_NOT_READY = ("Ready", "False", "KubeletNotReady")

REBOOTED = "Rebooted"
"""Reason of the event when a Node is found with another boot id."""


@functools.lru_cache(16)
def _new_conditions(
    conditions: tuple[tuple[str, str, str, str], ...], now_ns: int
) -> tuple[core_v1_pb2.NodeCondition, ...]:
    """Those of a new Node: many are made in one instant."""
    status = core_v1_pb2.NodeStatus()
    for condition_type, value, reason, message in conditions:
        meta.set_condition(status.conditions, condition_type, value, reason, message, now_ns)
    for condition in status.conditions:
        meta.set_time(condition.lastHeartbeatTime, now_ns)
    return tuple(status.conditions)


def _no_images(most: int) -> list[core_v1_pb2.ContainerImage]:
    return []


class OwnNode:
    """``get()`` is the Node as the watch last brought it."""

    __slots__ = (
        "_boot",
        "_calms",
        "_client",
        "_clock",
        "_config",
        "_env",
        "_given",
        "_images",
        "_images_ns",
        "_images_timer",
        "_informer",
        "_news",
        "_parsed",
        "_phase_ns",
        "_pressures",
        "_ready",
        "_reports",
        "_started",
        "_statement",
        "_status_ns",
        "_status_timer",
        "_told",
        "lease",
        "name",
        "recorder",
        "view_is_old",
    )

    def __init__(
        self,
        env: Env,
        client: clients.Client,
        config: kubelet_configurations.Settings,
        node: bytes,
        standing: Mapping[str, Any] | None = None,
        boot: boots.Boot = boots.BEFORE,
        events: str = recorders.NOTABLE,
    ) -> None:
        """``node``: a serialised Node, what shall be registered. ``standing``: see :class:`leases.Calms`. ``events``:
        which event objects the kubelet writes (:data:`kemu.emulated.client.recorders.LEVELS`)."""
        self._env = env
        self._clock = env.clock
        self._client = client
        self._config = config
        self._given = node
        self._parsed: core_v1_pb2.Node | None = None
        """The same."""
        self._boot = boot
        self._calms = leases.calms(standing, self._epoch_ns)
        self._phase_ns = 0
        """At which point of its interval this node looks at its status."""
        self._reports: heartbeats.Schedule | None = None
        """The schedule of a status that does not change; None: it is not reported."""
        self._statement: heartbeats.Statement | None = None
        """What the latest report says of the next ones."""
        self._status_ns = 0
        """When the timer is set to."""
        self._status_timer: Any = None
        self._started = False
        """Heartbeats have begun."""
        self._informer: informers.Informer[core_v1_pb2.Node] | None = None
        self.name: str = core_v1_pb2.Node.FromString(node).metadata.name
        self.recorder = recorders.Recorder(env, client, "kubelet", self.name, events)
        """Recorder of the whole kubelet."""
        self.view_is_old = True
        """The Node has changed since this was last reset."""
        self._pressures: tuple[str, ...] = ()
        self._ready = _READY
        self._images: Callable[[int], list[core_v1_pb2.ContainerImage]] = _no_images
        self._told: list[core_v1_pb2.ContainerImage] = []
        """The images of which reports tell."""
        self._images_ns = 0
        """When the kubelet first looked which images there are."""
        self._images_timer: Any = None
        self._news = False
        """The next report brings something new: it is waited for."""
        # The client of heartbeats has a timeout (cmd/kubelet/app: heartbeatClientConfig).
        stated = config.configuration
        patience_ns = min(stated.node_status_update_frequency_ns, stated.node_lease_duration_seconds * SECOND_NS)
        client.be_impatient((coordination_v1_pb2.Lease, core_v1_pb2.Node), patience_ns)
        self.lease = leases.OwnLease(env, client, config, self.name, self._calms, self.get)

    def get(self) -> core_v1_pb2.Node:
        assert self._informer is not None, "the node is not registered yet"
        return self._informer.store.get(self.name) or self.wanted()

    async def read(self) -> core_v1_pb2.Node:
        """From the API server, as it is now; what the watch last brought when it has no such Node."""
        try:
            return await self._read()
        except errors.NotFound:
            return self.get()

    async def _read(self) -> core_v1_pb2.Node:
        return await retries.patiently(self._env, lambda: self._client.get("nodes", self.name))

    # --- registration ------------------------------------------------------------------------------------------------

    async def register(self) -> bool:
        """Create the Node, or take over the one that is there, and begin to watch it. The status that this kubelet was
        given wins, labels and taints of an existing Node stay. Returns whether it was created."""
        created = await self._create()
        node = created or await self._take_over()
        self._informer = informers.Informer(
            self._client, "nodes", field_selector=f"metadata.name={self.name}", handler=self, compact=True
        )
        self._informer.start_from([node], int(node.metadata.resourceVersion))
        return created is not None

    async def _create(self) -> core_v1_pb2.Node | None:
        """None when it is there already."""
        try:
            wanted = self.wanted()
            del wanted.status.images[:]
            wanted.status.images.extend(self._told)
            self._state(wanted)
            # Thousands of kubelets may wait here at once, and a message takes five times the memory of its bytes.
            data = wanted.SerializeToString(deterministic=True)
            del wanted
            create = functools.partial(self._client.create_serialised, core_v1_pb2.Node, "", data)
            return await retries.patiently(self._env, create)
        except errors.AlreadyExists:
            return None

    async def _take_over(self) -> core_v1_pb2.Node:
        wanted, node = self.wanted(), await self._read()
        before = node.status.nodeInfo.bootID
        if self._boot.id and before and before != self._boot.id:
            note = f"Node {self.name} has been rebooted, boot id: {self._boot.id}"
            self.recorder.event(node, recorders.WARNING, REBOOTED, REBOOTED, note)
        patch, removed = self._patch(node)
        for resources, given in (
            (patch.status.capacity, wanted.status.capacity),
            (patch.status.allocatable, wanted.status.allocatable),
        ):
            for name in sorted(given):
                resources[name].CopyFrom(given[name])
        patch.status.declaredFeatures.extend(wanted.status.declaredFeatures)
        self._set_boot(patch)
        return await retries.patiently(self._env, lambda: self._send(patch, removed))

    def given(self) -> core_v1_pb2.Node:
        """The Node that this kubelet was given, as it was: to be read until :meth:`wanted` is called."""
        if self._parsed is None:
            self._parsed = core_v1_pb2.Node.FromString(self._given)
        return self._parsed

    def as_given(self) -> core_v1_pb2.Node:
        """The same, to be read now: it is not kept."""
        return self._parsed or core_v1_pb2.Node.FromString(self._given)

    def wanted(self) -> core_v1_pb2.Node:
        """The Node that this kubelet was given, complete."""
        node = self.given()
        self._parsed = None
        labels = node.metadata.labels
        for label, value in (
            ("kubernetes.io/hostname", self.name), ("kubernetes.io/os", "linux"), ("kubernetes.io/arch", "amd64"),
        ):  # fmt: skip
            if label not in labels:
                labels[label] = value
        status = node.status
        if "pods" not in status.allocatable and "pods" not in status.capacity:
            status.allocatable["pods"].string = str(self._config.configuration.max_pods)
        for here, there in ((status.capacity, status.allocatable), (status.allocatable, status.capacity)):
            for name in sorted(there):
                if name not in here:
                    here[name].CopyFrom(there[name])
        del status.declaredFeatures[:]
        status.declaredFeatures.extend(self._config.configuration.feature_gates.declared)
        self._set_boot(node)
        self._set_conditions(node)
        return node

    def _set_boot(self, node: core_v1_pb2.Node) -> None:
        if self._boot.id:
            node.status.nodeInfo.bootID = self._boot.id

    def set_pressures(self, conditions: tuple[str, ...]) -> None:
        """The eviction manager has found these, and no others."""
        self._pressures = conditions
        self._changed()

    def watch_images(self, images: Callable[[int], list[core_v1_pb2.ContainerImage]]) -> None:
        """Before :meth:`register`. ``images``: which there are now, at most so many (-1: all)."""
        self._images = images
        self._images_ns = self._clock.now_ns()
        self._told = images(self._config.configuration.node_status_max_images)

    def images_changed(self) -> None:
        """The kubelet looks for new ones every 30 s."""
        if self._images_timer is None:
            rounds = -((self._images_ns - self._clock.now_ns()) // IMAGES_EVERY_NS)
            when_ns = self._images_ns + rounds * IMAGES_EVERY_NS
            self._images_timer = self._clock.call_at_ns(when_ns, self._look_at_images)

    def _look_at_images(self) -> None:
        self._images_timer = None
        found = self._images(self._config.configuration.node_status_max_images)
        if found != self._told:
            self._told = found
            self._changed()

    def _changed(self) -> None:
        """The status is to be reported."""
        if self._started:
            self.report_soon()
        else:
            self._env.spawn(self._report(), "report node")

    def set_not_ready(self, message: str) -> None:
        """For the rest of this kubelet's life; reported at once."""
        self._ready = (*_NOT_READY, message)
        self._env.spawn(self._report(), "report node")

    def _conditions(self) -> list[tuple[str, str, str, str]]:
        """Type, status, reason and message of each as they are now."""
        pressures = self._pressures
        return [(name, *texts[name in pressures]) for name, texts in _PRESSURES.items()] + [self._ready]

    def _set_conditions(self, node: core_v1_pb2.Node) -> None:
        now_ns = self._clock.unix_ns()
        if not node.status.conditions:
            node.status.conditions.extend(_new_conditions(tuple(self._conditions()), now_ns))
            return
        for condition_type, status, reason, message in self._conditions():
            meta.set_condition(node.status.conditions, condition_type, status, reason, message, now_ns)
        for condition in node.status.conditions:
            if condition.type in heartbeats.CONDITIONS:
                meta.set_time(condition.lastHeartbeatTime, now_ns)

    # --- heartbeats --------------------------------------------------------------------------------------------------

    def plan_heartbeats(self) -> None:
        """Each node has moments of its own. Comes before :meth:`register`, which may state them."""
        self._phase_ns = self._clock.now_ns() + int(
            self._env.random.random() * self._config.configuration.node_status_update_frequency_ns
        )
        self._expect_reports(self._phase_ns)
        self.lease.plan()

    def start_heartbeats(self) -> None:
        """From now on."""
        self._started = True
        self._wait_for_reports()
        self.lease.start()

    @property
    def _epoch_ns(self) -> int:
        """In real time it is known for good when set-up ends."""
        return self._clock.epoch_unix_s * SECOND_NS

    def _expect_reports(self, latest_ns: int) -> None:
        """``latest_ns``: of the latest report."""
        every = self._config.configuration.node_status_report_frequency_ns
        self._reports = heartbeats.Schedule(self._epoch_ns + latest_ns + every, every)

    def _state(self, node: core_v1_pb2.Node) -> None:
        if self._reports is not None:
            self._statement = self._calms.statement(self._reports, self._clock.now_ns())
        heartbeats.state(node, self._statement)

    def _wait_for_reports(self) -> None:
        """Until the next report of an unchanged status that has to be sent."""
        if self._reports is None:
            return
        begin = self._epoch_ns + self._clock.now_ns()
        if self._statement is not None:
            if self._statement.until is None:
                self._stop_timer()
                return
            begin = max(begin, self._statement.until)
        self._report_at(self._reports.next_from(begin) - self._epoch_ns)

    def _report_at(self, when_ns: int, *, background: bool = True) -> None:
        self._stop_timer()
        self._status_ns = when_ns
        self._status_timer = self._clock.call_at_ns(when_ns, self._report_due, background=background)

    def _stop_timer(self) -> None:
        if self._status_timer is not None:
            self._status_timer.cancel()
            self._status_timer = None

    def _report_due(self) -> None:
        self._news = False
        if self._reports is not None:
            self._expect_reports(self._clock.now_ns())
        self._statement = None
        self._wait_for_reports()
        self._env.spawn(self._report(), "report node")

    def report_soon(self) -> None:
        """The status has changed, or another client has written what is not so: report at the next look."""
        interval_ns = int(self._config.configuration.node_status_update_frequency_ns)
        now_ns = self._clock.now_ns()
        next_ns = self._phase_ns + ((now_ns - self._phase_ns) // interval_ns + 1) * interval_ns
        if not self._news or next_ns < self._status_ns:
            self._news = True
            if self._reports is not None:
                next_ns = min(next_ns, self._reports.next_from(self._epoch_ns + now_ns) - self._epoch_ns)
            self._report_at(next_ns, background=False)

    async def _report(self) -> None:
        try:
            await self._send(*self._patch(self.get()))
        except errors.ApiError:
            self.report_soon()
            return
        if self._statement is not None and not self._news:
            self._wait_for_reports()

    def _patch(self, known: core_v1_pb2.Node) -> tuple[core_v1_pb2.Node, core_v1_pb2.Node | None]:
        """What a report sets, and what it takes away, where the Node is as is ``known``."""
        patch = core_v1_pb2.Node()
        for condition in known.status.conditions:
            if condition.type in heartbeats.CONDITIONS:
                patch.status.conditions.append(condition)
        self._set_conditions(patch)
        self._state(patch)
        removed = core_v1_pb2.Node()
        if self._statement is None and heartbeats.ANNOTATION in known.metadata.annotations:
            removed.metadata.annotations[heartbeats.ANNOTATION] = ""
        if list(known.status.images) != self._told:
            removed.status.images.add()
            patch.status.images.extend(self._told)
        return patch, removed if removed.ByteSize() else None

    async def _send(self, patch: core_v1_pb2.Node, removed: core_v1_pb2.Node | None) -> core_v1_pb2.Node:
        data = patch.SerializeToString(deterministic=True)
        gone = b"" if removed is None else removed.SerializeToString(deterministic=True)
        return await self._client.patch_message(core_v1_pb2.Node, self.name, "", data, "status", removed=gone)

    # --- called by the informer --------------------------------------------------------------------------------------

    def on_add(self, obj: KubernetesObject) -> None:
        self.view_is_old = True

    def on_update(self, old: core_v1_pb2.Node, new: core_v1_pb2.Node) -> None:
        self.view_is_old = True
        if self._started and not self._is_as_reported(new):
            self.report_soon()

    def on_delete(self, old: core_v1_pb2.Node) -> None:
        """The Node was removed; a kubelet does not register twice."""

    def _is_as_reported(self, node: core_v1_pb2.Node) -> bool:
        """Whether conditions and images are this kubelet's, or another has written over them (node lifecycle:
        Unknown)."""
        if list(node.status.images) != self._told:
            return False
        there: Mapping[str, str] = {condition.type: condition.status for condition in node.status.conditions}
        return all(there.get(condition_type) == status for condition_type, status, _, _ in self._conditions())
