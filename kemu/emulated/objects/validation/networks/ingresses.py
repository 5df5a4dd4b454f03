"""The checks of Ingresses and IngressClasses (``pkg/apis/networking/validation``)."""

from __future__ import annotations

from kemu.emulated.objects import names
from kemu.emulated.objects.validation import checks
from kemu.emulated.objects.validation.causes import forbidden, invalid, not_supported, required, too_long
from kemu.emulated.objects.validation.networks import services
from kemu.emulated.objects.validation.rules import Rules
from kemu.errors import Cause
from kemu.messages.k8s import core_v1_pb2, networking_v1_pb2

_CLASS_ANNOTATION = "kubernetes.io/ingress.class"
_LONGEST_CONTROLLER = 250
_PATH_TYPES = ("Exact", "ImplementationSpecific", "Prefix")
_NOT_IN_PATHS, _NOT_AT_THE_END = ("//", "/./", "/../", "%2f", "%2F"), ("/..", "/.")
_FIXED_CONTROLLER = checks.fixed("spec.controller")
_SCOPES = ("Cluster", "Namespace")

Reference = core_v1_pb2.TypedLocalObjectReference | networking_v1_pb2.IngressClassParametersReference


def _check_new(ingress: networking_v1_pb2.Ingress, found: list[Cause]) -> None:
    _check_ingress(ingress, None, found)
    spec, annotated = ingress.spec, ingress.metadata.annotations.get(_CLASS_ANNOTATION)
    if annotated is not None and spec.HasField("ingressClassName") and annotated != spec.ingressClassName:
        text = "must match `ingressClassName` when both are specified"
        found.append(invalid(f"annotations.{_CLASS_ANNOTATION}", annotated, text))


def _check_ingress(
    ingress: networking_v1_pb2.Ingress, old: networking_v1_pb2.Ingress | None, found: list[Cause]
) -> None:
    """``ValidateIngressSpec``. ``old``: what it was before: what was wrong may stay so."""
    spec = ingress.spec
    if not spec.rules and not spec.HasField("defaultBackend"):
        found.append(invalid("spec", None, "either `defaultBackend` or `rules` must be specified"))
    if spec.HasField("defaultBackend"):
        _check_backend(spec.defaultBackend, "spec.defaultBackend", found)
    spares_wildcards = old is not None and any("*" in rule.host and _is_wrong(rule) for rule in old.spec.rules)
    for index, rule in enumerate(spec.rules):
        path = f"spec.rules[{index}]"
        if rule.host:
            if names.parsed_address(rule.host) is not None:
                found.append(invalid(f"{path}.host", rule.host, "must be a DNS name, not an IP address"))
            checks.name(rule.host, f"{path}.host", names.wildcard_or_subdomain, found)
        if "*" not in rule.host or not spares_wildcards:
            _check_paths(rule, path, found)
    spares_secrets = old is not None and any(
        one.secretName and names.dns_subdomain(one.secretName) for one in old.spec.tls
    )
    for index, tls in enumerate(spec.tls):
        path = f"spec.tls[{index}]"
        for number, host in enumerate(tls.hosts):
            found += [invalid(f"{path}.hosts[{number}]", host, text) for text in names.wildcard_or_subdomain(host)]
        if not spares_secrets:
            checks.name(tls.secretName, f"{path}.secretName", names.dns_subdomain, found)
    if spec.HasField("ingressClassName"):
        name = spec.ingressClassName
        found += [invalid("spec.ingressClassName", name, text) for text in names.dns_subdomain(name)]


def _is_wrong(rule: networking_v1_pb2.IngressRule) -> bool:
    found: list[Cause] = []
    _check_paths(rule, "", found)
    return bool(found)


def _check_paths(rule: networking_v1_pb2.IngressRule, path: str, found: list[Cause]) -> None:
    """``validateHTTPIngressRuleValue``."""
    if not rule.ingressRuleValue.HasField("http"):
        return
    paths = rule.ingressRuleValue.http.paths
    if not paths:
        found.append(required(f"{path}.http.paths"))
    for index, one in enumerate(paths):
        here = f"{path}.http.paths[{index}]"
        if not one.HasField("pathType"):
            found.append(required(f"{here}.pathType", "pathType must be specified"))
            continue
        _check_path(one.pathType, one.path, here, found)
        _check_backend(one.backend, f"{here}.backend", found)


def _check_path(kind: str, text: str, path: str, found: list[Cause]) -> None:
    if kind not in _PATH_TYPES:
        found.append(not_supported(f"{path}.pathType", kind, _PATH_TYPES))
        return
    is_free = kind == "ImplementationSpecific"
    if not text.startswith("/") and (text or not is_free):
        found.append(invalid(f"{path}.path", text, "must be an absolute path"))
    if not is_free:
        wrong = [f"must not contain '{part}'" for part in _NOT_IN_PATHS if part in text]
        wrong += [f"cannot end with '{end}'" for end in _NOT_AT_THE_END if text.endswith(end)]
        found += [invalid(f"{path}.path", text, one) for one in wrong]


def _check_backend(backend: networking_v1_pb2.IngressBackend, path: str, found: list[Cause]) -> None:
    """``validateIngressBackend``."""
    has_service = backend.HasField("service")
    if backend.HasField("resource"):
        if has_service:
            found.append(invalid(path, "", "cannot set both resource and service backends"))
        else:
            _check_reference(backend.resource, f"{path}.resource", found)
        return
    if not has_service:
        found.append(invalid(path, "", "resource or service backend is required"))
        return
    checks.needed_name(backend.service.name, f"{path}.service.name", names.dns_label, found)
    port, here = backend.service.port, f"{path}.service.port"
    if port.name and port.number:
        found.append(invalid(path, "", "cannot set both port name & port number"))
    elif port.name:
        checks.name(port.name, f"{here}.name", names.port_name, found)
    elif port.number:
        checks.port(port.number, f"{here}.number", found)
    else:
        found.append(required(path, "port name or number is required"))


def _check_reference(reference: Reference, path: str, found: list[Cause]) -> None:
    """``validateIngressTypedLocalObjectReference``."""
    if reference.HasField("apiGroup"):
        group = reference.apiGroup
        found += [invalid(f"{path}.apiGroup", group, text) for text in names.dns_subdomain(group)]
    checks.needed_name(reference.kind, f"{path}.kind", names.path_segment, found)
    checks.needed_name(reference.name, f"{path}.name", names.path_segment, found)


def _check_status(new: networking_v1_pb2.Ingress, old: networking_v1_pb2.Ingress, found: list[Cause]) -> None:
    """``ValidateIngressLoadBalancerStatus``."""
    known = {one.ip for one in old.status.loadBalancer.ingress}
    for index, one in enumerate(new.status.loadBalancer.ingress):
        path = f"status.loadBalancer.ingress[{index}]"
        if one.ip not in known:
            checks.name(one.ip, f"{path}.ip", names.old_address, found)
        services.check_balancer_host(one.hostname, f"{path}.hostname", found)


# IngressClasses -------------------------------------------------------------------------------------------------------


def _check_class(ingress_class: networking_v1_pb2.IngressClass, found: list[Cause]) -> None:
    spec, path = ingress_class.spec, "spec.controller"
    if len(spec.controller.encode()) > _LONGEST_CONTROLLER:
        found.append(too_long(path, _LONGEST_CONTROLLER))
    checks.domain_prefixed_path(spec.controller, path, found)
    if spec.HasField("parameters"):
        _check_parameters(spec.parameters, "spec.parameters", found)


def _check_parameters(
    parameters: networking_v1_pb2.IngressClassParametersReference, path: str, found: list[Cause]
) -> None:
    """``validateIngressClassParametersReference``."""
    _check_reference(parameters, path, found)
    has_namespace, namespace, here = parameters.HasField("namespace"), parameters.namespace, f"{path}.namespace"
    checks.listed(parameters.scope, f"{path}.scope", _SCOPES, found)
    if parameters.scope == "Cluster" and has_namespace:
        found.append(forbidden(here, "`parameters.scope` is set to 'Cluster'"))
    elif parameters.scope == "Namespace" and not has_namespace:
        found.append(required(here, "`parameters.scope` is set to 'Namespace'"))
    elif parameters.scope == "Namespace":
        found += [invalid(here, namespace, text) for text in names.dns_label(namespace)]


def _check_class_update(
    new: networking_v1_pb2.IngressClass, old: networking_v1_pb2.IngressClass, found: list[Cause]
) -> None:
    _FIXED_CONTROLLER(new, old, found)
    _check_class(new, found)


RULES = {
    networking_v1_pb2.Ingress: Rules(_check_new, _check_ingress, _check_status),
    networking_v1_pb2.IngressClass: Rules(_check_class, _check_class_update),
}
