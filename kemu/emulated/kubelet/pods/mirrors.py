"""The mirror pod of a static pod: how the API server sees it.

Mirrors ``MirrorClient`` of ``pkg/kubelet/pod``.
"""

from __future__ import annotations

from kemu import errors
from kemu.emulated.client import clients, retries
from kemu.emulated.objects import meta
from kemu.messages.k8s import core_v1_pb2
from kemu.runtime.env import Env


class Mirror:
    """What the API server has of one static pod."""

    def __init__(self, env: Env, client: clients.Client, static: core_v1_pb2.Pod, node: core_v1_pb2.Node) -> None:
        """``node``: the Node, which owns it."""
        self.object: core_v1_pb2.Pod | None = None
        """As last seen; None: there is none."""
        self._env = env
        self._client = client
        self._static = static
        self._node = node

    def see(self, pod: core_v1_pb2.Pod) -> None:
        if self.object is None or int(pod.metadata.resourceVersion) >= int(self.object.metadata.resourceVersion):
            self.object = pod

    def is_of(self, pod: core_v1_pb2.Pod) -> bool:
        """Whether an object is the mirror of this static pod, not that of an older manifest, nor another pod."""
        mirrored: str = pod.metadata.annotations.get(meta.MIRROR_ANNOTATION, "")
        return mirrored == self._static.metadata.uid

    async def get(self) -> core_v1_pb2.Pod | None:
        """The object, which is created if there is none; None: another pod has its name."""
        if self.object is None:
            try:
                self.see(await retries.patiently(self._env, lambda: self._client.create(self._wanted())))
            except errors.AlreadyExists:
                metadata = self._static.metadata
                found = await retries.patiently(
                    self._env, lambda: self._client.get("pods", metadata.name, metadata.namespace)
                )
                if self.is_of(found):
                    self.see(found)
        return self.object

    def _wanted(self) -> core_v1_pb2.Pod:
        pod = meta.copied(self._static)
        metadata = pod.metadata
        metadata.annotations[meta.MIRROR_ANNOTATION] = metadata.uid
        metadata.ClearField("uid")
        pod.ClearField("status")
        owner = meta.owner_reference(self._node, "v1", "Node")
        # As in pkg/kubelet/pod; NodeRestriction refuses a kubelet that blocks the deletion of an owner.
        owner.ClearField("blockOwnerDeletion")
        metadata.ownerReferences.append(owner)
        return pod
