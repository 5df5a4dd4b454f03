"""Graceful node shutdown: the kubelet delays the shutdown of its machine until its pods have ended, group by group.

The component that shuts the machine down calls ``Shutdown`` of the service ``kemu.v1.Kubelet``, as systemd-logind
signals a real kubelet, and waits for the answer, for the sum of all groups at most. From the call on the node is not
ready and takes no pod; pods end from the lowest priority to the highest, each group within a time of its own. Without
settings (the default) the kubelet offers no such service.

Mirrors ``pkg/kubelet/nodeshutdown`` and the checks of ``ValidateKubeletConfiguration``.
"""

from __future__ import annotations

import asyncio
import bisect
from collections.abc import Callable, Iterable, Sequence
from typing import Any, Protocol

import grpc

from kemu.emulated.client import recorders
from kemu.emulated.kubelet.admission import predicates
from kemu.emulated.kubelet.pods import statuses
from kemu.emulated.kubelet.pods.workers import Worker
from kemu.emulated.kubelet.settings import shutdown_groups
from kemu.emulated.kubelet.settings.shutdown_groups import Group
from kemu.messages.v1 import kubelet_pb2, kubelet_pb2_grpc
from kemu.runtime.env import SECOND_NS, Env
from kemu.runtime.runlog.events import PodShutDown, ShutdownBegun, ShutdownOver

REASON = "Terminated"
MESSAGE = "Pod was terminated in response to imminent node shutdown."
CONDITION_REASON = "TerminationByKubelet"
EVENT_REASON = "NodeShutdown"
NOT_ADMITTED = predicates.Decision(False, EVENT_REASON, "Pod was rejected as the node is shutting down.")
NOT_READY_MESSAGE = "node is shutting down"
FAILURE = statuses.Failure(REASON, MESSAGE, CONDITION_REASON, MESSAGE)

LEAST_WAIT_S = 10
"""The manager waits at least this long for a kill; else one and a half grace periods (``killPodNow``)."""


def grouped(groups: Sequence[Group], workers: Iterable[Worker]) -> list[list[Worker]]:
    """For each group its pods. A pod below the lowest priority belongs to the lowest group."""
    found: list[list[Worker]] = [[] for _ in groups]
    priorities = [group.priority for group in groups]
    for worker in workers:
        place = bisect.bisect_right(priorities, worker.pod.spec.priority) - 1
        found[max(place, 0)].append(worker)
    return found


class ShutdownHost(Protocol):
    """The pods of the node."""

    def active(self) -> list[Worker]: ...

    def kill(
        self,
        worker: Worker,
        failure: statuses.Failure,
        gone: Callable[[], None] | None = None,
        grace_s: int | None = None,
    ) -> None: ...


class Shutdowns(kubelet_pb2_grpc.KubeletServicer):
    """Shutdowns of one kubelet. ``on_begin`` is called at once, before any pod ends."""

    def __init__(
        self,
        env: Env,
        groups: Sequence[Group],
        node: Callable[[], Any],
        recorder: recorders.Recorder,
        host: ShutdownHost,
        on_begin: Callable[[], None],
    ) -> None:
        """``node``: the Node; it is asked for at a shutdown only."""
        self._env = env
        self._groups = groups
        self._node = node
        self._recorder = recorder
        self._host = host
        self._on_begin = on_begin
        self._over: asyncio.Event | None = None
        """The end of the shutdown that is under way."""

    def offer(self) -> None:
        """From now on the kubelet can be told."""
        if self._groups:
            self._env.serve(kubelet_pb2_grpc.add_KubeletServicer_to_server, self)

    async def Shutdown(
        self, request: kubelet_pb2.ShutdownRequest, context: grpc.aio.ServicerContext
    ) -> kubelet_pb2.ShutdownResponse:
        if self._over is None:
            self._over = asyncio.Event()
            # A task of the kubelet's own: it goes on if the answer is not waited for any more.
            self._env.spawn(self._process(self._over), "graceful shutdown")
        await self._over.wait()
        return kubelet_pb2.ShutdownResponse()

    async def _process(self, over: asyncio.Event) -> None:
        node = self._node()
        name = node.metadata.name
        self._env.log(ShutdownBegun(node=name, requested_s=shutdown_groups.requested_s(self._groups)))
        note = "Shutdown manager detected shutdown event"
        self._recorder.event(node, recorders.NORMAL, EVENT_REASON, EVENT_REASON, note)
        self._on_begin()
        begun_ns = self._env.clock.now_ns()
        # The pods that run now: none is admitted later.
        for group, workers in zip(self._groups, grouped(self._groups, self._host.active()), strict=True):
            if workers:
                await self._end(name, group, workers)
        self._env.log(ShutdownOver(node=name, start=begun_ns))
        over.set()

    async def _end(self, node: str, group: Group, workers: list[Worker]) -> None:
        """All pods of a group together; not longer than the group has."""
        clock = self._env.clock
        now_ns = clock.now_ns()
        left = dict.fromkeys(worker.uid for worker in workers)
        done = asyncio.Event()

        def gone(uid: str) -> None:
            left.pop(uid, None)
            if not left:
                done.set()

        timers = [clock.call_at_ns(now_ns + group.grace_s * SECOND_NS, done.set)]
        for worker in workers:
            grace_s = min(worker.pod.spec.terminationGracePeriodSeconds, group.grace_s)
            self._env.log(
                PodShutDown(
                    pod=worker.key,
                    uid=worker.uid,
                    node=node,
                    priority=group.priority,
                    grace_s=grace_s,
                ),
            )
            wait_s = max(LEAST_WAIT_S, grace_s + grace_s // 2)
            timers.append(clock.call_at_ns(now_ns + wait_s * SECOND_NS, gone, worker.uid))
            self._host.kill(worker, FAILURE, lambda uid=worker.uid: gone(uid), grace_s)  # type: ignore[misc]
        await done.wait()
        for timer in timers:
            timer.cancel()
