"""Devices as the allocator reads them: slices and their devices, decoded once for all attempts."""

from __future__ import annotations

from typing import Any, NamedTuple

from kemu.emulated.objects import selectors
from kemu.emulated.objects.amounts import quantities
from kemu.emulated.scheduler.cache.nodes import NodeInfo
from kemu.messages.k8s import core_v1_pb2, meta_v1_pb2, resource_v1_pb2

DeviceID = tuple[str, str, str]
"""Driver, pool, device."""


class Amount(NamedTuple):
    """A quantity; ``text`` as Kubernetes prints it."""

    nano: int
    quantity: quantities.Quantity

    @property
    def text(self) -> str:
        return str(self.quantity)


def amount(quantity: meta_v1_pb2.Quantity) -> Amount:
    parsed = quantities.parse(quantity.string)
    return Amount(parsed.nano, parsed)


class Where:
    """A node name, all nodes or a selector, of a slice or a device (``NodeMatches``)."""

    __slots__ = ("all_nodes", "name", "selector", "selector_message")

    def __init__(self, message: resource_v1_pb2.ResourceSliceSpec | resource_v1_pb2.Device) -> None:
        self.name: str = message.nodeName
        self.all_nodes: bool = message.allNodes
        self.selector_message: core_v1_pb2.NodeSelector | None = None
        self.selector: selectors.NodeSelector | None = None
        if message.HasField("nodeSelector"):
            self.selector_message = message.nodeSelector
            self.selector = selectors.NodeSelector(message.nodeSelector)

    @property
    def is_known(self) -> bool:
        return bool(self.name) or self.all_nodes or self.selector is not None

    def matches(self, node: NodeInfo) -> bool:
        if self.name:
            return node.name == self.name
        if self.all_nodes:
            return True
        return self.selector is not None and self.selector.matches(node.labels, node.name)


class Capacity:
    """One capacity of a device and the policy for requests of it."""

    __slots__ = ("default", "largest", "least", "policy", "step", "total", "values")

    def __init__(self, message: resource_v1_pb2.DeviceCapacity) -> None:
        self.total = amount(message.value)
        self.policy = message.HasField("requestPolicy")
        policy = message.requestPolicy
        self.default = amount(policy.default) if policy.HasField("default") else None
        self.values = tuple(amount(one) for one in policy.validValues)
        span = policy.validRange
        self.least = amount(span.min) if span.HasField("min") else None
        self.largest = amount(span.max) if span.HasField("max") else None
        self.step = amount(span.step) if span.HasField("step") else None


class Device:
    """One device of a slice."""

    __slots__ = (
        "attributes",
        "binding_conditions",
        "binds_to_node",
        "capacity",
        "counters",
        "failure_conditions",
        "fits_whole",
        "id",
        "message",
        "name",
        "selected",
        "several",
        "slice",
        "taints",
        "variable",
        "where",
    )

    def __init__(self, message: resource_v1_pb2.Device, of: Slice) -> None:
        self.message = message
        self.slice = of
        self.name: str = message.name
        self.id: DeviceID = (of.driver, of.pool, message.name)
        self.attributes = {name: _value_of(one) for name, one in message.attributes.items()}
        """Kind and value by qualified name; the kind is empty where constraints cannot compare it."""
        self.capacity = {name: Capacity(message.capacity[name]) for name in sorted(message.capacity)}
        self.counters = [
            (used.counterSet, {name: amount(one.value).nano for name, one in used.counters.items()})
            for used in message.consumesCounters
        ]
        self.taints = [one for one in message.taints if one.effect in ("NoExecute", "NoSchedule")]
        """Those that keep claims away."""
        self.several: bool = message.allowMultipleAllocations
        """It may be allocated several times (consumable capacity)."""
        self.binds_to_node: bool = message.bindsToNode
        self.binding_conditions = tuple(message.bindingConditions)
        self.failure_conditions = tuple(message.bindingFailureConditions)
        self.where = Where(message)
        self.variable: dict[str, Any] | str | None = None
        """What selectors see, or why they see nothing; None: not asked for yet."""
        self.fits_whole: bool | None = None
        """Whether a request without amounts fits if nothing else is allocated; None: not asked for yet."""
        self.selected: dict[str, bool | str] = {}
        """What selectors said, by expression; a text is an error."""

    def attribute(self, name: str) -> tuple[str, object] | None:
        """By its fully qualified name, as constraints have it."""
        found = self.attributes.get(name)
        if found is not None:
            return found
        domain, slash, identifier = name.partition("/")
        return self.attributes.get(identifier) if slash and domain == self.slice.driver else None


def _value_of(attribute: resource_v1_pb2.DeviceAttribute) -> tuple[str, object]:
    for kind in ("string", "int", "bool", "version"):
        if attribute.HasField(kind):
            return kind, getattr(attribute, kind)
    return "", None


class Slice:
    """A ResourceSlice."""

    __slots__ = (
        "counter_sets", "devices", "driver", "expected", "generation", "name", "per_device", "pool", "where",
    )  # fmt: skip

    def __init__(self, message: resource_v1_pb2.ResourceSlice) -> None:
        spec = message.spec
        self.name: str = message.metadata.name
        self.driver: str = spec.driver
        self.pool: str = spec.pool.name
        self.generation: int = spec.pool.generation
        self.expected: int = spec.pool.resourceSliceCount
        self.where = Where(spec)
        self.per_device: bool = spec.perDeviceNodeSelection
        self.counter_sets = [
            (one.name, {name: amount(counter.value).nano for name, counter in one.counters.items()})
            for one in spec.sharedCounters
        ]
        self.devices = [Device(one, self) for one in spec.devices]
