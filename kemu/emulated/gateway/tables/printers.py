"""The columns of each kind, with the fields or functions that its cells come from.

Pods are the exception: :func:`.pods.row` makes their cells at once, as the restarts of containers depend on the reason.
"""

from __future__ import annotations

from kemu.emulated.gateway.tables import cells, texts
from kemu.emulated.gateway.tables.columns import (
    AGE,
    NAME,
    Column,
    containers,
    either,
    flag,
    joined,
    named,
    of,
    optional,
    selector,
    timed,
    whole,
    wide,
)
from kemu.emulated.objects import times


def of_kind(kind: str) -> tuple[Column, ...]:
    return _PRINTERS.get(kind, _DEFAULT)


_DEFAULT = (
    NAME,
    Column(
        "Created At",
        "Time at which the object was created.",
        of(times.format_time, "metadata.creationTimestamp.seconds"),
        "date",
    ),
)

_REPLICAS = (
    NAME,
    whole("Desired", "Number of pods that there should be.", "spec.replicas"),
    whole("Current", "Number of pods that there are.", "status.replicas"),
    whole("Ready", "Number of pods that are ready.", "status.readyReplicas"),
    AGE,
    *containers(),
)
_READY = Column("Ready", "Number of pods that are ready, of those that there should be.", cells.ready_replicas)

_WEBHOOKS = (NAME, whole("Webhooks", "Number of its webhooks.", of(len, "webhooks")), AGE)
_POLICY_BINDING = (
    NAME,
    Column("PolicyName", "Policy that is bound.", "spec.policyName"),
    Column("ParamRef", "Object that parametrises the policy.", of(cells.parameter, "spec")),
    AGE,
)
_BINDING = (
    NAME,
    Column("Role", "Role that is given.", cells.role),
    AGE,
    wide("Users", "Users to whom it is given.", of(cells.subjects("User"), "subjects")),
    wide("Groups", "Groups to which it is given.", of(cells.subjects("Group"), "subjects")),
    wide("ServiceAccounts", "Service accounts to which it is given.", of(cells.subjects("ServiceAccount"), "subjects")),
)

_PRINTERS: dict[str, tuple[Column, ...]] = {
    # Core
    "Pod": (
        NAME,
        Column("Ready", "How many of the containers are ready."),
        Column("Status", "The phase, or the reason why a container is not running."),
        Column("Restarts", "How often containers were restarted, and when the last of them ended."),
        AGE,
        wide("IP", "Address of the pod."),
        wide("Node", "Node to which the pod is bound."),
        wide("Nominated Node", "Node on which pods were preempted for this one."),
        wide("Readiness Gates", "How many of the readiness gates are true."),
    ),
    "PodTemplate": (
        NAME,
        Column("Containers", "Names of the containers of the template.", joined("template.spec.containers", "name")),
        Column("Images", "Images of the containers of the template.", joined("template.spec.containers", "image")),
        Column("Pod Labels", "Labels of the template.", of(texts.labels, "template.metadata.labels")),
    ),
    "Node": (
        NAME,
        Column("Status", "Whether the node is ready, and whether pods may be scheduled onto it.", cells.node_status),
        Column("Roles", "Roles that the labels of the node give it.", cells.node_roles),
        AGE,
        Column("Version", "Version of the kubelet.", "status.nodeInfo.kubeletVersion"),
        wide("Internal-IP", "Address within the cluster.", cells.node_address("InternalIP")),
        wide("External-IP", "Address outside the cluster.", cells.node_address("ExternalIP")),
        wide("OS-Image", "Operating system.", either("status.nodeInfo.osImage", texts.UNKNOWN)),
        wide("Kernel-Version", "Kernel, and the architecture of the machine.", cells.kernel),
        wide(
            "Container-Runtime",
            "Container runtime and its version.",
            either("status.nodeInfo.containerRuntimeVersion", texts.UNKNOWN),
        ),
    ),
    "Namespace": (NAME, Column("Status", "Active, or Terminating.", "status.phase"), AGE),
    "Event": (
        timed("Last Seen", "Time since it happened last.", cells.last_seen),
        Column("Type", "Normal, or Warning.", "type"),
        Column("Reason", "Why it happened, in one word.", "reason"),
        Column("Object", "Kind and name of the object that it is about.", cells.event_object),
        wide("Subobject", "Part of the object that it is about.", "involvedObject.fieldPath"),
        wide("Source", "Component that reports it.", cells.event_source),
        Column("Message", "What happened.", of(texts.trimmed, "message")),
        Column("First Seen", "Time since it happened first.", cells.first_seen, priority=1, is_timed=True),
        wide("Count", "How often it happened.", cells.event_count),
        Column("Name", NAME.description, "metadata.name", format="name", priority=1),
    ),
    "Service": (
        NAME,
        Column("Type", "How the service is exposed.", "spec.type"),
        Column("Cluster-IP", "Address within the cluster.", cells.cluster_ip),
        Column("External-IP", "Addresses outside the cluster.", cells.external_ip),
        Column("Port(s)", "Ports, with those of nodes and their protocols.", cells.service_ports),
        AGE,
        selector(of(texts.labels, "spec.selector")),
    ),
    "ReplicationController": (*_REPLICAS, selector(of(texts.labels, "spec.selector"))),
    "ResourceQuota": (
        NAME,
        Column("Request", "What is used of what may be used, but for limits.", cells.quota(of_limits=False)),
        Column("Limit", "What is used of what may be used, of limits.", cells.quota(of_limits=True)),
        AGE,
    ),
    "PersistentVolume": (
        NAME,
        Column(
            "Capacity", "Size of the volume.", of(lambda amounts: texts.amount(amounts, "storage"), "spec.capacity")
        ),
        Column("Access Modes", "Ways in which it can be mounted.", of(texts.access_modes, "spec.accessModes")),
        Column("Reclaim Policy", "What becomes of it when its claim is deleted.", "spec.persistentVolumeReclaimPolicy"),
        Column("Status", "Phase of the volume.", cells.storage_phase),
        Column("Claim", "Claim to which it is bound.", cells.bound_claim),
        Column("StorageClass", "Its storage class.", cells.storage_class),
        Column(
            "VolumeAttributesClass",
            "Its class of attributes.",
            optional("spec.volumeAttributesClassName", texts.UNSET),
        ),
        Column("Reason", "Why it is in this phase.", "status.reason"),
        AGE,
        wide("VolumeMode", "Whether it has a file system.", optional("spec.volumeMode", texts.UNSET)),
    ),
    "PersistentVolumeClaim": (
        NAME,
        Column("Status", "Phase of the claim.", cells.storage_phase),
        Column("Volume", "Volume to which it is bound.", "spec.volumeName"),
        Column("Capacity", "Size of that volume.", cells.claim_capacity),
        Column("Access Modes", "Ways in which that volume can be mounted.", cells.claim_modes),
        Column("StorageClass", "Storage class that it asks for.", cells.storage_class),
        Column(
            "VolumeAttributesClass",
            "Class of attributes that it asks for.",
            optional("spec.volumeAttributesClassName", texts.UNSET),
        ),
        AGE,
        wide("VolumeMode", "Whether it wants a file system.", optional("spec.volumeMode", texts.UNSET)),
    ),
    "ConfigMap": (
        NAME,
        Column("Data", "Number of its entries.", lambda one: len(one.data) + len(one.binaryData)),
        AGE,
    ),
    "Secret": (
        NAME,
        Column("Type", "What the secret is for.", "type"),
        Column("Data", "Number of its entries.", of(len, "data")),
        AGE,
    ),
    "ServiceAccount": (NAME, AGE),
    "Endpoints": (NAME, Column("Endpoints", "Addresses and ports.", cells.endpoints), AGE),
    # Workloads
    "Deployment": (
        NAME,
        _READY,
        Column("Up-to-date", "Number of pods of the newest template.", "status.updatedReplicas"),
        Column("Available", "Number of pods that have been ready for long enough.", "status.availableReplicas"),
        AGE,
        *containers(),
        selector(of(lambda spec: texts.selector(spec, wrong="<invalid>", empty=""), "spec")),
    ),
    "ReplicaSet": (*_REPLICAS, selector(of(texts.selector, "spec"))),
    "StatefulSet": (NAME, _READY, AGE, *containers()),
    "DaemonSet": (
        NAME,
        whole("Desired", "Number of nodes that should run a pod.", "status.desiredNumberScheduled"),
        whole("Current", "Number of them that have one.", "status.currentNumberScheduled"),
        whole("Ready", "Number of them whose pod is ready.", "status.numberReady"),
        whole("Up-to-date", "Number of them whose pod has the newest template.", "status.updatedNumberScheduled"),
        whole("Available", "Number of them whose pod has been ready for long enough.", "status.numberAvailable"),
        Column(
            "Node Selector",
            "Labels of nodes that the template asks for.",
            of(texts.labels, "spec.template.spec.nodeSelector"),
        ),
        AGE,
        *containers(),
        selector(of(texts.selector, "spec")),
    ),
    "ControllerRevision": (
        NAME,
        Column("Controller", "Object that the revision belongs to.", cells.controller),
        Column("Revision", "Number of the revision.", "revision"),
        AGE,
    ),
    "Job": (
        NAME,
        Column("Status", "Whether the job runs, is suspended or has ended.", cells.job_status),
        Column("Completions", "Number of pods that succeeded, of those that have to.", cells.completions),
        timed("Duration", "Time from the start to the end.", cells.job_duration),
        AGE,
        *containers(),
        selector(of(texts.selector, "spec")),
    ),
    "CronJob": (
        NAME,
        Column("Schedule", "When jobs start, as a cron expression.", "spec.schedule"),
        Column("Timezone", "Time zone of the schedule.", optional("spec.timeZone", texts.NONE)),
        flag("Suspend", "Whether no new jobs start.", optional("spec.suspend", texts.UNSET)),
        whole("Active", "Number of jobs that run.", of(len, "status.active")),
        timed("Last Schedule", "Time since the last job was due.", cells.last_schedule),
        AGE,
        *containers("spec.jobTemplate.spec.template.spec"),
        selector(of(texts.selector, "spec.jobTemplate.spec")),
    ),
    "HorizontalPodAutoscaler": (
        NAME,
        Column("Reference", "Object that is scaled.", cells.scale_target),
        Column("Targets", "Metrics: what they are, and what they should be.", cells.metrics),
        Column("MinPods", "Least number of pods.", optional("spec.minReplicas", texts.UNSET)),
        Column("MaxPods", "Largest number of pods.", "spec.maxReplicas"),
        Column("Replicas", "Number of pods.", "status.currentReplicas"),
        AGE,
    ),
    "Scale": (
        Column("Name", NAME.description, "metadata.name"),
        whole("Desired", "Number of pods that there should be.", "spec.replicas"),
        whole("Available", "Number of pods that there are.", "status.replicas"),
        AGE,
    ),
    "PodDisruptionBudget": (
        NAME,
        Column(
            "Min Available", "Number or share of pods that must stay available.", cells.budget_limit("minAvailable")
        ),
        Column(
            "Max Unavailable", "Number or share of pods that may be unavailable.", cells.budget_limit("maxUnavailable")
        ),
        whole("Allowed Disruptions", "Number of pods that may be disrupted now.", "status.disruptionsAllowed"),
        AGE,
    ),
    # Networks
    "IPAddress": (
        NAME,
        Column("ParentRef", "Object that has the address.", cells.parent),
        # ``printIPAddress`` prints an age without a column.
        timed("", "", texts.age),
    ),
    "ServiceCIDR": (NAME, Column("CIDRs", "Ranges of addresses.", of(",".join, "spec.cidrs")), AGE),
    "Ingress": (
        NAME,
        Column("Class", "Class of the ingress.", optional("spec.ingressClassName", texts.NONE)),
        Column("Hosts", "Hosts of its rules.", of(cells.hosts, "spec.rules")),
        Column("Address", "Addresses of the load balancer.", of(cells.load_balancer, "status.loadBalancer")),
        Column("Ports", "Ports that are open.", of(lambda tls: "80, 443" if tls else "80", "spec.tls")),
        AGE,
    ),
    "IngressClass": (
        named(cells.default_ingress_class),
        Column("Controller", "Controller of ingresses of this class.", "spec.controller"),
        Column("Parameters", "Object that holds its parameters.", of(cells.class_parameters, "spec")),
        AGE,
    ),
    "NetworkPolicy": (
        NAME,
        Column("Pod-Selector", "Pods to which the policy applies.", of(cells.policy_pods, "spec")),
        AGE,
    ),
    "EndpointSlice": (
        NAME,
        Column("AddressType", "IPv4, IPv6 or FQDN.", "addressType"),
        Column("Ports", "Ports of the endpoints.", cells.slice_ports),
        Column("Endpoints", "Addresses of the endpoints.", cells.slice_addresses),
        AGE,
    ),
    # Storage
    "StorageClass": (
        named(cells.default_storage_class),
        Column("Provisioner", "Driver that provides the volumes.", "provisioner"),
        Column(
            "ReclaimPolicy", "What becomes of a volume when its claim is deleted.", optional("reclaimPolicy", "Delete")
        ),
        Column("VolumeBindingMode", "When claims are bound.", optional("volumeBindingMode", "Immediate")),
        Column("AllowVolumeExpansion", "Whether volumes may grow.", "allowVolumeExpansion"),
        AGE,
    ),
    "CSINode": (NAME, whole("Drivers", "Number of drivers on the node.", of(len, "spec.drivers")), AGE),
    "CSIDriver": (
        NAME,
        flag("AttachRequired", "Whether volumes are attached to nodes.", of(cells.attach_required, "spec")),
        flag("PodInfoOnMount", "Whether the driver is told about the pod.", "spec.podInfoOnMount"),
        flag("StorageCapacity", "Whether the driver says how much room there is.", "spec.storageCapacity"),
        Column("TokenRequests", "Audiences of the tokens that the driver gets.", cells.audiences),
        flag("RequiresRepublish", "Whether volumes are published again and again.", "spec.requiresRepublish"),
        Column("Modes", "Lifecycles of the volumes.", of(texts.listed, "spec.volumeLifecycleModes")),
        AGE,
    ),
    "CSIStorageCapacity": (
        NAME,
        Column("StorageClassName", "Storage class of the volumes.", "storageClassName"),
        Column("Capacity", "Room that there is.", cells.room),
    ),
    "VolumeAttachment": (
        NAME,
        Column("Attacher", "Driver that attaches the volume.", "spec.attacher", format="name"),
        Column("PV", "The volume.", "spec.source.persistentVolumeName"),
        Column("Node", "Node to which it is attached.", "spec.nodeName"),
        flag("Attached", "Whether it is attached.", "status.attached"),
        AGE,
    ),
    "VolumeAttributesClass": (NAME, Column("DriverName", "Driver of the volumes.", "driverName"), AGE),
    # Small groups
    "CertificateSigningRequest": (
        NAME,
        AGE,
        Column("SignerName", "Who is to sign.", either("spec.signerName", texts.NONE)),
        Column("Requestor", "Who asks.", "spec.username"),
        Column("RequestedDuration", "How long the certificate is to be valid.", of(cells.validity, "spec")),
        Column("Condition", "Whether it is approved, denied or issued.", of(cells.signing_state, "status")),
    ),
    "FlowSchema": (
        NAME,
        Column("PriorityLevel", "Priority level of the requests.", "spec.priorityLevelConfiguration.name"),
        Column("MatchingPrecedence", "The smallest number counts.", "spec.matchingPrecedence"),
        Column(
            "DistinguisherMethod",
            "What tells flows apart.",
            of(cells.distinguisher, "spec"),
        ),
        AGE,
        Column("MissingPL", "Whether the priority level is missing.", of(cells.dangling, "status")),
    ),
    "PriorityLevelConfiguration": (
        NAME,
        Column("Type", "Exempt or Limited.", "spec.type"),
        Column("NominalConcurrencyShares", "Share of the level.", cells.of_level("nominalConcurrencyShares")),
        Column("Queues", "Number of queues.", cells.of_level("limitResponse.queuing.queues")),
        Column("HandSize", "Queues of a flow.", cells.of_level("limitResponse.queuing.handSize")),
        Column("QueueLengthLimit", "Length of a queue.", cells.of_level("limitResponse.queuing.queueLengthLimit")),
        AGE,
    ),
    "APIService": (
        NAME,
        Column("Service", "Who serves it.", of(cells.serving, "spec")),
        Column("Available", "Whether it answers.", of(cells.availability, "status")),
        AGE,
    ),
    "ComponentStatus": (
        NAME,
        Column("Status", "Whether the component is healthy.", cells.health),
        Column("Message", "What it answers.", cells.of_health("message")),
        Column("Error", "Why it does not answer.", cells.of_health("error")),
    ),
    "ValidatingAdmissionPolicy": (
        NAME,
        whole("Validations", "Number of its rules.", of(len, "spec.validations")),
        Column("ParamKind", "Kind of its parameters.", of(cells.parameter_kind, "spec")),
        AGE,
    ),
    "MutatingAdmissionPolicy": (
        NAME,
        whole("Mutations", "Number of its mutations.", of(len, "spec.mutations")),
        Column("ParamKind", "Kind of its parameters.", of(cells.parameter_kind, "spec")),
        AGE,
    ),
    "ValidatingAdmissionPolicyBinding": _POLICY_BINDING,
    "MutatingAdmissionPolicyBinding": _POLICY_BINDING,
    "ValidatingWebhookConfiguration": _WEBHOOKS,
    "MutatingWebhookConfiguration": _WEBHOOKS,
    "PriorityClass": (
        NAME,
        whole("Value", "Priority of the pods of this class.", "value"),
        flag("Global-Default", "Whether pods without a class are of this one.", "globalDefault"),
        AGE,
        Column("PreemptionPolicy", "Whether its pods preempt others.", "preemptionPolicy"),
    ),
    "Lease": (NAME, Column("Holder", "Who holds the lease.", "spec.holderIdentity"), AGE),
    "RuntimeClass": (NAME, Column("Handler", "Configuration of the runtime.", "handler"), AGE),
    "RoleBinding": _BINDING,
    "ClusterRoleBinding": _BINDING,
    "DeviceClass": (NAME, AGE),
    "ResourceClaim": (
        NAME,
        Column("State", "Whether devices are allocated and reserved.", cells.device_claim_state),
        AGE,
    ),
    "ResourceClaimTemplate": (NAME, AGE),
    "ResourceSlice": (
        NAME,
        Column("Node", "Node that has the devices.", "spec.nodeName"),
        Column("Driver", "Driver of the devices.", "spec.driver"),
        Column("Pool", "Pool to which they belong.", "spec.pool.name"),
        AGE,
    ),
}
