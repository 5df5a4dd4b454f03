"""PodTopologyLabels: a pod has the zone and the region of its node (``plugin/pkg/admission/podtopologylabels``)."""

from __future__ import annotations

from collections.abc import Mapping

from kemu.emulated.apiserver.admission.base import Plugin
from kemu.emulated.apiserver.storage import Entry, Storage
from kemu.emulated.apiserver.watch.cache import WatchCache
from kemu.emulated.objects import resources
from kemu.emulated.objects.resources import Resource
from kemu.messages.k8s import core_v1_pb2
from kemu.messages.v1 import api_pb2

PODS, NODES = resources.BY_PLURAL["pods"], resources.BY_PLURAL["nodes"]
LABELS = ("topology.kubernetes.io/zone", "topology.kubernetes.io/region")
_PREFIX = b"topology.kubernetes.io/"
_KEY = resources.key(NODES, "", "")


class PodTopologyLabels(Plugin[core_v1_pb2.Pod]):
    def __init__(self, storage: Storage, cache: WatchCache) -> None:
        super().__init__(storage, cache)
        self._nodes = cache.collections["nodes"].entries
        self._known: dict[str, tuple[Entry, Mapping[str, str]]] = {}
        """Labels of nodes that have some."""

    @classmethod
    def concerns(cls, resource: Resource) -> bool:
        return resource is PODS

    async def create(self, resource: Resource, obj: core_v1_pb2.Pod) -> None:
        if obj.spec.nodeName:
            entry = self._nodes.get(_KEY + obj.spec.nodeName.encode())
            if entry is not None:  # else there is no such node, which is no mistake here
                obj.metadata.labels.update(self._labels(obj.spec.nodeName, entry))

    def bind(self, request: api_pb2.BindRequest) -> api_pb2.BindRequest:
        """The binding with the labels of its node."""
        # Every binding comes here: no further calls for nodes without.
        entry = self._nodes.get(_KEY + request.node.encode())
        if entry is None or _PREFIX not in entry.value:
            return request
        labels = self._labels(request.node, entry)
        if not labels:
            return request
        changed = api_pb2.BindRequest()
        changed.CopyFrom(request)
        changed.labels.update(labels)
        return changed

    def _labels(self, name: str, entry: Entry) -> Mapping[str, str]:
        known = self._known.get(name)
        if known is not None and known[0] is entry:
            return known[1]
        stated = core_v1_pb2.Node.FromString(entry.value).metadata.labels
        labels = {label: stated[label] for label in LABELS if label in stated}
        self._known[name] = entry, labels
        return labels
