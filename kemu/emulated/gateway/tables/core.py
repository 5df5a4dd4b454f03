"""The other kinds of the core group."""

from __future__ import annotations

from collections.abc import Mapping

from kemu.emulated.gateway.tables import texts
from kemu.emulated.gateway.tables.printers import AGE, CONTAINERS, IMAGES, NAME, SELECTOR, Cell, Column, Printer, wide
from kemu.messages.k8s import core_v1_pb2, networking_v1_pb2

_ROLE_PREFIX = "node-role.kubernetes.io/"
_ROLE = "kubernetes.io/role"
_BETA_CLASS = "volume.beta.kubernetes.io/storage-class"

_BLANK = " \t\n\v\f\r\x85\xa0\u1680\u2028\u2029\u202f\u205f\u3000" + "".join(map(chr, range(0x2000, 0x200B)))
"""What Go takes for white space."""


def _node(node: core_v1_pb2.Node, now_ns: int) -> list[Cell]:
    ready = {one.type: one.status for one in node.status.conditions}.get("Ready")
    status = "Unknown" if ready is None else "Ready" if ready == "True" else "NotReady"
    if node.spec.unschedulable:
        status += ",SchedulingDisabled"
    info = node.status.nodeInfo
    kernel = info.kernelVersion or texts.UNKNOWN
    if info.architecture:
        kernel += f" ({info.architecture})"
    return [
        node.metadata.name,
        status,
        ",".join(_roles(node.metadata.labels)) or texts.NONE,
        texts.age(node, now_ns),
        info.kubeletVersion,
        _address(node, "InternalIP"),
        _address(node, "ExternalIP"),
        info.osImage or texts.UNKNOWN,
        kernel,
        info.containerRuntimeVersion or texts.UNKNOWN,
    ]


def _roles(labels: Mapping[str, str]) -> list[str]:
    """``findNodeRoles``."""
    roles = {key.removeprefix(_ROLE_PREFIX) for key in labels if key.startswith(_ROLE_PREFIX)}
    if _ROLE in labels:
        roles.add(labels[_ROLE])
    return sorted(roles - {""})


def _address(node: core_v1_pb2.Node, type_: str) -> str:
    return next((one.address for one in node.status.addresses if one.type == type_), texts.NONE)


def _namespace(namespace: core_v1_pb2.Namespace, now_ns: int) -> list[Cell]:
    return [namespace.metadata.name, namespace.status.phase, texts.age(namespace, now_ns)]


def _event(event: core_v1_pb2.Event, now_ns: int) -> list[Cell]:
    first = texts.since(event.firstTimestamp, now_ns)
    if first == texts.UNKNOWN:
        first = texts.since(event.eventTime, now_ns)
    last = texts.since(event.lastTimestamp, now_ns)
    if last == texts.UNKNOWN:
        last = first
    count = event.count or 1
    if event.HasField("series"):
        last, count = texts.since(event.series.lastObservedTime, now_ns), event.series.count
    target = event.involvedObject
    source = event.source.component or event.reportingComponent
    instance = event.source.host or event.reportingInstance
    return [
        last,
        event.type,
        event.reason,
        f"{target.kind.lower()}/{target.name}" if target.name else target.kind.lower(),
        target.fieldPath,
        f"{source}, {instance}" if instance else source,
        event.message.strip(_BLANK),
        first,
        count,
        event.metadata.name,
    ]


def _service(service: core_v1_pb2.Service, now_ns: int) -> list[Cell]:
    spec = service.spec
    ports = ",".join(
        f"{port.port}:{port.nodePort}/{port.protocol}" if port.nodePort > 0 else f"{port.port}/{port.protocol}"
        for port in spec.ports
    )
    return [
        service.metadata.name,
        spec.type,
        spec.clusterIPs[0] if spec.clusterIPs else texts.NONE,
        _external_address(service),
        ports or texts.NONE,
        texts.age(service, now_ns),
        texts.labels(spec.selector),
    ]


def _external_address(service: core_v1_pb2.Service) -> str:
    """``getServiceExternalIP``."""
    spec = service.spec
    external = list(spec.externalIPs)
    if spec.type in ("ClusterIP", "NodePort"):
        return ",".join(external) if external else texts.NONE
    if spec.type == "LoadBalancer":
        balancer = load_balancer(service.status.loadBalancer)
        every = [*([balancer] if balancer else ()), *external]
        return ",".join(every) if every else "<pending>"
    return spec.externalName if spec.type == "ExternalName" else texts.UNKNOWN


def load_balancer(status: core_v1_pb2.LoadBalancerStatus | networking_v1_pb2.IngressLoadBalancerStatus) -> str:
    """``loadBalancerStatusStringer``, in full."""
    return ",".join(sorted({one.ip or one.hostname for one in status.ingress} - {""}))


def _replication_controller(controller: core_v1_pb2.ReplicationController, now_ns: int) -> list[Cell]:
    spec, status = controller.spec, controller.status
    return [
        controller.metadata.name,
        spec.replicas,
        status.replicas,
        status.readyReplicas,
        texts.age(controller, now_ns),
        *texts.containers(spec.template.spec),
        texts.labels(spec.selector),
    ]


def _quota(quota: core_v1_pb2.ResourceQuota, now_ns: int) -> list[Cell]:
    requests: list[str] = []
    limits: list[str] = []
    hard, used = quota.status.hard, quota.status.used
    for resource in sorted(hard):
        in_use = texts.quantity(used[resource].string if resource in used else "")
        text = f"{resource}: {in_use}/{texts.quantity(hard[resource].string)}"
        (limits if resource.startswith("limits.") else requests).append(text)
    return [quota.metadata.name, ", ".join(requests), ", ".join(limits), texts.age(quota, now_ns)]


def _volume(volume: core_v1_pb2.PersistentVolume, now_ns: int) -> list[Cell]:
    spec, status, metadata = volume.spec, volume.status, volume.metadata
    claim = f"{spec.claimRef.namespace}/{spec.claimRef.name}" if spec.HasField("claimRef") else ""
    return [
        metadata.name,
        texts.quantity(spec.capacity["storage"].string if "storage" in spec.capacity else ""),
        texts.access_modes(spec.accessModes),
        spec.persistentVolumeReclaimPolicy,
        "Terminating" if metadata.HasField("deletionTimestamp") else status.phase,
        claim,
        metadata.annotations.get(_BETA_CLASS, spec.storageClassName),
        texts.optional(spec, "volumeAttributesClassName", texts.UNSET),
        status.reason,
        texts.age(volume, now_ns),
        texts.optional(spec, "volumeMode", texts.UNSET),
    ]


def _claim(claim: core_v1_pb2.PersistentVolumeClaim, now_ns: int) -> list[Cell]:
    spec, status, metadata = claim.spec, claim.status, claim.metadata
    capacity = modes = ""
    if spec.volumeName:
        modes = texts.access_modes(status.accessModes)
        capacity = texts.quantity(status.capacity["storage"].string if "storage" in status.capacity else "")
    return [
        metadata.name,
        "Terminating" if metadata.HasField("deletionTimestamp") else status.phase,
        spec.volumeName,
        capacity,
        modes,
        metadata.annotations.get(_BETA_CLASS, spec.storageClassName),
        texts.optional(spec, "volumeAttributesClassName", texts.UNSET),
        texts.age(claim, now_ns),
        texts.optional(spec, "volumeMode", texts.UNSET),
    ]


def _config_map(config_map: core_v1_pb2.ConfigMap, now_ns: int) -> list[Cell]:
    return [config_map.metadata.name, len(config_map.data) + len(config_map.binaryData), texts.age(config_map, now_ns)]


def _secret(secret: core_v1_pb2.Secret, now_ns: int) -> list[Cell]:
    return [secret.metadata.name, secret.type, len(secret.data), texts.age(secret, now_ns)]


def _service_account(account: core_v1_pb2.ServiceAccount, now_ns: int) -> list[Cell]:
    return [account.metadata.name, texts.age(account, now_ns)]


def _endpoints(endpoints: core_v1_pb2.Endpoints, now_ns: int) -> list[Cell]:
    return [endpoints.metadata.name, _addresses(endpoints), texts.age(endpoints, now_ns)]


def _addresses(endpoints: core_v1_pb2.Endpoints) -> str:
    """``formatEndpoints``."""
    if not endpoints.subsets:
        return texts.NONE
    every = []
    for subset in endpoints.subsets:
        addresses = [one.ip for one in subset.addresses]
        if not subset.ports:
            every += addresses
        for port in subset.ports:
            every += [f"[{one}]:{port.port}" if ":" in one else f"{one}:{port.port}" for one in addresses]
    return texts.some(every, otherwise="")


PRINTERS = {
    core_v1_pb2.Node: Printer(
        (
            NAME,
            Column("Status", "Whether the node is ready, and whether pods may be scheduled onto it."),
            Column("Roles", "Roles that the labels of the node give it."),
            AGE,
            Column("Version", "Version of the kubelet."),
            wide("Internal-IP", "Address within the cluster."),
            wide("External-IP", "Address outside the cluster."),
            wide("OS-Image", "Operating system."),
            wide("Kernel-Version", "Kernel, and the architecture of the machine."),
            wide("Container-Runtime", "Container runtime and its version."),
        ),
        _node,
    ),
    core_v1_pb2.Namespace: Printer((NAME, Column("Status", "Active, or Terminating."), AGE), _namespace),
    core_v1_pb2.Event: Printer(
        (
            Column("Last Seen", "Time since it happened last."),
            Column("Type", "Normal, or Warning."),
            Column("Reason", "Why it happened, in one word."),
            Column("Object", "Kind and name of the object that it is about."),
            wide("Subobject", "Part of the object that it is about."),
            wide("Source", "Component that reports it."),
            Column("Message", "What happened."),
            wide("First Seen", "Time since it happened first."),
            wide("Count", "How often it happened."),
            wide("Name", NAME.description, "name"),
        ),
        _event,
    ),
    core_v1_pb2.Service: Printer(
        (
            NAME,
            Column("Type", "How the service is exposed."),
            Column("Cluster-IP", "Address within the cluster."),
            Column("External-IP", "Addresses outside the cluster."),
            Column("Port(s)", "Ports, with those of nodes and their protocols."),
            AGE,
            SELECTOR,
        ),
        _service,
    ),
    core_v1_pb2.ReplicationController: Printer(
        (
            NAME,
            Column("Desired", "Number of pods that there should be.", "integer"),
            Column("Current", "Number of pods that there are.", "integer"),
            Column("Ready", "Number of pods that are ready.", "integer"),
            AGE,
            CONTAINERS,
            IMAGES,
            SELECTOR,
        ),
        _replication_controller,
    ),
    core_v1_pb2.ResourceQuota: Printer(
        (
            NAME,
            Column("Request", "What is used of what may be used, but for limits."),
            Column("Limit", "What is used of what may be used, of limits."),
            AGE,
        ),
        _quota,
    ),
    core_v1_pb2.PersistentVolume: Printer(
        (
            NAME,
            Column("Capacity", "Size of the volume."),
            Column("Access Modes", "Ways in which it can be mounted."),
            Column("Reclaim Policy", "What becomes of it when its claim is deleted."),
            Column("Status", "Phase of the volume."),
            Column("Claim", "Claim to which it is bound."),
            Column("StorageClass", "Its storage class."),
            Column("VolumeAttributesClass", "Its class of attributes."),
            Column("Reason", "Why it is in this phase."),
            AGE,
            wide("VolumeMode", "Whether it has a file system."),
        ),
        _volume,
    ),
    core_v1_pb2.PersistentVolumeClaim: Printer(
        (
            NAME,
            Column("Status", "Phase of the claim."),
            Column("Volume", "Volume to which it is bound."),
            Column("Capacity", "Size of that volume."),
            Column("Access Modes", "Ways in which that volume can be mounted."),
            Column("StorageClass", "Storage class that it asks for."),
            Column("VolumeAttributesClass", "Class of attributes that it asks for."),
            AGE,
            wide("VolumeMode", "Whether it wants a file system."),
        ),
        _claim,
    ),
    core_v1_pb2.ConfigMap: Printer((NAME, Column("Data", "Number of its entries."), AGE), _config_map),
    core_v1_pb2.Secret: Printer(
        (NAME, Column("Type", "What the secret is for."), Column("Data", "Number of its entries."), AGE), _secret
    ),
    core_v1_pb2.ServiceAccount: Printer((NAME, AGE), _service_account),
    core_v1_pb2.Endpoints: Printer((NAME, Column("Endpoints", "Addresses and ports."), AGE), _endpoints),
}
