"""kemu's scheduler beside the real one: it sees the same watches and decides about the same pods, but acts on nothing.

Its cache is fed as in kemu's scheduler, event by event, and never built anew. It decides about a pod in the very step
in which the watch shows it (or shows that its last gate is gone): the state is then that of the real decision, however
fast that one is bound. About pods that are tried again it decides just before the watch shows them bound.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from kemu.emulated.client import clients, informers
from kemu.emulated.objects import meta
from kemu.emulated.scheduler import feeds
from kemu.emulated.scheduler.cache import pod_groups
from kemu.emulated.scheduler.cache.columns import IntArray
from kemu.emulated.scheduler.cache.pod_groups import Groups
from kemu.emulated.scheduler.cache.pods import PodInfo
from kemu.emulated.scheduler.configuration import configurations
from kemu.emulated.scheduler.configuration.timings import Timing
from kemu.emulated.scheduler.cycle.decisions import Decider, ScheduleResult
from kemu.emulated.scheduler.devices.pod_claims import PodClaims
from kemu.emulated.scheduler.experiments import switches
from kemu.emulated.scheduler.extenders.clients import Extenders
from kemu.emulated.scheduler.framework.results import PostFilterResult
from kemu.emulated.scheduler.groups.attempts import Attempts
from kemu.emulated.scheduler.groups.cycles import SCHEDULED, condition_of, failure_of
from kemu.emulated.scheduler.loop import Engine
from kemu.emulated.scheduler.plugins import in_tree
from kemu.emulated.scheduler.plugins.default_preemption import DefaultPreemption
from kemu.lab.conformance.live import drawn_extenders
from kemu.lab.conformance.live.waiters import Waiters
from kemu.lab.conformance.scheduler import decisions
from kemu.messages.k8s import core_v1_pb2, scheduling_v1alpha2_pb2
from kemu.messages.k8s.objects import KubernetesObject
from kemu.runtime.env import Env

Json = dict[str, Any]

GROUP_GATES = ("GenericWorkload", "GangScheduling")
GATES = {
    # An answer kept for pods of one template is no decision of its own.
    "OpportunisticBatching": False,
    **dict.fromkeys(GROUP_GATES, True),
}


class Shadow(Waiters):
    """``profiles``: of the schedulers whose pods it decides about."""

    def __init__(self, env: Env, client: clients.Client, profiles: Sequence[Mapping[str, Any]]) -> None:
        super().__init__()
        document = {
            "percentageOfNodesToScore": 100,
            "profiles": list(profiles),
            "featureGates": GATES,
        }
        self.engine = Engine(
            env, client, configurations.configuration_of(document), switches.policy_of({}), Timing({}),
            in_tree.REGISTRY, devices=True,
        )  # fmt: skip
        cluster = self.engine.cluster
        self._env = env
        self._deciders = {
            name: Following(profile, cluster, env.random, percentage_of_nodes=100)
            for name, profile in self.engine.profiles.items()
        }
        self._extenders = drawn_extenders.of_shadow(env, cluster)
        for decider in self._deciders.values():
            decider.takes_first = False
        groups = self.engine.handle.groups
        assert groups is not None
        self._groups = groups
        self._attempts = _Attempts(self, groups, self._extenders)
        self._held: list[Callable[[], object]] | None = None
        self._awaited = ""
        """The PodGroup with which a group is complete, by ``namespace/name``: it alone is shown in a pause. Its watch
        may be slower than that of pods, which the real scheduler binds."""
        self.conditions: dict[str, tuple[str, str, str]] = {}
        """By group: status, reason and message of the first condition that was seen. The real scheduler goes on with
        members that wait at once, and writes again, even False over True while its own watch is behind."""
        self.answers: dict[str, Json] = {}
        """By pod: what kemu decided when it was shown."""
        self.last_answers: dict[str, Json] = {}
        """By pod: what kemu decided before a later attempt of the real scheduler was seen to succeed."""
        watched: dict[str, informers.Handler[Any]] = {
            **feeds.lookup_feeds(cluster), **feeds.storage_feeds(cluster, self.engine.queue),
            **feeds.device_feeds(cluster, self.engine.queue),
        }  # fmt: skip
        watched["nodes"] = self.engine.node_feed
        watched["pods"] = _Pods(self)
        watching: dict[str, informers.Handler[Any]] = {
            **{resource: _Waking(self, handler) for resource, handler in watched.items()},
            "podgroups": _Groups(self, self.engine.group_feed),
        }
        self.informers = {
            resource: informers.Informer(client, resource, handler=handler) for resource, handler in watching.items()
        }

    async def start(self) -> None:
        for informer in self.informers.values():
            await informer.synced()

    def store(self, resource: str) -> dict[str, Any]:
        """The objects of a kind by ``namespace/name``, or by name."""
        return self.informers[resource].store

    def forget(self) -> None:
        """The cluster is gone."""
        self.answers.clear()
        self.last_answers.clear()
        self.conditions.clear()

    def decide(self, pod: core_v1_pb2.Pod, answers: dict[str, Json]) -> None:
        """What kemu would decide about a pending pod now: at once, or a moment later if extenders are asked."""
        info = self.engine.cluster.pending(pod)
        key = meta.namespaced_name(pod)
        decider = self._deciders[pod.spec.schedulerName]
        if any(client.is_interested(info) for client in self._extenders.clients):
            self.pause()
            self._env.spawn(self._decide_with_extenders(decider, info, key, answers), "decide with extenders")
            return
        try:
            answers[key] = {**decisions.decision(decider, info), "devices": _devices(decider)}
        except Exception as error:  # any fault of kemu's is a difference like others
            answers[key] = _no_answer(error)

    async def _decide_with_extenders(
        self, decider: Following, pod: PodInfo, key: str, answers: dict[str, Json]
    ) -> None:
        try:
            decisions.begin(decider, pod)
            told = await self.told(decider, pod, await self._extenders.decide(decider, pod))
            answers[key] = {**told, "devices": {}}
        except Exception as error:  # as above
            answers[key] = _no_answer(error)
        finally:
            self.resume()

    async def told(self, decider: Following, pod: PodInfo, made: ScheduleResult) -> Json:
        """All that is to be said about an attempt in which extenders may have been asked."""
        if made.filtering is None:
            return {"error": made.error.message if made.error is not None else "", "feasible": [], "node": ""}
        told = decisions.told(decider, made)
        if decider.came is not None and decider.came.candidate is not None:
            await self._preempt_with_extenders(decider, pod, decider.came, told)
        return told

    async def _preempt_with_extenders(
        self, decider: Following, pod: PodInfo, came: PostFilterResult, told: Json
    ) -> None:
        self._extenders.remaining = []
        found = await self._extenders.preempt(pod, came, decider.profile.post_filters)
        left, preemption = self._extenders.remaining, told["preemption"]
        told["fullMessage"] = f"{told['message']} {found.message}".rstrip()
        preemption["chosen"] = found.node or ""
        if left:
            plugin = next(one for one in decider.profile.post_filters if isinstance(one, DefaultPreemption))
            preemption["chosenAnyOf"] = sorted(one.node for one in plugin.preemptor.best(left))
        elif not found.node:
            preemption["chosenAnyOf"] = []

    # Groups -----------------------------------------------------------------------------------------------------------

    def is_complete(self) -> bool:
        """The group for which the watches were paused has been shown."""
        return self._held is not None and not self._awaited

    def completes(self, group: KubernetesObject) -> bool:
        """Whether this is the group that is awaited, which it is no longer then."""
        is_awaited = self._awaited == meta.namespaced_name(group)
        if is_awaited:
            self._awaited = ""
        return is_awaited

    async def decide_group(
        self, members: Sequence[str], nodes: Mapping[str, str]
    ) -> tuple[list[Json], tuple[str, str, str]]:
        """One attempt at a group, on the state at which the watches were paused; and its condition.

        ``members``: all of them, in the order in which the real scheduler tried them; ``nodes``: those that it took,
        which are taken here, too, where they are among the best.
        """
        pods = {meta.namespaced_name(one.info.pod): one for one in self.engine.queue.pods.values()}
        queued = [pods[key] for key in members]
        key = pod_groups.key_of(queued[0].info.pod)
        assert key is not None
        for decider in self._deciders.values():
            decider.wanted = nodes
        self.engine.cluster.settle()
        self._attempts.told.clear()
        result = await self._attempts.run(key, queued, preempts=True)
        answers = []
        for place, name in enumerate(members):
            told = self._attempts.told.get(name, {})
            one = result.members[place] if place < len(result.members) else None
            failed = not result.fits or one is None or one.failure is not None
            message = failure_of(one, result)[0].message if failed else ""
            chosen = one.node if one is not None else ""
            preempts = chosen if failed and one is not None and one.needs_preemption else ""
            answers.append({**told, "fails": message, "chosenNode": chosen, "preemptsOn": preempts})
        return answers, condition_of(result)

    def assume(self, nodes: Mapping[str, str]) -> None:
        """Count the members of a group on their nodes, in this order, before the watch shows the first one bound.

        As the real scheduler does: each binding then takes a pod from its place and puts it last, so the order of the
        pods on a node, by which equal victims are told apart, is not the order of the bindings.
        """
        pods = {meta.namespaced_name(one.info.pod): one.info for one in self.engine.queue.pods.values()}
        for key, node in nodes.items():
            self.engine.cluster.assume(pods[key], node)

    # What the watches show --------------------------------------------------------------------------------------------

    def pause(self, but_for: str = "") -> None:
        """What the watches show from now on reaches the informers' stores, but not the scheduler; ``but_for``: a group
        that does."""
        self._awaited = but_for or self._awaited
        if self._held is None:
            self._held = []

    def resume(self) -> None:
        """It reaches the scheduler now, in its order; a decision in between may pause it again."""
        held, self._held, self._awaited = self._held or [], None, ""
        while held and self._held is None:
            held.pop(0)()
        if self._held is not None:
            self._held.extend(held)
        self.wake()

    def show(self, step: Callable[[], object]) -> None:
        if self._held is None:
            step()
        else:
            self._held.append(step)
        self.wake()

    @property
    def deciders(self) -> Mapping[str, Decider]:
        return self._deciders


def _devices(decider: decisions.Asked) -> dict[str, list[str]]:
    """What the claims of a pod would get by its last attempt, by node."""
    filtering = decider.made.filtering if decider.made is not None else None
    found = filtering.cycle.data.get("DynamicResources") if filtering is not None else None
    if not isinstance(found, PodClaims):
        return {}
    return {
        node: sorted("/".join(one.device.id) for claim in plan.plans for one in claim.devices)
        for node, plan in found.by_node.items()
    }


class Following(decisions.Asked):
    """Of the best nodes it takes the one that the real scheduler took."""

    wanted: Mapping[str, str] = {}

    def choose(self, decision: ScheduleResult, rows: IntArray, totals: IntArray, *, by_lot: bool = False) -> None:
        super().choose(decision, rows, totals, by_lot=by_lot)
        assert decision.filtering is not None
        wanted = self.wanted.get(meta.namespaced_name(decision.filtering.cycle.pod.pod))
        best = (self.cluster.rows[row].name for row in rows[totals == totals.max()].tolist())
        if wanted is not None and wanted in best:
            decision.node = wanted


class _Attempts(Attempts):
    """Keeps what there was to say of each member."""

    def __init__(self, shadow: Shadow, groups: Groups, extenders: Extenders) -> None:
        super().__init__(shadow.engine.cluster, groups, shadow.deciders, extenders, _Harmless)  # type: ignore[arg-type]
        self._shadow = shadow
        self.told: dict[str, Json] = {}

    async def decide(self, decider: Decider, pod: PodInfo) -> ScheduleResult:
        assert isinstance(decider, Following)
        decider.compared = None
        made = await super().decide(decider, pod)
        self.told[meta.namespaced_name(pod.pod)] = await self._shadow.told(decider, pod, made)
        return made


class _Harmless:
    """Evicts nobody."""

    def start(self, preemptor: object, candidate: object, unfit: object = None) -> None:
        return


def _no_answer(error: Exception) -> Json:
    return {"error": f"kemu has no answer: {type(error).__name__}: {error}", "feasible": [], "node": ""}


class _Pods:
    """Decides, and hands on to the feed of the scheduler."""

    def __init__(self, shadow: Shadow) -> None:
        self._shadow = shadow
        self._feed = shadow.engine.pod_feed

    def on_add(self, pod: core_v1_pb2.Pod) -> None:
        self._feed.on_add(pod)
        if self._is_pending(pod):
            self._shadow.decide(pod, self._shadow.answers)

    def on_update(self, old: Any, new: Any) -> None:
        key = meta.namespaced_name(new)
        first = self._shadow.answers.get(key)
        if new.spec.nodeName and not old.spec.nodeName and first is not None and not first["node"]:
            self._shadow.decide(old, self._shadow.last_answers)
        self._shadow.show(lambda: self._updated(old, new))

    def _updated(self, old: core_v1_pb2.Pod, new: core_v1_pb2.Pod) -> None:
        self._feed.on_update(old, new)
        if old.spec.schedulingGates and self._is_pending(new):
            self._shadow.decide(new, self._shadow.answers)

    def on_delete(self, pod: core_v1_pb2.Pod) -> None:
        self._feed.on_delete(pod)

    def _is_pending(self, pod: core_v1_pb2.Pod) -> bool:
        spec = pod.spec
        if spec.nodeName or spec.schedulingGates or spec.HasField("schedulingGroup"):
            return False
        return spec.schedulerName in self._shadow.deciders


class _Waking:
    """A handler after which those who wait look again."""

    def __init__(self, shadow: Shadow, handler: informers.Handler[Any]) -> None:
        self._shadow = shadow
        self._handler = handler

    def on_add(self, obj: KubernetesObject) -> None:
        self._shadow.show(lambda: self._handler.on_add(obj))

    def on_update(self, old: KubernetesObject, new: KubernetesObject) -> None:
        self._shadow.show(lambda: self._handler.on_update(old, new))

    def on_delete(self, old: KubernetesObject) -> None:
        self._shadow.show(lambda: self._handler.on_delete(old))


class _Groups(_Waking):
    """Keeps the first condition of each group."""

    def on_add(self, obj: KubernetesObject) -> None:
        if not self._shadow.completes(obj):
            super().on_add(obj)
            return
        self._handler.on_add(obj)
        self._shadow.wake()

    def on_update(self, old: KubernetesObject, new: KubernetesObject) -> None:
        assert isinstance(new, scheduling_v1alpha2_pb2.PodGroup)
        found = meta.get_condition(new.status.conditions, SCHEDULED)
        if found is not None:
            told = (found.status, found.reason, found.message)
            self._shadow.conditions.setdefault(meta.namespaced_name(new), told)
        super().on_update(old, new)
