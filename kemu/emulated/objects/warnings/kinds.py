"""The warnings of each kind: ``WarningsOnCreate`` and ``WarningsOnUpdate`` of the strategies in ``pkg/registry``.

Callers ask for valid objects with their defaults.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any

from google.protobuf.message import Message

from kemu.emulated.objects import names
from kemu.emulated.objects.validation.networks import services
from kemu.emulated.objects.warnings import addresses, labels, pod_specs
from kemu.messages.k8s import (
    admissionregistration_v1_pb2,
    apps_v1_pb2,
    batch_v1_pb2,
    core_v1_pb2,
    discovery_v1_pb2,
    networking_v1_pb2,
    node_v1_pb2,
    resource_v1_pb2,
    storage_v1_pb2,
)
from kemu.messages.k8s.objects import KubernetesObject

_RESERVED = ".static.k8s.io"
_POD_NAME = "metadata.name: this is used in Pod names and hostnames"
_SURPRISING = "which can result in surprising behavior; a DNS label is recommended"
_REVISIONS = "spec.revisionHistoryLimit: a negative value retains all historical revisions; a value >= 0 is recommended"
_TOKENS = (
    "spec.serviceAccountTokenInSecrets is unset; if supported by this CSI driver, set to true to prevent possible"
    " logging of tokens in volume attributes"
)
_MANY_INDEXES = (
    "In Indexed Jobs with a number of completions higher than 10^5 and a parallelism higher than 10^4, Kubernetes might"
    " not be able to track completedIndexes when a big number of indexes fail"
)
_TIME_ZONE = (
    "cannot use TZ or CRON_TZ in spec.spec.schedule, use timeZone instead, see"
    " https://kubernetes.io/docs/concepts/workloads/controllers/cron-jobs/ for more details"
)
_OLD_CLASS = "volume.beta.kubernetes.io/storage-class"
_CLASS_SINCE = 'deprecated since v1.8; use "storageClassName" attribute instead'
_MOUNTABLE = "kubernetes.io/enforce-mountable-secrets"
_MANAGERS = ("endpointslice-controller.k8s.io", "endpointslicemirroring-controller.k8s.io")

Warnings = Iterator[str]
Workload = apps_v1_pb2.Deployment | apps_v1_pb2.ReplicaSet | core_v1_pb2.ReplicationController
Templated = apps_v1_pb2.Deployment | apps_v1_pb2.ReplicaSet | apps_v1_pb2.StatefulSet


def of(subresource: str, new: KubernetesObject, old: KubernetesObject | None) -> Iterable[str]:
    """Those about ``new``, which replaces ``old`` and has its generation already; None: it is a new object."""
    kind = type(new)
    if subresource == "status":
        return _STATUS[kind](new) if kind in _STATUS else ()
    if old is None:
        return _CREATE[kind](new) if kind in _CREATE else ()
    return _UPDATE[kind](new, old) if kind in _UPDATE else ()


# Workloads ----------------------------------------------------------------------------------------------------------


def _of_pod(pod: core_v1_pb2.Pod) -> Warnings:
    if wrong := names.dns_label(pod.metadata.name):
        yield f"metadata.name: this is used in the Pod's hostname, {_SURPRISING}: [{' '.join(wrong)}]"
    yield from pod_specs.of_pod(pod)


def _of_workload(obj: Workload) -> Warnings:
    if wrong := names.dns_label(obj.metadata.name):
        yield f"{_POD_NAME}, {_SURPRISING}: [{' '.join(wrong)}]"
    yield from pod_specs.of_template(obj.spec.template, "spec.template")


def _of_daemon_set(obj: apps_v1_pb2.DaemonSet) -> Warnings:
    return pod_specs.of_template(obj.spec.template, "spec.template")


def _of_stateful_set(obj: apps_v1_pb2.StatefulSet) -> Warnings:
    yield from pod_specs.of_template(obj.spec.template, "spec.template")
    yield from _of_replicas(obj, "")


def _of_replicas(obj: apps_v1_pb2.StatefulSet, below: str) -> Warnings:
    for index, claim in enumerate(obj.spec.volumeClaimTemplates):
        yield from pod_specs.of_claim(claim.spec, f"spec.volumeClaimTemplates[{index}]{below}")
    if obj.spec.HasField("revisionHistoryLimit") and obj.spec.revisionHistoryLimit < 0:
        yield _REVISIONS


def _of_new_replicas(new: apps_v1_pb2.StatefulSet, old: apps_v1_pb2.StatefulSet) -> Warnings:
    yield from _of_new_template(new, old)
    yield from _of_replicas(new, ".Spec")


def _of_new_template(new: Templated, old: Templated) -> Warnings:
    if new.metadata.generation != old.metadata.generation:
        yield from pod_specs.of_template(new.spec.template, "spec.template")


def _of_old_template(new: core_v1_pb2.ReplicationController, old: core_v1_pb2.ReplicationController) -> Warnings:
    """Kubernetes takes the one for the other."""
    if new.metadata.generation != old.metadata.generation:
        yield from pod_specs.of_template(old.spec.template, "spec.template")


def _of_pod_template(obj: core_v1_pb2.PodTemplate) -> Warnings:
    return pod_specs.of_template(obj.template, "template")


def _of_new_pod_template(new: core_v1_pb2.PodTemplate, old: core_v1_pb2.PodTemplate) -> Warnings:
    if new.metadata.generation != old.metadata.generation:
        yield from pod_specs.of_template(new.template, "template")


def _of_new_daemons(new: apps_v1_pb2.DaemonSet, old: apps_v1_pb2.DaemonSet) -> Warnings:
    if new.spec.template != old.spec.template:
        yield from pod_specs.of_template(new.spec.template, "spec.template")


def _of_job_spec(spec: batch_v1_pb2.JobSpec, path: str) -> Warnings:
    if spec.completionMode == "Indexed" and spec.completions > 100_000 and spec.parallelism > 10_000:
        yield f"{path}: {_MANY_INDEXES}"
    yield from pod_specs.of_template(spec.template, f"{path}.template")


def _of_job(job: batch_v1_pb2.Job) -> Warnings:
    if wrong := names.dns_label(job.metadata.name):
        yield f"{_POD_NAME}, {_SURPRISING}: [{' '.join(wrong)}]"
    yield from _of_job_spec(job.spec, "spec")


def _of_new_job(new: batch_v1_pb2.Job, old: batch_v1_pb2.Job) -> Warnings:
    if new.metadata.generation != old.metadata.generation:
        yield from _of_job_spec(new.spec, "spec")


def _of_cron_job(job: batch_v1_pb2.CronJob) -> Warnings:
    if wrong := names.dns_label(job.metadata.name):
        yield f"{_POD_NAME}, {_SURPRISING}: [{' '.join(wrong)}]"
    yield from _of_job_spec(job.spec.jobTemplate.spec, "spec.jobTemplate.spec")


def _of_new_cron_job(new: batch_v1_pb2.CronJob, old: batch_v1_pb2.CronJob) -> Warnings:
    if new.metadata.generation != old.metadata.generation:
        yield from _of_job_spec(new.spec.jobTemplate.spec, "spec.jobTemplate.spec")
    if "TZ" in new.spec.schedule:
        yield _TIME_ZONE


# Storage ------------------------------------------------------------------------------------------------------------


def _of_volume(volume: core_v1_pb2.PersistentVolume) -> Warnings:
    mounts = "volume.beta.kubernetes.io/mount-options"
    for key, told in (
        (_OLD_CLASS, _CLASS_SINCE),
        (mounts, 'deprecated since v1.31; use "mountOptions" attribute instead'),
    ):
        if key in volume.metadata.annotations:
            yield f"metadata.annotations[{key}]: {told}"
    if volume.spec.persistentVolumeReclaimPolicy == "Recycle":
        yield (
            "spec.persistentVolumeReclaimPolicy: The Recycle reclaim policy is deprecated. Instead, the recommended"
            " approach is to use dynamic provisioning."
        )
    for index, term in enumerate(volume.spec.nodeAffinity.required.nodeSelectorTerms):
        yield from labels.of_term(term, f"spec.nodeAffinity.required.nodeSelectorTerms[{index}]")
    yield from pod_specs.of_source(volume.spec.persistentVolumeSource, "spec")


def _of_claim(claim: core_v1_pb2.PersistentVolumeClaim) -> Warnings:
    if _OLD_CLASS in claim.metadata.annotations:
        yield f"metadata.annotations[{_OLD_CLASS}]: {_CLASS_SINCE}"
    yield from pod_specs.of_claim(claim.spec, "spec")


def _of_class(storage_class: storage_v1_pb2.StorageClass) -> Warnings:
    for index, topology in enumerate(storage_class.allowedTopologies):
        for number, expression in enumerate(topology.matchLabelExpressions):
            if expression.key in labels.DEPRECATED:
                at = f"allowedTopologies[{index}].matchLabelExpressions[{number}].key"
                yield f"{at}: {labels.DEPRECATED[expression.key]}"


def _of_capacity(capacity: storage_v1_pb2.CSIStorageCapacity) -> Warnings:
    return labels.of_selector(capacity.nodeTopology, "nodeTopology")


def _of_driver(driver: storage_v1_pb2.CSIDriver) -> Warnings:
    if driver.spec.tokenRequests and not driver.spec.HasField("serviceAccountTokenInSecrets"):
        yield _TOKENS


def _of_new_driver(new: storage_v1_pb2.CSIDriver, old: storage_v1_pb2.CSIDriver) -> Warnings:
    if new.spec.tokenRequests != old.spec.tokenRequests:
        yield from _of_driver(new)


# Networks -----------------------------------------------------------------------------------------------------------


def _of_service(service: core_v1_pb2.Service) -> Warnings:
    spec, hints = service.spec, "service.kubernetes.io/topology-aware-hints"
    if hints in service.metadata.annotations:
        yield f"annotation {hints} is deprecated, please use service.kubernetes.io/topology-mode instead"
    is_headless = spec.type == services.CLUSTER_IP and services.is_headless(spec)
    if not services.is_headless(spec) and spec.type != services.EXTERNAL:
        for index, address in enumerate(spec.clusterIPs):
            yield from addresses.of_address(address, f"spec.clusterIPs[{index}]")
    if is_headless:
        if spec.loadBalancerIP:
            yield "spec.loadBalancerIP is ignored for headless services"
        if spec.externalIPs:
            yield "spec.externalIPs is ignored for headless services"
        if spec.sessionAffinity != "None":
            yield "spec.SessionAffinity is ignored for headless services"
    for index, address in enumerate(spec.externalIPs):
        yield from addresses.of_address(address, f"spec.externalIPs[{index}]")
    if spec.externalIPs and not is_headless and spec.type != services.EXTERNAL:
        yield "spec.externalIPs is deprecated and may no longer be implemented in some clusters"
    if spec.loadBalancerIP:
        yield from addresses.of_address(spec.loadBalancerIP, "spec.loadBalancerIP")
    for index, network in enumerate(spec.loadBalancerSourceRanges):
        yield from addresses.of_range(network, f"spec.loadBalancerSourceRanges[{index}]")
    if spec.type == services.EXTERNAL and spec.externalIPs:
        yield 'spec.externalIPs is ignored when spec.type is "ExternalName"'
    if spec.type != services.EXTERNAL and spec.externalName:
        yield 'spec.externalName is ignored when spec.type is not "ExternalName"'
    if spec.trafficDistribution == "PreferClose":
        yield 'spec.trafficDistribution: "PreferClose" is deprecated; use "PreferSameZone"'


def _of_balancer(ips: Iterable[str]) -> Warnings:
    for index, ip in enumerate(ips):
        yield from addresses.of_address(ip, f"status.loadBalancer.ingress[{index}]")


def _of_pod_addresses(pod: core_v1_pb2.Pod) -> Warnings:
    for index, one in enumerate(pod.status.podIPs):
        if odd := addresses.odd(one.ip):
            yield f"status.podIPs[{index}].ip: {odd}"
    for index, host in enumerate(pod.status.hostIPs):
        if odd := addresses.odd(host.ip):
            yield f"status.hostIPs[{index}].ip: {odd}"


def _of_endpoints(endpoints: core_v1_pb2.Endpoints) -> Warnings:
    if endpoints.metadata.labels.get("endpoints.kubernetes.io/managed-by") == "endpoint-controller":
        return
    for index, subset in enumerate(endpoints.subsets):
        for field, found in (("addresses", subset.addresses), ("notReadyAddresses", subset.notReadyAddresses)):
            for number, one in enumerate(found):
                yield from addresses.of_address(one.ip, f"subsets[{index}].{field}[{number}].ip")


def _of_slice(endpoints: discovery_v1_pb2.EndpointSlice) -> Warnings:
    if endpoints.addressType == "FQDN":
        yield "spec.addressType: FQDN endpoints are deprecated"
    yield from _of_endpoint_addresses(endpoints)


def _of_endpoint_addresses(endpoints: discovery_v1_pb2.EndpointSlice) -> Warnings:
    if endpoints.metadata.labels.get("endpointslice.kubernetes.io/managed-by") in _MANAGERS:
        return
    for index, one in enumerate(endpoints.endpoints):
        for number, address in enumerate(one.addresses):
            yield from addresses.of_address(address, f"endpoints[{index}].addresses[{number}]")


def _of_policy(policy: networking_v1_pb2.NetworkPolicy) -> Warnings:
    blocks = [
        *_blocks("spec.ingress", "from", (getattr(rule, "from") for rule in policy.spec.ingress)),
        *_blocks("spec.egress", "to", (rule.to for rule in policy.spec.egress)),
    ]
    for at, block in blocks:
        yield from addresses.of_range(block.cidr, f"{at}.cidr")
        for number, network in enumerate(getattr(block, "except")):
            yield from addresses.of_range(network, f"{at}.except[{number}]")


def _blocks(
    path: str, side: str, rules: Iterable[Iterable[networking_v1_pb2.NetworkPolicyPeer]]
) -> Iterator[tuple[str, networking_v1_pb2.IPBlock]]:
    for index, peers in enumerate(rules):
        for number, peer in enumerate(peers):
            if peer.HasField("ipBlock"):
                yield f"{path}[{index}].{side}[{number}].ipBlock", peer.ipBlock


def _of_ingress(ingress: networking_v1_pb2.Ingress) -> Warnings:
    key = "kubernetes.io/ingress.class"
    if key in ingress.metadata.annotations and not ingress.spec.HasField("ingressClassName"):
        yield f"annotation \"{key}\" is deprecated, please use 'spec.ingressClassName' instead"


# Others -------------------------------------------------------------------------------------------------------------


def _of_node(node: core_v1_pb2.Node) -> Warnings:
    if node.spec.HasField("configSource"):
        yield "spec.configSource: the feature is removed"
    if node.spec.externalID:
        yield "spec.externalID: this field is deprecated, and is unused by Kubernetes"
    for index, network in enumerate(node.spec.podCIDRs):
        yield from addresses.of_range(network, f"spec.podCIDRs[{index}]")


def _of_runtime_class(runtime_class: node_v1_pb2.RuntimeClass) -> Warnings:
    for key in sorted(runtime_class.scheduling.nodeSelector):
        if key in labels.DEPRECATED:
            yield f"scheduling.nodeSelector: {labels.DEPRECATED[key]}"


def _of_account(account: core_v1_pb2.ServiceAccount) -> Warnings:
    if _MOUNTABLE in account.metadata.annotations:
        yield (
            f"metadata.annotations[{_MOUNTABLE}]: deprecated in v1.32+; prefer separate namespaces to isolate access to"
            " mounted secrets"
        )


def _of_new_account(new: core_v1_pb2.ServiceAccount, old: core_v1_pb2.ServiceAccount) -> Warnings:
    if _MOUNTABLE not in old.metadata.annotations:
        yield from _of_account(new)


def _of_secret(secret: core_v1_pb2.Secret) -> Warnings:
    """The first of both that has no PEM data; whether they belong together is not looked at."""
    if secret.type == "kubernetes.io/tls":
        for key, told in (("tls.crt", "certificate"), ("tls.key", "key")):
            if b"-----BEGIN " not in secret.data.get(key, b""):
                yield f"tls: failed to find any PEM data in {told} input"
                return


def _of_devices(found: resource_v1_pb2.ResourceSlice) -> Warnings:
    driver = found.spec.driver
    if driver != driver.lower():
        yield f'spec.driver: driver names should be lowercase; "{driver}" contains uppercase characters'


def _of_admission(obj: KubernetesObject) -> Warnings:
    if obj.metadata.name.endswith(_RESERVED):
        yield (
            f'metadata.name: names ending with "{_RESERVED}" are reserved for static manifest-based configurations and'
            " cannot be managed via the API"
        )


_ALIKE: dict[type[Message], Callable[[Any], Warnings]] = {
    core_v1_pb2.Endpoints: _of_endpoints,
    core_v1_pb2.Node: _of_node,
    core_v1_pb2.PersistentVolume: _of_volume,
    core_v1_pb2.PersistentVolumeClaim: _of_claim,
    core_v1_pb2.Secret: _of_secret,
    core_v1_pb2.Service: _of_service,
    networking_v1_pb2.NetworkPolicy: _of_policy,
    node_v1_pb2.RuntimeClass: _of_runtime_class,
    resource_v1_pb2.ResourceSlice: _of_devices,
    storage_v1_pb2.CSIStorageCapacity: _of_capacity,
    storage_v1_pb2.StorageClass: _of_class,
    **dict.fromkeys(
        (
            admissionregistration_v1_pb2.MutatingAdmissionPolicy,
            admissionregistration_v1_pb2.MutatingAdmissionPolicyBinding,
            admissionregistration_v1_pb2.MutatingWebhookConfiguration,
            admissionregistration_v1_pb2.ValidatingAdmissionPolicy,
            admissionregistration_v1_pb2.ValidatingAdmissionPolicyBinding,
            admissionregistration_v1_pb2.ValidatingWebhookConfiguration,
        ),
        _of_admission,
    ),
}
"""Kinds with the same warnings whether an object is made or changed."""
_CREATE: dict[type[Message], Callable[[Any], Warnings]] = {
    **_ALIKE,
    apps_v1_pb2.DaemonSet: _of_daemon_set,
    apps_v1_pb2.Deployment: _of_workload,
    apps_v1_pb2.ReplicaSet: _of_workload,
    apps_v1_pb2.StatefulSet: _of_stateful_set,
    batch_v1_pb2.CronJob: _of_cron_job,
    batch_v1_pb2.Job: _of_job,
    core_v1_pb2.Pod: _of_pod,
    core_v1_pb2.PodTemplate: _of_pod_template,
    core_v1_pb2.ReplicationController: _of_workload,
    core_v1_pb2.ServiceAccount: _of_account,
    discovery_v1_pb2.EndpointSlice: _of_slice,
    networking_v1_pb2.Ingress: _of_ingress,
    storage_v1_pb2.CSIDriver: _of_driver,
}
"""By message of a kind."""


def _of_new(alike: Callable[[Any], Warnings]) -> Callable[[Any, Any], Warnings]:
    return lambda new, old: alike(new)


_UPDATE: dict[type[Message], Callable[[Any, Any], Warnings]] = {
    **{kind: _of_new(alike) for kind, alike in _ALIKE.items()},
    apps_v1_pb2.DaemonSet: _of_new_daemons,
    apps_v1_pb2.Deployment: _of_new_template,
    apps_v1_pb2.ReplicaSet: _of_new_template,
    apps_v1_pb2.StatefulSet: _of_new_replicas,
    batch_v1_pb2.CronJob: _of_new_cron_job,
    batch_v1_pb2.Job: _of_new_job,
    core_v1_pb2.PodTemplate: _of_new_pod_template,
    core_v1_pb2.ReplicationController: _of_old_template,
    core_v1_pb2.ServiceAccount: _of_new_account,
    discovery_v1_pb2.EndpointSlice: _of_new(_of_endpoint_addresses),
    storage_v1_pb2.CSIDriver: _of_new_driver,
}
"""Pods have none: people seldom change them themselves."""
_STATUS: dict[type[Message], Callable[[Any], Warnings]] = {
    core_v1_pb2.Pod: _of_pod_addresses,
    core_v1_pb2.Service: lambda service: _of_balancer(one.ip for one in service.status.loadBalancer.ingress),
    networking_v1_pb2.Ingress: lambda ingress: _of_balancer(one.ip for one in ingress.status.loadBalancer.ingress),
}
