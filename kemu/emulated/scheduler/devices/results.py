"""What the allocator found as ``resource.k8s.io/v1``: the allocations of claims."""

from __future__ import annotations

from collections.abc import Callable

from kemu.emulated.scheduler.devices.allocators import Chosen, Plan
from kemu.messages.k8s import core_v1_pb2, resource_v1_pb2

_Config = resource_v1_pb2.DeviceAllocationConfiguration
_Result = resource_v1_pb2.DeviceRequestAllocationResult


def allocation(plan: Plan, node: str, share_id: Callable[[], str]) -> resource_v1_pb2.AllocationResult:
    """The allocation of a claim. ``share_id`` makes the UID of a share of a device."""
    made = resource_v1_pb2.AllocationResult()
    devices = made.devices
    for chosen in plan.devices:
        devices.results.append(_result(chosen, share_id))
    _add_class_configs(devices, plan)
    _add_claim_configs(devices, plan)
    selector = _node_selector(plan.devices, node)
    if selector is not None:
        made.nodeSelector.CopyFrom(selector)
    return made


def _result(chosen: Chosen, share_id: Callable[[], str]) -> _Result:
    request, device = chosen.request, chosen.device
    driver, pool, name = device.id
    made = _Result(request=request.full_name, driver=driver, pool=pool, device=name)
    if request.admin:
        made.adminAccess = True
    made.tolerations.extend(request.tolerations)
    made.bindingConditions.extend(device.binding_conditions)
    made.bindingFailureConditions.extend(device.failure_conditions)
    if device.several:
        made.shareID = share_id()
    for capacity, amount in chosen.consumed.items():
        made.consumedCapacity[capacity].string = amount.text
    return made


def _add_class_configs(devices: resource_v1_pb2.DeviceAllocationResult, plan: Plan) -> None:
    """Each configuration of a class once, with the names of all requests of the class."""
    known: dict[str, list[_Config]] = {}
    for request in plan.requests:
        class_ = request.class_
        if class_ is None:
            continue
        name = class_.metadata.name
        if name in known:
            for made in known[name]:
                made.requests.append(request.full_name)
            continue
        known[name] = []
        for one in class_.spec.config:
            made = devices.config.add(source="FromClass", requests=[request.full_name])
            made.deviceConfiguration.CopyFrom(one.deviceConfiguration)
            known[name].append(made)


def _add_claim_configs(devices: resource_v1_pb2.DeviceAllocationResult, plan: Plan) -> None:
    """Those of the claim that concern what was allocated, once for each request that they name."""
    for one in plan.claim.spec.devices.config:
        times = 1 if not one.requests else 0
        if one.requests:
            for request in plan.requests:
                times += request.base in one.requests or (bool(request.parent) and request.full_name in one.requests)
        for _ in range(times):
            made = devices.config.add(source="FromClaim", requests=one.requests)
            made.deviceConfiguration.CopyFrom(one.deviceConfiguration)


def _node_selector(chosen: list[Chosen], node: str) -> core_v1_pb2.NodeSelector | None:
    """Where the devices can be used; None: everywhere (``createNodeSelector``)."""
    made = core_v1_pb2.NodeSelector()
    term = made.nodeSelectorTerms.add()
    for one in chosen:
        device = one.device
        where = device.where if device.slice.per_device else device.slice.where
        if where.name or device.binds_to_node:
            only = core_v1_pb2.NodeSelector()
            only.nodeSelectorTerms.add().matchFields.add(key="metadata.name", operator="In", values=[node])
            return only
        if where.selector_message is not None and where.selector_message.nodeSelectorTerms:
            own = where.selector_message.nodeSelectorTerms[0]
            _add_new(term.matchFields, own.matchFields)
            _add_new(term.matchExpressions, own.matchExpressions)
    return made if term.matchFields or term.matchExpressions else None


def _add_new(known: object, added: object) -> None:
    for one in added:  # type: ignore[attr-defined]
        if not any(_is_same(other, one) for other in known):  # type: ignore[attr-defined]
            known.append(one)  # type: ignore[attr-defined]


def _is_same(one: core_v1_pb2.NodeSelectorRequirement, other: core_v1_pb2.NodeSelectorRequirement) -> bool:
    return one.key == other.key and one.operator == other.operator and set(one.values) == set(other.values)
