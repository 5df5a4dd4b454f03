"""What plugins sign of a pod: the parts of its spec on which their filters and scores depend.

The counterpart of signers.go in ``k8s.io/kube-scheduler/framework``. A fragment is a key and a value; two pods have the
same signature if all their fragments are equal (:mod:`kemu.emulated.scheduler.cycle.signatures`).
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping

from kemu.emulated.objects import names
from kemu.emulated.objects.amounts import requests
from kemu.emulated.objects.pods import declared_features
from kemu.emulated.scheduler.cache import pods
from kemu.messages.k8s import core_v1_pb2

Fragments = Mapping[str, Hashable]


def resources(pod: core_v1_pb2.Pod) -> Fragments:
    """``computePodResourceRequest``: the requests as stated, without the amounts that scores assume for none."""
    amounts = requests.pod_requests(pod)
    kept = [(name, amount) for name, amount in sorted(amounts.items()) if amount or pods.is_scalar_resource(name)]
    return {"resources": tuple(kept)}


def tolerations(pod: core_v1_pb2.Pod) -> Fragments:
    """``TolerationsSigner``: in the order of key and value alone."""
    ordered = sorted(pod.spec.tolerations, key=lambda one: (one.key, one.value))
    return {"tolerations": tuple(_bytes(one) for one in ordered)}


def host_ports(pod: core_v1_pb2.Pod) -> Fragments:
    """``HostPortsSigner``: the numbers, whatever their protocol and address."""
    found = {port.hostPort: None for container in _containers(pod) for port in container.ports if port.hostPort}
    return {"host ports": tuple(sorted(found))}


def image_names(pod: core_v1_pb2.Pod) -> Fragments:
    """The names of container images; the images of volumes are no part."""
    return {"images": tuple(sorted({names.tagged_image(container.image): None for container in _containers(pod)}))}


def node_affinity(pod: core_v1_pb2.Pod) -> Fragments:
    """``NodeAffinitySigner`` and the node selector; terms, expressions and values in any order are the same."""
    spec = pod.spec
    affinity: Hashable = None
    if spec.affinity.HasField("nodeAffinity"):
        node = spec.affinity.nodeAffinity
        required = node.requiredDuringSchedulingIgnoredDuringExecution.nodeSelectorTerms
        preferred = node.preferredDuringSchedulingIgnoredDuringExecution
        affinity = (
            tuple(sorted(_term(term) for term in required)),
            tuple(sorted((one.weight, _term(one.preference)) for one in preferred)),
        )
    return {"node affinity": affinity, "node selector": tuple(sorted(spec.nodeSelector.items()))}


def volumes(pod: core_v1_pb2.Pod) -> Fragments:
    """``VolumesSigner``: the sources of volumes, but ConfigMaps and Secrets."""
    sources = [volume.volumeSource for volume in pod.spec.volumes]
    kept = [one for one in sources if not one.HasField("configMap") and not one.HasField("secret")]
    return {"volumes": tuple(sorted(_bytes(one) for one in kept))}


def features(pod: core_v1_pb2.Pod) -> Fragments:
    """The features that a node has to declare for the pod (``InferForScheduling``, component-helpers)."""
    return {"features": declared_features.for_scheduling(pod.spec)}


def _containers(pod: core_v1_pb2.Pod) -> Iterable[core_v1_pb2.Container]:
    return (*pod.spec.containers, *pod.spec.initContainers)


def _term(term: core_v1_pb2.NodeSelectorTerm) -> tuple[tuple[tuple[str, str, tuple[str, ...]], ...], ...]:
    return tuple(
        tuple(sorted((one.key, one.operator, tuple(sorted(one.values))) for one in expressions))
        for expressions in (term.matchExpressions, term.matchFields)
    )


def _bytes(message: core_v1_pb2.Toleration | core_v1_pb2.VolumeSource) -> bytes:
    found: bytes = message.SerializeToString(deterministic=True)
    return found
