"""Which of the pods that arrive a node takes: one after the other, in the order of their arrival.

Between :mod:`kemu.kubelet.pods`, which brings the pods and carries the verdicts out, and :mod:`kemu.kubelet.admission`,
which has the checks. A pod that cannot be judged yet (its Node is being read) holds up all that came after it.
Mirrors the admission in ``HandlePodAdditions`` of ``pkg/kubelet``.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any, Protocol

from kemu.kubelet import admission
from kemu.kubelet.workers import WAITING, Worker
from kemu.runtime.env import Env


class Host(Protocol):
    """Who carries the verdicts out. ``worker.start_ns`` is set before."""

    def admitted(self, worker: Worker, claim: admission.Claim) -> None:
        """The pod may start, and counts on the node from now on, with this claim."""

    def refused(self, worker: Worker, decision: admission.Decision) -> None:
        """The pod fails without having started."""


class Arrivals:
    """``fresh_node`` reads the Node from the API server, for a second look before affinity alone refuses a pod."""

    def __init__(
        self, env: Env, node_name: str, usage: admission.Usage, host: Host, fresh_node: Callable[[], Awaitable[Any]]
    ) -> None:
        """``usage``: what counts on the node; read here, kept by the host."""
        self.node: admission.NodeView | None = None
        """What admission goes by; None: not known."""
        self._env = env
        self._clock = env.clock
        self._node_name = node_name
        self._usage = usage
        self._host = host
        self._fresh_node = fresh_node
        self._waiting: list[Worker] = []
        """Not yet judged, because the Node is being read for the first one of them."""
        self._reading = False

    def add(self, worker: Worker) -> None:
        """A pod to judge; it is WAITING. The verdict may come before this returns."""
        self._waiting.append(worker)
        self._judge()

    def remove(self, worker: Worker) -> None:
        """A pod that waits shall not be judged any more."""
        self._waiting.remove(worker)

    def _judge(self) -> None:
        """Decide about those that wait, in the order of their arrival."""
        waiting = self._waiting
        while waiting and not self._reading:
            worker = waiting[0]
            claim = None
            decision = admission.precheck(self.node, worker.pod)
            if decision is None:
                assert self.node is not None
                claim = admission.claim_of(worker.pod)
                found = admission.failures(self.node, self._usage, worker.pod, claim)
                if admission.needs_fresh_node(found):
                    self._reading = True
                    self._env.spawn(self._judge_again(worker, claim), f"read node for {worker.key}")
                    return
                decision = admission.decide(found)
            del waiting[0]
            self._decided(worker, decision, claim)

    async def _judge_again(self, worker: Worker, claim: admission.Claim) -> None:
        """The first of those that wait, against the Node as it is now."""
        node = await self._fresh_node()
        self._reading = False
        if worker.state == WAITING:
            self._waiting.remove(worker)
            found = admission.failures(admission.NodeView(node, patched=False), self._usage, worker.pod, claim)
            self._decided(worker, admission.decide(found), claim)
        self._judge()

    def _decided(self, worker: Worker, decision: admission.Decision, claim: admission.Claim | None) -> None:
        worker.start_ns = self._clock.now_ns()
        self._env.log(
            "kubelet.admit",
            {
                "pod": worker.key,
                "uid": worker.uid,
                "node": self._node_name,
                "start": worker.seen_ns,
                "ok": decision.admitted,
                "reason": decision.reason,
                "message": decision.message,
            },
        )
        if decision.admitted:
            assert claim is not None
            self._host.admitted(worker, claim)
        else:
            self._host.refused(worker, decision)
