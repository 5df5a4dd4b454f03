"""A Permit plugin and an extender that do what a recorded case tells them, as those of the recorder do."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from kemu.emulated.client import clients
from kemu.emulated.scheduler.extenders.servers import Extender, Servicer
from kemu.emulated.scheduler.framework.events import Event, Hint
from kemu.emulated.scheduler.framework.interfaces import Cycle, Handle, PermitPlugin
from kemu.emulated.scheduler.framework.statuses import ERROR, WAIT, Status, unresolvable, unschedulable
from kemu.messages.k8s import core_v1_pb2
from kemu.messages.v1 import extender_pb2_grpc
from kemu.runtime.env import SECOND_NS, Env

PERMIT = "kemu.dev/permit"


class ScriptedPermit(PermitPlugin):
    """The annotation ``kemu.dev/permit`` of a pod: ``reject``, or ``wait 10``, with ``allow 3`` or ``reject 3``."""

    def __init__(self, args: Mapping[str, Any], handle: Handle) -> None:
        super().__init__(args, handle)
        assert handle.clock is not None
        self._handle, self._clock = handle, handle.clock

    def events(self) -> Iterable[tuple[Event, Hint | None]]:
        return [(Event.ASSIGNED_POD_DELETE, None)]

    def permit(self, cycle: Cycle, node: str) -> tuple[Status | None, float]:
        words = cycle.message.metadata.annotations.get(PERMIT, "").split()
        if not words:
            return None, 0.0
        if words == ["reject"]:
            return unschedulable("not permitted"), 0.0
        if words[0] != "wait" or len(words) not in (2, 4):
            return Status(ERROR, (f"annotation {PERMIT}: {words}",)), 0.0
        if len(words) == 4:
            when_ns = self._clock.now_ns() + round(float(words[3]) * SECOND_NS)
            self._clock.call_at_ns(when_ns, self._decide, cycle.pod.uid, words[2])
        return Status(WAIT), float(words[1])

    def _decide(self, uid: str, what: str) -> None:
        waiting = self._handle.waiting.get(uid)
        if waiting is None:
            return
        if what == "allow":
            waiting.allow(self.name)
        else:
            waiting.reject(self.name, "permit denied")


class ScriptedExtender(Extender):
    """``refuses`` (reasons by node; ``hopeless``: preemption could not help), ``scores``, ``objects`` to victims."""

    def filter(self, pod: core_v1_pb2.Pod, node: core_v1_pb2.Node) -> Status | None:
        reason = self.args.get("refuses", {}).get(node.metadata.name)
        if reason is None:
            return None
        return unresolvable(reason) if self.args.get("hopeless") else unschedulable(reason)

    def prioritize(self, pod: core_v1_pb2.Pod, node: core_v1_pb2.Node) -> int:
        return int(self.args.get("scores", {}).get(node.metadata.name, 0))

    def preempt(self, pod: core_v1_pb2.Pod, node: core_v1_pb2.Node, victims: Sequence[Any]) -> Sequence[Any] | None:
        return None if node.metadata.name in self.args.get("objects", ()) else victims


class ScriptedExtenderActor:
    """Serves a :class:`ScriptedExtender`; config ``script``."""

    def __init__(self, env: Env, config: Mapping[str, Any]) -> None:
        self._env = env
        extender = ScriptedExtender(env, clients.Client(env, "nobody"), config["script"])
        env.serve(extender_pb2_grpc.add_ExtenderServicer_to_server, Servicer(extender))

    async def run(self) -> None:
        self._env.ready()
        await asyncio.get_running_loop().create_future()
