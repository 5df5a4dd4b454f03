"""Arrivals: pods are admitted or refused one after the other, in the order in which they arrive.

:mod:`kemu.emulated.kubelet.sync.pod_workers` brings the pods and carries the decisions out,
:mod:`kemu.emulated.kubelet.admission.predicates` has the checks. A pod that cannot be decided yet holds up all later
ones: the kubelet is reading its Node again, or is killing victims for it, one at a time, each with its own grace period
(:mod:`kemu.emulated.kubelet.admission.preemption` chooses them). Mirrors ``HandlePodAdditions`` of ``pkg/kubelet`` and
``evictPodsToFreeRequests`` of ``pkg/kubelet/preemption``, whose kills block: what was decided before them stands.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Collection, Iterable
from typing import Any, Protocol

from kemu.emulated.client import recorders
from kemu.emulated.kubelet.admission import devices, predicates, preemption
from kemu.emulated.kubelet.pods import claims, critical, statuses
from kemu.emulated.kubelet.pods.workers import WAITING, Worker
from kemu.messages.k8s import core_v1_pb2
from kemu.runtime.env import Env
from kemu.runtime.runlog.events import AdmissionDecided, PodPreempting


class ArrivalHost(Protocol):
    """Carries the decisions out. ``worker.start_ns`` is set before."""

    def admitted(self, worker: Worker, claim: claims.Claim) -> None:
        """The pod may start, and counts on the node from now on, with this claim."""

    def refused(self, worker: Worker, decision: predicates.Decision) -> None:
        """The pod fails without having started."""

    def active(self) -> Iterable[Worker]:
        """The pods that count on the node, terminating ones too, oldest first."""

    def kill(self, worker: Worker, failure: statuses.Failure, gone: Callable[[], None]) -> None:
        """Stop the containers of a pod, within its own grace period, and fail it. ``gone``: when there are none left;
        called at once if there are none now."""


_PREEMPTED = statuses.Failure(
    preemption.REASON, preemption.MESSAGE, preemption.CONDITION_REASON, preemption.CONDITION_MESSAGE, makes_room=True
)


class Arrivals:
    """``fresh_node`` reads the Node from the API server, for a second look before affinity alone refuses a pod."""

    def __init__(
        self,
        env: Env,
        node_name: str,
        usage: predicates.NodeClaims,
        host: ArrivalHost,
        fresh_node: Callable[[], Awaitable[Any]],
        *,
        refuses: Callable[[core_v1_pb2.Pod], predicates.Decision | None] = lambda pod: None,
        on_preempted: Callable[[], None] = lambda: None,
        preempts_for_all: bool = False,
        recorder: recorders.Recorder | None = None,
    ) -> None:
        """``usage``: what counts on the node; read here, kept by the host. ``refuses``: the decision of the eviction
        manager, which refuses pods while the node is under pressure; None: none. ``on_preempted`` is called when
        victims have been killed. ``preempts_for_all``: lower pods are killed for every pod that does not fit, not for
        critical ones alone. ``recorder`` writes event objects about victims."""
        self.node: predicates.NodeView | None = None
        """The Node by which pods are admitted; None: not known."""
        self.preempting = False
        """Victims are being killed. A real kubelet processes no news meanwhile."""
        self.allocate_devices: Callable[[Any], predicates.Decision | None] = self._allocate_cards
        """The refusal of the device manager, which is asked after the first checks; None: it does not refuse."""
        self.features: Collection[str] | None = None
        """What this kubelet declares; None: all that a pod may need."""
        self.closed: predicates.Decision | None = None
        """If set, every pod is refused with this decision."""
        self._env = env
        self._clock = env.clock
        self._node_name = node_name
        self._usage = usage
        self._host = host
        self._fresh_node = fresh_node
        self._refuses = refuses
        self._on_preempted = on_preempted
        self._preempts_for_all = preempts_for_all
        self._recorder = recorder
        self._waiting: list[Worker] = []
        """Not decided yet: the Node is being read, or victims are being killed, for the first one of them."""
        self._reading = False

    def add(self, worker: Worker) -> None:
        """A pod to decide on; it is WAITING. The decision may come before this returns."""
        self._waiting.append(worker)
        self._judge()

    def readmit(self, worker: Worker, pod: core_v1_pb2.Pod) -> predicates.Decision | None:
        """After a restart, decide again on a pod that runs already, the oldest first: None if it stays. Critical pods
        and terminating ones stay. ``pod``: with the resources that it was allocated."""
        if critical.is_critical(pod) or pod.metadata.HasField("deletionTimestamp"):
            return None
        decision = predicates.precheck(self.node, pod)
        if decision is None:
            assert self.node is not None
            found = predicates.failures(self.node, self._usage, pod, claims.claim_of(pod))
            decision = predicates.decide(found) if found else None
        if decision is not None:
            self._log(worker, decision)
        return decision

    def fits(self, worker: Worker, pod: core_v1_pb2.Pod) -> predicates.Decision:
        """Whether the node would take the pod in place of what the worker has now: a resize. No pod is killed for it,
        not even for a critical pod, of which the real kubelet thinks otherwise."""
        refusal = self._refuses(pod) or predicates.precheck(self.node, pod)
        if refusal is not None:
            return refusal
        assert self.node is not None
        assert worker.claim is not None
        self._usage.remove(worker.claim)
        found = predicates.failures(self.node, self._usage, pod, claims.claim_of(pod))
        self._usage.add(worker.claim)
        return predicates.decide(found)

    def remove(self, worker: Worker) -> None:
        """Stop deciding on a pod that waits."""
        self._waiting.remove(worker)

    def _judge(self) -> None:
        """Decide about those that wait, in the order of their arrival."""
        waiting = self._waiting
        while waiting and not self._reading and not self.preempting:
            self._examine(waiting[0])

    def _examine(self, worker: Worker) -> None:
        """Decide about a pod, or begin to."""
        pod = worker.pod
        refusal = self._refuses(pod) or predicates.precheck(self.node, pod) or self.allocate_devices(pod)
        if refusal is not None:
            self._decided(worker, refusal, None)
            return
        assert self.node is not None
        claim = claims.claim_of(pod)
        found = predicates.failures(self.node, self._usage, pod, claim)
        if predicates.needs_fresh_node(found):
            self._reading = True
            self._env.spawn(self._judge_again(worker, claim, self.node.known), f"read node for {worker.key}")
        else:
            self._recover(worker, claim, found)

    def _allocate_cards(self, pod: core_v1_pb2.Pod) -> predicates.Decision | None:
        assert self.node is not None
        return devices.allocate(self.node.allocatable, pod, (other.pod for other in self._host.active()))

    async def _judge_again(self, worker: Worker, claim: claims.Claim, known: Collection[str]) -> None:
        """The first of those that wait, against the Node as it is now; ``known``: resources that it had before."""
        node = await self._fresh_node()
        self._reading = False
        if worker.state == WAITING:
            view = predicates.NodeView(node, patched=False, known=known)
            found = predicates.failures(view, self._usage, worker.pod, claim)
            self._recover(worker, claim, found)
        self._judge()

    def _recover(self, worker: Worker, claim: claims.Claim, found: tuple[predicates.Failure, ...]) -> None:
        """The checks have found this; perhaps room can be made."""
        if not found:
            self._decided(worker, predicates.ADMITTED, claim)
            return
        workers = {other.uid: other for other in self._host.active()}
        active = (other.pod for other in workers.values())
        recovery = preemption.handle(worker.pod, found, active, for_all=self._preempts_for_all)
        decision = preemption.decide(worker.pod, found, recovery)
        if recovery.victims:
            self.preempting = True
            victims = [workers[victim.metadata.uid] for victim in recovery.victims]
            self._env.spawn(self._preempt(worker, claim, decision, victims), f"preempt for {worker.key}")
        else:
            self._decided(worker, decision, claim)

    async def _preempt(
        self, worker: Worker, claim: claims.Claim, decision: predicates.Decision, victims: list[Worker]
    ) -> None:
        for victim in victims:
            grace_s = victim.pod.spec.terminationGracePeriodSeconds
            self._env.log(
                PodPreempting(
                    pod=victim.key,
                    uid=victim.uid,
                    by=worker.key,
                    by_uid=worker.uid,
                    node=self._node_name,
                    grace_s=grace_s,
                ),
            )
            if self._recorder is not None:
                reason = preemption.REASON
                self._recorder.event(victim.pod, recorders.WARNING, reason, reason, preemption.MESSAGE)
            gone = asyncio.Event()
            self._host.kill(victim, _PREEMPTED, gone.set)
            await gone.wait()
        self._decided(worker, decision, claim)
        self.preempting = False
        self._judge()
        self._on_preempted()

    def _decided(self, worker: Worker, decision: predicates.Decision, claim: claims.Claim | None) -> None:
        """On the first of those that wait."""
        if decision.admitted and self.features is not None:
            decision = predicates.undeclared(worker.pod, self.features) or decision
        if decision.admitted and self.closed is not None:
            decision = self.closed
        self._waiting.remove(worker)
        worker.start_ns = self._clock.now_ns()
        self._log(worker, decision)
        if decision.admitted:
            assert claim is not None
            if self._env.crash_steps:
                self._env.step("after-admission")
            self._host.admitted(worker, claim)
        else:
            self._host.refused(worker, decision)

    def _log(self, worker: Worker, decision: predicates.Decision) -> None:
        self._env.log(
            AdmissionDecided(
                pod=worker.key,
                uid=worker.uid,
                node=self._node_name,
                start=worker.seen_ns,
                ok=decision.admitted,
                reason=decision.reason,
                message=decision.message,
            ),
        )
