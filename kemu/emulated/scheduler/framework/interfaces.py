"""The scheduling framework: extension points, and what plugins are given.

A plugin is a class whose name is the plugin's name; it takes part in the extension points whose base classes it has:

    class PreferQuietNodes(NodeScorePlugin):
        def score(self, pod, node):
            return 100 - min(100, len(node.pods))

    class OnlyEvenNames(NodeFilterPlugin):
        def filter(self, pod, node):
            return None if node.name[-1] in "02468" else unschedulable("node(s) had an odd name")

``pod`` is the :class:`Cycle` of the attempt, which shows the pending pod; ``node`` a
:class:`~kemu.emulated.scheduler.cache.nodes.NodeInfo`. A plugin is made once for each profile, with its arguments and a
:class:`Handle`.

**Column form.** Asking a Python function about each of 5,000 nodes is slow, so the framework speaks in *verdicts*: for
each node a small integer, 0 where the node passes, otherwise a number that :meth:`FilterPlugin.explain` turns into a
:class:`~kemu.emulated.scheduler.framework.statuses.Status`. ``verdicts`` answers for all nodes at once, ``verdict`` for
one node; both must agree (tests compare them). The same holds for ``scores`` and ``score``.

**Scope.** What an answer depends on decides how long it stays true. ``NODE_OBJECT`` and ``NODE`` answers are kept for
each template of pods and brought up to date for the nodes that changed
(:mod:`kemu.emulated.scheduler.cycle.evaluations`); ``CLUSTER`` answers are computed for each attempt. Plugins of the
first two scopes may read nothing but the template and the node.

The order of a cycle: QueueSort → PreFilter → Filter → (PostFilter when no node is left) → PreScore → Score →
NormalizeScore → Reserve → Permit; then, concurrently with other cycles, PreBindPreFlight → (Permit's wait) → PreBind →
Bind → PostBind. PreEnqueue decides whether a pod may enter the active queue, and ``events`` says what may make a pod
schedulable that the plugin rejected.
"""

from __future__ import annotations

import enum
from collections.abc import Callable, Collection, Coroutine, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Protocol

import numpy as np

from kemu.emulated.scheduler.cache.cluster import Cluster
from kemu.emulated.scheduler.cache.columns import BoolArray, IntArray
from kemu.emulated.scheduler.cache.nodes import NodeInfo
from kemu.emulated.scheduler.cache.pod_groups import Groups
from kemu.emulated.scheduler.cache.pods import PodInfo, Template
from kemu.emulated.scheduler.experiments.avoided_nodes import AvoidedNodes
from kemu.emulated.scheduler.experiments.switches import Policy
from kemu.emulated.scheduler.framework import answers
from kemu.emulated.scheduler.framework.events import Event, Hint
from kemu.emulated.scheduler.framework.permits import WaitingPod
from kemu.emulated.scheduler.framework.results import PostFilterResult
from kemu.emulated.scheduler.framework.run_times import RunTimes
from kemu.emulated.scheduler.framework.signers import Fragments
from kemu.emulated.scheduler.framework.statuses import Status
from kemu.errors import FieldError
from kemu.messages.k8s import core_v1_pb2
from kemu.messages.k8s.objects import KubernetesObject
from kemu.runtime import user_code
from kemu.runtime.env import Clock, Random

MAX_SCORE = answers.MAX_SCORE


class Scope(enum.Enum):
    """What the answer of a plugin about a pod and a node depends on, besides the template of the pod."""

    NODE_OBJECT = "node object"
    """The Node alone: labels, taints, name."""
    NODE = "node"
    """The Node and the pods on it or nominated to it."""
    CLUSTER = "cluster"
    """Anything: other nodes, other pods, the labels of the pod itself."""


class Skip(enum.Enum):
    """Returned by ``prepare``: the plugin has nothing to do for this pod."""

    SKIP = "skip"


SKIP = Skip.SKIP


class Api(Protocol):
    """The part of :class:`kemu.emulated.client.clients.Client` that writes: all API calls of a scheduler."""

    async def bind(
        self, namespace: str, name: str, uid: str, node: str, annotations: Mapping[str, str] | None = None
    ) -> Any:
        """``annotations``: what the pod gets in the same request (``Binding.metadata.annotations``)."""
        ...

    async def patch(
        self,
        resource: str,
        name: str,
        namespace: str,
        patch: Mapping[str, Any],
        subresource: str = "",
        type: str = "merge",  # noqa: A002 - the field's word
        uid: str = "",
    ) -> Any: ...

    async def delete(self, resource: str, name: str, namespace: str = "", *, uid: str = "") -> Any: ...

    async def update(self, obj: KubernetesObject) -> Any:
        """Replaces an object that is still as it was read (Conflict). Returns it as it is now."""
        ...


class Handle:
    """What the framework offers to plugins."""

    def run_times(self) -> RunTimes:
        """How long pods still run, for a plugin that asks when it is made. Raises :class:`ArgumentError` unless the
        scenario says ``policy: {runTimes: known}``: no scheduler of a real cluster knows that."""
        if self.policy.runTimes != "known":
            raise ArgumentError(
                "", "the plugin asks how long pods run, which the scheduler's policy must allow: runTimes: known"
            )
        return RunTimes(lambda: self.clock)

    def __init__(self, cluster: Cluster, rng: Random, policy: Policy | None = None) -> None:
        self.cluster = cluster
        self.random = rng
        self.policy = policy or Policy()
        self.start_row = 0
        """Where the next search for feasible nodes begins, for all profiles (``nextStartNodeIndex``)."""
        self.scheduling_cycle = 0
        """How many pods the queue has handed out, for all profiles (``SchedulingCycle``)."""
        self.draws_lots = True
        """Several workers find nodes in no certain order, and the order decides between nodes of equal score."""
        self.preempted_on: dict[str, str] = {}
        """Without nominations: the node on which a pod (by UID) preempted, lest it preempt elsewhere too."""
        self.is_preempting: Callable[[str], bool] = lambda uid: False
        """Whether the eviction of this pod's victims (by UID) is still under way."""
        self.latest: Callable[[PodInfo], Any | None] = lambda pod: pod.pod
        """The pod as the watch last showed it, which may be newer than the attempt's; None: it was deleted."""
        self.waiting: dict[str, WaitingPod] = {}
        """Pods that wait for their permit, by UID: plugins allow or reject them."""
        self.groups: Groups | None = None
        """Groups of pods, with the feature gate GenericWorkload."""
        self.activate: Callable[[str], object] = lambda uid: None
        """Lets the queue retry a pod (by UID), whatever it waits for."""
        self.avoided: AvoidedNodes | None = None
        """Nodes that workloads have to avoid, with ``policy.avoidEvictedNode``."""
        self.clock: Clock | None = None
        """The time as this scheduler knows it, for plugins that wait."""
        self.api: Api | None = None
        """Like ``clock``, None where nothing is written, as in conformance cases."""
        self.spawn: Callable[[Coroutine[Any, Any, Any], str], object] = lambda work, name: work.close()
        """Starts a task beside the loop, for writes that nobody waits for."""
        self.event: Callable[[core_v1_pb2.Pod, str, str, str], object] = lambda pod, reason, action, note: None
        """Writes an Event about a pod."""


class Cycle:
    """One attempt to place one pod, as plugins see it."""

    __slots__ = ("cluster", "data", "pod", "template")

    def __init__(self, pod: PodInfo, cluster: Cluster) -> None:
        self.pod = pod
        self.template: Template = pod.template
        self.cluster = cluster
        self.data: dict[str, Any] = {}
        """Data that plugins share within the attempt, by plugin name (``CycleState``)."""

    @property
    def message(self) -> core_v1_pb2.Pod:
        """The ``core.v1.Pod``."""
        return self.pod.pod

    @property
    def name(self) -> str:
        return self.pod.name

    @property
    def namespace(self) -> str:
        return self.pod.namespace

    @property
    def labels(self) -> dict[str, str]:
        return self.pod.labels

    @property
    def priority(self) -> int:
        return self.pod.priority

    @property
    def requests(self) -> dict[str, int]:
        """By resource name: cpu in millicores, others in whole units; amounts above 0."""
        names = self.cluster.names.names
        return {names[number]: amount for number, amount in self.pod.requests}


_EXTENSION_POINTS = {
    "sort_key": "QueueSort", "pre_enqueue": "PreEnqueue", "pre_filter": "PreFilter", "prepare": "PreFilter",
    "filter": "Filter", "verdict": "Filter", "verdicts": "Filter", "mask": "Filter", "explain": "Filter",
    "post_filter": "PostFilter", "may_preempt": "PostFilter", "importance": "PostFilter", "cost": "PostFilter",
    "prepare_scores": "PreScore", "score": "Score", "scores": "Score",
    "normalize": "NormalizeScore", "reserve": "Reserve", "unreserve": "Unreserve", "permit": "Permit",
    "pre_bind_pre_flight": "PreBindPreFlight", "pre_bind": "PreBind", "bind": "Bind", "post_bind": "PostBind",
    "events": "EventsToRegister", "sign_pod": "SignPod",
}  # fmt: skip
"""By method."""


class Plugin(user_code.Callee):
    """Base of all plugins."""

    name: ClassVar[str] = ""
    is_foreign: ClassVar[bool] = False
    """It does not come with kemu, so its answers are checked."""
    is_idle = False
    """There is nothing in this cluster for which it would act at PreEnqueue, Score, Reserve or PreBind."""

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        cls.is_foreign = not cls.__module__.startswith("kemu.")
        if "name" not in cls.__dict__:
            cls.name = cls.__name__

    def __init__(self, args: Mapping[str, Any], handle: Handle) -> None:
        """``args``: the plugin's entry in ``pluginConfig``. Raise :class:`ArgumentError` for an invalid one."""
        self.args = args
        self.handle = handle

    def call(self, function: str, known: Iterable[Any]) -> user_code.Call | None:
        point = _EXTENSION_POINTS.get(function)
        if point is None:
            return None
        pod = node = ""
        for value in known:
            if isinstance(value, Cycle):
                pod = value.pod.key
            elif isinstance(value, PodInfo):
                pod = value.key
        if point in ("Filter", "Score"):
            nodes = [value.name for value in known if isinstance(value, NodeInfo)]
            node = nodes[-1] if nodes else ""
        return user_code.Call(self.name, point, pod, node)

    def events(self) -> Iterable[tuple[Event, Hint | None]]:
        """Which events may help a pod that this plugin rejected. Without a hint every such event does."""
        return [(event, None) for event in Event]


class ArgumentError(FieldError):
    """An argument of a plugin is wrong. ``path`` leads there from the plugin's arguments."""


class SignPlugin(Plugin):
    """Says on what of a pod its filter and score depend; a profile reuses results if all its filters and scorers do.

    What they depend on must follow from the spec and the labels of the pod, and from the nodes and the pods on them.
    """

    def signs(self) -> bool:
        """Whether it can sign any pod at all."""
        return True

    def sign_pod(self, pod: PodInfo) -> Fragments | None:
        """Pods of equal fragments are equal to this plugin; None: this pod is like no other."""
        raise TypeError(f"{self.name} has no sign_pod")


class QueueSortPlugin(Plugin):
    def sort_key(self, pod: PodInfo, timestamp_ns: int) -> tuple[int, ...]:
        """Smaller keys come first."""
        raise TypeError(f"{self.name} has no sort_key")


class PreEnqueuePlugin(Plugin):
    def pre_enqueue(self, pod: PodInfo) -> Status | None:
        """A status keeps the pod out of the active queue; None lets it in."""
        raise TypeError(f"{self.name} has no pre_enqueue")


@dataclass(frozen=True, slots=True)
class Narrowed:
    """Returned by ``prepare`` of a filter: only these nodes are candidates. ``state`` as ``prepare`` returns it."""

    names: tuple[str, ...]
    state: Any = SKIP


class FilterPlugin(Plugin):
    """Decides on which nodes the pod can run."""

    scope: ClassVar[Scope] = Scope.CLUSTER
    may_fail: ClassVar[bool] = False
    """Some verdict may stand for an error, which ends the attempt."""
    asks_passing: ClassVar[bool] = False
    """CLUSTER scope: it is asked only about nodes that pass the filters before it."""

    ends_search: ClassVar[bool] = False
    """With ``asks_passing``: it is asked no longer than until enough nodes have passed."""

    def prepare(self, cycle: Cycle) -> Any:
        """PreFilter: the state for filtering, SKIP, Narrowed, or a Status that rejects the pod on all nodes.

        With a scope smaller than CLUSTER this is called once for each template.
        """
        return None

    def concerns(self, template: Template) -> bool:
        """CLUSTER scope only: False where ``prepare`` would skip every pod of this template, and is not asked."""
        return True

    def without_pre_filter(self) -> None:
        """The profile enables Filter for this plugin, but not PreFilter: reject no pod as a whole, narrow nothing."""

    def resource_demand(self, state: Any) -> Sequence[tuple[int, int]] | None:
        """(resource number, amount), where a verdict depends on nothing but sums over the pods of the node.

        A filter that returns them rejects a node where one of these amounts, or one more pod, does not fit beside the
        pods there, and no other node. None: the filter looks at more, or at other things.
        """
        return None

    def verdict(self, state: Any, node: NodeInfo) -> int:
        """0, or a positive number below 2**40 that :meth:`explain` understands."""
        raise TypeError(f"{self.name} has no verdict")

    def verdicts(self, state: Any, cluster: Cluster) -> IntArray | None:
        """The verdict of every node by row; None when all pass."""
        return np.array([self.verdict(state, node) for node in cluster.rows], dtype=np.int64)

    def explain(self, state: Any, verdict: int) -> Status:
        raise TypeError(f"{self.name} has no explain")

    def fork(self, state: Any) -> Any:
        """A copy of the state that :meth:`add_pod` and :meth:`remove_pod` may change."""
        return state

    def add_pod(self, state: Any, node: NodeInfo, pod: PodInfo) -> None:
        """A simulation added a pod to a node (CLUSTER scope only; others see it on the node)."""

    def remove_pod(self, state: Any, node: NodeInfo, pod: PodInfo) -> None:
        """A simulation removed a pod from a node."""

    def reach(self, state: Any, node: NodeInfo, pod: PodInfo) -> Collection[tuple[str, str]] | None:
        """Labels of the other nodes whose verdicts may change when a pod is added to this one or removed from it.

        None: it may be any node. Filters with a smaller scope than CLUSTER reach none. Pods of one template, with the
        same labels, that reach the same nodes change the same.
        """
        return None if self.scope is Scope.CLUSTER else ()

    def passes_anyway(self, state: Any, node: NodeInfo) -> bool:
        """Whether a node passes, whichever of its pods are removed, with or without the pods nominated to it.

        CLUSTER scope only: where this is True, dry runs of preemption skip this filter. False when in doubt.
        """
        return False

    def passing_anyway(self, state: Any, cluster: Cluster) -> BoolArray:
        """:meth:`passes_anyway` of every node by row."""
        return np.array([self.passes_anyway(state, node) for node in cluster.rows], dtype=np.bool_)


class NodeFilterPlugin(FilterPlugin):
    """A filter that is asked node by node: the simple form for user plugins."""

    asks_passing = True
    _skips_pre_filter = False

    def filter(self, pod: Cycle, node: NodeInfo) -> Status | None:
        """None when the node passes."""
        raise TypeError(f"{self.name} has no filter")

    def pre_filter(self, pod: Cycle) -> Status | Narrowed | Skip | None:
        """Runs before the nodes are checked; may reject the pod, narrow the nodes or skip the filter."""
        return None

    def without_pre_filter(self) -> None:
        self._skips_pre_filter = True

    def prepare(self, cycle: Cycle) -> Any:
        answer = None if self._skips_pre_filter else self.pre_filter(cycle)
        if answer is None:
            return _Statuses(cycle)
        if isinstance(answer, Narrowed):
            return Narrowed(answer.names, _Statuses(cycle))
        return answer if answer is SKIP else answers.status_of("pre_filter", answer, "None, a Status, Narrowed or SKIP")

    def verdict(self, state: _Statuses, node: NodeInfo) -> int:
        status = self.filter(state.cycle, node)
        return 0 if status is None else state.number(answers.status_of("filter", status))

    def explain(self, state: _Statuses, verdict: int) -> Status:
        return state.known[verdict - 1]


class MaskFilterPlugin(FilterPlugin):
    """A filter in column form with a single reason: the fast form for user plugins."""

    rejection: ClassVar[Status]
    """The status of nodes outside of the mask."""

    def mask(self, pod: Cycle, cluster: Cluster) -> Any:
        """A boolean array: True for rows of nodes that pass."""
        raise TypeError(f"{self.name} has no mask")

    def prepare(self, cycle: Cycle) -> Any:
        mask, nodes = self.mask(cycle, cycle.cluster), len(cycle.cluster)
        if np.shape(mask) != (nodes,):
            return answers.status_of("mask", mask, f"an array of booleans for {nodes} nodes")
        return np.asarray(mask, dtype=np.bool_)

    def verdict(self, state: Any, node: NodeInfo) -> int:
        return 0 if state[node.row] else 1

    def verdicts(self, state: Any, cluster: Cluster) -> IntArray | None:
        column: IntArray = (~state).astype(np.int64)
        return column

    def explain(self, state: Any, verdict: int) -> Status:
        return self.rejection


class _Statuses:
    """The distinct statuses that a node-by-node filter returned in one attempt."""

    __slots__ = ("cycle", "known")

    def __init__(self, cycle: Cycle) -> None:
        self.cycle = cycle
        self.known: list[Status] = []

    def number(self, status: Status) -> int:
        if status not in self.known:
            self.known.append(status)
        return self.known.index(status) + 1


class Diagnosis(Protocol):
    """Why no node takes the pod: what PreFilter and Filter said of every node (``NodeToStatus`` and the rest)."""

    cycle: Cycle
    nodes: int
    """How many nodes there are."""
    rejection: Status | None
    """PreFilter rejected the pod as a whole."""

    def status(self, row: int) -> Status | None:
        """Why the node of this row was rejected; None if it passed."""
        ...

    def message(self) -> str:
        """``0/5 nodes are available: …``, without what PostFilter adds."""
        ...

    def rejectors(self) -> tuple[str, ...]:
        """The plugins that rejected some node (``UnschedulablePlugins``)."""
        ...


class PostFilterPlugin(Plugin):
    """Runs when no node is feasible; may make room on one."""

    def post_filter(self, diagnosis: Diagnosis) -> PostFilterResult:
        raise TypeError(f"{self.name} has no post_filter")

    def order_victims(self, order: VictimOrderPlugin) -> bool:
        """Called once if the profile has such a plugin: whether this one follows it. Raises :class:`ArgumentError`."""
        return False


class VictimOrderPlugin(Plugin):
    """Says which pods DefaultPreemption spares, and which node it prefers, without a PostFilter of one's own.

    kube-scheduler has the same two functions for authors to replace (``IsEligiblePod`` and ``MoreImportantPod`` of its
    DefaultPreemption). All else stays as it is: only pods of lower priority are victims, disruption budgets are kept if
    possible, and no more pods leave than have to. A profile has at most one; multiPoint enables it.
    """

    def may_preempt(self, preemptor: PodInfo, victim: PodInfo) -> bool:
        """Whether a pod of lower priority may be preempted for this one."""
        return True

    def importance(self, victim: PodInfo) -> int | tuple[int, ...]:
        """Of a node's pods, the greatest are spared first; equal ones as in Kubernetes: by priority, then by start."""
        return ()

    def cost(self, victims: Sequence[PodInfo]) -> int | tuple[int, ...]:
        """Of the nodes with the fewest violated budgets, the smallest is taken; equal ones as in Kubernetes: by the
        priorities of the victims, their number and their start. ``victims``: the most important one first."""
        return ()


class ScorePlugin(Plugin):
    """Rates nodes. ``scope`` as for filters; a score that :meth:`normalize` relates to other nodes may still have a
    small scope, because only raw scores are kept."""

    scope: ClassVar[Scope] = Scope.CLUSTER
    normalizes: ClassVar[bool] = False

    def prepare_scores(self, cycle: Cycle, rows: IntArray) -> Any:
        """PreScore: the state for scoring, or SKIP. ``rows``: the feasible nodes.

        With a scope smaller than CLUSTER this is called once for each template, with no rows.
        """
        return None

    def score(self, state: Any, node: NodeInfo) -> int:
        """The raw score of one node."""
        raise TypeError(f"{self.name} has no score")

    def scores(self, state: Any, cluster: Cluster, rows: IntArray | None) -> IntArray:
        """The raw scores of the nodes in ``rows`` (None: all), int64."""
        nodes = cluster.rows if rows is None else [cluster.rows[row] for row in rows.tolist()]
        return np.array([self.score(state, node) for node in nodes], dtype=np.int64)

    def normalize(self, state: Any, scores: IntArray) -> IntArray:
        """NormalizeScore: from raw scores of the feasible nodes to 0..100."""
        return scores

    def version(self, cluster: Cluster) -> int:
        """A number that changes when kept scores become wrong although neither template nor node changed."""
        return 0


class NodeScorePlugin(ScorePlugin):
    """A score that is asked node by node: the simple form for user plugins. ``score(pod, node)``."""

    def prepare_scores(self, cycle: Cycle, rows: IntArray) -> Any:
        return cycle

    def scores(self, state: Any, cluster: Cluster, rows: IntArray | None) -> IntArray:
        nodes = cluster.rows if rows is None else [cluster.rows[row] for row in rows.tolist()]
        return answers.whole_scores(self.name, "score", [self.score(state, node) for node in nodes], len(nodes))


class ReservePlugin(Plugin):
    def reserve(self, cycle: Cycle, node: str) -> Status | None:
        """Claim what the pod needs on the node. A status rejects the pod; :meth:`unreserve` of all plugins follows."""
        return None

    def unreserve(self, cycle: Cycle, node: str) -> None:
        """Release the claim; must be harmless when there is none. Called in reverse order."""


class PermitPlugin(Plugin):
    def permit(self, cycle: Cycle, node: str) -> tuple[Status | None, float]:
        """None approves, a rejecting status denies, ``Status(WAIT)`` makes the pod wait for up to that many seconds."""
        return None, 0.0


class PreBindPlugin(Plugin):
    def pre_bind_pre_flight(self, cycle: Cycle, node: str) -> Status | Skip | None:
        """Before Permit's wait: None when there is work for the pod; SKIP when not, and :meth:`pre_bind` is skipped.

        Where there is work, the pod is nominated to its node for that time. A status must be an error.
        """
        return None

    async def pre_bind(self, cycle: Cycle, node: str) -> Status | None:
        """Prepare what the pod needs on the node. A status, or an ApiError, ends the binding.

        Interrupted by a CancelledError when the pod is preempted.
        """
        return None


class BindPlugin(Plugin):
    async def bind(self, cycle: Cycle, node: str) -> Status | Skip | None:
        """None when bound; SKIP leaves the pod to the next plugin. An ApiError means that the API server refused."""
        return SKIP


class PostBindPlugin(Plugin):
    def post_bind(self, cycle: Cycle, node: str) -> None:
        """The pod is bound."""
