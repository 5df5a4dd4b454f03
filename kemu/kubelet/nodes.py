"""The kubelet's own Node: registers it, reports its status, and renews its lease.

An idle node wakes up for its lease alone (every 10 s by default) and every 5 minutes for its status. Nothing polls: a
changed status is reported at the next of the moments at which a real kubelet would look. Heartbeats are background
timers, so they do not keep a run alive.
"""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Mapping
from typing import Any

from kemu import errors
from kemu.client import clients, informers, retries
from kemu.k8s import coordination_v1_pb2, core_v1_pb2
from kemu.kubelet import settings
from kemu.objects import meta
from kemu.runtime.env import SECOND_NS, Env

LEASE_NAMESPACE = "kube-node-lease"
JITTER = 0.04
"""Heartbeats come up to so much later, as a part of their interval (``wait.JitterUntil`` in the kubelet)."""

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


class OwnNode:
    """``get()`` is the Node as the watch last brought it."""

    __slots__ = (
        "_client",
        "_clock",
        "_config",
        "_env",
        "_epoch_ns",
        "_given",
        "_informer",
        "_lease",
        "_news",
        "_phase_ns",
        "_pressures",
        "_renewing",
        "_status_ns",
        "_status_timer",
        "name",
        "view_is_old",
    )

    def __init__(self, env: Env, client: clients.Client, config: settings.Settings, node: bytes) -> None:
        """``node``: a serialised Node, what shall be registered."""
        self._env = env
        self._clock = env.clock
        self._client = client
        self._config = config
        self._epoch_ns = env.clock.epoch_unix_s * SECOND_NS
        self._given = node
        self._lease: bytes = b""
        self._renewing = False
        self._phase_ns = 0
        """At which point of its interval this node looks at its status."""
        self._status_ns = 0
        """When the status is reported next."""
        self._status_timer: Any = None
        self._informer: informers.Informer | None = None
        self.name: str = core_v1_pb2.Node.FromString(node).metadata.name
        self.view_is_old = True
        """The Node has changed since somebody last reset this."""
        self._pressures: tuple[str, ...] = ()
        self._news = False
        """The next report brings something new: it is waited for."""

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
        node: core_v1_pb2.Node = await retries.patiently(self._env, lambda: self._client.get("nodes", self.name))
        return node

    # --- registration ------------------------------------------------------------------------------------------------

    async def register(self) -> None:
        """Create the Node, or take over the one that is there, and begin to watch it. The status that this kubelet was
        given wins, labels and taints of an existing Node stay."""
        node = await self._create() or await self._take_over()
        self._informer = informers.Informer(
            self._client, "nodes", field_selector=f"metadata.name={self.name}", handler=self
        )
        self._informer.start_from([node], int(node.metadata.resourceVersion))

    async def _create(self) -> core_v1_pb2.Node | None:
        """None when it is there already."""
        try:
            return await retries.patiently(self._env, lambda: self._client.create(self.wanted()))
        except errors.AlreadyExists:
            return None

    async def _take_over(self) -> core_v1_pb2.Node:
        wanted = self.wanted()
        while True:
            node = await self._read()
            for resources, given in (
                (node.status.capacity, wanted.status.capacity),
                (node.status.allocatable, wanted.status.allocatable),
            ):
                for name in sorted(given):
                    resources[name].CopyFrom(given[name])
            self._set_conditions(node)
            with contextlib.suppress(errors.Conflict):
                return await retries.patiently(self._env, functools.partial(self._client.update_status, node))

    def wanted(self) -> core_v1_pb2.Node:
        """The Node that this kubelet was given, complete."""
        node = core_v1_pb2.Node.FromString(self._given)
        labels = node.metadata.labels
        for label, value in (
            ("kubernetes.io/hostname", self.name), ("kubernetes.io/os", "linux"), ("kubernetes.io/arch", "amd64"),
        ):  # fmt: skip
            if label not in labels:
                labels[label] = value
        status = node.status
        if "pods" not in status.allocatable and "pods" not in status.capacity:
            status.allocatable["pods"].string = str(self._config.max_pods)
        for here, there in ((status.capacity, status.allocatable), (status.allocatable, status.capacity)):
            for name in sorted(there):
                if name not in here:
                    here[name].CopyFrom(there[name])
        self._set_conditions(node)
        return node

    def set_pressures(self, conditions: tuple[str, ...]) -> None:
        """The eviction manager has found these, and no others."""
        self._pressures = conditions
        if self._status_timer is not None:
            self.report_soon()
        else:
            self._env.spawn(self._report(), "report node")

    def _conditions(self) -> list[tuple[str, str, str, str]]:
        """Type, status, reason and message of each as they are now."""
        pressures = self._pressures
        return [(name, *texts[name in pressures]) for name, texts in _PRESSURES.items()] + [_READY]

    def _set_conditions(self, node: core_v1_pb2.Node) -> None:
        now_ns = self._epoch_ns + self._clock.now_ns()
        for condition_type, status, reason, message in self._conditions():
            meta.set_condition(node.status.conditions, condition_type, status, reason, message, now_ns)
        for condition in node.status.conditions:
            meta.set_time(condition.lastHeartbeatTime, now_ns)

    # --- heartbeats --------------------------------------------------------------------------------------------------

    def start_heartbeats(self) -> None:
        """From now on, each node at moments of its own."""
        random, now_ns = self._env.random, self._clock.now_ns()
        self._phase_ns = now_ns + int(random.random() * self._config.status_update_s * SECOND_NS)
        self._report_at(self._phase_ns + int(self._config.status_report_s * SECOND_NS))
        self._renew_in(random.random() * self._config.lease_duration_s / 4)

    def _renew_in(self, delay_s: float) -> None:
        when_ns = self._clock.now_ns() + int(delay_s * SECOND_NS)
        self._clock.call_at_ns(when_ns, self._renew_due, background=True)

    def _renew_due(self) -> None:
        interval_s = self._config.lease_duration_s / 4
        self._renew_in(interval_s * (1 + JITTER * self._env.random.random()))
        if not self._renewing:
            self._renewing = True
            self._env.spawn(self._renew(), "renew lease")

    async def _renew(self) -> None:
        """One attempt; the next one comes with the next heartbeat."""
        try:
            await self.renew_lease()
        except errors.ApiError:
            # Whatever it is, a kubelet goes on: the node's lease just grows older.
            self._lease = b""
        self._renewing = False

    async def renew_lease(self) -> None:
        """Create the lease or renew it. Raises :class:`kemu.errors.ApiError`."""
        if self._lease:
            lease = await self._client.update(self._renewed(coordination_v1_pb2.Lease.FromString(self._lease)))
        else:
            lease = coordination_v1_pb2.Lease()
            lease.metadata.name = self.name
            lease.metadata.namespace = LEASE_NAMESPACE
            lease.metadata.ownerReferences.append(meta.owner_reference(self.get(), "v1", "Node", controller=False))
            try:
                lease = await self._client.create(self._renewed(lease))
            except errors.AlreadyExists:
                there = await self._client.get("leases", self.name, LEASE_NAMESPACE)
                lease = await self._client.update(self._renewed(there))
        # Kept as bytes: they take a tenth of the memory, and there is one for every node.
        self._lease = lease.SerializeToString(deterministic=True)

    def _renewed(self, lease: coordination_v1_pb2.Lease) -> coordination_v1_pb2.Lease:
        lease.spec.holderIdentity = self.name
        lease.spec.leaseDurationSeconds = self._config.lease_duration_s
        meta.set_time(lease.spec.renewTime, self._epoch_ns + self._clock.now_ns())
        return lease

    def _report_at(self, when_ns: int, *, background: bool = True) -> None:
        if self._status_timer is not None:
            self._status_timer.cancel()
        self._status_ns = when_ns
        self._status_timer = self._clock.call_at_ns(when_ns, self._report_due, background=background)

    def _report_due(self) -> None:
        self._news = False
        self._report_at(self._clock.now_ns() + int(self._config.status_report_s * SECOND_NS))
        self._env.spawn(self._report(), "report node")

    def report_soon(self) -> None:
        """The status has changed, or somebody else has written what is not so: report at the next look."""
        interval_ns = int(self._config.status_update_s * SECOND_NS)
        since_ns = self._clock.now_ns() - self._phase_ns
        next_ns = self._phase_ns + (since_ns // interval_ns + 1) * interval_ns
        if next_ns < self._status_ns or not self._news:
            self._news = True
            self._report_at(min(next_ns, self._status_ns), background=False)

    async def _report(self) -> None:
        node = core_v1_pb2.Node()
        node.CopyFrom(self.get())
        try:
            while True:
                self._set_conditions(node)
                try:
                    await self._client.update_status(node)
                    return
                except errors.Conflict:
                    node = await self._client.get("nodes", self.name)
        except errors.ApiError:
            self.report_soon()

    # --- called by the informer --------------------------------------------------------------------------------------

    def on_add(self, obj: Any) -> None:
        self.view_is_old = True

    def on_update(self, old: Any, new: Any) -> None:
        self.view_is_old = True
        if self._status_timer is not None and not self._is_as_reported(new):
            self.report_soon()

    def on_delete(self, old: Any) -> None:
        """Somebody removed the Node; a kubelet does not register twice."""

    def _is_as_reported(self, node: core_v1_pb2.Node) -> bool:
        """Whether the conditions are this kubelet's, or another has written over them (node lifecycle: Unknown)."""
        there: Mapping[str, str] = {condition.type: condition.status for condition in node.status.conditions}
        return all(there.get(condition_type) == status for condition_type, status, _, _ in self._conditions())
