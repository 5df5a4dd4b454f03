"""Checks that what controllers count agrees with what there is: quotas, and the pods of disruption budgets."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass, field
from typing import Any, ClassVar

from kemu.emulated.objects import meta, selectors
from kemu.emulated.objects.amounts import requests
from kemu.emulated.objects.pods import pod_phases
from kemu.lab.checks import scales
from kemu.lab.checks.attention import Punctual
from kemu.lab.checks.history import POD_PREFIX, STATUS, outages, parsed
from kemu.lab.checks.history.histories import History
from kemu.messages.k8s import core_v1_pb2, policy_v1_pb2
from kemu.runtime.runlog.events import ConnectionLost, RequestRefused, Transaction

_QUOTAS = "/registry/resourcequotas/"
_BUDGETS = "/registry/poddisruptionbudgets/"
_QUOTA_ACTOR, _BUDGET_ACTOR = "controller/resourcequota", "controller/disruption"
_SOON_S = 30.0
_RECOUNTED_S = 300.0 + _SOON_S
"""Until a quota that says less is right: the controller counts all quotas anew every five minutes."""
_TIMED_OUT = "resource quota evaluation timed out"
_MEASURED = {"pods": "pods", "cpu": "cpu", "requests.cpu": "cpu", "memory": "memory", "requests.memory": "memory"}
"""What of a quota is computed here, and from which request."""


@dataclass(slots=True)
class _Pod:
    namespace: str
    labels: dict[str, str]
    ready: bool
    over: bool
    deleting: bool
    wanted: dict[str, int]
    priority_class: str
    owner: scales.Owner | None


@dataclass(slots=True)
class _Counter:
    """A quota or budget, and what it should say."""

    name: str
    namespace: str
    value: Any
    selector: Any = None
    members: dict[str, None] = field(default_factory=dict)


class _Counts(Punctual):
    """What both have in common: pods by namespace."""

    prefix: ClassVar[str]

    def __init__(self, *args: Any) -> None:
        super().__init__(*args)
        self._pods: dict[str, dict[str, _Pod]] = {}
        """By namespace and key."""
        self._counters: dict[str, dict[str, _Counter]] = {}

    def saw(self, time_ns: int, actor: str, event: Transaction) -> None:
        for op, key, value, _create, _version in event.changes:
            self._changed(time_ns, key, value if op == 0 else None)

    def pod_changes(self) -> int | None:
        return STATUS if self._counters and not self._ended else None

    def on_pod(self, time_ns: int, revision: int, key: str, pod: core_v1_pb2.Pod | None) -> None:
        namespace = self._put(key, pod)
        for counter in self._counters.get(namespace, {}).values():
            self._look(time_ns, counter)

    def _changed(self, time_ns: int, key: str, value: bytes | None) -> None:
        if key.startswith(self.prefix):
            if not self._counters:  # Pods count from now on.
                for name, pod in self._attention.history.values.items():
                    if name.startswith(POD_PREFIX):
                        self._put(name, parsed.pod(pod))
            namespace = key.split("/", 4)[3]
            counters = self._counters.setdefault(namespace, {})
            if len(self._counters) == 1:
                self.ask_again()
            if value is None:
                if key in counters:
                    self._forget(time_ns, counters.pop(key))
            else:
                counters[key] = self._counter(key, namespace, value)
                self._look(time_ns, counters[key])

    def _put(self, key: str, pod: core_v1_pb2.Pod | None) -> str:
        """Keep what a pod is now; returns its namespace."""
        namespace = key.split("/", 4)[3]
        pods = self._pods.setdefault(namespace, {})
        if pod is None:
            pods.pop(key, None)
        else:
            pods[key] = _pod(pod)
        return namespace

    def _forget(self, time_ns: int, counter: _Counter) -> None:
        for key in self._overdue.open():
            if key[0] == counter.name:
                self._overdue.drop(key)

    def rolled_back(self, time_ns: int, history: History) -> None:
        self._pods.clear()
        self._counters.clear()
        for key, value in history.values.items():
            self._changed(time_ns, key, value)
        self.ask_again()
        super().rolled_back(time_ns, history)

    @abstractmethod
    def _counter(self, key: str, namespace: str, value: bytes) -> _Counter:
        """What counts pods, as the store has it."""

    @abstractmethod
    def _look(self, time_ns: int, counter: _Counter) -> None:
        """Whether it says what there is."""


class QuotasCountWhatExists(_Counts):
    """What a ResourceQuota says is used agrees with the pods of its namespace, after 30 seconds at the latest.

    Pods, cpu and memory of quotas without scopes but that of priority classes. Pods that have ended count no more; one
    that is being deleted may or may not (``QuotaV1Pod``). What is reserved for a pod that was refused afterwards, by
    something else than a quota, is given back at the next full count; what a count from a cache that lags behind has
    left out is back by then, too (``syncResourceQuota``, which new pods do not call). So is what is reserved after the
    request for it was refused, because that took ten seconds (``quotaEvaluator.Evaluate``), and what an API server has
    reserved that crashes or loses the store before it writes the pod, or reserves twice because it is not told.
    """

    id: ClassVar[str] = "quotas-count-what-exists"
    prefix: ClassVar[str] = _QUOTAS
    keys: ClassVar[tuple[str, ...]] = (_QUOTAS,)
    nothing: ClassVar[str] = "no quota had to be counted"
    unit: ClassVar[str] = "count"

    def __init__(self, *args: Any) -> None:
        super().__init__(*args)
        self._late: dict[str, None] = {}
        """Namespaces in which quotas may reserve what was refused already."""
        self._lost_ns = -(1 << 62)
        """When an API server last crashed, or lost the store."""

    def saw(self, time_ns: int, actor: str, event: Transaction | RequestRefused | ConnectionLost) -> None:
        if isinstance(event, Transaction):
            super().saw(time_ns, actor, event)
        elif isinstance(event, ConnectionLost):
            if outages.is_store(actor) or outages.is_store(event.peer):
                self._lost_ns = time_ns
                self._reserved()
        elif event.verb == "create" and " quota: " not in event.message:
            if event.message.endswith(_TIMED_OUT):
                self._late[event.namespace] = None
            self._reserved(f"{event.namespace}/")

    def _reserved(self, prefix: str = "") -> None:
        """What quotas of these namespaces say too much may be for pods that there will never be."""
        for key in self._overdue.open():
            if key[2] == "more" and key[0].startswith(prefix):
                self._overdue.allow(key, _RECOUNTED_S)

    def _counter(self, key: str, namespace: str, value: bytes) -> _Counter:
        return _Counter(key.removeprefix(_QUOTAS), namespace, core_v1_pb2.ResourceQuota.FromString(value))

    def _look(self, time_ns: int, counter: _Counter) -> None:
        spec, status = counter.value.spec, counter.value.status
        scopes = spec.scopeSelector.matchExpressions
        if spec.scopes or any(scope.scopeName != "PriorityClass" for scope in scopes):
            return
        pods = [
            pod
            for pod in self._pods.get(counter.namespace, {}).values()
            if not pod.over and all(_is_in_scope(pod, scope) for scope in scopes)
        ]
        for resource, request in _MEASURED.items():
            if resource not in status.used or resource not in spec.hard:
                continue
            said = requests.resource_list({request: status.used[resource]})[request]
            most = sum(1 if request == "pods" else pod.wanted.get(request, 0) for pod in pods)
            least = sum(1 if request == "pods" else pod.wanted.get(request, 0) for pod in pods if not pod.deleting)
            for way, is_wrong in (("less", said < least), ("more", said > most)):
                key = counter.name, resource, way
                if is_wrong:
                    what = f"quota {counter.name} says that {said} of {resource} is used, and its pods want {most}"
                    is_lost = time_ns - self._lost_ns <= _SOON_S * 1e9
                    is_soon = way == "more" and counter.namespace not in self._late and not is_lost
                    within_s = _SOON_S if is_soon else _RECOUNTED_S
                    self._overdue.begin(key, time_ns, _QUOTA_ACTOR, within_s, what)
                else:
                    self._overdue.end(key, time_ns)


class BudgetsFollowTheirPods(_Counts):
    """The status of a disruption budget says how many pods are healthy and how many it wants, 30 seconds late at most.

    Healthy are pods that are ready and not being deleted; one whose eviction was granted may count no more
    (``countHealthyPods``). How many there should be, of a share of them, is for their ReplicaSets, StatefulSets and
    Deployments to say; where a pod has another controller, or one that is gone, the disruption controller may refuse to
    answer (``getExpectedScale``).
    """

    id: ClassVar[str] = "budgets-follow-their-pods"
    prefix: ClassVar[str] = _BUDGETS
    keys: ClassVar[tuple[str, ...]] = (_BUDGETS, *scales.PREFIXES)
    nothing: ClassVar[str] = "no disruption budget had to change"
    unit: ClassVar[str] = "change"

    def __init__(self, *args: Any) -> None:
        super().__init__(*args)
        self._scales = scales.Scales()

    def _changed(self, time_ns: int, key: str, value: bytes | None) -> None:
        if self._scales.changed(key, value):
            for counter in self._counters.get(key.split("/", 4)[3], {}).values():
                self._look(time_ns, counter)
        else:
            super()._changed(time_ns, key, value)

    def rolled_back(self, time_ns: int, history: History) -> None:
        self._scales.clear()
        super().rolled_back(time_ns, history)

    def _counter(self, key: str, namespace: str, value: bytes) -> _Counter:
        found = policy_v1_pb2.PodDisruptionBudget.FromString(value)
        return _Counter(
            key.removeprefix(_BUDGETS), namespace, found, selectors.compile_labels_field(found.spec, "selector")
        )

    def _look(self, time_ns: int, counter: _Counter) -> None:
        spec, status, disrupted = counter.value.spec, counter.value.status, counter.value.status.disruptedPods
        healthy = leaving = 0
        owners: list[scales.Owner | None] = []
        prefix = f"{POD_PREFIX}{counter.namespace}/"
        for key, pod in self._pods.get(counter.namespace, {}).items():
            if not counter.selector.matches(pod.labels):
                continue
            owners.append(pod.owner)
            if pod.ready and not pod.deleting:
                healthy += 1
                leaving += key.removeprefix(prefix) in disrupted
        wanted, is_share = int(spec.minAvailable.intVal), scales.is_share(spec)
        if is_share:
            if not self._scales.are_known(owners):
                self._forget(time_ns, counter)
                return
            wanted = scales.desired(spec, self._scales.expected(owners))
        what = f"budget {counter.name} says that {status.currentHealthy} of its pods are healthy, and {healthy} are"
        self._owed(time_ns, (counter.name,), healthy - leaving <= status.currentHealthy <= healthy, what)
        what = f"budget {counter.name} says that it wants {status.desiredHealthy} healthy pods, and it wants {wanted}"
        self._owed(time_ns, (counter.name, "wants"), status.desiredHealthy == wanted, what)

    def _owed(self, time_ns: int, key: tuple[str, ...], is_right: bool, what: str) -> None:
        if is_right:
            self._overdue.end(key, time_ns)
        else:
            self._overdue.begin(key, time_ns, _BUDGET_ACTOR, _SOON_S, what)


def _pod(pod: core_v1_pb2.Pod) -> _Pod:
    return _Pod(
        pod.metadata.namespace, dict(pod.metadata.labels), meta.is_ready(pod), pod_phases.is_terminal(pod),
        pod.metadata.HasField("deletionTimestamp"), requests.pod_requests(pod),
        pod.spec.priorityClassName, scales.owner_of(pod),
    )  # fmt: skip


def _is_in_scope(pod: _Pod, scope: core_v1_pb2.ScopedResourceSelectorRequirement) -> bool:
    has = pod.priority_class
    if scope.operator in ("In", "NotIn"):
        return bool((has in scope.values) == (scope.operator == "In"))
    return bool(bool(has) == (scope.operator == "Exists"))
