"""Pods in the scheduler's cache, with their specs compiled once for each distinct spec.

:class:`Template` is the compiled spec, shared by all pods that were made from the same template. :class:`PodInfo` is
one pod. Both are read by plugins; only the cache (:mod:`kemu.emulated.scheduler.cache.cluster`) writes
``PodInfo.node_name``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import lru_cache
from sys import intern
from typing import Any

from kemu.emulated.objects import meta, names, selectors
from kemu.emulated.objects.amounts import qos, requests
from kemu.emulated.objects.pods import host_ports
from kemu.emulated.objects.volumes import migration
from kemu.emulated.objects.wire import shared_objects
from kemu.emulated.scheduler.cache import terms
from kemu.messages.k8s import core_v1_pb2

CPU = 0
MEMORY = 1

_NATIVE = (requests.CPU, requests.MEMORY, requests.EPHEMERAL_STORAGE)


_SPARE_NAMES = 64
"""So many names of resources may stand unused, beside as many as are in use."""


class ResourceNames:
    """Numbers for the names of resources: indices into resource lists.

    A number whose name is not used any more is given to another name, see :meth:`forget_all_but`.
    """

    __slots__ = ("_free", "_kept", "index", "limit", "names", "on_new")

    def __init__(self, on_new: Callable[[], object] = lambda: None) -> None:
        self.on_new = on_new
        self.names: list[str] = list(_NATIVE)
        """By number; "" for a number that is free."""
        self.index: dict[str, int] = {name: number for number, name in enumerate(self.names)}
        self._free: list[int] = []
        self._kept: dict[int, None] = dict.fromkeys(self.index.values())
        self.limit = _SPARE_NAMES
        """With more names than that it is time to look which ones are still in use."""

    def of(self, name: str) -> int:
        number = self.index.get(name)
        if number is not None:
            return number
        if self._free:
            number = self.index[name] = self._free.pop()
            self.names[number] = name
        else:
            number = self.index[name] = len(self.names)
            self.names.append(name)
            self.on_new()
        return number

    def keep(self, names: Iterable[str]) -> None:
        """These never lose their numbers: plugins remember them."""
        self._kept.update((self.of(name), None) for name in names)

    def forget_all_but(self, used: Mapping[int, object]) -> None:
        for number, name in enumerate(self.names):
            if name and number not in used and number not in self._kept:
                del self.index[name]
                self.names[number] = ""
                self._free.append(number)
        self.limit = 2 * len(self.index) + _SPARE_NAMES


def is_scalar_resource(name: str) -> bool:
    """Resources that count only for pods that ask for them: extended resources, huge pages and the like."""
    return name not in _NATIVE


class Template:
    """What the spec of a pod, together with its namespace, determines. Immutable."""

    __slots__ = (
        "affinity_terms",
        "anti_affinity_terms",
        "claims",
        "containers",
        "gates",
        "has_terms",
        "host_ports",
        "images",
        "namespace",
        "never_preempts",
        "node_name",
        "non_zero",
        "number",
        "preferred_affinity_terms",
        "preferred_anti_affinity_terms",
        "preferred_terms",
        "priority",
        "qos",
        "requests",
        "required_affinity",
        "score_non_zero",
        "score_requests",
        "spec",
        "spread_constraints",
        "tolerations",
        "volumes",
    )

    def __init__(self, number: int, pod: core_v1_pb2.Pod, names: ResourceNames) -> None:
        spec = pod.spec
        self.number = number
        self.spec = spec
        self.namespace: str = pod.metadata.namespace
        self.node_name: str = spec.nodeName
        self.priority: int = spec.priority
        self.never_preempts: bool = spec.preemptionPolicy == "Never"
        self.requests: tuple[tuple[int, int], ...] = indexed(requests.pod_requests(pod), names)
        """(resource number, amount), amounts above 0, in the order in which a lack of them is reported."""
        self.non_zero: tuple[int, int] = requests.non_zero_requests(pod)
        self.score_non_zero: tuple[int, int] = self.non_zero
        self.score_requests = self.requests
        if spec.HasField("resources"):
            # The score of NodeResourcesFit does not know pod-level resources.
            bare = core_v1_pb2.Pod()
            bare.CopyFrom(pod)
            bare.spec.ClearField("resources")
            self.score_requests = indexed(requests.pod_requests(bare), names)
            self.score_non_zero = requests.non_zero_requests(bare)
        self.gates: tuple[str, ...] = tuple(gate.name for gate in spec.schedulingGates)
        self.qos: str = qos.qos_class(pod)
        self.tolerations: tuple[Any, ...] = tuple(spec.tolerations)
        self.required_affinity = selectors.RequiredNodeAffinity(spec)
        node_affinity = spec.affinity.nodeAffinity
        self.preferred_terms: tuple[tuple[int, selectors.NodeSelectorTerm], ...] = tuple(
            (term.weight, selectors.NodeSelectorTerm(term.preference))
            for term in node_affinity.preferredDuringSchedulingIgnoredDuringExecution
        )
        self.host_ports = host_ports.of(spec)
        self.containers = len(spec.containers) + len(spec.initContainers)
        self.images = images(spec)
        namespace = self.namespace
        affinity, anti_affinity = spec.affinity.podAffinity, spec.affinity.podAntiAffinity
        self.affinity_terms = tuple(
            terms.AffinityTerm(term, namespace) for term in affinity.requiredDuringSchedulingIgnoredDuringExecution
        )
        self.anti_affinity_terms = tuple(
            terms.AffinityTerm(term, namespace) for term in anti_affinity.requiredDuringSchedulingIgnoredDuringExecution
        )
        self.preferred_affinity_terms = tuple(
            (term.weight, terms.AffinityTerm(term.podAffinityTerm, namespace))
            for term in affinity.preferredDuringSchedulingIgnoredDuringExecution
        )
        self.preferred_anti_affinity_terms = tuple(
            (term.weight, terms.AffinityTerm(term.podAffinityTerm, namespace))
            for term in anti_affinity.preferredDuringSchedulingIgnoredDuringExecution
        )
        self.has_terms = bool(
            self.affinity_terms
            or self.anti_affinity_terms
            or self.preferred_affinity_terms
            or self.preferred_anti_affinity_terms
        )
        """Whether it asks for other pods near it, or for none."""
        self.volumes: tuple[Any, ...] = sources_of_plugins(spec) if spec.volumes else ()
        """The sources of its volumes that a plugin for volumes looks at."""
        self.claims: tuple[str, ...] = tuple(
            [one.persistentVolumeClaim.claimName for one in self.volumes if one.HasField("persistentVolumeClaim")]
        )
        """The claims that its volumes name; those of ephemeral volumes are named after the pod."""
        self.spread_constraints = tuple(terms.spread_constraint(one) for one in spec.topologySpreadConstraints)


_TOKEN_PREFIX = "kube-api-access-"


def _volume_of_token(spec: core_v1_pb2.PodSpec) -> str:
    """The name of the volume with a token that admission gave to the pod, another one to each pod; empty: none."""
    last = spec.volumes[-1]
    is_token = last.name.startswith(_TOKEN_PREFIX) and last.volumeSource.HasField("projected")
    return str(last.name) if is_token else ""


def _forget_volume(spec: core_v1_pb2.PodSpec, name: str) -> None:
    """Take a volume away that is the last one, and the mounts of it."""
    del spec.volumes[-1]
    for container in (*spec.initContainers, *spec.containers):
        mounts = container.volumeMounts
        for index in range(len(mounts) - 1, -1, -1):
            if mounts[index].name == name:
                del mounts[index]


def indexed(amounts: dict[str, int], names: ResourceNames) -> tuple[tuple[int, int], ...]:
    """Amounts above 0 by resource number: cpu, memory, ephemeral storage, then the others by name."""
    found = [(number, amounts[name]) for number, name in enumerate(_NATIVE) if amounts.get(name, 0) > 0]
    found += [(names.of(name), amounts[name]) for name in sorted(amounts) if name not in _NATIVE and amounts[name] > 0]
    return tuple(found)


_SCHEDULED_SOURCES = ("persistentVolumeClaim", "ephemeral", "iscsi", "rbd")


def sources_of_plugins(spec: core_v1_pb2.PodSpec) -> tuple[Any, ...]:
    """The sources of volumes that may decide about nodes; the others are made on whichever node the pod gets."""
    sources = [volume.volumeSource for volume in spec.volumes]
    return tuple(
        [one for one in sources if migration.is_inline(one) or any(one.HasField(name) for name in _SCHEDULED_SOURCES)]
    )


def images(spec: core_v1_pb2.PodSpec) -> tuple[str, ...]:
    """The images of init containers, containers and image volumes, with ``:latest`` where there is no tag."""
    found = [container.image for container in (*spec.initContainers, *spec.containers)]
    found += [volume.volumeSource.image.reference for volume in spec.volumes if volume.volumeSource.HasField("image")]
    return tuple(names.tagged_image(name) for name in found)


class Templates:
    """The distinct specs seen, compiled. When there are too many, the ones compiled first are forgotten.

    The key is the deterministic serialisation of the spec, without what differs between pods of one template.
    """

    def __init__(self, names: ResourceNames, limit: int = 2048) -> None:
        self.names = names
        self._by_key: dict[tuple[str, bytes], Template] = {}
        self._limit = limit
        self._made = 0

    def __iter__(self) -> Iterator[Template]:
        """Those that are kept."""
        return iter(self._by_key.values())

    def of(self, pod: core_v1_pb2.Pod, *, keep_node_name: bool = False) -> Template:
        """``keep_node_name``: the node name is a demand of a pending pod, not where the pod runs."""
        spec = pod.spec
        token = _volume_of_token(spec) if spec.volumes else ""
        if token or spec.hostname or (spec.nodeName and not keep_node_name):
            # A new message each time: memory of copied fields is freed only together with the message.
            scratch = core_v1_pb2.PodSpec()
            scratch.CopyFrom(spec)
            scratch.ClearField("hostname")
            if token:
                _forget_volume(scratch, token)
            if not keep_node_name:
                scratch.ClearField("nodeName")
            spec = scratch
        key = (pod.metadata.namespace, spec.SerializeToString(deterministic=True))
        template = self._by_key.get(key)
        if template is None:
            if len(self._by_key) >= self._limit:
                # Dicts keep the order of insertion: drop the oldest half. Templates in use stay alive in their pods.
                for old in list(self._by_key)[: self._limit // 2]:
                    del self._by_key[old]
            bare = core_v1_pb2.Pod()
            bare.metadata.namespace = pod.metadata.namespace
            bare.spec.CopyFrom(spec)
            bare.status.qosClass = pod.status.qosClass
            template = self._by_key[key] = Template(self._made, bare, self.names)
            self._made += 1
        return template


@lru_cache(4096)
def _alike(labels: tuple[tuple[str, str], ...]) -> dict[str, str]:
    """One for all pods with the same labels: nobody changes it."""
    return dict(labels)


class PodInfo:
    """One pod, pending or on a node."""

    __slots__ = (
        "_labels",
        "held",
        "key",
        "name",
        "namespace",
        "node_name",
        "nominated",
        "non_zero",
        "pod",
        "priority",
        "requests",
        "start_s",
        "template",
        "terminating",
        "uid",
    )

    pod: core_v1_pb2.Pod
    """The object as last seen, never changed in place."""
    held: shared_objects.Held | None
    """The same at rest; None until :meth:`rest`."""

    def __init__(self, pod: core_v1_pb2.Pod, template: Template) -> None:
        metadata = pod.metadata
        self.pod = pod
        self.held = None
        self.template = template
        # All schedulers of this process hold the same strings.
        self.namespace: str = template.namespace
        self.name: str = intern(metadata.name)
        self.key: str = intern(f"{self.namespace}/{self.name}")
        """``ns/name``"""
        self.uid: str = intern(metadata.uid)
        self.priority = template.priority
        self.node_name = ""
        """The node on which the cache counts it, assumed or seen; "" for a pending pod."""
        self.nominated = ""
        """The node that the nominator reserves for it."""
        self.terminating: bool = metadata.HasField("deletionTimestamp")
        self.start_s: int | None = pod.status.startTime.seconds if pod.status.HasField("startTime") else None
        """``status.startTime`` in Unix seconds; None: it has not started, which counts as the latest."""
        self.requests = template.requests
        self.non_zero = template.non_zero
        self._labels: dict[str, str] | None = None

    def __getattr__(self, name: str) -> core_v1_pb2.Pod:
        """:attr:`pod`, after :meth:`rest`."""
        if name != "pod":
            raise AttributeError(name)
        assert self.held is not None
        return self.held.get()  # type: ignore[return-value]  # what it was made of

    def rest(self, pod: core_v1_pb2.Pod, held: shared_objects.Held | None = None) -> None:
        """It runs, as this version says: few will ask for it, and once that is no news any more its bytes are
        enough. ``held``: what holds that version, where it is known."""
        self.held = held or shared_objects.OBJECTS.hold(pod)
        try:  # noqa: SIM105  (contextlib.suppress is three calls, for each change)
            del self.pod
        except AttributeError:
            pass

    @property
    def labels(self) -> dict[str, str]:
        labels = self._labels
        if labels is None:
            # Many pods have none, and dict() of a protobuf map is slow.
            found = self.pod.metadata.labels
            labels = self._labels = _alike(tuple([(key, found[key]) for key in found]))
        return labels

    def __repr__(self) -> str:
        return f"PodInfo({self.key})"


def on_node(pod: core_v1_pb2.Pod, template: Template, names: ResourceNames) -> PodInfo:
    """A pod that runs on a node: a resize that is under way counts in its request."""
    info = PodInfo(pod, template)
    if requests.is_resized(pod):
        info.requests = indexed(requests.pod_requests_on_node(pod), names)
        info.non_zero = requests.non_zero_requests_on_node(pod)
    return info


def terminates_by_preemption(pod: core_v1_pb2.Pod) -> bool:
    """Whether the pod terminates because of a scheduler's preemption (``podTerminatingByPreemption``)."""
    if not pod.metadata.HasField("deletionTimestamp"):
        return False
    condition = meta.get_condition(pod.status.conditions, "DisruptionTarget")
    return condition is not None and condition.status == "True" and condition.reason == "PreemptionByScheduler"
