"""The actor ``controller/rescheduler``: deletes pods of lower priority so that a pending one may fit.

The alternative of the pod preemption design in which another component than the scheduler preempts (``preemptor:
rescheduler``). It follows pods that a scheduler has marked unschedulable, decides on a cache of its own as that
scheduler would, and deletes the victims. It nominates no pod: the next pod to be scheduled takes the room, and its
cache may be older than those of the schedulers. That is the drawback that the design names.

    config = {"apiserver": "apiserver/0", "lag": 1.0,
              "schedulers": [{"name": "default-scheduler", "config": {}, "policy": {}}]}

``lag``: seconds, or a distribution, from an event until it acts. It lives here and not beside the controllers
because, as the design says, it "requires replicating the scheduler logic in another component": it shares the code
instead.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from kemu.emulated import variants
from kemu.emulated.client import clients, informers, workqueues
from kemu.emulated.objects import meta
from kemu.emulated.objects.pods import pod_phases
from kemu.emulated.scheduler import feeds
from kemu.emulated.scheduler.cache.cluster import Cluster
from kemu.emulated.scheduler.cache.pods import PodInfo
from kemu.emulated.scheduler.configuration import configurations
from kemu.emulated.scheduler.cycle.decisions import Decider
from kemu.emulated.scheduler.cycle.profiles import Profile
from kemu.emulated.scheduler.experiments import switches as policies
from kemu.emulated.scheduler.framework.interfaces import Handle
from kemu.emulated.scheduler.framework.results import Candidate
from kemu.emulated.scheduler.plugins import in_tree
from kemu.emulated.scheduler.preemption.candidates import Preemptor
from kemu.emulated.settings.declared import restored
from kemu.errors import ApiError, Conflict, NotFound
from kemu.messages.k8s import core_v1_pb2
from kemu.runtime import distributions
from kemu.runtime.env import Env
from kemu.runtime.runlog.events import RescheduledVictimDeleted

DEFAULT_LAG_S = 1.0


class Rescheduler:
    """Factory: ``kemu.emulated.scheduler.experiments.rescheduler:Rescheduler``."""

    def __init__(self, env: Env, config: Mapping[str, Any]) -> None:
        """Raises ConfigurationError or DistributionError."""
        self._env = env
        self._client = clients.of_actor(env, config)
        self._lag = distributions.parse(config.get("lag", DEFAULT_LAG_S))
        self._cluster = Cluster()
        self._deciders: dict[str, Decider] = {}
        self._preemptors: dict[str, Preemptor] = {}
        for scheduler in config["schedulers"]:
            self._serve(scheduler)
        self._queue: workqueues.WorkQueue[str] = workqueues.WorkQueue(env)
        self._pending: dict[str, Any] = {}
        """Pods that a scheduler has called unschedulable, by UID, the oldest first."""
        self._preempted_on: dict[str, str] = {}
        """By UID: where room was made for a pod. While victims terminate there, none is made elsewhere."""
        watched: dict[str, informers.Handler[Any]] = dict(feeds.lookup_feeds(self._cluster))
        watched["nodes"] = informers.Callbacks(
            self._cluster.set_node,
            lambda old, new: self._cluster.set_node(new),
            lambda node: self._cluster.remove_node(node.metadata.name),
        )
        watched["pods"] = self
        self._informers = [
            informers.Informer(
                self._client,
                resource,
                handler=handler,
                field_selector=pod_phases.NOT_TERMINAL if resource == "pods" else "",
            )
            for resource, handler in watched.items()
        ]

    def _serve(self, scheduler: Mapping[str, Any]) -> None:
        # Without a nomination, any lower pod that terminates on the chosen node means that room is being made.
        switches = {**scheduler.get("policy", {}), "preemptor": "scheduler", "eligibility": "alpha"}
        policy = restored(policies.Policy, switches)
        caps = policy.percentageAbove100 == "cap"
        configuration = configurations.configuration_of(
            scheduler.get("config") or {}, scheduler["name"], caps_percentages=caps
        )
        handle = Handle(self._cluster, self._env.random, policy)
        handle.api = self._client
        for one in configuration.profiles:
            profile = Profile(one, handle, in_tree.REGISTRY)
            decider = Decider(profile, self._cluster, self._env.random, configuration.percentage_of_nodes_to_score)
            self._deciders[one.scheduler_name] = decider
            self._preemptors[one.scheduler_name] = variants.choose(Preemptor, policies.alternatives(policy))(
                self._cluster, policy, self._env.random, lambda nodes: nodes
            )

    async def run(self) -> None:
        for informer in self._informers:
            await informer.synced()
        self._env.ready()
        await self._env.clock.started()
        while True:
            uid = await self._queue.get()
            pod = self._pending.get(uid)
            if pod is not None:
                await self._look_at(pod)
            self._queue.done(uid)

    # --- news of pods, from the informer -----------------------------------------------------------------------------

    def on_add(self, obj: core_v1_pb2.Pod) -> None:
        if obj.spec.nodeName:
            self._cluster.see_pod(obj)
            self._look_soon()
        else:
            self._note(obj)

    def on_update(self, old: core_v1_pb2.Pod, new: core_v1_pb2.Pod) -> None:
        if not new.spec.nodeName:
            self._note(new)
            return
        self._forget(new.metadata.uid)
        self._cluster.see_pod(new, spec_changed=old.spec != new.spec)
        if not old.spec.nodeName:
            self._look_soon()

    def on_delete(self, old: core_v1_pb2.Pod) -> None:
        self._forget(old.metadata.uid)
        if old.spec.nodeName:
            self._cluster.remove_pod(old.metadata.uid)
            self._look_soon()

    def _note(self, pod: core_v1_pb2.Pod) -> None:
        uid = pod.metadata.uid
        scheduled = meta.get_condition(pod.status.conditions, "PodScheduled")
        hopeless = scheduled is not None and (scheduled.status, scheduled.reason) == ("False", "Unschedulable")
        if pod.spec.schedulerName not in self._deciders or not hopeless or pod.metadata.HasField("deletionTimestamp"):
            self._forget(uid)
        else:
            self._pending[uid] = pod
            self._queue.add_after(uid, self._lag.draw(self._env.random))

    def _forget(self, uid: str) -> None:
        self._pending.pop(uid, None)
        self._preempted_on.pop(uid, None)

    def _look_soon(self) -> None:
        """Pods on nodes changed: look at all pending pods again."""
        for uid in self._pending:
            self._queue.add_after(uid, self._lag.draw(self._env.random))

    # --- what it does ------------------------------------------------------------------------------------------------

    async def _look_at(self, pod: core_v1_pb2.Pod) -> None:
        self._cluster.settle()
        if not len(self._cluster):
            return
        info, name = self._cluster.pending(pod), pod.spec.schedulerName
        filtering = self._deciders[name].filter(info)
        if filtering.rejection is not None or not all(filtering.verdicts[: filtering.nodes]):
            return  # It cannot be helped, or fits already: its scheduler will see.
        result = self._preemptors[name].preempt(filtering, self._preempted_on.get(info.uid, ""))
        if result.candidate is not None:
            self._preempted_on[info.uid] = result.candidate.node
            await self._make_room(info, result.candidate)

    async def _make_room(self, pod: PodInfo, candidate: Candidate) -> None:
        for victim in candidate.victims:
            if victim.terminating:
                continue
            started_ns = self._env.clock.now_ns()
            gone = True
            try:
                await self._client.delete("pods", victim.name, victim.namespace, uid=victim.uid)
            except (NotFound, Conflict):
                pass  # Deleted already, or another pod has its name now.
            except ApiError:
                gone = False
            self._env.log(
                RescheduledVictimDeleted(
                    pod=victim.key,
                    uid=victim.uid,
                    by=pod.key,
                    by_uid=pod.uid,
                    node=candidate.node,
                    start=started_ns,
                    ok=gone,
                    how="deleted",
                ),
            )
            if not gone:
                self._queue.add_rate_limited(pod.uid)
                return
        self._queue.forget(pod.uid)
