"""The defaults of pods and of the templates of pods."""

from __future__ import annotations

import re
from collections.abc import Sequence

from kemu.emulated.objects.amounts import pod_totals, qos, requests
from kemu.emulated.objects.caches import text_cache
from kemu.emulated.objects.defaulting import storage
from kemu.emulated.objects.defaulting.shared import round_up
from kemu.messages.k8s import core_v1_pb2

DEFAULT_SCHEDULER = "default-scheduler"
DEFAULT_GRACE_PERIOD_S = 30


def default_pod(pod: core_v1_pb2.Pod) -> None:
    spec = pod.spec
    spec.ParseFromString(_filled_in(spec.SerializeToString(deterministic=True)))
    if pod.HasField("status"):
        _default_status(pod.status)


def _default_status(status: core_v1_pb2.PodStatus) -> None:
    for of_containers in (status.containerStatuses, status.initContainerStatuses, status.ephemeralContainerStatuses):
        for one in of_containers:
            round_up(one.allocatedResources)
            if one.HasField("resources"):
                round_up(one.resources.limits)
                round_up(one.resources.requests)
    round_up(status.allocatedResources)
    if status.HasField("resources"):
        round_up(status.resources.limits)
        round_up(status.resources.requests)
    # Clients older than the list know the single address.
    if status.podIP and (not status.podIPs or status.podIPs[0].ip != status.podIP):
        del status.podIPs[:]
        status.podIPs.add(ip=status.podIP)
    elif status.podIPs:
        status.podIP = status.podIPs[0].ip


@text_cache(1024)
def _filled_in(spec_bytes: bytes) -> bytes:
    """The spec of a pod with its defaults. Cached, because most pods are copies of one spec."""
    pod = core_v1_pb2.Pod()
    spec = pod.spec
    spec.ParseFromString(spec_bytes)
    default_pod_spec(spec)
    for container in spec.containers:
        if container.HasField("resources"):
            _default_requests(container.resources)
    for container in spec.initContainers:
        if container.HasField("resources"):
            _default_requests(container.resources)
    if spec.HasField("resources"):
        _default_pod_resources(pod)
    if not spec.HasField("enableServiceLinks"):
        spec.enableServiceLinks = True
    if spec.terminationGracePeriodSeconds < 0:
        spec.terminationGracePeriodSeconds = 1  # as Kubernetes decodes pods, but not their templates
    if spec.hostNetwork:
        for containers in (spec.containers, spec.initContainers):
            for container in containers:
                for port in container.ports:
                    if not port.hostPort:
                        port.hostPort = port.containerPort
    filled_in: bytes = spec.SerializeToString(deterministic=True)
    return filled_in


def default_pod_spec(spec: core_v1_pb2.PodSpec) -> None:
    """The defaults that pods and pod templates share."""
    for container in spec.containers:
        _default_container(container)
    for container in spec.initContainers:
        _default_container(container)
    for ephemeral in spec.ephemeralContainers:
        _default_container(ephemeral.ephemeralContainerCommon)
    for volume in spec.volumes:
        _default_volume(volume)
    if spec.overhead:
        round_up(spec.overhead)
    if spec.HasField("resources"):
        round_up(spec.resources.requests)
        round_up(spec.resources.limits)
    if not spec.dnsPolicy:
        spec.dnsPolicy = "ClusterFirst"
    if not spec.restartPolicy:
        spec.restartPolicy = "Always"
    if not spec.HasField("securityContext"):
        spec.securityContext.SetInParent()
    if not spec.HasField("terminationGracePeriodSeconds"):
        spec.terminationGracePeriodSeconds = DEFAULT_GRACE_PERIOD_S
    if not spec.schedulerName:
        spec.schedulerName = DEFAULT_SCHEDULER
    # The old and the new name of the field always hold the same value.
    if spec.serviceAccountName:
        spec.serviceAccount = spec.serviceAccountName
    elif spec.serviceAccount:
        spec.serviceAccountName = spec.serviceAccount


def _default_container(container: core_v1_pb2.Container | core_v1_pb2.EphemeralContainerCommon) -> None:
    if not container.imagePullPolicy:
        container.imagePullPolicy = _pull_policy(container.image)
    if not container.terminationMessagePath:
        container.terminationMessagePath = "/dev/termination-log"
    if not container.terminationMessagePolicy:
        container.terminationMessagePolicy = "File"
    if container.HasField("resources"):
        round_up(container.resources.requests)
        round_up(container.resources.limits)
    for port in container.ports:
        if not port.protocol:
            port.protocol = "TCP"
    for variable in container.env:
        if variable.HasField("valueFrom"):
            _default_field(variable.valueFrom)
            if variable.valueFrom.HasField("fileKeyRef") and not variable.valueFrom.fileKeyRef.HasField("optional"):
                variable.valueFrom.fileKeyRef.optional = False
    for name in ("livenessProbe", "readinessProbe", "startupProbe"):
        if container.HasField(name):
            _default_probe(getattr(container, name))
    if container.HasField("lifecycle"):
        if container.lifecycle.HasField("stopSignal"):
            # Not a default: without the gate ContainerStopSignals the server drops it (``dropContainerStopSignals``).
            container.lifecycle.ClearField("stopSignal")
            if not container.lifecycle.ListFields():
                container.ClearField("lifecycle")
        for name in ("postStart", "preStop"):
            if container.lifecycle.HasField(name):
                _default_http_get(getattr(container.lifecycle, name))


_COMPONENT = r"[a-z0-9]+(?:(?:\.|__?|-+)[a-z0-9]+)*"
_HOST = r"[A-Za-z0-9](?:[A-Za-z0-9-]*[A-Za-z0-9])?"
_IMAGE = re.compile(
    rf"(?:(?:{_HOST}(?:\.{_HOST})*|\[[A-Fa-f0-9:]+\])(?::[0-9]+)?/)?"
    rf"{_COMPONENT}(?:/{_COMPONENT})*(?::\w[\w.-]{{0,127}})?"
    r"(?:@[A-Za-z][A-Za-z0-9]*(?:[-_+.][A-Za-z][A-Za-z0-9]*)*:[0-9A-Fa-f]{32,})?",
    re.ASCII,
)
"""``github.com/distribution/reference``"""


@text_cache(4096)
def _pull_policy(image: str) -> str:
    """``Always`` for an image of tag ``latest`` or without tag and digest, else ``IfNotPresent``, also for a text that
    names no image."""
    if not _IMAGE.fullmatch(image):
        return "IfNotPresent"
    last = image.rpartition("/")[2]
    if "@" in last:
        return "IfNotPresent"
    _, colon, tag = last.partition(":")
    return "Always" if not colon or tag == "latest" else "IfNotPresent"


def _default_probe(probe: core_v1_pb2.Probe) -> None:
    _default_http_get(probe.handler)
    if probe.handler.HasField("grpc") and not probe.handler.grpc.HasField("service"):
        probe.handler.grpc.service = ""
    for name, value in (("timeoutSeconds", 1), ("periodSeconds", 10), ("successThreshold", 1), ("failureThreshold", 3)):
        if not getattr(probe, name):
            setattr(probe, name, value)


def _default_http_get(handler: core_v1_pb2.ProbeHandler) -> None:
    if handler.HasField("httpGet"):
        if not handler.httpGet.path:
            handler.httpGet.path = "/"
        if not handler.httpGet.scheme:
            handler.httpGet.scheme = "HTTP"


def _default_field(user: core_v1_pb2.EnvVarSource | core_v1_pb2.DownwardAPIVolumeFile) -> None:
    if user.HasField("fieldRef") and not user.fieldRef.apiVersion:
        user.fieldRef.apiVersion = "v1"


def _default_volume(volume: core_v1_pb2.Volume) -> None:
    source = volume.volumeSource
    stated = source.ListFields()
    if not stated:
        source.emptyDir.SetInParent()
        return
    for field, value in stated:
        storage.default_source(field.name, value)
    for item in source.downwardAPI.items:
        _default_field(item)
    for projection in source.projected.sources:
        # Not defaults: without their gates the server drops these (``dropDisabledClusterTrustBundleProjection``).
        projection.ClearField("clusterTrustBundle")
        projection.ClearField("podCertificate")
        for item in projection.downwardAPI.items:
            _default_field(item)
        token = projection.serviceAccountToken
        if projection.HasField("serviceAccountToken") and not token.HasField("expirationSeconds"):
            token.expirationSeconds = 60 * 60
    if source.HasField("image") and not source.image.pullPolicy:
        source.image.pullPolicy = _pull_policy(source.image.reference)
    if source.HasField("ephemeral") and source.ephemeral.HasField("volumeClaimTemplate"):
        storage.default_claim_spec(source.ephemeral.volumeClaimTemplate.spec)


def _default_requests(resources: core_v1_pb2.ResourceRequirements) -> None:
    """A limit without a request becomes the request."""
    limits, wanted = resources.limits, resources.requests
    for name in limits:
        if name not in wanted:
            wanted[name].string = limits[name].string


def _default_pod_resources(pod: core_v1_pb2.Pod) -> None:
    """Pod-level limits without requests: the sum of the containers' requests becomes the request, else the limit. Of
    huge pages, the sum of the containers' limits becomes the limit."""
    resources = pod.spec.resources
    if not resources.limits and not resources.requests:
        return
    wanted = resources.requests
    try:
        most = pod_totals.of_containers(pod, pod_totals.LIMITS, use_status=False)
        together = pod_totals.of_containers(pod, pod_totals.REQUESTS, use_status=False)
    except ValueError:
        return
    for name, amount in most.items():
        if name.startswith(requests.HUGE_PAGES_PREFIX) and name not in wanted and name not in resources.limits:
            resources.limits[name].string = str(amount)
    if not resources.limits:
        return
    for name, amount in together.items():
        if name in (requests.CPU, requests.MEMORY) and name not in wanted:
            wanted[name].string = str(amount)
    for name in resources.limits:
        if name not in wanted and requests.is_pod_level_resource(name):
            wanted[name].string = resources.limits[name].string
    round_up(wanted)


def prepare_pod(pod: core_v1_pb2.Pod) -> None:
    pod.metadata.generation = 1
    pod.ClearField("status")
    status = pod.status
    status.phase = "Pending"
    try:
        status.qosClass = qos.computed_qos_class(pod)
    except ValueError:
        status.ClearField("qosClass")  # A bad quantity: validation refuses the pod.
    spec = pod.spec
    if spec.schedulingGates:
        status.conditions.add(
            type="PodScheduled",
            status="False",
            reason="SchedulingGated",
            message="Scheduling is blocked due to non-empty scheduling gates",
        )
    if spec.HasField("affinity"):
        for affinity in (spec.affinity.podAffinity, spec.affinity.podAntiAffinity):
            for term in affinity.requiredDuringSchedulingIgnoredDuringExecution:
                _merge_label_keys(pod, term, term.mismatchLabelKeys)
            for weighted in affinity.preferredDuringSchedulingIgnoredDuringExecution:
                _merge_label_keys(pod, weighted.podAffinityTerm, weighted.podAffinityTerm.mismatchLabelKeys)
    for constraint in spec.topologySpreadConstraints:
        _merge_label_keys(pod, constraint, ())


def _merge_label_keys(
    pod: core_v1_pb2.Pod,
    term: core_v1_pb2.PodAffinityTerm | core_v1_pb2.TopologySpreadConstraint,
    mismatch_keys: Sequence[str],
) -> None:
    """Turn the pod's own values of ``matchLabelKeys`` and ``mismatchLabelKeys`` into requirements of the selector."""
    if not term.HasField("labelSelector"):
        return
    labels = pod.metadata.labels
    for keys, operator in ((term.matchLabelKeys, "In"), (mismatch_keys, "NotIn")):
        for key in keys:
            if key in labels:
                term.labelSelector.matchExpressions.add(key=key, operator=operator, values=[labels[key]])


FILL = {core_v1_pb2.Pod: default_pod}

PREPARE = {core_v1_pb2.Pod: prepare_pod}
