"""The allocator: which devices the claims of a pod get on a node.

It is the one that kube-scheduler v1.36 takes with its default feature gates (``structured/internal/incubating``): an
exhaustive search, claim by claim, request by request, in the order of pools, slices and devices, that takes the first
solution.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Final, Literal, NamedTuple

from kemu.emulated.cel.errors import EvaluationError
from kemu.emulated.cel.parsing import stacks
from kemu.emulated.scheduler.cache.nodes import NodeInfo
from kemu.emulated.scheduler.devices import capacities, requests
from kemu.emulated.scheduler.devices.capacities import Consumed
from kemu.emulated.scheduler.devices.constraints import Constraint, DistinctAttribute, MatchAttribute
from kemu.emulated.scheduler.devices.inventory import Amount, Device, DeviceID
from kemu.emulated.scheduler.devices.pools import Pool
from kemu.emulated.scheduler.devices.requests import ALL, EXACT_COUNT, Request
from kemu.emulated.scheduler.devices.states import AllocatedState, consume, release
from kemu.messages.k8s import resource_v1_pb2

MAX_RESULTS: Final = 32
"""How many devices one claim can have (``AllocationResultsMaxSize``)."""

_Counters = dict[str, dict[str, int]]
_NOTHING: Mapping[str, int] = {}


class AllocationError(Exception):
    """Claims cannot be allocated: on no node, or, with ``of_node``, on this one."""

    def __init__(self, text: str, *, of_node: bool = False) -> None:
        super().__init__(text)
        self.of_node = of_node


class Chosen(NamedTuple):
    """A device for a request."""

    request: Request
    device: Device
    consumed: dict[str, Amount]


class Plan(NamedTuple):
    """What one claim gets."""

    claim: resource_v1_pb2.ResourceClaim
    requests: list[Request]
    """For each request of the claim the alternative that was taken."""
    devices: list[Chosen]


class Allocator:
    """For all nodes of one attempt, about one state of slices, classes and allocations."""

    def __init__(
        self,
        allocated: AllocatedState,
        classes: Mapping[str, resource_v1_pb2.DeviceClass],
        pools_of: Callable[[NodeInfo], Sequence[Pool]],
    ) -> None:
        """``pools_of``: the pools for a node, as :func:`kemu.emulated.scheduler.devices.pools.gather` orders them."""
        self.allocated = allocated
        self.classes = classes
        self.pools_of = pools_of
        self._requests: dict[int, tuple[resource_v1_pb2.ResourceClaim, list[list[Request]]]] = {}
        self._plain: dict[int, tuple[Request, list[str]] | None] = {}
        """By ``id`` of a claim: see :meth:`_plain_request`."""
        self.available: dict[str, _Counters] = {}
        """Counters that are left, by the name of the pool."""

    def allocate(self, node: NodeInfo, claims: Sequence[resource_v1_pb2.ResourceClaim]) -> list[Plan] | None:
        """What each claim gets on the node; None: not all of them can be allocated.

        Raises AllocationError.
        """
        if len(claims) == 1:
            found = self._first_devices(node, claims[0])
            if found != "search":
                return found
        search = _Search(self, node, claims)
        with stacks.room():
            return search.run()

    def _plain_request(self, claim: resource_v1_pb2.ResourceClaim) -> tuple[Request, list[str]] | None:
        """The only request of a claim, for a number of devices, with the expressions that these must satisfy. None: the
        claim asks for more than that, or for what is not there."""
        key = id(claim)
        if key not in self._plain:
            self._plain[key] = None
            own = self.requests_of(claim)
            request = own[0][0] if len(own) == 1 and len(own[0]) == 1 else None
            if request is not None and not (request.parent or request.admin or claim.spec.devices.constraints):
                request.class_ = self.classes.get(request.class_name)
                if request.class_ is not None and request.mode == EXACT_COUNT and 0 < request.count <= MAX_RESULTS:
                    selectors = [*request.class_.spec.selectors, *request.selectors]
                    if all(one.HasField("cel") for one in selectors):
                        self._plain[key] = request, [one.cel.expression for one in selectors]
        return self._plain[key]

    def _first_devices(
        self, node: NodeInfo, claim: resource_v1_pb2.ResourceClaim
    ) -> list[Plan] | Literal["search"] | None:
        """What the search would find for a plain request: the first devices that are free and suit. ``search``: that
        depends on more, or a device is new."""
        plain = self._plain_request(claim)
        if plain is None:
            return "search"
        request, expressions = plain
        taken, consumed, amounts = self.allocated.devices, self.allocated.consumed, request.amounts
        chosen: list[Chosen] = []
        pools = self.pools_of(node)
        for pool in pools:
            for one in pool.slices:
                for device in one.devices:
                    if device.id in taken:
                        continue
                    if device.several or device.counters:
                        return "search"
                    selected = device.selected
                    for expression in expressions:
                        answer = selected.get(expression)
                        if answer is not True:
                            if answer is not False:
                                return "search"
                            break
                    else:
                        if device.slice.per_device and not device.where.matches(node):
                            continue
                        if device.taints and not request.tolerates_all(device):
                            continue
                        used = consumed.get(device.id, _NOTHING) if consumed else _NOTHING
                        if amounts or used:
                            if not capacities.fits(device, amounts, used, _NOTHING):
                                continue
                        elif not (device.fits_whole if device.fits_whole is not None else _fits_whole(device)):
                            continue
                        chosen.append(Chosen(request, device, {}))
                        if len(chosen) == request.count:
                            return [Plan(claim, [request], chosen)]
        return "search" if any(pool.invalid for pool in pools) else None

    def requests_of(self, claim: resource_v1_pb2.ResourceClaim) -> list[list[Request]]:
        """Decoded once for all nodes."""
        known = self._requests.get(id(claim))
        if known is None:
            known = self._requests[id(claim)] = claim, requests.of_claim(claim)
        return known[1]

    def counters_left(self, pool: Pool) -> _Counters:
        """What allocated devices have left of the counters of a pool; it may be less than nothing."""
        left = self.available.get(pool.name)
        if left is None:
            left = self.available[pool.name] = {name: dict(counters) for name, counters in pool.counter_sets.items()}
            for device in pool.all_devices():
                if device.counters and self.allocated.has_any(device.id):
                    for name, used in device.counters:
                        counters = left[name]
                        for counter, nano in used.items():
                            if counter in counters:
                                counters[counter] -= nano
        return left


_Outcome = bool | Literal["too many"]
"""Whether everything that is left was allocated; or the claim would get more devices than its status can hold."""


class _Search:
    """One node."""

    def __init__(self, allocator: Allocator, node: NodeInfo, claims: Sequence[resource_v1_pb2.ResourceClaim]) -> None:
        self._allocator = allocator
        self._allocated = allocator.allocated
        self._node = node
        self._claims = claims
        self._pools: Sequence[Pool] = ()
        self._requests: list[list[list[Request]]] = []
        self._numbers: dict[int, int] = {}
        """How many devices a request needs, by its ``id``."""
        self._all_devices: dict[int, list[Device]] = {}
        """Of requests of mode All, by ``id``: the devices of the node that are meant."""
        self._taken: list[list[int]] = []
        """Which alternative each request got."""
        self._constraints: list[list[Constraint]] = []
        self._results: list[list[Chosen]] = [[] for _ in claims]
        self._allocating: dict[DeviceID, set[int]] = {}
        """Devices that claims are to get as a whole, with the places of the claims."""
        self._consuming: dict[DeviceID, Consumed] = {}
        self._counting: dict[str, _Counters] = {}
        self._selectable: dict[tuple[int, int], bool] = {}
        self._pool_of: dict[int, Pool] = {}

    def run(self) -> list[Plan] | None:
        self._pools = self._allocator.pools_of(self._node)
        for pool in self._pools:
            for one in pool.slices:
                self._pool_of[id(one)] = pool
        for claim in self._claims:
            self._prepare(claim)
        if self._claim(0) is not True:
            if any(pool.invalid for pool in self._pools):
                raise AllocationError("invalid resource pools were encountered", of_node=True)
            return None
        return [
            Plan(claim, [subs[at] for subs, at in zip(self._requests[place], self._taken[place], strict=True)], devices)
            for place, (claim, devices) in enumerate(zip(self._claims, self._results, strict=True))
        ]

    # Before the search ----------------------------------------------------------------------------------------------

    def _prepare(self, claim: resource_v1_pb2.ResourceClaim) -> None:
        key = f"{claim.metadata.namespace}/{claim.metadata.name}"
        own = self._allocator.requests_of(claim)
        least = 0
        for subs in own:
            for request in subs:
                self._check(claim, key, request)
            least += min(self._numbers[id(request)] for request in subs)
        if least > MAX_RESULTS:
            raise AllocationError(
                f"claim {key}: number of requested devices {least} exceeds the claim limit of {MAX_RESULTS}"
            )
        self._requests.append(own)
        self._taken.append([0] * len(own))
        made: list[Constraint] = []
        for number, one in enumerate(claim.spec.devices.constraints):
            if one.HasField("matchAttribute"):
                made.append(MatchAttribute(one.matchAttribute, one.requests))
            elif one.HasField("distinctAttribute"):
                made.append(DistinctAttribute(one.distinctAttribute, one.requests))
            else:
                text = f"claim {key}, constraint #{number}: empty constraint (unsupported constraint type?)"
                raise AllocationError(text)
        self._constraints.append(made)

    def _check(self, claim: resource_v1_pb2.ResourceClaim, key: str, request: Request) -> None:
        """``validateDeviceRequest``."""
        at = f"claim {key}, request {request.name}"
        for number, selector in enumerate(request.selectors):
            if not selector.HasField("cel"):
                raise AllocationError(f"{at}, selector #{number}: CEL expression empty (unsupported selector type?)")
        if not request.class_name:
            raise AllocationError(f"{at}: missing device class name (unsupported request type?)")
        request.class_ = self._allocator.classes.get(request.class_name)
        if request.class_ is None:
            missing = f'deviceclass.resource.k8s.io "{request.class_name}" not found'
            raise AllocationError(f"{at}: could not retrieve device class {request.class_name}: {missing}")
        if request.mode == EXACT_COUNT:
            self._numbers[id(request)] = request.count
            return
        if request.mode != ALL:
            raise AllocationError(f"{at}: unsupported count mode {request.mode}")
        found = self._all_devices[id(request)] = []
        for pool in self._pools:
            if pool.incomplete or pool.invalid:
                how = "being updated" if pool.incomplete else "invalid"
                text = f"{at}: asks for all devices, but resource pool {pool.text} is currently {how}"
                raise AllocationError(text)
            found += [
                device
                for device in pool.devices()
                if self._is_selectable(claim, request, device) and self._fits(request, device)
            ]
        self._numbers[id(request)] = len(found)

    # The search -----------------------------------------------------------------------------------------------------

    def _claim(self, place: int) -> _Outcome:
        """This claim and those after it."""
        return place >= len(self._claims) or self._request(place, 0)

    def _request(self, claim: int, place: int) -> _Outcome:
        """This request of a claim and all that comes after it."""
        own = self._requests[claim]
        if place >= len(own):
            # With another choice in this claim the next ones may still need fewer devices.
            return self._claim(claim + 1) is True
        subs = own[place]
        if not subs[0].parent:
            return self._device(claim, place, subs[0], 0, (0, 0, 0))
        too_many = True
        for number, request in enumerate(subs):
            outcome = self._device(claim, place, request, 0, (0, 0, 0))
            if outcome == "too many":
                continue
            too_many = False
            if outcome:
                self._taken[claim][place] = number
                return True
        return "too many" if too_many else False

    def _device(self, claim: int, place: int, request: Request, number: int, start: tuple[int, int, int]) -> _Outcome:
        """The device of that number of a request and all that comes after it.

        ``start``: pool, slice and device to begin with; the order of the devices of a request does not matter.
        """
        takes_all = request.mode == ALL
        wanted = self._numbers[id(request)]
        if takes_all and not wanted:
            return False
        if number >= wanted:
            return self._request(claim, place + 1)
        if len(self._results[claim]) + wanted - number > MAX_RESULTS:
            return "too many"
        if takes_all:
            device = self._all_devices[id(request)][number]
            undo = self._take(claim, request, device, must=True)
            if undo is None:
                return False
            outcome = self._device(claim, place, request, number + 1, (0, 0, 0))
            if outcome is not True:
                self._give_back(claim, request, device, undo)
            return outcome
        message = self._claims[claim]
        for pool_place in range(start[0], len(self._pools)):
            pool = self._pools[pool_place]
            in_start = pool_place == start[0]
            for slice_place in range(start[1] if in_start else 0, len(pool.slices)):
                devices = pool.slices[slice_place].devices
                first = start[2] if in_start and slice_place == start[1] else 0
                for device_place in range(first, len(devices)):
                    device = devices[device_place]
                    if request.admin:
                        if claim in self._allocating.get(device.id, ()):
                            continue
                    elif self._in_use(device):
                        continue
                    if not self._is_selectable(message, request, device) or not self._fits(request, device):
                        continue
                    undo = self._take(claim, request, device, must=False)
                    if undo is None:
                        continue
                    following = (pool_place, slice_place, device_place + 1)
                    outcome = self._device(claim, place, request, number + 1, following)
                    if outcome is True:
                        return True
                    self._give_back(claim, request, device, undo)
                    if outcome == "too many":
                        return outcome
        return False

    def _in_use(self, device: Device) -> bool:
        return device.id in self._allocated.devices or bool(self._allocating.get(device.id))

    def _fits(self, request: Request, device: Device) -> bool:
        if not device.capacity and not request.amounts:
            return True
        allocated = self._allocated.consumed.get(device.id, _NOTHING)
        return capacities.fits(device, request.amounts, allocated, self._consuming.get(device.id, _NOTHING))

    # Selectors ------------------------------------------------------------------------------------------------------

    def _is_selectable(self, claim: resource_v1_pb2.ResourceClaim, request: Request, device: Device) -> bool:
        key = (id(request), id(device))
        known = self._selectable.get(key)
        if known is None:
            assert request.class_ is not None
            known = (
                self._match(f"class {request.class_.metadata.name}", device, request.class_.spec.selectors)
                and self._match(f"claim {claim.metadata.namespace}/{claim.metadata.name}", device, request.selectors)
                and (not device.slice.per_device or device.where.matches(self._node))
            )
            self._selectable[key] = known
        return known

    def _match(self, of: str, device: Device, selectors: Sequence[resource_v1_pb2.DeviceSelector]) -> bool:
        for number, selector in enumerate(selectors):
            expression = selector.cel.expression
            answer = device.selected.get(expression)
            if answer is None:
                answer = device.selected[expression] = _select(device, expression)
            if type(answer) is str:
                raise AllocationError(f"{of}: selector #{number}: {answer}")
            if not answer:
                return False
        return True

    # Devices --------------------------------------------------------------------------------------------------------

    def _take(self, claim: int, request: Request, device: Device, *, must: bool) -> _Undo | None:
        """Allocate a device for now; None: that is not possible (``allocateDevice``)."""
        several = device.several
        if request.admin:
            if not several and claim in self._allocating.get(device.id, ()):
                return None
        elif self._in_use(device):
            return None
        shared = several and (device.id in self._allocated.consumed or device.id in self._consuming)
        counted = False
        if device.counters and not shared:
            if not self._count(device):
                return None
            counted = True
        undo = _Undo(counted, device.id in self._consuming)
        if device.taints and not request.tolerates_all(device):
            self._roll_back(claim, request, device, undo, 0)
            return None
        constraints = self._constraints[claim]
        base, sub = request.base, request.sub
        for added, constraint in enumerate(constraints):
            if not constraint.add(base, sub, device):
                self._roll_back(claim, request, device, undo, added)
                if must:
                    message = self._claims[claim].metadata
                    text = f"claim {message.namespace}/{message.name}, request {request.name}: cannot add device "
                    text += f"{'/'.join(device.id)} because a claim constraint would not be satisfied"
                    raise AllocationError(text)
                return None
        # Otherwise it was asked a moment ago.
        if must and not self._fits(request, device):
            self._roll_back(claim, request, device, undo, len(constraints))
            return None
        consumed: dict[str, Amount] = {}
        if several:
            consumed = capacities.consumed_by(device, request.amounts)
            consume(self._consuming, device.id, {name: one.nano for name, one in consumed.items()})
        else:
            self._allocating.setdefault(device.id, set()).add(claim)
        self._results[claim].append(Chosen(request, device, consumed))
        return undo

    def _give_back(self, claim: int, request: Request, device: Device, undo: _Undo) -> None:
        chosen = self._results[claim].pop()
        if device.several:
            release(self._consuming, device.id, {name: one.nano for name, one in chosen.consumed.items()})
            if undo.was_shared:
                self._consuming.setdefault(device.id, {})
        else:
            self._allocating[device.id].discard(claim)
        self._roll_back(claim, request, device, undo, len(self._constraints[claim]))

    def _roll_back(self, claim: int, request: Request, device: Device, undo: _Undo, constraints: int) -> None:
        for constraint in self._constraints[claim][:constraints]:
            constraint.remove(request.base, request.sub)
        if undo.counted:
            self._uncount(device)

    def _count(self, device: Device) -> bool:
        """Whether the counters of the pool are enough for one more device, which consumes them then."""
        pool = self._pool_of[id(device.slice)]
        left = self._allocator.counters_left(pool)
        counting = self._counting.setdefault(pool.name, {})
        for name, used in device.counters:
            counters = counting.setdefault(name, {})
            for counter, nano in used.items():
                counters[counter] = counters.get(counter, 0) + nano
        for name, available in left.items():
            counters = counting.get(name, {})
            for counter, nano in available.items():
                if nano < counters.get(counter, 0):
                    self._uncount(device)
                    return False
        return True

    def _uncount(self, device: Device) -> None:
        counting = self._counting[self._pool_of[id(device.slice)].name]
        for name, used in device.counters:
            for counter, nano in used.items():
                counting[name][counter] -= nano


class _Undo(NamedTuple):
    counted: bool
    """Counters were consumed."""
    was_shared: bool
    """The device was being shared already."""


def _fits_whole(device: Device) -> bool:
    """Whether a request without amounts keeps to the policies of the capacities."""
    device.fits_whole = capacities.fits(device, {}, _NOTHING, _NOTHING)
    return device.fits_whole


def _select(device: Device, expression: str) -> bool | str:
    """What a selector says of a device; a text is an error."""
    from kemu.emulated.cel import devices  # only where a claim is there

    program = devices.compiled(expression)
    if isinstance(program, str):
        return f"CEL compile error: {program}"
    if device.variable is None:
        try:
            device.variable = devices.variable(device.slice.driver, device.message)
        except EvaluationError as error:
            device.variable = str(error)
    if isinstance(device.variable, str):
        return f"CEL runtime error: {device.variable}"
    try:
        return devices.matches(program, device.variable)
    except EvaluationError as error:
        return f"CEL runtime error: {error}"
