"""A live comparison: clusters one after the other, and in each a stream of pods, one at a time.

After each pod the state is what the real scheduler has made of it, whatever kemu would have done. What changes beside
the pods (nodes, labels, taints, budgets, deletions) both schedulers have seen before the next pod comes: events of pods
have one order for both, nodes are waited for by the real scheduler's own words, other kinds for a moment.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import Awaitable, Callable, Iterable
from typing import Any

from kemu import errors
from kemu.emulated.client import clients
from kemu.emulated.objects.conversion import convert
from kemu.errors import KemuError
from kemu.lab.conformance.live import (
    drawn_devices,
    drawn_pods,
    makers,
    reports,
    scheduler_logs,
    shadows,
    stand_ins,
    verdicts,
)
from kemu.lab.conformance.live.makers import Json

DECIDES_S = 20.0
"""So long the real scheduler may take over one pod; a claim is bound after a second at the earliest."""
STARTS_S = 60.0
SEES_S = 10.0
SETTLE_S = 0.06
"""At least, for events that the real scheduler does not speak of."""
MARK = "kemu.dev/mark"
PODS_A_CLUSTER = 100
CHANGES = 0.16
"""How often something else happens before a pod."""
UNSTARTED = 0.15
"""How often a bound pod never starts."""
GROUPS = 0.05
"""How often a group of pods comes in the place of a pod."""
TRIES = 40
"""So often kemu draws lots between equal nodes whose choice the log does not tell."""
_SWEPT = (
    "persistentvolumeclaims", "persistentvolumes", "csinodes", "services", "replicasets", "poddisruptionbudgets",
    "resourceslices",
)  # fmt: skip


class Play:
    """``say`` is told how far it is."""

    def __init__(
        self,
        client: clients.Client,
        shadow: shadows.Shadow,
        real: scheduler_logs.SchedulerLog,
        check: Callable[[], object],
        seed: int,
        say: Callable[[str], object] = lambda text: None,
    ) -> None:
        self._client = client
        self._shadow = shadow
        self._real = real
        self._check = check
        self._seed = seed
        self._say = say
        self.report = reports.Report()
        self.on_attempt: Callable[[scheduler_logs.Attempt], None] = self._ended
        """To be told of every attempt of the real scheduler that has ended."""
        self._later: list[scheduler_logs.Attempt] = []
        """Later attempts that have bound their pods, and are not judged yet."""
        self._families: dict[str, str] = {}
        """Families of the pods of the present cluster, by ``namespace/name``."""
        self._evicting: dict[str, list[str]] = {}
        """Preemptors, and their victims that are still ending."""
        self._gated: dict[str, str] = {}
        """Pods with gates, and their families."""
        self._number = 0
        self._marks = 0
        self._wanted = 0
        """Decisions, when the present cluster is done with."""
        self._maker = makers.Maker(random.Random(0), 0)
        self._rng = self._maker.rng

    async def run(self, count: int) -> reports.Report:
        began = asyncio.get_running_loop().time()
        for manifest in [*makers.fixed(), *drawn_devices.classes()]:
            await self._create(manifest)
        for namespace in makers.NAMESPACES[1:]:
            await self._create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": namespace}})
        await self._warm_up()
        while self.report.count() < count:
            await self._cluster(min(PODS_A_CLUSTER, count - self.report.count()))
            self.report.seconds = asyncio.get_running_loop().time() - began
            told = self.report
            self._say(
                f"{told.count()} of {count} decisions: {told.count(verdicts.ALIKE)} alike,"
                f" {told.count(verdicts.TIE)} alike by tie, {len(told.differences)} different"
                f" ({told.seconds:.0f} s)"
            )
        return self.report

    async def _warm_up(self) -> None:
        """Until the real scheduler decides: what it lists before it begins comes in another order than the watches had.

        Raises KemuError where it does not.
        """
        node = self._maker.node()
        pod = {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {"name": "first", "namespace": "default"},
            "spec": {
                "containers": [{"name": "c", "image": "x"}],
                "schedulerName": drawn_pods.PROFILES[0]["schedulerName"],
            },
        }
        await self._create(node)
        await self._create(pod)
        if not await self._real.until(lambda: "default/first" in self._real.first, STARTS_S):
            self._check()
            raise KemuError(f"the real scheduler has decided nothing in {STARTS_S:g} s")
        await self._sweep()

    def _ended(self, attempt: scheduler_logs.Attempt) -> None:
        if attempt.number > 1 and attempt.outcome == scheduler_logs.BOUND:
            self._later.append(attempt)

    # A cluster --------------------------------------------------------------------------------------------------------

    async def _cluster(self, count: int) -> None:
        self._number += 1
        self.report.clusters += 1
        rng = self._rng = random.Random(f"live {self._seed} {self._number}")
        maker = self._maker = makers.Maker(rng, self._number)
        drawn = drawn_pods.PodMaker(maker)
        nodes = maker.nodes()
        await self._build(maker, drawn, nodes)
        self._wanted = self.report.count() + count
        while self.report.count() < self._wanted:
            self._check()
            await self._go_on()
            if self.report.count() >= self._wanted:
                break
            if rng.random() < CHANGES:
                await self._change()
            if rng.random() < GROUPS:
                group, members = drawn.group()
                if len(members) < self._wanted - self.report.count():
                    await self._group(group, members, drawn.extra)
                continue
            family, pod = drawn.draw()
            for manifest in drawn.extra:
                await self._create(manifest)
            if drawn.extra:
                await self._settle()
            await self._pod(family, pod)
        await self._sweep()

    async def _build(self, maker: makers.Maker, drawn: drawn_pods.PodMaker, nodes: list[Json]) -> None:
        for namespace in makers.NAMESPACES:
            labels = {"env": None, "owner": None, **maker.namespace_labels()}
            await self._client.patch("namespaces", namespace, "", {"metadata": {"labels": labels}})
        await self._together([self._create(node) for node in nodes])
        for manifest in [*maker.around(), *maker.storage(nodes), *drawn_devices.slices(maker, nodes)]:
            await self._create(manifest)
            if manifest["kind"] == "PodDisruptionBudget":
                await self._allow(manifest["metadata"]["namespace"], manifest["metadata"]["name"])
        for _ in range(maker.rng.randrange(2)):
            await self._create(maker.volume(f"c{self._number}-free", None))
        await self._nodes_are_seen(node["metadata"]["name"] for node in nodes)
        names = [node["metadata"]["name"] for node in nodes]
        most = 4 * len(nodes) if maker.is_full else 2 * len(nodes)
        running = [drawn.running(maker.rng.choice(names)) for _ in range(maker.rng.randrange(most))]
        for pod in running:
            await self._create(pod)
            await self._run(stand_ins.key_of(pod))
        await self._settle()

    async def _sweep(self) -> None:
        """Take everything away."""
        shadow, client = self._shadow, self._client
        for key in list(shadow.store("pods")):
            await self._remove(key)
        await shadow.until(lambda: not shadow.store("pods"), SEES_S)
        for plural in _SWEPT:
            for key in list(shadow.store(plural)):
                namespace, _, name = key.rpartition("/")
                await self._tolerant(client.delete(plural, name, namespace))
        for key in list(shadow.store("resourceclaims")):
            namespace, _, name = key.partition("/")
            await stand_ins.remove_claim(client, name, namespace)
        for key in list(shadow.store("podgroups")):
            await self._remove_group(key)
        names = list(shadow.store("nodes"))
        for name in names:
            await client.delete("nodes", name)
        for name in names:
            await self._real.until(lambda name=name: self._heard("Delete event for node", name), SEES_S)  # type: ignore[misc]
        kinds = (*_SWEPT, "resourceclaims", "podgroups", "nodes")
        await shadow.until(lambda: not any(shadow.store(plural) for plural in kinds), SEES_S)
        await self._settle()
        self._real.forget()
        shadow.forget()
        self._later.clear()
        self._families.clear()
        self._evicting.clear()
        self._gated.clear()

    # One pod ----------------------------------------------------------------------------------------------------------

    async def _pod(self, family: str, pod: Json) -> None:
        key = stand_ins.key_of(pod)
        self._families[key] = family
        await self._create(pod)
        if pod["spec"].get("schedulingGates"):
            self._gated[key] = family
            return
        await self._decision(family, key)

    async def _decision(self, family: str, key: str) -> None:
        """Wait for both decisions about a pod, compare them, and see to what follows."""
        real, shadow = self._real, self._shadow
        if not await real.until(lambda: key in real.first, DECIDES_S):
            self.report.add(verdicts.missing(family, key, f"the real scheduler has not decided in {DECIDES_S:g} s"))
            await self._remove(key)
            return
        attempt = real.first[key]
        if not await shadow.until(lambda: key in shadow.answers, SEES_S):
            self.report.add(verdicts.missing(family, key, "kemu has not seen the pod"))
            return
        answer = shadow.answers[key]
        if attempt.nominated:
            await self._evictions(attempt, answer)
        given = await self._given(key) if attempt.outcome == scheduler_logs.BOUND else []
        self.report.add(verdicts.of(family, attempt, answer, given))
        if attempt.outcome == scheduler_logs.BOUND:
            await self._run(key)
            return
        await shadow.until(lambda: self._is_told(key, attempt), SEES_S)
        if not attempt.nominated:
            await self._remove(key)
            return
        ending = [victim for victim in attempt.victims if victim in shadow.store("pods")]
        self._evicting[key] = ending
        if not ending or self._rng.random() < 0.6:
            await self._end_victims(key)

    async def _given(self, key: str) -> list[str]:
        """The devices of the claims of a pod that the real scheduler has bound."""
        shadow = self._shadow
        pod = shadow.store("pods").get(key)
        if pod is None or not pod.spec.resourceClaims:
            return []
        namespace = pod.metadata.namespace
        claims = [f"{namespace}/{one.resourceClaimName}" for one in pod.spec.resourceClaims]

        def are_reserved() -> bool:
            there = [shadow.store("resourceclaims").get(claim) for claim in claims]
            uid = pod.metadata.uid
            return all(one is not None and any(who.uid == uid for who in one.status.reservedFor) for one in there)

        await shadow.until(are_reserved, SEES_S)
        there = [one for claim in claims if (one := shadow.store("resourceclaims").get(claim)) is not None]
        own = [one for one in there if len(one.status.reservedFor) == 1]
        results = [one for claim in own for one in claim.status.allocation.devices.results]
        return sorted(f"{one.driver}/{one.pool}/{one.device}" for one in results)

    async def _evictions(self, attempt: scheduler_logs.Attempt, answer: Json) -> None:
        """Until the real scheduler has deleted all victims, or those that kemu expects."""
        candidates = (answer.get("preemption") or {}).get("candidates") or {}
        expected = len(candidates.get(attempt.nominated, {}).get("victims") or ()) or 1
        await self._real.until(lambda: not attempt.is_evicting and len(attempt.victims) >= expected, 3)

    def _outcome(self, key: str) -> str:
        attempt = self._real.attempts.get(key)
        return attempt.outcome if attempt is not None else ""

    def _is_told(self, key: str, attempt: scheduler_logs.Attempt) -> bool:
        """The pod's status says why it was not placed, or where it is nominated."""
        pod = self._shadow.store("pods").get(key)
        if pod is None or pod.spec.nodeName:
            return True
        if attempt.nominated:
            return bool(pod.status.nominatedNodeName == attempt.nominated)
        return any(one.type == "PodScheduled" and one.message == attempt.message for one in pod.status.conditions)

    # A group ----------------------------------------------------------------------------------------------------------

    async def _group(self, group: Json, members: list[Json], extra: list[Json]) -> None:
        """All of it is there before the real scheduler may try it; what it does then reaches kemu when both have
        decided."""
        real, shadow, report = self._real, self._shadow, self.report
        for key in list(self._evicting):
            if key in self._evicting:
                await self._end_victims(key)
        for manifest in [*extra, *members]:
            await self._create(manifest)
        keys = [stand_ins.key_of(pod) for pod in members]
        await shadow.until(lambda: all(key in shadow.store("pods") for key in keys), SEES_S)
        await self._settle()
        name = stand_ins.key_of(group)
        shadow.pause(name)
        await self._create(group)

        def have_decided() -> bool:
            cycle = real.group_cycles.get(name)
            return cycle is not None and cycle.is_over and all(key in real.first for key in keys)

        if not await real.until(have_decided, DECIDES_S) or not await shadow.until(shadow.is_complete, SEES_S):
            report.add(verdicts.missing(verdicts.GROUPS, name, "the real scheduler has not decided about all members"))
        else:
            for verdict in await self._group_verdicts(name):
                report.add(verdict)
        is_bound = all(real.first[key].outcome == scheduler_logs.BOUND for key in keys if key in real.first)
        if is_bound and have_decided() and shadow.is_complete():
            shadow.assume({key: real.first[key].node for key in real.group_cycles[name].members})
        shadow.resume()
        for key in keys:
            attempt = real.first.get(key)
            if is_bound and attempt is not None:
                await self._run(key)
            else:
                await self._remove(key)
        if not is_bound:
            await self._remove_group(name)
            victims = [victim for key in keys if key in real.first for victim in real.first[key].victims]
            for victim in victims:
                await self._remove(victim)
        await self._settle()
        self._later.clear()

    async def _group_verdicts(self, name: str) -> list[verdicts.Verdict]:
        """Of equal nodes and candidates kemu takes those that the real scheduler took, as far as the log tells them;
        otherwise it may draw again."""
        real, shadow = self._real, self._shadow
        members = real.group_cycles[name].members
        attempts = [real.first[key] for key in members]
        overtaken = {one.pod for one in attempts if self._is_overtaken(one, members)}
        nodes = {one.pod: one.node for one in attempts if one.outcome == scheduler_logs.BOUND or one.pod in overtaken}
        found: list[verdicts.Verdict] = []
        await shadow.until(lambda: name in shadow.conditions, SEES_S)
        condition = shadow.conditions.get(name, ("", "", ""))
        for _ in range(TRIES):
            answers, said = await shadow.decide_group(members, nodes)
            if not found:
                for attempt, answer in zip(attempts, answers, strict=True):
                    if attempt.nominated:
                        await self._evictions(attempt, answer)
            found = [
                verdicts.of_member(attempt, answer, is_overtaken=attempt.pod in overtaken)
                for attempt, answer in zip(attempts, answers, strict=True)
            ]
            found.append(verdicts.of_group(name, condition, said))
            if all(one.kind != verdicts.DIFFERENT for one in found):
                break
        return found

    def _is_overtaken(self, attempt: scheduler_logs.Attempt, members: list[str]) -> bool:
        """It is bound too late: another member has written the allocation of a claim that both have."""
        lost = verdicts.lost_claim(attempt)
        if not lost:
            return False
        name = lost.rpartition("/")[2]
        pods = self._shadow.store("pods")
        having = [key for key in members if any(one.resourceClaimName == name for one in pods[key].spec.resourceClaims)]
        return attempt.pod in having and len(having) > 1

    async def _remove_group(self, name: str) -> None:
        """Nobody takes away the finalizer that protects it."""
        namespace, _, plain = name.partition("/")
        unprotected = {"metadata": {"finalizers": None}}
        await self._tolerant(self._client.patch("podgroups", plain, namespace, unprotected))
        await self._tolerant(self._client.delete("podgroups", plain, namespace))

    # What follows -----------------------------------------------------------------------------------------------------

    async def _end_victims(self, key: str) -> None:
        """The victims end; then the preemptor is tried again."""
        for victim in self._evicting.pop(key):
            await self._remove(victim)
        await self._real.until(lambda: self._outcome(key) == scheduler_logs.BOUND, 3)
        await self._judge_later()
        if self._outcome(key) != scheduler_logs.BOUND:
            # Another pod was faster, or the room is not enough any more.
            await self._remove(key)

    async def _judge_later(self) -> None:
        shadow = self._shadow
        while self._later:
            attempt = self._later.pop(0)
            key = attempt.pod
            if not await shadow.until(lambda key=key: key in shadow.last_answers, SEES_S):  # type: ignore[misc]
                continue
            # By now its claims have been given their devices already.
            verdict = verdicts.of(self._families.get(key, "later"), attempt, shadow.last_answers.pop(key))
            self.report.add(verdict, is_later=True)
            for victim in self._evicting.pop(key, ()):
                await self._remove(victim)
            await self._run(key)

    async def _go_on(self) -> None:
        """What has been waiting may come to its end."""
        await self._judge_later()
        for key in list(self._evicting):
            if key in self._evicting and self._rng.random() < 0.5:
                await self._end_victims(key)
        for key in list(self._gated):
            if self._rng.random() < 0.4 and self.report.count() < self._wanted:
                family = self._gated.pop(key)
                namespace, _, name = key.partition("/")
                await self._client.patch("pods", name, namespace, {"spec": {"schedulingGates": None}})
                await self._decision(family, key)

    # Changes ----------------------------------------------------------------------------------------------------------

    async def _change(self) -> None:
        """While a preemptor waits, what does not come over the watch of pods might make the real scheduler try it again
        and bind it before kemu has seen why."""
        self.report.changes += 1
        of_pods = (self._remove_pod, self._remove_pod, self._remove_pod, self._relabel_pod)
        others = (
            self._relabel, self._retaint, self._cordon, self._resize, self._pull, self._add_node, self._remove_node,
            self._relabel_namespace, self._rebudget,
        )  # fmt: skip
        await self._rng.choice(of_pods if self._evicting else (*of_pods, *others))()
        if self._evicting:
            await self._settle()

    def _some_node(self) -> str:
        names = sorted(self._shadow.store("nodes"))
        return self._rng.choice(names) if names else ""

    async def _node(self, patch: Json, subresource: str = "") -> None:
        name = self._some_node()
        if not name:
            return
        before = self._real.handled["Update event for node", name]
        old = self._shadow.store("nodes")[name].metadata.resourceVersion
        updated = await self._client.patch("nodes", name, "", patch, subresource)
        version = updated.metadata.resourceVersion
        if version == old:
            return  # nothing has changed
        await self._real.until(lambda: self._real.handled["Update event for node", name] > before, SEES_S)
        await self._shadow.until(lambda: self._shadow.store("nodes")[name].metadata.resourceVersion == version, SEES_S)

    async def _relabel(self) -> None:
        labels = self._maker.labels("")
        del labels[makers.HOSTNAME]
        gone = dict.fromkeys(("disk", "gen", "rack", "team", makers.ZONE, makers.REGION))
        await self._node({"metadata": {"labels": {**gone, **labels}}})

    async def _retaint(self) -> None:
        taints = [self._maker.taint()] if self._rng.random() < 0.6 else None
        await self._node({"spec": {"taints": taints}})

    async def _pull(self) -> None:
        await self._node({"status": {"images": self._maker.images() or None}}, "status")

    async def _cordon(self) -> None:
        await self._node({"spec": {"unschedulable": self._rng.random() < 0.4 or None}})

    async def _resize(self) -> None:
        amounts = self._maker.amounts()
        await self._node({"status": {"allocatable": amounts, "capacity": amounts}}, "status")

    async def _add_node(self) -> None:
        node = self._maker.node()
        await self._create(node)
        await self._nodes_are_seen([node["metadata"]["name"]])

    async def _remove_node(self) -> None:
        name = self._some_node()
        if len(self._shadow.store("nodes")) < 3:
            return
        await self._client.delete("nodes", name)
        await self._real.until(lambda: self._heard("Delete event for node", name), SEES_S)
        await self._shadow.until(lambda: name not in self._shadow.store("nodes"), SEES_S)

    def _some_pod(self) -> str:
        evicted = {victim for victims in self._evicting.values() for victim in victims}
        bound = [
            key for key, pod in sorted(self._shadow.store("pods").items()) if pod.spec.nodeName and key not in evicted
        ]
        return self._rng.choice(bound) if bound else ""

    async def _remove_pod(self) -> None:
        key = self._some_pod()
        if key:
            await self._remove(key)

    async def _relabel_pod(self) -> None:
        namespace, _, name = self._some_pod().partition("/")
        if name:
            labels = {"app": self._rng.choice(makers.APPS), "version": self._rng.choice(("v1", "v2", None))}
            await self._client.patch("pods", name, namespace, {"metadata": {"labels": labels}})

    async def _relabel_namespace(self) -> None:
        labels = {"env": None, "owner": None, **self._maker.namespace_labels()}
        name = self._rng.choice(makers.NAMESPACES)
        await self._client.patch("namespaces", name, "", {"metadata": {"labels": labels}})
        await self._settle()

    async def _rebudget(self) -> None:
        budgets = sorted(self._shadow.store("poddisruptionbudgets"))
        if budgets:
            namespace, _, name = self._rng.choice(budgets).partition("/")
            await self._allow(namespace, name)
            await self._settle()

    # Requests ---------------------------------------------------------------------------------------------------------

    async def _create(self, manifest: Json) -> None:
        try:
            await self._client.create(convert.from_manifest(manifest))
        except errors.AlreadyExists:
            return

    async def _allow(self, namespace: str, name: str) -> None:
        status = {"disruptionsAllowed": self._maker.disruptions_allowed(), "observedGeneration": 1}
        status |= dict.fromkeys(("currentHealthy", "desiredHealthy", "expectedPods"), 1)
        await self._client.patch("poddisruptionbudgets", name, namespace, {"status": status}, "status")

    async def _run(self, key: str) -> None:
        if self._rng.random() < UNSTARTED:
            return
        namespace, _, name = key.partition("/")
        await stand_ins.run_pod(self._client, namespace, name, self._rng)

    async def _remove(self, key: str) -> None:
        namespace, _, name = key.partition("/")
        shadow = self._shadow
        pod = shadow.store("pods").get(key)
        await self._tolerant(self._client.delete("pods", name, namespace, grace_period_seconds=0))
        if pod is not None and pod.spec.resourceClaims:
            await shadow.until(lambda: key not in shadow.store("pods"), SEES_S)
            for one in pod.spec.resourceClaims:
                claim = shadow.store("resourceclaims").get(f"{namespace}/{one.resourceClaimName}")
                if claim is not None and claim.status.HasField("allocation"):
                    await stand_ins.release(self._client, claim, pod.metadata.uid)
            await self._settle()

    async def _tolerant(self, deletion: Awaitable[Any]) -> None:
        try:
            await deletion
        except errors.NotFound:
            return

    async def _together(self, work: list[Awaitable[Any]]) -> None:
        await asyncio.gather(*work)

    async def _nodes_are_seen(self, names: Iterable[str]) -> None:
        for name in names:
            await self._real.until(lambda name=name: self._heard("Add event for node", name), SEES_S)  # type: ignore[misc]
            await self._shadow.until(lambda name=name: name in self._shadow.store("nodes"), SEES_S)  # type: ignore[misc]

    def _heard(self, event: str, name: str) -> bool:
        return self._real.handled[event, name] > 0

    async def _settle(self) -> None:
        """Several times as long as kemu takes to see a change now."""
        clock = asyncio.get_running_loop().time
        began = clock()
        self._marks += 1
        mark = str(self._marks)
        await self._client.patch("namespaces", "default", "", {"metadata": {"annotations": {MARK: mark}}})
        namespaces = self._shadow.store("namespaces")
        await self._shadow.until(lambda: namespaces["default"].metadata.annotations.get(MARK) == mark, SEES_S)
        await asyncio.sleep(max(SETTLE_S, 4 * (clock() - began)))
