"""Services in quotas (``pkg/quota/v1/evaluator/core/services.go``)."""

from __future__ import annotations

from collections.abc import Mapping

from kemu.emulated.objects.amounts import quantities, resource_lists
from kemu.emulated.objects.amounts.quantities import NANO, Quantity
from kemu.emulated.objects.quotas import evaluators
from kemu.messages.k8s import core_v1_pb2

SERVICES, LOAD_BALANCERS, NODE_PORTS = "services", "services.loadbalancers", "services.nodeports"
_COUNT = "count/services"
_EXPOSED = ("NodePort", "LoadBalancer")


class ServiceEvaluator(evaluators.Evaluator[core_v1_pb2.Service]):
    def handles(
        self, operation: str, subresource: str, new: core_v1_pb2.Service, old: core_v1_pb2.Service | None
    ) -> bool:
        # An update may change the type.
        return not subresource

    def counts(self, name: str) -> bool:
        return name in (_COUNT, SERVICES, LOAD_BALANCERS, NODE_PORTS)

    def usage(self, obj: core_v1_pb2.Service, now_unix_ns: int) -> Mapping[str, Quantity]:
        one, spec = resource_lists.ONE, obj.spec
        counted = {_COUNT: one, SERVICES: one, LOAD_BALANCERS: quantities.ZERO, NODE_PORTS: quantities.ZERO}
        if spec.type == "LoadBalancer":
            counted[LOAD_BALANCERS] = one
            if spec.HasField("allocateLoadBalancerNodePorts") and not spec.allocateLoadBalancerNodePorts:
                counted[NODE_PORTS] = Quantity(sum(1 for port in spec.ports if port.nodePort) * NANO)
            else:
                counted[NODE_PORTS] = Quantity(len(spec.ports) * NANO)
        elif spec.type == "NodePort":
            counted[NODE_PORTS] = Quantity(len(spec.ports) * NANO)
        return counted

    def frees(self, old: core_v1_pb2.Service, new: core_v1_pb2.Service, now_unix_ns: int) -> bool:
        before, now = (one.spec.type if one.spec.type in _EXPOSED else "" for one in (old, new))
        return before != now
