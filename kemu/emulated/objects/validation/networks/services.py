"""The checks of Services (``validateService``) and NetworkPolicies (``pkg/apis/networking/validation``)."""

from __future__ import annotations

from collections.abc import Sequence

from kemu.emulated.objects import names
from kemu.emulated.objects.validation import checks
from kemu.emulated.objects.validation.causes import duplicate, forbidden, invalid, not_supported, required
from kemu.emulated.objects.validation.metadata import check_label_key, check_label_selector, check_labels
from kemu.emulated.objects.validation.networks import endpoints
from kemu.errors import Cause
from kemu.messages.k8s import core_v1_pb2, networking_v1_pb2

CLUSTER_IP, NODE_PORT, LOAD_BALANCER, EXTERNAL = "ClusterIP", "NodePort", "LoadBalancer", "ExternalName"
HEADLESS, LOCAL = "None", "Local"
_PROTOCOLS = ("SCTP", "TCP", "UDP")
_TYPES = (CLUSTER_IP, EXTERNAL, LOAD_BALANCER, NODE_PORT)
_AFFINITIES = ("ClientIP", "None")
_TRAFFIC_POLICIES = ("Cluster", LOCAL)
_FAMILIES, _FAMILY_POLICIES = ("IPv4", "IPv6"), ("PreferDualStack", "RequireDualStack", "SingleStack")
_DISTRIBUTIONS = ("PreferClose", "PreferSameZone", "PreferSameNode")
_IP_MODES = ("Proxy", "VIP")
_BALANCED_ONLY = "may only be used when `type` is 'LoadBalancer'"
_LONGEST_AFFINITY_S = 86400
_SOURCE_RANGES = "service.beta.kubernetes.io/load-balancer-source-ranges"

Spec = core_v1_pb2.ServiceSpec


def is_headless(spec: Spec) -> bool:
    return addresses_of(spec) == [HEADLESS]


def addresses_of(spec: Spec) -> list[str]:
    """The first one has a field of its own; where nothing gives addresses to Services, it may stand there alone."""
    return list(spec.clusterIPs) or ([spec.clusterIP] if spec.clusterIP else [])


def needs_health_port(spec: Spec) -> bool:
    """Whether load balancers ask a port of their own for healthy nodes."""
    return spec.type == LOAD_BALANCER and spec.externalTrafficPolicy == LOCAL


def is_seen_from_outside(spec: Spec) -> bool:
    """``ExternallyAccessible``."""
    return spec.type in (LOAD_BALANCER, NODE_PORT) or (spec.type == CLUSTER_IP and bool(spec.externalIPs))


# Services -------------------------------------------------------------------------------------------------------------


def check_service(service: core_v1_pb2.Service, found: list[Cause]) -> None:
    spec = service.spec
    if not spec.ports and not is_headless(spec) and spec.type != EXTERNAL:
        found.append(required("spec.ports"))
    _check_type(spec, found)
    names_seen: dict[str, None] = {}
    for index, port in enumerate(spec.ports):
        _check_port(port, f"spec.ports[{index}]", len(spec.ports) > 1, names_seen, found)
    check_labels(spec.selector, "spec.selector", found)
    _check_affinity(spec, found)
    check_addresses(spec, found)
    for index, address in enumerate(spec.externalIPs):
        _check_external(address, f"spec.externalIPs[{index}]", found)
    checks.choice(spec.type, "spec.type", _TYPES, found)
    _check_ports_together(spec, found)
    _check_source_ranges(service, found)
    if spec.HasField("allocateLoadBalancerNodePorts") and spec.type != LOAD_BALANCER:
        found.append(forbidden("spec.allocateLoadBalancerNodePorts", _BALANCED_ONLY))
    _check_balancer_class(spec, found)
    _check_traffic(spec, found)


def _check_balancer_class(spec: Spec, found: list[Cause]) -> None:
    if not spec.HasField("loadBalancerClass"):
        return
    if spec.type == LOAD_BALANCER:
        check_label_key(spec.loadBalancerClass, "spec.loadBalancerClass", found)
    else:
        found.append(forbidden("spec.loadBalancerClass", _BALANCED_ONLY))


def _check_type(spec: Spec, found: list[Cause]) -> None:
    if spec.type in (LOAD_BALANCER, NODE_PORT) and is_headless(spec):
        found.append(invalid("spec.clusterIPs[0]", HEADLESS, f"may not be set to 'None' for {spec.type} services"))
    if spec.type != EXTERNAL:
        return
    text = "may not be set for ExternalName services"
    stated = {
        "clusterIPs": bool(spec.clusterIPs),
        "ipFamilies": bool(spec.ipFamilies),
        "ipFamilyPolicy": spec.HasField("ipFamilyPolicy"),
    }
    found += [forbidden(f"spec.{field}", text) for field, is_stated in stated.items() if is_stated]
    checks.needed_name(spec.externalName.removesuffix("."), "spec.externalName", names.dns_subdomain, found)


def _check_port(
    port: core_v1_pb2.ServicePort, path: str, needs_name: bool, seen: dict[str, None], found: list[Cause]
) -> None:
    if port.name:
        checks.name(port.name, f"{path}.name", names.dns_label, found)
        checks.unique(port.name, seen, f"{path}.name", port.name, found)
    elif needs_name:
        found.append(required(f"{path}.name"))
    checks.port(port.port, f"{path}.port", found)
    checks.choice(port.protocol, f"{path}.protocol", _PROTOCOLS, found)
    checks.port_or_name(port.targetPort, f"{path}.targetPort", found)
    if port.HasField("appProtocol"):
        check_label_key(port.appProtocol, f"{path}.appProtocol", found)


def _check_affinity(spec: Spec, found: list[Cause]) -> None:
    checks.choice(spec.sessionAffinity, "spec.sessionAffinity", _AFFINITIES, found)
    path = "spec.sessionAffinityConfig"
    if spec.sessionAffinity == "ClientIP":
        seconds = spec.sessionAffinityConfig.clientIP.timeoutSeconds
        if not 0 < seconds <= _LONGEST_AFFINITY_S:
            text = f"must be greater than 0 and less than {_LONGEST_AFFINITY_S}"
            found.append(invalid(f"{path}.clientIP.timeoutSeconds", seconds, text))
    elif spec.sessionAffinity == "None" and spec.HasField("sessionAffinityConfig"):
        found.append(forbidden(path, "must not be set when session affinity is None"))


def check_addresses(spec: Spec, found: list[Cause]) -> None:
    """``ValidateServiceClusterIPsRelatedFields``."""
    if spec.type == EXTERNAL:
        return
    path, addresses = "spec.clusterIPs", addresses_of(spec)
    if spec.clusterIP and addresses[0] != spec.clusterIP:
        found.append(invalid(path, addresses, "first value must match `clusterIP`"))
    elif not spec.clusterIP and addresses:
        found.append(invalid(path, addresses, "must be empty when `clusterIP` is not specified"))
    seen: dict[str, None] = {}
    for index, family in enumerate(spec.ipFamilies):
        checks.listed(family, f"spec.ipFamilies[{index}]", _FAMILIES, found)
        checks.unique(family, seen, f"spec.ipFamilies[{index}]", family, found)
    if spec.HasField("ipFamilyPolicy"):
        checks.listed(spec.ipFamilyPolicy, "spec.ipFamilyPolicy", _FAMILY_POLICIES, found)
    before = len(found)
    for index, address in enumerate(addresses):
        if address == HEADLESS and index == 0:
            if len(addresses) > 1:
                found.append(invalid(path, addresses, "'None' must be the first and only value"))
        else:
            check_address(address, f"{path}[{index}]", found)
    if len(addresses) > 2:
        found.append(invalid(path, addresses, "may only hold up to 2 values"))
    if len(found) > before or is_headless(spec):
        return
    families = ["IPv6" if ":" in address else "IPv4" for address in addresses]
    if len(addresses) > 1 and len(set(families)) != 2:
        found.append(invalid(path, addresses, "may specify no more than one IP for each IP family"))
    for index, (wanted, family) in enumerate(zip(spec.ipFamilies, families, strict=False)):
        if wanted != family and wanted in _FAMILIES:
            text = f"expected an {wanted} value as indicated by `ipFamilies[{index}]`"
            found.append(invalid(f"{path}[{index}]", addresses[index], text))


def check_address(address: str, path: str, found: list[Cause]) -> bool:
    """Whether it is one."""
    problems = names.old_address(address)
    found += [invalid(path, address, text) for text in problems]
    return not problems


def _check_external(address: str, path: str, found: list[Cause]) -> None:
    if check_address(address, path, found):
        endpoints.check_reachable(address, path, found)


def _check_ports_together(spec: Spec, found: list[Cause]) -> None:
    if spec.type == CLUSTER_IP:
        text = "may not be used when `type` is 'ClusterIP'"
        found += [
            forbidden(f"spec.ports[{index}].nodePort", text) for index, port in enumerate(spec.ports) if port.nodePort
        ]
    on_nodes: set[tuple[str, int]] = set()
    for index, port in enumerate(spec.ports):
        if port.nodePort and (port.protocol, port.nodePort) in on_nodes:
            found.append(duplicate(f"spec.ports[{index}].nodePort", port.nodePort))
        on_nodes.add((port.protocol, port.nodePort))
    ports: set[tuple[str, int]] = set()
    for index, port in enumerate(spec.ports):
        if (port.protocol, port.port) in ports:
            shown = core_v1_pb2.ServicePort(protocol=port.protocol, port=port.port)
            shown.targetPort.type = 0
            found.append(duplicate(f"spec.ports[{index}]", shown))
        ports.add((port.protocol, port.port))


def _check_source_ranges(service: core_v1_pb2.Service, found: list[Cause]) -> None:
    spec = service.spec
    ranges, path = [one.strip() for one in spec.loadBalancerSourceRanges], "spec.LoadBalancerSourceRanges"
    paths = [f"{path}[{index}]" for index in range(len(ranges))]
    annotated = service.metadata.annotations.get(_SOURCE_RANGES)
    if not ranges and annotated is not None:
        path = f"metadata.annotations[{_SOURCE_RANGES}]"
        ranges = [one.strip() for one in annotated.split(",")] if annotated.strip() else []
        paths = [path] * len(ranges)
    elif not ranges:
        return
    if spec.type != LOAD_BALANCER:
        found.append(forbidden(path, _BALANCED_ONLY))
    for one, where in zip(ranges, paths, strict=True):
        check_range(one, where, found)


def check_range(cidr: str, path: str, found: list[Cause]) -> bool:
    """Whether it is a range of addresses."""
    problems = names.old_network(cidr)
    found += [invalid(path, cidr, text) for text in problems]
    return not problems


def _check_traffic(spec: Spec, found: list[Cause]) -> None:
    path = "spec.externalTrafficPolicy"
    if is_seen_from_outside(spec):
        checks.choice(spec.externalTrafficPolicy, path, _TRAFFIC_POLICIES, found)
    elif spec.externalTrafficPolicy:
        text = "may only be set for externally-accessible services"
        found.append(invalid(path, spec.externalTrafficPolicy, text))
    path, port = "spec.healthCheckNodePort", spec.healthCheckNodePort
    if needs_health_port(spec):
        if port:
            checks.port(port, path, found)
    elif port:
        text = "may only be set when `type` is 'LoadBalancer' and `externalTrafficPolicy` is 'Local'"
        found.append(invalid(path, port, text))
    path = "spec.internalTrafficPolicy"
    if spec.HasField("internalTrafficPolicy"):
        checks.listed(spec.internalTrafficPolicy, path, _TRAFFIC_POLICIES, found)
    elif spec.type in (NODE_PORT, LOAD_BALANCER, CLUSTER_IP):
        found.append(required(path))
    if spec.HasField("trafficDistribution") and spec.trafficDistribution not in _DISTRIBUTIONS:
        found.append(not_supported("spec.trafficDistribution", spec.trafficDistribution, _DISTRIBUTIONS))


def check_service_update(new: core_v1_pb2.Service, old: core_v1_pb2.Service, found: list[Cause]) -> None:
    after, before = new.spec, old.spec
    if EXTERNAL not in (after.type, before.type) and not (is_headless(after) and is_headless(before)):
        _check_kept_addresses(after, before, found)
        if not is_headless(after) and not is_headless(before):
            _check_kept_families(after, before, found)
    has_class, had_class = (
        [spec.loadBalancerClass] if spec.HasField("loadBalancerClass") else [] for spec in (after, before)
    )
    if after.type == before.type == LOAD_BALANCER and has_class != had_class:
        shown = after.loadBalancerClass if has_class else None
        found.append(invalid("spec.loadBalancerClass", shown, "may not change once set"))
    _check_balancer_class(after, found)
    is_changed = after.healthCheckNodePort != before.healthCheckNodePort
    if needs_health_port(after) and needs_health_port(before) and is_changed:
        found.append(forbidden("spec.healthCheckNodePort", "field is immutable"))
    check_service(new, found)


def check_status(new: core_v1_pb2.Service, old: core_v1_pb2.Service, found: list[Cause]) -> None:
    """``ValidateLoadBalancerStatus``"""
    ingress, path = new.status.loadBalancer.ingress, "status.loadBalancer.ingress"
    if ingress and new.spec.type != LOAD_BALANCER:
        found.append(forbidden(path, "may only be used when `spec.type` is 'LoadBalancer'"))
        return
    known = {one.ip for one in old.status.loadBalancer.ingress if one.ip}
    for index, one in enumerate(ingress):
        here = f"{path}[{index}]"
        if one.ip not in known:
            checks.name(one.ip, f"{here}.ip", names.old_address, found)
        if not one.HasField("ipMode"):
            if one.ip:
                found.append(required(f"{here}.ipMode", "must be specified when `ip` is set"))
        elif not one.ip:
            found.append(forbidden(f"{here}.ipMode", "may not be specified when `ip` is not set"))
        else:
            checks.listed(one.ipMode, f"{here}.ipMode", _IP_MODES, found)
        check_balancer_host(one.hostname, f"{here}.hostname", found)


def check_balancer_host(hostname: str, path: str, found: list[Cause]) -> None:
    checks.name(hostname, path, names.dns_subdomain, found)
    if names.parsed_address(hostname) is not None:
        found.append(invalid(path, hostname, "must be a DNS name, not an IP address"))


def _check_kept_addresses(after: Spec, before: Spec, found: list[Cause]) -> None:
    """``validateUpgradeDowngradeClusterIPs``, of a Service with one family of addresses."""
    stated, known = addresses_of(after), addresses_of(before)
    if known and not stated:
        found.append(invalid("spec.clusterIPs[0]", stated, "primary clusterIP can not be unset"))
    for index, (one, other) in enumerate(zip(stated, known, strict=False)):
        if one != other:
            found.append(invalid(f"spec.clusterIPs[{index}]", stated, "may not change once set"))


def _check_kept_families(after: Spec, before: Spec, found: list[Cause]) -> None:
    """``validateUpgradeDowngradeIPFamilies``, of Services with addresses."""
    path, stated, known = "spec.ipFamilies[0]", list(after.ipFamilies), list(before.ipFamilies)
    text = "may not change once set"
    if len(stated) == len(known):
        found += [invalid(path, stated, text) for one, other in zip(stated, known, strict=True) if one != other]
        return
    addresses = addresses_of(after)
    is_less = len(stated) < len(known)
    if is_less and not addresses:
        found.append(invalid(path, stated or None, "primary ipFamily can not be unset"))
    if stated and known and stated[0] != known[0]:
        found.append(invalid(path, addresses or None, text))
    if is_less and len(stated) == 1 and after.ipFamilyPolicy != "SingleStack":
        shown = after.ipFamilyPolicy if after.HasField("ipFamilyPolicy") else None
        text = "must be set to 'SingleStack' when releasing the secondary ipFamily"
        found.append(invalid("spec.ipFamilyPolicy", shown, text))


# NetworkPolicies ------------------------------------------------------------------------------------------------------


def check_policy(policy: networking_v1_pb2.NetworkPolicy, found: list[Cause]) -> None:
    spec = policy.spec
    check_label_selector(spec.podSelector, "spec.podSelector", found)
    for index, ingress in enumerate(spec.ingress):
        _check_rule(ingress.ports, getattr(ingress, "from"), f"spec.ingress[{index}]", "from", found)
    for index, egress in enumerate(spec.egress):
        _check_rule(egress.ports, egress.to, f"spec.egress[{index}]", "to", found)
    types = list(spec.policyTypes)
    if len(types) > 2:
        found.append(invalid("spec.policyTypes", types, "may not specify more than two policyTypes"))
        return
    for index, one in enumerate(types):
        checks.listed(one, f"spec.policyTypes[{index}]", ("Ingress", "Egress"), found)


def _check_rule(
    ports: Sequence[networking_v1_pb2.NetworkPolicyPort],
    peers: Sequence[networking_v1_pb2.NetworkPolicyPeer],
    path: str,
    of_peers: str,
    found: list[Cause],
) -> None:
    for index, port in enumerate(ports):
        _check_policy_port(port, f"{path}.ports[{index}]", found)
    for index, peer in enumerate(peers):
        _check_peer(peer, f"{path}.{of_peers}[{index}]", found)


def _check_policy_port(port: networking_v1_pb2.NetworkPolicyPort, path: str, found: list[Cause]) -> None:
    if port.HasField("protocol"):
        checks.listed(port.protocol, f"{path}.protocol", ("TCP", "UDP", "SCTP"), found)
    has_end, end = port.HasField("endPort"), port.endPort
    if not port.HasField("port"):
        if has_end:
            found.append(invalid(f"{path}.endPort", end, "may not be specified when `port` is not specified"))
        return
    if port.port.type and has_end:
        found.append(invalid(f"{path}.endPort", end, "may not be specified when `port` is non-numeric"))
    checks.port_or_name(port.port, f"{path}.port", found)
    if not port.port.type and has_end:
        if end < port.port.intVal:
            text = "must be greater than or equal to `port`"
            found.append(invalid(f"{path}.endPort", port.port.intVal, text))
        checks.port(end, f"{path}.endPort", found)


def _check_peer(peer: networking_v1_pb2.NetworkPolicyPeer, path: str, found: list[Cause]) -> None:
    stated = [field.name for field, _ in peer.ListFields()]
    for field in ("podSelector", "namespaceSelector"):
        if field in stated:
            check_label_selector(getattr(peer, field), f"{path}.{field}", found)
    if "ipBlock" in stated:
        _check_block(peer.ipBlock, f"{path}.ipBlock", found)
    if not stated:
        found.append(required(path, "must specify a peer"))
    elif len(stated) > 1 and "ipBlock" in stated:
        found.append(forbidden(path, "may not specify both ipBlock and another peer"))


def _is_within(part: names.Network, whole: names.Network) -> bool:
    is_narrower = part.prefixlen > whole.prefixlen and part.version == whole.version
    return is_narrower and part.subnet_of(whole)  # type: ignore[arg-type]


def _check_block(block: networking_v1_pb2.IPBlock, path: str, found: list[Cause]) -> None:
    if not block.cidr:
        found.append(required(f"{path}.cidr"))
        return
    check_range(block.cidr, f"{path}.cidr", found)
    whole = names.parsed_network(block.cidr)
    for index, text in enumerate(getattr(block, "except")):
        here = f"{path}.except[{index}]"
        part = names.parsed_network(text)
        if whole is None:
            return
        check_range(text, here, found)
        if part is not None and not _is_within(part[1], whole[1]):
            found.append(invalid(here, text, "must be a strict subset of `cidr`"))
