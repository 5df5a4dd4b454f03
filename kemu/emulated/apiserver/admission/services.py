"""The addresses and ports of Services (``pkg/registry/core/service/storage``: ``Allocators``, and ``ipallocator``).

Where the API server keeps ranges of addresses (``serviceRanges``), each address that a Service gets is an IPAddress,
made before the Service is written and deleted after the Service is gone; what is free is asked of the watch cache, and
two API servers cannot give the same. Elsewhere addresses are drawn from the name of the Service and go on to the next
free one, as node ports always are; two Services that two API servers create at one moment can get the same.
"""

from __future__ import annotations

import contextlib
import zlib
from collections.abc import Awaitable, Callable, Iterable, Iterator, Sequence, Set
from contextvars import ContextVar
from typing import Any, NamedTuple

from kemu.emulated.apiserver import dry_runs
from kemu.emulated.apiserver.admission.base import Derived
from kemu.emulated.apiserver.admission.external.attributes import ASKING
from kemu.emulated.apiserver.watch.cache import WatchCache
from kemu.emulated.objects import meta, resources
from kemu.emulated.objects.kinds import service_ranges
from kemu.emulated.objects.validation import causes
from kemu.emulated.objects.validation.networks import services
from kemu.errors import AlreadyExists, ApiError, Cause, InternalError
from kemu.messages.k8s import core_v1_pb2, networking_v1_pb2
from kemu.messages.k8s.objects import KubernetesObject
from kemu.messages.v1 import api_pb2
from kemu.runtime.env import Random

Create = Callable[[str, str, KubernetesObject], Awaitable[object]]
Delete = Callable[[api_pb2.DeleteRequest], Awaitable[object]]

_ADDRESSES = resources.BY_PLURAL["ipaddresses"]

HEADLESS = "None"
EXTERNAL, LOAD_BALANCER = "ExternalName", "LoadBalancer"
WITH_NODE_PORTS = ("NodePort", LOAD_BALANCER)
SINGLE, PREFER_DUAL, REQUIRE_DUAL = "SingleStack", "PreferDualStack", "RequireDualStack"

_NODE_PORTS = range(30000, 32768)

TAKEN = "provided IP is already allocated"
NOT_HERE = "the provided network does not match the current range"
NOT_READY = "allocator not ready"
FULL = "range is full"

LEAST_STATIC, MOST_STATIC = 16, 256
SHORTEST_IPV6 = 64


class Range:
    """The addresses of one CIDR, in two bands: the lower one is for Services that ask for an address
    (``ServiceIPStaticSubrange``), and used for others when the upper one is full."""

    def __init__(self, cidr: str, is_ready: bool) -> None:
        self.cidr = cidr
        self.is_ready = is_ready
        self.network = service_ranges.network(cidr)
        last = int(self.network.broadcast_address) - (self.network.version == 4)
        self.first, self.end = int(self.network.network_address) + 1, last + 1
        size = self.network.num_addresses
        static = 0 if size <= LEAST_STATIC else max(LEAST_STATIC, min(MOST_STATIC, size // 16))
        self.offset = self.first + static

    def in_turn(self, random: Random) -> Iterator[str]:
        """All of them, beginning anywhere in the upper band."""
        if self.end <= self.offset:
            return
        for low, high in ((self.offset, self.end), (self.first, self.offset)):
            if high > low:
                start = random.randrange(low, high)
                yield from (self.text(number) for part in (range(start, high), range(low, start)) for number in part)

    def text(self, number: int) -> str:
        if self.network.version == 4:
            return ".".join(str(number >> shift & 255) for shift in (24, 16, 8, 0))
        return str(type(self.network.network_address)(number))


_USUAL = Range(service_ranges.USUAL[0], True)


class Change:
    """What a request does about addresses."""

    def __init__(self) -> None:
        self.taken: list[str] = []
        """To go back if the request fails."""
        self.left: list[str] = []
        """To go back if it succeeds."""


_CHANGE: ContextVar[Change | None] = ContextVar("change", default=None)
"""Of the update that is being carried out."""


class _Used(NamedTuple):
    addresses: frozenset[str]
    ports: frozenset[int]


class Services:
    """Of one API server."""

    def __init__(self, cache: WatchCache, random: Random, create: Create, delete: Delete) -> None:
        """``create``, ``delete``: those of the registry, for writes of its own."""
        self._random = random
        self._create_object, self._delete = create, delete
        self._used: Derived[_Used] = Derived(cache, "services", _used)
        self._objects = cache.collections["ipaddresses"].entries
        self._known: list[Range] = []
        self._ranges: Derived[list[Range]] = Derived(cache, "servicecidrs", self._read)
        self.families: tuple[str, ...] = ("IPv4",)
        """Those of the cluster, the first one by default."""
        self.has_ranges = False
        """Whether the API server keeps ranges, and an object for each address."""

    def keep(self, ranges: Sequence[str]) -> None:
        """Give addresses of the ranges that there are, these at first. Before the first request."""
        self.families = tuple(map(service_ranges.family, ranges))
        self.has_ranges = True

    def _read(self, objects: Iterable[networking_v1_pb2.ServiceCIDR]) -> list[Range]:
        """``syncAllocators``."""
        states: dict[str, list[bool]] = {}
        for one in objects:
            condition = meta.get_condition(one.status.conditions, service_ranges.READY)
            is_ready = condition is None or condition.status == "True"
            for cidr in one.spec.cidrs:
                states.setdefault(cidr, []).append(is_ready and not one.metadata.HasField("deletionTimestamp"))
        was_ready = {one.cidr for one in self._known if one.is_ready}
        # Of several with the same addresses, none says that they are no longer ready.
        self._known = [
            Range(cidr, any(ready) or (len(ready) > 1 and cidr in was_ready)) for cidr, ready in states.items()
        ]
        return self._known

    def _of_family(self, family: str) -> list[Range]:
        """In any order: there is none among allocators."""
        found = [
            one
            for one in self._ranges.get()
            if service_ranges.family(one.cidr) == family
            and (one.network.version == 4 or one.network.prefixlen >= SHORTEST_IPV6)
        ]
        if len(found) > 1:
            self._random.shuffle(found)
        return found

    # --- a request ----------------------------------------------------------------------------------------------------

    async def begin_create(self, service: core_v1_pb2.Service) -> list[str]:
        """Complete a new one. Returns the addresses that are taken for it. Raises :class:`kemu.errors.ApiError`."""
        spec = service.spec
        if spec.clusterIP and not spec.clusterIPs:
            spec.clusterIPs.append(spec.clusterIP)
        if spec.type == EXTERNAL:
            return []
        self._settle_families(service, None)
        taken = [] if services.is_headless(spec) else await self._take(service, range(len(spec.ipFamilies)))
        await self._give_ports(service, None, taken)
        return taken

    @contextlib.contextmanager
    def changing(self) -> Iterator[Change]:
        """What :meth:`begin_update` does within it."""
        change = Change()
        was = _CHANGE.set(change)
        try:
            yield change
        finally:
            _CHANGE.reset(was)

    async def begin_update(self, new: core_v1_pb2.Service, old: KubernetesObject) -> None:
        """Complete one that replaces another. Raises :class:`kemu.errors.ApiError`."""
        assert isinstance(old, core_v1_pb2.Service)
        change = _CHANGE.get() or Change()
        await self.give_back(change.taken)  # another write was faster, and it begins anew
        change.taken, change.left = [], []
        spec, before = new.spec, old.spec
        _keep(spec, before)
        if spec.type != EXTERNAL:
            self._settle_families(new, old)
        if _still_prefers_two(spec, before):
            pass
        elif before.type == EXTERNAL:
            if spec.type != EXTERNAL and not services.is_headless(spec):
                change.taken = await self._take(new, range(len(spec.ipFamilies)))
        elif services.is_headless(before):
            pass
        elif spec.type == EXTERNAL:
            change.left = list(before.clusterIPs)
        elif len(before.ipFamilies) == 1 and len(spec.ipFamilies) == 2:
            change.taken = await self._take(new, range(1, 2))
        elif len(before.ipFamilies) == 2 and len(spec.ipFamilies) == 1:
            change.left = list(before.clusterIPs[1:])
        if spec.type != EXTERNAL:
            await self._give_ports(new, before, change.taken)

    async def give_back(self, addresses: Iterable[str]) -> None:
        """``releaseIPs``: those that are in no range any more stay until they are found to be nobody's."""
        if not self.has_ranges or dry_runs.ACTIVE.get():
            return
        for text in addresses:
            if text in ("", HEADLESS) or service_ranges.family(text) not in self.families:
                continue
            address = service_ranges.address(text)
            if not any(service_ranges.holds(one.cidr, address) for one in self._ranges.get()):
                return
            request = api_pb2.DeleteRequest(name=str(address))
            request.resource.resource = _ADDRESSES.plural
            with _on_its_own(), contextlib.suppress(ApiError):
                await self._delete(request)

    # --- families -----------------------------------------------------------------------------------------------------

    def _settle_families(self, service: core_v1_pb2.Service, old: core_v1_pb2.Service | None) -> None:
        """``initIPFamilyFields``. Raises :class:`kemu.errors.Invalid`."""
        spec = service.spec
        if old is not None and _still_prefers_two(spec, old.spec):
            return
        selectorless = spec.clusterIP == HEADLESS and not spec.selector
        if not spec.HasField("ipFamilyPolicy"):
            known = old is not None and old.spec.HasField("ipFamilyPolicy")
            spec.ipFamilyPolicy = (
                old.spec.ipFamilyPolicy if old is not None and known else REQUIRE_DUAL if selectorless else SINGLE
            )
        found: list[Cause] = []
        services.check_addresses(spec, found)
        _raise(service, found)
        policy = spec.ipFamilyPolicy
        if old is not None:
            self._check_fewer(spec, old.spec, found)
        if policy == SINGLE:
            for field, what in (("clusterIPs", "cluster IPs"), ("ipFamilies", "IP families")):
                if len(getattr(spec, field)) == 2:
                    text = f"must be '{REQUIRE_DUAL}' or '{PREFER_DUAL}' when multiple {what} are specified"
                    found.append(causes.invalid("spec.ipFamilyPolicy", policy, text))
        for index, address in enumerate(spec.clusterIPs):
            if address == HEADLESS:
                break
            if index < len(spec.ipFamilies):
                continue
            family = service_ranges.family(address)
            if family in self.families:
                spec.ipFamilies.append(family)
            else:
                text = f"{family} is not configured on this cluster"
                found.append(causes.invalid(f"spec.clusterIPs[{index}]", list(spec.clusterIPs), text))
        _raise(service, found)
        if not selectorless:
            if policy == REQUIRE_DUAL and len(self.families) < 2:
                text = "this cluster is not configured for dual-stack services"
                found.append(causes.invalid("spec.ipFamilyPolicy", policy, text))
            for index, family in enumerate(spec.ipFamilies):
                if family not in self.families:
                    found.append(causes.invalid(f"spec.ipFamilies[{index}]", family, "not configured on this cluster"))
            _raise(service, found)
        if not spec.ipFamilies:
            spec.ipFamilies.append(self.families[0])
        if policy != SINGLE and len(spec.ipFamilies) == 1 and (selectorless or len(self.families) == 2):
            spec.ipFamilies.append("IPv6" if spec.ipFamilies[0] == "IPv4" else "IPv4")

    def _check_fewer(self, spec: core_v1_pb2.ServiceSpec, before: core_v1_pb2.ServiceSpec, found: list[Cause]) -> None:
        """Only who asks for a single family gives up the second one."""
        for field, what in (("clusterIPs", "cluster IP"), ("ipFamilies", "IP family")):
            values, were = getattr(spec, field), getattr(before, field)
            if spec.ipFamilyPolicy == SINGLE:
                if list(values) == list(were):
                    del values[1:]
            elif values and len(values) < len(were):
                text = f"must be '{SINGLE}' to release the secondary {what}"
                found.append(causes.invalid("spec.ipFamilyPolicy", spec.ipFamilyPolicy, text))

    # --- addresses ----------------------------------------------------------------------------------------------------

    async def _take(self, service: core_v1_pb2.Service, indexes: range) -> list[str]:
        """``allocIPs``: an address for each of these families, the one that the Service names or a free one. As in
        Kubernetes, what was taken before one is refused is not given back."""
        spec = service.spec
        while len(spec.clusterIPs) < len(spec.ipFamilies):
            spec.clusterIPs.append("")
        reserve = self._reserve if self.has_ranges else self._derive
        taken = [await reserve(service, spec.ipFamilies[index], spec.clusterIPs[index]) for index in indexes]
        for index, address in zip(indexes, taken, strict=True):
            spec.clusterIPs[index] = address
        spec.clusterIP = spec.clusterIPs[0]
        return taken

    async def _derive(self, service: core_v1_pb2.Service, family: str, wanted: str) -> str:
        """From the name of the Service."""
        if dry_runs.ACTIVE.get():
            return _pretend(service, [_USUAL], wanted)
        usual, taken = _USUAL, self._used.get().addresses
        if not wanted:
            numbers, start = range(usual.offset, usual.end), _number_of(service)
            for index in range(len(numbers)):
                found = usual.text(numbers[(start + index) % len(numbers)])
                if found not in taken:
                    return found
            raise _full(service)
        if wanted in taken:
            raise _refused(service, wanted, TAKEN)
        if service_ranges.address(wanted) not in usual.network:
            raise _refused(service, wanted, NOT_HERE)
        return wanted

    async def _reserve(self, service: core_v1_pb2.Service, family: str, wanted: str) -> str:
        """From the ranges."""
        ranges = self._of_family(family)
        if dry_runs.ACTIVE.get():
            return _pretend(service, ranges, wanted)
        if wanted:
            address = service_ranges.address(wanted)
            if not any(one.is_ready and service_ranges.holds(one.cidr, address) for one in ranges):
                raise _refused(service, wanted, NOT_HERE)
            try:
                await self._create(str(address), service)
            except AlreadyExists:
                raise _refused(service, wanted, TAKEN) from None
            except ApiError as error:
                raise _refused(service, wanted, error.message) from None
            return wanted
        for one in ranges:
            for name in one.in_turn(self._random) if one.is_ready else ():
                if resources.key(_ADDRESSES, "", name) in self._objects:
                    continue
                try:
                    await self._create(name, service)
                except AlreadyExists:
                    continue  # the cache does not show it yet
                except ApiError as error:
                    raise _refused(service, "", error.message) from None
                return name
        raise _full(service)

    async def _create(self, name: str, service: core_v1_pb2.Service) -> None:
        with _on_its_own():
            await self._create_object("ipaddresses", "", service_ranges.of_service(name, service))

    # --- node ports ---------------------------------------------------------------------------------------------------

    async def _give_ports(
        self, service: core_v1_pb2.Service, before: core_v1_pb2.ServiceSpec | None, taken: Sequence[str]
    ) -> None:
        """``initNodePorts``, ``updateNodePorts``. ``taken``: addresses that go back when a port is refused. Raises
        :class:`kemu.errors.Invalid`."""
        own = set() if before is None else _ports_of(before)
        problems: list[Cause] = []
        self._fill_ports(service.spec, _number_of(service), self._used.get().ports - own, own, problems)
        if problems:
            await self.give_back(taken)
            raise causes.error(service, problems)

    def _fill_ports(
        self, spec: core_v1_pb2.ServiceSpec, start: int, others: Set[int], own: Set[int], problems: list[Cause]
    ) -> None:
        """``others``: ports of other Services; ``own``: those it had."""
        if spec.type not in WITH_NODE_PORTS:
            return
        gives = spec.type != LOAD_BALANCER or spec.allocateLoadBalancerNodePorts
        stated: dict[int, str] = {}
        for index, port in enumerate(spec.ports):
            number, path = port.nodePort, f"spec.ports[{index}].nodePort"
            if not number or number in own:
                continue
            if number not in _NODE_PORTS and not dry_runs.ACTIVE.get():
                text = f"{_NODE_PORTS[0]}-{_NODE_PORTS[-1]}"
                why = f"provided port is not in the valid range. The range of valid ports is {text}"
                problems.append(causes.invalid(path, number, why))
            elif number in others or stated.get(number) == port.protocol:
                problems.append(causes.invalid(path, number, "provided port is already allocated"))
            stated[number] = port.protocol
        taken = {*others, *_ports_of(spec)}
        known = {port.port: port.nodePort for port in spec.ports if port.nodePort}
        for port in spec.ports:
            if not port.nodePort and gives:
                # A port of two protocols has one number on nodes.
                shared = known.get(port.port, 0)
                port.nodePort = shared or next((one for one in _ports_in_turn(start) if one not in taken), 0)
                known[port.port] = port.nodePort
                taken.add(port.nodePort)
        if services.needs_health_port(spec) and not spec.healthCheckNodePort:
            spec.healthCheckNodePort = next((one for one in _ports_in_turn(start) if one not in taken), 0)


def _keep(spec: core_v1_pb2.ServiceSpec, before: core_v1_pb2.ServiceSpec) -> None:
    """What an update does not say stays as it is (``patchAllocatedValues``, ``normalizeClusterIPs``)."""
    if EXTERNAL not in (spec.type, before.type):
        spec.clusterIP = spec.clusterIP or before.clusterIP
        if not spec.clusterIPs:
            spec.clusterIPs.extend(before.clusterIPs)
    if spec.clusterIP != before.clusterIP and list(spec.clusterIPs) == list(before.clusterIPs):
        # Only one of two fields that say the same has changed.
        spec.clusterIPs[:] = [spec.clusterIP] if spec.clusterIP else []
    if spec.type in WITH_NODE_PORTS and before.type in WITH_NODE_PORTS:
        kept = {one.nodePort for one in before.ports} & {one.nodePort for one in spec.ports}
        known = {one.name: one.nodePort for one in before.ports if one.nodePort not in kept}
        for port in spec.ports:
            if not port.nodePort:
                port.nodePort = known.get(port.name, 0)
    if services.needs_health_port(spec) and services.needs_health_port(before) and not spec.healthCheckNodePort:
        spec.healthCheckNodePort = before.healthCheckNodePort


def _still_prefers_two(spec: core_v1_pb2.ServiceSpec, before: core_v1_pb2.ServiceSpec) -> bool:
    """``isMatchingPreferDualStackClusterIPFields``: the cluster may have got or lost a second family since."""
    return (
        spec.type == before.type != EXTERNAL
        and spec.ipFamilyPolicy == PREFER_DUAL
        and before.ipFamilyPolicy in ("", PREFER_DUAL)
        and list(spec.clusterIPs) == list(before.clusterIPs)
        and list(spec.ipFamilies) == list(before.ipFamilies)
    )


def _pretend(service: core_v1_pb2.Service, ranges: Sequence[Range], wanted: str) -> str:
    """Of a dry run: any range is asked, and gives its first number."""
    one = ranges[0] if ranges else None
    if one is None or not one.is_ready:
        raise _refused(service, wanted, NOT_READY)
    if not wanted:
        return str(one.network.network_address)
    if not one.first <= int(service_ranges.address(wanted)) < one.end:
        why = f"the provided IP ({wanted}) is not in the valid range. The range of valid IPs is {one.cidr}"
        raise _refused(service, wanted, why)
    return wanted


def _refused(service: core_v1_pb2.Service, wanted: str, why: str) -> ApiError:
    text = f"failed to allocate IP {wanted}: {why}" if wanted else f"failed to allocate IP: {why}"
    return causes.error(service, [causes.invalid("spec.clusterIPs", list(service.spec.clusterIPs), text)])


def _full(service: core_v1_pb2.Service) -> InternalError:
    why = f'failed to allocate a serviceIP for Service "{service.metadata.name}": {FULL}'
    return InternalError(f"Internal error occurred: {why}", causes=[Cause("", "", why)])


def _raise(service: core_v1_pb2.Service, found: Sequence[Cause]) -> None:
    if found:
        raise causes.error(service, found)


@contextlib.contextmanager
def _on_its_own() -> Iterator[None]:
    """The server writes for itself: nobody outside is asked."""
    was = ASKING.set(None)
    try:
        yield
    finally:
        ASKING.reset(was)


def _number_of(service: core_v1_pb2.Service) -> int:
    return zlib.crc32(f"{service.metadata.namespace}/{service.metadata.name}".encode())


def _ports_of(spec: core_v1_pb2.ServiceSpec) -> set[int]:
    found = {port.nodePort for port in spec.ports if port.nodePort}
    return found | {spec.healthCheckNodePort} if spec.healthCheckNodePort else found


def _used(services: Iterable[Any]) -> _Used:
    """What is taken."""
    addresses: list[str] = []
    ports: list[int] = []
    for service in services:
        addresses += service.spec.clusterIPs
        ports += _ports_of(service.spec)
    return _Used(frozenset(addresses), frozenset(ports))


def _ports_in_turn(start: int) -> Iterable[int]:
    for index in range(len(_NODE_PORTS)):
        yield _NODE_PORTS[(start + index) % len(_NODE_PORTS)]
