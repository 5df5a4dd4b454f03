"""LimitRanger: the limit ranges of a namespace complete and bound what containers, pods and claims ask for.

Mirrors ``plugin/pkg/admission/limitranger``. Kubernetes looks into the store, at most every 30 s, for a namespace of
which its cache has no limit range. kemu's API servers do so once they have seen a limit range of any namespace: so
clusters without limit ranges pay nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from kemu.emulated.apiserver import errors
from kemu.emulated.apiserver.admission.base import Derived, Host, Plugin
from kemu.emulated.apiserver.storage import Storage
from kemu.emulated.apiserver.watch.cache import WatchCache
from kemu.emulated.objects import resources
from kemu.emulated.objects.amounts import pod_totals, quantities, resource_lists
from kemu.emulated.objects.amounts.quantities import MAX_VALUE, NANO, Quantity
from kemu.emulated.objects.amounts.resource_lists import Amounts
from kemu.emulated.objects.resources import Resource
from kemu.emulated.objects.wire import key_ranges
from kemu.messages.k8s import core_v1_pb2
from kemu.messages.k8s.objects import KubernetesObject
from kemu.runtime.env import SECOND_NS

PODS = resources.BY_PLURAL["pods"]
CLAIMS = resources.BY_PLURAL["persistentvolumeclaims"]
LIMIT_RANGES = resources.BY_PLURAL["limitranges"]
ANNOTATION = "kubernetes.io/limit-ranger"
LIVE_NS = 30 * SECOND_NS
"""How long an answer of the store counts (``liveTTL``)."""

CONTAINER, POD, CLAIM = "Container", "Pod", "PersistentVolumeClaim"
_MAX_MILLI_VALUE = MAX_VALUE // 1000
_POD_LEVEL = ("cpu", "memory")


class LimitRanger(Plugin[KubernetesObject]):
    def __init__(self, storage: Storage, cache: WatchCache) -> None:
        super().__init__(storage, cache)
        self._ranges = Derived(cache, LIMIT_RANGES.plural, _by_namespace)
        self._live: dict[str, tuple[int, list[Any]]] = {}
        """Until when, and what the store had."""
        self._seen = False
        self._now_ns: Callable[[], int] = lambda: 0

    def attach(self, host: Host) -> None:
        self._now_ns = host.env.clock.now_ns

    @classmethod
    def concerns(cls, resource: Resource) -> bool:
        return resource is PODS or resource is CLAIMS or resource is LIMIT_RANGES

    async def create(self, resource: Resource, obj: KubernetesObject) -> None:
        if resource is LIMIT_RANGES:
            self._seen = True
        elif isinstance(obj, core_v1_pb2.Pod) and self._may_have_any():
            for limit_range in await self._of(obj.metadata.namespace):
                complete(limit_range, obj)

    async def validate(self, resource: Resource, obj: KubernetesObject) -> None:
        if resource is not LIMIT_RANGES and self._may_have_any():
            for limit_range in await self._of(obj.metadata.namespace):
                found = problems(limit_range, obj)
                if found:
                    metadata = obj.metadata
                    raise errors.forbidden(resource, metadata.name or metadata.generateName, found)

    def may_validate_update(self, resource: Resource, subresource: str) -> bool:
        return (resource is PODS and subresource == "resize") or (resource is CLAIMS and not subresource)

    def validates_update(self, namespace: str) -> bool:
        return self._may_have_any()

    async def validate_update(
        self, resource: Resource, subresource: str, new: KubernetesObject, old: KubernetesObject
    ) -> None:
        if not old.metadata.HasField("deletionTimestamp"):
            await self.validate(resource, new)

    def _may_have_any(self) -> bool:
        if not self._seen and self._ranges.get():
            self._seen = True
        return self._seen

    async def _of(self, namespace: str) -> list[core_v1_pb2.LimitRange]:
        found = self._ranges.get().get(namespace)
        if found:
            return found
        now_ns = self._now_ns()
        until_ns, live = self._live.get(namespace, (-1, []))
        if until_ns < now_ns:
            prefix = resources.prefix(LIMIT_RANGES, namespace)
            response = await self.storage.range(prefix, key_ranges.prefix_end(prefix))
            live = [LIMIT_RANGES.message.FromString(pair.value) for pair in response.kvs]
            self._live[namespace] = now_ns + LIVE_NS, live
        return live


def _by_namespace(limit_ranges: Iterable[Any]) -> dict[str, list[Any]]:
    found: dict[str, list[Any]] = {}
    for one in limit_ranges:
        found.setdefault(one.metadata.namespace, []).append(one)
    return found


# Completing pods ----------------------------------------------------------------------------------------------------


def complete(limit_range: core_v1_pb2.LimitRange, pod: core_v1_pb2.Pod) -> None:
    """Give containers the default requests and limits that they lack, and note it in an annotation."""
    requests: dict[str, str] = {}
    limits: dict[str, str] = {}
    for item in limit_range.spec.limits:
        if item.type == CONTAINER:
            requests.update({name: item.defaultRequest[name].string for name in sorted(item.defaultRequest)})
            limits.update({name: item.default[name].string for name in sorted(item.default)})
    notes: list[str] = []
    spec = pod.spec
    for containers, what in ((spec.containers, "container"), (spec.initContainers, "init container")):
        for container in containers:
            stated = container.resources
            for wanted, field, which in ((requests, stated.requests, "request"), (limits, stated.limits, "limit")):
                lacking = [name for name in sorted(wanted) if name not in field]
                for name in lacking:
                    field[name].string = str(quantities.parse(wanted[name]))
                if lacking:
                    notes.append(f"{', '.join(lacking)} {which} for {what} {container.name}")
    if notes:
        pod.metadata.annotations[ANNOTATION] = f"LimitRanger plugin set: {'; '.join(notes)}"


# Bounds -------------------------------------------------------------------------------------------------------------


def problems(limit_range: core_v1_pb2.LimitRange, obj: KubernetesObject) -> str:
    """What the limit range has against a pod or a claim; "" for nothing."""
    found: list[str] = []
    for item in limit_range.spec.limits:
        if isinstance(obj, core_v1_pb2.Pod) and item.type == CONTAINER:
            for container in (*obj.spec.containers, *obj.spec.initContainers):
                stated = container.resources
                _check(item, resource_lists.read(stated.requests), resource_lists.read(stated.limits), found)
        elif isinstance(obj, core_v1_pb2.Pod) and item.type == POD:
            _check(item, _total(obj, pod_totals.REQUESTS), _total(obj, pod_totals.LIMITS), found)
        elif isinstance(obj, core_v1_pb2.PersistentVolumeClaim) and item.type == CLAIM:
            _check_claim(item, resource_lists.read(obj.spec.resources.requests), found)
    found = list(dict.fromkeys(found))
    return f"[{', '.join(found)}]" if len(found) > 1 else "".join(found)


def _total(pod: core_v1_pb2.Pod, which: str) -> dict[str, Quantity]:
    """Without overhead, and as the spec states it (``podRequests``, ``podLimits``)."""
    total = pod_totals.of_containers(pod, which, use_status=False)
    stated = resource_lists.read(getattr(pod.spec.resources, which))
    total.update({name: quantity for name, quantity in stated.items() if name in _POD_LEVEL})
    return total


def _check(item: core_v1_pb2.LimitRangeItem, requests: Amounts, limits: Amounts, found: list[str]) -> None:
    for name, bound in resource_lists.read(item.min).items():
        found += _below(item.type, name, bound, requests.get(name), limits.get(name))
    for name, bound in resource_lists.read(item.max).items():
        found += _above(item.type, name, bound, requests.get(name), limits.get(name))
    for name, bound in resource_lists.read(item.maxLimitRequestRatio).items():
        found += _ratio_above(item.type, name, bound, requests.get(name), limits.get(name))


def _check_claim(item: core_v1_pb2.LimitRangeItem, requests: Amounts, found: list[str]) -> None:
    for name, bound in resource_lists.read(item.min).items():
        found += _below(item.type, name, bound, requests.get(name), None)
    for name, bound in resource_lists.read(item.max).items():
        request = requests.get(name)
        asked, _, most = _comparable(request, None, bound)
        if request is None:
            found.append(f"maximum {name} usage per {item.type} is {bound}.  No request is specified")
        elif asked > most:
            found.append(f"maximum {name} usage per {item.type} is {bound}, but request is {request}")


def _below(kind: str, name: str, bound: Quantity, request: Quantity | None, limit: Quantity | None) -> list[str]:
    """``minConstraint``."""
    asked, most, least = _comparable(request, limit, bound)
    text = f"minimum {name} usage per {kind} is {bound}"
    if request is None:
        return [f"{text}.  No request is specified"]
    if asked < least:
        return [f"{text}, but request is {request}"]
    if limit is not None and most < least:
        return [f"{text}, but limit is {limit}"]
    return []


def _above(kind: str, name: str, bound: Quantity, request: Quantity | None, limit: Quantity | None) -> list[str]:
    """``maxConstraint``."""
    asked, limited, most = _comparable(request, limit, bound)
    text = f"maximum {name} usage per {kind} is {bound}"
    if limit is None:
        return [f"{text}.  No limit is specified"]
    if limited > most:
        return [f"{text}, but limit is {limit}"]
    if request is not None and asked > most:
        return [f"{text}, but request is {request}"]
    return []


def _ratio_above(kind: str, name: str, bound: Quantity, request: Quantity | None, limit: Quantity | None) -> list[str]:
    """``limitRequestRatioConstraint``."""
    asked, limited, _ = _comparable(request, limit, bound)
    text = f"{name} max limit to request ratio per {kind} is {bound}"
    if request is None or asked == 0:
        return [f"{text}, but no request is specified or request is 0"]
    if limit is None or limited == 0:
        return [f"{text}, but no limit is specified or limit is 0"]
    ratio = float(limited) / float(asked)
    precise = bound.value <= _MAX_MILLI_VALUE
    most = float(bound.milli if precise else bound.value)
    if (ratio * 1000 if precise else ratio) > most:
        return [f"{text}, but provided ratio is {ratio:.6f}"]
    return []


def _comparable(request: Quantity | None, limit: Quantity | None, bound: Quantity) -> tuple[int, int, int]:
    """In thousandths where they fit, else in whole units (``requestLimitEnforcedValues``)."""
    amounts = (request or quantities.ZERO, limit or quantities.ZERO, bound)
    if all(one.nano <= _MAX_MILLI_VALUE * NANO for one in amounts):
        return amounts[0].milli, amounts[1].milli, amounts[2].milli
    return amounts[0].value, amounts[1].value, amounts[2].value
