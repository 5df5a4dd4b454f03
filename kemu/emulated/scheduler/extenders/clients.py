"""The scheduler's side of extenders: which of them to call, and the use of their answers.

Mirrors ``pkg/scheduler/extender.go``, and what ``schedule_one.go`` and ``framework/preemption`` do with extenders. An
attempt waits for their answers, while the cache keeps its snapshot. The other side, for authors of extenders, is
:mod:`kemu.emulated.scheduler.extenders.servers`.
"""

from __future__ import annotations

import asyncio
import dataclasses
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any, NamedTuple, TypeVar

import grpc
import numpy as np

from kemu.emulated.scheduler.cache.cluster import Cluster
from kemu.emulated.scheduler.cache.columns import IntArray
from kemu.emulated.scheduler.cache.nodes import NodeInfo
from kemu.emulated.scheduler.cache.pods import PodInfo
from kemu.emulated.scheduler.configuration.configurations import ExtenderConfiguration
from kemu.emulated.scheduler.cycle.decisions import Decider, ScheduleResult
from kemu.emulated.scheduler.cycle.filtering import Filtering
from kemu.emulated.scheduler.cycle.profiles import EXTENDER
from kemu.emulated.scheduler.framework import results
from kemu.emulated.scheduler.framework.interfaces import MAX_SCORE, SKIP, PostFilterPlugin, Skip
from kemu.emulated.scheduler.framework.results import Candidate, PostFilterResult
from kemu.emulated.scheduler.framework.statuses import ERROR, UNRESOLVABLE, UNSCHEDULABLE, Status
from kemu.emulated.scheduler.plugins.default_preemption import DefaultPreemption
from kemu.errors import KemuError
from kemu.messages.v1 import extender_pb2, extender_pb2_grpc
from kemu.runtime.env import Env
from kemu.runtime.runlog.events import ExtenderAsked

Answer = TypeVar("Answer")

MAX_PRIORITY = 10
"""The best score that an extender gives (``MaxExtenderPriority``)."""
_FACTOR = MAX_SCORE // MAX_PRIORITY

NO_CANDIDATE = "preemption: no candidate node for preemption"

_UNSEEN = Status(UNRESOLVABLE)
"""The status of nodes that the search did not reach, or that an extender left out without a reason."""


class ExtenderError(KemuError):
    """A call failed, or its answer makes no sense."""


class FilterAnswer(NamedTuple):
    """What an extender says about nodes."""

    kept: list[str]
    """Those that pass."""
    failed: Mapping[str, str]
    """Why others do not, where preemption may help."""
    unresolvable: Mapping[str, str]
    """Why others do not, where preemption cannot help."""
    as_objects: bool
    """The nodes that pass came as objects, not as names."""


class _Filtered(NamedTuple):
    """What all extenders leave."""

    rows: IntArray
    refused: dict[int, Status]
    bare: list[NodeInfo] | None
    """The nodes as scored, where an extender sent objects; None: those in the cache."""


class ExtenderClient:
    """One extender, as configured."""

    def __init__(self, env: Env, cluster: Cluster, configuration: ExtenderConfiguration) -> None:
        """Raises SimulationError for an address outside of the simulation."""
        self.configuration = configuration
        self.name = configuration.url_prefix
        self._env = env
        self._cluster = cluster
        self._stub = extender_pb2_grpc.ExtenderStub(env.dial(configuration.peer))  # type: ignore[no-untyped-call]

    def is_interested(self, pod: PodInfo) -> bool:
        """Whether a container requests (or limits) a resource that the extender manages."""
        managed = self.configuration.managed_resources
        if not managed:
            return True
        spec = pod.pod.spec
        return any(
            name in amounts
            for container in (*spec.containers, *spec.initContainers)
            for amounts in (container.resources.requests, container.resources.limits)
            for name in managed
        )

    async def filter(self, pod: PodInfo, nodes: Sequence[NodeInfo]) -> FilterAnswer:
        result = await self._call(pod, "Filter", self._stub.Filter, self._arguments(pod, nodes), len(nodes))
        if result.error:
            raise ExtenderError(result.error)
        kept: list[str] = []
        by_name = self.configuration.node_cache_capable and result.HasField("node_names")
        if by_name:
            kept = list(result.node_names.names)
        elif result.HasField("nodes"):
            kept = [node.metadata.name for node in result.nodes.items]
        asked = {node.name for node in nodes}
        for name in kept:
            if name not in asked:
                text = (
                    f'extender "{self.name}" claims a filtered node "{name}" which is not found in the input node list'
                )
                raise ExtenderError(text)
        return FilterAnswer(kept, result.failed_nodes, result.failed_and_unresolvable_nodes, not by_name)

    async def prioritize(self, pod: PodInfo, nodes: Sequence[NodeInfo]) -> dict[str, int]:
        """Scores of nodes, with the weight of the extender and on the scale of plugins."""
        arguments = self._arguments(pod, nodes)
        result = await self._call(pod, "Prioritize", self._stub.Prioritize, arguments, len(nodes))
        scale = self.configuration.weight * _FACTOR
        scores: dict[str, int] = {}
        for item in result.items:
            scores[item.host] = scores.get(item.host, 0) + item.score * scale
        return scores

    async def process_preemption(
        self, pod: PodInfo, candidates: Sequence[tuple[str, Sequence[PodInfo], int]]
    ) -> list[tuple[str, list[PodInfo], int]]:
        """The candidates that remain, each with node, victims and violated budgets as the extender changed them."""
        arguments = extender_pb2.ExtenderPreemptionArgs(pod=pod.pod)
        for node, victims, violations in candidates:
            if self.configuration.node_cache_capable:
                meta = arguments.node_name_to_meta_victims[node]
                meta.pods.extend(extender_pb2.MetaPod(uid=victim.uid) for victim in victims)
                meta.num_pdb_violations = violations
            else:
                whole = arguments.node_name_to_victims[node]
                whole.pods.extend(victim.pod for victim in victims)
                whole.num_pdb_violations = violations
        call = self._stub.ProcessPreemption
        result = (
            await self._call(pod, "ProcessPreemption", call, arguments, len(candidates))
        ).node_name_to_meta_victims
        order = {node: place for place, (node, _victims, _violations) in enumerate(candidates)}
        names = sorted(result, key=lambda name: (order.get(name, len(order)), name))
        return [self._victims(name, result[name]) for name in names]

    def _victims(self, name: str, answer: extender_pb2.MetaVictims) -> tuple[str, list[PodInfo], int]:
        node = self._cluster.nodes.get(name)
        if node is None or node.row < 0:
            raise ExtenderError(f'nodeinfo not found for node name "{name}"')
        victims = []
        for one in answer.pods:
            victim = node.pods.get(one.uid)
            if victim is None:
                text = f"claims to preempt pod (UID: {one.uid}) on node: {name}, but the pod is not found on that node"
                raise ExtenderError(f"extender: {self.name} {text}")
            victims.append(victim)
        return name, victims, answer.num_pdb_violations

    async def bind(self, pod: PodInfo, node: str) -> None:
        arguments = extender_pb2.ExtenderBindingArgs(
            pod_name=pod.name, pod_namespace=pod.namespace, pod_uid=pod.uid, node=node
        )
        result = await self._call(pod, "Bind", self._stub.Bind, arguments, 1)
        if result.error:
            raise ExtenderError(result.error)

    def _arguments(self, pod: PodInfo, nodes: Sequence[NodeInfo]) -> extender_pb2.ExtenderArgs:
        arguments = extender_pb2.ExtenderArgs(pod=pod.pod)
        if self.configuration.node_cache_capable:
            arguments.node_names.names.extend(node.name for node in nodes)
        else:
            arguments.nodes.SetInParent()
            arguments.nodes.items.extend(node.node for node in nodes)
        return arguments

    async def _call(
        self,
        pod: PodInfo,
        name: str,
        method: Callable[..., Awaitable[Any]],
        arguments: extender_pb2.ExtenderArgs | extender_pb2.ExtenderBindingArgs | extender_pb2.ExtenderPreemptionArgs,
        nodes: int,
    ) -> Any:
        """Raises ExtenderError when there is no answer in time."""
        started_ns = self._env.clock.now_ns()
        failure = ""
        try:
            return await method(arguments, timeout=self.configuration.timeout_s)
        except grpc.aio.AioRpcError as error:
            failure = f"{error.code().name}: {error.details()}"
            raise ExtenderError(f"failed {name} with extender at URL {self.name}: {failure}") from None
        finally:
            self._env.log(
                ExtenderAsked(
                    pod=pod.key,
                    uid=pod.uid,
                    start=started_ns,
                    extender=self.name,
                    call=name,
                    nodes=nodes,
                    error=failure,
                ),
            )


class Extenders:
    """All extenders of a scheduler, in the order in which they are asked."""

    def __init__(self, env: Env, cluster: Cluster, configurations: Sequence[ExtenderConfiguration]) -> None:
        self._cluster = cluster
        self.clients = [ExtenderClient(env, cluster, one) for one in configurations]
        self.remaining: list[Candidate] = []
        """What the last preemption chose among."""

    def _concerned(self, pod: PodInfo, takes_part: Callable[[ExtenderConfiguration], bool]) -> list[ExtenderClient]:
        return [one for one in self.clients if takes_part(one.configuration) and one.is_interested(pod)]

    @property
    def compare_nodes(self) -> bool:
        """Whether the search must find several nodes even if no plugin scores them."""
        return any(one.configuration.filters or one.configuration.prioritizes for one in self.clients)

    # The scheduling cycle -------------------------------------------------------------------------------------------

    async def decide(self, decider: Decider, pod: PodInfo) -> ScheduleResult:
        """:meth:`Decider.decide`, with extenders asked after the filters and beside the scores."""
        decision = decider.begin(pod)
        filtering = decision.filtering
        if filtering is None or decision.ended:
            return decision
        nominated = decider.nominated(filtering)
        if nominated is not None and await self._is_still_good(filtering, nominated):
            decision.node = nominated.name
            decision.evaluated = decision.feasible = 1
            return decision
        start = decider.start_row % filtering.counted
        found = decider.feasible_rows(filtering, decision)
        try:
            rows, refused, bare = await self._filter(filtering, found)
        except ExtenderError as error:
            decision.error = Status(ERROR, (str(error),))
            return decision
        if len(rows) < len(found):
            if not len(rows) and not filtering.left_out:
                unseen = (start + np.arange(decision.visited, filtering.counted)) % filtering.counted
                if filtering.placement is not None:
                    unseen = filtering.placement[unseen]
                refused.update(dict.fromkeys(unseen.tolist(), _UNSEEN))
            filtering.refuse(refused)
        if not decider.is_clear(decision, rows):
            own = decider.totals(filtering, rows) if bare is None else decider.totals_of(filtering, rows, bare)
            totals = own + await self._prioritize(filtering, rows)
            decider.tell_scores(pod, rows, totals)
            decider.choose(decision, rows, totals, by_lot=bool(self._concerned(pod, _prioritizes)))
        return decision

    async def _is_still_good(self, filtering: Filtering, node: NodeInfo) -> bool:
        try:
            filtered = await self._filter(filtering, np.array([node.row], dtype=np.int64))
        except ExtenderError:
            # All nodes are tried then; if the extender fails again, so does the attempt.
            return False
        return len(filtered.rows) > 0

    async def _filter(self, filtering: Filtering, found: IntArray) -> _Filtered:
        """``findNodesThatPassExtenders``: the rows that remain, and the statuses of the others.

        Where an extender sends node objects back, kube-scheduler goes on with these objects, without the pods that run
        there and without images: scores see empty nodes (``HTTPExtender.Filter``).
        """
        pod, bare = filtering.cycle.pod, False
        nodes = [self._cluster.rows[row] for row in found.tolist()]
        refused: dict[int, Status] = {}
        for client in self._concerned(pod, lambda configuration: configuration.filters):
            if not nodes:
                break
            try:
                kept, failed, unresolvable, as_objects = await client.filter(pod, nodes)
            except ExtenderError:
                if client.configuration.ignorable:
                    continue
                raise
            by_name = {node.name: node for node in nodes}
            for node in nodes:
                name = node.name
                if name in unresolvable:
                    refused[node.row] = Status(UNRESOLVABLE, (unresolvable[name],), EXTENDER)
                elif name in failed:
                    refused[node.row] = Status(UNSCHEDULABLE, (failed[name],), EXTENDER)
                else:
                    refused[node.row] = _UNSEEN._replace(plugin=EXTENDER)
            nodes = [by_name[name] for name in kept]
            bare = bare or as_objects
            for node in nodes:
                refused.pop(node.row, None)
        rows = np.array([node.row for node in nodes], dtype=np.int64)
        return _Filtered(rows, refused, [node.bare() for node in nodes] if bare else None)

    async def _prioritize(self, filtering: Filtering, rows: IntArray) -> IntArray:
        """What extenders add to the scores of these rows; those that fail add nothing."""
        pod = filtering.cycle.pod
        nodes = [self._cluster.rows[row] for row in rows.tolist()]
        total: IntArray = np.zeros(len(rows), dtype=np.int64)
        asked = self._concerned(pod, _prioritizes)
        for scores in await asyncio.gather(*[_unless_it_fails(client.prioritize(pod, nodes), {}) for client in asked]):
            total += np.array([scores.get(node.name, 0) for node in nodes], dtype=np.int64)
        return total

    # Preemption -----------------------------------------------------------------------------------------------------

    async def preempt(
        self, pod: PodInfo, result: PostFilterResult, plugins: Sequence[PostFilterPlugin]
    ) -> PostFilterResult:
        """``callExtenders``: the choice among the candidates that the extenders leave."""
        asked = self._concerned(pod, lambda configuration: configuration.preempts)
        preemptor = next((plugin.preemptor for plugin in plugins if isinstance(plugin, DefaultPreemption)), None)
        if not asked or preemptor is None:
            return result
        candidates = [(one.node, list(one.victims), one.violations) for one in preemptor.candidates]
        for client in asked:
            ignorable = client.configuration.ignorable
            try:
                answer = await client.process_preemption(pod, candidates)
                for node, victims, _violations in answer:
                    if not victims and not ignorable:
                        raise ExtenderError(f'expected at least one victim pod on node "{node}"')
            except ExtenderError as error:
                if ignorable:
                    continue
                return PostFilterResult(message=f"preemption: {error}")
            candidates = [one for one in answer if one[1]]
            if not candidates:
                return PostFilterResult(message=results.joined(result.before, NO_CANDIDATE))
        options = self.remaining = [preemptor.rated(*one) for one in candidates]
        best = preemptor.best(options)[0]
        return dataclasses.replace(result, node=best.node, candidate=best, candidates=len(options))

    # The binding cycle ----------------------------------------------------------------------------------------------

    async def bind(self, pod: PodInfo, node: str) -> Status | Skip | None:
        """None when an extender bound the pod, SKIP when that is left to the plugins."""
        for client in self._concerned(pod, lambda configuration: configuration.binds):
            try:
                await client.bind(pod, node)
            except ExtenderError as error:
                if client.configuration.ignorable:
                    continue
                return Status(ERROR, (str(error),))
            return None
        return SKIP


def _prioritizes(configuration: ExtenderConfiguration) -> bool:
    return configuration.prioritizes


async def _unless_it_fails(answer: Awaitable[Answer], otherwise: Answer) -> Answer:
    try:
        return await answer
    except ExtenderError:
        return otherwise
